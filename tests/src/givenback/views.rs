//! What blame and the queue of the review show (HIST-2, REV-1, REV-2).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::allow;
use super::features::Feature;
use super::judge::story;
use super::play::{Done, Kind, Play, wrong};
use super::step::Who;
use super::truth::{Kept, Known, identity, places};

/// Returns whether an author of an answer is this one.
fn is(who: Who, author: &Value) -> bool {
    match who.session() {
        Some(session) => author["session"] == session,
        None => author["kind"] == "user" && who == Who::User,
    }
}

/// Returns whether blame may show this author for a line.
fn is_right(known: &Known, shown: &Value, evidence: &Value) -> bool {
    let nobody = allow::is_nobodys(shown, evidence);
    let all = [Who::User, Who::A, Who::B, Who::Sub];
    let again =
        { all.into_iter() }.any(|who| is(who, shown) && allow::may_be_typed_again_by(known, who));
    match known.by {
        _ if again => true,
        Who::Base => nobody,
        _ if nobody && allow::may_be_unknown(known) => true,
        by => {
            let in_window = allow::may_stay_as_likely(known)
                && (nobody
                    || is(Who::User, shown)
                    || known.window.is_some_and(|who| is(who, shown)));
            is(by, shown) || in_window
        }
    }
}

impl Play {
    /// Compares blame of all files, and the queue.
    ///
    /// # Errors
    /// The first difference.
    pub(super) fn views(&mut self) -> Done {
        let paths: Vec<String> = self.truth.tree.keys().cloned().collect();
        for path in paths {
            let blamed = match self.stage.call("file/blame", json!({"path": path})) {
                Ok(blamed) => blamed,
                Err(error) => return wrong(Kind::Answer, format!("file/blame {path}: {error}")),
            };
            for row in blamed["lines"].as_array().into_iter().flatten() {
                let line = identity(row["text"].as_str().unwrap_or_default());
                let Some(known) = self.truth.lines.get(line) else {
                    continue;
                };
                if !is_right(known, &row["author"], &row["evidence"]) {
                    let shown = format!("{} {}", row["author"], row["evidence"]);
                    let what = format!("{path}: {} is shown as {shown}", story(line, known));
                    return wrong(Kind::Blame, what);
                }
            }
        }
        if self.groups.has(Feature::Reviews) || self.groups.has(Feature::Rewrites) {
            self.queue()?;
        }
        Ok(())
    }

    /// Returns the changes in the queue.
    pub(super) fn hunks(&mut self) -> Result<Vec<Value>, super::play::Wrong> {
        match self.stage.call("review/list", json!({"limit": 1_000})) {
            Ok(listed) => Ok(listed["hunks"].as_array().cloned().unwrap_or_default()),
            Err(error) => wrong(Kind::Answer, format!("review/list: {error}")),
        }
    }

    fn queue(&mut self) -> Done {
        let hunks = self.hunks()?;
        let lines = |field: &str| -> BTreeSet<String> {
            let texts = hunks.iter().filter_map(|hunk| hunk[field].as_str());
            texts
                .flat_map(str::lines)
                .map(|line| identity(line).to_owned())
                .collect()
        };
        let (after, before) = (lines("after"), lines("before"));
        let there = places(&self.truth.tree);
        for (line, known) in &self.truth.lines {
            let is_there = there.contains_key(line.as_str());
            let is_listed = match is_there {
                true => after.contains(line),
                false => before.contains(line),
            };
            if is_there && before.contains(line) {
                let what = format!("listed as removed, and is there: {}", story(line, known));
                return wrong(Kind::QueueWrong, what);
            }
            match (self.is_pending(known, is_there), is_listed) {
                (Some(true), false) => {
                    let what = format!("pending, not listed: {} {hunks:?}", story(line, known));
                    return wrong(Kind::QueueMissing, what);
                }
                (Some(false), true) => {
                    let what = format!(
                        "listed, not pending ({:?}): {}",
                        known.kept,
                        story(line, known)
                    );
                    return wrong(Kind::QueueWrong, what);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns whether the queue must have a line; `None` where the rules leave
    /// a choice.
    fn is_pending(&self, known: &Known, is_there: bool) -> Option<bool> {
        let agent = |who: Who| who.session().is_some();
        let last = known.last()?;
        let may_be_a_commands = match known.kept {
            Kept::Commit(from, to) => self.stage.may_be_a_commands(from, to),
            kept => kept == Kept::Maybe,
        };
        if may_be_a_commands || known.window.is_some() || known.dim {
            return None;
        }
        let is_agents = match is_there {
            true => agent(known.by) && last.on,
            false => agent(last.who) && !last.on,
        };
        if is_there && !agent(known.by) {
            // Brought back by an agent: a change of the agent's, or none.
            return if agent(last.who) { None } else { Some(false) };
        }
        if !is_there && agent(known.by) {
            return None;
        }
        if known.kept != Kept::No {
            return Some(false);
        }
        if !is_agents {
            return if known.marks.len() > 1 && is_there {
                None
            } else {
                Some(false)
            };
        }
        if !is_there
            && self
                .truth
                .files
                .get(&known.file)
                .is_none_or(|life| life.removed.is_some())
        {
            return None;
        }
        match allow::may_be_left_out_of_the_queue(&self.truth, known) {
            true => None,
            false => Some(true),
        }
    }
}
