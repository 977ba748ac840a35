//! The editors: each saves once, in one of the usual ways, one step for each
//! system call.

use super::state::{Content, E, Inode, NL, Name, Save, State};
use super::writer::Pc;

/// How an editor saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// `open(O_CREAT | O_TRUNC)`, two writes, `close`.
    InPlace,
    /// `open(O_CREAT | O_APPEND)`, one write, `close`.
    Append,
    /// A temporary file, then `rename` over the name.
    Rename,
    /// The file gets a backup name, a new one is made, the backup is removed.
    Backup,
    /// `unlink`, then as in place.
    Recreate,
    /// The file was opened before the guarded write began; two writes,
    /// `ftruncate`, `close`.
    Held,
    /// There is no such editor.
    Absent,
}

/// All ways but [`Way::Absent`].
pub const WAYS: [Way; 6] = [
    Way::InPlace,
    Way::Append,
    Way::Rename,
    Way::Backup,
    Way::Recreate,
    Way::Held,
];

/// Where an editor is in its save.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// Nothing is done yet.
    Start,
    /// The old file is away; the name is to be opened.
    Away,
    /// Within `open`: the name was looked up.
    Found,
    /// Within `open`: the kernel waits for the end of a lease.
    Waiting,
    /// The file is open (in place: it is not truncated yet).
    Opened,
    /// The file is empty.
    Truncated,
    /// The first block is written.
    Half,
    /// All is written, and the file is open.
    Written,
    /// The backup is to be removed.
    Closed,
    /// The save is complete.
    Done,
}

/// An editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Person {
    pub way: Way,
    pub at: At,
    /// The file that it has found or opened; 0 for none.
    pub inode: Inode,
    /// The content that it saves, other than by appending.
    pub content: Content,
    /// Its open file was written in place by the daemon at the same time,
    /// without a lease.
    pub raced: bool,
    /// It began to wait for the lease before the daemon looked whether a process
    /// waits.
    pub early: bool,
}

impl Person {
    /// Returns an editor at its start. A held file is open from then on.
    pub fn new(who: usize, way: Way) -> Self {
        let (at, inode) = match way {
            Way::Held => (At::Opened, 1),
            Way::Absent => (At::Done, 0),
            _ => (At::Start, 0),
        };
        Self {
            way,
            at,
            inode,
            content: Content::of(&[E[who], E[who], NL]),
            raced: false,
            early: false,
        }
    }

    /// Returns whether a file is open for writing, as the kernel counts it: also
    /// while the open waits for a lease.
    pub fn has_open(&self, inode: Inode) -> bool {
        use At::{Half, Opened, Truncated, Waiting, Written};
        self.inode == inode && matches!(self.at, Waiting | Opened | Truncated | Half | Written)
    }

    /// Returns whether it has a file open, or has found it and will open it.
    pub fn is_about(&self, inode: Inode) -> bool {
        self.has_open(inode) || self.inode == inode && self.at == At::Found
    }

    /// Returns whether it is not within a save.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.at, At::Start | At::Done) || (self.way == Way::Held && self.at == At::Opened)
    }
}

/// The next step of an editor; `None` if it has none now.
pub fn step(state: &State, who: usize) -> Option<State> {
    let mut next = state.clone();
    let s = &mut next;
    let me = state.people[who];
    let beside = [Name::Beside0, Name::Beside1][who];
    let to = match (me.way, me.at) {
        (Way::Rename, At::Start) => {
            // No other process uses the temporary file, so it is written in
            // the same step.
            let inode = s.create(beside, me.content);
            s.file_mut(inode).touched = true;
            s.editor_unlinks(Name::File);
            s.rename(beside, Name::File);
            s.saves[who] = Some(Save {
                content: me.content,
                inode,
                late: false,
            });
            At::Done
        }
        (Way::Backup, At::Start) => {
            s.rename(Name::File, beside);
            At::Away
        }
        (Way::Recreate, At::Start) => {
            s.editor_unlinks(Name::File);
            At::Away
        }
        (_, At::Start | At::Away) => match s.at(Name::File) {
            0 => {
                let inode = s.create(Name::File, Content::default());
                s.people[who].inode = inode;
                s.file_mut(inode).touched = true;
                At::Truncated
            }
            inode => {
                s.people[who].inode = inode;
                At::Found
            }
        },
        (_, At::Found) if s.lease.inode == me.inode => {
            s.lease.broken = true;
            s.people[who].early = is_before_the_look(state.daemon.pc);
            At::Waiting
        }
        (_, At::Found) => At::Opened,
        (_, At::Waiting) if s.lease.inode == me.inode => return None,
        (_, At::Waiting) => {
            let other = &state.people[1 - who];
            let alone = other.way == Way::Absent || other.at == At::Start;
            s.robbed |= alone && me.early && s.kills == 0 && s.at(Name::File) != me.inode;
            At::Opened
        }
        (Way::Append, At::Opened | At::Truncated) => {
            let old = s.content(me.inode);
            write(s, me.inode, old.with(old.len(), me.content.block(0)));
            At::Written
        }
        (Way::Held, At::Opened) => {
            let old = s.content(me.inode);
            write(s, me.inode, old.with(0, me.content.block(0)));
            At::Half
        }
        (_, At::Opened) => {
            write(s, me.inode, Content::default());
            At::Truncated
        }
        (_, At::Truncated) => {
            let old = s.content(me.inode);
            write(s, me.inode, old.with(0, me.content.block(0)));
            At::Half
        }
        (way, At::Half) => {
            let mut content = s.content(me.inode);
            for at in 1..me.content.len() {
                content = content.with(at, me.content.block(at));
            }
            if way == Way::Held {
                content = content.cut(me.content.len());
            }
            write(s, me.inode, content);
            At::Written
        }
        (way, At::Written) => {
            close(s, who);
            if way == Way::Backup {
                At::Closed
            } else {
                At::Done
            }
        }
        (_, At::Closed) => {
            s.editor_unlinks(beside);
            At::Done
        }
        (_, At::Done) => return None,
    };
    s.people[who].at = to;
    if to == At::Done {
        s.people[who].inode = 0;
    }
    Some(next)
}

fn write(s: &mut State, inode: Inode, content: Content) {
    s.replaced(inode);
    let file = s.file_mut(inode);
    file.content = content;
    file.touched = true;
}

/// Returns whether the daemon has yet to ask whether a process waits to open the
/// file.
fn is_before_the_look(pc: Pc) -> bool {
    use Pc::{
        Exchange, Holds, HoldsRemoved, IsWhole, IsWholeRemoved, LookAgain, Stat, StatRemoved,
        TakeAway,
    };
    matches!(
        pc,
        LookAgain
            | Exchange
            | Stat
            | Holds
            | IsWhole
            | TakeAway
            | StatRemoved
            | HoldsRemoved
            | IsWholeRemoved
    )
}

/// The save is complete: from now on it must not be lost.
fn close(s: &mut State, who: usize) {
    let Person { inode, raced, .. } = s.people[who];
    if s.file(inode).removed {
        return;
    }
    let is_lost = s.file(inode).forgotten && !s.is_named(inode);
    if is_lost || raced {
        s.limit = true;
        return;
    }
    s.saves[who] = Some(Save {
        content: s.content(inode),
        inode,
        late: s.at(Name::File) != inode,
    });
}
