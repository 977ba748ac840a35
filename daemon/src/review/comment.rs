//! `review/comment`: the user's comments on agents' changes (REV-5).

use std::collections::BTreeSet;

use touchmark_engine::State;
use touchmark_engine::text::tokens;
use touchmark_proto::review::{
    Comment, CommentState, CommentTo, Commented, ReviewComment, ReviewNamed,
};
use touchmark_proto::{Error, ErrorCode, ErrorData, SessionId};

use crate::hooks::Agent;
use crate::hooks::comments::{Receiver, StoredComment, diff};
use crate::undo::Undoer;

/// The maximum length of a comment, in bytes.
const TEXT: usize = 1_000;

/// How many sessions above a sub-agent's are looked at.
const ABOVE: usize = 16;

impl Undoer {
    /// Handles `review/comment`.
    ///
    /// # Errors
    /// `notFound` if the change is not as it was listed, or if there is no
    /// comment to withdraw; `unknownSession` if no session can receive it;
    /// `tooLarge`, `storage`.
    pub(crate) async fn review_comment(&self, ask: &ReviewComment) -> Result<Commented, Error> {
        let comments = &self.memory.comments;
        let text = ask.text.trim();
        let path = self.place(&ask.path)?;
        if text.is_empty() {
            if comments.withdraw(&path, &ask.id)? {
                return Ok(Commented { comment: None });
            }
            let said = "there is no comment on this change that no session has received";
            return Err(Error::path(ErrorCode::NotFound, &path, said)
                .hint("the comments are in `review/list`"));
        }
        if text.len() > TEXT {
            let said = format!("a comment has at most {TEXT} bytes");
            return Err(Error::new(ErrorCode::TooLarge, said)
                .with(ErrorData {
                    limit: Some(TEXT as u64),
                    ..ErrorData::default()
                })
                .hint("write less, or tell the agent itself"));
        }
        let named = ReviewNamed::new(ask.path.clone(), ask.id.clone());
        let mut stored = StoredComment {
            number: 0,
            path: path.clone(),
            id: ask.id.clone(),
            lines: None,
            text: tokens::masked(text).into_owned(),
            time: self.cx.now,
            diff: String::new(),
            to: Vec::new(),
        };
        let mut sessions = BTreeSet::new();
        for (queued, ids) in self.named(&[named]).await? {
            for (id, hunk) in queued.hunks.iter().filter(|(id, _)| ids.contains(id)) {
                let row = queued.told(id, hunk);
                stored.lines = (!row.after.is_empty()).then_some(row.lines);
                stored.diff = diff(&row.before, &row.after);
                sessions.extend(row.authors.into_iter().filter_map(|by| by.session));
            }
            for whole in queued.whole.iter().filter(|whole| ids.contains(&whole.id)) {
                let row = whole.row(&queued.path, &queued.chain);
                sessions.extend(row.authors.into_iter().filter_map(|by| by.session));
            }
        }
        let look = self.cx.inside.look(move |state| receivers(state, sessions));
        stored.to = look.await.unwrap_or_default();
        if stored.to.is_empty() {
            let said = "no session that made the change has hooks which take text";
            return Err(
                Error::path(ErrorCode::UnknownSession, &path, said).hint("tell the agent itself")
            );
        }
        comments.put(stored.clone())?;
        let comment = self.comments().await.into_iter().flatten().rev();
        let mut comment = comment.filter(|one| one.path == path && one.id == ask.id);
        Ok(Commented {
            comment: comment.next(),
        })
    }

    /// Returns all comments, the oldest first; `None` if there are none.
    pub(super) async fn comments(&self) -> Option<Vec<Comment>> {
        let all = self.memory.comments.all();
        if all.is_empty() {
            return None;
        }
        let look = self.cx.inside.look(move |state| {
            let rows = all.into_iter().map(|one| row(state, one));
            rows.collect()
        });
        look.await
    }
}

/// Returns the sessions that receive a comment on changes by `sessions`: of a
/// sub-agent the outermost session above it. Left out are sessions whose agent
/// has no hooks that take text.
fn receivers(state: &State, sessions: BTreeSet<SessionId>) -> Vec<Receiver> {
    let mut all: Vec<Receiver> = Vec::new();
    for own in sessions {
        let parent = |id: &SessionId| state.sessions.get(id)?.parent.clone();
        let above = std::iter::successors(Some(own.clone()), parent);
        let session = above.take(ABOVE).last().unwrap_or_else(|| own.clone());
        let is_by_child = session != own;
        let takes_text = agent(state, &session).is_some_and(Agent::tells);
        match all.iter_mut().find(|known| known.session == session) {
            Some(known) => known.is_by_child &= is_by_child,
            None if takes_text => all.push(Receiver {
                session,
                is_by_child,
                told: None,
            }),
            None => {}
        }
    }
    all
}

/// Returns the agent of a session, if its hooks have reported a prompt of it;
/// `None` for a client without hooks.
fn agent(state: &State, session: &SessionId) -> Option<&'static Agent> {
    let known = state.sessions.get(session)?;
    let memory = &known.memory;
    let has_prompts = memory.in_turn || !memory.checkpoints.is_empty();
    let agent = Agent::of_program(&known.agent.as_ref()?.name)?;
    (has_prompts || !agent.reports_prompts()).then_some(agent)
}

fn row(state: &State, stored: StoredComment) -> Comment {
    let to = stored.to.into_iter().map(|to| {
        let is_open = state.sessions.get(&to.session).is_some_and(|one| one.open);
        let waits_for_prompt = || agent(state, &to.session).is_none_or(Agent::tells_prompts);
        CommentTo {
            state: match to.told {
                Some(_) => CommentState::Told,
                None if !is_open => CommentState::Ended,
                None if waits_for_prompt() => CommentState::Waiting,
                None => CommentState::WaitingForEvent,
            },
            session: to.session,
            label: None,
            told: to.told,
        }
    });
    Comment {
        to: to.collect(),
        path: stored.path,
        id: stored.id,
        lines: stored.lines,
        text: stored.text,
        time: stored.time,
    }
}
