//! The truth of a run: the contents of each file and who wrote them, and what
//! each session was shown and received as changes. Nothing here asks the
//! engine.
//!
//! What the rules leave open is left open here too, and marked: [`Copy::open`],
//! [`Version::maybe`], and sets of authors of which each may be named.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::Millis;

use crate::belief::{Copy, Range, Worth};
use crate::disk::{Disk, NAMES, Name};
use crate::text::Text;

pub const SESSIONS: usize = 3;

/// A set of authors that may be named.
pub type By = u8;
pub const USER: By = 1;
pub const UNKNOWN: By = 2;
pub const ANYBODY: By = 0xff;
pub fn agent(session: usize) -> By {
    4 << session
}

/// A closed content of a file.
#[derive(Clone)]
pub struct Version {
    pub text: Option<Text>,
    /// The authors that may be named for the version.
    pub by: By,
    /// The version may never have been read: another content followed
    /// immediately, or its writer had not finished.
    pub maybe: bool,
    /// An edit or a commit named the content. It was not only found at the end
    /// of a mark.
    pub declared: bool,
    /// The session that really wrote the version.
    pub real: Option<usize>,
    pub at: Millis,
    /// The open marks without a declared content, until they end.
    pub marks: BTreeSet<usize>,
    /// The sessions of the marks in `marks`.
    pub candidates: By,
    /// The sessions whose marks may have been open.
    pub candidates_perhaps: By,
    /// An editor has reported the version.
    pub reported: bool,
    /// A one-call mark has claimed the version.
    pub by_flag: bool,
    /// The edit that the version is attributed to.
    pub edit: Option<String>,
    /// The edit of the same session that has named it since.
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

/// What was reported to a session about a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Told {
    #[default]
    Nothing,
    /// All versions up to this one.
    UpTo(usize),
    /// The rules do not say whether a report counts.
    Open,
}

/// What a session has of a file.
#[derive(Clone, Debug, Default)]
pub struct Held {
    pub copy: Copy,
    pub told: Told,
    /// The version that the session's copy is of. Later versions are changes.
    pub since: usize,
    /// The newest version at the time when something was last shown to it.
    pub shown: Option<usize>,
    /// The content when the session first named the file.
    pub baseline: Option<Text>,
    /// The versions after `since` are of another file, so authors are not
    /// compared.
    pub joined: bool,
    /// When the two files became one.
    pub joined_at: Millis,
    /// The copy came by a rename, and the session has not named it.
    pub carried: bool,
    /// Authors that changed the file under its old name since.
    pub brought: By,
}

/// A version that a session's edit destroyed unseen.
#[derive(Clone, Debug)]
pub struct Lost {
    pub session: usize,
    pub text: Option<Text>,
    /// Whether the loss has to be reported.
    pub must: bool,
}

#[derive(Clone, Debug, Default)]
pub struct File {
    pub versions: Vec<Version>,
    pub held: BTreeMap<usize, Held>,
    /// The version from which on the history is compared.
    pub from: usize,
    /// The incomplete content while a writer is writing.
    pub half: Option<Text>,
    pub lost: Vec<Lost>,
    /// Sessions whose edit or mark ended before the file was read. The rules
    /// leave open what they destroyed.
    pub blurred: BTreeSet<usize>,
    /// Contents that sessions wrote over the same content.
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

    /// Removes these lines from a session's context.
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
    /// The engine's name for the edit.
    pub id: String,
    pub call: Option<String>,
    pub name: Name,
    /// All names of the file when the edit began.
    pub names: Vec<Name>,
    pub began: Option<Text>,
    /// The content that will be written.
    pub planned: Text,
    pub declared: bool,
    /// Whether it is a one-call mark.
    pub flag: bool,
    pub deadline: Millis,
    /// The newest version when the edit began.
    pub since: usize,
    /// The edit's own version, once that is known.
    pub own: Option<usize>,
    /// The session has written the planned content.
    pub wrote: bool,
    /// Names have joined or left its file, so its result is open.
    pub murky: bool,
    /// Whether it destroyed something unseen; `None` if that is open.
    pub clobbered: Option<bool>,
    /// Another author may have written the content that the edit claims.
    pub guess: bool,
    /// A one-call mark that has got its content.
    pub used: bool,
    /// The content that it began after may not have been read.
    pub early: bool,
    /// Another edit of the same session was open at the same time, and one of
    /// the two cannot be distinguished by its content.
    pub beside: bool,
}

/// Who made a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    User,
    /// A session, within the edit with this number.
    Edit(usize),
}

