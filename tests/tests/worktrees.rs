//! TREE: sessions in two worktrees of one repository that change the same
//! lines. Real git, a real daemon for each worktree, Claude Code's events.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use touchmark_tests::fuse::Hanging;
use touchmark_tests::hooks::Talk;
use touchmark_tests::process::until;
use touchmark_tests::worktrees::{
    AGENT, Agent, beside, commit, git, lines, overlaps, replace, repository, row, two,
};
use touchmark_tests::{World, mounts, snippets, text, user};

#[test]
fn tree1_sessions_are_told_once_in_both_directions() {
    let (one, other) = two();
    let mut first = Agent::new(&one, "first");
    let mut second = Agent::new(&other, "second");
    first.prompt();
    second.prompt();
    first.edit("a.txt", "line 5", "five of the first");
    first.batch_end();
    // The second is told as soon as it changes the line.
    second.edit("a.txt", "line 5", "five of the second");
    let said = second.wait();
    let at = one.workspace().to_string_lossy().into_owned();
    assert!(
        said.contains(&format!("{at:?} (branch \"main\")")),
        "{said}"
    );
    assert!(said.contains("lines of \"a.txt\""), "{said}");
    assert!(
        said.contains("line 5 there, by agent session \"claude-1\" of that worktree."),
        "{said}"
    );
    assert!(said.ends_with("\n5: five of the first"), "{said}");
    // The first, which has changed it before, with its next prompt.
    assert_eq!(first.told, Vec::<String>::new());
    first.prompt();
    let said = first.wait();
    assert!(said.contains("(branch \"topic\")"), "{said}");
    assert!(
        said.contains("line 5 there, by agent session \"claude-1\" of that worktree."),
        "{said}"
    );
    assert!(said.ends_with("\n5: five of the second"), "{said}");
    // Once: neither for the same line changed again, nor with later prompts.
    second.edit("a.txt", "five of the second", "V");
    first.edit("a.txt", "five of the first", "v");
    second.is_told_nothing_else(&one);
    first.is_told_nothing_else(&other);
}

#[test]
fn tree1_other_lines_and_the_same_change_are_not_told() {
    let (one, other) = two();
    replace(&other, "a.txt", "line 5", "theirs");
    replace(&other, "b.txt", "line 9", "the same");
    let mut agent = Agent::new(&one, "s");
    agent.edit("a.txt", "line 15", "mine");
    agent.edit("b.txt", "line 9", "the same");
    agent.is_told_nothing_else(&other);
    // Adjacent lines cannot be merged either.
    agent.edit("a.txt", "line 6", "mine");
    assert!(agent.wait().ends_with("\n5: theirs"));
}

#[test]
fn tree1_a_change_of_another_session_of_the_same_worktree_is_not_the_sessions() {
    let (one, other) = two();
    let mut agent = Agent::new(&one, "s");
    let mut another = Agent::new(&one, "t");
    agent.edit("a.txt", "line 3", "of s");
    another.edit("a.txt", "line 15", "of t");
    another.batch_end();
    replace(&other, "a.txt", "line 15", "theirs");
    another.prompt();
    assert!(another.wait().ends_with("\n15: theirs"));
    agent.prompt();
    let told = std::mem::take(&mut agent.told).concat();
    assert!(!told.contains("worktree"), "{told}");
}

#[test]
fn tree2_what_was_merged_is_not_told() {
    let (one, other) = two();
    let mut agent = Agent::new(&one, "s");
    replace(&other, "a.txt", "line 5", "theirs");
    commit(&other, "theirs");
    git(&one, &["merge", "-q", "topic"]);
    assert_eq!(overlaps(&one, &other), Vec::<String>::new());
    agent.talk.read("a.txt");
    agent.edit("a.txt", "theirs", "mine");
    agent.is_told_nothing_else(&other);
    // A change after the merge is told.
    replace(&other, "a.txt", "theirs", "theirs again");
    agent.prompt();
    assert!(agent.wait().ends_with("\n5: theirs again"));
}

