//! LIFE: the daemon is started when needed, exits when it is not, can be found
//! in between, and leaves nothing.

use std::fs::{self, OpenOptions};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde_json::{Value, json};
use touchmark_client::blocking::Client as Binary;
use touchmark_client::feed::{Feed, Next};
use touchmark_client::{Hello, Session, Workspace, connect_or_start};
use touchmark_proto::Holder;
use touchmark_proto::daemon::{Ping, Shutdown, Status, Subscribe};
use touchmark_proto::edits::{EditBegin, EditFile};
use touchmark_proto::events::Happening;
use touchmark_tests::process::{Stopped, daemons_below, signal, until, wait_gone};
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::world::fence_takes_a_directory;
use touchmark_tests::{Client, World, parts, sha256, text, user};

fn told(output: &Output) -> String {
    let all = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

/// Returns the process that answers a command, which may start it.
fn who_answers(world: &World) -> u32 {
    let output = loop {
        let output = world.run(&["call", "status"]);
        // One that was reached as it ended tells its clients to come again.
        let again = ["connectionClosed", "shuttingDown"];
        if !again.iter().any(|code| told(&output).contains(code)) {
            break output;
        }
    };
    assert!(output.status.success(), "{}", told(&output));
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    u32::try_from(status["pid"].as_u64().unwrap()).unwrap()
}

/// Stops daemons that commands started, however the test ends.
struct Ends<'w>(&'w World);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        for daemon in daemons_below(self.0.outside().parent().unwrap()) {
            signal(daemon, Signal::KILL);
        }
    }
}

fn hello() -> Hello {
    Hello {
        deadline: PATIENCE,
        ..Hello::new("tests", "1")
    }
}

fn patient(deadline: u64) -> Hello {
    Hello {
        deadline: Duration::from_millis(deadline),
        ..Hello::new("tests", "1")
    }
}

#[test]
fn life1_an_idle_daemon_ends_and_one_in_use_does_not() {
    let world = World::asleep();
    let _ends = Ends(&world);
    world.configure("idle_exit = \"500 ms\"\n");
    world.file("a.txt", "one\n");
    let mut client = loop {
        // It may have been idle for too long before it was reached.
        who_answers(&world);
        if let Ok(mut client) = Client::connect(world.socket())
            && let Ok(id) = client.try_send("status", &json!({}))
            && let Ok(Ok(_)) = client.try_answer(id)
        {
            break client;
        }
    };
    client.ok("file/read", json!({"session": "s", "path": "a.txt"}));
    let pid = client.ok("status", json!({}))["pid"].clone();
    // A connected client keeps it running, even without a request.
    user::pause(1_500);
    assert_eq!(client.ok("status", json!({}))["pid"], pid);
    drop(client);
    wait_gone(u32::try_from(pid.as_u64().unwrap()).unwrap());
    assert_eq!(world.left_behind(), Vec::<String>::new());
    // The next one has on record what this one had.
    let status = world.run(&["call", "file/status", "{\"session\":\"s\"}"]);
    assert!(told(&status).contains("\"fresh\""), "{}", told(&status));
}

#[test]
fn life1_a_daemon_of_the_users_stays() {
    let world = World::asleep();
    world.configure("idle_exit = 0\n");
    let mut world = world;
    world.start();
    user::pause(300);
    world.healthy();
}

