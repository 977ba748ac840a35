//! The steps of a run, and how a seed makes them. A step says everything it
//! needs, so that a run can be repeated with some of them left out; one that
//! finds nothing to do does nothing.

use std::fmt;

use super::rows::Row;
use super::text::Make;
use crate::race::dice::Dice;

/// A name that files are reached by, below the workspace.
pub type Name = &'static str;

/// All of them. `la` and `lb` may be symlinks to files, `ld` one to a
/// directory, `m` a mount point, and `v` shows another directory.
pub const NAMES: &[Name] = &[
    "a", "b", "c", "d/a", "d/b", "d/e/c", "k/a", "k/b", "k/e/c", "la", "lb", "ld/a", "ld/b", "m/a",
    "v/a", ".env",
];

/// The files that are there at first.
pub const FIRST: &[Name] = &["a", "b", "d/a", "d/b", "d/e/c", "m/a", ".env"];

/// Names that a link to a file may have.
const LINKS: &[Name] = &["la", "lb"];

/// How a content gets into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Truncated, written, closed.
    InPlace,
    /// Written over and cut to length.
    Over,
    /// What is more is appended; as [`How::InPlace`] where it is not more.
    Append,
    /// A temporary file is renamed onto the name.
    Replace,
    /// Removed and made anew.
    Recreate,
    /// As vim: the old file is renamed away, a new one written, the old one
    /// removed.
    Vim,
    /// A store through a memory map, which ends; as [`How::Over`] where the
    /// size differs.
    Map,
}

/// All of them, the usual ones more than once.
const HOWS: &[How] = &[
    How::InPlace,
    How::InPlace,
    How::InPlace,
    How::Over,
    How::Append,
    How::Replace,
    How::Replace,
    How::Recreate,
    How::Vim,
    How::Map,
];

/// What an agent's edit says it will write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// The content.
    Content,
    /// Nothing.
    Nothing,
}

