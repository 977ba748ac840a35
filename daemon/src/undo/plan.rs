//! Computes a file's content without some of its versions.

use std::collections::BTreeSet;
use std::sync::Arc;

use touchmark_engine::history::{Conflict, Step, Weave, Without};
use touchmark_proto::undo::{Conflicts, UndoConflict, UndoOutcome, UndoneFile};
use touchmark_proto::{
    Author, Clock, Error, FileMode, Hash, LineRange, RelPath, SessionId, Version, native,
};

use super::Undoer;
use super::journal::{Bytes, FileEntry};
use super::whose::Chosen;
use crate::history::Chain;
use crate::system::stat as tell;

/// The maximum number of bytes of older lines that a reported conflict
/// contains.
const BEFORE: usize = 4 << 10;

/// The change that an undo makes to one file.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) path: RelPath,
    /// The hash of the content that the plan was computed from; `None` for no
    /// file.
    pub(super) base: Option<Hash>,
    /// The bytes of the content that the plan was computed from; `None` for no
    /// file, or if that content is not stored.
    pub(super) before: Option<Arc<[u8]>>,
    /// The content that the file is to have; `None` for no file.
    pub(super) after: Option<Arc<[u8]>>,
    /// The file's current mode; `None` if it is not known.
    pub(super) was: Option<FileMode>,
    /// The mode that the file is to have. `None`: an existing file keeps its
    /// mode, and a new file gets the default mode.
    pub(super) mode: Option<FileMode>,
    pub(super) outcome: UndoOutcome,
    pub(super) cause: Option<String>,
    pub(super) hunks: u32,
    pub(super) conflicts: Vec<UndoConflict>,
    /// The sessions whose changes the plan concerns; `None` in it stands for
    /// changes of no session.
    pub(super) by: BTreeSet<Option<SessionId>>,
    /// The name that the file had before the selected versions moved it; `None`
    /// if they did not, or if another author has moved it since.
    pub(super) from: Option<RelPath>,
    /// The other name that the file gets: of an undo, the old one. `None` if it
    /// is not renamed.
    pub(super) to: Option<RelPath>,
    /// The numbers of the facts of the file's versions.
    pub(super) versions: BTreeSet<u64>,
}

impl Plan {
    /// Computes a file's content without the selected versions. Returns `None`
    /// if none of them is in the file's history any more.
    pub(super) async fn new(
        undoer: &Undoer,
        path: &RelPath,
        chosen: &Chosen,
        style: Conflicts,
    ) -> Result<Option<Self>, Error> {
        // A file that the selected versions put in the place of another one is
        // undone together with it.
        let joins = |before: &Version, first: u64| {
            let removed = before.hash.is_some() || chosen.has(before.clock);
            removed
                && chosen.has(Clock {
                    n: first,
                    ..before.clock
                })
        };
        let chain = undoer.joined(path, &joins).await?;
        let meant = |at: usize| chosen.has(chain.versions[at].clock);
        let (Some(newest), true) = (chain.versions.last(), (0..chain.versions.len()).any(meant))
        else {
            return Ok(None);
        };
        let undos = undoer.journal.recorded().among(&chain.versions);
        let without = chain.weave(&undos).without(meant);
        let before = match chain.steps.last() {
            Some(Step::Held(bytes)) => Some(Arc::clone(bytes)),
            _ => None,
        };
        let versions: BTreeSet<u64> = chain
            .versions
            .iter()
            // A version that is not recorded yet has the number 0.
            .filter_map(|version| Some(version.clock.n).filter(|n| *n > 0))
            .collect();
        let author = |at: usize| {
            let version = chain.versions.get(at);
            version.map_or(Author::UNKNOWN, |version| version.author.clone())
        };
        let mut plan = Self {
            path: path.clone(),
            base: newest.hash,
            before,
            after: without.bytes.as_deref().map(Arc::from),
            was: chain.mode,
            mode: chain.mode_without(&undos, meant),
            outcome: UndoOutcome::Unchanged,
            cause: None,
            hunks: without.hunks,
            conflicts: without
                .conflicts
                .iter()
                .map(|conflict| told(conflict, author(conflict.by)))
                .collect(),
            by: chosen.sessions_of(versions.iter().copied()),
            from: None,
            to: None,
            versions,
        };
        plan.from = chain.moved_by(&undos, meant).map(|(_, from)| from.clone());
        let is_lost = newest.hash.is_some() && plan.before.is_none();
        plan.judge(&without, is_lost);
        plan.check_kind(&chain, meant, undoer);
        if style == Conflicts::Markers && plan.outcome != UndoOutcome::NotKept {
            plan.mark(&without.conflicts);
        }
        Ok(Some(plan))
    }

