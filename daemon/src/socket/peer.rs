//! The loop's side of a connection.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore};
use touchmark_proto::codec::{Encoder, MessageId, Part, ServerMessage};
use touchmark_proto::events::Event;
use touchmark_proto::{ConnectionId, Error, ErrorCode, Reply, RequestId};

use super::Stream;
use super::stream::process;
use crate::event::Encoded;
use crate::failpoint;

/// The maximum number of bytes that may wait for a subscriber; with more it is
/// disconnected.
pub const MAX_EVENT_BYTES: usize = 8 << 20;

/// The maximum number of bytes that may wait for any client; with more it is
/// disconnected. Several large answers fit, since the client has requested
/// them. While [`MAX_ANSWER_BYTES`] wait, no further request is read.
pub const MAX_BYTES: usize = 64 << 20;

/// The number of waiting bytes from which no further request is read.
pub const MAX_ANSWER_BYTES: usize = 1 << 20;

/// The number of unanswered requests from which no further request is read.
pub const MAX_IN_FLIGHT: usize = 256;

/// The number of tasks that answer requests of one connection at the same time.
/// Each may open the store and start threads.
const TASKS: usize = 16;

/// The maximum capacity in bytes that an emptied buffer keeps.
const KEPT_CAPACITY: usize = 16 << 10;

/// A connection as the loop sees it: where answers go.
#[derive(Debug)]
pub struct Peer {
    /// The connection's number.
    pub id: ConnectionId,
    pub(super) stream: Stream,
    /// Wakes the connection's task when there is something to do.
    pub(super) wake: Notify,
    /// The tasks that may answer its requests at the same time. Closed once the
    /// connection has ended.
    pub(crate) tasks: Arc<Semaphore>,
    outgoing: Mutex<Outgoing>,
}

#[derive(Debug, Default)]
struct Outgoing {
    /// `None` until the client has sent something.
    encoder: Option<Encoder>,
    waiting: HashMap<RequestId, Waiting>,
    batches: HashMap<u64, Batch>,
    next_batch: u64,
    bytes: Vec<u8>,
    /// The number of `bytes` that are already written.
    written: usize,
    subscriptions: usize,
    end: End,
    /// Whether the client has closed its sending side. It may still read.
    half_closed: bool,
    /// Whether the connection's task reads no more requests until it is woken.
    stalled: bool,
}

/// When a connection ends.
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

/// A JSON batch whose answers are sent together.
#[derive(Debug, Default)]
struct Batch {
    unanswered: usize,
    answers: Vec<Part>,
    bytes: usize,
}

/// Encodes the answer to a request, on any thread.
#[derive(Debug)]
pub(crate) struct Encoding {
    encoder: Encoder,
    id: MessageId,
    in_batch: bool,
}

impl Encoding {
    /// Encodes an answer. It is empty if it cannot be encoded.
    pub(crate) fn encode(self, outcome: Result<Reply, Error>) -> Encoded {
        let Self { encoder, id, .. } = self;
        if self.in_batch {
            return Encoded::Part(encoder.part(id, outcome));
        }
        let mut bytes = Vec::new();
        encode(&encoder, &ServerMessage::Reply { id, outcome }, &mut bytes);
        Encoded::Bytes(bytes)
    }

    /// Encodes events for the same client.
    pub(crate) fn events(self, events: impl Iterator<Item = Event>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for event in events {
            encode(&self.encoder, &ServerMessage::Event(event), &mut bytes);
        }
        bytes
    }
}

/// Appends a message to `bytes`, or nothing if it cannot be encoded.
fn encode(encoder: &Encoder, message: &ServerMessage, bytes: &mut Vec<u8>) {
    if let Err(error) = encoder.encode(message, bytes) {
        tracing::warn!("a message was not sent: {error}");
    }
}

/// What the connection's task must do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) read: bool,
    pub(super) write: bool,
    /// Whether nothing remains to be sent, now or later.
    pub(super) silent: bool,
    /// Whether the client will send nothing more.
    pub(super) half_closed: bool,
    pub(super) end: bool,
    /// Whether further input is ignored.
    pub(super) deaf: bool,
}

impl Peer {
    /// Returns the peer of a new connection.
    pub fn new(id: ConnectionId, stream: Stream) -> Self {
        Self {
            id,
            stream,
            wake: Notify::new(),
            tasks: Arc::new(Semaphore::new(TASKS)),
            outgoing: Mutex::default(),
        }
    }

    /// Returns the process at the other end, if the system reports it.
    pub(crate) fn process(&self) -> Option<u32> {
        process(&self.stream)
    }

    /// Answers a request of this connection with the next [flush](Self::flush).
    /// A request that came without an id gets no answer. Returns how many bytes
    /// wait to be written in addition.
    pub fn answer(&self, request: RequestId, outcome: Result<Reply, Error>) -> usize {
        let encoding = self.encoding(request);
        self.answer_encoded(request, encoding.map(|encoding| encoding.encode(outcome)))
    }

    /// Returns what encodes the answer to a request; `None` if it gets none.
    pub(crate) fn encoding(&self, request: RequestId) -> Option<Encoding> {
        let outgoing = self.lock();
        let waiting = outgoing.waiting.get(&request)?;
        Some(Encoding {
            encoder: outgoing.encoder.clone()?,
            id: waiting.id.clone()?,
            in_batch: waiting.batch.is_some(),
        })
    }

