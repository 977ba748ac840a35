//! The searches of all clients. Few run at the same time, on separate threads,
//! and they are stopped when their client disconnects.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};
use touchmark_proto::search::{Matches, SearchGrep};
use touchmark_proto::{ConnectionId, Error, ErrorCode, RelPath};

use super::grep::{Stop, search};
use crate::context::Context;
use crate::system::open::trust;

/// The number of searches that run at the same time. Further ones wait.
const SEARCHES_AT_ONCE: usize = 2;

/// How long a search may continue after its deadline before it is treated as
/// hanging.
const GRACE: Duration = Duration::from_secs(2);

/// The most threads of searches, including those that hang.
const MOST_THREADS: usize = 16;

/// The longest time that a search may take, even if its client would wait
/// longer.
const LONGEST: Duration = Duration::from_secs(60);

/// The size of an answer without its matches, in bytes.
const ENVELOPE: usize = 4 << 10;

/// The running and the waiting searches.
#[derive(Debug)]
pub(crate) struct Searches {
    at_once: Semaphore,
    /// The clients of the searches and how to stop each, by number.
    begun: Mutex<HashMap<usize, (ConnectionId, Stop)>>,
    last: AtomicUsize,
    threads: Threads,
}

impl Default for Searches {
    fn default() -> Self {
        Self {
            at_once: Semaphore::new(SEARCHES_AT_ONCE),
            begun: Mutex::default(),
            last: AtomicUsize::default(),
            threads: Threads::default(),
        }
    }
}

impl Searches {
    /// Answers `search/grep` on another thread.
    ///
    /// # Errors
    /// `invalidParams`, `tooLate`; `internalError` if the search panics or its
    /// client has disconnected.
    pub(crate) async fn search(&self, cx: &Context, ask: SearchGrep) -> Result<Matches, Error> {
        let now = Instant::now();
        let left = cx.inside.until.map_or(LONGEST, |until| {
            // The search ends before its client's deadline, so that the answer
            // arrives in time.
            let until = cx.workspace.time.instant(until);
            until.saturating_duration_since(now) * 9 / 10
        });
        let stop = Stop::at(now + left.min(LONGEST));
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        self.begun(|begun| begun.insert(number, (cx.client, stop.clone())));
        let found = self.run(cx, ask, &stop).await;
        self.begun(|begun| begun.remove(&number));
        found
    }

    async fn run(&self, cx: &Context, ask: SearchGrep, stop: &Stop) -> Result<Matches, Error> {
        let _one_of_few = self.at_once.acquire().await;
        if stop.is_said() {
            return Err(broken_off());
        }
        if let Some(session) = &ask.session {
            tracing::debug!(%session, "{session} searches");
        }
        let (workspace, until) = (Arc::clone(&cx.workspace), stop.clone());
        let frame = usize::try_from(cx.config.frame).unwrap_or(usize::MAX);
        let reply = frame.saturating_sub(ENVELOPE);
        let search = self.threads.begin(move || {
            // A pattern or a file may make a library panic.
            let trust = trust(&workspace.places.trusted);
            let is_own = |path: &RelPath| workspace.files.is_own(path);
            let found = || search(&workspace.root, &ask, is_own, reply, &trust, &until);
            catch_unwind(AssertUnwindSafe(found)).unwrap_or_else(|_| Err(broken_off()))
        });
        in_time(search, stop, GRACE).await
    }

    /// Stops the searches of a connection that has ended.
    pub(crate) fn disconnect(&self, connection: ConnectionId) {
        self.stop(|of| of == connection);
    }

    /// Stops all searches, since the daemon ends.
    pub(crate) fn end(&self) {
        self.stop(|_| true);
    }

    fn stop(&self, is_meant: impl Fn(ConnectionId) -> bool) {
        self.begun(|begun| {
            for (of, stop) in begun.values() {
                if is_meant(*of) {
                    stop.say();
                }
            }
        });
    }

