//! What one session was last shown of one name, or wrote under it, and which
//! state its copy must therefore have.
//!
//! Of a content a session has *lines* and *seams*: pairs of adjacent lines. A
//! session that was shown lines 10 to 20 has these lines and the ten seams
//! between them. So a line inserted between them is noticed, and a line
//! inserted above or below is not. A session that was shown the whole file also
//! has its two ends. Lines that are shown later replace only what the session
//! had at the corresponding place.

use std::collections::BTreeSet;

use super::text::{corresponding, equal, lines};

/// The state that a copy must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// The session was never shown anything of it.
    Unread,
    /// All lines and seams that the session has are in the file.
    Fresh,
    /// A line or seam that the session has is not in the file.
    Stale,
    /// The session was shown the file, and the file was removed.
    Deleted,
    /// The contract does not specify the state; see [`Copy::open`].
    Open,
}

/// A place in a content: lines and seams alternate. `2 * n + 1` is line `n`,
/// and `2 * n` is the seam above it.
type Spot = usize;

/// The lines and seams of one content that a session has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layer {
    lines: Vec<String>,
    held: BTreeSet<Spot>,
}

/// One session's copy of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    layers: Vec<Layer>,
    /// Why the contract does not specify the state. Until the next whole read
    /// or write, the copy may be fresh or stale. `None` if it is specified.
    pub open: Option<&'static str>,
    /// This name's contents are not stored, so they cannot be compared by line:
    /// after any change the whole copy is stale.
    pub coarse: bool,
    /// The contents may no longer be stored, so perhaps they cannot be compared
    /// by line.
    pub may_be_coarse: bool,
    /// No line is in the session's context any more. The next lines shown
    /// replace everything.
    pub evicted: bool,
}

/// Returns the pairs of corresponding spots in two contents.
fn corresponding_spots(old: &[String], new: &[String]) -> Vec<(Spot, Spot)> {
    let pairs = corresponding(old, new);
    let lines = pairs.iter().map(|(i, j)| (2 * i + 1, 2 * j + 1));
    // The two ends of a content act as lines that every content has.
    let seams = (0..=old.len()).filter_map(|i| {
        let above = match i.checked_sub(1) {
            None => Some(0),
            Some(line) => pairs.iter().find(|(a, _)| *a == line).map(|(_, b)| b + 1),
        }?;
        let below = if i == old.len() {
            new.len()
        } else {
            pairs.iter().find(|(a, _)| *a == i)?.1
        };
        (above == below).then_some((2 * i, 2 * above))
    });
    let mut all: Vec<_> = lines.chain(seams).collect();
    all.sort_unstable();
    all
}

impl Copy {
    /// Returns the contents of which the session has anything.
    pub fn layers(&self) -> BTreeSet<&[String]> {
        self.layers.iter().map(|layer| &layer.lines[..]).collect()
    }

    /// Returns whether the session was ever shown anything.
    pub fn known(&self) -> bool {
        !self.layers.is_empty() || self.open.is_some()
    }

    /// Notes that the session was shown, or wrote, the whole content.
    pub fn shown_whole(&mut self, text: &str) {
        let lines = lines(text);
        let held = (0..=2 * lines.len()).collect();
        self.layers = vec![Layer { lines, held }];
        self.open = None;
        self.may_be_coarse = false;
        self.evicted = false;
    }

    /// Notes that the session was shown these lines. The first line is 1.
    pub fn shown(&mut self, text: &str, first: usize, last: usize) {
        let lines = lines(text);
        let last = last.min(lines.len());
        if first > last {
            return;
        }
        let spots: BTreeSet<Spot> = (2 * first - 1..2 * last).collect();
        if std::mem::take(&mut self.evicted) {
            self.layers.clear();
        }
        let mut held = spots;
        self.layers.retain(|layer| {
            let same = layer.lines == lines;
            if same {
                held.extend(&layer.held);
            }
            !same
        });
        if !self.coarse {
            let mut covered = held.clone();
            // The answer contains the number of lines. So the session has seen
            // that nothing is above the first line and nothing below the last
            // one.
            covered.extend((first == 1).then_some(0));
            covered.extend((last == lines.len()).then_some(2 * lines.len()));
            // A session that has seen where the text begins and ends still has
            // these ends.
            let knew = |end: fn(&Layer) -> Spot| {
                let mut layers = self.layers.iter();
                layers.any(|layer| layer.held.contains(&end(layer)))
            };
            if first == 1 && knew(|_| 0) {
                held.insert(0);
            }
            if last == lines.len() && knew(|layer| 2 * layer.lines.len()) {
                held.insert(2 * lines.len());
            }
            for at in 0..self.layers.len() {
                if !self.layers[at].give_way(&lines, &covered) {
                    self.open = Some("a part was shown of lines that took the place of others");
                }
            }
            self.layers.retain(|layer| !layer.held.is_empty());
        } else {
            // SEEN-8: lines are matched by number.
            for layer in &mut self.layers {
                layer.held.retain(|spot| !held.contains(spot));
            }
            self.layers
                .retain(|layer| layer.held.iter().any(|spot| spot % 2 == 1));
            let ends = last == lines.len();
            let beyond = |layer: &Layer| layer.held.iter().any(|spot| *spot > 2 * last);
            if ends && self.layers.iter().any(beyond) {
                self.open = Some("the end was shown of a text that cannot be compared");
            }
        }
        // A session that was shown all lines has seen both ends.
        if (0..lines.len()).all(|line| held.contains(&(2 * line + 1))) {
            held.extend([0, 2 * lines.len()]);
        }
        self.layers.push(Layer { lines, held });
    }

