//! The requests of a session as methods: single requests and lists. This source
//! is compiled twice, like `session.rs`.

use serde_json::Value;
use touchmark_proto::activity::ActivityList;
use touchmark_proto::at::At;
use touchmark_proto::calls::{CallCheck, CallClear, CallRecord, CallStats};
use touchmark_proto::changes::{ModifiedAck, ModifiedList};
use touchmark_proto::checkpoints::{
    CheckpointCreate, CheckpointDelete, CheckpointDetect, CheckpointList, CheckpointRow,
    DeletedOperation, EditedFile, WarningCleanup, WarningStore, WarningTake,
};
use touchmark_proto::commands::{CommandBegin, CommandEnd, CommandList, CommandScope};
use touchmark_proto::daemon::Stats;
use touchmark_proto::edits::EditMark;
use touchmark_proto::files::{
    FileDetect, FileInvalidate, FileIsStale, FileList, FileMention, FileRecent, FileRecord,
    FileSnapshot, FileUntrack, Snapshot,
};
use touchmark_proto::history::{FileBlame, FileContent, FileDiff, FileRestore};
use touchmark_proto::models::{ModelEntry, ModelList, ModelRecord};
use touchmark_proto::retention::{RetentionItem, RetentionRank};
use touchmark_proto::review::ReviewList;
use touchmark_proto::search::SearchGrep;
use touchmark_proto::sessions::{SessionClose, SessionCompacted, SessionTruncated, Truncated};
use touchmark_proto::survival::SurvivalList;
use touchmark_proto::tasks::{Task, TaskCleanup, TaskList, TaskRemove, TaskRow, TaskSave};
use touchmark_proto::undo::{Redo, Undo};
use touchmark_proto::writes::{FileEdit, FileWrite, QuotesMatch, QuotesNormalize};
use touchmark_proto::{Change, ClientPath, Clock, FreeJson, Method, SessionId};

use super::session::Session;
use crate::error::Result;