#[test]
fn tree3_a_worktree_needs_no_daemon() {
    let one = repository();
    let other = beside(&one, "topic");
    git(&other, &["checkout", "-q", "--detach"]);
    replace(&other, "a.txt", "line 5\n", "theirs\nand more\n");
    commit(&other, "committed");
    replace(&other, "a.txt", "line 10\n", "");
    let mut agent = Agent::new(&one, "s");
    agent.edit("a.txt", "line 5", "mine");
    let said = agent.wait();
    let at = other.workspace().to_string_lossy().into_owned();
    assert!(said.contains(&format!("worktree {at:?} of this")), "{said}");
    assert!(
        said.contains(": lines 5-6 there.\n5: theirs\n6: and more"),
        "{said}"
    );
    agent.edit("a.txt", "line 10", "mine");
    let said = agent.wait();
    assert!(said.ends_with("\n(lines removed after line 10)"), "{said}");
    assert_eq!(row(&one, &other)["daemon"], false);
}

#[test]
fn tree4_what_was_told_is_remembered_over_restarts() {
    let (mut one, other) = two();
    replace(&other, "a.txt", "line 5", "theirs");
    let mut agent = Agent::new(&one, "s");
    agent.edit("a.txt", "line 5", "mine");
    agent.wait();
    let told = || {
        let key = one.socket().file_stem().unwrap();
        let file = one
            .state()
            .join("touchmark")
            .join(key)
            .join("worktrees.json");
        fs::read_to_string(file)
            .unwrap_or_default()
            .contains("told\":[{")
    };
    until("what was told is not stored", told);
    drop(agent);
    one.restart();
    let mut agent = Agent {
        talk: Talk::new(&one, AGENT, "s"),
        told: Vec::new(),
        prompts: 9,
    };
    agent.prompt();
    agent.is_told_nothing_else(&other);
    // What was changed while the daemon did not run is found by the prompt.
    agent.edit("a.txt", "line 10", "mine");
    drop(agent);
    one.kill();
    replace(&other, "a.txt", "line 10", "theirs");
    one.start();
    let mut agent = Agent {
        talk: Talk::new(&one, AGENT, "s"),
        told: Vec::new(),
        prompts: 19,
    };
    agent.prompt();
    assert!(agent.wait().ends_with("\n10: theirs"));
}

#[test]
fn tree1_whole_files_and_commands_are_found_after_they_have_written() {
    let (one, other) = two();
    replace(&other, "a.txt", "line 5", "theirs");
    replace(&other, "b.txt", "line 7", "theirs too");
    let mut agent = Agent::new(&one, "s");
    agent.talk.read("a.txt").nothing();
    let whole = lines().replace("line 5\n", "mine\n");
    let (call, heard) = agent.talk.before_write("a.txt", &whole);
    heard.nothing();
    fs::write(one.path("a.txt"), &whole).unwrap();
    let after = agent.talk.voice.after_write(&call, "a.txt", &whole);
    let heard = agent.talk.say(&after);
    agent.hear(heard);
    assert!(agent.wait().ends_with("\n5: theirs"));
    let heard = agent.talk.shell("sed -i 's/line 7$/mine/' b.txt");
    agent.hear(heard);
    until("nothing was told", || {
        agent.batch_end();
        agent
            .told
            .iter()
            .any(|said| said.ends_with("\n7: theirs too"))
    });
}

#[test]
fn tree6_the_notice_can_be_switched_off() {
    let (mut one, other) = two();
    one.kill();
    one.configure("worktrees.notice = false\n");
    one.start();
    replace(&other, "a.txt", "line 5", "theirs");
    let mut agent = Agent::new(&one, "s");
    agent.edit("a.txt", "line 5", "mine");
    for _ in 0..3 {
        agent.batch_end();
        agent.prompt();
    }
    assert_eq!(agent.told, Vec::<String>::new());
    assert_eq!(overlaps(&one, &other), ["a.txt 5-5|5-5"]);
}

#[test]
fn tree7_secrets_are_not_shown() {
    let (one, other) = two();
    let token = ["gh", "p_", &"a1B2".repeat(9)].concat();
    for world in [&one, &other] {
        world.file(".env", "A=1\n");
    }
    replace(&other, "a.txt", "line 5", &token);
    fs::write(other.path(".env"), "A=2\n").unwrap();
    let mut agent = Agent::new(&one, "s");
    agent.edit(".env", "A=1", "A=3");
    agent.edit("a.txt", "line 5", "mine");
    let said = agent.wait();
    assert!(said.ends_with("line 5 there."), "{said}");
    agent.is_told_nothing_else(&other);
}

