//! DUR-2: damaged store files, with a whole daemon.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use touchmark_tests::{World, paths, process, sha256, text, user};

/// Returns the directory of the daemon's state.
fn own(world: &World) -> PathBuf {
    let key = world.socket().file_stem().unwrap();
    world.state().join("touchmark").join(key)
}

/// A transaction that reads the store. While it is open, nothing is copied from
/// SQLite's log into the file, however long the work before a kill takes.
struct Reader(Child);

impl Reader {
    fn begin(world: &World) -> Self {
        const PROGRAM: &str = "
import sqlite3, sys
store = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True, isolation_level=None)
store.execute('BEGIN')
store.execute('SELECT count(*) FROM meta').fetchone()
print('reads', flush=True)
sys.stdin.read()";
        let mut child = Command::new("python3")
            .args(["-c", PROGRAM])
            .arg(own(world).join("store.db"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, "reads\n");
        Self(child)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Not closed: the last to close a store copies its log and removes it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a world whose daemon was stopped or killed after some work, and a
/// clock. `b.txt` has changed since its read. A killed daemon has copied
/// nothing from SQLite's log into the file.
fn ended(killed: bool) -> (World, String) {
    let mut world = World::new();
    let _reader = killed.then(|| Reader::begin(&world));
    let mut agent = world.session("s");
    for number in 0..30 {
        let name = format!("d/f{number}.txt");
        world.file(&name, format!("{number}\n"));
        agent.read(&name);
        user::write(&world.path(&name), &format!("{number} again\n"));
    }
    for name in ["a.txt", "b.txt"] {
        world.file(name, "one\n");
        agent.read(name);
    }
    let clock = text(&agent.client.ok("sync", json!({})), "clock");
    if killed {
        world.kill();
    } else {
        world.stop();
    }
    user::write(&world.path("b.txt"), "two\n");
    (world, clock)
}

fn lost(status: &Value) -> Option<String> {
    let causes = status["degraded"].as_array().unwrap().iter();
    let mut causes = causes.map(|one| text(one, "cause"));
    causes.find(|cause| cause.starts_with("state was lost"))
}

/// Starts the daemon on damaged files. No answer may be wrong: either
/// everything is known, or a record is left out, or the whole store is set
/// aside. In the latter two cases clients are told. Returns whether damage was
/// found.
fn starts(world: &mut World, clock: &str, what: &str) -> bool {
    world.start();
    let mut agent = world.session("s");
    let status = agent.client.ok("status", json!({}));
    let states = (agent.state("a.txt"), agent.state("b.txt"));
    let Some(cause) = lost(&status) else {
        assert_eq!(states, ("fresh".into(), "stale".into()), "{what}");
        assert_eq!(agent.status("b.txt")["seenHash"], sha256("one\n"), "{what}");
        let listed = agent.client.ok("modified/list", json!({"since": clock}));
        assert_eq!(paths(listed["changes"].as_array().unwrap()), ["b.txt"]);
        return false;
    };
    let aside = cause.contains("set aside as");
    assert!(aside || cause.contains("cannot be read"), "{what}: {cause}");
    assert_ne!(states.1, "fresh", "{what}");
    let since = json!({"since": clock});
    agent
        .client
        .refused("modified/list", since.clone(), "unknownClock");
    agent.client.refused("subscribe", since, "unknownClock");
    assert_eq!(
        agent.ok("modified/take", json!({}))["reset"],
        true,
        "{what}"
    );
    if !aside {
        return true;
    }
    let aside = cause.rsplit(' ').find(|word| word.contains("damaged-"));
    let aside = aside.unwrap().trim_end_matches(';');
    assert!(Path::new(aside).exists(), "{what}: {cause}");
    let doctor = world.run(&["doctor"]);
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("damaged stores"), "{what}: {doctor}");
    true
}

/// Checks that new work after damage survives.
fn goes_on(world: &mut World) {
    let mut agent = world.session("s");
    agent.read("a.txt");
    agent.read("b.txt");
    let clock = text(&agent.client.ok("sync", json!({})), "clock");
    world.restart();
    let mut agent = world.session("s");
    assert_eq!(agent.state("b.txt"), "fresh");
    let status = agent.client.ok("status", json!({}));
    assert_eq!(lost(&status), None);
    agent.client.ok("modified/list", json!({"since": clock}));
    world.healthy();
}

fn change(file: &Path, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    how(&mut bytes);
    fs::write(file, bytes).unwrap();
}

#[test]
fn dur2_a_file_of_something_else() {
    let (mut world, clock) = ended(false);
    let file = own(&world).join("store.db");
    fs::write(
        &file,
        "not a database, but long enough to be read as one\n".repeat(100),
    )
    .unwrap();
    assert!(starts(&mut world, &clock, "something else"));
    goes_on(&mut world);
}

#[test]
fn dur2_a_file_that_was_torn() {
    for killed in [false, true] {
        let (mut world, clock) = ended(killed);
        change(&own(&world).join("store.db"), |bytes| {
            let half = bytes.len() / 2 + 100;
            bytes.truncate(half);
        });
        // A killed daemon's log may hold every page that is missing.
        let aside = starts(&mut world, &clock, "torn");
        assert!(aside || killed);
        goes_on(&mut world);
    }
}

#[test]
fn dur2_a_log_that_was_torn() {
    for half in [false, true] {
        let (mut world, clock) = ended(true);
        change(&own(&world).join("store.db-wal"), |bytes| {
            let end = bytes.len() - if half { bytes.len() / 2 } else { 5_000 };
            bytes.truncate(end);
        });
        // The last commit, if the daemon had time for it, was none that
        // a client was told of.
        let aside = starts(&mut world, &clock, "a torn log");
        assert!(aside || !half);
        goes_on(&mut world);
    }
}

#[test]
fn dur2_a_file_that_vanished() {
    let (mut world, clock) = ended(false);
    fs::remove_file(own(&world).join("store.db")).unwrap();
    world.start();
    let mut agent = world.session("s");
    assert!(lost(&agent.client.ok("status", json!({}))).is_some());
    assert_eq!(agent.state("a.txt"), "unread");
    agent
        .client
        .refused("modified/list", json!({"since": clock}), "unknownClock");
    goes_on(&mut world);
}

/// Single bits flipped in every file of the store.
#[test]
fn dur2_flipped_bits() {
    let mut aside = 0;
    for killed in [false, true] {
        let (mut world, clock) = ended(killed);
        let state = own(&world);
        let whole = tempfile::tempdir().unwrap();
        let files = ["store.db", "store.db-wal", "store.last"];
        for name in files.iter().filter(|name| state.join(name).exists()) {
            fs::copy(state.join(name), whole.path().join(name)).unwrap();
        }
        let mut seed = 0x2545_f491_4f6c_dd1d_u64 ^ u64::from(killed);
        for round in 0..8 {
            fs::remove_dir_all(&state).unwrap();
            fs::create_dir(&state).unwrap();
            fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o700))
                .unwrap();
            for name in files.iter().filter(|name| whole.path().join(name).exists()) {
                fs::copy(whole.path().join(name), state.join(name)).unwrap();
            }
            // The log is where a killed store's facts are.
            let name = if killed { files[1] } else { files[0] };
            let mut what = String::new();
            change(&state.join(name), |bytes| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (seed >> 33) as usize % bytes.len();
                // The schema's version is another matter.
                let at = if (56..68).contains(&at) { 100 } else { at };
                bytes[at] ^= 1 << ((seed >> 20) & 7);
                what = format!("{name} at {at} of {}, round {round}", bytes.len());
            });
            aside += usize::from(starts(&mut world, &clock, &what));
            world.kill();
        }
        drop(world);
    }
    assert!(aside >= 4, "{aside} of 16 found");
}

