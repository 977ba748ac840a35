//! LOSS-3: a disk without space.

use std::io::Write as _;
use std::process::{Command, Stdio};

use touchmark_tests::parts::not_tested;

use super::*;
use touchmark_tests::children;

/// Checks that turns fail, are kept, and are stored in their order once that
/// works.
fn fails_and_recovers(directory: &Path, refuse: impl FnOnce(), permit: impl FnOnce()) {
    let world = world(directory);
    let reader = world.opened.store.readers().open().unwrap();
    world.store(&records(1..=5));
    refuse();
    let mut turn = 6;
    // The rest of the log's last page may still have space for a few.
    let first_failed = loop {
        world.commit(turn, vec![record(turn)]);
        match world.event() {
            StoreEvent::Committed { .. } => turn += 1,
            StoreEvent::Failed {
                turn: failed,
                cause,
            } => {
                assert_eq!(failed, turn);
                assert!(!cause.is_empty());
                break turn;
            }
            other => panic!("{other:?}: there is nothing to recover from"),
        }
    };
    for turn in first_failed + 1..first_failed + 20 {
        world.commit(turn, vec![record(turn)]);
        assert!(matches!(world.event(), StoreEvent::Failed { turn: failed, .. } if failed == turn));
    }
    // A turn that stores nothing is answered, and lookups still work.
    world.commit(9_999, Vec::new());
    assert_eq!(world.event(), StoreEvent::Committed { turn: 9_999 });
    let last = first_failed + 19;
    assert_eq!(
        reader.facts_after(0, 1_000).unwrap(),
        records(1..=last),
        "those that wait are found as well"
    );
    let rows = reader.history(&path("a.txt"), Some(last), 3).unwrap();
    let of_a = (1..last).rev().filter(|n| n % 3 != 0).take(3);
    assert_eq!(numbers(&rows), of_a.collect::<Vec<_>>());

    // A crash now loses facts that clocks were given out for.
    let crashed = tempfile::tempdir().unwrap();
    copy(directory, crashed.path());
    let lost = super::world(crashed.path());
    assert!(lost.opened.epoch > world.opened.epoch);
    assert_eq!(lost.opened.last, first_failed - 1);
    assert!(lost.opened.trouble.is_some());

    permit();
    assert_eq!(world.event(), StoreEvent::Recovered);
    let last = first_failed + 20;
    world.store(&records(last..=last));
    let epoch = world.opened.epoch;
    drop(reader);
    world.close();
    let world = super::world(directory);
    assert_eq!(world.opened.epoch, epoch);
    assert_eq!(world.opened.trouble, None);
    assert_eq!(world.opened.facts, records(1..=last));
}

#[test]
fn a_refused_commit_is_kept_and_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let other = |sql: &str| {
        let connection = rusqlite::Connection::open(&file).unwrap();
        connection
            .busy_timeout(Duration::from_secs(60))
            .and_then(|()| connection.execute_batch(sql))
            .unwrap();
    };
    fails_and_recovers(
        directory.path(),
        || {
            other(
                "CREATE TRIGGER refuse BEFORE INSERT ON fact
                 BEGIN SELECT RAISE(ABORT, 'no room'); END",
            );
        },
        || other("DROP TRIGGER refuse"),
    );
}

/// A file system of one megabyte.
struct Tiny(tempfile::TempDir);

impl Tiny {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(directory.path())
            .stderr(Stdio::null());
        let mounted = children::start(&mut mount)
            .and_then(|mut mount| mount.wait())
            .is_ok_and(|status| status.success());
        mounted.then(|| Self(directory))
    }

    /// Makes room.
    fn grow(&self) {
        let mut mount = Command::new("mount");
        mount.args(["-o", "remount,size=8m"]).arg(self.0.path());
        let mut mount = children::start(&mut mount).unwrap();
        assert!(mount.wait().unwrap().success());
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let mut unmount = Command::new("umount");
        unmount.arg("-l").arg(self.0.path());
        let _ = children::start(&mut unmount).and_then(|mut unmount| unmount.wait());
    }
}

