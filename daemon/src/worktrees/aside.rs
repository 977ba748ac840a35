//! Work on other directories, each piece with a time limit: a worktree may be on
//! a mount that hangs.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// A thread that does one piece of work after the other. One that hangs is
/// abandoned and replaced.
#[derive(Default)]
pub(super) struct Aside(Option<Sender<Job>>);

impl Aside {
    /// Returns the result of `work`; `None` if it takes longer than `limit`.
    pub(super) fn within<T: Send + 'static>(
        &mut self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (done, result) = channel();
        let job: Job = Box::new(move || {
            let _too_late = done.send(work());
        });
        if self.0.is_none() {
            let (sender, jobs) = channel::<Job>();
            let body = move || jobs.into_iter().for_each(|job| job());
            let thread = thread::Builder::new().name("worktrees aside".into());
            thread.spawn(body).ok()?;
            self.0 = Some(sender);
        }
        self.0.as_ref()?.send(job).ok()?;
        let result = result.recv_timeout(limit).ok();
        if result.is_none() {
            self.0 = None;
        }
        result
    }

    /// Returns what a program prints, if it ends with 0 within `limit` and
    /// prints at most `most` bytes.
    pub(super) fn output(
        &mut self,
        limit: Duration,
        most: u64,
        mut command: Command,
    ) -> Option<Vec<u8>> {
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let output = child.stdout.take()?;
        let read = self.within(limit, move || {
            let mut bytes = Vec::new();
            let read = output.take(most + 1).read_to_end(&mut bytes);
            read.is_ok().then_some(bytes)
        });
        let bytes = read.flatten().filter(|bytes| bytes.len() as u64 <= most);
        if bytes.is_none() {
            let _it_has_ended = child.kill();
        }
        // A process that hangs on a mount ends only with the mount.
        let ended = self.within(limit, move || child.wait());
        ended?.ok()?.success().then_some(bytes).flatten()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_hangs_is_abandoned() {
        let mut aside = Aside::default();
        let (hold, held) = channel::<()>();
        assert_eq!(aside.within(SOON, move || held.recv().is_ok()), None);
        assert_eq!(aside.within(LONG, || 1), Some(1));
        drop(hold);
    }

    #[test]
    fn what_a_program_prints_is_bounded() {
        let mut aside = Aside::default();
        let mut print = |most| {
            let mut echo = Command::new("echo");
            echo.arg("abc");
            aside.output(LONG, most, echo)
        };
        assert_eq!(print(4).unwrap(), b"abc\n");
        assert_eq!(print(3), None);
        assert_eq!(aside.output(LONG, 9, Command::new("false")), None);
    }
}
