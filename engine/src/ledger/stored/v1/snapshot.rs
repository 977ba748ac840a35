//! The stored form of the whole state and its stamps. It is written and read
//! row by row, since a full copy would be as large as the state itself.
//!
//! The format is a map of numbered sections. Unknown sections are skipped.

use std::collections::BTreeMap;

use minicbor::decode::Error as DecodeError;
use minicbor::{Decode, Decoder, Encode, Encoder};
use touchmark_proto::{RelPath, SessionId};

use super::{
    Command, Edit, EndedEdit, Knowledge, LostVersion, Names, PastCommand, Path, PathState, Program,
    SaveReport, Session, SessionMemory, Stamp,
};
use crate::by_name::ByName;
use crate::ledger::holdings::Holdings;
use crate::ledger::stored::Saved;
use crate::ledger::stored::mirror::{List, Mirror, Rare};
use crate::ledger::{names, state};
use crate::{Files, State};

/// The number of the section with a [`Head`].
const HEAD: u8 = 0;
/// The number of the section with `[path, PathState, Stamp]` for every tracked
/// path, in their order.
const PATHS: u8 = 1;
/// The number of the section with `[session, SessionHead, [[path, Knowledge],
/// ...]]` for every session.
const SESSIONS: u8 = 2;
const SECTIONS: u64 = 3;

/// The state without its paths and sessions.
#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::ledger::stored) struct Head {
    #[n(0)]
    pub(in crate::ledger::stored) epoch: u64,
    #[n(1)]
    pub(in crate::ledger::stored) after_loss: bool,
    #[n(2)]
    pub(in crate::ledger::stored) n: u64,
    #[n(3)]
    pub(in crate::ledger::stored) time: u64,
    #[n(4)]
    pub(in crate::ledger::stored) edits: List<(u64, Edit)>,
    #[n(5)]
    pub(in crate::ledger::stored) ended: List<EndedEdit>,
    #[n(6)]
    pub(in crate::ledger::stored) reports: List<SaveReport>,
    #[n(7)]
    pub(in crate::ledger::stored) edits_begun: u64,
    #[n(8)]
    pub(in crate::ledger::stored) versions_recorded: u64,
    #[n(9)]
    pub(in crate::ledger::stored) commands: List<(u64, Command)>,
    #[n(10)]
    pub(in crate::ledger::stored) commands_begun: u64,
    #[n(11)]
    pub(in crate::ledger::stored) checkpoints_created: u64,
    #[n(12)]
    pub(in crate::ledger::stored) calls_recorded: u64,
    #[n(13)]
    pub(in crate::ledger::stored) labels: Rare<List<(String, u64)>>,
    #[n(14)]
    pub(in crate::ledger::stored) names: Option<Names>,
    #[n(15)]
    pub(in crate::ledger::stored) past_commands: Rare<List<PastCommand>>,
}

/// A session without what it has seen of each file.
#[derive(Debug, PartialEq, Encode, Decode)]
pub(in crate::ledger::stored) struct SessionHead {
    #[n(0)]
    pub(in crate::ledger::stored) agent: Option<Program>,
    #[n(1)]
    pub(in crate::ledger::stored) parent: Option<Session>,
    #[n(2)]
    pub(in crate::ledger::stored) pid: Option<u32>,
    #[n(3)]
    pub(in crate::ledger::stored) opened_at: u64,
    #[n(4)]
    pub(in crate::ledger::stored) last_active: u64,
    #[n(5)]
    pub(in crate::ledger::stored) open: bool,
    #[n(6)]
    pub(in crate::ledger::stored) reads: u64,
    #[n(7)]
    pub(in crate::ledger::stored) edits: u64,
    #[n(8)]
    pub(in crate::ledger::stored) pending: List<Path>,
    #[n(9)]
    pub(in crate::ledger::stored) lost: Rare<List<LostVersion>>,
    #[n(10)]
    pub(in crate::ledger::stored) reset_told: bool,
    #[n(11)]
    pub(in crate::ledger::stored) memory: SessionMemory,
    #[n(12)]
    pub(in crate::ledger::stored) label: Option<String>,
}

impl From<&State> for Head {
    fn from(state: &State) -> Self {
        let State {
            epoch,
            after_loss,
            n,
            time,
            paths: _,
            sessions: _,
            edits,
            ended,
            reports,
            edits_begun,
            versions_recorded,
            commands,
            commands_begun,
            checkpoints_created,
            calls_recorded,
            labels,
            names,
            past_commands,
        } = state;
        Self {
            epoch: *epoch,
            after_loss: *after_loss,
            n: *n,
            time: *time,
            edits: Mirror::of(edits.clone()),
            ended: Mirror::of(ended.clone()),
            reports: Mirror::of(reports.clone()),
            edits_begun: *edits_begun,
            versions_recorded: *versions_recorded,
            commands: Mirror::of(commands.clone()),
            commands_begun: *commands_begun,
            checkpoints_created: *checkpoints_created,
            calls_recorded: *calls_recorded,
            labels: Mirror::of(labels.clone()),
            // Written even if no file has several names now: names that have
            // parted keep their common history (FILE-2).
            names: (*names != names::Names::default()).then(|| Mirror::of(names.clone())),
            past_commands: Mirror::of(past_commands.clone()),
        }
    }
}

