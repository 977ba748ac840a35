//! Checks what must be true however steps interleave. Every fact and every
//! answer is compared with the disk's true past and with what clients really
//! declared. Written from docs/semantics.md alone.

macro_rules! ensure {
    ($rule:expr, $condition:expr, $($text:tt)*) => {
        if !$condition {
            return Err(format!("{}: {}", $rule, format!($($text)*)));
        }
    };
}

mod answers;
mod facts;
mod listing;
mod questions;

use std::collections::{BTreeMap, BTreeSet};

use touchmark_engine::{Engine, Fact, Record, VersionFact};
use touchmark_proto::events::EditPhase;
use touchmark_proto::{
    Author, AuthorKind, Change, Error, ErrorCode, Evidence, FileState, Hash, HashOrAbsent, Millis,
    RelPath, Reply, SessionId, State, VersionKind,
};

use crate::asks;
use crate::disk::At;
use crate::op::{ALL_FILES, Ask, Named};
use crate::world::{Asked, Outcome, Seen, World};

type Key = (SessionId, String);
type Unacked = (String, BTreeMap<String, Told>);

struct OpenFile {
    expect: Option<HashOrAbsent>,
    began: Option<Hash>,
    matched: bool,
    ended: bool,
}

struct OpenEdit {
    session: SessionId,
    files: BTreeMap<String, Vec<OpenFile>>,
    deadline: Millis,
    one_shot: bool,
    call: bool,
    bound: bool,
    end_asked: bool,
    step_ended: u64,
}

struct Known {
    hash: Option<Hash>,
    author: Author,
    evidence: Evidence,
    path: String,
    edit: Option<u64>,
}

/// What was last reported to a session about a path.
#[derive(Clone)]
struct Told {
    /// The number of the newest fact about the path at that time.
    newest: u64,
    /// The moment of the request; the next field is the moment of the answer.
    asked: u64,
    moment: u64,
    contents: Vec<At>,
    /// The writer of the save that was in progress and on disk.
    save: Option<usize>,
    /// The content was not recorded when it was reported.
    writing: bool,
}

#[derive(Default)]
pub struct Audit {
    edits: BTreeMap<u64, OpenEdit>,
    versions: BTreeMap<u64, Known>,
    latest: BTreeMap<String, Option<Hash>>,
    newest: BTreeMap<String, u64>,
    /// Paths whose newest fact is a claim that was never read.
    unobserved: BTreeSet<String>,
    claims: BTreeMap<Key, BTreeSet<HashOrAbsent>>,
    saves: BTreeMap<String, BTreeSet<Hash>>,
    maybe_seen: BTreeMap<Key, BTreeSet<Hash>>,
    /// The files of which a session has read a content that is not known.
    read_unknown: BTreeSet<Key>,
    /// The last content seen, if it is certain: after a whole read.
    last: BTreeMap<Key, Hash>,
    told: BTreeMap<Key, Told>,
    /// Sessions and paths with a report about a save in progress, if nothing
    /// was read and no coverage lost since.
    continued: BTreeSet<Key>,
    /// What was reported but not yet acknowledged, by the cursor of each
    /// answer.
    unacked: BTreeMap<SessionId, Vec<Unacked>>,
    gaps: BTreeSet<String>,
    /// Paths that could not be read since coverage was lost.
    unread: BTreeSet<String>,
    /// Reads without an answer: the earliest moment of the disk that each may
    /// be of, and its request.
    read_asked: BTreeMap<Key, Vec<(u64, u64)>>,
    /// Sessions that requested to be closed, or that ended an edit without
    /// naming it.
    closing: BTreeSet<SessionId>,
    /// Paths with a declared version in this step. Contents held back for it
    /// are recorded before it, and were there before other edits began
    /// (ATTR-5).
    arriving: BTreeSet<(String, Option<Hash>)>,
    /// Edits that end at any time during this step.
    ending: BTreeSet<u64>,
    begun_now: BTreeSet<u64>,
    answered_now: BTreeSet<u64>,
    step: u64,
}

