//! All actors except the daemon: writers, clients, and what interrupts the
//! daemon.

use super::*;

impl World {
    pub(super) fn put(&mut self, path: &str, bytes: &[u8], how: How) {
        match how {
            How::InPlace => {
                if let Some(node) = self.disk.node(path) {
                    self.disk.set(node, b"", self.now);
                    self.hint(path, Hint::Written);
                    self.disk.set(node, bytes, self.now);
                } else {
                    let node = self.disk.create(bytes, self.now);
                    self.disk.link(path, node);
                    self.hint(path, Hint::Appeared);
                }
                self.hint(path, Hint::Written);
                self.hint(path, Hint::Closed);
            }
            How::Replace => {
                let node = self.disk.create(bytes, self.now);
                self.disk.link(path, node);
                // The temporary name is not tracked, so the watcher only sees
                // the content arrive.
                self.hint(path, Hint::Closed);
            }
            How::FromOutside => {
                let node = self.disk.create(bytes, self.now);
                self.disk.link(path, node);
                self.hint(path, Hint::Closed);
            }
            How::Recreate => {
                if self.disk.unlink(path).is_some() {
                    self.hint(path, Hint::Removed);
                }
                self.put(path, bytes, How::InPlace);
            }
        }
    }

    pub(super) fn remove(&mut self, path: &str) {
        if self.disk.unlink(path).is_some() {
            self.hint(path, Hint::Removed);
        }
    }

    pub(super) fn named(&self, path: &str, named: Named) -> Option<HashOrAbsent> {
        match named {
            Named::No => None,
            Named::Disk => Some(self.disk.at(path).hash().into()),
            Named::Content(id) => Some(HashOrAbsent::Hash(hash(&content(id)))),
            Named::Absent => Some(HashOrAbsent::Absent),
        }
    }

    pub(super) fn planned(
        &self,
        path: &str,
        named: Named,
        slot: usize,
        file: usize,
    ) -> Option<Vec<u8>> {
        match named {
            Named::No => Some(content(1_000_000 + (slot * 8 + file) as u32)),
            Named::Disk => self.disk.bytes(path).map(|bytes| bytes.to_vec()),
            Named::Content(id) => Some(content(id)),
            Named::Absent => None,
        }
    }

    pub(super) fn ask(&mut self, asking: &Asking) {
        if self.engine.is_none() {
            return;
        }
        let session = asking.session;
        match &asking.ask {
            Ask::Begin {
                slot, files, call, ..
            } => {
                let files = files.iter().enumerate().map(|(index, (path, named))| {
                    let planned = self.planned(path, *named, *slot, index);
                    (*path, self.named(path, *named), planned)
                });
                let made = Slot {
                    session,
                    files: files.collect(),
                    call: call.then(|| format!("call{slot}")),
                    answered: false,
                    edit: None,
                };
                self.slots.insert(*slot, made);
            }
            Ask::Mark {
                slot, path, expect, ..
            } => {
                let planned = self.planned(path, *expect, *slot, 0);
                let made = Slot {
                    session,
                    files: vec![(*path, self.named(path, *expect), planned)],
                    call: None,
                    answered: false,
                    edit: None,
                };
                self.slots.insert(*slot, made);
            }
            _ => {}
        }
        let cursor = self.last_cursor.get(&session).cloned();
        let lookup = |path: &str, named: Named| self.named(path, named);
        let Some(request) = asks::request(asking, &self.slots, cursor, &lookup) else {
            return;
        };
        let connection = match self.connections.get(&asking.connection) {
            Some(connection) => *connection,
            None => {
                self.next_connection += 1;
                self.connections
                    .insert(asking.connection, self.next_connection);
                self.next_connection
            }
        };
        self.next_request += 1;
        let id = self.next_request;
        let asked = Asked {
            asking: asking.clone(),
            request: request.clone(),
            id,
            connection,
            until: asking.within.map(|within| self.now + within),
            moment: self.disk.moment,
        };
        self.pending.insert(id, asked.clone());
        let until = asked.until;
        self.seen.push(Seen::Asked(asked));
        self.handle(Input::Request {
            request: RequestId(id),
            connection: ConnectionId(connection),
            ask: request,
            until,
        });
    }

