//! The versions of one file, with their contents.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use touchmark_engine::history::{Claim, Step, Undos, Weave};
use touchmark_engine::recall;
use touchmark_engine::{Carriage, Fact, Marks, within};
use touchmark_proto::files::{FileHistory, FileSnapshot};
use touchmark_proto::{
    Author, ClientPath, Clock, Error, Evidence, FileMode, Hash, RelPath, Version, VersionKind,
    native,
};

use super::aside;
use crate::inside::Inside;
use crate::store::Reader;
use crate::system::stat::{MetadataExt as _, modified_ms};

/// The number of versions in one request.
const PAGE: u32 = 1_000;

/// The most bytes of contents that one history reads, newest first. Older
/// contents count as not stored, so their lines have no known author.
const MOST: usize = 256 << 20;

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
    /// What git brought (HIST-8), by the index of the version.
    brought: BTreeMap<usize, Carriage>,
    /// The mode of the current file; `None` if there is none.
    pub(crate) mode: Option<FileMode>,
    /// The lines whose author the user has named, oldest first (ATTR-18).
    claims: Vec<Claimed>,
}

/// Lines of one version whose author the user has named.
#[derive(Debug)]
struct Claimed {
    /// The version, with the author that the user named, and the number of the
    /// claim's fact as its clock.
    version: Version,
    lines: Claim,
}

impl Chain {
    /// Collects the history of a file up to now. It has no versions if the file
    /// was never tracked.
    ///
    /// # Errors
    /// Those of `file/history`.
    pub(crate) async fn of(
        inside: &Inside,
        contents: &Arc<Mutex<Reader>>,
        root: &Path,
        path: &ClientPath,
    ) -> Result<Self, Error> {
        let name = within(path, &native::bytes(root))?;
        let place = root.join(native::name(name.as_bytes()));
        let (log, own) = (Arc::clone(contents), name.clone());
        let above = root.to_owned();
        let of_name = aside(move || {
            let log = log.lock().unwrap_or_else(PoisonError::into_inner);
            of_name(&log, &above, &own).map(|found| (found, mode_of(&place)))
        });
        let mut now = None;
        let (versions, mode) = match of_name.await? {
            Some(((versions, bytes), mode)) => {
                let mode = mode.filter(|_| bytes.is_some());
                now = bytes;
                (versions, mode)
            }
            None => {
                let versions = versions(inside, path).await?;
                let file = versions.last().map_or(&name, |newest| &newest.path);
                let place = root.join(native::name(file.as_bytes()));
                let mode = aside(move || place.metadata().ok());
                let mode = mode.await?.and_then(|found| FileMode::new(found.mode()));
                (versions, mode)
            }
        };
        inside.looked().await?;
        let contents = Arc::clone(contents);
        let read = aside(move || {
            let contents = contents.lock().unwrap_or_else(PoisonError::into_inner);
            let brought = brought(&contents, &versions);
            let mut steps = steps(&contents, &versions);
            // The current content was read from disk, so it need not be stored.
            if let (Some(last @ Step::NotKept), Some(now)) = (steps.last_mut(), now) {
                *last = Step::Held(now.into());
            }
            let claims = claims(&contents, &versions);
            (steps, versions, brought, claims)
        });
        let (steps, versions, brought, claims) = read.await?;
        Ok(Self {
            versions,
            steps,
            brought,
            mode,
            claims,
        })
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
            let brought = brought(&contents, &versions);
            let steps = steps(&contents, &versions);
            let claims = claims(&contents, &versions);
            (versions, steps, brought, claims)
        });
        let (versions, steps, brought, claims) = read.await?;
        Ok(Self {
            versions,
            steps,
            brought,
            mode: None,
            claims,
        })
    }

    /// Returns the version with this index in the chain's weave: one of the
    /// file's versions, or the version of a claim's lines with the author that
    /// the user named.
    pub(crate) fn version(&self, step: usize) -> &Version {
        match step.checked_sub(self.versions.len()) {
            Some(claim) => &self.claims[claim].version,
            None => &self.versions[step],
        }
    }

    /// Returns the indexes that [`version`](Self::version) takes.
    pub(crate) fn all_steps(&self) -> std::ops::Range<usize> {
        0..self.versions.len() + self.claims.len()
    }

    /// Returns the index in the chain's weave of the version or claim with this
    /// number.
    pub(crate) fn step_of(&self, n: u64) -> Option<usize> {
        let claims = self.claims.iter().map(|claim| &claim.version);
        let mut all = self.versions.iter().chain(claims);
        all.position(|version| version.clock.n == n)
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
            let came = version.kind == VersionKind::Renamed && last.is_none();
            let same = version.mode.filter(|_| came);
            let before = version.mode_before.or(last).or(same);
            let after = version.mode.or(before);
            if value.is_none() {
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

    /// Returns why the change of a version cannot be distinguished from other
    /// changes, as clauses for people: why its content is not stored, and the
    /// contents of the versions directly before it. `largest` is the size
    /// limit of stored contents, in bytes.
    pub(crate) fn why_not_kept(&self, at: usize, log: &Reader, largest: u64) -> Vec<&'static str> {
        let earlier = (0..at).rev();
        let unstored = earlier.take_while(|step| self.steps[*step] == Step::NotKept);
        let steps = std::iter::once(at).chain(unstored);
        let causes = steps.filter_map(|step| {
            let version = &self.versions[step];
            let is_secret = || version.hash.is_some_and(|hash| log.is_secret(&hash));
            if version.before_unknown == Some(true) {
                return Some("the content before it was never read");
            }
            if self.steps[step] != Step::NotKept {
                return None;
            }
            Some(match version {
                _ if version.unobserved == Some(true) => "a content of it was never read",
                _ if is_secret() => "it had a secret, and secrets are not stored",
                _ if version.size > largest => "it is over the size limit of stored contents",
                _ => "its previous content is no longer stored",
            })
        });
        causes.collect()
    }

    /// Returns the lines of all versions. `undos` has those of the versions that
    /// are undos and redos. `asked` selects the versions whose changes are to be
    /// undone or reviewed. They count as changes of their authors.
    pub(crate) fn weave(&self, undos: &Undos, asked: impl Fn(usize) -> bool) -> Weave {
        let versions = self.versions.iter().enumerate();
        let mixed = versions.filter(|(_, version)| version.before_unknown == Some(true));
        let claims: Vec<Claim> = self.claims.iter().map(|one| one.lines.clone()).collect();
        let brought = self.brought.iter();
        let carried = brought.filter(|(at, how)| match how {
            Carriage::Carried | Carriage::Wiped => !asked(**at),
            Carriage::TakenBack | Carriage::Unclear => false,
        });
        let undos = Undos {
            carried: carried.map(|(at, _)| *at).collect(),
            ..undos.clone()
        };
        Weave::with_undos(&self.steps, &undos)
            .mixed(mixed.map(|(at, _)| at))
            .claimed(&claims)
    }

    /// Returns whether a version is nobody's change: git carried its content
    /// from one whole state to another (HIST-8).
    pub(crate) fn is_carried(&self, at: usize) -> bool {
        self.brought.get(&at) == Some(&Carriage::Carried)
    }

    /// Returns whether the lines that a version was the first to have are from
    /// git, not from the version's author.
    pub(crate) fn is_from_git(&self, at: usize) -> bool {
        let how = self.brought.get(&at);
        how.is_some_and(|how| *how != Carriage::Unclear)
    }
}

