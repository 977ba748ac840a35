//! What the commands of windows may have written, as the kernel told it before
//! each write (ATTR-3). It is kept until the next restart.

mod report;
#[cfg(test)]
mod tests;
mod watched;

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::daemon::SessionWitnessed;
use touchmark_proto::{Millis, RelPath, SessionId};

use crate::effect::MarkedFile;
use crate::input::{Mark, Marker, NameEvent, Prior, Subtree, SweptFile};
use crate::ledger::record::Held;
use report::Reports;
pub(crate) use watched::Reported;
use watched::Watched;

/// The maximum number of names that are kept for a command. One that writes
/// more may have written any file.
const NAMES: usize = 200_000;

/// The maximum number of marked files that are looked at one by one.
const LISTED: usize = 20_000;

/// How long a mark may be without effect, in milliseconds: the call may have
/// failed. Then the file is looked at, and the mark counts no more.
pub(crate) const UNUSED: Millis = 1_000;

/// The precision of the start times of processes, in milliseconds.
const SLACK: Millis = 50;

/// Whose processes a witness sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// The command of the window with this number.
    Window(u64),
    /// An agent, with the commands of the windows that its hooks open.
    Agent(u64),
}

/// The witnesses of command windows.
#[derive(Clone, Debug, Default)]
pub struct Witnesses {
    of: BTreeMap<Seen, Witness>,
    /// Windows whose commands are among what another witness sees.
    below: BTreeMap<u64, Below>,
    /// What was seen of windows that have ended.
    ended: Reports,
}

/// A window whose command is among what a witness sees.
#[derive(Clone, Debug)]
struct Below {
    of: Seen,
    /// When the command began.
    since: Millis,
    /// Why its witness has not seen all of its writes, for people; `None` if the
    /// witness itself says so or not.
    gap: Option<String>,
}

/// What is known of the processes that one witness sees.
#[derive(Clone, Debug)]
struct Witness {
    sight: Sight,
    /// The process of an agent, at whose end no window needs the witness any
    /// more; `None` for a window's.
    process: Option<u32>,
    /// The names that they may have written.
    names: BTreeMap<RelPath, Marks>,
    /// When a directory was last marked that is renamed.
    moved: Option<Millis>,
}

/// Whether all writes are known.
#[derive(Clone, Debug)]
enum Sight {
    /// The witness has not reported yet that it began.
    Awaited,
    /// They are.
    Whole,
    /// They are not: why, for people.
    Incomplete(String),
}

/// The marks of one name.
#[derive(Clone, Debug)]
struct Marks {
    /// When the last mark was reported.
    last: Millis,
    watched: Watched,
    /// Whether names below it may be others since.
    changes_below: bool,
}

/// A change of a file, for [`Witnesses::judge`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// Whether the file is gone.
    pub is_removal: bool,
    /// The inode number of the file that is there; `None` if it is not known.
    pub inode: Option<u64>,
    /// When the file that is there was changed, by its own time; `None` if it is
    /// not known.
    pub changed: Option<Millis>,
    /// Whether any process may have the file open for writing.
    pub open: bool,
    /// Whether another author has changed the file since the window began.
    pub is_contested: bool,
}

impl Change {
    /// Returns the change of an untracked file.
    pub(crate) fn of(swept: &SweptFile) -> Self {
        Self {
            is_removal: swept.after.hash.is_none(),
            inode: swept.inode,
            changed: swept.changed_ms,
            open: swept.is_open,
            is_contested: false,
        }
    }

    /// The change of a name that the file has lost.
    pub(crate) const GONE: Self = Self {
        is_removal: true,
        inode: None,
        changed: None,
        open: false,
        is_contested: false,
    };
}

/// Whether a window's command made a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    NotWritten,
    Written,
    Unknown,
}

impl Witnesses {
    /// Announces a witness for a window. Nothing is known until it has reported
    /// that it began.
    pub(crate) fn announce(&mut self, window: u64) {
        self.of.insert(Seen::Window(window), Witness::new(None));
    }

