//! The slow obvious model: what every step must bring about when each is
//! drained before the next. Written from docs/semantics.md alone; where the text
//! leaves something open the model allows every reading of it.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_engine::VersionFact;
use touchmark_proto::{
    Author, Error, ErrorCode, Evidence, FileState, Hash, HashOrAbsent, Millis, SessionId, State,
};

use crate::asks;
use crate::op::Range;

/// Lines as bits; every bit is the whole file.
pub const WHOLE: u64 = u64::MAX;

pub fn bits(range: Range) -> u64 {
    match range {
        None => WHOLE,
        Some((start, end)) => (start..=end.min(63)).fold(0, |all, line| all | 1 << (line - 1)),
    }
}

fn first_lines(count: u32) -> u64 {
    if count == 0 {
        0
    } else {
        bits(Some((1, count)))
    }
}

/// What reaches the last line reaches the end.
pub fn to_the_end(ranges: u64, lines: Option<u32>) -> u64 {
    match lines {
        Some(count) if ranges >> count.saturating_sub(1).min(63) != 0 => {
            ranges | !((ranges & ranges.wrapping_neg()) - 1)
        }
        _ => ranges,
    }
}

#[derive(Clone, Debug)]
pub struct SeenContent {
    pub hash: Hash,
    /// Not known of a content that only the client has seen.
    pub lines: Option<u32>,
    pub ranges: u64,
    pub resident: u64,
    /// Its own write: all of it is believed until its context is cut.
    pub written: bool,
}

impl SeenContent {
    fn believed(&self) -> u64 {
        if self.written {
            self.ranges
        } else {
            self.resident
        }
    }
}

/// What one session knows of one path.
#[derive(Clone, Debug, Default)]
pub struct Copy {
    /// Against which an unread file is compared.
    pub baseline: Option<Hash>,
    pub seen: Vec<SeenContent>,
    pub ever_seen: bool,
    /// The last it saw is what it wrote itself.
    pub own_last: bool,
    /// The last content seen; `None` also where that was a deletion of its own.
    pub last: Option<Hash>,
    pub reads: u32,
    /// Told for certain up to this fact; perhaps up to that one.
    pub told: u64,
    pub told_perhaps: u64,
    /// Reads that may or may not count as such: mentions with a hash.
    pub blurred_reads: bool,
    /// The text leaves the state open.
    pub blurred: bool,
    /// A mark of its own without a hash is open and has been written under.
    pub marked: bool,
    pub invalidated: bool,
    /// The last read was of other bytes than the file held (SEEN-1).
    pub foreign: bool,
    /// Evicted since the last read.
    pub evicted: bool,
    /// Came by a rename and was never named (ATTR-12).
    pub unnamed: bool,
    /// Versions lost, each with the version that took its place.
    pub lost: BTreeMap<u64, u64>,
    /// It was told of an absence that may not be recorded yet.
    pub told_absence: bool,
    /// Its baseline is an absence that was not recorded.
    pub loose_baseline: bool,
    /// What it saw last is that the file is gone: it removed it.
    pub removed: bool,
    /// Contents of which the text does not say whether they were seen.
    pub perhaps: BTreeSet<Hash>,
}

impl Copy {
    pub fn see(&mut self, hash: Hash, lines: Option<u32>, ranges: u64, resident: bool) {
        let count = lines.or_else(|| self.of(hash).and_then(|seen| seen.lines));
        let ranges = to_the_end(ranges, count);
        self.ever_seen = true;
        self.last = Some(hash);
        let found = self.seen.iter().position(|seen| seen.hash == hash);
        if lines.is_none() && ranges != WHOLE {
            // Where the file ends, only the client knows.
            self.blurred = true;
        }
        self.own_last = !resident;
        self.removed = false;
        if resident {
            for seen in &mut self.seen {
                if seen.hash != hash {
                    seen.ranges &= !ranges;
                    seen.resident &= !ranges;
                }
            }
            // Of what no line is left, nothing is believed.
            self.seen
                .retain(|seen| seen.hash == hash || seen.ranges != 0);
        }
        let found = found.and(self.seen.iter().position(|seen| seen.hash == hash));
        let index = found.unwrap_or_else(|| {
            self.seen.push(SeenContent {
                hash,
                lines,
                ranges: 0,
                resident: 0,
                written: !resident,
            });
            self.seen.len() - 1
        });
        let entry = &mut self.seen[index];
        entry.lines = count;
        entry.ranges |= ranges;
        if resident {
            entry.resident |= ranges;
        }
    }

