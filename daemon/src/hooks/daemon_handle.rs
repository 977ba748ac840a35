//! How a hook's rules make requests to the daemon: as a client inside it,
//! through the loop's channel.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use touchmark_engine::Sweep;
use touchmark_proto::files::FileStatus;
use touchmark_proto::{
    ClientPath, Error, FileState, Hash, LineCounts, Method, Millis, SessionId, native,
};

use super::memory::Memory;
use super::notice;
use crate::config::{Gate, Unsaved};
use crate::context::{Context, aside};
use crate::fill::Contents;
use crate::scope::Sweeper;
use crate::standing::Standing;
use crate::system::clock;
use crate::worktrees::Worktrees;

/// The time for an answer without a deadline, and the time that it takes to send
/// one, in milliseconds.
const LONGEST: Millis = 1_000;
const SENDING: Millis = 20;

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
    /// Whether `@path` in a prompt puts the file's text into the context.
    pub(crate) attaches: bool,
}

/// The access of one hook event to the loop and to the state of all hooks.
#[derive(Debug)]
pub(crate) struct DaemonHandle {
    pub(crate) cx: Context,
    /// What earlier events have left.
    pub(crate) memory: Arc<Memory>,
    /// The other worktrees of the repository.
    pub(crate) worktrees: Arc<Worktrees>,
    /// Compares the files of the workspace for commands.
    pub(crate) sweeper: Arc<Sweeper>,
    /// What the state had of the session when the event arrived, until it was
    /// used.
    arrived: Arc<Mutex<Option<Standing>>>,
    /// The configuration for hooks.
    pub(crate) settings: Settings,
    /// How long the system had been running when the event arrived.
    pub(crate) running: Duration,
}

impl DaemonHandle {
    pub(crate) fn new(
        cx: Context,
        memory: Arc<Memory>,
        worktrees: Arc<Worktrees>,
        sweeper: Arc<Sweeper>,
    ) -> Self {
        let settings = Settings {
            replace_repeats: cx.config.replace_repeats,
            gate: cx.config.gate,
            unsaved: cx.config.unsaved,
            worktrees: cx.config.worktrees_notice,
            attaches: false,
        };
        Self {
            arrived: Arc::new(Mutex::new(cx.standing.clone())),
            cx,
            memory,
            worktrees,
            sweeper,
            settings,
            running: clock::running(),
        }
    }

    /// Makes a request, as any client does.
    pub(super) async fn ask<M: Method>(&self, ask: M) -> Result<M::Result, Error> {
        self.cx.inside.ask(ask).await
    }

    /// Returns a file's state for a session; `None` if the request fails.
    pub(super) async fn status(&self, session: &SessionId, path: &ClientPath) -> Option<FileState> {
        let ask = FileStatus::new(session.clone()).paths(vec![path.clone()]);
        let mut file = self.ask(ask).await.ok()?.files.pop()?;
        self.without_own(session, &mut file).await;
        Some(file)
    }

    /// Removes the reader's own session from the authors of a file's changes. If
    /// its newest own one was no command's, one of its tools may have made it.
    async fn without_own(&self, session: &SessionId, file: &mut FileState) {
        let authors = file.changed_by.as_deref_mut().unwrap_or_default();
        if !authors.iter().any(|author| author.is(session)) {
            return;
        }
        let (own, path) = (session.clone(), file.path.clone());
        let look = self.cx.inside.look(move |state| {
            let versions = state.paths.get(&path).map(|path| &path.versions);
            let mut versions = versions.into_iter().flatten().rev();
            let newest = versions.find(|version| version.is_by(&own));
            newest.is_some_and(|version| version.command().is_some())
        });
        notice::without_own(authors, session, look.await.unwrap_or(true));
    }

    /// Notes that a session has read or written a file: its next change is told.
    pub(super) fn uses(&self, session: &SessionId, path: &ClientPath) {
        if let Ok(path) = path.normalise(&self.cx.root_bytes()) {
            self.memory.notices().uses(session, &path);
            self.memory.noticed(session, &path);
        }
    }

