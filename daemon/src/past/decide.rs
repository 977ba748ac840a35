//! Finds out from the log which names stand for which files. It is decided once
//! for each burst of changes, and recorded: the contents that it rests on may be
//! forgotten later.

mod bursts;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use touchmark_engine::Fact;
use touchmark_engine::history::lineage::{Begins, Name, decide};
use touchmark_proto::{Error, ErrorCode, Hash, Millis, RelPath, VersionKind, native};

use self::bursts::Row;
use super::Lineage;
use super::lineage::Snapshot;
use super::undos::{Recorded, Undone};
use crate::inside::Inside;
use crate::store::Reader;
use crate::time::Timeline;

/// The length of a burst of changes, in milliseconds.
const BURST: Millis = 2_000;

/// The longest burst, in milliseconds.
const LONGEST: Millis = 10_000;

/// How long after its removal a file may be found under another name by the same
/// command, in milliseconds. That is the longest time of a command window.
const GONE: Millis = 600_000;

/// The most earlier contents of a name that are looked at.
const CONTENTS: usize = 1_000;

/// The number of versions that are read from the log at a time.
const PAGE: usize = 10_000;

/// Which names stand for which files, up to the newest version.
pub(crate) struct Lineages {
    time: Timeline,
    root: PathBuf,
    undone: Undone,
    /// Locked during a look.
    pub(super) known: tokio::sync::Mutex<Known>,
}

/// What was found out up to a version.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) lineage: Arc<Lineage>,
    /// Up to this version, all is decided; `None` before the first look.
    upto: Option<u64>,
    /// Up to this version, all was decided by earlier looks, and is recorded.
    recorded: u64,
    /// The files that were found whose removal was not observed, the oldest
    /// first.
    found: Vec<Found>,
    /// How many of them are noted.
    arrived: usize,
    /// The names under which files were found, or to which an event has moved
    /// them, and which no session may have used since. So nothing may say when
    /// such a file leaves.
    pub(super) places: BTreeSet<RelPath>,
    /// The names whose file is gone, and whose removal is no command's.
    left: BTreeSet<RelPath>,
    names: HashMap<RelPath, Last>,
    /// The names with versions in the newest burst, if that is not over yet.
    recent: HashMap<RelPath, Last>,
    /// The files that were looked for, each with the last version of its name.
    pub(super) searched: HashSet<(RelPath, u64)>,
    /// The names that are free since not long ago, the oldest first.
    gone: VecDeque<RelPath>,
    /// The renames of not long ago, the oldest first: the removal of the earlier
    /// name may be recorded much later, as while an edit of it is open.
    renamed: VecDeque<Row>,
}

/// The last version of a name.
#[derive(Clone, Debug)]
pub(super) struct Last {
    pub(super) n: u64,
    time: Millis,
    /// When the last version with a content was made.
    pub(super) was_there: Millis,
    command: Option<u64>,
    /// The last content; `None` if it had none.
    pub(super) content: Option<Hash>,
    pub(super) is_there: bool,
    /// Whether it was made outside of all command windows. So nothing has looked
    /// where the file went.
    pub(super) is_outside: bool,
    /// Whether the name was looked at, and has no version.
    pub(super) is_first: bool,
}

/// The fact by which a file was found.
#[derive(Clone, Debug)]
struct Found {
    n: u64,
    time: Millis,
    path: RelPath,
    from: Option<RelPath>,
}

impl Lineages {
    pub(crate) fn new(time: Timeline, root: PathBuf, undone: Undone) -> Self {
        Self {
            time,
            root,
            undone,
            known: tokio::sync::Mutex::default(),
        }
    }

    /// Returns which changes of files were undos and redos.
    pub(crate) fn undone(&self) -> Arc<Recorded> {
        (self.undone)()
    }

    /// Returns which names stand for which files now. What was decided for
    /// completed bursts is recorded.
    ///
    /// # Errors
    /// `storage`.
    pub(crate) async fn now(
        &self,
        inside: &Inside,
        log: &Arc<Mutex<Reader>>,
    ) -> Result<Snapshot, Error> {
        self.decided(inside, log, false).await
    }

    /// As [`now`](Self::now), but ends the newest burst: what follows, as by an
    /// undo, is not decided together with it.
    ///
    /// # Errors
    /// `storage`.
    pub(crate) async fn settle(
        &self,
        inside: &Inside,
        log: &Arc<Mutex<Reader>>,
    ) -> Result<(), Error> {
        self.decided(inside, log, true).await.map(drop)
    }

