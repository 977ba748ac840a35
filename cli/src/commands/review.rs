//! `touchmark review`: goes through agents' changes one by one, as `git add -p`
//! does.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use touchmark_client::blocking::Client;
use touchmark_client::proto::review::{
    ReviewFile, ReviewHunk, ReviewHunks, ReviewKeep, ReviewList, ReviewNamed, ReviewUndo,
};
use touchmark_client::proto::{Author, ClientPath, RelPath, Reply, SessionId};

use crate::around::{self, Around};
use crate::commands::undo::UNDOING;
use crate::context::{self, Connection, Context};
use crate::likely;
use crate::output::{self, Outcome};
use crate::style::{self, paint};
use crate::system::terminal;
use crate::table::View;
use crate::text::{self, MAX_NAME, authors, count, cut, escaped, folded, path, width};
use crate::undone;
use crate::versions::{kind, mode_change};
use crate::{complete, confirm, editor};

/// The maximum number of lines of each side of a change that are shown. `?`
/// shows how to see more.
const SHOWN: usize = 40;

/// The maximum number of files of an entry that are named.
const NAMED: usize = 6;

/// The least number of files that one command has changed, from which on its
/// changes are one entry.
const MANY: usize = 8;

/// The letters and words of the answers.
const ANSWERS: &[(&str, &str, ReviewAnswer)] = &[
    ("k", "keep", ReviewAnswer::Keep),
    ("u", "undo", ReviewAnswer::Undo),
    ("l", "later", ReviewAnswer::Later),
    ("e", "edit", ReviewAnswer::Edit),
    ("f", "file", ReviewAnswer::KeepFile),
    ("s", "single", ReviewAnswer::Single),
    ("q", "quit", ReviewAnswer::Quit),
];

const HELP: &str = "k  keep the change; it is not shown again
u  undo the change; `touchmark redo` reverses that
l  later: the change stays in the queue
e  edit the file in $EDITOR, then continue
f  keep the rest of this file
s  of an entry with many files: show them one by one
q  quit; the answers so far are kept";

/// Go through agents' changes that were neither kept nor undone.
///
/// A commit keeps the changes that it contains. Without a terminal the queue is
/// listed.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only changes of this session
    #[arg(value_name = "SESSION", value_parser = context::session, add = ArgValueCompleter::new(complete::session))]
    session: Option<SessionId>,
    /// Only changes that this command made, such as `c5`
    #[arg(long, value_name = "C")]
    command: Option<String>,
    /// Only list the queue
    #[arg(long)]
    list: bool,
    /// Also list each file of a command that changed many
    #[arg(long)]
    files: bool,
    /// Keep all changes in the queue, or all that were selected
    #[arg(long, conflicts_with = "list")]
    keep_all: bool,
    /// Undo all changes in the queue, or all that were selected
    #[arg(long, conflicts_with_all = ["list", "keep_all"])]
    undo_all: bool,
    /// With --undo-all: also text that appeared while a command ran, and may be yours
    #[arg(long, requires = "undo_all")]
    likely: bool,
    /// Only these files, and files below these directories
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// The user's answer about a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReviewAnswer {
    Keep,
    Undo,
    Later,
    Edit,
    KeepFile,
    Single,
    Quit,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let connection = context.open()?;
    let paths = options.paths.iter().map(|file| connection.path(file));
    let paths = paths.collect::<Outcome<Vec<ClientPath>>>()?;
    // All changes are kept or undone in one step, so all of them are listed, not only
    // the first page (LIM-2).
    let is_all = options.keep_all || options.undo_all;
    let ask = ReviewList {
        session: connection.meant(options.session.as_ref())?,
        paths: (!paths.is_empty()).then_some(paths),
        limit: is_all.then_some(u32::MAX),
        command: options.command.clone(),
    };
    let queue = connection.client.call(ask.clone())?;
    if options.keep_all {
        let hunks = changes(&queue).iter().map(QueuedChange::named).collect();
        return match connection.answer(ReviewKeep { hunks })? {
            Some(kept) => context.say(&format!("kept: {}", count(u64::from(kept.kept), "change"))),
            None => Ok(()),
        };
    }
    if options.undo_all {
        return undo_all(&connection, &ask, queue, options.likely);
    }
    if context.global.json {
        return connection.json(Reply::ReviewList(queue));
    }
    if changes(&queue).is_empty() {
        return context.say("nothing is left to review");
    }
    if options.list || !io::stdin().is_terminal() {
        return list(&connection.client, &queue, options.files);
    }
    walk(&connection, &ask, options.files)
}

