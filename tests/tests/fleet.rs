//! FLEET: many daemons of one user on one machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use touchmark_client::Session;
use touchmark_client::blocking::Client;
use touchmark_proto::daemon::{Status, Subscribe};
use touchmark_proto::edits::EditAbort;
use touchmark_proto::fleet::FleetYield;
use touchmark_proto::{Request, SessionId};
use touchmark_tests::fleet::{FILE, Fleet, row_of};
use touchmark_tests::limits::{self, Limit};
use touchmark_tests::process::{Stopped, signal, until, wait_gone};
use touchmark_tests::world::{backend, binary, finish};
use touchmark_tests::{World, parts, user};

/// Reads all files of a workspace for a session, so that their directories are
/// watched: the workspace, `src`, `deep` and `er`.
fn read_all(client: &Client) {
    let session = Session::open(client, "s").unwrap();
    for name in [FILE, "src/deep/b.txt", "src/deep/er/c.txt"] {
        session.read(name).unwrap();
    }
}

/// The number of directories that [`read_all`] has watched.
const WATCHES: u64 = 4;

fn begin_edit(client: &Client) {
    let ask = json!({"session": "s", "files": [{"path": FILE}]});
    let ask = Request::from_json("edit/begin", ask).unwrap();
    client.request(ask).unwrap();
}

#[test]
fn fleet1_status_has_every_workspace_and_what_its_daemon_waits_for() {
    let fleet = Fleet::of_worktrees(World::asleep(), 6, "");
    let [busy, idle, hung, gone, stored, _untouched] = &fleet.roots[..] else {
        panic!("six");
    };
    let client = fleet.connect(busy);
    read_all(&client);
    begin_edit(&client);
    client.subscribe(Subscribe::default()).unwrap();
    read_all(&fleet.connect(idle));
    let hangs = fleet.connect(hung).call(Status {}).unwrap().pid;
    fleet.connect(stored);
    let stopped = fleet.run(&["--workspace", stored.to_str().unwrap(), "stop"]);
    assert!(stopped.status.success());
    // It was killed, and its workspace was removed: what is stored of it is
    // still there.
    let killed = fleet.connect(gone).call(Status {}).unwrap().pid;
    signal(killed, Signal::KILL);
    wait_gone(killed);
    fs::remove_dir_all(gone).unwrap();
    let _stopped = Stopped::new(hangs);

    let status = fleet.status();
    assert_eq!(
        status["workspaces"].as_array().unwrap().len(),
        5,
        "{status}"
    );
    assert_eq!(status["daemons"], 3, "{status}");
    let row = row_of(&status, busy);
    assert_eq!(row["daemon"], "running", "{row}");
    assert_eq!(row["startedBy"], "client", "{row}");
    assert_eq!(row["openEdits"], 1, "{row}");
    assert_eq!(row["subscriptions"], 1, "{row}");
    assert_eq!(row["connections"], 1, "without its own: {row}");
    assert_eq!(row["sessions"], 1, "{row}");
    assert_eq!(row["endsInMs"], Value::Null, "{row}");
    let row = row_of(&status, idle);
    assert_eq!(row["connections"], 0, "{row}");
    if backend() == "inotify" {
        assert_eq!(row["watchedDirectories"], WATCHES, "{row}");
    }
    let rest = row["endsInMs"].as_u64().unwrap();
    assert!((1..=30 * 60 * 1_000).contains(&rest), "{row}");
    for number in ["pid", "privateBytes", "storedBytes"] {
        assert!(row[number].as_u64().unwrap() > 0, "{number}: {row}");
    }
    let row = row_of(&status, hung);
    assert_eq!(row["daemon"], "silent", "{row}");
    assert_eq!(row["pid"], hangs, "{row}");
    for (root, exists) in [(gone, false), (stored, true)] {
        let row = row_of(&status, root);
        assert_eq!(row["daemon"], "none", "{row}");
        assert_eq!(row["exists"], exists, "{row}");
        assert!(row["storedBytes"].as_u64().unwrap() > 0, "{row}");
    }

    let table = fleet.run(&["fleet", "status"]);
    let table = String::from_utf8(table.stdout).unwrap();
    for part in [
        "on demand",
        "1 open edit, 1 subscriber, 1 connection",
        "no answer within 2 s",
        "no daemon, gone",
        "3 daemons, ",
        "2 workspaces without a daemon",
    ] {
        assert!(table.contains(part), "{part}:\n{table}");
    }
}

