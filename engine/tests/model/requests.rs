//! The expected answers to requests, except those about edits.

use touchmark_proto::changes::{Ack, ModifiedAck, ModifiedTake};
use touchmark_proto::editors::EditorDidSave;
use touchmark_proto::edits::EditAbort;
use touchmark_proto::files::{
    FileInvalidate, FileMention, FileRead, FileReadText, FileUntrack, Verdict,
};
use touchmark_proto::sessions::{SessionClose, SessionCompacted, SessionTruncated, Truncated};
use touchmark_proto::{Reply, Request};

use crate::belief::Range;
use crate::disk::{NAMES, Name};
use crate::op::{How, Op};
use crate::people::{Actor, Told};
use crate::text::{Text, bytes, hash};

use crate::play::{Done, Play, line_range, session};

impl Play {
    #[allow(clippy::too_many_lines)] // one arm a request
    pub fn request(&mut self, op: &Op) -> Done {
        match *op {
            Op::Read {
                session,
                name,
                range,
                hash,
            } => self.read(session, name, range, hash),
            Op::ReadText {
                session,
                name,
                range,
                force,
            } => self.read_text(session, name, range, force),
            Op::ReadBefore {
                session,
                name,
                make,
                range,
            } => {
                let Some(text) = self.world.disk.text(name).cloned() else {
                    return Ok(());
                };
                if self.is_half(name) {
                    return Ok(());
                }
                let new = self.make(name, make);
                self.put(name, &new, How::InPlace, Actor::User);
                let range = range.filter(|(first, _)| *first <= text.len() as u32);
                self.record_read(session, name, range, &text, true, false)
            }
            Op::Mention {
                session: who,
                name,
                hash: named,
            } => {
                let text = self.world.disk.text(name).cloned();
                let named = text.filter(|_| named);
                if self.is_half(name) {
                    return Ok(());
                }
                self.ask(
                    who,
                    Request::FileMention(FileMention {
                        hash: named.as_ref().map(|text| hash(text)),
                        ..FileMention::new(session(who), name)
                    }),
                )?;
                self.truth.spoke(who, name);
                if let Some(text) = named {
                    let read = self.truth.file(name).held[&who].copy.read;
                    self.truth.shown(who, name, &text, None);
                    if let Some(held) = self.truth.file_mut(name).held.get_mut(&who) {
                        held.copy.read = read;
                    }
                }
                Ok(())
            }
            Op::Invalidate { session: who, name } => {
                self.ask(
                    who,
                    Request::FileInvalidate(FileInvalidate {
                        session: session(who),
                        path: Some(name.into()),
                    }),
                )?;
                if let Some(held) = self.truth.file_mut(name).held.get_mut(&who) {
                    held.copy.forget();
                }
                self.unused(who, name);
                Ok(())
            }
            Op::Untrack { session: who, name } => {
                let id = self.truth.of[name];
                let mut edits = self.truth.edits.values();
                if edits.any(|edit| edit.session == who && self.truth.of[edit.name] == id) {
                    return Ok(());
                }
                self.ask(
                    who,
                    Request::FileUntrack(FileUntrack {
                        session: session(who),
                        path: name.into(),
                    }),
                )?;
                let id = self.truth.of[name];
                let known = self.truth.uses(who, name);
                if let Some(used) = self.truth.used.get_mut(&who) {
                    used.retain(|other| *other != name);
                }
                if self.truth.last_used(who, id).is_none() {
                    let carried = !known
                        && self
                            .truth
                            .file(name)
                            .held
                            .get(&who)
                            .is_some_and(|h| h.copy.is_known());
                    if carried {
                        self.truth
                            .leave_open(who, name, "let go of by a name it never used");
                    } else {
                        let file = self.truth.file_mut(name);
                        file.held.remove(&who);
                        file.lost.retain(|lost| lost.session != who);
                    }
                }
                Ok(())
            }
            Op::Compacted { session: who, keep } => {
                self.ask(
                    who,
                    Request::SessionCompacted(SessionCompacted {
                        session: session(who),
                        keep: keep.into_iter().map(Into::into).collect(),
                    }),
                )?;
                let kept = keep.map(|name| self.truth.of[name]);
                for (id, file) in &mut self.truth.files {
                    if kept != Some(*id) {
                        file.cut(who, None);
                    }
                }
                if let Some(name) = keep {
                    self.unused(who, name);
                }
                Ok(())
            }
            Op::Truncated {
                session: who,
                name,
                range,
            } => {
                self.ask(
                    who,
                    Request::SessionTruncated(SessionTruncated {
                        session: session(who),
                        items: vec![Truncated {
                            path: name.into(),
                            range: line_range(range),
                        }],
                    }),
                )?;
                self.truth.file_mut(name).cut(who, range);
                self.unused(who, name);
                Ok(())
            }
            Op::Close {
                session: who,
                forget,
            } => {
                self.ask(
                    who,
                    Request::SessionClose(SessionClose {
                        session: session(who),
                        forget,
                    }),
                )?;
                let own: Vec<usize> = self
                    .truth
                    .edits
                    .iter()
                    .filter(|(_, edit)| edit.session == who)
                    .map(|(slot, _)| *slot)
                    .collect();
                for slot in own {
                    self.truth.abort(slot);
                }
                self.truth.halves();
                if forget {
                    self.truth.used.remove(&who);
                    for file in self.truth.files.values_mut() {
                        file.held.remove(&who);
                        file.lost.retain(|lost| lost.session != who);
                    }
                }
                self.opens(who)
            }
            Op::Begin {
                slot,
                session,
                name,
                make,
                declared,
                kind,
                guarded,
            } => self.begin(slot, session, name, make, (declared, kind, guarded)),
            Op::Commit { slot, named } => self.commit(slot, named),
            Op::Abort { slot } => {
                let Some(edit) = self.truth.edits.get(&slot).cloned() else {
                    return Ok(());
                };
                if self.is_half(edit.name) || edit.flag {
                    return Ok(());
                }
                self.ask(
                    edit.session,
                    Request::EditAbort(EditAbort::new().edit(edit.id)),
                )?;
                self.truth.abort(slot);
                Ok(())
            }
            Op::Late {
                session,
                name,
                make,
            } => self.late(session, name, make),
            Op::Saved { name, make } => {
                let text = self.make(name, make);
                if !self.put(name, &text, How::Replace, Actor::User) {
                    return Ok(());
                }
                self.truth.reported(name);
                let saved = Request::EditorDidSave(EditorDidSave::new(name, hash(&text)));
                self.ask(0, saved).map(|_| ())
            }
            Op::Guarded {
                session,
                name,
                make,
            } => self.guarded(session, name, make),
            Op::Take {
                session,
                explicit,
                acknowledged,
            } => self.take(session, explicit, acknowledged),
            Op::Check { order } => self.check(order),
            _ => Ok(()),
        }
    }

