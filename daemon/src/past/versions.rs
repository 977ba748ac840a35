//! The versions of one file under all its names (HIST-9), from the log.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use touchmark_engine::within;
use touchmark_proto::files::{FileHistory, FileSnapshot};
use touchmark_proto::{
    Author, ClientPath, Clock, Error, Evidence, Hash, RelPath, Version, VersionKind, native,
};

use super::Lineage;
use super::Origins;
use super::lineage::Snapshot;
use crate::inside::Inside;
use crate::store::Reader;

/// The number of versions in one request.
pub(crate) const PAGE: u32 = 1_000;

/// The most names that a file is followed through.
const NAMES: usize = 1_000;

/// The versions of one file under all its names.
#[derive(Debug, Default)]
pub(crate) struct OneFile {
    /// The versions, oldest first.
    pub(crate) versions: Vec<Version>,
    /// As [`Chain::moves`](crate::history::Chain::moves).
    pub(crate) moves: Vec<(usize, RelPath)>,
}

/// Chooses a file among those that a name stood for: given all versions of the
/// name, the number of one that the file has; `u64::MAX` for the file that has
/// the name now.
pub(crate) type Which<'a> = &'a (dyn Fn(&[Version]) -> u64 + Send + Sync);

/// Decides whether a file and the one before it at its name are looked at
/// together, given the last version of the one before and the first of the file.
pub(crate) type Joins<'a> = &'a (dyn Fn(&Version, u64) -> bool + Send + Sync);

/// The parts of the daemon from which histories are read.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) inside: &'a Inside,
    /// The log and the stored contents.
    pub(crate) log: &'a Arc<Mutex<Reader>>,
    pub(crate) origins: &'a Origins,
    /// What was known of them when the request began, if it is about many files.
    /// What git brought until then was found out before.
    pub(crate) known: Option<&'a Snapshot>,
    /// The workspace's canonical path.
    pub(crate) root: &'a Path,
    /// The list of trusted directories.
    pub(crate) trusted: &'a Path,
    /// Whether files are read that are tracked. What was written to them without
    /// an event (SYNC-4) is found then.
    pub(crate) verifies: bool,
}

impl Sources<'_> {
    /// Returns which file a name stands for, whose versions are `rows`.
    ///
    /// # Errors
    /// `storage`.
    pub(crate) async fn lineage(&self, rows: &[Version]) -> Result<Snapshot, Error> {
        match self.covering(rows) {
            Some(known) => Ok(known.clone()),
            None => self.origins.lineages.now(self.inside, self.log).await,
        }
    }

    /// Waits until it is known which of these versions git brought.
    ///
    /// # Errors
    /// `shuttingDown`.
    pub(crate) async fn looked(&self, versions: &[Version]) -> Result<(), Error> {
        match self.covering(versions) {
            Some(_) => Ok(()),
            None => self.origins.looks.looked(self.inside).await,
        }
    }

    /// Returns what was known when the request began, if none of the versions is
    /// newer.
    fn covering(&self, versions: &[Version]) -> Option<&Snapshot> {
        let newest = versions.iter().map(|version| version.clock.n).max();
        self.known
            .filter(|known| newest.is_some_and(|n| known.covers(n)))
    }
}

/// The file that has the name now.
pub(crate) fn current(_: &[Version]) -> u64 {
    u64::MAX
}

/// No file is looked at together with the one before it.
pub(crate) fn alone(_: &Version, _: u64) -> bool {
    false
}

/// Returns all versions of a file up to now, under all its names, oldest first.
/// Corrections are merged into the versions that they correct. The last has the
/// clock 0 if it is not recorded.
///
/// # Errors
/// Those of `file/history`.
pub(crate) async fn versions(
    sources: Sources<'_>,
    path: &ClientPath,
    which: Which<'_>,
    joins: Joins<'_>,
) -> Result<OneFile, Error> {
    let Sources {
        inside,
        origins,
        root,
        verifies,
        ..
    } = sources;
    let rows = of_one_name(inside, path, verifies).await?;
    // The removal of the earlier name may be recorded a little later. It is
    // recorded before an answer about that name.
    let came = rows.iter().rfind(|version| version.from.is_some());
    if let Some(from) = came.and_then(|came| came.from.as_ref())
        && came.is_some_and(|came| origins.lineages.is_recent(came.time))
    {
        look_at(inside, from).await;
    }
    let name = match rows.last() {
        Some(last) => last.path.clone(),
        None => {
            let name = within(path, &native::bytes(root))?;
            origins.lineages.adopt(sources, name.clone()).await?;
            name
        }
    };
    let lineage = sources.lineage(&rows).await?;
    let (is_unknown, at) = (rows.is_empty(), which(&rows));
    let mut file = follow(inside, rows, name.clone(), at, &lineage, joins).await?;
    // A name without versions stands for a file that had another name.
    if let (true, Some(last)) = (is_unknown, file.versions.last()) {
        let now = inside.ask(FileSnapshot { path: path.clone() }).await?;
        let mut found = unrecorded(last, now.hash, now.size);
        // The process that moved it while the daemon ran has written it since:
        // what an agent writes, and what a command does, is recorded.
        let earlier = pages(inside, &(&last.path).into(), None).await?;
        if let Some(removed) = earlier.last().filter(|removed| removed.hash.is_none()) {
            found.author = removed.author.clone();
            found.evidence = removed.evidence;
        }
        found.path = name;
        file.versions.push(found);
    }
    Ok(file)
}

