//! `touchmark mcp`, driven line by line in both versions of the protocol.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use touchmark_tests::fetched;
use touchmark_tests::mcp::{ERAS, Era, RESULT};
use touchmark_tests::process::{daemons_below, signal, wait_gone};
use touchmark_tests::{Mcp, World, authors, paths, text};

const CHANGES: &str = "touchmark://changes";

/// The script that validates arguments with the schemas.
const VALIDATOR: &str = "\
import json, sys
from jsonschema import Draft202012Validator as Validator
for case in json.load(sys.stdin):
    Validator.check_schema(case['schema'])
    Validator(case['schema']).validate(case['value'])
";

fn mcp(world: &World, era: Era) -> Mcp {
    Mcp::start(world.command(&["mcp"]), era)
}

/// Returns the only session that an MCP client opened.
fn session(world: &World) -> Value {
    let sessions = world.client().ok("session/list", json!({}));
    let of_mcp: Vec<&Value> = sessions["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|session| text(session, "session").starts_with("mcp-"))
        .collect();
    assert_eq!(of_mcp.len(), 1, "{sessions}");
    of_mcp[0].clone()
}

#[test]
fn every_tool_does_what_it_says_in_both_eras() {
    for era in ERAS {
        let world = World::new();
        world.file("a.txt", "one\ntwo\n");
        let mut mcp = mcp(&world, era);

        let read = mcp.call("read_file", json!({"path": "a.txt"}));
        assert_eq!(
            read["content"],
            json!([{"type": "text", "text": "one\ntwo\n"}])
        );
        assert_eq!(read["_meta"][RESULT]["verdict"], "first");
        let again = mcp.call("read_file", json!({"path": world.path("a.txt")}));
        assert_eq!(again["_meta"][RESULT]["verdict"], "repeat");
        assert!(again["_meta"][RESULT].get("text").is_none());
        let said = "[File previously read: a.txt. Content unchanged since last read.]";
        assert_eq!(again["content"][0]["text"], said);
        let forced = mcp.done("read_file", json!({"path": "a.txt", "force": true}));
        assert_eq!(forced["text"], "one\ntwo\n");
        let lines = json!({"path": "a.txt", "startLine": 2, "endLine": 2, "force": true});
        assert_eq!(mcp.done("read_file", lines)["text"], "two\n");

        let edit = json!({"path": "a.txt", "oldString": "one", "newString": "1"});
        fs::write(world.path("a.txt"), "one\ntwo\nthree\n").unwrap();
        let status = mcp.done("file_status", json!({"path": "a.txt"}));
        assert_eq!(status["files"][0]["state"], "stale");
        assert_eq!(authors(&status["files"][0]), ["user"]);
        let refused = mcp.refused("edit_file", edit.clone());
        assert_eq!(refused["code"], "stale");
        assert_eq!(refused["path"], "a.txt");
        assert_eq!(authors(&refused), ["user"]);
        assert!(text(&refused, "hint").contains("read the file again"));

        let changed = mcp.done("changed_files", json!({}));
        assert_eq!(paths(changed["changes"].as_array().unwrap()), ["a.txt"]);
        assert!(changed.get("cursor").is_none(), "{changed}");
        assert_eq!(mcp.done("changed_files", json!({}))["changes"], json!([]));

        mcp.done("read_file", json!({"path": "a.txt"}));
        assert_eq!(mcp.done("edit_file", edit)["outcome"], "applied");
        assert_eq!(
            fs::read_to_string(world.path("a.txt")).unwrap(),
            "1\ntwo\nthree\n"
        );

        let checkpoint = mcp.done("checkpoint", json!({"action": "create", "label": "before"}));
        let new = json!({"path": "d/new.txt", "text": "new\n"});
        assert_eq!(mcp.refused("write_file", new)["code"], "notFound");
        let new = json!({"path": "d/new.txt", "text": "new\n", "createDirectories": true});
        assert_eq!(mcp.done("write_file", new)["version"]["kind"], "created");
        fs::write(world.path("a.txt"), "the user's\n").unwrap();
        let listed = mcp.done("checkpoint", json!({"action": "list"}));
        assert_eq!(listed["checkpoints"][0]["label"], "before");
        let since = json!({"action": "detect", "checkpoint": checkpoint["checkpoint"]});
        let edited = mcp.done("checkpoint", since);
        let edited = paths(edited["files"].as_array().unwrap());
        assert_eq!(edited, ["a.txt", "d/new.txt"]);

        let found = mcp.done("grep", json!({"pattern": "use.'s", "glob": "*.txt"}));
        assert_eq!(found["matches"][0]["path"], "a.txt");
        let history = mcp.done("who_changed", json!({"path": "a.txt", "limit": 2}));
        assert_eq!(history["versions"][0]["author"]["kind"], "user");
        assert_eq!(history["versions"][1]["author"]["kind"], "agent");
        assert!(history["more"].is_string());

        let open = session(&world);
        assert_eq!(
            open["agent"],
            json!({"name": "test-client", "version": "7"})
        );
        assert_eq!(open["open"], true);
        assert!(mcp.end().success());
        assert_eq!(session(&world)["open"], false);
    }
}

#[test]
fn what_goes_in_is_what_the_schemas_say() {
    for era in ERAS {
        let world = World::new();
        world.file("a.txt", "one\n");
        world.file("b.txt", "one\n");
        let mut mcp = mcp(&world, era);
        let tools = mcp.request("tools/list", json!({}));
        let size = tools["result"].to_string().len();
        assert!(size < 12_000, "each session of a model pays {size} bytes");
        let tools = tools["result"]["tools"].as_array().unwrap().clone();
        let names: Vec<String> = tools.iter().map(|tool| text(tool, "name")).collect();
        assert_eq!(
            names,
            [
                "changed_files",
                "checkpoint",
                "edit_file",
                "file_status",
                "grep",
                "read_file",
                "who_changed",
                "write_file"
            ]
        );
        for tool in &tools {
            let hints = &tool["annotations"];
            let writes =
                ["edit_file", "write_file", "checkpoint"].contains(&text(tool, "name").as_str());
            assert_eq!(hints["readOnlyHint"], !writes, "{tool}");
            assert_eq!(hints["openWorldHint"], false, "{tool}");
            for hint in ["destructiveHint", "idempotentHint"] {
                assert!(hints[hint].is_boolean(), "{tool}");
            }
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            // It would oblige to structured content, which models get in
            // place of the text.
            assert!(tool.get("outputSchema").is_none(), "{tool}");
            let takes = tool["inputSchema"].to_string();
            assert!(
                !takes.contains("null"),
                "strict clients know no null: {takes}"
            );
            assert!(!takes.contains("file_path"), "{takes}");
            for noise in ["format", "$ref", "$defs", "$schema", "default", "oneOf"] {
                assert!(!takes.contains(&format!("\"{noise}\":")), "{takes}");
            }
        }

        let mut cases = Vec::new();
        let mut try_it = |tool: &str, arguments: Value| {
            let of = |name: &str| {
                let place = names.iter().position(|found| found == tool).unwrap();
                tools[place][name].clone()
            };
            let result = mcp.call(tool, arguments.clone());
            assert!(result.get("structuredContent").is_none(), "{result}");
            assert!(!text(&result["content"][0], "text").is_empty(), "{result}");
            if result["isError"] == false {
                cases.push(json!({"schema": of("inputSchema"), "value": arguments}));
            }
        };
        try_it("read_file", json!({"path": "a.txt"}));
        try_it("read_file", json!({"path": "a.txt"}));
        try_it(
            "read_file",
            json!({"path": "a.txt", "startLine": 1, "force": true}),
        );
        try_it("read_file", json!({"path": "none"}));
        try_it("read_file", json!({"path": "../out"}));
        fs::write(world.path("a.txt"), "two\n").unwrap();
        try_it("file_status", json!({}));
        try_it(
            "edit_file",
            json!({"path": "a.txt", "oldString": "two", "newString": "2"}),
        );
        try_it("write_file", json!({"path": "a.txt", "text": "x"}));
        try_it("write_file", json!({"path": "b.txt", "text": "x"}));
        try_it("changed_files", json!({}));
        try_it("changed_files", json!({"path": "a.txt"}));
        try_it("write_file", json!({"path": "c.txt", "text": "x"}));
        try_it(
            "write_file",
            json!({"path": "a.txt", "text": "x", "force": true}),
        );
        try_it(
            "edit_file",
            json!({"path": "c.txt", "oldString": "x", "newString": "y"}),
        );
        try_it(
            "edit_file",
            json!({"path": "c.txt", "oldString": "x", "newString": "y"}),
        );
        try_it("grep", json!({"pattern": "x", "context": 1}));
        try_it("grep", json!({"pattern": "("}));
        try_it("who_changed", json!({"path": "a.txt"}));
        try_it("who_changed", json!({"path": "a.txt", "before": "1:1"}));
        try_it("checkpoint", json!({"action": "create"}));
        try_it("checkpoint", json!({"action": "list"}));
        try_it("checkpoint", json!({"action": "detect", "time": 1}));
        try_it("checkpoint", json!({"action": "detect"}));
        try_it("file_status", json!({"paths": ["a"]}));

        let what = "arguments against the tools' schemas";
        let Some(python) = fetched::python("mcp-python", &["mcp==2.3.0"], what) else {
            return;
        };
        let mut validator = Command::new(python)
            .args(["-c", VALIDATOR])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        serde_json::to_writer(validator.stdin.take().unwrap(), &cases).unwrap();
        assert!(validator.wait().unwrap().success());
    }
}

#[test]
fn a_model_reads_labels_and_never_an_id() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let mut mcp = mcp(&world, Era::Handshake);
    mcp.done("read_file", json!({"path": "a.txt"}));
    let mut other = world.session("the-other-agents-id");
    other.read("a.txt");
    other.ok("file/write", json!({"path": "a.txt", "text": "two\n"}));
    let sessions = world.client().ok("session/list", json!({}));
    let labels: Vec<(String, String)> = sessions["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (text(row, "session"), text(row, "label")))
        .collect();
    assert_eq!(labels.len(), 2, "{sessions}");
    let edit = json!({"path": "a.txt", "oldString": "two", "newString": "2"});
    let read = mcp.request("resources/read", json!({"uri": CHANGES}));
    let mut said = vec![text(&read["result"]["contents"][0], "text")];
    for (tool, arguments) in [
        ("file_status", json!({})),
        ("edit_file", edit.clone()),
        ("changed_files", json!({})),
        ("read_file", json!({"path": "a.txt"})),
        ("edit_file", edit),
        ("who_changed", json!({"path": "a.txt"})),
    ] {
        said.push(text(&mcp.call(tool, arguments)["content"][0], "text"));
    }
    for (id, label) in labels {
        let own = id.starts_with("mcp-");
        assert!(
            !said.iter().any(|text| text.contains(&id)),
            "{id}: {said:#?}"
        );
        let name = if own { "this session" } else { &label };
        let named = said.iter().filter(|text| text.contains(name)).count();
        // The resource, the status, the refusal, the changes, the history.
        assert!(named >= if own { 1 } else { 5 }, "{name}: {said:#?}");
    }
}

#[test]
fn whoever_subscribes_is_told_that_something_changed() {
    for era in ERAS {
        let mut world = World::new();
        world.file("a.txt", "one\n");
        world.file("mine.txt", "one\n");
        let mut mcp = mcp(&world, era);
        mcp.done("read_file", json!({"path": "a.txt"}));
        mcp.done("read_file", json!({"path": "mine.txt"}));
        let listed = mcp.request("resources/list", json!({}));
        assert_eq!(listed["result"]["resources"][0]["uri"], CHANGES);

        let id = match era {
            Era::Handshake => {
                let subscribed = mcp.request("resources/subscribe", json!({"uri": CHANGES}));
                assert!(subscribed.get("result").is_some(), "{subscribed}");
                None
            }
            Era::Stateless => {
                let wanted = json!({"notifications": {"resourceSubscriptions": [CHANGES, "x://y"],
                    "toolsListChanged": true}});
                let id = mcp.ask("subscriptions/listen", wanted);
                let accepted = mcp.notification();
                assert_eq!(
                    accepted["method"],
                    "notifications/subscriptions/acknowledged"
                );
                assert_eq!(
                    accepted["params"]["notifications"],
                    json!({"resourceSubscriptions": [CHANGES]})
                );
                Some(id)
            }
        };
        let told = |mcp: &mut Mcp| {
            let note = mcp.notification();
            assert_eq!(note["method"], "notifications/resources/updated", "{note}");
            assert_eq!(note["params"]["uri"], CHANGES);
            let subscription = &note["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
            assert_eq!(subscription.as_u64(), id, "{note}");
        };
        fs::write(world.path("a.txt"), "two\n").unwrap();
        told(&mut mcp);
        // A look takes nothing.
        for _ in 0..2 {
            let read = mcp.request("resources/read", json!({"uri": CHANGES}));
            let untold = read["result"]["contents"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned();
            let untold: Value = serde_json::from_str(&untold).unwrap();
            assert_eq!(paths(untold["changes"].as_array().unwrap()), ["a.txt"]);
        }
        assert_eq!(
            paths(
                mcp.done("changed_files", json!({}))["changes"]
                    .as_array()
                    .unwrap()
            ),
            ["a.txt"]
        );

        // What the session itself writes is no news to it.
        let edit = json!({"path": "mine.txt", "oldString": "one", "newString": "1"});
        mcp.done("edit_file", edit);
        mcp.done("file_status", json!({}));
        assert_eq!(mcp.noted(), Vec::<Value>::new());

        // A daemon that goes away is followed; what happened meanwhile is told.
        world.kill();
        fs::write(world.path("a.txt"), "three\n").unwrap();
        world.start();
        told(&mut mcp);

        if let Some(id) = id {
            // An open request does not keep the server from ending, and is answered.
            drop(mcp.noted());
            let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": {"requestId": id}});
            mcp.say(&cancelled);
            mcp.ask(
                "subscriptions/listen",
                json!({"notifications": {"resourceSubscriptions": [CHANGES]}}),
            );
        } else {
            let over = mcp.request("resources/unsubscribe", json!({"uri": CHANGES}));
            assert!(over.get("result").is_some(), "{over}");
            drop(mcp.noted());
            fs::write(world.path("a.txt"), "four\n").unwrap();
            mcp.done("file_status", json!({}));
            assert_eq!(mcp.noted(), Vec::<Value>::new());
        }
        assert!(mcp.end().success());
        assert_eq!(session(&world)["open"], false);
    }
}

#[test]
fn changes_count_as_told_only_when_they_were_delivered() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let mut mcp = mcp(&world, Era::Handshake);
    mcp.done("read_file", json!({"path": "a.txt"}));
    fs::write(world.path("a.txt"), "two\n").unwrap();
    // Cancelled before it is answered: both lines are there at once.
    let id = mcp.ask(
        "tools/call",
        json!({"name": "changed_files", "arguments": {}}),
    );
    mcp.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    let mut told = 0;
    let next = mcp.ask(
        "tools/call",
        json!({"name": "changed_files", "arguments": {}}),
    );
    loop {
        let message = mcp.message();
        let changes = &message["result"]["_meta"][RESULT]["changes"];
        told += changes.as_array().unwrap().len();
        if message["id"] == next {
            break;
        }
        assert_eq!(message["id"], id);
    }
    // Whichever of the two was answered has told it.
    assert!(told >= 1, "no client received it");
    assert_eq!(mcp.done("changed_files", json!({}))["changes"], json!([]));
}

#[test]
fn hostile_input_ends_nothing() {
    for era in ERAS {
        let world = World::new();
        world.file("a.txt", "one\n");
        let mut mcp = Mcp::raw(world.command(&["mcp"]), era);
        let garbage: &[&[u8]] = &[
            b"",
            b"\xff\xfe\x00",
            b"{",
            b"null",
            b"[]",
            b"{\"jsonrpc\":\"2.0\"}",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
            b"{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":4}}",
            &[b'['; 100_000],
            &[b'x'; 200_000],
        ];
        let throw = |mcp: &mut Mcp| garbage.iter().for_each(|line| mcp.write(line));
        throw(&mut mcp);
        // Requests that do not name their client: no era is chosen by them.
        mcp.say(&json!({"jsonrpc": "2.0", "id": "early", "method": "tools/list"}));
        loop {
            let message = mcp.message();
            if message["id"] == "early" {
                assert!(message["error"]["code"].is_i64(), "{message}");
                break;
            }
            assert!(message["error"]["code"].is_i64(), "{message}");
        }
        if era == Era::Handshake {
            let hello = json!({"protocolVersion": "1999-01-01", "capabilities": {},
                "clientInfo": {"name": "x".repeat(10_000), "version": "\u{0}\u{202e}"}});
            let id = mcp.ask("initialize", hello);
            assert!(mcp.answer(id)["result"]["protocolVersion"].is_string());
        }
        let refused = [
            (
                "tools/call",
                json!({"name": "no_such_tool", "arguments": {}}),
            ),
            ("tools/call", json!({"name": 7})),
            ("resources/read", json!({"uri": "file:///etc/passwd"})),
            ("resources/read", json!({"uri": "touchmark://changes/../x"})),
            ("prompts/get", json!({"name": "x"})),
            ("no/such", json!({})),
        ];
        for (method, params) in refused {
            let answer = mcp.request(method, params);
            assert!(answer["error"]["message"].is_string(), "{method}: {answer}");
        }
        if era == Era::Handshake {
            let answer = mcp.request("resources/subscribe", json!({"uri": "x://y"}));
            assert!(answer["error"]["message"].is_string(), "{answer}");
        }
        throw(&mut mcp);
        let wrong = [
            ("read_file", json!({}), "invalidParams"),
            ("read_file", json!({"path": 7}), "invalidParams"),
            (
                "read_file",
                json!({"path": "a.txt", "session": "other"}),
                "invalidParams",
            ),
            (
                "read_file",
                json!({"path": "a.txt", "startLine": 0}),
                "invalidParams",
            ),
            (
                "read_file",
                json!({"path": "a.txt", "startLine": -1}),
                "invalidParams",
            ),
            ("read_file", json!({"path": ""}), "notAFile"),
            ("read_file", json!({"path": "a\u{0}b"}), "invalidParams"),
            (
                "read_file",
                json!({"path": "/etc/passwd"}),
                "outsideWorkspace",
            ),
            ("read_file", json!({"path": "."}), "notAFile"),
            (
                "edit_file",
                json!({"path": "a.txt", "oldString": "x", "newString": "y"}),
                "notRead",
            ),
            (
                "write_file",
                json!({"path": "a.txt", "text": "y"}),
                "notRead",
            ),
            (
                "write_file",
                json!({"path": "../x", "text": "y"}),
                "outsideWorkspace",
            ),
            (
                "who_changed",
                json!({"path": "a.txt", "before": "not a clock"}),
                "invalidParams",
            ),
            ("checkpoint", json!({"action": "restore"}), "invalidParams"),
            (
                "checkpoint",
                json!({"action": "detect", "checkpoint": "none"}),
                "notFound",
            ),
            ("grep", json!({"pattern": "("}), "invalidParams"),
        ];
        for (tool, arguments, code) in wrong {
            let error = mcp.refused(tool, arguments.clone());
            assert_eq!(error["code"], code, "{tool} {arguments}: {error}");
            assert!(!text(&error, "hint").is_empty() && !text(&error, "message").is_empty());
        }
        assert_eq!(fs::read_to_string(world.path("a.txt")).unwrap(), "one\n");
        assert_eq!(
            mcp.done("read_file", json!({"path": "a.txt"}))["text"],
            "one\n"
        );
        assert!(mcp.end().success());
    }
}

