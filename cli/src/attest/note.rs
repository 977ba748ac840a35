//! Writes the authors of a commit's lines as a git note that other tools read:
//! an authorship log of git-ai, `authorship/3.0.0`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use touchmark_client::proto::Hash;

use super::{Attested, by_session};

/// The git reference with such notes.
pub(crate) const REFERENCE: &str = "--ref=refs/notes/ai";

/// The length of a session's name in the note, in hex digits.
const NAME: usize = 16;

/// An agent's session in the note.
#[derive(Clone, Debug, Default)]
pub(crate) struct NotedAgent {
    /// The agent's program; `None` if it is not known.
    pub(crate) tool: Option<String>,
    /// The session's last model; `None` if it is not known.
    pub(crate) model: Option<String>,
}

/// A note, and the number of files that its format cannot express.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) text: String,
    pub(crate) left_out: usize,
}

/// Returns the note of a commit. `agents` are the sessions by name.
pub(crate) fn note(attested: &Attested, agents: &BTreeMap<String, NotedAgent>) -> Note {
    let mut text = String::new();
    let mut lines: BTreeMap<&str, u32> = BTreeMap::new();
    let mut left_out = 0;
    let agent = |session: &str| agents.get(session).cloned().unwrap_or_default();
    let tool = |session: &str| agent(session).tool.unwrap_or_else(|| "unknown".into());
    let hash = |session: &str| {
        let mut hash = Hash::of(format!("{}:{session}", tool(session)).as_bytes()).to_string();
        hash.truncate(NAME);
        hash
    };
    for file in &attested.files {
        let sessions = by_session(file);
        if sessions.is_empty() {
            continue;
        }
        let Some(name) = file_name(file.path.as_bytes()) else {
            left_out += 1;
            continue;
        };
        let _ = writeln!(text, "{name}");
        for (session, ranges) in sessions {
            let told: Vec<String> = ranges
                .iter()
                .map(|(start, end)| match start == end {
                    true => start.to_string(),
                    false => format!("{start}-{end}"),
                })
                .collect();
            let _ = writeln!(text, "  {} {}", hash(session), told.join(","));
            let count = ranges.iter().map(|(start, end)| end - start + 1);
            *lines.entry(session).or_default() += count.sum::<u32>();
        }
    }
    let prompts: Map<String, Value> = lines
        .iter()
        .map(|(session, lines)| {
            let model = agent(session).model.unwrap_or_else(|| "unknown".into());
            let record = json!({
                "agent_id": {"tool": tool(session), "id": session, "model": model},
                "human_author": null,
                // touchmark does not store the conversation with the agent.
                "messages": [],
                "total_additions": lines,
                "total_deletions": 0,
                "accepted_lines": lines,
                "overriden_lines": 0,
            });
            (hash(session), record)
        })
        .collect();
    let metadata = json!({
        "schema_version": "authorship/3.0.0",
        "base_commit_sha": attested.commit,
        "prompts": prompts,
        "touchmark": env!("CARGO_PKG_VERSION"),
    });
    let _ = writeln!(text, "---\n{metadata:#}");
    Note { text, left_out }
}

/// Returns whether touchmark wrote a note. Other programs' notes are only
/// replaced on request.
pub(crate) fn is_own(note: &[u8]) -> bool {
    let text = String::from_utf8_lossy(note);
    let metadata = text
        .split_once("---\n")
        .filter(|(files, _)| files.is_empty() || files.ends_with('\n'))
        .and_then(|(_, metadata)| serde_json::from_str::<Value>(metadata).ok());
    metadata.is_some_and(|metadata| metadata["touchmark"].is_string())
}

/// Returns a file's name as it is written in a note; `None` for a name that
/// readers would misinterpret.
fn file_name(path: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(path).ok()?;
    if name.contains(['"', '\n', '\r']) {
        return None;
    }
    Some(match name.contains(char::is_whitespace) || name == "---" {
        true => format!("\"{name}\""),
        false => name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_a_note_as_its_readers_take_them() {
        let name = |path: &str| file_name(path.as_bytes());
        assert_eq!(name("a/b.rs").as_deref(), Some("a/b.rs"));
        assert_eq!(name("my file").as_deref(), Some("\"my file\""));
        assert_eq!(name("---").as_deref(), Some("\"---\""));
        assert_eq!(name("a\"b"), None);
        assert_eq!(name("a\nb"), None);
        assert_eq!(file_name(b"\xff"), None);
    }

    #[test]
    fn only_what_says_so_is_ones_own_note() {
        let own = "a\n  0123456789abcdef 1\n---\n{\"touchmark\": \"0.1.0\"}\n";
        assert!(is_own(own.as_bytes()));
        assert!(!is_own(
            b"---\n{\"schema_version\": \"authorship/3.0.0\"}\n"
        ));
        assert!(!is_own(b"a note\n"));
        assert!(!is_own(b""));
    }
}
