//! Requests every answer that the daemon can give, and compares it with the
//! disk.

use serde_json::{Value, json};

use super::belief::Worth;
use super::people::{Held, Told};
use super::play::{Done, Play, SESSIONS, Wrong, expect};
use super::rows::Row;
use super::step::{NAMES, Name, session};
use crate::{authors, sha256};

/// The number of kinds of questions. Checks start with different kinds, so that
/// each kind is sometimes the first after a change.
const QUESTIONS: usize = 4;

impl Play {
    /// Sends all questions.
    ///
    /// # Errors
    /// The first wrong answer.
    pub fn check(&mut self, order: u32) -> Done {
        let first = usize::try_from(order).unwrap_or(0);
        for question in 0..QUESTIONS {
            match (first + question) % QUESTIONS {
                0 => (0..SESSIONS).try_for_each(|who| self.statuses(who))?,
                1 => (0..SESSIONS).try_for_each(|who| {
                    let peeked = self.ask(who, "modified/take", json!({"peek": true}))?;
                    self.listed(who, &peeked)
                })?,
                2 => NAMES.iter().try_for_each(|name| self.history(name))?,
                _ => self.audit()?,
            }
        }
        Ok(())
    }

    fn audit(&mut self) -> Done {
        if NAMES.iter().any(|name| self.half_written(name)) {
            return Ok(());
        }
        let audited = self.ask(SESSIONS, "audit", json!({}))?;
        expect(Row::Audit, audited["differences"] == json!([]), || {
            format!("audit: {}", audited["differences"])
        })
    }

    fn used(&self, name: Name) -> bool {
        let mut people = self.truth.people.iter();
        people.any(|person| person.held.get(name).is_some_and(|held| held.used))
    }

    /// Returns whether a file was used, also by another name or one it had.
    fn is_file_used(&self, name: Name) -> bool {
        let mut names = self.truth.names_of_gone(name).into_iter();
        names.any(|name| self.used(name))
    }

    fn statuses(&mut self, who: usize) -> Done {
        let answer = self.ask(who, "file/status", json!({"paths": NAMES}))?;
        let states = answer["files"].as_array().cloned().unwrap_or_default();
        for (name, state) in NAMES.iter().zip(&states) {
            self.truth.held(who, name).named = true;
            self.status(who, name, state)?;
        }
        // All names of a file have the same state (FILE-1).
        for (name, state) in NAMES.iter().zip(&states) {
            for other in self.truth.names_of(name) {
                let at = NAMES.iter().position(|name| *name == other).unwrap_or(0);
                let same = ["state", "mayEdit", "resident", "hash", "seenHash"]
                    .iter()
                    .all(|field| state[field] == states[at][field]);
                expect(
                    Row::SameForAllNames,
                    same || self.half_written(name),
                    || {
                        format!(
                            "{name} and {other} are one file; {} is told {state} and {}",
                            session(who),
                            states[at]
                        )
                    },
                )?;
            }
        }
        Ok(())
    }

    fn status(&mut self, who: usize, name: Name, state: &Value) -> Done {
        // In the middle of a save, an answer may have the content from before
        // it.
        if self.half_written(name) {
            return Ok(());
        }
        let text = self.truth.text(name);
        let told = |what: &str| format!("{} is told of {name}: {state}; {what}", session(who));
        expect(
            Row::Contents,
            state["hash"] == json!(text.map(sha256)),
            || told(&format!("it holds {text:?}, {:?}", text.map(sha256))),
        )?;
        let size = text.map_or(0, str::len);
        expect(Row::Contents, state["size"] == size, || {
            told(&format!("its size is {size}"))
        })?;
        let worth = self.truth.worth(who, name);
        self.left_open.1 += 1;
        let right = match worth {
            Worth::Unread => state["state"] == "unread",
            Worth::Fresh => state["state"] == "fresh",
            Worth::Stale => state["state"] == "stale",
            Worth::Deleted => state["state"] == "deleted",
            Worth::Open => {
                self.left_open.0 += 1;
                // Whether the file exists is always specified.
                match text {
                    Some(_) => state["state"] != "deleted",
                    None => state["state"] == "unread" || state["state"] == "deleted",
                }
            }
        };
        expect(Row::Worth, right, || {
            let held = self.truth.people[who].held.get(name);
            told(&format!(
                "the copy is {worth:?}; it holds {text:?}; what is held: {held:?}"
            ))
        })?;
        let held = self.truth.people[who].held.get(name);
        let gone =
            held.is_some_and(|held| !held.resident && held.copy.open.is_none() && !held.perhaps);
        expect(Row::Repeats, !gone || state["resident"] == false, || {
            told("its lines are no longer in the context")
        })
    }

