//! The stored form of the whole state and its stamps. It is written and read
//! row by row, since a full copy would be as large as the state itself.
//!
//! The format is a map of numbered sections. Unknown sections are skipped.

use std::collections::BTreeMap;

use minicbor::decode::Error as DecodeError;
use minicbor::{Decoder, Encoder};
use touchmark_proto::{RelPath, SessionId};

use super::{
    Command, CommandFile, Edit, EndedEdit, Knowledge, LostVersion, Names, PastCommand, Path,
    PathState, Program, SaveReport, Session, SessionMemory, Stamp,
};
use crate::by_name::ByName;
use crate::ledger::holdings::Holdings;
use crate::ledger::stored::Saved;
use crate::ledger::stored::mirror::{List, Mirror, Rare, heads};
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

heads! {
    /// The state without its paths and sessions.
    Head = State {
        0 epoch: u64,
        1 after_loss: bool,
        2 n: u64,
        3 time: u64,
        4 edits: List<(u64, Edit)>,
        5 ended: List<EndedEdit>,
        6 reports: List<SaveReport>,
        7 edits_begun: u64,
        8 versions_recorded: u64,
        9 commands: List<(u64, Command)>,
        10 commands_begun: u64,
        11 checkpoints_created: u64,
        12 calls_recorded: u64,
        13 labels: Rare<List<(String, u64)>>,
        14 names: Option<Names>,
        15 past_commands: Rare<List<PastCommand>>,
        16 command_files: Rare<List<(Path, CommandFile)>>,
    } without {
        paths: ByName<Box<state::PathState>>,
        sessions: BTreeMap<SessionId, state::Session>,
    }
    /// A session without what it has seen of each file.
    SessionHead = state::Session {
        0 agent: Option<Program>,
        1 parent: Option<Session>,
        2 pid: Option<u32>,
        3 opened_at: u64,
        4 last_active: u64,
        5 open: bool,
        6 reads: u64,
        7 edits: u64,
        8 pending: List<Path>,
        9 lost: Rare<List<LostVersion>>,
        10 reset_told: bool,
        11 memory: SessionMemory,
        12 label: Option<String>,
    } without { files: Holdings }
}

/// Names are written even if no file has several now: names that have parted
/// keep their common history (FILE-2).
impl Mirror<names::Names> for Option<Names> {
    fn of(value: names::Names) -> Self {
        (value != names::Names::default()).then(|| Mirror::of(value))
    }
    fn back(self) -> names::Names {
        self.map(Mirror::back).unwrap_or_default()
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
                sessions.insert(id.back(), head.with(files));
                Ok(3)
            })?,
            _ => from.skip()?,
        }
    }
    let head = head.ok_or_else(|| DecodeError::message("it has no head"))?;
    let state = head.with(paths, sessions);
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
