//! "Duplicate Detection": tool calls that repeat earlier ones.

use serde_json::{Value, json};
use touchmark_tests::{Session, World, text, user};

fn check(agent: &mut Session, tool: &str, args: Value) -> Value {
    agent.ok("call/check", json!({"tool": tool, "args": args}))
}

/// Returns how much a call repeats an earlier one.
fn duplicate(agent: &mut Session, tool: &str, args: Value) -> String {
    text(&check(agent, tool, args), "duplicate")
}

fn record(agent: &mut Session, tool: &str, args: Value, result: Value) -> Value {
    let params = json!({"tool": tool, "args": args, "result": result});
    agent.ok("call/record", params)["callId"].clone()
}

fn stats(agent: &mut Session) -> Value {
    agent.ok("call/stats", json!({}))
}

fn world_of(config: &str) -> World {
    let mut world = World::asleep();
    world.configure(config);
    world.start();
    world
}

#[test]
fn read_package_json_twice() {
    let world = World::new();
    let mut agent = world.session("user-123");
    world.file("package.json", "{ \"name\": \"plue\" }\n");
    let args = json!({"filePath": "package.json"});
    let first = check(&mut agent, "readFile", args.clone());
    assert_eq!(first, json!({"duplicate": "none", "cached": false}));
    let result = json!("{ \"name\": \"plue\" }\n");
    let call = record(&mut agent, "readFile", args.clone(), result.clone());
    let second = check(&mut agent, "readFile", args);
    assert_eq!(second["duplicate"], "identical", "{second}");
    assert_eq!(second["cached"], true, "{second}");
    assert_eq!(second["result"], result, "{second}");
    assert_eq!(second["callId"], call, "{second}");
    assert_eq!(second["validity"], "verified", "{second}");
    assert!(second["ageMs"].is_u64(), "{second}");
    let message = text(&second, "message");
    let time = message
        .strip_prefix("[Cached result from ")
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or_else(|| panic!("{message}"));
    let parts: Vec<u32> = time.split(':').map(|part| part.parse().unwrap()).collect();
    assert!(
        time.len() == 8 && parts[0] < 24 && parts[1] < 60 && parts[2] < 60,
        "{message}"
    );
    let counts = stats(&mut agent);
    assert_eq!(
        (&counts["calls"], &counts["hits"], &counts["misses"]),
        (&json!(1), &json!(1), &json!(1)),
        "{counts}"
    );
    let saved = agent.ok("stats", json!({}));
    assert_eq!(saved["duplicateCalls"], 1, "{saved}");
    assert_eq!(saved["duplicateBytes"], result.to_string().len(), "{saved}");
}

#[test]
fn each_tool_by_its_own_rule() {
    let world = World::new();
    for (tool, call, alike, unlike) in [
        (
            "readFile",
            json!({"path": "a", "limit": 1}),
            json!({"file_path": "a", "limit": 2}),
            json!({"path": "b", "limit": 1}),
        ),
        (
            "grep",
            json!({"pattern": "x", "path": "src", "glob": "*.rs", "multiline": true,
                "caseInsensitive": true, "context": 1}),
            json!({"pattern": "x", "path": "src", "glob": "*.rs", "multiline": true,
                "caseInsensitive": true, "context": 5}),
            json!({"pattern": "x", "path": "src", "glob": "*.rs", "multiline": true}),
        ),
        (
            "writeFile",
            json!({"path": "a", "content": "1", "mode": 1}),
            json!({"path": "a", "content": "1"}),
            json!({"path": "a", "content": "2", "mode": 1}),
        ),
        (
            "multiedit",
            json!({"path": "a", "edits": [{"old": "1", "new": "2"}], "dry": true}),
            json!({"path": "a", "edits": [{"new": "2", "old": "1"}]}),
            json!({"path": "a", "edits": [{"old": "1", "new": "3"}], "dry": true}),
        ),
        (
            "webFetch",
            json!({"url": "https://example.invalid/", "timeout": 1}),
            json!({"url": "https://example.invalid/", "timeout": 2}),
            json!({"url": "https://example.invalid/2", "timeout": 1}),
        ),
        // No rule: more than half of what is said, or one identifier.
        (
            "lookUp",
            json!({"a": 1, "b": 2, "c": 3}),
            json!({"a": 1, "b": 2, "c": 9}),
            json!({"a": 1, "b": 8, "c": 9}),
        ),
        (
            "lookUp2",
            json!({"id": 7, "a": 1, "b": 2}),
            json!({"id": 7, "x": 1, "y": 2}),
            json!({"id": 8, "a": 1, "y": 2}),
        ),
    ] {
        let mut agent = world.session(tool);
        record(&mut agent, tool, call.clone(), json!("result"));
        let same = check(&mut agent, tool, call.clone());
        assert_eq!(same["duplicate"], "identical", "{tool}: {same}");
        assert_eq!(same["cached"], true, "{tool}: {same}");
        // Alike is never enough to put the earlier result in its place.
        let similar = check(&mut agent, tool, alike);
        assert_eq!(similar["duplicate"], "similar", "{tool}: {similar}");
        assert_eq!(similar["cached"], false, "{tool}: {similar}");
        assert_eq!(duplicate(&mut agent, tool, unlike), "none", "{tool}");
        assert_eq!(duplicate(&mut agent, "anotherTool", call), "none", "{tool}");
    }
    // What is only alike saves no call.
    let saved = world.client().ok("stats", json!({}));
    assert_eq!(saved["duplicateCalls"], 7, "{saved}");
}

