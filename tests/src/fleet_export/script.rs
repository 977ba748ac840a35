//! What agents and a user do in one workspace, by a seed. Everything is done
//! one after another, so that its result is certain.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::hooks::Voice;
use crate::session::Session;
use crate::user::{self, git};
use crate::world::World;
use crate::{author, sha256, text};

use super::ledger::{Event, Ledger, Undone, Who, Wrote};

/// The programs and models of agents.
const AGENTS: [(&str, &str); 4] = [
    ("claude-code", "opus"),
    ("codex", "gpt"),
    ("gemini-cli", "pro"),
    ("codex", "gpt-mini"),
];

/// The files that a workspace begins with.
const FILES: [&str; 3] = ["src/a.rs", "src/b.rs", "notes.md"];

/// How long a user looks at a change before undoing it, in milliseconds.
const LOOK: u64 = 2_200;

/// A file as the script has recorded it.
#[derive(Default)]
struct File {
    /// The lines; `None` if there is no file.
    lines: Option<Vec<String>>,
    /// The content of the last commit.
    committed: Option<Vec<String>>,
    /// The content that each session saw last.
    seen: BTreeMap<String, Option<Vec<String>>>,
}

/// One workspace and what happens in it.
pub struct Place {
    /// The workspace and its daemon.
    pub world: World,
    /// What was done.
    pub ledger: Ledger,
    name: String,
    dice: Dice,
    agents: Vec<Who>,
    sessions: Vec<Session>,
    hooked: Who,
    files: BTreeMap<String, File>,
    lines: u64,
    created: u64,
    calls: u64,
}

fn join(lines: &[String]) -> String {
    lines.concat()
}

impl Place {
    /// Makes the workspace as a work tree of a repository (number
    /// `repository`, whose directory is `shared`), and starts its daemon.
    pub fn new(number: usize, repository: usize, shared: &Path, seed: u64, settings: &str) -> Self {
        let name = format!("w{number}");
        let mut world = World::asleep();
        let target = world.workspace().to_str().expect("UTF-8").to_owned();
        git(shared, &["worktree", "add", "-q", "-b", &name, &target]);
        world.configure(settings);
        world.start();
        let mut dice = Dice::new(seed, &name);
        let first = dice.index(AGENTS.len());
        let agents: Vec<Who> = ["a", "b"]
            .iter()
            .enumerate()
            .map(|(at, letter)| {
                let (agent, model) = AGENTS[(first + at) % AGENTS.len()];
                Who {
                    session: format!("{name}-{letter}"),
                    agent: agent.into(),
                    model: model.into(),
                }
            })
            .collect();
        let hooked = Who {
            session: format!("{name}-c"),
            agent: "claude-code".into(),
            model: "haiku".into(),
        };
        let mut place = Self {
            world,
            ledger: Ledger {
                repository,
                ..Ledger::default()
            },
            name,
            dice,
            agents,
            sessions: Vec::new(),
            hooked,
            files: BTreeMap::new(),
            lines: 0,
            created: 0,
            calls: 0,
        };
        place.open();
        for path in FILES {
            let content = fs::read_to_string(place.world.path(path)).expect("a committed file");
            let lines: Vec<String> = content.lines().map(|line| format!("{line}\n")).collect();
            let file = File {
                committed: Some(lines.clone()),
                lines: Some(lines),
                ..File::default()
            };
            place.files.insert(path.into(), file);
            place.read(0, path);
        }
        place
    }

    /// Writes the files that each workspace begins with, and commits them.
    pub fn found(shared: &Path, origin: &str) {
        git(shared, &["init", "-q"]);
        git(shared, &["remote", "add", "origin", origin]);
        for path in FILES {
            let file = shared.join(path);
            fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
            let lines: String = (0..12).map(|n| format!("{path} line {n}\n")).collect();
            fs::write(file, lines).expect("a file");
        }
        git(shared, &["add", "-A"]);
        git(shared, &["commit", "-q", "-m", "first"]);
    }

