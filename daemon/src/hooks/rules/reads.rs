//! Reads: what entered the context, by the content on disk before and after the
//! tool.

use std::path::Path;

use serde_json::{Value, json};
use touchmark_proto::files::{FileRead, FileReadText, TextEncoding, Verdict};
use touchmark_proto::{ClientPath, Hash, LineRange, SessionId};

use super::super::daemon_handle::DaemonHandle;
use super::super::happened::{Output, Reading};
use super::super::memory::Before;
use super::super::shell::{self, Lines};
use super::{late, remember};

/// The size in bytes up to which a command's output is taken to be complete if
/// it is not known. An output of a larger file may have been cut without a
/// report.
const SMALL: u64 = 8 << 10;

/// Returns the current content of a path, if it is a file that can be read.
pub(super) async fn look(
    daemon: &DaemonHandle,
    session: &SessionId,
    path: &ClientPath,
) -> Option<Before> {
    let file = daemon.status(session, path).await?;
    Some(Before {
        path: path.clone(),
        hash: file.hash?,
        lines: file.line_count,
        size: file.size,
    })
}

/// Remembers the file's content before a tool reads it: the tool will read this
/// content or a newer one.
pub(super) async fn before(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    call: &str,
    path: &str,
) {
    let Some(path) = daemon.place(cwd, path).await else {
        return;
    };
    if let Some(found) = look(daemon, session, &path).await {
        remember(daemon, session, call, |known| known.read = Some(found));
    }
}

/// Records what a tool has read: the content from before the tool. If the file
/// has changed meanwhile, the copy is stale, whichever of the two contents the
/// tool has read (SEEN-1). Returns an output that replaces the tool's, if the
/// read is a repeat.
pub(super) async fn after(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    call: &str,
    reading: &Reading,
    output: &Output,
    home: bool,
) -> Option<Value> {
    let known = daemon
        .memory
        .recall(session, call)
        .and_then(|call| call.read);
    let Some(before) = known else {
        without_before(daemon, session, cwd, reading, output).await;
        return None;
    };
    daemon.memory.shown(session, &before.path);
    let range = range(reading, output, before.lines)?;
    let read = FileRead {
        range: Some(range).filter(|range| range.start > 1 || range.end < before.lines),
        hash: Some(before.hash),
        ..file_read(session, &before.path)
    };
    let read = daemon.ask(read).await.ok()?;
    // A repeat is never refused, since a refused read can prevent an edit for
    // good. It may get a shorter answer.
    let shorter = daemon.settings.replace_repeats
        && output.replaceable
        && home
        && read.verdict == Verdict::Repeat
        && look(daemon, session, &before.path)
            .await
            .map(|now| now.hash)
            == Some(before.hash)
        && daemon.memory.may_replace(session, &before.path);
    let message = read.message.filter(|_| shorter)?;
    Some(in_place(&output.raw, message))
}

/// Records that lines of a file's current content were shown to a session, or
/// named by it. If `lines` is empty, the whole file is recorded.
pub(super) async fn seen(
    daemon: &DaemonHandle,
    session: &SessionId,
    path: &ClientPath,
    hash: Hash,
    lines: &[LineRange],
) {
    let some = lines.iter().copied().map(Some);
    for range in some.chain(lines.is_empty().then_some(None)) {
        let read = FileRead {
            range,
            hash: Some(hash),
            ..file_read(session, path)
        };
        let _not_a_file = daemon.ask(read).await;
    }
}

/// Returns a message in the format of a tool's output.
fn in_place(raw: &Value, message: String) -> Value {
    let mut output = raw.clone();
    match output.pointer_mut("/file/content") {
        Some(content) => {
            *content = json!(message);
            output
        }
        None => json!(message),
    }
}

