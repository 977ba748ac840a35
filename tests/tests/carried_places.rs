//! HIST-8 where git has a part of a work tree or more than one: sparse checkouts
//! and linked worktrees. Each line is unique, so the test
//! knows who typed it.

use touchmark_tests::worktrees::beside;
use touchmark_tests::{World, text};

use super::carried::{
    base, blamed, by_agent, command, on_disk, queue, repository, sh, undo, write,
};

#[test]
fn hist8_a_sparse_checkout_takes_and_brings_files() {
    for by_the_agent in [false, true] {
        let mut world = World::new();
        repository(&world);
        world.file("d/g", "user 1\nuser 2\n");
        world.file("keep/k", "kept\n");
        sh(&world, "git add -A && git commit -qm more");
        let mut agent = world.session("a");
        agent.read("d/g");
        write(&mut agent, "d/g", "user 1\nagent 1b\nuser 2\n");
        write(&mut agent, "d/made", "made 1\nmade 2\n");
        command(&world, &mut agent, "git add -A && git commit -qm agents");
        let before = queue(&mut agent);
        assert_eq!(before.len(), 2, "{before:?}");
        let run = |agent: &mut _, line: &str| match by_the_agent {
            true => command(&world, agent, line),
            false => sh(&world, line),
        };
        run(&mut agent, "git sparse-checkout set keep");
        agent.sync();
        assert_eq!(on_disk(&world, "d/g"), None);
        // The sparse checkout's removal of the files counts as no author's.
        assert_eq!(queue(&mut agent), [""; 0], "{by_the_agent}");
        let undone = undo(&mut agent);
        assert_eq!(on_disk(&world, "d/g"), None, "{by_the_agent}: {undone}");
        assert_eq!(on_disk(&world, "d/made"), None, "{by_the_agent}: {undone}");
        run(&mut agent, "git sparse-checkout disable");
        agent.sync();
        assert_eq!(queue(&mut agent), before, "{by_the_agent}");
        assert_eq!(blamed(&mut agent, "d/g"), "agent 1b\n", "{by_the_agent}");
        let undone = undo(&mut agent);
        assert_eq!(
            on_disk(&world, "d/g").unwrap(),
            "user 1\nuser 2\n",
            "{by_the_agent}: {undone}"
        );
        assert_eq!(on_disk(&world, "d/made"), None, "{by_the_agent}: {undone}");
        world.healthy();
    }
}

#[test]
fn hist8_what_a_linked_worktree_gets_from_git_is_carried() {
    let one = World::new();
    repository(&one);
    let mut two = beside(&one, "topic");
    two.start();
    let mut agent = one.session("a");
    agent.read("f");
    write(&mut agent, "f", &by_agent(&base()));
    command(&one, &mut agent, "git commit -qam agents");
    let mut other = two.session("b");
    other.read("f");
    command(&two, &mut other, "git merge -q main");
    assert_eq!(on_disk(&two, "f").unwrap(), by_agent(&base()));
    // It is not of the session that ran git.
    let blame = other
        .client
        .ok("file/blame", serde_json::json!({"path": "f"}));
    let lines = blame["lines"].as_array().unwrap().iter();
    let of_others = lines.filter(|line| line["author"]["session"] != "b");
    assert_eq!(of_others.count(), 41, "{blame}");
    assert_eq!(queue(&mut other), [""; 0]);
    let undone = two
        .client()
        .call("undo", serde_json::json!({"session": "b"}));
    assert_eq!(on_disk(&two, "f").unwrap(), by_agent(&base()), "{undone:?}");
    assert_eq!(text(&blame["lines"][20], "text"), "line 20 agent");
    two.healthy();
}
