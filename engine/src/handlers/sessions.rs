//! `session/*`: opening, closing and listing sessions, and cuts of their
//! contexts.

use touchmark_proto::daemon::Done;
use touchmark_proto::events::SessionPhase;
use touchmark_proto::sessions::{
    Evicted, SessionClose, SessionCompacted, SessionList, SessionOpen, SessionOpened, SessionRow,
    SessionRows, SessionTruncated,
};
use touchmark_proto::{Change, Reply, RequestId, SessionId};

use super::commands::WindowSwept;
use crate::base::Base;
use crate::effect::Answer;
use crate::ledger::record::Fact;
use crate::parts::Core;
use crate::requests::limits::not_too_long;
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::view::{Listed, View};

impl Core {
    /// Adds what one session has seen to another session's knowledge. Does
    /// nothing if one of the two is not known.
    pub(crate) fn inherit(&mut self, session: &SessionId, from: &SessionId, over: bool) {
        let known = |name| self.base.state.sessions.contains_key(name);
        if session == from || !known(session) || !known(from) {
            return;
        }
        self.base.record(Fact::Inherited {
            session: session.clone(),
            from: from.clone(),
        });
        if over {
            self.close_session(from, false, &WindowSwept::default());
        }
    }

    /// Answers `session/close`. If a command of the session runs, the shell
    /// first looks at what it has done.
    pub(crate) fn session_close(
        &mut self,
        request: RequestId,
        pending: &Pending,
        ask: &SessionClose,
    ) -> Answered {
        let mut open = self.base.state.commands.values();
        let runs = open.any(|window| window.fact.workspace && window.fact.session == ask.session);
        if runs && pending.learned.is_none() {
            return Err(Stop::Learn(self.sweep()).into());
        }
        let swept = WindowSwept::of(request, pending);
        self.close_session(&ask.session, ask.forget, &swept);
        done(Reply::SessionClose(Done {}))
    }

    fn close_session(&mut self, session: &SessionId, forget: bool, swept: &WindowSwept) {
        let Some(known) = self.base.state.sessions.get(session) else {
            return;
        };
        let was_open = known.open;
        let edits: Vec<u64> = self
            .base
            .state
            .edits
            .values()
            .filter(|edit| edit.fact.session == *session)
            .map(|edit| edit.fact.edit)
            .collect();
        for edit in edits {
            self.abort(edit);
        }
        let commands: Vec<u64> = self
            .base
            .state
            .commands
            .values()
            .filter(|command| command.fact.session == *session)
            .map(|command| command.fact.command)
            .collect();
        for command in commands {
            self.close_command(command, None, swept);
        }
        if was_open {
            self.base.record(Fact::SessionClosed {
                session: session.clone(),
            });
            self.base.publish_session(session, SessionPhase::Closed);
        }
        if forget {
            let held: Vec<_> = self
                .base
                .state
                .sessions
                .get(session)
                .map(|known| {
                    known
                        .files
                        .keys()
                        .flat_map(|file| self.base.view().names_of(file))
                        .collect()
                })
                .unwrap_or_default();
            self.base.record(Fact::SessionForgotten {
                session: session.clone(),
            });
            for path in held {
                self.unwatch(&path);
            }
            self.base.publish_session(session, SessionPhase::Forgotten);
        }
    }
}

impl Base {
    pub(crate) fn session_open(&mut self, pending: &Pending, ask: &SessionOpen) -> Answered {
        let (name, version) = match &ask.agent {
            Some(agent) => (Some(&agent.name), Some(&agent.version)),
            None => (None, None),
        };
        not_too_long(&[("agent.name", name), ("agent.version", version)])?;
        let known = self.state.sessions.get(&ask.session);
        let resumed = known.is_some();
        let news = known.is_none_or(|known| {
            !known.open
                || known.label.is_none()
                || (ask.agent.is_some() && ask.agent != known.agent)
                || (ask.parent.is_some() && ask.parent != known.parent)
                || (ask.pid.is_some() && ask.pid != known.pid)
        });
        if news {
            let (agent, parent) = (ask.agent.as_ref(), ask.parent.as_ref());
            self.open_session(&ask.session, agent, parent, ask.pid);
        }
        let listed = self.view().listing(&ask.session);
        let (changes, lines) = split(listed, self.config.list_limit as usize);
        Ok(Answer {
            reply: Reply::SessionOpen(SessionOpened {
                session: ask.session.clone(),
                resumed,
                clock: self.state.clock(self.state.n),
                warning: self.pending_warning(&ask.session),
                modified: changes,
                label: None,
                pending: pending.late(),
            }),
            lines,
            previews: Vec::new(),
        })
    }

