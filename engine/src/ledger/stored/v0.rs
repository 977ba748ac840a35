//! The format from before there were version numbers: the engine's own types in
//! bincode. It is read and never written.
//!
//! Every type of [`v1`](super::v1) began as a copy of one of those types, with
//! its fields in the same order. So serde reads the old bytes into the `v1`
//! types and skips the fields that were added since. This module has its own
//! types only where the layout differs.

use serde::Deserialize;
use touchmark_proto::codec::frames;
use touchmark_proto::{Error, ErrorCode};

use super::mirror::{List, Mirror, Rare};
use super::v1::{
    Command, Edit, EndedEdit, Fact, Head, Knowledge, LostVersion, Path, PathState, Program,
    SaveReport, Session as Id, SessionHead, SessionMemory,
};
use crate::ledger::stored::Saved;

/// The first byte of a snapshot.
const LAYOUT: u8 = 2;

/// Inode, size and two times. These stamps have no device, so they prove no
/// content any more (FILE-5).
type Stamp = (u64, u64, i64, i64);

/// Decodes a fact.
pub(super) fn fact(bytes: &[u8]) -> Result<Fact, Error> {
    frames::decode(bytes)
}

/// Decodes a snapshot.
pub(super) fn snapshot(bytes: &[u8]) -> Result<Saved, Error> {
    if bytes.first() != Some(&LAYOUT) {
        return Err(Error::new(ErrorCode::InvalidRequest, "no such layout"));
    }
    let (_, state, _): (u8, State, Vec<Option<Stamp>>) = frames::decode_trusted(bytes)?;
    let sessions = state.sessions.0.into_iter();
    let sessions = sessions.map(|(id, session)| (id.back(), session.back()));
    let head = Head {
        epoch: state.epoch,
        after_loss: state.after_loss,
        n: state.n,
        time: state.time,
        edits: state.edits,
        ended: state.ended,
        reports: state.reports,
        edits_begun: state.edits_begun,
        versions_recorded: state.versions_recorded,
        commands: state.commands,
        commands_begun: state.commands_begun,
        checkpoints_created: state.checkpoints_created,
        calls_recorded: state.calls_recorded,
        labels: Rare::default(),
        names: None,
        past_commands: Rare::default(),
    };
    let paths = state.paths.0.into_iter();
    let paths = paths
        .map(|(path, kept)| (path.back(), kept.back()))
        .collect();
    Ok(head.with(paths, sessions.collect()).into())
}

#[derive(Deserialize)]
struct State {
    epoch: u64,
    after_loss: bool,
    n: u64,
    time: u64,
    paths: List<(Path, PathState)>,
    sessions: List<(Id, Session)>,
    edits: List<(u64, Edit)>,
    ended: List<EndedEdit>,
    reports: List<SaveReport>,
    edits_begun: u64,
    versions_recorded: u64,
    commands: List<(u64, Command)>,
    commands_begun: u64,
    checkpoints_created: u64,
    calls_recorded: u64,
}

#[derive(Deserialize)]
struct Session {
    agent: Option<Program>,
    parent: Option<Id>,
    pid: Option<u32>,
    opened_at: u64,
    last_active: u64,
    open: bool,
    reads: u64,
    edits: u64,
    files: List<(Path, Knowledge)>,
    pending: List<Path>,
    lost: Rare<List<LostVersion>>,
    reset_told: bool,
    memory: SessionMemory,
}

impl Session {
    fn back(self) -> crate::ledger::state::Session {
        let head = SessionHead {
            agent: self.agent,
            parent: self.parent,
            pid: self.pid,
            opened_at: self.opened_at,
            last_active: self.last_active,
            open: self.open,
            reads: self.reads,
            edits: self.edits,
            pending: self.pending,
            lost: self.lost,
            reset_told: self.reset_told,
            memory: self.memory,
            label: None,
        };
        let files = self.files.0.into_iter();
        head.with(
            files
                .map(|(path, known)| (path.back(), known.back()))
                .collect(),
        )
    }
}
