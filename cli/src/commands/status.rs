//! `touchmark status`: the state of the workspace's daemon.

use std::path::Path;

use anstyle::Style;
use touchmark_client::proto::SessionId;
use touchmark_client::proto::daemon::{
    KeptContents, SessionWitnessed, Status, StatusReport, TelemetryStatus,
};

use crate::context::{self, Context};
use crate::off;
use crate::output::{self, Outcome};
use crate::style::{self, paint};
use crate::table::{Table, View};
use crate::text::{
    MAX_NAME, bytes, called, count, cut, directory, duration, escaped, list, path, plural,
};

/// The maximum number of characters shown of what is wrong in the
/// configuration.
const MOST_REASONS: usize = 2_000;

pub(crate) fn run(context: &Context) -> Outcome {
    let connection = context.open_running().inspect_err(|_| {
        let _output_is_closed = without_daemon(context);
    })?;
    let Some(mut status) = connection.answer(Status {})? else {
        return Ok(());
    };
    for allowed in status.off.iter_mut().flat_map(|off| &mut off.allowed) {
        let label = context::label(&connection.client, &allowed.session)?;
        allowed.session = SessionId::new(&label).unwrap_or_else(|_| allowed.session.clone());
    }
    output::lines(&screen(&status, &View::here()))
}

/// Prints what switches touchmark off where no daemon runs.
fn without_daemon(context: &Context) -> Outcome {
    if context.global.json {
        return Ok(());
    }
    let rows = off::rows(&off::local(&context.workspace()?)).into_iter();
    let rows =
        rows.map(|(name, value)| vec![(style::WARN, name.to_owned()), (Style::new(), value)]);
    output::lines(
        &Table::new(&[])
            .with_remarks()
            .lines(rows, View::here().columns),
    )
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
                plural(status.watched_directories, "directory", "directories")
            ),
        ),
        (
            "sessions",
            list(&[
                (status.sessions, "session"),
                (status.open_edits, "open edit"),
                (status.connections, "connection"),
            ]),
        ),
        (
            "so far",
            list(&[
                (counters.requests, "request"),
                (counters.versions, "version"),
                (counters.events, "hint"),
                (counters.fences, "fence"),
            ]),
        ),
        (
            "gaps",
            list(&[
                (counters.overflows, "overflow"),
                (counters.rescans, "rescan"),
            ]),
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
    let mut fact = |name: &str, style: Style, value: String| {
        facts.push(vec![(style::DIM, name.to_owned()), (style, value)]);
    };
    for (name, value) in status.off.as_ref().map(off::rows).unwrap_or_default() {
        fact(name, style::WARN, value);
    }
    for one in &status.witnessed {
        fact("witness", Style::new(), witnessed(one, view));
    }
    let degraded = degraded(status);
    if degraded.is_empty() {
        fact("coverage", style::GOOD, "full".into());
    }
    for cause in degraded {
        fact("degraded", style::WARN, cause);
    }
    if let Some(why) = &status.configuration.refused {
        fact("not in force", style::WARN, escaped(why, MOST_REASONS));
    }
    for key in &status.configuration.at_restart {
        let when = format!("{key}: after a restart");
        fact("not in force", style::WARN, when);
    }
    let telemetry = status.telemetry.as_ref();
    if let Some(error) = telemetry.and_then(|telemetry| telemetry.last_error.as_ref()) {
        fact("telemetry", style::WARN, escaped(error, MAX_NAME));
    }
    let workspace = directory(Path::new(&status.workspace));
    let workspace = view
        .columns
        .map_or(workspace.clone(), |most| cut(&workspace, most));
    let mut lines = vec![paint(style::BOLD, &workspace)];
    lines.extend(Table::new(&[]).with_remarks().lines(facts, view.columns));
    lines
}

/// Returns what a witness has seen of a session's commands.
fn witnessed(one: &SessionWitnessed, view: &View) -> String {
    let name = called(&one.session, one.session_label.as_deref());
    let commands = count(one.commands, "command");
    let since = view.ago(one.since);
    match &one.gap {
        None => format!("{name}: all writes of {commands} seen, the first {since}"),
        Some(gap) => format!(
            "{name}: not all writes of {}{commands} seen, the last of {}, {}: {}",
            match one.incomplete {
                all if all == one.commands => String::new(),
                some => format!("{some} of "),
            },
            escaped(&gap.command, 20),
            view.ago(gap.at),
            escaped(&gap.why, MAX_NAME)
        ),
    }
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