#[test]
fn arguments_are_compared_in_canonical_form() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a", "1\n");
    let call = json!({"path": "./x/../a", "options": {"b": 1.0, "a": [null, "é"]}});
    record(&mut agent, "readFile", call, json!("1\n"));
    let absolute = world.path("a").to_string_lossy().into_owned();
    for path in ["a", "./a", &absolute] {
        let same = json!({"options": {"a": [null, "é"], "b": 1}, "path": path});
        assert_eq!(
            duplicate(&mut agent, "readFile", same),
            "identical",
            "{path}"
        );
    }
    let other = json!({"path": "a", "options": {"a": ["é", null], "b": 1}});
    assert_eq!(duplicate(&mut agent, "readFile", other), "similar");
    // What no workspace has is compared as it is spelled.
    let outside = json!({"path": "/etc/hosts"});
    record(&mut agent, "readFile", outside.clone(), json!("hosts"));
    let found = check(&mut agent, "readFile", outside);
    assert_eq!(found["duplicate"], "identical", "{found}");
    assert_eq!(found["validity"], "timed", "{found}");
    // No arguments are arguments.
    record(&mut agent, "now", Value::Null, json!(1));
    assert_eq!(duplicate(&mut agent, "now", Value::Null), "identical");
}

#[test]
fn tools_that_act_are_never_kept() {
    let world = World::new();
    let mut agent = world.session("s");
    for tool in [
        "unifiedExec",
        "writeStdin",
        "closePtySession",
        "listPtySessions",
    ] {
        let args = json!({"command": "ls"});
        assert_eq!(
            record(&mut agent, tool, args.clone(), json!("a")),
            Value::Null
        );
        assert_eq!(duplicate(&mut agent, tool, args), "none", "{tool}");
    }
    assert_eq!(stats(&mut agent)["calls"], 0);
}

#[test]
fn a_file_that_changed_makes_its_calls_new() {
    let world = World::new();
    let mut agent = world.session("s");
    for path in ["read", "unread", "gone"] {
        world.file(path, "1\n");
        let result = record(&mut agent, "readFile", json!({"path": path}), json!("1\n"));
        assert!(result.is_string(), "{path}");
    }
    // Watched by a read or not.
    agent.read("read");
    user::write(&world.path("read"), "2\n");
    user::replace(&world.path("unread"), "2\n");
    std::fs::remove_file(world.path("gone")).unwrap();
    for path in ["read", "unread", "gone"] {
        let args = json!({"path": path});
        assert_eq!(duplicate(&mut agent, "readFile", args), "none", "{path}");
    }
    // Written again as it was: nothing has changed.
    world.file("same", "1\n");
    record(
        &mut agent,
        "readFile",
        json!({"path": "same"}),
        json!("1\n"),
    );
    user::replace(&world.path("same"), "1\n");
    let same = check(&mut agent, "readFile", json!({"path": "same"}));
    assert_eq!(same["duplicate"], "identical", "{same}");
    let counts = stats(&mut agent);
    assert_eq!(counts["invalidated"], 3, "{counts}");
    assert_eq!(counts["calls"], 1, "{counts}");
    assert_eq!((&counts["hits"], &counts["misses"]), (&json!(1), &json!(3)));
    // A write of a file that was not there, and is there now.
    record(&mut agent, "exists", json!({"path": "new"}), json!(false));
    assert_eq!(
        duplicate(&mut agent, "exists", json!({"path": "new"})),
        "identical"
    );
    world.file("new", "1\n");
    assert_eq!(
        duplicate(&mut agent, "exists", json!({"path": "new"})),
        "none"
    );
}

