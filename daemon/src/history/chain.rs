//! One file's versions, with what they held.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use touchmark_engine::history::{Step, Weave};
use touchmark_proto::files::{FileHistory, FileSnapshot, Snapshot};
use touchmark_proto::{
    Author, ClientPath, Clock, Error, ErrorCode, Evidence, Hash, Version, VersionKind,
};

use crate::inside::Inside;
use crate::store::Reader;

/// Versions asked for at once.
const PAGE: u32 = 1_000;

/// Bytes of contents looked at in one go. Older versions than these hold count
/// as not kept: their lines are nobody's.
const MOST: usize = 256 << 20;

/// A file's history.
#[derive(Debug)]
pub(crate) struct Chain {
    /// Its versions, oldest first, the log's beginning before them; corrections
    /// are put into what they correct. The last is what the file holds now, with
    /// the clock 0 where that is not on record.
    pub(crate) versions: Vec<Version>,
    /// What each held.
    pub(crate) steps: Vec<Step>,
}

impl Chain {
    /// Gathers what is known of a file as of now. It has no versions where
    /// nobody ever named it.
    ///
    /// # Errors
    /// Those of `file/history`.
    pub(crate) async fn of(
        inside: &Inside,
        contents: &Arc<Mutex<Reader>>,
        path: &ClientPath,
    ) -> Result<Self, Error> {
        let versions = versions(inside, path).await?;
        let contents = Arc::clone(contents);
        let read = tokio::task::spawn_blocking(move || {
            let contents = contents.lock().unwrap_or_else(PoisonError::into_inner);
            let steps = steps(&contents, &versions);
            (steps, versions)
        });
        let (steps, versions) = read
            .await
            .map_err(|error| Error::new(ErrorCode::InternalError, error.to_string()))?;
        Ok(Self { versions, steps })
    }

    /// The lines of all versions.
    pub(crate) fn weave(&self) -> Weave {
        Weave::new(&self.steps)
    }
}

/// All versions of a file as of now, oldest first, corrections put into what
/// they correct. The last has the clock 0 where nobody has recorded it.
///
/// # Errors
/// Those of `file/history`.
pub(crate) async fn versions(inside: &Inside, path: &ClientPath) -> Result<Vec<Version>, Error> {
    let mut all: Vec<Version> = Vec::new();
    let mut before: Option<Clock> = None;
    loop {
        let page = inside
            .ask(FileHistory {
                path: path.clone(),
                before,
                limit: Some(PAGE),
                sync: before.is_some().then_some(false),
                verify: None,
            })
            .await?;
        all.extend(page.versions);
        before = page.more;
        if before.is_none() {
            break;
        }
    }
    let mut versions = corrected(all);
    // Nobody may have tracked it lately.
    if let Some(last) = versions.last() {
        let now = inside.ask(FileSnapshot { path: path.clone() }).await?;
        if last.hash != now.hash {
            versions.push(unrecorded(last, &now));
        }
    }
    Ok(versions)
}

/// Versions in their order, each by the author that its newest correction
/// names.
fn corrected(newest_first: Vec<Version>) -> Vec<Version> {
    let mut corrections: HashMap<Clock, Version> = HashMap::new();
    let mut versions = Vec::with_capacity(newest_first.len());
    for mut version in newest_first {
        if let Some(of) = version.amends {
            corrections.entry(of).or_insert(version);
            continue;
        }
        if let Some(by) = corrections.remove(&version.clock) {
            version.author = by.author;
            version.evidence = by.evidence;
            version.edit = by.edit;
            version.command = by.command;
            version.candidates = by.candidates;
            version.formatted = by.formatted;
        }
        versions.push(version);
    }
    versions.reverse();
    versions
}

/// What a file holds that was changed while nobody tracked it: no fact has
/// that number.
fn unrecorded(last: &Version, now: &Snapshot) -> Version {
    Version {
        clock: Clock { n: 0, ..last.clock },
        kind: match now.hash {
            Some(_) => VersionKind::Modified,
            None => VersionKind::Deleted,
        },
        from: None,
        hash: now.hash,
        size: now.size,
        author: Author::UNKNOWN,
        evidence: Evidence::Gap,
        edit: None,
        command: None,
        candidates: None,
        ..last.clone()
    }
}

/// What versions held, as far as that is kept and within [`MOST`]. A content
/// that comes again is looked up once.
fn steps(contents: &Reader, versions: &[Version]) -> Vec<Step> {
    let mut known: HashMap<Hash, Step> = HashMap::new();
    let mut left = MOST;
    let newest_first = versions.iter().rev().map(|version| {
        let Some(hash) = version.hash else {
            return Step::Absent;
        };
        if let Some(step) = known.get(&hash) {
            return step.clone();
        }
        let step = match held(contents, version, &hash) {
            Some(bytes) if bytes.len() <= left => {
                left -= bytes.len();
                Step::Held(bytes)
            }
            _ => Step::NotKept,
        };
        known.insert(hash, step.clone());
        step
    });
    let mut steps: Vec<Step> = newest_first.collect();
    steps.reverse();
    steps
}

/// What a version held; `None` if that is not kept.
pub(crate) fn held(contents: &Reader, version: &Version, hash: &Hash) -> Option<Arc<[u8]>> {
    match contents.content(hash) {
        Ok(Some(bytes)) => Some(bytes),
        Ok(None) if version.size == 0 => Some(Arc::from([])),
        Ok(None) => None,
        Err(error) => {
            tracing::debug!("a kept content: {error}");
            None
        }
    }
}
