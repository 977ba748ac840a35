//! HOOK-4, HOOK-5: a hundred turns of ordinary work, and what the model is told
//! in them. Nothing is denied without need, each change is told once, a turn's
//! notices are short, and each quoted line is on disk at that moment.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::json;
use touchmark_tests::dice::Dice;
use touchmark_tests::hooks::{Heard, Talk};
use touchmark_tests::{World, user};

use crate::hooks_gate::AGENTS;

/// The maximum length in bytes of a turn's notices.
const TURN: usize = 2_000;

/// The maximum number of notices about a file that changes again and again in
/// one turn.
const MOST: usize = 2;

/// What happens next to an agent's work in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    /// Nothing.
    Quiet,
    /// The user's editor saves at each keystroke.
    AutoSave,
    /// A formatter rewrites each file that a tool has written.
    Formatter,
    /// A second agent edits the same file.
    Agent,
    /// The user switches branches.
    Switch,
    /// The agent's command generates a file again.
    Generator,
}

const AROUND: [Around; 6] = [
    Around::Quiet,
    Around::AutoSave,
    Around::Formatter,
    Around::Agent,
    Around::Switch,
    Around::Generator,
];

/// The files of the project. Each has [`LINES`] lines that occur only once.
const FILES: [&str; 3] = ["src/a.txt", "src/b.txt", "src/c.txt"];
const LINES: usize = 40;

/// An agent at work, and what its model has received.
struct Work<'a> {
    talk: Talk<'a>,
    /// Every line that the model was shown.
    shown: BTreeSet<String>,
    /// The notices of the current turn.
    told: Vec<String>,
    /// Calls that were denied although they would have destroyed nothing.
    needless: Vec<String>,
}

fn text(world: &World, file: &str) -> String {
    fs::read_to_string(world.path(file)).unwrap_or_default()
}

impl<'a> Work<'a> {
    fn new(world: &'a World, agent: &'static str, session: &str) -> Self {
        let talk = Talk::new(world, agent, session);
        talk.start().nothing();
        Self {
            talk,
            shown: BTreeSet::new(),
            told: Vec::new(),
            needless: Vec::new(),
        }
    }

    /// Takes what the model received. Each quoted line has to be on disk.
    fn take(&mut self, heard: Heard) {
        let text = match heard {
            Heard::Told(text) | Heard::Denied(text) => text,
            Heard::Nothing => return,
            other => panic!("{other:?}"),
        };
        for line in text.lines() {
            let Some((number, quoted)) = line.split_once(": ") else {
                continue;
            };
            let Ok(number) = number.parse::<usize>() else {
                continue;
            };
            let is_there = FILES.iter().any(|file| {
                let text = self::text(self.talk.world, file);
                text.lines().nth(number - 1) == Some(quoted)
            });
            assert!(is_there, "not on disk: {line:?} of {text}");
            self.shown.insert(quoted.to_owned());
        }
        for file in FILES {
            let is_gone = text.contains(&format!("{file:?} (deleted"));
            assert!(!is_gone || !self.talk.world.path(file).exists(), "{text}");
        }
        self.told.push(text);
    }

    fn prompt(&mut self, turn: usize) {
        self.told.clear();
        let heard = self.talk.prompt(&format!("p{turn}"), "go on");
        self.take(heard);
    }

    fn read(&mut self, file: &str) {
        let heard = self.talk.read(file);
        self.take(heard);
        let text = text(self.talk.world, file);
        self.shown.extend(text.lines().map(str::to_owned));
    }

    /// Replaces a line by another. The model quotes only what it was shown. A call that is denied is made once more.
    /// `between` runs between the tool's write and the report of it.
    fn edit(&mut self, file: &str, old: &str, new: &str, between: impl Fn()) {
        if !self.shown.contains(old) {
            self.read(file);
        }
        for attempt in 0..2 {
            let (old, new) = (format!("{old}\n"), format!("{new}\n"));
            let before = text(self.talk.world, file);
            let after = before.replacen(&old, &new, 1);
            let (call, heard) = self.talk.before_edit(file, &old, &new);
            if matches!(heard, Heard::Denied(_)) {
                let is_lost = |line: &str| !after.contains(line) && !self.shown.contains(line);
                if before.contains(&old) && !before.lines().any(is_lost) {
                    self.needless.push(format!("{heard:?}"));
                }
                assert_eq!(attempt, 0, "denied twice: {heard:?}");
                self.take(heard);
                continue;
            }
            self.take(heard);
            fs::write(self.talk.world.path(file), after).unwrap();
            between();
            let event = self.talk.voice.after_edit(&call, file, &old, &new);
            let heard = self.talk.say(&event);
            self.take(heard);
            self.shown.insert(new.trim_end().to_owned());
            return;
        }
    }

