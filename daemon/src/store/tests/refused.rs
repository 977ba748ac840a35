//! LOSS-3: a store that cannot be opened for writing when the daemon starts.

use std::os::unix::fs::PermissionsExt as _;

use touchmark_tests::mounts;

use super::*;

fn private() -> tempfile::TempDir {
    tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir()
        .unwrap()
}

/// Mounts a store's directory for reading only.
fn read_only(directory: &Path) {
    let at = directory.to_str().unwrap();
    mounts::mount("none", at, "bind", directory);
    mounts::remount("bind,ro", directory);
}

/// Checks that stored facts are read, new ones are found by lookups and not
/// stored, and the next run continues from the stored ones.
fn is_read_until_it_can_be_written(directory: &Path, epoch: u64, last: u64, permit: impl FnOnce()) {
    let before: Vec<_> = ["store.db", "store.db-wal"]
        .map(|name| fs::read(directory.join(name)).ok())
        .into();
    let world = world(directory);
    let cause = world.opened.refused.clone().unwrap();
    assert!(!cause.is_empty());
    assert_eq!(world.opened.trouble, None);
    assert!(world.opened.epoch > epoch);
    assert_eq!(world.opened.facts, records(1..=last));

    let turn = last + 1;
    world.commit(turn, vec![record(turn), record(turn + 1)]);
    assert_eq!(world.event(), StoreEvent::Failed { turn, cause });
    world.commit(turn + 1, Vec::new());
    assert_eq!(world.event(), StoreEvent::Committed { turn: turn + 1 });
    let reader = world.opened.store.readers().open().unwrap();
    assert_eq!(
        reader.facts_after(0, 1_000).unwrap(),
        records(1..=last + 2),
        "those before and those of this life"
    );
    let history = reader.history(&path("a.txt"), None, 1_000).unwrap();
    let of_a: Vec<u64> = (1..=last + 2).rev().filter(|n| n % 3 != 0).collect();
    assert_eq!(numbers(&history), of_a);
    assert_eq!(
        numbers(&reader.history(&path("a.txt"), None, 2).unwrap()),
        of_a[..2]
    );
    let after: Vec<_> = ["store.db", "store.db-wal"]
        .map(|name| fs::read(directory.join(name)).ok())
        .into();
    assert!(before == after, "a file was written to");

    permit();
    assert_eq!(world.event(), StoreEvent::Reopen);
    drop(reader);
    world.close();
    let world = super::world(directory);
    assert_eq!(world.opened.refused, None);
    assert_eq!(world.opened.trouble, None);
    assert_eq!(world.opened.epoch, epoch);
    assert_eq!(world.opened.facts, records(1..=last));
    world.store(&records(last + 1..=last + 3));
}

#[test]
fn a_closed_store_that_is_read_only() {
    mounts::apart(|| {
        let directory = private();
        let world = world(directory.path());
        world.store(&records(1..=40));
        let epoch = world.opened.epoch;
        world.close();
        read_only(directory.path());
        is_read_until_it_can_be_written(directory.path(), epoch, 40, || {
            mounts::remount("bind,rw", directory.path());
        });
        mounts::detach(directory.path());
    });
}

#[test]
fn a_killed_store_that_is_read_only() {
    mounts::apart(|| {
        let (live, directory) = (private(), private());
        let killed = world(live.path());
        killed.store(&records(1..=40));
        copy(live.path(), directory.path());
        read_only(directory.path());
        is_read_until_it_can_be_written(directory.path(), killed.opened.epoch, 40, || {
            mounts::remount("bind,rw", directory.path());
        });
        mounts::detach(directory.path());
    });
}

#[test]
fn a_killed_store_on_a_full_disk() {
    mounts::apart(|| {
        let (live, disk) = (private(), private());
        let killed = world(live.path());
        killed.store(&records(1..=40));
        mounts::mount("tmpfs", "tmpfs", "size=2m", disk.path());
        let directory = disk.path().join("state");
        crate::life::private_directory(&directory).unwrap();
        copy(live.path(), &directory);
        let filler = disk.path().join("filler");
        let mut file = fs::File::create(&filler).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 512]).is_ok() {}
        drop(file);
        is_read_until_it_can_be_written(&directory, killed.opened.epoch, 40, || {
            fs::remove_file(&filler).unwrap();
        });
        mounts::detach(disk.path());
    });
}

#[test]
fn a_damaged_store_that_is_read_only() {
    mounts::apart(|| {
        let directory = private();
        fs::write(directory.path().join("store.db"), [7; 8_192]).unwrap();
        read_only(directory.path());
        let world = world(directory.path());
        assert!(world.opened.refused.is_some());
        let trouble = world.opened.trouble.clone().unwrap();
        assert!(trouble.contains("is damaged"), "{trouble}");
        assert!(aside(directory.path()).is_empty());
        mounts::remount("bind,rw", directory.path());
        assert_eq!(world.event(), StoreEvent::Reopen);
        world.close();
        let world = super::world(directory.path());
        let trouble = world.opened.trouble.clone().unwrap();
        assert!(trouble.contains("set aside"), "{trouble}");
        assert!(!aside(directory.path()).is_empty());
        mounts::detach(directory.path());
    });
}

#[test]
fn a_place_where_there_is_nothing_yet() {
    mounts::apart(|| {
        let directory = private();
        let state = directory.path().join("state");
        read_only(directory.path());
        let world = world(&state);
        assert!(world.opened.refused.is_some());
        assert_eq!((world.opened.last, world.opened.trouble.clone()), (0, None));
        world.commit(1, vec![record(1)]);
        assert!(matches!(world.event(), StoreEvent::Failed { turn: 1, .. }));
        let reader = world.opened.store.readers().open().unwrap();
        assert_eq!(reader.facts_after(0, 9).unwrap(), records(1..=1));
        mounts::remount("bind,rw", directory.path());
        assert_eq!(world.event(), StoreEvent::Reopen);
        world.close();
        let world = super::world(&state);
        assert_eq!((world.opened.refused.clone(), world.opened.last), (None, 0));
        world.close();
        mounts::detach(directory.path());
    });
}
