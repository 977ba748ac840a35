//! The authors of a version's lines, and how two versions differ.

use std::collections::BTreeMap;

use super::weave::{Line, Weave};

/// The kind of a line in a comparison of two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The line is in both versions.
    Context,
    /// The line is only in the newer version.
    Added,
    /// The line is only in the older version.
    Removed,
}

/// A line in a comparison of two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared<'a> {
    /// Which of the two versions contain the line.
    pub kind: Kind,
    /// The line's bytes, with its line end.
    pub text: &'a [u8],
    /// The version that first contained the line. For a changed line, the last
    /// version that added or removed it.
    pub step: usize,
}

impl Weave {
    /// Returns each line of a version in the file's order, with the version
    /// that first contained it, or the claim that names its author.
    pub fn blame(&self, step: usize) -> Vec<(usize, &[u8])> {
        let on = self.on_after(step);
        let lines = self.order.iter().filter(|line| on[**line]);
        lines
            .map(|line| {
                let entry = &self.lines[*line];
                (self.author_of(entry.step, *line), &**entry.text_at(step))
            })
            .collect()
    }

    /// Returns all lines of two versions in order, each with the version that
    /// added or removed it, or the claim that names its author.
    pub fn compare(&self, from: usize, to: usize) -> Vec<Compared<'_>> {
        let (before, after) = (self.on_after(from), self.on_after(to));
        // The last version between the two that added or removed each line. If
        // `from` is the newer version, lines that such a version added count as
        // removed.
        let mut last: BTreeMap<Line, usize> = BTreeMap::new();
        let (low, high) = (from.min(to), from.max(to));
        for at in low + 1..=high {
            let change = &self.changes[at];
            for line in change.on.iter().chain(&change.off) {
                last.insert(*line, at);
            }
        }
        let compared = self.order.iter().flat_map(|line| {
            let entry = &self.lines[*line];
            let [was, is] = [from, to].map(|step| &**entry.text_at(step));
            let kind = match (before[*line], after[*line]) {
                (true, true) if was != is => {
                    let mut casts = entry.later.iter();
                    let last = casts.rfind(|cast| (low + 1..=high).contains(&cast.at));
                    let step = last.map_or(entry.step, |cast| cast.by);
                    let all = [(Kind::Removed, was), (Kind::Added, is)];
                    let all = all.map(|(kind, text)| Compared { kind, text, step });
                    return Vec::from(all);
                }
                (true, true) => Kind::Context,
                (false, true) => Kind::Added,
                (true, false) => Kind::Removed,
                (false, false) => return Vec::new(),
            };
            let step = match last.get(line) {
                Some(last) if kind != Kind::Context => *last,
                _ => entry.step,
            };
            let step = match kind {
                Kind::Removed => step,
                Kind::Added | Kind::Context => self.author_of(step, *line),
            };
            let text = if kind == Kind::Removed { was } else { is };
            vec![Compared { kind, text, step }]
        });
        compared.collect()
    }
}
