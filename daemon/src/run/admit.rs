//! Accepts connections and requests.

use std::sync::Arc;
use std::time::Instant;

use touchmark_engine::Input;
use touchmark_proto::{ConnectionId, Error as Refusal, ErrorCode, Millis, Request, RequestId};

use super::clients::Asked;
use super::{ACCEPT_PAUSE, Daemon};
use crate::context::storage;
use crate::socket::{Peer, Stream, credentials, serve};
use crate::system::proc;

impl Daemon {
    pub(super) fn accepted(&mut self, accepted: std::io::Result<Stream>) {
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!("connections cannot be accepted: {error}");
                self.clients.accept_after = Some(Instant::now() + ACCEPT_PAUSE);
                return;
            }
        };
        if let Err(error) = credentials::check(&stream) {
            tracing::warn!("refused: {error}");
            return credentials::refuse(stream, error);
        }
        let most = self.options.config.connections;
        if self.clients.peers.len() >= most as usize {
            let error = Refusal::new(
                ErrorCode::TooLarge,
                format!("{most} connections are open already"),
            );
            return credentials::refuse(
                stream,
                error.hint("close some, or raise limits.connections"),
            );
        }
        let id = self.clients.new_connection();
        let peer = Arc::new(Peer::new(id, stream));
        self.clients.peers.insert(id, Arc::clone(&peer));
        self.fleet.connected(id);
        tokio::spawn(serve(peer, Arc::clone(&self.clients.hub)));
    }

    pub(super) fn ask(
        &mut self,
        request: RequestId,
        connection: ConnectionId,
        mut ask: Request,
        until: Option<Millis>,
    ) {
        self.clients.requests += 1;
        self.number_processes(connection, &mut ask);
        self.asked_by(connection, &ask);
        let asked = Asked::new(connection, &ask, until);
        if let (true, Some(cause)) = (asked.changes_state, &self.storage.trouble) {
            // It would take effect in memory and be lost with the next restart.
            let refusal = storage(cause);
            return self.clients.answer(asked, request, Err(refusal));
        }
        self.look_at_moved(&ask);
        self.clients.asked.insert(request, asked);
        if matches!(ask, Request::Subscribe(_)) {
            // Set first, so that facts recorded from the subscription on are
            // published and need no lookup in the log.
            self.engine.set_subscribed(true);
        }
        self.feed(Input::Request {
            request,
            connection,
            ask,
            until,
        });
    }

    /// Replaces the id of a process that a client names by this daemon's id for
    /// that process. In a container, a process has another id.
    fn number_processes(&self, connection: ConnectionId, ask: &mut Request) {
        let named = ask.process_mut();
        // The daemon's own requests have no peer.
        let peer = self.clients.peers.get(&connection);
        if let (Some(named), Some(peer)) = (named, peer)
            && let Some(pid) = *named
        {
            *named = peer.process().and_then(|peer| proc::known_as(pid, peer));
        }
    }
}
