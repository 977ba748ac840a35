//! Requests, one file per family: what each needs, and what it does.

pub(crate) mod audit;
mod calls;
mod changes;
mod checkpoints;
mod commands;
mod commit;
mod editors;
mod edits;
mod files;
mod models;
mod reads;
mod retention;
mod sessions;
mod snapshots;
mod stats;
mod steps;
mod tasks;
mod writes;

use touchmark_proto::daemon::Synced;
use touchmark_proto::events::{Happening, SessionPhase};
use touchmark_proto::writes::QuotesNormalized;
use touchmark_proto::{
    ClientPath, Error, ErrorCode, ErrorData, RelPath, Reply, Request, RequestId, SessionId,
};

use crate::effect::{Answer, Effect};
use crate::engine::Engine;
use crate::live::Obstacle;
use crate::notes::{Note, Notes};
use crate::observe::Scope;
use crate::record::Fact;
use crate::requests::queue::{Pending, Step};
use crate::text::quotes;

pub(crate) use writes::Write;

/// What a request needs before it is looked at.
pub(crate) struct Need {
    /// To stand behind a fence (SYNC-1, ATTR-16).
    pub fence: bool,
    /// To read and hash what it speaks of (SYNC-4).
    pub verify: bool,
}

impl Need {
    pub(crate) fn of(ask: &Request) -> Self {
        let query = |sync: Option<bool>, verify: Option<bool>| Self {
            fence: sync != Some(false),
            verify: verify == Some(true),
        };
        let fenced = Self {
            fence: true,
            verify: false,
        };
        let at_once = Self {
            fence: false,
            verify: false,
        };
        match ask {
            Request::FileRead(ask) => query(ask.sync, ask.verify),
            Request::FileReadText(ask) => query(ask.sync, ask.verify),
            Request::FileStatus(ask) => query(ask.sync, ask.verify),
            Request::FileList(ask) => query(ask.sync, ask.verify),
            Request::FileHistory(ask) => query(ask.sync, ask.verify),
            Request::ModifiedList(ask) => query(ask.sync, ask.verify),
            Request::ModifiedTake(ask) => query(ask.sync, ask.verify),
            Request::FileRecent(ask) => query(ask.sync, ask.verify),
            Request::CheckpointDetect(ask) => query(ask.sync, ask.verify),
            Request::CallCheck(ask) => query(ask.sync, ask.verify),
            Request::Sync(_)
            | Request::SessionOpen(_)
            | Request::SessionClose(_)
            | Request::FileMention(_)
            | Request::EditBegin(_)
            | Request::EditCommit(_)
            | Request::EditAbort(_)
            | Request::EditMark(_)
            | Request::CommandBegin(_)
            | Request::CommandEnd(_)
            | Request::Audit(_)
            | Request::FileWrite(_)
            | Request::FileEdit(_)
            | Request::RecoveryRestore(_)
            | Request::CheckpointCreate(_)
            | Request::CallRecord(_)
            | Request::RetentionRank(_)
            | Request::FileSnapshot(_)
            | Request::FileDetect(_)
            | Request::SearchGrep(_) => fenced,
            Request::Initialize(_)
            | Request::Ping(_)
            | Request::Status(_)
            | Request::Shutdown(_)
            | Request::Subscribe(_)
            | Request::Unsubscribe(_)
            | Request::SessionList(_)
            | Request::SessionCompacted(_)
            | Request::SessionTruncated(_)
            | Request::FileInvalidate(_)
            | Request::FileUntrack(_)
            | Request::ModifiedAck(_)
            | Request::EditorDidOpen(_)
            | Request::EditorDidClose(_)
            | Request::EditorDirty(_)
            | Request::EditorDidSave(_)
            | Request::RecoveryList(_)
            | Request::RecoveryShow(_)
            | Request::RecoveryDelete(_)
            | Request::QuotesNormalize(_)
            | Request::QuotesMatch(_)
            | Request::Stats(_)
            | Request::FileIsStale(_)
            | Request::CheckpointList(_)
            | Request::CheckpointDelete(_)
            | Request::WarningStore(_)
            | Request::WarningTake(_)
            | Request::WarningCleanup(_)
            | Request::CallStats(_)
            | Request::CallClear(_)
            | Request::TaskSave(_)
            | Request::TaskList(_)
            | Request::TaskRemove(_)
            | Request::TaskCleanup(_)
            | Request::ModelRecord(_)
            | Request::ModelList(_)
            | Request::ContentsForget(_)
            | Request::HookClaude(_)
            | Request::HookCodex(_)
            | Request::HookGemini(_)
            | Request::HookCursor(_)
            | Request::HookOpencode(_)
            | Request::HookAck(_) => at_once,
        }
    }
}

