//! Work on other directories, each piece with a time limit: a worktree may be on
//! a mount that hangs.

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
}
