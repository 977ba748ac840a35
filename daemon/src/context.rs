//! What a task gets that answers a request.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::spawn_blocking;
use touchmark_engine::{Found, ReadOrder, within};
use touchmark_proto::{
    ClientPath, ConnectionId, Error, ErrorCode, ErrorData, Hash, Millis, Places, RelPath, native,
};

use crate::config::Config;
use crate::content;
use crate::guard::{Guard, Replacer, Umask};
use crate::inside::Inside;
use crate::standing::Standing;
use crate::store::{Reader, Readers};
use crate::system::proc;
use crate::time::Timeline;

/// The most versions of a name that are searched for the last file there.
const RECENT: usize = 16;

/// The log and the stored contents, for the threads of one task.
pub(crate) type Log = Arc<Mutex<Reader>>;

/// The workspace and its files, for all tasks.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The canonical path.
    pub(crate) root: PathBuf,
    /// The paths of the daemon's own files, and which repositories are trusted.
    pub(crate) places: Places,
    /// Reads files.
    pub(crate) files: content::Reader,
    /// Writes files.
    pub(crate) guard: Arc<Guard>,
    /// Opens the log.
    pub(crate) store: Readers,
    pub(crate) time: Timeline,
}

/// One request's view of the daemon.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// A client of the loop. Its requests are dropped once the client of this
    /// request no longer waits.
    pub(crate) inside: Inside,
    /// The connection on which the request arrived.
    pub(crate) client: ConnectionId,
    /// The client's process; `None` if the system does not report it.
    pub(crate) process: Option<u32>,
    /// The mask for new files of the process that started the daemon.
    pub(crate) starters_umask: Umask,
    /// What the state has of the session that a hook's event names; `None` for
    /// other requests, and if it names none.
    pub(crate) standing: Option<Standing>,
    /// The configuration when the request arrived.
    pub(crate) config: Arc<Config>,
    /// The time when the request arrived.
    pub(crate) now: Millis,
    /// The current epoch.
    pub(crate) epoch: u64,
    pub(crate) workspace: Arc<Workspace>,
}

impl Context {
    /// Returns a context for what has already happened: its requests take effect
    /// however late, even if no client waits for the answer any more.
    pub(crate) fn at_leisure(&self) -> Self {
        let mut own = self.clone();
        own.inside.until = None;
        own
    }

    /// Returns the mask for new files: that of the client's process, since the
    /// daemon's own was not chosen by its user. Where the system does not report
    /// it, that of the process which started the daemon.
    pub(crate) fn umask(&self) -> Umask {
        let of_client = self.process.and_then(proc::umask);
        of_client.unwrap_or(self.starters_umask)
    }

    /// Opens the log.
    ///
    /// # Errors
    /// `storage`.
    pub(crate) fn log(&self) -> Result<Log, Error> {
        let log = self.workspace.store.open();
        log.map(Mutex::new)
            .map(Arc::new)
            .map_err(|error| storage(&error.to_string()))
    }

    /// Returns the writer of earlier contents.
    pub(crate) fn replacer(&self, log: &Log) -> Replacer {
        let owner = owner_in(log);
        let log = Arc::clone(log);
        let is_secret = move |hash: &Hash| {
            let log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.is_secret(hash)
        };
        let guard = Arc::clone(&self.workspace.guard);
        Replacer::new(guard, self.umask(), is_secret, owner)
    }

    /// Returns a file's current name, hash, content and modification time,
    /// whether or not the content may be stored.
    ///
    /// # Errors
    /// `notFound`, `notAFile`, `outsideWorkspace`, `unreadable`, `tooLarge`.
    pub(crate) async fn on_disk(
        &self,
        path: &ClientPath,
    ) -> Result<(RelPath, Hash, Arc<[u8]>, Millis), Error> {
        let name = within(path, &self.root_bytes())?;
        let order = ReadOrder {
            bytes: true,
            ..ReadOrder::of(name.clone())
        };
        let files = self.workspace.files.clone();
        let report = aside(move || files.read(&order)).await?;
        let wrong = |code, message: &str| Err(Error::path(code, &name, message));
        match (report.outcome.found, report.outcome.bytes) {
            (Found::File(content), Some(bytes)) => {
                Ok((name, content.hash, bytes, content.mtime_ms))
            }
            (Found::File(_), None) => wrong(ErrorCode::TooLarge, "it is too large"),
            (Found::Absent, _) => wrong(ErrorCode::NotFound, "there is no such file"),
            (Found::NotAFile { .. }, _) => wrong(ErrorCode::NotAFile, "it is not a regular file"),
            (Found::Outside, _) => wrong(
                ErrorCode::OutsideWorkspace,
                "the path leads out of the workspace",
            ),
            (Found::Unreadable { cause }, _) => wrong(ErrorCode::Unreadable, &cause),
            (Found::Unstable { .. }, _) => wrong(
                ErrorCode::Unreadable,
                "it changes faster than it can be read",
            ),
        }
    }

    /// Returns the workspace's canonical path, in bytes.
    pub(crate) fn root_bytes(&self) -> std::borrow::Cow<'_, [u8]> {
        native::bytes(&self.workspace.root)
    }
}

/// Runs `work` on a thread that may block.
///
/// # Errors
/// `internalError` if it panics.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorCode::InternalError, error.to_string()))
}

/// Returns the user to whom the last file with a name belonged, as the log has
/// it; `None` for the daemon's user, and if it is not known.
pub(crate) fn owner_in(log: &Log) -> impl Fn(&RelPath) -> Option<u32> + Send + Sync + use<> {
    let log = Arc::clone(log);
    move |path| {
        let log = log.lock().unwrap_or_else(PoisonError::into_inner);
        let versions = log.history(path, None, RECENT).ok()?;
        let mut held = versions.iter().filter_map(|record| record.fact.held());
        held.find(|held| held.hash.is_some())?.owner
    }
}

/// Returns the error `storage` with its cause (LOSS-3).
pub(crate) fn storage(cause: &str) -> Error {
    not_stored("the state", cause)
}

/// Returns the error `storage`, which says what cannot be stored.
pub(crate) fn not_stored(what: &str, cause: &str) -> Error {
    Error::new(
        ErrorCode::Storage,
        format!("{what} cannot be stored: {cause}"),
    )
    .with(ErrorData {
        cause: Some(cause.into()),
        ..ErrorData::default()
    })
}
