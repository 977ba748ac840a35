//! SEC-2 against a fast attacker: files and directories are exchanged with
//! links that lead out, while requests of every method that reads or writes by
//! name are sent about them. No byte from outside is returned or stored, and
//! nothing outside is written.
//!
//! Takes some seconds, and with `TOUCHMARK_SOAK=1` (`tests/run --soak`) three
//! minutes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use touchmark_tests::hooks::Voice;
use touchmark_tests::parts::long;
use touchmark_tests::stop::SetsOnDrop;
use touchmark_tests::wire::Answer;
use touchmark_tests::{Session, World, sha256, user};

/// The number of directories in each of the exchanged trees, and of files in
/// each.
const BRANCHES: usize = 150;
const LEAVES: usize = 3;

/// The longest allowed 99th percentile of answers about another file, on a
/// machine with all cores busy. On an idle machine it is tens of milliseconds.
/// Reading every file at each exchange made it many seconds.
const PROMPT: Duration = Duration::from_secs(1);

/// The number of answers that is enough for a 99th percentile.
const ANSWERS: usize = 300;

/// A text in every file outside, and in no file inside.
const CANARY: &str = "CANARY-OF-THE-OUTSIDE";

/// A pattern that matches the canary without containing it, since answers are
/// searched for the canary.
const PATTERN: &str = "CANARY.OF.THE|of the inside";

/// The minimum number of requests and the duration, of a short run and of a
/// long one.
const SHORT: (u64, Duration) = (500, Duration::from_secs(4));
const LONG: (u64, Duration) = (10_000, Duration::from_secs(180));

/// By which factor the duration is extended, on a slow machine, until the
/// minimum number of requests was sent.
const AT_MOST: u32 = 15;

/// The outcomes that must occur, at the latest when nothing is exchanged any
/// more: which of them occur before is random.
const SEEN: [&str; 11] = [
    "file/readText ok",
    "file/readText outsideWorkspace",
    "file/snapshot ok",
    "file/snapshot outsideWorkspace",
    "file/write ok",
    "file/write outsideWorkspace",
    "file/edit ok",
    "file/edit outsideWorkspace",
    "search/grep ok",
    "hook/event ok",
    "recovery/restore ok",
];

/// The number of clients that send requests at the same time.
const CLIENTS: u64 = 3;

/// The pairs that are exchanged: a name inside, and a link that leads out.
const PAIRS: [(&str, &str); 4] = [
    ("d", "d-out"),
    ("f.txt", "f-out"),
    ("l", "l-out"),
    ("d/sub", "d-sub-out"),
];

/// Names that resolve to the inside or the outside, depending on the moment.
const NAMES: [&str; 5] = ["d/a.txt", "f.txt", "l/a.txt", "d/sub/b.txt", "d/sub/c.txt"];

/// Returns everything below a directory: the kind and content of each entry.
fn everything(below: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut directories = vec![below.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let looked = fs::symlink_metadata(&path).unwrap();
            let held = match looked.is_dir() {
                true => String::new(),
                false => fs::read_to_string(&path).unwrap(),
            };
            let (inode, mode, modified) = (looked.ino(), looked.mode(), looked.mtime_nsec());
            found.insert(
                path.display().to_string(),
                format!("{inode} {mode:o} {modified} {held}"),
            );
            if looked.is_dir() {
                directories.push(path);
            }
        }
    }
    found
}

/// Returns the bytes of every file below a directory.
fn bytes(below: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => bytes.extend(self::bytes(&path)),
            false => bytes.extend(fs::read(&path).unwrap_or_default()),
        }
    }
    bytes
}

fn outside(world: &World) -> std::path::PathBuf {
    world.outside().join("secret")
}

/// Creates two trees with the same names, and links to the one outside.
fn prepare(world: &World) {
    let secret = outside(world);
    fs::create_dir_all(secret.join("sub")).unwrap();
    for name in ["a.txt", "sub/a.txt", "sub/b.txt", "sub/c.txt"] {
        fs::write(secret.join(name), format!("{CANARY} {name}\n")).unwrap();
    }
    for name in [
        "d/a.txt",
        "d/sub/b.txt",
        "d/sub/c.txt",
        "f.txt",
        "real/a.txt",
    ] {
        world.file(name, format!("of the inside {name}\n"));
    }
    symlink("real", world.path("l")).unwrap();
    for (name, to) in [
        ("d-out", secret.clone()),
        ("f-out", secret.join("a.txt")),
        ("l-out", secret.clone()),
        ("d-sub-out", secret.join("sub")),
    ] {
        symlink(to, world.path(name)).unwrap();
    }
}

