//! What `edit/begin` and `edit/commit` must answer (GUARD-4, GUARD-5, ATTR-10).

use super::*;

impl Eager {
    pub(super) fn opened(
        &mut self,
        asked: &Asked,
        name: &Option<String>,
        deadline: Millis,
        one_shot: bool,
    ) {
        let (Ask::Begin { slot, .. } | Ask::Mark { slot, .. }) = &asked.asking.ask else {
            return;
        };
        let number = name
            .as_ref()
            .and_then(|name| name.strip_prefix('e')?.parse().ok());
        let (Some(number), Some(slot)) = (number, self.world.slots.get(slot).cloned()) else {
            return;
        };
        let files = slot.files.iter().map(|(path, expect, _)| EditFile {
            path,
            expect: *expect,
            began: self.now(path),
            matched: false,
            clobbered: false,
            clobbered_surely: false,
            done: false,
            marked: Vec::new(),
        });
        let files: Vec<EditFile> = files.collect();
        for file in &files {
            // Which of several edits of one session claims a content is not
            // compared here; the stories of marks do (tests/windows).
            if self.model.open_by(file.path, asked.asking.session) {
                self.model.ignored.insert(file.path);
            }
        }
        self.model.edits.push(Edit {
            number,
            session: asked.asking.session,
            files,
            deadline,
            one_shot,
            call: matches!(
                asked.asking.ask,
                Ask::Begin {
                    call: true,
                    bind: false,
                    ..
                }
            ),
        });
    }

    pub(super) fn begin(
        &mut self,
        asked: &Asked,
        reply: Result<&Reply, touchmark_proto::Error>,
    ) -> Check {
        let Ask::Begin {
            files,
            require_read,
            force,
            ttl,
            call,
            ..
        } = &asked.asking.ask
        else {
            return Ok(());
        };
        let who = asked.asking.session;
        let now: Vec<(Path, Option<Hash>)> = files
            .iter()
            .map(|(path, _)| (*path, self.now(path)))
            .collect();
        let loose = now.iter().any(|(path, _)| {
            self.model.ignored.contains(path)
                || self
                    .model
                    .copies
                    .get(&(who, *path))
                    .is_some_and(|copy| copy.blurred || copy.marked || !copy.perhaps.is_empty())
        });
        let refusals = self.model.refusals(who, &now, *require_read && !*force);
        let begun = match &reply {
            Ok(Reply::EditBegin(begun)) => {
                if !loose {
                    check_refusal(&refusals, Ok(()))?;
                }
                begun
            }
            Err(error) => {
                if !loose {
                    check_refusal(&refusals, Err(error))?;
                }
                return Ok(());
            }
            other => return Err(format!("edit/begin: {other:?}")),
        };
        for (path, _) in files {
            self.track(who, path);
        }
        let wanted = self.world.now + ttl.unwrap_or(if *call { 600_000 } else { 60_000 });
        if begun.deadline != wanted {
            return Err(format!("ATTR-9: {begun:?}, due at {wanted}"));
        }
        self.opened(asked, &Some(begun.edit.clone()), wanted, false);
        for ((path, now), file) in now.iter().zip(&begun.files) {
            let count = self.lines(path);
            self.model.check_state(who, path, *now, count, file)?;
        }
        Ok(())
    }

    pub(super) fn end(&mut self, index: usize) {
        let edit = &mut self.model.edits[index];
        let session = edit.session;
        for file in &mut edit.files {
            file.done = true;
        }
        let paths: Vec<Path> = edit.files.iter().map(|file| file.path).collect();
        for path in paths {
            let still = self
                .model
                .open_on(path)
                .any(|(other, _, file)| other == session && !file.marked.is_empty());
            // Of two marks of one session that declared nothing, the text does
            // not say which one claims a content that both saw written: whether
            // the next read is called its first after an own write is open.
            let beside = self.model.edits.iter().enumerate().any(|(n, other)| {
                let on_it = |file: &EditFile| file.path == path && file.expect.is_none();
                n != index && other.session == session && other.files.iter().any(on_it)
            });
            if let Some(copy) = self.model.copies.get_mut(&(session, path)) {
                copy.marked &= still;
                copy.blurred_reads |= beside;
            }
        }
    }

