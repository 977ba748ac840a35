//! A sweep of all files by their stats. A few threads each look at one
//! directory at a time, until they are told to stop.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use touchmark_proto::{RelPath, native};

use super::difference::{Difference, Part, What, compare, lose};
use super::index::{Directory, Entry, File, Index, Kind, Known, Stat, settled};
use super::listing::{join, list, names_known, stat_of};
use super::repository::Tracked;
use super::rules::{Everywhere, Rules};
use crate::guard::is_temporary;
use crate::system::look::{self, FileSystem};
use crate::system::stat as tell;
use crate::tools::GIT;

/// The most threads. More would block each other.
const THREADS: usize = 4;

/// The name of a directory's ignore file.
const RULES: &[u8] = b".gitignore";

/// The result of a sweep.
#[derive(Default)]
pub(super) struct Walked {
    pub(super) differences: Vec<Difference>,
    /// The number of files that were looked at.
    pub(super) looked: usize,
    /// Directories that were not looked at.
    pub(super) left: Vec<Task>,
    /// The top directories of repositories.
    pub(super) tops: HashSet<Vec<u8>>,
}

/// A directory to look into.
pub(super) struct Task {
    pub(super) path: Vec<u8>,
    above: Option<Arc<Rules>>,
    /// Rules of a directory above it have changed.
    afresh: bool,
    /// The directory did not exist at the last sweep. The time is the latest at
    /// which a new directory above it was changed, in nanoseconds since 1970; 0
    /// without any.
    came: Option<i64>,
    /// All files below are ignored, except those in git's index.
    ignored: bool,
}

impl Task {
    /// Returns the task for the workspace's own directory.
    pub(super) fn root() -> Self {
        Self {
            path: Vec::new(),
            above: None,
            afresh: false,
            came: None,
            ignored: false,
        }
    }
}

/// The settings of one sweep.
pub(super) struct Walk<'a> {
    pub(super) root: &'a Path,
    pub(super) rules: &'a Everywhere,
    /// Whether to stop.
    pub(super) is_over: &'a (dyn Fn() -> bool + Sync),
    /// The time since which a window is open, in nanoseconds since 1970. If a
    /// directory was looked into before it, the user may have changed its files
    /// before a command did.
    pub(super) open_since: i64,
    /// The directories to look into, besides new ones; `None` for all.
    pub(super) only: Option<&'a HashSet<Vec<u8>>>,
    /// The names in git's indexes.
    pub(super) tracked: &'a Tracked<'a>,
}

/// How an entry is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    /// The entry is looked at.
    Looked,
    /// The entry is ignored, but looked at since git's index has it or a path
    /// below it.
    Ignored,
    /// The entry is not looked at.
    Passed,
}

/// Directories that are pending, and the number of those that are being looked
/// into.
struct Queue {
    tasks: Vec<Task>,
    busy: usize,
}

/// The result of looking into one directory.
struct Looked {
    directory: Option<Directory>,
    below: Vec<Task>,
    /// Directories that were removed, or (with `true`) exist and are not looked
    /// at any more.
    gone: Vec<(Vec<u8>, bool)>,
}

/// Returns the current time as files are stamped, in nanoseconds since 1970.
pub(super) fn moment() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

