//! Finds what a notice says of a change in addition to the change itself.

use std::collections::BTreeSet;

use touchmark_engine::text::{form, lines, tokens};
use touchmark_proto::{Change, ClientPath, LineRange, RelPath, SessionId, VersionKind};

use super::super::daemon_handle::DaemonHandle;
use super::super::details::{Details, Lines};
use super::super::memory::{InDenial, Memory, Noticed};
use super::super::{destroys, notice, whose};

/// The maximum number of changed lines of a file that are shown.
const LINES: u32 = 8;

/// The maximum length in bytes of one line that is shown. A longer one would be
/// cut, so it is not what stands on the disk.
const WIDTH: usize = 160;

/// Returns what the state has of the files and authors of these changes.
pub(super) async fn of(daemon: &DaemonHandle, session: &SessionId, list: &[Change]) -> Details {
    let own = session.clone();
    let paths: Vec<(RelPath, bool)> = list
        .iter()
        .map(|change| (change.path.clone(), change.kind == VersionKind::Deleted))
        .collect();
    let authors: BTreeSet<SessionId> = list
        .iter()
        .flat_map(|change| &change.changed_by)
        .filter_map(|author| author.session.clone())
        .collect();
    let look = daemon.cx.inside.look(move |state| {
        let mut details = Details::default();
        let is_child = |who: &&SessionId| {
            let session = state.sessions.get(*who);
            session.is_some_and(|session| session.parent.as_ref() == Some(&own))
        };
        let reader = state.sessions.get(&own);
        details.label = reader.and_then(|session| session.label.clone());
        details.children = authors.iter().filter(is_child).cloned().collect();
        for (path, is_gone) in paths {
            if is_gone && let Some(to) = state.moved_to(&path) {
                details.gone.insert(path.clone(), to.clone());
            }
            let newest = state.paths.get(&path).and_then(|path| path.versions.last());
            let command = newest.and_then(|version| version.command());
            if let Some(ran) = command.and_then(|command| state.past_command(command))
                && let Some(text) = whose::git_command(
                    ran.label.as_deref().unwrap_or_default(),
                    ran.branch_before.as_deref(),
                    ran.branch_after.as_deref(),
                )
            {
                details.commands.insert(path, (ran.session.clone(), text));
            }
        }
        details
    });
    look.await.unwrap_or_default()
}

/// Adds the changed lines of files of which few have changed, as they stand on
/// the disk now.
pub(super) async fn add_lines(
    details: &mut Details,
    daemon: &DaemonHandle,
    session: &SessionId,
    list: &[Change],
) {
    for change in list.iter().take(notice::FILES) {
        let few = |counts: touchmark_proto::LineCounts| {
            counts.added > 0 && counts.added.max(counts.removed) <= LINES
        };
        let is_modified = matches!(change.kind, VersionKind::Modified | VersionKind::Renamed);
        // The session has on record what comes back when its edit is taken back.
        let is_back = change.reverts.is_some();
        if !is_modified || is_back || change.lost.is_some() || !change.lines.is_some_and(few) {
            continue;
        }
        if let Some(lines) = lines_of(daemon, session, &change.path).await {
            details.lines.insert(change.path.clone(), lines);
        }
    }
}

/// Remembers which lines a notice shows until it is delivered. Returns the
/// numbers under which they are remembered.
pub(super) fn remember(
    details: &mut Details,
    memory: &Memory,
    session: &SessionId,
    list: &[Change],
    shown: &[RelPath],
) -> Vec<u64> {
    let changes = list.iter().filter(|change| shown.contains(&change.path));
    let numbers = changes.filter_map(|change| {
        let lines = details.lines.remove(&change.path)?;
        Some(memory.deny(InDenial {
            session: session.clone(),
            path: ClientPath::from(&change.path),
            hash: lines.hash,
            lines: lines.ranges,
            noticed: Some(Noticed {
                before: lines.before,
                changed_by: change.changed_by.clone(),
                since: change.first_time,
            }),
        }))
    });
    numbers.collect()
}

/// Returns the lines of a file that are not what a session saw there last.
async fn lines_of(daemon: &DaemonHandle, session: &SessionId, path: &RelPath) -> Option<Lines> {
    let place = ClientPath::from(path);
    let before = daemon.status(session, &place).await?.seen_hash?;
    let (hash, bytes) = daemon.bytes(&place).await?;
    // Secrets are not shown to a session that has not requested them (SEC-3).
    // Their contents are not stored.
    let old = daemon.content(before).await?;
    daemon.content(hash).await?;
    let (old, text) = (form::plain(&old)?, form::plain(&bytes)?);
    if tokens::any(text.as_bytes()) {
        return None;
    }
    let mut changed = lines::places(old.as_bytes(), text.as_bytes())?;
    changed.retain(|hunk| hunk.new_lines > 0);
    let count = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    let places = destroys::places(&changed, count);
    let all: u32 = places.iter().map(|place| place.end - place.start + 1).sum();
    let is_long = |place: &LineRange| {
        let lines = text.lines().skip(place.start as usize - 1);
        let mut lines = lines.take((place.end - place.start + 1) as usize);
        lines.any(|line| line.len() > WIDTH)
    };
    if all == 0 || all > LINES || places.iter().any(is_long) {
        return None;
    }
    let shown = destroys::shown(&text, &places);
    (!shown.more).then_some(Lines {
        text: shown.text,
        ranges: shown.lines,
        hash,
        before,
    })
}