    async fn decided(
        &self,
        inside: &Inside,
        log: &Arc<Mutex<Reader>>,
        settles: bool,
    ) -> Result<Snapshot, Error> {
        let mut known = self.known.lock().await;
        let (log, now) = (Arc::clone(log), self.time.now());
        let mut taken = std::mem::take(&mut *known);
        let (root, undone) = (self.root.clone(), Arc::clone(&self.undone));
        let look = tokio::task::spawn_blocking(move || {
            let log = log.lock().unwrap_or_else(PoisonError::into_inner);
            let found = taken.look(&log, &root, &undone(), now, settles);
            (taken, found)
        });
        let (taken, found) = look
            .await
            .map_err(|error| Error::new(ErrorCode::InternalError, error.to_string()))?;
        *known = taken;
        let Look { known, facts } = found?;
        inside.record(facts);
        Ok(known)
    }

    /// Returns whether this moment is so recent that the other half of a rename
    /// may not be recorded yet.
    pub(crate) fn is_recent(&self, time: Millis) -> bool {
        time.saturating_add(LONGEST) > self.time.now()
    }
}

/// The result of a look.
struct Look {
    known: Snapshot,
    /// What was decided by it for completed bursts.
    facts: Vec<Fact>,
}

impl Known {
    /// Returns the last version of a name.
    pub(super) fn last(&self, name: &RelPath) -> Option<&Last> {
        self.recent.get(name).or_else(|| self.names.get(name))
    }

    /// Returns all names with versions. Some may be returned twice.
    pub(super) fn all(&self) -> impl Iterator<Item = (&RelPath, &Last)> {
        self.recent.iter().chain(&self.names)
    }

    /// Forgets all but what was looked for, so that the next look reads the log
    /// from its beginning.
    pub(super) fn begin_anew(&mut self) {
        *self = Self {
            searched: std::mem::take(&mut self.searched),
            ..Self::default()
        };
    }

    fn look(
        &mut self,
        log: &Reader,
        root: &Path,
        undone: &Recorded,
        now: Millis,
        settles: bool,
    ) -> Result<Look, Error> {
        if self.upto.is_none() {
            let mut ends = Vec::new();
            for record in log.lineages()? {
                let Fact::Lineage {
                    path,
                    version,
                    from,
                    until,
                } = record.fact
                else {
                    continue;
                };
                // What was found without a version decides no burst, but ends it.
                match version {
                    Some(version) => {
                        self.recorded = self.recorded.max(version);
                        ends.extend(from.clone().map(|from| (until, from)));
                    }
                    None => self.found.push(Found {
                        n: record.n,
                        time: record.time,
                        path: path.clone(),
                        from: from.clone(),
                    }),
                }
                let version = match version {
                    Some(version) => version,
                    None => first_known(log, &path, until, record.n)?,
                };
                Arc::make_mut(&mut self.lineage).add(Begins {
                    version,
                    path,
                    from: from.map(|from| (from, until)),
                });
            }
            // The removal of the earlier name may be recorded after the new one.
            for (until, from) in ends {
                if until <= self.recorded {
                    continue;
                }
                let removal = log.changes_from(until - 1, 1)?.pop().and_then(Row::of);
                if removal.is_some_and(|row| (row.n, &row.path, row.hash) == (until, &from, None)) {
                    self.recorded = until;
                }
            }
            self.upto = Some(0);
        }
        self.recent.clear();
        let mut facts = Vec::new();
        let mut rows: VecDeque<Row> = VecDeque::new();
        let mut read = self.upto.unwrap_or_default();
        loop {
            let page = log.changes_from(read, PAGE)?;
            let is_all = page.len() < PAGE;
            read = page.last().map_or(read, |last| last.n);
            rows.extend(
                page.into_iter()
                    .filter_map(Row::of)
                    .map(|row| row.moved(undone)),
            );
            // The last burst may continue on the next page.
            while let Some((burst, end)) = self
                .burst(&rows)
                .filter(|(burst, _)| is_all || *burst < rows.len())
            {
                self.arrive(rows.front().map_or(0, |front| front.n));
                let all = &mut rows.make_contiguous()[..burst];
                // The end of a command also records the files that were there before it.
                // For a name that already has a version this tells nothing new.
                let first = all.iter().position(|row| row.command.is_some());
                if let Some(first) = first {
                    let mut known: HashSet<RelPath> = HashSet::new();
                    for row in all.iter_mut() {
                        row.is_earlier &= known.insert(row.path.clone());
                    }
                    all[first..].sort_by_key(|row| !row.is_earlier);
                }
                let burst = self.split(log, root, all);
                let all: Vec<Row> = rows.drain(..burst).collect();
                let decided = self.decide(log, root, &all);
                let last = all.iter().map(|row| row.n).max().unwrap_or_default();
                let is_over = self.found.last().is_some_and(|found| found.n > last);
                let is_newest = is_all && rows.is_empty() && !is_over;
                if !settles && is_newest && end.saturating_add(BURST) > now {
                    // It is not over yet. All of its rows are read again.
                    let first = all.iter().map(|row| row.n).min();
                    self.upto = first.map(|first| first - 1).or(self.upto);
                    for row in all {
                        if row.is_first && !self.is_new(&row) {
                            continue;
                        }
                        let last = row.last(self.last(&row.path));
                        self.recent.insert(row.path.clone(), last);
                    }
                    let mut lineage = (*self.lineage).clone();
                    decided.into_iter().for_each(|one| lineage.add(one));
                    let known = Snapshot {
                        lineage: Arc::new(lineage),
                        upto: read,
                    };
                    return Ok(Look { known, facts });
                }
                for begins in decided {
                    facts.push(fact(&begins));
                    Arc::make_mut(&mut self.lineage).add(begins);
                }
                self.note(&all);
            }
            if is_all {
                break;
            }
        }
        self.arrive(u64::MAX);
        self.upto = Some(read);
        let known = Snapshot {
            lineage: Arc::clone(&self.lineage),
            upto: read,
        };
        Ok(Look { known, facts })
    }

