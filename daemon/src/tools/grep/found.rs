//! The matches of a search with the lines around them, cut and counted so that
//! the answer stays within its limits.

use std::collections::VecDeque;
use std::io;

use grep_matcher::Matcher as _;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use touchmark_proto::RelPath;
use touchmark_proto::search::{Match, Matches};

use super::patient::Patient;

/// The maximum number of a file's bytes in one text of the answer.
pub(super) const TEXT_BYTES: usize = 4 << 10;

/// The maximum number of these bytes that come before the match.
const LEAD_BYTES: usize = 512;

/// The mark at a place where a text was cut.
const CUT: char = '…';

/// The size of a match in JSON without its texts and its path, in bytes.
const ROW_BYTES: usize = 128;

/// The size of a text in addition to its bytes, on any wire.
const TEXT_FRAME: usize = 9;

/// The size of `uri` without the file's name, but with the workspace's path, in
/// bytes.
const URI_BYTES: usize = 4 << 10;

/// The matches so far. The searcher calls it in order, once for each line that
/// matches or is near a match.
pub(super) struct Found<'a> {
    matcher: &'a Patient<'a>,
    most: usize,
    before: usize,
    after: usize,
    /// The number of bytes that the answer may still take.
    left: usize,
    /// The number of files that were searched.
    pub(super) files: u64,
    matches: Vec<Match>,
    /// Whether there is a match beyond `most`, or one that does not fit.
    more: bool,
    file: Option<InFile>,
}

/// The state of the file that is being searched.
struct InFile {
    path: RelPath,
    /// The size of the file's path in each row, in bytes.
    path_bytes: usize,
    /// The index of the file's first match: the matches from there are dropped
    /// if the file turns out to be binary.
    first: usize,
    /// The value of [`Found::left`] before the file's first match.
    left: usize,
    binary: bool,
    /// The newest lines, with their numbers.
    recent: VecDeque<(u64, String)>,
    /// The indexes of matches that need lines after them, with the number of
    /// lines.
    open: VecDeque<(usize, usize)>,
}

impl<'a> Found<'a> {
    pub(super) fn new(
        matcher: &'a Patient<'a>,
        most: usize,
        before: usize,
        after: usize,
        reply: usize,
    ) -> Self {
        Self {
            matcher,
            most,
            before,
            after,
            left: reply,
            files: 0,
            matches: Vec::new(),
            more: false,
            file: None,
        }
    }

    /// Returns whether no further match can be added although there are more.
    pub(super) fn is_full(&self) -> bool {
        self.more
    }

    /// Begins a file: the following lines belong to it.
    pub(super) fn begin(&mut self, path: &RelPath) {
        self.files += 1;
        self.file = Some(InFile {
            path: path.clone(),
            // A name that is not UTF-8 is sent percent-encoded as well.
            path_bytes: escaped_bytes(&path.to_string_lossy())
                + match std::str::from_utf8(path.as_bytes()) {
                    Ok(_) => 0,
                    Err(_) => 3 * path.as_bytes().len() + URI_BYTES,
                },
            first: self.matches.len(),
            left: self.left,
            binary: false,
            recent: VecDeque::new(),
            open: VecDeque::new(),
        });
    }

    /// Ends a file. If it turned out to be binary its matches are dropped: its
    /// first NUL may come after them.
    pub(super) fn end(&mut self) {
        if let Some(file) = self.file.take().filter(|file| file.binary) {
            self.matches.truncate(file.first);
            self.left = file.left;
            self.more = false;
        }
    }

    /// Returns the answer.
    pub(super) fn finish(self, cut_short: bool) -> Matches {
        Matches {
            matches: self.matches,
            truncated: self.more || cut_short,
            files_searched: self.files,
        }
    }