impl Head {
    pub(in crate::ledger::stored) fn state(
        self,
        paths: ByName<Box<state::PathState>>,
        sessions: BTreeMap<SessionId, state::Session>,
    ) -> State {
        State {
            epoch: self.epoch,
            after_loss: self.after_loss,
            n: self.n,
            time: self.time,
            paths,
            sessions,
            edits: self.edits.back(),
            ended: self.ended.back(),
            reports: self.reports.back(),
            edits_begun: self.edits_begun,
            versions_recorded: self.versions_recorded,
            commands: self.commands.back(),
            commands_begun: self.commands_begun,
            checkpoints_created: self.checkpoints_created,
            calls_recorded: self.calls_recorded,
            labels: self.labels.back(),
            names: self.names.map(Mirror::back).unwrap_or_default(),
            past_commands: self.past_commands.back(),
        }
    }
}

impl From<&state::Session> for SessionHead {
    fn from(session: &state::Session) -> Self {
        let state::Session {
            agent,
            parent,
            pid,
            opened_at,
            last_active,
            open,
            reads,
            edits,
            files: _,
            pending,
            lost,
            reset_told,
            memory,
            label,
        } = session;
        Self {
            agent: Mirror::of(agent.clone()),
            parent: Mirror::of(parent.clone()),
            pid: *pid,
            opened_at: *opened_at,
            last_active: *last_active,
            open: *open,
            reads: *reads,
            edits: *edits,
            pending: Mirror::of(pending.clone()),
            lost: Mirror::of(lost.clone()),
            reset_told: *reset_told,
            memory: Mirror::of(memory.clone()),
            label: label.clone(),
        }
    }
}

impl SessionHead {
    pub(in crate::ledger::stored) fn session(self, files: Holdings) -> state::Session {
        state::Session {
            agent: self.agent.back(),
            parent: self.parent.back(),
            pid: self.pid,
            opened_at: self.opened_at,
            last_active: self.last_active,
            open: self.open,
            reads: self.reads,
            edits: self.edits,
            files,
            pending: self.pending.back(),
            lost: self.lost.back(),
            reset_told: self.reset_told,
            memory: self.memory.back(),
            label: self.label,
        }
    }
}

type Written = Result<(), minicbor::encode::Error<std::convert::Infallible>>;

pub(in crate::ledger::stored) fn encode(
    state: &State,
    stamps: &Files,
    to: &mut Encoder<&mut Vec<u8>>,
) -> Written {
    to.map(SECTIONS)?;
    to.u8(HEAD)?.encode(Head::from(state))?;
    to.u8(PATHS)?.array(state.paths.len() as u64)?;
    for (path, kept) in state.paths.iter() {
        let stamp: Option<Stamp> = Mirror::of(stamps.of(path));
        to.array(3)?
            .encode(Path::of(path.clone()))?
            .encode(PathState::of(kept.clone()))?
            .encode(stamp)?;
    }
    to.u8(SESSIONS)?.array(state.sessions.len() as u64)?;
    for (id, session) in &state.sessions {
        to.array(3)?
            .encode(Session::of(id.clone()))?
            .encode(SessionHead::from(session))?
            .array(session.files.len() as u64)?;
        for (path, knowledge) in session.files.iter() {
            to.array(2)?
                .encode(Path::of(path.clone()))?
                .encode(Knowledge::of(knowledge.into_owned()))?;
        }
    }
    Ok(())
}

pub(in crate::ledger::stored) fn decode(from: &mut Decoder<'_>) -> Result<Saved, DecodeError> {
    let mut head: Option<Head> = None;
    let mut paths = ByName::default();
    let mut stamps = Files::default();
    let mut sessions = BTreeMap::new();
    for _ in 0..length(from.map()?)? {
        match from.u8()? {
            HEAD => head = Some(from.decode()?),
            PATHS => rows(from, |row| {
                let path: Path = row.decode()?;
                let kept: PathState = row.decode()?;
                let stamp: Option<Stamp> = row.decode()?;
                let path: RelPath = path.back();
                if let Some(stamp) = stamp {
                    stamps.insert(path.clone(), stamp.back());
                }
                paths.insert(path, kept.back());
                Ok(3)
            })?,
            SESSIONS => rows(from, |row| {
                let id: Session = row.decode()?;
                let head: SessionHead = row.decode()?;
                let mut files = Holdings::default();
                rows(row, |row| {
                    let path: Path = row.decode()?;
                    let knowledge: Knowledge = row.decode()?;
                    let path = path.back();
                    // Each path is allocated once, even if many sessions track
                    // it.
                    let known = paths.get_key_value(&path).map(|(known, _)| known.clone());
                    files.insert(known.unwrap_or(path), knowledge.back());
                    Ok(2)
                })?;
                sessions.insert(id.back(), head.session(files));
                Ok(3)
            })?,
            _ => from.skip()?,
        }
    }
    let head = head.ok_or_else(|| DecodeError::message("it has no head"))?;
    let state = head.state(paths, sessions);
    Ok(Saved { state, stamps })
}

/// Reads every row of a list. `take` returns the number of columns it has read.
/// Further columns are skipped.
fn rows(
    from: &mut Decoder<'_>,
    mut take: impl FnMut(&mut Decoder<'_>) -> Result<u64, DecodeError>,
) -> Result<(), DecodeError> {
    for _ in 0..length(from.array()?)? {
        let columns = length(from.array()?)?;
        for _ in take(from)?..columns {
            from.skip()?;
        }
    }
    Ok(())
}

fn length(length: Option<u64>) -> Result<u64, DecodeError> {
    length.ok_or_else(|| DecodeError::message("a list without a length"))
}