impl Walk<'_> {
    /// Looks into these directories and all below, and updates the index.
    pub(super) fn run(&self, index: &mut Index, tasks: Vec<Task>) -> Walked {
        let home = look::file_system(self.root);
        let old = Mutex::new(std::mem::take(index));
        let queue = Mutex::new(Queue { tasks, busy: 0 });
        let bell = Condvar::new();
        let parts: Vec<Part> = thread::scope(|scope| {
            let threads = thread::available_parallelism().map_or(1, usize::from);
            let others: Vec<_> = (1..threads.min(THREADS))
                .filter_map(|_| {
                    let thread = thread::Builder::new().name("scope".into());
                    let work = || self.work(home, &old, &queue, &bell);
                    thread.spawn_scoped(scope, work).ok()
                })
                .collect();
            let own = self.work(home, &old, &queue, &bell);
            let others = others.into_iter().filter_map(|thread| thread.join().ok());
            std::iter::once(own).chain(others).collect()
        });
        let mut left = old.into_inner().unwrap_or_else(PoisonError::into_inner);
        let queue = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut walked = Walked {
            left: queue.tasks,
            ..Walked::default()
        };
        let mut gone = Vec::new();
        for part in parts {
            walked.differences.extend(part.differences);
            walked.looked += part.looked;
            gone.extend(part.gone);
            for (path, directory) in part.directories {
                if directory.is_top {
                    walked.tops.insert(path.clone());
                }
                index.insert(path, directory);
            }
        }
        for (path, is_there) in gone {
            self.forget(&mut left, path, is_there, &mut walked.differences);
        }
        // Directories that were not looked into keep their entries.
        index.extend(left);
        walked
    }

    fn work(
        &self,
        home: Option<FileSystem>,
        old: &Mutex<Index>,
        queue: &Mutex<Queue>,
        bell: &Condvar,
    ) -> Part {
        let mut part = Part::default();
        let mut locked = queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if (self.is_over)() {
                bell.notify_all();
                return part;
            }
            let Some(task) = locked.tasks.pop() else {
                if locked.busy == 0 {
                    bell.notify_all();
                    return part;
                }
                locked = bell.wait(locked).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            locked.busy += 1;
            drop(locked);
            let known = old
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&task.path);
            let first = part.differences.len();
            let may_have_changed = known
                .as_ref()
                .is_some_and(|known| self.may_have_changed(known));
            let looked = self.look(home, &task, known, &mut part);
            if may_have_changed {
                part.differences[first..]
                    .iter_mut()
                    .for_each(Difference::forget);
            }
            part.gone.extend(looked.gone);
            if let Some(directory) = looked.directory {
                part.directories.push((task.path, directory));
            }
            locked = queue.lock().unwrap_or_else(PoisonError::into_inner);
            locked.busy -= 1;
            let is_wanted = |task: &Task| {
                task.came.is_some() || self.only.is_none_or(|only| only.contains(&task.path))
            };
            locked
                .tasks
                .extend(looked.below.into_iter().filter(is_wanted));
            if locked.busy == 0 || locked.tasks.len() > 1 {
                bell.notify_all();
            }
        }
    }

    /// Returns whether the user may have changed files of a directory after the
    /// last look into it and before a command could.
    fn may_have_changed(&self, known: &Directory) -> bool {
        known.looked < self.open_since
    }

    /// Looks into one directory.
    fn look(
        &self,
        home: Option<FileSystem>,
        task: &Task,
        known: Option<Directory>,
        part: &mut Part,
    ) -> Looked {
        let place = self.place(&task.path);
        let mut looked = Looked {
            directory: None,
            below: Vec::new(),
            gone: Vec::new(),
        };
        // Another file system may not respond (LOSS-2).
        let is_home = |found: FileSystem| home.is_some_and(|home| home.is_same(found));
        if !look::file_system(&place).is_some_and(is_home) {
            looked.gone.push((task.path.clone(), true));
            return looked;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&place, flags, Mode::empty());
        let (handle, stamp) = match opened.and_then(|handle| {
            let found = rustix::fs::fstat(&handle)?;
            Ok((handle, tell::times(&found)))
        }) {
            Ok(opened) => opened,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                if let Some(known) = known {
                    lose(&task.path, known, &mut part.differences);
                }
                looked.gone.push((task.path.clone(), false));
                return looked;
            }
            Err(_) => {
                looked.directory = known;
                return looked;
            }
        };
        let came = task.came.map(|above| above.max(stamp.1));
        let known = match known {
            Some(known) if known.stamp == Some(stamp) && self.is_as_before(task) => {
                match self.look_again(&handle, task, known, part) {
                    Ok(again) => return again,
                    Err(known) => Some(*known),
                }
            }
            known => known,
        };
        let is_known = known.is_some();
        let names = known.as_ref().filter(|known| known.stamp == Some(stamp));
        let names = match names.map(names_known) {
            Some(names) => names,
            None => match list(&handle) {
                Ok(names) => names,
                Err(_) => {
                    looked.directory = known;
                    return looked;
                }
            },
        };
        let has = |name: &[u8]| names.iter().any(|(known, _)| &**known == name);
        let is_top = match &known {
            Some(known) if known.stamp == Some(stamp) => known.is_top,
            _ => rustix::fs::statat(&handle, GIT, AtFlags::SYMLINK_NOFOLLOW).is_ok(),
        };
        // In a repository, ignore rules of the directories above it do not
        // count.
        let ignored = task.ignored && !is_top;
        let rules_from = rules_of(&handle, has(RULES));
        let the_same = known.as_ref().filter(|known| {
            !task.afresh && known.rules_from == rules_from && known.is_top == is_top
        });
        let (rules, afresh) = match the_same {
            Some(known) => (Arc::clone(&known.rules), false),
            None if task.path.is_empty() => (self.rules.top(), true),
            None => match &task.above {
                Some(above) if rules_from.is_none() && !is_top => (Arc::clone(above), true),
                above => (self.rules.of(&place, above.clone(), is_top), true),
            },
        };
        let mut entries = Vec::with_capacity(names.len());
        let last = known.as_ref().map_or(0, |known| known.looked);
        let mut was = known.map_or_else(Vec::new, |known| known.entries);
        was.reverse();
        let now = moment();
        for (name, kind) in names {
            let Ok(path) = join(&task.path, &name) else {
                continue;
            };
            while let Some((gone, entry)) = was.pop_if(|(known, _)| **known < *name) {
                self.gone(&task.path, &gone, entry, &mut looked, part);
            }
            let old = was.pop_if(|(known, _)| **known == *name);
            let old = old.map(|(_, entry)| entry);
            let asks_again = afresh || self.tracked.have_changed;
            let rank = match &old {
                Some(Entry::Passed(was)) if *was == kind && !asks_again => Rank::Passed,
                Some(Entry::File(file)) if !afresh && file.kind() == kind && !file.ignored => {
                    Rank::Looked
                }
                Some(Entry::Directory { ignored: false })
                    if !afresh && kind == Kind::Directory && !ignored =>
                {
                    Rank::Looked
                }
                Some(Entry::File(file)) if !asks_again && file.kind() == kind => Rank::Ignored,
                Some(Entry::Directory { ignored: true })
                    if !asks_again && kind == Kind::Directory =>
                {
                    Rank::Ignored
                }
                _ => self.rank(&rules, &path, kind, ignored),
            };
            if rank == Rank::Passed {
                let is_file = matches!(kind, Kind::File | Kind::Link);
                match old {
                    Some(Entry::File(file)) if !is_file => part.gone_file(path, file),
                    Some(Entry::Directory { .. }) => {
                        let is_there = kind == Kind::Directory;
                        looked.gone.push((path.as_bytes().to_vec(), is_there));
                    }
                    _ => {}
                }
                entries.push((name, Entry::Passed(kind)));
                continue;
            }
            if kind == Kind::Directory {
                if let Some(Entry::File(file)) = old {
                    part.gone_file(path.clone(), file);
                }
                let is_new = is_known
                    && !matches!(
                        old,
                        Some(Entry::Directory { .. } | Entry::Passed(Kind::Directory))
                    );
                let came = came.or(is_new.then_some(0));
                looked.below.push(Task {
                    path: path.as_bytes().to_vec(),
                    above: Some(Arc::clone(&rules)),
                    afresh,
                    came,
                    ignored: rank == Rank::Ignored,
                });
                let ignored = rank == Rank::Ignored;
                entries.push((name, Entry::Directory { ignored }));
                continue;
            }
            if let Some(Entry::Directory { .. }) = old {
                looked.gone.push((path.as_bytes().to_vec(), false));
            }
            let stat = match stat_of(&handle, &name) {
                Ok(Some(stat)) => stat,
                Ok(None) => {
                    if let Some(Entry::File(file)) = old {
                        part.gone_file(path, file);
                    }
                    entries.push((name, Entry::Passed(Kind::Other)));
                    continue;
                }
                Err(Errno::NOENT) => {
                    if let Some(Entry::File(file)) = old {
                        part.gone_file(path, file);
                    }
                    continue;
                }
                Err(_) => {
                    if let Some(entry) = old {
                        entries.push((name, entry));
                    }
                    continue;
                }
            };
            part.looked += 1;
            let file = match old {
                Some(Entry::File(mut file)) => {
                    compare(&task.path, &name, (&mut file, last), stat, part);
                    file.ignored = rank == Rank::Ignored;
                    file
                }
                old => {
                    // A file that was ignored until now may be old.
                    let met = match old {
                        Some(Entry::Passed(was)) => was == kind,
                        _ => came.is_none() && !is_known,
                    };
                    let what = if met {
                        What::Met(stat)
                    } else {
                        What::Came(
                            stat,
                            came.map_or(stat.changed, |came| came.max(stat.changed)),
                        )
                    };
                    part.differences.push(Difference { path, what });
                    File {
                        stat,
                        ignored: rank == Rank::Ignored,
                        known: Known::Nothing,
                    }
                }
            };
            entries.push((name, Entry::File(file)));
        }
        for (gone, entry) in was.into_iter().rev() {
            self.gone(&task.path, &gone, entry, &mut looked, part);
        }
        looked.directory = Some(Directory {
            stamp: settled(stamp, now).then_some(stamp),
            rules,
            looked: now,
            rules_from,
            is_top,
            entries,
        });
        looked
    }

    /// Returns whether the rules above a directory and git's indexes are those
    /// of the last sweep, and the directory is not ignored.
    fn is_as_before(&self, task: &Task) -> bool {
        !task.afresh && task.came.is_none() && !task.ignored && !self.tracked.have_changed
    }

    /// Looks into a directory that has the same names as at the last sweep. Most
    /// directories are like that, so nothing is copied for a file that is
    /// unchanged. Returns the directory if its own ignore rules have changed.
    fn look_again(
        &self,
        handle: &OwnedFd,
        task: &Task,
        mut known: Directory,
        part: &mut Part,
    ) -> Result<Looked, Box<Directory>> {
        if known.rules_from != rules_of(handle, known.has(RULES)) {
            return Err(Box::new(known));
        }
        let (now, last) = (moment(), known.looked);
        let mut below = Vec::new();
        known.entries.retain_mut(|(name, entry)| match entry {
            Entry::Passed(_) => true,
            Entry::Directory { ignored } => {
                if let Ok(path) = join(&task.path, name) {
                    below.push(Task {
                        path: path.as_bytes().to_vec(),
                        above: Some(Arc::clone(&known.rules)),
                        afresh: false,
                        came: None,
                        ignored: *ignored,
                    });
                }
                true
            }
            Entry::File(file) => match stat_of(handle, name) {
                Ok(Some(stat)) => {
                    part.looked += 1;
                    compare(&task.path, name, (file, last), stat, part);
                    true
                }
                Ok(None) => {
                    part.gone(&task.path, name, *file);
                    *entry = Entry::Passed(Kind::Other);
                    true
                }
                Err(Errno::NOENT) => {
                    part.gone(&task.path, name, *file);
                    false
                }
                Err(_) => true,
            },
        });
        known.stamp = known.stamp.filter(|stamp| settled(*stamp, now));
        known.looked = now;
        Ok(Looked {
            directory: Some(known),
            below,
            gone: Vec::new(),
        })
    }

    /// Records that a name was removed.
    fn gone(&self, above: &[u8], name: &[u8], entry: Entry, looked: &mut Looked, part: &mut Part) {
        let Ok(path) = join(above, name) else { return };
        match entry {
            Entry::File(file) => part.gone_file(path, file),
            Entry::Directory { .. } => looked.gone.push((path.as_bytes().to_vec(), false)),
            Entry::Passed(_) => {}
        }
    }

    /// Returns how an entry is treated. Names in git's index are not ignored.
    fn rank(&self, rules: &Rules, path: &RelPath, kind: Kind, ignored: bool) -> Rank {
        let is_directory = kind == Kind::Directory;
        if kind == Kind::Other || is_temporary(path) || self.rules.exclude(path) {
            return Rank::Passed;
        }
        if !ignored && !self.rules.ignore(rules, path, is_directory) {
            return Rank::Looked;
        }
        match self.tracked.have(path.as_bytes(), is_directory) {
            true => Rank::Ignored,
            false => Rank::Passed,
        }
    }

    /// Removes a directory and all below it from the index. With `is_there` they
    /// still exist and are only not looked at any more; otherwise their files are
    /// reported as removed.
    fn forget(
        &self,
        index: &mut Index,
        path: Vec<u8>,
        is_there: bool,
        differences: &mut Vec<Difference>,
    ) {
        let Some(directory) = index.remove(&path) else {
            return;
        };
        for (name, entry) in &directory.entries {
            if let (Entry::Directory { .. }, Ok(below)) = (entry, join(&path, name)) {
                self.forget(index, below.as_bytes().to_vec(), is_there, differences);
            }
        }
        if !is_there {
            let first = differences.len();
            let may_have_changed = self.may_have_changed(&directory);
            lose(&path, directory, differences);
            if may_have_changed {
                differences[first..].iter_mut().for_each(Difference::forget);
            }
        }
    }

    fn place(&self, path: &[u8]) -> PathBuf {
        match path {
            [] => self.root.to_owned(),
            path => self.root.join(native::name(path)),
        }
    }
}

/// Returns the stat of a directory's ignore file. `exists`: there is one.
fn rules_of(handle: &OwnedFd, exists: bool) -> Option<Stat> {
    exists
        .then(|| stat_of(handle, RULES).ok().flatten())
        .flatten()
}
