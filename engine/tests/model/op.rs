//! The steps of a run, and how a seed makes them. A step contains everything it
//! needs, so that a run can be repeated without some of them. A step that finds
//! nothing to do has no effect.

use serde::{Deserialize, Serialize};

use crate::belief::Range;
use crate::disk::{NAMES, Name};
use crate::people::SESSIONS;
use crate::runs;
use crate::runs::rng::Rng;
use crate::text::Make;

/// How a content gets into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum How {
    /// The file is truncated, written and closed.
    InPlace,
    /// A temporary file is renamed onto the name.
    Replace,
    /// The file is removed and created again.
    Recreate,
    /// As vim does: the file is renamed away, written again, and the old one is
    /// removed.
    Vim,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum Op {
    Save {
        name: Name,
        make: Make,
        how: How,
    },
    /// Half of a content is written, and the file stays open.
    OpenPart {
        name: Name,
        make: Make,
    },
    ClosePart,
    Remove {
        name: Name,
    },
    Rename {
        from: Name,
        to: Name,
    },
    Exchange {
        one: Name,
        other: Name,
    },
    HardLink {
        from: Name,
        to: Name,
    },
    Symlink {
        name: Name,
        to: Name,
        atomic: bool,
    },
    RenameDirectory {
        from: Name,
        to: Name,
    },
    ReplaceDirectory {
        name: Name,
        make: Make,
    },
    Mount {
        from: Option<Name>,
    },
    /// All pending events arrive, and some time passes.
    Settle,
    Pass(u64),
    Down,
    Up {
        snapshot: bool,
    },
    Overflow,
    Read {
        session: usize,
        name: Name,
        range: Range,
        hash: bool,
    },
    ReadText {
        session: usize,
        name: Name,
        range: Range,
        force: bool,
    },
    /// A read is recorded with its hash after the file has changed.
    ReadBefore {
        session: usize,
        name: Name,
        make: Make,
        range: Range,
    },
    Mention {
        session: usize,
        name: Name,
        hash: bool,
    },
    Invalidate {
        session: usize,
        name: Name,
    },
    Untrack {
        session: usize,
        name: Name,
    },
    Compacted {
        session: usize,
        keep: Option<Name>,
    },
    Truncated {
        session: usize,
        name: Name,
        range: Range,
    },
    Close {
        session: usize,
        forget: bool,
    },
    Begin {
        slot: usize,
        session: usize,
        name: Name,
        make: Make,
        declared: bool,
        kind: Kind,
        guarded: bool,
    },
    /// A tool writes the content that its edit has planned.
    AgentSave {
        slot: usize,
        how: How,
        alias: bool,
    },
    Commit {
        slot: usize,
        named: bool,
    },
    Abort {
        slot: usize,
    },
    /// A tool writes without an announcement, and marks the file afterwards.
    Late {
        session: usize,
        name: Name,
        make: Make,
    },
    /// An editor reports its save.
    Saved {
        name: Name,
        make: Make,
    },
    /// The daemon writes for a session.
    Guarded {
        session: usize,
        name: Name,
        make: Make,
    },
    Take {
        session: usize,
        explicit: bool,
        acknowledged: bool,
    },
    Check {
        order: u32,
    },
}

/// How an edit is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum Kind {
    Edit,
    /// By a hook: `edit/begin` with the name of a call.
    Hook,
    /// By `edit/mark`.
    Flag,
}

/// A run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Script {
    /// The precision of the file system's clock, in milliseconds.
    #[serde(default)]
    pub tick: u64,
    /// Whether reads return in reverse order.
    #[serde(default)]
    pub turned: bool,
    /// Whether texts are kept, so that lines can be compared.
    #[serde(default)]
    pub texts: bool,
    pub initial: Vec<(Name, Make)>,
    pub ops: Vec<Op>,
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

/// What a run may contain. Some runs leave out whole classes of steps, so that
/// the other ones occur more often.
struct Maker {
    rng: Rng,
    names: &'static [Name],
    sessions: usize,
    links: bool,
    renames: bool,
    directories: bool,
    restarts: bool,
    parts: bool,
    bursts: bool,
    /// Whether some lines occur in several places.
    repeats: bool,
    token: u32,
    slot: usize,
}

const DIRECTORIES: &[Name] = &["d", "k"];

impl Maker {
    fn name(&mut self) -> Name {
        self.rng.pick(self.names)
    }

    fn session(&mut self) -> usize {
        self.rng.below(self.sessions)
    }

