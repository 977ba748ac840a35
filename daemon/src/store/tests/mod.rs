//! Every promise of the store, with a test that tries to break it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contents;
mod cuts;
mod damage;
#[cfg(target_os = "linux")]
mod durable;
mod exports;
#[cfg(target_os = "linux")]
mod full;
mod log;
#[cfg(target_os = "linux")]
mod refused;
mod schema;
mod spool;
mod storm;

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use touchmark_engine::{Fact, Held, Record, VersionFact};
use touchmark_proto::{Author, Evidence, Hash, RelPath, SessionId, VersionKind};

use super::*;

/// An open store in a directory, and its reports.
struct World {
    events: Receiver<StoreEvent>,
    /// Receives what [`Store::commit`] reports before it returns.
    at_once: Sender<StoreEvent>,
    opened: Opened,
}

/// Returns options without automatic checkpoints, which could come between two
/// steps of a test.
fn options(directory: &Path) -> Options {
    Options {
        checkpoint_pace: Duration::from_secs(3_600),
        ..Options::new(directory, "/workspace")
    }
}

fn world(directory: &Path) -> World {
    world_with(&options(directory))
}

fn world_with(options: &Options) -> World {
    let (sender, events) = channel();
    let at_once = sender.clone();
    let opened = open(options, move |event| {
        let _ = sender.send(event);
    })
    .unwrap();
    World {
        events,
        at_once,
        opened,
    }
}

impl World {
    fn commit(&self, turn: u64, records: Vec<Record>) {
        self.opened.store.commit(turn, records, |event| {
            let _ = self.at_once.send(event);
        });
    }

    /// Returns the next report. The limit only ends a test that would hang.
    fn event(&self) -> StoreEvent {
        self.events.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    /// Commits one turn per record and waits for all.
    fn store(&self, records: &[Record]) {
        for record in records {
            self.commit(record.n, vec![record.clone()]);
        }
        for record in records {
            assert_eq!(self.event(), StoreEvent::Committed { turn: record.n });
        }
    }

    fn close(self) {
        self.opened.store.close();
    }
}

fn path(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

fn hash(number: u64) -> Hash {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Hash(bytes)
}

fn held(number: u64) -> Held {
    Held {
        hash: Some(hash(number)),
        size: number,
        lines: 1,
        mtime_ms: number,
        mode: None,
        owner: None,
    }
}

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

/// Returns a record; the row kinds alternate. Its time is ten times its number.
fn record(n: u64) -> Record {
    match n % 3 {
        0 => other(n),
        1 => baseline(n, "a.txt"),
        _ => version(n, "a.txt"),
    }
}

fn records(numbers: std::ops::RangeInclusive<u64>) -> Vec<Record> {
    numbers.map(record).collect()
}

fn other(n: u64) -> Record {
    Record {
        n,
        time: n * 10,
        fact: Fact::ResetTold { session: session() },
    }
}

fn kept(n: u64) -> Record {
    Record {
        n,
        time: n * 10,
        fact: Fact::Kept {
            session: None,
            files: 1,
            changes: 1,
        },
    }
}

fn baseline(n: u64, name: &str) -> Record {
    Record {
        n,
        time: n * 10,
        fact: Fact::Baseline {
            path: path(name),
            held: held(n),
            untracked: false,
            real: None,
        },
    }
}

fn version(n: u64, name: &str) -> Record {
    Record {
        n,
        time: n * 10,
        fact: Fact::Version(VersionFact {
            before: Some(hash(n - 1)),
            ..VersionFact::new(
                path(name),
                VersionKind::Modified,
                held(n),
                Author::USER,
                Evidence::Unmarked,
            )
        }),
    }
}

fn numbers(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.n).collect()
}

/// Copies what a crash at this moment would leave. The high-water mark is
/// copied first, since it is never ahead of the log, and the spool before the
/// store, since it is emptied after the store has its contents.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["store.last", "store.spool", "store.db", "store.db-wal"] {
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

/// Returns the names of everything that was set aside.
fn aside(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("damaged"))
        .collect();
    names.sort();
    names
}
