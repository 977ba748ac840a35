//! One file per command.

pub(crate) mod attest;
pub(crate) mod audit;
pub(crate) mod blame;
pub(crate) mod call;
pub(crate) mod checkpoint;
pub(crate) mod claim;
pub(crate) mod completions;
pub(crate) mod daemon;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod files;
pub(crate) mod fleet;
pub(crate) mod forget;
pub(crate) mod history;
pub(crate) mod hook;
pub(crate) mod hook_event;
pub(crate) mod hook_settings;
pub(crate) mod log;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod modified;
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

use crate::args::{Arguments, Command};
use crate::context::Context;
use crate::output::Outcome;

/// Runs the command of a command line.
pub(crate) fn run(arguments: Arguments) -> Outcome {
    match arguments.command {
        // These commands need no workspace, and work without a home directory.
        Command::Completions(options) => completions::run(&options),
        Command::Man(options) => man::run(&options),
        Command::Demo(options) => demo::run(&options, &arguments.global),
        Command::Daemon(options) => daemon::run(options, &arguments.global),
        Command::Hook(options) => hook::run(&options, arguments.global),
        command => {
            let context = Context::new(arguments.global)?;
            match command {
                Command::Watch(options) => watch::run(&context, &options),
                Command::Ui(options) => ui::run(&context, &options),
                Command::Start(_) => start::run(&context),
                Command::Stop(options) => stop::run(&context, &options),
                Command::Restart(_) => start::restart(&context),
                Command::Status(options) => status::run(&context, &options),
                Command::Fleet(options) => fleet::run(&context, &options),
                Command::Socket(_) => socket::run(&context),
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
                Command::Sessions(_) => sessions::run(&context),
                Command::Worktrees(options) => worktrees::run(&context, &options),
                Command::Stats(options) => stats::run(&context, options),
                Command::Checkpoints(options) => checkpoint::list(&context, &options),
                Command::Checkpoint(options) => checkpoint::run(&context, options),
                Command::Forget(options) => forget::run(&context, options),
                Command::Run(options) => run::run(&context, &options),
                Command::Mcp(options) => mcp::run(&context, options),
                Command::Service(options) => service::run(&context, &options),
                Command::Setup(options) => setup::run(&context, &options),
                Command::Uninstall(options) => uninstall::run(&context, &options),
                Command::Doctor(_) => doctor::run(&context),
                Command::Audit(_) => audit::run(&context),
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