    /// Records that lines were cut of a file by a name that the session never
    /// used. The rules leave open whether the engine has recorded by then where
    /// that name resolves to.
    pub fn unused(&mut self, who: usize, name: Name) {
        if !self.truth.uses(who, name) {
            self.truth
                .leave_open(who, name, "cut by a name that it never used");
        }
    }

    pub fn record_read(
        &mut self,
        who: usize,
        name: Name,
        range: Range,
        text: &Text,
        named: bool,
        current: bool,
    ) -> Done {
        let reply = self.ask(
            who,
            Request::FileRead(FileRead {
                hash: named.then(|| hash(text)),
                range: line_range(range),
                ..FileRead::new(session(who), name)
            }),
        )?;
        let Reply::FileRead(read) = reply else {
            return Err(format!("reply: {reply:?}"));
        };
        if read.hash != Some(hash(text)) {
            return Err(format!("read hash: {name} was {text:?}; {read:?}"));
        }
        if current {
            self.repeat(who, name, range, text, read.verdict)?;
        }
        self.truth.shown(who, name, text, range);
        Ok(())
    }

    pub fn read(&mut self, who: usize, name: Name, range: Range, named: bool) -> Done {
        let Some(text) = self.world.disk.text(name).cloned() else {
            return Ok(());
        };
        if self.is_half(name) {
            return Ok(());
        }
        let range = range.filter(|(first, _)| *first <= text.len() as u32);
        self.record_read(who, name, range, &text, named, true)
    }

