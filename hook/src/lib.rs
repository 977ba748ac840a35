//! Sends one event of an agent's hook to the daemon, and prints the answer.
//!
//! It never blocks its agent. If anything fails, and after 150 ms at the
//! latest, it prints `{}` and exits with 0. The content of the event is then
//! stored, and the next event catches up (HOOK-2).
//!
//! Agents start it before and after every tool. So it is a library of its own,
//! of which a small program is made: the whole command takes longer to load than
//! an event takes.

mod witnessed;

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use touchmark_client::blocking::Client;
use touchmark_client::proto::daemon::Role;
use touchmark_client::proto::hooks::{HookAck, HookEvent, HookPrinted};
use touchmark_client::proto::off::BYPASS_VARIABLE;
use touchmark_client::proto::{FreeJson, quoting};
use touchmark_client::{Environment, Hello, Start, Workspace, connect_or_start, find};
use touchmark_daemon::agent::Agent;
use touchmark_daemon::{Unanswered, off, place};

/// The time budget from start to output, in milliseconds.
const PATIENCE: u64 = 150;

/// The variable that sets another time budget.
const PATIENCE_VARIABLE: &str = "TOUCHMARK_HOOK_MS";

/// How long storing an unanswered event may take, on a busy machine or disk.
const GRACE: Duration = Duration::from_millis(100);

/// The longest event, in bytes. The daemon accepts no longer one.
const MAX_EVENT: u64 = 16 << 20;

/// The longest message on standard error, in characters.
const MAX_MESSAGE: usize = 600;

/// Where a hook finds its daemon.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// The workspace; `None` for the one that the event is about.
    pub workspace: Option<&'a Path>,
    /// Do not start a daemon if none runs.
    pub no_start: bool,
}

/// Does what an agent's settings call this program for: `AGENT` serves the hook
/// of the agent with this name, `AGENT shell SHELL LINE` runs a line for it, and
/// `AGENT run PROGRAM ...` runs the agent. `None` for other arguments.
pub fn called(arguments: &[OsString]) -> Option<ExitCode> {
    let name = arguments.first()?.to_str()?;
    match &arguments[1..] {
        [] => serve(name, Options::default()),
        [word, shell, line] if word == "shell" => {
            Agent::named(name).map(|agent| witnessed::shell(agent, shell, line))
        }
        [word, program, arguments @ ..] if word == "run" => {
            Agent::named(name).map(|agent| witnessed::agent(agent, program, arguments))
        }
        _ => None,
    }
}

/// Serves the hook of the agent with this name: reads its event from standard
/// input and prints the answer. Returns the exit code that the agent expects.
/// `None` if there is no such agent. Then nothing is read.
pub fn serve(agent: &str, options: Options<'_>) -> Option<ExitCode> {
    Agent::named(agent).map(|agent| answered(agent, options))
}

/// Whether a thread prints or has printed.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// The event to store if the daemon does not answer in time, and the state
/// directory to store it in.
static ASKED: Mutex<Asked> = Mutex::new(Asked::NotYet);

/// Notified when [`ASKED`] is no longer `NotYet`.
static PREPARED: Condvar = Condvar::new();

enum Asked {
    /// The event is still being read.
    NotYet,
    /// There is an event to store.
    Kept(Box<(Unanswered, PathBuf)>),
    /// There is no event to store.
    Nothing,
}

fn prepared(asked: Option<(Unanswered, PathBuf)>) {
    let asked = asked.map_or(Asked::Nothing, |asked| Asked::Kept(Box::new(asked)));
    *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = asked;
    PREPARED.notify_all();
}

/// Marks an event that is still being read as not to be stored.
fn nothing_more_to_keep() {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Asked::NotYet = *asked {
        *asked = Asked::Nothing;
        PREPARED.notify_all();
    }
}

