//! DUR-2: a record that cannot be read is left out alone. A file that differs
//! from what was written is set aside.

use super::*;

/// Makes a closed store with these facts. Returns its epoch.
pub(super) fn closed(directory: &Path, last: u64) -> u64 {
    let world = world(directory);
    world.store(&records(1..=last));
    let epoch = world.opened.epoch;
    world.close();
    epoch
}

/// Makes a store as a crash leaves it, with all its facts in the log. Returns
/// its epoch.
fn crashed(directory: &Path, last: u64) -> u64 {
    let live = tempfile::tempdir().unwrap();
    let world = world(live.path());
    world.store(&records(1..=last));
    copy(live.path(), directory);
    world.opened.epoch
}

/// Checks that the store opens with a new epoch and nothing but facts that it
/// had, works, and that the old files are there under another name. Returns the
/// number of facts that were kept.
fn is_set_aside(directory: &Path, epoch: u64, what: &str) -> usize {
    let damaged = fs::read(directory.join("store.db")).ok();
    let world = world(directory);
    let trouble = world.opened.trouble.as_deref().unwrap_or_default();
    assert!(trouble.contains("set aside"), "{what}: {trouble}");
    assert_ne!(world.opened.epoch, epoch, "{what}");
    let mut facts = world.opened.facts.clone();
    let kept = facts.len();
    for record in &facts {
        assert!(records(record.n..=record.n).contains(record), "{what}");
    }
    let names = aside(directory);
    assert!(!names.is_empty(), "{what}");
    if let Some(damaged) = damaged {
        // Opening may have copied the log back into it, and nothing else.
        let kept = fs::read(directory.join(&names[0])).unwrap();
        assert!(kept.len() >= damaged.len(), "{what}");
    }
    let last = facts.last().map_or(0, |record| record.n);
    let more = records(last + 1..=last + 3);
    world.store(&more);
    facts.extend(more);
    let fresh = world.opened.epoch;
    world.close();
    let world = super::world(directory);
    assert_eq!(world.opened.epoch, fresh, "{what}");
    assert_eq!(world.opened.trouble, None, "{what}");
    assert_eq!(world.opened.facts, facts, "{what}");
    kept
}

#[test]
fn a_file_cut_short_is_set_aside() {
    let whole = tempfile::tempdir().unwrap();
    let epoch = closed(whole.path(), 300);
    let length = fs::metadata(whole.path().join("store.db")).unwrap().len();
    for cut in [0, 1, 100, 4096, 5000, length / 2, length - 4096] {
        let directory = tempfile::tempdir().unwrap();
        copy(whole.path(), directory.path());
        fs::OpenOptions::new()
            .write(true)
            .open(directory.path().join("store.db"))
            .unwrap()
            .set_len(cut)
            .unwrap();
        is_set_aside(
            directory.path(),
            epoch,
            &format!("cut to {cut} of {length}"),
        );
    }
}

#[test]
fn a_file_of_something_else_is_set_aside() {
    for content in [
        &b"not a database at all, but long enough to be read"[..],
        &[0; 8192],
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("store.db"), content).unwrap();
        is_set_aside(directory.path(), 0, "foreign");
        let kept = directory.path().join(&aside(directory.path())[0]);
        assert_eq!(fs::read(kept).unwrap(), content);
    }
}

#[test]
fn a_file_that_vanished_is_a_new_epoch() {
    let directory = tempfile::tempdir().unwrap();
    let epoch = closed(directory.path(), 10);
    fs::remove_file(directory.path().join("store.db")).unwrap();
    is_set_aside(directory.path(), epoch, "vanished");
}

/// Opens a store with one byte changed. The store never returns wrong facts:
/// all of them are there, or a record is left out and that is reported, or
/// everything was set aside, or opening fails.
fn flipped(whole: &Path, name: &str, at: usize, last: u64, epoch: u64) -> bool {
    let directory = tempfile::tempdir().unwrap();
    copy(whole, directory.path());
    let file = directory.path().join(name);
    let mut bytes = fs::read(&file).unwrap();
    bytes[at] ^= 0x55;
    fs::write(&file, bytes).unwrap();
    match open(&options(directory.path()), |_| ()) {
        Ok(opened) if opened.trouble.is_none() => {
            assert_eq!(opened.facts, records(1..=last), "{name} at {at}");
            false
        }
        Ok(opened) => {
            assert_ne!(opened.epoch, epoch);
            let there = records(1..=last);
            assert!(opened.facts.iter().all(|fact| there.contains(fact)));
            if aside(directory.path()).is_empty() {
                assert!(opened.left_out && opened.store.unreadable() > 0);
                assert!(opened.facts.len() > 50, "{}", opened.facts.len());
            }
            true
        }
        Err(error) => {
            // The header's bytes 60 to 63 are the schema's version.
            assert!(
                matches!(error, StoreError::Incompatible { .. }),
                "{name} at {at}: {error}"
            );
            assert!((60..64).contains(&at), "{at}");
            true
        }
    }
}

