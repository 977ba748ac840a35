//! HIST-8: what git brings onto the disk is no author's change. Each line is
//! unique, so the test has the one who typed it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use touchmark_tests::process::{Stopped, until};
use touchmark_tests::{Session, World, text, user};

/// The agent's two lines in place of `line 20`.
pub(crate) const AGENTS: &str = "line 20 agent\nline 20b agent\n";

pub(crate) fn base() -> String {
    (0..40).map(|n| format!("line {n}\n")).collect()
}

pub(crate) fn by_agent(text: &str) -> String {
    text.replace("line 20\n", AGENTS)
}

/// What is on the branch `up`, which another person has committed.
pub(crate) fn upstream(text: &str) -> String {
    text.replace("line 1\n", "line 1 upstream\n")
}

pub(crate) fn on_disk(world: &World, path: &str) -> Option<String> {
    fs::read_to_string(world.path(path)).ok()
}

/// Runs lines of shell in the workspace, as the user who owns the repository.
pub(crate) fn sh(world: &World, line: &str) {
    let output = Command::new("sh")
        .args(["-e", "-c", line])
        .current_dir(world.workspace())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "u")
        .env("GIT_AUTHOR_EMAIL", "u@example.invalid")
        .env("GIT_COMMITTER_NAME", "u")
        .env("GIT_COMMITTER_EMAIL", "u@example.invalid")
        .env("GIT_EDITOR", "true")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
}

/// A repository with `f` on `main`, and with a commit by another person on
/// `up`.
pub(crate) fn repository(world: &World) {
    world.file("f", base());
    sh(
        world,
        "git init -q -b main && git add -A && git commit -qm base && git checkout -qb up",
    );
    world.file("f", upstream(&base()));
    world.file("other", "other 1\nother 2\n");
    sh(
        world,
        "git add -A && git commit -qm up && git checkout -q main",
    );
}

/// Writes a file through touchmark.
pub(crate) fn write(agent: &mut Session, path: &str, text: &str) {
    let params = json!({"path": path, "text": text, "force": true});
    assert_eq!(agent.ok("file/write", params)["outcome"], "applied");
}

/// Runs a command of the agent.
pub(crate) fn command(world: &World, agent: &mut Session, line: &str) {
    let command = begun(agent, line);
    sh(world, line);
    ended(agent, command);
}

/// Runs a command of the agent. The daemon stands still until the command ends.
fn unseen_command(world: &mut World, agent: &mut Session, line: &str) {
    let command = begun(agent, line);
    let stopped = Stopped::new(world.pid());
    sh(world, line);
    drop(stopped);
    ended(agent, command);
}

fn begun(agent: &mut Session, line: &str) -> Value {
    let params = json!({"label": line, "scope": "workspace"});
    agent.ok("command/begin", params)["command"].clone()
}

fn ended(agent: &mut Session, command: Value) {
    let params = json!({"command": command, "exit": 0});
    agent.client.ok("command/end", params);
}

/// Returns the lines that blame attributes to the agent.
pub(crate) fn blamed(agent: &mut Session, path: &str) -> String {
    let blame = agent.client.ok("file/blame", json!({"path": path}));
    let lines = blame["lines"].as_array().unwrap().iter();
    lines
        .filter(|line| line["author"]["kind"] == "agent")
        .map(|line| text(line, "text") + "\n")
        .collect()
}

/// Returns the queue of the review, as `path before>after` without line ends.
pub(crate) fn queue(agent: &mut Session) -> Vec<String> {
    let listed = agent.client.ok("review/list", json!({}));
    let flat = |hunk: &Value, field| text(hunk, field).replace('\n', "|");
    let hunks = listed["hunks"].as_array().unwrap().iter();
    hunks
        .map(|hunk| {
            format!(
                "{} {}>{}",
                text(hunk, "path"),
                flat(hunk, "before"),
                flat(hunk, "after")
            )
        })
        .collect()
}

pub(crate) fn undo(agent: &mut Session) -> Value {
    agent.client.ok("undo", json!({"session": "a"}))
}

pub(crate) const QUEUED: &str = "f line 20|>line 20 agent|line 20b agent|";

