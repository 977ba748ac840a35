//! Sends every query and compares the answers with the truth.

use touchmark_proto::changes::ModifiedTake;
use touchmark_proto::daemon::Audit;
use touchmark_proto::files::{FileHistory, FileStatus};
use touchmark_proto::{
    Author, AuthorKind, Change, ClientPath, Evidence, FileState, Reply, Request, State, Version,
    VersionKind,
};

use crate::belief::Worth;
use crate::disk::{NAMES, Name};
use crate::people::{ANYBODY, By, File, SESSIONS, Told, UNKNOWN, USER, Version as Recorded, agent};
use crate::play::{Done, Play, session};
use crate::text::hash;

fn author(author: &Author) -> By {
    match (author.kind, &author.session) {
        (AuthorKind::User, _) => USER,
        (AuthorKind::Unknown | AuthorKind::Committed, _) => UNKNOWN,
        (AuthorKind::Agent, Some(id)) => {
            let known = (0..SESSIONS).find(|index| session(*index) == *id);
            known.map_or(0, agent)
        }
        (AuthorKind::Agent, None) => 0,
    }
}

fn path(path: &touchmark_proto::RelPath) -> Option<Name> {
    let name = path.to_string_lossy();
    NAMES.iter().copied().find(|known| *known == name)
}

impl Play {
    /// Sends all queries. `order` says which of them is first after a change.
    pub fn check(&mut self, order: u32) -> Done {
        for question in 0..3 {
            match (order + question) % 3 {
                0 => (0..SESSIONS).try_for_each(|who| self.statuses(who))?,
                1 => (0..SESSIONS).try_for_each(|who| self.peek(who))?,
                _ => {
                    NAMES.iter().try_for_each(|name| self.history(name))?;
                    self.audit()?;
                }
            }
        }
        Ok(())
    }

    fn audit(&mut self) -> Done {
        if self.truth.files.values().any(|file| file.half.is_some()) {
            return Ok(());
        }
        let reply = self.ask(0, Request::Audit(Audit {}))?;
        match reply {
            Reply::Audit(audited) if audited.differences.is_empty() => Ok(()),
            other => Err(format!("audit: {other:?}")),
        }
    }

    fn statuses(&mut self, who: usize) -> Done {
        let reply = self.ask(
            who,
            Request::FileStatus(
                FileStatus::new(session(who))
                    .paths(NAMES.iter().map(|name| ClientPath::from(*name)).collect()),
            ),
        )?;
        let Reply::FileStatus(states) = reply else {
            return Err(format!("reply: {reply:?}"));
        };
        for (name, state) in NAMES.iter().zip(&states.files) {
            self.status(who, name, state)?;
        }
        Ok(())
    }

    fn status(&self, who: usize, name: Name, state: &FileState) -> Done {
        let file = self.truth.file(name);
        let held = file.held.get(&who);
        let wrong = |what: &str| {
            Err(format!(
                "{what}: s{who} is told of {name}: {state:?}; it holds {:?}; {held:?}; uses {:?}",
                file.text(),
                self.truth.used.get(&who)
            ))
        };
        if path(&state.path) != Some(name) {
            return wrong("spoken name");
        }
        if file.half.is_some() {
            return Ok(());
        }
        let text = file.text();
        if state.hash != text.map(|text| hash(text)) {
            return wrong("hash");
        }
        let worth = self.truth.worth(who, name);
        let right = match worth {
            Worth::Open => state.state,
            // Names that resolve to no file are not one file.
            _ if text.is_none()
                && (!self.truth.uses(who, name) || self.truth.vain.contains(name))
                && state.state == State::Unread =>
            {
                State::Unread
            }
            Worth::Unread => State::Unread,
            Worth::Fresh => State::Fresh,
            Worth::Stale => State::Stale,
            Worth::Deleted => State::Deleted,
        };
        if state.state != right {
            return wrong(&format!("{right:?} is told as {:?}", state.state));
        }
        let Some(held) = held.filter(|held| held.copy.is_known() && held.copy.open.is_none())
        else {
            return Ok(());
        };
        if let Some(text) = text {
            let compared = held.copy.texts && worth != Worth::Stale;
            let may = held.copy.has_some_of(text) || compared;
            if held.joined {
                return Ok(());
            }
            if state.may_edit && !may || !state.may_edit && held.copy.shown_last(text) {
                return wrong("may edit");
            }
            if state.resident && worth == Worth::Fresh && !held.copy.is_resident() && !compared {
                return wrong("resident");
            }
        }
        if state.state == State::Stale
            && let Some(by) = &state.changed_by
        {
            return self.authors(who, name, by, "status authors");
        }
        Ok(())
    }

