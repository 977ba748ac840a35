//! The steps by which agents write: edits, and writes through the daemon.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::belief::Worth;
use super::people::{Act, Edit};
use super::play::{Done, Play, SESSIONS, Wrong, expect};
use super::rows::Row;
use super::step::{Declared, How, NAMES, Name, session};
use super::text::Make;
use crate::sha256;
use crate::wire::Answer;

/// An absence of this length counts as a deletion, even in the middle of a save
/// on a busy machine (ATTR-5).
const GONE: Duration = Duration::from_millis(100);

impl Play {
    /// Returns whether a request to write may succeed, and the errors with
    /// which it may be refused.
    fn refusals(&self, who: usize, name: Name) -> (bool, Vec<&'static str>) {
        let held = self.truth.people[who].held.get(name);
        let text = self.truth.text(name);
        let in_part = text.is_some_and(|text| held.is_some_and(|held| held.copy.shown_last(text)));
        match self.truth.worth(who, name) {
            _ if text.is_none() => (true, vec!["stale"]),
            Worth::Unread => (false, vec!["notRead"]),
            Worth::Fresh => (true, vec![]),
            // A session that saw part of the current content may edit it
            // (SEEN-3).
            Worth::Stale if in_part => (true, vec!["stale"]),
            // The session has the file by another name that no answer has
            // covered yet.
            Worth::Stale | Worth::Deleted if self.came(who, name) => {
                (false, vec!["stale", "notRead"])
            }
            Worth::Stale | Worth::Deleted => (false, vec!["stale"]),
            Worth::Open => (true, vec!["stale", "notRead"]),
        }
    }

    /// Returns whether the session has the file by another name that came to it
    /// and was in no question since.
    fn came(&self, who: usize, name: Name) -> bool {
        let names = self.truth.names_of(name);
        let held = |name: &Name| self.truth.people[who].held.get(name);
        names
            .iter()
            .any(|other| *other != name && held(other).is_some_and(|held| held.came))
    }

    /// Compares an answer with the allowed refusals. Returns whether the
    /// request may have been carried out.
    fn refused(
        &mut self,
        who: usize,
        name: Name,
        method: &str,
        answer: &Answer,
    ) -> Result<bool, Wrong> {
        let (mut may, mut refusals) = self.refusals(who, name);
        let other = (0..SESSIONS)
            .filter(|other| *other != who)
            .find_map(|other| {
                let edit = self.truth.people[other].edit.as_ref()?;
                let names = self.truth.names_of(name);
                // An edit stays with its path. Where the file's names have
                // parted since, the contract does not specify whose edit it is.
                let sure =
                    names.contains(&edit.name) && self.truth.names_of(edit.name) == edit.names;
                (edit.names.iter().any(|other| names.contains(other)) || sure).then_some(sure)
            });
        let mut row = Row::Refusals;
        if let Some(sure) = other {
            if sure && may && method == "edit/begin" {
                row = Row::Busy;
            }
            may &= !sure || method != "edit/begin";
            refusals.push("busy");
        }
        // A session may not replace content that it has not seen completely if
        // that content must not be stored (SEC-3).
        let held = self.truth.people[who].held.get(name);
        let seen = held.is_some_and(|held| held.copy.is_whole());
        if method == "file/write" && name.starts_with(".env") && !seen {
            refusals.push("conflict");
        }
        let right = match answer {
            Ok(_) => may,
            Err(error) => refusals.contains(&error.name.as_str()),
        };
        expect(row, right, || {
            let worth = self.truth.worth(who, name);
            let names = self.truth.names_of(name);
            let answer = answer
                .as_ref()
                .map(|_| "allowed")
                .map_err(ToString::to_string);
            format!(
                "{} {method} {name} {names:?}: its copy is {worth:?}; it may be allowed: {may}, \
                 refused as {refusals:?}; answered {answer:?}",
                session(who)
            )
        })?;
        Ok(answer.is_ok())
    }

