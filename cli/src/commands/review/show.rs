//! A change of the queue as it is printed.

use std::collections::BTreeSet;

use touchmark_client::proto::RelPath;
use touchmark_client::proto::review::{Comment, ReviewFile, ReviewHunk};

use super::comments;
use super::queue::{ChangeKind, QueueEntry, QueuedChange};
use crate::around::{self, Around};
use crate::likely;
use crate::output::{self, Outcome};
use crate::style::{self, paint};
use crate::system::terminal;
use crate::text::{self, MAX_NAME, authors, count, cut, escaped, folded, path, width};
use crate::undone;
use crate::versions::{kind, mode_change};

/// The maximum number of lines of each side of a change that are shown. `?`
/// shows how to see more.
const SHOWN: usize = 40;

/// The maximum number of files of an entry that are named.
const NAMED: usize = 6;

/// Prints an entry, with the comments on it.
pub(super) fn entry(
    entry: &QueueEntry<'_>,
    comments: &[Comment],
    around: &mut Around<'_>,
) -> Outcome {
    match (entry.command, entry.changes.first()) {
        (Some(command), Some(first)) => many(entry, command, first),
        _ => {
            let mut changes = entry.changes.iter();
            changes.try_for_each(|one| change(one, comments, around))
        }
    }
}

fn change(one: &QueuedChange<'_>, all: &[Comment], around: &mut Around<'_>) -> Outcome {
    match one.of {
        ChangeKind::Lines(hunk) => lines(hunk, around),
        ChangeKind::File(changed) => file(changed),
    }?;
    let on_it = |comment: &&Comment| comment.path == *one.path && comment.id == one.id;
    let mut own = all.iter().filter(on_it);
    own.try_for_each(|comment| output::lines(&comments::lines(comment, false)))
}

/// Prints the changes of a command that changed many files.
fn many(entry: &QueueEntry<'_>, command: &str, first: &QueuedChange<'_>) -> Outcome {
    let paths: BTreeSet<&RelPath> = entry.changes.iter().map(|change| change.path).collect();
    let (mut added, mut removed) = (0, 0);
    for hunk in entry.lines() {
        added += hunk.after.lines().count();
        removed += hunk.before.lines().count();
    }
    let files = count(paths.len() as u64, "file");
    let head = format!("{}: {files}", escaped(command, MAX_NAME));
    let by = likely::doubted(authors(first.authors), entry.is_likely());
    let is_viewed = entry.changes.iter().all(|change| change.is_viewed);
    head_line(&head, &by, is_viewed)?;
    let names: Vec<String> = paths.iter().take(NAMED).map(|file| path(file)).collect();
    let more = match paths.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = format!("+{added} -{removed} in {}{more}", names.join(" "));
    let columns = terminal::room();
    for line in folded(&text, columns, "  ") {
        output::line(&paint(style::DIM, &line))?;
    }
    Ok(())
}

/// Prints the change as a diff, with its author and the lines around it.
fn lines(hunk: &ReviewHunk, around: &mut Around<'_>) -> Outcome {
    let what = match (hunk.created, hunk.deleted) {
        (Some(true), _) => "new file".to_owned(),
        (_, Some(true)) => "deleted".to_owned(),
        _ => text::lines(hunk.lines),
    };
    let by = likely::doubted(authors(&hunk.authors), hunk.likely == Some(true));
    head(&hunk.path, &what, &by, hunk.viewed)?;
    // What only removed lines names the line before them.
    let above = hunk
        .lines
        .start
        .saturating_sub(u32::from(!hunk.after.is_empty()));
    let context = match (hunk.created, hunk.deleted) {
        (None, None) => around.of(&hunk.path, above as usize, &hunk.after),
        _ => around::Context::default(),
    };
    undone::sides(&hunk.before, &hunk.after, &context, "", SHOWN)
}

/// Prints the change of a mode or of a symlink, with its author.
fn file(file: &ReviewFile) -> Outcome {
    let what = match (file.mode_before, file.mode) {
        (None, Some(mode)) => format!("new {}", kind(mode)),
        (Some(mode), None) => format!("deleted {}", kind(mode)),
        (Some(before), Some(now)) if before.is_link() && now.is_link() => "symlink".to_owned(),
        (Some(before), Some(now)) => {
            mode_change(before, now).unwrap_or_else(|| "content".to_owned())
        }
        (None, None) => "content".to_owned(),
    };
    head(&file.path, &what, &authors(&file.authors), file.viewed)?;
    let target = |target: &Option<String>| target.clone().unwrap_or_default();
    undone::sides(
        &target(&file.target_before),
        &target(&file.target),
        &around::Context::default(),
        "",
        SHOWN,
    )
}

/// Prints the first line of a change.
fn head(file: &RelPath, what: &str, by: &str, viewed: Option<bool>) -> Outcome {
    let room = terminal::room();
    let file = cut(&path(file), room.saturating_sub(width(what) + 2));
    head_line(&format!("{file}: {what}"), by, viewed == Some(true))
}

fn head_line(head: &str, by: &str, is_viewed: bool) -> Outcome {
    let by = match is_viewed {
        true => format!("by {by}, viewed"),
        false => format!("by {by}"),
    };
    let fits = width(head) + 2 + width(&by) <= terminal::room();
    output::line(&format!(
        "{}{}{}",
        paint(style::BOLD, head),
        if fits { "  " } else { "\n  " },
        paint(style::DIM, &by)
    ))?;
    Ok(())
}