#[test]
fn tree2_files_that_were_removed_renamed_or_are_not_checked_out() {
    let (one, other) = two();
    one.file(
        "b.txt",
        lines()
            .replace("line ", "row ")
            .replace("row 5\n", "line 5\n"),
    );
    one.file(
        "c.txt",
        lines()
            .replace("line ", "item ")
            .replace("item 5\n", "line 5\n"),
    );
    one.file("d/d.txt", lines());
    commit(&one, "more");
    git(&other, &["merge", "-q", "main"]);
    for path in ["a.txt", "b.txt", "c.txt", "d/d.txt"] {
        replace(&one, path, "line 5", "mine");
    }
    fs::remove_file(other.path("a.txt")).unwrap();
    git(&other, &["mv", "b.txt", "e.txt"]);
    replace(&other, "e.txt", "line 5", "theirs");
    replace(&other, "d/d.txt", "line 5", "theirs");
    commit(&other, "theirs");
    git(&other, &["sparse-checkout", "set", "--cone", "x"]);
    assert!(!other.path("d/d.txt").exists());
    let mut found = overlaps(&one, &other);
    found.sort();
    assert_eq!(
        found,
        [
            "a.txt removed |5-5",
            "b.txt as e.txt 5-5|5-5",
            "d/d.txt 5-5|5-5"
        ]
    );
    // A file that was renamed here.
    git(&one, &["checkout", "-q", "."]);
    git(&other, &["sparse-checkout", "disable"]);
    replace(&other, "c.txt", "line 5", "theirs");
    git(&one, &["mv", "c.txt", "f.txt"]);
    let mut agent = Agent::new(&one, "s");
    agent.edit("f.txt", "line 5", "mine");
    let said = agent.wait();
    assert!(said.contains("line 5 there, as \"c.txt\"."), "{said}");
}

#[test]
fn tree2_line_ends_binary_and_large_files() {
    let (one, other) = two();
    for world in [&one, &other] {
        let whole = if world.workspace() == one.workspace() {
            "one"
        } else {
            "two"
        };
        replace(world, "a.txt", "line 5\n", &format!("{whole}\n"));
        fs::write(world.path("binary"), format!("\0{whole}")).unwrap();
        fs::write(world.path("large"), format!("{whole}\n").repeat(300_000)).unwrap();
    }
    let crlf = fs::read_to_string(other.path("a.txt")).unwrap();
    fs::write(other.path("a.txt"), crlf.replace('\n', "\r\n")).unwrap();
    assert_eq!(overlaps(&one, &other), ["a.txt 5-5|5-5"]);
    // Ignored files are no changes.
    fs::write(other.path("b.txt"), lines().replace('\n', "\r\n")).unwrap();
    replace(&one, "b.txt", "line 5", "mine");
    for world in [&one, &other] {
        world.file(".gitignore", "out\n");
        world.file("out", world.workspace().to_str().unwrap());
    }
    assert_eq!(overlaps(&one, &other), ["a.txt 5-5|5-5"]);
}

#[test]
fn tree2_nothing_in_common_nothing_there_and_a_rebase() {
    let (one, other) = two();
    replace(&one, "a.txt", "line 5", "mine");
    commit(&one, "mine");
    replace(&other, "a.txt", "line 5", "theirs");
    commit(&other, "theirs");
    replace(&other, "b.txt", "line 5", "theirs");
    commit(&other, "more");
    assert_eq!(overlaps(&one, &other), ["a.txt 5-5|5-5"]);
    // The rebase stops at the conflict.
    let mut rebase = user::git_command(other.workspace(), &["rebase", "-q", "main"]);
    assert!(!rebase.output().unwrap().status.success());
    let found = overlaps(&one, &other);
    assert_eq!(
        found,
        Vec::<String>::new(),
        "a.txt there has the own change"
    );
    git(&other, &["rebase", "--abort"]);
    // A history without a common commit.
    git(&other, &["checkout", "-q", "--orphan", "new"]);
    assert_eq!(row(&one, &other)["problem"], "noCommonCommit");
    commit(&other, "new");
    assert_eq!(row(&one, &other)["problem"], "noCommonCommit");
    let gone = beside(&one, "gone");
    fs::remove_dir_all(gone.workspace()).unwrap();
    assert_eq!(row(&one, &gone)["problem"], "missing");
}

