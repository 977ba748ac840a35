//! Names that lead to one file join, and part when they do so no longer
//! (FILE-1, FILE-2), as reads tell.
//!
//! Two names lead to one file if they have the same real name, or if the same
//! object was found by both. An inode's number alone decides nothing
//! (ATTR-15): an object is told by it only while it has several links, and
//! only if the one name was found to lead to it before and after the other was.

use smallvec::SmallVec;
use touchmark_proto::RelPath;

use crate::engine::Engine;
use crate::input::{Found, ReadOutcome};
use crate::ledger::record::Fact;
use crate::tracker::ways::{LOOKS, Look, Way};

impl Engine {
    /// A name was read: whether it has left its file, and which file the
    /// outcome speaks of. `None` if a later look at that file was taken in.
    pub(crate) fn found_by(
        &mut self,
        name: &RelPath,
        ticket: u64,
        outcome: &ReadOutcome,
    ) -> Option<RelPath> {
        let file = self.view().file_of(name);
        let before = self.tracker.inode_of(name);
        if self.state.paths.contains_key(name) {
            self.tracker.note_inode(name, &outcome.found);
        }
        let plain = outcome.real.is_none() && outcome.object.is_none();
        if plain && self.tracker.ways.is_empty() && self.state.names.is_empty() {
            return Some(file);
        }
        // What cannot be read now may be what it was.
        let told = !matches!(
            outcome.found,
            Found::Unreadable { .. } | Found::Unstable { .. }
        );
        let names = self.view().names_of(&file);
        if told && (!plain || names.len() > 1) {
            let real = outcome.real.clone().filter(|real| real != name);
            let same = self.tracker.ways.ways.get(name);
            let same = same.filter(|way| way.real == real && way.object == outcome.object);
            let by_way = self.tracker.ways.ways.get(name);
            let by_way = by_way.filter(|way| way.real == real && way.object.is_none());
            let untouched = before.is_some() && before == inode(&outcome.found);
            let first = match same.or(by_way.filter(|_| untouched)) {
                Some(way) => way.first,
                // It has got another name.
                None if real.is_none() && untouched => 0,
                None => self.tracker.next_ticket,
            };
            let mut looks = same.map_or_else(SmallVec::new, |way| way.looks.clone());
            if looks.len() == LOOKS {
                looks.remove(0);
            }
            looks.push(Look {
                ticket,
                since: self.tracker.next_ticket,
            });
            let way = Way {
                real,
                object: outcome.object,
                looks,
                first,
            };
            self.tracker.ways.note(name, way);
        } else if told {
            self.tracker.ways.forget(name);
        }
        if told && names.len() > 1 {
            self.part_from(name, &file, &names);
            if self.state.paths.contains_key(name) {
                // Perhaps by itself only now.
                self.tracker.note_inode(name, &outcome.found);
            }
            for other in names.iter().filter(|_| *name == file) {
                if self.tracker.ways.unsure.remove(other) {
                    match self.view().file_of(other) == file {
                        true => self.tracker.bring_hints(other, &file),
                        false => self.look_too(name, other),
                    }
                }
            }
        }
        let file = self.view().file_of(name);
        if self.view().names_of(&file).len() == 1 {
            self.tracker.ways.taken.remove(&file);
            return Some(file);
        }
        if *name != file && !self.tracker.ways.ways.contains_key(&file) {
            // After a restart: whether it leads there still is not known
            // before the file's own name has been looked at.
            self.look_too(name, &file);
            self.tracker.ways.unsure.insert(name.clone());
            return None;
        }
        if *name != file {
            self.tracker.bring_hints(name, &file);
        }
        let taken = self.tracker.ways.taken.entry(file.clone()).or_default();
        if *taken > ticket {
            return None;
        }
        *taken = ticket;
        Some(file)
    }

    /// Has names part that do not lead to one file any more (FILE-2).
    fn part_from(&mut self, name: &RelPath, file: &RelPath, names: &[RelPath]) {
        // Of those that have not been looked at yet nothing is known.
        let known =
            |other: &&RelPath| *other != name && self.tracker.ways.ways.contains_key(*other);
        let (alike, apart): (Vec<_>, Vec<_>) = names
            .iter()
            .filter(known)
            .cloned()
            .partition(|other| self.tracker.ways.are_one(name, other));
        self.part(name, file, alike, apart);
    }

    /// A name is about to be renamed: it parts from other links of its file,
    /// and if it is a symlink, which moves by itself, from all other names.
    pub(crate) fn part_name(&mut self, name: &RelPath) {
        let file = self.view().file_of(name);
        let mut names = self.view().names_of(&file);
        names.retain(|other| other != name);
        let ways = &self.tracker.ways;
        let (alike, apart) = names
            .into_iter()
            .partition(|other| ways.real(name) == name && ways.real(other) == name);
        self.part(name, &file, alike, apart);
    }

