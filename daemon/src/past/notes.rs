//! Who wrote a commit's lines according to its note in `refs/notes/ai`, an
//! authorship log of git-ai (`authorship/3.0.0`). `touchmark attest --write`
//! and other programs write such notes (HIST-6, HIST-11).
//!
//! A note comes with the repository, so it is untrusted input.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use touchmark_proto::SessionId;

use crate::git::{Limits, Object, Objects, WorkTree};

/// The most commits whose notes are looked for.
const MOST_COMMITS: usize = 1_000;

/// The most ranges of lines in one note. Each line is compared with all of its
/// file. A note with more has no effect.
const MOST_RANGES: usize = 10_000;

/// The longest note that is read, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// How long git may take for one object.
const TIME: Duration = Duration::from_secs(1);

/// The reference with the notes.
const NOTES: &str = "refs/notes/ai";

/// Where its tree has the note of a commit: after how many digits of the id
/// there is a directory. Git adds one as the notes get many.
const FANOUT: [usize; 3] = [0, 1, 2];

/// The notes of a repository.
pub(super) struct Notes {
    git: Option<Objects>,
    /// The depth at which the last note was found.
    depth: usize,
    /// How many more commits are looked for.
    left: usize,
}

impl Notes {
    /// Opens the notes, if the repository may have some.
    pub(super) fn of(tree: &WorkTree) -> Self {
        let is_there = |name: &str| tree.common.join(name).symlink_metadata().is_ok();
        let may_have = [NOTES, "packed-refs", "reftable"]
            .iter()
            .any(|name| is_there(name));
        let limits = Limits {
            bytes: MOST_BYTES,
            time: TIME,
            ..Limits::default()
        };
        let git = may_have
            .then(|| Objects::open(tree, &tree.top, limits))
            .flatten();
        let mut notes = Self {
            git,
            depth: 0,
            left: MOST_COMMITS,
        };
        if !matches!(notes.object(NOTES), Some(Object::Whole(..))) {
            notes.git = None;
        }
        notes
    }

    fn object(&mut self, name: &str) -> Option<Object> {
        let object = self.git.as_mut()?.object(name.as_bytes());
        if object.is_none() {
            // Git answers no later request.
            self.git = None;
        }
        object
    }

    /// Returns the note of a commit.
    pub(super) fn note(&mut self, id: &str) -> Option<Note> {
        self.left = self.left.checked_sub(1)?;
        let last = self.depth;
        for depth in std::iter::once(last).chain(FANOUT.into_iter().filter(|depth| *depth != last))
        {
            let (directories, rest) = id.split_at_checked(2 * depth)?;
            let directories = directories.as_bytes().chunks(2);
            let mut path = String::new();
            for directory in directories {
                path += str::from_utf8(directory).ok()?;
                path.push('/');
            }
            match self.object(&format!("{NOTES}:{path}{rest}"))? {
                Object::Whole(_, bytes) => {
                    self.depth = depth;
                    return Some(Note::of(&String::from_utf8_lossy(&bytes)));
                }
                Object::Missing => {}
                Object::TooLarge | Object::Other => return None,
            }
        }
        None
    }
}

/// The lines of agents in one commit.
#[derive(Debug, Default)]
pub(super) struct Note {
    /// By file: ranges of lines, inclusive, with their session.
    files: HashMap<String, Vec<(u32, u32, SessionId)>>,
}

#[derive(Deserialize)]
struct Metadata {
    schema_version: String,
    /// Which session each name in the note stands for, among other things.
    prompts: HashMap<String, Value>,
}

impl Note {
    /// Reads a note; without lines if it is no authorship log.
    pub(super) fn of(text: &str) -> Self {
        Self::parsed(text).unwrap_or_default()
    }

    fn parsed(text: &str) -> Option<Self> {
        let (listed, metadata) = match text.strip_prefix("---\n") {
            Some(metadata) => ("", metadata),
            None => text.split_once("\n---\n")?,
        };
        let metadata: Metadata = serde_json::from_str(metadata).ok()?;
        if !metadata.schema_version.starts_with("authorship/3.") {
            return None;
        }
        let mut files: HashMap<String, Vec<(u32, u32, SessionId)>> = HashMap::new();
        let mut file = None;
        let mut count = 0;
        for line in listed.lines() {
            let Some(entry) = line.strip_prefix("  ") else {
                // A name with white space is in quotes.
                let inner = line
                    .strip_prefix('"')
                    .and_then(|name| name.strip_suffix('"'));
                file = Some(files.entry(inner.unwrap_or(line).to_owned()).or_default());
                continue;
            };
            let (name, ranges) = entry.split_once(' ')?;
            let session = metadata.prompts.get(name);
            let session = session.and_then(|prompt| prompt["agent_id"]["id"].as_str());
            let session = session.and_then(|id| SessionId::new(id).ok());
            let (Some(file), Some(session)) = (&mut file, session) else {
                continue;
            };
            for range in ranges.split(',') {
                count += 1;
                if count > MOST_RANGES {
                    return None;
                }
                let (start, end) = range.split_once('-').unwrap_or((range, range));
                let range = (start.parse().ok()?, end.parse().ok()?);
                file.push((range.0, range.1, session.clone()));
            }
        }
        Some(Self { files })
    }

    /// Returns the session that wrote a line of a file. If the note names
    /// several, it is none.
    pub(super) fn author(&self, file: &str, line: u32) -> Option<&SessionId> {
        let ranges = self.files.get(file)?.iter();
        let mut all = ranges
            .filter(|(start, end, _)| (*start..=*end).contains(&line))
            .map(|(.., session)| session);
        let first = all.next()?;
        all.all(|session| session == first).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const METADATA: &str = r#"{"schema_version": "authorship/3.0.0", "prompts": {
        "0123456789abcdef": {"agent_id": {"tool": "t", "id": "s", "model": "m"}},
        "f": {"agent_id": {"id": "other"}}}}"#;

    #[test]
    fn a_line_is_of_the_session_that_the_note_names() {
        let note = format!(
            "a/b.rs\n  0123456789abcdef 1-2,5\n  f 5-6\n  nobody 7\n\"my file\"\n  f 1\n---\n{METADATA}\n"
        );
        let note = Note::of(&note);
        let by = |file: &str, line| note.author(file, line).map(SessionId::as_str);
        let lines: Vec<_> = (0..8).map(|line| by("a/b.rs", line)).collect();
        let (s, other) = (Some("s"), Some("other"));
        // Two sessions claim line 5.
        assert_eq!(lines, [None, s, s, None, None, None, other, None]);
        assert_eq!(by("my file", 1), other);
        assert_eq!(by("b.rs", 1), None);
    }

    #[test]
    fn what_is_no_authorship_log_names_nobody() {
        let later = METADATA.replace("/3.0.0", "/4.0.0");
        let wrong = METADATA.replace("\"s\"", "\"\"");
        for note in [
            "a note\n".to_owned(),
            String::new(),
            format!("f\n  0123456789abcdef 1\n---\n{later}"),
            format!("f\n  0123456789abcdef 1\n---\n{wrong}"),
            format!("f\n  0123456789abcdef 1-x\n---\n{METADATA}"),
            format!("f\n  0123456789abcdef 1\n---\n{}", "[".repeat(100_000)),
            format!("f\n  0123456789abcdef 1\n{METADATA}"),
            format!(
                "f\n  0123456789abcdef 1{}\n---\n{METADATA}",
                ",1".repeat(MOST_RANGES)
            ),
        ] {
            assert_eq!(Note::of(&note).author("f", 1), None, "{note:.60}");
        }
    }
}