/// Returns what git brought, by the index of the version. What a session has
/// declared, or an editor reported, is not git's.
fn brought(log: &Reader, versions: &[Version]) -> BTreeMap<usize, Carriage> {
    let names: BTreeSet<&RelPath> = versions.iter().map(|version| &version.path).collect();
    let mut found: HashMap<u64, Carriage> = HashMap::new();
    for name in names {
        let records = log.carriages(name);
        let records = records.inspect_err(|error| tracing::debug!("{name}: {error}"));
        for record in records.unwrap_or_default() {
            if let Fact::GitBrought { version, how, .. } = record.fact {
                found.insert(version, how);
            }
        }
    }
    let doubtful = versions.iter().enumerate().filter(|(_, version)| {
        matches!(
            version.evidence,
            Evidence::Command | Evidence::Unmarked | Evidence::Gap
        )
    });
    doubtful
        .filter_map(|(at, version)| Some((at, *found.get(&version.clock.n)?)))
        .collect()
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

/// Returns all versions of a file up to now, oldest first. Corrections are
/// merged into the versions that they correct. The last has the clock 0 if it
/// is not recorded.
///
/// # Errors
/// Those of `file/history`.
pub(crate) async fn versions(inside: &Inside, path: &ClientPath) -> Result<Vec<Version>, Error> {
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

/// Returns the versions in their order, the oldest first, each with the author
/// of its newest correction.
///
/// A content that was declared and never read is recorded when its edit ends. A
/// version that overwrote it may have been recorded before. A correction of that
/// version, recorded after the unread one, says that it came second.
fn corrected(newest_first: Vec<Version>) -> Vec<Version> {
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

/// Returns the lines of these versions whose author the user has named.
fn claims(log: &Reader, versions: &[Version]) -> Vec<Claimed> {
    let paths: BTreeSet<&RelPath> = versions.iter().map(|version| &version.path).collect();
    let mut found = Vec::new();
    for record in paths
        .iter()
        .flat_map(|path| log.claims(Some(path)).unwrap_or_default())
    {
        let Fact::Claimed {
            version: n,
            lines,
            session,
            ..
        } = record.fact
        else {
            continue;
        };
        let step = versions.iter().position(|version| version.clock.n == n);
        let Some((step, version)) = step.map(|step| (step, &versions[step])) else {
            continue;
        };
        let version = Version {
            clock: Clock {
                n: record.n,
                ..version.clock
            },
            author: session.map_or(Author::USER, Author::agent),
            evidence: Evidence::Claimed,
            edit: None,
            candidates: None,
            ..version.clone()
        };
        let lines = Claim { step, lines };
        found.push(Claimed { version, lines });
    }
    found.sort_by_key(|claim| claim.version.clock.n);
    found
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
        let step = match held(contents, &hash) {
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
pub(crate) fn held(contents: &Reader, hash: &Hash) -> Option<Arc<[u8]>> {
    match contents.content(hash) {
        Ok(Some(bytes)) => Some(bytes),
        // An empty content need not be stored. The size proves nothing: that of
        // a content that was never read is 0.
        Ok(None) if *hash == Hash::of(&[]) => Some(Arc::from([])),
        Ok(None) => None,
        Err(error) => {
            tracing::debug!("a kept content: {error}");
            None
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::unnamed;
    use super::*;

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
