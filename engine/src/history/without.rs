//! Computes a file's content without the changes of some of its versions
//! (UNDO-1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use touchmark_proto::LineRange;

use super::kept::{Instead, Kept};
use super::spared::{Decided, Likely};
use super::weave::{Change, ChangeKind, Hunk, Line, Weave, number};

/// A file without some of its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// The content that remains; `None` if no file remains.
    pub bytes: Option<Vec<u8>>,
    /// The number of hunks that are undone, wholly or in part.
    pub hunks: u32,
    /// Changes that stay, since another version has changed the same lines.
    pub conflicts: Vec<Conflict>,
    /// Changes that stay, since their text is only likely the author's.
    pub likely: Vec<Likely>,
    /// Changes that stay, since another author has decided so.
    pub decided: Vec<Decided>,
    /// Versions that cannot be undone, since their changes cannot be
    /// distinguished from other versions': the contents between them are not
    /// stored.
    pub not_kept: Vec<usize>,
}

/// A change that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The lines of the file's current content where the change is. If it has
    /// no lines there, this is the line before its place.
    pub lines: LineRange,
    /// The index of the version that made the change.
    pub step: usize,
    /// The index of the version that changed the same lines later.
    pub by: usize,
    /// The previous lines, which the change replaced.
    pub before: Vec<u8>,
}

/// The smallest part of a change that is undone, or stays, alone.
pub(super) struct Part {
    pub(super) step: usize,
    pub(super) off: Vec<Line>,
    pub(super) on: Vec<Line>,
}

impl Weave {
    /// Computes the file's content without the versions that `undone` selects.
    ///
    /// The lines that they added are removed, and the lines that they removed
    /// are restored. Where another version has changed the added lines, the
    /// change stays. Lines that other versions added always stay.
    pub fn without(&self, undone: impl Fn(usize) -> bool) -> Remaining {
        self.without_sparing(undone, |_| false, true)
    }

    /// As [`without`](Self::without), but changes of the versions that
    /// `is_likely` selects stay where text appeared in them. Unless
    /// `spares_decided` is set, lines do not stay for the only reason that
    /// another author has decided about them.
    pub fn without_sparing(
        &self,
        undone: impl Fn(usize) -> bool,
        is_likely: impl Fn(usize) -> bool,
        spares_decided: bool,
    ) -> Remaining {
        let stay = |asked: &_, given: &_| self.kept(asked, given);
        self.without_but(undone, is_likely, spares_decided, stay)
    }

    /// As [`without`](Self::without), but the lines that the versions removed
    /// come back also where another version has changed what replaced them.
    pub fn without_any(&self, undone: impl Fn(usize) -> bool) -> Remaining {
        self.without_but(
            undone,
            |_| false,
            true,
            |_, given| Kept {
                lines: given.clone(),
                ..Kept::default()
            },
        )
    }

    /// Computes the file's content without versions, except for the parts that
    /// `stay`, which gets the versions and the lines that stay in any case.
    fn without_but(
        &self,
        undone: impl Fn(usize) -> bool,
        is_likely: impl Fn(usize) -> bool,
        spares_decided: bool,
        stay: impl Fn(&BTreeSet<usize>, &BTreeSet<(usize, Line)>) -> Kept,
    ) -> Remaining {
        let (asked, not_kept) = self.asked(undone);
        let (mut given, likely) = self.new_text(&asked, is_likely);
        let mut kept = stay(&asked, &given);
        let (mut state, mut hunks) = self.state(&asked, &kept);
        let mut decisions = match spares_decided {
            true => self.decisions(&asked, &state),
            false => BTreeMap::new(),
        };
        if !decisions.is_empty() {
            given.extend(decisions.keys().flat_map(|line| {
                let made = asked.iter().filter(|at| self.turns(**at, *line));
                made.map(|at| (*at, *line))
            }));
            kept = stay(&asked, &given);
            (state, hunks) = self.state(&asked, &kept);
            let now = self.on_after(self.changes.len());
            for line in decisions.keys() {
                state.on[*line] = now[*line];
                // A file in which a line stays is not removed.
                state.exists |= now[*line];
            }
        }
        self.leave_away(&asked, &given, &mut state);
        self.leave_other_sides(&asked, &mut state);
        let put_back = self.put_back(&asked, &state);
        match spares_decided {
            true => decisions.extend(put_back),
            false => {
                hunks += u32::from(!put_back.is_empty());
                put_back.keys().for_each(|line| state.on[*line] = false);
            }
        }
        let now = self.changes.last().is_some_and(|last| last.exists);
        let made = asked
            .iter()
            .any(|at| *at < self.changes.len() && self.made(*at));
        let empty = !state.on.iter().any(|on| *on);
        // The selected versions created the file, and no line of others is
        // left.
        let goes = !state.exists || empty && made && now && hunks > 0;
        let text = |line| self.text_without(line, &asked, &kept);
        let bytes = (!goes).then(|| self.text(&state.on, text));
        hunks += number(self.recasts_undone(&asked, &kept, &state).len());
        Remaining {
            bytes,
            hunks,
            conflicts: self.conflicts(kept),
            likely,
            decided: self.decided(&asked, decisions),
            not_kept,
        }
    }

