//! `edit/abort`, and how edits end: what they claim, and when they lapse.

use super::edits::unknown_edit;
use crate::ledger::record::Fact;
use crate::ledger::state::{Edit, EditFile, KeptVersion};
use crate::ledger::wire_names::edit_name;
use crate::parts::Core;
use crate::requests::pending::{Answered, Ask, done};
use crate::requests::scope::Scope;
use crate::requests::table::EditNamed;
use crate::timers::Timer;
use crate::tracker::live::Live;
use touchmark_proto::daemon::Done;
use touchmark_proto::edits::EditAbort;
use touchmark_proto::events::{EditPhase, Happening};
use touchmark_proto::{
    Author, ConnectionId, Error, Evidence, HashOrAbsent, RelPath, Reply, SessionId,
};

impl Core {
    pub(crate) fn edit_abort(&mut self, ask: &EditAbort) -> Answered {
        if ask.edit.is_none() && ask.session.is_none() {
            return Err(Error::invalid("name the edit, or its session and callId").into());
        }
        let named = self.base.view().edit_of(EditNamed {
            edit: ask.edit.as_deref(),
            session: ask.session.as_ref(),
            call: ask.call_id.as_deref(),
        });
        match named {
            Some(edit) => {
                self.abort(edit);
                done(Reply::EditAbort(Done {}))
            }
            None => Err(unknown_edit(ask.edit.as_deref()).into()),
        }
    }

    /// Aborts an edit: none of the versions is the edit's any more (ATTR-4).
    pub(crate) fn abort(&mut self, edit: u64) {
        let Some(open) = self.base.state.edits.get(&edit) else {
            return;
        };
        // A one-call mark may have claimed an absence already.
        let claimed: Vec<(RelPath, u64)> = open
            .files
            .iter()
            .filter_map(|file| Some((&file.path, self.base.state.paths.get(&file.path)?)))
            .flat_map(|(path, state)| state.versions.iter().map(move |kept| (path, kept)))
            .filter(|(_, kept)| kept.edit() == Some(edit) && kept.evidence == Evidence::Marked)
            .map(|(path, kept)| (path.clone(), kept.n))
            .collect();
        for (path, n) in claimed {
            self.base
                .amend(&path, n, Author::USER, Evidence::Unmarked, None, false);
        }
        self.end_all(edit, EditPhase::Aborted);
    }

    /// Ends an edit at its deadline, or after its connection ended. The content
    /// found then is the session's (ATTR-4, ATTR-9), unless a tool call began
    /// the edit and never answered: it is not known whether that ran.
    pub(crate) fn expire(&mut self, edit: u64) {
        self.settle_for(&Scope::Paths(self.base.view().paths_of_edit(edit)));
        let Some(open) = self.base.state.edits.get(&edit) else {
            return;
        };
        let grace = self.writers.graces.get(&edit).copied();
        if self.base.now < open.fact.deadline && grace.is_none_or(|until| self.base.now < until) {
            return;
        }
        let paths: Vec<RelPath> = match open.fact.call {
            Some(_) => Vec::new(),
            None => open.files.iter().map(|file| file.path.clone()).collect(),
        };
        for path in &paths {
            self.leave_unclosed(path);
            self.claim(edit, path, Ending::Lapsed);
        }
        self.end_all(edit, EditPhase::Lapsed);
    }

    /// Attributes to an edit that declared nothing the content found at its end
    /// (ATTR-4): the one that the commit names, else the newest since its
    /// beginning that is not known to be another author's. Returns the number
    /// of that version.
    pub(super) fn claim(&mut self, edit: u64, path: &RelPath, ending: Ending) -> Option<u64> {
        let named = match ending {
            Ending::Named(content) => Some(content),
            Ending::Unnamed | Ending::Lapsed => None,
        };
        let open = self.base.state.edits.get(&edit)?;
        let undeclared = |file: &EditFile| file.path == *path && file.expect.is_none();
        let began = open.files.iter().find(|file| undeclared(file))?.began;
        let (session, begun) = (open.fact.session.clone(), open.n);
        let last = self.base.tracker.live(path).and_then(Live::held_now);
        if last.is_some_and(|last| named.is_none_or(|named| named.hash() == last.hash)) {
            self.take_held_back(path);
        }
        let state = self.base.state.paths.get(path)?;
        // A content that was there before the edit is not the edit's (ATTR-16).
        let mut since = state.versions.iter().filter(|kept| kept.n > begun);
        let there = since.next().filter(|first| first.hash == began);
        let there = there.map_or(0, |first| first.n);
        let unnamed = named.is_none();
        let found = state.versions.iter().rev().find(|kept| {
            let named = named.is_none_or(|named| named.hash() == kept.hash);
            // A version that another mark of the session has claimed counts
            // only while it is the current one.
            let elsewhere = kept.is_edit_of(&session) && kept.edit() != Some(edit);
            // A removal counts only if the file is still absent.
            let gone = kept.hash.is_none() && unnamed;
            // No client says that the tool has written. So what is more probably
            // another author's is not the edit's.
            let doubtful = kept.hash.is_none() || kept.evidence == Evidence::Gap;
            kept.n > begun
                && !(ending == Ending::Lapsed && doubtful)
                && kept.n != there
                && named
                && (!gone || kept.n == state.newest)
                && may_be_of(kept, &session)
                && (!elsewhere || unnamed && kept.n == state.newest)
        })?;
        let (n, hash, own) = (found.n, found.hash, found.is_edit_of(&session));
        let there = state.held.hash == hash;
        if !own {
            let author = Author::agent(session.clone());
            self.base
                .amend(path, n, author, Evidence::Marked, Some(edit), false);
            self.base.note_lost(&session, path, n);
        }
        // A content that was overwritten since was seen only by a session that
        // names it (SEEN-1). A version that was the session's already may have
        // been read since, so nothing is recorded for it.
        if !own && (there || named.is_some()) {
            self.base.record(Fact::Wrote {
                session,
                path: path.clone(),
                hash: hash.into(),
                assumed: named.is_none(),
            });
        }
        Some(n)
    }

