//! The author of a content, according to what was announced before.

use std::collections::BTreeSet;

use crate::disk::Name;
use crate::text::Text;

use crate::people::{
    ANYBODY, Actor, By, Edit, File, Lost, SESSIONS, Told, Truth, UNKNOWN, USER, Version, agent,
};

impl Truth {
    /// Records that another content follows one that may never have been read.
    /// Who of the authors involved wrote which content is left open. Returns
    /// these authors.
    pub fn blur(&mut self, id: usize) -> By {
        let file = &self.files[&id];
        let Some(last) = file.versions.last().filter(|last| last.maybe) else {
            return 0;
        };
        let mut by = last.by;
        for edit in self
            .edits
            .values_mut()
            .filter(|edit| self.of[edit.name] == id)
        {
            edit.murky = true;
            by |= agent(edit.session) | USER;
        }
        let mut blurred = BTreeSet::new();
        let held = self.files.get_mut(&id).map(|file| &mut file.held);
        for (session, held) in held.into_iter().flatten() {
            if by & agent(*session) != 0 {
                blurred.insert(*session);
                held.copy.open = Some("its part in it was over before anybody looked");
                held.told = Told::Open;
            }
        }
        if let Some(file) = self.files.get_mut(&id) {
            for lost in file
                .lost
                .iter_mut()
                .filter(|lost| blurred.contains(&lost.session))
            {
                lost.must = false;
            }
            file.blurred.append(&mut blurred);
        }
        by
    }

    /// Decides the author of a content, according to what was announced before.
    pub fn decide(&mut self, id: usize, index: usize, actor: Actor) {
        let text = self.files[&id].versions[index].text.clone();
        let open: Vec<usize> = self
            .edits
            .iter()
            .filter(|(_, edit)| self.of[edit.name] == id && !edit.used)
            .map(|(slot, _)| *slot)
            .collect();
        // Oldest edit first.
        let begun = |slot: &usize| self.edits[slot].id[1..].parse().unwrap_or(u64::MAX);
        let mut open = open;
        open.sort_by_key(begun);
        // With other edits open, it is open which change uses up a one-call
        // mark. It is also open whether an absence does.
        if open.len() > 1 || text.is_none() {
            for slot in &open {
                if let Some(edit) = self.edits.get_mut(slot)
                    && edit.flag
                    && !edit.declared
                {
                    edit.murky = true;
                }
            }
        }
        let unsure = self.edits.values().filter(|edit| {
            let named = edit.names.iter().any(|name| self.of[name] == id);
            named && (edit.murky || self.of[edit.name] != id)
        });
        let unsure: BTreeSet<usize> = unsure.map(|edit| edit.session).collect();
        for session in &unsure {
            if let Some(version) = self.version_mut(id, index) {
                version.by |= agent(*session);
                version.candidates_perhaps |= agent(*session);
            }
            if let Some(held) = self
                .files
                .get_mut(&id)
                .and_then(|file| file.held.get_mut(session))
            {
                held.copy.open = Some("whether its edit is still open, and of this file, is open");
                held.told = Told::Open;
            }
            if let Some(file) = self.files.get_mut(&id) {
                file.blurred.insert(*session);
            }
        }
        let expects = |edit: &Edit| {
            edit.declared
                && edit.own.is_none()
                && text.as_ref() == Some(&edit.planned)
                && text != edit.began
        };
        if let Some(slot) = open.iter().find(|slot| expects(&self.edits[slot])) {
            let guess = actor != Actor::Edit(*slot) || self.edits[slot].murky;
            // Another edit that declared the same content may still be waiting.
            // The rules leave open whether its content was read.
            let unseen = |own: usize| self.files[&id].versions[own].maybe;
            let rival = open.iter().any(|other| {
                let edit = &self.edits[other];
                edit.planned == self.edits[slot].planned && edit.own.is_some_and(unseen)
            });
            if let Some(edit) = self.edits.get_mut(slot) {
                edit.murky |= rival;
            }
            return self.claim(id, index, *slot, guess);
        }
        if let Some(slot) = open.iter().find(|slot| {
            self.edits[slot].flag && !self.edits[slot].declared && !self.edits[slot].murky
        }) {
            // A difference found by a comparison has no known author.
            let open = self.files[&id].versions[index].by & UNKNOWN != 0;
            return self.claim(id, index, *slot, open);
        }
        let marks = open.iter().filter(|slot| {
            let edit = &self.edits[slot];
            !edit.declared && !edit.murky
        });
        let marks = marks.copied();
        let marks: BTreeSet<usize> = marks.collect();
        let candidates = marks.iter().map(|slot| agent(self.edits[slot].session));
        let candidates = candidates.fold(0, |all, one| all | one);
        if let Some(version) = self.version_mut(id, index) {
            version.marks = marks;
            version.candidates = candidates;
        }
    }

