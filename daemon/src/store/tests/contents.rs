//! Kept contents: readable at once, capped, checked.

use sha2::{Digest as _, Sha256};

use super::super::contents::Table;
use super::*;

fn content(seed: u8, size: usize) -> (Hash, Arc<[u8]>) {
    let bytes = vec![seed; size];
    (Hash(Sha256::digest(&bytes).into()), bytes.into())
}

#[test]
fn a_content_is_readable_at_once_and_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    let reader = world.opened.store.reader().unwrap();
    let (small, bytes) = content(1, 10);
    let (empty, nothing) = content(1, 0);
    let (large, much) = content(2, (1 << 20) + 1);
    world.opened.store.keep(small, Arc::clone(&bytes));
    world.opened.store.keep(empty, nothing);
    world.opened.store.keep(large, much);
    assert_eq!(reader.content(&small).unwrap(), Some(Arc::clone(&bytes)));
    drop(reader);
    world.close();

    let world = super::world(directory.path());
    let reader = world.opened.store.reader().unwrap();
    assert_eq!(reader.content(&small).unwrap(), Some(bytes));
    assert_eq!(reader.content(&empty).unwrap().as_deref(), Some(&[][..]));
    assert_eq!(reader.content(&large).unwrap(), None, "larger than the cap");
    assert_eq!(reader.content(&hash(1)).unwrap(), None);
    let (done, told) = std::sync::mpsc::channel();
    world
        .opened
        .store
        .forget_contents(move || done.send(()).unwrap());
    told.recv().unwrap();
    drop(reader);
    world.close();

    let bytes = fs::read(directory.path().join("store.db")).unwrap();
    assert!(!bytes.windows(10).any(|window| window == [1; 10]), "purged");
    let world = super::world(directory.path());
    let reader = world.opened.store.reader().unwrap();
    assert_eq!(reader.content(&small).unwrap(), None);
}

#[test]
fn the_least_recently_used_go_when_the_cap_is_reached() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let mut connection = super::super::schema::open(&file, Durability::Process, false).unwrap();
    let waiting = Waiting::new(1 << 20, []);
    let mut table = Table::new(100_000);
    let contents: Vec<_> = (0..20).map(|seed| content(seed, 20_000)).collect();
    let kept = |connection: &rusqlite::Connection| -> Vec<usize> {
        let mut statement = connection.prepare("SELECT hash FROM content").unwrap();
        let rows = statement
            .query_map([], |row| row.get::<_, Vec<u8>>(0))
            .unwrap();
        let hashes: Vec<_> = rows.map(Result::unwrap).collect();
        (0..contents.len())
            .filter(|i| hashes.iter().any(|hash| *hash == contents[*i].0.0))
            .collect()
    };
    for (hash, bytes) in &contents[..5] {
        assert!(waiting.keep(*hash, Arc::clone(bytes)) || !waiting.is_empty());
    }
    while !waiting.is_empty() {
        table.write(&mut connection, &waiting).unwrap();
    }
    assert_eq!(kept(&connection), [0, 1, 2, 3, 4]);
    // The oldest was just used, so the next oldest has to go; a table opened
    // anew knows the order.
    table.used(&mut connection, &[contents[0].0]).unwrap();
    let mut table = Table::new(100_000);
    waiting.keep(contents[5].0, Arc::clone(&contents[5].1));
    table.write(&mut connection, &waiting).unwrap();
    assert_eq!(kept(&connection), [0, 2, 3, 4, 5]);
    // Kept again: used, not doubled.
    waiting.keep(contents[2].0, Arc::clone(&contents[2].1));
    table.write(&mut connection, &waiting).unwrap();
    waiting.keep(contents[6].0, Arc::clone(&contents[6].1));
    table.write(&mut connection, &waiting).unwrap();
    assert_eq!(kept(&connection), [0, 2, 4, 5, 6]);
    for (hash, bytes) in &contents {
        waiting.keep(*hash, Arc::clone(bytes));
        table.write(&mut connection, &waiting).unwrap();
        let total: i64 = connection
            .query_row("SELECT sum(size) FROM content", [], |row| row.get(0))
            .unwrap();
        assert!(total <= 100_000, "{total}");
    }
    assert_eq!(kept(&connection), [15, 16, 17, 18, 19]);
}

#[test]
fn what_waits_in_memory_is_bounded() {
    let waiting = Waiting::new(1 << 20, []);
    for seed in 0..40 {
        let (hash, bytes) = content(seed, 1 << 20);
        waiting.keep(hash, bytes);
    }
    let there = |seed| waiting.get(&content(seed, 1 << 20).0).is_some();
    assert!(there(39) && there(24), "the newest sixteen");
    assert!(!there(23) && !there(0));
}

#[test]
fn a_content_that_changed_on_disk_is_not_returned() {
    let directory = tempfile::tempdir().unwrap();
    let (hash, bytes) = content(1, 100);
    let world = world(directory.path());
    world.opened.store.keep(hash, bytes);
    world.close();
    let connection = rusqlite::Connection::open(directory.path().join("store.db")).unwrap();
    connection
        .execute("UPDATE content SET body = zeroblob(100)", [])
        .unwrap();
    connection.close().unwrap();
    let world = super::world(directory.path());
    let reader = world.opened.store.reader().unwrap();
    assert_eq!(reader.content(&hash).unwrap(), None);
}
