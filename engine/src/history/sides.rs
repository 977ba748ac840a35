//! The two sides of a merge conflict (UNDO-10).

use std::collections::{BTreeMap, BTreeSet};

use super::indents;
use super::weave::{ChangeKind, Line, Weave};
use super::without::LinesOn;

/// The lines between the markers of the conflicts that one version wrote.
struct Sides<'w> {
    /// The number of each line's conflict.
    conflicts: BTreeMap<Line, usize>,
    /// The lines that the version was the first to have, by their text.
    brought: BTreeMap<&'w [u8], Vec<Line>>,
}

impl Weave {
    /// Turns off the lines which the versions to be undone had removed, and which
    /// a merge has brought again as the other side of a conflict: to put them
    /// back would double them.
    pub(super) fn leave_other_sides(&self, asked: &BTreeSet<usize>, state: &mut LinesOn) {
        let sides: Vec<Sides<'_>> = self
            .carried
            .iter()
            .filter_map(|at| self.sides(*at))
            .collect();
        if sides.is_empty() {
            return;
        }
        let now = self.on_after(self.changes.len());
        for at in asked.iter().filter_map(|at| self.changes.get(*at)) {
            let ChangeKind::Hunks(hunks) = &at.what else {
                continue;
            };
            for hunk in hunks {
                let own = sides.iter().map(|sides| {
                    let own = hunk.on.iter().filter_map(|own| sides.conflicts.get(own));
                    own.collect::<BTreeSet<&usize>>()
                });
                let own: Vec<BTreeSet<&usize>> = own.collect();
                for line in hunk.off.iter().filter(|line| !now[**line]) {
                    let mut all = sides.iter().zip(&own);
                    let is_doubled = all.any(|(sides, own)| {
                        let equal = sides.brought.get(&*self.lines[*line].text);
                        equal.into_iter().flatten().any(|other| {
                            let conflict = sides.conflicts.get(other);
                            state.on[*other] && conflict.is_some_and(|one| own.contains(one))
                        })
                    });
                    state.on[*line] &= !is_doubled;
                }
            }
        }
    }

    /// Returns the sides of the conflicts that a version wrote; `None` if it wrote
    /// none.
    fn sides(&self, at: usize) -> Option<Sides<'_>> {
        let text = |line: Line| &*self.lines[line].text;
        let begins = |line: Line| text(line).starts_with(b"<<<<<<< ");
        let added = &self.changes.get(at)?.on;
        added.iter().find(|line| begins(**line))?;
        let on = self.on_after(at);
        let mut sides = Sides {
            conflicts: BTreeMap::new(),
            brought: BTreeMap::new(),
        };
        let (mut conflict, mut is_in) = (0, false);
        for line in self.order.iter().copied().filter(|line| on[*line]) {
            let is_begin = begins(line);
            conflict += usize::from(is_begin);
            is_in = is_begin || is_in && !text(line).starts_with(b">>>>>>> ");
            if !is_in {
                continue;
            }
            sides.conflicts.insert(line, conflict);
            if self.lines[line].step == at && indents::has_words(text(line)) {
                sides.brought.entry(text(line)).or_default().push(line);
            }
        }
        Some(sides)
    }
}
