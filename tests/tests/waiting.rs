//! SYNC-1 and LOSS-4: an answer waits only for the files that it covers: not
//! for a log that grows, and not for a network share that hangs.

use std::fs::{self, File};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use touchmark_tests::fuse::{self, Hanging};
use touchmark_tests::process::until;
use touchmark_tests::world::backend;
use touchmark_tests::{World, mounts, parts, user};

/// Far more than an answer takes on any machine, and far less than a read that
/// hangs.
const SOON: Duration = Duration::from_secs(5);

fn sha(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[test]
fn loss4_a_log_that_grows_without_pause_holds_nobody_up_and_is_known() {
    let mut world = World::new();
    let log = world.path("dev.log");
    fs::write(&log, vec![b'x'; 48 << 20]).unwrap();
    world.file("a.txt", "one\n");
    let mut agent = world.session("s");
    agent.ok(
        "file/read",
        json!({"path": "dev.log", "range": {"start": 1, "end": 1}}),
    );
    agent.read("a.txt");
    let stop = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (stop, log) = (Arc::clone(&stop), log.clone());
        move || {
            let mut log = File::options().append(true).open(log).unwrap();
            while !stop.load(Ordering::Relaxed) {
                log.write_all(b"GET / 200\n").unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
    for round in 0..20 {
        user::write(&world.path("a.txt"), &format!("{round}\n"));
        let asked = Instant::now();
        let status = agent.ok("file/status", json!({"paths": ["a.txt"]}));
        assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
        assert_eq!(status["files"][0]["state"], "stale", "{status}");
        agent.read("a.txt");
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    let truth = sha(&fs::read(&log).unwrap());
    for verify in [false, true] {
        let ask = json!({"paths": ["dev.log"], "verify": verify});
        let status = agent.ok("file/status", ask);
        assert_eq!(
            status["files"][0]["hash"], truth,
            "verify {verify}: {status}"
        );
    }
    world.healthy();
}

/// Returns whether a thread of the daemon reads files.
fn is_reading(world: &World) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", world.pid())).unwrap();
    let names = tasks.flatten().map(|task| task.path().join("comm"));
    names
        .filter_map(|comm| fs::read_to_string(comm).ok())
        .any(|name| name == "read\n")
}

/// An image of two terabytes, all of it a hole, takes far longer to read than
/// any test waits.
#[test]
fn loss4_a_read_that_nothing_needs_any_more_ends() {
    let mut world = World::new();
    world.file("a.txt", "one\n");
    let image = world.path("disk.img");
    File::create(&image).unwrap().set_len(2 << 40).unwrap();
    let ask = json!({"session": "s", "path": "disk.img"});
    world.session("s").read("a.txt");
    // The client that named it is gone.
    let mut gone = world.client();
    gone.send("file/mention", &ask);
    until("the read begins", || is_reading(&world));
    // A list does not wait for it, and has ordered one more read.
    let mut client = world.client();
    let listed = client.ok("file/status", json!({"session": "s"}));
    assert_eq!(listed["pending"], json!(["disk.img"]), "{listed}");
    drop(gone);
    until("the read ends", || !is_reading(&world));
    // The file is gone.
    let asked = client.send("file/mention", &ask);
    until("the read begins", || is_reading(&world));
    fs::remove_file(&image).unwrap();
    let answer = client.answer(asked).unwrap();
    assert_eq!(answer["hash"], Value::Null, "{answer}");
    until("the read ends", || !is_reading(&world));
    // What one client gave up is read for the next.
    let size: usize = 80 << 20;
    let truth = sha(&vec![0; size]);
    for round in 0..3 {
        let name = format!("disk{round}.img");
        let image = File::create(world.path(&name)).unwrap();
        image.set_len(size as u64).unwrap();
        let ask = json!({"session": "s", "path": name});
        let mut gone = world.client();
        gone.send("file/mention", &ask);
        until("the read begins", || is_reading(&world));
        drop(gone);
        let answer = client.ok("file/mention", ask);
        assert_eq!(answer["hash"], truth, "{answer}");
    }
    world.healthy();
}

#[test]
fn loss4_a_mount_that_hangs_costs_what_is_on_it() {
    mounts::apart(|| {
        let mut world = World::new();
        let place = world.path("remote");
        fs::create_dir_all(&place).unwrap();
        world.file("a.txt", "one\n");
        let Some(remote) = Hanging::new(&place) else {
            return;
        };
        let mut other = world.session("other");
        let mut agent = world.session("s");
        other.read("a.txt");
        agent.read("a.txt");
        agent.read(&format!("remote/{}", fuse::FILE.0));
        remote.hang();
        assert!(
            !fuse::answers(&place.join(fuse::FILE.0)),
            "it does not hang"
        );

        // A request about another file, also a hook's, is not delayed.
        for round in 0..5 {
            user::write(&world.path("a.txt"), &format!("{round}\n"));
            let asked = Instant::now();
            let status = other.ok("file/status", json!({"paths": ["a.txt"]}));
            assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
            assert_eq!(status["files"][0]["state"], "stale", "{status}");
            other.ok("modified/take", json!({}));
            other.read("a.txt");
            assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
        }
        // A question about the file has its own deadline.
        let mut patient = world.client();
        let ask = json!({"session": "p", "paths": ["remote/f.txt"], "withinMs": 300});
        patient.refused("file/status", ask, "tooLate");
        // A list is answered without it, and says so; the next at once.
        for _ in 0..2 {
            let taken = agent.ok("modified/take", json!({}));
            assert_eq!(taken["pending"], json!(["remote/f.txt"]), "{taken}");
        }
        drop(remote);
        mounts::detach(&place);
        world.kill();
    });
}

/// A file system of an ordinary kind whose reads take long. Only the slow reads
/// reveal that. After that, only queries about its files wait.
#[test]
fn loss4_a_local_mount_that_turns_slow_costs_what_is_on_it() {
    mounts::apart(|| {
        let mut world = World::new();
        let (lower, place) = (world.outside().join("lower"), world.path("vendor"));
        let empty = world.outside().join("empty");
        for directory in [&lower, &place, &empty] {
            fs::create_dir(directory).unwrap();
        }
        let Some(remote) = Hanging::new(&lower) else {
            return;
        };
        let layers = format!("lowerdir={}:{}", lower.display(), empty.display());
        mounts::mount("overlay", "a-test", &layers, &place);
        world.file("a.txt", "one\n");
        let mut agent = world.session("s");
        agent.read("a.txt");
        let name = format!("vendor/{}", fuse::FILE.0);
        agent.read(&name);
        // The first slow read cannot be foreseen.
        remote.slow(200);
        let verified = json!({"paths": [name], "verify": true});
        agent.ok("file/status", verified.clone());
        remote.slow(3_600_000);
        let mut patient = world.client();
        let ask = json!({"session": "s", "paths": [name], "verify": true, "withinMs": 300});
        patient.refused("file/status", ask, "tooLate");
        for round in 0..5 {
            user::write(&world.path("a.txt"), &format!("{round}\n"));
            let asked = Instant::now();
            assert_eq!(agent.state("a.txt"), "stale");
            agent.read("a.txt");
            assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
        }
        remote.slow(0);
        let states = agent.ok("file/status", verified);
        assert_eq!(states["files"][0]["state"], "fresh", "{states}");
        world.kill();
        mounts::detach(&place);
        drop(remote);
        mounts::detach(&lower);
    });
}

/// Exchanges two names without a pause, as fast as the system can.
#[test]
fn a_rename_storm_delays_no_answer_about_another_file() {
    if backend() != "inotify" {
        // `notify` takes longer for an event than the storm does, so each
        // watch of it overflows.
        return parts::not_tested("a storm of renames on another watch backend");
    }
    let mut world = World::new();
    for name in ["a", "b", "other.txt"] {
        world.file(name, format!("{name}\n"));
    }
    let mut agent = world.session("s");
    for name in ["a", "b", "other.txt"] {
        agent.read(name);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let storm = std::thread::spawn({
        let (stop, a, b) = (Arc::clone(&stop), world.path("a"), world.path("b"));
        move || {
            let mut exchanges = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
                exchanges += 1;
            }
            exchanges
        }
    });
    let began = Instant::now();
    let mut neighbour = world.client();
    let (mut slowest, mut most) = (Duration::ZERO, 0);
    let mut round = 0;
    // Far more events than the daemon would let wait of all names together.
    while began.elapsed() < Duration::from_secs(6) {
        round += 1;
        user::write(&world.path("other.txt"), &format!("{round}\n"));
        let asked = Instant::now();
        let status = agent.ok("file/status", json!({"paths": ["other.txt"]}));
        slowest = slowest.max(asked.elapsed());
        assert_eq!(status["files"][0]["state"], "stale", "{status}");
        agent.read("other.txt");
        most = most.max(
            neighbour.ok("status", json!({}))["rssBytes"]
                .as_u64()
                .unwrap(),
        );
    }
    stop.store(true, Ordering::Relaxed);
    let exchanges = storm.join().unwrap();
    assert!(exchanges > 10_000, "{exchanges} exchanges are no storm");
    assert!(slowest < SOON, "{slowest:?} in {round} rounds");
    assert!(most < 128 << 20, "{most} bytes");
    let status = agent.ok("file/status", json!({"paths": ["a", "b"]}));
    for (row, name) in status["files"].as_array().unwrap().iter().zip(["a", "b"]) {
        let truth = fs::read(world.path(name)).unwrap();
        let state = if truth == format!("{name}\n").as_bytes() {
            "fresh"
        } else {
            "stale"
        };
        assert_eq!(row["hash"], sha(&truth), "{row}");
        assert_eq!(row["state"], state, "{row}");
    }
    world.healthy();
}

/// Lines of a file that is too large for memory are still returned.
#[test]
fn a_file_of_any_size_is_read_by_lines() {
    let mut world = World::new();
    let path = world.path("large.log");
    let mut large = std::io::BufWriter::new(File::create(&path).unwrap());
    for line in 1..=5_000_000 {
        writeln!(large, "line {line:>9}").unwrap();
    }
    large.flush().unwrap();
    drop(large);
    assert!(fs::metadata(&path).unwrap().len() > 70 << 20);
    let mut agent = world.session("s");
    let mut read = |start: u32, end: u32| {
        let range = json!({"start": start, "end": end});
        agent.ok(
            "file/readText",
            json!({"path": "large.log", "range": range}),
        )
    };
    let text = read(4_999_999, 6_000_000);
    assert_eq!(text["text"], "line   4999999\nline   5000000\n", "{text}");
    assert_eq!(text["range"], json!({"start": 4_999_999, "end": 5_000_000}));
    assert_eq!(text["truncated"], false);
    assert_eq!(text["hash"], sha(&fs::read(&path).unwrap()));
    assert_eq!(read(4_999_999, 5_000_000)["verdict"], "repeat");
    // A log that grows meanwhile.
    let mut log = File::options().append(true).open(&path).unwrap();
    writeln!(log, "one more").unwrap();
    assert_eq!(read(5_000_001, 5_000_001)["text"], "one more\n");
    // All of it: as much as fits, and where to go on.
    let all = agent.ok("file/readText", json!({"path": "large.log"}));
    assert_eq!(all["truncated"], true);
    let end = all["range"]["end"].as_u64().unwrap();
    let text = all["text"].as_str().unwrap();
    assert!(text.ends_with(&format!("line {end:>9}\n")), "{end}");
    world.healthy();
}
