//! The handlers: what each request does. One file for each family of methods.

mod audit;
mod calls;
mod carry;
mod changes;

mod checkpoints;
mod claims;
mod command_files;
mod commands;
mod commit;
mod edit_ends;
mod editors;
mod edits;
mod files;
mod models;
mod reads;
mod retention;
mod sessions;
mod snapshots;
mod stats;
mod steps;
mod tasks;
mod writes;

use touchmark_proto::daemon::Program;
use touchmark_proto::events::{Happening, SessionPhase};
use touchmark_proto::{Error, ErrorCode, ErrorData, RelPath, SessionId};

use crate::base::Base;
use crate::disk::Found;
use crate::ledger::record::Fact;
use crate::requests::pending::Pending;
use crate::text::shown::show;
use crate::tracker::live::Obstacle;
use crate::view::View;

impl Base {
    /// Opens a session, if it is not open, because something is to be recorded
    /// for it (SES-1).
    pub(crate) fn ensure_session(&mut self, session: &SessionId) {
        let known = self.state.sessions.get(session);
        if !known.is_some_and(|known| known.open && known.label.is_some()) {
            self.open_session(session, None, None, None);
        }
    }

    /// Records that a session is open, and gives it a label if it has none.
    fn open_session(
        &mut self,
        session: &SessionId,
        agent: Option<&Program>,
        parent: Option<&SessionId>,
        pid: Option<u32>,
    ) {
        self.record(Fact::SessionOpened {
            session: session.clone(),
            agent: agent.cloned(),
            parent: parent.cloned(),
            pid,
        });
        let known = self.state.sessions.get(session);
        if known.is_some_and(|known| known.label.is_none()) {
            let program = known.and_then(|known| known.agent.as_ref());
            let program = program.map(|program| program.name.as_str());
            let label = self.state.next_label(program);
            self.record(Fact::Labelled {
                session: session.clone(),
                label,
            });
        }
        self.publish_session(session, SessionPhase::Opened);
    }

    /// Publishes that a session was opened or closed.
    fn publish_session(&mut self, session: &SessionId, phase: SessionPhase) {
        let session = session.clone();
        let happening = Happening::Session {
            session,
            phase,
            label: None,
        };
        self.publish(happening, None);
    }

    /// Begins a path's log with the content that was just read, if the path has
    /// no log yet.
    pub(crate) fn begin_log(&mut self, path: &RelPath, pending: &Pending) {
        if self.state.paths.contains_key(path) {
            return;
        }
        let held = self
            .view()
            .current(path, pending.reads.found.get(path))
            .held;
        self.turn().watch(path);
        self.record(Fact::Baseline {
            // The tracker has stored the watched name already; its allocation
            // is shared.
            path: self.tracker.watched(path).unwrap_or(path).clone(),
            held,
            untracked: false,
            real: self.tracker.real_of(path),
        });
        // Everything written until now is in the baseline.
        if let Some(live) = self.tracker.live_if_any(path) {
            live.hints.begin();
        }
        // The name has its own log now, so it is no pending copy any more.
        self.tracker.settled(path);
        let found = pending.reads.found.get(path).map(|outcome| &outcome.found);
        if let Some(found) = found {
            self.tracker.note_inode(path, found);
        }
        if let Some(Found::File(content)) = found {
            self.tracker.live_mut(path).seen.stamp = Some(content.stamp);
            self.note_stamp(path, *content);
        }
        // A file that cannot be read is not an absent file (LOSS-4).
        if let Some(obstacle) = found.and_then(Obstacle::of) {
            let unstable = obstacle == Obstacle::Unstable;
            if matches!(obstacle, Obstacle::Unreadable(_)) {
                self.tracker.cannot_read(path);
            }
            self.tracker.live_mut(path).seen.obstacle = Some(obstacle);
            if unstable {
                self.turn().retry(path);
            }
        }
    }
}

impl View<'_> {
    /// Refuses a path that cannot be used: it leads out of the workspace, is not
    /// a regular file, or cannot be read.
    pub(crate) fn usable(&self, path: &RelPath, pending: &Pending) -> Result<(), Error> {
        let obstacle = match self.state.paths.contains_key(path) {
            true => self
                .tracker
                .live(path)
                .and_then(|live| live.seen.obstacle.clone()),
            false => pending
                .reads
                .found
                .get(path)
                .and_then(|outcome| Obstacle::of(&outcome.found)),
        };
        let (code, message, file_type) = match obstacle {
            None | Some(Obstacle::Unstable) => return Ok(()),
            Some(Obstacle::Unreadable(cause)) => (
                ErrorCode::Unreadable,
                format!("{} cannot be read: {cause}", show(path)),
                None,
            ),
            Some(Obstacle::NotAFile(file_type)) => (
                ErrorCode::NotAFile,
                format!("{} is a {file_type}", show(path)),
                Some(file_type.to_owned()),
            ),
            Some(Obstacle::Outside) => (
                ErrorCode::OutsideWorkspace,
                format!("{} is a link that leads out of the workspace", show(path)),
                None,
            ),
        };
        Err(Error::new(code, message).with(ErrorData {
            path: Some(path.clone()),
            file_type,
            ..ErrorData::default()
        }))
    }
}

/// Returns the number of rows that earlier answers have listed, from the cursor
/// of a list by number; 0 without a cursor.
pub(crate) fn number_cursor(cursor: Option<&str>) -> Result<u64, Error> {
    cursor.map_or(Ok(0), |text| {
        text.parse().map_err(|_| crate::cursor::wrong())
    })
}

/// Returns the path in the cursor of a list by path.
pub(crate) fn path_cursor(cursor: Option<&str>) -> Result<Option<RelPath>, Error> {
    cursor.map(crate::cursor::read_path).transpose()
}
