//! What is recorded: how facts and the state are stored.

pub mod stored;
