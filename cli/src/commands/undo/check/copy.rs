//! A copy of a workspace in a private temporary directory.
//!
//! It has all files that git would list, those of git's index, and as much as
//! possible of what is ignored: a build or a test often needs what an ignored
//! directory has. All files are copies, so that a command cannot write into the
//! workspace by them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use rustix::fs::OFlags;
use tempfile::TempDir;
use touchmark_client::{Environment, Workspace};

use super::clone::share;
use super::links::Links;
use super::repository;
use crate::daemon::WorkTree;
use crate::system::files::patient;
use crate::text::bytes;

/// The maximum size of all ignored files together that are copied, in bytes.
/// Files that share their blocks with the original do not count.
const MOST_IGNORED: u64 = 1_000_000_000;

/// The space that stays free, in bytes.
const RESERVE: u64 = 64 << 20;

/// How often the removal of a copy is tried again.
const TRIES: usize = 4;

const GIT: &str = ".git";

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// The user has stopped it.
    #[error("stopped")]
    Stopped,
    /// The copy needs more space than there is.
    #[error(
        "{0} has too little space for a copy of the workspace: set TMPDIR to a directory with more"
    )]
    NoSpace(String),
    /// The temporary directories are all inside the workspace.
    #[error("each temporary directory is inside the workspace: set TMPDIR to another one")]
    NoPlace,
    /// An error of the system.
    #[error("{0}: {1}")]
    System(String, io::Error),
}

/// A copy of a workspace. It is removed when this is dropped.
pub(super) struct Scratch {
    /// The copy of the workspace's root, a canonical path.
    pub(super) root: PathBuf,
    /// Its symbolic links.
    pub(super) links: Links,
    /// What the copy does not have, each with the reason, for people.
    pub(super) left_out: Vec<String>,
    directory: TempDir,
}

/// A copy that is not complete yet.
struct Making<'a> {
    from: &'a Path,
    copy: Scratch,
    /// The directories of the copy, and what each is to be like.
    directories: Vec<(PathBuf, Metadata)>,
    is_stopped: &'a dyn Fn() -> bool,
    /// Whether a file shared its blocks; `None` before the first one.
    shares: Option<bool>,
    /// The space for files that share nothing, in bytes.
    space: u64,
}

