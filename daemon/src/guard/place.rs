//! Where a guarded write goes: the directory that holds the file's own name,
//! held open, so that whatever is moved meanwhile the names stay together.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Dev, FileType, Mode, OFlags, RawMode, RenameFlags, Stat};
use rustix::io::Errno;
use touchmark_proto::{Error, ErrorCode, ErrorData, RelPath, native};

use crate::links::{End, absolute, resolve};
use crate::system::look::LOOK;
use crate::system::process::Umask;

/// Who may use a new file, before the mask.
pub(super) const NEW_FILE: u32 = 0o666;

/// The same of a directory.
const NEW_DIRECTORY: u32 = 0o777;

/// The attribute of a directory that says who may use what is made in it.
pub(super) const DEFAULT_LIST: &str = "system.posix_acl_default";

/// Directories made for one write at most.
const MOST_DIRECTORIES: usize = 256;

/// A file's own name, symlinks followed (GUARD-2), in its directory.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) directory: OwnedFd,
    /// Without any link in it, relative to the workspace.
    pub(super) real: RelPath,
    /// The last component.
    pub(super) name: Vec<u8>,
    absolute: PathBuf,
}

/// What an inode is told by while it is held open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity(Dev, u64);

impl From<&Stat> for Identity {
    fn from(stat: &Stat) -> Self {
        Self(stat.st_dev, stat.st_ino)
    }
}

/// The same of an open file's metadata.
pub(super) fn identity(metadata: &std::fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    Identity(metadata.dev() as Dev, metadata.ino())
}

impl Place {
    /// Follows `path` to where its file is or will be. Directories that are
    /// missing are made with the mask, if one is given. Nothing is made where
    /// `may_be` refuses a name without links.
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
                        .hint("say `createDirectories`"),
                );
            };
            let made = Self::at(root, &missing).and_then(|place| place.create_directory(umask));
            match made {
                Ok(()) => {}
                Err(Errno::EXIST) if absolute(root, &missing).is_dir() => {}
                // Something else than a directory lies in the way.
                Err(Errno::EXIST) => return Err(refused(path, Errno::NOTDIR)),
                Err(errno) => return Err(refused(path, errno)),
            }
        }
        Err(refused(path, Errno::LOOP))
    }

    /// The place of a name without links, each directory on the way opened by
    /// the one above, so that no link can be put in its place.
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

    /// Opens a name here, if it is a regular file; never waits.
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

    /// Makes a directory by the place's own name.
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

    /// Gives what was just made here the permissions of `usual` that a mask
    /// leaves. The daemon's own mask has left fewer. Where the directory says
    /// by a default access list who may what, no mask counts, and the system
    /// has done as that says already (acl(5)).
    pub(super) fn permit(&self, made: impl AsFd, usual: u32, umask: Umask) -> Result<(), Errno> {
        // The directory is held without being opened, which has no attributes.
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

    /// Makes a new file here and opens it for writing.
    pub(super) fn create(&self, name: &[u8], mode: u32) -> Result<File, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode as RawMode);
        Ok(rustix::fs::openat(&self.directory, name, flags, mode)?.into())
    }

    /// What is by a name here, links not followed.
    pub(super) fn stat(&self, name: &[u8]) -> Result<Stat, Errno> {
        rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Renames, if nobody has the other name.
    pub(super) fn rename(&self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        let at = &self.directory;
        rustix::fs::renameat_with(at, from, at, to, RenameFlags::NOREPLACE)
    }

    /// Exchanges the file with what is by another name here, atomically.
    pub(super) fn exchange(&self, aside: &[u8]) -> Result<(), Errno> {
        let at = &self.directory;
        // In this order inotify tells that the file's name went and then came.
        // The other way round it came first, and watchers that sum events up,
        // as VS Code's does, take it for a file that came and went.
        rustix::fs::renameat_with(at, &self.name, at, aside, RenameFlags::EXCHANGE)
    }

    /// Gives a file here a second name, if nobody has that.
    pub(super) fn link(&self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        rustix::fs::linkat(&self.directory, from, &self.directory, to, AtFlags::empty())
    }

    /// Whether the file by that name may be written in place.
    pub(super) fn may_write(&self) -> bool {
        self.writable().is_ok()
    }

    fn writable(&self) -> Result<(), Errno> {
        let flags = AtFlags::EACCESS;
        rustix::fs::accessat(&self.directory, &self.name, Access::WRITE_OK, flags)
    }

    /// Refuses a file that its permissions protect. Who may write in the
    /// directory could replace it all the same; an editor does not (GUARD-6).
    pub(super) fn check_writable(&self, path: &RelPath) -> Result<(), Error> {
        // Other errors are the write's own to meet.
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

    /// Takes a name away; none is none.
    pub(super) fn unlink(&self, name: &[u8]) {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => tracing::warn!("{}: {errno}", self.path_of(name).display()),
        }
    }

    /// Has the names survive the machine's death.
    pub(super) fn sync(&self) {
        self.sync_from(".");
    }

    /// The same, and those of the directories above, which may be new, up to
    /// the workspace's.
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

    /// The absolute path of a name here.
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

/// Whether a file system (or the system) has no such call.
pub(super) fn is_missing(errno: Errno) -> bool {
    // The last two are one on Linux, and two elsewhere.
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP].contains(&errno)
}

/// The system's refusal to write, as an error of the request.
pub(super) fn refused(path: &RelPath, errno: Errno) -> Error {
    let cause = std::io::Error::from(errno).to_string();
    let (code, hint) = match errno {
        Errno::NOSPC | Errno::DQUOT => (
            ErrorCode::Storage,
            "make room on the disk; nothing was changed",
        ),
        Errno::ISDIR => (ErrorCode::NotAFile, "name a regular file"),
        Errno::NOENT | Errno::NOTDIR => (ErrorCode::NotFound, "check the name"),
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
