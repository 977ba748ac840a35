//! DUR-2: files cut at every page boundary, as a power failure or a careless
//! copy leaves them. Every state that opens is one that existed.

use std::collections::BTreeMap;

use super::*;

/// The size of a page, of the log's header, and of a frame's header in the log,
/// in bytes.
const PAGE: u64 = 4_096;
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;

/// Returns a snapshot that fills several pages.
fn snapshot() -> Vec<u8> {
    (0..20_000_u32).map(|n| n.to_le_bytes()[0]).collect()
}

/// The last fact in the snapshot, in the file, and in the log.
const COVERED: u64 = 180;
const CLOSED: u64 = 300;
const LAST: u64 = 335;

/// Makes a store with a history: facts that a snapshot covers are trimmed,
/// contents are stored, versions are pruned, and then it is killed at work.
/// Returns its epoch.
fn history(directory: &Path) -> u64 {
    let live = tempfile::tempdir().unwrap();
    let first = world(live.path());
    first.store(&records(1..=COVERED));
    first.opened.store.snapshot(COVERED, snapshot());
    first.store(&records(COVERED + 1..=CLOSED));
    for n in 0..6_u8 {
        let bytes = vec![n; 9_000];
        first.opened.store.keep(Hash::of(&bytes), bytes.into());
    }
    first.close();
    let second = world(live.path());
    assert!(second.opened.snapshot == Some(snapshot()));
    for n in CLOSED + 1..=LAST {
        // Each in a separate transaction.
        second.store(&[record(n)]);
    }
    copy(live.path(), directory);
    second.opened.epoch
}

/// Returns a directory in memory, where syncs cost nothing, if there is one.
fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// How a file is damaged.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// It ends here.
    Cut(u64),
    /// Everything from here on was never written.
    Zeroed(u64),
    /// Only this page was never written.
    Hole(u64),
}

impl Damage {
    fn inflict(self, file: &Path) {
        let mut bytes = fs::read(file).unwrap();
        let at = |offset: u64| usize::try_from(offset).unwrap();
        match self {
            Self::Cut(from) => bytes.truncate(at(from)),
            Self::Zeroed(from) => bytes[at(from)..].fill(0),
            Self::Hole(from) => {
                let end = bytes.len().min(at(from + PAGE));
                bytes[at(from)..end].fill(0);
            }
        }
        fs::write(file, bytes).unwrap();
    }
}

/// What the high-water mark shows about the end.
#[derive(Clone, Copy, Debug)]
enum Witness {
    /// The daemon was killed.
    SameBoot,
    /// The machine lost power.
    OtherBoot,
    /// There is no high-water mark.
    Missing,
}

/// Opens a damaged copy. Returns the outcome.
fn opened(whole: &Path, name: &str, damage: Damage, witness: Witness, epoch: u64) -> &'static str {
    let directory = in_memory();
    copy(whole, directory.path());
    damage.inflict(&directory.path().join(name));
    let last = directory.path().join("store.last");
    match witness {
        Witness::SameBoot => {}
        Witness::OtherBoot => {
            let says = fs::read_to_string(&last).unwrap();
            fs::write(&last, format!("{:<36}{}", "another-boot", &says[36..])).unwrap();
        }
        Witness::Missing => fs::remove_file(&last).unwrap(),
    }
    let what = format!("{name} {damage:?}, {witness:?}");
    let loaded = load::load(&options(directory.path())).unwrap_or_else(|e| panic!("{what}: {e}"));
    let aside = !aside(directory.path()).is_empty();
    if aside {
        assert!(loaded.trouble.is_some(), "{what}");
        assert_ne!(loaded.epoch, epoch, "{what}");
        // Everything that is kept equals what was stored.
        let snapshot_is_whole = loaded.snapshot.is_none_or(|kept| kept == snapshot());
        let there = records(1..=LAST);
        assert!(
            snapshot_is_whole && loaded.facts.iter().all(|fact| there.contains(fact)),
            "{what}"
        );
        return "set aside";
    }
    if loaded.left_out {
        // Only bytes of one record are damaged: all other records are there.
        assert!(loaded.epoch > epoch && loaded.unreadable > 0, "{what}");
        let there = records(1..=loaded.last);
        assert!(
            loaded.facts.iter().all(|fact| there.contains(fact)),
            "{what}"
        );
        let least = LAST - COVERED - loaded.unreadable;
        assert!(loaded.facts.len() as u64 >= least, "{what}");
        return "left out";
    }
    // A state that existed: complete, up to some fact.
    assert!(loaded.snapshot == Some(snapshot()), "{what}");
    assert!(
        loaded.facts == records(COVERED + 1..=loaded.last),
        "{what}: facts up to {}",
        loaded.last
    );
    let (trouble, last) = (loaded.trouble.is_some(), loaded.last);
    if trouble {
        assert!(loaded.epoch > epoch, "{what}");
    } else {
        assert_eq!((loaded.epoch, last), (epoch, LAST), "{what}");
    }
    drop(loaded);
    if !goes_on(directory.path(), last) {
        return "fails later";
    }
    if trouble { "new epoch" } else { "whole" }
}

