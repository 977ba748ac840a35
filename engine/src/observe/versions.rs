//! Recording versions and corrections, with everything that follows from them.

use crate::attribution::Decision;
use crate::base::Base;
use crate::ledger::fold::kind_between;
use crate::ledger::recall::version_of;
use crate::ledger::record::{Fact, Held, VersionFact};
use crate::ledger::state::{Edit, EditFile};
use touchmark_proto::events::Happening;
use touchmark_proto::{
    Author, AuthorKind, Evidence, Hash, HashOrAbsent, RelPath, SessionId, VersionKind,
};

impl Base {
    /// Records a version with what follows from it: its writer has seen it,
    /// what it overwrote unseen is lost, and other copies are stale. Returns
    /// its number.
    pub(crate) fn make_version(
        &mut self,
        path: &RelPath,
        held: Held,
        from: Option<&RelPath>,
        decision: Decision,
    ) -> u64 {
        let Decision::By {
            author,
            evidence,
            edit,
            formatted,
            candidates,
        } = decision
        else {
            return self.state.n;
        };
        let known = self.state.paths.get(path).map(|state| state.held);
        let seen = self.tracker.live(path).map(|live| &live.seen);
        let mode = seen.and_then(|seen| seen.mode);
        let link = seen.and_then(|seen| seen.link.as_deref());
        let link = link.filter(|_| from.is_none()).map(Held::link);
        let before = link.or(known);
        let mode_before = match link {
            Some(link) => link.mode,
            None => mode.or(known.and_then(|held| held.mode)),
        };
        let before = before.and_then(|held| held.hash);
        let kind = match from {
            Some(_) => VersionKind::Renamed,
            None => kind_between(before, held.hash),
        };
        // A renamed file's content is compared with the content under its old
        // name.
        let before = match from {
            Some(from) => self.state.paths.get(from).and_then(|state| state.held.hash),
            None => before,
        };
        for (name, held) in [(Some(path), held), (from, Held::ABSENT)] {
            name.into_iter()
                .for_each(|name| self.witnesses.recorded(name, held));
        }
        let fresh = self.fresh_holders(path);
        if let Some(held) = link {
            // The version replaces the symlink at this name, not the file that
            // it led to. The name's own log says so (FILE-2).
            self.record(Fact::Baseline {
                path: path.clone(),
                held,
                untracked: true,
                real: None,
            });
        }
        let command = self
            .state
            .command_of(path, &author, evidence, &self.witnesses);
        let n = self.record(Fact::Version(VersionFact {
            from: from.cloned(),
            edit,
            formatted,
            candidates,
            before,
            command,
            mode_before: mode_before.filter(|mode| held.mode != Some(*mode)),
            real: self.tracker.real_of(path),
            ..VersionFact::new(path.clone(), kind, held, author.clone(), evidence)
        }));
        self.counts.versions += 1;
        self.publish_version(path, n, Some((before, held.hash)));
        let live = self.tracker.live_mut(path);
        live.seen.mode = None;
        live.seen.link = None;
        live.save.versioned();
        if let (AuthorKind::Agent, Some(session)) = (author.kind, author.session) {
            // The daemon looks at the end of a command for what it removed (HOOK-7).
            if !evidence.is_of_command() {
                self.note_lost(&session, path, n);
            }
            if evidence == Evidence::Declared {
                self.record(Fact::Wrote {
                    session,
                    path: path.clone(),
                    hash: HashOrAbsent::from(held.hash),
                    assumed: false,
                });
            }
        }
        self.publish_stale(path, &fresh);
        n
    }

    /// Records that a session's write replaced another author's version that
    /// the session had not seen (ATTR-10, `clobbered`).
    pub(crate) fn note_lost(&mut self, session: &SessionId, path: &RelPath, by: u64) {
        let Some(state) = self.state.paths.get(path) else {
            return;
        };
        let mut until_then = state.versions.iter().rev().filter(|kept| kept.n <= by);
        let own = until_then.clone().find(|kept| kept.n == by);
        let prior = until_then.find(|kept| kept.n < by && !kept.unobserved);
        let Some(prior) = prior else { return };
        let before = until_then.find(|kept| !kept.unobserved);
        let before = before.map_or(state.baseline, |kept| kept.n);
        // If there was no file, or an empty one, nothing was destroyed: an
        // empty file is mostly the middle of a save. A removal of the file
        // while the edit was open still counts.
        let open = |is_it: &dyn Fn(&Edit, &EditFile) -> bool| {
            self.state.edits_on(path).any(|(edit, file)| {
                edit.fact.session == *session && edit.n < prior.n && is_it(edit, file)
            })
        };
        let meanwhile = open(&|_, _| true);
        // The removal may be noticed only after the beginning of an edit that
        // found no file.
        let taken_away = open(&|edit, file| file.began.is_some() || before > edit.n);
        // Lines that are the same in a version from meanwhile were not seen of
        // that version.
        let seen = self.state.knowledge(session, path).is_some_and(|known| {
            known
                .of(prior.hash)
                .is_some_and(|seen| !(seen.moved && meanwhile))
                || known.may_have_seen(prior.hash)
                || own.is_some_and(|own| known.saw_before(prior.hash, own.hash))
        });
        let nothing = match prior.hash {
            None => !(taken_away && prior.kind == VersionKind::Deleted),
            Some(_) => prior.size == 0,
        };
        if prior.is_by(session) || nothing || seen || prior.lost {
            return;
        }
        let version = prior.n;
        let known = self.state.knowledge(session, path);
        let seen = known.map_or_else(Vec::new, |known| known.contents());
        self.record(Fact::Lost {
            session: session.clone(),
            path: path.clone(),
            version,
            by,
            seen,
            lines: None,
        });
    }