    fn begun<T>(&self, work: impl FnOnce(&mut HashMap<usize, (ConnectionId, Stop)>) -> T) -> T {
        work(&mut self.begun.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the result of a search, or an error once it is [`GRACE`] past its
/// deadline. So a read that hangs, as on a network file system, does not block
/// pending searches.
async fn in_time(search: Searching, stop: &Stop, grace: Duration) -> Result<Matches, Error> {
    let overdue = async {
        stop.due().await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        done = search => done.unwrap_or_else(|_| Err(broken_off())),
        () = overdue => Err(Error::new(
            ErrorCode::TooLate,
            "the search hangs: a file cannot be read to its end",
        )
        .hint("search in a part of the workspace, by `path`")),
    }
}

fn broken_off() -> Error {
    Error::new(ErrorCode::InternalError, "the search broke off")
}

type Searching = oneshot::Receiver<Result<Matches, Error>>;

/// The threads of searches. They are separate, so that one that hangs takes no
/// thread from reads and hooks.
#[derive(Clone, Debug, Default)]
struct Threads(Arc<AtomicUsize>);

impl Threads {
    fn begin(&self, search: impl FnOnce() -> Result<Matches, Error> + Send + 'static) -> Searching {
        let (done, searching) = oneshot::channel();
        let threads = Arc::clone(&self.0);
        if threads.fetch_add(1, Ordering::Relaxed) >= MOST_THREADS {
            threads.fetch_sub(1, Ordering::Relaxed);
            let hang = Error::new(
                ErrorCode::TooLate,
                format!("{MOST_THREADS} searches hang already"),
            );
            let _nobody_waits = done.send(Err(hang.hint(
                "a file system of the workspace does not answer; `touchmark restart` ends the searches that wait for it",
            )));
            return searching;
        }
        let ended = Arc::clone(&threads);
        let begun = std::thread::Builder::new()
            .name("search".into())
            .spawn(move || {
                let _nobody_waits = done.send(search());
                threads.fetch_sub(1, Ordering::Relaxed);
            });
        if let Err(error) = begun {
            tracing::error!("no thread for a search: {error}");
            ended.fetch_sub(1, Ordering::Relaxed);
        }
        searching
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::mpsc;

    use super::*;

    fn found() -> Result<Matches, Error> {
        Ok(Matches {
            matches: Vec::new(),
            truncated: false,
            files_searched: 1,
        })
    }

    /// SEC-7: a search that hangs is answered, and their number is limited.
    #[test]
    fn sec7_a_search_that_hangs_gives_up_its_place() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let threads = Threads::default();
        let (free, hangs) = mpsc::channel::<()>();
        let hangs = Arc::new(std::sync::Mutex::new(hangs));
        let hang = || {
            let hangs = Arc::clone(&hangs);
            move || {
                let _freed = hangs.lock().unwrap().recv();
                found()
            }
        };
        runtime.block_on(async {
            let grace = Duration::from_millis(1);
            let stop = Stop::at(Instant::now());
            let hanging = in_time(threads.begin(hang()), &stop, grace);
            assert_eq!(hanging.await.unwrap_err().code, ErrorCode::TooLate);
            // Its client has disconnected.
            let gone = Stop::at(Instant::now() + LONGEST * 60);
            gone.say();
            let hanging = in_time(threads.begin(hang()), &gone, grace);
            assert_eq!(hanging.await.unwrap_err().code, ErrorCode::TooLate);
            // A search that does not hang.
            let stop = Stop::at(Instant::now() + LONGEST * 60);
            let ends = in_time(threads.begin(found), &stop, grace);
            assert_eq!(ends.await, found());
            // Many that hang.
            let many: Vec<Searching> = (0..MOST_THREADS).map(|_| threads.begin(hang())).collect();
            let refused = in_time(threads.begin(found), &stop, grace)
                .await
                .unwrap_err();
            assert!(refused.message.contains("hang already"), "{refused}");
            drop(free);
            for search in many {
                // The first of them got no thread, like the search that was
                // refused.
                let _done = search.await;
            }
        });
    }
}
