//! `touchmark stats`: shows counts of what was refused, repeated and saved, and
//! how many lines of agents are left. Nothing is estimated.

use clap::Args;
use touchmark_client::proto::SessionId;
use touchmark_client::proto::daemon::{Savings, Stats};
use touchmark_client::proto::survival::{SurvivalList, SurvivalRow, SurvivalRows, Survived};

use crate::context::{self, Context};
use crate::output::{self, Outcome};
use crate::style;
use crate::table::{Cell, Step, Table, View};
use crate::text::bytes;

/// Show counts of what was refused, repeated and saved, and how many lines of
/// agents are left.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only this session's counts
    #[arg(long, short, value_name = "S", value_parser = context::session)]
    session: Option<SessionId>,
    /// How many lines of agents are left: at the next commit, after a day,
    /// after a week
    #[arg(long)]
    survival: bool,
}

/// The model becomes narrower first, then the lines: the shares have them, too.
const SURVIVAL: Table = Table::new(&[
    Step::Middle(1, 12),
    Step::Out(2),
    Step::Middle(0, 8),
    Step::Middle(1, 8),
]);

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let (connection, session, view) = (context.open()?, options.session, View::here());
    let lines = match options.survival {
        true => connection
            .answer(SurvivalList { session })?
            .map(|list| survival(&list, &view)),
        false => connection
            .answer(Stats { session })?
            .map(|saved| lines(&saved, &view)),
    };
    output::lines(&lines.unwrap_or_default())
}

/// Returns one text for each number.
pub(crate) fn lines(saved: &Savings, view: &View) -> Vec<String> {
    let rows = counted(saved).into_iter().map(|(number, what)| {
        let shade = match number {
            0 => style::DIM,
            _ => style::BOLD,
        };
        vec![(shade, number.to_string()), (style::DIM, what)]
    });
    let table = Table::new(&[]).with_remarks();
    table.lines(rows, view.columns)
}

/// Returns a heading and one text for each agent and model, and what is not
/// judged yet.
pub(crate) fn survival(list: &SurvivalRows, view: &View) -> Vec<String> {
    if list.rows.is_empty() {
        return vec!["no lines of agents are on record".into()];
    }
    let head = ["agent", "model", "lines", "at commit", "a day", "a week"];
    let head = head.map(|name| (style::DIM, name.to_owned()));
    let rows = list.rows.iter().map(|row| {
        let text = |name: &Option<String>| match name {
            Some(name) => (style::BOLD, name.clone()),
            None => (style::DIM, "-".into()),
        };
        vec![
            text(&row.agent),
            text(&row.model),
            (style::BOLD, row.added.to_string()),
            share(&row.commit),
            share(&row.day),
            share(&row.week),
        ]
    });
    let rows = std::iter::once(head.into()).chain(rows);
    let mut lines = SURVIVAL.lines(rows, view.columns);
    let sum = |of: fn(&SurvivalRow) -> u64| list.rows.iter().map(of).sum::<u64>();
    let commit = sum(|row| row.commit.waiting);
    let day = sum(|row| row.day.waiting);
    let week = sum(|row| row.week.waiting);
    if [commit, day, week] != [0; 3] {
        lines.push(format!(
            "not judged yet: commit {commit}, day {day}, week {week}"
        ));
    }
    lines
}

/// Returns the share of lines that are left, such as `90% of 120`.
fn share(survived: &Survived) -> Cell {
    match survived.added {
        0 => (style::DIM, "-".into()),
        added => {
            let percent = survived.alive.saturating_mul(100) / added;
            (style::BOLD, format!("{percent}% of {added}"))
        }
    }
}

fn counted(saved: &Savings) -> [(u64, String); 8] {
    [
        (
            saved.repeats,
            format!(
                "reads of lines that were in the context already; {} not sent again",
                bytes(saved.bytes_not_sent)
            ),
        ),
        (
            saved.duplicate_calls,
            format!(
                "tool calls answered from an earlier one; {} of results",
                bytes(saved.duplicate_bytes)
            ),
        ),
        (
            saved.stale_refused,
            "edits of out-of-date copies refused".into(),
        ),
        (
            saved.not_read_refused,
            "edits of files never read refused".into(),
        ),
        (
            saved.conflicts,
            "guarded writes that found unseen content and stored it".into(),
        ),
        (saved.notices, "changes by others that were reported".into()),
        (
            saved.unanswered_hooks,
            "hooks that got no answer in time and did not block their agent".into(),
        ),
        (
            saved.unclear_hooks,
            "events of hooks that were not understood; `touchmark logs` names them".into(),
        ),
    ]
}