    /// Computes a file's content without the change from `before` to `after`,
    /// which an undo has made.
    pub(super) async fn back(
        undoer: &Undoer,
        path: &RelPath,
        before: Option<Arc<[u8]>>,
        after: Option<Arc<[u8]>>,
        [was, mode]: [Option<FileMode>; 2],
    ) -> Result<Self, Error> {
        let chain = undoer.chain(path).await?;
        let now = chain.steps.last().cloned().unwrap_or(Step::Absent);
        let base = chain.versions.last().and_then(|version| version.hash);
        let step = |bytes: &Option<Arc<[u8]>>| match bytes {
            Some(bytes) => Step::Held(Arc::clone(bytes)),
            None => Step::Absent,
        };
        let weave = Weave::new(&[step(&before), step(&after), now.clone()]);
        let without = weave.without(|at| at == 1);
        let newest = chain.versions.last();
        let author = newest.map_or(Author::UNKNOWN, |version| version.author.clone());
        let mut plan = Self {
            path: path.clone(),
            base,
            before: match &now {
                Step::Held(bytes) => Some(Arc::clone(bytes)),
                _ => None,
            },
            after: without.bytes.as_deref().map(Arc::from),
            was: chain.mode,
            // A mode that the undo set is reverted. A mode that was set later
            // stays.
            mode: match chain.mode {
                Some(now) if mode.is_some() && Some(now) != mode => Some(now),
                _ => was.or(mode),
            },
            outcome: UndoOutcome::Unchanged,
            cause: None,
            hunks: without.hunks,
            conflicts: without
                .conflicts
                .iter()
                .map(|conflict| told(conflict, author.clone()))
                .collect(),
            by: BTreeSet::new(),
            from: None,
            to: None,
            versions: BTreeSet::new(),
        };
        plan.judge(&without, now == Step::NotKept);
        plan.check_pair(&[(&before, was), (&after, mode)]);
        Ok(plan)
    }

    /// Returns the plan for a file of a `review/undo`, whose content is to
    /// become `after`. If another process saves the file in the meantime, the
    /// file stays as it was saved.
    pub(crate) fn of_review(
        path: &RelPath,
        chain: &Chain,
        after: Option<Vec<u8>>,
        hunks: u32,
        by: BTreeSet<Option<SessionId>>,
    ) -> Self {
        let before = match chain.steps.last() {
            Some(Step::Held(bytes)) => Some(Arc::clone(bytes)),
            _ => None,
        };
        let mut plan = Self {
            path: path.clone(),
            base: chain.versions.last().and_then(|version| version.hash),
            before,
            after: after.map(Arc::from),
            was: None,
            mode: None,
            outcome: UndoOutcome::Unchanged,
            cause: None,
            hunks,
            conflicts: Vec::new(),
            by,
            from: None,
            to: None,
            versions: BTreeSet::new(),
        };
        let nothing_else = Without {
            bytes: None,
            hunks,
            conflicts: Vec::new(),
            not_kept: Vec::new(),
        };
        plan.judge(&nothing_else, false);
        plan
    }

    /// Plans also the move back to an earlier name ([`join`](super::moves::join)).
    pub(crate) fn set_from(&mut self, from: RelPath) {
        self.from = Some(from);
    }

    /// Plans also the undo of a change of the whole file: of its mode, given as
    /// the current one and the one to set, and of a symbolic link, which is to
    /// become `bytes`.
    pub(crate) fn set_whole(
        &mut self,
        chain: &Chain,
        bytes: Option<Arc<[u8]>>,
        [was, mode]: [Option<FileMode>; 2],
    ) {
        let hunks = self.hunks;
        (self.was, self.mode) = (was, mode);
        if chain.has_links() {
            self.after = bytes;
            self.hunks += 1;
        }
        let nothing_else = Without {
            bytes: None,
            hunks,
            conflicts: Vec::new(),
            not_kept: Vec::new(),
        };
        self.judge(&nothing_else, false);
        self.check_links(chain);
    }

    /// Returns the plan for a file that could not be read: nothing is written.
    pub(super) fn failed(path: &RelPath, error: Error) -> Self {
        Self::nothing(path, UndoOutcome::Failed, Some(error.message))
    }

