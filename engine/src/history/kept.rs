//! Which parts of the versions to be undone stay (UNDO-2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::weave::Line;
use super::without::Part;

/// Lines that replaced others, shared by all that they replaced.
pub(super) type Instead = Arc<[Line]>;

/// The parts that stay of the versions to be undone.
#[derive(Default)]
pub(super) struct Kept {
    /// For each line that was replaced or removed, the versions that did so, each
    /// with its new lines in that place.
    pub(super) replaced: BTreeMap<Line, Vec<(usize, Instead)>>,
    /// The parts that stay. With each: the version that changed its lines, and
    /// that version's new lines.
    pub(super) parts: Vec<(Part, usize, Instead)>,
    /// The lines that stay as a version added or removed them, each with that
    /// version: those given, and those of the parts that stay.
    pub(super) lines: BTreeSet<(usize, Line)>,
    /// The newest version that replaced the file's whole text by another one
    /// (`Weave::made_anew`), with its lines.
    pub(super) anew: Option<(usize, Instead)>,
}

impl Kept {
    /// Notes a change that is not undone, of the lines that count.
    pub(super) fn others(&mut self, part: &Part, counts: impl Fn(Line) -> bool) {
        let on: Instead = part.on.as_slice().into();
        for line in part.off.iter().filter(|line| counts(**line)) {
            let by = self.replaced.entry(*line).or_default();
            by.push((part.step, Arc::clone(&on)));
        }
    }

    /// Checks a part that is to be undone. It stays if a version that stays has
    /// changed its lines. It also stays if the file was rewritten since, so that
    /// its lines would come back into another text. `is_gone` says whether they
    /// are away: no version has brought them back.
    pub(super) fn look(&mut self, part: Part, is_gone: bool) {
        let off: BTreeSet<Line> = part.off.iter().copied().collect();
        // The change that was looked at last: it may have replaced many lines.
        let mut undone: Option<Instead> = None;
        let changed = part.on.iter().find_map(|line| {
            let by = self.replaced.get(line)?;
            // A later change that put the removed lines back has undone the
            // part already. A later change that only removed lines has undone a
            // part that had replaced none.
            let mut is_undone = |on: &Instead| {
                let is_same = undone.as_ref().is_some_and(|last| Arc::ptr_eq(last, on));
                let is = match &**on {
                    _ if is_same => true,
                    [] => off.is_empty(),
                    on => on.iter().all(|line| off.contains(line)),
                };
                if is {
                    undone = Some(Arc::clone(on));
                }
                is
            };
            by.iter().find(|(_, on)| !is_undone(on)).cloned()
        });
        let comes_back = part.on.is_empty() && is_gone;
        let changed = changed.or_else(|| self.anew.clone().filter(|_| comes_back));
        if let Some((by, instead)) = changed {
            self.others(&part, |_| true);
            let lines = part.on.iter().chain(&part.off);
            self.lines.extend(lines.map(|line| (part.step, *line)));
            self.parts.push((part, by, instead));
        }
    }

    pub(super) fn stays(&self, part: &Part) -> bool {
        let mut lines = part.on.iter().chain(&part.off);
        lines.any(|line| self.has(part.step, *line))
    }

    /// Returns whether a line stays as a version made it.
    pub(super) fn has(&self, step: usize, line: Line) -> bool {
        self.lines.contains(&(step, line))
    }
}
