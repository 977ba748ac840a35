//! The shell around the engine: watcher, reader, store, sockets, one loop.

pub mod config;
pub mod error;
pub mod life;
pub mod log;

pub use error::Error;
