//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    audit, blame, call, checkpoint, completions, daemon, demo, diff, doctor, files, forget,
    history, hook, log, logs, man, mcp, models, modified, recovered, restore, review, run, service,
    sessions, setup, show, socket, start, stats, status, stop, tasks, undo, warning, watch,
};

/// Tells coding agents which of their file copies are out of date, and who changed what.
///
/// One daemon per workspace watches the files that agents have read. Commands start it where none runs.
#[derive(Debug, Parser)]
#[command(
    name = "touchmark",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, 1 the answer is no, 2 wrong use, 3 no daemon and none could be started, 4 the daemon said an error."
)]
pub(crate) struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub(crate) global: Global,
    /// Which command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes, before or after its name.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Global {
    /// The workspace [default: the innermost, going up, with a running daemon, a .touchmark.toml or a .git]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Print facts as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print nothing but facts and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Do not start a daemon where none runs
    #[arg(long, global = true)]
    pub(crate) no_start: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Live feed: who changed or read what, and whose copy is now stale
    Watch(watch::Options),
    /// Put touchmark into the agents on this machine, or take it out again
    Setup(setup::Options),
    /// A tour in a temporary workspace with a real daemon; ends by itself
    Demo(demo::Options),
    /// The daemon in the foreground
    Daemon(daemon::Options),
    /// Start the daemon in the background
    Start(start::Options),
    /// End the daemon
    Stop(stop::Options),
    /// End the daemon and start another; state and open edits survive
    Restart(start::RestartOptions),
    /// How the daemon is
    Status(status::Options),
    /// The path of the socket, whether or not a daemon runs
    Socket(socket::Options),
    /// Any request of the protocol; its result as JSON
    Call(call::Options),
    /// What changed
    Modified(modified::Options),
    /// Who changed which files, newest first
    Log(log::Options),
    /// What changed since a prompt, a time or a version, and by whom
    Diff(diff::Options),
    /// What a file held
    Show(show::Options),
    /// Who wrote each line of a file
    Blame(blame::Options),
    /// Give a file back what it held
    Restore(restore::Options),
    /// All that is recorded of a file, with its beginning and corrections
    History(history::Options),
    /// The files a session knows, and what its copies are worth
    Files(files::Options),
    /// Bytes that touchmark kept: list, show, restore, delete
    Recovered(recovered::Options),
    /// Take changes away by their author, and leave everybody else's lines
    Undo(undo::Options),
    /// Walk through what agents changed and nobody has looked at
    Review(review::Options),
    /// Take an undo back
    Redo(undo::RedoOptions),
    /// The sessions
    Sessions(sessions::Options),
    /// Background tasks that agents have saved
    Tasks(tasks::Options),
    /// The models that sessions used
    Models(models::Options),
    /// What was saved: counted, not estimated
    Stats(stats::Options),
    /// Moments of a session: create, list, delete, and detect what was edited since
    Checkpoint(checkpoint::Options),
    /// What a session is to be told once: take
    Warning(warning::Options),
    /// Remove stored state: a session's, kept contents, or everything
    Forget(forget::Options),
    /// Run a command whose changes are a session's; exits as it does
    Run(run::Options),
    /// Agents' hooks: what they call, and how they get into an agent's settings
    Hook(hook::Options),
    /// A Model Context Protocol server on standard input and output
    Mcp(mcp::Options),
    /// The systemd user units that start this workspace's daemon: install, uninstall, status
    Service(service::Options),
    /// What can be wrong, and how to mend it; starts nothing
    Doctor(doctor::Options),
    /// Compare everything the daemon believes with the disk
    Audit(audit::Options),
    /// The daemon's log
    Logs(logs::Options),
    /// A script of completions for a shell
    Completions(completions::Options),
    /// The manual page
    Man(man::Options),
}

/// Whether a command line means `touchmark run`.
pub(crate) fn is_run(mut arguments: impl Iterator<Item = OsString>) -> bool {
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("run") => return true,
            // The one option before the command that takes a value.
            Some("--workspace") => drop(arguments.next()),
            Some(option) if option.starts_with('-') => {}
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_is_recognised_wherever_it_stands() {
        let is = |line: &str| is_run(line.split(' ').map(OsString::from));
        assert!(is("run x"));
        assert!(is("--quiet --workspace run run x"));
        assert!(!is("--workspace run status"));
        assert!(!is("call run"));
    }
}