    /// As [`answer`](Self::answer), with an encoded answer; `None` for a request
    /// that gets none.
    pub(crate) fn answer_encoded(&self, request: RequestId, answer: Option<Encoded>) -> usize {
        let mut outgoing = self.lock();
        let before = outgoing.bytes.len();
        if let Some(Waiting { batch, .. }) = outgoing.waiting.remove(&request) {
            match (batch, answer) {
                (Some(batch), Some(Encoded::Part(part))) => {
                    outgoing.batch_answer(batch, Some(part));
                }
                (Some(batch), _) => outgoing.batch_answer(batch, None),
                (None, Some(Encoded::Bytes(bytes))) => outgoing.append(&bytes),
                (None, _) => {}
            }
        }
        outgoing.bytes.len().saturating_sub(before)
    }

    /// Writes as much as the system accepts without blocking. The connection's
    /// task is woken only if something remains to be done.
    pub fn flush(&self) {
        // If this fails, the task gets the same error, and ends.
        let _written = self.write();
        if self.lock().needs_its_task() {
            self.wake.notify_one();
        }
    }

    /// Sends a notification. A client that reads too slowly is disconnected.
    pub fn event(&self, event: Event) {
        self.lock()
            .send(Some(&ServerMessage::Event(event)), MAX_EVENT_BYTES);
        self.wake.notify_one();
    }

    /// Sends events that are encoded already.
    pub(crate) fn encoded_events(&self, bytes: &[u8]) {
        self.lock().append(bytes);
        self.wake.notify_one();
    }

    /// Sets the number of subscriptions. A connection whose client has closed
    /// its sending side stays open as long as it has subscriptions.
    pub fn subscriptions(&self, count: usize) {
        self.lock().subscriptions = count;
        self.wake.notify_one();
    }

    /// Closes the connection as soon as all messages so far are written.
    pub fn close(&self) {
        self.lock().end(End::AfterFlush);
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the client reads its answers: few of them wait.
    pub fn reads(&self) -> bool {
        self.lock().pending() < MAX_ANSWER_BYTES
    }

    pub(super) fn speaks(&self, encoder: Encoder) {
        self.lock().encoder = Some(encoder);
    }

    /// Notes a request that is passed to the loop.
    pub(super) fn expect(&self, request: RequestId, id: Option<MessageId>, batch: Option<u64>) {
        self.lock().waiting.insert(request, Waiting { id, batch });
    }

    /// Begins a batch with this number of messages, whether they get answers or
    /// not.
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

    /// Sends an answer without a request to the loop.
    pub(super) fn reject(&self, message: Option<ServerMessage>, batch: Option<u64>) {
        let mut outgoing = self.lock();
        match (batch, message) {
            (Some(batch), message) => {
                let part = message.and_then(|message| outgoing.part(message));
                outgoing.batch_answer(batch, part);
            }
            (None, message) => outgoing.send(message.as_ref(), MAX_BYTES),
        }
    }

    /// Sends bytes as they are, and ends the connection.
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

    /// Writes as many waiting bytes as the system accepts without blocking.
    ///
    /// # Errors
    /// The system's error; `WouldBlock` if it accepts none.
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

    /// Appends a message. If more than `most` bytes are waiting already, the
    /// client reads too slowly, and the connection ends.
    fn send(&mut self, message: Option<&ServerMessage>, most: usize) {
        let Some(message) = message else { return };
        if !self.takes(most) {
            return;
        }
        if let Some(encoder) = &self.encoder {
            encode(encoder, message, &mut self.bytes);
        }
    }

    /// Appends what is encoded already. If too many bytes are waiting already, the
    /// connection ends.
    fn append(&mut self, encoded: &[u8]) {
        if self.takes(MAX_BYTES) {
            self.bytes.extend_from_slice(encoded);
        }
    }

    /// Returns whether bytes may be appended. Ends the connection if more than
    /// `most` are waiting already.
    fn takes(&mut self, most: usize) -> bool {
        if self.end != End::Now && self.pending() > most {
            self.bytes = Vec::new();
            self.written = 0;
            self.end(End::Now);
        }
        self.end != End::Now
    }

    fn part(&self, message: ServerMessage) -> Option<Part> {
        match (message, &self.encoder) {
            (ServerMessage::Reply { id, outcome }, Some(encoder)) => {
                Some(encoder.part(id, outcome))
            }
            _ => None,
        }
    }

    /// Adds an answer to a batch. Answers beyond the size of one frame become
    /// errors, so that a batch of reads cannot fill the memory.
    fn batch_answer(&mut self, number: u64, part: Option<Part>) {
        const MOST: usize = touchmark_proto::codec::MAX_FRAME;
        let (Some(encoder), Some(batch)) = (&self.encoder, self.batches.get_mut(&number)) else {
            return;
        };
        if let Some(part) = part {
            let part = match batch.bytes > MOST {
                true => {
                    let error = Error::new(
                        ErrorCode::TooLarge,
                        "the answers of the batch do not fit into one message",
                    );
                    encoder.part(part.id().clone(), Err(error.hint("send smaller batches")))
                }
                false => part,
            };
            batch.bytes = batch.bytes.saturating_add(part.size());
            batch.answers.push(part);
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
