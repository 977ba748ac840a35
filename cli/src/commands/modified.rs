//! `touchmark modified`: which files changed, for a session or since a clock.

use anstyle::Style;
use clap::Args;
use touchmark_client::proto::changes::{Changes, ModifiedList};
use touchmark_client::proto::quoting::restore_command;
use touchmark_client::proto::{Change, Clock, Reply, SessionId};

use crate::context::{self, Context};
use crate::output::{self, Outcome};
use crate::style;
use crate::table::{Step, Table, View};
use crate::text::{authors, count, counts, path};
use crate::versions::{colour, verb};

/// Time, authors, what happened, path, lines, remarks.
const TABLE: Table = Table::new(&[
    Step::Middle(1, 16),
    Step::Middle(3, 24),
    Step::Out(4),
    Step::Middle(3, 16),
])
.with_remarks();

/// What changed.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Changes that this session has not seen or received; every author's changes if absent
    #[arg(long, short, value_name = "S", value_parser = context::session)]
    session: Option<SessionId>,
    /// Everything since this clock, as an earlier answer gave it
    #[arg(long, value_name = "CLOCK")]
    since: Option<Clock>,
    /// Read and hash every file for this answer
    #[arg(long)]
    verify: bool,
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let connection = context.open()?;
    let client = &connection.client;
    let mut asked = ModifiedList {
        session: options.session,
        since: options.since,
        verify: options.verify.then_some(true),
        ..ModifiedList::default()
    };
    let mut all = client.call(asked.clone())?;
    while let Some(cursor) = all.more.take() {
        asked.cursor = Some(cursor);
        let Changes { changes, more, .. } = client.call(asked.clone())?;
        all.changes.extend(changes);
        all.more = more;
    }
    if context.global.json {
        return connection.json(Reply::ModifiedList(all));
    }
    if all.changes.is_empty() {
        return context.say("nothing changed");
    }
    output::lines(&lines(&all.changes, &View::here()))?;
    context.say(&format!(
        "{} as of clock {}",
        count(all.changes.len() as u64, "change"),
        all.clock
    ))
}

/// Returns one line for each changed path.
pub(crate) fn lines(changes: &[Change], view: &View) -> Vec<String> {
    let rows = changes.iter().map(|change| {
        let plain = Style::new();
        vec![
            (style::DIM, view.ago(change.last_time)),
            (
                change.changed_by.first().map_or(style::UNKNOWN, colour),
                authors(&change.changed_by),
            ),
            (plain, verb(change.kind).to_owned()),
            (style::BOLD, path(&change.path)),
            (plain, counts(change.lines)),
            (plain, remarks(change)),
        ]
    });
    TABLE.lines(rows, view.columns)
}

fn remarks(change: &Change) -> String {
    let mut remarks = Vec::new();
    if let Some(from) = &change.from {
        remarks.push(format!("from {}", path(from)));
    }
    if change.versions > 1 {
        remarks.push(count(u64::from(change.versions), "version"));
    }
    if let Some(lost) = &change.lost {
        let back = restore_command(&lost.path, lost.clock);
        remarks.push(format!(
            "lines by {} were overwritten{}",
            crate::text::author(&lost.author),
            back.map_or_else(String::new, |command| format!(" ({command})"))
        ));
    }
    if change.writing == Some(true) {
        remarks.push("still being written".into());
    }
    remarks.join(", ")
}
