//! The truth of a run: who changed what a name leads to, and what each session
//! was shown of it. Nothing here asks the daemon.

use std::collections::{BTreeMap, BTreeSet};

use super::belief::{Copy, Worth};
use super::disk::{Disk, Object, Place, View};
use super::rows::Row;
use super::step::{NAMES, Name};

/// Who may be named as an author: `user`, `unknown`, `agent:<session>`.
pub type Authors = BTreeSet<String>;

/// What a name leads to became another content.
#[derive(Clone, Debug)]
pub struct Event {
    /// What it is since then.
    pub text: Option<String>,
    /// Who may be named; `None` for anybody.
    pub by: Option<Authors>,
    /// No question was answered since: the daemon may not have looked yet.
    pub unseen: bool,
    /// The mark without a content under which an agent wrote it.
    pub mark: Option<usize>,
    /// It was the first half of a save.
    pub half: bool,
}

/// What a session was told of a name since it was last shown it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Told {
    /// Nothing.
    #[default]
    Nothing,
    /// That it became this, when so many events had happened.
    This(Option<String>, usize),
    /// Something of which the contract does not say whether it counts.
    Open,
}

/// What a session has of one name.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// The lines.
    pub copy: Copy,
    /// It has spoken of the file by this name.
    pub used: bool,
    /// It was renamed from a name that the session has used.
    pub carried: bool,
    /// It was asked about since, so it is known though nobody used it.
    pub named: bool,
    /// Perhaps: nobody may have watched what it was renamed to.
    pub perhaps: bool,
    /// No question was answered since that rename.
    pub carried_unseen: bool,
    /// The name that it changed places with, which was known; no question was
    /// answered since.
    pub exchanged: Option<Name>,
    /// What it was told.
    pub told: Told,
    /// How many events the name had when it was last shown or written.
    pub since: usize,
    /// The lines are still in its context.
    pub resident: bool,
    /// The name came to a file that the session knows by another, and has not
    /// been asked about since: until it is, nobody may know (FILE-2).
    pub came: bool,
    /// What it holds came together by a name that joined the file, and no
    /// question was answered since.
    pub joined_unseen: bool,
    /// What it holds came together by names that are one file since: what was
    /// done to any of them is news.
    pub mixed: bool,
}

impl Held {
    /// The session holds the file by this name: it has used it, or a rename
    /// gave it to a file that it knew.
    pub(super) fn by_itself(&self) -> bool {
        self.used || self.carried
    }
}

/// An edit that a session has begun.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The daemon's name of it.
    pub id: String,
    /// What is edited.
    pub name: Name,
    /// All names of it at the begin.
    pub names: Vec<Name>,
    /// What it held.
    pub base: Option<String>,
    /// What will be written.
    pub text: String,
    /// Whether the content was declared.
    pub declared: bool,
    /// The session has written, under this name.
    pub wrote: Option<Name>,
    /// What it wrote was gone before anybody looked.
    pub missed: bool,
    /// Somebody else has changed the file meanwhile.
    pub foreign: bool,
    /// How many events each name had at the begin.
    pub since: BTreeMap<Name, usize>,
}

/// A session.
#[derive(Debug, Default)]
pub struct Person {
    /// What it has of each name.
    pub held: BTreeMap<Name, Held>,
    /// Its edit.
    pub edit: Option<Edit>,
}

/// All of it.
#[derive(Debug, Default)]
pub struct Truth {
    /// What names lead to.
    pub view: View,
    /// Where names lead, whether anything is there or not.
    pub places: BTreeMap<Name, Place>,
    /// The last file that each name led to.
    pub last: BTreeMap<Name, Object>,
    /// What happened to each name, the oldest first.
    pub events: BTreeMap<Name, Vec<Event>>,
    /// What each name led to, the oldest first.
    pub past: BTreeMap<Name, Vec<String>>,
    /// The sessions.
    pub people: Vec<Person>,
    /// Names whose way has changed, or that the daemon could not watch, since
    /// the last answer: who writes there may be `unknown`.
    pub murky: BTreeSet<Name>,
    /// Names outside of the list that files were told to be renamed to.
    pub beyond: BTreeSet<String>,
    /// Nobody watches.
    pub down: bool,
    /// A save is under way: its first half makes no version before the end.
    pub half: bool,
}

/// What a step was, as far as it decides who may be named.
#[derive(Clone, Debug)]
pub enum Act {
    /// A content was written by this author.
    Wrote(String),
    /// An agent wrote under a mark that declares nothing.
    Marked(usize),
    /// Names lead elsewhere: a directory, a link.
    Way,
    /// Something was mounted or unmounted.
    Mount,
    /// The user gave files other names: the author is the user, or who wrote
    /// what they hold.
    Moved,
    /// A name was given to a file that has others.
    Linked,
    /// Half of a save was written.
    Half,
}

