//! The log: facts are read back in the order in which they were stored, and
//! lookups find them.

use super::super::exports::Dropped;
use super::super::upkeep::Log;
use super::*;

#[test]
fn facts_come_back_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    assert_eq!(world.opened.facts, Vec::new());
    assert_eq!(world.opened.trouble, None);
    let mut expected = records(1..=7);
    // A path that is not UTF-8.
    let mut odd = version(8, "x");
    if let Fact::Version(version) = &mut odd.fact {
        version.path = RelPath::new(b"dir/\xff").unwrap();
    }
    expected.push(odd.clone());
    world.store(&expected);
    let epoch = world.opened.epoch;
    world.close();

    let world = super::world(directory.path());
    assert_eq!(world.opened.facts, expected);
    assert_eq!(world.opened.epoch, epoch);
    assert_eq!(world.opened.last, 8);
    assert_eq!(world.opened.trouble, None);
    let Fact::Version(found) = &odd.fact else {
        panic!()
    };
    let reader = world.opened.store.readers().open().unwrap();
    assert_eq!(reader.history(&found.path, None, 9).unwrap(), [odd.clone()]);
    let (file, size, durability) = world.opened.store.status();
    assert_eq!(file, directory.path().join("store.db"));
    assert!(size > 4096);
    assert_eq!(durability, "process");
}

#[test]
fn turns_are_reported_once_in_their_order_and_after_their_commit() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let early = Arc::new(AtomicU64::new(0));
    let (sender, events) = channel();
    let report = {
        let early = Arc::clone(&early);
        move |event| {
            // A turn that is reported can be read by another connection.
            if let StoreEvent::Committed { turn } = event
                && turn <= 500
                && turn % 50 == 0
            {
                let stored: i64 = rusqlite::Connection::open(&file)
                    .unwrap()
                    .query_row("SELECT max(n) FROM fact", [], |row| row.get(0))
                    .unwrap();
                if stored < i64::try_from(turn).unwrap() {
                    early.fetch_add(1, Ordering::Relaxed);
                }
            }
            let _ = sender.send(event);
        }
    };
    let opened = open(&options(directory.path()), report.clone()).unwrap();
    for turn in 1..=500 {
        // Every turn has a fact. After each seventh, a turn without facts
        // follows, which is answered as well.
        let facts = vec![record(turn)];
        opened.store.commit(turn, facts, &report);
        if turn % 7 == 0 {
            opened.store.commit(turn + 10_000, Vec::new(), &report);
        }
    }
    opened.store.close();
    drop(report);
    let mut expected = Vec::new();
    for turn in 1..=500 {
        expected.push(StoreEvent::Committed { turn });
        if turn % 7 == 0 {
            expected.push(StoreEvent::Committed {
                turn: turn + 10_000,
            });
        }
    }
    assert_eq!(events.iter().collect::<Vec<_>>(), expected);
    assert_eq!(early.load(Ordering::Relaxed), 0);
}

#[test]
fn the_log_answers_by_path_by_number_and_by_time() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    let reader = world.opened.store.readers().open().unwrap();
    assert!(reader.versions_after(0).unwrap().is_empty());
    world.store(&[
        baseline(1, "a"),
        version(2, "a"),
        baseline(3, "b"),
        other(4),
        version(5, "b"),
        version(6, "a"),
    ]);
    let found = |records: Result<Vec<Record>, StoreError>| numbers(&records.unwrap());
    assert_eq!(found(reader.history(&path("a"), None, 10)), [6, 2, 1]);
    assert_eq!(found(reader.history(&path("a"), Some(6), 1)), [2]);
    assert_eq!(found(reader.history(&path("none"), None, 10)), [0; 0]);
    assert_eq!(found(reader.versions_after(0)), [2, 5, 6]);
    assert_eq!(found(reader.versions_after(2)), [5, 6]);
    assert_eq!(found(reader.facts_after(2, 3)), [3, 4, 5]);
    assert_eq!(found(reader.versions_between_times(20, 60, 10)), [2, 5]);
    assert_eq!(found(reader.versions_between_times(0, 1_000, 1)), [2]);
    assert_eq!(reader.last_before_time(60).unwrap(), Some(5));
    assert_eq!(reader.last_before_time(20).unwrap(), None);
    assert_eq!(reader.oldest().unwrap(), None);
}

#[test]
fn a_time_is_found_whatever_is_missing_and_however_much_was_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    // Every fifth fact is missing.
    let facts: Vec<Record> = (1..200)
        .filter(|n| n % 5 != 0)
        .map(|n| Record {
            time: 1_000 + n / 3 * 10,
            ..version(n, "a")
        })
        .collect();
    world.store(&facts);
    let reader = world.opened.store.readers().open().unwrap();
    for time in (990..1_700).step_by(5) {
        let before = facts.iter().rev().find(|fact| fact.time < time);
        let found = reader.last_before_time(time).unwrap();
        assert_eq!(found, before.map(|fact| fact.n), "{time}");
        let between = facts
            .iter()
            .filter(|fact| (time..time + 25).contains(&fact.time));
        let expected: Vec<u64> = between.map(|fact| fact.n).collect();
        let found = reader.versions_between_times(time, time + 25, 100).unwrap();
        assert_eq!(numbers(&found), expected, "{time}");
    }
}

