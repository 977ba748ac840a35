//! What the tools take. The words are the protocol's own.

use rmcp::model::JsonObject;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::Value;
use touchmark_client::proto::{Clock, Millis};

/// What clients do not know of a schema, or what says nothing: formats of
/// numbers that are no standard's, and which JSON Schema it is.
const NOISE: [&str; 3] = ["$schema", "format", "title"];

/// A schema as strict clients take it: what may be left out is never `null`
/// instead, and is `false` without saying so.
pub(crate) fn plain(schema: &JsonObject) -> JsonObject {
    let mut schema = schema.clone();
    for name in NOISE {
        schema.remove(name);
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(|all| all.values_mut()) {
        let Some(property) = property.as_object_mut() else {
            continue;
        };
        for name in NOISE {
            property.remove(name);
        }
        if property.get("default") == Some(&Value::Bool(false)) {
            property.remove("default");
        }
        if let Some(Value::Array(types)) = property.get_mut("type") {
            types.retain(|one| one != "null");
            if let [one] = types.as_slice() {
                let one = one.clone();
                property.insert("type".into(), one);
            }
        }
    }
    schema
}

/// The arguments of `file_status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FileStatus {
    /// The file, relative to the workspace or absolute inside it; all files that this session has read or written if absent.
    pub(crate) path: Option<String>,
    /// Where the last answer stopped (its `more`).
    pub(crate) cursor: Option<String>,
}

/// The arguments of `changed_files`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ChangedFiles {
    /// Only this file; all that this session has read or written if absent.
    pub(crate) path: Option<String>,
}

/// The arguments of `read_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReadFile {
    /// The file, relative to the workspace or absolute inside it.
    pub(crate) path: String,
    /// The first line wanted, from 1.
    #[schemars(range(min = 1))]
    pub(crate) start_line: Option<u32>,
    /// The last line wanted, inclusive.
    #[schemars(range(min = 1))]
    pub(crate) end_line: Option<u32>,
    /// Give the text even if this session has it already.
    #[serde(default)]
    pub(crate) force: bool,
}

/// The arguments of `edit_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EditFile {
    /// The file, relative to the workspace or absolute inside it.
    pub(crate) path: String,
    /// The text to replace. It must be there exactly once, unless `replaceAll`.
    pub(crate) old_string: String,
    /// What stands in its place.
    pub(crate) new_string: String,
    /// Replace it wherever it is.
    #[serde(default)]
    pub(crate) replace_all: bool,
    /// Edit even a file that this session has not read, or that was changed since.
    #[serde(default)]
    pub(crate) force: bool,
}

/// The arguments of `write_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WriteFile {
    /// The file, relative to the workspace or absolute inside it.
    pub(crate) path: String,
    /// The whole new content.
    pub(crate) text: String,
    /// Make the directories that are missing.
    #[serde(default)]
    pub(crate) create_directories: bool,
    /// Overwrite even a file that this session has not read, or that was changed since. What is overwritten unseen is kept.
    #[serde(default)]
    pub(crate) force: bool,
}

/// The arguments of `grep`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Grep {
    /// The regular expression, in the syntax of ripgrep.
    pub(crate) pattern: String,
    /// Only this file, or below this directory; the whole workspace if absent.
    pub(crate) path: Option<String>,
    /// Only files whose names match; `!` before it leaves them out.
    pub(crate) glob: Option<String>,
    /// Only files of this type: `rust`, `ts`, `py`, ...
    pub(crate) file_type: Option<String>,
    /// Lines before and after each match; at most 1,000.
    pub(crate) context: Option<u32>,
    /// Upper and lower case are the same.
    #[serde(default)]
    pub(crate) case_insensitive: bool,
    /// A match may reach over lines.
    #[serde(default)]
    pub(crate) multiline: bool,
    /// At most this many; 1,000 unless told.
    pub(crate) max_matches: Option<u32>,
}

/// The arguments of `who_changed`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WhoChanged {
    /// The file, relative to the workspace or absolute inside it.
    pub(crate) path: String,
    /// At most this many versions, the newest first.
    pub(crate) limit: Option<u32>,
    /// Only versions before this clock (the `more` of the last answer).
    #[schemars(with = "Option<String>")]
    pub(crate) before: Option<Clock>,
}

// Comments that are no documentation: a schema of the words alone is a plain
// list, which every client knows.
/// What `checkpoint` does.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub(crate) enum CheckpointAction {
    // Remember this moment.
    Create,
    // The moments remembered.
    List,
    // Which files were edited after a moment, and by whom.
    Detect,
}

/// The arguments of `checkpoint`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Checkpoint {
    /// Remember this moment, list those remembered, or tell what was edited after one.
    pub(crate) action: CheckpointAction,
    /// With `create`: a name for people.
    pub(crate) label: Option<String>,
    /// With `detect`: the checkpoint's name, as `create` answered it. Either this or `time`.
    pub(crate) checkpoint: Option<String>,
    /// With `detect`: the moment, in milliseconds since 1970.
    pub(crate) time: Option<Millis>,
    /// With `detect`: only this file.
    pub(crate) path: Option<String>,
    /// With `list` and `detect`: where the last answer stopped (its `more`).
    pub(crate) cursor: Option<String>,
}
