//! `touchmark lsp`, driven message by message, with a real daemon.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use touchmark_tests::framed::framed;
use touchmark_tests::process::{daemons_below, signal, until, wait_gone};
use touchmark_tests::world::{binary, finish};
use touchmark_tests::{Lsp, Session, World};

/// The author and evidence of a version that an editor has reported.
const SAVED: &str = "user editor";
const LINES: &str = "one\ntwo\nthree\nfour\n";

/// Returns a command for this world that names no workspace.
fn command(world: &World, args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    world.dress(&mut command);
    command.args(args).current_dir(world.outside());
    command
}

fn lsp(world: &World, options: &Value) -> Lsp {
    let mut lsp = Lsp::start(command(world, &["lsp"]), &json!({}), options);
    assert_eq!(lsp.welcome["serverInfo"]["name"], "touchmark");
    lsp.settings = Value::Null;
    lsp
}

/// Creates a world with `a.txt`, which the session `s` has read; its label is
/// `agent-1`.
fn world() -> (World, Session) {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", LINES);
    agent.read("a.txt");
    (world, agent)
}

/// Opens `a.txt`, and waits until the daemon answers about it.
fn opened(lsp: &mut Lsp, world: &World) -> String {
    let uri = lsp.open(&world.path("a.txt"));
    let nothing = json!({"uri": uri, "id": "none"});
    let asked = json!({"command": "touchmark.keep", "arguments": [nothing]});
    until("no daemon answers", || {
        !lsp.execute(&asked).contains("no daemon")
    });
    uri
}

/// Changes a line as the agent.
fn edit(agent: &mut Session, old: &str, new: &str) {
    let edit = json!({"path": "a.txt", "oldString": old, "newString": new});
    assert_eq!(agent.ok("file/edit", edit)["outcome"], "applied");
}

fn on_disk(world: &World) -> String {
    fs::read_to_string(world.path("a.txt")).unwrap()
}

#[test]
fn a_save_is_the_users() {
    for encodings in [json!(null), json!(["utf-16", "utf-8"])] {
        let (world, mut agent) = world();
        world.file("a.txt", "one\n𝄞 two\nthree\n");
        agent.read("a.txt");
        let mut story = agent.story("a.txt");
        let can = json!({"general": {"positionEncodings": encodings}});
        let mut lsp = Lsp::start(command(&world, &["lsp"]), &can, &Value::Null);
        let encoding = lsp.welcome["capabilities"]["positionEncoding"].clone();
        let is_utf8 = !encodings.is_null();
        assert_eq!(encoding, if is_utf8 { "utf-8" } else { "utf-16" });
        let uri = lsp.open(&world.path("a.txt"));
        agent.wait_unsaved("a.txt", false);

        // `𝄞 two` becomes `𝄞 zwei`.
        let (from, to) = if is_utf8 { (5, 8) } else { (3, 6) };
        lsp.change(&uri, (1, from), (1, to), "zwei");
        let lines = agent.wait_unsaved("a.txt", true);
        assert_eq!(lines, json!({"start": 2, "end": 2}));
        fs::write(world.path("a.txt"), "one\n𝄞 zwei\nthree\n").unwrap();
        lsp.saved(&uri);
        agent.wait_unsaved("a.txt", false);
        story.push(SAVED.to_owned());
        let story: Vec<&str> = story.iter().map(String::as_str).collect();
        agent.wait_saves("a.txt", &story);
        assert!(lsp.end().success());
    }
}

/// Saves as JetBrains' programs do: the older ones through a second file, the
/// newer ones in place, with a backup beside the file.
fn save_like_jetbrains(world: &World, text: &str, is_new: bool) {
    let [file, new, old] =
        ["a.txt", "a.txt___jb_tmp___", "a.txt___jb_old___"].map(|name| world.path(name));
    if is_new {
        fs::copy(&file, &old).unwrap();
        fs::write(&file, text).unwrap();
    } else {
        fs::write(&new, text).unwrap();
        fs::rename(&file, &old).unwrap();
        fs::rename(&new, &file).unwrap();
    }
    fs::remove_file(&old).unwrap();
}

