//! The bursts of changes that are decided together, and the files that may have
//! been moved in one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;

use touchmark_engine::history::lineage::{Begins, Change, Gone};
use touchmark_engine::{Fact, Record};
use touchmark_proto::{Evidence, Hash, Millis, RelPath, VersionKind};

use super::super::undos::Recorded;
use super::{BURST, GONE, Known, LONGEST, Last, is_gone};
use crate::store::Reader;

/// A version that follows so soon after another one is part of its burst, in
/// milliseconds: the two halves of a rename are recorded one after the other.
const SOON: Millis = 250;

/// How often it is looked in one burst whether a file has moved on.
const LOOKS: usize = 100;

/// A version, as far as it is needed here.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) n: u64,
    pub(super) time: Millis,
    pub(super) path: RelPath,
    pub(super) kind: VersionKind,
    pub(super) from: Option<RelPath>,
    pub(super) before: Option<Hash>,
    pub(super) hash: Option<Hash>,
    pub(super) command: Option<u64>,
    pub(super) is_outside: bool,
    /// Whether it is no version, but what was found at a name.
    pub(super) is_first: bool,
    /// Whether it was there before the command with whose versions it is
    /// recorded.
    pub(super) is_earlier: bool,
    pub(super) is_declared: bool,
    /// Whether it was made while the daemon was off, or overlooked it.
    pub(super) is_gap: bool,
    /// Whether an undo or a redo has moved the file from `from`.
    pub(super) is_told: bool,
}

impl Row {
    /// Returns what is known of the name after this version, given what was
    /// known before.
    pub(super) fn last(&self, before: Option<&Last>) -> Last {
        Last {
            n: self.n,
            time: self.time,
            command: self.command,
            content: self.hash.or(self.before).or_else(|| before?.content),
            was_there: match (self.hash, before) {
                (None, Some(before)) => before.was_there,
                _ => self.time,
            },
            is_there: self.hash.is_some(),
            is_outside: self.is_outside,
            is_first: self.is_first,
        }
    }

    /// Returns a version, or what was found at a name; `None` for a correction.
    pub(super) fn of(record: Record) -> Option<Self> {
        let fact = match record.fact {
            Fact::Version(fact) => fact,
            Fact::Baseline {
                path,
                held,
                untracked,
                ..
            } => {
                return held.hash.is_some().then_some(Self {
                    n: record.n,
                    time: record.time,
                    path,
                    kind: VersionKind::Created,
                    from: None,
                    before: None,
                    hash: held.hash,
                    command: None,
                    is_outside: true,
                    is_first: true,
                    is_earlier: untracked,
                    is_declared: false,
                    is_gap: false,
                    is_told: false,
                });
            }
            _ => return None,
        };
        fact.amends.is_none().then(|| Self {
            n: record.n,
            time: record.time,
            path: fact.path,
            kind: fact.kind,
            from: fact.from,
            before: fact.before,
            hash: fact.held.hash,
            command: fact.command,
            is_outside: fact.command.is_none(),
            is_first: false,
            is_earlier: false,
            is_declared: fact.evidence == Evidence::Declared,
            is_gap: fact.evidence == Evidence::Gap,
            is_told: false,
        })
    }

    /// Returns what happened to the name.
    pub(super) fn change(&self) -> Change {
        Change {
            n: self.n,
            hash: self.hash,
            command: self.command,
            hint: self.from.clone(),
            is_certain: self.is_told,
            is_edit: self.is_declared && self.kind == VersionKind::Modified && self.from.is_none(),
        }
    }

    /// Adds the earlier name of a file that an undo or a redo has moved.
    pub(super) fn moved(mut self, undone: &Recorded) -> Self {
        let content = self.hash.filter(|_| self.command.is_none());
        let from = content.and_then(|content| undone.came(&self.path, self.time, content));
        if let Some(from) = from {
            (self.from, self.is_told) = (Some(from.clone()), true);
        }
        self
    }
}