#[test]
fn a_daemon_is_started_followed_and_done_without() {
    for era in ERAS {
        let world = World::asleep();
        world.file("a.txt", "one\n");
        // None may be started: the tools say so, and the server lives on.
        let mut without = Mcp::start(world.command(&["--no-start", "mcp"]), era);
        assert!(
            without
                .request("tools/list", json!({}))
                .get("result")
                .is_some()
        );
        for _ in 0..2 {
            let error = without.refused("read_file", json!({"path": "a.txt"}));
            assert_eq!(error["code"], "noDaemon");
            assert!(text(&error, "hint").contains("touchmark start"));
        }
        let read = without.request("resources/read", json!({"uri": CHANGES}));
        assert_eq!(read["error"]["data"]["error"]["code"], "noDaemon", "{read}");

        // Nothing is started before a tool is used.
        let mut mcp = mcp(&world, era);
        mcp.request("tools/list", json!({}));
        assert_eq!(daemons_below(world.workspace()), Vec::<u32>::new());
        assert_eq!(
            mcp.done("read_file", json!({"path": "a.txt"}))["verdict"],
            "first"
        );
        let [daemon] = daemons_below(world.workspace())[..] else {
            panic!("one daemon")
        };
        assert_eq!(
            without.done("read_file", json!({"path": "a.txt"}))["verdict"],
            "first"
        );

        // One that exits is replaced, and what the session knew is known.
        signal(daemon, Signal::KILL);
        wait_gone(daemon);
        assert_eq!(
            without.refused("file_status", json!({}))["code"],
            "noDaemon"
        );
        assert_eq!(
            mcp.done("read_file", json!({"path": "a.txt"}))["verdict"],
            "repeat"
        );
        assert_eq!(
            without.done("read_file", json!({"path": "a.txt"}))["verdict"],
            "repeat"
        );

        assert!(world.run(&["stop"]).status.success());
        assert!(mcp.end().success());
        assert!(without.end().success());
        assert_eq!(daemons_below(world.workspace()), Vec::<u32>::new());
    }
}

