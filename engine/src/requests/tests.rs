//! Tests that requests behave as their rows in the table say.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use touchmark_proto::{ConnectionId, Error, Hash, RelPath, Reply, Request, RequestId};

use crate::{
    Config, Content, Effect, Engine, Fact, Found, Hint, Input, ReadOutcome, Stamp, State,
    WriteOutcome,
};

/// An engine, and a disk whose contents are numbers.
struct Fixture {
    engine: Engine,
    disk: BTreeMap<&'static str, u8>,
    facts: Vec<Fact>,
    requests: u64,
}

impl Fixture {
    fn new(config: Config) -> Self {
        Self {
            engine: Engine::restore(config, State::new(1, false), [], 1_000),
            disk: BTreeMap::new(),
            facts: Vec::new(),
            requests: 0,
        }
    }

    fn found(&self, path: &RelPath) -> Found {
        let text = path.to_string_lossy();
        self.disk.get(&*text).map_or(Found::Absent, |number| {
            Found::File(Content {
                hash: Hash([*number; 32]),
                size: 1,
                lines: 1,
                mtime_ms: 1,
                mode: None,
                owner: None,
                stamp: Stamp::default(),
                settled: true,
            })
        })
    }

    /// Feeds one input to the engine and carries out the effects. Writes fail.
    fn feed(&mut self, input: Input) -> Option<Result<Reply, Error>> {
        let mut answered = None;
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let mut effects = Vec::new();
            self.engine.handle(1_000, input, &mut effects);
            for effect in effects {
                match effect {
                    Effect::Record(record) => self.facts.push(record.fact),
                    Effect::Fence(fence) => inputs.push(Input::FenceReached { fence }),
                    Effect::Read(order) => inputs.push(Input::Read {
                        outcome: ReadOutcome {
                            bytes: order.bytes.then(|| b"x".as_slice().into()),
                            ..ReadOutcome::from(self.found(&order.path))
                        },
                        path: order.path,
                        ticket: order.ticket,
                    }),
                    Effect::Reply { answer, .. } => {
                        answered = Some(answer.map(|answer| answer.reply));
                    }
                    Effect::Write { order, .. } => inputs.push(Input::Written {
                        path: order.path,
                        ticket: order.ticket,
                        outcome: WriteOutcome::Failed(Error::invalid("nothing is written here")),
                    }),
                    _ => {}
                }
            }
        }
        answered
    }

    fn ask(&mut self, method: &str, params: Value) -> Option<Result<Reply, Error>> {
        self.requests += 1;
        self.feed(Input::Request {
            request: RequestId(self.requests),
            connection: ConnectionId(self.requests),
            ask: Request::from_json(method, params).unwrap(),
            until: None,
        })
    }

    fn ok(&mut self, method: &str, params: Value) {
        let answer = self.ask(method, params).unwrap();
        assert!(answer.is_ok(), "{method}: {answer:?}");
    }

    fn hint(&mut self, name: &str, hint: Hint) {
        let path = RelPath::new(name.as_bytes()).unwrap();
        self.feed(Input::Hint { path, hint });
    }
}

