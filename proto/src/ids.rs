//! Ids of sessions, connections and requests.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The length in bytes of the longest id that is accepted from a client.
pub const MAX_ID_BYTES: usize = 256;

/// The id of an agent's conversation or task. It has 1 to 256 bytes of UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Arc<str>);

/// The text is empty, or longer than [`MAX_ID_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a session's name has 1 to {MAX_ID_BYTES} bytes")]
pub struct SessionIdError;

impl SessionId {
    /// Returns the id with this text.
    ///
    /// # Errors
    /// [`SessionIdError`] if the text is empty or too long.
    pub fn new(text: &str) -> Result<Self, SessionIdError> {
        if text.is_empty() || text.len() > MAX_ID_BYTES {
            return Err(SessionIdError);
        }
        Ok(Self(text.into()))
    }

    /// Returns the text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SessionId {
    type Err = SessionIdError;
    fn from_str(text: &str) -> Result<Self, SessionIdError> {
        Self::new(text)
    }
}

text!(SessionId as Arc<str>: |id| id.0.clone(), |text| text.parse());

schema!(SessionId: {"type": "string", "minLength": 1, "maxLength": MAX_ID_BYTES});

/// A connection to the daemon, numbered by it from 1 and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// A request inside the daemon, numbered by it; the client's own id stays
/// with the connection, since ids of clients may repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);