/// One step. A session is named by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the text of each step, below, says what it is
pub enum Step {
    Save {
        name: Name,
        make: Make,
        how: How,
    },
    OpenPart {
        name: Name,
        make: Make,
    },
    ClosePart,
    Remove {
        name: Name,
    },
    Touch {
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
    SymlinkDirectory {
        to: Name,
        atomic: bool,
    },
    RenameDirectory {
        from: Name,
        to: Name,
    },
    ExchangeDirectories,
    ReplaceDirectory {
        name: Name,
        make: Make,
        exchange: bool,
    },
    MountTmpfs {
        at: Name,
        make: Make,
    },
    MountBind {
        from: Name,
    },
    Unmount {
        at: Name,
    },
    Stop,
    Kill,
    Start,
    Read {
        session: usize,
        name: Name,
        range: Option<(usize, usize)>,
        hash: bool,
    },
    ReadText {
        session: usize,
        name: Name,
        range: Option<(usize, usize)>,
        force: bool,
    },
    Begin {
        session: usize,
        name: Name,
        make: Make,
        declared: Declared,
    },
    AgentSave {
        session: usize,
        how: How,
        alias: bool,
    },
    Commit {
        session: usize,
        hash: bool,
    },
    FileWrite {
        session: usize,
        name: Name,
        make: Make,
    },
    FileEdit {
        session: usize,
        name: Name,
        line: usize,
        revision: u32,
    },
    Compacted {
        session: usize,
    },
    Take {
        session: usize,
    },
    Check {
        order: u32,
    },
}

impl Step {
    /// The row that a step belongs to.
    pub fn row(&self) -> Row {
        match self {
            Self::Save { how: How::Map, .. } | Self::AgentSave { how: How::Map, .. } => Row::Maps,
            Self::OpenPart { .. } | Self::ClosePart => Row::OpenWriters,
            Self::Rename { .. } => Row::Renames,
            Self::Exchange { .. } => Row::Exchanges,
            Self::HardLink { .. } => Row::HardLinks,
            Self::Symlink { .. } => Row::Symlinks,
            Self::SymlinkDirectory { .. } => Row::DirectorySymlinks,
            Self::RenameDirectory { .. } | Self::ExchangeDirectories => Row::DirectoryRenames,
            Self::ReplaceDirectory { .. } => Row::DirectoriesReplaced,
            Self::MountTmpfs { .. } | Self::Unmount { .. } => Row::Mounts,
            Self::MountBind { .. } => Row::Binds,
            Self::Stop | Self::Kill | Self::Start => Row::Restarts,
            Self::Read { range: Some(_), .. } | Self::ReadText { range: Some(_), .. } => {
                Row::PartialReads
            }
            Self::Begin {
                declared: Declared::Nothing,
                ..
            } => Row::UndeclaredMarks,
            Self::Begin { .. } | Self::AgentSave { .. } | Self::Commit { .. } => Row::Edits,
            Self::FileWrite { .. } | Self::FileEdit { .. } => Row::GuardedWrites,
            _ => Row::Plain,
        }
    }
}

/// A session's name.
pub fn session(index: usize) -> &'static str {
    ["A", "B", "C"][index]
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = |range: &Option<(usize, usize)>| match range {
            None => String::new(),
            Some((first, last)) => format!(" lines {first}-{last}"),
        };
        match self {
            Self::Save { name, make, how } => write!(f, "user saves {name}: {make} ({how:?})"),
            Self::OpenPart { name, make } => {
                write!(
                    f,
                    "user writes the first half of {name} and keeps it open: {make}"
                )
            }
            Self::ClosePart => write!(f, "user writes the rest and closes"),
            Self::Remove { name } => write!(f, "user removes {name}"),
            Self::Touch { name } => write!(f, "user touches {name}"),
            Self::Rename { from, to } => write!(f, "user renames {from} to {to}"),
            Self::Exchange { one, other } => write!(f, "user exchanges {one} and {other}"),
            Self::HardLink { from, to } => write!(f, "user makes {to} a hard link of {from}"),
            Self::Symlink { name, to, atomic } => write!(
                f,
                "user points {name} to {to}{}",
                if *atomic { ", by a rename" } else { "" }
            ),
            Self::SymlinkDirectory { to, atomic } => write!(
                f,
                "user points ld to the directory {to}{}",
                if *atomic { ", by a rename" } else { "" }
            ),
            Self::RenameDirectory { from, to } => {
                write!(f, "user renames the directory {from} to {to}")
            }
            Self::ExchangeDirectories => write!(f, "user exchanges the directories d and k"),
            Self::ReplaceDirectory {
                name,
                make,
                exchange,
            } => write!(
                f,
                "user replaces the directory {name} by one whose a and b are {make}{}",
                if *exchange {
                    ", by an exchange"
                } else {
                    ": rm -r, mv"
                }
            ),
            Self::MountTmpfs { at, make } => {
                write!(f, "user mounts a tmpfs on {at}, and saves its a: {make}")
            }
            Self::MountBind { from } => write!(f, "user binds {from} to v"),
            Self::Unmount { at } => write!(f, "user unmounts {at}"),
            Self::Stop => write!(f, "the daemon is asked to end"),
            Self::Kill => write!(f, "the daemon is killed"),
            Self::Start => write!(f, "the daemon starts"),
            Self::Read {
                session: s,
                name,
                range,
                hash,
            } => write!(
                f,
                "{} reads {name}{}: file/read{}",
                session(*s),
                lines(range),
                if *hash { " with the hash" } else { "" }
            ),
            Self::ReadText {
                session: s,
                name,
                range,
                force,
            } => write!(
                f,
                "{} reads {name}{}: file/readText{}",
                session(*s),
                lines(range),
                if *force { ", force" } else { "" }
            ),
            Self::Begin {
                session: s,
                name,
                make,
                declared,
            } => write!(
                f,
                "{} begins an edit of {name} that declares {declared:?}: {make}",
                session(*s)
            ),
            Self::AgentSave {
                session: s,
                how,
                alias,
            } => write!(
                f,
                "{} saves that content ({how:?}){}",
                session(*s),
                if *alias {
                    " by another name of the file"
                } else {
                    ""
                }
            ),
            Self::Commit { session: s, hash } => write!(
                f,
                "{} commits the edit{}",
                session(*s),
                if *hash { " with the hash" } else { "" }
            ),
            Self::FileWrite {
                session: s,
                name,
                make,
            } => {
                write!(f, "{}: file/write {name}: {make}", session(*s))
            }
            Self::FileEdit {
                session: s,
                name,
                line,
                revision,
            } => write!(
                f,
                "{}: file/edit {name}: its line {} becomes r{revision:03}",
                session(*s),
                line + 1
            ),
            Self::Compacted { session: s } => write!(f, "{}: session/compacted", session(*s)),
            Self::Take { session: s } => write!(f, "{}: modified/take", session(*s)),
            Self::Check { order } => write!(f, "everything is asked and compared (order {order})"),
        }
    }
}

/// Makes the steps of a seed.
pub fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut dice = Dice::new(seed, "disk fuzz");
    // Few names and sessions meet more often.
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
        // Now and then one of all there are.
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

    /// A content: common ones come back, others are written once.
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

    /// What a user saves: also what was there before.
    fn users(&mut self) -> Make {
        if self.dice.percent(20) {
            return Make::Back(1 + below(&mut self.dice, 2));
        }
        self.make()
    }

    /// A content that nobody else writes.
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
        // Mostly of what was read.
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
        // What is down comes up again soon.
        if matches!(step, Step::Stop | Step::Kill) {
            for _ in 0..self.dice.below(3) {
                let save = self.save();
                self.steps.push(save);
            }
            self.steps.push(Step::Start);
        }
    }
}
