//! The socket: incoming connections, requests to the loop, outgoing answers and
//! events.
//!
//! - [`listener`]: the bound socket.
//! - [`stream`]: a connection as the operating system provides it.
//! - [`credentials`]: who may connect (SEC-1).
//! - [`connection`]: one task per connection, which turns bytes into requests
//!   and writes the buffer.
//! - [`peer`]: the loop's side of a connection: answers and events, and the
//!   limits on what waits for a slow reader (LIM-1).
//! - `unfinished`: the limit on half-sent requests (LIM-4).

pub mod connection;
pub mod credentials;
pub mod listener;
pub mod peer;
pub mod stream;
mod unfinished;

#[cfg(test)]
mod tests;

pub use connection::{DECODERS, Hub, serve};
pub use listener::{Listener, Passed};
pub(crate) use peer::Encoding;
pub use peer::Peer;
pub use stream::Stream;
pub use unfinished::Unfinished;
