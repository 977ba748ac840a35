//! The truth of a run: who changed each name's content, and what each session
//! was shown of it. Nothing here asks the daemon.

use std::collections::{BTreeMap, BTreeSet};

use super::belief::{Copy, Worth};
use super::disk::{Disk, Object, Place, View};
use super::rows::Row;
use super::step::{NAMES, Name};

/// The authors that may be reported: `user`, `unknown`, `agent:<session>`.
pub type Authors = BTreeSet<String>;

/// A change of the content that a name resolves to.
#[derive(Clone, Debug)]
pub struct Event {
    /// The content since this event; `None` for no file.
    pub text: Option<String>,
    /// The authors that may be reported; `None` for any author.
    pub by: Option<Authors>,
    /// No question was answered since, so the daemon may not have read the
    /// content yet.
    pub unseen: bool,
    /// The session whose mark without a content covered the write; `None` for
    /// no such mark.
    pub mark: Option<usize>,
    /// The event was the first half of a save.
    pub half: bool,
}

/// What a session was told of a name since it was last shown the content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Told {
    /// Nothing was reported.
    #[default]
    Nothing,
    /// The name's content became this. The number is that of the events at that
    /// time.
    This(Option<String>, usize),
    /// Something was reported of which the contract does not specify whether it
    /// counts.
    Open,
}

/// What a session has of one name.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// The lines that it was shown.
    pub copy: Copy,
    /// The session has named the file by this name.
    pub used: bool,
    /// A rename brought the file here from a name that the session has used.
    pub carried: bool,
    /// The name was in a question since the rename, so it is tracked though no
    /// session used it.
    pub named: bool,
    /// Whether the daemon followed that rename is not specified: its target may
    /// not have been watched.
    pub perhaps: bool,
    /// No question was answered since that rename.
    pub carried_unseen: bool,
    /// The name that this one was exchanged with, if the session had that one
    /// and no question was answered since.
    pub exchanged: Option<Name>,
    /// What the session was told.
    pub told: Told,
    /// The number of the name's events when it was last shown or written.
    pub since: usize,
    /// The lines are still in the session's context.
    pub resident: bool,
    /// The name came to a file that the session has by another name, and was in
    /// no question since. Until it is, the daemon may not have noticed
    /// (FILE-2).
    pub came: bool,
    /// What the session has was joined with that of a name that came to the
    /// file, and no question was answered since.
    pub joined_unseen: bool,
    /// What the session has was joined from names that have become one file.
    /// Changes of any of them may be reported.
    pub mixed: bool,
}

impl Held {
    /// Returns whether the session has the file by this name itself: it has
    /// used the name, or a rename gave the name to a file that it had.
    pub(super) fn by_itself(&self) -> bool {
        self.used || self.carried
    }
}

/// An edit that a session has begun.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The edit's id.
    pub id: String,
    /// The name that is edited.
    pub name: Name,
    /// All names of the file when the edit began.
    pub names: Vec<Name>,
    /// The content when the edit began; `None` for no file.
    pub base: Option<String>,
    /// The content that will be written.
    pub text: String,
    /// Whether the content was declared.
    pub declared: bool,
    /// The name that the session has written; `None` if it has not written.
    pub wrote: Option<Name>,
    /// The written content was replaced before the daemon read it.
    pub missed: bool,
    /// Another author has changed the file since the edit began.
    pub foreign: bool,
    /// The number of each name's events when the edit began.
    pub since: BTreeMap<Name, usize>,
}

/// A session.
#[derive(Debug, Default)]
pub struct Person {
    /// What it has of each name.
    pub held: BTreeMap<Name, Held>,
    /// Its open edit; `None` for no edit.
    pub edit: Option<Edit>,
}

/// Everything that the test has on record.
#[derive(Debug, Default)]
pub struct Truth {
    /// The files that names resolve to.
    pub view: View,
    /// Where names resolve to, even if no file is there.
    pub places: BTreeMap<Name, Place>,
    /// The last file that each name resolved to.
    pub last: BTreeMap<Name, Object>,
    /// The changes of each name's content, the oldest first.
    pub events: BTreeMap<Name, Vec<Event>>,
    /// The contents of each name, the oldest first.
    pub past: BTreeMap<Name, Vec<String>>,
    /// The sessions.
    pub people: Vec<Person>,
    /// Names whose way has changed, or that the daemon could not watch, since
    /// the last answer. An author there may be `unknown`.
    pub murky: BTreeSet<Name>,
    /// Paths outside of `NAMES` that were reported as the targets of renames.
    pub beyond: BTreeSet<String>,
    /// The daemon does not run.
    pub down: bool,
    /// A save is in progress. Its first half makes no version before the end.
    pub half: bool,
}

/// The kind of a step, as far as it decides which authors may be reported.
#[derive(Clone, Debug)]
pub enum Act {
    /// This author wrote a content.
    Wrote(String),
    /// This session wrote under a mark that declares nothing.
    Marked(usize),
    /// Names resolve to other files: a directory or a link has changed.
    Way,
    /// Something was mounted or unmounted.
    Mount,
    /// The user renamed files. The author is the user, or the author of the
    /// content.
    Moved,
    /// A file got another name in addition.
    Linked,
    /// The first half of a save was written.
    Half,
}

