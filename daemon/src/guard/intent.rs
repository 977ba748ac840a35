//! Records what a guarded write is about to do before it does it, so that the
//! next start can complete or revert it (GUARD-1).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use touchmark_proto::{Hash, RelPath};

use crate::failpoint;
use crate::life::usable_directory;
use crate::system::open::write_private;

/// The progress of a guarded write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Phase {
    /// The temporary file is being written. Only its name identifies it.
    Preparing,
    /// The temporary file is about to take a name that no file has.
    Creating,
    /// The temporary file and the target are about to be exchanged.
    Exchanging,
    /// The target is about to be written in place.
    Writing,
    /// The target is about to be renamed to the temporary name and then
    /// removed.
    Removing,
}

/// The record of one guarded write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Intent {
    pub(super) phase: Phase,
    /// The path that was requested.
    pub(super) path: RelPath,
    /// The path that is written, with symbolic links resolved.
    pub(super) real: RelPath,
    /// The name of the temporary file, in the directory of `real`.
    pub(super) temporary: String,
    /// The hash of the content to be replaced; `None` for no file.
    pub(super) base: Option<Hash>,
    /// The hash of the content to be written.
    pub(super) new: Hash,
    /// The id of the stored copy of the base; `None` if there is no copy.
    pub(super) copy: Option<String>,
    /// Whether the copy is to stay, since the session has not seen the base.
    pub(super) keep: bool,
}

/// The directory of recorded intents.
#[derive(Debug)]
pub(super) struct Intents {
    directory: PathBuf,
    durable: bool,
    last: AtomicU64,
}

/// An intent with its file on disk.
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

    /// Records an intent on disk.
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

    /// Returns the intents that an earlier daemon recorded and did not end.
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
                // The record is incomplete, so its write has not begun.
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
        let bytes = serde_json::to_vec(&self.intent)?;
        write_private(&part, &bytes, self.intents.durable)?;
        failpoint::pass("guard: an intent is half recorded");
        fs::rename(&part, &self.file)?;
        if self.intents.durable {
            File::open(&self.intents.directory)?.sync_data()?;
        }
        Ok(())
    }

    /// Removes the record of a write that was completed or reverted.
    pub(super) fn end(self) {
        if let Err(error) = fs::remove_file(&self.file) {
            // If the record stays, the next start finds nothing to do for it.
            tracing::warn!("{}: {error}", self.file.display());
        }
        // The next start recognises a completed exchange. But if the record of
        // a completed write in place reappeared after a power failure, the
        // write could be treated as a torn one. So the removal is made durable.
        if self.intents.durable
            && self.intent.phase == Phase::Writing
            && let Err(error) = File::open(&self.intents.directory).and_then(|d| d.sync_data())
        {
            tracing::warn!("{}: {error}", self.intents.directory.display());
        }
        failpoint::pass("guard: an intent is ended");
    }
}
