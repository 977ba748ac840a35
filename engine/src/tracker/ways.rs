//! Where names were last found to lead, beyond the recorded facts: through
//! which symlinks, to which of a file's several links. Lost at a restart,
//! after which every name is looked at anew.
//!
//! Two names lead to one file if they have the same real name, or if the same
//! object was found by both. An inode's number alone decides nothing
//! (ATTR-15): an object is told by it only while it has several links, and
//! only if the one name was looked at after the other had been found.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::RelPath;

use crate::by_path::ByPath;
use crate::engine::Engine;
use crate::input::{Found, Object, ReadOutcome};
use crate::ledger::record::Fact;
use crate::tracker::Tracker;
use crate::view::View;

/// Where a name was found to lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Way {
    /// The real name, where symlinks lie on the way.
    real: Option<RelPath>,
    /// The file, where it has several links.
    object: Option<Object>,
    /// The read that found it.
    ticket: u64,
    /// Reads ordered from this one on look later.
    since: u64,
    /// The first that found it there; 0 if it was there before.
    first: u64,
}

/// Where names lead that are not plain, or have been taken for a file's
/// second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways {
    ways: ByPath<Way>,
    by_real: BTreeMap<RelPath, BTreeSet<RelPath>>,
    by_object: BTreeMap<Object, BTreeSet<RelPath>>,
    /// Names of a file known by another that no session has used.
    aliases: BTreeMap<RelPath, RelPath>,
    /// Tracked names by the number of their inode, for finding the other name
    /// of a file that has just got its second. Made when that is needed first;
    /// what it says may be out of date.
    by_inode: Option<ByInode>,
    /// Names that were looked at before their file's own.
    unsure: BTreeSet<RelPath>,
    /// The newest read taken in of a file that has several names.
    taken: BTreeMap<RelPath, u64>,
}

/// Names by the number of their inode.
#[derive(Clone, Debug, Default)]
struct ByInode {
    names: BTreeMap<u64, BTreeSet<RelPath>>,
    /// How many names that are.
    count: usize,
}

impl ByInode {
    fn insert(&mut self, name: RelPath, inode: u64) {
        let names = self.names.entry(inode).or_default();
        self.count += usize::from(names.insert(name));
    }
}

impl Ways {
    /// Whether nothing but plain names is known.
    fn is_empty(&self) -> bool {
        self.ways.is_empty() && self.aliases.is_empty()
    }

    fn note(&mut self, name: &RelPath, way: Way) {
        self.forget(name);
        if let Some(real) = &way.real {
            let names = self.by_real.entry(real.clone()).or_default();
            names.insert(name.clone());
        }
        if let Some(object) = way.object {
            let names = self.by_object.entry(object).or_default();
            names.insert(name.clone());
        }
        self.ways.insert(name.clone(), way);
    }

    fn forget(&mut self, name: &RelPath) {
        let Some(way) = self.ways.remove(name) else {
            return;
        };
        if let Some(real) = way.real
            && let Some(names) = self.by_real.get_mut(&real)
        {
            names.remove(name);
            if names.is_empty() {
                self.by_real.remove(&real);
            }
        }
        if let Some(object) = way.object
            && let Some(names) = self.by_object.get_mut(&object)
        {
            names.remove(name);
            if names.is_empty() {
                self.by_object.remove(&object);
            }
        }
    }

    fn real<'a>(&'a self, name: &'a RelPath) -> &'a RelPath {
        let way = self.ways.get(name);
        way.and_then(|way| way.real.as_ref()).unwrap_or(name)
    }

    /// Whether two names lead to one file, as far as is known.
    fn are_one(&self, one: &RelPath, other: &RelPath) -> bool {
        let object = |name| self.ways.get(name).and_then(|way: &Way| way.object);
        self.real(one) == self.real(other)
            || object(one).is_some_and(|found| object(other) == Some(found))
    }

