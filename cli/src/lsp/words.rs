//! Authors and changes, in the words that the user sees.

use touchmark_client::proto::history::{BlameLine, LineCommit};
use touchmark_client::proto::review::ReviewHunk;
use touchmark_client::proto::undo::{UndoOutcome, Undone};
use touchmark_client::proto::{AuthorKind, Evidence};

use crate::likely::doubted;
use crate::text::{self, MAX_NAME, ago, author, authors, count, escaped, now, path, zone};
use crate::undone::place;

/// The number of digits of a commit's id that are shown.
const DIGITS: usize = 8;

/// Returns who wrote a line, and how long ago; `None` if that is not known.
pub(super) fn writer(line: &BlameLine) -> Option<String> {
    let who = match (line.author.kind, &line.commit) {
        (AuthorKind::Unknown, _) => return None,
        (AuthorKind::Committed, Some(commit)) => committer(commit),
        (AuthorKind::User, _) if line.evidence != Evidence::Editor => {
            "you or another program".to_owned()
        }
        _ => author(&line.author),
    };
    let mark = match line.is_likely() {
        true => "?",
        false => "",
    };
    Some(format!("{who}{mark}, {}", ago(line.time, now(), &zone())))
}

fn committer(commit: &LineCommit) -> String {
    let id: String = commit.id.chars().take(DIGITS).collect();
    match &commit.author {
        Some(author) => format!("{} (commit {id})", escaped(author, MAX_NAME)),
        // The repository's history ends there.
        None => format!("commit {id}, or an earlier one"),
    }
}

/// Returns a change as a person would name it: `line 4 of claude-1`.
pub(super) fn change(hunk: &ReviewHunk) -> String {
    let lines = |text: &str| count(text.lines().count() as u64, "line");
    let what = if hunk.created == Some(true) {
        format!("new file ({})", lines(&hunk.after))
    } else if hunk.after.is_empty() {
        let after = hunk.lines.start;
        format!("removal of {} after line {after}", lines(&hunk.before))
    } else {
        text::lines(hunk.lines)
    };
    format!("{what} by {}", by(hunk))
}

/// Returns the authors of a change.
fn by(hunk: &ReviewHunk) -> String {
    doubted(authors(&hunk.authors), hunk.likely == Some(true))
}

/// Returns what an undo has left as it is; `None` if it left nothing.
pub(super) fn stays(undone: &Undone) -> Option<String> {
    let mut stays = Vec::new();
    for file in &undone.files {
        let name = path(&file.path);
        for conflict in file.conflicts.iter().flatten() {
            let (place, by) = (place(Some(conflict.lines)), author(&conflict.by));
            stays.push(format!("{name}, {place}: changed since by {by}"));
        }
        for left in file.left.iter().flatten() {
            stays.push(format!("{name}: {}", escaped(&left.why, MAX_NAME)));
        }
        let is_done = matches!(
            file.outcome,
            UndoOutcome::Undone | UndoOutcome::Deleted | UndoOutcome::Restored
        );
        if !is_done && file.conflicts.is_none() && file.left.is_none() {
            let cause = file.cause.as_deref().unwrap_or("it was not changed");
            stays.push(format!("{name}: {}", escaped(cause, MAX_NAME)));
        }
    }
    (!stays.is_empty()).then(|| stays.join("; "))
}

/// Returns a text that Markdown shows as it is.
pub(super) fn markdown(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if character.is_ascii_punctuation() {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use touchmark_client::proto::{Author, LineRange, RelPath};

    use super::*;

    fn hunk(before: &str, after: &str) -> ReviewHunk {
        ReviewHunk {
            id: String::new(),
            path: RelPath::new(b"a").unwrap(),
            lines: LineRange { start: 4, end: 5 },
            before: before.to_owned(),
            after: after.to_owned(),
            created: None,
            deleted: None,
            authors: vec![Author::USER],
            time: 0,
            likely: None,
            command: None,
            viewed: None,
        }
    }

    #[test]
    fn a_change_is_named_by_what_it_did() {
        assert_eq!(change(&hunk("a\n", "b\nc\n")), "lines 4-5 by you");
        assert_eq!(
            change(&hunk("a\n", "")),
            "removal of 1 line after line 4 by you"
        );
        let new = ReviewHunk {
            created: Some(true),
            likely: Some(true),
            ..hunk("", "a\nb\n")
        };
        assert_eq!(change(&new), "new file (2 lines) by you or you");
    }

    #[test]
    fn names_are_no_markup() {
        assert_eq!(markdown("a_b*<c>"), r"a\_b\*\<c\>");
    }
}