    /// Returns the lines that remain without the versions to be undone, except
    /// for the parts of them that stay, and the number of hunks that are
    /// undone.
    pub(super) fn state(&self, asked: &BTreeSet<usize>, kept: &Kept) -> (LinesOn, u32) {
        let mut states: BTreeMap<usize, LinesOn> = BTreeMap::new();
        let wanted: BTreeSet<usize> = self.restored().collect();
        let mut state = LinesOn {
            on: vec![false; self.lines.len()],
            exists: false,
        };
        let mut now = self.on_after(self.changes.len());
        for (line, entry) in self.lines.iter().enumerate() {
            now[line] &= !asked.contains(&self.author_of(entry.step, line));
        }
        let mut hunks = 0;
        // The version that removed the file last. If git brings the file, and
        // takes it away again, it stays removed by that version.
        let mut removed_by = None;
        // The last removal after which lines that were missing do not come back.
        let mut forgotten = None;
        for (at, change) in self.changes.iter().enumerate() {
            let is_asked = asked.contains(&at);
            let is_carried = self.carried.contains(&at);
            let existed = at.checked_sub(1).is_some_and(|at| self.changes[at].exists);
            removed_by = match change.exists {
                _ if is_carried => removed_by,
                true => None,
                false if existed => Some(at),
                false => removed_by,
            };
            let is_removed_again =
                is_carried && !change.exists && removed_by.is_some_and(|by| asked.contains(&by));
            match &change.what {
                ChangeKind::Nothing => {}
                ChangeKind::Restored(_) if is_asked && !is_carried => {
                    let (stay, go): (Vec<Part>, Vec<Part>) = self
                        .line_parts(at, change)
                        .partition(|part| kept.stays(part));
                    for part in &stay {
                        state.turn(part, Some(&now));
                        state.exists |= change.exists && !part.on.is_empty();
                    }
                    hunks += u32::from(!go.is_empty());
                }
                ChangeKind::Restored(of) if is_carried || self.undos.contains(&at) => {
                    // ChangeKind was undone before it stays undone. An undo takes back
                    // the changes of its author, not all since that content.
                    for part in self.line_parts(at, change) {
                        let is_meant = asked.contains(&part.step);
                        let mut on = part.on.iter();
                        if !is_meant
                            || kept.stays(&part)
                            || on.any(|line| self.had_removed(part.step, *line, asked))
                        {
                            state.turn(&part, None);
                        }
                    }
                    if is_carried
                        && change.exists
                        && forgotten.take().is_some_and(|at| at > *of)
                        && let Some(then) = states.get(of)
                    {
                        // It is the same file again, so the lines that the
                        // versions to be undone had removed from it come back.
                        let made = self.on_after(*of);
                        for (on, (then, made)) in state.on.iter_mut().zip(then.on.iter().zip(made))
                        {
                            *on |= *then && !made;
                        }
                    }
                    state.exists = change.exists || is_removed_again && state.exists;
                }
                ChangeKind::Restored(of) => {
                    let before = asked.contains(of).then(|| state.clone());
                    if let Some(then) = states.get(of) {
                        state.clone_from(then);
                    }
                    if !change.exists && self.decides(at, asked) {
                        // Who removes the file means all of it.
                        (state.exists, state.on) = (false, vec![false; self.lines.len()]);
                    }
                    if change.exists && self.decides(at, asked) {
                        if let Some(before) = before {
                            self.keep_brought(at, asked, &before, &mut state);
                        }
                        if !existed {
                            // The file was made again. Lines that its author left
                            // out do not come back.
                            let made = self.on_after(at);
                            for (on, made) in state.on.iter_mut().zip(made) {
                                *on &= made;
                            }
                        }
                    }
                }
                ChangeKind::Hunks(all) => {
                    for hunk in all {
                        let parts = self.parts(at, hunk);
                        let meant = |part: &Part| asked.contains(&part.step);
                        let stays = |part: &Part| !meant(part) || kept.stays(part);
                        // A file exists if a part of what created it stays.
                        let is_there = parts.iter().any(|part| stays(part) && !part.on.is_empty());
                        state.exists |= change.exists && is_there;
                        let is_meant = is_asked || !self.claims.is_empty();
                        hunks += u32::from(is_meant && !parts.iter().all(stays));
                        for part in parts.iter().filter(|part| stays(part)) {
                            // A change that stays does not remove a line that
                            // is in the file now.
                            state.turn(part, meant(part).then_some(&now[..]));
                        }
                    }
                    for line in change.on.iter().filter(|_| is_carried) {
                        let made = self.made_by(at, *line);
                        let is_meant = made < at && asked.contains(&made);
                        state.on[*line] |= is_meant && self.had_removed(made, *line, asked);
                    }
                    if !is_asked {
                        state.exists = change.exists || is_removed_again && state.exists;
                    }
                    if !is_asked && !change.exists && self.decides(at, asked) {
                        // Lines that are missing from a file when it is removed
                        // do not come back in the next file of that name.
                        state.on.fill(false);
                        forgotten = Some(at);
                    }
                }
            }
            if wanted.contains(&at) {
                states.insert(at, state.clone());
            }
        }
        (state, hunks)
    }

