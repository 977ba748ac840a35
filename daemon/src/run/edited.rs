//! What was edited after a moment, from the log (CHK-1).

use std::collections::{BTreeMap, BTreeSet};

use touchmark_engine::{Edited, Fact, Moment, Record};
use touchmark_proto::{Clock, Error, Hash, RelPath};

use super::replay::check_kept;
use crate::store::{Reader, StoreError};

/// The number of facts of one path that are read together, in the search for
/// its content at a moment.
const STEP: usize = 16;

/// Returns the versions after a moment, and the content at that moment of each
/// of their paths and of each path in `also`.
///
/// # Errors
/// `unknownClock` for a moment before the oldest stored fact, `storage`.
pub(super) fn edited(
    log: &Reader,
    epoch: u64,
    moment: Moment,
    paths: Option<&[RelPath]>,
    also: &[RelPath],
) -> Result<Edited, Error> {
    let after = match moment {
        Moment::After(n) => n,
        Moment::Time(time) => log.last_before_time(time.saturating_add(1))?.unwrap_or(0),
    };
    check_kept(log, Clock { epoch, n: after })?;
    let wanted: Option<BTreeSet<&RelPath>> = paths.map(|paths| paths.iter().collect());
    let versions: Vec<Record> = log
        .versions_after(after)?
        .into_iter()
        .filter(|record| {
            let path = record.fact.version_path();
            wanted
                .as_ref()
                .is_none_or(|wanted| path.is_some_and(|path| wanted.contains(path)))
        })
        .collect();
    let mut then = BTreeMap::new();
    let changed: BTreeSet<&RelPath> = versions
        .iter()
        .filter_map(|record| record.fact.version_path())
        .chain(also)
        .collect();
    for path in changed {
        if let Some(hash) = held_at(log, path, moment)? {
            then.insert(path.clone(), hash);
        }
    }
    Ok(Edited { versions, then })
}

/// Returns the content of a path at a moment; `None` if its log begins later.
fn held_at(
    log: &Reader,
    path: &RelPath,
    moment: Moment,
) -> Result<Option<Option<Hash>>, StoreError> {
    let mut before = match moment {
        Moment::After(n) => Some(n.saturating_add(1)),
        Moment::Time(_) => None,
    };
    let gap = log.unreadable(path, before)?;
    loop {
        let records = log.history(path, before, STEP)?;
        for record in &records {
            // The fact that cannot be read may be the one that has the content
            // at the moment.
            if gap.is_some_and(|gap| gap > record.n) {
                return Ok(None);
            }
            if matches!(moment, Moment::Time(time) if record.time > time) {
                continue;
            }
            match &record.fact {
                Fact::Baseline { held, .. } => return Ok(Some(held.hash)),
                // A correction refers to an older version, and an unobserved
                // version was never read from disk.
                Fact::Version(fact) if fact.amends.is_none() && !fact.unobserved => {
                    return Ok(Some(fact.held.hash));
                }
                _ => {}
            }
        }
        match records.last() {
            Some(oldest) if records.len() == STEP => before = Some(oldest.n),
            _ => return Ok(None),
        }
    }
}