    /// Returns a plan for a name without a file that writes nothing.
    pub(super) fn nothing(path: &RelPath, outcome: UndoOutcome, cause: Option<String>) -> Self {
        Self {
            path: path.clone(),
            base: None,
            before: None,
            after: None,
            was: None,
            mode: None,
            outcome,
            cause,
            hunks: 0,
            conflicts: Vec::new(),
            by: BTreeSet::new(),
            from: None,
            to: None,
            versions: BTreeSet::new(),
        }
    }

    /// Sets the outcome. If the contents that the undo needs are not stored,
    /// the file keeps its content.
    fn judge(&mut self, without: &Without, is_lost: bool) {
        // None of the requested changes could be undone.
        let is_stuck = self.before == self.after && self.conflicts.is_empty();
        if is_lost || is_stuck && !without.not_kept.is_empty() {
            self.outcome = UndoOutcome::NotKept;
            self.cause = Some("the file's previous content is not stored".into());
            self.after = self.before.clone();
            return;
        }
        self.outcome = match (&self.before, &self.after) {
            (before, after) if before == after && self.permits() => {
                self.hunks += 1;
                UndoOutcome::Undone
            }
            (before, after) if before == after && self.conflicts.is_empty() => {
                UndoOutcome::Unchanged
            }
            (before, after) if before == after => UndoOutcome::Conflict,
            (_, None) => UndoOutcome::Deleted,
            (None, _) => UndoOutcome::Restored,
            _ => UndoOutcome::Undone,
        };
    }

    /// Returns whether both plans are for the same file, under any name.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        !self.versions.is_disjoint(&other.versions)
    }

    /// Returns whether at least one change conflicts and stays.
    pub(super) fn has_conflicts(&self) -> bool {
        !self.conflicts.is_empty()
    }

    /// Returns whether the file's content or mode is to change.
    pub(super) fn writes(&self) -> bool {
        self.before != self.after || self.permits()
    }

    /// Returns whether a file that stays is to get another mode.
    fn permits(&self) -> bool {
        self.after.is_some() && self.was.is_some() && self.mode.is_some() && self.mode != self.was
    }

    /// Leaves the file as it is, as a conflict with this cause.
    fn keep(&mut self, cause: &str) {
        self.after.clone_from(&self.before);
        self.mode = self.was;
        self.outcome = UndoOutcome::Conflict;
        self.cause = Some(cause.into());
        self.hunks = 0;
    }

    /// Makes the plan a conflict where it cannot restore a symbolic link as it
    /// was. A link's content is one value, which is restored as a whole or not
    /// at all (SCOPE-7).
    fn check_kind(&mut self, chain: &Chain, meant: impl Fn(usize) -> bool, undoer: &Undoer) {
        if chain.has_links() {
            return self.check_links(chain);
        }
        // If a symbolic link has replaced the file, the undo does not write
        // through it.
        let place = undoer.root.join(native::name(self.path.as_bytes()));
        let link = place.symlink_metadata().ok();
        let made = link
            .filter(std::fs::Metadata::is_symlink)
            .map(|link| tell::modified_ms(&link));
        let first = (0..chain.versions.len()).find(|at| meant(*at));
        let before = first.and_then(|first| chain.versions.get(first.checked_sub(1)?));
        if let (Some(made), Some(before)) = (made, before)
            && made > before.time
            && self.writes()
        {
            self.keep("a symbolic link stands in its place");
        }
    }

    /// The check of [`check_kind`](Self::check_kind) for a file that was a
    /// symbolic link at any time. Does nothing for any other file.
    fn check_links(&mut self, chain: &Chain) {
        let steps = chain.versions.iter().zip(&chain.steps);
        let held: Vec<(Bytes, Option<FileMode>)> = steps
            .filter_map(|(version, step)| match step {
                Step::Held(bytes) => Some((Some(Arc::clone(bytes)), version.mode)),
                _ => None,
            })
            .collect();
        let held: Vec<_> = held.iter().map(|(bytes, mode)| (bytes, *mode)).collect();
        self.check_pair(&held);
    }

    fn check_pair(&mut self, held: &[(&Bytes, Option<FileMode>)]) {
        let link = |mode: Option<FileMode>| mode.is_some_and(FileMode::is_link);
        let has = |mode| held.iter().any(|(_, own)| link(*own) == mode);
        if !has(true) || self.after.is_none() {
            return;
        }
        let known = held
            .iter()
            .any(|(bytes, mode)| **bytes == self.after && link(*mode) == link(self.mode));
        if !known {
            self.keep("the file was a symbolic link, and was changed since");
        }
    }

    /// Sets the outcome and cause of a file that could not be written.
    pub(super) fn fail(&mut self, outcome: UndoOutcome, cause: String) {
        self.outcome = outcome;
        self.cause = Some(cause);
        self.hunks = 0;
    }

    /// Returns the lines of the previous content that are replaced, as ranges.
    /// Empty if the file did not exist before or does not exist afterwards.
    pub(super) fn lines(&self) -> Vec<LineRange> {
        let (Some(before), Some(after)) = (&self.before, &self.after) else {
            return Vec::new();
        };
        let places = touchmark_engine::text::lines::places(before, after);
        let ranges = places.unwrap_or_default().into_iter().map(|hunk| {
            let start = hunk.old_start.max(1);
            LineRange {
                start,
                end: start + hunk.old_lines.saturating_sub(1),
            }
        });
        ranges.collect()
    }

    /// Puts conflict markers around each change that stays, with the older
    /// lines next to it. Does nothing if the content is not UTF-8.
    fn mark(&mut self, conflicts: &[Conflict]) {
        let (Some(after), Some(before)) = (&self.after, &self.before) else {
            return;
        };
        if conflicts.is_empty() || std::str::from_utf8(after).is_err() {
            return;
        }
        if let Some(marked) = markers::put(before, after, conflicts) {
            self.after = Some(marked.into());
            self.outcome = UndoOutcome::Undone;
        }
    }

    /// Returns the file's row in the answer.
    pub(crate) fn file(self) -> UndoneFile {
        UndoneFile {
            path: self.path,
            outcome: self.outcome,
            hunks: self.hunks,
            conflicts: (!self.conflicts.is_empty()).then_some(self.conflicts),
            to: self.to,
            cause: self.cause,
        }
    }
}

