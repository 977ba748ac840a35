//! The system calls that are seen: one table, which the filter is built from
//! and notifications are decoded with.

use libc::c_int;

/// A calling convention, as `seccomp_data.arch` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Architecture {
    X86_64 = 0xc000_003e,
    I386 = 0x4000_0003,
    Aarch64 = 0xc000_00b7,
    Arm = 0x4000_0028,
}

#[cfg(target_arch = "x86_64")]
pub(crate) const ARCHITECTURES: &[Architecture] = &[Architecture::X86_64, Architecture::I386];
#[cfg(target_arch = "aarch64")]
pub(crate) const ARCHITECTURES: &[Architecture] = &[Architecture::Aarch64, Architecture::Arm];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) const ARCHITECTURES: &[Architecture] = &[];

/// The bit in a number of `x86_64` that says x32.
pub(crate) const X32: u32 = 0x4000_0000;

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Path, flags.
    Open,
    /// Path; as `Open` with `O_CREAT | O_WRONLY | O_TRUNC`.
    Create,
    /// Directory, path, a structure with the flags, its size.
    OpenStructure,
    /// Mount, handle, flags.
    OpenHandle,
    /// Path, mode.
    MakeNode,
    /// Old path, new path.
    Rename,
    /// The same, and flags.
    RenameFlags,
    /// Old path, new path.
    Link,
    /// The same, and flags.
    LinkFlags,
    /// Path.
    Unlink,
    /// Path, flags.
    UnlinkFlags,
    /// Path.
    RemoveDirectory,
    /// Text, path.
    Symlink,
    /// Path.
    Truncate,
    /// Entries, parameters.
    IoUring,
    /// Descriptor, address, its length.
    Connect,
    /// Changes what the caller's paths mean: its root, its mounts.
    View,
}

/// One system call of one architecture.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) architecture: Architecture,
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    /// Whether each path has a directory's descriptor in front of it.
    pub(crate) at: bool,
}

/// Which calls of a row are of interest, by an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// All.
    Always,
    /// Those whose flags in this argument may write.
    Writes(usize),
    /// Those whose mode in this argument makes a regular file.
    Regular(usize),
}

impl Row {
    /// Returns which of its calls are of interest.
    pub(crate) fn condition(&self) -> Condition {
        let at = usize::from(self.at);
        match self.kind {
            Kind::Open => Condition::Writes(1 + at),
            Kind::OpenHandle => Condition::Writes(2),
            Kind::MakeNode => Condition::Regular(1 + at),
            _ => Condition::Always,
        }
    }
}

const fn row(architecture: Architecture, number: u32, kind: Kind, at: bool) -> Row {
    Row {
        architecture,
        number,
        kind,
        at,
    }
}

/// All of them. The most frequent come first within an architecture.
pub(crate) const TABLE: &[Row] = {
    use Architecture::{Aarch64, Arm, I386, X86_64};
    &[
        row(X86_64, 257, Kind::Open, true),
        row(X86_64, 2, Kind::Open, false),
        row(X86_64, 87, Kind::Unlink, false),
        row(X86_64, 263, Kind::UnlinkFlags, true),
        row(X86_64, 82, Kind::Rename, false),
        row(X86_64, 264, Kind::Rename, true),
        row(X86_64, 316, Kind::RenameFlags, true),
        row(X86_64, 437, Kind::OpenStructure, true),
        row(X86_64, 85, Kind::Create, false),
        row(X86_64, 304, Kind::OpenHandle, false),
        row(X86_64, 86, Kind::Link, false),
        row(X86_64, 265, Kind::LinkFlags, true),
        row(X86_64, 84, Kind::RemoveDirectory, false),
        row(X86_64, 88, Kind::Symlink, false),
        row(X86_64, 266, Kind::Symlink, true),
        row(X86_64, 76, Kind::Truncate, false),
        row(X86_64, 133, Kind::MakeNode, false),
        row(X86_64, 259, Kind::MakeNode, true),
        row(X86_64, 425, Kind::IoUring, false),
        row(X86_64, 42, Kind::Connect, false),
        row(X86_64, 161, Kind::View, false),
        row(X86_64, 155, Kind::View, false),
        row(X86_64, 308, Kind::View, false),
        row(X86_64, 272, Kind::View, false),
        row(X86_64, 165, Kind::View, false),
        row(X86_64, 166, Kind::View, false),
        row(X86_64, 429, Kind::View, false),
        row(I386, 295, Kind::Open, true),
        row(I386, 5, Kind::Open, false),
        row(I386, 10, Kind::Unlink, false),
        row(I386, 301, Kind::UnlinkFlags, true),
        row(I386, 38, Kind::Rename, false),
        row(I386, 302, Kind::Rename, true),
        row(I386, 353, Kind::RenameFlags, true),
        row(I386, 437, Kind::OpenStructure, true),
        row(I386, 8, Kind::Create, false),
        row(I386, 342, Kind::OpenHandle, false),
        row(I386, 9, Kind::Link, false),
        row(I386, 303, Kind::LinkFlags, true),
        row(I386, 40, Kind::RemoveDirectory, false),
        row(I386, 83, Kind::Symlink, false),
        row(I386, 304, Kind::Symlink, true),
        row(I386, 92, Kind::Truncate, false),
        row(I386, 193, Kind::Truncate, false),
        row(I386, 14, Kind::MakeNode, false),
        row(I386, 297, Kind::MakeNode, true),
        row(I386, 425, Kind::IoUring, false),
        row(I386, 362, Kind::Connect, false),
        row(I386, 61, Kind::View, false),
        row(I386, 217, Kind::View, false),
        row(I386, 346, Kind::View, false),
        row(I386, 310, Kind::View, false),
        row(I386, 21, Kind::View, false),
        row(I386, 52, Kind::View, false),
        row(I386, 22, Kind::View, false),
        row(I386, 429, Kind::View, false),
        row(Aarch64, 56, Kind::Open, true),
        row(Aarch64, 35, Kind::UnlinkFlags, true),
        row(Aarch64, 38, Kind::Rename, true),
        row(Aarch64, 276, Kind::RenameFlags, true),
        row(Aarch64, 437, Kind::OpenStructure, true),
        row(Aarch64, 265, Kind::OpenHandle, false),
        row(Aarch64, 37, Kind::LinkFlags, true),
        row(Aarch64, 36, Kind::Symlink, true),
        row(Aarch64, 45, Kind::Truncate, false),
        row(Aarch64, 33, Kind::MakeNode, true),
        row(Aarch64, 425, Kind::IoUring, false),
        row(Aarch64, 203, Kind::Connect, false),
        row(Aarch64, 51, Kind::View, false),
        row(Aarch64, 41, Kind::View, false),
        row(Aarch64, 268, Kind::View, false),
        row(Aarch64, 97, Kind::View, false),
        row(Aarch64, 40, Kind::View, false),
        row(Aarch64, 39, Kind::View, false),
        row(Aarch64, 429, Kind::View, false),
        // Its flags differ and its calls are not decoded: what opens for
        // writing is a gap.
        row(Arm, 322, Kind::Open, true),
        row(Arm, 5, Kind::Open, false),
    ]
};

