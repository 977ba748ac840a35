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
                changes.push(SweptFile::new(path.clone(), None, after));
            }
        }
        self.swept_files(&changes);
    }

    /// `sync`: answers once everything before it is recorded. A file that a
    /// command wrote is looked at, and a look that is not complete goes on,
    /// unless a command runs: the look at its end does that then.
    pub(crate) fn sync(&self, pending: &Pending) -> Answered {
        let state = &self.base.state;
        let files = state.command_files();
        let is_behind = self.writers.late_windows.is_behind();
        let asks = (is_behind || !files.is_empty()) && !state.covers_untracked();
        if asks && pending.learned.is_none() {
            return Err(Stop::Learn(Question::Sweep(Sweep::Named(files))).into());
        }
        done(Reply::Sync(Synced {
            clock: state.clock(state.n),
            pending: pending.late(),
        }))
    }
}
