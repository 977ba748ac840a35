//! Notices to the sessions whose changes an undo has taken away.

use std::fmt::Write as _;

use touchmark_proto::Author;
use touchmark_proto::quoting::quoted;

use super::plan::Plan;
use super::{Undoer, is_written};

/// The maximum number of files, and of line ranges in each file, that a notice
/// lists.
const NAMED: usize = 10;

/// Stores a notice for each author's session, which receives it with its next
/// event. Does nothing if no file was written.
pub(super) fn tell(undoer: &Undoer, authors: &[Author], plans: &[Plan]) {
    let written: Vec<&Plan> = plans
        .iter()
        .filter(|plan| is_written(plan.outcome))
        .collect();
    if written.is_empty() {
        return;
    }
    for author in authors {
        if let Some(session) = &author.session {
            let text = Some(sentence(&written));
            undoer.memory.say_later(&undoer.inside, session, text);
        }
    }
}

fn sentence(written: &[&Plan]) -> String {
    let mut names = String::new();
    for plan in written.iter().take(NAMED) {
        let separator = if names.is_empty() { "" } else { ", " };
        let name = quoted(&plan.path.to_string(), 200);
        let _infallible = write!(names, "{separator}{name}");
        let lines = plan.lines();
        let places: Vec<String> = lines
            .iter()
            .take(NAMED)
            .map(|range| match range.start == range.end {
                true => range.start.to_string(),
                false => format!("{}-{}", range.start, range.end),
            })
            .collect();
        if !places.is_empty() {
            let more = if lines.len() > NAMED { " and more" } else { "" };
            let _infallible = write!(names, " (lines {}{more})", places.join(", "));
        }
    }
    let more = match written.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more files"),
    };
    format!(
        "The user has undone changes of yours, on purpose, in {names}{more}. \
         Do not make them again unless you are asked to."
    )
}
