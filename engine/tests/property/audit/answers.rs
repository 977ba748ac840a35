//! Checks every answer against the disk since the request.

use super::*;

impl Audit {
    pub(super) fn answered(
        &mut self,
        world: &World,
        asked: &Asked,
        outcome: &Outcome,
        moment: u64,
    ) -> Verdict {
        let who = asks::session(asked.asking.session);
        let answer = match outcome {
            Outcome::Shell => return Ok(()),
            Outcome::Reply(Err(error)) => {
                self.read_over(&who, asked);
                return self.error(world, asked, error, moment, &who);
            }
            Outcome::Reply(Ok(answer)) => &answer.reply,
        };
        if let Some(until) = asked.until {
            ensure!(
                "ATTR-9 (withinMs)",
                world.now <= until,
                "answered at {} although it had time until {until}",
                world.now
            );
        }
        match answer {
            Reply::FileStatus(states) => {
                let late = states.pending.as_deref().unwrap_or_default();
                for file in states.files.iter().filter(|f| !late.contains(&f.path)) {
                    self.file_state(world, asked, &who, file, moment)?;
                }
            }
            Reply::FileMention(file) => {
                self.file_state(world, asked, &who, file, moment)?;
                self.read_over(&who, asked);
                self.told.remove(&(who, text(&file.path)));
            }
            Reply::EditBegin(begun) => {
                if let Some(number) = self.edit_of(Some(&begun.edit)) {
                    self.answered_now.insert(number);
                }
                if let Ask::Begin {
                    require_read: true,
                    force: false,
                    ..
                } = &asked.asking.ask
                {
                    for file in &begun.files {
                        let path = text(&file.path);
                        let there = world.disk.between(&path, asked.moment, moment);
                        let none = BTreeSet::new();
                        let seen = self.maybe_seen.get(&(who.clone(), path.clone()));
                        let seen = seen.unwrap_or(&none);
                        let allowed = there.iter().any(|at| match at {
                            At::Absent => true,
                            At::File(hash) => seen.contains(hash),
                            At::Unreadable => false,
                        });
                        ensure!("GUARD-4", allowed, "{begun:?} although {there:?}");
                    }
                }
            }
            Reply::EditMark(marked) => {
                if let Some(number) = self.edit_of(marked.edit.as_deref()) {
                    self.answered_now.insert(number);
                } else {
                    ensure!(
                        "ATTR-14",
                        marked.late == Some(true) && marked.deadline.is_none(),
                        "{marked:?}"
                    );
                }
            }
            Reply::FileRead(read) => self.read(world, asked, &who, read.hash, moment)?,
            Reply::FileReadText(read) => self.read(world, asked, &who, read.hash, moment)?,
            Reply::ModifiedTake(taken) => {
                let (peek, explicit) = match &asked.asking.ask {
                    Ask::Take { peek, explicit, .. } => (*peek, *explicit),
                    _ => (false, false),
                };
                let late = taken.pending.as_deref().unwrap_or_default();
                self.listed(world, asked, &who, (&taken.changes, late), moment)?;
                let told = self.telling(world, asked, &taken.changes, moment);
                let all = matches!(&asked.asking.ask, Ask::Take { paths: None, .. });
                if explicit && !peek && !all {
                    // Its cursor covers only these paths, and is not used.
                } else if explicit && !peek {
                    self.unacked
                        .entry(who)
                        .or_default()
                        .push((taken.cursor.clone(), told));
                } else if !peek {
                    for (path, one) in told {
                        if one.save.is_some() {
                            self.continued.insert((who.clone(), path.clone()));
                        }
                        self.told.insert((who.clone(), path), one);
                    }
                }
            }
            Reply::ModifiedList(list) => {
                let late = list.pending.as_deref().unwrap_or_default();
                self.listed(world, asked, &who, (&list.changes, late), moment)?;
            }
            Reply::ModifiedAck(_) => {
                let touchmark_proto::Request::ModifiedAck(ack) = &asked.request else {
                    return Ok(());
                };
                // Everything up to the cursor counts.
                let mut unacked = self.unacked.remove(&who).unwrap_or_default();
                let upto = unacked
                    .iter()
                    .rposition(|(cursor, _)| *cursor == ack.cursor)
                    .map_or(0, |last| last + 1);
                for (_, told) in unacked.drain(..upto) {
                    for (path, one) in told {
                        let key = (who.clone(), path);
                        if self
                            .told
                            .get(&key)
                            .is_none_or(|old| old.moment < one.moment)
                        {
                            self.told.insert(key, one);
                        }
                    }
                }
                self.unacked.insert(who, unacked);
            }
            Reply::SessionClose(_) => {
                self.last.retain(|(session, _), _| *session != who);
                self.told.retain(|(session, _), _| *session != who);
                self.unacked.remove(&who);
            }
            Reply::FileUntrack(_) => {
                if let Ask::Untrack { path } = &asked.asking.ask {
                    let key = (who, (*path).to_owned());
                    self.last.remove(&key);
                    self.told.remove(&key);
                }
            }
            Reply::EditCommit(done) => {
                // What the answer of a commit reports may count as reported.
                let told = self.telling(world, asked, &done.changes, moment);
                for (path, _) in told {
                    self.last.remove(&(who.clone(), path));
                }
                // The session has seen what its commit claims.
                for file in &done.files {
                    let path = text(&file.path);
                    self.last.retain(|(_, held), _| *held != path);
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn read_over(&mut self, who: &SessionId, asked: &Asked) {
        let path = match &asked.asking.ask {
            Ask::Read { path, .. } | Ask::ReadText { path, .. } | Ask::Mention { path, .. } => path,
            _ => return,
        };
        if let Some(all) = self.read_asked.get_mut(&(who.clone(), (*path).to_owned())) {
            all.retain(|(_, request)| *request != asked.id);
        }
    }

    pub(super) fn read(
        &mut self,
        world: &World,
        asked: &Asked,
        who: &SessionId,
        hash: Option<Hash>,
        moment: u64,
    ) -> Verdict {
        self.read_over(who, asked);
        if let touchmark_proto::Request::FileRead(read) = &asked.request
            && read.hash.is_some()
            && let Ask::Read { path, .. } = &asked.asking.ask
        {
            // The read may be older than what was reported.
            self.told.remove(&(who.clone(), (*path).to_owned()));
        }
        let (path, named, range) = match &asked.asking.ask {
            Ask::Read { path, named, range } => (*path, *named, *range),
            Ask::ReadText { path, range, .. } => (*path, Named::No, *range),
            _ => return Ok(()),
        };
        let key = (who.clone(), path.to_owned());
        let own = match &asked.request {
            touchmark_proto::Request::FileRead(read) => read.hash,
            _ => None,
        };
        let there = world.disk.between(path, asked.moment, moment);
        match (own, hash) {
            (Some(own), answered) => ensure!(
                "SEEN-1",
                answered == Some(own),
                "the client's hash {own:?} counts, not {answered:?}"
            ),
            (None, Some(hash)) => {
                ensure!(
                    "SYNC-1",
                    !asked.asking.sync || there.contains(&At::File(hash)),
                    "read {path}: {hash:?}, but the disk held {there:?}"
                );
            }
            (None, None) => {}
        }
        let others = self.read_asked.get(&key).is_some_and(|all| !all.is_empty());
        self.last.remove(&key);
        if let Some(hash) = hash {
            self.maybe_seen.entry(key.clone()).or_default().insert(hash);
            // A read without the client's hash is certain only if the file did
            // not change meanwhile.
            let certain = matches!(named, Named::Disk | Named::Content(_)) || there.len() == 1;
            if range.is_none() && !others && certain && asked.asking.sync {
                self.last.insert(key, hash);
            }
        }
        Ok(())
    }

    pub(super) fn file_state(
        &self,
        world: &World,
        asked: &Asked,
        who: &SessionId,
        file: &FileState,
        moment: u64,
    ) -> Verdict {
        if !asked.asking.sync {
            return Ok(());
        }
        let path = text(&file.path);
        let there = world.disk.between(&path, asked.moment, moment);
        let key = (who.clone(), path.clone());
        let at = match (file.state, file.hash) {
            (State::Unreadable, _) => At::Unreadable,
            (_, Some(hash)) => At::File(hash),
            // The file changed during every attempt to read it.
            (State::Stale | State::Unread, None)
                if there.len() > 1
                    || world.writing(&path)
                    || world
                        .unstable
                        .get(&path)
                        .is_some_and(|m| *m >= asked.moment) =>
            {
                return Ok(());
            }
            (_, None) => At::Absent,
        };
        ensure!(
            "SYNC-1",
            there.contains(&at),
            "{file:?}, but the disk held {there:?} from the question to the answer"
        );
        if file.state == State::Fresh {
            let seen = file.hash.is_some_and(|hash| {
                self.maybe_seen
                    .get(&key)
                    .is_some_and(|seen| seen.contains(&hash))
            });
            ensure!("SEEN-2", seen, "{file:?}: never seen by {who:?}");
        }
        let reading = self.read_asked.get(&key).is_some_and(|all| !all.is_empty());
        if let (Some(last), false) = (self.last.get(&key), reading) {
            let state = match at {
                At::Absent => State::Deleted,
                At::Unreadable => State::Unreadable,
                At::File(hash) if hash == *last => State::Fresh,
                At::File(_) => State::Stale,
            };
            // If the file has a content again that was seen earlier, `fresh` is
            // accepted: SEEN-2 says "has been seen".
            let seen_before = matches!(at, At::File(hash)
                if self.maybe_seen.get(&key).is_some_and(|seen| seen.contains(&hash)));
            ensure!(
                "SEEN-2",
                file.state == state || (state == State::Stale && seen_before),
                "{file:?}, but {who:?} last saw {last:?}"
            );
        }
        Ok(())
    }

    pub(super) fn error(
        &mut self,
        world: &World,
        asked: &Asked,
        error: &Error,
        moment: u64,
        who: &SessionId,
    ) -> Verdict {
        match error.code {
            ErrorCode::TooLate => ensure!(
                "ATTR-9 (withinMs)",
                asked.until.is_some_and(|until| world.now >= until),
                "{error:?} at {} for {asked:?}",
                world.now
            ),
            ErrorCode::NotRead | ErrorCode::Stale => {
                if let Ask::Begin { files, .. } = &asked.asking.ask {
                    let fine = files.iter().all(|(path, _)| {
                        let key = (who.clone(), (*path).to_owned());
                        let last = self.last.get(&key);
                        let seen = self.maybe_seen.get(&key);
                        let there = world.disk.between(path, asked.moment, moment);
                        let never_seen = seen.is_none_or(BTreeSet::is_empty)
                            && !self.read_unknown.contains(&key);
                        (there == [At::Absent] && never_seen)
                            || last.is_some_and(|last| there == [At::File(*last)])
                    });
                    ensure!("GUARD-4", !fine, "{error:?} although all was seen");
                }
            }
            ErrorCode::Busy => {
                let step = self.step;
                let paths: Vec<&str> = match &asked.asking.ask {
                    Ask::Begin { files, .. } => files.iter().map(|(path, _)| *path).collect(),
                    Ask::Mark { path, .. } => vec![*path],
                    _ => Vec::new(),
                };
                let held = self.edits.values().any(|edit| {
                    edit.session != *who
                        && paths.iter().any(|path| {
                            edit.files.get(*path).is_some_and(|files| {
                                files
                                    .iter()
                                    .any(|file| !file.ended || edit.step_ended == step)
                            })
                        })
                });
                ensure!("GUARD-5", held, "{error:?} although nobody holds it");
            }
            ErrorCode::NotFound => {
                if let Ask::Read { path, .. } | Ask::ReadText { path, .. } = &asked.asking.ask {
                    let there = world.disk.between(path, asked.moment, moment);
                    ensure!(
                        "SYNC-1",
                        there.contains(&At::Absent) || !asked.asking.sync,
                        "{error:?}, but the disk held {there:?}"
                    );
                }
            }
            ErrorCode::UnknownSession => ensure!(
                "SES-1",
                self.last.keys().all(|(session, _)| session != who),
                "{error:?}, who has read or written"
            ),
            ErrorCode::Unreadable => {}
            // A range that begins after the last line.
            ErrorCode::InvalidParams
                if matches!(asked.asking.ask, Ask::ReadText { range: Some(_), .. }) => {}
            ErrorCode::UnknownEdit => {
                let edit = match &asked.request {
                    touchmark_proto::Request::EditCommit(commit) => commit.edit.as_deref(),
                    touchmark_proto::Request::EditAbort(abort) => abort.edit.as_deref(),
                    _ => None,
                };
                let step = self.step;
                let open = self.edit_of(edit).and_then(|edit| self.edits.get(&edit));
                ensure!(
                    "ATTR-9",
                    open.is_none_or(|open| {
                        open.step_ended == step || open.files.values().flatten().any(|f| f.ended)
                    }),
                    "{error:?} for an open edit"
                );
            }
            _ => {
                return Err(format!("{error:?} for {:?}", asked.asking));
            }
        }
        Ok(())
    }
}
