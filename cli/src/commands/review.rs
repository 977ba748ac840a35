//! `touchmark review`: goes through agents' changes one by one, as `git add -p`
//! does.

mod comments;
mod filter;
mod queue;
mod show;

use std::collections::HashSet;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use touchmark_client::blocking::Client;
use touchmark_client::proto::review::{
    ReviewHunk, ReviewHunks, ReviewKeep, ReviewList, ReviewNamed, ReviewUndo, ReviewView,
};
use touchmark_client::proto::{ClientPath, Reply, SessionId};

use crate::around::Around;
use crate::commands::undo::UNDOING;
use crate::context::{self, Connection, Context};
use crate::likely;
use crate::output::{self, Failure, Outcome};
use crate::table::View;
use crate::text::count;
use crate::undone;
use crate::{complete, confirm, editor};
use filter::Filter;
use queue::{ChangeKind, QueueEntry, QueuedChange, changes, entries};

/// The letters and words of the answers.
const ANSWERS: &[(&str, &str, ReviewAnswer)] = &[
    ("k", "keep", ReviewAnswer::Keep),
    ("u", "undo", ReviewAnswer::Undo),
    ("l", "later", ReviewAnswer::Later),
    ("e", "edit", ReviewAnswer::Edit),
    ("f", "file", ReviewAnswer::KeepFile),
    ("v", "viewed", ReviewAnswer::Viewed),
    ("c", "comment", ReviewAnswer::Comment),
    ("/", "search", ReviewAnswer::Search),
    ("s", "single", ReviewAnswer::Single),
    ("q", "quit", ReviewAnswer::Quit),
];

const HELP: &str = "k  keep the change; it is not shown again
u  undo the change; `touchmark redo` reverses that
l  later: the change stays in the queue
e  edit the file in $EDITOR, then continue
f  keep the rest of this file
v  viewed: the change stays in the queue, and is shown again once it changes
   (with --viewed: no longer viewed)
c  write a comment, which the agent receives with its next prompt
/  show only changes with some words in their path, lines, session or command
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
    /// Only changes with these words in their path, their lines, their session or their command
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only changes that are marked as viewed
    #[arg(long, conflicts_with = "unviewed")]
    viewed: bool,
    /// Only changes that are not marked as viewed
    #[arg(long)]
    unviewed: bool,
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
    /// Mark all changes in the queue as viewed, or all that were selected
    #[arg(long, conflicts_with_all = ["list", "keep_all", "undo_all"])]
    mark_viewed: bool,
    /// Write a comment on the change that was selected; the agent receives it with its next prompt. An empty text withdraws it
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["list", "keep_all", "undo_all", "mark_viewed"])]
    comment: Option<String>,
    /// List your comments, and who has received them
    #[arg(long, conflicts_with_all = ["list", "keep_all", "undo_all", "mark_viewed", "comment"])]
    comments: bool,
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
    Viewed,
    Comment,
    Search,
    Single,
    Quit,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let connection = context.open()?;
    let paths = options.paths.iter().map(|file| connection.path(file));
    let paths = paths.collect::<Outcome<Vec<ClientPath>>>()?;
    // All changes are kept or undone in one step, so all of them are listed, not only
    // the first page (LIM-2).
    let is_all = options.keep_all || options.undo_all || options.mark_viewed;
    let viewed = match (options.viewed, options.unviewed) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let filter = Filter::new(options.search.as_deref().unwrap_or_default(), viewed);
    let ask = ReviewList {
        session: connection.meant(options.session.as_ref())?,
        paths: (!paths.is_empty()).then_some(paths),
        limit: is_all.then_some(u32::MAX),
        command: options.command.clone(),
    };
    let queue = filter.list(&connection.client, &ask)?;
    if let Some(text) = &options.comment {
        let is_all = filter.is_empty() && ask == ReviewList::default();
        return comment(&connection.client, &queue, text, is_all);
    }
    if options.mark_viewed {
        let hunks = changes(&queue).iter().map(QueuedChange::named).collect();
        let ask = ReviewView::new(hunks, true);
        return match connection.answer(ask)? {
            Some(viewed) => {
                let marked = count(u64::from(viewed.changed), "change");
                context.say(&format!("marked as viewed: {marked}"))
            }
            None => Ok(()),
        };
    }
    if options.keep_all {
        let hunks = changes(&queue).iter().map(QueuedChange::named).collect();
        return match connection.answer(ReviewKeep { hunks })? {
            Some(kept) => context.say(&format!("kept: {}", count(u64::from(kept.kept), "change"))),
            None => Ok(()),
        };
    }
    if options.undo_all {
        return undo_all(&connection, &filter, &ask, queue, options.likely);
    }
    if context.global.json {
        return connection.json(Reply::ReviewList(queue));
    }
    if options.comments {
        return comments::list(&queue);
    }
    if changes(&queue).is_empty() {
        return context.say(match filter.is_empty() {
            true => "nothing is left to review",
            false => "no change in the queue is one of these",
        });
    }
    if options.list || !io::stdin().is_terminal() {
        return list(&connection.client, &queue, options.files);
    }
    walk(&connection, filter, &ask, options.files)
}

