//! What one session was shown of one name, or wrote under it, last; and what
//! its copy is therefore worth.
//!
//! Of a content a session holds *lines* and *seams*: what stands next to what.
//! Who was shown lines 10 to 20 holds these and the ten seams between them, so
//! a line put in between is noticed, and one put above or below is not. Who
//! was shown the whole file holds its two ends as well. What is shown later
//! takes the place of what was held at the corresponding place, and of nothing
//! else.

use std::collections::BTreeSet;

use super::text::{corresponding, equal, lines};

/// What a copy is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// Nothing of it was ever shown.
    Unread,
    /// Everything held is so.
    Fresh,
    /// Something held is not so.
    Stale,
    /// It was shown, and is gone.
    Deleted,
    /// The contract leaves it open; see [`Copy::open`].
    Open,
}

/// A place in a content: lines and seams alternate, `2 * n + 1` is line `n`,
/// and the seam above it is `2 * n`.
type Spot = usize;

/// What is held of one content.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layer {
    lines: Vec<String>,
    held: BTreeSet<Spot>,
}

/// One session's copy of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    layers: Vec<Layer>,
    /// Why the contract does not say what the copy is worth: until the next
    /// whole read or write, it may count as fresh or stale.
    pub open: Option<&'static str>,
    /// No diff is made for this name, since its contents are not kept: a file
    /// that changed is stale as a whole.
    pub coarse: bool,
    /// Perhaps none is made, since the contents may be kept no longer.
    pub may_be_coarse: bool,
    /// None of it is in the context any more: the next lines shown are all that
    /// is held.
    pub evicted: bool,
}

/// The spots of a content that correspond to those of another one.
fn corresponding_spots(old: &[String], new: &[String]) -> Vec<(Spot, Spot)> {
    let pairs = corresponding(old, new);
    let lines = pairs.iter().map(|(i, j)| (2 * i + 1, 2 * j + 1));
    // Both ends stand for lines that are in every content.
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
    /// The contents of which anything is held.
    pub fn layers(&self) -> BTreeSet<&[String]> {
        self.layers.iter().map(|layer| &layer.lines[..]).collect()
    }

    /// Whether anything was ever shown.
    pub fn known(&self) -> bool {
        !self.layers.is_empty() || self.open.is_some()
    }

    /// The whole content was shown, or written.
    pub fn shown_whole(&mut self, text: &str) {
        let lines = lines(text);
        let held = (0..=2 * lines.len()).collect();
        self.layers = vec![Layer { lines, held }];
        self.open = None;
        self.may_be_coarse = false;
        self.evicted = false;
    }

    /// These lines were shown, the first is 1.
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
            // That nothing stands above the first line was seen, and nothing
            // below the last one: the answer says how many lines there are.
            covered.extend((first == 1).then_some(0));
            covered.extend((last == lines.len()).then_some(2 * lines.len()));
            // Who knew where the text begins and ends knows it still.
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
        }
        // Whoever was shown all lines knows where they begin and end.
        if (0..lines.len()).all(|line| held.contains(&(2 * line + 1))) {
            held.extend([0, 2 * lines.len()]);
        }
        self.layers.push(Layer { lines, held });
    }

    /// What was held by another name of the file is held as well: each line of
    /// either has to be so.
    pub fn join(&mut self, other: &Self) {
        if self.evicted && !other.evicted {
            self.layers.clear();
            self.evicted = false;
        }
        // What is in the context no more is not held beside what is.
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

    /// Whether all of these lines of this content were shown.
    pub fn holds(&self, text: &str, first: usize, last: usize) -> bool {
        let lines = lines(text);
        let last = last.min(lines.len());
        let layer = self.layers.iter().find(|layer| layer.lines == lines);
        layer.is_some_and(|layer| (first..=last).all(|line| layer.held.contains(&(2 * line - 1))))
    }

    /// Whether part of this content was shown later than anything else.
    pub fn shown_last(&self, text: &str) -> bool {
        self.layers
            .last()
            .is_some_and(|layer| layer.lines == lines(text))
    }

    /// Whether all that is held is one whole content.
    pub fn is_whole(&self) -> bool {
        matches!(&self.layers[..], [only] if only.held.len() == 2 * only.lines.len() + 1)
    }

    /// What the copy is worth if the file holds this. Of the contents that
    /// `unkept` says perhaps none is kept to be compared.
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
            // SEEN-2: what it saw last decides; a content in which its lines
            // stood unchanged may have become that before they were gone, also
            // where the file holds by now what it was shown of.
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
        // Of lines that were others when it was shown some of that text, it was
        // told that they are (SEEN-8).
        let told = |last: &Layer| {
            !self
                .layers
                .iter()
                .all(|layer| layer.is_so(&last.lines, false))
        };
        match is_so(self.coarse) {
            _ if may_be_coarse && is_so(true) != is_so(false) => Worth::Open,
            true if self.layers.last().is_some_and(told) => Worth::Open,
            // What it holds may have been found in another content meanwhile,
            // and that one cannot be compared with this.
            true if now_unkept && !self.is_whole() => Worth::Open,
            true => Worth::Fresh,
            false => Worth::Stale,
        }
    }
}

impl Layer {
    /// Whether everything held is so in this content.
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

    /// Gives up what is held at places where something newer was shown.
    /// False if it cannot be said what gave way.
    fn give_way(&mut self, new: &[String], shown: &BTreeSet<Spot>) -> bool {
        let spots = corresponding_spots(&self.lines, new);
        for (old, at) in &spots {
            if shown.contains(at) {
                self.held.remove(old);
            }
        }
        // What has no counterpart: lines taken out, or others in their place.
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
        // Back to what was seen earlier is a change.
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
        // In a second piece.
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
        // The new line was shown, and that it is the last one was not.
        let longer = Make::Append(2).of(&one);
        copy.shown(&longer, 1, 1);
        assert_eq!(copy.worth(Some(&longer), |_| false), Worth::Stale);
    }
}
