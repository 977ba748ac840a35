//! The shell around the engine: watcher, reader, store, sockets, one loop.

pub mod config;
pub mod error;
pub mod event;
pub mod life;
pub mod log;
pub mod socket;
pub mod time;

pub use error::Error;
