//! The task of one connection.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::Interest;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{spawn_blocking, yield_now};
use touchmark_proto::codec::{
    ClientMessage, Decoder, Encoder, Incoming, MessageId, Rejected, ServerMessage, Wire,
};
use touchmark_proto::{Error, ErrorCode, RequestId};

use super::credentials::error_line;
use super::peer::{Peer, Wanted};
use super::stream::{hung_up, shut, take};
use super::unfinished::{FREE, Unfinished};
use crate::event::Event;
use crate::time::Timeline;

/// The maximum number of bytes of one read from a socket.
const READ_BYTES: usize = 16 << 10;

/// The same between two requests, or within a small one. Other connections are
/// served between two reads, and the bytes of all of them are decoded on one
/// thread (LIM-7).
const SMALL_READ_BYTES: usize = 4 << 10;

/// The number of large requests that are decoded at the same time, on other
/// threads.
pub const DECODERS: usize = 2;

thread_local! {
    /// One buffer for all connections, since each empties it immediately.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// What all connections share.
#[derive(Debug)]
pub struct Hub {
    /// The channel to the loop.
    pub events: UnboundedSender<Event>,
    /// The next request's number; numbers are unique over all connections.
    pub requests: AtomicU64,
    /// The maximum size of a message, in bytes.
    pub max_frame: usize,
    /// The workspace's path, for names that are not UTF-8.
    pub root: Arc<[u8]>,
    /// The clock by which a request's deadline is computed.
    pub time: Timeline,
    /// The limit on half-sent requests.
    pub unfinished: Unfinished,
    /// One permit for each large request that may be decoded now.
    pub decoders: Semaphore,
}

/// Serves one connection until it ends, and then informs the loop.
pub async fn serve(peer: Arc<Peer>, hub: Arc<Hub>) {
    let mut connection = Connection {
        peer: &peer,
        hub: &hub,
        incoming: None,
        unfinished: 0,
    };
    if let Err(error) = connection.run().await {
        tracing::debug!("connection {}: {error}", peer.id.0);
    }
    hub.unfinished.forget(peer.id);
    // The client sees the end without waiting for the loop to release the
    // connection.
    let _gone_already = shut(&peer.stream);
    let _loop_has_ended = hub.events.send(Event::Disconnected(peer.id));
}

/// The reading side of a connection.
struct Connection<'a> {
    peer: &'a Arc<Peer>,
    hub: &'a Hub,
    /// Splits bytes into requests; created when the first byte arrives.
    incoming: Option<Decoder>,
    /// The number of bytes that have arrived since the last complete request.
    unfinished: usize,
}

