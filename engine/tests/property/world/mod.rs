//! The simulated surroundings of the engine: disk, watcher's queue, reads in
//! progress, clients, store. Everything that happens here is caused by an
//! [`Op`].

mod users;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use touchmark_engine::{
    Answer, Comparison, Config, Effect, Engine, Found, Hint, Input, Learned, Question, ReadOrder,
    ReadOutcome, Record, Saved, State,
};
use touchmark_proto::{
    ConnectionId, Error, Hash, HashOrAbsent, Millis, RelPath, Reply, Request, RequestId,
};

use crate::asks;
use crate::content::{content, hash};
use crate::disk::Disk;
use crate::op::{ALL_FILES, Ask, Asking, How, Named, Op, Path};

pub const EPOCH: u64 = 7;
pub const START: Millis = 1_700_000_000_000;

pub fn rel(path: &str) -> RelPath {
    RelPath::new(path.as_bytes()).unwrap()
}

fn parent(path: &str) -> &str {
    path.rfind('/').map_or("", |cut| &path[..cut])
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Queued {
    Hint(String, Hint),
    Renamed(String, String),
    Overflow,
    Gap(String),
    Fence(u64),
    FenceFailed(u64),
    Compared(u64, Vec<RelPath>),
}

struct DoneRead {
    order: ReadOrder,
    outcome: ReadOutcome,
}

struct Writer {
    node: usize,
    left: Vec<u8>,
    path: Path,
}

/// An edit from the client's point of view.
#[derive(Clone, Debug)]
pub struct Slot {
    pub session: usize,
    /// Each file's path, its declared content, and what will be written.
    pub files: Vec<(Path, Option<HashOrAbsent>, Option<Vec<u8>>)>,
    pub call: Option<String>,
    pub answered: bool,
    pub edit: Option<String>,
}

/// A request, with the time when it was made.
#[derive(Clone, Debug)]
pub struct Asked {
    pub asking: Asking,
    pub request: Request,
    pub id: u64,
    pub connection: u64,
    pub until: Option<Millis>,
    /// The moment of the disk when it was made.
    pub moment: u64,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // few are alive at a time
pub enum Outcome {
    Reply(Result<Answer, Error>),
    /// The shell answers the request.
    Shell,
}

/// An effect of the engine, or another event, in order.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // few are alive at a time
pub enum Seen {
    Asked(Asked),
    Fact(Record),
    Answered {
        asked: Asked,
        outcome: Outcome,
        moment: u64,
    },
    /// Coverage was lost below this path; everywhere if it is empty.
    Gap(String),
    Drained,
}

pub struct World {
    pub engine: Option<Engine>,
    pub config: Config,
    pub disk: Disk,
    pub now: Millis,
    pub records: Vec<Record>,
    /// The state that results from folding the records.
    pub folded: State,
    pub pending: BTreeMap<u64, Asked>,
    pub gone: BTreeSet<u64>,
    pub slots: BTreeMap<usize, Slot>,
    pub seen: Vec<Seen>,
    pub failure: Option<String>,
    /// For each path: when a read last found it changing.
    pub unstable: BTreeMap<String, u64>,
    pub tracked: BTreeSet<String>,
    watched: BTreeSet<String>,
    queue: VecDeque<Queued>,
    reads: Vec<ReadOrder>,
    comparisons: Vec<Comparison>,
    done: Vec<DoneRead>,
    writers: BTreeMap<usize, Writer>,
    outside: BTreeMap<Path, usize>,
    snapshot: Option<(Saved, usize)>,
    last_cursor: BTreeMap<usize, String>,
    connections: BTreeMap<u64, u64>,
    next_connection: u64,
    next_request: u64,
    fail_fence: bool,
    pub steps: u64,
    /// Whether to print the engine's inputs and effects.
    pub trace: bool,
}

impl World {
    pub fn new(tick: Millis, initial: &[(Path, u32)]) -> Self {
        let mut disk = Disk::new(tick);
        for (path, id) in initial {
            let node = disk.create(&content(*id), START - 100_000);
            disk.link(path, node);
        }
        let config = Config {
            root: b"/w".to_vec(),
            ..Config::default()
        };
        let mut world = Self {
            engine: None,
            config,
            disk,
            now: START,
            records: Vec::new(),
            folded: State::new(EPOCH, false),
            pending: BTreeMap::new(),
            gone: BTreeSet::new(),
            slots: BTreeMap::new(),
            seen: Vec::new(),
            failure: None,
            unstable: BTreeMap::new(),
            tracked: BTreeSet::new(),
            watched: BTreeSet::new(),
            queue: VecDeque::new(),
            reads: Vec::new(),
            comparisons: Vec::new(),
            done: Vec::new(),
            writers: BTreeMap::new(),
            outside: BTreeMap::new(),
            snapshot: None,
            last_cursor: BTreeMap::new(),
            connections: BTreeMap::new(),
            next_connection: 0,
            next_request: 0,
            fail_fence: false,
            steps: 0,
            trace: crate::runs::TRACE.load(std::sync::atomic::Ordering::Relaxed),
        };
        world.up(false);
        world
    }

    pub fn fail(&mut self, text: impl Into<String>) {
        if self.failure.is_none() {
            self.failure = Some(text.into());
        }
    }

    pub fn writing(&self, path: &str) -> bool {
        self.writers
            .values()
            .any(|writer| self.disk.name_of(writer.node).as_deref() == Some(path))
    }

    /// Returns whether this writer has the path open.
    pub fn writes(&self, writer: usize, path: &str) -> bool {
        self.writers
            .get(&writer)
            .is_some_and(|open| self.disk.name_of(open.node).as_deref() == Some(path))
    }

    // --- the daemon's side ---

    fn up(&mut self, snapshot: bool) {
        let (kept, skip) = match (&self.snapshot, snapshot) {
            (Some((kept, count)), true) => (kept.clone(), *count),
            _ => (State::new(EPOCH, false).into(), 0),
        };
        let records: Vec<Record> = self.records[skip..].to_vec();
        let mut engine = Engine::restore(self.config.clone(), kept, records, self.now);
        let mut effects = Vec::new();
        engine.start(self.now, &mut effects);
        self.engine = Some(engine);
        self.seen.push(Seen::Gap(String::new()));
        self.carry_out(effects);
    }

    fn down(&mut self) {
        if let Some(engine) = self.engine.take()
            && self.records.len().is_multiple_of(2)
        {
            let kept = Saved {
                state: engine.state().clone(),
                stamps: engine.stamps().clone(),
            };
            self.snapshot = Some((kept, self.records.len()));
        }
        self.queue.clear();
        self.reads.clear();
        self.comparisons.clear();
        self.done.clear();
        self.pending.clear();
        self.tracked.clear();
        self.watched.clear();
        self.connections.clear();
    }

    fn handle(&mut self, input: Input) {
        if self.trace {
            eprintln!("[{}] <- {input:?}", self.now - START);
        }
        let Some(engine) = &mut self.engine else {
            return;
        };
        let mut effects = Vec::new();
        engine.handle(self.now, input, &mut effects);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        let mut unkept = Vec::new();
        for effect in effects {
            if self.trace && !matches!(effect, Effect::Publish(_)) {
                eprintln!("        -> {effect:?}");
            }
            match effect {
                Effect::Record(record) => {
                    if self.records.last().is_some_and(|last| last.n >= record.n) {
                        self.fail(format!("the clock does not grow: {record:?}"));
                    }
                    self.folded.apply(&record);
                    self.records.push(record.clone());
                    self.seen.push(Seen::Fact(record));
                }
                Effect::Track(path) => {
                    self.tracked.insert(path.to_string_lossy());
                    self.watch();
                }
                Effect::Untrack(path) => {
                    self.tracked.remove(&path.to_string_lossy());
                    self.watch();
                }
                Effect::Read(order) => self.reads.push(order),
                Effect::Compare(comparison) => {
                    if comparison.track {
                        let files = comparison.files.iter();
                        self.tracked
                            .extend(files.map(|(path, _)| path.to_string_lossy()));
                        self.watch();
                    }
                    self.comparisons.push(comparison);
                }
                Effect::Fence(fence) => {
                    if std::mem::take(&mut self.fail_fence) {
                        self.queue.push_back(Queued::FenceFailed(fence));
                    } else {
                        self.queue.push_back(Queued::Fence(fence));
                    }
                }
                Effect::Reply { request, answer } => {
                    self.reply(request, Outcome::Reply(answer.map(|answer| *answer)))
                }
                Effect::Recall { request, .. } | Effect::Host { request, .. } => {
                    self.reply(request, Outcome::Shell);
                }
                Effect::Write { order, .. } => {
                    self.fail(format!("no operation writes through the daemon: {order:?}"));
                }
                // No texts are kept, so a changed file is stale as a whole.
                Effect::Learn {
                    request,
                    question: Question::Differences(_),
                } => unkept.push(request),
                Effect::Learn { question, .. } => {
                    self.fail(format!("no operation asks for that: {question:?}"));
                }
                // No operation names a process.
                Effect::Publish(_) | Effect::AwaitProcess(_) | Effect::Witness(_) => {}
            }
        }
        for request in unkept {
            let learned = Ok(Learned::Differences(Vec::new()));
            self.handle(Input::Learned { request, learned });
        }
    }

    fn watch(&mut self) {
        self.watched = self
            .tracked
            .iter()
            .map(|path| parent(path).to_owned())
            .collect();
    }

    fn reply(&mut self, request: RequestId, outcome: Outcome) {
        let Some(asked) = self.pending.remove(&request.0) else {
            if !self.gone.contains(&request.0) {
                self.fail(format!(
                    "{request:?} was answered twice or never asked: {outcome:?}"
                ));
            }
            return;
        };
        match (&asked.asking.ask, &outcome) {
            (Ask::Begin { slot, .. } | Ask::Mark { slot, .. }, Outcome::Reply(answer)) => {
                if let Some(slot) = self.slots.get_mut(slot) {
                    slot.answered = true;
                    slot.edit = match answer.as_ref().map(|answer| &answer.reply) {
                        Ok(Reply::EditBegin(begun)) => Some(begun.edit.clone()),
                        Ok(Reply::EditMark(marked)) => marked.edit.clone(),
                        _ => None,
                    };
                }
            }
            (
                Ask::Take {
                    peek: false,
                    paths: None,
                    ..
                },
                Outcome::Reply(Ok(answer)),
            ) => {
                if let Reply::ModifiedTake(taken) = &answer.reply {
                    let session = asked.asking.session;
                    self.last_cursor.insert(session, taken.cursor.clone());
                }
            }
            _ => {}
        }
        let moment = self.disk.moment;
        self.seen.push(Seen::Answered {
            asked,
            outcome,
            moment,
        });
    }

    // --- the watcher's side ---

    fn push(&mut self, queued: Queued) {
        if self.engine.is_some() && self.queue.back() != Some(&queued) {
            self.queue.push_back(queued);
        }
    }

    fn hint(&mut self, path: &str, hint: Hint) {
        if !self.tracked.contains(path) {
            return;
        }
        // The watcher reports both as one hint if it finds them together.
        let written = Queued::Hint(path.into(), Hint::Written);
        if hint == Hint::Closed && self.now.is_multiple_of(2) && self.queue.back() == Some(&written)
        {
            self.queue.pop_back();
            return self.push(Queued::Hint(path.into(), Hint::WrittenAndClosed));
        }
        self.push(Queued::Hint(path.into(), hint));
    }

    fn deliver_hint(&mut self) -> bool {
        let Some(queued) = self.queue.pop_front() else {
            return false;
        };
        let input = match queued {
            Queued::Hint(path, hint) => Input::Hint {
                path: rel(&path),
                hint,
            },
            Queued::Renamed(from, to) => Input::Renamed {
                from: rel(&from),
                to: rel(&to),
            },
            Queued::Overflow => Input::Overflow,
            Queued::Gap(below) => Input::Gap { below: rel(&below) },
            Queued::Fence(fence) => Input::FenceReached { fence },
            Queued::FenceFailed(fence) => Input::FenceFailed { fence },
            Queued::Compared(number, differ) => Input::Compared { number, differ },
        };
        self.handle(input);
        true
    }

    fn exec_read(&mut self, which: usize, unstable: bool) -> bool {
        if (self.reads.is_empty() || which % 3 == 1)
            && let Some(comparison) = self.comparisons.pop()
        {
            self.compare(comparison);
            return true;
        }
        if self.reads.is_empty() {
            return false;
        }
        let order = self.reads.remove(which % self.reads.len());
        let path = order.path.to_string_lossy();
        let outcome = if unstable && self.writing(&path) {
            self.unstable.insert(path.clone(), self.disk.moment);
            Found::Unstable { size: 1 }.into()
        } else if !self.disk.below(&path).is_empty() {
            Found::NotAFile {
                file_type: "directory",
            }
            .into()
        } else {
            self.disk
                .read(&path, &order.prefixes, order.bytes, self.now)
        };
        self.done.push(DoneRead { order, outcome });
        true
    }

    fn compare(&mut self, Comparison { number, files, .. }: Comparison) {
        let differ = files
            .into_iter()
            .filter(|(path, stamp)| self.disk.stat(&path.to_string_lossy()) != Some(*stamp))
            .map(|(path, _)| path)
            .collect();
        self.queue.push_back(Queued::Compared(number, differ));
    }

    fn give_read(&mut self, which: usize) -> bool {
        if self.done.is_empty() {
            return false;
        }
        let done = self.done.remove(which % self.done.len());
        self.handle(Input::Read {
            path: done.order.path,
            ticket: done.order.ticket,
            outcome: done.outcome,
        });
        true
    }

    /// Lets time pass.
    pub fn pass(&mut self, millis: Millis) {
        self.now += millis;
        self.tick();
    }

    fn tick(&mut self) -> bool {
        let due = self.engine.as_ref().and_then(Engine::deadline);
        if due.is_some_and(|due| due <= self.now) {
            self.handle(Input::Tick);
            return true;
        }
        false
    }

    /// Lets all pending events and reads arrive. No time passes.
    pub fn drain(&mut self) {
        for _ in 0..5_000 {
            let more =
                self.give_read(0) || self.exec_read(0, false) || self.deliver_hint() || self.tick();
            if !more {
                self.seen.push(Seen::Drained);
                return;
            }
            if self.failure.is_some() {
                return;
            }
        }
        self.fail("it never comes to rest");
    }

    pub fn hash_of(&self, path: &str) -> Option<Hash> {
        self.disk.at(path).hash()
    }
}
