//! Plays the steps one by one, and checks the answer to each request.

use std::collections::BTreeMap;

use touchmark_proto::sessions::SessionOpen;
use touchmark_proto::{ClientPath, LineRange, Reply, Request, SessionId};

use crate::belief::Range;
use crate::disk::{Disk, NAMES, Name};
use crate::op::{How, Op, Script};
use crate::people::{Actor, By, Told, Truth, USER};
use crate::simulated::World;
use crate::text::{Make, Text};

pub type Done = Result<(), String>;

pub struct Play {
    pub world: World,
    pub truth: Truth,
    /// The file that is being written, and the content it will have.
    pub open: Option<(usize, Text)>,
}

pub fn session(index: usize) -> SessionId {
    SessionId::new(&format!("s{index}")).unwrap()
}

pub fn line_range(range: Range) -> Option<LineRange> {
    range.map(|(start, end)| LineRange { start, end })
}

pub fn run(script: &Script) -> Result<u64, (usize, String)> {
    play(script).map(|_| script.ops.len() as u64)
}

/// Plays a script. Returns the state at its end.
pub fn play(script: &Script) -> Result<Play, (usize, String)> {
    let none: &[Text] = &[];
    let files = script.initial.iter();
    let files: Vec<(Name, Text)> = files
        .map(|(name, make)| (*name, make.of(None, none)))
        .collect();
    let world = World::new(script.tick, (script.turned, script.texts), &files);
    let mut truth = Truth::new(&world.disk);
    truth.texts = script.texts;
    let mut play = Play {
        world,
        truth,
        open: None,
    };
    play.world.drain();
    for session in 0..crate::people::SESSIONS {
        play.opens(session).map_err(|why| (0, why))?;
    }
    for (index, op) in script.ops.iter().enumerate() {
        play.world.say(&format!("{op:?}"));
        play.step(op).map_err(|why| (index, why))?;
        if let Some(why) = &play.world.failure {
            return Err((index, why.clone()));
        }
        if let Some(engine) = &play.world.engine
            && *engine.state() != play.world.folded
        {
            return Err((index, "replay: the facts give another state".into()));
        }
    }
    Ok(play)
}

impl Play {
    // --- requests ---

    pub fn try_ask(
        &mut self,
        who: usize,
        request: Request,
    ) -> Result<Reply, touchmark_proto::Error> {
        let about = self.about(who, &request);
        let answer = self.world.ask(who, request);
        self.truth.now = self.world.now;
        self.truth.settle_of(&about);
        self.truth.uncompared.retain(|id| !about.contains(id));
        answer.map(|answer| answer.reply)
    }

    /// Returns the files in the scope of a request. They were read before its
    /// answer.
    pub fn about(&self, who: usize, request: &Request) -> Vec<usize> {
        let path = match request {
            Request::FileRead(read) => &read.path,
            Request::FileReadText(read) => &read.path,
            Request::FileHistory(history) => &history.path,
            Request::FileWrite(write) => &write.path,
            Request::EditMark(mark) => &mark.path,
            Request::EditBegin(begin) => &begin.files[0].path,
            Request::Audit(_) | Request::FileStatus(_) => {
                return self.truth.files.keys().copied().collect();
            }
            Request::ModifiedTake(_) => {
                let files = self.truth.files.iter();
                let held = files.filter(|(_, file)| file.held.contains_key(&who));
                return held.map(|(id, _)| *id).collect();
            }
            Request::EditCommit(commit) => {
                let mut edits = self.truth.edits.values();
                let edit = edits.find(|edit| {
                    commit.edit.as_ref() == Some(&edit.id)
                        || commit.call_id.is_some() && commit.call_id == edit.call
                });
                return edit
                    .map(|edit| self.truth.of[edit.name])
                    .into_iter()
                    .collect();
            }
            _ => return Vec::new(),
        };
        let name = NAMES.iter().find(|name| ClientPath::from(**name) == *path);
        name.map(|name| self.truth.of[name]).into_iter().collect()
    }

