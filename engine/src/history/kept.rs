//! Which parts of the versions to be undone stay (UNDO-2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::indents;
use super::weave::{ChangeKind, Hunk, Line, Weave};
use super::without::{Part, parts};

/// The least number of different lines that a text has of which nothing is left
/// once it is replaced by another one.
const FEW: usize = 4;

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

impl Weave {
    /// Determines which parts of the versions to be undone stay. It goes from
    /// the newest version to the oldest: a part that stays counts as another
    /// author's change for the versions before it.
    ///
    /// The lines in `given` stay in any case. Each is given with the version
    /// that added or removed it.
    pub(super) fn kept(&self, asked: &BTreeSet<usize>, given: &BTreeSet<(usize, Line)>) -> Kept {
        let mut kept = Kept {
            lines: given.clone(),
            ..Kept::default()
        };
        // For each line, the last version that added it or put it back.
        let mut last = vec![0; self.lines.len()];
        for (at, change) in self.changes.iter().enumerate() {
            for line in &change.on {
                last[*line] = at;
            }
        }
        // Whether the file has the content of this version, as after an undo and
        // its redo.
        let mut is_newest = true;
        let mut next = self.changes.len();
        while let Some(at) = next.checked_sub(1) {
            next = at;
            let is_carried = self.carried.contains(&at);
            let hunks = match &self.changes[at].what {
                ChangeKind::Nothing => continue,
                // ChangeKind git took back and brought again later counts.
                ChangeKind::Restored(_) if is_carried && !is_newest => continue,
                // The versions whose changes it took back do not count.
                ChangeKind::Restored(of) if is_carried || !asked.contains(&at) => {
                    next = of + 1;
                    continue;
                }
                ChangeKind::Restored(_) => {
                    is_newest = false;
                    continue;
                }
                ChangeKind::Hunks(hunks) => hunks,
            };
            is_newest = false;
            if kept.anew.is_none() && !is_carried && !asked.contains(&at) {
                kept.anew = self.made_anew(at, hunks);
            }
            let is_undo = self.undos.contains(&at);
            for hunk in hunks {
                if is_undo {
                    // ChangeKind it took away and what it put in its place are one
                    // change.
                    for part in parts(at, hunk) {
                        kept.others(&part, |_| true);
                    }
                }
                for part in self.parts(at, hunk) {
                    if asked.contains(&part.step) && !kept.stays(&part) {
                        let is_gone = part.off.iter().any(|line| last[*line] < at);
                        kept.look(part, is_gone);
                    } else if !is_carried && !is_undo {
                        kept.others(&part, |_| true);
                    } else if is_carried && part.step == at {
                        // Lines that git took away and brought back later were
                        // changed by no author.
                        kept.others(&part, |line| last[line] < at);
                    }
                }
            }
        }
        kept
    }

    /// Returns a version with its lines if it replaced all lines of a file, and
    /// of more than a few lines has kept none: that is another text, into which
    /// the lines that were removed before do not belong. White space does not
    /// count.
    fn made_anew(&self, at: usize, hunks: &[Hunk]) -> Option<(usize, Instead)> {
        let [hunk] = hunks else { return None };
        let before = self.on_after(at.checked_sub(1)?);
        let is_all = before.iter().filter(|on| **on).count() == hunk.off.len();
        let text = |line: &Line| self.lines[*line].text.trim_ascii();
        let old = hunk.off.iter().map(text);
        let old: BTreeSet<&[u8]> = old.filter(|text| indents::has_words(text)).collect();
        let is_new = |line: &Line| self.lines[*line].step == at && !old.contains(text(line));
        let is_anew = is_all && old.len() >= FEW && !hunk.on.is_empty();
        (is_anew && hunk.on.iter().all(is_new)).then(|| (at, hunk.on.as_slice().into()))
    }
}