    /// Turns on the lines of others that a version brought back, or left in the
    /// file. The earlier version with its content may be one to be undone.
    fn keep_brought(
        &self,
        at: usize,
        asked: &BTreeSet<usize>,
        before: &LinesOn,
        state: &mut LinesOn,
    ) {
        let brought = &self.changes[at].on;
        for (line, _) in self.on_after(at).iter().enumerate().filter(|(_, on)| **on) {
            let is_own = asked.contains(&self.author_of(self.lines[line].step, line));
            let stays = before.on[line] || brought.binary_search(&line).is_ok();
            state.on[line] |= !is_own && stays;
            state.exists |= state.on[line];
        }
    }

    /// Returns whether a version to be undone has only put a line back that
    /// another one of them had removed: without them the line would have been
    /// there.
    fn had_removed(&self, made: usize, line: Line, asked: &BTreeSet<usize>) -> bool {
        let last = |before: usize, of: fn(&Change) -> &[Line]| {
            let mut earlier = (0..before).rev();
            let at = earlier.find(|at| of(&self.changes[*at]).binary_search(&line).is_ok())?;
            Some((at, self.made_by(at, line)))
        };
        let mut at = made.min(self.changes.len());
        loop {
            let Some((off, by)) = last(at, |change| &change.off) else {
                return false;
            };
            let Some((_, on)) = last(off, |change| &change.on) else {
                return false;
            };
            if !asked.contains(&by) {
                return false;
            }
            if !asked.contains(&self.author_of(on, line)) {
                return true;
            }
            at = on;
        }
    }

    /// Turns off lines that only versions to be undone have added, and that are
    /// not in the file now: no part that stays brings them back. Lines in `given`
    /// may be another author's.
    fn leave_away(
        &self,
        asked: &BTreeSet<usize>,
        given: &BTreeSet<(usize, Line)>,
        state: &mut LinesOn,
    ) {
        let mut stays = self.on_after(self.changes.len());
        for (at, change) in self.changes.iter().enumerate() {
            for line in &change.on {
                let made = self.made_by(at, *line);
                let is_own = asked.contains(&self.author_of(made, *line));
                stays[*line] |= !is_own || given.contains(&(made, *line));
            }
        }
        for (on, stays) in state.on.iter_mut().zip(stays) {
            *on &= stays;
        }
    }

