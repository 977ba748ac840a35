//! "Context Tracking": what was edited after a checkpoint, stored warnings,
//! models in use, and that document's workflow and scenarios.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::{Session, World, authors, paths, text, user};

fn create(agent: &mut Session) -> Value {
    agent.ok("checkpoint/create", json!({}))
}

fn detect(agent: &mut Session, params: Value) -> Vec<Value> {
    let detected = agent.ok("checkpoint/detect", params);
    detected["files"].as_array().unwrap().clone()
}

fn since(agent: &mut Session, checkpoint: &Value) -> Vec<Value> {
    detect(agent, json!({"checkpoint": checkpoint["checkpoint"]}))
}

/// Formats a row as `path authors versions differs`.
fn row(file: &Value) -> String {
    let by: Vec<String> = file["editedBy"]
        .as_array()
        .unwrap()
        .iter()
        .map(touchmark_tests::author)
        .collect();
    format!(
        "{} [{}] {} {}",
        text(file, "path"),
        by.join(" "),
        file["versions"],
        file["differs"]
    )
}

fn rows(files: &[Value]) -> Vec<String> {
    files.iter().map(row).collect()
}

fn write(agent: &mut Session, path: &str, content: &str) {
    agent.ok("file/write", json!({"path": path, "text": content}));
}

fn take(agent: &mut Session) -> Value {
    agent.ok("warning/take", json!({}))["warning"].clone()
}

fn list(agent: &mut Session) -> Vec<Value> {
    let listed = agent.ok("checkpoint/list", json!({}));
    listed["checkpoints"].as_array().unwrap().clone()
}

#[test]
fn checkpoints_are_kept_listed_and_deleted() {
    let mut world = World::new();
    let mut agent = world.session("s");
    let told = json!({"label": "before", "message": "m7", "step": 3});
    let first = agent.ok("checkpoint/create", told);
    let second = create(&mut agent);
    assert!(text(&first, "clock") != text(&second, "clock"));
    assert!(first["time"].as_u64().unwrap() <= second["time"].as_u64().unwrap());
    let listed = list(&mut agent);
    assert_eq!(
        listed[0],
        json!({"checkpoint": first["checkpoint"], "clock": first["clock"], "time": first["time"],
            "label": "before", "message": "m7", "step": 3})
    );
    assert_eq!(listed.len(), 2, "{listed:?}");
    world.restart();
    let mut agent = world.session("s");
    assert_eq!(list(&mut agent), listed);
    let part = agent.ok("checkpoint/list", json!({"limit": 1}));
    assert_eq!(part["checkpoints"], json!([listed[0]]));
    let rest = agent.ok(
        "checkpoint/list",
        json!({"limit": 1, "cursor": part["more"]}),
    );
    assert_eq!(rest, json!({"checkpoints": [listed[1]]}));
    let gone = json!({"checkpoint": first["checkpoint"]});
    agent.ok("checkpoint/delete", gone.clone());
    agent.refused("checkpoint/delete", gone.clone(), "notFound");
    agent.refused("checkpoint/detect", gone, "notFound");
    assert_eq!(list(&mut agent), listed[1..]);
    // Names are never used again, and are of no other session.
    let third = create(&mut agent);
    assert!(
        !listed
            .iter()
            .any(|row| row["checkpoint"] == third["checkpoint"])
    );
    let mut other = world.session("t");
    assert_eq!(list(&mut other), Vec::<Value>::new());
    let theirs = json!({"checkpoint": third["checkpoint"]});
    other.refused("checkpoint/detect", theirs, "notFound");
}

