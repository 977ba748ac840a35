//! `touchmark status`: the state of a daemon, or of all of them.

use std::path::Path;

use anstyle::Style;
use clap::Args;
use serde_json::{Value, json};
use touchmark_client::Error;
use touchmark_client::blocking::Client;
use touchmark_client::find;
use touchmark_client::proto::Reply;
use touchmark_client::proto::daemon::{KeptContents, Status, StatusReport, TelemetryStatus};

use crate::context::{Context, hello};
use crate::output::{self, Outcome};
use crate::style::{self, paint};
use crate::table::{Cell, Step, Table, View};
use crate::text::{MAX_NAME, bytes, count, cut, directory, duration, escaped, path};
use crate::wire::result_json;

/// Workspace, process, files, sessions, time since the start, what is wrong.
const ALL: Table =
    Table::new(&[Step::Middle(0, 24), Step::Out(1), Step::Middle(0, 12)]).with_remarks();

/// The maximum number of characters shown of what is wrong in the
/// configuration.
const MOST_REASONS: usize = 2_000;

/// The state of the daemon.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Every workspace's daemon of this user
    #[arg(long, conflicts_with = "workspace")]
    all: bool,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    if options.all {
        return all(context);
    }
    match context.open_running()?.answer(Status {})? {
        Some(status) => output::lines(&screen(&status, &View::here())),
        None => Ok(()),
    }
}

fn all(context: &Context) -> Outcome {
    let plain = || (Style::new(), String::new());
    let mut rows = Vec::new();
    let mut found: Vec<Value> = Vec::new();
    for socket in find::sockets(&context.environment) {
        let asked = Client::connect(&socket, &hello()).and_then(|client| client.call(Status {}));
        match asked {
            Ok(status) if context.global.json => {
                let root = status.workspace.clone();
                found.push(result_json(Reply::Status(status), Path::new(&root)));
            }
            Ok(status) => rows.push(row(&status)),
            // A killed daemon has left its socket.
            Err(Error::NoDaemon { .. }) => {}
            Err(error) if context.global.json => found.push(json!({
                "socket": socket.to_string_lossy(),
                "error": {"code": error.code(), "message": error.to_string(), "hint": error.hint()},
            })),
            Err(error) => rows.push(vec![
                (style::WARN, escaped(&socket.to_string_lossy(), MAX_NAME)),
                plain(),
                plain(),
                plain(),
                plain(),
                (Style::new(), escaped(&error.to_string(), MAX_NAME)),
            ]),
        }
    }
    if context.global.json {
        return context.json(&Value::Array(found));
    }
    if rows.is_empty() {
        return context.say("no daemon runs");
    }
    ALL.print(rows)
}

/// Returns one text for each daemon.
#[cfg(test)]
pub(crate) fn all_lines(all: &[StatusReport], view: &View) -> Vec<String> {
    ALL.lines(all.iter().map(row).collect(), view.columns)
}

fn row(status: &StatusReport) -> Vec<Cell> {
    let plain = Style::new();
    vec![
        (style::BOLD, directory(Path::new(&status.workspace))),
        (plain, format!("pid {}", status.pid)),
        (plain, count(status.tracked_files, "file")),
        (plain, count(status.sessions, "session")),
        (plain, format!("up {}", duration(status.uptime_ms))),
        (
            style::WARN,
            degraded(status).into_iter().next().unwrap_or_default(),
        ),
    ]
}

