//! What some versions have changed that nobody has looked at yet (REV-1): where
//! the file differs from what it would be without them.

use std::collections::BTreeSet;

use touchmark_proto::LineRange;

use super::weave::{Line, Weave};

/// A line, by what does not change while its file's history grows: the version
/// that turned it on or off, the version that it came with, and its place
/// among the lines that came with that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineName {
    /// The version that turned it on or off.
    pub by: usize,
    /// The version that it came with.
    pub of: usize,
    /// Its place among that version's lines.
    pub place: usize,
}

/// Lines that lie beside one another and differ from what the file would hold
/// without the versions that were asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reviewed {
    /// Where it is in what the file holds now; an empty place is the line
    /// before it.
    pub lines: LineRange,
    /// What it would hold there.
    pub before: Vec<u8>,
    /// What it holds there.
    pub after: Vec<u8>,
    /// The versions that changed it.
    pub steps: BTreeSet<usize>,
    /// What has to be given to [`Weave::review`] for it to be looked at no
    /// more.
    pub names: Vec<LineName>,
    /// Its lines, to be turned.
    turned: Vec<Line>,
}

impl Weave {
    /// What the versions asked about have changed, but for the lines that are
    /// given.
    pub fn review(
        &self,
        asked: impl Fn(usize) -> bool,
        given: &BTreeSet<LineName>,
    ) -> Vec<Reviewed> {
        let names = self.names();
        let given: BTreeSet<(usize, Line)> = names
            .iter()
            .enumerate()
            .flat_map(|(line, own)| own.iter().map(move |name| (line, name)))
            .filter(|(_, name)| given.contains(name))
            .map(|(line, name)| (name.by, line))
            .collect();
        let (asked, _) = self.asked(asked);
        let kept = self.kept(&asked, &given);
        let (without, _) = self.state(&asked, &kept);
        let last = self.changes.len().saturating_sub(1);
        let now = self.on_after(last);
        let mut found: Vec<Reviewed> = Vec::new();
        let (mut number, mut goes_on) = (0, false);
        for line in &self.order {
            let (is, was) = (now[*line], without.on[*line]);
            number += u32::from(is);
            if !is && !was {
                continue;
            }
            if is == was {
                goes_on = false;
                continue;
            }
            if !goes_on {
                found.push(Reviewed {
                    lines: LineRange {
                        start: number,
                        end: number,
                    },
                    before: Vec::new(),
                    after: Vec::new(),
                    steps: BTreeSet::new(),
                    names: Vec::new(),
                    turned: Vec::new(),
                });
                goes_on = true;
            }
            let Some(hunk) = found.last_mut() else {
                continue;
            };
            let text = &*self.lines[*line].text;
            if is {
                hunk.after.extend_from_slice(text);
                // The line before an empty place is no part of it.
                if hunk.lines.start < number && hunk.after.len() == text.len() {
                    hunk.lines.start = number;
                }
                hunk.lines.end = number;
            } else {
                hunk.before.extend_from_slice(text);
            }
            hunk.turned.push(*line);
            for name in names[*line].iter().filter(|name| asked.contains(&name.by)) {
                hunk.steps.insert(name.by);
                hunk.names.push(*name);
            }
        }
        found
    }

    /// What the file would hold without some of what [`review`](Self::review)
    /// found; `None` where there would be no file.
    pub fn without_reviewed<'a>(
        &self,
        hunks: impl IntoIterator<Item = &'a Reviewed>,
        existed: bool,
    ) -> Option<Vec<u8>> {
        let last = self.changes.len().saturating_sub(1);
        let mut on = self.on_after(last);
        for line in hunks.into_iter().flat_map(|hunk| &hunk.turned) {
            on[*line] = !on[*line];
        }
        let is_empty = !on.iter().any(|on| *on);
        (existed || !is_empty).then(|| self.text(&on))
    }

    /// The turns of each line.
    fn names(&self) -> Vec<Vec<LineName>> {
        let mut places = vec![0; self.changes.len()];
        let mut own = Vec::with_capacity(self.lines.len());
        for entry in &self.lines {
            own.push((entry.step, places[entry.step]));
            places[entry.step] += 1;
        }
        let mut names = vec![Vec::new(); self.lines.len()];
        for (by, change) in self.changes.iter().enumerate() {
            for line in change.on.iter().chain(&change.off) {
                let (of, place) = own[*line];
                names[*line].push(LineName { by, of, place });
            }
        }
        names
    }
}
