//! `command/begin`, `command/end`: command windows, in which a session runs
//! something that may write anywhere (ATTR-6).

use touchmark_proto::commands::{
    AgentWitness, AgentWitnessed, CommandBegin, CommandBegun, CommandEnd, CommandEnded,
    CommandList, CommandRow, CommandRows, CommandScope, CommandWitness,
};
use touchmark_proto::daemon::Done;
use touchmark_proto::events::Happening;
use touchmark_proto::{
    ConnectionId, Error, ErrorCode, Evidence, Millis, Reply, RequestId, SessionId,
};

use super::sessions::split;
use crate::attribution::Decision;
use crate::base::Base;
use crate::effect::{Answer, Effect, Question, Sweep};
use crate::globs::{Cover, Globs};
use crate::input::Learned;
use crate::ledger::record::{CommandFact, Fact};
use crate::ledger::state::PastCommand;
use crate::ledger::wire_names::{command_name, command_number, witness_name, witness_of};
use crate::observe::LateWindow;
use crate::parts::Core;
use crate::requests::limits::not_too_long;
use crate::requests::pending::{Answered, Ask, Pending, Stop, done};
use crate::text::shown::show_text;
use crate::text::tokens::masked;
use crate::timers::Timer;
use crate::witnesses::Seen;

/// The maximum number of characters of a label that are kept.
const LABEL: usize = 200;

/// The maximum number of commands in a list, unless the request names another
/// limit.
const LISTED: u32 = 100;

/// What a look at the whole workspace found about a window.
#[derive(Default)]
pub(super) struct WindowSwept {
    branch: Option<String>,
    partial: Option<String>,
    /// The request that ordered the look, if the look has not returned.
    awaits: Option<RequestId>,
}

impl WindowSwept {
    pub(super) fn of(request: RequestId, pending: &Pending) -> Self {
        match &pending.learned {
            Some(Ok(Learned::Swept(swept))) => Self {
                branch: swept.branch.clone(),
                partial: swept.partial.clone(),
                awaits: None,
            },
            Some(Err(error)) => Self {
                branch: None,
                partial: Some(error.message.clone()),
                awaits: Some(request),
            },
            _ => Self::default(),
        }
    }
}

impl Core {
    /// Opens a command window. What was written earlier is recorded before the
    /// fence, and so before the window (ATTR-16).
    pub(crate) fn command_begin(
        &mut self,
        request: RequestId,
        pending: &Pending,
        ask: &CommandBegin,
    ) -> Answered {
        not_too_long(&[("callId", ask.call_id.as_ref())])?;
        self.base.view().may_open_window(&ask.session)?;
        let globs = match Globs::requested(
            ask.paths.as_deref(),
            &self.base.config.root,
            self.base.config.case_insensitive,
        ) {
            Ok(globs) => globs,
            Err(reason) => return Err(Error::invalid(show_text(&reason)).into()),
        };
        let workspace = ask.scope == Some(CommandScope::Workspace);
        let outer = ask.below.as_deref().and_then(witness_of);
        let witnesses = &self.base.witnesses;
        let is_told = ask.witness
            || outer.is_some_and(|outer| witnesses.may_tell(outer))
            || witnesses.expects(&ask.session);
        if workspace && pending.learned.is_none() {
            let sweep = match is_told {
                true => Question::Sweep(Sweep::Opening(self.base.state.command_files())),
                false => self.sweep(),
            };
            return Err(Stop::Learn(sweep).into());
        }
        let WindowSwept {
            branch, partial, ..
        } = WindowSwept::of(request, pending);
        if workspace {
            // What was saved before has been looked at.
            self.forget_saves();
        }
        self.base.ensure_session(&ask.session);
        let command = self.base.state.commands_begun + 1;
        let deadline = self
            .base
            .now
            .saturating_add(ask.ttl_ms.unwrap_or(self.base.config.command_ttl));
        self.base.record(Fact::CommandBegun(CommandFact {
            command,
            session: ask.session.clone(),
            call: ask.call_id.clone(),
            // Masked before it is cut off: half of a token cannot be
            // recognised.
            label: ask
                .label
                .as_ref()
                .map(|label| masked(label).chars().take(LABEL).collect()),
            globs,
            deadline,
            bound: pending
                .connection()
                .filter(|_| ask.bind)
                .map(|connection| connection.0),
            pid: ask.pid,
            formatter: ask.formatter,
            workspace,
            branch,
        }));
        self.base.timers.insert((deadline, Timer::Command(command)));
        if partial.is_some() || is_told {
            let now = self.base.now;
            self.writers.command_starts.insert(command, now);
        }
        if let Some(outer) = outer {
            self.base.witnesses.is_below(command, outer, self.base.now);
        }
        if ask.witness {
            self.base.await_witness(command);
        }
        if let Some(pid) = ask.pid {
            self.base.out.push(Effect::AwaitProcess(pid));
        }
        done(Reply::CommandBegin(CommandBegun {
            command: command_name(command),
            deadline,
            partial,
        }))
    }