/// Exchanges the pairs until all names are inside, or outside.
fn put(world: &World, inside: bool) {
    // From the top: while `d` is the link, `d/sub` is outside. The last pair is
    // a directory within the first, and is put inside either way.
    let pairs = [
        ("d", inside),
        ("f.txt", inside),
        ("l", inside),
        ("d/sub", true),
    ];
    for (position, (name, inside)) in pairs.into_iter().enumerate() {
        let (one, other) = (world.path(name), world.path(PAIRS[position].1));
        let leads_out = fs::canonicalize(&one).unwrap().starts_with(outside(world));
        let within = !one.parent().unwrap().is_symlink();
        if within && leads_out == inside {
            renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
        }
    }
}

/// Exchanges the pairs 500 times a second. Returns the total number.
fn exchange(world: &World, done: &AtomicBool) -> u64 {
    let mut count = 0;
    let began = Instant::now();
    while !done.load(Ordering::Relaxed) {
        for (one, other) in PAIRS {
            let due = began + Duration::from_millis(count * 2);
            while Instant::now() < due {
                user::pause(1);
            }
            // While `d` is the link, `d/sub` is outside.
            let (one, other) = (world.path(one), world.path(other));
            let inside = one.parent().unwrap().symlink_metadata();
            if inside.is_ok_and(|parent| parent.is_dir()) {
                let exchanged = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
                count += u64::from(exchanged.is_ok());
            }
        }
    }
    count
}

/// Returns the requests about a name, in turn. Requests that write use `force`,
/// since only the place matters here, not the content.
fn requests(world: &World, name: &str, n: u64) -> Vec<(&'static str, Value)> {
    let text = format!("of the inside, written {n}\n");
    let (directory, _) = name.rsplit_once('/').unwrap_or((".", name));
    let voice = Voice::new("claude", "hooked", world.workspace());
    let call = format!("call-{n}");
    let hook = |input: Value| ("hook/event", json!({"agent": "claude", "input": input}));
    vec![
        ("file/readText", json!({"path": name, "force": true})),
        ("file/read", json!({"path": name})),
        ("file/status", json!({"paths": [name], "verify": true})),
        ("file/mention", json!({"path": name})),
        ("file/snapshot", json!({"path": name})),
        ("file/history", json!({"path": name})),
        ("file/list", json!({"all": true})),
        (
            "file/write",
            json!({"path": name, "text": text, "force": true}),
        ),
        (
            "file/edit",
            json!({"path": name, "oldString": "inside", "newString": "inside", "replaceAll": true, "force": true}),
        ),
        (
            "file/edit",
            json!({"path": name, "oldString": "OUTSIDE", "newString": "INSIDE", "force": true}),
        ),
        (
            "file/write",
            json!({"path": format!("{directory}/new-{}/x.txt", n % 3), "text": text,
                   "createDirectories": true, "force": true}),
        ),
        (
            "edit/begin",
            json!({"files": [{"path": name}], "force": true, "ttlMs": 1}),
        ),
        ("edit/mark", json!({"path": name, "ttlMs": 1})),
        ("search/grep", json!({"pattern": PATTERN})),
        ("search/grep", json!({"pattern": PATTERN, "path": name})),
        (
            "search/grep",
            json!({"pattern": PATTERN, "path": directory}),
        ),
        ("modified/list", json!({})),
        ("modified/take", json!({})),
        ("checkpoint/detect", json!({"time": 0, "paths": [name]})),
        ("editor/didOpen", json!({"path": name})),
        ("recovery/list", json!({})),
        (
            "call/record",
            json!({"tool": "read", "args": {"path": name}, "result": "x", "paths": [name]}),
        ),
        (
            "call/check",
            json!({"tool": "read", "args": {"path": name}}),
        ),
        hook(voice.before_read(&call, name)),
        hook(voice.after_read(&call, name, "of the inside")),
        hook(voice.before_write(&call, name, &text)),
        hook(voice.after_write(&call, name, &text)),
    ]
}

/// Texts that must not be in an answer.
struct Forbidden(Vec<String>);

