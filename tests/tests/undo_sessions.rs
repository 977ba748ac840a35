//! UNDO-1, UNDO-2, UNDO-4 by the daemon, on sessions that are generated from
//! real histories (`touchmark_tests::dealt`): agents that edit, commands, and a
//! user who saves. One of them is undone, and the undo is reversed. The
//! engine's `undo` test plays a thousand of them, without files. This test
//! plays some of those, and all with `TOUCHMARK_SOAK=1`. With
//! `TOUCHMARK_PARTS=1` other tools play the same, for the table in
//! docs/undo.md.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use touchmark_tests::dealt::deal::script;
use touchmark_tests::dealt::truth::{Wrong, judge, truth};
use touchmark_tests::dealt::{AUTHORS, COMMANDS, Script, Style, USER, Who, histories};
use touchmark_tests::dice::Dice;
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::{Client, Session, World, children, fetched, parts, user};

/// The number of scripts in a quick run.
const QUICK: u64 = 24;

/// The number of all scripts.
const ALL: u64 = 1_000;

/// The number of scripts that share a daemon.
const SHARED: u64 = 20;

/// A tool that plays scripts, each in a separate directory.
trait Player {
    /// Begins a script. The files exist, and no author has changed anything
    /// yet.
    fn begin(&mut self, script: &Script);
    /// Performs one step: the file gets this content; `None` removes it.
    fn step(&mut self, who: Who, path: &str, text: Option<&str>);
    /// Undoes what an author did, in these files.
    fn take_away(&mut self, who: Who, touched: &[&str]);
    /// Returns the directory.
    fn root(&self) -> &Path;
}

/// Plays a script, and undoes one author, who depends on the script's number.
fn play(player: &mut dyn Player, script: &Script, style: Style) {
    for file in &script.files {
        let path = player.root().join(&file.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if let Some(text) = file.text(0, style) {
            fs::write(path, text).unwrap();
        }
    }
    player.begin(script);
    for (file, version) in &script.steps {
        let file = &script.files[*file];
        let who = file.versions[*version].by.unwrap();
        player.step(who, &file.path, file.text(*version, style).as_deref());
    }
}

fn held(root: &Path, script: &Script) -> Vec<Option<String>> {
    let files = script.files.iter();
    files
        .map(|file| fs::read_to_string(root.join(&file.path)).ok())
        .collect()
}

fn touched(script: &Script, who: Who) -> Vec<&str> {
    let files = script.files.iter().filter(|file| file.is_touched_by(who));
    files.map(|file| &*file.path).collect()
}

/// Returns the differences in each file.
fn judged(root: &Path, script: &Script, who: Who, style: Style) -> Vec<Wrong> {
    let now = held(root, script).into_iter();
    let files = script.files.iter().zip(now);
    files
        .map(|(file, now)| judge(file, who, style, now.as_deref()))
        .collect()
}

/// touchmark: agents use guarded writes, edits and commands, the user saves.
struct Ours<'w> {
    world: &'w World,
    root: PathBuf,
    /// The directory's name.
    name: String,
    agents: Vec<Session>,
    dice: Dice,
    undone: Value,
}

impl<'w> Ours<'w> {
    fn new(world: &'w World, number: u64) -> Self {
        let name = format!("script {number}");
        let session = |who: &str| world.session(&format!("{who}-{number}"));
        Self {
            world,
            root: world.path(&name),
            agents: AUTHORS[..USER].iter().map(|who| session(who)).collect(),
            name,
            dice: Dice::new(number, "ways"),
            undone: Value::Null,
        }
    }
}

impl Player for Ours<'_> {
    fn begin(&mut self, script: &Script) {
        for file in &script.files {
            if self.root.join(&file.path).exists() {
                self.agents[0].read(&format!("{}/{}", self.name, file.path));
            }
        }
    }

    fn step(&mut self, who: Who, path: &str, text: Option<&str>) {
        let (here, path) = (self.root.join(path), format!("{}/{path}", self.name));
        let way = self.dice.below(3);
        let save = |text: &str| match (way, here.exists()) {
            (0, true) => user::overwrite(&here, text),
            (1, _) => user::replace(&here, text),
            _ => user::write(&here, text),
        };
        let Some(agent) = self.agents.get_mut(who) else {
            match text {
                Some(text) => save(text),
                None => fs::remove_file(&here).unwrap(),
            }
            return self.agents[0].sync();
        };
        let Some(text) = text.filter(|_| who != COMMANDS) else {
            let begun = agent.ok(
                "command/begin",
                json!({"label": "sh", "scope": "workspace"}),
            );
            match text {
                Some(text) => save(text),
                None => fs::remove_file(&here).unwrap(),
            }
            let command = json!({"command": begun["command"]});
            agent.client.ok("command/end", command);
            return;
        };
        if here.exists() {
            agent.read(&path);
        }
        if way == 0 {
            let edit = agent.begin(&path, Some(text)).unwrap();
            save(text);
            agent.commit(&edit, &path, Some(text));
        } else {
            let params = json!({"path": path, "text": text});
            assert_eq!(agent.ok("file/write", params)["outcome"], "applied");
        }
    }

    fn take_away(&mut self, who: Who, _touched: &[&str]) {
        let session = &self.agents[who].name;
        let ask = json!({"session": session, "now": true, "likely": true});
        self.undone = self.world.client().ok("undo", ask);
    }

    fn root(&self) -> &Path {
        &self.root
    }
}

