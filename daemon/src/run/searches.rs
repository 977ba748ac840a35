//! Searches: done aside, few at once, and none for a client that is gone.

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

/// Searches that run at the same time; further ones wait.
const SEARCHES_AT_ONCE: usize = 2;

/// How long after its end a search may go on before it counts as one that
/// hangs.
const GRACE: Duration = Duration::from_secs(2);

/// Threads of searches, those that hang included.
const MOST_THREADS: usize = 16;

/// No search takes longer, whatever its client would wait.
const LONGEST: Duration = Duration::from_secs(60);

/// What an answer takes beside its matches, in bytes.
const ENVELOPE: usize = 4 << 10;

/// Searches under way and in waiting.
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
    /// Nobody waits for this connection's any more.
    pub(super) fn disconnect(&mut self, connection: ConnectionId) {
        self.waiting
            .retain(|search| search.connection != connection);
        for (of, stop) in self.running.values() {
            if *of == connection {
                stop.say();
            }
        }
    }

    /// Nobody waits for any.
    pub(super) fn end(&mut self) {
        self.waiting.clear();
        for (_, stop) in self.running.values() {
            stop.say();
        }
    }
}

impl Daemon {
    /// `search/grep`, answered aside.
    pub(super) fn search(&mut self, request: RequestId, connection: ConnectionId, ask: SearchGrep) {
        let now = Instant::now();
        let until = self.asked.get(&request).and_then(|asked| asked.until);
        let left = until.map_or(LONGEST, |until| {
            // What was found by then is to arrive in time.
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

    /// A request was answered aside; if it was a search, the next one begins.
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

/// What comes of a search, or an error once it should have ended long ago: a
/// read that hangs, as in a network's file system, does not keep its place
/// from the searches that wait.
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

/// The threads of searches: of their own, so that one that hangs takes none
/// from reads and hooks.
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

/// A search cannot take its place with it, whatever a pattern or a file does
/// to the libraries.
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

    /// SEC-7: what hangs is answered, and has a bound.
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
            // Its client is gone.
            let gone = Stop::at(Instant::now() + LONGEST * 60);
            gone.say();
            let hanging = in_time(threads.begin(hang()), &gone, grace);
            assert_eq!(hanging.await.unwrap_err().code, ErrorCode::TooLate);
            // One that does not hang.
            let stop = Stop::at(Instant::now() + LONGEST * 60);
            let ends = in_time(threads.begin(found), &stop, grace);
            assert_eq!(ends.await, found());
            // Many that do.
            let many: Vec<Searching> = (0..MOST_THREADS).map(|_| threads.begin(hang())).collect();
            let refused = in_time(threads.begin(found), &stop, grace)
                .await
                .unwrap_err();
            assert!(refused.message.contains("hang already"), "{refused}");
            drop(free);
            for search in many {
                // The first of them got no thread either.
                let _done = search.await;
            }
        });
    }
}
