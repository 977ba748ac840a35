//! What an undo or a redo did, or would do, as text.

use anstyle::Style;
use touchmark_client::proto::commands::CommandRow;
use touchmark_client::proto::undo::{
    LeftCause, UndoConflict, UndoElsewhere, UndoLeft, UndoOutcome, Undone, UndoneFile, UndoneLines,
};
use touchmark_client::proto::{LineRange, RelPath, Reply};

use crate::around::{Around, Context};
use crate::context::Connection;
use crate::output::{self, Failure, Outcome};
use crate::style::{self, paint};
use crate::system::terminal;
use crate::table::{Step, Table, View};
use crate::text::{self, MAX_NAME, author, count, cut, duration, escaped, folded, path, wrapped};

/// What was done, path, remarks.
const FILES: Table = Table::new(&[Step::Middle(1, 16)]).with_remarks();

/// The maximum number of lines of a conflict that are shown.
pub(crate) const SHOWN: usize = 4;

/// How many digits of a commit's id are shown.
const COMMIT: usize = 7;

/// The maximum number of lines of each side of a planned change that are shown.
const PLANNED: usize = 20;

/// Prints the result of an undo or a redo, or of a dry run of one.
pub(crate) fn tell(connection: &Connection<'_>, reply: Reply, planned: bool) -> Outcome {
    let context = connection.context;
    let is_redo = matches!(reply, Reply::Redo(_));
    let (Reply::Undo(undone) | Reply::Redo(undone)) = &reply else {
        return Ok(());
    };
    let is_nothing = undone.undo.is_none();
    if context.global.json {
        connection.json(reply)?;
    } else {
        let around = planned.then(|| Around::new(&connection.client));
        show(undone, planned, is_redo, around)?;
        match &undone.undo {
            Some(name) => context.say(&format!(
                "reverse it with: touchmark redo {}",
                escaped(name, MAX_NAME)
            ))?,
            None if planned => context.say("nothing was written")?,
            None if is_redo => context.say("nothing was put back")?,
            None => context.say("nothing was undone")?,
        }
        let left = || {
            undone
                .files
                .iter()
                .flat_map(|file| file.left.iter().flatten())
        };
        if left().any(|left| left.cause == LeftCause::Likely) {
            context
                .say("take what may be yours with --likely; or say whose it is: touchmark claim")?;
        }
        if left().any(|left| left.cause == LeftCause::Decided) {
            context
                .say("take the lines that another author has put back or removed with --decided")?;
        }
    }
    match is_nothing && !planned {
        true => Err(Failure::Ended { code: 1 }),
        false => Ok(()),
    }
}

/// Prints a line for each file, and lines for each change that stays. With
/// `around`, also the lines that would change.
pub(crate) fn show(
    undone: &Undone,
    planned: bool,
    is_redo: bool,
    mut around: Option<Around<'_>>,
) -> Outcome {
    let lines = lines(&undone.files, planned, is_redo, &View::here());
    for (line, file) in lines.iter().zip(&undone.files) {
        output::line(line)?;
        if let Some(around) = &mut around {
            for change in file.changes.iter().flatten() {
                show_planned(change, &file.path, around)?;
            }
        }
        for conflict in file.conflicts.iter().flatten() {
            show_conflict(conflict)?;
        }
        for left in file.left.iter().flatten() {
            show_left(left, undone)?;
        }
        for place in file.elsewhere.iter().flatten() {
            output::line(&format!("    {}", elsewhere(place)))?;
        }
    }
    match &undone.unsearched {
        Some(what) => output::line(&format!("where else its lines are: {}", escaped(what, 500))),
        None => Ok(()),
    }
}

/// Returns where lines are that a file does not have after an undo.
fn elsewhere(place: &UndoElsewhere) -> String {
    let lines = count(u64::from(place.lines), "line");
    let verb = if place.lines == 1 { "is" } else { "are" };
    let commit: String = place.commit.chars().take(COMMIT).collect();
    let commit = escaped(&commit, MAX_NAME);
    let of = match (place.stash, &place.branch) {
        (Some(stash), _) => format!("stash@{{{stash}}}"),
        (None, Some(branch)) => format!("{commit} on branch {}", escaped(branch, MAX_NAME)),
        (None, None) => format!("{commit}, which is checked out"),
    };
    let name = place.path.as_ref();
    let name = name.map_or_else(String::new, |name| format!(", as {}", path(name)));
    format!("{lines} {verb} in {of}{name}")
}

/// Returns one text for each file.
pub(crate) fn lines(
    files: &[UndoneFile],
    planned: bool,
    is_redo: bool,
    view: &View,
) -> Vec<String> {
    let rows = files.iter().map(|file| {
        let (mut word, colour) = word(file.outcome, planned);
        if is_redo && file.outcome == UndoOutcome::Undone {
            word = "put back";
        }
        vec![
            (colour, word.to_owned()),
            (Style::new(), path(&file.path)),
            (style::DIM, about(file)),
        ]
    });
    FILES.lines(rows, view.columns)
}