    /// Its own write: seen, not resident, and what was resident no longer is.
    pub fn wrote(&mut self, content: Option<Hash>) {
        self.seen.clear();
        self.ever_seen = true;
        self.evicted = true;
        match content {
            Some(hash) => self.see(hash, None, WHOLE, false),
            None => {
                self.last = None;
                self.own_last = true;
                self.removed = true;
            }
        }
    }

    /// A write is confirmed, perhaps after the session has seen or written
    /// what is there now.
    pub fn confirmed(&mut self, content: Option<Hash>, now: HashOrAbsent) {
        let newer = self.ever_seen && HashOrAbsent::from(self.last) == now;
        if HashOrAbsent::from(content) == now || !newer {
            self.wrote(content);
        }
    }

    /// The same of a write that is only taken for its own: should it prove
    /// not to be, the session believes what it did before.
    pub fn wrote_perhaps(&mut self, content: Option<Hash>) {
        let before: Vec<Hash> = self.seen.iter().map(|seen| seen.hash).collect();
        self.wrote(content);
        self.perhaps
            .extend(before.into_iter().filter(|hash| Some(*hash) != content));
    }

    pub fn of(&self, hash: Hash) -> Option<&SeenContent> {
        self.seen.iter().find(|seen| seen.hash == hash)
    }

    /// Lines that it believes of other contents.
    fn uncovered(&self, now: Option<Hash>) -> u64 {
        self.seen
            .iter()
            .filter(|seen| Some(seen.hash) != now)
            .fold(0, |all, seen| all | seen.believed())
    }

    /// Lines are resident of a content whose length is not known.
    fn unmeasured(&self) -> bool {
        self.seen
            .iter()
            .any(|seen| seen.resident != 0 && seen.lines.is_none())
    }

    fn open(&self) -> bool {
        self.blurred || self.marked
    }

    /// Every state the rules allow (SEEN-2).
    pub fn states(&self, now: Option<Hash>) -> Vec<State> {
        if !self.ever_seen {
            let mut all = vec![State::Unread];
            if self.open() || !self.perhaps.is_empty() {
                all.extend([State::Fresh, State::Stale, State::Deleted]);
            }
            return all;
        }
        let mut all = Vec::new();
        if self.invalidated {
            all.push(State::Unread);
        }
        let Some(hash) = now else {
            all.push(State::Deleted);
            return all;
        };
        let fresh = self.of(hash).is_some_and(|seen| seen.ranges != 0) && self.uncovered(now) == 0;
        let open = self.open() || self.perhaps.contains(&hash);
        let known = self.of(hash).is_some();
        if fresh || open || (known && self.unmeasured()) {
            all.push(State::Fresh);
        }
        if !fresh || open {
            all.push(State::Stale);
        }
        all
    }

    pub fn verdicts(&self, hash: Hash, range: Range, lines: u32) -> Vec<&'static str> {
        let wanted = to_the_end(bits(range), Some(lines));
        let there = wanted & first_lines(lines);
        let of = self.of(hash).cloned();
        let resident = of.as_ref().map_or(0, |seen| seen.resident);
        let seen_before = of.is_some();
        let mut all = Vec::new();
        if self.blurred_reads || self.open() {
            return vec!["First", "Repeat", "Extends", "Changed"];
        }
        if self.reads == 0 {
            all.push("First");
            if self.ever_seen && !self.invalidated {
                all.extend(["Changed", "Extends"]);
            }
            return all;
        }
        let inside = resident & wanted == wanted;
        if inside {
            all.push("Repeat");
            if self.last != Some(hash) {
                all.push("Changed");
            }
            return all;
        }
        if resident & there == there && resident != 0 {
            all.push("Repeat");
        }
        if self.evicted {
            // What the first read after an eviction is called is left open.
            all.push("First");
        }
        if self.last == Some(hash) {
            all.push("Extends");
            if self.evicted {
                all.push("Changed");
            }
        } else {
            all.push("Changed");
            if seen_before {
                all.push("Extends");
            }
        }
        all
    }
}

#[derive(Clone, Debug)]
pub struct EditFile {
    pub path: &'static str,
    pub expect: Option<HashOrAbsent>,
    pub began: Option<Hash>,
    pub matched: bool,
    /// A version of somebody else's went under by this edit.
    pub clobbered: bool,
    /// It was this very edit's version.
    pub clobbered_surely: bool,
    pub done: bool,
    /// Versions this edit claims, or may claim, by its mark alone.
    pub marked: Vec<u64>,
}

#[derive(Clone, Debug)]
pub struct Edit {
    pub number: u64,
    pub session: usize,
    pub files: Vec<EditFile>,
    pub deadline: Millis,
    pub one_shot: bool,
    /// Named by a call: it keeps nobody out.
    pub call: bool,
}