    fn make(&mut self) -> Make {
        self.token += 1;
        let token = match self.repeats && self.rng.chance(70) {
            true => 1 + self.rng.below(2) as u32,
            false => self.token,
        };
        let line = self.rng.below(5) as u32;
        match self.rng.below(20) {
            0..=6 => Make::Revise(line, token),
            7..=9 => Make::Whole(self.token, 1 + self.rng.below(4) as u32),
            10 => Make::Insert(line, token),
            11 => Make::Drop(line),
            12 => Make::Append(token),
            13..=16 => Make::Back(1 + self.rng.below(3)),
            17 => Make::Empty,
            18 => Make::Same,
            _ => Make::Back(0),
        }
    }

    fn how(&mut self) -> How {
        self.rng.pick(&[
            How::InPlace,
            How::InPlace,
            How::InPlace,
            How::Replace,
            How::Replace,
            How::Recreate,
            How::Vim,
        ])
    }

    fn range(&mut self) -> Range {
        let first = 1 + self.rng.below(4) as u32;
        let count = self.rng.below(3) as u32;
        self.rng.chance(45).then_some((first, first + count))
    }

    fn save(&mut self) -> Op {
        Op::Save {
            name: self.name(),
            make: self.make(),
            how: self.how(),
        }
    }

    fn read(&mut self, session: usize, name: Name) -> Op {
        if self.rng.chance(25) {
            return Op::ReadText {
                session,
                name,
                range: self.range(),
                force: self.rng.chance(30),
            };
        }
        Op::Read {
            session,
            name,
            range: self.range(),
            hash: self.rng.chance(50),
        }
    }

    fn settle(&mut self, ops: &mut Vec<Op>) {
        if !self.bursts || self.rng.chance(70) {
            ops.push(Op::Settle);
        }
    }

    fn edit(&mut self) -> Vec<Op> {
        let session = self.session();
        let name = self.name();
        self.slot += 1;
        let slot = self.slot;
        let mut ops = Vec::new();
        if self.rng.chance(60) {
            ops.push(Op::Read {
                session,
                name,
                range: None,
                hash: false,
            });
        }
        let kind = self
            .rng
            .pick(&[Kind::Edit, Kind::Edit, Kind::Hook, Kind::Hook, Kind::Flag]);
        ops.push(Op::Begin {
            slot,
            session,
            name,
            make: self.make(),
            declared: self.rng.chance(55),
            kind,
            guarded: self.rng.chance(60),
        });
        let parallel = self.rng.chance(15);
        if parallel {
            self.slot += 1;
            ops.push(Op::Begin {
                slot: self.slot,
                session,
                name,
                make: self.make(),
                declared: self.rng.chance(55),
                kind,
                guarded: false,
            });
        }
        if self.rng.chance(20) {
            let disturbance = match self.rng.below(3) {
                0 => Op::Remove { name },
                _ => Op::Save {
                    name,
                    make: self.make(),
                    how: self.how(),
                },
            };
            ops.push(disturbance);
            self.settle(&mut ops);
        }
        let last = self.slot;
        for slot in slot..=last {
            if self.rng.chance(85) {
                ops.push(Op::AgentSave {
                    slot,
                    how: self.how(),
                    alias: self.rng.chance(15),
                });
                self.settle(&mut ops);
            }
        }
        if self.rng.chance(15) {
            ops.push(Op::Save {
                name,
                make: self.make(),
                how: self.how(),
            });
            self.settle(&mut ops);
        }
        for slot in slot..=last {
            match self.rng.below(10) {
                0..=7 => ops.push(Op::Commit {
                    slot,
                    named: self.rng.chance(50),
                }),
                8 => ops.push(Op::Abort { slot }),
                _ => {}
            }
        }
        ops
    }

    fn names(&mut self) -> Op {
        let directory = self.rng.pick(DIRECTORIES);
        let other = if directory == "d" { "k" } else { "d" };
        match self.rng.below(16) {
            0..=2 if self.links => Op::HardLink {
                from: self.name(),
                to: self.name(),
            },
            3..=4 if self.links => Op::Symlink {
                name: self.rng.pick(&["la", "lb"]),
                to: self.rng.pick(&["a", "b", "c", "d/a", "d/b", "k/a"]),
                atomic: self.rng.chance(50),
            },
            5 if self.links => Op::Symlink {
                name: "ld",
                to: directory,
                atomic: self.rng.chance(50),
            },
            6 if self.links => Op::Mount {
                from: self.rng.chance(60).then_some(directory),
            },
            7..=10 if self.renames => Op::Rename {
                from: self.name(),
                to: self.name(),
            },
            11 if self.renames && self.links => Op::Exchange {
                one: self.name(),
                other: self.name(),
            },
            12..=13 if self.directories => Op::RenameDirectory {
                from: directory,
                to: other,
            },
            14 if self.directories && self.links => Op::Exchange {
                one: "d",
                other: "k",
            },
            15 if self.directories => Op::ReplaceDirectory {
                name: directory,
                make: self.make(),
            },
            _ => Op::Remove { name: self.name() },
        }
    }