#[derive(Default)]
pub struct Truth {
    pub files: BTreeMap<usize, File>,
    pub of: BTreeMap<Name, usize>,
    pub view: BTreeMap<Name, (String, Option<usize>)>,
    /// The names that each session has used, the most recent last.
    pub used: BTreeMap<usize, Vec<Name>>,
    pub edits: BTreeMap<usize, Edit>,
    pub down: bool,
    /// Files that have not been compared since events were lost.
    pub uncompared: BTreeSet<usize>,
    /// Names that were first named while they had no file.
    pub vain: BTreeSet<Name>,
    /// When those files are compared even if no request needs it. After a
    /// second loss that takes some time (LOSS-1).
    pub compared_by: Millis,
    /// When events were last lost.
    pub lost_at: Option<Millis>,
    /// The number of versions of each file when the watch was lost.
    pub seen: BTreeMap<usize, usize>,
    pub now: Millis,
    /// Whether texts are kept.
    pub texts: bool,
    /// Contents that editors have reported, with the time.
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

    /// Returns the name of a file that a session used last.
    pub fn last_used(&self, session: usize, file: usize) -> Option<Name> {
        let names = self.used.get(&session)?.iter().rev();
        names.copied().find(|name| self.of[name] == file)
    }

    pub fn worth(&self, session: usize, name: Name) -> Worth {
        let file = self.file(name);
        let held = file.held.get(&session);
        held.map_or(Worth::Unread, |held| held.copy.worth(file.text()))
    }

    /// Records that a session names a file, so that it is tracked.
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
        // FILE-2: a name that has no file and never had one is no name of
        // another file.
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
        // ATTR-5: an absence in the middle of a save is reported, but is no
        // version yet.
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
        // Of two equal versions, the one that was read.
        let is = |version: &Version| version.text.as_ref() == Some(text);
        let sure = file.versions.iter();
        let sure = sure
            .enumerate()
            .rposition(|(at, v)| is(v) && (at == newest || !v.maybe));
        // It may be a version that was not read, long after the one that was.
        let last = file.versions.iter().rposition(is);
        held.joined |= sure.is_some() && sure != last;
        let of = sure.or(last);
        held.shown = of.or(Some(newest));
        if held.copy.worth(Some(text)) == Worth::Fresh {
            held.since = of.unwrap_or(newest);
            held.joined &= there.as_ref() != Some(text);
        }
        if there.as_ref() != Some(text) && held.told == Told::UpTo(newest) {
            // The session was shown the old content after the change had been
            // reported.
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

    /// Looks at the disk after a step: which names are one file, and the
    /// content of each file.
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

    /// Records that a file has another closed content. `moved` says whether its
    /// name resolves in another way too.
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
            // A copied name that is removed before any session named it is
            // dropped.
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

    /// If the contents in between were not read, this is still the previous
    /// version.
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
            // A content that a one-call mark had claimed, and that was saved
            // once more.
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

    /// Ends the edits whose deadline has come.
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

    /// ATTR-5, ATTR-12: once no edit is open any more, half of a save in
    /// progress may be a version.
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

    /// Records that everything was read, except what is still to be compared.
    pub fn settle(&mut self) {
        let late = self.now < self.compared_by;
        let all = self.files.keys().copied();
        let all: Vec<usize> = all
            .filter(|id| !(late && self.uncompared.contains(id)))
            .collect();
        self.settle_of(&all);
    }

    /// Records that events were lost.
    pub fn overflow(&mut self) {
        self.lost_sight();
        self.uncompared = self.files.keys().copied().collect();
        let in_a_row = self.lost_at.is_some_and(|at| at + 10_000 > self.now);
        self.compared_by = self.now + if in_a_row { 5_000 } else { 0 };
        self.lost_at = Some(self.now);
    }

    /// Records that some files were read.
    pub fn settle_of(&mut self, looked_at: &[usize]) {
        let edited = !self.edits.is_empty();
        self.edits
            .retain(|_, edit| !edit.used || edit.murky || !looked_at.contains(&self.of[edit.name]));
        for (id, file) in &mut self.files {
            if file.half.is_none()
                && looked_at.contains(id)
                && let Some(version) = file.versions.last_mut()
            {
                // ATTR-5: under an open edit, an absence may be half of a save.
                // A file found empty needs a second look.
                let empty = version.text.as_ref().is_some_and(|text| text.is_empty());
                let early =
                    (empty || version.text.is_none() && edited) && version.at + 100 > self.now;
                version.maybe &= early;
            }
        }
    }

    /// Records that the watch was lost: what has not been read by now is found
    /// only after a gap.
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

    /// Records that the daemon starts again: of what was written in the gap,
    /// only the last content is found.
    pub fn start(&mut self) {
        self.down = false;
        // The rules leave open what a mark without a declared content claims of
        // a gap.
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

    /// Records that a difference found after a gap is the content that an open
    /// edit expects: it is that session's.
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