/// The flags of an open call that may change something, on all architectures
/// here.
pub(crate) const WRITING: u32 =
    (libc::O_WRONLY | libc::O_RDWR | libc::O_TRUNC | libc::O_CREAT) as u32;

/// A path as a call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    /// The directory's descriptor, or `AT_FDCWD`.
    pub(crate) directory: i32,
    /// Where the text is in the caller's memory.
    pub(crate) text: u64,
}

/// A call, decoded as far as its arguments tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Open(Named, u64),
    /// The flags are the first 64-bit word of a structure at this place.
    OpenStructure(Named, u64),
    Truncate(Named),
    MakeNode(Named),
    Rename(Named, Named, u32),
    Link(Named, Named, u32),
    Unlink(Named, u32),
    Symlink(Named),
    Handle,
    /// The number of entries, and where the parameters are in the caller's memory.
    IoUring(u64, u64),
    /// Where the address is in the caller's memory, and its length.
    Connect(u64, u64),
    View,
    /// Another architecture's.
    Unknown,
}

/// Decodes a call. `arguments` are the words of the caller's registers.
pub(crate) fn decode(architecture: u32, number: u32, arguments: &[u64; 6]) -> Call {
    let is_row = |row: &&Row| row.architecture as u32 == architecture && row.number == number;
    let Some(row) = TABLE.iter().find(is_row) else {
        return Call::Unknown;
    };
    if row.architecture == Architecture::Arm {
        return Call::Unknown;
    }
    let is_compat = row.architecture == Architecture::I386;
    let argument = |at: usize| match is_compat {
        true => arguments[at] & 0xffff_ffff,
        false => arguments[at],
    };
    // Returns the path that begins at an argument, and the argument after it.
    let named = |at: usize| match row.at {
        true => {
            let (directory, text) = (argument(at) as u32 as i32, argument(at + 1));
            (Named { directory, text }, at + 2)
        }
        false => {
            let (directory, text) = (libc::AT_FDCWD, argument(at));
            (Named { directory, text }, at + 1)
        }
    };
    let (first, after) = named(0);
    let number = |at: usize| argument(at) as u32;
    const CREATE: c_int = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
    match row.kind {
        Kind::Open => Call::Open(first, u64::from(number(after))),
        Kind::Create => Call::Open(first, CREATE as u64),
        Kind::OpenStructure => Call::OpenStructure(first, argument(after)),
        Kind::OpenHandle => Call::Handle,
        Kind::MakeNode => Call::MakeNode(first),
        Kind::Rename => Call::Rename(first, named(after).0, 0),
        Kind::RenameFlags => {
            let (second, after) = named(after);
            Call::Rename(first, second, number(after))
        }
        Kind::Link => Call::Link(first, named(after).0, 0),
        Kind::LinkFlags => {
            let (second, after) = named(after);
            Call::Link(first, second, number(after))
        }
        Kind::Unlink => Call::Unlink(first, 0),
        Kind::UnlinkFlags => Call::Unlink(first, number(after)),
        Kind::RemoveDirectory => Call::Unlink(first, libc::AT_REMOVEDIR as u32),
        // The text of the link comes first, without a directory.
        Kind::Symlink => Call::Symlink(named(1).0),
        Kind::Truncate => Call::Truncate(first),
        Kind::IoUring => Call::IoUring(argument(0), argument(1)),
        Kind::Connect => Call::Connect(argument(1), argument(2)),
        Kind::View => Call::View,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_are_the_systems() {
        #[cfg(target_arch = "x86_64")]
        let known: &[(i64, Kind, bool)] = &[
            (libc::SYS_open, Kind::Open, false),
            (libc::SYS_openat, Kind::Open, true),
            (libc::SYS_creat, Kind::Create, false),
            (libc::SYS_openat2, Kind::OpenStructure, true),
            (libc::SYS_open_by_handle_at, Kind::OpenHandle, false),
            (libc::SYS_rename, Kind::Rename, false),
            (libc::SYS_renameat, Kind::Rename, true),
            (libc::SYS_renameat2, Kind::RenameFlags, true),
            (libc::SYS_link, Kind::Link, false),
            (libc::SYS_linkat, Kind::LinkFlags, true),
            (libc::SYS_unlink, Kind::Unlink, false),
            (libc::SYS_unlinkat, Kind::UnlinkFlags, true),
            (libc::SYS_rmdir, Kind::RemoveDirectory, false),
            (libc::SYS_symlink, Kind::Symlink, false),
            (libc::SYS_symlinkat, Kind::Symlink, true),
            (libc::SYS_truncate, Kind::Truncate, false),
            (libc::SYS_mknod, Kind::MakeNode, false),
            (libc::SYS_mknodat, Kind::MakeNode, true),
            (libc::SYS_io_uring_setup, Kind::IoUring, false),
            (libc::SYS_connect, Kind::Connect, false),
            (libc::SYS_chroot, Kind::View, false),
            (libc::SYS_pivot_root, Kind::View, false),
            (libc::SYS_setns, Kind::View, false),
            (libc::SYS_unshare, Kind::View, false),
            (libc::SYS_mount, Kind::View, false),
            (libc::SYS_umount2, Kind::View, false),
            (libc::SYS_move_mount, Kind::View, false),
        ];
        #[cfg(target_arch = "aarch64")]
        let known: &[(i64, Kind, bool)] = &[
            (libc::SYS_openat, Kind::Open, true),
            (libc::SYS_openat2, Kind::OpenStructure, true),
            (libc::SYS_open_by_handle_at, Kind::OpenHandle, false),
            (libc::SYS_renameat, Kind::Rename, true),
            (libc::SYS_renameat2, Kind::RenameFlags, true),
            (libc::SYS_linkat, Kind::LinkFlags, true),
            (libc::SYS_unlinkat, Kind::UnlinkFlags, true),
            (libc::SYS_symlinkat, Kind::Symlink, true),
            (libc::SYS_truncate, Kind::Truncate, false),
            (libc::SYS_mknodat, Kind::MakeNode, true),
            (libc::SYS_io_uring_setup, Kind::IoUring, false),
            (libc::SYS_connect, Kind::Connect, false),
            (libc::SYS_chroot, Kind::View, false),
            (libc::SYS_pivot_root, Kind::View, false),
            (libc::SYS_setns, Kind::View, false),
            (libc::SYS_unshare, Kind::View, false),
            (libc::SYS_mount, Kind::View, false),
            (libc::SYS_umount2, Kind::View, false),
            (libc::SYS_move_mount, Kind::View, false),
        ];
        let native = ARCHITECTURES[0];
        let rows = TABLE.iter().filter(|row| row.architecture == native);
        assert_eq!(rows.clone().count(), known.len());
        for (number, kind, at) in known {
            let row = { rows.clone() }.find(|row| i64::from(row.number) == *number);
            let row = row.unwrap();
            assert_eq!((row.kind, row.at), (*kind, *at), "{number}");
        }
    }

    #[test]
    fn arguments_are_decoded_at_their_places() {
        let path = |directory, text| Named { directory, text };
        let i386 = Architecture::I386 as u32;
        let upper = 0xdead_0000_0000_0000;
        let words = [upper | 7, upper | 8, upper | 9, upper | 10, upper | 2, 0];
        let rename = Call::Rename(path(7, 8), path(9, 10), 2);
        assert_eq!(decode(i386, 353, &words), rename);
        let old = Call::Rename(path(-100, 7), path(-100, 8), 0);
        assert_eq!(decode(i386, 38, &words), old);
        assert_eq!(decode(i386, 304, &words), Call::Symlink(path(8, 9)));
        let x86 = Architecture::X86_64 as u32;
        let words = [u64::from(-100_i32 as u32), 1 << 40, 3, 0, 0, 0];
        assert_eq!(decode(x86, 257, &words), Call::Open(path(-100, 1 << 40), 3));
        assert_eq!(decode(x86, 257 | X32, &words), Call::Unknown);
        assert_eq!(decode(x86, 0, &words), Call::Unknown);
        assert_eq!(decode(Architecture::Arm as u32, 5, &words), Call::Unknown);
    }
}
