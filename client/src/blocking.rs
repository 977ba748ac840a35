//! A connection for code without an async runtime.

/// Leaves a call's result as it is; `aio` awaits it.
macro_rules! wait {
    ($call:expr) => {
        $call
    };
}

/// Leaves functions as they are; `aio` makes them `async`.
macro_rules! methods {
    (impl $type:ident { $($(#[$doc:meta])* $visible:vis fn $name:ident($($arguments:tt)*) -> $result:ty $body:block)* }) => {
        impl $type {
            $($(#[$doc])* $visible fn $name($($arguments)*) -> $result $body)*
        }
    };
}

#[path = "requests.rs"]
mod requests;
#[path = "session.rs"]
mod session;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use touchmark_proto::daemon::{Initialize, Initialized, Subscribe};
use touchmark_proto::events::Event;
use touchmark_proto::{Method, Reply, Request};

use crate::dial::dial;
use crate::error::{Error, Result};
use crate::local::{Stream, send_at_once};
use crate::wire::{self, Inbox, Incoming};
use crate::{DEFAULT_DEADLINE, Hello, MAX_WAITING_EVENTS};

pub use session::{Edit, Session};

/// Requests sent ahead of their answers at most: enough to hide the round
/// trip, little enough that neither side's socket buffer fills.
const PIPELINE: usize = 64;

/// A read waits longer than its deadline by at most this fraction of it.
const DEADLINE_PLAY: u32 = 256;

/// How long the abort of a dropped edit may hold up its thread. The daemon ends
/// the edit with the connection in any case (ATTR-9).
const ABORT_DEADLINE: Duration = Duration::from_millis(500);

/// Writes a file in place.
fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(|error| Error::io(format!("write {}", path.display()), error))
}

/// A connection to a daemon. A cheap handle: clones share the connection,
/// and calls on it take turns. Closed when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: Option<Initialized>,
    connection: Mutex<Connection>,
}

#[derive(Debug)]
struct Connection {
    stream: Stream,
    inbox: Inbox,
    /// Answers that came while another was waited for.
    answers: HashMap<u64, Result<Reply>>,
    /// Ids whose answers somebody still waits for; others are late ones.
    waiting: HashSet<u64>,
    events: VecDeque<Event>,
    next_id: u64,
    deadline: Duration,
    /// How long a read of the stream waits at most, as last set.
    read_timeout: Duration,
    /// Set once the stream no longer stands between two messages.
    broken: bool,
}

impl Client {
    /// Connects to the socket and says hello.
    ///
    /// # Errors
    /// `noDaemon` if nothing listens; `incompatible` if the daemon speaks
    /// another protocol; `deadline` if it does not answer.
    pub fn connect(socket: &Path, hello: &Hello) -> Result<Self> {
        let mut connection = Connection::open(socket, hello.deadline)?;
        let server = connection.call(Initialize::from(hello), hello.deadline)?;
        Ok(Self::over(connection, Some(server)))
    }

    /// Connects without saying hello, for one-shot callers to whom a round
    /// trip matters.
    ///
    /// # Errors
    /// `noDaemon` if nothing listens.
    pub fn connect_silent(socket: &Path, deadline: Duration) -> Result<Self> {
        Ok(Self::over(Connection::open(socket, deadline)?, None))
    }

    fn over(connection: Connection, server: Option<Initialized>) -> Self {
        Self {
            shared: Arc::new(Shared {
                server,
                connection: Mutex::new(connection),
            }),
        }
    }

    /// Who answers, where hello was said.
    pub fn server(&self) -> Option<&Initialized> {
        self.shared.server.as_ref()
    }

    /// Asks, and waits for the answer no longer than the connection's
    /// deadline.
    ///
    /// # Errors
    /// The daemon's own, or `deadline`, `connectionClosed`.
    pub fn call<M: Method>(&self, params: M) -> Result<M::Result> {
        let mut connection = self.lock();
        let deadline = connection.deadline;
        connection.call(params, deadline)
    }

    /// Asks with a deadline of its own.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn call_within<M: Method>(&self, params: M, deadline: Duration) -> Result<M::Result> {
        self.lock().call(params, deadline)
    }

    /// Sends a request of which nothing depends.
    fn abandon<M: Method>(&self, params: M) {
        let _ = self.call_within(params, ABORT_DEADLINE);
    }

    /// Asks without types.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn request(&self, request: Request) -> Result<Reply> {
        let mut connection = self.lock();
        let deadline = connection.deadline;
        connection.request(request, deadline)
    }

    /// Asks many things without waiting for one answer before the next
    /// question. They take effect in the order given.
    ///
    /// # Errors
    /// The outer error ends the connection's use; the inner ones are the
    /// daemon's answers to single requests.
    pub fn pipeline<M: Method>(
        &self,
        requests: impl IntoIterator<Item = M>,
    ) -> Result<Vec<Result<M::Result>>> {
        let mut connection = self.lock();
        let deadline = connection.deadline;
        let mut results = Vec::new();
        let mut sent: VecDeque<u64> = VecDeque::new();
        for request in requests {
            if sent.len() >= PIPELINE {
                results.push(connection.oldest::<M>(&mut sent, deadline)?);
            }
            sent.push_back(connection.send(request.into_request(), deadline)?);
        }
        while !sent.is_empty() {
            results.push(connection.oldest::<M>(&mut sent, deadline)?);
        }
        Ok(results)
    }

    /// Subscribes this connection to events; [`Client::next_event`] hands
    /// them out. Use a connection of its own for this: waiting for an event
    /// keeps other callers of the same connection waiting.
    ///
    /// # Errors
    /// As [`Client::call`]; `unknownClock` if `since` is too old.
    pub fn subscribe(&self, subscribe: Subscribe) -> Result<u64> {
        self.call(subscribe).map(|answer| answer.subscription)
    }

    /// The next event, or `None` if none came within `wait`.
    ///
    /// # Errors
    /// `connectionClosed` when the daemon ends, `lagged` when too many events
    /// were left unread.
    pub fn next_event(&self, wait: Duration) -> Result<Option<Event>> {
        let mut connection = self.lock();
        if let Some(event) = connection.events.pop_front() {
            return Ok(Some(event));
        }
        let until = Instant::now() + wait;
        loop {
            match connection.receive(until)? {
                Some(Incoming::Event(event)) => return Ok(Some(event)),
                Some(Incoming::Answer { id, result }) => connection.keep(id, result),
                None => return Ok(None),
            }
        }
    }

    /// Changes how long later calls wait.
    pub fn set_deadline(&self, deadline: Duration) {
        self.lock().deadline = deadline;
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A caller that panicked mid-call leaves at worst an answer nobody
        // waits for, which is dropped by its id.
        self.shared
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    fn open(socket: &Path, deadline: Duration) -> Result<Self> {
        let deadline = if deadline.is_zero() {
            DEFAULT_DEADLINE
        } else {
            deadline
        };
        let stream = dial(socket, deadline)?;
        let mut connection = Self {
            stream,
            inbox: Inbox::default(),
            answers: HashMap::new(),
            waiting: HashSet::new(),
            events: VecDeque::new(),
            next_id: 1,
            deadline,
            read_timeout: Duration::ZERO,
            broken: false,
        };
        connection.write(
            wire::PREFACE,
            Instant::now() + connection.deadline,
            "connect",
        )?;
        Ok(connection)
    }

    fn call<M: Method>(&mut self, params: M, deadline: Duration) -> Result<M::Result> {
        let reply = self.request(params.into_request(), deadline)?;
        M::from_reply(reply).ok_or_else(|| wrong_reply(M::NAME))
    }

    fn request(&mut self, request: Request, deadline: Duration) -> Result<Reply> {
        let method = request.method();
        let id = self.send(request, deadline)?;
        self.answer(id, method, deadline)
    }

    fn oldest<M: Method>(
        &mut self,
        sent: &mut VecDeque<u64>,
        deadline: Duration,
    ) -> Result<Result<M::Result>> {
        let Some(id) = sent.pop_front() else {
            return Err(Error::Protocol("no request is open".into()));
        };
        match self.answer(id, M::NAME, deadline) {
            Ok(reply) => Ok(M::from_reply(reply).ok_or_else(|| wrong_reply(M::NAME))),
            Err(Error::Daemon(error)) => Ok(Err(Error::Daemon(error))),
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, request: Request, deadline: Duration) -> Result<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let method = request.method();
        let frame = wire::encode(id, Some(deadline), request)?;
        self.write(&frame, Instant::now() + deadline, method)?;
        self.waiting.insert(id);
        Ok(id)
    }

    fn answer(&mut self, id: u64, method: &'static str, deadline: Duration) -> Result<Reply> {
        let until = Instant::now() + deadline;
        loop {
            if let Some(result) = self.answers.remove(&id) {
                self.waiting.remove(&id);
                return result;
            }
            match self.receive(until)? {
                Some(Incoming::Answer { id, result }) => self.keep(id, result),
                Some(Incoming::Event(event)) => {
                    if self.events.len() >= MAX_WAITING_EVENTS {
                        self.broken = true;
                        return Err(Error::Lagged {
                            kept: MAX_WAITING_EVENTS,
                        });
                    }
                    self.events.push_back(event);
                }
                None => {
                    self.waiting.remove(&id);
                    return Err(Error::Deadline {
                        method,
                        after: deadline,
                    });
                }
            }
        }
    }

    /// Keeps an answer for whoever waits for it; one that came after its
    /// deadline is dropped.
    fn keep(&mut self, id: u64, result: Result<Reply, touchmark_proto::Error>) {
        if self.waiting.contains(&id) {
            self.answers.insert(id, result.map_err(Error::Daemon));
        }
    }

    /// The next message, or `None` at `until`.
    fn receive(&mut self, until: Instant) -> Result<Option<Incoming>> {
        loop {
            if let Some(message) = self.inbox.next()? {
                return Ok(Some(message));
            }
            self.usable()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let mut chunk = [0; 16 * 1024];
            match self.read(&mut chunk, left) {
                Ok(0) => {
                    self.broken = true;
                    return Err(Error::Gone {
                        reason: String::new(),
                    });
                }
                Ok(count) => self.inbox.push(&chunk[..count]),
                Err(error) if is_timeout(&error) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.broken = true;
                    return Err(Error::gone(&error));
                }
            }
        }
    }

    /// Waits for bytes for `left` at most.
    fn read(&mut self, chunk: &mut [u8], left: Duration) -> io::Result<usize> {
        self.limit_reads(left)?;
        self.stream.read(chunk)
    }

    /// Has reads wait for `left`, or so little longer that nobody minds: most
    /// calls then need no system call for it.
    fn limit_reads(&mut self, left: Duration) -> io::Result<()> {
        let near = left..=left + left / DEADLINE_PLAY;
        if !near.contains(&self.read_timeout) {
            self.stream.set_read_timeout(Some(left))?;
            self.read_timeout = left;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], until: Instant, method: &'static str) -> Result<()> {
        self.usable()?;
        let started = Instant::now();
        // Mostly there is room for all of it, and nothing to wait for.
        let at_once = send_at_once(&self.stream, bytes);
        let mut rest = &bytes[at_once.unwrap_or(0)..];
        while !rest.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            let sent = if left.is_zero() {
                Err(io::ErrorKind::TimedOut.into())
            } else {
                self.stream
                    .set_write_timeout(Some(left))
                    .and_then(|()| self.stream.write(rest))
            };
            match sent {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // Half a frame may be out: nothing may follow it.
                    self.broken = true;
                    return Err(if is_timeout(&error) {
                        Error::Deadline {
                            method,
                            after: started.elapsed(),
                        }
                    } else {
                        Error::gone(&error)
                    });
                }
            }
        }
        Ok(())
    }

    fn usable(&self) -> Result<()> {
        if self.broken {
            return Err(Error::Gone {
                reason: "an earlier call on this connection failed".into(),
            });
        }
        Ok(())
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

pub(crate) fn wrong_reply(method: &str) -> Error {
    Error::Protocol(format!("the answer to {method} is another method's"))
}