#[test]
fn edits_after_a_checkpoint_by_whom() {
    let world = World::new();
    let (mut agent, mut other) = (world.session("s"), world.session("t"));
    for path in ["before", "mine", "users", "theirs", "all", "read", "gone"] {
        world.file(path, "1\n");
        agent.read(path);
        other.read(path);
    }
    write(&mut agent, "before", "2\n");
    user::write(&world.path("users"), "2\n");
    let checkpoint = create(&mut agent);
    assert_eq!(since(&mut agent, &checkpoint), Vec::<Value>::new());
    write(&mut agent, "mine", "2\n");
    user::write(&world.path("users"), "3\n");
    write(&mut other, "theirs", "2\n");
    user::write(&world.path("all"), "2\n");
    other.read("all");
    write(&mut other, "all", "3\n");
    agent.read("all");
    write(&mut agent, "all", "4\n");
    agent.read("read");
    fs::remove_file(world.path("gone")).unwrap();
    write(&mut agent, "new", "1\n");
    let found = since(&mut agent, &checkpoint);
    assert_eq!(
        rows(&found),
        [
            "all [user agent:t agent:s] 3 true",
            "gone [user] 1 true",
            "mine [agent:s] 1 true",
            // No session had it in its context then.
            "new [agent:s] 1 null",
            "theirs [agent:t] 1 true",
            "users [user] 1 true",
        ]
    );
    let all = &found[0];
    assert!(all["firstEdit"].as_u64().unwrap() <= all["lastEdit"].as_u64().unwrap());
    assert!(all["firstEdit"].as_u64().unwrap() >= checkpoint["time"].as_u64().unwrap());
    assert_eq!(all["fromDeletedMessages"], false, "{all}");
    // By its clock, from any session.
    let by_clock = detect(&mut other, json!({"clock": checkpoint["clock"]}));
    assert_eq!(by_clock, found);
    // Some only; the others were not edited.
    let some = json!({"clock": checkpoint["clock"], "paths": ["./mine", "before", "read"]});
    assert_eq!(rows(&detect(&mut agent, some)), ["mine [agent:s] 1 true"]);
    // In portions.
    let mut told = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let params = json!({"clock": checkpoint["clock"], "limit": 4, "cursor": cursor});
        let part = agent.ok("checkpoint/detect", params);
        told.extend(part["files"].as_array().unwrap().iter().cloned());
        cursor = part["more"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(told, found);
}

#[test]
fn edits_after_a_time() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a", "1\n");
    world.file("b", "1\n");
    agent.read("a");
    agent.read("b");
    user::write(&world.path("a"), "2\n");
    agent.sync();
    // Two moments of the wall's clock.
    user::pause(20);
    let checkpoint = create(&mut agent);
    user::pause(20);
    user::write(&world.path("b"), "2\n");
    let by_time = detect(&mut agent, json!({"time": checkpoint["time"]}));
    assert_eq!(rows(&by_time), ["b [user] 1 true"]);
    assert_eq!(by_time, since(&mut agent, &checkpoint));
    let earlier = detect(&mut agent, json!({"time": 0}));
    assert_eq!(rows(&earlier), ["a [user] 1 null", "b [user] 1 null"]);
    let future = checkpoint["time"].as_u64().unwrap() + 1_000_000;
    assert_eq!(
        detect(&mut agent, json!({"time": future})),
        Vec::<Value>::new()
    );
    // One moment, named in one way.
    for wrong in [
        json!({}),
        json!({"time": 5, "clock": checkpoint["clock"]}),
        json!({"time": 5, "checkpoint": checkpoint["checkpoint"]}),
    ] {
        agent.refused("checkpoint/detect", wrong, "invalidParams");
    }
}

#[test]
fn whether_the_content_differs_from_then() {
    let mut world = World::new();
    let mut agent = world.session("s");
    for path in ["reverted", "gone and back", "differs", "let go"] {
        world.file(path, "1\n");
        agent.read(path);
    }
    world.file("late", "1\n");
    let checkpoint = create(&mut agent);
    agent.read("late");
    user::write(&world.path("late"), "2\n");
    agent.sync();
    user::write(&world.path("reverted"), "2\n");
    agent.sync();
    user::write(&world.path("reverted"), "1\n");
    fs::remove_file(world.path("gone and back")).unwrap();
    agent.sync();
    user::write(&world.path("gone and back"), "1\n");
    user::write(&world.path("differs"), "2\n");
    user::write(&world.path("let go"), "2\n");
    agent.sync();
    // No session tracks it any more; the disk is asked.
    agent.ok("file/untrack", json!({"path": "let go"}));
    let expected = |let_go: bool| {
        [
            "differs [user] 1 true".to_owned(),
            "gone and back [user] 2 false".to_owned(),
            "late [user] 1 null".to_owned(),
            format!("let go [user] 1 {let_go}"),
            "reverted [user] 2 false".to_owned(),
        ]
    };
    assert_eq!(rows(&since(&mut agent, &checkpoint)), expected(true));
    user::write(&world.path("let go"), "1\n");
    assert_eq!(rows(&since(&mut agent, &checkpoint)), expected(false));
    world.restart();
    let mut agent = world.session("s");
    assert_eq!(rows(&since(&mut agent, &checkpoint)), expected(false));
    let read = json!({"checkpoint": checkpoint["checkpoint"], "verify": true, "sync": false});
    assert_eq!(rows(&detect(&mut agent, read)), expected(false));
}

