//! Runs in which every step comes to rest before the next: the model says
//! exactly what each must bring about.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_engine::{Fact, VersionFact};
use touchmark_proto::edits::{EditCommitted, Outcome as Fate};
use touchmark_proto::events::EditPhase;
use touchmark_proto::{
    Author, Change, ErrorCode, Evidence, Hash, HashOrAbsent, Millis, Reply, Request, VersionKind,
};

use crate::asks;
use crate::audit::Audit;
use crate::chaos::{Script, replay};
use crate::content::{content, hash, lines};
use crate::model::{Attributed, Copy, Edit, EditFile, Listing, Model, Report, bits, check_refusal};
use crate::op::{ALL_FILES, Ask, Named, Op, Path, Range, SESSIONS};
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
}

type Told = (BTreeMap<Path, u64>, BTreeSet<(Path, u64)>);

pub fn run(script: &Script, check_replay: bool) -> Result<u64, (usize, String)> {
    let mut eager = Eager {
        world: World::new(script.tick, &script.initial),
        audit: Audit::default(),
        model: Model::default(),
        unacked: BTreeMap::new(),
        corrections: Corrections::default(),
        unobserved: BTreeSet::new(),
        copies: BTreeMap::new(),
        held: BTreeSet::new(),
    };
    for (index, op) in script.ops.iter().enumerate() {
        eager.step(op).map_err(|why| (index, why))?;
        if check_replay || index % 64 == 0 {
            replay(&eager.world).map_err(|why| (index, why))?;
        }
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
        for path in ALL_FILES {
            if self.now(path).is_none() {
                self.copies.remove(path);
            }
        }
        if up {
            for (from, to) in self.moves(op, before) {
                let source = self.copies.get(from).map(|(source, _)| *source);
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

    fn may(&mut self, n: u64, author: Author, evidence: Evidence, must: bool) {
        self.corrections.0.insert(n, (author, evidence, must));
    }

    /// Corrections that the step's question asks for (ATTR-2, 4, 11, 14).
    fn expected_corrections(&mut self, seen: &[Seen]) {
        for one in seen {
            let Seen::Answered { asked, outcome, .. } = one else {
                continue;
            };
            let ok = matches!(outcome, Outcome::Reply(Ok(_)));
            let who = asked.asking.session;
            let agent = Author::agent(asks::session(who));
            match &asked.request {
                Request::EditorDidSave(saved) if ok => {
                    let Ask::Saved { path, .. } = &asked.asking.ask else {
                        continue;
                    };
                    let time = self.world.now;
                    let found = self.model.logs.get(path).and_then(|log| {
                        log.versions
                            .iter()
                            .rev()
                            .find(|version| version.hash == Some(saved.hash))
                            .filter(|version| time.saturating_sub(version.time) <= 2_000)
                            .cloned()
                    });
                    match found {
                        Some(version)
                            if matches!(
                                version.evidence,
                                Evidence::Unmarked | Evidence::Marked | Evidence::Gap
                            ) =>
                        {
                            let must = version.evidence == Evidence::Unmarked
                                && time.saturating_sub(version.time) < 2_000;
                            self.may(version.n, Author::USER, Evidence::Editor, must);
                            if !must {
                                self.model.ignored.insert(path);
                            }
                        }
                        found => {
                            if !self.tracked(path) {
                                // Whether a report is kept for a path that
                                // nobody tracks is left open.
                                self.model.ignored.insert(path);
                            }
                            self.model.reports.push(Report {
                                path,
                                hash: saved.hash,
                                time,
                                used: false,
                            });
                            if found.is_some() {
                                // Whether the report is used up by a version
                                // that it does not change is left open.
                                self.model.ignored.insert(path);
                            }
                        }
                    }
                }
                Request::EditMark(mark) if ok => {
                    let Ask::Mark { path, .. } = &asked.asking.ask else {
                        continue;
                    };
                    if let Some((n, latest)) = self.late(who, path, mark.expect) {
                        self.may(n, agent, Evidence::Declared, latest);
                    }
                }
                Request::EditBegin(begin) if ok => {
                    if let Ask::Begin { files, .. } = &asked.asking.ask {
                        for ((path, _), file) in files.iter().zip(&begin.files) {
                            if let Some((n, _)) = self.late(who, path, file.expect) {
                                self.may(n, agent.clone(), Evidence::Declared, false);
                                self.model.ignored.insert(path);
                            }
                        }
                    }
                }
                Request::SessionClose(_) if ok => {
                    let numbers: Vec<u64> = self
                        .model
                        .edits
                        .iter()
                        .filter(|edit| edit.session == who)
                        .map(|edit| edit.number)
                        .collect();
                    for number in numbers {
                        self.take_back(number);
                    }
                }
                Request::EditAbort(_) if ok => {
                    if let Some(number) = self.edit_of(asked) {
                        self.take_back(number);
                    }
                }
                Request::EditCommit(commit) if ok => {
                    let Some(number) = self.edit_of(asked) else {
                        continue;
                    };
                    let named: Vec<(Path, Option<HashOrAbsent>)> = commit
                        .files
                        .iter()
                        .filter_map(|file| {
                            let name = String::from_utf8_lossy(file.path.as_bytes()).into_owned();
                            let path = ALL_FILES.iter().copied().find(|known| *known == name)?;
                            Some((path, file.hash))
                        })
                        .collect();
                    for (path, hash) in named {
                        let Some(hash) = hash else { continue };
                        let session = self.session_of(number).unwrap_or(who);
                        let marked = self.marked_by(number, path);
                        for n in marked {
                            let version = self
                                .model
                                .logs
                                .get(path)
                                .and_then(|log| log.versions.iter().find(|v| v.n == n));
                            let Some(version) = version else { continue };
                            if version.evidence != Evidence::Marked
                                || HashOrAbsent::from(version.hash) == hash
                            {
                                continue;
                            }
                            // A prefix is the agent's own partial write; the
                            // model does not know every content's bytes.
                            let sure = version.hash.is_some_and(|h| !is_prefix(h, hash));
                            self.may(n, Author::USER, Evidence::Unmarked, sure);
                        }
                        if let Some((n, _)) = self.late(session, path, Some(hash)) {
                            let agent = Author::agent(asks::session(session));
                            self.may(n, agent, Evidence::Declared, false);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The version that a late declaration speaks for (ATTR-14), and whether
    /// it is the latest.
    fn late(&self, who: usize, path: Path, named: Option<HashOrAbsent>) -> Option<(u64, bool)> {
        let named = named?;
        let log = self.model.logs.get(path)?;
        let newest = log.versions.last().map(|version| version.n);
        let version = log
            .versions
            .iter()
            .rev()
            .find(|version| HashOrAbsent::from(version.hash) == named)?;
        let copy = self.model.copies.get(&(who, path));
        let seen = version
            .hash
            .is_some_and(|hash| copy.is_some_and(|copy| copy.of(hash).is_some()));
        let young = self.world.now.saturating_sub(version.time) < 10_000;
        let open = matches!(version.evidence, Evidence::Unmarked | Evidence::Gap);
        // Whether a content read before this version came is "read" is open.
        (open && young).then_some((version.n, !seen && newest == Some(version.n)))
    }

    fn session_of(&self, number: u64) -> Option<usize> {
        let edit = self.model.edits.iter().find(|edit| edit.number == number)?;
        Some(edit.session)
    }

    fn edit_of(&self, asked: &Asked) -> Option<u64> {
        let (Ask::Commit { slot, .. } | Ask::Abort { slot }) = &asked.asking.ask else {
            return None;
        };
        let edit = self.world.slots.get(slot)?.edit.as_ref()?;
        edit.strip_prefix('e')?.parse().ok()
    }

    fn marked_by(&self, number: u64, path: Path) -> Vec<u64> {
        self.model
            .edits
            .iter()
            .filter(|edit| edit.number == number)
            .flat_map(|edit| &edit.files)
            .filter(|file| file.path == path && !file.done)
            .flat_map(|file| file.marked.clone())
            .collect()
    }

    /// An abort gives its guesses back to the user (ATTR-4).
    fn take_back(&mut self, number: u64) {
        let Some(edit) = self.model.edits.iter().find(|edit| edit.number == number) else {
            return;
        };
        let marked: Vec<(Path, u64)> = edit
            .files
            .iter()
            .filter(|file| !file.done)
            .flat_map(|file| file.marked.iter().map(|n| (file.path, *n)))
            .collect();
        for (path, n) in marked {
            let still = self.model.logs.get(path).is_some_and(|log| {
                log.versions
                    .iter()
                    .any(|v| v.n == n && v.evidence == Evidence::Marked)
            });
            if still {
                self.may(n, Author::USER, Evidence::Unmarked, true);
            }
        }
    }

    fn facts(&mut self, op: &Op, seen: &[Seen], mut expected: BTreeMap<Path, Attributed>) -> Check {
        let records: Vec<_> = seen
            .iter()
            .filter_map(|one| match one {
                Seen::Fact(record) => Some(record),
                _ => None,
            })
            .collect();
        let mut lost_due: BTreeMap<u64, bool> = BTreeMap::new();
        for record in &records {
            match &record.fact {
                Fact::Version(version) => {
                    let Some(path) = path_of(&version.path) else {
                        return Err(format!("a version of a path nobody named: {record:?}"));
                    };
                    if version.amends.is_some() {
                        self.correction(op, path, record.n, version)?;
                        continue;
                    }
                    self.lost_by(path, version, &mut lost_due);
                    if !self.model.ignored.contains(path) {
                        self.one_version(op, path, version, &mut expected)?;
                    } else {
                        expected.remove(path);
                    }
                    if !version.unobserved {
                        self.model.recorded(path, record.n, record.time, version);
                    }
                }
                Fact::Lost {
                    session,
                    path,
                    version,
                    by,
                } => {
                    let Some(path) = path_of(path) else { continue };
                    if !lost_due.contains_key(version)
                        && !self.model.ignored.contains(path)
                        && !self.lost_later(path, *version)
                    {
                        return Err(format!("ATTR-10 (clobbered): {record:?} without reason"));
                    }
                    lost_due.remove(version);
                    let who = crate::model::index_of(session);
                    let copy = self.model.copies.entry((who, path)).or_default();
                    copy.lost.insert(*version, *by);
                    for edit in &mut self.model.edits {
                        if edit.session == who {
                            for file in edit.files.iter_mut().filter(|file| file.path == path) {
                                file.clobbered = true;
                                file.clobbered_surely |= records.iter().any(|one| {
                                    one.n == *by
                                        && matches!(&one.fact, Fact::Version(version)
                                            if version.edit == Some(edit.number))
                                });
                            }
                        }
                    }
                }
                Fact::EditEnded {
                    edit,
                    paths,
                    phase: EditPhase::Committed,
                    ..
                } if !matches!(op, Op::Ask(_)) => {
                    // Whether a matched one-call mark stays open is left open.
                    for open in &mut self.model.edits {
                        if open.number == *edit && open.one_shot {
                            for file in &mut open.files {
                                file.done |= paths.iter().any(|p| path_of(p) == Some(file.path));
                            }
                        }
                    }
                }
                Fact::Copied { from, to } => {
                    let (Some(from), Some(to)) = (path_of(from), path_of(to)) else {
                        continue;
                    };
                    if self.model.ignored.contains(from) {
                        self.model.ignored.insert(to);
                    }
                    match self.copies.remove(to) {
                        Some((source, by)) if source == from => {
                            self.model.logs.entry(to).or_default().latest = None;
                            expected.insert(to, by);
                        }
                        None if self.model.ignored.contains(from)
                            || self.model.ignored.contains(to) =>
                        {
                            self.model.ignored.insert(to);
                        }
                        other => {
                            return Err(format!("ATTR-12: {record:?}, but it is {other:?}"));
                        }
                    }
                    for session in 0..SESSIONS.len() {
                        let Some(copy) = self.model.copies.get(&(session, from)).cloned() else {
                            continue;
                        };
                        match self.model.copies.get_mut(&(session, to)) {
                            Some(there) => {
                                there.blurred = true;
                                there.told_perhaps = u64::MAX;
                            }
                            None => {
                                let copy = Copy {
                                    unnamed: true,
                                    told: 0,
                                    told_perhaps: u64::MAX,
                                    lost: BTreeMap::new(),
                                    ..copy
                                };
                                self.model.copies.insert((session, to), copy);
                            }
                        }
                    }
                }
                Fact::CopyDropped { path } => {
                    let Some(path) = path_of(path) else { continue };
                    if self.now(path).is_some() {
                        return Err(format!("ATTR-12: dropped although there: {record:?}"));
                    }
                    for session in 0..SESSIONS.len() {
                        if let Some(copy) = self.model.copies.get(&(session, path)) {
                            if !copy.unnamed {
                                return Err(format!("ATTR-12: it was named: {record:?}"));
                            }
                            self.model.copies.remove(&(session, path));
                        }
                    }
                }
                _ => {}
            }
        }
        for (path, by) in &expected {
            if !self.model.ignored.contains(path) {
                return Err(format!(
                    "SYNC-6: {path} changed to {:?} and no version was recorded; due: {by:?}",
                    self.now(path)
                ));
            }
        }
        for (n, (author, evidence, must)) in &self.corrections.0 {
            let held = self.model.logs.iter().any(|(path, log)| {
                self.held.contains(path)
                    && !self.model.ignored.contains(path)
                    && log.versions.iter().any(|version| version.n == *n)
            });
            if *must && held {
                return Err(format!(
                    "ATTR-11: the fact {n} was not corrected to {author:?} {evidence:?}"
                ));
            }
        }
        if let Some((version, _)) = lost_due.iter().find(|(_, must)| **must) {
            return Err(format!(
                "ATTR-10 (clobbered): the loss of {version} was not recorded"
            ));
        }
        Ok(())
    }

    /// A declared write over somebody's unseen version loses that version.
    fn lost_by(&self, path: Path, version: &VersionFact, due: &mut BTreeMap<u64, bool>) {
        let Some(session) = &version.author.session else {
            return;
        };
        let who = crate::model::index_of(session);
        let Some(last) = self
            .model
            .logs
            .get(path)
            .and_then(|log| log.versions.last().filter(|last| last.hash == log.latest))
        else {
            return;
        };
        let Some(hash) = last.hash else { return };
        let copy = self.model.copies.get(&(who, path));
        let seen = copy.is_some_and(|copy| copy.of(hash).is_some());
        let open = copy.is_some_and(|copy| copy.blurred || copy.marked);
        if last.author.is(session) || (seen && !open) {
            return;
        }
        let must = version.evidence == Evidence::Declared
            && !open
            && !version.unobserved
            && !self.model.ignored.contains(path)
            && last.evidence != Evidence::Gap
            && self.tracked(path)
            && !self.model.logs.get(path).is_none_or(|log| log.resumed)
            && !copy.is_some_and(|copy| copy.perhaps.contains(&hash));
        due.insert(last.n, must);
    }

    /// Losses of marked writes, and of writes claimed late, may come later.
    fn lost_later(&self, path: Path, version: u64) -> bool {
        let Some(log) = self.model.logs.get(path) else {
            return true;
        };
        let at = log.versions.iter().position(|v| v.n == version);
        at.and_then(|at| log.versions.get(at + 1))
            .is_none_or(|next| next.author.session.is_some())
    }

    fn one_version(
        &mut self,
        op: &Op,
        path: Path,
        version: &VersionFact,
        expected: &mut BTreeMap<Path, Attributed>,
    ) -> Check {
        let found = (version.author.clone(), version.evidence);
        let declares = matches!(
            op,
            Op::Ask(asking) if matches!(asking.ask, Ask::Mark { .. } | Ask::Commit { .. } | Ask::Begin { .. })
        );
        if (version.unobserved || version.late) && declares {
            if version.unobserved {
                self.unobserved.insert(path);
            }
            return Ok(());
        }
        if self.unobserved.contains(path) && found == (Author::USER, Evidence::Unmarked) {
            // What replaced a write that nobody saw (ATTR-10).
            expected.remove(path);
            return Ok(());
        }
        let now = self.now(path);
        if version.held.hash != now {
            return Err(format!("version: {version:?}, but the disk holds {now:?}"));
        }
        if now.is_none() {
            let again = self
                .model
                .attribute(path, self.world.now, None, false, false);
            let absence = &self.model.logs.entry(path).or_default().absence;
            let known = absence.contains(&found);
            if known || (!absence.is_empty() && (again.author, again.evidence) == found) {
                return Ok(());
            }
            return Err(format!("ATTR: {version:?}, the absence is {absence:?}"));
        }
        if let Some(by) = expected.remove(path) {
            if (by.author.clone(), by.evidence) != found {
                return Err(format!("ATTR: {version:?}, it should be {by:?}"));
            }
            return Ok(());
        }
        let named = matches!(
            op,
            Op::Ask(asking) if matches!(asking.ask, Ask::Read { .. } | Ask::Mention { .. })
        );
        let resumed = self.model.logs.get(path).is_none_or(|log| log.resumed);
        if version.evidence == Evidence::Gap && (named || resumed) {
            return Ok(());
        }
        if !self.tracked(path) {
            return Ok(());
        }
        Err(format!("version: nothing happened, but {version:?}"))
    }

    fn correction(&mut self, op: &Op, path: Path, n: u64, version: &VersionFact) -> Check {
        let declares = matches!(
            op,
            Op::Ask(asking) if matches!(asking.ask, Ask::Mark { .. } | Ask::Commit { .. })
        );
        let amended = version.amends.unwrap_or(0);
        let due = self.corrections.0.remove(&amended);
        let found = (version.author.clone(), version.evidence);
        let old = self.model.logs.get(path).and_then(|log| {
            let found = log.versions.iter().find(|v| v.n == amended)?;
            Some((found.author.clone(), found.evidence))
        });
        let order_only = old.as_ref() == Some(&found);
        match due {
            Some((author, evidence, _)) if (author.clone(), evidence) == found => {}
            _ if self.model.ignored.contains(path) || order_only => {}
            // A deletion is recorded when somebody asks, and may be declared
            // or given back by what asks.
            None if found == (Author::USER, Evidence::Unmarked)
                && matches!(op, Op::Ask(_))
                && version.held.hash.is_none()
                && old
                    .as_ref()
                    .is_some_and(|(_, evidence)| *evidence == Evidence::Marked) => {}
            None if version.late
                && declares
                && old.as_ref().is_some_and(|(_, evidence)| {
                    matches!(evidence, Evidence::Unmarked | Evidence::Gap)
                }) => {}
            // A one-call mark was consumed and then the same bytes were
            // written again: whose they were is left open.
            None if found == (Author::USER, Evidence::Unmarked)
                && old
                    .as_ref()
                    .is_some_and(|(_, evidence)| *evidence == Evidence::Marked)
                && self.model.edits.iter().any(|edit| edit.one_shot)
                && !matches!(op, Op::Ask(_)) =>
            {
                self.model.ignored.insert(path);
            }
            due => {
                return Err(format!(
                    "ATTR-11: {version:?} corrects {old:?}; due: {due:?}"
                ));
            }
        }
        if version.author == Author::USER
            && let Some((
                Author {
                    session: Some(s), ..
                },
                _,
            )) = &old
        {
            let who = crate::model::index_of(s);
            if let Some(copy) = self.model.copies.get_mut(&(who, path)) {
                copy.marked = false;
            }
        }
        self.model.amended(path, n, version);
        Ok(())
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
    }

    #[allow(clippy::too_many_lines)] // one arm a method
    fn answer(&mut self, asked: &Asked, outcome: &Outcome) -> Check {
        let who = asked.asking.session;
        let Outcome::Reply(answer) = outcome else {
            return Ok(());
        };
        let reply = match answer {
            Ok(answer) => Ok(&answer.reply),
            Err(error) => Err(error),
        };
        match (&asked.asking.ask, reply) {
            (Ask::Read { path, named, range }, Ok(Reply::FileRead(read))) => {
                let own = match named {
                    Named::Content(id) => Some(content(*id)),
                    _ => self.world.disk.bytes(path).map(|bytes| bytes.to_vec()),
                };
                let verdict = format!("{:?}", read.verdict);
                if verdict == "Repeat" {
                    let message = format!(
                        "[File previously read: {path}. Content unchanged since last read.]"
                    );
                    if read.message.as_ref() != Some(&message) {
                        return Err(format!("message: {read:?}"));
                    }
                }
                self.read(who, path, own.as_deref(), *range, &verdict, read.read_count)?;
            }
            (Ask::ReadText { path, range, .. }, Ok(Reply::FileReadText(read))) => {
                let bytes = self.world.disk.bytes(path).map(|bytes| bytes.to_vec());
                let verdict = format!("{:?}", read.verdict);
                if range.is_none()
                    && read.text.is_some()
                    && read.text.as_ref().map(|text| text.as_bytes().to_vec()) != bytes
                {
                    return Err(format!("file/readText: {read:?}, the file holds {bytes:?}"));
                }
                let count = u32::MAX;
                self.read(who, path, bytes.as_deref(), *range, &verdict, count)?;
            }
            (Ask::Read { path, named, .. }, Err(error)) => {
                let gone = self.now(path).is_none() && !matches!(named, Named::Content(_));
                if !(gone && error.code == ErrorCode::NotFound) {
                    return Err(format!("file/read: {error:?}"));
                }
            }
            (Ask::Mention { path, named, range }, Ok(Reply::FileMention(file))) => {
                self.track(who, path);
                let own = match named {
                    Named::Content(id) => Some((hash(&content(*id)), None)),
                    Named::Disk => self.now(path).map(|h| (h, Some(self.lines(path)))),
                    _ => None,
                };
                if let Some((hash, count)) = own {
                    let copy = self.model.copies.entry((who, path)).or_default();
                    copy.blurred_reads = true;
                    copy.invalidated = false;
                    copy.foreign = Some(hash) != self.world.hash_of(path);
                    copy.see(hash, count, bits(*range), true);
                }
                let (now, count) = (self.now(path), self.lines(path));
                self.model.check_state(who, path, now, count, file)?;
            }
            (Ask::Status { paths }, Ok(Reply::FileStatus(states))) => {
                let mut there = BTreeSet::new();
                for file in &states.files {
                    let Some(path) = path_of(&file.path) else {
                        return Err(format!("file/status: nobody named {file:?}"));
                    };
                    there.insert(path);
                    let (now, count) = (self.now(path), self.lines(path));
                    self.model.check_state(who, path, now, count, file)?;
                }
                for ((session, path), copy) in &self.model.copies {
                    if *session == who
                        && !copy.unnamed
                        && paths.as_ref().is_none_or(|paths| paths.contains(path))
                        && !there.contains(path)
                        && !self.model.ignored.contains(path)
                    {
                        return Err(format!("file/status: {path} is missing in {states:?}"));
                    }
                }
            }
            (Ask::Begin { .. }, reply) => self.begin(asked, reply.map_err(Clone::clone))?,
            (
                Ask::Mark {
                    slot, path, ttl, ..
                },
                reply,
            ) => {
                let held = self.model.held_by_other(path, who);
                match reply {
                    Ok(Reply::EditMark(marked)) => {
                        if held && marked.late != Some(true) {
                            return Err(format!("GUARD-5: {marked:?} although held"));
                        }
                        self.track(who, path);
                        let expect = self.world.slots.get(slot).and_then(|slot| slot.files[0].1);
                        if marked.late == Some(true) {
                            let now = self.now(path);
                            if expect != Some(now.into()) {
                                self.model.ignored.insert(path);
                            }
                            let copy = self.model.copies.entry((who, path)).or_default();
                            copy.wrote(now);
                        } else {
                            let wanted = self.world.now + ttl.unwrap_or(10_000);
                            if marked.deadline != Some(wanted) {
                                return Err(format!("ATTR-8: {marked:?}, due at {wanted}"));
                            }
                            self.opened(asked, &marked.edit, wanted, true);
                        }
                        let (now, count) = (self.now(path), self.lines(path));
                        self.model
                            .check_state(who, path, now, count, &marked.file)?;
                    }
                    Err(error) if held && error.code == ErrorCode::Busy => {}
                    other => return Err(format!("edit/mark: {other:?}")),
                }
            }
            (Ask::Commit { .. }, reply) => self.commit(asked, reply.map_err(Clone::clone))?,
            (Ask::Abort { .. }, reply) => {
                let open = self.edit_of(asked).and_then(|number| {
                    self.model
                        .edits
                        .iter()
                        .position(|edit| edit.number == number)
                });
                let open = open
                    .filter(|index| self.model.edits[*index].files.iter().any(|file| !file.done));
                match (open, reply) {
                    (Some(index), Ok(_)) => self.end(index),
                    (None, Err(error)) if error.code == ErrorCode::UnknownEdit => {}
                    (Some(index), Err(error)) if self.model.edits[index].one_shot => {
                        // Whether a matched mark is still open is left open.
                        let _ = error;
                        self.end(index);
                    }
                    (open, reply) => {
                        return Err(format!("ATTR-9: abort of {open:?}: {reply:?}"));
                    }
                }
            }
            (
                Ask::Take {
                    peek,
                    explicit,
                    paths,
                },
                Ok(Reply::ModifiedTake(taken)),
            ) => {
                let told = self.listed(who, paths.as_deref(), &taken.changes)?;
                if !peek && *explicit && paths.is_some() {
                    for (path, newest) in told.0 {
                        if let Some(copy) = self.model.copies.get_mut(&(who, path)) {
                            copy.told_perhaps = copy.told_perhaps.max(newest);
                        }
                    }
                } else if !peek && *explicit {
                    self.unacked.entry(who).or_default().push(told);
                } else if !peek {
                    self.deliver(who, told);
                }
            }
            (Ask::ModList, Ok(Reply::ModifiedList(list))) => {
                self.listed(who, None, &list.changes)?;
            }
            (Ask::Open, Ok(Reply::SessionOpen(opened))) => {
                self.listed(who, None, &opened.modified)?;
            }
            (Ask::Ack, Ok(_)) => {
                for told in self.unacked.remove(&who).unwrap_or_default() {
                    self.deliver(who, told);
                }
            }
            (Ask::Invalidate { path }, Ok(_)) => {
                for ((session, held), copy) in &mut self.model.copies {
                    if *session == who && path.is_none_or(|path| path == *held) {
                        for seen in &mut copy.seen {
                            seen.resident = 0;
                        }
                        copy.reads = 0;
                        copy.blurred_reads = false;
                        copy.invalidated |= copy.ever_seen;
                    }
                }
            }
            (Ask::Compacted { keep }, Ok(_)) => {
                for ((session, held), copy) in &mut self.model.copies {
                    if *session == who && !keep.contains(held) {
                        copy.evicted = true;
                        for seen in &mut copy.seen {
                            seen.resident = 0;
                        }
                    }
                }
            }
            (Ask::Truncated { path, range }, Ok(_)) => {
                if let Some(copy) = self.model.copies.get_mut(&(who, *path)) {
                    copy.evicted = true;
                    for seen in &mut copy.seen {
                        // A range that reaches the last line reaches the end.
                        let cut = bits(*range);
                        let reaches = seen
                            .lines
                            .is_some_and(|lines| cut >> lines.saturating_sub(1).min(63) != 0);
                        seen.resident &= if reaches {
                            (cut & cut.wrapping_neg()) - 1
                        } else {
                            !cut
                        };
                    }
                }
            }
            (Ask::Untrack { path }, Ok(_)) => {
                if self.model.open_by(path, who) {
                    self.model.ignored.insert(path);
                }
                self.model.copies.remove(&(who, *path));
            }
            (Ask::Close { forget }, Ok(_)) => {
                for index in 0..self.model.edits.len() {
                    if self.model.edits[index].session == who {
                        self.end(index);
                    }
                }
                if *forget {
                    self.model.copies.retain(|(session, _), _| *session != who);
                    self.unacked.remove(&who);
                }
            }
            (_, Ok(_)) => {}
            (Ask::ReadText { path, range, .. }, Err(_))
                if self.now(path).is_none() || range.is_some() => {}
            (Ask::Mention { path, .. }, Err(_)) if self.now(path).is_none() => {}
            (ask, Err(error)) => return Err(format!("{ask:?}: {error:?}")),
        }
        Ok(())
    }

    fn read(
        &mut self,
        who: usize,
        path: Path,
        bytes: Option<&[u8]>,
        range: Range,
        verdict: &str,
        count: u32,
    ) -> Check {
        let Some(bytes) = bytes else {
            return Err(format!("file/read of {path}, which is not there"));
        };
        let unnamed = self
            .model
            .copies
            .get(&(who, path))
            .is_some_and(|copy| copy.unnamed);
        self.track(who, path);
        let content = hash(bytes);
        let known = self.now(path) == Some(content);
        let length = lines(bytes);
        let ignored = self.model.ignored.contains(path);
        let copy = self.model.copies.entry((who, path)).or_default();
        let mut allowed = copy.verdicts(content, range, length);
        if unnamed {
            // Whether it was read under this name is left open.
            allowed.push("First");
        }
        if !ignored && !allowed.contains(&verdict) {
            return Err(format!(
                "SEEN-4: reading {range:?} of {path} was {verdict}, not one of {allowed:?}\n{copy:?}"
            ));
        }
        copy.reads += 1;
        if !ignored && !copy.blurred_reads && count != u32::MAX && count != copy.reads {
            return Err(format!("SEEN: read number {count}, not {}", copy.reads));
        }
        copy.invalidated = false;
        copy.foreign = !known;
        copy.see(content, known.then_some(length), bits(range), true);
        if range.is_none() {
            copy.blurred = false;
            copy.evicted = false;
        }
        Ok(())
    }

    fn opened(&mut self, asked: &Asked, name: &Option<String>, deadline: Millis, one_shot: bool) {
        let (Ask::Begin { slot, .. } | Ask::Mark { slot, .. }) = &asked.asking.ask else {
            return;
        };
        let number = name
            .as_ref()
            .and_then(|name| name.strip_prefix('e')?.parse().ok());
        let (Some(number), Some(slot)) = (number, self.world.slots.get(slot).cloned()) else {
            return;
        };
        let files = slot.files.iter().map(|(path, expect, _)| EditFile {
            path,
            expect: *expect,
            began: self.now(path),
            matched: false,
            clobbered: false,
            clobbered_surely: false,
            done: false,
            marked: Vec::new(),
        });
        let files = files.collect();
        self.model.edits.push(Edit {
            number,
            session: asked.asking.session,
            files,
            deadline,
            one_shot,
        });
    }

    fn begin(&mut self, asked: &Asked, reply: Result<&Reply, touchmark_proto::Error>) -> Check {
        let Ask::Begin {
            files,
            require_read,
            force,
            ttl,
            call,
            ..
        } = &asked.asking.ask
        else {
            return Ok(());
        };
        let who = asked.asking.session;
        let now: Vec<(Path, Option<Hash>)> = files
            .iter()
            .map(|(path, _)| (*path, self.now(path)))
            .collect();
        let loose = now.iter().any(|(path, _)| {
            self.model.ignored.contains(path)
                || self
                    .model
                    .copies
                    .get(&(who, *path))
                    .is_some_and(|copy| copy.blurred || copy.marked || !copy.perhaps.is_empty())
        });
        let refusals = self.model.refusals(who, &now, *require_read && !*force);
        let begun = match &reply {
            Ok(Reply::EditBegin(begun)) => {
                if !loose {
                    check_refusal(&refusals, Ok(()))?;
                }
                begun
            }
            Err(error) => {
                if !loose {
                    check_refusal(&refusals, Err(error))?;
                }
                return Ok(());
            }
            other => return Err(format!("edit/begin: {other:?}")),
        };
        for (path, _) in files {
            self.track(who, path);
        }
        let wanted = self.world.now + ttl.unwrap_or(if *call { 600_000 } else { 60_000 });
        if begun.deadline != wanted {
            return Err(format!("ATTR-9: {begun:?}, due at {wanted}"));
        }
        self.opened(asked, &Some(begun.edit.clone()), wanted, false);
        for ((path, now), file) in now.iter().zip(&begun.files) {
            let count = self.lines(path);
            self.model.check_state(who, path, *now, count, file)?;
        }
        Ok(())
    }

    fn end(&mut self, index: usize) {
        let edit = &mut self.model.edits[index];
        let session = edit.session;
        for file in &mut edit.files {
            file.done = true;
        }
        let paths: Vec<Path> = edit.files.iter().map(|file| file.path).collect();
        for path in paths {
            let still = self
                .model
                .open_on(path)
                .any(|(other, _, file)| other == session && !file.marked.is_empty());
            if let Some(copy) = self.model.copies.get_mut(&(session, path)) {
                copy.marked &= still;
            }
        }
    }

    fn commit(&mut self, asked: &Asked, reply: Result<&Reply, touchmark_proto::Error>) -> Check {
        let number = self.edit_of(asked);
        let index = number.and_then(|number| {
            self.model
                .edits
                .iter()
                .position(|edit| edit.number == number)
        });
        let done = match reply {
            Ok(Reply::EditCommit(done)) => done,
            Err(error) if error.code == ErrorCode::UnknownEdit => {
                let open = index.is_some_and(|index| {
                    let edit = &self.model.edits[index];
                    !edit.one_shot && edit.files.iter().all(|file| !file.done)
                });
                if open {
                    return Err(format!("ATTR-9: {error:?} for an open edit"));
                }
                if let Some(index) = index
                    && self.model.edits[index].one_shot
                {
                    self.end(index);
                }
                return Ok(());
            }
            other => return Err(format!("edit/commit: {other:?}")),
        };
        let Request::EditCommit(commit) = &asked.request else {
            return Ok(());
        };
        let Some(index) = index else {
            // Without an edit only a late declaration is heard; what it did
            // has been taken in as a correction.
            for file in &done.files {
                if let Some(path) = path_of(&file.path) {
                    self.model.ignored.insert(path);
                }
            }
            return Ok(());
        };
        for file in &done.files {
            let Some(path) = path_of(&file.path) else {
                return Err(format!("edit/commit: {file:?}"));
            };
            let named = commit
                .files
                .iter()
                .find(|one| one.path.as_bytes() == path.as_bytes())
                .and_then(|one| one.hash);
            self.committed(index, path, named, done)?;
        }
        Ok(())
    }

    /// ATTR-10, file by file.
    fn committed(
        &mut self,
        index: usize,
        path: Path,
        named: Option<HashOrAbsent>,
        done: &EditCommitted,
    ) -> Check {
        let now: HashOrAbsent = self.now(path).into();
        let who = self.model.edits[index].session;
        let Some(file) = self.model.edits[index]
            .files
            .iter_mut()
            .find(|file| file.path == path)
        else {
            return Ok(());
        };
        let was_done = file.done;
        file.done = true;
        let file = file.clone();
        let row = done
            .files
            .iter()
            .find(|row| row.path.as_bytes() == path.as_bytes());
        let Some(row) = row else { return Ok(()) };
        let began: HashOrAbsent = file.began.into();
        let still: Vec<Option<Hash>> = self.model.logs.get(path).map_or(Vec::new(), |log| {
            log.versions
                .iter()
                .filter(|version| file.marked.contains(&version.n))
                .map(|version| version.hash)
                .collect()
        });
        let marked_too = |hash: HashOrAbsent| still.iter().any(|h| HashOrAbsent::from(*h) == hash);
        let copy = self.model.copies.entry((who, path)).or_default();
        copy.marked = false;
        let mut allowed: Vec<Fate> = match (file.expect, named) {
            _ if was_done => {
                self.model.ignored.insert(path);
                return Ok(());
            }
            (Some(expect), named) if file.matched => {
                if now == expect {
                    vec![Fate::Applied]
                } else if named.is_some() {
                    vec![Fate::Overwritten]
                } else {
                    vec![Fate::Applied, Fate::Overwritten]
                }
            }
            (Some(expect), None) => {
                if expect == began && now == began {
                    if HashOrAbsent::from(copy.last) != now {
                        copy.blurred = true;
                    }
                    vec![Fate::Unchanged]
                } else if expect == began {
                    vec![Fate::Unchanged, Fate::NotApplied, Fate::Overwritten]
                } else {
                    vec![Fate::NotApplied]
                }
            }
            (Some(_), Some(hash)) => {
                if now == hash {
                    if HashOrAbsent::from(copy.last) != now {
                        copy.blurred = true;
                    }
                    if hash == began && !self.model.logs.contains_key(path) {
                        vec![Fate::Unchanged]
                    } else {
                        vec![Fate::Applied, Fate::Unchanged]
                    }
                } else {
                    copy.wrote(hash.hash());
                    copy.blurred = true;
                    if hash == began {
                        vec![Fate::Overwritten, Fate::Unchanged, Fate::NotApplied]
                    } else {
                        vec![Fate::Overwritten]
                    }
                }
            }
            (None, None) => {
                if still.is_empty() {
                    vec![Fate::Unchanged, Fate::NotApplied]
                } else {
                    let last = still.last().copied().flatten();
                    if HashOrAbsent::from(last) == now {
                        copy.wrote(last);
                    } else {
                        copy.blurred = true;
                    }
                    let log = self.model.logs.get(path);
                    let last = log.and_then(|log| log.versions.last());
                    if now == began {
                        vec![Fate::Applied, Fate::Unchanged]
                    } else if last.is_some_and(|last| last.author.session.is_none()) {
                        vec![Fate::Applied, Fate::Overwritten]
                    } else {
                        vec![Fate::Applied]
                    }
                }
            }
            (None, Some(hash)) => {
                copy.wrote(hash.hash());
                if now == hash {
                    if now == began {
                        copy.blurred = true;
                        vec![Fate::Unchanged, Fate::Applied]
                    } else if marked_too(hash) {
                        vec![Fate::Applied]
                    } else {
                        copy.blurred = true;
                        vec![Fate::Applied, Fate::Unchanged]
                    }
                } else {
                    if !marked_too(hash) {
                        copy.blurred = true;
                    }
                    vec![Fate::Overwritten]
                }
            }
        };
        let mut must_clobber = file.clobbered_surely
            && file.expect.is_some()
            && file.matched
            && allowed == [Fate::Applied];
        if self.model.ignored.contains(path) {
            return Ok(());
        }
        if file.clobbered || file.expect.is_none() || named.is_some() {
            allowed.push(Fate::Clobbered);
        }
        // A loss by an earlier edit of the session is not this one's.
        let several = self
            .model
            .edits
            .iter()
            .filter(|edit| edit.session == who && edit.files.iter().any(|f| f.path == path))
            .count();
        must_clobber &= several == 1;
        if !allowed.contains(&row.outcome) || (must_clobber && row.outcome != Fate::Clobbered) {
            return Err(format!(
                "ATTR-10: {row:?}, allowed {allowed:?}, clobbered {}, named {named:?}, now {now:?}\n{file:?}",
                file.clobbered
            ));
        }
        // What the answer tells of others' changes may count as told.
        let newest = self.model.newest_for(who, path);
        if done
            .changes
            .iter()
            .any(|change| change.path.as_bytes() == path.as_bytes())
        {
            let copy = self.model.copies.entry((who, path)).or_default();
            copy.told_perhaps = copy.told_perhaps.max(newest);
        }
        Ok(())
    }

    /// MOD-1 for every path the session holds.
    fn listed(
        &self,
        who: usize,
        only: Option<&[Path]>,
        changes: &[Change],
    ) -> Result<Told, String> {
        let mut plain: BTreeMap<Path, u64> = BTreeMap::new();
        let mut lost: BTreeSet<(Path, u64)> = BTreeSet::new();
        let mut any: BTreeSet<Path> = BTreeSet::new();
        for change in changes {
            let Some(path) = path_of(&change.path) else {
                return Err(format!("MOD-1: nobody named {change:?}"));
            };
            any.insert(path);
            if let Some(version) = &change.lost {
                lost.insert((path, version.clock.n));
                continue;
            }
            if self.model.ignored.contains(path) {
                plain.insert(path, self.model.newest_for(who, path));
                continue;
            }
            let now = self.now(path);
            if self.model.listing(who, path, now) == Listing::Never {
                return Err(format!(
                    "MOD-1: {change:?} must not be listed\n{:?}\n{:?}",
                    self.model.copies.get(&(who, path)),
                    self.model.logs.get(path)
                ));
            }
            if change.hash != now || (now.is_none()) != (change.kind == VersionKind::Deleted) {
                return Err(format!("MOD-1: {change:?}, but the disk holds {now:?}"));
            }
            let last = self
                .model
                .logs
                .get(path)
                .and_then(|log| log.versions.last());
            if let Some(last) = last
                && last.hash == now
                && !self
                    .model
                    .copies
                    .get(&(who, path))
                    .is_some_and(|copy| copy.foreign)
                && !change.changed_by.contains(&last.author)
            {
                return Err(format!("MOD-1: {change:?} does not name {last:?}"));
            }
            plain.insert(path, self.model.newest_for(who, path));
        }
        for ((session, path), copy) in &self.model.copies {
            if *session != who
                || only.is_some_and(|only| !only.contains(path))
                || self.model.ignored.contains(path)
            {
                continue;
            }
            if self.model.listing(who, path, self.now(path)) == Listing::Must && !any.contains(path)
            {
                return Err(format!(
                    "MOD-1: {path} must be listed\n{copy:?}\n{:?}",
                    self.model.logs.get(path)
                ));
            }
            for version in copy.lost.keys() {
                if !lost.contains(&(path, *version)) {
                    return Err(format!("MOD-1: the lost {version} of {path} is not listed"));
                }
            }
        }
        for (path, version) in &lost {
            let due = self
                .model
                .copies
                .get(&(who, *path))
                .is_some_and(|copy| copy.lost.contains_key(version));
            if !due && !self.model.ignored.contains(path) {
                return Err(format!(
                    "MOD-1: the lost {version} of {path} was told before"
                ));
            }
        }
        Ok((plain, lost))
    }

    fn deliver(&mut self, who: usize, (plain, lost): Told) {
        for (path, newest) in plain {
            if let Some(copy) = self.model.copies.get_mut(&(who, path)) {
                copy.told = copy.told.max(newest);
                copy.told_absence = self.world.hash_of(path).is_none();
                copy.foreign = false;
                copy.told_perhaps = copy.told_perhaps.max(newest);
            }
        }
        for (path, version) in lost {
            if let Some(copy) = self.model.copies.get_mut(&(who, path)) {
                copy.lost.remove(&version);
            }
        }
    }
}

/// Whether one content may be the beginning of another. Those written once
/// in a run begin no other; of the others it is known.
fn is_prefix(hash: Hash, of: HashOrAbsent) -> bool {
    let find = |wanted: Hash| {
        (0..crate::content::COMMON)
            .map(content)
            .find(|bytes| self::hash(bytes) == wanted)
    };
    match (find(hash), of.hash().and_then(find)) {
        (Some(short), Some(long)) => long.starts_with(&short),
        (Some(short), None) => short.is_empty() || short.starts_with(b"a\n"),
        (None, _) => false,
    }
}
