//! Resolves a path as the caller's kernel will: to the directory that contains
//! the name, and the name.
//!
//! Files are opened with `O_PATH` only: that never blocks on a FIFO or device
//! and changes nothing.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Statx, fstatfs, open, openat, openat2,
    readlinkat,
};
use rustix::io::Errno;

use crate::callers::Caller;
use crate::marks::{Before, Chance, Identity};
use crate::place::{
    Places, Way, Where, before, has_other_names, identity, key, kind, look, look_at,
};

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const ANY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The most symbolic links in a path, as in the kernel.
const LINKS: u32 = 40;

/// The type of the file system at `/proc`, and the inode of its root.
const PROC: i64 = 0x9fa0;
const PROC_ROOT: u64 = 1;

/// What a call wants from a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    /// The name itself, also if it is a symbolic link.
    Name,
    /// The file that the name leads to.
    File,
    /// The directory that the whole path leads to.
    Directory,
}

/// A path's directory and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) directory: Identity,
    /// Empty if the directory has no path here.
    pub(crate) path: Vec<u8>,
    pub(crate) name: Vec<u8>,
    /// What has the name now.
    pub(crate) object: Option<Identity>,
    /// Its content, of which nothing is stored.
    pub(crate) before: Option<Before>,
    pub(crate) is_inside: bool,
    /// What has the name is a file with other hard links.
    pub(crate) has_other_names: bool,
    /// Whether the call is known to fail for what is here.
    pub(crate) chance: Chance,
}

impl Place {
    /// Notes that the call replaces nothing.
    pub(crate) fn must_be_new(&mut self) {
        if self.object.is_some() {
            self.chance = Chance::Poor;
        }
    }
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unresolved {
    /// The path does not exist: the call fails.
    Absent,
    /// The caller has exited, or is another thread. Look again.
    Gone,
    /// The system does not tell about the caller.
    Unreadable,
    /// This process may not search a directory of the path. Nor may the caller,
    /// if it has the same rights.
    Denied,
    /// The system does not tell about the path, for another reason.
    Refused,
}

impl From<Errno> for Unresolved {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::INVAL => {
                Self::Absent
            }
            Errno::ACCESS => Self::Denied,
            // By the holder's alarm.
            Errno::INTR => Self::Gone,
            _ => Self::Refused,
        }
    }
}

/// Returns why a caller's directory cannot be read.
fn of_caller(error: Errno) -> Unresolved {
    match error {
        Errno::NOENT | Errno::SRCH | Errno::INTR => Unresolved::Gone,
        _ => Unresolved::Unreadable,
    }
}

/// A path to resolve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'p> {
    pub(crate) caller: &'p Caller,
    /// The descriptor that a relative path begins at, or `AT_FDCWD`.
    pub(crate) directory: i32,
    pub(crate) path: &'p [u8],
    pub(crate) wants: Wants,
    /// The directory is the root (`RESOLVE_IN_ROOT`).
    pub(crate) in_root: bool,
    /// The call only succeeds if nothing has the name.
    pub(crate) is_new: bool,
    /// Whether the caller's root or mounts may differ from this process's.
    pub(crate) may_differ: bool,
}

/// What a path leads to.
enum Found {
    /// A name in a directory; whether anything has it is not known.
    Name(OwnedFd, Vec<u8>),
    /// A file that has no name here, or an unknown one.
    File(OwnedFd),
}

