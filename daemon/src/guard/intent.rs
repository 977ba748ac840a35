//! Records what a guarded write is about to do before it does it, so that the
//! next start can complete or revert it (GUARD-1).

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use touchmark_engine::WriteOrder;
use touchmark_proto::{Hash, RelPath};

use crate::failpoint;
use crate::life::usable_directory;
use crate::system::open::private;

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
    /// The content to be written, in base64, while it is written in place;
    /// `None` in the other phases, and if the content must not be stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<String>,
}

impl Intent {
    /// Returns the order of the write that this intent belongs to, as far as
    /// the intent contains it.
    pub(super) fn order(&self) -> WriteOrder {
        WriteOrder {
            path: self.path.clone(),
            ticket: 0,
            base: self.base,
            bytes: [].into(),
            hash: self.new,
            // The copy that has to stay was made before the exchange.
            keep_base: false,
            base_author: None,
            create_directories: false,
        }
    }
}

/// The directory of recorded intents.
#[derive(Debug)]
pub(super) struct Intents {
    directory: PathBuf,
    durable: bool,
    last: AtomicU64,
    /// Files of ended intents, which are empty. To create and remove one for
    /// each write would take longer than the write.
    free: Mutex<Vec<(PathBuf, File)>>,
}

/// An intent with its file on disk. The file has one line for each phase; the
/// last complete one counts.
#[derive(Debug)]
pub(super) struct Recorded<'i> {
    intents: &'i Intents,
    path: PathBuf,
    /// `None` if an earlier daemon has recorded the intent.
    file: Option<File>,
    pub(super) intent: Intent,
}

impl Intents {
    pub(super) fn open(directory: PathBuf, durable: bool) -> Result<Self, crate::Error> {
        usable_directory(&directory)?;
        Ok(Self {
            directory,
            durable,
            last: AtomicU64::new(0),
            free: Mutex::default(),
        })
    }

    /// Records an intent on disk.
    pub(super) fn record(&self, intent: Intent) -> io::Result<Recorded<'_>> {
        let free = self.free().pop();
        let (path, file) = free.map_or_else(|| self.create(), Ok)?;
        failpoint::pass("guard: an intent is half recorded");
        let mut recorded = Recorded {
            intents: self,
            path,
            file: Some(file),
            intent,
        };
        recorded.write()?;
        Ok(recorded)
    }

    fn create(&self) -> io::Result<(PathBuf, File)> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}.json", std::process::id());
        let path = self.directory.join(name);
        let mut options = private();
        let file = options.append(true).create(true).open(&path)?;
        file.set_len(0)?;
        if self.durable {
            File::open(&self.directory)?.sync_data()?;
        }
        Ok((path, file))
    }

    fn free(&self) -> MutexGuard<'_, Vec<(PathBuf, File)>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the intents that an earlier daemon recorded and did not end.
    pub(super) fn left(&self) -> Vec<Recorded<'_>> {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return Vec::new();
        };
        let mut left = Vec::new();
        for path in entries.flatten().map(|entry| entry.path()) {
            let read = |path: &Path| {
                let text = fs::read(path).ok()?;
                let mut lines = text.rsplit(|byte| *byte == b'\n');
                lines.find_map(|line| serde_json::from_slice(line).ok())
            };
            if path.extension().is_some_and(|ext| ext == "json")
                && let Some(intent) = read(&path)
            {
                left.push(Recorded {
                    intents: self,
                    path,
                    file: None,
                    intent,
                });
            } else {
                // The record is incomplete, so its write has not begun.
                let _gone = fs::remove_file(path);
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

    fn write(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let mut line = serde_json::to_vec(&self.intent)?;
        line.push(b'\n');
        file.write_all(&line)?;
        match self.intents.durable {
            true => file.sync_data(),
            false => Ok(()),
        }
    }

    /// Removes the record of a write that was completed or reverted.
    pub(super) fn end(self) {
        let removed = match &self.file {
            Some(file) => file.set_len(0),
            None => fs::remove_file(&self.path),
        };
        // The next start recognises a completed exchange. But if the record of
        // a completed write in place reappeared after a power failure, the
        // write could be treated as a torn one. So the removal is made durable.
        let ended = removed.and_then(|()| match &self.file {
            _ if !self.intents.durable || self.intent.phase != Phase::Writing => Ok(()),
            Some(file) => file.sync_all(),
            None => File::open(&self.intents.directory)?.sync_data(),
        });
        match ended {
            Ok(()) => self
                .intents
                .free()
                .extend(self.file.map(|file| (self.path, file))),
            // If the record stays, the next start finds nothing to do for it.
            Err(error) => tracing::warn!("{}: {error}", self.path.display()),
        }
        failpoint::pass("guard: an intent is ended");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn intent(path: &str) -> Intent {
        let path = RelPath::new(path.as_bytes()).unwrap();
        Intent {
            phase: Phase::Preparing,
            real: path.clone(),
            path,
            temporary: "t".into(),
            base: None,
            new: Hash::of(b"new"),
            copy: None,
            keep: false,
            bytes: None,
        }
    }

    #[test]
    fn guard1_the_last_complete_line_of_a_reused_file_counts() {
        let directory = tempfile::tempdir().unwrap();
        let open = || Intents::open(directory.path().join("intents"), true).unwrap();
        let left = || -> Vec<(String, Phase)> {
            let intents = open();
            let left = intents.left();
            left.iter()
                .map(|one| (one.intent.path.to_string(), one.intent.phase))
                .collect()
        };
        let intents = open();
        let mut first = intents.record(intent("a long name of a file")).unwrap();
        first.advance(Phase::Exchanging).unwrap();
        // Another write at the same time.
        let second = intents.record(intent("b")).unwrap();
        first.end();
        assert_eq!(left(), [("b".to_owned(), Phase::Preparing)]);
        second.end();
        // A file that was removed as an empty one by the look above is not
        // written to again.
        let intents = open();
        intents
            .record(intent("a long name of a file"))
            .unwrap()
            .end();
        let mut short = intents.record(intent("c")).unwrap();
        assert_eq!(left(), [("c".to_owned(), Phase::Preparing)]);
        short.advance(Phase::Exchanging).unwrap();
        // The power fails, or the disk is full, within the next line.
        let line = serde_json::to_vec(&intent("c")).unwrap();
        let file = short.file.as_mut().unwrap();
        file.write_all(&line[..line.len() / 2]).unwrap();
        assert_eq!(left(), [("c".to_owned(), Phase::Exchanging)]);
    }
}
