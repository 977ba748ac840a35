//! `touchmark checkpoint`: moments of a session, and which files were changed
//! since.

use std::collections::BTreeSet;

use anstyle::Style;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use touchmark_client::blocking::Client;
use touchmark_client::proto::checkpoints::{
    CheckpointCreate, CheckpointDelete, CheckpointDetect, CheckpointDetected, CheckpointRow,
    CheckpointRows, EditedFile,
};
use touchmark_client::proto::history::FileLog;
use touchmark_client::proto::{At, LineCounts, RelPath, Reply, SessionId};

use crate::checkpoints::{checkpoints, meant};
use crate::complete;
use crate::context::{self, Context, pages};
use crate::output::{self, Outcome};
use crate::style;
use crate::table::{Cell, Step, Table, View};
use crate::text::{MAX_NAME, authors, called, count, cut, escaped, path};
use crate::versions::WHO;

/// Id, time, session, what it changed, and the prompt.
const LIST: Table =
    Table::new(&[Step::Middle(2, 8), Step::Middle(1, 8), Step::Out(3)]).with_remarks();

/// Time, path, whether the content differs, versions, authors.
const DETECTED: Table =
    Table::new(&[Step::Middle(1, 24), Step::Out(3), Step::Middle(1, 12)]).with_remarks();

/// Moments of a session, and which files were changed since.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The session [default: TOUCHMARK_SESSION]
    #[arg(long, short, global = true, value_name = "S", value_parser = context::session)]
    session: Option<SessionId>,
    /// What to do
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a checkpoint
    Create {
        /// A name for people
        label: Option<String>,
        /// The agent's id for the message that it belongs to
        #[arg(long, value_name = "ID")]
        message: Option<String>,
    },
    /// List the checkpoints, as `touchmark checkpoints` does
    List,
    /// Delete a checkpoint
    Delete {
        /// Its id, as `list` shows it, or its label
        checkpoint: String,
    },
    /// List the files that were changed since a checkpoint, by any author
    Detect {
        /// Its id, as `list` shows it, or its label
        checkpoint: String,
        /// Store the answer as the session's warning
        #[arg(long)]
        warn: bool,
    },
}

/// List prompts and other checkpoints, oldest first: what was asked, and what
/// the session changed until its next one.
#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// Only this session's [default: all sessions]
    #[arg(value_name = "SESSION", value_parser = context::session, add = ArgValueCompleter::new(complete::session))]
    session: Option<SessionId>,
}

pub(crate) fn list(context: &Context, options: &ListOptions) -> Outcome {
    checkpoints_of(context, options.session.as_ref())
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let session = context::named(options.session);
    match options.action {
        Action::Create { label, message } => create(context, session?, label, message),
        Action::List => checkpoints_of(context, session.ok().as_ref()),
        Action::Delete { checkpoint } => delete(context, session?, checkpoint),
        Action::Detect { checkpoint, warn } => detect(context, session?, checkpoint, warn),
    }
}

fn create(
    context: &Context,
    session: SessionId,
    label: Option<String>,
    message: Option<String>,
) -> Outcome {
    let created = context.open_anywhere()?.answer(CheckpointCreate {
        label,
        message,
        ..CheckpointCreate::new(session)
    })?;
    match created {
        Some(created) => output::line(&escaped(&created.checkpoint, MAX_NAME)),
        None => Ok(()),
    }
}

/// A checkpoint of a session, with what the session changed until its next one.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) session: SessionId,
    /// The session's label; `None` if it has none.
    pub(crate) label: Option<String>,
    pub(crate) row: CheckpointRow,
    pub(crate) files: BTreeSet<RelPath>,
    pub(crate) lines: LineCounts,
}

fn checkpoints_of(context: &Context, session: Option<&SessionId>) -> Outcome {
    let connection = context.open()?;
    let client = &connection.client;
    let meant = connection.meant(session)?;
    let mut prompts = Vec::new();
    for row in context::all_sessions(client)? {
        if meant.as_ref().is_some_and(|meant| *meant != row.session) {
            continue;
        }
        for checkpoint in checkpoints(client, &row.session)? {
            prompts.push(Prompt {
                session: row.session.clone(),
                label: row.label.clone(),
                row: checkpoint,
                files: BTreeSet::new(),
                lines: LineCounts {
                    added: 0,
                    removed: 0,
                },
            });
        }
    }
    if context.global.json {
        let rows = CheckpointRows {
            checkpoints: prompts.into_iter().map(|prompt| prompt.row).collect(),
            more: None,
        };
        return connection.json(Reply::CheckpointList(rows));
    }
    prompts.sort_by_key(|prompt| prompt.row.clock.n);
    if !prompts.is_empty() {
        count_changes(client, &mut prompts)?;
    }
    context.list(&list_lines(&prompts, &View::here()), "no checkpoints")
}

