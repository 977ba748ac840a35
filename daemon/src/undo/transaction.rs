//! Writes the files of an undo.
//!
//! The undo is recorded before the first write, so that the next start can
//! complete it. If another process saves a file in the meantime, that file's
//! undo is computed again from the saved content.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use touchmark_engine::recall::undo_name;
use touchmark_engine::{Fact, WriteOutcome};
use touchmark_proto::daemon::{Ping, Sync};
use touchmark_proto::editors::EditorDidSave;
use touchmark_proto::undo::{Conflicts, UndoOutcome};
use touchmark_proto::{Author, Error, ErrorCode, FileMode, Hash, Millis, RelPath};

use super::journal::{Bytes, Journal, SAVED_SINCE, failed};
use super::plan::{Plan, is_link};
use super::whose::Chosen;
use super::{Undoer, is_written, moves};
use crate::context::aside;
use crate::failpoint;
use crate::guard::{Name, Replacer, SPECIAL, Stored, Written};
use crate::inside::Inside;
use crate::past::entry::{Entry, FileEntry};
use crate::past::versions::look_at;

/// The most files that are written before it is looked whether any has to be
/// planned again.
const AT_ONCE: usize = 64;

/// How often the undo of one file is computed again when other processes keep
/// saving the file.
const TRIES: usize = 16;

/// The permission of a file's owner to write it.
const OWNER_WRITES: u32 = 0o200;

/// An undo in progress.
pub(super) struct Transaction<'u> {
    undoer: &'u Undoer,
    /// The undo's record in the journal; `None` if no file is to be written.
    entry: Option<Entry>,
    /// For each file of the entry: the proof that its present content is stored;
    /// `None` if another process has saved it since it was planned.
    stored: Vec<Option<Stored>>,
    plans: Vec<Plan>,
}

impl<'u> Transaction<'u> {
    /// Records the undo in the journal.
    ///
    /// # Errors
    /// `storage`: nothing has been written then.
    pub(super) async fn begin(
        undoer: &'u Undoer,
        mut plans: Vec<Plan>,
        what: String,
        authors: Vec<Author>,
        redo_of: Option<&Entry>,
    ) -> Result<Self, Error> {
        // Order: the writes first, in the order of the entry, then the
        // removals, since a removed file may have been written under another
        // name. A file that blocks a write is removed before all of them: one
        // whose name has to become a directory, or one in a directory whose
        // name has to become a file.
        let made: Vec<RelPath> = plans
            .iter()
            .filter(|plan| plan.before.is_none() && plan.after.is_some())
            .map(|plan| plan.path.clone())
            .collect();
        plans.sort_by_cached_key(|plan| {
            let is_in_the_way = plan.after.is_none()
                && made.iter().any(|made| {
                    made.below(&plan.path).is_some() || plan.path.below(made).is_some()
                });
            let is_last = (plan.after.is_none(), plan.to.is_some());
            (!plan.writes(), !is_in_the_way, is_last)
        });
        let number = redo_of.map(|entry| entry.number);
        let own = undoer.clone();
        let begun = aside(move || {
            let begun = own.journal.begin(&own, what, authors, number, &mut plans);
            begun.map(|begun| (begun, plans))
        });
        let (begun, plans) = begun.await??;
        let (entry, stored) = begun.map(|begun| (begun.entry, begun.stored)).unzip();
        Ok(Self {
            undoer,
            entry,
            stored: stored.unwrap_or_default(),
            plans,
        })
    }

