//! The socket: connections in, requests to the loop, answers and events out.
//!
//! - [`listener`]: the bound socket.
//! - [`stream`]: what the system makes of it.
//! - [`credentials`]: who may connect (SEC-1).
//! - [`connection`]: one task per connection: bytes to requests, buffer to
//!   bytes.
//! - [`peer`]: the loop's end of a connection: answers and events, and the
//!   bounds on what waits for a slow reader (LIM-1).
//! - `unfinished`: the bound on half-sent requests (LIM-4).

pub mod connection;
pub mod credentials;
pub mod listener;
pub mod peer;
pub mod stream;
mod unfinished;

#[cfg(test)]
mod tests;

pub use connection::{Hub, serve};
pub use listener::{Listener, Passed};
pub use peer::Peer;
pub use stream::Stream;
pub use unfinished::Unfinished;
