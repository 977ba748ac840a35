//! `touchmark sessions`.

use anstyle::Style;
use clap::Args;
use touchmark_client::proto::Reply;
use touchmark_client::proto::sessions::{SessionList, SessionRow, SessionRows};

use crate::commands::call::result_json;
use crate::context::Context;
use crate::output::{self, Outcome, table};
use crate::style;
use crate::text::{called, count, duration, escaped, now, session};

/// The sessions.
#[derive(Debug, Args)]
pub(crate) struct Options {}

pub(crate) fn run(context: &Context) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let mut asked = SessionList::default();
    let mut all = client.call(asked.clone())?;
    while let Some(cursor) = all.more.take() {
        asked.cursor = Some(cursor);
        let SessionRows { sessions, more } = client.call(asked.clone())?;
        all.sessions.extend(sessions);
        all.more = more;
    }
    if context.global.json {
        return context.json(&result_json(Reply::SessionList(all), &workspace.root));
    }
    if all.sessions.is_empty() {
        return context.say("no sessions");
    }
    let now = now();
    let rows: Vec<_> = all.sessions.iter().map(|row| columns(row, now)).collect();
    table(&rows).iter().try_for_each(|line| output::line(line))
}

fn columns(row: &SessionRow, now: u64) -> Vec<(Style, String)> {
    let plain = Style::new();
    let agent = row.agent.as_ref().map_or_else(String::new, |agent| {
        escaped(&format!("{} {}", agent.name, agent.version), 40)
    });
    let parent = row
        .parent
        .as_ref()
        .map_or_else(String::new, |parent| format!("of {}", session(parent)));
    let attention = |number: u64, what: &str| {
        let style = if number > 0 { style::WARN } else { style::DIM };
        (style, format!("{number} {what}"))
    };
    vec![
        (style::AGENT, called(&row.session, row.label.as_deref())),
        (style::DIM, session(&row.session)),
        (plain, if row.open { "open" } else { "closed" }.into()),
        (plain, agent),
        (style::DIM, parent),
        (
            style::DIM,
            format!("{} ago", duration(now.saturating_sub(row.last_active))),
        ),
        (plain, count(row.reads, "read")),
        (plain, count(row.edits, "edit")),
        attention(row.stale, "stale"),
        attention(row.modified, "untold"),
    ]
}
