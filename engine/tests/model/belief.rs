//! What one session was last shown of one file, or wrote, line by line, and the
//! state of its copy that follows from that. If no texts are kept for the
//! engine, a changed file is stale as a whole: a line is current only if it was
//! shown from the current content. If texts are kept, a line is current if it
//! is at the corresponding place.

use std::collections::{BTreeMap, BTreeSet};

use crate::lines::{Match, matches, unchanged};
use crate::text::Text;

/// Line numbers from 1, both included; `None` for the whole file.
pub type Range = Option<(u32, u32)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// Nothing of the file was ever shown.
    Unread,
    /// Everything on record is current.
    Fresh,
    /// Something on record is not current.
    Stale,
    /// The file was shown, and no longer exists.
    Deleted,
    /// The rules do not decide the state. `Copy::open` says why.
    Open,
}

/// A line as it was last shown or written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    /// The content that the line was in.
    of: Text,
    /// The line was shown and is still in the context; else the session wrote
    /// it.
    resident: bool,
    /// The session wrote it. It stays on record until all of the session's
    /// context is cut.
    own: bool,
    /// The line was shown from another content.
    moved: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    lines: BTreeMap<u32, Line>,
    /// What was shown about the end of the file: no line follows the last one.
    end: Option<Line>,
    /// The content that was last shown, in whole or in part, or written.
    last: Option<Text>,
    /// The content that was `last` before that.
    earlier: Option<Text>,
    /// Contents of which lines were cut from the context. They were seen.
    cut: Vec<Text>,
    /// The session read the file, and did not only write it, and the read still
    /// counts. Else the next read is a first one.
    pub read: bool,
    /// Whether texts are kept.
    pub texts: bool,
    /// Lines that replaced lines on record, or came between them, and were not
    /// shown. Counted in the content shown last.
    changed: BTreeSet<u32>,
    /// The reason why the rules do not decide the state of the copy. Set until
    /// the next whole read or write.
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

    /// Compares the lines on record with another content, at the corresponding
    /// places.
    fn compared(&self, last: &Text, there: &Text) -> Worth {
        let held: BTreeSet<u32> = self.lines.keys().copied().collect();
        if self.lines.values().chain(&self.end).any(|l| l.of != *last) {
            return Worth::Open;
        }
        if !self.changed.is_empty() || self.is_whole(last) {
            return Worth::Stale;
        }
        // No line is on record. The rules do not say whether the two contents
        // were compared before, nor what it means if only the end is known.
        if held.is_empty() {
            return Worth::Open;
        }
        let found = matches(last, there);
        let fresh = found.iter().filter(|found| unchanged(&held, found));
        match fresh.count() {
            0 => Worth::Stale,
            count if count == found.len() => Worth::Fresh,
            // If lines repeat, several correspondences are right.
            _ => Worth::Open,
        }
    }

    fn is_whole(&self, text: &Text) -> bool {
        let all = (1..=text.len() as u32).all(|number| self.lines.contains_key(&number));
        all && self.end.is_some()
    }

    /// Records that some lines of a content are shown: lines on record that it
    /// still has stay, and lines that replaced others have to be shown.
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
            // The model does not follow which of them are among the new
            // changes.
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

    /// Returns the lines of the newer text where lines on record have changed,
    /// or between them. If a place has no lines in the newer text, returns the
    /// two lines around it.
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

    /// Returns whether some of this content is on record.
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

    /// Returns whether the content was shown last, in whole or in part.
    pub fn shown_last(&self, text: &Text) -> bool {
        self.last.as_ref() == Some(text)
    }

    /// Returns whether the content was shown last before the newer one was.
    pub fn shown_before(&self, text: &Text, newer: &Text) -> bool {
        self.earlier.as_ref() == Some(text) && self.shown_last(newer)
    }

    /// Returns whether anything of the file is on record.
    pub fn believes(&self) -> bool {
        !self.lines.is_empty() || self.end.is_some() || !self.changed.is_empty()
    }

    /// Records that lines of a content were shown. `there` says whether it is
    /// the file's current content; else its end is not known.
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
            // A line follows the one that was shown as the last.
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
            // The end of the file was shown.
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

    /// Returns whether these lines of the current content are in the context.
    pub fn repeats(&self, text: &Text, range: Range) -> bool {
        let count = text.len() as u32;
        let (first, last) = range.unwrap_or((1, count));
        let current = |line: Option<&Line>| {
            line.is_some_and(|line| line.resident && !line.moved && line.of == *text)
        };
        (range.is_some() || current(self.end.as_ref()))
            && (first..=last.min(count)).all(|number| current(self.lines.get(&number)))
    }

    /// Returns whether a read wants lines after the last one, although the end
    /// of the file was not shown. The rules do not say whether having the last
    /// line is enough then.
    pub fn wants_the_end(&self, text: &Text, range: Range) -> bool {
        let end = self.end.as_ref();
        let known = end.is_some_and(|end| end.resident && !end.moved && end.of == *text);
        range.is_some_and(|(_, last)| last > text.len() as u32) && !known
    }

    /// Returns whether anything of the file is in the context.
    pub fn is_resident(&self) -> bool {
        self.lines
            .values()
            .chain(&self.end)
            .any(|line| line.resident)
    }

    /// Records that these lines are no longer in the context. `changed` says
    /// whether the file has had another content since it was shown.
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
            // A request meanwhile may have found its lines in another content;
            // the model does not follow that.
            self.open = Some("no line is left, and it may have been of another content");
        }
    }

    /// Records that the session wants the whole file to be shown again.
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
