//! Around the protocol's own transport: what was delivered, that the input
//! has ended, and what came too early.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::GetMeta as _;
use rmcp::model::{ClientRequest, JsonRpcMessage, ProtocolVersion, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::watch;
use touchmark_client::proto::SessionId;
use touchmark_client::proto::changes::ModifiedAck;

use super::link::{Again, Link};

/// The most answers that wait for being delivered; those of cancelled
/// requests never are.
const MAX_WAITING: usize = 64;

/// What the server and its transport share.
#[derive(Clone, Debug)]
pub(super) struct Wires {
    /// Changes on their way to the client.
    pub(super) deliveries: Arc<Deliveries>,
    /// Whether the input has ended.
    ended: watch::Sender<bool>,
}

impl Wires {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self {
            deliveries: Arc::new(Deliveries {
                link,
                waiting: Mutex::default(),
                acknowledging: tokio::sync::Mutex::default(),
            }),
            ended: watch::Sender::new(false),
        }
    }

    /// Comes back when the input has ended.
    pub(super) async fn ended(&self) {
        let mut ended = self.ended.subscribe();
        // Its sender lives here.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

/// Changes count as told once their answer has left this process (MOD-2): a
/// client that cancels, or is gone, is told again.
#[derive(Debug)]
pub(super) struct Deliveries {
    link: Arc<Link>,
    /// By the request that they answer, whom they tell and how far they reach.
    waiting: Mutex<HashMap<RequestId, (SessionId, String)>>,
    /// Held from before an answer leaves until the daemon knows of it.
    acknowledging: tokio::sync::Mutex<()>,
}

impl Deliveries {
    /// The answer to this request will tell a session of changes up to the
    /// cursor.
    pub(super) fn expect(&self, request: RequestId, told: (SessionId, String)) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_WAITING {
            waiting.clear();
        }
        waiting.insert(request, told);
    }

    /// Comes back when the daemon knows of all that was delivered.
    pub(super) async fn settled(&self) {
        drop(self.acknowledging.lock().await);
    }

    fn take(&self, request: &RequestId) -> Option<(SessionId, String)> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(request)
    }

    async fn delivered(&self, session: SessionId, cursor: &str) {
        let ack = |session| ModifiedAck {
            session,
            cursor: cursor.to_owned(),
        };
        let asking = self.link.ask(Again::Yes, ack);
        // What could not be acknowledged is told again.
        let _ = self.link.speaking_for(session, asking).await;
    }
}

/// Standard input and output.
pub(super) struct Stdio<T> {
    inner: T,
    wires: Wires,
    /// A request has chosen the era.
    begun: bool,
}

impl<T> Stdio<T> {
    pub(super) fn new(inner: T, wires: Wires) -> Self {
        Self {
            inner,
            wires,
            begun: false,
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Stdio<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            _ => None,
        };
        let deliveries = Arc::clone(&self.wires.deliveries);
        let sending = self.inner.send(message);
        async move {
            let told = answered.and_then(|request| deliveries.take(&request));
            let Some((session, cursor)) = told else {
                return sending.await;
            };
            let _held = deliveries.acknowledging.lock().await;
            sending.await?;
            deliveries.delivered(session, &cursor).await;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(message) = self.inner.receive().await else {
                self.wires.ended.send_replace(true);
                return None;
            };
            self.begun |= begins(&message);
            // Before an era is chosen there is nothing to be notified of or
            // answered, and the server would end over it.
            if self.begun || matches!(message, JsonRpcMessage::Request(_)) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

/// Whether a request chooses the era: a handshake, or one that carries all
/// that a handshake would have said.
fn begins(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    match message {
        JsonRpcMessage::Request(message) => match &message.request {
            ClientRequest::InitializeRequest(_) => true,
            ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
            request => request
                .get_meta()
                .missing_required_keys(&ProtocolVersion::V_2026_07_28)
                .is_empty(),
        },
        _ => false,
    }
}
