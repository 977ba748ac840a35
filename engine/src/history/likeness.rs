//! How much of one content another one has.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};

use super::Step;

/// The thousandths of two contents that have to be alike.
pub(super) const HALF: u64 = 500;

/// The most earlier versions among which one is searched.
const EARLIER: usize = 32;

/// The lines of a content. White space around a line does not count. Binary
/// content is one line.
pub(super) struct Lines {
    /// How often each line occurs, and its weight: the number of its bytes.
    counts: BTreeMap<u64, (u64, u64)>,
    /// How often each line with a letter or a digit occurs.
    distinctive: BTreeMap<u64, u64>,
    /// The weight of all lines.
    weight: u64,
}

impl Lines {
    pub(super) fn of(text: &[u8]) -> Self {
        let mut lines = Self {
            counts: BTreeMap::new(),
            distinctive: BTreeMap::new(),
            weight: 0,
        };
        match crate::text::lines::is_binary(text) {
            true => lines.add(text),
            false => {
                let all = text.split_inclusive(|byte| *byte == b'\n');
                all.for_each(|line| lines.add(line.trim_ascii()));
            }
        }
        lines
    }

    fn add(&mut self, line: &[u8]) {
        // Its keys are constant, so that the same contents give the same
        // result in every process.
        let mut hasher = DefaultHasher::new();
        hasher.write(line);
        let (name, weight) = (hasher.finish(), line.len() as u64 + 1);
        self.counts.entry(name).or_insert((0, weight)).0 += 1;
        self.weight += weight;
        let counts_as_text = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        if line.iter().any(counts_as_text) {
            *self.distinctive.entry(name).or_default() += 1;
        }
    }

    /// Returns how many lines have a letter or a digit.
    pub(super) fn distinctive(&self) -> u64 {
        self.distinctive.values().sum()
    }

    /// Returns how many lines with a letter or a digit another content has, too.
    pub(super) fn kept(&self, after: &Self) -> u64 {
        let kept = |(line, count): (&u64, &u64)| {
            after.distinctive.get(line).map_or(0, |now| *now.min(count))
        };
        self.distinctive.iter().map(kept).sum()
    }

    /// Returns how many thousandths of the longer one the two have in common,
    /// as git computes the similarity of a rename.
    pub(super) fn alike(&self, other: &Self) -> u64 {
        let longer = self.weight.max(other.weight);
        if longer == 0 || self.weight.min(other.weight) * 2 < longer {
            return 0;
        }
        let common: u64 = self
            .counts
            .iter()
            .filter_map(|(line, (count, weight))| {
                let (other, _) = other.counts.get(line)?;
                Some(count.min(other) * weight)
            })
            .sum();
        common * 2 * HALF / longer
    }
}

/// Returns which earlier version has the most lines of a text, if the last one
/// has less than half of them: the newest of several. `None` if none has more
/// than the last one.
pub(super) fn likest(earlier: &[Step], text: &[u8]) -> Option<usize> {
    let lines = Lines::of(text);
    let kept = |step: &Step| match step {
        Step::Held(bytes) => lines.kept(&Lines::of(bytes)),
        _ => 0,
    };
    let now = kept(earlier.last()?);
    if now * 2 >= lines.distinctive() {
        return None;
    }
    let newest_first = earlier.iter().enumerate().rev().take(EARLIER);
    let counted = newest_first.map(|(at, step)| (kept(step), at));
    // Of equal ones the newest has the highest index.
    let (most, at) = counted.max()?;
    (most > now).then_some(at)
}