#[test]
fn operations_of_deleted_messages_are_added() {
    let world = World::new();
    let mut agent = world.session("s");
    for path in ["a", "b", "same"] {
        world.file(path, "1\n");
        agent.read(path);
    }
    world.file("untracked", "1\n");
    let checkpoint = create(&mut agent);
    user::write(&world.path("a"), "2\n");
    let deleted = json!([
        {"path": "a", "operation": "write_to_file"},
        {"path": "./a", "operation": "cline_edited", "time": 5},
        {"path": "same", "operation": "agent_edited"},
        {"path": "untracked", "operation": "replace_in_file"},
        {"path": "none", "operation": "anything"},
        {"path": "b", "operation": "read_tool"},
        {"path": "b", "operation": "read_file"},
        {"path": "b", "operation": "file_mentioned"},
    ]);
    let params = json!({"checkpoint": checkpoint["checkpoint"], "deleted": deleted});
    let found = detect(&mut agent, params);
    assert_eq!(
        rows(&found),
        [
            "a [user] 1 true",
            "none [] 0 null",
            // It was tracked then, and is as it was.
            "same [] 0 false",
            "untracked [] 0 null",
        ]
    );
    assert!(found.iter().all(|file| file["fromDeletedMessages"] == true));
    assert_eq!(found[2]["firstEdit"], Value::Null, "{found:?}");
    // Named or not, what was written is told.
    let outside = json!({"time": 0, "deleted": [{"path": "../x", "operation": "write"}]});
    agent.refused("checkpoint/detect", outside, "outsideWorkspace");
    // Reads of deleted messages alone are nothing.
    let reads = json!({"checkpoint": create(&mut agent)["checkpoint"],
        "deleted": [{"path": "b", "operation": "read_tool"}], "storeWarning": true});
    let nothing = agent.ok("checkpoint/detect", reads);
    assert_eq!(nothing, json!({"files": []}));
    assert_eq!(take(&mut agent), Value::Null);
}

#[test]
fn a_late_correction_is_in_its_place() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a", "1\n");
    agent.read("a");
    let checkpoint = create(&mut agent);
    user::write(&world.path("a"), "2\n");
    assert_eq!(rows(&since(&mut agent, &checkpoint)), ["a [user] 1 true"]);
    // The session's tool marks after it writes (ATTR-14).
    let late = agent.mark("a", Some("2\n"));
    assert_eq!(late["late"], true, "{late}");
    assert_eq!(
        rows(&since(&mut agent, &checkpoint)),
        ["a [agent:s] 1 true"]
    );
    // A correction of a version from before is no edit after.
    user::write(&world.path("a"), "3\n");
    agent.sync();
    let second = create(&mut agent);
    agent.mark("a", Some("3\n"));
    assert_eq!(since(&mut agent, &second), Vec::<Value>::new());
}

#[test]
fn a_warning_is_stored_shown_and_taken_once() {
    let mut world = World::new();
    let mut agent = world.session("s");
    for path in ["a", "b"] {
        world.file(path, "1\n");
        agent.read(path);
    }
    let checkpoint = create(&mut agent);
    let params = json!({"checkpoint": checkpoint["checkpoint"], "storeWarning": true});
    // Nothing was edited: there is nothing to warn of.
    assert_eq!(
        agent.ok("checkpoint/detect", params.clone()),
        json!({"files": []})
    );
    assert_eq!(take(&mut agent), Value::Null);
    write(&mut agent, "b", "2\n");
    user::write(&world.path("a"), "2\n");
    let detected = agent.ok("checkpoint/detect", params);
    let warning = detected["warning"].clone();
    assert_eq!(warning["files"], json!(["a", "b"]), "{detected}");
    world.restart();
    let mut agent = world.session("s");
    // Opening looks, and does not take.
    for _ in 0..2 {
        let opened = agent.ok("session/open", json!({}));
        assert_eq!(opened["warning"], warning, "{opened}");
    }
    assert_eq!(take(&mut agent), warning);
    assert_eq!(take(&mut agent), Value::Null);
    assert_eq!(agent.ok("session/open", json!({})).get("warning"), None);
    world.restart();
    let mut agent = world.session("s");
    assert_eq!(take(&mut agent), Value::Null);
}