#[test]
fn life1_ends_with_its_workspace() {
    type Way = (&'static str, fn(&World));
    let ways: [Way; 4] = [
        ("removed", |world| {
            fs::remove_dir_all(world.workspace()).unwrap();
        }),
        ("renamed", |world| {
            fs::rename(world.workspace(), world.outside().join("away")).unwrap();
        }),
        ("replaced by another", |world| {
            fs::rename(world.workspace(), world.outside().join("away")).unwrap();
            fs::create_dir(world.workspace()).unwrap();
        }),
        ("replaced by a link to itself", |world| {
            let away = world.outside().join("away");
            fs::rename(world.workspace(), &away).unwrap();
            std::os::unix::fs::symlink(&away, world.workspace()).unwrap();
        }),
    ];
    for (way, take_away) in ways {
        let mut world = World::new();
        world.file("sub/a.txt", "one\n");
        let mut agent = world.session("s");
        agent.read("sub/a.txt");
        let mut subscriber = world.client();
        subscriber.ok("subscribe", json!({}));
        take_away(&world);
        assert_eq!(world.wait_end(), Some(0), "{way}: {}", world.log());
        let said = world.said();
        assert!(
            said.contains("the workspace no longer exists"),
            "{way}: {said}"
        );
        assert_eq!(world.log(), "", "{way}");
        assert_eq!(world.left_behind(), Vec::<String>::new(), "{way}");
        // Subscribers are told by the end of their connection.
        while subscriber.raw_line().is_some() {}
    }
}

/// A directory above the workspace is renamed, which no watch reports. The
/// files under the old name are then not the ones that the daemon watches, so
/// it must not answer about them.
#[test]
fn life1_ends_when_a_directory_above_was_replaced() {
    let world = World::asleep();
    let _ends = Ends(&world);
    let above = world.outside().join("above");
    let root = above.join("ws");
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("a.txt"), "one\n").unwrap();
    let workspace = Workspace::at(&root, &world.environment()).unwrap();
    let connect = || connect_or_start(&workspace, &hello(), &world.starting()).unwrap();
    let client = connect();
    let pid = client.call(Status {}).unwrap().pid;
    let session = Session::open(&client, "s").unwrap();
    session.read_text("a.txt").unwrap();
    fs::rename(&above, world.outside().join("old")).unwrap();
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("a.txt"), "two\n").unwrap();
    let error = session.changed().unwrap_err();
    assert!(error.is_disconnected(), "{error}");
    wait_gone(pid);
    // Another serves what is there now, and has on record what was read.
    let client = connect();
    assert_ne!(client.call(Status {}).unwrap().pid, pid);
    let session = Session::open(&client, "s").unwrap();
    assert_eq!(session.changed().unwrap().len(), 1);
}

#[test]
fn life1_a_daemon_ends_cleanly_at_a_signal() {
    for kind in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let mut world = World::new();
        signal(world.pid(), kind);
        assert_eq!(world.wait_end(), Some(0), "{kind:?} {}", world.log());
        assert_eq!(world.left_behind(), Vec::<String>::new());
    }
}

/// Many commands at the same time, without a running daemon: all get an answer
/// from the same daemon, whatever the previous one left.
#[test]
fn life1_many_starters_at_once_get_one_daemon() {
    let world = World::asleep();
    let _ends = Ends(&world);
    let mut ending = None;
    for round in 0..6 {
        let mut pids: Vec<u32> = std::thread::scope(|scope| {
            let starters: Vec<_> = (0..6)
                .map(|_| scope.spawn(|| who_answers(&world)))
                .collect();
            starters
                .into_iter()
                .map(|starter| starter.join().unwrap())
                .collect()
        });
        // One that was told to end answers until it has received the request.
        let last_words = pids.clone();
        pids.retain(|pid| Some(*pid) != ending);
        if pids.is_empty() {
            wait_gone(last_words[0]);
            pids.push(who_answers(&world));
        }
        assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
        until("more than one daemon stays", || {
            daemons_below(world.workspace()) == [pids[0]]
        });
        match round % 3 {
            // Socket, lock and fence stay.
            0 => signal(pids[0], Signal::KILL),
            1 => signal(pids[0], Signal::TERM),
            _ => assert!(world.run(&["stop"]).status.success()),
        }
        // Else the next are started while this one ends.
        ending = (round % 2 == 1).then_some(pids[0]);
        if ending.is_none() {
            wait_gone(pids[0]);
        }
    }
}