    /// Checks a repeat: a read repeats an earlier one if everything wanted of
    /// the current content is in the context (SEEN-4).
    pub fn repeat(
        &mut self,
        who: usize,
        name: Name,
        range: Range,
        text: &Text,
        verdict: Verdict,
    ) -> Done {
        let file = self.truth.file(name);
        let held = file.held.get(&who);
        let now = self.truth.now;
        let open = held.is_some_and(|held| {
            let joined = held.joined_at != 0 && held.joined_at + 10 > now;
            let beyond = held.copy.wants_the_end(text, range);
            held.copy.open.is_some() || joined || beyond
        });
        let repeats =
            held.is_some_and(|held| held.copy.repeats(text, range) && file.text() == Some(text));
        let right = match verdict {
            Verdict::Repeat => repeats,
            Verdict::First => {
                held.is_none_or(|held| !held.copy.read || !held.copy.is_resident()) && !repeats
            }
            Verdict::Extends | Verdict::Changed => {
                !repeats && held.is_some_and(|held| held.copy.is_known())
            }
        };
        if right || open {
            return Ok(());
        }
        Err(format!(
            "verdict: s{who} reads {range:?} of {name}, {text:?}: {verdict:?}; it repeats: {repeats}; {held:?}"
        ))
    }

    pub fn read_text(&mut self, who: usize, name: Name, range: Range, force: bool) -> Done {
        let Some(text) = self.world.disk.text(name).cloned() else {
            return Ok(());
        };
        if self.is_half(name) {
            return Ok(());
        }
        let range = range.filter(|(first, _)| *first <= text.len() as u32);
        let reply = self.ask(
            who,
            Request::FileReadText(FileReadText {
                range: line_range(range),
                force,
                ..FileReadText::new(session(who), name)
            }),
        )?;
        let Reply::FileReadText(read) = reply else {
            return Err(format!("reply: {reply:?}"));
        };
        self.repeat(who, name, range, &text, read.verdict)?;
        self.truth.spoke(who, name);
        let Some(told) = &read.text else {
            if read.verdict == Verdict::Repeat && !force {
                return Ok(());
            }
            return Err(format!("text: none, of {name}; {read:?}"));
        };
        let (first, last) = range.unwrap_or((1, u32::MAX));
        let last = last.min(text.len() as u32) as usize;
        let part = bytes(&text[first as usize - 1..last]);
        if told.as_bytes() != part {
            return Err(format!("text: {name} holds {text:?}; {read:?}"));
        }
        self.truth.shown(who, name, &text, range);
        Ok(())
    }

    pub fn take(&mut self, who: usize, explicit: bool, acknowledged: bool) -> Done {
        let reply = self.ask(
            who,
            Request::ModifiedTake(ModifiedTake::new(session(who)).ack(if explicit {
                Ack::Explicit
            } else {
                Ack::Implicit
            })),
        )?;
        let Reply::ModifiedTake(taken) = reply else {
            return Err(format!("reply: {reply:?}"));
        };
        self.listed(who, &taken.changes)?;
        if explicit {
            if !acknowledged {
                return Ok(());
            }
            self.ask(
                who,
                Request::ModifiedAck(ModifiedAck {
                    session: session(who),
                    cursor: taken.cursor,
                }),
            )?;
        }
        for change in taken.changes {
            let name = change.path.to_string_lossy();
            let Some(name) = NAMES.iter().find(|known| **known == name) else {
                continue;
            };
            let half = self.is_half(name)
                || self
                    .truth
                    .file(name)
                    .versions
                    .last()
                    .is_some_and(|version| version.maybe);
            let file = self.truth.file_mut(name);
            let newest = file.newest();
            if let Some(lost) = &change.lost {
                file.lost.retain(|known| {
                    known.session != who || known.text.as_ref().map(|text| hash(text)) != lost.hash
                });
                continue;
            }
            if let Some(held) = file.held.get_mut(&who) {
                held.told = if half { Told::Open } else { Told::UpTo(newest) };
            }
        }
        Ok(())
    }
}