impl Forbidden {
    fn new(world: &World) -> Self {
        let mut words = vec![CANARY.to_owned()];
        for path in everything(&outside(world)).into_keys() {
            if let Ok(content) = fs::read(path) {
                words.push(sha256(content));
            }
        }
        Self(words)
    }

    fn check(&self, method: &str, params: &Value, answer: &Answer) {
        let told = match answer {
            Ok(result) => result.to_string(),
            Err(error) => format!("{error} {}", error.data),
        };
        for word in &self.0 {
            assert!(!told.contains(word), "{method} {params}: {told}");
        }
        if let Err(error) = answer {
            assert_ne!(error.name, "internalError", "{method} {params}: {told}");
            assert!(error.data["hint"].is_string(), "{method} {params}: {told}");
        }
    }
}

/// Sends a round of requests about one name after the other, until the
/// run is over. Counts them, and records the outcomes.
fn ask(
    world: &World,
    client: u64,
    rounds: impl Iterator<Item = u64>,
    asked: &AtomicU64,
    over: impl Fn() -> bool,
    outcomes: &Mutex<BTreeSet<String>>,
) {
    let forbidden = Forbidden::new(world);
    let mut agent = world.session(&format!("s{client}"));
    for round in rounds {
        let name = NAMES[(round % NAMES.len() as u64) as usize];
        for (method, params) in requests(world, name, round) {
            if over() {
                return;
            }
            let shown = params.clone();
            let answer = call(&mut agent, method, params);
            forbidden.check(method, &shown, &answer);
            asked.fetch_add(1, Ordering::Relaxed);
            let how = answer.as_ref().map_or_else(|error| &*error.name, |_| "ok");
            outcomes.lock().unwrap().insert(format!("{method} {how}"));
            // What a write has kept is put back, while its place changes.
            if let ("recovery/list", Ok(listed)) = (method, &answer)
                && let Some(item) = listed["items"].as_array().unwrap().first()
            {
                for method in ["recovery/show", "recovery/restore", "recovery/delete"] {
                    let params = json!({"id": item["id"]});
                    let answer = agent.client.call(method, params.clone());
                    forbidden.check(method, &params, &answer);
                    asked.fetch_add(1, Ordering::Relaxed);
                    let how = answer.as_ref().map_or_else(|error| &*error.name, |_| "ok");
                    outcomes.lock().unwrap().insert(format!("{method} {how}"));
                }
            }
        }
    }
}

/// Returns an outcome of [`SEEN`] that has not occurred; `None` if all have.
fn missing(outcomes: &Mutex<BTreeSet<String>>) -> Option<&'static str> {
    let outcomes = outcomes.lock().unwrap();
    SEEN.into_iter()
        .find(|outcome| !outcomes.contains(*outcome))
}

/// Sends a request, with the session where the method has one.
fn call(agent: &mut Session, method: &str, params: Value) -> Answer {
    match method {
        "file/snapshot" | "file/history" | "editor/didOpen" | "recovery/list" | "hook/event" => {
            agent.client.call(method, params)
        }
        _ => agent.call(method, params),
    }
}

#[test]
fn sec2_files_and_directories_exchanged_with_links_during_requests() {
    let (least, time) = match long("files and links that change places for three minutes") {
        true => LONG,
        false => SHORT,
    };
    let mut world = World::new();
    prepare(&world);
    let before = everything(&world.outside());
    let (asked, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let outcomes = Mutex::default();
    let began = Instant::now();
    let exchanged = std::thread::scope(|scope| {
        let exchanging = scope.spawn(|| exchange(&world, &done));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (world, asked, outcomes) = (&world, &asked, &outcomes);
                let over = move || {
                    let (took, asked) = (began.elapsed(), asked.load(Ordering::Relaxed));
                    took > time && asked >= least || took > time * AT_MOST
                };
                scope.spawn(move || ask(world, client, client.., asked, over, outcomes))
            })
            .collect();
        let ended: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        done.store(true, Ordering::Relaxed);
        for client in ended {
            client.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        exchanging.join().unwrap()
    });
    let seconds = began.elapsed().as_secs();
    put(&world, true);
    // Overwritten unseen, so that there is something to restore.
    let mut agent = world.session("forced");
    agent.read("f.txt");
    user::write(&world.path("f.txt"), "of the inside, unseen\n");
    let write = json!({"path": "f.txt", "text": "of the inside, forced\n", "force": true});
    agent.ok("file/write", write);
    for inside in [true, false] {
        put(&world, inside);
        let names = 0..NAMES.len() as u64;
        ask(&world, CLIENTS, names, &asked, || false, &outcomes);
    }
    println!(
        "{} requests, {exchanged} exchanges in {seconds} s",
        asked.into_inner()
    );
    assert_eq!(everything(&world.outside()), before, "written outside");
    if let Some(outcome) = missing(&outcomes) {
        panic!("no {outcome}: {:?}", outcomes.into_inner().unwrap());
    }
    world.healthy();
    assert_eq!(world.stop(), Some(0));
    let kept = bytes(&world.state());
    let kept = String::from_utf8_lossy(&kept);
    assert!(!kept.contains(CANARY), "kept");
    assert!(kept.contains("of the inside"), "contents are found there");
}

