//! Field by field: `/proc/PID/stat`.

use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

/// The fields that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The state's letter, such as `R`, `S`, `D`, `T`, `Z`.
    pub(crate) state: u8,
    /// The process that started it, or that took it over.
    pub(crate) parent: u32,
    /// When it started, in clock ticks after boot.
    pub(crate) started: u64,
    /// How it ended, as `waitpid` tells it; 0 while it runs, or if this process
    /// may not know.
    pub(crate) status: i32,
}

/// Reads the fields of the process with this directory.
///
/// # Errors
/// The system's, such as `SRCH` for a process that has exited and was waited
/// for.
pub(crate) fn stat(directory: BorrowedFd<'_>) -> Result<Stat, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat(directory, "stat", flags, Mode::empty())?;
    let mut bytes = [0; 2048];
    let got = rustix::io::read(&file, &mut bytes)?;
    parse(&bytes[..got]).ok_or(Errno::INVAL)
}

/// The name of the program is in parentheses, and may contain some.
fn parse(bytes: &[u8]) -> Option<Stat> {
    let end = bytes.iter().rposition(|byte| *byte == b')')?;
    let text = std::str::from_utf8(bytes.get(end + 1..)?).ok()?;
    // The first field after the name is the third.
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    Some(Stat {
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        status: fields
            .get(49)
            .and_then(|field| field.parse().ok())
            .unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_name_with_parentheses_moves_no_field() {
        let mut text = String::from("7 (a) S 9 (b)) T 42 ");
        for field in 5..=52 {
            text.push_str(&format!("{field} "));
        }
        let stat = parse(text.as_bytes()).unwrap();
        let expected = Stat {
            state: b'T',
            parent: 42,
            started: 22,
            status: 52,
        };
        assert_eq!(stat, expected);
        assert_eq!(parse(b"7 (a) S"), None);
    }
}
