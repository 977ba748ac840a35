//! Reads git's index: which files a repository has, and the stat that each had
//! with a content. The file may come from an untrusted source. Its size, the
//! number of its entries and the length of their names are limited, and all
//! arithmetic is checked. Extensions are skipped.

use std::cmp::Ordering;
use std::io::{self, BufRead, BufReader, Seek};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::system::open::regular;

/// The largest index that is read, in bytes.
const MOST_BYTES: u64 = 128 << 20;

/// The maximum number of entries.
const MOST_ENTRIES: usize = 1 << 20;

/// The most bytes of all names together. Version 4 stores a name without what
/// it has in common with the one before it, so names may be longer than the
/// file.
const MOST_NAMES: usize = 64 << 20;

/// The most bytes of all indexes in memory from which on no other is read.
const MOST_HELD: u64 = 192 << 20;

/// The longest name, in bytes: the system's limit.
const LONGEST: usize = 4_096;

/// Entries end at a multiple of this, before version 4.
const ALIGNED: u64 = 8;

const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const NAME: u16 = 0x0fff;
/// The length of a name that is longer than the flags can say.
const LONG: usize = 0x0fff;
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
    held: Held,
}

/// Memory of indexes. It counts until this is dropped.
#[derive(Debug, Default)]
struct Held(u64);

static HELD: AtomicU64 = AtomicU64::new(0);

impl Held {
    fn of(bytes: u64) -> Self {
        HELD.fetch_add(bytes, Relaxed);
        Self(bytes)
    }

    fn reserve(bytes: u64) -> io::Result<Self> {
        let reserved = Self::of(bytes);
        match HELD.load(Relaxed) > MOST_HELD {
            true => Err(io::ErrorKind::QuotaExceeded.into()),
            false => Ok(reserved),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(self.0, Relaxed);
    }
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
    /// is damaged, too large, or only a part of an index (a split index), or
    /// others have taken the memory for indexes.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let (file, found) = regular(path)?;
        if found.len() > MOST_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // Any number of directories may have a large index, or the same one.
        let reserved = Held::reserve(found.len())?;
        let input = BufReader::with_capacity(64 << 10, file);
        let index = Self::parse(input, found.len());
        let mut index = index.ok_or(io::ErrorKind::InvalidData)?;
        drop(reserved);
        let entries = index.entries.capacity() * size_of::<Entry>();
        index.held = Held::of((entries + index.names.capacity()) as u64);
        Ok(index)
    }

    pub(crate) fn parse(mut input: impl BufRead + Seek, length: u64) -> Option<Self> {
        // The file does not say how long its ids are. With the other length,
        // what follows the entries is not read as extensions.
        [20, 32].into_iter().find_map(|id| {
            input.rewind().ok()?;
            Self::with_ids_of(id, &mut input, length)
        })
    }

    fn with_ids_of(id: usize, input: impl BufRead + Seek, length: u64) -> Option<Self> {
        // The checksum at the end is not compared: damage that it would show
        // does no more harm here than an index that was made to deceive.
        let left = length.checked_sub(id as u64)?;
        let mut rest = Rest { input, left };
        let signature: [u8; 4] = rest.array()?;
        let (version, count) = (rest.number()?, rest.number()?);
        let count = usize::try_from(count).ok()?;
        if signature != *b"DIRC" || !(2..=4).contains(&version) || count > MOST_ENTRIES {
            return None;
        }
        // No more memory than such entries would have had in the file.
        if count as u64 > rest.left / (42 + id as u64) {
            return None;
        }
        let mut index = Self {
            entries: Vec::with_capacity(count),
            ..Self::default()
        };
        for _ in 0..count {
            let entry = index.entry(&mut rest, id, version)?;
            let is_sorted = index.entries.last().is_none_or(|last| {
                let stages = (last.flags & STAGE).cmp(&(entry.flags & STAGE));
                index.name(last).cmp(index.name(&entry)).then(stages) == Ordering::Less
            });
            if !is_sorted {
                return None;
            }
            index.entries.push(entry);
        }
        while rest.left > 0 {
            let name: [u8; 4] = rest.array()?;
            let size = rest.number()?;
            rest.skip(size.into())?;
            // An extension that must be understood, except the one that only
            // says that entries may be directories.
            if !name[0].is_ascii_uppercase() && name != *b"sdir" {
                return None;
            }
        }
        index.names.shrink_to_fit();
        Some(index)
    }

    fn entry(
        &mut self,
        rest: &mut Rest<impl BufRead + Seek>,
        id: usize,
        version: u32,
    ) -> Option<Entry> {
        let begin = rest.left;
        let mut numbers = [0; 10];
        for number in &mut numbers {
            *number = rest.number()?;
        }
        let [changed, rest_changed, modified, rest_modified, ..] = numbers;
        let [.., _device, inode, mode, _user, _group, size] = numbers;
        let mut bytes = [0; 32];
        rest.fill(bytes.get_mut(..id)?)?;
        let id = ObjectId::read(&bytes[..id])?;
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
            rest.until_zero(&mut self.names)?;
        } else {
            match usize::from(flags & NAME) {
                LONG => rest.until_zero(&mut self.names)?,
                length => {
                    self.names.resize(start + length, 0);
                    rest.fill(&mut self.names[start..])?;
                    rest.zero()?;
                }
            }
            // At least one zero byte ends the name.
            while !(begin - rest.left).is_multiple_of(ALIGNED) {
                rest.zero()?;
            }
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
            changed: (changed, rest_changed),
            modified: (modified, rest_modified),
            inode,
            size,
            id,
        })
    }

    /// Returns the names of all entries, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().map(|entry| self.name(entry))
    }

    /// Returns the names of the files with a conflict.
    pub(crate) fn unmerged<T: FromIterator<Vec<u8>>>(&self) -> T {
        let unmerged = self.entries.iter().filter(|entry| entry.is_unmerged());
        unmerged.map(|entry| self.name(entry).to_owned()).collect()
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

/// What was not read yet, without the checksum at the end.
struct Rest<R> {
    input: R,
    left: u64,
}

impl<R: BufRead + Seek> Rest<R> {
    fn fill(&mut self, bytes: &mut [u8]) -> Option<()> {
        self.left = self.left.checked_sub(bytes.len() as u64)?;
        self.input.read_exact(bytes).ok()
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.array()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.array()?))
    }

    fn zero(&mut self) -> Option<()> {
        (self.array()? == [0]).then_some(())
    }

    fn skip(&mut self, size: u64) -> Option<()> {
        self.left = self.left.checked_sub(size)?;
        self.input.seek_relative(i64::try_from(size).ok()?).ok()
    }

    /// Adds what is before the next zero byte, and skips that byte.
    fn until_zero(&mut self, to: &mut Vec<u8>) -> Option<()> {
        let most = self.left.min(LONGEST as u64 + 1);
        let mut name = io::Read::take(&mut self.input, most);
        let read = name.read_until(0, to).ok()?;
        self.left -= read as u64;
        (to.pop()? == 0).then_some(())
    }

    /// Reads a number of varying length, as git's packs have it.
    fn varying(&mut self) -> Option<usize> {
        let mut value: usize = 0;
        loop {
            let [byte] = self.array()?;
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
