//! Changes that an undo leaves as they are, since they may be another author's,
//! or since another author has decided about their lines.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::LineRange;

use super::indents::bare;
use super::weave::{Change, ChangeKind, Hunk, Line, Weave};
use super::without::LinesOn;

/// A change that stays, since its text may be another author's (UNDO-7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Likely {
    /// Its lines in the file's current content.
    pub lines: LineRange,
    /// The index of the version that made the change.
    pub step: usize,
    /// The number of lines that it removed, which do not come back.
    pub removed: u32,
    /// The lines that stay.
    pub text: Vec<u8>,
}

/// Lines that stay as they are, since another author has put them back, or has
/// taken them away again (UNDO-9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Their place in the file's current content. If they are not in it, this is
    /// the line before their place.
    pub lines: LineRange,
    /// The index of the version that made the change.
    pub step: usize,
    /// The index of the version that decided.
    pub by: usize,
    /// Whether lines were put back. Else all of them were taken away.
    pub is_there: bool,
    /// The number of lines that do not come back.
    pub removed: u32,
    /// The lines that were put back, or else those that do not come back.
    pub text: Vec<u8>,
}

impl Weave {
    /// Finds the changes of likely versions that stay: the hunks in which a text
    /// appeared ([`appeared`](Self::appeared)) and still is, or would be again,
    /// since it was removed only by a change that is undone. Returns all lines of
    /// these hunks, each with the version, and the hunks for people.
    pub(super) fn new_text(
        &self,
        asked: &BTreeSet<usize>,
        is_likely: impl Fn(usize) -> bool,
    ) -> (BTreeSet<(usize, Line)>, Vec<Likely>) {
        let (mut given, mut found) = (BTreeSet::new(), Vec::new());
        let likely = asked.iter().copied().filter(|at| {
            if *at >= self.changes.len() {
                return false;
            }
            let mut all = self.changes[*at].since..=*at;
            all.any(&is_likely)
        });
        let likely: BTreeSet<usize> = likely.collect();
        if likely.is_empty() {
            return (given, found);
        }
        let (mut on, place) = self.places();
        let mut there = on.clone();
        let removed = self.removed();
        let appeared = self.appeared(asked, &likely);
        // Versions are taken from the newest to the oldest. When a change is
        // undone, the lines that it removed exist again for the older versions.
        for (at, change) in self.changes.iter().enumerate().rev() {
            let hunks = match likely.contains(&at) {
                true => self.hunks_of(change, &there),
                false => Cow::default(),
            };
            change.turn_back(&mut there);
            if !asked.contains(&at) {
                continue;
            }
            for hunk in &*hunks {
                let is_here = |line: &Line| on[*line] && self.author_of(at, *line) == at;
                let here: Vec<Line> = hunk.on.iter().copied().filter(is_here).collect();
                let is_new = |line: &Line| appeared.contains(&(at, *line));
                if !here.iter().any(is_new) || self.is_white_space(hunk) {
                    continue;
                }
                let lines = hunk.on.iter().chain(&hunk.off);
                given.extend(lines.map(|line| (at, *line)));
                let places = here.iter().map(|line| place[*line]);
                found.push(Likely {
                    lines: LineRange {
                        start: places.clone().min().unwrap_or_default(),
                        end: places.max().unwrap_or_default(),
                    },
                    step: at,
                    removed: u32::try_from(hunk.off.len()).unwrap_or(u32::MAX),
                    text: self.last_texts(here.into_iter()),
                });
            }
            for line in &change.off {
                let is_last = removed.get(line) == Some(&at);
                on[*line] |= is_last && !given.contains(&(at, *line));
            }
        }
        found.sort_by_key(|one| (one.lines.start, one.step));
        (given, found)
    }

