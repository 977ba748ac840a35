//! `touchmark config`: what is set, where, and changes of it.

mod change;
mod document;

use std::path::Path;

use anstyle::Style;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use touchmark_client::Workspace;

use crate::context::Context;
use crate::daemon::config::{Config, Configured, Setting};
use crate::output::{self, Failure, Outcome};
use crate::style;
use crate::table::{Cell, Step, Table, View};
use crate::text::{directory, escaped, plural};

/// Key, where it is set, and value.
const TABLE: Table = Table::new(&[Step::Middle(2, 24), Step::Middle(1, 20), Step::Middle(2, 8)]);

/// The longest value that is shown, in characters. A configuration file has at
/// most 1 MiB.
const LONGEST: usize = 1 << 20;

/// Show the settings in effect and where each is set, or change them.
///
/// There are two files: yours, and the workspace's `.touchmark.toml`, which may only tighten what
/// yours or the default says. Without a command, every key is listed with its value. What
/// the files say and is not in effect is listed below, and the exit code is 1.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the value of a key
    Get {
        #[command(flatten)]
        key: Key,
    },
    /// Set a key in your configuration file
    Set {
        #[command(flatten)]
        key: Key,
        /// The value, as in the file; quotes around a text may be left out
        #[arg(value_name = "VALUE", allow_hyphen_values = true)]
        value: String,
        #[command(flatten)]
        place: Place,
    },
    /// Remove a key from your configuration file: its default is in effect again
    Unset {
        #[command(flatten)]
        key: Key,
        #[command(flatten)]
        place: Place,
    },
    /// Open your configuration file in your editor, and check it before it is saved
    Edit {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Args)]
struct Key {
    /// The key, such as `hooks.gate`
    #[arg(value_name = "KEY", value_parser = names(), hide_possible_values = true)]
    name: String,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(Config::keys())
}

#[derive(Debug, Args)]
struct Place {
    /// In the workspace's `.touchmark.toml`, which may only tighten settings
    #[arg(long)]
    here: bool,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let workspace = context.workspace()?;
    match &options.action {
        None => list(context, &workspace),
        Some(Action::Get { key }) => get(context, &workspace, &key.name),
        Some(Action::Set { key, value, place }) => {
            change::set(context, &workspace, &key.name, value, place.here)
        }
        Some(Action::Unset { key, place }) => {
            change::unset(context, &workspace, &key.name, place.here)
        }
        Some(Action::Edit { place }) => change::edit(context, &workspace, place.here),
    }
}

fn configured(workspace: &Workspace) -> Outcome<Configured> {
    Config::of(&workspace.places, None).map_err(|error| Failure::No(error.to_string()))
}

fn get(context: &Context, workspace: &Workspace, name: &str) -> Outcome {
    let configured = configured(workspace)?;
    let mut all = configured.config.settings();
    let Some(one) = all.find(|one| one.key == name) else {
        return Ok(());
    };
    if context.global.json {
        return context.json(&json_of(&configured, &one));
    }
    match one.value {
        Some(value) => output::line(&shown(&value)),
        None => Err(Failure::No(format!(
            "`{name}` is not set: the daemon finds it out"
        ))),
    }
}

fn list(context: &Context, workspace: &Workspace) -> Outcome {
    let configured = configured(workspace)?;
    let wrong: Vec<String> = configured.wrong.iter().map(ToString::to_string).collect();
    if context.global.json {
        let all = configured.config.settings();
        let all: Vec<Value> = all.map(|one| json_of(&configured, &one)).collect();
        context.json(&json!({ "settings": all, "wrong": wrong }))?;
    } else {
        output::lines(&lines(&configured, &workspace.root, &View::here()))?;
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Failure::No(format!(
            "{} not in effect: {}",
            plural(wrong.len() as u64, "entry is", "entries are"),
            wrong.join("; ")
        ))),
    }
}

/// Returns where a key is set: one or two places; none for the default.
fn places<'a>(configured: &'a Configured, key: &'a str) -> impl Iterator<Item = (&'a Path, usize)> {
    let set = configured.set.iter().filter(move |entry| entry.key == key);
    set.map(|entry| (&*entry.file, entry.line))
}

/// Returns the lines of the list of keys, in the workspace `root`.
pub(crate) fn lines(configured: &Configured, root: &Path, view: &View) -> Vec<String> {
    let rows = configured.config.settings().map(|one| {
        let from: Vec<String> = places(configured, one.key)
            .map(|(file, line)| format!("{}:{line}", name(file, root)))
            .collect();
        let value = one.value.as_ref();
        let value = value.map_or_else(|| "found out".to_owned(), shown);
        let (look, from) = match from.is_empty() {
            true => (style::DIM, "default".to_owned()),
            false => (Style::new(), from.join(", ")),
        };
        let key = (style::BOLD, one.key.to_owned());
        vec![key, (look, from), (look, value)] as Vec<Cell>
    });
    TABLE.lines(rows, view.columns)
}

/// Returns a value on one line. A repository's file is not trusted, so hidden
/// characters are escaped (SEC-4).
fn shown(value: &toml::Value) -> String {
    escaped(&document::inline(value), LONGEST)
}

/// Returns a configuration file's name for people.
fn name(file: &Path, root: &Path) -> String {
    match file.strip_prefix(root) {
        Ok(inside) => inside.display().to_string(),
        Err(_) => directory(file),
    }
}

fn json_of(configured: &Configured, one: &Setting) -> Value {
    let from: Vec<Value> = places(configured, one.key)
        .map(|(file, line)| json!({ "file": file.to_string_lossy(), "line": line }))
        .collect();
    json!({
        "key": one.key,
        "value": one.value,
        "from": from,
        "atRestart": one.at_restart,
        "repositoryMay": one.repository_may,
    })
}
