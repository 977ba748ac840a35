//! What touchmark decides.
//!
//! The engine is pure: no IO, no clock, no threads, no async. It is handed
//! the time and what was observed ([`Input`]) and returns what is to be done
//! ([`Effect`]). Same inputs, same outputs.

pub mod config;
pub mod effect;
pub mod input;
pub mod recall;
pub mod record;

pub use config::Config;
pub use effect::{Answer, Effect, LinesWanted, Notice, ReadOrder, Recall};
pub use input::{Content, Found, Hint, Input, ReadOutcome, Stamp};
pub use record::{EditFact, EditFileFact, Fact, Held, Record, VersionFact};
