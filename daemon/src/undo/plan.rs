//! Computes a file's content without some of its versions.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use touchmark_engine::history::{Conflict, Remaining, Step, Undos, Weave};
use touchmark_proto::undo::{
    Conflicts, LeftCause, UndoConflict, UndoLeft, UndoOutcome, UndoneContent, UndoneFile,
};
use touchmark_proto::{Author, Error, ErrorCode, FileMode, Hash, RelPath, SessionId, Version};

use super::Undoer;
use super::journal::Bytes;
use super::left::{left_decided, left_likely, left_not_kept, told};
use super::whose::Chosen;
use crate::context::aside;
use crate::guard::{Name, RIGHTS, SPECIAL};
use crate::history::Chain;
use crate::past::entry::FileEntry;
use crate::past::markers;

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
    /// The changes that stay for other reasons.
    pub(super) left: Vec<UndoLeft>,
    /// The sessions whose changes the plan concerns; `None` in it stands for
    /// changes of no session.
    pub(super) by: BTreeSet<Option<SessionId>>,
    /// The name that the file had before the selected versions moved it; `None`
    /// if they did not, or if another author has moved it since.
    pub(super) from: Option<RelPath>,
    /// The name behind the symlinks on the path, as the selected versions had
    /// them; `None` if there were none. The undo follows no other link.
    pub(super) real: Option<RelPath>,
    /// The other name that the file gets: of an undo, the old one. `None` if it
    /// is not renamed.
    pub(super) to: Option<RelPath>,
    /// The numbers of the facts of the file's versions.
    pub(super) versions: BTreeSet<u64>,
    /// The lines that only the selected versions wrote.
    pub(super) own: Vec<Arc<[u8]>>,
    /// The names that the file had before, the newest first.
    pub(super) earlier: Vec<RelPath>,
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
            let removed = before.hash.is_some() || chosen.has(before);
            removed && chosen.has_number(first)
        };
        let mut chain = undoer.joined(path, &joins).await?;
        let name = Name {
            path: path.clone(),
            real: real_of(&chain, |at| chosen.has(&chain.versions[at])),
        };
        let not_kept = undoer.look_at_present(&mut chain, &name).await;
        let is_chosen = |at: usize| chosen.has(chain.version(at));
        let (Some(base), true) = (
            chain.versions.last().map(|newest| newest.hash),
            chain.all_steps().any(is_chosen),
        ) else {
            return Ok(None);
        };
        let undos = undoer.journal.recorded().among(&chain.versions);
        let (chain, without, own) = without(chain, &undos, chosen).await?;
        let meant = |at: usize| is_meant(&chain, chosen, at);
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
        let author = |at: usize| match chain.all_steps().contains(&at) {
            true => chain.version(at).author.clone(),
            false => Author::UNKNOWN,
        };
        let mut plan = Self {
            base,
            before,
            after: without.bytes.as_deref().map(Arc::from),
            was: chain.mode,
            mode: chain.mode_without(&undos, meant),
            hunks: without.hunks,
            conflicts: without
                .conflicts
                .iter()
                .map(|conflict| told(conflict, author(conflict.by)))
                .collect(),
            left: without
                .likely
                .iter()
                .map(|likely| left_likely(likely, &chain.versions[likely.step]))
                .chain(
                    without
                        .decided
                        .iter()
                        .map(|decided| left_decided(decided, &chain.versions[decided.by])),
                )
                .collect(),
            by: chosen.sessions_of(versions.iter().copied()),
            from: chain.moved_by(&undos, meant).map(|(_, from)| from.clone()),
            real: name.real,
            versions,
            own,
            earlier: chain.names(path).skip(1).cloned().collect(),
            ..Self::nothing(path, UndoOutcome::Unchanged, None)
        };
        plan.left
            .extend(left_not_kept(undoer, &chain, &without.not_kept));
        plan.judge(&without.not_kept);
        if chain.has_links() {
            plan.check_links(&chain);
        }
        plan.check_present(undoer, not_kept);
        if style == Conflicts::Markers && plan.outcome != UndoOutcome::NotKept {
            plan.mark(&without.conflicts);
        }
        Ok(Some(plan))
    }

    /// Computes a file's content without the change from `before` to `after`,
    /// which an undo has made.
    pub(super) async fn back(
        undoer: &Undoer,
        name: Name,
        before: Option<Arc<[u8]>>,
        after: Option<Arc<[u8]>>,
        [was, mode]: [Option<FileMode>; 2],
    ) -> Result<Self, Error> {
        let mut chain = undoer.newest(&name.path).await?;
        let not_kept = undoer.look_at_present(&mut chain, &name).await;
        let now = chain.steps.last().cloned().unwrap_or(Step::Absent);
        let base = chain.versions.last().and_then(|version| version.hash);
        let step = |bytes: &Option<Arc<[u8]>>| match bytes {
            Some(bytes) => Step::Held(Arc::clone(bytes)),
            None => Step::Absent,
        };
        let steps = [step(&before), step(&after), now.clone()];
        let without = aside(move || Weave::new(&steps).without(|at| at == 1)).await?;
        let newest = chain.versions.last();
        let author = newest.map_or(Author::UNKNOWN, |version| version.author.clone());
        let mut plan = Self {
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
            hunks: without.hunks,
            conflicts: without
                .conflicts
                .iter()
                .map(|conflict| told(conflict, author.clone()))
                .collect(),
            real: name.real,
            ..Self::nothing(&name.path, UndoOutcome::Unchanged, None)
        };
        plan.judge(&without.not_kept);
        plan.check_pair(&[(&before, was), (&after, mode)]);
        plan.check_present(undoer, not_kept);
        Ok(plan)
    }

    /// Returns the plan for a file of a `review/undo`, whose content is to
    /// become `after`. If another process saves the file in the meantime, the
    /// file stays as it was saved.
    pub(crate) fn of_review(
        name: Name,
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
            base: chain.versions.last().and_then(|version| version.hash),
            before,
            after: after.map(Arc::from),
            hunks,
            by,
            real: name.real,
            ..Self::nothing(&name.path, UndoOutcome::Unchanged, None)
        };
        plan.judge(&[]);
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
        (self.was, self.mode) = (was, mode);
        if chain.has_links() {
            self.after = bytes;
            self.hunks += 1;
        }
        self.judge(&[]);
        self.check_links(chain);
    }

    /// Returns the plan for a file that could not be read: nothing is written.
    pub(super) fn failed(path: &RelPath, error: Error) -> Self {
        let outcome = match error.code {
            ErrorCode::NotKept => UndoOutcome::NotKept,
            _ => UndoOutcome::Failed,
        };
        Self::nothing(path, outcome, Some(error.message))
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
            left: Vec::new(),
            by: BTreeSet::new(),
            from: None,
            real: None,
            to: None,
            versions: BTreeSet::new(),
            own: Vec::new(),
            earlier: Vec::new(),
        }
    }

    /// Sets the outcome. `not_kept` has the versions that cannot be undone, since
    /// contents are not stored. If none can, the file keeps its content.
    fn judge(&mut self, not_kept: &[usize]) {
        if let (Some(was), Some(mode)) = (self.was, self.mode)
            && was != mode
            && mode.permissions() & SPECIAL != 0
        {
            self.mode = FileMode::new(mode.bits() & !SPECIAL);
            self.cause = Some(RIGHTS.into());
        }
        // None of the requested changes could be undone.
        let is_stuck = self.before == self.after && self.conflicts.is_empty();
        let is_kept = self
            .left
            .iter()
            .all(|left| left.cause == LeftCause::NotKept);
        if self.is_lost() {
            return self.leave("the file's present content is not stored".into());
        }
        if is_stuck && is_kept && !not_kept.is_empty() {
            let mut causes = self.left.iter().map(|left| left.why.clone());
            let cause = causes.next();
            return self.leave(
                cause.unwrap_or_else(|| "the file's previous content is not stored".into()),
            );
        }
        let done = match self.stays() {
            true => UndoOutcome::Partly,
            false => UndoOutcome::Undone,
        };
        self.outcome = match (&self.before, &self.after) {
            (before, after) if before == after && self.permits() => {
                self.hunks += 1;
                done
            }
            (before, after) if before == after => {
                self.hunks = 0;
                match (self.conflicts.is_empty(), self.left.is_empty()) {
                    (true, true) => UndoOutcome::Unchanged,
                    (false, true) => UndoOutcome::Conflict,
                    (_, false) => UndoOutcome::Left,
                }
            }
            (_, None) => UndoOutcome::Deleted,
            (None, _) if !self.stays() => UndoOutcome::Restored,
            _ => done,
        };
    }

    /// Returns whether at least one change stays.
    pub(super) fn stays(&self) -> bool {
        !self.conflicts.is_empty() || !self.left.is_empty()
    }

    /// Returns whether the file's content or mode is to change.
    pub(super) fn writes(&self) -> bool {
        self.before != self.after || self.permits()
    }

    /// Returns whether a file that stays is to get another mode.
    fn permits(&self) -> bool {
        self.after.is_some() && self.was.is_some() && self.mode.is_some() && self.mode != self.was
    }

    /// Returns whether there is a file whose content is not available.
    fn is_lost(&self) -> bool {
        self.base.is_some() && self.before.is_none()
    }

    /// Leaves the file as it is, since a content is not kept.
    pub(super) fn leave(&mut self, cause: String) {
        self.leave_as((UndoOutcome::NotKept, cause));
    }

    /// Leaves the file as it is, with this outcome and cause.
    pub(super) fn leave_as(&mut self, (outcome, cause): (UndoOutcome, String)) {
        self.after.clone_from(&self.before);
        self.mode = self.was;
        self.left.clear();
        self.fail(outcome, cause);
    }

    /// Leaves the file as it is where the undo would replace a content that
    /// could not be brought back. `not_kept` is why the present content may not
    /// be stored; `None` if it may. The write checks it again.
    pub(crate) fn check_present(&mut self, undoer: &Undoer, not_kept: Option<String>) {
        if let Some(cause) = not_kept
            && (self.writes() || self.is_lost())
        {
            match undoer.no_redo && !self.is_lost() {
                true => self.cause = Some(format!("it cannot be brought back: {cause}")),
                false => self.leave(cause),
            }
        }
    }

    /// Returns whether a symbolic link stands at the name, and not after the
    /// undo.
    pub(super) fn removes_link(&self) -> bool {
        is_link(self.was) && (self.after.is_none() || !is_link(self.mode))
    }

    /// Returns the file's name, with the links that the undo may follow.
    pub(super) fn name(&self) -> Name {
        Name {
            path: self.path.clone(),
            real: self.real.clone(),
        }
    }

    /// Leaves the file as it is, as a conflict with this cause.
    pub(super) fn keep(&mut self, cause: &str) {
        self.after.clone_from(&self.before);
        self.mode = self.was;
        self.outcome = UndoOutcome::Conflict;
        self.cause = Some(cause.into());
        self.hunks = 0;
    }

    /// Makes the plan a conflict where it cannot restore a symbolic link as it
    /// was. A link's content is one value, which is restored as a whole or not
    /// at all (SCOPE-7). Does nothing for a file that never was a link.
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
        let has = |mode| held.iter().any(|(_, own)| is_link(*own) == mode);
        if !has(true) || self.after.is_none() {
            return;
        }
        let known = held
            .iter()
            .any(|(bytes, mode)| **bytes == self.after && is_link(*mode) == is_link(self.mode));
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

    /// Returns what the file would become; `None` if it would stay as it is.
    pub(super) fn result(&self) -> Option<UndoneContent> {
        self.writes().then(|| UndoneContent {
            name: self.real.as_ref().unwrap_or(&self.path).clone(),
            base64: self.after.as_ref().map(|bytes| STANDARD.encode(bytes)),
            mode: self.mode,
        })
    }

    /// Returns what the plan does, for a comparison with another one: the file
    /// before and after. `None` if the file would stay as it is.
    pub(super) fn does(&self) -> Option<impl std::fmt::Debug> {
        let after = self.after.as_deref().map(Hash::of);
        let names = (&self.path, &self.real, &self.to);
        self.writes()
            .then_some((names, self.base, after, self.was, self.mode))
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
            left: (!self.left.is_empty()).then_some(self.left),
            changes: None,
            result: None,
            elsewhere: None,
        }
    }
}