    /// Returns the lines with which a text appeared in a likely version, each
    /// with the version: the file did not have the text right before. A user may
    /// have typed it, or brought it back, as an editor's undo does. It did not
    /// appear if it was removed by a change that is undone: then it comes back
    /// anyway.
    fn appeared(
        &self,
        asked: &BTreeSet<usize>,
        likely: &BTreeSet<usize>,
    ) -> BTreeSet<(usize, Line)> {
        /// How many lines have a text, and the version that removed the last one.
        #[derive(Default)]
        struct Found {
            lines: usize,
            removed: Option<usize>,
        }
        let texts = |line: Line| {
            let entry = &self.lines[line];
            let later = entry.later.iter().map(|cast| &*cast.text);
            later.chain([&*entry.text])
        };
        let mut found: BTreeMap<&[u8], Found> = BTreeMap::new();
        let mut appeared = BTreeSet::new();
        for (at, change) in self.changes.iter().enumerate() {
            let new = change.on.iter().filter(|_| likely.contains(&at));
            appeared.extend(new.map(|line| (at, *line)).filter(|(_, line)| {
                let before = found.get(&*self.lines[*line].text);
                before.is_none_or(|before| {
                    before.lines == 0 && before.removed.is_none_or(|by| !asked.contains(&by))
                })
            }));
            for line in &change.off {
                for text in texts(*line) {
                    let before = found.entry(text).or_default();
                    before.lines = before.lines.saturating_sub(1);
                    before.removed = Some(self.made_by(at, *line));
                }
            }
            for text in change.on.iter().flat_map(|line| texts(*line)) {
                found.entry(text).or_default().lines += 1;
            }
        }
        appeared
    }