fn word(outcome: UndoOutcome, planned: bool) -> (&'static str, Style) {
    match outcome {
        UndoOutcome::Undone => (if planned { "undo" } else { "undone" }, style::AGENT),
        UndoOutcome::Deleted => (if planned { "delete" } else { "deleted" }, style::AGENT),
        UndoOutcome::Restored => (if planned { "restore" } else { "restored" }, style::AGENT),
        UndoOutcome::Renamed => (if planned { "rename" } else { "renamed" }, style::AGENT),
        UndoOutcome::Unchanged => ("unchanged", style::DIM),
        UndoOutcome::Conflict => ("conflict", style::WARN),
        UndoOutcome::NotKept => ("not kept", style::WARN),
        UndoOutcome::Changed => ("busy", style::WARN),
        UndoOutcome::Failed => ("failed", style::WARN),
        UndoOutcome::Partly => ("partly", style::WARN),
        UndoOutcome::Left => ("left", style::WARN),
    }
}

fn about(file: &UndoneFile) -> String {
    let mut about = Vec::new();
    if file.hunks > 0 {
        about.push(count(u64::from(file.hunks), "change"));
    }
    if let Some(conflicts) = &file.conflicts {
        about.push(count(conflicts.len() as u64, "conflict"));
    }
    if let Some(to) = &file.to {
        about.push(format!("back to {}", path(to)));
    }
    if let Some(cause) = &file.cause {
        about.push(escaped(cause, 2000));
    }
    about.join(", ")
}

/// Prints the lines that an undo would change, and those around them.
fn show_planned(change: &UndoneLines, path: &RelPath, around: &mut Around<'_>) -> Outcome {
    output::line(&paint(style::DIM, &format!("    line {}", change.start)))?;
    let above = change.start.saturating_sub(1) as usize;
    let context = around.of(path, above, &change.before);
    sides(&change.before, &change.after, &context, "    ", PLANNED)
}

/// Prints the two sides of a change, what it removes and what it adds, between
/// the lines around it. Of each side at most `most` lines are shown.
pub(crate) fn sides(
    before: &str,
    after: &str,
    context: &Context,
    indent: &str,
    most: usize,
) -> Outcome {
    let (columns, below) = (terminal::room(), format!("{indent}  "));
    let side = |sign: &str, colour: Style, line: &str| {
        let line = format!("{indent}{sign}{}", escaped(line, MAX_NAME));
        let mut parts = folded(&line, columns, &below).into_iter();
        parts.try_for_each(|part| output::line(&paint(colour, &part)))
    };
    let unchanged = |lines: &[String]| {
        let mut lines = lines.iter();
        lines.try_for_each(|line| match line.trim_end() {
            "" => output::line(""),
            line => side(" ", Style::new(), line),
        })
    };
    unchanged(&context.before)?;
    for (sign, colour, text) in [("-", style::WARN, before), ("+", style::GOOD, after)] {
        for line in text.lines().take(most) {
            side(sign, colour, line)?;
        }
        if let more @ 1.. = text.lines().count().saturating_sub(most) {
            output::line(&paint(style::DIM, &format!("{below}and {more} lines more")))?;
        }
    }
    unchanged(&context.after)
}

fn show_conflict(conflict: &UndoConflict) -> Outcome {
    let place = place(Some(conflict.lines));
    output::line(&format!(
        "    {place}: stays, since {} changed it later",
        author(&conflict.by)
    ))?;
    let before: Vec<&str> = conflict.before.lines().collect();
    let columns = terminal::room();
    for line in before.iter().take(SHOWN) {
        let line = format!("      before: {}", escaped(line, 60));
        output::line(&cut(&line, columns))?;
    }
    if before.len() > SHOWN {
        output::line(&format!("      and {} lines more", before.len() - SHOWN))?;
    }
    Ok(())
}

/// Returns the lines of a change, in words.
pub(crate) fn place(lines: Option<LineRange>) -> String {
    lines.map_or_else(|| "a change".to_owned(), text::lines)
}

/// Prints a change that stays, with the cause and its first lines.
fn show_left(left: &UndoLeft, undone: &Undone) -> Outcome {
    let mut commands = undone.commands.iter().flatten();
    let command = commands.find(|row| Some(&row.command) == left.command.as_ref());
    let why = match (left.cause, command) {
        (LeftCause::Likely, Some(command)) => {
            format!(
                "may be yours, it appeared while {} ran",
                command_name(command)
            )
        }
        _ => escaped(&left.why, 2000),
    };
    let columns = terminal::room();
    let line = format!("{}: stays, {why}", place(left.lines));
    for line in wrapped(&line, columns.saturating_sub(4), "") {
        output::line(&format!("    {line}"))?;
    }
    for line in left.text.lines().take(SHOWN) {
        output::line(&cut(&format!("      {}", escaped(line, 500)), columns))?;
    }
    Ok(())
}

/// Returns a command's line, how long it took, and its name.
pub(crate) fn command_name(command: &CommandRow) -> String {
    let label = command.label.as_deref().unwrap_or("a command");
    let label = escaped(label.lines().next().unwrap_or_default(), MAX_NAME);
    let took = command
        .ended_at
        .map(|end| end.saturating_sub(command.begun_at));
    match took {
        Some(took) => format!("`{label}` ({}, {})", command.command, duration(took)),
        None => format!("`{label}` ({})", command.command),
    }
}
