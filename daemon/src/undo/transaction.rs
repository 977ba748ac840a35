//! Writes the files of an undo.
//!
//! The undo is recorded before the first write, so that the next start can
//! complete it. If another process saves a file in the meantime, that file's
//! undo is computed again from the saved content.

use std::sync::Arc;

use touchmark_engine::{Fact, WriteOrder, WriteOutcome};
use touchmark_proto::daemon::{Ping, Sync};
use touchmark_proto::editors::EditorDidSave;
use touchmark_proto::undo::{Conflicts, UndoOutcome};
use touchmark_proto::{Author, ClientPath, Error, ErrorCode, FileMode, Hash, Millis, RelPath};

use super::journal::{Bytes, Entry, FileEntry, Journal, name};
use super::plan::Plan;
use super::whose::Chosen;
use super::{Undoer, is_written};
use crate::failpoint;
use crate::guard::{Guard, Umask};

/// How often the undo of one file is computed again when other processes keep
/// saving the file.
const TRIES: usize = 16;

/// An undo in progress.
pub(super) struct Transaction<'u> {
    undoer: &'u Undoer,
    /// The undo's record in the journal; `None` if no file is to be written.
    entry: Option<Entry>,
    plans: Vec<Plan>,
}

impl<'u> Transaction<'u> {
    /// Records the undo in the journal.
    ///
    /// # Errors
    /// `storage`: nothing has been written then.
    pub(super) fn begin(
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
        let writes: Vec<&Plan> = plans.iter().filter(|plan| plan.writes()).collect();
        let number = redo_of.map(|entry| entry.number);
        let entry = match writes.is_empty() {
            true => None,
            false => Some(
                undoer
                    .journal
                    .begin(undoer.now, what, authors, number, &writes)?,
            ),
        };
        Ok(Self {
            undoer,
            entry,
            plans,
        })
    }

    /// Writes or removes the files one by one, and ends the journal's entry.
    pub(super) async fn carry_out(&mut self, chosen: &Chosen, style: Conflicts) {
        let Some(mut entry) = self.entry.take() else {
            return;
        };
        let mut left_out = Vec::new();
        for at in 0..entry.files.len() {
            failpoint::pass("undo: about to write a file");
            self.file(&mut entry, at, chosen, style).await;
            if !is_written(self.plans[at].outcome) {
                left_out.push(at);
            }
            failpoint::pass("undo: a file is written");
        }
        // The files that were not written are not part of the undo.
        for at in left_out.into_iter().rev() {
            entry.files.remove(at);
        }
        // The engine has to record the versions before the entry ends. If the
        // daemon crashed in between, a write without a fact would be attributed
        // to an unknown author. An entry that stays is ended by the next start.
        let inside = &self.undoer.inside;
        let ends = |error: Error| error.code == ErrorCode::ShuttingDown;
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
        (self.entry.map(|entry| name(entry.number)), plans)
    }