#[derive(Clone, Debug)]
pub struct Version {
    pub n: u64,
    pub hash: Option<Hash>,
    pub author: Author,
    pub evidence: Evidence,
    pub time: Millis,
}

#[derive(Clone, Debug, Default)]
pub struct Log {
    pub latest: Option<Hash>,
    pub versions: Vec<Version>,
    /// The newest fact about the path, by whom it counts: corrections count
    /// for the session that lost the change.
    pub newest: u64,
    pub newest_for: BTreeMap<usize, u64>,
    /// Gone, and not yet recorded as gone: who it may be.
    pub absence: Vec<(Author, Evidence)>,
    /// Came back under watch after nobody looked.
    pub resumed: bool,
}

#[derive(Clone, Debug)]
pub struct Report {
    pub path: &'static str,
    pub hash: Hash,
    pub time: Millis,
    pub used: bool,
}

#[derive(Default)]
pub struct Model {
    pub logs: BTreeMap<&'static str, Log>,
    pub copies: BTreeMap<(usize, &'static str), Copy>,
    pub edits: Vec<Edit>,
    pub reports: Vec<Report>,
    /// The text does not say what holds here; not looked at any more.
    pub ignored: BTreeSet<&'static str>,
}

pub fn index_of(session: &SessionId) -> usize {
    (0..3).find(|n| asks::session(*n) == *session).unwrap_or(0)
}

impl Model {
    pub fn open_on<'a>(
        &'a mut self,
        path: &'a str,
    ) -> impl Iterator<Item = (usize, bool, &'a mut EditFile)> {
        self.edits.iter_mut().flat_map(move |edit| {
            let (session, one_shot) = (edit.session, edit.one_shot);
            edit.files
                .iter_mut()
                .filter(move |file| file.path == path && !file.done)
                .map(move |file| (session, one_shot, file))
        })
    }

    pub fn held_by_other(&mut self, path: &str, session: usize) -> bool {
        self.edits.iter().any(|edit| {
            let open = |file: &EditFile| file.path == path && !file.done;
            edit.session != session && !edit.call && edit.files.iter().any(open)
        })
    }

    pub fn open_by(&mut self, path: &str, session: usize) -> bool {
        self.open_on(path).any(|(other, _, _)| other == session)
    }

    /// ATTR-1 to ATTR-7 for a closed change, in their order. Marks and reports
    /// are used up if it is to be kept.
    pub fn attribute(
        &mut self,
        path: &'static str,
        now: Millis,
        content: Option<Hash>,
        gap: bool,
        keep: bool,
    ) -> Attributed {
        let wanted: HashOrAbsent = content.into();
        let declared = self
            .open_on(path)
            .find(|(_, _, file)| {
                file.expect == Some(wanted) && file.began != content && !file.matched
            })
            .map(|(session, _, file)| {
                file.matched = keep;
                session
            });
        if let Some(session) = declared {
            return Attributed {
                author: Author::agent(asks::session(session)),
                evidence: Evidence::Declared,
            };
        }
        if gap {
            return Attributed {
                author: Author::UNKNOWN,
                evidence: Evidence::Gap,
            };
        }
        if let Some(report) = self.reports.iter_mut().find(|report| {
            report.path == path
                && Some(report.hash) == content
                && !report.used
                && now.saturating_sub(report.time) <= 2_000
        }) {
            report.used = keep;
            return Attributed {
                author: Author::USER,
                evidence: Evidence::Editor,
            };
        }
        let marked = self
            .open_on(path)
            .find(|(_, one_shot, file)| *one_shot && file.expect.is_none())
            .map(|(session, ..)| session);
        if let Some(session) = marked {
            return Attributed {
                author: Author::agent(asks::session(session)),
                evidence: Evidence::Marked,
            };
        }
        Attributed {
            author: Author::USER,
            evidence: Evidence::Unmarked,
        }
    }

