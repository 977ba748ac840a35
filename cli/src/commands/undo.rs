//! `touchmark undo`, `touchmark redo`: undoes an author's changes, and restores them.

mod check;
pub(crate) mod likely;

use std::path::{Path, PathBuf};

use anstyle::Style;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use touchmark_client::Workspace;
use touchmark_client::blocking::Client;
use touchmark_client::proto::activity::ActivityKind;
use touchmark_client::proto::undo::{
    Conflicts, LeftCause, Redo, Undo, UndoConflict, UndoElsewhere, UndoLeft, UndoList, UndoOutcome,
    Undone, UndoneFile, UndoneLines,
};
use touchmark_client::proto::{LineRange, Reply, SessionId};

use crate::commands::call::result_json;
use crate::commands::checkpoint;
use crate::commands::log;
use crate::complete;
use crate::confirm;
use crate::context::{self, Context};
use crate::output::{self, Failure, Outcome};
use crate::style::{self, paint};
use crate::table::{Step, Table, View};
use crate::text::{MAX_NAME, author, authors, count, cut, escaped, folded, path, wrapped};
use crate::timeline::{self, Row};
use crate::versions::{Said, files, version};

/// What was done, path, remarks.
const FILES: Table = Table::new(&[Step::Middle(1, 16)]).with_remarks();

/// The verb of the question before an undo.
const UNDO: &str = "Undo";

/// The maximum number of lines of a conflict that are shown.
const SHOWN: usize = 4;

/// How many digits of a commit's id are shown.
const COMMIT: usize = 7;

/// The maximum number of lines of each side of a planned change that are shown.
const PLANNED: usize = 20;

/// Undo one author's changes; all other lines stay.
///
/// Lines that the author wrote are removed, and lines that the author removed are restored. Where
/// another author has changed the same lines since, the change stays and is listed as a conflict.
/// What appeared while a command of the author's ran may be yours: you are asked, and with --yes it
/// stays. The exit code is 1 if nothing was undone. Every undo can be reversed with `touchmark redo`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The author: a session's id or label; or a single version, as PATH@CLOCK
    #[arg(value_name = "SESSION | PATH@V", add = ArgValueCompleter::new(complete::session_or_version))]
    what: Option<String>,
    /// Only the changes from this prompt to the next one: `last`, a checkpoint's id or label, or the agent's own id of the prompt
    #[arg(long, value_name = "P", requires = "what")]
    prompt: Option<String>,
    /// Only changes by this command, such as `c5`
    #[arg(long, value_name = "C")]
    command: Option<String>,
    /// Only changes by this edit, such as `e7`
    #[arg(long, value_name = "E")]
    edit: Option<String>,
    /// Only changes by the newest edit or command
    #[arg(long)]
    last: bool,
    /// Only show what would be undone
    #[arg(long)]
    dry_run: bool,
    /// Even if the session is in the middle of a turn
    #[arg(long)]
    now: bool,
    /// Write also where the present content cannot be kept, and so cannot be brought back
    #[arg(long)]
    no_redo: bool,
    /// What to do with changes whose lines another author has changed since
    #[arg(long, value_enum, default_value_t = Conflict::Keep)]
    conflicts: Conflict,
    /// Also text that appeared while a command ran, and may be yours
    #[arg(long)]
    likely: bool,
    /// Also lines that somebody else has put back, or has taken away again
    #[arg(long)]
    decided: bool,
    /// Run this command in a copy of the workspace first, with the result; undo only if it succeeds
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// List the undos that can be reversed
    #[arg(long, exclusive = true)]
    list: bool,
    /// Only these files, and files below these directories
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// What to do with conflicts.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Conflict {
    /// Leave them unchanged
    Keep,
    /// Put them between markers, together with the previous lines
    Markers,
}

