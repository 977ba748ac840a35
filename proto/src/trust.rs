//! Which files and processes are trusted, by their owner: files that mark or
//! configure a workspace (SEC-6), and processes that answer as its daemon
//! (SEC-8). All clients implement the same rules; `bindings/conformance/trust`
//! has the cases.

use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::native;

const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
/// In a sticky directory, a user may remove only their own files.
const STICKY: u32 = 0o1000;

/// The longest list of trusted directories that is read, in bytes.
const MOST_LIST: u64 = 1 << 20;

/// Owner and mode of a file, as `lstat` returns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The id of the user who owns the file.
    pub uid: u32,
    /// The mode; bits above 0o7777 are ignored.
    pub mode: u32,
}

impl From<&Metadata> for Owned {
    fn from(found: &Metadata) -> Self {
        Self {
            uid: found.uid(),
            mode: found.mode(),
        }
    }
}

/// The user of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Me {
    /// The effective user id.
    pub uid: u32,
    /// The value of `SUDO_UID`: the user who runs this process as root; `None`
    /// if it is not set.
    pub sudo: Option<u32>,
}

impl Me {
    /// Returns the user of this process, whose effective user id is `uid`.
    pub fn new(uid: u32) -> Self {
        let sudo = std::env::var("SUDO_UID").ok();
        Self {
            uid,
            sudo: sudo.and_then(|uid| uid.parse().ok()),
        }
    }

    /// Returns whether files of this user are trusted: this process's user,
    /// root and, for root, the user in `SUDO_UID`. git's `safe.directory` has
    /// the same rule.
    fn trusts(self, uid: u32) -> bool {
        uid == self.uid || uid == 0 || (self.uid == 0 && self.sudo == Some(uid))
    }

    /// Checks whether a file in a directory is trusted: both belong to trusted
    /// users, and not every user may replace the file. A directory that a group
    /// may write is accepted, as by git, since a file of another member has
    /// another owner.
    ///
    /// # Errors
    /// The reason why it is not trusted, as text.
    pub fn check_file(self, directory: Owned, file: Owned) -> Result<(), String> {
        if !self.trusts(file.uid) {
            return Err(format!("it belongs to user {}", file.uid));
        }
        if !self.trusts(directory.uid) {
            return Err(format!("its directory belongs to user {}", directory.uid));
        }
        if directory.mode & OTHERS_WRITE != 0 && directory.mode & STICKY == 0 {
            return Err("everybody may write in its directory".into());
        }
        Ok(())
    }

    /// Checks whether a process of the user `peer` may answer as this user's
    /// daemon.
    ///
    /// # Errors
    /// The reason why it may not, as text.
    pub fn check_peer(self, peer: u32) -> Result<(), String> {
        if peer == self.uid || peer == 0 {
            return Ok(());
        }
        Err(format!("user {peer} listens there, not user {}", self.uid))
    }

    /// Checks whether the process behind a socket may answer as this user's
    /// daemon, where the system does not tell the peer's user. Decides by the
    /// socket's owner, and by whether other users can put a socket into its
    /// directory.
    ///
    /// # Errors
    /// The reason why it may not, as text.
    pub fn check_socket(self, directory: Owned, socket: Owned) -> Result<(), String> {
        self.check_peer(socket.uid)?;
        if directory.uid != self.uid && directory.uid != 0 {
            return Err(format!("its directory belongs to user {}", directory.uid));
        }
        let open = directory.mode & (GROUP_WRITES | OTHERS_WRITE) != 0;
        if open && directory.mode & STICKY == 0 {
            return Err("others may write in its directory".into());
        }
        Ok(())
    }
}

/// The rule for which files are trusted, with the user's list of exceptions.
#[derive(Clone, Debug)]
pub struct Trust {
    /// The user of this process.
    pub me: Me,
    /// The path of the user's list of trusted directories. It is read only when
    /// needed.
    pub list: PathBuf,
}

impl Trust {
    /// Checks whether a file in `directory` is trusted. `directory` must have
    /// no symlinks in its path.
    ///
    /// # Errors
    /// The reason why it is not trusted, as text.
    pub fn check(&self, directory: &Path, file: &Metadata) -> Result<(), String> {
        let around = fs::symlink_metadata(directory).map_err(|error| error.to_string())?;
        self.me
            .check_file(Owned::from(&around), Owned::from(file))
            .or_else(|why| match self.is_listed(directory) {
                true => Ok(()),
                false => Err(why),
            })
    }

    fn is_listed(&self, directory: &Path) -> bool {
        let mut list = Vec::new();
        let read =
            File::open(&self.list).and_then(|file| file.take(MOST_LIST).read_to_end(&mut list));
        read.is_ok() && is_listed(&list, directory)
    }
}

/// Returns whether a list names a directory. Each line is the directory's
/// canonical path, the path of a directory above it followed by `/*`, or `*`
/// for all directories. Empty lines and lines that begin with `#` are ignored.
pub fn is_listed(list: &[u8], directory: &Path) -> bool {
    let directory = native::bytes(directory);
    list.split(|byte| *byte == b'\n').any(|line| {
        let line = line.trim_ascii();
        if line == b"*" {
            return true;
        }
        if !line.starts_with(b"/") {
            return false;
        }
        match line.strip_suffix(b"/*") {
            Some(above) => directory
                .strip_prefix(above)
                .is_some_and(|rest| rest.len() > 1 && rest.starts_with(b"/")),
            None => *line == *directory,
        }
    })
}
