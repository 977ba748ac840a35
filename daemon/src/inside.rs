//! Requests that tasks of the daemon's own ask the loop, as a client would.

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use touchmark_engine::session_memory::Note;
use touchmark_proto::{ConnectionId, Error, ErrorCode, Method, Millis, Reply, Request, SessionId};

use crate::event::Event;
use crate::hooks::Consult;

/// A place at the loop.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    /// To the loop.
    pub(crate) events: UnboundedSender<Event>,
    /// A connection of its own, so that it waits for nobody else's requests.
    pub(crate) connection: ConnectionId,
    /// Nobody waits for the answers after that; `None` for what takes effect
    /// however late.
    pub(crate) until: Option<Millis>,
}

impl Inside {
    /// Asks as any client does.
    ///
    /// # Errors
    /// Those of the method, and `shuttingDown`.
    pub(crate) async fn ask<M: Method>(&self, ask: M) -> Result<M::Result, Error> {
        let reply = self.ask_any(ask.into_request()).await?;
        M::from_reply(reply)
            .ok_or_else(|| Error::new(ErrorCode::InternalError, "the answer is another method's"))
    }

    /// The same without types.
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

    /// Has a session remember something beside files, over restarts.
    pub(crate) fn note(&self, session: &SessionId, note: Note) {
        let consult = Consult::Noted(session.clone(), note);
        let _loop_has_ended = self.events.send(Event::Consult(consult));
    }

    /// What the loop answers; `None` once it has ended.
    pub(crate) async fn consult<T>(
        &self,
        consult: impl FnOnce(oneshot::Sender<T>) -> Consult,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.events.send(Event::Consult(consult(sender))).ok()?;
        receiver.await.ok()
    }
}
