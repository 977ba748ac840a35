//! The place of a guarded write: the directory that contains the file's own
//! name. It stays open, so that all names refer to the same directory even if
//! it is moved meanwhile.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Dev, FileType, Mode, OFlags, RawMode, RenameFlags, Stat};
use rustix::io::Errno;
use touchmark_proto::{Error, ErrorCode, ErrorData, RelPath, native};

use crate::links::{End, absolute, resolve};
use crate::system::look::LOOK;
use crate::system::process::Umask;

/// The permissions of a new file, before the mask.
pub(super) const NEW_FILE: u32 = 0o666;

/// The permissions that a file may get. What lets a file run with its owner's
/// or its group's rights is never given: the owner or the bytes may be others
/// than those it was given to.
pub(super) const PLAIN: u32 = 0o777;

/// The permissions of a new directory, before the mask.
const NEW_DIRECTORY: u32 = 0o777;

/// The attribute of a directory with the default access list for new entries.
pub(super) const DEFAULT_LIST: &str = "system.posix_acl_default";

/// The most directories created for one write.
const MOST_DIRECTORIES: usize = 256;

/// The place of a file: its own name, with symlinks followed (GUARD-2), and the
/// directory that contains it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) directory: OwnedFd,
    /// The path relative to the workspace, without any link in it.
    pub(super) real: RelPath,
    /// The last component of `real`.
    pub(super) name: Vec<u8>,
    absolute: PathBuf,
}

/// Which symlinks a write may follow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Follow<'a> {
    /// Any within the workspace: who writes has named the path.
    Any,
    /// None. The path may also lead to this name behind symlinks, as it did
    /// before.
    To(Option<&'a RelPath>),
}

impl Follow<'_> {
    /// Checks where a path leads, by the part of its real name that exists or
    /// is to be created.
    ///
    /// # Errors
    /// `notAFile` if it leads through a symlink that is not to be followed.
    pub(super) fn check(self, path: &RelPath, real: &RelPath) -> Result<(), Error> {
        let is_on_way = |to: &RelPath| real == to || to.below(real).is_some();
        let may = match self {
            Self::Any => true,
            Self::To(to) => is_on_way(path) || to.is_some_and(is_on_way),
        };
        if may {
            return Ok(());
        }
        Err(Error::new(ErrorCode::NotAFile, LINK)
            .with(ErrorData {
                path: Some(path.clone()),
                file_type: Some("symlink".into()),
                ..ErrorData::default()
            })
            .hint("name the file behind the link"))
    }
}

/// Why nothing is written through a symlink.
const LINK: &str = "a symbolic link that was not there before stands in its place or above it";

/// Identifies an inode while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity(Dev, u64);

impl From<&Stat> for Identity {
    fn from(stat: &Stat) -> Self {
        Self(stat.st_dev, stat.st_ino)
    }
}

/// Returns the identity of an open file from its metadata.
pub(super) fn identity(metadata: &std::fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    Identity(metadata.dev() as Dev, metadata.ino())
}

impl Place {
    /// Finds where the file at `path` is or will be, following links. Creates
    /// missing directories with the mask, if one is given. Creates nothing if
    /// `may_be` refuses the name without links.
    pub(super) fn find(
        root: &Path,
        path: &RelPath,
        create_directories: Option<Umask>,
        may_be: impl Fn(&RelPath) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        for _ in 0..MOST_DIRECTORIES {
            let resolved = resolve(root, path, |_| false);
            let missing = match resolved.end {
                End::There(real, metadata) if metadata.is_file() => {
                    may_be(&real)?;
                    return Self::at(root, &real).map_err(|errno| refused(path, errno));
                }
                End::There(_, metadata) => return Err(not_a_file(path, &metadata)),
                End::Root => {
                    return Err(Error::path(ErrorCode::NotAFile, path, "a directory"));
                }
                End::Outside => {
                    return Err(Error::path(
                        ErrorCode::OutsideWorkspace,
                        path,
                        "a link leads out of the workspace",
                    ));
                }
                End::Loop => return Err(refused(path, Errno::LOOP)),
                End::Denied(error) => {
                    let errno = Errno::from_io_error(&error).unwrap_or(Errno::ACCESS);
                    return Err(refused(path, errno));
                }
                End::Missing(missing) => missing,
            };
            may_be(&missing)?;
            if resolved.ahead == 0 {
                return Self::at(root, &missing).map_err(|errno| refused(path, errno));
            }
            let Some(umask) = create_directories else {
                return Err(
                    Error::path(ErrorCode::NotFound, path, "the directory does not exist")
                        .hint("set `createDirectories`"),
                );
            };
            let made = Self::at(root, &missing).and_then(|place| place.create_directory(umask));
            match made {
                Ok(()) => {}
                Err(Errno::EXIST) if absolute(root, &missing).is_dir() => {}
                // The entry is no directory.
                Err(Errno::EXIST) => return Err(refused(path, Errno::NOTDIR)),
                Err(errno) => return Err(refused(path, errno)),
            }
        }
        Err(refused(path, Errno::LOOP))
    }

