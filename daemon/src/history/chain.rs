//! The versions of one file, with their contents.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use touchmark_engine::history::{Step, Undos, Weave};
use touchmark_engine::recall;
use touchmark_engine::{Marks, within};
use touchmark_proto::files::{FileHistory, FileSnapshot};
use touchmark_proto::{
    Author, ClientPath, Clock, Error, Evidence, FileMode, Hash, RelPath, Version, VersionKind,
    native,
};

use super::aside;
use crate::inside::Inside;
use crate::past::{Lineage, Lineages};
use crate::store::Reader;
use crate::system::stat::{MetadataExt as _, modified_ms};

/// The number of versions in one request.
const PAGE: u32 = 1_000;

/// The most bytes of contents that one history reads, newest first. Older
/// contents count as not stored, so their lines have no known author.
const MOST: usize = 256 << 20;

/// The most names that a file is followed through.
const NAMES: usize = 1_000;

/// A file's history.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// All versions, oldest first, beginning with the log's baseline.
    /// Corrections are merged into the versions that they correct. The last
    /// version is the file's current content; its clock is 0 if it is not
    /// recorded.
    pub(crate) versions: Vec<Version>,
    /// The content of each version.
    pub(crate) steps: Vec<Step>,
    /// The mode of the current file; `None` if there is none.
    pub(crate) mode: Option<FileMode>,
    /// Where the file got another name: the index of its first version under the
    /// new name, and the name before, the oldest first.
    pub(crate) moves: Vec<(usize, RelPath)>,
}

/// The versions of one file under all its names.
#[derive(Debug, Default)]
pub(crate) struct OneFile {
    /// The versions, oldest first.
    pub(crate) versions: Vec<Version>,
    /// As [`Chain::moves`].
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
    pub(crate) lineages: &'a Lineages,
    /// The workspace's canonical path.
    pub(crate) root: &'a Path,
}

/// The file that has the name now.
pub(crate) fn current(_: &[Version]) -> u64 {
    u64::MAX
}

/// No file is looked at together with the one before it.
pub(crate) fn alone(_: &Version, _: u64) -> bool {
    false
}

impl Chain {
    /// Collects the history of a file up to now, under all its names (HIST-9).
    /// It has no versions if the file was never tracked.
    ///
    /// # Errors
    /// Those of `file/history`.
    pub(crate) async fn of(
        sources: Sources<'_>,
        path: &ClientPath,
        which: Which<'_>,
        joins: Joins<'_>,
    ) -> Result<Self, Error> {
        let (contents, root) = (sources.log, sources.root);
        let name = within(path, &native::bytes(root))?;
        let place = root.join(native::name(name.as_bytes()));
        let (log, own) = (Arc::clone(contents), name.clone());
        let above = root.to_owned();
        let of_name = aside(move || {
            let log = log.lock().unwrap_or_else(PoisonError::into_inner);
            of_name(&log, &above, &own).map(|found| (found, mode_of(&place)))
        });
        let mut now = None;
        let (file, mode) = match of_name.await? {
            Some(((rows, bytes), mode)) => {
                let mode = mode.filter(|_| bytes.is_some());
                now = bytes;
                let lineage = sources.lineages.now(sources.inside, contents).await?;
                let at = which(&rows);
                let name = name.clone();
                let file = follow(sources.inside, rows, name, at, &lineage, joins).await?;
                (file, mode)
            }
            None => {
                let file = versions(sources, path, which, joins).await?;
                let name = file.versions.last().map_or(&name, |newest| &newest.path);
                let place = root.join(native::name(name.as_bytes()));
                let mode = aside(move || place.metadata().ok());
                let mode = mode.await?.and_then(|found| FileMode::new(found.mode()));
                (file, mode)
            }
        };
        let OneFile { versions, moves } = file;
        let newest = versions.last().map_or(&name, |newest| &newest.path);
        let place = root.join(native::name(newest.as_bytes()));
        let contents = Arc::clone(contents);
        let read = aside(move || {
            let contents = contents.lock().unwrap_or_else(PoisonError::into_inner);
            let mut steps = steps(&contents, &versions);
            // The current content was read from disk, so it need not be stored.
            if let (Some(last @ Step::NotKept), Some(now)) = (steps.last_mut(), now) {
                *last = Step::Held(now.into());
            }
            // So is a content that is not recorded.
            if let (Some(last @ Step::NotKept), Some(newest)) = (steps.last_mut(), versions.last())
                && newest.clock.n == 0
                && newest.size <= MOST as u64
                && let Ok(bytes) = std::fs::read(place)
                && Some(Hash::of(&bytes)) == newest.hash
            {
                *last = Step::Held(bytes.into());
            }
            (steps, versions)
        });
        let (steps, versions) = read.await?;
        Ok(Self {
            versions,
            steps,
            mode,
            moves,
        })
    }

    /// Returns the names that the file had, the newest first.
    pub(crate) fn names<'c>(&'c self, path: &'c RelPath) -> impl Iterator<Item = &'c RelPath> {
        let earlier = self.moves.iter().rev().map(|(_, name)| name);
        std::iter::once(path).chain(earlier)
    }