    /// Opens the sessions, at the start and after a restart of the daemon.
    fn open(&mut self) {
        self.sessions = self
            .agents
            .iter()
            .map(|who| {
                let client = self.world.client();
                let mut session = Session::new(client, &who.session, self.world.workspace());
                let agent = json!({"name": who.agent, "version": "1"});
                session.ok("session/open", json!({"agent": agent}));
                let model = json!({"modelId": who.model, "providerId": "p", "mode": "act"});
                session.ok("model/record", model);
                session
            })
            .collect();
    }

    /// Does one thing.
    pub fn step(&mut self) {
        let agent = self.dice.index(self.agents.len());
        let path = self.some_file();
        match self.dice.below(100) {
            0..22 => drop(self.edit(agent, &path)),
            22..34 => self.user(&path),
            34..44 => self.read(agent, &path),
            44..54 => self.stale(agent, &path),
            54..58 => self.not_read(agent),
            58..66 => self.clobber(agent, &path),
            66..72 => self.undo(agent, &path),
            72..76 => self.conflict(agent, &path),
            76..82 => self.command(agent),
            82..86 => self.late(agent, &path),
            86..91 => self.pass(&path),
            91..98 => self.commit(),
            _ => self.restart(),
        }
    }

    fn some_file(&mut self) -> String {
        (*self.dice.pick(&FILES)).into()
    }

    fn line(&mut self) -> String {
        self.lines += 1;
        format!("{} wrote line {}\n", self.name, self.lines)
    }

    fn lines_of(&self, path: &str) -> Option<Vec<String>> {
        self.files.get(path).and_then(|file| file.lines.clone())
    }

    /// Returns other lines: some are added, removed or replaced; none is moved.
    fn changed(&mut self, lines: &[String]) -> Vec<String> {
        let mut lines = lines.to_vec();
        for _ in 0..=self.dice.below(3) {
            let at = self.dice.index(lines.len());
            match self.dice.below(4) {
                0 if lines.len() > 8 => drop(lines.remove(at)),
                1 => lines[at] = self.line(),
                _ => {
                    let line = self.line();
                    lines.insert(at, line);
                }
            }
        }
        // So that there always is a change.
        let line = self.line();
        lines.push(line);
        lines
    }

    fn write(&self, path: &str, lines: &[String]) {
        let file = self.world.path(path);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
        user::write(&file, &join(lines));
    }

    /// Notes a version that is on disk now.
    fn wrote(&mut self, who: Option<&Who>, path: &str, new: &[String], command: Option<u64>) {
        let file = self.files.entry(path.into()).or_default();
        let old: BTreeSet<String> = file.lines.iter().flatten().cloned().collect();
        let now: BTreeSet<String> = new.iter().cloned().collect();
        self.ledger.wrote.push(Wrote {
            who: who.cloned(),
            path: path.into(),
            command,
            added: now.difference(&old).count() as u64,
            removed: old.difference(&now).count() as u64,
        });
        file.lines = Some(new.to_vec());
        // What its command writes, a session has not seen (SEEN-1).
        if let (Some(who), None) = (who, command) {
            file.seen.insert(who.session.clone(), file.lines.clone());
        }
    }

    fn happened(&mut self, event: Event, who: &Who) {
        self.ledger.events.push((event, who.clone()));
    }

    fn read(&mut self, agent: usize, path: &str) {
        self.sessions[agent].read(path);
        let session = self.agents[agent].session.clone();
        let file = self.files.entry(path.into()).or_default();
        file.seen.insert(session, file.lines.clone());
    }

    /// Has the session read the file if its copy is not the current one.
    fn refresh(&mut self, agent: usize, path: &str) {
        let file = &self.files[path];
        if file.seen.get(&self.agents[agent].session) != Some(&file.lines) {
            self.read(agent, path);
        }
    }