#[test]
fn a_safe_write_of_jetbrains_is_one_save() {
    for (is_new, has_client) in [(false, false), (false, true), (true, false), (true, true)] {
        let (world, mut agent) = world();
        let mut lsp = has_client.then(|| {
            let mut lsp = lsp(&world, &Value::Null);
            let uri = opened(&mut lsp, &world);
            (lsp, uri)
        });
        let mut texts = ["mine\n".to_owned(), LINES.replace("two", "zwei")].into_iter();
        for (round, text) in texts.by_ref().enumerate() {
            if let Some((lsp, uri)) = &mut lsp {
                lsp.replace(uri, &text);
                agent.wait_unsaved("a.txt", true);
            }
            save_like_jetbrains(&world, &text, is_new);
            if let Some((lsp, uri)) = &mut lsp {
                lsp.saved(uri);
                agent.wait_unsaved("a.txt", false);
            }
            let by = if has_client { SAVED } else { "user unmarked" };
            agent.wait_saves("a.txt", &vec![by; round + 1]);
        }
        // The second file is no file of the agent's, and the log has no move.
        let log = agent.client.ok("file/log", json!({}));
        let entries = log["entries"].as_array().unwrap();
        let is_it = |entry: &Value| entry["version"]["path"] == "a.txt";
        assert!(!entries.is_empty() && entries.iter().all(is_it), "{log}");
    }
}

#[test]
fn what_an_editor_saves_as_it_ends_is_reported() {
    for is_killed in [false, true] {
        let (world, mut agent) = world();
        let mut lsp = lsp(&world, &Value::Null);
        let uri = opened(&mut lsp, &world);
        for _ in 0..20 {
            lsp.replace(&uri, "yours\n");
            lsp.replace(&uri, "mine\n");
        }
        fs::write(world.path("a.txt"), "mine\n").unwrap();
        lsp.saved(&uri);
        let ended = if is_killed {
            signal(lsp.pid(), Signal::TERM);
            lsp.close();
            lsp.ended()
        } else {
            lsp.end()
        };
        assert!(ended.success());
        assert_eq!(agent.saves("a.txt", true), [SAVED], "{is_killed}");
    }
}

#[test]
fn unsaved_changes_are_those_that_the_file_does_not_have() {
    let (world, mut agent) = world();
    let mut lsp = lsp(&world, &Value::Null);
    // Restored by the editor.
    let uri = lsp.open_as(&world.path("a.txt"), &LINES.replace("four", "vier"));
    let lines = agent.wait_unsaved("a.txt", true);
    assert_eq!(lines, json!({"start": 4, "end": 4}));
    // Undone to what was saved.
    lsp.replace(&uri, LINES);
    agent.wait_unsaved("a.txt", false);
    lsp.change(&uri, (1, 0), (1, 0), "new\n");
    let lines = agent.wait_unsaved("a.txt", true);
    assert_eq!(lines, json!({"start": 1, "end": 2}));
    lsp.notify(
        "textDocument/didClose",
        &json!({"textDocument": {"uri": uri}}),
    );
    agent.wait_unsaved("a.txt", false);
    // A server that ends without a word.
    let uri = lsp.open(&world.path("a.txt"));
    lsp.replace(&uri, "");
    agent.wait_unsaved("a.txt", true);
    drop(lsp);
    agent.wait_unsaved("a.txt", false);
}

#[test]
fn what_an_agent_has_written_stays_its_own() {
    let (world, mut agent) = world();
    let mut lsp = lsp(&world, &Value::Null);
    let uri = opened(&mut lsp, &world);
    edit(&mut agent, "two", "zwei");
    let story = agent.saves("a.txt", true);
    // Loaded again: nothing is unsaved.
    lsp.replace(&uri, &on_disk(&world));
    lsp.hover(&uri, 0);
    assert_eq!(agent.status("a.txt")["unsaved"], Value::Null);
    // Saved as it was loaded.
    fs::write(world.path("a.txt"), on_disk(&world)).unwrap();
    lsp.saved(&uri);
    // Saved, and written by another program before the editor says so.
    lsp.replace(&uri, "mine\n");
    agent.wait_unsaved("a.txt", true);
    fs::write(world.path("a.txt"), "another program's\n").unwrap();
    lsp.saved(&uri);
    agent.wait_unsaved("a.txt", false);
    assert!(lsp.end().success());
    let after = agent.saves("a.txt", true);
    assert_eq!(after.len(), story.len() + 1, "{after:?}");
    assert!(!after.contains(&SAVED.to_owned()), "{after:?}");
}

