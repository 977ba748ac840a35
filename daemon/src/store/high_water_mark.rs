//! The high-water mark: the newest fact that was answered, in a file next to
//! the store.
//!
//! SQLite repairs a torn log by going back to the last transaction whose
//! checksums match. That is right for a transaction that was not answered yet.
//! For an answered one, clocks would name facts that no longer exist, and their
//! numbers would be given out again. So the number of the newest committed fact
//! is written here, after the commit and before the answer.
//!
//! The file is in the page cache, so it survives the process. It is not synced
//! with each commit, so after a power cut it may be old. It names the boot in
//! which it was written, which shows that.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

use super::options::Durability;
use crate::system::open::write_over;
use crate::system::proc;

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    /// The boot id of the system when it was written.
    pub(super) boot: String,
    /// The number of the newest committed fact.
    pub(super) n: u64,
    /// The durability of the commits.
    pub(super) durability: Durability,
    /// The result of the latest commits.
    pub(super) condition: Condition,
}

/// The result of the latest commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// All commits succeeded.
    Good,
    /// Commits failed, and facts are pending in memory.
    Failing,
    /// A commit or a lookup found damage that the check at a start does not
    /// find.
    Damaged,
}

impl Condition {
    const ALL: [Self; 3] = [Self::Good, Self::Failing, Self::Damaged];

    fn name(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Failing => "failing",
            Self::Damaged => "damaged",
        }
    }
}

impl Noted {
    /// Returns the file's text. Every field has a fixed width, so that one
    /// small write replaces all of them.
    fn line(&self) -> String {
        format!(
            "{:<36.36} {:020} {:<7} {:<7}\n",
            self.boot,
            self.n,
            self.durability.name(),
            self.condition.name()
        )
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        Some(Self {
            boot: words.next()?.to_owned(),
            n: words.next()?.parse().ok()?,
            durability: match words.next()? {
                "power" => Durability::Power,
                "process" => Durability::Process,
                _ => return None,
            },
            condition: {
                let word = words.next()?;
                Condition::ALL.into_iter().find(|one| one.name() == word)?
            },
        })
    }

    /// Reads the file. Returns `None` if it does not exist or is not readable.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let mut text = String::new();
        File::open(path).ok()?.read_to_string(&mut text).ok()?;
        Self::parse(&text)
    }
}

/// The file, open for writing.
pub(super) struct HighWaterMark {
    file: File,
    says: Noted,
}

impl HighWaterMark {
    /// Opens the file and writes `says` into it.
    pub(super) fn open(path: &Path, says: Noted) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let mark = Self { file, says };
        // A mark that is behind names an older fact than the store's, which is
        // safe. Without a mark, an unclean store counts as incomplete. So with
        // `Durability::Power` the new file is synced once. Later writes replace
        // its content in place.
        mark.write();
        if mark.says.durability == Durability::Power {
            mark.file.sync_all()?;
            if let Some(directory) = path.parent() {
                File::open(directory)?.sync_all()?;
            }
        }
        Ok(mark)
    }

    /// Notes that facts up to `n` are committed and none is pending.
    pub(super) fn committed(&mut self, n: u64) {
        self.says.n = self.says.n.max(n);
        // Damage is mended by the next start.
        if self.says.condition != Condition::Damaged {
            self.says.condition = Condition::Good;
        }
        // A failed write leaves an older mark, which is safe.
        self.write();
    }

    /// Notes that commits fail. Returns whether that was written.
    pub(super) fn troubled(&mut self, condition: Condition) -> bool {
        self.says.condition = condition;
        self.write()
    }

    fn write(&self) -> bool {
        write_over(&self.file, self.says.line().as_bytes())
            .inspect_err(|error| {
                tracing::debug!(%error, "the store's mark could not be written");
            })
            .is_ok()
    }
}

/// Returns the boot id, which differs for each start of the system; `unknown`
/// if the system does not report one, so that all starts seem to be in one
/// boot.
pub(super) fn boot() -> String {
    proc::boot().unwrap_or_else(|| "unknown".into())
}
