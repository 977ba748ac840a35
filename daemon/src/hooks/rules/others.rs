//! The line about other sessions at work with a first prompt, and the line for the
//! user at the end of a turn.

use std::collections::BTreeMap;

use touchmark_engine::State;
use touchmark_proto::history::FileLog;
use touchmark_proto::quoting::quoted;
use touchmark_proto::{At, Millis, RelPath, SessionId, Version};

use super::super::daemon_handle::DaemonHandle;
use super::super::notice;

/// The maximum age of a change of a session that is at work, in milliseconds.
const LATELY: Millis = 30 * 60 * 1_000;

/// The maximum number of sessions that are named, and of files of each.
const SESSIONS: usize = 4;
const FILES: usize = 3;

/// The maximum length of a name, in characters.
const NAME: usize = 100;

/// Returns which other sessions have changed files lately, and which, in one
/// line; `None` if there are none.
pub(super) async fn at_work(daemon: &DaemonHandle, session: &SessionId) -> Option<String> {
    let (own, now) = (session.clone(), daemon.cx.now);
    let look = daemon.cx.inside.look(move |state| found(state, &own, now));
    let sessions = look.await?;
    let rows = sessions.iter().take(SESSIONS).map(|(name, files)| {
        let name = quoted(name, NAME);
        format!("agent session {name} ({})", listed(files))
    });
    let rows: Vec<String> = rows.collect();
    let more = match sessions.len().saturating_sub(rows.len()) {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    let rows = rows.join("; ");
    (!rows.is_empty()).then(|| format!("Also at work here: {rows}{more}."))
}

/// Returns the other open sessions, by label, with the files that they have
/// changed lately, the newest first. A sub-agent's changes are its parent's.
fn found(state: &State, own: &SessionId, now: Millis) -> Vec<(String, Vec<RelPath>)> {
    let main = |session: &SessionId| {
        let parent = state.sessions.get(session)?.parent.clone();
        Some(parent.unwrap_or_else(|| session.clone()))
    };
    let mut changed: BTreeMap<SessionId, Vec<(Millis, RelPath)>> = BTreeMap::new();
    for (path, file) in state.paths.iter() {
        let lately = file.versions.iter().rev();
        let mut lately = lately.take_while(|kept| now.saturating_sub(kept.time) < LATELY);
        let newest = lately.find_map(|kept| {
            let whose = main(kept.session()?)?;
            (whose != *own).then_some((whose, kept.time))
        });
        if let Some((whose, time)) = newest {
            changed.entry(whose).or_default().push((time, path.clone()));
        }
    }
    let sessions = changed.into_iter().filter_map(|(id, mut files)| {
        let session = state.sessions.get(&id).filter(|session| session.open)?;
        files.sort_by(|one, other| other.cmp(one));
        let name = session.label.clone().unwrap_or_else(|| id.to_string());
        Some((name, files.into_iter().map(|(_, path)| path).collect()))
    });
    sessions.collect()
}

/// Returns what the commands of a session have changed since its last prompt, in
/// one line for its user; `None` if they changed nothing.
pub(in crate::hooks) async fn by_commands(
    daemon: &DaemonHandle,
    session: &SessionId,
) -> Option<String> {
    let own = session.clone();
    let look = daemon.cx.inside.look(move |state| {
        let checkpoints = &state.sessions.get(&own)?.memory.checkpoints;
        Some(checkpoints.last_key_value()?.1.n)
    });
    let ask = FileLog {
        since: Some(At::Clock {
            epoch: Some(daemon.cx.epoch),
            n: look.await??,
        }),
        ..FileLog::new()
    };
    let mut files: Vec<RelPath> = Vec::new();
    for entry in daemon.ask(ask).await.ok()?.entries {
        let Version {
            path,
            author,
            evidence,
            ..
        } = entry.version;
        let is_own = author.session.as_ref() == Some(session);
        if is_own && evidence.is_of_command() && !files.contains(&path) {
            files.push(path);
        }
    }
    if files.is_empty() {
        return None;
    }
    let number = notice::count(files.len(), "file");
    let files = listed(&files);
    Some(format!(
        "touchmark: shell commands of this turn changed {number}: {files} (`touchmark log --files`)"
    ))
}

fn listed(files: &[RelPath]) -> String {
    let names = files.iter().take(FILES);
    let names: Vec<String> = names
        .map(|path| quoted(&path.to_string_lossy(), NAME))
        .collect();
    match files.len().saturating_sub(names.len()) {
        0 => names.join(", "),
        more => format!(
            "{} and {}",
            names.join(", "),
            notice::count(more, "more file")
        ),
    }
}
