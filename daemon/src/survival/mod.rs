//! SURV: how many of the lines that agents wrote are still in their files at
//! the next commit, after a day, and after a week. They are counted when a
//! client asks, from the log, stored contents and commits.
//!
//! - [`commits`]: which versions a commit settles, and what it contains.
//! - [`line`]: a file's versions under all its names.
//! - [`list`]: the sums.

mod commits;
mod line;
mod list;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError};

use touchmark_engine::history::Left;
use touchmark_engine::{Fact, Record};
use touchmark_proto::survival::Horizon;
use touchmark_proto::{Author, AuthorKind, Error, Millis, RelPath, SessionId};

use crate::context::{Context, Log, aside};
use crate::store::Reader;
use line::{Lines, Wanted};

pub(crate) use list::Agents;

const DAY: Millis = 86_400_000;
const WEEK: Millis = 7 * DAY;

/// A version that no commit has contained after this time is not judged at
/// one.
const COMMIT: Millis = 30 * DAY;

/// The number of records of the log that are read together.
const STEP: usize = 1_000;

/// What is left of versions' lines, by the version and the moment. Versions that
/// added no lines, or of which it is not known, have no entry.
type Judged = HashMap<(u64, Horizon), Left>;

/// One look at what is left.
pub(crate) struct Look {
    cx: Context,
    /// The log and the stored contents.
    log: Log,
}

impl Look {
    /// Opens the log.
    ///
    /// # Errors
    /// `storage`.
    pub(crate) fn open(cx: Context) -> Result<Self, Error> {
        Ok(Self { log: cx.log()?, cx })
    }

    /// Judges the versions among `records` that have reached an age.
    async fn by_time(
        &self,
        records: &[Record],
        horizon: Horizon,
        age: Millis,
        lines: &mut Lines<'_>,
        judged: &mut Judged,
    ) -> Result<(), Error> {
        let cutoff = self.cx.workspace.time.before(age);
        let ripe = records.partition_point(|record| record.time <= cutoff);
        for path in of_agents(&records[..ripe]) {
            let chain = lines.chain(&path).await?;
            let own = chain.versions.iter().filter(|version| {
                version.path == path && version.time <= cutoff && agent(&version.author).is_some()
            });
            let wanted: Vec<Wanted> = own
                .map(|version| Wanted {
                    version: version.clock.n,
                    until: self.cx.workspace.time.after(version.time, age),
                })
                .collect();
            let left = lines.left(&path, &wanted).await?;
            note(judged, horizon, &wanted, left);
        }
        Ok(())
    }

    /// Reads from the log, on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let log = Arc::clone(&self.log);
        aside(move || read(&log.lock().unwrap_or_else(PoisonError::into_inner))).await
    }
}

/// Notes what is left of versions.
fn note(judged: &mut Judged, horizon: Horizon, wanted: &[Wanted], left: Vec<Option<Left>>) {
    for (wanted, left) in wanted.iter().zip(left) {
        if let Some(left) = left.filter(|left| left.added > 0) {
            judged.insert((wanted.version, horizon), left);
        }
    }
}

/// Returns the session of an author; `None` if it is no agent's.
fn agent(author: &Author) -> Option<SessionId> {
    let session = author.session.clone();
    session.filter(|_| author.kind == AuthorKind::Agent)
}

/// Returns the paths of versions that agents may have written.
fn of_agents(records: &[Record]) -> BTreeSet<RelPath> {
    let versions = records.iter().filter_map(|record| match &record.fact {
        Fact::Version(fact) => Some(fact),
        _ => None,
    });
    versions
        // An author who is not known yet may be corrected later.
        .filter(|fact| {
            fact.author.kind == AuthorKind::Agent
                || !fact.candidates.is_empty()
                || fact.edit.is_some()
                || fact.command.is_some()
        })
        .map(|fact| fact.path.clone())
        .collect()
}
