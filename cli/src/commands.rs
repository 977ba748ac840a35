//! The command line, and one file for each command.

pub(crate) mod allow;
pub(crate) mod attest;
pub(crate) mod audit;
pub(crate) mod blame;
pub(crate) mod call;
pub(crate) mod checkpoint;
pub(crate) mod claim;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod files;
pub(crate) mod fleet;
pub(crate) mod forget;
pub(crate) mod history;
pub(crate) mod hook;
pub(crate) mod hook_settings;
pub(crate) mod log;
pub(crate) mod logs;
pub(crate) mod lsp;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod modified;
pub(crate) mod pause;
pub(crate) mod recovered;
pub(crate) mod restore;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod service;
pub(crate) mod sessions;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod socket;
pub(crate) mod start;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod ui;
pub(crate) mod undo;
pub(crate) mod uninstall;
pub(crate) mod watch;
pub(crate) mod worktrees;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::context::{Context, Global};
use crate::help;
use crate::output::Outcome;

/// The most mistyped letters of a command that another one is suggested for.
const FAR: usize = 2;

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

/// The commands, in the order and the groups of `touchmark help`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    // Connect agents.
    /// Connect the agents on this machine, or disconnect them
    Setup(setup::Options),
    /// Check the system, the daemon and the connected agents
    Doctor,
    /// Run a command whose changes are attributed to a session
    Run(run::Options),
    /// Install or remove an agent's hooks; also what the hooks run
    Hook(hook::Options),
    /// Serve the Model Context Protocol on standard input and output
    Mcp(mcp::Options),
    /// Serve the Language Server Protocol, for any editor
    Lsp(lsp::Options),
    /// Let hooks pass everything for a while
    Pause(pause::Options),
    /// End a pause
    Resume(pause::ResumeOptions),
    /// Let an agent's next write of a file pass after a denial
    Allow(allow::Options),
    /// Remove touchmark from this machine: settings, services, daemons
    Uninstall(uninstall::Options),
    // See who changed what.
    /// Open a page of who has read and changed what, to review and undo
    Ui(ui::Options),
    /// Show a live feed of who reads and changes which files
    Watch(watch::Options),
    /// List what was done, and who changed which files, newest first
    Log(log::Options),
    /// Show what changed since a prompt, a time or a version
    Diff(diff::Options),
    /// Show who wrote each line of a file
    Blame(blame::Options),
    /// Show who wrote the lines that a commit added
    Attest(attest::Options),
    /// Print a version of a file
    Show(show::Options),
    /// List everything recorded about a file, with corrections
    History(history::Options),
    /// List prompts, and what was changed after each
    Checkpoints(checkpoint::ListOptions),
    /// List the sessions
    Sessions,
    /// List the files a session has read, and which copies are stale
    Files(files::Options),
    /// List what changed, for a session or since a clock
    Modified(modified::Options),
    /// List worktrees, and lines that two of them changed
    Worktrees,
    // Get something back.
    /// Undo one author's changes; all other lines stay
    Undo(undo::Options),
    /// Reverse an undo
    Redo(undo::RedoOptions),
    /// Undo what agents did since a prompt; other people's lines stay
    Rewind(undo::RewindOptions),
    /// Review agents' changes that you have not looked at yet
    Review(review::Options),
    /// Say who wrote a change
    Claim(claim::Options),
    /// Restore a version of a file
    Restore(restore::Options),
    /// List, show, restore or delete contents that lost their file name
    Recovered(recovered::Options),
    // The daemon.
    /// Show the state of the daemon
    Status,
    /// Show all workspaces of this user, and what their daemons use
    Fleet(fleet::Options),
    /// Start the daemon in the background
    Start,
    /// Stop the daemon
    Stop(stop::Options),
    /// Stop the daemon and start another; state and open edits survive
    Restart,
    /// Install, remove or show this workspace's systemd user units
    Service(service::Options),
    /// Show the settings in effect and where each is set, or change them
    Config(config::Options),
    /// Show the daemon's log
    Logs(logs::Options),
    /// Compare all tracked files with the disk
    Audit,
    /// Run the daemon in the foreground
    Daemon(daemon::Options),
    /// Print the socket's path, whether or not a daemon runs
    Socket,
    // What is stored.
    /// Show counts of what was refused, repeated and saved
    Stats(stats::Options),
    /// Create, list or delete checkpoints; list what changed since one
    Checkpoint(checkpoint::Options),
    /// Remove stored state of a session, stored contents, or everything
    Forget(forget::Options),
    // Learn, and use in scripts.
    /// Give a tour in a temporary workspace, with a real daemon
    Demo(demo::Options),
    /// Send any request of the protocol; print the result as JSON
    Call(call::Options),
    /// Print the completion script of a shell
    Completions(completions::Options),
    /// Print the manual page, or write all of them
    Man(man::Options),
}

