//! The input of the tools. The field names are the protocol's.

use rmcp::model::JsonObject;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::Value;
use touchmark_client::proto::{Clock, Millis};

/// Schema keywords that clients do not know or need: number formats that are not standard, the
/// schema's version, and titles.
const NOISE: [&str; 3] = ["$schema", "format", "title"];

/// Returns a schema that strict clients accept: an optional field has no type `null`, and no
/// default `false`.
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
    /// The file, relative to the workspace or absolute inside it. If absent: all files that this session has read or written.
    pub(crate) path: Option<String>,
    /// The position where the last answer stopped (its `more`).
    pub(crate) cursor: Option<String>,
}

/// The arguments of `changed_files`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ChangedFiles {
    /// Only this file. If absent: all files that this session has read or written.
    pub(crate) path: Option<String>,
}

/// The arguments of `read_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReadFile {
    /// The file, relative to the workspace or absolute inside it.
    pub(crate) path: String,
    /// The first line, from 1.
    #[schemars(range(min = 1))]
    pub(crate) start_line: Option<u32>,
    /// The last line, inclusive.
    #[schemars(range(min = 1))]
    pub(crate) end_line: Option<u32>,
    /// Return the text even if this session has it already.
    #[serde(default)]
    pub(crate) force: bool,
}

/// The arguments of `edit_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EditFile {
    /// The file, relative to the workspace or absolute inside it.
    pub(crate) path: String,
    /// The text to replace. It must occur exactly once, unless `replaceAll` is set.
    pub(crate) old_string: String,
    /// The text that replaces it.
    pub(crate) new_string: String,
    /// Replace all occurrences.
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
    /// Create missing directories.
    #[serde(default)]
    pub(crate) create_directories: bool,
    /// Overwrite even a file that this session has not read, or that was changed since. Overwritten content that this session has not seen is stored.
    #[serde(default)]
    pub(crate) force: bool,
}

/// The arguments of `grep`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Grep {
    /// The regular expression, in the syntax of ripgrep.
    pub(crate) pattern: String,
    /// Only this file, or files below this directory. If absent: the whole workspace.
    pub(crate) path: Option<String>,
    /// Only files whose names match. With `!` before the glob: only files whose names do not match.
    pub(crate) glob: Option<String>,
    /// Only files of this type: `rust`, `ts`, `py`, ...
    pub(crate) file_type: Option<String>,
    /// The number of lines before and after each match, at most 1,000.
    pub(crate) context: Option<u32>,
    /// Ignore the difference between upper and lower case.
    #[serde(default)]
    pub(crate) case_insensitive: bool,
    /// Allow matches to span several lines.
    #[serde(default)]
    pub(crate) multiline: bool,
    /// The maximum number of matches. Default: 1,000.
    pub(crate) max_matches: Option<u32>,
}

/// The arguments of `who_changed`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WhoChanged {
    /// The file, relative to the workspace or absolute inside it.
    pub(crate) path: String,
    /// The maximum number of versions, the newest first.
    pub(crate) limit: Option<u32>,
    /// Only versions before this clock (the `more` of the last answer).
    #[schemars(with = "Option<String>")]
    pub(crate) before: Option<Clock>,
}

// These comments are not documentation: without documented values the schema is a plain list of
// words, which every client can handle.
/// What `checkpoint` does.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub(crate) enum CheckpointAction {
    // Remember this moment.
    Create,
    // List the remembered moments.
    List,
    // List the files that were edited after a moment, and by whom.
    Detect,
}

/// The arguments of `checkpoint`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Checkpoint {
    /// Remember this moment, list the remembered ones, or list what was edited after one.
    pub(crate) action: CheckpointAction,
    /// With `create`: a name for display.
    pub(crate) label: Option<String>,
    /// With `detect`: the checkpoint's name, as `create` returned it. Either this or `time`.
    pub(crate) checkpoint: Option<String>,
    /// With `detect`: the moment, in milliseconds since 1970.
    pub(crate) time: Option<Millis>,
    /// With `detect`: only this file.
    pub(crate) path: Option<String>,
    /// With `list` and `detect`: the position where the last answer stopped (its `more`).
    pub(crate) cursor: Option<String>,
}
