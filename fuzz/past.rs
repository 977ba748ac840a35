//! The bodies of the fuzz targets `index` and `repository`: git's binary files,
//! and its texts. They are a module of the daemon's, since they call what is
//! private there.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::io::Cursor;
use std::path::Path;

use super::Blobs;
use super::committed::{self, Shallow};
use super::notes::Note;
use crate::fuzzed::scratch;
use crate::git::files::{Configured, branch, common_directory, line, own_directory};
use crate::git::index::{GitIndex, ObjectId};
use crate::git::{LATEST, Object, parsed, reflog};

fn fill(at: &Path) {
    fs::create_dir_all(at.join("objects/pack")).unwrap();
    fs::write(at.join("objects/pack/p.pack"), "").unwrap();
    // Files of one inode, so that one write changes all.
    fs::write(at.join("log"), "").unwrap();
    for name in [".git", "commondir", "objects/pack/p.idx"] {
        fs::hard_link(at.join("log"), at.join(name)).unwrap();
    }
}

/// Reads the bytes as an index, or as the index of a pack. An index that is read
/// is sorted, has what it names, and is no larger than its limits say.
pub fn index(bytes: &[u8]) {
    if let Some(index) = GitIndex::parse(Cursor::new(bytes), bytes.len() as u64) {
        let names: Vec<&[u8]> = index.names().collect();
        assert!(names.is_sorted());
        // An entry has 62 bytes at least, whatever its name has in common with
        // the one before.
        assert!(names.len() <= bytes.len() / 62);
        for name in &names {
            assert!((1..=4_096).contains(&name.len()));
            let entry = index.entry_of(name).unwrap();
            assert_eq!(ObjectId::from_digits(&entry.id.digits()), Some(entry.id));
            assert!(index.has_below(name));
            assert!(!(entry.is_plain() && (entry.is_unmerged() || entry.is_skipped())));
        }
        let unmerged: Vec<Vec<u8>> = index.unmerged();
        assert!(unmerged.len() <= names.len());
    }
    if bytes.first() == Some(&0xff) {
        let at = scratch("past", fill);
        fs::write(at.join("log"), bytes).unwrap();
        let mut blobs = Blobs::of(&at);
        let ids = bytes.get(1032..).unwrap_or_default().chunks_exact(20);
        for id in ids.take(8).chain([&[0; 20][..], &[0xff; 20]]) {
            blobs.since(&ObjectId::Sha1(id.try_into().unwrap()), 0);
        }
    }
}

/// Reads the bytes as each of git's texts: `HEAD` and other files of one line,
/// its log, a configuration, a commit, a note, and what `git blame` prints.
/// Times are those of clocks, ids are ids, and lines are not more than there
/// were.
pub fn repository(bytes: &[u8]) {
    let at = scratch("past", fill);
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    fs::write(at.join("log"), bytes).unwrap();
    let moves = reflog::moves_in(&at.join("log"), 1 << 20);
    assert!(moves.len() <= lines);
    for one in &moves {
        assert!(ObjectId::from_digits(&one.id).is_some() && one.second <= LATEST);
        let (what, _) = one.operation();
        assert!(one.why.starts_with(what));
        // A move that makes a commit out of files makes one.
        assert!(one.makes_commit() || !one.is_commit());
        one.amends();
    }
    if let Some(first) = line(&at.join("log")) {
        assert!(!first.contains('\n') && first.len() <= 4 << 10);
        branch(&first);
    }
    own_directory(&at);
    common_directory(&at);
    let configured = Configured::read_file(&at.join("log"));
    for key in ["bare", "autocrlf", "worktree"] {
        let value = configured.value("core", key).unwrap_or("true");
        assert!(value.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }
    if let Some(commit) = parsed(Object::Whole("1".repeat(40), bytes.to_vec())) {
        assert!(commit.time <= LATEST && commit.merged.len() < lines);
    }
    let text = String::from_utf8_lossy(bytes);
    let note = Note::of(&text);
    for line in [0, 1, 7, u32::MAX] {
        note.author("a", line);
    }
    for shallow in [Shallow::listed(&text), Shallow::Unclear] {
        let runs = committed::parsed(bytes, &shallow);
        assert!(runs.len() <= lines);
        for run in runs {
            let author = run.of.commit.author.as_deref().unwrap_or_default();
            assert!(author.chars().count() <= 200 && run.of.time <= LATEST * 1_000);
        }
    }
}