    pub(super) fn commit(
        &mut self,
        asked: &Asked,
        reply: Result<&Reply, touchmark_proto::Error>,
    ) -> Check {
        let number = self.edit_of(asked);
        let index = number.and_then(|number| {
            self.model
                .edits
                .iter()
                .position(|edit| edit.number == number)
        });
        let done = match reply {
            Ok(Reply::EditCommit(done)) => done,
            Err(error) if error.code == ErrorCode::UnknownEdit => {
                let open = index.is_some_and(|index| {
                    let edit = &self.model.edits[index];
                    !edit.one_shot && edit.files.iter().all(|file| !file.done)
                });
                if open {
                    return Err(format!("ATTR-9: {error:?} for an open edit"));
                }
                if let Some(index) = index
                    && self.model.edits[index].one_shot
                {
                    self.end(index);
                }
                return Ok(());
            }
            other => return Err(format!("edit/commit: {other:?}")),
        };
        let Request::EditCommit(commit) = &asked.request else {
            return Ok(());
        };
        let Some(index) = index else {
            // Without an edit only a late declaration is heard; what it did
            // has been taken in as a correction.
            for file in &done.files {
                if let Some(path) = path_of(&file.path) {
                    self.model.ignored.insert(path);
                }
            }
            return Ok(());
        };
        for file in &done.files {
            let Some(path) = path_of(&file.path) else {
                return Err(format!("edit/commit: {file:?}"));
            };
            let named = commit
                .files
                .iter()
                .find(|one| one.path.as_bytes() == path.as_bytes())
                .and_then(|one| one.hash);
            self.committed(index, path, named, done)?;
        }
        Ok(())
    }

