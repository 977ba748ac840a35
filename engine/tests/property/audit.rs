//! What must hold however things interleave: every fact and every answer is
//! held against the disk's true past and against what clients truly said.
//! Written from docs/semantics.md alone.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_engine::{Fact, Record, VersionFact};
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

/// What a session was last told of a path.
#[derive(Clone)]
struct Told {
    /// The newest fact about the path then.
    newest: u64,
    /// From the question to the answer.
    asked: u64,
    moment: u64,
    contents: Vec<At>,
    /// The save that was under way and stood on disk.
    save: Option<usize>,
}

#[derive(Default)]
pub struct Audit {
    edits: BTreeMap<u64, OpenEdit>,
    versions: BTreeMap<u64, Known>,
    latest: BTreeMap<String, Option<Hash>>,
    newest: BTreeMap<String, u64>,
    /// The newest fact about the path is a claim nobody saw.
    unobserved: BTreeSet<String>,
    claims: BTreeMap<Key, BTreeSet<HashOrAbsent>>,
    saves: BTreeMap<String, BTreeSet<Hash>>,
    maybe_seen: BTreeMap<Key, BTreeSet<Hash>>,
    /// The last thing seen, where that is certain: a whole read.
    last: BTreeMap<Key, Hash>,
    told: BTreeMap<Key, Told>,
    /// Told of a save under way; nothing read and no coverage lost since.
    continued: BTreeSet<Key>,
    unacked: BTreeMap<SessionId, Vec<BTreeMap<String, Told>>>,
    gaps: BTreeSet<String>,
    /// Could not be read since coverage was lost.
    unread: BTreeSet<String>,
    read_asked: BTreeMap<Key, Vec<(u64, Option<Hash>)>>,
    /// Sessions that asked to be closed at some time.
    closing: BTreeSet<SessionId>,
    /// Paths with a declared version in this step: what was held back for it
    /// is recorded before it, and was there before other edits began (ATTR-5).
    arriving: BTreeSet<String>,
    /// Edits that end in this step, wherever in it.
    ending: BTreeSet<u64>,
    begun_now: BTreeSet<u64>,
    answered_now: BTreeSet<u64>,
    step: u64,
}

type Verdict = Result<(), String>;

macro_rules! ensure {
    ($rule:expr, $condition:expr, $($text:tt)*) => {
        if !$condition {
            return Err(format!("{}: {}", $rule, format!($($text)*)));
        }
    };
}

fn text(path: &RelPath) -> String {
    path.to_string_lossy()
}

