//! Random runs: plans of users, agents and editors, interleaved step by step.

use serde::{Deserialize, Serialize};

use crate::content::COMMON;
use crate::op::{
    ALL_FILES, Ask, Asking, DIR_RENAMES, FILES, How, Named, Op, Path, Range, SESSIONS,
};
use crate::runs;
use crate::runs::rng::Rng;

/// A run: the initial files, the precision of the file system's clock in
/// milliseconds, and the steps.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Script {
    pub tick: u64,
    pub initial: Vec<(Path, u32)>,
    pub ops: Vec<Op>,
}

impl Script {
    /// Returns the run with every step brought to rest before the next.
    pub fn at_rest(self) -> Self {
        let ops = self.ops.into_iter().flat_map(|op| [op, Op::Drain]);
        Self {
            ops: ops.collect(),
            ..self
        }
    }
}

impl runs::Script for Script {
    type Op = Op;

    fn ops(&mut self) -> &mut Vec<Op> {
        &mut self.ops
    }

    fn leave_out(&mut self, file: usize) -> bool {
        let there = file < self.initial.len();
        if there {
            self.initial.remove(file);
        }
        there
    }
}

/// What a run may contain. Some runs leave out whole kinds of disturbances, so
/// that the other ones occur more often.
#[derive(Clone, Copy)]
struct Mood {
    files: usize,
    sessions: usize,
    lag: usize,
    renames: bool,
    pieces: bool,
    restarts: bool,
    losses: bool,
    permissions: bool,
    within: bool,
}

struct Maker {
    rng: Rng,
    mood: Mood,
    unique: u32,
    slot: usize,
    writer: usize,
}

impl Maker {
    fn content(&mut self) -> u32 {
        if self.rng.chance(55) {
            self.unique += 1;
            self.unique
        } else {
            self.rng.below(COMMON as usize) as u32
        }
    }

    fn file(&mut self) -> Path {
        FILES[self.rng.below(self.mood.files)]
    }

    fn any_file(&mut self) -> Path {
        if self.mood.renames && self.rng.chance(15) {
            self.rng.pick(ALL_FILES)
        } else {
            self.file()
        }
    }

    fn how(&mut self) -> How {
        self.rng.pick(&[
            How::InPlace,
            How::InPlace,
            How::Replace,
            How::FromOutside,
            How::Recreate,
        ])
    }

    fn range(&mut self) -> Range {
        match self.rng.below(10) {
            0 => Some((1, 1)),
            1 => Some((2, 3)),
            2 => Some((1, 2)),
            _ => None,
        }
    }

    fn named(&mut self) -> Named {
        match self.rng.below(10) {
            0..=2 => Named::Disk,
            3 => Named::Content(self.content()),
            _ => Named::No,
        }
    }

    fn expect(&mut self) -> Named {
        match self.rng.below(10) {
            0..=2 => Named::No,
            3 => Named::Absent,
            _ => Named::Content(self.content()),
        }
    }

    fn asking(&mut self, session: usize, ask: Ask) -> Op {
        let within = (self.mood.within && self.rng.chance(8)).then(|| self.rng.below(40) as u64);
        Op::Ask(Asking {
            session,
            connection: (session * 2 + self.rng.below(2)) as u64,
            within,
            sync: !self.rng.chance(5),
            ask,
        })
    }

    fn ask(&mut self, ask: Ask) -> Op {
        let session = self.rng.below(self.mood.sessions);
        self.asking(session, ask)
    }

    fn user_write(&mut self) -> Op {
        Op::Write {
            path: self.any_file(),
            content: self.content(),
            how: self.how(),
        }
    }

    fn question(&mut self) -> Ask {
        match self.rng.below(30) {
            0..=5 => Ask::Take {
                peek: self.rng.chance(15),
                explicit: self.rng.chance(20),
                paths: self.rng.chance(10).then(|| vec![self.file()]),
            },
            6..=10 => Ask::Status {
                paths: self.rng.chance(50).then(|| vec![self.any_file()]),
            },
            11..=17 => Ask::Read {
                path: self.any_file(),
                named: self.named(),
                range: self.range(),
            },
            18 => Ask::ReadText {
                path: self.any_file(),
                range: self.range(),
                force: self.rng.chance(50),
            },
            19..=20 => Ask::Mention {
                path: self.any_file(),
                named: self.named(),
                range: self.range(),
            },
            21 => Ask::Invalidate {
                path: self.rng.chance(70).then(|| self.file()),
            },
            22 => Ask::Untrack {
                path: self.any_file(),
            },
            23 => Ask::Compacted {
                keep: if self.rng.chance(30) {
                    vec![self.file()]
                } else {
                    Vec::new()
                },
            },
            24 => Ask::Truncated {
                path: self.file(),
                range: self.range(),
            },
            25 => Ask::Ack,
            26 => Ask::ModList,
            27 => {
                if self.rng.chance(30) {
                    Ask::Close {
                        forget: self.rng.chance(40),
                    }
                } else {
                    Ask::Open
                }
            }
            28 => Ask::Sync,
            _ => match self.rng.below(6) {
                0 => Ask::List,
                1 => Ask::History { path: self.file() },
                2 => Ask::EditorOpen { path: self.file() },
                3 => Ask::EditorClose { path: self.file() },
                _ => Ask::Dirty {
                    path: self.file(),
                    dirty: self.rng.chance(50),
                },
            },
        }
    }