/// Returns the lines that entered the context; `None` if there were none.
fn range(reading: &Reading, output: &Output, lines: u32) -> Option<LineRange> {
    let (start, count) = match output.shown {
        Some((start, count, _)) => (start, Some(count)),
        None => (reading.start.unwrap_or(1), reading.limit),
    };
    let start = start.max(1);
    let end = match count {
        Some(count) => start.checked_add(count)?.checked_sub(1)?,
        None => u32::MAX,
    };
    // A read of an empty file has seen it.
    let last = lines.max(1);
    (start <= end && start <= last).then_some(LineRange {
        start,
        end: end.min(last),
    })
}

/// Records a read without a content from before the tool. The tool's output is
/// compared with the file's current content; if that is not possible, the file
/// is marked as `unknown` to the session (SEEN-9).
async fn without_before(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    reading: &Reading,
    output: &Output,
) {
    let Some(path) = daemon.place(cwd, &reading.path).await else {
        return;
    };
    let mut seen: Option<(Hash, LineRange)> = None;
    if let (Some(text), Some((start, count, _))) = (&output.text, output.shown)
        && let Some(end) = start.checked_add(count).and_then(|end| end.checked_sub(1))
    {
        let asked = LineRange { start, end };
        let read = FileReadText::new(session.clone(), path.clone())
            .range(asked)
            .force(true)
            .track(false);
        if let Ok(read) = daemon.ask(read).await
            && read.encoding == TextEncoding::Utf8
            && read.text.is_some_and(|there| same_lines(&there, text))
        {
            seen = read.hash.map(|hash| (hash, asked));
        }
    }
    match seen {
        Some((hash, range)) => {
            let read = FileRead {
                hash: Some(hash),
                range: Some(range),
                ..file_read(session, &path)
            };
            let _not_a_file = daemon.ask(read).await;
        }
        // The tool has read something, but what it saw is not known.
        None => late::missed(daemon, session, cwd, &reading.path).await,
    }
}

fn same_lines(one: &str, other: &str) -> bool {
    one.lines().eq(other.lines())
}

/// Records what a command has certainly printed of a file as a read.
pub(super) async fn after_command(
    daemon: &DaemonHandle,
    session: &SessionId,
    before: Before,
    printed: &shell::Printed,
    output: &Output,
) {
    let text = output.text.as_deref();
    let there = match text {
        Some(_) => text_of(daemon, session, &before).await,
        None => None,
    };
    let ranges = match (text, there) {
        (Some(text), Some(there)) => {
            let wanted = lines_wanted(&printed.lines, &before, Some(text));
            printed_of(&wanted, text, &there)
        }
        (text, _) => printed_ranges(&printed.lines, &before, text),
    };
    for range in ranges {
        let read = FileRead {
            range: Some(range).filter(|range| range.start > 1 || range.end < before.lines),
            hash: Some(before.hash),
            ..file_read(session, &before.path)
        };
        let _not_a_file = daemon.ask(read).await;
    }
}

/// Returns the file's text, if its content is the one from before the command.
async fn text_of(daemon: &DaemonHandle, session: &SessionId, before: &Before) -> Option<String> {
    let (hash, text) = content(daemon, session, &before.path).await?;
    (hash == before.hash).then_some(text)
}

/// Returns a file's content, if it is text and fits one answer.
pub(super) async fn content(
    daemon: &DaemonHandle,
    session: &SessionId,
    path: &ClientPath,
) -> Option<(Hash, String)> {
    let read = FileReadText::new(session.clone(), path.clone())
        .force(true)
        .track(false);
    let read = daemon.ask(read).await.ok()?;
    let is_text = read.encoding == TextEncoding::Utf8 && !read.truncated;
    read.hash.zip(read.text.filter(|_| is_text))
}