/// The pid in a lock file means nothing. Only the lock counts.
#[test]
fn life1_a_lock_left_behind_with_a_number_in_use_is_taken() {
    let world = World::asleep();
    let _ends = Ends(&world);
    let lock = world.lock();
    for directory in [&lock, world.socket()] {
        Command::new("mkdir")
            .args(["-m", "700"])
            .arg(directory.parent().unwrap())
            .status()
            .unwrap();
    }
    let text = Holder {
        pid: std::process::id(),
        socket: Some(world.socket().to_owned()),
        workspace: world.workspace().to_owned(),
    }
    .text();
    fs::write(&lock, &text).unwrap();
    drop(UnixListener::bind(world.socket()).unwrap());
    let pid = who_answers(&world);
    assert!(
        fs::read_to_string(&lock)
            .unwrap()
            .starts_with(&format!("{pid}\n"))
    );
    assert!(world.run(&["stop"]).status.success());
    assert_eq!(world.left_behind(), Vec::<String>::new());

    // Held by a process that serves no client: reported, not waited for without
    // end.
    fs::write(&lock, &text).unwrap();
    let held = OpenOptions::new().write(true).open(&lock).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let output = world.run(&["call", "ping"]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    let said = told(&output);
    assert!(
        said.contains(&format!("pid {}", std::process::id())),
        "{said}"
    );
}

#[test]
fn life2_what_was_removed_is_mended_and_the_daemon_found() {
    let mut world = World::new();
    let pid = world.pid();
    let mut connected = world.client();
    let (socket, lock) = (world.socket().to_owned(), world.lock());
    let directory = socket.parent().unwrap().to_owned();
    let ways: [(&str, &dyn Fn()); 5] = [
        ("the socket", &|| fs::remove_file(&socket).unwrap()),
        ("the lock", &|| fs::remove_file(&lock).unwrap()),
        ("both", &|| {
            fs::remove_file(&lock).unwrap();
            fs::remove_file(&socket).unwrap();
        }),
        ("the directory", &|| {
            // Not whole where the daemon makes it again meanwhile.
            let _whole = fs::remove_dir_all(&directory);
        }),
        ("another's socket in its place", &|| {
            let other = world.runtime().join("other");
            drop(UnixListener::bind(&other).unwrap());
            fs::rename(&other, &socket).unwrap();
        }),
    ];
    for (way, take_away) in ways {
        take_away();
        until(way, || {
            lock.exists()
                && Client::connect(&socket).is_ok_and(|mut c| c.call("ping", json!({})).is_ok())
        });
        assert_eq!(who_answers(&world), pid, "{way}");
        // Nor were those cut off who were connected.
        connected.ok("sync", json!({}));
        let second = world.run(&["daemon"]);
        assert_eq!(second.status.code(), Some(1), "{way}: {}", told(&second));
    }
    world.healthy();
    assert_eq!(world.stop(), Some(0));
    assert_eq!(world.left_behind(), Vec::<String>::new());
}

/// The daemon's files were removed while others start: whichever wins, one
/// daemon stays.
#[test]
fn life2_starters_meet_a_daemon_whose_place_is_gone() {
    let world = World::asleep();
    let _ends = Ends(&world);
    let directory = world.socket().parent().unwrap().to_owned();
    for _ in 0..5 {
        who_answers(&world);
        std::thread::scope(|scope| {
            // Not whole where the daemon makes it again meanwhile.
            scope.spawn(|| fs::remove_dir_all(&directory));
            for _ in 0..3 {
                // One that was reached as it ended has its answer refused.
                scope.spawn(|| world.run(&["call", "ping"]));
            }
        });
        until("not one daemon", || {
            let running = daemons_below(world.workspace());
            running.len() == 1 && world.socket().exists() && running == [who_answers(&world)]
        });
    }
}

#[test]
fn life2_a_file_in_the_sockets_place_ends_the_daemon() {
    let mut world = World::new();
    let other = world.runtime().join("other");
    fs::write(&other, "a stranger's\n").unwrap();
    fs::rename(&other, world.socket()).unwrap();
    assert_eq!(world.wait_end(), Some(0), "{}", world.log());
    assert!(world.said().contains("no socket"), "{}", world.said());
    assert_eq!(fs::read(world.socket()).unwrap(), b"a stranger's\n");
    // Commands say what is in the way.
    let output = world.run(&["call", "ping"]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    let socket = world.socket().to_str().unwrap();
    assert!(told(&output).contains(socket), "{}", told(&output));
    fs::remove_file(world.socket()).unwrap();
    world.start();
    world.healthy();
}

#[test]
fn life4_a_hung_daemon_is_an_error_at_the_deadline() {
    let mut world = World::new();
    world.file("a.txt", "one\n");
    let client = Binary::connect(world.socket(), &hello()).unwrap();
    let session = Session::open(&client, "s").unwrap();
    session.read_text("a.txt").unwrap();
    let hung = Stopped::new(world.pid());
    let short = Duration::from_millis(300);
    let error = client.call_within(Ping {}, short).unwrap_err();
    assert_eq!((error.code(), error.hint().is_empty()), ("deadline", false));
    let begin = EditBegin {
        files: vec![EditFile::new("a.txt")],
        ..serde_json::from_value(json!({"session": "s", "files": []})).unwrap()
    };
    let error = client.call_within(begin, short).unwrap_err();
    assert_eq!(error.code(), "deadline");
    let Err(error) = Binary::connect(world.socket(), &patient(300)) else {
        panic!("a stopped daemon said hello");
    };
    assert_eq!((error.code(), error.hint().is_empty()), ("deadline", false));
    // More connections than a socket's queue holds, which would block.
    let filled: Vec<_> = (0..)
        .map(|_| touchmark_client::sockets::listens(world.socket()))
        .take(300)
        .collect();
    assert!(filled.iter().all(|listens| *listens));
    let Err(error) = Binary::connect(world.socket(), &patient(300)) else {
        panic!("a stopped daemon said hello");
    };
    assert_eq!(error.code(), "deadline");
    // The commands, side by side, since each waits for its own deadline.
    let commands: [&[&str]; 5] = [
        &["call", "ping"],
        &["call", "ping", "--no-start"],
        &["status"],
        &["start"],
        &["modified", "--session", "s"],
    ];
    std::thread::scope(|scope| {
        for args in commands {
            let world = &world;
            scope.spawn(move || {
                let output = world.run(args);
                let said = told(&output);
                assert_ne!(output.status.code(), Some(0), "{args:?}: {said}");
                assert!(said.contains("did not answer"), "{args:?}: {said}");
                assert!(said.contains("touchmark status"), "{args:?}: {said}");
            });
        }
    });
    // A client that has disconnected has requested nothing (ATTR-9).
    drop((session, client));
    drop(hung);
    let mut after = world.client();
    after.ok("sync", json!({}));
    assert_eq!(after.ok("status", json!({}))["openEdits"], 0);
    let client = Binary::connect(world.socket(), &hello()).unwrap();
    let session = Session::open(&client, "s").unwrap();
    user::write(&world.path("a.txt"), "two\n");
    let changed = session.changed().unwrap();
    assert_eq!(changed.len(), 1);
    world.healthy();
}

/// A hung daemon does not keep `touchmark run` from running its command.
#[test]
fn life4_a_command_runs_although_the_daemon_is_hung() {
    let world = World::new();
    let _hung = Stopped::new(world.pid());
    let ran = world.path("ran");
    let output = world.run(&[
        "run",
        "--session",
        "s",
        "--",
        "touch",
        ran.to_str().unwrap(),
    ]);
    assert!(output.status.success() && ran.exists(), "{}", told(&output));
    assert!(
        told(&output).contains("runs unwatched"),
        "{}",
        told(&output)
    );
}

/// Returns the hashes of versions until `last`, and how often the feed changed
/// to another daemon.
fn heard(feed: &mut Feed, last: &str) -> (Vec<String>, usize) {
    let (mut hashes, mut daemons) = (Vec::new(), 0);
    let end = Instant::now() + PATIENCE;
    while hashes.last().map(String::as_str) != Some(last) {
        assert!(Instant::now() < end, "{hashes:?}");
        match feed.next(Duration::from_millis(200)).unwrap() {
            Next::Event(event) => {
                if let Happening::Version { version, .. } = event.happening {
                    hashes.push(version.hash.unwrap().to_string());
                }
            }
            Next::Reconnected => daemons += 1,
            Next::Missed => panic!("something was missed"),
            Next::Quiet => {}
        }
    }
    (hashes, daemons)
}

/// Clients continue with the next daemon, and miss nothing.
#[test]
fn life2_clients_go_on_with_the_next_daemon() {
    let mut world = World::new();
    world.file("a.txt", "0");
    let mut agent = world.session("s");
    agent.read("a.txt");
    let workspace = Workspace::at(world.workspace(), &world.environment()).unwrap();
    let wanted = Subscribe::new().kinds(vec!["version".into()]);
    let mut feed = Feed::open(workspace.clone(), hello(), wanted, PATIENCE).unwrap();
    let mut since = text(&agent.client.ok("sync", json!({})), "clock");
    for round in 0..4 {
        let (before, meanwhile, after) = (
            format!("{round} before"),
            format!("{round} meanwhile"),
            format!("{round} after"),
        );
        user::write(&world.path("a.txt"), &before);
        world.client().ok("sync", json!({}));
        match round % 2 {
            0 => world.kill(),
            _ => assert_eq!(world.stop(), Some(0)),
        }
        user::write(&world.path("a.txt"), &meanwhile);
        world.start();
        world.client().ok("sync", json!({}));
        user::write(&world.path("a.txt"), &after);
        world.client().ok("sync", json!({}));
        let expected = [&before, &meanwhile, &after].map(sha256);
        let (hashes, daemons) = heard(&mut feed, &expected[2]);
        assert_eq!(hashes, expected);
        assert_eq!(daemons, 1);
        // By hand, over JSON: the clock of one daemon's is known to the next.
        let mut client = world.client();
        let listed = client.ok("modified/list", json!({"since": since}));
        assert_eq!(listed["changes"][0]["versions"], 3, "{listed}");
        since = text(&listed, "clock");
    }
    // One that has ended for good is started by the next client.
    assert_eq!(world.stop(), Some(0));
    let _ends = Ends(&world);
    let client = connect_or_start(&workspace, &hello(), &world.starting()).unwrap();
    let session = Session::open(&client, "s").unwrap();
    assert_eq!(session.changed().unwrap().len(), 1);
    client.call(Shutdown {}).unwrap();
}

/// Git worktrees, each with a separate daemon that a client started.
struct Worktrees<'w> {
    world: &'w World,
    made: usize,
}

impl Worktrees<'_> {
    fn add(&mut self) -> PathBuf {
        self.made += 1;
        let path = self.world.outside().join(format!("wt{}", self.made));
        self.git(&["add", "--quiet", "--detach", path.to_str().unwrap()]);
        path
    }

    fn remove(&self, path: &Path) {
        self.git(&["remove", "--force", path.to_str().unwrap()]);
    }

    fn git(&self, args: &[&str]) {
        user::git(self.world.workspace(), &[&["worktree"], args].concat());
    }

    /// Creates a worktree and its daemon, and ends both in the given way.
    fn cycle(&mut self, way: usize) {
        let path = self.add();
        let workspace = Workspace::at(&path, &self.world.environment()).unwrap();
        let client = connect_or_start(&workspace, &hello(), &self.world.starting()).unwrap();
        let daemon = client.call(Status {}).unwrap().pid;
        let session = Session::open(&client, "s").unwrap();
        session.read_text("a.txt").unwrap();
        let edit = session.edit_to("a.txt", b"two\n").unwrap();
        fs::write(edit.target(), "two\n").unwrap();
        match way % 4 {
            // With an edit open, and clients connected.
            0 => self.remove(&path),
            1 => {
                edit.commit(b"two\n").unwrap();
                self.remove(&path);
            }
            2 => {
                edit.commit(b"two\n").unwrap();
                client.call(Shutdown {}).unwrap();
                wait_gone(daemon);
                self.remove(&path);
            }
            _ => {
                signal(daemon, Signal::TERM);
                self.remove(&path);
            }
        }
        wait_gone(daemon);
        let left = self.world.left_behind();
        assert_eq!(left, Vec::<String>::new(), "after {} lives", self.made);
    }
}

