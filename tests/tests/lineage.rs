//! HIST-9: a file's history continues under its new name, and a file that was
//! removed and newly written is another one. The truth is who typed each line.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use touchmark_tests::{Session, World, author, text, user};

/// Returns ten lines, `line 1` to `line 10`.
fn ten() -> String {
    (1..=10).map(|n| format!("line {n}\n")).collect()
}

fn on_disk(world: &World, path: &str) -> Option<String> {
    fs::read_to_string(world.path(path)).ok()
}

/// Creates a file with ten lines, of which the agent `a` replaces the second and
/// the user the ninth. Returns its text.
fn written(world: &World, agent: &mut Session, path: &str) -> String {
    world.file(path, ten());
    agent.read(path);
    let params = json!({"path": path, "text": ten().replace("line 2\n", "by a\n")});
    assert_eq!(agent.ok("file/write", params)["outcome"], "applied");
    let all = on_disk(world, path).unwrap().replace("line 9", "mine");
    user::replace(&world.path(path), &all);
    agent.sync();
    all
}

fn shell(world: &World, line: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(world.workspace());
    for (name, value) in [("NAME", "me"), ("EMAIL", "me@example.org")] {
        command.env(format!("GIT_AUTHOR_{name}"), value);
        command.env(format!("GIT_COMMITTER_{name}"), value);
    }
    let out = touchmark_tests::children::start(&mut command)
        .unwrap()
        .wait()
        .unwrap();
    assert!(out.success(), "{line}");
}

/// Runs a line in a command window of the session.
fn command(world: &World, agent: &mut Session, line: &str) {
    let begun = agent.ok(
        "command/begin",
        json!({"label": line, "scope": "workspace"}),
    );
    shell(world, line);
    agent
        .client
        .ok("command/end", json!({"command": begun["command"]}));
}

/// Returns the author of each line, as `author line`.
fn blame(agent: &mut Session, path: &str) -> Vec<String> {
    let blame = agent.client.ok("file/blame", json!({"path": path}));
    let lines = blame["lines"].as_array().unwrap().iter();
    lines
        .map(|line| format!("{} {}", author(&line["author"]), text(line, "text")))
        .collect()
}

/// Returns the lines that are not `line N` by an unknown author.
fn known(agent: &mut Session, path: &str) -> Vec<String> {
    let mut lines = blame(agent, path);
    lines.retain(|line| !line.starts_with("unknown line "));
    lines
}

/// Checks that the agent `a` still has written its line.
fn is_still_by_a(agent: &mut Session, path: &str) {
    let lines = blame(agent, path);
    assert!(lines.contains(&"agent:a by a".to_owned()), "{lines:?}");
}

/// Moves files, one after the other, while no daemon runs. Returns a connection
/// of the session `a` to the next daemon.
fn moved_unseen(world: &mut World, moves: &[[&str; 2]]) -> Session {
    world.stop();
    for [from, to] in moves {
        rename(world, from, to);
    }
    world.start();
    world.session("a")
}

/// Returns the outcome of each file, as `path outcome`.
fn outcomes(undone: &Value) -> Vec<String> {
    let files = undone["files"].as_array().unwrap().iter();
    files
        .map(|file| format!("{} {}", text(file, "path"), text(file, "outcome")))
        .collect()
}

fn undo(agent: &mut Session, session: &str) -> Value {
    agent
        .client
        .ok("undo", json!({"session": session, "now": true}))
}