impl Request<'_> {
    /// Resolves the path.
    pub(crate) fn resolve(&self, places: &mut Places) -> Result<Place, Unresolved> {
        if self.path.is_empty() {
            return Err(Unresolved::Absent);
        }
        if let Some(place) = self.again(places)? {
            return Ok(place);
        }
        if let Some(found) = self.quickly(places)?
            && let Some(place) = self.place(found, places, true)?
        {
            return Ok(place);
        }
        let found = self.walk()?;
        self.place(found, places, false)?.ok_or(Unresolved::Refused)
    }

    /// Returns the file that a descriptor of the caller is open for.
    pub(crate) fn descriptor(&self, places: &mut Places) -> Result<Place, Unresolved> {
        let name = format!("fd/{}", self.directory);
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let file = openat(&self.caller.directory, name, flags, Mode::empty()).map_err(of_caller)?;
        self.named(file, places)
    }

    /// Resolves a path whose directory another call has named in the same way a
    /// moment ago, with half of the system calls. The directory is looked up
    /// again, and must be the same one. `None` if it is not, if there was no such
    /// call, or if the name is a symbolic link that must be followed.
    fn again(&self, places: &mut Places) -> Result<Option<Place>, Unresolved> {
        let Some((way, name)) = self.way() else {
            return Ok(None);
        };
        let Some(led) = places.led(&way) else {
            return Ok(None);
        };
        let (mut path, base) = match self.path[0] {
            b'/' => (Vec::new(), CWD),
            _ => (self.start().into_bytes(), self.caller.directory.as_fd()),
        };
        path.extend_from_slice(&way.2);
        if self.is_new {
            return match look(base, &path, AtFlags::empty()) {
                Ok(stat) if key(&stat) == led => {
                    let place = places.known(&led);
                    Ok(place.map(|place| at(&stat, place, name, None)))
                }
                _ => Ok(None),
            };
        }
        let Ok(directory) = openat(base, path, DIRECTORY, Mode::empty()) else {
            return Ok(None);
        };
        let stat = look_at(directory.as_fd())?;
        if key(&stat) != led {
            return Ok(None);
        }
        self.name(directory.as_fd(), &stat, name, places)
    }

    /// Returns the way to the path's directory, and the name, if another call
    /// with that way finds the same directory: it has no magic link if it is
    /// remembered.
    fn way(&self) -> Option<(Way, &[u8])> {
        if self.in_root || self.may_differ || self.wants == Wants::Directory {
            return None;
        }
        let (above, name) = split(self.path);
        if matches!(name, b"" | b"." | b"..") {
            return None;
        }
        let way = (self.caller.process, self.directory, above.to_vec());
        Some((way, name))
    }

    /// Returns the path from the caller's directory in `/proc` to where its
    /// relative paths begin.
    fn start(&self) -> String {
        match self.directory {
            libc::AT_FDCWD => "cwd/".to_owned(),
            directory => format!("fd/{directory}/"),
        }
    }

    /// Lets the kernel resolve the path's directory. `None` if this process may
    /// see another directory there than the caller.
    fn quickly(&self, places: &Places) -> Result<Option<Found>, Unresolved> {
        if self.in_root {
            return Ok(None);
        }
        let path = self.path;
        let (above, name) = match self.wants {
            Wants::Directory => (path, &b""[..]),
            _ => split(path),
        };
        let is_dots = matches!(name, b"" | b"." | b"..");
        if self.wants != Wants::Directory && is_dots {
            return Ok(None);
        }
        // A magic link of `/proc` is this process's or another's.
        let mut how = ResolveFlags::NO_MAGICLINKS;
        let base = if path[0] == b'/' {
            if self.may_differ && !self.has_own_root(places)? {
                return Ok(None);
            }
            None
        } else {
            if self.may_differ {
                how |= ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
            }
            Some(self.base()?)
        };
        let directory = match base {
            Some(base) if above.is_empty() => base,
            base => {
                let base = base.as_ref().map_or(CWD, AsFd::as_fd);
                match openat2(base, above, DIRECTORY, Mode::empty(), how) {
                    Ok(directory) => directory,
                    Err(Errno::LOOP | Errno::XDEV | Errno::AGAIN) => return Ok(None),
                    Err(Errno::NOENT) if self.may_differ => return Ok(None),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        Ok(Some(match self.wants {
            Wants::Directory => Found::File(directory),
            _ => Found::Name(directory, name.to_vec()),
        }))
    }

    /// Returns where a relative path begins.
    fn base(&self) -> Result<OwnedFd, Unresolved> {
        let proc = self.caller.directory.as_fd();
        if self.directory == libc::AT_FDCWD {
            return openat(proc, "cwd", DIRECTORY, Mode::empty()).map_err(of_caller);
        }
        let name = format!("fd/{}", self.directory);
        match openat(proc, name, DIRECTORY, Mode::empty()) {
            Ok(base) => Ok(base),
            // No such descriptor, or no directory: the call fails.
            Err(Errno::NOENT | Errno::NOTDIR) => Err(Unresolved::Absent),
            Err(error) => Err(of_caller(error)),
        }
    }

    /// Returns whether the caller's root directory and mounts are this
    /// process's.
    fn has_own_root(&self, places: &Places) -> Result<bool, Unresolved> {
        let proc = self.caller.directory.as_fd();
        let root = look(proc, b"root", AtFlags::empty()).map_err(of_caller)?;
        Ok(places.own_root == Some(key(&root)))
    }

    /// Returns the caller's directory in `/proc` if its mounts may differ.
    fn other_view(&self) -> Option<BorrowedFd<'_>> {
        self.may_differ.then(|| self.caller.directory.as_fd())
    }

    /// Resolves the path name by name, from the caller's root.
    fn walk(&self) -> Result<Found, Unresolved> {
        let is_absolute = self.path[0] == b'/';
        let proc = self.caller.directory.as_fd();
        let root = match (self.in_root, self.may_differ) {
            (true, _) => self.base()?,
            (false, true) => openat(proc, "root", DIRECTORY, Mode::empty()).map_err(of_caller)?,
            (false, false) => open("/", DIRECTORY, Mode::empty())?,
        };
        let root_key = key(&look_at(root.as_fd())?);
        let mut here = match is_absolute || self.in_root {
            true => copy(root.as_fd())?,
            false => self.base()?,
        };
        // The names that are left, the next one at the end.
        let mut names = Vec::new();
        push(&mut names, self.path);
        let mut links = 0;
        while let Some(name) = names.pop() {
            let is_last = names.is_empty();
            match &name[..] {
                b"." => continue,
                b".." => {
                    if key(&look_at(here.as_fd())?) != root_key {
                        here = openat(&here, "..", DIRECTORY, Mode::empty())?;
                    }
                    continue;
                }
                _ => {}
            }
            if is_last && self.wants == Wants::Name {
                return Ok(Found::Name(here, name));
            }
            let next = match openat(&here, &name[..], ANY, Mode::empty()) {
                Ok(next) => next,
                Err(Errno::NOENT) if is_last && self.wants == Wants::File => {
                    return Ok(Found::Name(here, name));
                }
                Err(error) => return Err(error.into()),
            };
            let stat = look_at(next.as_fd())?;
            if kind(stat.stx_mode) != libc::S_IFLNK {
                if is_last && self.wants == Wants::File {
                    return Ok(Found::Name(here, name));
                }
                here = next;
                continue;
            }
            links += 1;
            if links > LINKS {
                return Err(Unresolved::Absent);
            }
            if let Some(target) = self.magic(here.as_fd(), &name)? {
                if is_last {
                    return Ok(Found::File(target));
                }
                here = target;
                continue;
            }
            let target = readlinkat(&next, "", Vec::new())?.into_bytes();
            if target.first() == Some(&b'/') {
                here = copy(root.as_fd())?;
            }
            push(&mut names, &target);
        }
        Ok(Found::File(here))
    }

    /// Returns what a link of `/proc` leads to that is not its text: those of
    /// descriptors and directories, and the caller's own directory. `None` for
    /// an ordinary link.
    fn magic(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<Option<OwnedFd>, Unresolved> {
        if fstatfs(directory)?.f_type as i64 != PROC {
            return Ok(None);
        }
        let is_root = look_at(directory)?.stx_ino == PROC_ROOT;
        let process = self.caller.process.pid;
        let own = match name {
            b"self" if is_root => format!("/proc/{process}"),
            b"thread-self" if is_root => {
                format!("/proc/{process}/task/{}", self.caller.thread)
            }
            _ => {
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                let none = ResolveFlags::NO_MAGICLINKS;
                return match openat2(directory, name, flags, Mode::empty(), none) {
                    Err(Errno::LOOP) => {
                        let target = openat(directory, name, flags, Mode::empty());
                        Ok(Some(target?))
                    }
                    _ => Ok(None),
                };
            }
        };
        open(own, DIRECTORY, Mode::empty())
            .map(Some)
            .map_err(of_caller)
    }

    /// Returns the place of what a path leads to. `None` if the name is a
    /// symbolic link that must be followed, or, of what was found quickly, in
    /// `/proc`, where names depend on the caller.
    fn place(
        &self,
        found: Found,
        places: &mut Places,
        was_quick: bool,
    ) -> Result<Option<Place>, Unresolved> {
        let (directory, name) = match found {
            Found::Name(directory, name) => (directory, name),
            Found::File(file) => return self.named(file, places).map(Some),
        };
        let stat = look_at(directory.as_fd())?;
        if was_quick {
            if places.proc_device == Some(identity(&stat).device) {
                return Ok(None);
            }
            if let Some((way, _)) = self.way() {
                places.leads(way, &stat);
            }
        }
        self.name(directory.as_fd(), &stat, &name, places)
    }

    /// Returns the place of a name in a directory. `None` if it is a symbolic link
    /// that must be followed.
    fn name(
        &self,
        directory: BorrowedFd<'_>,
        stat: &Statx,
        name: &[u8],
        places: &mut Places,
    ) -> Result<Option<Place>, Unresolved> {
        let place = places.find(directory, stat, self.other_view());
        let object = match self.is_new {
            true => None,
            false => match look(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(object) => Some(object),
                Err(Errno::NOENT) => None,
                Err(error) => return Err(error.into()),
            },
        };
        let is_link = { object.as_ref() }.is_some_and(|it| kind(it.stx_mode) == libc::S_IFLNK);
        if is_link && self.wants == Wants::File {
            return Ok(None);
        }
        Ok(Some(at(stat, place, name, object.as_ref())))
    }

    /// Returns the place of an open file or directory: of a directory itself,
    /// of a file its directory and name, if it has one.
    fn named(&self, file: OwnedFd, places: &mut Places) -> Result<Place, Unresolved> {
        let stat = look_at(file.as_fd())?;
        let object = identity(&stat);
        if FileType::from_raw_mode(u32::from(stat.stx_mode)) == FileType::Directory {
            let place = places.find(file.as_fd(), &stat, self.other_view());
            let (is_inside, path) = place.parts();
            return Ok(Place {
                directory: object,
                path,
                name: Vec::new(),
                object: None,
                before: None,
                is_inside,
                has_other_names: false,
                chance: Chance::Good,
            });
        }
        if kind(stat.stx_mode) == libc::S_IFREG {
            let path = places.path(file.as_fd())?;
            let (above, name) = split(&path);
            if path.first() == Some(&b'/')
                && !name.is_empty()
                && let Ok(directory) = open(above, DIRECTORY, Mode::empty())
            {
                let there = look(directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
                if there.is_ok_and(|there| identity(&there) == object) {
                    let found = Found::Name(directory, name.to_vec());
                    if let Some(place) = self.place(found, places, false)? {
                        return Ok(place);
                    }
                }
            }
        }
        // It has no name that this process sees.
        Ok(Place {
            directory: Identity::default(),
            path: Vec::new(),
            name: Vec::new(),
            object: Some(object),
            before: before(&stat),
            is_inside: kind(stat.stx_mode) == libc::S_IFREG,
            has_other_names: false,
            chance: Chance::Good,
        })
    }
}

/// Returns the place of a name in a directory.
fn at(directory: &Statx, place: Where, name: &[u8], object: Option<&Statx>) -> Place {
    let (is_inside, path) = place.parts();
    Place {
        directory: identity(directory),
        path,
        name: name.to_vec(),
        object: object.map(identity),
        before: object.and_then(before),
        is_inside,
        has_other_names: object.is_some_and(has_other_names),
        chance: Chance::Good,
    }
}

/// Opens a directory once more.
fn copy(directory: BorrowedFd<'_>) -> Result<OwnedFd, Unresolved> {
    Ok(openat(directory, ".", DIRECTORY, Mode::empty())?)
}

/// Puts the names of a path at the end, the first one last. A slash at the
/// path's end asks for a directory, as does a dot.
fn push(names: &mut Vec<Vec<u8>>, path: &[u8]) {
    let parts = path.split(|byte| *byte == b'/');
    let parts = parts.filter(|name| !name.is_empty());
    names.extend(parts.rev().map(<[u8]>::to_vec));
}

/// Splits a path into that of the directory, with its slash, and the name,
/// without slashes after it.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().rposition(|byte| *byte != b'/');
    let path = &path[..end.map_or(0, |end| end + 1)];
    let start = path.iter().rposition(|byte| *byte == b'/');
    path.split_at(start.map_or(0, |start| start + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_before_the_last_name() {
        let cases: [(&str, &str, &str); 7] = [
            ("a", "", "a"),
            ("/a", "/", "a"),
            ("a/b", "a/", "b"),
            ("a/b//", "a/", "b"),
            ("//a//b", "//a//", "b"),
            ("/", "", ""),
            ("a/..", "a/", ".."),
        ];
        for (path, above, name) in cases {
            let parts = (above.as_bytes(), name.as_bytes());
            assert_eq!(split(path.as_bytes()), parts, "{path}");
        }
    }
}