    /// Announces a witness for the agent with this process. Returns whose it is.
    pub(crate) fn announce_agent(&mut self, process: u32, now: Millis) -> Seen {
        let last = self.of.keys().rev().find_map(|seen| match seen {
            Seen::Agent(number) => Some(*number),
            Seen::Window(_) => None,
        });
        // The number is of no agent of before a restart, whose processes may live.
        let seen = Seen::Agent(now.max(last.map_or(0, |last| last + 1)));
        self.of.insert(seen, Witness::new(Some(process)));
        seen
    }

    /// Notes that a process has ended: it may be a witnessed agent's.
    pub(crate) fn process_ended(&mut self, pid: u32) {
        for witness in self.of.values_mut() {
            witness.process = witness.process.filter(|process| *process != pid);
        }
    }

    /// Notes that the processes of a window's command, which begins now, are among
    /// those that the witness of `outer` sees. No effect if `outer` has none.
    pub(crate) fn is_below(&mut self, window: u64, outer: Seen, now: Millis) {
        let below = match outer {
            // What goes on after its command is older than its window.
            Seen::Window(outer) => self.below.get(&outer).cloned(),
            Seen::Agent(_) => None,
        };
        let below = below.unwrap_or(Below {
            of: outer,
            since: match outer {
                // It saw nothing before that command.
                Seen::Window(_) => 0,
                Seen::Agent(_) => now,
            },
            gap: None,
        });
        if self.of.contains_key(&below.of) {
            self.below.insert(window, below);
        }
    }

    /// Returns whether any window needs what a witness has seen or stored.
    pub(crate) fn is_used(&self, seen: Seen) -> bool {
        let mut below = self.below.values();
        matches!(seen, Seen::Window(_)) || below.any(|below| below.of == seen)
    }

    /// Returns whether a witness is still needed.
    pub(crate) fn has(&self, seen: Seen) -> bool {
        self.of.contains_key(&seen)
    }

    /// Returns whether a window has a witness.
    pub(crate) fn is_seen(&self, window: u64) -> bool {
        self.seen_by(window).is_some()
    }

    /// Notes that a witness sees its processes from their start.
    pub(crate) fn began(&mut self, seen: Seen) {
        if let Some(witness) = self.of.get_mut(&seen)
            && let Sight::Awaited = witness.sight
        {
            witness.sight = Sight::Whole;
        }
    }

    /// Notes that a witness does not see every write. Of an agent, this concerns
    /// the commands that run now, unless it `lasts`.
    pub(crate) fn lose(&mut self, seen: Seen, why: String, lasts: bool) {
        match seen {
            Seen::Agent(_) if !lasts => self.lose_open(seen, &why),
            _ => {
                if let Some(witness) = self.of.get_mut(&seen) {
                    witness.lose(why);
                }
            }
        }
    }

    fn lose_open(&mut self, seen: Seen, why: &str) {
        // The first reason explains the most.
        let open = self.below.values_mut().filter(|below| below.of == seen);
        for below in open.filter(|below| below.gap.is_none()) {
            below.gap = Some(why.to_owned());
        }
    }

    /// Adds a mark of a witness, at this time. `file` has the marked name.
    /// `is_recorded`: what had the name is what is recorded of the file, or nothing
    /// is.
    pub(crate) fn mark(
        &mut self,
        seen: Seen,
        mut mark: Mark,
        file: RelPath,
        at: Reported,
        is_recorded: bool,
    ) {
        if !self.is_used(seen) {
            // The witness keeps no bytes that no window needs.
            mark.prior = Prior::Unknown;
        }
        let Some(witness) = self.of.get_mut(&seen) else {
            return;
        };
        if mark.subtree == Subtree::Moved {
            witness.moved = Some(at.now);
        }
        if file != mark.name {
            witness.add(mark.name.clone(), &mark, at, false);
        }
        witness.add(file, &mark, at, is_recorded);
        if witness.names.len() <= NAMES {
            return;
        }
        const MANY: &str = "it wrote too many files";
        if let Seen::Window(_) = seen {
            witness.names.clear();
            return witness.lose(MANY.to_owned());
        }
        // What an agent's earlier commands wrote is forgotten first.
        let below = self.below.values().filter(|below| below.of == seen);
        let since = below.map(|below| below.since).min().unwrap_or(at.now);
        witness.names.retain(|_, marks| marks.last + SLACK >= since);
        if witness.names.len() > NAMES / 2 {
            witness.names.clear();
            self.lose_open(seen, MANY);
        }
    }

