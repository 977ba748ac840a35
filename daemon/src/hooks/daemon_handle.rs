//! How a hook's rules ask the daemon: as a client inside it, by the loop's own
//! channel.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
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
use crate::system::clock;

/// What a hook's rules want of the loop.
#[derive(Debug)]
pub(crate) enum Consult {
    /// A request like any client's.
    Ask {
        /// On whose behalf.
        connection: ConnectionId,
        /// What is asked.
        ask: Request,
        /// The answer is worthless after that.
        until: Option<Millis>,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<Reply, Error>>,
    },
    /// How a session stands.
    Standing {
        /// Which.
        session: SessionId,
        /// Where the answer goes.
        answer: oneshot::Sender<Standing>,
    },
    /// A command window ends, and what was done in it is told by
    /// `modified/take`.
    EndWindow(String),
    /// The first process of a window's command began then.
    CommandBegan(String, Millis),
    /// The same of one whose command never ran: it has claimed nothing.
    WithdrawWindow(String),
    /// The files of the workspace are looked at before the first command waits
    /// for it (SCOPE-5).
    LookAround,
    /// What one session knows is in another's context as well.
    Inherit {
        /// Whose context.
        session: SessionId,
        /// Which other session.
        from: SessionId,
        /// That one is over.
        over: bool,
    },
    /// A hook of this session had to let its agent go on unanswered.
    Unanswered(SessionId),
    /// This session is to remember that.
    Noted(SessionId, Note),
    /// A hook's event was not understood, of this session if that is known.
    NotUnderstood(Option<SessionId>),
    /// A content, where it is kept.
    Content {
        /// Which.
        hash: Hash,
        /// Where the answer goes.
        answer: oneshot::Sender<Option<Arc<[u8]>>>,
    },
    /// How many lines differ between two contents, where both are kept.
    Lines {
        /// The older.
        old: Hash,
        /// The newer.
        new: Hash,
        /// Where the answer goes.
        answer: oneshot::Sender<Option<LineCounts>>,
    },
}

/// How a session stands before an event takes effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// It is known.
    pub(crate) known: bool,
    /// It is open.
    pub(crate) open: bool,
    /// Calls whose edits are open.
    pub(crate) edits: Vec<String>,
    /// The command windows that calls have left open: the call, and the
    /// window's name.
    pub(crate) windows: Vec<(String, String)>,
    /// How many checkpoints it keeps.
    pub(crate) checkpoints: usize,
    /// The oldest of them.
    pub(crate) oldest_checkpoint: Option<String>,
    /// The message of the newest.
    pub(crate) last_message: Option<String>,
}

/// What the configuration says about hooks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// `hooks.replace_repeats`.
    pub(crate) replace_repeats: bool,
    /// `hooks.gate`, or that of the agent in `hooks.gates`.
    pub(crate) gate: Gate,
    /// `hooks.unsaved`, as far as the agent can do it.
    pub(crate) unsaved: Unsaved,
}

/// One hook's place at the loop.
#[derive(Debug)]
pub(crate) struct DaemonHandle {
    /// This hook's own.
    pub(crate) inside: Inside,
    /// The process that asked, if the system tells.
    pub(crate) process: Option<u32>,
    /// The workspace's canonical path.
    pub(crate) root: PathBuf,
    /// Where the daemon keeps its state, and hooks what was not answered.
    pub(crate) state: PathBuf,
    /// What earlier events left.
    pub(crate) memory: Arc<Memory>,
    /// What the configuration says.
    pub(crate) settings: Settings,
    /// Now.
    pub(crate) now: Millis,
    /// How long the system had been running then.
    pub(crate) running: Duration,
}

impl DaemonHandle {
    /// Asks as any client does.
    pub(super) async fn ask<M: Method>(&self, ask: M) -> Result<M::Result, Error> {
        self.inside.ask(ask).await
    }

    /// A file's state for a session; `None` where the daemon cannot say.
    pub(super) async fn status(&self, session: &SessionId, path: &ClientPath) -> Option<FileState> {
        let ask = FileStatus {
            session: session.clone(),
            paths: Some(vec![path.clone()]),
            state: Vec::new(),
            sync: None,
            verify: None,
            limit: None,
            cursor: None,
        };
        let mut file = self.ask(ask).await.ok()?.files.pop()?;
        notice::without_own(file.changed_by.as_deref_mut().unwrap_or_default(), session);
        Some(file)
    }

    /// The same for what has happened already: it takes effect however late,
    /// and also if nobody waits for the answer any more.
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

    /// A content, where it is kept: that of a secret is not (SEC-3).
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

    /// The present time, by the daemon's clock.
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

    /// A path as a tool named it, if it may lie in the workspace.
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
        // The agent may have come by a link.
        let real = tokio::task::spawn_blocking(move || real(&absolute))
            .await
            .ok()??;
        let real = ClientPath::from(real.as_path());
        self.is_inside(&real).then_some(real)
    }

    /// Whether the agent itself works in this workspace: only then does this
    /// daemon hear of its prompts and of what leaves its context.
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

/// A path with the links in its directory followed, as far as it exists.
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