#[test]
fn hist8_the_agents_lines_stay_the_agents_over_the_users_git() {
    // Whether the lines are committed, what git does, and whether upstream's
    // change is there afterwards.
    let ways = [
        (true, "git rebase -q up", true),
        (true, "git merge -q --no-edit up", true),
        (true, "git checkout -q up; git cherry-pick main", true),
        (true, "git checkout -q up; git checkout -q main", false),
        (true, "git commit -q --amend -m reworded", false),
        (true, "git pull -q --rebase . up", true),
        (false, "git pull -q --rebase --autostash . up", true),
        (
            false,
            "git stash -q; git merge -q --ff-only up; git stash pop -q",
            true,
        ),
        (false, "git stash -q; git stash pop -q", false),
        (false, "git stash -q; git stash apply -q", false),
        (false, "git checkout -q -m up", true),
    ];
    for (is_committed, way, is_upstream) in ways {
        for looks in [false, true] {
            let mut world = World::new();
            repository(&world);
            let mut agent = world.session("a");
            agent.read("f");
            write(&mut agent, "f", &by_agent(&base()));
            if is_committed {
                command(&world, &mut agent, "git commit -qam agent");
            }
            for step in way.split("; ") {
                sh(&world, step);
                if looks {
                    agent.sync();
                }
            }
            let story = format!("{way}, looks: {looks}");
            let expected = match is_upstream {
                true => upstream(&base()),
                false => base(),
            };
            assert_eq!(
                on_disk(&world, "f").unwrap(),
                by_agent(&expected),
                "{story}"
            );
            assert_eq!(blamed(&mut agent, "f"), AGENTS, "{story}");
            // What was not reviewed stays in the queue.
            assert_eq!(queue(&mut agent), [QUEUED], "{story}");
            let undone = undo(&mut agent);
            assert_eq!(on_disk(&world, "f").unwrap(), expected, "{story}: {undone}");
            assert_eq!(queue(&mut agent), [""; 0], "{story}");
            world.healthy();
        }
    }
}

/// Here by hand, as `git checkout -m` does it, with a look in between.
#[test]
fn hist8_a_file_may_be_seen_while_git_writes_it() {
    let mut world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    write(&mut agent, "f", &by_agent(&base()));
    let merged = by_agent(&upstream(&base()));
    world.file("merged", &merged);
    sh(&world, "git hash-object -w merged && rm merged");
    user::write(&world.path("f"), "");
    agent.sync();
    user::write(&world.path("f"), &merged);
    let moves = "git read-tree up && \
                 git symbolic-ref -m 'checkout: moving from main to up' HEAD refs/heads/up";
    sh(&world, moves);
    assert_eq!(blamed(&mut agent, "f"), AGENTS);
    assert_eq!(queue(&mut agent), [QUEUED]);
    let undone = undo(&mut agent);
    assert_eq!(on_disk(&world, "f").unwrap(), upstream(&base()), "{undone}");
    world.healthy();
}

/// A revert is a decision, and so is what an editor's undo brings back right
/// after it: a switch before it wrote neither, and git leaves `AUTO_MERGE` behind.
#[test]
fn undo9_an_editors_undo_right_after_a_revert_decides() {
    let mut world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    write(&mut agent, "f", &by_agent(&base()));
    sh(
        &world,
        "git commit -qam agents && git revert --no-edit HEAD",
    );
    agent.sync();
    assert_eq!(on_disk(&world, "f").unwrap(), base());
    user::write(&world.path("f"), &by_agent(&base()));
    let undone = undo(&mut agent);
    assert_eq!(on_disk(&world, "f").unwrap(), by_agent(&base()), "{undone}");
    let left = &undone["files"][0]["left"];
    assert_eq!(left[0]["cause"], "decided", "{undone}");
    assert_eq!(left[0]["text"], AGENTS, "{undone}");
    world.healthy();
}

/// Git logs a merge with the second in which it began. Here `f` takes longer
/// than a second, and `other` follows it.
#[test]
fn hist8_a_merge_may_take_longer_than_a_second() {
    let mut world = World::new();
    repository(&world);
    world.file("z", "z\n");
    let slow = "git add z && git commit -qm z && echo 'f filter=slow' > .git/info/attributes && \
                git config filter.slow.smudge 'sleep 1; cat'";
    sh(&world, slow);
    let mut agent = world.session("a");
    agent.read("f");
    command(&world, &mut agent, "git merge -q --no-edit up");
    assert_eq!(on_disk(&world, "f").unwrap(), upstream(&base()));
    assert_eq!(queue(&mut agent), [""; 0]);
    world.healthy();
}