/// Counts what each session changed after each of its checkpoints. `prompts` are
/// the oldest first.
fn count_changes(client: &Client, prompts: &mut [Prompt]) -> Outcome {
    let oldest = prompts.first().map(|prompt| prompt.row.clock);
    let mut ask = FileLog {
        since: oldest.map(|clock| At::Clock {
            epoch: Some(clock.epoch),
            n: clock.n,
        }),
        lines: true,
        ..FileLog::default()
    };
    loop {
        let answer = client.call(ask.clone())?;
        for entry in answer.entries {
            let version = &entry.version;
            let Some(by) = &version.author.session else {
                continue;
            };
            let own = prompts.iter_mut().rev().find(|prompt| {
                let below = by.as_str().strip_prefix(prompt.session.as_str());
                let is_own = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
                is_own && prompt.row.clock.n < version.clock.n
            });
            if let Some(prompt) = own {
                prompt.files.insert(version.path.clone());
                if let Some(lines) = entry.lines {
                    prompt.lines.added += lines.added;
                    prompt.lines.removed += lines.removed;
                }
            }
        }
        ask.before = answer.more;
        if ask.before.is_none() {
            return Ok(());
        }
    }
}

/// Returns one text for each checkpoint.
pub(crate) fn list_lines(prompts: &[Prompt], view: &View) -> Vec<String> {
    let rows = prompts.iter().map(|prompt| {
        let row = &prompt.row;
        let changed = match prompt.files.len() {
            0 => String::new(),
            files => format!(
                "{}, +{} -{}",
                count(files as u64, "file"),
                prompt.lines.added,
                prompt.lines.removed
            ),
        };
        let said = row.label.as_ref().or(row.text.as_ref());
        let said = said.or(row.message.as_ref());
        vec![
            (style::BOLD, escaped(&row.checkpoint, MAX_NAME)),
            (style::DIM, view.ago(row.time)),
            (
                style::AGENT,
                cut(&called(&prompt.session, prompt.label.as_deref()), WHO),
            ),
            (style::DIM, changed),
            (Style::new(), escaped(said.map_or("", String::as_str), 120)),
        ]
    });
    LIST.lines(rows, view.columns)
}

fn delete(context: &Context, session: SessionId, checkpoint: String) -> Outcome {
    let connection = context.open()?;
    let client = &connection.client;
    let name = escaped(&checkpoint, MAX_NAME);
    let session = context::meant(client, &session)?;
    let checkpoint = meant(client, Some(&session), checkpoint)?;
    match connection.answer(CheckpointDelete::new(session, checkpoint))? {
        Some(_) => context.say(&format!("removed: checkpoint {name}")),
        None => Ok(()),
    }
}

fn detect(context: &Context, session: SessionId, checkpoint: String, warn: bool) -> Outcome {
    let connection = context.open()?;
    let client = &connection.client;
    let session = context::meant(client, &session)?;
    let checkpoint = meant(client, Some(&session), checkpoint)?;
    let mut stored = None;
    let files = pages(|cursor| {
        let answer = client.call(CheckpointDetect {
            checkpoint: Some(checkpoint.clone()),
            // One warning is about the files of all pages.
            store_warning: warn && cursor.is_none(),
            cursor,
            ..CheckpointDetect::new(session.clone())
        })?;
        if answer.warning.is_some() {
            stored = answer.warning;
        }
        Ok((answer.files, answer.more))
    })?;
    if context.global.json {
        let all = CheckpointDetected {
            files,
            warning: stored,
            more: None,
        };
        return connection.json(Reply::CheckpointDetect(all));
    }
    if files.is_empty() {
        return context.say("nothing was edited since");
    }
    output::lines(&detected_lines(&files, &View::here()))?;
    match stored {
        Some(kept) => context.say(&format!(
            "stored as a warning about {}",
            count(kept.files.len() as u64, "file")
        )),
        None => Ok(()),
    }
}

/// Returns one text for each file.
pub(crate) fn detected_lines(files: &[EditedFile], view: &View) -> Vec<String> {
    DETECTED.lines(files.iter().map(|file| row(file, view)), view.columns)
}

fn row(file: &EditedFile, view: &View) -> Vec<Cell> {
    let (now, now_style) = match file.differs {
        Some(true) => ("differs", style::WARN),
        Some(false) => ("as it was", style::GOOD),
        None => ("untracked then", style::UNKNOWN),
    };
    let last = file
        .last_edit
        .map_or_else(String::new, |time| view.ago(time));
    vec![
        (style::DIM, last),
        (style::BOLD, path(&file.path)),
        (now_style, now.to_owned()),
        (style::DIM, count(u64::from(file.versions), "version")),
        (Style::new(), format!("by {}", authors(&file.edited_by))),
    ]
}
