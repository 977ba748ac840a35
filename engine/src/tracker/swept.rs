//! What commands did to files that nobody tracks (SCOPE-1). The log has it, the
//! state does not: such files cost neither watches nor memory.

use touchmark_proto::{Author, Evidence, Hash, RelPath, SessionId, VersionKind};

use crate::attribution::Decision;
use crate::engine::Engine;
use crate::input::SweptFile;
use crate::ledger::fold::kind_between;
use crate::ledger::recall::{VersionMarks, version_of};
use crate::ledger::record::{Fact, Held, VersionFact};
use crate::ledger::state::Command;
use touchmark_proto::events::Happening;

/// Saves that are remembered while windows are open.
const SAVES: usize = 1_024;

impl Engine {
    /// An editor has saved a file that nobody tracks.
    pub(crate) fn saved_untracked(&mut self, path: RelPath, hash: Hash) {
        let mut open = self.state.commands.values();
        if open.any(|window| window.fact.workspace) && self.saved_untracked.len() < SAVES {
            self.saved_untracked.insert(path, hash);
        }
    }

    /// Takes in what has changed in the workspace since it was looked at last.
    pub(crate) fn swept(&mut self, changes: &[SweptFile]) {
        for change in changes {
            self.swept_file(change);
        }
    }

    fn swept_file(&mut self, change: &SweptFile) {
        let path = &change.path;
        // What is tracked has been read already, and so has what a rename
        // brought: the window's end stands behind a fence (ATTR-16).
        let file = self.view().file_of(path);
        let known = self.state.paths.contains_key(&file);
        if known || self.tracker.passing(path).copy_of().is_some() {
            return;
        }
        let Some((command, decision)) = self.swept_by(path, change.after) else {
            return;
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
        let before = change.before.unwrap_or(Held::ABSENT);
        // Where its log goes on: nobody says who made it what it was.
        if change.before.is_some() {
            self.record(Fact::Baseline {
                path: path.clone(),
                held: match change.from {
                    Some(_) => Held::ABSENT,
                    None => before,
                },
                untracked: true,
            });
        }
        let kind = match (&change.from, change.before) {
            (Some(_), _) => VersionKind::Renamed,
            (None, None) if change.after.hash.is_some() => VersionKind::Modified,
            (None, None) => VersionKind::Deleted,
            (None, Some(_)) => kind_between(before.hash, change.after.hash),
        };
        let fact = VersionFact {
            from: change.from.clone(),
            before: before.hash,
            command,
            candidates,
            ..VersionFact::new(path.clone(), kind, change.after, author, evidence)
        };
        let n = self.record(Fact::Version(fact.clone()));
        self.counts.versions += 1;
        if self.heard {
            let marks = VersionMarks::default();
            let version = version_of(self.state.epoch, n, self.now, &fact, marks);
            let lines = Some((fact.before, fact.held.hash));
            self.publish(
                Happening::Version {
                    version,
                    lines: None,
                },
                lines,
            );
        }
    }

    /// Who changed a file that nobody tracks, and in which command: somebody
    /// whose window was open all the time since it was looked at last, since
    /// every window that opens or ends has the workspace looked at. `None`
    /// where there was none.
    fn swept_by(&self, path: &RelPath, after: Held) -> Option<(Option<u64>, Decision)> {
        let windows = || {
            let covering = self.state.windows_on(path);
            covering.filter(|window| window.fact.workspace)
        };
        let newest: &Command = windows().next()?;
        // ATTR-2: an editor reported it meanwhile.
        let saved = self.saved_untracked.get(path);
        if saved.is_some_and(|saved| Some(*saved) == after.hash) {
            let decision = Decision::By {
                author: Author::USER,
                evidence: Evidence::Editor,
                edit: None,
                formatted: false,
                candidates: Vec::new(),
            };
            return Some((None, decision));
        }
        let mut sessions: Vec<SessionId> = Vec::new();
        for window in windows() {
            if !sessions.contains(&window.fact.session) {
                sessions.push(window.fact.session.clone());
            }
        }
        let command = Some(newest.fact.command);
        Some((command, Decision::in_windows_of(sessions)))
    }
}