    /// Writes or removes the files one by one, and ends the journal's entry.
    pub(super) async fn carry_out(&mut self, chosen: &Chosen, style: Conflicts) {
        let Some(mut entry) = self.entry.take() else {
            return;
        };
        let undoer = self.undoer;
        let is_another = |path: &RelPath| {
            let known = undoer.known.as_ref();
            known.is_none_or(|known| known.begin(path, u64::MAX).is_some())
        };
        let mut files = entry.files.iter();
        if files.any(|file| file.to.is_some() || is_another(&file.path)) {
            // A move that is undone, and which file a name stands for, is decided
            // for good. If that fails, it is decided later, together with what
            // the undo writes.
            let settled = undoer
                .origins
                .lineages
                .settle(&undoer.cx.inside, &undoer.log)
                .await;
            if let Err(error) = settled {
                tracing::debug!("moves are not decided: {error}");
            }
        }
        let mut at = 0;
        while at < entry.files.len() {
            let most = (at + AT_ONCE).min(entry.files.len());
            let written = self.write(at..most).await;
            let tried = written.len().max(1);
            let mut written = written.into_iter().map(Some);
            for at in at..at + tried {
                let first = written.next().flatten();
                self.file(&mut entry, at, first, chosen, style).await;
            }
            at += tried;
        }
        let files = 0..entry.files.len();
        let left_out: Vec<usize> = files
            .filter(|at| !is_written(self.plans[*at].outcome))
            .collect();
        // The files that were not written are not part of the undo.
        for at in left_out.into_iter().rev() {
            entry.files.remove(at);
        }
        // The engine has to record the versions before the entry ends. If the
        // daemon crashed in between, a write without a fact would be attributed
        // to an unknown author. An entry that stays is ended by the next start.
        let inside = &self.undoer.cx.inside;
        let ends = |error: Error| error.code == ErrorCode::ShuttingDown;
        for file in entry.files.iter().filter(|file| file.to.is_some()) {
            look_at(inside, &file.path).await;
        }
        if !inside.ask(Sync {}).await.is_err_and(ends) {
            failpoint::pass("undo: about to record whose changes they were");
            inside.record(entry.facts());
            // The answer is sent once the facts are committed.
            if !inside.ask(Ping {}).await.is_err_and(ends) {
                failpoint::pass("undo: it is recorded whose changes they were");
                self.undoer.journal.end(&mut entry);
            }
        }
        self.entry = Some(entry).filter(|entry| !entry.files.is_empty());
    }

    /// Returns the undo's name, or `None` if nothing was written, and the
    /// outcome of each file.
    pub(super) fn end(self) -> (Option<String>, Vec<Plan>) {
        let mut plans = self.plans;
        plans.sort_by(|a, b| a.path.cmp(&b.path));
        (self.entry.map(|entry| undo_name(entry.number)), plans)
    }

    /// Completes the undo of one file. `first` is what became of the first write
    /// of it; `None` if it was not written.
    async fn file(
        &mut self,
        entry: &mut Entry,
        at: usize,
        mut first: Option<Written>,
        chosen: &Chosen,
        style: Conflicts,
    ) {
        if let Some(cause) = self.is_needed(at) {
            return self.plans[at].fail(UndoOutcome::Failed, cause);
        }
        for _ in 0..TRIES {
            let written = match first.take() {
                None => self.write(at..at + 1).await.pop(),
                first => first,
            };
            if let Some(Written { outcome, note }) = written {
                match outcome {
                    WriteOutcome::Done { .. } => {
                        let cause = &mut self.plans[at].cause;
                        *cause = note.or(cause.take());
                        return self.report_move(at).await;
                    }
                    WriteOutcome::Failed(error) => {
                        let (outcome, cause) = failed(error);
                        return self.plans[at].fail(outcome, cause);
                    }
                    WriteOutcome::Conflict { .. } => {}
                }
            }
            // Another process has saved the file. Its changes have to stay.
            let path = self.plans[at].path.clone();
            // The content of a renamed file was computed together with its
            // other name. It cannot be computed again alone.
            if self
                .plans
                .iter()
                .any(|other| other.to.as_ref() == Some(&path))
            {
                return self.plans[at].fail(UndoOutcome::Changed, SAVED_SINCE.into());
            }
            let anew = match self.undoer.journal.redo_of(entry, at) {
                Some(([before, after], modes)) => {
                    let name = self.plans[at].name();
                    let back = Plan::back(self.undoer, name, before, after, modes);
                    back.await.map(|mut plan| {
                        plan.by.clone_from(&self.plans[at].by);
                        Some(plan)
                    })
                }
                None => Plan::new(self.undoer, &path, chosen, style).await,
            };
            match anew {
                Ok(Some(plan)) => self.plans[at] = plan,
                Ok(None) => {
                    return self.plans[at].fail(UndoOutcome::Changed, SAVED_SINCE.into());
                }
                Err(error) => return self.plans[at].fail(UndoOutcome::Failed, error.message),
            }
            if !self.plans[at].writes() {
                return;
            }
            let journal = &self.undoer.journal;
            match journal.change(self.undoer, entry, at, &self.plans[at]) {
                Ok(stored) => self.stored[at] = stored,
                Err((outcome, cause)) => return self.plans[at].fail(outcome, cause),
            }
        }
        let cause = "another process keeps writing to the file";
        self.plans[at].fail(UndoOutcome::Changed, cause.into());
    }

