//! Compares the history's authors with the real ones.
//!
//! Contents are unique, so a version's hash determines its author. Two things
//! are checked: declared writes, which are exact, and that a mark without a
//! content claims only what was written while it was open (ATTR-4, ATTR-8).

use std::collections::{HashMap, HashSet};

use super::account::{Account, Version};
use super::log::Act;
use super::{FILES, Field};

/// How long after its deadline a mark may end, in nanoseconds. Deadlines follow
/// the daemon's clock, and earlier writes are read after the deadline.
const LAPSE: u64 = 1_000_000_000;

/// How long before an editor's report a save may be for the report to cover it,
/// in nanoseconds. A little less than the daemon's two seconds (ATTR-2).
const REPORT: u64 = 1_800_000_000;

/// Returns the errors that were found.
pub fn check(account: &Account) -> Vec<String> {
    let mut wrong = Vec::new();
    for path in FILES {
        let claims = Claims::of(account, path);
        for version in &account.history[path] {
            if let Err(why) = claims.judge(version) {
                let about: Vec<String> = account
                    .of(path)
                    .filter(|act| version.hash.is_some() && mentions(act, version))
                    .map(|act| format!("{} {}..{:?} {}", act.who, act.t0, act.t1, act.fields))
                    .collect();
                wrong.push(format!(
                    "{path}: {why}: {version:?}\n  {}",
                    about.join("\n  ")
                ));
            }
        }
    }
    wrong
}

fn mentions(act: &Act, version: &Version) -> bool {
    let fields = ["hash", "to", "written", "expect", "claim"];
    fields
        .iter()
        .any(|field| act.text(field).is_some() && act.text(field) == version.hash.as_deref())
}

/// All acts on one file, by content.
struct Claims<'a> {
    account: &'a Account,
    path: &'a str,
    /// Saves by people.
    puts: HashMap<&'a str, &'a Act>,
    /// Agents' direct writes, each with its mark.
    own: HashMap<&'a str, (&'a Act, &'a Act)>,
    /// The contents that sessions have declared, `absent` included.
    declared: HashSet<(&'a str, &'a str)>,
    /// The sessions of guarded writes, by the content written.
    guarded: HashMap<&'a str, &'a str>,
    /// Marks without a content.
    open: Vec<&'a Act>,
    reports: HashMap<&'a str, &'a Act>,
    /// How marks were ended, by edit.
    ends: HashMap<&'a str, &'a Act>,
}

impl<'a> Claims<'a> {
    fn of(account: &'a Account, path: &'a str) -> Self {
        let mut claims = Self {
            account,
            path,
            puts: HashMap::new(),
            own: HashMap::new(),
            declared: HashSet::new(),
            guarded: HashMap::new(),
            open: Vec::new(),
            reports: HashMap::new(),
            ends: HashMap::new(),
        };
        let mut mark: HashMap<&str, &Act> = HashMap::new();
        for act in account.of(path) {
            let who = act.who.as_str();
            match act.act.as_str() {
                "put" => {
                    let made = account.made(act);
                    claims.puts.extend(made.map(|hash| (hash, act)));
                }
                "declare" => {
                    mark.insert(who, act);
                    match act.text("expect") {
                        Some(hash) => {
                            claims.declared.insert((who, hash));
                        }
                        None if act.text("error").is_none() => claims.open.push(act),
                        None => {}
                    }
                }
                "own" => {
                    if let (Some(hash), Some(mark)) = (act.text("hash"), mark.get(who)) {
                        claims.own.insert(hash, (act, mark));
                    }
                }
                "finish" => {
                    claims.ends.extend(act.text("edit").map(|edit| (edit, act)));
                    let claim = act.text("claim").map(|hash| (who, hash));
                    claims.declared.extend(claim);
                }
                "guarded" => claims.take_guarded(act),
                "report" => {
                    let hash = act.text("hash").map(|hash| (hash, act));
                    claims.reports.extend(hash);
                }
                _ => {}
            }
        }
        claims
    }

    fn take_guarded(&mut self, act: &'a Act) {
        let who = act.who.as_str();
        let fields = ["hash", "to", "written"].map(|field| act.text(field));
        for hash in fields.into_iter().flatten() {
            self.declared.insert((who, hash));
            if act.text("error").is_none() {
                self.guarded.entry(hash).or_insert(who);
            }
        }
        // An edit without an answer may have changed another content that the
        // session has seen. If other contents have its line, another player
        // added to it.
        let edited = act
            .text("line")
            .and_then(|line| self.account.with_line(line));
        let edited = edited.into_iter().flatten();
        self.declared
            .extend(edited.map(|hash| (who, hash.as_str())));
    }

