//! All lines that a file has ever contained, in one order.
//!
//! A line keeps its place when it is removed, so that it can come back there.
//! Each version is stored as the lines that it turned on (added) and off
//! (removed). The file's content after a version consists of the lines that are
//! on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use touchmark_proto::{Hash, LineRange};

use super::indents::Recast;
use super::likeness::likest;
use super::makers::Makers;

/// A version's content, as [`Weave::new`] takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// There was no file.
    Absent,
    /// The file had these bytes.
    Held(Arc<[u8]>),
    /// The content is not stored. The next version with a stored content
    /// represents this one as well.
    NotKept,
}

/// The versions of a file that repeat or take back what others have changed:
/// undos, redos, and what git carried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undos {
    /// The indexes of undos, in ascending order.
    pub undos: Vec<usize>,
    /// The indexes of undos and of the redos that took them back, in ascending
    /// order of the redos.
    pub redos: Vec<(usize, usize)>,
    /// The indexes of versions by agents, in ascending order. Undone lines that
    /// an agent writes again count as that agent's. Undone lines that an editor
    /// saves again count as their first author's.
    pub by_agents: Vec<usize>,
    /// The indexes of carried versions, in ascending order: git brought their
    /// content, as a switch, a merge or a stash does (HIST-8). They change
    /// no author's lines and decide nothing.
    pub carried: Vec<usize>,
    /// The indexes of versions in which git destroyed a content that no commit
    /// has, as a stash does, and which count as changes of who ran it. A carried
    /// version that brings the lines back ends that, as the stash's return does.
    pub wiped: BTreeSet<usize>,
    /// Lines that differ in white space alone are different lines. Without it,
    /// they are the same line, which keeps its author (HIST-10).
    pub exact: bool,
}

/// A version's content; `None` for no file.
type Text<'a> = Option<&'a [u8]>;

/// A line, as an index into [`Weave::lines`].
pub(super) type Line = usize;

/// The history of one file.
#[derive(Debug)]
pub struct Weave {
    /// All lines, with their line ends, in the order in which they were added.
    pub(super) lines: Vec<Entry>,
    /// All lines in the order of their places in the file.
    pub(super) order: Vec<Line>,
    /// ChangeKind each version changed, the oldest first.
    pub(super) changes: Vec<Change>,
    /// Versions that may include changes of other authors.
    pub(super) mixed: BTreeSet<usize>,
    /// For each line that was put back or removed again when an undo was taken
    /// back, or by a carried version: the version that had made this change
    /// before. The key is the version that repeats the change, and the line.
    pub(super) redone: BTreeMap<(usize, Line), usize>,
    /// For each line whose author the user has named: the index of that claim,
    /// counted on from the versions.
    pub(super) claims: BTreeMap<Line, usize>,
    /// The carried versions ([`Undos::carried`]).
    pub(super) carried: BTreeSet<usize>,
    /// The versions that are undos ([`Undos::undos`]).
    pub(super) undos: BTreeSet<usize>,
    /// The lines that hunks replaced by others, each with the hunk's number, of
    /// all hunks.
    pub(super) replaced_by: BTreeSet<(Line, usize)>,
    /// The number of hunks.
    pub(super) hunks: usize,
}

/// Lines of one version whose author the user has named (ATTR-18).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The index of the version that first contained the lines.
    pub step: usize,
    /// The lines: the index of each among those that the version added, and its
    /// mark ([`Weave::mark`]).
    pub lines: Vec<(u32, u64)>,
}

/// A line of a weave.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The line's first text.
    pub(super) text: Arc<[u8]>,
    /// Its later texts, the oldest first.
    pub(super) later: Vec<Recast>,
    /// The version that first contained the line.
    pub(super) step: usize,
    /// The number of the hunk that added it, of all hunks.
    pub(super) made: usize,
}

/// ChangeKind a version changed.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) what: ChangeKind,
    /// Whether the file exists after the version.
    pub(super) exists: bool,
    /// Whether the content after the version is stored.
    pub(super) is_stored: bool,
    /// The lines that are on after the version and were off before it, in
    /// ascending order.
    pub(super) on: Vec<Line>,
    /// The lines that are off after the version and were on before it, in
    /// ascending order.
    pub(super) off: Vec<Line>,
    /// The first of the versions that this change represents. The contents of
    /// those before it are not stored.
    pub(super) since: usize,
}

impl Change {
    /// Applies the change to the lines that were on before it.
    pub(super) fn turn(&self, on: &mut [bool]) {
        self.set(on, true);
    }

    /// Takes the change back from the lines that were on after it.
    pub(super) fn turn_back(&self, on: &mut [bool]) {
        self.set(on, false);
    }

