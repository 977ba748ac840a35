//! The race: processes that read and write the same few files as fast as they
//! can, while the daemon is killed and stopped, and an oracle that knows from
//! their logs what each of them really wrote.
//!
//! - [`arena`]: one round: the world, the players' processes, the killer.
//! - [`log`]: what a player did, with times before and after.
//! - [`agent`]: guarded writes, own writes with marks, reads.
//! - [`people`]: a user with all ways to save, one who saves at the worst
//!   moment, an editor, git.
//! - [`account`]: the logs put together.
//! - [`order`]: nothing that a guarded write displaced was unseen; no answer
//!   was out of date.
//! - [`authors`]: who wrote, as the history says, and who really did.
//! - [`copies`]: what each session holds and is told, at the end.

pub mod account;
pub mod agent;
pub mod arena;
pub mod authors;
pub mod copies;
pub mod log;
pub mod order;
pub mod people;

/// What may happen to a file of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// People save it, agents write it guarded.
    Guarded,
    /// The same, and agents write it by themselves with marks.
    Mixed,
    /// People save it, agents write it by themselves with marks.
    Own,
    /// As guarded; git checks out branches that hold it.
    Branch,
    /// As branch; git stashes it, so that contents come back.
    Stash,
}

impl Field {
    /// Of a path.
    pub fn of(path: &str) -> Self {
        match path.split('/').next() {
            Some("guarded") => Self::Guarded,
            Some("mixed") => Self::Mixed,
            Some("own") => Self::Own,
            Some("branch") => Self::Branch,
            _ => Self::Stash,
        }
    }

    /// Agents write it through the daemon.
    pub fn guarded(self) -> bool {
        self != Self::Own
    }

    /// Agents write it by themselves.
    pub fn own(self) -> bool {
        matches!(self, Self::Own | Self::Mixed)
    }
}

/// Every file that is raced for: few, so that many meet at each.
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
