//! Runs what was installed, as the agent would, and checks whether it works.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use touchmark_client::blocking::Client;
use touchmark_client::proto::SessionId;
use touchmark_client::proto::daemon::Status;
use touchmark_client::proto::sessions::SessionClose;
use touchmark_client::{WITNESS_BINARY, Workspace, witness_program};

use crate::context::Context;
use crate::daemon;
use crate::output::Failure;
use crate::project;
use crate::settings::{Agent, Installed, Kind, TEST_SESSION};
use crate::system::files::{in_path, is_program};
use crate::text::{count, directory};

/// How long something that was installed may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why something is not known to work.
pub(super) enum Unproved {
    /// It was not tested; with the reason.
    Untried(String),
    /// It was tested and failed; with the failure.
    Failed(String),
}

impl From<Failure> for Unproved {
    fn from(failure: Failure) -> Self {
        Self::Failed(format!("there is no daemon: {failure}"))
    }
}

fn failed<T>(why: impl Into<String>) -> Result<T, Unproved> {
    Err(Unproved::Failed(why.into()))
}

/// Tests one thing in an agent's settings, and returns the result.
pub(super) fn run(
    context: &Context,
    workspace: &Workspace,
    agent: Agent,
    what: &Installed,
) -> Result<String, Unproved> {
    match what.kind {
        Kind::Hooks => hook(context, workspace, agent, what),
        Kind::Plugin => {
            let own =
                std::env::current_exe().map_err(|error| Unproved::Untried(error.to_string()))?;
            let own = own.to_string_lossy().into_owned();
            let instead = Installed {
                command: vec![own, "hook".into(), agent.name().to_owned()],
                event: agent.plain_event().into(),
                ..what.clone()
            };
            let said = hook(context, workspace, agent, &instead)?;
            Ok(format!("{said} as the plug-in would send it"))
        }
        Kind::Server => server(&workspace.root, what),
        Kind::Witness => witness(what),
        Kind::Shim => shim(what),
    }
}

/// Runs a command as the agent would, and another one witnessed.
fn witness(what: &Installed) -> Result<String, Unproved> {
    let [script] = &what.command[..] else {
        return Err(Unproved::Failed("the setting names no file".into()));
    };
    let ran = Command::new(script).arg("exit 7").output();
    match ran.map(|ran| ran.status.code()) {
        Ok(Some(7)) => {}
        Ok(code) => return failed(format!("the command ended with {code:?}")),
        Err(error) => return failed(error.to_string()),
    }
    witnessed()
}

/// Checks that a file comes first on the PATH, and runs a command witnessed.
fn shim(what: &Installed) -> Result<String, Unproved> {
    let name = what.path.file_name().unwrap_or_default();
    let first = name.to_str().and_then(|name| in_path(name, is_program));
    if first.as_deref() != Some(&what.path) {
        let above = what.path.parent().unwrap_or(&what.path);
        return Err(Unproved::Untried(format!(
            "add `export PATH=\"{}:$PATH\"` at the end of your shell's startup file",
            above.display()
        )));
    }
    witnessed()
}

/// Runs a command below the witness.
fn witnessed() -> Result<String, Unproved> {
    let program = witness_program().ok_or_else(|| {
        Unproved::Failed(format!(
            "{WITNESS_BINARY} is not installed next to touchmark"
        ))
    })?;
    match daemon::probe_witness(&program) {
        Ok(()) => Ok("tried".into()),
        Err(why) => failed(format!("commands cannot be witnessed here: {why}")),
    }
}