/// No process remains, so no descriptors and memory remain either.
#[test]
fn life1_no_orphans_after_worktrees_have_come_and_gone() {
    let cycles = if parts::heavy("1,000 lives of worktrees, 40 here") {
        1_000
    } else {
        40
    };
    let world = World::asleep();
    let _ends = Ends(&world);
    // Nothing is kept of what is gone, so that the last start shows it.
    world.configure("sessions.keep = 0\nversions.keep = \"0 s\"\nrecovery.keep = \"0 s\"\n");
    world.file("a.txt", "one\n");
    for args in [
        &["init", "--quiet"][..],
        &["add", "."],
        &["commit", "--quiet", "-m", "one"],
    ] {
        user::git(world.workspace(), args);
    }
    let mut worktrees = Worktrees {
        world: &world,
        made: 0,
    };
    for cycle in 0..cycles {
        worktrees.cycle(cycle);
    }
    let home = world.outside();
    assert_eq!(daemons_below(&home), Vec::<u32>::new());
    // A killed one's leavings are taken away by the next daemon anywhere.
    let killed = worktrees.add();
    let workspace = Workspace::at(&killed, &world.environment()).unwrap();
    let client = connect_or_start(&workspace, &hello(), &world.starting()).unwrap();
    let daemon = client.call(Status {}).unwrap().pid;
    signal(daemon, Signal::KILL);
    wait_gone(daemon);
    let its = |world: &World| {
        let key = workspace.places.key.as_str();
        let left = world.left_behind();
        left.iter().filter(|name| name.starts_with(key)).count()
    };
    let leavings = 2 + usize::from(fence_takes_a_directory());
    assert_eq!(its(&world), leavings, "{:?}", world.left_behind());
    worktrees.remove(&killed);
    who_answers(&world);
    let own = |names: Vec<String>| {
        let key = world.socket().file_stem().unwrap().to_str().unwrap();
        names.iter().all(|name| name.starts_with(key))
    };
    until("a killed daemon's leavings stay", || {
        own(world.left_behind())
    });
    let states = || -> Vec<String> {
        let entries = fs::read_dir(world.state().join("touchmark")).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    until("the state of workspaces that are gone stays", || {
        own(states())
    });
    println!("{cycles} lives of worktrees");
}

/// SIGHUP: settings that can change do, and wrong ones change nothing.
#[test]
fn sighup_reads_the_configuration_again() {
    let mut world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "1\n2\n3\n");
    agent.read("a.txt");
    let hang_up = |world: &World, wanted: &str| {
        let before = world.said().len();
        signal(world.pid(), Signal::HUP);
        until(wanted, || world.said()[before..].contains(wanted));
    };
    let in_force = |world: &World| world.client().ok("status", json!({}))["configuration"].clone();
    assert_eq!(in_force(&world)["refused"], Value::Null);
    // A limit that answers show.
    world.configure("limits.read_text = 2\n");
    hang_up(&world, "limits.read_text");
    let part = agent.ok("file/readText", json!({"path": "a.txt", "force": true}));
    assert_eq!(part["truncated"], true, "{part}");
    // Wrong: told with its line. A repository says nothing that is looser.
    world.file(".touchmark.toml", "\nlimits.read_text = 9\nnonsense = 1\n");
    hang_up(&world, ".touchmark.toml:3:");
    let refused = text(&in_force(&world), "refused");
    assert!(refused.contains("nonsense"), "{refused}");
    let part = agent.ok("file/readText", json!({"path": "a.txt", "force": true}));
    assert_eq!(part["truncated"], true, "{part}");
    let doctor = world.run(&["doctor"]);
    assert!(
        told(&doctor).contains("configuration in force"),
        "{}",
        told(&doctor)
    );
    // A user's file that is wrong changes nothing, what is right in it too.
    fs::remove_file(world.path(".touchmark.toml")).unwrap();
    world.configure("limits.read_text = 1_000\nnonsense = 1\n");
    hang_up(&world, "config.toml:");
    let part = agent.ok("file/readText", json!({"path": "a.txt", "force": true}));
    assert_eq!(part["truncated"], true, "{part}");
    // Right again, with a key that has to wait.
    world.configure("limits.read_text = 1_000\nlimits.frame = \"1 MiB\"\n");
    hang_up(&world, "limits.frame");
    assert_eq!(
        in_force(&world),
        json!({"atRestart": ["limits.frame"]}),
        "{}",
        world.said()
    );
    let whole = agent.ok("file/readText", json!({"path": "a.txt", "force": true}));
    assert_ne!(whole["truncated"], true, "{whole}");
    let doctor = world.run(&["doctor"]);
    assert!(told(&doctor).contains("limits.frame"), "{}", told(&doctor));
    world.restart();
    assert_eq!(in_force(&world)["atRestart"], json!([]));
    world.healthy();
}

