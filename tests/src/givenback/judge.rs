//! What an undo must do, and whether it did (UNDO-1 to UNDO-4, step 2.4).

use std::collections::BTreeSet;

use serde_json::Value;

use super::allow;
use super::features::{Feature, Groups};
use super::play::{Done, Kind, wrong};
use super::step::Who;
use super::truth::{Known, Tree, Truth, Way, places};

/// What must become of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    /// It stays.
    Stays,
    /// It stays, and the answer lists it.
    StaysTold,
    /// It goes, or the answer lists it.
    Goes,
    /// It comes back, or the answer lists it.
    ComesBack,
    /// It stays away.
    StaysAway,
    /// It stays away, or the answer lists it.
    ComesBackTold,
    /// The rules leave a choice.
    Either,
}

/// An undo, with the files before and after it.
pub struct Undo<'a> {
    /// The groups of the run.
    pub groups: Groups,
    /// What was known before it.
    pub truth: &'a Truth,
    /// Whose changes were undone.
    pub whom: Who,
    /// The files afterwards.
    pub after: &'a Tree,
    /// The answer; `Null` if there was none.
    pub answer: &'a Value,
    /// The files with unmerged entries: they are left as they are.
    pub unmerged: &'a BTreeSet<String>,
    /// In which agent's window a step was.
    pub windows: &'a dyn Fn(usize) -> Option<Who>,
}

