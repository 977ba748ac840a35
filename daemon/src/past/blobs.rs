//! Whether a repository has a blob, and since when.
//!
//! The files may have been part of a clone. Only those that this user owns
//! count, and no file is mapped into memory.

use std::fs::{File, Metadata};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::git::index::ObjectId;
use crate::git::reflog::Move;
use crate::system::open::{check_owner, read_regular, regular};
use crate::system::stat::MetadataExt as _;

/// A time in nanoseconds since 1970.
pub(super) type Nanos = i128;

pub(super) const SECOND: Nanos = 1_000_000_000;

/// The most directories of objects that are looked at: the repository's own and
/// those that it borrows from.
const MOST_STORES: usize = 8;

/// The most packs of a directory that are looked at, the newest.
const MOST_PACKS: usize = 64;

/// The most bytes of the list of directories that a repository borrows objects
/// from.
const MOST_ALTERNATES: u64 = 64 << 10;

/// The most objects of a span of time that are listed.
const MOST_LOOSE: usize = 2_000;

/// The length of the header of a pack's index, with the table of first bytes.
const HEADER: usize = 8 + 1024;

/// Returns when a file was created, or when it was changed last where the file
/// system does not record its creation. Git renews the times of an object that
/// is stored again, but not its creation.
fn created(found: &Metadata) -> Nanos {
    let created = found.created().ok();
    let created = created.and_then(|time: SystemTime| time.duration_since(UNIX_EPOCH).ok());
    match created.and_then(|time| Nanos::try_from(time.as_nanos()).ok()) {
        Some(created) => created,
        None => changed(found),
    }
}

/// Returns when a file's status was changed last.
fn changed(found: &Metadata) -> Nanos {
    Nanos::from(found.ctime()) * SECOND + Nanos::from(found.ctime_nsec())
}

/// Returns since when a file has its content at most: the earlier of its
/// modification and the change of its status. A tool can set the first one
/// back, but neither forward unseen by the other.
pub(super) fn written(found: &Metadata) -> Nanos {
    let modified = Nanos::from(found.mtime()) * SECOND + Nanos::from(found.mtime_nsec());
    modified.min(changed(found))
}

/// The object stores of a repository.
#[derive(Debug)]
pub(crate) struct Blobs {
    stores: Vec<Store>,
}

#[derive(Debug)]
struct Store {
    directory: PathBuf,
    /// The packs, and when their directory was changed when they were listed.
    packs: Vec<Pack>,
    listed: Option<Nanos>,
}

#[derive(Debug)]
struct Pack {
    index: File,
    created: Nanos,
    /// For each first byte of an id: the number of ids up to it.
    fanout: Vec<u32>,
}

impl Blobs {
    /// Opens the object stores of the repository with this common directory.
    pub(crate) fn of(common: &Path) -> Self {
        let mut directories = vec![common.join("objects")];
        let mut at = 0;
        while at < directories.len() {
            let directory = directories[at].clone();
            at += 1;
            let list = read_regular(&directory.join("info/alternates"), MOST_ALTERNATES);
            let list = list.unwrap_or_default();
            let lines = list.split(|byte| *byte == b'\n');
            for line in lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
                let other = directory.join(touchmark_proto::native::name(line));
                if directories.len() < MOST_STORES && !directories.contains(&other) {
                    directories.push(other);
                }
            }
        }
        let owned = |directory: &PathBuf| {
            let found = directory.metadata();
            found.is_ok_and(|found| found.is_dir() && check_owner(&found).is_ok())
        };
        directories.retain(owned);
        let stores = directories.into_iter().map(|directory| Store {
            directory,
            packs: Vec::new(),
            listed: None,
        });
        Self {
            stores: stores.collect(),
        }
    }

    /// Returns when the commit was stored that a move of `HEAD` made. `None` if it
    /// made none, or if the commit has no file of its own (any more).
    pub(crate) fn made(&self, one: &Move) -> Option<Nanos> {
        let id = ObjectId::from_digits(&one.id).filter(|_| one.makes_commit())?;
        self.stores.iter().find_map(|store| store.loose(&id))
    }

    /// Returns the objects that have a file of their own in the repository and
    /// were stored in this span of time, with the time of each: the newest 2,000,
    /// the newest first.
    pub(super) fn stored(&self, span: &RangeInclusive<Nanos>) -> Vec<(Nanos, ObjectId)> {
        let own = self.stores.first().map(|store| &store.directory);
        let directories = own
            .into_iter()
            .flat_map(|own| (0..=u8::MAX).map(|first| (first, own.join(format!("{first:02x}")))));
        let mut found = Vec::new();
        for (first, directory) in directories {
            // A directory changes when an object gets into it.
            let stat = directory.symlink_metadata();
            if !stat.is_ok_and(|stat| stat.is_dir() && changed(&stat) >= *span.start()) {
                continue;
            }
            for entry in directory.read_dir().into_iter().flatten().flatten() {
                let stored = entry.metadata().ok().filter(Metadata::is_file);
                let stored = stored.map(|found| created(&found));
                let Some(time) = stored.filter(|time| span.contains(time)) else {
                    continue;
                };
                let name = entry.file_name();
                let digits = name.to_str().map(|rest| format!("{first:02x}{rest}"));
                let id = digits.and_then(|digits| ObjectId::from_digits(&digits));
                found.extend(id.map(|id| (time, id)));
            }
        }
        found.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        found.truncate(MOST_LOOSE);
        found
    }

    /// Returns since when the repository has a blob at the latest; `None` if it
    /// does not have it. A time before `enough` need not be the first.
    pub(super) fn since(&mut self, id: &ObjectId, enough: Nanos) -> Option<Nanos> {
        let mut first: Option<Nanos> = None;
        let mut note = |found: Nanos| {
            first = Some(first.map_or(found, |first| first.min(found)));
            found < enough
        };
        for store in &self.stores {
            if store.loose(id).is_some_and(&mut note) {
                return first;
            }
        }
        for store in &mut self.stores {
            store.list();
            for pack in &store.packs {
                if pack.has(id).unwrap_or(false) && note(pack.created) {
                    return first;
                }
            }
        }
        first
    }
}