impl Truth {
    /// At the start.
    pub fn new(disk: &Disk, sessions: usize) -> Self {
        let view = disk.view();
        Self {
            last: view.iter().map(|(name, at)| (*name, at.object)).collect(),
            past: view
                .iter()
                .map(|(name, at)| (*name, vec![at.text.clone()]))
                .collect(),
            view,
            people: (0..sessions).map(|_| Person::default()).collect(),
            ..Self::default()
        }
    }

    /// What a name leads to.
    pub fn text(&self, name: Name) -> Option<&str> {
        self.view.get(name).map(|at| at.text.as_str())
    }

    /// All names of the file that a name leads to, itself included.
    pub fn names_of(&self, name: Name) -> Vec<Name> {
        match self.view.get(name) {
            None => vec![name],
            Some(at) => self.names_of_file(at.object),
        }
    }

    /// The same of a name that leads to nothing: the names that lead there as
    /// well and led to the same file until it was gone. They have not parted
    /// (FILE-2).
    pub fn names_of_gone(&self, name: Name) -> Vec<Name> {
        if self.view.contains_key(name) {
            return self.names_of(name);
        }
        let at = |name: Name| (self.places.get(name), self.last.get(name));
        let same = |other: &&Name| {
            let gone = !self.view.contains_key(*other) && self.places.contains_key(*other);
            **other == name || gone && at(other) == at(name)
        };
        NAMES.iter().filter(same).copied().collect()
    }

    pub(super) fn names_of_file(&self, file: Object) -> Vec<Name> {
        let names = self.view.iter().filter(|(_, at)| at.object == file);
        names.map(|(name, _)| *name).collect()
    }

    /// How many events a name has had.
    pub fn count(&self, name: Name) -> usize {
        self.events.get(name).map_or(0, Vec::len)
    }

    /// What a session has of a name.
    pub fn held(&mut self, session: usize, name: Name) -> &mut Held {
        let held = self.people[session].held.entry(name).or_default();
        // Contents of such names are never kept (SEC-3).
        held.copy.coarse = name.starts_with(".env");
        held
    }

    /// What a session's copy of a name is worth.
    pub fn worth(&self, session: usize, name: Name) -> Worth {
        let held = self.people[session].held.get(name);
        // A content that a secret file had is kept by no name (SEC-3).
        let was_secret = |text: &str| {
            let secret = self
                .past
                .iter()
                .filter(|(name, _)| name.starts_with(".env"));
            secret.flat_map(|(_, past)| past).any(|old| old == text)
        };
        match held.map(|held| held.copy.worth(self.text(name), was_secret)) {
            None => Worth::Unread,
            Some(_) if held.is_some_and(|held| held.perhaps) => Worth::Open,
            // Nobody may know that it was ever there.
            Some(Worth::Deleted) if held.is_some_and(|held| held.copy.open.is_some()) => {
                Worth::Open
            }
            Some(worth) => worth,
        }
    }

