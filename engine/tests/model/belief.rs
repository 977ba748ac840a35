//! What one session was shown of one file, or wrote, last, line by line; and
//! what its copy is therefore worth. Where no text is kept for the engine, a
//! file that changed is stale as a whole: a line is current only if it was
//! shown out of what the file holds now. Where texts are kept, it is current if
//! it stands at the corresponding place.

use std::collections::{BTreeMap, BTreeSet};

use crate::lines::{Match, matches, unchanged};
use crate::text::Text;

/// Lines, the first is 1; none for the whole file.
pub type Range = Option<(u32, u32)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// Nothing of it was ever shown.
    Unread,
    /// All that is held is so.
    Fresh,
    /// Something held is not so.
    Stale,
    /// It was shown, and is gone.
    Deleted,
    /// The contract leaves it open: `Copy::open` says why.
    Open,
}

/// A line as it was last shown or written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    /// The content that it stood in.
    of: Text,
    /// It was shown and is in the context still; else the session wrote it.
    resident: bool,
    /// The session wrote it: until all of its context is cut it believes that.
    own: bool,
    /// It was shown out of another content.
    moved: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    lines: BTreeMap<u32, Line>,
    /// That nothing follows the last line.
    end: Option<Line>,
    /// The content that something was shown of last, or that was written.
    last: Option<Text>,
    /// What that was before it was that.
    earlier: Option<Text>,
    /// Contents of which lines were cut: they were seen.
    cut: Vec<Text>,
    /// It was read, not only written, and that counts still: else the next
    /// read is a first one.
    pub read: bool,
    /// Texts are kept.
    pub texts: bool,
    /// Lines that stand in the place of what the session had, or between that,
    /// and were not shown; counted in the content shown last.
    changed: BTreeSet<u32>,
    /// Why the contract does not say what the copy is worth; until the next
    /// whole read, or a write.
    pub open: Option<&'static str>,
}

impl Copy {
    pub fn is_known(&self) -> bool {
        self.last.is_some() || self.open.is_some()
    }

    pub fn worth(&self, there: Option<&Text>) -> Worth {
        let Some(last) = &self.last else {
            return match self.open {
                Some(_) => Worth::Open,
                None => Worth::Unread,
            };
        };
        if self.open.is_some() {
            return Worth::Open;
        }
        let Some(there) = there else {
            return Worth::Deleted;
        };
        if self.texts && there != last {
            return self.compared(last, there);
        }
        if !self.changed.is_empty() {
            return Worth::Stale;
        }
        let mut held = self.lines.values().chain(&self.end).peekable();
        let fresh = match held.peek() {
            None => last == there,
            Some(_) => held.all(|line| line.of == *there),
        };
        if fresh { Worth::Fresh } else { Worth::Stale }
    }

    /// Whether what is held stands in another content, at the corresponding
    /// place.
    fn compared(&self, last: &Text, there: &Text) -> Worth {
        let held: BTreeSet<u32> = self.lines.keys().copied().collect();
        if self.lines.values().chain(&self.end).any(|l| l.of != *last) {
            return Worth::Open;
        }
        if !self.changed.is_empty() || self.is_whole(last) {
            return Worth::Stale;
        }
        // No line is left: whether the two were compared before that is not
        // said, nor what it is to know only where a text ends.
        if held.is_empty() {
            return Worth::Open;
        }
        let found = matches(last, there);
        let fresh = found.iter().filter(|found| unchanged(&held, found));
        match fresh.count() {
            0 => Worth::Stale,
            count if count == found.len() => Worth::Fresh,
            // Where lines repeat, several correspondences are right.
            _ => Worth::Open,
        }
    }

    fn is_whole(&self, text: &Text) -> bool {
        let all = (1..=text.len() as u32).all(|number| self.lines.contains_key(&number));
        all && self.end.is_some()
    }