/// Returns the author who is undone: an agent that changed something.
fn whose(script: &Script, number: u64) -> Option<Who> {
    let first = usize::try_from(number).unwrap();
    let who = (0..USER).map(|next| (first + next) % USER);
    { who }.find(|who| !touched(script, *who).is_empty())
}

fn known() -> histories::Histories {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let known = histories::of(&repository);
    if let Some(why) = &known.made_up {
        parts::not_tested(why);
    }
    known
}

fn undone_and_redone(world: &World, script: &Script, number: u64, style: Style) {
    let Some(who) = whose(script, number) else {
        return;
    };
    let mut player = Ours::new(world, number);
    play(&mut player, script, style);
    let before = held(&player.root, script);
    let meant: Vec<_> = script.files.iter().map(|file| file.last(style)).collect();
    assert_eq!(before, meant, "{}", script.name);
    player.take_away(who, &[]);
    let after = held(&player.root, script);
    for (at, file) in script.files.iter().enumerate() {
        let wrong = judge(file, who, style, after[at].as_deref());
        let is_right = match style {
            Style::Marked => wrong.is_nothing(),
            // The authors of equal lines are unknown.
            Style::Plain => wrong.lost == 0 && !wrong.bytes,
        };
        let history = |client: &mut Client| {
            let path = format!("{}/{}", player.name, file.path);
            client.ok("file/history", json!({"path": path, "limit": 1_000}))
        };
        let told = player.undone["files"].as_array().unwrap().iter();
        let told = { told }.find(|row| row["path"].as_str().unwrap().ends_with(&file.path));
        assert!(
            is_right,
            "{}, {} {style:?} without {who}: {wrong:?}\n{told:?}\n{:#}\nwas {}\nis {}",
            script.name,
            file.path,
            history(&mut world.client()),
            before[at].as_deref().unwrap_or_default(),
            after[at].as_deref().unwrap_or_default(),
        );
        // A file that the user creates is first seen when an agent reads it. The
        // daemon does not know that there was none before, so a later removal
        // does not take it back to its start and is a conflict.
        let made = file.versions.iter().find(|one| one.lines.is_some());
        let is_back_at_an_unseen_start = file.versions[0].lines.is_none()
            && before[at].is_none()
            && made.is_some_and(|one| one.by == Some(USER));
        if style == Style::Marked && file.is_touched_by(who) && !is_back_at_an_unseen_start {
            let conflicts = told.is_some_and(|row| !row["conflicts"].is_null());
            let what = format!("{}, {} without {who}: {told:?}", script.name, file.path);
            assert_eq!(conflicts, truth(file, who).conflicts, "{what}");
        }
    }
    if player.undone["undo"].is_string() {
        let ask = json!({"undo": player.undone["undo"]});
        let redone = world.client().ok("redo", ask);
        assert_eq!(
            held(&player.root, script),
            before,
            "{}: {redone}",
            script.name
        );
    }
}

#[test]
fn undo1_of_dealt_sessions_each_author_is_undone_and_redone() {
    let known = known();
    let scripts = match parts::long(&format!("all {ALL} sessions by the daemon, {QUICK} here")) {
        true => ALL,
        false => QUICK,
    };
    for first in (0..scripts).step_by(usize::try_from(SHARED).unwrap()) {
        let mut world = World::new();
        for number in first..(first + SHARED).min(scripts) {
            // Some as they are in the history: lines are like others there.
            let style = match number % 4 {
                2 => Style::Plain,
                _ => Style::Marked,
            };
            undone_and_redone(&world, &script(&known, number), number, style);
        }
        world.healthy();
    }
}

