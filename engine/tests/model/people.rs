//! The truth of a run: what each file held and who wrote it, and what each
//! session was shown and told of it. Nothing here asks the engine.
//!
//! What the contract leaves open is left open here, and said where it is:
//! [`Copy::open`], [`Version::maybe`], and authors of which several are right.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::Millis;

use crate::belief::{Copy, Range, Worth};
use crate::disk::{Disk, NAMES, Name};
use crate::text::Text;

pub const SESSIONS: usize = 3;

/// Authors that may be named, as a set.
pub type By = u8;
pub const USER: By = 1;
pub const UNKNOWN: By = 2;
pub const ANYBODY: By = 0xff;
pub fn agent(session: usize) -> By {
    4 << session
}

/// A content that a file held, closed.
#[derive(Clone)]
pub struct Version {
    pub text: Option<Text>,
    /// Who may be named for it.
    pub by: By,
    /// It may never have been seen: another followed at once, or its writer
    /// was not done.
    pub maybe: bool,
    /// It is claimed by name, and not only as what was found.
    pub declared: bool,
    /// The session that truly wrote it.
    pub real: Option<usize>,
    pub at: Millis,
    /// Marks without a content that were open, until they end.
    pub marks: BTreeSet<usize>,
    /// Whose they were.
    pub candidates: By,
    /// Whose marks may have been open.
    pub candidates_perhaps: By,
    /// An editor has reported it.
    pub reported: bool,
    /// A one-call mark has claimed it.
    pub by_flag: bool,
    /// The edit that it is of.
    pub edit: Option<String>,
    /// The edit of the same session's that has named it since.
    pub named: Option<String>,
}

impl std::fmt::Debug for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} by {:#b}", self.text, self.by)?;
        if let Some(edit) = &self.edit {
            write!(f, " {edit}")?;
        }
        if self.candidates != 0 {
            write!(f, " perhaps {:#b}", self.candidates)?;
        }
        if let Some(session) = self.real {
            write!(f, " truly s{session}")?;
        }
        if self.maybe {
            write!(f, " maybe unseen")
        } else {
            Ok(())
        }
    }
}

/// What a session was told of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Told {
    #[default]
    Nothing,
    /// All up to this version.
    UpTo(usize),
    /// The contract does not say whether that counts.
    Open,
}

/// What a session has of a file.
#[derive(Clone, Debug, Default)]
pub struct Held {
    pub copy: Copy,
    pub told: Told,
    /// The version that its copy is of: later ones are changes.
    pub since: usize,
    /// The newest version when it was last shown something.
    pub shown: Option<usize>,
    /// What the file held when it was first named.
    pub baseline: Option<Text>,
    /// The versions after `since` are of another file: nobody is compared.
    pub joined: bool,
    /// When.
    pub joined_at: Millis,
    /// It came by a rename, and the session has not named it.
    pub carried: bool,
    /// Who changed it by its old name since.
    pub brought: By,
}

/// A version that a session's edit destroyed unseen.
#[derive(Clone, Debug)]
pub struct Lost {
    pub session: usize,
    pub text: Option<Text>,
    /// It has to be told.
    pub must: bool,
}

#[derive(Clone, Debug, Default)]
pub struct File {
    pub versions: Vec<Version>,
    pub held: BTreeMap<usize, Held>,
    /// Where its history is compared from.
    pub from: usize,
    /// Somebody is writing it.
    pub half: Option<Text>,
    pub lost: Vec<Lost>,
    /// Sessions whose part in something was over before anybody looked: what
    /// they destroyed is open.
    pub blurred: BTreeSet<usize>,
    /// Contents that sessions wrote over the same.
    pub rewritten: Vec<(usize, Text)>,
}

impl File {
    pub fn text(&self) -> Option<&Text> {
        self.versions
            .last()
            .and_then(|version| version.text.as_ref())
    }

    pub fn newest(&self) -> usize {
        self.versions.len() - 1
    }

    /// These lines have left a session's context.
    pub fn cut(&mut self, session: usize, range: Range) {
        let newest = self.newest();
        if let Some(held) = self.held.get_mut(&session) {
            held.copy
                .cut(range, held.shown.is_none_or(|shown| shown < newest));
        }
    }