    fn part(
        &mut self,
        name: &RelPath,
        file: &RelPath,
        mut alike: Vec<RelPath>,
        apart: Vec<RelPath>,
    ) {
        if apart.is_empty() {
            return;
        }
        let mut leaving = if apart.contains(file) {
            alike.insert(0, name.clone());
            alike
        } else {
            apart
        };
        for name in &leaving {
            self.tracker.ways.aliases.remove(name);
        }
        leaving.retain(|name| self.state.names.is_other(name));
        let Some(first) = leaving.first().cloned() else {
            return;
        };
        self.record(Fact::NamesParted {
            file: file.clone(),
            leaving: leaving.clone(),
        });
        if self.state.paths.contains_key(&first) {
            let stamp = self.tracker.live(file).and_then(|live| live.seen.stamp);
            self.tracker.live_mut(&first).seen.stamp = stamp;
            if first != *name {
                self.look_too(name, &first);
            }
        }
        self.unwatch(file);
        for name in leaving {
            self.unwatch(&name);
        }
    }

    /// Has names be one file that lead to one real name and are recorded to hold
    /// the same, mostly nothing: what is there now came to all of them at once,
    /// and has one author.
    pub(crate) fn join_as_recorded(&mut self, name: &RelPath) {
        let ways = &self.tracker.ways;
        if ways.by_real.is_empty() {
            return;
        }
        let held = |name: &RelPath| {
            let state = self.state.paths.get(&self.view().file_of(name));
            state.map(|state| state.held.hash)
        };
        let real = ways.real(name);
        let links = ways.by_real.get(real).into_iter().flatten();
        let same = links.chain([real]).filter(|other| {
            let known = held(name).is_some() && held(other) == held(name);
            known && self.tracker.files.is_watched(other)
        });
        let same: Vec<RelPath> = same.cloned().collect();
        for other in same {
            self.join(name, &other);
        }
    }

    /// Has names be one file that a look found to be (FILE-1). Of those that
    /// may be, and are not known to be, one more look is ordered; whoever waits
    /// for the first one waits for that.
    pub(crate) fn join_alike(&mut self, name: &RelPath) {
        if self.tracker.ways.is_empty() {
            return;
        }
        let object = self.tracker.ways.ways.get(name).and_then(|way| way.object);
        let alone = object.and_then(|object| self.tracker.ways.by_object.get(&object));
        if alone.is_some_and(|names| names.len() == 1) {
            // The name of a file that has just got its second, perhaps.
            self.tracker.list_inodes();
        }
        if self.tracker.ways.unsure.contains(name) {
            // It waits for a look at its file's own.
            return;
        }
        let (alike, perhaps) = self.tracker.ways.alike(name);
        let (sure, doubtful) = alike.into_iter().partition(|other| {
            // A look through a link finds the file behind it. One at the file
            // does not find that the link still leads there.
            let ways = &self.tracker.ways;
            let by_link = ways.real(name) == ways.real(other);
            !by_link || ways.real(name) == other || ways.at_once(name, other)
        });
        self.join_found(name, sure);
        let perhaps = [perhaps, doubtful].concat();
        for other in perhaps {
            if self.tracker.files.is_watched(&other)
                && self.view().file_of(&other) != self.view().file_of(name)
            {
                self.look_too(name, &other);
            }
        }
    }

    /// The same for a name that was no file of its own until now (ATTR-12), by
    /// what the last looks found.
    pub(crate) fn join_as_found(&mut self, name: &RelPath) {
        let (alike, _) = self.tracker.ways.alike(name);
        self.join_found(name, alike);
    }

    fn join_found(&mut self, name: &RelPath, alike: Vec<RelPath>) {
        for other in alike {
            let apart = self.view().file_of(&other) != self.view().file_of(name);
            if !apart || !self.tracker.files.is_watched(&other) {
                continue;
            }
            let doubtful = self.doubtful(name, &other);
            if doubtful.is_empty() {
                self.join(name, &other);
            }
            for doubtful in doubtful {
                self.look_too(name, &doubtful);
            }
        }
    }

