//! What is only likely an agent's: it appeared while one of its commands ran
//! (UNDO-7).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal as _};

use touchmark_client::blocking::Client;
use touchmark_client::proto::claim::Claim;
use touchmark_client::proto::commands::{CommandList, CommandRow};
use touchmark_client::proto::review::ReviewHunk;
use touchmark_client::proto::undo::{LeftCause, UndoLeft, Undone};
use touchmark_client::proto::{ClientPath, RelPath, SessionId};

use crate::confirm;
use crate::output::{self, Failure, Outcome};
use crate::system::terminal;
use crate::text::{cut, escaped, path};
use crate::undone::{SHOWN, command_name, place};

/// The number of recent commands that are looked up.
const COMMANDS: u32 = 1_000;

/// The maximum number of places of a group that are shown.
const PLACES: usize = 8;

/// The user's answer about the changes of a group: who wrote them.
#[derive(Clone, Copy)]
enum Owner {
    Command,
    User,
    Unknown,
    Quit,
}

/// The letters and words of the answers.
const ANSWERS: &[(&str, &str, Owner)] = &[
    ("c", "command", Owner::Command),
    ("y", "yours", Owner::User),
    ("m", "mine", Owner::User),
    ("l", "leave", Owner::Unknown),
    ("", "", Owner::Unknown),
    ("q", "quit", Owner::Quit),
    ("n", "no", Owner::Quit),
];

/// The likely changes that were made while one command ran: each with its file.
type LikelyChanges<'a> = Vec<(&'a RelPath, &'a UndoLeft)>;

/// Asks for each command whether what appeared while it ran is the command's or
/// the user's, and records the answers (ATTR-18). Returns whether there was an
/// answer. Does nothing if standard input is not a terminal.
pub(crate) fn ask(client: &Client, planned: &Undone) -> Outcome<bool> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    let mut is_answered = false;
    for (command, group) in groups(planned) {
        let Some(session) = whose(command, &group)? else {
            continue;
        };
        let paths: BTreeSet<&RelPath> = group.iter().map(|(path, _)| *path).collect();
        client.call(Claim {
            session,
            command: Some(command.command.clone()),
            paths: Some(paths.into_iter().map(ClientPath::from).collect()),
            lines: None,
        })?;
        is_answered = true;
    }
    Ok(is_answered)
}

/// Returns whether text of a change in the queue may be the user's. What it only
/// removed is brought back without a question, since that takes nothing.
pub(crate) fn is_doubtful(hunk: &ReviewHunk) -> bool {
    hunk.likely == Some(true) && !hunk.after.is_empty()
}

/// Asks about changes in the queue whose text may be the user's, command by
/// command, and records the answers. `queue` has all changes that are in it: an
/// answer about some lines of a version says nothing about its others. Returns
/// whether there was an answer. Does nothing if standard input is not a
/// terminal.
pub(crate) fn ask_about(
    client: &Client,
    hunks: &[&ReviewHunk],
    queue: &[ReviewHunk],
) -> Outcome<bool> {
    if !io::stdin().is_terminal() || !hunks.iter().any(|hunk| is_doubtful(hunk)) {
        return Ok(false);
    }
    let ran = client.call(CommandList::new().limit(COMMANDS))?;
    let mut is_answered = false;
    for row in ran.commands.iter().rev() {
        let is_of = |hunk: &ReviewHunk| hunk.command.as_ref() == Some(&row.command);
        let doubts = hunks.iter().filter(|hunk| is_of(hunk) && is_doubtful(hunk));
        let doubts: Vec<&ReviewHunk> = doubts.copied().collect();
        if doubts.is_empty() {
            continue;
        }
        let lefts: Vec<UndoLeft> = doubts.iter().map(|hunk| left(hunk)).collect();
        let paths = doubts.iter().map(|hunk| &hunk.path);
        let Some(session) = whose(row, &paths.zip(&lefts).collect())? else {
            continue;
        };
        for hunk in &doubts {
            client.call(claim(hunk, &doubts, queue, session.clone()))?;
        }
        is_answered = true;
    }
    Ok(is_answered)
}

