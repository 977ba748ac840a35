//! Telemetry against a collector that a test orders (TEL).

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use touchmark_tests::hooks::Talk;
use touchmark_tests::otlp::{Collector, Does, Logged};
use touchmark_tests::process::{signal, until};
use touchmark_tests::rotel::{self, Rotel};
use touchmark_tests::session::{Session, Way};
use touchmark_tests::user::{self, pause};
use touchmark_tests::{World, parts, text};

/// Words that must be in no request.
const SECRETS: [&str; 4] = ["hunter2", "rm-rf-all", "please-do", "tidy-up-note"];

/// Returns a configuration that switches telemetry on.
fn on(collector: &Collector, more: &str) -> String {
    format!(
        "[telemetry]\nenabled = true\nendpoint = \"{}\"\n{more}",
        collector.endpoint()
    )
}

/// Starts a daemon that sends to a collector.
fn world(collector: &Collector, more: &str) -> World {
    let mut world = World::asleep();
    world.configure(&on(collector, more));
    world.start();
    world
}

fn status(world: &World) -> Value {
    world.client().ok("status", json!({}))["telemetry"].clone()
}

/// Waits until the collector has acknowledged everything.
fn sent(world: &World) {
    until("everything is sent", || {
        let status = status(world);
        let known = !status["acknowledged"].is_null();
        known && status["unsent"] == 0 && status["lastError"].is_null()
    });
}