    pub fn version_mut(&mut self, id: usize, index: usize) -> Option<&mut Version> {
        self.files.get_mut(&id)?.versions.get_mut(index)
    }

    /// Makes a version an edit's own. `guess` says whether another author may
    /// have written the same content.
    pub fn claim(&mut self, id: usize, index: usize, slot: usize, guess: bool) {
        let Some(edit) = self.edits.get(&slot).cloned() else {
            return;
        };
        let guess = guess || self.files[&id].versions[index].reported;
        let mut lost = Vec::new();
        let file = &self.files[&id];
        let clobbered = self.destroys(file, index, &edit);
        // For a mark without a declared content, everything closed under it may
        // count.
        let first = if edit.declared { index - 1 } else { edit.since };
        let mine = file.versions[index].real == Some(edit.session)
            && file.versions[index - 1].real != Some(edit.session);
        for before in first.min(index - 1)..index {
            let text = file.versions[before].text.clone();
            let last = before == index - 1;
            if clobbered != Some(false) || !last && !edit.declared {
                lost.push(Lost {
                    session: edit.session,
                    text,
                    must: last && clobbered == Some(true) && !guess && mine,
                });
            }
        }
        if let Some(file) = self.files.get_mut(&id) {
            file.lost.append(&mut lost);
        }
        if let Some(version) = self.version_mut(id, index) {
            // A content that a one-call mark had claimed, and that was saved
            // once more.
            let again = if version.by_flag {
                version.by & USER
            } else {
                0
            };
            version.by = agent(edit.session) | again | if guess { version.by | USER } else { 0 };
            version.declared = edit.declared;
            version.edit = Some(edit.id.clone());
            version.by_flag |= edit.flag;
        }
        self.wrote(edit.session, id, index);
        if let Some(edit) = self.edits.get_mut(&slot) {
            edit.own = Some(index);
            edit.clobbered = clobbered;
            edit.guess = guess;
        }
        if edit.flag
            && let Some(edit) = self.edits.get_mut(&slot)
        {
            edit.used = true;
        }
        if self.files[&id]
            .held
            .get(&edit.session)
            .is_some_and(|held| held.shown >= Some(index))
        {
            self.leave_open(
                edit.session,
                edit.name,
                "it had read what it is found to have written",
            );
        }
        if guess {
            let name = edit.name;
            self.leave_open(
                edit.session,
                name,
                "somebody else wrote what it had declared",
            );
            if let Some(writer) = self.files[&id].versions[index].real {
                self.leave_open(writer, name, "it wrote what another had declared");
            }
        }
    }