/// The list of stashes is gone with its last one. The daemon may be too slow to
/// see it.
#[test]
fn hist8_a_stash_may_be_popped_before_the_daemon_looks() {
    for (way, expected) in [
        ("git stash -q && git stash pop -q", base()),
        (
            "git stash -q && git merge -q --ff-only up && git stash pop -q",
            upstream(&base()),
        ),
    ] {
        let mut world = World::new();
        repository(&world);
        let mut agent = world.session("a");
        agent.read("f");
        write(&mut agent, "f", &by_agent(&base()));
        let stopped = Stopped::new(world.pid());
        sh(&world, way);
        drop(stopped);
        assert_eq!(on_disk(&world, "f").unwrap(), by_agent(&expected), "{way}");
        assert_eq!(blamed(&mut agent, "f"), AGENTS, "{way}");
        assert_eq!(queue(&mut agent), [QUEUED], "{way}");
        let undone = undo(&mut agent);
        assert_eq!(on_disk(&world, "f").unwrap(), expected, "{way}: {undone}");
        world.healthy();
    }
}

#[test]
fn hist8_git_does_not_list_the_stash_of_a_pull() {
    let world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    write(&mut agent, "fresh", "fresh 1\nfresh 2\n");
    sh(&world, "git add fresh");
    // Git runs this hook when the stash has taken the file away.
    let hook = world.path(".git/hooks/post-merge");
    let waits = "#!/bin/sh\n: > .git/held\nwhile [ -e .git/held ]; do sleep 0.01; done\n";
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, waits).unwrap();
    fs::set_permissions(&hook, Permissions::from_mode(0o755)).unwrap();
    std::thread::scope(|scope| {
        let pull = scope.spawn(|| sh(&world, "git pull -q --rebase --autostash . up"));
        let held = world.path(".git/held");
        until("the hook does not run", || held.exists());
        agent.client.ok("sync", json!({}));
        assert_eq!(on_disk(&world, "fresh"), None);
        fs::remove_file(held).unwrap();
        pull.join().unwrap();
    });
    assert_eq!(queue(&mut agent), ["fresh >fresh 1|fresh 2|"]);
    let undone = undo(&mut agent);
    assert_eq!(on_disk(&world, "fresh"), None, "{undone}");
}

#[test]
fn hist8_what_git_brings_is_not_of_the_agent_that_ran_it() {
    let ways = [
        "git pull -q --ff-only . up",
        "git checkout -q up",
        "git merge -q --no-edit up",
        "git pull -q --rebase . up",
    ];
    for way in ways {
        let mut world = World::new();
        repository(&world);
        if way.contains("merge") || way.ends_with("rebase . up") {
            world.file("z", "z\n");
            sh(&world, "git add z && git commit -qm z");
        }
        let mut agent = world.session("a");
        agent.read("f");
        command(&world, &mut agent, way);
        assert_eq!(on_disk(&world, "f").unwrap(), upstream(&base()), "{way}");
        for path in ["f", "other"] {
            assert_eq!(blamed(&mut agent, path), "", "{way}: {path}");
        }
        assert_eq!(queue(&mut agent), [""; 0], "{way}");
        let undone = undo(&mut agent);
        assert_eq!(on_disk(&world, "f").unwrap(), upstream(&base()), "{undone}");
        assert!(on_disk(&world, "other").is_some(), "{way}: {undone}");
        world.healthy();
    }
}

/// In each case git stops at a conflict. The daemon looks when git has ended: what
/// it sees while git works does not tell yet that the operation waits.
/// The files of a large batch are read ahead, but for the largest ones.
#[test]
fn hist8_each_of_many_files_that_git_brings_is_looked_at() {
    let world = World::new();
    let names: Vec<String> = (0..150).map(|n| format!("many/{n}")).collect();
    let text = |n: usize, branch: &str| {
        let lines = if n == 70 { 20_000 } else { 5 };
        let line = |at: usize| format!("line {at} of file {n} on {branch}\n");
        (0..lines).map(line).collect::<String>()
    };
    let write_all = |branch: &str| {
        for (n, name) in names.iter().enumerate() {
            world.file(name, text(n, branch));
        }
    };
    write_all("main");
    sh(
        &world,
        "git init -q -b main && git add -A && git commit -qm main && git checkout -qb up",
    );
    write_all("up");
    sh(&world, "git commit -qam up && git checkout -q main");
    let mut agent = world.session("a");
    for name in &names {
        agent.read(name);
    }
    command(&world, &mut agent, "git checkout -q up");
    for name in &names {
        assert_eq!(blamed(&mut agent, name), "", "{name}");
    }
}

