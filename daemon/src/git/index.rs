//! Reads git's index: which files a repository has, and the stat that each had
//! with a content. The file may come from an untrusted source. Its size, the
//! number of its entries and the length of their names are limited, and all
//! arithmetic is checked. Extensions are skipped.

use std::cmp::Ordering;
use std::io;
use std::path::Path;

use super::files::read;

/// The largest index that is read, in bytes.
const MOST_BYTES: u64 = 128 << 20;

/// The maximum number of entries.
const MOST_ENTRIES: usize = 1 << 20;

/// The most bytes of all names together. Version 4 stores a name without what
/// it has in common with the one before it, so names may be longer than the
/// file.
const MOST_NAMES: usize = 128 << 20;

/// The longest name, in bytes: the system's limit.
const LONGEST: usize = 4_096;

/// Entries end at a multiple of this, before version 4.
const ALIGNED: usize = 8;

const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const NAME: u16 = 0x0fff;
const SKIP_WORKTREE: u16 = 0x4000;
const INTENT_TO_ADD: u16 = 0x2000;

/// The id of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ObjectId {
    Sha1([u8; 20]),
    Sha256([u8; 32]),
}

/// An index.
#[derive(Debug, Default)]
pub(crate) struct GitIndex {
    /// Sorted by name, then by stage.
    entries: Vec<Entry>,
    /// The names of all entries, one after the other.
    names: Vec<u8>,
}

/// What the index has on record of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Where its name begins in the names, and its length.
    name: (u32, u16),
    flags: u16,
    more_flags: u16,
    /// The kind and permissions, as git numbers them.
    pub(crate) mode: u32,
    /// Seconds, and nanoseconds. These and the next two are the lower halves of
    /// the system's numbers.
    pub(crate) changed: (u32, u32),
    pub(crate) modified: (u32, u32),
    pub(crate) inode: u32,
    pub(crate) size: u32,
    pub(crate) id: ObjectId,
}

impl ObjectId {
    fn read(bytes: &[u8]) -> Option<Self> {
        match bytes.len() {
            20 => Some(Self::Sha1(bytes.try_into().ok()?)),
            32 => Some(Self::Sha256(bytes.try_into().ok()?)),
            _ => None,
        }
    }

    /// Reads hexadecimal digits.
    pub(crate) fn from_digits(digits: &str) -> Option<Self> {
        let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
        Self::read(&bytes?)
    }

    /// Returns the id that git gives to a file with this content.
    pub(crate) fn of_file(is_sha256: bool, bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        let head = format!("blob {}\0", bytes.len());
        match is_sha256 {
            true => Self::Sha256(
                sha2::Sha256::new()
                    .chain_update(head)
                    .chain_update(bytes)
                    .finalize()
                    .into(),
            ),
            false => Self::Sha1(
                sha1::Sha1::new()
                    .chain_update(head)
                    .chain_update(bytes)
                    .finalize()
                    .into(),
            ),
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Sha1(bytes) => bytes,
            Self::Sha256(bytes) => bytes,
        }
    }

    /// Returns the id in hexadecimal digits.
    pub(crate) fn digits(&self) -> String {
        use std::fmt::Write as _;
        self.as_bytes()
            .iter()
            .fold(String::new(), |mut digits, byte| {
                let _it_is_memory = write!(digits, "{byte:02x}");
                digits
            })
    }
}

impl Entry {
    /// Returns whether the file itself is expected to be in the work tree, with
    /// this content, and without a conflict.
    pub(crate) fn is_plain(&self) -> bool {
        !self.is_unmerged() && self.more_flags & (SKIP_WORKTREE | INTENT_TO_ADD) == 0
    }

    /// Returns whether this is one side of a conflict.
    pub(crate) fn is_unmerged(&self) -> bool {
        self.flags & STAGE != 0
    }

    /// Returns whether a sparse checkout leaves the file out.
    pub(crate) fn is_skipped(&self) -> bool {
        self.more_flags & SKIP_WORKTREE != 0
    }
}

impl GitIndex {
    /// Reads an index.
    ///
    /// # Errors
    /// Those of the file system, and `InvalidData` if it is not understood: it
    /// is damaged, too large, or only a part of an index (a split index).
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        Self::parse(&read(path, MOST_BYTES)?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        // The file does not say how long its ids are. With the other length,
        // what follows the entries is not read as extensions.
        Self::with_ids_of(20, bytes).or_else(|| Self::with_ids_of(32, bytes))
    }