    /// Returns a handle for what has already happened: its requests take effect
    /// however late, even if no client waits for the answer any more.
    pub(super) fn at_leisure(&self) -> Self {
        self.with(self.cx.at_leisure(), self.settings)
    }

    /// Returns a handle with other settings.
    pub(super) fn with(&self, cx: Context, settings: Settings) -> Self {
        Self {
            cx,
            memory: Arc::clone(&self.memory),
            worktrees: Arc::clone(&self.worktrees),
            sweeper: Arc::clone(&self.sweeper),
            arrived: Arc::clone(&self.arrived),
            settings,
            running: self.running,
        }
    }

    /// Returns the hash and the bytes of a file on disk, unless they are too many
    /// to be stored.
    pub(super) async fn bytes(&self, path: &ClientPath) -> Option<(Hash, Arc<[u8]>)> {
        let (_, hash, bytes, _) = self.cx.on_disk(path).await.ok()?;
        let is_small = bytes.len() as u64 <= self.cx.config.contents_file;
        is_small.then_some((hash, bytes))
    }

    /// Returns what the state has of a session. For the first question about the
    /// session that the event names, it is what arrived with the event.
    pub(super) async fn standing(&self, session: &SessionId) -> Standing {
        let take = || {
            let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
            arrived.take()
        };
        let arrived = take();
        if let Some(arrived) = arrived.filter(|one| one.session.as_ref() == Some(session)) {
            return arrived;
        }
        let session = session.clone();
        let standing = self
            .cx
            .inside
            .look(move |state| Standing::of(state, &session));
        standing.await.unwrap_or_default()
    }

    /// Returns the number of lines that differ between two contents; `None` if
    /// one of them is not stored.
    pub(super) async fn lines(&self, old: Hash, new: Hash) -> Option<LineCounts> {
        let store = self.cx.workspace.store.clone();
        let counts = aside(move || {
            let log = store.open().ok()?;
            Contents::new(Some(&log)).lines(Some(old), Some(new))
        });
        counts.await.ok().flatten()
    }

    /// Returns a content, if it is stored; that of a secret is not (SEC-3).
    pub(super) async fn content(&self, hash: Hash) -> Option<Arc<[u8]>> {
        let store = self.cx.workspace.store.clone();
        let content = aside(move || {
            let log = store.open().ok()?;
            Contents::new(Some(&log)).content(Some(hash))
        });
        content.await.ok().flatten()
    }

    /// Returns the current time, by the daemon's clock.
    pub(super) fn present(&self) -> Millis {
        let since = clock::running().saturating_sub(self.running);
        self.cx.now + Millis::try_from(since.as_millis()).unwrap_or_default()
    }

    /// Returns how long the answer may still take, with some time to send it.
    pub(super) fn left(&self) -> Duration {
        let until = self.cx.inside.until;
        let left = until.map_or(LONGEST, |until| until.saturating_sub(self.present()));
        Duration::from_millis(left.saturating_sub(SENDING))
    }

    /// Compares the workspace's files by stat, before the first command has to
    /// wait for it (SCOPE-5).
    pub(super) async fn look_around(&self) {
        let sweeper = Arc::clone(&self.sweeper);
        let looked = self.cx.inside.look(move |state| {
            // While a window is open, changes are attributed to its session,
            // which a sweep now would prevent.
            if !state.covers_untracked() {
                sweeper.sweep(None, Sweep::Between(Vec::new()));
            }
        });
        looked.await;
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
        if cwd.starts_with(&self.cx.workspace.root) {
            return true;
        }
        let (cwd, root) = (cwd.to_owned(), self.cx.workspace.root.clone());
        tokio::task::spawn_blocking(move || {
            cwd.canonicalize().is_ok_and(|real| real.starts_with(&root))
        })
        .await
        .unwrap_or(true)
    }

    fn is_inside(&self, path: &ClientPath) -> bool {
        path.normalise(&native::bytes(&self.cx.workspace.root))
            .is_ok()
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
