//! The stage for the stories: a small disk, and a shell that reads it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use touchmark_engine::witnesses::Seen;
use touchmark_engine::{
    Config, Effect, Engine, Hint, Input, Mark, Marker, NameEvent, Record, Saved, Sighting, State,
    Subtree, WriteOutcome,
};
use touchmark_proto::changes::ModifiedTake;
use touchmark_proto::commands::{CommandBegin, CommandEnd, CommandScope};
use touchmark_proto::daemon::{Audit, Holds};
use touchmark_proto::editors::EditorDidSave;
use touchmark_proto::edits::{CommitFile, EditAbort, EditBegin, EditCommit, EditFile, EditMark};
use touchmark_proto::files::{FileRead, FileStatus};
use touchmark_proto::sessions::SessionClose;
use touchmark_proto::{
    Author, AuthorKind, Change, ClientPath, ConnectionId, Error, Evidence, Hash, HashOrAbsent,
    RelPath, Reply, Request, RequestId, SessionId,
};

use super::disk::Disk;

/// Plays lines and returns the answer to each.
pub(crate) fn play(lines: &[&str]) -> Vec<String> {
    let mut stage = Stage {
        engine: Engine::restore(config(), State::new(1, false), [], 1_000),
        now: 1_000,
        disk: Disk::default(),
        records: Vec::new(),
        answers: BTreeMap::new(),
        requests: 0,
        connection: 1,
        commands: BTreeMap::new(),
        awaited: BTreeSet::new(),
        during_read: Vec::new(),
        stalled: None,
        reads: None,
        asked: None,
        kept: State::new(1, false).into(),
        seen: 0,
    };
    stage.start();
    lines.iter().map(|line| stage.line(line)).collect()
}

pub(super) fn config() -> Config {
    Config {
        root: b"/w".to_vec(),
        ..Config::default()
    }
}

pub(super) struct Stage {
    pub(super) engine: Engine,
    now: u64,
    pub(super) disk: Disk,
    pub(super) records: Vec<Record>,
    pub(super) answers: BTreeMap<RequestId, Result<Reply, Error>>,
    requests: u64,
    connection: u64,
    /// The names that the stories give to windows.
    commands: BTreeMap<String, String>,
    awaited: BTreeSet<u32>,
    /// What happens right after the next read is ordered.
    during_read: Vec<String>,
    /// While fences stall: the fences that are not reached yet.
    stalled: Option<Vec<u64>>,
    /// While reads stall: the results that have not been passed yet.
    reads: Option<Vec<Input>>,
    /// The request whose answer a later step expects.
    pub(super) asked: Option<RequestId>,
    /// What a restart continues from.
    pub(super) kept: Saved,
    /// The number of records that a step has listed.
    pub(super) seen: usize,
}

/// The number of reads that one input may cause. More never end.
const MOST_READS: usize = 500;

/// Returns a hash that contains its text, so that outputs are readable.
pub(super) fn hash(text: &str) -> Hash {
    let mut bytes = [0; 32];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    Hash(bytes)
}

fn text(hash: Hash) -> String {
    let end = hash.0.iter().position(|byte| *byte == 0).unwrap_or(32);
    String::from_utf8_lossy(&hash.0[..end]).into_owned()
}

pub(super) fn path(name: &str) -> RelPath {
    RelPath::new(name.as_bytes()).unwrap()
}

fn spoken(name: &str) -> ClientPath {
    ClientPath::new(name.as_bytes())
}

pub(super) fn author(author: &Author) -> String {
    match (author.kind, &author.session) {
        (AuthorKind::Agent, Some(session)) => format!("agent:{session}"),
        (AuthorKind::Agent, None) => "agent".into(),
        (AuthorKind::User, _) => "user".into(),
        (AuthorKind::Unknown, _) => "unknown".into(),
        (AuthorKind::Committed, _) => "committed".into(),
    }
}

fn evidence(evidence: Evidence) -> String {
    format!("{evidence:?}").to_lowercase()
}

pub(super) fn changes(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "nothing".into();
    }
    let rows: Vec<String> = changes
        .iter()
        .map(|change| {
            if let Some(lost) = &change.lost {
                let text = lost.hash.map_or("the file".into(), text);
                return format!("{} lost {text} by {}", change.path, author(&lost.author));
            }
            let by: Vec<String> = change.changed_by.iter().map(author).collect();
            let on: Vec<String> = change.evidence.iter().copied().map(evidence).collect();
            format!(
                "{} {} by {} {}",
                change.path,
                format!("{:?}", change.kind).to_lowercase(),
                by.join(","),
                on.join(",")
            )
        })
        .collect();
    rows.join("; ")
}