    /// Adds what the session has by another name of the file. All lines and
    /// seams of either copy then have to match.
    pub fn join(&mut self, other: &Self) {
        if self.evicted && !other.evicted {
            self.layers.clear();
            self.evicted = false;
        }
        // If only one of the two copies is still in the context, only that one
        // counts.
        let held = other
            .layers
            .iter()
            .filter(|_| self.evicted || !other.evicted);
        for layer in held {
            match self.layers.iter_mut().find(|own| own.lines == layer.lines) {
                Some(own) => own.held.extend(&layer.held),
                None => self.layers.push(layer.clone()),
            }
        }
        self.open = self.open.or(other.open);
    }

    /// Returns whether all of these lines of this content were shown.
    pub fn holds(&self, text: &str, first: usize, last: usize) -> bool {
        let lines = lines(text);
        let last = last.min(lines.len());
        let layer = self.layers.iter().find(|layer| layer.lines == lines);
        layer.is_some_and(|layer| (first..=last).all(|line| layer.held.contains(&(2 * line - 1))))
    }

    /// Returns whether lines of this content were shown last.
    pub fn shown_last(&self, text: &str) -> bool {
        self.layers
            .last()
            .is_some_and(|layer| layer.lines == lines(text))
    }

    /// Returns whether the session has exactly one content, and all of it.
    pub fn is_whole(&self) -> bool {
        matches!(&self.layers[..], [only] if only.held.len() == 2 * only.lines.len() + 1)
    }

    /// Returns the state that the copy must have if the file's content is
    /// `now`. `unkept` returns whether a content may not be stored for
    /// comparison.
    pub fn worth(&self, now: Option<&str>, unkept: impl Fn(&str) -> bool) -> Worth {
        if !self.known() {
            return Worth::Unread;
        }
        let Some(now) = now else {
            return Worth::Deleted;
        };
        if self.open.is_some() {
            return Worth::Open;
        }
        let now_unkept = unkept(now);
        let may_be_coarse = self.may_be_coarse
            || now_unkept
            || self
                .layers
                .iter()
                .any(|layer| unkept(&layer.lines.concat()));
        let now = lines(now);
        if self.evicted {
            // SEEN-2: the content that was shown last decides. The result is
            // open if the evicted lines are unchanged in `now`: the copy may
            // have moved on to that content before the eviction.
            return match self.layers.last() {
                Some(layer) if layer.lines == now => match self.is_whole() {
                    true => Worth::Fresh,
                    false => Worth::Open,
                },
                _ if self.layers.iter().all(|layer| layer.is_so(&now, false)) => Worth::Open,
                _ => Worth::Stale,
            };
        }
        let is_so = |coarse| self.layers.iter().all(|layer| layer.is_so(&now, coarse));
        // When the last content was shown, the session was already told of
        // those of its earlier lines that the content did not have (SEEN-8).
        let told = |last: &Layer| {
            !self
                .layers
                .iter()
                .all(|layer| layer.is_so(&last.lines, false))
        };
        match is_so(self.coarse) {
            _ if may_be_coarse && is_so(true) != is_so(false) => Worth::Open,
            true if self.layers.last().is_some_and(told) => Worth::Open,
            // The session's lines may have been found in a content in between,
            // which cannot be compared with the current one.
            true if now_unkept && !self.is_whole() => Worth::Open,
            true => Worth::Fresh,
            false => Worth::Stale,
        }
    }
}

