//! What the ring contains: marks, processes and gaps.

/// A process: the number alone is used again after its exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ProcessId {
    /// The process, not the thread, as the supervisor sees it.
    pub pid: u32,
    /// When it started, in clock ticks after boot; field 22 of `/proc/PID/stat`.
    pub started: u64,
}

/// A file or directory, and not a later one with the same inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Identity {
    /// The device: major number in the upper half, minor number in the lower.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
    /// The birth time, in ns since 1970. 0 if the file system has none.
    pub born: u64,
    /// The type and the permissions, as in `st_mode`.
    pub mode: u16,
}

/// What a call may do with a name, from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// Opens for writing.
    Opened = 1,
    /// Opens with `O_TRUNC`.
    OpenedTruncating = 2,
    /// Opens with `O_CREAT`; the object is `None` if it did not exist.
    Created = 3,
    /// Creates a file without a name in the directory (`O_TMPFILE`).
    Temporary = 4,
    /// Renames this name away.
    RenamedFrom = 5,
    /// Renames to this name; the object is what it replaces.
    RenamedTo = 6,
    /// Exchanges this name with that of the next or previous mark.
    Exchanged = 7,
    /// Gives another name to this file.
    LinkedFrom = 8,
    /// Makes this name, for the file of the mark before.
    Linked = 9,
    /// Removes this name.
    Unlinked = 10,
    /// Removes this directory.
    DirectoryRemoved = 11,
    /// Makes this name, as a symbolic link.
    Symlinked = 12,
    /// Changes the length.
    Truncated = 13,
}

impl Operation {
    /// Returns whether the content of what has the name may change.
    #[cfg(target_os = "linux")]
    pub(crate) fn writes_content(self) -> bool {
        matches!(
            self,
            Self::Opened | Self::OpenedTruncating | Self::Created | Self::Truncated
        )
    }

    /// Returns whether the content of what has the name may be lost.
    #[cfg(target_os = "linux")]
    pub(crate) fn may_destroy(self) -> bool {
        self.writes_content() || matches!(self, Self::RenamedTo | Self::Unlinked)
    }
}

pub(crate) const OPERATIONS: [Operation; 13] = [
    Operation::Opened,
    Operation::OpenedTruncating,
    Operation::Created,
    Operation::Temporary,
    Operation::RenamedFrom,
    Operation::RenamedTo,
    Operation::Exchanged,
    Operation::LinkedFrom,
    Operation::Linked,
    Operation::Unlinked,
    Operation::DirectoryRemoved,
    Operation::Symlinked,
    Operation::Truncated,
];

/// What happened to a name in a watched directory, by any process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Event {
    /// A file was closed that was open for writing.
    Closed = 1,
    /// The name was made, not by a rename.
    Created = 2,
    /// The name was removed.
    Removed = 3,
    /// What had the name was renamed away.
    MovedFrom = 4,
    /// Something was renamed to the name.
    MovedTo = 5,
}

pub(crate) const EVENTS: [Event; 5] = [
    Event::Closed,
    Event::Created,
    Event::Removed,
    Event::MovedFrom,
    Event::MovedTo,
];

/// Why there may be writes without a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Gap {
    /// The call's path could not be read.
    Unreadable = 1,
    /// The path could not be resolved in the caller's view, for another reason
    /// than that it does not exist.
    Unresolved = 2,
    /// `io_uring_setup`: what goes through the queue is not seen.
    IoUring = 3,
    /// `open_by_handle_at` for writing: it has no path.
    Handle = 4,
    /// A call of an architecture that is not decoded.
    Architecture = 5,
    /// The process that received the call exited or did not answer.
    Unanswered = 6,
    /// A call was continued after 2 s.
    Late = 7,
    /// The ring was full; the reader adds this one.
    Overflow = 8,
    /// A record could not be decoded; the reader adds this one.
    Damaged = 9,
    /// A file with several hard links was opened: it may be written under a name
    /// that has no mark.
    SeveralNames = 10,
}

pub(crate) const GAPS: [Gap; 10] = [
    Gap::Unreadable,
    Gap::Unresolved,
    Gap::IoUring,
    Gap::Handle,
    Gap::Architecture,
    Gap::Unanswered,
    Gap::Late,
    Gap::Overflow,
    Gap::Damaged,
    Gap::SeveralNames,
];

/// Why a command runs unwitnessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Refusal {
    /// It is already below a witness, or another supervisor of its kind.
    Nested = 1,
    /// The system does not permit the filter.
    NotPermitted = 2,
    /// The kernel is older than 5.9.
    OldKernel = 3,
    /// The kernel has no seccomp, or not the part that asks a supervisor.
    NoSeccomp = 4,
    /// Another system than Linux, or another processor than x86-64 and 64-bit
    /// ARM.
    Unsupported = 5,
    /// The ring could not be opened, or another tree uses it.
    Ring = 6,
    /// The two processes that witness could not be started.
    NoHolders = 7,
}

