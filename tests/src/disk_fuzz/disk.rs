//! Performs the user's steps on the disk, and resolves names. This is the
//! truth: nothing here depends on the daemon.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::step::{How, NAMES, Name, Step};
use super::text::Make;
use crate::children::{self, unshared};
use crate::mounts;

/// A file's identity: device and inode.
pub type Object = (u64, u64);

/// Where a name resolves to, even if no file is there: the directory, and the
/// last name in it.
pub type Place = (Object, OsString);

/// The file that a name resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The file's identity.
    pub object: Object,
    /// Its content.
    pub text: String,
}

/// The file of each name. Names without a file are missing.
pub type View = BTreeMap<Name, At>;

/// The workspace as the user sees it.
pub struct Disk {
    workspace: PathBuf,
    /// The file that is being written: its handle, its identity, the name it
    /// was opened by, and the text that is still to be written. `None` if no
    /// file is.
    open: Option<(File, Object, Name, String)>,
    /// The mount points in use, the latest last.
    mounted: Vec<Name>,
    /// Whether mounts are allowed.
    pub may_mount: bool,
}

impl Disk {
    /// Creates the workspace with its first files.
    pub fn new(workspace: &Path, may_mount: bool) -> Self {
        for directory in ["d/e", "m", "v"] {
            fs::create_dir_all(workspace.join(directory)).expect("a directory");
        }
        for (n, name) in (0..).zip(super::step::FIRST) {
            // The content of a secret file differs from all other contents.
            let revision = if name.starts_with(".env") { 900 } else { n % 3 };
            fs::write(workspace.join(name), Make::Whole(revision).of("")).expect("a file");
        }
        Self {
            workspace: workspace.into(),
            open: None,
            mounted: Vec::new(),
            may_mount,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.workspace.join(name)
    }

    /// Returns the file that a name resolves to; `None` for no file.
    pub fn at(&self, name: Name) -> Option<At> {
        let path = self.path(name);
        let text = fs::read(&path).ok()?;
        let found = fs::metadata(&path).ok()?;
        Some(At {
            object: (found.dev(), found.ino()),
            text: String::from_utf8(text).expect("all texts are UTF-8"),
        })
    }

    /// Returns where a name resolves to. Dangling symlinks are followed as
    /// well.
    pub fn place(&self, name: Name) -> Option<Place> {
        let mut path = self.workspace.clone();
        let mut rest: Vec<PathBuf> = vec![name.into()];
        for _ in 0..16 {
            let Some(next) = rest.pop() else {
                // The nearest directory that exists.
                let mut above = path.ancestors().skip(1);
                let found = |above: &Path| Some((above.to_owned(), fs::metadata(above).ok()?));
                let (parent, found) = above.find_map(found)?;
                let last = path.strip_prefix(parent).ok()?;
                return Some(((found.dev(), found.ino()), last.into()));
            };
            let mut parts = next.components();
            let Some(first) = parts.next() else {
                continue;
            };
            rest.push(parts.as_path().to_owned());
            match fs::read_link(path.join(first)) {
                Ok(to) => rest.push(to),
                Err(_) => path.push(first),
            }
        }
        None
    }

    /// Returns the files of all names.
    pub fn view(&self) -> View {
        NAMES
            .iter()
            .filter_map(|name| Some((*name, self.at(name)?)))
            .collect()
    }

    /// Returns the file that is being written; `None` if no file is.
    pub fn written(&self) -> Option<Object> {
        self.open.as_ref().map(|(_, object, ..)| *object)
    }

    /// Returns whether a file is being written whose name no longer resolves to
    /// it.
    pub fn writes_by_an_old_name(&self) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|(_, object, name, _)| self.at(name).is_none_or(|at| at.object != *object))
    }

    /// Performs a step of the user. A step that cannot be done has no effect,
    /// for instance if a file or directory does not exist.
    pub fn does(&mut self, step: &Step) {
        // The error does not matter. The disk is read afterwards.
        let _done = self.try_to(step);
    }

    fn try_to(&mut self, step: &Step) -> io::Result<()> {
        match *step {
            Step::OpenPart { name, make } if self.open.is_none() => {
                let Some(at) = self.at(name) else {
                    return Ok(());
                };
                let text = make.of(&at.text);
                let (first, rest) = text.split_at(text.len() / 2);
                let mut file = unshared(|| {
                    OpenOptions::new()
                        .write(true)
                        .truncate(true)
                        .open(self.path(name))
                })?;
                file.write_all(first.as_bytes())?;
                self.open = Some((file, at.object, name, rest.to_owned()));
                Ok(())
            }
            Step::ClosePart => match self.open.take() {
                None => Ok(()),
                Some((mut file, .., rest)) => file.write_all(rest.as_bytes()),
            },
            Step::Remove { name } => fs::remove_file(self.path(name)),
            Step::Touch { name } => {
                let file = unshared(|| OpenOptions::new().append(true).open(self.path(name)))?;
                file.set_modified(SystemTime::now())
            }
            Step::Rename { from, to } => fs::rename(self.path(from), self.path(to)),
            Step::Exchange { one, other } => self.exchange(one, other),
            Step::HardLink { from, to } if !self.path(from).is_symlink() && from != to => {
                let temporary = self.beside(to);
                fs::hard_link(self.path(from), &temporary)?;
                let done = fs::rename(&temporary, self.path(to));
                // If both are names of one file, the rename has no effect.
                let _gone = fs::remove_file(&temporary);
                done
            }
            Step::Symlink { name, to, atomic } if name != to => self.point(name, to, atomic),
            Step::SymlinkDirectory { to, atomic } => self.point("ld", to, atomic),
            Step::RenameDirectory { from, to } => {
                if self.path(to).exists() || self.mounted.contains(&from) {
                    return Ok(());
                }
                fs::rename(self.path(from), self.path(to))
            }
            Step::ExchangeDirectories => self.exchange("d", "k"),
            Step::ReplaceDirectory {
                name,
                make,
                exchange,
            } => self.replace(name, make, exchange),
            Step::MountTmpfs { at, make } if self.may_mount && self.mounted.len() < 3 => {
                if !self.path(at).is_dir() {
                    return Ok(());
                }
                mounts::mount("tmpfs", "a-test", "size=1m", &self.path(at));
                self.mounted.push(at);
                fs::write(self.path(at).join("a"), make.of(""))
            }
            Step::MountBind { from } if self.may_mount && !self.mounted.contains(&"v") => {
                let source = self.path(from);
                if !source.is_dir() {
                    return Ok(());
                }
                let source = source.to_str().expect("a UTF-8 path");
                mounts::mount("none", source, "bind", &self.path("v"));
                self.mounted.push("v");
                Ok(())
            }
            Step::Unmount { at } => {
                if let Some(index) = self.mounted.iter().rposition(|name| *name == at) {
                    self.mounted.remove(index);
                    // The mount point may be covered by another mount, or have
                    // open files.
                    mounts::detach(&self.path(at));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.path(&format!("{name}.tmp"))
    }

    fn exchange(&self, one: &str, other: &str) -> io::Result<()> {
        let (one, other) = (self.path(one), self.path(other));
        Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
    }

    fn point(&self, name: Name, to: Name, atomic: bool) -> io::Result<()> {
        let path = self.path(name);
        if path.is_dir() && !path.is_symlink() {
            return Ok(());
        }
        if atomic {
            let temporary = self.beside(name);
            symlink(to, &temporary)?;
            fs::rename(&temporary, path)
        } else {
            let _there = fs::remove_file(&path);
            symlink(to, path)
        }
    }

    fn replace(&self, name: Name, make: Make, exchange: bool) -> io::Result<()> {
        if self.mounted.contains(&name) {
            return Ok(());
        }
        let new = self.beside(name);
        fs::create_dir(&new)?;
        for file in ["a", "b"] {
            let old = fs::read_to_string(self.path(name).join(file)).unwrap_or_default();
            fs::write(new.join(file), make.of(&old))?;
        }
        if exchange && self.path(name).exists() {
            renameat_with(CWD, &new, CWD, self.path(name), RenameFlags::EXCHANGE)?;
            return fs::remove_dir_all(&new);
        }
        let _there = fs::remove_dir_all(self.path(name));
        fs::rename(&new, self.path(name))
    }

    /// Writes a content under a name, in a way of saving.
    ///
    /// # Errors
    /// The system's error.
    pub fn save(&self, name: Name, text: &str, how: How) -> io::Result<()> {
        let path = self.path(name);
        let there = fs::read_to_string(&path).ok();
        match (how, there) {
            (How::Append, Some(there)) if text.starts_with(&there) => unshared(|| {
                let mut file = OpenOptions::new().append(true).open(&path)?;
                file.write_all(&text.as_bytes()[there.len()..])
            }),
            (How::Map, Some(there)) if there.len() == text.len() && !text.is_empty() => {
                map(&path, text)
            }
            (How::Over | How::Map, Some(_)) => unshared(|| {
                let file = OpenOptions::new().write(true).open(&path)?;
                file.write_all_at(text.as_bytes(), 0)?;
                file.set_len(text.len() as u64)
            }),
            (How::Replace, _) => {
                let temporary = self.beside(name);
                unshared(|| fs::write(&temporary, text))?;
                fs::rename(&temporary, &path)
            }
            (How::Recreate, Some(_)) => {
                fs::remove_file(&path)?;
                unshared(|| fs::write(&path, text))
            }
            (How::Vim, Some(_)) => {
                let backup = self.path(&format!("{name}~"));
                fs::rename(&path, &backup)?;
                unshared(|| fs::write(&path, text))?;
                fs::remove_file(&backup)
            }
            _ => unshared(|| fs::write(&path, text)),
        }
    }
}

/// Replaces a file's content by a text of the same size, through a memory map.
fn map(path: &Path, text: &str) -> io::Result<()> {
    let script = "import mmap, sys\n\
                  with open(sys.argv[1], 'r+b') as f:\n    m = mmap.mmap(f.fileno(), 0)\n\
                  m[:] = sys.argv[2].encode()\nm.close()\n";
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(path).arg(text);
    let done = children::start(&mut python)?.wait()?;
    assert!(done.success(), "a memory map of {}", path.display());
    Ok(())
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.open = None;
        while let Some(at) = self.mounted.pop() {
            mounts::detach(&self.path(at));
        }
    }
}
