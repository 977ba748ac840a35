//! A write that creates a file again which others removed. Its session is denied
//! once a file, also if it was told of the removal (HOOK-4).

use touchmark_engine::{Fact, Refusal};
use touchmark_proto::{AuthorKind, ClientPath, Error, ErrorCode, ErrorData, SessionId, State};

use super::super::daemon_handle::DaemonHandle;
use super::super::happened::Verdict;
use super::super::notice;
use super::Outcome;

/// Denies a call that creates one of these files again, if its session has seen
/// the file and others have removed or moved it since. `None` if the call may
/// run.
pub(super) async fn created_again(
    daemon: &DaemonHandle,
    session: &SessionId,
    absent: impl Iterator<Item = &ClientPath>,
) -> Option<Outcome> {
    for place in absent {
        let Some(file) = daemon.status(session, place).await else {
            continue;
        };
        let authors = file.changed_by.unwrap_or_default();
        // A removal during the session's own command is the command's.
        let by_others = authors
            .iter()
            .any(|author| author.kind != AuthorKind::Agent || author.session.is_some());
        if file.state != State::Deleted || !by_others {
            continue;
        }
        let path = file.path;
        if !daemon.memory.warns_of_removal(session, &path) {
            continue;
        }
        let gone = path.clone();
        let look = daemon
            .cx
            .inside
            .look(move |state| state.where_it_went(&gone));
        let error = Error::new(ErrorCode::Stale, "").with(ErrorData {
            path: Some(path.clone()),
            cause: look.await,
            changed_by: Some(authors),
            since: file.since,
            ..ErrorData::default()
        });
        daemon.cx.inside.record(vec![Fact::Refused {
            session: session.clone(),
            path: Some(path),
            cause: Refusal::Stale,
        }]);
        let ack = super::said(daemon, session, place.clone()).await;
        return Some(Outcome {
            verdict: Verdict::Deny(notice::refusal(&error, None)?),
            ack,
            undo: Vec::new(),
        });
    }
    None
}