    /// Ends a command window and reports what the command did to files that the
    /// session tracks. `modified/take` does not report that again (MOD-1).
    pub(crate) fn command_end(
        &mut self,
        request: RequestId,
        pending: &Pending,
        ask: &CommandEnd,
    ) -> Answered {
        let command = match (&ask.command, &ask.session) {
            (Some(name), _) => command_number(name)
                .filter(|command| self.base.state.commands.contains_key(command)),
            (None, Some(session)) => self
                .base
                .state
                .commands
                .values()
                .rev()
                .find(|open| {
                    open.fact.session == *session
                        && (ask.call_id.is_none() || open.fact.call == ask.call_id)
                })
                .map(|open| open.fact.command),
            (None, None) => {
                return Err(Error::invalid("name the command, or its session and callId").into());
            }
        };
        let Some(open) = command.and_then(|command| self.base.state.commands.get(&command)) else {
            return Err(unknown_command(ask.command.as_deref()).into());
        };
        if open.fact.workspace && pending.learned.is_none() {
            return Err(Stop::Learn(self.sweep_at_end(open.fact.command)).into());
        }
        let (command, session, begun) = (open.fact.command, open.fact.session.clone(), open.n);
        let cover = open.cover.clone();
        let swept = WindowSwept::of(request, pending);
        self.close_command(command, ask.exit, &swept);
        // What the command did in other windows of the session that are still
        // open is reported here as well, since those may stay open for a long
        // time.
        let mut listed = self.base.view().listing_with_commands(&session);
        listed.retain(|row| {
            row.lost.is_none()
                && cover.covers(&row.change.path)
                && self
                    .base
                    .view()
                    .command_version(&session, &row.change.path)
                    .is_some_and(|n| n > begun)
        });
        let limit = self.base.config.list_limit as usize;
        let more = listed.len() > limit;
        listed.truncate(limit);
        self.base.deliver(&session, &listed);
        let (changes, lines) = split(listed, limit);
        Ok(Answer {
            reply: Reply::CommandEnd(CommandEnded {
                changes,
                more: more.then_some(true),
                command: self
                    .base
                    .state
                    .past_command(command)
                    .map(|past| self.base.command_row(past)),
                partial: swept.partial,
            }),
            lines,
            previews: Vec::new(),
        })
    }

    /// Returns the question that orders a look at the whole workspace.
    pub(crate) fn sweep(&self) -> Question {
        let state = &self.base.state;
        // A window that is about to open will be open when this look is made.
        Question::Sweep(
            match state.covers_untracked() || self.requests.opens_window() {
                true => Sweep::InWindow(self.base.witnesses.all_marked()),
                false => Sweep::Between(state.command_files()),
            },
        )
    }

    /// Returns the question that orders a look before a window ends. If a witness
    /// has seen all writes of its command, only the marked files are looked at.
    pub(crate) fn sweep_at_end(&self, command: u64) -> Question {
        match self.base.witnesses.marked(command) {
            Some(marked) => Question::Sweep(Sweep::Marked(marked)),
            None => self.sweep(),
        }
    }

    /// Ends a window whose deadline has passed or whose process has ended.
    /// Returns `false` if the shell first has to look at what was done in it.
    pub(crate) fn end_in_time(
        &mut self,
        request: RequestId,
        command: u64,
        pending: &Pending,
    ) -> bool {
        let open = self.base.state.commands.get(&command);
        if open.is_some_and(|open| open.fact.workspace) && pending.learned.is_none() {
            return false;
        }
        self.close_command(command, None, &WindowSwept::of(request, pending));
        true
    }

    /// Ends a window, if it is open. `swept`: the look that was made for it.
    pub(super) fn close_command(&mut self, command: u64, exit: Option<i32>, swept: &WindowSwept) {
        let Some(open) = self.base.state.commands.get(&command) else {
            return;
        };
        let (session, deadline) = (open.fact.session.clone(), open.fact.deadline);
        if open.fact.workspace && swept.partial.is_some() {
            self.writers.late_windows.add(LateWindow {
                window: open.clone(),
                began: self.writers.command_starts.get(&command).copied(),
                ended: self.base.now,
                awaits: swept.awaits,
            });
        }
        let beside: Vec<u64> = self
            .base
            .state
            .commands
            .values()
            .filter(|other| other.fact.session == session && other.fact.command != command)
            .map(|other| other.fact.command)
            .collect();
        let n = self.base.record(Fact::CommandEnded {
            command,
            session,
            exit,
            branch: swept.branch.clone(),
        });
        if let Some(past) = self.base.state.past_command(command) {
            let (session, began, now) = (&past.session, past.begun.1, self.base.now);
            self.base.witnesses.note_end(command, session, began, now);
            let command = self.base.command_row(past);
            self.base.publish(Happening::Command { command }, None);
        }
        self.forget_saves();
        self.forget_witnesses();
        self.writers.commands_beside.remove(&command);
        self.writers.command_starts.remove(&command);
        self.writers
            .commands_beside
            .extend(beside.into_iter().map(|other| (other, n)));
        self.base
            .timers
            .remove(&(deadline, Timer::Command(command)));
        if let Some(until) = self.writers.command_graces.remove(&command) {
            self.base.timers.remove(&(until, Timer::Command(command)));
        }
    }