    /// Notes what happened to a watched name. `told`: when the witness learned it.
    pub(crate) fn happened(
        &mut self,
        seen: Seen,
        (name, event): (&RelPath, NameEvent),
        told: Millis,
        next_read: u64,
    ) {
        let marks = self.of.get_mut(&seen).and_then(|it| it.names.get_mut(name));
        if let Some(marks) = marks {
            marks.watched.happened(event, told, next_read);
        }
    }

    /// Notes that it is not known what happened to the names marked until now.
    pub(crate) fn missed(&mut self, seen: Seen) {
        let names = self.of.get_mut(&seen).map(|witness| &mut witness.names);
        let all = names.into_iter().flat_map(BTreeMap::values_mut);
        all.for_each(|marks| marks.watched.missed());
    }

    /// Returns the files that witnesses have marked.
    pub(crate) fn all_marked(&self) -> Vec<MarkedFile> {
        let all = self.of.iter();
        all.flat_map(|(seen, witness)| witness.marked(*seen, 0))
            .take(LISTED)
            .collect()
    }

    /// Returns the files that a window's command may have written.
    /// `None` if it is not known which, or if there are too many.
    pub(crate) fn marked(&self, window: u64) -> Option<Vec<MarkedFile>> {
        let since = self.since(window);
        let witness = self.whole(window)?;
        if witness.moved.is_some_and(|moved| moved + SLACK >= since) {
            return None;
        }
        let marked: Vec<MarkedFile> = witness.marked(self.root(window), since).collect();
        (marked.len() <= LISTED).then_some(marked)
    }

    /// Returns whether a witness sees all writes so far, or has yet to begin.
    pub(crate) fn may_tell(&self, seen: Seen) -> bool {
        let seen = match seen {
            Seen::Window(window) => self.root(window),
            agent => agent,
        };
        let sight = self.of.get(&seen).map(|witness| &witness.sight);
        matches!(sight, Some(Sight::Awaited | Sight::Whole))
    }

    /// Notes that the result of this read of a file is looked at.
    pub(crate) fn read(&mut self, path: &RelPath, ticket: u64) {
        self.each(path, |watched| watched.read(ticket));
    }

    /// Notes that a content of a file was recorded.
    pub(crate) fn recorded(&mut self, path: &RelPath, held: Held) {
        self.each(path, |watched| watched.recorded(held));
    }

    /// Notes that a look has found a content of an untracked file.
    pub(crate) fn swept(&mut self, path: &RelPath, held: Held) {
        self.each(path, |watched| watched.swept(held));
    }

    /// Notes that a file was found as it is recorded.
    pub(crate) fn unchanged(&mut self, path: &RelPath) {
        self.each(path, Watched::unchanged);
    }

    /// Returns whether a path has marks that were without effect for long.
    pub(crate) fn has_old(&self, path: &RelPath, now: Millis) -> bool {
        let mut of_path = { self.of.values() }.filter_map(|witness| witness.names.get(path));
        of_path.any(|marks| marks.watched.is_old(now))
    }

    /// Lets these marks count until the read with this number.
    pub(crate) fn count_until(&mut self, path: &RelPath, now: Millis, ticket: u64) {
        self.each(path, |watched| watched.count_until(now, ticket));
    }

