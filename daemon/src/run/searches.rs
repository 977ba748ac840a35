//! Searches. They run on separate threads, few at the same time, and are
//! stopped when their client disconnects.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use touchmark_proto::search::SearchGrep;
use touchmark_proto::trust::Trust;
use touchmark_proto::{ConnectionId, Error, ErrorCode, Reply, RequestId};

use super::Daemon;
use crate::event::Event;
use crate::system::open::trust;
use crate::tools::grep::{Stop, search};

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

/// The running and the pending searches.
#[derive(Debug, Default)]
pub(super) struct Searches {
    running: HashMap<RequestId, (ConnectionId, Stop)>,
    waiting: VecDeque<Search>,
    threads: Threads,
}

#[derive(Debug)]
struct Search {
    request: RequestId,
    connection: ConnectionId,
    ask: SearchGrep,
    stop: Stop,
}

impl Searches {
    /// Stops and removes the searches of a connection that has ended.
    pub(super) fn disconnect(&mut self, connection: ConnectionId) {
        self.waiting
            .retain(|search| search.connection != connection);
        for (of, stop) in self.running.values() {
            if *of == connection {
                stop.say();
            }
        }
    }

    /// Stops all searches, since the daemon ends.
    pub(super) fn end(&mut self) {
        self.waiting.clear();
        for (_, stop) in self.running.values() {
            stop.say();
        }
    }
}

impl Daemon {
    /// Answers `search/grep` on another thread.
    pub(super) fn search(&mut self, request: RequestId, connection: ConnectionId, ask: SearchGrep) {
        let now = Instant::now();
        let until = self.asked.get(&request).and_then(|asked| asked.until);
        let left = until.map_or(LONGEST, |until| {
            // The search ends before its client's deadline, so that the answer
            // arrives in time.
            self.time.instant(until).saturating_duration_since(now) * 9 / 10
        });
        self.searches.waiting.push_back(Search {
            request,
            connection,
            ask,
            stop: Stop::at(now + left.min(LONGEST)),
        });
        self.begin_searches();
    }

    /// Handles that a request was answered on another thread. If it was a
    /// search, the next one begins.
    pub(super) fn searched(&mut self, request: RequestId) {
        if self.searches.running.remove(&request).is_some() {
            self.begin_searches();
        }
    }

    fn begin_searches(&mut self) {
        while self.searches.running.len() < SEARCHES_AT_ONCE {
            let Some(next) = self.searches.waiting.pop_front() else {
                return;
            };
            let Search {
                request,
                connection,
                ask,
                stop,
            } = next;
            if let Some(session) = &ask.session {
                tracing::debug!(%session, "{session} searches");
            }
            self.searches
                .running
                .insert(request, (connection, stop.clone()));
            let (root, events) = (self.options.workspace.clone(), self.events.clone());
            let trust = trust(&self.options.places.trusted);
            let reply = self.hub.max_frame.saturating_sub(ENVELOPE);
            let until = stop.clone();
            let search = self
                .searches
                .threads
                .begin(move || searched(&root, &ask, reply, &trust, &stop));
            tokio::spawn(async move {
                let outcome = in_time(search, &until, GRACE).await;
                let _loop_has_ended = events.send(Event::Answered { request, outcome });
            });
        }
    }
}

/// Returns the result of a search, or an error once it is [`GRACE`] past its
/// deadline. So a read that hangs, as on a network file system, does not block
/// pending searches.
async fn in_time(search: Searching, stop: &Stop, grace: Duration) -> Result<Reply, Error> {
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

type Searching = oneshot::Receiver<Result<Reply, Error>>;

/// The threads of searches. They are separate, so that one that hangs takes no
/// thread from reads and hooks.
#[derive(Clone, Debug, Default)]
struct Threads(Arc<AtomicUsize>);

impl Threads {
    fn begin(&self, search: impl FnOnce() -> Result<Reply, Error> + Send + 'static) -> Searching {
        let (done, searching) = oneshot::channel();
        let threads = Arc::clone(&self.0);
        if threads.fetch_add(1, Ordering::Relaxed) >= MOST_THREADS {
            threads.fetch_sub(1, Ordering::Relaxed);
            let hang = Error::new(
                ErrorCode::TooLate,
                format!("{MOST_THREADS} searches hang already"),
            );
            let _nobody_waits = done.send(Err(hang.hint(
                "a file system of the workspace does not answer; `touchmark restart` ends them",
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

/// Runs a search and catches its panics, since a pattern or a file may make a
/// library panic.
fn searched(
    root: &Path,
    ask: &SearchGrep,
    reply: usize,
    trust: &Trust,
    stop: &Stop,
) -> Result<Reply, Error> {
    catch_unwind(AssertUnwindSafe(|| search(root, ask, reply, trust, stop)))
        .unwrap_or_else(|_| Err(broken_off()))
        .map(Reply::SearchGrep)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::mpsc;

    use touchmark_proto::search::Matches;

    use super::*;

    fn found() -> Result<Reply, Error> {
        Ok(Reply::SearchGrep(Matches {
            matches: Vec::new(),
            truncated: false,
            files_searched: 1,
        }))
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