    /// Takes in a version that was recorded as allowed.
    pub fn recorded(&mut self, path: &'static str, n: u64, time: Millis, fact: &VersionFact) {
        if fact.held.hash.is_some() {
            for copy in self
                .copies
                .iter_mut()
                .filter_map(|((_, held), copy)| (*held == path).then_some(copy))
            {
                copy.told_absence = false;
            }
        }
        let log = self.logs.entry(path).or_default();
        log.newest = n;
        log.latest = fact.held.hash;
        log.absence.clear();
        log.resumed = false;
        log.versions.push(Version {
            n,
            hash: fact.held.hash,
            author: fact.author.clone(),
            evidence: fact.evidence,
            time,
        });
        for session in fact.candidates.iter().map(index_of) {
            for (other, one_shot, file) in self.open_on(path) {
                if other == session && !one_shot && file.expect.is_none() {
                    file.marked.push(n);
                }
            }
            let copy = self.copies.entry((session, path)).or_default();
            copy.marked = true;
        }
        if let Some(session) = &fact.author.session {
            let session = index_of(session);
            if fact.evidence == Evidence::Declared {
                self.copies
                    .entry((session, path))
                    .or_default()
                    .wrote(fact.held.hash);
            } else if fact.evidence == Evidence::Marked {
                let mut one_shot_done = false;
                if let Some((_, one_shot, file)) = self
                    .open_on(path)
                    .find(|(other, _, file)| *other == session && file.expect.is_none())
                {
                    file.marked.push(n);
                    if one_shot && fact.held.hash.is_some() {
                        file.done = true;
                        one_shot_done = true;
                    }
                }
                let copy = self.copies.entry((session, path)).or_default();
                if one_shot_done {
                    copy.wrote_perhaps(fact.held.hash);
                } else {
                    copy.marked = true;
                }
            }
        }
    }

    /// What a correction changes.
    pub fn amended(&mut self, path: &'static str, n: u64, fact: &VersionFact) {
        let amended = fact.amends;
        let log = self.logs.entry(path).or_default();
        let Some(version) = log
            .versions
            .iter_mut()
            .find(|version| Some(version.n) == amended)
        else {
            return;
        };
        let before = version.author.clone();
        if before == fact.author && version.evidence == fact.evidence {
            // It came after a write that nobody saw: it goes by this number.
            version.n = n;
            // To whom that is news is left open.
            for ((session, held), copy) in &mut self.copies {
                if *held == path {
                    log.newest_for.insert(*session, n);
                    copy.told_perhaps = u64::MAX;
                }
            }
        }
        version.author = fact.author.clone();
        version.evidence = fact.evidence;
        if let Some(session) = &before.session
            && !fact.author.is(session)
        {
            log.newest_for.insert(index_of(session), n);
            // Whoever did not write it destroyed nothing by it.
            if let Some(copy) = self.copies.get_mut(&(index_of(session), path)) {
                copy.perhaps.extend(fact.held.hash);
                copy.lost.retain(|_, by| Some(*by) != amended);
            }
        }
        let is_latest = log.versions.last().map(|last| Some(last.n) == amended) == Some(true);
        if fact.evidence == Evidence::Declared
            && let Some(session) = &fact.author.session
        {
            let copy = self.copies.entry((index_of(session), path)).or_default();
            if is_latest {
                copy.wrote(fact.held.hash);
            } else {
                copy.blurred = true;
            }
        }
    }

    pub fn newest_for(&self, session: usize, path: &str) -> u64 {
        self.logs.get(path).map_or(0, |log| {
            let corrected = log.newest_for.get(&session).copied().unwrap_or(0);
            log.newest.max(corrected)
        })
    }

    /// Whether `modified/take` must list the path, may, or must not (MOD-1).
    pub fn listing(&self, session: usize, path: &'static str, now: Option<Hash>) -> Listing {
        let Some(copy) = self.copies.get(&(session, path)) else {
            return Listing::Never;
        };
        // Whether a copy that was never read is news is left open.
        if !copy.ever_seen && copy.loose_baseline
            || copy.unnamed && (now.is_none() || !copy.ever_seen)
        {
            return Listing::Perhaps;
        }
        // Its own declared writer may be in the middle (ATTR-5).
        let open = |file: &&EditFile| file.path == path && !file.done;
        let edits = self.edits.iter().filter(|edit| edit.session == session);
        let open: Vec<&EditFile> = edits
            .flat_map(|edit| edit.files.iter().filter(open))
            .collect();
        let writes = !open.is_empty();
        let own = self
            .logs
            .get(path)
            .and_then(|log| log.versions.last())
            .is_some_and(|last| last.author.is(&asks::session(session)));
        // Its own write of now stands in place of what it read; that is its
        // word until the mark has ended.
        let marks = open.iter().any(|file| file.expect.is_none());
        if own && marks && copy.foreign {
            return Listing::Perhaps;
        }
        // Told before it was recorded, it need not be told again.
        if (writes || copy.told_absence) && now.is_none() {
            return Listing::Perhaps;
        }
        let states = copy.states(now);
        let wants = |state: &State| match state {
            State::Stale | State::Deleted => true,
            State::Unread | State::Unknown => copy.baseline != now,
            State::Fresh | State::Unreadable => false,
        };
        let newest = self.newest_for(session, path);
        let log = self.logs.get(path);
        let pending =
            log.is_some_and(|log| now.is_none() && log.latest.is_some()) && !copy.told_absence;
        let told = newest <= copy.told && !pending && !copy.foreign;
        if states.iter().all(|state| !wants(state))
            || told
            || (own && !pending && !copy.open() && !copy.foreign)
        {
            return Listing::Never;
        }
        let partly = now
            .and_then(|hash| copy.of(hash))
            .is_some_and(|seen| seen.ranges != 0);
        let sure = states.iter().all(wants)
            && (newest > copy.told_perhaps || pending || copy.foreign)
            && (!own || copy.foreign)
            && !partly
            && !copy.open()
            && !copy.invalidated
            && (newest > 0 || copy.foreign)
            && !(copy.removed && now.is_none());
        if sure {
            Listing::Must
        } else {
            Listing::Perhaps
        }
    }

