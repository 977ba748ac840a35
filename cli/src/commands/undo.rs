//! `touchmark undo`, `touchmark redo`: undoes an author's changes, and restores them.

mod check;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use touchmark_client::proto::activity::ActivityKind;
use touchmark_client::proto::undo::{Conflicts, Redo, Undo, UndoList, Undone};
use touchmark_client::proto::{Reply, SessionId};

use crate::checkpoints;
use crate::complete;
use crate::confirm;
use crate::context::{self, Connection, Context};
use crate::likely;
use crate::output::{Failure, Outcome};
use crate::table::View;
use crate::text::{authors, count};
use crate::timeline::{self, LogRow};
use crate::undone;
use crate::versions::{VersionName, files, version};

/// The verb of the question before an undo.
const UNDO: &str = "Undo";

/// What is done after the question.
pub(crate) const UNDOING: &str = "undoing";

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
    #[command(flatten)]
    how: How,
    /// Write also where the present content cannot be kept, and so cannot be brought back
    #[arg(long)]
    no_redo: bool,
    /// What to do with changes whose lines another author has changed since
    #[arg(long, value_enum, default_value_t = Conflict::Keep)]
    conflicts: Conflict,
    /// List the undos that can be reversed
    #[arg(long, exclusive = true)]
    list: bool,
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
/// `touchmark checkpoints` lists the prompts. The conversation is not reverted: the agents receive a
/// report of what was undone. `touchmark redo` reverses it.
#[derive(Debug, Args)]
pub(crate) struct RewindOptions {
    /// The prompt, as `touchmark checkpoints` names it (`k2`), or a checkpoint's label
    #[arg(value_name = "PROMPT", add = ArgValueCompleter::new(complete::checkpoint))]
    prompt: String,
    /// Only changes of this session [default: all agents]
    #[arg(long, short, value_name = "S", value_parser = context::session, add = ArgValueCompleter::new(complete::session))]
    session: Option<SessionId>,
    #[command(flatten)]
    how: How,
}

/// How an undo is carried out.
#[derive(Debug, Args)]
struct How {
    /// Only show which lines would be undone
    #[arg(long)]
    dry_run: bool,
    /// Even if a session is in the middle of a turn
    #[arg(long)]
    now: bool,
    /// Also text that appeared while a command ran, and may be yours
    #[arg(long)]
    likely: bool,
    /// Also lines that another author has put back, or has removed again
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
    let connection = context.open()?;
    let client = &connection.client;
    if options.list {
        return list(&connection);
    }
    let mut ask = Undo {
        prompt: options.prompt,
        command: options.command,
        edit: options.edit,
        last: options.last,
        no_redo: options.no_redo,
        conflicts: Some(match options.conflicts {
            Conflict::Keep => Conflicts::Keep,
            Conflict::Markers => Conflicts::Markers,
        }),
        ..Undo::default()
    };
    let what = options.what.as_deref();
    match what.map(|what| (what, what.rsplit_once('@'))) {
        Some((_, Some((file, at)))) if !file.is_empty() => {
            ask.path = Some(connection.path(file.as_ref())?);
            ask.at = Some(match version(at) {
                Ok(said @ VersionName::Label(_)) => VersionName::resolved(Some(&said), client)?
                    .map_or_else(|| at.to_owned(), |at| at.to_string()),
                _ => at.to_owned(),
            });
        }
        Some((name, _)) => {
            let name = SessionId::new(name).map_err(|error| Failure::Usage(error.to_string()))?;
            let session = context::meant(client, &name)
                .map_err(|failure| of_a_file(name.as_str(), failure))?;
            ask.prompt = match ask.prompt.take() {
                Some(prompt) if prompt != "last" => {
                    Some(checkpoints::meant(client, Some(&session), prompt)?)
                }
                prompt => prompt,
            };
            ask.session = Some(session);
        }
        None => {}
    }
    carry_out(&connection, ask, &options.how)
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
    let connection = context.open()?;
    let session = connection.meant(options.session.as_ref())?;
    let prompt = options.prompt.clone();
    let since = checkpoints::meant(&connection.client, session.as_ref(), prompt)?;
    let ask = Undo {
        session,
        since: Some(since),
        ..Undo::default()
    };
    carry_out(&connection, ask, &options.how)
}

/// Undoes what a request selects, after a question unless `yes` is set.
fn carry_out(connection: &Connection<'_>, mut ask: Undo, how: &How) -> Outcome {
    let Connection {
        context,
        workspace,
        client,
    } = connection;
    ask = ask.now(how.now).likely(how.likely).decided(how.decided);
    ask.paths = files(connection, &how.paths)?;
    let plan = ask.clone().dry_run(true);
    if how.dry_run {
        let planned = client.call(plan.clone())?;
        undone::tell(connection, Reply::Undo(planned), true)?;
        if let Some(command) = &how.check {
            // Nothing is written, so it need not wait for the end of a turn.
            check::passes(connection, &plan.now(true), command)?;
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
    context.doing(UNDOING);
    let undone = match &how.check {
        None => client.call(ask)?,
        Some(command) => {
            ask.plan = Some(check::passes(connection, &ask, command)?);
            context.doing(UNDOING);
            // The daemon may have been restarted since.
            context.connect(workspace)?.call(ask)?
        }
    };
    undone::tell(connection, Reply::Undo(undone), false)
}

pub(crate) fn redo(context: &Context, options: &RedoOptions) -> Outcome {
    let connection = context.open()?;
    let client = &connection.client;
    let ask = Redo {
        undo: options.undo.clone(),
        ..Redo::new().no_redo(options.no_redo)
    };
    let plan = ask.clone().dry_run(true);
    if options.dry_run {
        let planned = client.call(plan)?;
        return undone::tell(&connection, Reply::Redo(planned), true);
    }
    if !options.yes && !is_agreed(context, &client.call(plan)?, "Put back")? {
        return Err(Failure::No("nothing was put back".into()));
    }
    context.doing("putting back");
    let undone = client.call(ask)?;
    undone::tell(&connection, Reply::Redo(undone), false)
}

fn is_agreed(context: &Context, planned: &Undone, verb: &str) -> Outcome<bool> {
    if !context.global.json {
        undone::show(planned, true, verb != UNDO, None)?;
    }
    let by = authors(&planned.authors);
    let files = count(planned.files.len() as u64, "file");
    let question = format!("{verb} the changes by {by} in {files}?");
    confirm::agreed(
        &question,
        "use --yes, or --dry-run to see what would be done",
    )
}

fn list(connection: &Connection<'_>) -> Outcome {
    let (context, client) = (connection.context, &connection.client);
    if context.global.json {
        return connection.json(Reply::UndoList(client.call(UndoList {})?));
    }
    let kinds = [ActivityKind::Undo, ActivityKind::Redo];
    let undos = timeline::actions(client, &kinds, None)?.into_iter();
    let rows: Vec<LogRow> = undos.map(|row| LogRow::Action(row.into())).collect();
    let lines = timeline::lines(&rows, false, &View::here());
    context.list(&lines, "nothing was undone")
}
