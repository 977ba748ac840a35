//! Which earlier attributions a step has to correct (ATTR-2, 4, 11, 14).

use super::*;

impl Eager {
    pub(super) fn may(&mut self, n: u64, author: Author, evidence: Evidence, must: bool) {
        self.corrections.0.insert(n, (author, evidence, must));
    }

    /// Corrections that the step's question asks for (ATTR-2, 4, 11, 14).
    pub(super) fn expected_corrections(&mut self, seen: &[Seen]) {
        for one in seen {
            let Seen::Answered { asked, outcome, .. } = one else {
                continue;
            };
            let ok = matches!(outcome, Outcome::Reply(Ok(_)));
            let who = asked.asking.session;
            let agent = Author::agent(asks::session(who));
            match &asked.request {
                Request::EditorDidSave(saved) if ok => {
                    let Ask::Saved { path, .. } = &asked.asking.ask else {
                        continue;
                    };
                    let time = self.world.now;
                    let found = self.model.logs.get(path).and_then(|log| {
                        log.versions
                            .iter()
                            .rev()
                            .find(|version| version.hash == Some(saved.hash))
                            .filter(|version| time.saturating_sub(version.time) <= 2_000)
                            .cloned()
                    });
                    match found {
                        Some(version)
                            if matches!(
                                version.evidence,
                                Evidence::Unmarked | Evidence::Marked | Evidence::Gap
                            ) =>
                        {
                            let must = version.evidence == Evidence::Unmarked
                                && time.saturating_sub(version.time) < 2_000;
                            self.may(version.n, Author::USER, Evidence::Editor, must);
                            if !must {
                                self.model.ignored.insert(path);
                            }
                        }
                        found => {
                            if !self.tracked(path) {
                                // Whether a report is kept for a path that
                                // nobody tracks is left open.
                                self.model.ignored.insert(path);
                            }
                            self.model.reports.push(Report {
                                path,
                                hash: saved.hash,
                                time,
                                used: false,
                            });
                            if found.is_some() {
                                // Whether the report is used up by a version
                                // that it does not change is left open.
                                self.model.ignored.insert(path);
                            }
                        }
                    }
                }
                Request::EditMark(mark) if ok => {
                    let Ask::Mark { path, .. } = &asked.asking.ask else {
                        continue;
                    };
                    if let Some((n, latest)) = self.late(who, path, mark.expect) {
                        self.may(n, agent, Evidence::Declared, latest);
                    }
                }
                Request::EditBegin(begin) if ok => {
                    if let Ask::Begin { files, .. } = &asked.asking.ask {
                        for ((path, _), file) in files.iter().zip(&begin.files) {
                            if let Some((n, _)) = self.late(who, path, file.expect) {
                                self.may(n, agent.clone(), Evidence::Declared, false);
                                self.model.ignored.insert(path);
                            }
                        }
                    }
                }
                Request::SessionClose(_) if ok => {
                    let numbers: Vec<u64> = self
                        .model
                        .edits
                        .iter()
                        .filter(|edit| edit.session == who)
                        .map(|edit| edit.number)
                        .collect();
                    for number in numbers {
                        self.take_back(number);
                    }
                }
                Request::EditAbort(_) if ok => {
                    if let Some(number) = self.edit_of(asked) {
                        self.take_back(number);
                    }
                }
                Request::EditCommit(commit) if ok => {
                    let Some(number) = self.edit_of(asked) else {
                        continue;
                    };
                    let named: Vec<(Path, Option<HashOrAbsent>)> = commit
                        .files
                        .iter()
                        .filter_map(|file| {
                            let name = String::from_utf8_lossy(file.path.as_bytes()).into_owned();
                            let path = ALL_FILES.iter().copied().find(|known| *known == name)?;
                            Some((path, file.hash))
                        })
                        .collect();
                    let named = match named.is_empty() {
                        true => self.files_of(number).map(|path| (path, None)).collect(),
                        false => named,
                    };
                    for (path, hash) in named {
                        let session = self.session_of(number).unwrap_or(who);
                        let agent = Author::agent(asks::session(session));
                        if let Some((n, latest)) = self.claimed(number, path, hash) {
                            self.may(n, agent.clone(), Evidence::Marked, latest);
                        }
                        if let Some((n, _)) = self.late(session, path, hash) {
                            if self.corrections.0.contains_key(&n) {
                                continue;
                            }
                            self.may(n, agent, Evidence::Declared, false);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The version that a late declaration speaks for (ATTR-14), and whether
    /// it is the latest.
    pub(super) fn late(
        &self,
        who: usize,
        path: Path,
        named: Option<HashOrAbsent>,
    ) -> Option<(u64, bool)> {
        let named = named?;
        let log = self.model.logs.get(path)?;
        let newest = log.versions.last().map(|version| version.n);
        let version = log
            .versions
            .iter()
            .rev()
            .find(|version| HashOrAbsent::from(version.hash) == named)?;
        let copy = self.model.copies.get(&(who, path));
        let seen = version
            .hash
            .is_some_and(|hash| copy.is_some_and(|copy| copy.of(hash).is_some()));
        let young = self.world.now.saturating_sub(version.time) < 10_000;
        let open = matches!(version.evidence, Evidence::Unmarked | Evidence::Gap);
        // Whether a content read before this version came is "read" is open.
        (open && young).then_some((version.n, !seen && newest == Some(version.n)))
    }

    /// The version that a mark without a declared content comes to (ATTR-4),
    /// and whether it is what is there.
    fn claimed(&self, number: u64, path: Path, named: Option<HashOrAbsent>) -> Option<(u64, bool)> {
        let marked = self.marked_by(number, path);
        let log = self.model.logs.get(path)?;
        let newest = log.versions.last().map(|version| version.n);
        let version = log.versions.iter().rev().find(|version| {
            marked.contains(&version.n)
                && version.evidence == Evidence::Unmarked
                && named.is_none_or(|named| HashOrAbsent::from(version.hash) == named)
        })?;
        let there = newest == Some(version.n) && self.now(path) == version.hash;
        Some((version.n, there))
    }

    fn files_of(&self, number: u64) -> std::vec::IntoIter<Path> {
        let edits = self.model.edits.iter().filter(|edit| edit.number == number);
        let files: Vec<Path> = edits
            .flat_map(|edit| edit.files.iter().filter(|file| !file.done))
            .map(|file| file.path)
            .collect();
        files.into_iter()
    }

    pub(super) fn session_of(&self, number: u64) -> Option<usize> {
        let edit = self.model.edits.iter().find(|edit| edit.number == number)?;
        Some(edit.session)
    }

    pub(super) fn edit_of(&self, asked: &Asked) -> Option<u64> {
        let (Ask::Commit { slot, .. } | Ask::Abort { slot }) = &asked.asking.ask else {
            return None;
        };
        let edit = self.world.slots.get(slot)?.edit.as_ref()?;
        edit.strip_prefix('e')?.parse().ok()
    }

    pub(super) fn marked_by(&self, number: u64, path: Path) -> Vec<u64> {
        self.model
            .edits
            .iter()
            .filter(|edit| edit.number == number)
            .flat_map(|edit| &edit.files)
            .filter(|file| file.path == path && !file.done)
            .flat_map(|file| file.marked.clone())
            .collect()
    }

    /// Whether an edit that declared nothing may come to that version.
    fn may_claim(&self, version: &VersionFact) -> bool {
        self.model.edits.iter().any(|edit| {
            let whose = Author::agent(asks::session(edit.session));
            Some(edit.number) == version.edit && whose == version.author && !edit.one_shot
        })
    }

    /// An abort gives its guesses back to the user (ATTR-4).
    pub(super) fn take_back(&mut self, number: u64) {
        let Some(edit) = self.model.edits.iter().find(|edit| edit.number == number) else {
            return;
        };
        // Without a hash to come, it has claimed nothing.
        let files = edit.files.iter().filter(|_| edit.one_shot);
        let marked: Vec<(Path, u64)> = files
            .filter(|file| !file.done)
            .flat_map(|file| file.marked.iter().map(|n| (file.path, *n)))
            .collect();
        for (path, n) in marked {
            let still = self.model.logs.get(path).is_some_and(|log| {
                log.versions
                    .iter()
                    .any(|v| v.n == n && v.evidence == Evidence::Marked)
            });
            if still {
                self.may(n, Author::USER, Evidence::Unmarked, true);
            }
        }
    }

    pub(super) fn correction(
        &mut self,
        op: &Op,
        path: Path,
        n: u64,
        version: &VersionFact,
    ) -> Check {
        let declares = matches!(
            op,
            Op::Ask(asking) if matches!(asking.ask, Ask::Mark { .. } | Ask::Commit { .. })
        );
        let amended = version.amends.unwrap_or(0);
        let due = self.corrections.0.remove(&amended);
        let found = (version.author.clone(), version.evidence);
        let old = self.model.logs.get(path).and_then(|log| {
            let found = log.versions.iter().find(|v| v.n == amended)?;
            Some((found.author.clone(), found.evidence))
        });
        let order_only = old.as_ref() == Some(&found);
        match due {
            Some((author, evidence, _)) if (author.clone(), evidence) == found => {}
            _ if self.model.ignored.contains(path) || order_only => {}
            None if found.1 == Evidence::Declared && self.arriving.contains(path) => {
                if let Some(session) = &version.author.session {
                    let who = crate::model::index_of(session);
                    let copy = self.model.copies.entry((who, path)).or_default();
                    copy.perhaps.extend(version.held.hash);
                    copy.blurred |= version.late;
                }
                if let Some(old) = self.model.logs.get_mut(path).and_then(|log| {
                    log.versions
                        .iter_mut()
                        .find(|old| Some(old.n) == version.amends)
                }) {
                    old.author = version.author.clone();
                    old.evidence = version.evidence;
                }
                return Ok(());
            }
            // A deletion is recorded when somebody asks, and may be declared
            // or given back by what asks.
            None if found == (Author::USER, Evidence::Unmarked)
                && matches!(op, Op::Ask(_))
                && version.held.hash.is_none()
                && old
                    .as_ref()
                    .is_some_and(|(_, evidence)| *evidence == Evidence::Marked) => {}
            // A deadline, or the end of a client, is an end, too.
            None if found.1 == Evidence::Marked
                && old.as_ref().map(|(_, evidence)| *evidence) == Some(Evidence::Unmarked)
                && self.may_claim(version) =>
            {
                if let Some(session) = &version.author.session {
                    let who = crate::model::index_of(session);
                    let copy = self.model.copies.entry((who, path)).or_default();
                    copy.perhaps.extend(version.held.hash);
                    copy.blurred = true;
                }
            }
            None if version.late
                && declares
                && old.as_ref().is_some_and(|(_, evidence)| {
                    matches!(evidence, Evidence::Unmarked | Evidence::Gap)
                }) => {}
            // A one-call mark was consumed and then the same bytes were
            // written again: whose they were is left open.
            None if found == (Author::USER, Evidence::Unmarked)
                && old
                    .as_ref()
                    .is_some_and(|(_, evidence)| *evidence == Evidence::Marked)
                && self.model.edits.iter().any(|edit| edit.one_shot)
                && !matches!(op, Op::Ask(_)) =>
            {
                self.model.ignored.insert(path);
            }
            due => {
                return Err(format!(
                    "ATTR-11: {version:?} corrects {old:?}; due: {due:?}"
                ));
            }
        }
        if version.author == Author::USER
            && let Some((
                Author {
                    session: Some(s), ..
                },
                _,
            )) = &old
        {
            let who = crate::model::index_of(s);
            if let Some(copy) = self.model.copies.get_mut(&(who, path)) {
                copy.marked = false;
            }
        }
        self.model.amended(path, n, version);
        Ok(())
    }
}