/// A start does not look at each page. The lookup that meets a damaged one fails,
/// and the store is replaced by one with the facts that can be read, as the error
/// says.
#[test]
fn dur2_a_page_of_history_that_is_gone() {
    let mut world = World::new();
    let mut agent = world.session("s");
    for number in 0..400 {
        let path = format!("f{}.txt", number % 4);
        let params = json!({"path": path, "text": format!("{number}\n"), "force": true});
        agent.ok("file/write", params);
    }
    drop(agent);
    world.stop();
    let store = own(&world).join("store.db");
    let pages = fs::metadata(&store).unwrap().len() / 4_096;
    let whole = fs::read(&store).unwrap();
    let history = |world: &World| {
        let mut client = world.client();
        let found = client.call("file/history", json!({"path": "f1.txt", "limit": 1_000}));
        if found.is_err() {
            // By the store's own thread, perhaps after the answer.
            process::until("status names the damage", || {
                let status = client.ok("status", json!({}));
                status["degraded"].to_string().contains("malformed")
            });
        }
        found
    };
    let mut mended = 0;
    for page in (2..pages).rev() {
        fs::write(&store, &whole).unwrap();
        change(&store, |bytes| {
            let page = usize::try_from(page).unwrap() * 4_096;
            bytes[page..page + 4_096].fill(0);
        });
        world.start();
        let Err(error) = history(&world) else {
            world.stop();
            continue;
        };
        assert_eq!(error.name, "storage");
        let hint = text(&error.data, "hint");
        assert!(hint.contains("touchmark stop"), "{hint}");
        // No client is connected now.
        process::until("the store is mended", || {
            let status = world.run(&["--json", "status"]).stdout;
            String::from_utf8_lossy(&status).contains("facts were kept")
        });
        let found = history(&world).unwrap();
        let versions = found["versions"]
            .as_array()
            .unwrap_or_else(|| panic!("{found}"));
        assert!(versions.len() > 50, "{}", versions.len());
        mended += 1;
        break;
    }
    assert_eq!(mended, 1);
    world.healthy();
}

