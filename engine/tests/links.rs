//! Names of one file that appear and disappear (FILE-1, FILE-2, ATTR-12). The
//! tests are lists of inputs in an order that a busy machine may produce.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, VecDeque};

use touchmark_engine::{
    Config, Content, Effect, Engine, Fact, Found, Hint, Input, Object, ReadOrder, ReadOutcome,
    Record, Stamp, State,
};
use touchmark_proto::files::{FileRead, FileStatus};
use touchmark_proto::{
    ClientPath, ConnectionId, Hash, RelPath, Reply, Request, RequestId, SessionId, State as FileIs,
    VersionKind,
};

/// The inode number of a file.
type Inode = u64;

struct Stage {
    engine: Engine,
    records: Vec<Record>,
    names: BTreeMap<&'static str, Inode>,
    contents: BTreeMap<Inode, &'static str>,
    /// For each name that is a symlink: its target.
    links: BTreeMap<&'static str, &'static str>,
    /// Fences that were ordered and not reached.
    fences: Vec<u64>,
    answer: Option<Reply>,
    requests: u64,
    /// Two names that change places after each read; `None` for none.
    restless: Option<(&'static str, &'static str)>,
}

/// The number of reads that one input may cause. More never end.
const MOST_READS: usize = 500;

fn path(name: &str) -> RelPath {
    RelPath::new(name.as_bytes()).unwrap()
}

fn engine(records: Vec<Record>) -> Engine {
    let config = Config {
        root: b"/w".to_vec(),
        ..Config::default()
    };
    Engine::restore(config, State::new(1, false), records, 1_000)
}

impl Stage {
    fn new(files: &[(&'static str, Inode)], contents: &[(Inode, &'static str)]) -> Self {
        Self {
            engine: engine(Vec::new()),
            records: Vec::new(),
            names: files.iter().copied().collect(),
            contents: contents.iter().copied().collect(),
            links: BTreeMap::new(),
            fences: Vec::new(),
            answer: None,
            requests: 0,
            restless: None,
        }
    }

    fn look(&self, order: &ReadOrder) -> ReadOutcome {
        let spoken = order.path.to_string_lossy();
        let real = self.links.get(&*spoken);
        let name = real.map_or(&*spoken, |real| real);
        let mut outcome = ReadOutcome::from(match self.names.get(name) {
            None => Found::Absent,
            Some(inode) => {
                let text = self.contents[inode];
                Found::File(Content {
                    hash: Hash::of(text.as_bytes()),
                    size: text.len() as u64,
                    lines: 1,
                    mtime_ms: 1,
                    mode: None,
                    owner: None,
                    stamp: Stamp {
                        inode: *inode,
                        size: text.len() as u64,
                        ..Stamp::default()
                    },
                    settled: false,
                })
            }
        });
        outcome.real = real.map(|real| path(real));
        let inode = self.names.get(name).copied();
        let several = self.names.values().filter(|of| Some(**of) == inode).count() > 1;
        let object = inode.filter(|_| several);
        outcome.object = object.map(|inode| Object { device: 1, inode });
        outcome
    }

    /// Restarts the engine. The time before counts as a gap.
    fn restart(&mut self) {
        self.engine = engine(self.records.clone());
        let mut effects = Vec::new();
        self.engine.start(1_000, &mut effects);
        self.carry_out(effects);
    }

    fn feed(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.engine.handle(1_000, input, &mut effects);
        self.carry_out(effects);
    }

