//! SEC-7: nothing that a repository contains ends, blocks or bloats the daemon,
//! in generated repositories.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use touchmark_tests::crafted::{Crafted, WAYS};
use touchmark_tests::hooks::Talk;
use touchmark_tests::{World, parts};

/// How many repositories there are with `--soak`.
const ALL: u64 = 1_000;

/// How many are tried at the same time. Most of the time a limit is waited for.
const LANES: usize = 4;

/// The most memory of a daemon, in KiB.
const MOST: u64 = 300 << 10;

/// How long an answer may take that asks git. A client waits that long.
const LONGEST: Duration = Duration::from_secs(30);

/// How long another client may wait for an answer that asks no process.
const BESIDE: Duration = Duration::from_secs(2);

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Returns the most memory that a daemon has had, in KiB.
pub(crate) fn peak(world: &World) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", world.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = line.unwrap().trim().trim_end_matches(" kB");
    peak.parse().unwrap()
}

/// What was asked in one repository.
struct Asked {
    took: Vec<(String, Duration)>,
    wrong: Vec<String>,
}

impl Asked {
    fn note(&mut self, what: &str, since: Instant) {
        self.took.push((what.to_owned(), since.elapsed()));
    }

    /// Makes all requests for which the repository is read.
    fn all(&mut self, world: &World, nth: u32) {
        let mut client = world.client();
        for n in 0..2 {
            let call = format!("{nth}-{n}");
            let named = json!({"session": "s", "callId": call});
            let mut begin = named.clone();
            begin["label"] = json!("make");
            begin["scope"] = json!("workspace");
            let since = Instant::now();
            let _answer = client.call("command/begin", begin);
            self.note("command/begin", since);
            for name in ["a.txt", "new.txt"] {
                let path = world.path(name);
                if path.symlink_metadata().is_ok_and(|found| found.is_file()) || name == "new.txt" {
                    let _in_the_way = fs::remove_file(&path);
                    let _in_the_way = fs::write(path, format!("changed {nth} {n}\n"));
                }
            }
            let since = Instant::now();
            let _answer = client.call("command/end", named);
            self.note("command/end", since);
        }
        let requests: [(&str, Value); 10] = [
            ("file/blame", json!({"path": "c.txt"})),
            ("file/blame", json!({"path": "a.txt"})),
            ("review/list", json!({})),
            ("survival/list", json!({})),
            ("worktree/list", json!({})),
            ("file/log", json!({"paths": ["a.txt"]})),
            ("file/diff", json!({"path": "a.txt", "from": "0"})),
            ("search/grep", json!({"pattern": "line 5"})),
            ("undo", json!({"session": "s"})),
            ("status", json!({})),
        ];
        for (method, params) in requests {
            let since = Instant::now();
            let _answer = client.call(method, params);
            self.note(method, since);
        }
        let mut talk = Talk::new(world, "claude", &format!("h{nth}"));
        let since = Instant::now();
        let call = talk.call();
        let command = "cat $(find . -name '*.txt')";
        let _heard = talk.say(&talk.voice.before_shell(&call, command));
        let _heard = talk.say(&talk.voice.after_shell(&call, command, "line 1\nline 2\n"));
        self.note("hooks", since);
    }
}

/// Asks in the repository of a seed. Returns what took longest, and what was
/// wrong.
fn asked(seed: u64) -> (String, Vec<String>) {
    let mut crafted = Crafted::ordinary();
    let what = crafted.harm(seed);
    let mut asked = Asked {
        took: Vec::new(),
        wrong: Vec::new(),
    };
    for nth in 0..2 {
        let ends = AtomicBool::new(false);
        let slowest = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = crafted.world.client();
                while !ends.load(Ordering::Relaxed) {
                    let since = Instant::now();
                    client.ok("ping", json!({}));
                    let took = u64::try_from(since.elapsed().as_millis()).unwrap();
                    slowest.fetch_max(took, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(5));
                }
            });
            asked.all(&crafted.world, nth);
            ends.store(true, Ordering::Relaxed);
        });
        let beside = Duration::from_millis(slowest.into_inner());
        asked.took.push(("ping".into(), beside));
        if beside > BESIDE {
            asked
                .wrong
                .push(format!("a bystander waited for {beside:?}"));
        }
        let peak = peak(&crafted.world);
        asked
            .took
            .push((format!("{} MiB", peak >> 10), Duration::ZERO));
        if peak > MOST {
            asked.wrong.push(format!("{} MiB", peak >> 10));
        }
        let since = Instant::now();
        let end = crafted.world.stop();
        asked.note("end", since);
        if end != Some(0) {
            asked.wrong.push(format!("exit code {end:?}"));
        }
        let log = crafted.world.log();
        if let Some(line) = log.lines().find(|line| line.contains("panic")) {
            asked.wrong.push(line.to_owned());
        }
        if nth == 0 {
            // Unseen.
            let moved = crafted.world.path("moved.txt");
            let _in_the_way = fs::rename(crafted.world.path("e.txt"), moved);
            crafted.world.start();
        }
    }
    let slow = asked.took.iter().filter(|(_, took)| *took > LONGEST);
    let slow: Vec<String> = slow
        .map(|(what, took)| format!("{what} took {took:?}"))
        .collect();
    asked.wrong.extend(slow);
    let total: Duration = asked.took.iter().map(|(_, took)| *took).sum();
    let mut said = format!("{what}: {:.1} s", total.as_secs_f32());
    for (what, took) in &asked.took {
        if *took > Duration::from_millis(500) || took.is_zero() {
            said += &format!(", {what} {:.1}", took.as_secs_f32());
        }
    }
    (said, asked.wrong)
}

#[test]
fn sec7_no_crafted_repository_ends_blocks_or_bloats_the_daemon() {
    let count = match parts::long(&format!("{ALL} crafted repositories")) {
        true => ALL,
        false => WAYS,
    };
    let from = variable("TOUCHMARK_FROM").unwrap_or(0);
    let count = variable("TOUCHMARK_SEEDS").unwrap_or(count);
    let next = AtomicU64::new(from);
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        break;
                    }
                    let (said, found) = asked(seed);
                    println!("{said}");
                    if !found.is_empty() {
                        let found = found.join(", ");
                        println!("WRONG {said}: {found}");
                        wrong.lock().unwrap().push(format!("{said}: {found}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
