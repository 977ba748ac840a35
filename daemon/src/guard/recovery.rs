//! Stored bytes: contents that would have lost their name without having been
//! seen (GUARD-1), and those of ignored files that a witnessed command destroyed
//! (SCOPE-10). Each is a file in one directory of the state directory, with
//! a small description next to it. So the list does not depend on the store.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use touchmark_proto::writes::RecoveryItem;
use touchmark_proto::{Author, Hash, Millis, RelPath};

use super::settings::Keep;
use crate::failpoint;
use crate::life::usable_directory;
use crate::system::open;
use crate::time::Timeline;

/// The longest part of a file's own name in the name of its stored copy, in
/// bytes.
const LONGEST_NAME: usize = 80;

/// The most items of ignored files that a process remembers.
const NEWEST: usize = 64;

/// The description next to stored bytes.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    path: RelPath,
    /// The name behind the symlinks on the path; `None` if there were none.
    #[serde(default)]
    real: Option<RelPath>,
    hash: Hash,
    author: Option<Author>,
    time: Millis,
    size: u64,
    /// The name of the stored file in the same directory.
    file: String,
    /// A command destroyed the content of an ignored file.
    #[serde(default)]
    ignored: bool,
}

/// The directory of stored bytes. Usable from several threads.
#[derive(Debug)]
pub(super) struct Recovery {
    directory: PathBuf,
    keep: Keep,
    last: Mutex<u64>,
    /// The newest items of ignored files that this process has stored, the oldest
    /// first.
    ignored: Mutex<VecDeque<RecoveryItem>>,
}

impl Recovery {
    /// Opens the directory, which is created if it does not exist.
    pub(super) fn open(directory: PathBuf, keep: Keep) -> Result<Self, crate::Error> {
        usable_directory(&directory)?;
        drop_unlisted(&directory);
        let last = numbers(&directory).into_iter().max().unwrap_or(0);
        Ok(Self {
            directory,
            keep,
            last: Mutex::new(last),
            ignored: Mutex::default(),
        })
    }

    /// Stores the content of an open file, by its name and the name behind
    /// symlinks. The file's offset stays.
    pub(super) fn keep(
        &self,
        paths: (&RelPath, &RelPath),
        file: &File,
        author: Option<Author>,
        time: &Timeline,
    ) -> io::Result<RecoveryItem> {
        let copied = |to: &Path| copy(file, to);
        let times = (time.now(), time.before(self.keep.age));
        self.keep_as(false, paths, copied, author, times)
    }

    /// Stores the content that an ignored file had. Does nothing if it was stored
    /// just before, or is larger than all of them may be (`recovery.ignored`).
    pub(super) fn keep_ignored(
        &self,
        path: &RelPath,
        bytes: &[u8],
        time: &Timeline,
    ) -> io::Result<()> {
        let hash = Hash::of(bytes);
        let mut newest = self.ignored.lock().unwrap_or_else(|e| e.into_inner());
        let is_known = |known: &RecoveryItem| known.path == *path && known.hash == hash;
        if bytes.len() as u64 > self.keep.ignored || newest.iter().any(is_known) {
            return Ok(());
        }
        let written = |to: &Path| {
            let mut to = private(to)?;
            to.write_all(bytes)?;
            to.sync_data()?;
            Ok((hash, bytes.len() as u64))
        };
        let times = (time.now(), time.before(self.keep.age));
        let item = self.keep_as(true, (path, path), written, None, times)?;
        if newest.len() == NEWEST {
            newest.pop_front();
        }
        newest.push_back(item);
        Ok(())
    }

    /// Returns the newest items of ignored files that this process has stored since
    /// a time, the oldest first.
    pub(super) fn ignored_since(&self, time: Millis) -> Vec<RecoveryItem> {
        let newest = self.ignored.lock().unwrap_or_else(|e| e.into_inner());
        let since = newest.iter().filter(|item| item.time >= time);
        since.cloned().collect()
    }