#[test]
fn an_editor_that_an_agent_runs_reports_nothing() {
    let (world, mut agent) = world();
    let mut by_agent = command(&world, &["lsp"]);
    by_agent.env("CLAUDECODE", "1");
    let mut lsp = Lsp::start(by_agent, &json!({}), &Value::Null);
    let uri = opened(&mut lsp, &world);
    lsp.replace(&uri, "mine\n");
    fs::write(world.path("a.txt"), "mine\n").unwrap();
    lsp.saved(&uri);
    let logged = lsp.note("window/logMessage");
    let logged = logged["message"].as_str().unwrap();
    assert!(logged.contains("an agent's program"), "{logged}");
    assert!(lsp.end().success());
    let story = agent.saves("a.txt", true);
    assert!(story.len() == 1 && story[0] != SAVED, "{story:?}");
}

#[test]
fn a_hover_names_the_author_of_a_saved_line() {
    let (world, mut agent) = world();
    edit(&mut agent, "two", "zwei");
    let mut lsp = lsp(&world, &Value::Null);
    let uri = opened(&mut lsp, &world);
    let by_agent = lsp.hover(&uri, 1).unwrap();
    assert!(by_agent.starts_with("Written by agent-1, "), "{by_agent}");
    lsp.change(&uri, (0, 0), (0, 0), "new\n");
    assert_eq!(lsp.hover(&uri, 0), None);
    assert_eq!(lsp.hover(&uri, 2), Some(by_agent.clone()));
    fs::write(world.path("a.txt"), "new\none\nzwei\nthree\nfour\n").unwrap();
    lsp.saved(&uri);
    until("the save is not reported", || {
        lsp.hover(&uri, 0)
            .is_some_and(|text| text.starts_with("Written by you, "))
    });
    // The file has other lines than the editor shows.
    fs::write(world.path("a.txt"), "zwei\nthree\n").unwrap();
    assert_eq!(lsp.hover(&uri, 0), None);
    assert_eq!(lsp.hover(&uri, 9_999), None);
    assert!(lsp.end().success());

    let mut lsp = self::lsp(&world, &json!({"hover": false}));
    let uri = lsp.open(&world.path("a.txt"));
    assert_eq!(lsp.hover(&uri, 1), None);
}

#[test]
fn hints_are_shown_if_the_settings_say_so() {
    let (world, mut agent) = world();
    edit(&mut agent, "two\nthree", "zwei\ndrei");
    let can = json!({"workspace": {"configuration": true}});
    let mut lsp = Lsp::start(command(&world, &["lsp"]), &can, &Value::Null);
    let uri = opened(&mut lsp, &world);
    let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 4, "character": 0}});
    let asked = json!({"textDocument": {"uri": uri}, "range": all});
    let hints = |lsp: &mut Lsp| lsp.request("textDocument/inlayHint", &asked)["result"].take();
    assert_eq!(hints(&mut lsp), json!([]));
    lsp.settings = json!({"inlayHints": true});
    lsp.notify(
        "workspace/didChangeConfiguration",
        &json!({"settings": null}),
    );
    let mut shown = Value::Null;
    until("no hints", || {
        shown = hints(&mut lsp);
        shown != json!([])
    });
    let of_agent = shown.as_array().unwrap().iter();
    let of_agent = of_agent.filter(|hint| hint["label"].as_str().unwrap().starts_with("agent-1, "));
    let places: Vec<&Value> = of_agent.map(|hint| &hint["position"]).collect();
    assert_eq!(places, [&json!({"line": 1, "character": 4})], "{shown}");
}