    /// Returns whether this version replaced one that the session neither wrote
    /// nor saw; `None` if that is open.
    pub fn destroys(&self, file: &File, index: usize, edit: &Edit) -> Option<bool> {
        let overwritten = file.versions[..index].last()?;
        let own = overwritten.by == agent(edit.session);
        let seen = match (&overwritten.text, file.held.get(&edit.session)) {
            (_, Some(held)) if held.copy.open.is_some() => return None,
            (Some(text), Some(held)) => {
                let now = file.versions[index].text.as_ref();
                let before = now.is_some_and(|now| held.copy.shown_before(text, now));
                held.copy.has_some_of(text) || before
            }
            _ => false,
        };
        let before = index - 1 <= edit.since;
        let overlaps = self.edits.values().any(|other| {
            other.id != edit.id && other.session == edit.session && other.name == edit.name
        });
        // Another edit of the session may have destroyed it.
        let foreign = file.versions[..index].iter().skip(edit.since + 1);
        let foreign = foreign
            .filter(|version| version.by != agent(edit.session))
            .count();
        match (&overwritten.text, before) {
            _ if overwritten.maybe || overlaps || edit.early || edit.beside => None,
            _ if own && (foreign > 0 || !before) => None,
            _ if own => Some(false),
            // Nothing was lost.
            (Some(text), _) if text.is_empty() => None,
            (None, true) => Some(false),
            // The edit had `force`, or the file had just appeared.
            (Some(_), true) => {
                if seen {
                    Some(false)
                } else {
                    None
                }
            }
            _ if edit.murky || self.down => None,
            (Some(_), false) if seen => None,
            _ => Some(true),
        }
    }

    /// Ends an edit by a commit or at its deadline. `named` is the content that
    /// the commit names.
    pub fn end(&mut self, slot: usize, named: Option<&Text>) -> Option<Edit> {
        let edit = self.edits.get(&slot)?.clone();
        let id = self.of[edit.name];
        let file = &self.files[&id];
        let gone = file
            .versions
            .last()
            .is_some_and(|version| version.text.is_none() && version.marks.contains(&slot));
        if !edit.declared && edit.own.is_none() && !edit.murky && (!gone || named.is_some()) {
            let mine = |(_, version): &(usize, &Version)| {
                version.text.is_some()
                    && version.marks.contains(&slot)
                    && named.is_none_or(|named| version.text.as_ref() == Some(named))
                    && (version.by & USER != 0 || version.by & agent(edit.session) == 0)
            };
            let versions = file.versions.iter().enumerate().skip(edit.since + 1);
            let mut found = versions.rev().filter(mine).map(|(index, _)| index);
            let older = found.clone().nth(1).filter(|_| named.is_some());
            let found = found.next();
            // A content that another mark of the session may have claimed is
            // not named; the same content from before is.
            let elsewhere = |index: &usize| file.versions[*index].by & agent(edit.session) != 0;
            let older = older.filter(|_| found.as_ref().is_some_and(elsewhere));
            if let Some(version) = older.and_then(|older| self.version_mut(id, older)) {
                version.by |= agent(edit.session);
            }
            let file = &self.files[&id];
            if let Some(index) = found {
                let newest = index == file.newest();
                let since = file
                    .held
                    .get(&edit.session)
                    .map(|held| (held.since, held.copy.clone()));
                let version = &file.versions[index];
                let others =
                    (version.candidates | version.candidates_perhaps) & !agent(edit.session);
                let alone = others == 0;
                let real = version.real == Some(edit.session) && version.by != ANYBODY && alone;
                // Other sessions with open marks may have written it as well.
                if others != 0 {
                    for session in (0..SESSIONS).filter(|who| others & agent(*who) != 0) {
                        self.leave_open(session, edit.name, "several had it marked");
                        self.files.get_mut(&id)?.blurred.insert(session);
                        for other in self.edits.values_mut() {
                            other.murky |= other.session == session && other.name == edit.name;
                        }
                    }
                    if let Some(version) = self.version_mut(id, index) {
                        version.by |= others;
                    }
                }
                self.claim(id, index, slot, !real);
                let covered = self.files[&id]
                    .versions
                    .iter()
                    .filter(|v| v.marks.contains(&slot));
                if named.is_none() && covered.count() > 1 {
                    let versions = self.files.get_mut(&id)?.versions.iter_mut();
                    for version in versions.filter(|version| version.marks.contains(&slot)) {
                        version.by |= agent(edit.session);
                    }
                    self.leave_open(edit.session, edit.name, "several contents under one mark");
                }
                if self.files[&id].blurred.contains(&edit.session) {
                    self.leave_open(edit.session, edit.name, "it had a part in something unseen");
                }
                if !newest
                    && named.is_none()
                    && let Some(version) = self.version_mut(id, index)
                {
                    version.by |= USER;
                }
                // The session has seen the content that it names. It has seen
                // nothing else of what was overwritten since (SEEN-1), but may
                // have read something newer meanwhile.
                let (since, copy) = since.unwrap_or_default();
                if !newest
                    && (since > index || named.is_none())
                    && let Some(held) = self
                        .files
                        .get_mut(&id)
                        .and_then(|f| f.held.get_mut(&edit.session))
                {
                    held.copy = copy;
                    held.since = since;
                }
            }
        }
        if edit.own.is_none() && named.is_some() {
            // A session that names the content goes before one whose mark found
            // it.
            let file = self.files.get_mut(&id)?;
            let mut again = file.rewritten.iter();
            let again = again.any(|(who, text)| *who == edit.session && Some(text) == named);
            let own = |v: &&mut Version| {
                let real = v.real == Some(edit.session) || again;
                real && v.text.as_ref() == named && !v.declared
            };
            let versions = file.versions.iter_mut();
            for version in versions.skip(edit.since + 1).filter(own) {
                version.by |= agent(edit.session);
            }
            // A content that another edit of the session had found.
            let versions = self.files.get_mut(&id)?.versions.iter_mut();
            let mut since = versions.skip(edit.since + 1).rev();
            let found = since.find(|v| v.text.as_ref() == named && v.by == agent(edit.session));
            if let Some(version) = found.filter(|version| !version.declared) {
                version.named = Some(edit.id.clone());
            }
        }
        if edit.murky {
            self.files.get_mut(&id)?.blurred.insert(edit.session);
            let versions = self.files.get_mut(&id)?.versions.iter_mut();
            let own =
                |v: &&mut Version| (v.candidates | v.candidates_perhaps) & agent(edit.session) != 0;
            for version in versions.filter(own) {
                version.by |= agent(edit.session);
            }
            self.leave_open(edit.session, edit.name, "what is its own is open");
        }
        let ended = self.edits.remove(&slot)?;
        // The rules leave open whether a mark without a declared content may
        // take a deletion.
        if gone && ended.own.is_none() {
            self.files.get_mut(&id)?.blurred.insert(edit.session);
            let versions = self.files.get_mut(&id)?.versions.iter_mut();
            for version in versions.filter(|version| version.marks.contains(&slot)) {
                version.by |= agent(edit.session);
            }
            self.leave_open(
                edit.session,
                edit.name,
                "gone under a mark without a content",
            );
        }
        for (index, version) in self.files.get_mut(&id)?.versions.iter_mut().enumerate() {
            // Later versions no longer name the session.
            if version.marks.remove(&slot) && ended.own.is_some_and(|own| own <= index) {
                version.candidates &= !agent(edit.session);
            }
        }
        Some(ended)
    }