/// A program that looks at all daemons again and again must not keep them
/// running, nor change which of them is unused for longest.
#[test]
fn fleet1_a_look_is_no_use() {
    let fleet = Fleet::of_worktrees(World::asleep(), 1, "idle_exit = \"1 s\"\n");
    let root = &fleet.roots[0];
    read_all(&fleet.connect(root));
    until("it is kept running by looks", || {
        fleet.status()["daemons"] == 0
    });
    assert_eq!(fleet.left_behind(), Vec::<String>::new());
}

#[test]
fn fleet2_the_daemons_unused_for_longest_end_and_come_back() {
    if backend() != "inotify" {
        return;
    }
    // Room for six, and for five once more were started.
    let most = 6 * WATCHES;
    let fleet = Fleet::of_worktrees(World::asleep(), 12, &format!("fleet.watches = {most}\n"));
    let edits = &fleet.roots[0];
    let client = fleet.connect(edits);
    read_all(&client);
    begin_edit(&client);
    // The edit stays open without its connection.
    drop(client);
    let connected = fleet.connect(&fleet.roots[1]);
    read_all(&connected);
    for root in &fleet.roots[2..] {
        read_all(&fleet.connect(root));
        // The checks follow each other as the uses do.
        until("the limit is not kept", || {
            fleet.status()["watchedDirectories"].as_u64().unwrap() <= most
        });
    }
    let status = fleet.status();
    let runs = |root: &Path| row_of(&status, root)["daemon"] == "running";
    let running: Vec<bool> = fleet.roots.iter().map(|root| runs(root)).collect();
    assert!(running[0], "an edit is open: {running:?}");
    assert!(running[1], "a client is connected: {running:?}");
    let first = running.iter().skip(2).position(|runs| *runs).unwrap() + 2;
    assert!(first > 2, "the oldest ended: {running:?}");
    assert!(running[first..].iter().all(|runs| *runs), "{running:?}");
    assert_eq!(status["watchedDirectoriesLimit"], most, "{status}");
    // The next client gets it back, with what it knew.
    let back = fleet.connect(&fleet.roots[2]);
    let session = Session::open(&back, "s").unwrap();
    let states = session.status([FILE]).unwrap();
    assert_eq!(states.len(), 1);
    assert_eq!(json!(states[0].state), json!("fresh"));
    connected.call(Status {}).unwrap();
}

/// Many daemons that start together check together. Each may end only those
/// that were used before it, one checks after the other, and no more end than
/// have to.
#[test]
fn fleet3_daemons_that_start_together_do_not_end_each_other() {
    if backend() != "inotify" {
        return;
    }
    let most = 5 * WATCHES;
    let fleet = Fleet::of_worktrees(World::asleep(), 10, &format!("fleet.watches = {most}\n"));
    std::thread::scope(|scope| {
        for root in &fleet.roots {
            let fleet = &fleet;
            scope.spawn(move || read_all(&fleet.connect(root)));
        }
    });
    // One more use, since the last check may have come before the last use.
    let newest = &fleet.roots[0];
    read_all(&fleet.connect(newest));
    until("the limit is not kept", || {
        fleet.status()["watchedDirectories"].as_u64().unwrap() <= most
    });
    let status = fleet.status();
    // 7/8 of the limit are room for four.
    assert!(status["daemons"].as_u64().unwrap() >= 3, "{status}");
}

