//! `touchmark stats`: shows counts of what was refused, repeated and saved.
//! Nothing is estimated.

use clap::Args;
use touchmark_client::proto::daemon::{Savings, Stats};
use touchmark_client::proto::{Reply, SessionId};

use crate::commands::call::result_json;
use crate::context::{self, Context};
use crate::output::{self, Outcome};
use crate::style;
use crate::table::{Table, View};
use crate::text::bytes;

/// Show counts of what was refused, repeated and saved.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only this session's counts
    #[arg(long, short, value_name = "S", value_parser = context::session)]
    session: Option<SessionId>,
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let workspace = context.workspace()?;
    let saved = context.connect(&workspace)?.call(Stats {
        session: options.session,
    })?;
    if context.global.json {
        return context.json(&result_json(Reply::Stats(saved), &workspace.root));
    }
    let lines = lines(&saved, &View::here());
    lines.iter().try_for_each(|line| output::line(line))
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
    table.lines(rows.collect(), view.columns)
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