    /// Some lines of a content are shown: what is held of the one before, and
    /// stands in it, stays, and what came in the place of the rest is to be
    /// shown.
    fn moves_to(&mut self, text: &Text) {
        let Some(last) = self.last.clone().filter(|last| last != text) else {
            return;
        };
        let mut any = self.lines.values().chain(&self.end).peekable();
        if any.peek().is_none() && self.changed.is_empty() {
            return;
        }
        if any.any(|line| line.of != last) {
            self.open = Some("it had lines of several contents");
        }
        let found = matches(&last, text);
        let [found] = &found[..] else {
            self.open = Some("lines repeat");
            return;
        };
        if !self.changed.is_empty() {
            // Which of them are among what came since is not followed.
            self.open = Some("it changed again before all of it was shown");
        }
        let whole = self.is_whole(&last);
        self.changed = self.to_show(whole, found, text.len() as u32);
        let before = std::mem::take(&mut self.lines);
        for (number, line) in before {
            let place = found.get(number as usize - 1).copied().flatten();
            if let Some(place) = place {
                let moved = Line {
                    of: text.clone(),
                    resident: true,
                    own: false,
                    moved: true,
                };
                self.lines.insert(place as u32 + 1, moved);
            }
            self.cut.push(line.of);
        }
        if let Some(end) = &mut self.end {
            end.of = text.clone();
            end.moved = true;
        }
    }

    /// The lines of the newer text that stand where what is held does not, or
    /// between it; the two around the seam where there are none.
    fn to_show(&self, whole: bool, found: &Match, count: u32) -> BTreeSet<u32> {
        let held = |line: u32| self.lines.contains_key(&line);
        let mut show = BTreeSet::new();
        let (mut i, mut j) = (1, 1);
        let ends = found.iter().zip(1..);
        let ends = ends.filter_map(|(b, a)| Some((a, (*b)? as u32 + 1)));
        let old = found.len() as u32 + 1;
        for (a, b) in ends.chain([(old, count + 1)]) {
            let touched = match (a == i, i == 1 || i == old) {
                (true, true) => whole,
                (true, false) => held(i - 1) && held(i),
                (false, _) => (i..a).any(held),
            };
            if touched && (a, b) != (i, j) {
                match b == j {
                    true => show.extend([j.max(2) - 1, j]),
                    false => show.extend(j..b),
                }
            }
            (i, j) = (a + 1, b + 1);
        }
        show
    }

    /// Something of this content is held.
    pub fn has_some_of(&self, text: &Text) -> bool {
        self.last.as_ref() == Some(text)
            || self
                .lines
                .values()
                .chain(&self.end)
                .any(|line| line.of == *text)
            || self.cut.contains(text)
            || self.open.is_some()
    }

    /// The content was shown last, whatever part of it.
    pub fn shown_last(&self, text: &Text) -> bool {
        self.last.as_ref() == Some(text)
    }

    /// The content was shown last before the newer one was.
    pub fn shown_before(&self, text: &Text, newer: &Text) -> bool {
        self.earlier.as_ref() == Some(text) && self.shown_last(newer)
    }

    /// It takes the file to hold something.
    pub fn believes(&self) -> bool {
        !self.lines.is_empty() || self.end.is_some() || !self.changed.is_empty()
    }

    /// `there`: the file holds that; else nobody knows where it ends.
    pub fn shown(&mut self, text: &Text, range: Range, there: bool) {
        let count = text.len() as u32;
        let (first, last) = range.unwrap_or((1, count));
        let ends = last >= count && (there || range.is_none());
        if first > 1 && self.lines.is_empty() && self.end.is_some() {
            self.open = Some("it had no line, and what is first now was not shown");
        }
        let old_end = self
            .end
            .as_ref()
            .map_or(u32::MAX, |end| end.of.len() as u32);
        if old_end < first - 1 && ends && !self.texts {
            self.open = Some("lines that were not shown lie beyond where it ended");
        }
        if self.texts && range.is_some() {
            self.moves_to(text);
        }
        if !ends && let Some(end) = &mut self.end {
            // A line follows what it was shown as the last.
            end.moved |= last.min(count) > end.of.len() as u32;
        }
        if !self.shown_last(text) {
            self.earlier = self.last.take();
        }
        let shown = |number: &u32| first <= *number && (*number <= last || ends);
        self.changed.retain(|number| !shown(number));
        let line = |before: Option<&Line>| Line {
            of: text.clone(),
            resident: true,
            moved: false,
            own: before.is_some_and(|line| line.own && line.of == *text),
        };
        for number in first..=last.min(count) {
            let line = line(self.lines.get(&number));
            self.lines.insert(number, line);
        }
        if range.is_none() {
            self.open = None;
            self.cut.clear();
        }
        if ends {
            // That the file ends there is known where it ends.
            self.lines.retain(|number, _| *number <= count);
            self.end = Some(line(self.end.as_ref()));
        }
        self.last = Some(text.clone());
        self.read = true;
    }

