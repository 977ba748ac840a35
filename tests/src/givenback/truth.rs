//! Who typed which line, and what was done with it since. Every line's text
//! occurs once, so the files on disk are enough to follow a line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::step::Who;

/// The text files of the workspace, without `.git`: each path's lines, without
/// white space at their ends.
pub type Tree = BTreeMap<String, Vec<String>>;

/// The same files, with their bytes.
pub type Bytes = BTreeMap<String, Vec<u8>>;

/// In which way a line appeared or disappeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It was typed or removed, by a tool, a command or an editor.
    Hand,
    /// Git, or an editor's undo, took a path or a commit back.
    Decided,
    /// Git went from one whole state to another.
    Carried,
    /// The same, and the line was not committed.
    Wiped,
    /// An undo of touchmark, with its number.
    Undone(u32),
}

/// An event of a line.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The step.
    pub step: usize,
    /// The author.
    pub who: Who,
    /// Whether the line appeared.
    pub on: bool,
    /// The way.
    pub way: Way,
    /// The lines of the file before the event.
    pub around: Vec<String>,
    /// Whether the user had accepted the event before this one.
    pub kept_before: Kept,
}

/// Whether the user has accepted a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Not.
    No,
    /// It cannot be determined (REV-2: the second of a commit is that of a
    /// command).
    Maybe,
    /// By a commit of the user's, made between these seconds: if a command ran
    /// in one of them, it cannot be determined.
    Commit(u64, u64),
    /// Yes.
    Yes,
}

/// What is known of a line.
#[derive(Clone, Debug)]
pub struct Known {
    /// The author who typed it.
    pub by: Who,
    /// Typed while a command's window was open: the window's agent.
    pub window: Option<Who>,
    /// Typed or removed while the program may have looked away: no daemon ran,
    /// the file was not tracked, contents were lost.
    pub dim: bool,
    /// All events, in order.
    pub marks: Vec<Mark>,
    /// Whether the user has accepted the last of them.
    pub kept: Kept,
    /// The file, by a number that it keeps under each of its names.
    pub file: u32,
    /// Whether it was removed together with lines that an author has claimed
    /// since.
    pub is_beside_claimed: bool,
}

impl Known {
    /// Returns the last event that says who wants the line to be there or not:
    /// carrying does not, except the destruction of uncommitted work.
    pub fn last(&self) -> Option<&Mark> {
        match self.marks.last() {
            Some(mark) if mark.way == Way::Wiped => Some(mark),
            _ => self.at_last().map(|at| &self.marks[at]),
        }
    }

    /// Returns the events that count for a line that is away: without what git
    /// brought back against a removal, and without what an undo has taken back.
    pub fn settled(&self) -> Vec<&Mark> {
        let mut settled: Vec<&Mark> = Vec::new();
        // The removal against which git brought the line. Going back, git takes
        // the line away again by that removal.
        let mut passed = None;
        for mark in &self.marks {
            let removal = passed.take().filter(|_| mark.way == Way::Carried);
            if let Some(removal) = removal {
                settled.push(removal);
                continue;
            }
            let is_back = match mark.way {
                Way::Carried => mark.on && !settled.is_empty(),
                Way::Undone(_) => settled.len() > 1,
                Way::Hand | Way::Decided | Way::Wiped => false,
            };
            match is_back {
                true if mark.way == Way::Carried => passed = settled.pop(),
                true => drop(settled.pop()),
                false => settled.push(mark),
            }
        }
        settled
    }

    /// Returns the event that removed a line: carrying does not, except the
    /// destruction of uncommitted work.
    pub fn removal(&self) -> Option<&Mark> {
        let settled = self.settled();
        let counts = |mark: &&&Mark| mark.way != Way::Carried;
        let is_wiped = settled.last().is_some_and(|last| last.way == Way::Wiped);
        let mut counted = settled.iter().rev().filter(counts);
        let last = counted.find(|mark| is_wiped || mark.way != Way::Wiped);
        last.copied()
    }

    fn at_last(&self) -> Option<usize> {
        let counts = |mark: &Mark| !matches!(mark.way, Way::Carried | Way::Wiped);
        self.marks.iter().rposition(counts)
    }

    /// Returns whether an undo of touchmark removed the line, and an author
    /// then put it back.
    pub fn is_back_after_an_undo(&self) -> bool {
        let Some(at) = self.at_last() else {
            return false;
        };
        let before = self.marks[..at].iter();
        let undone = |mark: &Mark| !mark.on && matches!(mark.way, Way::Undone(_));
        self.marks[at].on
            && before
                .rev()
                .find(|m| m.way != Way::Carried)
                .is_some_and(undone)
    }
}

/// A file that exists or existed.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// All its names.
    pub names: BTreeSet<String>,
    /// Who removed it; `None` while it exists.
    pub removed: Option<(Who, Way)>,
    /// The steps at which it was removed, each with who did it.
    pub removals: Vec<(usize, Who)>,
    /// Its contents, the newest last.
    pub past: Vec<Vec<String>>,
    /// Whether no session knew its name when the user created it, git brought
    /// it, or it was moved.
    pub untracked: bool,
    /// Whether its contents were forgotten, and it has not changed since.
    pub is_forgotten: bool,
    /// The last move: who, the name before, whether others moved it before.
    pub moved: Option<(Who, String)>,
}

