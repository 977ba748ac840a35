//! Runs in which every step comes to rest before the next: the model says
//! exactly what each must bring about.

mod answers;
mod corrections;
mod edits;
mod facts;
mod listing;

use std::collections::{BTreeMap, BTreeSet};

use touchmark_engine::{Fact, VersionFact};
use touchmark_proto::edits::{EditCommitted, Outcome as Fate};
use touchmark_proto::events::EditPhase;
use touchmark_proto::{
    Author, Change, ErrorCode, Evidence, Hash, HashOrAbsent, Millis, Reply, Request, VersionKind,
};

use crate::asks;
use crate::audit::Audit;
use crate::chaos::replay;
use crate::content::{content, hash, lines};
use crate::model::{Attributed, Copy, Edit, EditFile, Listing, Model, Report, bits, check_refusal};
use crate::op::{ALL_FILES, Ask, Named, Op, Path, Range, SESSIONS};
use crate::script::Script;
use crate::world::{Asked, Outcome, Seen, World};

type Check = Result<(), String>;

fn path_of(path: &touchmark_proto::RelPath) -> Option<Path> {
    let name = path.to_string_lossy();
    ALL_FILES.iter().copied().find(|known| *known == name)
}

/// Corrections that a step must or may bring about: by the fact corrected.
#[derive(Default)]
struct Corrections(BTreeMap<u64, (Author, Evidence, bool)>);

pub struct Eager {
    world: World,
    audit: Audit,
    model: Model,
    /// Told, but not yet acknowledged: by session.
    unacked: BTreeMap<usize, Vec<Told>>,
    corrections: Corrections,
    /// Paths for which this step has claimed a write that nobody saw.
    unobserved: BTreeSet<Path>,
    /// New names of tracked files that are not settled yet: from where, and
    /// who moved them.
    copies: BTreeMap<Path, (Path, Attributed)>,
    /// What was tracked before this step.
    held: BTreeSet<Path>,
    /// Declared contents arrive there in this step: what they begin with is
    /// their writer's (ATTR-5).
    arriving: BTreeSet<Path>,
}

type Told = (BTreeMap<Path, u64>, BTreeSet<(Path, u64)>);

pub fn run(script: &Script) -> Result<u64, (usize, String)> {
    let mut eager = Eager {
        world: World::new(script.tick, &script.initial),
        audit: Audit::default(),
        model: Model::default(),
        unacked: BTreeMap::new(),
        corrections: Corrections::default(),
        unobserved: BTreeSet::new(),
        copies: BTreeMap::new(),
        held: BTreeSet::new(),
        arriving: BTreeSet::new(),
    };
    for (index, op) in script.ops.iter().enumerate() {
        eager.step(op).map_err(|why| (index, why))?;
        replay(&eager.world).map_err(|why| (index, why))?;
    }
    Ok(eager.world.steps)
}

impl Eager {
    fn on_disk(&self) -> BTreeMap<Path, Option<Hash>> {
        ALL_FILES
            .iter()
            .map(|path| (*path, self.world.hash_of(path)))
            .collect()
    }

    fn now(&self, path: &str) -> Option<Hash> {
        self.world.hash_of(path)
    }

    fn lines(&self, path: &str) -> u32 {
        self.world.disk.bytes(path).map_or(0, |bytes| lines(&bytes))
    }

    fn tracked(&self, path: Path) -> bool {
        self.model.copies.keys().any(|(_, held)| *held == path)
            || self
                .model
                .edits
                .iter()
                .any(|edit| edit.files.iter().any(|f| f.path == path && !f.done))
    }

    fn step(&mut self, op: &Op) -> Check {
        let before = self.on_disk();
        let up = self.world.engine.is_some();
        self.world.step(op);
        self.world.drain();
        // A closed change is read within 20 ms even if nobody asks (SYNC-6).
        for _ in 0..if matches!(op, Op::Ask(_)) { 0 } else { 2 } {
            self.world.pass(20);
            self.world.drain();
        }
        self.audit.look(&mut self.world)?;
        let seen = std::mem::take(&mut self.world.seen);
        if self.world.engine.is_none() {
            return Ok(());
        }
        self.held = ALL_FILES
            .iter()
            .copied()
            .filter(|path| self.tracked(path))
            .collect();
        self.corrections.0.clear();
        self.unobserved.clear();
        self.arriving = seen
            .iter()
            .filter_map(|one| match one {
                Seen::Fact(record) => match &record.fact {
                    Fact::Version(version)
                        if version.evidence == Evidence::Declared
                            && (version.amends.is_none() || version.late) =>
                    {
                        path_of(&version.path)
                    }
                    _ => None,
                },
                _ => None,
            })
            .collect();
        let expected = self.expected_versions(op, &before, up);
        self.expected_corrections(&seen);
        self.facts(op, &seen, expected)?;
        for one in &seen {
            if let Seen::Answered { asked, outcome, .. } = one {
                self.answer(asked, outcome)?;
            }
        }
        self.lapse();
        Ok(())
    }