    /// Records a correction of a version's author, as a separate fact
    /// (ATTR-11).
    pub(crate) fn amend(
        &mut self,
        path: &RelPath,
        version: u64,
        author: Author,
        evidence: Evidence,
        edit: Option<u64>,
        late: bool,
    ) -> Option<u64> {
        let decision = Decision::By {
            author,
            evidence,
            edit,
            formatted: false,
            candidates: Vec::new(),
        };
        self.amend_by(path, version, decision, late)
    }

    /// Records a correction of a version's author according to a decision.
    /// Returns the number of the fact, or `None` if nothing is corrected.
    pub(crate) fn amend_by(
        &mut self,
        path: &RelPath,
        version: u64,
        decision: Decision,
        late: bool,
    ) -> Option<u64> {
        let Decision::By {
            author,
            evidence,
            edit,
            formatted,
            candidates,
        } = decision
        else {
            return None;
        };
        let state = self.state.paths.get(path)?;
        let kept = state.versions.iter().find(|kept| kept.n == version)?;
        let the_same = kept.author() == author && kept.evidence == evidence;
        let command = match kept.command().filter(|_| the_same) {
            Some(command) => Some(command),
            None => self
                .state
                .command_of(path, &author, evidence, &self.witnesses)
                // Its window may have ended since.
                .or_else(|| {
                    let session = author.session.as_ref()?;
                    let in_window = evidence == Evidence::Command && !formatted;
                    let during = || self.state.command_during(session, version);
                    in_window.then(during).flatten()
                }),
        };
        let fact = VersionFact {
            command,
            author,
            evidence,
            edit,
            late,
            amends: Some(version),
            formatted,
            candidates,
            ..kept.fact(path)
        };
        // A session that loses a version which was attributed to it has a stale
        // copy now.
        let loser: Vec<SessionId> = kept.session().into_iter().cloned().collect();
        let n = self.record(Fact::Version(fact));
        self.publish_amendment(path, version, n);
        self.publish_stale(path, &loser);
        Some(n)
    }

    /// Returns the sessions whose copy is fresh now, for
    /// [`publish_stale`](Self::publish_stale).
    pub(super) fn fresh_holders(&self, path: &RelPath) -> Vec<SessionId> {
        let state = self.state.paths.get(path).filter(|_| self.subscribed);
        let Some(state) = state else {
            return Vec::new();
        };
        state
            .holders
            .iter()
            .filter(|holder| {
                self.state
                    .knowledge(holder, path)
                    .is_some_and(|knowledge| knowledge.is_fresh(state.held.hash))
            })
            .cloned()
            .collect()
    }

    /// Publishes a `stale` event for each session whose copy has just become
    /// stale.
    pub(super) fn publish_stale(&mut self, path: &RelPath, were_fresh: &[SessionId]) {
        if !self.subscribed {
            return;
        }
        for session in were_fresh {
            let Some(state) = self.state.paths.get(path) else {
                return;
            };
            let by_itself = state.latest().is_some_and(|kept| {
                let claimed = kept.is_by(session) && kept.evidence == Evidence::Marked;
                claimed || self.view().is_provisional_for(session, kept)
            });
            let stale = self
                .state
                .knowledge(session, path)
                .is_some_and(|knowledge| !knowledge.is_fresh(state.held.hash));
            if stale && !by_itself {
                let file = self.view().file_state(session, path, None);
                self.publish(
                    Happening::Stale {
                        session: session.clone(),
                        file,
                        label: None,
                    },
                    None,
                );
            }
        }
    }

    /// Publishes a version.
    pub(crate) fn publish_version(
        &mut self,
        path: &RelPath,
        n: u64,
        lines: Option<(Option<Hash>, Option<Hash>)>,
    ) {
        if !self.subscribed {
            return;
        }
        let Some(kept) = self
            .state
            .paths
            .get(path)
            .and_then(|state| state.versions.iter().find(|kept| kept.n == n))
        else {
            return;
        };
        let version = version_of(
            self.state.epoch,
            n,
            kept.time,
            &kept.fact(path),
            self.view().marks(kept),
        );
        self.publish(
            Happening::Version {
                version,
                lines: None,
            },
            lines,
        );
    }

    /// Publishes a correction.
    pub(crate) fn publish_amendment(&mut self, path: &RelPath, version: u64, n: u64) {
        if !self.subscribed {
            return;
        }
        let Some(kept) = self.state.paths.get(path).and_then(|state| {
            state
                .versions
                .iter()
                .find(|kept| kept.n == version || kept.n == n)
        }) else {
            return;
        };
        let mut fact = kept.fact(path);
        fact.amends = Some(version);
        let row = version_of(
            self.state.epoch,
            n,
            self.now,
            &fact,
            self.view().marks(kept),
        );
        self.publish(
            Happening::Version {
                version: row,
                lines: None,
            },
            None,
        );
    }
}