    /// Returns the place of a name without links. Each directory on the path is
    /// opened from the one above, so that no link can replace it.
    pub(super) fn at(root: &Path, real: &RelPath) -> Result<Self, Errno> {
        let flags = LOOK | OFlags::DIRECTORY;
        let mut directory = rustix::fs::open(root, flags, Mode::empty())?;
        let mut names: Vec<&[u8]> = real.as_bytes().split(|byte| *byte == b'/').collect();
        let name = names.pop().unwrap_or_default().to_vec();
        for name in names {
            directory =
                rustix::fs::openat(&directory, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(Self {
            directory,
            real: real.clone(),
            name,
            absolute: absolute(root, real),
        })
    }

    /// Opens a name in this directory, if it is a regular file. Never waits.
    pub(super) fn open(&self, name: &[u8], access: OFlags) -> Result<File, Errno> {
        let stat = self.stat(name)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::ISDIR);
        }
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = rustix::fs::openat(&self.directory, name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::ISDIR);
        }
        Ok(file.into())
    }

    /// Creates a directory at the place's own name.
    fn create_directory(&self, umask: Umask) -> Result<(), Errno> {
        let name = self.name.as_slice();
        rustix::fs::mkdirat(
            &self.directory,
            name,
            Mode::from_raw_mode(NEW_DIRECTORY as RawMode),
        )?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&self.directory, name, flags, Mode::empty())?;
        self.permit(made, NEW_DIRECTORY, umask)
    }

    /// Gives a new entry the permissions of `usual` that a mask leaves, since
    /// the daemon's own mask may have left fewer. If the directory has a
    /// default access list, no mask applies, and the system has already set the
    /// permissions (acl(5)).
    pub(super) fn permit(&self, made: impl AsFd, usual: u32, umask: Umask) -> Result<(), Errno> {
        // The directory's handle was not opened for reading, so its attributes
        // cannot be read from it.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut none: [u8; 0] = [];
        let listed = rustix::fs::openat(&self.directory, ".", flags, Mode::empty())
            .and_then(|directory| rustix::fs::fgetxattr(directory, DEFAULT_LIST, &mut none));
        if listed.is_ok() {
            return Ok(());
        }
        let special = rustix::fs::fstat(&made)?.st_mode as u32 & 0o7000;
        let mode = special | (usual & !umask.0);
        rustix::fs::fchmod(made, Mode::from_raw_mode(mode as RawMode))
    }

    /// Creates a file in this directory and opens it for writing.
    pub(super) fn create(&self, name: &[u8], mode: u32) -> Result<File, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode as RawMode);
        Ok(rustix::fs::openat(&self.directory, name, flags, mode)?.into())
    }

    /// Returns the stat of a name in this directory, without following links.
    pub(super) fn stat(&self, name: &[u8]) -> Result<Stat, Errno> {
        rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Renames, if the other name does not exist.
    pub(super) fn rename(&self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        let at = &self.directory;
        rustix::fs::renameat_with(at, from, at, to, RenameFlags::NOREPLACE)
    }

    /// Exchanges the file with the one at another name in this directory,
    /// atomically.
    pub(super) fn exchange(&self, aside: &[u8]) -> Result<(), Errno> {
        let at = &self.directory;
        // In this order inotify reports the file's name as removed and then as
        // new. In the other order it is first new, and watchers that combine
        // events, as VS Code's does, treat it as a file that appeared and was
        // removed.
        rustix::fs::renameat_with(at, &self.name, at, aside, RenameFlags::EXCHANGE)
    }

    /// Gives a file in this directory a second name, if that does not exist.
    pub(super) fn link(&self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        rustix::fs::linkat(&self.directory, from, &self.directory, to, AtFlags::empty())
    }

    /// Returns whether the file at the place may be written in place.
    pub(super) fn may_write(&self) -> bool {
        self.writable().is_ok()
    }

    fn writable(&self) -> Result<(), Errno> {
        let flags = AtFlags::EACCESS;
        rustix::fs::accessat(&self.directory, &self.name, Access::WRITE_OK, flags)
    }

    /// Refuses a file whose permissions do not allow writing. A process that
    /// may write in the directory could still replace the file; an editor does
    /// not (GUARD-6).
    pub(super) fn check_writable(&self, path: &RelPath) -> Result<(), Error> {
        // The write itself reports other errors.
        match self.writable() {
            Err(errno @ (Errno::ACCESS | Errno::ROFS)) => Err(Error::new(
                ErrorCode::ReadOnly,
                "its permissions do not allow writing to it",
            )
            .with(ErrorData {
                path: Some(path.clone()),
                cause: Some(std::io::Error::from(errno).to_string()),
                ..ErrorData::default()
            })),
            _ => Ok(()),
        }
    }

    /// Removes a name, if it exists.
    pub(super) fn unlink(&self, name: &[u8]) {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => tracing::warn!("{}: {errno}", self.path_of(name).display()),
        }
    }

    /// Syncs the directory, so that its names survive a power failure.
    pub(super) fn sync(&self) {
        self.sync_from(".");
    }

    /// Syncs the directory and those above it, which may be new, up to the
    /// workspace's.
    pub(super) fn sync_all(&self) {
        let depth = self.real.as_bytes().iter().filter(|b| **b == b'/').count();
        let mut way = String::from(".");
        for _ in 0..=depth {
            self.sync_from(&way);
            way.push_str("/..");
        }
    }

    fn sync_from(&self, way: &str) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let synced = rustix::fs::openat(&self.directory, way, flags, Mode::empty())
            .and_then(|directory| rustix::fs::fsync(&directory));
        if let Err(errno) = synced {
            tracing::warn!("{}: {errno}", self.absolute.display());
        }
    }

    /// Returns the absolute path of a name in this directory.
    pub(super) fn path_of(&self, name: &[u8]) -> PathBuf {
        self.absolute.with_file_name(native::name(name))
    }
}

