//! Missed events of a subscriber, from the log.

use touchmark_engine::{Fact, State, recall};
use touchmark_proto::events::Happening;
use touchmark_proto::{Clock, Error, ErrorCode, ErrorData, Hash};

use crate::store::Reader;

/// The most facts that are replayed. A client that missed more is better served
/// by a list.
const MOST: usize = 20_000;

/// One missed event, and the previous content, from which its lines are
/// counted.
pub(super) struct Missed {
    pub(super) clock: Clock,
    pub(super) happening: Happening,
    pub(super) before: Option<Hash>,
}

fn unknown_clock(clock: Clock, reason: &str) -> Error {
    Error::new(ErrorCode::UnknownClock, format!("{clock}: {reason}")).with(ErrorData {
        clock: Some(clock),
        ..ErrorData::default()
    })
}

/// Checks that a clock is one of the current epoch.
///
/// # Errors
/// `unknownClock` for another epoch, and for a clock later than the newest
/// fact.
pub(super) fn check(since: Clock, state: &State) -> Result<(), Error> {
    if since.epoch != state.epoch {
        return Err(unknown_clock(since, "a clock of another epoch"));
    }
    if since.n > state.n {
        return Err(unknown_clock(since, "this clock is in the future"));
    }
    Ok(())
}

/// Checks that all facts since a clock are still in the log.
///
/// # Errors
/// `unknownClock` for a clock before the oldest fact of the log (DUR-2),
/// `storage`.
pub(super) fn check_kept(log: &Reader, since: Clock) -> Result<(), Error> {
    match log.oldest()? {
        Some(pruned) if since.n < pruned => {
            Err(unknown_clock(since, "older than the facts that are stored"))
        }
        _ => Ok(()),
    }
}

/// Returns the events of all facts after `since` up to `until`, in order.
///
/// # Errors
/// `unknownClock` for a clock before the oldest fact of the log, and if too
/// much was missed; `storage`.
pub(super) fn missed(
    log: &Reader,
    state: &State,
    since: Clock,
    until: u64,
) -> Result<Vec<Missed>, Error> {
    check_kept(log, since)?;
    let records = log.facts_after(since.n, MOST + 1)?;
    if records.len() > MOST {
        return Err(unknown_clock(since, "too many facts since"));
    }
    let missed = records
        .iter()
        .take_while(|record| record.n <= until)
        .filter_map(|record| {
            let mut happening = recall::happening(since.epoch, record)?;
            state.label_happening(&mut happening);
            Some(Missed {
                clock: Clock {
                    epoch: since.epoch,
                    n: record.n,
                },
                happening,
                before: match &record.fact {
                    Fact::Version(version) => version.before,
                    _ => None,
                },
            })
        });
    Ok(missed.collect())
}
