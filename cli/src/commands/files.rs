//! `touchmark files`: which files sessions have read, and which copies are
//! stale.

use anstyle::Style;
use clap::Args;
use touchmark_client::proto::files::{FileStates, FileStatus};
use touchmark_client::proto::{FileState, Reply, SessionId, State};

use crate::commands::call::result_json;
use crate::context::{self, Context};
use crate::output::{self, Outcome, table};
use crate::style;
use crate::text::{authors, count, path};

/// The files a session knows.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The session
    #[arg(long, short, value_name = "S", value_parser = context::session)]
    session: SessionId,
    /// Only those whose copy is out of date, or whose file is gone
    #[arg(long)]
    stale: bool,
    /// Read and hash every file for this answer
    #[arg(long)]
    verify: bool,
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let mut asked = FileStatus {
        session: options.session,
        paths: None,
        state: if options.stale {
            vec![State::Stale, State::Deleted]
        } else {
            Vec::new()
        },
        sync: None,
        verify: options.verify.then_some(true),
        limit: None,
        cursor: None,
    };
    let mut all = client.call(asked.clone())?;
    while let Some(cursor) = all.more.take() {
        asked.cursor = Some(cursor);
        let FileStates { files, more, .. } = client.call(asked.clone())?;
        all.files.extend(files);
        all.more = more;
    }
    if context.global.json {
        return context.json(&result_json(Reply::FileStatus(all), &workspace.root));
    }
    if all.files.is_empty() {
        return context.say(if options.stale {
            "no copy is out of date"
        } else {
            "the session knows no files"
        });
    }
    let rows: Vec<_> = all.files.iter().map(row).collect();
    table(&rows).iter().try_for_each(|line| output::line(line))
}

fn row(file: &FileState) -> Vec<(Style, String)> {
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
        (state_style, state.into()),
        (style::BOLD, path(&file.path)),
        (style::DIM, count(u64::from(file.read_count), "read")),
        (Style::new(), remarks.join(", ")),
    ]
}
