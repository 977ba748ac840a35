//! The time that daemons have on record as passed, stored over restarts. Ages
//! are measured by it (LIM-3), so that a clock that was set, or is wrong for
//! one start, makes nothing old.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use touchmark_proto::Millis;

/// The maximum time without a daemon that counts at a start after the machine
/// was restarted, since only the wall clock measures that time. In
/// milliseconds.
pub(super) const AWAY: Millis = 86_400_000;

/// The maximum number of stored spans. Beyond it the two oldest are merged,
/// which only makes things younger.
const SPANS: usize = 256;

/// The content of the file in the state directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct History {
    /// The id of the machine's run; `None` if the system does not report one.
    pub(super) boot: Option<String>,
    /// The milliseconds to add to the running time of that run.
    pub(super) ahead: i64,
    /// The time when the file was written; 0 if it never was.
    pub(super) seen: Millis,
    /// Spans of skipped time, from and to, in order.
    skipped: Vec<(Millis, Millis)>,
}

impl History {
    /// Returns the file's content; the default if it cannot be read.
    pub(super) fn read(file: &Path) -> Self {
        let text = fs::read(file).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Writes the file atomically.
    pub(super) fn write(&self, file: &Path) -> std::io::Result<()> {
        let part: PathBuf = file.with_extension("part");
        fs::write(&part, serde_json::to_vec(self)?)?;
        fs::rename(part, file)
    }

    /// Notes that the time went from one moment to another without passing.
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

    /// Returns the moment at which `age` has passed since `time`.
    pub(super) fn after(&self, time: Millis, age: Millis) -> Millis {
        let mut moment = time.saturating_add(age);
        for (from, to) in &self.skipped {
            if *from >= moment {
                break;
            }
            let from = (*from).max(time);
            moment = moment.saturating_add(to.saturating_sub(from));
        }
        moment
    }

    /// Returns the moment since which `age` has passed at `now`.
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