#[test]
fn hist8_what_git_brought_goes_when_the_operation_is_called_off() {
    for way in ["merge", "cherry-pick"] {
        let mut world = World::new();
        world.file("g", base());
        repository(&world);
        sh(
            &world,
            "git checkout -q up && sed -i 's/^line 2$/line 2 upstream/' g f && echo new > new \
             && git add -A && git commit -qm more && git checkout -q main \
             && sed -i 's/^line 2$/line 2 main/' f && git commit -qam main",
        );
        let mine = on_disk(&world, "f");
        let mut agent = world.session("a");
        agent.read("f");
        agent.read("g");
        unseen_command(&mut world, &mut agent, &format!("! git {way} up"));
        assert_eq!(blamed(&mut agent, "g"), "", "{way}");
        assert!(on_disk(&world, "new").is_some(), "{way}");
        unseen_command(&mut world, &mut agent, &format!("git {way} --abort"));
        assert_eq!(on_disk(&world, "new"), None, "{way}");
        let undone = undo(&mut agent);
        assert_eq!(on_disk(&world, "new"), None, "{way}: {undone}");
        assert_eq!(on_disk(&world, "g"), Some(base()), "{way}: {undone}");
        assert_eq!(on_disk(&world, "f"), mine, "{way}: {undone}");
    }
}

/// The daemon may see what the merge brings, and decides about it when nothing
/// tells any more that there was a merge.
#[test]
fn hist8_what_a_command_brings_and_calls_off_was_never_there() {
    let world = World::new();
    world.file("g", base());
    repository(&world);
    sh(
        &world,
        "git checkout -q up && sed -i 's/^line 2$/line 2 upstream/' g && git commit -qam more \
         && git checkout -q main && git rm -q f && git commit -qm main",
    );
    let mut agent = world.session("a");
    agent.read("g");
    command(&world, &mut agent, "git merge -q up || git merge --abort");
    // Nothing is to be undone if the daemon saw nothing of it.
    let undone = agent.client.call("undo", json!({"session": "a"}));
    assert_eq!(on_disk(&world, "g"), Some(base()), "{undone:?}");
    assert_eq!(on_disk(&world, "f"), None, "{undone:?}");
    assert_eq!(on_disk(&world, "other"), None, "{undone:?}");
}

#[test]
fn hist8_a_stash_takes_a_removal_away_and_brings_it_back() {
    let world = World::new();
    repository(&world);
    let (mut agent, mut other) = (world.session("a"), world.session("b"));
    agent.read("f");
    command(&world, &mut agent, "rm f");
    command(&world, &mut other, "git stash -q");
    assert_eq!(on_disk(&world, "f"), Some(base()));
    command(&world, &mut other, "git stash pop -q");
    assert_eq!(on_disk(&world, "f"), None);
    let undone = other.client.ok("undo", json!({"session": "b"}));
    assert_eq!(on_disk(&world, "f"), None, "{undone}");
    let undone = undo(&mut agent);
    assert_eq!(on_disk(&world, "f"), Some(base()), "{undone}");
}

/// The daemon looks while a rebase ends, and while git commits the removal: git
/// moves `HEAD` before it logs that. Here by hand.
#[test]
fn hist8_a_removal_that_is_being_committed_calls_no_rebase_off() {
    let mut world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    sh(&world, "git switch -q up && mkdir .git/rebase-merge");
    agent.sync();
    let before = on_disk(&world, "f");
    assert_eq!(blamed(&mut agent, "f"), "");
    sh(&world, "rmdir .git/rebase-merge");
    command(&world, &mut agent, "rm f");
    let line = "git add -A && git commit-tree -p HEAD -m gone $(git write-tree) > id && \
                mv id .git/refs/heads/up";
    sh(&world, line);
    let undone = undo(&mut agent);
    assert_eq!(on_disk(&world, "f"), before, "{undone}");
    world.healthy();
}