    /// Returns why a file must not be removed: it is to be renamed, and could
    /// not be written under its other name. `None` if it may be removed.
    fn is_needed(&self, at: usize) -> Option<String> {
        let to = self.plans[at].to.as_ref()?;
        let old = self.plans.iter().find(|plan| plan.path == *to)?;
        let cause = || old.cause.clone().unwrap_or_default();
        (!is_written(old.outcome)).then(|| format!("it could not get its other name: {}", cause()))
    }

    /// Writes the files with these indexes in their order, up to one that was
    /// saved since it was planned, that has to wait, or that cannot be written.
    /// Returns what became of each that was tried.
    async fn write(&mut self, files: Range<usize>) -> Vec<Written> {
        let from = files.start;
        let mut changes = Vec::new();
        for at in files {
            let stored = match self.is_needed(at) {
                Some(_) => None,
                None => self.stored[at].take(),
            };
            let Some(stored) = stored else { break };
            changes.push(Change::of(&self.plans[at], stored));
            // What is recorded of a move has to be in the order of the writes.
            if self.is_moved(at) {
                break;
            }
        }
        if changes.is_empty() {
            return Vec::new();
        }
        let (replacer, inside) = (self.undoer.replacer.clone(), self.undoer.cx.inside.clone());
        let tried = aside(move || {
            let mut tried = Vec::new();
            let mut changes = changes.into_iter();
            for change in changes.by_ref() {
                failpoint::pass("undo: about to write a file");
                // The files before it are written, however this one ends.
                let written = catch_unwind(AssertUnwindSafe(|| change.write(&replacer)));
                let written = written.unwrap_or_else(|_| broken().into());
                let is_done = is_done(&written.outcome);
                if is_done {
                    change.report(&inside);
                }
                failpoint::pass("undo: a file is written");
                tried.push(written);
                if !is_done {
                    break;
                }
            }
            let left = changes.map(|change| change.stored);
            (tried, left.collect::<Vec<Stored>>())
        });
        match tried.await {
            Ok((tried, left)) => {
                for (at, stored) in (from + tried.len()..).zip(left) {
                    self.stored[at] = Some(stored);
                }
                tried
            }
            Err(_) => vec![broken().into()],
        }
    }

    /// Returns whether the file leaves a name, or comes to it.
    fn is_moved(&self, at: usize) -> bool {
        let plan = &self.plans[at];
        let mut others = self.plans.iter();
        plan.to.is_some() || others.any(|other| other.to.as_ref() == Some(&plan.path))
    }

    /// Records that a written file has left a name, or has come there, which is
    /// seen nowhere else if no session uses the name.
    async fn report_move(&self, at: usize) {
        let plan = &self.plans[at];
        let inside = &self.undoer.cx.inside;
        if !self.is_moved(at) {
            return;
        }
        // The reports of what was written before come first.
        if let Err(error) = inside.ask(Ping {}).await {
            tracing::debug!("a move: {error}");
        }
        let (after, came) = (plan.after.as_deref(), plan.base.is_none());
        let fact = match (plan.base, &plan.to) {
            (Some(base), Some(_)) => Some(moves::version(&plan.path, Some(base), None)),
            _ if came => moves::found(&self.undoer.cx.workspace.root, &plan.path, after)
                .map(|after| moves::version(&plan.path, None, Some(after))),
            _ => None,
        };
        inside.record(fact.into_iter().collect());
    }
}

