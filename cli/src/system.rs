//! System calls: files, signals, the terminal.

pub(crate) mod files;
pub(crate) mod forwarding;
pub(crate) mod signals;
pub(crate) mod terminal;