/// Asks for the history of a name, so that the removal of a file that has left it
/// is recorded. Without that it may be recorded later: it could be the middle of
/// a save.
pub(crate) async fn look_at(inside: &Inside, name: &RelPath) {
    let ask = FileHistory::new(name).limit(1);
    if let Err(error) = inside.ask(ask).await {
        tracing::debug!("an earlier name: {error}");
    }
}

/// Returns the versions of the file that has version `at` of a name, whose
/// versions are `rows`.
pub(crate) async fn follow(
    inside: &Inside,
    mut rows: Vec<Version>,
    mut name: RelPath,
    mut at: u64,
    lineage: &Lineage,
    joins: Joins<'_>,
) -> Result<OneFile, Error> {
    // A version that is not recorded yet has the number 0, and is the newest.
    let number = |version: &Version| match version.clock.n {
        0 => u64::MAX - 1,
        n => n,
    };
    let end = lineage.end(&name, at);
    if end.is_none() && lineage.begin(&name, at).is_none() {
        return Ok(OneFile {
            versions: rows,
            moves: Vec::new(),
        });
    }
    let mut until = end.unwrap_or(u64::MAX);
    // The newest first: the versions under each name, and the name.
    let mut parts: Vec<(Vec<Version>, RelPath)> = Vec::new();
    // The versions with which names began that were followed back.
    let mut begun: Vec<u64> = Vec::new();
    loop {
        let begin = lineage.begin(&name, at);
        let first = begin.map_or(0, |begin| begin.version);
        let own = rows
            .iter()
            .filter(|version| (first..until).contains(&number(version)));
        parts.push((own.cloned().collect(), name.clone()));
        // What put an earlier file of the name back is looked at together with
        // the file that it replaced.
        let before = rows.iter().rfind(|version| number(version) < first);
        let is_joined = before.filter(|_| begin.is_some()).is_some_and(|before| {
            // One that has another name by now is undone by itself.
            lineage.place(&name, number(before)).name == name && joins(before, first)
        });
        match begin.map(|begin| &begin.from) {
            None => break,
            Some(Some((from, _))) if *from == name && is_joined => {
                (until, at) = (first, first.saturating_sub(1));
            }
            // Two files that change places in one burst may each be the other's
            // earlier one.
            Some(Some(_)) if begun.contains(&first) => {
                parts.pop();
                break;
            }
            Some(Some((from, end))) => {
                begun.push(first);
                (name, until, at) = (from.clone(), *end, end.saturating_sub(1));
                rows = pages(inside, &(&name).into(), Some(false)).await?;
                // The author of the move has brought the content to the name. Of
                // another content than before the move, the author is not known.
                let removed = rows.iter().find(|row| number(row) == until);
                let moved = rows.iter().rfind(|row| number(row) < until);
                let found = parts.last_mut().and_then(|(own, _)| own.first_mut());
                if let (Some(found), Some(removed)) = (found, removed)
                    && (&found.author, found.kind) == (&Author::UNKNOWN, VersionKind::Created)
                    && found.from.is_none()
                    && removed.hash.is_none()
                    && moved.is_some_and(|moved| moved.hash == found.hash)
                {
                    found.author = removed.author.clone();
                    found.evidence = removed.evidence;
                }
            }
            Some(None) => {
                if !is_joined {
                    break;
                }
                (until, at) = (first, first.saturating_sub(1));
            }
        }
        if parts.len() > NAMES {
            break;
        }
    }
    let mut file = OneFile::default();
    let mut before: Option<RelPath> = None;
    for (versions, name) in parts.into_iter().rev() {
        if let Some(before) = before.filter(|before| *before != name) {
            file.moves.push((file.versions.len(), before));
        }
        file.versions.extend(versions);
        before = Some(name);
    }
    Ok(file)
}

/// Returns all versions of a name up to now, as [`versions`] does for a file.
async fn of_one_name(
    inside: &Inside,
    path: &ClientPath,
    verifies: bool,
) -> Result<Vec<Version>, Error> {
    let mut versions = pages(inside, path, None).await?;
    // The file may not have been tracked lately.
    if let Some(last) = versions.last() {
        let file = last.path.clone();
        let tracked = inside.look(move |state| Some(state.paths.get(&file)?.held.hash));
        if !verifies && tracked.await.flatten() == Some(last.hash) {
            return Ok(versions);
        }
        let now = inside.ask(FileSnapshot { path: path.clone() }).await?;
        if last.hash != now.hash {
            versions.push(unrecorded(last, now.hash, now.size));
        }
    }
    Ok(versions)
}