#[test]
fn a_search_rests_on_what_it_found_and_where_it_looked() {
    let world = World::new();
    let mut agent = world.session("s");
    for path in ["src/a.rs", "src/b.rs", "src/c.rs", "doc/d.md"] {
        world.file(path, "export\n");
    }
    agent.read("src/c.rs");
    agent.read("doc/d.md");
    let grep = json!({"pattern": "export", "path": "src", "glob": "*.rs"});
    let again = |agent: &mut Session| {
        let mut params = json!({"tool": "grep", "args": grep, "result": ["..."]});
        params["paths"] = json!(["src/a.rs", "src/b.rs"]);
        agent.ok("call/record", params);
        let found = check(agent, "grep", grep.clone());
        assert_eq!(found["duplicate"], "identical", "{found}");
        assert_eq!(found["validity"], "verified", "{found}");
    };
    again(&mut agent);
    // A file that it found.
    user::write(&world.path("src/b.rs"), "import\n");
    assert_eq!(duplicate(&mut agent, "grep", grep.clone()), "none");
    again(&mut agent);
    // One that it did not find, and that is watched where it looked.
    user::write(&world.path("src/c.rs"), "export more\n");
    assert_eq!(duplicate(&mut agent, "grep", grep.clone()), "none");
    again(&mut agent);
    // One elsewhere.
    user::write(&world.path("doc/d.md"), "export more\n");
    assert_eq!(duplicate(&mut agent, "grep", grep.clone()), "identical");
    // In the whole workspace, spelled in each way.
    let top = world.workspace().to_string_lossy().into_owned();
    for (number, place) in [None, Some("."), Some("./"), Some(top.as_str())]
        .into_iter()
        .enumerate()
    {
        let mut args = json!({"pattern": "export"});
        if let Some(place) = place {
            args["path"] = json!(place);
        }
        for tool in ["grep", "findText"] {
            record(&mut agent, tool, args.clone(), json!([]));
            let found = check(&mut agent, tool, args.clone());
            assert_eq!(found["duplicate"], "identical", "{tool} {place:?}: {found}");
            assert_eq!(found["validity"], "timed", "{tool} {place:?}: {found}");
        }
        user::write(&world.path("doc/d.md"), &format!("export {number}\n"));
        for tool in ["grep", "findText"] {
            let found = duplicate(&mut agent, tool, args.clone());
            assert_eq!(found, "none", "{tool} {place:?}");
        }
    }
}

#[test]
fn the_last_three_calls_of_a_tool_are_compared() {
    let world = World::new();
    let mut agent = world.session("s");
    let fetch = |number: u32| json!({"url": format!("https://example.invalid/{number}")});
    for number in 1..=4 {
        record(&mut agent, "webFetch", fetch(number), json!(number));
        // Calls of other tools are not counted.
        record(&mut agent, "lookUp", json!({"id": number}), json!(number));
    }
    assert_eq!(duplicate(&mut agent, "webFetch", fetch(1)), "none");
    for number in 2..=4 {
        let found = check(&mut agent, "webFetch", fetch(number));
        assert_eq!(found["result"], number, "{found}");
    }
    // The newest of those that are the same.
    record(&mut agent, "webFetch", fetch(4), json!("newer"));
    assert_eq!(check(&mut agent, "webFetch", fetch(4))["result"], "newer");
}