impl Known {
    /// Returns how many of the rows the first burst has, and when the last of
    /// them was made; `None` if there are no rows. It ends where a file was found
    /// at the latest, and where everything was decided by an earlier look. What
    /// was found at names makes a burst no longer.
    pub(super) fn burst(&self, rows: &VecDeque<Row>) -> Option<(usize, Millis)> {
        let front = rows.front()?;
        let found = self.found.partition_point(|found| found.n < front.n);
        let end = self.found.get(found).map_or(u64::MAX, |found| found.n);
        let end = match front.n <= self.recorded {
            true => end.min(self.recorded),
            false => end,
        };
        let begun = rows.iter().find(|row| !row.is_first);
        let begun = begun.filter(|row| row.time <= front.time.saturating_add(SOON));
        let first = begun.unwrap_or(front).time;
        let mut last = first;
        let (mut command, mut was_seen) = (None, false);
        let is_in = |row: &&Row| {
            // What follows a gap was not made together with what was seen before.
            if row.is_gap && was_seen {
                return false;
            }
            was_seen |= !row.is_first && !row.is_gap;
            // A burst has at most one command.
            if row
                .command
                .is_some_and(|own| *command.get_or_insert(own) != own)
            {
                return false;
            }
            if row.n > end {
                return false;
            }
            let is_in = row.time <= first.saturating_add(BURST)
                || row.time <= last.saturating_add(SOON)
                    && row.time <= first.saturating_add(LONGEST);
            if is_in && !row.is_first {
                last = row.time;
            }
            is_in
        };
        let count = rows.iter().take_while(is_in).count();
        Some((count, rows.get(count.checked_sub(1)?)?.time))
    }

