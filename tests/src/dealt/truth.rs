//! The content that a file must have after the changes of one author are
//! undone, and the differences from it. It follows only from the script: which
//! lines each step added and removed (UNDO-1, UNDO-2).

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Style, Who};

/// The expected result without one author.
#[derive(Debug)]
pub struct Truth {
    /// All lines that must be in the file.
    pub there: BTreeSet<usize>,
    /// Those of these lines that the author wrote. They stay since another
    /// author has changed lines that were written with them.
    pub stay: BTreeSet<usize>,
    /// Whether some of the author's changes stay.
    pub conflicts: bool,
}

/// The number of differences between a file's content and the expected one, by
/// kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wrong {
    /// Lines of other authors that were in the file before the undo and are
    /// missing now, or are in the wrong order.
    pub lost: usize,
    /// Lines of other authors that the author had removed, and that are not
    /// restored, or not in their place.
    pub gone: usize,
    /// The author's lines that are still in the file, although no other author
    /// has changed them.
    pub left: usize,
    /// Lines in the file that other authors had removed, or that no author
    /// wrote.
    pub back: usize,
    /// The author's lines that must stay and are missing.
    pub eager: usize,
    /// The bytes are wrong: only the author has changed the file and it is not
    /// as at first, or the author has not changed it and it is not as before.
    pub bytes: bool,
}

