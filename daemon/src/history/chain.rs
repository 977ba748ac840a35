//! One file's versions, with what they held.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use touchmark_engine::history::{Step, Weave};
use touchmark_proto::files::{FileHistory, FileSnapshot, Snapshot};
use touchmark_proto::{
    Author, ClientPath, Clock, Error, ErrorCode, Evidence, Version, VersionKind,
};

use crate::inside::Inside;
use crate::store::Reader;

/// Versions asked for at once.
const PAGE: u32 = 1_000;

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
        let now = inside.ask(FileSnapshot { path: path.clone() }).await?;
        if let Some(last) = versions.last()
            && last.hash != now.hash
        {
            versions.push(unrecorded(last, &now));
        }
        let contents = Arc::clone(contents);
        let read = tokio::task::spawn_blocking(move || {
            let contents = contents.lock().unwrap_or_else(PoisonError::into_inner);
            let steps = versions.iter().map(|version| held(&contents, version));
            (steps.collect(), versions)
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

/// What a file holds that was changed while nobody tracked it.
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

/// What a version held, as far as that is kept.
fn held(contents: &Reader, version: &Version) -> Step {
    let Some(hash) = version.hash else {
        return Step::Absent;
    };
    match contents.content(&hash) {
        Ok(Some(bytes)) => Step::Held(bytes),
        Ok(None) if version.size == 0 => Step::Held(Arc::from([])),
        Ok(None) => Step::NotKept,
        Err(error) => {
            tracing::debug!("a kept content: {error}");
            Step::NotKept
        }
    }
}