    /// Returns where a burst ends because a file has moved on in it: after the
    /// row that found the file under a new name, before a row with which it
    /// leaves a name under which it was changed or made, before it moves back,
    /// and before another one gets the name that it has left.
    pub(super) fn split(&self, log: &Reader, root: &Path, rows: &[Row]) -> usize {
        let mut lasts: HashMap<&RelPath, &Row> = HashMap::new();
        let mut by_hash: HashMap<Hash, Vec<usize>> = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            let with = row.hash.map(|hash| by_hash.entry(hash).or_default());
            with.into_iter().for_each(|with| with.push(at));
        }
        let with = |hash: Hash| by_hash.get(&hash).into_iter().flatten().copied();
        // Each look compares contents.
        let mut looks = 0;
        for (at, row) in rows.iter().enumerate().skip(1) {
            let (earlier, last) = (&rows[..at], &rows[at - 1]);
            lasts.insert(&last.path, last);
            let mut any = |is_end: &dyn Fn(&Begins) -> bool| {
                looks += 1;
                looks <= LOOKS && self.decide(log, root, earlier).iter().any(is_end)
            };
            if last.is_first && !row.is_first {
                let is_found = |begins: &Begins| {
                    let mut firsts = earlier.iter().filter(|row| row.is_first);
                    begins.from.is_some() && firsts.any(|row| row.n == begins.version)
                };
                if any(&is_found) {
                    return at;
                }
            }
            // A file that a session has declared is not a temporary file of a save.
            if let Some(hash) = last.hash.filter(|_| last.is_declared) {
                let is_made = of(earlier, &last.path)
                    .find(|other| other.hash.is_some())
                    .is_some_and(|first| first.is_declared && first.kind == VersionKind::Created);
                let mut later = with(hash).filter(|other| *other >= at);
                if is_made && later.any(|other| rows[other].path != last.path) {
                    return at;
                }
            }
            if row.is_first {
                continue;
            }
            let is_free = |path: &RelPath| lasts.get(path).is_some_and(|last| last.hash.is_none());
            let from = |begins: &Begins| begins.from.as_ref().map(|(from, _)| from.clone());
            match (row.hash, lasts.get(&row.path).and_then(|last| last.hash)) {
                (Some(hash), None) if is_free(&row.path) => {
                    let is_away = |begins: &Begins| {
                        let mut contents = of(earlier, &begins.path).filter_map(|other| other.hash);
                        let first = contents.next();
                        let last = lasts.get(&begins.path).and_then(|last| last.hash);
                        // Its removal may not be recorded yet.
                        let mut later = of(&rows[at..], &begins.path);
                        let goes_back = last == Some(hash)
                            && (later.any(|other| other.hash.is_none())
                                || is_gone(root, &begins.path));
                        // A backup is not changed.
                        from(begins).as_ref() == Some(&row.path)
                            && (goes_back || contents.any(|other| Some(other) != first))
                    };
                    if any(&is_away) {
                        // The other half of the move that brings the new file, if
                        // that came first.
                        let left = |row: &Row| row.hash.is_none() && row.before == Some(hash);
                        let is_there = lasts.values().any(|last| last.hash == Some(hash));
                        let half = earlier.iter().rposition(left).filter(|_| !is_there);
                        return half.filter(|half| *half > 0).unwrap_or(at);
                    }
                }
                (None, Some(hash)) => {
                    let mut later = with(hash).filter(|other| *other > at);
                    if let Some(back) = later.find(|other| is_free(&rows[*other].path)) {
                        let goes_back = |begins: &Begins| {
                            begins.path == row.path
                                && from(begins).as_ref() == Some(&rows[back].path)
                        };
                        if any(&goes_back) {
                            return at;
                        }
                    }
                }
                _ => {}
            }
        }
        rows.len()
    }

    /// Returns whether something was found at a name at which nothing was known
    /// to be.
    pub(super) fn is_new(&self, row: &Row) -> bool {
        let last = self.last(&row.path);
        row.is_first && last.is_none_or(|last| !self.is_at(&row.path, last))
    }

    /// Returns whether a name has a file, as far as is known. Of a name that has
    /// no version nothing says that its file has left.
    pub(super) fn is_at(&self, name: &RelPath, last: &Last) -> bool {
        last.is_there && !(last.is_first && self.lineage.has_left(name))
    }

    /// Returns the files that were gone before the burst, and may have been moved
    /// in it: they were removed by the same command, or a rename names them, or
    /// the daemon has not seen where they went.
    pub(super) fn gone_before(
        &self,
        rows: &[Row],
        own: &HashSet<&RelPath>,
        root: &Path,
    ) -> Vec<Gone> {
        let of_burst = |command: u64| rows.iter().any(|row| row.command == Some(command));
        let gone = self.gone.iter().filter(|path| !own.contains(path));
        let near = gone.filter_map(|path| {
            let last = self.names.get(path).filter(|last| !last.is_there)?;
            let is_near = last.command.is_some_and(of_burst)
                || rows.iter().any(|row| row.from.as_ref() == Some(path));
            (is_near && !self.lineage.has_left(path)).then_some(Gone {
                path: path.clone(),
                last: last.content?,
                ends: last.n,
                command: last.command,
            })
        });
        let mut all: Vec<Gone> = near.collect();
        let unseen = |path: &RelPath| {
            let last = self.names.get(path)?;
            let is_other = !own.contains(path) && !self.lineage.has_left(path);
            is_other.then_some(Gone {
                path: path.clone(),
                last: last.content?,
                ends: last.n + u64::from(last.is_there),
                command: None,
            })
        };
        let comes = |row: &&Row| {
            let is_made = row.kind == VersionKind::Created && row.hash.is_some();
            self.is_new(row) || is_made && row.is_outside && !row.is_first
        };
        let new: Vec<&Row> = rows.iter().filter(comes).collect();
        if !new.is_empty() {
            let is_near = |path: &&RelPath| {
                let last = self.names.get(*path);
                last.is_some_and(|last| {
                    let is_alike = |row: &&Row| {
                        row.hash == last.content
                            || row.path.file_name() == path.file_name()
                            || row.time <= last.time.saturating_add(GONE)
                    };
                    new.iter().any(is_alike)
                })
            };
            all.extend(self.left.iter().filter(is_near).filter_map(unseen));
        }
        if rows.iter().any(|row| row.is_outside && row.hash.is_some()) {
            let is_away = |path: &RelPath| is_gone(root, path);
            let places = self.places.iter().filter(|path| is_away(path));
            all.extend(places.filter_map(unseen));
            let came = rows.iter().filter(|row| row.from.is_some());
            all.extend(came.filter_map(|came| {
                let last = of(rows, &came.path).next_back()?;
                is_away(&came.path).then_some(Gone {
                    path: came.path.clone(),
                    last: last.hash?,
                    ends: last.n + 1,
                    command: None,
                })
            }));
        }
        all.sort_by(|one, other| one.path.cmp(&other.path));
        all.dedup_by(|one, other| one.path == other.path);
        all
    }
}

/// Returns the rows of one name.
fn of<'r>(rows: &'r [Row], path: &'r RelPath) -> impl DoubleEndedIterator<Item = &'r Row> {
    rows.iter().filter(move |row| row.path == *path)
}
