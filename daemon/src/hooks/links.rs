//! Symlinks that a tool or a command of a session has replaced by files: what
//! the links led to does not have the change, so the session is told (HOOK-4).

use touchmark_engine::recall::command_number;
use touchmark_engine::{Fact, Record, VersionFact};
use touchmark_proto::commands::CommandRow;
use touchmark_proto::edits::CommittedFile;
use touchmark_proto::quoting::quoted;
use touchmark_proto::{FileMode, Version};

use super::daemon_handle::DaemonHandle;
use super::notice;
use crate::context::aside;
use crate::store::Reader;

/// The most versions of one command that are looked at.
const VERSIONS: usize = 1_000;

/// The most links that one notice names.
const NAMED: usize = 8;

/// Returns the text about the links that an edit has replaced; `None` if it
/// has replaced none.
pub(super) async fn by_edit(daemon: &DaemonHandle, files: &[CommittedFile]) -> Option<String> {
    let is_link = |version: &&Version| version.mode_before.is_some_and(FileMode::is_link);
    let versions = files.iter().filter_map(|file| file.version.as_ref());
    let numbers: Vec<u64> = versions.filter(is_link).map(|it| it.clock.n).collect();
    let first = *numbers.iter().min()?;
    let last = *numbers.iter().max()?;
    let of_edit = move |record: &Record, _: &VersionFact| numbers.contains(&record.n);
    replaced(daemon, first - 1, last - first + 1, of_edit).await
}

/// Returns the text about the links that a command has replaced; `None` if it
/// has replaced none.
pub(super) async fn by_command(daemon: &DaemonHandle, row: &CommandRow) -> Option<String> {
    let command = command_number(&row.command)?;
    if row.versions == 0 {
        return None;
    }
    let of_command = move |_: &Record, fact: &VersionFact| fact.command == Some(command);
    replaced(daemon, row.begun.n, VERSIONS as u64, of_command).await
}

async fn replaced(
    daemon: &DaemonHandle,
    after: u64,
    most: u64,
    is_meant: impl Fn(&Record, &VersionFact) -> bool + Send + 'static,
) -> Option<String> {
    let log = daemon.cx.workspace.store.clone();
    let texts = aside(move || {
        let log = log.open().ok()?;
        let records = log.versions_from(after, usize::try_from(most).ok()?).ok()?;
        let replaced = records.iter().filter_map(|record| match &record.fact {
            Fact::Version(fact) if is_meant(record, fact) => row(&log, fact),
            _ => None,
        });
        let rows: Vec<String> = replaced.take(NAMED).collect();
        (!rows.is_empty()).then(|| rows.join("\n"))
    });
    texts.await.ok().flatten()
}

fn row(log: &Reader, fact: &VersionFact) -> Option<String> {
    let was_link = fact.mode_before.is_some_and(FileMode::is_link);
    let is_file = fact.held.mode.is_some_and(FileMode::is_file);
    if !was_link || !is_file || fact.amends.is_some() {
        return None;
    }
    let name = notice::path(&fact.path);
    let to = fact.before.and_then(|to| log.peek(&to).ok().flatten());
    let to = to.map_or_else(String::new, |to| {
        format!(
            " to {}",
            quoted(&String::from_utf8_lossy(&to), notice::NAME)
        )
    });
    Some(format!(
        "{name} was a symbolic link{to}, and is a file of its own now: what the link led to does not have this change."
    ))
}
