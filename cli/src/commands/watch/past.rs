//! What happened before `touchmark watch` began.

use std::collections::HashSet;

use touchmark_client::blocking::Client;
use touchmark_client::proto::activity::{ActivityKind, ActivityList};
use touchmark_client::proto::at::When;
use touchmark_client::proto::commands::{CommandList, CommandRow};
use touchmark_client::proto::daemon::Subscribe;
use touchmark_client::proto::events::{Event, Happening};
use touchmark_client::proto::files::FileStatus;
use touchmark_client::proto::history::{FileLog, LogEntry};
use touchmark_client::proto::{At, Clock, Millis, RelPath, SessionId};

use crate::context::pages;
use crate::output::Outcome;

/// How far back the feed begins, in seconds, unless the user says otherwise.
const LATELY: u64 = 600;

/// The changes before the feed.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// The changes as events, oldest first, each with its time.
    pub(super) events: Vec<(Event, Millis)>,
    /// The number of the newest fact among them; 0 if there is none.
    pub(super) newest: u64,
    /// The newest commands, which name what many changes have in common.
    pub(super) commands: Vec<CommandRow>,
}

/// Returns the moment at which the feed begins, unless the user names one.
pub(super) fn lately() -> At {
    At::Time(When::Ago(LATELY))
}

/// Returns the newest changes since a moment, at most as many as the daemon
/// returns in one answer.
pub(super) fn changes(client: &Client, wanted: &Subscribe, since: &At) -> Outcome<Past> {
    let is_wanted =
        |kind| wanted.kinds.is_empty() || wanted.kinds.iter().any(|wanted| wanted == kind);
    if *since == At::Now {
        return Ok(Past::default());
    }
    // The changes are asked for last, so none is missing that is older than an
    // undo.
    let undos = match is_wanted("undone") && wanted.session.is_none() {
        true => undos(client, since)?,
        false => Vec::new(),
    };
    let mut entries = match is_wanted("version") {
        true => log(client, since)?,
        false => Vec::new(),
    };
    let newest = entries.first().map_or(0, |entry| entry.version.clock.n);
    if let Some(session) = &wanted.session {
        let known = known(client, session)?;
        entries.retain(|LogEntry { version, .. }| {
            version.author.is(session) || known.contains(&version.path)
        });
    }
    let commands = match entries.iter().any(|entry| entry.version.command.is_some()) {
        true => client.call(CommandList::new().limit(1_000))?.commands,
        false => Vec::new(),
    };
    let events = entries
        .into_iter()
        .rev()
        .map(|LogEntry { version, lines }| {
            let time = version.time;
            let event = Event {
                subscription: 0,
                clock: version.clock,
                happening: Happening::Version { version, lines },
            };
            (event, time)
        });
    let mut events: Vec<(Event, Millis)> = events.chain(undos).collect();
    events.sort_by_key(|(event, _)| event.clock.n);
    let newest = events
        .last()
        .map_or(newest, |(last, _)| last.clock.n.max(newest));
    Ok(Past {
        events,
        newest,
        commands,
    })
}

/// Returns the undos and redos since a moment, newest first, each with its time.
fn undos(client: &Client, since: &At) -> Outcome<Vec<(Event, Millis)>> {
    let ask = ActivityList {
        kinds: Some(vec![ActivityKind::Undo, ActivityKind::Redo]),
        since: Some(since.clone()),
        ..ActivityList::new()
    };
    let rows = client.call(ask)?.rows.into_iter();
    let events = rows.map(|row| {
        // A redo is described by the undo that it reverts.
        let is_redo = row.kind == ActivityKind::Redo;
        let (undo, label) = match is_redo {
            true => (row.text, None),
            false => (row.name, row.text),
        };
        let happening = Happening::Undone {
            session: None,
            undo: undo.unwrap_or_default(),
            redo: is_redo.then_some(true),
            files: row.files.unwrap_or_default(),
            label,
        };
        let event = Event {
            subscription: 0,
            clock: row.clock,
            happening,
        };
        (event, row.time)
    });
    Ok(events.collect())
}

/// Returns the clock after which events are wanted as JSON; `None` if only new
/// ones are. For a moment that is no clock, it is the one before the first
/// change after that moment.
pub(super) fn clock(client: &Client, since: Option<&At>) -> Outcome<Option<Clock>> {
    match since {
        None | Some(At::Now) => Ok(None),
        Some(At::Clock {
            epoch: Some(epoch),
            n,
        }) => Ok(Some(Clock {
            epoch: *epoch,
            n: *n,
        })),
        Some(since) => {
            let first = log(client, since)?.pop();
            Ok(first.map(|entry| Clock {
                n: entry.version.clock.n.saturating_sub(1),
                ..entry.version.clock
            }))
        }
    }
}

fn log(client: &Client, since: &At) -> Outcome<Vec<LogEntry>> {
    let ask = FileLog::new().since(since.clone()).lines(true);
    Ok(client.call(ask)?.entries)
}

/// Returns the files that a session has read.
fn known(client: &Client, session: &SessionId) -> Outcome<HashSet<RelPath>> {
    let files = pages(|cursor| {
        let page = client.call(FileStatus {
            cursor,
            ..FileStatus::new(session.clone()).sync(false)
        })?;
        Ok((page.files, page.more))
    })?;
    Ok(files.into_iter().map(|file| file.path).collect())
}
