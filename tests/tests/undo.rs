//! UNDO: one author's changes are undone, and other authors lose no line. The
//! truth is the files' content.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use touchmark_tests::hooks::Talk;
use touchmark_tests::{Session, World, snippets, text, user};

/// Returns ten lines, `line 1` to `line 10`.
fn ten() -> String {
    (1..=10).map(|n| format!("line {n}\n")).collect()
}

fn on_disk(world: &World, path: &str) -> Option<String> {
    fs::read_to_string(world.path(path)).ok()
}

/// Writes a file through touchmark, with a part of it replaced.
fn edit(world: &World, agent: &mut Session, path: &str, old: &str, new: &str) {
    let now = on_disk(world, path).unwrap();
    agent.read(path);
    let params = json!({"path": path, "text": now.replace(old, new)});
    assert_eq!(agent.ok("file/write", params)["outcome"], "applied");
}

fn undo(agent: &mut Session, mut params: Value) -> Value {
    params["session"] = json!("a");
    agent.client.ok("undo", params)
}

/// Returns the outcome of each file, as `path outcome`.
fn outcomes(undone: &Value) -> Vec<String> {
    let files = undone["files"].as_array().unwrap().iter();
    files
        .map(|file| format!("{} {}", text(file, "path"), text(file, "outcome")))
        .collect()
}

#[test]
fn undo1_only_that_authors_lines_go_and_come_back() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut other = world.session("b");
    world.file("f", ten());
    world.file("untouched", ten());
    edit(&world, &mut agent, "f", "line 2\n", "two\n");
    edit(&world, &mut other, "f", "line 5\n", "line 5\nby b\n");
    let now = on_disk(&world, "f").unwrap();
    user::replace(&world.path("f"), &now.replace("line 9", "mine"));
    edit(&world, &mut agent, "f", "line 10\n", "line 10\nnew\n");
    edit(&world, &mut agent, "untouched", "line 3\n", "");
    let before = on_disk(&world, "f").unwrap();

    let planned = undo(&mut agent, json!({"dryRun": true}));
    assert_eq!(outcomes(&planned), ["f undone", "untouched undone"]);
    assert_eq!(on_disk(&world, "f").unwrap(), before);

    let undone = undo(&mut agent, json!({}));
    assert_eq!(outcomes(&undone), ["f undone", "untouched undone"]);
    let left = ten()
        .replace("line 5\n", "line 5\nby b\n")
        .replace("line 9", "mine");
    assert_eq!(on_disk(&world, "f").unwrap(), left);
    assert_eq!(on_disk(&world, "untouched").unwrap(), ten());
    // It is the user's doing, and the agent is told so.
    assert_eq!(agent.story("f").last().unwrap(), "user editor");
    assert_eq!(agent.state("f"), "stale");
    // Nothing is left to undo.
    let again = undo(&mut agent, json!({}));
    assert_eq!(outcomes(&again), ["f unchanged", "untouched unchanged"]);
    assert_eq!(again["undo"], Value::Null);

    // And back, with what was saved since.
    user::replace(&world.path("f"), &format!("first\n{left}"));
    let redone = agent.client.ok("redo", json!({}));
    assert_eq!(outcomes(&redone), ["f undone", "untouched undone"]);
    assert_eq!(on_disk(&world, "f").unwrap(), format!("first\n{before}"));
    world.healthy();
}

#[test]
fn undo1_what_a_redo_put_back_is_undone_again() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", ten());
    edit(&world, &mut agent, "f", "line 2\n", "two\nnew\n");
    edit(&world, &mut agent, "f", "line 5\n", "");
    edit(&world, &mut agent, "f", "line 10\n", "ten\n");
    let mut mine = ten();
    for round in ["one", "two"] {
        undo(&mut agent, json!({}));
        assert_eq!(on_disk(&world, "f").unwrap(), mine, "{round}");
        mine = format!("{round}\n{mine}behind {round}\n");
        user::replace(&world.path("f"), &mine);
        agent.client.ok("redo", json!({}));
        let now = on_disk(&world, "f").unwrap();
        let redone = mine
            .replace("line 2\n", "two\nnew\n")
            .replace("line 5\n", "");
        assert_eq!(now, redone.replace("line 10\n", "ten\n"), "{round}");
        world.stop();
        world.start();
        agent = world.session("a");
    }
    // An editor that had read the file before an undo saves it after the undo.
    undo(&mut agent, json!({}));
    mine = format!("{mine}saved\n");
    let stale = mine
        .replace("line 2\n", "two\nnew\n")
        .replace("line 5\n", "");
    user::replace(&world.path("f"), &stale.replace("line 10\n", "ten\n"));
    // It is in the queue of the review again.
    let queue = agent.client.ok("review/list", json!({}));
    assert_eq!(queue["hunks"].as_array().unwrap().len(), 3, "{queue:#}");
    let undone = undo(&mut agent, json!({}));
    assert_eq!(outcomes(&undone), ["f undone"]);
    assert_eq!(on_disk(&world, "f").unwrap(), mine);
    world.healthy();
}