#[test]
fn tree2_bare_repositories_sha256_and_worktrees_inside_others() {
    let mut world = World::asleep();
    let top = world.workspace().to_owned();
    let hash = "--object-format=sha256";
    user::git(&top, &["init", "-q", "--bare", hash, "-b", "main", ".git"]);
    world.nest("main");
    let at = world.workspace().to_str().unwrap().to_owned();
    let mut orphan = vec!["worktree", "add", "-q", "--orphan", "-b", "main"];
    orphan.push(&at);
    user::git(&top, &orphan);
    world.file("a.txt", lines());
    commit(&world, "first");
    world.start();
    let inside = world.path("in/side");
    let inside = inside.to_str().unwrap();
    git(&world, &["worktree", "add", "-q", "-b", "inner", inside]);
    let listed = world.client().ok("worktree/list", json!({}));
    let paths: Vec<String> = listed["worktrees"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| text(row, "path"))
        .collect();
    assert_eq!(
        paths,
        [at.as_str(), inside],
        "no row for the bare repository"
    );
    assert_eq!(text(&listed["worktrees"][0], "head").len(), 64);
    let file = Path::new(inside).join("a.txt");
    fs::write(&file, lines().replace("line 5", "inner")).unwrap();
    let mut agent = Agent::new(&world, "s");
    agent.edit("a.txt", "line 5", "mine");
    assert!(agent.wait().ends_with("\n5: inner"));
}

#[test]
fn tree2_a_workspace_below_the_top_and_a_submodule() {
    let mut one = World::asleep();
    let top = one.workspace().to_owned();
    user::git(&top, &["init", "-q", "-b", "main"]);
    one.nest("sub");
    one.file(".touchmark.toml", "");
    one.file("a.txt", lines());
    let module = one.outside().join("module");
    fs::create_dir(&module).unwrap();
    user::git(&module, &["init", "-q"]);
    fs::write(module.join("m.txt"), lines()).unwrap();
    user::git(&module, &["add", "."]);
    user::git(&module, &["commit", "-q", "-m", "module"]);
    let add = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
    ];
    git(
        &one,
        &[add.as_slice(), &[module.to_str().unwrap(), "module"]].concat(),
    );
    commit(&one, "first");
    one.start();
    let mut other = World::asleep();
    let at = other.workspace().to_str().unwrap().to_owned();
    git(&one, &["worktree", "add", "-q", "-b", "topic", &at]);
    other.nest("sub");
    let update = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "update",
        "--init",
    ];
    git(&other, &update);
    for (world, by) in [(&one, "mine"), (&other, "theirs")] {
        replace(world, "a.txt", "line 5", by);
        replace(world, "module/m.txt", "line 5", by);
    }
    let listed = one.client().ok("worktree/list", json!({}));
    let row = &listed["worktrees"][1];
    assert_eq!(row["path"], at);
    assert_eq!(row["overlaps"].as_array().unwrap().len(), 1, "{row}");
    let mut agent = Agent::new(&one, "s");
    agent.edit("module/m.txt", "mine", "mine again");
    agent.edit("a.txt", "mine", "mine again");
    assert!(agent.wait().contains("lines of \"a.txt\""));
    agent.prompt();
    assert_eq!(agent.told, Vec::<String>::new());
}

#[test]
fn tree7_a_repository_cannot_name_foreign_directories() {
    let one = repository();
    let foreign = one.outside().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("a.txt"), lines().replace("line 5", "secret")).unwrap();
    let link = one.path(".git/worktrees/x");
    fs::create_dir_all(&link).unwrap();
    let gitdir = foreign.join(".git");
    fs::write(link.join("gitdir"), format!("{}\n", gitdir.display())).unwrap();
    fs::write(link.join("commondir"), "../..\n").unwrap();
    fs::write(link.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    // Neither without a `.git`, nor with one of another repository.
    for made in [false, true] {
        if made {
            user::git(&foreign, &["init", "-q"]);
        }
        let listed = one.client().ok("worktree/list", json!({}));
        assert_eq!(listed["worktrees"][1]["problem"], "missing", "{listed}");
        let mut agent = Agent::new(&one, if made { "t" } else { "s" });
        let old = if made { "mine" } else { "line 5" };
        agent.edit("a.txt", old, "mine");
        agent.batch_end();
        agent.prompt();
        assert_eq!(agent.told, Vec::<String>::new());
    }
}