    /// Looks at the disk after a step, and notes what became of every name.
    pub fn look(&mut self, disk: &Disk, act: &Act) {
        let unseen: Vec<Name> = self
            .events
            .iter()
            .filter(|(_, events)| events.last().is_some_and(|event| event.unseen))
            .map(|(name, _)| *name)
            .collect();
        let before = std::mem::replace(&mut self.view, disk.view());
        let place = |name: &Name| Some((*name, disk.place(name)?));
        self.places = NAMES.iter().filter_map(place).collect();
        let objects = self.view.iter().map(|(name, at)| (*name, at.object));
        self.last.extend(objects);
        for name in NAMES {
            let (old, new) = (before.get(name), self.view.get(name));
            let other_object = old.map(|at| at.object) != new.map(|at| at.object);
            if matches!(act, Act::Way) && other_object {
                self.murky.insert(name);
            }
            if old.map(|at| &at.text) == new.map(|at| &at.text) {
                if matches!(act, Act::Mount) && other_object {
                    self.hidden_for_a_moment(name);
                }
                continue;
            }
            if let Some(at) = new {
                let past = self.past.entry(name).or_default();
                let again = past.contains(&at.text);
                past.push(at.text.clone());
                if again && !Row::Reverts.is_on() {
                    for held in self
                        .people
                        .iter_mut()
                        .filter_map(|all| all.held.get_mut(name))
                    {
                        held.copy.open = Some("a content came back");
                    }
                }
            }
            let gap = self.down || self.murky.contains(name);
            let by = match act {
                Act::Moved => self.movers(new.map(|at| &at.text)),
                Act::Wrote(author) => Some(BTreeSet::from([author.clone()])),
                Act::Half => Some(BTreeSet::from(["user".to_owned()])),
                Act::Marked(session) => Some(BTreeSet::from([
                    "user".to_owned(),
                    format!("agent:{}", super::step::session(*session)),
                ])),
                Act::Way | Act::Mount | Act::Linked => None,
            };
            let by = by.map(|mut by| {
                if gap {
                    by.insert("unknown".into());
                }
                by
            });
            let text = new.map(|at| at.text.clone());
            let by = self.or_as_before(name, &text, by);
            let event = Event {
                text,
                by,
                unseen: true,
                mark: match act {
                    Act::Marked(session) => Some(*session),
                    _ => None,
                },
                half: matches!(act, Act::Half),
            };
            self.events.entry(name).or_default().push(event);
        }
        if matches!(act, Act::Way) {
            self.lost_sight();
        }
        if matches!(act, Act::Mount) {
            self.lost_sight();
            // What was mounted anew is not told from what was there before.
            let below = NAMES
                .iter()
                .filter(|name| !["a", "b", "c", ".env"].contains(name));
            self.murky.extend(below);
        }
        self.share(&before);
        for person in &mut self.people {
            let Some(edit) = &mut person.edit else {
                continue;
            };
            for (name, held) in &mut person.held {
                let was = before.get(name);
                let own = edit.wrote.is_some() && was.is_some_and(|at| at.text == edit.text);
                let gone = was.map(|at| &at.text) != self.view.get(name).map(|at| &at.text);
                if own && gone && unseen.contains(name) {
                    edit.missed = true;
                    held.told = Told::Open;
                    held.mixed = true;
                    held.copy.open = Some("what it declared was gone before anybody looked");
                } else if edit.missed
                    && gone
                    && self.view.get(name).is_some_and(|at| at.text == edit.text)
                {
                    held.copy.open = Some("what it declared came only when another wrote it");
                }
            }
        }
        if matches!(act, Act::Way | Act::Mount) {
            self.parted_unseen(&before, &unseen);
        }
        for person in &mut self.people {
            if let Some(edit) = &mut person.edit {
                let there = self.view.get(edit.name).map(|at| &at.text);
                let own = edit.wrote.is_some() && there == Some(&edit.text);
                edit.foreign |= there != edit.base.as_ref() && !own;
            }
        }
    }

    /// What the daemon has not looked at by now it may find only after a gap.
    pub fn lost_sight(&mut self) {
        for event in self.events.values_mut().flatten() {
            if event.unseen
                && let Some(by) = &mut event.by
            {
                by.insert("unknown".into());
            }
        }
        for held in self
            .people
            .iter_mut()
            .flat_map(|person| person.held.values_mut())
        {
            if held.carried_unseen {
                held.copy.open = Some("it was renamed, and then nobody watched");
            }
        }
    }

    /// Contents kept for comparing may be lost with a daemon that was killed:
    /// what changed in a copy that came from them is then all of it (SEEN-8).
    pub fn texts_may_be_lost(&mut self) {
        let held = self.people.iter_mut().flat_map(|all| all.held.values_mut());
        held.for_each(|held| held.copy.may_be_coarse = held.copy.known());
    }

    /// The name that an edit was begun by leads elsewhere before anybody looked
    /// at what the session wrote by it: it goes with the edit (FILE-2), and
    /// nothing says whose what is left behind is.
    fn parted_unseen(&mut self, before: &View, unseen: &[Name]) {
        for who in 0..self.people.len() {
            let Some(edit) = &self.people[who].edit else {
                continue;
            };
            let (name, wrote) = (edit.name, edit.wrote.is_some());
            let object = |view: &View| view.get(name).map(|at| at.object);
            if !wrote || !unseen.contains(&name) || object(before) == object(&self.view) {
                continue;
            }
            let agent = format!("agent:{}", super::step::session(who));
            for other in NAMES {
                if before.get(other).map(|at| at.object) == object(before) {
                    self.perhaps_users(other, &agent);
                    self.leave_open(who, other, "its edit's name parted before anybody looked");
                }
            }
        }
    }

    /// Something was mounted over a name, and then saved there as it was: that
    /// it was gone meanwhile may have been noticed.
    fn hidden_for_a_moment(&mut self, name: Name) {
        let newest = self.events.get_mut(name).and_then(|all| all.last_mut());
        if let Some(by) = newest.and_then(|newest| newest.by.as_mut()) {
            by.insert("unknown".to_owned());
        }
        for person in &mut self.people {
            if let Some(held) = person.held.get_mut(name) {
                held.told = Told::Open;
                held.mixed = true;
            }
        }
    }

