//! Requests that the daemon's own tasks send to the event loop, as clients
//! would.

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use touchmark_engine::session_memory::Note;
use touchmark_engine::{Fact, Input, State};
use touchmark_proto::{ConnectionId, Error, ErrorCode, Method, Millis, Reply, Request, SessionId};

use crate::content::Met;
use crate::event::{Event, Look};

/// A client of the event loop inside the daemon.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    /// The channel to the loop.
    pub(crate) events: UnboundedSender<Event>,
    /// A separate connection number, so that these requests do not wait for
    /// those of other clients.
    pub(crate) connection: ConnectionId,
    /// The time after which no answer is needed; `None` for requests that take
    /// effect however late.
    pub(crate) until: Option<Millis>,
}

impl Inside {
    /// Sends a request, as any client does, and waits for the answer.
    ///
    /// # Errors
    /// The errors of the method, and `shuttingDown`.
    pub(crate) async fn ask<M: Method>(&self, ask: M) -> Result<M::Result, Error> {
        let reply = self.ask_any(ask.into_request()).await?;
        M::from_reply(reply)
            .ok_or_else(|| Error::new(ErrorCode::InternalError, "the answer is another method's"))
    }

    /// Sends a request of any method and waits for the answer.
    pub(crate) async fn ask_any(&self, ask: Request) -> Result<Reply, Error> {
        let answer = self.call(ask);
        answer.await.unwrap_or_else(|_| {
            Err(Error::new(
                ErrorCode::ShuttingDown,
                "the daemon is shutting down",
            ))
        })
    }

    /// As [`ask`](Self::ask), but does not wait. The next request takes effect
    /// after this one.
    pub(crate) fn tell<M: Method>(&self, ask: M) {
        let _answer = self.call(ask.into_request());
    }

    fn call(&self, ask: Request) -> oneshot::Receiver<Result<Reply, Error>> {
        let (answer, receiver) = oneshot::channel();
        let _loop_has_ended = self.events.send(Event::Call {
            connection: self.connection,
            ask,
            until: self.until,
            answer,
        });
        receiver
    }

    /// Passes an input to the engine, without waiting.
    pub(crate) fn feed(&self, input: Input) {
        let _loop_has_ended = self.events.send(Event::Feed(input));
    }

    /// Stores a note for a session, in addition to what it knows of files. It
    /// survives restarts.
    pub(crate) fn note(&self, session: &SessionId, note: Note) {
        self.feed(Input::Noted {
            session: session.clone(),
            note,
        });
    }

    /// Records results ([`Fact::is_outcome`]). An answer that is sent later
    /// waits until they are committed.
    pub(crate) fn record(&self, facts: Vec<Fact>) {
        if !facts.is_empty() {
            self.feed(Input::Outcome(facts));
        }
    }

    /// Passes a content that is to be stored, or the hash of one that must not
    /// be.
    pub(crate) fn keep(&self, met: Met) {
        let _loop_has_ended = self.events.send(Event::Met(vec![met]));
    }

    /// Returns what `look` finds in the engine's state; `None` once the loop has
    /// ended.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Option<T> {
        look_from(&self.events, look).await
    }
}

/// As [`Inside::look`], for a task that makes no requests.
pub(crate) async fn look_from<T: Send + 'static>(
    events: &UnboundedSender<Event>,
    look: impl FnOnce(&State) -> T + Send + 'static,
) -> Option<T> {
    let (answer, receiver) = oneshot::channel();
    let look = Look(Box::new(move |state| {
        let _nobody_waits = answer.send(look(state));
    }));
    events.send(Event::Look(look)).ok()?;
    receiver.await.ok()
}
