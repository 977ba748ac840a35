//! Which name that begins continues which name that has ended.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::{Hash, RelPath};

use super::{MOST, MOST_EQUAL, Stay, Texts};
use crate::history::likeness::HALF;

/// The files that continue under another name.
pub(super) struct Pairs<'s, 'a> {
    /// The times for which each name stood for one file.
    pub(super) stays: &'s [Stay<'a>],
    /// The file that each one continues, by their indexes.
    pub(super) by: BTreeMap<usize, usize>,
    /// The files that are continued.
    pub(super) taken: BTreeSet<usize>,
}

/// How well a gone file fits a new one. The greatest fits best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fit {
    /// How many thousandths of the contents are alike.
    alike: u64,
    /// Whether the hint names the gone file.
    is_hinted: bool,
    /// How many components at the end of the two paths are equal.
    ending: usize,
}

impl Pairs<'_, '_> {
    pub(super) fn all(&self, is_meant: impl Fn(&Stay<'_>) -> bool) -> Vec<usize> {
        let all = 0..self.stays.len();
        all.filter(|at| is_meant(&self.stays[*at])).collect()
    }

    /// Returns the file that the name had before, as far as the burst has it. The
    /// files of a name follow each other.
    pub(super) fn before(&self, at: usize) -> Option<usize> {
        let before = at.checked_sub(1)?;
        (self.stays[before].path == self.stays[at].path).then_some(before)
    }

    pub(super) fn fit(&self, new: usize, old: usize, alike: u64) -> Fit {
        let (new, old) = (&self.stays[new], &self.stays[old]);
        Fit {
            alike,
            is_hinted: new.hint == Some(old.path),
            ending: ending(new.path, old.path),
        }
    }

    /// Returns whether one may continue the other: it has another name, began
    /// later, by the same command or by none, and is no half of an exchange. A
    /// file that a session edited at its old name later was still there then.
    pub(super) fn may(&self, new: usize, old: usize) -> bool {
        let (new, old) = (&self.stays[new], &self.stays[old]);
        let is_exchange = new.was_there && old.is_there;
        let is_by = new.by[0] == old.by[1] || new.hint == Some(old.path);
        let is_earlier = old.starts < new.starts && old.edited < new.starts;
        new.path != old.path && is_earlier && is_by && !is_exchange
    }

    /// Pairs the files that are known to have been moved.
    pub(super) fn certain(&mut self, old: &[usize]) {
        for new in self.all(|stay| stay.is_certain && stay.starts.is_some()) {
            let hint = self.stays[new].hint;
            let from = |at: &&usize| hint == Some(self.stays[**at].path);
            if let Some(old) = old.iter().rfind(from) {
                self.by.insert(new, *old);
                self.taken.insert(*old);
            }
        }
    }

    /// Pairs files with the same content.
    pub(super) fn same(&mut self, new: &[usize], old: &[usize]) {
        let mut by_content: BTreeMap<Hash, [Vec<usize>; 2]> = BTreeMap::new();
        for at in new.iter().filter(|at| !self.by.contains_key(at)) {
            let of = by_content.entry(self.stays[*at].first).or_default();
            of[0].push(*at);
        }
        for at in old.iter().filter(|at| !self.taken.contains(at)) {
            let of = by_content.entry(self.stays[*at].last).or_default();
            of[1].push(*at);
        }
        by_content.remove(&Hash::of(b""));
        for [new, old] in by_content.into_values() {
            let mut fits = Vec::new();
            for new in &new {
                let others = old.iter().filter(|old| self.may(*new, **old));
                fits.extend(others.map(|old| (self.fit(*new, *old, 2 * HALF), *new, *old)));
            }
            self.take(fits, true);
            self.take_only(new, old);
        }
    }

    /// Pairs files with the same content if only one way to pair all of them is
    /// possible, as where one file was moved several times.
    pub(super) fn take_only(&mut self, mut new: Vec<usize>, mut old: Vec<usize>) {
        new.retain(|at| !self.by.contains_key(at));
        old.retain(|at| !self.taken.contains(at));
        if new.len() != old.len() || new.len() > MOST_EQUAL {
            return;
        }
        let mut only = Vec::new();
        while !new.is_empty() {
            let found = new.iter().enumerate().find_map(|(place, new)| {
                let mut may = (0..old.len()).filter(|at| self.may(*new, old[*at]));
                may.next()
                    .filter(|_| may.next().is_none())
                    .map(|at| (place, at))
            });
            let Some((place, at)) = found else { return };
            only.push((new.remove(place), old.remove(at)));
        }
        self.taken.extend(only.iter().map(|(_, old)| *old));
        self.by.extend(only);
    }

    /// Pairs the remaining files with those that had the same content earlier.
    pub(super) fn earlier(&mut self, new: &[usize], old: &[usize]) {
        let mut fits = Vec::new();
        for new in new.iter().filter(|at| !self.by.contains_key(at)) {
            let had = (self.stays[*new].first, None);
            if had.0 == Hash::of(b"") {
                continue;
            }
            let others = old.iter().filter(|at| !self.taken.contains(at));
            let others = others.filter(|at| self.stays[**at].known.contains(&had));
            let others = others.filter(|at| self.may(*new, **at));
            fits.extend(others.map(|old| (self.fit(*new, *old, 2 * HALF), *new, *old)));
        }
        self.take(fits, true);
    }

    /// Pairs the remaining files with the most similar ones. Returns whether
    /// there were too many to compare all of them.
    pub(super) fn similar(&mut self, new: &[usize], old: &[usize], texts: &mut Texts<'_>) -> bool {
        let new: Vec<usize> = new
            .iter()
            .copied()
            .filter(|at| !self.by.contains_key(at))
            .collect();
        let old: Vec<usize> = old
            .iter()
            .copied()
            .filter(|at| !self.taken.contains(at))
            .collect();
        let is_limited = !new.is_empty() && !old.is_empty() && new.len().max(old.len()) > MOST;
        let mut by_base: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        for at in &old {
            let base = self.stays[*at].path.file_name();
            by_base.entry(base).or_default().push(*at);
        }
        let mut fits = Vec::new();
        for new in new {
            let candidates = match is_limited {
                true => by_base.get(self.stays[new].path.file_name()),
                false => Some(&old),
            };
            for old in candidates.into_iter().flatten() {
                // Equal contents that were not unique stay unpaired.
                let is_same = self.stays[*old].last == self.stays[new].first;
                if !is_same && self.may(new, *old) {
                    let alike = texts.alike(&self.stays[*old].last, &self.stays[new].first);
                    if alike >= HALF {
                        fits.push((self.fit(new, *old, alike), new, *old));
                    }
                }
            }
        }
        self.take(fits, false);
        is_limited
    }

    /// Pairs files, the best fit first. With `is_exact`, a fit that a file has
    /// with several others pairs none of them.
    pub(super) fn take(&mut self, mut fits: Vec<(Fit, usize, usize)>, is_exact: bool) {
        fits.sort_by_key(|(fit, new, old)| (std::cmp::Reverse(*fit), *new, *old));
        let mut rest = fits.as_slice();
        while let Some((fit, ..)) = rest.first() {
            let count = rest.iter().take_while(|(other, ..)| other == fit).count();
            let (equal, later) = rest.split_at(count);
            rest = later;
            let is_free = |pairs: &Self, new: &usize, old: &usize| {
                !pairs.by.contains_key(new) && !pairs.taken.contains(old)
            };
            let equal: Vec<(usize, usize)> = equal
                .iter()
                .map(|(_, new, old)| (*new, *old))
                .filter(|(new, old)| is_free(self, new, old))
                .collect();
            for (new, old) in &equal {
                let mut others = equal.iter().filter(|other| **other != (*new, *old));
                let is_unique = !others.any(|(one, other)| one == new || other == old);
                if (is_unique || !is_exact) && is_free(self, new, old) {
                    self.by.insert(*new, *old);
                    self.taken.insert(*old);
                }
            }
        }
    }

    /// Drops the pairs that are backups: a file that was removed in the burst and
    /// that none continues, while the name of the one before has a file.
    pub(super) fn drop_backups(&mut self) {
        let is_backup = |(new, old): (&usize, &usize)| {
            let is_gone = self.stays[*new].ends.is_some() && !self.taken.contains(new);
            let is_backup = is_gone && self.stays[*old].is_there && !self.stays[*new].is_certain;
            is_backup.then_some((*new, *old))
        };
        let backups: Vec<(usize, usize)> = self.by.iter().filter_map(is_backup).collect();
        for (new, old) in backups {
            self.by.remove(&new);
            self.taken.remove(&old);
        }
    }

    /// Drops the pairs that are saves: a name that had a file, and a file that
    /// was made in the burst by the same command or by none, and that no session
    /// has edited.
    pub(super) fn drop_saves(&mut self) {
        let is_save = |new: usize| {
            let earlier = |at: &usize| self.by.get(at).copied();
            let all = || std::iter::successors(earlier(&new), earlier).take(self.stays.len());
            let is_edited = all().any(|at| self.stays[at].edited.is_some());
            let root = all().last().filter(|_| !is_edited);
            let root = root.map(|at| &self.stays[at]);
            root.is_some_and(|root| root.starts.is_some() && root.by[0] == self.stays[new].by[0])
        };
        let all = self.by.keys().copied();
        let saves: Vec<usize> = all
            .filter(|at| self.before(*at).is_some() && is_save(*at))
            .collect();
        for new in saves {
            if let Some(old) = self.by.remove(&new) {
                self.taken.remove(&old);
            }
        }
    }
}

/// Returns how many components at the end of two paths are equal.
fn ending(one: &RelPath, other: &RelPath) -> usize {
    let [one, other] = [one, other].map(|path| path.as_bytes().rsplit(|byte| *byte == b'/'));
    one.zip(other)
        .take_while(|(one, other)| one == other)
        .count()
}
