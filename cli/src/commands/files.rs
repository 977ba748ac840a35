//! `touchmark files`: which files sessions have read, and which copies are
//! stale.

use anstyle::Style;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::json;
use touchmark_client::blocking::Client;
use touchmark_client::proto::files::{FileStates, FileStatus};
use touchmark_client::proto::{FileState, Reply, SessionId, State};

use crate::complete;
use crate::context::{self, Context, all_sessions};
use crate::output::Outcome;
use crate::style;
use crate::table::{Cell, Step, Table, View};
use crate::text::{authors, called, count, path};
use crate::wire::result_json;

/// Session, state, path, reads, remarks.
const TABLE: Table = Table::new(&[
    Step::Middle(2, 32),
    Step::Out(3),
    Step::Middle(2, 16),
    Step::Middle(0, 12),
])
.with_remarks();

/// The files that sessions have read.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only this session's
    #[arg(long, short, value_name = "S", value_parser = context::session, add = ArgValueCompleter::new(complete::session))]
    session: Option<SessionId>,
    /// Only those whose copy is out of date, or whose file was deleted
    #[arg(long)]
    stale: bool,
    /// Read and hash every file for this answer
    #[arg(long)]
    verify: bool,
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let connection = context.open()?;
    let client = &connection.client;
    let ask = |session: SessionId| FileStatus {
        state: match options.stale {
            true => vec![State::Stale, State::Deleted],
            false => Vec::new(),
        },
        verify: options.verify.then_some(true),
        ..FileStatus::new(session)
    };
    let mut found: Vec<(String, Vec<FileState>)> = Vec::new();
    match options.session {
        Some(session) => {
            let all = known(client, ask(session))?;
            if context.global.json {
                return connection.json(Reply::FileStatus(all));
            }
            // It is one session's: its name says nothing.
            found.push((String::new(), all.files));
        }
        None => {
            let mut facts = Vec::new();
            for row in all_sessions(client)? {
                let all = known(client, ask(row.session.clone()))?;
                if all.files.is_empty() {
                    continue;
                }
                if context.global.json {
                    let mut fact = result_json(Reply::FileStatus(all), &connection.workspace.root);
                    fact["session"] = row.session.as_str().into();
                    fact["label"] = row.label.into();
                    facts.push(fact);
                } else {
                    found.push((called(&row.session, row.label.as_deref()), all.files));
                }
            }
            if context.global.json {
                return context.json(&json!({ "sessions": facts }));
            }
        }
    }
    let empty = match options.stale {
        true => "no copy is out of date",
        false => "no file was read",
    };
    context.list(&lines(&found, &View::here()), empty)
}

/// Returns all files of a session, over all pages.
fn known(client: &Client, mut ask: FileStatus) -> Outcome<FileStates> {
    let mut all = client.call(ask.clone())?;
    while let Some(cursor) = all.more.take() {
        ask.cursor = Some(cursor);
        let FileStates { files, more, .. } = client.call(ask.clone())?;
        all.files.extend(files);
        all.more = more;
    }
    Ok(all)
}

/// Returns one line for each session and file.
pub(crate) fn lines(found: &[(String, Vec<FileState>)], view: &View) -> Vec<String> {
    let rows = found
        .iter()
        .flat_map(|(session, files)| files.iter().map(|file| row(session, file)));
    TABLE.lines(rows, view.columns)
}

fn row(session: &str, file: &FileState) -> Vec<Cell> {
    let (state, state_style) = match file.state {
        State::Unread => ("unread", style::DIM),
        State::Fresh => ("fresh", style::GOOD),
        State::Stale => ("stale", style::WARN),
        State::Deleted => ("deleted", style::WARN),
        State::Unknown => ("unknown", style::WARN),
        State::Unreadable => ("unreadable", style::WARN),
    };
    let mut remarks = Vec::new();
    if let Some(by) = file.changed_by.as_deref().filter(|by| !by.is_empty()) {
        remarks.push(format!("changed by {}", authors(by)));
    }
    if file.unsaved == Some(true) {
        remarks.push("unsaved changes in an editor".into());
    }
    vec![
        (style::AGENT, session.to_owned()),
        (state_style, state.into()),
        (style::BOLD, path(&file.path)),
        (style::DIM, count(u64::from(file.read_count), "read")),
        (Style::new(), remarks.join(", ")),
    ]
}
