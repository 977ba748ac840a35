//! What installations created in addition to the hooks. It is stored with the
//! state, so that removing the hooks restores the previous settings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use touchmark_client::Environment;

use super::file::SettingsFile;
use super::made::Made;
use crate::output::Outcome;

/// What one installation created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    /// Whether it created the file itself.
    pub(super) file: bool,
    /// The directories that it created for the file, the innermost first.
    pub(super) directories: Vec<PathBuf>,
    /// What it created in the file.
    pub(super) made: Made,
}

/// The records of this user.
#[derive(Clone, Debug)]
pub(super) struct Records {
    path: PathBuf,
}

impl Records {
    pub(super) fn of(environment: &Environment) -> Self {
        Self {
            path: environment.base.state.join("touchmark/hooks.json"),
        }
    }

    /// Returns what was created for a file. Records that cannot be read are
    /// ignored, since hooks are found without them.
    pub(super) fn read(&self, of: &Path) -> Option<Record> {
        self.all().remove(&of.to_string_lossy().into_owned())
    }

    /// Returns the files that something was added to.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.all().into_keys().map(PathBuf::from).collect()
    }

    /// Returns the directories that were created for any file.
    pub(super) fn directories(&self) -> BTreeSet<PathBuf> {
        let records = self.all().into_values();
        records.flat_map(|record| record.directories).collect()
    }

    /// Stores the record of a file; `None` removes it.
    ///
    /// # Errors
    /// A system error.
    pub(super) fn write(&self, of: &Path, record: Option<&Record>) -> Outcome {
        let target = SettingsFile::of(&self.path, None)?;
        let before = target.read()?;
        let mut all = parsed(before.as_deref());
        let name = of.to_string_lossy().into_owned();
        let changed = match record {
            Some(record) => all.insert(name, record.clone()).as_ref() != Some(record),
            None => all.remove(&name).is_some(),
        };
        if !changed {
            return Ok(());
        }
        let text = match all.is_empty() {
            true => None,
            false => Some(serde_json::to_vec_pretty(&all).map_err(anyhow::Error::from)?),
        };
        target.replace(before.as_deref(), text.as_deref())
    }

    fn all(&self) -> BTreeMap<String, Record> {
        let target = SettingsFile::of(&self.path, None).and_then(|target| target.read());
        parsed(target.ok().flatten().as_deref())
    }
}

fn parsed(bytes: Option<&[u8]>) -> BTreeMap<String, Record> {
    serde_json::from_slice(bytes.unwrap_or_default()).unwrap_or_default()
}