    fn set(&self, on: &mut [bool], to: bool) {
        for (lines, to) in [(&self.on, to), (&self.off, !to)] {
            lines.iter().for_each(|line| on[*line] = to);
        }
    }
}

/// The kind of change that a version made.
#[derive(Debug)]
pub(super) enum ChangeKind {
    /// Nothing changed, or the content is not stored.
    Nothing,
    /// Lines were replaced, added or removed.
    Hunks(Vec<Hunk>),
    /// The content is the same as after an earlier version, which has this
    /// index.
    Restored(usize),
}

/// The lines that a change removed in one place, and the lines that replaced
/// them.
#[derive(Clone, Debug, Default)]
pub(super) struct Hunk {
    pub(super) off: Vec<Line>,
    pub(super) on: Vec<Line>,
    /// The lines could not be compared: which of them replaced which is not
    /// known, and some may be the same line.
    pub(super) is_unclear: bool,
}

impl Weave {
    /// Creates the history from a file's versions, the oldest first. The newest
    /// should be the file's current content.
    pub fn new(steps: &[Step]) -> Self {
        Self::with_undos(steps, &Undos::default())
    }

    /// Creates the history from a file's versions, of which some are undos and
    /// redos. ChangeKind takes an undo back, a redo or a save of the content before
    /// it, puts lines back or removes them again. They count as changed by the
    /// version whose change was undone.
    pub fn with_undos(steps: &[Step], undos: &Undos) -> Self {
        let mut weave = Self {
            lines: Vec::new(),
            order: Vec::new(),
            changes: Vec::with_capacity(steps.len()),
            mixed: BTreeSet::new(),
            redone: BTreeMap::new(),
            claims: BTreeMap::new(),
            carried: undos.carried.iter().copied().collect(),
            undos: undos.undos.iter().copied().collect(),
            replaced_by: BTreeSet::new(),
            hunks: 0,
        };
        // The versions that turned each line on and off, for carried versions. A
        // carried version counts as the version that it repeats. ChangeKind an undo
        // has taken back is not repeated.
        let (mut last_on, mut last_off) = (Makers::default(), Makers::default());
        let mut now = ContentNow {
            on: Vec::new(),
            text: None,
        };
        // The versions that had each text. Few have the same length, so few are
        // compared.
        let sized = |text: Text<'_>| text.map(<[u8]>::len);
        let mut earlier: BTreeMap<(Option<usize>, Text<'_>), Vec<usize>> = BTreeMap::new();
        // The versions that an undo has taken back as a whole. A later version
        // with the same text as one of them and an older one repeats that one.
        let mut undone: BTreeSet<usize> = BTreeSet::new();
        // The undos that were taken back. Each can be once.
        let mut taken_back: BTreeSet<usize> = BTreeSet::new();
        let mut since = 0;
        for (at, step) in steps.iter().enumerate() {
            let text: Option<&[u8]> = match step {
                Step::Absent => None,
                Step::Held(bytes) => Some(bytes),
                Step::NotKept => {
                    let exists = weave.changes.last().is_some_and(|last| last.exists);
                    weave.changes.push(Change {
                        what: ChangeKind::Nothing,
                        exists,
                        is_stored: false,
                        on: Vec::new(),
                        off: Vec::new(),
                        since,
                    });
                    continue;
                }
            };
            let redone: Vec<usize> = undos
                .redos
                .iter()
                .filter(|(undo, redo)| *redo == at && *undo < at)
                .map(|(undo, _)| *undo)
                .collect();
            let before = now.on.clone();
            let is_carried = weave.carried.contains(&at);
            let puts_back = !redone.is_empty() || undos.undos.contains(&at);
            let what = if at > 0 && text == now.text {
                ChangeKind::Nothing
            } else if let Some(of) = earlier.get(&(sized(text), text)).and_then(|all| {
                let valid = all.iter().rfind(|of| !undone.contains(of));
                valid.filter(|_| redone.is_empty()).or(all.last()).copied()
            }) {
                now.on = weave.on_after(of);
                weave.recast_as(of, at, &now.on, puts_back || is_carried);
                if undos.undos.contains(&at) {
                    undone.extend(of + 1..at);
                }
                ChangeKind::Restored(of)
            } else {
                // An undo may bring back a file that another one had replaced.
                let brought = text.filter(|_| puts_back);
                let likest = brought.and_then(|text| likest(&steps[..at], text));
                if let Some((of, Step::Held(bytes))) = likest.map(|of| (of, &steps[of])) {
                    now.on = weave.on_after(of);
                    weave.recast_as(of, at, &now.on, true);
                    now.text = Some(bytes);
                }
                let how = How {
                    at,
                    puts_back,
                    repeats: puts_back || is_carried,
                    exact: undos.exact,
                };
                let hunks = weave.hunks(&mut now.on, [now.text, text], how);
                ChangeKind::Hunks(match likest {
                    Some(_) => since_before(hunks, &before, &now.on),
                    None => hunks,
                })
            };
            now.on.resize(weave.lines.len(), false);
            let changed = |to: bool| {
                let was = |line: &Line| before.get(*line).copied().unwrap_or(false);
                let lines = 0..weave.lines.len();
                lines
                    .filter(|line| now.on[*line] == to && was(line) != to)
                    .collect()
            };
            let change = Change {
                what,
                exists: text.is_some(),
                is_stored: true,
                on: changed(true),
                off: changed(false),
                since,
            };
            weave.changes.push(change);
            now.text = text;
            earlier.entry((sized(text), text)).or_default().push(at);
            if let Some(undo) = redone.first() {
                undone.retain(|of| of > undo);
            }
            since = at + 1;
            let mut takes_back = redone;
            let redone = !takes_back.is_empty();
            if !redone && !is_carried && undos.by_agents.binary_search(&at).is_err() {
                let mut undone = undos.undos.iter().copied().filter(|undo| *undo < at);
                takes_back.extend(
                    undone.rfind(|undo| !taken_back.contains(undo) && weave.takes_back(at, *undo)),
                );
            }
            for undo in takes_back {
                weave.redo(undo, at);
                taken_back.insert(undo);
            }
            let is_undo = undos.undos.contains(&at) && !redone;
            if is_carried {
                weave.repeat(at, &last_on, &last_off);
            } else if is_undo {
                // A line that an undo puts back belongs to its first author.
                weave.repeat(at, &last_on, &Makers::default());
            }
            let change = &weave.changes[at];
            for (lines, to) in [(&change.on, true), (&change.off, false)] {
                let is_wiped =
                    |made: Option<usize>| made.is_some_and(|at| undos.wiped.contains(&at));
                let (same, other) = match to {
                    true => (&mut last_on, &mut last_off),
                    false => (&mut last_off, &mut last_on),
                };
                for line in lines {
                    if is_undo || is_carried && is_wiped(other.newest(*line)) {
                        other.pop(*line);
                    }
                    let made = weave.made_by(at, *line);
                    // ChangeKind git only repeats is taken back by one undo.
                    if !is_carried || same.newest(*line) != Some(made) {
                        same.push(*line, made);
                    }
                }
            }
        }
        weave
    }

    /// Notes for the lines that a carried version changed which version made
    /// the same change of them before. Lines that git brought for the first
    /// time have none.
    fn repeat(&mut self, carried: usize, last_on: &Makers, last_off: &Makers) {
        let change = &self.changes[carried];
        for (lines, last) in [(&change.on, last_on), (&change.off, last_off)] {
            for line in lines {
                if let Some(made) = last.newest(*line) {
                    self.redone.insert((carried, *line), made);
                }
            }
        }
    }

    /// Returns whether a version takes back all that an undo did: as the save of
    /// an editor that had read the file before the undo.
    fn takes_back(&self, version: usize, undo: usize) -> bool {
        let (change, undone) = (&self.changes[version], &self.changes[undo]);
        let has = |all: &[Line], some: &[Line]| {
            let mut some = some.iter();
            some.all(|line| all.binary_search(line).is_ok())
        };
        let is_nothing = undone.on.is_empty() && undone.off.is_empty();
        !is_nothing && has(&change.on, &undone.off) && has(&change.off, &undone.on)
    }

    /// Notes for the lines that a redo changed which version changed them before
    /// the undo.
    fn redo(&mut self, undo: usize, redo: usize) {
        let is_alone = |step: usize| self.changes[step].since == step;
        if !is_alone(undo) || !is_alone(redo) {
            return;
        }
        let lines = |step: usize| {
            let change = &self.changes[step];
            change.on.iter().chain(&change.off).copied()
        };
        let undone: BTreeSet<Line> = lines(undo).collect();
        let mut left: BTreeSet<Line> = lines(redo).filter(|line| undone.contains(line)).collect();
        let mut found = Vec::new();
        for step in (0..undo).rev() {
            found.extend(
                lines(step)
                    .filter(|line| left.remove(line))
                    .map(|line| (line, self.made_by(step, line))),
            );
        }
        for (line, step) in found {
            self.redone.insert((redo, line), step);
        }
    }

    /// Sets the versions before which the content is not known. They may
    /// include changes of other authors, so they cannot be undone.
    #[must_use]
    pub fn mixed(mut self, versions: impl IntoIterator<Item = usize>) -> Self {
        self.mixed.extend(versions);
        self
    }

    /// Sets the lines whose author the user has named. To the methods of the
    /// weave, each claim is a further version: the first has the index after
    /// the last version's. Of several claims of one line, the last counts.
    #[must_use]
    pub fn claimed(mut self, claims: &[Claim]) -> Self {
        let places = self.line_places();
        for (at, claim) in claims.iter().enumerate() {
            let marks: BTreeMap<u32, u64> = claim.lines.iter().copied().collect();
            for (line, (step, place)) in places.iter().enumerate() {
                let mark = marks.get(&number(*place)).filter(|_| *step == claim.step);
                if mark.is_some_and(|mark| *mark == Self::mark(&self.lines[line].text)) {
                    self.claims.insert(line, self.changes.len() + at);
                }
            }
        }
        self
    }

    /// Returns the mark by which a claim recognises a line: the first eight
    /// bytes of the hash of its text.
    pub fn mark(text: &[u8]) -> u64 {
        let hash = Hash::of(text);
        let bytes = hash.0.iter().take(8);
        bytes.fold(0, |mark, byte| mark << 8 | u64::from(*byte))
    }

    /// Returns the names of lines of a version, given by their numbers, for a
    /// claim: for each, the version that first contained it, its index among
    /// the lines that this version added, and its mark.
    pub fn name_lines(&self, step: usize, numbers: LineRange) -> Vec<(usize, u32, u64)> {
        let on = self.on_after(step);
        let places = self.line_places();
        let lines = self.order.iter().filter(|line| on[**line]);
        let meant = lines
            .zip(1_u32..)
            .filter(|(_, at)| (numbers.start..=numbers.end).contains(at));
        meant
            .map(|(line, _)| {
                let (of, place) = places[*line];
                (of, number(place), Self::mark(&self.lines[*line].text))
            })
            .collect()
    }

    /// Returns for each line the version that first contained it, and its index
    /// among the lines that this version added.
    pub(super) fn line_places(&self) -> Vec<(usize, usize)> {
        let mut next = vec![0; self.changes.len()];
        let place = |entry: &Entry| {
            let place = next[entry.step];
            next[entry.step] += 1;
            (entry.step, place)
        };
        self.lines.iter().map(place).collect()
    }

    /// Returns the version that made a change of a line, if this version only
    /// repeats it, as a redo or by carrying; else this version.
    pub(super) fn made_by(&self, step: usize, line: Line) -> usize {
        self.redone.get(&(step, line)).copied().unwrap_or(step)
    }

    /// Returns the version or claim that names the author of a line which the
    /// version `step` added.
    pub(super) fn author_of(&self, step: usize, line: Line) -> usize {
        let claim = self.claims.get(&line);
        let claim = claim.filter(|_| step == self.lines[line].step);
        claim.copied().unwrap_or(step)
    }

    /// Returns which lines are on after a version.
    pub(super) fn on_after(&self, step: usize) -> Vec<bool> {
        let mut on = vec![false; self.lines.len()];
        for change in self.changes.iter().take(step + 1) {
            change.turn(&mut on);
        }
        on
    }
}

/// How a version is compared with the one before it.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// The version.
    pub(super) at: usize,
    /// It is an undo or a redo.
    pub(super) puts_back: bool,
    /// It is an undo, a redo, or carried: its changes may be earlier ones.
    pub(super) repeats: bool,
    /// [`Undos::exact`].
    pub(super) exact: bool,
}