/// Sends one event of a separate session, which the daemon counts and then
/// forgets.
fn hook(
    context: &Context,
    workspace: &Workspace,
    agent: Agent,
    what: &Installed,
) -> Result<String, Unproved> {
    if !project::is_one(workspace) && context.global.workspace.is_none() {
        return Err(Unproved::Untried(format!(
            "{} is no workspace, with neither a .git nor a .touchmark.toml",
            directory(&workspace.root)
        )));
    }
    if !workspace.is_running() && context.global.no_start {
        return Err(Unproved::Untried("no daemon runs".into()));
    }
    let client = context.connect(workspace)?;
    let session = format!("{TEST_SESSION}{}-{}", agent.name(), std::process::id());
    let mut said = sent(&workspace.root, &client, agent, what, &session)?;
    if !said.1 {
        // An event of the agent itself may have arrived in between.
        said = sent(&workspace.root, &client, agent, what, &session)?;
    }
    if let Ok(session) = SessionId::new(&session) {
        let _never_opened = client.call(SessionClose::new(session).forget(true));
    }
    match said {
        (_, true) => Ok(format!("tried: the daemon has counted a {}", what.event)),
        (said, false) => failed(format!(
            "the daemon has counted nothing; the command said: {}",
            if said.trim().is_empty() {
                "nothing"
            } else {
                said.trim()
            }
        )),
    }
}

/// Sends the event. Returns the hook's output, and whether the daemon has
/// received the event.
fn sent(
    root: &Path,
    client: &Client,
    agent: Agent,
    what: &Installed,
    session: &str,
) -> Result<(String, bool), Unproved> {
    let shown = root.to_string_lossy();
    // The fields have the names that each of the agents uses.
    let event = json!({
        "session_id": session, "sessionId": session, "sessionID": session,
        "conversation_id": session, "trajectory_id": session,
        "hook_event_name": what.event, "hookEventName": what.event, "phase": what.event,
        "agent_action_name": what.event, "event": what.event,
        "cwd": shown, "working_dir": shown, "workspace_roots": [shown], "source": "startup",
    });
    let mut running = start(root, what)?;
    running.tell(&event)?;
    let said = running.all()?;
    let status = client.call(Status {}).map_err(Failure::from)?;
    let name = agent.name();
    let heard = status
        .agents
        .iter()
        .any(|heard| heard.agent == name && heard.last_session.as_str() == session);
    Ok((said, heard))
}

/// Asks an MCP server for its tools.
fn server(root: &Path, what: &Installed) -> Result<String, Unproved> {
    let mut running = start(root, what)?;
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "touchmark setup", "version": env!("CARGO_PKG_VERSION") },
    });
    running.tell(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}))?;
    running.answer(1)?;
    running.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
    running.tell(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}))?;
    let answer = running.answer(2)?;
    match answer["result"]["tools"].as_array().map(Vec::len) {
        Some(tools) if tools > 0 => Ok(format!("tried: it has {}", count(tools as u64, "tool"))),
        _ => failed(format!("it listed no tools: {answer}")),
    }
}

/// A running command that was installed.
struct Running {
    child: Child,
    lines: Receiver<String>,
    until: Instant,
}

fn start(root: &Path, what: &Installed) -> Result<Running, Unproved> {
    let Some((program, arguments)) = what.command.split_first() else {
        return failed("there is no command in it");
    };
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .env("TOUCHMARK_HOOK_MS", PATIENCE.as_millis().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| Unproved::Failed(format!("{program} does not run: {error}")))?;
    let (sender, lines) = channel();
    if let Some(out) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    Ok(Running {
        child,
        lines,
        until: Instant::now() + PATIENCE,
    })
}

impl Running {
    fn tell(&mut self, message: &Value) -> Result<(), Unproved> {
        let told = self
            .child
            .stdin
            .as_mut()
            .map(|input| writeln!(input, "{message}"));
        match told {
            Some(Err(error)) => failed(format!("it takes no input: {error}")),
            _ => Ok(()),
        }
    }

    fn line(&self) -> Result<Option<String>, Unproved> {
        let left = self.until.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                failed(format!("it said nothing within {} s", PATIENCE.as_secs()))
            }
        }
    }

    /// Closes the command's input, and returns all remaining output.
    fn all(&mut self) -> Result<String, Unproved> {
        drop(self.child.stdin.take());
        let mut said = String::new();
        while let Some(line) = self.line()? {
            said.push_str(&line);
            said.push('\n');
        }
        Ok(said)
    }

    /// Returns the answer to a request.
    fn answer(&self, id: u64) -> Result<Value, Unproved> {
        while let Some(line) = self.line()? {
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["id"] == id {
                return Ok(message);
            }
        }
        failed("it has ended without an answer")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _has_ended = self.child.kill();
        let _as_well = self.child.wait();
    }
}
