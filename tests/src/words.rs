//! The prose of the project, and the words that it does not use.

use std::fs;
use std::path::Path;

use crate::house::{CRATES, sources};
use crate::messages;

/// Words and phrases with what to write instead. Each is rejected wherever it
/// occurs as a whole word.
const REJECTED: &[(&str, &str)] = &[
    // A thing has no senses, no knowledge and no will.
    ("hear", "receive"),
    ("hears", "receives"),
    ("heard", "received"),
    ("heed", "apply, use"),
    ("heeds", "applies, uses"),
    ("heeded", "applied, used"),
    ("believe", "has on record"),
    ("believes", "has on record"),
    ("believed", "had on record"),
    ("thinks", "has on record"),
    ("knows", "has, has on record, recognises"),
    ("vouch", "confirm, be enough to prove"),
    ("vouches", "confirms, is enough to prove"),
    ("speaks of", "refers to, names"),
    ("speaks for", "covers"),
    ("lets go of", "releases"),
    ("death", "exit"),
    ("dies", "exits, is killed"),
    // Who it is has to be said.
    (
        "somebody",
        "the user, another session, a client, a process: say which",
    ),
    (
        "anybody",
        "the user, another session, a client, a process: say which",
    ),
    (
        "whoever",
        "the user, the client, the process that: say which",
    ),
    ("nobody", "no session, no process: say which"),
    ("who asks", "the client, the requester"),
    ("who asked", "the client, the requester"),
    // Idioms that a dictionary does not explain word by word.
    ("anew", "again; from scratch"),
    ("as ever", "as before"),
    ("behind a fence", "after the fence completed"),
    ("came of it", "resulted"),
    ("comes to nothing", "has no effect"),
    ("in the making", "being built, incomplete"),
    ("in waiting", "pending"),
    ("is owed", "is pending"),
    ("one and the same", "the same"),
    ("put down to", "attributed to"),
    ("takes its place", "replaces it"),
    ("told apart", "distinguished"),
    ("to say so", "to report it, to return it"),
    // A sentence that needs the line above it.
    ("the same, of", "repeat the sentence, with its object"),
];

/// A comment, a paragraph or a message.
pub struct Prose {
    /// The file, with the number of the first line.
    pub place: String,
    /// The text in lower case, without code.
    text: String,
}

impl Prose {
    fn of(path: &str, line: usize, text: &str) -> Self {
        // What is between backticks or braces is code.
        let parts = text.split('`').step_by(2);
        let prose = parts.flat_map(|part| part.split('{'));
        let prose = prose.map(|part| part.split_once('}').map_or(part, |(_, after)| after));
        let prose: Vec<&str> = prose.collect();
        let words: Vec<&str> = prose
            .iter()
            .flat_map(|part| part.split_whitespace())
            .collect();
        Self {
            place: format!("{path}:{line}"),
            text: words.join(" ").to_lowercase(),
        }
    }

    /// Returns the rejected words in it, each with what to write instead.
    pub fn rejected(&self) -> Vec<(&'static str, &'static str)> {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let occurs = |word: &str| {
            self.text.match_indices(word).any(|(at, _)| {
                let (before, after) = (&self.text[..at], &self.text[at + word.len()..]);
                !before.ends_with(is_part) && !after.starts_with(is_part)
            })
        };
        let found = REJECTED.iter().filter(|(word, _)| occurs(word));
        found.copied().collect()
    }
}

/// Returns the comments of a Rust source, each block of lines as one text.
fn comments(path: &str, text: &str, found: &mut Vec<Prose>) {
    let mut block = (0, String::new());
    for (at, line) in text.lines().chain([""]).enumerate() {
        match line.trim().strip_prefix("//") {
            Some(comment) => {
                if block.1.is_empty() {
                    block.0 = at + 1;
                }
                block.1 += comment.trim_start_matches(['/', '!']);
                block.1.push(' ');
            }
            None if !block.1.is_empty() => {
                found.push(Prose::of(path, block.0, &block.1));
                block.1.clear();
            }
            None => {}
        }
    }
}

/// Returns the paragraphs of a page, without blocks of code.
fn paragraphs(path: &str, text: &str, found: &mut Vec<Prose>) {
    let mut is_code = false;
    for (at, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if !is_code && !is_fence && !line.is_empty() {
            found.push(Prose::of(path, at + 1, line));
        }
    }
}

/// Returns the project's pages below a directory.
fn pages(directory: &Path, root: &Path, found: &mut Vec<Prose>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if entry.file_type().unwrap().is_dir() {
            if !["target", "node_modules", ".git"].contains(&&*name) {
                pages(&path, root, found);
            }
        } else if name.ends_with(".md") && !path.is_symlink() {
            let text = fs::read_to_string(&path).unwrap();
            let path = path
                .strip_prefix(root)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            paragraphs(&path, &text, found);
        }
    }
}

/// Returns the project's prose: comments, messages, pages.
pub fn prose(root: &Path) -> Vec<Prose> {
    let mut found = Vec::new();
    for below in CRATES.into_iter().chain(["tests", "bench"]) {
        for file in sources(root, below) {
            let text = fs::read_to_string(root.join(&file.path)).unwrap();
            comments(&file.path, &text, &mut found);
            let place = |text: &str| format!("{} {text:?}", file.path);
            let texts = messages::of(&file);
            found.extend(texts.iter().map(|text| Prose::of(&place(text), 0, text)));
        }
    }
    pages(root, root, &mut found);
    found
}
