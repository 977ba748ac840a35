//! How versions and their corrections change the state.

use super::{KeptVersion, LostVersion, Replaced, State};
use crate::ledger::record::VersionFact;
use crate::ranges::RangeSet;
use crate::small_set;
use touchmark_proto::{Evidence, Hash, HashOrAbsent, Millis, RelPath, SessionId};

impl State {
    pub(super) fn version(&mut self, n: u64, time: Millis, fact: &VersionFact) {
        self.versions_recorded += 1;
        if let Some(report) = self.report_for(fact) {
            self.reports.remove(report);
        }
        if let (Some(edit), Evidence::Declared) = (fact.edit, fact.evidence) {
            self.match_expect(edit, n, fact);
        }
        if let Some(amended) = fact.amends {
            self.amend(n, amended, fact);
            if let (Evidence::Marked, Some(session)) = (fact.evidence, &fact.author.session) {
                // Versions after the one that the mark was resolved to are not
                // the session's.
                self.rule_out(&fact.path, session, amended, fact.edit);
            }
            return;
        }
        if let Some(past) = fact.command.and_then(|of| self.past_command_mut(of)) {
            past.versions += 1;
        }
        let Some(path) = self.paths.get_mut(&fact.path) else {
            self.command_file(n, fact);
            return;
        };
        // An unobserved content was never read from the disk. The version after
        // it has the path's content.
        if !fact.unobserved {
            path.held = fact.held;
        }
        if !fact.unobserved {
            path.newest = n;
        }
        small_set::push(
            &mut path.versions,
            Box::new(KeptVersion::new(n, time, fact)),
        );
        for holder in path.holders.iter() {
            if let Some(session) = self.sessions.get_mut(holder) {
                session.pending.insert(fact.path.clone());
            }
        }
        self.settle(&fact.path, time);
    }

    /// Returns the index of the editor's report that a version rests on. Each
    /// report explains one version only.
    pub(super) fn report_for(&self, fact: &VersionFact) -> Option<usize> {
        // A formatter's save belongs to the session whose edit it followed
        // (ATTR-17), but it still uses up the report.
        if fact.evidence != Evidence::Editor && !fact.formatted {
            return None;
        }
        self.reports
            .iter()
            .position(|report| report.path == fact.path && Some(report.hash) == fact.held.hash)
    }

    pub(super) fn match_expect(&mut self, edit: u64, n: u64, fact: &VersionFact) {
        let Some(edit) = self.edits.get_mut(&edit) else {
            return;
        };
        let wanted = HashOrAbsent::from(fact.held.hash);
        for file in &mut edit.files {
            if file.may_have_written(&fact.path) && file.expect == Some(wanted) {
                file.matched = Some(fact.amends.unwrap_or(n));
            }
        }
    }

    pub(super) fn amend(&mut self, n: u64, amended: u64, fact: &VersionFact) {
        let Some(path) = self.paths.get_mut(&fact.path) else {
            return;
        };
        let Some(kept) = path.versions.iter_mut().find(|kept| kept.n == amended) else {
            return;
        };
        // Evidence and edit are unchanged: the fact corrects only the order.
        let order = (kept.evidence, kept.edit()) == (fact.evidence, fact.edit)
            && kept.formatted >= fact.formatted;
        let before = kept.author();
        let hash = kept.hash;
        kept.attribute(fact);
        if before == fact.author {
            // A late report of an editor changes the evidence, not the order.
            if order {
                self.reorder(n, amended, &fact.path);
            }
            return;
        }
        let Some(loser) = before.session else { return };
        path.taken.retain(|(session, _)| *session != loser);
        path.taken.push((loser.clone(), n));
        if let Some(session) = self.sessions.get_mut(&loser) {
            session.pending.insert(fact.path.clone());
            // The session did not overwrite what this version overwrote, and it
            // has not seen the content that was attributed to it.
            session.lost.retain(|lost| lost.by != amended);
            let files = &mut session.files;
            files.change(&fact.path, |known| known.disbelieve(hash, amended));
        }
    }

    /// Applies a correction of the order alone: the version came after one that
    /// was declared and never read from disk (ATTR-10). For the session that
    /// declared that one, this is a change to report.
    pub(super) fn reorder(&mut self, n: u64, amended: u64, path: &RelPath) {
        let Some(state) = self.paths.get_mut(path) else {
            return;
        };
        let Some(at) = state.versions.iter().position(|kept| kept.n == amended) else {
            return;
        };
        let mut kept = state.versions.remove(at);
        kept.n = n;
        let unobserved = state.versions.iter().rev().find(|kept| kept.unobserved);
        let writer = unobserved.and_then(|kept| kept.session().cloned());
        state.versions.push(kept);
        // A session that has seen the version has seen the newest content,
        // whatever its number.
        let holders = state.holders.clone();
        for holder in holders.iter() {
            if let Some(session) = self.sessions.get_mut(holder) {
                session.files.change(path, |known| {
                    if known.at >= amended {
                        known.at = known.at.max(n);
                    }
                });
            }
        }
        let Some(state) = self.paths.get_mut(path) else {
            return;
        };
        if let Some(writer) = writer {
            state.taken.retain(|(session, _)| *session != writer);
            state.taken.push((writer.clone(), n));
            if let Some(session) = self.sessions.get_mut(&writer) {
                // If the version was reported already, its new place is no
                // other change (MOD-2).
                let reported = session.files.change(path, |known| {
                    let reported = known.told >= amended;
                    known.told = if reported { n } else { known.told };
                    reported
                });
                if reported != Some(true) {
                    session.pending.insert(path.clone());
                }
            }
        }
    }

    pub(super) fn lost(
        &mut self,
        n: u64,
        session: &SessionId,
        path: &RelPath,
        version: u64,
        by: u64,
        seen: &[(Hash, RangeSet)],
    ) {
        let Some(state) = self.paths.get_mut(path) else {
            return;
        };
        let content = state.versions.iter().find(|kept| kept.n == by);
        let content = content.and_then(|kept| kept.hash);
        let Some(kept) = state.versions.iter_mut().find(|kept| kept.n == version) else {
            return;
        };
        kept.lost = true;
        kept.details.get_or_insert_default().replaced = Some(Replaced {
            by,
            content,
            seen: seen.to_vec(),
        });
        let lost = LostVersion {
            n,
            path: path.clone(),
            version: KeptVersion::clone(kept),
            by,
        };
        if let Some(session) = self.sessions.get_mut(session) {
            session.lost.push(lost);
        }
    }

    /// Drops reports that no version can match any more. The limit is the
    /// largest value that the configuration allows, so that folding does not
    /// depend on the configuration.
    pub(super) fn prune_reports(&mut self, now: Millis) {
        const LONGEST: Millis = 60_000;
        self.reports
            .retain(|report| report.time.saturating_add(LONGEST) >= now);
    }
}