/// SEC-5: whatever a repository's file contains, the daemon starts, guards, and
/// reports what is wrong.
#[test]
fn sec5_a_broken_file_of_a_repository_does_not_keep_the_daemon_from_starting() {
    for (place, wanted) in [
        (0, "regular file"),
        (1, "regular file"),
        (2, "there is no key"),
        (3, ".touchmark.toml:1"),
    ] {
        let mut world = World::asleep();
        let file = world.path(".touchmark.toml");
        match place {
            0 => std::os::unix::fs::symlink("/dev/zero", &file).unwrap(),
            1 => assert!(
                Command::new("mkfifo")
                    .arg(&file)
                    .status()
                    .unwrap()
                    .success()
            ),
            2 => fs::write(&file, "nonsense = 1\n").unwrap(),
            _ => fs::write(&file, "a = = 1\n").unwrap(),
        }
        world.file("a.txt", "1\n");
        world.start();
        let mut agent = world.session("s");
        // The guard is on.
        agent.refused(
            "edit/begin",
            json!({"files": [{"path": "a.txt"}]}),
            "notRead",
        );
        let status = world.client().ok("status", json!({}));
        let told_by_status = text(&status["configuration"], "refused");
        assert!(told_by_status.contains(wanted), "{told_by_status}");
        assert!(world.said().contains(wanted), "{}", world.said());
        for command in ["status", "doctor"] {
            let output = told(&world.run(&[command]));
            assert!(output.contains(".touchmark.toml"), "{command}: {output}");
        }
    }
}

