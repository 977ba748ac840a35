//! Files as they were, line by line: what `file/content`, `file/diff`,
//! `file/blame` and `undo` look at. All of it runs in tasks aside.

mod chain;

pub(crate) use chain::Chain;
