//! Files as they were, line by line: what `file/content`, `file/diff`,
//! `file/blame`, `file/log`, `file/restore` and `undo` look at. All of it runs
//! in tasks aside.

mod at;
mod chain;
mod log;
mod look;
mod restore;
mod writers;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use touchmark_engine::history::Step;
use touchmark_engine::{Found, ReadOrder, within};
use touchmark_proto::{
    Author, ClientPath, Clock, Error, ErrorCode, ErrorData, Evidence, Hash, Millis, RelPath,
    Version, VersionKind, native,
};

use crate::content;
use crate::guard::{Guard, Umask};
use crate::inside::Inside;
use crate::store;

pub(crate) use chain::Chain;

/// What a question about files as they were is answered with.
pub(crate) struct Past {
    /// Its own place at the loop.
    pub(crate) inside: Inside,
    /// The log and kept contents.
    pub(crate) contents: Arc<Mutex<store::Reader>>,
    /// The disk.
    pub(crate) files: content::Reader,
    /// What is given back goes through it.
    pub(crate) guard: Arc<Guard>,
    /// What new files are made with.
    pub(crate) umask: Umask,
    /// The workspace's canonical path.
    pub(crate) root: Arc<[u8]>,
    /// Now.
    pub(crate) now: Millis,
    /// The life of the state.
    pub(crate) epoch: u64,
    /// Contents larger than this are not kept.
    pub(crate) largest: u64,
}

impl Past {
    /// A file's versions with what they held; the newest is what the file
    /// holds. Of a file that nobody has named there is one, without a clock
    /// ([`clock`]).
    async fn chain(&self, path: &ClientPath) -> Result<Chain, Error> {
        let root = Path::new("").join(native::name(&self.root));
        let mut chain = Chain::of(&self.inside, &self.contents, &root, path).await?;
        let newest = chain.versions.last().map(|version| version.hash);
        match newest {
            None => {
                let (name, hash, bytes, time) = self.on_disk(path).await?;
                chain.versions.push(unnamed(name, hash, &bytes, time));
                chain.steps.push(Step::Held(bytes));
            }
            Some(Some(wanted)) if chain.steps.last() == Some(&Step::NotKept) => {
                if let Ok((_, hash, bytes, _)) = self.on_disk(path).await
                    && hash == wanted
                    && let Some(last) = chain.steps.last_mut()
                {
                    *last = Step::Held(bytes);
                }
            }
            Some(_) => {}
        }
        Ok(chain)
    }

    /// What a file holds now, whether or not that may be kept.
    async fn on_disk(
        &self,
        path: &ClientPath,
    ) -> Result<(RelPath, Hash, Arc<[u8]>, Millis), Error> {
        let name = self.name(path)?;
        let order = ReadOrder {
            path: name.clone(),
            ticket: 0,
            prefixes: Vec::new(),
            bytes: true,
            keep: false,
            whole: true,
        };
        let files = self.files.clone();
        let report = aside(move || files.read(&order)).await?;
        let wrong = |code, message: &str| Err(Error::path(code, &name, message));
        match (report.outcome.found, report.outcome.bytes) {
            (Found::File(content), Some(bytes)) => {
                Ok((name, content.hash, bytes, content.mtime_ms))
            }
            (Found::File(_), None) => wrong(ErrorCode::TooLarge, "it is too large"),
            (Found::Absent, _) => wrong(ErrorCode::NotFound, "there is no such file"),
            (Found::NotAFile { .. }, _) => wrong(ErrorCode::NotAFile, "it is no regular file"),
            (Found::Outside, _) => wrong(
                ErrorCode::OutsideWorkspace,
                "the path leads out of the workspace",
            ),
            (Found::Unreadable { cause }, _) => wrong(ErrorCode::Unreadable, &cause),
            (Found::Unstable { .. }, _) => wrong(ErrorCode::Unreadable, "it changes all the time"),
        }
    }

    /// A path as it was named.
    fn name(&self, path: &ClientPath) -> Result<RelPath, Error> {
        within(path, &self.root)
    }

    /// Looks something up in the log, or among kept contents.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&store::Reader) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let contents = Arc::clone(&self.contents);
        aside(move || look(&contents.lock().unwrap_or_else(PoisonError::into_inner))).await
    }

    /// `notKept`, with the reason (HIST-3).
    fn not_kept(&self, version: &Version, is_secret: bool) -> Error {
        let Version { path, clock, .. } = version;
        let (cause, hint) = if is_secret || self.files.is_secret(path) {
            (
                "it is a secret, and secrets are never kept".to_owned(),
                "`contents.exclude` in the configuration says what counts as one",
            )
        } else if version.size > self.largest {
            (
                format!(
                    "it has {} bytes, and contents of more than {} are not kept",
                    version.size, self.largest
                ),
                "`contents.file` in the user's configuration says how large they may be",
            )
        } else {
            (
                "it is no longer kept".to_owned(),
                "name a newer version; `touchmark log PATH` has them, and `contents.total` says how much is kept",
            )
        };
        Error::path(
            ErrorCode::NotKept,
            path,
            format!("what the file held at {clock} cannot be had: {cause}"),
        )
        .with(ErrorData {
            path: Some(path.clone()),
            clock: Some(*clock),
            cause: Some(cause),
            ..ErrorData::default()
        })
        .hint(hint)
    }
}

/// Runs what blocks.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorCode::InternalError, error.to_string()))
}

/// What a file holds that nobody has named.
fn unnamed(path: RelPath, hash: Hash, bytes: &[u8], time: Millis) -> Version {
    Version {
        clock: Clock { epoch: 0, n: 0 },
        path,
        kind: VersionKind::Created,
        from: None,
        hash: Some(hash),
        size: bytes.len() as u64,
        time,
        author: Author::UNKNOWN,
        evidence: Evidence::Gap,
        amends: None,
        overwritten: None,
        unobserved: None,
        provisional: None,
        late: None,
        formatted: None,
        candidates: None,
        edit: None,
        command: None,
        mode: None,
        mode_before: None,
    }
}

/// A version's clock; `None` for what nobody has named: no fact has the number 0.
fn clock(version: &Version) -> Option<Clock> {
    Some(version.clock).filter(|clock| clock.n > 0)
}

/// A path as clients speak it.
fn spoken(path: &RelPath) -> ClientPath {
    ClientPath::new(path.as_bytes())
}
