//! Where the terminal is not asked.

use std::io::IsTerminal as _;

/// The usual width, if standard output is a terminal.
pub(crate) fn columns() -> Option<usize> {
    std::io::stdout().is_terminal().then_some(80)
}

/// Users have no numbers.
pub(crate) fn user() -> Option<u32> {
    None
}