    pub fn wrote(&mut self, text: &Text) {
        let line = Line {
            of: text.clone(),
            resident: false,
            own: true,
            moved: false,
        };
        self.changed.clear();
        self.lines = (1..=text.len() as u32)
            .map(|number| (number, line.clone()))
            .collect();
        self.end = Some(line);
        self.last = Some(text.clone());
        self.cut.clear();
        self.open = None;
    }

    /// Whether these lines are in the context as the file holds them now.
    pub fn repeats(&self, text: &Text, range: Range) -> bool {
        let count = text.len() as u32;
        let (first, last) = range.unwrap_or((1, count));
        let current = |line: Option<&Line>| {
            line.is_some_and(|line| line.resident && !line.moved && line.of == *text)
        };
        (range.is_some() || current(self.end.as_ref()))
            && (first..=last.min(count)).all(|number| current(self.lines.get(&number)))
    }

    /// It wants to be shown beyond a last line of which it was not shown that
    /// it is the last: whether the line itself is enough is not said.
    pub fn wants_the_end(&self, text: &Text, range: Range) -> bool {
        let end = self.end.as_ref();
        let known = end.is_some_and(|end| end.resident && !end.moved && end.of == *text);
        range.is_some_and(|(_, last)| last > text.len() as u32) && !known
    }

    /// Some of it is in the context.
    pub fn is_resident(&self) -> bool {
        self.lines
            .values()
            .chain(&self.end)
            .any(|line| line.resident)
    }

    /// These lines are no longer in the context. `changed`: the file has held
    /// something else since it was shown.
    pub fn cut(&mut self, range: Range, changed: bool) {
        let (first, last) = range.unwrap_or((0, u32::MAX));
        let whole = self.last.clone().is_some_and(|last| self.is_whole(&last));
        match range {
            None => self.changed.clear(),
            Some(_) if self.texts => self.open = Some("lines were cut that may have moved"),
            Some(_) => {}
        }
        let beyond = self.lines.keys().next_back().copied().unwrap_or(0);
        if first > beyond && self.end.is_some() {
            self.open = Some("what was cut lies beyond its end");
        }
        let other = |end: &Line| self.lines.values().any(|line| line.of != end.of);
        if range.is_some() && self.end.as_ref().is_some_and(other) {
            self.open = Some("where it ends was known of another content");
        }
        self.cut
            .extend(self.lines.values().chain(&self.end).map(|l| l.of.clone()));
        self.cut.dedup();
        let cut = |number: u32| first <= number && number <= last;
        let left = |number: u32, line: &mut Line| {
            line.resident &= !cut(number);
            !cut(number) || line.own && range.is_some()
        };
        self.lines.retain(|number, line| left(*number, line));
        if range.is_none() || first <= beyond && last >= beyond {
            self.end = self.end.take().filter(|line| line.own && range.is_some());
            self.end.iter_mut().for_each(|line| line.resident = false);
        }
        if self.texts && changed && !whole && self.lines.is_empty() {
            // Whether somebody asked meanwhile, so that its lines were found
            // in another content, is not followed.
            self.open = Some("no line is left, and it may have been of another content");
        }
    }

    /// The session wants everything shown again.
    pub fn forget(&mut self) {
        if self.last.is_some() {
            self.open = Some("it was invalidated");
        }
        self.lines.clear();
        self.changed.clear();
        self.end = None;
        self.read = false;
    }
}
