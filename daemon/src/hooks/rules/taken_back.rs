//! Edits of a session that another author took back, and put back later. A
//! session that was told the first is told the second (UNDO-5).

use touchmark_proto::changes::ModifiedTaken;
use touchmark_proto::files::FileHistory;
use touchmark_proto::{ClientPath, SessionId, State};

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
