//! Limits on what clients can accumulate (LIM-1): sessions, tracked paths,
//! files in open edits and command windows.

use touchmark_proto::ids::MAX_ID_BYTES;
use touchmark_proto::{Error, ErrorCode, ErrorData, Request, SessionId};

use crate::requests::pending::Pending;
use crate::requests::table::{Use, row, session};
use crate::view::View;

impl View<'_> {
    /// Refuses a request that would open a session or track a path beyond the
    /// limits.
    pub(crate) fn within_limits(&self, pending: &Pending, ask: &Request) -> Result<(), Error> {
        let sessions = &self.state.sessions;
        let (row, session) = (row(ask), session(ask));
        let unknown = session.is_some_and(|named| !sessions.contains_key(named));
        if row.naming.opens() && unknown && sessions.len() >= self.config.sessions {
            let most = self.config.sessions;
            return Err(too_many(most, format!("{most} sessions are known already"))
                .hint("forget some: `session/close` with `forget`"));
        }
        let paths = &self.state.paths;
        let tracks = row.paths == Use::Tracks
            && pending
                .reads
                .borrowed
                .iter()
                .any(|path| !paths.contains_key(path));
        if tracks && paths.len() >= self.config.tracked {
            let own = session.and_then(|named| sessions.get(named));
            let own = own.map_or(0, |session| session.files.len());
            if own.saturating_add(pending.reads.borrowed.len()) > self.config.own_files {
                let most = self.config.tracked;
                return Err(too_many(most, format!("{most} paths are tracked already"))
                    .hint("untrack some, or forget sessions that have ended"));
            }
        }
        Ok(())
    }

    /// Refuses an edit with this number of additional files if it would exceed
    /// the limits.
    pub(crate) fn may_mark(&self, session: &SessionId, files: usize) -> Result<(), Error> {
        let (mut open, mut own) = (files, files);
        for edit in self.state.edits.values() {
            open += edit.files.len();
            if edit.fact.session == *session {
                own += edit.files.len();
            }
        }
        let most = self.config.marked;
        if open <= most || own <= self.config.own_files {
            return Ok(());
        }
        let message = format!("at most {most} files may be in open edits, this would be {open}");
        Err(too_many(most, message).hint("commit or abort some"))
    }

    /// Refuses one more command window of a session if it would exceed the
    /// limits.
    pub(crate) fn may_open_window(&self, session: &SessionId) -> Result<(), Error> {
        let open = self.state.commands.values();
        let own = open
            .filter(|command| command.fact.session == *session)
            .count();
        let most = self.config.windows;
        if self.state.commands.len() < most || own < self.config.own_windows {
            return Ok(());
        }
        let message = format!("{most} command windows are open already");
        let hint = "end some with `command/end`, or bind them to their connection";
        Err(too_many(most, message).hint(hint))
    }
}

/// Refuses texts of which one is longer than a text chosen by a client may be.
/// Paths and session ids have their own limits.
pub(crate) fn not_too_long(texts: &[(&str, Option<&String>)]) -> Result<(), Error> {
    let long = |text: &String| text.len() > MAX_ID_BYTES;
    match texts.iter().find(|(_, text)| text.is_some_and(long)) {
        Some((name, _)) => Err(Error::invalid(format!(
            "{name} has more than {MAX_ID_BYTES} bytes"
        ))),
        None => Ok(()),
    }
}

pub(crate) fn too_many(most: usize, message: String) -> Error {
    Error::new(ErrorCode::TooLarge, message).with(ErrorData {
        limit: Some(most as u64),
        ..ErrorData::default()
    })
}