#[test]
fn undo1_what_somebody_has_changed_since_stays_and_is_told() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", ten());
    edit(&world, &mut agent, "f", "line 2\n", "two\n");
    edit(&world, &mut agent, "f", "line 7\n", "seven\n");
    let now = on_disk(&world, "f").unwrap();
    user::replace(&world.path("f"), &now.replace("two", "mine"));
    let undone = undo(&mut agent, json!({}));
    assert_eq!(outcomes(&undone), ["f partly"]);
    let conflicts = undone["files"][0]["conflicts"].as_array().unwrap();
    assert_eq!(conflicts.len(), 1, "{undone}");
    assert_eq!(conflicts[0]["lines"], json!({"start": 2, "end": 2}));
    assert_eq!(conflicts[0]["by"]["kind"], "user");
    assert_eq!(conflicts[0]["before"], "line 2\n");
    assert_eq!(
        on_disk(&world, "f").unwrap(),
        ten().replace("line 2", "mine")
    );
    // Again, with markers.
    let marked = undo(&mut agent, json!({"conflicts": "markers"}));
    assert_eq!(outcomes(&marked), ["f undone"], "{marked}");
    let with_markers = ten().replace(
        "line 2\n",
        "<<<<<<< now\nmine\n=======\nline 2\n>>>>>>> before\n",
    );
    assert_eq!(on_disk(&world, "f").unwrap(), with_markers);
    world.healthy();
}

#[test]
fn undo1_files_that_came_went_and_moved() {
    let mut world = World::new();
    let mut agent = world.session("a");
    for name in ["gone", "old name"] {
        world.file(name, ten());
        agent.read(name);
    }
    fs::set_permissions(world.path("old name"), fs::Permissions::from_mode(0o755)).unwrap();
    let make = |agent: &mut Session, path: &str| {
        let params = json!({"path": path, "text": "1\n2\n3\n", "createDirectories": true});
        agent.ok("file/write", params);
    };
    make(&mut agent, "made");
    make(&mut agent, "d/e/shared");
    user::replace(&world.path("d/e/shared"), "1\n2\nmine\n3\n");
    let begun = agent.ok("command/begin", json!({"label": "rm and mv"}));
    fs::remove_file(world.path("gone")).unwrap();
    fs::rename(world.path("old name"), world.path("new name")).unwrap();
    agent
        .client
        .ok("command/end", json!({"command": begun["command"]}));
    user::overwrite(&world.path("new name"), &ten().replace("line 4", "mine"));

    let undone = undo(&mut agent, json!({}));
    assert_eq!(
        outcomes(&undone),
        [
            "d/e/shared undone",
            "gone restored",
            "made deleted",
            "new name renamed",
            "old name restored"
        ],
        "{undone}"
    );
    assert_eq!(on_disk(&world, "d/e/shared").unwrap(), "mine\n");
    assert_eq!(on_disk(&world, "gone").unwrap(), ten());
    assert_eq!(on_disk(&world, "made"), None);
    assert_eq!(on_disk(&world, "new name"), None);
    assert_eq!(
        on_disk(&world, "old name").unwrap(),
        ten().replace("line 4", "mine")
    );
    let mode = fs::metadata(world.path("old name"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);

    let redone = agent.client.ok("redo", json!({}));
    assert!(redone["undo"].is_string(), "{redone}");
    assert_eq!(on_disk(&world, "d/e/shared").unwrap(), "1\n2\nmine\n3\n");
    assert_eq!(on_disk(&world, "gone"), None);
    assert_eq!(on_disk(&world, "made").unwrap(), "1\n2\n3\n");
    assert_eq!(
        on_disk(&world, "new name").unwrap(),
        ten().replace("line 4", "mine")
    );
    assert_eq!(on_disk(&world, "old name"), None);
    let mode = fs::metadata(world.path("new name")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o755);
    world.healthy();
}

#[test]
fn undo1_a_file_stays_where_its_old_name_cannot_be_given_back() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("d/old", ten());
    agent.read("d/old");
    let begun = agent.ok("command/begin", json!({"label": "mv"}));
    fs::rename(world.path("d/old"), world.path("new")).unwrap();
    agent
        .client
        .ok("command/end", json!({"command": begun["command"]}));
    // A file where the directory was.
    fs::remove_dir(world.path("d")).unwrap();
    world.file("d", "mine\n");
    let undone = undo(&mut agent, json!({}));
    assert_eq!(on_disk(&world, "new").unwrap(), ten(), "{undone}");
    assert_eq!(on_disk(&world, "d").unwrap(), "mine\n", "{undone}");
    // It can, and then the newer one cannot.
    fs::remove_file(world.path("d")).unwrap();
    agent.sync();
    undo(&mut agent, json!({}));
    assert_eq!(on_disk(&world, "d/old").unwrap(), ten());
    assert_eq!(on_disk(&world, "new"), None);
    world.file("new/mine", "mine\n");
    let redone = agent.client.ok("redo", json!({}));
    assert_eq!(on_disk(&world, "d/old").unwrap(), ten(), "{redone}");
    world.healthy();
}

