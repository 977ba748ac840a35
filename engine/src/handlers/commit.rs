//! `edit/commit`: the outcome of a declared write (ATTR-10), and declarations
//! that come after their write (ATTR-14).

use touchmark_proto::edits::{CommittedFile, EditCommit, EditCommitted, Outcome};
use touchmark_proto::events::EditPhase;
use touchmark_proto::files::Source;
use touchmark_proto::{
    Change, Error, Evidence, Hash, HashOrAbsent, RelPath, Reply, SessionId, Version,
};

use super::edit_ends::Ending;
use super::edits::unknown_edit;
use crate::disk::Found;
use crate::effect::{Answer, LinesWanted};
use crate::ledger::fold::Folded;
use crate::ledger::recall::version_of;
use crate::ledger::record::Held;
use crate::ledger::state::KeptVersion;
use crate::ledger::wire_names::edit_number;
use crate::parts::Core;
use crate::requests::pending::{Answered, Pending};
use crate::text::shown::show;
use crate::view::View;

/// The outcome of a commit for one file.
pub(super) struct Verdict {
    pub outcome: Outcome,
    pub version: Option<u64>,
    pub late: bool,
}

impl Verdict {
    pub(super) fn of(outcome: Outcome, version: Option<u64>) -> Self {
        Self {
            outcome,
            version,
            late: false,
        }
    }
}

impl Core {
    pub(crate) fn edit_commit(&mut self, pending: &mut Pending, ask: &EditCommit) -> Answered {
        let mut named: Vec<(RelPath, Option<HashOrAbsent>)> = Vec::new();
        for file in &ask.files {
            match self.base.view().resolve(&file.path) {
                Ok(path) if named.iter().any(|(known, _)| *known == path) => {
                    return Err(Error::invalid(format!("{} is named twice", show(&path))).into());
                }
                Ok(path) => named.push((path, file.hash)),
                Err(error) => return Err(error.into()),
            }
        }
        let (edit, session) = self.base.view().committed_edit(ask)?;
        let open: Vec<RelPath> = edit
            .and_then(|edit| self.base.state.edits.get(&edit))
            .map(|edit| edit.files.iter().map(|file| file.path.clone()).collect())
            .unwrap_or_default();
        let files = if named.is_empty() {
            open.iter().map(|path| (path.clone(), None)).collect()
        } else {
            named
        };
        let paths: Vec<RelPath> = files.iter().map(|(path, _)| path.clone()).collect();
        self.base.read_named(pending, &paths)?;
        // A path without an open edit needs a claim that can be confirmed. If
        // one path has none, the whole commit is refused before anything
        // changes.
        let baseless = files.iter().any(|(path, hash)| {
            !open.contains(path)
                && hash.is_none_or(|hash| {
                    !self
                        .base
                        .view()
                        .can_declare_late(pending, &session, path, hash)
                })
        });
        if files.is_empty() || baseless {
            return Err(unknown_edit(ask.edit.as_deref()).into());
        }
        for path in paths.iter().filter(|path| open.contains(path)) {
            // The path was untracked since the edit began. Its log begins again
            // with the current content.
            self.base.begin_log(path, pending);
            self.base.hold(&session, path, Source::AgentEdited, None);
        }
        let before: Vec<(RelPath, u64)> = paths
            .iter()
            .filter_map(|path| Some((path.clone(), self.base.state.knowledge(&session, path)?.at)))
            .collect();
        let mut rows = Vec::new();
        for (path, claim) in files {
            let verdict = match edit.filter(|_| open.contains(&path)) {
                Some(edit) => self.commit_path(pending, edit, &session, &path, claim),
                None => claim
                    .and_then(|claim| {
                        self.base
                            .declare_late(pending, &session, &path, claim, None)
                    })
                    .map(|version| Verdict {
                        late: true,
                        ..Verdict::of(Outcome::Applied, Some(version))
                    })
                    .unwrap_or(Verdict::of(Outcome::NotApplied, None)),
            };
            rows.push(CommittedFile {
                outcome: verdict.outcome,
                late: verdict.late.then_some(true),
                version: verdict
                    .version
                    .and_then(|n| self.base.view().version(&path, n)),
                path,
            });
        }
        let mut changes: Vec<Change> = Vec::new();
        let mut texts = Vec::new();
        for (path, at) in before {
            if let Some((change, pair)) = self.base.view().changes_by_others(&session, &path, at) {
                changes.push(change);
                texts.push(pair);
            }
        }
        Ok(Answer {
            reply: Reply::EditCommit(EditCommitted {
                files: rows,
                changes,
            }),
            lines: View::lines_wanted(texts),
            previews: Vec::new(),
        })
    }