/// LIM-6 for directories: each exchange of a name affects everything below it,
/// so following each event costs as many reads as files are tracked.
#[test]
fn lim6_trees_exchanged_without_pause_delay_no_answer_about_another_file() {
    let mut world = World::new();
    let names: Vec<String> = ["tree", "twin"]
        .iter()
        .flat_map(|tree| {
            let of = move |branch| (0..LEAVES).map(move |leaf| format!("{tree}/{branch}/{leaf}"));
            (0..BRANCHES).flat_map(of)
        })
        .collect();
    for name in &names {
        world.file(name, format!("at first in {name}\n"));
    }
    symlink("twin", world.path("link")).unwrap();
    world.file("other.txt", "other\n");
    let mut agent = world.session("s");
    agent.read_all(&names);
    let mut bystander = world.session("bystander");
    let done = AtomicBool::new(false);
    let (exchanges, mut took) = std::thread::scope(|scope| {
        let end = SetsOnDrop(&done);
        let exchanging = scope.spawn(|| {
            let (mut count, began) = (0, Instant::now());
            while !done.load(Ordering::Relaxed) {
                for other in ["twin", "link"] {
                    let (one, other) = (world.path("tree"), world.path(other));
                    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                    count += 1;
                    let due = began + Duration::from_millis(count * 2);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                }
            }
            count
        });
        let (mut took, began) = (Vec::new(), Instant::now());
        let over = |count| match began.elapsed().as_secs() {
            ..6 => false,
            6..30 => count >= ANSWERS,
            30.. => true,
        };
        while !over(took.len()) {
            bystander.read("other.txt");
            let round = took.len();
            user::write(&world.path("other.txt"), &format!("{round}\n"));
            let asked = Instant::now();
            let status = bystander.ok("file/status", json!({"paths": ["other.txt"]}));
            took.push(asked.elapsed());
            assert_eq!(status["files"][0]["state"], "stale", "{status}");
        }
        drop(end);
        (exchanging.join().unwrap(), took)
    });
    took.sort();
    let slow = took[(took.len() * 99).div_ceil(100) - 1];
    println!(
        "{exchanges} exchanges, {} answers: median {:?}, p99 {slow:?}, slowest {:?}",
        took.len(),
        took[took.len() / 2],
        took[took.len() - 1]
    );
    assert!(exchanges > 1_000, "{exchanges} exchanges are no storm");
    assert!(slow < PROMPT, "{slow:?} in {} rounds", took.len());
    // What is told afterwards is what the disk holds, with the trees in their
    // places again.
    for (place, other) in [("tree", "twin"), ("twin", "link"), ("tree", "twin")] {
        let first = |place| fs::read_to_string(world.path(place).join("0/0")).unwrap_or_default();
        let is_link = |place| world.path(place).is_symlink();
        if is_link(place) || !is_link(other) && first(place) != format!("at first in {place}/0/0\n")
        {
            let (place, other) = (world.path(place), world.path(other));
            renameat_with(CWD, place, CWD, other, RenameFlags::EXCHANGE).unwrap();
        }
    }
    let told = agent.ok("file/status", json!({"paths": names}));
    let told = told["files"].as_array().unwrap();
    assert_eq!(told.len(), names.len());
    for (row, name) in told.iter().zip(&names) {
        let held = fs::read(world.path(name)).unwrap();
        assert_eq!(row["hash"], sha256(held), "{name}: {row}");
    }
    world.healthy();
}
