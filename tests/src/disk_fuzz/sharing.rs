//! What sessions have is shared between the names of a file (FILE-1, FILE-2),
//! and copied where a file is renamed (ATTR-12).

use std::collections::BTreeSet;

use super::belief::Copy;
use super::disk::{Object, View};
use super::people::{Held, Told, Truth};
use super::step::{NAMES, Name};

impl Truth {
    /// FILE-1, FILE-2: shares what a session has by one name with all names of
    /// the file. It stays with the names that the session has used. A name that
    /// it has not used, and that is no longer a name of the file, loses it.
    pub(super) fn share(&mut self, before: &View) {
        let object = |view: &View, name: Name| view.get(name).map(|at| at.object);
        let files: BTreeSet<Object> = self.view.values().map(|at| at.object).collect();
        for session in 0..self.people.len() {
            for name in NAMES {
                let was = object(before, name);
                let joined = self.held(session, name).joined_unseen;
                if joined && was != object(&self.view, name) {
                    for other in NAMES.iter().filter(|other| object(before, other) == was) {
                        self.held(session, other).copy.open =
                            Some("names were one file for a moment, and nobody looked");
                    }
                }
                let now = object(&self.view, name);
                let there = now.is_some();
                let held = self.held(session, name);
                // A name that a rename made is forgotten if it is removed
                // before any question about it (ATTR-12).
                let known = held.used || held.carried && held.named;
                // It is also forgotten if it becomes another file, for instance
                // by an exchange.
                let other = was != now;
                held.perhaps |= !known && held.carried && there && other;
                // If one of two exchanged names becomes another file again, the
                // exchange may look like a rename.
                if let Some(partner) = held.exchanged {
                    let moved = object(before, partner) != object(&self.view, partner);
                    self.held(session, name).perhaps |= moved;
                }
                let held = self.held(session, name);
                if !there && !known && held.copy.known() {
                    held.copy.open = Some("a name never used, of what was a file");
                }
            }
            for file in &files {
                let names = self.names_of_file(*file);
                // Names that came to the file from another one than the rest.
                let came = |name: &Name| {
                    let was = object(before, name);
                    was != Some(*file) && names.iter().any(|other| object(before, other) != was)
                };
                let came: Vec<Name> = names.iter().copied().filter(came).collect();
                self.share_one(session, &names, &came);
            }
        }
    }

    fn share_one(&mut self, session: usize, names: &[Name], came: &[Name]) {
        let all = names.iter().map(|name| self.held(session, name).clone());
        let holders: Vec<Held> = all.filter(|held| held.by_itself()).collect();
        let mut known = holders.iter().filter(|held| held.copy.known());
        let mut copy = known
            .next()
            .map_or_else(Copy::default, |held| held.copy.clone());
        known.for_each(|held| copy.join(&held.copy));
        if !holders
            .iter()
            .any(|held| held.copy.known() && !held.perhaps)
            && copy.known()
        {
            copy.open = Some("known by a name alone that perhaps nobody watched");
        }
        let news = holders
            .iter()
            .any(|held| held.copy.layers() != copy.layers());
        let resident = holders.iter().any(|held| held.resident);
        for name in names {
            let held = self.held(session, name);
            let coarse = held.copy.coarse || copy.coarse;
            held.came |= held.by_itself() && held.copy.known() && came.contains(name);
            if held.by_itself() && news {
                held.joined_unseen = true;
                held.mixed = true;
                held.told = Told::Open;
            } else if !held.by_itself() && !held.copy.known() {
                held.since = usize::MAX;
            }
            held.copy = copy.clone();
            // The file's content may be stored for only one of its names.
            held.copy.may_be_coarse |= names.iter().any(|name| name.starts_with(".env"));
            held.copy.coarse = coarse;
            held.resident = resident;
        }
    }