impl Stage {
    fn start(&mut self) {
        let mut effects = Vec::new();
        self.engine.start(self.now, &mut effects);
        self.carry_out(effects);
    }

    fn line(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words.as_slice() {
            ["write", name, content] => {
                self.disk.write(name, Some(content));
                self.feed(Input::Hint {
                    path: path(name),
                    hint: Hint::Closed,
                });
            }
            // A writer that keeps the file open.
            ["writing", name, content] => {
                self.disk.write(name, Some(content));
                self.feed(Input::Hint {
                    path: path(name),
                    hint: Hint::Written,
                });
            }
            // A writer whose content was read already.
            ["close", name] => {
                for hint in [Hint::Written, Hint::Closed] {
                    self.feed(Input::Hint {
                        path: path(name),
                        hint,
                    });
                }
            }
            ["remove", name] => {
                self.disk.write(name, None);
                self.feed(Input::Hint {
                    path: path(name),
                    hint: Hint::Removed,
                });
            }
            ["quietly", "write", name, content] => self.disk.write(name, Some(content)),
            ["quietly", "cut", name] => self.disk.write(name, Some("")),
            ["quietly", "remove", name] => self.disk.write(name, None),
            ["during", "audit", ..] => {
                self.during_read.push(words[2..].join(" "));
            }
            ["fences", "stall"] => self.stalled = Some(Vec::new()),
            ["fences", "go", "on"] => {
                for fence in self.stalled.take().unwrap() {
                    self.feed(Input::FenceReached { fence });
                }
            }
            ["reads", "stall"] => self.reads = Some(Vec::new()),
            ["reads", "come", "back"] => {
                for read in self.reads.take().unwrap() {
                    self.feed(read);
                }
            }
            ["overflow"] => self.feed(Input::Overflow),
            ["exit", pid] => {
                let pid = pid.parse().unwrap();
                if self.awaited.remove(&pid) {
                    self.feed(Input::ProcessEnded { pid });
                }
            }
            ["hang", "up"] => {
                let connection = ConnectionId(self.connection);
                self.connection += 1;
                self.feed(Input::Disconnected { connection });
            }
            ["began", name, time] => self.feed(Input::CommandBegan {
                command: self.commands[name].clone(),
                time: time.parse().unwrap(),
            }),
            ["witness", name, ..] => {
                let window = self.commands[name].trim_start_matches('c').parse().unwrap();
                let sighting = match words[2..] {
                    ["begins"] => Sighting::Began,
                    ["sees", name, ref how @ ..] => Sighting::MayWrite(Mark {
                        made: self.disk.stamps,
                        removes: how == ["goes"],
                        events: Some(vec![match how {
                            ["goes"] => NameEvent::Removed,
                            ["in", "place"] => NameEvent::Closed,
                            _ => NameEvent::MovedTo,
                        }]),
                        prior: self.disk.prior(&path(name)),
                        subtree: match how {
                            ["moves"] => Subtree::Moved,
                            _ => Subtree::Same,
                        },
                        in_place: how == ["in", "place"],
                        is_poor: how == ["in", "vain"],
                        process: (how != ["orphaned"]).then_some(Marker {
                            began: self.now,
                            typed: (how == ["typed"]).then_some(self.now),
                        }),
                        ..Mark::new(path(name))
                    }),
                    ["hears", name, event] => Sighting::Happened {
                        name: path(name),
                        event: match event {
                            "close" => NameEvent::Closed,
                            "remove" => NameEvent::Removed,
                            _ => NameEvent::MovedTo,
                        },
                        at: self.disk.stamps,
                    },
                    ["misses"] => Sighting::Missed,
                    _ => Sighting::passing(words[2..].join(" ")),
                };
                self.feed(Input::Witnessed {
                    seen: Seen::Window(window),
                    sightings: vec![sighting],
                });
            }
            ["wait", ms] => self.wait(ms.parse().unwrap()),
            ["restart"] => {
                let records = std::mem::take(&mut self.records);
                self.records.clone_from(&records);
                self.engine = Engine::restore(config(), self.kept.clone(), records, self.now);
                self.connection = 1;
                self.start();
            }
            ["saved", name, content] => self.saved(name, content, false),
            ["formatted", name, content] => self.saved(name, content, true),
            ["status", session, name] => {
                let reply = self.ask(Request::FileStatus(
                    FileStatus::new(id(session)).paths(vec![spoken(name)]),
                ));
                let Ok(Reply::FileStatus(states)) = reply else {
                    panic!("{reply:?}")
                };
                return format!("{:?}", states.files[0].state).to_lowercase();
            }
            ["history", name] => return self.history(name),
            ["audit"] => {
                let reply = self.ask(Request::Audit(Audit {}));
                let Ok(Reply::Audit(audited)) = reply else {
                    panic!("{reply:?}")
                };
                let holds = |holds| match holds {
                    Holds::File(hash) => format!("File({})", text(hash)),
                    other => format!("{other:?}"),
                };
                let mut said = format!("{} checked", audited.checked);
                for row in audited.differences {
                    said.push_str(&format!(
                        "; {} is {} not {}",
                        row.path,
                        holds(row.disk),
                        holds(row.believed)
                    ));
                }
                return said;
            }
            [session, "reads", name] => {
                self.ok(Request::FileRead(FileRead::new(id(session), spoken(name))));
            }
            [session, "declares", name, content] => {
                self.mark(session, name, Some(HashOrAbsent::Hash(hash(content))));
            }
            [session, "marks", name] => self.mark(session, name, None),
            [session, "begins", name, ref options @ ..] => self.begin(session, name, options),
            [session, "opens", name, ref options @ ..] => {
                return self.open(session, name, options);
            }
            [session, "commits", name, ref written @ ..] => {
                let file = CommitFile {
                    path: spoken(name),
                    hash: written.first().map(|text| declared(text)),
                };
                let reply = self.ask(Request::EditCommit(EditCommit {
                    edit: self.commands.get(&format!("{session} {name}")).cloned(),
                    session: Some(id(session)),
                    call_id: None,
                    files: vec![file],
                }));
                return match reply {
                    Ok(Reply::EditCommit(done)) => {
                        format!("{:?}", done.files[0].outcome).to_lowercase()
                    }
                    Ok(other) => panic!("{other:?}"),
                    Err(error) => error.code.name().into(),
                };
            }
            [session, "aborts", name] => {
                let edit = self.commands.get(&format!("{session} {name}")).cloned();
                self.ok(Request::EditAbort(EditAbort {
                    edit,
                    ..EditAbort::new()
                }));
            }
            [_, "ends", name] => {
                let reply = self.ask(Request::CommandEnd(CommandEnd {
                    command: self.commands.get(name).cloned(),
                    ..CommandEnd::default()
                }));
                return match reply {
                    Ok(Reply::CommandEnd(ended)) => changes(&ended.changes),
                    Ok(other) => panic!("{other:?}"),
                    Err(error) => error.code.name().into(),
                };
            }
            [session, "takes"] => {
                let reply = self.ask(Request::ModifiedTake(ModifiedTake::new(id(session))));
                let Ok(Reply::ModifiedTake(taken)) = reply else {
                    panic!("{reply:?}")
                };
                return changes(&taken.changes);
            }
            [session, "closes"] => {
                self.ok(Request::SessionClose(SessionClose::new(id(session))));
            }
            ref words => return self.names(words),
        }
        String::new()
    }

