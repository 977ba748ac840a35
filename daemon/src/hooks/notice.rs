//! Sentences for models. They state facts and give no opinion. Names can come
//! from anywhere, so they are quoted, and cut if they are long (SEC-4).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::destroys::Shown;
use super::details::Details;
use touchmark_proto::quoting::{quoted, restore_command};
use touchmark_proto::sessions::Warning;
use touchmark_proto::{
    Author, AuthorKind, Change, Error, ErrorCode, ErrorData, Evidence, FileState, LineCounts,
    LineRange, Millis, RelPath, SessionId, Version, VersionKind,
};

/// How the reader's own command is named next to other authors.
const THIS_COMMAND: &str = "by this command";

/// How the reader's own tool is named that may have made a change.
pub(super) const A_TOOL: &str = "by one of your tools or by another author";

/// The maximum number of files in one notice.
pub(super) const FILES: usize = 20;

/// The maximum number of ranges of lines for one file.
const LINES: usize = 3;

/// The maximum length of a name, in characters.
pub(super) const NAME: usize = 200;

/// The maximum length of a client's note about a warning, in characters.
const NOTE: usize = 500;

/// The maximum length of the rows of one notice, in bytes; agents cut off or
/// drop longer ones.
const NOTICE: usize = 5_500;

/// Returns a file's name as it stands in sentences for models.
pub(super) fn path(path: &RelPath) -> String {
    quoted(&path.to_string_lossy(), NAME)
}

/// Returns by whom something was done. A change that no agent claims is called
/// the user's only if an editor reported it: it may come from a build, or from
/// a tool that was not announced.
fn author(author: &Author, evidence: &[Evidence]) -> String {
    let editors = evidence.contains(&Evidence::Editor) && !evidence.contains(&Evidence::Unmarked);
    match (author.kind, &author.session) {
        (AuthorKind::Agent, Some(session)) => {
            format!(
                "by agent session {}",
                name(session, author.label.as_deref())
            )
        }
        (AuthorKind::Agent, None) => match &author.label {
            Some(by) => by.clone(),
            None => "while your command ran, by the command or by another author".into(),
        },
        (AuthorKind::User, _) if editors => "by the user".into(),
        (AuthorKind::User, _) => "outside any agent".into(),
        (AuthorKind::Unknown, _) => "by an unknown author while touchmark was not watching".into(),
        (AuthorKind::Committed, _) => "by a commit".into(),
    }
}

/// Removes the reader's own session from a list of authors. Such a change is
/// not known to be its edit: it was written while its command ran, or a tool.
pub(super) fn without_own(authors: &mut [Author], own: &SessionId, by_command: bool) {
    for author in authors.iter_mut().filter(|author| author.is(own)) {
        let tool = (!by_command).then(|| A_TOOL.to_owned());
        (author.session, author.label) = (None, tool);
    }
}

/// Names the reader's own session "this command" among the authors of a change
/// during its command.
pub(super) fn by_this_command(change: &mut Change, own: &SessionId) {
    for author in change.changed_by.iter_mut().filter(|author| author.is(own)) {
        (author.session, author.label) = (None, Some(THIS_COMMAND.into()));
    }
}

/// Removes the copies that editors make of a file before they save it: a name
/// that a file was renamed to while the file's own name was written again.
pub(super) fn without_backups(changes: &mut Vec<Change>) {
    let saved: BTreeSet<RelPath> = changes
        .iter()
        .filter(|change| matches!(change.kind, VersionKind::Modified | VersionKind::Created))
        .map(|change| change.path.clone())
        .collect();
    changes.retain(|change| {
        let is_copy = change.kind == VersionKind::Renamed && change.lost.is_none();
        !(is_copy
            && change
                .from
                .as_ref()
                .is_some_and(|from| saved.contains(from)))
    });
}

/// Returns a session's label, or its id if it has none.
pub(super) fn name(session: &SessionId, label: Option<&str>) -> String {
    quoted(label.unwrap_or_else(|| session.as_str()), 80)
}

