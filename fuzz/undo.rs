//! A part of the fuzz target `journal`: the entry of an undo.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;

use super::Journal;
use crate::fuzzed::scratch;
use crate::past::entry::Entry;

/// Opens a journal with this entry. It is read as it is written, stays where it
/// cannot be read, and names no content outside of its own file.
pub(crate) fn undo(bytes: &[u8]) {
    let at = scratch("undo", |_| ());
    let directory = at.join("undo/1");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("entry.json"), bytes).unwrap();
    fs::write(directory.join("contents"), "one\ntwo\n").unwrap();
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(at.join("undo"), fs::Permissions::from_mode(0o700)).unwrap();
    }
    let journal = Journal::open(&at, false).unwrap();
    let left = journal.left();
    assert!(directory.join("contents").is_file());
    journal.recorded();
    assert!(journal.rows().len() <= 1);
    let Ok(entry) = serde_json::from_slice::<Entry>(bytes) else {
        assert!(left.is_empty() && journal.rows().is_empty());
        return;
    };
    let again = serde_json::to_vec(&entry).unwrap();
    assert_eq!(serde_json::from_slice::<Entry>(&again).unwrap(), entry);
    entry.facts();
    if entry.number == 1 {
        assert_eq!(journal.entry(Some("u1")).as_ref(), Ok(&entry));
    }
    for (at, file) in entry.files.iter().enumerate() {
        for bytes in journal.contents(&entry, at).into_iter().flatten().flatten() {
            assert!(bytes.len() <= 8);
        }
        journal.stored(&entry, at, file.after);
        journal.redo_of(&entry, at);
        file.modes();
        file.begins_as(file);
    }
}
