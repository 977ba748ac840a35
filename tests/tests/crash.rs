//! DUR-1: every change of state that was answered survives `kill -9`.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use touchmark_tests::repeat::Load;
use touchmark_tests::{Client, World, sha256, user};

/// The number of kills under load.
const KILLS: usize = 50;

/// The answers that one worker has received.
#[derive(Default)]
struct Answered {
    /// By path, the hash of the latest answered read or declared write.
    seen: BTreeMap<String, String>,
    /// By path, the hash of the latest delivered change.
    delivered: BTreeMap<String, String>,
    /// The edits that were begun and not ended: id and path.
    open: BTreeMap<String, String>,
    /// The ids of ended edits.
    ended: Vec<String>,
    /// The path and clock of the version in each commit's answer.
    versions: Vec<(String, String)>,
    requests: usize,
}

/// Sends requests of a session until the daemon is killed.
fn work(world: &World, worker: usize, round: u64, answered: &Mutex<Answered>) {
    let session = format!("s{worker}");
    let mut client = world.client();
    let mut ask = |method: &str, mut params: Value| -> Option<Value> {
        params["session"] = json!(session);
        let id = client.try_send(method, &params).ok()?;
        let answer = client.try_answer(id).ok()?;
        Some(answer.unwrap_or_else(|error| panic!("{method} {params}: {error}")))
    };
    for number in 0_u64.. {
        let path = format!("w{worker}/f{}.txt", number % 7);
        let content = format!("{worker} {round} {number}\n");
        let on_disk = world.path(&path);
        match number % 4 {
            // A read of what is there.
            0 => {
                let hash = sha256(std::fs::read(&on_disk).unwrap());
                let Some(_) = ask("file/read", json!({"path": path, "hash": hash})) else {
                    // Not answered: recorded or not, either is right.
                    answered.lock().unwrap().seen.remove(&path);
                    return;
                };
                let mut answered = answered.lock().unwrap();
                answered.seen.insert(path.clone(), hash);
                answered.delivered.remove(&path);
                answered.requests += 1;
            }
            // A declared edit.
            1 | 2 => {
                let expect = sha256(&content);
                let files = json!([{"path": path, "expect": expect}]);
                let Some(begun) = ask("edit/begin", json!({"files": files, "force": true})) else {
                    return;
                };
                let edit = touchmark_tests::text(&begun, "edit");
                {
                    let mut answered = answered.lock().unwrap();
                    answered.open.insert(edit.clone(), path.clone());
                    answered.requests += 1;
                }
                if number % 8 == 2 {
                    // Stays open, undisturbed, until after the kill.
                    continue;
                }
                user::write(&on_disk, &content);
                let files = json!([{"path": path, "hash": expect}]);
                // From here until the answer either is right.
                answered.lock().unwrap().open.remove(&edit);
                let Some(done) = ask("edit/commit", json!({"edit": edit, "files": files})) else {
                    answered.lock().unwrap().seen.remove(&path);
                    return;
                };
                let mut answered = answered.lock().unwrap();
                answered.seen.insert(path.clone(), expect);
                answered.delivered.remove(&path);
                answered.ended.push(edit);
                if let Some(clock) = done["files"][0]["version"]["clock"].as_str() {
                    answered.versions.push((path.clone(), clock.to_owned()));
                }
                answered.requests += 1;
            }
            // A user's edit, and its delivery.
            _ => {
                user::write(&on_disk, &content);
                let Some(taken) = ask("modified/take", json!({})) else {
                    return;
                };
                let mut answered = answered.lock().unwrap();
                for change in taken["changes"].as_array().unwrap() {
                    answered.delivered.insert(
                        touchmark_tests::text(change, "path"),
                        change["hash"].as_str().unwrap_or("").to_owned(),
                    );
                }
                answered.requests += 1;
            }
        }
    }
}

