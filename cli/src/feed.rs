//! The feed of `touchmark watch`: events as lines for people.
//!
//! - [`entry`]: one entry of the feed.
//! - [`fold`]: events that belong together become one entry.
//! - [`render`]: an entry becomes a line.
//! - [`header`]: the line above the entries.
//! - [`frame`]: the part of a terminal that is redrawn.
//!
//! None of them does IO or reads the clock.

mod fold;
mod render;
#[cfg(test)]
mod tests;

pub(crate) use fold::{Entry, Fold, Note, Verb, Who};
pub(crate) use render::Layout;