fn authors(list: &[Author], evidence: &[Evidence]) -> String {
    let name = |one| author(one, evidence);
    let names: Vec<String> = list.iter().take(4).map(name).collect();
    match names.is_empty() {
        true => author(&Author::UNKNOWN, evidence),
        false => names.join(" and "),
    }
}

/// Returns a number of things: `1 file`, `2 files`.
pub(super) fn count(number: usize, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {one}{plural}")
}

fn lines(counts: LineCounts) -> String {
    let of = |number: u32, what: &str| format!("{} {what}", count(number as usize, "line"));
    format!(
        "{}, {}",
        of(counts.added, "added"),
        of(counts.removed, "removed")
    )
}

/// Returns the time of day in the local zone.
fn time(at: Millis) -> String {
    let local = i64::try_from(at)
        .unwrap_or(0)
        .saturating_add(crate::time::utc_offset())
        .rem_euclid(86_400_000)
        / 1000;
    format!(
        "{:02}:{:02}:{:02}",
        local / 3600,
        local / 60 % 60,
        local % 60
    )
}

/// Returns why a write is refused: who changed the file, when, how much, and
/// what to do. `None` for an error that does not concern changes by others.
pub(super) fn refusal(error: &Error, counts: Option<LineCounts>) -> Option<String> {
    let data = error.files.first().unwrap_or(&error.data);
    let file = path(data.path.as_ref()?);
    let others = match error.files.len().saturating_sub(1) {
        0 => String::new(),
        more => format!(" The same holds for {more} more of the files."),
    };
    let sentence = match error.code {
        ErrorCode::NotRead => {
            format!(
                "{file} exists and has not been read in this session; read it before changing it."
            )
        }
        ErrorCode::Stale => {
            let who = authors(data.changed_by.as_deref().unwrap_or_default(), &[]);
            let when = data
                .since
                .map(|since| format!(" at {}", time(since)))
                .unwrap_or_default();
            let size = counts
                .map(|counts| format!(" ({})", lines(counts)))
                .unwrap_or_default();
            format!(
                "{file} was changed {who}{when}{size} after you read it; read it again before changing it."
            )
        }
        ErrorCode::Busy => {
            let holder = data.holder.as_ref();
            let holder = holder.map(|holder| name(holder, data.holder_label.as_deref()));
            let holder = holder.unwrap_or_default();
            let until = data
                .deadline
                .map(|deadline| format!(", until {} at the latest", time(deadline)))
                .unwrap_or_default();
            format!(
                "{file} is being changed by agent session {holder} at this moment{until}; try again when it has finished."
            )
        }
        _ => return None,
    };
    Some(sentence + &others)
}

/// Returns why a call is refused on a file that others have removed or moved.
/// `creates`: the same call would create the file again.
pub(super) fn gone(data: &ErrorData, creates: bool) -> Option<String> {
    let who = authors(data.changed_by.as_deref().unwrap_or_default(), &[]);
    let when = data.since.map(|since| format!(" at {}", time(since)));
    let then = match creates {
        true => "Repeat the call to create it again.",
        false => "This edit has no file: look where its text is now.",
    };
    Some(format!(
        "{} {} {who}{} after you read it. {then}",
        path(data.path.as_ref()?),
        data.cause.as_deref()?,
        when.unwrap_or_default(),
    ))
}

/// Returns why a write is refused that would destroy changes, and what these
/// changes are.
/// `can_repeat`: the same call would still change the file.
pub(super) fn would_destroy(
    file: &FileState,
    counts: Option<LineCounts>,
    shown: &Shown,
    can_repeat: bool,
) -> String {
    let then = match can_repeat {
        true => "repeat the call if it still is what you want",
        false => "adapt your edit to it",
    };
    let size = counts
        .map(|counts| format!(" ({})", lines(counts)))
        .unwrap_or_default();
    format!(
        "{}{size} after you read it, where this tool would write. {}That counts as read now: {then}.",
        changed(file),
        are_now(shown, "\n"),
    )
}

/// Returns what has changed in a file in addition to what a tool was allowed to
/// write.
pub(super) fn changed_elsewhere(file: &FileState, shown: &Shown) -> String {
    let what = changed(file);
    format!("{what}, elsewhere than your edit. {}", are_now(shown, ""))
}

