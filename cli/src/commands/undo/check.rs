//! `--check`: an undo happens only if a command succeeds with its result
//! (UNDO-11).
//!
//! - [`copy`]: a copy of the workspace. [`clone`]: files that share their
//!   blocks. [`links`]: symbolic links in the copy. [`repository`]: its `.git`.
//! - [`apply`]: writes what the undo would do into the copy.
//!
//! The command runs in the copy, with the user's environment and terminal. The
//! workspace is not touched before it has ended.

mod apply;
#[cfg_attr(not(target_os = "linux"), path = "check/clone/unsupported.rs")]
mod clone;
mod copy;
mod links;
mod repository;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use rustix::process::Signal;
use touchmark_client::Workspace;
use touchmark_client::blocking::Client;
use touchmark_client::proto::undo::{Undo, UndoneContent};
use touchmark_client::proto::{Hash, native};

use self::copy::{Failed, Scratch};
use crate::context::{Connection, Context};
use crate::output::{Failure, Outcome};
use crate::progress;
use crate::system::forwarding::{Forwarding, ended_by};
use crate::text::{MAX_NAME, count, escaped};

/// The exit code if the command fails.
const FAILED: u8 = 5;

/// The maximum number of names that are listed as not in the copy.
const NAMED: usize = 10;

/// What the environment may say about a repository. It would be the real one.
const OF_GIT: [&str; 5] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
];

/// Runs a command in a copy of the workspace with the result of an undo. Returns
/// the plan of that undo. If it would do nothing, nothing runs.
///
/// # Errors
/// [`Failure::Coded`] if the command fails or a signal ends it, `busy`, and
/// errors of the copy.
pub(super) fn passes(connection: &Connection<'_>, ask: &Undo, command: &str) -> Outcome<Hash> {
    let Connection {
        context,
        workspace,
        client,
    } = connection;
    let (plan, results) = results(client, ask)?;
    if results.is_empty() {
        return Ok(plan);
    }
    let forwarding = Forwarding::prepare()?;
    let said = escaped(command, MAX_NAME);
    context.note(&format!("the check runs in a copy: {said}"));
    context.doing("copying the workspace");
    let is_stopped = || forwarding.told_to_end().is_some();
    let copied = Scratch::of(workspace, &context.environment, &is_stopped);
    let mut copy = copied.map_err(|failed| match failed {
        Failed::Stopped => stopped(&forwarding),
        failed => Failure::No(format!("{failed}; nothing was undone")),
    })?;
    let ended = apply::apply(&mut copy, &results)
        .and_then(|()| {
            let root = copy.root.clone();
            let led = copy.links.lead_into_the_copy();
            led.map_err(|error| (root, error))
        })
        .map_err(|(name, error)| {
            let name = name.display();
            Failure::No(format!("in the copy, {name}: {error}; nothing was undone"))
        })
        .and_then(|()| {
            tell_left_out(context, &copy);
            execute(context, workspace, &copy, command, &forwarding)
        });
    context.doing("removing the copy");
    if let Err(left) = copy.remove() {
        context.note(&format!(
            "the copy could not be removed: {}",
            left.display()
        ));
    }
    let status = ended?;
    // Ctrl-C means the undo, too, whatever the command makes of it.
    forwarding.look();
    if is_stopped() {
        return Err(stopped(&forwarding));
    }
    if !status.success() {
        let how = match (status.code(), ended_by(status)) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown status".into(),
        };
        let message = format!("the check failed: `{said}` ended with {how}; nothing was undone");
        return Err(Failure::coded(FAILED, message));
    }
    context.note("the check passed");
    Ok(plan)
}

/// Returns what an undo would do, and its plan.
fn results(client: &Client, ask: &Undo) -> Outcome<(Hash, Vec<UndoneContent>)> {
    let mut ask = Undo {
        dry_run: true,
        contents: Some(0),
        ..ask.clone()
    };
    let mut results = Vec::new();
    loop {
        let planned = client.call(ask.clone())?;
        let files = planned.files.into_iter();
        results.extend(files.filter_map(|file| file.result));
        let plan = planned
            .plan
            .ok_or_else(|| Failure::No("the daemon does not say what the undo would do".into()))?;
        if planned.more.is_none() {
            return Ok((plan, results));
        }
        // The next page must belong to the same plan.
        ask.plan = Some(plan);
        ask.contents = planned.more;
    }
}