/// Whether the shell answers by itself.
pub(crate) fn is_for_the_shell(ask: &Request) -> bool {
    matches!(
        ask,
        Request::Initialize(_)
            | Request::Ping(_)
            | Request::Status(_)
            | Request::Shutdown(_)
            | Request::Subscribe(_)
            | Request::Unsubscribe(_)
            | Request::RecoveryList(_)
            | Request::RecoveryShow(_)
            | Request::RecoveryRestore(_)
            | Request::RecoveryDelete(_)
            | Request::SearchGrep(_)
            | Request::ContentsForget(_)
            | Request::HookClaude(_)
            | Request::HookCodex(_)
            | Request::HookGemini(_)
            | Request::HookCursor(_)
            | Request::HookOpencode(_)
            | Request::HookAck(_)
    )
}

impl Engine {
    /// Paths that a request will track, or speaks of without tracking, and
    /// that nobody watches yet.
    pub(crate) fn paths_to_borrow(&self, ask: &Request) -> Vec<RelPath> {
        let named: Vec<&ClientPath> = match ask {
            Request::FileRead(ask) => vec![&ask.path],
            Request::FileReadText(ask) => vec![&ask.path],
            Request::FileMention(ask) => vec![&ask.path],
            Request::EditMark(ask) => vec![&ask.path],
            Request::FileWrite(ask) => vec![&ask.path],
            Request::FileEdit(ask) => vec![&ask.path],
            Request::EditBegin(ask) => ask.files.iter().map(|file| &file.path).collect(),
            Request::EditCommit(ask) => ask.files.iter().map(|file| &file.path).collect(),
            Request::FileStatus(ask) => ask.paths.iter().flatten().collect(),
            Request::FileSnapshot(ask) => vec![&ask.path],
            Request::FileDetect(ask) => vec![&ask.snapshot.path],
            _ => Vec::new(),
        };
        let mut paths: Vec<RelPath> = named
            .into_iter()
            .filter_map(|path| self.resolve(path).ok())
            .filter(|path| !self.state.paths.contains_key(path))
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// What a request speaks of.
    fn scope_of(&self, ask: &Request) -> Scope {
        let paths = |named: Vec<&ClientPath>| {
            let known = named.into_iter().filter_map(|path| self.resolve(path).ok());
            Scope::Paths(known.collect())
        };
        match ask {
            Request::FileRead(ask) => paths(vec![&ask.path]),
            Request::FileReadText(ask) => paths(vec![&ask.path]),
            Request::FileMention(ask) => paths(vec![&ask.path]),
            Request::FileHistory(ask) => paths(vec![&ask.path]),
            Request::EditMark(ask) => paths(vec![&ask.path]),
            Request::EditBegin(ask) => paths(ask.files.iter().map(|file| &file.path).collect()),
            Request::FileStatus(ask) => match &ask.paths {
                Some(named) => paths(named.iter().collect()),
                None => Scope::Session(ask.session.clone()),
            },
            Request::FileSnapshot(ask) => paths(vec![&ask.path]),
            Request::FileDetect(ask) => paths(vec![&ask.snapshot.path]),
            Request::FileList(ask) => Scope::Session(ask.session.clone()),
            Request::FileRecent(ask) => Scope::Session(ask.session.clone()),
            Request::SessionOpen(ask) => Scope::Session(ask.session.clone()),
            Request::ModifiedTake(ask) => Scope::Session(ask.session.clone()),
            _ => Scope::Everything,
        }
    }

    /// Lets a request take effect.
    pub(crate) fn answer(
        &mut self,
        request: RequestId,
        pending: &mut Pending,
        ask: Request,
    ) -> Step {
        // Whoever asks as of now is told of absences as absences.
        if pending.fence.is_some() {
            let scope = self.scope_of(&ask);
            self.settle_for(&scope);
        }
        if let Some(error) = self.over_limit(pending, &ask) {
            return Step::Done(Err(error));
        }
        match ask {
            Request::Initialize(_)
            | Request::Ping(_)
            | Request::Status(_)
            | Request::Shutdown(_)
            | Request::Subscribe(_)
            | Request::Unsubscribe(_)
            | Request::RecoveryList(_)
            | Request::RecoveryShow(_)
            | Request::RecoveryRestore(_)
            | Request::RecoveryDelete(_)
            | Request::SearchGrep(_)
            | Request::ContentsForget(_)
            | Request::HookClaude(_)
            | Request::HookCodex(_)
            | Request::HookGemini(_)
            | Request::HookCursor(_)
            | Request::HookOpencode(_)
            | Request::HookAck(_) => match pending.connection {
                Some(connection) => Step::Passed(Effect::Host {
                    request,
                    connection,
                    ask,
                }),
                None => Step::Done(Err(Error::new(
                    ErrorCode::InternalError,
                    "a request without a connection",
                ))),
            },
            Request::Sync(_) => done(Reply::Sync(Synced {
                clock: self.state.clock(self.state.n),
            })),
            Request::SessionOpen(ask) => self.session_open(&ask),
            Request::SessionClose(ask) => self.session_close(&ask),
            Request::SessionList(ask) => self.session_list(&ask),
            Request::SessionCompacted(ask) => self.session_compacted(&ask),
            Request::SessionTruncated(ask) => self.session_truncated(&ask),
            Request::FileRead(ask) => self.file_read(pending, &ask),
            Request::FileReadText(ask) => self.file_read_text(pending, &ask),
            Request::FileMention(ask) => self.file_mention(pending, &ask),
            Request::FileInvalidate(ask) => self.file_invalidate(&ask),
            Request::FileStatus(ask) => self.file_status(pending, &ask),
            Request::FileList(ask) => self.file_list(pending, &ask),
            Request::FileHistory(ask) => self.file_history(request, pending, &ask),
            Request::FileUntrack(ask) => self.file_untrack(&ask),
            Request::EditBegin(ask) => self.edit_begin(pending, &ask),
            Request::EditCommit(ask) => self.edit_commit(pending, &ask),
            Request::EditAbort(ask) => self.edit_abort(&ask),
            Request::EditMark(ask) => self.edit_mark(pending, &ask),
            Request::FileWrite(ask) => self.file_write(pending, &ask),
            Request::FileEdit(ask) => self.file_edit(pending, &ask),
            Request::QuotesNormalize(ask) => done(Reply::QuotesNormalize(QuotesNormalized {
                text: quotes::normalize(&ask.text),
            })),
            Request::QuotesMatch(ask) => {
                done(Reply::QuotesMatch(quotes::find(&ask.needle, &ask.haystack)))
            }
            Request::ModifiedList(ask) => self.modified_list(request, pending, &ask),
            Request::ModifiedTake(ask) => self.modified_take(pending, &ask),
            Request::ModifiedAck(ask) => self.modified_ack(&ask),
            Request::EditorDidOpen(ask) => match self.resolve(&ask.path) {
                Ok(_) => done(Reply::EditorDidOpen(touchmark_proto::daemon::Done {})),
                Err(error) => Step::Done(Err(error)),
            },
            Request::EditorDidClose(ask) => self.editor_did_close(pending, &ask),
            Request::EditorDirty(ask) => self.editor_dirty(pending, &ask),
            Request::EditorDidSave(ask) => self.editor_did_save(pending, &ask),
            Request::CommandBegin(ask) => self.command_begin(pending, &ask),
            Request::CommandEnd(ask) => self.command_end(&ask),
            Request::Audit(_) => self.audit(request, pending),
            Request::CheckpointCreate(ask) => self.checkpoint_create(&ask),
            Request::CheckpointList(ask) => self.checkpoint_list(&ask),
            Request::CheckpointDelete(ask) => self.checkpoint_delete(&ask),
            Request::CheckpointDetect(ask) => self.checkpoint_detect(pending, &ask),
            Request::WarningStore(ask) => self.warning_store(&ask),
            Request::WarningTake(ask) => self.warning_take(&ask),
            Request::WarningCleanup(ask) => self.warning_cleanup(&ask),
            Request::CallCheck(ask) => self.call_check(pending, &ask),
            Request::CallRecord(ask) => self.call_record(pending, &ask),
            Request::CallStats(ask) => self.call_stats(&ask),
            Request::CallClear(ask) => self.call_clear(&ask),
            Request::RetentionRank(ask) => self.retention_rank(pending, &ask),
            Request::TaskSave(ask) => self.task_save(pending, &ask),
            Request::TaskList(ask) => self.task_list(pending, &ask),
            Request::TaskRemove(ask) => self.task_remove(&ask),
            Request::TaskCleanup(ask) => self.task_cleanup(pending, &ask),
            Request::ModelRecord(ask) => self.model_record(&ask),
            Request::ModelList(ask) => self.model_list(&ask),
            Request::FileSnapshot(ask) => self.file_snapshot(pending, &ask),
            Request::FileDetect(ask) => self.file_detect(pending, &ask),
            Request::FileRecent(ask) => self.file_recent(pending, &ask),
            Request::FileIsStale(ask) => self.file_is_stale(&ask),
            Request::Stats(ask) => self.stats(&ask),
        }
    }

    /// Opens a session that a request names, if it is not open.
    pub(crate) fn ensure_session(&mut self, session: &SessionId) {
        if !self
            .state
            .sessions
            .get(session)
            .is_some_and(|known| known.open)
        {
            self.record(Fact::SessionOpened {
                session: session.clone(),
                agent: None,
                parent: None,
                pid: None,
            });
            self.publish(
                Happening::Session {
                    session: session.clone(),
                    phase: SessionPhase::Opened,
                },
                None,
            );
        }
    }

    /// What a session remembers beside files.
    pub(crate) fn notes(&self, session: &SessionId) -> Option<&Notes> {
        Some(&self.state.sessions.get(session)?.notes)
    }

    /// Has a session remember something.
    pub(crate) fn note(&mut self, session: &SessionId, note: Note) {
        self.record(Fact::Noted {
            session: session.clone(),
            note,
        });
    }

    /// The error that a path cannot be used for, if it cannot: it leads out,
    /// is no file, or cannot be read.
    pub(crate) fn unusable(&self, path: &RelPath, pending: &Pending) -> Option<Error> {
        let obstacle = match self.state.paths.contains_key(path) {
            true => self.live.get(path).and_then(|live| live.obstacle.clone()),
            false => pending
                .found
                .get(path)
                .and_then(|outcome| Obstacle::of(&outcome.found)),
        }?;
        let (code, message, file_type) = match obstacle {
            Obstacle::Unstable => return None,
            Obstacle::Unreadable(cause) => (
                ErrorCode::Unreadable,
                format!("{} cannot be read: {cause}", show(path)),
                None,
            ),
            Obstacle::NotAFile(file_type) => (
                ErrorCode::NotAFile,
                format!("{} is a {file_type}", show(path)),
                Some(file_type.to_owned()),
            ),
            Obstacle::Outside => (
                ErrorCode::OutsideWorkspace,
                format!("{} is a link that leads out of the workspace", show(path)),
                None,
            ),
        };
        Some(Error::new(code, message).with(ErrorData {
            path: Some(path.clone()),
            file_type,
            ..ErrorData::default()
        }))
    }

    /// Has a path's log begin, if it has not: with what was just read.
    pub(crate) fn begin_log(&mut self, path: &RelPath, pending: &Pending) {
        if self.state.paths.contains_key(path) {
            return;
        }
        let held = self.current(path, pending.found.get(path)).held;
        self.watch(path);
        self.record(Fact::Baseline {
            // By the name that is watched, which is stored already.
            path: self.watched.get(path).unwrap_or(path).clone(),
            held,
        });
        // What was written until now is in the baseline.
        if let Some(live) = self.live.get_mut(path) {
            live.closes = 0;
            live.written_closes = 0;
            live.wrote = false;
            live.gap = false;
            // It has a log of its own and is no copy any more.
            live.copy_of = None;
            live.copy = None;
        }
        let found = pending.found.get(path).map(|outcome| &outcome.found);
        if let Some(crate::input::Found::File(content)) = found {
            self.live.entry(path.clone()).or_default().stamp = Some(content.stamp);
            self.note_stamp(path, *content);
        }
        // A file that cannot be read is not absent (LOSS-4).
        if let Some(obstacle) = found.and_then(Obstacle::of) {
            let unstable = obstacle == Obstacle::Unstable;
            self.live.entry(path.clone()).or_default().obstacle = Some(obstacle);
            if unstable {
                self.retry(path);
            }
        }
    }
}

/// It has taken effect.
pub(crate) fn done(reply: Reply) -> Step {
    Step::Done(Ok(Answer::from(reply)))
}

/// A path for a person's or a model's eyes: control characters escaped,
/// length capped (SEC-4).
pub(crate) fn show(path: &RelPath) -> String {
    show_text(&path.to_string_lossy())
}

/// Any text from outside, the same way.
pub(crate) fn show_text(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(300)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().count() > 300 {
        shown.push('…');
    }
    shown
}

/// An author for a person's or a model's eyes.
pub(crate) fn show_authors(authors: &[touchmark_proto::Author]) -> String {
    use touchmark_proto::AuthorKind;
    let names: Vec<String> = authors
        .iter()
        .map(|author| match (author.kind, &author.session) {
            (AuthorKind::Agent, Some(session)) => {
                let name: String = session
                    .as_str()
                    .chars()
                    .take(80)
                    .map(|c| if c.is_control() { '\u{fffd}' } else { c })
                    .collect();
                format!("agent {name}")
            }
            (AuthorKind::Agent, None) => "an agent".to_owned(),
            (AuthorKind::User, _) => "the user".to_owned(),
            (AuthorKind::Unknown, _) => "somebody unknown".to_owned(),
        })
        .collect();
    names.join(", ")
}

/// How many rows the cursor of a list by number means to have been told.
pub(crate) fn number_cursor(cursor: Option<&str>) -> Result<u64, Error> {
    cursor.map_or(Ok(0), |text| {
        text.parse()
            .map_err(|_| Error::invalid("`cursor` is not one that an earlier answer gave"))
    })
}

/// The path that the cursor of a list by path means.
pub(crate) fn path_cursor(cursor: Option<&str>) -> Result<Option<RelPath>, Error> {
    cursor.map(crate::cursor::read_path).transpose()
}
