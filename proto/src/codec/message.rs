//! Messages independent of the wire.

use serde::{Deserialize, Serialize};

use crate::events::Event;
use crate::ids::MAX_ID_BYTES;
use crate::{Error, Reply, Request};

/// The id that a client gave to a request. The answer has the same id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MessageId {
    /// JSON's `null`. It is also the id of an error about a message whose id
    /// could not be read.
    Null,
    /// A number that is not negative.
    Number(u64),
    /// A negative number.
    Negative(i64),
    /// A text of at most 256 bytes.
    Text(String),
}

impl MessageId {
    /// Returns whether the id is short enough to be stored until the answer.
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

/// A message from a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientMessage {
    /// The id for the answer. `None` makes it a notification, which takes
    /// effect but is not answered.
    pub id: Option<MessageId>,
    /// The time limit in milliseconds: a later answer is an error, and the
    /// request has no effect (ATTR-9). `None` means no limit.
    pub within_ms: Option<u64>,
    /// The request.
    pub request: Request,
}

/// A message from the daemon.
#[allow(clippy::large_enum_variant)] // few of them exist at the same time
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerMessage {
    /// The answer to one request.
    Reply {
        /// The id of the request.
        id: MessageId,
        /// The result, or the error.
        outcome: Result<Reply, Error>,
    },
    /// A notification for a subscription.
    Event(Event),
}

impl ServerMessage {
    /// Returns the answer that reports an error.
    pub fn error(id: MessageId, error: Error) -> Self {
        Self::Reply {
            id,
            outcome: Err(error),
        }
    }
}

/// A message that is no valid request. The connection stays open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The id for the answer: [`MessageId::Null`] if none could be read. `None`
    /// for a notification, which is never answered, not even with an error.
    pub id: Option<MessageId>,
    /// The error.
    pub error: Error,
}

impl Rejected {
    /// Returns the answer to send; `None` for a notification.
    pub fn into_reply(self) -> Option<ServerMessage> {
        Some(ServerMessage::error(self.id?, self.error))
    }
}

/// One message from a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A single request or notification.
    One(Box<Result<ClientMessage, Rejected>>),
    /// A JSON-RPC batch of one or more. Its answers are sent together, by
    /// [`super::Encoder::batch`].
    Batch(Vec<Result<ClientMessage, Rejected>>),
}