/// A newer touchmark's store is intact: it stays unchanged, and no daemon
/// starts.
#[test]
fn dur2_a_store_of_a_newer_version() {
    let (mut world, _) = ended(false);
    let file = own(&world).join("store.db");
    // The header's bytes 60 to 63 are the schema's version.
    let mut own_version = [0; 4];
    change(&file, |bytes| {
        own_version.copy_from_slice(&bytes[60..64]);
        bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    });
    let before = fs::read(&file).unwrap();
    let refused = world.run(&["daemon"]);
    let says = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{says}");
    assert!(says.contains("version 99"), "{says}");
    assert!(says.contains("update touchmark"), "{says}");
    // Who starts one on demand is told as well.
    let status = world.run(&["start"]);
    let says = String::from_utf8_lossy(&status.stderr).into_owned();
    assert!(!status.status.success());
    assert!(says.contains("version 99"), "{says}");
    let doctor = world.run(&["doctor"]);
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("update touchmark"), "{doctor}");
    assert_eq!(fs::read(&file).unwrap(), before);
    // With the touchmark that wrote it all is as it was.
    change(&file, |bytes| bytes[60..64].copy_from_slice(&own_version));
    world.start();
    let mut agent = world.session("s");
    assert_eq!(agent.state("a.txt"), "fresh");
    assert_eq!(agent.state("b.txt"), "stale");
    world.healthy();
}

/// Changes rows of a closed store with SQL.
fn with_sql(world: &World, sql: &str) {
    const PROGRAM: &str = "
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.executescript(sys.argv[2])
store.close()";
    let file = own(world).join("store.db");
    let done = Command::new("python3")
        .args(["-c", PROGRAM])
        .arg(file)
        .arg(sql)
        .status();
    assert!(done.unwrap().success());
}

#[test]
fn dur2_a_record_that_cannot_be_read_costs_itself() {
    let mut world = World::new();
    let mut agent = world.session("s");
    for name in ["a.txt", "b.txt"] {
        world.file(name, "one\n");
        agent.read(name);
        user::write(&world.path(name), "two\n");
        agent.sync();
    }
    let clock = text(&agent.client.ok("sync", json!({})), "clock");
    assert_eq!(agent.history("a.txt").len(), 2);
    world.stop();
    // The version of the user's of one file, which a snapshot covers.
    with_sql(
        &world,
        "UPDATE fact SET body = x'00' WHERE n = (SELECT max(n) FROM fact WHERE path = x'612e747874')",
    );
    world.start();
    let mut agent = world.session("s");
    assert_eq!(
        (agent.state("a.txt"), agent.state("b.txt")),
        ("stale".into(), "stale".into())
    );
    assert_eq!(
        (agent.history("a.txt").len(), agent.history("b.txt").len()),
        (1, 2)
    );
    // Where it was found it is counted, without a new start.
    let counted = |world: &World| {
        let status = world.client().ok("status", json!({}));
        let mut causes = status["degraded"].as_array().unwrap().iter();
        causes.any(|one| text(one, "cause") == "records of the store that cannot be read: 1")
    };
    process::until("it is counted", || counted(&world));
    let epoch = |clock: &str| clock.split(':').next().unwrap().to_owned();
    let now = text(&agent.client.ok("sync", json!({})), "clock");
    assert_eq!(epoch(&now), epoch(&clock));
    agent.client.ok("modified/list", json!({"since": clock}));
    let long_ago = json!({"since": format!("{}:1", epoch(&clock))});
    agent
        .client
        .refused("modified/list", long_ago, "unknownClock");
    world.restart();
    assert!(counted(&world));

    // The snapshot: what sessions knew is gone, the history is not.
    world.stop();
    with_sql(&world, "UPDATE snapshot SET body = x'00'");
    world.start();
    let mut agent = world.session("s");
    let status = agent.client.ok("status", json!({}));
    let cause = lost(&status).expect("said");
    assert!(
        cause.contains("the snapshot is not what was stored"),
        "{cause}"
    );
    assert_eq!(agent.state("b.txt"), "unread");
    assert_eq!(agent.history("b.txt").len(), 2);
    agent
        .client
        .refused("modified/list", json!({"since": now}), "unknownClock");
    let aside = fs::read_dir(own(&world)).unwrap();
    let mut names = aside.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.any(|name| name.contains("damaged")));
    agent.read("b.txt");
    world.restart();
    assert_eq!(world.session("s").state("b.txt"), "fresh");
}