/// Returns whether a mode is that of a symbolic link; false for no file.
pub(super) fn is_link(mode: Option<FileMode>) -> bool {
    mode.is_some_and(FileMode::is_link)
}

/// Returns whether a version or a claim is to be undone. What git carried is no
/// author's change (HIST-8). A command that is chosen by its name is undone all
/// the same.
pub(super) fn is_meant(chain: &Chain, chosen: &Chosen, at: usize) -> bool {
    chosen.has(chain.version(at)) && (chosen.by_name || !chain.is_carried(at))
}

/// Returns a file's content without the selected versions, its history, and the
/// lines that only the selected versions wrote. It is computed on a separate
/// thread, since a large file takes long.
pub(super) async fn without(
    chain: Chain,
    undos: &Undos,
    chosen: &Chosen,
) -> Result<(Chain, Remaining, Vec<Arc<[u8]>>), Error> {
    let steps = chain.all_steps();
    let meant: Vec<bool> = steps.map(|at| is_meant(&chain, chosen, at)).collect();
    let versions = chain.versions.iter().enumerate();
    // Text that git brought was in git before: no user has typed it there
    // (UNDO-7).
    let likely = versions.map(|(at, version)| chosen.spares(version) && !chain.is_from_git(at));
    let likely: Vec<bool> = likely.collect();
    let (undos, spares_decided) = (undos.clone(), chosen.spares_decided);
    aside(move || {
        let meant = |at: usize| meant.get(at) == Some(&true);
        let is_likely = |at: usize| likely.get(at) == Some(&true);
        let weave = chain.weave(&undos, meant);
        let without = weave.without_sparing(meant, is_likely, spares_decided);
        let own = weave.only_by(meant);
        (chain, without, own)
    })
    .await
}

