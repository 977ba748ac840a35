//! The terminal, and the current user.

/// The width of the terminal that standard output is; `None` if it is none.
pub(crate) fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    // A terminal that does not know its size says 0.
    Some(match usize::from(size.ws_col) {
        0 => 80,
        columns => columns,
    })
}

/// This user's number.
pub(crate) fn user() -> Option<u32> {
    Some(rustix::process::getuid().as_raw())
}