    pub(super) fn begin(&mut self, who: usize, name: Name, make: Make, declared: Declared) -> Done {
        if self.truth.people[who].edit.is_some() {
            return Ok(());
        }
        let base = self.truth.text(name).map(str::to_owned);
        let text = make.of(base.as_deref().unwrap_or(""));
        let declared = declared == Declared::Content;
        let expected = declared.then(|| sha256(&text));
        let params = json!({"files": [{"path": name, "expect": expected}]});
        let answer = self.call(who, "edit/begin", params);
        if !self.refused(who, name, "edit/begin", &answer)? {
            return Ok(());
        }
        let names = self.truth.names_of(name);
        let since = NAMES.iter().map(|name| (*name, self.truth.count(name)));
        let since = since.collect();
        self.truth.uses(who, name);
        self.truth.people[who].edit = Some(Edit {
            id: answer
                .map(|begun| crate::text(&begun, "edit"))
                .unwrap_or_default(),
            name,
            names,
            base,
            text,
            declared,
            wrote: None,
            missed: false,
            foreign: false,
            since,
        });
        Ok(())
    }

    pub(super) fn agent_saves(&mut self, who: usize, how: How, alias: bool) {
        let Some(edit) = self.truth.people[who].edit.clone() else {
            return;
        };
        if edit.wrote.is_some() || self.half_written(edit.name) {
            return;
        }
        let names = self.truth.names_of(edit.name);
        let other = names.iter().find(|name| **name != edit.name);
        let name = other.filter(|_| alias).copied().unwrap_or(edit.name);
        let act = if edit.declared {
            Act::Wrote(format!("agent:{}", session(who)))
        } else {
            Act::Marked(who)
        };
        let begun = Instant::now();
        if self.disk.save(name, &edit.text, how).is_err() {
            return;
        }
        let gone = matches!(how, How::Recreate | How::Vim) && begun.elapsed() >= GONE;
        if let Some(edit) = &mut self.truth.people[who].edit {
            edit.wrote = Some(name);
            edit.foreign |= gone;
        }
        self.truth.look(&self.disk, &act);
        if edit.declared {
            self.truth.wrote(who, name, &edit.text);
        } else {
            self.truth
                .leave_open(who, name, "written under a mark that is still open");
        }
        if name != edit.name && !self.truth.names_of(edit.name).contains(&name) {
            // An edit follows the name it was begun by (FILE-2). The author of
            // what was written by another name is not specified.
            let agent = format!("agent:{}", session(who));
            self.truth.perhaps_users(name, &agent);
        }
        // The edited name has parted from the file's other names, or the
        // session wrote another name.
        if name != edit.name || self.truth.names_of(name) != names {
            for other in edit.names {
                self.truth
                    .leave_open(who, other, "written by one name of several, which parted");
            }
        }
    }

    pub(super) fn commit(&mut self, who: usize, hash: bool) -> Done {
        let Some(edit) = self.truth.people[who].edit.clone() else {
            return Ok(());
        };
        if edit.names.iter().any(|name| self.half_written(name)) {
            return Ok(());
        }
        self.truth.people[who].edit = None;
        let begun = edit.names.clone();
        let named = (hash && edit.wrote.is_some()).then(|| sha256(&edit.text));
        let mut params = json!({"edit": edit.id});
        if let Some(hash) = &named {
            params["files"] = json!([{"path": edit.name, "hash": hash}]);
        }
        let unseen = self.unseen(&edit);
        let answer = self.ask(who, "edit/commit", params)?;
        self.truth.fenced(&begun);
        let there = self.truth.text(edit.name);
        let found = edit.wrote.is_some() && there == Some(&edit.text);
        let changed = edit.base.as_deref() != Some(&edit.text);
        let outcome = crate::text(&answer["files"][0], "outcome");
        let plain = edit.wrote == Some(edit.name) && !edit.foreign && found;
        let right = match (plain, changed) {
            (true, true) => outcome == "applied",
            (true, false) => outcome == "unchanged",
            _ if edit.wrote.is_none() && !edit.foreign => {
                matches!(outcome.as_str(), "notApplied" | "unchanged")
            }
            _ => true,
        };
        expect(Row::Outcomes, right, || {
            format!(
                "{} commits {}: wrote {:?}, others wrote meanwhile: {}; answered {answer}",
                session(who),
                edit.name,
                edit.wrote,
                edit.foreign
            )
        })?;
        self.committed(who, &edit, named.is_some(), found, unseen);
        if let Some(name) = edit.wrote.filter(|name| *name != edit.name && !found) {
            // An edit follows the name it was begun by (FILE-2). The author of
            // what was written by another name is not specified. If the session
            // commits a hash that was never under the edit's name, the content
            // under it counts as another author's.
            let agent = format!("agent:{}", session(who));
            self.truth.perhaps_users(name, &agent);
            self.truth.perhaps_users(edit.name, &agent);
        }
        Ok(())
    }