/// Returns the name behind the symlinks on a file's path, as the versions that
/// `meant` selects and those right before them had them; `None` if they had none,
/// or not the same. A version that was recorded under the name behind the links
/// had none. A link that a selected version put in the file's place is not
/// followed.
pub(crate) fn real_of(chain: &Chain, meant: impl Fn(usize) -> bool) -> Option<RelPath> {
    let steps = (0..chain.versions.len()).filter(|at| meant(*at));
    let before = steps
        .clone()
        .filter_map(|at| at.checked_sub(1))
        .filter(|at| !meant(*at) && chain.versions[*at].hash.is_some());
    let versions: Vec<_> = steps.chain(before).map(|at| &chain.versions[at]).collect();
    let real = versions.iter().find_map(|version| version.real.clone())?;
    let is_same = |path: &RelPath| *path == real;
    versions
        .iter()
        .all(|version| is_same(version.real.as_ref().unwrap_or(&version.path)))
        .then_some(real)
}

/// Leaves the old name of a file without a file, since the file keeps its
/// present name.
pub(super) fn leave_old_name(plans: &mut [Plan], at: usize, from: &RelPath) {
    let cause = plans[at].cause.clone().unwrap_or_default();
    let old = plans.iter_mut().find(|plan| plan.path == *from);
    if let Some(old) = old.filter(|old| old.writes()) {
        old.leave(cause);
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