/// Undo what agents did since a prompt; lines of other people stay.
///
/// `touchmark checkpoints` lists the prompts. The conversation is not taken back: the agents are
/// told what was undone. `touchmark redo` reverses it.
#[derive(Debug, Args)]
pub(crate) struct RewindOptions {
    /// The prompt, as `touchmark checkpoints` names it (`k2`), or a checkpoint's label
    #[arg(value_name = "PROMPT", add = ArgValueCompleter::new(complete::checkpoint))]
    prompt: String,
    /// Only changes of this session [default: all agents]
    #[arg(long, short, value_name = "S", value_parser = context::session, add = ArgValueCompleter::new(complete::session))]
    session: Option<SessionId>,
    /// Only show which lines would be undone
    #[arg(long)]
    dry_run: bool,
    /// Even if a session is in the middle of a turn
    #[arg(long)]
    now: bool,
    /// Also text that appeared while a command ran, and may be yours
    #[arg(long)]
    likely: bool,
    /// Also lines that somebody else has put back, or has taken away again
    #[arg(long)]
    decided: bool,
    /// Run this command in a copy of the workspace first, with the result; undo only if it succeeds
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Only these files, and files below these directories
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Reverse an undo.
#[derive(Debug, Args)]
pub(crate) struct RedoOptions {
    /// The undo, as `touchmark undo --list` names it [default: the newest]
    #[arg(add = ArgValueCompleter::new(complete::undo))]
    undo: Option<String>,
    /// Only show what would be restored
    #[arg(long)]
    dry_run: bool,
    /// Write also where the present content cannot be kept, and so cannot be brought back
    #[arg(long)]
    no_redo: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    if options.list {
        return list(context, &client);
    }
    let mut ask = Undo {
        prompt: options.prompt,
        command: options.command,
        edit: options.edit,
        last: options.last,
        now: options.now,
        likely: options.likely,
        decided: options.decided,
        no_redo: options.no_redo,
        conflicts: Some(match options.conflicts {
            Conflict::Keep => Conflicts::Keep,
            Conflict::Markers => Conflicts::Markers,
        }),
        ..Undo::default()
    };
    match options
        .what
        .as_deref()
        .map(|what| (what, what.rsplit_once('@')))
    {
        Some((_, Some((file, at)))) if !file.is_empty() => {
            ask.path = Some(context.path(&workspace, file.as_ref())?);
            ask.at = Some(match version(at) {
                Ok(said @ Said::Label(_)) => Said::resolved(Some(&said), &client)?
                    .map_or_else(|| at.to_owned(), |at| at.to_string()),
                _ => at.to_owned(),
            });
        }
        Some((name, _)) => {
            let name = SessionId::new(name).map_err(|error| Failure::Usage(error.to_string()))?;
            let session = context::meant(&client, &name)
                .map_err(|failure| of_a_file(name.as_str(), failure))?;
            ask.prompt = match ask.prompt.take() {
                Some(prompt) if prompt != "last" => {
                    Some(checkpoint::meant(&client, &session, prompt)?)
                }
                prompt => prompt,
            };
            ask.session = Some(session);
        }
        None => {}
    }
    ask.paths = files(context, &workspace, &options.paths)?;
    carry_out(
        context,
        &workspace,
        &client,
        ask,
        &How {
            dry_run: options.dry_run,
            check: options.check.as_deref(),
            yes: options.yes,
        },
    )
}

/// Returns the failure of a name that is no session's. Where it is a file's, it
/// says how to name a file.
fn of_a_file(name: &str, failure: Failure) -> Failure {
    if !matches!(failure, Failure::No(_)) || !Path::new(name).exists() {
        return failure;
    }
    let name = crate::text::escaped(name, 60);
    Failure::Usage(format!(
        "whose changes? Say `touchmark undo SESSION -- {name}`"
    ))
}

pub(crate) fn rewind(context: &Context, options: &RewindOptions) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let session = match &options.session {
        Some(said) => Some(context::meant(&client, said)?),
        None => None,
    };
    let prompt = options.prompt.clone();
    let since = match &session {
        Some(session) => checkpoint::meant(&client, session, prompt)?,
        None => checkpoint::meant_of_any(&client, prompt)?,
    };
    let ask = Undo {
        session,
        since: Some(since),
        now: options.now,
        likely: options.likely,
        decided: options.decided,
        paths: files(context, &workspace, &options.paths)?,
        ..Undo::default()
    };
    carry_out(
        context,
        &workspace,
        &client,
        ask,
        &How {
            dry_run: options.dry_run,
            check: options.check.as_deref(),
            yes: options.yes,
        },
    )
}

