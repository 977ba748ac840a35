//! `touchmark sessions`: who has worked here, and on how much.

use std::collections::HashMap;

use anstyle::Style;
use touchmark_client::proto::Reply;
use touchmark_client::proto::sessions::{SessionRow, SessionRows};

use crate::context::{Context, all_sessions};
use crate::output::Outcome;
use crate::style;
use crate::table::{Cell, Step, Table, View};
use crate::text::{called, count, escaped, session};

/// Label, id, state, agent, parent, time, reads, edits, stale copies, changes
/// that were not delivered.
const TABLE: Table = Table::new(&[
    Step::Start(1, 8),
    Step::Out(4),
    Step::Middle(3, 10),
    Step::Out(3),
    Step::Out(7),
    Step::Out(6),
    Step::Middle(0, 12),
    Step::Out(1),
]);

pub(crate) fn run(context: &Context) -> Outcome {
    let connection = context.open()?;
    let sessions = all_sessions(&connection.client)?;
    if context.global.json {
        let more = None;
        return connection.json(Reply::SessionList(SessionRows { sessions, more }));
    }
    context.list(&lines(&sessions, &View::here()), "no sessions")
}

/// Returns one line for each session.
pub(crate) fn lines(sessions: &[SessionRow], view: &View) -> Vec<String> {
    let named = |row: &SessionRow| called(&row.session, row.label.as_deref());
    let names = sessions
        .iter()
        .map(|row| (row.session.as_str(), named(row)));
    let names: HashMap<&str, String> = names.collect();
    let rows = sessions.iter().map(|one| row(one, &names, view));
    TABLE.lines(rows, view.columns)
}

fn row(row: &SessionRow, names: &HashMap<&str, String>, view: &View) -> Vec<Cell> {
    let plain = Style::new();
    let agent = row.agent.as_ref().map_or_else(String::new, |agent| {
        escaped(&format!("{} {}", agent.name, agent.version), 40)
    });
    let parent = row.parent.as_ref().map_or_else(String::new, |parent| {
        let name = names.get(parent.as_str()).cloned();
        format!("of {}", name.unwrap_or_else(|| session(parent)))
    });
    let attention = |number: u64, what: &str| match number {
        0 => (plain, String::new()),
        _ => (style::WARN, format!("{number} {what}")),
    };
    vec![
        (style::AGENT, called(&row.session, row.label.as_deref())),
        (style::DIM, session(&row.session)),
        (style::DIM, if row.open { "" } else { "closed" }.into()),
        (plain, agent),
        (style::DIM, parent),
        (style::DIM, view.ago(row.last_active)),
        (plain, count(row.reads, "read")),
        (plain, count(row.edits, "edit")),
        attention(row.stale, "stale"),
        attention(row.modified, "untold"),
    ]
}
