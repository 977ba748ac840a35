//! The cost of many versions of many files.

use std::time::Instant;

use super::*;

/// The number of files, and the approximate size of each in bytes.
const FILES: u64 = 600;
const BYTES: usize = 11_700;

/// Returns a line like that of a program: words of a vocabulary, numbers,
/// indentation.
pub(super) fn line(seed: u64) -> String {
    const WORDS: [&str; 24] = [
        "let", "match", "return", "self", "value", "index", "store", "reader", "content", "hash",
        "version", "session", "path", "result", "error", "None", "Some", "while", "for", "if",
        "state", "writer", "table", "commit",
    ];
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % 10_007).unwrap()
    };
    let mut text = "    ".repeat(next() % 4);
    for _ in 0..3 + next() % 6 {
        text.push_str(WORDS[next() % WORDS.len()]);
        text.push_str(["(", ") ", ".", " = ", ", ", "::"][next() % 6]);
    }
    text.push_str(&format!("{};\n", next()));
    text
}

/// Returns a file's initial lines.
pub(super) fn lines(file: u64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut bytes = 0;
    while bytes < BYTES {
        let line = line(file * 10_000 + lines.len() as u64);
        bytes += line.len();
        lines.push(line);
    }
    lines
}

pub(super) fn content_of(lines: &[String]) -> (Hash, Arc<[u8]>) {
    let bytes = lines.concat().into_bytes();
    (Hash::of(&bytes), bytes.into())
}

#[test]
#[ignore = "measures"]
fn measure_a_storm() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    let files = 3_000_u64;
    let mut all: Vec<Vec<String>> = (0..files).map(lines).collect();
    let mut n = 0;
    let mut hashes = Vec::new();
    for (file, lines) in all.iter().enumerate() {
        n += 1;
        let (hash, bytes) = content_of(lines);
        world.opened.store.keep(hash, Arc::clone(&bytes));
        let mut record = baseline(n, &format!("f{file}"));
        if let Fact::Baseline { held, .. } = &mut record.fact {
            held.hash = Some(hash);
        }
        world.commit(n, vec![record]);
        hashes.push(hash);
        std::thread::sleep(Duration::from_millis(if file % 100 == 0 { 60 } else { 0 }));
    }
    std::thread::sleep(Duration::from_secs(3));
    for (file, lines) in all.iter_mut().enumerate() {
        lines[file % 50] = line(n + 1_000_000);
    }
    let contents: Vec<_> = all.iter().map(|lines| content_of(lines)).collect();
    let begun = Instant::now();
    let mut slowest = Duration::ZERO;
    for (file, (hash, bytes)) in contents.iter().enumerate() {
        n += 1;
        let mut record = version(n, &format!("f{file}"));
        if let Fact::Version(version) = &mut record.fact {
            version.held.hash = Some(*hash);
            version.before = Some(hashes[file]);
        }
        let one = Instant::now();
        world.opened.store.keep(*hash, Arc::clone(bytes));
        world.commit(n, vec![record]);
        slowest = slowest.max(one.elapsed());
    }
    while world.event() != (StoreEvent::Committed { turn: n }) {}
    let handed = begun.elapsed();
    let reader = world.opened.store.readers().open().unwrap();
    drop(reader);
    world.close();
    println!(
        "handed over {handed:?}, slowest {slowest:?}, all written {:?}, {} bytes",
        begun.elapsed(),
        fs::metadata(directory.path().join("store.db"))
            .unwrap()
            .len()
    );
}

/// Agents change one line at a time: nothing may be dropped.
#[test]
fn keep1_fifteen_thousand_versions_take_little_room() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    let store = &world.opened.store;
    let mut all: Vec<Vec<String>> = (0..FILES).map(lines).collect();
    let mut held: Vec<Option<Hash>> = vec![None; all.len()];
    let mut some = Vec::new();
    let mut n = 0;
    for round in 0..25_usize {
        for (file, lines) in all.iter_mut().enumerate() {
            n += 1;
            let at = (round * 41 + file) % lines.len();
            lines[at] = line(n + 1_000_000_000);
            let (hash, bytes) = content_of(lines);
            if n % 101 == 0 {
                some.push((hash, Arc::clone(&bytes)));
            }
            store.keep(hash, bytes);
            let mut record = version(n, &format!("src/f{file}.rs"));
            if let Fact::Version(version) = &mut record.fact {
                version.author = Author::agent(session());
                version.held.hash = Some(hash);
                version.before = held[file].replace(hash);
            }
            world.commit(n, vec![record]);
        }
    }
    while world.event() != (StoreEvent::Committed { turn: n }) {}
    world.close();
    let size = fs::metadata(directory.path().join("store.db"))
        .unwrap()
        .len();
    println!("{n} versions: {size} bytes");
    assert!(size <= 15 << 20, "{size}");

    let world = super::world(directory.path());
    let reader = world.opened.store.readers().open().unwrap();
    for (hash, bytes) in some {
        assert_eq!(reader.content(&hash).unwrap(), Some(bytes));
    }
}
