//! Which lines of agents' changes were kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use touchmark_engine::history::LineName;
use touchmark_proto::{Error, ErrorCode, ErrorData, RelPath};

/// A line as it is stored: the numbers of the facts that turned it and that it
/// came with, and its place among that one's lines.
type Named = (u64, u64, usize);

/// The lines that were kept, by file.
#[derive(Debug)]
pub(crate) struct Kept {
    file: PathBuf,
    durable: bool,
    lines: Mutex<BTreeMap<RelPath, BTreeSet<Named>>>,
}

impl Kept {
    /// Those of a workspace, whose state is in this directory. What cannot be
    /// read was not kept: it is shown again.
    pub(crate) fn open(state: &Path, durable: bool) -> Self {
        let file = state.join("review.json");
        let read = || serde_json::from_slice(&fs::read(&file).ok()?).ok();
        Self {
            lines: Mutex::new(read().unwrap_or_default()),
            file,
            durable,
        }
    }

    /// Those of a file, by where its versions are in its history.
    pub(super) fn of(
        &self,
        path: &RelPath,
        place: impl Fn(u64) -> Option<usize>,
    ) -> BTreeSet<LineName> {
        let lines = self.lines();
        let own = lines.get(path).into_iter().flatten();
        own.filter_map(|(by, of, at)| {
            Some(LineName {
                by: place(*by)?,
                of: place(*of)?,
                place: *at,
            })
        })
        .collect()
    }

    pub(super) fn add(&self, path: &RelPath, names: impl Iterator<Item = Named>) {
        self.lines().entry(path.clone()).or_default().extend(names);
    }

    /// Stores them.
    ///
    /// # Errors
    /// `storage`.
    pub(super) fn write(&self) -> Result<(), Error> {
        self.try_write().map_err(|error| {
            let cause = error.to_string();
            let said = format!("what was kept cannot be stored: {cause}");
            Error::new(ErrorCode::Storage, said).with(ErrorData {
                cause: Some(cause),
                ..ErrorData::default()
            })
        })
    }

    fn try_write(&self) -> io::Result<()> {
        let part = self.file.with_extension("part");
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&part)?;
        file.write_all(&serde_json::to_vec(&*self.lines())?)?;
        if self.durable {
            file.sync_data()?;
        }
        fs::rename(&part, &self.file)
    }

    fn lines(&self) -> MutexGuard<'_, BTreeMap<RelPath, BTreeSet<Named>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
