//! A connection for code without an async runtime.
//!
//! ```no_run
//! use touchmark_client::blocking::Client;
//! use touchmark_client::proto::daemon::Status;
//! use touchmark_client::{Hello, Workspace};
//!
//! // A daemon that runs; `connect_or_start` starts one.
//! let workspace = Workspace::here()?;
//! let client = Client::connect(&workspace.socket(), &Hello::new("my-agent", "1.0"))?;
//! let status = client.call(Status::new())?;
//! println!("{status:?}");
//! # Ok::<(), touchmark_client::Error>(())
//! ```

/// Leaves a call's result as it is. In `aio` it awaits the result.
macro_rules! wait {
    ($call:expr) => {
        $call
    };
}

/// Leaves functions as they are. In `aio` it makes them `async`.
macro_rules! methods {
    (impl $type:ident { $($(#[$doc:meta])* $visible:vis fn $name:ident($($arguments:tt)*) -> $result:ty $body:block)* }) => {
        impl $type {
            $($(#[$doc])* $visible fn $name($($arguments)*) -> $result $body)*
        }
    };
}

/// The example of `Session::open`.
macro_rules! example {
    () => {
        "```no_run
use touchmark_client::{Session, connect};

let client = connect()?;
let session = Session::open(&client, \"fix-42\")?;
let text = session.read_text(\"src/parser.rs\")?.text;
session.close()?;
# Ok::<(), touchmark_client::Error>(())
```"
    };
}

#[path = "requests.rs"]
mod requests;
#[path = "session.rs"]
mod session;

use std::collections::{HashMap, VecDeque};
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
use crate::wire::{self, Inbox, Received};
use crate::{DEFAULT_DEADLINE, Hello, MAX_WAITING_EVENTS};

pub use session::{Edit, Session};

/// The maximum number of pipelined requests without an answer. It hides the
/// round trip, and does not fill the socket buffer of either side.
const PIPELINE: usize = 64;

/// The inverse of the fraction of its deadline by which a read may wait too
/// long.
const DEADLINE_PLAY: u32 = 256;

/// The maximum time that dropping an edit waits for the daemon. If the daemon
/// does not answer, it ends the edit with the connection (ATTR-9).
const ABORT_DEADLINE: Duration = Duration::from_millis(500);

/// Writes a file in place.
fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(|error| Error::io(format!("write {}", path.display()), error))
}

/// A connection to a daemon. Clones share the connection, and their calls run
/// one after the other. The connection is closed when the last clone is
/// dropped.
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
    /// The requests that a caller still waits for, each with its answer if that
    /// was received while the caller waited for another one. Answers to other
    /// ids are late.
    open: HashMap<u64, Option<Result<Reply>>>,
    events: VecDeque<Event>,
    next_id: u64,
    deadline: Duration,
    /// The read timeout that is set on the stream.
    read_timeout: Duration,
    /// Whether the stream has stopped within a message, so that no further
    /// message can be read or written.
    broken: bool,
}

impl Client {
    /// Connects to the socket and sends `initialize`.
    ///
    /// # Errors
    /// `noDaemon` if no daemon listens; `incompatible` if the daemon has
    /// another version of the protocol; `deadline` if it does not answer.
    pub fn connect(socket: &Path, hello: &Hello) -> Result<Self> {
        let mut connection = Connection::open(socket, hello.deadline)?;
        let server = connection.call(Initialize::from(hello), hello.deadline)?;
        Ok(Self::over(connection, Some(server)))
    }

    /// Connects to the socket without `initialize`, which saves a round trip.
    ///
    /// # Errors
    /// `noDaemon` if no daemon listens.
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

    /// Returns what the daemon answered to `initialize`; `None` if it was not
    /// sent.
    pub fn server(&self) -> Option<&Initialized> {
        self.shared.server.as_ref()
    }

    /// Sends a request and waits for its answer, at most for the connection's
    /// deadline.
    ///
    /// # Errors
    /// The daemon's error, one of [`touchmark_proto::COMMON_ERRORS`] or of
    /// [`Method::ERRORS`]; `deadline` or `connectionClosed`.
    pub fn call<M: Method>(&self, params: M) -> Result<M::Result> {
        let mut connection = self.lock();
        let deadline = connection.deadline;
        connection.call(params, deadline)
    }

    /// Sends a request and waits for its answer, at most for `deadline`.
    ///
    /// # Errors
    /// The same as [`Client::call`].
    pub fn call_within<M: Method>(&self, params: M, deadline: Duration) -> Result<M::Result> {
        self.lock().call(params, deadline)
    }

    /// Sends a request whose result is not needed.
    fn abandon<M: Method>(&self, params: M) {
        let _ = self.call_within(params, ABORT_DEADLINE);
    }

    /// Sends a request that is an enum value, and returns the reply as one.
    ///
    /// # Errors
    /// The same as [`Client::call`].
    pub fn request(&self, request: Request) -> Result<Reply> {
        let mut connection = self.lock();
        let deadline = connection.deadline;
        connection.request(request, deadline)
    }

    /// Sends many requests without waiting for each answer before the next
    /// request. They take effect in their order.
    ///
    /// # Errors
    /// The outer error means that the connection is broken. The inner errors
    /// are those that the daemon returned for single requests.
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

    /// Subscribes this connection to events, which [`Client::next_event`]
    /// returns. Use a separate connection: a caller that waits for an event
    /// blocks all other callers of the connection.
    ///
    /// # Errors
    #[doc = touchmark_proto::errors_of!(Subscribe)]
    /// `unknownClock` if `since` is too old. The connection's errors are those of
    /// [`Client::call`].
    pub fn subscribe(&self, subscribe: Subscribe) -> Result<u64> {
        self.call(subscribe).map(|answer| answer.subscription)
    }

    /// Returns the next event, or `None` if there is none within `wait`.
    ///
    /// # Errors
    /// `connectionClosed` if the daemon closes the connection, `lagged` if too
    /// many events were left unread.
    pub fn next_event(&self, wait: Duration) -> Result<Option<Event>> {
        let mut connection = self.lock();
        if let Some(event) = connection.events.pop_front() {
            return Ok(Some(event));
        }
        let until = Instant::now() + wait;
        loop {
            match connection.receive(until)? {
                Some(Received::Event(event)) => return Ok(Some(event)),
                Some(Received::Answer { id, result }) => connection.keep(id, result),
                None => return Ok(None),
            }
        }
    }

    /// Sets the time to wait in later calls.
    pub fn set_deadline(&self, deadline: Duration) {
        self.lock().deadline = deadline;
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A caller that panicked during a call leaves at most an answer that no
        // caller waits for. It is dropped by its id.
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
            open: HashMap::new(),
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
        self.open.insert(id, None);
        Ok(id)
    }

    fn answer(&mut self, id: u64, method: &'static str, deadline: Duration) -> Result<Reply> {
        let until = Instant::now() + deadline;
        loop {
            if let Some(result) = self.open.get_mut(&id).and_then(Option::take) {
                self.open.remove(&id);
                return result;
            }
            match self.receive(until)? {
                Some(Received::Answer { id, result }) => self.keep(id, result),
                Some(Received::Event(event)) => {
                    if self.events.len() >= MAX_WAITING_EVENTS {
                        self.broken = true;
                        return Err(Error::Lagged {
                            kept: MAX_WAITING_EVENTS,
                        });
                    }
                    self.events.push_back(event);
                }
                None => {
                    self.open.remove(&id);
                    return Err(Error::Deadline {
                        method,
                        after: deadline,
                    });
                }
            }
        }
    }

    /// Stores an answer until its caller takes it. A late answer is dropped.
    fn keep(&mut self, id: u64, result: Result<Reply, touchmark_proto::Error>) {
        if let Some(answer) = self.open.get_mut(&id) {
            *answer = Some(result.map_err(Error::Daemon));
        }
    }

    /// Returns the next message, or `None` if there is none until `until`.
    fn receive(&mut self, until: Instant) -> Result<Option<Received>> {
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

    /// Reads bytes, waiting at most for `left`.
    fn read(&mut self, chunk: &mut [u8], left: Duration) -> io::Result<usize> {
        self.limit_reads(left)?;
        self.stream.read(chunk)
    }

    /// Sets the read timeout to `left`. A current timeout that is only slightly
    /// longer is kept, which saves a system call in most calls.
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
        // Usually the socket's buffer has room for all bytes, and nothing has
        // to wait.
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
                    // A part of a frame may have been sent, so nothing may
                    // follow it.
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
