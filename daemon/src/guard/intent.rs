//! What a guarded write is about to do, recorded before it does it, so that
//! the next start can complete or revert it (GUARD-1).

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use touchmark_proto::{Hash, RelPath};

use crate::failpoint;
use crate::life::usable_directory;

/// How far a write has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Phase {
    /// The temporary file is being written; its name is the only trace.
    Preparing,
    /// The temporary file is about to take a name that nobody has.
    Creating,
    /// The temporary file and the target are about to be exchanged.
    Exchanging,
    /// The target is about to be written in place.
    Writing,
    /// The target is about to get the temporary name, and to go.
    Removing,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Intent {
    pub(super) phase: Phase,
    /// The path as it was asked for.
    pub(super) path: RelPath,
    /// Where it is written.
    pub(super) real: RelPath,
    /// The temporary file's name in the same directory.
    pub(super) temporary: String,
    /// The content to be replaced; `None` for no file.
    pub(super) base: Option<Hash>,
    /// The content to be written.
    pub(super) new: Hash,
    /// The kept copy of the base, by its id.
    pub(super) copy: Option<String>,
    /// The copy is to stay, for the session has not seen the base.
    pub(super) keep: bool,
}

/// The directory of intents.
#[derive(Debug)]
pub(super) struct Intents {
    directory: PathBuf,
    durable: bool,
    last: AtomicU64,
}

/// An intent on record.
#[derive(Debug)]
pub(super) struct Recorded<'i> {
    intents: &'i Intents,
    file: PathBuf,
    pub(super) intent: Intent,
}

impl Intents {
    pub(super) fn open(directory: PathBuf, durable: bool) -> Result<Self, crate::Error> {
        usable_directory(&directory)?;
        Ok(Self {
            directory,
            durable,
            last: AtomicU64::new(0),
        })
    }

    /// Records an intent.
    pub(super) fn record(&self, intent: Intent) -> io::Result<Recorded<'_>> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let file = self
            .directory
            .join(format!("{}-{number}.json", std::process::id()));
        let recorded = Recorded {
            intents: self,
            file,
            intent,
        };
        recorded.write()?;
        Ok(recorded)
    }

    /// What an earlier daemon left undone.
    pub(super) fn left(&self) -> Vec<Recorded<'_>> {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return Vec::new();
        };
        let mut left = Vec::new();
        for file in entries.flatten().map(|entry| entry.path()) {
            let read = |file: &Path| {
                let text = fs::read(file).ok()?;
                serde_json::from_slice(&text).ok()
            };
            if file.extension().is_some_and(|ext| ext == "json")
                && let Some(intent) = read(&file)
            {
                left.push(Recorded {
                    intents: self,
                    file,
                    intent,
                });
            } else {
                // Half written: what it speaks of has not begun.
                let _gone = fs::remove_file(file);
            }
        }
        left
    }
}

impl Recorded<'_> {
    /// Records that the next phase begins.
    pub(super) fn advance(&mut self, phase: Phase) -> io::Result<()> {
        self.intent.phase = phase;
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        let part = self.file.with_extension("part");
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&part)?;
        file.write_all(&serde_json::to_vec(&self.intent)?)?;
        if self.intents.durable {
            file.sync_data()?;
        }
        failpoint::pass("guard: an intent is half recorded");
        fs::rename(&part, &self.file)?;
        if self.intents.durable {
            File::open(&self.intents.directory)?.sync_data()?;
        }
        Ok(())
    }

    /// It is done, or nothing of it is left.
    pub(super) fn end(self) {
        if let Err(error) = fs::remove_file(&self.file) {
            // The next start finds nothing to do for it.
            tracing::warn!("{}: {error}", self.file.display());
        }
        // An exchange that is done is recognised. A write in place that comes
        // back after the power did could be taken for a torn one.
        if self.intents.durable
            && self.intent.phase == Phase::Writing
            && let Err(error) = File::open(&self.intents.directory).and_then(|d| d.sync_data())
        {
            tracing::warn!("{}: {error}", self.intents.directory.display());
        }
        failpoint::pass("guard: an intent is ended");
    }
}
