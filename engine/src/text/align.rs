//! Finds the lines that two texts have in common, in their order: in time about
//! proportional to the texts, whatever they contain.

use std::hash::Hash;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, Interner, Token};

/// The maximum number of steps that a comparison by one of the usual algorithms
/// may take.
const MAX_EFFORT: u64 = 32 << 20;

/// The maximum number of lines that are compared by such an algorithm at once.
/// Their time grows with the lines times the places that differ.
const MOST_LINES: usize = 1 << 15;

/// The maximum number of changed lines between which lines without any unique
/// neighbour are searched.
const MOST_CHANGED: usize = 1_000;

/// How often each line may be looked at before the comparison is given up, and
/// at least how many steps it may take.
const STEPS: (u64, u64) = (64, 4 << 20);

/// A place where two texts differ: its lines in the old and in the new one, by
/// their indexes.
pub(crate) type Region = (Range<usize>, Range<usize>);

/// The lines that two texts do not have in common.
#[derive(Debug, Default)]
pub(crate) struct Aligned {
    removed: Vec<bool>,
    added: Vec<bool>,
    /// Where each place begins in which the comparison was given up.
    given_up: Vec<(usize, usize)>,
}

impl Aligned {
    /// Compares two texts by their lines. Short ones, and short parts of long
    /// ones, are compared by `algorithm`.
    ///
    /// Lines that are unique in both texts, and in the same order, split them
    /// into parts. Real edits leave many such lines. In a part without one, at
    /// most [`MOST_CHANGED`] lines may differ. If more do, all of its lines count
    /// as replaced.
    pub(crate) fn of(algorithm: Algorithm, old: &[&[u8]], new: &[&[u8]]) -> Self {
        Self::within(algorithm, MOST_LINES, old, new)
    }

    fn within(algorithm: Algorithm, most_lines: usize, old: &[&[u8]], new: &[&[u8]]) -> Self {
        let all = |side: &[&[u8]], is_changed| vec![is_changed; side.len()];
        if old.is_empty() || new.is_empty() {
            return Self {
                removed: all(old, true),
                added: all(new, true),
                given_up: Vec::new(),
            };
        }
        let input = interned(old.iter().copied(), new.iter().copied());
        let lines = (old.len() + new.len()) as u64;
        let mut search = Search {
            algorithm,
            most_lines,
            input: &input,
            found: Self {
                removed: all(old, false),
                added: all(new, false),
                given_up: Vec::new(),
            },
            left: (lines * STEPS.0).max(STEPS.1),
        };
        let mut places = vec![(0..old.len(), 0..new.len())];
        while let Some(place) = places.pop() {
            search.compare(place, &mut places);
        }
        search.found.given_up.sort_unstable();
        search.found
    }

    /// Returns the places where the texts differ, in order. With each: whether
    /// its lines were compared. If not, the old and the new ones may have lines
    /// in common.
    pub(crate) fn places(&self) -> Vec<(Region, bool)> {
        let mut places = Vec::new();
        let (mut old, mut new) = (0, 0);
        let run = |side: &[bool], from: usize| -> usize {
            from + side[from..].iter().take_while(|one| **one).count()
        };
        while old < self.removed.len() || new < self.added.len() {
            let to = (run(&self.removed, old), run(&self.added, new));
            if to != (old, new) {
                let is_compared = self.given_up.binary_search(&(old, new)).is_err();
                places.push(((old..to.0, new..to.1), is_compared));
            }
            // As many lines are equal in both, up to the next place.
            let both = self.removed[to.0..].iter().zip(&self.added[to.1..]);
            let same = both.take_while(|(old, new)| !**old && !**new).count();
            (old, new) = (to.0 + same, to.1 + same);
        }
        places
    }

    /// Returns the lines that both texts have, by their indexes in both.
    pub(crate) fn pairs(&self) -> Vec<(usize, usize)> {
        let kept =
            |side: &[bool]| -> Vec<usize> { (0..side.len()).filter(|at| !side[*at]).collect() };
        kept(&self.removed)
            .into_iter()
            .zip(kept(&self.added))
            .collect()
    }
}

