//! `touchmark fleet`: all workspaces of this user on this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anstyle::Style;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use touchmark_client::fleet::{self, Answer, Member};
use touchmark_client::proto::places::key;

use crate::context::Context;
use crate::daemon;
use crate::output::{self, Outcome};
use crate::service::Service;
use crate::style::{self, paint};
use crate::table::{Cell, Step, Table, View};
use crate::text::{bytes, count, directory, duration, escaped, plural, wrapped};

/// How long a daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The maximum number of characters shown of a cause.
const MOST_CAUSE: usize = 160;

/// Workspace, state, process, who started it, time since the start, memory,
/// watches, sessions, time since the last use and until the end, what is
/// stored; what keeps the daemon running, and what is wrong.
const TABLE: Table = Table::new(&[
    Step::Middle(0, 30),
    Step::Out(9),
    Step::Out(7),
    Step::Out(2),
    Step::Out(4),
    Step::Middle(0, 20),
    Step::Out(3),
    Step::Out(6),
    Step::Middle(0, 12),
])
.with_remarks();

/// What `--json` has of a daemon's own report.
const REPORTED: [&str; 12] = [
    "version",
    "startedBy",
    "uptimeMs",
    "idleMs",
    "privateBytes",
    "watchedDirectories",
    "trackedFiles",
    "sessions",
    "openEdits",
    "openCommands",
    "subscriptions",
    "degraded",
];

/// Show all workspaces of this user on this machine.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List every workspace: its daemon, what that uses and what it waits for
    Status,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    match options.action {
        Action::Status => status(context),
    }
}

fn status(context: &Context) -> Outcome {
    let all = look(context);
    if context.global.json {
        return context.json(&json_of(&all));
    }
    match all.is_empty() {
        true => context.say("no workspaces"),
        false => output::lines(&lines(&all, &View::here())),
    }
}

/// Whether a workspace has a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DaemonState {
    /// It runs and answers.
    Running,
    /// It runs and does not answer in time, or not what it should.
    Silent,
    /// None runs; systemd starts it when a client connects.
    Asleep,
    /// None runs; a client starts it.
    None,
}

impl DaemonState {
    fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Silent => "silent",
            Self::Asleep => "asleep",
            Self::None => "none",
        }
    }
}

/// A workspace of this user.
#[derive(Clone, Debug)]
pub(crate) struct WorkspaceRow {
    /// Its path; `None` if only its key is known.
    pub(crate) path: Option<PathBuf>,
    /// The key of its files.
    pub(crate) key: Option<String>,
    /// Whether its directory exists.
    pub(crate) exists: bool,
    /// Whether it has a daemon.
    pub(crate) state: DaemonState,
    /// The daemon's process.
    pub(crate) pid: Option<u64>,
    /// The daemon's `status`; null if it does not answer.
    pub(crate) status: Value,
    /// What is stored of it, in bytes.
    pub(crate) stored: Option<u64>,
    /// Why the daemon could not be asked.
    pub(crate) problem: Option<String>,
}

/// Returns all workspaces: first those with a daemon, the one used last first,
/// then the others by their names.
fn look(context: &Context) -> Vec<WorkspaceRow> {
    let base = &context.environment.base;
    let members = fleet::ask_all(&context.environment, PATIENCE);
    let mut rows: Vec<WorkspaceRow> = members.into_iter().map(of_member).collect();
    let running: Vec<String> = rows.iter().filter_map(|row| row.key.clone()).collect();
    let without = daemon::stored(&base.state_directory(), |key| {
        running.iter().any(|running| running == key)
    });
    for service in Service::all(&context.environment) {
        let key = service.places.key;
        if !running.contains(&key) {
            let path = Some(service.workspace);
            rows.push(WorkspaceRow::without_daemon(
                &key,
                path,
                DaemonState::Asleep,
            ));
        }
    }
    for stored in without {
        let known = rows
            .iter_mut()
            .find(|row| row.key.as_deref() == Some(&stored.key));
        if let Some(row) = known {
            row.stored = Some(stored.bytes);
            continue;
        }
        let row = WorkspaceRow::without_daemon(&stored.key, stored.workspace, DaemonState::None);
        rows.push(WorkspaceRow {
            stored: Some(stored.bytes),
            ..row
        });
    }
    rows.sort_by_key(|row| {
        let runs = matches!(row.state, DaemonState::Running | DaemonState::Silent);
        let idle = runs.then(|| row.number("idleMs").unwrap_or(u64::MAX));
        (!runs, idle, row.path.clone(), row.key.clone())
    });
    rows
}