    /// Returns whether a window's command has not written a file with these
    /// names. `false` if that is not known.
    pub fn rules_out<'a>(&self, window: u64, mut names: impl Iterator<Item = &'a RelPath>) -> bool {
        let Some(witness) = self.whole(window) else {
            return false;
        };
        let since = self.since(window);
        let is_marked = |name: &RelPath| {
            let marks = witness.names.get(name);
            marks.is_some_and(|marks| marks.last + SLACK >= since)
        };
        !names.any(|name| is_marked(name) || witness.moved(name))
    }

    /// Returns whether a window's command, which began at `began`, has made a
    /// change of a file with these names.
    pub(crate) fn judge(
        &self,
        window: u64,
        began: Millis,
        names: &[&RelPath],
        change: Change,
    ) -> Verdict {
        let since = self.since(window);
        let Some(witness) = self.whole(window) else {
            return Verdict::Unknown;
        };
        if names.iter().any(|name| witness.moved(name)) {
            return Verdict::Unknown;
        }
        let marks = names.iter().filter_map(|name| witness.names.get(*name));
        let mut marked = marks.filter(|marks| marks.last + SLACK >= since);
        let Some(marks) = marked.next() else {
            return Verdict::NotWritten;
        };
        let watched = &marks.watched;
        if names.len() > 1 {
            Verdict::Unknown
        } else if watched.is_clear() && !change.open {
            Verdict::NotWritten
        } else if watched.explains(change, |process| is_own(process, began)) {
            Verdict::Written
        } else {
            Verdict::Unknown
        }
    }

    /// Returns whether a window's command, which began at `began`, has made a
    /// change of an untracked file.
    pub(crate) fn judge_untracked(&self, window: u64, began: Millis, swept: &SweptFile) -> Verdict {
        let of_name = |name, change| self.judge(window, began, &[name], change);
        let to = of_name(&swept.path, Change::of(swept));
        let from = { swept.from.as_ref() }.map(|from| of_name(from, Change::GONE));
        match (to, from) {
            (to, None) => to,
            (to, Some(from)) if to == from => to,
            _ => Verdict::Unknown,
        }
    }

    /// Returns since when a window's marks count.
    fn since(&self, window: u64) -> Millis {
        self.below.get(&window).map_or(0, |below| below.since)
    }

    /// Returns whether one witness sees the commands of both windows.
    pub(crate) fn is_one(&self, first: u64, second: u64) -> bool {
        self.root(first) == self.root(second)
    }

    /// Returns whether a window has the witness that sees the command of another
    /// window, which runs below its own.
    pub(crate) fn is_around(&self, outer: u64, window: u64) -> bool {
        outer != window && self.root(window) == Seen::Window(outer)
    }

    /// Forgets marks without effect: a read with this number found the file as
    /// it is recorded, and no process has it open.
    pub(crate) fn looked(&mut self, path: &RelPath, ticket: u64) {
        self.each(path, |watched| watched.looked(ticket));
    }

    /// Keeps what is known of a session's window that ends now.
    pub(crate) fn note_end(
        &mut self,
        window: u64,
        session: &SessionId,
        began: Millis,
        now: Millis,
    ) {
        match self.is_seen(window) {
            true => {
                let gap = self.why_incomplete(window);
                self.ended.add(window, session, began, now, gap);
            }
            false => self.ended.unseen(session),
        }
    }

    /// Returns whether a session's last command had a witness, so that the next
    /// one is likely to have one.
    pub(crate) fn expects(&self, session: &SessionId) -> bool {
        self.ended.expects(session)
    }

    /// Returns what was seen of each session's ended commands.
    pub(crate) fn of_sessions(&self) -> impl Iterator<Item = &SessionWitnessed> {
        self.ended.of_sessions()
    }

    /// Returns why not all writes of a window's command were seen, or the inner
    /// `None` if they were. The outer `None` if the window had no witness since the
    /// restart.
    pub(crate) fn outcome(&self, window: u64) -> Option<Option<String>> {
        match self.is_seen(window) {
            true => Some(self.why_incomplete(window)),
            false => self.ended.outcome(window),
        }
    }

    /// Returns why it is not known what a window's command wrote, for people.
    /// `None` if it is, or if the window has no witness.
    pub(crate) fn why_incomplete(&self, window: u64) -> Option<String> {
        match &self.seen_by(window)?.sight {
            Sight::Whole => self.below.get(&window)?.gap.clone(),
            Sight::Awaited => Some("the witness did not begin".to_owned()),
            Sight::Incomplete(why) => Some(why.clone()),
        }
    }

    /// Forgets the witnesses that no window needs. A witness goes on after its
    /// own window, while a window below needs it.
    pub(crate) fn retain(&mut self, is_needed: impl Fn(u64) -> bool) {
        self.below.retain(|window, _| is_needed(*window));
        let outer: BTreeSet<Seen> = self.below.values().map(|below| below.of).collect();
        self.of.retain(|seen, witness| {
            let is_own = match seen {
                Seen::Window(window) => is_needed(*window),
                Seen::Agent(_) => witness.process.is_some(),
            };
            if !outer.contains(seen) && matches!(seen, Seen::Agent(_)) {
                // What it has stored may be written over.
                let all = witness.names.values_mut();
                all.for_each(|marks| marks.watched.forget_prior());
            }
            is_own || outer.contains(seen)
        });
    }

    /// Returns whose witness sees a window's command.
    fn root(&self, window: u64) -> Seen {
        let below = self.below.get(&window);
        below.map_or(Seen::Window(window), |below| below.of)
    }

    fn seen_by(&self, window: u64) -> Option<&Witness> {
        self.of.get(&self.root(window))
    }

    /// Returns the witness that has seen all writes of a window's command.
    fn whole(&self, window: u64) -> Option<&Witness> {
        let has_gap = { self.below.get(&window) }.is_some_and(|below| below.gap.is_some());
        let witness = self.seen_by(window).filter(|_| !has_gap);
        witness.filter(|witness| matches!(witness.sight, Sight::Whole))
    }

    fn each(&mut self, path: &RelPath, act: impl Fn(&mut Watched)) {
        let witnesses = self.of.values_mut();
        witnesses
            .filter_map(|witness| witness.names.get_mut(path))
            .for_each(|marks| act(&mut marks.watched));
    }
}