    fn shell(&mut self, command: &str) {
        let heard = self.talk.shell(command);
        self.take(heard);
    }

    /// Returns how many notices of the turn name a file.
    fn notices(&self, file: &str) -> usize {
        self.told.iter().filter(|text| text.contains(file)).count()
    }
}

/// Makes a project in git, with a branch on which one file differs.
fn project(world: &World) {
    for file in FILES {
        let lines = (1..=LINES).map(|n| format!("{file} line {n}\n"));
        world.file(file, lines.collect::<String>());
    }
    world.file("make.sh", "date +%s%N > src/generated.txt\n");
    git(world, "init --quiet");
    git(world, "add .");
    git(world, "commit --quiet -m one");
    git(world, "switch --quiet -c other");
    user::append(&world.path("src/c.txt"), "the user's line on the branch\n");
    git(world, "commit --quiet -a -m two");
    git(world, "switch --quiet -");
}

fn git(world: &World, arguments: &str) {
    let done = Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e"])
        .args(arguments.split(' '))
        .current_dir(world.workspace())
        .output()
        .unwrap();
    assert!(done.status.success(), "git {arguments}: {done:?}");
}

/// Plays one turn. Returns the file that changes again and again in it.
fn turn<'a>(work: &mut Work<'a>, other: &mut Work<'a>, dice: &mut Dice, around: Around, id: usize) {
    let world = work.talk.world;
    work.prompt(id);
    other.prompt(id);
    let file = *dice.pick(&FILES[..2]);
    work.read(file);
    let line = |text: &str, n: usize| text.lines().nth(n).unwrap().to_owned();
    let mut busy = None;
    for step in 0..3 {
        let at = dice.index(LINES / 2) * 2;
        let users = dice.index(LINES / 2) * 2 + 1;
        let old = line(&text(world, file), at);
        let new = format!("{file} of the agent, {id} {step} {at}");
        let formatted = || {
            if around == Around::Formatter {
                let path = world.path(file);
                let text = fs::read_to_string(&path).unwrap();
                user::replace(&path, &text.replace(", ", ","));
            }
        };
        match around {
            Around::Quiet | Around::Formatter => {}
            Around::AutoSave if step > 0 => {}
            Around::AutoSave => {
                busy = Some(file);
                let comment = format!("the user types, {id} {step} {users}");
                let path = world.path(file);
                let before = fs::read_to_string(&path).unwrap();
                let typed = line(&before, users);
                for end in 8..=comment.len() {
                    user::replace(&path, &before.replace(&typed, &comment[..end]));
                    work.shell("true");
                }
            }
            Around::Agent => {
                other.read(file);
                let its = line(&text(world, file), users);
                let by = format!("{file} of the other, {id} {step} {users}");
                other.edit(file, &its, &by, || ());
            }
            Around::Switch => {
                busy = Some("src/c.txt");
                if step == 0 {
                    work.read("src/c.txt");
                }
                let to = ["other", "-"][step % 2];
                git(world, &format!("switch --quiet --merge {to}"));
            }
            Around::Generator => {
                work.shell("sh make.sh");
                work.shell("cat src/generated.txt");
            }
        }
        work.edit(file, &old, &new, formatted);
        work.shell("true");
    }
    if around == Around::Switch {
        git(world, "switch --quiet --merge -");
    }
    let bytes: usize = work.told.iter().map(String::len).sum();
    assert!(bytes <= TURN, "{around:?}: {bytes} bytes: {:#?}", work.told);
    if let Some(file) = busy {
        let count = work.notices(file);
        assert!(count <= MOST, "{around:?}: {count}: {:#?}", work.told);
    }
    if around == Around::Quiet {
        assert!(work.notices(file) <= 1, "{:#?}", work.told);
    }
    for work in [work, other] {
        assert!(work.needless.is_empty(), "{around:?}: {:#?}", work.needless);
    }
}

#[test]
fn hook5_a_hundred_turns_of_ordinary_work() {
    for agent in AGENTS {
        let mut world = World::new();
        project(&world);
        let mut dice = Dice::new(1, agent);
        let mut work = Work::new(&world, agent, "one");
        let mut other = Work::new(&world, agent, "two");
        for id in 0..20 {
            let around = AROUND[id % AROUND.len()];
            println!("{agent}: {id}: {around:?}");
            turn(&mut work, &mut other, &mut dice, around, id);
        }
        let undone = world.client().ok("status", json!({}));
        assert_eq!(undone["openEdits"], 0, "{agent}");
        world.healthy();
    }
}
