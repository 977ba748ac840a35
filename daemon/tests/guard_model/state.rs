//! The state: one directory, its files, leases, what is on disk in the state
//! directory, and the volatile state of the daemon.

use std::fmt;

use super::people::Person;
use super::writer::Daemon;

/// A block of a file's content.
pub type Block = u32;

/// A hole, from a write behind the end of the file.
pub const HOLE: Block = 15;
/// The base, as the agent has read it.
pub const B: Block = 1;
/// The last block of most contents, as texts end with a newline.
pub const NL: Block = 2;
/// The agent's new content.
pub const A: Block = 3;
/// The blocks of the two editors.
pub const E: [Block; 2] = [4, 5];

/// The content of a file: up to seven blocks, the first in the lowest bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Content(u32);

impl Content {
    pub fn of(blocks: &[Block]) -> Self {
        let mut content = Self(0);
        for (at, block) in blocks.iter().enumerate() {
            content = content.with(at, *block);
        }
        content
    }

    pub const fn of_nothing() -> Self {
        Self(0)
    }

    pub fn len(self) -> usize {
        8 - self.0.leading_zeros() as usize / 4
    }

    pub fn block(self, at: usize) -> Block {
        self.0 >> (4 * at) & 15
    }

    /// Writes a block, as `pwrite` does.
    pub fn with(self, at: usize, block: Block) -> Self {
        let mut bits = self.0;
        for hole in self.len()..at {
            bits |= HOLE << (4 * hole);
        }
        Self(bits & !(15 << (4 * at)) | block << (4 * at))
    }

    /// Truncates to at most this number of blocks.
    pub fn cut(self, len: usize) -> Self {
        Self(self.0 & ((1 << (4 * len)) - 1))
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = ['?', 'B', '$', 'A', '1', '2'];
        let text: String = (0..self.len())
            .map(|at| letters.get(self.block(at) as usize).copied().unwrap_or('_'))
            .collect();
        write!(f, "{text:?}")
    }
}

/// The number of an inode, from 1; 0 for none.
pub type Inode = u8;

/// A name in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The file that the agent writes and the editors save.
    File,
    /// The guarded write's own name: of the temporary file, and of what came
    /// out.
    Aside,
    /// A second hard link of the file.
    Link,
    /// The temporary or backup name of the first editor.
    Beside0,
    /// The same of the second editor.
    Beside1,
}

pub const NAMES: usize = 5;
/// The most inodes that a run uses.
const FILES: usize = 7;

/// A file. Only the content is the file system's; the rest is the model's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct File {
    pub content: Content,
    /// An editor has written to it.
    pub touched: bool,
    /// It had no name when the daemon was killed.
    pub forgotten: bool,
    /// An editor has removed its last name.
    pub removed: bool,
}

/// The phase of the recorded intent, as in `guard/intent.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    Preparing,
    Creating,
    Exchanging,
    Writing,
    Removing,
}

/// A completed save that must not be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Save {
    pub content: Content,
    pub inode: Inode,
    /// The file had lost the name to the daemon when the editor closed it.
    pub late: bool,
}

/// The daemon's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Lease {
    pub inode: Inode,
    /// A process waits to open the file for writing.
    pub broken: bool,
}

/// Everything. The last five fields are the model's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The inode of each name.
    pub names: [Inode; NAMES],
    /// The files, by inode.
    pub files: [File; FILES],
    /// The number of inodes that were used.
    pub count: u8,
    /// The record on disk.
    pub intent: Option<Phase>,
    /// The stored contents, without the copy below.
    pub kept: [Content; 6],
    /// The stored copy of the base, which the intent may name.
    pub copy: Option<Content>,
    pub lease: Lease,
    pub daemon: Daemon,
    /// The files that are held for a last look, with their content then.
    pub net: [(Inode, Option<Content>); 3],
    pub people: [Person; 2],
    /// Of each editor, and of the base if the session has not seen it.
    pub saves: [Option<Save>; 3],
    pub kills: u8,
    /// A save was lost in a way that the contract allows.
    pub limit: bool,
    /// A process waited for the lease, and got a file without the name.
    pub robbed: bool,
}

impl State {
    pub fn at(&self, name: Name) -> Inode {
        self.names[name as usize]
    }

    /// Gives a name to a file, or to none.
    pub fn set(&mut self, name: Name, inode: Inode) {
        self.names[name as usize] = inode;
    }

    pub fn file(&self, inode: Inode) -> &File {
        &self.files[inode as usize - 1]
    }

    pub fn content(&self, inode: Inode) -> Content {
        self.file(inode).content
    }

    pub fn file_mut(&mut self, inode: Inode) -> &mut File {
        &mut self.files[inode as usize - 1]
    }

    pub fn is_named(&self, inode: Inode) -> bool {
        self.names.contains(&inode)
    }

    /// Creates a file at a name that has none.
    pub fn create(&mut self, name: Name, content: Content) -> Inode {
        assert_eq!(self.at(name), 0);
        self.count += 1;
        let inode = self.count;
        *self.file_mut(inode) = File {
            content,
            ..File::default()
        };
        self.set(name, inode);
        inode
    }

    /// `rename(2)` with `RENAME_NOREPLACE`. Returns whether it was possible.
    pub fn rename(&mut self, from: Name, to: Name) -> bool {
        let possible = self.at(from) != 0 && self.at(to) == 0;
        if possible {
            self.set(to, self.at(from));
            self.set(from, 0);
        }
        possible
    }

    /// `rename(2)` with `RENAME_EXCHANGE`. Returns whether it was possible.
    pub fn exchange(&mut self, one: Name, other: Name) -> bool {
        let possible = self.at(one) != 0 && self.at(other) != 0;
        if possible {
            self.names.swap(one as usize, other as usize);
        }
        possible
    }

    /// Returns whether a process other than the daemon has a file open for
    /// writing.
    pub fn has_writer(&self, inode: Inode) -> bool {
        self.people.iter().any(|person| person.has_open(inode))
    }

    /// Stores a content in the recovery directory.
    pub fn keep(&mut self, content: Content) {
        if !self.kept.contains(&content) {
            let free = self.kept.iter().position(|one| *one == Content::default());
            self.kept[free.unwrap()] = content;
            self.kept.sort();
        }
    }

    /// Returns whether a content can be found by the user.
    pub fn is_safe(&self, content: Content) -> bool {
        let mut named = self.names.iter().filter(|inode| **inode != 0);
        self.kept.contains(&content)
            || self.copy == Some(content)
            || named.any(|inode| self.content(*inode) == content)
    }

    /// An editor is about to change a file or to remove its last name: what it
    /// had is replaced by the editor's save.
    pub fn replaced(&mut self, inode: Inode) {
        let content = self.content(inode);
        for save in &mut self.saves {
            if save.is_some_and(|save| save.inode == inode && save.content == content) {
                *save = None;
            }
        }
    }

    /// An editor removes a name.
    pub fn editor_unlinks(&mut self, name: Name) {
        let inode = self.at(name);
        if inode != 0 {
            self.set(name, 0);
            if !self.is_named(inode) {
                self.replaced(inode);
                self.file_mut(inode).removed = true;
            }
        }
    }
}