    fn peek(&mut self, who: usize) -> Done {
        let reply = self.ask(
            who,
            Request::ModifiedTake(ModifiedTake::new(session(who)).peek(true)),
        )?;
        match reply {
            Reply::ModifiedTake(taken) => self.listed(who, &taken.changes),
            other => Err(format!("reply: {other:?}")),
        }
    }

    /// Compares a list of changes with what a person would say.
    pub fn listed(&self, who: usize, changes: &[Change]) -> Done {
        let mut told = std::collections::BTreeSet::new();
        for change in changes {
            let Some(name) = path(&change.path) else {
                return Err(format!("listed name: s{who}: {change:?}"));
            };
            let id = self.truth.of[name];
            // Names that resolve to no file are not one file.
            let apart = self.truth.file(name).text().is_none();
            if change.lost.is_none() && !told.insert(id) && !apart {
                return Err(format!("listed twice: s{who} {name}: {changes:?}"));
            }
            self.change(who, name, change)?;
        }
        for (id, file) in &self.truth.files {
            for lost in file
                .lost
                .iter()
                .filter(|lost| lost.session == who && lost.must)
            {
                let wanted = lost.text.as_ref().map(|text| hash(text));
                let there = changes.iter().any(|change| {
                    change
                        .lost
                        .as_ref()
                        .is_some_and(|version| version.hash == wanted)
                });
                if !there {
                    return Err(format!("lost untold: s{who} {lost:?}; {changes:?}"));
                }
            }
            if self.truth.last_used(who, *id).is_some()
                && self.must_tell(who, file)
                && !told.contains(id)
            {
                return Err(format!(
                    "untold: s{who} of {:?}: {file:?}; {changes:?}",
                    self.truth.names_of(*id)
                ));
            }
        }
        Ok(())
    }

    fn must_tell(&self, who: usize, file: &File) -> bool {
        let Some(held) = file.held.get(&who).filter(|_| file.half.is_none()) else {
            return false;
        };
        let news = match held.told {
            Told::Nothing => true,
            Told::UpTo(told) => {
                let later = &file.versions[(told + 1).min(file.versions.len())..];
                let flipped = later.iter().any(|version| !version.maybe);
                flipped
                    && file.versions.get(told).map(|v| &v.text)
                        != file.versions.last().map(|v| &v.text)
            }
            Told::Open => false,
        };
        let worth = match held.copy.worth(file.text()) {
            Worth::Stale | Worth::Deleted => true,
            Worth::Unread => held.baseline.as_ref() != file.text() && !held.joined,
            Worth::Fresh | Worth::Open => false,
        };
        news && worth && file.versions.last().is_some_and(|version| !version.maybe)
    }

    fn change(&self, who: usize, name: Name, change: &Change) -> Done {
        let file = self.truth.file(name);
        let id = self.truth.of[name];
        let held = file.held.get(&who);
        let wrong = |what: &str| {
            Err(format!(
                "listed {what}: s{who} is told {change:?}; {held:?}; {:?}; uses {:?}",
                file.versions,
                self.truth.used.get(&who)
            ))
        };
        let Some(held) = held else {
            return wrong("and unknown");
        };
        let open = held.copy.open.is_some();
        if let Some(lost) = &change.lost {
            let known = file.lost.iter().any(|known| {
                known.session == who && known.text.as_ref().map(|text| hash(text)) == lost.hash
            });
            let known = known || file.blurred.contains(&who);
            return if known || open || held.joined {
                Ok(())
            } else {
                wrong("lost")
            };
        }
        let used = self.truth.last_used(who, id);
        // Names that resolve to no file are not one file.
        let any = !file.blurred.is_empty() || file.text().is_none();
        let any = any && self.truth.uses(who, name);
        if used != Some(name) && !any && !held.carried && !held.joined && !open {
            return wrong("by another name");
        }
        if file.half.is_some() {
            return Ok(());
        }
        if change.hash != file.text().map(|text| hash(text)) {
            return wrong("hash");
        }
        if (change.kind == VersionKind::Deleted) != file.text().is_none() {
            return wrong("kind");
        }
        let names = self.truth.names_of(id).into_iter();
        let several = names.filter(|name| self.truth.uses(who, name)).count() > 1;
        if held.copy.worth(file.text()) == Worth::Fresh && (!several || file.blurred.is_empty()) {
            return wrong("though fresh");
        }
        if held.told == Told::UpTo(file.newest()) {
            return wrong("again");
        }
        self.authors(who, name, &change.changed_by, "listed authors")?;
        self.reverts(who, name, change)
    }