    /// Adds a line of a match or near one to the matches before it, and
    /// remembers it for the matches after it.
    fn pass(&mut self, number: u64, line: &[u8]) {
        let Some(file) = &mut self.file else { return };
        if self.before == 0 && file.open.is_empty() {
            return;
        }
        let text = cut(line, 0);
        let mut no_room = false;
        for (index, wanted) in &mut file.open {
            let size = escaped_bytes(&text) + TEXT_FRAME;
            if size > self.left {
                self.more = true;
                no_room = true;
                break;
            }
            self.left -= size;
            *wanted -= 1;
            if let Some(found) = self.matches.get_mut(*index) {
                found.after.push(text.clone());
            }
        }
        file.open.retain(|(_, wanted)| !no_room && *wanted > 0);
        if self.before > 0 {
            if file.recent.len() == self.before {
                file.recent.pop_front();
            }
            file.recent.push_back((number, text));
        }
    }

    /// Returns whether to continue in this file: earlier matches may still need
    /// lines.
    fn goes_on(&self) -> bool {
        !self.more || self.file.as_ref().is_some_and(|file| !file.open.is_empty())
    }

    /// Returns the lines before the next match.
    fn lines_before(&self, number: u64) -> Vec<String> {
        let first = number.saturating_sub(self.before as u64);
        let recent = self.file.iter().flat_map(|file| &file.recent);
        recent
            .filter(|(line, _)| *line >= first)
            .map(|(_, text)| text.clone())
            .collect()
    }

    fn take(&mut self, number: u64, found: &SinkMatch<'_>, before: Vec<String>) {
        let Some(file) = &mut self.file else { return };
        let range = found.bytes_range_in_buffer();
        let at = self
            .matcher
            .find_at(found.buffer(), range.start)
            .ok()
            .flatten()
            .map_or(0, |hit| hit.start().saturating_sub(range.start));
        let text = cut(found.bytes(), at);
        let size = before
            .iter()
            .chain([&text])
            .map(|text| escaped_bytes(text) + TEXT_FRAME)
            .sum::<usize>()
            + file.path_bytes
            + ROW_BYTES;
        if self.matches.len() == self.most || size > self.left {
            self.more = true;
            return;
        }
        self.left -= size;
        if self.after > 0 {
            file.open.push_back((self.matches.len(), self.after));
        }
        self.matches.push(Match {
            path: file.path.clone(),
            line: number,
            column: at as u64 + 1,
            text,
            before,
            after: Vec::new(),
        });
    }
}

impl Sink for Found<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let number = found.line_number().unwrap_or_default();
        let before = self.lines_before(number);
        // The match's own lines come after earlier matches.
        for (number, line) in (number..).zip(found.lines()) {
            self.pass(number, line);
        }
        self.take(number, found, before);
        Ok(self.goes_on())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.pass(context.line_number().unwrap_or_default(), context.bytes());
        Ok(self.goes_on())
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        if let Some(file) = &mut self.file {
            file.binary = true;
        }
        Ok(false)
    }
}

/// Returns one or several lines without the last line end. A very long line is
/// cut to the part around the byte `at`, at character boundaries if it is
/// UTF-8.
pub(super) fn cut(bytes: &[u8], at: usize) -> String {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if bytes.len() <= TEXT_BYTES {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let start = match at.min(bytes.len()) {
        at if at <= LEAD_BYTES => 0,
        at => whole(bytes, (at - LEAD_BYTES).min(bytes.len() - TEXT_BYTES)),
    };
    let end = whole(bytes, (start + TEXT_BYTES).min(bytes.len()));
    let mut text = String::new();
    if start > 0 {
        text.push(CUT);
    }
    text.push_str(&String::from_utf8_lossy(
        bytes.get(start..end).unwrap_or_default(),
    ));
    if end < bytes.len() {
        text.push(CUT);
    }
    text
}

/// Returns `at`, or the start of the character that contains it.
fn whole(bytes: &[u8], at: usize) -> usize {
    let within = |at: &usize| bytes.get(*at).is_some_and(|byte| byte & 0xC0 == 0x80);
    (at.saturating_sub(3)..=at)
        .rev()
        .find(|at| !within(at))
        .unwrap_or(at)
}

/// Returns the number of bytes that a text takes within a JSON string.
fn escaped_bytes(text: &str) -> usize {
    let bytes = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(bytes).sum()
}
