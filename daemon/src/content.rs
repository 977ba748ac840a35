//! Reading: what a path holds now, with a hash that counts only if the file's
//! stat was the same before and after.
//!
//! A single large `write` stamps the file when it begins, so a read in its
//! midst can find equal stats. It has not returned then, no answer owes it
//! (SYNC-1), and its event, which comes when it ends, brings another read.

#[cfg_attr(not(unix), path = "content/beneath/plain.rs")]
mod beneath;
mod compare;
mod opened;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use sha2::{Digest as _, Sha256};
use touchmark_engine::{Content, Found, ReadOrder, ReadOutcome, Stamp};
use touchmark_proto::{Hash, RelPath, native};

pub(crate) use self::beneath::{Opened, open};
use self::compare::{is_settled, stamp};
use crate::links::absolute;
use crate::system::stat::MetadataExt as _;

/// The default of `contents.exclude` (SEC-3).
pub const SECRETS: &[&str] = &[".env*", "*.pem", "id_*", "*.key"];

/// The default limit of bytes handed out for one read.
pub const MAX_BYTES: u64 = 64 << 20;

/// How often a file that changes under the reader is read again.
const TRIES: usize = 5;

/// From this size on a changing file is tried only twice: a log of gigabytes
/// that grows without pause must not keep a core busy (LOSS-4).
const LARGE: u64 = 32 << 20;

const BUFFER: usize = 128 << 10;

/// Compiles the names whose contents are never kept (SEC-3). A pattern is
/// matched against the last component and against the whole path; case does
/// not count.
///
/// # Errors
/// The first pattern that is none.
pub fn secrets<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(GlobBuilder::new(pattern).case_insensitive(true).build()?);
    }
    set.build()
}

/// Reads files of one workspace. Holds no descriptor, so the workspace can be
/// removed under it (LIFE-1). May be used from several threads.
#[derive(Clone, Debug)]
pub struct Reader {
    root: PathBuf,
    exclude: GlobSet,
    keep_file_max: u64,
    bytes_max: u64,
}

/// What a read found, and what the shell wants to know beside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// For the engine. `bytes` is missing in spite of an order if the file is
    /// larger than the reader's limit.
    pub outcome: ReadOutcome,
    /// The bytes to keep, if the order wanted them kept, they are no secret
    /// and not over the cap.
    pub keep: Option<Arc<[u8]>>,
    /// Where symlinks led to, if there were any; for
    /// [`Watcher::alias`](crate::watch::Watcher::alias).
    pub real: Option<RelPath>,
    /// How many names the file has; 0 if there is none.
    pub links: u64,
    /// Its size in bytes; 0 if there is none.
    pub size: u64,
}

impl From<Found> for Report {
    fn from(found: Found) -> Self {
        Self {
            outcome: found.into(),
            keep: None,
            real: None,
            links: 0,
            size: 0,
        }
    }
}

/// One pass over a file.
struct Pass {
    hash: Hash,
    lines: u32,
    prefixes: Vec<(u64, Hash)>,
    bytes: Option<Vec<u8>>,
}

impl Reader {
    /// `root` is canonical; `exclude` as [`secrets`] makes it; files larger
    /// than `keep_file_max` bytes are not kept, and of files larger than
    /// `bytes_max` no bytes are handed out (see [`MAX_BYTES`]).
    pub fn new(root: &Path, exclude: GlobSet, keep_file_max: u64, bytes_max: u64) -> Self {
        Self {
            root: root.to_path_buf(),
            exclude,
            keep_file_max,
            bytes_max,
        }
    }

    /// Whether the content of `path` may not be kept (SEC-3).
    pub fn is_secret(&self, path: &RelPath) -> bool {
        self.exclude.is_match(native::name(path.file_name()))
            || self.exclude.is_match(native::name(path.as_bytes()))
    }

    /// The size of what `path` names now, in bytes, 0 if nothing: to decide
    /// where to read it.
    pub fn size_hint(&self, path: &RelPath) -> u64 {
        absolute(&self.root, path)
            .metadata()
            .map_or(0, |metadata| metadata.len())
    }

    /// The paths among `files` that may hold something else than what was read
    /// at these stats, that have several names, or that symlinks lead to.
    pub fn differing(&self, files: Vec<(RelPath, Stamp)>) -> Vec<RelPath> {
        compare::differing(&self.root, files)
    }

    /// Reads and hashes as ordered. Blocks for as long as the disk does; a
    /// FIFO or device is not opened.
    pub fn read(&self, order: &ReadOrder) -> Report {
        let mut report = self.read_settled(order);
        report.outcome.secret = self.is_secret(&order.path)
            || report
                .real
                .as_ref()
                .is_some_and(|real| self.is_secret(real));
        report
    }

