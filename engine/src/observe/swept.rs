//! Records what commands did to untracked files (SCOPE-1). It goes to the log,
//! not to the state: untracked files cost neither watches nor memory.

use touchmark_proto::{Hash, Millis, RelPath, RequestId, SessionId, VersionKind};

use crate::attribution::Decision;
use crate::base::Base;
use crate::input::{Swept, SweptFile};
use crate::ledger::fold::kind_between;
use crate::ledger::recall::{VersionMarks, version_of};
use crate::ledger::record::{Fact, Held, VersionFact};
use crate::ledger::state::Command;
use crate::observe::LateWindow;
use crate::parts::Core;
use touchmark_proto::events::Happening;

/// The precision of file times and of the start times of processes, in
/// milliseconds.
const SLACK: Millis = 50;

/// The maximum number of saves that are remembered while windows are open.
const SAVES: usize = 1_024;

/// Returns whether a file may have been changed at or after a moment, by its own
/// time of change. `None` for no time and for no moment.
fn is_after(changed: Option<Millis>, moment: Option<Millis>) -> bool {
    moment.is_none_or(|moment| changed.is_none_or(|at| at + SLACK >= moment))
}

impl LateWindow {
    /// Returns whether a file may have been changed in the window, by its own
    /// time of change. That of a removed file is the latest possible one.
    fn had(&self, change: &SweptFile) -> bool {
        let changed = change.changed_ms;
        let is_gone = change.after.hash.is_none();
        let is_before_end = |at| is_gone || at <= self.ended + SLACK;
        is_after(changed, self.began) && changed.is_none_or(is_before_end)
    }
}

impl Core {
    /// Remembers that an editor has saved an untracked file, if a window that
    /// covers untracked files is open, or if a command wrote the file before.
    pub(crate) fn saved_untracked(&mut self, path: RelPath, hash: Hash) {
        let state = &self.base.state;
        let covers = state.covers_untracked() || state.command_files.contains_key(&path);
        if covers && self.writers.saved_untracked.len() < SAVES {
            self.writers.saved_untracked.insert(path, hash);
        }
    }

    /// Forgets what editors saved, once nothing that is looked at later can be
    /// one of these contents.
    pub(crate) fn forget_saves(&mut self) {
        if !self.base.state.covers_untracked() && self.writers.late_windows.is_empty() {
            self.writers.saved_untracked.clear();
        }
    }

    /// Records what a look at the workspace found. `request`: the one that
    /// ordered it, if any did.
    pub(crate) fn swept(&mut self, request: Option<RequestId>, swept: &Swept) {
        self.swept_files(&swept.changes);
        let was_late = !self.writers.late_windows.is_empty();
        let is_complete = swept.partial.is_none();
        self.writers.late_windows.looked(request, is_complete);
        if was_late {
            self.forget_saves();
            self.forget_witnesses();
        }
    }

    /// Records changes of files that nothing watches.
    pub(crate) fn swept_files(&mut self, changes: &[SweptFile]) {
        for change in changes {
            self.swept_file(change);
        }
    }

    fn swept_file(&mut self, change: &SweptFile) {
        let path = &change.path;
        // A tracked file was read already, and so was a file that a rename
        // brought, since the window's end comes after a fence (ATTR-16).
        let file = self.base.view().file_of(path);
        if self.base.tracker.passing(path).copy_of().is_some() {
            return;
        }
        let is_known = self.base.state.paths.contains_key(&file);
        if is_known && !self.base.is_mode_alone(&file, change) {
            return;
        }
        let known = self.base.state.command_files.get(path);
        let known = known.map(|known| known.held);
        let by = self.swept_by(change);
        let continues = by.is_none();
        let (command, decision, before) = match (by, known) {
            // Another look, which was ordered later, has found it already.
            (_, Some(known)) if change.before.is_none() && known.hash == change.after.hash => {
                return;
            }
            // The look before the window opened has confirmed what is recorded.
            (Some((command, decision)), known) => (command, decision, change.before.or(known)),
            // While a window is open, the next look after it tells what is not
            // its command's.
            (None, Some(known)) if known.hash != change.after.hash && !self.is_covered(path) => {
                (None, self.without_window(change), Some(known))
            }
            (None, _) => return,
        };
        let Decision::By {
            author,
            evidence,
            candidates,
            ..
        } = decision
        else {
            return;
        };
        // The log of the file continues here. No author is named for the
        // content before.
        if before.is_some() && !is_known && !continues {
            self.base.record(Fact::Baseline {
                path: path.clone(),
                held: match change.from {
                    Some(_) => Held::ABSENT,
                    None => before.unwrap_or(Held::ABSENT),
                },
                untracked: true,
                // A look follows no symlink.
                real: None,
            });
        }
        let kind = match (&change.from, before) {
            (Some(_), _) => VersionKind::Renamed,
            (None, None) if change.after.hash.is_some() => VersionKind::Modified,
            (None, None) => VersionKind::Deleted,
            (None, Some(before)) => kind_between(before.hash, change.after.hash),
        };
        let before = before.unwrap_or(Held::ABSENT);
        self.base.witnesses.swept(path, change.after);
        if let Some(from) = &change.from {
            self.base.witnesses.swept(from, Held::ABSENT);
        }
        let fact = VersionFact {
            from: change.from.clone(),
            before: before.hash,
            mode_before: before.mode.filter(|mode| change.after.mode != Some(*mode)),
            command,
            candidates,
            by_git: change.by_git,
            ..VersionFact::new(file, kind, change.after, author, evidence)
        };
        let n = self.base.record(Fact::Version(fact.clone()));
        self.base.counts.versions += 1;
        if self.base.subscribed {
            let marks = VersionMarks::default();
            let version = version_of(self.base.state.epoch, n, self.base.now, &fact, marks);
            let lines = Some((fact.before, fact.held.hash));
            self.base.publish(
                Happening::Version {
                    version,
                    lines: None,
                },
                lines,
            );
        }
    }