/// Returns a request with these fields set. They are `Option`s, which the
/// setters do not take.
macro_rules! with {
    (@ $ask:ident $field:ident) => {
        $ask.$field = $field
    };
    (@ $ask:ident $field:ident $value:expr) => {
        $ask.$field = $value
    };
    ($request:expr $(, $field:ident $(: $value:expr)?)* $(,)?) => {{
        let mut ask = $request;
        $(with!(@ ask $field $($value)?);)*
        ask
    }};
}

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
        FileMention::new(session, path)
    }

    /// Forgets what the session has read of a file, or of all files if `path`
    /// is `None`. The next read returns the full text.
    fn invalidate(session, path: Option<ClientPath>) -> FileInvalidate {
        with!(FileInvalidate::new(session), path)
    }

    /// Stops tracking a file for the session.
    fn untrack(session, path: impl Into<ClientPath>) -> FileUntrack {
        FileUntrack::new(session, path)
    }

    /// Reports that the context was compacted: what the session read is no
    /// longer resident, except for the files in `keep`.
    fn compacted(session, keep: Vec<ClientPath>) -> SessionCompacted {
        SessionCompacted::new(session).keep(keep)
    }

    /// Reports that parts of the context were cut.
    fn truncated(session, items: Vec<Truncated>) -> SessionTruncated {
        SessionTruncated::new(session, items)
    }

    /// Sets a one-call mark: the next closed change of the file is the session's
    /// (ATTR-8).
    fn mark(session, path: impl Into<ClientPath>) -> EditMark {
        EditMark::new(session, path)
    }

    /// Opens a command window: changes until its end are the session's, unless
    /// better evidence names another author (ATTR-6). It ends with this
    /// connection at the latest. `label` is the command line, for people;
    /// `scope` defaults to the tracked files.
    fn command_begin(session, label: &str, scope: Option<CommandScope>) -> CommandBegin {
        with!(CommandBegin::new(session).label(label).bind(true), scope)
    }

    /// Ends a command window and returns what the command changed. `exit` is
    /// the command's exit code, if it is known.
    fn command_end(_session, command: &str, exit: Option<i32>) -> CommandEnd {
        with!(CommandEnd::new().command(command), exit)
    }

    /// Returns the session's newest commands.
    fn commands(session) -> CommandList {
        CommandList::new().session(session)
    }

    /// Confirms that changes have arrived: those that a
    /// [`ModifiedTake`](touchmark_proto::changes::ModifiedTake) with
    /// [`Ack::Explicit`](touchmark_proto::changes::Ack::Explicit) returned with
    /// this cursor.
    fn modified_ack(session, cursor: &str) -> ModifiedAck {
        ModifiedAck::new(session, cursor)
    }

    /// Returns what the session did that is no version: reads, refused edits,
    /// versions that it overwrote unseen.
    fn activity(session, ask: ActivityList) -> ActivityList {
        ask.session(session)
    }

    /// Returns the session's changes that were neither kept nor undone yet.
    fn review(session) -> ReviewList {
        ReviewList::new().session(session)
    }

    /// Checks whether the session last accessed a file more than `max_age`
    /// steps ago. This does not depend on the file's content.
    fn is_stale(session, path: impl Into<ClientPath>, step: u64, max_age: u64) -> FileIsStale {
        FileIsStale::new(session, path, step, max_age)
    }

    /// Returns the current state of a file, to compare with later.
    fn snapshot(_session, path: impl Into<ClientPath>) -> FileSnapshot {
        FileSnapshot::new(path)
    }

    /// Compares a file with a snapshot of it.
    fn detect(_session, snapshot: Snapshot) -> FileDetect {
        FileDetect::new(snapshot)
    }

    /// Returns a file's content at a version; default: the current one.
    fn content(_session, path: impl Into<ClientPath>, at: Option<At>) -> FileContent {
        with!(FileContent::new(path), at)
    }

    /// Returns the author of each line of a file at a version; default: the
    /// current one.
    fn blame(_session, path: impl Into<ClientPath>, at: Option<At>) -> FileBlame {
        with!(FileBlame::new(path), at)
    }

    /// Returns the differences between two versions of a file, with the author
    /// of each line. `to` defaults to the current content.
    fn diff(_session, path: impl Into<ClientPath>, from: At, to: Option<At>) -> FileDiff {
        with!(FileDiff::new(from).path(path), to)
    }

    /// Restores a file to a version by a guarded write.
    fn restore(_session, path: impl Into<ClientPath>, at: At) -> FileRestore {
        FileRestore::new(path, at)
    }

    /// Undoes this session's changes and leaves the lines of all other authors
    /// as they are (UNDO-1). `dry_run` reports what would be done without doing
    /// it.
    fn undo(session, dry_run: bool) -> Undo {
        // The session that calls this is usually in its own turn, so `now` is
        // set (UNDO-3).
        Undo::new().session(session).dry_run(dry_run).now(true)
    }

    /// Redoes what an undo has undone; default: the newest undo.
    fn redo(_session, undo: Option<&str>) -> Redo {
        with!(Redo::new(), undo: undo.map(str::to_owned))
    }

    /// Writes a file through the daemon, unless its content differs from what
    /// the session saw last (GUARD-4).
    fn guarded_write(session, path: impl Into<ClientPath>, text: &str) -> FileWrite {
        FileWrite::new(session, path).text(text)
    }

    /// Replaces a text that occurs exactly once in a file, unless the file's
    /// content differs from what the session saw last (GUARD-4).
    fn replace(session, path: impl Into<ClientPath>, old: &str, new: &str) -> FileEdit {
        FileEdit::new(session, path, old, new)
    }

    /// Returns a text with straight quotation marks.
    fn normalize_quotes(_session, text: &str) -> QuotesNormalize {
        QuotesNormalize::new(text)
    }

    /// Searches a text, ignoring the kind of quotation marks.
    fn match_quotes(_session, needle: &str, haystack: &str) -> QuotesMatch {
        QuotesMatch::new(needle, haystack)
    }

    /// Creates a checkpoint at the current moment.
    fn checkpoint_create(session, label: Option<&str>, message: Option<&str>, step: Option<u64>)
        -> CheckpointCreate
    {
        with!(
            CheckpointCreate::new(session),
            label: label.map(str::to_owned),
            message: message.map(str::to_owned),
            step,
        )
    }

    /// Deletes a checkpoint.
    fn checkpoint_delete(session, checkpoint: &str) -> CheckpointDelete {
        CheckpointDelete::new(session, checkpoint)
    }

    /// Stores a warning. It replaces an earlier one (CHK-2).
    fn warning_store(session, files: Vec<ClientPath>, note: Option<&str>) -> WarningStore {
        with!(WarningStore::new(session, files), note: note.map(str::to_owned))
    }

    /// Returns the warning and removes it (CHK-2).
    fn warning_take(session) -> WarningTake {
        WarningTake::new(session)
    }

    /// Removes the warnings of all sessions except this one and those in
    /// `live`.
    fn warning_cleanup(session, live: Vec<SessionId>) -> WarningCleanup {
        WarningCleanup::new(live.into_iter().chain([session]).collect())
    }

    /// Checks whether a tool call repeats an earlier call.
    fn call_check(session, tool: &str, args: Value) -> CallCheck {
        CallCheck::new(session, tool).args(FreeJson(args))
    }

    /// Stores a tool call, its result, and the files that the result depends on
    /// in addition to those that the arguments name.
    fn call_record(session, tool: &str, args: Value, result: Value, paths: Option<Vec<ClientPath>>)
        -> CallRecord
    {
        with!(
            CallRecord::new(session, tool).args(FreeJson(args)).result(FreeJson(result)),
            paths,
        )
    }

    /// Returns counts of stored calls and of checks.
    fn call_stats(session) -> CallStats {
        CallStats::new().session(session)
    }

    /// Removes the stored calls.
    fn call_clear(session) -> CallClear {
        CallClear::new(session)
    }

    /// Ranks tool results by how much they are worth keeping in the context.
    fn rank(session, step: u64, max_age: u64, items: Vec<RetentionItem>) -> RetentionRank {
        RetentionRank::new(session, step, max_age, items)
    }

    /// Stores a background task. It replaces a task with the same id.
    fn task_save(session, task: Task) -> TaskSave {
        TaskSave::new(session, task)
    }

    /// Removes a background task.
    fn task_remove(session, id: &str) -> TaskRemove {
        TaskRemove::new(id).session(session)
    }

    /// Removes the tasks of all sessions whose process no longer exists.
    fn task_cleanup(_session) -> TaskCleanup {
        TaskCleanup::new()
    }

    /// Records the model that answers from now on.
    fn model_record(session, model: &str, provider: &str, mode: &str, message: Option<&str>)
        -> ModelRecord
    {
        with!(
            ModelRecord::new(session, model, provider, mode),
            message_id: message.map(str::to_owned),
        )
    }

    /// Returns how many of the lines that the session wrote are still in the
    /// files (SURV).
    fn survival(session) -> SurvivalList {
        SurvivalList::new().session(session)
    }

    /// Returns how much work touchmark has saved in this session.
    fn stats(session) -> Stats {
        Stats::new().session(session)
    }

    /// Searches files. A search may need more than the default deadline;
    /// [`crate::blocking::Client::call_within`] takes the same request with its
    /// own deadline.
    fn grep(session, search: SearchGrep) -> SearchGrep {
        search.session(session)
    }

    /// Closes the session and removes what it knew and stored.
    fn forget(session) -> SessionClose {
        SessionClose::new(session).forget(true)
    }
}