/// Waits until the position in the store's file covers all facts that the
/// collector has. The file is read by another program.
fn stored(world: &World, collector: &Collector) {
    const PROGRAM: &str = "
import glob, sqlite3, sys
[path] = glob.glob(sys.argv[1] + '/touchmark/*/store.db')
store = sqlite3.connect(f'file:{path}?mode=ro', uri=True)
print(store.execute(\"SELECT value FROM meta WHERE key = 'exported'\").fetchone()[0])";
    until("the position is stored", || {
        let read = Command::new("python3")
            .args(["-c", PROGRAM])
            .arg(world.state())
            .output()
            .unwrap();
        let read = String::from_utf8(read.stdout).unwrap();
        let number = |uid: &str| uid.split_once(':').unwrap().1.parse::<u64>().unwrap();
        let newest = collector.joined().keys().map(|uid| number(uid)).max();
        read.trim().parse().ok() >= newest
    });
}

/// Returns the name of a record's file. The workspace is below the top of a
/// repository, from which paths are counted.
fn file(logged: &Logged) -> String {
    let path = logged.text("touchmark.path");
    path.rsplit('/').next().unwrap().to_owned()
}

/// Writes a file as an agent does, with its content declared.
fn write(agent: &mut Session, path: &str, content: &str) {
    agent.edit(Way::Declared, path, content, |file| {
        fs::write(file, content).unwrap();
    });
    agent.sync();
}

/// Returns the clocks of all versions in the log.
fn versions(world: &World) -> BTreeSet<String> {
    let log = world.client().ok("file/log", json!({}));
    let entries = log["entries"].as_array().unwrap().clone();
    let clock = |entry: &Value| text(&entry["version"], "clock");
    entries.iter().map(clock).collect()
}

/// Returns the clocks of everything that `activity/list` has.
fn activities(world: &World) -> BTreeSet<String> {
    let list = world.client().ok("activity/list", json!({}));
    let rows = list["rows"].as_array().unwrap().clone();
    rows.iter().map(|row| text(row, "clock")).collect()
}

fn of_event(collector: &Collector, event: &str) -> Vec<Logged> {
    let joined = collector.joined().into_values();
    joined.filter(|logged| logged.event == event).collect()
}

fn uids(logged: &[Logged]) -> BTreeSet<String> {
    logged.iter().map(Logged::uid).collect()
}

/// Checks that every fact of the log has arrived, and no other version. Facts
/// that are no versions may have left the log since.
fn complete(world: &World, collector: &Collector) {
    let sent: BTreeSet<String> = collector.joined().into_keys().collect();
    let (versions, activities) = (versions(world), activities(world));
    assert_eq!(uids(&of_event(collector, "touchmark.version")), versions);
    let missing: Vec<&String> = activities.difference(&sent).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn threads(pid: u32) -> BTreeSet<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks
        .map(|task| fs::read_to_string(task.unwrap().path().join("comm")).unwrap())
        .collect()
}

fn switches(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |status: String| -> u64 {
        let lines = status.lines();
        lines
            .filter_map(|line| line.split_once("ctxt_switches:"))
            .map(|(_, count)| count.trim().parse::<u64>().unwrap())
            .sum()
    };
    tasks
        .map(|task| of(fs::read_to_string(task.unwrap().path().join("status")).unwrap()))
        .sum()
}

/// Off: no connection, no position, no thread. A repository's file and the
/// variables alone switch nothing on.
#[test]
fn tel_1_off_is_off() {
    let collector = Collector::new();
    let mut plain = World::new();
    let mut tried = World::asleep();
    tried.set_env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint());
    tried.file(".touchmark.toml", on(&collector, "paths = \"plain\"\n"));
    tried.start();
    for world in [&plain, &tried] {
        let mut agent = world.session("s");
        write(&mut agent, "a.txt", "1\n");
        agent.read("a.txt");
        assert_eq!(status(world), Value::Null);
    }
    let refused = tried.client().ok("status", json!({}))["configuration"].clone();
    let refused = text(&refused, "refused");
    for key in ["telemetry.enabled", "telemetry.endpoint", "telemetry.paths"] {
        assert!(refused.contains(key), "{refused}");
    }
    assert_eq!(threads(plain.pid()), threads(tried.pid()));
    plain.stop();
    tried.stop();
    assert_eq!(collector.connections(), 0);
    assert!(!tried.state().join("touchmark/telemetry.key").exists());
    // The user's file and the variables together do.
    tried.configure("telemetry.enabled = true\n");
    tried.start();
    write(&mut tried.session("s"), "a.txt", "2\n");
    collector.wait("a record", |collector| !collector.logged().is_empty());
    sent(&tried);
}

/// Every fact arrives, and none is two records, whatever the collector does and
/// whenever the daemon is killed.
#[test]
fn tel_2_every_fact_arrives_once() {
    let mut collector = Collector::new();
    let mut world = world(&collector, "paths = \"plain\"\n");
    let mut count = 0;
    let mut some = |world: &World| {
        let mut agent = world.session("s");
        for _ in 0..3 {
            count += 1;
            let path = format!("f{count}.txt");
            write(&mut agent, &path, &format!("{count}\n"));
            agent.read(&path);
        }
    };
    some(&world);
    sent(&world);
    // What was acknowledged is not sent again after `kill -9`.
    stored(&world, &collector);
    let first = uids(&collector.logged());
    let before = collector.logged().len();
    world.restart();
    some(&world);
    sent(&world);
    let later = uids(&collector.logged()[before..]);
    let again: Vec<&String> = later.intersection(&first).collect();
    assert!(again.is_empty(), "sent again: {again:?}");
    // Gone.
    collector.goes_down();
    some(&world);
    until("it fails", || !status(&world)["lastError"].is_null());
    assert!(status(&world)["unsent"].as_u64().unwrap() >= 6);
    // The daemon ends and starts, with a snapshot, while the collector is gone.
    assert_eq!(world.stop(), Some(0));
    world.start();
    some(&world);
    world.restart();
    collector.does(Does::Answers(503, "Retry-After: 1\r\n", "busy"));
    collector.comes_up();
    // How many facts wait at least: two for each file.
    let mut waiting = 12;
    let failed = |world: &World, waiting: u64| {
        until("it fails", || !status(world)["lastError"].is_null());
        let unsent = status(world)["unsent"].as_u64().unwrap();
        assert!(unsent >= waiting, "{unsent}: what was not taken waits");
    };
    for (does, kills) in [
        (Does::Answers(503, "Retry-After: 1\r\n", "busy"), false),
        (Does::Answers(429, "", ""), true),
        (Does::Answers(404, "", "not here"), false),
        (
            Does::Answers(200, "Content-Type: text/html\r\n", "<html>hello</html>"),
            true,
        ),
        (Does::TalksNonsense, false),
        (Does::TakesSilently, true),
        (Does::Hangs, true),
    ] {
        let before = collector.received().len();
        collector.does(does.clone());
        some(&world);
        waiting += 6;
        collector.wait_for_requests(before + 1);
        if does != Does::Hangs {
            failed(&world, waiting);
        }
        if kills {
            // A new daemon tries at once.
            world.restart();
        }
    }
    collector.does(Does::Takes);
    some(&world);
    sent(&world);
    complete(&world, &collector);
    let versions = of_event(&collector, "touchmark.version");
    let written: BTreeSet<String> = versions
        .iter()
        .filter(|version| version.text("touchmark.author.kind") == "agent")
        .map(file)
        .collect();
    assert_eq!(written.len(), count, "each file that the agent wrote");
    let reads = of_event(&collector, "touchmark.read");
    assert_eq!(reads.len(), count, "each read");
    assert_eq!(status(&world)["pruned"], 0);
    assert_eq!(status(&world)["rejected"], 0);
}

/// A request that the collector calls malformed is not sent for ever, and the
/// other records of its batch arrive.
#[test]
fn tel_3_one_bad_record_holds_nothing_up() {
    let collector = Collector::new();
    collector.does(Does::RefusesWith("bad.txt"));
    let world = world(&collector, "paths = \"plain\"\n");
    let mut agent = world.session("s");
    for path in ["a.txt", "bad.txt", "c.txt", "d.txt"] {
        write(&mut agent, path, "1\n");
    }
    collector.wait("the last file", |collector| {
        let versions = of_event(collector, "touchmark.version");
        versions.iter().any(|version| file(version) == "d.txt")
    });
    sent(&world);
    let mut expected = versions(&world);
    let arrived = uids(&of_event(&collector, "touchmark.version"));
    expected.retain(|clock| !arrived.contains(clock));
    assert_eq!(expected.len(), 1, "only one is missing");
    assert_eq!(status(&world)["rejected"], 1);
}

/// Requests keep their distance, and a collector that takes a batch in part has
/// the last word.
#[test]
fn tel_3_one_request_a_second() {
    let collector = Collector::new();
    collector.does(Does::Rejects(1));
    let world = world(&collector, "");
    let mut agent = world.session("s");
    let end = Instant::now() + Duration::from_secs(5);
    let mut number = 0;
    while Instant::now() < end {
        number += 1;
        write(&mut agent, "a.txt", &format!("{number}\n"));
        pause(20);
    }
    until("everything is sent", || status(&world)["unsent"] == 0);
    complete(&world, &collector);
    let received = collector.received();
    assert!(received.len() > 2, "{} requests", received.len());
    let times: Vec<Instant> = received.iter().map(|received| received.at).collect();
    for pair in times.windows(2) {
        let distance = pair[1] - pair[0];
        assert!(distance > Duration::from_millis(700), "{distance:?}");
    }
    let rejected = status(&world)["rejected"].as_u64().unwrap();
    assert!(rejected > 0, "{rejected}");
}

/// The end of the daemon sends what is left, and does not wait for a collector
/// that hangs.
#[test]
fn tel_3_the_end_sends_the_rest_and_does_not_hang() {
    let collector = Collector::new();
    let mut world = world(&collector, "");
    write(&mut world.session("s"), "a.txt", "1\n");
    assert_eq!(world.stop(), Some(0));
    assert!(!of_event(&collector, "touchmark.version").is_empty());
    world.start();
    collector.does(Does::Hangs);
    write(&mut world.session("s"), "a.txt", "2\n");
    let begun = Instant::now();
    assert_eq!(world.stop(), Some(0));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    collector.does(Does::Takes);
    world.start();
    sent(&world);
    complete(&world, &collector);
}

/// Facts from before the switch are not sent, those from while it was off
/// neither.
#[test]
fn tel_2_what_happened_while_it_was_off_stays_here() {
    let collector = Collector::new();
    let mut world = World::new();
    let mut agent = world.session("s");
    write(&mut agent, "before.txt", "1\n");
    let switch = |world: &World, configuration: &str, is_on: bool| {
        world.configure(configuration);
        signal(world.pid(), Signal::HUP);
        until("the switch", || status(world).is_null() != is_on);
    };
    let telemetry = on(&collector, "paths = \"plain\"\n");
    switch(&world, &telemetry, true);
    until("it has begun", || !status(&world)["acknowledged"].is_null());
    write(&mut agent, "on.txt", "1\n");
    sent(&world);
    switch(&world, "", false);
    write(&mut agent, "off.txt", "1\n");
    world.restart();
    let mut agent = world.session("s");
    write(&mut agent, "off-2.txt", "1\n");
    switch(&world, &telemetry, true);
    until("it has begun", || !status(&world)["acknowledged"].is_null());
    write(&mut agent, "again.txt", "1\n");
    sent(&world);
    // A wrong file is not a switch.
    world.stop();
    world.configure("telemetry.enabled = \"what\"\n");
    world.start();
    write(&mut world.session("s"), "wrong.txt", "1\n");
    world.stop();
    world.configure(&telemetry);
    world.start();
    sent(&world);
    collector.wait("the last file", |collector| {
        let versions = of_event(collector, "touchmark.version");
        versions.iter().any(|one| file(one) == "wrong.txt")
    });
    let paths: BTreeSet<String> = of_event(&collector, "touchmark.version")
        .iter()
        .map(file)
        .collect();
    let expected = ["again.txt", "on.txt", "wrong.txt"].map(str::to_owned);
    assert_eq!(paths, expected.into());
}

/// What records say, and what they never say.
#[test]
fn tel_5_records_say_who_and_how_much_and_nothing_else() {
    let collector = Collector::new();
    let world = world(
        &collector,
        "paths = \"plain\"\nheaders = { x-key = \"k\" }\n",
    );
    let mut agent = world.session("s");
    let program = json!({"name": "claude-code", "version": "2.1"});
    agent.ok("session/open", json!({"agent": program}));
    let model = json!({"modelId": "m-1", "providerId": "p", "mode": "build"});
    agent.ok("model/record", model);
    world.file("a.txt", "hunter2\nb\n");
    agent.read("a.txt");
    write(&mut agent, "a.txt", "hunter2\nb\nc\nd\n");
    // Refused: another writer was there.
    fs::write(world.path("a.txt"), "hunter2 hunter2\n").unwrap();
    agent.refused("edit/begin", json!({"files": [{"path": "a.txt"}]}), "stale");
    // A command.
    let begun = agent.ok(
        "command/begin",
        json!({"label": "rm-rf-all please-do", "paths": ["**"]}),
    );
    fs::write(world.path("a.txt"), "x\n").unwrap();
    agent.sync();
    agent
        .client
        .ok("command/end", json!({"command": begun["command"]}));
    agent.ok(
        "warning/store",
        json!({"files": ["a.txt"], "note": "tidy-up-note"}),
    );
    agent.ok("checkpoint/create", json!({"label": "tidy-up-note"}));
    agent.sync();
    sent(&world);
    complete(&world, &collector);

    let versions = of_event(&collector, "touchmark.version");
    let own = versions
        .iter()
        .find(|version| version.attributes.get("touchmark.lines.added") == Some(&json!(2)))
        .expect("the agent's change");
    for (key, value) in [
        ("session.id", "s"),
        ("gen_ai.conversation.id", "s"),
        ("gen_ai.agent.name", "claude-code"),
        ("gen_ai.request.model", "m-1"),
        ("touchmark.author.kind", "agent"),
        ("touchmark.evidence", "declared"),
        ("touchmark.change", "modified"),
    ] {
        assert_eq!(own.text(key), value, "{key}");
    }
    assert_eq!(file(own), "a.txt");
    assert_eq!(own.attributes["touchmark.lines.removed"], 0);
    assert_eq!(own.resource["service.name"], "touchmark");
    let reads = of_event(&collector, "touchmark.read");
    assert_eq!(reads[0].text("touchmark.read.verdict"), "first");
    assert_eq!(reads[0].attributes["touchmark.read.lines"], 2);
    assert!(!reads[0].attributes.contains_key("touchmark.path"));
    let refused = of_event(&collector, "touchmark.refused");
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].text("touchmark.refused.reason"), "stale");
    let commands = versions
        .iter()
        .filter(|version| version.attributes.contains_key("touchmark.command"));
    assert_eq!(commands.count(), 1, "{versions:?}");

    for received in collector.received() {
        for secret in SECRETS {
            let bytes = secret.as_bytes();
            let found = received.body.windows(bytes.len()).any(|part| part == bytes);
            assert!(!found, "{secret} was sent");
        }
        let header = |name: &str| {
            let mut all = received.headers.iter();
            all.find_map(|(own, value)| (own == name).then(|| value.clone()))
        };
        assert_eq!(header("x-key").as_deref(), Some("k"));
        assert_eq!(
            header("content-type").as_deref(),
            Some("application/x-protobuf")
        );
    }
}

