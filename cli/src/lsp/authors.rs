//! Who wrote the lines: a hover, and inlay hints.

use std::time::Duration;

use serde_json::{Value, json};
use touchmark_client::aio::Client;
use touchmark_client::proto::history::{BlameLine, FileBlame};
use touchmark_client::proto::{LineRange, RelPath};

use super::document::Shown;
use super::messages::Range;
use super::text::Encoding;
use super::words::{markdown, writer};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// The maximum number of lines that hints are shown for at a time.
const MAX_LINES: u32 = 2_000;

/// Returns the answer to a hover in a line, counted from 0; null if it is not
/// known who wrote it, or if the line is not saved.
pub(super) async fn hover(
    client: Client,
    name: RelPath,
    shown: Shown,
    line: u32,
    is_markdown: bool,
) -> Value {
    let text = async {
        let saved = shown.saved(line.checked_add(1)?)?;
        let lines = blame(&client, &name, (saved, saved)).await?;
        let (_, row) = lines.first()?;
        (shown.line(line + 1)? == bare(&row.text)).then_some(())?;
        writer(row)
    };
    let Some(text) = text.await else {
        return Value::Null;
    };
    let text = format!("Written by {text}");
    let (kind, value) = match is_markdown {
        true => ("markdown", markdown(&text)),
        false => ("plaintext", text),
    };
    json!({"contents": {"kind": kind, "value": value}})
}

/// Returns the hints in a part of the text: one at the end of the first of
/// several lines with the same author.
pub(super) async fn hints(
    client: Client,
    name: RelPath,
    shown: Shown,
    range: Range,
    encoding: Encoding,
) -> Value {
    let first = range.start.line.saturating_add(1);
    let last = range.end.line.saturating_add(1);
    let last = last.min(first.saturating_add(MAX_LINES));
    let mut saved = (first..=last).filter_map(|line| shown.saved(line));
    let Some(start) = saved.next() else {
        return json!([]);
    };
    let end = saved.next_back().unwrap_or(start);
    let lines = blame(&client, &name, (start, end)).await;
    let mut hints = Vec::new();
    let mut before: Option<String> = None;
    for (number, row) in lines.into_iter().flatten() {
        let line = shown
            .now(number)
            .and_then(|now| Some((now, shown.line(now)?)));
        let line = line.filter(|(now, text)| *now >= first && *text == bare(&row.text));
        let label = line.and_then(|_| writer(&row));
        if let (Some((now, text)), Some(label)) = (line, &label)
            && before.as_ref() != Some(label)
        {
            let position = json!({"line": now - 1, "character": encoding.length(text)});
            hints.push(json!({"position": position, "label": label, "paddingLeft": true}));
        }
        before = label;
    }
    hints.into()
}

/// Returns lines of the saved file, each with its number.
async fn blame(
    client: &Client,
    name: &RelPath,
    (start, end): (u32, u32),
) -> Option<Vec<(u32, BlameLine)>> {
    let ask = FileBlame {
        range: Some(LineRange { start, end }),
        ..FileBlame::new(name)
    };
    let blame = client.call_within(ask, PATIENCE).await.ok()?;
    Some((blame.start..).zip(blame.lines).collect())
}

/// Returns a line as editors show it.
fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\r').unwrap_or(line);
    line.strip_prefix('\u{feff}').unwrap_or(line)
}