    pub(super) fn commit_path(
        &mut self,
        pending: &Pending,
        edit: u64,
        session: &SessionId,
        path: &RelPath,
        claim: Option<HashOrAbsent>,
    ) -> Verdict {
        let Some((expect, began, matched, begun)) =
            self.base.state.edits.get(&edit).and_then(|open| {
                let file = open.files.iter().find(|file| file.path == *path)?;
                Some((file.expect, file.began, file.matched, open.n))
            })
        else {
            return Verdict::of(Outcome::NotApplied, None);
        };
        let verdict = match claim {
            Some(claim) => self.commit_claimed(pending, edit, session, path, claim, began, begun),
            None if expect.is_some() => self.base.commit_expected(path, expect, began, matched),
            None => self.commit_marked(edit, session, path),
        };
        let own = self.base.view().overwrote_unseen(session, path, begun);
        self.end_edit(edit, std::slice::from_ref(path), EditPhase::Committed);
        match verdict.outcome {
            Outcome::Applied if own => Verdict {
                outcome: Outcome::Clobbered,
                ..verdict
            },
            _ => verdict,
        }
    }

    /// Ends a path for which the commit names the content written.
    #[allow(clippy::too_many_arguments)] // each is one fact about the edit
    fn commit_claimed(
        &mut self,
        pending: &Pending,
        edit: u64,
        session: &SessionId,
        path: &RelPath,
        claim: HashOrAbsent,
        began: Option<Hash>,
        begun: u64,
    ) -> Verdict {
        let hash = claim.hash();
        let found = self.claim(edit, path, Ending::Named(claim)).or_else(|| {
            let own = self.base.view().newest_in(path, |kept| {
                kept.is_edit_of(session) && kept.n > begun && kept.hash == hash
            })?;
            self.base.name_found(edit, session, path, claim, own);
            Some(own)
        });
        let found = found.or_else(|| self.base.claim_assumed(edit, session, path, claim, begun));
        if let Some(version) = found {
            return Verdict::of(
                self.base.view().applied_or_overwritten(path, hash),
                Some(version),
            );
        }
        let current = self
            .base
            .view()
            .current(path, pending.reads.found.get(path))
            .held
            .hash;
        let changed = self
            .base
            .view()
            .newest_in(path, |kept| kept.n > begun)
            .is_some();
        if hash == current && hash == began && !changed {
            return Verdict::of(Outcome::Unchanged, None);
        }
        // A content from before the edit began belongs to its writer (ATTR-16).
        let since = self.base.view().late_version(session, path, claim);
        if since.is_some_and(|version| version > begun)
            && let Some(version) = self.base.declare_late(pending, session, path, claim, None)
        {
            return Verdict {
                late: true,
                ..Verdict::of(
                    self.base.view().applied_or_overwritten(path, hash),
                    Some(version),
                )
            };
        }
        if hash == current {
            // The content was there before the edit, and is there again.
            return Verdict::of(Outcome::Unchanged, None);
        }
        if hash == began {
            // The session wrote the content that was there before the edit, and
            // others wrote later: the session changed nothing.
            self.base.confirm_wrote(session, path, claim);
            return Verdict::of(Outcome::Overwritten, None);
        }
        let version = self
            .base
            .record_unobserved(session, path, hash, edit, begun);
        Verdict::of(Outcome::Overwritten, Some(version))
    }

    /// Ends a path for which neither the edit nor the commit names the content.
    fn commit_marked(&mut self, edit: u64, session: &SessionId, path: &RelPath) -> Verdict {
        match self.claim(edit, path, Ending::Unnamed) {
            Some(version) => {
                let newest = self
                    .base
                    .state
                    .paths
                    .get(path)
                    .and_then(|state| state.latest());
                let own = newest.is_some_and(|kept| kept.is_edit_of(session));
                let outcome = if own {
                    Outcome::Applied
                } else {
                    Outcome::Overwritten
                };
                Verdict::of(outcome, Some(version))
            }
            None => Verdict::of(Outcome::Unchanged, None),
        }
    }
}