    /// Returns the hunks of a change, also of one that restored an earlier
    /// content. `there` says which lines the file had after it.
    fn hunks_of<'c>(&self, change: &'c Change, there: &[bool]) -> Cow<'c, [Hunk]> {
        match &change.what {
            ChangeKind::Hunks(hunks) => return Cow::Borrowed(hunks),
            ChangeKind::Nothing => return Cow::default(),
            ChangeKind::Restored(_) => {}
        }
        let mut hunks = vec![Hunk::default()];
        let mut last = 0;
        for line in &self.order {
            let is_in = |lines: &[Line]| lines.binary_search(line).is_ok();
            if is_in(&change.on) {
                hunks[last].on.push(*line);
            } else if is_in(&change.off) {
                hunks[last].off.push(*line);
            } else if there[*line] {
                // The lines on both sides of an unchanged one are two hunks.
                hunks.push(Hunk::default());
                last += 1;
            }
        }
        Cow::Owned(hunks)
    }

    /// Returns the lines that are not in the file, each with the version that
    /// removed it last.
    fn removed(&self) -> BTreeMap<Line, usize> {
        let mut removed = BTreeMap::new();
        for (at, change) in self.changes.iter().enumerate() {
            change.on.iter().for_each(|line| {
                removed.remove(line);
            });
            let made = |line: &Line| self.made_by(at, *line);
            removed.extend(change.off.iter().map(|line| (*line, made(line))));
        }
        removed
    }

    /// Returns whether a hunk changed nothing but white space.
    fn is_white_space(&self, hunk: &Hunk) -> bool {
        let text = |line: &Line| self.lines[*line].text.iter();
        let letters = |lines: &[Line]| bare(lines.iter().flat_map(text));
        letters(&hunk.on) == letters(&hunk.off)
    }

    /// Returns whether a version is a decision of its author about the lines
    /// that it adds and removes (UNDO-9): it is not undone, git carried none of
    /// it, and it is no undo and takes none back.
    pub(super) fn decides(&self, at: usize, asked: &BTreeSet<usize>) -> bool {
        let mut repeats = self.redone.range((at, 0)..(at + 1, 0));
        !self.carried.contains(&at)
            && !asked.contains(&at)
            && !self.undos.contains(&at)
            && repeats.next().is_none()
    }

    /// Finds the lines that the undo would change although another author has
    /// decided that they are as they are now: the last version that added or
    /// removed them took the file back to an earlier content, or the author made
    /// the file again with lines of others, and others have changed it since.
    /// Returns them with the version that decided.
    pub(super) fn decisions(
        &self,
        asked: &BTreeSet<usize>,
        state: &LinesOn,
    ) -> BTreeMap<Line, usize> {
        let now = self.on_after(self.changes.len());
        let differs = (0..now.len()).filter(|line| state.on[*line] != now[*line]);
        let mut differs: BTreeSet<Line> = differs.collect();
        let mut found = BTreeMap::new();
        let mut built_on: BTreeMap<usize, Option<usize>> = BTreeMap::new();
        for (at, change) in self.changes.iter().enumerate().rev() {
            if differs.is_empty() {
                break;
            }
            for (lines, to) in [(&change.on, true), (&change.off, false)] {
                for line in lines {
                    let made = self.made_by(at, *line);
                    // ChangeKind git carried decides nothing.
                    if now[*line] != to || self.carried.contains(&made) || !differs.remove(line) {
                        continue;
                    }
                    let is_own = asked.contains(&self.author_of(self.lines[*line].step, *line));
                    let is_return = matches!(self.changes[made].what, ChangeKind::Restored(_));
                    let mut built_on = || {
                        let known = built_on.entry(made);
                        *known.or_insert_with(|| self.built_on(made, asked))
                    };
                    let by = match is_return && self.decides(made, asked) {
                        true => Some(made),
                        false => built_on().filter(|_| to && !is_own),
                    };
                    found.extend(by.map(|by| (*line, by)));
                }
            }
        }
        found
    }

    /// Finds the lines of the versions to be undone that are in the file because
    /// another author has put them back, each with the version that did.
    pub(super) fn put_back(
        &self,
        asked: &BTreeSet<usize>,
        state: &LinesOn,
    ) -> BTreeMap<Line, usize> {
        let now = self.on_after(self.changes.len());
        let mut found = BTreeMap::new();
        for (line, entry) in self.lines.iter().enumerate() {
            let is_own = asked.contains(&self.author_of(entry.step, line));
            if !is_own || !now[line] || !state.on[line] {
                continue;
            }
            let adds = |change: &Change| change.on.binary_search(&line).is_ok();
            let last = self.changes.iter().rposition(adds);
            if let Some(at) = last.filter(|at| *at > entry.step && self.decides(*at, asked)) {
                found.insert(line, at);
            }
        }
        found
    }

    /// Returns the last version by another author, if a version to be undone made
    /// the file again, and it was not removed since.
    fn built_on(&self, made: usize, asked: &BTreeSet<usize>) -> Option<usize> {
        let is_there = |change: &Change| change.exists;
        if !asked.contains(&made) || !self.made(made) || !self.changes[made..].iter().all(is_there)
        {
            return None;
        }
        let is_change =
            |at: &usize| !self.changes[*at].on.is_empty() || !self.changes[*at].off.is_empty();
        let mut later = made + 1..self.changes.len();
        later.rfind(|at| self.decides(*at, asked) && is_change(at))
    }

    /// Returns whether a version added or removed a line.
    pub(super) fn turns(&self, at: usize, line: Line) -> bool {
        let Some(change) = self.changes.get(at) else {
            return self.claims.get(&line) == Some(&at);
        };
        let mut both = [&change.on, &change.off].into_iter();
        both.any(|lines| lines.binary_search(&line).is_ok())
    }

    /// Returns for people the lines that stay by a decision. Adjacent lines with
    /// the same decision are one change.
    pub(super) fn decided(
        &self,
        asked: &BTreeSet<usize>,
        decisions: BTreeMap<Line, usize>,
    ) -> Vec<Decided> {
        if decisions.is_empty() {
            return Vec::new();
        }
        let (on, place) = self.places();
        let mut all: Vec<Decided> = Vec::new();
        let mut last = None;
        for (at, line) in self.order.iter().enumerate() {
            let Some(by) = decisions.get(line) else {
                continue;
            };
            let Some(made) = asked.iter().rfind(|at| self.turns(**at, *line)) else {
                continue;
            };
            let (is_there, number) = (on[*line], place[*line]);
            let text = self.lines[*line].last_text();
            let is_next = last.replace(at).is_some_and(|last| last + 1 == at);
            let same = all.last_mut().filter(|_| is_next);
            let same = same.filter(|one| (one.step, one.by) == (*made, *by));
            let Some(one) = same else {
                all.push(Decided {
                    lines: LineRange {
                        start: number,
                        end: number,
                    },
                    step: *made,
                    by: *by,
                    is_there,
                    removed: u32::from(!is_there),
                    text: text.to_vec(),
                });
                continue;
            };
            one.removed += u32::from(!is_there);
            match (one.is_there, is_there) {
                // They replaced the lines before them.
                (false, true) => {
                    (one.is_there, one.lines.start) = (true, number);
                    one.text = text.to_vec();
                }
                (true, false) => continue,
                _ => one.text.extend_from_slice(text),
            }
            one.lines.end = number;
        }
        all
    }
}