    /// Carries out effects. Reads are done immediately, in the order in which
    /// they are ordered.
    fn carry_out(&mut self, effects: Vec<Effect>) {
        let mut effects = VecDeque::from(effects);
        let mut reads = 0;
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Record(record) => self.records.push(record),
                Effect::Read(order) => {
                    reads += 1;
                    assert!(reads < MOST_READS, "the reads never end");
                    let read = Input::Read {
                        outcome: self.look(&order),
                        path: order.path,
                        ticket: order.ticket,
                    };
                    if let Some((one, other)) = self.restless {
                        self.change_places(one, other);
                    }
                    let mut more = Vec::new();
                    self.engine.handle(1_000, read, &mut more);
                    effects.extend(more);
                }
                Effect::Fence(fence) => self.fences.push(fence),
                Effect::Reply { answer, .. } => self.answer = Some(answer.unwrap().reply),
                _ => {}
            }
        }
    }

    fn change_places(&mut self, one: &'static str, other: &'static str) {
        let inodes = (self.names[one], self.names[other]);
        self.names.insert(one, inodes.1);
        self.names.insert(other, inodes.0);
    }

    fn hint(&mut self, name: &str, hint: Hint) {
        let path = path(name);
        self.feed(Input::Hint { path, hint });
    }

    /// Sends a request that waits for its fence.
    fn ask(&mut self, ask: Request) {
        self.requests += 1;
        self.feed(Input::Request {
            request: RequestId(self.requests),
            connection: ConnectionId(1),
            ask,
            until: None,
        });
    }

    /// Reaches all fences and returns the answer. Everything hinted at before
    /// is in it.
    fn answered(&mut self) -> Reply {
        for fence in std::mem::take(&mut self.fences) {
            self.feed(Input::FenceReached { fence });
        }
        self.answer.take().expect("an answer")
    }

    fn ask_read(&mut self, name: &str) {
        self.ask(Request::FileRead(FileRead::new(
            SessionId::new("A").unwrap(),
            ClientPath::new(name.as_bytes()),
        )));
    }

    fn read(&mut self, name: &str) {
        self.ask_read(name);
        self.answered();
    }

    fn ask_status(&mut self, names: &[&str]) {
        self.ask_verified(names, None);
    }

    fn ask_verified(&mut self, names: &[&str], verify: Option<bool>) {
        let paths = names.iter().map(|name| ClientPath::new(name.as_bytes()));
        self.ask(Request::FileStatus(FileStatus {
            paths: Some(paths.collect()),
            verify,
            ..FileStatus::new(SessionId::new("A").unwrap())
        }));
    }

    fn states(&mut self) -> Vec<FileIs> {
        let Reply::FileStatus(states) = self.answered() else {
            panic!("no states");
        };
        states.files.iter().map(|file| file.state).collect()
    }

    fn file_of(&self, name: &str) -> RelPath {
        self.engine.state().file_of(&path(name)).clone()
    }

    fn joined(&self) -> Vec<(String, String)> {
        let joined = self.records.iter().filter_map(|record| match &record.fact {
            Fact::NamesJoined { name, file } => Some((name, file)),
            _ => None,
        });
        let text = |path: &RelPath| path.to_string_lossy();
        joined
            .map(|(name, file)| (text(name), text(file)))
            .collect()
    }
}

/// `m/a` was renamed to `b` and created again as a hard link of it. A symlink
/// to its directory was read before the system had reported that.
#[test]
fn what_is_found_through_a_link_is_not_gone() {
    let mut stage = Stage::new(&[("m/a", 1), ("b", 2)], &[(1, "one"), (2, "two")]);
    stage.links.insert("ld/a", "m/a");
    stage.read("m/a");
    stage.read("b");
    stage.names.remove("m/a");
    stage.hint("m/a", Hint::Removed);
    stage.names.insert("b", 1);
    stage.hint("b", Hint::Closed);
    stage.names.insert("m/a", 1);
    stage.ask_status(&["b", "ld/a", "m/a"]);
    stage.hint("b", Hint::Touched);
    stage.feed(Input::Hints {
        paths: vec![path("m/a"), path("ld/a")],
        hint: Hint::Closed,
    });
    stage.states();
    for record in &stage.records {
        let wrong = match &record.fact {
            Fact::Version(version) => version.kind == VersionKind::Deleted,
            Fact::NamesParted { .. } => true,
            _ => false,
        };
        assert!(!wrong, "{record:?}");
    }
    assert_eq!(stage.file_of("m/a"), stage.file_of("b"));
}

/// Returns a stage on which `a` and `b` are one file, and `a` and `c` are
/// exchanged just before the request.
fn exchanged() -> Stage {
    let mut stage = Stage::new(&[("a", 1), ("b", 1), ("c", 2)], &[(1, "one"), (2, "two")]);
    for name in ["a", "b", "c"] {
        stage.read(name);
    }
    assert_eq!(stage.file_of("a"), stage.file_of("b"));
    stage.records.clear();
    stage.names.insert("a", 2);
    stage.names.insert("c", 1);
    stage.ask_status(&["a", "b", "c"]);
    let (from, to) = (path("c"), path("a"));
    stage.feed(Input::Renamed {
        from: from.clone(),
        to: to.clone(),
    });
    stage.hint("a", Hint::Closed);
    stage.feed(Input::Exchanged { from, to });
    stage.hint("c", Hint::Closed);
    stage
}

