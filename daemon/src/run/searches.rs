//! Searches: done aside, few at once, and none for a client that is gone.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use touchmark_proto::search::SearchGrep;
use touchmark_proto::{ConnectionId, Error, ErrorCode, Reply, RequestId};

use super::Daemon;
use crate::event::Event;
use crate::tools::grep::{Stop, search};

/// Searches that run at the same time; further ones wait. The runtime has as
/// many threads more than reads and writes take.
pub(crate) const SEARCHES_AT_ONCE: usize = 2;

/// No search takes longer, whatever its client would wait.
const LONGEST: Duration = Duration::from_secs(60);

/// What an answer takes beside its matches, in bytes.
const ENVELOPE: usize = 4 << 10;

/// Searches under way and in waiting.
#[derive(Debug, Default)]
pub(super) struct Searches {
    running: HashMap<RequestId, (ConnectionId, Stop)>,
    waiting: VecDeque<Search>,
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
            let reply = self.hub.max_frame.saturating_sub(ENVELOPE);
            tokio::task::spawn_blocking(move || {
                let outcome = searched(&root, &ask, reply, &stop);
                let _loop_has_ended = events.send(Event::Answered { request, outcome });
            });
        }
    }
}

/// A search cannot take its place with it, whatever a pattern or a file does
/// to the libraries.
fn searched(root: &Path, ask: &SearchGrep, reply: usize, stop: &Stop) -> Result<Reply, Error> {
    catch_unwind(AssertUnwindSafe(|| search(root, ask, reply, stop)))
        .unwrap_or_else(|_| Err(Error::new(ErrorCode::InternalError, "the search broke off")))
        .map(Reply::SearchGrep)
}