/// How an undo is carried out.
struct How<'a> {
    /// Only shows what would be done.
    dry_run: bool,
    /// The command that has to succeed with the result; `None` for none.
    check: Option<&'a str>,
    /// Without a question.
    yes: bool,
}

/// Undoes what a request selects, after a question unless `yes` is set.
fn carry_out(
    context: &Context,
    workspace: &Workspace,
    client: &Client,
    mut ask: Undo,
    how: &How<'_>,
) -> Outcome {
    let plan = Undo {
        dry_run: true,
        ..ask.clone()
    };
    if how.dry_run {
        let planned = client.call(plan.clone())?;
        tell(context, &workspace.root, Reply::Undo(planned), true)?;
        if let Some(command) = how.check {
            // Nothing is written, so it need not wait for the end of a turn.
            let plan = Undo { now: true, ..plan };
            check::passes(context, workspace, client, &plan, command)?;
        }
        return Ok(());
    }
    if !how.yes {
        let mut planned = client.call(plan.clone())?;
        if likely::ask(client, &planned)? {
            planned = client.call(plan)?;
        }
        if !is_agreed(context, &planned, UNDO)? {
            return Err(Failure::No("nothing was undone".into()));
        }
    }
    let undone = match how.check {
        None => client.call(ask)?,
        Some(command) => {
            ask.plan = Some(check::passes(context, workspace, client, &ask, command)?);
            // The daemon may have been restarted since.
            context.connect(workspace)?.call(ask)?
        }
    };
    tell(context, &workspace.root, Reply::Undo(undone), false)
}

pub(crate) fn redo(context: &Context, options: &RedoOptions) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let ask = Redo {
        undo: options.undo.clone(),
        dry_run: false,
        no_redo: options.no_redo,
    };
    let plan = Redo {
        dry_run: true,
        ..ask.clone()
    };
    if options.dry_run {
        let planned = client.call(plan)?;
        return tell(context, &workspace.root, Reply::Redo(planned), true);
    }
    if !options.yes && !is_agreed(context, &client.call(plan)?, "Put back")? {
        return Err(Failure::No("nothing was put back".into()));
    }
    let undone = client.call(ask)?;
    tell(context, &workspace.root, Reply::Redo(undone), false)
}

fn is_agreed(context: &Context, planned: &Undone, verb: &str) -> Outcome<bool> {
    if !context.global.json {
        show(planned, true, verb != UNDO, false)?;
    }
    let by = authors(&planned.authors);
    let files = count(planned.files.len() as u64, "file");
    let question = format!("{verb} the changes by {by} in {files}?");
    confirm::agreed(
        &question,
        "use --yes, or --dry-run to see what would be done",
    )
}

/// Prints the result of an undo or a redo, or of a dry run of one.
pub(crate) fn tell(
    context: &Context,
    root: &std::path::Path,
    reply: Reply,
    planned: bool,
) -> Outcome {
    let is_redo = matches!(reply, Reply::Redo(_));
    let (Reply::Undo(undone) | Reply::Redo(undone)) = &reply else {
        return Ok(());
    };
    let is_nothing = undone.undo.is_none();
    if context.global.json {
        context.json(&result_json(reply, root))?;
    } else {
        show(undone, planned, is_redo, planned)?;
        match &undone.undo {
            Some(name) => context.say(&format!(
                "reverse it with: touchmark redo {}",
                escaped(name, MAX_NAME)
            ))?,
            None if planned => context.say("nothing was written")?,
            None if is_redo => context.say("nothing was put back")?,
            None => context.say("nothing was undone")?,
        }
        if likely::any(undone) {
            context
                .say("take what may be yours with --likely; or say whose it is: touchmark claim")?;
        }
        let mut left = undone
            .files
            .iter()
            .flat_map(|file| file.left.iter().flatten());
        if left.any(|left| left.cause == LeftCause::Decided) {
            context.say("take the lines that somebody else has decided about with --decided")?;
        }
    }
    match is_nothing && !planned {
        true => Err(Failure::Ended { code: 1 }),
        false => Ok(()),
    }
}

