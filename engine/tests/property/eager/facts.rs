//! The facts of a step against those that were due.

use super::*;

impl Eager {
    pub(super) fn facts(
        &mut self,
        op: &Op,
        seen: &[Seen],
        mut expected: BTreeMap<Path, Attributed>,
    ) -> Check {
        let records: Vec<_> = seen
            .iter()
            .filter_map(|one| match one {
                Seen::Fact(record) => Some(record),
                _ => None,
            })
            .collect();
        let mut lost_due: BTreeMap<u64, bool> = BTreeMap::new();
        for record in &records {
            match &record.fact {
                Fact::Version(version) => {
                    let Some(path) = path_of(&version.path) else {
                        return Err(format!("a version of a path nobody named: {record:?}"));
                    };
                    if version.amends.is_some() {
                        self.correction(op, path, record.n, version)?;
                        continue;
                    }
                    self.lost_by(path, version, &mut lost_due);
                    if !self.model.ignored.contains(path) {
                        self.one_version(op, path, version, &mut expected)?;
                    } else {
                        expected.remove(path);
                    }
                    if !version.unobserved {
                        self.model.recorded(path, record.n, record.time, version);
                    }
                }
                Fact::Lost {
                    session,
                    path,
                    version,
                    by,
                } => {
                    let Some(path) = path_of(path) else { continue };
                    if !lost_due.contains_key(version)
                        && !self.model.ignored.contains(path)
                        && !self.lost_later(path, *version)
                    {
                        return Err(format!("ATTR-10 (clobbered): {record:?} without reason"));
                    }
                    lost_due.remove(version);
                    let who = crate::model::index_of(session);
                    let copy = self.model.copies.entry((who, path)).or_default();
                    copy.lost.insert(*version, *by);
                    for edit in &mut self.model.edits {
                        if edit.session == who {
                            for file in edit.files.iter_mut().filter(|file| file.path == path) {
                                file.clobbered = true;
                                file.clobbered_surely |= records.iter().any(|one| {
                                    one.n == *by
                                        && matches!(&one.fact, Fact::Version(version)
                                            if version.edit == Some(edit.number))
                                });
                            }
                        }
                    }
                }
                Fact::EditEnded {
                    edit,
                    paths,
                    phase: EditPhase::Committed,
                    ..
                } if !matches!(op, Op::Ask(_)) => {
                    // Whether a matched one-call mark stays open is left open.
                    for open in &mut self.model.edits {
                        if open.number == *edit && open.one_shot {
                            for file in &mut open.files {
                                file.done |= paths.iter().any(|p| path_of(p) == Some(file.path));
                            }
                        }
                    }
                }
                Fact::Copied { from, to } => {
                    let (Some(from), Some(to)) = (path_of(from), path_of(to)) else {
                        continue;
                    };
                    if self.model.ignored.contains(from) {
                        self.model.ignored.insert(to);
                    }
                    match self.copies.remove(to) {
                        Some((source, by)) if source == from => {
                            self.model.logs.entry(to).or_default().latest = None;
                            expected.insert(to, by);
                        }
                        // Of a name that others had spoken of while nothing was
                        // there, `tests/model` knows what becomes.
                        None if self.model.ignored.contains(from)
                            || self.model.ignored.contains(to)
                            || self.held.contains(to) =>
                        {
                            self.model.ignored.insert(to);
                        }
                        other => {
                            return Err(format!("ATTR-12: {record:?}, but it is {other:?}"));
                        }
                    }
                    for session in 0..SESSIONS.len() {
                        let Some(copy) = self.model.copies.get(&(session, from)).cloned() else {
                            continue;
                        };
                        match self.model.copies.get_mut(&(session, to)) {
                            Some(there) => {
                                there.blurred = true;
                                there.told_perhaps = u64::MAX;
                            }
                            None => {
                                let copy = Copy {
                                    unnamed: true,
                                    told: 0,
                                    told_perhaps: u64::MAX,
                                    lost: BTreeMap::new(),
                                    ..copy
                                };
                                self.model.copies.insert((session, to), copy);
                            }
                        }
                    }
                }
                Fact::CopyDropped { path } => {
                    let Some(path) = path_of(path) else { continue };
                    if self.now(path).is_some() {
                        return Err(format!("ATTR-12: dropped although there: {record:?}"));
                    }
                    for session in 0..SESSIONS.len() {
                        if let Some(copy) = self.model.copies.get(&(session, path)) {
                            if !copy.unnamed {
                                return Err(format!("ATTR-12: it was named: {record:?}"));
                            }
                            self.model.copies.remove(&(session, path));
                        }
                    }
                }
                _ => {}
            }
        }
        for (path, by) in &expected {
            if !self.model.ignored.contains(path) {
                return Err(format!(
                    "SYNC-6: {path} changed to {:?} and no version was recorded; due: {by:?}",
                    self.now(path)
                ));
            }
        }
        for (n, (author, evidence, must)) in &self.corrections.0 {
            let held = self.model.logs.iter().any(|(path, log)| {
                self.held.contains(path)
                    && !self.model.ignored.contains(path)
                    && log.versions.iter().any(|version| version.n == *n)
            });
            if *must && held {
                return Err(format!(
                    "ATTR-11: the fact {n} was not corrected to {author:?} {evidence:?}"
                ));
            }
        }
        if let Some((version, _)) = lost_due.iter().find(|(_, must)| **must) {
            return Err(format!(
                "ATTR-10 (clobbered): the loss of {version} was not recorded"
            ));
        }
        Ok(())
    }

