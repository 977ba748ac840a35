//! The feed of `touchmark watch`: events as lines for people.
//!
//! - [`entry`]: one entry of the feed.
//! - [`fold`]: events that belong together become one entry.
//! - [`render`]: an entry becomes a line.
//! - [`header`]: the line above the entries.
//! - [`now`]: what each session does, and what was lost, below the header.
//! - [`frame`]: the part of a terminal that is redrawn.
//!
//! None of them does IO or reads the clock.

mod entry;
mod fold;
mod frame;
mod header;
mod now;
mod render;
#[cfg(test)]
mod tests;

pub(crate) use entry::{Entry, Note, Verb, Who};
pub(crate) use fold::Fold;
pub(crate) use frame::{Frame, Size};
pub(crate) use header::Header;
#[cfg(test)]
pub(crate) use now::Now;
pub(crate) use render::{Layout, Time};
#[cfg(test)]
pub(crate) use tests::sample;
