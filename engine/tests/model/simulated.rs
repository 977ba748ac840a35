//! The simulated surroundings of the engine: its watcher on the simulated disk,
//! reads in progress, the store, and clients that wait for each answer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use touchmark_engine::recall::history;
use touchmark_engine::{
    Answer, Config, Difference, Effect, Engine, Fact, Hint, Input, Learned, Question, ReadOrder,
    Recall, Record, Saved, State, TextPair, WriteOutcome,
};
use touchmark_proto::writes::Guard;
use touchmark_proto::{ConnectionId, Error, Hash, Millis, RelPath, Reply, Request, RequestId};

use crate::disk::{Disk, Event, Name};
use crate::lines::difference;
use crate::text::{Text, hash};

const EPOCH: u64 = 7;
pub const START: Millis = 1_700_000_000_000;

pub fn rel(path: &str) -> RelPath {
    RelPath::new(path.as_bytes()).unwrap()
}

pub struct World {
    pub engine: Option<Engine>,
    pub disk: Disk,
    pub now: Millis,
    records: Vec<Record>,
    snapshot: Option<(Saved, usize)>,
    /// The state that results from folding the records.
    pub folded: State,
    /// Tracked names, each with the entries on its way when it was last
    /// resolved.
    tracked: BTreeMap<String, BTreeSet<String>>,
    queue: VecDeque<Input>,
    reads: VecDeque<ReadOrder>,
    answered: BTreeMap<u64, Result<Answer, Error>>,
    requests: u64,
    /// Whether reads return in reverse order.
    turned: bool,
    trace: bool,
    /// All contents that any file ever had, if texts are kept.
    texts: Option<BTreeMap<Hash, Text>>,
    pub failure: Option<String>,
}

impl World {
    pub fn new(tick: Millis, (turned, texts): (bool, bool), files: &[(Name, Text)]) -> Self {
        let mut world = Self {
            engine: None,
            disk: Disk::new(tick, START, files),
            now: START,
            records: Vec::new(),
            snapshot: None,
            folded: State::new(EPOCH, false),
            tracked: BTreeMap::new(),
            queue: VecDeque::new(),
            reads: VecDeque::new(),
            answered: BTreeMap::new(),
            requests: 0,
            turned,
            trace: crate::runs::TRACE.load(std::sync::atomic::Ordering::Relaxed),
            texts: texts.then(BTreeMap::new),
            failure: None,
        };
        world.keep();
        world.up(false);
        world
    }

    pub fn is_up(&self) -> bool {
        self.engine.is_some()
    }

    pub fn say(&self, what: &str) {
        if self.trace {
            eprintln!("[{}] {what}", self.now - START);
        }
    }

    /// Starts the daemon again, from a snapshot or from the records alone.
    pub fn up(&mut self, snapshot: bool) {
        let (kept, skip) = match (&self.snapshot, snapshot) {
            (Some((kept, count)), true) => (kept.clone(), *count),
            _ => (State::new(EPOCH, false).into(), 0),
        };
        let config = Config {
            root: b"/w".to_vec(),
            ..Config::default()
        };
        let records = self.records[skip..].to_vec();
        let mut engine = Engine::restore(config, kept, records, self.now);
        let mut effects = Vec::new();
        engine.start(self.now, &mut effects);
        self.engine = Some(engine);
        self.carry_out(effects);
    }

    /// Kills the daemon.
    pub fn down(&mut self) {
        if let Some(engine) = self.engine.take() {
            let kept = Saved {
                state: engine.state().clone(),
                stamps: engine.stamps().clone(),
            };
            self.snapshot = Some((kept, self.records.len()));
        }
        self.tracked.clear();
        self.queue.clear();
        self.reads.clear();
    }

    /// Makes the system's queue overflow: everything in it is lost.
    pub fn overflow(&mut self) {
        self.queue.clear();
        self.queue.push_back(Input::Overflow);
    }

    fn keep(&mut self) {
        if let Some(texts) = &mut self.texts {
            let nodes = self.disk.nodes.iter();
            texts.extend(nodes.map(|node| (hash(&node.text), node.text.clone())));
        }
    }

    fn handle(&mut self, input: Input) {
        let Some(engine) = &mut self.engine else {
            return;
        };
        if self.trace {
            eprintln!("    <- {input:?}");
        }
        let mut effects = Vec::new();
        engine.handle(self.now, input, &mut effects);
        self.carry_out(effects);
    }

