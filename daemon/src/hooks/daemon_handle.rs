//! How a hook's rules make requests to the daemon: as a client inside it,
//! through the loop's channel.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use touchmark_engine::Fact;
use touchmark_engine::session_memory::Note;
use touchmark_proto::files::FileStatus;
use touchmark_proto::{
    ClientPath, ConnectionId, Error, FileState, Hash, LineCounts, Method, Millis, Reply, Request,
    SessionId, native,
};

use super::memory::Memory;
use super::notice;
use crate::config::{Gate, Unsaved};
use crate::event::Event;
use crate::inside::Inside;
use crate::store::{Reader, StoreError};
use crate::system::clock;
use crate::worktrees::Worktrees;

/// A question of a hook's rules to the loop.
#[derive(Debug)]
pub(crate) enum Consult {
    /// A request like any client's.
    Ask {
        /// The connection on whose behalf it is made.
        connection: ConnectionId,
        /// The request.
        ask: Request,
        /// The time after which the answer is not needed; `None`: never.
        until: Option<Millis>,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<Reply, Error>>,
    },
    /// Requests the recorded content of a tracked file: `None` if it is not
    /// tracked, `Some(None)` if there is no file.
    Tracked {
        /// The file.
        path: touchmark_proto::RelPath,
        /// Where the answer goes.
        answer: oneshot::Sender<Option<Option<Hash>>>,
    },
    /// Requests the state of a session.
    Standing {
        /// The session.
        session: SessionId,
        /// Where the answer goes.
        answer: oneshot::Sender<Standing>,
    },
    /// Ends a command window. The changes in it are reported by
    /// `modified/take`.
    EndWindow(String),
    /// Reports when the first process of a window's command began.
    CommandBegan(String, Millis),
    /// Ends the window of a command that never ran: it has claimed nothing.
    WithdrawWindow(String),
    /// Compares the workspace's files by stat, before the first command has to
    /// wait for it (SCOPE-5).
    LookAround,
    /// Adds what one session knows to another one, which has it in its context
    /// as well.
    Inherit {
        /// The session that gets the knowledge.
        session: SessionId,
        /// The session that has the knowledge.
        from: SessionId,
        /// Whether the session `from` is over.
        over: bool,
    },
    /// Counts a hook of this session that had to let its agent continue without
    /// an answer.
    Unanswered(SessionId),
    /// Stores a note for this session.
    Noted(SessionId, Note),
    /// Records results of the shell ([`Fact::is_outcome`]).
    Outcome(Vec<Fact>),
    /// Counts a hook's event that was not understood, for this session if it is
    /// known.
    NotUnderstood(Option<SessionId>),
    /// Waits until it is known of all recorded versions whether git brought them
    /// (HIST-8).
    Looked {
        /// Where the answer goes.
        answer: oneshot::Sender<()>,
    },
    /// Requests a connection to the log and the stored contents.
    Log {
        /// Where the answer goes.
        answer: oneshot::Sender<Result<Reader, StoreError>>,
    },
    /// Requests a content, if it is stored.
    Content {
        /// The content's hash.
        hash: Hash,
        /// Where the answer goes.
        answer: oneshot::Sender<Option<Arc<[u8]>>>,
    },
    /// Requests the number of lines that differ between two contents, if both
    /// are stored.
    Lines {
        /// The older content.
        old: Hash,
        /// The newer content.
        new: Hash,
        /// Where the answer goes.
        answer: oneshot::Sender<Option<LineCounts>>,
    },
}

/// The state of a session before an event takes effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// Whether the session is known.
    pub(crate) known: bool,
    /// Whether the session is open.
    pub(crate) open: bool,
    /// The ids of calls whose edits are open.
    pub(crate) edits: Vec<String>,
    /// The command windows that are still open: the id of the call, and the id
    /// of the window.
    pub(crate) windows: Vec<(String, String)>,
    /// The number of checkpoints that are stored for the session.
    pub(crate) checkpoints: usize,
    /// The oldest checkpoint; `None` if there is none.
    pub(crate) oldest_checkpoint: Option<String>,
    /// The message of the newest checkpoint; `None` if there is none.
    pub(crate) last_message: Option<String>,
}

/// The configuration for hooks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// `hooks.replace_repeats`.
    pub(crate) replace_repeats: bool,
    /// `hooks.gate`, or the agent's entry in `hooks.gates`.
    pub(crate) gate: Gate,
    /// `hooks.unsaved`, as far as the agent supports it.
    pub(crate) unsaved: Unsaved,
    /// `worktrees.notice`.
    pub(crate) worktrees: bool,
}

/// The access of one hook event to the loop and to the state of all hooks.
#[derive(Debug)]
pub(crate) struct DaemonHandle {
    /// The client through which this event makes requests.
    pub(crate) inside: Inside,
    /// The process that sent the event; `None` if the system does not report
    /// it.
    pub(crate) process: Option<u32>,
    /// The workspace's canonical path.
    pub(crate) root: PathBuf,
    /// The state directory of the daemon. Unanswered events are stored there
    /// too.
    pub(crate) state: PathBuf,
    /// What earlier events have left.
    pub(crate) memory: Arc<Memory>,
    /// The other worktrees of the repository.
    pub(crate) worktrees: Arc<Worktrees>,
    /// The configuration for hooks.
    pub(crate) settings: Settings,
    /// The daemon's time when the event arrived.
    pub(crate) now: Millis,
    /// How long the system had been running when the event arrived.
    pub(crate) running: Duration,
}

