//! A run: the steps, one by one, on a real disk with a real daemon.

use serde_json::{Value, json};

use super::belief::Worth;
use super::disk::Disk;
use super::people::{Act, Edit, Told, Truth};
use super::rows::Row;
use super::step::{Declared, How, NAMES, Name, Step, session};
use super::text::{Make, lines};
use crate::wire::{Answer, Client};
use crate::{World, sha256};

/// What was answered wrongly.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// The comparison that failed.
    pub row: Row,
    /// What was answered, and what is right.
    pub what: String,
}

/// The result of one step.
pub type Done = Result<(), Wrong>;

/// A comparison, if its row is on.
pub fn expect(row: Row, right: bool, what: impl FnOnce() -> String) -> Done {
    if right || !row.is_on() {
        return Ok(());
    }
    Err(Wrong { row, what: what() })
}

/// How many sessions there are.
pub const SESSIONS: usize = 3;

/// A run under way.
pub struct Play {
    world: World,
    /// One connection a session, and one for whoever asks about all.
    clients: Vec<Client>,
    disk: Disk,
    /// What is so.
    pub truth: Truth,
    /// How often the contract left open what a copy is worth, of how many.
    pub left_open: (u64, u64),
}

impl Play {
    /// A new workspace and a daemon.
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

    /// Does one step.
    ///
    /// # Errors
    /// What was answered wrongly.
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
                self.world.start();
                self.truth.down = false;
                self.truth.murky.extend(NAMES);
                self.connect();
            }
            Step::Stop | Step::Kill | Step::Start => {}
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

    /// Whether agents can ask about a name now: nobody has half written it.
    fn at_work(&self, name: Name) -> bool {
        !self.truth.down && !self.half_written(name)
    }

    /// Whether a name leads to a file that somebody has half written.
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
            // What a link of that name leads to moves with the link.
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
            // Many save by an exchange with a temporary file: it copies
            // nothing (ATTR-12).
            _ => Vec::new(),
        };
        self.truth.carried(&before, &murky, &moved);
    }

    /// A request of a session's, which must succeed.
    pub fn ask(&mut self, who: usize, method: &str, params: Value) -> Result<Value, Wrong> {
        let shown = params.to_string();
        self.call(who, method, params).map_err(|error| Wrong {
            row: Row::Plain,
            what: format!("{method} {shown}: {error}"),
        })
    }

    /// A request of a session's, answered behind a fence.
    pub fn call(&mut self, who: usize, method: &str, mut params: Value) -> Answer {
        if who < SESSIONS && method != "edit/commit" {
            params["session"] = json!(session(who));
        }
        let about = self.about(who, method, &params);
        let answer = self.clients[who].call(method, params);
        self.truth.fenced(&about);
        answer
    }

    /// The names that an answer speaks of: all of them have been looked at.
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

    /// A range as it can be read: the whole file where it would be all of it.
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

    /// What a request for writing may be refused with; `None` where it may not.
    fn refusals(&self, who: usize, name: Name) -> (bool, Vec<&'static str>) {
        let held = self.truth.people[who].held.get(name);
        let text = self.truth.text(name);
        let in_part = text.is_some_and(|text| held.is_some_and(|held| held.copy.shown_last(text)));
        match self.truth.worth(who, name) {
            _ if text.is_none() => (true, vec!["stale"]),
            Worth::Unread => (false, vec!["notRead"]),
            Worth::Fresh => (true, vec![]),
            // SEEN-3: who saw part of the current content may edit it.
            Worth::Stale if in_part => (true, vec!["stale"]),
            Worth::Stale | Worth::Deleted => (false, vec!["stale"]),
            Worth::Open => (true, vec!["stale", "notRead"]),
        }
    }

    /// Compares an answer with what may be refused; whether it was carried out.
    fn refused(
        &mut self,
        who: usize,
        name: Name,
        method: &str,
        answer: &Answer,
    ) -> Result<bool, Wrong> {
        let (mut may, mut refusals) = self.refusals(who, name);
        let other = (0..SESSIONS)
            .filter(|other| *other != who)
            .find_map(|other| {
                let edit = self.truth.people[other].edit.as_ref()?;
                let names = self.truth.names_of(name);
                // An edit stays with its path; where names have parted since, the
                // contract does not say whose it is.
                let sure =
                    names.contains(&edit.name) && self.truth.names_of(edit.name) == edit.names;
                (edit.names.iter().any(|other| names.contains(other)) || sure).then_some(sure)
            });
        let mut row = Row::Refusals;
        if let Some(sure) = other {
            if sure && may && method == "edit/begin" {
                row = Row::Busy;
            }
            may &= !sure || method != "edit/begin";
            refusals.push("busy");
        }
        let right = match answer {
            Ok(_) => may,
            Err(error) => refusals.contains(&error.name.as_str()),
        };
        expect(row, right, || {
            let worth = self.truth.worth(who, name);
            let names = self.truth.names_of(name);
            let answer = answer
                .as_ref()
                .map(|_| "allowed")
                .map_err(ToString::to_string);
            format!(
                "{} {method} {name} {names:?}: its copy is {worth:?}; it may be allowed: {may}, \
                 refused as {refusals:?}; answered {answer:?}",
                session(who)
            )
        })?;
        Ok(answer.is_ok())
    }

    fn begin(&mut self, who: usize, name: Name, make: Make, declared: Declared) -> Done {
        if self.truth.people[who].edit.is_some() {
            return Ok(());
        }
        let base = self.truth.text(name).map(str::to_owned);
        let text = make.of(base.as_deref().unwrap_or(""));
        let declared = declared == Declared::Content;
        let expected = declared.then(|| sha256(&text));
        let params = json!({"files": [{"path": name, "expect": expected}]});
        let answer = self.call(who, "edit/begin", params);
        if !self.refused(who, name, "edit/begin", &answer)? {
            return Ok(());
        }
        let names = self.truth.names_of(name);
        let since = self.truth.count(name);
        self.truth.uses(who, name);
        self.truth.people[who].edit = Some(Edit {
            id: answer
                .map(|begun| crate::text(&begun, "edit"))
                .unwrap_or_default(),
            name,
            names,
            base,
            text,
            declared,
            wrote: None,
            foreign: false,
            since,
        });
        Ok(())
    }

    fn agent_saves(&mut self, who: usize, how: How, alias: bool) {
        let Some(edit) = self.truth.people[who].edit.clone() else {
            return;
        };
        if edit.wrote.is_some() || self.half_written(edit.name) {
            return;
        }
        let names = self.truth.names_of(edit.name);
        let other = names.iter().find(|name| **name != edit.name);
        let name = other.filter(|_| alias).copied().unwrap_or(edit.name);
        let act = if edit.declared {
            Act::Wrote(format!("agent:{}", session(who)))
        } else {
            Act::Marked(who)
        };
        if self.disk.save(name, &edit.text, how).is_err() {
            return;
        }
        if let Some(edit) = &mut self.truth.people[who].edit {
            edit.wrote = Some(name);
        }
        self.truth.look(&self.disk, &act);
        if edit.declared {
            self.truth.wrote(who, name, &edit.text);
        } else {
            self.truth
                .leave_open(who, name, "written under a mark that is still open");
        }
        if name != edit.name && !self.truth.names_of(edit.name).contains(&name) {
            // An edit goes with the name it was begun by (FILE-2): nothing
            // says whose what was made by the other name is.
            let agent = format!("agent:{}", session(who));
            self.truth.perhaps_users(name, &agent);
        }
        // Its name parted from the others, or it wrote another's.
        if name != edit.name || self.truth.names_of(name) != names {
            for other in edit.names {
                self.truth
                    .leave_open(who, other, "written by one name of several, which parted");
            }
        }
    }

    fn commit(&mut self, who: usize, hash: bool) -> Done {
        let Some(edit) = self.truth.people[who].edit.clone() else {
            return Ok(());
        };
        if edit.names.iter().any(|name| self.half_written(name)) {
            return Ok(());
        }
        self.truth.people[who].edit = None;
        let begun = edit.names.clone();
        let named = (hash && edit.wrote.is_some()).then(|| sha256(&edit.text));
        let mut params = json!({"edit": edit.id});
        if let Some(hash) = &named {
            params["files"] = json!([{"path": edit.name, "hash": hash}]);
        }
        let unseen = self.unseen(&edit);
        let answer = self.ask(who, "edit/commit", params)?;
        self.truth.fenced(&begun);
        let there = self.truth.text(edit.name);
        let found = edit.wrote.is_some() && there == Some(&edit.text);
        let changed = edit.base.as_deref() != Some(&edit.text);
        let outcome = crate::text(&answer["files"][0], "outcome");
        let plain = edit.wrote == Some(edit.name) && !edit.foreign && found;
        let right = match (plain, changed) {
            (true, true) => outcome == "applied",
            (true, false) => outcome == "unchanged",
            _ if edit.wrote.is_none() && !edit.foreign => {
                matches!(outcome.as_str(), "notApplied" | "unchanged")
            }
            _ => true,
        };
        expect(Row::Outcomes, right, || {
            format!(
                "{} commits {}: wrote {:?}, others wrote meanwhile: {}; answered {answer}",
                session(who),
                edit.name,
                edit.wrote,
                edit.foreign
            )
        })?;
        self.committed(who, &edit, named.is_some(), found, unseen);
        if let Some(name) = edit.wrote.filter(|name| *name != edit.name && !found) {
            // An edit goes with the name it was begun by (FILE-2): nothing
            // says whose what was made by the other name is. Who says that it
            // wrote what never stood there has somebody else write what does.
            let agent = format!("agent:{}", session(who));
            self.truth.perhaps_users(name, &agent);
            self.truth.perhaps_users(edit.name, &agent);
        }
        Ok(())
    }

    /// Whether the written content may have been overwritten before anybody
    /// looked at it.
    fn unseen(&self, edit: &Edit) -> bool {
        let events = self.truth.events.get(edit.name).map_or(&[][..], |all| all);
        let newest = events.last().and_then(|event| event.text.as_deref());
        newest != Some(&edit.text) && events.iter().any(|event| event.unseen)
    }

    fn committed(&mut self, who: usize, edit: &Edit, named: bool, found: bool, unseen: bool) {
        let agent = format!("agent:{}", session(who));
        let Some(name) = edit.wrote else {
            if !edit.declared && edit.foreign {
                // What a mark without a content finds is taken for the session's.
                for name in &edit.names {
                    self.claim(name, edit.since, |_| true, &agent, true);
                    self.truth
                        .leave_open(who, name, "another's content was found at the commit");
                }
            }
            return;
        };
        if edit.declared {
            if !named && unseen {
                self.truth
                    .leave_open(who, name, "declared, never looked at, not named");
            }
            return;
        }
        let sure = (named || found) && !unseen;
        for other in NAMES {
            let own = |text: &str| text == edit.text;
            if sure {
                self.claim(other, 0, own, &agent, false);
            } else {
                self.claim(other, edit.since, |_| true, &agent, true);
            }
        }
        if found {
            self.truth.wrote(who, name, &edit.text);
        }
        if !sure || !found || edit.foreign || name != edit.name {
            for other in edit.names.iter().chain([&name]) {
                self.truth
                    .leave_open(who, other, "a mark without a content, and others wrote too");
            }
        }
    }

    /// Says who may be named for contents of a name that a mark covered.
    fn claim(
        &mut self,
        name: Name,
        since: usize,
        own: impl Fn(&str) -> bool,
        agent: &str,
        may: bool,
    ) {
        let events = self
            .truth
            .events
            .get_mut(name)
            .map_or(&mut [][..], |all| all);
        for event in events.iter_mut().skip(since) {
            let Some(by) = &mut event.by else { continue };
            if event.text.as_deref().is_some_and(&own) {
                if !may && event.mark.is_some() {
                    by.remove("user");
                }
                by.insert(agent.to_owned());
            }
        }
    }

    fn guarded(&mut self, who: usize, name: Name, method: &str, params: Value, text: &str) -> Done {
        if self.truth.people.iter().any(|person| {
            person
                .edit
                .as_ref()
                .is_some_and(|edit| edit.names.contains(&name))
        }) {
            return Ok(());
        }
        let parent = std::path::Path::new(name).parent();
        if parent.is_some_and(|parent| !self.world.path(parent).is_dir())
            || self.truth.text(name).is_none()
        {
            return Ok(());
        }
        let whole = self.truth.people[who]
            .held
            .get(name)
            .is_some_and(|held| held.copy.is_whole());
        let answer = self.call(who, method, params);
        let done = self.refused(who, name, method, &answer)?;
        let agent = format!("agent:{}", session(who));
        self.truth.look(&self.disk, &Act::Wrote(agent));
        self.truth.fenced(&[name]);
        if done {
            self.truth.uses(who, name);
            expect(Row::Contents, self.truth.text(name) == Some(text), || {
                format!(
                    "{method} {name} answered {answer:?}; the file holds {:?}",
                    self.truth.text(name)
                )
            })?;
            self.truth.wrote(who, name, text);
            if method == "file/edit" && !whole {
                self.truth
                    .leave_open(who, name, "an edit of a file that was not seen as a whole");
            }
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

    /// Ends the run: the daemon must be well.
    pub fn end(mut self) {
        if self.truth.down {
            self.world.start();
        }
        self.world.kill();
    }
}

/// Whether a step moves a symlink.
fn links(step: &Step) -> bool {
    let link = |name: Name| name.starts_with('l');
    match *step {
        Step::Rename { from, to } | Step::HardLink { from, to } => link(from) || link(to),
        Step::Exchange { one, other } => link(one) || link(other),
        _ => false,
    }
}

/// The names below a directory, and what they become when it is renamed.
fn below(from: Name, to: Name) -> Vec<(Name, Name)> {
    let pair = |name: &Name| {
        let rest = name.strip_prefix(from)?.strip_prefix('/')?;
        let new = NAMES.iter().find(|new| **new == format!("{to}/{rest}"))?;
        Some((*name, *new))
    };
    NAMES.iter().filter_map(pair).collect()
}