#[test]
fn fleet3_what_is_needed_does_not_end() {
    let mut world = World::asleep();
    world.start();
    let said = world.client().ok("fleet/yield", json!({"idleMs": 0}));
    assert_eq!(said["because"], "the user has started it", "{said}");
    world.stop();

    let fleet = Fleet::of_worktrees(world, 1, "");
    let root = &fleet.roots[0];
    let client = fleet.connect(root);
    read_all(&client);
    let ask = |idle_ms| FleetYield { idle_ms };
    let refused = |asked: &Client, idle, because: &str| {
        let said = asked.call(ask(idle)).unwrap();
        assert!(!said.ends);
        assert_eq!(said.because.as_deref(), Some(because));
    };
    let other = fleet.connect(root);
    refused(&other, 0, "a client is connected");
    begin_edit(&client);
    refused(&other, 0, "an edit is open");
    let abort = EditAbort::new().session(SessionId::new("s").unwrap());
    client.call(abort).unwrap();
    drop(client);
    until("the connection stays", || {
        other.call(Status {}).unwrap().connections == 1
    });
    refused(&other, 60_000, "it was used since");
    assert!(other.call(ask(0)).unwrap().ends);
    drop(other);
    until("it does not end", || fleet.daemons().is_empty());
    assert_eq!(fleet.left_behind(), Vec::<String>::new());
}

