//! A connection for tokio: concurrent calls over one socket.
//!
//! ```no_run
//! use touchmark_client::aio::{Session, connect_or_start};
//! use touchmark_client::{Hello, Start, Workspace};
//!
//! # async fn run() -> Result<(), touchmark_client::Error> {
//! let workspace = Workspace::here()?;
//! let client = connect_or_start(&workspace, &Hello::default(), &Start::default()).await?;
//! let session = Session::open(&client, "fix-42").await?;
//! // Both requests are on their way at the same time.
//! let (changed, status) = tokio::join!(session.changed(), session.status(["src/parser.rs"]));
//! println!("{} changes, {:?}", changed?.len(), status?);
//! # Ok(())
//! # }
//! ```

/// Awaits a call's future.
macro_rules! wait {
    ($call:expr) => {
        $call.await
    };
}

/// Makes functions `async`.
macro_rules! methods {
    (impl $type:ident { $($(#[$doc:meta])* $visible:vis fn $name:ident($($arguments:tt)*) -> $result:ty $body:block)* }) => {
        impl $type {
            $($(#[$doc])* $visible async fn $name($($arguments)*) -> $result $body)*
        }
    };
}

/// The example of `Session::open`.
macro_rules! example {
    () => {
        "```no_run
# async fn run(client: touchmark_client::aio::Client) -> Result<(), touchmark_client::Error> {
use touchmark_client::aio::Session;

let session = Session::open(&client, \"fix-42\").await?;
let text = session.read_text(\"src/parser.rs\").await?.text;
session.close().await?;
# Ok(())
# }
```"
    };
}

#[path = "requests.rs"]
mod requests;
#[path = "session.rs"]
mod session;
mod start;
mod tools;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use touchmark_proto::daemon::{Initialize, Initialized, Subscribe};
use touchmark_proto::events::Event;
use touchmark_proto::{Method, Reply, Request};

use crate::blocking::wrong_reply;
use crate::dial::{AGAIN, is_full, refused, try_dial};
use crate::error::{Error, Result};
use crate::local::{AsyncStream, OwnedReadHalf, OwnedWriteHalf};
use crate::wire::{self, Inbox, Received};
use crate::{Hello, MAX_WAITING_EVENTS};

pub use session::{Edit, Session};
pub use start::{connect, connect_or_start};
pub use tools::{Tool, Tools};

/// Writes a file in place, on a thread that may block.
async fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let (name, bytes) = (path.to_owned(), bytes.to_owned());
    let written = tokio::task::spawn_blocking(move || std::fs::write(name, bytes));
    let written = written.await.unwrap_or_else(|error| Err(error.into()));
    written.map_err(|error| Error::io(format!("write {}", path.display()), error))
}

/// A connection to a daemon. Clones share the connection; answers are assigned
/// to their callers by id. The connection is closed when the last clone is
/// dropped.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
    closer: Arc<Closer>,
}

/// The events of all subscriptions of one connection, in order.
pub type Events = mpsc::Receiver<Event>;

#[derive(Debug)]
struct Shared {
    server: OnceLock<Initialized>,
    calls: Mutex<Calls>,
    next_id: AtomicU64,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    deadline: Duration,
}

#[derive(Debug, Default)]
struct Calls {
    waiting: HashMap<u64, oneshot::Sender<Result<Reply>>>,
    events: Option<mpsc::Sender<Event>>,
    /// Why the connection ended; `None` while it is open.
    ended: Option<String>,
    lagged: bool,
}

/// Aborts the connection's reading task when its last clone is dropped.
#[derive(Debug)]
struct Closer(AbortHandle);

impl Drop for Closer {
    fn drop(&mut self) {
        // The writing task ends when its channel is closed, so that queued
        // bytes (the abort of an edit) are still sent.
        self.0.abort();
    }
}

/// Removes a call from the table when its future is dropped before the answer.
struct Waiting<'a>(&'a Shared, u64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.calls().waiting.remove(&self.1);
    }
}

impl Client {
    /// Connects to the socket and sends `initialize`.
    ///
    /// # Errors
    /// `noDaemon` if no daemon listens; `incompatible` if the daemon has
    /// another version of the protocol; `deadline` if it does not answer.
    pub async fn connect(socket: &Path, hello: &Hello) -> Result<Self> {
        let stream = dial(socket, hello.deadline).await?;
        let (reader, writer) = stream.into_split();
        let (outgoing, queue) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            server: OnceLock::new(),
            calls: Mutex::default(),
            next_id: AtomicU64::new(1),
            outgoing,
            deadline: hello.deadline,
        });
        tokio::spawn(write(writer, queue, hello.deadline));
        let reading = tokio::spawn(read(reader, Arc::downgrade(&shared)));
        let client = Self {
            closer: Arc::new(Closer(reading.abort_handle())),
            shared,
        };
        client.queue(wire::PREFACE.to_vec())?;
        let server = client.call(Initialize::from(hello)).await?;
        let _ = client.shared.server.set(server);
        Ok(client)
    }

    /// Returns what the daemon answered to `initialize`.
    pub fn server(&self) -> Option<Initialized> {
        self.shared.server.get().cloned()
    }

    /// Sends a request and waits for its answer, at most for the connection's
    /// deadline. If the future is dropped, the answer is dropped, but the
    /// request may still take effect.
    ///
    /// # Errors
    /// The daemon's error, one of [`touchmark_proto::COMMON_ERRORS`] or of
    /// [`Method::ERRORS`]; `deadline` or `connectionClosed`.
    pub async fn call<M: Method>(&self, params: M) -> Result<M::Result> {
        self.call_within(params, self.shared.deadline).await
    }

    /// Sends a request and waits for its answer, at most for `deadline`.
    ///
    /// # Errors
    /// The same as [`Client::call`].
    pub async fn call_within<M: Method>(&self, params: M, deadline: Duration) -> Result<M::Result> {
        let reply = self.request(params.into_request(), deadline).await?;
        M::from_reply(reply).ok_or_else(|| wrong_reply(M::NAME))
    }

    /// Sends a request that is an enum value, and returns the reply as one.
    ///
    /// # Errors
    /// The same as [`Client::call`].
    pub async fn request(&self, request: Request, deadline: Duration) -> Result<Reply> {
        let method = request.method();
        let (sender, answer) = oneshot::channel();
        let id = self.send(request, Some(deadline), Some(sender))?;
        let _waiting = Waiting(&self.shared, id);
        match tokio::time::timeout(deadline, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(self.ended()),
            Err(_) => Err(Error::Deadline {
                method,
                after: deadline,
            }),
        }
    }

    /// Sends a request without waiting for its answer.
    fn abandon<M: Method>(&self, params: M) {
        // A closed connection has already ended everything that was bound to
        // it.
        let _ = self.send(params.into_request(), None, None);
    }

    /// Subscribes to events. One receiver gets the events of all subscriptions
    /// of this connection. A second call replaces the first receiver. The
    /// receiver buffers at most [`MAX_WAITING_EVENTS`]; if more are left
    /// unread, the connection is closed, and no event is dropped silently.
    ///
    /// # Errors
    #[doc = touchmark_proto::errors_of!(Subscribe)]
    /// `unknownClock` if `since` is too old. The connection's errors are those of
    /// [`Client::call`].
    pub async fn subscribe(&self, subscribe: Subscribe) -> Result<(u64, Events)> {
        let (sender, events) = mpsc::channel(MAX_WAITING_EVENTS);
        // This is set before the request, since the first event may directly
        // follow the answer.
        self.shared.calls().events = Some(sender);
        let answer = self.call(subscribe).await?;
        Ok((answer.subscription, events))
    }

    fn send(
        &self,
        request: Request,
        deadline: Option<Duration>,
        answer: Option<oneshot::Sender<Result<Reply>>>,
    ) -> Result<u64> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let frame = wire::encode(id, deadline, request)?;
        if let Some(answer) = answer {
            let mut calls = self.shared.calls();
            if calls.ended.is_some() || calls.lagged {
                drop(calls);
                return Err(self.ended());
            }
            calls.waiting.insert(id, answer);
        }
        self.queue(frame)?;
        Ok(id)
    }

    fn queue(&self, bytes: Vec<u8>) -> Result<()> {
        self.shared.outgoing.send(bytes).map_err(|_| self.ended())
    }

    fn ended(&self) -> Error {
        let calls = self.shared.calls();
        if calls.lagged {
            return Error::Lagged {
                kept: MAX_WAITING_EVENTS,
            };
        }
        Error::Gone {
            reason: calls.ended.clone().unwrap_or_default(),
        }
    }

    /// Returns whether the other handle shares this connection.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns whether the daemon has closed the connection.
    pub fn is_closed(&self) -> bool {
        // This is the only use of `closer` other than dropping it.
        self.closer.0.is_finished()
    }
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, reason: String) {
        let mut calls = self.calls();
        calls.ended = Some(reason);
        // Dropping the senders wakes the callers that wait for them.
        calls.waiting.clear();
        calls.events = None;
    }
}

/// Connects without blocking, so that it can run on the runtime's thread.
async fn dial(socket: &Path, deadline: Duration) -> Result<AsyncStream> {
    let until = Instant::now() + deadline;
    let stream = loop {
        match try_dial(socket) {
            Err(error) if is_full(&error) && Instant::now() < until => {
                tokio::time::sleep(AGAIN).await;
            }
            result => break result.map_err(|error| refused(socket, error, deadline))?,
        }
    };
    AsyncStream::from_std(stream).map_err(|error| Error::io("watch the socket", error))
}

/// Writes queued bytes to the socket. Ends when the last handle was dropped and
/// the queue is empty, or when the daemon accepts no bytes for `patience`.
async fn write(
    mut stream: OwnedWriteHalf,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
    patience: Duration,
) {
    while let Some(bytes) = queue.recv().await {
        let sent = tokio::time::timeout(patience, stream.write_all(&bytes)).await;
        if !matches!(sent, Ok(Ok(()))) {
            // The callers get an error from the reading task, or reach their
            // deadlines.
            return;
        }
    }
}

async fn read(mut stream: OwnedReadHalf, shared: std::sync::Weak<Shared>) {
    let mut inbox = Inbox::default();
    let mut chunk = vec![0; 16 * 1024];
    let reason = loop {
        let count = match stream.read(&mut chunk).await {
            Ok(0) => break String::new(),
            Ok(count) => count,
            Err(error) => break error.to_string(),
        };
        inbox.push(&chunk[..count]);
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if let Err(error) = dispatch(&mut inbox, &shared) {
            break error.to_string();
        }
    };
    if let Some(shared) = shared.upgrade() {
        shared.end(reason);
    }
}

fn dispatch(inbox: &mut Inbox, shared: &Shared) -> Result<()> {
    while let Some(message) = inbox.next()? {
        let mut calls = shared.calls();
        match message {
            Received::Answer { id, result } => {
                if let Some(caller) = calls.waiting.remove(&id) {
                    // The caller may have stopped waiting; then the answer is
                    // dropped.
                    let _ = caller.send(result.map_err(Error::Daemon));
                }
            }
            Received::Event(event) => {
                if let Some(sender) = &calls.events
                    && let Err(mpsc::error::TrySendError::Full(_)) = sender.try_send(event)
                {
                    calls.lagged = true;
                    return Err(Error::Lagged {
                        kept: MAX_WAITING_EVENTS,
                    });
                }
            }
        }
    }
    Ok(())
}