/// Undoes all changes of a queue. What may be the user's is asked about, and
/// stays without an answer (UNDO-7), unless `take_likely` is set.
fn undo_all(
    connection: &Connection<'_>,
    ask: &ReviewList,
    mut queue: ReviewHunks,
    take_likely: bool,
) -> Outcome {
    let Connection {
        context, client, ..
    } = connection;
    let all: Vec<&ReviewHunk> = queue.hunks.iter().collect();
    if !take_likely && likely::ask_about(client, &all, &queue.hunks)? {
        queue = client.call(ask.clone())?;
    }
    let all = changes(&queue);
    let stays = |change: &&QueuedChange| !take_likely && change.is_doubtful();
    let hunks = all.iter().filter(|change| !stays(change));
    let hunks = hunks.map(QueuedChange::named).collect();
    let left: Vec<QueuedChange> = all.iter().filter(stays).copied().collect();
    if !context.global.json {
        let mut around = Around::new(client);
        for entry in entries(&left, |_| false) {
            entry.show(&mut around)?;
        }
        if !left.is_empty() {
            let count = count(left.len() as u64, "change");
            context.say(&format!(
                "stays: {count} that may be yours; take it with --likely, or say whose it is: touchmark claim"
            ))?;
        }
    }
    context.doing(UNDOING);
    let undone = client.call(ReviewUndo::new(hunks))?;
    undone::tell(connection, Reply::Undo(undone), false)
}

/// A change in the queue.
#[derive(Clone, Copy)]
struct QueuedChange<'a> {
    id: &'a str,
    path: &'a RelPath,
    authors: &'a [Author],
    /// The command that made it; `None` if none did.
    command: Option<&'a str>,
    of: ChangeKind<'a>,
}

/// What a change in the queue changed.
#[derive(Clone, Copy)]
enum ChangeKind<'a> {
    /// Lines of a file.
    Lines(&'a ReviewHunk),
    /// A mode or a symlink.
    File(&'a ReviewFile),
}

impl<'a> From<&'a ReviewHunk> for QueuedChange<'a> {
    fn from(hunk: &'a ReviewHunk) -> Self {
        Self {
            id: &hunk.id,
            path: &hunk.path,
            authors: &hunk.authors,
            command: hunk.command.as_deref(),
            of: ChangeKind::Lines(hunk),
        }
    }
}

impl<'a> From<&'a ReviewFile> for QueuedChange<'a> {
    fn from(file: &'a ReviewFile) -> Self {
        Self {
            id: &file.id,
            path: &file.path,
            authors: &file.authors,
            command: file.command.as_deref(),
            of: ChangeKind::File(file),
        }
    }
}

impl QueuedChange<'_> {
    fn named(&self) -> ReviewNamed {
        ReviewNamed::new(self.path, self.id)
    }

    /// Returns whether text of it may be the user's (UNDO-7).
    fn is_doubtful(&self) -> bool {
        matches!(self.of, ChangeKind::Lines(hunk) if likely::is_doubtful(hunk))
    }

    fn show(&self, around: &mut Around<'_>) -> Outcome {
        match self.of {
            ChangeKind::Lines(hunk) => show(hunk, around),
            ChangeKind::File(file) => show_file(file),
        }
    }
}

/// What one answer of the user is about: a single change, or all changes of a
/// command that changed many files.
struct QueueEntry<'a> {
    changes: Vec<QueuedChange<'a>>,
    /// The command; `None` for a single change.
    command: Option<&'a str>,
}