    pub fn abort(&mut self, slot: usize) {
        let Some(edit) = self.edits.remove(&slot) else {
            return;
        };
        // Unless another of the session's marks is open.
        let others = self.edits.iter();
        let others = others.filter(|(_, other)| other.session == edit.session);
        let others: BTreeSet<usize> = others.map(|(slot, _)| *slot).collect();
        for version in &mut self.file_mut(edit.name).versions {
            if version.marks.remove(&slot) && version.marks.is_disjoint(&others) {
                version.candidates &= !agent(edit.session);
            }
        }
    }

    /// Records that an editor reported the save of a file's content: it is the
    /// user's, unless an edit declared exactly that content.
    pub fn reported(&mut self, name: Name) {
        let now = self.now;
        let file = self.file_mut(name);
        if file
            .versions
            .last()
            .is_some_and(|version| version.at + 1_500 < now)
        {
            // The file had the content before, and for too long or nearly so.
            let nearly = file
                .versions
                .last()
                .is_some_and(|last| last.at + 2_500 > now);
            if let Some(text) = file.text().cloned() {
                self.reports.push((text, now));
            }
            if nearly {
                let file = self.file_mut(name);
                let last = file.versions.last_mut().filter(|last| !last.declared);
                let by = last.map_or(0, |last| {
                    last.by |= USER;
                    last.by
                });
                for session in (0..SESSIONS).filter(|who| by & agent(*who) != 0) {
                    self.leave_open(session, name, "an editor reported it after two seconds");
                }
            }
            return;
        }
        let (text, unseen) = match file.versions.last() {
            Some(last) => (last.text.clone(), last.maybe),
            None => return,
        };
        if let Some(text) = &text {
            self.reports.push((text.clone(), now));
        }
        let file = self.file_mut(name);
        // One report explains one recent version of the content. The rules
        // leave open which one.
        let mut alike = file.versions.iter_mut().rev().skip(1);
        let mut others = false;
        let mut by = 0;
        for version in alike
            .by_ref()
            .filter(|v| v.text == text && v.at + 2_500 > now)
        {
            by |= version.by;
            version.by |= USER;
            others = true;
        }
        let perhaps = file
            .versions
            .last()
            .map_or(0, |v| v.candidates | v.candidates_perhaps | v.by);
        if others || unseen && by != 0 || perhaps & !USER != 0 && perhaps.count_ones() > 1 {
            if let Some(version) = file.versions.last_mut() {
                version.by |= USER;
                version.reported = true;
            }
            for session in 0..crate::people::SESSIONS {
                self.leave_open(session, name, "an editor reported one of several saves");
            }
            return;
        }
        let file = self.file_mut(name);
        let Some(version) = file.versions.last_mut().filter(|version| !version.declared) else {
            return;
        };
        version.marks.clear();
        version.reported = true;
        version.candidates = 0;
        let by = std::mem::replace(&mut version.by, USER);
        for session in (0..crate::people::SESSIONS).filter(|who| by & agent(*who) != 0) {
            self.leave_open(session, name, "an editor reported what a mark had claimed");
        }
    }