    /// Returns whether the written content may have been overwritten before the
    /// daemon read it.
    fn unseen(&self, edit: &Edit) -> bool {
        let events = self.truth.events.get(edit.name).map_or(&[][..], |all| all);
        let newest = events.last().and_then(|event| event.text.as_deref());
        newest != Some(&edit.text) && events.iter().any(|event| event.unseen)
    }

    fn committed(&mut self, who: usize, edit: &Edit, named: bool, found: bool, unseen: bool) {
        let agent = format!("agent:{}", session(who));
        let Some(name) = edit.wrote else {
            if !edit.declared && edit.foreign {
                // What is found at the end of a mark without a content is
                // attributed to its session.
                for name in &edit.names {
                    self.claim(name, edit.since[name], |_| true, &agent, true);
                    self.truth
                        .leave_open(who, name, "another's content was found at the commit");
                }
            }
            return;
        };
        if edit.declared {
            if !named && unseen {
                self.truth
                    .leave_open(who, name, "declared, never looked at, not named");
            }
            return;
        }
        let sure = (named || found) && !unseen;
        for other in NAMES {
            let own = |text: &str| text == edit.text;
            if sure {
                self.claim(other, 0, own, &agent, false);
            } else {
                self.claim(other, edit.since[other], |_| true, &agent, true);
            }
        }
        if found {
            self.truth.wrote(who, name, &edit.text);
        }
        if !sure || !found || edit.foreign || name != edit.name {
            for other in edit.names.iter().chain([&name]) {
                self.truth
                    .leave_open(who, other, "a mark without a content, and others wrote too");
            }
        }
    }

    /// Sets which authors may be reported for contents of a name that a mark
    /// covered.
    fn claim(
        &mut self,
        name: Name,
        since: usize,
        own: impl Fn(&str) -> bool,
        agent: &str,
        may: bool,
    ) {
        let events = self
            .truth
            .events
            .get_mut(name)
            .map_or(&mut [][..], |all| all);
        for event in events.iter_mut().skip(since) {
            let Some(by) = &mut event.by else { continue };
            if event.text.as_deref().is_some_and(&own) {
                if !may && event.mark.is_some() {
                    by.remove("user");
                }
                by.insert(agent.to_owned());
            }
        }
    }

    pub(super) fn guarded(
        &mut self,
        who: usize,
        name: Name,
        method: &str,
        params: Value,
        text: &str,
    ) -> Done {
        if self.truth.people.iter().any(|person| {
            person
                .edit
                .as_ref()
                .is_some_and(|edit| edit.names.contains(&name))
        }) {
            return Ok(());
        }
        let parent = std::path::Path::new(name).parent();
        if parent.is_some_and(|parent| !self.world.path(parent).is_dir())
            || self.truth.text(name).is_none()
        {
            return Ok(());
        }
        let whole = self.truth.people[who]
            .held
            .get(name)
            .is_some_and(|held| held.copy.is_whole());
        let answer = self.call(who, method, params);
        let done = self.refused(who, name, method, &answer)?;
        let agent = format!("agent:{}", session(who));
        self.truth.look(&self.disk, &Act::Wrote(agent));
        self.truth.fenced(&[name]);
        if done {
            self.truth.uses(who, name);
            expect(Row::Contents, self.truth.text(name) == Some(text), || {
                format!(
                    "{method} {name} answered {answer:?}; the file holds {:?}",
                    self.truth.text(name)
                )
            })?;
            self.truth.wrote(who, name, text);
            if method == "file/edit" && !whole {
                self.truth
                    .leave_open(who, name, "an edit of a file that was not seen as a whole");
            }
        }
        Ok(())
    }
}