/// Returns the recorded versions of a file, oldest first. Corrections are merged
/// into the versions that they correct. `sync` is that of the first request.
pub(crate) async fn pages(
    inside: &Inside,
    path: &ClientPath,
    sync: Option<bool>,
) -> Result<Vec<Version>, Error> {
    let mut all: Vec<Version> = Vec::new();
    let mut before: Option<Clock> = None;
    loop {
        let page = inside
            .ask(FileHistory {
                before,
                limit: Some(PAGE),
                sync: before.map_or(sync, |_| Some(false)),
                ..FileHistory::new(path.clone())
            })
            .await?;
        all.extend(page.versions);
        before = page.more;
        if before.is_none() {
            break;
        }
    }
    Ok(corrected(all))
}

/// Returns the versions in their order, the oldest first, each with the author
/// of its newest correction.
///
/// A content that was declared and never read is recorded when its edit ends. A
/// version that overwrote it may have been recorded before. A correction of that
/// version, recorded after the unread one, says that it came second.
pub(crate) fn corrected(newest_first: Vec<Version>) -> Vec<Version> {
    let mut corrections: HashMap<Clock, Vec<Version>> = HashMap::new();
    let mut versions: Vec<Version> = Vec::with_capacity(newest_first.len());
    for mut version in newest_first {
        if let Some(of) = version.amends {
            corrections.entry(of).or_default().push(version);
            continue;
        }
        let by = corrections.remove(&version.clock).unwrap_or_default();
        let unread = came_second(&version, &by)
            .and_then(|n| versions.iter().position(|one| is_unread_before(one, n)));
        if let Some(by) = by.into_iter().next() {
            version.author = by.author;
            version.evidence = by.evidence;
            version.edit = by.edit;
            version.command = by.command;
            version.candidates = by.candidates;
            version.formatted = by.formatted;
        }
        versions.insert(unread.unwrap_or(versions.len()), version);
    }
    versions.reverse();
    versions
}

fn is_unread_before(version: &Version, n: u64) -> bool {
    version.unobserved == Some(true) && version.clock.n < n
}

/// Returns the number of the newest correction that changes nothing about the
/// author, so it is about the order; `None` if there is none. `by` has the
/// corrections of the version, the newest first.
fn came_second(version: &Version, by: &[Version]) -> Option<u64> {
    let about = |one: &Version| (one.author.clone(), one.evidence, one.edit.clone());
    let earlier = by.iter().skip(1).chain([version]);
    let mut pairs = by.iter().zip(earlier);
    let order = pairs.find(|(by, earlier)| about(by) == about(earlier));
    order.map(|(by, _)| by.clock.n)
}

/// Returns the version for a content that was written while the file was not
/// tracked. Its clock is 0, since no fact has that number.
pub(crate) fn unrecorded(last: &Version, hash: Option<Hash>, size: u64) -> Version {
    Version {
        clock: Clock { n: 0, ..last.clock },
        kind: match hash {
            Some(_) => VersionKind::Modified,
            None => VersionKind::Deleted,
        },
        from: None,
        hash,
        size,
        author: Author::UNKNOWN,
        evidence: Evidence::Gap,
        edit: None,
        command: None,
        candidates: None,
        mode: None,
        mode_before: None,
        before_unknown: None,
        ..last.clone()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::history::unnamed;

    fn version(n: u64, text: &str) -> Version {
        let path = RelPath::new(b"f").unwrap();
        let mut version = unnamed(path, Hash::of(text.as_bytes()), text.as_bytes(), n);
        version.clock = Clock { epoch: 1, n };
        version
    }

    /// Returns the number of each version, in order.
    fn order(newest_first: Vec<Version>) -> Vec<u64> {
        let versions = corrected(newest_first);
        versions.iter().map(|version| version.clock.n).collect()
    }

    /// The user's save overwrote what the agent had written before it was read:
    /// the save was recorded as 2, the agent's content as 3, the order as 4.
    #[test]
    fn hist3_a_version_that_overwrote_an_unread_one_comes_second() {
        let mut unread = version(3, "agent");
        unread.unobserved = Some(true);
        let mut order_of_2 = version(4, "user");
        order_of_2.amends = Some(version(2, "").clock);
        let mut author_of_2 = version(6, "user");
        author_of_2.amends = order_of_2.amends;
        author_of_2.evidence = Evidence::Editor;
        let log = |corrections: &[&Version]| {
            let corrections = corrections.iter().map(|one| (*one).clone());
            let rest = [unread.clone(), version(2, "user"), version(1, "old")];
            corrections.chain(rest).collect::<Vec<_>>()
        };
        assert_eq!(order(log(&[])), [1, 2, 3]);
        assert_eq!(order(log(&[&order_of_2])), [1, 3, 2]);
        // A correction of the author says nothing about the order.
        assert_eq!(order(log(&[&author_of_2])), [1, 2, 3]);
        assert_eq!(order(log(&[&author_of_2, &order_of_2])), [1, 3, 2]);
        let both = corrected(log(&[&author_of_2, &order_of_2]));
        assert_eq!(both[2].evidence, Evidence::Editor);
        // Without an unread version, there is no other order.
        let plain = vec![order_of_2.clone(), version(3, "b"), version(2, "user")];
        assert_eq!(order(plain), [2, 3]);
    }
}