/// The daemon looks at the pop when the switch has brought the same content.
#[test]
fn hist8_a_switch_after_an_agents_pop_takes_no_line_of_the_users() {
    let world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    let mine = base().replace("line 20\n", "line 20 mine\n");
    world.file("f", &mine);
    agent.sync();
    sh(&world, "git stash -q -u");
    command(&world, &mut agent, "git stash pop -q");
    sh(&world, "git commit -qam mine && git switch -q up");
    agent.sync();
    sh(&world, "git switch -q main");
    agent.sync();
    assert_eq!(on_disk(&world, "f"), Some(mine.clone()));
    let undone = undo(&mut agent);
    assert_eq!(on_disk(&world, "f"), Some(mine), "{undone}");
}

#[test]
fn hist8_a_removal_that_a_rebase_stopped_at_is_still_the_agents() {
    let world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    command(&world, &mut agent, "git rm -q f && git commit -qm removed");
    command(&world, &mut agent, "! git rebase -q up");
    assert_eq!(on_disk(&world, "f"), Some(upstream(&base())));
    assert_eq!(blamed(&mut agent, "f"), "");
    command(&world, &mut agent, "git rebase --abort");
    assert_eq!(on_disk(&world, "f"), None);
    let undone = undo(&mut agent);
    assert_eq!(on_disk(&world, "f"), Some(base()), "{undone}");
}

#[test]
fn hist8_a_switch_does_not_explain_the_removal_of_a_content_that_came_later() {
    let mut world = World::new();
    repository(&world);
    sh(&world, "git switch -q up");
    let mut agent = world.session("a");
    agent.read("f");
    // The switch has put another content in place of the one that is removed.
    sh(&world, "git switch -q main");
    agent.sync();
    sh(&world, "git checkout -q up -- f");
    agent.sync();
    command(&world, &mut agent, "rm f");
    let undone = undo(&mut agent);
    assert_eq!(on_disk(&world, "f"), Some(upstream(&base())), "{undone:#}");
    world.healthy();
}

/// The daemon ends right after it has recorded the merge, before it has looked at
/// the versions.
#[test]
fn hist8_what_an_ended_daemon_had_not_looked_at_is_looked_at() {
    let mut world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    command(&world, &mut agent, "git merge -q --no-edit up");
    world.restart();
    let mut agent = world.session("a");
    assert_eq!(blamed(&mut agent, "f"), "");
    assert_eq!(queue(&mut agent), [""; 0]);
    world.healthy();
}

#[test]
fn hist8_what_the_user_has_on_disk_by_a_switch_stays() {
    let mut world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    write(&mut agent, "made", "made 1\nmade 2\n");
    write(&mut agent, "f", &by_agent(&base()));
    sh(&world, "git add -A && git commit -qm 'by the agent'");
    sh(&world, "git checkout -q up");
    agent.sync();
    // Nothing of the agent's is on this branch.
    undo(&mut agent);
    assert_eq!(on_disk(&world, "f").unwrap(), upstream(&base()));
    assert_eq!(on_disk(&world, "other").unwrap(), "other 1\nother 2\n");
    assert_eq!(on_disk(&world, "made"), None);
    // An agent's switch takes no file of the user's from another branch.
    command(&world, &mut agent, "git checkout -q main");
    command(&world, &mut agent, "git checkout -q up");
    undo(&mut agent);
    assert_eq!(on_disk(&world, "other").unwrap(), "other 1\nother 2\n");
    assert_eq!(on_disk(&world, "f").unwrap(), upstream(&base()));
    sh(&world, "git checkout -q main");
    agent.sync();
    undo(&mut agent);
    assert_eq!(on_disk(&world, "f").unwrap(), base());
    assert_eq!(on_disk(&world, "made"), None);
    world.healthy();
}

