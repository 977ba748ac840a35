//! The requests of a session as methods: single requests and lists. This source
//! is compiled twice, like `session.rs`.

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

/// Defines a method for each request. Its documentation lists the errors of the
/// request's row in the protocol's table.
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
                    /// # Errors
                    #[doc = touchmark_proto::errors_of!($method)]
                    /// The connection's errors are those of
                    /// [`Client::call`](super::Client::call).
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

/// Defines a method for each list. It sends requests until the list is complete
/// (LIM-2).
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
                    /// # Errors
                    #[doc = touchmark_proto::errors_of!($method)]
                    /// The connection's errors are those of
                    /// [`Client::call`](super::Client::call).
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
    /// Records that a message named a file. The file is tracked from then on.
    fn mention(session, path: impl Into<ClientPath>) -> FileMention {
        FileMention { session, path: path.into(), hash: None, range: None, step: None, missed: false }
    }

    /// Forgets what the session has read of a file, or of all files if `path`
    /// is `None`. The next read returns the full text.
    fn invalidate(session, path: Option<ClientPath>) -> FileInvalidate {
        FileInvalidate { session, path }
    }

    /// Stops tracking a file for the session.
    fn untrack(session, path: impl Into<ClientPath>) -> FileUntrack {
        FileUntrack { session, path: path.into() }
    }

    /// Reports that the context was compacted: what the session read is no
    /// longer resident, except for the files in `keep`.
    fn compacted(session, keep: Vec<ClientPath>) -> SessionCompacted {
        SessionCompacted { session, keep }
    }

    /// Reports that parts of the context were cut.
    fn truncated(session, items: Vec<Truncated>) -> SessionTruncated {
        SessionTruncated { session, items }
    }

    /// Checks whether the session last accessed a file more than `max_age`
    /// steps ago. This does not depend on the file's content.
    fn is_stale(session, path: impl Into<ClientPath>, step: u64, max_age: u64) -> FileIsStale {
        FileIsStale { session, path: path.into(), step, max_age }
    }

    /// Returns the current state of a file, to compare with later.
    fn snapshot(_session, path: impl Into<ClientPath>) -> FileSnapshot {
        FileSnapshot { path: path.into() }
    }

    /// Compares a file with a snapshot of it.
    fn detect(_session, snapshot: Snapshot) -> FileDetect {
        FileDetect { snapshot }
    }

    /// Returns a file's content at a version; default: the current one.
    fn content(_session, path: impl Into<ClientPath>, at: Option<At>) -> FileContent {
        FileContent { path: path.into(), at }
    }

    /// Returns the author of each line of a file at a version; default: the
    /// current one.
    fn blame(_session, path: impl Into<ClientPath>, at: Option<At>) -> FileBlame {
        FileBlame { path: path.into(), at, range: None }
    }

    /// Returns the differences between two versions of a file, with the author
    /// of each line. `to` defaults to the current content.
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

    /// Restores a file to a version by a guarded write.
    fn restore(_session, path: impl Into<ClientPath>, at: At) -> FileRestore {
        FileRestore { path: path.into(), at }
    }

    /// Undoes this session's changes and leaves the lines of all other authors
    /// as they are (UNDO-1). `dry_run` reports what would be done without doing
    /// it.
    fn undo(session, dry_run: bool) -> Undo {
        // The session that calls this is usually in its own turn, so `now` is
        // set (UNDO-3).
        Undo { session: Some(session), dry_run, now: true, ..Undo::default() }
    }

    /// Redoes what an undo has undone; default: the newest undo.
    fn redo(_session, undo: Option<&str>) -> Redo {
        Redo { undo: undo.map(str::to_owned), dry_run: false }
    }

    /// Writes a file through the daemon, unless its content differs from what
    /// the session saw last (GUARD-4).
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

    /// Replaces a text that occurs exactly once in a file, unless the file's
    /// content differs from what the session saw last (GUARD-4).
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

    /// Returns a text with straight quotation marks.
    fn normalize_quotes(_session, text: &str) -> QuotesNormalize {
        QuotesNormalize { text: text.into() }
    }

    /// Searches a text, ignoring the kind of quotation marks.
    fn match_quotes(_session, needle: &str, haystack: &str) -> QuotesMatch {
        QuotesMatch { needle: needle.into(), haystack: haystack.into() }
    }

    /// Creates a checkpoint at the current moment.
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

    /// Deletes a checkpoint.
    fn checkpoint_delete(session, checkpoint: &str) -> CheckpointDelete {
        CheckpointDelete { session, checkpoint: checkpoint.into() }
    }

    /// Stores a warning. It replaces an earlier one (CHK-2).
    fn warning_store(session, files: Vec<ClientPath>, note: Option<&str>) -> WarningStore {
        WarningStore { session, files, note: note.map(str::to_owned) }
    }

    /// Returns the warning and removes it (CHK-2).
    fn warning_take(session) -> WarningTake {
        WarningTake { session }
    }

    /// Removes the warnings of all sessions except this one and those in
    /// `live`.
    fn warning_cleanup(session, live: Vec<SessionId>) -> WarningCleanup {
        WarningCleanup { live: live.into_iter().chain([session]).collect() }
    }

    /// Checks whether a tool call repeats an earlier call.
    fn call_check(session, tool: &str, args: Value) -> CallCheck {
        CallCheck { session, tool: tool.into(), args: FreeJson(args), sync: None, verify: None }
    }

    /// Stores a tool call, its result, and the files that the result depends on
    /// in addition to those that the arguments name.
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

    /// Returns counts of stored calls and of checks.
    fn call_stats(session) -> CallStats {
        CallStats { session: Some(session) }
    }

    /// Removes the stored calls.
    fn call_clear(session) -> CallClear {
        CallClear { session }
    }

    /// Ranks tool results by how much they are worth keeping in the context.
    fn rank(session, step: u64, max_age: u64, items: Vec<RetentionItem>) -> RetentionRank {
        RetentionRank { session, step, max_age, items }
    }

    /// Stores a background task. It replaces a task with the same id.
    fn task_save(session, task: Task) -> TaskSave {
        TaskSave { session, task }
    }

    /// Removes a background task.
    fn task_remove(session, id: &str) -> TaskRemove {
        TaskRemove { id: id.into(), session: Some(session) }
    }

    /// Removes the tasks of all sessions whose process no longer exists.
    fn task_cleanup(_session) -> TaskCleanup {
        TaskCleanup {}
    }

    /// Records the model that answers from now on.
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

    /// Returns how much work touchmark has saved in this session.
    fn stats(session) -> Stats {
        Stats { session: Some(session) }
    }

    /// Searches files. A search may need more than the default deadline;
    /// [`crate::blocking::Client::call_within`] takes the same request with its
    /// own deadline.
    fn grep(session, search: SearchGrep) -> SearchGrep {
        SearchGrep { session: Some(session), ..search }
    }

    /// Closes the session and removes what it knew and stored.
    fn forget(session) -> SessionClose {
        SessionClose { session, forget: true }
    }
}