    /// Whether the edit may begin, and how else it may be refused.
    pub fn refusals(
        &mut self,
        session: usize,
        files: &[(&'static str, Option<Hash>)],
        guarded: bool,
    ) -> Vec<ErrorCode> {
        let mut all = Vec::new();
        for (path, now) in files {
            if self.held_by_other(path, session) {
                all.push(ErrorCode::Busy);
            }
            let Some(hash) = now else {
                continue;
            };
            if !guarded {
                continue;
            }
            match self.copies.get(&(session, *path)) {
                Some(copy) if copy.ever_seen => {
                    if copy.of(*hash).is_none() {
                        all.push(ErrorCode::Stale);
                    }
                }
                _ => all.push(ErrorCode::NotRead),
            }
        }
        all
    }

    pub fn check_state(
        &self,
        session: usize,
        path: &'static str,
        now: Option<Hash>,
        lines: u32,
        file: &FileState,
    ) -> Result<(), String> {
        if self.ignored.contains(path) {
            return Ok(());
        }
        if file.hash != now {
            return Err(format!("SYNC-1: {file:?} but the disk holds {now:?}"));
        }
        if now.is_some() && file.line_count != lines {
            return Err(format!("FileState: {file:?} has {lines} lines"));
        }
        let nothing = Copy::default();
        let copy = self.copies.get(&(session, path)).unwrap_or(&nothing);
        let states = copy.states(now);
        if !states.contains(&file.state) {
            return Err(format!("SEEN-2: {file:?}, not one of {states:?}\n{copy:?}"));
        }
        if copy.open() || copy.invalidated {
            return Ok(());
        }
        if let Some(hash) = now.filter(|hash| !copy.perhaps.contains(hash)) {
            let may = copy.of(hash).is_some();
            if file.may_edit != may {
                return Err(format!("SEEN-3: {file:?}, may edit: {may}\n{copy:?}"));
            }
            let resident = copy.of(hash).map_or(0, |seen| seen.resident);
            if file.state == State::Fresh
                && copy.last == Some(hash)
                && ((resident == 0 && file.resident) || (resident == WHOLE && !file.resident))
            {
                return Err(format!("SEEN-4: resident {resident:x}: {file:?}\n{copy:?}"));
            }
            if file.state == State::Stale && copy.last == Some(hash) && !copy.unmeasured() {
                let told = file
                    .stale_ranges
                    .iter()
                    .flatten()
                    .fold(0, |all, range| all | bits(Some((range.start, range.end))));
                let due = copy.uncovered(now);
                let shown = first_lines(lines.max(1));
                if told & shown != due & shown {
                    return Err(format!(
                        "SEEN-2: stale lines {due:b}, not {told:b}: {file:?}\n{copy:?}"
                    ));
                }
            }
        }
        if !copy.blurred_reads && file.read_count != copy.reads {
            return Err(format!("SEEN: read {} times: {file:?}", copy.reads));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    Must,
    Perhaps,
    Never,
}

#[derive(Clone, Debug)]
pub struct Attributed {
    pub author: Author,
    pub evidence: Evidence,
}

/// A refusal is one of those allowed, and nothing is refused without need.
pub fn check_refusal(allowed: &[ErrorCode], answer: Result<(), &Error>) -> Result<bool, String> {
    match answer {
        Ok(()) if allowed.is_empty() => Ok(true),
        Ok(()) => Err(format!("GUARD-4/5: begun although {allowed:?}")),
        Err(error) if allowed.contains(&error.code) => Ok(false),
        Err(error) => Err(format!("GUARD-4/5: {error:?}, allowed are {allowed:?}")),
    }
}