    /// The user, and whoever wrote that anywhere.
    fn movers(&self, text: Option<&String>) -> Option<Authors> {
        let mut by = Authors::from(["user".to_owned()]);
        for event in self.events.values().flatten() {
            if text.is_some() && event.text.as_ref() == text {
                by.extend(event.by.clone()?);
            }
        }
        Some(by)
    }

    /// Who may be named for a content that was there before, if nobody has
    /// looked since: that it was another meanwhile may never be noticed.
    fn or_as_before(
        &self,
        name: Name,
        text: &Option<String>,
        by: Option<Authors>,
    ) -> Option<Authors> {
        let mut by = by?;
        let events = self.events.get(name).map_or(&[][..], |all| all);
        let mut unseen = events.iter().rev();
        loop {
            let Some(event) = unseen.next() else {
                // It was there at first.
                let first = self.past.get(name).and_then(|past| past.first());
                return (first != text.as_ref()).then_some(by);
            };
            if event.text == *text {
                by.extend(event.by.clone()?);
            }
            if !event.unseen {
                return Some(by);
            }
        }
    }

    /// What names of this file hold may be taken for the user's, written after
    /// something else of this agent's.
    pub fn perhaps_users(&mut self, name: Name, agent: &str) {
        for other in self.names_of(name) {
            let newest = self.events.get_mut(other).and_then(|all| all.last_mut());
            if let Some(by) = newest.and_then(|newest| newest.by.as_mut()) {
                by.extend(["user".to_owned(), agent.to_owned()]);
            }
            let held = self.people.iter_mut();
            let held = held.filter_map(|all| all.held.get_mut(other));
            for held in held {
                held.told = Told::Open;
                held.mixed = true;
            }
        }
    }

    /// A question about these names was answered behind a fence: they have
    /// been looked at, by all names of their files.
    pub fn fenced(&mut self, names: &[Name]) {
        let mut all: BTreeSet<Name> = BTreeSet::new();
        for name in names {
            all.extend(self.names_of(name));
        }
        let half = self.half;
        for name in names {
            let held = self.people.iter_mut();
            let held = held.filter_map(|person| person.held.get_mut(name));
            held.for_each(|held| held.came = false);
        }
        for name in all {
            self.murky.remove(name);
            for person in &mut self.people {
                if let Some(held) = person.held.get_mut(name) {
                    held.carried_unseen = false;
                    held.exchanged = None;
                    held.joined_unseen = false;
                }
            }
            for event in self.events.get_mut(name).into_iter().flatten() {
                event.unseen &= event.half && half;
            }
        }
    }

    /// A session was shown lines of a file by a name, or all of it.
    pub fn shown(&mut self, session: usize, name: Name, range: Option<(usize, usize)>) {
        let Some(text) = self.text(name).map(str::to_owned) else {
            self.uses(session, name);
            return;
        };
        for other in self.names_of(name) {
            let since = self.count(other);
            let held = self.held(session, other);
            match range {
                None => held.copy.shown_whole(&text),
                Some((first, last)) => held.copy.shown(&text, first, last),
            }
            held.since = since;
            if range.is_none() {
                // What was told is not news again because some lines of it
                // were read (MOD-1).
                held.told = Told::Nothing;
                held.mixed = false;
            }
            held.resident = true;
            held.perhaps &= other != name;
        }
        self.came_before(session, name);
        self.uses(session, name);
    }

    /// What a session held by a name that came to the file, and that nobody has
    /// looked at, is found later to be out of date, though the session knows
    /// better by now: it is told once too often.
    fn came_before(&mut self, session: usize, name: Name) {
        let names = self.names_of(name);
        if names.iter().any(|other| self.held(session, other).came) {
            self.leave_open(session, name, "another name of it was not looked at");
            for other in names {
                self.held(session, other).mixed = true;
            }
        }
    }

    /// A session uses a name.
    pub fn uses(&mut self, session: usize, name: Name) {
        self.held(session, name).used = true;
    }

    /// A session wrote this content under a name.
    pub fn wrote(&mut self, session: usize, name: Name, text: &str) {
        for other in self.names_of(name) {
            let since = self.count(other);
            let held = self.held(session, other);
            held.copy.shown_whole(text);
            held.since = since;
            held.told = Told::Nothing;
            held.mixed = false;
            held.resident = false;
        }
        self.came_before(session, name);
    }

    /// What a session has of a file is left open.
    pub fn leave_open(&mut self, session: usize, name: Name, why: &'static str) {
        for other in self.names_of(name) {
            let held = self.held(session, other);
            held.copy.open = Some(why);
            held.told = Told::Open;
        }
    }
}