    /// Returns who changed an untracked file, and in which command, or `None`
    /// if no window covers it. A covering window was open the whole time since
    /// the last look, since the workspace is looked at whenever a window opens
    /// or ends. If such a look was not complete, the file's own time of change
    /// says which windows were open (SCOPE-5).
    fn swept_by(&self, change: &SweptFile) -> Option<(Option<u64>, Decision)> {
        let SweptFile { path, after, .. } = change;
        // Between the announcement and the start of a command, a person may
        // have been asked for minutes (ATTR-6).
        let had_begun = |command: u64| {
            let began = self.writers.command_starts.get(&command);
            is_after(change.changed_ms, began.copied())
        };
        let open = self.base.state.windows_on(path);
        let open = open.filter(|window| window.fact.workspace && had_begun(window.fact.command));
        let ended = self.writers.late_windows.iter();
        let ended = ended.filter(|late| late.had(change));
        let ended = ended.map(|late| &late.window);
        // A session may have been forgotten meanwhile.
        let state = &self.base.state;
        let is_known = |window: &&Command| state.sessions.contains_key(&window.fact.session);
        let ended = ended.filter(|window| is_known(window) && state.covers(window, path));
        let witnesses = &self.base.witnesses;
        let from = change.from.as_ref().unwrap_or(path);
        let wrote = |window: &&Command| {
            let mut names = [path, from].into_iter();
            names.any(|name| state.may_have_written(witnesses, window, name))
        };
        let mut windows: Vec<&Command> = open.chain(ended).filter(wrote).collect();
        windows.sort_by_key(|window| std::cmp::Reverse(window.n));
        let newest = windows.first()?;
        // An editor reported this content since the window opened (ATTR-2).
        if self.is_saved(path, after) {
            return Some((None, Decision::by_editor()));
        }
        let mut sessions: Vec<SessionId> = Vec::new();
        for window in &windows {
            if !sessions.contains(&window.fact.session) {
                sessions.push(window.fact.session.clone());
            }
        }
        let command = Some(newest.fact.command);
        let wrote = self.base.state.wrote_untracked(witnesses, &windows, change);
        let decision = match wrote {
            true => Decision::by_process(newest.fact.session.clone()),
            false => Decision::in_windows_of(sessions),
        };
        Some((command, decision))
    }

    /// Returns who changed a file while no window was open that covers it
    /// (SCOPE-9).
    fn without_window(&self, change: &SweptFile) -> Decision {
        match self.is_saved(&change.path, &change.after) {
            true => Decision::by_editor(),
            false => Decision::in_windows_of(Vec::new()),
        }
    }

    /// Returns whether a window is open that covers an untracked file.
    pub(crate) fn is_covered(&self, path: &RelPath) -> bool {
        let mut windows = self.base.state.windows_on(path);
        windows.any(|window| window.fact.workspace)
    }

    /// Returns whether an editor has reported a content of an untracked file.
    fn is_saved(&self, path: &RelPath, held: &Held) -> bool {
        let saved = self.writers.saved_untracked.get(path);
        saved.is_some_and(|saved| Some(*saved) == held.hash)
    }
}

impl Base {
    /// Whether a tracked file has another mode by the window that opened last,
    /// which no event's version tells: those are of contents (SCOPE-7).
    fn is_mode_alone(&self, file: &RelPath, change: &SweptFile) -> bool {
        let (Some(state), Some(before)) = (self.state.paths.get(file), change.before) else {
            return false;
        };
        let other = change.after.mode.is_some()
            && before
                .mode
                .is_some_and(|mode| change.after.mode != Some(mode));
        let told = state.latest().is_some_and(|latest| {
            latest
                .command()
                .is_some_and(|command| self.state.commands.contains_key(&command))
                && latest.mode == change.after.mode
        });
        let by_itself = *file == change.path && !before.is_link() && !change.after.is_link();
        by_itself && other && !told && state.held.hash == change.after.hash
    }
}