impl Truth {
    /// Returns the truth at the start of a run.
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

    /// Returns the content that a name resolves to; `None` for no file.
    pub fn text(&self, name: Name) -> Option<&str> {
        self.view.get(name).map(|at| at.text.as_str())
    }

    /// Returns all names of the file that a name resolves to, the name itself
    /// included.
    pub fn names_of(&self, name: Name) -> Vec<Name> {
        match self.view.get(name) {
            None => vec![name],
            Some(at) => self.names_of_file(at.object),
        }
    }

    /// Returns all names of the file that a name resolves or last resolved to.
    /// For a name without a file these are the names that resolve to the same
    /// missing entry and had the same file before. They have not parted
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

    /// Returns the number of a name's events.
    pub fn count(&self, name: Name) -> usize {
        self.events.get(name).map_or(0, Vec::len)
    }

    /// Returns what a session has of a name.
    pub fn held(&mut self, session: usize, name: Name) -> &mut Held {
        let held = self.people[session].held.entry(name).or_default();
        // Contents of such names are never stored (SEC-3).
        held.copy.coarse = name.starts_with(".env");
        held
    }

    /// Returns the state that a session's copy of a name must have.
    pub fn worth(&self, session: usize, name: Name) -> Worth {
        let held = self.people[session].held.get(name);
        // A content that a secret file had is not stored for any name (SEC-3).
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
            // The daemon may not have noticed that the file existed.
            Some(Worth::Deleted) if held.is_some_and(|held| held.copy.open.is_some()) => {
                Worth::Open
            }
            Some(worth) => worth,
        }
    }

    /// Reads the disk after a step, and records the changes of every name.
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
            // A new mount cannot be distinguished from the directory that it
            // covers.
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
                    held.copy.open = Some("what it declared was gone before a look");
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

    /// Notes that the daemon may find contents that it has not read yet only
    /// after a gap.
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
                held.copy.open = Some("it was renamed, and then the watch was lost");
            }
        }
    }

    /// Notes that contents stored for comparison may be lost, since the daemon
    /// was killed. A change in a copy of them then makes all of it stale
    /// (SEEN-8).
    pub fn texts_may_be_lost(&mut self) {
        let held = self.people.iter_mut().flat_map(|all| all.held.values_mut());
        held.for_each(|held| held.copy.may_be_coarse = held.copy.known());
    }

    /// Handles an edit whose name resolves to another file before the daemon
    /// read what the session wrote by it. The name goes with the edit (FILE-2),
    /// and the author of what is left behind is not specified.
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
                    self.leave_open(who, other, "its edit's name parted before a look");
                }
            }
        }
    }

    /// Handles a name that was covered by a mount and then saved with the
    /// previous content. Its absence in between may have been noticed.
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

    /// Returns the user and all authors of this content under any name.
    fn movers(&self, text: Option<&String>) -> Option<Authors> {
        let mut by = Authors::from(["user".to_owned()]);
        for event in self.events.values().flatten() {
            if text.is_some() && event.text.as_ref() == text {
                by.extend(event.by.clone()?);
            }
        }
        Some(by)
    }

    /// Returns the authors that may be reported for a content that the name had
    /// before, if no answer covered the change in between: it may never be
    /// noticed.
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
                // No earlier event: compare with the initial content.
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

    /// Allows the user and this agent as authors of the file's content. It may
    /// count as written by the user after something that the agent wrote.
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

    /// Notes that a question about these names was answered after a fence: the
    /// daemon has read them, by all names of their files.
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

    /// Notes that a session was shown lines of a file by a name; `None` for all
    /// lines.
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
                // A change that was reported is not reported again because some
                // of its lines were read (MOD-1).
                held.told = Told::Nothing;
                held.mixed = false;
            }
            held.resident = true;
            held.perhaps &= other != name;
        }
        self.came_before(session, name);
        self.uses(session, name);
    }

    /// Handles a session that had content by a name which came to the file and
    /// was in no question yet. The daemon may find it to be stale later, after
    /// the session has read the file, and report the file once too often.
    fn came_before(&mut self, session: usize, name: Name) {
        let names = self.names_of(name);
        if names.iter().any(|other| self.held(session, other).came) {
            self.leave_open(session, name, "another name of it was not looked at");
            for other in names {
                self.held(session, other).mixed = true;
            }
        }
    }

    /// Notes that a session has used a name.
    pub fn uses(&mut self, session: usize, name: Name) {
        self.held(session, name).used = true;
    }

    /// Notes that a session wrote this content under a name.
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

    /// Notes that the state of a session's copy is not specified, and why.
    pub fn leave_open(&mut self, session: usize, name: Name, why: &'static str) {
        for other in self.names_of(name) {
            let held = self.held(session, other);
            held.copy.open = Some(why);
            held.told = Told::Open;
        }
    }
}
