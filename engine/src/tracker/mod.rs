//! What is known now of names and files.

pub mod names;
pub(crate) mod spoken;
pub(crate) mod ways;