    fn plan(&mut self) -> Vec<Op> {
        let session = self.session();
        let name = self.name();
        let mut ops = Vec::new();
        match self.rng.below(40) {
            0..=4 => {
                ops.push(self.save());
                self.settle(&mut ops);
            }
            5..=13 => return self.edit(),
            14..=20 => ops.push(self.read(session, name)),
            21..=25 => {
                ops.push(self.names());
                self.settle(&mut ops);
            }
            26..=28 => ops.push(Op::Take {
                session,
                explicit: self.rng.chance(25),
                acknowledged: self.rng.chance(60),
            }),
            29 => ops.push(Op::ReadBefore {
                session,
                name,
                make: self.make(),
                range: self.range(),
            }),
            30 => ops.push(Op::Mention {
                session,
                name,
                hash: self.rng.chance(40),
            }),
            31 => ops.push(match self.rng.below(5) {
                0 => Op::Invalidate { session, name },
                1 => Op::Untrack { session, name },
                _ => Op::Truncated {
                    session,
                    name,
                    range: self.range(),
                },
            }),
            32 => ops.push(Op::Compacted {
                session,
                keep: self.rng.chance(30).then_some(name),
            }),
            33 => ops.push(match self.rng.below(4) {
                0 => Op::Close {
                    session,
                    forget: self.rng.chance(40),
                },
                _ => Op::Pass(self.rng.pick(&[30, 3_000, 11_000, 65_000, 700_000])),
            }),
            34 => ops.push(Op::Late {
                session,
                name,
                make: self.make(),
            }),
            35 => ops.push(Op::Saved {
                name,
                make: self.make(),
            }),
            36 => ops.push(Op::Guarded {
                session,
                name,
                make: self.make(),
            }),
            37 if self.parts => {
                ops.push(Op::OpenPart {
                    name,
                    make: self.make(),
                });
                ops.push(Op::Settle);
                ops.push(Op::ClosePart);
                self.settle(&mut ops);
            }
            38 if self.restarts => {
                ops.push(Op::Down);
                for _ in 0..self.rng.below(3) {
                    ops.push(self.save());
                    if self.rng.chance(30) {
                        ops.push(self.names());
                    }
                }
                ops.push(Op::Pass(self.rng.pick(&[1, 1, 5_000, 70_000])));
                ops.push(Op::Up {
                    snapshot: self.rng.chance(50),
                });
            }
            39 if self.restarts => ops.push(Op::Overflow),
            _ => {
                ops.push(self.save());
                self.settle(&mut ops);
            }
        }
        ops
    }
}

const FEW: &[Name] = &["a", "b"];
const SOME: &[Name] = &["a", "b", "d/a", "k/a", "la"];

/// What a run contains besides plain steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Harder {
    /// Links, mounts and exchanges, so that names resolve to the files of
    /// others.
    pub links: bool,
    /// Steps that follow each other without a read in between.
    pub bursts: bool,
}

pub fn script(seed: u64, length: usize, harder: Harder) -> Script {
    let mut rng = Rng::new(seed);
    let names = rng.pick(&[FEW, FEW, SOME, NAMES]);
    let mut maker = Maker {
        names,
        sessions: 1 + rng.below(SESSIONS),
        links: names.len() > 2 && rng.chance(70) && harder.links,
        renames: rng.chance(50),
        directories: names.len() > 2 && rng.chance(40),
        restarts: rng.chance(30),
        parts: rng.chance(30),
        bursts: rng.chance(35) && harder.bursts,
        repeats: seed % 5 == 2,
        token: 0,
        slot: 0,
        rng,
    };
    let tick = maker.rng.pick(&[1, 4, 1_000]);
    let turned = maker.rng.chance(30);
    let mut initial = Vec::new();
    for name in ["a", "b", "d/a", "d/b", "k/a"] {
        if maker.rng.chance(75) {
            maker.token += 1;
            initial.push((name, Make::Whole(maker.token, maker.rng.below(5) as u32)));
        }
    }
    let mut plans: Vec<std::vec::IntoIter<Op>> = Vec::new();
    let mut ops = Vec::new();
    while ops.len() < length {
        if plans.len() < 2 {
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
        if maker.rng.chance(25) {
            let order = maker.rng.below(3) as u32;
            ops.push(Op::Check { order });
        }
    }
    Script {
        tick,
        turned,
        texts: seed.is_multiple_of(3),
        initial,
        ops,
    }
}
