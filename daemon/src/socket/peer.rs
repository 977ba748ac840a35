//! The loop's end of a connection.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use touchmark_proto::codec::{Encoder, MessageId, ServerMessage};
use touchmark_proto::events::Event;
use touchmark_proto::{ConnectionId, Error, ErrorCode, Reply, RequestId};

use super::Stream;
use super::stream::process;
use crate::failpoint;

/// A subscriber that lets more than this many bytes wait is disconnected.
pub const MAX_EVENT_BYTES: usize = 8 << 20;

/// So is a client that lets more than this many bytes of anything wait. More
/// than one answer may be, since answers are asked for; no more are taken
/// on while [`MAX_ANSWER_BYTES`] wait.
pub const MAX_BYTES: usize = 64 << 20;

/// While this many bytes wait, no further request is read.
pub const MAX_ANSWER_BYTES: usize = 1 << 20;

/// While this many requests are unanswered, no further one is read.
pub const MAX_IN_FLIGHT: usize = 256;

/// An emptied buffer keeps at most this much memory.
const KEPT_CAPACITY: usize = 16 << 10;

/// A connection as the loop sees it: something to answer to.
#[derive(Debug)]
pub struct Peer {
    /// Its number.
    pub id: ConnectionId,
    pub(super) stream: Stream,
    /// Wakes the connection's task when there is something to do.
    pub(super) wake: Notify,
    outgoing: Mutex<Outgoing>,
}

#[derive(Debug, Default)]
struct Outgoing {
    /// Known as soon as the client has sent something.
    encoder: Option<Encoder>,
    waiting: HashMap<RequestId, Waiting>,
    batches: HashMap<u64, Batch>,
    next_batch: u64,
    bytes: Vec<u8>,
    /// How many of `bytes` are written already.
    written: usize,
    subscriptions: usize,
    end: End,
    /// The client has said all it will say; it may still listen.
    half_closed: bool,
    /// The connection's task takes no more requests until it is woken.
    stalled: bool,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    #[default]
    Open,
    AfterFlush,
    Now,
}

/// A request that is not answered yet.
#[derive(Debug)]
struct Waiting {
    id: Option<MessageId>,
    batch: Option<u64>,
}

/// A JSON batch whose answers leave together.
#[derive(Debug, Default)]
struct Batch {
    unanswered: usize,
    answers: Vec<ServerMessage>,
    bytes: usize,
}

/// What the connection's task is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) read: bool,
    pub(super) write: bool,
    /// Nothing is to be said any more.
    pub(super) silent: bool,
    /// No more will be asked than what has come.
    pub(super) half_closed: bool,
    pub(super) end: bool,
    /// Nothing is heard any more.
    pub(super) deaf: bool,
}

impl Peer {
    /// A new connection's.
    pub fn new(id: ConnectionId, stream: Stream) -> Self {
        Self {
            id,
            stream,
            wake: Notify::new(),
            outgoing: Mutex::default(),
        }
    }

    /// The process at its other end, if the system tells.
    pub(crate) fn process(&self) -> Option<u32> {
        process(&self.stream)
    }

    /// Answers a request of this connection, as soon as it is
    /// [flushed](Self::flush). One that came without an id gets no answer.
    pub fn answer(&self, request: RequestId, outcome: Result<Reply, Error>) {
        let mut outgoing = self.lock();
        if let Some(Waiting { id, batch }) = outgoing.waiting.remove(&request) {
            let message = id.map(|id| ServerMessage::Reply { id, outcome });
            match batch {
                Some(batch) => outgoing.batch_answer(batch, message),
                None => outgoing.send(message.as_ref(), MAX_BYTES),
            }
        }
    }

    /// Writes what the system takes at once. The connection's task is woken
    /// only if something else is to be done.
    pub fn flush(&self) {
        // The task meets the same error, and ends.
        let _written = self.write();
        if self.lock().needs_its_task() {
            self.wake.notify_one();
        }
    }

    /// Sends a notification. A reader too slow for it is disconnected.
    pub fn event(&self, event: Event) {
        self.lock()
            .send(Some(&ServerMessage::Event(event)), MAX_EVENT_BYTES);
        self.wake.notify_one();
    }

    /// A connection whose client has closed its side stays open as long as it
    /// has subscriptions.
    pub fn subscriptions(&self, count: usize) {
        self.lock().subscriptions = count;
        self.wake.notify_one();
    }

