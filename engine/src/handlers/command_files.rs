//! Changes of untracked files that commands wrote, while no command runs
//! (SCOPE-9).

use touchmark_proto::daemon::Synced;
use touchmark_proto::{Reply, Request};

use crate::disk::Found;
use crate::effect::{Question, Sweep};
use crate::input::SweptFile;
use crate::ledger::record::Held;
use crate::parts::Core;
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::requests::table::{Use, row};
use crate::view::View;

impl Core {
    /// Records what happened to the files that a request begins to track, up to
    /// the content that was read for it.
    pub(crate) fn command_files_read(&mut self, pending: &Pending, ask: &Request) {
        if self.base.state.command_files.is_empty() || row(ask).paths != Use::Tracks {
            return;
        }
        let mut changes = Vec::new();
        for (path, outcome) in &pending.reads.found {
            let after = match &outcome.found {
                Found::File(content) => Held::from(*content),
                Found::Absent => Held::ABSENT,
                _ => continue,
            };
            // The content behind a link is another file's.
            let is_link = outcome.real.is_some() || outcome.link.is_some();
            let is_covered = self.base.state.windows_on(path).next().is_some();
            if !is_link && !is_covered && self.base.state.command_files.contains_key(path) {
                changes.push(SweptFile {
                    path: path.clone(),
                    from: None,
                    before: None,
                    after,
                    changed_ms: None,
                    by_git: false,
                });
            }
        }
        self.swept(&changes);
    }
}

impl View<'_> {
    /// `sync`: answers once everything before it is recorded. A file that a
    /// command wrote is looked at, unless a command runs: the look at its end
    /// finds the change then.
    pub(crate) fn sync(self, pending: &Pending) -> Answered {
        let files = self.state.command_files();
        if !files.is_empty() && !self.state.covers_untracked() && pending.learned.is_none() {
            return Err(Stop::Learn(Question::Sweep(Sweep::Named(files))).into());
        }
        done(Reply::Sync(Synced {
            clock: self.state.clock(self.state.n),
            pending: pending.late(),
        }))
    }
}
