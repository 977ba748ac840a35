//! LOSS-2 when watches run out: nothing is missed, the condition is reported,
//! and it ends.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use touchmark_tests::limits::{self, Limit};
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::world::{backend, fence_takes_a_directory};
use touchmark_tests::{Session, World, authors, paths, text, user};

fn degraded(world: &World) -> Vec<Value> {
    let status = world.client().ok("status", json!({}));
    status["degraded"].as_array().unwrap().clone()
}

/// Makes the daemon retry what it could not watch. It also does so every ten
/// seconds.
fn mended(world: &World) {
    let pid = Pid::from_raw(world.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    let end = Instant::now() + PATIENCE;
    while !degraded(world).is_empty() {
        assert!(Instant::now() < end, "{:?}", degraded(world));
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns `touchmark doctor`'s findings about coverage. Each must have a hint.
fn doctor(world: &World) -> Vec<String> {
    let output = world.run(&["doctor", "--json"]);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = said["checks"].as_array().unwrap().iter();
    checks
        .filter(|check| check["check"] == "coverage" && check["level"] == "wrong")
        .map(|check| {
            assert_ne!(check["hint"], "", "{check}");
            text(check, "says")
        })
        .collect()
}

/// Checks that every way to change a file is found at the next query, with and
/// without a watch. What was not watched has no known author, and what was
/// declared is the session's (ATTR-13).
fn nothing_is_missed(world: &World, agent: &mut Session, dirs: &[String]) {
    for (number, dir) in dirs.iter().enumerate() {
        let name = |file: &str| format!("{dir}/{file}");
        let path = |file: &str| world.path(name(file));
        let round = format!("{number}\n");
        user::write(&path("written.txt"), &round);
        assert_eq!(agent.state(&name("written.txt")), "stale", "{dir}");
        user::replace(&path("replaced.txt"), &round);
        assert_eq!(agent.state(&name("replaced.txt")), "stale", "{dir}");
        fs::remove_file(path("removed.txt")).unwrap();
        assert_eq!(agent.state(&name("removed.txt")), "deleted", "{dir}");
        assert_eq!(agent.state(&name("left.txt")), "fresh", "{dir}");
        // A write with no visible trace in size or time.
        let left = fs::metadata(path("left.txt")).unwrap().modified().unwrap();
        user::write(&path("left.txt"), "two\n");
        let file = fs::File::options().write(true).open(path("left.txt"));
        file.unwrap().set_modified(left).unwrap();
        assert_eq!(agent.state(&name("left.txt")), "stale", "{dir}");
        agent.mark(&name("agent.txt"), Some("agent\n"));
        user::write(&path("agent.txt"), "agent\n");
        assert_eq!(agent.state(&name("agent.txt")), "fresh", "{dir}");
        let story = agent.story(&name("agent.txt"));
        assert_eq!(story.last().unwrap(), "agent:s declared", "{dir}");
        let changes = agent.take();
        let expected = ["left.txt", "removed.txt", "replaced.txt", "written.txt"].map(name);
        assert_eq!(paths(&changes), expected);
    }
}

const FILES: [&str; 5] = [
    "agent.txt",
    "left.txt",
    "removed.txt",
    "replaced.txt",
    "written.txt",
];

fn written(world: &World, agent: &mut Session, dirs: &[String]) {
    for dir in dirs {
        let names = FILES.map(|file| format!("{dir}/{file}"));
        for name in &names {
            world.file(name, "one\n");
        }
        agent.read_all(&names);
    }
    agent.take();
}

#[test]
fn loss2_the_limit_of_watches() {
    // One for the workspace, one for the runtime directory and one for that of
    // the lock. In addition one for the fence or, with inotify, one each for
    // the socket and the lock: three of the directories are watched and others
    // are not.
    let watches = match fence_takes_a_directory() {
        true => 7,
        false => 8,
    };
    limits::limited(Limit::Watches, watches, |mut world| {
        world.start();
        let mut agent = world.session("s");
        let mut subscriber = world.client();
        subscriber.ok("subscribe", json!({"kinds": ["degraded"]}));
        assert_eq!(degraded(&world), Vec::<Value>::new());
        let dirs: Vec<String> = (0..8).map(|number| format!("d{number}")).collect();
        written(&world, &mut agent, &dirs);
        let blind = degraded(&world);
        assert_eq!(blind.len(), 5, "{blind:?}");
        for place in &blind {
            let cause = text(place, "cause");
            assert!(cause.contains("fs.inotify.max_user_watches"), "{cause}");
        }
        // Pushed, and said by the doctor.
        let told = subscriber.event();
        assert_eq!(told["type"], "degraded", "{told}");
        assert!(blind.iter().any(|place| place["path"] == told["path"]));
        assert_eq!(doctor(&world).len(), 5);
        nothing_is_missed(&world, &mut agent, &dirs);
        let blind_dir = text(&blind[0], "path");
        let seen = dirs
            .iter()
            .find(|dir| !blind.iter().any(|place| place["path"] == dir.as_str()));
        let mut evidence = |dir: &str, content: &str| {
            let name = format!("{dir}/written.txt");
            agent.read(&name);
            user::write(&world.path(&name), content);
            let changes = agent.take();
            assert_eq!(paths(&changes), [name]);
            authors(&changes[0]).concat()
        };
        assert_eq!(evidence(&blind_dir, "whose\n"), "unknown");
        assert_eq!(evidence(seen.unwrap(), "whose\n"), "user");
        // It passes: what happens from then on is seen again.
        limits::set(&world, 100);
        mended(&world);
        assert_eq!(doctor(&world), Vec::<String>::new());
        assert_eq!(evidence(&blind_dir, "again\n"), "user");
        world.healthy();
    });
}

/// No directory can be watched, not even the fence's.
#[test]
fn loss2_no_watch_at_all() {
    limits::limited(Limit::Watches, 0, |mut world| {
        world.start();
        let mut agent = world.session("s");
        let dirs = ["a".to_owned(), "b/c".to_owned()];
        written(&world, &mut agent, &dirs);
        let blind = degraded(&world);
        assert!(
            blind.iter().any(|place| place["path"].is_null()),
            "{blind:?}"
        );
        nothing_is_missed(&world, &mut agent, &dirs);
        limits::set(&world, 100);
        mended(&world);
        written(&world, &mut agent, &dirs);
        nothing_is_missed(&world, &mut agent, &dirs);
        let told = agent.client.ok("status", json!({}));
        assert!(told["watchedDirectories"].as_u64() >= Some(4), "{told}");
        world.healthy();
    });
}

/// No inotify instance is available for the daemon. It takes one as soon as
/// there is one.
#[test]
fn loss2_the_limit_of_instances() {
    limits::limited(Limit::Instances, 0, |mut world| {
        world.start();
        let mut agent = world.session("s");
        let dirs = ["a".to_owned(), "b/c".to_owned()];
        written(&world, &mut agent, &dirs);
        let told = agent.client.ok("status", json!({}));
        assert_eq!(told["backend"], "none");
        assert_ne!(doctor(&world), Vec::<String>::new());
        nothing_is_missed(&world, &mut agent, &dirs);
        // A subscriber is told without a question, if later: by the look
        // that the daemon takes by itself.
        let mut subscriber = world.client();
        subscriber.ok("subscribe", json!({"kinds": ["stale"], "session": "s"}));
        agent.read("a/left.txt");
        user::write(&world.path("a/left.txt"), "three\n");
        let told = subscriber.event();
        assert_eq!(told["file"]["path"], "a/left.txt", "{told}");
        limits::set(&world, 5);
        mended(&world);
        let told = agent.client.ok("status", json!({}));
        assert_eq!(told["backend"], backend());
        written(&world, &mut agent, &dirs);
        nothing_is_missed(&world, &mut agent, &dirs);
        world.healthy();
    });
}
