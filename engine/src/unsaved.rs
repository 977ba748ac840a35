//! Unsaved buffers of editors.

use std::collections::BTreeMap;

use touchmark_proto::{ConnectionId, LineRange, RelPath};

/// The files with unsaved changes of each editor, by the connection that
/// reported them. Each has the changed lines if the editor named them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsaved(BTreeMap<ConnectionId, BTreeMap<RelPath, Option<LineRange>>>);

impl Unsaved {
    /// Notes that an editor has unsaved changes of a file. Returns whether it
    /// has no more than `most` such files.
    pub(crate) fn insert(
        &mut self,
        editor: ConnectionId,
        path: RelPath,
        lines: Option<LineRange>,
        most: usize,
    ) -> bool {
        let own = self.0.entry(editor).or_default();
        let fits = own.len() < most || own.contains_key(&path);
        if fits {
            own.insert(path, lines);
        }
        fits
    }

    /// Forgets that an editor has unsaved changes of a file. Another editor may
    /// still have some.
    pub(crate) fn remove(&mut self, editor: Option<ConnectionId>, path: &RelPath) {
        if let Some(editor) = editor
            && let Some(own) = self.0.get_mut(&editor)
        {
            own.remove(path);
            if own.is_empty() {
                self.0.remove(&editor);
            }
        }
    }

    /// Forgets the unsaved changes of an editor whose connection has ended.
    pub(crate) fn disconnected(&mut self, editor: ConnectionId) {
        self.0.remove(&editor);
    }

    /// Returns whether a connected editor has unsaved changes of a file: `None`
    /// if none has; else the lines that all editors together change, or
    /// `Some(None)` if one of them has not named its lines.
    pub(crate) fn of(&self, path: &RelPath) -> Option<Option<LineRange>> {
        let unsaved = self.0.values().filter_map(|own| own.get(path));
        unsaved.copied().reduce(|one, other| {
            let (one, other) = (one?, other?);
            Some(LineRange {
                start: one.start.min(other.start),
                end: one.end.max(other.end),
            })
        })
    }
}
