//! Up to where versions and commits were looked at. The file only saves work:
//! which version was judged is known from the facts. So a file that is lost,
//! or older than the facts, has no other effect.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use touchmark_engine::Fact;
use touchmark_proto::survival::Horizon;

use crate::git::reflog::Place;
use crate::store::{Reader, StoreError};
use crate::system::open::replace_private;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Progress {
    /// The epoch of the numbers below.
    epoch: u64,
    /// Of facts about survival up to this one, the marks below are no older.
    seen: u64,
    /// All versions up to this one were judged after a day, as far as that was
    /// possible.
    pub(super) day: u64,
    /// All versions up to this one were judged after a week.
    pub(super) week: u64,
    /// The commits up to here were looked at.
    pub(super) commits: Place,
    /// What was judged according to facts after `seen`.
    #[serde(skip)]
    known: HashSet<(u64, Horizon)>,
}

impl Progress {
    /// Reads the file, and the facts that are newer.
    pub(super) fn open(file: &Path, epoch: u64, log: &Reader) -> Result<Self, StoreError> {
        let read = || serde_json::from_slice(&std::fs::read(file).ok()?).ok();
        let stored: Option<Self> = read();
        let mut progress = stored
            .filter(|stored| stored.epoch == epoch)
            .unwrap_or_else(|| Self {
                epoch,
                ..Self::default()
            });
        for record in log.survivals_after(progress.seen)? {
            progress.seen = record.n;
            if let Fact::Survival {
                version, horizon, ..
            } = record.fact
                && horizon != Horizon::Commit
                && version > progress.mark(horizon)
            {
                progress.known.insert((version, horizon));
            }
        }
        Ok(progress)
    }

    /// Returns whether a version is known to have been judged.
    pub(super) fn is_known(&self, version: u64, horizon: Horizon) -> bool {
        self.known.contains(&(version, horizon))
    }

    /// Returns the version up to which all were judged.
    pub(super) fn mark(&self, horizon: Horizon) -> u64 {
        match horizon {
            Horizon::Day => self.day,
            Horizon::Week => self.week,
            Horizon::Commit => 0,
        }
    }

    pub(super) fn set_mark(&mut self, horizon: Horizon, version: u64) {
        match horizon {
            Horizon::Day => self.day = version,
            Horizon::Week => self.week = version,
            Horizon::Commit => {}
        }
        self.known
            .retain(|(known, of)| *of != horizon || *known > version);
    }

    /// Writes the file. The facts that it rests on are committed.
    pub(super) fn write(&self, file: &Path) {
        let written = serde_json::to_vec(self)
            .map_err(Into::into)
            .and_then(|bytes| replace_private(file, &bytes, false));
        if let Err(error) = written {
            tracing::debug!("{}: {error}", file.display());
        }
    }
}
