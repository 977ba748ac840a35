//! Makes the steps of a run from a seed.

use super::step::{Declared, HOWS, How, LINKS, NAMES, Name, Step};
use super::text::Make;
use crate::dice::Dice;

/// Returns the steps of a seed.
pub fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut dice = Dice::new(seed, "disk fuzz");
    // With few names and sessions, steps interact more often.
    let mut names: Vec<Name> = NAMES.to_vec();
    while names.len() > 5 {
        names.remove(below(&mut dice, names.len()));
    }
    let sessions = 1 + below(&mut dice, 3);
    let mut maker = Maker {
        dice,
        names,
        sessions,
        unique: 10,
        steps: Vec::new(),
    };
    while maker.steps.len() < count {
        maker.add();
    }
    maker.steps.push(Step::Start);
    maker.steps.push(Step::ClosePart);
    maker.steps.push(Step::Check { order: 0 });
    maker.steps
}

fn below(dice: &mut Dice, bound: usize) -> usize {
    usize::try_from(dice.below(bound as u64)).expect("a small number")
}

struct Maker {
    dice: Dice,
    names: Vec<Name>,
    sessions: usize,
    unique: u32,
    steps: Vec<Step>,
}

impl Maker {
    fn name(&mut self) -> Name {
        // Sometimes any name, not only one of the few.
        if self.dice.percent(10) {
            return self.one_of(NAMES);
        }
        self.names[below(&mut self.dice, self.names.len())]
    }

    fn one_of(&mut self, names: &[Name]) -> Name {
        names[below(&mut self.dice, names.len())]
    }

    fn session(&mut self) -> usize {
        below(&mut self.dice, self.sessions)
    }

    fn line(&mut self) -> usize {
        below(&mut self.dice, 7)
    }

    fn fresh(&mut self) -> u32 {
        self.unique += 1;
        self.unique
    }

    /// Returns a content. Half of them occur only once; the others are common
    /// ones that return.
    fn make(&mut self) -> Make {
        let revision = if self.dice.percent(50) {
            self.fresh()
        } else {
            below(&mut self.dice, 3).try_into().expect("small")
        };
        let line = self.line();
        match self.dice.below(20) {
            0..=3 => Make::Whole(revision),
            4..=10 => Make::Revise(line, revision),
            11..=13 => Make::Insert(line, revision),
            14 | 15 => Make::Drop(line),
            16 | 17 => Make::Append(revision),
            18 => Make::Same,
            _ => Make::Empty,
        }
    }

    /// Returns a content that the user saves. It may be an earlier one.
    fn users(&mut self) -> Make {
        if self.dice.percent(20) {
            return Make::Back(1 + below(&mut self.dice, 2));
        }
        self.make()
    }

    /// Returns a content that no other step writes.
    fn own(&mut self) -> Make {
        let revision = self.fresh();
        let line = self.line();
        match self.dice.below(10) {
            0..=2 => Make::Whole(revision),
            3..=6 => Make::Revise(line, revision),
            7 => Make::Append(revision),
            _ => Make::Insert(line, revision),
        }
    }

    fn range(&mut self) -> Option<(usize, usize)> {
        if self.dice.percent(60) {
            return None;
        }
        let first = 1 + self.line();
        Some((first, first + below(&mut self.dice, 4)))
    }

    fn read(&mut self) -> Step {
        let (session, name, range) = (self.session(), self.name(), self.range());
        if self.dice.percent(50) {
            let hash = self.dice.percent(70);
            Step::Read {
                session,
                name,
                range,
                hash,
            }
        } else {
            let force = self.dice.percent(30);
            Step::ReadText {
                session,
                name,
                range,
                force,
            }
        }
    }

    fn save(&mut self) -> Step {
        let (name, make, how) = (self.name(), self.users(), *self.dice.pick(HOWS));
        let make = if how == How::Append {
            Make::Append(self.fresh())
        } else {
            make
        };
        Step::Save { name, make, how }
    }

