//! Reports to the service manager.

use super::Daemon;

impl Daemon {
    /// Reports to the service manager. The daemon is ready when it can answer
    /// immediately: after the comparison that a start begins with (ATTR-13).
    pub(super) fn tell_manager(&mut self) {
        if self.manager.is_heard() {
            let ready = !self.engine.is_reconciling();
            self.manager.turn(ready, self.summary(ready));
        }
    }

    /// Returns a line about the daemon's state.
    fn summary(&self, ready: bool) -> String {
        let counts = self.engine.counts();
        let mut line = format!(
            "{}: {} tracked files, {} sessions",
            self.options.workspace.display(),
            counts.tracked,
            counts.sessions
        );
        if !ready {
            line.push_str("; comparing with the disk");
        }
        if self.storage.trouble.is_some() {
            line.push_str("; the state cannot be stored");
        }
        if self.configuration.refused.is_some() {
            line.push_str("; the configuration was refused in part");
        }
        line
    }
}