/// A write that a hook lets through has a refusal too, which is for the same
/// file and is subtracted: the difference is what was denied.
#[test]
fn tel_5_a_write_that_a_hook_lets_through_is_a_refusal_that_passed() {
    let collector = Collector::new();
    let mut world = world(&collector, "paths = \"plain\"\n");
    let ten: String = (1..=10).map(|n| format!("line {n}\n")).collect();
    for name in ["stale.txt", "unread.txt", "one.txt", "two.txt"] {
        world.file(name, &ten);
    }
    let mut talk = Talk::new(&world, "claude", "s");
    talk.start().nothing();
    talk.read("stale.txt").nothing();
    user::replace(
        &world.path("stale.txt"),
        &ten.replace("line 9", "line nine"),
    );
    // Next to the change: let through. Over the change: denied.
    let _told_of_the_change = talk.edit("stale.txt", "line 2", "line two");
    user::replace(
        &world.path("stale.txt"),
        &ten.replace("line 5", "line five"),
    );
    talk.before_edit("stale.txt", "line 5", "line V").1.denied();
    // Lines by their words: let through. The whole file: denied.
    let _told = talk.edit("unread.txt", "line 3", "line three");
    talk.before_write("one.txt", "new\n").1.denied();
    // One call for two files has one record of each event.
    let patch = "*** Begin Patch\n*** Update File: one.txt\n@@\n-line 1\n+line one\n\
                 *** Update File: two.txt\n@@\n-line 1\n+line one\n*** End Patch\n";
    let codex = Talk::new(&world, "codex", "c");
    codex.start().nothing();
    let event = json!({"tool_name": "apply_patch", "tool_use_id": "p",
        "tool_input": {"command": patch}});
    codex.say(&codex.voice.event("PreToolUse", event)).nothing();
    sent(&world);
    complete(&world, &collector);

    let of = |event: &str| -> Vec<(u64, String, String, String)> {
        let reason = format!("{event}.reason");
        let number = |logged: &Logged| logged.uid().split_once(':').unwrap().1.parse().unwrap();
        let mut found: Vec<_> = of_event(&collector, event)
            .iter()
            .map(|one| {
                (
                    number(one),
                    one.text("session.id"),
                    file(one),
                    one.text(&reason),
                )
            })
            .collect();
        found.sort();
        found
    };
    let (refused, passed) = (of("touchmark.refused"), of("touchmark.passed"));
    let plain = |found: &[(u64, String, String, String)]| -> Vec<String> {
        found
            .iter()
            .map(|(_, session, file, reason)| format!("{session} {file} {reason}"))
            .collect()
    };
    assert_eq!(
        plain(&passed),
        [
            "s stale.txt beside",
            "s unread.txt unread",
            "c one.txt unread"
        ]
    );
    assert_eq!(
        plain(&refused),
        [
            "s stale.txt stale",
            "s stale.txt stale",
            "s unread.txt not_read",
            "s one.txt not_read",
            "c one.txt not_read",
        ]
    );
    for (passed, refused) in passed.iter().zip([0, 2, 4].map(|at| &refused[at])) {
        assert!(refused.0 < passed.0, "{refused:?} precedes {passed:?}");
    }
    world.healthy();
}