#[test]
fn a_warning_of_ones_own_words_stands_in_place_of_the_last() {
    let world = World::new();
    let mut agent = world.session("s");
    agent.ok("warning/store", json!({"files": ["x"]}));
    let params = json!({"files": ["./b", "a", "b"], "note": "restored to k1"});
    agent.ok("warning/store", params);
    let warning = take(&mut agent);
    assert_eq!(warning["files"], json!(["a", "b"]), "{warning}");
    assert_eq!(warning["note"], "restored to k1", "{warning}");
    assert!(warning["createdAt"].is_u64(), "{warning}");
    let outside = json!({"files": ["../x"]});
    agent.refused("warning/store", outside, "outsideWorkspace");
    // Another session has none.
    agent.ok("warning/store", json!({"files": ["x"]}));
    assert_eq!(take(&mut world.session("t")), Value::Null);
}

#[test]
fn two_clients_that_take_a_warning_get_it_once() {
    let world = World::new();
    for round in 0..20 {
        let name = format!("s{round}");
        let mut agent = world.session(&name);
        agent.ok("warning/store", json!({"files": ["a"]}));
        let start = std::sync::Barrier::new(4);
        let taken: usize = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|_| {
                    let mut client = world.session(&name);
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        usize::from(!take(&mut client).is_null())
                    })
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!(taken, 1, "round {round}");
    }
}

#[test]
fn orphaned_warnings_are_cleaned_up() {
    let world = World::new();
    let mut agents: Vec<Session> = ["a", "b", "c", "d"]
        .map(|name| world.session(name))
        .into_iter()
        .collect();
    for agent in &mut agents[..3] {
        agent.ok("warning/store", json!({"files": ["x"]}));
    }
    // A forgotten session's goes with it.
    agents[2].ok("session/close", json!({"forget": true}));
    agents[2].ok("session/open", json!({}));
    let mut client = world.client();
    let cleaned = client.ok("warning/cleanup", json!({"live": ["b", "nobody"]}));
    assert_eq!(cleaned["removed"], 1, "{cleaned}");
    let left: Vec<bool> = agents
        .iter_mut()
        .map(|agent| !take(agent).is_null())
        .collect();
    assert_eq!(left, [false, true, false, false]);
    let cleaned = client.ok("warning/cleanup", json!({"live": []}));
    assert_eq!(cleaned["removed"], 0, "{cleaned}");
}

#[test]
fn a_moment_of_an_older_life_is_unknown() {
    let mut world = World::new();
    let mut agent = world.session("s");
    world.file("a", "1\n");
    agent.read("a");
    let checkpoint = create(&mut agent);
    let clock = checkpoint["clock"].clone();
    let (epoch, n) = text(&checkpoint, "clock")
        .split_once(':')
        .map(|(epoch, n)| (epoch.parse::<u64>().unwrap(), n.parse::<u64>().unwrap()))
        .unwrap();
    for unknown in [
        format!("{}:{n}", epoch + 1),
        format!("{epoch}:{}", n + 1000),
    ] {
        let params = json!({"clock": unknown});
        agent.refused("checkpoint/detect", params, "unknownClock");
    }
    // The state is lost.
    world.kill();
    for entry in fs::read_dir(world.state().join("touchmark")).unwrap() {
        let path = entry.unwrap().path();
        // The lock lies beside it.
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        }
    }
    world.start();
    let mut agent = world.session("s");
    agent.refused("checkpoint/detect", json!({"clock": clock}), "unknownClock");
    let params = json!({"checkpoint": checkpoint["checkpoint"]});
    agent.refused("checkpoint/detect", params, "notFound");
}