#[test]
fn a_server_that_cannot_start_a_daemon_says_so_and_lives_on() {
    let mut world = World::asleep();
    world.file("a.txt", "one\n");
    world.set_env("TOUCHMARK_BIN", "/no/such/program");
    let mut mcp = mcp(&world, Era::Stateless);
    for _ in 0..2 {
        let error = mcp.refused("read_file", json!({"path": "a.txt"}));
        assert_eq!(error["code"], "startFailed", "{error}");
        assert!(text(&error, "hint").contains("touchmark daemon"));
    }
    assert!(mcp.end().success());
}

#[test]
fn a_named_session_is_worked_for_and_not_closed() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let mut agent = world.session("the-agent");
    agent.read("a.txt");
    let mut by_variable = world.command(&["mcp"]);
    by_variable.env("TOUCHMARK_SESSION", "the-agent");
    let by_option = world.command(&["mcp", "--session", "the-agent"]);
    for command in [by_variable, by_option] {
        let mut mcp = Mcp::start(command, Era::Handshake);
        let read = mcp.done("read_file", json!({"path": "a.txt"}));
        assert_eq!(read["verdict"], "repeat");
        assert!(mcp.end().success());
        let sessions = world.client().ok("session/list", json!({}));
        let [session] = sessions["sessions"].as_array().unwrap().as_slice() else {
            panic!("{sessions}")
        };
        assert_eq!(session["session"], "the-agent");
        assert_eq!(session["open"], true);
    }
}