    /// An agent changes a file that it has seen. Returns the edit.
    fn edit(&mut self, agent: usize, path: &str) -> String {
        self.refresh(agent, path);
        let old = self.lines_of(path).expect("a file");
        let new = self.changed(&old);
        let (who, content) = (self.agents[agent].clone(), join(&new));
        let session = &mut self.sessions[agent];
        let edit = session.begin(path, Some(&content)).expect("an edit");
        self.write(path, &new);
        let done = self.sessions[agent].commit(&edit, path, Some(&content));
        assert_eq!(done["outcome"], "applied", "{done}");
        self.wrote(Some(&who), path, &new, None);
        edit
    }

    /// The user changes a file.
    fn user(&mut self, path: &str) {
        let old = self.lines_of(path).expect("a file");
        let new = self.changed(&old);
        self.write(path, &new);
        self.sessions[0].sync();
        self.wrote(None, path, &new, None);
    }

    /// An agent begins to change a file that has changed since it read it.
    fn stale(&mut self, agent: usize, path: &str) {
        self.refresh(agent, path);
        if self.dice.percent(50) {
            self.user(path);
        } else {
            drop(self.edit(1 - agent, path));
        }
        let params = json!({"files": [{"path": path}]});
        self.sessions[agent].refused("edit/begin", params, "stale");
        let who = self.agents[agent].clone();
        self.happened(Event::Stale, &who);
    }

    /// An agent creates a file, and another begins to change it unread.
    fn not_read(&mut self, agent: usize) {
        self.created += 1;
        let path = format!("new/{}-{}.txt", self.name, self.created);
        let new = vec![self.line(), self.line()];
        let (who, content) = (self.agents[agent].clone(), join(&new));
        let session = &mut self.sessions[agent];
        let edit = session.begin(&path, Some(&content)).expect("an edit");
        self.write(&path, &new);
        let done = self.sessions[agent].commit(&edit, &path, Some(&content));
        assert_eq!(done["outcome"], "applied", "{done}");
        self.wrote(Some(&who), &path, &new, None);
        let params = json!({"files": [{"path": path}]});
        self.sessions[1 - agent].refused("edit/begin", params, "notRead");
        let other = self.agents[1 - agent].clone();
        self.happened(Event::NotRead, &other);
    }

    /// The user saves a file while an agent's edit of it is open, and the agent
    /// overwrites that. Sometimes the user brings it back.
    fn clobber(&mut self, agent: usize, path: &str) {
        self.refresh(agent, path);
        let old = self.lines_of(path).expect("a file");
        let (own, who) = (self.changed(&old), self.agents[agent].clone());
        let content = join(&own);
        let session = &mut self.sessions[agent];
        let edit = session.begin(path, Some(&content)).expect("an edit");
        self.user(path);
        let lost = self.lines_of(path).expect("a file");
        self.write(path, &own);
        let done = self.sessions[agent].commit(&edit, path, Some(&content));
        assert_eq!(done["outcome"], "clobbered", "{done}");
        self.wrote(Some(&who), path, &own, None);
        self.happened(Event::Lost, &who);
        if self.dice.percent(50) {
            let versions = self.sessions[agent].history(path);
            let of = |row: &&Value| row["hash"] == json!(sha256(join(&lost)));
            let version = versions.iter().find(of).expect("the user's version");
            let params = json!({"path": path, "at": text(version, "clock")});
            let restored = self.sessions[0].client.ok("file/restore", params);
            assert_eq!(restored["files"][0]["outcome"], "restored", "{restored}");
            self.wrote(None, path, &lost, None);
            self.happened(Event::BroughtBack, &who);
        }
    }

    /// An agent's edit is undone.
    fn undo(&mut self, agent: usize, path: &str) {
        self.refresh(agent, path);
        let before = self.lines_of(path).expect("a file");
        let edit = self.edit(agent, path);
        // The user looks at it first. What an undo writes is reported as an
        // editor's save is, and such a report also fits a version of the last
        // two seconds with the same content (ATTR-2).
        user::pause(LOOK);
        let who = self.agents[agent].clone();
        let params = json!({"session": who.session, "edit": edit});
        let undone = self.sessions[agent].client.ok("undo", params);
        assert_eq!(undone["files"][0]["outcome"], "undone", "{undone}");
        let content = fs::read_to_string(self.world.path(path)).expect("a file");
        assert_eq!(content, join(&before), "{path}");
        self.wrote(None, path, &before, None);
        self.ledger.undone.push(Undone {
            who,
            files: 1,
            hunks: undone["files"][0]["hunks"].as_u64().expect("hunks"),
        });
    }