/// The records are numbered without gaps, also over a restart and a kill, and a
/// record that arrives twice has one number.
#[test]
fn tel_7_records_are_numbered_from_the_switch() {
    let collector = Collector::new();
    let mut world = world(&collector, "");
    for round in 0..3 {
        let mut agent = world.session("s");
        for number in 0..4 {
            write(&mut agent, "a.txt", &format!("{round}\n{number}\n"));
        }
        match round {
            0 => {
                sent(&world);
                world.restart();
            }
            // Acknowledged, and the answer lost.
            1 => {
                collector.does(Does::Hangs);
                write(&mut agent, "b.txt", &format!("{round}\n"));
                let before = collector.received().len();
                collector.wait_for_requests(before + 1);
                world.kill();
                collector.does(Does::Takes);
                world.start();
            }
            _ => sent(&world),
        }
    }
    let joined = collector.joined();
    let numbers: BTreeSet<u64> = joined
        .values()
        .map(|logged| {
            logged.attributes["touchmark.record.number"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert!(numbers.len() >= 13, "{numbers:?}");
    assert!(numbers.into_iter().eq(1..=joined.len() as u64));
}

/// Files as hashes, and not at all; clones of one repository are one.
#[test]
fn tel_6_paths_and_repositories() {
    let collector = Collector::new();
    let git = |world: &World, arguments: &[&str]| {
        let mut git = Command::new("git");
        world.dress(&mut git);
        let done = git.args(arguments).current_dir(world.workspace()).output();
        assert!(done.unwrap().status.success(), "{arguments:?}");
    };
    let mut found = Vec::new();
    for paths in ["hash", "none"] {
        let mut world = World::asleep();
        git(&world, &["init", "-q"]);
        let origin = "https://u:hunter2@example.com/a/b.git";
        git(&world, &["remote", "add", "origin", origin]);
        world.configure(&on(&collector, &format!("paths = \"{paths}\"\n")));
        world.start();
        let before = collector.logged().len();
        write(&mut world.session("s"), "named-so.txt", "1\n");
        sent(&world);
        found.push(collector.logged().split_off(before));
    }
    let repositories: BTreeSet<String> = found
        .iter()
        .flatten()
        .map(|logged| logged.resource["touchmark.repository"].to_string())
        .collect();
    assert_eq!(repositories.len(), 1, "{repositories:?}");
    let keys = |logged: &[Logged]| -> BTreeSet<String> {
        let all = logged.iter().flat_map(|logged| logged.attributes.keys());
        all.filter(|key| key.contains("path")).cloned().collect()
    };
    assert_eq!(keys(&found[0]), ["touchmark.path.hash".to_owned()].into());
    assert_eq!(keys(&found[1]), BTreeSet::new());
    for received in collector.received() {
        for word in ["hunter2", "example.com", "named-so"] {
            let found = received.body.windows(word.len());
            assert!(!found.clone().any(|part| part == word.as_bytes()), "{word}");
        }
    }
}

/// An idle daemon does not wake up for telemetry.
#[test]
fn tel_3_an_idle_daemon_sleeps() {
    let collector = Collector::new();
    let world = world(&collector, "");
    write(&mut world.session("s"), "a.txt", "1\n");
    sent(&world);
    // Threads that read and packed end after ten seconds.
    until("the daemon rests", || {
        let before = switches(world.pid());
        pause(2_000);
        let helpers = threads(world.pid());
        let helping = helpers.iter().any(|name| name.starts_with("tokio"));
        !helping && switches(world.pid()) == before
    });
    let (before, connections) = (switches(world.pid()), collector.connections());
    pause(5_000);
    assert_eq!(switches(world.pid()), before);
    assert_eq!(collector.connections(), connections);
}

/// A wrong address is named by `status` and `doctor`.
#[test]
fn tel_1_a_wrong_address_is_named() {
    let mut collector = Collector::new();
    let mut world = World::asleep();
    world.configure("[telemetry]\nenabled = true\nendpoint = \"https://a\"\n");
    world.start();
    let refused = world.client().ok("status", json!({}))["configuration"].clone();
    assert!(text(&refused, "refused").contains("https is not built in"));
    world.stop();
    world.configure("telemetry.enabled = true\n");
    world.set_env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://a");
    world.start();
    let error = text(&status(&world), "lastError");
    assert!(error.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{error}");
    let said = |world: &World| {
        let doctor = world.run(&["doctor"]);
        String::from_utf8(doctor.stdout).unwrap()
    };
    assert!(said(&world).contains("OTEL_EXPORTER_OTLP_ENDPOINT"));
    collector.goes_down();
    world.configure(&on(&collector, ""));
    assert!(
        said(&world).contains(&collector.endpoint()),
        "{}",
        said(&world)
    );
    collector.comes_up();
    assert!(
        said(&world).contains("accepts connections"),
        "{}",
        said(&world)
    );
}

/// A real collector takes the records and passes all of them on, and another
/// decoder reads what the daemon sends.
#[test]
fn tel_5_a_real_collector_takes_the_records() {
    let what = "a real collector";
    if !parts::heavy(what) {
        return;
    }
    let Some((python, program)) = rotel::fetched(what) else {
        return;
    };
    let behind = Collector::new();
    let mut real = Rotel::new(program, &behind.endpoint());
    let mut world = World::asleep();
    let configuration = format!(
        "[telemetry]\nenabled = true\nendpoint = \"{}\"\n",
        real.endpoint()
    );
    world.configure(&configuration);
    world.start();
    let mut agent = world.session("s");
    write(&mut agent, "a.txt", "1\n");
    agent.read("a.txt");
    sent(&world);
    // What it has taken and not passed on yet would be lost with it.
    let passed_on = |world: &World| {
        let count = versions(world).len() + activities(world).len();
        behind.wait("everything is passed on", |behind| {
            behind.joined().len() == count
        });
    };
    passed_on(&world);
    real.kill();
    write(&mut agent, "a.txt", "2\n");
    until("it fails", || !status(&world)["lastError"].is_null());
    real.start();
    sent(&world);
    passed_on(&world);
    complete(&world, &behind);

    // Sent to the test itself, for the other decoder.
    let collector = Collector::new();
    world.configure(&on(&collector, ""));
    signal(world.pid(), Signal::HUP);
    until("the switch", || {
        status(&world)["endpoint"]
            .as_str()
            .is_some_and(|at| at.contains(&collector.endpoint()))
    });
    write(&mut agent, "b.txt", "1\n");
    sent(&world);
    let bodies: Vec<String> = collector
        .received()
        .iter()
        .filter(|received| received.path == "/v1/logs")
        .map(|received| {
            received
                .body
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        })
        .collect();
    let script = "import sys\n\
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest\n\
        for body in sys.argv[1:]:\n\
        \x20   for r in ExportLogsServiceRequest.FromString(bytes.fromhex(body)).resource_logs:\n\
        \x20       for s in r.scope_logs:\n\
        \x20           for l in s.log_records:\n\
        \x20               uid = [a.value.string_value for a in l.attributes if a.key == 'log.record.uid']\n\
        \x20               print(l.event_name, l.time_unix_nano, *uid)\n";
    let read = Command::new(python)
        .args(["-c", script])
        .args(&bodies)
        .output()
        .unwrap();
    let read = String::from_utf8(read.stdout).unwrap();
    let expected: Vec<String> = collector
        .logged()
        .iter()
        .map(|logged| format!("{} {} {}", logged.event, logged.time, logged.uid()))
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(read.lines().collect::<Vec<_>>(), expected);
}
