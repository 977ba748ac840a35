//! What the daemon answered last, in a file beside the store.
//!
//! SQLite repairs a torn log by going back to the last transaction whose
//! checksums fit. That is right for a transaction nobody was told about, and
//! silent about the others: clocks would then name facts that are gone, and
//! their numbers would be given out again. So the number of the newest
//! committed fact is written here, after the commit and before the answer.
//! It is in the page cache, so it survives the process; it is not synced with
//! each commit, so after a power cut it says little, and the boot it names
//! tells that.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

use super::Durability;
use crate::system::open::write_over;
use crate::system::proc;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    /// Which run of the machine wrote it.
    pub(super) boot: String,
    /// The newest fact that was committed.
    pub(super) n: u64,
    /// How commits were made.
    pub(super) durability: Durability,
    /// How commits went.
    pub(super) condition: Condition,
}

/// How commits went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// All were made.
    Good,
    /// They failed, and facts waited in memory.
    Failing,
    /// One found that the store is damaged where no start looks.
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
    /// Every field has a fixed width, so that one small write replaces all.
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

    /// What the file says; `None` if there is none or it is not readable.
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
    /// Opens the file and says this.
    pub(super) fn open(path: &Path, says: Noted) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let mark = Self { file, says };
        // A mark that lags claims less than is there, which is safe; one
        // that is missing claims nothing, and all would count as lost. Synced
        // once it is there, it is written over in place.
        mark.write();
        if mark.says.durability == Durability::Power {
            mark.file.sync_all()?;
            if let Some(directory) = path.parent() {
                File::open(directory)?.sync_all()?;
            }
        }
        Ok(mark)
    }

    /// Facts up to `n` are committed, and nothing waits.
    pub(super) fn committed(&mut self, n: u64) {
        self.says.n = self.says.n.max(n);
        self.says.condition = Condition::Good;
        // As above.
        self.write();
    }

    /// Commits fail; says whether that is on record.
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

/// Tells this run of the machine from others; `unknown` where the system does
/// not say, then every start seems to be in the same run.
pub(super) fn boot() -> String {
    proc::boot().unwrap_or_else(|| "unknown".into())
}
