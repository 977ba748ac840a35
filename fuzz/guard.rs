//! A part of the fuzz target `journal`: the record of a guarded write, and the
//! description of stored bytes.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use super::intent::{Intent, Intents};
use super::recovery::Recovery;
use super::settings::Keep;
use crate::fuzzed::scratch;

/// Opens the bytes as both. A record of a write is read as it is written. Stored
/// bytes are in the directory of their description.
pub(crate) fn writes(bytes: &[u8]) {
    let at = scratch("guard", |_| ());
    let intents = Intents::open(at.join("intents"), false).unwrap();
    fs::write(at.join("intents/1-1.json"), bytes).unwrap();
    let left: Vec<Intent> = intents
        .left()
        .iter()
        .map(|one| one.intent.clone())
        .collect();
    assert!(left.len() <= 1);
    for intent in left {
        let _replaced = fs::remove_file(at.join("intents/1-1.json"));
        let recorded = intents.record(intent.clone()).unwrap();
        let found: Vec<Intent> = intents
            .left()
            .iter()
            .map(|one| one.intent.clone())
            .collect();
        assert_eq!(found, [intent]);
        recorded.end();
    }
    let _none_left = fs::remove_dir_all(at.join("intents"));

    let keep = Keep {
        age: u64::MAX,
        bytes: u64::MAX,
        ignored: 1 << 20,
    };
    let directory = at.join("recovery");
    drop(Recovery::open(directory.clone(), keep).unwrap());
    fs::write(directory.join("r1.json"), bytes).unwrap();
    let recovery = Recovery::open(directory.clone(), keep).unwrap();
    for item in recovery.list() {
        assert_eq!(recovery.get(&item.id).as_ref(), Some(&item));
        recovery.real(&item.id);
        let stored = PathBuf::from(&item.file);
        assert_eq!(stored.parent(), Some(&*directory));
        let _none_stored = super::recovery::read(&item, 10);
    }
}
