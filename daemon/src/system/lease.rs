//! Leases: the kernel reports when another process opens a file, and delays
//! that open. [`Presence`] shows which directories other daemons watch.
//!
//! The one module with `unsafe` code: neither `rustix` nor another maintained
//! safe crate has `F_SETLEASE` or `F_OFD_SETLK`. It calls one C function, with
//! an integer or one structure as its argument.
//!
//! A lease is granted only while no process has the file open in a conflicting
//! way. For a read lease: no process has it open for writing (a shared writable
//! mapping keeps the file open and counts). For a write lease: no other process
//! has it open at all. A process that opens it later in such a way waits until
//! the lease is released (or fails immediately, if it has asked not to wait).
//! This module releases it within 5 ms (GUARD-2).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::raw::c_int;
use std::path::Path;

use super::leased::{Kind, Refused};

/// The command that names the signal for a waiting open; from the kernel's
/// `fcntl.h`, which `libc` leaves out.
const F_SETSIG: c_int = 10;

/// A lease, released when dropped.
#[derive(Debug)]
pub(crate) struct Lease<'f> {
    file: &'f File,
    kind: Kind,
}

impl<'f> Lease<'f> {
    /// Takes a lease on an open file.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn take(file: &'f File, kind: Kind) -> Result<Self, Refused> {
        // The kernel reports a waiting open by a signal, SIGIO unless another
        // is named, and SIGIO ends a process that does not handle it. SIGURG is
        // ignored unless handled, so it has no effect. It is named first, so
        // that no lease is ever held without it.
        control(file.as_fd(), F_SETSIG, libc::SIGURG).map_err(|_| Refused::Unavailable)?;
        match control(file.as_fd(), libc::F_SETLEASE, kind.code()) {
            Ok(_) => Ok(Self { file, kind }),
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Err(Refused::Busy),
            Err(_) => Err(Refused::Unavailable),
        }
    }

    /// Returns whether no process has tried to open the file since the lease
    /// was taken. While one does, the kernel reports the kind of lease that
    /// would remain.
    pub(crate) fn is_whole(&self) -> bool {
        control(self.file.as_fd(), libc::F_GETLEASE, 0).is_ok_and(|kind| kind == self.kind.code())
    }
}

/// Returns whether a process has a file open for writing, or has a shared
/// writable mapping of it. `file` is open for reading only. `false` also if the
/// system cannot tell, as for another user's file.
pub(crate) fn has_writer(file: &File) -> bool {
    matches!(Lease::take(file, Kind::Read), Err(Refused::Busy))
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // Fails only if the kernel has already ended the lease.
        let _gone = control(self.file.as_fd(), libc::F_SETLEASE, libc::F_UNLCK as c_int);
    }
}

impl Kind {
    fn code(self) -> c_int {
        // Cast, since the constants are shorts on some systems.
        match self {
            Self::Read => libc::F_RDLCK as c_int,
            Self::Write => libc::F_WRLCK as c_int,
        }
    }
}

