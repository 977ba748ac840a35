//! `activity/list`.

use touchmark_engine::ledger::session_memory::Note;
use touchmark_engine::{Fact, Record, Refusal};
use touchmark_proto::activity::{Activities, Activity, ActivityKind, ActivityList};
use touchmark_proto::{Clock, Error};

use super::Past;
use super::at::Moment;

/// The default maximum number of rows (LIM-2).
const MOST: usize = 1_000;

/// How many facts are looked at in one step.
const STEP: usize = 5_000;

impl Past {
    /// Answers `activity/list`.
    pub(crate) async fn activity(&self, ask: ActivityList) -> Result<Activities, Error> {
        let since = self.edge(ask.since.as_ref(), "since").await?;
        let until = self.edge(ask.until.as_ref(), "until").await?;
        if ask.before.is_some_and(|before| before.epoch != self.epoch) {
            return Err(Error::invalid("`before` is of another life of the state"));
        }
        let limit = ask.limit.map_or(MOST, |limit| limit as usize);
        let (epoch, now) = (self.epoch, self.now);
        let answer = self.look(move |log| {
            let mut rows: Vec<Activity> = Vec::new();
            let mut at = ask.before.map_or(u64::MAX, |before| before.n);
            let oldest = log.untrimmed()?;
            'found: while rows.len() <= limit {
                let records = log.other_facts_before(at, STEP)?;
                let Some(last) = records.last().map(|record| record.n) else {
                    break;
                };
                for record in &records {
                    if since.is_some_and(|since| !since.is_before(record)) {
                        break 'found;
                    }
                    let wanted = until.is_none_or(|until| !until.is_before(record));
                    let row = row(epoch, record).filter(|row| {
                        let session = ask.session.as_ref();
                        wanted && session.is_none_or(|session| *session == row.session)
                    });
                    rows.extend(row);
                }
                at = last;
            }
            let more = match rows.len() > limit {
                true => rows.get(limit.saturating_sub(1)).map(|row| row.clock),
                false => None,
            };
            rows.truncate(limit);
            Ok(Activities {
                rows,
                complete_since: oldest.unwrap_or(now),
                more,
            })
        });
        answer.await?
    }
}

impl Moment {
    /// Returns whether a fact was recorded after this moment.
    fn is_before(self, record: &Record) -> bool {
        match self {
            Self::Fact(n) => n < record.n,
            Self::Time(time) => time < record.time,
        }
    }
}

/// Returns the row of a fact; `None` for facts of other kinds.
fn row(epoch: u64, record: &Record) -> Option<Activity> {
    let (kind, session) = match &record.fact {
        Fact::Read { session, .. } => (ActivityKind::Read, session),
        Fact::Lost { session, .. } => (ActivityKind::Overwrote, session),
        Fact::Refused { session, cause, .. } => {
            let kind = match cause {
                Refusal::Stale => ActivityKind::Stale,
                Refusal::NotRead => ActivityKind::NotRead,
                Refusal::Conflict => ActivityKind::Conflict,
            };
            (kind, session)
        }
        // How refusals were recorded earlier.
        Fact::Noted {
            session,
            note: Note::Saved(savings),
        } => {
            // Each refusal is counted in a note of its own.
            let kind = match (
                savings.stale_refused,
                savings.not_read_refused,
                savings.conflicts,
            ) {
                (1.., _, _) => ActivityKind::Stale,
                (_, 1.., _) => ActivityKind::NotRead,
                (_, _, 1..) => ActivityKind::Conflict,
                _ => return None,
            };
            (kind, session)
        }
        _ => return None,
    };
    let clock = |n| Clock { epoch, n };
    let (path, verdict, lost) = match &record.fact {
        Fact::Read { path, verdict, .. } => (Some(path), Some(*verdict), None),
        Fact::Lost { path, version, .. } => (Some(path), None, Some(clock(*version))),
        Fact::Refused { path, .. } => (path.as_ref(), None, None),
        _ => (None, None, None),
    };
    Some(Activity {
        clock: clock(record.n),
        time: record.time,
        session: session.clone(),
        label: None,
        kind,
        path: path.cloned(),
        verdict,
        lost,
    })
}