#[test]
fn diagnostics_show_what_is_stale_and_what_waits_for_review() {
    let (world, mut agent) = world();
    world.session("reader").read("a.txt");
    let mut lsp = lsp(&world, &json!({"stale": true, "review": true}));
    let uri = opened(&mut lsp, &world);
    edit(&mut agent, "two", "zwei");
    lsp.replace(&uri, &on_disk(&world));
    let mut shown = Vec::new();
    until("no diagnostics", || {
        let published = lsp.note("textDocument/publishDiagnostics");
        assert_eq!(published["uri"], uri.as_str());
        shown = published["diagnostics"].as_array().unwrap().clone();
        shown.len() == 2
    });
    assert!(shown.iter().all(|one| one["severity"] == 4), "{shown:?}");
    assert_eq!(
        shown[0]["message"],
        "the copy of agent-2 is stale, changed by agent-1"
    );
    assert_eq!(shown[1]["message"], "to review: line 2 by agent-1");
    let range = json!({"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 4}});
    assert_eq!(shown[1]["range"], range);
    // They move with unsaved changes, and are not on lines that these affect.
    lsp.change(&uri, (0, 0), (0, 0), "new\n");
    let moved = lsp.note("textDocument/publishDiagnostics");
    assert_eq!(moved["diagnostics"][1]["range"]["start"]["line"], 2);
    lsp.change(&uri, (2, 0), (2, 1), "Z");
    let gone = lsp.note("textDocument/publishDiagnostics");
    assert_eq!(gone["diagnostics"].as_array().unwrap().len(), 1, "{gone}");
    lsp.replace(&uri, &on_disk(&world));
    let back = lsp.note("textDocument/publishDiagnostics");
    assert_eq!(back["diagnostics"].as_array().unwrap().len(), 2, "{back}");
    // Reviewed, and read again.
    assert_eq!(
        lsp.act(&uri, 1, "Keep"),
        "touchmark: kept a.txt: line 2 by agent-1"
    );
    world.session("reader").read("a.txt");
    until("the diagnostics stay", || {
        let published = lsp.note("textDocument/publishDiagnostics");
        published["diagnostics"] == json!([])
    });
}

#[test]
fn without_a_setting_there_are_no_diagnostics() {
    let (world, mut agent) = world();
    let mut lsp = lsp(&world, &Value::Null);
    let uri = opened(&mut lsp, &world);
    edit(&mut agent, "two", "zwei");
    lsp.replace(&uri, &on_disk(&world));
    assert_eq!(
        lsp.act(&uri, 1, "Keep"),
        "touchmark: kept a.txt: line 2 by agent-1"
    );
    assert!(lsp.end().success());
    assert!(lsp.noted("textDocument/publishDiagnostics").is_empty());
}

#[test]
fn a_change_is_kept_or_undone_by_a_code_action() {
    let (world, mut agent) = world();
    edit(&mut agent, "one", "eins");
    edit(&mut agent, "three", "drei");
    let mut lsp = lsp(&world, &Value::Null);
    let uri = opened(&mut lsp, &world);
    assert_eq!(lsp.actions(&uri, 1), Vec::<Value>::new());
    let titles = |actions: &[Value]| -> Vec<String> {
        let titles = actions.iter().map(|action| action["title"].as_str());
        titles.map(|title| title.unwrap().to_owned()).collect()
    };
    let actions = lsp.actions(&uri, 2);
    assert_eq!(
        titles(&actions),
        ["Keep line 3 by agent-1", "Undo line 3 by agent-1"]
    );

    // An undo changes the file on disk: not below unsaved changes.
    lsp.change(&uri, (3, 0), (3, 4), "vier");
    let told = lsp.act(&uri, 2, "Undo");
    assert!(told.contains("a.txt has unsaved changes"), "{told}");
    lsp.change(&uri, (3, 0), (3, 4), "four");
    let told = lsp.act(&uri, 2, "Undo");
    assert_eq!(
        told,
        "touchmark: undone: a.txt: line 3 by agent-1 (back: touchmark redo)"
    );
    assert_eq!(on_disk(&world), LINES.replace("one", "eins"));
    lsp.replace(&uri, &on_disk(&world));

    // The list is older than the file's last change.
    let chosen = lsp.actions(&uri, 0)[1]["command"].clone();
    assert_eq!(
        lsp.act(&uri, 0, "Keep"),
        "touchmark: kept a.txt: line 1 by agent-1"
    );
    let told = lsp.execute(&chosen);
    assert!(
        told.contains("the change is no longer as it was listed"),
        "{told}"
    );
    assert_eq!(on_disk(&world), LINES.replace("one", "eins"));
    assert_eq!(lsp.actions(&uri, 0), Vec::<Value>::new());
    assert_eq!(agent.ok("review/list", json!({}))["hunks"], json!([]));
}

#[test]
fn what_may_be_the_users_is_undone_only_at_their_word() {
    for is_mine in [true, false] {
        let (world, mut agent) = world();
        let mut lsp = lsp(&world, &Value::Null);
        let uri = opened(&mut lsp, &world);
        let window = agent.ok("command/begin", json!({"scope": "workspace"}));
        let changed = LINES.replace("two", "zwei");
        fs::write(world.path("a.txt"), &changed).unwrap();
        agent.ok("command/end", json!({"command": window["command"]}));
        lsp.replace(&uri, &changed);

        let actions = lsp.actions(&uri, 1);
        let of = |name: &str| actions.iter().find(|one| one["command"]["command"] == name);
        assert_eq!(of("touchmark.undo"), None, "{actions:#?}");
        let mut undo = of("touchmark.undoTheirs").unwrap()["command"].clone();
        undo["command"] = json!("touchmark.undo");
        let told = lsp.execute(&undo);
        assert!(told.contains("may be yours, so it stays"), "{told}");
        assert_eq!(on_disk(&world), changed);

        if is_mine {
            let told = lsp.act(&uri, 1, "Mine: line 2");
            assert!(
                told.starts_with("touchmark: yours: a.txt: line 2"),
                "{told}"
            );
            assert_eq!(on_disk(&world), changed);
            let hover = lsp.hover(&uri, 1).unwrap();
            assert!(hover.contains("you"), "{hover}");
        } else {
            let told = lsp.act(&uri, 1, "Not mine: undo line 2");
            assert!(
                told.starts_with("touchmark: undone: a.txt: line 2"),
                "{told}"
            );
            assert_eq!(on_disk(&world), LINES);
        }
        assert_eq!(agent.ok("review/list", json!({}))["hunks"], json!([]));
    }
}

#[test]
fn actions_on_save_change_nothing() {
    let (world, mut agent) = world();
    edit(&mut agent, "one", "eins");
    let mut lsp = lsp(&world, &Value::Null);
    let uri = opened(&mut lsp, &world);
    let place = json!({"line": 0, "character": 0});
    let params = json!({
        "textDocument": {"uri": uri},
        "range": {"start": place, "end": place},
        "context": {"diagnostics": [], "only": ["source.fixAll"]},
    });
    let answer = lsp.request("textDocument/codeAction", &params);
    assert_eq!(answer["result"], json!([]));
}

#[test]
fn a_file_belongs_to_the_workspace_that_contains_it() {
    let (world, mut agent) = world();
    let inner = world.path("inner");
    fs::create_dir_all(inner.join(".git")).unwrap();
    fs::write(inner.join("b.txt"), "b\n").unwrap();
    let mut lsp = lsp(&world, &json!({"start": true}));
    let outer = opened(&mut lsp, &world);
    let uri = lsp.open(&inner.join("b.txt"));
    until("no daemon was started", || daemons_below(&inner).len() == 1);
    lsp.replace(&outer, "mine\n");
    lsp.replace(&uri, "mine\n");
    agent.wait_unsaved("a.txt", true);
    let asked = |method: &str, params: &Value| -> Value {
        let (inner, params) = (inner.to_str().unwrap(), params.to_string());
        let args = ["--workspace", inner, "call", method, params.as_str()];
        let mut ask = command(&world, &args);
        ask.stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let output = finish(ask.spawn().unwrap(), method);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let read = json!({"session": "inner", "path": "b.txt"});
    asked("file/read", &read);
    let status = json!({"session": "inner", "paths": ["b.txt"]});
    until("b.txt is not unsaved", || {
        asked("file/status", &status)["files"][0]["unsaved"] == true
    });
    assert!(lsp.end().success());
    for daemon in daemons_below(&inner) {
        signal(daemon, Signal::TERM);
        wait_gone(daemon);
    }
}

#[test]
fn without_a_daemon_the_editor_is_not_disturbed() {
    let mut world = World::asleep();
    world.file("a.txt", LINES);
    fs::create_dir(world.path(".git")).unwrap();
    let mut lsp = lsp(&world, &Value::Null);
    let uri = lsp.open(&world.path("a.txt"));
    let logged = lsp.note("window/logMessage");
    let logged = logged["message"].as_str().unwrap();
    assert!(logged.contains("no daemon answers"), "{logged}");
    lsp.replace(&uri, "mine\n");
    for _ in 0..20 {
        assert_eq!(lsp.hover(&uri, 0), None);
        assert_eq!(lsp.actions(&uri, 0), Vec::<Value>::new());
    }
    assert!(daemons_below(world.workspace()).is_empty());

    // One that starts later is told all.
    world.start();
    let mut agent = world.session("s");
    agent.read("a.txt");
    agent.wait_unsaved("a.txt", true);
    // So is the next one.
    world.restart();
    let mut agent = world.session("s");
    agent.wait_unsaved("a.txt", true);
    fs::write(world.path("a.txt"), "mine\n").unwrap();
    lsp.saved(&uri);
    agent.wait_unsaved("a.txt", false);
    agent.wait_saves("a.txt", &[SAVED]);
    assert!(lsp.end().success());
    assert!(lsp.noted("window/showMessage").is_empty());
    assert!(lsp.noted("window/logMessage").is_empty(), "logged twice");
}

#[test]
fn a_file_of_no_project_is_left_alone() {
    let world = World::asleep_in(Path::new("/tmp"));
    world.file("a.txt", LINES);
    let mut lsp = lsp(&world, &json!({"start": true}));
    let uri = lsp.open(&world.path("a.txt"));
    lsp.replace(&uri, "mine\n");
    lsp.saved(&uri);
    for other in ["untitled:Untitled-1", "file://host/a.txt"] {
        let item = json!({"uri": other, "languageId": "x", "version": 1, "text": ""});
        lsp.notify("textDocument/didOpen", &json!({"textDocument": item}));
        assert_eq!(lsp.hover(other, 0), None);
    }
    assert_eq!(lsp.hover(&uri, 0), None);
    assert!(daemons_below(world.workspace()).is_empty());
    assert!(lsp.end().success());
    assert!(lsp.noted("window/logMessage").is_empty());
}

#[test]
fn messages_that_are_wrong_are_answered_and_survived() {
    let (world, mut agent) = world();
    let mut lsp = Lsp::raw(command(&world, &["lsp", "--stdio"]));
    let code = |answer: Value| answer["error"]["code"].clone();
    let early = lsp.request("textDocument/hover", &json!({}));
    assert_eq!(code(early), -32002);
    lsp.notify("textDocument/didOpen", &json!({}));
    let params = json!({"capabilities": {"general": {"positionEncodings": "all"}}});
    assert!(lsp.request("initialize", &params)["result"].is_object());
    lsp.notify("initialized", &json!({}));
    assert_eq!(code(lsp.request("initialize", &params)), -32600);
    assert_eq!(code(lsp.request("textDocument/rename", &json!({}))), -32601);
    assert_eq!(
        code(lsp.request("textDocument/hover", &json!({"position": 1}))),
        -32602
    );
    let unknown = json!({"command": "rm", "arguments": []});
    assert_eq!(
        code(lsp.request("workspace/executeCommand", &unknown)),
        -32602
    );
    lsp.write(framed("{\"jsonrpc\": nonsense").as_bytes());
    lsp.write(framed(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#).as_bytes());
    lsp.write(framed(r#"{"jsonrpc":"2.0","id":77,"result":null}"#).as_bytes());
    for method in ["didOpen", "didChange", "didSave", "didClose"] {
        lsp.notify(
            &format!("textDocument/{method}"),
            &json!({"textDocument": []}),
        );
    }
    // A file that was never opened; places that the text does not have.
    lsp.saved("file:///nowhere");
    let uri = opened(&mut lsp, &world);
    lsp.change(&uri, (9, 9), (0, 0), "end");
    agent.wait_unsaved("a.txt", true);
    assert!(lsp.noted("window/showMessage").is_empty());
    assert_eq!(lsp.request("shutdown", &Value::Null)["result"], Value::Null);
    assert_eq!(code(lsp.request("textDocument/hover", &json!({}))), -32600);
    lsp.notify("exit", &Value::Null);
    assert!(lsp.ended().success());
}

#[test]
fn it_ends_as_it_is_told() {
    let world = World::new();
    let start = || lsp(&world, &Value::Null);
    let mut without_shutdown = start();
    without_shutdown.notify("exit", &Value::Null);
    assert_eq!(without_shutdown.ended().code(), Some(1));
    // Kate 22.12 sends `shutdown` without an id.
    let mut without_id = start();
    without_id.notify("shutdown", &json!({}));
    without_id.notify("exit", &json!({}));
    assert!(without_id.ended().success());
    let mut closed = start();
    closed.close();
    assert!(closed.ended().success());
    let mut lost = start();
    lost.write(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(lost.ended().code(), Some(1));
    let mut by_signal = start();
    signal(by_signal.pid(), Signal::TERM);
    assert!(by_signal.ended().success());
}