    fn keep_as(
        &self,
        ignored: bool,
        (path, real): (&RelPath, &RelPath),
        copied: impl FnOnce(&Path) -> io::Result<(Hash, u64)>,
        author: Option<Author>,
        (now, oldest): (Millis, Millis),
    ) -> io::Result<RecoveryItem> {
        let number = {
            let mut last = self.last.lock().unwrap_or_else(|e| e.into_inner());
            *last += 1;
            *last
        };
        let name = format!("r{number}-{}", plain_name(path));
        let data = self.directory.join(&name);
        let kept = copied(&data).and_then(|(hash, size)| {
            let description = Description {
                path: path.clone(),
                real: (real != path).then(|| real.clone()),
                hash,
                author,
                time: now,
                size,
                file: name,
                ignored,
            };
            let text = serde_json::to_vec(&description)?;
            // Renamed when complete, since the list is read from these files.
            let part = self.directory.join(format!("r{number}.part"));
            let mut file = private(&part)?;
            file.write_all(&text)?;
            file.sync_data()?;
            failpoint::pass("recovery: bytes are copied, not listed");
            fs::rename(&part, self.description(number))?;
            File::open(&self.directory)?.sync_data()?;
            failpoint::pass("recovery: bytes are listed");
            Ok(self.item(number, description))
        });
        if kept.is_err() {
            let _not_there = fs::remove_file(&data);
        }
        self.prune(oldest, Some(number));
        kept
    }

    /// Returns all stored bytes, the newest first.
    pub(super) fn list(&self) -> Vec<RecoveryItem> {
        let numbers = self.numbers().into_iter();
        numbers
            .filter_map(|number| self.get_number(number))
            .collect()
    }

    /// Returns one item, or `None` for an unknown id.
    pub(super) fn get(&self, id: &str) -> Option<RecoveryItem> {
        self.get_number(number_of(id)?)
    }

    /// Returns the name behind the symlinks on an item's path, as they were when
    /// it was stored; `None` if there were none.
    pub(super) fn real(&self, id: &str) -> Option<RelPath> {
        let text = fs::read(self.description(number_of(id)?)).ok()?;
        let description: Description = serde_json::from_slice(&text).ok()?;
        description.real
    }

    /// Removes one item.
    pub(super) fn delete(&self, id: &str) -> io::Result<()> {
        let Some(item) = self.get(id) else {
            return Ok(());
        };
        // The bytes are removed last, so that every listed item has its bytes.
        if let Some(number) = number_of(id) {
            fs::remove_file(self.description(number))?;
        }
        failpoint::pass("recovery: bytes are listed no more");
        fs::remove_file(&item.file)
    }

    /// Removes items that are older than the configured age.
    pub(super) fn prune_old(&self, time: &Timeline) {
        self.prune(time.before(self.keep.age), None);
    }

    /// Removes items from before `oldest` and those beyond the size limit, but
    /// never `newest`.
    fn prune(&self, oldest: Millis, newest: Option<u64>) {
        let (mut total, mut of_ignored) = (0_u64, 0_u64);
        for number in self.numbers() {
            let Some(item) = self.described(number) else {
                continue;
            };
            total = total.saturating_add(item.size);
            of_ignored += if item.ignored { item.size } else { 0 };
            let old = item.time < oldest;
            let over = total > self.keep.bytes || item.ignored && of_ignored > self.keep.ignored;
            if (old || over) && Some(number) != newest {
                tracing::info!(path = %item.path, "{} ({}) is kept no longer", item.file, item.path);
                if let Err(error) = self.delete(&id(number)) {
                    tracing::warn!("{}: {error}", item.file);
                }
            }
        }
    }

    /// Returns the numbers of all items, the newest first.
    fn numbers(&self) -> Vec<u64> {
        let mut numbers = numbers(&self.directory);
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers
    }

    fn get_number(&self, number: u64) -> Option<RecoveryItem> {
        Some(self.item(number, self.described(number)?))
    }