    pub fn claimed_late(&mut self, who: usize, name: Name, index: usize) {
        let id = self.of[name];
        let mut others = 0;
        let newest = self.file(name).newest();
        let file = self.file_mut(name);
        for before in file.versions[..index].iter().rev() {
            file.lost.push(Lost {
                session: who,
                text: before.text.clone(),
                must: false,
            });
            if !before.maybe {
                break;
            }
        }
        if let Some(version) = self
            .files
            .get_mut(&id)
            .and_then(|file| file.versions.get_mut(index))
        {
            let unseen = if version.maybe { version.by } else { 0 };
            version.by = agent(who) | unseen;
            others = (version.candidates | version.candidates_perhaps) & !agent(who);
            version.by |= others;
            version.declared = true;
        }
        // If the version may not have been read, the same content from before
        // is meant.
        if let Some(file) = self.files.get_mut(&id) {
            let (earlier, later) = file.versions.split_at_mut(index);
            let mut unseen = later[0].maybe;
            for same in earlier.iter_mut().rev() {
                if unseen && same.text == later[0].text {
                    same.by |= agent(who);
                    unseen = same.maybe;
                }
            }
        }
        // If the contents in between were not read, both are one version.
        if let Some(file) = self.files.get_mut(&id) {
            let text = file.versions[index].text.clone();
            let mut before = file.versions[..index].iter_mut().rev();
            let same = before.find(|version| !version.maybe);
            if let Some(same) = same.filter(|version| version.text == text) {
                same.by |= agent(who);
            }
        }
        for session in (0..crate::people::SESSIONS).filter(|other| others & agent(*other) != 0) {
            self.leave_open(session, name, "it had marked what another named");
            for edit in self.edits.values_mut() {
                edit.murky |= edit.session == session && edit.name == name;
            }
        }
        if index == newest && !self.files[&id].blurred.contains(&who) {
            self.wrote(who, id, index);
        } else {
            self.leave_open(who, name, "it was marked late, and written over");
        }
    }

    /// Records that the answer of a commit reported changes by others. The
    /// rules do not say whether they count as reported.
    pub fn told_by_commit(&mut self, edit: &Edit) {
        let file = self.file_mut(edit.name);
        if let Some(held) = file.held.get_mut(&edit.session) {
            held.told = Told::Open;
        }
        for lost in file
            .lost
            .iter_mut()
            .filter(|lost| lost.session == edit.session)
        {
            lost.must = false;
        }
    }
}