    /// A guarded write names another content than the file has.
    fn conflict(&mut self, agent: usize, path: &str) {
        self.refresh(agent, path);
        let params = json!({"path": path, "text": "x\n", "requireRead": false,
            "base": sha256("another")});
        self.sessions[agent].refused("file/write", params, "conflict");
        let who = self.agents[agent].clone();
        self.happened(Event::Conflict, &who);
    }

    /// An agent's command changes some files.
    fn command(&mut self, agent: usize) {
        let who = self.agents[agent].clone();
        let count = 1 + self.dice.index(FILES.len());
        for path in &FILES[..count] {
            self.refresh(agent, path);
        }
        let label = json!({"label": "make", "paths": &FILES[..count]});
        let begun = self.sessions[agent].ok("command/begin", label);
        let command = begun["command"].clone();
        let number: u64 = command
            .as_str()
            .and_then(|name| name.trim_start_matches(char::is_alphabetic).parse().ok())
            .or(command.as_u64())
            .unwrap_or_else(|| panic!("{begun}"));
        for path in &FILES[..count] {
            let old = self.lines_of(path).expect("a file");
            let new = self.changed(&old);
            self.write(path, &new);
            self.wrote(Some(&who), path, &new, Some(number));
        }
        let end = json!({"command": command});
        let ended = self.sessions[agent].client.ok("command/end", end);
        assert_eq!(ended["command"]["versions"], count, "{ended}");
    }

    /// An agent writes a file and reports that afterwards.
    fn late(&mut self, agent: usize, path: &str) {
        self.refresh(agent, path);
        let old = self.lines_of(path).expect("a file");
        let (new, who) = (self.changed(&old), self.agents[agent].clone());
        self.write(path, &new);
        self.sessions[agent].sync();
        let marked = self.sessions[agent].mark(path, Some(&join(&new)));
        assert_eq!(marked["late"], true, "{marked}");
        self.wrote(Some(&who), path, &new, None);
    }

    fn hook(&mut self, event: &Value) -> Value {
        let params = json!({"agent": "claude", "input": event});
        let answer = self.sessions[0].client.ok("hook/event", params);
        if let Some(ack) = answer.get("ack").filter(|ack| !ack.is_null()) {
            let ack = json!({"ack": ack});
            let _acknowledged = self.sessions[0].client.call("hook/ack", ack);
        }
        answer
    }

    /// An agent with hooks edits a file next to a line that the user has
    /// changed, and is let through.
    fn pass(&mut self, path: &str) {
        let voice = Voice::new("claude", &self.hooked.session, self.world.workspace());
        self.calls += 1;
        let call = format!("{}-{}", self.name, self.calls);
        let content = join(&self.lines_of(path).expect("a file"));
        if self.calls == 1 {
            self.hook(&voice.start("startup"));
            let model = json!({"session": self.hooked.session, "modelId": self.hooked.model,
                "providerId": "p", "mode": "act"});
            self.sessions[0].client.ok("model/record", model);
        }
        self.hook(&voice.before_read(&format!("{call}r"), path));
        self.hook(&voice.after_read(&format!("{call}r"), path, &content));
        // The user adds a line at the end, the agent replaces the first one.
        let mut lines = self.lines_of(path).expect("a file");
        lines.push(self.line());
        self.write(path, &lines);
        self.sessions[0].sync();
        self.wrote(None, path, &lines, None);
        let (old, new) = (lines[0].clone(), self.line());
        lines[0].clone_from(&new);
        self.hook(&voice.before_edit(&call, path, &old, &new));
        self.write(path, &lines);
        self.hook(&voice.after_edit(&call, path, &old, &new));
        let who = self.hooked.clone();
        self.wrote(Some(&who), path, &lines, None);
        // Its record of a refusal is subtracted.
        self.happened(Event::Passed, &who);
    }