    pub fn ask(&mut self, who: usize, request: Request) -> Result<Reply, String> {
        let said = format!("{request:?}");
        self.try_ask(who, request)
            .map_err(|error| format!("error: {said}: {error:?}"))
    }

    pub fn opens(&mut self, who: usize) -> Done {
        let open = SessionOpen::new(session(who));
        self.ask(who, Request::SessionOpen(open)).map(|_| ())
    }

    // --- the disk ---

    pub fn looked(&mut self, actor: Actor) {
        self.world.watch();
        self.truth.now = self.world.now;
        self.truth.look(&self.world.disk, actor);
    }

    pub fn is_half(&self, name: Name) -> bool {
        self.truth.file(name).half.is_some()
    }

    /// Puts a content under a name. Returns whether that was possible.
    pub fn put(&mut self, name: Name, text: &Text, how: How, actor: Actor) -> bool {
        if self.is_half(name) {
            return false;
        }
        let disk = &mut self.world.disk;
        let there = disk.lead(name).node.is_some();
        let done = match how {
            How::InPlace => disk.write(name, text),
            How::Replace => disk.replace(name, text),
            How::Recreate | How::Vim if !there => disk.write(name, text),
            How::Recreate => disk.remove(name) && disk.write(name, text),
            How::Vim if disk.is_link(name) => disk.write(name, text),
            How::Vim => {
                let backup = format!("{name}~");
                disk.rename(name, &backup) && disk.write(name, text) && disk.remove(&backup)
            }
        };
        let id = self.truth.of[name];
        let before = self.truth.file(name).newest();
        self.looked(actor);
        // The same content once more, before the file was read.
        if self.truth.of[name] == id && self.truth.file(name).newest() == before {
            for edit in self.truth.edits.values_mut().filter(|edit| edit.flag) {
                edit.murky |= self.truth.of[edit.name] == id;
            }
            let last = self.truth.file(name).versions.last();
            let mut by_flag = last.is_some_and(|last| last.by_flag);
            // With other edits open, a one-call mark may have claimed it.
            by_flag |= self.truth.edits.values().any(|edit| {
                let flag = edit.flag && !edit.declared && edit.since < before;
                flag && self.truth.of[edit.name] == id
            });
            let mut by = self.truth.blur(id);
            if by_flag {
                by |= USER;
                for session in 0..crate::people::SESSIONS {
                    self.truth.leave_open(
                        session,
                        name,
                        "a one-call mark had it, and it was saved again",
                    );
                }
            }
            if let Some(version) = self.truth.file_mut(name).versions.last_mut() {
                version.by |= by;
                version.by_flag |= by_flag;
            }
        }
        done
    }

    pub fn make(&self, name: Name, make: Make) -> Text {
        let file = self.truth.file(name);
        make.of(file.text(), &file.contents())
    }

    pub fn settle(&mut self) {
        for millis in [0, 20, 20, 120] {
            self.pass(millis);
        }
    }

    pub fn pass(&mut self, millis: u64) {
        self.world.pass(millis);
        self.truth.now = self.world.now;
        if !self.truth.down {
            self.truth.settle();
            self.truth.expire();
        }
    }