#[test]
fn undo2_one_edit_one_version_one_prompt_and_some_files() {
    let mut world = World::new();
    let mut agent = world.session("a");
    for name in ["f", "src/g"] {
        world.file(name, ten());
    }
    agent.ok("checkpoint/create", json!({"message": "first"}));
    edit(&world, &mut agent, "f", "line 1\n", "one\n");
    agent.ok("checkpoint/create", json!({"message": "second"}));
    edit(&world, &mut agent, "f", "line 3\n", "three\n");
    edit(&world, &mut agent, "src/g", "line 3\n", "three\n");
    edit(&world, &mut agent, "f", "line 5\n", "five\n");
    let one = ten().replace("line 1\n", "one\n");
    let three = one.replace("line 3\n", "three\n");
    let is = |content: &str| assert_eq!(on_disk(&world, "f").unwrap(), content);

    undo(&mut agent, json!({"last": true}));
    is(&three);
    undo(&mut agent, json!({"paths": ["src"]}));
    is(&three);
    assert_eq!(on_disk(&world, "src/g").unwrap(), ten());
    undo(&mut agent, json!({"prompt": "second"}));
    is(&one);
    agent.client.ok("redo", json!({}));
    is(&three);
    undo(&mut agent, json!({"prompt": "last"}));
    is(&one);
    let versions = agent.client.ok("file/history", json!({"path": "f"}));
    let first = versions["versions"].as_array().unwrap().iter().rev();
    let first = first
        .clone()
        .find(|version| version["author"]["kind"] == "agent")
        .unwrap();
    let at = json!({"path": "f", "at": first["clock"]});
    agent.client.ok("undo", at);
    is(&ten());
    let listed = agent.client.ok("undo/list", json!({}));
    assert_eq!(listed["undos"].as_array().unwrap().len(), 6, "{listed}");
    world.healthy();
}

#[test]
fn undo3_wrong_words_change_nothing() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", ten());
    edit(&world, &mut agent, "f", "line 2\n", "two\n");
    let before = on_disk(&world, "f");
    let refused = |agent: &mut Session, params: Value, name: &str| {
        let error = agent.client.call("undo", params).unwrap_err();
        assert_eq!(error.name, name, "{error:?}");
    };
    refused(&mut agent, json!({}), "invalidParams");
    refused(&mut agent, json!({"session": "nobody"}), "unknownSession");
    refused(
        &mut agent,
        json!({"session": "a", "edit": "e99"}),
        "notFound",
    );
    refused(
        &mut agent,
        json!({"session": "a", "prompt": "x"}),
        "notFound",
    );
    refused(&mut agent, json!({"path": "f"}), "invalidParams");
    refused(
        &mut agent,
        json!({"path": "../f", "at": "1"}),
        "outsideWorkspace",
    );
    let begun = agent.begin("f", None).unwrap();
    agent.abort(&begun);
    // What may not be written stays; the rest is undone. With the same lines
    // this could be `f` under another name.
    let other = ten().replace("line", "other");
    world.file("h", &other);
    edit(&world, &mut agent, "h", "other 2\n", "two\n");
    fs::remove_file(world.path("f")).unwrap();
    fs::create_dir(world.path("f")).unwrap();
    let undone = undo(&mut agent, json!({}));
    assert_eq!(on_disk(&world, "h").unwrap(), other, "{undone}");
    assert!(world.path("f").is_dir());
    assert!(before.is_some());
    world.healthy();
}