#[test]
fn fifty_calls_are_kept_for_a_session() {
    let world = World::new();
    let mut agent = world.session("s");
    for number in 1..=53 {
        record(&mut agent, &format!("tool{number}"), json!({}), json!("r"));
    }
    let counts = stats(&mut agent);
    assert_eq!(counts["calls"], 50, "{counts}");
    assert_eq!(counts["evicted"], 3, "{counts}");
    // `{}` and `"r"`.
    assert_eq!(counts["bytes"], 50 * 5, "{counts}");
    assert_eq!(duplicate(&mut agent, "tool3", json!({})), "none");
    assert_eq!(duplicate(&mut agent, "tool4", json!({})), "identical");
}

#[test]
fn calls_are_bounded_in_number_and_bytes() {
    let world = world_of("[calls]\nkeep = 3\nbytes = 100\n");
    let mut agent = world.session("s");
    // A result that does not fit is remembered without its text.
    let args = json!({"id": 1});
    record(&mut agent, "lookUp", args.clone(), json!("x".repeat(200)));
    let found = check(&mut agent, "lookUp", args.clone());
    assert_eq!(found["duplicate"], "identical", "{found}");
    assert_eq!(found["cached"], false, "{found}");
    assert_eq!(found.get("result"), None, "{found}");
    // Several that fit only one by one.
    for number in 0..2 {
        let args = json!({"id": number});
        record(&mut agent, "lookUp", args, json!("x".repeat(60)));
    }
    assert_eq!(duplicate(&mut agent, "lookUp", args), "identical");
    let counts = stats(&mut agent);
    assert_eq!(counts["calls"], 1, "{counts}");
    assert_eq!(counts["bytes"], 8 + 62, "{counts}");
    for number in 0..5 {
        record(&mut agent, "say", json!({"id": number}), json!(1));
    }
    let counts = stats(&mut agent);
    assert_eq!(counts["calls"], 3, "{counts}");
    assert_eq!(counts["evicted"], 2 + 3, "{counts}");
}

#[test]
fn calls_grow_old() {
    let world = world_of("[calls]\nage = \"50 ms\"\n");
    let mut agent = world.session("s");
    let mut other = world.session("t");
    record(&mut agent, "say", json!({"id": 1}), json!(1));
    record(&mut other, "say", json!({"id": 1}), json!(1));
    // Time is what is tested here.
    user::pause(100);
    assert_eq!(duplicate(&mut agent, "say", json!({"id": 1})), "none");
    // A check in one session clears up in all of them.
    for session in [&mut agent, &mut other] {
        let counts = stats(session);
        assert_eq!(counts["calls"], 0, "{counts}");
        assert_eq!(counts["bytes"], 0, "{counts}");
        assert_eq!(counts["evicted"], 1, "{counts}");
    }
    assert_eq!(other.ok("call/clear", json!({}))["removed"], 0);
}

#[test]
fn sessions_are_apart() {
    let world = World::new();
    let (mut alice, mut bob) = (world.session("alice"), world.session("bob"));
    world.file("config.json", "{}\n");
    let args = json!({"path": "config.json"});
    record(&mut alice, "readFile", args.clone(), json!("{}\n"));
    record(&mut bob, "webFetch", json!({"url": "u"}), json!("page"));
    assert_eq!(duplicate(&mut alice, "readFile", args.clone()), "identical");
    assert_eq!(duplicate(&mut bob, "readFile", args.clone()), "none");
    let cleared = alice.ok("call/clear", json!({}));
    assert_eq!(cleared["removed"], 1, "{cleared}");
    assert_eq!(alice.ok("call/clear", json!({}))["removed"], 0);
    assert_eq!(duplicate(&mut alice, "readFile", args), "none");
    assert_eq!(stats(&mut bob)["calls"], 1);
    // Nothing is left of one that is forgotten.
    bob.ok("session/close", json!({"forget": true}));
    let all = alice.client.ok("call/stats", json!({}));
    assert_eq!(all["calls"], 0, "{all}");
}

