//! Messages as both sides mean them, whatever the wire.

use serde::{Deserialize, Serialize};

use crate::events::Event;
use crate::ids::MAX_ID_BYTES;
use crate::{Error, Reply, Request};

/// The name that a client gave a request; its answer carries the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MessageId {
    /// JSON's `null`; also the id of an error about a message whose id could
    /// not be read.
    Null,
    /// A number from 0.
    Number(u64),
    /// A number below 0.
    Negative(i64),
    /// A text of at most 256 bytes.
    Text(String),
}

impl MessageId {
    /// Whether the id is short enough to be kept until the answer.
    pub fn is_valid(&self) -> bool {
        match self {
            Self::Text(text) => text.len() <= MAX_ID_BYTES,
            Self::Null | Self::Number(_) | Self::Negative(_) => true,
        }
    }
}

impl From<u64> for MessageId {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

/// What a client sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientMessage {
    /// Its answer's id. Without one it has its effect and gets no answer.
    pub id: Option<MessageId>,
    /// The answer is worthless after that many milliseconds (ATTR-9).
    pub within_ms: Option<u64>,
    /// What is asked.
    pub request: Request,
}

/// What the daemon sends.
#[allow(clippy::large_enum_variant)] // passes from hand to hand, is never kept in numbers
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerMessage {
    /// The answer to one request.
    Reply {
        /// As the request had it.
        id: MessageId,
        /// What came of it.
        outcome: Result<Reply, Error>,
    },
    /// A notification of a subscription.
    Event(Event),
}

impl ServerMessage {
    /// An error about a request.
    pub fn error(id: MessageId, error: Error) -> Self {
        Self::Reply {
            id,
            outcome: Err(error),
        }
    }
}

/// A message that is no request. The connection goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// To answer with: [`MessageId::Null`] where none could be read, `None`
    /// for a notification, which gets no answer, not even an error.
    pub id: Option<MessageId>,
    /// What is wrong with it.
    pub error: Error,
}

impl Rejected {
    /// The message to send back; `None` for a notification.
    pub fn into_reply(self) -> Option<ServerMessage> {
        Some(ServerMessage::error(self.id?, self.error))
    }
}