/// The system allows this user fewer inotify instances than there are
/// workspaces. A daemon without one reads at each query; the ones that were not
/// used for longest give it theirs.
#[test]
fn fleet2_a_daemon_without_an_inotify_instance_gets_one() {
    const SCRIPT: &str = r#"
        echo "$MOST" > "$LIMIT" || exit 1
        for tree in "$TREES"/*; do
            "$TOUCHMARK" --workspace "$tree" call file/read '{"session":"s","path":"src/a.txt"}' || exit 1
            until "$TOUCHMARK" --workspace "$tree" --no-start call status | grep -q '"inotify"'; do
                sleep 0.02
            done
        done
    "#;
    if backend() != "inotify" {
        return;
    }
    limits::limited(Limit::Instances, 4, |world| {
        let fleet = Fleet::of_worktrees(world, 9, "");
        let mut script = Command::new("unshare");
        script
            .args([
                "--user",
                "--map-current-user",
                "--keep-caps",
                "sh",
                "-c",
                SCRIPT,
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        fleet.world().dress(&mut script);
        script
            .env("MOST", "4")
            .env("LIMIT", "/proc/sys/user/max_inotify_instances")
            .env("TREES", fleet.roots[0].parent().unwrap())
            .env("TOUCHMARK", binary());
        let done = finish(script.spawn().unwrap(), "the commands");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        assert!(fleet.daemons().len() <= 4, "{:?}", fleet.daemons());
    });
}

/// Returns how often the threads of a process were woken.
fn wakes(process: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status"));
    let all = tasks.map(|task| status(task.unwrap()).unwrap_or_default());
    let lines = all.flat_map(|status| {
        status.lines().find_map(|line| {
            let number = line.strip_prefix("voluntary_ctxt_switches:")?;
            number.trim().parse::<u64>().ok()
        })
    });
    lines.sum()
}

/// All daemons have their files in the same directories. What one does there is
/// no event for another one.
#[test]
fn fleet4_a_start_wakes_no_other_daemon() {
    if backend() != "inotify" {
        return;
    }
    let fleet = Fleet::of_worktrees(World::asleep(), 6, "");
    let [idle, others @ ..] = &fleet.roots[..] else {
        panic!("six");
    };
    let client = fleet.connect(idle);
    read_all(&client);
    let pid = client.call(Status {}).unwrap().pid;
    drop(client);
    // Until its own work is done: contents are stored, threads have ended.
    let mut before = wakes(pid);
    until("it does not come to rest", || {
        user::pause(1_500);
        let now = wakes(pid);
        std::mem::replace(&mut before, now) == now
    });
    for root in others {
        read_all(&fleet.connect(root));
        let stopped = fleet.run(&["--workspace", root.to_str().unwrap(), "stop"]);
        assert!(stopped.status.success());
    }
    assert_eq!(wakes(pid), before);
}

/// The parts of a run with many daemons, and how long they took.
struct Ran {
    starts: Vec<Duration>,
    all: Duration,
    most_daemons: u64,
    most_private: u64,
    degraded: usize,
}

/// Has a client start a daemon for each workspace, and an agent edit a file in
/// it. With `hold` the clients stay connected, so that all daemons run at the
/// same time. Waits until all have ended, and checks that nothing is left.
fn start_edit_and_end(fleet: &Fleet, hold: bool) -> Ran {
    let begun = Instant::now();
    let mut ran = Ran {
        starts: Vec::new(),
        all: Duration::ZERO,
        most_daemons: 0,
        most_private: 0,
        degraded: 0,
    };
    let mut held = Vec::new();
    for (number, root) in fleet.roots.iter().enumerate() {
        let asked = Instant::now();
        let client = fleet.connect(root);
        client.call(Status {}).unwrap();
        ran.starts.push(asked.elapsed());
        let session = Session::open(&client, "s").unwrap();
        session.read(FILE).unwrap();
        let text = format!("{number}\ntwo\nthree\n");
        session.write(FILE, text.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(root.join(FILE)).unwrap(), text);
        if hold {
            held.push(client);
        }
        if (number + 1) % 100 == 0 || number + 1 == fleet.roots.len() {
            let status = fleet.status();
            let number = |name: &str| status[name].as_u64().unwrap();
            ran.most_daemons = ran.most_daemons.max(number("daemons"));
            ran.most_private = ran.most_private.max(number("privateBytes"));
            let rows = status["workspaces"].as_array().unwrap();
            let degraded = |row: &&Value| {
                row["degraded"]
                    .as_array()
                    .is_some_and(|all| !all.is_empty())
            };
            ran.degraded = rows.iter().filter(degraded).count();
        }
    }
    if hold {
        assert_eq!(ran.most_daemons, fleet.roots.len() as u64);
        // A user saves in each; also where nothing can be watched, the next
        // query has it.
        for (root, client) in fleet.roots.iter().zip(&held) {
            user::write(&root.join(FILE), "the user\n");
            let session = Session::open(client, "s").unwrap();
            let states = session.status([FILE]).unwrap();
            assert_eq!(json!(states[0].state), json!("stale"), "{}", root.display());
        }
        drop(held);
    }
    // Longer than one wait may be: a thousand end one after the other.
    let patience = Instant::now() + Duration::from_secs(300);
    while !fleet.daemons().is_empty() {
        assert!(Instant::now() < patience, "{:?}", fleet.daemons());
        user::pause(100);
    }
    ran.all = begun.elapsed();
    assert_eq!(fleet.left_behind(), Vec::<String>::new());
    let status = fleet.status();
    assert_eq!(status["daemons"], 0);
    let rows = status["workspaces"].as_array().unwrap();
    assert_eq!(rows.len(), fleet.roots.len());
    ran
}

impl Ran {
    fn tell(mut self, what: &str, count: usize) {
        self.starts.sort();
        let at = |part: usize| self.starts[(self.starts.len() - 1) * part / 100];
        println!(
            "{what}: {count} daemons started, an edit each, all ended: {:.1} s; start p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms; at most {} at a time, {:.1} MB private together, {} degraded at the end",
            self.all.as_secs_f64(),
            at(50).as_secs_f64() * 1e3,
            at(99).as_secs_f64() * 1e3,
            at(100).as_secs_f64() * 1e3,
            self.most_daemons,
            self.most_private as f64 / 1e6,
            self.degraded,
        );
    }
}

#[test]
fn fleet4_twenty_daemons_start_edit_and_end() {
    let fleet = Fleet::of_worktrees(World::asleep(), 20, "idle_exit = \"2 s\"\n");
    start_edit_and_end(&fleet, false).tell("one after the other", 20);
    start_edit_and_end(&fleet, true).tell("all at the same time", 20);
}

/// As an ordinary user if the tests run as root, so that the user's inotify
/// instances are not taken from other programs.
#[test]
fn fleet4_a_thousand_daemons_start_edit_and_end() {
    const COUNT: usize = 1_000;
    if !parts::long("a thousand daemons of one user") {
        return;
    }
    limits::as_ordinary_user(|place| {
        let world = World::asleep_in(place);
        let fleet = Fleet::of_worktrees(world, COUNT, "idle_exit = \"10 s\"\n");
        start_edit_and_end(&fleet, false).tell("one after the other", COUNT);
        start_edit_and_end(&fleet, true).tell("all at the same time", COUNT);
    });
}
