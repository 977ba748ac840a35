//! A session's methods that are one request each, or one list. Compiled twice,
//! as `session.rs` is.

use serde_json::Value;
use touchmark_proto::at::At;
use touchmark_proto::calls::{CallCheck, CallClear, CallRecord, CallStats};
use touchmark_proto::checkpoints::{
    CheckpointCreate, CheckpointDelete, CheckpointDetect, CheckpointList, CheckpointRow,
    DeletedOperation, EditedFile, WarningCleanup, WarningStore, WarningTake,
};
use touchmark_proto::daemon::Stats;
use touchmark_proto::files::{
    FileDetect, FileInvalidate, FileIsStale, FileList, FileMention, FileRecent, FileRecord,
    FileSnapshot, FileUntrack, Snapshot,
};
use touchmark_proto::history::{FileBlame, FileContent, FileDiff, FileRestore};
use touchmark_proto::models::{ModelEntry, ModelList, ModelRecord};
use touchmark_proto::retention::{RetentionItem, RetentionRank};
use touchmark_proto::search::SearchGrep;
use touchmark_proto::sessions::{SessionClose, SessionCompacted, SessionTruncated, Truncated};
use touchmark_proto::tasks::{Task, TaskCleanup, TaskList, TaskRemove, TaskRow, TaskSave};
use touchmark_proto::undo::{Redo, Undo};
use touchmark_proto::writes::{FileEdit, FileWrite, QuotesMatch, QuotesNormalize};
use touchmark_proto::{ClientPath, FreeJson, Method, SessionId};

use super::session::Session;
use crate::error::Result;

/// Methods that are one request each.
macro_rules! requests {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($session:ident $(, $argument:ident: $type:ty)*) -> $method:ident
            { $params:expr }
    )*) => {
        methods! {
            impl Session {
                $(
                    $(#[$doc])*
                    ///
                    /// # Errors
                    /// The daemon's own.
                    pub fn $name(&self $(, $argument: $type)*)
                        -> Result<<$method as Method>::Result>
                    {
                        let $session = self.id().clone();
                        wait!(self.client().call::<$method>($params))
                    }
                )*
            }
        }
    };
}

/// Methods that request a list until there is no more of it (LIM-2).
macro_rules! lists {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($session:ident, $cursor:ident $(, $argument:ident: $type:ty)*)
            -> $method:ident, $rows:ident: $row:ty { $params:expr }
    )*) => {
        methods! {
            impl Session {
                $(
                    $(#[$doc])*
                    ///
                    /// # Errors
                    /// The daemon's own.
                    pub fn $name(&self $(, $argument: $type)*) -> Result<Vec<$row>> {
                        let mut rows = Vec::new();
                        let mut $cursor: Option<String> = None;
                        loop {
                            let $session = self.id().clone();
                            let answer = wait!(self.client().call::<$method>($params))?;
                            rows.extend(answer.$rows);
                            $cursor = answer.more;
                            if $cursor.is_none() {
                                return Ok(rows);
                            }
                        }
                    }
                )*
            }
        }
    };
}