    /// Returns the steps of an agent's edit, from its read to its end, or
    /// without an end.
    fn edit(&mut self) -> Vec<Op> {
        let session = self.rng.below(self.mood.sessions);
        self.slot += 1;
        let slot = self.slot;
        let mut ops = Vec::new();
        let count = if self.rng.chance(20) { 2 } else { 1 };
        let mut files: Vec<(Path, Named)> = Vec::new();
        while files.len() < count {
            let path = self.any_file();
            if files.iter().any(|(other, _)| *other == path) {
                break;
            }
            files.push((path, self.expect()));
        }
        if self.rng.chance(60) {
            for (path, _) in &files {
                let named = if self.rng.chance(50) {
                    Named::Disk
                } else {
                    Named::No
                };
                let read = Ask::Read {
                    path,
                    named,
                    range: None,
                };
                ops.push(self.asking(session, read));
            }
        }
        let mark = self.rng.chance(30);
        if mark {
            let ask = Ask::Mark {
                slot,
                path: files[0].0,
                expect: files[0].1,
                ttl: self.rng.chance(10).then_some(500),
                bind: self.rng.chance(10),
            };
            ops.push(self.asking(session, ask));
        } else {
            let ask = Ask::Begin {
                slot,
                files,
                require_read: !self.rng.chance(40),
                force: self.rng.chance(20),
                wait: self.rng.chance(15).then_some(300),
                ttl: self.rng.chance(10).then_some(1_000),
                bind: self.rng.chance(10),
                call: self.rng.chance(10),
            };
            ops.push(self.asking(session, ask));
        }
        ops.push(Op::Await { slot });
        if self.rng.chance(25) {
            // A user writes in between.
            ops.push(self.user_write());
        }
        for file in 0..count {
            if self.rng.chance(80) {
                ops.push(Op::AgentWrite {
                    slot,
                    file,
                    how: self.how(),
                });
            }
        }
        if self.rng.chance(20) {
            ops.push(self.user_write());
        }
        match self.rng.below(10) {
            _ if mark && self.rng.chance(70) => {}
            0..=6 => {
                let ask = Ask::Commit {
                    slot,
                    files: if self.rng.chance(15) {
                        vec![0]
                    } else {
                        Vec::new()
                    },
                    name_hash: self.rng.chance(40),
                    by_call: self.rng.chance(50),
                };
                ops.push(self.asking(session, ask));
            }
            7..=8 => ops.push(self.asking(session, Ask::Abort { slot })),
            _ => {}
        }
        ops
    }

    fn writer(&mut self) -> Vec<Op> {
        self.writer += 1;
        let writer = self.writer;
        let mut ops = vec![Op::WOpen {
            writer,
            path: self.any_file(),
            truncate: self.rng.chance(70),
            content: self.content(),
        }];
        for _ in 0..self.rng.below(4) {
            ops.push(Op::WChunk {
                writer,
                part: 1 + self.rng.below(4),
            });
        }
        ops.push(Op::WClose { writer });
        ops
    }

    fn renames(&mut self) -> Vec<Op> {
        let path = self.file();
        match self.rng.below(6) {
            // As vim does with a backup.
            0 => vec![
                Op::Rename {
                    from: path,
                    to: "n",
                },
                Op::Write {
                    path,
                    content: self.content(),
                    how: How::InPlace,
                },
                Op::Unlink { path: "n" },
            ],
            1 => vec![Op::MoveOut { path }, Op::MoveBack { path }],
            2 => vec![Op::Rename {
                from: path,
                to: self.file(),
            }],
            3 => {
                let (from, to) = self.rng.pick(DIR_RENAMES);
                vec![Op::RenameDir { from, to }]
            }
            4 => {
                let (from, to) = self.rng.pick(DIR_RENAMES);
                vec![
                    Op::RenameDir { from, to },
                    self.user_write(),
                    Op::RenameDir { from: to, to: from },
                ]
            }
            _ => {
                let other = self.file();
                vec![
                    Op::Rename {
                        from: path,
                        to: other,
                    },
                    Op::Rename {
                        from: other,
                        to: path,
                    },
                ]
            }
        }
    }