    pub fn step(&mut self, op: &Op) {
        if self.trace {
            eprintln!("[{}] {op:?}", self.now - START);
        }
        self.disk.moment += 1;
        self.steps += 1;
        match op {
            Op::Write {
                path,
                content: id,
                how,
            } => self.put(path, &content(*id), *how),
            Op::AgentWrite { slot, file, how } => {
                let Some(slot) = self.slots.get(slot) else {
                    return;
                };
                if slot.edit.is_none() || slot.files.is_empty() {
                    return;
                }
                let (path, _, planned) = slot.files[file % slot.files.len()].clone();
                match planned {
                    Some(bytes) => self.put(path, &bytes, *how),
                    None => self.remove(path),
                }
            }
            Op::Unlink { path } => self.remove(path),
            Op::Rename { from, to } => {
                if from == to {
                    return;
                }
                if let Some(node) = self.disk.unlink(from) {
                    self.disk.link(to, node);
                    if self.tracked.contains(*from) {
                        if self.watched.contains(parent(to)) {
                            self.push(Queued::Renamed((*from).into(), (*to).into()));
                        } else {
                            self.hint(from, Hint::Removed);
                        }
                    }
                    self.hint(to, Hint::Closed);
                }
            }
            Op::MoveOut { path } => {
                if let Some(node) = self.disk.unlink(path) {
                    self.outside.insert(path, node);
                    self.hint(path, Hint::Removed);
                }
            }
            Op::MoveBack { path } => {
                if let Some(node) = self.outside.remove(path) {
                    self.disk.link(path, node);
                    self.hint(path, Hint::Closed);
                }
            }
            Op::RenameDir { from, to } => self.rename_dir(from, to),
            Op::Touch { path } => {
                self.disk.touch(path, self.now, false);
                self.hint(path, Hint::Touched);
            }
            Op::Chmod { path } => {
                self.disk.touch(path, self.now, true);
                self.hint(path, Hint::Touched);
            }
            Op::WOpen {
                writer,
                path,
                truncate,
                content: id,
            } => {
                self.close_writer(*writer);
                self.disk.writer = Some(*writer);
                let node = match self.disk.node(path) {
                    Some(node) => {
                        if *truncate {
                            self.disk.set(node, b"", self.now);
                            self.hint(path, Hint::Written);
                        }
                        node
                    }
                    None => {
                        let node = self.disk.create(b"", self.now);
                        self.disk.link(path, node);
                        self.hint(path, Hint::Appeared);
                        node
                    }
                };
                self.disk.writer = None;
                let left = content(*id);
                self.writers.insert(*writer, Writer { node, left, path });
            }
            Op::WChunk { writer, part } => self.chunk(*writer, *part),
            Op::WClose { writer } => self.close_writer(*writer),
            Op::Ask(asking) => self.ask(asking),
            Op::Await { slot } => {
                for _ in 0..200 {
                    if self.slots.get(slot).is_none_or(|slot| slot.answered) {
                        break;
                    }
                    let _ = self.give_read(0) || self.exec_read(0, false) || self.deliver_hint();
                }
            }
            Op::Hints(count) => {
                for _ in 0..*count {
                    self.deliver_hint();
                }
            }
            Op::ExecRead { which, unstable } => {
                self.exec_read(*which, *unstable);
            }
            Op::GiveRead { which } => {
                self.give_read(*which);
            }
            Op::Drain => self.drain(),
            Op::Pass(millis) => {
                self.pass(*millis);
            }
            Op::Down => self.down(),
            Op::Up { snapshot } => {
                if self.engine.is_none() {
                    self.up(*snapshot);
                }
            }
            Op::Overflow => {
                if self.engine.is_some() {
                    // All events in the queue are lost. Fences remain, since
                    // the watcher reports their end after the overflow.
                    self.queue.retain(|queued| {
                        matches!(
                            queued,
                            Queued::Fence(_) | Queued::FenceFailed(_) | Queued::Compared(..)
                        )
                    });
                    self.queue.push_front(Queued::Overflow);
                    self.seen.push(Seen::Gap(String::new()));
                }
            }
            Op::Gap { below } => {
                if self.engine.is_some() {
                    let prefix = format!("{below}/");
                    self.queue.retain(|queued| {
                        !matches!(queued, Queued::Hint(path, _) if path.starts_with(&prefix))
                    });
                    self.queue.push_front(Queued::Gap((*below).into()));
                    self.seen.push(Seen::Gap((*below).into()));
                }
            }
            Op::FenceFails => self.fail_fence = true,
            Op::Disconnect { connection } => {
                if let Some(id) = self.connections.remove(connection) {
                    let ended: Vec<u64> = self
                        .pending
                        .values()
                        .filter(|asked| asked.connection == id)
                        .map(|asked| asked.id)
                        .collect();
                    for request in ended {
                        self.pending.remove(&request);
                        self.gone.insert(request);
                    }
                    self.handle(Input::Disconnected {
                        connection: ConnectionId(id),
                    });
                }
            }
        }
    }