    pub fn contents(&self) -> Vec<Text> {
        let texts = self
            .versions
            .iter()
            .filter_map(|version| version.text.clone());
        texts.collect()
    }
}

/// An edit that a session has begun and not ended.
#[derive(Clone, Debug)]
pub struct Edit {
    pub session: usize,
    /// The engine's name of it.
    pub id: String,
    pub call: Option<String>,
    pub name: Name,
    /// All names of the file at the begin.
    pub names: Vec<Name>,
    pub began: Option<Text>,
    /// What will be written.
    pub planned: Text,
    pub declared: bool,
    /// A one-call mark.
    pub flag: bool,
    pub deadline: Millis,
    /// The version that was the newest at the begin.
    pub since: usize,
    /// Its own version, once that is known.
    pub own: Option<usize>,
    /// The session has written.
    pub wrote: bool,
    /// Its file was joined or left by names: what becomes of it is open.
    pub murky: bool,
    /// Whether it destroyed something unseen; `None` where that is open.
    pub clobbered: Option<bool>,
    /// Somebody else may have written what it claims.
    pub guess: bool,
    /// A one-call mark that has its content.
    pub used: bool,
    /// What it began after may not have been seen.
    pub early: bool,
    /// Another edit of the same session's was open at the same time, and one
    /// of the two cannot be told by its content.
    pub beside: bool,
}

/// Who did a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    User,
    /// A session, within this edit.
    Edit(usize),
}

#[derive(Default)]
pub struct Truth {
    pub files: BTreeMap<usize, File>,
    pub of: BTreeMap<Name, usize>,
    pub view: BTreeMap<Name, (String, Option<usize>)>,
    /// The names that each session has used, the latest last.
    pub used: BTreeMap<usize, Vec<Name>>,
    pub edits: BTreeMap<usize, Edit>,
    pub down: bool,
    /// Files that have not been compared since events were lost.
    pub uncompared: BTreeSet<usize>,
    /// Names first spoken of while they led to nothing.
    pub vain: BTreeSet<Name>,
    /// When they are compared by although nobody asks: after a second loss
    /// that takes a while (LOSS-1).
    pub compared_by: Millis,
    /// When events were lost last.
    pub lost_at: Option<Millis>,
    /// How many versions each file had when the watch was lost.
    pub seen: BTreeMap<usize, usize>,
    pub now: Millis,
    /// Texts are kept.
    pub texts: bool,
    /// Contents that editors have reported, and when.
    pub reports: Vec<(Text, Millis)>,
    pub next: usize,
}

impl Truth {
    pub fn new(disk: &Disk) -> Self {
        let mut truth = Self::default();
        for name in NAMES {
            let id = truth.next;
            truth.next += 1;
            truth.of.insert(name, id);
            truth.files.insert(
                id,
                File {
                    versions: vec![version(disk.text(name).cloned(), ANYBODY)],
                    ..File::default()
                },
            );
        }
        truth.regroup(disk);
        truth
    }

    pub fn file(&self, name: Name) -> &File {
        &self.files[&self.of[name]]
    }

    pub fn file_mut(&mut self, name: Name) -> &mut File {
        self.files.entry(self.of[name]).or_default()
    }

    pub fn text(&self, name: Name) -> Option<Text> {
        self.file(name).text().cloned()
    }

    pub fn names_of(&self, file: usize) -> Vec<Name> {
        let mut names = self.of.iter();
        let mut all = Vec::new();
        all.extend(
            names
                .by_ref()
                .filter(|(_, id)| **id == file)
                .map(|(n, _)| *n),
        );
        all
    }

    pub fn uses(&self, session: usize, name: Name) -> bool {
        self.used
            .get(&session)
            .is_some_and(|names| names.contains(&name))
    }

    /// The name of a file that a session used last.
    pub fn last_used(&self, session: usize, file: usize) -> Option<Name> {
        let names = self.used.get(&session)?.iter().rev();
        names.copied().find(|name| self.of[name] == file)
    }

