//! `touchmark log`: the versions of all files, or of some, newest first.

use std::path::PathBuf;

use anstyle::Style;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::Value;
use touchmark_client::blocking::Client;
use touchmark_client::proto::history::{FileDiff, FileLog, LogEntries, LogEntry};
use touchmark_client::proto::{At, ClientPath, Clock, Reply, Version, native};

use crate::commands::call::result_json;
use crate::commands::history::remarks;
use crate::commands::modified::verb;
use crate::complete;
use crate::context::Context;
use crate::hunks;
use crate::output::Outcome;
use crate::pager::Page;
use crate::style;
use crate::table::{Step, Table, View};
use crate::text::path;
use crate::versions::{By, Said, colour, files, name, version, who};

/// Clock, time, author, what happened, path, lines.
const TABLE: Table = Table::new(&[
    Step::Middle(4, 24),
    Step::Middle(2, 10),
    Step::Middle(4, 12),
]);

/// How versions are named, for the help of each command that takes one.
pub(crate) const VERSIONS: &str = "Versions (V):
  17, 1795468026370:17  a clock, as `touchmark log` prints it; the long one names the epoch
  9f86d081              at least 6 digits of the content's hash
  @10m @2h @3d          so long ago
  @14:30 @2026-11-22    then, in your time zone
  k3, claude-1/k3       at that checkpoint
  before-lunch          at the checkpoint with that label
  seen:claude-1         what that session saw last
  now                   the file's current content";

/// The number of versions in one request.
const PAGE: u32 = 200;

/// Who changed which file, newest first.
#[derive(Debug, Args)]
#[command(after_help = VERSIONS)]
pub(crate) struct Options {
    /// Only these files, and files below these directories
    paths: Vec<PathBuf>,
    /// Only what came after that: a time (2h, 2026-11-22), a clock, a checkpoint
    #[arg(long, value_name = "V", value_parser = version, add = ArgValueCompleter::new(complete::version))]
    since: Option<Said>,
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
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let by = By::said(&client, options.by.as_deref())?;
    let mut ask = FileLog {
        paths: files(context, &workspace, &options.paths)?,
        since: Said::resolved(options.since.as_ref(), &client)?,
        lines: options.stat,
        limit: Some(PAGE),
        ..FileLog::default()
    };
    let mut left = options.limit.unwrap_or(usize::MAX);
    let mut all = Vec::new();
    let mut page: Option<Page> = None;
    loop {
        let answer = client.call(ask.clone())?;
        let mut entries = answer.entries;
        if let Some(by) = &by {
            entries.retain(|entry| by.is(&entry.version.author, entry.version.evidence));
        }
        entries.truncate(left);
        left -= entries.len();
        let more = answer.more.filter(|_| left > 0);
        if context.global.json {
            all.extend(entries);
        } else if !entries.is_empty() {
            let page = page.get_or_insert_with(|| Page::open(context));
            show(page, &client, options, &entries)?;
        }
        ask.before = more;
        if more.is_none() {
            break;
        }
    }
    if context.global.json {
        return json(context, &client, options.patch, all, &workspace.root);
    }
    if page.is_none() {
        return context.say("no versions of tracked files were found");
    }
    Ok(())
}

/// Returns a version's author, with a question mark if the author is only
/// likely.
fn likely_who(version: &Version) -> String {
    let mark = if version.is_likely() { "?" } else { "" };
    format!("{}{mark}", who(&version.author))
}

/// Returns one text for each version. With `stat` it has the number of lines
/// that changed, and how the author is known.
pub(crate) fn lines(entries: &[LogEntry], stat: bool, view: &View) -> Vec<String> {
    let rows = entries.iter().map(|LogEntry { version, lines }| {
        let mut row = vec![
            (style::BOLD, name(Some(version.clock))),
            (style::DIM, view.ago(version.time)),
            (colour(&version.author), likely_who(version)),
            (Style::new(), verb(version.kind).to_owned()),
            (Style::new(), path(&version.path)),
        ];
        if stat {
            let lines = lines.map_or_else(String::new, |lines| {
                format!("+{} -{}", lines.added, lines.removed)
            });
            row.push((Style::new(), lines));
            row.push((style::DIM, remarks(version)));
        }
        row
    });
    let table = if stat { TABLE.with_remarks() } else { TABLE };
    table.lines(rows.collect(), view.columns)
}

fn show(page: &mut Page, client: &Client, options: &Options, entries: &[LogEntry]) -> Outcome {
    let lines = lines(entries, options.stat, &View::here());
    for (line, entry) in lines.iter().zip(entries) {
        page.line(line)?;
        if options.patch {
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
    FileDiff {
        path: Some(ClientPath::from(std::path::Path::new(&*native::name(
            entry.version.path.as_bytes(),
        )))),
        paths: None,
        from: at(n - 1),
        to: Some(at(n)),
        context: None,
        limit: None,
        cursor: None,
    }
}

fn json(
    context: &Context,
    client: &Client,
    patch: bool,
    entries: Vec<LogEntry>,
    root: &std::path::Path,
) -> Outcome {
    let diffs: Vec<Option<Value>> = match patch {
        false => Vec::new(),
        true => entries
            .iter()
            .map(|entry| {
                let diff = client.call(of_version(entry)).ok()?;
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
    context.json(&value)
}
