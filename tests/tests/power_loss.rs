//! DUR-1 with `durability = "power"`: a virtual machine is switched off in the
//! middle of requests, repeatedly. What was answered is stored.
//!
//! This program also runs in the machine (`guest`): it starts the daemon,
//! prints what is stored, sends requests, and prints each answered one on the
//! console.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use touchmark_tests::machine::{Parts, say, word};
use touchmark_tests::parts::{long, not_tested};
use touchmark_tests::world::binary;
use touchmark_tests::{Client, sha256, text};

/// The number of power cuts, unless `TOUCHMARK_POWER_ROUNDS` sets another one.
const ROUNDS: u64 = 12;

/// The number of files that are rewritten through the daemon.
const REWRITTEN: u64 = 5;

const WORKSPACE: &str = "/disk/ws";

fn connected(socket: &Path) -> Client {
    let end = Instant::now() + Duration::from_secs(90);
    loop {
        if let Ok(client) = Client::connect(socket) {
            return client;
        }
        assert!(Instant::now() < end, "no daemon");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Not a test: the part that runs in the machine.
#[test]
#[ignore = "runs in the virtual machine of another test"]
fn guest() {
    let Some(first) = word("touchmark.first") else {
        return;
    };
    for name in ["home", "state", "config/touchmark", "ws"] {
        fs::create_dir_all(Path::new("/disk").join(name)).unwrap();
    }
    fs::create_dir_all("/run/user").unwrap();
    fs::write(
        "/disk/config/touchmark/config.toml",
        "durability = \"power\"\n",
    )
    .unwrap();
    let touchmark = |arguments: &[&str]| {
        let mut command = Command::new("/touchmark");
        command
            .args(["--workspace", WORKSPACE])
            .args(arguments)
            .env("HOME", "/disk/home")
            .env("XDG_RUNTIME_DIR", "/run/user")
            .env("XDG_STATE_HOME", "/disk/state")
            .env("XDG_CONFIG_HOME", "/disk/config")
            .env("JOURNAL_STREAM", "console");
        command
    };
    let socket = touchmark(&["socket"]).output().unwrap().stdout;
    let socket = String::from_utf8(socket).unwrap();
    let mut daemon = touchmark(&["daemon"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut client = connected(Path::new(socket.trim()));
    what_is_there(&mut client);
    for number in first.. {
        request(&mut client, number);
        if daemon.try_wait().unwrap().is_some() {
            return say("FAILED the daemon has ended");
        }
    }
}

/// Prints everything that an answered request may have stored.
fn what_is_there(client: &mut Client) {
    let status = client.ok("status", json!({}));
    say(&format!(
        "DURABILITY {}",
        text(&status["store"], "durability")
    ));
    say(&format!(
        "EPOCH {}",
        text(&status, "clock").split(':').next().unwrap()
    ));
    say(&format!("DEGRADED {}", status["degraded"]));
    let sessions = client.ok("session/list", json!({}));
    for one in sessions["sessions"].as_array().unwrap() {
        say(&format!("HAS session {}", text(one, "session")));
    }
    // Before the first round no session has read anything.
    client.ok("session/open", json!({"session": "reader"}));
    let files = client.ok(
        "file/status",
        json!({"session": "reader", "limit": 100_000}),
    );
    for one in files["files"].as_array().unwrap() {
        let seen = one["seenHash"].as_str().unwrap_or("nothing");
        say(&format!("HAS seen {} {seen}", text(one, "path")));
    }
    for entry in fs::read_dir(WORKSPACE).unwrap() {
        for path in [entry.unwrap().path()].into_iter().flat_map(inside) {
            let name = path.strip_prefix(WORKSPACE).unwrap().display().to_string();
            let content = fs::read_to_string(&path).unwrap_or_default();
            say(&format!("HAS file {name} {}", content.trim_end()));
        }
    }
    say("READY");
}

/// Returns the file, or the files of the directory.
fn inside(path: std::path::PathBuf) -> Vec<std::path::PathBuf> {
    match fs::read_dir(&path) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => vec![path],
    }
}

/// Sends one request, and prints it once it is answered.
fn request(client: &mut Client, number: u64) {
    let write = |client: &mut Client, path: &str| -> Value {
        client.ok(
            "file/write",
            json!({"session": "writer", "path": path, "text": format!("{number}\n"),
                   "createDirectories": true, "force": true}),
        )
    };
    match number % 4 {
        0 => {
            let session = format!("s{number}");
            client.ok("session/open", json!({"session": session}));
            say(&format!("ACK session {session}"));
        }
        // Seen bytes, which the disk need not hold.
        1 => {
            let (path, hash) = (format!("r{number}.txt"), sha256(number.to_string()));
            client.ok(
                "file/read",
                json!({"session": "reader", "path": path, "hash": hash}),
            );
            say(&format!("ACK seen {path} {hash}"));
        }
        2 => {
            let path = format!("d{number}/new.txt");
            write(client, &path);
            say(&format!("ACK file {path} {number}"));
        }
        _ => {
            let path = format!("g{}.txt", number / 4 % REWRITTEN);
            write(client, &path);
            say(&format!("ACK file {path} {number}"));
        }
    }
}

/// What was answered, or is stored: values by name.
#[derive(Default)]
struct Known(BTreeMap<String, String>);

impl Known {
    /// Parses a line: `WORD session NAME`, `WORD seen PATH HASH`, `WORD file
    /// PATH NUMBER`. Returns whether it was one.
    fn hear(&mut self, word: &str, line: &str) -> bool {
        // The console may have something of the kernel's before it.
        let Some((_, rest)) = line.split_once(&format!("{word} ")) else {
            return false;
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        match words[..] {
            [kind, name] => self.0.insert(format!("{kind} {name}"), String::new()),
            [kind, name, what] => self.0.insert(format!("{kind} {name}"), what.to_owned()),
            // Cut in the middle of the line.
            _ => return false,
        };
        true
    }
}

/// Compares what is stored with what was answered. Returns the number of
/// comparisons.
fn compare(answered: &Known, there: &Known, console: &str) -> usize {
    for (name, what) in &answered.0 {
        let found = there.0.get(name);
        // A later write may have been made, and the power gone before it was
        // answered.
        let right = match (found, what.parse::<u64>()) {
            (Some(found), Ok(number)) => found.parse::<u64>().is_ok_and(|later| later >= number),
            (Some(found), Err(_)) => found == what,
            (None, _) => false,
        };
        assert!(
            right,
            "{name} {what} was answered; there is {found:?}\n{console}"
        );
    }
    answered.0.len()
}

#[test]
fn dur1_what_was_answered_survives_a_loss_of_power() {
    if !long("a loss of power: a virtual machine is switched off at work") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let this = std::env::current_exe().unwrap();
    let programs = [(&*binary(), "/touchmark"), (&*this, "/guest")];
    let init = "/guest --exact power_loss::guest --ignored --nocapture --test-threads=1";
    let mut parts = match Parts::new(place.path(), &programs, init) {
        Ok(parts) => parts,
        Err(missing) => return not_tested(&format!("a loss of power: {missing}")),
    };
    parts.disk(64, None);
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let rounds = number("TOUCHMARK_POWER_ROUNDS").unwrap_or(ROUNDS);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let mut seed: u64 = number("TOUCHMARK_SEED").unwrap_or(now.unwrap().as_secs());
    println!("{rounds} rounds, TOUCHMARK_SEED={seed}");
    let mut random = |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };

    let mut answered = Known::default();
    let mut epoch = None;
    let mut first = 0;
    for round in 0..=rounds {
        let mut machine = parts.boot(&format!("touchmark.first={first}"));
        let mut there = Known::default();
        loop {
            let line = machine
                .line()
                .unwrap_or_else(|| panic!("round {round}: it went off:\n{}", machine.console()));
            let says = |word: &str| line.split_once(word).map(|(_, rest)| rest.to_owned());
            if let Some(found) = says("EPOCH ") {
                let known = epoch.get_or_insert_with(|| found.clone());
                assert_eq!(*known, found, "round {round}:\n{}", machine.console());
            }
            if let Some(durability) = says("DURABILITY ") {
                assert_eq!(durability, "power");
            }
            if let Some(degraded) = says("DEGRADED ") {
                assert_eq!(degraded, "[]", "round {round}:\n{}", machine.console());
            }
            there.hear("HAS", &line);
            if line.contains("READY") {
                break;
            }
        }
        let compared = compare(&answered, &there, &machine.console());
        // In the middle of a request: some after so many, some later.
        let wanted = 3 + random(60);
        let mut heard = 0;
        while heard < wanted {
            let line = machine
                .line()
                .unwrap_or_else(|| panic!("round {round}: it went off:\n{}", machine.console()));
            assert!(
                !line.contains("FAILED") && !line.contains("panicked"),
                "{}",
                machine.console()
            );
            heard += u64::from(answered.hear("ACK", &line));
        }
        std::thread::sleep(Duration::from_micros(random(30_000)));
        for line in machine.cut() {
            heard += u64::from(answered.hear("ACK", &line));
        }
        println!("round {round}: {compared} answers are there, {heard} more, then the power went");
        // What was under way may have been done.
        first += heard + 8;
    }
    println!(
        "{} answers in {rounds} losses of power, none missing",
        answered.0.len()
    );
}