/// A comparison.
struct Search<'a> {
    algorithm: Algorithm,
    most_lines: usize,
    input: &'a InternedInput<&'a [u8]>,
    found: Aligned,
    /// How many steps it may still take.
    left: u64,
}

/// The lines of a part of two texts.
struct Part<'a> {
    before: &'a [Token],
    after: &'a [Token],
    /// All tokens are smaller than this.
    tokens: usize,
}

impl<'a> Part<'a> {
    fn of<T>(input: &'a InternedInput<T>) -> Self {
        Self {
            before: &input.before,
            after: &input.after,
            tokens: input.interner.num_tokens() as usize,
        }
    }
}

/// Gives each different line a number.
fn interned<T: Eq + Hash>(
    old: impl ExactSizeIterator<Item = T>,
    new: impl ExactSizeIterator<Item = T>,
) -> InternedInput<T> {
    // A table that grows hashes all of its lines again.
    let mut input = InternedInput {
        before: Vec::with_capacity(old.len()),
        after: Vec::with_capacity(new.len()),
        interner: Interner::new(old.len() + new.len()),
    };
    input.update_before(old);
    input.update_after(new);
    input
}

impl Search<'_> {
    /// Compares the lines of a part, or splits it into smaller ones, which are
    /// added to `rest`.
    fn compare(&mut self, (mut old, mut new): Region, rest: &mut Vec<Region>) {
        let input = self.input;
        let same = |(a, b): &(&Token, &Token)| a == b;
        let both = input.before[old.clone()]
            .iter()
            .zip(&input.after[new.clone()]);
        let first = both.take_while(same).count();
        (old.start, new.start) = (old.start + first, new.start + first);
        let both = input.before[old.clone()].iter().rev();
        let both = both.zip(input.after[new.clone()].iter().rev());
        let last = both.take_while(same).count();
        (old.end, new.end) = (old.end - last, new.end - last);
        let is_one = old.len() == 1 && new.len() == 1;
        if is_one || old.is_empty() || new.is_empty() {
            self.found.removed[old].fill(true);
            self.found.added[new].fill(true);
            return;
        }
        let part = Part {
            before: &input.before[old.clone()],
            after: &input.after[new.clone()],
            ..Part::of(input)
        };
        if old.len().max(new.len()) > self.most_lines {
            return self.split(&part, (old, new), rest);
        }
        if (part.before.len(), part.after.len()) == (input.before.len(), input.after.len()) {
            return self.small(input, (old, new), rest);
        }
        // Fewer numbers, since several tables have a row for each.
        let [before, after] = [part.before, part.after].map(|side| side.iter().map(|line| line.0));
        self.small(&interned(before, after), (old, new), rest);
    }

    /// Compares the lines of a part that is short enough for one of the usual
    /// algorithms.
    fn small<T: Eq + Hash>(
        &mut self,
        input: &InternedInput<T>,
        (old, new): Region,
        rest: &mut Vec<Region>,
    ) {
        let part = Part::of(input);
        if effort(&part) > MAX_EFFORT {
            return self.split(&part, (old, new), rest);
        }
        let diff = Diff::compute(self.algorithm, input);
        for (at, removed) in (0..).zip(&mut self.found.removed[old]) {
            *removed = diff.is_removed(at);
        }
        for (at, added) in (0..).zip(&mut self.found.added[new]) {
            *added = diff.is_added(at);
        }
    }

    /// Splits a part at its unique lines. If it has none, compares it if few of
    /// its lines have changed.
    fn split(&mut self, part: &Part<'_>, (old, new): Region, rest: &mut Vec<Region>) {
        let lines = (old.len() + new.len()) as u64;
        let is_enough = self.spend(lines);
        let unique = increasing(&unique(part));
        if is_enough && !unique.is_empty() {
            let (mut old_from, mut new_from) = (old.start, new.start);
            for (at, to) in unique.into_iter().chain([(old.len(), new.len())]) {
                let (at, to) = (old.start + at, new.start + to);
                rest.push((old_from..at, new_from..to));
                (old_from, new_from) = (at + 1, to + 1);
            }
            return;
        }
        self.found.removed[old.clone()].fill(true);
        self.found.added[new.clone()].fill(true);
        match is_enough.then(|| self.shortest(part)).flatten() {
            Some(pairs) => {
                for (at, to) in pairs {
                    self.found.removed[old.start + at] = false;
                    self.found.added[new.start + to] = false;
                }
            }
            None => self.found.given_up.push((old.start, new.start)),
        }
    }

    /// Returns the lines in common with the fewest changed ones between them
    /// (E. Myers, "An O(ND) difference algorithm"), or `None` if more than
    /// [`MOST_CHANGED`] lines that occur on both sides have changed.
    fn shortest(&mut self, part: &Part<'_>) -> Option<Vec<(usize, usize)>> {
        let shared = |side: &[Token], other: &[Token]| -> Vec<usize> {
            let mut occurs = vec![false; part.tokens];
            other.iter().for_each(|line| occurs[line.0 as usize] = true);
            (0..side.len())
                .filter(|at| occurs[side[*at].0 as usize])
                .collect()
        };
        let old = shared(part.before, part.after);
        let new = shared(part.after, part.before);
        let is_same = |x: usize, y: usize| part.before[old[x]] == part.after[new[y]];
        let (width, height) = (old.len(), new.len());
        // A path has `x` lines of the old text and `y` of the new one behind
        // it. On a diagonal, `x - y` is the same. For each number of changes:
        // the farthest `x` on each diagonal that can be reached, the first one
        // `changes` below that of the start.
        let mut farthest: Vec<Vec<Option<usize>>> = Vec::new();
        let mut end = None;
        for changes in 0..=MOST_CHANGED.min(width + height) {
            let last = farthest.last();
            let mut next = vec![None; 2 * changes + 1];
            for (at, next) in next.iter_mut().enumerate().step_by(2) {
                let mut x = match last {
                    None => 0,
                    Some(last) => {
                        let Some(x) = step(last, at, changes, width, height) else {
                            continue;
                        };
                        x
                    }
                };
                let mut y = x + changes - at;
                let from = x;
                while x < width && y < height && is_same(x, y) {
                    (x, y) = (x + 1, y + 1);
                }
                if !self.spend((x - from) as u64 + 1) {
                    return None;
                }
                *next = Some(x);
                if (x, y) == (width, height) {
                    end = Some((changes, at));
                }
            }
            farthest.push(next);
            if end.is_some() {
                break;
            }
        }
        let (mut changes, mut at) = end?;
        let mut pairs = Vec::new();
        let mut x = width;
        loop {
            let from = match changes.checked_sub(1) {
                None => 0,
                Some(before) => step(&farthest[before], at, changes, width, height)?,
            };
            while x > from {
                x -= 1;
                pairs.push((old[x], new[x + changes - at]));
            }
            let Some(before) = changes.checked_sub(1) else {
                break;
            };
            // A removed line came from the diagonal below, an added one from
            // that above.
            let below = at.checked_sub(2).and_then(|below| farthest[before][below]);
            if below.is_some_and(|below| below + 1 == x) {
                (x, at) = (x - 1, at - 2);
            }
            changes = before;
        }
        pairs.reverse();
        Some(pairs)
    }

    /// Returns whether that many steps may still be taken, and takes them.
    fn spend(&mut self, steps: u64) -> bool {
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

/// Returns the farthest `x` from which a diagonal goes on after one more change:
/// the diagonals of one change less are in `last`.
fn step(
    last: &[Option<usize>],
    at: usize,
    changes: usize,
    width: usize,
    height: usize,
) -> Option<usize> {
    // The diagonal with this index has its neighbours at the indexes before it
    // and at its own, since there is one diagonal less at each end.
    let below = at
        .checked_sub(2)
        .and_then(|at| last.get(at).copied().flatten());
    let above = last.get(at).copied().flatten();
    let removed = below.map(|x| x + 1).filter(|x| *x <= width);
    let added = above.filter(|x| x + changes - at <= height);
    removed.max(added)
}

/// Returns the places in the old and in the new text of each line that is
/// unique in both, in the old text's order.
fn unique(part: &Part<'_>) -> Vec<(usize, usize)> {
    let places = |side: &[Token]| {
        let mut places = vec![(0_u32, 0_usize); part.tokens];
        for (at, line) in side.iter().enumerate() {
            let place = &mut places[line.0 as usize];
            *place = (place.0 + 1, at);
        }
        places
    };
    let in_old = places(part.before);
    let in_new = places(part.after);
    let both = part.before.iter();
    both.map(|line| (in_old[line.0 as usize], in_new[line.0 as usize]))
        .filter(|(old, new)| old.0 == 1 && new.0 == 1)
        .map(|(old, new)| (old.1, new.1))
        .collect()
}

/// Returns how many pairs of lines a comparison may have to look at in the
/// worst case.
///
/// Lines that are unique in both texts, and in the same order, split the texts
/// into pieces that are compared separately. Real edits leave many such lines.
/// Texts that repeat the same few lines, or that have them in another order,
/// leave none, and then every algorithm is quadratic (measured: half a minute
/// for half a megabyte).
fn effort(part: &Part<'_>) -> u64 {
    let occurs = |side: &[Token]| {
        let mut occurs = vec![false; part.tokens];
        side.iter().for_each(|line| occurs[line.0 as usize] = true);
        occurs
    };
    let (in_old, in_new) = (occurs(part.before), occurs(part.after));
    // Lines that the other text does not have are set aside before the search.
    let shared_old = running(part.before, |line| in_new[line.0 as usize]);
    let shared_new = running(part.after, |line| in_old[line.0 as usize]);
    let mut effort = 0;
    let (mut old_from, mut new_from) = (0, 0);
    let ends = (part.before.len(), part.after.len());
    for (old, new) in increasing(&unique(part)).into_iter().chain([ends]) {
        effort +=
            (shared_old[old] - shared_old[old_from]) * (shared_new[new] - shared_new[new_from]);
        // The last pair is the end. Nothing is looked up after it.
        (old_from, new_from) = (old + 1, new + 1);
    }
    effort
}

/// Returns, for each number of first lines, how many of those satisfy `is_so`.
fn running(side: &[Token], is_so: impl Fn(&Token) -> bool) -> Vec<u64> {
    let mut counts = vec![0];
    let mut count = 0;
    for line in side {
        count += u64::from(is_so(line));
        counts.push(count);
    }
    counts
}

/// Returns the longest subsequence whose second numbers increase too.
fn increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length: the index of the pair that ends the best subsequence of
    // that length.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, pair) in pairs.iter().enumerate() {
        let is_before = |end: &usize| pairs[*end].1 < pair.1;
        // Most lines are in the same order in both texts.
        let length = match ends.last().is_none_or(is_before) {
            true => ends.len(),
            false => ends.partition_point(is_before),
        };
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut found = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(index) = at {
        found.push(pairs[index]);
        at = before[index];
    }
    found.reverse();
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_longest_increasing_subsequence_is_found() {
        let of = |seconds: &[usize]| -> Vec<usize> {
            let pairs: Vec<_> = seconds.iter().copied().enumerate().collect();
            increasing(&pairs).into_iter().map(|pair| pair.1).collect()
        };
        assert_eq!(of(&[]), [0; 0]);
        assert_eq!(of(&[3, 2, 1]), [1]);
        assert_eq!(of(&[9, 1, 8, 2, 7, 3]), [1, 2, 3]);
        assert_eq!(of(&[0, 1, 2]), [0, 1, 2]);
    }

    fn compared(old: &[String], new: &[String]) -> Aligned {
        let [old, new] =
            [old, new].map(|text| -> Vec<&[u8]> { text.iter().map(String::as_bytes).collect() });
        Aligned::of(Algorithm::Histogram, &old, &new)
    }

    /// Lines in no order, of which none is unique.
    fn repeated() -> Vec<String> {
        let mut state = 1_u64;
        let next = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            format!("{}\n", (state >> 33) % 1_000)
        };
        (0..200_000).map(next).collect()
    }

    #[test]
    fn lines_that_occur_often_are_compared_as_well() {
        let old = repeated();
        let mut new = old.clone();
        new[3] = "first\n".into();
        new.remove(100_000);
        new.insert(199_990, "7\n".into());
        let found = compared(&old, &new);
        let places: Vec<Region> = found.places().into_iter().map(|(place, _)| place).collect();
        let lines: usize = places.iter().map(|(old, new)| old.len() + new.len()).sum();
        assert_eq!(lines, 4, "{places:?}");
        assert_eq!(found.given_up, []);
    }

    #[test]
    fn what_is_too_different_is_given_up_in_its_place_alone() {
        // A shuffled half between unique lines.
        let mut old = repeated();
        old[100_000] = "unique\n".into();
        let mut new = old.clone();
        new[100_001..].reverse();
        new[7] = "other\n".into();
        let found = compared(&old, &new);
        let places = found.places();
        assert_eq!(places[0], ((7..8, 7..8), true));
        assert!(places[1..].iter().all(|(place, _)| place.0.start > 100_000));
        assert!(places[1..].iter().any(|(_, is_compared)| !is_compared));
    }

    proptest! {
        /// Small texts compared as large ones: the pairs are equal lines in
        /// their order, and everything else is in a place.
        #[test]
        fn only_equal_lines_are_paired(
            old in prop::collection::vec("[a-e]", 0..60),
            new in prop::collection::vec("[a-f]", 0..60),
            most_lines in 0_usize..8,
        ) {
            let before: Vec<&[u8]> = old.iter().map(String::as_bytes).collect();
            let after: Vec<&[u8]> = new.iter().map(String::as_bytes).collect();
            let found = Aligned::within(Algorithm::Histogram, most_lines, &before, &after);
            let pairs = found.pairs();
            for (at, to) in &pairs {
                prop_assert_eq!(before[*at], after[*to]);
            }
            let changed = found.places().into_iter().map(|((old, new), _)| (old.len(), new.len()));
            let changed = changed.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            prop_assert_eq!(changed, (old.len() - pairs.len(), new.len() - pairs.len()));
            // What is not split by unique lines has the most lines in common. A
            // line may be unique only between the equal ends.
            let (before_part, after_part) = between_ends(&before, &after);
            if most_lines == 0 && unique_in(before_part, after_part).is_empty() {
                prop_assert_eq!(pairs.len(), most_in_common(&before, &after));
            }
        }

        /// Edits of lines that differ are found as in a small text.
        #[test]
        fn large_texts_are_compared_as_small_ones(
            edits in prop::collection::vec((0_usize..400, 0_usize..3, 0_usize..4), 1..12),
        ) {
            let old: Vec<String> = (0..400).map(|at| format!("line {at}")).collect();
            let mut new = old.clone();
            for (n, (at, removed, added)) in edits.into_iter().enumerate() {
                let at = at.min(new.len());
                let end = (at + removed).min(new.len());
                new.splice(at..end, (0..added).map(|line| format!("edit {n} {line}")));
            }
            let before: Vec<&[u8]> = old.iter().map(String::as_bytes).collect();
            let after: Vec<&[u8]> = new.iter().map(String::as_bytes).collect();
            let [small, large] = [MOST_LINES, 0]
                .map(|most| Aligned::within(Algorithm::Histogram, most, &before, &after).places());
            prop_assert_eq!(small, large);
        }
    }

    fn unique_in(old: &[&[u8]], new: &[&[u8]]) -> Vec<(usize, usize)> {
        unique(&Part::of(&interned(
            old.iter().copied(),
            new.iter().copied(),
        )))
    }

    /// Returns two texts without the lines that both begin and end with.
    fn between_ends<'a, 'b>(
        old: &'a [&'b [u8]],
        new: &'a [&'b [u8]],
    ) -> (&'a [&'b [u8]], &'a [&'b [u8]]) {
        let same = |pair: &(&&[u8], &&[u8])| pair.0 == pair.1;
        let first = old.iter().zip(new).take_while(same).count();
        let (old, new) = (&old[first..], &new[first..]);
        let last = old.iter().rev().zip(new.iter().rev());
        let last = last.take_while(same).count();
        (&old[..old.len() - last], &new[..new.len() - last])
    }

    /// Returns the length of the longest common subsequence, slowly.
    fn most_in_common(old: &[&[u8]], new: &[&[u8]]) -> usize {
        let mut last = vec![0; new.len() + 1];
        for line in old {
            let mut next = vec![0; new.len() + 1];
            for (at, other) in new.iter().enumerate() {
                next[at + 1] = match line == other {
                    true => last[at] + 1,
                    false => next[at].max(last[at + 1]),
                };
            }
            last = next;
        }
        last[new.len()]
    }
}