/// SEC-5: only the user decides what is removed of other workspaces.
#[test]
fn sec5_a_repository_has_nothing_of_other_workspaces_removed() {
    let mut gone = World::new();
    let mut agent = gone.session("s");
    gone.file("f.txt", "the only copy\n");
    agent.ok(
        "file/write",
        json!({"path": "f.txt", "text": "agent\n", "force": true}),
    );
    let kept = gone.client().ok("recovery/list", json!({}));
    let kept = PathBuf::from(text(&kept["items"][0], "file"));
    gone.stop();
    let away = gone.outside().join("unmounted");
    fs::rename(gone.path(""), &away).unwrap();
    let here = gone.path("");
    // The next workspace of the same user, by the same state directory.
    let next = gone.outside().join("next");
    fs::create_dir(&next).unwrap();
    let greedy = "versions.keep = \"0 s\"\nsessions.keep = 0\nrecovery.keep = \"0 s, 0 B\"\n";
    fs::write(next.join(".touchmark.toml"), greedy).unwrap();
    for _ in 0..2 {
        for command in ["start", "stop"] {
            let mut asked = Command::new(touchmark_tests::world::binary());
            gone.dress(&mut asked);
            asked.arg("--workspace").arg(&next).arg(command);
            let output = asked.output().unwrap();
            assert!(output.status.success(), "{}", told(&output));
        }
        assert!(kept.exists(), "removed: {}", kept.display());
    }
    fs::rename(away, here).unwrap();
}