fn not_a_file(path: &RelPath, metadata: &std::fs::Metadata) -> Error {
    use std::os::unix::fs::FileTypeExt as _;
    let file_type = metadata.file_type();
    let name = if file_type.is_dir() {
        "directory"
    } else if file_type.is_fifo() {
        "fifo"
    } else if file_type.is_socket() {
        "socket"
    } else {
        "device"
    };
    Error::new(ErrorCode::NotAFile, format!("a {name}")).with(ErrorData {
        path: Some(path.clone()),
        file_type: Some(name.into()),
        ..ErrorData::default()
    })
}

/// Returns whether an error means that the system or the file system has no
/// such call.
pub(super) fn is_missing(errno: Errno) -> bool {
    // The last two are the same on Linux, and different elsewhere.
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP].contains(&errno)
}

/// Returns the error of the request for the system's refusal to write.
pub(super) fn refused(path: &RelPath, errno: Errno) -> Error {
    let cause = std::io::Error::from(errno).to_string();
    let (code, hint) = match errno {
        Errno::NOSPC | Errno::DQUOT => (
            ErrorCode::Storage,
            "free space on the disk; nothing was changed",
        ),
        Errno::FBIG => (
            ErrorCode::Storage,
            "the daemon or the file system allows no file of this size (`ulimit -f`); nothing was changed",
        ),
        Errno::ISDIR => (ErrorCode::NotAFile, "name a regular file"),
        Errno::NOENT | Errno::NOTDIR => (ErrorCode::NotFound, "check the name"),
        Errno::BUSY => (
            ErrorCode::Unreadable,
            "the file is a mount point, so its name cannot be removed; unmount it first",
        ),
        _ => (
            ErrorCode::Unreadable,
            "check the permissions of the file and its directory; nothing was changed",
        ),
    };
    Error::new(code, format!("it cannot be written: {cause}"))
        .with(ErrorData {
            path: Some(path.clone()),
            cause: Some(cause),
            ..ErrorData::default()
        })
        .hint(hint)
}