#[test]
fn hist9_every_line_keeps_its_author_when_its_file_is_moved() {
    for (line, to) in [
        ("mv f g", "g"),
        ("mkdir d && mv f d/", "d/f"),
        ("mkdir d && mv f d/ && mv d e", "e/f"),
        ("mv f one; mv one two; mv two g", "g"),
        ("git init -q && git add f && git mv f g", "g"),
        ("mv f g && sed -i 's/line 5/five/' g", "g"),
    ] {
        for is_agent in [false, true] {
            let mut world = World::new();
            let mut agent = world.session("a");
            let mut mover = world.session("b");
            let all = written(&world, &mut agent, "f");
            match is_agent {
                true => command(&world, &mut mover, line),
                false => shell(&world, line),
            }
            agent.sync();
            let all = match line.contains("sed") {
                true => all.replace("line 5", "five"),
                false => all,
            };
            assert_eq!(on_disk(&world, to).unwrap(), all, "{line}");
            let who = if is_agent { "agent:b" } else { "user" };
            let mut right = vec!["agent:a by a".to_owned(), "user mine".to_owned()];
            if line.contains("sed") {
                right.insert(1, format!("{who} five"));
            }
            assert_eq!(known(&mut agent, to), right, "{line}, {who}");
            // Only the changed line is in the queue of the review.
            let queue = agent.client.ok("review/list", json!({"session": "a"}));
            let rows = queue["hunks"].as_array().unwrap().iter();
            let rows: Vec<_> = rows
                .map(|row| (text(row, "path"), text(row, "after")))
                .collect();
            assert_eq!(rows, [(to.to_owned(), "by a\n".to_owned())], "{line}");
            // The earlier versions are named by the new name, too.
            let log = agent.client.ok("file/log", json!({"paths": [to]}));
            assert!(log["entries"].as_array().unwrap().len() >= 2, "{log:#}");
            // The agent wrote under the old name. Its change is undone under the new one.
            let undone = undo(&mut agent, "a");
            assert_eq!(outcomes(&undone), [format!("{to} undone")], "{line}");
            assert_eq!(
                on_disk(&world, to).unwrap(),
                all.replace("by a", "line 2"),
                "{line}"
            );
            world.healthy();
        }
    }
}

#[test]
fn hist9_a_move_while_the_daemon_is_off_is_found() {
    for asks_first in [false, true] {
        let mut world = World::new();
        let mut agent = world.session("a");
        let all = written(&world, &mut agent, "f");
        world.stop();
        fs::create_dir(world.path("d")).unwrap();
        fs::rename(world.path("f"), world.path("d/g")).unwrap();
        user::append(&world.path("d/g"), "more\n");
        let all = format!("{all}more\n");
        world.start();
        let mut agent = world.session("a");
        agent.sync();
        if asks_first {
            let lines = known(&mut agent, "d/g");
            assert_eq!(lines[..2], ["agent:a by a", "user mine"]);
        }
        let undone = undo(&mut agent, "a");
        let what = format!("{asks_first} {undone:#}");
        assert_eq!(outcomes(&undone), ["d/g undone"], "{what}");
        assert_eq!(
            on_disk(&world, "d/g").unwrap(),
            all.replace("by a", "line 2"),
            "{what}"
        );
        world.healthy();
    }
}

/// Another file has its name by now.
#[test]
fn hist9_a_replaced_file_is_found_under_the_name_that_it_got_unseen() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let all = written(&world, &mut agent, "f");
    let other: String = (1..=10).map(|n| format!("other {n}\n")).collect();
    world.file("g", &other);
    agent.read("g");
    let mut agent = moved_unseen(&mut world, &[["f", "old"], ["g", "f"]]);
    is_still_by_a(&mut agent, "old");
    assert_eq!(known(&mut agent, "f").len(), 10);
    let undone = undo(&mut agent, "a");
    assert_eq!(outcomes(&undone), ["old undone"], "{undone:#}");
    assert_eq!(
        on_disk(&world, "old").unwrap(),
        all.replace("by a", "line 2")
    );
    assert_eq!(on_disk(&world, "f").unwrap(), other);
    world.healthy();
}

/// The user makes another file at the name, so the moved one could be a backup.
#[test]
fn hist9_a_file_that_was_moved_before_and_while_the_daemon_was_off_is_found() {
    let mut world = World::new();
    let mut agent = world.session("a");
    written(&world, &mut agent, "f");
    rename(&world, "f", "g");
    agent.sync();
    user::write(&world.path("f"), "new 1\nnew 2\n");
    agent.sync();
    let mut agent = moved_unseen(&mut world, &[["g", "h"]]);
    is_still_by_a(&mut agent, "h");
    world.healthy();
}

#[test]
fn hist9_an_edited_file_that_the_user_moves_over_a_removed_one_is_no_save() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", ten());
    world.file("g", "one\ntwo\n");
    agent.read("f");
    agent.read("g");
    for path in ["f", "g"] {
        fs::remove_file(world.path(path)).unwrap();
        agent.sync();
    }
    user::write(&world.path("f"), &ten().replace("line", "new"));
    agent.read("f");
    let params =
        json!({"path": "f", "text": ten().replace("line", "new").replace("new 2\n", "by a\n")});
    assert_eq!(agent.ok("file/write", params)["outcome"], "applied");
    rename(&world, "f", "g");
    agent.sync();
    is_still_by_a(&mut agent, "g");
    world.healthy();
}

