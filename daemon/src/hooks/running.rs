//! Finds the processes of an agent's command (ATTR-6). Agents give each command
//! a separate session of the operating system, so that they can end all of it.
//! The command's is the first process below the agent that leads such a session
//! and was started after the announcement. Where processes cannot be seen, the
//! window opens with the announcement and ends with the tool's answer.

use std::collections::HashSet;
use std::time::Duration;

use touchmark_engine::Input;
use touchmark_proto::commands::{CommandBegin, CommandScope};
use touchmark_proto::{Millis, SessionId};

use super::agent::Agent;
use super::daemon_handle::DaemonHandle;
use crate::system::clock;
use crate::system::proc;
use crate::system::process::{Placed, Process};

/// The maximum number of running commands that are remembered.
const MOST: usize = 256;

/// The first pause between two looks for a command's process.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between two looks for a command's process: the user may
/// have to permit the command, which can take minutes.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// In milliseconds: a command may have run entirely between two looks, and its
/// hook may be this late. So a look that saw nothing proves nothing about this
/// time span before it.
const SLACK: Millis = 10_000;

/// The age that a process must have: a younger one may be the shell of a hook
/// that has not started its program yet.
const SETTLED: Duration = Duration::from_millis(50);

/// The maximum number of processes that continue after their tool has answered.
const LEFT: usize = 16;

/// The maximum number of ancestors of a process that are followed.
const ABOVE: usize = 64;

/// The maximum length in bytes of a command that is looked for in what a shell
/// is told to run.
const TEXT: usize = 16 << 10;

/// The minimum length in bytes of a conversation's id that identifies processes
/// by their environment: a shorter one may be the value of any variable.
/// Agents' ids are UUIDs.
const ID: usize = 16;

/// The maximum time that the windows of such processes stay open, in
/// milliseconds.
const LONGEST: Millis = 24 * 60 * 60 * 1_000;

/// A command that was announced and has not returned.
#[derive(Clone, Debug)]
pub(super) struct Running {
    session: SessionId,
    call: String,
    /// The id of its window.
    window: String,
    /// The command, for people.
    label: Option<String>,
    /// The command; `None` if it is too long.
    text: Option<String>,
    /// Whether its window has a witness of its own.
    is_witnessed: bool,
    agent: Process,
    /// When it was announced: by the daemon's clock, and by the system's
    /// uptime.
    announced: (Millis, Duration),
    /// The sessions of the operating system that it leads.
    leads: Vec<u32>,
    /// The times at which no process of it was seen: those within the slack,
    /// and one before.
    nothing_at: Vec<Millis>,
    /// The process of the hook that announced it, and its ancestors.
    hook: Vec<Process>,
}

/// All commands that were announced and have not returned.
#[derive(Debug, Default)]
pub(super) struct Commands {
    under_way: Vec<Running>,
    /// The agents whose commands were found to lead sessions.
    leading: Vec<Process>,
}

/// The maximum time between the end of a command's processes and its agent's
/// report of it.
const TOLD_WITHIN: Duration = Duration::from_millis(300);

impl Commands {
    fn find(&mut self, session: &SessionId, call: &str) -> Option<&mut Running> {
        let is_it = |one: &&mut Running| one.session == *session && one.call == call;
        self.under_way.iter_mut().find(is_it)
    }

    fn take(&mut self, session: &SessionId, call: &str) -> Option<Running> {
        let is_it = |one: &Running| one.session == *session && one.call == call;
        let at = self.under_way.iter().position(is_it)?;
        Some(self.under_way.remove(at))
    }

    /// Returns the operating system's sessions of all running commands.
    fn led(&self) -> HashSet<u32> {
        let all = self.under_way.iter();
        all.flat_map(|one| one.leads.iter().copied()).collect()
    }

    fn add(&mut self, running: Running) {
        self.take(&running.session, &running.call);
        if self.under_way.len() >= MOST {
            self.under_way.remove(0);
        }
        self.under_way.push(running);
    }