impl Undo<'_> {
    fn expect(&self, known: &Known, place: Option<&str>) -> Expect {
        let is_own = known.by.is_of(self.whom);
        if let Some(path) = place {
            if self.unmerged.contains(path) {
                // Step 2.5: nothing of it is undone, and the cause is told.
                return match is_own {
                    true => Expect::StaysTold,
                    false => Expect::Stays,
                };
            }
            let last = known.last();
            let by_another = last.is_some_and(|mark| {
                mark.on && !mark.who.is_of(self.whom) && !matches!(mark.way, Way::Undone(_))
            });
            return match is_own {
                _ if allow::is_of_either_after_an_undo(known) => Expect::Either,
                false if allow::may_go_since_it_was_brought_back(known, self.whom) => {
                    Expect::Either
                }
                false => Expect::Stays,
                true if allow::was_carried_back(known) => Expect::Either,
                // It need not be told if it stands elsewhere in the file.
                true if allow::was_typed_again(known, self.whom) => Expect::Stays,
                true if by_another && self.groups.has(Feature::Decided) => Expect::StaysTold,
                true if by_another => Expect::Either,
                // `allow::may_stay_as_likely`: it is listed then.
                true => Expect::Goes,
            };
        }
        match known.removal() {
            _ if is_own && allow::was_put_back_by_another(known, self.whom) => Expect::Either,
            _ if is_own
                && allow::may_come_back_since_it_may_be_anothers(
                    known,
                    self.whom,
                    self.windows,
                ) =>
            {
                Expect::ComesBackTold
            }
            _ if is_own => Expect::StaysAway,
            _ if allow::was_there_only_by(known, self.whom) => Expect::StaysAway,
            Some(mark) if !mark.on && mark.who.is_of(self.whom) => {
                match allow::may_stay_away_with_its_file(self.truth, known, self.whom)
                    || allow::may_stay_away_since_own_git_brought_it(known, self.whom)
                    || allow::may_stay_away_since_git_went_elsewhere(self.truth, known)
                    || allow::may_stay_away_since_a_return(self.truth, known, self.whom)
                    || allow::may_stay_away_since_its_author_was_undone(self.truth, known)
                    || known.is_beside_claimed
                {
                    true => Expect::Either,
                    false => Expect::ComesBack,
                }
            }
            _ if allow::may_come_back_as_likely(known, self.whom, self.windows) => Expect::Either,
            // Who is said to have typed a line has also removed what it replaced.
            _ if known.is_beside_claimed => Expect::Either,
            _ if allow::may_come_back_since_both_removed_it(known, self.whom)
                || allow::may_come_back_since_a_resolution_left_it_out(known, self.whom) =>
            {
                Expect::Either
            }
            _ => Expect::StaysAway,
        }
    }

    /// Compares. Returns the lines that stay although they should have gone, or
    /// are away although they should have come back, of which the answer tells.
    ///
    /// # Errors
    /// The first difference.
    pub fn judge(&self) -> Done {
        let (was, is) = (places(&self.truth.tree), places(self.after));
        let mut told_files = BTreeSet::new();
        let mut seen = BTreeSet::new();
        // Both sides of a conflict may have a line.
        let merged = { self.after.iter() }.filter(|(path, _)| !self.unmerged.contains(*path));
        for line in merged.flat_map(|(_, lines)| lines) {
            if self.truth.lines.contains_key(line) && !seen.insert(line) {
                return wrong(Kind::Twice, format!("{line:?} is there twice"));
            }
        }
        for (line, known) in &self.truth.lines {
            let place = was.get(line.as_str()).map(|(path, _)| *path);
            let now = is.get(line.as_str());
            // With the group `Told`, the line itself must be listed.
            let at = [was.get(line.as_str()), now].map(|place| place.map(|(_, at)| *at));
            let lists = |row: &Value| match self.groups.has(Feature::Told) {
                true => tells(row) && names(row, line, at),
                false => tells(row),
            };
            let told = || self.rows(known).any(lists);
            let story = || story(line, known);
            match (self.expect(known, place), now.is_some()) {
                (Expect::Either, _)
                | (Expect::Stays, true)
                | (Expect::Goes | Expect::StaysAway | Expect::ComesBackTold, false)
                | (Expect::ComesBack, true) => {}
                (Expect::Stays | Expect::StaysTold, false) => {
                    return wrong(Kind::Lost, format!("lost: {}", story()));
                }
                (Expect::StaysTold | Expect::ComesBackTold, true) => {
                    if !told() {
                        return wrong(Kind::Untold, format!("there, not told: {}", story()));
                    }
                }
                (Expect::Goes, true) => {
                    if !told() {
                        return wrong(Kind::Left, format!("left, not told: {}", story()));
                    }
                    if self.nothing_prevents(known) {
                        return wrong(Kind::Needless, format!("left for no reason: {}", story()));
                    }
                    told_files.insert(known.file);
                }
                (Expect::ComesBack, false) => {
                    if !told() {
                        return wrong(Kind::NotBack, format!("not back, not told: {}", story()));
                    }
                    told_files.insert(known.file);
                }
                (Expect::StaysAway, true) => {
                    return wrong(Kind::Extra, format!("came back: {}", story()));
                }
            }
        }
        self.order()?;
        self.names()?;
        if self.groups.has(Feature::Told) {
            for file in told_files {
                for row in self.rows_of(file) {
                    if row["outcome"] == "undone" {
                        let what = format!("`undone`, and something stays: {row}");
                        return wrong(Kind::UndoneSaid, what);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns whether nothing is a reason for a line to stay: a tool typed it,
    /// and no other author has changed the file since.
    fn nothing_prevents(&self, known: &Known) -> bool {
        let Some(mark) = known.last() else {
            return false;
        };
        let others = |who: Who| !who.is_of(self.whom);
        !allow::may_stay_as_likely(known)
            && !allow::may_be_indistinguishable(known)
            && known.marks.len() == 1
            && !self
                .truth
                .touched_since(mark.step, others)
                .contains(&known.file)
    }

    fn rows(&self, known: &Known) -> impl Iterator<Item = &Value> {
        self.rows_of(known.file)
    }

    fn rows_of(&self, file: u32) -> impl Iterator<Item = &Value> {
        let names = self.truth.files.get(&file).map(|life| &life.names);
        let lists = self
            .answer
            .as_object()
            .into_iter()
            .flat_map(|answer| answer.values());
        let rows = lists.filter_map(Value::as_array).flatten();
        rows.filter(move |row| {
            let is_it = |field: &str| {
                let name = row[field].as_str().unwrap_or_default();
                names.is_some_and(|names| names.contains(name))
            };
            is_it("path") || is_it("to")
        })
    }

    /// Checks that the lines of others that were in one file are in one file, in
    /// their order, and that lines which came back are where they were.
    fn order(&self) -> Done {
        let is = places(self.after);
        let is_others = |line: &&String| {
            let known = self.truth.lines.get(*line);
            known.is_some_and(|known| !known.by.is_of(self.whom))
        };
        for (path, lines) in &self.truth.tree {
            let now = lines
                .iter()
                .filter(is_others)
                .filter_map(|line| is.get(line.as_str()));
            let now: Vec<_> = now.collect();
            if now.windows(2).any(|pair| pair[0] >= pair[1]) {
                return wrong(Kind::Order, format!("{path}: the order of lines of others"));
            }
        }
        let was = places(&self.truth.tree);
        for (line, place) in &is {
            let Some(known) = self.truth.lines.get(*line) else {
                continue;
            };
            let Some(mark) = known.marks.last().filter(|_| !was.contains_key(line)) else {
                continue;
            };
            let mut is_below = false;
            for other in &mark.around {
                is_below |= other == line;
                let Some(there) = is.get(other.as_str()) else {
                    continue;
                };
                let right = match is_below {
                    true => there >= place,
                    false => there < place,
                };
                if there.0 == place.0 && !right {
                    let what = format!("came back on the wrong side of {other:?}: {line:?}");
                    return wrong(Kind::Place, what);
                }
            }
        }
        Ok(())
    }

    /// Checks that a file that only the chosen author has moved has its name
    /// again (UNDO-1).
    fn names(&self) -> Done {
        if !self.groups.has(Feature::Lineage) {
            return Ok(());
        }
        for (path, file) in &self.truth.names {
            let life = &self.truth.files[file];
            let Some((who, from)) = &life.moved else {
                continue;
            };
            let is_free = !self.truth.tree.contains_key(from);
            let is_back = self.after.contains_key(from);
            let told = self.rows_of(*file).any(tells);
            let stays = self.after.contains_key(path);
            if who.is_of(self.whom) && is_free && stays && !is_back && !told {
                let what = format!("{path} was {from} before it was moved, and is not told");
                return wrong(Kind::Name, what);
            }
            if !who.is_of(self.whom) && is_back && !stays && is_free {
                let what = format!("{path} has got the name {from} back, which it did not lose");
                return wrong(Kind::Name, what);
            }
        }
        Ok(())
    }
}

/// Returns whether a row of an answer lists something that stays.
pub fn tells(row: &Value) -> bool {
    let done = ["undone", "deleted", "restored", "renamed", "unchanged"];
    let outcome = row["outcome"].as_str().unwrap_or_default();
    !done.contains(&outcome) || !row["cause"].is_null() || listed(row).next().is_some()
}

/// Returns what a row lists as staying.
fn listed(row: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["conflicts", "left"].into_iter();
    lists.filter_map(|field| row[field].as_array()).flatten()
}

/// Returns whether what a row lists includes a line: its text, or its place
/// before or after the undo; or lines that do not come back, for `None`.
fn names(row: &Value, line: &str, places: [Option<usize>; 2]) -> bool {
    let whole = !row["cause"].is_null() || row["outcome"] == "notKept";
    whole
        || listed(row).any(|item| {
            let has = |field: &str| item[field].as_str().is_some_and(|text| text.contains(line));
            let end = |field: &str| item["lines"][field].as_u64().unwrap_or_default();
            let covers = |at: &usize| {
                let number = *at as u64 + 1;
                end("start") <= number && number <= end("end")
            };
            let away = places.iter().all(Option::is_none) && item["removed"].as_u64() > Some(0);
            has("text") || has("before") || places.iter().flatten().any(covers) || away
        })
}

/// Returns a line and what was done with it, for people.
pub fn story(line: &str, known: &Known) -> String {
    let mut text = format!("{line:?} by {:?}", known.by);
    if let Some(agent) = known.window {
        text += &format!(" in {agent:?}'s window");
    }
    if known.dim {
        text += " (dim)";
    }
    for mark in &known.marks {
        let sign = if mark.on { '+' } else { '-' };
        text += &format!(", {sign}{:?} {:?} at {}", mark.who, mark.way, mark.step);
    }
    text
}