fn answered(agent: &'static Agent, options: Options<'_>) -> ExitCode {
    let patience = std::env::var(PATIENCE_VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(PATIENCE);
    let until = Instant::now() + Duration::from_millis(patience.min(60_000));
    // A watchdog for anything that hangs: the agent's pipe, a file system or
    // the daemon. Printing may hang as well, if the agent does not read.
    std::thread::spawn(move || {
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        std::thread::spawn(|| give_up());
        std::thread::sleep(2 * GRACE);
        std::process::exit(0);
    });
    let Some((client, printed)) = ask(agent, options, until) else {
        nothing_more_to_keep();
        give_up();
    };
    if !print(&printed.stdout, &printed.stderr) {
        give_up();
    }
    if let Some(ack) = printed.ack {
        // Changes in an answer that was not printed are reported again.
        let left = until.saturating_duration_since(Instant::now());
        let _told_again = client.call_within(HookAck { ack }, left);
    }
    ExitCode::from(printed.exit)
}

/// Exits without an answer. If another thread has printed already, waits for
/// its exit instead.
fn give_up() -> ! {
    if !print("{}", "") {
        loop {
            std::thread::park();
        }
    }
    let (done, kept) = channel();
    std::thread::spawn(move || {
        let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = PREPARED.wait_while(asked, |asked| matches!(asked, Asked::NotYet));
        let mut asked = asked.unwrap_or_else(PoisonError::into_inner);
        if let Asked::Kept(asked) = std::mem::replace(&mut *asked, Asked::Nothing) {
            let (unanswered, state) = *asked;
            let _full_or_read_only = unanswered.keep(&state);
        }
        done.send(())
    });
    let _hangs = kept.recv_timeout(GRACE);
    std::process::exit(0);
}

/// Prints, if nothing has been printed. Returns whether the output was written.
fn print(stdout: &str, stderr: &str) -> bool {
    if PRINTED.swap(true, Ordering::Relaxed) {
        return false;
    }
    let mut out = io::stdout().lock();
    let written = out
        .write_all(stdout.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    if !stderr.is_empty() {
        let _output_is_closed = io::stderr().write_all(stderr.as_bytes());
    }
    written.is_ok()
}

fn ask(agent: &Agent, options: Options<'_>, until: Instant) -> Option<(Client, HookPrinted)> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_EVENT)
        .read_to_end(&mut bytes)
        .ok()?;
    // Input that is not JSON is sent as an empty string, so that the daemon
    // counts it.
    let input: Value = serde_json::from_slice(&bytes).unwrap_or_else(|_| "".into());
    let environment = Environment::read().ok()?;
    let workspace = match options.workspace {
        Some(directory) => Workspace::at(directory, &environment).ok()?,
        None => Workspace::find(&directory(agent, &input)?, &environment).ok()?,
    };
    if !input.is_object() && !workspace.socket().exists() {
        return None;
    }
    // Where no daemon runs and none may be started, no later event would catch
    // up.
    if may_start(&workspace, options) || workspace.socket().exists() {
        let now = now()?;
        if is_off(agent, &workspace, now) {
            return None;
        }
        let unanswered = Unanswered::of(agent.name, &input, now);
        prepared(unanswered.map(|unanswered| (unanswered, workspace.places.state.clone())));
    }
    let client = connect(&workspace, options, until)?;
    client.set_deadline(left(until)?);
    let event = HookEvent {
        agent: agent.name.to_owned(),
        input: FreeJson(input),
    };
    let printed = client.call(event).ok()?;
    Some((client, printed))
}

/// Returns whether the user has switched touchmark off here (OFF-1). Then the
/// daemon is not asked.
fn is_off(agent: &Agent, workspace: &Workspace, now: u64) -> bool {
    let places = &workspace.places;
    let is_set = std::env::var_os(BYPASS_VARIABLE).is_some_and(|value| !value.is_empty());
    off::off(places, &workspace.root, now).is_some()
        || (is_set && off::is_bypassed(places, agent.name, &Agent::programs(), now))
}

/// Returns the time in Unix milliseconds.
fn now() -> Option<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(now.as_millis()).ok()
}

fn left(until: Instant) -> Option<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    (!left.is_zero()).then_some(left)
}