/// Checks after a restart that everything that was answered is still true.
fn compare(client: &mut Client, worker: usize, answered: &mut Answered) {
    let session = format!("s{worker}");
    let changes = client.ok("modified/take", json!({"session": session}));
    assert!(changes["reset"].is_null(), "the state was lost: {changes}");
    for change in changes["changes"].as_array().unwrap() {
        let path = touchmark_tests::text(change, "path");
        if let Some(hash) = answered.delivered.get(&path) {
            assert_ne!(
                change["hash"].as_str(),
                Some(hash.as_str()),
                "delivered twice: {change}"
            );
        }
    }
    for (path, seen) in &answered.seen {
        let states = client.ok("file/status", json!({"session": session, "paths": [path]}));
        assert_eq!(states["files"][0]["seenHash"], *seen, "seen: {states}");
    }
    for (path, clock) in &answered.versions {
        let rows = client.ok("file/history", json!({"path": path, "limit": 100_000}));
        let rows = rows["versions"].as_array().unwrap();
        assert!(
            rows.iter().any(|row| row["clock"] == *clock),
            "{path}: the version {clock} is gone"
        );
    }
    for edit in answered.ended.drain(..) {
        let error = client
            .call("edit/abort", json!({"edit": edit}))
            .unwrap_err();
        assert_eq!(error.name, "unknownEdit", "{edit} had ended: {error}");
    }
    for (edit, _) in std::mem::take(&mut answered.open) {
        client.ok("edit/abort", json!({"edit": edit}));
    }
    // What was delivered by now is so for the next round.
    for change in changes["changes"].as_array().unwrap() {
        answered.delivered.insert(
            touchmark_tests::text(change, "path"),
            change["hash"].as_str().unwrap_or("").to_owned(),
        );
    }
    answered.versions.clear();
}

