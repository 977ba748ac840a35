//! Requests from editors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ClientPath, Hash, LineRange, Millis};

/// An editor shows a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditorDidOpen {
    /// What.
    pub path: ClientPath,
}

/// An editor no longer shows a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditorDidClose {
    /// What.
    pub path: ClientPath,
}

/// Whether an editor holds unsaved changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditorDirty {
    /// What.
    pub path: ClientPath,
    /// It does.
    pub dirty: bool,
    /// The hash of the unsaved text.
    pub hash: Option<Hash>,
    /// The lines of the saved file that the unsaved text changes, from the
    /// first to the last; around the seam where it only adds lines. Without,
    /// which ones is not known.
    pub lines: Option<LineRange>,
}

/// An editor saved a file (ATTR-2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditorDidSave {
    /// What.
    pub path: ClientPath,
    /// What it wrote.
    pub hash: Hash,
    /// When; now unless told.
    pub time: Option<Millis>,
    /// A formatter changed the text on the way (ATTR-17).
    #[serde(default)]
    pub formatted: bool,
}
