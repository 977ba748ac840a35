//! `touchmark recovered`: bytes that touchmark kept because a write would have
//! destroyed them unseen.

use std::io::Write as _;

use anstyle::Style;
use anyhow::Context as _;
use clap::{Args, Subcommand};
use touchmark_client::proto::Reply;
use touchmark_client::proto::writes::{
    RecoveryDelete, RecoveryItem, RecoveryList, RecoveryRestore, RecoveryShow,
};

use crate::context::Context;
use crate::output::{self, Outcome};
use crate::style::{self, paint};
use crate::system::terminal::is_terminal;
use crate::table::{Step, Table, View};
use crate::text::{MAX_NAME, author, bytes, cut, escaped, is_hidden, path};
use crate::wire::result_json;

/// Id, time, path, size, author.
const TABLE: Table = Table::new(&[
    Step::Middle(2, 20),
    Step::Middle(4, 12),
    Step::Out(4),
    Step::Middle(0, 16),
    Step::Middle(2, 12),
]);

/// Bytes that touchmark kept.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The action
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// List the stored contents, newest first
    List {
        /// Only this one
        id: Option<String>,
    },
    /// Print the content
    Show {
        /// Its id, as `list` shows it
        id: String,
    },
    /// Restore the content to its file; the current content is stored
    Restore {
        /// Its id, as `list` shows it
        id: String,
        /// Write also where the present content cannot be kept, and so cannot be brought back
        #[arg(long)]
        no_redo: bool,
    },
    /// Delete the content
    Delete {
        /// Its id, as `list` shows it
        id: String,
    },
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let action = options.action.clone();
    match action.unwrap_or(Action::List { id: None }) {
        Action::List { id } => list(context, id),
        Action::Show { id } => show(context, id),
        Action::Restore { id, no_redo } => restore(context, id, no_redo),
        Action::Delete { id } => delete(context, id),
    }
}

fn list(context: &Context, id: Option<String>) -> Outcome {
    let workspace = context.workspace()?;
    let items = context.connect(&workspace)?.call(RecoveryList { id })?;
    if context.global.json {
        return context.json(&result_json(Reply::RecoveryList(items), &workspace.root));
    }
    if items.items.is_empty() {
        return context.say("nothing is stored");
    }
    let lines = lines(&items.items, &View::here());
    lines.iter().try_for_each(|line| output::line(line))
}

/// Returns two lines for each item: what it is, and the command that restores
/// it.
pub(crate) fn lines(items: &[RecoveryItem], view: &View) -> Vec<String> {
    let rows = items.iter().map(|item| {
        vec![
            (style::AGENT, escaped(&item.id, MAX_NAME)),
            (style::DIM, view.ago(item.time)),
            (Style::new(), path(&item.path)),
            (Style::new(), bytes(item.size)),
            (style::DIM, by(item)),
        ]
    });
    let lines = TABLE.lines(rows.collect(), view.columns).into_iter();
    let lines = lines.zip(items).flat_map(|(line, item)| {
        let id = escaped(&item.id, MAX_NAME);
        let back = format!("    touchmark recovered restore {id}");
        let back = view.columns.map_or(back.clone(), |most| cut(&back, most));
        [line, paint(style::DIM, &back)]
    });
    lines.collect()
}

fn by(item: &RecoveryItem) -> String {
    item.author
        .as_ref()
        .map_or_else(String::new, |of| format!("by {}", author(of)))
}

fn show(context: &Context, id: String) -> Outcome {
    let workspace = context.workspace()?;
    let shown = context.connect(&workspace)?.call(RecoveryShow { id })?;
    if context.global.json {
        return context.json(&result_json(Reply::RecoveryShow(shown), &workspace.root));
    }
    let Some(item) = shown.items.first() else {
        return context.say("nothing is stored");
    };
    // The answer may be cut, the file is whole.
    let content = std::fs::read(&item.file).with_context(|| item.file.clone())?;
    let mut out = std::io::stdout().lock();
    if is_terminal() {
        let text: String = String::from_utf8_lossy(&content)
            .chars()
            .map(|c| {
                if is_hidden(c) && !matches!(c, '\n' | '\t') {
                    '\u{fffd}'
                } else {
                    c
                }
            })
            .collect();
        out.write_all(text.as_bytes())?;
    } else {
        out.write_all(&content)?;
    }
    Ok(out.flush()?)
}

fn restore(context: &Context, id: String, no_redo: bool) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let restored = client.call(RecoveryRestore { id, no_redo })?;
    if context.global.json {
        let reply = Reply::RecoveryRestore(restored);
        return context.json(&result_json(reply, &workspace.root));
    }
    for item in &restored.items {
        context.say(&format!("{} is restored", path(&item.path)))?;
    }
    for file in &restored.recovered {
        context.say(&format!(
            "the previous content is stored in {}",
            escaped(file, 4096)
        ))?;
    }
    Ok(())
}

fn delete(context: &Context, id: String) -> Outcome {
    let workspace = context.workspace()?;
    let deleted = context.connect(&workspace)?.call(RecoveryDelete { id })?;
    if context.global.json {
        let reply = Reply::RecoveryDelete(deleted);
        return context.json(&result_json(reply, &workspace.root));
    }
    for item in &deleted.items {
        context.say(&format!("{} is removed", escaped(&item.id, MAX_NAME)))?;
    }
    Ok(())
}