impl Store {
    /// Returns since when a blob has a file of its own here.
    fn loose(&self, id: &ObjectId) -> Option<Nanos> {
        let name = id.digits();
        let file = self.directory.join(name.get(..2)?).join(name.get(2..)?);
        let found = file.symlink_metadata().ok()?;
        (found.is_file() && check_owner(&found).is_ok()).then(|| created(&found))
    }

    /// Lists the packs again if that directory has changed.
    fn list(&mut self) {
        let directory = self.directory.join("pack");
        let Ok(found) = directory.metadata() else {
            self.packs.clear();
            return;
        };
        let stamp = changed(&found);
        if self.listed == Some(stamp) {
            return;
        }
        self.listed = Some(stamp);
        let entries = directory.read_dir().into_iter().flatten().flatten();
        let mut indexes: Vec<(Nanos, PathBuf)> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "idx"))
            .filter_map(|path| {
                let pack = path.with_extension("pack").symlink_metadata().ok()?;
                let owned = pack.is_file() && check_owner(&pack).is_ok();
                owned.then(|| (created(&pack), path))
            })
            .collect();
        indexes.sort();
        let newest = indexes.split_off(indexes.len().saturating_sub(MOST_PACKS));
        self.packs = newest
            .into_iter()
            .filter_map(|(created, index)| Pack::open(&index, created))
            .collect();
    }
}

impl Pack {
    fn open(index: &Path, created: Nanos) -> Option<Self> {
        let (file, found) = regular(index).ok()?;
        check_owner(&found).ok()?;
        let mut header = vec![0; HEADER];
        file.read_exact_at(&mut header, 0).ok()?;
        // Version 2 is the only one that git has written since 2007.
        let rest = header.strip_prefix(b"\xfftOc\0\0\0\x02")?;
        let numbers = rest.chunks_exact(4).map(|four| {
            let four: [u8; 4] = four.try_into().unwrap_or_default();
            u32::from_be_bytes(four)
        });
        Some(Self {
            index: file,
            created,
            fanout: numbers.collect(),
        })
    }

    /// Returns whether the pack has an object.
    fn has(&self, id: &ObjectId) -> Option<bool> {
        let bytes = id.as_bytes();
        let first = usize::from(*bytes.first()?);
        let mut low = match first.checked_sub(1) {
            Some(before) => *self.fanout.get(before)?,
            None => 0,
        };
        let mut high = *self.fanout.get(first)?;
        let mut found = vec![0; bytes.len()];
        while low < high {
            let middle = low + (high - low) / 2;
            let place = HEADER as u64 + u64::from(middle) * bytes.len() as u64;
            self.index.read_exact_at(&mut found, place).ok()?;
            match found.as_slice().cmp(bytes) {
                std::cmp::Ordering::Equal => return Some(true),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn few_of_many_alternates_are_looked_at() {
        let common = tempfile::tempdir().unwrap();
        let info = common.path().join("objects/info");
        std::fs::create_dir_all(&info).unwrap();
        let mut list = String::new();
        while list.len() < 60_000 {
            list += "../";
            list += &"./".repeat(list.len() % 9);
            list += "objects\n";
        }
        std::fs::write(info.join("alternates"), list).unwrap();
        let stores = Blobs::of(common.path()).stores.len();
        assert!((2..=MOST_STORES).contains(&stores), "{stores}");
    }
}