    fn judge(&self, version: &Version) -> Result<(), String> {
        let hash = version.hash.as_deref();
        let session = version.author.strip_prefix("agent:");
        if version.evidence == "declared" {
            let session = session.ok_or("declared by nobody")?;
            if !self.declared.contains(&(session, hash.unwrap_or("absent"))) {
                return Err(format!("{session} has not declared it"));
            }
        }
        let Some(hash) = hash else { return Ok(()) };
        if version.evidence == "editor" && !self.reports.contains_key(hash) {
            return Err("no editor has reported it".into());
        }
        if let Some(put) = self.puts.get(hash) {
            return self.judge_save(version, put, session);
        }
        // A content that git has stashed and restored is git's the second time.
        if Field::of(self.path) == Field::Stash {
            return Ok(());
        }
        if let Some(writer) = self.guarded.get(hash) {
            return match session {
                Some(session) if session == *writer => Ok(()),
                _ => Err(format!("{writer} has written it, guarded")),
            };
        }
        if let Some((own, mark)) = self.own.get(hash) {
            return self.judge_own(version, own, mark, session);
        }
        Ok(())
    }

    /// Checks a person's save: it is never attributed to an agent, unless a
    /// mark without a content was open.
    fn judge_save(
        &self,
        version: &Version,
        put: &Act,
        session: Option<&str>,
    ) -> Result<(), String> {
        if let Some(session) = session {
            let marked = version.evidence == "marked" && self.was_open(session, put, version);
            return if marked {
                Ok(())
            } else {
                Err(format!("{} has saved it", put.who))
            };
        }
        if Field::of(self.path) == Field::Stash {
            return Ok(());
        }
        if version.author == "unknown" && !self.account.gap_between(put.t0, version.time) {
            return Err("unknown, although somebody watched".into());
        }
        if let Some(report) = version.hash.as_deref().and_then(|h| self.reports.get(h))
            && let (Some(saved), Some(reported)) = (put.t1, report.t1)
            && report.flag("ok")
            && reported - saved < REPORT
            // What is found after a gap is `unknown` (ATTR-13).
            && !self.account.gap_between(put.t0, reported.max(version.time))
            && version.evidence != "editor"
        {
            return Err("an editor has reported it".into());
        }
        Ok(())
    }

    /// Checks an agent's own write with a mark.
    fn judge_own(
        &self,
        version: &Version,
        own: &Act,
        mark: &Act,
        session: Option<&str>,
    ) -> Result<(), String> {
        let writer = own.who.as_str();
        let end = mark.text("edit").and_then(|edit| self.ends.get(edit));
        let aborted = end.is_some_and(|end| end.text("method") == Some("edit/abort"));
        let deadline = mark.fields["deadline"].as_u64().unwrap_or(0) * 1_000_000;
        let in_time = own.t1.is_some_and(|t1| t1 < deadline);
        let claimed =
            end.is_some_and(|end| end.text("outcome").is_some() && end.text("claim").is_some());
        let exact = !aborted && (mark.text("expect").is_some() && in_time || claimed);
        match session {
            Some(session) if session == writer => Ok(()),
            Some(session) if version.evidence == "marked" => {
                if self.was_open(session, own, version) {
                    Ok(())
                } else {
                    Err(format!("{writer} has written it"))
                }
            }
            Some(_) => Err(format!("{writer} has written it")),
            None if exact => Err(format!("{writer} has declared and written it")),
            None => Ok(()),
        }
    }

    /// Returns whether a session's mark without a content was open at some time
    /// between the write and its recording, and was not ended by an abort or by
    /// a commit of another content.
    fn was_open(&self, session: &str, write: &Act, version: &Version) -> bool {
        self.open.iter().any(|mark| {
            let end = mark.text("edit").and_then(|edit| self.ends.get(edit));
            let deadline = mark.fields["deadline"].as_u64().map(|ms| ms * 1_000_000);
            let latest = deadline.unwrap_or(mark.t0 + 1_500_000_000) + LAPSE;
            let until = match end {
                Some(end) if end.text("outcome").is_some() && end.text("claim").is_some() => {
                    return false;
                }
                Some(end) => end.t1.unwrap_or(latest),
                None => latest,
            };
            let aborted = end.is_some_and(|end| {
                end.text("method") == Some("edit/abort")
                    && end.t1.is_some()
                    && end.text("error").is_none()
            });
            mark.who == session
                && !aborted
                && mark.t0 <= version.time + 1_000_000
                && write.t0 <= until
        })
    }
}
