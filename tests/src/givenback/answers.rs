//! The steps that ask touchmark to change something: undo, redo, the review,
//! claims. Each answer is compared with the disk.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::judge::{Undo, tells};
use super::play::{Done, Kind, Play, Wrong, tolerated, wrong};
use super::stage::Ran;
use super::step::Who;
use super::truth::{Act, Bytes, Kept, Tree, Way, bytes, identity, tree};

impl Play {
    pub(super) fn claim(&mut self, file: usize, line: usize, by: Who) -> Done {
        let Some(path) = self.path(file) else {
            return Ok(());
        };
        let lines = &self.truth.tree[&path];
        if lines.is_empty() {
            return Ok(());
        }
        let at = line % lines.len();
        let line = lines[at].clone();
        let place = format!("{path}:{}", at + 1);
        let by_name = by.session().unwrap_or("you");
        let ran = self.stage.touchmark(&["claim", &place, "--by", by_name]);
        if ran.code != Some(0) {
            return wrong(Kind::Claim, format!("claim {place}: {}", ran.stderr));
        }
        let made = self.truth.lines.get(&line).and_then(|known| {
            let mark = known.marks.first()?;
            Some((known.file, mark.step, mark.who))
        });
        for other in self.truth.lines.values_mut() {
            let off = other.marks.last().filter(|mark| !mark.on);
            let away = off.map(|mark| (other.file, mark.step, mark.who));
            other.is_beside_claimed |= away.is_some() && away == made;
        }
        if let Some(known) = self.truth.lines.get_mut(&line) {
            (known.by, known.window, known.kept) = (by, None, Kept::Maybe);
            known.marks.truncate(1);
            if let Some(mark) = known.marks.first_mut() {
                mark.who = by;
            }
        }
        Ok(())
    }

    pub(super) fn keep(&mut self, nth: Option<usize>) -> Done {
        let hunks = self.hunks()?;
        let chosen: Vec<&Value> = match nth {
            Some(nth) => hunks.get(nth % hunks.len().max(1)).into_iter().collect(),
            None => hunks.iter().collect(),
        };
        if chosen.is_empty() {
            return Ok(());
        }
        let named: Vec<Value> = { chosen.iter() }
            .map(|hunk| json!({"path": hunk["path"], "id": hunk["id"]}))
            .collect();
        if let Err(error) = self.stage.call("review/keep", json!({"hunks": named})) {
            return wrong(Kind::Answer, format!("review/keep: {error}"));
        }
        for hunk in chosen {
            for field in ["before", "after"] {
                for line in hunk[field].as_str().unwrap_or_default().lines() {
                    if let Some(known) = self.truth.lines.get_mut(identity(line)) {
                        known.kept = Kept::Yes;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn undo_hunk(&mut self, nth: usize) -> Done {
        let hunks = self.hunks()?;
        let Some(hunk) = hunks.get(nth % hunks.len().max(1)) else {
            return Ok(());
        };
        let named = json!({"hunks": [{"path": hunk["path"], "id": hunk["id"]}]});
        let answer = match self.stage.call("review/undo", named) {
            Ok(answer) => answer,
            Err(error) => return wrong(Kind::Answer, format!("review/undo: {error}")),
        };
        let now = tree(&bytes(self.stage.root()));
        let set = |tree: &Tree| -> BTreeSet<String> { tree.values().flatten().cloned().collect() };
        let of = |field: &str| -> BTreeSet<String> {
            let text = hunk[field].as_str().unwrap_or_default();
            text.lines().map(|line| identity(line).to_owned()).collect()
        };
        let (was, is, before, after) =
            (set(&self.truth.tree), set(&now), of("before"), of("after"));
        let told = { answer["files"].as_array().into_iter().flatten() }.any(tells);
        if let Some(lost) = was.difference(&is).find(|line| !after.contains(*line)) {
            return wrong(Kind::Lost, format!("review/undo of {hunk}: lost {lost:?}"));
        }
        if let Some(extra) = is.difference(&was).find(|line| !before.contains(*line)) {
            return wrong(
                Kind::Extra,
                format!("review/undo of {hunk}: came {extra:?}"),
            );
        }
        if !told {
            if let Some(left) = after.difference(&before).find(|line| is.contains(*line)) {
                return wrong(Kind::Left, format!("review/undo of {hunk}: left {left:?}"));
            }
            if let Some(away) = before.difference(&after).find(|line| !is.contains(*line)) {
                return wrong(
                    Kind::NotBack,
                    format!("review/undo of {hunk}: away {away:?}"),
                );
            }
        }
        self.undos += 1;
        let way = Way::Undone(self.undos);
        self.truth
            .observe(now, Act::of(Who::User, way), &BTreeSet::new());
        Ok(())
    }

    /// Undoes an author, compares, and perhaps reverses it.
    pub(super) fn undo(&mut self, whom: Who, redo: bool, unmerged: &BTreeSet<String>) -> Done {
        let before = bytes(self.stage.root());
        let name = whom.session().expect("an agent");
        let ran = self
            .stage
            .touchmark(&["undo", name, "--yes", "--now", "--json"]);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or(Value::Null);
        let after = bytes(self.stage.root());
        let now = tree(&after);
        let windows = |step: usize| self.windows.get(&step).copied();
        let undo = Undo {
            groups: self.groups,
            truth: &self.truth,
            whom,
            after: &now,
            answer: &answer,
            unmerged,
            windows: &windows,
        };
        self.judged += 1;
        let what = said(&ran);
        let judged = undo.judge().or_else(tolerated);
        judged.map_err(|wrong| Wrong {
            what: format!("{}\n      {what}", wrong.what),
            ..wrong
        })?;
        self.undos += 1;
        let number = self.undos;
        let way = Way::Undone(number);
        self.truth.undone.push((self.truth.step, whom, number));
        self.truth
            .observe(now, Act::of(Who::User, way), &BTreeSet::new());
        let Some(id) = answer["undo"].as_str().filter(|_| redo) else {
            return Ok(());
        };
        let ran = self.stage.touchmark(&["redo", id, "--yes", "--json"]);
        let back = bytes(self.stage.root());
        if let Some(path) = differs(&before, &back) {
            let what = format!(
                "redo does not give {path} back\n      {what}\n      {}",
                said(&ran)
            );
            return wrong(Kind::Redo, what);
        }
        self.undos += 1;
        let way = Way::Undone(self.undos);
        self.truth
            .observe(tree(&back), Act::of(Who::User, way), &BTreeSet::new());
        self.truth.redone(number, self.undos);
        Ok(())
    }
}

/// Returns what a command printed.
fn said(ran: &Ran) -> String {
    format!("{}{}", ran.stdout.trim_end(), ran.stderr.trim_end())
}

/// Returns a file that differs.
fn differs(one: &Bytes, other: &Bytes) -> Option<String> {
    let paths = one.keys().chain(other.keys());
    { paths }
        .find(|path| one.get(*path) != other.get(*path))
        .cloned()
}
