//! A stream of server-sent events as the body of a response.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame};
use tokio::sync::{mpsc, watch};
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often a stream without events sends a comment, by which the browser
/// notices a broken connection.
const BEAT: Duration = Duration::from_secs(15);

/// How many bytes are sent in one piece.
const MAX_PIECE: usize = 64 * 1024;

/// The number of open streams.
pub(super) type Open = watch::Sender<usize>;

/// The body of a response: messages, each as a server-sent event.
pub(super) struct Stream {
    messages: mpsc::Receiver<String>,
    beat: Interval,
    _counted: Counted,
}

impl Stream {
    /// Returns a stream of these messages. It counts as open until it is
    /// dropped.
    pub(super) fn new(messages: mpsc::Receiver<String>, open: &Open) -> Self {
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            messages,
            beat,
            _counted: Counted::new(open),
        }
    }
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut piece = String::new();
        while piece.len() < MAX_PIECE
            && let Poll::Ready(message) = self.messages.poll_recv(context)
        {
            match message {
                Some(message) => piece.push_str(&message),
                None if piece.is_empty() => return Poll::Ready(None),
                None => break,
            }
        }
        if piece.is_empty() {
            ready!(self.beat.poll_tick(context));
            piece.push_str(":\n\n");
        }
        Poll::Ready(Some(Ok(Frame::data(piece.into()))))
    }
}

/// Counts a stream until it is dropped.
struct Counted(Open);

impl Counted {
    fn new(open: &Open) -> Self {
        open.send_modify(|count| *count += 1);
        Self(open.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
