//! One run of git, with limits of time, output and memory.

use std::ffi::OsStr;
use std::io::{self, Read, Write as _};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ignore::gitignore::gitconfig_excludes_path;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::system::proc::limit_memory;

/// How long one run may take, if the caller sets no other limit. Clients wait
/// that long by default.
const TIME: Duration = Duration::from_secs(10);

/// The most bytes that one run may print, if the caller sets no other limit.
const PRINTED: u64 = 64 << 20;

/// The most bytes of git's error messages that are read.
const SAID: u64 = 64 << 10;

/// The most memory that git may allocate, in bytes. An object may be packed
/// into a thousandth of its size.
const MEMORY: u64 = 1 << 30;

/// Settings for all runs. Contents larger than the threshold are neither
/// compared nor loaded into memory as a whole; 64 MiB is more than any caller
/// reads.
const SETTINGS: [&str; 4] = [
    "core.attributesFile=/dev/null",
    "core.bigFileThreshold=64m",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
];

/// The whole environment, apart from the variables that name the repository.
const ENVIRONMENT: [(&str, &str); 9] = [
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("LC_ALL", "C"),
];

/// What of this environment reaches git if it acts as the user.
const USERS: [&str; 8] = [
    "EMAIL",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "HOME",
    "USER",
    "XDG_CONFIG_HOME",
];

/// Git, before it is started: see [`WorkTree::git`](super::WorkTree::git).
#[derive(Debug)]
pub struct Git {
    command: Command,
    input: Vec<u8>,
    time: Duration,
    most: u64,
}

impl Git {
    /// `program` is git's path. `empty_tree` names a tree without entries, as
    /// the source of attributes.
    pub(super) fn new(program: &Path, directory: &Path, empty_tree: &str) -> Self {
        let mut command = Command::new(program);
        command.env_clear().envs(ENVIRONMENT);
        command.env("GIT_ATTR_SOURCE", empty_tree);
        // Not the working directory of the process: this function would wait
        // for a mount that hangs.
        command.arg("-C").arg(directory).arg("--no-pager");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        // What the user ignores in every repository.
        if let Some(ignored) = gitconfig_excludes_path() {
            let mut setting = std::ffi::OsString::from("core.excludesFile=");
            setting.push(ignored);
            command.arg("-c").arg(setting);
        }
        Self {
            command,
            input: Vec::new(),
            time: TIME,
            most: PRINTED,
        }
    }

    /// Sets a variable of its environment.
    pub(super) fn set(&mut self, name: &str, value: impl AsRef<OsStr>) -> &mut Self {
        self.command.env(name, value);
        self
    }

    /// Makes it read the user's own configuration.
    pub(super) fn as_user(&mut self) {
        self.command.env_remove("GIT_CONFIG_GLOBAL");
        self.command.env_remove("GIT_CONFIG_NOSYSTEM");
        for name in USERS {
            if let Some(value) = std::env::var_os(name) {
                self.command.env(name, value);
            }
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets its input, which is empty by default.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self
    }

    /// Sets how long it may take, and how many bytes it may print.
    #[must_use]
    pub fn within(mut self, time: Duration, most: u64) -> Self {
        self.time = time;
        self.most = most;
        self
    }

    /// Runs git and returns its output.
    ///
    /// # Errors
    /// Those of starting it; `TimedOut` if it takes too long, and `FileTooLarge`
    /// if it prints too much.
    pub fn output(mut self) -> io::Result<Output> {
        let until = Instant::now() + self.time;
        let input = std::mem::take(&mut self.input);
        let most = self.most;
        let mut pipes = self.start(Stdio::piped())?;
        if !input.is_empty() {
            let mut pipe = pipes.input;
            // Git prints before it has read everything, so neither pipe may
            // fill up. The thread ends with git.
            thread::Builder::new()
                .name("git's input".into())
                .spawn(move || {
                    let _it_read_what_it_wanted = pipe.write_all(&input);
                })?;
        } else {
            drop(pipes.input);
        }
        let stdout = whole(Patient::new(pipes.output, until), most)?;
        // Git closes its error output when it exits, so the wait is short.
        let stderr = match pipes.errors {
            Some(errors) => whole(Patient::new(errors, until), SAID)?,
            None => Vec::new(),
        };
        Ok(Output {
            status: pipes.child.wait()?,
            stdout,
            stderr,
        })
    }

    /// Runs git and returns what it prints; `None` if it fails, takes too long
    /// or prints too much.
    pub fn printed(self) -> Option<Vec<u8>> {
        let output = self.output();
        let output = output.inspect_err(|error| tracing::debug!("git: {error}"));
        let output = output.ok().filter(|output| output.status.success())?;
        Some(output.stdout)
    }

    /// Starts git with pipes. `errors` takes its error messages.
    pub(super) fn start(mut self, errors: Stdio) -> io::Result<Pipes> {
        let all = self.command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = all.stderr(errors).spawn()?;
        limit_memory(child.id(), MEMORY);
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let errors = child.stderr.take();
        let child = Running { child: Some(child) };
        let (Some(input), Some(output)) = (input, output) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Pipes {
            child,
            input,
            output,
            errors,
        })
    }
}

/// A process of git with its pipes.
pub(super) struct Pipes {
    pub(super) child: Running,
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
    pub(super) errors: Option<ChildStderr>,
}

/// A process of git. It is killed if this is dropped before it has exited.
#[derive(Debug)]
pub(super) struct Running {
    child: Option<Child>,
}

impl Running {
    fn wait(&mut self) -> io::Result<std::process::ExitStatus> {
        match self.child.take() {
            Some(mut child) => child.wait(),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        let _it_has_exited = child.kill();
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        // A process that hangs on a mount exits only with the mount.
        let wait = move || {
            let _ = child.wait();
        };
        let _stays_a_zombie = thread::Builder::new().name("git's exit".into()).spawn(wait);
    }
}

/// A pipe that is read until a moment.
#[derive(Debug)]
pub(super) struct Patient<R> {
    pipe: R,
    pub(super) until: Instant,
}

impl<R> Patient<R> {
    pub(super) fn new(pipe: R, until: Instant) -> Self {
        Self { pipe, until }
    }
}

impl<R: Read + AsFd> Read for Patient<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
            match poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&left)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return self.pipe.read(buffer),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Reads to the end, which must come within `most` bytes.
fn whole(pipe: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(bytes),
    }
}

/// Returns a shell in place of git.
#[cfg(test)]
pub(super) fn shell(script: &str) -> Git {
    let mut git = Git::new(Path::new("/bin/sh"), Path::new("/"), "");
    git.command = Command::new("/bin/sh");
    git.arg("-c").arg(script)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_printed_is_bounded() {
        let printed = |most| {
            let git = shell("echo abc").within(TIME, most);
            git.printed()
        };
        assert_eq!(printed(4).unwrap(), b"abc\n");
        assert_eq!(printed(3), None);
        assert_eq!(shell("echo abc; exit 1").printed(), None);
    }

    #[test]
    fn input_and_output_larger_than_the_pipes_arrive() {
        let bytes = vec![b'x'; 1 << 20];
        assert_eq!(shell("cat").input(bytes.clone()).printed(), Some(bytes));
    }

    #[test]
    fn what_never_ends_is_killed() {
        for script in [
            "exec sleep 100",
            "exec >&-; exec sleep 100",
            "yes; exec cat",
        ] {
            let begun = Instant::now();
            let git = shell(script).within(Duration::from_millis(50), u64::MAX);
            let error = git.output().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{script}");
            assert!(begun.elapsed() < Duration::from_secs(50));
        }
    }
}
