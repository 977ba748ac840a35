//! touchmark's entry among an agent's MCP servers. An existing entry with this
//! name is the user's, and never changed.

use std::path::PathBuf;

use serde_json::Value;
use touchmark_client::start::BINARY;

use super::agent::NAME;
use super::codex::table;
use super::document::Unreadable;
use super::hooks::{is_called, value};
use super::json::Json;
use super::made::Made;
use super::member::Member;
use crate::daemon::agent::{EntryFormat, WORKSPACE};

/// The file of an agent's servers, and touchmark's entry in it.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) path: PathBuf,
    pub(super) entry: ServerEntry,
}

/// The format of the entry.
#[derive(Clone, Debug)]
pub(super) enum ServerEntry {
    /// JSON.
    Json(Member),
    /// A table as in Codex's configuration: the program, and the variables that
    /// are passed on to it.
    Table(String, &'static [&'static str]),
}

/// The current state of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Nothing,
    /// touchmark's, and up to date.
    Ours,
    /// touchmark's, for another program or in another format.
    Older,
    /// Another one of the same name.
    Theirs,
}

/// Returns `{ "command": PROGRAM, "args": ["mcp"] }`, the format of most
/// agents.
fn command(program: &str, kind: Option<&str>, arguments: &[&str]) -> Json {
    let mut members: Vec<_> = kind.into_iter().map(|kind| ("type", kind.into())).collect();
    let arguments = arguments.iter().map(|&word| word.into());
    members.push(("command", program.into()));
    members.push(("args", Json::List(arguments.collect())));
    Json::Object(members)
}

impl Server {
    /// Returns the entry for an agent, from the format of its settings.
    pub(super) fn of(entry: EntryFormat, path: PathBuf, program: &str) -> Self {
        match entry {
            EntryFormat::Json(kind) => Self {
                path,
                entry: ServerEntry::json("mcpServers", command(program, kind, &["mcp"])),
            },
            EntryFormat::Placed => {
                let words = ["--workspace", WORKSPACE, "mcp"];
                Self {
                    path,
                    entry: ServerEntry::json("mcpServers", command(program, None, &words)),
                }
            }
            EntryFormat::List => {
                let words = Json::List(vec![program.into(), "mcp".into()]);
                let entry = vec![("type", "local".into()), ("command", words)];
                // The agent reads both files, and users have one of them.
                let commented = path.with_extension("jsonc");
                Self {
                    path: if commented.exists() { commented } else { path },
                    entry: ServerEntry::json("mcp", Json::Object(entry)),
                }
            }
            EntryFormat::Table(variables) => Self {
                path,
                entry: ServerEntry::Table(program.to_owned(), variables),
            },
        }
    }

    /// Returns the current state of the entry.
    ///
    /// # Errors
    /// The text cannot be edited.
    pub(super) fn found(&self, text: &str, made: Option<&Made>) -> Result<Presence, Unreadable> {
        let Some(found) = self.entry(text)? else {
            return Ok(Presence::Nothing);
        };
        let place = self.place();
        if !made.is_some_and(|made| made.members.contains(&place)) || words(&found).is_none() {
            return Ok(Presence::Theirs);
        }
        Ok(
            match self
                .entry
                .says()
                .iter()
                .all(|(name, is)| found.get(name) == Some(is))
            {
                true => Presence::Ours,
                false => Presence::Older,
            },
        )
    }

    /// Returns the current entry; `None` if there is none.
    pub(super) fn entry(&self, text: &str) -> Result<Option<Value>, Unreadable> {
        match &self.entry {
            ServerEntry::Json(member) => member.found(text),
            ServerEntry::Table(..) => table::entry(text),
        }
    }

    /// Adds the entry, if there is none.
    ///
    /// # Errors
    /// The text cannot be edited.
    pub(super) fn put(&self, text: &str, made: &mut Made) -> Result<String, Unreadable> {
        match &self.entry {
            ServerEntry::Json(member) => member.put(text, made),
            ServerEntry::Table(program, variables) => {
                made.members.insert(self.place());
                table::put(text, program, variables, made)
            }
        }
    }

    /// Removes the entry, if an installation added it.
    ///
    /// # Errors
    /// The text cannot be edited.
    pub(super) fn take(&self, text: &str, made: Option<&Made>) -> Result<String, Unreadable> {
        let found = self.found(text, made)?;
        let made = match (found, made) {
            (Presence::Ours | Presence::Older, Some(made)) => made,
            _ => return Ok(text.to_owned()),
        };
        match &self.entry {
            ServerEntry::Json(member) => member.take(text, made),
            ServerEntry::Table(..) => table::take(text, made),
        }
    }

    #[cfg(test)]
    pub(super) fn is_table(&self) -> bool {
        matches!(self.entry, ServerEntry::Table(..))
    }

    #[cfg(test)]
    pub(super) fn within(&self) -> &'static str {
        match &self.entry {
            ServerEntry::Json(member) => member.within,
            ServerEntry::Table(..) => "",
        }
    }

    fn place(&self) -> String {
        match &self.entry {
            ServerEntry::Json(member) => member.place(),
            ServerEntry::Table(..) => table::PLACE.to_owned(),
        }
    }
}

impl ServerEntry {
    fn json(within: &'static str, value: Json) -> Self {
        Self::Json(Member {
            within,
            name: NAME,
            value,
        })
    }

    fn says(&self) -> serde_json::Map<String, Value> {
        let says = match self {
            Self::Json(member) => value(&member.value.to_string()),
            Self::Table(program, variables) => {
                let mut says = value(&command(program, None, &["mcp"]).to_string());
                if !variables.is_empty() {
                    says[table::VARIABLES] = (*variables).into();
                }
                says
            }
        };
        says.as_object().cloned().unwrap_or_default()
    }
}

/// Returns the command of an entry that runs `touchmark mcp`, wherever the
/// program is.
pub(super) fn words(entry: &Value) -> Option<Vec<String>> {
    let texts = |value: &Value| -> Vec<String> {
        let list = value.as_array().into_iter().flatten();
        list.filter_map(|word| Some(word.as_str()?.to_owned()))
            .collect()
    };
    let mut words = match &entry["command"] {
        Value::String(program) => vec![program.clone()],
        list => texts(list),
    };
    words.extend(texts(&entry["args"]));
    let program = words.first()?;
    (is_called(program, BINARY) && words.last()? == "mcp").then_some(words)
}