fn tell_left_out(context: &Context, copy: &Scratch) {
    for name in copy.left_out.iter().take(NAMED) {
        context.note(&format!("not in the copy: {name}"));
    }
    if let Some(more @ 1..) = copy.left_out.len().checked_sub(NAMED) {
        let more = count(more as u64, "more name");
        context.note(&format!("not in the copy: {more}"));
    }
}

/// Runs the command in the directory of the copy that the user is in, and waits
/// for its end.
fn execute(
    context: &Context,
    workspace: &Workspace,
    copy: &Scratch,
    command: &str,
    forwarding: &Forwarding,
) -> Outcome<ExitStatus> {
    let current = std::env::current_dir().and_then(|current| current.canonicalize());
    let inside = current.ok().and_then(|current| {
        let inside = current.strip_prefix(&workspace.root).ok()?;
        Some(copy.root.join(inside))
    });
    let directory = inside.filter(|inside| inside.is_dir());
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(directory.as_ref().unwrap_or(&copy.root));
    for (name, value) in std::env::vars_os() {
        if let Some(value) = in_the_copy(&value, &workspace.root, &copy.root) {
            shell.env(name, value);
        }
    }
    for name in OF_GIT {
        shell.env_remove(name);
    }
    if context.global.json {
        // Standard output has the result as JSON.
        shell.stdout(Stdio::from(
            rustix::io::dup(io::stderr()).map_err(io::Error::from)?,
        ));
    }
    if forwarding.told_to_end().is_some() {
        return Err(stopped(forwarding));
    }
    progress::end();
    Ok(forwarding.spawn(&mut shell)?.wait()?)
}

/// Returns a variable's value with the copy's path wherever the workspace's is,
/// also in a list such as `PATH`. `None` if it has none.
fn in_the_copy(value: &OsString, from: &Path, to: &Path) -> Option<OsString> {
    let (value, from, to) = (native::bytes(value), native::bytes(from), native::bytes(to));
    let mut changed = Vec::new();
    let mut rest: &[u8] = &value;
    let mut is_found = false;
    while let Some(at) = find(rest, &from) {
        let (before, behind) = (&rest[..at], &rest[at + from.len()..]);
        // Another path may begin with the same letters, or end with them.
        let begins = before.last().is_none_or(|byte| b":=;, \"'".contains(byte));
        let ends = behind.first().is_none_or(|byte| b"/:;, \"'".contains(byte));
        changed.extend(before);
        let is_whole = begins && ends;
        is_found |= is_whole;
        changed.extend(if is_whole { &*to } else { &*from });
        rest = behind;
    }
    changed.extend(rest);
    is_found.then(|| native::owned(changed))
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len().max(1)).position(|own| own == part)
}

fn stopped(forwarding: &Forwarding) -> Failure {
    let signal = forwarding.told_to_end().unwrap_or(Signal::INT);
    let code = u8::try_from(128 + signal.as_raw()).unwrap_or(FAILED);
    Failure::coded(code, "the check was stopped; nothing was undone")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn variables_name_the_copy_where_they_named_the_workspace() {
        let value = |text: &str| {
            let found = in_the_copy(&text.into(), Path::new("/w"), Path::new("/tmp/c/w"));
            found.map(|found| found.into_string().unwrap())
        };
        assert_eq!(value("/w").unwrap(), "/tmp/c/w");
        let path = value("/w/bin:/usr/bin:/w:/w2").unwrap();
        assert_eq!(path, "/tmp/c/w/bin:/usr/bin:/tmp/c/w:/w2");
        assert_eq!(value("--out=/w/t").unwrap(), "--out=/tmp/c/w/t");
        assert_eq!(value("/w2/w:/home/w"), None);
        assert_eq!(value(""), None);
    }
}