/// No session uses the name in between, so nothing records that the file leaves.
#[test]
fn hist9_a_file_that_an_undo_found_is_found_again_when_it_moves_on() {
    let mut world = World::new();
    let mut agent = world.session("a");
    written(&world, &mut agent, "f");
    let mut agent = moved_unseen(&mut world, &[["f", "g"]]);
    let undone = undo(&mut agent, "a");
    assert_eq!(outcomes(&undone), ["g undone"]);
    agent.client.ok("redo", json!({"undo": undone["undo"]}));
    let changed = on_disk(&world, "g").unwrap().replace("line 5", "later");
    rename(&world, "g", "h");
    user::replace(&world.path("h"), &changed);
    is_still_by_a(&mut agent, "h");
    world.healthy();
}

/// As after a kill: the content that the file had before it was moved is not
/// stored.
#[test]
fn hist9_a_moved_file_is_found_by_an_earlier_content_if_the_last_is_not_stored() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let all = written(&world, &mut agent, "f");
    let secret = format!("token = ghp_{}\n", "a1B2".repeat(9));
    user::replace(&world.path("f"), &format!("{all}{secret}"));
    agent.sync();
    world.stop();
    fs::rename(world.path("f"), world.path("g")).unwrap();
    user::replace(&world.path("g"), &format!("{all}more\n"));
    world.start();
    let mut agent = world.session("a");
    is_still_by_a(&mut agent, "g");
    world.healthy();
}

#[test]
fn hist9_a_save_by_a_rename_a_backup_and_an_exchange_move_nothing() {
    let new = |all: &str| all.replace("line 5", "five");
    for line in [
        "cp f f.tmp && sed -i 's/line 5/five/' f.tmp && mv f.tmp f",
        "mv f f~ && sed 's/line 5/five/' f~ > f",
        "cp f f.bak && sed -i 's/line 5/five/' f",
        "sed 's/line 5/five/' f > f.new && mv f x && mv f.new f && mv x f.new",
    ] {
        let mut world = World::new();
        let mut agent = world.session("a");
        let mut other = world.session("b");
        let all = written(&world, &mut agent, "f");
        command(&world, &mut other, line);
        assert_eq!(on_disk(&world, "f").unwrap(), new(&all), "{line}");
        let right = ["agent:a by a", "agent:b five", "user mine"];
        assert_eq!(known(&mut agent, "f"), right, "{line}");
        let undone = undo(&mut agent, "a");
        assert_eq!(outcomes(&undone), ["f undone"], "{line}");
        world.healthy();
    }
}

#[test]
fn hist9_a_copy_has_no_history() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut other = world.session("b");
    let all = written(&world, &mut agent, "f");
    command(&world, &mut other, "cp f g");
    assert!(
        blame(&mut agent, "g")
            .iter()
            .all(|line| line.starts_with("agent:b "))
    );
    let undone = undo(&mut agent, "a");
    assert_eq!(outcomes(&undone), ["f undone"]);
    assert_eq!(on_disk(&world, "g").unwrap(), all);
    world.healthy();
}

#[test]
fn hist9_a_file_that_was_removed_and_newly_written_is_another_one() {
    let new = "completely\nother\ncontent\n";
    for (line, is_agent) in [("rm f", false), ("rm f", true)] {
        let mut world = World::new();
        let mut agent = world.session("a");
        let mut other = world.session("b");
        world.file("f", ten());
        agent.read("f");
        let fewer = ten().replace("line 4\nline 5\n", "");
        let params = json!({"path": "f", "text": fewer});
        assert_eq!(agent.ok("file/write", params)["outcome"], "applied");
        match is_agent {
            true => command(&world, &mut other, line),
            false => shell(&world, line),
        }
        agent.sync();
        user::write(&world.path("f"), new);
        agent.sync();
        let right = ["user completely", "user other", "user content"];
        assert_eq!(blame(&mut agent, "f"), right, "{line:?}");
        let undone = undo(&mut agent, "a");
        assert_eq!(on_disk(&world, "f").unwrap(), new, "{line:?} {undone:#}");
        if is_agent {
            // What `b` removed cannot come back in its place, which is said.
            let undone = undo(&mut agent, "b");
            assert_eq!(outcomes(&undone), ["f conflict"], "{undone:#}");
            assert_eq!(on_disk(&world, "f").unwrap(), new);
        }
        world.healthy();
    }
}

