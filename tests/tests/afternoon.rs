//! An agent's afternoon: two sessions and a sub-agent in one workspace, from
//! the first read to the final counts.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use touchmark_tests::{Session, Way, World, author, authors, paths, text, user};

fn numbered(lines: u32) -> String {
    (1..=lines)
        .map(|line| format!("line {line:03}\n"))
        .collect()
}

fn read(agent: &mut Session, path: &str, step: u64) -> Value {
    agent.ok("file/readText", json!({"path": path, "step": step}))
}

fn lines(agent: &mut Session, path: &str, from: u32, to: u32) -> Value {
    let range = json!({"start": from, "end": to});
    agent.ok("file/readText", json!({"path": path, "range": range}))
}

fn check(agent: &mut Session, tool: &str, args: &Value) -> Value {
    agent.ok("call/check", json!({"tool": tool, "args": args}))
}

fn record(agent: &mut Session, tool: &str, args: &Value, result: &Value) {
    let params = json!({"tool": tool, "args": args, "result": result});
    agent.ok("call/record", params);
}

fn sleeper() -> Child {
    let mut command = Command::new("sleep");
    command.arg("1000").stdin(Stdio::null());
    command.spawn().unwrap()
}

fn alive(agent: &mut Session) -> Vec<String> {
    let listed = agent.ok("task/list", json!({}));
    let rows = listed["tasks"].as_array().unwrap();
    rows.iter()
        .map(|row| format!("{} {}", text(row, "id"), row["alive"]))
        .collect()
}