/// git: the initial files are committed, then all authors work in the tree.
struct Git {
    root: tempfile::TempDir,
    /// Whether to undo with `git checkout -- FILES`, or else with `git stash
    /// push -- FILES`.
    checkout: bool,
    there: BTreeSet<String>,
}

impl Git {
    fn new(checkout: bool) -> Self {
        Self {
            root: place(),
            checkout,
            there: BTreeSet::new(),
        }
    }
}

fn place() -> tempfile::TempDir {
    let place = touchmark_tests::world::target().join("worlds");
    fs::create_dir_all(&place).unwrap();
    tempfile::tempdir_in(place).unwrap()
}

fn save(root: &Path, path: &str, text: Option<&str>) {
    let here = root.join(path);
    match text {
        Some(text) => user::write(&here, text),
        None => fs::remove_file(here).unwrap(),
    }
}

impl Player for Git {
    fn begin(&mut self, script: &Script) {
        let there = script.files.iter().map(|file| file.path.clone());
        self.there = there
            .filter(|path| self.root().join(path).exists())
            .collect();
        user::git(self.root(), &["init", "-q"]);
        user::git(self.root(), &["add", "-A"]);
        user::git(
            self.root(),
            &["commit", "-q", "--allow-empty", "-m", "base"],
        );
    }

    fn step(&mut self, _who: Who, path: &str, text: Option<&str>) {
        save(self.root(), path, text);
    }

    fn take_away(&mut self, _who: Who, touched: &[&str]) {
        let touched = touched.iter().copied();
        if self.checkout {
            let known: Vec<&str> = touched.filter(|path| self.there.contains(*path)).collect();
            if !known.is_empty() {
                user::git(
                    self.root(),
                    &[&["checkout", "-q", "--"], &known[..]].concat(),
                );
            }
        } else {
            // Of a file that is not known and is not there git has nothing.
            let known: Vec<&str> = touched
                .filter(|path| self.there.contains(*path) || self.root().join(path).exists())
                .collect();
            if !known.is_empty() {
                user::git(
                    self.root(),
                    &[&["stash", "push", "-q", "-u", "--"], &known[..]].concat(),
                );
            }
        }
    }

    fn root(&self) -> &Path {
        self.root.path()
    }
}

/// agent-undo, with its watcher, driven by events of Claude Code's hooks.
struct AgentUndo {
    program: PathBuf,
    root: tempfile::TempDir,
    watcher: Option<Child>,
    /// The number of steps that its watcher has not seen in time.
    unseen: usize,
}

impl AgentUndo {
    fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            root: place(),
            watcher: None,
            unseen: 0,
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(self.root.path());
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn hook(&self, moment: &str, who: Who, path: &str) {
        let mut hook = self.command(&["hook", moment]);
        hook.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut hook = children::start(&mut hook).unwrap();
        let input = json!({
            "session_id": AUTHORS[who],
            "tool_name": if who == COMMANDS { "Bash" } else { "Edit" },
            "tool_input": {"file_path": path},
        });
        serde_json::to_writer(hook.stdin.take().unwrap(), &input).unwrap();
        assert!(hook.wait().unwrap().success());
    }

    /// Returns the newest event as `#N`, and whether its file was removed.
    fn newest(&self, path: &str) -> (String, bool) {
        let log = self.run(&["log", "--file", path, "-n", "1"]);
        let row = log.lines().last().unwrap_or_default().to_owned();
        let number = row.split(' ').next().unwrap_or_default().to_owned();
        (number, row.contains(" delete "))
    }