#[test]
fn lookups_use_their_index() {
    let directory = tempfile::tempdir().unwrap();
    world(directory.path()).close();
    let connection = rusqlite::Connection::open(directory.path().join("store.db")).unwrap();
    for (query, index) in [
        (
            "SELECT body FROM fact WHERE path = x'61' AND n < 9 ORDER BY n DESC LIMIT 3",
            "fact_path",
        ),
        (
            "SELECT n, time FROM fact WHERE n >= 5 ORDER BY n LIMIT 1",
            "INTEGER PRIMARY KEY (rowid>?)",
        ),
    ] {
        let plan: String = connection
            .query_row(&format!("EXPLAIN QUERY PLAN {query}"), [], |row| row.get(3))
            .unwrap();
        assert!(plan.contains(index), "{plan}");
    }
}

#[test]
fn a_snapshot_replaces_the_facts_before_it_but_for_histories() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    world.store(&records(1..=9));
    // Larger than one part.
    let body: Vec<u8> = (0..3_000_000_u32).map(|i| i.to_le_bytes()[1]).collect();
    world.opened.store.snapshot(6, vec![1]);
    world.opened.store.snapshot(7, body.clone());
    let epoch = world.opened.epoch;
    world.close();

    let world = super::world(directory.path());
    assert_eq!(world.opened.epoch, epoch);
    assert!(world.opened.snapshot == Some(body));
    assert_eq!(numbers(&world.opened.facts), [8, 9]);
    let reader = world.opened.store.readers().open().unwrap();
    let kept = numbers(&reader.facts_after(0, 100).unwrap());
    assert_eq!(kept, [1, 2, 4, 5, 7, 8, 9], "3 and 6 are neither");
    assert_eq!(
        numbers(&reader.history(&path("a.txt"), None, 3).unwrap()),
        [8, 7, 5]
    );
    // The next snapshot replaces it.
    world.opened.store.snapshot(9, vec![2]);
    world.close();
    let world = super::world(directory.path());
    assert_eq!(world.opened.snapshot, Some(vec![2]));
    assert_eq!(world.opened.facts, Vec::new());
    assert_eq!(world.opened.last, 9);
}

/// Stats of files are in snapshots and are no facts.
#[test]
fn a_snapshot_of_the_same_fact_replaces_the_earlier_one() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    world.store(&records(1..=9));
    let body = |byte| -> Vec<u8> { vec![byte; 3_000_000] };
    world.opened.store.snapshot(9, body(1));
    world.close();
    // Equal, of several parts, of one part, empty.
    for other in [body(1), body(2), vec![3], vec![]] {
        let world = super::world(directory.path());
        world.opened.store.snapshot(9, other.clone());
        world.close();
        let world = super::world(directory.path());
        assert!(world.opened.snapshot == Some(other));
        assert_eq!(world.opened.last, 9);
        world.close();
    }
}

#[test]
fn a_snapshot_that_was_not_finished_does_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let mut connection = super::super::schema::open(&file, Durability::Process, false).unwrap();
    let waiting = Arc::new(Waiting::new(0, [], Spool::default()));
    let mut chores = super::super::chores::Chores::new(
        waiting,
        Table::new(0),
        Arc::default(),
        Dropped {
            count: Arc::default(),
            is_exported: |_| false,
        },
        false,
    );
    chores.add(Message::Snapshot {
        n: 0,
        body: vec![1; 3 << 20],
    });
    assert!(chores.step(&mut connection));
    assert!(chores.step(&mut connection));
    drop((chores, connection));

    let world = world(directory.path());
    assert_eq!(world.opened.snapshot, None);
    world.store(&records(1..=3));
    world.opened.store.snapshot(2, vec![9]);
    world.close();
    let world = super::world(directory.path());
    assert_eq!(world.opened.snapshot, Some(vec![9]));
    assert_eq!(numbers(&world.opened.facts), [3]);
}