    /// What the disk's change must be recorded as.
    fn expected_versions(
        &mut self,
        op: &Op,
        before: &BTreeMap<Path, Option<Hash>>,
        up: bool,
    ) -> BTreeMap<Path, Attributed> {
        let mut expected = BTreeMap::new();
        let gap = !up;
        for path in ALL_FILES.iter().copied() {
            let now = self.now(path);
            if (now == before[path] && !gap) || !self.tracked(path) {
                continue;
            }
            let time = self.world.now;
            let latest = self.model.logs.get(path).and_then(|log| log.latest);
            if now == latest {
                if let Some(log) = self.model.logs.get_mut(path)
                    && log.absence.drain(..).any(|(_, evidence)| {
                        !matches!(evidence, Evidence::Unmarked | Evidence::Gap)
                    })
                {
                    // A declared or marked deletion that nobody looked at.
                    self.model.ignored.insert(path);
                }
                continue;
            }
            let by = self.model.attribute(path, time, now, gap, true);
            let log = self.model.logs.entry(path).or_default();
            if now.is_none() {
                log.absence.push((by.author.clone(), by.evidence));
            } else {
                if log
                    .absence
                    .iter()
                    .any(|(_, evidence)| !matches!(evidence, Evidence::Unmarked | Evidence::Gap))
                {
                    self.model.ignored.insert(path);
                }
                expected.insert(path, by);
            }
        }
        // A new name for a tracked file is tracked from then on, once it has
        // settled there (ATTR-12).
        let before_moves = self.copies.clone();
        for path in ALL_FILES {
            if self.now(path).is_none() {
                self.copies.remove(path);
            }
        }
        if up {
            for (from, to) in self.moves(op, before) {
                let source = before_moves.get(from).map(|(source, _)| *source);
                let source = source.or_else(|| self.tracked(from).then_some(from));
                if let Some(source) = source
                    && !self.tracked(to)
                {
                    let by = self
                        .model
                        .attribute(to, self.world.now, self.now(to), false, true);
                    self.copies.insert(to, (source, by));
                }
            }
        }
        expected
    }

    fn moves(&self, op: &Op, before: &BTreeMap<Path, Option<Hash>>) -> Vec<(Path, Path)> {
        match op {
            Op::Rename { from, to } if from != to => {
                if before[from].is_some() && self.now(from).is_none() {
                    return vec![(from, to)];
                }
                Vec::new()
            }
            Op::RenameDir { from, to } => ALL_FILES
                .iter()
                .copied()
                .filter(|path| before[path].is_some() && self.now(path).is_none())
                .filter_map(|path| {
                    let rest = path.strip_prefix(from)?.strip_prefix('/')?;
                    let name = format!("{to}/{rest}");
                    let new = ALL_FILES.iter().copied().find(|known| *known == name)?;
                    Some((path, new))
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Edits end at their deadline.
    fn lapse(&mut self) {
        let now = self.world.now;

        for edit in &mut self.model.edits {
            if edit.deadline > now {
                continue;
            }
            for file in edit.files.iter_mut().filter(|file| !file.done) {
                file.done = true;
                if !file.marked.is_empty()
                    && let Some(copy) = self.model.copies.get_mut(&(edit.session, file.path))
                {
                    copy.marked = false;
                    copy.blurred = true;
                    let log = self.model.logs.get(file.path);
                    let claimed = log.into_iter().flat_map(|log| &log.versions);
                    copy.perhaps.extend(
                        claimed
                            .filter(|version| file.marked.contains(&version.n))
                            .filter_map(|version| version.hash),
                    );
                }
            }
        }
    }

    /// The session holds the path from now on.
    fn track(&mut self, who: usize, path: Path) {
        let now = self.now(path);
        if !self.tracked(path) {
            let log = self.model.logs.entry(path).or_default();
            log.latest = now;
            log.versions.clear();
            log.newest = 0;
            log.newest_for.clear();
            log.absence.clear();
            log.resumed = true;
        }
        let baseline = now;
        let copy = self
            .model
            .copies
            .entry((who, path))
            .or_insert_with(|| Copy {
                baseline,
                ..Copy::default()
            });
        copy.unnamed = false;
        // An absence that is not recorded yet is no baseline for the engine.
        let unrecorded = now.is_none()
            && self
                .model
                .logs
                .get(path)
                .is_some_and(|log| log.latest.is_some());
        copy.told_absence |= unrecorded;
        copy.loose_baseline |= unrecorded;
        self.copies.remove(path);
    }
}