    /// Notes the files that were found before fact `n`: each is at its new name
    /// as it was at the earlier one.
    fn arrive(&mut self, n: u64) {
        while let Some(found) = self.found.get(self.arrived).filter(|found| found.n < n) {
            self.arrived += 1;
            let content = found.from.as_ref().and_then(|from| self.names.get(from));
            let content = content.and_then(|last| last.content);
            if self
                .names
                .get(&found.path)
                .is_none_or(|last| !last.is_there)
            {
                self.places.insert(found.path.clone());
                let last = Last {
                    n: found.n,
                    time: found.time,
                    was_there: found.time,
                    command: None,
                    content,
                    is_there: true,
                    is_outside: true,
                    is_first: true,
                };
                self.names.insert(found.path.clone(), last);
            }
        }
    }

    /// Decides one burst.
    fn decide(&self, log: &Reader, root: &Path, rows: &[Row]) -> Vec<Begins> {
        if rows.iter().all(|row| row.n <= self.recorded) {
            return Vec::new();
        }
        let own: HashSet<&RelPath> = {
            let versions = rows.iter().filter(|row| !row.is_first || self.is_new(row));
            versions.map(|row| &row.path).collect()
        };
        let gone = self.gone_before(rows, &own, root);
        let has_gone = !gone.is_empty() || rows.iter().any(|row| row.hash.is_none());
        let mut places: HashMap<&RelPath, usize> = HashMap::new();
        let mut names: Vec<Name> = Vec::new();
        let removals = rows.iter().enumerate();
        let removals = removals.filter(|(_, row)| row.hash.is_none());
        let removals: HashMap<&RelPath, usize> =
            removals.map(|(nth, row)| (&row.path, nth)).collect();
        let mut lasts: HashMap<&RelPath, &Row> = HashMap::new();
        for (nth, row) in rows.iter().enumerate() {
            let before = lasts.insert(&row.path, row);
            if row.is_first {
                // Nothing else tells when the file came.
                let is_new = match before {
                    Some(before) => before.hash.is_none(),
                    // One that leaves again was there before.
                    None => {
                        let left = removals.get(&row.path);
                        self.is_new(row) && left.is_none_or(|left| *left < nth)
                    }
                };
                if !has_gone || !is_new {
                    continue;
                }
            }
            let at = *places.entry(&row.path).or_insert_with(|| {
                names.push(self.name(row));
                names.len() - 1
            });
            names[at].versions.push(row.change());
        }
        for row in &self.renamed {
            let begin = self.lineage.begin(&row.path, u64::MAX);
            let is_freed = |one: &Row| Some(&one.path) == row.from.as_ref() && one.hash.is_none();
            if begin.is_some_and(|begin| begin.version >= row.n) || !rows.iter().any(is_freed) {
                continue;
            }
            let at = *places.entry(&row.path).or_insert_with(|| {
                names.push(self.name(row));
                names.len() - 1
            });
            (names[at].earlier, names[at].is_there) = (None, false);
            names[at].versions.insert(0, row.change());
        }
        let is_free =
            |name: &Name| name.versions.iter().any(|one| one.hash.is_none()) || !name.is_there;
        // Most bursts are edits in place.
        let has_begun = |name: &Name| self.lineage.begin(&name.path, u64::MAX).is_some();
        if gone.is_empty() && !names.iter().any(|name| is_free(name) || has_begun(name)) {
            return Vec::new();
        }
        for name in &mut names {
            let first = name.versions.first().map_or(0, |first| first.n);
            if has_begun(name) || is_free(name) {
                name.known = self.contents(log, &name.path, first);
            }
        }
        let mut text = |hash: &Hash| match log.peek(hash) {
            Ok(found) => found.or_else(|| (*hash == Hash::of(b"")).then(|| Arc::from([]))),
            Err(error) => {
                tracing::debug!("a kept content: {error}");
                None
            }
        };
        let decided = decide(&names, &gone, &mut text);
        for begins in &decided.begins {
            let (path, from) = (&begins.path, &begins.from);
            tracing::debug!(
                "{path}, version {}: another file, before {from:?}",
                begins.version
            );
        }
        if decided.is_limited {
            tracing::info!(
                "many files were moved together: only those with the same base name are compared"
            );
        }
        decided.begins
    }