/// A client may start the daemon from below `nice`, `ulimit` or a process that
/// is killed first when memory is short. The daemon serves all other clients as
/// well.
#[test]
fn life1_a_daemon_leaves_what_its_starter_was_limited_by() {
    let world = World::asleep();
    let _ends = Ends(&world);
    let limited = "echo 500 > /proc/self/oom_score_adj; ulimit -S -f 64; \
        exec taskset 1 \"$@\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", limited, "sh"])
        .arg(touchmark_tests::world::binary())
        .arg("--workspace")
        .arg(world.workspace())
        .args(["call", "ping"]);
    world.dress(&mut command);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    let pid = who_answers(&world);
    let of = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    assert_eq!(of("oom_score_adj").trim(), "0");
    let size = of("limits");
    let size = size.lines().find(|line| line.starts_with("Max file size"));
    assert!(size.unwrap().contains("unlimited"), "{size:?}");
    let all = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = |status: &str| {
        let line = status.lines().find(|l| l.starts_with("Cpus_allowed_list"));
        line.unwrap().to_owned()
    };
    assert_eq!(allowed(&of("status")), allowed(&all));
}

/// A write beyond the limit of a file's size is an error, and does not end the
/// daemon. The limit that it cannot raise is reported.
#[test]
fn life1_a_daemon_below_a_limit_of_file_size_goes_on() {
    let world = World::asleep();
    let _ends = Ends(&world);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -f 2000; exec \"$@\"", "sh"])
        .arg(touchmark_tests::world::binary())
        .arg("--workspace")
        .arg(world.workspace())
        .args(["call", "ping"]);
    world.dress(&mut command);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    let pid = who_answers(&world);
    world.file("large.bin", "x".repeat(3 << 20));
    let mut agent = world.session("s");
    agent.read("large.bin");
    let text = "y".repeat(2 << 20);
    let params = json!({"path": "large.bin", "text": text});
    agent.refused("file/write", params, "storage");
    assert_eq!(who_answers(&world), pid);
    let status = world.client().ok("status", json!({}));
    assert!(
        status["degraded"].to_string().contains("ulimit -f"),
        "{status}"
    );
}