#[test]
fn a_changed_byte_is_found_or_harmless() {
    let whole = tempfile::tempdir().unwrap();
    let epoch = closed(whole.path(), 60);
    let length = fs::metadata(whole.path().join("store.db")).unwrap().len();
    let positions = (0..100).chain((100..usize::try_from(length).unwrap()).step_by(397));
    let found = positions
        .filter(|at| flipped(whole.path(), "store.db", *at, 60, epoch))
        .count();
    assert!(found > 20, "{found}");
}

#[test]
fn a_changed_byte_in_the_log_is_found() {
    let whole = tempfile::tempdir().unwrap();
    let epoch = crashed(whole.path(), 20);
    let length = fs::metadata(whole.path().join("store.db-wal"))
        .unwrap()
        .len();
    let length = usize::try_from(length).unwrap();
    for at in (0..32)
        .chain((32..length).step_by(3_001))
        .chain([length - 1])
    {
        // Without the check of the newest fact, SQLite would go back to the
        // last complete transaction and report nothing.
        let found = flipped(whole.path(), "store.db-wal", at, 20, epoch);
        assert!(found || at < 32, "{at} of {length}");
    }
}

#[test]
fn a_log_cut_short_is_found() {
    let whole = tempfile::tempdir().unwrap();
    let epoch = crashed(whole.path(), 20);
    let length = fs::metadata(whole.path().join("store.db-wal"))
        .unwrap()
        .len();
    for cut in [0, 10, 32, length / 2, length - 4096 - 24, length - 1] {
        let directory = tempfile::tempdir().unwrap();
        copy(whole.path(), directory.path());
        fs::OpenOptions::new()
            .write(true)
            .open(directory.path().join("store.db-wal"))
            .unwrap()
            .set_len(cut)
            .unwrap();
        is_set_aside(directory.path(), epoch, &format!("log cut to {cut}"));
    }
}

#[test]
fn stores_set_aside_do_not_replace_each_other() {
    let directory = tempfile::tempdir().unwrap();
    for content in ["first", "second", "third"] {
        for name in ["store.db", "store.db-wal", "store.last"] {
            let _ = fs::remove_file(directory.path().join(name));
        }
        fs::write(directory.path().join("store.db"), content).unwrap();
        world(directory.path()).close();
    }
    let contents: Vec<_> = aside(directory.path())
        .iter()
        .map(|name| fs::read_to_string(directory.path().join(name)).unwrap())
        .collect();
    assert_eq!(contents, ["first", "second", "third"]);
}

#[test]
fn after_a_power_cut_the_facts_stay_and_the_epoch_is_new() {
    let directory = tempfile::tempdir().unwrap();
    let epoch = crashed(directory.path(), 20);
    let witness = directory.path().join("store.last");
    let says = fs::read_to_string(&witness).unwrap();
    let (_, rest) = says.split_at(36);
    fs::write(&witness, format!("{:<36}{rest}", "another-boot")).unwrap();

    let world = world(directory.path());
    assert!(world.opened.epoch > epoch);
    assert_eq!(world.opened.facts, records(1..=20));
    assert!(world.opened.trouble.is_some());
    assert!(aside(directory.path()).is_empty());
}

#[test]
fn a_file_that_lacks_its_last_byte_lacks_one_record() {
    let directory = tempfile::tempdir().unwrap();
    let epoch = closed(directory.path(), 300);
    let file = directory.path().join("store.db");
    let mut bytes = fs::read(&file).unwrap();
    bytes.pop();
    fs::write(&file, bytes).unwrap();
    let world = world(directory.path());
    assert!(world.opened.left_out && world.opened.epoch > epoch);
    assert_eq!(world.opened.facts.len(), 299);
    world.store(&records(301..=310));
    world.close();
    let world = super::world(directory.path());
    assert_eq!(
        (world.opened.facts.len(), world.opened.trouble.clone()),
        (309, None)
    );
}

/// Runs SQL on a closed store's file.
fn with_sql(directory: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(directory.join("store.db")).unwrap();
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
}

const SPOILED: &str = "UPDATE fact SET body = x'8182' || substr(body, 3) WHERE n IN (5, 6);";

