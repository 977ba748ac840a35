//! What git itself makes of a file's bytes when it stores them, as far as that
//! needs no other program: line ends and `$Id$`.

/// The beginning of what git writes on the disk for `$Id$`.
const ID: &[u8] = b"$Id:";

/// Returns what git may have stored of this content in place of its bytes: with
/// LF for CRLF, with `$Id$` for its expansions, or with both. Whether git does
/// so is not asked: what is stored proves it.
pub(crate) fn converted(bytes: &[u8]) -> Vec<Vec<u8>> {
    let has = |wanted: &[u8]| bytes.windows(wanted.len()).any(|some| some == wanted);
    let (has_returns, has_ids) = (has(b"\r\n"), has(ID));
    let mut all = Vec::new();
    if has_returns {
        all.push(without_returns(bytes));
    }
    if has_ids {
        all.push(without_ids(bytes));
    }
    if has_returns && has_ids {
        all.push(without_ids(&without_returns(bytes)));
    }
    all
}

/// Returns a text with the line ends that git stores under `core.autocrlf` and
/// `eol`.
fn without_returns(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    for (at, byte) in bytes.iter().enumerate() {
        if *byte != b'\r' || bytes.get(at + 1) != Some(&b'\n') {
            text.push(*byte);
        }
    }
    text
}

/// Returns a text as git stores it under `ident`: an id ends at the next `$` of
/// its line.
fn without_ids(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(ID.len()).position(|some| some == ID) {
        let (head, tail) = rest.split_at(at + ID.len());
        let end = tail.iter().position(|byte| matches!(byte, b'$' | b'\n'));
        match end.filter(|end| tail.get(*end) == Some(&b'$')) {
            Some(end) => {
                text.extend(&head[..at]);
                text.extend(b"$Id$");
                rest = &tail[end + 1..];
            }
            None => {
                text.extend(head);
                rest = tail;
            }
        }
    }
    text.extend(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_stores_of_a_text() {
        let cases: [(&str, &[&str]); 6] = [
            ("a\nb\r", &[]),
            ("a\r\nb\r\n", &["a\nb\n"]),
            ("$Id$ $Id: 12 $\n", &["$Id$ $Id$\n"]),
            ("$Id: 1$$Id: x\n$Id:", &["$Id$$Id: x\n$Id:"]),
            ("$Id: x\ny $\n", &["$Id: x\ny $\n"]),
            ("$Id: 1 $\r\n", &["$Id: 1 $\n", "$Id$\r\n", "$Id$\n"]),
        ];
        for (text, stored) in cases {
            let found = converted(text.as_bytes());
            let stored: Vec<Vec<u8>> = stored.iter().map(|one| one.as_bytes().to_vec()).collect();
            assert_eq!(found, stored, "{text:?}");
        }
    }
}
