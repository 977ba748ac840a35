//! `touchmark log`: what was done, newest first; or the versions of some files.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::Value;
use touchmark_client::blocking::Client;
use touchmark_client::proto::activity::{Activities, ActivityKind};
use touchmark_client::proto::history::{FileDiff, FileLog, LogEntries, LogEntry};
use touchmark_client::proto::{At, ClientPath, Clock, Reply};

use crate::complete;
use crate::context::{Connection, Context};
use crate::hunks;
use crate::off;
use crate::output::Outcome;
use crate::pager::Page;
use crate::table::View;
use crate::timeline::{LogRow, Timeline, actions, lines};
use crate::versions::{By, NAMES, VersionName, files, version};
use crate::wire::result_json;

/// The number of versions in one request.
const PAGE: u32 = 200;

/// What was done, and who changed which file, newest first.
///
/// Listed are commands (`c5`), undos and redos (`u1`), prompts (`k2`), restores, kept reviews, git's
/// operations, and each other change of a file with its clock (`17`) and edit (`e7`). What a command
/// or an undo did to files is folded into its row. With PATHS, only versions of files are listed.
#[derive(Debug, Args)]
#[command(after_help = NAMES)]
pub(crate) struct Options {
    /// Only these files, and files below these directories
    paths: Vec<PathBuf>,
    /// Only what came after that: a time (2h, 2026-11-22), a clock, a checkpoint
    #[arg(long, value_name = "V", value_parser = version, add = ArgValueCompleter::new(complete::version))]
    since: Option<VersionName>,
    /// Only changes by `me`, by this session, or by any `command`
    #[arg(long, value_name = "WHO", add = ArgValueCompleter::new(complete::by))]
    by: Option<String>,
    /// At most this many
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Also what each version changed, as a patch
    #[arg(long, short)]
    patch: bool,
    /// Also how many lines each version changed, and how its author is known
    #[arg(long)]
    stat: bool,
    /// Also each file that a command or an undo changed
    #[arg(long)]
    files: bool,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let connection = context.open()?;
    if !context.global.json {
        for (name, text) in off::rows(&off::local(&connection.workspace)) {
            context.note(&format!("{name}: {text}"));
        }
    }
    let client = &connection.client;
    let by = By::said(client, options.by.as_deref())?;
    let mut ask = FileLog {
        paths: files(&connection, &options.paths)?,
        since: VersionName::resolved(options.since.as_ref(), client)?,
        lines: options.stat,
        limit: Some(PAGE),
        ..FileLog::default()
    };
    let actions = match ask.paths {
        None => actions(client, ActivityKind::OF_PEOPLE, ask.since.as_ref())?,
        Some(_) => Vec::new(),
    };
    let mut timeline = Timeline::new(actions, options.files || options.patch);
    let mut left = options.limit.unwrap_or(usize::MAX);
    let mut all: Vec<LogRow> = Vec::new();
    let mut page: Option<Page> = None;
    loop {
        let answer = client.call(ask.clone())?;
        let more = answer.more;
        let mut rows = timeline.take(answer.entries, more.is_none());
        if let Some(by) = &by {
            rows.retain(|row| row.is_by(by));
        }
        rows.truncate(left);
        left -= rows.len();
        if context.global.json {
            all.extend(rows);
        } else if !rows.is_empty() {
            let page = page.get_or_insert_with(|| Page::open(context));
            show(page, client, options, &rows)?;
        }
        ask.before = more.filter(|_| left > 0);
        if ask.before.is_none() {
            break;
        }
    }
    if context.global.json {
        return json(&connection, options.patch, all);
    }
    if page.is_none() {
        return context.say("no versions of tracked files were found");
    }
    Ok(())
}

fn show(page: &mut Page, client: &Client, options: &Options, rows: &[LogRow]) -> Outcome {
    let lines = lines(rows, options.stat, &View::here());
    for (line, row) in lines.iter().zip(rows) {
        page.line(line)?;
        if let (true, LogRow::Version(entry)) = (options.patch, row) {
            if let Ok(mut diff) = client.call(of_version(entry)) {
                for file in &diff.files {
                    hunks::show(page, file, &diff.hunks.take().unwrap_or_default())?;
                }
            }
            page.line("")?;
        }
    }
    Ok(())
}

/// Returns the request for what a version changed.
fn of_version(entry: &LogEntry) -> FileDiff {
    let Clock { epoch, n } = entry.version.clock;
    let at = |n| At::Clock {
        epoch: Some(epoch),
        n,
    };
    FileDiff::new(at(n - 1))
        .path(ClientPath::from(&entry.version.path))
        .to(at(n))
}

fn json(connection: &Connection<'_>, patch: bool, rows: Vec<LogRow>) -> Outcome {
    let root = &connection.workspace.root;
    let mut entries = Vec::new();
    let mut done = Vec::new();
    for row in rows {
        match row {
            LogRow::Version(entry) => entries.push(entry),
            LogRow::Action(action) => {
                let mut row = action.row;
                row.files = row.files.or(action.files);
                done.push(row);
                entries.extend(action.made);
            }
        }
    }
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.version.clock.n));
    let diffs: Vec<Option<Value>> = match patch {
        false => Vec::new(),
        true => entries
            .iter()
            .map(|entry| {
                let diff = connection.client.call(of_version(entry)).ok()?;
                Some(result_json(Reply::FileDiff(diff), root)["hunks"].take())
            })
            .collect(),
    };
    let entries = LogEntries {
        entries,
        more: None,
    };
    let mut value = result_json(Reply::FileLog(entries), root);
    for (at, hunks) in diffs.into_iter().enumerate() {
        if let Some(hunks) = hunks {
            value["entries"][at]["hunks"] = hunks;
        }
    }
    let done = Activities {
        rows: done,
        complete_since: 0,
        more: None,
    };
    value["actions"] = result_json(Reply::ActivityList(done), root)["rows"].take();
    connection.context.json(&value)
}