#[test]
fn calls_survive_a_kill() {
    let mut world = World::new();
    world.file("a", "1\n");
    let mut agent = world.session("s");
    record(&mut agent, "readFile", json!({"path": "a"}), json!("1\n"));
    record(
        &mut agent,
        "lookUp",
        json!({"id": 1}),
        json!({"path": null}),
    );
    world.kill();
    // The daemon did not run.
    user::write(&world.path("a"), "2\n");
    world.start();
    let mut agent = world.session("s");
    assert_eq!(
        duplicate(&mut agent, "readFile", json!({"path": "a"})),
        "none"
    );
    let found = check(&mut agent, "lookUp", json!({"id": 1}));
    assert_eq!(found["result"], json!({"path": null}), "{found}");
    // Numbers go on.
    let next = record(&mut agent, "lookUp", json!({"id": 2}), json!(2));
    assert_eq!(next, "t3");
}

#[test]
fn tools_and_rules_come_from_the_configuration() {
    let world = world_of(
        "[calls]\nnever = [\"say\"]\n[calls.rules]\nlookUp = [\"word\"]\nreadFile = [\"path\", \"limit\"]\n",
    );
    let mut agent = world.session("s");
    world.file("a", "1\n");
    assert_eq!(record(&mut agent, "say", json!({}), json!(1)), Value::Null);
    assert!(record(&mut agent, "bash", json!({"command": "ls"}), json!(1)).is_string());
    record(
        &mut agent,
        "lookUp",
        json!({"word": "x", "id": 1}),
        json!(1),
    );
    let other = json!({"word": "y", "id": 1});
    assert_eq!(duplicate(&mut agent, "lookUp", other), "none");
    let same = json!({"word": "x", "id": 2});
    assert_eq!(duplicate(&mut agent, "lookUp", same), "similar");
    record(
        &mut agent,
        "readFile",
        json!({"path": "a", "limit": 1, "x": 1}),
        json!(1),
    );
    let limit = json!({"path": "a", "limit": 2, "x": 1});
    assert_eq!(duplicate(&mut agent, "readFile", limit), "none");
    // The other tools keep their rules.
    record(
        &mut agent,
        "webFetch",
        json!({"url": "u", "x": 1}),
        json!(1),
    );
    let similar = json!({"url": "u", "x": 2});
    assert_eq!(duplicate(&mut agent, "webFetch", similar), "similar");
}

#[test]
fn calls_about_secrets_are_not_kept() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file(".env", "TOKEN=hunter2\n");
    world.file("a", "1\n");
    std::os::unix::fs::symlink(world.path(".env"), world.path("innocent")).unwrap();
    for path in [".env", "innocent"] {
        let args = json!({"path": path, "content": "TOKEN=hunter2"});
        let result = record(
            &mut agent,
            "writeFile",
            args.clone(),
            json!("TOKEN=hunter2"),
        );
        assert_eq!(result, Value::Null, "{path}");
        assert_eq!(duplicate(&mut agent, "writeFile", args), "none", "{path}");
    }
    let grep = json!({"tool": "grep", "args": {"pattern": "T", "path": "a"},
        "result": "TOKEN=hunter2", "paths": ["a", ".env"]});
    assert_eq!(agent.ok("call/record", grep)["callId"], Value::Null);
    assert_eq!(stats(&mut agent)["calls"], 0);
    drop(agent);
    let kept = std::fs::read_dir(world.state().join("touchmark"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        // The lock lies beside them.
        .filter(|path| path.is_dir())
        .flat_map(|state| std::fs::read_dir(state).unwrap());
    for entry in kept {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let found = bytes.windows(7).any(|window| window == b"hunter2");
        assert!(!found, "{}", path.display());
    }
}

#[test]
fn wrong_calls_are_refused() {
    let world = World::new();
    let mut agent = world.session("s");
    for wrong in [
        json!({"tool": "", "args": {}, "result": 1}),
        json!({"tool": "x".repeat(201), "args": {}, "result": 1}),
        json!({"args": {}, "result": 1}),
    ] {
        agent.refused("call/record", wrong, "invalidParams");
    }
    let outside = json!({"tool": "t", "args": {}, "result": 1, "paths": ["../x"]});
    agent.refused("call/record", outside, "outsideWorkspace");
    assert_eq!(stats(&mut agent)["calls"], 0);
}