#[test]
fn hist9_a_name_at_a_version_is_the_file_that_had_it_then() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut other = world.session("b");
    let all = written(&world, &mut agent, "f");
    let then = agent.client.ok("sync", json!({}))["clock"].clone();
    command(&world, &mut other, "mv f g");
    user::write(&world.path("f"), "another\nfile\n");
    agent.sync();
    let content = |agent: &mut Session, path: &str, at: Value| {
        let params = json!({"path": path, "at": at});
        let answer = agent.client.ok("file/content", params);
        text(&answer, "text")
    };
    assert_eq!(content(&mut agent, "f", then.clone()), all);
    assert_eq!(content(&mut agent, "f", json!("now")), "another\nfile\n");
    // Under its new name, it is the same file.
    assert_eq!(content(&mut agent, "g", then), all);
    let ask = json!({"path": "f"});
    let blame = agent.client.ok("file/blame", ask);
    assert_eq!(blame["lines"].as_array().unwrap().len(), 2, "{blame:#}");
    world.healthy();
}

#[test]
fn undo1_a_file_that_was_moved_over_another_one_goes_back() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut other = world.session("b");
    let all = written(&world, &mut agent, "f");
    world.file("g", "the old\ncontent\nof g\n");
    agent.read("g");
    command(&world, &mut other, "mv f g");
    agent.sync();
    assert_eq!(known(&mut agent, "g"), ["agent:a by a", "user mine"]);
    let undone = undo(&mut agent, "b");
    assert_eq!(on_disk(&world, "f").as_ref(), Some(&all), "{undone:#}");
    assert_eq!(
        on_disk(&world, "g").unwrap(),
        "the old\ncontent\nof g\n",
        "{undone:#}"
    );
    agent.client.ok("redo", json!({}));
    assert_eq!(on_disk(&world, "f"), None);
    assert_eq!(on_disk(&world, "g").unwrap(), all);
    world.healthy();
}

/// A directory and then a file of it, with an answer in between. The name in the
/// middle is no session's, so nothing else says that its file has left it.
#[test]
fn hist9_a_file_that_was_moved_twice_keeps_its_lines() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("src/other", "other\n");
    agent.read("src/other");
    let all = written(&world, &mut agent, "doc/f");
    let before = known(&mut agent, "doc/f");
    shell(&world, "mv doc moved");
    assert_eq!(known(&mut agent, "moved/f"), before);
    shell(&world, "mv moved/f src/f");
    assert_eq!(known(&mut agent, "src/f"), before);
    undo(&mut agent, "a");
    let without = all.replace("by a\n", "line 2\n");
    assert_eq!(on_disk(&world, "src/f"), Some(without));
    assert_eq!(on_disk(&world, "moved/f"), None);
    world.healthy();
}

/// The agent removes a file, the user makes another one of that name, and the
/// agent moves that one away.
#[test]
fn undo1_a_file_that_took_the_name_of_a_removed_one_is_moved_back() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", ten());
    agent.read("f");
    command(&world, &mut agent, "rm f");
    world.file("f", "mine 1\nmine 2\nmine 3\n");
    agent.sync();
    command(&world, &mut agent, "mv f g");
    let undone = undo(&mut agent, "a");
    assert_eq!(outcomes(&undone), ["f restored", "g renamed"]);
    let mine = "mine 1\nmine 2\nmine 3\n";
    assert_eq!(on_disk(&world, "f").unwrap(), mine);
    assert_eq!(on_disk(&world, "g"), None);
    world.healthy();
}

