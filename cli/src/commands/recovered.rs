//! `touchmark recovered`: bytes that touchmark kept because a write would have
//! destroyed them unseen, or because a command did so in an ignored file.

use std::io::Write as _;

use anstyle::Style;
use anyhow::Context as _;
use clap::{Args, Subcommand};
use touchmark_client::proto::writes::{
    RecoveryDelete, RecoveryItem, RecoveryList, RecoveryRestore, RecoveryShow,
};

use crate::context::Context;
use crate::output::Outcome;
use crate::pager::harmless;
use crate::progress;
use crate::style::{self, paint};
use crate::system::terminal::is_terminal;
use crate::table::{Step, Table, View};
use crate::text::{MAX_NAME, author, bytes, cut, escaped, path};

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
    match context.open()?.answer(RecoveryList { id })? {
        Some(found) => context.list(&lines(&found.items, &View::here()), "nothing is stored"),
        None => Ok(()),
    }
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
    let lines = TABLE.lines(rows, view.columns).into_iter();
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
    let Some(shown) = context.open()?.answer(RecoveryShow::new(id))? else {
        return Ok(());
    };
    let Some(item) = shown.items.first() else {
        return context.say("nothing is stored");
    };
    // The answer may be cut, the file is whole.
    let content = std::fs::read(&item.file).with_context(|| item.file.clone())?;
    progress::end();
    let mut out = std::io::stdout().lock();
    match is_terminal() {
        true => out.write_all(harmless(&String::from_utf8_lossy(&content)).as_bytes())?,
        false => out.write_all(&content)?,
    }
    Ok(out.flush()?)
}

fn restore(context: &Context, id: String, no_redo: bool) -> Outcome {
    let ask = RecoveryRestore { id, no_redo };
    let Some(restored) = context.open()?.answer(ask)? else {
        return Ok(());
    };
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
    let deleted = context.open()?.answer(RecoveryDelete::new(id))?;
    for item in deleted.iter().flat_map(|deleted| &deleted.items) {
        context.say(&format!("{} is removed", escaped(&item.id, MAX_NAME)))?;
    }
    Ok(())
}
