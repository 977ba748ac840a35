//! The shell around the engine: watcher, fence, hashing, store, sockets, one
//! loop. Nothing here decides who wrote or what is stale.

pub mod content;
pub mod links;
pub mod watch;
