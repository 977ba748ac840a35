//! What a file would hold without the changes of some of its versions
//! (UNDO-1).

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::LineRange;

use super::weave::{Hunk, Line, Weave, What};

/// A file without some of its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Without {
    /// What it would hold; `None` where there would be no file.
    pub bytes: Option<Vec<u8>>,
    /// Changes that are taken away, counted by their hunks.
    pub hunks: u32,
    /// Changes that stay, since somebody else has changed the same lines.
    pub conflicts: Vec<Conflict>,
    /// Versions whose changes cannot be told from other versions', since what
    /// was between them is not kept: they stay.
    pub not_kept: Vec<usize>,
}

/// A change that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Where it is in what the file holds now. An empty place is the line
    /// before it.
    pub lines: LineRange,
    /// The version whose change it is.
    pub step: usize,
    /// The version that changed the same lines.
    pub by: usize,
    /// What stood there before, in the place of these lines.
    pub before: Vec<u8>,
}

/// The smallest part of a change that is taken away, or stays, by itself.
pub(super) struct Part {
    step: usize,
    off: Vec<Line>,
    on: Vec<Line>,
}

impl Weave {
    /// What the file would hold, had the versions that are `undone` not been.
    ///
    /// Lines that they brought go, and lines that they removed come back,
    /// where no other version has changed the lines that they brought. Lines
    /// that others brought stay in any case.
    pub fn without(&self, undone: impl Fn(usize) -> bool) -> Without {
        let (asked, not_kept) = self.asked(undone);
        let kept = self.kept(&asked, &BTreeSet::new());
        let (state, hunks) = self.state(&asked, &kept);
        let now = self.changes.last().is_some_and(|last| last.exists);
        let made = asked.iter().any(|at| self.made(*at));
        let empty = !state.on.iter().any(|on| *on);
        // Nothing of anybody else's is left of a file that they made.
        let goes = !state.exists || empty && made && now && hunks > 0;
        let bytes = (!goes).then(|| self.text(&state.on));
        Without {
            bytes,
            hunks,
            conflicts: self.conflicts(kept),
            not_kept,
        }
    }

    /// What is on without the versions that are to be undone, but for the parts
    /// of them that stay; and how many of their hunks are taken away.
    pub(super) fn state(&self, asked: &BTreeSet<usize>, kept: &Kept) -> (State, u32) {
        let mut states: BTreeMap<usize, State> = BTreeMap::new();
        let wanted: BTreeSet<usize> = self.restored().collect();
        let mut state = State {
            on: vec![false; self.lines.len()],
            exists: false,
        };
        let mut hunks = 0;
        for (at, change) in self.changes.iter().enumerate() {
            let is_asked = asked.contains(&at);
            match &change.what {
                What::Nothing => {}
                What::Restored(_) if is_asked => hunks += 1,
                What::Restored(of) => {
                    if let Some(then) = states.get(of) {
                        state.clone_from(then);
                    }
                }
                What::Hunks(all) => {
                    for hunk in all {
                        let parts = parts(at, hunk);
                        let stays = |part: &Part| !is_asked || kept.stays(part);
                        hunks += u32::from(is_asked && !parts.iter().all(stays));
                        for part in parts.iter().filter(|part| stays(part)) {
                            state.turn(part);
                        }
                    }
                    if !is_asked {
                        state.exists = change.exists;
                    }
                }
            }
            if wanted.contains(&at) {
                states.insert(at, state.clone());
            }
        }
        (state, hunks)
    }

    /// Whether there was no file before a version, and one after it.
    fn made(&self, step: usize) -> bool {
        let before = step.checked_sub(1).map(|before| &self.changes[before]);
        self.changes[step].exists && !before.is_some_and(|before| before.exists)
    }

    /// The versions that can be undone of those that are to be, and those that
    /// cannot. One that stands for several is undone if all of them are.
    pub(super) fn asked(&self, undone: impl Fn(usize) -> bool) -> (BTreeSet<usize>, Vec<usize>) {
        let mut asked = BTreeSet::new();
        let mut not_kept = Vec::new();
        let last = self.changes.len().saturating_sub(1);
        for (at, change) in self.changes.iter().enumerate() {
            // Of versions that are not kept the next that is known says all.
            let next = self.changes.get(at + 1);
            if at < last && next.is_some_and(|next| next.since == change.since) {
                continue;
            }
            let all = (change.since..=at).all(&undone);
            if all {
                asked.insert(at);
            } else {
                not_kept.extend((change.since..=at).filter(|one| undone(*one)));
            }
        }
        (asked, not_kept)
    }

    /// Versions whose state came back later.
    fn restored(&self) -> impl Iterator<Item = usize> {
        self.changes.iter().filter_map(|change| match change.what {
            What::Restored(of) => Some(of),
            _ => None,
        })
    }

    /// Which parts of the versions that are to be undone stay, the newest
    /// first: one that stays is as another's to those before it.
    ///
    /// What is `given` stays in any case: a line, and the version that turned
    /// it on or off.
    pub(super) fn kept(&self, asked: &BTreeSet<usize>, given: &BTreeSet<(usize, Line)>) -> Kept {
        let mut kept = Kept {
            lines: given.clone(),
            ..Kept::default()
        };
        let mut next = self.changes.len();
        while let Some(at) = next.checked_sub(1) {
            next = at;
            let hunks = match &self.changes[at].what {
                What::Nothing => continue,
                // What it took back has not been.
                What::Restored(of) if !asked.contains(&at) => {
                    next = of + 1;
                    continue;
                }
                What::Restored(_) => continue,
                What::Hunks(hunks) => hunks,
            };
            for hunk in hunks {
                for part in parts(at, hunk) {
                    if asked.contains(&at) && !kept.stays(&part) {
                        kept.look(part);
                    } else {
                        kept.others(at, &part);
                    }
                }
            }
        }
        kept
    }