/// Calls `fcntl(2)` with an integer argument.
fn control(file: BorrowedFd<'_>, command: c_int, argument: c_int) -> io::Result<c_int> {
    // SAFETY: the descriptor is open for as long as the borrow lasts. All
    // commands used here (F_SETSIG, F_SETLEASE, F_GETLEASE) take an integer or
    // nothing, so no pointer is passed and no memory is touched; what they
    // change is the open file itself, which this process owns.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// The byte of a directory that a daemon locks: far from what others may lock.
const MARKED: libc::off_t = 0x746f_7563_686d_726b;

/// A mark on a directory: a read lock of one byte. Each process of the same kernel
/// sees it, by whatever path and mount it reaches the directory, and in whatever
/// container it runs. Nothing conflicts with it but a write lock of that byte, which a
/// directory cannot have. While it is there, its file system cannot be unmounted.
#[derive(Debug)]
pub(crate) struct Presence {
    directory: File,
}

impl Presence {
    /// Marks a directory until the value is dropped.
    ///
    /// # Errors
    /// The system's, such as a file system without locks.
    pub(crate) fn on(directory: &Path) -> io::Result<Self> {
        let directory = File::open(directory)?;
        lock(&directory, libc::F_OFD_SETLK, libc::F_RDLCK)?;
        Ok(Self { directory })
    }

    /// Returns whether the directory has another process's mark as well.
    pub(crate) fn is_shared(&self) -> bool {
        is_marked(&self.directory)
    }

    /// Returns whether a directory has a mark. It is open for a moment only.
    pub(crate) fn is_at(directory: &Path) -> bool {
        File::open(directory).is_ok_and(|directory| is_marked(&directory))
    }
}

/// Returns whether a directory has a mark by another open file than this one.
fn is_marked(directory: &File) -> bool {
    // The kernel says which lock would be in the way of a write lock.
    lock(directory, libc::F_OFD_GETLK, libc::F_WRLCK)
        .is_ok_and(|kind| kind != libc::F_UNLCK as c_int)
}

/// Calls `fcntl(2)` about a lock of [`MARKED`], and returns the kind of lock that
/// the kernel has written into the answer.
fn lock(file: &File, command: c_int, kind: impl TryInto<libc::c_short>) -> io::Result<c_int> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    // SAFETY: a zeroed `flock` is a valid one. The descriptor and the structure
    // live until the call returns, and the commands used here (F_OFD_SETLK,
    // F_OFD_GETLK) read and write one `flock`.
    let (result, kind) = unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = kind.try_into().map_err(|_| invalid())?;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        lock.l_start = MARKED;
        lock.l_len = 1;
        let result = libc::fcntl(file.as_raw_fd(), command, &raw mut lock);
        (result, lock.l_type)
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(c_int::from(kind)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::OpenOptions;
    use std::os::unix::fs::OpenOptionsExt as _;

    fn file() -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, "x").unwrap();
        (directory, path)
    }

    #[test]
    fn a_read_lease_needs_a_file_that_nobody_writes() {
        let (_directory, path) = file();
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        let reader = File::open(&path).unwrap();
        assert_eq!(Lease::take(&reader, Kind::Read).unwrap_err(), Refused::Busy);
        assert!(has_writer(&reader));
        drop(writer);
        assert!(!has_writer(&reader));
        let lease = Lease::take(&reader, Kind::Read).unwrap();
        assert!(lease.is_whole());
        // Readers do not conflict.
        drop(File::open(&path).unwrap());
        assert!(lease.is_whole());
    }

    #[test]
    fn an_opener_waits_and_the_process_lives() {
        let (_directory, path) = file();
        let reader = File::open(&path).unwrap();
        let lease = Lease::take(&reader, Kind::Read).unwrap();
        let impatient = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path);
        assert_eq!(impatient.unwrap_err().raw_os_error(), Some(libc::EAGAIN));
        assert!(!lease.is_whole());
        let opener = std::thread::spawn({
            let path = path.clone();
            move || OpenOptions::new().write(true).open(path).unwrap()
        });
        drop(lease);
        opener.join().unwrap();
        // The lease is released completely.
        Lease::take(&reader, Kind::Read).unwrap();
    }

    #[test]
    fn a_write_lease_needs_a_file_that_nobody_else_has_open() {
        let (_directory, path) = file();
        let both = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        let reader = File::open(&path).unwrap();
        assert_eq!(Lease::take(&both, Kind::Write).unwrap_err(), Refused::Busy);
        drop(reader);
        assert!(Lease::take(&both, Kind::Write).unwrap().is_whole());
    }

    #[test]
    fn two_marks_on_a_directory_see_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let one = Presence::on(directory.path()).unwrap();
        assert!(!one.is_shared());
        let two = Presence::on(directory.path()).unwrap();
        assert!(one.is_shared() && two.is_shared());
        drop(one);
        assert!(!two.is_shared() && Presence::is_at(directory.path()));
    }
}