type Verdict = Result<(), String>;

fn text(path: &RelPath) -> String {
    path.to_string_lossy()
}

impl Audit {
    /// Processes the effects of the engine since the last look.
    pub fn look(&mut self, world: &mut World) -> Verdict {
        if let Some(failure) = world.failure.take() {
            return Err(failure);
        }
        self.step += 1;
        self.begun_now.clear();
        self.answered_now.clear();
        let seen = std::mem::take(&mut world.seen);
        self.arriving = seen
            .iter()
            .filter_map(|one| match one {
                Seen::Fact(Record {
                    fact: Fact::Version(version),
                    ..
                }) if version.evidence == Evidence::Declared => {
                    Some((text(&version.path), version.held.hash))
                }
                _ => None,
            })
            .collect();
        self.ending = seen
            .iter()
            .filter_map(|one| match one {
                Seen::Fact(Record {
                    fact: Fact::EditEnded { edit, .. },
                    ..
                }) => Some(*edit),
                _ => None,
            })
            .collect();
        for one in &seen {
            match one {
                Seen::Asked(asked) => self.asked(asked),
                Seen::Fact(record) => self.fact(world, record)?,
                Seen::Answered {
                    asked,
                    outcome,
                    moment,
                } => self.answered(world, asked, outcome, *moment)?,
                Seen::Gap(below) => {
                    self.continued.clear();
                    self.gaps.insert(below.clone());
                }
                Seen::Drained => {
                    // After the second loss in a row, the comparison is delayed
                    // unless a request needs it. The gap lasts until then.
                    let reconciling = world.engine.as_ref().is_some_and(Engine::is_reconciling);
                    if world.pending.is_empty() && !reconciling {
                        // Paths that could not be read are still not compared.
                        if !self.gaps.is_empty() {
                            let unread = ALL_FILES
                                .iter()
                                .filter(|path| world.disk.at(path) == At::Unreadable);
                            self.unread.extend(unread.map(|path| (*path).to_owned()));
                        }
                        self.gaps.clear();
                    }
                }
            }
        }
        ensure!(
            "ATTR-9 (no effect without an answer)",
            self.begun_now == self.answered_now,
            "begun {:?}, answered {:?}",
            self.begun_now,
            self.answered_now
        );
        world.seen = seen;
        Ok(())
    }

    /// Returns whether the version's author has declared exactly this content.
    fn is_claimed(&self, version: &VersionFact) -> bool {
        let Some(session) = &version.author.session else {
            return false;
        };
        version.evidence == Evidence::Declared
            && self
                .claims
                .get(&(session.clone(), text(&version.path)))
                .is_some_and(|claims| claims.contains(&version.held.hash.into()))
    }

    /// Returns whether a declared content other than this one comes to the path
    /// in this step.
    fn arrives(&self, path: &str, but: Option<Hash>) -> bool {
        self.arriving
            .iter()
            .any(|(there, hash)| there == path && *hash != but)
    }

    fn in_gap(&self, path: &str) -> bool {
        self.unread.contains(path)
            || self.gaps.iter().any(|below| {
                below.is_empty()
                    || below == path
                    || path
                        .strip_prefix(below.as_str())
                        .is_some_and(|rest| rest.starts_with('/'))
            })
    }

    /// Returns the number of open edits.
    pub fn open_edits(&self) -> usize {
        self.edits
            .values()
            .filter(|edit| edit.files.values().flatten().any(|file| !file.ended))
            .count()
    }

    /// Returns the newest version of a path: content, author, evidence and
    /// edit.
    pub fn newest_on(&self, path: &str) -> Option<(Option<Hash>, &Author, Evidence, Option<u64>)> {
        let newest = self.newest.get(path)?;
        let known = self.versions.get(newest)?;
        Some((known.hash, &known.author, known.evidence, known.edit))
    }
}
