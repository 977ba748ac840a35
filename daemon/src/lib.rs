//! The shell around the engine.

pub mod lines;
pub mod store;