#[test]
fn a_name_that_takes_anothers_file_is_never_one_with_it() {
    let mut stage = exchanged();
    // The session also tracks the previous content of `c`, and the file of `b`
    // and `c` differs from that (FILE-2).
    assert_eq!(stage.states(), [FileIs::Stale; 3]);
    assert_eq!(stage.file_of("b"), stage.file_of("c"));
    assert_ne!(stage.file_of("a"), stage.file_of("b"));
    for (name, file) in stage.joined() {
        assert!(name != "a" && file != "a", "{name} joined {file}");
    }
}

#[test]
fn an_exchange_copies_nothing() {
    let files = [("d/a", 1), ("k/a", 2)];
    let mut stage = Stage::new(&files, &[(1, "one"), (2, "two")]);
    stage.read("d/a");
    stage.names = BTreeMap::from([("d/a", 2), ("k/a", 1)]);
    stage.feed(Input::Renamed {
        from: path("d"),
        to: path("k"),
    });
    stage.feed(Input::Exchanged {
        from: path("d"),
        to: path("k"),
    });
    stage.hint("d/a", Hint::Closed);
    stage.ask_status(&["d/a", "k/a"]);
    let states = stage.states();
    assert_eq!(states, [FileIs::Stale, FileIs::Unread]);
    assert!(!stage.engine.state().paths.contains_key(&path("k/a")));
}

/// `b` left the file while the daemon did not run, and becomes a name of it
/// again.
#[test]
fn a_name_that_was_left_alone_at_a_start_gets_another_again() {
    let names = [("b", 1), ("k/a", 1)];
    let mut stage = Stage::new(&names, &[(1, "one"), (2, "two")]);
    stage.read("b");
    stage.read("k/a");
    assert_eq!(stage.file_of("b"), stage.file_of("k/a"));
    stage.names.insert("b", 2);
    stage.restart();
    stage.ask_status(&["b", "k/a"]);
    stage.states();
    assert_ne!(stage.file_of("b"), stage.file_of("k/a"));
    stage.names.insert("b", 1);
    stage.hint("b", Hint::Closed);
    stage.ask_status(&["b", "k/a"]);
    stage.states();
    assert_eq!(stage.file_of("b"), stage.file_of("k/a"));
}

/// `la` was a symlink to `a`. `a` is renamed over it and created again, and is
/// read before `la` is.
#[test]
fn a_link_that_was_replaced_is_not_one_with_what_it_led_to() {
    let mut stage = Stage::new(&[("a", 1)], &[(1, "one"), (2, "two")]);
    stage.links.insert("la", "a");
    stage.read("la");
    stage.contents.insert(1, "changed");
    stage.hint("la", Hint::WrittenAndClosed);
    stage.links.remove("la");
    stage.names = BTreeMap::from([("la", 1), ("a", 2)]);
    stage.read("a");
    stage.ask_status(&["a", "la"]);
    assert_eq!(stage.states(), [FileIs::Fresh, FileIs::Stale]);
}

/// `d/b` and `la` are one file, which is exchanged with `k/b`. A read of `la`
/// shows that it is now the file of `k/b`; no earlier read shows which file
/// `d/b` is now.
#[test]
fn a_name_that_was_renamed_is_looked_at_before_it_is_a_files_again() {
    let names = [("d/b", 1), ("la", 1), ("k/b", 2)];
    let mut stage = Stage::new(&names, &[(1, "one"), (2, "two")]);
    stage.read("d/b");
    stage.read("la");
    assert_eq!(stage.file_of("d/b"), stage.file_of("la"));
    stage.records.clear();
    stage.names = BTreeMap::from([("d/b", 2), ("la", 1), ("k/b", 1)]);
    stage.feed(Input::Renamed {
        from: path("d"),
        to: path("k"),
    });
    stage.hint("la", Hint::Touched);
    assert!(
        stage
            .joined()
            .iter()
            .all(|(name, file)| name != "d/b" && file != "d/b"),
        "{:?}",
        stage.joined()
    );
}

