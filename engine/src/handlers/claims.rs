//! What is recorded of a content that a commit or a mark claims (ATTR-10,
//! ATTR-14).

use super::commit::Verdict;
use crate::attribution::{Decision, reported, unclaimed};
use crate::base::Base;
use crate::ledger::fold::kind_between;
use crate::ledger::record::{Fact, Held, VersionFact};
use crate::ledger::state::KeptVersion;
use crate::requests::pending::Pending;
use touchmark_proto::edits::Outcome;
use touchmark_proto::files::Source;
use touchmark_proto::{Author, Evidence, Hash, HashOrAbsent, RelPath, SessionId, VersionKind};

impl Base {
    /// Attributes a version to this edit that another edit of the session found
    /// at its end without naming it. The session has then seen the content
    /// (SEEN-1), even if another author had already written over it when it was
    /// found.
    pub(super) fn name_found(
        &mut self,
        edit: u64,
        session: &SessionId,
        path: &RelPath,
        claim: HashOrAbsent,
        version: u64,
    ) {
        let of_another = |kept: &KeptVersion| {
            kept.n == version && kept.evidence == Evidence::Marked && kept.edit() != Some(edit)
        };
        let marked = self.view().newest_in(path, of_another).is_some();
        let Some(known) = self.state.knowledge(session, path).filter(|_| marked) else {
            return;
        };
        let unknown = known.at < version;
        let found = known.of(claim.hash()).is_some_and(|seen| seen.assumed);
        if unknown || found {
            let author = Author::agent(session.clone());
            self.amend(path, version, author, Evidence::Marked, Some(edit), false);
        }
        if unknown {
            self.confirm_wrote(session, path, claim);
        }
    }

    /// Attributes a version to this edit that another session's mark found at
    /// its end (ATTR-4). A commit that names the content is better evidence
    /// than that.
    pub(super) fn claim_assumed(
        &mut self,
        edit: u64,
        session: &SessionId,
        path: &RelPath,
        claim: HashOrAbsent,
        begun: u64,
    ) -> Option<u64> {
        let hash = claim.hash();
        let assumed = |kept: &KeptVersion| {
            let known = kept.session().and_then(|s| self.state.knowledge(s, path));
            known.is_some_and(|known| known.of(hash).is_some_and(|seen| seen.assumed))
        };
        let version = self.view().newest_in(path, |kept| {
            let marked = kept.evidence == Evidence::Marked && !kept.is_by(session);
            kept.n > begun && kept.hash == hash && marked && assumed(kept)
        })?;
        let author = Author::agent(session.clone());
        self.amend(path, version, author, Evidence::Marked, Some(edit), false);
        self.note_lost(session, path, version);
        self.confirm_wrote(session, path, claim);
        Some(version)
    }

    /// Ends a path for which the edit named the content, and the commit names
    /// nothing else.
    pub(super) fn commit_expected(
        &mut self,
        path: &RelPath,
        expect: Option<HashOrAbsent>,
        began: Option<Hash>,
        matched: Option<u64>,
    ) -> Verdict {
        let expected = expect.and_then(HashOrAbsent::hash);
        match matched {
            Some(version) => Verdict::of(
                self.view().applied_or_overwritten(path, expected),
                Some(version),
            ),
            None if self.view().current(path, None).held.hash == began
                && expect == Some(HashOrAbsent::from(began)) =>
            {
                Verdict::of(Outcome::Unchanged, None)
            }
            None => Verdict::of(Outcome::NotApplied, None),
        }
    }

    pub(super) fn wrote(&mut self, session: &SessionId, path: &RelPath, hash: HashOrAbsent) {
        self.record(Fact::Wrote {
            session: session.clone(),
            path: path.clone(),
            hash,
            assumed: false,
        });
    }

    /// Records what a session wrote, as its commit says. The write is older than
    /// what the session has read since, so it replaces nothing of that (SEEN-2).
    pub(super) fn confirm_wrote(
        &mut self,
        session: &SessionId,
        path: &RelPath,
        hash: HashOrAbsent,
    ) {
        let now = self.view().current(path, None).held.hash;
        let known = self.state.knowledge(session, path);
        let shown = known.is_some_and(|known| known.was_shown_only(now));
        let live = self.tracker.live(path);
        let last = live.is_some_and(|live| live.save.is_read_by(session));
        if !(shown && last && now != hash.hash()) {
            self.wrote(session, path, hash);
        }
    }

