//! The body of the fuzz target `store`: the bytes are instructions that damage
//! the files of a killed daemon's store, which is then opened (DUR-2). A stable
//! test runs the seeds through it (`daemon/tests/damaged_store.rs`).
//!
//! Nothing may panic. One of three results is allowed: all stored facts are
//! there; missing facts are reported by a new epoch; or the store is set aside,
//! and a new one has what can be read of it.
//! If only one record was damaged, it is counted and all others are there.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::mpsc::channel;
use std::time::Duration;

use touchmark_daemon::store::{Options, StoreError, StoreEvent, open};
use touchmark_engine::{Fact, Held, Record};
use touchmark_proto::{Hash, RelPath, SessionId};

const FILES: [&str; 3] = ["store.db", "store.db-wal", "store.last"];

/// The numbers of the last facts that the snapshot covers, that the main file
/// has, and that the log has.
const COVERED: u64 = 30;
const CLOSED: u64 = 60;
const LAST: u64 = 90;

/// The length in bytes of an instruction: the file and the operation (one
/// byte), the position (three bytes), the length, and a value.
const INSTRUCTION: usize = 6;

struct Whole {
    epoch: u64,
    files: [Vec<u8>; 3],
}

static WHOLE: LazyLock<Whole> = LazyLock::new(|| {
    let directory = scratch();
    let options = quiet(&directory);
    let stored = |first: u64, last: u64| {
        let (sender, events) = channel();
        let opened = open(&options, move |event| {
            let _ended = sender.send(event);
        })
        .unwrap_or_else(|error| panic!("{error}"));
        for n in first..=last {
            let mut at_once = None;
            let report = |event| at_once = Some(event);
            opened.store.commit(n, vec![record(n)], report);
            let event = at_once.unwrap_or_else(|| events.recv().unwrap());
            assert_eq!(event, StoreEvent::Committed { turn: n });
        }
        opened
    };
    let first = stored(1, CLOSED);
    first.store.snapshot(COVERED, snapshot());
    first.store.close();
    let second = stored(CLOSED + 1, LAST);
    // The files are copied while the store is open, so they are as a kill
    // leaves them.
    let files = FILES.map(|name| fs::read(directory.join(name)).unwrap());
    let epoch = second.epoch;
    second.store.close();
    fs::remove_dir_all(directory).unwrap();
    Whole { epoch, files }
});

/// Returns a new directory, in memory if possible, because syncs are fast
/// there.
fn scratch() -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let directory = base.join(format!("touchmark-fuzz-{}-{number}", std::process::id()));
    let _from_before = fs::remove_dir_all(&directory);
    directory
}

/// Returns options with which no checkpoint runs between two steps.
fn quiet(directory: &Path) -> Options {
    Options {
        checkpoint_pace: Duration::from_secs(3_600),
        ..Options::new(directory, "/w")
    }
}

fn snapshot() -> Vec<u8> {
    (0..9_000_u32).map(|n| n.to_le_bytes()[0]).collect()
}

fn record(n: u64) -> Record {
    let fact = if n.is_multiple_of(2) {
        Fact::ResetTold {
            session: SessionId::new("s").unwrap(),
        }
    } else {
        let mut hash = [7; 32];
        hash[..8].copy_from_slice(&n.to_le_bytes());
        Fact::Baseline {
            path: RelPath::new(b"a.txt").unwrap(),
            held: Held {
                hash: Some(Hash(hash)),
                size: n,
                lines: 1,
                mtime_ms: n,
                mode: None,
                owner: None,
            },
            untracked: false,
            real: None,
        }
    };
    Record {
        n,
        time: n * 10,
        fact,
    }
}

/// What the instructions have changed.
#[derive(Default)]
struct Done {
    /// Whether the high-water mark was changed, so that fewer facts than were
    /// stored may be accepted.
    witness: bool,
}

