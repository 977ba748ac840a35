//! What touchmark decides.
//!
//! The engine is pure: no IO, no clock, no threads, no async. It is handed
//! the time and what was observed ([`Input`]) and returns what is to be done
//! ([`Effect`]). Same inputs, same outputs.

// What is gone through by hashes is put in order first.
#![warn(clippy::iter_over_hash_type)]

pub mod attribution;
mod by_path;
pub mod config;
mod cursor;
pub mod effect;
mod engine;
pub mod few;
mod fold;
pub mod globs;
mod handlers;
pub mod input;
pub mod knowledge;
mod labels;
pub mod ledger;
mod live;
pub mod notes;
mod observe;
pub mod ranges;
mod reading;
pub mod recall;
mod reconcile;
pub mod record;
pub mod requests;
mod resolve;
mod similarity;
mod stamps;
pub mod state;
pub mod text;
pub mod tracker;
mod view;

pub use config::Config;
pub use effect::{
    Answer, Comparison, Effect, LinesWanted, Marks, Moment, Notice, Question, ReadOrder, Recall,
    WriteOrder,
};
pub use engine::{Counts, Engine, Kept};
pub use input::{
    Content, Edited, Found, Hint, Input, Learned, Object, ReadOutcome, Stamp, WriteOutcome,
};
pub use record::{CommandFact, EditFact, EditFileFact, Fact, Held, Record, VersionFact};
pub use resolve::within;
pub use stamps::Stamps;
pub use state::State;