    fn track(&mut self, path: &RelPath) {
        let name = path.to_string_lossy();
        let way = self.disk.lead(&name).way;
        self.tracked.insert(name, way);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        let mut learned = Vec::new();
        for effect in effects {
            if self.trace && !matches!(effect, Effect::Publish(_)) {
                eprintln!("    -> {effect:?}");
            }
            match effect {
                Effect::Record(record) => {
                    self.folded.apply(&record);
                    self.records.push(record);
                }
                Effect::Track(path) => self.track(&path),
                Effect::Untrack(path) => {
                    self.tracked.remove(&path.to_string_lossy());
                }
                Effect::Read(order) => self.reads.push_back(order),
                Effect::Compare(comparison) => {
                    let files = comparison.files.into_iter();
                    let (same, differ): (Vec<_>, Vec<_>) =
                        files.partition(|(path, stamp)| self.disk.is_as(path, *stamp));
                    if comparison.track {
                        same.iter()
                            .chain(&differ)
                            .for_each(|(path, _)| self.track(path));
                    }
                    self.queue.push_back(Input::Compared {
                        number: comparison.number,
                        differ: differ.into_iter().map(|(path, _)| path).collect(),
                    });
                }
                Effect::Fence(fence) => self.queue.push_back(Input::FenceReached { fence }),
                Effect::Reply { request, answer } => {
                    self.answered
                        .insert(request.0, answer.map(|answer| *answer));
                }
                Effect::Recall { request, recall } => {
                    let answer = self.recall(&recall);
                    self.answered.insert(request.0, Ok(answer.into()));
                }
                Effect::Write { order, .. } => {
                    // Only files that no other writer touches meanwhile.
                    let path = order.path.to_string_lossy();
                    let lines = String::from_utf8_lossy(&order.bytes).into_owned();
                    let text: Text = lines
                        .lines()
                        .filter_map(|line| line.strip_prefix('l')?.parse().ok())
                        .collect();
                    self.disk.replace(&self.disk.lead(&path).place, &text);
                    self.watch();
                    self.queue.push_back(Input::Written {
                        path: order.path,
                        ticket: order.ticket,
                        outcome: WriteOutcome::Done {
                            guard: Guard::Exchange,
                            lease: true,
                            recovered: Vec::new(),
                        },
                    });
                }
                Effect::Learn {
                    request,
                    question: Question::Differences(pairs),
                } => learned.push((request, self.differences(&pairs))),
                Effect::Publish(_) | Effect::AwaitProcess(_) | Effect::Witness(_) => {}
                Effect::Learn { .. } | Effect::Host { .. } => {
                    self.failure = Some("world: nobody asks for that".into());
                }
            }
        }
        for (request, found) in learned {
            let learned = Ok(Learned::Differences(found));
            self.handle(Input::Learned { request, learned });
        }
    }

    /// Returns the differences between pairs of texts. If no texts are kept, a
    /// changed file is stale as a whole.
    fn differences(&self, pairs: &[TextPair]) -> Vec<Difference> {
        let Some(texts) = &self.texts else {
            return Vec::new();
        };
        let found = pairs.iter().filter_map(|pair| {
            let (old, new) = (texts.get(&pair.old)?, texts.get(&pair.new)?);
            Some(difference(*pair, old, new))
        });
        found.collect()
    }

    fn recall(&mut self, recall: &Recall) -> Reply {
        let Recall::History {
            path,
            earlier,
            named,
            limit,
            marks,
            ..
        } = recall
        else {
            self.failure = Some("world: only a history is asked for".into());
            return Reply::Ping(touchmark_proto::daemon::Done {});
        };
        let of = |name: &RelPath, n: u64| {
            name == path || earlier.iter().any(|(old, to)| old == name && n <= *to)
        };
        let mut rows: Vec<Record> = self.records.iter().rev().cloned().collect();
        rows.retain_mut(|record| {
            let name = match &mut record.fact {
                Fact::Version(version) => &mut version.path,
                Fact::Baseline { path, .. } => path,
                _ => return false,
            };
            let wanted = of(name, record.n);
            name.clone_from(named);
            wanted
        });
        Reply::FileHistory(history(EPOCH, &rows, *limit, marks))
    }

    // --- the watcher ---

    fn hint(&mut self, names: &[String], hint: Hint) {
        let input = match names {
            [] => return,
            [name] => Input::Hint {
                path: rel(name),
                hint,
            },
            names => Input::Hints {
                paths: names.iter().map(|name| rel(name)).collect(),
                hint,
            },
        };
        self.queue.push_back(input);
    }

    fn passing(&self, entry: &str) -> Vec<String> {
        let passing = |(_, way): &(&String, &BTreeSet<String>)| way.contains(entry);
        let names = self.tracked.iter().filter(passing);
        names.map(|(name, _)| name.clone()).collect()
    }

    /// Returns whether events in the directory of an entry are received.
    fn is_watched(&self, entry: &str) -> bool {
        let directory = entry.rfind('/').map_or("", |cut| &entry[..=cut]);
        self.tracked
            .values()
            .any(|way| way.iter().any(|passed| passed.starts_with(directory)))
    }

