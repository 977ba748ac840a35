//! How many of the lines that a version added are still in the file after a
//! later one (SURV-1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::indents::has_words;
use super::weave::{Line, Weave};

/// How many of a version's lines are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The number of lines that the version added. A line that it only moved
    /// is not one of them.
    pub added: u32,
    /// The number of these lines that are in the later version, at any place.
    pub alive: u32,
}

impl Weave {
    /// Returns the lines that only the versions that `chosen` selects wrote, each
    /// once, in the order of their places. White space around a line does not
    /// count, nor does a line with fewer than two letters or digits.
    pub fn only_by(&self, chosen: impl Fn(usize) -> bool) -> Vec<Arc<[u8]>> {
        let (asked, _) = self.asked(chosen);
        let is_own =
            |line: &&Line| asked.contains(&self.author_of(self.lines[**line].step, **line));
        let text = |line: &Line| self.lines[*line].last_text().trim_ascii();
        let own: Vec<&Line> = self.order.iter().filter(is_own).collect();
        let mut texts: BTreeSet<&[u8]> = own.iter().map(|line| text(line)).collect();
        texts.retain(|text| has_words(text));
        if !texts.is_empty() {
            for other in self.order.iter().filter(|line| !is_own(line)) {
                texts.remove(text(other));
            }
        }
        let first = own.into_iter().filter(|line| texts.remove(text(line)));
        first
            .map(|line| Arc::clone(self.lines[*line].last_text()))
            .collect()
    }

    /// Returns how many of the lines of one version are in a later one, for
    /// each of the given pairs of indexes: the version and the later one.
    /// `None` if it is not known which lines the version added, or which lines
    /// the later one has: a content is not stored, or the version is
    /// [`mixed`](Self::mixed). The lines of the first version count as added
    /// by it.
    pub fn left(&self, pairs: &[(usize, usize)]) -> Vec<Option<Left>> {
        let first = self.first();
        let mut alive: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
        pairs
            .iter()
            .map(|(version, later)| {
                if !self.is_known(*version) || !self.is_stored(*later) {
                    return None;
                }
                let alive = alive.entry(*later).or_insert_with(|| {
                    let mut alive = vec![false; self.lines.len()];
                    for (line, on) in self.on_after(*later).iter().enumerate() {
                        if *on {
                            alive[first[line]] = true;
                        }
                    }
                    alive
                });
                let mut left = Left { added: 0, alive: 0 };
                for (line, entry) in self.lines.iter().enumerate() {
                    if entry.step == *version && first[line] == line {
                        left.added = left.added.saturating_add(1);
                        left.alive = left.alive.saturating_add(u32::from(alive[line]));
                    }
                }
                Some(left)
            })
            .collect()
    }

    /// Returns whether the content of a version is stored.
    fn is_stored(&self, version: usize) -> bool {
        self.changes
            .get(version)
            .is_some_and(|change| change.is_stored)
    }

    /// Returns whether all lines that a version added are its own: its content
    /// is stored, and so is the one before it.
    fn is_known(&self, version: usize) -> bool {
        let since = self.changes.get(version).map(|change| change.since);
        self.is_stored(version) && since == Some(version) && !self.mixed.contains(&version)
    }

    /// Returns for each line the line that it was first. A version that
    /// removes a line and adds an equal one elsewhere has moved it, so both
    /// are the same line.
    fn first(&self) -> Vec<Line> {
        let mut first: Vec<Line> = (0..self.lines.len()).collect();
        for (at, change) in self.changes.iter().enumerate() {
            let mut gone: BTreeMap<&[u8], Vec<Line>> = BTreeMap::new();
            // The first of several equal lines is used first.
            for line in change.off.iter().rev() {
                gone.entry(&*self.lines[*line].text)
                    .or_default()
                    .push(*line);
            }
            if gone.is_empty() {
                continue;
            }
            for line in change
                .on
                .iter()
                .filter(|line| self.lines[**line].step == at)
            {
                let moved = gone.get_mut(&*self.lines[*line].text).and_then(Vec::pop);
                if let Some(moved) = moved {
                    first[*line] = first[moved];
                }
            }
        }
        first
    }
}