/// Returns the lines about one daemon.
pub(crate) fn screen(status: &StatusReport, view: &View) -> Vec<String> {
    let counters = &status.counters;
    let mut facts = vec![
        (
            "daemon",
            format!(
                "touchmark {}, protocol {}, pid {}, up {}",
                escaped(&status.version, 40),
                status.protocol,
                status.pid,
                duration(status.uptime_ms)
            ),
        ),
        (
            "files",
            format!(
                "{} tracked, {} watched",
                count(status.tracked_files, "file"),
                count_y(status.watched_directories)
            ),
        ),
        (
            "sessions",
            format!(
                "{}, {}, {}",
                count(status.sessions, "session"),
                count(status.open_edits, "open edit"),
                count(status.connections, "connection")
            ),
        ),
        (
            "so far",
            format!(
                "{}, {}, {}, {}",
                count(counters.requests, "request"),
                count(counters.versions, "version"),
                count(counters.events, "hint"),
                count(counters.fences, "fence")
            ),
        ),
        (
            "gaps",
            format!(
                "{}, {}",
                count(counters.overflows, "overflow"),
                count(counters.rescans, "rescan")
            ),
        ),
        ("watcher", escaped(&status.backend, 80)),
        (
            "store",
            format!(
                "{}, {}, durability {}",
                directory(Path::new(&status.store.path)),
                bytes(status.store.size_bytes),
                escaped(&status.store.durability, 20)
            ),
        ),
        ("contents", contents(status.store.contents.as_ref(), view)),
        ("memory", bytes(status.rss_bytes)),
        ("clock", status.clock.to_string()),
        ("telemetry", telemetry(status.telemetry.as_ref())),
    ]
    .into_iter()
    .map(|(name, value)| vec![(style::DIM, name.to_owned()), (Style::new(), value)])
    .collect::<Vec<_>>();
    let degraded = degraded(status);
    if degraded.is_empty() {
        facts.push(vec![
            (style::DIM, "coverage".into()),
            (style::GOOD, "full".into()),
        ]);
    }
    for cause in degraded {
        facts.push(vec![(style::DIM, "degraded".into()), (style::WARN, cause)]);
    }
    let stated = &status.configuration;
    let not_in_force = stated.refused.iter().map(|why| escaped(why, MOST_REASONS));
    let waiting = stated
        .at_restart
        .iter()
        .map(|key| format!("{key}: after a restart"));
    for cause in not_in_force.chain(waiting) {
        facts.push(vec![
            (style::DIM, "not in force".into()),
            (style::WARN, cause),
        ]);
    }
    let telemetry = status.telemetry.as_ref();
    if let Some(error) = telemetry.and_then(|telemetry| telemetry.last_error.as_ref()) {
        facts.push(vec![
            (style::DIM, "telemetry".into()),
            (style::WARN, escaped(error, MAX_NAME)),
        ]);
    }
    let workspace = directory(Path::new(&status.workspace));
    let workspace = view
        .columns
        .map_or(workspace.clone(), |most| cut(&workspace, most));
    let mut lines = vec![paint(style::BOLD, &workspace)];
    lines.extend(Table::new(&[]).with_remarks().lines(facts, view.columns));
    lines
}

/// Returns how much of files' contents is stored, and how far back.
fn contents(kept: Option<&KeptContents>, view: &View) -> String {
    let Some(kept) = kept else {
        return "not known".into();
    };
    let far = match kept.since {
        None => "no version was removed".into(),
        Some(since) => format!(
            "every version of the last {}",
            duration(view.now.saturating_sub(since))
        ),
    };
    format!(
        "{} ({} unpacked), {} pinned; {far}",
        bytes(kept.bytes),
        bytes(kept.original_bytes),
        bytes(kept.pinned_bytes)
    )
}

/// Returns where records are sent, and how far they were.
fn telemetry(status: Option<&TelemetryStatus>) -> String {
    let Some(status) = status else {
        return "off".into();
    };
    let Some(endpoint) = &status.endpoint else {
        return "on, but nothing is sent".into();
    };
    let mut parts = vec![format!("on, to {}", escaped(endpoint, MAX_NAME))];
    if let Some(clock) = status.acknowledged {
        parts.push(format!("acknowledged up to {clock}"));
    }
    parts.push(format!("{} unsent", count(status.unsent, "record")));
    for (number, what) in [(status.pruned, "pruned"), (status.rejected, "rejected")] {
        if number > 0 {
            parts.push(format!("{} {what}", count(number, "record")));
        }
    }
    parts.join("; ")
}

fn count_y(number: u64) -> String {
    match number {
        1 => "1 directory".into(),
        _ => format!("{number} directories"),
    }
}

fn degraded(status: &StatusReport) -> Vec<String> {
    status
        .degraded
        .iter()
        .map(|part| {
            let cause = escaped(&part.cause, MAX_NAME);
            match &part.path {
                Some(name) => format!("{}: {cause}", path(name)),
                None => cause,
            }
        })
        .collect()
}