    /// Returns whether a version created the file.
    pub(super) fn made(&self, step: usize) -> bool {
        let before = step.checked_sub(1).map(|before| &self.changes[before]);
        self.changes[step].exists && !before.is_some_and(|before| before.exists)
    }

    /// Splits the selected versions into those that can be undone and those
    /// that cannot. A version that also represents earlier ones, whose contents
    /// are not stored, can be undone only if all of them are selected.
    pub(super) fn asked(&self, undone: impl Fn(usize) -> bool) -> (BTreeSet<usize>, Vec<usize>) {
        let mut asked = BTreeSet::new();
        let mut not_kept = Vec::new();
        let last = self.changes.len().saturating_sub(1);
        for (at, change) in self.changes.iter().enumerate() {
            // The next version with a stored content represents this one.
            let next = self.changes.get(at + 1);
            if at < last && next.is_some_and(|next| next.since == change.since) {
                continue;
            }
            let mixed = self.mixed.range(change.since..=at).next().is_some();
            let all = !mixed && (change.since..=at).all(&undone);
            if all {
                asked.insert(at);
            } else {
                not_kept.extend((change.since..=at).filter(|one| undone(*one)));
            }
        }
        let claims: BTreeSet<usize> = self.claims.values().copied().collect();
        asked.extend(claims.into_iter().filter(|claim| undone(*claim)));
        (asked, not_kept)
    }

    /// Splits a hunk of a version into its parts. Separate are what a redo or a
    /// carried version repeated, as a part of the version that made the change
    /// first, and the lines whose author the user has named, as a part of that
    /// claim.
    pub(super) fn parts(&self, at: usize, hunk: &Hunk) -> Vec<Part> {
        let redone = self.redone.range((at, 0)..(at + 1, 0)).next().is_some();
        let claimed = hunk.on.iter().any(|line| self.claims.contains_key(line));
        if !redone && !claimed {
            return parts(at, hunk);
        }
        let mut by: BTreeMap<usize, Hunk> = BTreeMap::new();
        let is_unclear = hunk.is_unclear;
        let step = |line: &Line| self.made_by(at, *line);
        let author = |line: &Line| self.author_of(step(line), *line);
        for line in &hunk.on {
            by.entry(author(line)).or_default().on.push(*line);
        }
        // Who is said to have written a line has also removed the line that it
        // replaced.
        let pairs = claimed && hunk.on.len() == hunk.off.len();
        let only = by
            .keys()
            .next()
            .copied()
            .filter(|_| claimed && by.len() == 1);
        for (place, line) in hunk.off.iter().enumerate() {
            let step = match hunk.on.get(place).filter(|_| pairs) {
                Some(on) => author(on),
                None => only.unwrap_or_else(|| step(line)),
            };
            by.entry(step).or_default().off.push(*line);
        }
        let all = by
            .into_iter()
            .map(|(step, hunk)| (step, Hunk { is_unclear, ..hunk }));
        all.flat_map(|(step, hunk)| parts(step, &hunk)).collect()
    }

    /// Splits a change into the changes of its lines, each as a part of the
    /// version that made it first.
    fn line_parts(&self, at: usize, change: &Change) -> impl Iterator<Item = Part> {
        let step = move |line: &Line| self.made_by(at, *line);
        let off = change.off.iter().map(move |line| Part {
            step: step(line),
            off: vec![*line],
            on: Vec::new(),
        });
        let on = change.on.iter().map(move |line| Part {
            step: step(line),
            off: Vec::new(),
            on: vec![*line],
        });
        off.chain(on)
    }

    /// Returns the versions whose content a later version restored.
    fn restored(&self) -> impl Iterator<Item = usize> {
        self.changes.iter().filter_map(|change| match change.what {
            ChangeKind::Restored(of) => Some(of),
            _ => None,
        })
    }