/// Writes a comment on the only change of a queue. An empty text withdraws the
/// comments on the selected changes; `is_all`: nothing was selected.
fn comment(client: &Client, queue: &ReviewHunks, text: &str, is_all: bool) -> Outcome {
    if text.trim().is_empty() {
        return comments::withdraw(client, queue, is_all);
    }
    match changes(queue).as_slice() {
        [change] => comments::write(client, change, text),
        [] => Err(Failure::Usage("no change in the queue is selected".into())),
        many => Err(Failure::Usage(format!(
            "{} are selected, and a comment is on one; select it with -- PATH and --search TEXT",
            count(many.len() as u64, "change")
        ))),
    }
}

/// Undoes all changes of a queue. What may be the user's is asked about, and
/// stays without an answer (UNDO-7), unless `take_likely` is set.
fn undo_all(
    connection: &Connection<'_>,
    filter: &Filter,
    ask: &ReviewList,
    mut queue: ReviewHunks,
    take_likely: bool,
) -> Outcome {
    let Connection {
        context, client, ..
    } = connection;
    let all: Vec<&ReviewHunk> = queue.hunks.iter().collect();
    if !take_likely && likely::ask_about(client, &all, &queue.hunks)? {
        queue = filter.list(client, ask)?;
    }
    let all = changes(&queue);
    let stays = |change: &&QueuedChange| !take_likely && change.is_doubtful();
    let hunks = all.iter().filter(|change| !stays(change));
    let hunks = hunks.map(QueuedChange::named).collect();
    let left: Vec<QueuedChange> = all.iter().filter(stays).copied().collect();
    if !context.global.json {
        let mut around = Around::new(client);
        for entry in entries(&left, |_| false) {
            show::entry(&entry, &[], &mut around)?;
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

fn list(client: &Client, queue: &ReviewHunks, files: bool) -> Outcome {
    let mut around = Around::new(client);
    let all = changes(queue);
    let comments = queue.comments.as_deref().unwrap_or_default();
    for entry in entries(&all, |_| files) {
        show::entry(&entry, comments, &mut around)?;
    }
    if queue.more == Some(true) {
        output::line("and more")?;
    }
    match all.iter().filter(|change| change.is_viewed).count() {
        0 => Ok(()),
        viewed => output::line(&format!("{viewed} of {} viewed", all.len())),
    }
}

/// Asks about one entry after another, without those that were viewed unless the
/// filter says so. The queue is requested again after each
/// answer that changes a file, so that the current content is shown.
fn walk(connection: &Connection<'_>, mut filter: Filter, ask: &ReviewList, files: bool) -> Outcome {
    let client = &connection.client;
    filter.viewed.get_or_insert(false);
    let mut later: HashSet<String> = HashSet::new();
    // The commands whose files are shown one by one.
    let mut single: HashSet<String> = HashSet::new();
    let (mut kept, mut undone, mut viewed) = (0, 0, 0);
    loop {
        let queue = filter.list(client, ask)?;
        let all = changes(&queue);
        let entries = entries(&all, |command| files || single.contains(command));
        let left = entries.iter().filter(|entry| !later.contains(entry.id()));
        let Some(entry) = left.clone().next() else {
            break;
        };
        let comments = queue.comments.as_deref().unwrap_or_default();
        show::entry(entry, comments, &mut Around::new(client))?;
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
                    let now = filter.list(client, ask)?;
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
            ReviewAnswer::Viewed => {
                // Where viewed changes are gone through, the mark is removed.
                let is_viewed = filter.viewed != Some(true);
                let marked = view(client, entry, is_viewed)?;
                viewed += if is_viewed { marked } else { 0 };
            }
            ReviewAnswer::Comment => write_comment(client, entry)?,
            ReviewAnswer::Search => {
                let words = confirm::text("search (nothing: all changes):")?;
                filter.search(&words.unwrap_or_default());
                let found = filter.list(client, ask)?;
                if changes(&found).is_empty() {
                    output::line("no change has these words")?;
                    filter.search("");
                }
            }
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
    let marked = match viewed {
        0 => String::new(),
        viewed => format!(", viewed {viewed}"),
    };
    connection.context.say(&format!(
        "kept {kept}, undid {undone}, left {} for later{marked}",
        later.len()
    ))?;
    if filter.viewed == Some(false) {
        filter = Filter::new("", Some(true));
        let viewed = changes(&filter.list(client, ask)?).len();
        if viewed > 0 {
            let changes = count(viewed as u64, "viewed change");
            let text = format!("{changes} in the queue: touchmark review --viewed");
            connection.context.say(&text)?;
        }
    }
    Ok(())
}

/// Marks the changes of an entry as viewed, or removes the marks. Returns how
/// many.
fn view(client: &Client, entry: &QueueEntry<'_>, is_viewed: bool) -> Outcome<u32> {
    match client.call(ReviewView::new(entry.named(), is_viewed)) {
        Ok(viewed) => Ok(viewed.changed),
        Err(error) => {
            output::line(&format!("{error}; shown again as it is now"))?;
            Ok(0)
        }
    }
}

/// Asks for a comment on an entry, and writes it.
fn write_comment(client: &Client, entry: &QueueEntry<'_>) -> Outcome {
    let [change] = entry.changes.as_slice() else {
        return output::line("a comment is on one change: `s` shows them one by one");
    };
    let text = confirm::text("comment (nothing: withdraw it):")?;
    match comments::write(client, change, &text.unwrap_or_default()) {
        Err(Failure::Client(error)) => output::line(&error.to_string()),
        done => done,
    }
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

fn answer(left: usize) -> Outcome<ReviewAnswer> {
    let question =
        format!("({left} left) keep, undo, later, viewed, comment, quit [k,u,l,v,c,/,e,f,q,?]");
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
