//! UNDO-12: an undo names the author's lines that stand in a stash, or in a
//! commit.

use std::fmt::Write as _;
use std::time::Instant;

use serde_json::{Value, json};
use touchmark_tests::{World, text};

use super::carried::{AGENTS, base, by_agent, on_disk, repository, sh, undo, write};

/// Returns where lines of the files stand, as `path: lines in place`.
fn elsewhere(undone: &Value) -> Vec<String> {
    let files = undone["files"].as_array().unwrap().iter();
    let rows = files.flat_map(|file| {
        let rows = file["elsewhere"].as_array().into_iter().flatten();
        rows.map(move |row| {
            let place = match (row["stash"].as_u64(), row["branch"].as_str()) {
                (Some(stash), None) => format!("stash {stash}"),
                (None, Some(branch)) => branch.to_owned(),
                _ => "HEAD".to_owned(),
            };
            let name = row["path"].as_str().map(|name| format!(" as {name}"));
            let (path, name) = (text(file, "path"), name.unwrap_or_default());
            format!("{path}: {} in {place}{name}", row["lines"])
        })
    });
    rows.collect()
}

#[test]
fn undo12_lines_in_a_stash_and_on_another_branch_are_named() {
    let mut world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    // On a branch of its own, in a stash, in an untracked file that is stashed.
    sh(&world, "git switch -qc topic");
    write(&mut agent, "f", &by_agent(&base()));
    sh(&world, "git commit -qam agents && git switch -q main");
    agent.sync();
    write(&mut agent, "other", "stashed 1\nstashed 2\nstashed 3\n");
    agent.sync();
    sh(&world, "git stash -qu && git stash list");
    agent.sync();
    let planned = agent
        .client
        .ok("undo", json!({"session": "a", "dryRun": true}));
    let expected = ["f: 2 in topic", "other: 3 in stash 0"];
    assert_eq!(elsewhere(&planned), expected, "{planned}");
    let undone = undo(&mut agent);
    assert_eq!(elsewhere(&undone), expected, "{undone}");
    assert_eq!(undone["unsearched"], Value::Null);
    let row = &undone["files"][0]["elsewhere"][0];
    assert_eq!(row["text"], AGENTS);
    // Another stash comes before it.
    world.file("f", format!("mine\n{}", base()));
    sh(
        &world,
        "git stash -q && git rev-parse --short=7 topic > .git/tip",
    );
    let said = world.run(&["undo", "a", "--yes"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let tip = on_disk(&world, ".git/tip").unwrap();
    let topic = format!("    2 lines are in {} on branch topic\n", tip.trim());
    assert!(said.contains(&topic), "{said}");
    assert!(said.contains("    3 lines are in stash@{1}\n"), "{said}");
    world.healthy();
}

#[test]
fn undo12_what_is_committed_is_named_with_the_commit_that_is_checked_out() {
    let mut world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    write(&mut agent, "f", &by_agent(&base()));
    // Every branch has the commit.
    sh(
        &world,
        "git commit -qam agents && git branch copy && git commit -q --allow-empty -m empty",
    );
    agent.sync();
    let undone = undo(&mut agent);
    assert_eq!(on_disk(&world, "f").unwrap(), base(), "{undone}");
    assert_eq!(elsewhere(&undone), ["f: 2 in main"], "{undone}");
    let redone = agent.client.ok("redo", json!({}));
    assert_eq!(elsewhere(&redone), [""; 0], "{redone}");
    // Lines that stay in the file are named nowhere, nor are those of others.
    sh(&world, "git switch -q --detach");
    agent.sync();
    write(
        &mut agent,
        "f",
        &by_agent(&base()).replace("line 20b agent\n", ""),
    );
    world.file("f", base());
    agent.sync();
    let undone = undo(&mut agent);
    assert_eq!(elsewhere(&undone), ["f: 2 in HEAD"], "{undone}");
    world.healthy();
}

#[test]
fn undo12_a_file_is_looked_for_under_its_earlier_name() {
    let world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    sh(&world, "git switch -qc topic");
    write(&mut agent, "f", &by_agent(&base()));
    sh(&world, "git commit -qam agents && git switch -q main");
    agent.sync();
    sh(&world, "git mv f g && git commit -qm moved");
    agent.sync();
    let undone = undo(&mut agent);
    assert_eq!(elsewhere(&undone), ["g: 2 in topic as f"], "{undone}");
}

#[test]
fn undo12_more_branches_than_the_limit_are_said_to_be_left_out() {
    let world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    write(&mut agent, "f", &by_agent(&base()));
    let many = "for n in $(seq 70); do
        git branch b$n $(git commit-tree -p HEAD -m $n HEAD^{tree}); done";
    sh(&world, many);
    let undone = undo(&mut agent);
    assert_eq!(
        undone["unsearched"], "only the newest 64 branches were searched",
        "{undone}"
    );
}

/// One run of git answers for all files and branches.
#[test]
fn undo12_two_hundred_files_are_searched_together() {
    let world = World::new();
    let path = |n: usize| format!("d{}/f{n}", n % 7);
    let content = |n: usize| -> String {
        (0..30).fold(String::new(), |mut all, line| {
            let _ = writeln!(all, "file {n} line {line}");
            all
        })
    };
    for n in 0..200 {
        world.file(&path(n), content(n));
    }
    sh(
        &world,
        "git init -q -b main && git add -A && git commit -qm base && git switch -qc topic",
    );
    let mut agent = world.session("a");
    for n in 0..200 {
        agent.read(&path(n));
        write(&mut agent, &path(n), &format!("{}agent {n}\n", content(n)));
    }
    sh(&world, "git commit -qam agents && git switch -q main");
    agent.sync();
    let begun = Instant::now();
    let undone = undo(&mut agent);
    let took = begun.elapsed();
    assert_eq!(elsewhere(&undone).len(), 200, "{undone}");
    println!("an undo of 200 files that stand on a branch: {took:?}");
}
