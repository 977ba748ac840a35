//! Runs what an agent starts, or the agent itself, below `touchmark-witness`
//! (ATTR-3). Without touchmark it runs as it is.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use touchmark_client::blocking::Client;
use touchmark_client::proto::commands::AgentWitness;
use touchmark_client::proto::hooks::HookShell;
use touchmark_client::{Environment, Workspace, witness_program, witnessed, witnessed_by};
use touchmark_daemon::agent::Agent;

use crate::{Options, connect, is_off, left, now};

/// How long the daemon may take to find a command's window.
const PATIENCE: Duration = Duration::from_millis(150);

/// How long it may take to start before an agent, and to answer.
const START: Duration = Duration::from_secs(2);

/// As for `env`: there is no such program, or it cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// Replaces this process by `shell -c line`: below a witness if a hook has
/// announced the command. Returns only if the shell cannot be run.
pub(crate) fn shell(agent: &Agent, shell: &OsStr, line: &OsStr) -> ExitCode {
    let begun = || {
        let line = line.to_str()?.to_owned();
        let place = Place::find(agent)?;
        let client = place.client(true, PATIENCE)?;
        let begun = client.call(HookShell::new(line)).ok()?;
        Some(place.witness(&begun.command))
    };
    replaced(begun(), shell, &["-c".into(), line.to_owned()])
}

/// Replaces this process by an agent, below a witness for the commands that its
/// hooks will announce. Returns only if the agent cannot be run.
pub(crate) fn agent(agent: &'static Agent, program: &OsStr, arguments: &[OsString]) -> ExitCode {
    let (told, begun) = channel();
    // A daemon that does not start delays no agent.
    std::thread::spawn(move || {
        let begin = || {
            let place = Place::find(agent)?;
            let client = place.client(false, START)?;
            let ask = AgentWitness::new().pid(std::process::id());
            let begun = client.call(ask).ok()?;
            Some(place.witness(&begun.witness))
        };
        let _too_late = told.send(begin());
    });
    let begun = begun.recv_timeout(START).ok().flatten();
    replaced(begun, program, arguments)
}

/// Replaces this process by a program, below a witness if there is one.
fn replaced(witness: Option<Command>, program: &OsStr, arguments: &[OsString]) -> ExitCode {
    if let Some(mut command) = witness {
        // The output is the program's: the daemon is told why it is not
        // witnessed. If the witness cannot be run, it runs without it.
        command.args(["--quiet", "--"]).arg(program).args(arguments);
        let _not_run = command.exec();
    }
    let error = Command::new(program).args(arguments).exec();
    eprintln!("touchmark-hook: {}: {error}", program.display());
    match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND.into(),
        _ => NOT_RUN.into(),
    }
}

/// A workspace in which something can be witnessed.
struct Place {
    program: std::path::PathBuf,
    workspace: Workspace,
}

impl Place {
    /// Finds the workspace of this directory. `None` if there is no witness to
    /// run, if this process is witnessed already, or if touchmark is switched off
    /// here.
    fn find(agent: &Agent) -> Option<Self> {
        let program = witness_program()?;
        let environment = Environment::read().ok()?;
        let workspace = Workspace::find(&std::env::current_dir().ok()?, &environment).ok()?;
        let is_witnessed = witnessed_by(&workspace.places).is_some();
        let is_off = is_witnessed || is_off(agent, &workspace, now()?);
        (!is_off).then_some(Self { program, workspace })
    }

    fn client(&self, no_start: bool, patience: Duration) -> Option<Client> {
        let until = Instant::now() + patience;
        let options = Options {
            workspace: None,
            no_start,
        };
        let client = connect(&self.workspace, options, until)?;
        client.set_deadline(left(until)?);
        Some(client)
    }

    fn witness(&self, name: &str) -> Command {
        witnessed(&self.program, &self.workspace, name)
    }
}