    /// Reads until the file does not change meanwhile, as often as that is
    /// worth trying.
    fn read_settled(&self, order: &ReadOrder) -> Report {
        let mut size = 0;
        let mut tries = TRIES;
        while tries > 0 {
            tries -= 1;
            let (mut file, real) = match open(&self.root, &order.path) {
                Opened::File { file, real } => (file, real),
                Opened::Absent => return Found::Absent.into(),
                Opened::Outside => return Found::Outside.into(),
                Opened::NotAFile(file_type) => return Found::NotAFile { file_type }.into(),
                Opened::Unreadable(cause) => return Found::Unreadable { cause }.into(),
                Opened::Changing => continue,
            };
            match self.read_once(&mut file, order, real.as_ref()) {
                Ok(Ok(mut report)) => {
                    report.real = real;
                    return report;
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
                tries = tries.min(1);
            }
        }
        Report {
            size,
            ..Found::Unstable { size }.into()
        }
    }

    /// Reads an open file once. The inner error is the size of a file that
    /// changed meanwhile.
    fn read_once(
        &self,
        file: &mut File,
        order: &ReadOrder,
        real: Option<&RelPath>,
    ) -> io::Result<Result<Report, u64>> {
        let before = file.metadata()?;
        let size = before.len();
        let keep = order.keep
            && size <= self.keep_file_max
            && !self.is_secret(&order.path)
            && !real.is_some_and(|real| self.is_secret(real));
        let bytes = order.bytes && size <= self.bytes_max;
        let Some(pass) = pass(file, size, &order.prefixes, keep || bytes)? else {
            return Ok(Err(file.metadata()?.len()));
        };
        let after = file.metadata()?;
        let stamped = stamp(&after);
        if stamp(&before) != stamped {
            return Ok(Err(after.len()));
        }
        let kept: Option<Arc<[u8]>> = pass.bytes.map(Into::into);
        Ok(Ok(Report {
            outcome: ReadOutcome {
                found: Found::File(Content {
                    hash: pass.hash,
                    size,
                    lines: pass.lines,
                    mtime_ms: u64::try_from(after.mtime() * 1000 + after.mtime_nsec() / 1_000_000)
                        .unwrap_or(0),
                    stamp: stamped,
                    settled: is_settled(&stamped),
                }),
                prefixes: pass.prefixes,
                bytes: kept.clone().filter(|_| bytes),
                secret: false,
            },
            keep: kept.filter(|_| keep),
            real: None,
            links: after.nlink(),
            size,
        }))
    }
}

thread_local! {
    /// One buffer a thread, since most files are small and reads are many.
    static CHUNK: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER]);
}

/// Hashes `size` bytes; `None` as soon as there turn out to be more or fewer.
fn pass(file: &mut File, size: u64, prefixes: &[u64], collect: bool) -> io::Result<Option<Pass>> {
    let mut wanted: Vec<u64> = prefixes.iter().copied().filter(|n| *n <= size).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut wanted = wanted.into_iter().peekable();
    let mut hasher = Sha256::new();
    let mut pass = Pass {
        hash: Hash([0; 32]),
        lines: 0,
        prefixes: Vec::new(),
        bytes: collect.then(Vec::new),
    };
    let mut total = 0_u64;
    let mut last = b'\n';
    CHUNK.with_borrow_mut(|chunk| {
        loop {
            let count = match file.read(chunk) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let mut data = &chunk[..count];
            if total + data.len() as u64 > size {
                return Ok(None);
            }
            last = data[count - 1];
            let line_feeds = data.iter().filter(|byte| **byte == b'\n').count();
            pass.lines = pass
                .lines
                .saturating_add(u32::try_from(line_feeds).unwrap_or(u32::MAX));
            if let Some(bytes) = &mut pass.bytes {
                bytes.extend_from_slice(data);
            }
            while let Some(cut) = wanted.next_if(|cut| *cut <= total + data.len() as u64) {
                let (head, rest) = data.split_at((cut - total) as usize);
                hasher.update(head);
                total = cut;
                data = rest;
                pass.prefixes.push((cut, finish(hasher.clone())));
            }
            hasher.update(data);
            total += data.len() as u64;
        }
        if total != size {
            return Ok(None);
        }
        // Only of an empty file: every other length was met above.
        for cut in wanted {
            pass.prefixes.push((cut, finish(hasher.clone())));
        }
        if last != b'\n' {
            pass.lines = pass.lines.saturating_add(1);
        }
        pass.hash = finish(hasher);
        Ok(Some(pass))
    })
}

fn finish(hasher: Sha256) -> Hash {
    Hash(hasher.finalize().into())
}