impl Layer {
    /// Returns whether all lines and seams that the session has are in this
    /// content.
    fn is_so(&self, now: &[String], coarse: bool) -> bool {
        if self.lines == now {
            return true;
        }
        if coarse {
            return false;
        }
        let equal = equal(&self.lines, now);
        let spots = corresponding_spots(&self.lines, now);
        self.held.iter().all(|spot| {
            if spot % 2 == 1 {
                equal.iter().any(|(i, _)| 2 * i + 1 == *spot)
            } else {
                spots.iter().any(|(old, _)| old == spot)
            }
        })
    }

    /// Removes lines and seams at places where something newer was shown.
    /// Returns false if it cannot be determined which ones were replaced.
    fn give_way(&mut self, new: &[String], shown: &BTreeSet<Spot>) -> bool {
        let spots = corresponding_spots(&self.lines, new);
        for (old, at) in &spots {
            if shown.contains(at) {
                self.held.remove(old);
            }
        }
        // Spots without a counterpart: lines that were removed or replaced.
        let mut sure = true;
        let mut from = (0, 0);
        for to in spots
            .iter()
            .copied()
            .chain([(2 * self.lines.len() + 1, 2 * new.len() + 1)])
        {
            let gap: Vec<Spot> = (from.0..to.0)
                .filter(|spot| self.held.contains(spot))
                .collect();
            if !gap.is_empty() {
                let seen = (from.1..to.1).filter(|at| shown.contains(at)).count();
                if seen == to.1 - from.1 {
                    gap.iter().for_each(|spot| {
                        self.held.remove(spot);
                    });
                } else if seen > 0 {
                    sure = false;
                }
            }
            from = (to.0 + 1, to.1 + 1);
        }
        sure
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::Make;
    use super::{Copy, Worth};

    #[test]
    fn what_was_shown_last_decides() {
        let one = Make::Whole(1).of("");
        let two = Make::Revise(2, 9).of(&one);
        let mut copy = Copy::default();
        assert_eq!(copy.worth(Some(&one), |_| false), Worth::Unread);
        copy.shown_whole(&one);
        assert_eq!(copy.worth(Some(&one), |_| false), Worth::Fresh);
        assert_eq!(copy.worth(Some(&two), |_| false), Worth::Stale);
        copy.shown_whole(&two);
        // A return to a content seen earlier is a change.
        assert_eq!(copy.worth(Some(&one), |_| false), Worth::Stale);
        assert_eq!(copy.worth(None, |_| false), Worth::Deleted);
    }

    #[test]
    fn a_part_refreshes_these_lines_and_no_others() {
        let one = Make::Whole(1).of("");
        let two = Make::Revise(3, 9).of(&Make::Revise(2, 9).of(&one));
        let mut copy = Copy::default();
        copy.shown_whole(&one);
        copy.shown(&two, 3, 3);
        assert_eq!(copy.worth(Some(&two), |_| false), Worth::Stale);
        // Lines 1 and 4 are shown in separate reads.
        copy.shown(&two, 4, 4);
        assert_eq!(copy.worth(Some(&two), |_| false), Worth::Fresh);
        assert_eq!(copy.worth(Some(&one), |_| false), Worth::Stale);
    }

    #[test]
    fn what_is_put_above_or_below_is_not_held() {
        let one = Make::Whole(1).of("");
        let mut copy = Copy::default();
        copy.shown(&one, 3, 5);
        assert_eq!(
            copy.worth(Some(&Make::Insert(0, 2).of(&one)), |_| false),
            Worth::Fresh
        );
        assert_eq!(
            copy.worth(Some(&Make::Append(2).of(&one)), |_| false),
            Worth::Fresh
        );
        assert_eq!(
            copy.worth(Some(&Make::Insert(2, 2).of(&one)), |_| false),
            Worth::Fresh
        );
        assert_eq!(
            copy.worth(Some(&Make::Insert(3, 2).of(&one)), |_| false),
            Worth::Stale
        );
        assert_eq!(
            copy.worth(Some(&Make::Drop(3).of(&one)), |_| false),
            Worth::Stale
        );
        assert_eq!(
            copy.worth(Some(&Make::Drop(0).of(&one)), |_| false),
            Worth::Fresh
        );
        copy.shown_whole(&one);
        assert_eq!(
            copy.worth(Some(&Make::Insert(0, 2).of(&one)), |_| false),
            Worth::Stale
        );
        assert_eq!(
            copy.worth(Some(&Make::Append(2).of(&one)), |_| false),
            Worth::Stale
        );
        // The session was shown the new line, but not that it is the last one.
        let longer = Make::Append(2).of(&one);
        copy.shown(&longer, 1, 1);
        assert_eq!(copy.worth(Some(&longer), |_| false), Worth::Stale);
    }
}
