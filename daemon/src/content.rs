//! Reading: the current content of a path, with a hash that counts only if the
//! file's stat was the same before and after.
//!
//! A single large `write` sets the file's time when it begins, so a read in the
//! middle of it can find equal stats. That is harmless: the `write` has not
//! returned at that moment, so no answer must include it (SYNC-1), and the
//! event at its end causes another read.

mod beneath;
mod compare;
mod opened;
mod part;
#[cfg(all(test, target_os = "linux"))]
mod tests;
mod vouch;

use std::cell::RefCell;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest as _, Sha256};
use touchmark_engine::patterns::Patterns;
use touchmark_engine::text::tokens;
use touchmark_engine::{Content, Found, LinesOrder, Object, ReadOrder, ReadOutcome, Stamp};
use touchmark_proto::{FileMode, Hash, RelPath, native};

pub(crate) use self::beneath::{Opened, Root};
use self::compare::stamp;
use self::part::Part;
use self::vouch::Vouching;
use crate::links::absolute;
use crate::system::lease::has_writer;
use crate::system::open::other_owner;
use crate::system::stat::{MetadataExt as _, modified_ms};

/// The default maximum of bytes that one read returns.
pub const MAX_BYTES: u64 = 64 << 20;

/// How many times a file that changes during the read is read.
const TRIES: usize = 5;

/// The size in bytes from which the time of a read counts, and a changing file
/// is read only once: a log of gigabytes that grows without pause must not keep
/// a core busy (LOSS-4).
const LARGE: u64 = 4 << 20;

/// After this number of bytes of a file, it is asked whether the rest is needed.
const ASKED: u64 = 64 << 20;

const BUFFER: usize = 128 << 10;

/// Reads files of one workspace. It keeps no descriptor open, so the workspace
/// can be removed (LIFE-1). It can be used from several threads.
#[derive(Clone, Debug)]
pub struct Reader {
    root: PathBuf,
    secrets: Patterns,
    own: Patterns,
    vouching: Vouching,
    keep_file_max: u64,
    bytes_max: u64,
}

/// The result of a read, for the engine and for the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The engine's part. `bytes` is `None` although they were ordered if the
    /// file is larger than the reader's limit.
    pub outcome: ReadOutcome,
    /// The bytes to store; `None` if the order did not request them, or if the
    /// file is a secret or larger than the limit.
    pub keep: Option<Arc<[u8]>>,
    /// How long the read took.
    pub took: Duration,
    /// The file's size in bytes; 0 if there is no file.
    pub size: u64,
}

impl From<Found> for Report {
    fn from(found: Found) -> Self {
        Self {
            outcome: found.into(),
            keep: None,
            took: Duration::ZERO,
            size: 0,
        }
    }
}

/// The result of a read with a limit of size.
#[derive(Debug)]
pub enum Looked {
    /// The file was read.
    Read(Box<Report>),
    /// The file was not read, since more bytes than the limit must be read. The
    /// value is the file's size in bytes.
    Larger(u64),
}

impl From<Found> for Looked {
    fn from(found: Found) -> Self {
        Self::Read(Box::new(found.into()))
    }
}

/// The hash of a content that was met, with its bytes if they are to be stored;
/// `None` if they must not be stored (SEC-3).
pub type Met = (Hash, Option<Arc<[u8]>>);

/// The result of reading and hashing bytes.
struct Hashed {
    hash: Hash,
    line_feeds: u32,
    last: u8,
    prefixes: Vec<(u64, Hash)>,
    bytes: Option<Vec<u8>>,
}

impl Hashed {
    /// Returns the number of line feeds, plus one if the last line has none.
    fn lines(&self) -> u32 {
        self.line_feeds
            .saturating_add(u32::from(self.last != b'\n'))
    }
}

impl Reader {
    /// Creates a reader. `root` is canonical. Files larger than `keep_file_max`
    /// bytes and those that match `secrets` are not stored. The bytes of files
    /// larger than `bytes_max` are not returned (see [`MAX_BYTES`]).
    pub fn new(root: &Path, secrets: Patterns, keep_file_max: u64, bytes_max: u64) -> Self {
        Self {
            root: root.to_path_buf(),
            secrets,
            own: Patterns::default(),
            vouching: Vouching::new(root),
            keep_file_max,
            bytes_max,
        }
    }

    /// Treats touchmark's own files as unreadable (SCOPE-8). Each write to the
    /// store would otherwise be a version of it, and make the next one.
    pub fn without(mut self, own: Patterns) -> Self {
        self.own = own;
        self
    }

    /// Returns whether `path` is one of touchmark's own files.
    pub fn is_own(&self, path: &RelPath) -> bool {
        self.own.has(path)
    }

    /// Returns the size in bytes above which a content is not stored.
    pub fn keep_file_max(&self) -> u64 {
        self.keep_file_max
    }

    /// Returns whether the content of `path` may not be stored (SEC-3).
    pub fn is_secret(&self, path: &RelPath) -> bool {
        self.secrets.has(path)
    }

