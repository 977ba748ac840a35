//! The limit on incomplete requests of all connections together (LIM-4). One
//! message may be large, but large halves from many connections must not fill
//! the memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use touchmark_proto::codec::{MessageId, ServerMessage};
use touchmark_proto::{ConnectionId, Error, ErrorCode, ErrorData};

use super::Peer;

/// The number of bytes of each connection that are not counted.
pub(super) const FREE: usize = 64 << 10;

/// The maximum number of counted bytes of all connections. If there are more,
/// the connection with the most is ended.
pub(super) const MOST: usize = 64 << 20;

/// The connections with a large incomplete request, and the numbers of their
/// bytes.
#[derive(Debug, Default)]
pub struct Unfinished {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    of: HashMap<ConnectionId, (usize, Arc<Peer>)>,
}

impl Held {
    fn remove(&mut self, connection: ConnectionId) -> Option<Arc<Peer>> {
        let (bytes, peer) = self.of.remove(&connection)?;
        self.bytes -= bytes;
        Some(peer)
    }
}

impl Unfinished {
    /// Notes the number of bytes that a connection has sent of an incomplete
    /// request.
    pub(super) fn note(&self, peer: &Arc<Peer>, bytes: usize) {
        let mut held = self.lock();
        held.remove(peer.id);
        held.bytes += bytes;
        held.of.insert(peer.id, (bytes, Arc::clone(peer)));
        while held.bytes > MOST {
            let most = held.of.iter().max_by_key(|(_, (bytes, _))| *bytes);
            let Some(id) = most.map(|(id, _)| *id) else {
                return;
            };
            if let Some(peer) = held.remove(id) {
                refuse(&peer);
            }
        }
    }

    /// Forgets a connection, since its request is complete or it has ended.
    pub(super) fn forget(&self, connection: ConnectionId) {
        self.lock().remove(connection);
    }

    /// Returns the number of bytes that are counted.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refuse(peer: &Peer) {
    let message = format!("unfinished messages of all connections are over the limit of {MOST}");
    let error = Error::new(ErrorCode::TooLarge, message)
        .hint("send smaller messages, and each to its end")
        .with(ErrorData {
            limit: Some(MOST as u64),
            ..ErrorData::default()
        });
    peer.reject(Some(ServerMessage::error(MessageId::Null, error)), None);
    peer.last_words(b"");
    // The connection's task frees the memory.
    peer.wake.notify_one();
}
