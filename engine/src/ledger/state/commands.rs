//! The newest commands, for later requests that name one (ATTR-6). The facts of
//! a command window are dropped once a snapshot covers them, so the state
//! remembers what is needed.

use touchmark_proto::commands::CommandRow;
use touchmark_proto::{Author, Evidence, Millis, RelPath, SessionId};

use super::State;
use crate::ledger::record::CommandFact;
use crate::ledger::state::PastCommand;
use crate::ledger::wire_names::command_name;
use crate::witnesses::Witnesses;

/// The maximum number of commands that are remembered.
const REMEMBERED: usize = 1_000;

impl State {
    /// Returns what is remembered of a command, or `None` if it is too old.
    pub fn past_command(&self, command: u64) -> Option<&PastCommand> {
        let at = self
            .past_commands
            .binary_search_by_key(&command, |past| past.command);
        self.past_commands.get(at.ok()?)
    }

    pub(super) fn past_command_mut(&mut self, command: u64) -> Option<&mut PastCommand> {
        let at = self
            .past_commands
            .binary_search_by_key(&command, |past| past.command);
        self.past_commands.get_mut(at.ok()?)
    }

    pub(super) fn remember_command(&mut self, n: u64, time: Millis, fact: &CommandFact) {
        // The list is sorted, since the numbers of commands only grow.
        let newest = self.past_commands.back().map(|past| past.command);
        if newest.is_some_and(|newest| newest >= fact.command) {
            return;
        }
        if self.past_commands.len() >= REMEMBERED {
            self.past_commands.pop_front();
        }
        self.past_commands.push_back(PastCommand {
            command: fact.command,
            session: fact.session.clone(),
            label: fact.label.clone(),
            begun: (n, time),
            ended: None,
            exit: None,
            branch_before: fact.branch.clone(),
            branch_after: None,
            versions: 0,
        });
    }

    /// Returns the command that wrote a version: the newest of the author's own
    /// windows, or the window of a formatter that followed the author's edit
    /// (ATTR-17).
    pub(crate) fn command_of(
        &self,
        path: &RelPath,
        author: &Author,
        evidence: Evidence,
        witnesses: &Witnesses,
    ) -> Option<u64> {
        if !evidence.is_of_command() {
            return None;
        }
        let session = author.session.as_ref()?;
        let windows = || {
            self.writing_windows(witnesses, path)
                .map(|window| &window.fact)
        };
        let own = windows().find(|window| window.session == *session);
        let written = own.or_else(|| windows().find(|window| window.formatter))?;
        Some(written.command)
    }

    /// Returns the newest command of a session during which fact `n` was recorded;
    /// `None` if there was none, or if it is too old.
    pub(crate) fn command_during(&self, session: &SessionId, n: u64) -> Option<u64> {
        let then = self.past_commands.iter().rev().find(|past| {
            let has_ended = past.ended.is_some_and(|(end, _)| end < n);
            past.session == *session && past.begun.0 < n && !has_ended
        })?;
        Some(then.command)
    }

    /// Returns a command as a row of an answer, without what a witness saw of it.
    pub fn command_row(&self, past: &PastCommand) -> CommandRow {
        CommandRow {
            command: command_name(past.command),
            session: past.session.clone(),
            session_label: self.label(&past.session).map(str::to_owned),
            label: past.label.clone(),
            begun: self.clock(past.begun.0),
            begun_at: past.begun.1,
            ended: past.ended.map(|(n, _)| self.clock(n)),
            ended_at: past.ended.map(|(_, time)| time),
            exit: past.exit,
            branch_before: past.branch_before.clone(),
            branch_after: past.branch_after.clone(),
            versions: past.versions,
            witnessed: false,
            unwitnessed: None,
        }
    }
}
