//! Inputs with any content in any order, even those that no shell would pass:
//! results of reads that were not ordered, fences that no request waits for,
//! every method with any parameters that its schema allows. The engine must not
//! panic, and after every input its facts must give its state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde_json::{Value, json};
use touchmark_engine::{
    Comparison, Config, Content, Difference, Edited, Effect, Engine, Found, Hint, Hunk, Input,
    Learned, Object, Question, ReadOrder, ReadOutcome, Record, Saved, Stamp, State, WriteOrder,
    WriteOutcome,
};
use touchmark_proto::writes::Guard;
use touchmark_proto::{
    ConnectionId, Error, ErrorCode, METHODS, Millis, RelPath, Request, RequestId,
};

use crate::content::{COMMON, content, hash, lines};
use crate::op::{ALL_FILES, SESSIONS};
use crate::runs::rng::Rng;
use crate::schema::{self, Choices};
use crate::world::{EPOCH, START, rel};

/// The parameters of every method. A test in `proto` keeps the schema correct.
const SCHEMA: &str = include_str!("../../../docs/protocol.schema.json");

static PARSED: OnceLock<Value> = OnceLock::new();

/// Plays inputs until no choices are left.
pub fn run(rng: Rng) {
    let config = Config {
        root: b"/w".to_vec(),
        ..Config::default()
    };
    let mut stage = Stage {
        schema: PARSED.get_or_init(|| serde_json::from_str(SCHEMA).unwrap()),
        engine: Engine::restore(config.clone(), State::new(EPOCH, false), [], START),
        config,
        folded: State::new(EPOCH, false),
        records: Vec::new(),
        now: START,
        reads: Vec::new(),
        comparisons: Vec::new(),
        writes: Vec::new(),
        fences: Vec::new(),
        asked: BTreeSet::new(),
        requests: 0,
        heard: Vec::new(),
        rng,
    };
    stage.start();
    for _ in 0..400 {
        if stage.rng.spent() {
            break;
        }
        stage.step();
    }
}

struct Stage {
    rng: Rng,
    schema: &'static Value,
    config: Config,
    engine: Engine,
    folded: State,
    records: Vec<Record>,
    now: Millis,
    reads: Vec<ReadOrder>,
    comparisons: Vec<Comparison>,
    writes: Vec<WriteOrder>,
    fences: Vec<u64>,
    /// Requests without an answer.
    asked: BTreeSet<u64>,
    requests: u64,
    /// Names of edits and commands, cursors and clocks from answers.
    heard: Vec<String>,
}

impl Stage {
    fn step(&mut self) {
        match self.rng.below(20) {
            0..=6 => self.ask(),
            7..=9 => self.read_done(),
            10..=11 => {
                let path = rel(self.path());
                let hint = self.rng.pick(&[
                    Hint::Closed,
                    Hint::Written,
                    Hint::WrittenAndClosed,
                    Hint::Appeared,
                    Hint::Removed,
                    Hint::Touched,
                ]);
                if self.rng.chance(20) {
                    let paths = vec![path, rel(self.path())];
                    return self.handle(Input::Hints { paths, hint });
                }
                self.handle(Input::Hint { path, hint });
            }
            12..=13 if self.rng.chance(30) => self.compared(),
            12..=13 => self.fence_done(),
            14 => self.write_done(),
            15 => {
                let (from, to) = (rel(self.path()), rel(self.path()));
                self.handle(Input::Renamed { from, to });
            }
            16 => {
                self.now += self.rng.pick(&[0, 1, 20, 150, 3_000, 11_000, 700_000]);
                self.handle(Input::Tick);
            }
            17 => {
                let input = match self.rng.below(3) {
                    0 => Input::Overflow,
                    1 => Input::Gap {
                        below: rel(self.rng.pick(&["d", "d/e", "x", "a", "nowhere"])),
                    },
                    _ => Input::Gap {
                        below: rel(self.path()),
                    },
                };
                self.handle(input);
            }
            18 => {
                let connection = ConnectionId(self.rng.below(4) as u64);
                self.handle(Input::Disconnected { connection });
            }
            _ => match self.rng.below(4) {
                0 => self.restart(),
                1 => {
                    let pid = self.rng.below(4) as u32;
                    self.handle(Input::ProcessEnded { pid });
                }
                2 => {
                    let command = self.text(&Value::Null, "command");
                    self.handle(Input::CommandNeverRan { command });
                }
                _ => {
                    let command = self.text(&Value::Null, "command");
                    self.handle(Input::CommandUnanswered { command });
                }
            },
        }
    }