    /// Turns events of the disk into hints, as the watcher does.
    pub fn watch(&mut self) {
        self.keep();
        let events = std::mem::take(&mut self.disk.events);
        if self.engine.is_none() {
            return;
        }
        for event in events {
            match event {
                Event::Written(node) | Event::Closed(node) => {
                    let leads = |name: &&String| self.disk.lead(name).node == Some(node);
                    let names: Vec<String> = self.tracked.keys().filter(leads).cloned().collect();
                    let hint = match event {
                        Event::Written(_) => Hint::Written,
                        _ => Hint::Closed,
                    };
                    self.hint(&names, hint);
                }
                Event::Appeared(entry) => self.appeared(&entry, false),
                Event::Removed(entry) => {
                    let names = self.passing(&entry);
                    if !self.disk.is_directory(&entry) {
                        self.hint(&names, Hint::Removed);
                    }
                    self.follow(&names);
                }
                Event::Moved { from, to } => self.moved(&from, &to),
                Event::Exchanged(one, other) => {
                    self.moved(&one, &other);
                    self.appeared(&one, true);
                    self.appeared(&other, true);
                }
                Event::Mounted(place) => {
                    let names = self.passing(&place);
                    self.follow(&names);
                    let below = rel(&place);
                    self.queue.push_back(Input::Gap { below });
                    for name in names.iter().filter(|name| !name.starts_with(&place)) {
                        self.queue.push_back(Input::Gap { below: rel(name) });
                    }
                }
            }
        }
    }

    fn follow(&mut self, names: &[String]) {
        for name in names {
            let way = self.disk.lead(name).way;
            self.tracked.insert(name.clone(), way);
        }
    }

    fn appeared(&mut self, entry: &str, moved: bool) {
        if !self.is_watched(entry) {
            return;
        }
        if self.disk.is_directory(entry) {
            for name in self.passing(entry) {
                let there = self.disk.lead(&name).node.is_some();
                let hint = if there { Hint::Closed } else { Hint::Removed };
                self.hint(std::slice::from_ref(&name), hint);
                self.follow(&[name]);
            }
            return;
        }
        let names = self.passing(entry);
        let node = self.disk.lead(entry).node;
        let several = node.is_some_and(|node| self.disk.nodes[node].links > 1);
        if !moved {
            self.hint(&names, Hint::Appeared);
        }
        if moved || several || self.disk.is_link(entry) {
            self.hint(&names, Hint::Closed);
        }
        self.follow(&names);
    }

    fn moved(&mut self, from: &str, to: &str) {
        let is = |name: &str| name == from || name.starts_with(&format!("{from}/"));
        let known = self.tracked.keys().any(|name| is(name));
        let seen = self.is_watched(from);
        let renamed = known && seen && self.is_watched(to);
        if renamed {
            self.queue.push_back(Input::Renamed {
                from: rel(from),
                to: rel(to),
            });
        }
        let gone = self.passing(from);
        for name in gone.iter().filter(|name| !(renamed && is(name))) {
            self.hint(std::slice::from_ref(name), Hint::Removed);
        }
        self.follow(&gone);
        self.appeared(to, true);
    }

    // --- time and turns ---

    fn turn(&mut self) -> bool {
        if let Some(input) = self.queue.pop_front() {
            self.handle(input);
            return true;
        }
        let next = if self.turned {
            self.reads.pop_back()
        } else {
            self.reads.pop_front()
        };
        if let Some(order) = next {
            self.follow(
                &[order.path.to_string_lossy()]
                    .into_iter()
                    .filter(|name| self.tracked.contains_key(name))
                    .collect::<Vec<_>>(),
            );
            let outcome = self.disk.read(&order.path, &order.prefixes, order.bytes);
            self.handle(Input::Read {
                path: order.path,
                ticket: order.ticket,
                outcome,
            });
            return true;
        }
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
            if self.failure.is_some() || !self.turn() {
                return;
            }
        }
        self.failure = Some("world: it never comes to rest".into());
    }

    pub fn pass(&mut self, millis: Millis) {
        self.drain();
        let end = self.now + millis;
        while self.now < end && self.failure.is_none() {
            let due = self.engine.as_ref().and_then(Engine::deadline);
            self.now = due.map_or(end, |due| due.clamp(self.now + 1, end));
            self.disk.now = self.now;
            self.drain();
        }
    }

    /// Sends a request and waits for the answer.
    pub fn ask(&mut self, session: usize, request: Request) -> Result<Answer, Error> {
        self.requests += 1;
        let id = self.requests;
        self.handle(Input::Request {
            request: RequestId(id),
            connection: ConnectionId(session as u64 + 1),
            ask: request,
            until: None,
        });
        self.drain();
        // Some reads come a little later, so that a file is not read without
        // pause.
        let asked = self.now;
        // No time passes once something has failed.
        while !self.answered.contains_key(&id) && self.failure.is_none() && self.now < asked + 2_000
        {
            let due = self.engine.as_ref().and_then(Engine::deadline);
            let due = due.map_or(1, |due| due.saturating_sub(self.now));
            self.pass(due.clamp(1, 100));
        }
        self.answered.remove(&id).unwrap_or_else(|| {
            self.failure = Some("world: a request was not answered".into());
            Err(Error::invalid("not answered"))
        })
    }
}