    pub fn rename(&mut self, from: Name, to: Name, by: impl Fn(&mut Disk) -> bool) {
        // All names that are renamed together: the names below a directory.
        let pairs: Vec<(Name, Name)> = NAMES
            .iter()
            .filter_map(|name| {
                let rest = name.strip_prefix(from)?;
                let new = format!("{to}{rest}");
                let new = NAMES.iter().find(|other| **other == new)?;
                (rest.is_empty() || rest.starts_with('/')).then_some((*name, *new))
            })
            .collect();
        let unsettled = self
            .truth
            .files
            .values()
            .any(|file| file.versions.last().is_some_and(|version| version.maybe));
        let known: Vec<_> = pairs
            .iter()
            .map(|(from, to)| {
                let led = self.world.disk.lead(to);
                let own = led.place == **to && self.world.disk.lead(from).place == **from;
                let open = if !own {
                    Some("it was renamed by another way")
                } else if led.node.is_some() {
                    Some("it was renamed onto a file that was there")
                } else if self.truth.down {
                    Some("it was renamed while nobody watched")
                } else if unsettled {
                    Some("it was renamed before anybody had looked")
                } else if self.truth.used.values().flatten().all(|name| {
                    let directory = |name: &str| name.rfind('/').map_or(0, |cut| cut + 1);
                    !name.starts_with(&to[..directory(to)])
                }) {
                    Some("it was renamed to where nothing is tracked")
                } else {
                    None
                };
                let there = self.world.disk.lead(from).node.is_some();
                let file = self.truth.file(from);
                let held = file.held.iter().filter(|_| there);
                let held: BTreeMap<_, _> = held.map(|(who, held)| (*who, held.clone())).collect();
                let brought = held.iter().map(|(session, held)| {
                    let since = file.versions.get(held.since + 1..).unwrap_or_default();
                    (*session, since.iter().fold(0, |all, v| all | v.by))
                });
                let brought: BTreeMap<usize, By> = brought.collect();
                (*to, held, brought, open)
            })
            .collect();
        if !by(&mut self.world.disk) {
            return;
        }
        self.looked(Actor::User);
        for (to, held, brought, open) in known {
            self.truth.carried(to, &held, &brought, open);
        }
    }

    #[allow(clippy::too_many_lines)] // one arm a step
    pub fn step(&mut self, op: &Op) -> Done {
        let up = self.world.is_up();
        match *op {
            Op::Save { name, make, how } => {
                let text = self.make(name, make);
                self.put(name, &text, how, Actor::User);
            }
            Op::OpenPart { name, make } => self.open_part(name, make),
            Op::ClosePart => self.close_part(),
            Op::Remove { name } => {
                if !self.is_half(name) {
                    self.world.disk.remove(name);
                    self.looked(Actor::User);
                }
            }
            Op::Rename { from, to } => {
                if self.open.is_none() && from != to {
                    self.rename(from, to, |disk| disk.rename(from, to));
                }
            }
            Op::Exchange { one, other } => {
                if self.open.is_none() && self.world.disk.exchange(one, other) {
                    self.exchanged(one, other);
                }
            }
            Op::HardLink { from, to } => {
                if self.open.is_none() && self.world.disk.hard_link(from, to) {
                    self.looked(Actor::User);
                }
            }
            Op::Symlink { name, to, atomic } => {
                if self.open.is_none() && self.world.disk.symlink(name, to, atomic) {
                    self.looked(Actor::User);
                }
            }
            Op::RenameDirectory { from, to } => {
                if self.open.is_none() {
                    self.rename(from, to, |disk| disk.rename_directory(from, to));
                }
            }
            Op::ReplaceDirectory { name, make } => {
                if self.open.is_none() {
                    let text = make.of(None, &[]);
                    let disk = &mut self.world.disk;
                    if !disk.replace_directory(name, &[("a", text)]) {
                        disk.make_directory(name);
                    }
                    self.looked(Actor::User);
                }
            }
            Op::Mount { from } => {
                if self.open.is_none() && self.world.disk.mount(from) {
                    self.looked(Actor::User);
                }
            }
            Op::Settle => self.settle(),
            Op::Pass(millis) => self.pass(millis),
            Op::Down if up && self.open.is_none() => {
                self.truth.stop();
                self.world.down();
            }
            Op::Up { snapshot } if !up => {
                self.world.up(snapshot);
                self.world.drain();
                self.truth.start();
                self.settle();
            }
            Op::Overflow if up && self.open.is_none() => {
                self.truth.overflow();
                self.world.overflow();
                self.settle();
            }
            Op::AgentSave { slot, how, alias } => self.agent_saves(slot, how, alias),
            _ if !up => {}
            _ => return self.request(op),
        }
        Ok(())
    }

