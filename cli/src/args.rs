//! The command line's definition.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    attest, audit, blame, call, checkpoint, claim, completions, daemon, demo, diff, doctor, files,
    fleet, forget, history, hook, log, logs, man, mcp, modified, recovered, restore, review, run,
    service, sessions, setup, show, socket, start, stats, status, stop, ui, undo, uninstall, watch,
    worktrees,
};

/// Tell coding agents which of their file copies are out of date, and you who changed what.
///
/// One daemon per workspace watches the files that agents have read. Commands start it if none
/// runs.
#[derive(Debug, Parser)]
#[command(
    name = "touchmark",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, 1 the answer is no, 2 wrong use, 3 no daemon and none could be started, 4 the daemon said an error, 5 the command of --check failed."
)]
pub(crate) struct Arguments {
    /// The options of every command.
    #[command(flatten)]
    pub(crate) global: Global,
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The options of every command, before or after its name.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Global {
    /// The workspace [default: the nearest directory upward with a running daemon, a .touchmark.toml or a .git]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Print results as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only results and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Do not start a daemon if none runs
    #[arg(long, global = true)]
    pub(crate) no_start: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show a live feed of who reads and changes which files
    Watch(watch::Options),
    /// Open a page of who has read and changed what, to review and undo
    Ui(ui::Options),
    /// Connect the agents on this machine, or disconnect them
    Setup(setup::Options),
    /// Remove touchmark from this machine: settings, services, daemons
    Uninstall(uninstall::Options),
    /// Give a tour in a temporary workspace, with a real daemon
    Demo(demo::Options),
    /// Run the daemon in the foreground
    Daemon(daemon::Options),
    /// Start the daemon in the background
    Start(start::Options),
    /// Stop the daemon
    Stop(stop::Options),
    /// Stop the daemon and start another; state and open edits survive
    Restart(start::RestartOptions),
    /// Show the state of the daemon
    Status(status::Options),
    /// Show all workspaces of this user, and what their daemons use
    Fleet(fleet::Options),
    /// Print the socket's path, whether or not a daemon runs
    Socket(socket::Options),
    /// Send any request of the protocol; print the result as JSON
    Call(call::Options),
    /// List what changed, for a session or since a clock
    Modified(modified::Options),
    /// List what was done, and who changed which files, newest first
    Log(log::Options),
    /// Show what changed since a prompt, a time or a version
    Diff(diff::Options),
    /// Print a version of a file
    Show(show::Options),
    /// Show who wrote each line of a file
    Blame(blame::Options),
    /// Show who wrote the lines that a commit added
    Attest(attest::Options),
    /// Restore a version of a file
    Restore(restore::Options),
    /// List everything recorded about a file, with corrections
    History(history::Options),
    /// List the files a session has read, and which copies are stale
    Files(files::Options),
    /// List, show, restore or delete contents that lost their file name
    Recovered(recovered::Options),
    /// Undo one author's changes; all other lines stay
    Undo(undo::Options),
    /// Say who wrote a change
    Claim(claim::Options),
    /// Undo what agents did since a prompt; other people's lines stay
    Rewind(undo::RewindOptions),
    /// Review agents' changes that you have not looked at yet
    Review(review::Options),
    /// Reverse an undo
    Redo(undo::RedoOptions),
    /// List the sessions
    Sessions(sessions::Options),
    /// List worktrees, and lines that two of them changed
    Worktrees(worktrees::Options),
    /// Show counts of what was refused, repeated and saved
    Stats(stats::Options),
    /// List prompts, and what was changed after each
    Checkpoints(checkpoint::ListOptions),
    /// Create, list or delete checkpoints; list what changed since one
    Checkpoint(checkpoint::Options),
    /// Remove stored state of a session, stored contents, or everything
    Forget(forget::Options),
    /// Run a command whose changes are attributed to a session
    Run(run::Options),
    /// Install or remove an agent's hooks; also what the hooks run
    Hook(hook::Options),
    /// Serve the Model Context Protocol on standard input and output
    Mcp(mcp::Options),
    /// Install, remove or show this workspace's systemd user units
    Service(service::Options),
    /// Check the system, the daemon and the connected agents
    Doctor(doctor::Options),
    /// Compare all tracked files with the disk
    Audit(audit::Options),
    /// Show the daemon's log
    Logs(logs::Options),
    /// Print the completion script of a shell
    Completions(completions::Options),
    /// Print the manual page, or write all of them
    Man(man::Options),
}

/// Returns whether a command line is for `touchmark run`.
pub(crate) fn is_run(mut arguments: impl Iterator<Item = OsString>) -> bool {
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("run") => return true,
            // The only option before the command that takes a value.
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