    fn begin(&mut self, session: &str, name: &str, options: &[&str]) {
        let option = |wanted: &str| option(options, wanted);
        let reply = self.ask(Request::CommandBegin(CommandBegin {
            paths: option("paths").map(|glob| vec![glob.to_owned()]),
            pid: option("pid").map(|pid| pid.parse().unwrap()),
            bind: options.contains(&"bind"),
            formatter: options.contains(&"formatter"),
            witness: options.contains(&"witnessed"),
            below: option("below").map(|outer| self.commands[outer].clone()),
            scope: options
                .contains(&"workspace")
                .then_some(CommandScope::Workspace),
            ..CommandBegin::new(id(session))
        }));
        let Ok(Reply::CommandBegin(begun)) = reply else {
            panic!("{reply:?}")
        };
        self.commands.insert(name.into(), begun.command);
    }

    fn open(&mut self, session: &str, name: &str, options: &[&str]) -> String {
        let option = |wanted: &str| option(options, wanted);
        let reply = self.ask(Request::EditBegin(EditBegin {
            bind: options.contains(&"bind"),
            call_id: option("call").map(str::to_owned),
            require_read: Some(false),
            ..EditBegin::new(
                id(session),
                vec![EditFile {
                    expect: option("expects").map(declared),
                    ..EditFile::new(spoken(name))
                }],
            )
        }));
        match reply {
            Ok(Reply::EditBegin(begun)) => {
                let key = format!("{session} {name}");
                self.commands.insert(key, begun.edit);
                String::new()
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => error.code.name().into(),
        }
    }

    fn mark(&mut self, session: &str, name: &str, expect: Option<HashOrAbsent>) {
        self.ok(Request::EditMark(EditMark {
            expect,
            ..EditMark::new(id(session), spoken(name))
        }));
    }

    fn saved(&mut self, name: &str, content: &str, formatted: bool) {
        self.send(Request::EditorDidSave(
            EditorDidSave::new(spoken(name), hash(content)).formatted(formatted),
        ));
    }

    /// Returns the versions of a path, newest first.
    fn history(&mut self, name: &str) -> String {
        self.ask(Request::Sync(touchmark_proto::daemon::Sync {}))
            .unwrap();
        let state = self.engine.state();
        let rows: Vec<String> = state
            .paths
            .get(&path(name))
            .unwrap()
            .versions
            .iter()
            .rev()
            .map(|kept| {
                let mut row = format!(
                    "{} {} {}",
                    kept.hash.map_or("gone".into(), text),
                    author(&kept.author()),
                    evidence(kept.evidence)
                );
                if kept.formatted {
                    row.push_str(" formatted");
                }
                // It would count as certain.
                if kept.evidence == Evidence::Command && !kept.formatted && kept.command().is_none()
                {
                    row.push_str(" of no command");
                }
                if !kept.candidates().is_empty() {
                    let names: Vec<&str> =
                        kept.candidates().iter().map(SessionId::as_str).collect();
                    row.push_str(&format!(" [{}]", names.join(",")));
                }
                row
            })
            .collect();
        rows.join("; ")
    }

    fn wait(&mut self, ms: u64) {
        let until = self.now + ms;
        while let Some(due) = self.engine.deadline().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.feed(Input::Tick);
        }
        self.now = until;
    }

