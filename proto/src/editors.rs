//! Requests from editors.

use crate::{ClientPath, Hash, LineRange, Millis};

/// Reports that an editor has opened a file.
#[apply(request!)]
pub struct EditorDidOpen {
    /// The file.
    pub path: ClientPath,
}

/// Reports that an editor has closed a file.
#[apply(request!)]
pub struct EditorDidClose {
    /// The file.
    pub path: ClientPath,
}

/// Reports whether an editor has unsaved changes of a file.
#[apply(request!)]
pub struct EditorDirty {
    /// The file.
    pub path: ClientPath,
    /// Whether there are unsaved changes.
    pub dirty: bool,
    /// The hash of the unsaved text.
    pub hash: Option<Hash>,
    /// The lines of the saved file that the unsaved text changes, from the
    /// first to the last. If it only adds lines: the lines before and after
    /// them. `None` if the editor does not say.
    pub lines: Option<LineRange>,
}

/// Reports that an editor saved a file (ATTR-2).
#[apply(request!)]
pub struct EditorDidSave {
    /// The file.
    pub path: ClientPath,
    /// The hash of the content that was saved.
    pub hash: Hash,
    /// When the file was saved; default: now.
    pub time: Option<Millis>,
    /// Whether a formatter changed the text during the save (ATTR-17); default
    /// false.
    #[serde(default)]
    pub formatted: bool,
}
