//! `touchmark checkpoint`: moments of a session, and which files were changed
//! since.

use anstyle::Style;
use clap::{Args, Subcommand};
use touchmark_client::proto::checkpoints::{
    CheckpointCreate, CheckpointDelete, CheckpointDetect, CheckpointDetected, CheckpointList,
    CheckpointRows, EditedFile,
};
use touchmark_client::proto::{Reply, SessionId};

use crate::commands::call::result_json;
use crate::commands::warning;
use crate::context::{self, Context, pages, zone};
use crate::output::{self, Outcome, table};
use crate::style;
use crate::text::{MAX_NAME, authors, count, date, escaped, path, time_of_day};

/// Moments of a session, and what was edited since.
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
    let checkpoints = pages(|cursor| {
        let answer = client.call(CheckpointList {
            session: session.clone(),
            limit: None,
            cursor,
        })?;
        Ok((answer.checkpoints, answer.more))
    })?;
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
    let zone = zone();
    let text = |text: &Option<String>| escaped(text.as_deref().unwrap_or_default(), 120);
    let rows: Vec<_> = checkpoints
        .iter()
        .map(|row| {
            vec![
                (style::AGENT, escaped(&row.checkpoint, MAX_NAME)),
                (style::DIM, date(row.time, &zone)),
                (style::DIM, row.clock.to_string()),
                (Style::new(), text(&row.label)),
                (style::DIM, text(&row.message)),
            ]
        })
        .collect();
    table(&rows).iter().try_for_each(|line| output::line(line))
}

fn delete(context: &Context, session: SessionId, checkpoint: String) -> Outcome {
    let workspace = context.workspace()?;
    let name = escaped(&checkpoint, MAX_NAME);
    let done = context.connect(&workspace)?.call(CheckpointDelete {
        session,
        checkpoint,
    })?;
    if context.global.json {
        let reply = Reply::CheckpointDelete(done);
        return context.json(&result_json(reply, &workspace.root));
    }
    context.say(&format!("{name} is forgotten"))
}

fn detect(context: &Context, session: SessionId, checkpoint: String, warn: bool) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
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
    let rows: Vec<_> = files.iter().map(row).collect();
    table(&rows)
        .iter()
        .try_for_each(|line| output::line(line))?;
    match stored {
        Some(kept) => context.say(&format!(
            "kept as a warning about {}",
            warning::about(&kept)
        )),
        None => Ok(()),
    }
}

fn row(file: &EditedFile) -> Vec<(Style, String)> {
    let zone = zone();
    let (now, now_style) = match file.differs {
        Some(true) => ("differs", style::WARN),
        Some(false) => ("as it was", style::GOOD),
        None => ("not known then", style::UNKNOWN),
    };
    let last = file
        .last_edit
        .map_or_else(String::new, |time| time_of_day(time, &zone));
    vec![
        (style::DIM, last),
        (style::BOLD, path(&file.path)),
        (now_style, now.to_owned()),
        (style::DIM, count(u64::from(file.versions), "version")),
        (Style::new(), format!("by {}", authors(&file.edited_by))),
    ]
}
