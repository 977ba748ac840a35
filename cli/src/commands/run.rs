//! `touchmark run`: runs a command in a command window (ATTR-6).

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::{Command, ExitStatus};

use clap::Args;
use touchmark_client::blocking::Client;
use touchmark_client::proto::commands::{
    CommandBegin, CommandEnd, CommandEnded, CommandRow, CommandScope,
};
use touchmark_client::proto::history::FileLog;
use touchmark_client::proto::{At, ErrorCode, RelPath, Reply, SessionId};
use touchmark_client::{Error, Workspace, witnessed_by};

use crate::context::{Context, SESSION, named, session};
use crate::output::{self, Failure, Outcome};
use crate::system::forwarding::{Forwarding, ended_by};
use crate::text::{count, path};
use crate::wire::result_json;
use crate::witness::Witness;

/// The maximum duration of a window, in milliseconds. A window ends with its
/// connection. This only limits a window whose connection was lost.
const LONGEST_MS: u64 = 24 * 60 * 60 * 1000;

/// The maximum number of files named in the closing line.
const NAMED: usize = 5;

/// Run a command whose changes are attributed to a session. Exits as the
/// command did, with 128 plus the signal's number if a signal killed it. Its
/// own failures are 125 to 127, as for `env`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The session that runs the command [default: TOUCHMARK_SESSION]
    #[arg(long, value_name = "S", value_parser = session)]
    session: Option<SessionId>,
    /// Attribute only changes of these files to the session; may be repeated
    #[arg(long, value_name = "GLOB")]
    paths: Vec<String>,
    /// Treat the command as a formatter: attribute what it changes right after an edit to the editing session
    #[arg(long)]
    formatter: bool,
    /// Let the kernel tell which files the command may write, so that what others change meanwhile is not attributed to it (Linux)
    #[arg(long)]
    witness: bool,
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let own = |error: &dyn Display| Failure::coded(125, error.to_string());
    let session = named(options.session.clone()).map_err(|failure| own(&failure))?;
    let workspace = context.workspace();
    let witness = match &workspace {
        Ok(workspace) if options.witness => Witness::find(context, workspace),
        _ => None,
    };
    let window = open(context, options, &session, workspace, witness.is_some())?;
    let forwarding = Forwarding::prepare().map_err(|error| own(&error))?;
    let command = options.command.split_first();
    let (program, arguments) = command.ok_or_else(|| own(&"no command is named"))?;
    let mut command = match (&window, witness) {
        (Some((_, window)), Some(witness)) => witness.command(window, program),
        _ => Command::new(program),
    };
    command.args(arguments).env(SESSION, session.as_str());
    let ended = match forwarding.spawn(&mut command) {
        Ok(mut child) => {
            let ended = child.wait();
            ended.map_err(|error| own(&format!("waiting for the command: {error}")))
        }
        // As for `env`: there is no such command, or it cannot be run.
        Err(error) => {
            let code = if error.kind() == io::ErrorKind::NotFound {
                127
            } else {
                126
            };
            let program = program.to_string_lossy();
            Err(Failure::coded(code, format!("{program}: {error}")))
        }
    };
    if let Some(window) = window {
        let exit = ended.as_ref().ok().map(|status| exit_code(*status));
        close(context, window, exit);
    }
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Ended {
            code: exit_code(status),
        }),
        Err(failure) => Err(failure),
    }
}