const REFUSALS: [Refusal; 7] = [
    Refusal::Nested,
    Refusal::NotPermitted,
    Refusal::OldKernel,
    Refusal::NoSeccomp,
    Refusal::Unsupported,
    Refusal::Ring,
    Refusal::NoHolders,
];

impl Refusal {
    /// Returns the refusal with this number; `None` if there is none.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        REFUSALS.into_iter().find(|why| *why as u8 == number)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Nested => "it already runs below a supervisor of system calls",
            Self::NotPermitted => "the system does not permit the filter",
            Self::OldKernel => "the kernel is older than 5.9",
            Self::NoSeccomp => "the kernel has no seccomp notifications",
            Self::Unsupported => "the system or the processor is not supported",
            Self::Ring => "the ring could not be opened",
            Self::NoHolders => "the witnessing processes could not be started",
        })
    }
}

/// A process of the tree, recorded before its first mark, and again after it
/// has another command line or parent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    /// The process.
    pub process: ProcessId,
    /// Its parent. An orphan's is the supervisor or the guardian.
    pub parent: u32,
    /// The path of its program, as the supervisor sees it; empty if unknown.
    pub program: Vec<u8>,
    /// Its arguments, each with a 0 after it; the first 4,096 bytes.
    pub command_line: Vec<u8>,
}

/// This process may write this name from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The wall clock, in ns since 1970.
    pub realtime: u64,
    /// The clock that continues while the machine sleeps, in ns.
    pub boottime: u64,
    /// Its last [`Process`] record is before this mark.
    pub process: ProcessId,
    /// What it does.
    pub operation: Operation,
    /// The resolved directory that contains the name.
    pub directory: Identity,
    /// The directory's path as the supervisor sees it; empty if it has none. It
    /// may be outside the roots: of a rename or link only one name must be
    /// inside, and a file with several hard links may have one inside.
    pub path: Vec<u8>,
    /// The name in the directory; empty for a file that has none.
    pub name: Vec<u8>,
    /// What has the name before the call; `None` if nothing has, or if the call
    /// fails unless nothing has (`O_EXCL`).
    pub object: Option<Identity>,
    /// Whether the call is known to fail in some cases.
    pub chance: Chance,
    /// The content of the regular file that has the name; `None` if none has, or
    /// if that was not looked at.
    pub before: Option<Before>,
    /// Whether all that happens to the name from before this mark on is recorded
    /// ([`Record::Happened`]).
    pub is_watched: bool,
}

/// A file's content before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Before {
    /// Its size, in bytes.
    pub size: u64,
    /// When it was changed, in ns since 1970 (`st_ctime`).
    pub changed: u64,
    /// When it was modified, in ns since 1970 (`st_mtime`).
    pub modified: u64,
    /// Where in the [pack](crate::stored) its bytes are; `None` if they are not.
    pub stored: Option<Stored>,
}

impl Before {
    /// Returns whether it is the same content, as far as times and size tell.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let of = |one: &Self| (one.size, one.changed, one.modified);
        of(self) == of(other)
    }
}

/// Bytes in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stored {
    /// The number of bytes that were put into the pack before.
    pub at: u64,
    /// Their checksum.
    pub sum: u64,
}

/// Whether a call is known to fail in some cases. Any call may fail for other
/// reasons, such as rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Chance {
    /// It is not.
    #[default]
    Good = 0,
    /// It fails if anything has the name, which was not looked at (`O_EXCL`).
    IfNew = 1,
    /// It fails, unless what was found has changed since: something has the
    /// name that it must not replace, or it is to another device.
    Poor = 2,
}

/// One record of the ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A process.
    Process(Process),
    /// A mark.
    Mark(Mark),
    /// Writes without a mark are possible here.
    Gap {
        /// Why.
        why: Gap,
        /// The thread that made the call; 0 if none is known.
        pid: u32,
        /// How many calls.
        calls: u64,
    },
    /// The last process of the tree has exited.
    Ended,
    /// Who witnesses; the first record, and again after a change.
    Holders {
        /// The processes whose descendants are the tree: the one that answers,
        /// then the one that watches it. 0 if there is none.
        holders: [u32; 2],
        /// The command's process.
        target: ProcessId,
    },
    /// The command was started with a descriptor that may write this file below
    /// a root: it can be written without a mark.
    Inherited {
        /// The file.
        object: Identity,
        /// Its path; empty if it has none.
        path: Vec<u8>,
    },
    /// The command runs unwitnessed: there will be no marks.
    Refused(Refusal),
    /// A process asks for a connection to another one on this machine, which may
    /// write for it.
    Connected {
        /// Its last [`Process`] record is before this one.
        process: ProcessId,
        /// The path of a socket, with `@` in front if it is in no directory, or
        /// `tcp:PORT`.
        address: Vec<u8>,
    },
    /// What happened in a watched directory, in this order.
    Happened {
        /// When the witness was told: the wall clock, in ns since 1970.
        realtime: u64,
        /// The directory's path when the watch began.
        path: Vec<u8>,
        /// What happened to which name.
        events: Vec<(Event, Vec<u8>)>,
    },
    /// Something was not recorded that happened to names marked before.
    Missed,
}