    /// Returns the parts that stay as conflicts, with their places in the
    /// file's current content.
    fn conflicts(&self, kept: Kept) -> Vec<Conflict> {
        if kept.parts.is_empty() {
            return Vec::new();
        }
        let (on, place) = self.places();
        let mut conflicts: Vec<Conflict> = Vec::new();
        let span = |lines: &[Line]| {
            let here = lines.iter().filter(|line| on[**line]);
            let here = here.map(|line| place[*line]);
            here.clone().min().zip(here.max())
        };
        // The lines that replaced the last part: they may have replaced many.
        let mut last: Option<(Instead, _)> = None;
        for (part, by, instead) in kept.parts {
            // Git has put another content in the place of all of it, as by
            // going to another branch: nothing of it is left.
            let is_left = part.on.iter().any(|line| on[*line]);
            if self.carried.contains(&by) && !is_left {
                continue;
            }
            let replaced = match &last {
                Some((lines, span)) if Arc::ptr_eq(lines, &instead) => *span,
                _ => span(&instead),
            };
            last = Some((instead, replaced));
            let spans = [span(&part.on), span(&part.off), replaced];
            let spans = spans.into_iter().flatten();
            let any = part.on.first().map_or(0, |line| place[*line]);
            let start = spans.clone().map(|(start, _)| start).min();
            let start = start.unwrap_or(any);
            let end = spans.map(|(_, end)| end).max().unwrap_or(any);
            let before = self.last_texts(part.off.iter().copied());
            conflicts.push(Conflict {
                lines: LineRange { start, end },
                step: part.step,
                by,
                before,
            });
        }
        conflicts.sort_by_key(|one| (one.lines.start, one.lines.end, one.step));
        // Adjacent lines of one change are one conflict.
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

    /// Returns which lines are in the file now, and each line's number there;
    /// of a line that is not, the number of the line before its place.
    pub(super) fn places(&self) -> (Vec<bool>, Vec<u32>) {
        let on = self.on_after(self.changes.len());
        let mut place = vec![0; self.lines.len()];
        let mut number = 0;
        for line in &self.order {
            number += u32::from(on[*line]);
            place[*line] = number;
        }
        (on, place)
    }

    /// Returns the text of the lines that are on, with the text of each.
    pub(super) fn text<'a>(&self, on: &[bool], text: impl Fn(Line) -> &'a [u8]) -> Vec<u8> {
        let lines = self.order.iter().filter(|line| on[**line]);
        joined(lines.map(|line| text(*line)))
    }

    /// Returns the last texts of lines.
    pub(super) fn last_texts(&self, lines: impl Iterator<Item = Line>) -> Vec<u8> {
        joined(lines.map(|line| &**self.lines[line].last_text()))
    }
}

/// Joins lines. A last line without a line end gets one if another line
/// follows.
fn joined<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut open: Option<&[u8]> = None;
    let mut end: &[u8] = b"\n";
    for text in lines {
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

/// Which lines are on, and whether the file exists.
#[derive(Clone)]
pub(super) struct LinesOn {
    pub(super) on: Vec<bool>,
    pub(super) exists: bool,
}

impl LinesOn {
    /// Applies a part of a change, but removes no line that is `spared`.
    fn turn(&mut self, part: &Part, spared: Option<&[bool]>) {
        for line in &part.off {
            self.on[*line] &= spared.is_some_and(|spared| spared[*line]);
        }
        for line in &part.on {
            self.on[*line] = true;
        }
    }
}

/// Splits a hunk into its parts. Where the numbers of removed and added lines
/// are equal, each pair is a part. Where lines were only added or only removed,
/// each line is a part. Otherwise, and where the lines could not be compared, the
/// whole hunk is one part.
pub(super) fn parts(step: usize, hunk: &Hunk) -> Vec<Part> {
    let one = |off: &[Line], on: &[Line]| Part {
        step,
        off: off.to_vec(),
        on: on.to_vec(),
    };
    match (&*hunk.off, &*hunk.on) {
        (off, on) if hunk.is_unclear => vec![one(off, on)],
        (off, on) if off.len() == on.len() => {
            let pairs = off.chunks(1).zip(on.chunks(1));
            pairs.map(|(off, on)| one(off, on)).collect()
        }
        ([], on) => on.chunks(1).map(|on| one(&[], on)).collect(),
        (off, []) => off.chunks(1).map(|off| one(off, &[])).collect(),
        (off, on) => vec![one(off, on)],
    }
}