/// Opens the window. Without a daemon the command runs anyway, and what it
/// writes is the user's.
fn open(
    context: &Context,
    options: &Options,
    session: &SessionId,
    workspace: Outcome<Workspace>,
    witness: bool,
) -> Outcome<Option<(Client, String)>> {
    let begun = workspace.and_then(|workspace| {
        let client = context.connect(&workspace)?;
        let begun = client.call(CommandBegin {
            label: Some(label(&options.command)),
            paths: (!options.paths.is_empty()).then(|| options.paths.clone()),
            bind: true,
            ttl_ms: Some(LONGEST_MS),
            formatter: options.formatter,
            scope: Some(CommandScope::Workspace),
            witness,
            below: witnessed_by(&workspace.places),
            ..CommandBegin::new(session.clone())
        })?;
        Ok((client, begun.command))
    });
    match begun {
        Ok(window) => Ok(Some(window)),
        // A mistake of the user, found before anything has run.
        Err(Failure::Client(Error::Daemon(error))) if error.code == ErrorCode::InvalidParams => {
            Err(Failure::coded(125, error.to_string()))
        }
        Err(failure) => {
            context.note(&format!("{failure}; the command runs unwatched"));
            Ok(None)
        }
    }
}

/// Returns the command line as text, cut to 200 characters.
fn label(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ").chars().take(200).collect()
}

/// Ends the window and prints a summary of its changes. Failures here do not
/// change the command's exit code.
fn close(context: &Context, (client, command): (Client, String), exit: Option<u8>) {
    let end = || CommandEnd {
        command: Some(command.clone()),
        exit: exit.map(i32::from),
        ..CommandEnd::default()
    };
    let ended = client.call(end()).map_err(Failure::from).or_else(|_| {
        // The daemon may have been restarted. Windows survive that.
        let workspace = context.workspace()?;
        Ok::<_, Failure>(context.connect_running(&workspace)?.call(end())?)
    });
    match ended {
        Ok(ended) => {
            if let Some(why) = ended
                .command
                .as_ref()
                .and_then(|it| it.unwitnessed.as_ref())
            {
                context.note(&format!("not all writes were seen: {why}"));
            }
            tell(context, &client, ended);
        }
        Err(failure) => context.note(&failure.to_string()),
    }
}

fn tell(context: &Context, client: &Client, ended: CommandEnded) {
    if context.global.json {
        if let Ok(workspace) = context.workspace() {
            let facts = result_json(Reply::CommandEnd(ended), &workspace.root);
            // Standard output belongs to the command.
            let _output_is_closed = writeln!(io::stderr(), "{}", output::one_line(&facts));
        }
        return;
    }
    let mut changed: BTreeSet<RelPath> = ended.changes.into_iter().map(|one| one.path).collect();
    // Include files that no session has read.
    if let Some(command) = &ended.command {
        changed.extend(of_command(client, command).unwrap_or_default());
    }
    if changed.is_empty() {
        return;
    }
    let mut names: Vec<String> = changed.iter().take(NAMED).map(path).collect();
    let number = changed.len();
    if ended.more == Some(true) {
        names.push("and more".into());
    } else if number > NAMED {
        names.push(format!("and {} more", number - NAMED));
    }
    let said = format!("changed {}:", count(number as u64, "file"));
    let line = format!("{said} {}", names.join(", "));
    // Long names are on separate lines.
    if line.chars().count() + "touchmark: ".len() < 80 {
        return context.note(&line);
    }
    context.note(&said);
    for name in names.iter().filter(|_| !context.global.quiet) {
        let _output_is_closed =
            writeln!(anstream::stderr(), "  {}", crate::text::escaped(name, 2000));
    }
}

/// Returns the files of all versions that were recorded in a command's window.
fn of_command(client: &Client, command: &CommandRow) -> Outcome<BTreeSet<RelPath>> {
    let mut ask = FileLog {
        since: Some(At::Clock {
            epoch: Some(command.begun.epoch),
            n: command.begun.n,
        }),
        ..FileLog::default()
    };
    let mut changed = BTreeSet::new();
    let mut left = command.versions;
    while left > 0 {
        let page = client.call(ask.clone())?;
        let versions = page.entries.into_iter().map(|entry| entry.version);
        for version in versions {
            if version.command.as_deref() == Some(command.command.as_str()) {
                left = left.saturating_sub(1);
                changed.insert(version.path);
            }
        }
        if page.more.is_none() {
            break;
        }
        ask.before = page.more;
    }
    Ok(changed)
}

/// Returns the exit code as shells do.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| ended_by(status).map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(125)
}
