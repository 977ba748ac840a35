//! How much time daemons have seen pass, kept over restarts. Ages count by it
//! (LIM-3): a clock that was set, or that is wrong for one start, makes
//! nothing old.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use touchmark_proto::Millis;

/// Of the time that no daemon ran, at most so much counts for each start where
/// the machine was started anew: only the wall clock says how long it was.
pub(super) const AWAY: Millis = 86_400_000;

/// Spans kept at most. The two oldest become one, which only makes things
/// younger.
const SPANS: usize = 256;

/// What is kept in the state directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct History {
    /// Which run of the machine this was; `None` where the system does not say.
    pub(super) boot: Option<String>,
    /// What to add to that run's running time.
    pub(super) ahead: i64,
    /// The time when this was written; 0 if it never was.
    pub(super) seen: Millis,
    /// Spans of time that nobody saw pass, from and to, in order.
    skipped: Vec<(Millis, Millis)>,
}

impl History {
    /// What the file says; nothing if it does not.
    pub(super) fn read(file: &Path) -> Self {
        let text = fs::read(file).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Whole or not at all.
    pub(super) fn write(&self, file: &Path) -> std::io::Result<()> {
        let part: PathBuf = file.with_extension("part");
        fs::write(&part, serde_json::to_vec(self)?)?;
        fs::rename(part, file)
    }

    /// The time went from one moment to another without passing.
    pub(super) fn skip(&mut self, from: Millis, to: Millis) {
        if from >= to {
            return;
        }
        self.skipped.push((from, to));
        if self.skipped.len() > SPANS {
            let (from, _) = self.skipped.remove(0);
            if let Some(oldest) = self.skipped.first_mut() {
                oldest.0 = from;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn skipped(&self) -> &[(Millis, Millis)] {
        &self.skipped
    }

    /// The moment since which `age` has passed at `now`.
    pub(super) fn before(&self, now: Millis, age: Millis) -> Millis {
        let mut moment = now.saturating_sub(age);
        for (from, to) in self.skipped.iter().rev() {
            if *to <= moment {
                break;
            }
            moment = moment.saturating_sub(to.saturating_sub(*from));
        }
        moment
    }
}
