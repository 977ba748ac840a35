//! Earlier contents of files, line by line, for `file/content`, `file/diff`,
//! `file/blame`, `file/log`, `file/restore` and `undo`. All of it runs in
//! separate tasks.

mod activity;
mod at;
mod blame;
mod blamed;
mod chain;
mod log;
mod look;
mod restore;
mod writers;

use std::sync::{Arc, PoisonError};

use tokio::sync::OwnedSemaphorePermit;
use touchmark_engine::history::Step;
use touchmark_engine::within;
use touchmark_proto::{
    Author, ClientPath, Clock, Error, ErrorCode, ErrorData, Evidence, Hash, Millis, RelPath,
    Version, VersionKind,
};

use crate::context::{Context, Log, aside};
use crate::past::Origins;
use crate::past::versions::{self, Sources, Which, alone};
use crate::store::Reader;

pub(crate) use at::checkpoint;
pub(crate) use blamed::LongBlame;
pub(crate) use chain::Chain;
pub(crate) use writers::line;

/// What is needed to answer a request about earlier contents of files.
pub(crate) struct Past {
    pub(crate) cx: Context,
    /// The log and the stored contents.
    pub(crate) log: Log,
    pub(crate) origins: Origins,
    /// What is left of long answers of `file/blame`.
    pub(crate) blamed: Arc<LongBlame>,
    /// One of the few turns at the same time; `None` if they are not limited.
    pub(crate) _turn: Option<OwnedSemaphorePermit>,
}

impl Past {
    /// Returns a file's versions with their contents. The newest is the current
    /// content. For a file that was never tracked it is the only version, and
    /// has no clock ([`clock`]).
    async fn chain(&self, path: &ClientPath, which: Which<'_>) -> Result<Chain, Error> {
        let outline = self.outline(path, which).await?;
        self.read(outline, path).await
    }

    /// As [`chain`](Self::chain), without the contents.
    async fn outline(&self, path: &ClientPath, which: Which<'_>) -> Result<Chain, Error> {
        Chain::outline(self.sources(), path, which, &alone).await
    }

    /// Reads the contents of a file's versions.
    async fn read(&self, outline: Chain, path: &ClientPath) -> Result<Chain, Error> {
        let mut chain = outline.read(&self.log).await?;
        let newest = chain.versions.last().map(|version| version.hash);
        match newest {
            None => {
                let (name, hash, bytes, time) = self.cx.on_disk(path).await?;
                chain.versions.push(unnamed(name, hash, &bytes, time));
                chain.steps.push(Step::Held(bytes));
            }
            Some(Some(wanted)) if chain.steps.last() == Some(&Step::NotKept) => {
                if let Ok((_, hash, bytes, _)) = self.cx.on_disk(path).await
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

    /// Returns the versions of a file under all its names.
    async fn versions(&self, path: &ClientPath, which: Which<'_>) -> Result<Vec<Version>, Error> {
        let file = versions::versions(self.sources(), path, which, &alone).await?;
        Ok(file.versions)
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            inside: &self.cx.inside,
            log: &self.log,
            origins: &self.origins,
            known: None,
            root: &self.cx.workspace.root,
            trusted: &self.cx.workspace.places.trusted,
            verifies: false,
        }
    }

    /// Returns the workspace path for a client's path.
    fn name(&self, path: &ClientPath) -> Result<RelPath, Error> {
        within(path, &self.cx.root_bytes())
    }

    /// Runs a lookup in the log or the stored contents, on a thread that may
    /// block.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Reader) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let contents = Arc::clone(&self.log);
        aside(move || look(&contents.lock().unwrap_or_else(PoisonError::into_inner))).await
    }

    /// Returns the error `notKept` with the reason (HIST-3).
    fn not_kept(&self, version: &Version, is_secret: bool) -> Error {
        let Version { path, clock, .. } = version;
        let (cause, hint) = if is_secret || self.cx.workspace.files.is_secret(path) {
            (
                "it is a secret, and secrets are never kept".to_owned(),
                "`contents.exclude` in the configuration names what is a secret",
            )
        } else if version.unobserved == Some(true) {
            (
                "it was overwritten before it could be read".to_owned(),
                "name another version; `touchmark log PATH` lists them",
            )
        } else if version.size > self.cx.config.contents_file {
            (
                format!(
                    "it has {} bytes, and contents of more than {} are not kept",
                    version.size, self.cx.config.contents_file
                ),
                "`contents.file` in the user's configuration sets that limit",
            )
        } else {
            (
                "it is no longer kept".to_owned(),
                "name a newer version; `touchmark log PATH` lists them, and `contents.total` limits how much is kept",
            )
        };
        Error::path(
            ErrorCode::NotKept,
            path,
            format!("the content at {clock} is not available: {cause}"),
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

/// Returns the version for the content of a file that was never tracked.
pub(crate) fn unnamed(path: RelPath, hash: Hash, bytes: &[u8], time: Millis) -> Version {
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
        before_unknown: None,
        real: None,
    }
}

/// Returns a version's clock; `None` for an unrecorded version, since no fact
/// has the number 0.
fn clock(version: &Version) -> Option<Clock> {
    Some(version.clock).filter(|clock| clock.n > 0)
}

/// Returns the path in the form in which clients use it.
fn spoken(path: &RelPath) -> ClientPath {
    ClientPath::new(path.as_bytes())
}