#[test]
fn hist8_what_git_stores_from_the_disk_is_not_carried() {
    for then in [
        "git add f",
        "git commit -qam one",
        "git stash -q && git stash apply -q",
        "git commit -qam one && git commit -q --amend -m two",
    ] {
        let world = World::new();
        repository(&world);
        let mut agent = world.session("a");
        agent.read("f");
        let line = format!("sed -i 's/^line 20$/line 20 agent/' f && {then}");
        command(&world, &mut agent, &line);
        assert_eq!(blamed(&mut agent, "f"), "line 20 agent\n", "{line}");
        // New text that appeared beside a command is taken only if asked for
        // (UNDO-7).
        let ask = json!({"session": "a", "likely": true});
        let undone: Value = agent.client.ok("undo", ask);
        assert_eq!(on_disk(&world, "f").unwrap(), base(), "{line}: {undone}");
    }
}

#[test]
fn hist8_what_the_agents_git_destroyed_comes_back() {
    let mine = base().replace("line 3\n", "line 3 mine\nline 3b mine\n");
    for line in [
        "git checkout -q -- f",
        "git checkout -q .",
        "git restore f",
        "git reset -q --hard",
        "git stash -q",
        "git checkout -q -f up",
        "git stash -q && git checkout -q up && git checkout -q main",
    ] {
        let world = World::new();
        repository(&world);
        let mut agent = world.session("a");
        agent.read("f");
        user::replace(&world.path("f"), &mine);
        agent.sync();
        command(&world, &mut agent, line);
        assert!(!on_disk(&world, "f").unwrap().contains("mine"), "{line}");
        let undone = undo(&mut agent);
        let now = on_disk(&world, "f").unwrap();
        assert!(
            now.contains("line 3 mine\nline 3b mine\n"),
            "{line}: {undone}\n{now}"
        );
    }
}

#[test]
fn hist8_the_users_last_word_about_a_file_counts() {
    let mine = base().replace("line 3\n", "line 3 mine\nline 3b mine\n");
    for gone in [false, true] {
        let world = World::new();
        repository(&world);
        let mut agent = world.session("a");
        agent.read("f");
        user::replace(&world.path("f"), &mine);
        agent.sync();
        command(&world, &mut agent, "git checkout -q -- f");
        match gone {
            true => fs::remove_file(world.path("f")).unwrap(),
            false => user::replace(&world.path("f"), &mine),
        }
        agent.sync();
        sh(&world, "git checkout -q -- f");
        let typed = base().replace("line 8\n", "line 8 typed\n");
        user::replace(&world.path("f"), &typed);
        agent.sync();
        let undone = undo(&mut agent);
        assert_eq!(on_disk(&world, "f").unwrap(), typed, "{gone}: {undone}");
    }
}

#[test]
fn hist8_line_ends_that_git_converts_do_not_hide_it() {
    let world = World::new();
    repository(&world);
    sh(
        &world,
        "git config core.autocrlf true && rm f && git checkout -q -- f",
    );
    let crlf = |text: &str| text.replace('\n', "\r\n");
    assert_eq!(on_disk(&world, "f").unwrap(), crlf(&base()));
    let mut agent = world.session("a");
    agent.read("f");
    write(&mut agent, "f", &crlf(&by_agent(&base())));
    sh(&world, "git commit -qam agent");
    command(&world, &mut agent, "git rebase -q up");
    let both = crlf(&upstream(&base()));
    assert_eq!(
        on_disk(&world, "f").unwrap(),
        crlf(&by_agent(&upstream(&base())))
    );
    assert_eq!(blamed(&mut agent, "other"), "");
    let undone = undo(&mut agent);
    assert_eq!(on_disk(&world, "f").unwrap(), both, "{undone}");
    assert!(on_disk(&world, "other").is_some());
}