    /// Compares a list of changes with the expected one.
    ///
    /// # Errors
    /// A change that is listed wrongly, or is missing.
    pub fn listed(&mut self, who: usize, answer: &Value) -> Done {
        let none = Vec::new();
        let changes = answer["changes"].as_array().unwrap_or(&none);
        for change in changes {
            let at = |field: &str| NAMES.iter().find(|name| change[field] == **name);
            let Some(name) = at("path") else {
                let path = change["path"].as_str().unwrap_or_default().to_owned();
                if at("from").is_some_and(|from| self.is_file_used(from)) {
                    // A path outside of `NAMES`, reached through a link.
                    self.truth.beyond.insert(path.clone());
                }
                if self.truth.beyond.contains(&path) {
                    continue;
                }
                return Err(Wrong {
                    row: Row::Listed,
                    what: format!("{} is told of a name nobody used: {change}", session(who)),
                });
            };
            self.change(who, name, change)?;
        }
        for name in NAMES {
            let listed = |name: &Name| {
                changes
                    .iter()
                    .filter(|change| change["path"] == **name)
                    .count()
            };
            let names = self.truth.names_of(name);
            let all: usize = names.iter().map(listed).sum();
            let lost = changes.iter().any(|change| !change["lost"].is_null());
            expect(Row::Listed, all <= 1 || lost, || {
                format!(
                    "{} is told more than once of {name}: {changes:?}",
                    session(who)
                )
            })?;
            let must = self.must_be_listed(who, name);
            let gone: usize = self.truth.names_of_gone(name).iter().map(listed).sum();
            expect(Row::Listed, gone > 0 || !must, || {
                format!(
                    "{} is not told of {name}, which is {:?} for it: {changes:?}; {:?}",
                    session(who),
                    self.truth.worth(who, name),
                    self.truth.people[who].held.get(name)
                )
            })?;
        }
        Ok(())
    }

    /// Returns whether a change of a name must be reported to a session that
    /// used the name.
    fn must_be_listed(&self, who: usize, name: Name) -> bool {
        let Some(held) = self.truth.people[who].held.get(name) else {
            return false;
        };
        let worth = self.truth.worth(who, name);
        let text = self.truth.text(name).map(str::to_owned);
        // The session's own undeclared mark covers the name: its tool may write
        // it, or may have written it.
        let marked = self.truth.people[who].edit.as_ref();
        if marked.is_some_and(|edit| !edit.declared && edit.names.contains(&name)) {
            return false;
        }
        // The absence may be the middle of the session's own save (ATTR-5).
        let same = self.truth.names_of_gone(name);
        if marked.is_some_and(|edit| text.is_none() && same.contains(&edit.name)) {
            return false;
        }
        let news = match &held.told {
            Told::Nothing => true,
            Told::This(told, _) => *told != text,
            Told::Open => false,
        };
        held.used
            && news
            && !self.half_written(name)
            && matches!(worth, Worth::Stale | Worth::Deleted)
    }