fn of_member(member: Member) -> WorkspaceRow {
    let (state, status, problem) = match member.answer {
        Answer::Status(status) => (DaemonState::Running, status, None),
        Answer::Silent => {
            let problem = format!("no answer within {} s", PATIENCE.as_secs());
            (DaemonState::Silent, Value::Null, Some(problem))
        }
        Answer::Failed(problem) => (DaemonState::Silent, Value::Null, Some(problem)),
    };
    let told = status["workspace"].as_str().map(PathBuf::from);
    let holder = member.holder;
    // The lock has the exact bytes of the path, the answer only its text.
    let named = holder.as_ref().map(|holder| holder.workspace.clone());
    let path = named.or(told);
    WorkspaceRow {
        key: path.as_deref().map(key),
        exists: path.as_deref().is_some_and(Path::exists),
        pid: status["pid"]
            .as_u64()
            .or(holder.map(|holder| holder.pid.into())),
        stored: status["store"]["sizeBytes"].as_u64(),
        path,
        state,
        status,
        problem,
    }
}

impl WorkspaceRow {
    fn without_daemon(key: &str, path: Option<PathBuf>, state: DaemonState) -> Self {
        Self {
            key: Some(key.to_owned()),
            exists: path.as_deref().is_some_and(Path::exists),
            path,
            state,
            pid: None,
            status: Value::Null,
            stored: None,
            problem: None,
        }
    }

    /// Returns a number of the daemon's answer; `None` if it has none.
    fn number(&self, name: &str) -> Option<u64> {
        self.status[name].as_u64()
    }

    /// Returns the number of connections, without the one of this command.
    fn connections(&self) -> Option<u64> {
        Some(self.number("connections")?.saturating_sub(1))
    }

    /// Returns in how many milliseconds the daemon ends if it is not used;
    /// `None` if it does not end, or a client is connected.
    fn ends_in(&self) -> Option<u64> {
        let exit = self.number("idleExitMs")?;
        let idle = self.number("idleMs")?;
        (self.connections() == Some(0)).then(|| exit.saturating_sub(idle))
    }

    fn degraded(&self) -> &[Value] {
        self.status["degraded"]
            .as_array()
            .map_or(&[], Vec::as_slice)
    }

    /// Returns how long the daemon was not used, and after how long it ends.
    fn idle(&self) -> String {
        let Some(idle) = self.number("idleMs") else {
            return String::new();
        };
        let idle = format!("idle {}", duration(idle));
        match (self.ends_in(), self.number("idleExitMs")) {
            (Some(_), Some(exit)) => format!("{idle} of {}", duration(exit)),
            _ => idle,
        }
    }