    fn plan(&mut self) -> Vec<Op> {
        let path = self.file();
        match self.rng.below(24) {
            0..=3 => vec![self.user_write()],
            4..=7 => self.edit(),
            8..=13 => {
                let ask = self.question();
                vec![self.ask(ask)]
            }
            14 => vec![Op::Unlink { path }],
            15 => {
                let id = self.content();
                let named = if self.rng.chance(50) {
                    Named::Disk
                } else {
                    Named::Content(id)
                };
                vec![
                    Op::Write {
                        path,
                        content: id,
                        how: self.how(),
                    },
                    self.ask(Ask::Saved { path, named }),
                ]
            }
            16 => {
                let id = self.content();
                self.slot += 1;
                let slot = self.slot;
                vec![
                    Op::Write {
                        path,
                        content: id,
                        how: self.how(),
                    },
                    self.ask(Ask::Mark {
                        slot,
                        path,
                        expect: Named::Content(id),
                        ttl: None,
                        bind: false,
                    }),
                ]
            }
            17 => vec![Op::Pass(
                self.rng.pick(&[1, 30, 120, 3_000, 11_000, 70_000]),
            )],
            18 => vec![Op::Drain],
            19 if self.mood.pieces => self.writer(),
            20 if self.mood.renames => self.renames(),
            21 if self.mood.restarts && self.rng.chance(40) => {
                let mut ops = vec![Op::Down];
                for _ in 0..self.rng.below(3) {
                    ops.push(self.user_write());
                }
                ops.push(Op::Pass(self.rng.pick(&[1, 5_000, 700_000])));
                ops.push(Op::Up {
                    snapshot: self.rng.chance(50),
                });
                ops
            }
            22 if self.mood.losses => vec![match self.rng.below(4) {
                0 => Op::Overflow,
                1 => Op::Gap {
                    below: self.rng.pick(&["d", "d/e", "x", "y"]),
                },
                2 => Op::FenceFails,
                _ => Op::Disconnect {
                    connection: self.rng.below(6) as u64,
                },
            }],
            23 if self.mood.permissions => vec![Op::Chmod { path }],
            _ => vec![Op::Touch { path }],
        }
    }

    fn turn(&mut self) -> Op {
        match self.rng.below(10) {
            0..=3 => Op::Hints(1 + self.rng.below(3)),
            4..=6 => Op::ExecRead {
                which: self.rng.below(4),
                unstable: self.mood.pieces && self.rng.chance(20),
            },
            7..=8 => Op::GiveRead {
                which: self.rng.below(4),
            },
            _ => Op::Pass(self.rng.below(40) as u64),
        }
    }
}

pub fn script(seed: u64, length: usize) -> Script {
    script_of(Rng::new(seed), length)
}

/// Returns a run made from any choices.
pub fn script_of(mut rng: Rng, length: usize) -> Script {
    let mood = Mood {
        files: rng.pick(&[1, 2, 3, 6]),
        sessions: 1 + rng.below(SESSIONS.len()),
        lag: rng.below(5),
        renames: rng.chance(50),
        pieces: rng.chance(50),
        restarts: rng.chance(35),
        losses: rng.chance(35),
        permissions: rng.chance(15),
        within: rng.chance(25),
    };
    write(rng, mood, length)
}

fn write(mut rng: Rng, mood: Mood, length: usize) -> Script {
    let tick = rng.pick(&[1, 1, 4, 10, 1_000]);
    let mut maker = Maker {
        rng,
        mood,
        unique: COMMON,
        slot: 0,
        writer: 0,
    };
    let mut initial = Vec::new();
    for path in FILES.iter().take(mood.files) {
        if maker.rng.chance(75) {
            initial.push((*path, maker.rng.below(COMMON as usize) as u32));
        }
    }
    let mut plans: Vec<std::vec::IntoIter<Op>> = Vec::new();
    let mut ops = Vec::new();
    while ops.len() < length && !maker.rng.spent() {
        if plans.len() < 3 {
            let plan = maker.plan();
            plans.push(plan.into_iter());
        }
        let which = maker.rng.below(plans.len());
        match plans[which].next() {
            Some(op) => ops.push(op),
            None => {
                plans.remove(which);
            }
        }
        for _ in 0..maker.rng.below(6 - mood.lag) {
            let op = maker.turn();
            ops.push(op);
        }
    }
    Script { tick, initial, ops }
}
