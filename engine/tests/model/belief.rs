//! What one session was shown of one file, or wrote, last, line by line; and
//! what its copy is therefore worth. No text is kept for the engine here, so a
//! file that changed is stale as a whole: a line is current only if it was
//! shown out of what the file holds now.

use std::collections::BTreeMap;

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
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    lines: BTreeMap<u32, Line>,
    /// That nothing follows the last line.
    end: Option<Line>,
    /// The content that something was shown of last, or that was written.
    last: Option<Text>,
    /// Contents of which lines were cut: they were seen.
    cut: Vec<Text>,
    /// It was read, not only written, and that counts still: else the next
    /// read is a first one.
    pub read: bool,
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
        let mut held = self.lines.values().chain(&self.end).peekable();
        let fresh = match held.peek() {
            None => last == there,
            Some(_) => held.all(|line| line.of == *there),
        };
        if fresh { Worth::Fresh } else { Worth::Stale }
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

    pub fn shown(&mut self, text: &Text, range: Range) {
        let count = text.len() as u32;
        let (first, last) = range.unwrap_or((1, count));
        if first > 1 && self.lines.is_empty() && self.end.is_some() {
            self.open = Some("it had no line, and what is first now was not shown");
        }
        let old_end = self
            .end
            .as_ref()
            .map_or(u32::MAX, |end| end.of.len() as u32);
        if old_end < first - 1 && last >= count {
            self.open = Some("lines that were not shown lie beyond where it ended");
        }
        let line = |before: Option<&Line>| Line {
            of: text.clone(),
            resident: true,
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
        if last >= count {
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
        };
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
        let current = |line: Option<&Line>| line.is_some_and(|l| l.resident && l.of == *text);
        (range.is_some() || current(self.end.as_ref()))
            && (first..=last.min(count)).all(|number| current(self.lines.get(&number)))
    }

    /// Some of it is in the context.
    pub fn is_resident(&self) -> bool {
        self.lines
            .values()
            .chain(&self.end)
            .any(|line| line.resident)
    }

    /// These lines are no longer in the context.
    pub fn cut(&mut self, range: Range) {
        let (first, last) = range.unwrap_or((0, u32::MAX));
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
    }

    /// The session wants everything shown again.
    pub fn forget(&mut self) {
        if self.last.is_some() {
            self.open = Some("it was invalidated");
        }
        self.lines.clear();
        self.end = None;
        self.read = false;
    }
}