    /// Finds the command that a process will run, which has these ancestors and
    /// runs one of these texts. Returns its window, and when it began. `None` if
    /// there is none, or if it has a witness.
    pub(super) fn begins(
        &mut self,
        process: &Placed,
        above: &[Process],
        texts: &[String],
    ) -> Option<(String, Millis)> {
        let is_in = |text: &String| texts.iter().any(|one| one.trim() == text.trim());
        let is_it = |one: &Running| {
            !one.is_witnessed && above.contains(&one.agent) && one.text.as_ref().is_some_and(is_in)
        };
        let at = self.under_way.iter().position(is_it)?;
        for other in &mut self.under_way {
            other.leads.retain(|leader| *leader != process.session);
        }
        let running = &mut self.under_way[at];
        running.is_witnessed = true;
        running.leads = vec![process.session];
        Some((running.window.clone(), running.began(process)))
    }

    /// Looks for a command's process below its agent. Returns its window, and
    /// when it began if it was found.
    fn look(
        &mut self,
        session: &SessionId,
        call: &str,
        below: &[Placed],
        now: Millis,
    ) -> Option<(String, Option<Millis>)> {
        let taken = self.led();
        let running = self.find(session, call).filter(|it| !it.is_witnessed)?;
        let known = !running.leads.is_empty();
        let began = running.look(below, &taken, now).filter(|_| !known);
        let (window, agent) = (running.window.clone(), running.agent);
        if began.is_some() && !self.leading.contains(&agent) {
            self.leading.truncate(MOST);
            self.leading.insert(0, agent);
        }
        Some((window, began))
    }

    /// Returns whether a command that runs for longer than the pause between
    /// two looks would have been found.
    fn would_be_seen(&self, running: &Running, agent: Option<&Agent>) -> bool {
        agent.is_some_and(|agent| agent.leads_sessions) || self.leading.contains(&running.agent)
    }
}

impl Running {
    /// Looks for this command's process among those below the agent. Returns
    /// when it began.
    fn look(&mut self, below: &[Placed], taken: &HashSet<u32>, now: Millis) -> Option<Millis> {
        let since = proc::ticks(self.announced.1);
        // A process that was started in the tick of the announcement may be its
        // hook.
        let mut own: Vec<&Placed> = below
            .iter()
            .filter(|one| one.process.start >= since && !self.hook.contains(&one.process))
            .filter(|one| one.session == one.process.pid && !taken.contains(&one.session))
            .collect();
        own.sort_by_key(|one| one.process.start);
        let Some(first) = own.first() else {
            let before = self.nothing_at.iter().rposition(|at| *at + SLACK < now);
            self.nothing_at.drain(..before.unwrap_or_default());
            self.nothing_at.push(now);
            return None;
        };
        self.leads.push(first.session);
        Some(self.began(first))
    }

    /// Returns when a process of it was started, by the daemon's clock.
    fn began(&self, process: &Placed) -> Millis {
        let ago = proc::since(process.process.start).saturating_sub(self.announced.1);
        self.announced.0 + u64::try_from(ago.as_millis()).unwrap_or_default()
    }

    /// Returns whether no look has found a process of the command.
    fn is_unseen(&self) -> bool {
        self.leads.is_empty() && !self.nothing_at.is_empty()
    }

    /// Returns the time at which the command had certainly not begun, if it has
    /// ended now.
    fn not_before(&self, now: Millis) -> Option<Millis> {
        let sure = self.nothing_at.iter().rev().find(|at| **at + SLACK < now);
        sure.copied()
    }

    /// Returns the processes of the command that continue, out of all
    /// processes.
    fn left<'a>(
        &self,
        all: &'a [Placed],
        hook: &[Process],
        taken: &HashSet<u32>,
        is_named: impl Fn(u32) -> bool,
    ) -> Vec<&'a Placed> {
        let place = |pid: u32| all.iter().find(|one| one.process.pid == pid);
        let own = place(self.agent.pid).map(|agent| agent.session);
        let hooks = hook.first().and_then(|hook| place(hook.pid));
        let passed: [Option<u32>; 2] = [own, hooks.map(|hook| hook.session)];
        let since = proc::ticks(self.announced.1);
        // A process is the command's if it, or one of its ancestors, is in a
        // session that the command leads.
        let is_own = |one: &Placed| {
            let mut next = Some(one);
            for _ in 0..ABOVE {
                match next {
                    Some(found) if self.leads.contains(&found.session) => return true,
                    Some(found) => next = place(found.parent),
                    None => return false,
                }
            }
            false
        };
        all.iter()
            .filter(|one| one.process.start >= since && !hook.contains(&one.process))
            .filter(|one| !passed.contains(&Some(one.session)) && !taken.contains(&one.session))
            .filter(|one| is_own(one) || is_named(one.process.pid))
            .take(LEFT)
            .collect()
    }
}

