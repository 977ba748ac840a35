//! Cursors: the place where a list stopped. Clients send them back unchanged.

use touchmark_proto::{Clock, Error, RelPath};

pub(crate) fn wrong() -> Error {
    Error::invalid("`cursor` is not one that an earlier answer gave")
}

/// Encodes a path as a cursor: two hex digits for each byte, since names may
/// contain any bytes.
pub(crate) fn write_path(path: &RelPath) -> String {
    use std::fmt::Write as _;
    path.as_bytes()
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Decodes the cursor that [`write_path`] has encoded.
pub(crate) fn read_path(text: &str) -> Result<RelPath, Error> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let bytes: Option<Vec<u8>> = (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect();
    bytes
        .and_then(|bytes| RelPath::new(&bytes).ok())
        .ok_or_else(wrong)
}

/// Encodes how far changes were reported to a session: up to this clock, of
/// these paths, or of all if `None`.
pub(crate) fn write_reported(clock: Clock, only: Option<&[RelPath]>) -> String {
    let mut cursor = clock.to_string();
    for path in only.into_iter().flatten() {
        cursor.push(';');
        cursor.push_str(&write_path(path));
    }
    if only.is_some_and(<[RelPath]>::is_empty) {
        cursor.push(';');
    }
    cursor
}

/// Decodes the cursor that [`write_reported`] has encoded.
pub(crate) fn read_reported(text: &str) -> Result<(Clock, Option<Vec<RelPath>>), Error> {
    let mut parts = text.split(';');
    let clock = parts
        .next()
        .and_then(|clock| clock.parse().ok())
        .ok_or_else(wrong)?;
    let mut only = None;
    for part in parts {
        let only = only.get_or_insert_with(Vec::new);
        if !part.is_empty() {
            only.push(read_path(part)?);
        }
    }
    Ok((clock, only))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        let clock = Clock { epoch: 7, n: 9 };
        let path = RelPath::new("a;b/ü\n".as_bytes()).unwrap();
        for only in [None, Some(vec![]), Some(vec![path.clone(), path])] {
            let text = write_reported(clock, only.as_deref());
            assert_eq!(read_reported(&text), Ok((clock, only)));
        }
        for wrong in ["", "7", "7:9;é", "7:9;0", "7:9;2e2e"] {
            assert!(read_reported(wrong).is_err(), "{wrong}");
        }
    }
}
