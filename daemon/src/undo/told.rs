//! Notices to the sessions whose changes an undo or a redo concerns. Only the
//! net result is told (UNDO-5).

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use touchmark_engine::recall::undo_name;
use touchmark_engine::text::lines;
use touchmark_proto::quoting::quoted;
use touchmark_proto::{LineRange, RelPath, SessionId};

use super::Undoer;
use super::journal::Journal;
use crate::past::entry::{Entry, FileEntry};

/// The maximum number of files, and of line ranges in each file, that a notice
/// lists.
const NAMED: usize = 10;

/// Stores what the sessions whose changes are in an undo or a redo receive with
/// their next event. What the undo or redo has taken back of earlier ones that
/// a session has not received yet is withdrawn instead. Does nothing for an
/// undo that wrote no file (`None`).
pub(super) fn tell(undoer: &Undoer, undo: Option<&str>) {
    let newest = undo.and_then(|name| undoer.journal.entry(Some(name)).ok());
    let Some(newest) = newest else {
        return;
    };
    let of_files = newest
        .files
        .iter()
        .flat_map(|file| file.sessions(&newest.authors));
    let sessions: BTreeSet<SessionId> = of_files.flatten().collect();
    for session in sessions {
        let unsaid = undoer.memory.undone(|undone| undone.unsaid(&session));
        let unsaid = unsaid.into_iter();
        let unsaid =
            unsaid.filter_map(|number| undoer.journal.entry(Some(&undo_name(number))).ok());
        let mut entries: Vec<Entry> = unsaid.collect();
        entries.push(newest.clone());
        let left = left(&entries, &session);
        let nothing_is_left = left.iter().all(Vec::is_empty);
        for (entry, files) in entries.iter().zip(left) {
            let text = match (nothing_is_left, files.as_slice()) {
                (true, _) => None,
                (false, []) => Some(String::new()),
                (false, files) => Some(sentence(&undoer.journal, entry, files)),
            };
            let memory = &undoer.memory;
            memory.say_of_undo(&undoer.cx.inside, &session, entry.number, text);
        }
        undoer.memory.undone(|undone| {
            let own = |file: &&FileEntry| {
                let sessions = file.sessions(&newest.authors);
                sessions.contains(&Some(session.clone()))
            };
            for file in newest.files.iter().filter(own) {
                undone.leave(&session, &file.path, file.after);
            }
        });
        if newest.redo_of.is_some() {
            undoer.memory.undone(|undone| {
                let files = newest.files.iter();
                files.for_each(|file| undone.give_back(&session, &file.path));
            });
        }
    }
}

/// Returns, for each of some undos and redos in order, the indexes of the files
/// with changes of the session that no later one of them has taken back.
fn left(entries: &[Entry], session: &SessionId) -> Vec<Vec<usize>> {
    let mut open: HashMap<&RelPath, Vec<(usize, usize)>> = HashMap::new();
    for (at, entry) in entries.iter().enumerate() {
        for (index, file) in entry.files.iter().enumerate() {
            let sessions = file.sessions(&entry.authors);
            if !sessions.contains(&Some(session.clone())) {
                continue;
            }
            let earlier = open.entry(&file.path).or_default();
            let redone = |(at, _): &(usize, usize)| {
                entry.redo_of == Some(entries[*at].number) && file.conflicts == 0
            };
            let before = |(at, index): &(usize, usize)| entries[*at].files[*index].begins_as(file);
            if let Some(undone) = earlier.iter().position(redone) {
                earlier.remove(undone);
            } else if let Some(first) = earlier.iter().position(before) {
                earlier.truncate(first);
            } else {
                earlier.push((at, index));
            }
        }
    }
    let mut left = vec![Vec::new(); entries.len()];
    for (at, index) in open.into_values().flatten() {
        left[at].push(index);
    }
    left.iter_mut().for_each(|files| files.sort_unstable());
    left
}

/// Returns whether an entry puts changes back: whether it reverts an undo, or
/// reverts what reverted a redo.
fn is_back(journal: &Journal, entry: &Entry) -> bool {
    let reverted = entry.redo_of.map(undo_name);
    let reverted = reverted.and_then(|name| journal.entry(Some(&name)).ok());
    match reverted {
        Some(reverted) => !is_back(journal, &reverted),
        None => entry.redo_of.is_some(),
    }
}

/// Returns what an undo or a redo did in some of its files.
fn sentence(journal: &Journal, entry: &Entry, files: &[usize]) -> String {
    let is_back = is_back(journal, entry);
    let mut names = String::new();
    for index in files.iter().take(NAMED) {
        let separator = if names.is_empty() { "" } else { ", " };
        let name = quoted(&entry.files[*index].path.to_string(), 200);
        let _infallible = write!(names, "{separator}{name}");
        let lines = places(journal, entry, *index, is_back);
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
    let more = match files.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more files"),
    };
    match is_back {
        true => format!(
            "The user has put back changes of yours that were undone, in {names}{more}. \
             They are in place again."
        ),
        false => format!(
            "The user has undone changes of yours, on purpose, in {names}{more}. \
             Do not make them again unless you are asked to."
        ),
    }
}

/// Returns the lines of a file that an entry has changed, with the session's
/// changes in place: in the content before an undo, or after a redo. Empty if
/// the file was created or removed.
fn places(journal: &Journal, entry: &Entry, index: usize, is_back: bool) -> Vec<LineRange> {
    let Ok([Some(before), Some(after)]) = journal.contents(entry, index) else {
        return Vec::new();
    };
    let hunks = lines::places(&before, &after).unwrap_or_default();
    let ranges = hunks.into_iter().map(|hunk| {
        let (start, count) = match is_back {
            true => (hunk.new_start, hunk.new_lines),
            false => (hunk.old_start, hunk.old_lines),
        };
        let start = start.max(1);
        LineRange {
            start,
            end: start + count.saturating_sub(1),
        }
    });
    ranges.collect()
}
