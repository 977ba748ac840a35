//! Joins names that resolve to one file, and parts names that no longer do
//! (FILE-1, FILE-2), according to reads.
//!
//! Two names resolve to one file if they have the same real name, or if both
//! were found to be the same object. An inode number alone proves nothing
//! (ATTR-15): it identifies an object only while that has several links, and
//! only if one name was found to resolve to it before and after the other name
//! was.

use smallvec::SmallVec;
use touchmark_proto::RelPath;

use crate::base::Base;
use crate::disk::{Found, ReadOutcome};
use crate::ledger::record::Fact;
use crate::parts::Core;
use crate::tracker::ways::{LOOKS, Look, Way};

impl Core {
    /// Notes what a read of a name found about the name, and parts it from its
    /// file if it left that. Returns the file that the result is about, or
    /// `None` if the result does not count: a later read of that file was
    /// processed already, or the file's own name has to be read first.
    pub(crate) fn found_by(
        &mut self,
        name: &RelPath,
        ticket: u64,
        outcome: &ReadOutcome,
    ) -> Option<RelPath> {
        let file = self.base.view().file_of(name);
        let before = self.base.tracker.inode_of(name);
        // A name that a rename has brought counts too, although nothing is
        // recorded of it yet: it may get another link (ATTR-12).
        if self.base.tracker.files.is_watched(name) {
            self.base.tracker.note_inode(name, &outcome.found);
        }
        let plain = outcome.real.is_none() && outcome.object.is_none();
        if plain && self.base.tracker.ways.is_empty() && self.base.state.names.is_empty() {
            return Some(file);
        }
        // A name that cannot be read now may resolve to the same file as
        // before.
        let told = !matches!(
            outcome.found,
            Found::Unreadable { .. } | Found::Unstable { .. }
        );
        let names = self.base.view().names_of(&file);
        if told && (!plain || names.len() > 1) {
            let real = outcome.real.clone().filter(|real| real != name);
            let same = self.base.tracker.ways.ways.get(name);
            let same = same.filter(|way| way.real == real && way.object == outcome.object);
            let by_way = self.base.tracker.ways.ways.get(name);
            let by_way = by_way.filter(|way| way.real == real && way.object.is_none());
            let untouched = before.is_some() && before == inode(&outcome.found);
            let first = match same.or(by_way.filter(|_| untouched)) {
                Some(way) => way.first,
                // The same file was found, and it has got another link since
                // the last read.
                None if real.is_none() && untouched => 0,
                None => self.base.tracker.next_ticket,
            };
            let mut looks = same.map_or_else(SmallVec::new, |way| way.looks.clone());
            if looks.len() == LOOKS {
                looks.remove(0);
            }
            looks.push(Look {
                ticket,
                since: self.base.tracker.next_ticket,
            });
            let way = Way {
                real,
                link: outcome.link.clone(),
                object: outcome.object,
                looks,
                first,
            };
            self.base.tracker.ways.note(name, way);
        } else if told {
            self.base.tracker.ways.forget(name);
        }
        if told && names.len() > 1 {
            self.part_from(name, &file, &names);
            if self.base.tracker.files.is_watched(name) {
                // The name may be a separate file only now, so its inode is
                // noted again.
                self.base.tracker.note_inode(name, &outcome.found);
            }
            for other in names.iter().filter(|_| *name == file) {
                if self.base.tracker.ways.unsure.remove(other) {
                    match self.base.view().file_of(other) == file {
                        true => self.base.tracker.bring_hints(other, &file),
                        false => self.look_too(name, other),
                    }
                }
            }
        }
        let file = self.base.view().file_of(name);
        if self.base.view().names_of(&file).len() == 1 {
            self.base.tracker.ways.taken.remove(&file);
            return Some(file);
        }
        if *name != file && !self.base.tracker.ways.ways.contains_key(&file) {
            // After a restart: whether the name still resolves to the file is
            // not known before the file's own name has been read.
            self.look_too(name, &file);
            self.base.tracker.ways.unsure.insert(name.clone());
            return None;
        }
        if *name != file {
            self.base.tracker.bring_hints(name, &file);
        }
        let taken = self
            .base
            .tracker
            .ways
            .taken
            .entry(file.clone())
            .or_default();
        if *taken > ticket {
            return None;
        }
        *taken = ticket;
        Some(file)
    }

