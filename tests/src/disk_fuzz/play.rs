//! A run: performs the steps one by one, on a real disk with a real daemon.

use serde_json::{Value, json};

use super::disk::Disk;
use super::people::{Act, Told, Truth};
use super::rows::Row;
use super::step::{NAMES, Name, Step, session};
use super::text::{Make, lines};
use crate::wire::{Answer, Client};
use crate::{World, sha256};

/// A wrong answer.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// The comparison that failed.
    pub row: Row,
    /// The answer, and what is right.
    pub what: String,
}

/// The result of one step.
pub type Done = Result<(), Wrong>;

/// Fails if `right` is false and the row is switched on.
pub fn expect(row: Row, right: bool, what: impl FnOnce() -> String) -> Done {
    if right || !row.is_on() {
        return Ok(());
    }
    Err(Wrong { row, what: what() })
}

/// The number of sessions.
pub const SESSIONS: usize = 3;

/// A run in progress.
pub struct Play {
    pub(super) world: World,
    /// One connection for each session, and one for questions about all
    /// sessions.
    clients: Vec<Client>,
    pub(super) disk: Disk,
    /// The truth that answers are compared with.
    pub truth: Truth,
    /// How often the contract left a copy's state open, and the number of
    /// comparisons.
    pub left_open: (u64, u64),
}

impl Play {
    /// Creates a workspace and starts a daemon.
    pub fn new(may_mount: bool) -> Self {
        let mut world = World::asleep();
        let disk = Disk::new(world.workspace(), may_mount);
        let truth = Truth::new(&disk, SESSIONS);
        world.start();
        let mut play = Self {
            world,
            clients: Vec::new(),
            disk,
            truth,
            left_open: (0, 0),
        };
        play.connect();
        play
    }

    fn connect(&mut self) {
        self.clients = (0..=SESSIONS).map(|_| self.world.client()).collect();
        for who in 0..SESSIONS {
            self.clients[who].ok("session/open", json!({"session": session(who)}));
        }
    }

    /// Performs one step.
    ///
    /// # Errors
    /// A wrong answer.
    pub fn step(&mut self, step: &Step) -> Done {
        if !step.row().is_on() {
            return Ok(());
        }
        match *step {
            Step::Stop if !self.truth.down => {
                self.clients.clear();
                self.world.stop();
                self.goes_down();
            }
            Step::Kill if !self.truth.down => {
                self.clients.clear();
                self.world.kill();
                self.goes_down();
                self.truth.texts_may_be_lost();
            }
            Step::Start if self.truth.down => {
                if self.disk.writes_by_an_old_name() {
                    // Writes by another name make no event at the names that
                    // are left, and a daemon that starts to watch does not
                    // notice the open file (SYNC-4).
                    self.user(&Step::ClosePart);
                }
                self.world.start();
                self.truth.down = false;
                self.truth.murky.extend(NAMES);
                self.connect();
            }
            Step::Stop | Step::Kill | Step::Start => {}
            // Writes by a name in a directory that is not watched make no event
            // (SYNC-4).
            Step::HardLink { from, to } if !self.truth.watched(from, to) => {}
            // An agent whose daemon is down does nothing.
            Step::Read {
                session,
                name,
                range,
                hash,
            } if self.at_work(name) => {
                return self.read(session, name, range, Some(hash));
            }
            Step::ReadText {
                session,
                name,
                range,
                force,
            } if self.at_work(name) => {
                return self.read_text(session, name, range, force);
            }
            Step::Begin {
                session,
                name,
                make,
                declared,
            } if self.at_work(name) => {
                return self.begin(session, name, make, declared);
            }
            Step::FileWrite {
                session,
                name,
                make,
            } if self.at_work(name) => {
                let text = make.of(self.truth.text(name).unwrap_or(""));
                let params = json!({"path": name, "text": text});
                return self.guarded(session, name, "file/write", params, &text);
            }
            Step::FileEdit {
                session,
                name,
                line,
                revision,
            } if self.at_work(name) => {
                let there = self.truth.text(name).unwrap_or("").to_owned();
                let text = Make::Revise(line, revision).of(&there);
                if there.is_empty() {
                    return Ok(());
                }
                let line = line % lines(&there).len();
                let (old, new) = (&lines(&there)[line], &lines(&text)[line]);
                let params = json!({"path": name, "oldString": old, "newString": new});
                return self.guarded(session, name, "file/edit", params, &text);
            }
            Step::Commit { session, hash } if !self.truth.down => {
                return self.commit(session, hash);
            }
            Step::Compacted { session } if !self.truth.down => {
                self.ask(session, "session/compacted", json!({}))?;
                let held = self.truth.people[session].held.values_mut();
                held.for_each(|held| {
                    held.resident = false;
                    held.copy.evicted = held.copy.known();
                });
            }
            Step::Take { session } if !self.truth.down => return self.take(session),
            Step::Check { order } if !self.truth.down => return self.check(order),
            Step::AgentSave {
                session,
                how,
                alias,
            } => self.agent_saves(session, how, alias),
            Step::Read { .. }
            | Step::ReadText { .. }
            | Step::Begin { .. }
            | Step::FileWrite { .. }
            | Step::FileEdit { .. }
            | Step::Commit { .. }
            | Step::Compacted { .. }
            | Step::Take { .. }
            | Step::Check { .. } => {}
            _ => self.user(step),
        }
        Ok(())
    }