/// Looks for the process of a command that a hook has announced, until it is
/// found or the command has returned.
pub(super) fn await_begin(
    daemon: &DaemonHandle,
    session: &SessionId,
    call: &str,
    command: &str,
    window: &str,
    label: Option<String>,
) {
    let Some(agent) = daemon.memory.agents(|agents| agents.agent(session)) else {
        return;
    };
    let running = Running {
        session: session.clone(),
        call: call.to_owned(),
        window: window.to_owned(),
        label,
        text: (command.len() <= TEXT).then(|| command.to_owned()),
        is_witnessed: false,
        agent,
        announced: (daemon.cx.now, daemon.running),
        leads: Vec::new(),
        nothing_at: Vec::new(),
        hook: daemon.cx.process.map(proc::and_above).unwrap_or_default(),
    };
    daemon.memory.commands(|commands| commands.add(running));
    let (daemon, session, call) = (daemon.at_leisure(), session.clone(), call.to_owned());
    tokio::spawn(async move {
        let mut pause = FIRST_PAUSE;
        loop {
            let found = look(&daemon, &session, &call, SETTLED);
            match found {
                None => return,
                Some((window, Some(began))) => {
                    daemon.cx.inside.feed(Input::CommandBegan {
                        command: window.clone(),
                        time: began,
                    });
                    await_end(&daemon, &session, &call, window).await;
                    return;
                }
                Some((_, None)) => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        }
    });
}

/// Ends the window of a command whose processes have ended, if its agent may
/// not report that end.
async fn await_end(daemon: &DaemonHandle, session: &SessionId, call: &str, window: String) {
    let agent = daemon.memory.agents(|agents| agents.row(session));
    if !agent.is_some_and(|agent| agent.ends_unreported) {
        return;
    }
    let leads = |commands: &mut Commands| Some(commands.find(session, call)?.leads.clone());
    loop {
        let Some(leads) = daemon.memory.commands(leads) else {
            return;
        };
        let alive = tokio::task::spawn_blocking(move || {
            let mut all = proc::all();
            all.retain(|one| leads.contains(&one.session));
            all
        });
        let alive = alive.await.unwrap_or_default();
        for one in &alive {
            if proc::process_end(one.process.pid).await.is_err() {
                return;
            }
        }
        if alive.is_empty() {
            break;
        }
    }
    tokio::time::sleep(TOLD_WITHIN).await;
    if daemon.memory.commands(leads).is_some() {
        came_back(daemon, session, call).await;
        daemon
            .cx
            .inside
            .feed(Input::CommandUnanswered { command: window });
    }
}

/// Returns whether a process may be a command. A daemon that a hook has started
/// also leads a session, and so does the shell of another hook.
fn may_be_a_command(one: &Placed) -> bool {
    let runs_touchmark = |one: &Placed| proc::runs_this_program(one.process.pid);
    let leads = one.session == one.process.pid;
    !leads || !runs_touchmark(one) && !proc::children(one.session).iter().any(runs_touchmark)
}

/// Looks for a command among the processes below its agent that are older than
/// `older_than`. Returns its window, and when it began if it was found now.
/// `None` if the command is not running, or if its process has reported itself.
fn look(
    daemon: &DaemonHandle,
    session: &SessionId,
    call: &str,
    older_than: Duration,
) -> Option<(String, Option<Millis>)> {
    let agent = |commands: &mut Commands| Some(commands.find(session, call)?.agent);
    let agent = daemon.memory.commands(agent)?;
    let mut below = proc::children(agent.pid);
    let settled = clock::running().saturating_sub(older_than);
    below.retain(|one| proc::since(one.process.start) <= settled && may_be_a_command(one));
    let now = daemon.present();
    let look = |commands: &mut Commands| commands.look(session, call, &below, now);
    daemon.memory.commands(look)
}

/// Handles the end of a command's tool: its window ends, and each of its
/// processes that continues in the background gets a separate window.
pub(super) async fn came_back(daemon: &DaemonHandle, session: &SessionId, call: &str) {
    let hook = daemon.cx.process.map(proc::and_above).unwrap_or_default();
    // No further look is made here: hooks of this event are running now.
    let unseen = is_unseen(daemon, session, call);
    let taken = daemon.memory.commands(|commands| {
        let running = commands.take(session, call)?;
        Some((running, commands.led()))
    });
    let Some((running, taken)) = taken else {
        return;
    };
    let not_before = running.not_before(daemon.present()).filter(|_| unseen);
    if let Some(time) = not_before {
        daemon.cx.inside.feed(Input::CommandBegan {
            command: running.window.clone(),
            time,
        });
    }
    let mut left = open_left(daemon, &running, &hook, taken, &HashSet::new()).await;
    let daemon = daemon.at_leisure();
    tokio::spawn(async move {
        let mut known = HashSet::new();
        while !left.is_empty() {
            known.extend(left.iter().map(|one| one.session));
            for one in &left {
                let _not_told = proc::process_end(one.process.pid).await;
            }
            // The processes that these have started meanwhile continue.
            left = open_left(&daemon, &running, &[], HashSet::new(), &known).await;
        }
    });
}

/// Handles a command that will not return. Returns whether it never ran, since
/// it was declined before one of its processes was seen.
pub(super) fn never_ran(daemon: &DaemonHandle, session: &SessionId, call: &str) -> bool {
    // Young processes count too here, since no tool has answered whose hook
    // they could be.
    if let Some((window, Some(began))) = look(daemon, session, call, Duration::ZERO) {
        daemon.cx.inside.feed(Input::CommandBegan {
            command: window,
            time: began,
        });
    }
    let unseen = is_unseen(daemon, session, call);
    unseen
        && daemon
            .memory
            .commands(|commands| commands.take(session, call).is_some())
}

/// Returns whether no process of a command was seen although it would have
/// been.
fn is_unseen(daemon: &DaemonHandle, session: &SessionId, call: &str) -> bool {
    let agent = daemon.memory.agents(|agents| agents.row(session));
    daemon.memory.commands(|commands| {
        let Some(running) = commands.find(session, call).map(|one| one.clone()) else {
            return false;
        };
        running.is_unseen() && commands.would_be_seen(&running, agent)
    })
}

/// Forgets a command.
pub(super) fn forget(daemon: &DaemonHandle, session: &SessionId, call: &str) {
    daemon
        .memory
        .commands(|commands| commands.take(session, call));
}

/// Opens a window for each process of a command that continues; if `known` is
/// not empty, only for those in these sessions of the operating system.
async fn open_left(
    daemon: &DaemonHandle,
    running: &Running,
    hook: &[Process],
    taken: HashSet<u32>,
    known: &HashSet<u32>,
) -> Vec<Placed> {
    let (scanned, hook, known) = (running.clone(), hook.to_vec(), known.clone());
    let found = tokio::task::spawn_blocking(move || {
        let all = proc::all();
        // A sub-agent's id begins with its parent's id, and it has its parent's
        // environment.
        let id = scanned.session.as_str();
        let main = id.split('/').next().unwrap_or(id);
        let is_named = |pid| main.len() >= ID && proc::environment_says(pid, main);
        let left = scanned.left(&all, &hook, &taken, is_named).into_iter();
        left.filter(|one| may_be_a_command(one) && !proc::is_witness_or_ends(one.process.pid))
            .filter(|one| known.is_empty() || known.contains(&one.session))
            .copied()
            .collect::<Vec<Placed>>()
    });
    let left = found.await.unwrap_or_default();
    for one in &left {
        let begin = CommandBegin {
            label: running.label.clone(),
            pid: Some(one.process.pid),
            ttl_ms: Some(LONGEST),
            scope: Some(CommandScope::Workspace),
            // What sees the command sees this process as well.
            below: Some(running.window.clone()),
            ..CommandBegin::new(running.session.clone())
        };
        let _not_stored = daemon.ask(begin).await;
    }
    left
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::shell::evaluated;
    use super::*;

    fn placed(pid: u32, parent: u32, session: u32, start: u64) -> Placed {
        Placed {
            process: Process { pid, start },
            parent,
            session,
        }
    }

    fn running() -> Running {
        Running {
            session: SessionId::new("s").unwrap(),
            call: "c".to_owned(),
            window: "c1".to_owned(),
            label: None,
            text: Some("make all".to_owned()),
            is_witnessed: false,
            agent: Process { pid: 5, start: 10 },
            announced: (1_000_000, proc::since(1_000)),
            leads: Vec::new(),
            nothing_at: Vec::new(),
            hook: Vec::new(),
        }
    }

    #[test]
    fn the_first_leader_of_a_session_below_the_agent_is_the_commands() {
        let mut one = running();
        let nobody = HashSet::new();
        // A server from before the command, and a hook in the agent's own
        // session.
        let beside = [placed(6, 5, 6, 900), placed(7, 5, 2, 1_010)];
        assert_eq!(one.look(&beside, &nobody, 1_000_100), None);
        assert!(one.is_unseen());
        let all = [
            beside[0],
            beside[1],
            placed(9, 5, 9, 1_200),
            placed(8, 5, 8, 1_100),
        ];
        let taken = HashSet::from([9, 8]);
        assert_eq!(one.look(&all, &taken, 1_000_200), None, "another call's");
        // A hundred ticks after the announcement.
        assert_eq!(one.look(&all, &nobody, 1_005_000), Some(1_001_000));
        assert_eq!(one.leads, [8]);
        assert!(!one.is_unseen());
    }

    #[test]
    fn the_command_in_a_line_is_the_one_after_eval_that_has_no_witness() {
        let mut commands = Commands::default();
        for (call, text) in [("c", "make all"), ("d", "make"), ("e", "make all")] {
            commands.add(Running {
                call: call.to_owned(),
                window: call.to_owned(),
                text: Some(text.to_owned()),
                ..running()
            });
        }
        let above = [running().agent];
        let leader = placed(8, 5, 8, 1_100);
        let begins = |commands: &mut Commands, above: &[Process], line| {
            let found = commands.begins(&leader, above, &evaluated(line));
            found.map(|(window, began)| (window, began - 1_000_000))
        };
        for line in ["make all", "eval 'make al' && make all", "echo 'eval' x"] {
            assert_eq!(begins(&mut commands, &above, line), None, "{line}");
        }
        let line = "source x; eval 'make all' < /dev/null";
        assert_eq!(begins(&mut commands, &[], line), None, "of another agent");
        for window in ["c", "e"] {
            let found = begins(&mut commands, &above, line);
            assert_eq!(found, Some((window.to_owned(), 1_000)));
        }
        let taken: Vec<u32> = commands.led().into_iter().collect();
        assert_eq!(taken, [8], "the newest has it");
    }

    #[test]
    fn one_that_no_look_has_seen_began_after_a_look_long_before_its_end() {
        let mut one = running();
        for at in [1_000_000, 1_005_000, 1_020_000, 1_022_500] {
            one.look(&[], &HashSet::new(), at);
        }
        assert_eq!(one.not_before(1_025_000), Some(1_005_000));
        assert_eq!(one.not_before(1_007_500), None);
    }

    #[test]
    fn what_goes_on_is_of_its_sessions_below_the_agent_or_names_it() {
        let mut one = running();
        one.leads.push(20);
        one.leads.push(22);
        let all = [
            placed(2, 1, 2, 1),
            placed(5, 2, 2, 10),
            // The agent's own helpers, a hook, a server from before the
            // command.
            placed(11, 5, 2, 1_100),
            placed(12, 5, 12, 1_100),
            placed(13, 5, 13, 900),
            // The command's processes: left behind, in the background, and
            // detached.
            placed(21, 1, 20, 1_100),
            placed(22, 5, 22, 1_100),
            placed(23, 22, 23, 1_100),
            placed(24, 1, 24, 1_100),
            // Processes of other programs.
            placed(30, 1, 30, 1_100),
            placed(31, 5, 31, 1_100),
        ];
        let hook = [Process {
            pid: 12,
            start: 1_100,
        }];
        let taken = HashSet::from([31]);
        let left = one.left(&all, &hook, &taken, |pid| pid == 24);
        let left: Vec<u32> = left.iter().map(|one| one.process.pid).collect();
        assert_eq!(left, [21, 22, 23, 24]);
    }
}