fn told(conflict: &Conflict, by: Author) -> UndoConflict {
    let most = conflict.before.len().min(BEFORE);
    UndoConflict {
        lines: conflict.lines,
        by,
        before: String::from_utf8_lossy(&conflict.before[..most]).into_owned(),
    }
}

/// Plans the renames of a redo. A file that an undo gave its old name back gets
/// its newer name again. If that is not possible, it keeps the old name.
pub(super) fn rename_again(plans: &mut [Plan], files: &[FileEntry]) {
    for file in files {
        let Some(old) = &file.to else { continue };
        let at = |path: &RelPath| plans.iter().position(|plan| plan.path == *path);
        let (Some(new), Some(old)) = (at(&file.path), at(old)) else {
            continue;
        };
        if plans[old].outcome == UndoOutcome::Deleted {
            plans[new].mode = plans[old].mode.or(plans[old].was).or(plans[new].mode);
            plans[old].outcome = UndoOutcome::Renamed;
            plans[old].to = Some(file.path.clone());
        }
    }
}

mod markers {
    //! Conflict markers, as a merge writes them.

    use touchmark_engine::history::Conflict;

    /// Returns the text with markers around each change that stays, or `None`
    /// if the place of a change in the text cannot be determined.
    pub(super) fn put(before: &[u8], after: &[u8], conflicts: &[Conflict]) -> Option<Vec<u8>> {
        let places = touchmark_engine::text::lines::places(before, after)?;
        let lines: Vec<&[u8]> = after.split_inclusive(|byte| *byte == b'\n').collect();
        // Maps a line number of the older text to the newer text.
        let now = |line: u32| {
            let moved = places
                .iter()
                .take_while(|hunk| hunk.old_start + hunk.old_lines <= line);
            moved.fold(i64::from(line), |at, hunk| {
                at + i64::from(hunk.new_lines) - i64::from(hunk.old_lines)
            })
        };
        let mut out: Vec<u8> = Vec::new();
        let mut copied = 0;
        for conflict in conflicts {
            let start = usize::try_from(now(conflict.lines.start))
                .ok()?
                .saturating_sub(1);
            let end = usize::try_from(now(conflict.lines.end)).ok()?;
            if start < copied || end > lines.len() || start > end {
                return None;
            }
            out.extend(lines[copied..start].concat());
            line(&mut out, b"<<<<<<< now\n");
            out.extend(lines[start..end].concat());
            line(&mut out, b"=======\n");
            out.extend(&conflict.before);
            line(&mut out, b">>>>>>> before\n");
            copied = end;
        }
        out.extend(lines[copied..].concat());
        Some(out)
    }

    /// Appends a marker at the beginning of a line.
    fn line(out: &mut Vec<u8>, marker: &[u8]) {
        if !matches!(out.last(), None | Some(b'\n')) {
            out.push(b'\n');
        }
        out.extend(marker);
    }
}
