//! An open file: the editor's text, and the saved text that it began with. The
//! protocol does not say whether a text is saved, so the texts are compared.

use std::path::{Path, PathBuf};

use touchmark_client::proto::review::ReviewHunk;
use touchmark_client::proto::{Hash, LineRange, RelPath};

use super::disk::{self, Content};
use super::messages::Change;
use super::text::{self, Encoding, apply, normal};
use super::unsaved::Edit;

/// The size up to which a file is read when it is opened, in bytes. A larger one
/// counts as saved until it is changed.
const LARGEST: u64 = 16 << 20;

/// A file's name in its workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The workspace's directory.
    pub(super) root: PathBuf,
    pub(super) name: RelPath,
}

/// An open file.
#[derive(Debug)]
pub(super) struct Document {
    path: PathBuf,
    /// The workspace that the file is in; `None` until one is found.
    pub(super) place: Option<Place>,
    /// The editor's text, with line feeds as line ends.
    text: String,
    /// The text that was loaded or saved last.
    saved: String,
    /// What was on disk then; `None` if that is not known.
    loaded: Option<Content>,
    /// A later content on disk, which the editor has not loaded.
    newer: Option<Content>,
    /// What was loaded before, if the present one was found when the editor
    /// showed it. That may be a file that was loaded again, or a save that is not
    /// reported yet.
    before: Option<Option<Content>>,
}

impl Document {
    /// An editor shows a file.
    pub(super) fn open(path: PathBuf, text: &str) -> Self {
        let text = normal(text);
        let loaded = disk::look(&path, LARGEST);
        let is_other = |content: &Content| content.is(&text) == Some(false);
        let saved = match &loaded {
            // Changes that the editor has restored.
            Some(content) if is_other(content) => content.text.clone().unwrap_or_default(),
            Some(_) => text.clone(),
            None if disk::stamp(&path).is_some() => text.clone(),
            None => String::new(),
        };
        Self {
            path,
            place: None,
            text,
            saved,
            loaded,
            newer: None,
            before: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The text was changed: by the user, or since the editor has loaded the
    /// file again.
    pub(super) fn change(&mut self, changes: &[Change], encoding: Encoding) {
        apply(&mut self.text, changes, encoding);
        if self.text == self.saved {
            return;
        }
        let known = [&self.loaded, &self.newer];
        let now = disk::stamp(&self.path);
        let is_known = |content: &&Option<Content>| content.as_ref().map(|one| one.stamp) == now;
        if now.is_some() && !known.iter().any(is_known) {
            self.newer = disk::look(&self.path, LARGEST);
        }
        let is_shown = |content: &Content| content.is(&self.text) == Some(true);
        if self.newer.as_ref().is_some_and(is_shown) {
            self.before = Some(self.loaded.take());
            self.loaded = self.newer.take();
            self.saved.clone_from(&self.text);
        }
    }

    /// The editor has saved. Returns the hash of what it has written; `None` if
    /// it has changed nothing on disk, or if another process has written since.
    pub(super) fn save(&mut self, text: Option<&str>) -> Option<Hash> {
        if let Some(text) = text {
            self.text = normal(text);
        }
        self.saved.clone_from(&self.text);
        self.newer = None;
        let (loaded, before) = (self.loaded.take(), self.before.take());
        let found = disk::look(&self.path, u64::MAX)?;
        if found.is(&self.text) == Some(false) {
            return None;
        }
        let before = match before {
            // What was found is this save.
            Some(before) if loaded.as_ref().is_some_and(|one| one.stamp == found.stamp) => before,
            _ => loaded,
        };
        let hash = found.hash;
        self.loaded = Some(found);
        // The bytes that were there: an agent's, perhaps, loaded and saved again.
        let is_same = before.is_some_and(|before| before.hash == hash);
        (!is_same).then_some(hash)
    }

    /// Returns which lines the unsaved changes affect; `None` if there are none.
    pub(super) fn unsaved(&self) -> Option<Edit> {
        Edit::between(&self.saved, &self.text)
    }

    /// Returns what the editor shows now.
    pub(super) fn shown(&self) -> Shown {
        Shown {
            text: self.text.clone(),
            edit: self.unsaved(),
        }
    }
}

/// What an editor shows of a file.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    text: String,
    edit: Option<Edit>,
}

impl Shown {
    pub(super) fn is_unsaved(&self) -> bool {
        self.edit.is_some()
    }