    fn with_ids_of(id: usize, bytes: &[u8]) -> Option<Self> {
        // The checksum at the end is not compared: damage that it would show
        // does no more harm here than an index that was made to deceive.
        let end = bytes.len().checked_sub(id)?;
        let mut rest = Rest(bytes.get(..end)?);
        let all = rest.0.len();
        let signature = rest.take(4)?;
        let (version, count) = (rest.number()?, rest.number()?);
        let count = usize::try_from(count).ok()?;
        if signature != b"DIRC" || !(2..=4).contains(&version) || count > MOST_ENTRIES {
            return None;
        }
        // No more memory than such entries would have had in the file.
        let possible = rest.0.len() / (42 + id);
        if count > possible {
            return None;
        }
        let mut index = Self {
            entries: Vec::with_capacity(count),
            names: Vec::new(),
        };
        for _ in 0..count {
            let begin = all - rest.0.len();
            let entry = index.entry(&mut rest, id, version)?;
            if version < 4 {
                let length = (all - rest.0.len()).checked_sub(begin)?;
                // At least one zero byte ends the name.
                let zeros = ALIGNED - length % ALIGNED;
                rest.take(zeros)?
                    .iter()
                    .all(|byte| *byte == 0)
                    .then_some(())?;
            }
            let is_sorted = index.entries.last().is_none_or(|last| {
                let stages = (last.flags & STAGE).cmp(&(entry.flags & STAGE));
                index.name(last).cmp(index.name(&entry)).then(stages) == Ordering::Less
            });
            if !is_sorted {
                return None;
            }
            index.entries.push(entry);
        }
        while !rest.0.is_empty() {
            let name = rest.take(4)?;
            let size = usize::try_from(rest.number()?).ok()?;
            rest.take(size)?;
            // An extension that must be understood, except the one that only
            // says that entries may be directories.
            let is_optional = name.first().is_some_and(u8::is_ascii_uppercase);
            if !is_optional && name != b"sdir" {
                return None;
            }
        }
        Some(index)
    }

    fn entry(&mut self, rest: &mut Rest<'_>, id: usize, version: u32) -> Option<Entry> {
        let changed = (rest.number()?, rest.number()?);
        let modified = (rest.number()?, rest.number()?);
        let (_device, inode, mode) = (rest.number()?, rest.number()?, rest.number()?);
        let (_user, _group, size) = (rest.number()?, rest.number()?, rest.number()?);
        let id = ObjectId::read(rest.take(id)?)?;
        let flags = rest.short()?;
        let more_flags = match flags & EXTENDED != 0 && version > 2 {
            true => rest.short()?,
            false => 0,
        };
        let start = self.names.len();
        if version == 4 {
            let dropped = rest.varying()?;
            let last = self.entries.last();
            let last = last.map_or(0, |last| usize::from(last.name.1));
            let kept = last.checked_sub(dropped)?;
            let from = start.checked_sub(last)?;
            self.names.extend_from_within(from..from + kept);
            let added = rest.until_zero()?;
            self.names.extend_from_slice(added);
        } else {
            let length = match flags & NAME {
                NAME => rest.0.iter().position(|byte| *byte == 0)?,
                length => usize::from(length),
            };
            let name = rest.take(length)?;
            self.names.extend_from_slice(name);
        }
        let length = self.names.len() - start;
        if length == 0 || length > LONGEST || self.names.len() > MOST_NAMES {
            return None;
        }
        Some(Entry {
            name: (u32::try_from(start).ok()?, u16::try_from(length).ok()?),
            flags,
            more_flags,
            mode,
            changed,
            modified,
            inode,
            size,
            id,
        })
    }

    /// Returns the names of all entries, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().map(|entry| self.name(entry))
    }

    fn name(&self, entry: &Entry) -> &[u8] {
        let (start, length) = (entry.name.0 as usize, usize::from(entry.name.1));
        self.names.get(start..start + length).unwrap_or_default()
    }

    /// Returns the position of the first entry that is not before a name.
    fn position(&self, name: &[u8]) -> usize {
        let entries = &self.entries;
        entries.partition_point(|entry| self.name(entry) < name)
    }

    /// Returns the entry of a file; the first one, if there is a conflict.
    pub(crate) fn entry_of(&self, name: &[u8]) -> Option<&Entry> {
        let entry = self.entries.get(self.position(name))?;
        (self.name(entry) == name).then_some(entry)
    }

    /// Returns whether there is an entry whose name begins with this.
    pub(crate) fn has_below(&self, prefix: &[u8]) -> bool {
        let entry = self.entries.get(self.position(prefix));
        entry.is_some_and(|entry| self.name(entry).starts_with(prefix))
    }
}

/// What was not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// Reads what is before the next zero byte, and that byte.
    fn until_zero(&mut self) -> Option<&'a [u8]> {
        let end = self
            .0
            .iter()
            .take(LONGEST + 1)
            .position(|byte| *byte == 0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }

    /// Reads a number of varying length, as git's packs have it.
    fn varying(&mut self) -> Option<usize> {
        let mut value: usize = 0;
        loop {
            let byte = *self.take(1)?.first()?;
            value = value
                .checked_mul(128)?
                .checked_add(usize::from(byte & 0x7f))?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            value = value.checked_add(1)?;
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