requests! {
    /// A message names a file: it is tracked from now on.
    fn mention(session, path: impl Into<ClientPath>) -> FileMention {
        FileMention { session, path: path.into(), hash: None, range: None, step: None, missed: false }
    }

    /// Forgets what was read of a file, or of all: the next read is full.
    fn invalidate(session, path: Option<ClientPath>) -> FileInvalidate {
        FileInvalidate { session, path }
    }

    /// The session has nothing to do with the file any more.
    fn untrack(session, path: impl Into<ClientPath>) -> FileUntrack {
        FileUntrack { session, path: path.into() }
    }

    /// The context was compacted: what was read is no longer in it, but for
    /// these files.
    fn compacted(session, keep: Vec<ClientPath>) -> SessionCompacted {
        SessionCompacted { session, keep }
    }

    /// Parts of the context were cut.
    fn truncated(session, items: Vec<Truncated>) -> SessionTruncated {
        SessionTruncated { session, items }
    }

    /// Was a file accessed more than `max_age` of the session's steps ago?
    /// This says nothing of its content.
    fn is_stale(session, path: impl Into<ClientPath>, step: u64, max_age: u64) -> FileIsStale {
        FileIsStale { session, path: path.into(), step, max_age }
    }

    /// What a file is like at this moment.
    fn snapshot(_session, path: impl Into<ClientPath>) -> FileSnapshot {
        FileSnapshot { path: path.into() }
    }

    /// What differs from a snapshot.
    fn detect(_session, snapshot: Snapshot) -> FileDetect {
        FileDetect { snapshot }
    }

    /// Returns a file's content at a version, by default the current one.
    fn content(_session, path: impl Into<ClientPath>, at: Option<At>) -> FileContent {
        FileContent { path: path.into(), at }
    }

    /// Returns who wrote each line of a file, at a version, by default the
    /// current one.
    fn blame(_session, path: impl Into<ClientPath>, at: Option<At>) -> FileBlame {
        FileBlame { path: path.into(), at, range: None }
    }

    /// Returns what differs between two versions of a file, line by line with
    /// the authors. `to`: by default the current content.
    fn diff(_session, path: impl Into<ClientPath>, from: At, to: Option<At>) -> FileDiff {
        FileDiff {
            path: Some(path.into()),
            paths: None,
            from,
            to,
            context: None,
            limit: None,
            cursor: None,
        }
    }

    /// Gives a file the content of a version again, by a guarded write.
    fn restore(_session, path: impl Into<ClientPath>, at: At) -> FileRestore {
        FileRestore { path: path.into(), at }
    }

    /// Takes away what this session changed, and leaves all other authors'
    /// lines (UNDO-1). `dry_run`: only says what would be done.
    fn undo(session, dry_run: bool) -> Undo {
        // A session that asks for it is in the middle of its own turn.
        Undo { session: Some(session), dry_run, now: true, ..Undo::default() }
    }

    /// Takes back an undo, by default the newest.
    fn redo(_session, undo: Option<&str>) -> Redo {
        Redo { undo: undo.map(str::to_owned), dry_run: false }
    }

    /// Writes a file through the daemon, unless it is something else by then
    /// than the session has seen (GUARD-4).
    fn guarded_write(session, path: impl Into<ClientPath>, text: &str) -> FileWrite {
        FileWrite {
            session,
            path: path.into(),
            text: Some(text.into()),
            base64: None,
            base: None,
            force: false,
            require_read: None,
            create_directories: false,
            step: None,
        }
    }

    /// Replaces a text that stands once in a file, guarded likewise.
    fn replace(session, path: impl Into<ClientPath>, old: &str, new: &str) -> FileEdit {
        FileEdit {
            session,
            path: path.into(),
            old_string: old.into(),
            new_string: new.into(),
            replace_all: false,
            force: false,
            step: None,
        }
    }

    /// A text with typographic quotation marks made plain.
    fn normalize_quotes(_session, text: &str) -> QuotesNormalize {
        QuotesNormalize { text: text.into() }
    }

    /// Where a text stands in another, whatever its quotation marks.
    fn match_quotes(_session, needle: &str, haystack: &str) -> QuotesMatch {
        QuotesMatch { needle: needle.into(), haystack: haystack.into() }
    }

    /// Remembers this moment.
    fn checkpoint_create(session, label: Option<&str>, message: Option<&str>, step: Option<u64>)
        -> CheckpointCreate
    {
        CheckpointCreate {
            session,
            label: label.map(str::to_owned),
            message: message.map(str::to_owned),
            step,
        }
    }

    /// Forgets a checkpoint.
    fn checkpoint_delete(session, checkpoint: &str) -> CheckpointDelete {
        CheckpointDelete { session, checkpoint: checkpoint.into() }
    }

    /// Keeps a warning, in place of an earlier one (CHK-2).
    fn warning_store(session, files: Vec<ClientPath>, note: Option<&str>) -> WarningStore {
        WarningStore { session, files, note: note.map(str::to_owned) }
    }

    /// Takes the warning: it is given once (CHK-2).
    fn warning_take(session) -> WarningTake {
        WarningTake { session }
    }

    /// Removes the warnings of all sessions but these and this one.
    fn warning_cleanup(session, live: Vec<SessionId>) -> WarningCleanup {
        WarningCleanup { live: live.into_iter().chain([session]).collect() }
    }

    /// Does this call of a tool repeat an earlier one?
    fn call_check(session, tool: &str, args: Value) -> CallCheck {
        CallCheck { session, tool: tool.into(), args: FreeJson(args), sync: None, verify: None }
    }

    /// Remembers a call, what it answered, and which files that rests on
    /// beside those that the arguments name.
    fn call_record(session, tool: &str, args: Value, result: Value, paths: Option<Vec<ClientPath>>)
        -> CallRecord
    {
        CallRecord {
            session,
            tool: tool.into(),
            args: FreeJson(args),
            result: FreeJson(result),
            paths,
        }
    }

    /// How many calls are kept, and how often they served.
    fn call_stats(session) -> CallStats {
        CallStats { session: Some(session) }
    }

    /// Forgets the calls.
    fn call_clear(session) -> CallClear {
        CallClear { session }
    }

    /// Which tool results may be cut from the context, and which go first.
    fn rank(session, step: u64, max_age: u64, items: Vec<RetentionItem>) -> RetentionRank {
        RetentionRank { session, step, max_age, items }
    }

    /// Keeps a background task, in place of one with the same id.
    fn task_save(session, task: Task) -> TaskSave {
        TaskSave { session, task }
    }

    /// Forgets a background task.
    fn task_remove(session, id: &str) -> TaskRemove {
        TaskRemove { id: id.into(), session: Some(session) }
    }

    /// Forgets the tasks, of all sessions, whose process is gone.
    fn task_cleanup(_session) -> TaskCleanup {
        TaskCleanup {}
    }

    /// Remembers which model answers from now on.
    fn model_record(session, model: &str, provider: &str, mode: &str, message: Option<&str>)
        -> ModelRecord
    {
        ModelRecord {
            session,
            model_id: model.into(),
            provider_id: provider.into(),
            mode: mode.into(),
            message_id: message.map(str::to_owned),
        }
    }

    /// What was saved in this session.
    fn stats(session) -> Stats {
        Stats { session: Some(session) }
    }

    /// Searches files. Give it time: [`crate::blocking::Client::call_within`]
    /// takes the same request with a deadline of its own.
    fn grep(session, search: SearchGrep) -> SearchGrep {
        SearchGrep { session: Some(session), ..search }
    }

    /// Ends the session and removes what it knew and stored.
    fn forget(session) -> SessionClose {
        SessionClose { session, forget: true }
    }
}