    fn goes_down(&mut self) {
        self.truth.down = true;
        self.truth.lost_sight();
    }

    /// Returns whether agents can ask about a name now: the daemon runs, and
    /// the file is not half written.
    fn at_work(&self, name: Name) -> bool {
        !self.truth.down && !self.half_written(name)
    }

    /// Returns whether a name resolves to a file that is half written.
    pub fn half_written(&self, name: Name) -> bool {
        let written = self.disk.written();
        written.is_some() && self.truth.view.get(name).map(|at| at.object) == written
    }

    fn user(&mut self, step: &Step) {
        let (before, murky) = (self.truth.view.clone(), self.truth.murky.clone());
        if let Step::Save { name, make, how } = *step {
            let past = self.truth.past.get(name).map_or(&[][..], |past| past);
            let text = match self.truth.text(name) {
                None if !matches!(make, Make::Back(_)) => make.of(""),
                _ => make.among(past),
            };
            let _done = self.disk.save(name, &text, how);
        }
        self.disk.does(step);
        let act = match step.row() {
            Row::Symlinks
            | Row::DirectorySymlinks
            | Row::DirectoryRenames
            | Row::DirectoriesReplaced => Act::Way,
            Row::Mounts | Row::Binds => Act::Mount,
            // A symlink moves, and with it the files below it.
            Row::Renames | Row::Exchanges | Row::HardLinks if links(step) => Act::Way,
            Row::HardLinks => Act::Linked,
            Row::Renames | Row::Exchanges => Act::Moved,
            Row::OpenWriters if matches!(step, Step::OpenPart { .. }) => Act::Half,
            _ => Act::Wrote("user".into()),
        };
        self.truth.half = self.disk.written().is_some();
        self.truth.look(&self.disk, &act);
        let moved = match *step {
            Step::Rename { from, to } => vec![(from, to)],
            Step::RenameDirectory { from, to } => below(from, to),
            // Many programs save by exchanging a file with a temporary one, so
            // an exchange copies nothing (ATTR-12).
            _ => Vec::new(),
        };
        self.truth.carried(&before, &murky, &moved);
        if let Step::Exchange { one, other } = *step {
            self.truth.exchanged(one, other);
        }
    }

    /// Sends a session's request, which must succeed.
    pub fn ask(&mut self, who: usize, method: &str, params: Value) -> Result<Value, Wrong> {
        let shown = params.to_string();
        self.call(who, method, params).map_err(|error| Wrong {
            row: Row::Plain,
            what: format!("{method} {shown}: {error}"),
        })
    }

    /// Sends a session's request. It is answered after a fence.
    pub fn call(&mut self, who: usize, method: &str, mut params: Value) -> Answer {
        if who < SESSIONS && method != "edit/commit" {
            params["session"] = json!(session(who));
        }
        let about = self.about(who, method, &params);
        let answer = self.clients[who].call(method, params);
        self.truth.fenced(&about);
        answer
    }

    /// Returns the names that an answer covers. The daemon has read all of
    /// them.
    fn about(&self, who: usize, method: &str, params: &Value) -> Vec<Name> {
        let named = |name: &&Name| {
            let paths = params["paths"].as_array().into_iter().flatten();
            let files = params["files"].as_array().into_iter().flatten();
            let mut paths = paths.chain(files.map(|file| &file["path"]));
            params["path"] == ***name || paths.any(|path| path == **name)
        };
        let person = self.truth.people.get(who);
        let held = |name: &&Name| {
            let held = person.and_then(|person| person.held.get(**name));
            held.is_some_and(|held| held.used || held.carried)
        };
        let names = NAMES.iter();
        match method {
            "session/compacted" => Vec::new(),
            "audit" => NAMES.to_vec(),
            "modified/take" => names.filter(held).copied().collect(),
            _ => names.filter(named).copied().collect(),
        }
    }