/// Returns whether a store that was opened stores more facts.
fn goes_on(directory: &Path, last: u64) -> bool {
    let world = world(directory);
    for n in last + 1..last + 30 {
        world.commit(n, vec![record(n)]);
        if !matches!(world.event(), StoreEvent::Committed { .. }) {
            return false;
        }
    }
    true
}

/// Returns every boundary up to the length, a place inside each page, and the
/// end.
fn places(length: u64, first: u64, page: u64) -> Vec<u64> {
    let mut places = vec![0, length - 1];
    let mut at = first;
    while at < length {
        places.extend([at, (at + page / 3).min(length - 1)]);
        at += page;
    }
    places
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).unwrap().len()
}

#[test]
fn cut_at_every_page_a_store_is_whole_or_found_out() {
    let whole = tempfile::tempdir().unwrap();
    let epoch = history(whole.path());
    let pages = length(&whole.path().join("store.db"));
    let frames = length(&whole.path().join("store.db-wal"));
    let mut cases = Vec::new();
    for at in places(pages, 0, PAGE) {
        cases.push(("store.db", Damage::Cut(at)));
        if at % PAGE == 0 {
            cases.extend([
                ("store.db", Damage::Zeroed(at)),
                ("store.db", Damage::Hole(at)),
            ]);
        }
    }
    for at in places(frames, LOG_HEADER, FRAME_HEADER + PAGE) {
        cases.push(("store.db-wal", Damage::Cut(at)));
        if (at.saturating_sub(LOG_HEADER)) % (FRAME_HEADER + PAGE) == 0 {
            cases.push(("store.db-wal", Damage::Zeroed(at)));
        }
    }
    assert!(cases.len() > 200, "{}", cases.len());

    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for (number, (name, damage)) in cases.into_iter().enumerate() {
        let outcome = opened(whole.path(), name, damage, Witness::SameBoot, epoch);
        // If facts that were answered are missing, that is always reported.
        assert_ne!(outcome, "new epoch", "{name} {damage:?}");
        *outcomes.entry(format!("{name} {outcome}")).or_default() += 1;
        let other = match number % 2 {
            0 => Witness::OtherBoot,
            _ => Witness::Missing,
        };
        let outcome = opened(whole.path(), name, damage, other, epoch);
        *outcomes
            .entry(format!("{name} {other:?} {outcome}"))
            .or_default() += 1;
    }
    println!("{pages} bytes, log {frames} bytes: {outcomes:#?}");
    for expected in [
        "store.db set aside",
        "store.db left out",
        "store.db-wal set aside",
        "store.db-wal OtherBoot new epoch",
        "store.db-wal Missing new epoch",
    ] {
        assert!(outcomes.contains_key(expected), "{expected}: {outcomes:#?}");
    }
}