#[test]
fn rev2_a_commit_that_is_made_again_keeps_nothing_unseen() {
    let agents = ["git commit -qam agent"];
    // The user's commands after an agent's commit; whether upstream is there.
    let ways = [
        "git commit -q --amend -m reworded",
        "git rebase -q up",
        "git reset -q --soft HEAD~1 && git commit -qm squashed",
        "git checkout -q up && git cherry-pick main",
        "echo mine >> f && git commit -q -a --amend -m more",
    ];
    for way in ways {
        let world = World::new();
        repository(&world);
        let mut agent = world.session("a");
        agent.read("f");
        write(&mut agent, "f", &by_agent(&base()));
        command(&world, &mut agent, agents[0]);
        past_this_second();
        sh(&world, way);
        agent.sync();
        assert_eq!(queue(&mut agent), [QUEUED], "{way}");
    }
    // An agent that makes the user's commit again takes nothing back that was
    // kept, and what it adds is not kept.
    let ways = [
        ("git commit -q --amend -m reworded", vec![]),
        ("git rebase -q up", vec![]),
        (
            "sed -i 's/^line 30$/line 30 agent/' f && git commit -q -a --amend -m more",
            vec!["f line 30|>line 30 agent|"],
        ),
    ];
    for (way, left) in ways {
        let world = World::new();
        repository(&world);
        let mut agent = world.session("a");
        agent.read("f");
        write(&mut agent, "f", &by_agent(&base()));
        sh(&world, "git commit -qam 'by the user'");
        assert_eq!(queue(&mut agent), [""; 0], "{way}");
        past_this_second();
        command(&world, &mut agent, way);
        assert_eq!(queue(&mut agent), left, "{way}");
    }
}

#[test]
fn rev2_the_first_commit_of_a_repository_may_be_an_agents() {
    // Whether the user has made a first commit before.
    for (is_again, way) in [
        (
            false,
            "git init -q -b main && git add -A && git commit -qm first",
        ),
        (true, "git commit -q -a --amend -m again"),
    ] {
        let world = World::new();
        world.file("f", base());
        if is_again {
            sh(
                &world,
                "git init -q -b main && git add -A && git commit -qm first",
            );
            past_this_second();
        }
        let mut agent = world.session("a");
        agent.read("f");
        write(&mut agent, "f", &by_agent(&base()));
        command(&world, &mut agent, way);
        assert_eq!(queue(&mut agent), [QUEUED], "{way}");
        // The user had the file, no matter who committed it.
        command(&world, &mut agent, "rm f");
        let gone = format!("f {}>", base().replace('\n', "|"));
        assert_eq!(queue(&mut agent), [gone], "{way}");
    }
}

/// Waits until the second in which the last commit was made is over: git tells
/// no more of a commit's time. A commit right before a command counts as the
/// agent's, too (REV-2).
fn past_this_second() {
    let now = || {
        let now = std::time::SystemTime::now();
        now.duration_since(std::time::UNIX_EPOCH).unwrap()
    };
    let begun = now();
    let right_before = Duration::from_millis(300);
    while now().as_secs() == begun.as_secs() || now() < begun + right_before {
        user::pause(20);
    }
}

#[test]
fn undo10_a_file_in_the_middle_of_a_merge_stays() {
    let mut world = World::new();
    let run = |args: &[&str]| {
        let output = user::git_command(world.workspace(), args).output().unwrap();
        output.status.success()
    };
    user::git(world.workspace(), &["init", "-q", "-b", "main"]);
    world.file("f", "a\nb\nc\n");
    assert!(run(&["add", "f"]) && run(&["commit", "-qm", "base"]));
    assert!(run(&["switch", "-qc", "other"]));
    world.file("f", "a\ntheirs\nc\n");
    assert!(run(&["commit", "-qam", "theirs"]) && run(&["switch", "-q", "main"]));
    let mut agent = world.session("a");
    agent.read("f");
    let edited = json!({"path": "f", "oldString": "b\n", "newString": "ours\n"});
    agent.ok("file/edit", edited);
    assert!(run(&["commit", "-qam", "ours"]));
    assert!(!run(&["merge", "-q", "other"]), "there is a conflict");
    agent.sync();
    let merging = fs::read_to_string(world.path("f")).unwrap();
    let undo = json!({"session": "a", "now": true, "likely": true});
    let left = world.client().ok("undo", undo.clone());
    assert_eq!(left["files"][0]["left"][0]["cause"], "unmerged", "{left}");
    let why = text(&left["files"][0]["left"][0], "why");
    assert!(why.contains("`git merge --abort`"), "{why}");
    assert_eq!(fs::read_to_string(world.path("f")).unwrap(), merging);
    // The hint works.
    assert!(run(&["merge", "--abort"]));
    agent.sync();
    let done = world.client().ok("undo", undo);
    assert_eq!(done["files"][0]["outcome"], "undone", "{done}");
    assert_eq!(fs::read_to_string(world.path("f")).unwrap(), "a\nb\nc\n");
    world.healthy();
}