/// Returns why a file is not replaced that the session has not read.
pub(super) fn not_read(file: &FileState, shown: Option<&Shown>) -> String {
    let name = path(&file.path);
    let (lines, size) = (file.line_count, file.size);
    let size = format!("{}, {size} bytes", count(lines as usize, "line"));
    match shown {
        Some(shown) => format!(
            "{name} exists ({size}) and has not been read in this session. {}\nRead it, or repeat the call to do without.",
            are_now(shown, "")
        ),
        None => {
            format!(
                "{name} exists ({size}) and has not been read in this session; read it before changing it."
            )
        }
    }
}

/// Returns why a tool does not remove lines that its session has not seen.
/// `shown` is `None` for a secret, whose lines nothing brings back.
pub(super) fn unseen(file: &FileState, count: usize, shown: Option<&Shown>) -> String {
    let name = path(&file.path);
    let are = if count == 1 { "line" } else { "lines" };
    let what = format!("This tool would remove {count} {are} of {name} that you have not seen");
    match shown {
        Some(shown) => format!(
            "{what}. {}\nRead the file, or repeat the call to do without.",
            are_now(shown, "")
        ),
        None => format!("{what}, and their text is not kept. Read the file before changing it."),
    }
}

/// Returns the question to an agent's user before a tool writes to a file in
/// which the user has unsaved changes.
pub(super) fn asks_over_unsaved(file: &FileState) -> String {
    let lines = match &file.unsaved_lines {
        Some(lines) => format!(" ({})", at(lines)),
        None => String::new(),
    };
    format!(
        "{} has unsaved changes in an editor{lines}. Save them first, or the next save there and this write have to be merged by hand.",
        path(&file.path)
    )
}

/// Returns why a tool must not write the lines that the user is changing.
pub(super) fn writes_over_unsaved(file: &FileState, lines: LineRange) -> String {
    format!(
        "{} has unsaved changes in an editor ({}), where this tool would write. The next save there would overwrite it: have the user save first, or repeat the call if it still is what you want.",
        path(&file.path),
        at(&lines)
    )
}

fn at(lines: &LineRange) -> String {
    let plural = if lines.start == lines.end { "" } else { "s" };
    format!("line{plural} {}", range(lines))
}

fn changed(file: &FileState) -> String {
    let who = authors(file.changed_by.as_deref().unwrap_or_default(), &[]);
    let when = file.since.map(|since| format!(" at {}", time(since)));
    format!(
        "{} was changed {who}{}",
        path(&file.path),
        when.unwrap_or_default()
    )
}

/// Lists some lines of a file, each on a separate line.
fn are_now(shown: &Shown, end: &str) -> String {
    let more = match shown.more {
        true => "\nMore lines have changed: read the file.",
        false => "",
    };
    match shown.lines.as_slice() {
        [] => format!("It is empty now.{}", if end.is_empty() { "" } else { " " }),
        [one] if one.start == one.end => {
            format!("Line {} is now:{}{more}{end}", one.start, shown.text)
        }
        lines => {
            let lines: Vec<String> = lines.iter().map(range).collect();
            format!(
                "Lines {} are now:{}{more}{end}",
                lines.join(", "),
                shown.text
            )
        }
    }
}

/// Returns what an answer that came too late would have contained.
pub(super) fn unanswered(at: Millis, refusal: &str) -> String {
    let when = time(at);
    format!(
        "touchmark could not answer in time at {when}, before a tool changed a file. Its answer would have been: {refusal}"
    )
}

/// Returns what others did to files that the session has read; `None` if there
/// is nothing to report. `room` is the maximum length of the rows, in bytes. The
/// second value is the files of which the text has the lines.
pub(super) fn changes(
    list: &[Change],
    details: &Details,
    more: bool,
    reset: bool,
    room: usize,
    session: &SessionId,
) -> Option<(String, Vec<RelPath>)> {
    let mut text = String::new();
    let mut shown = Vec::new();
    if reset {
        text.push_str(
            "touchmark has lost its records: files may have changed without being named here. ",
        );
    }
    if !list.is_empty() {
        text.push_str("Changed since you last saw them: ");
        text.push_str(&listed(
            list,
            details,
            more,
            Some((room, session)),
            &mut shown,
        ));
    }
    (!text.is_empty()).then(|| (text.trim_end().to_owned(), shown))
}