impl Scratch {
    /// Copies a workspace. `is_stopped` is asked before each file.
    ///
    /// # Errors
    /// [`Failed`], if the copy is not complete. The incomplete copy is removed.
    pub(super) fn of(
        workspace: &Workspace,
        environment: &Environment,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, Failed> {
        let from = workspace.root.as_path();
        let directory = place(workspace, environment)?;
        let name = from.file_name().unwrap_or(OsStr::new("workspace"));
        let system = |error| Failed::System(directory.path().display().to_string(), error);
        let inside = directory.path().canonicalize().map_err(system)?.join(name);
        fs::create_dir(&inside).map_err(system)?;
        let space = free(directory.path()).map_err(system)?;
        let mut making = Making {
            from,
            copy: Self {
                links: Links::new(from, &inside),
                root: inside,
                left_out: Vec::new(),
                directory,
            },
            directories: Vec::new(),
            is_stopped,
            shares: None,
            space,
        };
        let tree = WorkTree::of(from, &workspace.places);
        making.listed(tree.as_ref())?;
        making.repository(tree.as_ref());
        making.finish_directories();
        Ok(making.copy)
    }

    /// Removes the copy.
    ///
    /// # Errors
    /// The path of what is left.
    pub(super) fn remove(self) -> Result<(), PathBuf> {
        let path = self.directory.path().to_owned();
        drop(self);
        // A process that the command has left may still write.
        for _ in 0..TRIES {
            if path.symlink_metadata().is_err() {
                return Ok(());
            }
            let _looked_at_again = fs::remove_dir_all(&path);
        }
        Err(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Directories that may not be written cannot be emptied.
        make_removable(self.directory.path());
    }
}

fn make_removable(directory: &Path) {
    let Ok(found) = directory.symlink_metadata() else {
        return;
    };
    if !found.is_dir() {
        return;
    }
    if found.mode() & 0o700 != 0o700 {
        let _the_removal_fails = fs::set_permissions(directory, Permissions::from_mode(0o700));
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        make_removable(&entry.path());
    }
}

/// Creates the directory for a copy, which is never inside the workspace: where
/// `TMPDIR` says, else on the workspace's file system if possible, since files
/// can share their blocks only there, and not in a directory that another daemon
/// serves.
fn place(workspace: &Workspace, environment: &Environment) -> Result<TempDir, Failed> {
    let outside = |place: PathBuf| {
        let place = place.canonicalize().ok();
        place.filter(|place| !place.starts_with(&workspace.root))
    };
    let said = std::env::var_os("TMPDIR").filter(|said| !said.is_empty());
    let place = match said.map(PathBuf::from).and_then(outside) {
        Some(said) => said,
        None => {
            let usual = [std::env::temp_dir(), environment.base.cache.clone()];
            let device = |place: &Path| place.symlink_metadata().map(|found| found.dev()).ok();
            let own = device(&workspace.root);
            let best = usual.into_iter().filter_map(outside).min_by_key(|place| {
                let found = Workspace::find(place, environment);
                let is_served = found.is_ok_and(|found| found.root != *place || found.is_running());
                (is_served, device(place) != own)
            });
            best.ok_or(Failed::NoPlace)?
        }
    };
    tempfile::Builder::new()
        .prefix("touchmark-check-")
        .tempdir_in(&place)
        .map_err(|error| Failed::System(place.display().to_string(), error))
}

/// Returns the space that a user may still take of a file system, in bytes.
fn free(directory: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(directory)?;
    Ok((found.f_bavail * found.f_frsize).saturating_sub(RESERVE))
}

impl Making<'_> {
    /// Copies the files that git would list, then those of git's index, then
    /// what is ignored.
    fn listed(&mut self, tree: Option<&WorkTree>) -> Result<(), Failed> {
        let mut walk = WalkBuilder::new(self.from);
        walk.hidden(false)
            .ignore(false)
            .require_git(false)
            .filter_entry(|entry| entry.depth() != 1 || entry.file_name() != GIT);
        let mut listed = HashSet::from([PathBuf::new()]);
        for entry in walk.build() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.unread(&error);
                    continue;
                }
            };
            let Ok(name) = entry.path().strip_prefix(self.from) else {
                continue;
            };
            listed.insert(name.to_owned());
            self.one(name)?;
        }
        let tracked = tree.and_then(|tree| Some((tree.tracked().ok()?, &tree.top)));
        if let Some((names, top)) = tracked {
            for name in names {
                let path = top.join(name);
                if let Ok(name) = path.strip_prefix(self.from) {
                    self.with_directories(name)?;
                }
            }
        }
        self.ignored(&listed)
    }

    /// Says that something could not be read.
    fn unread(&mut self, error: &ignore::Error) {
        let cause = error.io_error();
        if cause.is_some_and(|cause| cause.kind() != io::ErrorKind::NotFound) {
            self.copy.left_out.push(error.to_string());
        }
    }

    /// Copies what is ignored. What cannot share its blocks is copied up to a
    /// limit, the smallest first.
    fn ignored(&mut self, listed: &HashSet<PathBuf>) -> Result<(), Failed> {
        let mut tops = Vec::new();
        for directory in listed {
            let path = self.from.join(directory);
            if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                let entries = fs::read_dir(path).into_iter().flatten().flatten();
                let names = entries.map(|entry| directory.join(entry.file_name()));
                let is_left = |name: &PathBuf| !listed.contains(name) && name != Path::new(GIT);
                tops.extend(names.filter(is_left));
            }
        }
        let is_shared = self.shares == Some(true);
        let mut left = MOST_IGNORED.min(self.space / 2);
        let mut sized = Vec::new();
        for top in tops {
            // Where blocks are shared, nothing has to be measured.
            let size = match is_shared {
                true => 0,
                false => self.size(&top, left)?,
            };
            sized.push((size, top));
        }
        sized.sort();
        for (size, top) in sized {
            match left.checked_sub(size) {
                Some(less) => {
                    left = less;
                    self.below(&top)?;
                }
                None => self.copy.left_out.push(format!(
                    "{}: it is ignored, and all that is would be more than {}",
                    top.display(),
                    bytes(MOST_IGNORED)
                )),
            }
        }
        Ok(())
    }

    /// Returns the size of a file, or of all below a directory, in bytes. More
    /// than `most` is only known to be more.
    fn size(&self, name: &Path, most: u64) -> Result<u64, Failed> {
        self.go_on()?;
        let path = self.from.join(name);
        let Ok(found) = path.symlink_metadata() else {
            return Ok(0);
        };
        if !found.is_dir() {
            return Ok(found.len());
        }
        let mut size = 0;
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            size += self.size(&name.join(entry.file_name()), most)?;
            if size > most {
                break;
            }
        }
        Ok(size)
    }

    /// Copies a file, or a directory with all that is in it.
    fn below(&mut self, name: &Path) -> Result<(), Failed> {
        self.one(name)?;
        let path = self.from.join(name);
        if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                self.below(&name.join(entry.file_name()))?;
            }
        }
        Ok(())
    }

    /// Copies a file and the directories above it.
    fn with_directories(&mut self, name: &Path) -> Result<(), Failed> {
        let mut above: Vec<&Path> = name.ancestors().skip(1).collect();
        above.retain(|directory| *directory != Path::new(""));
        for directory in above.into_iter().rev() {
            self.one(directory)?;
        }
        self.one(name)
    }

    /// Copies a file or a link, or makes a directory, unless the copy has it.
    /// What was removed in the meantime, and what is none of these, is skipped.
    fn one(&mut self, name: &Path) -> Result<(), Failed> {
        self.go_on()?;
        let (from, to) = (self.from.join(name), self.copy.root.join(name));
        let Ok(found) = from.symlink_metadata() else {
            return Ok(());
        };
        if name != Path::new("") && to.symlink_metadata().is_ok() {
            return Ok(());
        }
        let kind = found.file_type();
        if !kind.is_dir() && name.file_name() == Some(OsStr::new(GIT)) {
            // It names the real repository of a submodule or a work tree.
            return Ok(());
        }
        let made = if kind.is_dir() {
            let made = match name == Path::new("") {
                true => Ok(()),
                false => fs::create_dir(&to),
            };
            self.directories.push((to, found));
            made
        } else if kind.is_symlink() {
            fs::read_link(&from).and_then(|target| self.copy.links.make(name, &target))
        } else if kind.is_file() {
            match self.file(&from, &to) {
                Ok(()) => Ok(()),
                Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                    let place = self.copy.directory.path().parent().unwrap_or(&to);
                    return Err(Failed::NoSpace(place.display().to_string()));
                }
                Err(error) => Err(error),
            }
        } else {
            Ok(())
        };
        match made {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let name = name.display();
                self.copy.left_out.push(format!("{name}: {error}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Copies a regular file, with its permissions and its time.
    fn file(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let source = patient()
            .custom_flags(flags.bits().cast_signed())
            .read(true)
            .open(from)?;
        let found = source.metadata()?;
        if !found.is_file() {
            return Ok(());
        }
        let target = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(to)?;
        let is_shared = self.shares != Some(false) && share(&source, &target);
        if found.len() > 0 {
            self.shares.get_or_insert(is_shared);
        }
        if !is_shared {
            let left = self.space.checked_sub(found.len());
            self.space = left.ok_or(io::ErrorKind::StorageFull)?;
            io::copy(&mut &source, &mut &target)?;
        }
        settle(&target, &found)
    }

    /// Makes the repository of the copy, if the workspace is the top of a work
    /// tree.
    fn repository(&mut self, tree: Option<&WorkTree>) {
        if self.from.join(GIT).symlink_metadata().is_err() {
            return;
        }
        let to = self.copy.root.join(GIT);
        let made = match tree.filter(|tree| tree.top == self.from) {
            Some(tree) => repository::make(tree, &self.copy.root, &to),
            None => Err(io::Error::other("the repository is not trusted")),
        };
        if let Err(error) = made {
            // Half a repository is worse than none.
            let _it_stays = fs::remove_dir_all(&to);
            self.copy.left_out.push(format!("{GIT}: {error}"));
        }
    }

    /// Gives the directories their permissions and times. Files are written into
    /// them before.
    fn finish_directories(&self) {
        for (path, found) in self.directories.iter().rev() {
            let mode = Permissions::from_mode(found.mode() & 0o777 | 0o700);
            let _as_it_is = fs::set_permissions(path, mode);
            let times = found
                .modified()
                .map(|time| FileTimes::new().set_modified(time));
            if let (Ok(directory), Ok(times)) = (File::open(path), times) {
                let _as_it_is = directory.set_times(times);
            }
        }
    }

    fn go_on(&self) -> Result<(), Failed> {
        match (self.is_stopped)() {
            true => Err(Failed::Stopped),
            false => Ok(()),
        }
    }
}

/// Gives a copied file the times and permissions of its original. Programs such
/// as make compare times.
fn settle(target: &File, found: &Metadata) -> io::Result<()> {
    target.set_times(FileTimes::new().set_modified(found.modified()?))?;
    target.set_permissions(Permissions::from_mode(found.mode() & 0o777))
}