    /// Checks that a change which takes back the session's own edits names them
    /// (SEEN-7).
    fn reverts(&self, who: usize, name: Name, change: &Change) -> Done {
        let file = self.truth.file(name);
        let Some(held) = file.held.get(&who).filter(|held| !held.joined) else {
            return Ok(());
        };
        let reverts = change.reverts.clone().unwrap_or_default();
        let Some(own) = file.versions.get(held.since) else {
            return Ok(());
        };
        if file.blurred.contains(&who)
            || own.by != agent(who)
            || !held.copy.believes()
            || held.copy.open.is_some()
            || held.since <= file.from
        {
            return Ok(());
        }
        let Some(edit) = &own.edit else {
            return Ok(());
        };
        let before = &file.versions[held.since - 1];
        // A session that restored the content itself gets no report of that.
        let by_itself = file.versions[file.newest()].by & agent(who) != 0;
        let back = before.text.as_ref() == file.text() && !before.maybe && file.text().is_some();
        let back = back && !by_itself;
        let named = own.named.as_ref();
        let named = named.is_some_and(|named| reverts.contains(named));
        if back && !reverts.contains(edit) && !named {
            return Err(format!(
                "reverts: s{who} {name} is not told that {edit} was taken back: {change:?}; {:?}",
                file.versions
            ));
        }
        let last = file.versions.iter().rposition(|v| v.by & agent(who) != 0);
        let ever = file.versions[..last.unwrap_or(held.since)]
            .iter()
            .any(|v| v.text.as_ref() == file.text());
        if !ever && !reverts.is_empty() {
            return Err(format!(
                "reverts: s{who} {name}: nothing was taken back: {change:?}; {:?}",
                file.versions
            ));
        }
        Ok(())
    }

    /// Checks authors: each one named has written since the session was shown
    /// the file, and the author of the current content is named.
    fn authors(&self, who: usize, name: Name, named: &[Author], what: &str) -> Done {
        let file = self.truth.file(name);
        let Some(held) = file.held.get(&who).filter(|held| !held.joined) else {
            return Ok(());
        };
        // Names that became one file, or parted, brought their own changes.
        if held.copy.open.is_some() || !file.blurred.is_empty() {
            return Ok(());
        }
        let since = file.versions.get(held.since + 1..).unwrap_or_default();
        let Some(newest) = since.last() else {
            return Ok(());
        };
        // Changes from before the file was tracked.
        let from = &file.versions[file.from];
        let tracked = &file.versions[file.from + 1..];
        let same = |version: &Recorded| version.maybe || version.text == from.text;
        let early = if tracked.iter().all(same) { UNKNOWN } else { 0 };
        if newest.maybe {
            return Ok(());
        }
        let any = early | held.brought;
        let any = since.iter().fold(any, |all, version| all | version.by);
        let right = named
            .iter()
            .any(|one| author(one) & (newest.by | early) != 0)
            && named.iter().all(|one| author(one) & any != 0);
        if right || since.iter().any(|version| version.by == ANYBODY) {
            return Ok(());
        }
        Err(format!(
            "{what}: s{who} {name}: {named:?}; since it saw the file: {since:?}; {held:?}"
        ))
    }