impl Wrong {
    /// Returns whether there are no differences.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The smallest part of a change that is undone or stays as a whole.
#[derive(Clone, Debug, Default)]
struct Part {
    off: Vec<usize>,
    on: Vec<usize>,
}

/// Returns the content of a file without one author's changes.
pub fn truth(file: &File, without: Who) -> Truth {
    let first = remains(file, without, &BTreeSet::new());
    let last = file.versions.last().and_then(|last| last.lines.as_ref());
    let stood: BTreeSet<usize> = last.into_iter().flatten().copied().collect();
    let decided = decided(file, without, &first.there, &stood);
    if decided.is_empty() {
        return first;
    }
    let put = decided.iter().filter(|(_, is_put)| **is_put);
    let mut truth = remains(file, without, &put.map(|(line, _)| *line).collect());
    let again = self::decided(file, without, &truth.there, &stood);
    for line in decided.into_keys().chain(again.into_keys()) {
        match stood.contains(&line) {
            true => truth.there.insert(line),
            false => truth.there.remove(&line),
        };
    }
    let is_own = |line: &&usize| file.lines[**line].by == Some(without);
    truth.stay = truth.there.iter().filter(is_own).copied().collect();
    truth
}

/// Returns the content without one author's changes, except for those of the
/// lines that another author has decided about.
fn remains(file: &File, without: Who, decided: &BTreeSet<usize>) -> Truth {
    let history = in_force(file, without);
    let parts: Vec<Vec<Part>> = history.iter().map(|at| parts(file, *at)).collect();
    // From the newest step to the oldest. A change of the author that another
    // author has changed since stays, and then counts as another author's for
    // the steps before it.
    let mut changed: BTreeMap<usize, bool> = BTreeMap::new();
    let mut goes: Vec<Vec<bool>> = vec![Vec::new(); parts.len()];
    let mut conflicts = false;
    let mut is_other_text = false;
    for (place, at) in history.iter().enumerate().rev() {
        let is_own = file.versions[*at].by == Some(without);
        is_other_text |= !is_own && is_made_anew(file, *at);
        for part in &parts[place] {
            // A later removal of lines that replaced nothing does not block the
            // undo, which would remove the same lines.
            let touched = |line: &usize| match changed.get(line) {
                Some(is_replaced) => *is_replaced || !part.off.is_empty(),
                None => false,
            };
            let mut lines = part.on.iter().chain(&part.off);
            let stays = lines.any(|line| decided.contains(line));
            let comes_back =
                part.on.is_empty() && part.off.iter().any(|line| is_gone(file, *at, *line));
            let is_changed = part.on.iter().any(touched) || is_other_text && comes_back;
            let going = is_own && !stays && !is_changed;
            conflicts |= is_own && !stays && !going;
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
    let last = file.versions.last().and_then(|last| last.lines.as_ref());
    let stood: BTreeSet<usize> = last.into_iter().flatten().copied().collect();
    for (place, at) in history.iter().enumerate() {
        let version = &file.versions[*at];
        for (part, going) in parts[place].iter().zip(&goes[place]) {
            if !going {
                // A change of the author that stays removes no line that is in
                // the file now.
                let is_own = version.by == Some(without);
                let is_spared = |line: &usize| {
                    let is_others = file.lines[*line].by != Some(without);
                    is_own && is_others && stood.contains(line)
                };
                there.retain(|line| !part.off.contains(line) || is_spared(line));
                there.extend(part.on.iter().copied());
            }
        }
        if version.by != Some(without) {
            exists = version.lines.is_some();
            if !exists {
                // Lines that were missing then do not come back either.
                there.clear();
            }
        }
    }
    // A change of the author that stays brings none of the author's own lines
    // back.
    let holds = |at: usize, line: &usize| {
        let lines = file.versions[at].lines.iter().flatten();
        lines.into_iter().any(|one| one == line)
    };
    let is_brought = |line: &usize| {
        let mut others =
            (1..file.versions.len()).filter(|at| file.versions[*at].by != Some(without));
        others.any(|at| holds(at, line) && !holds(at - 1, line))
    };
    there.retain(|line| {
        file.lines[*line].by != Some(without) || stood.contains(line) || is_brought(line)
    });
    // A file that another author has removed last stays removed.
    let is_removed = file
        .versions
        .last()
        .is_some_and(|last| last.lines.is_none() && last.by.is_some() && last.by != Some(without));
    if !exists || is_removed {
        there.clear();
    }
    let is_own = |line: &&usize| file.lines[**line].by == Some(without);
    Truth {
        stay: there.iter().filter(is_own).copied().collect(),
        there,
        conflicts,
    }
}

/// Returns whether a version replaced all lines of a file, and of more than a
/// few lines has kept none: that is another text (UNDO-2).
fn is_made_anew(file: &File, at: usize) -> bool {
    let lines = |at: usize| file.versions[at].lines.as_deref().unwrap_or_default();
    let has_words = |line: &&usize| {
        let text = file.written(**line, Style::Marked);
        text.chars().filter(char::is_ascii_alphanumeric).count() >= 2
    };
    let is_new = |line: &usize| (0..at).all(|earlier| !lines(earlier).contains(line));
    let old = lines(at - 1).iter().filter(has_words).count();
    old >= 4 && !lines(at).is_empty() && lines(at).iter().all(is_new)
}

/// Returns whether a line that a version removed was never brought back.
fn is_gone(file: &File, at: usize, line: usize) -> bool {
    let mut later = file.versions[at..].iter();
    later.all(|version| !version.lines.iter().flatten().any(|one| *one == line))
}

/// Returns the lines that differ although another author has decided that they
/// are as they are now: the last version that added or removed the line took the
/// file back to an earlier content, or the file was made again without it later
/// (UNDO-9). The value is true for the former.
fn decided(
    file: &File,
    without: Who,
    there: &BTreeSet<usize>,
    stood: &BTreeSet<usize>,
) -> BTreeMap<usize, bool> {
    let lines = |at: usize| file.versions[at].lines.as_deref().unwrap_or_default();
    let exists = |at: usize| file.versions[at].lines.is_some();
    let decides = |at: usize| file.versions[at].by != Some(without);
    let is_back =
        |at: usize| (0..at).any(|old| file.versions[old].lines == file.versions[at].lines);
    // Another author went back to a content from before it.
    let is_cancelled = |made: usize| {
        let mut later = made + 1..file.versions.len();
        later.any(|at| {
            let is_same = |old: &usize| file.versions[*old].lines == file.versions[at].lines;
            let of = (0..at).rev().find(is_same);
            decides(at) && of.is_some_and(|of| of < made)
        })
    };
    let of = |line: &usize| {
        let holds = |at: usize| lines(at).contains(line);
        let mut all = (1..file.versions.len()).rev();
        let at = all.find(|at| holds(*at) != holds(at - 1))?;
        let is_made = |made: usize| exists(made) && !exists(made - 1);
        let is_new = |made: usize| {
            is_made(made) && (decides(made) || decides(made - 1)) && !is_cancelled(made)
        };
        let mut later = at + 1..file.versions.len();
        // The author made the file again with others' lines, and others have
        // changed it since.
        let is_there = (at..file.versions.len()).all(exists);
        let is_built_on = !decides(at) && is_made(at) && is_there && {
            let is_change = |at: usize| file.versions[at].lines != file.versions[at - 1].lines;
            let mut later = at + 1..file.versions.len();
            holds(at)
                && file.lines[*line].by != Some(without)
                && later.any(|at| decides(at) && is_change(at))
        };
        let is_put = is_back(at) && decides(at) || is_built_on;
        (is_put || later.any(is_new)).then_some((*line, is_put))
    };
    there.symmetric_difference(stood).filter_map(of).collect()
}

/// Returns the steps whose changes count. A step that restores an earlier
/// content cancels the steps after that content. If the undone author made the
/// restoring step, it does not count.
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

/// Returns the parts of a step. Where the numbers of removed and added lines
/// are equal, each pair is a part. Where lines were only added or only removed,
/// each line is a part. Elsewhere the whole place is one part.
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

/// Returns how a file's content differs from the expected one without an
/// author.
///
/// In plain style, lines with equal texts are not compared one by one, since it
/// cannot be determined which author wrote which. Nor are lines that differ in
/// white space alone: they may be one line (HIST-10).
pub fn judge(file: &File, without: Who, style: Style, holds: Option<&str>) -> Wrong {
    let truth = truth(file, without);
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for line in 0..file.lines.len() {
        let text = bare(&file.written(line, style));
        known.entry(text).or_default().push(line);
    }
    let mut wrong = Wrong::default();
    let mut found: Vec<usize> = Vec::new();
    for text in holds.unwrap_or_default().lines() {
        match known.get(&bare(text)).map(|lines| &lines[..]) {
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
            // The line must not be in the file, or it is in the file twice.
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
    // Lines must be in the order of every version that contains them.
    // A line that is in the file twice has no single place. It was counted
    // above.
    let mut times: BTreeMap<usize, usize> = BTreeMap::new();
    for line in &found {
        *times.entry(*line).or_default() += 1;
    }
    found.retain(|line| truth.there.contains(line) && times[line] == 1);
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
