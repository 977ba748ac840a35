//! An engine that tracks many files.
#![allow(dead_code)] // each test uses a part of it

use std::time::{Duration, Instant};

use serde_json::json;
use touchmark_engine::{
    Config, Content, Effect, Engine, Found, Hint, Input, ReadOrder, Stamp, State,
};
use touchmark_proto::{ConnectionId, Hash, Millis, RelPath, Request, RequestId};

fn name(number: u64) -> String {
    format!("src/d{:04}/file{:03}.rs", number / 100, number % 100)
}

/// An engine, and a disk on which the content of every file is the number of a
/// round.
pub(crate) struct Disk {
    pub(crate) engine: Engine,
    files: u64,
    /// The present name of the directory of all files.
    top: String,
    now: Millis,
    round: u64,
    requests: u64,
}

impl Disk {
    pub(crate) fn new(files: u64) -> Self {
        Self {
            engine: Engine::restore(Config::default(), State::new(1, false), [], 1_000),
            files,
            top: "src".into(),
            now: 1_000,
            round: 0,
            requests: 0,
        }
    }

    fn found(&self, order: &ReadOrder) -> Found {
        let path = order.path.to_string_lossy();
        let below = path.strip_prefix(&self.top);
        let Some(below) = below.filter(|below| below.starts_with('/')) else {
            return Found::Absent;
        };
        let text = format!("{below} {}", self.round);
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

    /// Renames the directory of all files. Returns the time that it takes until
    /// all is recorded.
    pub(crate) fn rename(&mut self, to: &str) -> Duration {
        let began = Instant::now();
        let from = std::mem::replace(&mut self.top, to.into());
        let [from, to] = [&*from, to].map(|name| RelPath::new(name.as_bytes()).unwrap());
        self.feed(Input::Renamed { from, to });
        while let Some(due) = self.engine.deadline() {
            self.now = self.now.max(due);
            self.feed(Input::Tick);
        }
        began.elapsed()
    }

    /// Makes a session read every file.
    pub(crate) fn read_all(&mut self) {
        for number in 0..self.files {
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
    pub(crate) fn write_all(&mut self) {
        self.round += 1;
        for number in 0..self.files {
            self.now += u64::from(number % 10 == 0);
            let path = RelPath::new(name(number).as_bytes()).unwrap();
            let hint = Hint::WrittenAndClosed;
            self.feed(Input::Hint { path, hint });
            self.feed(Input::Tick);
        }
    }
}