impl View<'_> {
    /// Returns the edit that a commit names, open or not, and its session.
    pub(super) fn committed_edit(
        &self,
        ask: &EditCommit,
    ) -> Result<(Option<u64>, SessionId), Error> {
        if let Some(name) = &ask.edit {
            let number = edit_number(name);
            if let Some(edit) = number.and_then(|n| self.state.edits.get(&n)) {
                return Ok((number, edit.fact.session.clone()));
            }
            let ended = self
                .state
                .ended
                .iter()
                .rev()
                .find(|ended| Some(ended.edit) == number);
            return match (ended, &ask.session) {
                (Some(ended), _) => Ok((None, ended.session.clone())),
                (None, Some(session)) => Ok((None, session.clone())),
                (None, None) => Err(unknown_edit(Some(name))),
            };
        }
        let Some(session) = &ask.session else {
            return Err(Error::invalid("name the edit, or its session"));
        };
        Ok((
            self.open_edit(session, ask.call_id.as_deref()),
            session.clone(),
        ))
    }

    /// Returns whether the session has overwritten a version since that fact
    /// without having seen it, even if the loss was reported meanwhile.
    pub(super) fn overwrote_unseen(&self, session: &SessionId, path: &RelPath, since: u64) -> bool {
        let Some(state) = self.state.paths.get(path) else {
            return false;
        };
        let mut lost = false;
        for kept in state.versions.iter().filter(|kept| !kept.unobserved) {
            if lost && kept.n > since && kept.is_by(session) {
                return true;
            }
            lost = kept.lost;
        }
        false
    }

    pub(super) fn applied_or_overwritten(&self, path: &RelPath, hash: Option<Hash>) -> Outcome {
        if self.current(path, None).held.hash == hash {
            Outcome::Applied
        } else {
            Outcome::Overwritten
        }
    }

    pub(super) fn can_declare_late(
        &self,
        pending: &Pending,
        session: &SessionId,
        path: &RelPath,
        claim: HashOrAbsent,
    ) -> bool {
        self.late_version(session, path, claim).is_some()
            || self.late_first(pending, path, claim).is_some()
    }

    /// Returns the version that a late declaration names (ATTR-14): recent,
    /// claimed by no session, and not read by this session since.
    pub(super) fn late_version(
        &self,
        session: &SessionId,
        path: &RelPath,
        claim: HashOrAbsent,
    ) -> Option<u64> {
        let state = self.state.paths.get(path)?;
        let kept = state
            .versions
            .iter()
            .rev()
            .find(|kept| kept.hash == claim.hash() && !kept.unobserved)?;
        let young = kept.time.saturating_add(self.config.late) > self.now;
        let unclaimed = matches!(kept.evidence, Evidence::Unmarked | Evidence::Gap);
        // Lines that were carried over from an older content were not read from
        // this one (SEEN-8).
        let read = self.state.knowledge(session, path).is_some_and(|known| {
            let seen = known.of(kept.hash).is_some_and(|seen| !seen.moved);
            known.at >= kept.n && seen
        });
        (young && unclaimed && !read).then_some(kept.n)
    }

    /// Returns the content that a late declaration names for a path that was
    /// never tracked: the current content, if it was written recently.
    pub(super) fn late_first(
        &self,
        pending: &Pending,
        path: &RelPath,
        claim: HashOrAbsent,
    ) -> Option<Held> {
        if self.state.paths.contains_key(path) {
            return None;
        }
        let Some(Found::File(content)) = pending.reads.found.get(path).map(|found| &found.found)
        else {
            return None;
        };
        let young = content.mtime_ms.saturating_add(self.config.late) > self.now;
        (claim == HashOrAbsent::Hash(content.hash) && young).then(|| Held::from(*content))
    }

    pub(super) fn newest_kept(
        &self,
        path: &RelPath,
        which: impl Fn(&KeptVersion) -> bool,
    ) -> Option<&KeptVersion> {
        let state = self.state.paths.get(path)?;
        let mut newest_first = state.versions.iter().rev().map(Box::as_ref);
        newest_first.find(|kept| which(kept))
    }

    pub(super) fn newest_in(
        &self,
        path: &RelPath,
        which: impl Fn(&KeptVersion) -> bool,
    ) -> Option<u64> {
        self.newest_kept(path, which).map(|kept| kept.n)
    }

    pub(super) fn version(&self, path: &RelPath, n: u64) -> Option<Version> {
        let kept = self.newest_kept(path, |kept| kept.n == n)?;
        Some(version_of(
            self.state.epoch,
            kept.n,
            kept.time,
            &kept.fact(path),
            self.marks(kept),
        ))
    }

    /// Returns what others did to a path since the session's copy was current
    /// at fact `at`, or `None` if nothing.
    pub(super) fn changes_by_others(
        &self,
        session: &SessionId,
        path: &RelPath,
        at: u64,
    ) -> Option<(Change, LinesWanted)> {
        let state = self.state.paths.get(path)?;
        let others: Vec<&KeptVersion> = state
            .versions
            .iter()
            .map(Box::as_ref)
            .filter(|kept| kept.n > at && !kept.is_edit_of(session))
            .collect();
        let (first, last) = (others.first()?, others.last()?);
        let lost = others.iter().rev().find(|kept| kept.lost);
        let folded = Folded::of(others.iter().copied());
        let change = Change {
            lost: lost
                .and_then(|kept| self.version(path, kept.n))
                .map(Box::new),
            ..folded.change(path.clone(), last.kind, state.held.hash)
        };
        Some((change, LinesWanted::between(first.before, last.hash)))
    }
}
