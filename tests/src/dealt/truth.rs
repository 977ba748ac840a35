//! What a file has to hold without one of its authors, and how far what it
//! holds is from that. From the dealing alone: which lines each step brought
//! and took away (UNDO-1, UNDO-2).

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Style, Who};

/// What there has to be without an author.
#[derive(Debug)]
pub struct Truth {
    /// All lines.
    pub there: BTreeSet<usize>,
    /// Of that author, those that stay since somebody has changed what they
    /// came with.
    pub stay: BTreeSet<usize>,
    /// Whether there are changes of that author that stay.
    pub conflicts: bool,
}

/// What is wrong with what a file holds without an author.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wrong {
    /// Lines of the others that stood there, and do no more, or not in their
    /// order.
    pub lost: usize,
    /// Lines of the others that the author had removed, and that are not there
    /// again, or not where they were.
    pub gone: usize,
    /// Lines of the author's that are there, although nobody has changed them.
    pub left: usize,
    /// Lines that others had removed, or that nobody ever wrote.
    pub back: usize,
    /// Lines of the author's that are to stay, and are gone.
    pub eager: usize,
    /// Nobody else has changed the file, and it is not what it was; or the
    /// author has not changed it, and it is not what it is.
    pub bytes: bool,
}

impl Wrong {
    /// Whether nothing is.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The smallest part of a change that goes, or stays, by itself.
#[derive(Clone, Debug, Default)]
struct Part {
    off: Vec<usize>,
    on: Vec<usize>,
}

/// What is left of a file without an author.
pub fn truth(file: &File, without: Who) -> Truth {
    let history = in_force(file, without);
    let parts: Vec<Vec<Part>> = history.iter().map(|at| parts(file, *at)).collect();
    // The newest first: what somebody else has changed since stays, and counts
    // as somebody else's to what came before it.
    let mut changed: BTreeMap<usize, bool> = BTreeMap::new();
    let mut goes: Vec<Vec<bool>> = vec![Vec::new(); parts.len()];
    let mut conflicts = false;
    for (place, at) in history.iter().enumerate().rev() {
        let is_own = file.versions[*at].by == Some(without);
        for part in &parts[place] {
            // Who removes lines that stood for none has done what is asked.
            let touched = |line: &usize| match changed.get(line) {
                Some(is_replaced) => *is_replaced || !part.off.is_empty(),
                None => false,
            };
            let going = is_own && !part.on.iter().any(touched);
            conflicts |= is_own && !going;
            goes[place].push(going);
        }
        for (part, going) in parts[place].iter().zip(&goes[place]) {
            if !going {
                for line in &part.off {
                    *changed.entry(*line).or_default() |= !part.on.is_empty();
                }
            }
        }
    }
    let first = &file.versions[0].lines;
    let mut exists = first.is_some();
    let mut there: BTreeSet<usize> = first.iter().flatten().copied().collect();
    for (place, at) in history.iter().enumerate() {
        let version = &file.versions[*at];
        for (part, going) in parts[place].iter().zip(&goes[place]) {
            if !going {
                there.retain(|line| !part.off.contains(line));
                there.extend(part.on.iter().copied());
            }
        }
        if version.by != Some(without) {
            exists = version.lines.is_some();
        }
    }
    if !exists {
        there.clear();
    }
    let is_own = |line: &&usize| file.lines[**line].by == Some(without);
    Truth {
        stay: there.iter().filter(is_own).copied().collect(),
        there,
        conflicts,
    }
}

/// The steps whose changes are in force: who takes a file back to what it held
/// has taken back what came after that; where that is the author, it has not
/// been.
fn in_force(file: &File, without: Who) -> Vec<usize> {
    let mut of: Vec<Vec<usize>> = vec![Vec::new()];
    for (at, version) in file.versions.iter().enumerate().skip(1) {
        let is_same = |earlier: &usize| file.versions[*earlier].lines == version.lines;
        let now = match (0..at).rev().find(is_same) {
            Some(_) if version.by == Some(without) => of[at - 1].clone(),
            Some(earlier) => of[earlier].clone(),
            None => [&of[at - 1][..], &[at]].concat(),
        };
        of.push(now);
    }
    of.pop().unwrap_or_default()
}

/// The parts of a step: where as many lines took the place of as many, each;
/// so each of lines that only came, or only went; else all of them.
fn parts(file: &File, at: usize) -> Vec<Part> {
    let lines = |at: usize| file.versions[at].lines.as_deref().unwrap_or_default();
    let (old, new) = (lines(at - 1), lines(at));
    let was: BTreeSet<usize> = old.iter().copied().collect();
    let is: BTreeSet<usize> = new.iter().copied().collect();
    let mut parts = Vec::new();
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    while old.peek().is_some() || new.peek().is_some() {
        let mut part = Part::default();
        while let Some(line) = old.next_if(|line| !is.contains(line)) {
            part.off.push(*line);
        }
        while let Some(line) = new.next_if(|line| !was.contains(line)) {
            part.on.push(*line);
        }
        old.next();
        new.next();
        let one = |off: &[usize], on: &[usize]| Part {
            off: off.to_vec(),
            on: on.to_vec(),
        };
        match (part.off.len(), part.on.len()) {
            (off, on) if off == on => {
                let pairs = part.off.iter().zip(&part.on);
                parts.extend(pairs.map(|(off, on)| one(&[*off], &[*on])));
            }
            (0, _) => parts.extend(part.on.iter().map(|line| one(&[], &[*line]))),
            (_, 0) => parts.extend(part.off.iter().map(|line| one(&[*line], &[]))),
            _ => parts.push(part),
        }
    }
    parts
}

/// How far what a file holds is from what it has to hold without an author.
///
/// Of plain texts, lines that are like others are not looked at by themselves:
/// nobody can tell which of them is whose.
pub fn judge(file: &File, without: Who, style: Style, holds: Option<&str>) -> Wrong {
    let truth = truth(file, without);
    let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for line in 0..file.lines.len() {
        let text = file.written(line, style);
        known
            .entry(text.trim_end().to_owned())
            .or_default()
            .push(line);
    }
    let mut wrong = Wrong::default();
    let mut found: Vec<usize> = Vec::new();
    for text in holds.unwrap_or_default().lines() {
        match known.get(text.trim_end()).map(|lines| &lines[..]) {
            Some([line]) => found.push(*line),
            Some(_) => {}
            None => wrong.back += 1,
        }
    }
    let single: BTreeSet<usize> = known
        .values()
        .filter(|lines| lines.len() == 1)
        .flatten()
        .copied()
        .collect();
    let is_own = |line: usize| file.lines[line].by == Some(without);
    let mut left: BTreeSet<usize> = truth.there.intersection(&single).copied().collect();
    for line in &found {
        match (left.remove(line), is_own(*line)) {
            (true, _) => {}
            (false, true) => wrong.left += 1,
            // Or twice.
            (false, false) => wrong.back += 1,
        }
    }
    let stood = file.versions.last().and_then(|last| last.lines.clone());
    let stood: BTreeSet<usize> = stood.into_iter().flatten().collect();
    for line in left {
        match (is_own(line), stood.contains(&line)) {
            (true, _) => wrong.eager += 1,
            (false, true) => wrong.lost += 1,
            (false, false) => wrong.gone += 1,
        }
    }
    // As they stood in any version that had them.
    found.retain(|line| truth.there.contains(line));
    for version in &file.versions {
        let lines = version.lines.iter().flatten().enumerate();
        let place: BTreeMap<usize, usize> = lines.map(|(at, line)| (*line, at)).collect();
        let stands: Vec<usize> = found
            .iter()
            .copied()
            .filter(|line| place.contains_key(line))
            .collect();
        for pair in stands.windows(2) {
            if place[&pair[0]] >= place[&pair[1]] {
                match pair.iter().all(|line| stood.contains(line)) {
                    true => wrong.lost += 1,
                    false => wrong.gone += 1,
                }
            }
        }
    }
    let others = (0..super::AUTHORS.len()).filter(|who| *who != without);
    let mut others = others.filter(|who| file.is_touched_by(*who));
    let wanted = match (file.is_touched_by(without), others.next()) {
        (false, _) => Some(file.last(style)),
        (true, None) => Some(file.text(0, style)),
        (true, Some(_)) => None,
    };
    wrong.bytes = wanted.is_some_and(|wanted| wanted.as_deref() != holds);
    wrong
}