#[test]
fn tree8_a_worktree_that_hangs_delays_nothing() {
    mounts::apart(|| {
        let (one, other) = two();
        let hung = beside(&one, "hung");
        let Some(remote) = Hanging::new(hung.workspace()) else {
            return;
        };
        remote.hang();
        replace(&other, "a.txt", "line 5", "theirs");
        let mut agent = Agent::new(&one, "s");
        agent.edit("a.txt", "line 5", "mine");
        assert!(agent.wait().ends_with("\n5: theirs"));
        assert_eq!(row(&one, &hung)["problem"], "noAnswer");
        assert_eq!(overlaps(&one, &other), ["a.txt 5-5|5-5"]);
    });
}

/// Returns the median time of the event before an edit, as the agent waits for
/// it.
fn hook_time(world: &World, session: &str) -> Duration {
    let mut agent = Agent::new(world, session);
    let mut client = world.client();
    let mut times: Vec<Duration> = (0..21)
        .map(|_| {
            let call = agent.talk.call();
            let event = agent
                .talk
                .voice
                .before_edit(&call, "b.txt", "line 5", "mine");
            let began = Instant::now();
            client.ok("hook/event", json!({"agent": "claude", "input": event}));
            let time = began.elapsed();
            let heard = agent.talk.say(&agent.talk.voice.stop());
            agent.hear(heard);
            time
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

#[test]
fn tree8_forty_worktrees() {
    let one = repository();
    let without = hook_time(&one, "without");
    let others: Vec<World> = (0..40).map(|n| beside(&one, &format!("t{n}"))).collect();
    replace(&others[23], "a.txt", "line 5", "theirs");
    commit(&others[23], "theirs");
    for (n, other) in others.iter().enumerate() {
        replace(other, "b.txt", "line 19", &format!("of {n}"));
    }
    let with = hook_time(&one, "with");
    println!("the event before an edit: {without:?} without, {with:?} with 40 worktrees");
    let mut agent = Agent::new(&one, "s");
    agent.edit("a.txt", "line 5", "mine");
    let said = agent.wait();
    assert!(said.contains("(branch \"t23\")"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    let listed = one.client().ok("worktree/list", json!({}));
    assert_eq!(listed["worktrees"].as_array().unwrap().len(), 41);
    let few = one.client().ok("worktree/list", json!({"limit": 3}));
    assert_eq!(few["more"], true);
    assert_eq!(few["worktrees"].as_array().unwrap().len(), 3);
}

#[test]
fn tree5_the_command_shows_the_table() {
    let (one, other) = two();
    let mut second = Agent::new(&other, "second");
    second.edit("a.txt", "line 5", "theirs");
    replace(&one, "a.txt", "line 5", "mine");
    let shown = one.run(&["worktrees"]);
    assert!(shown.status.success(), "{shown:?}");
    let shown = String::from_utf8(shown.stdout).unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{shown}");
    assert!(lines[0].starts_with("*  main "), "{shown}");
    assert!(lines[1].contains("topic") && lines[1].ends_with("1 file to merge, 1 in common"));
    assert_eq!(
        lines[2].trim(),
        "a.txt: line 5 there by claude-1, line 5 here"
    );
    let printed = one.run(&["worktrees", "--json"]);
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(printed["worktrees"][1]["branch"], "topic");
    assert_eq!(
        printed["worktrees"][1]["overlaps"][0]["authors"][0]["session"],
        "second"
    );
}

#[test]
fn the_page_about_worktrees_runs() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/worktrees.md");
    let mut world = World::asleep();
    for who in ["AUTHOR", "COMMITTER"] {
        world.set_env(&format!("GIT_{who}_NAME"), "U");
        world.set_env(&format!("GIT_{who}_EMAIL"), "u@example.invalid");
    }
    world.file(".touchmark.toml", "");
    for snippet in snippets::of(page.as_ref()) {
        if snippet.language == "sh" {
            drop(snippets::run_shell(&world, "worktrees.md", &snippet));
        }
    }
    let _ = world.run(&["stop"]);
}