    /// Returns a line, counted from 1; `None` if there are fewer.
    pub(super) fn line(&self, number: u32) -> Option<&str> {
        text::line(&self.text, number.checked_sub(1)?)
    }

    /// Returns the line of the saved file that a shown line is; `None` if it may
    /// have changed. Both from 1.
    pub(super) fn saved(&self, line: u32) -> Option<u32> {
        self.edit.map_or(Some(line), |edit| edit.saved(line))
    }

    /// Returns the shown line that a line of the saved file is; `None` if it may
    /// have changed. Both from 1.
    pub(super) fn now(&self, line: u32) -> Option<u32> {
        self.edit.map_or(Some(line), |edit| edit.shown(line))
    }

    /// Returns the lines that show a change, from 1; `None` if it is not shown:
    /// unsaved changes affect it, or the editor has not loaded it.
    pub(super) fn lines_of(&self, hunk: &ReviewHunk) -> Option<LineRange> {
        let start = self.now(hunk.lines.start.max(1))?;
        let end = self.now(hunk.lines.end.max(1))?;
        let lines = LineRange { start, end };
        if hunk.after.is_empty() {
            return Some(lines);
        }
        let after = normal(&hunk.after);
        let after = after.strip_suffix('\n').unwrap_or(&after).split('\n');
        let skipped = start.saturating_sub(1) as usize;
        let count = end.saturating_sub(start).saturating_add(1) as usize;
        let shown = self.text.split('\n').skip(skipped).take(count);
        after.eq(shown).then_some(lines)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use tempfile::TempDir;
    use touchmark_client::hash_of;

    use super::super::messages::{Position, Range};
    use super::*;

    fn whole(text: &str) -> [Change; 1] {
        let text = text.to_owned();
        [Change { range: None, text }]
    }

    fn open(on_disk: impl AsRef<[u8]>, text: &str) -> (TempDir, Document) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        fs::write(&path, on_disk).unwrap();
        (directory, Document::open(path, text))
    }

    fn type_in(document: &mut Document, text: &str) {
        document.change(&whole(text), Encoding::Utf16);
    }

    #[test]
    fn line_ends_and_marks_are_no_changes() {
        for on_disk in ["a\r\nb\r\n", "\u{feff}a\nb\n", "a\nb"] {
            assert_eq!(open(on_disk, "a\r\nb\r\n").1.unsaved(), None, "{on_disk:?}");
        }
        // A carriage return alone is a line end in VS Code, not in Neovim and Emacs.
        for shown in ["a\nb\n", "a\rb\n"] {
            assert_eq!(open("a\rb\n", shown).1.unsaved(), None, "{shown:?}");
        }
        assert!(open("a\rb\n", "a\nc\n").1.unsaved().is_some());
        // Not UTF-8: what the editor shows is what was loaded.
        assert_eq!(open(b"gr\xfc\xdfe\n", "grüße\n").1.unsaved(), None);
    }

    #[test]
    fn restored_changes_are_unsaved() {
        let (_directory, document) = open("a\nb\n", "a\nB\n");
        let lines = document.unsaved().unwrap().lines();
        assert_eq!((lines.start, lines.end), (2, 2));
    }

    #[test]
    fn a_file_that_does_not_exist_has_no_saved_text() {
        let directory = tempfile::tempdir().unwrap();
        let mut document = Document::open(directory.path().join("new"), "");
        assert_eq!(document.unsaved(), None);
        type_in(&mut document, "a\n");
        assert!(document.unsaved().is_some());
    }

    #[test]
    fn a_file_that_was_loaded_again_has_no_unsaved_changes() {
        let (_directory, mut document) = open("a\n", "a\n");
        fs::write(document.path(), "a\nagent\n").unwrap();
        assert_eq!(document.unsaved(), None);
        // In two steps, as some editors do it.
        type_in(&mut document, "");
        assert!(document.unsaved().is_some());
        type_in(&mut document, "a\nagent\n");
        assert_eq!(document.unsaved(), None);
        type_in(&mut document, "a\n");
        assert!(document.unsaved().is_some());
    }

