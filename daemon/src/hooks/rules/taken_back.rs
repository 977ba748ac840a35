//! Edits of a session that another author took back, and put back later. A
//! session that was told the first is told the second. What the notice about an
//! undo says is told no second time (UNDO-5).

use touchmark_proto::changes::{ModifiedAck, ModifiedTaken};
use touchmark_proto::files::FileHistory;
use touchmark_proto::{ClientPath, Hash, RelPath, SessionId, State};

use super::super::daemon_handle::DaemonHandle;
use super::super::notice;
use super::super::undone::TakenBack;

/// Remembers which of the session's edits a list of changes reports as taken
/// back.
pub(super) async fn note(daemon: &DaemonHandle, session: &SessionId, taken: &ModifiedTaken) {
    for change in &taken.changes {
        if change.reverts.is_none() && change.reverted_lines.is_none() {
            continue;
        }
        let place = ClientPath::from(&change.path);
        let Some(seen) = daemon.status(session, &place).await else {
            continue;
        };
        if let Some(seen) = seen.seen_hash {
            let taken = TakenBack {
                session: session.clone(),
                path: change.path.clone(),
                seen,
                lines: change.reverted_lines.clone().unwrap_or_default(),
                is_told: false,
            };
            daemon.memory.undone(|undone| undone.take_back(taken));
        }
    }
}

/// Adds a text to the answer for each edit that is in place again: the file has
/// the content that the session saw last.
pub(super) async fn find_put_back(daemon: &DaemonHandle, session: &SessionId) {
    let all = daemon.memory.undone(|undone| undone.taken_back(session));
    for taken in all {
        let forget = || {
            let path = &taken.path;
            daemon
                .memory
                .undone(|undone| undone.give_back(session, path));
        };
        let place = ClientPath::from(&taken.path);
        let Some(now) = daemon.status(session, &place).await else {
            continue;
        };
        if now.seen_hash != Some(taken.seen) {
            // The session has read or written the file since.
            forget();
            continue;
        }
        if now.state != State::Fresh || now.hash != Some(taken.seen) {
            continue;
        }
        forget();
        let ask = FileHistory::new(place).limit(1);
        let newest = daemon.ask(ask).await.ok();
        let newest = newest.and_then(|history| history.versions.into_iter().next());
        if let Some(newest) = newest.filter(|newest| taken.is_told && !newest.author.is(session)) {
            let text = notice::put_back(&taken.path, &taken.lines, &newest);
            let memory = &daemon.memory;
            memory.say_later(&daemon.cx.inside, session, Some(text));
        }
    }
}

/// Removes the changes that undos and redos made and that their notices tell.
/// Of those that others have changed as well, only that is left. Returns whether
/// nothing is left to be told.
pub(super) async fn by_undo(
    daemon: &DaemonHandle,
    session: &SessionId,
    taken: &mut ModifiedTaken,
) -> bool {
    let changes = &mut taken.changes;
    let mut left = daemon.memory.undone(|undone| undone.left(session));
    left.retain(|path, _| changes.iter().any(|change| change.path == *path));
    if left.is_empty() {
        return false;
    }
    let of = session.clone();
    let looked = daemon.cx.inside.look(move |state| {
        let is_all = |path: &RelPath, contents: &[Option<Hash>]| {
            let path = state.names.file_of(path);
            let known = state.knowledge(&of, path)?;
            let since = known.told.max(known.at);
            let versions = state.paths.get(path)?.versions.iter();
            let mut untold = versions.filter(|kept| kept.n > since && !kept.is_by(&of));
            Some(untold.all(|kept| contents.contains(&kept.hash)))
        };
        let with_rest = left.into_iter().map(|(path, contents)| {
            let is_all = is_all(&path, &contents) == Some(true);
            (path, (is_all, contents))
        });
        with_rest.collect::<std::collections::BTreeMap<_, _>>()
    });
    let known = looked.await.unwrap_or_default();
    let before = changes.len();
    changes.retain(|change| {
        let known = known.get(&change.path);
        change.lost.is_some() || !known.is_some_and(|(is_all, _)| *is_all)
    });
    for change in changes.iter_mut() {
        let known = known.get(&change.path);
        if known.is_some_and(|(_, contents)| contents.contains(&change.hash)) {
            (change.reverts, change.reverted_lines) = (None, None);
        }
    }
    if changes.len() == before || !changes.is_empty() || taken.reset == Some(true) {
        return false;
    }
    let ack = ModifiedAck {
        session: session.clone(),
        cursor: taken.cursor.clone(),
    };
    let _told_again = daemon.ask(ack).await;
    true
}
