//! The truth of a run: who changed what a name leads to, and what each session
//! was shown of it. Nothing here asks the daemon.

use std::collections::{BTreeMap, BTreeSet};

use super::belief::{Copy, Worth};
use super::disk::{Disk, View};
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
    /// No question was answered since that rename.
    pub carried_unseen: bool,
    /// What it was told.
    pub told: Told,
    /// How many events the name had when it was last shown or written.
    pub since: usize,
    /// The lines are still in its context.
    pub resident: bool,
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
    /// Somebody else has changed the file meanwhile.
    pub foreign: bool,
    /// How many events the name had at the begin.
    pub since: usize,
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
    /// What happened to each name, the oldest first.
    pub events: BTreeMap<Name, Vec<Event>>,
    /// What each name led to, the oldest first.
    pub past: BTreeMap<Name, Vec<String>>,
    /// The sessions.
    pub people: Vec<Person>,
    /// Names whose way has changed, or that the daemon could not watch, since
    /// the last answer: who writes there may be `unknown`.
    pub murky: BTreeSet<Name>,
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
    /// Names lead elsewhere: a directory, a link, a mount.
    Way,
    /// Half of a save was written.
    Half,
}

impl Truth {
    /// At the start.
    pub fn new(disk: &Disk, sessions: usize) -> Self {
        let view = disk.view();
        Self {
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
        let Some(at) = self.view.get(name) else {
            return vec![name];
        };
        let same = self
            .view
            .iter()
            .filter(|(_, other)| other.object == at.object);
        same.map(|(name, _)| *name).collect()
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
        match held.map(|held| held.copy.worth(self.text(name))) {
            None => Worth::Unread,
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
        for name in NAMES {
            let (old, new) = (before.get(name), self.view.get(name));
            let other_object = old.map(|at| at.object) != new.map(|at| at.object);
            if matches!(act, Act::Way) && other_object {
                self.murky.insert(name);
            }
            if old.map(|at| &at.text) == new.map(|at| &at.text) {
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
                Act::Wrote(author) => Some(BTreeSet::from([author.clone()])),
                Act::Half => Some(BTreeSet::from(["user".to_owned()])),
                Act::Marked(session) => Some(BTreeSet::from([
                    "user".to_owned(),
                    format!("agent:{}", super::step::session(*session)),
                ])),
                Act::Way => None,
            };
            let by = by.map(|mut by| {
                if gap {
                    by.insert("unknown".into());
                }
                by
            });
            let event = Event {
                text: new.map(|at| at.text.clone()),
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
        self.join(&before);
        for person in &mut self.people {
            let Some(edit) = &person.edit else { continue };
            for (name, held) in &mut person.held {
                let was = before.get(name).map(|at| &at.text);
                let gone = was != self.view.get(name).map(|at| &at.text);
                if edit.wrote.is_some() && was == Some(&edit.text) && gone && unseen.contains(name)
                {
                    held.copy.open = Some("what it declared was gone before anybody looked");
                }
            }
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

    /// A question was answered behind a fence: everything has been looked at.
    pub fn fenced(&mut self) {
        self.murky.clear();
        for held in self
            .people
            .iter_mut()
            .flat_map(|person| person.held.values_mut())
        {
            held.carried_unseen = false;
        }
        let half = self.half;
        for event in self.events.values_mut().flatten() {
            event.unseen &= event.half && half;
        }
    }

    /// FILE-1: what a session saw by one name it saw by all. A name that has
    /// come to lead to a file that the session knows by another name is known.
    fn join(&mut self, before: &View) {
        let object = |view: &View, name: Name| view.get(name).map(|at| at.object);
        for name in NAMES {
            let now = object(&self.view, name);
            if now.is_none() || now == object(before, name) {
                continue;
            }
            let elder = NAMES.iter().find(|other| {
                *other != name && object(before, other) == now && object(&self.view, other) == now
            });
            let Some(elder) = elder else { continue };
            for session in 0..self.people.len() {
                let known = self.people[session]
                    .held
                    .get(elder)
                    .cloned()
                    .unwrap_or_default();
                let own = self.held(session, name);
                let coarse = own.copy.coarse || known.copy.coarse;
                if !own.copy.known() {
                    own.copy = known.copy;
                    own.resident = known.resident;
                    own.since = usize::MAX;
                } else if own.copy != known.copy {
                    // FILE-1 wants one answer for both names, FILE-2 that the
                    // session is told that this name leads elsewhere.
                    own.copy.open = Some("this name joined a file known by another name");
                    self.held(session, elder).copy.open =
                        Some("a known name has come to lead to this file");
                }
                self.held(session, name).copy.coarse = coarse;
            }
        }
    }

    /// ATTR-12: what sessions know of a name is copied to the one it was given
    /// by a rename, unless they know that one already. A rename that nobody
    /// watched tells nothing.
    pub fn carried(&mut self, before: &View, murky: &BTreeSet<Name>, moved: &[(Name, Name)]) {
        let object = |view: &View, name: Name| view.get(name).map(|at| at.object);
        for session in 0..self.people.len() {
            let then = self.people[session].held.clone();
            for &(from, to) in moved {
                let moved = object(before, from);
                if let Some(known) = then.get(from)
                    && moved.is_some()
                    && moved == object(&self.view, to)
                {
                    let open = if before.contains_key(to) {
                        Some("it was renamed onto a file that was there")
                    } else if !self.watched(from, to) {
                        Some("it was renamed to a directory in which nothing is tracked")
                    } else if self.down || murky.contains(from) || murky.contains(to) {
                        Some("it was renamed while nobody watched")
                    } else {
                        None
                    };
                    self.carry(session, to, known.clone(), open);
                }
            }
        }
    }

    /// Whether the directory that a name was moved to is watched for sure: it
    /// is the same, or moved itself, or somebody has used a name in it.
    fn watched(&self, from: Name, to: Name) -> bool {
        let parts = |name: Name| name.rsplit_once('/').unwrap_or(("", name));
        let ((old, file), (new, renamed)) = (parts(from), parts(to));
        let used = |name: &Name| {
            let held = self
                .people
                .iter()
                .filter_map(|person| person.held.get(name));
            held.clone().any(|held| held.used)
        };
        old == new
            || new.is_empty()
            || (file == renamed
                && matches!(
                    (old, new),
                    ("d" | "d/e", "k" | "k/e") | ("k" | "k/e", "d" | "d/e")
                ))
            || NAMES.iter().any(|name| parts(name).0 == new && used(name))
    }

    fn carry(&mut self, session: usize, to: Name, known: Held, open: Option<&'static str>) {
        let own = self.held(session, to);
        own.carried |= known.used || known.carried;
        if own.copy.known() || !known.copy.known() {
            return;
        }
        let coarse = own.copy.coarse || known.copy.coarse;
        own.copy = known.copy;
        own.copy.coarse = coarse;
        own.resident = known.resident;
        own.since = usize::MAX;
        own.carried_unseen = true;
        own.copy.open = own.copy.open.or(open);
        if own.used {
            own.copy.open = Some("a name that was spoken of was given to a known file");
        }
    }

    /// A session was shown lines of a file by a name, or all of it.
    pub fn shown(&mut self, session: usize, name: Name, range: Option<(usize, usize)>) {
        let Some(text) = self.text(name).map(str::to_owned) else {
            self.held(session, name).used = true;
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
            held.told = Told::Nothing;
            held.resident = true;
        }
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
            held.resident = false;
        }
        self.held(session, name).used = true;
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
