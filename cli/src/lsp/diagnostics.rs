//! Diagnostics of hint severity: copies of agents that are stale, and changes
//! that wait for review.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use touchmark_client::aio::Client;
use touchmark_client::proto::files::FileStatus;
use touchmark_client::proto::review::{ReviewHunk, ReviewList};
use touchmark_client::proto::sessions::SessionList;
use touchmark_client::proto::{ClientPath, RelPath, State};

use super::document::Shown;
use super::options::Options;
use super::text::Encoding;
use super::words::change;
use crate::text::{authors, called};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The severity `Hint`.
const HINT: u32 = 4;

/// What is known of the open files of a workspace.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The changes that wait for review.
    hunks: Vec<ReviewHunk>,
    /// For each file, a text for each session whose copy is stale.
    stale: HashMap<RelPath, Vec<String>>,
}

/// Asks about open files what the options want to be shown. What cannot be
/// answered is not shown.
pub(super) async fn find(client: Client, names: Vec<RelPath>, options: Options) -> Findings {
    let mut findings = Findings::default();
    let paths: Vec<ClientPath> = names.iter().map(ClientPath::from).collect();
    if options.review {
        let ask = ReviewList::new().paths(paths.clone());
        let queue = client.call_within(ask, PATIENCE).await;
        findings.hunks = queue.map(|queue| queue.hunks).unwrap_or_default();
    }
    if options.stale {
        findings.stale = stale(&client, &paths).await;
    }
    findings
}

/// Returns a text for each stale copy of these files. Only open sessions are
/// asked about: a question in the name of a closed one would open it. The
/// questions are not as of now: in the middle of a save, that would make its
/// middle a version (ATTR-12).
async fn stale(client: &Client, paths: &[ClientPath]) -> HashMap<RelPath, Vec<String>> {
    let mut texts: HashMap<RelPath, Vec<String>> = HashMap::new();
    let sessions = client.call_within(SessionList::new(), PATIENCE).await;
    let sessions = sessions.map(|list| list.sessions).unwrap_or_default();
    for row in sessions.iter().filter(|row| row.open && row.stale > 0) {
        let ask = FileStatus::new(row.session.clone())
            .paths(paths.to_vec())
            .state(vec![State::Stale, State::Deleted])
            .sync(false);
        let Ok(states) = client.call_within(ask, PATIENCE).await else {
            continue;
        };
        for file in states.files {
            let by = authors(file.changed_by.as_deref().unwrap_or_default());
            let by = match by.is_empty() {
                true => by,
                false => format!(", changed by {by}"),
            };
            let whose = called(&row.session, row.label.as_deref());
            let text = format!("the copy of {whose} is stale{by}");
            texts.entry(file.path).or_default().push(text);
        }
    }
    texts
}

impl Findings {
    /// Returns the diagnostics of a file as the editor shows it.
    pub(super) fn of(
        &self,
        name: &RelPath,
        shown: impl FnOnce() -> Shown,
        encoding: Encoding,
    ) -> Vec<Value> {
        let stale = self.stale.get(name).into_iter().flatten();
        let stale: Vec<Value> = stale
            .map(|text| diagnostic((0, 0), 0, "stale", text))
            .collect();
        let mut hunks = self
            .hunks
            .iter()
            .filter(|hunk| hunk.path == *name)
            .peekable();
        if hunks.peek().is_none() {
            return stale;
        }
        let shown = shown();
        let review = hunks.filter_map(|hunk| {
            let lines = shown.lines_of(hunk)?;
            let length = encoding.length(shown.line(lines.end).unwrap_or_default());
            let lines = (lines.start.saturating_sub(1), lines.end.saturating_sub(1));
            let text = format!("to review: {}", change(hunk));
            Some(diagnostic(lines, length, "review", &text))
        });
        stale.into_iter().chain(review).collect()
    }
}

/// Returns a diagnostic from the beginning of one line to a character of
/// another, all counted from 0.
fn diagnostic((first, last): (u32, u32), end: u32, code: &str, text: &str) -> Value {
    json!({
        "range": {
            "start": {"line": first, "character": 0},
            "end": {"line": last, "character": end},
        },
        "severity": HINT,
        "source": "touchmark",
        "code": code,
        "message": text,
    })
}