lists! {
    /// Returns the session's records of files. `all` includes superseded
    /// records.
    fn files(session, cursor, all: bool) -> FileList, files: FileRecord {
        FileList { session, all, sync: None, verify: None, limit: None, cursor }
    }

    /// Returns the files accessed at most `max_age` steps ago, newest first.
    fn recent(session, cursor, step: u64, max_age: u64) -> FileRecent, files: FileRecord {
        FileRecent { session, step, max_age, sync: None, verify: None, limit: None, cursor }
    }

    /// Returns the checkpoints, oldest first.
    fn checkpoints(session, cursor) -> CheckpointList, checkpoints: CheckpointRow {
        CheckpointList { session, limit: None, cursor }
    }

    /// Returns the files that were edited since a checkpoint, and the files of
    /// the operations in `deleted` (CHK-1). `warn` stores the result as the
    /// session's warning.
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
            // The warning covers all pages, so only the first request stores
            // it.
            store_warning: warn && cursor.is_none(),
            sync: None,
            verify: None,
            limit: None,
            cursor,
        }
    }

    /// Returns the session's background tasks, with whether their processes
    /// run.
    fn tasks(session, cursor) -> TaskList, tasks: TaskRow {
        TaskList { session: Some(session), limit: None, cursor }
    }

    /// Returns the models that the session used, oldest first.
    fn models(session, cursor) -> ModelList, entries: ModelEntry {
        ModelList { session, limit: None, cursor }
    }
}