    /// Other names that lead to where this one does; of the second kind, those
    /// that may.
    fn alike(&self, name: &RelPath) -> (Vec<RelPath>, Vec<RelPath>) {
        let real = self.real(name);
        let mut names: BTreeSet<RelPath> = self.by_real.get(real).cloned().unwrap_or_default();
        names.insert(real.clone());
        let object = self.ways.get(name).and_then(|way| way.object);
        let mut perhaps = Vec::new();
        if let Some(object) = object {
            names.extend(self.by_object.get(&object).into_iter().flatten().cloned());
            let listed = self.by_inode.as_ref();
            let listed = listed.and_then(|listed| listed.names.get(&object.inode));
            perhaps.extend(listed.into_iter().flatten().cloned());
        }
        names.remove(name);
        perhaps.retain(|other| other != name && !names.contains(other));
        (names.into_iter().collect(), perhaps)
    }
}

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
            let first = match self.tracker.ways.ways.get(name) {
                Some(way) if way.real == real && way.object == outcome.object => way.first,
                // It has got another name.
                _ if real.is_none() && before.is_some() && before == inode(&outcome.found) => 0,
                _ => ticket,
            };
            let way = Way {
                real,
                object: outcome.object,
                ticket,
                since: self.tracker.next_ticket,
                first,
            };
            self.tracker.ways.note(name, way);
        } else if told {
            self.tracker.ways.forget(name);
        }
        if told && names.len() > 1 {
            self.part_from(name, &file, &names);
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

    /// A name is about to be renamed: of other links of its file, it parts.
    pub(crate) fn part_name(&mut self, name: &RelPath) {
        let file = self.view().file_of(name);
        let mut names = self.view().names_of(&file);
        names.retain(|other| other != name);
        let (alike, apart) = names
            .into_iter()
            .partition(|other| self.tracker.ways.real(name) == self.tracker.ways.real(other));
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
    pub(crate) fn join_alike(&mut self, name: &RelPath, ticket: u64) {
        if self.tracker.ways.is_empty() {
            return;
        }
        let file = self.view().file_of(name);
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
        for other in alike {
            if self.tracker.files.is_watched(&other) && self.view().file_of(&other) != file {
                let earlier = self
                    .tracker
                    .ways
                    .ways
                    .get(&other)
                    .map_or(0, |way| way.since);
                if self.tracker.ways.real(&other) == self.tracker.ways.real(name)
                    || earlier <= ticket
                {
                    self.join(name, &other);
                } else {
                    self.look_too(name, &other);
                }
            }
        }
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
        let ways = &self.tracker.ways;
        let way = |name: &RelPath| ways.ways.get(name);
        let later = |one: &Way, other: &Way| one.since <= other.ticket || other.since <= one.ticket;
        let (mut alike, _) = ways.alike(name);
        alike.retain(|other| {
            let later = way(name)
                .zip(way(other))
                .is_some_and(|(one, other)| later(one, other));
            let same = ways.real(other) == ways.real(name);
            (later || same) && self.tracker.files.is_watched(other)
        });
        for other in alike {
            self.join(name, &other);
        }
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
        let (one, other) = (self.view().file_of(one), self.view().file_of(other));
        // The file's own is the one behind the links, the one that has been a
        // name of it before, the one that was tracked first.
        let since = |name: &RelPath| {
            let (state, ways) = (self.state.paths.get(name), &self.tracker.ways);
            let first = ways.ways.get(name).map_or(0, |way| way.first);
            let tracked = state.map_or(u64::MAX, |state| state.baseline);
            (state.is_none(), ways.real(name) != name, first, tracked)
        };
        let (file, name) = if since(&one) <= since(&other) {
            (one, other)
        } else {
            (other, one)
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
                let way = Way {
                    since: self.tracker.next_ticket,
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

impl View<'_> {
    /// The file that a name leads to, by the name that everything is kept by.
    pub(crate) fn file_of(&self, name: &RelPath) -> RelPath {
        let name = self.tracker.ways.aliases.get(name).unwrap_or(name);
        self.state.names.file_of(name).clone()
    }

    /// Whether any file has several names.
    pub(crate) fn has_several_names(&self) -> bool {
        !self.state.names.is_empty() || !self.tracker.ways.aliases.is_empty()
    }

    /// The names of a file, its own included.
    pub(crate) fn names_of(&self, file: &RelPath) -> Vec<RelPath> {
        let mut names = vec![file.clone()];
        names.extend(self.state.names.others_of(file).cloned());
        let aliases = self.tracker.ways.aliases.iter();
        names.extend(
            aliases
                .filter(|(_, of)| *of == file)
                .map(|(name, _)| name.clone()),
        );
        names
    }

    /// Hints at several names, as one event told them: once for each file.
    pub(crate) fn files_hinted(&self, names: Vec<RelPath>) -> Vec<RelPath> {
        if self.tracker.ways.is_empty() && self.state.names.is_empty() {
            return names;
        }
        let mut by_file: BTreeMap<RelPath, RelPath> = BTreeMap::new();
        for name in names {
            let file = self.file_of(&name);
            let own = name == file;
            let hinted = by_file.entry(file).or_insert_with(|| name.clone());
            if own {
                *hinted = name;
            }
        }
        by_file.into_values().collect()
    }
}

impl Tracker {
    fn inode_of(&self, name: &RelPath) -> Option<u64> {
        self.files.inode_of(name)
    }

    /// Remembers a tracked name's inode.
    pub(crate) fn note_inode(&mut self, name: &RelPath, found: &Found) {
        let Found::File(content) = found else {
            return;
        };
        let inode = content.stamp.inode;
        self.files.note_inode(name, content);
        let most = 2 * self.files.len() + 1_024;
        if let Some(by_inode) = &mut self.ways.by_inode {
            by_inode.insert(name.clone(), inode);
            if by_inode.count > most {
                self.ways.by_inode = None;
            }
        }
    }

    /// Every tracked name by the number of its inode.
    fn list_inodes(&mut self) {
        if self.ways.by_inode.is_none() {
            let mut by_inode = ByInode::default();
            for (name, inode) in self.files.inodes() {
                by_inode.insert(name.clone(), inode);
            }
            self.ways.by_inode = Some(by_inode);
        }
    }

    /// What was hinted at by one of a file's names is said of the file.
    fn bring_hints(&mut self, name: &RelPath, file: &RelPath) {
        let Some(by_name) = self.forget_live(name) else {
            return;
        };
        let live = self.live_mut(file);
        live.hints.join(&by_name.hints);
        live.save.episode = live.save.episode.max(by_name.save.episode);
    }

    /// A name is not taken for another file's any more, unless somebody has
    /// used it as such.
    pub(crate) fn no_alias(&mut self, name: &RelPath) {
        self.ways.aliases.remove(name);
    }

    /// A name is watched no longer.
    pub(crate) fn forget_way(&mut self, name: &RelPath) {
        self.ways.forget(name);
        self.ways.aliases.remove(name);
        self.ways.aliases.retain(|_, of| of != name);
        self.ways.taken.remove(name);
        self.ways.unsure.remove(name);
    }
}

fn inode(found: &Found) -> Option<u64> {
    match found {
        Found::File(content) => Some(content.stamp.inode),
        _ => None,
    }
}
