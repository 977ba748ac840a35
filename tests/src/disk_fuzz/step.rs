//! The steps of a run. A step says everything it needs, so that a run can be
//! repeated with some of them left out; one that finds nothing to do does
//! nothing.

use super::rows::Row;
use super::text::Make;

/// A name that files are reached by, below the workspace.
pub type Name = &'static str;

/// All names. `la` and `lb` may be symlinks to files, `ld` a symlink to a
/// directory, and `m` a mount point. `v` may show another directory.
pub const NAMES: &[Name] = &[
    "a", "b", "c", "d/a", "d/b", "d/e/c", "k/a", "k/b", "k/e/c", "la", "lb", "ld/a", "ld/b", "m/a",
    "v/a", ".env",
];

/// The files that exist at the start.
pub const FIRST: &[Name] = &["a", "b", "d/a", "d/b", "d/e/c", "m/a", ".env"];

/// The names that a symlink to a file may have.
pub(super) const LINKS: &[Name] = &["la", "lb"];

/// How a content is written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Truncate, write, close.
    InPlace,
    /// Overwrite from the start, then cut to the new length.
    Over,
    /// Append the additional text. Like [`How::InPlace`] if the new content
    /// does not begin with the old one.
    Append,
    /// Write a temporary file, and rename it onto the name.
    Replace,
    /// Remove the file, and create a new one.
    Recreate,
    /// Like vim: rename the old file to a backup, write a new file, remove the
    /// backup.
    Vim,
    /// Store through a memory map. Like [`How::Over`] if the size differs.
    Map,
}

/// All ways to write, the usual ones more than once.
pub(super) const HOWS: &[How] = &[
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

/// What an agent's edit declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// The content that it will write.
    Content,
    /// No content.
    Nothing,
}

/// One step. Sessions are given by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say what the steps are
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
    /// Returns the row that the step belongs to.
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

/// Returns a session's name.
pub fn session(index: usize) -> &'static str {
    ["A", "B", "C"][index]
}