    pub fn worth(&self, session: usize, name: Name) -> Worth {
        let file = self.file(name);
        let held = file.held.get(&session);
        held.map_or(Worth::Unread, |held| held.copy.worth(file.text()))
    }

    /// A session names a file, so that it is tracked for it.
    pub fn spoke(&mut self, session: usize, name: Name) {
        let known = self
            .used
            .values()
            .flatten()
            .any(|other| self.of[other] == self.of[name]);
        let named = self.used.values().flatten().any(|other| *other == name);
        let used = self.used.entry(session).or_default();
        used.retain(|other| *other != name);
        used.push(name);
        let id = self.of[name];
        let edited = self.edits.values().any(|edit| self.of[edit.name] == id);
        let file = self.file_mut(name);
        let newest = file.newest();
        // FILE-2: a name by which no file was found yet, and that leads to
        // nothing, is nobody else's.
        let vain = file.text().is_none() && !named;
        if !known || vain {
            file.from = newest;
        }
        if vain {
            self.vain.insert(name);
        } else if file.text().is_some() {
            self.vain.remove(name);
        }
        let file = self.file_mut(name);
        let baseline = file.text().cloned();
        // ATTR-5: a passing absence is told, and no version yet.
        let passing = edited
            && baseline.is_none()
            && file.versions.last().is_some_and(|version| version.maybe);
        let held = file.held.entry(session).or_insert_with(|| Held {
            since: newest - usize::from(passing),
            baseline,
            told: match passing {
                true => Told::Open,
                false => Told::UpTo(newest),
            },
            ..Held::default()
        });
        held.carried = false;
    }

    pub fn shown(&mut self, session: usize, name: Name, text: &Text, range: Range) {
        self.spoke(session, name);
        let (now, texts) = (self.now, self.texts);
        let file = self.file_mut(name);
        let newest = file.newest();
        let there = file.text().cloned();
        let Some(held) = file.held.get_mut(&session) else {
            return;
        };
        let unsettled = file.versions.last().is_some_and(|version| version.maybe);
        let seen = file.versions[file.from..]
            .iter()
            .any(|v| !v.maybe && v.text.as_ref() == Some(text));
        held.joined |= !seen;
        held.copy.texts = texts;
        held.copy.shown(text, range, there.as_ref() == Some(text));
        if held.joined_at != 0 && held.joined_at + 10 > now || held.joined && unsettled {
            held.copy.open = Some("names joined before anybody had looked");
            held.told = Told::Open;
        }
        // Of two that were the same the one that was seen.
        let is = |version: &Version| version.text.as_ref() == Some(text);
        let sure = file.versions.iter();
        let sure = sure
            .enumerate()
            .rposition(|(at, v)| is(v) && (at == newest || !v.maybe));
        // It may be one that nobody saw, long after the one that was.
        let last = file.versions.iter().rposition(is);
        held.joined |= sure.is_some() && sure != last;
        let of = sure.or(last);
        held.shown = of.or(Some(newest));
        if held.copy.worth(Some(text)) == Worth::Fresh {
            held.since = of.unwrap_or(newest);
            held.joined &= there.as_ref() != Some(text);
        }
        if there.as_ref() != Some(text) && held.told == Told::UpTo(newest) {
            // Shown the old one after it had been named.
            held.told = Told::Open;
        }
    }

    pub fn wrote(&mut self, session: usize, file: usize, index: usize) {
        let texts = self.texts;
        let Some(file) = self.files.get_mut(&file) else {
            return;
        };
        let text = file.versions[index].text.clone();
        let held = file.held.entry(session).or_default();
        held.copy.texts = texts;
        match text {
            Some(text) => held.copy.wrote(&text),
            None => held.copy.open = Some("it was removed by its own edit"),
        }
        held.since = index;
        held.joined = false;
    }

    pub fn leave_open(&mut self, session: usize, name: Name, why: &'static str) {
        if let Some(held) = self.file_mut(name).held.get_mut(&session) {
            held.copy.open = Some(why);
            held.told = Told::Open;
        }
    }

