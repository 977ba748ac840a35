//! Turns histories into scripts: each part of a change is assigned to an
//! author, the authors take turns, and sometimes an author writes over what
//! another has just written.

use std::collections::VecDeque;

use super::histories::{Histories, History};
use super::{AUTHORS, File, Line, Script, Version, Who};
use crate::dice::Dice;

/// One part of a change: the lines `off` are removed, and the lines `on` are
/// inserted after the line `after`.
#[derive(Clone, Debug)]
struct Part {
    off: Vec<usize>,
    /// The line before the inserted ones; `None` for the beginning of the file.
    after: Option<usize>,
    on: Vec<usize>,
}

/// Parts that one author writes in one step.
type Turn = (Who, Vec<Part>);

/// Returns the script with a number. Even numbers use histories from commits,
/// odd numbers random ones.
pub fn script(histories: &Histories, number: u64) -> Script {
    let mut dice = Dice::new(number, "dealt");
    let by_chance = number % 2 == 1;
    let from = if by_chance { "by chance" } else { "dealt" };
    let mut deal = Deal {
        script: Script {
            name: format!("{from} {number}"),
            files: Vec::new(),
            steps: Vec::new(),
        },
        orders: Vec::new(),
        dice: dice.clone(),
    };
    let files = 1 + dice.index(3);
    let mut turns: Vec<VecDeque<Turn>> = Vec::new();
    for place in 0..files {
        let history = if by_chance {
            deal.chance(1 + dice.index(4))
        } else {
            dice.pick(&histories.all).clone()
        };
        let path = match dice.below(3) {
            0 => format!("file {place}.txt"),
            at => format!("src/{at}/file{place}.rs"),
        };
        turns.push(deal.file(path, &history));
    }
    while turns.iter().any(|own| !own.is_empty()) {
        let file = deal.dice.index(files);
        let Some((who, parts)) = turns[file].pop_front() else {
            continue;
        };
        deal.turn(file, who, &parts);
        if deal.dice.percent(30) {
            deal.overlap(file);
        }
        if deal.dice.percent(3) {
            deal.back(file);
        }
        if deal.dice.percent(1) {
            let who = deal.anybody();
            deal.push(file, who, None);
        }
    }
    deal.script
}

struct Deal {
    script: Script,
    /// For each file, the order of all its lines, removed lines included.
    orders: Vec<Vec<usize>>,
    dice: Dice,
}

impl Deal {
    fn anybody(&mut self) -> Who {
        self.dice.index(AUTHORS.len())
    }

    /// Returns versions of invented lines. Each version differs from the
    /// previous one in a few places.
    fn chance(&mut self, changes: usize) -> History {
        let dice = &mut self.dice;
        let is_new = dice.percent(15);
        let mut now: Vec<String> = (0..6 + dice.index(30))
            .map(|n| format!("line {n}"))
            .collect();
        let first = if is_new { None } else { Some(now.clone()) };
        let mut history = vec![first, Some(now.clone())];
        for change in 0..changes * 2 {
            for _ in 0..1 + dice.index(5) {
                let at = dice.index(now.len() + 1);
                let until = (at + dice.index(4)).min(now.len());
                let more = dice.index(4);
                // Some lines equal others.
                let line = |n: usize| match n {
                    3 => String::new(),
                    n => format!("line {change}.{n}"),
                };
                now.splice(at..until, (0..more).map(line));
            }
            history.push(Some(now.clone()));
        }
        history
    }

    /// Adds a file with this history. Returns the turns that change it, in
    /// order.
    fn file(&mut self, path: String, history: &History) -> VecDeque<Turn> {
        let file = self.script.files.len();
        let end = if self.dice.percent(10) { "\r\n" } else { "\n" };
        self.script.files.push(File {
            mark: format!("{} {file}", self.script.name),
            path,
            lines: Vec::new(),
            versions: Vec::new(),
            end,
            open: None,
        });
        let first = history[0].as_ref();
        let texts = first.cloned().unwrap_or_default();
        let mut real: Vec<usize> = self.lines(file, &texts, None);
        self.orders.push(real.clone());
        if self.dice.percent(10) {
            self.script.files[file].open = real.last().copied();
        }
        self.script.files[file].versions.push(Version {
            by: None,
            lines: first.map(|_| real.clone()),
        });
        let mut old: &[String] = &texts;
        let mut turns = VecDeque::new();
        for next in &history[1..] {
            let new = next.as_deref().unwrap_or_default();
            let mut next_real = Vec::with_capacity(new.len());
            let mut parts: Vec<Turn> = Vec::new();
            let mut at = 0;
            for (off, on) in differences(old, new) {
                let who = self.anybody();
                next_real.extend_from_slice(&real[at..off.start]);
                let part = Part {
                    after: off.start.checked_sub(1).map(|before| real[before]),
                    on: self.lines(file, &new[on], Some(who)),
                    off: real[off.clone()].to_vec(),
                };
                next_real.extend_from_slice(&part.on);
                at = off.end;
                parts.push((who, vec![part]));
            }
            next_real.extend_from_slice(&real[at..]);
            self.dice.shuffle(&mut parts);
            // An author sometimes writes several parts in one step.
            for (who, part) in parts {
                match turns.back_mut() {
                    Some((last, all)) if *last == who && self.dice.percent(50) => {
                        Vec::extend(all, part);
                    }
                    _ => turns.push_back((who, part)),
                }
            }
            (real, old) = (next_real, new);
        }
        turns
    }