impl Command {
    /// Returns what the command does until it prints something, for a terminal.
    /// `None` if it has nothing to wait for.
    fn doing(&self) -> Option<&'static str> {
        Some(match self {
            Self::Run(_)
            | Self::Hook(_)
            | Self::Mcp(_)
            | Self::Lsp(_)
            | Self::Config(_)
            | Self::Daemon(_)
            | Self::Socket
            | Self::Demo(_)
            | Self::Completions(_)
            | Self::Man(_) => return None,
            Self::Undo(_) | Self::Redo(_) | Self::Rewind(_) | Self::Review(_) | Self::Claim(_) => {
                "looking for the changes"
            }
            Self::Attest(_) => "looking for who wrote the commits",
            Self::Audit => "comparing the files with the disk",
            Self::Worktrees => "comparing the worktrees",
            Self::Restore(_) => "restoring",
            Self::Setup(_) | Self::Uninstall(_) => "looking for settings",
            Self::Doctor => "checking",
            Self::Stop(_) => "waiting for the daemon to end",
            Self::Start | Self::Restart => "starting the daemon",
            Self::Watch(_)
            | Self::Log(_)
            | Self::Diff(_)
            | Self::Blame(_)
            | Self::Show(_)
            | Self::History(_) => "reading what was recorded",
            _ => "waiting for the daemon",
        })
    }
}

/// Returns the command line's definition, with groups and examples.
pub(crate) fn definition() -> clap::Command {
    help::with_examples(Arguments::command())
}

/// Runs the command of a command line.
pub(crate) fn run(arguments: Arguments) -> Outcome {
    match arguments.command {
        // These commands need no workspace, and work without a home directory.
        Command::Completions(options) => completions::run(&options),
        Command::Man(options) => man::run(&options, definition()),
        Command::Demo(options) => demo::run(&options, &arguments.global),
        Command::Daemon(options) => daemon::run(options, arguments.global),
        Command::Hook(options) => hook::run(&options, arguments.global),
        command => {
            let context = Context::new(arguments.global)?;
            if let Some(what) = command.doing() {
                context.doing(what);
            }
            match command {
                Command::Watch(options) => watch::run(&context, &options),
                Command::Ui(options) => ui::run(&context, &options),
                Command::Start => start::run(&context),
                Command::Stop(options) => stop::run(&context, &options),
                Command::Restart => start::restart(&context),
                Command::Status => status::run(&context),
                Command::Fleet(options) => fleet::run(&context, &options),
                Command::Socket => socket::run(&context),
                Command::Call(options) => call::run(&context, &options),
                Command::Modified(options) => modified::run(&context, options),
                Command::Log(options) => log::run(&context, &options),
                Command::Diff(options) => diff::run(&context, &options),
                Command::Show(options) => show::run(&context, options),
                Command::Blame(options) => blame::run(&context, options),
                Command::Attest(options) => attest::run(&context, &options),
                Command::Restore(options) => restore::run(&context, options),
                Command::History(options) => history::run(&context, &options),
                Command::Files(options) => files::run(&context, options),
                Command::Recovered(options) => recovered::run(&context, &options),
                Command::Undo(options) => undo::run(&context, options),
                Command::Claim(options) => claim::run(&context, &options),
                Command::Rewind(options) => undo::rewind(&context, &options),
                Command::Review(options) => review::run(&context, &options),
                Command::Redo(options) => undo::redo(&context, &options),
                Command::Sessions => sessions::run(&context),
                Command::Worktrees => worktrees::run(&context),
                Command::Stats(options) => stats::run(&context, options),
                Command::Checkpoints(options) => checkpoint::list(&context, &options),
                Command::Checkpoint(options) => checkpoint::run(&context, options),
                Command::Forget(options) => forget::run(&context, options),
                Command::Run(options) => run::run(&context, &options),
                Command::Mcp(options) => mcp::run(&context, options),
                Command::Lsp(options) => lsp::run(&context, &options),
                Command::Pause(options) => pause::pause(&context, &options),
                Command::Resume(options) => pause::resume(&context, &options),
                Command::Allow(options) => allow::run(&context, &options),
                Command::Service(options) => service::run(&context, &options),
                Command::Setup(options) => setup::run(&context, &options),
                Command::Uninstall(options) => uninstall::run(&context, &options),
                Command::Doctor => doctor::run(&context),
                Command::Audit => audit::run(&context),
                Command::Config(options) => config::run(&context, &options),
                Command::Logs(options) => logs::run(&context, &options),
                Command::Completions(_)
                | Command::Man(_)
                | Command::Demo(_)
                | Command::Daemon(_)
                | Command::Hook(_) => Ok(()),
            }
        }
    }
}

/// Has the error about an unknown command suggest the one that takes the fewest
/// strokes to correct: clap measures otherwise, and takes `lgo` for `logs`.
pub(crate) fn suggest(error: &mut clap::Error) {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let definition = definition();
    let names = definition.get_subcommands().map(clap::Command::get_name);
    let nearest = names.min_by_key(|name| strsim::osa_distance(typed, name));
    let near = nearest.filter(|name| strsim::osa_distance(typed, name) <= FAR.min(name.len() / 2));
    if let Some(name) = near {
        let names = ContextValue::Strings(vec![name.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, names);
    }
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