    /// A declared write over somebody's unseen version loses that version.
    pub(super) fn lost_by(&self, path: Path, version: &VersionFact, due: &mut BTreeMap<u64, bool>) {
        let Some(session) = &version.author.session else {
            return;
        };
        let who = crate::model::index_of(session);
        let Some(last) = self
            .model
            .logs
            .get(path)
            .and_then(|log| log.versions.last().filter(|last| last.hash == log.latest))
        else {
            return;
        };
        let Some(hash) = last.hash else { return };
        if hash == crate::content::hash(b"") {
            // An empty file holds nothing to be lost.
            return;
        }
        let copy = self.model.copies.get(&(who, path));
        let seen = copy.is_some_and(|copy| copy.of(hash).is_some());
        let open = copy.is_some_and(|copy| copy.blurred || copy.marked);
        if last.author.is(session) || (seen && !open) {
            return;
        }
        let must = version.evidence == Evidence::Declared
            && !open
            && !version.unobserved
            && !self.model.ignored.contains(path)
            && last.evidence != Evidence::Gap
            && self.tracked(path)
            && !self.model.logs.get(path).is_none_or(|log| log.resumed)
            && !copy.is_some_and(|copy| copy.perhaps.contains(&hash));
        due.insert(last.n, must);
    }

    /// Losses of marked writes, and of writes claimed late, may come later.
    pub(super) fn lost_later(&self, path: Path, version: u64) -> bool {
        let Some(log) = self.model.logs.get(path) else {
            return true;
        };
        let at = log.versions.iter().position(|v| v.n == version);
        at.and_then(|at| log.versions.get(at + 1))
            .is_none_or(|next| next.author.session.is_some())
    }

    pub(super) fn one_version(
        &mut self,
        op: &Op,
        path: Path,
        version: &VersionFact,
        expected: &mut BTreeMap<Path, Attributed>,
    ) -> Check {
        let found = (version.author.clone(), version.evidence);
        let declares = matches!(
            op,
            Op::Ask(asking) if matches!(asking.ask, Ask::Mark { .. } | Ask::Commit { .. } | Ask::Begin { .. })
        );
        if (version.unobserved || version.late) && declares {
            if version.unobserved {
                self.unobserved.insert(path);
            }
            return Ok(());
        }
        if self.unobserved.contains(path) && found == (Author::USER, Evidence::Unmarked) {
            // What replaced a write that nobody saw (ATTR-10).
            expected.remove(path);
            return Ok(());
        }
        let now = self.now(path);
        if version.held.hash != now {
            return Err(format!("version: {version:?}, but the disk holds {now:?}"));
        }
        if now.is_none() {
            let again = self
                .model
                .attribute(path, self.world.now, None, false, false);
            let absence = &self.model.logs.entry(path).or_default().absence;
            let known = absence.contains(&found);
            if known || (!absence.is_empty() && (again.author, again.evidence) == found) {
                return Ok(());
            }
            return Err(format!("ATTR: {version:?}, the absence is {absence:?}"));
        }
        if let Some(by) = expected.remove(path) {
            if (by.author.clone(), by.evidence) != found {
                return Err(format!("ATTR: {version:?}, it should be {by:?}"));
            }
            return Ok(());
        }
        let named = matches!(
            op,
            Op::Ask(asking) if matches!(asking.ask, Ask::Read { .. } | Ask::Mention { .. })
        );
        let resumed = self.model.logs.get(path).is_none_or(|log| log.resumed);
        if version.evidence == Evidence::Gap && (named || resumed) {
            return Ok(());
        }
        if !self.tracked(path) {
            return Ok(());
        }
        Err(format!("version: nothing happened, but {version:?}"))
    }
}
