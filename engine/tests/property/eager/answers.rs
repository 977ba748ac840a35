//! The answers of a step, method by method.

use super::*;

impl Eager {
    #[allow(clippy::too_many_lines)] // one arm a method
    pub(super) fn answer(&mut self, asked: &Asked, outcome: &Outcome) -> Check {
        let who = asked.asking.session;
        let Outcome::Reply(answer) = outcome else {
            return Ok(());
        };
        let reply = match answer {
            Ok(answer) => Ok(&answer.reply),
            Err(error) => Err(error),
        };
        if let Err(error) = reply
            && error.code == ErrorCode::UnknownSession
        {
            let known = self.model.copies.keys().any(|(session, _)| *session == who);
            return match known {
                true => Err(format!("SES-1: {error:?}, who holds files")),
                false => Ok(()),
            };
        }
        match (&asked.asking.ask, reply) {
            (Ask::Read { path, named, range }, Ok(Reply::FileRead(read))) => {
                let own = match named {
                    Named::Content(id) => Some(content(*id)),
                    _ => self.world.disk.bytes(path).map(|bytes| bytes.to_vec()),
                };
                let verdict = format!("{:?}", read.verdict);
                if verdict == "Repeat" {
                    let message = format!(
                        "[File previously read: {path}. Content unchanged since last read.]"
                    );
                    if read.message.as_ref() != Some(&message) {
                        return Err(format!("message: {read:?}"));
                    }
                }
                self.read(who, path, own.as_deref(), *range, &verdict, read.read_count)?;
            }
            (Ask::ReadText { path, range, .. }, Ok(Reply::FileReadText(read))) => {
                let bytes = self.world.disk.bytes(path).map(|bytes| bytes.to_vec());
                let verdict = format!("{:?}", read.verdict);
                if range.is_none()
                    && read.text.is_some()
                    && read.text.as_ref().map(|text| text.as_bytes().to_vec()) != bytes
                {
                    return Err(format!("file/readText: {read:?}, the file holds {bytes:?}"));
                }
                let count = u32::MAX;
                self.read(who, path, bytes.as_deref(), *range, &verdict, count)?;
            }
            (Ask::Read { path, named, .. }, Err(error)) => {
                let gone = self.now(path).is_none() && !matches!(named, Named::Content(_));
                if !(gone && error.code == ErrorCode::NotFound) {
                    return Err(format!("file/read: {error:?}"));
                }
            }
            (Ask::Mention { path, named, range }, Ok(Reply::FileMention(file))) => {
                self.track(who, path);
                let own = match named {
                    Named::Content(id) => Some((hash(&content(*id)), None)),
                    Named::Disk => self.now(path).map(|h| (h, Some(self.lines(path)))),
                    _ => None,
                };
                if let Some((hash, count)) = own {
                    let copy = self.model.copies.entry((who, path)).or_default();
                    copy.blurred_reads = true;
                    copy.invalidated = false;
                    copy.foreign = Some(hash) != self.world.hash_of(path);
                    copy.see(hash, count, bits(*range), true);
                }
                let (now, count) = (self.now(path), self.lines(path));
                self.model.check_state(who, path, now, count, file)?;
            }
            (Ask::Status { paths }, Ok(Reply::FileStatus(states))) => {
                let mut there = BTreeSet::new();
                for file in &states.files {
                    let Some(path) = path_of(&file.path) else {
                        return Err(format!("file/status: nobody named {file:?}"));
                    };
                    there.insert(path);
                    let (now, count) = (self.now(path), self.lines(path));
                    self.model.check_state(who, path, now, count, file)?;
                }
                for ((session, path), copy) in &self.model.copies {
                    if *session == who
                        && !copy.unnamed
                        && paths.as_ref().is_none_or(|paths| paths.contains(path))
                        && !there.contains(path)
                        && !self.model.ignored.contains(path)
                    {
                        return Err(format!("file/status: {path} is missing in {states:?}"));
                    }
                }
            }
            (Ask::Begin { .. }, reply) => self.begin(asked, reply.map_err(Clone::clone))?,
            (
                Ask::Mark {
                    slot, path, ttl, ..
                },
                reply,
            ) => {
                let held = self.model.held_by_other(path, who);
                match reply {
                    Ok(Reply::EditMark(marked)) => {
                        if held && marked.late != Some(true) {
                            return Err(format!("GUARD-5: {marked:?} although held"));
                        }
                        self.track(who, path);
                        let expect = self.world.slots.get(slot).and_then(|slot| slot.files[0].1);
                        if marked.late == Some(true) {
                            let now = self.now(path);
                            if expect != Some(now.into()) {
                                self.model.ignored.insert(path);
                            }
                            let copy = self.model.copies.entry((who, path)).or_default();
                            copy.wrote(now);
                        } else {
                            let wanted = self.world.now + ttl.unwrap_or(10_000);
                            if marked.deadline != Some(wanted) {
                                return Err(format!("ATTR-8: {marked:?}, due at {wanted}"));
                            }
                            self.opened(asked, &marked.edit, wanted, true);
                        }
                        let (now, count) = (self.now(path), self.lines(path));
                        self.model
                            .check_state(who, path, now, count, &marked.file)?;
                    }
                    Err(error) if held && error.code == ErrorCode::Busy => {}
                    other => return Err(format!("edit/mark: {other:?}")),
                }
            }
            (Ask::Commit { .. }, reply) => self.commit(asked, reply.map_err(Clone::clone))?,
            (Ask::Abort { .. }, reply) => {
                let open = self.edit_of(asked).and_then(|number| {
                    self.model
                        .edits
                        .iter()
                        .position(|edit| edit.number == number)
                });
                let open = open
                    .filter(|index| self.model.edits[*index].files.iter().any(|file| !file.done));
                match (open, reply) {
                    (Some(index), Ok(_)) => self.end(index),
                    (None, Err(error)) if error.code == ErrorCode::UnknownEdit => {}
                    (Some(index), Err(error)) if self.model.edits[index].one_shot => {
                        // Whether a matched mark is still open is left open.
                        let _ = error;
                        self.end(index);
                    }
                    (open, reply) => {
                        return Err(format!("ATTR-9: abort of {open:?}: {reply:?}"));
                    }
                }
            }
            (
                Ask::Take {
                    peek,
                    explicit,
                    paths,
                },
                Ok(Reply::ModifiedTake(taken)),
            ) => {
                let told = self.listed(who, paths.as_deref(), &taken.changes)?;
                if !peek && *explicit && paths.is_some() {
                    for (path, newest) in told.0 {
                        if let Some(copy) = self.model.copies.get_mut(&(who, path)) {
                            copy.told_perhaps = copy.told_perhaps.max(newest);
                        }
                    }
                } else if !peek && *explicit {
                    self.unacked.entry(who).or_default().push(told);
                } else if !peek {
                    self.deliver(who, told);
                }
            }
            (Ask::ModList, Ok(Reply::ModifiedList(list))) => {
                self.listed(who, None, &list.changes)?;
            }
            (Ask::Open, Ok(Reply::SessionOpen(opened))) => {
                self.listed(who, None, &opened.modified)?;
            }
            (Ask::Ack, Ok(_)) => {
                for told in self.unacked.remove(&who).unwrap_or_default() {
                    self.deliver(who, told);
                }
            }
            (Ask::Invalidate { path }, Ok(_)) => {
                for ((session, held), copy) in &mut self.model.copies {
                    if *session == who && path.is_none_or(|path| path == *held) {
                        for seen in &mut copy.seen {
                            seen.resident = 0;
                            seen.written = false;
                        }
                        copy.reads = 0;
                        copy.blurred_reads = false;
                        copy.invalidated |= copy.ever_seen;
                    }
                }
            }
            (Ask::Compacted { keep }, Ok(_)) => {
                for ((session, held), copy) in &mut self.model.copies {
                    if *session == who && !keep.contains(held) {
                        copy.evicted = true;
                        for seen in &mut copy.seen {
                            seen.resident = 0;
                            seen.written = false;
                        }
                    }
                }
            }
            (Ask::Truncated { path, range }, Ok(_)) => {
                if let Some(copy) = self.model.copies.get_mut(&(who, *path)) {
                    copy.evicted = true;
                    for seen in &mut copy.seen {
                        // A range that reaches the last line reaches the end.
                        let cut = bits(*range);
                        let reaches = seen
                            .lines
                            .is_some_and(|lines| cut >> lines.saturating_sub(1).min(63) != 0);
                        seen.resident &= if reaches {
                            (cut & cut.wrapping_neg()) - 1
                        } else {
                            !cut
                        };
                        // Without any of it in the context, nothing of its
                        // own write is believed, either.
                        seen.written &= range.is_some();
                    }
                }
            }
            (Ask::Untrack { path }, Ok(_)) => {
                if self.model.open_by(path, who) {
                    self.model.ignored.insert(path);
                }
                self.model.copies.remove(&(who, *path));
            }
            (Ask::Close { forget }, Ok(_)) => {
                for index in 0..self.model.edits.len() {
                    if self.model.edits[index].session == who {
                        self.end(index);
                    }
                }
                if *forget {
                    self.model.copies.retain(|(session, _), _| *session != who);
                    self.unacked.remove(&who);
                }
            }
            (_, Ok(_)) => {}
            (Ask::ReadText { path, range, .. }, Err(_))
                if self.now(path).is_none() || range.is_some() => {}
            (Ask::Mention { path, .. }, Err(_)) if self.now(path).is_none() => {}
            (ask, Err(error)) => return Err(format!("{ask:?}: {error:?}")),
        }
        Ok(())
    }