    /// Looks at the disk after a step: which names are one file, and what each
    /// file holds.
    pub fn look(&mut self, disk: &Disk, actor: Actor) {
        let moved = self.regroup(disk);
        let ids: Vec<usize> = self.files.keys().copied().collect();
        for id in ids {
            let Some(name) = self.names_of(id).first().copied() else {
                self.files.remove(&id);
                continue;
            };
            let text = disk.text(name).cloned();
            let file = &self.files[&id];
            if file.half.is_none() && file.text() != text.as_ref() {
                self.became(id, text, actor, moved.contains(&id));
            }
        }
    }

    /// A file holds another content, closed. `moved`: by another way too.
    pub fn became(&mut self, id: usize, text: Option<Text>, actor: Actor, moved: bool) {
        let blurred = self.blur(id);
        let mut new = version(text, if self.down { UNKNOWN } else { USER });
        new.by |= blurred;
        new.at = self.now;
        new.real = match actor {
            Actor::User => None,
            Actor::Edit(slot) => self.edits.get(&slot).map(|edit| edit.session),
        };
        new.maybe = true;
        if self.uncompared.contains(&id) {
            new.by |= UNKNOWN;
        }
        let now = self.now;
        self.reports.retain(|(_, at)| at + 2_500 > now);
        if self
            .reports
            .iter()
            .any(|(text, _)| new.text.as_ref() == Some(text))
        {
            new.reported = true;
        }
        if moved {
            new.by = ANYBODY;
        }
        let index = self.files[&id].versions.len();
        if let Some(file) = self.files.get_mut(&id) {
            // A copied name that vanishes before anybody named it is dropped.
            if new.text.is_none() && file.held.values().all(|held| held.carried) {
                new.by |= UNKNOWN;
                for held in file.held.values_mut() {
                    held.copy.open = Some("it was copied, and is gone");
                    held.told = Told::Open;
                }
            }
            file.versions.push(new);
        }
        self.continued(id, index);
        if !self.down {
            self.decide(id, index, actor);
        }
    }

    /// Where what came between was not seen, it is still the one before.
    fn continued(&mut self, id: usize, index: usize) {
        let Some(file) = self.files.get_mut(&id) else {
            return;
        };
        let (earlier, later) = file.versions.split_at_mut(index);
        let before = earlier.iter_mut().rev().find(|version| !version.maybe);
        if let (Some(before), Some(version)) = (before, later.first_mut())
            && before.text == version.text
        {
            version.by |= before.by;
            // What a one-call mark had claimed, and was saved once more.
            if before.by_flag {
                before.by |= version.by;
                version.by_flag = true;
                for (session, held) in &mut file.held {
                    if before.by & agent(*session) != 0 {
                        held.copy.open = Some("a one-call mark had it, and it was saved again");
                        held.told = Told::Open;
                    }
                }
            }
        }
    }

    /// Deadlines that have come.
    pub fn expire(&mut self) {
        let due: Vec<usize> = self
            .edits
            .iter()
            .filter(|(_, edit)| edit.deadline <= self.now)
            .map(|(slot, _)| *slot)
            .collect();
        for slot in due {
            if self.edits[&slot].call.is_some() || self.edits[&slot].flag {
                self.edits.remove(&slot);
            } else {
                self.end(slot, None);
            }
        }
        self.halves();
    }

    /// ATTR-5, ATTR-12: where no edit is open any more, half of a save that
    /// goes on may be a version.
    pub fn halves(&mut self) {
        let edited: BTreeSet<usize> = self.edits.values().map(|e| self.of[e.name]).collect();
        let halves = self.files.iter().filter(|(id, _)| !edited.contains(id));
        let halves: Vec<(usize, Text)> = halves
            .filter_map(|(id, file)| Some((*id, file.half.clone()?)))
            .filter(|(id, half)| self.files[id].text() != Some(half))
            .collect();
        for (id, half) in halves {
            self.became(id, Some(half), Actor::User, false);
        }
    }

    /// Everything has been looked at, but for what is still to be compared.
    pub fn settle(&mut self) {
        let late = self.now < self.compared_by;
        let all = self.files.keys().copied();
        let all: Vec<usize> = all
            .filter(|id| !(late && self.uncompared.contains(id)))
            .collect();
        self.settle_of(&all);
    }

