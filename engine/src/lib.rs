//! What touchmark decides.
//!
//! The engine is pure: no IO, no clock, no threads, no async. It is handed
//! the time and what was observed ([`Input`]) and returns what is to be done
//! ([`Effect`]). Same inputs, same outputs.

mod asks;
pub mod attribution;
pub mod config;
mod cursor;
pub mod effect;
mod engine;
mod fold;
pub mod globs;
pub mod input;
pub mod knowledge;
mod live;
mod observe;
mod pending;
pub mod ranges;
pub mod recall;
mod reconcile;
pub mod record;
mod resolve;
pub mod state;
pub mod text;
mod view;

pub use config::Config;
pub use effect::{Answer, Effect, LinesWanted, Marks, Notice, ReadOrder, Recall, WriteOrder};
pub use engine::{Counts, Engine};
pub use input::{Content, Found, Hint, Input, ReadOutcome, Stamp, WriteOutcome};
pub use record::{CommandFact, EditFact, EditFileFact, Fact, Held, Record, VersionFact};
pub use state::State;