    pub(super) fn read(
        &mut self,
        who: usize,
        path: Path,
        bytes: Option<&[u8]>,
        range: Range,
        verdict: &str,
        count: u32,
    ) -> Check {
        let Some(bytes) = bytes else {
            return Err(format!("file/read of {path}, which is not there"));
        };
        let unnamed = self
            .model
            .copies
            .get(&(who, path))
            .is_some_and(|copy| copy.unnamed);
        self.track(who, path);
        let content = hash(bytes);
        let known = self.now(path) == Some(content);
        let length = lines(bytes);
        let ignored = self.model.ignored.contains(path);
        let copy = self.model.copies.entry((who, path)).or_default();
        let mut allowed = copy.verdicts(content, range, length);
        if unnamed {
            // Whether it was read under this name is left open.
            allowed.push("First");
        }
        if !ignored && !allowed.contains(&verdict) {
            return Err(format!(
                "SEEN-4: reading {range:?} of {path} was {verdict}, not one of {allowed:?}\n{copy:?}"
            ));
        }
        copy.reads += 1;
        if !ignored && !copy.blurred_reads && count != u32::MAX && count != copy.reads {
            return Err(format!("SEEN: read number {count}, not {}", copy.reads));
        }
        copy.invalidated = false;
        copy.foreign = !known;
        copy.see(content, known.then_some(length), bits(range), true);
        if range.is_none() {
            copy.blurred = false;
            copy.evicted = false;
        }
        Ok(())
    }
}