impl QueueEntry<'_> {
    /// Returns the name by which the entry is remembered while the queue is
    /// gone through.
    fn id(&self) -> &str {
        match (self.command, self.changes.first()) {
            (Some(command), _) => command,
            (None, Some(change)) => change.id,
            (None, None) => "",
        }
    }

    /// Returns whether some of it may be the user's (UNDO-7).
    fn is_likely(&self) -> bool {
        self.lines().any(|hunk| hunk.likely == Some(true))
    }

    /// Returns the changes that have lines.
    fn lines(&self) -> impl Iterator<Item = &ReviewHunk> {
        self.changes.iter().filter_map(|change| match change.of {
            ChangeKind::Lines(hunk) => Some(hunk),
            ChangeKind::File(_) => None,
        })
    }

    fn named(&self) -> Vec<ReviewNamed> {
        self.changes.iter().map(QueuedChange::named).collect()
    }

    fn show(&self, around: &mut Around<'_>) -> Outcome {
        let (Some(command), Some(first)) = (self.command, self.changes.first()) else {
            let mut changes = self.changes.iter();
            return changes.try_for_each(|change| change.show(around));
        };
        let paths: BTreeSet<&RelPath> = self.changes.iter().map(|change| change.path).collect();
        let (mut added, mut removed) = (0, 0);
        for hunk in self.lines() {
            added += hunk.after.lines().count();
            removed += hunk.before.lines().count();
        }
        let files = count(paths.len() as u64, "file");
        let head = format!("{}: {files}", escaped(command, MAX_NAME));
        let by = likely::doubted(authors(first.authors), self.is_likely());
        head_line(&head, &by)?;
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
}

/// Puts the changes of each command that changed many files into one entry,
/// unless `single` says otherwise.
fn entries<'a>(all: &[QueuedChange<'a>], single: impl Fn(&str) -> bool) -> Vec<QueueEntry<'a>> {
    let mut files: HashMap<&str, BTreeSet<&RelPath>> = HashMap::new();
    for change in all {
        if let Some(command) = change.command {
            files.entry(command).or_default().insert(change.path);
        }
    }
    let mut entries: Vec<QueueEntry<'a>> = Vec::new();
    for change in all {
        let command = change.command.filter(|command| {
            let many = files.get(command).is_some_and(|files| files.len() >= MANY);
            many && !single(command)
        });
        let known = entries.iter_mut().find(|entry| entry.command == command);
        match known.filter(|_| command.is_some()) {
            Some(entry) => entry.changes.push(*change),
            None => entries.push(QueueEntry {
                changes: vec![*change],
                command,
            }),
        }
    }
    entries
}

/// Returns all changes of a queue.
fn changes(queue: &ReviewHunks) -> Vec<QueuedChange<'_>> {
    let lines = queue.hunks.iter().map(QueuedChange::from);
    let files = queue.files.iter().flatten().map(QueuedChange::from);
    lines.chain(files).collect()
}

fn list(client: &Client, queue: &ReviewHunks, files: bool) -> Outcome {
    let mut around = Around::new(client);
    for entry in entries(&changes(queue), |_| files) {
        entry.show(&mut around)?;
    }
    if queue.more == Some(true) {
        output::line("and more")?;
    }
    Ok(())
}

