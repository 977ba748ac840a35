//! Checks every fact against the disk and against what clients declared.

use super::*;

impl Audit {
    pub(super) fn fact(&mut self, world: &World, record: &Record) -> Verdict {
        match &record.fact {
            Fact::Baseline { path, held, .. } => {
                self.latest.insert(text(path), held.hash);
            }
            Fact::Version(version) => self.version(world, record, version)?,
            Fact::Copied { from, to } => {
                let (from, to) = (text(from), text(to));
                let copies: Vec<(SessionId, BTreeSet<Hash>)> = self
                    .maybe_seen
                    .iter()
                    .filter(|((_, path), _)| *path == from)
                    .map(|((session, _), hashes)| (session.clone(), hashes.clone()))
                    .collect();
                for (session, hashes) in copies {
                    self.maybe_seen
                        .entry((session, to.clone()))
                        .or_default()
                        .extend(hashes);
                }
                self.last.retain(|(_, path), _| *path != to);
                self.latest.remove(&to);
            }
            Fact::Read {
                session,
                path,
                hash: Some(hash),
                ..
            } => {
                let path = text(path);
                let key = (session.clone(), path.clone());
                let known = self
                    .maybe_seen
                    .get(&key)
                    .is_some_and(|seen| seen.contains(hash));
                if !known {
                    let from = self
                        .read_asked
                        .get(&key)
                        .and_then(|all| all.iter().map(|(moment, _)| *moment).min());
                    let Some(from) = from else {
                        return Err(format!("SEEN-1: a read nobody asked for: {record:?}"));
                    };
                    let there = world.disk.between(&path, from, world.disk.moment);
                    ensure!(
                        "SEEN-1",
                        there.contains(&At::File(*hash)),
                        "{record:?}: the disk held {there:?}"
                    );
                    self.maybe_seen.entry(key).or_default().insert(*hash);
                }
            }
            Fact::Read {
                session,
                path,
                hash: None,
                ..
            } => {
                // It is not known which content was read (SEEN-1): perhaps one
                // from before the last report.
                let key = (session.clone(), text(path));
                self.told.remove(&key);
                self.read_unknown.insert(key);
            }
            Fact::EditBegun(begun) => {
                let mut files: BTreeMap<String, Vec<OpenFile>> = BTreeMap::new();
                for file in &begun.files {
                    let path = text(&file.path);
                    for edit in self.edits.values() {
                        let held = edit
                            .files
                            .get(&path)
                            .is_some_and(|files| files.iter().any(|file| !file.ended));
                        ensure!(
                            "GUARD-5",
                            edit.session == begun.session || !held || edit.call,
                            "{record:?} although {:?} holds it",
                            edit.session
                        );
                    }
                    let now_or_before = world.disk.between(&path, 0, world.disk.moment);
                    ensure!(
                        "ATTR-16",
                        file.began
                            .is_none_or(|h| now_or_before.contains(&At::File(h))),
                        "{record:?} began with what never was there"
                    );
                    files.entry(path).or_default().push(OpenFile {
                        expect: file.expect,
                        began: file.began,
                        matched: false,
                        ended: false,
                    });
                }
                ensure!(
                    "clock",
                    !self.edits.contains_key(&begun.edit),
                    "edit number {} came twice",
                    begun.edit
                );
                self.begun_now.insert(begun.edit);
                self.edits.insert(
                    begun.edit,
                    OpenEdit {
                        session: begun.session.clone(),
                        files,
                        deadline: begun.deadline,
                        one_shot: begun.one_shot,
                        call: begun.call.is_some() && begun.bound.is_none(),
                        bound: begun.bound.is_some(),
                        end_asked: false,
                        step_ended: 0,
                    },
                );
            }
            Fact::EditEnded {
                edit, paths, phase, ..
            } => {
                let step = self.step;
                let Some(open) = self.edits.get_mut(edit) else {
                    return Err(format!("an unknown edit ended: {record:?}"));
                };
                let all: Vec<String> = if paths.is_empty() {
                    open.files.keys().cloned().collect()
                } else {
                    paths.iter().map(text).collect()
                };
                let consumed = open.one_shot;
                match phase {
                    EditPhase::Committed => ensure!(
                        "ATTR-9",
                        open.end_asked || consumed || self.closing.contains(&open.session),
                        "{record:?}: nobody committed"
                    ),
                    EditPhase::Aborted => ensure!(
                        "ATTR-9",
                        open.end_asked || open.bound || self.closing.contains(&open.session),
                        "{record:?}: nobody aborted"
                    ),
                    EditPhase::Lapsed => ensure!(
                        "ATTR-9",
                        world.now >= open.deadline || open.bound,
                        "{record:?} before its deadline {}",
                        open.deadline
                    ),
                    EditPhase::Begun => return Err(format!("begun is no end: {record:?}")),
                }
                for path in all {
                    for file in open.files.get_mut(&path).into_iter().flatten() {
                        file.ended = true;
                        open.step_ended = step;
                    }
                }
            }
            Fact::Lost {
                session,
                path,
                version,
                ..
            } => {
                let Some(known) = self.versions.get(version) else {
                    return Err(format!("ATTR-10: {record:?} names no version"));
                };
                ensure!(
                    "ATTR-10 (clobbered)",
                    !known.author.is(session) && known.path == text(path),
                    "{record:?}: its own, or of another path"
                );
                let key = (session.clone(), text(path));
                ensure!(
                    "ATTR-10 (clobbered)",
                    known.hash.is_none() || self.last.get(&key).copied() != known.hash,
                    "{record:?}: the session had read it"
                );
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn version(
        &mut self,
        world: &World,
        record: &Record,
        version: &VersionFact,
    ) -> Verdict {
        let path = text(&version.path);
        let content = version.held.hash;
        let pair_ok = match version.evidence {
            Evidence::Declared | Evidence::Marked | Evidence::Command => {
                version.author.kind == AuthorKind::Agent && version.author.session.is_some()
            }
            Evidence::Editor | Evidence::Process | Evidence::Unmarked => {
                version.author == Author::USER
            }
            Evidence::Gap => version.author == Author::UNKNOWN,
            // Only the shell records the user's word (ATTR-18).
            Evidence::Claimed => false,
            // Only blame answers it (HIST-11).
            Evidence::Commit => false,
        };
        // Without a command it would count as certain.
        ensure!(
            "ATTR-6",
            version.evidence != Evidence::Command || version.formatted || version.command.is_some(),
            "{record:?} names no command"
        );
        ensure!(
            "ATTR",
            pair_ok,
            "author and evidence do not go together: {record:?}"
        );
        if let Some(session) = &version.author.session {
            let key = (session.clone(), path.clone());
            if let Some(hash) = content {
                self.maybe_seen.entry(key.clone()).or_default().insert(hash);
            }
            self.last.remove(&key);
        }
        if version.evidence == Evidence::Declared {
            // The beginnings of a declared content belong to its writer
            // (ATTR-5).
            let beginning = version.amends.is_some() && self.arrives(&path, content);
            ensure!(
                "ATTR-1/14",
                beginning || self.is_claimed(version),
                "nobody declared this: {record:?}"
            );
        }
        if version.evidence == Evidence::Editor {
            let reported = content.is_some_and(|hash| {
                self.saves
                    .get(&path)
                    .is_some_and(|saves| saves.contains(&hash))
            });
            ensure!("ATTR-2", reported, "no editor reported this: {record:?}");
        }
        if let Some(amended) = version.amends {
            let Some(old) = self.versions.get(&amended) else {
                return Err(format!("ATTR-11: amends nothing: {record:?}"));
            };
            ensure!(
                "ATTR-11",
                old.path == path && old.hash == content,
                "amends another content: {record:?}"
            );
            // The edit counts too, since it may be aborted.
            let already = old.author == version.author
                && old.evidence == version.evidence
                && old.edit == version.edit;
            // If a write was claimed that was never read, a correction says
            // that the other version came after it (ATTR-10).
            ensure!(
                "ATTR-11",
                !already || self.unobserved.contains(&path),
                "corrects nothing: {record:?}"
            );
            if already {
                self.latest.insert(path.clone(), content);
            }
            if version.author == Author::USER
                && old.author.session.is_some()
                && version.evidence != Evidence::Editor
            {
                ensure!(
                    "ATTR-4",
                    old.evidence == Evidence::Marked,
                    "only a mark's guess may be taken back: {record:?}"
                );
            }
        } else if !version.unobserved {
            self.observed(world, record, version, &path)?;
        }
        if let Some(old) = version.amends.and_then(|n| self.versions.get_mut(&n)) {
            old.author = version.author.clone();
            old.evidence = version.evidence;
            old.edit = version.edit;
        }
        if version.unobserved {
            self.unobserved.insert(path.clone());
            self.latest.insert(path.clone(), content);
        } else {
            self.unobserved.remove(&path);
        }
        self.newest.insert(path.clone(), record.n);
        self.versions.insert(
            record.n,
            Known {
                hash: content,
                author: version.author.clone(),
                evidence: version.evidence,
                path,
                edit: version.edit,
            },
        );
        Ok(())
    }

    /// Checks a content that was read from disk.
    pub(super) fn observed(
        &mut self,
        world: &World,
        record: &Record,
        version: &VersionFact,
        path: &str,
    ) -> Verdict {
        let content = version.held.hash;
        let there = world.disk.between(path, 0, world.disk.moment);
        let at = content.map_or(At::Absent, At::File);
        ensure!(
            "version",
            there.contains(&at),
            "{record:?} never was on disk: {there:?}"
        );
        if let Some(latest) = self.latest.get(path) {
            ensure!(
                "ATTR (a version only where content differs)",
                *latest != content || version.late,
                "{record:?} repeats the latest"
            );
            if version.kind != VersionKind::Renamed {
                let kind = match (latest, content) {
                    (_, None) => VersionKind::Deleted,
                    (None, _) => VersionKind::Created,
                    _ => VersionKind::Modified,
                };
                ensure!("kind", version.kind == kind, "{record:?} after {latest:?}");
            }
        }
        self.latest.insert(path.into(), content);
        let in_gap = self.in_gap(path);
        // An absence that was read before the file became unreadable is
        // recorded later.
        if world.disk.at(path) != At::Unreadable {
            self.unread.remove(path);
        }
        if version.kind == VersionKind::Renamed {
            ensure!(
                "ATTR-12",
                version.from.is_some(),
                "{record:?} names no source"
            );
        }
        if self.unobserved.contains(path) && version.evidence == Evidence::Unmarked {
            // The version that replaced a write which was never read (ATTR-10).
            return Ok(());
        }
        if self.arrives(path, content) && version.evidence == Evidence::Unmarked {
            return Ok(());
        }
        let step = self.step;
        let open: Vec<(u64, &mut OpenFile, SessionId, bool)> = self
            .edits
            .iter_mut()
            .flat_map(|(number, edit)| {
                let recent = edit.step_ended == step;
                let (session, one_shot) = (edit.session.clone(), edit.one_shot);
                edit.files
                    .get_mut(path)
                    .into_iter()
                    .flatten()
                    .filter(move |file| !file.ended || recent)
                    .map(move |file| (*number, file, session.clone(), one_shot))
            })
            .collect();
        let wanted: HashOrAbsent = content.into();
        let mut declared_by = None;
        let mut marked_by: Vec<SessionId> = Vec::new();
        let mut sure = false;
        for (number, file, session, one_shot) in open {
            match file.expect {
                Some(expect) => {
                    if expect == wanted && file.began != content && !file.matched {
                        if declared_by.is_none() && version.edit.is_none_or(|e| e == number) {
                            file.matched = version.edit == Some(number)
                                && version.evidence == Evidence::Declared;
                            declared_by = Some(session);
                        }
                        sure |= !file.ended && !self.ending.contains(&number);
                    }
                }
                // A content that was there when the mark was made is another
                // author's (ATTR-16).
                None if one_shot => {
                    marked_by.push(session);
                    let open = !file.ended && !self.ending.contains(&number);
                    sure |= open && file.began != content;
                }
                // The edit says at its end what it wrote. Until then its
                // session is a candidate.
                None => ensure!(
                    "ATTR-4",
                    version.evidence != Evidence::Unmarked
                        || version.candidates.contains(&session)
                        || file.began == content
                        || file.ended
                        || self.ending.contains(&number),
                    "{record:?} does not name {session:?}"
                ),
            }
        }
        match version.evidence {
            Evidence::Declared => ensure!(
                "ATTR-1",
                version.late || (declared_by.is_some() && declared_by == version.author.session),
                "{record:?} without an open edit that expects it"
            ),
            Evidence::Marked => ensure!(
                "ATTR-4",
                declared_by.is_none()
                    && version
                        .author
                        .session
                        .as_ref()
                        .is_some_and(|session| marked_by.contains(session)),
                "{record:?} without an open mark"
            ),
            Evidence::Editor => ensure!(
                "ATTR-1 before ATTR-2",
                declared_by.is_none() || !sure,
                "{record:?}: expected by {declared_by:?}"
            ),
            Evidence::Unmarked => ensure!(
                "ATTR-1/4 before ATTR-7",
                !sure || (declared_by.is_none() && marked_by.is_empty()),
                "{record:?}: expected by {declared_by:?}, marked by {marked_by:?}"
            ),
            Evidence::Gap => {
                ensure!("ATTR-13", in_gap, "{record:?} without a gap");
                ensure!(
                    "ATTR-13",
                    declared_by.is_none() || !sure,
                    "{record:?}: expected by {declared_by:?}"
                );
            }
            Evidence::Command | Evidence::Process | Evidence::Claimed | Evidence::Commit => {
                return Err(format!("no such evidence here: {record:?}"));
            }
        }
        Ok(())
    }
}