#[test]
fn a_record_that_cannot_be_read_costs_itself() {
    let directory = tempfile::tempdir().unwrap();
    let epoch = closed(directory.path(), 12);
    with_sql(directory.path(), SPOILED);
    with_sql(directory.path(), "DELETE FROM fact WHERE n = 9");
    with_sql(
        directory.path(),
        "UPDATE fact SET time = 'noon' WHERE n = 12",
    );
    let left: Vec<_> = records(1..=11)
        .into_iter()
        .filter(|record| ![5, 6, 9].contains(&record.n))
        .collect();

    let world = world(directory.path());
    let trouble = world.opened.trouble.clone().unwrap();
    assert!(trouble.starts_with("4 records of the store"), "{trouble}");
    assert!(
        trouble.contains("fact 5 is not what was stored"),
        "{trouble}"
    );
    assert!(world.opened.epoch > epoch);
    assert!(world.opened.left_out);
    assert_eq!((&world.opened.facts, world.opened.last), (&left, 12));
    assert_eq!(world.opened.store.unreadable(), 4);
    assert!(aside(directory.path()).is_empty());
    world.store(&records(13..=13));
    let epoch = world.opened.epoch;
    world.close();

    // The loss is reported once, the epoch changes once, and the records stay
    // counted.
    let world = super::world(directory.path());
    assert_eq!(
        (world.opened.trouble.clone(), world.opened.epoch),
        (None, epoch)
    );
    assert!(!world.opened.left_out);
    assert_eq!(world.opened.facts, [left, records(13..=13)].concat());
    assert_eq!(world.opened.store.unreadable(), 4);
    // Lists that begin before fact 12 would be incomplete.
    let reader = world.opened.store.readers().open().unwrap();
    assert_eq!(reader.oldest().unwrap(), Some(12));
    assert_eq!(reader.unreadable(&path("a.txt"), None).unwrap(), Some(5));
}

#[test]
fn without_its_snapshot_a_store_has_its_history() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    world.store(&records(1..=30));
    world.opened.store.snapshot(20, b"a state".to_vec());
    let epoch = world.opened.epoch;
    world.close();
    with_sql(directory.path(), "UPDATE snapshot SET body = x'00'");

    let left: Vec<_> = records(1..=30)
        .into_iter()
        .filter(|record| record.n > 20 || record.n % 3 > 0)
        .collect();
    for again in [false, true] {
        let world = super::world(directory.path());
        assert_eq!(world.opened.trouble.is_some(), !again);
        assert!(world.opened.epoch > epoch);
        assert_eq!(world.opened.snapshot, None);
        assert_eq!((&world.opened.facts, world.opened.last), (&left, 30));
        assert_eq!(world.opened.store.unreadable(), 1);
        let reader = world.opened.store.readers().open().unwrap();
        assert_eq!(reader.history(&path("a.txt"), None, 99).unwrap().len(), 20);
        world.close();
    }
    assert!(aside(directory.path()).is_empty());
}

#[test]
fn a_lookup_leaves_out_what_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    world.store(&records(1..=30));
    world.opened.store.snapshot(30, b"a state".to_vec());
    world.close();
    with_sql(directory.path(), SPOILED);

    let world = super::world(directory.path());
    assert_eq!(
        (
            world.opened.trouble.clone(),
            world.opened.store.unreadable()
        ),
        (None, 0)
    );
    let reader = world.opened.store.readers().open().unwrap();
    let history = reader.history(&path("a.txt"), Some(8), 3).unwrap();
    let numbers: Vec<_> = history.iter().map(|record| record.n).collect();
    // The limit counts readable records only, since a page with fewer records
    // is treated as the end of the history.
    assert_eq!(numbers, [7, 4, 2]);
    // A list of everything since then would be incomplete.
    let since = reader.versions_after(3).unwrap_err();
    assert_eq!(since.code(), touchmark_proto::ErrorCode::UnknownClock);
    assert_eq!(reader.versions_after(5).unwrap().len(), 8);
    world.close();

    let world = super::world(directory.path());
    assert_eq!(world.opened.store.unreadable(), 1);
    let reader = world.opened.store.readers().open().unwrap();
    assert_eq!(reader.oldest().unwrap(), Some(5));
}

#[test]
fn a_file_whose_structure_is_damaged_is_no_matter_of_records() {
    let directory = tempfile::tempdir().unwrap();
    let epoch = closed(directory.path(), 300);
    with_sql(
        directory.path(),
        "UPDATE fact SET body = x'00' WHERE n = 7;
         PRAGMA writable_schema = 1;
         UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'fact_path';",
    );
    let kept = is_set_aside(directory.path(), epoch, "another table's page for an index");
    assert_eq!(kept, 299);
}