    /// Checks one listed change.
    fn change(&self, who: usize, name: Name, change: &Value) -> Done {
        let names = self.truth.names_of(name);
        if self.half_written(name) {
            return Ok(());
        }
        let told = |what: &str| format!("{} is told {change}; {what}", session(who));
        let Some(held) = self.truth.people[who].held.get(name) else {
            return expect(Row::Listed, false, || told("it never used that name"));
        };
        if !change["lost"].is_null() {
            return Ok(());
        }
        let text = self.truth.text(name);
        let known = held.used || held.carried || held.perhaps;
        expect(Row::Listed, known, || {
            told(&format!(
                "it never used that name; names of the file: {names:?}"
            ))
        })?;
        expect(
            Row::Listed,
            change["hash"] == json!(text.map(sha256)),
            || told(&format!("{name} holds {text:?}")),
        )?;
        let worth = self.truth.worth(who, name);
        let count = self.truth.count(name);
        let again = matches!(&held.told, Told::This(_, then) if *then == count);
        // A name that was never read is listed if its content differs from that
        // at its first mention.
        let may = worth != Worth::Fresh && !again;
        expect(Row::Listed, may, || {
            told(&format!(
                "its copy is {worth:?}; it was told that already: {again}; {held:?}"
            ))
        })?;
        self.authors(who, name, change, held)
    }

    fn authors(&self, who: usize, name: Name, change: &Value, held: &Held) -> Done {
        let by = authors(change);
        let events = self.truth.events.get(name).map_or(&[][..], |all| all);
        let since = events.get(held.since..).unwrap_or_default();
        let Some(newest) = since.last() else {
            return Ok(());
        };
        let told = |what: String| format!("{} is told {change}; {what}", session(who));
        if let Some(newest) = &newest.by {
            expect(
                Row::ListedAuthors,
                by.iter().any(|author| newest.contains(author)),
                || told(format!("what is there now is by one of {newest:?}")),
            )?;
        }
        // An event whose author is not specified makes the authors of the whole
        // change unspecified.
        if held.mixed || since.iter().any(|event| event.by.is_none()) {
            return Ok(());
        }
        let wrong = by.iter().find(|author| {
            !since
                .iter()
                .filter_map(|event| event.by.as_ref())
                .any(|all| all.contains(*author))
        });
        expect(Row::ListedAuthors, wrong.is_none(), || {
            told(format!(
                "since it saw {name}, that one wrote nothing: {wrong:?}; {since:?}"
            ))
        })
    }

    fn history(&mut self, name: &Name) -> Done {
        if !self.used(name) || self.half_written(name) {
            return Ok(());
        }
        let answer = self.ask(SESSIONS, "file/history", json!({"path": name}))?;
        let none = Vec::new();
        let rows = answer["versions"].as_array().unwrap_or(&none);
        let newest = rows
            .iter()
            .find(|row| row["amends"].is_null() && row["unobserved"] != true);
        let text = self.truth.text(name);
        let told = |what: String| format!("file/history {name}: {answer}; {what}");
        let hash = newest.map_or(&Value::Null, |row| &row["hash"]);
        expect(
            Row::HistoryContents,
            *hash == json!(text.map(sha256)),
            || told(format!("it holds {text:?}, {:?}", text.map(sha256))),
        )?;
        let (Some(newest), Some(events)) = (newest, self.truth.events.get(name)) else {
            return Ok(());
        };
        // The first row is the baseline, whose author is unknown. So is the
        // first row of a file that a name became later.
        let begins = newest["kind"] == "created" && newest["evidence"] == "gap";
        let baseline = rows.len() == 1 || rows.last() == Some(newest) || begins;
        let Some(by) = events.last().and_then(|event| event.by.as_ref()) else {
            return Ok(());
        };
        let amended = rows.iter().find(|row| row["amends"] == newest["clock"]);
        let author = crate::author(&amended.unwrap_or(newest)["author"]);
        expect(
            Row::HistoryAuthors,
            baseline || by.contains(&author),
            || told(format!("its newest content is by one of {by:?}")),
        )
    }
}