/// Asks about one entry after another. The queue is requested again after each
/// answer that changes a file, so that the current content is shown.
fn walk(connection: &Connection<'_>, ask: &ReviewList, files: bool) -> Outcome {
    let client = &connection.client;
    let mut later: HashSet<String> = HashSet::new();
    // The commands whose files are shown one by one.
    let mut single: HashSet<String> = HashSet::new();
    let (mut kept, mut undone) = (0, 0);
    loop {
        let queue = client.call(ask.clone())?;
        let all = changes(&queue);
        let entries = entries(&all, |command| files || single.contains(command));
        let left = entries.iter().filter(|entry| !later.contains(entry.id()));
        let Some(entry) = left.clone().next() else {
            break;
        };
        entry.show(&mut Around::new(client))?;
        match answer(left.count())? {
            ReviewAnswer::Keep => kept += keep(client, entry.named())?,
            ReviewAnswer::KeepFile => {
                let first = entry.changes.first().map(|change| change.path);
                let same = all.iter().filter(|other| Some(other.path) == first);
                kept += keep(client, same.map(QueuedChange::named).collect())?;
            }
            ReviewAnswer::Undo => {
                let mut hunks = entry.named();
                if entry.changes.iter().any(QueuedChange::is_doubtful) {
                    let asked: Vec<&ReviewHunk> = entry.lines().collect();
                    likely::ask_about(client, &asked, &queue.hunks)?;
                    // What is the user's has left the queue; what is the
                    // command's is certain now.
                    let now = client.call(ask.clone())?;
                    let sure = changes(&now);
                    hunks.retain(|one| {
                        let mut sure = sure.iter().filter(|change| !change.is_doubtful());
                        sure.any(|change| change.named() == *one)
                    });
                }
                if hunks.is_empty() {
                    later.insert(entry.id().to_owned());
                    continue;
                }
                let count = hunks.len();
                connection.context.doing(UNDOING);
                match client.call(ReviewUndo::new(hunks)) {
                    Ok(done) if done.undo.is_some() => undone += count,
                    Ok(done) => {
                        let lines = undone::lines(&done.files, false, false, &View::here());
                        output::lines(&lines)?;
                        later.insert(entry.id().to_owned());
                    }
                    Err(error) => output::line(&format!("{error}; shown again as it is now"))?,
                }
            }
            ReviewAnswer::Later => drop(later.insert(entry.id().to_owned())),
            ReviewAnswer::Single => {
                single.extend(entry.command.map(str::to_owned));
            }
            ReviewAnswer::Edit => {
                if let Some(change) = entry.changes.first() {
                    edit(&connection.workspace.root, *change)?;
                }
            }
            ReviewAnswer::Quit => break,
        }
    }
    connection.context.say(&format!(
        "kept {kept}, undid {undone}, left {} for later",
        later.len()
    ))
}

fn keep(client: &Client, hunks: Vec<ReviewNamed>) -> Outcome<u32> {
    match client.call(ReviewKeep { hunks }) {
        Ok(kept) => Ok(kept.kept),
        Err(error) => {
            output::line(&format!("{error}; shown again as it is now"))?;
            Ok(0)
        }
    }
}

/// Prints the change as a diff, with its author and the lines around it.
fn show(hunk: &ReviewHunk, around: &mut Around<'_>) -> Outcome {
    let what = match (hunk.created, hunk.deleted) {
        (Some(true), _) => "new file".to_owned(),
        (_, Some(true)) => "deleted".to_owned(),
        _ => text::lines(hunk.lines),
    };
    let by = likely::doubted(authors(&hunk.authors), hunk.likely == Some(true));
    head(&hunk.path, &what, &by)?;
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
fn show_file(file: &ReviewFile) -> Outcome {
    let what = match (file.mode_before, file.mode) {
        (None, Some(mode)) => format!("new {}", kind(mode)),
        (Some(mode), None) => format!("deleted {}", kind(mode)),
        (Some(before), Some(now)) if before.is_link() && now.is_link() => "symlink".to_owned(),
        (Some(before), Some(now)) => {
            mode_change(before, now).unwrap_or_else(|| "content".to_owned())
        }
        (None, None) => "content".to_owned(),
    };
    head(&file.path, &what, &authors(&file.authors))?;
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
fn head(file: &RelPath, what: &str, by: &str) -> Outcome {
    let room = terminal::room();
    let file = cut(&path(file), room.saturating_sub(width(what) + 2));
    head_line(&format!("{file}: {what}"), by)
}

fn head_line(head: &str, by: &str) -> Outcome {
    let by = format!("by {by}");
    let fits = width(head) + 2 + width(&by) <= terminal::room();
    output::line(&format!(
        "{}{}{}",
        paint(style::BOLD, head),
        if fits { "  " } else { "\n  " },
        paint(style::DIM, &by)
    ))?;
    Ok(())
}

fn answer(left: usize) -> Outcome<ReviewAnswer> {
    let question = format!("({left} left) keep, undo, later, edit, file, quit [k,u,l,e,f,q,?]");
    Ok(confirm::choice(&question, ANSWERS, HELP)?.unwrap_or(ReviewAnswer::Quit))
}

/// Opens the user's editor at the change.
fn edit(root: &std::path::Path, change: QueuedChange) -> Outcome {
    let line = match change.of {
        ChangeKind::Lines(hunk) => hunk.lines.start.max(1),
        ChangeKind::File(_) => 1,
    };
    let name = touchmark_client::proto::native::name(change.path.as_bytes()).into_owned();
    editor::open(&root.join(name), line)
}