lists! {
    /// The session's records of files; `all`: superseded ones too.
    fn files(session, cursor, all: bool) -> FileList, files: FileRecord {
        FileList { session, all, sync: None, verify: None, limit: None, cursor }
    }

    /// Files accessed at most `max_age` of the session's steps ago, the newest
    /// first.
    fn recent(session, cursor, step: u64, max_age: u64) -> FileRecent, files: FileRecord {
        FileRecent { session, step, max_age, sync: None, verify: None, limit: None, cursor }
    }

    /// The checkpoints, the oldest first.
    fn checkpoints(session, cursor) -> CheckpointList, checkpoints: CheckpointRow {
        CheckpointList { session, limit: None, cursor }
    }

    /// What was edited since a checkpoint, and what messages deleted with its
    /// restoring had done (CHK-1). `warn`: keep it as the session's warning.
    fn checkpoint_detect(
        session, cursor, checkpoint: &str, deleted: &[DeletedOperation], warn: bool
    ) -> CheckpointDetect, files: EditedFile {
        CheckpointDetect {
            session,
            checkpoint: Some(checkpoint.into()),
            clock: None,
            time: None,
            paths: None,
            deleted: deleted.to_vec(),
            // It is about all of them, and wanted once.
            store_warning: warn && cursor.is_none(),
            sync: None,
            verify: None,
            limit: None,
            cursor,
        }
    }

    /// The background tasks of the session, with whether they live.
    fn tasks(session, cursor) -> TaskList, tasks: TaskRow {
        TaskList { session: Some(session), limit: None, cursor }
    }

    /// The models that answered, the oldest first.
    fn models(session, cursor) -> ModelList, entries: ModelEntry {
        ModelList { session, limit: None, cursor }
    }
}