    pub(super) fn rename_dir(&mut self, from: Path, to: Path) {
        let names = self.disk.below(from);
        if names.is_empty() || !self.disk.below(to).is_empty() {
            return;
        }
        // Only names from the list of files may appear.
        let moved: Vec<(String, String)> = names
            .into_iter()
            .map(|name| (name.clone(), format!("{to}{}", &name[from.len()..])))
            .collect();
        if !moved
            .iter()
            .all(|(_, name)| ALL_FILES.contains(&name.as_str()))
        {
            return;
        }
        for (old, new) in moved {
            if let Some(node) = self.disk.unlink(&old) {
                self.disk.link(&new, node);
            }
        }
        let below = |directory: &str| {
            let prefix = format!("{directory}/");
            self.tracked.iter().any(|path| path.starts_with(&prefix))
        };
        // The directories above tracked paths are watched, so both ends of the
        // rename are seen there.
        if below(from) {
            self.push(Queued::Renamed(from.into(), to.into()));
        }
        let arrived: Vec<String> = self
            .tracked
            .iter()
            .filter(|path| {
                path.strip_prefix(to)
                    .is_some_and(|rest| rest.starts_with('/'))
            })
            .cloned()
            .collect();
        for path in arrived {
            let hint = if self.disk.exists(&path) {
                Hint::Closed
            } else {
                Hint::Removed
            };
            self.hint(&path, hint);
        }
    }

    pub(super) fn chunk(&mut self, writer: usize, part: usize) {
        let Some(open) = self.writers.get_mut(&writer) else {
            return;
        };
        let count = part.clamp(1, open.left.len().max(1)).min(open.left.len());
        let piece: Vec<u8> = open.left.drain(..count).collect();
        if piece.is_empty() {
            return;
        }
        let node = open.node;
        self.disk.writer = Some(writer);
        self.disk.append(node, &piece, self.now);
        self.disk.writer = None;
        if let Some(name) = self.disk.name_of(node) {
            self.hint(&name, Hint::Written);
        }
    }

    pub(super) fn close_writer(&mut self, writer: usize) {
        self.chunk(writer, usize::MAX);
        if let Some(open) = self.writers.remove(&writer) {
            match self.disk.name_of(open.node) {
                Some(name) => self.hint(&name, Hint::Closed),
                // The event of a file without a name has its last name.
                None => self.hint(open.path, Hint::Closed),
            }
        }
    }
}
