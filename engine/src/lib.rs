//! What touchmark decides.
//!
//! The engine is pure: no IO, no clock, no threads, no async. It is handed
//! the time and what was observed ([`Input`]) and returns what is to be done
//! ([`Effect`]). Same inputs, same outputs.

// What is gone through by hashes is put in order first.
#![warn(clippy::iter_over_hash_type)]

pub mod attribution;
pub mod by_name;
mod by_path;
pub mod config;
mod cursor;
pub mod effect;
mod engine;
pub mod globs;
mod handlers;
pub mod history;
pub mod input;
pub mod ledger;
pub mod patterns;
pub mod ranges;
pub mod requests;
mod small_set;
pub mod text;
mod tracker;
mod view;

pub use config::Config;
pub use effect::{
    Answer, Comparison, Effect, LinesOrder, LinesWanted, Marks, Moment, Notice, Question,
    ReadOrder, Recall, TextPair, WriteOrder,
};
pub use engine::{Counts, Engine, Saved};
pub use input::{
    Content, Edited, Found, Hint, Input, Learned, Object, ReadOutcome, Stamp, Swept, SweptFile,
    WriteOutcome,
};
pub use ledger::record::{CommandFact, EditFact, EditFileFact, Fact, Held, Record, VersionFact};
pub use ledger::state::State;
pub use ledger::{recall, session_memory};
pub use tracker::carry::{Difference, Hunk};
pub use tracker::files::Files;
pub use tracker::resolve::within;
