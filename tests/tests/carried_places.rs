//! HIST-8 where git has a part of a work tree or more than one: sparse checkouts,
//! submodules and linked worktrees. Each line is unique, so the test
//! has the one who typed it.

use serde_json::json;
use touchmark_tests::worktrees::beside;
use touchmark_tests::{World, text, user};

use super::carried::{
    AGENTS, QUEUED, base, blamed, by_agent, command, on_disk, queue, repository, sh, undo,
    upstream, write,
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

/// Here by hand, as git does it, with a look in between.
#[test]
fn hist8_a_file_may_be_seen_while_a_sparse_checkout_brings_it() {
    let mut world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    let by_agent = by_agent(&base());
    write(&mut agent, "f", &by_agent);
    sh(&world, "git commit -qam agents && mkdir keep");
    sh(&world, "git sparse-checkout set --no-cone keep");
    agent.sync();
    assert_eq!(on_disk(&world, "f"), None);
    user::write(&world.path("f"), "");
    agent.sync();
    user::write(&world.path("f"), &by_agent);
    sh(&world, "git sparse-checkout disable");
    assert_eq!(blamed(&mut agent, "f"), AGENTS);
    let undone = undo(&mut agent);
    assert_eq!(on_disk(&world, "f").unwrap(), base(), "{undone}");
    world.healthy();
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
    let blame = other.client.ok("file/blame", json!({"path": "f"}));
    let lines = blame["lines"].as_array().unwrap().iter();
    let of_others = lines.filter(|line| line["author"]["session"] != "b");
    assert_eq!(of_others.count(), 41, "{blame}");
    assert_eq!(queue(&mut other), [""; 0]);
    let undone = two.client().call("undo", json!({"session": "b"}));
    assert_eq!(on_disk(&two, "f").unwrap(), by_agent(&base()), "{undone:?}");
    assert_eq!(text(&blame["lines"][20], "text"), "line 20 agent");
    two.healthy();
}

/// A submodule `sub` with `f`, and with what another person has committed on
/// `up`.
fn submodule(world: &World) {
    let origin = world.outside().join("origin");
    std::fs::create_dir_all(&origin).unwrap();
    std::fs::write(origin.join("f"), base()).unwrap();
    let line = format!(
        "cd {0} && git init -q -b main && git add -A && git commit -qm base && \
         git switch -qc up && sed -i 's/^line 1$/line 1 upstream/' f && git commit -qam up && \
         git switch -q main && cd - && git init -q -b main && \
         git -c protocol.file.allow=always submodule add -q {0} sub && \
         git -C sub branch -q up origin/up && git commit -qm sub",
        origin.display()
    );
    sh(world, &line);
}

#[test]
fn hist8_what_git_brings_in_a_submodule_is_carried() {
    // What the user or the agent runs, and whether upstream's change is there.
    let ways = [
        ("git -C sub rebase -q up", true),
        ("git -C sub switch -q up; git -C sub switch -q main", false),
        (
            "git -C sub switch -q --detach up; git add sub; git commit -qm up; git -C sub switch -q main; \
             git submodule update -q; git -C sub switch -q main",
            false,
        ),
        ("git -C sub stash -q; git -C sub stash pop -q", false),
    ];
    for (way, is_upstream) in ways {
        for by_the_agent in [false, true] {
            let mut world = World::new();
            submodule(&world);
            let mut agent = world.session("a");
            agent.read("sub/f");
            write(&mut agent, "sub/f", &by_agent(&base()));
            if !way.contains("stash") {
                command(&world, &mut agent, "git -C sub commit -qam agents");
            }
            for step in way.split("; ") {
                match by_the_agent {
                    true => command(&world, &mut agent, step),
                    false => sh(&world, step),
                }
                agent.sync();
            }
            let story = format!("{way}, by the agent: {by_the_agent}");
            let expected = match is_upstream {
                true => upstream(&base()),
                false => base(),
            };
            let now = on_disk(&world, "sub/f").unwrap();
            assert_eq!(now, by_agent(&expected), "{story}");
            assert_eq!(blamed(&mut agent, "sub/f"), AGENTS, "{story}");
            let queued = QUEUED.replace("f line", "sub/f line");
            assert_eq!(queue(&mut agent), [queued], "{story}");
            let undone = undo(&mut agent);
            let now = on_disk(&world, "sub/f").unwrap();
            assert_eq!(now, expected, "{story}: {undone}");
            world.healthy();
        }
    }
}

/// Git in the superproject moves the submodule.
#[test]
fn hist8_what_the_superproject_brings_in_a_submodule_is_carried() {
    let ways = ["git switch -q next && git submodule -q update"];
    for way in ways {
        for by_the_agent in [false, true] {
            let mut world = World::new();
            submodule(&world);
            sh(
                &world,
                "git switch -qc next && git -C sub switch -q --detach up && git add sub && \
                 git commit -qm next && git switch -q main && git submodule -q update",
            );
            let mut agent = world.session("a");
            agent.read("sub/f");
            match by_the_agent {
                true => command(&world, &mut agent, way),
                false => sh(&world, way),
            }
            agent.sync();
            let story = format!("{way}, by the agent: {by_the_agent}");
            assert_eq!(on_disk(&world, "sub/f"), Some(upstream(&base())), "{story}");
            assert_eq!(blamed(&mut agent, "sub/f"), "", "{story}");
            assert_eq!(queue(&mut agent), [""; 0], "{story}");
            // Blame names the submodule's commit.
            let blame = agent.client.ok("file/blame", json!({"path": "sub/f"}));
            let line = &blame["lines"][1];
            assert_eq!(line["author"]["kind"], "committed", "{story}: {line}");
            let up = user::git_command(&world.path("sub"), &["rev-parse", "up"]);
            let up = String::from_utf8({ up }.output().unwrap().stdout).unwrap();
            assert_eq!(text(&line["commit"], "id"), up.trim(), "{story}");
            let undone = agent
                .client
                .call("undo", json!({"session": "a", "likely": true}));
            assert_eq!(
                on_disk(&world, "sub/f"),
                Some(upstream(&base())),
                "{story}: {undone:?}"
            );
            world.healthy();
        }
    }
}

#[test]
fn hist8_what_an_agent_commits_in_a_submodule_is_its() {
    let mut world = World::new();
    submodule(&world);
    let mut agent = world.session("a");
    agent.read("sub/f");
    write(&mut agent, "sub/f", &by_agent(&base()));
    let line = "git -C sub commit -qam agents && git add sub && git commit -qm sub";
    command(&world, &mut agent, line);
    assert_eq!(blamed(&mut agent, "sub/f"), AGENTS);
    let queued = QUEUED.replace("f line", "sub/f line");
    assert_eq!(queue(&mut agent), [queued]);
    let undone = undo(&mut agent);
    assert_eq!(on_disk(&world, "sub/f"), Some(base()), "{undone}");
    world.healthy();
}

/// The workspace is a submodule: its `.git` is a file.
#[test]
fn hist8_a_workspace_may_be_a_submodule() {
    for by_the_agent in [false, true] {
        let above = World::asleep();
        submodule(&above);
        let mut world = World::asleep();
        // As git makes it, but in another place.
        let line = format!(
            "cp -r {0}/sub {0}/own && echo gitdir: {0}/own > .git && \
             git config --file {0}/own/config core.worktree $PWD && git reset -q --hard",
            above.path(".git/modules").display(),
        );
        sh(&world, &line);
        world.start();
        let mut agent = world.session("a");
        agent.read("f");
        write(&mut agent, "f", &by_agent(&base()));
        command(&world, &mut agent, "git commit -qam agents");
        match by_the_agent {
            true => command(&world, &mut agent, "git rebase -q up"),
            false => sh(&world, "git rebase -q up"),
        }
        agent.sync();
        assert_eq!(blamed(&mut agent, "f"), AGENTS, "{by_the_agent}");
        assert_eq!(queue(&mut agent), [QUEUED], "{by_the_agent}");
        let undone = undo(&mut agent);
        assert_eq!(on_disk(&world, "f"), Some(upstream(&base())), "{undone}");
        world.healthy();
    }
}