fn may_start(workspace: &Workspace, options: Options<'_>) -> bool {
    !options.no_start && (workspace.is_marked() || options.workspace.is_some())
}

/// Connects to the daemon. In a directory that is marked as a workspace, starts
/// a daemon if none runs. It will answer one of the next events, if not this
/// one.
fn connect(workspace: &Workspace, options: Options<'_>, until: Instant) -> Option<Client> {
    let hello = Hello {
        deadline: left(until)?,
        role: Some(Role::Tool),
        ..Hello::new("touchmark", env!("CARGO_PKG_VERSION"))
    };
    match workspace.connect_silent(&hello) {
        Ok(client) => Some(client),
        Err(error) if error.is_disconnected() => {
            if !may_start(workspace, options) {
                let environment = Environment::read().ok()?;
                let (mark, why) = find::passed_over(&workspace.root, &environment)?;
                warn(&format!("{} is ignored: {why}", mark.display()));
                return None;
            }
            connect_or_start(workspace, &hello, &Start::default()).ok()
        }
        Err(error) => {
            if error.code() == "place" {
                warn(&error.to_string());
            }
            None
        }
    }
}

/// Prints why the hook has no effect, on standard error.
fn warn(why: &str) {
    let why = quoting::escaped(why, MAX_MESSAGE);
    let _output_is_closed = writeln!(io::stderr(), "touchmark: {why}");
}

/// Returns where to look for the workspace: at the event's file, else in the
/// agent's working directory, else in the hook's.
fn directory(agent: &Agent, input: &Value) -> Option<PathBuf> {
    let wanted = match place(agent.name, input) {
        Some(place) => place,
        None => std::env::current_dir().ok()?,
    };
    // A directory that a tool is about to make does not exist yet.
    wanted
        .ancestors()
        .find(|directory| directory.is_dir())
        .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn the_file_decides_and_else_where_the_agent_works() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        let at = |agent: &str, input: Value| {
            let found = directory(Agent::named(agent).unwrap(), &input).unwrap();
            found.strip_prefix(&root).unwrap_or(&found).to_owned()
        };
        let (cwd, file) = (root.join("a"), root.join("a/b/new/er/x.rs"));
        let claude = |cwd: &Path, name: &str, tool: Value| {
            json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": cwd,
                "tool_name": name, "tool_input": tool})
        };
        assert_eq!(at("claude", json!({"cwd": cwd})), Path::new("a"));
        let edit = json!({"file_path": file});
        assert_eq!(at("claude", claude(&root, "Edit", edit)), Path::new("a/b"));
        let read = json!({"phase": "before", "sessionID": "s", "tool": "read", "cwd": cwd,
            "args": {"filePath": "b/x"}});
        assert_eq!(at("opencode", read), Path::new("a/b"));
        assert_eq!(
            at("cursor", json!({"workspace_roots": [cwd]})),
            Path::new("a")
        );
        let windsurf = json!({"agent_action_name": "pre_run_command", "trajectory_id": "s",
            "tool_info": {"command_line": "ls", "cwd": cwd}});
        assert_eq!(at("windsurf", windsurf), Path::new("a"));
        let patch = "*** Begin Patch\n*** Update File: b/x\n@@\n*** End Patch";
        let patch = claude(&cwd, "apply_patch", json!({"command": patch}));
        assert_eq!(at("codex", patch), Path::new("a/b"));
        let cat = claude(&cwd, "Bash", json!({"command": "cat b/x"}));
        assert_eq!(at("codex", cat), Path::new("a"));
        let here = std::env::current_dir().unwrap();
        for odd in [
            json!({}),
            json!({"cwd": "relative"}),
            json!(["odd"]),
            json!({"cwd": 7}),
        ] {
            assert_eq!(at("claude", odd), here);
        }
    }
}