#[test]
fn what_a_checkpoint_may_be_asked_about_is_not_pruned() {
    let mut world = World::asleep();
    world.configure("[versions]\nkeep = \"2 per path\"\n");
    world.start();
    let mut agent = world.session("s");
    world.file("a", "0\n");
    agent.read("a");
    let version = |agent: &mut Session, number: u32| {
        user::write(&world.path("a"), &format!("{number}\n"));
        agent.sync();
    };
    for number in 1..=3 {
        version(&mut agent, number);
    }
    let checkpoint = create(&mut agent);
    for number in 4..=9 {
        version(&mut agent, number);
    }
    let expected = ["a [user] 6 true"];
    assert_eq!(rows(&since(&mut agent, &checkpoint)), expected);
    assert_eq!(agent.history("a").len(), 10);
    // A clean end writes the state, and the next start drops what is covered by
    // it: what the file held before the checkpoint.
    world.stop();
    world.start();
    let mut agent = world.session("s");
    until_history_is(&mut agent, "a", 7);
    assert_eq!(rows(&since(&mut agent, &checkpoint)), expected);
    user::write(&world.path("a"), "3\n");
    assert_eq!(rows(&since(&mut agent, &checkpoint)), ["a [user] 7 false"]);
    let gone = json!({"checkpoint": checkpoint["checkpoint"]});
    agent.ok("checkpoint/delete", gone);
    world.stop();
    world.start();
    let mut agent = world.session("s");
    until_history_is(&mut agent, "a", 2);
    let clock = json!({"clock": checkpoint["clock"]});
    agent.refused("checkpoint/detect", clock, "unknownClock");
}

/// Waits until a path's history has this number of rows. Versions are removed
/// in the background, some time after a start.
fn until_history_is(agent: &mut Session, path: &str, rows: usize) {
    let end = Instant::now() + PATIENCE;
    while agent.history(path).len() != rows {
        assert!(Instant::now() < end, "{:?}", agent.history(path));
    }
}

#[test]
fn models_are_recorded_when_they_change() {
    let mut world = World::new();
    let mut agent = world.session("s");
    let record = |agent: &mut Session, model: &str, mode: &str, message: Option<&str>| {
        let params = json!({"modelId": model, "providerId": "p", "mode": mode,
            "messageId": message});
        agent.ok("model/record", params)["recorded"] == true
    };
    assert!(record(&mut agent, "large", "plan", Some("m1")));
    // One message is reported many times while it streams.
    assert!(!record(&mut agent, "large", "plan", Some("m1")));
    assert!(!record(&mut agent, "large", "plan", Some("m2")));
    assert!(record(&mut agent, "large", "code", Some("m3")));
    assert!(record(&mut agent, "small", "code", None));
    assert!(!record(&mut agent, "small", "code", None));
    // Messages of before, told once more after the change.
    for message in ["m1", "m2", "m3"] {
        assert!(
            !record(&mut agent, "large", "plan", Some(message)),
            "{message}"
        );
    }
    assert!(record(&mut agent, "large", "plan", Some("m4")));
    let entries = |agent: &mut Session| {
        let listed = agent.ok("model/list", json!({}));
        listed["entries"].as_array().unwrap().clone()
    };
    let all = entries(&mut agent);
    let told: Vec<String> = all
        .iter()
        .map(|entry| format!("{} {}", text(entry, "modelId"), text(entry, "mode")))
        .collect();
    assert_eq!(
        told,
        ["large plan", "large code", "small code", "large plan"]
    );
    assert!(
        all[0]["time"].is_u64() && all[0]["providerId"] == "p",
        "{all:?}"
    );
    world.restart();
    let mut agent = world.session("s");
    assert_eq!(entries(&mut agent), all);
    assert!(!record(&mut agent, "small", "code", Some("m2")));
    let part = agent.ok("model/list", json!({"limit": 3}));
    let rest = agent.ok("model/list", json!({"limit": 3, "cursor": part["more"]}));
    assert_eq!(rest, json!({"entries": [all[3]]}));
    assert_eq!(entries(&mut world.session("t")), Vec::<Value>::new());
    let long = json!({"modelId": "x".repeat(2000), "providerId": "p", "mode": "m"});
    agent.refused("model/record", long, "invalidParams");
}

#[test]
fn metadata_of_reads_edits_and_mentions() {
    let world = World::new();
    let mut agent = world.session("s");
    for path in ["read", "edited", "mentioned"] {
        world.file(path, "1\n");
    }
    agent.read("read");
    agent.read("edited");
    write(&mut agent, "edited", "2\n");
    agent.ok("file/mention", json!({"path": "mentioned"}));
    user::write(&world.path("read"), "2\n");
    let listed = agent.ok("file/list", json!({"all": true}));
    let told: Vec<String> = listed["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| {
            let dates: Vec<&str> = ["agentReadDate", "agentEditDate", "userEditDate"]
                .into_iter()
                .filter(|date| file[*date].is_u64())
                .collect();
            format!(
                "{} {} {} {}",
                text(file, "path"),
                text(file, "recordState"),
                text(file, "recordSource"),
                dates.join(" ")
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "edited active agent_edited agentReadDate agentEditDate",
            "edited stale read_tool agentReadDate agentEditDate",
            "mentioned active file_mentioned ",
            "read active user_edited agentReadDate userEditDate",
            "read stale read_tool agentReadDate userEditDate",
        ]
    );
    // One active entry for each file, however often it was read: no growth.
    for number in 0..50 {
        user::write(&world.path("read"), &format!("{number}\n"));
        agent.read("read");
    }
    let listed = agent.ok("file/list", json!({"all": true}));
    let files = listed["files"].as_array().unwrap();
    let active = |file: &&Value| file["recordState"] == "active";
    assert_eq!(files.iter().filter(active).count(), 3, "{listed}");
    assert!(files.len() < 20, "{}", files.len());
}