    /// Where the parts that stay are in what the file holds now.
    fn conflicts(&self, kept: Kept) -> Vec<Conflict> {
        if kept.parts.is_empty() {
            return Vec::new();
        }
        let mut place = vec![0; self.lines.len()];
        let mut on = vec![false; self.lines.len()];
        for change in &self.changes {
            change.turn(&mut on);
        }
        let mut number = 0;
        for line in &self.order {
            number += u32::from(on[*line]);
            place[*line] = number;
        }
        let mut conflicts: Vec<Conflict> = Vec::new();
        for (part, by, instead) in kept.parts {
            let all = part.on.iter().chain(&part.off).chain(&instead);
            let here: Vec<Line> = all.copied().filter(|line| on[*line]).collect();
            let places = here.iter().map(|line| place[*line]);
            let any = part.on.first().map_or(0, |line| place[*line]);
            let start = places.clone().min().unwrap_or(any);
            let end = places.max().unwrap_or(any);
            let before = self.joined(part.off.iter().copied());
            conflicts.push(Conflict {
                lines: LineRange { start, end },
                step: part.step,
                by,
                before,
            });
        }
        conflicts.sort_by_key(|one| (one.lines.start, one.lines.end, one.step));
        // Lines of one change that lie beside one another are one conflict.
        let mut folded: Vec<Conflict> = Vec::with_capacity(conflicts.len());
        for next in conflicts {
            match folded.last_mut() {
                Some(last)
                    if (last.step, last.by) == (next.step, next.by)
                        && next.lines.start <= last.lines.end + 1 =>
                {
                    last.lines.end = last.lines.end.max(next.lines.end);
                    last.before.extend(next.before);
                }
                _ => folded.push(next),
            }
        }
        folded
    }

    /// The text of the lines that are on.
    pub(super) fn text(&self, on: &[bool]) -> Vec<u8> {
        self.joined(self.order.iter().copied().filter(|line| on[*line]))
    }

    /// Lines behind one another. One that was the last, without an end, gets
    /// one where another follows.
    pub(super) fn joined(&self, lines: impl Iterator<Item = Line>) -> Vec<u8> {
        let mut bytes: Vec<u8> = Vec::new();
        let mut open: Option<&[u8]> = None;
        let mut end: &[u8] = b"\n";
        for line in lines {
            let text = &*self.lines[line].text;
            if open.take().is_some() {
                bytes.extend_from_slice(end);
            }
            bytes.extend_from_slice(text);
            match text {
                [.., b'\r', b'\n'] => end = b"\r\n",
                [.., b'\n'] => end = b"\n",
                _ => open = Some(text),
            }
        }
        bytes
    }
}

/// What is on, and whether there is a file.
#[derive(Clone)]
pub(super) struct State {
    pub(super) on: Vec<bool>,
    pub(super) exists: bool,
}

impl State {
    fn turn(&mut self, part: &Part) {
        for line in &part.off {
            self.on[*line] = false;
        }
        for line in &part.on {
            self.on[*line] = true;
        }
    }
}

/// What stays of the versions that are to be undone.
#[derive(Default)]
pub(super) struct Kept {
    /// By a line that was replaced: by which version, with which lines.
    replaced: BTreeMap<Line, Vec<(usize, Vec<Line>)>>,
    /// Each with the version that changed its lines, and the lines that it put
    /// there.
    parts: Vec<(Part, usize, Vec<Line>)>,
    /// Lines that they brought, and lines that they removed, by version.
    lines: BTreeSet<(usize, Line)>,
}

impl Kept {
    /// A change that is not undone.
    fn others(&mut self, step: usize, part: &Part) {
        for line in &part.off {
            let by = self.replaced.entry(*line).or_default();
            by.push((step, part.on.clone()));
        }
    }

    /// A change that is to be undone.
    fn look(&mut self, part: Part) {
        let changed = part.on.iter().find_map(|line| {
            let by = self.replaced.get(line)?;
            // Whoever put back what it had removed has undone it already, and
            // whoever removed lines that stood for none has done so in part.
            let is_undone = |on: &[Line]| match on {
                [] => part.off.is_empty(),
                on => on.iter().all(|line| part.off.contains(line)),
            };
            by.iter().find(|(_, on)| !is_undone(on)).cloned()
        });
        if let Some((by, instead)) = changed {
            self.others(part.step, &part);
            let lines = part.on.iter().chain(&part.off);
            self.lines.extend(lines.map(|line| (part.step, *line)));
            self.parts.push((part, by, instead));
        }
    }

    fn stays(&self, part: &Part) -> bool {
        let mut lines = part.on.iter().chain(&part.off);
        lines.any(|line| self.lines.contains(&(part.step, *line)))
    }
}

/// The parts of a hunk: each line, where as many lines took the place of as
/// many, or of none, or none of some; else all of it.
fn parts(step: usize, hunk: &Hunk) -> Vec<Part> {
    let one = |off: &[Line], on: &[Line]| Part {
        step,
        off: off.to_vec(),
        on: on.to_vec(),
    };
    match (&*hunk.off, &*hunk.on) {
        (off, on) if off.len() == on.len() => {
            let pairs = off.chunks(1).zip(on.chunks(1));
            pairs.map(|(off, on)| one(off, on)).collect()
        }
        ([], on) => on.chunks(1).map(|on| one(&[], on)).collect(),
        (off, []) => off.chunks(1).map(|off| one(off, &[])).collect(),
        (off, on) => vec![one(off, on)],
    }
}