    /// The user commits everything.
    pub fn commit(&mut self) {
        let changed = self.files.values().any(|file| file.lines != file.committed);
        if !changed {
            return;
        }
        git(self.world.workspace(), &["add", "-A"]);
        git(self.world.workspace(), &["commit", "-q", "-m", "next"]);
        for file in self.files.values_mut() {
            file.committed.clone_from(&file.lines);
        }
    }

    /// The daemon is killed and started again.
    fn restart(&mut self) {
        self.world.restart();
        self.open();
    }

    /// Does one last thing, and returns what the daemon has recorded: for each
    /// kind of record, the identities. Panics if the files are not as the
    /// script has them.
    pub fn finish(&mut self) -> BTreeMap<&'static str, BTreeSet<String>> {
        self.user("notes.md");
        let mut clocks: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
        let paths: Vec<String> = self.files.keys().cloned().collect();
        for path in &paths {
            let content = fs::read_to_string(self.world.path(path)).expect("a file");
            assert_eq!(Some(content), self.lines_of(path).map(|lines| join(&lines)));
            let versions = self.recorded_versions(path);
            clocks
                .entry("touchmark.version")
                .or_default()
                .extend(versions);
        }
        let mut ask = json!({});
        loop {
            let answer = self.sessions[0].client.ok("activity/list", ask.clone());
            for row in answer["rows"].as_array().expect("rows") {
                let event = match &*text(row, "kind") {
                    "read" => "touchmark.read",
                    "overwrote" => "touchmark.lost",
                    "conflict" => "touchmark.conflict",
                    _ => "touchmark.refused",
                };
                clocks.entry(event).or_default().insert(text(row, "clock"));
            }
            match answer["more"].as_str() {
                Some(more) => ask = json!({"before": more}),
                None => return clocks,
            }
        }
    }

    /// Returns the clocks of a file's versions and corrections. Panics if their
    /// authors are not those of the script.
    fn recorded_versions(&mut self, path: &str) -> Vec<String> {
        let mut rows: Vec<Value> = Vec::new();
        let mut ask = json!({"path": path});
        loop {
            let answer = self.sessions[0].client.ok("file/history", ask.clone());
            rows.extend(answer["versions"].as_array().expect("versions").clone());
            match answer["more"].as_str() {
                Some(more) => ask = json!({"path": path, "before": more}),
                None => break,
            }
        }
        // The last row is the baseline.
        rows.pop();
        let amended: BTreeSet<&str> = rows
            .iter()
            .filter_map(|row| row["amends"].as_str())
            .collect();
        let mut recorded: Vec<String> = rows
            .iter()
            .filter(|row| !amended.contains(&*text(row, "clock")))
            .map(|row| author(&row["author"]))
            .collect();
        let of_path = self.ledger.wrote.iter().filter(|wrote| wrote.path == path);
        let mut wrote: Vec<String> = of_path
            .map(|wrote| match &wrote.who {
                Some(who) => format!("agent:{}", who.session),
                None => "user".into(),
            })
            .collect();
        recorded.sort();
        wrote.sort();
        assert_eq!(recorded, wrote, "{path}: {rows:#?}");
        rows.iter().map(|row| text(row, "clock")).collect()
    }

    /// Returns the state of the export.
    pub fn telemetry(&mut self) -> Value {
        let status = self.sessions[0].client.ok("status", json!({}));
        status["telemetry"].clone()
    }

    /// Returns the ids of the sessions.
    pub fn sessions(&self) -> Vec<String> {
        let hooked = Some(&self.hooked);
        let all = self.agents.iter().chain(hooked);
        all.map(|who| who.session.clone()).collect()
    }
}