    fn ok(&mut self, ask: Request) {
        self.ask(ask).unwrap();
    }

    fn ask(&mut self, ask: Request) -> Result<Reply, Error> {
        let request = self.send(ask);
        self.answer(request)
    }

    /// Returns the answer to a request. Fences that have stalled are reached
    /// for it.
    pub(super) fn answer(&mut self, request: RequestId) -> Result<Reply, Error> {
        if !self.answers.contains_key(&request) {
            let fences = self.stalled.as_mut().map(std::mem::take);
            for fence in fences.into_iter().flatten() {
                self.feed(Input::FenceReached { fence });
            }
        }
        self.answers.remove(&request).expect("an answer")
    }

    /// Sends a request, which may be answered later.
    pub(super) fn send(&mut self, ask: Request) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.feed(Input::Request {
            request,
            connection: ConnectionId(self.connection),
            ask,
            until: None,
        });
        request
    }

    pub(super) fn feed(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.engine.handle(self.now, input, &mut effects);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        let mut effects = VecDeque::from(effects);
        let mut reads = 0;
        while let Some(effect) = effects.pop_front() {
            let input = match effect {
                Effect::Record(record) => {
                    self.records.push(record);
                    continue;
                }
                Effect::Read(order) => {
                    for line in std::mem::take(&mut self.during_read) {
                        self.line(&line);
                    }
                    reads += 1;
                    assert!(reads < MOST_READS, "the reads never end");
                    let read = Input::Read {
                        outcome: self.disk.outcome(&order),
                        path: order.path,
                        ticket: order.ticket,
                    };
                    self.disk.after_read();
                    read
                }
                Effect::Compare(comparison) => match self.disk.compared(comparison) {
                    Some(input) => input,
                    None => continue,
                },
                Effect::Fence(fence) => match &mut self.stalled {
                    Some(fences) => {
                        fences.push(fence);
                        continue;
                    }
                    None => Input::FenceReached { fence },
                },
                Effect::Write { order, .. } => Input::Written {
                    path: order.path,
                    ticket: order.ticket,
                    outcome: WriteOutcome::Failed(Error::invalid("nothing is written here")),
                },
                Effect::Learn { request, question } => Input::Learned {
                    request,
                    learned: self.disk.learned(question),
                },
                Effect::AwaitProcess(pid) => {
                    self.awaited.insert(pid);
                    continue;
                }
                Effect::Reply { request, answer } => {
                    self.answers
                        .insert(request, answer.map(|answer| answer.reply));
                    continue;
                }
                _ => continue,
            };
            if let (Some(reads), Input::Read { .. }) = (&mut self.reads, &input) {
                reads.push(input);
                continue;
            }
            let mut more = Vec::new();
            self.engine.handle(self.now, input, &mut more);
            effects.extend(more);
        }
    }
}

/// Returns the value of an option, or `None`.
fn option<'a>(options: &[&'a str], name: &str) -> Option<&'a str> {
    let mut options = options.iter();
    options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

/// Returns a declared content; `gone` stands for no file.
fn declared(text: &str) -> HashOrAbsent {
    match text {
        "gone" => HashOrAbsent::Absent,
        text => HashOrAbsent::Hash(hash(text)),
    }
}

pub(super) fn id(session: &str) -> SessionId {
    SessionId::new(session).unwrap()
}