    /// ATTR-12: copies what sessions have of a name to the name that a rename
    /// gave it, unless they have that one already. A rename that was not
    /// watched copies nothing.
    pub fn carried(&mut self, before: &View, murky: &BTreeSet<Name>, moved: &[(Name, Name)]) {
        let object = |view: &View, name: Name| view.get(name).map(|at| at.object);
        for session in 0..self.people.len() {
            let then = self.people[session].held.clone();
            // The renamed file left all names that no longer resolve to it.
            let mut gone: Vec<(Name, Name, bool)> = Vec::new();
            let place = |name: Name| self.places.get(name);
            let entries = moved.iter().flat_map(|&(from, to)| {
                // Other names of the new directory entry, through a link to its
                // directory.
                let last = |name: Name| name.rsplit_once('/').map(|(_, last)| last);
                let same = |other: &&Name| {
                    let by_directory = last(other).is_some() && last(other) == last(to);
                    by_directory && place(other).is_some() && place(other) == place(to)
                };
                let others = NAMES.iter().filter(same).copied();
                let all = [to].into_iter().chain(others);
                let watched = self.watched(from, to);
                all.map(|other| (from, other, watched)).collect::<Vec<_>>()
            });
            for (from, to, watched) in entries {
                let was = object(before, from);
                let left = NAMES
                    .iter()
                    .filter(|name| object(before, name) == was && object(&self.view, name) != was);
                gone.extend(left.map(|name| (*name, to, watched)));
            }
            for (from, to, watched) in gone {
                let moved = object(before, from);
                // A rename onto a tracked name copies nothing to it, and
                // neither does a rename that was not watched.
                let onto = before.contains_key(to);
                if self.down || onto && self.used(to) && !self.unseen(before, to) {
                    continue;
                }
                let carried = self.people.iter().any(|person| {
                    let held = person.held.get(to);
                    held.is_some_and(|held| held.carried)
                });
                if let Some(known) = then.get(from)
                    && moved.is_some()
                    && moved == object(&self.view, to)
                {
                    let open = if onto && (carried || self.unseen(before, to)) {
                        Some("it was renamed onto a file that was there")
                    } else if !watched || !self.watched(from, to) {
                        Some("it was renamed to a directory in which nothing is tracked")
                    } else if murky.contains(from) || murky.contains(to) {
                        Some("it was renamed while nobody watched")
                    } else {
                        None
                    };
                    self.carry(session, to, known.clone(), open);
                }
            }
        }
        self.share(before);
    }

    /// Notes that two names were exchanged. Nothing is copied (ATTR-12).
    pub fn exchanged(&mut self, one: Name, other: Name) {
        let several = self.names_of(one).len() + self.names_of(other).len() > 2;
        for session in 0..self.people.len() {
            for (from, to) in [(one, other), (other, one)] {
                let mut names = self.names_of(from).into_iter();
                let known = names.any(|name| self.held(session, name).by_itself());
                let held = self.held(session, to);
                held.exchanged = (known && !held.used).then_some(from);
                // If a file has several names, the exchange may look like a
                // rename.
                held.perhaps |= known && !held.used && several;
            }
        }
    }

    /// Returns whether any session has used a name.
    fn used(&self, name: Name) -> bool {
        let mut held = self.people.iter().filter_map(|all| all.held.get(name));
        held.any(|held| held.used)
    }

    /// Returns whether the daemon may not have read a name's content from
    /// before this step.
    fn unseen(&self, before: &View, name: Name) -> bool {
        let text = |view: &View| view.get(name).map(|at| at.text.clone());
        let now = usize::from(text(before) != text(&self.view));
        let events = self.events.get(name).map_or(&[][..], |all| all);
        let newest = events.iter().rev().nth(now);
        newest.is_some_and(|newest| newest.unseen)
    }

    /// Returns whether the directory that a name was moved to is certainly
    /// watched: it is the same directory, it was moved itself, or a session has
    /// used a name in it.
    pub(super) fn watched(&self, from: Name, to: Name) -> bool {
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
        own.perhaps |= !own.used && (open.is_some() || known.perhaps);
        if own.copy.known() {
            // The session has the file by another of its names. Whether it has
            // it by this one as well shows when the two part.
            own.copy.open = own.copy.open.or(open);
            return;
        }
        if !known.copy.known() {
            return;
        }
        own.named = false;
        let coarse = own.copy.coarse || known.copy.coarse;
        own.copy = known.copy;
        own.copy.coarse = coarse;
        own.resident = known.resident;
        own.since = usize::MAX;
        own.carried_unseen = true;
        own.came = true;
        own.copy.open = own.copy.open.or(open);
        if own.used {
            own.copy.open = Some("a name that was spoken of was given to a known file");
        }
    }
}
