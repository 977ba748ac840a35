//! `modified/*`: reports each change to a session once (MOD-1 to MOD-3).

use touchmark_proto::changes::{
    Ack, Changes, ModifiedAck, ModifiedList, ModifiedTake, ModifiedTaken,
};
use touchmark_proto::daemon::Done;
use touchmark_proto::{Clock, Error, ErrorCode, ErrorData, RelPath, Reply, RequestId, SessionId};

use super::path_cursor;
use super::sessions::split;
use crate::base::Base;
use crate::cursor::{read_reported, write_path, write_reported};
use crate::effect::{Answer, Effect, Recall};
use crate::ledger::record::Fact;
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::view::{Listed, View};

impl Base {
    pub(crate) fn modified_take(&mut self, pending: &mut Pending, ask: &ModifiedTake) -> Answered {
        let only = match &ask.paths {
            None => None,
            Some(paths) => {
                let mut only = Vec::new();
                for path in paths {
                    match self.view().resolve(path) {
                        Ok(path) => only.push(path),
                        Err(error) => return Err(error.into()),
                    }
                }
                Some(only)
            }
        };
        if let Some(paths) = self.view().verify_paths(pending, &ask.session) {
            return Err(Stop::Read(paths, false).into());
        }
        let limit = ask.limit.unwrap_or(self.config.list_limit) as usize;
        let mut listed = self.view().listing(&ask.session);
        if let Some(only) = &only {
            listed.retain(|row| only.contains(&row.change.path));
        }
        let more = listed.len() > limit;
        listed.truncate(limit);
        let upto = match listed.last() {
            Some(last) if more => last.newest,
            _ => self.state.n,
        };
        let cursor = write_reported(self.state.clock(upto), only.as_deref());
        let reset = self.state.after_loss
            && self
                .state
                .sessions
                .get(&ask.session)
                .is_some_and(|session| !session.reset_told);
        if !ask.peek && ask.ack == Ack::Implicit {
            self.deliver(&ask.session, &listed);
        } else {
            for row in &listed {
                if let Some(episode) = row.episode {
                    let live = self.tracker.live_mut(&row.change.path);
                    live.save.shown.insert(ask.session.clone(), episode);
                }
            }
        }
        if !ask.peek && reset {
            self.record(Fact::ResetTold {
                session: ask.session.clone(),
            });
        }
        let (changes, lines) = split(listed, limit);
        Ok(Answer {
            reply: Reply::ModifiedTake(ModifiedTaken {
                changes,
                cursor,
                more: more.then_some(true),
                reset: reset.then_some(true),
                pending: pending.late(),
            }),
            lines,
            previews: Vec::new(),
        })
    }

    pub(crate) fn modified_ack(&mut self, ask: &ModifiedAck) -> Answered {
        let (clock, only) = read_reported(&ask.cursor)?;
        let upto = self.view().known_clock(clock)?;
        // Everything up to the cursor has arrived. Paths with a newer fact stay
        // pending.
        let mut listed = self.view().listing(&ask.session);
        listed.retain(|row| {
            row.newest <= upto
                && only
                    .as_ref()
                    .is_none_or(|only| only.contains(&row.change.path))
        });
        for row in &mut listed {
            // The middle of a save is not recorded as a fact. The session may
            // have received the cursor before the save began, so the save
            // counts as reported only if it was shown.
            let live = self.tracker.live_if_any(&row.change.path);
            let shown = live.and_then(|live| live.save.shown.remove(&ask.session));
            row.episode = row.episode.filter(|episode| shown == Some(*episode));
        }
        self.deliver(&ask.session, &listed);
        done(Reply::ModifiedAck(Done {}))
    }

    /// Records that changes were reported to a session.
    pub(super) fn deliver(&mut self, session: &SessionId, listed: &[Listed]) {
        if listed.is_empty() {
            return;
        }
        let paths: Vec<(RelPath, u64)> = listed
            .iter()
            .filter(|row| row.lost.is_none())
            .map(|row| (row.change.path.clone(), row.newest))
            .collect();
        let lost: Vec<u64> = listed.iter().filter_map(|row| row.lost).collect();
        for row in listed {
            if let Some(episode) = row.episode {
                let live = self.tracker.live_mut(&row.change.path);
                live.save.reported.insert(session.clone(), episode);
            }
        }
        self.record(Fact::Delivered {
            session: session.clone(),
            paths,
            lost,
        });
    }
}

impl View<'_> {
    pub(crate) fn modified_list(
        &self,
        request: RequestId,
        pending: &mut Pending,
        ask: &ModifiedList,
    ) -> Answered {
        let limit = ask.limit.unwrap_or(self.config.list_limit) as usize;
        let cursor = path_cursor(ask.cursor.as_deref())?;
        if let Some(session) = &ask.session
            && let Some(paths) = self.verify_paths(pending, session)
        {
            return Err(Stop::Read(paths, false).into());
        }
        let after = match ask.since {
            Some(clock) => match self.known_clock(clock) {
                Ok(n) => Some(n),
                Err(error) => return Err(error.into()),
            },
            None => None,
        };
        let clock = self.state.clock(self.state.n);
        if let (Some(session), None) = (&ask.session, after) {
            let mut listed = self.listing(session);
            listed.sort_by(|a, b| a.change.path.cmp(&b.change.path));
            listed.retain(|row| {
                cursor
                    .as_ref()
                    .is_none_or(|cursor| row.change.path > *cursor)
            });
            let more = listed.len() > limit;
            let (changes, lines) = split(listed, limit);
            let more = more
                .then(|| changes.last().map(|change| write_path(&change.path)))
                .flatten();
            return Ok(Answer {
                reply: Reply::ModifiedList(Changes {
                    changes,
                    clock,
                    more,
                    pending: pending.late(),
                }),
                lines,
                previews: Vec::new(),
            });
        }
        Err(Stop::Passed(Effect::Recall {
            request,
            recall: Recall::Since {
                after: after.unwrap_or(0),
                cursor,
                limit,
                session: ask.session.clone(),
                clock,
            },
        })
        .into())
    }

    /// Returns the number of the fact that a clock names.
    pub(crate) fn known_clock(&self, clock: Clock) -> Result<u64, Error> {
        if clock.epoch == self.state.epoch && clock.n <= self.state.n {
            return Ok(clock.n);
        }
        Err(Error::new(
            ErrorCode::UnknownClock,
            format!("the clock {clock} is of another epoch, or in the future"),
        )
        .with(ErrorData {
            clock: Some(clock),
            ..ErrorData::default()
        }))
    }

    /// Returns the paths that a query about all of a session's files has to
    /// read first, or `None`.
    pub(super) fn verify_paths(
        &self,
        pending: &mut Pending,
        session: &SessionId,
    ) -> Option<Vec<RelPath>> {
        if !pending.verify || pending.rechecked {
            return None;
        }
        pending.rechecked = true;
        let paths: Vec<RelPath> = self
            .state
            .sessions
            .get(session)?
            .files
            .keys()
            .cloned()
            .collect();
        (!paths.is_empty()).then_some(paths)
    }
}