/// Returns those of the wanted lines that are in the output. Agents cut long
/// outputs, and what was cut off was not shown.
fn printed_of(wanted: &[LineRange], output: &str, file: &str) -> Vec<LineRange> {
    let lines: Vec<&str> = file.lines().collect();
    let of = |range: &LineRange| {
        let first = range.start.saturating_sub(1) as usize;
        lines.get(first..(range.end as usize).min(lines.len()))
    };
    let mut printed = output.lines().filter(|line| *line != "--");
    let mut shown = Vec::new();
    for range in wanted {
        let whole = of(range).unwrap_or_default().iter();
        let count = whole
            .zip(printed.by_ref())
            .take_while(|(line, printed)| is_line(printed, line))
            .count();
        let Some(last) = u32::try_from(count)
            .ok()
            .and_then(|count| count.checked_sub(1))
        else {
            break;
        };
        let end = range.start.saturating_add(last);
        shown.push(LineRange {
            start: range.start,
            end,
        });
        if end < range.end {
            break;
        }
    }
    // `cat -A` and similar commands change lines but never shorten them. An
    // output as short as this one has not been cut.
    if shown.is_empty() && output.len() as u64 <= SMALL {
        let lines_wanted = wanted.iter().filter_map(of).flatten();
        let bytes: usize = lines_wanted.map(|line| line.len() + 1).sum();
        if output.trim_end().len() >= bytes.saturating_sub(trailing(wanted, &lines)) {
            return wanted.to_vec();
        }
    }
    shown
}

/// Returns the number of bytes at the end of the last range that are only line
/// ends and white space, since agents trim outputs.
fn trailing(wanted: &[LineRange], lines: &[&str]) -> usize {
    let end = wanted.last().map_or(0, |range| range.end as usize);
    let tail = lines.get(..end.min(lines.len())).unwrap_or_default();
    let blank = tail.iter().rev().take_while(|line| line.trim().is_empty());
    let blank: usize = blank.map(|line| line.len() + 1).sum();
    let last = tail.iter().rev().find(|line| !line.trim().is_empty());
    blank + 1 + last.map_or(0, |line| line.len() - line.trim_end().len())
}

/// Returns whether a line of output is that line of the file, possibly with its
/// number before it.
fn is_line(printed: &str, line: &str) -> bool {
    printed.strip_suffix(line).is_some_and(|before| {
        before
            .chars()
            .all(|letter| letter.is_ascii_digit() || " \t:-".contains(letter))
    })
}

/// Returns the lines that a command prints, or those that its output names.
fn lines_wanted(lines: &Lines, before: &Before, text: Option<&str>) -> Vec<LineRange> {
    let last = before.lines.max(1);
    let ranges: Vec<(u32, u32)> = match lines {
        Lines::All => vec![(1, last)],
        Lines::First(count) => vec![(1, *count)],
        Lines::Last(0) => Vec::new(),
        Lines::Last(count) => vec![(last.saturating_sub(*count).saturating_add(1).max(1), last)],
        Lines::Ranges(ranges) => ranges
            .iter()
            .map(|(start, end)| (*start, end.unwrap_or(last)))
            .collect(),
        Lines::Numbered => text.and_then(shell::numbers).unwrap_or_default(),
    };
    ranges
        .into_iter()
        .map(|(start, end)| LineRange {
            start,
            end: end.min(last),
        })
        .filter(|range| range.is_valid())
        .collect()
}

/// Returns the lines that a command prints, without comparing them with the
/// file: all of them, or none if the output may have been cut.
fn printed_ranges(lines: &Lines, before: &Before, text: Option<&str>) -> Vec<LineRange> {
    let ranges = lines_wanted(lines, before, text);
    // Agents cut long outputs; then not all of it entered the context.
    let wanted: usize = ranges
        .iter()
        .map(|range| (range.end - range.start) as usize + 1)
        .sum();
    let whole = match text {
        Some(_) if before.size == 0 => true,
        Some(text) => text.lines().count() >= wanted,
        None => before.size <= SMALL,
    };
    if whole { ranges } else { Vec::new() }
}