/// A change of one file.
struct Change {
    name: Name,
    /// The proof that the file's present content is stored.
    stored: Stored,
    /// The bytes of that content; `None` for no file.
    before: Bytes,
    /// The content to be written; `None` to remove the file.
    after: Bytes,
    was: Option<FileMode>,
    mode: Option<FileMode>,
}

fn broken() -> WriteOutcome {
    WriteOutcome::Failed(Error::new(ErrorCode::InternalError, "the write broke off"))
}

fn is_done(outcome: &WriteOutcome) -> bool {
    matches!(outcome, WriteOutcome::Done { .. })
}

impl Change {
    fn of(plan: &Plan, stored: Stored) -> Self {
        Self {
            name: plan.name(),
            stored,
            before: plan.before.clone(),
            after: plan.after.clone(),
            was: plan.was,
            mode: plan.mode,
        }
    }

    /// Reports the written content to the engine as the user's, who requested it
    /// (ATTR-2). A change of the mode alone writes no content, so the content
    /// stays its author's.
    fn report(&self, inside: &Inside) {
        let hash = self.after.as_deref().map(Hash::of);
        if let Some(hash) = hash.filter(|_| hash != self.stored.hash()) {
            inside.tell(EditorDidSave::new(&self.name.path, hash));
        }
    }

    fn write(&self, replacer: &Replacer) -> Written {
        let Self { name, stored, .. } = self;
        let turns = is_link(self.was) || self.after.is_some() && is_link(self.mode);
        if stored.hash().is_none() || !turns && self.after.is_some() {
            return put(replacer, name, stored, &self.after, [self.was, self.mode]);
        }
        // The current file or link is removed first: an undo does not write
        // through a symbolic link, and does not replace a file by one.
        let gone = match is_link(self.was) {
            true => replacer.remove_link(&name.path, stored),
            false => replacer.remove(name, stored),
        };
        if !is_done(&gone) || self.after.is_none() {
            return gone.into();
        }
        let free = Stored::nothing();
        let written = put(replacer, name, &free, &self.after, [self.was, self.mode]);
        if !is_done(&written.outcome) && self.before.is_some() {
            let back = put(replacer, name, &free, &self.before, [None, self.was]);
            let path = &name.path;
            tracing::warn!(%path, "an undo of {path} is taken back: {back:?}");
        }
        written
    }
}

/// Writes a content in place of the stored one, and a mode in place of another.
/// Does nothing if there is no content.
fn put(
    replacer: &Replacer,
    name: &Name,
    stored: &Stored,
    bytes: &Bytes,
    [was, mode]: [Option<FileMode>; 2],
) -> Written {
    let base = stored.hash();
    let mut written = Written::from(WriteOutcome::Done {
        guard: touchmark_proto::writes::Guard::Noreplace,
        lease: false,
        recovered: Vec::new(),
    });
    let Some(bytes) = bytes else {
        return written;
    };
    if base.is_none() {
        replacer.make_room(&name.path);
    }
    if is_link(mode) {
        return replacer.make_link(&name.path, bytes).into();
    }
    let writes = base != Some(Hash::of(bytes));
    let modes = was.zip(mode);
    let modes = modes.filter(|(was, mode)| base.is_some() && was != mode);
    // The mode comes first, so that no version is recorded that has the new
    // content and the old mode. A file that may not be written gets it last.
    let is_first = modes.filter(|(_, mode)| writes && mode.bits() & OWNER_WRITES != 0);
    if let Some((was, mode)) = is_first {
        written.outcome = replacer.permit(name, was, mode);
        if !is_done(&written.outcome) {
            return written;
        }
    }
    if writes {
        written = replacer.write(name, stored, Arc::clone(bytes), mode);
        if !is_done(&written.outcome) {
            if let Some((was, mode)) = is_first {
                let back = replacer.permit(name, mode, was);
                let path = &name.path;
                tracing::debug!(%path, "the mode of {path} is as before: {back:?}");
            }
            return written;
        }
    }
    if let Some((was, mode)) = modes.filter(|_| is_first.is_none()) {
        // The file that replaced another has none of these permissions.
        let now = if writes { plain(was) } else { was };
        written.outcome = replacer.permit(name, now, mode);
    }
    written
}

