//! Which names are one file, and what happens to what sessions have seen by
//! them.

use std::collections::{BTreeMap, BTreeSet};

use crate::belief::Worth;
use crate::disk::{Disk, NAMES, Name};

use crate::people::{By, File, Held, SESSIONS, Told, Truth, USER};

impl Truth {
    /// Finds which names are one file now. Returns the files that are reached
    /// in another way than before.
    pub fn regroup(&mut self, disk: &Disk) -> BTreeSet<usize> {
        let view: BTreeMap<Name, (String, Option<usize>)> = NAMES
            .iter()
            .map(|name| {
                let led = disk.lead(name);
                (*name, (led.place, led.node))
            })
            .collect();
        let before = std::mem::replace(&mut self.view, view);
        if before == self.view {
            return BTreeSet::new();
        }
        let mut groups: Vec<Vec<Name>> = Vec::new();
        for name in NAMES {
            let (place, node) = &self.view[name];
            let same = groups.iter_mut().find(|group| {
                group.iter().any(|other| {
                    let (other_place, other_node) = &self.view[other];
                    other_place == place || node.is_some() && other_node == node
                })
            });
            match same {
                Some(group) => group.push(name),
                None => groups.push(vec![name]),
            }
        }
        let old = self.of.clone();
        let mut taken = BTreeSet::new();
        let mut moved = BTreeSet::new();
        let mut parted = BTreeSet::new();
        let mut after: Vec<(usize, Vec<Name>, usize)> = Vec::new();
        for group in groups {
            let stays = |name: &&Name| before.get(*name) == self.view.get(*name);
            let place = |name: &&Name| before.get(*name).map(|b| &b.0) == Some(&self.view[*name].0);
            let elder = group
                .iter()
                .find(stays)
                .or_else(|| group.iter().find(place));
            let elder = old[elder.unwrap_or(&group[0])];
            let id = if taken.insert(elder) {
                elder
            } else {
                self.next += 1;
                parted.insert(elder);
                let mut clone = self.files[&elder].clone();
                // A loss is reported once, by either name.
                clone.lost.iter_mut().for_each(|lost| lost.must = false);
                self.files.insert(self.next - 1, clone);
                taken.insert(self.next - 1);
                self.next - 1
            };
            if !group.iter().any(|name| place(&name)) {
                moved.insert(id);
            }
            after.push((id, group, elder));
        }
        for (id, group, _) in &after {
            for name in group {
                self.of.insert(name, *id);
            }
        }
        let was: BTreeMap<usize, File> = self.files.clone();
        for (id, group, elder) in &after {
            let several = group
                .iter()
                .any(|name| old[name] != *elder && !was[&old[name]].held.is_empty());
            if (several || parted.contains(elder))
                && let Some(file) = self.files.get_mut(id)
            {
                file.blurred.extend(0..SESSIONS);
                // An edit goes with its name. A content from before the first
                // read is found by the other name too.
                let unseen = file.versions.last_mut().filter(|last| last.maybe);
                if let Some(last) = unseen {
                    last.by |= USER;
                    last.candidates_perhaps |= std::mem::take(&mut last.candidates);
                }
            }
            let theirs: Vec<Name> = group.iter().copied().filter(|n| old[n] == *elder).collect();
            let all_before = old.values().filter(|file| *file == elder).count();
            if theirs.len() < all_before {
                self.stay_with_names(*id, &theirs);
            }
            for name in group.iter().filter(|name| old[*name] != *elder) {
                self.join(*id, name, &was[&old[name]]);
            }
        }
        moved
    }

    /// FILE-2: sessions go with the names that they used.
    pub fn stay_with_names(&mut self, id: usize, names: &[Name]) {
        for session in 0..SESSIONS {
            let uses = names.iter().any(|name| self.uses(session, name));
            if let Some(file) = self.files.get_mut(&id)
                && let Some(held) = file.held.get_mut(&session)
                && !uses
            {
                held.copy.open = Some("it used another name of what was one file");
                held.told = Told::Open;
            }
        }
    }