    /// The names of the two files, of which these are one each, by which what
    /// was found by these may have been lost since to the other file: they are
    /// looked at once more.
    fn doubtful(&self, one: &RelPath, other: &RelPath) -> Vec<RelPath> {
        let ways = &self.tracker.ways;
        if ways.real(one) == ways.real(other) {
            return Vec::new();
        }
        let lost = |name: &RelPath, to: &RelPath| {
            let mut names = self.view().names_of(&self.view().file_of(name));
            // What is behind a link is looked at by its own name.
            let is_own = |known: &RelPath| ways.has(known) && ways.real(known) == known;
            names.retain(|known| known != name && is_own(known) && !ways.at_once(known, to));
            names
        };
        let mut names = [lost(one, other), lost(other, one)].concat();
        names.extend((!ways.at_once(one, other)).then(|| other.clone()));
        names
    }

    /// Orders a look at another name, for which waits who waits for a look at
    /// the first.
    pub(crate) fn look_too(&mut self, name: &RelPath, other: &RelPath) {
        let ticket = self.turn().order_read(other, false);
        for pending in self.pending.values_mut() {
            if pending.reads.contains_key(name) || pending.found.contains_key(name) {
                pending.reads.insert(other.clone(), ticket);
            }
        }
    }

    fn join(&mut self, one: &RelPath, other: &RelPath) {
        let files = (self.view().file_of(one), self.view().file_of(other));
        // The file's own is the one behind the links, the one that has been a
        // name of it before, the one that was tracked first. One that has not
        // been looked at since has been so for as long as the link to it.
        let ways = &self.tracker.ways;
        let by_link = ways.real(one) == ways.real(other);
        let since = |file: &RelPath, by: &RelPath| {
            let (state, ways) = (self.state.paths.get(file), &self.tracker.ways);
            let way = |name: &RelPath| ways.ways.get(name);
            let own = way(file).filter(|way| way.object.is_some());
            let first = own.or_else(|| way(by)).map_or(0, |way| way.first);
            let tracked = state.map_or(u64::MAX, |state| state.baseline);
            // That one of two hard links is reached through a symlink decides
            // nothing.
            let by_link = by_link && ways.real(file) != file;
            (state.is_none(), by_link, first, tracked)
        };
        let (file, name) = match since(&files.0, one) <= since(&files.1, other) {
            true => files,
            false => (files.1, files.0),
        };
        let busy =
            self.tracker.writing.contains_key(&name) || self.tracker.writing.contains_key(&file);
        let undecided = self
            .tracker
            .live(&name)
            .is_some_and(|live| live.passing().copy_of().is_some() || live.is_held_back());
        if file == name || busy || undecided {
            return;
        }
        // What was found by the name is a version of its own first.
        if self.tracker.unsettled.contains(&name) {
            self.settle(&name);
        }
        if self.state.paths.contains_key(&name) {
            self.record(Fact::NamesJoined {
                name: name.clone(),
                file: file.clone(),
            });
        } else {
            self.tracker.ways.aliases.insert(name.clone(), file.clone());
        }
        for of in self
            .tracker
            .ways
            .aliases
            .values_mut()
            .filter(|of| **of == name)
        {
            *of = file.clone();
        }
        self.tracker.bring_hints(&name, &file);
        // What was found by the one name was found of the file.
        for pending in self.pending.values_mut() {
            if let Some(found) = pending.found.get(&name).cloned() {
                pending.found.entry(file.clone()).or_insert(found);
            }
        }
        // Both are compared at the next look, however plain they are.
        for name in [name, file] {
            if !self.tracker.ways.ways.contains_key(&name) {
                let look = Look {
                    ticket: 0,
                    since: self.tracker.next_ticket,
                };
                let way = Way {
                    looks: [look].into_iter().collect(),
                    ..Way::default()
                };
                self.tracker.ways.note(&name, way);
            }
        }
    }

    /// The names that a fact has a session use of files that have several:
    /// facts of their own, which come before it.
    pub(crate) fn names_used(&mut self, fact: &Fact) -> Vec<Fact> {
        let (session, files) = match fact {
            Fact::Tracked { session, path, .. } | Fact::Read { session, path, .. } => {
                (session, vec![path])
            }
            Fact::EditBegun(edit) => {
                let files = edit.files.iter().map(|file| &file.path);
                (&edit.session, files.collect())
            }
            _ => return Vec::new(),
        };
        if self.spoken.named.is_empty() || self.spoken.session.as_ref() != Some(session) {
            return Vec::new();
        }
        let mut facts = Vec::new();
        for file in files {
            let Some(name) = self.spoken.named.get(file) else {
                continue;
            };
            if self.state.names.spoken(session, file) != name {
                self.tracker.ways.aliases.remove(name);
                facts.push(Fact::NameUsed {
                    session: session.clone(),
                    name: name.clone(),
                    file: file.clone(),
                });
            }
        }
        facts
    }
}

fn inode(found: &Found) -> Option<u64> {
    match found {
        Found::File(content) => Some(content.stamp.inode),
        _ => None,
    }
}