/// Each page of a store in turn. Damage that a start does not look at is found
/// by the lookup that needs the page, and mended by the next start.
#[test]
fn a_page_that_is_gone_costs_the_facts_on_it() {
    const FACTS: u64 = 1_500;
    const PAGE: usize = 4_096;
    let whole = tempfile::tempdir().unwrap();
    let epoch = closed(whole.path(), FACTS);
    let mut pages = fs::read(whole.path().join("store.db")).unwrap().len() / PAGE;
    assert!(pages > 20, "{pages}");
    let (mut mended, mut lost) = (0, 0);
    while pages > 0 {
        pages -= 1;
        let directory = tempfile::tempdir().unwrap();
        copy(whole.path(), directory.path());
        let file = directory.path().join("store.db");
        let mut bytes = fs::read(&file).unwrap();
        let header = if pages == 0 { 100 } else { 0 };
        bytes[pages * PAGE + header..(pages + 1) * PAGE].fill(0);
        fs::write(&file, bytes).unwrap();
        let world = world(directory.path());
        let at_once = !aside(directory.path()).is_empty();
        let reader = world.opened.store.readers().open().unwrap();
        let names = ["a.txt", "b.txt"].map(path);
        let looked = names.map(|name| reader.history(&name, None, usize::MAX));
        let failed = looked.iter().any(Result::is_err);
        assert!(!(at_once && failed), "page {pages}: {looked:?}");
        if failed {
            while !matches!(world.event(), StoreEvent::Malformed { .. }) {}
        }
        drop(reader);
        world.close();
        if failed {
            let kept = is_set_aside(directory.path(), epoch, &format!("page {pages}"));
            assert!(kept as u64 > FACTS - 200, "page {pages}: {kept}");
            mended += 1;
        } else if at_once {
            let world = super::world(directory.path());
            match world.opened.facts.len() as u64 {
                0 => lost += 1,
                kept => assert!(kept > FACTS - 200, "page {pages}: {kept}"),
            }
        }
    }
    // The schema's page, and the top page of the table of facts.
    assert!(mended > 0 && lost <= 2, "{mended} mended, {lost} lost");
}

#[test]
fn a_record_of_a_newer_format_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path(), 12);
    let body = seal::close(5, 50, vec![0x82, 1, 2, 3]);
    let body: String = body.iter().map(|byte| format!("{byte:02x}")).collect();
    with_sql(
        directory.path(),
        &format!("UPDATE fact SET body = x'{body}' WHERE n = 5"),
    );
    let file = directory.path().join("store.db");
    let before = fs::read(&file).unwrap();
    let refused = open(&options(directory.path()), |_| ()).err().unwrap();
    assert_eq!(refused, StoreError::newer_record(2, 1));
    assert_eq!(refused.code(), touchmark_proto::ErrorCode::Incompatible);
    assert_eq!(fs::read(&file).unwrap(), before);
    assert!(aside(directory.path()).is_empty());
}

/// Runs SQL on a closed store's file.
fn changed(directory: &Path, statements: &str) {
    let connection = rusqlite::Connection::open(directory.join("store.db")).unwrap();
    connection.execute_batch(statements).unwrap();
    connection.close().unwrap();
}

/// Opens and closes a store. Returns its epoch, and whether there was trouble.
fn epoch_of(directory: &Path) -> (u64, bool) {
    let world = world(directory);
    assert_eq!(world.opened.facts, records(1..=3));
    let told = (world.opened.epoch, world.opened.trouble.is_some());
    world.close();
    told
}

#[test]
fn an_epoch_that_is_not_what_was_stored_is_not_believed() {
    for damage in [
        "DELETE FROM meta WHERE key = 'sealed_epoch'",
        "UPDATE meta SET key = 'realed_epoch' WHERE key = 'sealed_epoch'",
        "UPDATE meta SET value = 17 WHERE key = 'sealed_epoch'",
        "UPDATE meta SET value = CAST(x'1100000000000000' || substr(value, 9) AS BLOB)
         WHERE key = 'sealed_epoch'",
        "UPDATE meta SET value = CAST(value AS TEXT) WHERE key = 'sealed_epoch'",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let epoch = closed(directory.path(), 3);
        changed(directory.path(), damage);
        let (new, trouble) = epoch_of(directory.path());
        assert!(trouble && new > epoch, "{damage}: {new}, was {epoch}");
        assert_eq!(epoch_of(directory.path()), (new, false), "{damage}");
    }
}

#[test]
fn a_page_of_facts_in_the_place_of_what_cannot_be_read_is_not_counted() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path(), 3);
    let file = directory.path().join("store.db");
    let connection = rusqlite::Connection::open(&file).unwrap();
    let root = |table: &str| -> usize {
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
        let page: i64 = connection
            .query_row(sql, [table], |row| row.get(0))
            .unwrap();
        (usize::try_from(page).unwrap() - 1) * 4_096
    };
    let (from, to) = (root("fact"), root("unreadable"));
    connection.close().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    bytes.copy_within(from..from + 4_096, to);
    fs::write(&file, bytes).unwrap();
    let world = world(directory.path());
    assert_eq!(world.opened.facts, records(1..=3));
    assert_eq!(world.opened.store.unreadable(), 0);
}