fn rename(world: &World, from: &str, to: &str) {
    let to = world.path(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(world.path(from), to).unwrap();
}

/// No session has read the file under its new name before the agent edits it.
#[test]
fn hist9_a_file_that_an_agent_finds_under_its_new_name_keeps_its_lines() {
    for is_off in [false, true] {
        let mut world = World::new();
        let mut agent = world.session("a");
        let all = written(&world, &mut agent, "f");
        if is_off {
            world.stop();
        }
        rename(&world, "f", "lib/deep/g");
        if is_off {
            world.start();
        }
        let mut other = world.session("b");
        other.sync();
        other.read("lib/deep/g");
        let all = all.replace("line 5", "five");
        let params = json!({"path": "lib/deep/g", "text": all});
        assert_eq!(other.ok("file/write", params)["outcome"], "applied");
        let right = ["agent:a by a", "agent:b five", "user mine"];
        assert_eq!(known(&mut other, "lib/deep/g"), right, "{is_off}");
        world.healthy();
    }
}

/// The user moves a file and appends a line while no daemon runs. The author of
/// the line is unknown: neither the session that writes the file next, nor the
/// session with an open edit of the old name.
#[test]
fn hist9_what_was_typed_into_a_file_that_was_moved_unseen_is_no_agents() {
    for (asks_first, commits) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut world = World::new();
        let mut agent = world.session("a");
        let all = written(&world, &mut agent, "f");
        agent.read("f");
        let begun = agent.ok("edit/begin", json!({"files": [{"path": "f"}]}));
        world.stop();
        rename(&world, "f", "lib/g");
        user::append(&world.path("lib/g"), "typed\n");
        world.start();
        let mut agent = world.session("a");
        let mut other = world.session("b");
        other.sync();
        other.read("lib/g");
        if asks_first {
            other.client.ok("file/history", json!({"path": "f"}));
            known(&mut other, "lib/g");
        }
        if commits {
            agent.ok("edit/commit", json!({"edit": text(&begun, "edit")}));
        }
        let all = format!("{all}typed\n").replace("line 5", "five");
        let params = json!({"path": "lib/g", "text": all});
        assert_eq!(other.ok("file/write", params)["outcome"], "applied");
        let right = ["agent:a by a", "agent:b five", "user mine", "unknown typed"];
        assert_eq!(known(&mut other, "lib/g"), right, "{asks_first} {commits}");
        world.healthy();
    }
}

/// What is asked about a name records that a file was found there. Nothing is
/// recorded when it leaves again.
#[test]
fn hist9_a_file_that_was_found_and_goes_back_keeps_its_lines() {
    let mut world = World::new();
    let mut agent = world.session("a");
    written(&world, &mut agent, "src/f");
    let before = known(&mut agent, "src/f");
    world.stop();
    rename(&world, "src/f", "src/g");
    world.start();
    let mut agent = world.session("a");
    agent.sync();
    assert_eq!(known(&mut agent, "src/g"), before);
    rename(&world, "src/g", "src/f");
    agent.sync();
    assert_eq!(known(&mut agent, "src/f"), before);
    world.healthy();
}

/// The two moves are recorded together.
#[test]
fn hist9_what_was_written_between_two_moves_keeps_its_author() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let all = written(&world, &mut agent, "src/f");
    rename(&world, "src", "moved");
    agent.sync();
    agent.read("moved/f");
    let params = json!({"path": "moved/f", "text": all.replace("line 5", "five")});
    assert_eq!(agent.ok("file/write", params)["outcome"], "applied");
    rename(&world, "moved/f", "src/f");
    agent.sync();
    let right = ["agent:a by a", "agent:a five", "user mine"];
    assert_eq!(known(&mut agent, "src/f"), right);
    world.healthy();
}

/// The user removes a file, and an agent's new file takes its name.
#[test]
fn hist9_an_agents_new_file_that_takes_the_name_of_a_removed_one_is_no_save() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", ten());
    agent.read("f");
    fs::remove_file(world.path("f")).unwrap();
    agent.sync();
    let params = json!({"path": "g", "text": "one\ntwo\nthree\n"});
    agent.ok("file/write", params);
    rename(&world, "g", "f");
    agent.sync();
    let right = ["agent:a one", "agent:a two", "agent:a three"];
    assert_eq!(blame(&mut agent, "f"), right);
    world.healthy();
}

/// No session uses the name between its removal by a command and the next read.
#[test]
fn hist9_what_the_user_wrote_at_a_name_that_was_free_is_not_the_next_agents() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", ten());
    command(&world, &mut agent, "sed -i 's/line 2/by a/' f");
    command(&world, &mut agent, "rm f");
    user::write(&world.path("f"), "mine 1\nmine 2\nmine 3\n");
    agent.read("f");
    let params = json!({"path": "f", "text": "mine 1\nmine 2\nby a\n"});
    assert_eq!(agent.ok("file/write", params)["outcome"], "applied");
    let right = ["user mine 1", "user mine 2", "agent:a by a"];
    assert_eq!(blame(&mut agent, "f"), right);
    world.healthy();
}