    fn described(&self, number: u64) -> Option<Description> {
        let text = fs::read(self.description(number)).ok()?;
        let description: Description = serde_json::from_slice(&text).ok()?;
        // A description must not name a file outside the directory.
        (!description.file.contains('/')).then_some(description)
    }

    fn item(&self, number: u64, description: Description) -> RecoveryItem {
        RecoveryItem {
            id: id(number),
            path: description.path,
            hash: description.hash,
            author: description.author,
            time: description.time,
            size: description.size,
            file: self
                .directory
                .join(description.file)
                .to_string_lossy()
                .into_owned(),
        }
    }

    fn description(&self, number: u64) -> PathBuf {
        self.directory.join(format!("r{number}.json"))
    }
}

/// Returns the first bytes of an item, and whether there are more.
pub(super) fn read(item: &RecoveryItem, limit: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    File::open(&item.file)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = bytes.len() > limit;
    bytes.truncate(limit);
    Ok((bytes, more))
}

/// Copies all of an open file to a new file and syncs that.
fn copy(from: &File, to: &Path) -> io::Result<(Hash, u64)> {
    let mut to = private(to)?;
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; 64 << 10];
    let mut size = 0_u64;
    loop {
        match from.read_at(&mut chunk, size) {
            Ok(0) => break,
            Ok(count) => {
                let data = chunk.get(..count).unwrap_or_default();
                hasher.update(data);
                to.write_all(data)?;
                size += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    to.sync_data()?;
    Ok((Hash(hasher.finalize().into()), size))
}

fn private(path: &Path) -> io::Result<File> {
    open::private().write(true).create_new(true).open(path)
}

/// Removes the files of copies that were not listed yet (their originals still
/// exist), and of unfinished removals, which a killed daemon left. Else the
/// next number could not be used.
fn drop_unlisted(directory: &Path) {
    let listed = numbers(directory);
    for file in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = file.file_name();
        let number = name
            .to_str()
            .and_then(|name| number_of(name.split(['-', '.']).next()?));
        if number.is_some_and(|number| !listed.contains(&number))
            && let Err(error) = fs::remove_file(file.path())
        {
            tracing::warn!("{}: {error}", file.path().display());
        }
    }
}

/// Returns the directory of stored bytes in a state directory.
pub(super) fn directory(state: &Path) -> PathBuf {
    state.join("recovery")
}

/// Returns the number of items in a state directory, whether or not a daemon
/// runs.
pub fn kept(state: &Path) -> usize {
    numbers(&directory(state)).len()
}

fn numbers(directory: &Path) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            number_of(name.to_str()?.strip_suffix(".json")?)
        })
        .collect()
}

fn id(number: u64) -> String {
    format!("r{number}")
}

fn number_of(id: &str) -> Option<u64> {
    id.strip_prefix('r')?.parse().ok()
}