/// Prints a line for each file, and lines for each change that stays. With
/// `texts`, also the lines that would change.
fn show(undone: &Undone, planned: bool, is_redo: bool, texts: bool) -> Outcome {
    let lines = lines(&undone.files, planned, is_redo, &View::here());
    for (line, file) in lines.iter().zip(&undone.files) {
        output::line(line)?;
        for change in file.changes.iter().flatten().filter(|_| texts) {
            show_planned(change)?;
        }
        for conflict in file.conflicts.iter().flatten() {
            show_conflict(conflict)?;
        }
        for left in file.left.iter().flatten() {
            show_left(left, undone)?;
        }
        for place in file.elsewhere.iter().flatten() {
            output::line(&format!("    {}", stands(place)))?;
        }
    }
    match &undone.unsearched {
        Some(what) => output::line(&format!("where else lines stand: {}", escaped(what, 500))),
        None => Ok(()),
    }
}

/// Says where lines stand that a file does not have after an undo.
fn stands(place: &UndoElsewhere) -> String {
    let lines = count(u64::from(place.lines), "line");
    let verb = if place.lines == 1 { "stands" } else { "stand" };
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
    FILES.lines(rows.collect(), view.columns)
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

/// Prints the lines that an undo would change.
fn show_planned(change: &UndoneLines) -> Outcome {
    let columns = View::here().columns.unwrap_or(usize::MAX);
    output::line(&paint(style::DIM, &format!("    line {}", change.start)))?;
    for (sign, colour, text) in [
        ("-", style::WARN, &change.before),
        ("+", style::GOOD, &change.after),
    ] {
        let all = text.lines().count();
        for line in text.lines().take(PLANNED) {
            let line = format!("    {sign}{}", escaped(line, MAX_NAME));
            for part in folded(&line, columns, "      ") {
                output::line(&paint(colour, &part))?;
            }
        }
        if all > PLANNED {
            let more = format!("      and {} lines more", all - PLANNED);
            output::line(&paint(style::DIM, &more))?;
        }
    }
    Ok(())
}

fn show_conflict(conflict: &UndoConflict) -> Outcome {
    let place = place(Some(conflict.lines));
    output::line(&format!(
        "    {place}: stays, since {} changed it later",
        author(&conflict.by)
    ))?;
    let before: Vec<&str> = conflict.before.lines().collect();
    let columns = View::here().columns.unwrap_or(usize::MAX);
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
fn place(lines: Option<LineRange>) -> String {
    match lines {
        None => "a change".to_owned(),
        Some(lines) if lines.start >= lines.end => format!("line {}", lines.start),
        Some(lines) => format!("lines {}-{}", lines.start, lines.end),
    }
}

/// Prints a change that stays, with the cause and its first lines.
fn show_left(left: &UndoLeft, undone: &Undone) -> Outcome {
    let mut commands = undone.commands.iter().flatten();
    let command = commands.find(|row| Some(&row.command) == left.command.as_ref());
    let why = match (left.cause, command) {
        (LeftCause::Likely, Some(command)) => {
            format!(
                "may be yours, it appeared while {} ran",
                likely::name(command)
            )
        }
        _ => escaped(&left.why, 2000),
    };
    let columns = View::here().columns.unwrap_or(usize::MAX);
    let line = format!("{}: stays, {why}", place(left.lines));
    for line in wrapped(&line, columns.saturating_sub(4), "") {
        output::line(&format!("    {line}"))?;
    }
    for line in left.text.lines().take(SHOWN) {
        output::line(&cut(&format!("      {}", escaped(line, 500)), columns))?;
    }
    Ok(())
}

fn list(context: &Context, client: &Client) -> Outcome {
    if context.global.json {
        let undos = client.call(UndoList {})?;
        return context.json(&result_json(
            Reply::UndoList(undos),
            &context.workspace()?.root,
        ));
    }
    let kinds = [ActivityKind::Undo, ActivityKind::Redo];
    let undos = log::actions(client, &kinds, None)?.into_iter();
    let rows: Vec<Row> = undos.map(|row| Row::Action(row.into())).collect();
    if rows.is_empty() {
        return context.say("nothing was undone");
    }
    let lines = timeline::lines(&rows, false, &View::here());
    lines.iter().try_for_each(|line| output::line(line))
}
