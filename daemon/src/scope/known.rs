//! The contents of the workspace's files at the last sweep, and how they differ
//! since then.

mod contents;
mod destroyed;
mod marked;
mod named;
mod priors;
mod renames;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use touchmark_engine::text::tokens;
use touchmark_engine::{Held, Sweep, Swept, SweptFile};
use touchmark_proto::{Hash, Millis, Places, RelPath, native};

use super::Settings;
use super::difference::{Difference, What};
use super::index::{Entry, File, Index, Known, Stat, milliseconds};
use super::repository::{Repository, Tracked};
use super::rules::Everywhere;
use super::walk::{Task, Walk, Walked, moment};
use crate::content::{Met, Visit};
use crate::system::open::trust;
use crate::tools::GIT;
use contents::{Content, content, link};
use destroyed::Left;
use priors::{Priors, Told};
use renames::name_renames;

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
    /// The time at which the last sweep began that was made while no window was
    /// open, in nanoseconds since 1970.
    open_since: i64,
    /// Directories that the present sweep has still to look into.
    left: Vec<Task>,
    /// The present sweep has to begin at the top once `left` is done.
    is_due: bool,
    /// How many of the present sweep's changes git's index has, once there are
    /// many changes.
    of_git: usize,
    /// Files whose content is not on record.
    unread: VecDeque<RelPath>,
    /// The number of bytes stored of contents that did not change yet.
    kept: u64,
    /// An index of git was read since the present sweep began.
    have_changed: bool,
    /// An index of git was read between the last complete sweep and the present
    /// one, so what it has is looked up again.
    asks_again: bool,
    /// What witnesses tell about files of the present sweep.
    priors: Priors,
    /// The ignored files that witnessed commands left.
    left_by_commands: Left,
}