/// An editor removes a file and restores it. A request about that file gets the
/// answer that it is gone. A request about another file, or one that does not
/// cover contents, does not break up the save (ATTR-12).
#[test]
fn what_is_asked_of_one_file_cuts_no_save_of_another_short() {
    let about_a: &[(&str, Value)] = &[
        ("file/status", json!({"session": "s", "paths": ["a"]})),
        ("file/status", json!({"session": "s"})),
        ("file/snapshot", json!({"path": "a"})),
        ("file/history", json!({"path": "a"})),
        (
            "edit/begin",
            json!({"session": "s", "files": [{"path": "a"}]}),
        ),
        ("edit/commit", json!({"session": "s", "callId": "c"})),
        (
            "edit/commit",
            json!({"session": "s", "files": [{"path": "a"}]}),
        ),
        ("edit/abort", json!({"session": "s", "callId": "c"})),
        (
            "file/write",
            json!({"session": "s", "path": "a", "text": "new"}),
        ),
        (
            "file/edit",
            json!({"session": "s", "path": "a", "oldString": "x", "newString": "y"}),
        ),
        ("modified/list", json!({"session": "s"})),
        ("modified/take", json!({"session": "s"})),
        (
            "retention/rank",
            json!({"session": "s", "step": 1, "maxAge": 1,
                   "items": [{"id": "1", "tool": "read_file", "path": "a", "step": 1}]}),
        ),
    ];
    let told = |method: &str, params: &Value| {
        let mut fixture = Fixture::new(Config::default());
        fixture.disk.extend([("a", 1), ("b", 1)]);
        fixture.ok("file/read", json!({"session": "s", "path": "a"}));
        fixture.ok("file/read", json!({"session": "t", "path": "b"}));
        let begin = json!({"session": "s", "files": [{"path": "a"}], "callId": "c"});
        fixture.ok("edit/begin", begin);
        fixture.disk.remove("b");
        fixture.hint("b", Hint::Removed);
        fixture.ask(method, params.clone());
        fixture.disk.insert("b", 2);
        fixture.hint("b", Hint::Closed);
        fixture.ok("sync", json!({}));
        let of_b = |fact: &&Fact| matches!(fact, Fact::Version(version) if version.path.as_bytes() == b"b");
        fixture.facts.iter().filter(of_b).count()
    };
    for (method, params) in about_a {
        assert_eq!(told(method, params), 1, "{method} {params}");
    }
    // The fixture can detect a broken up save: these requests cover the file
    // and end the save.
    for (method, params) in [
        ("file/status", json!({"session": "t", "paths": ["b"]})),
        ("modified/list", json!({"session": "t"})),
        ("command/begin", json!({"session": "s"})),
        ("sync", json!({})),
    ] {
        assert_eq!(told(method, &params), 2, "{method} {params}");
    }
}

/// A text is requested directly after it was written: the hint of the write
/// comes during the first read and causes another read. A request that waits
/// for the bytes gets them from the reads that it ordered.
#[test]
fn a_text_comes_with_its_bytes_whatever_else_is_read_of_the_file_meanwhile() {
    let mut fixture = Fixture::new(Config::default());
    let mut effects = Vec::new();
    fixture.disk.insert("a", 1);
    fixture.requests += 1;
    let ask = json!({"session": "s", "path": "a"});
    let ask = Input::Request {
        request: RequestId(fixture.requests),
        connection: ConnectionId(fixture.requests),
        ask: Request::from_json("file/readText", ask).unwrap(),
        until: None,
    };
    fixture.engine.handle(1_000, ask, &mut effects);
    let path = RelPath::new(b"a".as_slice()).unwrap();
    let hint = Hint::WrittenAndClosed;
    assert!(
        fixture
            .feed(Input::Hint {
                path: path.clone(),
                hint
            })
            .is_none()
    );
    let mut orders = 0;
    let mut answered = None;
    while let Some(effect) = (!effects.is_empty()).then(|| effects.remove(0)) {
        let input = match effect {
            Effect::Fence(fence) => Input::FenceReached { fence },
            Effect::Read(order) => {
                orders += 1;
                Input::Read {
                    outcome: ReadOutcome {
                        bytes: order.bytes.then(|| b"x".as_slice().into()),
                        ..ReadOutcome::from(fixture.found(&order.path))
                    },
                    path: order.path,
                    ticket: order.ticket,
                }
            }
            Effect::Reply { answer, .. } => {
                answered = Some(answer.map(|answer| answer.reply));
                continue;
            }
            _ => continue,
        };
        fixture.engine.handle(1_000, input, &mut effects);
    }
    let Some(Ok(Reply::FileReadText(text))) = answered else {
        panic!("{answered:?}");
    };
    assert_eq!(text.text.as_deref(), Some("x"));
    assert!(orders <= 2, "{orders} reads of one file");
}