    fn edit(&mut self) {
        let (session, name, make) = (self.session(), self.name(), self.own());
        let declared = if self.dice.percent(70) {
            Declared::Content
        } else {
            Declared::Nothing
        };
        // Mostly the session reads the file first.
        if self.dice.percent(80) {
            self.steps.push(Step::Read {
                session,
                name,
                range: None,
                hash: true,
            });
        }
        self.steps.push(Step::Begin {
            session,
            name,
            make,
            declared,
        });
        self.meanwhile();
        if self.dice.percent(90) {
            let (how, alias) = (*self.dice.pick(HOWS), self.dice.percent(20));
            self.steps.push(Step::AgentSave {
                session,
                how,
                alias,
            });
        }
        self.meanwhile();
        let hash = self.dice.percent(60);
        self.steps.push(Step::Commit { session, hash });
    }

    fn meanwhile(&mut self) {
        if self.dice.percent(20) {
            let save = self.save();
            self.steps.push(save);
        }
        if self.dice.percent(20) {
            let check = self.check();
            self.steps.push(check);
        }
    }

    fn check(&mut self) -> Step {
        Step::Check {
            order: below(&mut self.dice, 5).try_into().expect("small"),
        }
    }

    fn add(&mut self) {
        let atomic = self.dice.percent(50);
        let step = match self.dice.below(40) {
            0..=7 => self.save(),
            8..=13 => self.read(),
            14..=17 => return self.edit(),
            18 => Step::FileWrite {
                session: self.session(),
                name: self.name(),
                make: self.own(),
            },
            19 => {
                let (session, name, line) = (self.session(), self.name(), self.line());
                Step::FileEdit {
                    session,
                    name,
                    line,
                    revision: self.fresh(),
                }
            }
            20 => Step::Remove { name: self.name() },
            21 => Step::Rename {
                from: self.name(),
                to: self.name(),
            },
            22 => Step::Exchange {
                one: self.name(),
                other: self.name(),
            },
            23 => Step::HardLink {
                from: self.name(),
                to: self.name(),
            },
            24 => Step::Symlink {
                name: self.one_of(LINKS),
                to: self.name(),
                atomic,
            },
            25 => Step::SymlinkDirectory {
                to: self.one_of(&["d", "k", "m"]),
                atomic,
            },
            26 => match self.dice.below(3) {
                0 => Step::RenameDirectory { from: "d", to: "k" },
                1 => Step::RenameDirectory { from: "k", to: "d" },
                _ => Step::ExchangeDirectories,
            },
            27 => {
                let name = self.one_of(&["d", "k"]);
                Step::ReplaceDirectory {
                    name,
                    make: self.make(),
                    exchange: atomic,
                }
            }
            28 => match self.dice.below(5) {
                0 => Step::MountTmpfs {
                    at: "m",
                    make: self.make(),
                },
                1 => Step::MountTmpfs {
                    at: "d",
                    make: self.make(),
                },
                2 => Step::MountBind {
                    from: self.one_of(&["d", "m"]),
                },
                _ => Step::Unmount {
                    at: self.one_of(&["m", "d", "v"]),
                },
            },
            29 => match self.dice.below(4) {
                0 => Step::Stop,
                1 => Step::Kill,
                _ => Step::Start,
            },
            30 => Step::OpenPart {
                name: self.name(),
                make: self.make(),
            },
            31 => Step::ClosePart,
            32 => Step::Touch { name: self.name() },
            33 => Step::Compacted {
                session: self.session(),
            },
            34 | 35 => Step::Take {
                session: self.session(),
            },
            _ => self.check(),
        };
        self.steps.push(step);
        // A stopped daemon is started again soon.
        if matches!(step, Step::Stop | Step::Kill) {
            for _ in 0..self.dice.below(3) {
                let save = self.save();
                self.steps.push(save);
            }
            self.steps.push(Step::Start);
        }
    }
}