    /// Records that two names were exchanged: each has the file of the other,
    /// and nothing was renamed away.
    pub fn exchanged(&mut self, one: Name, other: Name) {
        for edit in self.truth.edits.values_mut() {
            edit.murky |= edit.flag;
        }
        self.looked(Actor::User);
        let mut names = Vec::new();
        for name in NAMES {
            let below = |directory: Name| {
                name.strip_prefix(directory)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            if !below(one) && !below(other) {
                continue;
            }
            let rest = |from: Name, to: Name| Some(format!("{to}{}", name.strip_prefix(from)?));
            let counterpart = if below(one) {
                rest(one, other)
            } else {
                rest(other, one)
            };
            names.extend(
                NAMES
                    .iter()
                    .filter(|name| Some(**name) == counterpart.as_deref())
                    .map(|to| (name, to)),
            );
        }
        // A session that has used only one of them may get reports about both.
        for (name, counterpart) in names {
            // The rules do not say which history continues: that of the name,
            // or that of the file that came to it.
            let file = self.truth.file_mut(name);
            file.from = file.newest();
            let known = self
                .truth
                .file(name)
                .held
                .keys()
                .chain(self.truth.file(counterpart).held.keys());
            let known: std::collections::BTreeSet<usize> = known.copied().collect();
            for session in known {
                let file = self.truth.file_mut(name);
                if file.held.is_empty() {
                    file.from = file.newest();
                }
                let held = file.held.entry(session).or_default();
                held.joined = true;
                if !held.copy.is_known() {
                    held.copy.open = Some("it was exchanged with another");
                    held.told = Told::Open;
                }
            }
        }
    }

    pub fn open_part(&mut self, name: Name, make: Make) {
        let Some(node) = self.world.disk.lead(name).node else {
            return;
        };
        if self.open.is_some() || self.truth.down {
            return;
        }
        let text = self.make(name, make);
        let half: Text = text[..text.len() / 2].into();
        let mut edits = self.truth.edits.values();
        let edited =
            edits.any(|edit| edit.names.contains(&name) && edit.own.is_none() && !edit.murky);
        let id = self.truth.of[name];
        // Without any announcement, the half may be a version.
        let planned = self.truth.edits.values().any(|edit| edit.planned == half);
        if (!edited || planned) && self.truth.file(name).text() != Some(&half) {
            self.truth
                .became(id, Some(half.clone()), Actor::User, false);
        }
        self.truth.file_mut(name).half = Some(half.clone());
        self.world.disk.set(node, &half);
        self.world.watch();
        self.open = Some((node, text));
    }

    pub fn close_part(&mut self) {
        let Some((node, text)) = self.open.take() else {
            return;
        };
        self.world.disk.set(node, &text);
        self.world.disk.close(node);
        for file in self.truth.files.values_mut() {
            file.half = None;
        }
        self.looked(Actor::User);
    }

    pub fn agent_saves(&mut self, slot: usize, how: How, alias: bool) {
        let Some(edit) = self.truth.edits.get(&slot).cloned() else {
            return;
        };
        if edit.wrote || self.is_half(edit.name) {
            return;
        }
        let edit_name = edit.name;
        let names = self.truth.names_of(self.truth.of[edit.name]);
        let other = names.iter().find(|name| **name != edit.name);
        let name = other.filter(|_| alias).copied().unwrap_or(edit.name);
        if self.put(name, &edit.planned, how, Actor::Edit(slot))
            && let Some(edit) = self.truth.edits.get_mut(&slot)
        {
            edit.wrote = true;
            edit.murky |= name != edit_name;
            let (session, text) = (edit.session, edit.planned.clone());
            let newest = self.truth.file(edit_name).versions.last();
            if newest.is_none_or(|version| version.real != Some(session)) {
                // The same content once more; it may use up a one-call mark.
                if let Some(edit) = self.truth.edits.get_mut(&slot) {
                    edit.murky |= edit.flag;
                }
                let file = self.truth.file_mut(edit_name);
                file.rewritten.push((session, text));
            }
        }
    }
}
