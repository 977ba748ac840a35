//! Line counts between two contents, and the first characters of one.

use imara_diff::{Algorithm, Diff, InternedInput};
use touchmark_proto::LineCounts;

/// Contents larger than this are not compared, so that one answer costs at
/// most some milliseconds.
pub const MAX_BYTES: usize = 1 << 20;

/// A NUL byte among this many first bytes makes a content binary (as in git).
const BINARY_PROBE: usize = 8_000;

/// How many characters a preview has.
const PREVIEW_CHARS: usize = 200;

/// Lines added and removed between two contents, as `git diff --numstat`
/// counts them: a line differs also if only its line ending does. `None` for
/// binary contents and those larger than [`MAX_BYTES`]. An absent file is an
/// empty one.
pub fn count(old: &[u8], new: &[u8]) -> Option<LineCounts> {
    if [old, new]
        .iter()
        .any(|content| content.len() > MAX_BYTES || is_binary(content))
    {
        return None;
    }
    // The histogram falls back on Myers with its heuristics where lines
    // repeat, so neither goes quadratic.
    let diff = Diff::compute(Algorithm::Histogram, &InternedInput::new(old, new));
    Some(LineCounts {
        added: diff.count_additions(),
        removed: diff.count_removals(),
    })
}

fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(BINARY_PROBE)].contains(&0)
}

/// The first 200 characters. Bytes that are not UTF-8 are replaced, control
/// characters stay as they are.
pub fn preview(bytes: &[u8]) -> String {
    // No character takes more than four bytes, so a character cut in two by
    // this bound is never among the first 200.
    let enough = &bytes[..bytes.len().min(PREVIEW_CHARS * 4)];
    String::from_utf8_lossy(enough)
        .chars()
        .take(PREVIEW_CHARS)
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn counted(old: &[u8], new: &[u8]) -> (u32, u32) {
        let lines = count(old, new).unwrap();
        (lines.added, lines.removed)
    }

    #[test]
    fn lines_are_counted_as_git_counts_them() {
        assert_eq!(counted(b"", b""), (0, 0));
        assert_eq!(counted(b"", b"a\nb\n"), (2, 0));
        assert_eq!(counted(b"a\nb\n", b""), (0, 2));
        assert_eq!(counted(b"a\nb\nc\n", b"a\nB\nc\nd\n"), (2, 1));
        assert_eq!(counted(b"a", b"a\n"), (1, 1), "the line ending is content");
        assert_eq!(counted(b"a\r\n", b"a\n"), (1, 1));
        assert_eq!(counted(b"\xff\n", b"\xfe\n"), (1, 1), "not UTF-8, but text");
    }

    #[test]
    fn binary_and_large_contents_have_no_counts() {
        assert_eq!(count(b"a\n", b"a\0\n"), None);
        assert_eq!(count(b"\0", b"a\n"), None);
        let large = vec![b'\n'; MAX_BYTES + 1];
        assert_eq!(count(&large, b""), None);
        assert!(count(&large[1..], b"").is_some());
    }

    #[test]
    fn repetitive_content_is_bounded() {
        let old: Vec<u8> = b"x\ny\n".repeat(60_000);
        let new: Vec<u8> = b"y\nz\nx\n".repeat(60_000);
        assert!(count(&old, &new).is_some());
    }

    #[test]
    fn previews_are_characters_not_bytes() {
        assert_eq!(preview(b""), "");
        assert_eq!(preview(b"a\t\x07\n"), "a\t\x07\n");
        assert_eq!(preview("é".repeat(500).as_bytes()), "é".repeat(200));
        for lead in ["", "a", "ab", "€", "é"] {
            let text = format!("{lead}{}", "🦀".repeat(300));
            let expected: String = text.chars().take(200).collect();
            assert_eq!(preview(text.as_bytes()), expected);
        }
        assert_eq!(preview(b"a\xffb"), "a\u{fffd}b");
    }
}
