//! The versions of one file, with their contents.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use touchmark_engine::history::{Claim, Step, Undos, Weave};
use touchmark_engine::recall;
use touchmark_engine::{Carriage, Fact, Marks, within};
use touchmark_proto::{
    Author, ClientPath, Clock, Error, Evidence, FileMode, Hash, RelPath, Version, VersionKind,
    native,
};

use crate::content::MAX_BYTES;
use crate::context::aside;
use crate::inside::Inside;
use crate::past::versions::{
    Joins, OneFile, PAGE, Sources, Which, corrected, follow, pages, unrecorded, versions,
};
use crate::store::Reader;
use crate::system::open::read_regular;
use crate::system::stat::{MetadataExt as _, modified_ms};

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
    /// Where the file got another name: the index of its first version under the
    /// new name, and the name before, the oldest first.
    pub(crate) moves: Vec<(usize, RelPath)>,
    /// The lines whose author the user has named, oldest first (ATTR-18).
    claims: Vec<Claimed>,
    /// The current content, if it was read from disk.
    now: Option<Arc<[u8]>>,
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
        let outline = Self::outline(sources, path, which, joins).await?;
        outline.read(sources.log).await
    }

    /// As [`of`](Self::of), but without the contents: [`read`](Self::read)
    /// reads them.
    ///
    /// # Errors
    /// Those of `file/history`.
    pub(crate) async fn outline(
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
                let lineage = sources.lineage(&rows).await?;
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
        sources.looked(&versions).await?;
        let contents = Arc::clone(contents);
        let looked = aside(move || {
            let contents = contents.lock().unwrap_or_else(PoisonError::into_inner);
            let brought = brought(&contents, &versions);
            let claims = claims(&contents, &versions);
            (versions, brought, claims)
        });
        let (versions, brought, claims) = looked.await?;
        Ok(Self {
            versions,
            steps: Vec::new(),
            brought,
            mode,
            moves,
            claims,
            now: now.map(Arc::from),
        })
    }

    /// Reads the contents of the versions.
    ///
    /// # Errors
    /// `internalError`.
    pub(crate) async fn read(mut self, contents: &Arc<Mutex<Reader>>) -> Result<Self, Error> {
        let contents = Arc::clone(contents);
        aside(move || {
            let contents = contents.lock().unwrap_or_else(PoisonError::into_inner);
            self.steps = steps(&contents, &self.versions);
            // The current content was read from disk, so it need not be stored.
            if let (Some(last @ Step::NotKept), Some(now)) =
                (self.steps.last_mut(), self.now.take())
            {
                *last = Step::Held(now);
            }
            self
        })
        .await
    }

    /// Returns the newest version alone.
    pub(crate) fn newest(mut self) -> Self {
        let older = self.versions.len().saturating_sub(1);
        Self {
            versions: self.versions.split_off(older),
            mode: self.mode,
            now: self.now,
            ..Self::default()
        }
    }

    /// Returns a hash of all that is known of the versions. While it is the
    /// same, an answer about the history is, too.
    pub(crate) fn mark(&self) -> Hash {
        let known = (&self.versions, &self.moves, &self.brought, &self.claims);
        Hash::of(format!("{known:?}").as_bytes())
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
            moves: Vec::new(),
            claims,
            now: None,
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

    /// Returns the newest version with this content; `None` if there is none or
    /// if there is no file.
    pub(crate) fn newest_with(&self, content: &Step) -> Option<usize> {
        let is_file = matches!(content, Step::Held(_));
        let newest = self.steps.iter().rposition(|step| step == content);
        newest.filter(|_| is_file)
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
        let mixed = (0..self.versions.len()).filter(|at| self.is_mixed(*at));
        let claims: Vec<Claim> = self.claims.iter().map(|one| one.lines.clone()).collect();
        let brought = self.brought.iter();
        // Git may have what an undo or a redo has written.
        let is_ours = |at: usize| {
            let mut redos = undos.redos.iter();
            undos.undos.contains(&at) || redos.any(|(_, redo)| *redo == at)
        };
        let is_carrying =
            |at: usize, how| matches!(how, Carriage::Carried | Carriage::Wiped) && !is_ours(at);
        let (own, carried): (Vec<_>, Vec<_>) = brought
            .filter(|(at, how)| is_carrying(**at, **how))
            .partition(|(at, _)| asked(**at));
        let wiped = own.into_iter().filter(|(_, how)| **how == Carriage::Wiped);
        let undos = Undos {
            carried: carried.into_iter().map(|(at, _)| *at).collect(),
            wiped: wiped.map(|(at, _)| *at).collect(),
            ..undos.clone()
        };
        Weave::with_undos(&self.steps, &undos)
            .mixed(mixed)
            .claimed(&claims)
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

    /// Returns whether a version is no author's change: git carried its content
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
            Evidence::Command | Evidence::Process | Evidence::Unmarked | Evidence::Gap
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
        // One that cannot be read is not known to have changed.
        Some(mode) if mode.is_file() => match read_regular(place, MAX_BYTES) {
            Ok(bytes) => Some(bytes),
            Err(_) => return Some((versions, None)),
        },
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
    let mut left = MOST as u64;
    let mut meant: HashSet<Hash> = HashSet::new();
    for version in versions.iter().rev() {
        let Some(hash) = version.hash.filter(|hash| !meant.contains(hash)) else {
            continue;
        };
        if let Some(rest) = left.checked_sub(version.size) {
            left = rest;
            meant.insert(hash);
        }
    }
    // A content is stored as its difference from an earlier one, so the oldest
    // is read first.
    let mut known: HashMap<Hash, Step> = HashMap::new();
    let steps = versions.iter().map(|version| {
        let Some(hash) = version.hash else {
            return Step::Absent;
        };
        let read = || match meant.contains(&hash).then(|| held(contents, &hash)) {
            Some(Some(bytes)) => Step::Held(bytes),
            _ => Step::NotKept,
        };
        known.entry(hash).or_insert_with(read).clone()
    });
    steps.collect()
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