    /// Closes as soon as everything said so far is written.
    pub fn close(&self) {
        self.lock().end(End::AfterFlush);
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn speaks(&self, encoder: Encoder) {
        self.lock().encoder = Some(encoder);
    }

    /// A request goes to the loop.
    pub(super) fn expect(&self, request: RequestId, id: Option<MessageId>, batch: Option<u64>) {
        self.lock().waiting.insert(request, Waiting { id, batch });
    }

    /// A batch of that many messages, answered or not, begins.
    pub(super) fn expect_batch(&self, messages: usize) -> u64 {
        let mut outgoing = self.lock();
        let number = outgoing.next_batch;
        outgoing.next_batch += 1;
        let batch = Batch {
            unanswered: messages,
            ..Batch::default()
        };
        outgoing.batches.insert(number, batch);
        number
    }

    /// An answer that the loop was not asked for.
    pub(super) fn reject(&self, message: Option<ServerMessage>, batch: Option<u64>) {
        let mut outgoing = self.lock();
        match batch {
            Some(batch) => outgoing.batch_answer(batch, message),
            None => outgoing.send(message.as_ref(), MAX_BYTES),
        }
    }

    /// Bytes as they are, and the end.
    pub(super) fn last_words(&self, bytes: &[u8]) {
        let mut outgoing = self.lock();
        outgoing.bytes.extend_from_slice(bytes);
        outgoing.end(End::AfterFlush);
    }

    pub(super) fn half_close(&self) {
        self.lock().half_closed = true;
    }

    pub(super) fn wanted(&self) -> Wanted {
        let mut outgoing = self.lock();
        let write = outgoing.pending() > 0;
        let read = outgoing.end == End::Open && outgoing.may_take_more();
        outgoing.stalled = !read;
        Wanted {
            read,
            write,
            deaf: outgoing.end != End::Open,
            half_closed: outgoing.half_closed,
            silent: !write && outgoing.waiting.is_empty() && outgoing.subscriptions == 0,
            end: outgoing.end == End::Now || (outgoing.end == End::AfterFlush && !write),
        }
    }

    /// Writes what the system takes at once of what waits.
    ///
    /// # Errors
    /// What the system says; `WouldBlock` if it takes nothing.
    pub(super) fn write(&self) -> io::Result<()> {
        let mut outgoing = self.lock();
        let waiting = outgoing.bytes.get(outgoing.written..).unwrap_or_default();
        if waiting.is_empty() {
            return Ok(());
        }
        failpoint::pass("about to write to a client");
        let taken = self.stream.try_write(waiting)?;
        failpoint::pass("written to a client");
        outgoing.written += taken;
        if outgoing.pending() == 0 {
            outgoing.bytes.clear();
            outgoing.bytes.shrink_to(KEPT_CAPACITY);
            outgoing.written = 0;
        } else if outgoing.written > outgoing.bytes.len() / 2 {
            let written = std::mem::take(&mut outgoing.written);
            outgoing.bytes.drain(..written);
        }
        Ok(())
    }
}

impl Outgoing {
    fn pending(&self) -> usize {
        self.bytes.len().saturating_sub(self.written)
    }

    fn needs_its_task(&self) -> bool {
        self.pending() > 0 || self.end != End::Open || self.half_closed || self.stalled
    }

    fn may_take_more(&self) -> bool {
        self.waiting.len() < MAX_IN_FLIGHT && self.pending() < MAX_ANSWER_BYTES
    }

    fn end(&mut self, end: End) {
        self.end = self.end.max(end);
    }

    /// Appends a message unless more than `most` bytes wait already: then the
    /// reader is too slow, and the connection ends.
    fn send(&mut self, message: Option<&ServerMessage>, most: usize) {
        let Some(message) = message else { return };
        if self.end == End::Now {
            return;
        }
        if self.pending() > most {
            self.bytes = Vec::new();
            self.written = 0;
            self.end(End::Now);
            return;
        }
        if let Some(encoder) = &self.encoder
            && let Err(error) = encoder.encode(message, &mut self.bytes)
        {
            tracing::warn!("a message was not sent: {error}");
        }
    }

    fn batch_answer(&mut self, number: u64, message: Option<ServerMessage>) {
        let (Some(encoder), Some(batch)) = (&self.encoder, self.batches.get_mut(&number)) else {
            return;
        };
        if let Some(message) = message {
            batch.add(message, encoder);
        }
        batch.unanswered = batch.unanswered.saturating_sub(1);
        if batch.unanswered > 0 {
            return;
        }
        let answers = std::mem::take(&mut batch.answers);
        if self.pending() > MAX_BYTES {
            self.end(End::Now);
        } else if let Err(error) = encoder.batch(&answers, &mut self.bytes) {
            tracing::warn!("a batch was not answered: {error}");
        }
        self.batches.remove(&number);
    }
}

impl Batch {
    /// Keeps an answer until the others are there; no more of them than fit
    /// into one frame, so that a batch of reads cannot fill the memory.
    fn add(&mut self, message: ServerMessage, encoder: &Encoder) {
        const MOST: usize = touchmark_proto::codec::MAX_FRAME;
        let message = match message {
            ServerMessage::Reply { id, outcome: Ok(_) } if self.bytes > MOST => {
                let error = Error::new(
                    ErrorCode::TooLarge,
                    "the answers of the batch do not fit into one message",
                );
                ServerMessage::error(id, error.hint("send smaller batches"))
            }
            message => message,
        };
        let mut bytes = Vec::new();
        let _over_the_limit_itself = encoder.encode(&message, &mut bytes);
        self.bytes = self.bytes.saturating_add(bytes.len());
        self.answers.push(message);
    }
}