/// Returns what changed in files while the session's own command ran. A
/// command's write cannot be distinguished from a person's save at the same
/// time (ATTR-6), so the text names both. `git` is the command, if it ran git,
/// with the number of files that changed.
pub(super) fn by_command(
    list: &[Change],
    details: &Details,
    more: bool,
    git: Option<(&str, usize)>,
) -> Option<String> {
    if list.is_empty() {
        return None;
    }
    let rows = listed(list, details, more, None, &mut Vec::new());
    let what = match git {
        Some((git, count)) => {
            let files = if count == 1 && !more { "file" } else { "files" };
            let least = if more { "more than " } else { "" };
            format!("Your {git}, or another author at that time, changed {least}{count} {files}")
        }
        // A witness has seen all of it (ATTR-3).
        None if list.iter().all(|one| one.evidence == [Evidence::Process]) && !more => {
            "Changed by this command".to_owned()
        }
        None => "Changed while this command ran, by the command or by another author".to_owned(),
    };
    Some(format!("{what}: {}", rows.trim_end()))
}

/// Lists changes. Those during the session's own command are not limited by a
/// turn's room.
fn listed(
    list: &[Change],
    details: &Details,
    more: bool,
    limit: Option<(usize, &SessionId)>,
    shown: &mut Vec<RelPath>,
) -> String {
    // A row that does not fit is left out as a whole: a cut name would lack its
    // closing quote.
    let mut room = limit.map_or(NOTICE, |(room, _)| room);
    let own = limit.is_none();
    let mut rows: Vec<String> = Vec::new();
    for change in list.iter().take(FILES) {
        let long = details.lines.get(&change.path);
        let long = long.map(|lines| row(change, details, own, &lines.text));
        let row = match long.filter(|row| row.len() <= room) {
            Some(row) => {
                shown.push(change.path.clone());
                row
            }
            None => row(change, details, own, ""),
        };
        // A loss is always told.
        if row.len() <= room || (change.lost.is_some() && limit.is_some()) {
            room = room.saturating_sub(row.len());
            rows.push(row);
        }
    }
    let mut text = rows.join("; ");
    if !rows.is_empty() {
        text.push_str(". ");
    }
    match list.len().saturating_sub(rows.len()) {
        0 if more => text.push_str("More files have changed."),
        0 => {}
        rest => {
            let (files, have, them) = match rest {
                1 => ("file", "has", "it"),
                _ => ("files", "have", "them"),
            };
            let _ = write!(text, "{rest} more {files} {have} changed.");
            if let Some((_, session)) = limit {
                let command = modified_command(session);
                let _ = write!(text, " `{command}` lists {them}.");
            }
        }
    }
    text
}

/// Returns the command that lists what a session was not told. An id that a
/// shell could read otherwise is left out (SEC-4).
fn modified_command(session: &SessionId) -> String {
    let id = session.as_str();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    match id.chars().all(is_plain) && !id.starts_with('-') {
        true => format!("touchmark modified --session {id}"),
        false => "touchmark modified".to_owned(),
    }
}

/// Returns how a lost version can be restored; empty if it was never read.
fn back(lost: &Version) -> String {
    let command = match lost.unobserved {
        Some(true) => None,
        _ => restore_command(&lost.path, lost.clock),
    };
    command.map_or_else(String::new, |command| {
        format!("; `{command}` puts them back")
    })
}