/// The file's content while its versions are processed.
struct ContentNow<'a> {
    on: Vec<bool>,
    text: Option<&'a [u8]>,
}

/// Returns what changed between the lines that were on before a version and those
/// that are on after it, given the hunks between another version and it.
fn since_before(mut hunks: Vec<Hunk>, before: &[bool], after: &[bool]) -> Vec<Hunk> {
    let was = |line: &Line| before.get(*line) == Some(&true);
    let mut known = BTreeSet::new();
    for hunk in &mut hunks {
        hunk.off.retain(was);
        hunk.on.retain(|line| !was(line));
        known.extend(hunk.off.iter().chain(&hunk.on).copied());
    }
    hunks.retain(|hunk| !hunk.off.is_empty() || !hunk.on.is_empty());
    for (line, is) in after.iter().enumerate() {
        let hunk = match (was(&line), *is) {
            _ if known.contains(&line) => continue,
            (true, false) => (vec![line], Vec::new()),
            (false, true) => (Vec::new(), vec![line]),
            _ => continue,
        };
        let (off, on) = hunk;
        hunks.push(Hunk {
            off,
            on,
            is_unclear: false,
        });
    }
    hunks
}

/// Converts a line number or a number of lines. Texts have less than 2^32 lines.
pub(super) fn number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}