    /// Returns the first of the newest moves that are all by versions that `meant`
    /// selects: the index of its version, and the name before. `None` if there
    /// is none, or if the file was theirs alone before. A redo and its undo do
    /// not count.
    pub(crate) fn moved_by(
        &self,
        undos: &Undos,
        meant: impl Fn(usize) -> bool,
    ) -> Option<(usize, &RelPath)> {
        let is_back = |at: usize| {
            let mut redos = undos.redos.iter();
            redos.any(|(undo, redo)| (*undo..=*redo).contains(&at))
        };
        let newest_first = self.moves.iter().rev().filter(|(at, _)| !is_back(*at));
        let (at, from) = newest_first
            .take_while(|(at, _)| *at < self.versions.len() && meant(*at))
            .last()?;
        let before = self.steps[..*at].iter().enumerate();
        let mut others =
            before.filter(|(step, content)| !meant(*step) && **content != Step::Absent);
        others.next().map(|_| (*at, from))
    }

    /// Collects the history of a file as it is recorded. Its current content is
    /// not looked at, and nothing waits for a fence.
    ///
    /// # Errors
    /// Those of `file/history`.
    pub(crate) async fn recorded(
        inside: &Inside,
        contents: &Arc<Mutex<Reader>>,
        path: &ClientPath,
    ) -> Result<Self, Error> {
        let versions = pages(inside, path, Some(false)).await?;
        let contents = Arc::clone(contents);
        let read = aside(move || {
            let contents = contents.lock().unwrap_or_else(PoisonError::into_inner);
            let steps = steps(&contents, &versions);
            (versions, steps)
        });
        let (versions, steps) = read.await?;
        Ok(Self {
            versions,
            steps,
            mode: None,
            moves: Vec::new(),
        })
    }

    /// Returns whether there was a symlink at this name at any time (SCOPE-7).
    pub(crate) fn has_links(&self) -> bool {
        self.versions.iter().any(is_link)
    }

    /// Returns the mode that the file would have without the versions that
    /// `meant` selects: the last mode that another version gave it. A redo gives
    /// no mode of its own, it takes an undo back.
    pub(crate) fn mode_without(
        &self,
        undos: &Undos,
        meant: impl Fn(usize) -> bool,
    ) -> Option<FileMode> {
        let (mut value, mut last) = (None, None);
        // The value before each version, for the undos that were taken back.
        let mut values = Vec::with_capacity(self.versions.len());
        for (at, version) in self.versions.iter().enumerate() {
            // A move changes no mode.
            let came = version.kind == VersionKind::Renamed && version.mode_before.is_none();
            let same = version.mode.filter(|_| came);
            let before = version.mode_before.or(same).or(last);
            let after = version.mode.or(before);
            if value.is_none() || same.is_some() && before != last {
                value = before;
            }
            let redo = undos.redos.iter().find(|(_, redo)| *redo == at);
            let earlier = redo.and_then(|(undo, _)| values.get(*undo).copied());
            values.push(value);
            if let Some(earlier) = earlier {
                value = earlier;
            } else if !meant(at) && (after != before || value.is_none()) {
                value = after;
            }
            last = after;
        }
        // The file's mode was changed since the newest version, which is not
        // recorded yet.
        match self.mode.filter(|_| self.mode != last && last.is_some()) {
            Some(now) => Some(now),
            None => value,
        }
    }

    /// Returns the lines of all versions. `undos` has those of the versions that
    /// are undos and redos.
    pub(crate) fn weave(&self, undos: &Undos) -> Weave {
        let mixed = (0..self.versions.len()).filter(|at| self.is_mixed(*at));
        Weave::with_undos(&self.steps, undos).mixed(mixed)
    }

    /// Returns whether a version may include changes of others than its author:
    /// the content before is not known. So it is for a file that came from
    /// another name whose history it does not continue.
    pub(crate) fn is_mixed(&self, at: usize) -> bool {
        self.versions.get(at).is_some_and(|version| {
            let before = at
                .checked_sub(1)
                .and_then(|before| self.versions.get(before));
            let is_first = before.is_none_or(|before| before.hash.is_none());
            let from = version.from.as_ref();
            let came = is_first && from.is_some_and(|from| *from != version.path);
            version.before_unknown == Some(true) || came
        })
    }
}

fn is_link(version: &Version) -> bool {
    version.mode.is_some_and(FileMode::is_link)
}

fn mode_of(place: &Path) -> Option<FileMode> {
    let found = place.symlink_metadata().ok()?;
    FileMode::new(found.mode()).filter(|_| !found.is_dir())
}