impl<'a> Workspace<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        let (trust, exclude) = (trust(&settings.places.trusted), settings.exclude.clone());
        Self {
            settings,
            rules: Everywhere::new(&settings.root, trust, exclude),
            index: Index::new(),
            repositories: HashMap::new(),
            open_since: 0,
            left: Vec::new(),
            is_due: false,
            of_git: 0,
            unread: VecDeque::new(),
            kept: 0,
            have_changed: false,
            asks_again: false,
            priors: Priors::default(),
            left_by_commands: Left::default(),
        }
    }

    /// Carries out an order, and stops looking at `until`. Returns the changes
    /// that it asks for, and the contents met.
    pub(super) fn look(&mut self, order: &Sweep, until: Instant) -> (Swept, Vec<Met>) {
        let is_over = || Instant::now() >= until;
        let files = match order {
            Sweep::InWindow(marked) | Sweep::Marked(marked) => {
                let alone = matches!(order, Sweep::Marked(_));
                return self.look_at_marked(marked, alone, &is_over);
            }
            Sweep::Between(files) | Sweep::Named(files) | Sweep::Opening(files) => files,
        };
        let (mut changes, mut met) = self.named(files);
        let (swept, more) = match order {
            Sweep::Between(_) => self.sweep(false, &is_over),
            Sweep::Opening(_) if self.index.is_empty() => self.sweep(false, &is_over),
            Sweep::Opening(_) => {
                self.open_since = moment();
                self.look_at_indexes();
                (self.swept(Vec::new(), 0), Vec::new())
            }
            _ if self.is_behind() => self.go_on(true, &is_over),
            _ => Default::default(),
        };
        changes.extend(swept.changes);
        met.extend(more);
        (Swept { changes, ..swept }, met)
    }

    /// Sweeps all files. Returns what changed since the last sweep, if `claims`
    /// says that a session may have made the changes, and the contents met.
    /// What an earlier sweep left out comes first, and is always returned.
    pub(super) fn sweep(
        &mut self,
        claims: bool,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> (Swept, Vec<Met>) {
        if !claims {
            self.open_since = moment();
        }
        let claims = claims || self.is_behind();
        self.is_due = true;
        self.of_git = 0;
        self.look_at_indexes();
        self.asks_again |= std::mem::take(&mut self.have_changed);
        self.go_on(claims, is_over)
    }

    /// Goes on with a sweep that is not complete. Returns what changed, if
    /// `claims` says that a session may have made the changes, and the contents
    /// met. After an answer a session may always have.
    pub(super) fn go_on(
        &mut self,
        claims: bool,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> (Swept, Vec<Met>) {
        let (mut changes, mut met, mut looked) = (Vec::new(), Vec::new(), 0);
        while self.is_behind() && !is_over() {
            let mut tasks = std::mem::take(&mut self.left);
            if tasks.is_empty() {
                self.is_due = false;
                tasks.push(Task::root());
            }
            let walked = self.walk(tasks, is_over);
            self.left = walked.left;
            looked += walked.looked;
            self.look_at_tops(walked.tops);
            if claims {
                let (files, contents) = self.changes(walked.differences);
                changes.extend(files);
                met.extend(contents);
            } else {
                self.take_in(walked.differences);
            }
        }
        self.asks_again &= self.is_behind();
        (self.swept(changes, looked), met)
    }

    /// Returns the result of a sweep that found these changes.
    fn swept(&mut self, changes: Vec<SweptFile>, looked: usize) -> Swept {
        for repository in self.repositories.values_mut().flatten() {
            repository.close();
        }
        let top = self.repositories.get([].as_slice());
        Swept {
            changes,
            branch: top.and_then(Option::as_ref).and_then(Repository::branch),
            partial: self.partial(looked),
        }
    }

    /// Looks into the directories that no sweep has reached, while a command
    /// runs. What it does elsewhere is for the look at its end: in the middle of
    /// a change, a file may have any content and old times.
    pub(super) fn go_on_meeting(&mut self, is_over: &(dyn Fn() -> bool + Sync)) {
        let left = std::mem::take(&mut self.left).into_iter();
        let (unmet, mut left): (Vec<_>, _) =
            left.partition(|task| !self.index.contains_key(&task.path));
        let walked = self.walk(unmet, is_over);
        left.extend(walked.left);
        self.left = left;
        self.look_at_tops(walked.tops);
        self.take_in(walked.differences);
    }

    /// Returns whether a sweep is not complete.
    pub(super) fn is_behind(&self) -> bool {
        self.is_due || !self.left.is_empty()
    }

    /// Reads some files whose content is not on record yet.
    pub(super) fn read_on(&mut self, most: usize) -> Vec<Met> {
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
        self.unread.is_empty()
    }

    fn walk(&mut self, tasks: Vec<Task>, is_over: &(dyn Fn() -> bool + Sync)) -> Walked {
        self.walk_into(None, tasks, is_over)
    }

    /// Looks into directories, and into those below that are new, or in `only`.
    fn walk_into(
        &mut self,
        only: Option<&HashSet<Vec<u8>>>,
        tasks: Vec<Task>,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Walked {
        let known = self.repositories.iter();
        let known = known.filter_map(|(top, found)| Some((top.as_slice(), found.as_ref()?)));
        let walk = Walk {
            tracked: &Tracked::new(known, self.asks_again || self.have_changed),
            root: &self.settings.root,
            rules: &self.rules,
            is_over,
            open_since: self.open_since,
            only,
        };
        walk.run(&mut self.index, tasks)
    }

    /// Returns a sentence about the directories that were not looked at; `None`
    /// if there are none.
    fn partial(&self, looked: usize) -> Option<String> {
        let top = self.is_due.then(Task::root);
        let left = || top.iter().chain(&self.left);
        let names = left().take(NAMED).map(|task| match &*task.path {
            [] => ".".to_owned(),
            path => String::from_utf8_lossy(path).into_owned(),
        });
        let names: Vec<String> = names.collect();
        self.is_behind().then(|| {
            let more = match left().count().saturating_sub(NAMED) {
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
                What::Met(stat) | What::Came(stat, _) => self.meet(path, stat),
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
            if let What::Met(stat) | What::Came(stat, _) | What::Changed(_, stat) = &what
                && self.priors.is_unchanged(&path, stat)
            {
                // The user has changed it since the last look, not a command.
                self.meet(path, *stat);
                continue;
            }
            match what {
                What::Met(stat) if !self.priors.has(&path) => self.meet(path, stat),
                What::Gone(was) => {
                    let before = self.before(&path, Some(was), &mut met);
                    let changed_ms = self.gone_by(&path);
                    let file = SweptFile {
                        changed_ms,
                        ..SweptFile::new(path, before, Held::ABSENT)
                    };
                    gone.push((was.stat, file));
                }
                What::Came(_, at) => {
                    if let Some(after) = self.after(&visit, &path, &mut met) {
                        let at = at.max(after.stat.changed);
                        let before = match self.priors.has(&path) {
                            true => self.before(&path, None, &mut met),
                            false => Some(Held::ABSENT),
                        };
                        let is_new = before == Some(Held::ABSENT);
                        if is_new {
                            came.push((after.stat, after.change(path, before, at)));
                        } else if !after.is_still(before) {
                            changes.push(after.change(path, before, at));
                        }
                    }
                }
                What::Met(_) => {
                    if let Some(after) = self.after(&visit, &path, &mut met) {
                        let before = self.before(&path, None, &mut met);
                        if !after.is_still(before) {
                            let at = after.stat.changed;
                            changes.push(after.change(path, before, at));
                        }
                    }
                }
                What::Changed(was, _) => {
                    let Some(after) = self.after(&visit, &path, &mut met) else {
                        // It is being changed, and the next look finds it. What
                        // it held before may not be known any more.
                        if let Some(file) = self.file(&path) {
                            file.known = was.known;
                        }
                        continue;
                    };
                    let before = self.before(&path, Some(was), &mut met);
                    let the_same = match before {
                        Some(_) => after.is_still(before),
                        // Without its content, only the stat can show a change.
                        None => was.stat == after.stat,
                    };
                    if !the_same {
                        let at = after.stat.changed;
                        changes.push(after.change(path, before, at));
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
        if all.len() + self.of_git <= BY_HAND {
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
        self.of_git += of_git.len();
        if self.of_git > BY_HAND {
            of_git.into_iter().for_each(|at| all[at].by_git = true);
        }
    }

    /// Returns a file's content before the present sweep's changes: what a witness
    /// tells, else that at the last sweep (`was`). Adds its bytes to `met` if they
    /// are not stored yet.
    fn before(&mut self, path: &RelPath, was: Option<File>, met: &mut Vec<Met>) -> Option<Held> {
        let was = match self.priors.tell(path) {
            Told::Nothing => was?,
            Told::Unknown => return None,
            Told::Held(held) => return Some(held),
            Told::Bytes(bytes, stat) => return Some(self.take(path, bytes, stat, met)),
            Told::AsLooked(was) => was,
        };
        let blob = match was.known {
            Known::Nothing => return None,
            Known::Held(held) => return Some(held),
            Known::Blob(blob) => blob,
        };
        let (repository, _) = self.repository(path)?;
        let bytes = repository.blob(blob, was.stat.size)?;
        Some(self.take(path, bytes, was.stat, met))
    }

    /// Returns what a file held with these bytes. Adds them to `met`.
    fn take(&self, path: &RelPath, bytes: Vec<u8>, stat: Stat, met: &mut Vec<Met>) -> Held {
        let hash = Hash::of(&bytes);
        let feeds = bytes.iter().filter(|byte| **byte == b'\n').count();
        let ends = bytes.last().is_none_or(|last| *last == b'\n');
        let held = Held {
            hash: Some(hash),
            size: bytes.len() as u64,
            lines: u32::try_from(feeds + usize::from(!ends)).unwrap_or(u32::MAX),
            mtime_ms: u64::try_from(stat.modified / 1_000_000).unwrap_or(0),
            mode: stat.mode,
            owner: None,
        };
        let secret = self.settings.reader.is_secret(path) || tokens::any(&bytes);
        if secret && !bytes.is_empty() {
            met.push((hash, None));
        } else if held.size <= self.settings.keep_file {
            met.push((hash, Some(Arc::from(bytes))));
        }
        held
    }

    /// Returns when a file was removed at the latest: the time at which its
    /// directory changed last.
    fn gone_by(&self, path: &RelPath) -> Option<Millis> {
        let above = split(path).0;
        let place = self.settings.root.join(native::name(above));
        let found = rustix::fs::lstat(&place).ok()?;
        milliseconds(Stat::of(&found).changed)
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
        let directory = self.index.get_mut(above)?;
        let at = directory.find(name)?;
        directory.entries.get_mut(at).map(|(_, entry)| entry)
    }

    /// Removes a file from the record.
    fn remove(&mut self, path: &RelPath) {
        let (above, name) = split(path);
        if let Some(directory) = self.index.get_mut(above) {
            directory.entries.retain(|(known, _)| **known != *name);
        }
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