#[test]
fn an_agents_afternoon() {
    let mut world = World::new();
    world.file("src/app.ts", numbered(100));
    world.file("src/util.ts", "export const one = 1;\n");
    world.file("src/view.ts", "export const view = “plain”;\n");
    world.file("package.json", "{ \"name\": \"app\" }\n");
    world.file("README.md", "# App\n");
    world.file("notes.txt", "buy milk\n");

    // 13:00. The main agent looks around.
    let mut main = Session::new(world.client(), "main", &world.path(""));
    let opened = main.ok(
        "session/open",
        json!({"agent": {"name": "tester", "version": "1"}}),
    );
    assert_eq!(opened["resumed"], false, "{opened}");
    let model = |agent: &mut Session, name: &str, message: &str| {
        let params = json!({"modelId": name, "providerId": "p", "mode": "code",
            "messageId": message});
        agent.ok("model/record", params)["recorded"] == true
    };
    assert!(model(&mut main, "large", "m1"));
    assert!(!model(&mut main, "large", "m1"));
    let first = read(&mut main, "src/util.ts", 1);
    assert_eq!(first["verdict"], "first", "{first}");
    assert_eq!(first["text"], "export const one = 1;\n");
    let again = read(&mut main, "./src/util.ts", 2);
    assert_eq!(again["verdict"], "repeat", "{again}");
    assert_eq!(
        again["message"],
        "[File previously read: src/util.ts. Content unchanged since last read.]"
    );
    // A large file in parts. Each line has nine bytes.
    assert_eq!(lines(&mut main, "src/app.ts", 1, 40)["verdict"], "first");
    assert_eq!(lines(&mut main, "src/app.ts", 41, 60)["verdict"], "extends");
    assert_eq!(lines(&mut main, "src/app.ts", 31, 50)["verdict"], "repeat");
    let rest = lines(&mut main, "src/app.ts", 51, 70);
    assert_eq!(rest["verdict"], "extends", "{rest}");
    let mut saved = json!({"repeats": 2, "bytesNotSent": 22 + 20 * 9});

    // 13:30. The same tool calls twice.
    let package = json!({"path": "package.json"});
    assert_eq!(check(&mut main, "readFile", &package)["duplicate"], "none");
    let content = json!(fs::read_to_string(world.path("package.json")).unwrap());
    record(&mut main, "readFile", &package, &content);
    let found = check(&mut main, "readFile", &json!({"path": "./package.json"}));
    assert_eq!(found["duplicate"], "identical", "{found}");
    assert_eq!(found["result"], content, "{found}");
    assert_eq!(found["validity"], "verified", "{found}");
    let grep = json!({"pattern": "export", "path": "src"});
    let matches = json!([{"path": "src/util.ts", "line": 1}]);
    record(&mut main, "grep", &grep, &matches);
    assert_eq!(check(&mut main, "grep", &grep)["cached"], true);
    let wider = json!({"pattern": "export", "path": "src", "context": 2});
    assert_eq!(check(&mut main, "grep", &wider)["duplicate"], "similar");

    // 14:00. A checkpoint, then edits, each way.
    let checkpoint = main.ok("checkpoint/create", json!({"label": "before", "step": 3}));
    main.read("README.md");
    main.edit(Way::Edit, "README.md", "# The App\n", |path| {
        user::replace(path, "# The App\n");
    });
    main.ok(
        "file/write",
        json!({"path": "src/util.ts", "text": "export const one = 11;\n", "step": 4}),
    );
    let mark = read(&mut main, "src/view.ts", 4);
    assert_eq!(mark["verdict"], "first", "{mark}");
    let done = main.ok(
        "file/edit",
        json!({"path": "src/view.ts", "oldString": "\"plain\"", "newString": "\"bold\"",
            "step": 5}),
    );
    assert_eq!(done["matched"], "quotes", "{done}");
    assert_eq!(
        fs::read_to_string(world.path("src/view.ts")).unwrap(),
        "export const view = “bold”;\n"
    );
    assert_eq!(main.taken(), Vec::<String>::new());
    // The search rested on files that are other ones now.
    assert_eq!(check(&mut main, "grep", &grep)["duplicate"], "none");
    // What it wrote is not in its context as a read.
    let full = read(&mut main, "src/util.ts", 6);
    assert_eq!(full["text"], "export const one = 11;\n", "{full}");

    // 14:30. A sub-agent and a second conversation.
    let mut sub = world.session("main/tests");
    sub.ok("session/open", json!({"parent": "main"}));
    assert_eq!(read(&mut sub, "src/util.ts", 1)["verdict"], "first");
    let mut other = world.session("other");
    other.read("src/view.ts");
    other.read("package.json");
    let edit = |path: &str, old: &str, new: &str| json!({"path": path, "oldString": old, "newString": new});
    sub.refused("file/edit", edit("src/view.ts", "bold", "thin"), "notRead");
    sub.ok("file/edit", edit("src/util.ts", "11", "12"));
    let changes = main.take();
    assert_eq!(paths(&changes), ["src/util.ts"]);
    assert_eq!(authors(&changes[0]), ["agent:main/tests"]);
    // The second one holds a file; the first has to wait for it.
    let held = other.begin("package.json", None).unwrap();
    main.read("package.json");
    let busy = main.refused("file/edit", edit("package.json", "app", "shop"), "busy");
    assert_eq!(busy.data["holder"], "other", "{busy}");
    other.abort(&held);

    // 15:00. The user edits, with vim's ways and sed's.
    user::like_vim(&world.path("src/util.ts"), "export const one = 111;\n", 0);
    user::sed(&world.path("src/app.ts"), "s/line 065/LINE 065/");
    user::write(&world.path("notes.txt"), "buy bread\n");
    let stale = main.refused("file/edit", edit("src/util.ts", "12", "13"), "stale");
    assert_eq!(
        authors(&stale.data),
        ["agent:main/tests", "user"],
        "{stale}"
    );
    let changes = main.take();
    assert_eq!(paths(&changes), ["src/app.ts", "src/util.ts"]);
    let app = changes.iter().find(|change| change["path"] == "src/app.ts");
    let app = app.unwrap();
    assert_eq!(authors(app), ["user"]);
    assert_eq!(app["lines"], json!({"added": 1, "removed": 1}));
    assert_eq!(main.taken(), Vec::<String>::new());
    assert_eq!(sub.taken(), ["src/util.ts"]);
    // Of the lines that are not shown again, one is not as it was (SEEN-8).
    let changed = lines(&mut main, "src/app.ts", 31, 50);
    assert_eq!(changed["verdict"], "changed", "{changed}");
    let status = main.status("src/app.ts");
    assert_eq!(status["state"], "stale", "{status}");
    let line = json!([{"start": 65, "end": 65}]);
    assert_eq!(status["staleRanges"], line, "{status}");
    let read_again = read(&mut main, "src/util.ts", 7);
    assert_eq!(read_again["verdict"], "changed", "{read_again}");
    main.ok("file/edit", edit("src/util.ts", "111", "112"));

    // 15:30. Tasks in the background, and a compaction.
    let mut server = sleeper();
    let mut watcher = sleeper();
    for (id, pid) in [("server", server.id()), ("watcher", watcher.id())] {
        let task = json!({"id": id, "type": "process", "pid": pid, "startTime": 1,
            "workingDirectory": "."});
        main.ok("task/save", json!({"task": task}));
    }
    assert_eq!(alive(&mut main), ["server true", "watcher true"]);
    let ranked = main.ok(
        "retention/rank",
        json!({"step": 20, "maxAge": 5, "items": [
            {"id": "r1", "tool": "read_file", "path": "src/util.ts", "step": 1},
            {"id": "r2", "tool": "read_file", "path": "package.json", "step": 2},
            {"id": "r3", "tool": "grep", "step": 3},
        ]}),
    );
    let ranks: Vec<String> = ranked["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| format!("{} {}", text(item, "priority"), text(item, "action")))
        .collect();
    assert_eq!(ranks, ["never keep", "read stub", "rerunnable stub"]);
    main.ok("session/compacted", json!({"keep": ["src/app.ts"]}));
    assert_eq!(lines(&mut main, "src/app.ts", 31, 50)["verdict"], "repeat");
    saved["repeats"] = json!(3);
    saved["bytesNotSent"] = json!(22 + 2 * 20 * 9);
    assert_eq!(read(&mut main, "package.json", 21)["verdict"], "first");

    // 16:00. The daemon is killed, and a task with it; a user edits
    // meanwhile.
    let before = main.ok("stats", json!({}));
    world.kill();
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    user::replace(&world.path("package.json"), "{ \"name\": \"shop\" }\n");
    world.start();
    let mut main = Session::new(world.client(), "main", &world.path(""));
    let mut sub = world.session("main/tests");
    let mut other = world.session("other");
    assert_eq!(main.ok("stats", json!({})), before);
    let opened = main.ok("session/open", json!({}));
    assert_eq!(opened["resumed"], true, "{opened}");
    assert_eq!(
        paths(opened["modified"].as_array().unwrap()),
        ["package.json"]
    );
    let changes = main.take();
    assert_eq!(paths(&changes), ["package.json"]);
    // The daemon did not run: no author is named.
    assert_eq!(authors(&changes[0]), ["unknown"]);
    assert_eq!(other.taken(), ["package.json"]);
    assert_eq!(check(&mut main, "readFile", &package)["duplicate"], "none");
    assert_eq!(alive(&mut main), ["server true", "watcher false"]);
    let cleaned = main.client.ok("task/cleanup", json!({}));
    assert_eq!(cleaned["removed"], 1, "{cleaned}");
    assert_eq!(alive(&mut main), ["server true"]);

    // 16:30. Back to the checkpoint: three messages are deleted.
    let detected = main.ok(
        "checkpoint/detect",
        json!({"checkpoint": checkpoint["checkpoint"], "storeWarning": true, "deleted": [
            {"path": "src/view.ts", "operation": "edit_file"},
            {"path": "notes.txt", "operation": "write_file"},
            {"path": "src/app.ts", "operation": "read_file"},
        ]}),
    );
    let edited: Vec<String> = detected["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| {
            let by: Vec<String> = file["editedBy"]
                .as_array()
                .unwrap()
                .iter()
                .map(author)
                .collect();
            let (path, by, versions) = (text(file, "path"), by.join(" "), &file["versions"]);
            let deleted = file["fromDeletedMessages"] == true;
            format!("{path} [{by}] {versions} {} {deleted}", file["differs"])
        })
        .collect();
    assert_eq!(
        edited,
        [
            "README.md [agent:main] 1 null false",
            "notes.txt [] 0 null true",
            "package.json [unknown] 1 null false",
            "src/app.ts [user] 1 true false",
            "src/util.ts [agent:main agent:main/tests user] 4 true false",
            "src/view.ts [agent:main] 1 null true",
        ]
    );
    let all: Vec<&Value> = detected["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| &file["path"])
        .collect();
    let opened = main.ok("session/open", json!({}));
    assert_eq!(opened["warning"]["files"], json!(all), "{opened}");
    // Two windows of the same conversation: one shows it.
    let mut window = world.session("main");
    let shown = [&mut main, &mut window]
        .map(|agent| agent.ok("warning/take", json!({}))["warning"].clone());
    assert_eq!(shown[0]["files"], json!(all));
    assert_eq!(shown[1], Value::Null);

    // 17:00. The user tidies up, the evening's count.
    sub.ok("session/close", json!({"forget": true}));
    assert!(model(&mut main, "small", "m9"));
    let models = main.ok("model/list", json!({}));
    assert_eq!(models["entries"].as_array().unwrap().len(), 2, "{models}");
    let stats = main.ok("stats", json!({}));
    let grep_bytes = matches.to_string().len();
    assert_eq!(
        stats,
        json!({
            "repeats": saved["repeats"],
            "bytesNotSent": saved["bytesNotSent"],
            "staleRefused": 1,
            "unansweredHooks": 0,
            "unclearHooks": 0,
            "notReadRefused": 0,
            "conflicts": 0,
            "duplicateCalls": 2,
            "duplicateBytes": content.to_string().len() + grep_bytes,
            // util.ts, app.ts and util.ts again, package.json.
            "notices": 4,
        })
    );
    let calls = main.ok("call/stats", json!({}));
    assert_eq!(
        calls,
        json!({"calls": 0, "hits": 3, "misses": 3, "invalidated": 2, "evicted": 0, "bytes": 0})
    );
    // The sub-agent's counts went with it; the second conversation was told of
    // one change.
    let everybody = main.client.ok("stats", json!({}));
    assert_eq!(everybody["notices"], 5, "{everybody}");
    assert_eq!(everybody["notReadRefused"], 0, "{everybody}");
    server.kill().unwrap();
    server.wait().unwrap();
    world.healthy();
}
