//! The texts that a model or a person can receive: the string literals of
//! production code that have at least three words.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::house::{CRATES, Source, sources};

/// The fewest words of a text that counts.
const WORDS: usize = 3;

/// Macros whose texts go to the daemon's log or end the program, and attributes.
const NOT_FOR_READERS: [&str; 6] = [
    "tracing::",
    "assert",
    "debug_assert",
    "unreachable",
    "#",
    "concat",
];

/// Files whose literals are a language's, not a reader's: SQL, and values that
/// are compared with.
const NOT_TEXTS: [&str; 2] = ["daemon/src/store/", "daemon/src/hooks/shown/table.rs"];

/// What a reader of the documents finds by: a heading, and the beginnings of the
/// paths below it. The first that fits counts.
const PARTS: [(&str, &[&str]); 5] = [
    ("What a model receives by hooks", &["daemon/src/hooks/"]),
    ("What a model receives by MCP", &["cli/src/mcp"]),
    (
        "What a person sees in the terminal and in settings",
        &["cli/"],
    ),
    (
        "Errors, hints and causes of the daemon",
        &["daemon/", "engine/"],
    ),
    (
        "Errors of the protocol and of the client",
        &["proto/", "client/"],
    ),
];

/// Returns the texts of each file, in the order of their places.
pub fn texts(root: &Path) -> BTreeMap<String, Vec<String>> {
    let files = CRATES
        .iter()
        .flat_map(|krate| sources(root, &format!("{krate}/src")));
    let files = files.filter(|file| !NOT_TEXTS.iter().any(|start| file.path.starts_with(start)));
    files
        .map(|file| (file.path.clone(), of(&file)))
        .filter(|(_, texts)| !texts.is_empty())
        .collect()
}

/// Returns the texts of one file.
pub fn of(file: &Source) -> Vec<String> {
    let lines: Vec<&str> = file.production.iter().map(String::as_str).collect();
    let texts = literals(&lines.join("\n")).into_iter();
    texts.filter(|text| is_prose(text)).collect()
}

/// Returns the string literals of a source that are not in comments, attributes,
/// or macros of [`NOT_FOR_READERS`].
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    // What each open bracket belongs to.
    let mut open: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut rest = code;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '/' if rest.starts_with('/') => {
                rest = rest.find('\n').map_or("", |end| &rest[end..]);
            }
            '"' => {
                let hashes = word
                    .strip_prefix('r')
                    .filter(|hashes| hashes.chars().all(|hash| hash == '#'));
                let (text, after) = match hashes {
                    Some(hashes) => rest
                        .split_once(&format!("\"{hashes}"))
                        .unwrap_or((rest, "")),
                    None => rest.split_at(end_of_literal(rest)),
                };
                rest = match hashes {
                    Some(_) => after,
                    None => after.get(1..).unwrap_or_default(),
                };
                let is_kept = !open
                    .iter()
                    .any(|of| NOT_FOR_READERS.iter().any(|name| of.starts_with(name)));
                if is_kept {
                    found.push(unfolded(text));
                }
                word.clear();
            }
            // A character, not a lifetime.
            '\'' if rest.starts_with('\\') || rest.chars().nth(1) == Some('\'') => {
                let from = if rest.starts_with('\\') { 2 } else { 0 };
                let end = rest.char_indices().skip(from).find(|(_, c)| *c == '\'');
                rest = end.map_or("", |(at, _)| &rest[at + 1..]);
                word.clear();
            }
            '(' | '[' | '{' => open.push(std::mem::take(&mut word)),
            ')' | ']' | '}' => {
                open.pop();
                word.clear();
            }
            letter if letter.is_alphanumeric() || ":_!#".contains(letter) => word.push(letter),
            _ => word.clear(),
        }
    }
    found
}

/// Returns where a string literal ends: the index of its closing quote.
fn end_of_literal(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in rest.char_indices() {
        match letter {
            '"' if !is_escaped => return at,
            letter => is_escaped = letter == '\\' && !is_escaped,
        }
    }
    rest.len()
}

/// Returns a literal as its reader sees it: on one line.
fn unfolded(text: &str) -> String {
    let text = text.replace("\\\n", "").replace("\\\"", "\"");
    text.replace("\\n", " ")
        .replace('\n', " ")
        .trim()
        .to_owned()
}

fn is_prose(text: &str) -> bool {
    // What is in braces is filled in.
    let filled = text.split('{').enumerate().map(|(at, part)| match at {
        0 => part,
        _ => part.split_once('}').map_or("", |(_, after)| after),
    });
    let filled: Vec<&str> = filled.collect();
    let words = filled.iter().flat_map(|part| part.split_whitespace());
    // Not the name of a tool or of a method.
    let is_word = |word: &&str| {
        let inner = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let mut letters = inner.chars().skip(1).peekable();
        letters.peek().is_some() && letters.all(|letter| letter.is_lowercase() || letter == '-')
    };
    words.filter(is_word).count() >= WORDS
}

/// Returns `docs/messages.md`.
pub fn page(root: &Path) -> String {
    let mut page = String::from(
        "# Messages\n\n\
         Every text of three words or more that a model or a person can receive, by the file that \
         has it. `{}` is filled in. Not listed: the help of commands, which is in \
         `touchmark help`, the daemon's log, and the texts of the page, which are in `ui/`.\n\n\
         Written by `TOUCHMARK_BLESS=1 cargo test -p touchmark-tests house::`.\n",
    );
    let mut all = texts(root);
    for (heading, starts) in PARTS {
        let _ = write!(page, "\n## {heading}\n");
        let is_of = |path: &String| starts.iter().any(|start| path.starts_with(start));
        let paths: Vec<String> = all.keys().filter(|path| is_of(path)).cloned().collect();
        for path in paths {
            let _ = write!(page, "\n`{path}`\n\n");
            for text in all.remove(&path).unwrap_or_default() {
                let _ = match text.contains('`') {
                    true => writeln!(page, "- `` {text} ``"),
                    false => writeln!(page, "- `{text}`"),
                };
            }
        }
    }
    page
}
