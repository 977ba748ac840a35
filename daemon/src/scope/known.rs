//! The contents of the workspace's files at the last sweep, and how they differ
//! since then.

mod named;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use touchmark_engine::text::tokens;
use touchmark_engine::{Found, Held, ReadOrder, Sweep, Swept, SweptFile};
use touchmark_proto::{Hash, Places, RelPath, native};

use super::Settings;
use super::index::{Entry, File, Index, Known, Stat};
use super::repository::{Repository, Tracked};
use super::rules::Everywhere;
use super::walk::{Difference, Task, Walk, Walked, What, moment};
use crate::content::{Met, Report, Visit};
use crate::system::open::trust;
use crate::tools::GIT;

/// The largest file, in bytes, whose content is read before any change of it.
const LARGE: u64 = 32 << 20;

/// If a command changes more files than this which git's index has, git brought
/// them. Fewer may have been written and committed by the command.
const BY_HAND: usize = 200;

/// The number of directories that are named if not all were looked at.
const NAMED: usize = 3;

/// The workspace's files.
pub(super) struct Workspace<'a> {
    settings: &'a Settings,
    rules: Everywhere,
    index: Index,
    /// Repositories by the relative paths of their top directories. That of the
    /// workspace itself, or of a directory above it, has the empty path.
    repositories: HashMap<Vec<u8>, Option<Repository>>,
    /// The time at which the last sweep began, in nanoseconds since 1970.
    looked: i64,
    /// Files whose content is not on record.
    unread: VecDeque<RelPath>,
    /// Directories that were never looked into.
    unmet: Vec<Task>,
    /// The number of bytes stored of contents that did not change yet.
    kept: u64,
    /// An index of git was read since the last sweep.
    have_changed: bool,
}

/// A file's content.
struct Content {
    held: Held,
    stat: Stat,
    met: Option<Met>,
}