/// The user makes another file at the name of one that an agent removed.
#[test]
fn undo1_lines_of_a_replaced_file_that_come_back_keep_their_authors() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut remover = world.session("b");
    world.file("f", ten());
    agent.read("f");
    let params = json!({"path": "f", "text": "one\ntwo\nthree\nfour\n"});
    assert_eq!(agent.ok("file/write", params)["outcome"], "applied");
    remover.read("f");
    command(&world, &mut remover, "rm f");
    let params = json!({"path": "f", "text": "other 1\nother 2\n"});
    remover.ok("file/write", params);
    user::write(&world.path("f"), "other 1\nmine\n");
    remover.sync();
    let last = blame(&mut agent, "f");
    undo(&mut agent, "b");
    let lines = blame(&mut agent, "f");
    let by_agent = ["one", "two", "three", "four"].map(|line| format!("agent:a {line}"));
    assert!(
        by_agent.iter().all(|line| lines.contains(line)),
        "{lines:?}"
    );
    agent.client.ok("redo", json!({}));
    assert_eq!(blame(&mut agent, "f"), last);
    let again = on_disk(&world, "f");
    undo(&mut agent, "b");
    assert_eq!(blame(&mut agent, "f"), lines, "{again:?}");
    world.healthy();
}

/// The session has never used the name that the undo takes away.
#[test]
fn undo1_a_second_undo_of_a_file_that_git_had_replaced_is_as_the_first() {
    let mut world = World::new();
    world.file("f", ten());
    shell(&world, "git init -q && git add -A && git commit -qm base");
    let [mut a, mut b] = ["a", "b"].map(|name| world.session(name));
    a.read("f");
    command(&world, &mut b, "rm f");
    user::write(&world.path("f"), "mine 1\nmine 2\n");
    b.sync();
    a.read("f");
    let empty = json!({"path": "f", "text": ""});
    assert_eq!(a.ok("file/write", empty)["outcome"], "applied");
    command(&world, &mut a, "git checkout -q -- f");
    let first = undo(&mut a, "a");
    assert_eq!(on_disk(&world, "f").unwrap(), "mine 1\nmine 2\n");
    a.client.ok("redo", json!({"undo": first["undo"]}));
    assert_eq!(on_disk(&world, "f").unwrap(), ten());
    undo(&mut a, "a");
    assert_eq!(on_disk(&world, "f").unwrap(), "mine 1\nmine 2\n");
    world.healthy();
}

#[test]
fn undo1_a_directory_that_was_moved_back_keeps_its_lines() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut mover = world.session("b");
    let all = written(&world, &mut agent, "src/f");
    mover.read("src/f");
    let before = known(&mut agent, "src/f");
    command(&world, &mut mover, "mv src moved");
    undo(&mut agent, "b");
    assert_eq!(on_disk(&world, "src/f"), Some(all.clone()));
    assert_eq!(known(&mut agent, "src/f"), before);
    agent.client.ok("redo", json!({}));
    assert_eq!(known(&mut agent, "moved/f"), before);
    undo(&mut agent, "b");
    assert_eq!(on_disk(&world, "src/f"), Some(all));
    assert_eq!(known(&mut agent, "src/f"), before);
    assert_eq!(on_disk(&world, "moved/f"), None);
    world.healthy();
}

/// The user moves a file, and an agent's command moves it back.
#[test]
fn undo1_a_file_that_a_command_moved_back_gets_the_users_name() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut mover = world.session("b");
    let all = written(&world, &mut agent, "src/f");
    rename(&world, "src/f", "g");
    agent.sync();
    command(&world, &mut mover, "mv g src/f");
    undo(&mut agent, "b");
    assert_eq!(on_disk(&world, "g"), Some(all));
    assert_eq!(on_disk(&world, "src/f"), None);
    world.healthy();
}

#[test]
fn hist9_an_undo_of_a_removal_brings_no_line_back_that_it_removes() {
    for name in ["a.rs", "b.rs"] {
        let mut world = World::new();
        let mut agent = world.session("a");
        let mut mover = world.session("b");
        for other in ["a.rs", "b.rs"] {
            let path = format!("src/{other}");
            world.file(&path, ten().replace("line", &format!("{other} line")));
            agent.read(&path);
        }
        let path = format!("src/{name}");
        let before = on_disk(&world, &path).unwrap();
        let text = format!("{before}by a\n");
        agent.ok("file/write", json!({"path": path, "text": text}));
        command(&world, &mut mover, "mv src moved");
        command(&world, &mut agent, &format!("rm moved/{name}"));
        let undone = undo(&mut agent, "a");
        let log = agent.client.call("file/log", json!({}));
        assert_eq!(
            on_disk(&world, &format!("moved/{name}")),
            Some(before),
            "{undone:#}\n{log:#?}"
        );
        world.healthy();
    }
}