impl Connection<'_> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            self.take_requests().await;
            self.count();
            let wanted = self.peer.wanted();
            if wanted.end || (wanted.half_closed && wanted.silent) {
                return Ok(());
            }
            if wanted.deaf {
                self.incoming = None;
            }
            let interest = match (wanted.read && !wanted.half_closed, wanted.write) {
                (true, true) => Interest::READABLE | Interest::WRITABLE,
                (true, false) => Interest::READABLE,
                (false, true) => Interest::WRITABLE,
                (false, false) => {
                    self.peer.wake.notified().await;
                    continue;
                }
            };
            let ready = tokio::select! {
                ready = self.peer.stream.ready(interest) => ready?,
                () = self.peer.wake.notified() => continue,
            };
            if interest.is_readable()
                && (ready.is_readable() || ready.is_read_closed())
                && !self.read()?
            {
                return Ok(());
            }
            yield_now().await;
            if interest.is_writable() && (ready.is_writable() || ready.is_write_closed()) {
                or_later(self.peer.write())?;
            }
        }
    }

    /// Reads bytes from the socket. Returns false if the client has closed both
    /// directions.
    fn read(&mut self) -> io::Result<bool> {
        let most = match self.unfinished > FREE {
            true => READ_BYTES,
            false => SMALL_READ_BYTES,
        };
        BUFFER.with_borrow_mut(|buffer| {
            let buffer = buffer.get_mut(..most).unwrap_or_default();
            let (read, taken) = take(&self.peer.stream, buffer);
            match (read, taken) {
                (Ok(()), 0) => {
                    self.peer.half_close();
                    Ok(!hung_up(&self.peer.stream))
                }
                (_, 1..) => {
                    self.push(buffer.get(..taken).unwrap_or_default());
                    Ok(true)
                }
                (read, 0) => or_later(read).map(|()| true),
            }
        })
    }

    fn push(&mut self, bytes: &[u8]) {
        let decoder = match &mut self.incoming {
            Some(decoder) => decoder,
            None => {
                let wire = bytes.first().copied().and_then(Wire::sniff);
                let Some(wire) = wire else {
                    let error = Error::new(
                        ErrorCode::ParseError,
                        "neither JSON, nor a Content-Length header, nor the preface TMK1",
                    );
                    self.peer.last_words(&error_line(error));
                    return;
                };
                let Hub {
                    max_frame, root, ..
                } = self.hub;
                self.peer
                    .speaks(Encoder::new(wire, *max_frame, Arc::clone(root)));
                self.incoming.insert(Decoder::new(wire, *max_frame))
            }
        };
        decoder.push(bytes);
        self.unfinished += bytes.len();
    }

    /// Passes the complete requests to the loop, as far as the limits allow.
    async fn take_requests(&mut self) {
        loop {
            let wanted = self.peer.wanted();
            let Some(next) = self.decode(wanted).await else {
                return;
            };
            if let Ok(Some(_)) = next {
                self.complete();
            }
            match next {
                Ok(Some(Incoming::One(message))) => self.take(*message, None),
                Ok(Some(Incoming::Batch(messages))) => {
                    let batch = self.peer.expect_batch(messages.len());
                    for message in messages {
                        self.take(message, Some(batch));
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    self.peer
                        .reject(Some(ServerMessage::error(MessageId::Null, error)), None);
                    self.peer.last_words(b"");
                }
            }
        }
    }

    /// Decodes the next request, a large one on another thread. Returns `None` if
    /// none is wanted.
    async fn decode(&mut self, wanted: Wanted) -> Option<Result<Option<Incoming>, Error>> {
        let mut decoder = self.incoming.take_if(|_| wanted.read)?;
        let decode = move || {
            let next = match wanted.half_closed {
                true => decoder.finish(),
                false => decoder.next(),
            };
            (decoder, next)
        };
        let (decoder, next) = if self.unfinished > FREE {
            let _permit = self.hub.decoders.acquire().await;
            spawn_blocking(decode).await.ok()?
        } else {
            decode()
        };
        self.incoming = Some(decoder);
        Some(next)
    }

    /// Resets the count, since a request is complete. The bytes after it are
    /// fewer than one read returns, and are not counted.
    fn complete(&mut self) {
        if self.unfinished > FREE {
            self.hub.unfinished.forget(self.peer.id);
        }
        self.unfinished = 0;
    }

    /// Counts a large incomplete request against the limit of all connections.
    fn count(&self) {
        if self.unfinished > FREE && self.incoming.is_some() {
            self.hub.unfinished.note(self.peer, self.unfinished - FREE);
        }
    }

    fn take(&self, message: Result<ClientMessage, Rejected>, batch: Option<u64>) {
        let ClientMessage {
            id,
            within_ms,
            request: ask,
        } = match message {
            Ok(message) => message,
            Err(rejected) => return self.peer.reject(rejected.into_reply(), batch),
        };
        let request = RequestId(self.hub.requests.fetch_add(1, Ordering::Relaxed));
        self.peer.expect(request, id, batch);
        let until = within_ms.map(|within| self.hub.time.now().saturating_add(within));
        let _loop_has_ended = self.hub.events.send(Event::Ask {
            request,
            connection: self.peer.id,
            ask,
            until,
        });
    }
}

/// Treats a socket that is not ready as no error: it is tried again in the next
/// turn.
fn or_later(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ) =>
        {
            Ok(())
        }
        result => result,
    }
}
