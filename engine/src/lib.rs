//! The decisions of touchmark: who wrote, whose copies are out of date, what to
//! answer.
//!
//! The engine is pure: no IO, no clock, no threads, no async. Its inputs
//! ([`Input`]) are observations and the current time. Its outputs ([`Effect`])
//! are orders to the shell. The same inputs give the same outputs.

// The order of a hash map's entries is arbitrary. Code that iterates over one
// sorts the entries first, so that the same inputs give the same outputs.
#![warn(clippy::iter_over_hash_type)]

pub mod attribution;
mod base;
pub mod by_name;
mod by_path;
pub mod config;
mod counts;
mod cursor;
pub mod disk;
pub mod effect;
mod engine;
pub mod globs;
mod handlers;
pub mod history;
pub mod input;
pub mod ledger;
mod observe;
mod parts;
pub mod patterns;
pub mod ranges;
pub mod requests;
mod small_set;
pub mod text;
mod timers;
mod tracker;
mod unsaved;
mod view;
pub mod witnesses;

pub use config::Config;
pub use counts::Counts;
pub use disk::{Content, Found, Hint, Object, ReadOutcome, Stamp};
pub use effect::{
    Answer, Comparison, Effect, LinesOrder, LinesWanted, MarkedFile, Marks, Moment, Notice,
    Question, ReadOrder, Recall, Sweep, WriteOrder,
};
pub use engine::Engine;
pub use input::{
    Edited, Input, Learned, Mark, Marker, NameEvent, Prior, PriorFile, Sighting, StoredBytes,
    Subtree, Swept, SweptFile, WriteOutcome,
};
pub use ledger::record::{
    Carriage, CommandFact, EditFact, EditFileFact, Fact, Held, Passing, Record, Refusal,
    VersionFact,
};
pub use ledger::state::State;
pub use ledger::stored::Saved;
pub use ledger::{recall, session_memory};
pub use text::lines::{Difference, Hunk, TextPair};
pub use tracker::files::Files;
pub use tracker::resolve::within;