    pub(crate) fn session_compacted(&mut self, ask: &SessionCompacted) -> Answered {
        let mut keep = Vec::new();
        for path in &ask.keep {
            match self.view().resolve(path) {
                Ok(path) => keep.push(path),
                Err(error) => return Err(error.into()),
            }
        }
        let evicted = self
            .view()
            .resident(&ask.session, |path| !keep.contains(path));
        self.record(Fact::Compacted {
            session: ask.session.clone(),
            keep,
        });
        done(Reply::SessionCompacted(Evicted { evicted }))
    }

    pub(crate) fn session_truncated(&mut self, ask: &SessionTruncated) -> Answered {
        let mut items = Vec::new();
        for item in &ask.items {
            if item.range.is_some_and(|range| !range.is_valid()) {
                return Err(super::reads::wrong_range().into());
            }
            match self.view().resolve(&item.path) {
                Ok(path) => items.push((path, item.range)),
                Err(error) => return Err(error.into()),
            }
        }
        let evicted = self.view().resident(&ask.session, |path| {
            items.iter().any(|(item, _)| item == path)
        });
        self.record(Fact::Truncated {
            session: ask.session.clone(),
            items,
        });
        done(Reply::SessionTruncated(Evicted { evicted }))
    }
}

impl View<'_> {
    pub(crate) fn session_list(&self, ask: &SessionList) -> Answered {
        let limit = ask.limit.unwrap_or(self.config.list_limit) as usize;
        let names: Vec<SessionId> = self
            .state
            .sessions
            .keys()
            .filter(|name| {
                ask.cursor
                    .as_deref()
                    .is_none_or(|cursor| name.as_str() > cursor)
            })
            .take(limit.saturating_add(1))
            .cloned()
            .collect();
        let more = names.len() > limit;
        let sessions: Vec<SessionRow> = names
            .iter()
            .take(limit)
            .filter_map(|name| {
                let session = self.state.sessions.get(name)?;
                let stale = session
                    .files
                    .iter()
                    .filter(|(path, knowledge)| {
                        let held = self.current(path, None).held.hash;
                        knowledge.any() && !knowledge.is_fresh(held)
                    })
                    .count();
                Some(SessionRow {
                    session: name.clone(),
                    agent: session.agent.clone(),
                    parent: session.parent.clone(),
                    opened_at: session.opened_at,
                    last_active: session.last_active,
                    open: session.open,
                    reads: session.reads,
                    edits: session.edits,
                    stale: stale as u64,
                    modified: self.listing(name).len() as u64,
                    label: None,
                    model: session.memory.models.last().map(|used| used.model.clone()),
                })
            })
            .collect();
        let more = more
            .then(|| sessions.last().map(|row| row.session.to_string()))
            .flatten();
        done(Reply::SessionList(SessionRows { sessions, more }))
    }

    /// Returns how many of the counted files have text in the session's
    /// context.
    fn resident(
        &self,
        session: &SessionId,
        counts: impl Fn(&touchmark_proto::RelPath) -> bool,
    ) -> u64 {
        let Some(session) = self.state.sessions.get(session) else {
            return 0;
        };
        session
            .files
            .iter()
            .filter(|(path, knowledge)| {
                counts(path) && knowledge.seen.iter().any(|seen| !seen.resident.is_empty())
            })
            .count() as u64
    }
}

/// Returns the first changes of a listing, with the line counts wanted for
/// them.
pub(super) fn split(
    listed: Vec<Listed>,
    limit: usize,
) -> (Vec<Change>, Vec<crate::effect::LinesWanted>) {
    let lines = View::lines_wanted(listed.iter().take(limit).map(|row| row.texts.clone()));
    let changes = listed
        .into_iter()
        .take(limit)
        .map(|row| row.change)
        .collect();
    (changes, lines)
}