/// What is known of all lines and files.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// Each line's text.
    pub lines: BTreeMap<String, Known>,
    /// The files on disk after the last step.
    pub tree: Tree,
    /// Which file has which name.
    pub names: BTreeMap<String, u32>,
    /// All files.
    pub files: BTreeMap<u32, Life>,
    /// The undos that were not taken back: the step, the author, and the number.
    pub undone: Vec<(usize, Who, u32)>,
    /// The number of the present step.
    pub step: usize,
}

/// How a step's differences are recorded.
#[derive(Clone, Copy, Debug)]
pub struct Act {
    /// Who did it.
    pub who: Who,
    /// In which way.
    pub way: Way,
    /// The command's agent, if a window was open.
    pub window: Option<Who>,
    /// Whether no daemon ran.
    pub dim: bool,
}

impl Act {
    /// Returns an act without a window.
    pub fn of(who: Who, way: Way) -> Self {
        Self {
            who,
            way,
            window: None,
            dim: false,
        }
    }
}

/// Returns a line's identity: its text without white space at its ends.
pub fn identity(line: &str) -> &str {
    line.trim()
}

/// Returns whether a line belongs to git's conflict markers.
pub fn is_marker(line: &str) -> bool {
    ["<<<<<<<", "=======", ">>>>>>>", "|||||||"]
        .iter()
        .any(|marker| line.starts_with(marker))
}

/// Returns the files of a directory with their bytes.
pub fn bytes(root: &Path) -> Bytes {
    let mut found = Bytes::new();
    let mut below = vec![root.to_owned()];
    while let Some(directory) = below.pop() {
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            let path = entry.path();
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() && entry.file_name() != ".git" {
                below.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(root).expect("a path inside");
                let name = name.to_str().expect("UTF-8").to_owned();
                found.insert(name, fs::read(path).expect("a file"));
            }
        }
    }
    found
}

/// Returns the lines of files.
pub fn tree(bytes: &Bytes) -> Tree {
    let lines = |bytes: &Vec<u8>| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().filter(|line| !is_marker(line));
        lines.map(|line| identity(line).to_owned()).collect()
    };
    bytes
        .iter()
        .map(|(path, b)| (path.clone(), lines(b)))
        .collect()
}

/// Returns where each line is.
pub fn places(tree: &Tree) -> BTreeMap<&str, (&str, usize)> {
    let mut places = BTreeMap::new();
    for (path, lines) in tree {
        for (at, line) in lines.iter().enumerate() {
            places.insert(line.as_str(), (path.as_str(), at));
        }
    }
    places
}

impl Truth {
    /// Returns what is known before the first step: all of it was there.
    pub fn new(tree: Tree) -> Self {
        let mut truth = Self::default();
        truth.observe(tree, Act::of(Who::Base, Way::Hand), &BTreeSet::new());
        truth
    }

    /// Announces lines that git may bring.
    pub fn is_known_to_git(&mut self, lines: &[String]) {
        for line in lines {
            let by = self.who_typed(line).unwrap_or(Who::Base);
            self.lines.entry(line.clone()).or_insert_with(|| Known {
                by,
                window: None,
                dim: false,
                marks: Vec::new(),
                kept: Kept::No,
                file: 0,
                is_beside_claimed: false,
            });
        }
    }

    fn who_typed(&self, line: &str) -> Option<Who> {
        let all = [Who::Base, Who::User, Who::A, Who::B, Who::Sub];
        all.into_iter().find(|who| line.starts_with(who.word()))
    }

    /// Records a move, before the differences are recorded.
    pub fn moves(&mut self, who: Who, from: &str, to: &str) {
        if let Some(file) = self.names.remove(from) {
            self.names.insert(to.to_owned(), file);
            let life = self.files.entry(file).or_default();
            life.names.insert(to.to_owned());
            // SCOPE-2: until a session uses the new name, or a command's window
            // is open, the daemon does not look there.
            life.untracked = true;
            life.moved = Some((who, from.to_owned()));
        }
        if let Some(lines) = self.tree.remove(from) {
            self.tree.insert(to.to_owned(), lines);
        }
    }