    /// Returns a range as it can be requested; `None` for the whole file, also
    /// where the range would be all of it.
    fn range(&self, name: Name, range: Option<(usize, usize)>) -> Option<(usize, usize)> {
        let count = lines(self.truth.text(name)?).len();
        let (first, last) = range?;
        (first <= count && (first > 1 || last < count)).then_some((first, last.min(count)))
    }

    fn repeat(
        &self,
        who: usize,
        name: Name,
        range: Option<(usize, usize)>,
        answer: &Value,
    ) -> Done {
        let text = self.truth.text(name).unwrap_or("");
        let (first, last) = range.unwrap_or((1, lines(text).len()));
        let held = self.truth.people[who].held.get(name);
        let shown = held.is_some_and(|held| {
            held.copy.open.is_some() || held.resident && held.copy.holds(text, first, last)
        });
        expect(Row::Repeats, answer["verdict"] != "repeat" || shown, || {
            format!(
                "{} was never shown lines {first}-{last} of {name} as they are; answered: {answer}",
                session(who)
            )
        })
    }

    fn read(
        &mut self,
        who: usize,
        name: Name,
        range: Option<(usize, usize)>,
        hash: Option<bool>,
    ) -> Done {
        let Some(text) = self.truth.text(name).map(str::to_owned) else {
            return Ok(());
        };
        let range = self.range(name, range);
        let mut params = json!({"path": name});
        if let Some((first, last)) = range {
            params["range"] = json!({"start": first, "end": last});
        }
        if hash == Some(true) {
            params["hash"] = json!(sha256(&text));
        }
        let answer = self.ask(who, "file/read", params)?;
        expect(Row::Contents, answer["hash"] == sha256(&text), || {
            format!(
                "{name} holds {}; file/read answered {answer}",
                sha256(&text)
            )
        })?;
        self.repeat(who, name, range, &answer)?;
        self.truth.shown(who, name, range);
        Ok(())
    }

    fn read_text(
        &mut self,
        who: usize,
        name: Name,
        range: Option<(usize, usize)>,
        force: bool,
    ) -> Done {
        let Some(text) = self.truth.text(name).map(str::to_owned) else {
            return Ok(());
        };
        let range = self.range(name, range);
        let mut params = json!({"path": name, "force": force});
        if let Some((first, last)) = range {
            params["range"] = json!({"start": first, "end": last});
        }
        let answer = self.ask(who, "file/readText", params)?;
        self.truth.uses(who, name);
        self.repeat(who, name, range, &answer)?;
        if let Some(told) = answer["text"].as_str() {
            let (first, last) = range.unwrap_or((1, usize::MAX));
            let part: String = lines(&text)
                .into_iter()
                .skip(first - 1)
                .take(last - (first - 1))
                .collect();
            expect(Row::Contents, told == part, || {
                format!("{name} holds {part:?} there; file/readText answered {told:?}")
            })?;
            self.truth.shown(who, name, range);
        }
        Ok(())
    }

    fn take(&mut self, who: usize) -> Done {
        let taken = self.ask(who, "modified/take", json!({}))?;
        self.listed(who, &taken)?;
        let changes = taken["changes"].as_array().cloned().unwrap_or_default();
        for change in changes {
            let Some(name) = NAMES.iter().find(|name| change["path"] == **name) else {
                continue;
            };
            for other in self.truth.names_of_gone(name) {
                let text = self.truth.text(other).map(str::to_owned);
                let (half, count) = (self.half_written(other), self.truth.count(other));
                self.truth.held(who, other).told = if half {
                    Told::Open
                } else {
                    Told::This(text, count)
                };
            }
        }
        Ok(())
    }

    /// Ends the run. Fails if the daemon is not healthy.
    pub fn end(mut self) {
        if self.truth.down {
            self.world.start();
        }
        self.world.kill();
    }
}

/// Returns whether a step moves a symlink.
fn links(step: &Step) -> bool {
    let link = |name: Name| name.starts_with('l');
    match *step {
        Step::Rename { from, to } | Step::HardLink { from, to } => link(from) || link(to),
        Step::Exchange { one, other } => link(one) || link(other),
        _ => false,
    }
}

/// Returns the names below a directory, each with its new name after the
/// directory is renamed.
fn below(from: Name, to: Name) -> Vec<(Name, Name)> {
    let pair = |name: &Name| {
        let rest = name.strip_prefix(from)?.strip_prefix('/')?;
        let new = NAMES.iter().find(|new| **new == format!("{to}/{rest}"))?;
        Some((*name, *new))
    };
    NAMES.iter().filter_map(pair).collect()
}