impl Audit {
    /// Takes in what came out of the engine since the last look.
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
                }) if version.evidence == Evidence::Declared => Some(text(&version.path)),
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
                    if world.pending.is_empty() {
                        // What could not be read is still not compared.
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

    fn claim(&mut self, session: &SessionId, path: &str, what: HashOrAbsent) {
        let key = (session.clone(), path.to_owned());
        if let HashOrAbsent::Hash(hash) = what {
            self.maybe_seen.entry(key.clone()).or_default().insert(hash);
        }
        self.claims.entry(key).or_default().insert(what);
    }

    fn asked(&mut self, asked: &Asked) {
        use touchmark_proto::Request;
        if !matches!(
            asked.asking.ask,
            Ask::Take { .. } | Ask::Status { .. } | Ask::Sync | Ask::ModList
        ) {
            // Reads, marks and their ends may make a save news again.
            self.continued.clear();
        }
        let who = asks::session(asked.asking.session);
        let name = |path: &touchmark_proto::ClientPath| {
            String::from_utf8_lossy(path.as_bytes()).into_owned()
        };
        match &asked.request {
            Request::EditBegin(begin) => {
                for file in &begin.files {
                    if let Some(expect) = file.expect {
                        self.claim(&who, &name(&file.path), expect);
                    }
                }
            }
            Request::EditMark(mark) => {
                if let Some(expect) = mark.expect {
                    self.claim(&who, &name(&mark.path), expect);
                }
            }
            Request::EditCommit(commit) => {
                let edit = self.edit_of(commit.edit.as_deref());
                let session = edit
                    .and_then(|edit| self.edits.get(&edit))
                    .map_or(who, |edit| edit.session.clone());
                for file in &commit.files {
                    if let Some(hash) = file.hash {
                        self.claim(&session, &name(&file.path), hash);
                    }
                }
                self.mark_ending(commit.edit.as_deref(), &session);
            }
            Request::EditAbort(abort) => {
                self.mark_ending(abort.edit.as_deref(), &who);
            }
            Request::SessionClose(_) => {
                self.closing.insert(who.clone());
                self.last.retain(|(session, _), _| *session != who);
                self.told.retain(|(session, _), _| *session != who);
            }
            Request::FileRead(read) => {
                let key = (who, name(&read.path));
                if let Some(hash) = read.hash {
                    self.told.remove(&key);
                    self.maybe_seen.entry(key.clone()).or_default().insert(hash);
                    // A content the daemon may never have seen (SEEN-1).
                    self.gaps.insert(key.1.clone());
                }
                self.last.remove(&key);
                self.read_asked
                    .entry(key)
                    .or_default()
                    .push((if asked.asking.sync { asked.moment } else { 0 }, read.hash));
            }
            Request::FileReadText(read) => {
                let key = (who, name(&read.path));
                self.last.remove(&key);
                self.read_asked
                    .entry(key)
                    .or_default()
                    .push((if asked.asking.sync { asked.moment } else { 0 }, None));
            }
            Request::FileMention(mention) => {
                let key = (who, name(&mention.path));
                if let Some(hash) = mention.hash {
                    self.told.remove(&key);
                    self.maybe_seen.entry(key.clone()).or_default().insert(hash);
                    self.gaps.insert(key.1.clone());
                    self.read_asked.entry(key.clone()).or_default().push((
                        if asked.asking.sync { asked.moment } else { 0 },
                        mention.hash,
                    ));
                }
                self.last.remove(&key);
            }
            Request::FileInvalidate(_) => {
                self.last.retain(|(session, _), _| *session != who);
            }
            Request::FileUntrack(untrack) => {
                let key = (who, name(&untrack.path));
                self.last.remove(&key);
                self.told.remove(&key);
            }
            Request::EditorDidSave(saved) => {
                self.saves
                    .entry(name(&saved.path))
                    .or_default()
                    .insert(saved.hash);
            }
            _ => {}
        }
    }

    fn edit_of(&self, named: Option<&str>) -> Option<u64> {
        named?.strip_prefix('e')?.parse().ok()
    }

    fn mark_ending(&mut self, named: Option<&str>, session: &SessionId) {
        match self.edit_of(named) {
            Some(number) => {
                if let Some(edit) = self.edits.get_mut(&number) {
                    edit.end_asked = true;
                }
            }
            None => {
                for edit in self
                    .edits
                    .values_mut()
                    .filter(|edit| edit.session == *session)
                {
                    edit.end_asked = true;
                }
            }
        }
    }

    fn fact(&mut self, world: &World, record: &Record) -> Verdict {
        match &record.fact {
            Fact::Baseline { path, held } => {
                self.latest.insert(text(path), held.hash);
            }
            Fact::Version(version) => self.version(world, record, version)?,
            Fact::Copied { from, to } => {
                let (from, to) = (text(from), text(to));
                let copies: Vec<(SessionId, BTreeSet<Hash>)> = self
                    .maybe_seen
                    .iter()
                    .filter(|((_, path), _)| *path == from)
                    .map(|((session, _), hashes)| (session.clone(), hashes.clone()))
                    .collect();
                for (session, hashes) in copies {
                    self.maybe_seen
                        .entry((session, to.clone()))
                        .or_default()
                        .extend(hashes);
                }
                self.last.retain(|(_, path), _| *path != to);
                self.latest.remove(&to);
            }
            Fact::Read {
                session,
                path,
                hash: Some(hash),
                ..
            } => {
                let path = text(path);
                let key = (session.clone(), path.clone());
                let known = self
                    .maybe_seen
                    .get(&key)
                    .is_some_and(|seen| seen.contains(hash));
                if !known {
                    let from = self
                        .read_asked
                        .get(&key)
                        .and_then(|all| all.iter().map(|(moment, _)| *moment).min());
                    let Some(from) = from else {
                        return Err(format!("SEEN-1: a read nobody asked for: {record:?}"));
                    };
                    let there = world.disk.between(&path, from, world.disk.moment);
                    ensure!(
                        "SEEN-1",
                        there.contains(&At::File(*hash)),
                        "{record:?}: the disk held {there:?}"
                    );
                    self.maybe_seen.entry(key).or_default().insert(*hash);
                }
            }
            Fact::EditBegun(begun) => {
                let mut files: BTreeMap<String, Vec<OpenFile>> = BTreeMap::new();
                for file in &begun.files {
                    let path = text(&file.path);
                    for edit in self.edits.values() {
                        let held = edit
                            .files
                            .get(&path)
                            .is_some_and(|files| files.iter().any(|file| !file.ended));
                        ensure!(
                            "GUARD-5",
                            edit.session == begun.session || !held,
                            "{record:?} although {:?} holds it",
                            edit.session
                        );
                    }
                    let now_or_before = world.disk.between(&path, 0, world.disk.moment);
                    ensure!(
                        "ATTR-16",
                        file.began
                            .is_none_or(|h| now_or_before.contains(&At::File(h))),
                        "{record:?} began with what never was there"
                    );
                    files.entry(path).or_default().push(OpenFile {
                        expect: file.expect,
                        began: file.began,
                        matched: false,
                        ended: false,
                    });
                }
                ensure!(
                    "clock",
                    !self.edits.contains_key(&begun.edit),
                    "edit number {} came twice",
                    begun.edit
                );
                self.begun_now.insert(begun.edit);
                self.edits.insert(
                    begun.edit,
                    OpenEdit {
                        session: begun.session.clone(),
                        files,
                        deadline: begun.deadline,
                        one_shot: begun.one_shot,
                        bound: begun.bound.is_some(),
                        end_asked: false,
                        step_ended: 0,
                    },
                );
            }
            Fact::EditEnded {
                edit, paths, phase, ..
            } => {
                let step = self.step;
                let Some(open) = self.edits.get_mut(edit) else {
                    return Err(format!("an unknown edit ended: {record:?}"));
                };
                let all: Vec<String> = if paths.is_empty() {
                    open.files.keys().cloned().collect()
                } else {
                    paths.iter().map(text).collect()
                };
                let consumed = open.one_shot;
                match phase {
                    EditPhase::Committed => ensure!(
                        "ATTR-9",
                        open.end_asked || consumed,
                        "{record:?}: nobody committed"
                    ),
                    EditPhase::Aborted => ensure!(
                        "ATTR-9",
                        open.end_asked || open.bound || self.closing.contains(&open.session),
                        "{record:?}: nobody aborted"
                    ),
                    EditPhase::Lapsed => ensure!(
                        "ATTR-9",
                        world.now >= open.deadline || open.bound,
                        "{record:?} before its deadline {}",
                        open.deadline
                    ),
                    EditPhase::Begun => return Err(format!("begun is no end: {record:?}")),
                }
                for path in all {
                    for file in open.files.get_mut(&path).into_iter().flatten() {
                        file.ended = true;
                        open.step_ended = step;
                    }
                }
            }
            Fact::Lost {
                session,
                path,
                version,
                ..
            } => {
                let Some(known) = self.versions.get(version) else {
                    return Err(format!("ATTR-10: {record:?} names no version"));
                };
                ensure!(
                    "ATTR-10 (clobbered)",
                    !known.author.is(session) && known.path == text(path),
                    "{record:?}: its own, or of another path"
                );
                let key = (session.clone(), text(path));
                ensure!(
                    "ATTR-10 (clobbered)",
                    known.hash.is_none() || self.last.get(&key).copied() != known.hash,
                    "{record:?}: the session had read it"
                );
            }
            _ => {}
        }
        Ok(())
    }

    fn version(&mut self, world: &World, record: &Record, version: &VersionFact) -> Verdict {
        let path = text(&version.path);
        let content = version.held.hash;
        let pair_ok = match version.evidence {
            Evidence::Declared | Evidence::Marked | Evidence::Command => {
                version.author.kind == AuthorKind::Agent && version.author.session.is_some()
            }
            Evidence::Editor | Evidence::Process | Evidence::Unmarked => {
                version.author == Author::USER
            }
            Evidence::Gap => version.author == Author::UNKNOWN,
        };
        ensure!(
            "ATTR",
            pair_ok,
            "author and evidence do not go together: {record:?}"
        );
        if let Some(session) = &version.author.session {
            let key = (session.clone(), path.clone());
            if let Some(hash) = content {
                self.maybe_seen.entry(key.clone()).or_default().insert(hash);
            }
            self.last.remove(&key);
        }
        if version.evidence == Evidence::Declared {
            let session = version.author.session.clone();
            let claimed = session.as_ref().is_some_and(|session| {
                self.claims
                    .get(&(session.clone(), path.clone()))
                    .is_some_and(|claims| claims.contains(&content.into()))
            });
            ensure!("ATTR-1/14", claimed, "nobody declared this: {record:?}");
        }
        if version.evidence == Evidence::Editor {
            let reported = content.is_some_and(|hash| {
                self.saves
                    .get(&path)
                    .is_some_and(|saves| saves.contains(&hash))
            });
            ensure!("ATTR-2", reported, "no editor reported this: {record:?}");
        }
        if let Some(amended) = version.amends {
            let Some(old) = self.versions.get(&amended) else {
                return Err(format!("ATTR-11: amends nothing: {record:?}"));
            };
            ensure!(
                "ATTR-11",
                old.path == path && old.hash == content,
                "amends another content: {record:?}"
            );
            let already = old.author == version.author && old.evidence == version.evidence;
            // Where a write was claimed that nobody saw, a correction says
            // that the other came after it (ATTR-10).
            ensure!(
                "ATTR-11",
                !already || self.unobserved.contains(&path),
                "corrects nothing: {record:?}"
            );
            if already {
                self.latest.insert(path.clone(), content);
            }
            if version.author == Author::USER
                && old.author.session.is_some()
                && version.evidence != Evidence::Editor
            {
                ensure!(
                    "ATTR-4",
                    old.evidence == Evidence::Marked,
                    "only a mark's guess may be taken back: {record:?}"
                );
            }
        } else if !version.unobserved {
            self.observed(world, record, version, &path)?;
        }
        if let Some(old) = version.amends.and_then(|n| self.versions.get_mut(&n)) {
            old.author = version.author.clone();
            old.evidence = version.evidence;
        }
        if version.unobserved {
            self.unobserved.insert(path.clone());
            self.latest.insert(path.clone(), content);
        } else {
            self.unobserved.remove(&path);
        }
        self.newest.insert(path.clone(), record.n);
        self.versions.insert(
            record.n,
            Known {
                hash: content,
                author: version.author.clone(),
                evidence: version.evidence,
                path,
                edit: version.edit,
            },
        );
        Ok(())
    }

    /// A content state that was read from disk.
    fn observed(
        &mut self,
        world: &World,
        record: &Record,
        version: &VersionFact,
        path: &str,
    ) -> Verdict {
        let content = version.held.hash;
        let there = world.disk.between(path, 0, world.disk.moment);
        let at = content.map_or(At::Absent, At::File);
        ensure!(
            "version",
            there.contains(&at),
            "{record:?} never was on disk: {there:?}"
        );
        if let Some(latest) = self.latest.get(path) {
            ensure!(
                "ATTR (a version only where content differs)",
                *latest != content || version.late,
                "{record:?} repeats the latest"
            );
            if version.kind != VersionKind::Renamed {
                let kind = match (latest, content) {
                    (_, None) => VersionKind::Deleted,
                    (None, _) => VersionKind::Created,
                    _ => VersionKind::Modified,
                };
                ensure!("kind", version.kind == kind, "{record:?} after {latest:?}");
            }
        }
        self.latest.insert(path.into(), content);
        let in_gap = self.in_gap(path);
        self.unread.remove(path);
        if version.kind == VersionKind::Renamed {
            ensure!(
                "ATTR-12",
                version.from.is_some(),
                "{record:?} names no source"
            );
        }
        if self.unobserved.contains(path) && version.evidence == Evidence::Unmarked {
            // What replaced a write that nobody saw (ATTR-10).
            return Ok(());
        }
        if self.arriving.contains(path) && version.evidence == Evidence::Unmarked {
            return Ok(());
        }
        let step = self.step;
        let open: Vec<(u64, &mut OpenFile, SessionId)> = self
            .edits
            .iter_mut()
            .flat_map(|(number, edit)| {
                let recent = edit.step_ended == step;
                let session = edit.session.clone();
                edit.files
                    .get_mut(path)
                    .into_iter()
                    .flatten()
                    .filter(move |file| !file.ended || recent)
                    .map(move |file| (*number, file, session.clone()))
            })
            .collect();
        let wanted: HashOrAbsent = content.into();
        let mut declared_by = None;
        let mut marked_by: Vec<SessionId> = Vec::new();
        let mut sure = false;
        for (number, file, session) in open {
            match file.expect {
                Some(expect) => {
                    if expect == wanted && file.began != content && !file.matched {
                        if declared_by.is_none() && version.edit.is_none_or(|e| e == number) {
                            file.matched = version.evidence == Evidence::Declared;
                            declared_by = Some(session);
                        }
                        sure |= !file.ended && !self.ending.contains(&number);
                    }
                }
                None => {
                    marked_by.push(session);
                    sure |= !file.ended && !self.ending.contains(&number);
                }
            }
        }
        match version.evidence {
            Evidence::Declared => ensure!(
                "ATTR-1",
                version.late || (declared_by.is_some() && declared_by == version.author.session),
                "{record:?} without an open edit that expects it"
            ),
            Evidence::Marked => ensure!(
                "ATTR-4",
                declared_by.is_none()
                    && version
                        .author
                        .session
                        .as_ref()
                        .is_some_and(|session| marked_by.contains(session)),
                "{record:?} without an open mark"
            ),
            Evidence::Editor => ensure!(
                "ATTR-1 before ATTR-2",
                declared_by.is_none() || !sure,
                "{record:?}: expected by {declared_by:?}"
            ),
            Evidence::Unmarked => ensure!(
                "ATTR-1/4 before ATTR-7",
                !sure || (declared_by.is_none() && marked_by.is_empty()),
                "{record:?}: expected by {declared_by:?}, marked by {marked_by:?}"
            ),
            Evidence::Gap => {
                ensure!("ATTR-13", in_gap, "{record:?} without a gap");
                ensure!(
                    "ATTR-13",
                    declared_by.is_none() || !sure,
                    "{record:?}: expected by {declared_by:?}"
                );
            }
            Evidence::Command | Evidence::Process => {
                return Err(format!("no such evidence here: {record:?}"));
            }
        }
        Ok(())
    }

    fn answered(
        &mut self,
        world: &World,
        asked: &Asked,
        outcome: &Outcome,
        moment: u64,
    ) -> Verdict {
        let who = asks::session(asked.asking.session);
        let answer = match outcome {
            Outcome::Shell => return Ok(()),
            Outcome::Reply(Err(error)) => {
                self.read_over(&who, asked);
                return self.error(world, asked, error, moment, &who);
            }
            Outcome::Reply(Ok(answer)) => &answer.reply,
        };
        if let Some(until) = asked.until {
            ensure!(
                "ATTR-9 (withinMs)",
                world.now <= until,
                "answered at {} although it had time until {until}",
                world.now
            );
        }
        match answer {
            Reply::FileStatus(states) => {
                for file in &states.files {
                    self.file_state(world, asked, &who, file, moment)?;
                }
            }
            Reply::FileMention(file) => {
                self.file_state(world, asked, &who, file, moment)?;
                self.read_over(&who, asked);
                self.told.remove(&(who, text(&file.path)));
            }
            Reply::EditBegin(begun) => {
                if let Some(number) = self.edit_of(Some(&begun.edit)) {
                    self.answered_now.insert(number);
                }
                if let Ask::Begin {
                    require_read: true,
                    force: false,
                    ..
                } = &asked.asking.ask
                {
                    for file in &begun.files {
                        let path = text(&file.path);
                        let there = world.disk.between(&path, asked.moment, moment);
                        let none = BTreeSet::new();
                        let seen = self.maybe_seen.get(&(who.clone(), path.clone()));
                        let seen = seen.unwrap_or(&none);
                        let allowed = there.iter().any(|at| match at {
                            At::Absent => true,
                            At::File(hash) => seen.contains(hash),
                            At::Unreadable => false,
                        });
                        ensure!("GUARD-4", allowed, "{begun:?} although {there:?}");
                    }
                }
            }
            Reply::EditMark(marked) => {
                if let Some(number) = self.edit_of(marked.edit.as_deref()) {
                    self.answered_now.insert(number);
                } else {
                    ensure!(
                        "ATTR-14",
                        marked.late == Some(true) && marked.deadline.is_none(),
                        "{marked:?}"
                    );
                }
            }
            Reply::FileRead(read) => self.read(world, asked, &who, read.hash, moment)?,
            Reply::FileReadText(read) => self.read(world, asked, &who, read.hash, moment)?,
            Reply::ModifiedTake(taken) => {
                let (peek, explicit) = match &asked.asking.ask {
                    Ask::Take { peek, explicit, .. } => (*peek, *explicit),
                    _ => (false, false),
                };
                self.listed(world, asked, &who, &taken.changes, moment)?;
                let told = self.telling(world, asked, &taken.changes, moment);
                let all = matches!(&asked.asking.ask, Ask::Take { paths: None, .. });
                if explicit && !peek && !all {
                    // Its cursor speaks of these paths only; it is not used.
                } else if explicit && !peek {
                    self.unacked.entry(who).or_default().push(told);
                } else if !peek {
                    for (path, one) in told {
                        if one.save.is_some() {
                            self.continued.insert((who.clone(), path.clone()));
                        }
                        self.told.insert((who.clone(), path), one);
                    }
                }
            }
            Reply::ModifiedList(list) => {
                self.listed(world, asked, &who, &list.changes, moment)?;
            }
            Reply::ModifiedAck(_) => {
                // Which cursor is acknowledged is the last one; everything up
                // to it counts.
                for told in self.unacked.remove(&who).unwrap_or_default() {
                    for (path, one) in told {
                        let key = (who.clone(), path);
                        if self
                            .told
                            .get(&key)
                            .is_none_or(|old| old.moment < one.moment)
                        {
                            self.told.insert(key, one);
                        }
                    }
                }
            }
            Reply::SessionClose(_) => {
                self.last.retain(|(session, _), _| *session != who);
                self.told.retain(|(session, _), _| *session != who);
                self.unacked.remove(&who);
            }
            Reply::FileUntrack(_) => {
                if let Ask::Untrack { path } = &asked.asking.ask {
                    let key = (who, (*path).to_owned());
                    self.last.remove(&key);
                    self.told.remove(&key);
                }
            }
            Reply::EditCommit(done) => {
                // What a commit tells may count as told.
                let told = self.telling(world, asked, &done.changes, moment);
                for (path, _) in told {
                    self.last.remove(&(who.clone(), path));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn read_over(&mut self, who: &SessionId, asked: &Asked) {
        let since = if asked.asking.sync { asked.moment } else { 0 };
        let path = match &asked.asking.ask {
            Ask::Read { path, .. } | Ask::ReadText { path, .. } | Ask::Mention { path, .. } => path,
            _ => return,
        };
        if let Some(all) = self.read_asked.get_mut(&(who.clone(), (*path).to_owned()))
            && let Some(index) = all.iter().position(|(moment, _)| *moment == since)
        {
            all.remove(index);
        }
    }

    fn read(
        &mut self,
        world: &World,
        asked: &Asked,
        who: &SessionId,
        hash: Option<Hash>,
        moment: u64,
    ) -> Verdict {
        self.read_over(who, asked);
        if let touchmark_proto::Request::FileRead(read) = &asked.request
            && read.hash.is_some()
            && let Ask::Read { path, .. } = &asked.asking.ask
        {
            // It may be behind what was told.
            self.told.remove(&(who.clone(), (*path).to_owned()));
        }
        let (path, named, range) = match &asked.asking.ask {
            Ask::Read { path, named, range } => (*path, *named, *range),
            Ask::ReadText { path, range, .. } => (*path, Named::No, *range),
            _ => return Ok(()),
        };
        let key = (who.clone(), path.to_owned());
        let own = match &asked.request {
            touchmark_proto::Request::FileRead(read) => read.hash,
            _ => None,
        };
        let there = world.disk.between(path, asked.moment, moment);
        match (own, hash) {
            (Some(own), answered) => ensure!(
                "SEEN-1",
                answered == Some(own),
                "the client's hash {own:?} counts, not {answered:?}"
            ),
            (None, Some(hash)) => {
                ensure!(
                    "SYNC-1",
                    !asked.asking.sync || there.contains(&At::File(hash)),
                    "read {path}: {hash:?}, but the disk held {there:?}"
                );
            }
            (None, None) => {}
        }
        let others = self.read_asked.get(&key).is_some_and(|all| !all.is_empty());
        self.last.remove(&key);
        if let Some(hash) = hash {
            self.maybe_seen.entry(key.clone()).or_default().insert(hash);
            // A read without the client's hash is certain only if the file
            // stood still meanwhile.
            let certain = matches!(named, Named::Disk | Named::Content(_)) || there.len() == 1;
            if range.is_none() && !others && certain && asked.asking.sync {
                self.last.insert(key, hash);
            }
        }
        Ok(())
    }

    fn file_state(
        &self,
        world: &World,
        asked: &Asked,
        who: &SessionId,
        file: &FileState,
        moment: u64,
    ) -> Verdict {
        if !asked.asking.sync {
            return Ok(());
        }
        let path = text(&file.path);
        let there = world.disk.between(&path, asked.moment, moment);
        let key = (who.clone(), path.clone());
        let at = match (file.state, file.hash) {
            (State::Unreadable, _) => At::Unreadable,
            (_, Some(hash)) => At::File(hash),
            // It changed under every try to read it.
            (State::Stale | State::Unread, None)
                if there.len() > 1
                    || world.writing(&path)
                    || world
                        .unstable
                        .get(&path)
                        .is_some_and(|m| *m >= asked.moment) =>
            {
                return Ok(());
            }
            (_, None) => At::Absent,
        };
        ensure!(
            "SYNC-1",
            there.contains(&at),
            "{file:?}, but the disk held {there:?} from the question to the answer"
        );
        if file.state == State::Fresh {
            let seen = file.hash.is_some_and(|hash| {
                self.maybe_seen
                    .get(&key)
                    .is_some_and(|seen| seen.contains(&hash))
            });
            ensure!("SEEN-2", seen, "{file:?}: never seen by {who:?}");
        }
        let reading = self.read_asked.get(&key).is_some_and(|all| !all.is_empty());
        if let (Some(last), false) = (self.last.get(&key), reading) {
            let state = match at {
                At::Absent => State::Deleted,
                At::Unreadable => State::Unreadable,
                At::File(hash) if hash == *last => State::Fresh,
                At::File(_) => State::Stale,
            };
            // A content seen earlier that has come back may pass for fresh:
            // SEEN-2 says "has been seen".
            let seen_before = matches!(at, At::File(hash)
                if self.maybe_seen.get(&key).is_some_and(|seen| seen.contains(&hash)));
            ensure!(
                "SEEN-2",
                file.state == state || (state == State::Stale && seen_before),
                "{file:?}, but {who:?} last saw {last:?}"
            );
        }
        Ok(())
    }

    fn telling(
        &self,
        world: &World,
        asked: &Asked,
        changes: &[Change],
        moment: u64,
    ) -> BTreeMap<String, Told> {
        changes
            .iter()
            .map(|change| {
                let path = text(&change.path);
                let told = Told {
                    newest: self.newest.get(&path).copied().unwrap_or(0),
                    asked: asked.moment,
                    moment,
                    contents: world.disk.between(&path, asked.moment, moment),
                    save: world
                        .disk
                        .one_save(&path, asked.moment)
                        .filter(|writer| world.writes(*writer, &path)),
                };
                (path, told)
            })
            .collect()
    }

    fn listed(
        &self,
        world: &World,
        asked: &Asked,
        who: &SessionId,
        changes: &[Change],
        moment: u64,
    ) -> Verdict {
        if !asked.asking.sync {
            return Ok(());
        }
        let mut plain: BTreeSet<String> = BTreeSet::new();
        for change in changes {
            let path = text(&change.path);
            let there = world.disk.between(&path, asked.moment, moment);
            if change.lost.is_none() {
                ensure!(
                    "MOD-1",
                    plain.insert(path.clone()),
                    "{path} is listed twice"
                );
                ensure!(
                    "MOD-1",
                    change
                        .hash
                        .is_none_or(|hash| there.contains(&At::File(hash))),
                    "{change:?}, but the disk held {there:?}"
                );
                if let Some(told) = self.told.get(&(who.clone(), path.clone())) {
                    let newest = self.newest.get(&path).copied().unwrap_or(0);
                    // What is not yet a version is told as `writing`.
                    let moved =
                        change.writing == Some(true) && world.disk.changed_at(&path) > told.asked;
                    ensure!(
                        "MOD-2",
                        newest > told.newest || moved,
                        "{change:?} was taken at moment {} and nothing has happened since",
                        told.moment
                    );
                    let same = told.save.is_some()
                        && world.disk.one_save(&path, told.moment) == told.save
                        && self.continued.contains(&(who.clone(), path.clone()));
                    ensure!(
                        "MOD-2 (one save)",
                        !same,
                        "{change:?} continues a save told before"
                    );
                }
            }
        }
        let only = match &asked.asking.ask {
            Ask::Take { paths, .. } => paths.clone(),
            _ => None,
        };
        for ((session, path), last) in &self.last {
            if session != who
                || only
                    .as_ref()
                    .is_some_and(|only| !only.contains(&path.as_str()))
            {
                continue;
            }
            let key = (who.clone(), path.clone());
            if self.read_asked.get(&key).is_some_and(|all| !all.is_empty()) {
                continue;
            }
            // Its own declared writer may be in the middle (ATTR-5).
            let own = self.edits.values().any(|edit| {
                edit.session == *who
                    && edit
                        .files
                        .get(path)
                        .is_some_and(|files| files.iter().any(|file| !file.ended))
            });
            if own {
                continue;
            }
            let there = world.disk.between(path, asked.moment, moment);
            let [at] = there[..] else {
                continue;
            };
            match at {
                At::File(hash) if hash == *last => ensure!(
                    "MOD-1",
                    !plain.contains(path),
                    "{path} is listed although {who:?} has seen what is there"
                ),
                At::Unreadable => {}
                at => {
                    let told = self.told.get(&key);
                    let seen_before = matches!(at, At::File(hash)
                        if self.maybe_seen.get(&key).is_some_and(|seen| seen.contains(&hash)));
                    let new = told.is_none_or(|told| {
                        let continued = told.save.is_some()
                            && world.disk.one_save(path, told.moment) == told.save;
                        !continued
                            && !told.contents.contains(&at)
                            && world.disk.changed_at(path) > told.moment
                    });
                    ensure!(
                        "MOD-1",
                        plain.contains(path) || !new || seen_before,
                        "{path} holds {at:?}, {who:?} last saw {last:?}, and it is not listed"
                    );
                }
            }
        }
        Ok(())
    }

    fn error(
        &mut self,
        world: &World,
        asked: &Asked,
        error: &Error,
        moment: u64,
        who: &SessionId,
    ) -> Verdict {
        match error.code {
            ErrorCode::TooLate => ensure!(
                "ATTR-9 (withinMs)",
                asked.until.is_some_and(|until| world.now >= until),
                "{error:?} at {} for {asked:?}",
                world.now
            ),
            ErrorCode::NotRead | ErrorCode::Stale => {
                if let Ask::Begin { files, .. } = &asked.asking.ask {
                    let fine = files.iter().all(|(path, _)| {
                        let last = self.last.get(&(who.clone(), (*path).to_owned()));
                        let there = world.disk.between(path, asked.moment, moment);
                        there == [At::Absent] || last.is_some_and(|last| there == [At::File(*last)])
                    });
                    ensure!("GUARD-4", !fine, "{error:?} although all was seen");
                }
            }
            ErrorCode::Busy => {
                let step = self.step;
                let paths: Vec<&str> = match &asked.asking.ask {
                    Ask::Begin { files, .. } => files.iter().map(|(path, _)| *path).collect(),
                    Ask::Mark { path, .. } => vec![*path],
                    _ => Vec::new(),
                };
                let held = self.edits.values().any(|edit| {
                    edit.session != *who
                        && paths.iter().any(|path| {
                            edit.files.get(*path).is_some_and(|files| {
                                files
                                    .iter()
                                    .any(|file| !file.ended || edit.step_ended == step)
                            })
                        })
                });
                ensure!("GUARD-5", held, "{error:?} although nobody holds it");
            }
            ErrorCode::NotFound => {
                if let Ask::Read { path, .. } | Ask::ReadText { path, .. } = &asked.asking.ask {
                    let there = world.disk.between(path, asked.moment, moment);
                    ensure!(
                        "SYNC-1",
                        there.contains(&At::Absent) || !asked.asking.sync,
                        "{error:?}, but the disk held {there:?}"
                    );
                }
            }
            ErrorCode::Unreadable => {}
            // A range that begins behind the last line.
            ErrorCode::InvalidParams
                if matches!(asked.asking.ask, Ask::ReadText { range: Some(_), .. }) => {}
            ErrorCode::UnknownEdit => {
                let edit = match &asked.request {
                    touchmark_proto::Request::EditCommit(commit) => commit.edit.as_deref(),
                    touchmark_proto::Request::EditAbort(abort) => abort.edit.as_deref(),
                    _ => None,
                };
                let step = self.step;
                let open = self.edit_of(edit).and_then(|edit| self.edits.get(&edit));
                ensure!(
                    "ATTR-9",
                    open.is_none_or(|open| {
                        open.step_ended == step || open.files.values().flatten().any(|f| f.ended)
                    }),
                    "{error:?} for an open edit"
                );
            }
            _ => {
                return Err(format!("{error:?} for {:?}", asked.asking));
            }
        }
        Ok(())
    }

    /// Whether any edit is open.
    pub fn open_edits(&self) -> usize {
        self.edits
            .values()
            .filter(|edit| edit.files.values().flatten().any(|file| !file.ended))
            .count()
    }

    /// The newest fact's author and grounds on a path.
    pub fn newest_on(&self, path: &str) -> Option<(Option<Hash>, &Author, Evidence, Option<u64>)> {
        let newest = self.newest.get(path)?;
        let known = self.versions.get(newest)?;
        Some((known.hash, &known.author, known.evidence, known.edit))
    }
}
