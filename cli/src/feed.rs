//! The feed: events as lines for people.
//!
//! - [`fold`]: events that belong together become one entry.
//! - [`render`]: an entry becomes a line.
//!
//! Both are pure; `watch` feeds them.

mod fold;
mod render;
#[cfg(test)]
mod tests;

pub(crate) use fold::{Entry, Fold, Note, Verb, Who};
pub(crate) use render::Layout;
