//! The race: processes that read and write the same few files as fast as they
//! can, while the daemon is killed and stopped. An oracle determines from their
//! logs what each of them really wrote.
//!
//! - [`arena`]: one round: the world, the players' processes, the killer.
//! - [`log`]: what a player did, with times before and after.
//! - [`agent`]: guarded writes, direct writes with marks, reads.
//! - [`people`]: a user with all ways to save, a user who saves at the worst
//!   moment, an editor, git.
//! - [`account`]: the combined logs.
//! - [`order`]: checks that guarded writes displaced nothing unseen, and that
//!   no answer was out of date.
//! - [`authors`]: compares the history's authors with the real ones.
//! - [`copies`]: checks each session's copies and notices at the end.

pub mod account;
pub mod agent;
pub mod arena;
pub mod authors;
pub mod copies;
pub mod log;
pub mod order;
pub mod people;

/// What may happen to a file in the race, by its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// People save it, and agents write it through the daemon.
    Guarded,
    /// People save it, and agents write it through the daemon and directly with
    /// marks.
    Mixed,
    /// People save it, and agents write it directly with marks.
    Own,
    /// Like `Guarded`, and git checks out branches with it.
    Branch,
    /// Like `Branch`, and git stashes it, so that contents come back.
    Stash,
}

impl Field {
    /// Returns the kind of a path.
    pub fn of(path: &str) -> Self {
        match path.split('/').next() {
            Some("guarded") => Self::Guarded,
            Some("mixed") => Self::Mixed,
            Some("own") => Self::Own,
            Some("branch") => Self::Branch,
            _ => Self::Stash,
        }
    }

    /// Returns whether agents write the file through the daemon.
    pub fn guarded(self) -> bool {
        self != Self::Own
    }

    /// Returns whether agents write the file directly.
    pub fn own(self) -> bool {
        matches!(self, Self::Own | Self::Mixed)
    }
}

/// All files in the race. They are few, so that many players meet at each.
pub const FILES: &[&str] = &[
    "guarded/a.txt",
    "guarded/b.txt",
    "mixed/a.txt",
    "mixed/b.txt",
    "own/a.txt",
    "own/b.txt",
    "branch/a.txt",
    "branch/b.txt",
    "stash/a.txt",
];
