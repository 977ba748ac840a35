//! The memory that tracked files cost, measured with as many files as a large
//! workspace has. The bounds leave a margin for the allocator.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::fs;

use serde_json::json;
use touchmark_engine::{
    Config, Content, Effect, Engine, Found, Hint, Input, ReadOrder, Stamp, State,
};
use touchmark_proto::{ConnectionId, Hash, Millis, RelPath, Request, RequestId};

const FILES: u64 = 20_000;

/// Returns the bytes of this process in memory.
fn resident() -> i64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<i64>().unwrap() * 4_096
}

fn name(number: u64) -> String {
    format!("src/d{:04}/file{:03}.rs", number / 100, number % 100)
}

/// An engine, and a disk on which the content of every file is the number of a
/// round.
struct Disk {
    engine: Engine,
    now: Millis,
    round: u64,
    requests: u64,
}

impl Disk {
    fn found(&self, order: &ReadOrder) -> Found {
        let text = format!("{} {}", order.path.to_string_lossy(), self.round);
        let hash = Hash::of(text.as_bytes());
        Found::File(Content {
            hash,
            size: 1_024,
            lines: 32,
            mtime_ms: self.now,
            mode: None,
            owner: None,
            stamp: Stamp {
                inode: u64::from_le_bytes(hash.0[..8].try_into().unwrap()),
                size: 1_024,
                modified: i64::try_from(self.now).unwrap(),
                changed: i64::try_from(self.now).unwrap(),
                device: 1,
                mount: 1,
            },
            settled: self.round == 0,
        })
    }

    fn feed(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let mut effects = Vec::new();
            self.engine.handle(self.now, input, &mut effects);
            for effect in effects {
                match effect {
                    Effect::Fence(fence) => inputs.push(Input::FenceReached { fence }),
                    Effect::Read(order) => inputs.push(Input::Read {
                        outcome: self.found(&order).into(),
                        path: order.path,
                        ticket: order.ticket,
                    }),
                    _ => {}
                }
            }
        }
    }

    /// Makes a session read every file.
    fn read_all(&mut self) {
        for number in 0..FILES {
            self.now += u64::from(number % 10 == 0);
            self.requests += 1;
            let path = name(number);
            let ask = Request::from_json("file/read", json!({"session": "s", "path": path}));
            self.feed(Input::Request {
                request: RequestId(self.requests),
                connection: ConnectionId(1),
                ask: ask.unwrap(),
                until: None,
            });
        }
    }

    /// Makes the user write every file.
    fn write_all(&mut self) {
        self.round += 1;
        for number in 0..FILES {
            self.now += u64::from(number % 10 == 0);
            let path = RelPath::new(name(number).as_bytes()).unwrap();
            let hint = Hint::WrittenAndClosed;
            self.feed(Input::Hint { path, hint });
            self.feed(Input::Tick);
        }
    }
}

#[test]
fn a_tracked_file_costs_so_many_bytes_and_writes_add_little() {
    let before = resident();
    let engine = Engine::restore(Config::default(), State::new(1, false), [], 1_000);
    let mut disk = Disk {
        engine,
        now: 1_000,
        round: 0,
        requests: 0,
    };
    let each = |now: i64| (now - before) / i64::try_from(FILES).unwrap();
    disk.read_all();
    assert_eq!(disk.engine.counts().tracked, FILES);
    let read = each(resident());
    let mut rounds = Vec::new();
    for _ in 0..6 {
        disk.write_all();
        disk.read_all();
        rounds.push(each(resident()));
    }
    println!("bytes a file: {read} just read, {rounds:?} after rounds of writes");
    assert!(read < 760, "{read} bytes a file that was read");
    assert!(rounds.iter().all(|now| *now < 2_300), "{rounds:?}");
    assert_eq!(disk.engine.counts().versions, 6 * FILES);
}
