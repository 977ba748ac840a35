//! The service (LIFE-1, LIFE-2, DUR-1) under a real user manager, in an
//! enforced sandbox.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use touchmark_tests::parts::not_tested;
use touchmark_tests::process::until;
use touchmark_tests::systemd::{Place, Systemd, told};
use touchmark_tests::{World, text, user};

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Returns the files that a service has left anywhere.
fn left(systemd: &Systemd, key: &str) -> Vec<String> {
    let mut find = systemd.root("find");
    find.args(["/home/tmtest", "/run/user/4711", "-name"]);
    find.arg(format!("*{key}*"));
    let found = systemd.run(find);
    String::from_utf8_lossy(&found.stdout)
        .lines()
        .filter(|path| !path.contains("/.local/state/"))
        // The manager's own, made of what the machine happens to have.
        .filter(|path| !path.contains("/systemd/generator"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn life1_a_service_from_its_installation_to_its_end() {
    let Some(systemd) = Systemd::boot() else {
        return;
    };
    let place = Place::new(&systemd, "/home/tmtest/my pröjekt 100% \"x\"");
    place.file("a.txt", "one\n");
    let installed = place.json(&["service", "install"]);
    assert_eq!(installed["listening"], true, "{installed}");
    assert_eq!(installed["lingering"], true, "{installed}");
    assert_eq!(place.active(), "inactive");

    // What starts nothing does not have systemd start it either.
    assert_eq!(place.json(&["socket"])["running"], false);
    assert_eq!(place.run(&["status"]).status.code(), Some(3));
    assert_eq!(
        place.run(&["call", "ping", "--no-start"]).status.code(),
        Some(3)
    );
    assert_eq!(place.json(&["stop"])["stopped"], false);
    assert_eq!(place.json(&["fleet", "status"])["daemons"], 0);
    let doctor = place.run(&["doctor"]);
    assert!(
        told(&doctor).contains("service: systemd listens"),
        "{}",
        told(&doctor)
    );
    place.ok(&["service", "status"]);
    assert_eq!(place.active(), "inactive", "something woke it");

    // A client that connects does.
    place.call("file/readText", json!({"session": "s", "path": "a.txt"}));
    let pid = place.main_pid();
    assert_eq!(place.pid(), pid);
    assert_eq!(place.active(), "active");
    let says = systemd.property(&place.service(), "StatusText");
    assert!(
        says.contains("my pröjekt") && says.contains("tracked files"),
        "{says}"
    );
    assert_eq!(place.json(&["service", "status"])["pid"], pid);

    // Another workspace is another daemon's.
    let other = Place::new(&systemd, "/home/tmtest/日本/w");
    other.file("b.txt", "one\n");
    other.ok(&["service", "install"]);
    assert_ne!(other.pid(), place.pid());
    assert_eq!(
        place
            .json(&["service", "status", "--all"])
            .as_array()
            .unwrap()
            .len(),
        2
    );

    // It may write in the workspace, and there alone.
    let written = place.call(
        "file/write",
        json!({"session": "s", "path": "a.txt", "text": "two\n"}),
    );
    assert_eq!(text(&written, "guard"), "exchange", "{written}");
    assert_eq!(place.read("a.txt"), "two\n");
    let inside = |words: &[&str]| {
        let mut command = systemd.root("nsenter");
        command
            .args(["-t", &pid.to_string(), "-m", "--"])
            .args(words);
        systemd.run(command)
    };
    for elsewhere in [
        "/home/tmtest/x",
        "/home/tmtest/日本/w/x",
        "/etc/x",
        "/run/user/4711/x",
    ] {
        let touched = inside(&["touch", elsewhere]);
        assert!(
            told(&touched).contains("Read-only"),
            "{elsewhere}: {}",
            told(&touched)
        );
    }
    let mut daemon = systemd.root("cat");
    daemon.arg(format!("/proc/{pid}/status"));
    let status = told(&systemd.run(daemon));
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"] {
        assert!(status.contains(line), "{status}");
    }

    // Killed: nothing answered is lost, and what happened meanwhile is seen.
    place.call("file/readText", json!({"session": "s", "path": "a.txt"}));
    place.kill("-KILL", pid);
    place.file("a.txt", "1\n2\n3\n");
    assert_eq!(place.state("a.txt"), "stale");
    let again = place.main_pid();
    assert!(again != pid && place.pid() == again);
    assert_eq!(systemd.property(&place.service(), "NRestarts"), "1");

    // Asked to end, it is started by the next client.
    assert_eq!(place.json(&["stop"])["stopped"], true);
    until("the daemon stays", || place.active() == "inactive");
    assert_eq!(place.state("a.txt"), "stale");
    // A daemon that has ended for another workspace's (FLEET-3) too.
    let status = place.call("status", json!({}));
    assert_eq!(status["startedBy"], "socket", "{status}");
    let restarts = systemd.property(&place.service(), "NRestarts");
    let yielded = place.call("fleet/yield", json!({"idleMs": 0}));
    assert_eq!(yielded["ends"], true, "{yielded}");
    until("it does not end", || place.active() == "inactive");
    assert_eq!(systemd.property(&place.service(), "Result"), "success");
    assert_eq!(place.json(&["service", "status"])["listening"], true);
    assert_eq!(place.state("a.txt"), "stale");
    let back = place.main_pid();
    assert!(json!(back) != status["pid"] && place.pid() == back);
    assert_eq!(
        systemd.property(&place.service(), "NRestarts"),
        restarts,
        "the client has started it"
    );
    place.ok(&["restart"]);
    assert_eq!(place.active(), "active");

    // The configuration.
    place.file(".touchmark.toml", "nonsense = 1\n");
    systemd.systemctl(&["reload", &place.service()]);
    until("the configuration is not refused", || {
        systemd
            .property(&place.service(), "StatusText")
            .contains("the configuration was refused")
    });
    place.file(".touchmark.toml", "limits.read_text = 2\n");
    systemd.systemctl(&["reload", &place.service()]);
    until("the configuration is not read", || {
        let part = place.call(
            "file/readText",
            json!({"session": "s", "path": "a.txt", "force": true}),
        );
        part["truncated"] == true
    });
    assert_eq!(place.active(), "active");

    // The journal, by fields.
    let field = format!("TOUCHMARK_WORKSPACE={}", place.root.display());
    let mut journal = systemd.command("journalctl");
    journal.args(["--user", "--output=json", "--no-pager", &field]);
    let journal = told(&systemd.run(journal));
    assert!(journal.contains("the configuration was read"), "{journal}");
    assert!(!journal.contains("日本"), "{journal}");
    let logs = place.ok(&["logs"]);
    assert!(logs.contains("the configuration was read"), "{logs}");

    // The user's own files stay, and the other instance's.
    place.ok(&["service", "uninstall"]);
    assert_eq!(place.run(&["service", "status"]).status.code(), Some(1));
    assert_eq!(left(&systemd, &place.key()), Vec::<String>::new());
    assert_eq!(templates(&systemd), (true, true));
    assert_eq!(other.pid(), other.main_pid());
    // Clients start one by themselves again, which has on record what was
    // recorded.
    assert_eq!(place.state("a.txt"), "stale");
    assert_eq!(place.active(), "inactive");
    assert_eq!(place.json(&["stop"])["stopped"], true);
    other.ok(&["service", "uninstall"]);
    assert_eq!(templates(&systemd), (false, false));
    assert_eq!(left(&systemd, "touchmark@"), Vec::<String>::new());
    assert_eq!(left(&systemd, "services"), Vec::<String>::new());
    assert_eq!(left(&systemd, ".wants"), Vec::<String>::new());
    let output = place.run(&["service", "uninstall"]);
    assert!(
        told(&output).contains("no service is installed"),
        "{}",
        told(&output)
    );
}

/// Returns whether the socket's and the service's templates exist.
fn templates(systemd: &Systemd) -> (bool, bool) {
    let units = systemd.path("/home/tmtest/.config/systemd/user");
    let there = |name: &str| units.join(name).exists();
    (there("touchmark@.socket"), there("touchmark@.service"))
}

#[test]
fn a_stuck_loop_is_restarted_and_loses_nothing() {
    let Some(systemd) = Systemd::boot() else {
        return;
    };
    let place = Place::new(&systemd, "/home/tmtest/w");
    place.file("a.txt", "one\n");
    place.ok(&["service", "install"]);
    systemd.write(
        Path::new("/home/tmtest/.config/systemd/user/touchmark@.service.d/soon.conf"),
        "[Service]\nWatchdogSec=1\n",
    );
    systemd.systemctl(&["daemon-reload"]);
    place.call("file/readText", json!({"session": "s", "path": "a.txt"}));
    let pid = place.main_pid();
    // It outlives its time as long as it turns.
    user::pause(2_500);
    assert_eq!(place.pid(), pid);
    place.kill("-STOP", pid);
    place.file("a.txt", "two\n");
    assert_eq!(place.state("a.txt"), "stale");
    assert_ne!(place.pid(), pid);
    assert_eq!(systemd.property(&place.service(), "NRestarts"), "1");
}

#[test]
fn life2_a_daemon_on_demand_gives_way_to_the_service() {
    let Some(systemd) = Systemd::boot() else {
        return;
    };
    let place = Place::new(&systemd, "/home/tmtest/w");
    place.file("a.txt", "one\n");
    place.call("file/readText", json!({"session": "s", "path": "a.txt"}));
    // The installation ends one that runs.
    let installed = place.json(&["service", "install"]);
    assert_eq!(installed["endedDaemon"], true, "{installed}");
    assert_eq!(place.pid(), place.main_pid());
    for round in 0..3 {
        // Where systemd does not listen, clients start one.
        systemd.systemctl(&["stop", &place.socket(), &place.service()]);
        let pid = place.pid();
        assert_eq!(place.main_pid(), 0);
        place.file("a.txt", &format!("{round}\n"));
        assert_eq!(place.state("a.txt"), "stale");
        // It gives way, even while a client sends requests.
        systemd.systemctl(&["start", &place.socket()]);
        let answers = || place.run(&["call", "status"]);
        until("the service does not answer", || {
            let output = answers();
            let status: Option<Value> = serde_json::from_slice(&output.stdout).ok();
            status.is_some_and(|status| status["pid"] == place.main_pid())
        });
        assert!(!systemd.path(format!("/proc/{pid}")).exists());
        assert_eq!(place.state("a.txt"), "stale");
        assert_eq!(place.active(), "active");
        place.call("file/readText", json!({"session": "s", "path": "a.txt"}));
    }
    assert_eq!(systemd.property(&place.service(), "NRestarts"), "0");
    // Nor does another begin beside it, or in its place.
    let second = place.run(&["daemon"]);
    assert_eq!(second.status.code(), Some(1), "{}", told(&second));
    assert_eq!(place.json(&["stop"])["stopped"], true);
    let second = place.run(&["daemon"]);
    assert_eq!(second.status.code(), Some(1), "{}", told(&second));
    assert!(
        told(&second).contains("touchmark service status"),
        "{}",
        told(&second)
    );
}

#[test]
fn life1_a_service_ends_with_its_workspace_and_does_not_come_back() {
    let Some(systemd) = Systemd::boot() else {
        return;
    };
    type Way = (&'static str, fn(&Path));
    let ways: [Way; 2] = [
        ("removed", |root| fs::remove_dir_all(root).unwrap()),
        ("renamed", |root| {
            fs::rename(root, root.with_extension("away")).unwrap()
        }),
    ];
    for (way, take_away) in ways {
        for above in ["/home/tmtest", "/tmp"] {
            let place = Place::new(&systemd, format!("{above}/w {way}"));
            place.file("sub/a.txt", "one\n");
            place.ok(&["service", "install"]);
            place.call(
                "file/readText",
                json!({"session": "s", "path": "sub/a.txt"}),
            );
            let written = place.call(
                "file/write",
                json!({"session": "s", "path": "sub/a.txt", "text": "two\n"}),
            );
            // The old file is held open, and its mount in the sandbox with it.
            assert_eq!(text(&written, "guard"), "exchange");
            assert_eq!(place.active(), "active");
            take_away(&systemd.path(&place.root));
            until("it does not end", || place.active() == "inactive");
            let service = place.service();
            assert_eq!(systemd.property(&service, "Result"), "success", "{way}");
            assert_eq!(systemd.property(&service, "NRestarts"), "0", "{way}");
            // A client that connects is refused, once.
            let socket = systemd
                .runtime()
                .join(format!("touchmark/{}.sock", place.key()));
            let knock = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(1))";
            let mut python = systemd.command("python3");
            python.args(["-c", knock]).arg(&socket);
            let knocked = systemd.run(python);
            assert_eq!(told(&knocked), "b''\n", "{way}");
            until("it does not end again", || place.active() == "inactive");
            assert_eq!(systemd.property(&service, "Result"), "success", "{way}");
            assert_eq!(systemd.property(&service, "NRestarts"), "0", "{way}");
            // It can be uninstalled by its path.
            place.ok(&["service", "uninstall"]);
            assert_eq!(left(&systemd, &place.key()), Vec::<String>::new());
        }
    }
}

/// What `PrivateUsers=` prevents, and what not.
#[test]
fn files_of_others_and_processes_of_clients_in_the_sandbox() {
    let Some(systemd) = Systemd::boot() else {
        return;
    };
    let place = Place::new(&systemd, "/home/tmtest/w");
    for name in ["own.txt", "other.txt"] {
        place.file(name, "one\n");
    }
    let other = systemd.path(place.root.join("other.txt"));
    std::os::unix::fs::chown(&other, Some(0), Some(0)).unwrap();
    place.ok(&["service", "install"]);
    // Shared with a group whose number means nothing in the sandbox: a new
    // file would take it from them.
    place.file("shared.txt", "one\n");
    let shared = systemd.path(place.root.join("shared.txt"));
    std::os::unix::fs::chown(&shared, Some(4711), Some(4712)).unwrap();
    for (name, guard, lease) in [
        ("own.txt", "exchange", true),
        ("shared.txt", "checked", true),
    ] {
        place.call("file/readText", json!({"session": "s", "path": name}));
        let written = place.call(
            "file/write",
            json!({"session": "s", "path": name, "text": "two\n"}),
        );
        assert_eq!(text(&written, "guard"), guard, "{name}: {written}");
        assert_eq!(written["lease"], lease, "{name}: {written}");
        assert_eq!(place.read(name), "two\n");
    }
    // Another user's file without write permission is not replaced (GUARD-6).
    let write = json!({"session": "s", "path": "other.txt", "text": "two\n", "force": true});
    let refused = place.run(&["call", "file/write", &write.to_string()]);
    assert!(told(&refused).contains("readOnly"), "{}", told(&refused));
    assert_eq!(place.read("other.txt"), "one\n");
    let group = std::os::unix::fs::MetadataExt::gid(&fs::metadata(&shared).unwrap());
    assert_eq!(group, 4712);
    // A process of a client's is known to live, also after a restart.
    let mut sleep = systemd.command("sleep");
    sleep.arg("600");
    let mut sleep = sleep.spawn().unwrap();
    let find = || {
        let mut pgrep = systemd.command("pgrep");
        pgrep.args(["--exact", "--full", "sleep 600"]);
        let found = told(&systemd.run(pgrep));
        found.trim().parse::<u64>().ok()
    };
    until("no process", || find().is_some());
    let pid = find().unwrap();
    let task = json!({"id": "t", "type": "shell", "command": "sleep 600", "pid": pid,
        "startTime": 1, "workingDirectory": place.root.to_str().unwrap()});
    place.call("task/save", json!({"session": "s", "task": task}));
    for _ in 0..2 {
        let tasks = place.call("task/list", json!({"session": "s"}));
        assert!(tasks.to_string().contains("\"alive\":true"), "{tasks}");
        place.kill("-KILL", place.main_pid());
    }
    sleep.kill().unwrap();
    sleep.wait().unwrap();
}

/// SQLite's index of a store's log.
const INDEX: &str = "store.db-shm";

/// LOSS-3 as a service: the state's file system is full to the last byte, while
/// the daemon runs and when it is started. Then there is space again.
#[test]
fn loss3_a_service_whose_state_has_no_room() {
    let Some(systemd) = Systemd::boot() else {
        return;
    };
    let state = Path::new("/home/tmtest/.local/state/touchmark");
    systemd.directory(state);
    let mut mount = systemd.root("mount");
    mount.args(["-t", "tmpfs", "-o", "size=2m,mode=700,uid=4711,gid=4711"]);
    mount.arg("tmpfs").arg(state);
    let mounted = systemd.run(mount);
    assert!(mounted.status.success(), "{}", told(&mounted));

    let place = Place::new(&systemd, "/home/tmtest/w");
    for name in ["a.txt", "b.txt"] {
        place.file(name, "one\n");
    }
    place.ok(&["service", "install"]);
    for name in ["a.txt", "b.txt"] {
        place.call("file/readText", json!({"session": "s", "path": name}));
    }
    let filler = systemd.path(state.join("filler"));
    let fill = || {
        let mut file = fs::File::create(&filler).unwrap();
        for size in [64 << 10, 512, 1] {
            while std::io::Write::write_all(&mut file, &vec![0; size]).is_ok() {}
        }
    };
    // What is in the store's log already has room for a few more.
    let opens = |number: u32| {
        let params = json!({"session": format!("t{number}")}).to_string();
        place.run(&["call", "session/open", &params])
    };
    let refused = |method: &str, params: Value| {
        let output = place.run(&["call", method, &params.to_string()]);
        let said = told(&output);
        assert!(!output.status.success(), "{method}: {said}");
        assert!(
            said.contains("(storage)") && said.contains("hint:") && said.contains("free space"),
            "{method}: {said}"
        );
    };
    // Connections end with a daemon that was killed, and when one that found no
    // room at its start begins again.
    let status = || {
        let output = place.run(&["call", "status", "{}"]);
        let answered = output.status.success();
        answered.then(|| serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    fill();
    let answered = (0..).find(|number| !opens(*number).status.success());
    let answered = answered.unwrap();
    place.file("a.txt", "two\n");
    for killed in [false, true] {
        if killed {
            // The next client starts it, on the full disk.
            let pid = place.main_pid();
            place.kill("-KILL", pid);
            until("it lives on", || place.main_pid() != pid);
            // What SQLite maps into memory has no blocks then.
            for directory in fs::read_dir(systemd.path(state)).unwrap() {
                let _the_filler_has_none = fs::remove_file(directory.unwrap().path().join(INDEX));
            }
            fill();
            until("the same daemon answers", || {
                status().is_some_and(|status| status["pid"] != pid)
            });
        }
        assert_eq!(place.state("a.txt"), "stale");
        assert_eq!(place.state("b.txt"), "fresh");
        refused("file/read", json!({"session": "s", "path": "a.txt"}));
        refused(
            "file/write",
            json!({"session": "s", "path": "b.txt", "text": "x", "force": true}),
        );
        assert_eq!(place.read("b.txt"), "one\n");
        let status = place.call("status", json!({}));
        assert!(
            status["degraded"].to_string().contains("cannot be stored"),
            "{status}"
        );
        assert_eq!(place.active(), "active");
    }
    fs::remove_file(&filler).unwrap();
    until("it does not recover", || {
        status().is_some_and(|status| !status["degraded"].to_string().contains("cannot be stored"))
    });
    place.call("file/readText", json!({"session": "s", "path": "a.txt"}));
    let write = json!({"session": "s", "path": "b.txt", "text": "three\n"});
    place.call("file/write", write);
    assert_eq!(place.read("b.txt"), "three\n");
    let pid = place.main_pid();
    place.kill("-KILL", pid);
    until("the same daemon answers", || {
        status().is_some_and(|status| status["pid"] != pid)
    });
    assert_eq!(place.state("a.txt"), "fresh");
    let sessions = place.call("session/list", json!({})).to_string();
    for number in 0..answered {
        assert!(sessions.contains(&format!("\"t{number}\"")), "{sessions}");
    }
}

/// DUR-2 as a service: clients are told why no daemon starts.
#[test]
fn dur2_a_service_whose_store_is_of_a_newer_version() {
    let Some(systemd) = Systemd::boot() else {
        return;
    };
    let place = Place::new(&systemd, "/home/tmtest/w");
    place.file("a.txt", "one\n");
    place.ok(&["service", "install"]);
    place.call("file/readText", json!({"session": "s", "path": "a.txt"}));
    place.json(&["stop"]);
    until("the daemon stays", || place.active() == "inactive");
    let was = place.set_version(99);
    // systemd tries five times while the first waits.
    for _ in 0..2 {
        let output = place.run(&["call", "status"]);
        let said = told(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("schema version 99"), "{said}");
        assert!(said.contains("update touchmark"), "{said}");
        let socket = systemd.property(&place.socket(), "ActiveState");
        assert_eq!(socket, "failed");
    }
    // With the touchmark that wrote it, all is as it was.
    place.set_version(was);
    assert_eq!(place.state("a.txt"), "fresh");
    assert_eq!(place.active(), "failed");
    place.ok(&["service", "install"]);
    assert_eq!(place.state("a.txt"), "fresh");
    assert_eq!(place.pid(), place.main_pid());
}

/// Without systemd the command prints the reason, and nothing is written.
#[test]
fn without_a_manager_nothing_is_installed_and_the_reason_said() {
    let world = World::asleep();
    let configured = || -> Vec<_> {
        let entries = fs::read_dir(world.config()).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = configured();
    for what in ["install", "uninstall", "status"] {
        let output = world.run(&["service", what]);
        assert_eq!(output.status.code(), Some(3), "{what}: {}", told(&output));
        let said = told(&output);
        assert!(said.contains("systemd") && said.contains("hint:"), "{said}");
    }
    assert_eq!(configured(), before);
}

fn analyze(arguments: &[&str]) -> Option<Output> {
    let runtime = tempfile::tempdir().unwrap();
    let output = Command::new("systemd-analyze")
        .args(arguments)
        .env("XDG_RUNTIME_DIR", runtime.path())
        .output();
    match output {
        Ok(output) => Some(output),
        Err(error) => {
            not_tested(&format!("the units by systemd-analyze: {error}"));
            None
        }
    }
}

#[test]
fn the_units_are_clean_and_as_exposed_as_documented() {
    let place = tempfile::tempdir().unwrap();
    for unit in ["touchmark@.socket", "touchmark@.service"] {
        let text = fs::read_to_string(format!("{TOP}/systemd/{unit}")).unwrap();
        // A program that is here, whatever is installed.
        let text = text.replace("/usr/bin/touchmark", "/bin/true");
        fs::write(place.path().join(unit), text).unwrap();
    }
    let at = |unit: &str| place.path().join(unit).to_str().unwrap().to_owned();
    let (socket, service) = (at("touchmark@.socket"), at("touchmark@.service"));
    let Some(verified) = analyze(&["--user", "--man=no", "verify", &socket, &service]) else {
        return;
    };
    assert!(verified.status.success(), "{}", told(&verified));
    let said = told(&verified);
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("touchmark"))
        .collect();
    assert_eq!(ours, Vec::<&str>::new());
    let Some(security) = analyze(&["security", "--offline=true", "--no-pager", &service]) else {
        return;
    };
    let said = told(&security);
    let score = said
        .split_once("exposure level for ")
        .and_then(|(_, rest)| rest.split_once(": "))
        .and_then(|(_, rest)| rest.split_whitespace().next())
        .unwrap_or_else(|| panic!("{said}"));
    let documented = fs::read_to_string(format!("{TOP}/docs/systemd.md")).unwrap();
    assert!(
        documented.contains(&format!("exposure level **{score}**")),
        "{score}\n{said}"
    );
    // No other process passes sockets or looks at what is exposed.
    for open in said.lines().filter(|line| line.starts_with('✗')) {
        let name = open
            .split_whitespace()
            .nth(1)
            .unwrap()
            .trim_end_matches('=');
        let name = name.split('=').next().unwrap();
        assert!(
            documented.contains(name),
            "no reason for what is open: {open}"
        );
    }
}

/// Any manager may pass the socket. The socket's name stays.
#[test]
fn a_passed_socket_is_found_out_by_itself() {
    let world = World::asleep();
    world.file("a.txt", "one\n");
    let mut socket = Command::new("systemd-socket-activate");
    socket.arg("-l").arg(world.socket());
    let directory = world.socket().parent().unwrap();
    Command::new("mkdir")
        .args(["-m", "700"])
        .arg(directory)
        .status()
        .unwrap();
    for name in [
        "HOME",
        "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
    ] {
        socket.args(["-E", name]);
    }
    let daemon = world.command(&["daemon"]);
    socket.arg(daemon.get_program()).args(daemon.get_args());
    world.dress(&mut socket);
    let mut activated = match socket.spawn() {
        Ok(activated) => activated,
        Err(error) => {
            return not_tested(&format!(
                "a passed socket: systemd-socket-activate: {error}"
            ));
        }
    };
    // Its name is there a moment before a client may connect, which the system
    // tells by a flag of the socket.
    let name = world.socket().to_str().unwrap().to_owned();
    until("no process listens", || {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        let mut own = sockets.lines().filter(|line| line.ends_with(&name));
        own.any(|line| line.split_whitespace().nth(3) == Some("00010000"))
    });
    // It becomes the daemon, at the first who connects.
    let mut client = world.client();
    assert_eq!(client.ok("status", json!({}))["pid"], activated.id());
    client.ok("file/read", json!({"session": "s", "path": "a.txt"}));
    client.ok("shutdown", json!({}));
    assert!(activated.wait().unwrap().success());
    let key = world.socket().file_name().unwrap().to_str().unwrap();
    assert_eq!(world.left_behind(), [key]);
}
