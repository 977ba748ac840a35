//! The sentences that tell a session what another worktree has changed.

use std::fmt::Write as _;

use touchmark_engine::text::tokens;
use touchmark_proto::quoting::{escaped, quoted};
use touchmark_proto::{Author, AuthorKind, LineRange, RelPath};

use super::overlap::{Clash, plain, text};
use super::unmerged::Met;

/// The maximum number of lines that are shown.
const SHOWN: usize = 10;

/// The maximum number of ranges that are named.
const RANGES: usize = 10;

/// The maximum length of a shown line, in characters.
const WIDTH: usize = 200;

/// Returns the sentence for one file and one worktree. The lines of a secret
/// are not shown (SEC-3).
pub(super) fn sentence(
    path: &RelPath,
    met: &Met,
    clashes: &[&Clash],
    authors: &[Author],
) -> String {
    let file = quoted(&path.to_string_lossy(), WIDTH);
    let tree = quoted(&met.tree.shown(), WIDTH);
    let branch = met.tree.branch();
    let branch = branch.map_or(String::new(), |branch| {
        format!(" (branch {})", quoted(&branch, 80))
    });
    let Some(bytes) = &met.unmerged.bytes else {
        return format!(
            "The worktree {tree}{branch} of this repository has removed {file}, \
             which you change here, and has not merged that."
        );
    };
    let ranges = ranges(clashes);
    let places: Vec<String> = ranges.iter().take(RANGES).map(place).collect();
    let plural = match ranges.as_slice() {
        [one] if one.start == one.end => "",
        _ => "s",
    };
    let more = if ranges.len() > RANGES {
        " and more"
    } else {
        ""
    };
    let renamed = match met.unmerged.path == *path {
        true => String::new(),
        false => {
            let name = quoted(&met.unmerged.path.to_string_lossy(), WIDTH);
            format!(", as {name}")
        }
    };
    let mut said = format!(
        "The worktree {tree}{branch} of this repository has changed lines of {file} that you \
         change here too, and has not merged them: line{plural} {}{more} there{renamed}{}.",
        places.join(", "),
        by(authors),
    );
    let bytes = plain(bytes);
    if let Ok(whole) = std::str::from_utf8(&bytes)
        && !tokens::any(whole.as_bytes())
    {
        show(&mut said, whole, clashes);
    }
    said
}

/// Returns the lines of the other worktree's content. Where it has removed
/// lines, the line before them.
pub(super) fn ranges(clashes: &[&Clash]) -> Vec<LineRange> {
    let range = |clash: &&Clash| LineRange {
        start: match clash.theirs.is_empty() {
            true => clash.theirs.start.max(1),
            false => clash.theirs.start + 1,
        },
        end: clash.theirs.end.max(1),
    };
    clashes.iter().map(range).collect()
}

fn place(range: &LineRange) -> String {
    match range.start == range.end {
        true => range.start.to_string(),
        false => format!("{}-{}", range.start, range.end),
    }
}

fn show(said: &mut String, whole: &str, clashes: &[&Clash]) {
    let mut room = SHOWN;
    for clash in clashes {
        if clash.theirs.is_empty() && room > 0 {
            let after = clash.theirs.start;
            let _infallible = write!(said, "\n(lines removed after line {after})");
        }
        let lines = text(whole.as_bytes(), &clash.theirs);
        for (number, line) in (clash.theirs.start + 1..).zip(lines) {
            if room == 0 {
                said.push_str("\n(more lines)");
                return;
            }
            room -= 1;
            let line = String::from_utf8_lossy(line);
            let line = escaped(line.trim_end_matches('\n'), WIDTH);
            let _infallible = write!(said, "\n{number}: {line}");
        }
    }
}

/// Returns by whom the lines were written, as far as their daemon has recorded
/// it. Two daemons may name different sessions alike.
fn by(authors: &[Author]) -> String {
    let mut names: Vec<String> = Vec::new();
    for author in authors {
        let name = match (author.kind, &author.session) {
            (AuthorKind::Agent, Some(session)) => {
                let name = author.label.as_deref().unwrap_or(session.as_str());
                format!("by agent session {} of that worktree", quoted(name, 80))
            }
            (AuthorKind::User, _) => "outside any agent".into(),
            _ => continue,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.is_empty() {
        true => String::new(),
        false => format!(", {}", names.join(" and ")),
    }
}