#[test]
fn hist9_what_is_decided_within_a_burst_stays_after_a_search() {
    let mut world = World::new();
    let mut agent = world.session("a");
    for path in ["src/a.rs", "src/b.rs"] {
        world.file(path, ten().replace("line", &format!("{path} line")));
        agent.read(path);
    }
    let text = on_disk(&world, "src/b.rs").unwrap() + "mine\n";
    user::replace(&world.path("src/b.rs"), &text);
    agent.sync();
    shell(&world, "mv src moved");
    agent.sync();
    let text = on_disk(&world, "moved/a.rs").unwrap() + "by a\n";
    agent.read("moved/a.rs");
    agent.ok("file/write", json!({"path": "moved/a.rs", "text": text}));
    // No session has seen the name that this one gets.
    shell(&world, "mkdir new; mv moved/a.rs new/x.rs");
    agent.sync();
    let last = |agent: &mut Session, path| blame(agent, path).pop().unwrap();
    assert_eq!(last(&mut agent, "new/x.rs"), "agent:a by a");
    assert_eq!(last(&mut agent, "moved/b.rs"), "user mine");
    world.healthy();
}

#[test]
fn hist9_a_file_that_was_moved_and_saved_where_no_session_looks_moves_on() {
    let mut world = World::new();
    let mut agent = world.session("a");
    for path in ["src/a.rs", "src/b.rs"] {
        world.file(path, ten().replace("line", &format!("{path} line")));
        agent.read(path);
    }
    shell(&world, "mv src moved");
    agent.sync();
    let saved = on_disk(&world, "moved/b.rs").unwrap() + "mine\n";
    user::write(&world.path("moved/b.rs"), &saved);
    agent.sync();
    // It gets the name that a file had which the session has seen.
    shell(&world, "mkdir src; mv moved/b.rs src/a.rs");
    agent.sync();
    let right = saved.lines().map(|line| match line {
        "mine" => "user mine".to_owned(),
        line => format!("unknown {line}"),
    });
    assert_eq!(blame(&mut agent, "src/a.rs"), right.collect::<Vec<_>>());
    world.healthy();
}

#[test]
fn hist9_a_file_that_was_moved_and_replaced_gets_its_name_back() {
    for (from, to, line) in [("f", "g", "mv f g"), ("d/f", "e/f", "mv d e")] {
        let mut world = World::new();
        let mut agent = world.session("a");
        world.file(from, ten());
        agent.read(from);
        command(&world, &mut agent, line);
        let params = json!({"path": from, "text": "new 1\nnew 2\n", "createDirectories": true});
        agent.ok("file/write", params);
        let undone = undo(&mut agent, "a");
        let is = |path| on_disk(&world, path);
        assert_eq!([is(from), is(to)], [Some(ten()), None], "{line} {undone:#}");
        world.healthy();
    }
}

/// The user has moved a committed file where no session looks. An agent's git
/// brings it back under its old name, an undo removes that one, and a redo
/// brings it back.
#[test]
fn hist9_a_file_that_an_undo_has_removed_went_nowhere() {
    let mut world = World::new();
    let text = "line one\nline two\n";
    world.file("f", text);
    shell(
        &world,
        "git init -q -b main && git add f && git commit -qm f",
    );
    rename(&world, "f", "moved");
    let mut agent = world.session("a");
    command(&world, &mut agent, "git checkout -q .");
    for _ in 0..2 {
        let undone = undo(&mut agent, "a");
        assert_eq!(on_disk(&world, "f"), None, "{undone}");
        assert_eq!(on_disk(&world, "moved").as_deref(), Some(text), "{undone}");
        // A request about the other file starts a search for it.
        blame(&mut agent, "moved");
        agent.client.ok("redo", json!({"undo": undone["undo"]}));
        assert_eq!(on_disk(&world, "f").as_deref(), Some(text), "{undone}");
    }
    world.healthy();
}