#[test]
fn undo4_a_turn_is_not_undone_while_it_goes_on_and_the_agent_is_told() {
    let mut world = World::new();
    world.file("a.txt", ten());
    let mut talk = Talk::new(&world, "claude", "s-undone-while-it-works");
    talk.start().nothing();
    talk.prompt("p1", "go").nothing();
    talk.read("a.txt").nothing();
    talk.edit("a.txt", "line 2", "two");
    let mut client = world.client();
    let ask = json!({"session": "s-undone-while-it-works"});
    let error = client.call("undo", ask.clone()).unwrap_err();
    assert_eq!(error.name, "busy", "{error:?}");
    // Nor by a daemon that has read the turn from its store.
    world.restart();
    let talk = Talk::new(&world, "claude", "s-undone-while-it-works");
    let mut client = world.client();
    let error = client.call("undo", ask.clone()).unwrap_err();
    assert_eq!(error.name, "busy", "{error:?}");
    assert_eq!(
        on_disk(&world, "a.txt").unwrap(),
        ten().replace("line 2", "two")
    );
    talk.say(&talk.voice.stop());
    client.ok("undo", ask);
    assert_eq!(on_disk(&world, "a.txt").unwrap(), ten());
    world.restart();
    let talk = Talk::new(&world, "claude", "s-undone-while-it-works");
    let told = talk.prompt("p2", "go on").told();
    assert!(
        told.contains("undone changes of yours, on purpose, in \"a.txt\" (lines 2)"),
        "{told}"
    );
    world.healthy();
}

#[test]
fn sec3_what_is_forgotten_is_in_no_undo_either() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut other = world.session("b");
    world.file("f", ten());
    world.file("g", ten());
    edit(&world, &mut agent, "f", "line 2\n", "two of a\n");
    edit(&world, &mut other, "g", "line 2\n", "two of b\n");
    undo(&mut agent, json!({}));
    other.client.ok("undo", json!({"session": "b"}));
    let undos = |client: &mut touchmark_tests::Client| {
        let listed = client.ok("undo/list", json!({}));
        listed["undos"].as_array().unwrap().len()
    };
    let mut client = world.client();
    assert_eq!(undos(&mut client), 2);
    client.ok("session/close", json!({"session": "a", "forget": true}));
    assert_eq!(undos(&mut client), 1);
    client.ok("contents/forget", json!({}));
    assert_eq!(undos(&mut client), 0);
    world.healthy();
}

#[test]
fn undo_on_the_command_line() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", ten());
    edit(&world, &mut agent, "f", "line 2\n", "two\n");
    let run = |args: &[&str]| {
        let output = world.run(args);
        let out = String::from_utf8(output.stdout).unwrap();
        (
            output.status.code().unwrap(),
            out,
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    // There is no user to ask.
    let (code, _, said) = run(&["undo", "a"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("--yes"), "{said}");
    let (code, _, said) = run(&["undo", "f"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("touchmark undo SESSION -- f"), "{said}");
    let (code, out, said) = run(&["undo", "a", "--dry-run"]);
    assert_eq!(code, 0, "{said}");
    assert!(out.contains("undo  f"), "{out}");
    let (code, out, said) = run(&["undo", "a", "--yes", "--json"]);
    assert_eq!(code, 0, "{said}");
    let undone: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(outcomes(&undone), ["f undone"]);
    assert_eq!(undone["authors"][0]["label"], "agent-1");
    assert_eq!(on_disk(&world, "f").unwrap(), ten());
    let (code, out, said) = run(&["redo", "--yes"]);
    assert_eq!(code, 0, "{said}");
    assert!(out.contains("put back  f"), "{out}");
    assert_eq!(
        on_disk(&world, "f").unwrap(),
        ten().replace("line 2\n", "two\n")
    );
    let (_, out, _) = run(&["undo", "--list"]);
    assert!(out.contains("redid  u1"), "{out}");
    world.healthy();
}

#[test]
fn the_page_about_undo_runs() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/undo.md");
    let world = World::asleep();
    world.file(".touchmark.toml", "");
    for snippet in snippets::of(page.as_ref()) {
        if snippet.language == "sh" {
            drop(snippets::run_shell(&world, "undo.md", &snippet));
        }
    }
    assert_eq!(
        on_disk(&world, "cart.txt").unwrap(),
        "apples\nplums\nhoney\nmilk\n"
    );
    let _ = world.run(&["stop"]);
}