#[test]
fn a_signal_ends_the_server_and_its_session() {
    let world = World::new();
    world.file("a.txt", "one\n");
    for kind in [Signal::TERM, Signal::INT] {
        let mut mcp = mcp(&world, Era::Stateless);
        mcp.done("read_file", json!({"path": "a.txt"}));
        signal(mcp.pid(), kind);
        assert!(mcp.ended().success());
        let sessions = world.client().ok("session/list", json!({}));
        for session in sessions["sessions"].as_array().unwrap() {
            assert_eq!(session["open"], false, "{session}");
        }
    }
}

#[test]
fn what_the_page_says_can_be_run() {
    let page = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/agents/mcp.md"
    ));
    let page = page.unwrap();
    let snippets = |language: &str| -> Vec<String> {
        page.split(&format!("```{language}\n"))
            .skip(1)
            .map(|rest| rest.split("```").next().unwrap().to_owned())
            .collect()
    };
    let world = World::asleep();
    world.file(".git/HEAD", "");
    world.file("a.txt", "one\n");
    let run = |words: &[String]| {
        assert_eq!(words[0], "touchmark");
        let mut command = Command::new(touchmark_tests::world::binary());
        let root = world.workspace().to_str().unwrap();
        command.args(
            words[1..]
                .iter()
                .map(|word| word.replace("${workspaceFolder}", root)),
        );
        command.current_dir(world.workspace());
        world.dress(&mut command);
        command
    };
    let words = |value: &Value| -> Vec<String> {
        let values = value.as_array().unwrap().iter();
        values
            .map(|word| word.as_str().unwrap().to_owned())
            .collect()
    };
    let mut commands: Vec<Vec<String>> = Vec::new();
    for snippet in snippets("json") {
        let settings: Value = serde_json::from_str(&snippet).unwrap();
        let servers = settings.as_object().unwrap().values().next().unwrap();
        let server = &servers["touchmark"];
        commands.push(match &server["command"] {
            Value::String(program) => [vec![program.clone()], words(&server["args"])].concat(),
            list => words(list),
        });
    }
    for snippet in snippets("toml") {
        let line = |name: &str| {
            let found = snippet
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name} = ")));
            serde_json::from_str::<Value>(found.unwrap()).unwrap()
        };
        let program = line("command").as_str().unwrap().to_owned();
        commands.push([vec![program], words(&line("args"))].concat());
    }
    assert_eq!(commands.len(), 5);
    for command in &commands {
        for era in ERAS {
            let mut mcp = Mcp::start(run(command), era);
            assert_eq!(
                mcp.done("read_file", json!({"path": "a.txt"}))["text"],
                "one\n"
            );
            assert!(mcp.end().success());
        }
    }
    // The names in the table are the tools there are.
    let mut mcp = Mcp::start(run(&commands[0]), Era::Handshake);
    let tools = mcp.request("tools/list", json!({}));
    let mut listed: Vec<String> = page
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned()))
        .collect();
    listed.sort();
    let tools = tools["result"]["tools"].as_array().unwrap().iter();
    assert_eq!(
        listed,
        tools.map(|tool| text(tool, "name")).collect::<Vec<_>>()
    );
    mcp.done("read_file", json!({"path": "a.txt"}));
    assert!(mcp.end().success());

    let sessions = world.run(&["sessions", "--json"]);
    let sessions: Value = serde_json::from_slice(&sessions.stdout).unwrap();
    let session = text(&sessions["sessions"][0], "session");
    let [shell] = &snippets("sh")[..] else {
        panic!("one script")
    };
    let mut command = Command::new("sh");
    command.args(["-euc", shell]).current_dir(world.workspace());
    world.dress(&mut command);
    let directory = touchmark_tests::world::binary()
        .parent()
        .unwrap()
        .to_owned();
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", directory.display()));
    command.env("SESSION", &session);
    assert!(command.stdin(Stdio::null()).status().unwrap().success());
    let left = world.run(&["sessions", "--json"]);
    assert!(!String::from_utf8_lossy(&left.stdout).contains(&session));
    assert!(world.run(&["stop"]).status.success());
}
