//! What a file will hold when a tool has done what it was told, as far as
//! that can be known before.

use touchmark_engine::text::replace::{Replaced, Wanted, replace};
use touchmark_proto::writes::Matched;
use touchmark_proto::{Hash, HashOrAbsent};

use super::{Change, Replacement, patch};

/// Contents computed for one edit at most.
const CANDIDATES: usize = 8;

/// Whether the file's bytes are needed to know.
pub(super) fn needs_bytes(change: &Change) -> bool {
    matches!(change, Change::Replace(_) | Change::Patch { .. })
}

/// What may come of a change; nothing where nobody can say. The likeliest is
/// the first.
pub(super) fn candidates(change: &Change, bytes: Option<&[u8]>) -> Vec<HashOrAbsent> {
    let contents: Vec<Vec<u8>> = match change {
        Change::Delete => return vec![HashOrAbsent::Absent],
        Change::Unknown => return Vec::new(),
        Change::Whole(text) => vec![text.as_bytes().to_vec()],
        Change::Patch { hunks, .. } => bytes
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .and_then(|text| patch::apply(text, hunks))
            .map(String::into_bytes)
            .into_iter()
            .collect(),
        Change::Replace(replacements) => replaced(bytes, replacements),
    };
    let mut hashes: Vec<HashOrAbsent> = Vec::new();
    for content in contents {
        let hash = HashOrAbsent::Hash(Hash::of(&content));
        if !hashes.contains(&hash) {
            hashes.push(hash);
        }
    }
    hashes
}

fn replaced(bytes: Option<&[u8]>, replacements: &[Replacement]) -> Vec<Vec<u8>> {
    let mut contents = vec![bytes.unwrap_or_default().to_vec()];
    for one in replacements {
        let mut next = Vec::new();
        for content in &contents {
            next.extend(ways(content, one));
        }
        next.truncate(CANDIDATES);
        contents = next;
    }
    contents
}

/// The ways in which tools carry out one replacement.
fn ways(bytes: &[u8], one: &Replacement) -> Vec<Vec<u8>> {
    let Replacement { old, new, all } = one;
    if old.is_empty() {
        // In place of nothing: the file is made.
        return match bytes.is_empty() {
            true => vec![new.as_bytes().to_vec()],
            false => Vec::new(),
        };
    }
    let by = |old: &str, new: &str| {
        replace(
            bytes,
            Wanted {
                old,
                new,
                all: *all,
            },
        )
        .ok()
        // What becomes of quotation marks differs from tool to tool.
        .filter(|done: &Replaced| done.matched != Matched::Quotes)
        .map(|done| done.bytes)
    };
    let mut found = Vec::new();
    // Claude takes the line end with a text that is replaced by nothing.
    if new.is_empty() && !old.ends_with('\n') {
        found.extend(by(&format!("{old}\n"), ""));
    }
    found.extend(by(old, new));
    // And the white space off the ends of new lines.
    let trimmed = without_trailing_space(new);
    if trimmed != *new {
        found.extend(by(old, &trimmed));
    }
    found
}

fn without_trailing_space(text: &str) -> String {
    let lines: Vec<&str> = text
        .split('\n')
        .map(|line| line.trim_end_matches([' ', '\t']))
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str, all: bool) -> Change {
        Change::Replace(vec![Replacement {
            old: old.into(),
            new: new.into(),
            all,
        }])
    }

    fn of(texts: &[&str]) -> Vec<HashOrAbsent> {
        texts
            .iter()
            .map(|text| HashOrAbsent::Hash(Hash::of(text.as_bytes())))
            .collect()
    }

    #[test]
    fn what_a_tool_will_write_is_known() {
        let bytes = b"a\nb\na\n".as_slice();
        let candidates = |change| candidates(&change, Some(bytes));
        assert_eq!(candidates(edit("b", "x", false)), of(&["a\nx\na\n"]));
        assert_eq!(candidates(edit("a", "x", true)), of(&["x\nb\nx\n"]));
        assert_eq!(candidates(edit("a", "x", false)), []);
        assert_eq!(candidates(edit("none", "x", false)), []);
        assert_eq!(candidates(edit("", "x", false)), []);
        assert_eq!(
            candidates(edit("b", "", false)),
            of(&["a\na\n", "a\n\na\n"]),
            "with and without the line"
        );
        assert_eq!(
            candidates(edit("b", "x  ", false)),
            of(&["a\nx  \na\n", "a\nx\na\n"])
        );
        assert_eq!(candidates(Change::Whole("n".into())), of(&["n"]));
        assert_eq!(candidates(Change::Delete), [HashOrAbsent::Absent]);
        assert_eq!(candidates(Change::Unknown), []);
    }

    #[test]
    fn several_replacements_build_on_each_other() {
        let change = Change::Replace(vec![
            Replacement {
                old: "a".into(),
                new: "b".into(),
                all: false,
            },
            Replacement {
                old: "b".into(),
                new: "c".into(),
                all: true,
            },
        ]);
        assert_eq!(candidates(&change, Some(b"a b")), of(&["c c"]));
        assert_eq!(candidates(&edit("", "new", false), None), of(&["new"]));
    }

    #[test]
    fn line_ends_stay_and_marks_are_doubtful() {
        assert_eq!(
            candidates(&edit("a\nb", "x\ny", false), Some(b"a\r\nb\r\n")),
            of(&["x\r\ny\r\n"])
        );
        let quoted = "say “a”".as_bytes();
        assert_eq!(candidates(&edit("\"a\"", "b", false), Some(quoted)), []);
    }
}