    /// ATTR-10, file by file.
    pub(super) fn committed(
        &mut self,
        index: usize,
        path: Path,
        named: Option<HashOrAbsent>,
        done: &EditCommitted,
    ) -> Check {
        let now: HashOrAbsent = self.now(path).into();
        let who = self.model.edits[index].session;
        let Some(file) = self.model.edits[index]
            .files
            .iter_mut()
            .find(|file| file.path == path)
        else {
            return Ok(());
        };
        let was_done = file.done;
        file.done = true;
        let file = file.clone();
        let row = done
            .files
            .iter()
            .find(|row| row.path.as_bytes() == path.as_bytes());
        let Some(row) = row else { return Ok(()) };
        let began: HashOrAbsent = file.began.into();
        let whose = Author::agent(asks::session(who));
        let still: Vec<Option<Hash>> = self.model.logs.get(path).map_or(Vec::new(), |log| {
            log.versions
                .iter()
                .filter(|version| file.marked.contains(&version.n))
                .filter(|version| version.author == whose || version.evidence == Evidence::Unmarked)
                .map(|version| version.hash)
                .collect()
        });
        let marked_too = |hash: HashOrAbsent| still.iter().any(|h| HashOrAbsent::from(*h) == hash);
        let copy = self.model.copies.entry((who, path)).or_default();
        copy.marked = false;
        let mut allowed: Vec<Fate> = match (file.expect, named) {
            _ if was_done => {
                self.model.ignored.insert(path);
                return Ok(());
            }
            (Some(expect), named) if file.matched => {
                if now == expect {
                    vec![Fate::Applied]
                } else if named.is_some() {
                    vec![Fate::Overwritten]
                } else {
                    vec![Fate::Applied, Fate::Overwritten]
                }
            }
            (Some(expect), None) => {
                if expect == began && now == began {
                    if HashOrAbsent::from(copy.last) != now {
                        copy.blurred = true;
                    }
                    vec![Fate::Unchanged]
                } else if expect == began {
                    vec![Fate::Unchanged, Fate::NotApplied, Fate::Overwritten]
                } else {
                    vec![Fate::NotApplied]
                }
            }
            (Some(_), Some(hash)) => {
                if now == hash {
                    if HashOrAbsent::from(copy.last) != now {
                        copy.blurred = true;
                    }
                    if hash == began && !self.model.logs.contains_key(path) {
                        vec![Fate::Unchanged]
                    } else {
                        vec![Fate::Applied, Fate::Unchanged]
                    }
                } else {
                    copy.confirmed(hash.hash(), now);
                    copy.blurred = true;
                    if hash == began {
                        vec![Fate::Overwritten, Fate::Unchanged, Fate::NotApplied]
                    } else {
                        vec![Fate::Overwritten]
                    }
                }
            }
            (None, None) => {
                let log = self.model.logs.get(path);
                let last = log.and_then(|log| log.versions.last());
                if still.is_empty() && last.is_some_and(|last| last.author == whose) {
                    // Another mark of the session's has claimed it.
                    copy.blurred = true;
                    vec![Fate::Unchanged, Fate::Applied, Fate::Overwritten]
                } else if still.is_empty() {
                    vec![Fate::Unchanged, Fate::NotApplied]
                } else {
                    let last = still.last().copied().flatten();
                    if HashOrAbsent::from(last) == now {
                        copy.wrote_perhaps(last);
                    } else {
                        copy.blurred = true;
                    }
                    let log = self.model.logs.get(path);
                    let last = log.and_then(|log| log.versions.last());
                    if now == began {
                        vec![Fate::Applied, Fate::Unchanged, Fate::Overwritten]
                    } else if last.is_some_and(|last| last.author != whose) {
                        vec![Fate::Applied, Fate::Overwritten]
                    } else {
                        vec![Fate::Applied]
                    }
                }
            }
            (None, Some(hash)) => {
                copy.confirmed(hash.hash(), now);
                // It saw what is there now before it wrote; whether since, too,
                // is not kept here.
                copy.blurred |= now == began && now != hash;
                if now == hash {
                    if now == began {
                        copy.blurred = true;
                        vec![Fate::Unchanged, Fate::Applied]
                    } else if marked_too(hash) {
                        vec![Fate::Applied]
                    } else {
                        copy.blurred = true;
                        vec![Fate::Applied, Fate::Unchanged]
                    }
                } else {
                    if !marked_too(hash) {
                        copy.blurred = true;
                    }
                    vec![Fate::Overwritten]
                }
            }
        };
        let mut must_clobber = file.clobbered_surely
            && file.expect.is_some()
            && file.matched
            && allowed == [Fate::Applied];
        if self.model.ignored.contains(path) {
            return Ok(());
        }
        if file.clobbered || file.expect.is_none() || named.is_some() {
            allowed.push(Fate::Clobbered);
        }
        // A loss by an earlier edit of the session is not this one's.
        let several = self
            .model
            .edits
            .iter()
            .filter(|edit| edit.session == who && edit.files.iter().any(|f| f.path == path))
            .count();
        must_clobber &= several == 1;
        if !allowed.contains(&row.outcome) || (must_clobber && row.outcome != Fate::Clobbered) {
            return Err(format!(
                "ATTR-10: {row:?}, allowed {allowed:?}, clobbered {}, named {named:?}, now {now:?}\n{file:?}",
                file.clobbered
            ));
        }
        // What the answer tells of others' changes may count as told.
        let newest = self.model.newest_for(who, path);
        if done
            .changes
            .iter()
            .any(|change| change.path.as_bytes() == path.as_bytes())
        {
            let copy = self.model.copies.entry((who, path)).or_default();
            copy.told_perhaps = copy.told_perhaps.max(newest);
        }
        Ok(())
    }
}