    /// Parts names that no longer resolve to one file (FILE-2).
    fn part_from(&mut self, name: &RelPath, file: &RelPath, names: &[RelPath]) {
        // Names that have not been read yet are left out.
        let known =
            |other: &&RelPath| *other != name && self.base.tracker.ways.ways.contains_key(*other);
        let (alike, apart): (Vec<_>, Vec<_>) = names
            .iter()
            .filter(known)
            .cloned()
            .partition(|other| self.base.tracker.ways.are_one(name, other));
        self.part(name, file, alike, apart);
    }

    /// Parts a name that is about to be renamed from other links of its file.
    /// If it is a symlink, which is renamed without its target, parts it from
    /// all other names.
    pub(crate) fn part_name(&mut self, name: &RelPath) {
        let file = self.base.view().file_of(name);
        let mut names = self.base.view().names_of(&file);
        names.retain(|other| other != name);
        let ways = &self.base.tracker.ways;
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
            self.base.tracker.ways.aliases.remove(name);
        }
        leaving.retain(|name| self.base.state.names.is_other(name));
        let Some(first) = leaving.first().cloned() else {
            return;
        };
        self.base.record(Fact::NamesParted {
            file: file.clone(),
            leaving: leaving.clone(),
        });
        if self.base.state.paths.contains_key(&first) {
            let stamp = self
                .base
                .tracker
                .live(file)
                .and_then(|live| live.seen.stamp);
            self.base.tracker.live_mut(&first).seen.stamp = stamp;
            if first != *name {
                self.look_too(name, &first);
            }
        }
        self.unwatch(file);
        for name in leaving {
            self.unwatch(&name);
        }
    }

    /// Joins names that have one real name and the same content on record,
    /// mostly none. The new content came to all of them in one step and has one
    /// author.
    pub(crate) fn join_as_recorded(&mut self, name: &RelPath) {
        let ways = &self.base.tracker.ways;
        if ways.by_real.is_empty() {
            return;
        }
        let held = |name: &RelPath| {
            let state = self.base.state.paths.get(&self.base.view().file_of(name));
            state.map(|state| state.held.hash)
        };
        let real = ways.real(name);
        let links = ways.by_real.get(real).into_iter().flatten();
        let same = links.chain([real]).filter(|other| {
            let known = held(name).is_some() && held(other) == held(name);
            known && self.base.tracker.files.is_watched(other)
        });
        let same: Vec<RelPath> = same.cloned().collect();
        for other in same {
            self.join(name, &other);
        }
    }

    /// Joins names that a read has found to be one file (FILE-1). For names
    /// that may be the same file but are not known to be, one more read is
    /// ordered. Requests that wait for the first read wait for that one too.
    pub(crate) fn join_alike(&mut self, name: &RelPath) {
        if self.base.tracker.ways.is_empty() {
            return;
        }
        if self.base.tracker.ways.unsure.contains(name) {
            // The name waits for a read of its file's own name.
            return;
        }
        let perhaps = self.base.tracker.perhaps_alike(name);
        let alike = self.base.tracker.ways.alike(name);
        let (sure, doubtful) = alike.into_iter().partition(|other| {
            // A read through a symlink finds the file behind it. A read of that
            // file does not show that the symlink still leads there.
            let ways = &self.base.tracker.ways;
            let by_link = ways.real(name) == ways.real(other);
            !by_link || ways.real(name) == other || ways.at_once(name, other)
        });
        self.join_found(name, sure);
        let perhaps = [perhaps, doubtful].concat();
        for other in perhaps {
            if self.base.tracker.files.is_watched(&other)
                && self.base.view().file_of(&other) != self.base.view().file_of(name)
            {
                self.look_too(name, &other);
            }
        }
    }

    /// Joins a name that was no separate file until now (ATTR-12), according to
    /// the last reads.
    pub(crate) fn join_as_found(&mut self, name: &RelPath) {
        let alike = self.base.tracker.ways.alike(name);
        self.join_found(name, alike);
    }

    fn join_found(&mut self, name: &RelPath, alike: Vec<RelPath>) {
        for other in alike {
            let apart = self.base.view().file_of(&other) != self.base.view().file_of(name);
            if !apart || !self.base.tracker.files.is_watched(&other) {
                continue;
            }
            let doubtful = self.base.doubtful(name, &other);
            if doubtful.is_empty() {
                self.join(name, &other);
            }
            for doubtful in doubtful {
                self.look_too(name, &doubtful);
            }
        }
    }

    /// Orders a read of another name. Requests that wait for a read of the
    /// first name wait for this one too, each up to a limit.
    ///
    /// What a read finds may order a read of another name, and so on. That ends
    /// when the names stand still. It ends in any case, since each request, and
    /// each hint, allows only so many reads of one name.
    pub(crate) fn look_too(&mut self, name: &RelPath, other: &RelPath) {
        let awaited = self.requests.may_wait(name, other);
        if !awaited && !self.base.tracker.ways.may_look(other) {
            return;
        }
        let ticket = self.base.turn().order_read(other, false);
        self.requests.wait_too(name, other, ticket);
    }

    fn join(&mut self, one: &RelPath, other: &RelPath) {
        let files = (
            self.base.view().file_of(one),
            self.base.view().file_of(other),
        );
        // The file is known by the name behind the symlinks; among such names,
        // by the one that was found to be its name first; among those, by the
        // one that was tracked first. A name that has not been read since a
        // restart counts as old as the symlink to it.
        let ways = &self.base.tracker.ways;
        let by_link = ways.real(one) == ways.real(other);
        let since = |file: &RelPath, by: &RelPath| {
            let (state, ways) = (self.base.state.paths.get(file), &self.base.tracker.ways);
            let way = |name: &RelPath| ways.ways.get(name);
            let own = way(file).filter(|way| way.object.is_some());
            let first = own.or_else(|| way(by)).map_or(0, |way| way.first);
            let tracked = state.map_or(u64::MAX, |state| state.baseline);
            // It does not matter whether one of two hard links is reached
            // through a symlink.
            let by_link = by_link && ways.real(file) != file;
            (state.is_none(), by_link, first, tracked)
        };
        let (file, name) = match since(&files.0, one) <= since(&files.1, other) {
            true => files,
            false => (files.1, files.0),
        };
        let busy = self.base.tracker.writing.contains_key(&name)
            || self.base.tracker.writing.contains_key(&file);
        let undecided = self
            .base
            .tracker
            .live(&name)
            .is_some_and(|live| live.passing().copy_of().is_some() || live.is_held_back());
        if file == name || busy || undecided {
            return;
        }
        // The content found by the name is recorded as a separate version
        // first.
        if self.base.tracker.unsettled.contains(&name) {
            self.settle(&name);
        }
        if self.base.state.paths.contains_key(&name) {
            self.base.record(Fact::NamesJoined {
                name: name.clone(),
                file: file.clone(),
            });
        } else {
            self.base
                .tracker
                .ways
                .aliases
                .insert(name.clone(), file.clone());
        }
        for of in self
            .base
            .tracker
            .ways
            .aliases
            .values_mut()
            .filter(|of| **of == name)
        {
            *of = file.clone();
        }
        self.base.tracker.bring_hints(&name, &file);
        // A content found by one name is a content of the file.
        self.requests.joined(&name, &file);
        // Both names are compared at the next read, even if neither is a
        // symlink or has several links.
        for name in [name, file] {
            if !self.base.tracker.ways.ways.contains_key(&name) {
                let look = Look {
                    ticket: 0,
                    since: self.base.tracker.next_ticket,
                };
                let way = Way {
                    looks: [look].into_iter().collect(),
                    ..Way::default()
                };
                self.base.tracker.ways.note(&name, way);
            }
        }
    }
}

impl Base {
    /// Returns the names of two files that have to be read once more before the
    /// files are joined: names that may have moved to the other file since they
    /// were read.
    fn doubtful(&self, one: &RelPath, other: &RelPath) -> Vec<RelPath> {
        let ways = &self.tracker.ways;
        if ways.real(one) == ways.real(other) {
            return Vec::new();
        }
        let lost = |name: &RelPath, to: &RelPath| {
            let mut names = self.view().names_of(&self.view().file_of(name));
            // A file behind a symlink is read by its own name.
            let is_own = |known: &RelPath| ways.has(known) && ways.real(known) == known;
            names.retain(|known| known != name && is_own(known) && !ways.at_once(known, to));
            names
        };
        let mut names = [lost(one, other), lost(other, one)].concat();
        names.extend((!ways.at_once(one, other)).then(|| other.clone()));
        names
    }
}

fn inode(found: &Found) -> Option<u64> {
    match found {
        Found::File(content) => Some(content.stamp.inode),
        _ => None,
    }
}