impl<'a> Workspace<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        let (trust, exclude) = (trust(&settings.places.trusted), settings.exclude.clone());
        Self {
            settings,
            rules: Everywhere::new(&settings.root, trust, exclude),
            index: Index::new(),
            repositories: HashMap::new(),
            looked: 0,
            unread: VecDeque::new(),
            unmet: Vec::new(),
            kept: 0,
            have_changed: false,
        }
    }

    /// Carries out an order. Returns the changes that it asks for, and the
    /// contents met.
    pub(super) fn look(&mut self, order: &Sweep, until: Instant) -> (Swept, Vec<Met>) {
        let (files, is_whole) = match order {
            Sweep::InWindow => return self.sweep(true, until),
            Sweep::Between(files) => (files, true),
            Sweep::Named(files) => (files, false),
        };
        let (changes, met) = self.named(files);
        let swept = match is_whole {
            true => self.sweep(false, until).0,
            false => Swept::default(),
        };
        (Swept { changes, ..swept }, met)
    }

    /// Sweeps all files, until `until`. Returns what changed since the last
    /// sweep, if `claims` says that a session may have made the changes, and
    /// the contents met.
    pub(super) fn sweep(&mut self, claims: bool, until: Instant) -> (Swept, Vec<Met>) {
        let began = moment();
        let is_first = self.index.is_empty();
        self.look_at_indexes();
        let walked = self.walk(vec![Task::root()], until);
        self.have_changed = false;
        let Walked {
            differences,
            looked,
            left,
            tops,
        } = walked;
        let partial = self.partial(looked, &left);
        self.unmet = left;
        self.unmet
            .retain(|task| !self.index.contains_key(&task.path));
        self.look_at_tops(tops);
        let (changes, met) = match claims && !is_first {
            true => self.changes(differences),
            false => {
                self.take_in(differences);
                (Vec::new(), Vec::new())
            }
        };
        self.looked = began;
        for repository in self.repositories.values_mut().flatten() {
            repository.close();
        }
        let top = self.repositories.get([].as_slice());
        let branch = top.and_then(Option::as_ref).and_then(Repository::branch);
        let swept = Swept {
            changes,
            branch,
            partial,
        };
        (swept, met)
    }

    /// Reads some files whose content is not on record yet.
    pub(super) fn read_on(&mut self, most: usize) -> Vec<Met> {
        if !self.unmet.is_empty() {
            let tasks = std::mem::take(&mut self.unmet);
            let until = Instant::now() + Duration::from_millis(20);
            let walked = self.walk(tasks, until);
            self.look_at_tops(walked.tops);
            self.unmet = walked.left;
            self.take_in(walked.differences);
            return Vec::new();
        }
        let reader = self.settings.reader.clone();
        let visit = reader.visit();
        let mut all = Vec::new();
        for _ in 0..most {
            let Some(path) = self.unread.pop_front() else {
                break;
            };
            let Some(stat) = self.file(&path).map(|file| file.stat) else {
                continue;
            };
            let keep = self.kept.saturating_add(stat.size) <= self.settings.keep_total;
            let content = match stat.is_link() {
                true => link(self.settings, &path),
                false if stat.size > LARGE => None,
                false => content(&visit, &path, keep),
            };
            let Some(content) = content.filter(|content| content.stat == stat) else {
                continue;
            };
            if let Some((_, Some(bytes))) = &content.met {
                self.kept = self.kept.saturating_add(bytes.len() as u64);
            }
            if let Some(file) = self.file(&path) {
                file.known = Known::Held(content.held);
            }
            all.extend(content.met);
        }
        all
    }

    pub(super) fn has_read_all(&self) -> bool {
        self.unread.is_empty() && self.unmet.is_empty()
    }

    fn walk(&mut self, tasks: Vec<Task>, until: Instant) -> Walked {
        let known = self.repositories.iter();
        let known = known.filter_map(|(top, found)| Some((top.as_slice(), found.as_ref()?)));
        let walk = Walk {
            tracked: &Tracked::new(known, self.have_changed),
            root: &self.settings.root,
            rules: &self.rules,
            until,
            before: self.looked,
        };
        walk.run(&mut self.index, tasks)
    }

    /// Returns a sentence about the directories that were not looked at; `None`
    /// if there are none.
    fn partial(&self, looked: usize, left: &[Task]) -> Option<String> {
        let names = left.iter().take(NAMED).map(|task| match &*task.path {
            [] => ".".to_owned(),
            path => String::from_utf8_lossy(path).into_owned(),
        });
        let names: Vec<String> = names.collect();
        (!left.is_empty()).then(|| {
            let more = left.len().saturating_sub(NAMED);
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more directories"),
            };
            format!(
                "only {looked} files were read in time, none below {}{more}",
                names.join(", ")
            )
        })
    }

    fn look_at_indexes(&mut self) {
        if !self.repositories.contains_key([].as_slice()) {
            let found = outer(&self.settings.root, &self.settings.places);
            self.repositories.insert(Vec::new(), found);
        }
        for repository in self.repositories.values_mut().flatten() {
            self.have_changed |= repository.refresh();
        }
    }

    fn look_at_tops(&mut self, tops: HashSet<Vec<u8>>) {
        for top in tops {
            if !top.is_empty() && !self.repositories.contains_key(&top) {
                let place = self.settings.root.join(native::name(&top));
                let found = Repository::at(&place, Vec::new(), &self.settings.places);
                self.repositories.insert(top, found);
            }
        }
        self.repositories
            .retain(|top, _| top.is_empty() || self.index.get(top).is_some_and(|top| top.is_top));
        self.look_at_indexes();
    }

    /// Records the current files, without attributing the changes.
    fn take_in(&mut self, differences: Vec<Difference>) {
        for Difference { path, what } in differences {
            match what {
                What::Met(stat) | What::Came(stat) => self.meet(path, stat),
                What::Changed(was, stat) if was.stat != stat => self.meet(path, stat),
                // Its stat may hide a change, so it is read.
                What::Changed(..) => self.unread.push_back(path),
                What::Gone(_) => {}
            }
        }
    }

    /// Records a file whose content is not on record. Git's index may prove its
    /// content.
    fn meet(&mut self, path: RelPath, stat: Stat) {
        let vouched = self
            .repository(&path)
            .and_then(|(repository, name)| repository.vouches(name, &stat));
        if let Some(file) = self.file(&path) {
            match vouched {
                Some(blob) => file.known = Known::Blob(blob),
                None => {
                    file.known = Known::Nothing;
                    self.unread.push_back(path);
                }
            }
        }
    }

    /// Returns what changed, with the contents before and after.
    fn changes(&mut self, differences: Vec<Difference>) -> (Vec<SweptFile>, Vec<Met>) {
        let reader = self.settings.reader.clone();
        let visit = reader.visit();
        let mut met = Vec::new();
        let (mut gone, mut came, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        for Difference { path, what } in differences {
            match what {
                What::Met(stat) => self.meet(path, stat),
                What::Gone(was) => {
                    let before = self.before(&path, was, &mut met);
                    gone.push((
                        was.stat,
                        SweptFile {
                            path,
                            from: None,
                            before,
                            after: Held::ABSENT,
                            changed_ms: None,
                            by_git: false,
                        },
                    ));
                }
                What::Came(_) => {
                    if let Some(after) = self.after(&visit, &path, &mut met) {
                        came.push((
                            after.stat,
                            SweptFile {
                                path,
                                from: None,
                                before: Some(Held::ABSENT),
                                after: after.held,
                                changed_ms: after.stat.changed_ms(),
                                by_git: false,
                            },
                        ));
                    }
                }
                What::Changed(was, _) => {
                    let Some(after) = self.after(&visit, &path, &mut met) else {
                        continue;
                    };
                    let before = self.before(&path, was, &mut met);
                    let the_same = match before {
                        // A content that was stored before modes were recorded
                        // has none.
                        Some(before) => {
                            before.hash == after.held.hash && before.mode == after.held.mode
                        }
                        // Without its content, only the stat can show a change.
                        None => was.stat == after.stat,
                    };
                    if !the_same {
                        changes.push(SweptFile {
                            path,
                            from: None,
                            before,
                            after: after.held,
                            changed_ms: after.stat.changed_ms(),
                            by_git: false,
                        });
                    }
                }
            }
        }
        name_renames(&gone, &mut came);
        let mut all: Vec<SweptFile> = gone.into_iter().map(|(_, file)| file).collect();
        all.extend(changes);
        all.extend(came.into_iter().map(|(_, file)| file));
        self.mark_git(&mut all);
        (all, met)
    }

    /// Marks the files that git's index has, if a command changed more than
    /// [`BY_HAND`] of them.
    fn mark_git(&mut self, all: &mut [SweptFile]) {
        if all.len() <= BY_HAND {
            return;
        }
        let mut of_git = Vec::new();
        for (at, change) in all.iter().enumerate() {
            let stat = self.file(&change.path).map(|file| file.stat);
            let repository = self.repository(&change.path);
            if let (Some(stat), Some((repository, name))) = (stat, repository)
                && repository.names(name, &stat)
            {
                of_git.push(at);
            }
        }
        if of_git.len() > BY_HAND {
            of_git.into_iter().for_each(|at| all[at].by_git = true);
        }
    }

    /// Returns a file's content at the last sweep. Adds its bytes to `met` if
    /// they are not stored yet.
    fn before(&mut self, path: &RelPath, was: File, met: &mut Vec<Met>) -> Option<Held> {
        let blob = match was.known {
            Known::Nothing => return None,
            Known::Held(held) => return Some(held),
            Known::Blob(blob) => blob,
        };
        let (repository, _) = self.repository(path)?;
        let bytes = repository.blob(blob, was.stat.size)?;
        let hash = Hash::of(&bytes);
        let feeds = bytes.iter().filter(|byte| **byte == b'\n').count();
        let ends = bytes.last().is_none_or(|last| *last == b'\n');
        let held = Held {
            hash: Some(hash),
            size: bytes.len() as u64,
            lines: u32::try_from(feeds + usize::from(!ends)).unwrap_or(u32::MAX),
            mtime_ms: u64::try_from(was.stat.modified / 1_000_000).unwrap_or(0),
            mode: was.stat.mode,
            owner: None,
        };
        let secret = self.settings.reader.is_secret(path) || tokens::any(&bytes);
        if secret && !bytes.is_empty() {
            met.push((hash, None));
        } else if held.size <= self.settings.keep_file {
            met.push((hash, Some(Arc::from(bytes))));
        }
        Some(held)
    }

    /// Returns a file's current content.
    fn after(&mut self, visit: &Visit<'_>, path: &RelPath, met: &mut Vec<Met>) -> Option<Content> {
        let is_link = self.file(path).is_some_and(|file| file.stat.is_link());
        let content = match is_link {
            true => link(self.settings, path)?,
            false => content(visit, path, true)?,
        };
        self.record(path, &content, met);
        Some(content)
    }

    /// Records what was read of a file. Adds its bytes to `met`.
    fn record(&mut self, path: &RelPath, content: &Content, met: &mut Vec<Met>) {
        if let Some(file) = self.file(path) {
            file.stat = content.stat;
            file.known = Known::Held(content.held);
        }
        met.extend(content.met.clone());
    }

    fn entry(&mut self, path: &RelPath) -> Option<&mut Entry> {
        let (above, name) = split(path);
        let entries = &mut self.index.get_mut(above)?.entries;
        let at = entries.binary_search_by(|(known, _)| (**known).cmp(name));
        entries.get_mut(at.ok()?).map(|(_, entry)| entry)
    }

    fn file(&mut self, path: &RelPath) -> Option<&mut File> {
        match self.entry(path) {
            Some(Entry::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Returns the repository of a file, and the file's name in it.
    fn repository<'p>(&mut self, path: &'p RelPath) -> Option<(&mut Repository, &'p [u8])> {
        let bytes = path.as_bytes();
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut tops: Vec<usize> = slashes.map(|(at, _)| at).collect();
        tops.reverse();
        let inner = tops
            .into_iter()
            .find(|at| self.repositories.contains_key(&bytes[..*at]));
        let (top, name) = match inner {
            Some(at) => (&bytes[..at], &bytes[at + 1..]),
            None => ([].as_slice(), bytes),
        };
        let found = self.repositories.get_mut(top)?.as_mut()?;
        Some((found, name))
    }
}

/// Returns the repository that contains the workspace.
fn outer(root: &Path, places: &Places) -> Option<Repository> {
    let is_top = |path: &&Path| path.join(GIT).symlink_metadata().is_ok();
    let top = root.ancestors().find(is_top)?;
    let below = root.strip_prefix(top).ok()?;
    let mut prefix = native::bytes(below).into_owned();
    if !prefix.is_empty() {
        prefix.push(b'/');
    }
    Repository::at(top, prefix, places)
}

/// Returns the directory of a file, and its name in it.
fn split(path: &RelPath) -> (&[u8], &[u8]) {
    let bytes = path.as_bytes();
    match bytes.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (&[], bytes),
    }
}

/// Reads a file. Returns `None` if it is no regular file, or is being changed.
fn content(visit: &Visit<'_>, path: &RelPath, keep: bool) -> Option<Content> {
    let order = ReadOrder {
        path: path.clone(),
        ticket: 0,
        prefixes: Vec::new(),
        bytes: false,
        keep,
    };
    let Report { outcome, keep, .. } = visit.read_whole(&order);
    let Found::File(content) = outcome.found else {
        return None;
    };
    // A link that resolves to a file is not that file.
    if outcome.real.is_some() {
        return None;
    }
    let met = match outcome.secret && content.size > 0 {
        true => Some((content.hash, None)),
        false => keep.map(|bytes| (content.hash, Some(bytes))),
    };
    Some(Content {
        held: content.into(),
        stat: Stat {
            inode: content.stamp.inode,
            size: content.stamp.size,
            modified: content.stamp.modified,
            changed: content.stamp.changed,
            mode: content.mode,
        },
        met,
    })
}

/// Reads a symlink, whose content is the path that it points to (SCOPE-7).
/// Returns `None` if it is no link, or is being changed.
fn link(settings: &Settings, path: &RelPath) -> Option<Content> {
    let place = settings.root.join(native::name(path.as_bytes()));
    let stat = || Some(Stat::of(&rustix::fs::lstat(&place).ok()?));
    let before = stat().filter(Stat::is_link)?;
    let target = std::fs::read_link(&place).ok()?;
    let bytes = native::bytes(&target);
    let stat = stat().filter(|after| *after == before)?;
    let hash = Hash::of(&bytes);
    let secret = settings.reader.is_secret(path) || tokens::any(&bytes);
    Some(Content {
        held: Held {
            hash: Some(hash),
            size: bytes.len() as u64,
            lines: 1,
            mtime_ms: u64::try_from(stat.modified / 1_000_000).unwrap_or(0),
            mode: stat.mode,
            owner: None,
        },
        stat,
        met: Some((hash, (!secret).then(|| Arc::from(&*bytes)))),
    })
}

/// Finds out which new files are removed ones with another name: those with the
/// same inode, size and time of modification; else those with a content that
/// only one removed file had.
fn name_renames(gone: &[(Stat, SweptFile)], came: &mut [(Stat, SweptFile)]) {
    let mut taken: HashSet<&RelPath> = HashSet::new();
    let itself = |stat: &Stat| (stat.inode, stat.size, stat.modified);
    let by_inode: HashMap<_, &SweptFile> =
        gone.iter().map(|(was, old)| (itself(was), old)).collect();
    for (stat, file) in came.iter_mut() {
        let from = by_inode.get(&itself(stat));
        if let Some(old) = from.filter(|old| taken.insert(&old.path)) {
            file.from = Some(old.path.clone());
            file.before = old.before;
        }
    }
    let mut by_content: HashMap<Hash, Vec<&SweptFile>> = HashMap::new();
    for (_, old) in gone {
        let held = old.before.filter(|held| held.size > 0);
        if let Some(hash) = held.and_then(|held| held.hash) {
            by_content.entry(hash).or_default().push(old);
        }
    }
    for (_, file) in came.iter_mut().filter(|(_, file)| file.from.is_none()) {
        let Some(hash) = file.after.hash else {
            continue;
        };
        let is_link = |held: Option<Held>| held.is_some_and(|held| held.is_link());
        if let Some([old]) = by_content.get(&hash).map(Vec::as_slice)
            && is_link(old.before) == is_link(Some(file.after))
            && taken.insert(&old.path)
        {
            file.from = Some(old.path.clone());
            file.before = old.before;
        }
    }
}