    /// Returns the paths among `files` whose content may differ from the one
    /// that was read at this stat, that have several names, or whose name
    /// contains symlinks.
    pub fn differing(&self, files: Vec<(RelPath, Stamp)>) -> Vec<RelPath> {
        compare::differing(&self.root, &self.vouching, files)
    }

    /// Reads and hashes a file as ordered. Blocks for as long as the disk does.
    /// A FIFO or device is not opened.
    pub fn read(&self, order: &ReadOrder) -> Report {
        self.visit().read_whole(order)
    }

    /// Reads some lines of a file that begins with the ordered content; `None`
    /// if the file does not begin with it any more. What was appended meanwhile
    /// does not matter.
    pub fn lines(&self, order: &LinesOrder) -> Option<Arc<[u8]>> {
        let root = Root::open(&self.root);
        let Opened::File { mut file, .. } = root.file(&order.path) else {
            return None;
        };
        let part = Some(Part::of(order.range, order.most));
        let read = hash(&mut file, order.size, &[], part, &|| true)
            .inspect_err(|error| tracing::debug!("{}: {error}", order.path))
            .ok()??;
        let bytes = read.bytes.filter(|_| read.hash == order.hash)?;
        Some(bytes.into())
    }

    /// Opens the workspace's directory to read several files in a row.
    pub fn visit(&self) -> Visit<'_> {
        self.visit_while(&|| true)
    }

    /// As [`visit`](Self::visit). A read of a large file ends early once it is
    /// not needed: it is [`Found::Unstable`] then.
    pub(crate) fn visit_while<'a>(&'a self, is_needed: &'a dyn Fn() -> bool) -> Visit<'a> {
        Visit {
            reader: self,
            root: Root::open(&self.root),
            is_needed,
        }
    }
}

/// A reader that keeps the workspace's directory open. Use it for a short time
/// only.
pub struct Visit<'a> {
    reader: &'a Reader,
    root: Root<'a>,
    is_needed: &'a dyn Fn() -> bool,
}

impl Visit<'_> {
    /// Reads and hashes a file of any size as ordered.
    pub(crate) fn read_whole(&self, order: &ReadOrder) -> Report {
        match self.read_up_to(u64::MAX, order) {
            Looked::Read(report) => *report,
            Looked::Larger(size) => Found::Unstable { size }.into(),
        }
    }

    /// Reads and hashes a file as ordered, if at most `most` bytes must be
    /// read.
    pub fn read_up_to(&self, most: u64, order: &ReadOrder) -> Looked {
        let secret = self.reader.is_secret(&order.path);
        let began = Instant::now();
        let mut looked = self.read_settled(most, order, secret);
        if let Looked::Read(report) = &mut looked {
            if report.outcome.real.is_some() {
                let to = absolute(&self.reader.root, &order.path).read_link().ok();
                report.outcome.link = to.map(|to| native::bytes(&to).as_ref().into());
            }
            report.outcome.secret |= secret;
            report.took = began.elapsed();
            if report.size >= LARGE {
                report.outcome.took = u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX);
            }
        }
        looked
    }

    /// Reads the file until it does not change during the read, up to a limit
    /// of tries.
    fn read_settled(&self, most: u64, order: &ReadOrder, secret: bool) -> Looked {
        let mut size = 0;
        for _ in 0..TRIES {
            let (mut file, before, real) = match self.root.file(&order.path) {
                Opened::File { file, before, real } => (file, before, real),
                Opened::Absent { real } => {
                    let mut report = Report::from(Found::Absent);
                    report.outcome.real = real;
                    return Looked::Read(Box::new(report));
                }
                Opened::Outside => return Found::Outside.into(),
                Opened::NotAFile(file_type) => return Found::NotAFile { file_type }.into(),
                Opened::Unreadable(cause) => return Found::Unreadable { cause }.into(),
                Opened::Changing => continue,
            };
            if self.reader.is_own(real.as_ref().unwrap_or(&order.path)) {
                let cause = "it is a file of touchmark's own".into();
                return Found::Unreadable { cause }.into();
            }
            // A symlink's target may be a secret as well.
            let secret = secret
                || real
                    .as_ref()
                    .is_some_and(|real| self.reader.is_secret(real));
            match self
                .reader
                .read_once(&mut file, &before, most, order, secret, self.is_needed)
            {
                Ok(Ok(mut looked)) => {
                    if let Looked::Read(report) = &mut looked {
                        report.outcome.real = real;
                    }
                    return looked;
                }
                Ok(Err(seen)) => size = seen,
                Err(error) => {
                    return Found::Unreadable {
                        cause: error.to_string(),
                    }
                    .into();
                }
            }
            if size >= LARGE {
                break;
            }
        }
        Looked::Read(Box::new(Report {
            size,
            ..Found::Unstable { size }.into()
        }))
    }
}