    /// Returns a name as it was before its first version in a burst.
    fn name(&self, first: &Row) -> Name {
        let last = self.names.get(&first.path);
        // The version that a rename brought names the content under the other
        // name.
        let before = first.before.filter(|_| first.kind != VersionKind::Renamed);
        let is_there = match first.kind {
            VersionKind::Created => false,
            VersionKind::Renamed => last.is_some_and(|last| last.is_there),
            _ => true,
        };
        Name {
            path: first.path.clone(),
            earlier: before.or_else(|| last?.content),
            is_there,
            was_moved: last.is_some_and(|last| !self.is_at(&first.path, last))
                && self.lineage.has_left(&first.path),
            versions: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Returns the contents that a name had before a version, each with the
    /// version that ended its file; those that its present file had under earlier
    /// names last. Left out are those of files that have another name now.
    fn contents(&self, log: &Reader, name: &RelPath, before: u64) -> Vec<(Hash, Option<u64>)> {
        let mut contents = Vec::new();
        for earlier in self.lineage.names(name) {
            let most = CONTENTS.saturating_sub(contents.len());
            let records = log.history(&earlier, Some(before), most);
            for record in records.unwrap_or_default() {
                let Some(held) = record.fact.held() else {
                    continue;
                };
                let place = self.lineage.place(&earlier, record.n);
                if let Some(hash) = held.hash.filter(|_| place.name == *name) {
                    contents.push((hash, place.over));
                }
            }
            if contents.len() >= CONTENTS {
                break;
            }
        }
        contents
    }

    /// Notes the versions of a burst that is decided.
    fn note(&mut self, rows: &[Row]) {
        for row in rows {
            if row.is_first && !self.is_new(row) {
                continue;
            }
            let last = row.last(self.names.get(&row.path));
            // A version that no session has declared and no command has made
            // does not show that a session uses the name.
            let is_used = row.is_first || row.is_declared || !row.is_outside;
            if is_used || !last.is_there {
                self.places.remove(&row.path);
            }
            self.left.remove(&row.path);
            if !last.is_there {
                self.gone.push_back(row.path.clone());
                if last.is_outside {
                    self.left.insert(row.path.clone());
                }
            }
            if row.from.is_some() {
                self.renamed.push_back(row.clone());
            }
            // If a session does not use the name, nothing says when the file
            // leaves it. A command records what it removed after what it found,
            // so a file that an undo has moved would seem to have left unseen.
            if last.is_there && row.from.is_some() && !row.is_told {
                self.places.insert(row.path.clone());
            }
            self.names.insert(row.path.clone(), last);
        }
        let now = rows.last().map_or(0, |last| last.time);
        while self.gone.front().is_some_and(|path| {
            let last = self.names.get(path);
            last.is_none_or(|last| last.is_there || last.time.saturating_add(GONE) < now)
        }) {
            self.gone.pop_front();
        }
        let is_old = |row: &Row| row.time.saturating_add(GONE) < now;
        while self.renamed.front().is_some_and(is_old) {
            self.renamed.pop_front();
        }
        let last = rows.iter().map(|row| row.n).max();
        self.upto = self.upto.max(last);
    }
}

/// Returns whether there is nothing at a name on disk.
pub(super) fn is_gone(root: &Path, path: &RelPath) -> bool {
    let place = root.join(native::name(path.as_bytes()));
    place.symlink_metadata().is_err()
}

/// Returns the number from which on a name stands for the file that a search has
/// found at it, as fact `n` says, and that was gone from its earlier name as of
/// `until`. The name may have been looked at between the search and its record.
fn first_known(log: &Reader, name: &RelPath, until: u64, n: u64) -> Result<u64, Error> {
    let before = log.history(name, Some(n), 1)?.pop();
    let looked = before.filter(|before| match &before.fact {
        Fact::Baseline { held, .. } => before.n >= until && held.hash.is_some(),
        _ => false,
    });
    Ok(looked.map_or(n, |looked| looked.n))
}

fn fact(begins: &Begins) -> Fact {
    Fact::Lineage {
        path: begins.path.clone(),
        version: Some(begins.version),
        from: begins.from.as_ref().map(|(from, _)| from.clone()),
        until: begins.from.as_ref().map_or(0, |(_, until)| *until),
    }
}