/// Returns the versions of a name, oldest first, if a symlink was at it at any
/// time, a directory is at it now, or a link replaced a directory above it;
/// `None` for any other name. The versions are those of the name, whatever the
/// link resolves to. The last is the current one, with its bytes if they are
/// available.
fn of_name(log: &Reader, root: &Path, path: &RelPath) -> Option<(Vec<Version>, Option<Vec<u8>>)> {
    let place = &root.join(native::name(path.as_bytes()));
    let limit = PAGE as usize;
    let records = log.history(path, None, limit + 1).ok()?;
    let rows = recall::history(0, &records, limit, &Marks::default()).versions;
    let is_directory = || place.symlink_metadata().is_ok_and(|found| found.is_dir());
    // A link has replaced a directory above: the file behind the link is
    // another file.
    let newest = rows.first()?;
    let came = |found: std::fs::Metadata| {
        let later = newest.hash.is_none() || modified_ms(&found) > newest.time;
        found.is_symlink() && later
    };
    let is_behind = place
        .ancestors()
        .skip(1)
        .take_while(|above| *above != root)
        .any(|above| above.symlink_metadata().is_ok_and(came));
    if !rows.iter().any(is_link) && !is_directory() && !is_behind {
        return None;
    }
    let mut versions = corrected(rows);
    let mode = mode_of(place).filter(|_| !is_behind);
    let bytes = match mode {
        Some(mode) if mode.is_link() => place
            .read_link()
            .ok()
            .map(|to| native::bytes(&to).into_owned()),
        Some(mode) if mode.is_file() => std::fs::read(place).ok(),
        _ => None,
    };
    let now = bytes.as_deref().map(Hash::of);
    let last = versions.last()?;
    if last.hash != now || is_link(last) != mode.is_some_and(FileMode::is_link) {
        let size = bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
        let mut found = unrecorded(last, now, size);
        found.mode = mode;
        versions.push(found);
    }
    Some((versions, bytes))
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
        log,
        lineages,
        root,
    } = sources;
    let rows = of_one_name(inside, path).await?;
    // The removal of the earlier name may be recorded a little later. It is
    // recorded before an answer about that name.
    let came = rows.iter().rfind(|version| version.from.is_some());
    if let Some(from) = came.and_then(|came| came.from.as_ref())
        && came.is_some_and(|came| lineages.is_recent(came.time))
    {
        let ask = FileHistory {
            path: from.into(),
            before: None,
            limit: Some(1),
            sync: None,
            verify: None,
        };
        if let Err(error) = inside.ask(ask).await {
            tracing::debug!("an earlier name: {error}");
        }
    }
    let name = match rows.last() {
        Some(last) => last.path.clone(),
        None => {
            let name = within(path, &native::bytes(root))?;
            lineages.adopt(sources, name.clone()).await?;
            name
        }
    };
    let lineage = lineages.now(inside, log).await?;
    let (is_unknown, at) = (rows.is_empty(), which(&rows));
    let mut file = follow(inside, rows, name.clone(), at, &lineage, joins).await?;
    // A name without versions stands for a file that had another name.
    if let (true, Some(last)) = (is_unknown, file.versions.last()) {
        let now = inside.ask(FileSnapshot { path: path.clone() }).await?;
        let mut found = unrecorded(last, now.hash, now.size);
        // Whoever moved it while the daemon ran has written it since: what an
        // agent writes, and what a command does, is recorded.
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

/// Returns the versions of the file that has version `at` of a name, whose
/// versions are `rows`.
async fn follow(
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
        let is_joined = begin.is_some() && before.is_some_and(|before| joins(before, first));
        match begin.map(|begin| &begin.from) {
            None => break,
            Some(Some((from, _))) if *from == name && is_joined => {
                (until, at) = (first, first.saturating_sub(1));
            }
            Some(Some((from, end))) => {
                (name, until, at) = (from.clone(), *end, end.saturating_sub(1));
                rows = pages(inside, &(&name).into(), Some(false)).await?;
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
async fn of_one_name(inside: &Inside, path: &ClientPath) -> Result<Vec<Version>, Error> {
    let mut versions = pages(inside, path, None).await?;
    // The file may not have been tracked lately.
    if let Some(last) = versions.last() {
        let now = inside.ask(FileSnapshot { path: path.clone() }).await?;
        if last.hash != now.hash {
            versions.push(unrecorded(last, now.hash, now.size));
        }
    }
    Ok(versions)
}

/// Returns the recorded versions of a file, oldest first. Corrections are merged
/// into the versions that they correct. `sync` is that of the first request.
async fn pages(
    inside: &Inside,
    path: &ClientPath,
    sync: Option<bool>,
) -> Result<Vec<Version>, Error> {
    let mut all: Vec<Version> = Vec::new();
    let mut before: Option<Clock> = None;
    loop {
        let page = inside
            .ask(FileHistory {
                path: path.clone(),
                before,
                limit: Some(PAGE),
                sync: before.map_or(sync, |_| Some(false)),
                verify: None,
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

/// Returns the versions in their order, each with the author of its newest
/// correction.
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

/// Returns the version for a content that was written while the file was not
/// tracked. Its clock is 0, since no fact has that number.
fn unrecorded(last: &Version, hash: Option<Hash>, size: u64) -> Version {
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

/// Returns the contents of versions, as far as they are stored and within
/// [`MOST`]. A content that several versions have is looked up once.
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

/// Returns the content of a version; `None` if it is not stored.
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
