//! Who is taken at their word: whose files mark a workspace or speak in it
//! (SEC-6), and who may answer as its daemon (SEC-8). The same in every
//! client; `bindings/conformance/trust` has the cases.

use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::native;

const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
/// Who may write in the directory may remove only what is theirs.
const STICKY: u32 = 0o1000;

/// The longest list of trusted directories that is read, in bytes.
const MOST_LIST: u64 = 1 << 20;

/// Owner and mode of a file, as `lstat` tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The owner.
    pub uid: u32,
    /// The mode; bits above 0o7777 do not matter.
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

/// Whose process this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Me {
    /// The effective user.
    pub uid: u32,
    /// `SUDO_UID`: whom root works for, if it says so.
    pub sudo: Option<u32>,
}

impl Me {
    /// This process, whose effective user is `uid`.
    pub fn new(uid: u32) -> Self {
        let sudo = std::env::var("SUDO_UID").ok();
        Self {
            uid,
            sudo: sudo.and_then(|uid| uid.parse().ok()),
        }
    }

    /// As for git's `safe.directory`: this user's, root's, or for root whose
    /// command it runs.
    fn trusts(self, uid: u32) -> bool {
        uid == self.uid || uid == 0 || (self.uid == 0 && self.sudo == Some(uid))
    }

    /// Whether a file in a directory is taken over: both belong to who is
    /// trusted, and not everybody may put another in its place. What a group
    /// may write is let pass, as by git: a file of another member's is not.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn takes(self, directory: Owned, file: Owned) -> Result<(), String> {
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

    /// Whether a process of `peer` may answer as this user's daemon.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn hears(self, peer: u32) -> Result<(), String> {
        if peer == self.uid || peer == 0 {
            return Ok(());
        }
        Err(format!("user {peer} listens there, not user {}", self.uid))
    }

    /// The same where the system does not tell a peer's user: by the socket,
    /// and that nobody else can have put it into its directory.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn dials(self, directory: Owned, socket: Owned) -> Result<(), String> {
        self.hears(socket.uid)?;
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

/// Whose files are taken over, and which directories the user trusts
/// nevertheless.
#[derive(Clone, Debug)]
pub struct Trust {
    /// Whose process this is.
    pub me: Me,
    /// The user's list of trusted directories; read when it is needed.
    pub list: PathBuf,
}

impl Trust {
    /// Whether a file is taken over that lies in `directory`, which is named
    /// without links.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn takes(&self, directory: &Path, file: &Metadata) -> Result<(), String> {
        let around = fs::symlink_metadata(directory).map_err(|error| error.to_string())?;
        self.me
            .takes(Owned::from(&around), Owned::from(file))
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

/// Whether a list names a directory: a line is its canonical path, that of one
/// above it and `/*`, or `*` for all. Empty lines and lines that begin with `#`
/// say nothing.
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
