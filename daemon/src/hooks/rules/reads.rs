//! Reads: what entered the context, by the content on disk before and after the
//! tool.

use std::path::Path;

use serde_json::{Value, json};
use touchmark_proto::files::{FileRead, FileReadText, TextEncoding, Verdict};
use touchmark_proto::{ClientPath, Hash, LineRange, SessionId};

use super::super::daemon_handle::DaemonHandle;
use super::super::happened::{Output, Reading};
use super::super::memory::{Before, InDenial};
use super::{late, remember};

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
    daemon.uses(session, &before.path);
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

/// Notes that the lines in a denial or a notice were delivered: they count as
/// seen.
pub(super) async fn shown(daemon: &DaemonHandle, number: u64) {
    if let Some(InDenial {
        session,
        path,
        hash,
        lines,
        noticed,
    }) = daemon.memory.denied(number)
    {
        seen(daemon, &session, &path, hash, &lines).await;
        if let (Some(noticed), Ok(path)) = (noticed, path.normalise(&daemon.cx.root_bytes())) {
            daemon.memory.notices_lines(&session, path, noticed);
        }
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

pub(super) fn file_read(session: &SessionId, path: &ClientPath) -> FileRead {
    FileRead::new(session.clone(), path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

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
