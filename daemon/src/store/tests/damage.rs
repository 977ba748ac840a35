//! DUR-2: a store that is not what was written is set aside.

use super::*;

/// A closed store with these facts, and its epoch.
fn closed(directory: &Path, last: u64) -> u64 {
    let world = world(directory);
    world.store(&records(1..=last));
    let epoch = world.opened.epoch;
    world.close();
    epoch
}

/// A store as a crash leaves it, with all its facts in the log.
fn crashed(directory: &Path, last: u64) -> u64 {
    let live = tempfile::tempdir().unwrap();
    let world = world(live.path());
    world.store(&records(1..=last));
    copy(live.path(), directory);
    world.opened.epoch
}

/// The store opens as an empty one of a new epoch, works, and what was there
/// is kept under another name.
fn is_set_aside(directory: &Path, epoch: u64, what: &str) {
    let damaged = fs::read(directory.join("store.db")).ok();
    let world = world(directory);
    let trouble = world.opened.trouble.as_deref().unwrap_or_default();
    assert!(trouble.contains("set aside"), "{what}: {trouble}");
    assert_ne!(world.opened.epoch, epoch, "{what}");
    assert_eq!(world.opened.facts, Vec::new(), "{what}");
    let names = aside(directory);
    assert!(!names.is_empty(), "{what}");
    if let Some(damaged) = damaged {
        // Opening may have read the log back into it, no more than that.
        let kept = fs::read(directory.join(&names[0])).unwrap();
        assert!(kept.len() >= damaged.len(), "{what}");
    }
    world.store(&records(1..=3));
    let fresh = world.opened.epoch;
    world.close();
    let world = super::world(directory);
    assert_eq!(world.opened.epoch, fresh, "{what}");
    assert_eq!(world.opened.trouble, None, "{what}");
    assert_eq!(world.opened.facts, records(1..=3), "{what}");
}

#[test]
fn a_file_cut_short_is_set_aside() {
    let whole = tempfile::tempdir().unwrap();
    let epoch = closed(whole.path(), 300);
    let length = fs::metadata(whole.path().join("store.db")).unwrap().len();
    for cut in [0, 1, 100, 4096, 5000, length / 2, length - 4096, length - 1] {
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

/// Opens with a byte changed. The store never lies: either all facts are
/// there, or it was set aside, or it is refused.
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
            assert_eq!(opened.facts, Vec::new());
            assert!(!aside(directory.path()).is_empty());
            true
        }
        Err(error) => {
            // The header's bytes 60 to 63 are the schema's version.
            assert!(
                matches!(error, StoreError::Newer { .. }),
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
        // last whole transaction and say nothing.
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
