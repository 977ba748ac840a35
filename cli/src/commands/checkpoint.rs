//! `touchmark checkpoint`: moments of a session, and which files were changed
//! since.

use anstyle::Style;
use clap::{Args, Subcommand};
use touchmark_client::blocking::Client;
use touchmark_client::proto::checkpoints::{
    CheckpointCreate, CheckpointDelete, CheckpointDetect, CheckpointDetected, CheckpointRow,
    CheckpointRows, EditedFile,
};
use touchmark_client::proto::{Reply, SessionId};

use crate::commands::call::result_json;
use crate::commands::warning;
use crate::context::{self, Context, pages};
use crate::output::{self, Failure, Outcome};
use crate::style;
use crate::table::{Cell, Step, Table, View};
use crate::text::{MAX_NAME, authors, count, escaped, path};
use crate::versions::{checkpoints, name};

/// Id, time, clock, label, message.
const LIST: Table = Table::new(&[
    Step::Start(4, 8),
    Step::Out(4),
    Step::Out(2),
    Step::Middle(3, 12),
]);

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
    /// List the checkpoints, oldest first
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

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let session = context::named(options.session)?;
    match options.action {
        Action::Create { label, message } => create(context, session, label, message),
        Action::List => list(context, session),
        Action::Delete { checkpoint } => delete(context, session, checkpoint),
        Action::Detect { checkpoint, warn } => detect(context, session, checkpoint, warn),
    }
}

fn create(
    context: &Context,
    session: SessionId,
    label: Option<String>,
    message: Option<String>,
) -> Outcome {
    let workspace = context.workspace()?;
    let created = context.connect(&workspace)?.call(CheckpointCreate {
        session,
        label,
        message,
        step: None,
    })?;
    if context.global.json {
        let reply = Reply::CheckpointCreate(created);
        return context.json(&result_json(reply, &workspace.root));
    }
    output::line(&escaped(&created.checkpoint, MAX_NAME))
}

fn list(context: &Context, session: SessionId) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let checkpoints = checkpoints(&client, &session)?;
    if context.global.json {
        let rows = CheckpointRows {
            checkpoints,
            more: None,
        };
        return context.json(&result_json(Reply::CheckpointList(rows), &workspace.root));
    }
    if checkpoints.is_empty() {
        return context.say("no checkpoints");
    }
    let lines = list_lines(&checkpoints, &View::here());
    lines.iter().try_for_each(|line| output::line(line))
}

/// Returns one line for each checkpoint.
pub(crate) fn list_lines(checkpoints: &[CheckpointRow], view: &View) -> Vec<String> {
    let text = |text: &Option<String>| escaped(text.as_deref().unwrap_or_default(), 120);
    let rows = checkpoints.iter().map(|row| {
        vec![
            (style::AGENT, escaped(&row.checkpoint, MAX_NAME)),
            (style::DIM, view.ago(row.time)),
            (style::DIM, name(Some(row.clock))),
            (Style::new(), text(&row.label)),
            (style::DIM, text(&row.message)),
        ]
    });
    LIST.lines(rows.collect(), view.columns)
}

/// Returns the id of the checkpoint that a person means, by its id or label.
///
/// # Errors
/// If several of the session's checkpoints have that label.
pub(crate) fn meant(client: &Client, session: &SessionId, said: String) -> Outcome<String> {
    let rows = checkpoints(client, session)?;
    if rows.iter().any(|row| row.checkpoint == said) {
        return Ok(said);
    }
    let labelled = rows
        .iter()
        .filter(|row| row.label.as_deref() == Some(&said));
    let ids: Vec<&str> = labelled.map(|row| row.checkpoint.as_str()).collect();
    match ids.as_slice() {
        // The daemon's error says that there is no such checkpoint.
        [] => Ok(said),
        [only] => Ok((*only).to_owned()),
        several => Err(Failure::Usage(format!(
            "several checkpoints have the label {}: {}",
            escaped(&said, MAX_NAME),
            several.join(", ")
        ))),
    }
}

fn delete(context: &Context, session: SessionId, checkpoint: String) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let name = escaped(&checkpoint, MAX_NAME);
    let session = context::meant(&client, &session)?;
    let checkpoint = meant(&client, &session, checkpoint)?;
    let done = client.call(CheckpointDelete {
        session,
        checkpoint,
    })?;
    if context.global.json {
        let reply = Reply::CheckpointDelete(done);
        return context.json(&result_json(reply, &workspace.root));
    }
    context.say(&format!("removed: checkpoint {name}"))
}

fn detect(context: &Context, session: SessionId, checkpoint: String, warn: bool) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let session = context::meant(&client, &session)?;
    let checkpoint = meant(&client, &session, checkpoint)?;
    let mut stored = None;
    let files = pages(|cursor| {
        let answer = client.call(CheckpointDetect {
            session: session.clone(),
            checkpoint: Some(checkpoint.clone()),
            clock: None,
            time: None,
            paths: None,
            deleted: Vec::new(),
            // One warning is about the files of all pages.
            store_warning: warn && cursor.is_none(),
            sync: None,
            verify: None,
            limit: None,
            cursor,
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
        return context.json(&result_json(Reply::CheckpointDetect(all), &workspace.root));
    }
    if files.is_empty() {
        return context.say("nothing was edited since");
    }
    for line in detected_lines(&files, &View::here()) {
        output::line(&line)?;
    }
    match stored {
        Some(kept) => context.say(&format!(
            "stored as a warning about {}",
            warning::about(&kept)
        )),
        None => Ok(()),
    }
}

/// Returns one text for each file.
pub(crate) fn detected_lines(files: &[EditedFile], view: &View) -> Vec<String> {
    let rows = files.iter().map(|file| row(file, view));
    DETECTED.lines(rows.collect(), view.columns)
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
