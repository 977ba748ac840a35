//! Requests that the daemon's own tasks send to the event loop, as clients
//! would.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use touchmark_engine::Fact;
use touchmark_engine::session_memory::Note;
use touchmark_proto::daemon::Ping;
use touchmark_proto::{ConnectionId, Error, ErrorCode, Method, Millis, Reply, Request, SessionId};

use crate::event::Event;
use crate::hooks::Consult;

/// How long an answer waits for the looks at versions that git may have brought.
const LOOKING: Duration = Duration::from_secs(10);

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
        self.consult(|answer| Consult::Ask {
            connection: self.connection,
            ask,
            until: self.until,
            answer,
        })
        .await
        .unwrap_or_else(|| {
            Err(Error::new(
                ErrorCode::ShuttingDown,
                "the daemon is shutting down",
            ))
        })
    }

    /// As [`ask`](Self::ask), but does not wait. The next request takes effect
    /// after this one.
    pub(crate) fn tell<M: Method>(&self, ask: M) {
        let (answer, _nobody_waits) = oneshot::channel();
        let consult = Consult::Ask {
            connection: self.connection,
            ask: ask.into_request(),
            until: self.until,
            answer,
        };
        let _loop_has_ended = self.events.send(Event::Consult(consult));
    }

    /// Stores a note for a session, in addition to what it knows of files. It
    /// survives restarts.
    pub(crate) fn note(&self, session: &SessionId, note: Note) {
        let consult = Consult::Noted(session.clone(), note);
        let _loop_has_ended = self.events.send(Event::Consult(consult));
    }

    /// Records results ([`Fact::is_outcome`]). An answer that is sent later
    /// waits until they are committed.
    pub(crate) fn record(&self, facts: Vec<Fact>) {
        if !facts.is_empty() {
            let consult = Consult::Outcome(facts);
            let _loop_has_ended = self.events.send(Event::Consult(consult));
        }
    }

    /// Waits until it is known of all recorded versions whether git brought them
    /// (HIST-8), and these results are recorded. Not longer than [`LOOKING`]:
    /// a version on a mount that hangs then counts as its author's.
    ///
    /// # Errors
    /// `shuttingDown`.
    pub(crate) async fn looked(&self) -> Result<(), Error> {
        let looked = self.consult(|answer| Consult::Looked { answer });
        let _or_too_late = tokio::time::timeout(LOOKING, looked).await;
        self.ask(Ping {}).await.map(drop)
    }

    /// Asks the loop a question and waits for the answer; `None` once the loop
    /// has ended.
    pub(crate) async fn consult<T>(
        &self,
        consult: impl FnOnce(oneshot::Sender<T>) -> Consult,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.events.send(Event::Consult(consult(sender))).ok()?;
        receiver.await.ok()
    }
}