    fn history(&mut self, name: &Name) -> Done {
        let used = (0..SESSIONS).any(|who| self.truth.uses(who, name));
        // Names that resolve to no file are not one file.
        let file = self.truth.file(name);
        let apart = file.text().is_none() && self.truth.names_of(self.truth.of[name]).len() > 1;
        if !used || apart || self.truth.file(name).half.is_some() {
            return Ok(());
        }
        let reply = self.ask(0, Request::FileHistory(FileHistory::new(*name)))?;
        let Reply::FileHistory(told) = reply else {
            return Err(format!("reply: {reply:?}"));
        };
        let file = self.truth.file(name);
        let amended = |version: &Version| {
            let mut newest = version;
            let mut clock = version.clock;
            while let Some(row) = told.versions.iter().find(|row| row.amends == Some(clock)) {
                newest = row;
                clock = row.clock;
            }
            author(&newest.author)
        };
        let rows: Vec<(&Version, By)> = told
            .versions
            .iter()
            .rev()
            .filter(|row| row.amends.is_none())
            .map(|row| (row, amended(row)))
            .collect();
        let newest = rows
            .iter()
            .rev()
            .find(|(row, _)| row.unobserved != Some(true));
        let sure = file.versions.last().is_some_and(|version| !version.maybe);
        if sure && newest.is_none_or(|(row, _)| row.hash != file.text().map(|text| hash(text))) {
            return Err(format!("history hash: {name}: {told:?}; {file:?}"));
        }
        match told_as_it_was(file, &rows) {
            Ok(()) => Ok(()),
            Err(why) => {
                let text = |row: &Version| {
                    let known = file.contents().into_iter();
                    known
                        .map(Some)
                        .chain([None])
                        .find(|text| text.as_ref().map(|text| hash(text)) == row.hash)
                };
                let rows: Vec<String> = rows
                    .iter()
                    .map(|(row, by)| {
                        let unseen = if row.unobserved == Some(true) {
                            " unobserved"
                        } else {
                            ""
                        };
                        format!("{:?} by {by:#b} {:?}{unseen}", text(row), row.evidence)
                    })
                    .collect();
                Err(format!(
                    "history {why}: {name}: told {rows:?}; it was {:?}",
                    &file.versions[file.from..]
                ))
            }
        }
    }
}

/// Checks that rows report all contents since the file is tracked, in order and
/// without invented ones, each with an author that may be named for it. A
/// content that may never have been read may be missing.
fn told_as_it_was(file: &File, rows: &[(&Version, By)]) -> Result<(), &'static str> {
    let texts: Vec<Option<touchmark_proto::Hash>> = file
        .versions
        .iter()
        .map(|version| version.text.as_ref().map(|text| hash(text)))
        .collect();
    // A content that follows an unobserved version is reported once more.
    let mut observed: Vec<&(&Version, By)> = rows
        .iter()
        .filter(|(row, _)| row.unobserved != Some(true))
        .collect();
    observed.dedup_by_key(|(row, _)| row.hash);
    for (row, by) in rows.iter().filter(|(row, _)| row.unobserved == Some(true)) {
        let real = texts.iter().zip(&file.versions);
        let mut real = real.filter(|(text, version)| {
            let wrote = version.by | version.real.map_or(0, agent);
            **text == row.hash && wrote & by != 0
        });
        let again = file
            .rewritten
            .iter()
            .any(|(_, text)| Some(hash(text)) == row.hash);
        if file.from == 0 && file.blurred.is_empty() && !again && real.next().is_none() {
            return Err("of what never was");
        }
    }
    if file.versions[file.from..]
        .iter()
        .all(|version| version.maybe)
    {
        return Ok(());
    }
    let mut best = "contents";
    let sure = file.versions[file.from..]
        .iter()
        .position(|version| !version.maybe);
    let last = sure.map_or(file.newest(), |sure| file.from + sure);
    let starts =
        (file.from..=last).flat_map(|from| (0..observed.len()).map(move |row| (from, row)));
    for (from, start) in starts {
        if observed[start].0.hash != texts[from] {
            continue;
        }
        // The set of rows that may be the last of the contents up to here.
        let mut at = std::collections::BTreeSet::from([start]);
        for (text, version) in texts.iter().zip(&file.versions).skip(from + 1) {
            let mut next = std::collections::BTreeSet::new();
            for row in at {
                if version.maybe || observed[row].0.hash == *text {
                    next.insert(row);
                }
                if let Some((told, by)) = observed.get(row + 1)
                    && observed[row].0.hash != *text
                    && told.hash == *text
                {
                    if by & version.by == 0 {
                        best = "authors";
                        continue;
                    }
                    let named = (0..SESSIONS)
                        .filter(|who| version.candidates & agent(*who) != 0)
                        .all(|who| {
                            let names = told.candidates.as_ref();
                            names.is_some_and(|names| names.contains(&session(who)))
                        });
                    if !named && version.by == USER && told.evidence == Evidence::Unmarked {
                        best = "candidates";
                        continue;
                    }
                    next.insert(row + 1);
                }
            }
            at = next;
        }
        if at.contains(&(observed.len() - 1)) {
            return Ok(());
        }
    }
    Err(best)
}