    /// Ends all remaining paths of an edit.
    pub(super) fn end_all(&mut self, edit: u64, phase: EditPhase) {
        let Some(open) = self.base.state.edits.get(&edit) else {
            return;
        };
        let paths: Vec<RelPath> = open.files.iter().map(|file| file.path.clone()).collect();
        self.end_edit(edit, &paths, phase);
    }

    /// Ends some paths of an edit. A content that was held back for its writer
    /// is decided without the edit (ATTR-5), and requests that the edit blocked
    /// are tried again (GUARD-5).
    pub(crate) fn end_edit(&mut self, edit: u64, paths: &[RelPath], phase: EditPhase) {
        let Some(open) = self.base.state.edits.get(&edit) else {
            return;
        };
        let session = open.fact.session.clone();
        let deadline = open.fact.deadline;
        self.base.record(Fact::EditEnded {
            edit,
            session: session.clone(),
            paths: paths.to_vec(),
            phase,
        });
        self.base.publish(
            Happening::Edit {
                session,
                edit: edit_name(edit),
                phase,
                paths: paths.to_vec(),
                label: None,
            },
            None,
        );
        if !self.base.state.edits.contains_key(&edit) {
            self.base.timers.remove(&(deadline, Timer::Edit(edit)));
            if let Some(until) = self.writers.graces.remove(&edit) {
                self.base.timers.remove(&(until, Timer::Edit(edit)));
            }
        }
        for path in paths {
            // The edit may have been the only reason to keep the path's log.
            self.unwatch(path);
            self.decide_held_back(path);
        }
        self.requests.unblock(&mut self.base.turn());
    }

    /// Ends an edit whose deadline has passed. A deadline takes effect after a
    /// fence (ATTR-16).
    pub(crate) fn edit_due(&mut self, edit: u64) {
        let Some(open) = self.base.state.edits.get(&edit) else {
            return;
        };
        let grace = self.writers.graces.get(&edit).copied();
        let due = self.base.now >= open.fact.deadline
            || grace.is_some_and(|until| self.base.now >= until);
        if due {
            self.ask_internally(Ask::Expire(edit));
        }
    }

    /// Starts the grace of the edits that were bound to a connection which has
    /// ended (ATTR-9).
    pub(crate) fn unbind_edits(&mut self, connection: ConnectionId) {
        let until = self.base.now + self.base.config.bind_grace;
        for Edit { fact, .. } in self.base.state.edits.values() {
            if fact.bound == Some(connection.0) && fact.edit > self.writers.inherited_edits {
                self.writers.graces.insert(fact.edit, until);
                self.base.timers.insert((until, Timer::Edit(fact.edit)));
            }
        }
    }
}

/// How an edit ends that declared nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The commit names the content.
    Named(HashOrAbsent),
    /// The commit names none.
    Unnamed,
    /// Without a commit: at its deadline, or after its connection ended.
    Lapsed,
}

/// Returns whether an edit that declared nothing may have written a version:
/// the session is one of its candidates, its author is not known, or it is the
/// session's already, by its own command or by another mark.
fn may_be_of(kept: &KeptVersion, session: &SessionId) -> bool {
    match kept.evidence {
        Evidence::Unmarked | Evidence::Command => {
            kept.is_by(session) || kept.candidates().contains(session)
        }
        // The path was not watched when this version came.
        Evidence::Gap => true,
        _ => kept.is_by(session),
    }
}