    #[test]
    fn line_ends_that_another_program_converts_are_no_changes() {
        let (_directory, mut document) = open("a\nb\n", "a\nb\n");
        fs::write(document.path(), "a\r\nb\r\n").unwrap();
        // Helix loads the file again by the difference.
        let changes = [0, 1].map(|line| {
            let end = Position { line, character: 1 };
            Change {
                range: Some(Range { start: end, end }),
                text: "\r".to_owned(),
            }
        });
        document.change(&changes, Encoding::Utf8);
        assert_eq!(document.unsaved(), None);
    }

    #[test]
    fn a_save_has_the_hash_of_the_bytes() {
        let (_directory, mut document) = open("a\n", "a\n");
        type_in(&mut document, "b\r\n");
        fs::write(document.path(), "b\r\n").unwrap();
        assert_eq!(document.save(None), Some(hash_of(b"b\r\n")));
        assert_eq!(document.unsaved(), None);
        type_in(&mut document, "ü\n");
        fs::write(document.path(), b"\xfc\n").unwrap();
        assert_eq!(document.save(Some("ü\n")), Some(hash_of(b"\xfc\n")));
    }

    #[test]
    fn what_another_program_has_written_is_no_save() {
        let (_directory, mut document) = open("a\n", "a\n");
        type_in(&mut document, "b\n");
        fs::write(document.path(), "an agent's\n").unwrap();
        assert_eq!(document.save(None), None);
        // What the editor saves next is.
        type_in(&mut document, "c\n");
        fs::write(document.path(), "c\n").unwrap();
        assert_eq!(document.save(None), Some(hash_of(b"c\n")));
    }

    #[test]
    fn the_same_bytes_again_are_no_save() {
        let (_directory, mut document) = open("a\n", "a\n");
        fs::write(document.path(), "a\n").unwrap();
        assert_eq!(document.save(None), None);
        // Loaded again, and saved as it was loaded.
        fs::write(document.path(), "an agent's\n").unwrap();
        type_in(&mut document, "an agent's\n");
        let again = document.path().with_extension("new");
        fs::write(&again, "an agent's\n").unwrap();
        fs::rename(again, document.path()).unwrap();
        assert_eq!(document.save(None), None);
    }

    #[test]
    fn a_save_counts_that_is_found_before_it_is_reported() {
        let (_directory, mut document) = open("a\n", "a\n");
        fs::write(document.path(), "b\n").unwrap();
        type_in(&mut document, "b\n");
        assert_eq!(document.save(None), Some(hash_of(b"b\n")));
        assert_eq!(document.save(None), None);
    }

    #[test]
    fn a_change_is_shown_where_its_lines_are() {
        let (_directory, mut document) = open("a\nb\nc\n", "a\nb\nc\n");
        let hunk = |start, end, after: &str| ReviewHunk {
            id: "id".to_owned(),
            path: RelPath::new(b"a.txt").unwrap(),
            lines: LineRange { start, end },
            before: String::new(),
            after: after.to_owned(),
            created: None,
            deleted: None,
            authors: Vec::new(),
            time: 0,
            likely: None,
            command: None,
            viewed: None,
        };
        let place = |document: &Document, hunk: &ReviewHunk| {
            let lines = document.shown().lines_of(hunk)?;
            Some((lines.start, lines.end))
        };
        assert_eq!(place(&document, &hunk(2, 3, "b\r\nc\n")), Some((2, 3)));
        assert_eq!(place(&document, &hunk(2, 3, "b\nother\n")), None);
        assert_eq!(place(&document, &hunk(0, 0, "")), Some((1, 1)));
        type_in(&mut document, "new\na\nb\nc\n");
        assert_eq!(place(&document, &hunk(2, 3, "b\nc\n")), Some((3, 4)));
        type_in(&mut document, "a\nB\nc\n");
        assert_eq!(place(&document, &hunk(2, 3, "b\nc\n")), None);
    }
}