    /// Records what a step has changed. `committed`: the lines that the last
    /// commit had before it.
    pub fn observe(&mut self, now: Tree, act: Act, committed: &BTreeSet<String>) {
        let step = self.step;
        let before = std::mem::replace(&mut self.tree, now);
        let (was, is) = (places(&before), places(&self.tree));
        let gone = before.keys().filter(|path| !self.tree.contains_key(*path));
        for path in gone {
            if let Some(file) = self.names.remove(path) {
                let life = self.files.entry(file).or_default();
                life.removed = Some((act.who, act.way));
                life.removals.push((step, act.who));
            }
        }
        for path in self.tree.keys().filter(|path| !before.contains_key(*path)) {
            // Git, touchmark's undo and an editor's bring the same file back.
            let same = |(_, life): &(&u32, &Life)| {
                life.removed.is_some() && life.names.contains(path) && act.way != Way::Hand
            };
            let file = match self.files.iter().rfind(same) {
                Some((file, _)) => *file,
                None => u32::try_from(self.files.len()).expect("few files") + 1,
            };
            let life = self.files.entry(file).or_default();
            let is_unseen = act.who == Who::User || act.way == Way::Carried;
            life.untracked |= life.names.is_empty() && is_unseen;
            life.names.insert(path.clone());
            life.removed = None;
            if matches!(act.way, Way::Undone(_)) {
                life.moved = None;
            }
            self.names.insert(path.clone(), file);
        }
        for (path, file) in &self.names {
            let past = &mut self.files.entry(*file).or_default().past;
            if let Some(lines) = self.tree.get(path)
                && past.last() != Some(lines)
            {
                past.push(lines.clone());
            }
        }
        let nothing = Vec::new();
        let changed = self
            .names
            .iter()
            .filter(|(path, _)| before.get(*path) != self.tree.get(*path));
        let changed: Vec<u32> = changed.map(|(_, file)| *file).collect();
        let mark = |on, way, around, kept_before| Mark {
            step,
            who: act.who,
            on,
            way,
            around,
            kept_before,
        };
        for (line, (path, _)) in &was {
            if !is.contains_key(line) {
                let around = before.get(*path).unwrap_or(&nothing).clone();
                let wiped = act.who.session().is_some() && !committed.contains(*line);
                let way = match act.way {
                    Way::Carried if wiped => Way::Wiped,
                    way => way,
                };
                let known = self.lines.get_mut(*line).expect("a known line");
                known.dim |= act.dim;
                known.marks.push(mark(false, way, around, known.kept));
                known.kept = Kept::No;
            }
        }
        for (line, (path, _)) in &is {
            let file = self.names.get(*path).copied().unwrap_or_default();
            if was.contains_key(line) {
                self.lines.get_mut(*line).expect("a known line").file = file;
                continue;
            }
            let life = self.files.get(&file);
            let untracked = life.is_some_and(|life| life.untracked);
            let is_forgotten = life.is_some_and(|life| life.is_forgotten);
            let typed = self.who_typed(line);
            let new = Known {
                by: typed.unwrap_or(act.who),
                window: act.window,
                dim: act.dim || is_forgotten || (untracked && act.who == Who::User),
                marks: Vec::new(),
                kept: Kept::No,
                file,
                is_beside_claimed: false,
            };
            let known = self.lines.entry((*line).to_owned()).or_insert(new);
            known.file = file;
            let around = before.get(*path).unwrap_or(&nothing).clone();
            let kept_before = known.kept;
            // An undo of a removal brings back what the user had accepted.
            let removal = known.marks.last();
            let accepted = match act.way {
                Way::Carried => kept_before,
                // A later commit of the user's may not have it any more.
                Way::Undone(_) if kept_before != Kept::No => Kept::Maybe,
                Way::Undone(_) => removal.map_or(Kept::No, |removal| removal.kept_before),
                Way::Hand | Way::Decided | Way::Wiped => Kept::No,
            };
            known.marks.push(mark(true, act.way, around, kept_before));
            known.kept = accepted;
        }
        for file in changed {
            self.files.entry(file).or_default().is_forgotten = false;
        }
    }

    /// Notes that all stored contents are forgotten.
    pub fn contents_are_forgotten(&mut self) {
        self.contents_may_be_lost(0);
        self.files
            .values_mut()
            .for_each(|life| life.is_forgotten = true);
    }

    /// Takes the events of an undo and of its redo back, of the lines that are
    /// again as they were before the undo. What the user had accepted stays
    /// accepted.
    pub fn redone(&mut self, undo: u32, redo: u32) {
        self.undone.retain(|(.., number)| *number != undo);
        for known in self.lines.values_mut() {
            let ways: Vec<Way> = known.marks.iter().map(|mark| mark.way).collect();
            if ways.ends_with(&[Way::Undone(undo), Way::Undone(redo)]) {
                let mut taken_back = known.marks.drain(ways.len() - 2..);
                if let Some(undo) = taken_back.next() {
                    known.kept = undo.kept_before;
                }
            }
        }
    }

    /// Notes that stored contents may be lost.
    pub fn contents_may_be_lost(&mut self, since: usize) {
        for known in self.lines.values_mut() {
            known.dim |= known.marks.iter().any(|mark| mark.step >= since);
        }
    }

    /// Returns the files in which an author has changed a line by hand, or
    /// decided about one, after a step.
    pub fn touched_since(&self, step: usize, is_it: impl Fn(Who) -> bool) -> BTreeSet<u32> {
        let touched = |known: &&Known| {
            let counts = |mark: &Mark| mark.step > step && is_it(mark.who);
            known.marks.iter().any(counts)
        };
        self.lines
            .values()
            .filter(touched)
            .map(|known| known.file)
            .collect()
    }
}