fn row(change: &Change, details: &Details, own: bool, now: &str) -> String {
    let file = path(&change.path);
    let who = authors(&change.changed_by, &change.evidence);
    if let Some(lost) = &change.lost {
        // With an open mark of the session itself, the writer cannot be
        // determined.
        if lost.candidates.is_some() {
            return format!(
                "{file} (lines written {who}, or by a tool of this session that was under way, were overwritten by this session unseen{})",
                back(lost)
            );
        }
        if lost.hash.is_none() {
            return format!(
                "{file} (deleted {who} while this session was changing it, and created again by this session)"
            );
        }
        return format!(
            "{file} (lines written {who} were overwritten by this session unseen{})",
            back(lost)
        );
    }
    if change.reverts.is_some() && change.kind != VersionKind::Deleted {
        let lines = of_lines(change.reverted_lines.as_deref().unwrap_or_default());
        return match own && is_by_commands(change) {
            true => format!("{file} (your edit{lines} was taken back)"),
            false => format!("{file} (your edit{lines} was taken back {who})"),
        };
    }
    let what = match change.kind {
        VersionKind::Deleted => match details.gone.get(&change.path) {
            Some(to) => format!("moved to {}", path(to)),
            None => "deleted".to_owned(),
        },
        VersionKind::Created => "created".to_owned(),
        VersionKind::Modified if change.versions > 2 => {
            format!("modified {} times", change.versions)
        }
        VersionKind::Modified => "modified".to_owned(),
        VersionKind::Renamed => change.from.as_ref().map_or("renamed".to_owned(), |from| {
            format!("renamed from {}", path(from))
        }),
    };
    let size = change
        .lines
        .map(|counts| format!(", {}", lines(counts)))
        .unwrap_or_default();
    let back = match change.reverted_lines.as_deref() {
        Some(back) => format!(", and your edit{} was taken back", of_lines(back)),
        None => String::new(),
    };
    let now = match now.is_empty() {
        true => String::new(),
        false => format!(", now:{now}\n"),
    };
    match own && is_by_commands(change) {
        true => format!("{file} ({what}{size}{back}{now})"),
        false => format!("{file} ({what} {who}{size}{back}{now})"),
    }
}

/// Returns whether only commands made a change.
fn is_by_commands(change: &Change) -> bool {
    change
        .evidence
        .iter()
        .all(|evidence| evidence.is_of_command())
}

/// Returns that an edit is in place again of which the session was told that it
/// was taken back. `by` is the version that put it back.
pub(super) fn put_back(file: &RelPath, lines: &[LineRange], by: &Version) -> String {
    format!(
        "{} (your edit{}, which was taken back, was put back {} and is in place again).",
        path(file),
        of_lines(lines),
        author(&by.author, &[by.evidence])
    )
}

/// Returns ` of lines 10-14, 20`; empty if there are no lines.
fn of_lines(lines: &[LineRange]) -> String {
    let shown: Vec<String> = lines.iter().take(LINES).map(range).collect();
    if shown.is_empty() {
        return String::new();
    }
    let more = match lines.len() > LINES {
        true => " and others",
        false => "",
    };
    format!(" of lines {}{more}", shown.join(", "))
}

/// Returns `10-14`, or `10` for a single line.
fn range(range: &LineRange) -> String {
    match range.start == range.end {
        true => range.start.to_string(),
        false => format!("{}-{}", range.start, range.end),
    }
}

