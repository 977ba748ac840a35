//! The contents that a file may have after a tool has done its work, as far as
//! they can be computed in advance.

use std::borrow::Cow;

use touchmark_engine::text::form::{self, Form};
use touchmark_engine::text::replace::{Replaced, Wanted, replace};
use touchmark_proto::writes::Matched;
use touchmark_proto::{Hash, HashOrAbsent};

use super::happened::{Change, Replacement};
use super::patch;

/// The maximum number of contents that are computed for one edit.
const CANDIDATES: usize = 8;

/// The maximum number of bytes that are searched for all replacements of one
/// edit together.
const SEARCHED: usize = 256 << 20;

/// The maximum number of bytes by which replacements make a content larger.
const GROWTH: usize = 4 << 20;

/// The maximum number of changes announced together that are combined.
const TOGETHER: usize = 4;
/// The maximum number of intermediate contents when changes are combined.
const WAYS: usize = 64;

/// Returns the possible results of a change, the most likely one first; none if
/// they cannot be known.
pub(super) fn candidates(change: &Change, bytes: Option<&[u8]>) -> Vec<Candidate> {
    if *change == Change::Delete {
        return vec![Candidate {
            hash: HashOrAbsent::Absent,
            text: None,
            words: None,
        }];
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    for content in contents(change, bytes) {
        let candidate = Candidate::of(&content);
        if !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    candidates
}

/// Returns the text of the most likely result of a change of these bytes,
/// without the form of the file (see [`form::plain`]).
pub(super) fn likeliest(change: &Change, bytes: &[u8]) -> Option<String> {
    let content = contents(change, Some(bytes)).into_iter().next()?;
    Some(form::plain(&content)?.into_owned())
}

/// Returns the possible contents after a change, the most likely one first.
pub(super) fn contents(change: &Change, bytes: Option<&[u8]>) -> Vec<Vec<u8>> {
    let decoded = bytes.and_then(Form::decode);
    match change {
        Change::Delete | Change::Unknown => Vec::new(),
        Change::Whole(text) => {
            // Some tools keep the form of the file, some complete the last line.
            let form = decoded
                .map(|(_, form)| form)
                .filter(|form| !form.is_plain());
            let kept = form.and_then(|form| form.encode(text));
            let ended = (!text.is_empty() && !text.ends_with('\n')).then(|| format!("{text}\n"));
            let literal = text.as_bytes().to_vec();
            let all = [Some(literal), kept, ended.map(String::into_bytes)];
            all.into_iter().flatten().collect()
        }
        Change::Patch { hunks, .. } => {
            let result = decoded.and_then(|(text, form)| {
                let result = patch::apply(&text, hunks)?;
                form.encode(&result)
            });
            result.into_iter().collect()
        }
        Change::Replace(replacements) => {
            let mut results = replaced(bytes, replacements);
            if let Some(bytes) = bytes
                && std::str::from_utf8(bytes).is_err()
            {
                // A tool decodes the file, or reads it as UTF-8 and writes
                // replacement characters.
                if let Some((text, form)) = &decoded {
                    let decoded = replaced(Some(text.as_bytes()), replacements).into_iter();
                    results.extend(decoded.filter_map(|result| {
                        let result = String::from_utf8(result).ok()?;
                        form.encode(&result)
                    }));
                }
                let lossy = String::from_utf8_lossy(bytes);
                results.extend(replaced(Some(lossy.as_bytes()), replacements));
            }
            results
        }
    }
}

/// Returns the possible results of changes to one file that were announced
/// together, in any order and with any number of them executed: for each
/// change, the contents to which it contributed.
pub(super) fn together(changes: &[&Change], bytes: &[u8]) -> Vec<Vec<Candidate>> {
    let changes = changes.get(..changes.len().min(TOGETHER)).unwrap_or(&[]);
    let mut found = vec![Vec::new(); changes.len()];
    let mut ways: Vec<(Vec<usize>, Vec<u8>)> = vec![(Vec::new(), bytes.to_vec())];
    let mut next = 0;
    while let Some((done, content)) = ways.get(next).cloned() {
        next += 1;
        for (index, change) in changes.iter().enumerate() {
            if done.contains(&index) {
                continue;
            }
            for content in contents(change, Some(&content)) {
                let mut done = done.clone();
                done.push(index);
                let candidate = Candidate::of(&content);
                for part in &done {
                    if let Some(found) = found.get_mut(*part)
                        && !found.contains(&candidate)
                    {
                        found.push(candidate);
                    }
                }
                if ways.len() < WAYS {
                    ways.push((done, content));
                }
            }
        }
    }
    found
}

/// A content that a tool may leave behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The hash of the content; `Absent` if the file is removed.
    pub(super) hash: HashOrAbsent,
    /// The hash of the text, whatever the encoding, the line endings and the
    /// line ends at the end of the file; `None` if the content is no text.
    pub(super) text: Option<Hash>,
    /// The hash of the words, which a formatter does not change; `None` if the
    /// content is no text.
    pub(super) words: Option<Hash>,
}

impl Candidate {
    pub(super) fn of(content: &[u8]) -> Self {
        let text = form::plain(content);
        let hash = |text: &Cow<'_, str>| Hash::of(text.trim_end_matches('\n').as_bytes());
        Self {
            hash: HashOrAbsent::Hash(Hash::of(content)),
            text: text.as_ref().map(hash),
            words: text.as_deref().and_then(words),
        }
    }

    /// Returns whether two contents are the same text.
    pub(super) fn is_text_of(&self, other: &Self) -> bool {
        self.hash == other.hash || (self.text.is_some() && self.text == other.text)
    }
}

/// How the lines begin that import something in common languages. Formatters
/// remove those that are not used, and add those that are.
const IMPORTS: &[&str] = &[
    "import ",
    "from ",
    "use ",
    "using ",
    "#include",
    "export * from",
    "require ",
    "require(",
];

/// Returns a hash of the words of a text without its imports, whatever their
/// order and what separates them. A formatter does not change it; a person who
/// types does. `None` if there are no words.
fn words(text: &str) -> Option<Hash> {
    let is_import = |line: &&str| {
        let line = line.trim_start();
        IMPORTS.iter().any(|import| line.starts_with(import))
    };
    let text: String = text
        .lines()
        .filter(|line| !is_import(line))
        .fold(String::with_capacity(text.len()), |text, line| {
            text + line + "\n"
        });
    let text = text.to_lowercase();
    let mut words: Vec<&str> = text
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
        .collect();
    words.sort_unstable();
    (!words.is_empty()).then(|| Hash::of(words.join(" ").as_bytes()))
}

fn replaced(bytes: Option<&[u8]>, replacements: &[Replacement]) -> Vec<Vec<u8>> {
    let mut contents = vec![bytes.unwrap_or_default().to_vec()];
    let most = bytes.map_or(0, <[u8]>::len) + GROWTH;
    let mut left = SEARCHED;
    for one in replacements {
        let mut next = Vec::new();
        for content in &contents {
            let Some(rest) = left.checked_sub(content.len()) else {
                return Vec::new();
            };
            left = rest;
            next.extend(ways(content, one));
        }
        next.retain(|content| content.len() <= most);
        next.truncate(CANDIDATES);
        contents = next;
    }
    contents
}

/// Returns the results of the ways in which tools execute one replacement.
fn ways(bytes: &[u8], one: &Replacement) -> Vec<Vec<u8>> {
    let Replacement { old, new, all } = one;
    if old.is_empty() {
        // An empty old text means that the file is created.
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
        // Tools differ in how they treat quotation marks.
        .filter(|done: &Replaced| done.matched != Matched::Quotes)
        .map(|done| done.bytes)
    };
    let mut found = Vec::new();
    // Claude removes the line end too when a text is replaced by nothing.
    if new.is_empty() && !old.ends_with('\n') {
        found.extend(by(&format!("{old}\n"), ""));
    }
    found.extend(by(old, new));
    // Claude also removes white space at the ends of new lines.
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
    #![allow(clippy::unwrap_used)]
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

    fn hashes(candidates: Vec<Candidate>) -> Vec<HashOrAbsent> {
        candidates.into_iter().map(|one| one.hash).collect()
    }

    #[test]
    fn replacements_do_not_fill_the_memory() {
        let one = Replacement {
            old: "a".into(),
            new: "aa".into(),
            all: true,
        };
        let of = |count| Change::Replace(vec![one.clone(); count]);
        assert_eq!(contents(&of(10), Some(b"a")), [[b'a'; 1024]]);
        assert_eq!(contents(&of(1_000), Some(b"a")).len(), 0, "too large");
        let other = Replacement {
            old: "b".into(),
            ..one.clone()
        };
        let both = Change::Replace([vec![other], vec![one; 40]].concat());
        assert_eq!(contents(&both, Some(b"b")).len(), 0);
    }

    #[test]
    fn changes_announced_together_may_come_in_any_order() {
        let (one, two) = (edit("a", "x", false), edit("b", "y", false));
        let mut found = together(&[&one, &two], b"a b").into_iter().map(hashes);
        assert_eq!(found.next().unwrap(), of(&["x b", "x y"]));
        assert_eq!(found.next().unwrap(), of(&["a y", "x y"]));
        // A replacement that was already executed has no effect.
        let found = together(&[&one, &two], b"x b");
        assert_eq!(hashes(found.concat()), of(&["x y"]));
    }

    #[test]
    fn a_formatter_keeps_the_words() {
        let before = words("use b;\nuse a;\nlet x=0xFF");
        assert_eq!(before, words("use a;\nuse b;\n\nlet x = 0xff;\n"));
        assert_eq!(before, words("use a;\n\nlet x = 0xff;\n"), "not used");
        assert_ne!(before, words("use a;\nuse b;\nlet y = 0xff;\n"));
        assert_eq!(words(" ;\n"), None);
    }

    #[test]
    fn what_a_tool_will_write_is_known() {
        let bytes = b"a\nb\na\n".as_slice();
        let candidates = |change| hashes(candidates(&change, Some(bytes)));
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
        assert_eq!(candidates(Change::Whole("n\n".into())), of(&["n\n"]));
        assert_eq!(candidates(Change::Whole("n".into())), of(&["n", "n\n"]));
        assert_eq!(candidates(Change::Delete), [HashOrAbsent::Absent]);
        assert_eq!(candidates(Change::Unknown), []);
    }

    #[test]
    fn a_whole_text_may_take_the_form_of_the_file() {
        let whole = |file: &[u8]| {
            let change = Change::Whole("ä\nb\n".into());
            candidates(&change, Some(file))
        };
        let form = |file: &[u8]| hashes(whole(file));
        let marked = "\u{feff}old\r\n".as_bytes();
        assert_eq!(form(marked), of(&["ä\nb\n", "\u{feff}ä\r\nb\r\n"]));
        let latin = Hash::of(b"\xe4\nb\n");
        assert_eq!(
            form(b"\xe9t\xe9\n").last(),
            Some(&HashOrAbsent::Hash(latin))
        );
        // The file is compared with them as a text, too.
        let found = Candidate::of("ä\r\nb".as_bytes());
        assert!(whole(b"old\n").iter().all(|one| one.is_text_of(&found)));
        let other = Candidate::of("ä\nB\n".as_bytes());
        assert!(!whole(b"old\n").iter().any(|one| one.is_text_of(&other)));
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
        assert_eq!(hashes(candidates(&change, Some(b"a b"))), of(&["c c"]));
        let made = candidates(&edit("", "new", false), None);
        assert_eq!(hashes(made), of(&["new"]));
    }

    #[test]
    fn line_ends_stay_and_marks_are_doubtful() {
        assert_eq!(
            hashes(candidates(
                &edit("a\nb", "x\ny", false),
                Some(b"a\r\nb\r\n")
            )),
            of(&["x\r\ny\r\n"])
        );
        let quoted = "say “a”".as_bytes();
        assert_eq!(candidates(&edit("\"a\"", "b", false), Some(quoted)), []);
    }
}
