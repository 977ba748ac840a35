//! A layer around the protocol's transport. It notes which answers were
//! delivered and when the input has ended, and drops messages that arrive too
//! early.

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

/// The maximum number of answers that wait for delivery. Answers to cancelled
/// requests are never delivered.
const MAX_WAITING: usize = 64;

/// State that the server and its transport share.
#[derive(Clone, Debug)]
pub(super) struct Wires {
    /// Changes that are being sent to the client.
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

    /// Returns when the input has ended.
    pub(super) async fn ended(&self) {
        let mut ended = self.ended.subscribe();
        // The sender is in `self`, so this cannot fail.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

/// Changes count as reported once their answer has left this process (MOD-2). A
/// client that cancels, or disconnects, gets them again.
#[derive(Debug)]
pub(super) struct Deliveries {
    link: Arc<Link>,
    /// For each request that will be answered with changes: the session, and
    /// the cursor that the changes reach.
    waiting: Mutex<HashMap<RequestId, (SessionId, String)>>,
    /// Locked from before an answer is sent until the daemon has acknowledged
    /// the delivery.
    acknowledging: tokio::sync::Mutex<()>,
}

impl Deliveries {
    /// Notes that the answer to this request will report changes up to the
    /// cursor to a session.
    pub(super) fn expect(&self, request: RequestId, told: (SessionId, String)) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_WAITING {
            waiting.clear();
        }
        waiting.insert(request, told);
    }

    /// Returns when the daemon has acknowledged all deliveries.
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
        // Changes that could not be acknowledged are reported again.
        let _ = self.link.speaking_for(session, asking).await;
    }
}

/// The transport on standard input and output.
pub(super) struct Stdio<T> {
    inner: T,
    wires: Wires,
    /// Whether a request has selected the version of the protocol.
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
            // Before the version is selected, the server would exit on a
            // notification or an answer, and needs none.
            if self.begun || matches!(message, JsonRpcMessage::Request(_)) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

/// Returns whether a request selects the version of the protocol: a handshake,
/// or a request with all that a handshake would contain.
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