#[test]
fn an_agents_own_edit_is_no_false_alarm() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("src/app.ts", "1\n");
    agent.read("src/app.ts");
    // As the document has it: marked first, then written by its own tool.
    agent.mark("src/app.ts", None);
    user::replace(&world.path("src/app.ts"), "2\n");
    assert_eq!(agent.taken(), Vec::<String>::new());
    assert_eq!(agent.state("src/app.ts"), "fresh");
    // The mark is used up.
    user::write(&world.path("src/app.ts"), "3\n");
    assert_eq!(agent.taken(), ["src/app.ts"]);
    // Got and cleared.
    assert_eq!(agent.taken(), Vec::<String>::new());
}

#[test]
fn scenario_1_a_user_edits_while_the_agent_works() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("file.ts", "1\n");
    agent.read("file.ts");
    user::like_vim(&world.path("file.ts"), "2\n", 0);
    let changes = agent.take();
    assert_eq!(paths(&changes), ["file.ts"]);
    assert_eq!(authors(&changes[0]), ["user"]);
    let listed = agent.ok("file/list", json!({}));
    let entry = &listed["files"][0];
    assert_eq!(entry["recordSource"], "user_edited", "{entry}");
    assert!(entry["userEditDate"].is_u64(), "{entry}");
    // It has to read again before it edits.
    let edit = json!({"path": "file.ts", "oldString": "2", "newString": "3"});
    agent.refused("file/edit", edit.clone(), "stale");
    agent.read("file.ts");
    agent.ok("file/edit", edit);
}

#[test]
fn scenario_2_a_checkpoint_is_restored_after_edits() {
    let mut world = World::new();
    let mut agent = world.session("s");
    world.file("file.ts", "1\n");
    agent.read("file.ts");
    let checkpoint = create(&mut agent);
    write(&mut agent, "file.ts", "2\n");
    let detected = agent.ok(
        "checkpoint/detect",
        json!({"checkpoint": checkpoint["checkpoint"], "storeWarning": true,
            "deleted": [{"path": "file.ts", "operation": "cline_edited"}]}),
    );
    assert_eq!(
        rows(detected["files"].as_array().unwrap()),
        ["file.ts [agent:s] 1 true"]
    );
    world.restart();
    let mut agent = world.session("s");
    let opened = agent.ok("session/open", json!({}));
    assert_eq!(opened["warning"]["files"], json!(["file.ts"]), "{opened}");
    assert_eq!(take(&mut agent)["files"], json!(["file.ts"]));
    assert_eq!(take(&mut agent), Value::Null);
    // It reads again, or goes on.
    let read = agent.ok("file/readText", json!({"path": "file.ts"}));
    assert_eq!(read["text"], "2\n", "{read}");
}

#[test]
fn scenario_3_an_edit_of_an_old_copy() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("file.ts", "a\nb\nc\n");
    agent.read("file.ts");
    user::sed(&world.path("file.ts"), "s/b/B/");
    let edit = json!({"path": "file.ts", "oldString": "a\nb\n", "newString": "x\n"});
    let stale = agent.refused("file/edit", edit, "stale");
    assert_eq!(authors(&stale.data), ["user"], "{stale}");
    assert_eq!(agent.taken(), ["file.ts"]);
    let read = agent.ok("file/readText", json!({"path": "file.ts"}));
    assert_eq!(read["text"], "a\nB\nc\n", "{read}");
    let edit = json!({"path": "file.ts", "oldString": "a\nB\n", "newString": "x\n"});
    agent.ok("file/edit", edit);
    assert_eq!(fs::read_to_string(world.path("file.ts")).unwrap(), "x\nc\n");
}