    fn path(&mut self) -> &'static str {
        self.rng.pick(ALL_FILES)
    }

    fn content(&mut self) -> Vec<u8> {
        content(self.rng.below(COMMON as usize + 4) as u32)
    }

    // --- inputs ---

    fn ask(&mut self) {
        let method = self.rng.pick(METHODS);
        let schema = self.schema;
        let params = &schema["methods"][method]["params"];
        let params = schema::value(self, schema, params, "").unwrap_or_else(|| json!({}));
        // The schema allows more than the parameters do, since it cannot
        // describe everything, such as paths.
        let Ok(ask) = Request::from_json(method, params) else {
            return;
        };
        self.requests += 1;
        self.asked.insert(self.requests);
        let until = self.rng.chance(10).then(|| self.now + self.rng.next());
        let connection = ConnectionId(self.rng.below(4) as u64);
        self.handle(Input::Request {
            request: RequestId(self.requests),
            connection,
            ask,
            until,
        });
    }

    fn read_done(&mut self) {
        let order = match self.reads.len() {
            0 => None,
            // Sometimes the read stays in progress, so that its result comes
            // twice.
            count if self.rng.chance(90) => Some(self.reads.remove(self.rng.below(count))),
            count => Some(self.reads[self.rng.below(count)].clone()),
        };
        let order = order.unwrap_or_else(|| ReadOrder {
            path: rel(self.path()),
            ticket: self.rng.next(),
            prefixes: vec![self.rng.next()],
            bytes: false,
            keep: false,
        });
        let found = match self.rng.below(12) {
            0..=1 => Found::Absent,
            2 => Found::Unstable {
                size: self.rng.next(),
            },
            3 => Found::Unreadable {
                cause: "permission denied".into(),
            },
            4 => Found::NotAFile { file_type: "fifo" },
            5 => Found::Outside,
            _ => return self.file_read(order),
        };
        self.handle(Input::Read {
            path: order.path,
            ticket: order.ticket,
            outcome: found.into(),
        });
    }

    fn file_read(&mut self, order: ReadOrder) {
        let bytes = self.content();
        let size = bytes.len() as u64;
        let time = self.now - self.rng.pick(&[0, 1, 5_000, 100_000]);
        let nanos = time as i64 * 1_000_000;
        // Names that are symlinks to each other, and to files with several
        // links.
        let real = self.rng.chance(10).then(|| rel(self.path()));
        let object = self.rng.chance(30).then(|| Object {
            device: 1,
            inode: self.rng.below(3) as u64,
        });
        let outcome = ReadOutcome {
            found: Found::File(Content {
                hash: hash(&bytes),
                size,
                lines: lines(&bytes),
                mtime_ms: time,
                mode: None,
                owner: None,
                stamp: Stamp {
                    inode: self.rng.next(),
                    size,
                    modified: nanos,
                    changed: nanos,
                    ..Stamp::default()
                },
                settled: self.rng.chance(50),
            }),
            prefixes: order
                .prefixes
                .iter()
                .filter(|length| **length <= size)
                .map(|length| (*length, hash(&bytes[..*length as usize])))
                .collect(),
            // A file may be too large to be returned with its bytes.
            bytes: (order.bytes && self.rng.chance(90)).then(|| bytes.into()),
            secret: self.rng.pick(&[false, false, false, true]),
            real,
            link: None,
            object,
            open_for_writing: self.rng.chance(10),
            took: 0,
        };
        self.handle(Input::Read {
            path: order.path,
            ticket: order.ticket,
            outcome,
        });
    }

    fn compared(&mut self) {
        let (number, mut files) = match self.comparisons.len() {
            0 => (self.rng.next(), Vec::new()),
            count => {
                let comparison = self.comparisons.remove(self.rng.below(count));
                (comparison.number, comparison.files)
            }
        };
        if self.rng.chance(50) {
            files.clear();
        }
        let mut differ: Vec<RelPath> = files.into_iter().map(|(path, _)| path).collect();
        if self.rng.chance(30) {
            differ.push(rel(self.path()));
        }
        self.handle(Input::Compared { number, differ });
    }

    fn fence_done(&mut self) {
        let fence = match self.fences.len() {
            0 => self.rng.next(),
            count => self.fences.remove(self.rng.below(count)),
        };
        let input = if self.rng.chance(90) {
            Input::FenceReached { fence }
        } else {
            Input::FenceFailed { fence }
        };
        self.handle(input);
    }

    fn write_done(&mut self) {
        let (path, ticket) = match self.writes.len() {
            0 => (rel(self.path()), self.rng.next()),
            count => {
                let order = self.writes.remove(self.rng.below(count));
                (order.path, order.ticket)
            }
        };
        let outcome = match self.rng.below(4) {
            0 | 1 => WriteOutcome::Done {
                guard: self
                    .rng
                    .pick(&[Guard::Exchange, Guard::Noreplace, Guard::Checked]),
                lease: self.rng.chance(50),
                recovered: Vec::new(),
            },
            2 => WriteOutcome::Conflict {
                found: self.rng.chance(70).then(|| hash(&self.content())),
                cause: "somebody was quicker".into(),
                recovered: vec!["/r/1".into()],
            },
            _ => WriteOutcome::Failed(Error::new(ErrorCode::Storage, "no space")),
        };
        self.handle(Input::Written {
            path,
            ticket,
            outcome,
        });
    }

    /// Kills the daemon. The next one has only the recorded facts.
    fn restart(&mut self) {
        self.reads.clear();
        self.comparisons.clear();
        self.writes.clear();
        self.fences.clear();
        self.asked.clear();
        let mut kept = Saved::from(State::new(EPOCH, false));
        if self.rng.chance(50) {
            kept.stamps = self.engine.stamps().clone();
        }
        self.engine = Engine::restore(self.config.clone(), kept, self.records.clone(), self.now);
        self.start();
    }

    fn start(&mut self) {
        let mut effects = Vec::new();
        self.engine.start(self.now, &mut effects);
        self.carry_out(effects);
    }

    fn handle(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.engine.handle(self.now, input, &mut effects);
        self.carry_out(effects);
    }

    // --- effects ---

    fn carry_out(&mut self, effects: Vec<Effect>) {
        let mut questions = Vec::new();
        for effect in effects {
            match effect {
                Effect::Record(record) => {
                    let last = self.records.last().map_or(0, |last| last.n);
                    assert!(record.n > last, "the clock does not grow: {record:?}");
                    self.folded.apply(&record);
                    self.records.push(record);
                }
                Effect::Read(order) => self.reads.push(order),
                Effect::Compare(comparison) => self.comparisons.push(comparison),
                Effect::Write { order, .. } => self.writes.push(order),
                Effect::Fence(fence) => self.fences.push(fence),
                Effect::Reply { request, answer } => {
                    self.answered(request);
                    if let Ok(answer) = answer {
                        self.hear(&answer.reply.to_json());
                    }
                }
                Effect::Recall { request, .. } | Effect::Host { request, .. } => {
                    self.answered(request);
                }
                Effect::Learn { request, question } => questions.push((request, question)),
                Effect::Track(_)
                | Effect::Untrack(_)
                | Effect::AwaitProcess(_)
                | Effect::Witness(_)
                | Effect::Publish(_) => {}
            }
        }
        assert_eq!(
            &self.folded,
            self.engine.state(),
            "the facts give another state"
        );
        for (request, question) in questions {
            let learned = match question {
                Question::Sweep(_) => Learned::Swept(touchmark_engine::Swept::default()),
                Question::Processes(processes) => {
                    let start = self.rng.pick(&[None, Some(7), Some(8)]);
                    Learned::Processes(processes.into_iter().map(|pid| (pid, start)).collect())
                }
                Question::Differences(pairs) => {
                    let hunk = Hunk {
                        old_start: 1,
                        old_lines: self.rng.pick(&[0, 1]),
                        new_start: 1,
                        new_lines: 1,
                    };
                    let known = self.rng.pick(&[true, false]);
                    let found = pairs.into_iter().filter(|_| known);
                    let differences = found.map(|pair| Difference {
                        pair,
                        old_lines: 3,
                        hunks: vec![hunk],
                    });
                    Learned::Differences(differences.collect())
                }
                Question::Lines(_) => {
                    let lines = self.rng.chance(80).then(|| b"one\ntwo\n"[..].into());
                    Learned::Lines(lines)
                }
                Question::Edited { .. } => Learned::Edited(Edited {
                    versions: self.records.clone(),
                    then: BTreeMap::new(),
                }),
            };
            self.handle(Input::Learned {
                request,
                learned: Ok(learned),
            });
        }
    }

    fn answered(&mut self, request: RequestId) {
        assert!(
            self.asked.remove(&request.0),
            "{request:?} was answered twice or never asked"
        );
    }

    fn hear(&mut self, answer: &Value) {
        match answer {
            Value::Object(fields) => {
                for (name, field) in fields {
                    if let (true, Value::String(text)) = (is_name(name), field) {
                        self.heard.push(text.clone());
                        if self.heard.len() > 12 {
                            self.heard.remove(0);
                        }
                    }
                    self.hear(field);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.hear(item)),
            _ => {}
        }
    }
}