/// Returns a pending warning of the session.
pub(super) fn warning(warning: &Warning) -> String {
    let names: Vec<String> = warning.files.iter().take(FILES).map(path).collect();
    let note = warning
        .note
        .as_ref()
        .map(|note| format!(" What was noted with them: {}.", quoted(note, NOTE)))
        .unwrap_or_default();
    let more = match warning.files.len().saturating_sub(FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "These files were changed after the moment this conversation was taken back to: {}{more}.{note}",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use touchmark_proto::{Clock, Hash};

    use super::*;

    #[test]
    fn a_refusal_says_who_and_how_much() {
        let data = ErrorData {
            path: RelPath::new(b"src/a.rs").ok(),
            changed_by: Some(vec![Author::USER]),
            ..ErrorData::default()
        };
        let stale = Error::new(ErrorCode::Stale, "").with(data.clone());
        let counts = LineCounts {
            added: 1,
            removed: 2,
        };
        assert_eq!(
            refusal(&stale, Some(counts)).unwrap(),
            "\"src/a.rs\" was changed outside any agent (1 line added, 2 lines removed) after you read it; read it again before changing it."
        );
        assert_eq!(
            refusal(&Error::new(ErrorCode::Storage, "").with(data), None),
            None
        );
    }

    #[test]
    fn notices_are_bounded() {
        let change = Change {
            path: RelPath::new("x".repeat(900).as_bytes()).unwrap(),
            kind: VersionKind::Modified,
            from: None,
            hash: None,
            changed_by: vec![Author::USER],
            evidence: Vec::new(),
            first_time: 0,
            last_time: 0,
            versions: 1,
            lines: None,
            lost: None,
            writing: None,
            reverts: None,
            reverted_lines: None,
        };
        let mut long = change.clone();
        long.from = Some(change.path.clone());
        long.kind = VersionKind::Renamed;
        long.changed_by = vec![Author::agent(SessionId::new(&"a".repeat(99)).unwrap()); 4];
        let session = SessionId::new("s").unwrap();
        let none = Details::default();
        let told = |list: &[Change]| {
            let told = changes(list, &none, false, true, 2_000, &session);
            told.unwrap().0
        };
        let text = told(&vec![long; 1_000]);
        assert!(text.len() <= 2_300, "{}", text.len());
        assert!(text.matches('"').count().is_multiple_of(2), "{text}");
        let text = told(&vec![change; 1_000]);
        assert!(
            text.ends_with("more files have changed. `touchmark modified --session s` lists them."),
            "{text}"
        );
        assert_eq!(changes(&[], &none, false, false, 0, &session), None);
    }

    #[test]
    fn a_lost_version_is_told_with_the_way_back() {
        let lost = |path: &str, unobserved| Version {
            clock: Clock { epoch: 1, n: 17 },
            path: RelPath::new(path.as_bytes()).unwrap(),
            kind: VersionKind::Modified,
            from: None,
            hash: Some(Hash::of(b"")),
            size: 0,
            time: 0,
            author: Author::USER,
            evidence: Evidence::Editor,
            amends: None,
            overwritten: Some(true),
            unobserved,
            provisional: None,
            late: None,
            formatted: None,
            candidates: None,
            edit: None,
            command: None,
            mode: None,
            mode_before: None,
            before_unknown: None,
            real: None,
        };
        let told = |version: &Version| format!("x{}", back(version));
        assert_eq!(
            told(&lost("src/a.rs", None)),
            "x; `touchmark restore \"src/a.rs@17\" --missing` puts them back"
        );
        // The first was never read, so it is not stored; the second has a name
        // that cannot be part of a command.
        assert_eq!(told(&lost("src/a.rs", Some(true))), "x");
        assert_eq!(told(&lost("$(reboot)", None)), "x");
    }

    #[test]
    fn an_edit_that_was_taken_back_is_said_with_its_lines() {
        let mut change = Change {
            path: RelPath::new(b"a.rs").unwrap(),
            kind: VersionKind::Modified,
            from: None,
            hash: None,
            changed_by: vec![Author::USER],
            evidence: vec![Evidence::Editor],
            first_time: 0,
            last_time: 0,
            versions: 1,
            lines: None,
            lost: None,
            writing: None,
            reverts: Some(vec!["e1".into()]),
            reverted_lines: None,
        };
        assert_eq!(
            row(&change, &Details::default(), false, ""),
            "\"a.rs\" (your edit was taken back by the user)"
        );
        let lines = [(10, 14), (20, 20)].map(|(start, end)| LineRange { start, end });
        change.reverted_lines = Some(lines.into());
        assert_eq!(
            row(&change, &Details::default(), false, ""),
            "\"a.rs\" (your edit of lines 10-14, 20 was taken back by the user)"
        );
        change.evidence = vec![Evidence::Editor, Evidence::Unmarked];
        change.reverts = None;
        change.reverted_lines = None;
        assert_eq!(
            row(&change, &Details::default(), false, ""),
            "\"a.rs\" (modified outside any agent)"
        );
    }
}