/// Returns a mode without the permissions that no file gets.
fn plain(mode: FileMode) -> FileMode {
    FileMode::new(mode.bits() & !SPECIAL).unwrap_or(mode)
}

/// What a start has to report about undos that it completed.
#[derive(Debug, Default)]
pub(crate) struct Resumed {
    /// The contents that they wrote.
    pub(crate) written: Vec<(RelPath, Hash)>,
    /// The facts about them, each with the time at which its undo began. The
    /// earlier daemon may have recorded them.
    pub(crate) facts: Vec<(Millis, Fact)>,
}

/// Completes the undos that an earlier daemon did not complete, and returns
/// what the caller has to report. A file is written only
/// if it still is as it was before the undo, or if only its mode is missing.
/// Any other file stays as it was left, and so do its contents in the journal.
pub(crate) fn resume(journal: &Journal, replacer: &Replacer, root: &Path) -> Resumed {
    let mut written = Vec::new();
    let mut facts = Vec::new();
    for mut entry in journal.left() {
        let names: Vec<RelPath> = entry.files.iter().map(|file| file.path.clone()).collect();
        let mut left_out: Vec<usize> = Vec::new();
        let mut unknown: Vec<usize> = Vec::new();
        for (at, file) in entry.files.iter().enumerate() {
            // The file was not written under its other name, or was saved there
            // since, so it keeps this one.
            let is_out = |to: &RelPath| {
                let mut out = left_out.iter().chain(&unknown);
                out.any(|out| entry.files[*out].path == *to)
            };
            if file.to.as_ref().is_some_and(is_out) {
                left_out.push(at);
                continue;
            }
            let [was, mode] = file.modes();
            let turns = is_link(was) || is_link(mode);
            let (now, now_mode) = match turns {
                true => replacer.stands(&file.path),
                false => (replacer.holds(&file.name()), replacer.stands(&file.path).1),
            };
            let same_kind = |mode| !turns || now.is_none() || is_link(now_mode) == is_link(mode);
            let permits = mode.is_some() && mode != was && now_mode == was && now.is_some();
            let is_after = now == file.after && same_kind(mode);
            let is_before = now == file.before && same_kind(was)
                // The old file or link was removed, and its replacement is not
                // written yet.
                || turns && now.is_none() && file.after.is_some();
            if is_after && !permits {
                // The file was written before the restart, which may not have
                // been reported.
                written.extend(new_content(file));
                continue;
            }
            if !is_after && !is_before {
                // It was saved since. Whether the undo was written before that
                // is not known, so its contents stay.
                unknown.push(at);
                continue;
            }
            let contents = journal.contents(&entry, at);
            let after = contents.map(|[_, after]| after).inspect_err(|error| {
                tracing::warn!(path = %file.path, "{}: {error}", file.path);
            });
            let (Ok(after), Some(stored)) = (after, journal.stored(&entry, at, now)) else {
                left_out.push(at);
                continue;
            };
            let change = Change {
                name: file.name(),
                stored,
                before: None,
                after,
                was: now_mode,
                mode,
            };
            match is_done(&change.write(replacer).outcome) {
                true => written.extend(new_content(file)),
                false => left_out.push(at),
            }
        }
        // The files that were not written are not part of the undo.
        for at in left_out.into_iter().rev() {
            entry.files.remove(at);
        }
        tracing::info!("undo {} was cut short, and is completed", entry.number);
        let saved: Vec<RelPath> = unknown.into_iter().map(|at| names[at].clone()).collect();
        let moved = moves::versions(journal, &entry, &saved, root);
        let told = entry.without(&saved).facts().into_iter().chain(moved);
        facts.extend(told.map(|fact| (entry.time, fact)));
        journal.end(&mut entry);
    }
    Resumed { written, facts }
}

/// Returns the content that an undo gave a file; `None` if it changed nothing
/// but the mode, or removed the file.
fn new_content(file: &FileEntry) -> Option<(RelPath, Hash)> {
    let hash = file.after.filter(|_| file.before != file.after)?;
    Some((file.path.clone(), hash))
}