/// Returns the claim by which the user says who wrote a change: a session, or the
/// user. It is about all that the command did to the file if `answered` has all
/// of that which is in the queue, else about the change's lines.
pub(crate) fn claim(
    hunk: &ReviewHunk,
    answered: &[&ReviewHunk],
    queue: &[ReviewHunk],
    session: Option<SessionId>,
) -> Claim {
    let is_like = |other: &&ReviewHunk| other.command == hunk.command && other.path == hunk.path;
    let is_answered = |other: &ReviewHunk| answered.iter().any(|one| one.id == other.id);
    let is_whole = queue.iter().filter(is_like).all(is_answered);
    let command = hunk.command.clone().filter(|_| is_whole);
    Claim {
        session,
        lines: command.is_none().then_some(hunk.lines),
        command,
        paths: Some(vec![ClientPath::from(&hunk.path)]),
    }
}

/// Returns the authors of a change, and that it may be the user's.
pub(crate) fn doubted(authors: String, is_likely: bool) -> String {
    match is_likely {
        true => authors + " or you",
        false => authors,
    }
}

/// Returns a change in the queue as one that an undo would leave.
fn left(hunk: &ReviewHunk) -> UndoLeft {
    UndoLeft {
        cause: LeftCause::Likely,
        why: String::new(),
        lines: Some(hunk.lines),
        removed: u32::try_from(hunk.before.lines().count()).unwrap_or(u32::MAX),
        text: hunk.after.clone(),
        command: hunk.command.clone(),
    }
}

/// Returns the likely changes by the command that ran.
fn groups(undone: &Undone) -> impl Iterator<Item = (&CommandRow, LikelyChanges<'_>)> {
    let mut groups: BTreeMap<&str, LikelyChanges<'_>> = BTreeMap::new();
    for file in &undone.files {
        let left = file.left.iter().flatten();
        for left in left.filter(|left| left.cause == LeftCause::Likely) {
            if let Some(command) = &left.command {
                groups.entry(command).or_default().push((&file.path, left));
            }
        }
    }
    let commands = undone.commands.iter().flatten();
    commands.filter_map(move |row| Some((row, groups.remove(row.command.as_str())?)))
}

/// Shows what appeared while a command ran, and asks whose it is. Returns the
/// command's session, or `None` within for the user; `None` without an answer.
fn whose(command: &CommandRow, group: &LikelyChanges<'_>) -> Outcome<Option<Option<SessionId>>> {
    output::line(&format!("while {} ran:", command_name(command)))?;
    let columns = terminal::room();
    for (file, left) in group.iter().take(PLACES) {
        let added = left.text.lines().count();
        let removed = match left.removed {
            0 => String::new(),
            removed => format!(" -{removed}"),
        };
        let head = format!("  {}: {}, +{added}{removed}", path(file), place(left.lines));
        output::line(&cut(&head, columns))?;
        for line in left.text.lines().take(SHOWN) {
            output::line(&cut(&format!("    + {}", escaped(line, 500)), columns))?;
        }
        if added > SHOWN {
            output::line(&format!("    and {} lines more", added - SHOWN))?;
        }
    }
    if group.len() > PLACES {
        let more = group.len() - PLACES;
        output::line(&format!("  and {more} places more"))?;
    }
    let question = "the command's or yours? [c]ommand's, [y]ours, [l]eave it, [q]uit";
    match confirm::choice(question, ANSWERS, "")?.unwrap_or(Owner::Unknown) {
        Owner::Command => Ok(Some(Some(command.session.clone()))),
        Owner::User => Ok(Some(None)),
        Owner::Unknown => Ok(None),
        Owner::Quit => Err(Failure::No("no further change was undone".into())),
    }
}