impl Choices for Stage {
    fn below(&mut self, end: usize) -> usize {
        self.rng.below(end)
    }

    fn number(&mut self, _: &Value) -> Value {
        let number = match self.rng.below(8) {
            0 => 0,
            1 => 1,
            2 => 2,
            3 => 10_000,
            4 => u64::from(u32::MAX),
            5 => u64::MAX,
            6 => self.now,
            _ => self.rng.next(),
        };
        number.into()
    }

    fn free(&mut self) -> Option<Value> {
        Some(self.rng.next().into())
    }

    fn text(&mut self, _: &Value, name: &str) -> String {
        match name {
            "session" | "parent" => self.rng.pick(SESSIONS).to_owned(),
            "path" | "paths" | "keep" => match self.rng.below(12) {
                0 => format!("/w/{}", self.path()),
                1 => "/etc/passwd".into(),
                2 => "d/../a".into(),
                _ => self.path().to_owned(),
            },
            "hash" | "expect" | "base" => match self.rng.below(6) {
                0 => "absent".into(),
                _ => hash(&self.content()).to_string(),
            },
            _ if is_name(name) && !self.heard.is_empty() && self.rng.chance(85) => {
                self.heard[self.rng.below(self.heard.len())].clone()
            }
            "callId" => self.rng.pick(&["c0", "c1"]).to_owned(),
            "since" | "before" => format!("{EPOCH}:{}", self.rng.next()),
            "base64" => "YQpiCg==".into(),
            _ => String::from_utf8(self.content()).unwrap(),
        }
    }
}

/// Returns whether a field contains a name from an earlier answer.
fn is_name(field: &str) -> bool {
    matches!(
        field,
        "edit" | "command" | "cursor" | "clock" | "since" | "before"
    )
}
