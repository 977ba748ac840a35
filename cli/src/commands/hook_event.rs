//! `touchmark hook AGENT`: one event of an agent's hook, asked of the daemon.
//!
//! It never stands in its agent's way: whatever goes wrong, and after 150 ms
//! at the latest, it prints `{}` and ends with 0. What the event was about is
//! kept then, and made up for with the next (HOOK-2).

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::ValueEnum as _;
use serde_json::Value;
use touchmark_client::blocking::Client;
use touchmark_client::proto::FreeJson;
use touchmark_client::proto::hooks::{HookAck, HookEvent, HookPrinted};
use touchmark_client::{Environment, Hello, Start, Workspace, connect_or_start, find};

use crate::args::Global;
use crate::commands::daemon::{Unanswered, place};
use crate::context;
use crate::output::Outcome;
use crate::settings::Agent;

/// From the start to the last word, in milliseconds.
const PATIENCE: u64 = 150;

/// The variable that says otherwise.
const PATIENCE_VARIABLE: &str = "TOUCHMARK_HOOK_MS";

/// How long it may take to keep what was not answered, where the machine or
/// the disk is busy.
const GRACE: Duration = Duration::from_millis(100);

/// The longest event, in bytes: the daemon takes no longer one.
const MAX_EVENT: u64 = 16 << 20;

/// The way that agents call it, without a look at the whole command line.
pub(crate) fn at_once(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != "hook" {
        return None;
    }
    let agent = Agent::from_str(arguments.next()?.to_str()?, false).ok()?;
    match arguments.next() {
        None => Some(serve(agent, &Global::default())),
        Some(_) => None,
    }
}

/// The same, with what the command line says.
pub(crate) fn run(agent: Agent, global: &Global) -> Outcome {
    let _always_0_unless_the_daemon_says_otherwise = serve(agent, global);
    Ok(())
}

/// Whether something has been printed. Who holds it prints.
static PRINTED: Mutex<bool> = Mutex::new(false);

/// The event to keep if the daemon does not answer in time, and the state
/// directory to keep it in.
static ASKED: Mutex<Asked> = Mutex::new(Asked::NotYet);

/// Something is known of what is asked.
static PREPARED: Condvar = Condvar::new();

enum Asked {
    /// The event is still being read.
    NotYet,
    /// There is something to keep.
    Kept(Box<(Unanswered, PathBuf)>),
    /// There is nothing.
    Nothing,
}

fn prepared(asked: Option<(Unanswered, PathBuf)>) {
    let asked = asked.map_or(Asked::Nothing, |asked| Asked::Kept(Box::new(asked)));
    *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = asked;
    PREPARED.notify_all();
}

/// What is not to be kept by now never will be.
fn nothing_more_to_keep() {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Asked::NotYet = *asked {
        *asked = Asked::Nothing;
        PREPARED.notify_all();
    }
}

fn serve(agent: Agent, global: &Global) -> ExitCode {
    let patience = std::env::var(PATIENCE_VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(PATIENCE);
    let until = Instant::now() + Duration::from_millis(patience.min(60_000));
    // Whatever hangs, be it the agent's pipe, a file system or the daemon.
    std::thread::spawn(move || {
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        give_up();
    });
    let Some((client, printed)) = ask(agent, global, until) else {
        nothing_more_to_keep();
        give_up();
    };
    if !print(&printed.stdout, &printed.stderr) {
        give_up();
    }
    if let Some(ack) = printed.ack {
        // What was not printed is told again.
        let left = until.saturating_duration_since(Instant::now());
        let _told_again = client.call_within(HookAck { ack }, left);
    }
    ExitCode::from(printed.exit)
}

/// Ends it without an answer. Who comes second waits for the end.
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

/// Prints, if nothing has been printed; says whether it has done so.
fn print(stdout: &str, stderr: &str) -> bool {
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    if std::mem::replace(&mut *printed, true) {
        return false;
    }
    let mut out = io::stdout().lock();
    let written = out
        .write_all(stdout.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    if !stderr.is_empty() {
        let _nobody_reads = io::stderr().write_all(stderr.as_bytes());
    }
    written.is_ok()
}

fn ask(agent: Agent, global: &Global, until: Instant) -> Option<(Client, HookPrinted)> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_EVENT)
        .read_to_end(&mut bytes)
        .ok()?;
    // What is no JSON is told as an empty text, so that it is counted.
    let input: Value = serde_json::from_slice(&bytes).unwrap_or_else(|_| "".into());
    let environment = Environment::read().ok()?;
    let workspace = match &global.workspace {
        Some(directory) => Workspace::at(directory, &environment).ok()?,
        None => Workspace::find(&directory(agent, &input)?, &environment).ok()?,
    };
    if !input.is_object() && !workspace.socket().exists() {
        return None;
    }
    // Where no daemon runs and none may be started, nobody would make up for it.
    if may_start(&workspace, global) || workspace.socket().exists() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let now = u64::try_from(now.as_millis()).ok()?;
        let unanswered = Unanswered::of(agent.name(), &input, now);
        prepared(unanswered.map(|unanswered| (unanswered, workspace.places.state.clone())));
    }
    let client = connect(&workspace, global, until)?;
    client.set_deadline(left(until)?);
    let event = HookEvent {
        agent: agent.name().to_owned(),
        input: FreeJson(input),
    };
    let printed = client.call(event).ok()?;
    Some((client, printed))
}

fn left(until: Instant) -> Option<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    (!left.is_zero()).then_some(left)
}

fn may_start(workspace: &Workspace, global: &Global) -> bool {
    !global.no_start && (workspace.is_marked() || global.workspace.is_some())
}

/// A connection. In what calls itself a workspace a daemon is started where
/// none runs; it is there for one of the next events, if not for this.
fn connect(workspace: &Workspace, global: &Global, until: Instant) -> Option<Client> {
    let hello = Hello {
        deadline: left(until)?,
        ..context::hello()
    };
    match workspace.connect_silent(&hello) {
        Ok(client) => Some(client),
        Err(error) if error.is_disconnected() => {
            if !may_start(workspace, global) {
                let environment = Environment::read().ok()?;
                let (mark, why) = find::passed_over(&workspace.root, &environment)?;
                warn(&format!("{} does not count: {why}", mark.display()));
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

/// A guard that is off is not off in silence.
fn warn(why: &str) {
    let why = crate::text::escaped(why, 2 * crate::text::MAX_NAME);
    let _nobody_reads = writeln!(io::stderr(), "touchmark: {why}");
}

/// Where to look for the workspace: at the file that the event is about, or
/// where the agent works, and where neither is said, where its hook runs.
fn directory(agent: Agent, input: &Value) -> Option<PathBuf> {
    let wanted = match place(agent.name(), input) {
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
    use clap::ValueEnum as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_file_decides_and_else_where_the_agent_works() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        let at = |agent: &str, input: Value| {
            let agent = Agent::from_str(agent, false).unwrap();
            let found = directory(agent, &input).unwrap();
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

    #[test]
    fn only_an_agents_own_call_takes_the_short_way() {
        let words = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            words.into_iter()
        };
        assert!(at_once(words("status")).is_none());
        assert!(at_once(words("hook install")).is_none());
        assert!(at_once(words("hook claude --help")).is_none());
        assert!(at_once(words("hook")).is_none());
    }
}