pub(super) fn file_read(session: &SessionId, path: &ClientPath) -> FileRead {
    FileRead::new(session.clone(), path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(lines: u32, size: u64) -> Before {
        Before {
            path: ClientPath::from("a"),
            hash: Hash::of(b""),
            lines,
            size,
        }
    }

    fn spans(ranges: Vec<LineRange>) -> Vec<(u32, u32)> {
        ranges
            .into_iter()
            .map(|range| (range.start, range.end))
            .collect()
    }

    #[test]
    fn what_certainly_was_printed() {
        let of = |lines, text| spans(printed_ranges(&lines, &before(4, 8), text));
        assert_eq!(of(Lines::All, Some("1\n2\n3\n4\n")), [(1, 4)]);
        assert_eq!(of(Lines::All, Some("1\n[cut]")), []);
        assert_eq!(of(Lines::All, None), [(1, 4)]);
        assert_eq!(of(Lines::First(2), Some("1\n2")), [(1, 2)]);
        assert_eq!(of(Lines::First(9), Some("1\n2\n3\n4")), [(1, 4)]);
        assert_eq!(of(Lines::Last(2), Some("3\n4")), [(3, 4)]);
        assert_eq!(of(Lines::Last(9), Some("1\n2\n3\n4")), [(1, 4)]);
        assert_eq!(of(Lines::Last(0), Some("")), []);
        let two = Lines::Ranges(vec![(1, Some(1)), (3, None), (9, Some(12))]);
        assert_eq!(of(two, Some("1\n3\n4")), [(1, 1), (3, 4)]);
        assert_eq!(of(Lines::Numbered, Some("2:x\n3-y\n")), [(2, 3)]);
        assert_eq!(of(Lines::Numbered, None), []);
        let large = before(4, SMALL + 1);
        assert_eq!(spans(printed_ranges(&Lines::All, &large, None)), []);
    }

    #[test]
    fn what_was_cut_off_was_not_shown() {
        let file = "one\ntwo\nthree\n\nfive\n";
        let all = [LineRange { start: 1, end: 5 }];
        let of = |wanted: &[LineRange], output| spans(printed_of(wanted, output, file));
        assert_eq!(of(&all, file), [(1, 5)]);
        assert_eq!(of(&all, file.trim_end()), [(1, 5)], "trimmed");
        assert_eq!(of(&all, "one\ntwo\nth... [truncated]"), [(1, 2)]);
        assert_eq!(of(&all, "o[truncated]"), []);
        assert_eq!(of(&all, "     1\tone\n     2\ttwo\n"), [(1, 2)]);
        assert_eq!(of(&all, "one$\ntwo$\nthree$\n$\nfive$\n"), [(1, 5)]);
        let two = [
            LineRange { start: 1, end: 1 },
            LineRange { start: 3, end: 5 },
        ];
        assert_eq!(of(&two, "1:one\n--\n3:three\n"), [(1, 1), (3, 3)]);
        let long = "x".repeat(200_000) + "\n";
        let cut = "x".repeat(30_000) + "... [truncated]";
        let first = [LineRange { start: 1, end: 1 }];
        assert_eq!(spans(printed_of(&first, &cut, &long)), []);
    }

    #[test]
    fn the_lines_that_a_tool_showed() {
        let reading = |start, limit| Reading {
            path: String::new(),
            start,
            limit,
        };
        let none = Output::default();
        let of = |reading, output, lines| {
            range(&reading, &output, lines).map(|range| (range.start, range.end))
        };
        assert_eq!(
            of(reading(None, Some(2_000)), none.clone(), 9),
            Some((1, 9))
        );
        assert_eq!(of(reading(Some(3), Some(2)), none.clone(), 9), Some((3, 4)));
        assert_eq!(of(reading(Some(0), None), none.clone(), 9), Some((1, 9)));
        assert_eq!(of(reading(Some(10), None), none.clone(), 9), None);
        assert_eq!(of(reading(None, None), none, 0), Some((1, 1)));
        let shown = Output {
            shown: Some((2, 3, 9)),
            ..Output::default()
        };
        assert_eq!(of(reading(None, None), shown, 9), Some((2, 4)));
        let nothing = Output {
            shown: Some((1, 0, 9)),
            ..Output::default()
        };
        assert_eq!(of(reading(None, None), nothing, 9), None);
    }
}