/// Prunes in this thread. Returns the numbers of the facts that are left.
fn prune(directory: &Path, prune: Prune) -> Vec<u64> {
    let file = directory.join("store.db");
    let (work_sender, work) = channel();
    let (writer, messages) = channel();
    let nudge = Nudge::new(work_sender);
    let upkeep = Upkeep::new(&file, Duration::ZERO, work, &nudge, writer);
    upkeep.prune(prune).unwrap();
    drop(upkeep);
    let mut connection = super::super::schema::open(&file, Durability::Process, false).unwrap();
    let mut chores = super::super::chores::Chores::new(
        Arc::new(Waiting::new(0, [], Spool::default())),
        Table::new(0),
        Arc::default(),
        Dropped {
            count: Arc::default(),
            is_exported: |_| false,
        },
        false,
    );
    for message in messages {
        chores.add(message);
    }
    while chores.pending().is_some() {
        chores.step(&mut connection);
    }
    drop(connection);
    let world = world(directory);
    assert_eq!(world.opened.trouble, None);
    let reader = world.opened.store.readers().open().unwrap();
    assert_eq!(reader.oldest().unwrap().unwrap_or(0), world.opened.pruned);
    numbers(&reader.facts_after(0, 100).unwrap())
}

#[test]
fn pruning_leaves_what_somebody_may_compare_with() {
    let all = Prune {
        keep_per_path: 0,
        older_than: u64::MAX,
        floor: u64::MAX,
        pinned_before: 0,
    };
    let fresh = || {
        let directory = tempfile::tempdir().unwrap();
        let world = world(directory.path());
        world.store(&[
            baseline(1, "a"),
            version(2, "a"),
            version(3, "a"),
            baseline(4, "b"),
            version(5, "a"),
            version(6, "a"),
            other(7),
        ]);
        (directory, world)
    };
    // Without a snapshot every fact is needed for the next start.
    let (directory, world) = fresh();
    world.close();
    assert_eq!(prune(directory.path(), all), [1, 2, 3, 4, 5, 6, 7]);

    let (directory, world) = fresh();
    world.opened.store.snapshot(6, vec![]);
    world.close();
    let floor_3 = Prune { floor: 3, ..all };
    // The content of `a` at fact 3 stays, and everything later.
    assert_eq!(prune(directory.path(), floor_3), [3, 4, 5, 6, 7]);
    let by_count = Prune {
        keep_per_path: 2,
        older_than: 0,
        ..all
    };
    assert_eq!(prune(directory.path(), by_count), [4, 5, 6, 7]);
    let by_age = Prune {
        keep_per_path: 100,
        older_than: 50,
        ..all
    };
    assert_eq!(
        prune(directory.path(), by_age),
        [4, 5, 6, 7],
        "5 is not older"
    );
    assert_eq!(prune(directory.path(), all), [4, 6, 7], "one of each path");
}

#[test]
fn survival_outlives_a_snapshot_and_is_dropped_with_versions_of_its_age() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    let all = [
        baseline(1, "a"),
        version(2, "a"),
        survival(3, 2),
        version(4, "a"),
        survival(5, 4),
        other(6),
        survival(7, 4),
    ];
    world.store(&all);
    world.opened.store.snapshot(6, vec![]);
    world.close();
    let world = super::world(directory.path());
    assert_eq!(numbers(&world.opened.facts), [7]);
    let reader = world.opened.store.readers().open().unwrap();
    assert_eq!(numbers(&reader.survivals_after(0).unwrap()), [3, 5, 7]);
    assert_eq!(numbers(&reader.survivals_after(3).unwrap()), [5, 7]);
    assert_eq!(
        numbers(&reader.history(&path("a"), None, 9).unwrap()),
        [4, 2, 1]
    );
    world.close();
    let by_age = |older_than| Prune {
        keep_per_path: 100,
        older_than,
        floor: u64::MAX,
        pinned_before: 0,
    };
    assert_eq!(
        prune(directory.path(), by_age(50)),
        [4, 5, 7],
        "5 is not older"
    );
    let late = prune(directory.path(), by_age(u64::MAX));
    assert_eq!(late, [4, 7], "7 is needed for the next start");
}

#[test]
fn a_log_at_rest_is_emptied_while_the_store_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    world.store(&records(1..=50));
    let log = directory.path().join("store.db-wal");
    let size = || fs::metadata(&log).unwrap().len();
    let (work_sender, work) = channel();
    let (writer, _messages) = channel();
    let nudge = Nudge::new(work_sender);
    let file = directory.path().join("store.db");
    let upkeep = Upkeep::new(&file, Duration::ZERO, work, &nudge, writer);
    let before = size();
    assert!(upkeep.advance(Log::Written) == Log::Copied);
    assert_eq!(size(), before, "copied, not emptied");
    assert!(upkeep.advance(Log::Copied) == Log::Clean);
    assert_eq!(size(), 0);
    world.store(&records(51..=60));
    world.close();
    assert_eq!(super::world(directory.path()).opened.facts, records(1..=60));
}

#[test]
fn closing_empties_the_log_into_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    world.store(&records(1..=50));
    let log = directory.path().join("store.db-wal");
    assert!(fs::metadata(&log).unwrap().len() > 0);
    world.close();
    assert!(!log.exists());
}