    /// Events were lost.
    pub fn overflow(&mut self) {
        self.lost_sight();
        self.uncompared = self.files.keys().copied().collect();
        let in_a_row = self.lost_at.is_some_and(|at| at + 10_000 > self.now);
        self.compared_by = self.now + if in_a_row { 5_000 } else { 0 };
        self.lost_at = Some(self.now);
    }

    /// The same of some files.
    pub fn settle_of(&mut self, looked_at: &[usize]) {
        let edited = !self.edits.is_empty();
        self.edits
            .retain(|_, edit| !edit.used || edit.murky || !looked_at.contains(&self.of[edit.name]));
        for (id, file) in &mut self.files {
            if file.half.is_none()
                && looked_at.contains(id)
                && let Some(version) = file.versions.last_mut()
            {
                // ATTR-5: under an open edit an absence may be half of a save.
                // What is found empty is looked at once more.
                let empty = version.text.as_ref().is_some_and(|text| text.is_empty());
                let early =
                    (empty || version.text.is_none() && edited) && version.at + 100 > self.now;
                version.maybe &= early;
            }
        }
    }

    /// What has not been looked at by now is found only after a gap.
    pub fn lost_sight(&mut self) {
        for edit in self.edits.values_mut() {
            let last = self.files[&self.of[edit.name]].versions.last();
            edit.murky |= last.is_some_and(|version| version.maybe);
        }
        for file in self.files.values_mut() {
            let unseen = file.versions.last().is_some_and(|last| last.maybe);
            for held in file.held.values_mut().filter(|held| held.carried && unseen) {
                held.copy.open = Some("it was renamed right before nobody watched");
                held.told = Told::Open;
            }
            let mut part = 0;
            for version in file.versions.iter_mut().filter(|version| version.maybe) {
                part |= version.by;
                version.by |= UNKNOWN;
            }
            for (session, held) in &mut file.held {
                if part & agent(*session) != 0 {
                    held.copy.open = Some("its part in it was over before anybody looked");
                    held.told = Told::Open;
                    file.blurred.insert(*session);
                }
            }
        }
    }

    pub fn stop(&mut self) {
        self.lost_sight();
        self.down = true;
        let count = |(id, file): (&usize, &File)| (*id, file.versions.len());
        self.seen = self.files.iter().map(count).collect();
    }

    /// Of what was written while nobody watched, the last is found.
    pub fn start(&mut self) {
        self.down = false;
        // What a mark without a content claims of a gap is open.
        for edit in self.edits.values_mut() {
            edit.murky |= edit.flag;
        }
        let ids: Vec<usize> = self.files.keys().copied().collect();
        for id in ids {
            let Some(file) = self.files.get_mut(&id) else {
                continue;
            };
            let seen = self.seen.get(&id).copied().unwrap_or(file.versions.len());
            let Some(mut last) = file.versions.last().cloned() else {
                continue;
            };
            file.versions.truncate(seen.max(1));
            if file.text() != last.text.as_ref() {
                last.at = self.now;
                if last.by != ANYBODY {
                    last.by = UNKNOWN;
                }
                file.versions.push(last);
                let index = file.newest();
                self.continued(id, index);
                self.decide(id, index, Actor::User);
                self.unguess(id, index);
            }
        }
        self.settle();
        self.expire();
    }

    /// A difference that an open edit expects is that session's also where
    /// nobody saw it come.
    pub fn unguess(&mut self, id: usize, index: usize) {
        let of = &self.of;
        let own = |edit: &&mut Edit| of[edit.name] == id && edit.own == Some(index) && edit.wrote;
        let Some(edit) = self.edits.values_mut().find(own) else {
            return;
        };
        edit.clobbered = None;
        let session = edit.session;
        if let Some(version) = self.version_mut(id, index) {
            version.by = agent(session);
        }
    }
}

fn version(text: Option<Text>, by: By) -> Version {
    Version {
        text,
        by,
        maybe: false,
        declared: false,
        real: None,
        at: 0,
        marks: BTreeSet::new(),
        candidates: 0,
        candidates_perhaps: 0,
        by_flag: false,
        reported: false,
        edit: None,
        named: None,
    }
}