    /// Returns what keeps the daemon running, and what is wrong.
    fn remark(&self) -> Cell {
        if let Some(problem) = &self.problem {
            return (style::WARN, escaped(problem, MOST_CAUSE));
        }
        if self.state != DaemonState::Running {
            return (style::DIM, String::new());
        }
        let held = [
            (self.number("openEdits"), "open edit"),
            (self.number("openCommands"), "command"),
            (self.number("subscriptions"), "subscriber"),
            (self.connections(), "connection"),
        ];
        let mut parts: Vec<String> = held
            .iter()
            .filter_map(|(number, what)| Some(((*number)?, what)))
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| count(number, what))
            .collect();
        let causes = self.degraded();
        let Some(cause) = causes.first() else {
            return (Style::new(), parts.join(", "));
        };
        let cause = cause["cause"].as_str().unwrap_or_default();
        let more = match causes.len() {
            1 => String::new(),
            several => format!(" ({} more)", several - 1),
        };
        parts.push(format!("degraded: {}{more}", escaped(cause, MOST_CAUSE)));
        (style::WARN, parts.join(", "))
    }

    fn cells(&self) -> Vec<Cell> {
        let plain = Style::new();
        let of = |number: Option<u64>, text: fn(u64) -> String| {
            (plain, number.map(text).unwrap_or_default())
        };
        let name = match (&self.path, &self.key) {
            (Some(path), _) => directory(path),
            (None, key) => format!("({})", key.as_deref().unwrap_or("unknown")),
        };
        let gone = match self.path.is_some() && !self.exists {
            true => ", gone",
            false => "",
        };
        let (shade, state) = match self.state {
            DaemonState::Running => (style::GOOD, "runs"),
            DaemonState::Silent => (style::WARN, "silent"),
            DaemonState::Asleep => (style::DIM, "asleep"),
            DaemonState::None => (style::DIM, "no daemon"),
        };
        let started = match self.status["startedBy"].as_str() {
            Some("client") => "on demand",
            Some("socket") => "by systemd",
            Some("user") => "by hand",
            _ => "",
        };
        vec![
            (style::BOLD, name),
            (shade, format!("{state}{gone}")),
            of(self.pid, |pid| format!("pid {pid}")),
            (style::DIM, started.into()),
            of(self.number("uptimeMs"), |up| format!("up {}", duration(up))),
            of(self.number("privateBytes"), bytes),
            of(self.number("watchedDirectories"), |all| {
                plural(all, "watch", "watches")
            }),
            of(self.number("sessions"), |all| count(all, "session")),
            (plain, self.idle()),
            of(self.stored, |size| format!("{} stored", bytes(size))),
            self.remark(),
        ]
    }

    fn json(&self) -> Value {
        let mut row = json!({
            "key": self.key,
            "exists": self.exists,
            "daemon": self.state.name(),
            "pid": self.pid,
            "endsInMs": self.ends_in(),
            "connections": self.connections(),
            "storedBytes": self.stored,
            "problem": self.problem,
        });
        for name in REPORTED {
            row[name] = self.status[name].clone();
        }
        if let Some(object) = row.as_object_mut() {
            object.retain(|_, value| !value.is_null());
            if let Some(path) = &self.path {
                object.insert("path".into(), path.to_string_lossy().into());
            }
        }
        row
    }
}

fn sum(all: &[WorkspaceRow], name: &str) -> u64 {
    all.iter().filter_map(|row| row.number(name)).sum()
}

fn running(all: &[WorkspaceRow]) -> u64 {
    let runs =
        |row: &&WorkspaceRow| matches!(row.state, DaemonState::Running | DaemonState::Silent);
    all.iter().filter(runs).count() as u64
}

fn json_of(all: &[WorkspaceRow]) -> Value {
    json!({
        "workspaces": all.iter().map(WorkspaceRow::json).collect::<Vec<_>>(),
        "daemons": running(all),
        "privateBytes": sum(all, "privateBytes"),
        "watchedDirectories": sum(all, "watchedDirectories"),
    })
}

/// Returns one text for each workspace, and the sums.
pub(crate) fn lines(all: &[WorkspaceRow], view: &View) -> Vec<String> {
    let mut lines = TABLE.lines(all.iter().map(WorkspaceRow::cells), view.columns);
    let daemons = running(all);
    let mut sums = vec![
        count(daemons, "daemon"),
        format!("{} private memory", bytes(sum(all, "privateBytes"))),
        plural(sum(all, "watchedDirectories"), "watch", "watches"),
    ];
    let others = all.len() as u64 - daemons;
    if others > 0 {
        sums.push(format!("{} without a daemon", count(others, "workspace")));
    }
    let sums = wrapped(&sums.join(", "), view.columns.unwrap_or(usize::MAX), "  ");
    lines.extend(sums.iter().map(|line| paint(style::DIM, line)));
    lines
}

/// Returns rows for the snapshots.
#[cfg(test)]
pub(crate) fn rows(all: Vec<(&str, DaemonState, Value)>) -> Vec<WorkspaceRow> {
    let row = |(path, state, status): (&str, DaemonState, Value)| WorkspaceRow {
        path: Some(path.into()),
        key: Some(key(Path::new(path))),
        exists: !path.contains("gone"),
        state,
        pid: status["pid"].as_u64(),
        stored: Some(1_234_567),
        problem: (state == DaemonState::Silent).then(|| "no answer within 2 s".into()),
        status,
    };
    all.into_iter().map(row).collect()
}
