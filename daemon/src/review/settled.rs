//! Ends the pins of contents whose changes were kept or undone (KEEP-2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use touchmark_engine::Fact;
use touchmark_proto::{AuthorKind, Error, FileMode, Hash, RelPath};

use super::known::Asked;
use super::state::committed;
use crate::context::aside;
use crate::past::Lineage;
use crate::undo::Undoer;

/// The versions of a file that agents have written.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The number of the newest fact about the file or its lines, by any author.
    pub(super) newest: u64,
    /// The hash of the file's content after the newest version; `None` for no
    /// file.
    pub(super) hash: Option<Hash>,
    /// Whether agents may have made changes that have no lines: whether there
    /// was a symbolic link at any time, or a version by an agent has another
    /// mode than the one before it, or moved the file.
    pub(super) has_modes: bool,
    /// The number of each version, with the hashes of the content before and
    /// after it.
    versions: Vec<(u64, [Option<Hash>; 2])>,
}

impl Written {
    /// Returns what is asked about the commits of the file with this name.
    pub(super) fn asked(&self, path: &RelPath, lineage: &Lineage) -> Asked {
        Asked {
            names: lineage.names(path),
            has_mode: self.has_modes,
        }
    }
}

impl Undoer {
    /// Returns the files that agents have written, by the names that they have
    /// now, with the agents' versions. A file that another one has replaced is
    /// left out.
    pub(super) async fn written_by_agents(
        &self,
        lineage: &Lineage,
    ) -> Result<BTreeMap<RelPath, Written>, Error> {
        let log = Arc::clone(&self.log);
        let records = aside(move || {
            let log = log.lock().unwrap_or_else(PoisonError::into_inner);
            Ok::<_, Error>((log.versions_after(0)?, log.claims(None)?))
        });
        let (records, claims) = records.await??;
        let mut files: BTreeMap<RelPath, Written> = BTreeMap::new();
        for record in records {
            let Fact::Version(version) = record.fact else {
                continue;
            };
            let n = version.amends.unwrap_or(record.n);
            let place = lineage.place(&version.path, n);
            if place.over.is_some() {
                continue;
            }
            let is_moved = place.name != version.path;
            let file = files.entry(place.name).or_default();
            let is_agents = version.author.kind == AuthorKind::Agent;
            let begin = lineage.begin(&version.path, n);
            let is_moved_here =
                begin.is_some_and(|begin| begin.version == n && begin.from.is_some());
            file.has_modes |= version.held.mode.is_some_and(FileMode::is_link)
                || is_agents && (is_moved_here || version.mode_before.is_some());
            file.newest = record.n;
            // The removal of an earlier name is part of its move.
            let is_move = is_moved && version.held.hash.is_none();
            if version.amends.is_none() && !is_move {
                file.hash = version.held.hash;
            }
            if is_agents {
                file.versions.push((n, [version.before, version.held.hash]));
            }
        }
        // What the user says about lines makes no version (ATTR-18).
        for claim in claims {
            if let Fact::Claimed { path, version, .. } = claim.fact
                && let Some(file) = files.get_mut(&lineage.place(&path, version).name)
            {
                file.newest = file.newest.max(claim.n);
            }
        }
        files.retain(|_, file| !file.versions.is_empty());
        Ok(files)
    }

    /// Ends the pins of files in which changes were kept or undone. This reads
    /// all versions and runs git, so it runs as a separate task, for which the
    /// answer does not wait.
    pub(crate) fn settle(&self, paths: Vec<RelPath>) {
        let this = self.clone();
        tokio::spawn(async move {
            if let Err(error) = this.try_settle(paths).await {
                // The pins then end when their time is over.
                tracing::debug!("the pins of changes that were kept or undone: {error}");
            }
        });
    }

    async fn try_settle(&self, paths: Vec<RelPath>) -> Result<(), Error> {
        self.look().await?;
        let commits = self.commits().await?;
        let lineage = self.lineage().await?;
        let of = self.knowing(lineage.clone());
        // A version that is recorded from here on is still to be reviewed. So
        // the state is named before the queue is computed.
        let written = self.written_by_agents(&lineage).await?;
        let asked = paths.iter().filter_map(|path| {
            let file = written.get(path)?;
            Some((path.clone(), file.asked(path, &lineage)))
        });
        let states = committed(&commits, asked.collect()).await?;
        let mut left = BTreeMap::new();
        for path in paths {
            // An undo or redo that is requested meanwhile runs first. What is
            // recorded then has another moment.
            let _one = self.journal.alone().await;
            let both = states.get(&path).zip(written.get(&path));
            let moment = both.map(|(committed, file)| committed.moment(file.newest));
            let queued = of.queued(&path, &commits).await?;
            let steps = queued.hunks.iter().flat_map(|(_, hunk)| &hunk.steps);
            let steps = steps.chain(queued.whole.iter().flat_map(|whole| &whole.steps));
            let still: BTreeSet<u64> = steps
                .map(|step| queued.chain.version(*step).clock.n)
                .collect();
            if let (true, Some(moment)) = (still.is_empty(), moment) {
                self.kept.set_done(&path, moment);
            }
            left.insert(path, still);
        }
        let _one = self.journal.alone().await;
        self.kept.write_changed();
        self.let_go(&written, &left);
        Ok(())
    }

    /// Ends the pins of agents' changes in the files of `left`. The pins stay
    /// for versions of which something is still in the queue, and for contents
    /// that another file in the queue needs.
    pub(super) fn let_go(
        &self,
        written: &BTreeMap<RelPath, Written>,
        left: &BTreeMap<RelPath, BTreeSet<u64>>,
    ) {
        let mut needed: BTreeSet<Hash> = BTreeSet::new();
        let mut gone: BTreeSet<Hash> = BTreeSet::new();
        for (path, file) in written {
            let still = left.get(path);
            if still.is_none() && self.kept.is_done_at(path, file.newest) {
                continue;
            }
            for (n, contents) in &file.versions {
                let is_needed = still.is_none_or(|still| still.contains(n));
                let all = if is_needed { &mut needed } else { &mut gone };
                all.extend(contents.iter().flatten());
            }
        }
        let gone: Vec<Hash> = gone.difference(&needed).copied().collect();
        if !gone.is_empty() {
            let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            log.unpin(gone);
        }
    }
}