impl Reader {
    /// Reads an open file once. The inner error is the size of a file that
    /// changed meanwhile. All of it is read, also if it seems only to have
    /// grown: nothing but the content shows that the rest is the same.
    fn read_once(
        &self,
        file: &mut File,
        before: &Metadata,
        most: u64,
        order: &ReadOrder,
        secret: bool,
        is_needed: &dyn Fn() -> bool,
    ) -> io::Result<Result<Looked, u64>> {
        let size = before.len();
        let began = SystemTime::now();
        let keep = order.keep && size <= self.keep_file_max && !secret;
        let bytes = order.bytes && size <= self.bytes_max;
        if size > most {
            return Ok(Ok(Looked::Larger(size)));
        }
        let collect = (keep || bytes).then(Part::whole);
        let Some(read) = hash(file, size, &order.prefixes, collect, is_needed)? else {
            return Ok(Err(file.metadata()?.len()));
        };
        let after = file.metadata()?;
        let stamped = stamp(&after);
        if stamp(before) != stamped {
            return Ok(Err(after.len()));
        }
        let mounted = self.vouching.mounted(&*file, stamped.device);
        let stamped = Stamp {
            mount: mounted.id,
            ..stamped
        };
        let open_for_writing = has_writer(file);
        let settled =
            !open_for_writing && mounted.vouches && self.vouching.is_settled(&stamped, began);
        let lines = read.lines();
        let secret = secret || read.bytes.as_deref().is_some_and(tokens::any);
        let keep = keep && !secret;
        let kept: Option<Arc<[u8]>> = read.bytes.map(Into::into);
        Ok(Ok(Looked::Read(Box::new(Report {
            outcome: ReadOutcome {
                found: Found::File(Content {
                    hash: read.hash,
                    size,
                    lines,
                    mtime_ms: modified_ms(&after),
                    mode: FileMode::new(after.mode()),
                    owner: other_owner(after.uid()),
                    stamp: stamped,
                    settled,
                }),
                prefixes: read.prefixes,
                bytes: kept.clone().filter(|_| bytes),
                secret,
                real: None,
                link: None,
                object: (after.nlink() > 1).then(|| Object {
                    device: after.dev(),
                    inode: after.ino(),
                }),
                open_for_writing,
                took: 0,
            },
            keep: kept.filter(|_| keep),
            took: Duration::ZERO,
            size,
        }))))
    }
}

thread_local! {
    /// One buffer for each thread, since most files are small and reads are
    /// frequent.
    static CHUNK: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER]);
}

/// Hashes `size` bytes, and collects a part of the bytes that are read. Returns
/// `None` as soon as the file turns out to have more or fewer bytes, and, for a
/// large file, once it has no name any more or is not needed.
fn hash(
    file: &mut File,
    size: u64,
    prefixes: &[u64],
    mut collect: Option<Part>,
    is_needed: &dyn Fn() -> bool,
) -> io::Result<Option<Hashed>> {
    let mut wanted: Vec<u64> = prefixes.iter().copied().filter(|n| *n <= size).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut read = Hashed {
        hash: Hash([0; 32]),
        line_feeds: 0,
        last: b'\n',
        prefixes: Vec::new(),
        bytes: None,
    };
    let mut hasher = Sha256::new();
    let mut total = 0_u64;
    let mut wanted = wanted.into_iter().peekable();
    CHUNK.with_borrow_mut(|chunk| {
        loop {
            // A large file that grows during the read is hashed up to the size
            // that it had at the beginning.
            let room = match size {
                LARGE.. => usize::try_from(size - total).unwrap_or(BUFFER).min(BUFFER),
                _ => BUFFER,
            };
            let count = match file.read(&mut chunk[..room]) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let mut data = &chunk[..count];
            if total + data.len() as u64 > size {
                return Ok(None);
            }
            read.last = data[count - 1];
            let line_feeds = data.iter().filter(|byte| **byte == b'\n').count();
            read.line_feeds = read
                .line_feeds
                .saturating_add(u32::try_from(line_feeds).unwrap_or(u32::MAX));
            if let Some(part) = &mut collect {
                part.take(data);
            }
            while let Some(cut) = wanted.next_if(|cut| *cut <= total + data.len() as u64) {
                let (head, rest) = data.split_at((cut - total) as usize);
                hasher.update(head);
                total = cut;
                data = rest;
                read.prefixes.push((cut, finish(hasher.clone())));
            }
            hasher.update(data);
            let asked = total / ASKED;
            total += data.len() as u64;
            if total / ASKED > asked && (file.metadata()?.nlink() == 0 || !is_needed()) {
                return Ok(None);
            }
            // The stats tell whether there is more, except for a file with size
            // 0: files of `/proc` and `/sys` all report 0.
            if total == size {
                break;
            }
        }
        if total != size {
            return Ok(None);
        }
        // This has an effect for an empty file only: every other length was met
        // above.
        for cut in wanted {
            read.prefixes.push((cut, finish(hasher.clone())));
        }
        read.hash = finish(hasher);
        read.bytes = collect.map(Part::into_bytes);
        Ok(Some(read))
    })
}

fn finish(hasher: Sha256) -> Hash {
    Hash(hasher.finalize().into())
}
