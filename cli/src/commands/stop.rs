//! `touchmark stop`: ends the daemon, or all of them.

use std::path::{Path, PathBuf};

use clap::Args;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use touchmark_client::blocking::Client;
use touchmark_client::proto::daemon::Status;
use touchmark_client::start::wait_until_ended;
use touchmark_client::{Error, Workspace, sockets};

use crate::context::{Context, hello};
use crate::daemon::{PATIENCE, end};
use crate::output::{Failure, Outcome};
use crate::text::{MAX_NAME, count, directory, escaped};

/// Ends the daemon.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Every workspace's daemon of this user
    #[arg(long, conflicts_with = "workspace")]
    all: bool,
    /// The process that holds the workspace's store, if its socket cannot be
    /// reached, as that of a daemon in a sandbox
    #[arg(long, conflicts_with = "all")]
    pid: Option<u32>,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    if options.all {
        return all(context);
    }
    let workspace = context.workspace()?;
    let ran = match options.pid {
        Some(pid) => end_process(&workspace, pid)?,
        None => end(&workspace)?,
    };
    let name = directory(&workspace.root);
    let text = match ran {
        true => format!("ended: the daemon for {name}"),
        false => format!("no daemon runs for {name}"),
    };
    context.tell(&json!({ "stopped": ran }), &text)
}

/// Ends the process that holds the workspace's store, and waits until it has
/// ended. It must be the one that was named: numbers are used again.
fn end_process(workspace: &Workspace, pid: u32) -> Outcome<bool> {
    if workspace.holder() != Some(pid) {
        return Err(Failure::No(format!(
            "process {pid} does not hold the store of {}",
            directory(&workspace.root)
        )));
    }
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let sent = process.map_or(Err(Errno::SRCH), |process| {
        kill_process(process, Signal::TERM)
    });
    if let Err(error) = sent {
        return Err(Failure::No(format!("process {pid}: {error}")));
    }
    wait_until_ended(workspace, PATIENCE)?;
    Ok(true)
}

/// Ends every daemon of this user. One that does not end does not keep the
/// others running.
fn all(context: &Context) -> Outcome {
    let mut ended: Vec<Value> = Vec::new();
    let mut failed: Vec<String> = Vec::new();
    for socket in sockets::sockets(&context.environment) {
        match end_at(context, &socket) {
            Ok(Some(root)) => {
                if !context.global.json {
                    context.say(&format!("ended: the daemon for {}", directory(&root)))?;
                }
                ended.push(root.to_string_lossy().into());
            }
            Ok(None) => {}
            Err(failure) => {
                let socket = escaped(&socket.to_string_lossy(), MAX_NAME);
                failed.push(format!("{socket}: {failure}"));
            }
        }
    }
    if context.global.json {
        context.json(&json!({ "stopped": ended }))?;
    } else if ended.is_empty() && failed.is_empty() {
        context.say("no daemon runs")?;
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::No(format!(
            "{} did not end:\n{}",
            count(failed.len() as u64, "daemon"),
            failed.join("\n")
        ))),
    }
}

/// Ends the daemon that listens on a socket. Returns its workspace, or `None`
/// if a daemon that was killed has left the socket.
fn end_at(context: &Context, socket: &Path) -> Outcome<Option<PathBuf>> {
    let asked = Client::connect(socket, &hello()).and_then(|client| client.call(Status {}));
    let root = match asked {
        Ok(status) => PathBuf::from(status.workspace),
        Err(Error::NoDaemon { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let workspace = Workspace::at(&root, &context.environment)?;
    Ok(end(&workspace)?.then_some(root))
}