/// Returns whether a process is one of a command's that began then, and no person
/// types into it.
fn is_own(process: Marker, began: Millis) -> bool {
    let before = |time: Millis| time + SLACK < began;
    !before(process.began) && process.typed.is_none_or(before)
}

impl Witness {
    fn new(process: Option<u32>) -> Self {
        Self {
            sight: Sight::Awaited,
            process,
            names: BTreeMap::new(),
            moved: None,
        }
    }

    fn lose(&mut self, why: String) {
        // The first reason explains the most.
        if !matches!(self.sight, Sight::Incomplete(_)) {
            self.sight = Sight::Incomplete(why);
        }
    }

    /// Returns the files that were marked since then.
    fn marked(&self, by: Seen, since: Millis) -> impl Iterator<Item = MarkedFile> {
        let lately = { self.names.iter() }.filter(move |(_, marks)| marks.last + SLACK >= since);
        lately.map(move |(path, marks)| MarkedFile {
            path: path.clone(),
            prior: marks.watched.prior(),
            by,
        })
    }

    /// Returns whether a file may have got this name with a directory or link that
    /// was renamed or made.
    fn moved(&self, name: &RelPath) -> bool {
        let mut above = std::iter::successors(name.parent(), RelPath::parent);
        let marks = |name: &RelPath| self.names.get(name);
        above.any(|name| marks(&name).is_some_and(|marks| marks.changes_below))
    }

    fn add(&mut self, name: RelPath, mark: &Mark, at: Reported, is_recorded: bool) {
        let marks = self.names.entry(name).or_insert_with(|| Marks {
            last: at.now,
            watched: Watched::default(),
            changes_below: false,
        });
        marks.last = at.now;
        marks.changes_below |= mark.subtree != Subtree::Same;
        marks.watched.add(mark, at, is_recorded);
    }
}