    /// Adds lines to a file's table. No version contains them yet.
    fn lines(&mut self, file: usize, texts: &[String], by: Option<Who>) -> Vec<usize> {
        let lines = &mut self.script.files[file].lines;
        let first = lines.len();
        lines.extend(texts.iter().map(|text| Line {
            text: text.clone(),
            by,
        }));
        (first..lines.len()).collect()
    }

    fn now(&self, file: usize) -> Option<&Vec<usize>> {
        self.script.files[file].versions.last()?.lines.as_ref()
    }

    /// Performs one turn. Lines that are already removed are skipped. After the
    /// file's deletion, turns have no effect.
    fn turn(&mut self, file: usize, who: Who, parts: &[Part]) {
        let versions = &self.script.files[file].versions;
        let open = self.script.files[file].open;
        let now = self.now(file).cloned();
        if now.is_none() && versions.len() > 1 {
            return;
        }
        let mut on: Vec<bool> = vec![false; self.script.files[file].lines.len()];
        for line in now.unwrap_or_default() {
            on[line] = true;
        }
        let order = &mut self.orders[file];
        for part in parts {
            for line in &part.off {
                on[*line] = open == Some(*line);
            }
            let after = part.after.filter(|line| open != Some(*line));
            let place = match (after, part.after) {
                (Some(after), _) => order
                    .iter()
                    .position(|line| *line == after)
                    .map(|at| at + 1),
                // Insert before the last line, which stays the last.
                (None, Some(last)) => order.iter().position(|line| *line == last),
                (None, None) => Some(0),
            };
            let place = place.unwrap_or(0);
            order.splice(place..place, part.on.iter().copied());
            for line in &part.on {
                on[*line] = true;
            }
        }
        let lines = order.iter().copied().filter(|line| on[*line]).collect();
        self.push(file, who, Some(lines));
    }

    fn push(&mut self, file: usize, who: Who, lines: Option<Vec<usize>>) {
        let versions = &mut self.script.files[file].versions;
        if versions.last().is_some_and(|last| last.lines == lines) {
            return;
        }
        versions.push(Version {
            by: Some(who),
            lines,
        });
        self.script.steps.push((file, versions.len() - 1));
    }

    /// Adds a step in which an author replaces or removes lines that the last
    /// version added, or inserts lines between them.
    fn overlap(&mut self, file: usize) {
        let who = self.anybody();
        let versions = &self.script.files[file].versions;
        let [.., before, now] = &versions[..] else {
            return;
        };
        let Some(lines) = now.lines.clone() else {
            return;
        };
        let was = before.lines.clone().unwrap_or_default();
        let fresh: Vec<usize> = (0..lines.len())
            .filter(|at| !was.contains(&lines[*at]))
            .collect();
        let Some(at) = fresh.get(self.dice.index(fresh.len().max(1))).copied() else {
            return;
        };
        let until = (at + 1 + self.dice.index(3)).min(lines.len());
        let (gone, come) = match self.dice.below(4) {
            0 => (at..at, 1 + self.dice.index(3)),
            1 => (at..until, 0),
            2 => (at..until, until - at),
            _ => (at..until, self.dice.index(4)),
        };
        let text = &self.script.files[file].lines[lines[at]].text;
        let texts: Vec<String> = (0..come)
            .map(|n| format!("{text} as {who} has it {n}"))
            .collect();
        let on = self.lines(file, &texts, Some(who));
        let part = Part {
            after: at.checked_sub(1).map(|before| lines[before]),
            off: lines[gone].to_vec(),
            on,
        };
        self.turn(file, who, &[part]);
    }

    /// Adds a step in which an author restores an earlier version of the file.
    fn back(&mut self, file: usize) {
        let who = self.anybody();
        let versions = &self.script.files[file].versions;
        let so_far = 2 + self.dice.index(3);
        if let Some(earlier) = versions.len().checked_sub(so_far) {
            let lines = versions[earlier].lines.clone();
            self.push(file, who, lines);
        }
    }
}

type Ranges = (std::ops::Range<usize>, std::ops::Range<usize>);

/// Returns which lines were replaced by which: the common beginning and end are
/// skipped, and the lines between are compared by the longest common
/// subsequence if there are not too many.
fn differences(old: &[String], new: &[String]) -> Vec<Ranges> {
    let pairs = || old.iter().zip(new);
    let head = pairs().take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let ends = old.iter().rev().zip(new.iter().rev()).take(rest);
    let tail = ends.take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    if a.is_empty() && b.is_empty() {
        return Vec::new();
    }
    if a.len() * b.len() > 1 << 22 {
        return vec![(head..head + a.len(), head..head + b.len())];
    }
    let wide = b.len() + 1;
    let mut longest = vec![0_u32; (a.len() + 1) * wide];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * wide + j] = match a[i] == b[j] {
                true => longest[(i + 1) * wide + j + 1] + 1,
                false => longest[(i + 1) * wide + j].max(longest[i * wide + j + 1]),
            };
        }
    }
    let mut found: Vec<Ranges> = Vec::new();
    let (mut i, mut j, mut from) = (0, 0, (0, 0));
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            if from != (i, j) {
                found.push((head + from.0..head + i, head + from.1..head + j));
            }
            (i, j) = (i + 1, j + 1);
            from = (i, j);
        } else if j == b.len()
            || i < a.len() && longest[(i + 1) * wide + j] >= longest[i * wide + j + 1]
        {
            i += 1;
        } else {
            j += 1;
        }
    }
    if from != (i, j) {
        found.push((head + from.0..head + i, head + from.1..head + j));
    }
    found
}