    /// FILE-1: handles that a name now resolves to a file. What a session had
    /// seen by that name, it has seen of the file.
    pub fn join(&mut self, id: usize, name: Name, was: &File) {
        let mut writers = BTreeSet::new();
        for edit in self.edits.values_mut().filter(|edit| edit.name == name) {
            edit.murky = true;
            writers.insert(edit.session);
        }
        if !was.held.is_empty()
            && let Some(file) = self.files.get_mut(&id)
        {
            file.from = file.newest();
            for held in file.held.values_mut() {
                held.told = Told::Open;
            }
        }
        for session in 0..SESSIONS {
            let carried = was.held.get(&session).is_some_and(|held| held.carried);
            if !self.uses(session, name) && !carried {
                let open = was.held.get(&session).and_then(|held| held.copy.open);
                if let Some(why) = open
                    && let Some(file) = self.files.get_mut(&id)
                {
                    let held = file.held.entry(session).or_default();
                    held.copy.open = Some(why);
                    held.told = Told::Open;
                }
                continue;
            }
            let Some(theirs) = was.held.get(&session).cloned() else {
                continue;
            };
            let Some(file) = self.files.get_mut(&id) else {
                return;
            };
            let newest = file.newest();
            file.from = newest;
            file.versions[newest].maybe = true;
            file.versions[newest].at = self.now;
            if file.text().is_none() {
                // Names that resolve to no file are not one file.
                let held = file.held.entry(session).or_default();
                held.copy.open = Some("a name has come to lead to where nothing is");
                held.told = Told::Open;
                held.joined = true;
                continue;
            }
            match file.held.get_mut(&session) {
                Some(held) if held.copy.is_known() && theirs.copy.is_known() => {
                    if held.copy != theirs.copy {
                        held.copy.open = Some("two names that it knew became one file");
                        held.told = Told::Open;
                        held.joined = true;
                        held.joined_at = self.now;
                    }
                }
                Some(held) if held.copy.is_known() => {
                    held.joined = true;
                    held.joined_at = self.now;
                }
                known => {
                    // The session may know the file only by its name, without
                    // having seen it.
                    let open = known.is_some() && !theirs.copy.is_known();
                    let told = if open { Told::Open } else { Told::Nothing };
                    let held = Held {
                        told,
                        since: newest,
                        joined: true,
                        joined_at: self.now,
                        ..theirs
                    };
                    file.held.insert(session, held);
                }
            }
            if writers.contains(&session)
                && let Some(held) = file.held.get_mut(&session)
            {
                held.copy.open = Some("it had an edit open under another's name");
                held.told = Told::Open;
            }
        }
    }

    /// ATTR-12: copies what sessions have seen of a name to the name that it
    /// got by a rename. `then` is what they had seen; `open` says why that may
    /// not be so here.
    pub fn carried(
        &mut self,
        to: Name,
        then: &BTreeMap<usize, Held>,
        brought: &BTreeMap<usize, By>,
        open: Option<&'static str>,
    ) {
        for (session, known) in then {
            let spoken = self.uses(*session, to);
            let file = self.file_mut(to);
            let newest = file.newest();
            if file.held.is_empty() {
                file.from = newest;
            }
            let there = file
                .held
                .get(session)
                .is_some_and(|held| held.copy.is_known());
            if !there && !known.copy.is_known() && !spoken {
                let held = file.held.entry(*session).or_default();
                held.copy.open = Some("it had named what was renamed, and not read it");
                held.told = Told::Open;
                held.carried = true;
                continue;
            }
            if there || !known.copy.is_known() {
                if let Some(held) = file.held.get_mut(session)
                    && known.copy.is_known()
                {
                    held.joined = true;
                    if open.is_some() {
                        held.copy.open = open;
                        held.told = Told::Open;
                    }
                }
                continue;
            }
            let mut held = known.clone();
            held.shown = None;
            held.brought |= brought.get(session).copied().unwrap_or(0);
            // The rename itself may count as a change.
            held.since = newest.saturating_sub(1);
            held.carried = !spoken;
            held.told = match held.copy.worth(file.text()) {
                Worth::Fresh => Told::UpTo(newest),
                _ => Told::Open,
            };
            if let Some(why) = open.or_else(|| spoken.then_some("it had spoken of the new name")) {
                held.copy.open = Some(why);
                held.told = Told::Open;
            }
            file.held.insert(*session, held);
        }
    }
}