    /// Waits until the watcher has seen a step. The watcher cannot report that
    /// itself.
    fn seen(&mut self, path: &str, text: Option<&str>) {
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end {
            let (number, removed) = self.newest(path);
            let is_it = match text {
                None => removed,
                Some(text) => {
                    let number = number.trim_start_matches('#');
                    !removed && !number.is_empty() && self.run(&["show", number]) == text
                }
            };
            if is_it {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.unseen += 1;
    }
}

impl Player for AgentUndo {
    fn begin(&mut self, _script: &Script) {
        self.run(&["init"]);
        let mut serve = self.command(&["serve"]);
        self.watcher = Some(children::start(serve.stdout(Stdio::null())).unwrap());
        // It watches when it sees this.
        let end = Instant::now() + PATIENCE;
        for number in 0.. {
            save(self.root(), "probe", Some(&number.to_string()));
            std::thread::sleep(Duration::from_millis(5));
            if !self.newest("probe").0.is_empty() {
                break;
            }
            assert!(Instant::now() < end, "agent-undo does not watch");
        }
    }

    fn step(&mut self, who: Who, path: &str, text: Option<&str>) {
        if who != USER {
            self.hook("pre", who, path);
        }
        save(self.root(), path, text);
        self.seen(path, text);
        if who != USER {
            self.hook("post", who, path);
        }
    }

    fn take_away(&mut self, who: Who, _touched: &[&str]) {
        self.run(&["restore", "--session", AUTHORS[who]]);
    }

    fn root(&self) -> &Path {
        self.root.path()
    }
}

impl Drop for AgentUndo {
    fn drop(&mut self) {
        if let Some(mut watcher) = self.watcher.take() {
            let _ = watcher.kill();
            let _ = watcher.wait();
        }
    }
}

/// A tool's results over all scripts.
#[derive(Default)]
struct Row {
    /// The number of scripts in which a line of another author was lost.
    sessions: usize,
    lost: usize,
    gone: usize,
    left: usize,
    wrong: usize,
}

impl Row {
    fn add(&mut self, wrongs: &[Wrong]) {
        let sum = |of: fn(&Wrong) -> usize| wrongs.iter().map(of).sum::<usize>();
        let lost = sum(|wrong| wrong.lost);
        self.sessions += usize::from(lost > 0);
        self.lost += lost;
        self.gone += sum(|wrong| wrong.gone);
        self.left += sum(|wrong| wrong.left);
        // What it takes away of a change that another author has changed since
        // is no fault: whether that is to stay is a matter of taste.
        let taste = |wrong: &Wrong| Wrong {
            eager: 0,
            ..wrong.clone()
        };
        let is_wrong = |wrong: &&Wrong| !taste(wrong).is_nothing();
        self.wrong += wrongs.iter().filter(is_wrong).count();
    }
}

#[test]
fn undo_beside_other_tools() {
    const SOME: u64 = 40;
    if !parts::heavy("the table of tools that take an agent's work away") {
        return;
    }
    let scripts = match parts::long(&format!("that table for {ALL} sessions, {SOME} here")) {
        true => ALL,
        false => SOME,
    };
    let what = "undo beside agent-undo";
    let Some(agent_undo) = fetched::program("agent-undo", "agent-undo", "0.0.3", "au", what) else {
        return;
    };
    let known = known();
    let names = [
        "touchmark undo",
        "agent-undo 0.0.3, restore --session",
        "git stash push -u -- its files",
        "git checkout -- its files",
    ];
    let mut rows: [Row; 4] = Default::default();
    let (mut played, mut files, mut theirs, mut own, mut unseen) = (0, 0, 0, 0, 0);
    for first in (0..scripts).step_by(usize::try_from(SHARED).unwrap()) {
        let mut world = World::new();
        for number in first..(first + SHARED).min(scripts) {
            let script = script(&known, number);
            let Some(who) = whose(&script, number) else {
                continue;
            };
            played += 1;
            files += script.files.len();
            for file in &script.files {
                let truth = truth(file, who);
                theirs += truth.there.len() - truth.stay.len();
                let now = file.versions.last().unwrap().lines.iter().flatten();
                let is_own = |line: &&usize| file.lines[**line].by == Some(who);
                own += now.filter(is_own).count();
            }
            let mut watched = AgentUndo::new(&agent_undo);
            let (mut stash, mut checkout) = (Git::new(false), Git::new(true));
            let mut ours = Ours::new(&world, number);
            let players: [&mut dyn Player; 4] =
                [&mut ours, &mut watched, &mut stash, &mut checkout];
            for (player, row) in players.into_iter().zip(&mut rows) {
                play(player, &script, Style::Marked);
                player.take_away(who, &touched(&script, who));
                row.add(&judged(player.root(), &script, who, Style::Marked));
            }
            unseen += watched.unseen;
        }
        world.healthy();
    }
    println!(
        "{played} sessions, {files} files, {theirs} lines of the others, {own} of the author's; \
         {unseen} steps that agent-undo did not see in 2 s"
    );
    println!(
        "| tool | lines of the others lost | in sessions | lines it removed, not brought back | lines of the author's left | files wrong |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for (name, row) in names.iter().zip(&rows) {
        println!(
            "| {name} | {} | {} | {} | {} | {} |",
            row.lost, row.sessions, row.gone, row.left, row.wrong
        );
    }
    assert_eq!(
        rows[0].lost + rows[0].gone + rows[0].left + rows[0].wrong,
        0
    );
    // Or the scripts are too easy.
    assert!(rows[1..].iter().all(|row| row.wrong > 0));
}
