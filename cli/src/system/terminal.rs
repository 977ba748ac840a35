//! The terminal.

use std::io::IsTerminal as _;
use std::os::fd::AsFd;

/// Returns the width of the terminal that is standard output; `None` if it is
/// none.
pub(crate) fn columns() -> Option<usize> {
    size().map(|(columns, _)| columns)
}

/// Returns the number of columns that a line may take: without a limit if
/// standard output is no terminal.
pub(crate) fn room() -> usize {
    columns().unwrap_or(usize::MAX)
}

/// Returns the columns and rows of the terminal that is standard output; `None`
/// if it is none.
pub(crate) fn size() -> Option<(usize, usize)> {
    size_of(std::io::stdout())
}

fn size_of(terminal: impl AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    // A terminal that does not know its size returns 0.
    let or = |number: u16, unknown| if number == 0 { unknown } else { number.into() };
    Some((or(size.ws_col, 80), or(size.ws_row, 24)))
}

/// Returns whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Returns whether standard output is a terminal on which the cursor can be
/// moved.
pub(crate) fn redraws() -> bool {
    !is_dumb() && is_terminal()
}

/// Returns the width of the terminal that is standard error; `None` if it is
/// none on which the cursor can be moved.
pub(crate) fn columns_of_notes() -> Option<usize> {
    let size = size_of(std::io::stderr()).filter(|_| !is_dumb());
    size.map(|(columns, _)| columns)
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