    /// Forgets the witnesses of windows that have ended, once nothing that is
    /// looked at later can be their commands'.
    pub(crate) fn forget_witnesses(&mut self) {
        let (open, late) = (&self.base.state.commands, &self.writers.late_windows);
        let is_late = |window| late.iter().any(|late| late.window.fact.command == window);
        let is_needed = |window| open.contains_key(&window) || is_late(window);
        self.base.witnesses.retain(is_needed);
    }

    /// Ends a window whose command never ran. Versions that were attributed to
    /// it are attributed again. Another window of the session that was open at
    /// the same time may have written them.
    pub(crate) fn withdraw_command(&mut self, command: u64) {
        let Some(open) = self.base.state.commands.get(&command) else {
            return;
        };
        let (session, cover) = (open.fact.session.clone(), open.cover.clone());
        let beside = self.writers.commands_beside.get(&command).copied();
        let since = beside.unwrap_or_default().max(open.n);
        self.close_command(command, None, &WindowSwept::default());
        self.withdraw_claims(command, &session, &cover, since, None);
    }

    /// Attributes again the versions that were attributed to a window before
    /// its command began.
    pub(crate) fn withdraw_before(&mut self, command: u64, time: Millis) {
        let Some(open) = self.base.state.commands.get(&command) else {
            return;
        };
        let (session, cover) = (open.fact.session.clone(), open.cover.clone());
        let beside = self.writers.commands_beside.get(&command).copied();
        let since = beside.unwrap_or_default().max(open.n);
        self.writers.command_starts.insert(command, time);
        self.withdraw_claims(command, &session, &cover, since, Some(time));
    }

    /// Attributes again the versions that were attributed to a session's window
    /// after fact `since` and, if `before` is set, before that time.
    fn withdraw_claims(
        &mut self,
        command: u64,
        session: &SessionId,
        cover: &Cover,
        since: u64,
        before: Option<Millis>,
    ) {
        let mut others = self.base.state.commands.values();
        let another =
            others.any(|other| other.fact.session == *session && other.fact.command != command);
        if another || command <= self.writers.inherited_commands {
            return;
        }
        let mut claimed = Vec::new();
        for (path, state) in self.base.state.paths.iter() {
            let versions = state.versions.iter().rev();
            let lately = versions.take_while(|kept| kept.n > since);
            let own = lately.filter(|kept| {
                kept.evidence == Evidence::Command
                    && !kept.formatted
                    && kept.is_by(session)
                    && before.is_none_or(|before| kept.time < before)
            });
            for kept in own.filter(|_| cover.covers(path)) {
                let mut candidates = kept.candidates().to_vec();
                candidates.retain(|candidate| candidate != session);
                claimed.push((path.clone(), kept.n, candidates));
            }
        }
        // In the order in which the versions were recorded.
        claimed.sort_by_key(|(_, n, _)| *n);
        for (path, n, candidates) in claimed {
            let decision = Decision::in_windows_of(candidates);
            self.base.amend_by(&path, n, decision, false);
        }
    }

    /// Ends a window whose deadline has passed. A deadline takes effect after a
    /// fence (ATTR-16).
    pub(crate) fn command_due(&mut self, command: u64) {
        let Some(open) = self.base.state.commands.get(&command) else {
            return;
        };
        let grace = self.writers.command_graces.get(&command);
        if self.base.now >= open.fact.deadline || grace.is_some_and(|until| self.base.now >= *until)
        {
            self.ask_internally(Ask::EndCommand(command));
        }
    }

    /// Ends the windows that name a process which has ended. Everything that
    /// the process wrote, it wrote before its end, and so before the fence.
    pub(crate) fn process_ended(&mut self, pid: u32) {
        let named: Vec<u64> = self
            .base
            .state
            .commands
            .values()
            .filter(|open| open.fact.pid == Some(pid))
            .map(|open| open.fact.command)
            .collect();
        for command in named {
            self.ask_internally(Ask::EndCommand(command));
        }
        self.base.witnesses.process_ended(pid);
        self.forget_witnesses();
    }