#[test]
fn a_full_disk_fails_turns_and_recovers_by_itself() {
    let Some(disk) = Tiny::mount() else {
        not_tested("a full disk: this user may not mount a tmpfs");
        return;
    };
    let state = disk.0.path().join("state");
    let filler = disk.0.path().join("filler");
    fails_and_recovers(
        &state,
        || {
            let mut file = fs::File::create(&filler).unwrap();
            while file.write_all(&[0; 512]).is_ok() {}
        },
        || fs::remove_file(&filler).unwrap(),
    );
}

/// A damaged store stays as it is until there is room for what can be read of it.
#[test]
fn dur2_a_full_disk_costs_nothing_of_a_damaged_store() {
    const FACTS: u64 = 4_000;
    let Some(disk) = Tiny::mount() else {
        not_tested("a damaged store on a full disk: this user may not mount a tmpfs");
        return;
    };
    let state = disk.0.path().join("state");
    let built = tempfile::tempdir().unwrap();
    super::damage::closed(built.path(), FACTS);
    fs::create_dir(&state).unwrap();
    copy(built.path(), &state);
    let mark = state.join("store.last");
    let said = fs::read_to_string(&mark).unwrap();
    fs::write(&mark, said.replace("ok     ", "damaged")).unwrap();
    // Enough room for the first files, and not for a second store.
    let filler = disk.0.path().join("filler");
    let free = 300 << 10;
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 4_096]).is_ok() {}
    let length = file.metadata().unwrap().len();
    file.set_len(length - free).unwrap();
    assert!(fs::metadata(state.join("store.db")).unwrap().len() > free);

    let world = world(&state);
    assert!(world.opened.refused.is_some());
    world.close();
    assert_eq!(aside(&state), Vec::<String>::new());
    disk.grow();
    let world = super::world(&state);
    assert_eq!(world.opened.refused, None);
    assert_eq!(world.opened.facts.len() as u64, FACTS);
    assert!(!aside(&state).is_empty());
}

/// Contents that take little room once they are stored.
#[test]
fn keep3_the_spool_leaves_the_last_room_to_facts() {
    let Some(disk) = Tiny::mount() else {
        not_tested("a spool on a full disk: this user may not mount a tmpfs");
        return;
    };
    let state = disk.0.path().join("state");
    let world = world(&state);
    for n in 1..=60 {
        let bytes = vec![u8::try_from(n).unwrap(); 50_000];
        let mut record = version(n, "a.txt");
        if let Fact::Version(version) = &mut record.fact {
            version.author = Author::agent(session());
            version.held.hash = Some(Hash::of(&bytes));
        }
        world.opened.store.keep(Hash::of(&bytes), bytes.into());
        world.store(&[record]);
    }
}

#[test]
fn keep1_a_full_disk_costs_contents_and_nothing_that_was_kept() {
    let Some(disk) = Tiny::mount() else {
        not_tested("contents on a full disk: this user may not mount a tmpfs");
        return;
    };
    let state = disk.0.path().join("state");
    let content = |seed| {
        let bytes = super::contents::noise(seed, 50_000);
        (Hash::of(&bytes), bytes)
    };
    let (first, bytes) = content(0);
    let before = world(&state);
    before.opened.store.keep(first, bytes.clone().into());
    before.store(&records(1..=5));
    before.close();

    // More contents than there is space for.
    let full = world(&state);
    for seed in 1..40 {
        let (hash, bytes) = content(seed);
        full.opened.store.keep(hash, bytes.into());
    }
    full.close();
    let roomy = tempfile::tempdir().unwrap();
    copy(&state, roomy.path());
    let world = super::world(roomy.path());
    assert_eq!(world.opened.trouble, None);
    assert_eq!(world.opened.facts, records(1..=5));
    let reader = world.opened.store.readers().open().unwrap();
    let kept = (1..40).filter(|seed| {
        let (hash, bytes) = content(*seed);
        let found = reader.content(&hash).unwrap();
        assert!(found.as_deref().is_none_or(|found| *found == bytes[..]));
        found.is_some()
    });
    let kept = kept.count();
    assert!(kept < 39, "it was not full");
    assert_eq!(reader.content(&first).unwrap().as_deref(), Some(&bytes[..]));
}