lists! {
    /// Returns the session's records of files. `all` includes superseded
    /// records.
    fn files(session, cursor, all: bool) -> FileList, files: FileRecord {
        with!(FileList::new(session).all(all), cursor)
    }

    /// Returns the files accessed at most `max_age` steps ago, newest first.
    fn recent(session, cursor, step: u64, max_age: u64) -> FileRecent, files: FileRecord {
        with!(FileRecent::new(session, step, max_age), cursor)
    }

    /// Returns what others have changed, and does not mark it as delivered.
    /// `since`: only what was changed after this clock.
    fn modified(session, cursor, since: Option<Clock>) -> ModifiedList, changes: Change {
        with!(ModifiedList::new().session(session), since, cursor)
    }

    /// Returns the checkpoints, oldest first.
    fn checkpoints(session, cursor) -> CheckpointList, checkpoints: CheckpointRow {
        with!(CheckpointList::new(session), cursor)
    }

    /// Returns the files that were edited since a checkpoint, and the files of
    /// the operations in `deleted` (CHK-1). `warn` stores the result as the
    /// session's warning.
    fn checkpoint_detect(
        session, cursor, checkpoint: &str, deleted: &[DeletedOperation], warn: bool
    ) -> CheckpointDetect, files: EditedFile {
        with!(
            CheckpointDetect::new(session)
                .checkpoint(checkpoint)
                .deleted(deleted.to_vec())
                // The warning covers all pages, so only the first request
                // stores it.
                .store_warning(warn && cursor.is_none()),
            cursor,
        )
    }

    /// Returns the session's background tasks, with whether their processes
    /// run.
    fn tasks(session, cursor) -> TaskList, tasks: TaskRow {
        with!(TaskList::new().session(session), cursor)
    }

    /// Returns the models that the session used, oldest first.
    fn models(session, cursor) -> ModelList, entries: ModelEntry {
        with!(ModelList::new(session), cursor)
    }
}