impl DaemonHandle {
    /// Makes a request, as any client does.
    pub(super) async fn ask<M: Method>(&self, ask: M) -> Result<M::Result, Error> {
        self.inside.ask(ask).await
    }

    /// Returns a file's state for a session; `None` if the request fails.
    pub(super) async fn status(&self, session: &SessionId, path: &ClientPath) -> Option<FileState> {
        let ask = FileStatus::new(session.clone()).paths(vec![path.clone()]);
        let mut file = self.ask(ask).await.ok()?.files.pop()?;
        notice::without_own(file.changed_by.as_deref_mut().unwrap_or_default(), session);
        Some(file)
    }

    /// Returns a handle for what has already happened: its requests take effect
    /// however late, even if no client waits for the answer any more.
    pub(super) fn at_leisure(&self) -> Self {
        Self {
            inside: Inside {
                until: None,
                ..self.inside.clone()
            },
            process: self.process,
            root: self.root.clone(),
            state: self.state.clone(),
            memory: Arc::clone(&self.memory),
            worktrees: Arc::clone(&self.worktrees),
            settings: self.settings,
            now: self.now,
            running: self.running,
        }
    }

    pub(super) async fn standing(&self, session: &SessionId) -> Standing {
        let session = session.clone();
        self.inside
            .consult(|answer| Consult::Standing { session, answer })
            .await
            .unwrap_or_default()
    }

    pub(super) async fn lines(&self, old: Hash, new: Hash) -> Option<LineCounts> {
        self.inside
            .consult(|answer| Consult::Lines { old, new, answer })
            .await
            .flatten()
    }

    /// Returns a content, if it is stored; that of a secret is not (SEC-3).
    pub(super) async fn content(&self, hash: Hash) -> Option<Arc<[u8]>> {
        self.inside
            .consult(|answer| Consult::Content { hash, answer })
            .await
            .flatten()
    }

    pub(super) fn end_window(&self, window: String) {
        let _loop_has_ended = self
            .inside
            .events
            .send(Event::Consult(Consult::EndWindow(window)));
    }

    pub(super) fn command_began(&self, window: String, time: Millis) {
        let consult = Consult::CommandBegan(window, time);
        let _loop_has_ended = self.inside.events.send(Event::Consult(consult));
    }

    /// Returns the current time, by the daemon's clock.
    pub(super) fn present(&self) -> Millis {
        let since = clock::running().saturating_sub(self.running);
        self.now + Millis::try_from(since.as_millis()).unwrap_or_default()
    }

    pub(super) fn look_around(&self) {
        let consult = Event::Consult(Consult::LookAround);
        let _loop_has_ended = self.inside.events.send(consult);
    }

    pub(super) fn withdraw_window(&self, window: String) {
        let consult = Consult::WithdrawWindow(window);
        let _loop_has_ended = self.inside.events.send(Event::Consult(consult));
    }

    pub(super) fn inherit(&self, session: SessionId, from: SessionId, over: bool) {
        let consult = Consult::Inherit {
            session,
            from,
            over,
        };
        let _loop_has_ended = self.inside.events.send(Event::Consult(consult));
    }

    pub(super) fn count_unanswered(&self, session: SessionId) {
        let consult = Consult::Unanswered(session);
        let _loop_has_ended = self.inside.events.send(Event::Consult(consult));
    }

    /// Returns a path as a tool named it, if it can be in the workspace.
    pub(super) async fn place(&self, cwd: Option<&Path>, path: &str) -> Option<ClientPath> {
        let path = Path::new(path);
        let absolute = if path.is_absolute() {
            path.to_owned()
        } else {
            cwd?.join(path)
        };
        let spoken = ClientPath::from(absolute.as_path());
        if self.is_inside(&spoken) {
            return Some(spoken);
        }
        // The agent may have used a name with a symlink.
        let real = tokio::task::spawn_blocking(move || real(&absolute))
            .await
            .ok()??;
        let real = ClientPath::from(real.as_path());
        self.is_inside(&real).then_some(real)
    }

    /// Returns whether the agent itself works in this workspace. Only then does
    /// this daemon receive its prompts and the events about its context.
    pub(super) async fn is_home(&self, cwd: Option<&Path>) -> bool {
        let Some(cwd) = cwd else { return true };
        if cwd.starts_with(&self.root) {
            return true;
        }
        let (cwd, root) = (cwd.to_owned(), self.root.clone());
        tokio::task::spawn_blocking(move || {
            cwd.canonicalize().is_ok_and(|real| real.starts_with(&root))
        })
        .await
        .unwrap_or(true)
    }

    fn is_inside(&self, path: &ClientPath) -> bool {
        path.normalise(&native::bytes(&self.root)).is_ok()
    }
}

/// Returns a path with the symlinks in its directory resolved, as far as it
/// exists.
fn real(path: &Path) -> Option<PathBuf> {
    let mut rest = vec![path.file_name()?];
    let mut directory = path.parent()?;
    loop {
        if let Ok(real) = directory.canonicalize() {
            return Some(rest.iter().rev().fold(real, |path, name| path.join(name)));
        }
        rest.push(directory.file_name()?);
        directory = directory.parent()?;
    }
}