    async fn file(&mut self, entry: &mut Entry, at: usize, chosen: &Chosen, style: Conflicts) {
        if let Some(cause) = self.is_needed(at) {
            return self.plans[at].fail(UndoOutcome::Failed, cause);
        }
        for _ in 0..TRIES {
            let plan = &self.plans[at];
            let outcome = self.write(plan).await;
            match outcome {
                WriteOutcome::Done { .. } => return self.report(at).await,
                WriteOutcome::Failed(error) => {
                    return self.plans[at].fail(UndoOutcome::Failed, error.message);
                }
                WriteOutcome::Conflict { .. } => {}
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
                let cause = "another process has saved it in the meantime";
                return self.plans[at].fail(UndoOutcome::Changed, cause.into());
            }
            let anew = match self.undoer.journal.redo_of(entry, at) {
                Some(([before, after], modes)) => {
                    let back = Plan::back(self.undoer, &path, before, after, modes);
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
                    let cause = "another process has saved it in the meantime";
                    return self.plans[at].fail(UndoOutcome::Changed, cause.into());
                }
                Err(error) => return self.plans[at].fail(UndoOutcome::Failed, error.message),
            }
            if !self.plans[at].writes() {
                return;
            }
            if let Err(error) = self.undoer.journal.change(entry, at, &self.plans[at]) {
                return self.plans[at].fail(UndoOutcome::Failed, error.message);
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

    async fn write(&self, plan: &Plan) -> WriteOutcome {
        let (guard, umask) = (Arc::clone(&self.undoer.guard), self.undoer.umask);
        let change = Change {
            path: plan.path.clone(),
            base: plan.base,
            before: plan.before.clone(),
            after: plan.after.clone(),
            was: plan.was,
            mode: plan.mode,
        };
        let written = tokio::task::spawn_blocking(move || change.write(&guard, umask));
        written.await.unwrap_or_else(|error| {
            let code = touchmark_proto::ErrorCode::InternalError;
            WriteOutcome::Failed(Error::new(code, error.to_string()))
        })
    }

    /// Reports the written content as the user's, who requested it. A change of
    /// the mode alone writes no content, so the content stays its author's.
    async fn report(&self, at: usize) {
        let plan = &self.plans[at];
        let written = plan.after.as_ref().map(|bytes| Hash::of(bytes));
        if let Some(hash) = written.filter(|hash| plan.base != Some(*hash)) {
            report(self.undoer, &plan.path, hash).await;
        }
    }
}

/// Reports to the engine that the user wrote a content (ATTR-2).
async fn report(undoer: &Undoer, path: &RelPath, hash: Hash) {
    let saved = EditorDidSave {
        path: ClientPath::from(path),
        hash,
        time: None,
        formatted: false,
    };
    if let Err(error) = undoer.inside.ask(saved).await {
        tracing::debug!(%path, "an undo of {path} is not told: {error}");
    }
}

/// A change of one file.
struct Change {
    path: RelPath,
    /// The hash of the file's current content; `None` for no file.
    base: Option<Hash>,
    /// The bytes of the file's current content; `None` for no file.
    before: Bytes,
    /// The content to be written; `None` to remove the file.
    after: Bytes,
    was: Option<FileMode>,
    mode: Option<FileMode>,
}

fn is_link(mode: Option<FileMode>) -> bool {
    mode.is_some_and(FileMode::is_link)
}

fn is_done(outcome: &WriteOutcome) -> bool {
    matches!(outcome, WriteOutcome::Done { .. })
}

impl Change {
    fn write(&self, guard: &Guard, umask: Umask) -> WriteOutcome {
        let path = &self.path;
        let turns = is_link(self.was) || self.after.is_some() && is_link(self.mode);
        let Some(base) = self.base.filter(|_| turns || self.after.is_none()) else {
            return self.put(guard, umask, self.base);
        };
        // The current file or link is removed first: an undo does not write
        // through a symbolic link, and does not replace a file by one.
        let gone = match is_link(self.was) {
            true => guard.remove_link(path, base),
            false => guard.remove(path, base),
        };
        if !is_done(&gone) || self.after.is_none() {
            return gone;
        }
        let put = self.put(guard, umask, None);
        if !is_done(&put) && self.before.is_some() {
            let back = Self {
                after: self.before.clone(),
                mode: self.was,
                path: path.clone(),
                before: None,
                ..*self
            };
            let outcome = back.put(guard, umask, None);
            tracing::warn!(%path, "an undo of {path} is taken back: {outcome:?}");
        }
        put
    }

    /// Writes the new content over `base`. Does nothing if the file is to be
    /// removed.
    fn put(&self, guard: &Guard, umask: Umask, base: Option<Hash>) -> WriteOutcome {
        let path = &self.path;
        let done = WriteOutcome::Done {
            guard: touchmark_proto::writes::Guard::Noreplace,
            lease: false,
            recovered: Vec::new(),
        };
        let Some(bytes) = &self.after else {
            return done;
        };
        if base.is_none() {
            guard.make_room(path);
        }
        if is_link(self.mode) {
            return guard.make_link(path, bytes, umask);
        }
        let hash = Hash::of(bytes);
        if base != Some(hash) {
            let order = WriteOrder {
                path: path.clone(),
                ticket: 0,
                base,
                hash,
                bytes: Arc::clone(bytes),
                // The replaced content is in the journal.
                keep_base: false,
                base_author: None,
                create_directories: true,
            };
            let mode = self.mode.map(FileMode::permissions);
            let written = guard.write_with_mode(&order, umask, mode);
            if !is_done(&written) {
                return written;
            }
        }
        match (self.was, self.mode) {
            (Some(was), Some(mode)) if base.is_some() && was != mode => {
                guard.permit(path, was, mode)
            }
            _ => done,
        }
    }
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
/// Any other file stays as it was left.
pub(crate) fn resume(journal: &Journal, guard: &Guard, umask: Umask) -> Resumed {
    let mut written = Vec::new();
    let mut facts = Vec::new();
    for mut entry in journal.left() {
        let mut left_out: Vec<usize> = Vec::new();
        for (at, file) in entry.files.iter().enumerate() {
            // The file was not written under its other name, so it keeps this
            // one.
            let is_out = |to: &RelPath| left_out.iter().any(|out| entry.files[*out].path == *to);
            if file.to.as_ref().is_some_and(is_out) {
                left_out.push(at);
                continue;
            }
            let after = match journal.contents(&entry, at) {
                Ok([_, after]) => after,
                Err(error) => {
                    tracing::warn!(path = %file.path, "{}: {error}", file.path);
                    left_out.push(at);
                    continue;
                }
            };
            let [was, mode] = file.modes();
            let turns = is_link(was) || is_link(mode);
            let (now, now_mode) = match turns {
                true => guard.stands(&file.path),
                false => (guard.holds(&file.path), guard.stands(&file.path).1),
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
                left_out.push(at);
                continue;
            }
            let change = Change {
                path: file.path.clone(),
                base: now,
                before: None,
                after,
                was: now_mode,
                mode,
            };
            let outcome = change.write(guard, umask);
            match is_done(&outcome) {
                true => written.extend(new_content(file)),
                false => left_out.push(at),
            }
        }
        // The files that were not written are not part of the undo.
        for at in left_out.into_iter().rev() {
            entry.files.remove(at);
        }
        tracing::info!("undo {} was cut short, and is completed", entry.number);
        facts.extend(entry.facts().into_iter().map(|fact| (entry.time, fact)));
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