/// Returns a stage on which a session has read two files that both have a link
/// in a place that no session uses.
fn linked_elsewhere() -> Stage {
    let names = [("a", 1), ("out/a", 1), ("b", 2), ("out/b", 2)];
    let mut stage = Stage::new(&names, &[(1, "one"), (2, "two")]);
    stage.read("b");
    stage.read("a");
    stage
}

#[test]
fn two_files_with_several_links_change_places() {
    let mut stage = linked_elsewhere();
    stage.change_places("a", "b");
    stage.ask_status(&["a", "b"]);
    stage.hint("a", Hint::Closed);
    stage.hint("b", Hint::Closed);
    assert_eq!(stage.states(), [FileIs::Stale; 2]);
    assert_eq!(stage.joined(), []);
}

/// Two names that resolve to other files at each look keep no request waiting
/// (LIM-6).
#[test]
fn names_that_never_stand_still_are_answered() {
    for (one, other) in [("a", "b"), ("a", "out/b"), ("out/a", "out/b")] {
        let mut stage = linked_elsewhere();
        stage.read("out/a");
        stage.read("out/b");
        stage.restless = Some((one, other));
        for name in ["a", "b", "out/a", "out/b"] {
            stage.ask_status(&["a", "b", "out/a", "out/b"]);
            stage.hint(name, Hint::Closed);
            assert_eq!(stage.states().len(), 4);
        }
        // Once they stand still, the answers are right.
        stage.restless = None;
        stage.hint("a", Hint::Closed);
        stage.hint("b", Hint::Closed);
        stage.hint("out/a", Hint::Closed);
        stage.hint("out/b", Hint::Closed);
        stage.ask_status(&["a", "b", "out/a", "out/b"]);
        stage.states();
        for one in ["a", "b", "out/a", "out/b"] {
            for other in ["a", "b", "out/a", "out/b"] {
                let same = stage.names[one] == stage.names[other];
                assert_eq!(stage.file_of(one) == stage.file_of(other), same);
            }
        }
    }
}

/// Returns a stage on which `d/c` is a link to `d/e/c`, and `l` a link to `d`.
/// The link `d/c` is replaced by a file after all three names were read.
fn replaced_in_a_linked_directory() -> Stage {
    let mut stage = Stage::new(&[("d/e/c", 1)], &[(1, "one"), (2, "two")]);
    stage.links = BTreeMap::from([("d/c", "d/e/c"), ("l/c", "d/e/c")]);
    for name in ["d/c", "d/e/c", "l/c"] {
        stage.read(name);
    }
    stage.links = BTreeMap::from([("l/c", "d/c")]);
    stage.names.insert("d/c", 2);
    stage
}

/// One event concerns two names of a file, and may part each of them from it.
#[test]
fn a_link_in_a_linked_directory_is_replaced() {
    let mut stage = replaced_in_a_linked_directory();
    stage.feed(Input::Hints {
        paths: vec![path("d/c"), path("l/c")],
        hint: Hint::Closed,
    });
    stage.ask_status(&["l/c"]);
    assert_eq!(stage.states(), [FileIs::Stale]);
    stage.ask_status(&["d/c", "l/c", "d/e/c"]);
    let states = [FileIs::Stale, FileIs::Stale, FileIs::Fresh];
    assert_eq!(stage.states(), states);
    assert_eq!(stage.file_of("l/c"), stage.file_of("d/c"));
}

#[test]
fn a_verified_name_is_resolved_again() {
    let mut stage = replaced_in_a_linked_directory();
    stage.ask_verified(&["l/c"], Some(true));
    assert_eq!(stage.states(), [FileIs::Stale]);
}

#[test]
fn a_renamed_file_that_was_read_gets_another_link() {
    let mut stage = Stage::new(&[("a", 1)], &[(1, "one")]);
    stage.read("a");
    stage.names = BTreeMap::from([("b", 1)]);
    stage.feed(Input::Renamed {
        from: path("a"),
        to: path("b"),
    });
    stage.hint("b", Hint::Closed);
    stage.read("b");
    stage.names.insert("u/l", 1);
    stage.ask_status(&["b", "u/l"]);
    assert_eq!(stage.states(), [FileIs::Fresh; 2]);
}