fn damaged(bytes: &[u8]) -> ([Vec<u8>; 3], Done) {
    let mut files = WHOLE.files.clone();
    let mut done = Done::default();
    for instruction in bytes.chunks_exact(INSTRUCTION).take(8) {
        let [what, high, middle, low, much, with] = *instruction else {
            continue;
        };
        let which = usize::from(what % 4).min(FILES.len()) % FILES.len();
        let file = &mut files[which];
        if file.is_empty() {
            continue;
        }
        let at = ((usize::from(high) << 16) | (usize::from(middle) << 8) | usize::from(low))
            % file.len();
        done.witness |= which == 2;
        let end = file.len().min(at + usize::from(much) + 1);
        match what / 4 % 6 {
            0 => file[at] ^= with.max(1),
            1 => file.truncate(at),
            2 => file[at..end].fill(with),
            // A page is filled with zeros, or replaced by another page.
            3 => {
                let from = at / 4_096 * 4_096;
                let end = file.len().min(from + 4_096);
                file[from..end].fill(0);
            }
            4 => {
                let from = at / 4_096 * 4_096;
                let other = usize::from(much) * 4_096 % file.len() / 4_096 * 4_096;
                let length = (file.len() - from.max(other)).min(4_096);
                file.copy_within(other..other + length, from);
            }
            _ => file.extend(std::iter::repeat_n(with, usize::from(much))),
        }
    }
    (files, done)
}

/// Damages a store as the bytes say, and opens it.
pub(crate) fn store(bytes: &[u8]) {
    let (files, done) = damaged(bytes);
    let directory = scratch();
    fs::create_dir(&directory).unwrap();
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    }
    for (name, content) in FILES.iter().zip(&files) {
        fs::write(directory.join(name), content).unwrap();
    }
    check(&directory, &done);
    fs::remove_dir_all(&directory).unwrap();
}

fn check(directory: &Path, done: &Done) {
    let opened = match open(&quiet(directory), |_| ()) {
        Ok(opened) => opened,
        // The version of the schema was changed, and nothing else is wrong.
        Err(StoreError::Incompatible { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(opened.refused, None);
    let aside = fs::read_dir(directory).unwrap().any(|entry| {
        entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .contains("damaged")
    });
    if aside {
        assert!(opened.trouble.is_some());
        assert_ne!(opened.epoch, WHOLE.epoch);
        // Everything that is kept equals what was stored.
        let kept = opened.snapshot.as_ref();
        assert!(kept.is_none_or(|kept| *kept == snapshot()));
        assert!(opened.last <= LAST);
        for fact in &opened.facts {
            assert_eq!(*fact, record(fact.n));
        }
    } else {
        // The stored state, except for records that are counted as unreadable.
        // A page may occur twice, and its records with it.
        assert!(!opened.left_out || opened.store.unreadable() > 0);
        assert!(opened.store.unreadable() <= 4 * LAST);
        let whole = opened.snapshot == Some(snapshot());
        assert!(whole || opened.snapshot.is_none(), "another snapshot");
        // Without the high-water mark, a store may be accepted as an earlier
        // one from before its snapshot.
        let earlier = done.witness && opened.last < COVERED;
        assert!(whole || opened.left_out || earlier, "no snapshot");
        let first = if whole { COVERED + 1 } else { 1 };
        let there: Vec<Record> = (first..=opened.last).map(record).collect();
        if !opened.left_out {
            assert!(opened.facts == there, "not the facts up to {}", opened.last);
        } else {
            assert!(opened.facts.iter().all(|fact| there.contains(fact)));
            assert!(opened.trouble.is_some());
        }
        assert!(opened.last <= LAST);
        // An empty store begins with a new epoch.
        let anew = earlier && opened.last == 0 && opened.epoch != WHOLE.epoch;
        if opened.trouble.is_some() || anew {
            assert!(opened.epoch > WHOLE.epoch);
        } else {
            assert_eq!(opened.epoch, WHOLE.epoch);
            assert!(opened.last == LAST || done.witness, "{} facts", opened.last);
        }
        // A fact that is looked up is the one that was stored, or an error.
        let found = opened
            .store
            .readers()
            .open()
            .and_then(|reader| reader.facts_after(0, 1_000));
        for one in found.into_iter().flatten() {
            assert_eq!(one, record(one.n));
        }
    }
    opened.store.close();
}