    /// Ends a window whose opening the client never received. No client will
    /// end it, and the user's changes would be attributed to the session.
    pub(crate) fn command_unanswered(&mut self, name: &str) {
        if let Some(command) = command_number(name) {
            self.ask_internally(Ask::EndCommand(command));
        }
    }

    /// Ends a window whose command never ran, for example because the user
    /// declined it.
    pub(crate) fn command_never_ran(&mut self, name: &str) {
        if let Some(command) = command_number(name) {
            self.ask_internally(Ask::WithdrawCommand(command));
        }
    }

    /// Handles the beginning of the first process of a window's command.
    pub(crate) fn command_began(&mut self, name: &str, time: Millis) {
        if let Some(command) = command_number(name) {
            self.ask_internally(Ask::CommandBegan(command, time));
        }
    }

    /// Starts the grace of the windows that were bound to a connection which
    /// has ended (ATTR-9).
    pub(crate) fn unbind_commands(&mut self, connection: ConnectionId) {
        let bound: Vec<u64> = self
            .base
            .state
            .commands
            .values()
            .filter(|open| {
                open.fact.bound == Some(connection.0)
                    && open.fact.command > self.writers.inherited_commands
            })
            .map(|open| open.fact.command)
            .collect();
        for command in bound {
            self.give_grace(command, self.base.config.bind_grace);
        }
    }

    /// Keeps windows open that were open when the daemon ended (ATTR-9). A
    /// bound window has lost its connection. It may have asked for more time
    /// than an unbound window gets, so its time is limited.
    pub(crate) fn resume_commands(&mut self) {
        let open: Vec<CommandFact> = self
            .base
            .state
            .commands
            .values()
            .map(|open| open.fact.clone())
            .collect();
        for fact in open {
            self.base
                .timers
                .insert((fact.deadline, Timer::Command(fact.command)));
            if fact.bound.is_some() {
                self.give_grace(fact.command, self.base.config.command_ttl);
            }
            if let Some(pid) = fact.pid {
                self.base.out.push(Effect::AwaitProcess(pid));
            }
        }
    }

    fn give_grace(&mut self, command: u64, grace: u64) {
        let until = self.base.now.saturating_add(grace);
        self.writers.command_graces.insert(command, until);
        self.base.timers.insert((until, Timer::Command(command)));
    }
}

impl Base {
    /// `command/witness`: a witness for a window whose command has not begun.
    pub(crate) fn command_witness(&mut self, ask: &CommandWitness) -> Answered {
        let command = command_number(&ask.command)
            .filter(|command| self.state.commands.contains_key(command))
            .ok_or_else(|| unknown_command(Some(&ask.command)))?;
        if self.witnesses.is_seen(command) {
            let message = format!("{} has a witness", show_text(&ask.command));
            return Err(Error::new(ErrorCode::NotFound, message).into());
        }
        self.await_witness(command);
        done(Reply::CommandWitness(Done {}))
    }

    /// Announces the witness of a window. Its ring is made before the answer.
    fn await_witness(&mut self, command: u64) {
        self.witnesses.announce(command);
        self.out.push(Effect::Witness(Seen::Window(command)));
    }

    /// `agent/witness`: a witness for an agent that has not begun.
    pub(crate) fn agent_witness(&mut self, ask: &AgentWitness) -> Answered {
        let Some(pid) = ask.pid else {
            return Err(Error::invalid("name the process that will run the agent").into());
        };
        let seen = self.witnesses.announce_agent(pid, self.now);
        self.out.push(Effect::Witness(seen));
        self.out.push(Effect::AwaitProcess(pid));
        done(Reply::AgentWitness(AgentWitnessed {
            witness: witness_name(seen),
        }))
    }
}

impl Base {
    /// Answers `command/list`: the newest commands.
    pub(crate) fn command_list(&self, ask: &CommandList) -> Answered {
        let asked = ask.limit.unwrap_or(LISTED) as usize;
        let newest = self.state.past_commands.iter().rev();
        let of_session = newest.filter(|past| {
            let session = ask.session.as_ref();
            session.is_none_or(|session| *session == past.session)
        });
        let rows = of_session.map(|past| self.command_row(past));
        done(Reply::CommandList(CommandRows {
            commands: rows.take(asked).collect(),
        }))
    }

    /// Returns a command as a row of an answer.
    fn command_row(&self, past: &PastCommand) -> CommandRow {
        let mut row = self.state.command_row(past);
        let outcome = self.witnesses.outcome(past.command);
        row.witnessed = outcome == Some(None);
        row.unwitnessed = outcome.flatten();
        row
    }
}

fn unknown_command(command: Option<&str>) -> Error {
    let message = match command {
        Some(name) => format!("there is no open command {}", show_text(name)),
        None => "the session has no such command open".to_owned(),
    };
    Error::new(ErrorCode::NotFound, message)
        .hint("the command has ended; `modified/take` returns what it changed")
}