    /// Records a declared content that was never read from disk, since another
    /// author wrote over it immediately (ATTR-10). Both versions are recorded.
    /// If the other one is recorded already, a correction says that it came
    /// second.
    pub(super) fn record_unobserved(
        &mut self,
        session: &SessionId,
        path: &RelPath,
        hash: Option<Hash>,
        edit: u64,
        begun: u64,
    ) -> u64 {
        let now = self.view().current(path, None).held;
        let other = self
            .state
            .paths
            .get(path)
            .and_then(|state| state.latest())
            .filter(|kept| kept.n > begun && !kept.is_by(session))
            .map(|kept| {
                let decision = Decision::By {
                    author: kept.author(),
                    evidence: kept.evidence,
                    edit: kept.edit(),
                    formatted: kept.formatted,
                    candidates: kept.candidates().to_vec(),
                };
                (kept.n, decision)
            });
        let before = match &other {
            Some((n, _)) => self
                .view()
                .newest_kept(path, |kept| kept.n == *n)
                .and_then(|kept| kept.before),
            None => now.hash,
        };
        let held = Held {
            hash,
            ..Held::ABSENT
        };
        let author = Author::agent(session.clone());
        let kind = kind_between(before, hash);
        let fact = VersionFact {
            edit: Some(edit),
            unobserved: true,
            before,
            real: self.tracker.real_of(path),
            ..VersionFact::new(path.clone(), kind, held, author, Evidence::Declared)
        };
        let version = self.record(Fact::Version(fact));
        self.counts.versions += 1;
        self.publish_version(path, version, None);
        self.confirm_wrote(session, path, HashOrAbsent::from(hash));
        match other {
            Some((n, decision)) => {
                self.amend_by(path, n, decision, false);
            }
            None => {
                // There are two cases: the file has the content from before the
                // edit again, since another author restored it, or its new
                // content is not recorded yet.
                let recorded = self.state.paths.get(path).map(|state| state.held.hash);
                let window = self.config.editor_window;
                let decision = reported(&self.state, path, now.hash, self.now, window)
                    .filter(|_| recorded != Some(now.hash))
                    .unwrap_or_else(|| {
                        unclaimed(&self.state, &self.witnesses, path, None, self.now)
                    });
                let (author, evidence, formatted, candidates) = match decision {
                    Decision::By {
                        author,
                        evidence,
                        formatted,
                        candidates,
                        ..
                    } => (author, evidence, formatted, candidates),
                    Decision::Hold => (Author::USER, Evidence::Unmarked, false, Vec::new()),
                };
                let kind = kind_between(hash, now.hash);
                let command = self
                    .state
                    .command_of(path, &author, evidence, &self.witnesses);
                let n = self.record(Fact::Version(VersionFact {
                    formatted,
                    candidates,
                    command,
                    before: hash,
                    real: self.tracker.real_of(path),
                    ..VersionFact::new(path.clone(), kind, now, author, evidence)
                }));
                self.counts.versions += 1;
                self.publish_version(path, n, Some((hash, now.hash)));
            }
        }
        version
    }

    /// Attributes the version that a late declaration names to its session.
    pub(super) fn declare_late(
        &mut self,
        pending: &Pending,
        session: &SessionId,
        path: &RelPath,
        claim: HashOrAbsent,
        step: Option<u64>,
    ) -> Option<u64> {
        if let Some(version) = self.view().late_version(session, path, claim) {
            self.ensure_session(session);
            self.hold(session, path, Source::AgentEdited, step);
            let author = Author::agent(session.clone());
            self.amend(path, version, author, Evidence::Declared, None, true);
            self.note_lost(session, path, version);
            self.confirm_wrote(session, path, claim);
            return Some(version);
        }
        let held = self.view().late_first(pending, path, claim)?;
        self.ensure_session(session);
        self.begin_log(path, pending);
        self.hold(session, path, Source::AgentEdited, step);
        let author = Author::agent(session.clone());
        let version = self.record(Fact::Version(VersionFact {
            late: true,
            real: self.tracker.real_of(path),
            ..VersionFact::new(
                path.clone(),
                VersionKind::Modified,
                held,
                author,
                Evidence::Declared,
            )
        }));
        self.counts.versions += 1;
        self.publish_version(path, version, None);
        self.confirm_wrote(session, path, claim);
        Some(version)
    }
}
