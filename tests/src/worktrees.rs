//! Worktrees of one repository, each with its own daemon and agent.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::hooks::{Heard, Talk};
use crate::process::until;

use crate::{World, text, user};

/// The agent whose events are played.
pub const AGENT: &str = "claude";

/// Returns a text of 20 lines.
pub fn lines() -> String {
    (1..=20).map(|n| format!("line {n}\n")).collect()
}

/// Runs git in a workspace.
pub fn git(world: &World, args: &[&str]) {
    user::git(world.workspace(), args);
}

/// Commits all that a workspace contains.
pub fn commit(world: &World, message: &str) {
    git(world, &["add", "-A"]);
    git(world, &["commit", "-q", "-m", message]);
}

/// Returns a workspace that is a repository with a commit, and a daemon.
pub fn repository() -> World {
    let mut world = World::asleep();
    git(&world, &["init", "-q", "-b", "main"]);
    world.file("a.txt", lines());
    world.file("b.txt", lines());
    commit(&world, "first");
    world.start();
    world
}

/// Returns another worktree of a repository, on a new branch, without a daemon.
pub fn beside(world: &World, branch: &str) -> World {
    let mut other = World::asleep();
    let state = world.state();
    other.set_env("XDG_STATE_HOME", state.to_str().unwrap());
    let at = other.workspace().to_str().unwrap();
    git(world, &["worktree", "add", "-q", "-b", branch, at]);
    other
}

/// Returns two worktrees with a daemon each.
pub fn two() -> (World, World) {
    let one = repository();
    let mut other = beside(&one, "topic");
    other.start();
    (one, other)
}

/// Replaces a text in a file.
pub fn replace(world: &World, path: &str, old: &str, new: &str) {
    let file = world.path(path);
    let now = fs::read_to_string(&file).unwrap();
    assert!(now.contains(old), "{now}");
    fs::write(&file, now.replacen(old, new, 1)).unwrap();
}

/// A session and what it was told of other worktrees.
pub struct Agent<'a> {
    /// Its hooks.
    pub talk: Talk<'a>,
    /// What it was told and the test has not looked at.
    pub told: Vec<String>,
    /// How many prompts it has had.
    pub prompts: u32,
}

impl<'a> Agent<'a> {
    /// Starts a session.
    pub fn new(world: &'a World, session: &str) -> Self {
        let talk = Talk::new(world, AGENT, session);
        talk.start().nothing();
        Self {
            talk,
            told: Vec::new(),
            prompts: 0,
        }
    }

    /// Notes the answer to an event.
    pub fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Nothing => {}
            Heard::Told(text) => {
                // Other sessions at work are no subject of these tests.
                let lines = text.lines();
                let other = lines.filter(|line| !line.starts_with("Also at work here"));
                let text = other.collect::<Vec<_>>().join("\n");
                self.told.extend((!text.is_empty()).then_some(text));
            }
            other => panic!("{other:?}"),
        }
    }

    /// Replaces a text in a file, as the agent's tool does.
    pub fn edit(&mut self, path: &str, old: &str, new: &str) {
        let heard = self.talk.edit(path, old, new);
        self.hear(heard);
    }

    /// Sends a prompt of the user.
    pub fn prompt(&mut self) {
        self.prompts += 1;
        let id = format!("p{}", self.prompts);
        let heard = self.talk.prompt(&id, "go on");
        self.hear(heard);
    }

    /// Sends the event after all tools of a turn.
    pub fn batch_end(&mut self) {
        let event = self.talk.voice.batch_end().unwrap();
        let heard = self.talk.say(&event);
        self.hear(heard);
    }

    /// Waits until the session was told something, within the events of one
    /// turn.
    pub fn wait(&mut self) -> String {
        until("nothing was told", || {
            if self.told.is_empty() {
                self.batch_end();
            }
            !self.told.is_empty()
        });
        self.told.remove(0)
    }

    /// Panics if the session is told anything about the files that it has
    /// written so far. Other lines are changed in both worktrees, which it is
    /// told. What was found before is told before, or with it.
    pub fn is_told_nothing_else(&mut self, other: &World) {
        let path = format!("sentinel-{}.txt", self.prompts);
        let own = self.talk.world;
        own.file(&path, "old\n");
        other.file(&path, "their own\n");
        self.edit(&path, "old", "mine");
        let said = self.wait();
        self.prompt();
        self.batch_end();
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(
            said.contains(&path) && said.ends_with("1: their own"),
            "{said}"
        );
        assert_eq!(self.told, Vec::<String>::new());
    }
}

/// Returns the row of another worktree in the list.
pub fn row(world: &World, other: &World) -> Value {
    let listed = world.client().ok("worktree/list", json!({}));
    let rows = listed["worktrees"].as_array().unwrap();
    let is_it = |row: &&Value| Path::new(&text(row, "path")) == other.workspace();
    rows.iter().find(is_it).expect("a row").clone()
}

/// Returns the overlaps of another worktree: `path lines|own lines`.
pub fn overlaps(world: &World, other: &World) -> Vec<String> {
    let row = row(world, other);
    assert_eq!(row["problem"], Value::Null, "{row}");
    let places = |lines: &Value| {
        let places = lines.as_array().unwrap().iter();
        let places: Vec<String> = places
            .map(|place| format!("{}-{}", place["start"], place["end"]))
            .collect();
        places.join(",")
    };
    let overlaps = row["overlaps"].as_array().unwrap().iter();
    overlaps
        .map(|one| {
            let gone = if one["removed"] == true {
                " removed"
            } else {
                ""
            };
            let name = one["renamed"].as_str().map(|name| format!(" as {name}"));
            let (theirs, own) = (places(&one["lines"]), places(&one["ownLines"]));
            let name = name.unwrap_or_default();
            format!("{}{name}{gone} {theirs}|{own}", text(one, "path"))
        })
        .collect()
}
