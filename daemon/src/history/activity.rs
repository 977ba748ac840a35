//! `activity/list`.

use std::collections::BTreeSet;

use touchmark_engine::ledger::session_memory::Note;
use touchmark_engine::{Fact, Record, Refusal};
use touchmark_proto::activity::{Activities, Activity, ActivityKind, ActivityList};
use touchmark_proto::{Clock, Error, Hash, Millis, RelPath};

use super::Past;
use super::at::Moment;
use crate::losses::{Lost, Replacement};
use crate::store::Reader;

/// The default maximum number of rows (LIM-2).
const MOST: usize = 1_000;

/// How many facts are looked at in one step.
const STEP: usize = 5_000;

impl Past {
    /// Answers `activity/list`.
    pub(crate) async fn activity(&self, ask: ActivityList) -> Result<Activities, Error> {
        let since = self.edge(ask.since.as_ref(), "since").await?;
        let until = self.edge(ask.until.as_ref(), "until").await?;
        if ask
            .before
            .is_some_and(|before| before.epoch != self.cx.epoch)
        {
            return Err(Error::invalid("`before` is of another life of the state"));
        }
        let limit = ask.limit.map_or(MOST, |limit| limit as usize);
        let kinds = ask.kinds.as_deref().unwrap_or(ActivityKind::OF_FILES);
        let kinds = kinds.to_vec();
        let before = ask.before.map_or(u64::MAX, |before| before.n);
        let of_session = move |row: &Activity| {
            let session = ask.session.as_ref();
            session.is_none_or(|session| row.session.as_ref() == Some(session))
        };
        let mut actions = self.actions(&kinds).await?;
        actions.retain(|row| {
            of_session(row)
                && row.clock.n < before
                && since.is_none_or(|since| since.precedes(row.clock.n, row.time))
                && until.is_none_or(|until| !until.precedes(row.clock.n, row.time))
        });
        let is_of_files = ActivityKind::OF_FILES
            .iter()
            .any(|kind| kinds.contains(kind));
        let (epoch, now) = (self.cx.epoch, self.cx.now);
        let answer = self.look(move |log| {
            let mut rows: Vec<Activity> = Vec::new();
            let mut at = before;
            let oldest = log.untrimmed()?;
            'found: while is_of_files && rows.len() <= limit {
                let records = log.other_facts_before(at, STEP)?;
                let Some(last) = records.last().map(|record| record.n) else {
                    break;
                };
                for record in &records {
                    if since.is_some_and(|since| !since.precedes(record.n, record.time)) {
                        break 'found;
                    }
                    let wanted = until.is_none_or(|until| !until.precedes(record.n, record.time));
                    let row = row(epoch, record)
                        .filter(|row| wanted && of_session(row) && kinds.contains(&row.kind));
                    // Contents are compared only for rows that are asked for.
                    rows.extend(row.filter(|_| {
                        let replacement = Replacement::of_fact(log, &record.fact);
                        !replacement.is_some_and(|one| is_nothing(log, &one))
                    }));
                }
                at = last;
            }
            rows.extend(actions);
            // Git tells the second only, so its operations come after the facts
            // of that second.
            let is_git = |row: &Activity| row.kind == ActivityKind::Git;
            rows.sort_by_key(|row| std::cmp::Reverse((row.clock.n, is_git(row), row.time)));
            let more = match rows.len() > limit {
                true => rows.get(limit.saturating_sub(1)).map(|row| row.clock),
                false => None,
            };
            rows.truncate(limit);
            Ok::<_, Error>(Activities {
                rows,
                complete_since: oldest.unwrap_or(now),
                more,
            })
        });
        let mut answer = answer.await??;
        self.leave_out(&mut answer.rows).await?;
        Ok(answer)
    }

    /// Leaves out the versions that were replaced unseen, and of which nothing
    /// is lost (ATTR-10).
    async fn leave_out(&self, rows: &mut Vec<Activity>) -> Result<(), Error> {
        let replaced: Vec<(u64, RelPath, u64)> = rows
            .iter()
            .filter_map(|row| Some((row.clock.n, row.path.clone()?, row.lost?.n)))
            .collect();
        if replaced.is_empty() {
            return Ok(());
        }
        let known = self.cx.inside.look(move |state| {
            let known = replaced.into_iter();
            let known = known.filter_map(|(row, path, version)| {
                Some((row, Replacement::of(state, &path, version)?))
            });
            known.collect::<Vec<_>>()
        });
        let known = known.await.unwrap_or_default();
        let nothing = self.look(move |log| {
            let known = known.iter();
            let nothing = known.filter(|(_, replacement)| is_nothing(log, replacement));
            nothing.map(|(row, _)| *row).collect::<BTreeSet<u64>>()
        });
        let nothing = nothing.await?;
        rows.retain(|row| row.lost.is_none() || !nothing.contains(&row.clock.n));
        Ok(())
    }
}

impl Moment {
    /// Returns whether the fact `n` of the time `at` was recorded after this
    /// moment.
    fn precedes(self, n: u64, at: Millis) -> bool {
        match self {
            Self::Fact(fact) => fact < n,
            Self::Time(time) => time < at,
        }
    }
}

/// Returns whether nothing is lost of a version that was replaced.
fn is_nothing(log: &Reader, replacement: &Replacement) -> bool {
    let content = |hash: &Hash| log.content(hash).ok().flatten();
    replacement.lost(content) == Lost::Nothing
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
        session: Some(session.clone()),
        label: None,
        kind,
        path: path.cloned(),
        verdict,
        lost,
        name: None,
        text: None,
        files: None,
        paths: None,
        begun: None,
        doubt: None,
    })
}