/// Returns a file's own name with only characters that every file system and
/// terminal supports.
fn plain_name(path: &RelPath) -> String {
    let mut name: String = String::from_utf8_lossy(path.file_name())
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => c,
            _ => '_',
        })
        .collect();
    name.truncate(LONGEST_NAME);
    name
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn kept(recovery: &Recovery, name: &str, content: &str, now: Millis) -> RecoveryItem {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("f");
        fs::write(&file, content).unwrap();
        let path = RelPath::new(name.as_bytes()).unwrap();
        let oldest = now.saturating_sub(recovery.keep.age);
        recovery
            .keep_as(
                false,
                (&path, &path),
                |to: &Path| copy(&File::open(file).unwrap(), to),
                None,
                (now, oldest),
            )
            .unwrap()
    }

    fn ids(recovery: &Recovery) -> Vec<String> {
        recovery.list().into_iter().map(|item| item.id).collect()
    }

    #[test]
    fn the_list_survives() {
        let state = tempfile::tempdir().unwrap();
        let keep = Keep {
            age: 1000,
            bytes: 1 << 20,
            ignored: 0,
        };
        let open = || Recovery::open(state.path().join("recovery"), keep).unwrap();
        let recovery = open();
        let first = kept(&recovery, "a/ü b.txt", "one", 1);
        assert_eq!(first.id, "r1");
        assert_eq!(first.hash, Hash::of(b"one"));
        assert!(first.file.ends_with("/r1-__b.txt") || first.file.ends_with("/r1-_b.txt"));
        kept(&recovery, "b", "two", 2);
        drop(recovery);
        let recovery = open();
        assert_eq!(ids(&recovery), ["r2", "r1"]);
        assert_eq!(recovery.get("r1").unwrap(), first);
        assert_eq!(read(&first, 2).unwrap(), (b"on".to_vec(), true));
        assert_eq!(read(&first, 3).unwrap(), (b"one".to_vec(), false));
        recovery.delete("r1").unwrap();
        assert_eq!(ids(&recovery), ["r2"]);
        assert!(recovery.get("r1").is_none());
        // A number is not used again while there is a later one.
        assert_eq!(kept(&recovery, "c", "", 3).id, "r3");
    }

    #[test]
    fn a_copy_cut_short_is_in_nobodys_way() {
        let state = tempfile::tempdir().unwrap();
        let keep = Keep {
            age: 1000,
            bytes: 1 << 20,
            ignored: 0,
        };
        let open = || Recovery::open(state.path().join("recovery"), keep).unwrap();
        let first = kept(&open(), "a", "one", 1);
        // Killed before the copy was listed.
        for name in ["r2-b", "r2.part"] {
            fs::write(state.path().join("recovery").join(name), "tw").unwrap();
        }
        let recovery = open();
        assert_eq!(recovery.list(), [first]);
        let second = kept(&recovery, "b", "two", 2);
        assert_eq!(fs::read(&second.file).unwrap(), b"two");
        let names = fs::read_dir(state.path().join("recovery")).unwrap();
        assert_eq!(names.count(), 4);
    }

    #[test]
    fn the_old_and_the_too_much_go() {
        let state = tempfile::tempdir().unwrap();
        let keep = Keep {
            age: 10,
            bytes: 8,
            ignored: 0,
        };
        let recovery = Recovery::open(state.path().join("recovery"), keep).unwrap();
        kept(&recovery, "a", "12345", 1);
        kept(&recovery, "b", "123", 5);
        assert_eq!(ids(&recovery), ["r2", "r1"]);
        kept(&recovery, "c", "1", 6);
        assert_eq!(ids(&recovery), ["r3", "r2"]);
        kept(&recovery, "d", "1", 16);
        assert_eq!(ids(&recovery), ["r4", "r3"]);
        // The newest item stays, however large it is.
        kept(&recovery, "e", "123456789", 17);
        assert_eq!(ids(&recovery), ["r5"]);
    }

    #[test]
    fn what_ignored_files_had_has_a_limit_of_its_own() {
        let state = tempfile::tempdir().unwrap();
        let keep = Keep {
            age: Millis::MAX,
            bytes: 1 << 20,
            ignored: 8,
        };
        let recovery = Recovery::open(state.path().join("recovery"), keep).unwrap();
        let time = Timeline::start();
        let ignored = |name: &str, text: &str| {
            let path = RelPath::new(name.as_bytes()).unwrap();
            recovery
                .keep_ignored(&path, text.as_bytes(), &time)
                .unwrap();
        };
        kept(&recovery, "a", "123456789", 1);
        ignored("b", "12345");
        ignored("b", "12345");
        assert_eq!(ids(&recovery), ["r2", "r1"]);
        ignored("too large", "123456789");
        ignored("c", "1234");
        assert_eq!(ids(&recovery), ["r3", "r1"]);
        let newest = recovery.ignored_since(0);
        assert_eq!(newest.last().unwrap().id, "r3");
    }
}