#[test]
fn dur1_kill_minus_nine_fifty_times_under_load() {
    const WORKERS: usize = 4;
    let mut world = World::new();
    for worker in 0..WORKERS {
        for number in 0..7 {
            world.file(&format!("w{worker}/f{number}.txt"), "start\n");
        }
    }
    // A session that was never answered is none after the kill.
    for worker in 0..WORKERS {
        world.session(&format!("s{worker}"));
    }
    let answered: Vec<Mutex<Answered>> = (0..WORKERS).map(|_| Mutex::default()).collect();
    let _load = Load::start();
    let seed = AtomicU64::new(0x9e37_79b9_7f4a_7c15);
    for round in 0..KILLS {
        let before: usize = answered.iter().map(|a| a.lock().unwrap().requests).sum();
        std::thread::scope(|scope| {
            for (worker, answered) in answered.iter().enumerate() {
                let world = &world;
                scope.spawn(move || work(world, worker, round as u64, answered));
            }
            // At another moment each time, in the middle of requests: a busy
            // machine may take its time until the first is answered.
            let begun = Instant::now();
            let worked = || {
                answered
                    .iter()
                    .map(|a| a.lock().unwrap().requests)
                    .sum::<usize>()
            };
            while worked() == before && begun.elapsed() < Duration::from_secs(20) {
                std::thread::yield_now();
            }
            let next = seed
                .load(Ordering::Relaxed)
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            seed.store(next, Ordering::Relaxed);
            user::pause(20 + (next >> 40) % 60);
            let pid = rustix::process::Pid::from_raw(world.pid().cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        });
        world.kill();
        world.start();
        let mut client = world.client();
        for (worker, answered) in answered.iter().enumerate() {
            compare(&mut client, worker, &mut answered.lock().unwrap());
        }
        let after: usize = answered.iter().map(|a| a.lock().unwrap().requests).sum();
        assert!(after > before || round == 0, "round {round} did no work");
    }
    world.healthy();
}

/// Sessions, the clocks of subscriptions, and editors' reports also survive.
#[test]
fn dur1_sessions_marks_and_deliveries_survive() {
    let mut world = World::new();
    let mut agent = world.session("s");
    for name in ["a.txt", "b.txt", "c.txt"] {
        world.file(name, "one\n");
        agent.read(name);
    }
    agent.ok(
        "session/open",
        json!({"agent": {"name": "tester", "version": "1"}, "parent": "p", "pid": 1}),
    );
    user::write(&world.path("a.txt"), "two\n");
    assert_eq!(agent.taken(), ["a.txt"]);
    user::write(&world.path("b.txt"), "two\n");
    agent.sync();
    agent.mark("c.txt", Some("agent\n"));
    agent.ok("session/compacted", json!({"keep": ["a.txt"]}));
    let before = agent.client.ok("session/list", json!({}));
    let status = agent.ok("file/status", json!({}));
    world.restart();
    let mut agent = world.session("s");
    assert_eq!(agent.client.ok("session/list", json!({})), before);
    assert_eq!(agent.ok("file/status", json!({})), status);
    assert_eq!(agent.taken(), ["b.txt"]);
    user::write(&world.path("c.txt"), "agent\n");
    assert_eq!(agent.state("c.txt"), "fresh");
    assert_eq!(agent.story("c.txt"), ["agent:s declared"]);
    let opened = agent.ok("session/open", json!({}));
    assert_eq!(opened["resumed"], true, "{opened}");
}

/// The contents of an agent's changes also survive, although the answer does
/// not wait until they are in the store.
#[test]
fn keep3_what_an_agent_changed_right_before_the_kill_is_blamed_and_undone() {
    let mut world = World::new();
    for round in 0..4 {
        let path = format!("f{round}");
        let original: String = (1..=9).map(|n| format!("{round}, line {n}\n")).collect();
        let mut expected = original.clone();
        world.file(&path, &original);
        let session = format!("s{round}");
        let mut agent = world.session(&session);
        let mut edit = |old: &str, new: &str| {
            agent.read(&path);
            let params = json!({"path": path, "oldString": old, "newString": new});
            agent.ok("file/edit", params);
        };
        edit("line 3\n", "three\n");
        if round % 2 == 1 {
            let now = std::fs::read_to_string(world.path(&path)).unwrap();
            user::write(&world.path(&path), &format!("{now}mine\n"));
            expected.push_str("mine\n");
            edit("line 7\n", "seven\n");
        }
        world.restart();

        let mut client = world.client();
        let blame = client.ok("file/blame", json!({"path": path}));
        let of_agent: Vec<String> = blame["lines"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|line| line["author"]["session"] == session)
            .map(|line| touchmark_tests::text(line, "text"))
            .collect();
        let mut written = vec![format!("{round}, three")];
        written.extend((round % 2 == 1).then(|| format!("{round}, seven")));
        assert_eq!(of_agent, written, "{blame}");
        let undone = client.ok("undo", json!({"session": session}));
        assert_eq!(undone["files"][0]["outcome"], "undone", "{undone}");
        let now = std::fs::read_to_string(world.path(&path)).unwrap();
        assert_eq!(now, expected);
    }
    world.healthy();
}

/// So do those of undos and redos, and what they replaced.
#[test]
fn keep3_what_redos_wrote_right_before_kills_is_undone_again() {
    let mut world = World::new();
    let original: String = (1..=9).map(|n| format!("line {n}\n")).collect();
    world.file("f", &original);
    let mut agent = world.session("s");
    for (old, new) in [("line 3\n", "three\n"), ("line 7\n", "seven\n")] {
        agent.read("f");
        let params = json!({"path": "f", "oldString": old, "newString": new});
        agent.ok("file/edit", params);
    }
    let now = || std::fs::read_to_string(world.path("f")).unwrap();
    let undone = agent.client.ok("undo", json!({"session": "s"}));
    assert_eq!(now(), original);
    user::write(&world.path("f"), &format!("{original}mine\n"));
    agent.sync();
    drop(agent);
    world.client().ok("redo", json!({"undo": undone["undo"]}));
    world.restart();
    let undone = world.client().ok("undo", json!({"session": "s"}));
    assert_eq!(undone["files"][0]["outcome"], "undone", "{undone}");
    assert!(undone["files"][0]["left"].is_null(), "{undone}");
    let now = std::fs::read_to_string(world.path("f")).unwrap();
    assert_eq!(now, format!("{original}mine\n"));
    world.healthy();
}
