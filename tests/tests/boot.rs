//! A whole machine, from boot to shutdown, three times: systemd as the first
//! process, a user who lingers, the service in its sandbox, a state directory
//! on a separate disk that fills up, a store of an earlier touchmark and one of
//! a later.
//!
//! This program also runs in the machine (`guest`): it acts as the user and
//! prints its findings on the console. The expected findings are in [`BOOTS`].

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::json;
use touchmark_tests::machine::{Parts, Root, say, word};
use touchmark_tests::parts::{long, not_tested};
use touchmark_tests::process::until;
use touchmark_tests::systemd::{Place, Systemd, told};
use touchmark_tests::world::binary;
use touchmark_tests::{author, text};

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const STATE: &str = "/home/tmtest/.local/state/touchmark";

/// The store's files, and their directory in the machine.
const STORE: [&str; 2] = ["store.db", "store.last"];
const GOLDEN: &str = "/usr/share/golden";

/// The file with the store's version, which the next boot restores.
const VERSION: &str = "/var/lib/version";

/// A version of the store that no touchmark has reached yet.
const NEWER: u32 = 99;

/// The final contents of the files in the golden store's workspace.
const FILES: [(&str, &str); 6] = [
    ("a.txt", "a.txt one\na.txt by the user\n"),
    ("b.txt", "b.txt one\nb.txt by s\n"),
    ("c.txt", "c.txt by t\n"),
    ("d/e.txt", "d/e.txt one\nand the user\n"),
    ("f.txt", "f.txt one\n"),
    ("new.txt", "old.txt one\n"),
];

/// The expected findings of each boot, line by line.
const BOOTS: [&[&[&str]]; 3] = [
    &[&[
        "the first process is systemd",
        "installed: listening true, lingering true",
        "the unit is /usr/lib/systemd/user/touchmark@.service",
        "the daemon is inactive",
        "then it is active",
        "a.txt is stale",
        "b.txt is fresh",
        "c.txt is fresh",
        "told: a.txt by user",
    ]],
    &[
        &[
            "the manager is running",
            "the boot before: stopped 1, failed 0, killed 0",
            "the socket is active, the daemon inactive",
            "a.txt is stale",
            "b.txt is stale",
            "c.txt is fresh",
            // Nobody saw who did it.
            "told: b.txt by unknown",
        ],
        &[
            "Uid 4711",
            "CapBnd 0000000000000000",
            "NoNewPrivs 1",
            "Seccomp 2",
            "namespaces of its own: ipc mnt net user uts",
            "/home/tmtest/ws is written to",
            "/home/tmtest/.local/state/touchmark is written to",
            "/home/tmtest is read-only",
            "/home/tmtest/.config is read-only",
            "/run/user/4711 is read-only",
            "/etc is read-only",
            "/usr/bin is read-only",
            "/tmp is its own",
        ],
        &[
            "a.txt is stale",
            "b.txt is stale",
            "c.txt is stale",
            "file/read is refused for want of room: true",
            "file/write is refused for want of room: true",
            "a.txt holds \"two\\n\"",
            "status says so: true",
            "doctor says so: true",
            "with room: c.txt is fresh, guard \"exchange\"",
            "the same process: true",
            "what was answered is kept: true",
        ],
        &[
            "session s: 6 reads",
            "a.txt is stale: modified by user, created by unknown",
        ],
        FACTS,
        &["read again, a.txt is fresh"],
    ],
    &[
        &[
            "the manager is running",
            "the boot before: stopped 1, failed 0, killed 0",
            "the socket is active, the daemon inactive",
            "a.txt is stale",
            "b.txt is stale",
            "c.txt is fresh",
        ],
        &[
            "call ends with 3",
            "start ends with 3, says why: true",
            "doctor ends with 1, says why: true",
            "its store is untouched: true",
        ],
        &[
            "session s: 7 reads",
            "a.txt is fresh: modified by user, created by unknown",
        ],
        FACTS,
        &[
            "installed again, a.txt is fresh",
            "its socket is active, the daemon active",
        ],
    ],
];

/// The answers of the touchmark that wrote the golden store. They must not
/// change.
const FACTS: &[&str] = &[
    "epoch 1795386951600",
    "session t: 4 reads",
    "b.txt is fresh: modified by agent:s, created by unknown",
    "c.txt is unread: modified by agent:t, created by unknown",
    "d/e.txt is stale: modified by user, modified by agent:t, created by unknown",
    "gone.txt is deleted: deleted by user, created by unknown",
    "new.txt is fresh: renamed by user",
];

/// Runs before systemd: mounts the disks, and makes changes while no daemon
/// runs.
const INIT: &str = "{
    if grep -q touchmark.boot=1 /proc/cmdline; then
        chown -R 0:0 /disk
        chown -R 4711:4711 /disk/home/tmtest
    fi
    mount -t ext4 /dev/vdb /disk/home/tmtest/.local/state/touchmark
    chown 4711:4711 /disk/home/tmtest/.local/state/touchmark
    chmod 700 /disk/home/tmtest/.local/state/touchmark
    if grep -q touchmark.boot=2 /proc/cmdline; then
        echo 'while it was off' > /disk/home/tmtest/ws/b.txt
    fi
    umount /run /tmp
    for place in proc sys dev; do mount --move /$place /disk/$place; done
    exec switch_root /disk /lib/systemd/systemd
}";

/// The unit that runs this program when the machine is up.
const STORY: &str = "[Unit]
Description=what this boot is to show
After=systemd-logind.service systemd-user-sessions.service
SuccessAction=poweroff
FailureAction=poweroff
[Service]
Type=oneshot
ExecStart=/usr/bin/guest --exact boot::guest --ignored --nocapture --test-threads=1
StandardOutput=file:/dev/ttyS0
StandardError=file:/dev/ttyS0
";

/// Not a test: the part that runs in the machine.
#[test]
#[ignore = "runs in the virtual machine of another test"]
fn guest() {
    let Some(boot) = word("touchmark.boot") else {
        return;
    };
    match boot {
        1 => installed_and_told(),
        2 => remembered(),
        _ => newer(),
    }
    say("DONE");
}

fn found(line: &str) {
    say(&format!("FOUND {line}"));
}

fn installed_and_told() {
    let first = fs::read_to_string("/proc/1/comm").unwrap();
    found(&format!("the first process is {}", first.trim()));
    let linger = Command::new("loginctl")
        .args(["enable-linger", "tmtest"])
        .status();
    assert!(linger.unwrap().success());
    let systemd = Systemd::here();
    let place = Place::new(&systemd, "/home/tmtest/ws");
    for name in ["a.txt", "b.txt", "c.txt"] {
        place.file(name, "one\n");
    }
    let installed = place.json(&["service", "install"]);
    found(&format!(
        "installed: listening {}, lingering {}",
        installed["listening"], installed["lingering"]
    ));
    let unit = systemd.property(&place.service(), "FragmentPath");
    found(&format!("the unit is {unit}"));
    found(&format!("the daemon is {}", place.active()));
    for name in ["a.txt", "b.txt", "c.txt"] {
        place.call("file/readText", json!({"session": "s", "path": name}));
    }
    found(&format!("then it is {}", place.active()));
    place.file("a.txt", "two\n");
    copies(&place);
    taken(&place);
}

/// Prints the states of the session's copies.
fn copies(place: &Place) {
    for name in ["a.txt", "b.txt", "c.txt"] {
        found(&format!("{name} is {}", place.state(name)));
    }
}

/// Prints the changes that are reported to the session.
fn taken(place: &Place) {
    let told = place.call("modified/take", json!({"session": "s"}));
    for change in told["changes"].as_array().unwrap() {
        let by = change["changedBy"].as_array().unwrap().iter().map(author);
        let by: Vec<String> = by.collect();
        found(&format!(
            "told: {} by {}",
            text(change, "path"),
            by.join(", ")
        ));
    }
}

fn remembered() {
    let systemd = Systemd::here();
    let place = Place::new(&systemd, "/home/tmtest/ws");
    up_by_itself(&systemd, &place);
    copies(&place);
    taken(&place);
    sandboxed(&systemd, &place);
    no_room(&place);

    let older = Place::new(&systemd, "/home/tmtest/older");
    for (name, content) in FILES {
        older.file(name, content);
    }
    systemd.directory(&older.state_directory());
    fs::set_permissions(older.state_directory(), fs::Permissions::from_mode(0o700)).unwrap();
    for name in STORE {
        let file = older.state_directory().join(name);
        fs::copy(Path::new(GOLDEN).join(name), &file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&file, Some(4711), Some(4711)).unwrap();
    }
    older.ok(&["service", "install"]);
    facts(&older);
    older.call("file/readText", json!({"session": "s", "path": "a.txt"}));
    found(&format!("read again, a.txt is {}", older.state("a.txt")));

    // The next boot finds what a later touchmark leaves.
    older.json(&["stop"]);
    until("the daemon stays", || older.active() == "inactive");
    fs::write(VERSION, older.set_version(NEWER).to_be_bytes()).unwrap();
}

/// Prints the state of the manager and the service after a boot, and how the
/// daemon exited before.
fn up_by_itself(systemd: &Systemd, place: &Place) {
    let mut up = systemd.command("systemctl");
    up.args(["--user", "--wait", "is-system-running"]);
    found(&format!("the manager is {}", told(&systemd.run(up)).trim()));
    let mut journal = systemd.root("journalctl");
    journal.args([
        "--boot=-1",
        "--output=cat",
        "--no-pager",
        "--identifier=systemd",
    ]);
    let journal = told(&systemd.run(journal));
    let of = |word: &str| {
        let unit = place.service();
        let lines = journal.lines().filter(|line| line.contains(&unit));
        lines.filter(|line| line.contains(word)).count()
    };
    found(&format!(
        "the boot before: stopped {}, failed {}, killed {}",
        of("Stopped"),
        of("Failed"),
        of("Killing")
    ));
    found(&format!(
        "the socket is {}, the daemon {}",
        systemd.property(&place.socket(), "ActiveState"),
        place.active()
    ));
}

/// Prints the daemon's restrictions, as the kernel reports them.
fn sandboxed(systemd: &Systemd, place: &Place) {
    let pid = place.main_pid();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    for name in ["Uid", "CapBnd", "NoNewPrivs", "Seccomp"] {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let value = line
            .unwrap()
            .trim_start_matches(':')
            .split_whitespace()
            .next();
        found(&format!("{name} {}", value.unwrap()));
    }
    let mut manager = systemd.root("systemctl");
    manager.args(["show", "--value", "--property=MainPID", "user@4711.service"]);
    let manager = told(&systemd.run(manager));
    let of = |pid: &str, name: &str| fs::read_link(format!("/proc/{pid}/ns/{name}")).unwrap();
    let own = ["ipc", "mnt", "net", "user", "uts"];
    let own = own
        .into_iter()
        .filter(|name| of(&pid.to_string(), name) != of(manager.trim(), name));
    found(&format!(
        "namespaces of its own: {}",
        own.collect::<Vec<_>>().join(" ")
    ));
    // As root, whom a read-only mount refuses as well.
    for directory in [
        "/home/tmtest/ws",
        STATE,
        "/home/tmtest",
        "/home/tmtest/.config",
        "/run/user/4711",
        "/etc",
        "/usr/bin",
        "/tmp",
    ] {
        let file = format!("{directory}/touched");
        let mut touch = systemd.root("nsenter");
        touch.args(["-t", &pid.to_string(), "-m", "--", "touch", &file]);
        let touched = systemd.run(touch);
        let said = match told(&touched) {
            said if said.contains("Read-only") => "read-only",
            _ if !touched.status.success() => "refused",
            _ if Path::new(&file).exists() => "written to",
            _ => "its own",
        };
        let _there = fs::remove_file(&file);
        found(&format!("{directory} is {said}"));
    }
}

/// LOSS-3: the state's disk is full to the last byte, and then has space again.
fn no_room(place: &Place) {
    let pid = place.main_pid();
    let filler = Path::new(STATE).join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    for size in [64 << 10, 512, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    drop(file);
    // What is in the store's log already has room for a few more.
    let opens = |number: &u32| {
        let params = json!({"session": format!("t{number}")}).to_string();
        !place
            .run(&["call", "session/open", &params])
            .status
            .success()
    };
    let answered = (0..50).find(opens).expect("no room is left");
    place.file("c.txt", "three\n");
    copies(place);
    for (method, params) in [
        ("file/read", json!({"session": "s", "path": "c.txt"})),
        (
            "file/write",
            json!({"session": "s", "path": "a.txt", "text": "x", "force": true}),
        ),
    ] {
        let said = told(&place.run(&["call", method, &params.to_string()]));
        let storage = said.contains("(storage)") && said.contains("hint:") && said.contains("room");
        found(&format!("{method} is refused for want of room: {storage}"));
    }
    found(&format!("a.txt holds {:?}", place.read("a.txt")));
    let cannot = |said: &str| said.contains("cannot be stored");
    let degraded = || cannot(&place.call("status", json!({}))["degraded"].to_string());
    found(&format!("status says so: {}", degraded()));
    let doctor = told(&place.run(&["doctor"]));
    found(&format!("doctor says so: {}", cannot(&doctor)));
    fs::remove_file(&filler).unwrap();
    until("it does not recover", || !degraded());
    place.call("file/readText", json!({"session": "s", "path": "c.txt"}));
    let write = json!({"session": "s", "path": "c.txt", "text": "by s\n"});
    let written = place.call("file/write", write);
    found(&format!(
        "with room: c.txt is {}, guard {}",
        place.state("c.txt"),
        written["guard"]
    ));
    found(&format!("the same process: {}", place.main_pid() == pid));
    let sessions = place.call("session/list", json!({})).to_string();
    let kept = (0..answered).all(|number| sessions.contains(&format!("\"t{number}\"")));
    found(&format!("what was answered is kept: {kept}"));
}

/// Prints the answers that the golden store's touchmark gave, the changeable
/// ones first.
fn facts(place: &Place) {
    let sessions = place.call("session/list", json!({}));
    let reads = |name: &str| {
        let mut sessions = sessions["sessions"].as_array().unwrap().iter();
        let session = sessions.find(|session| session["session"] == name);
        found(&format!(
            "session {name}: {} reads",
            session.unwrap()["reads"]
        ));
    };
    let file = |path: &str| {
        let history = place.call("file/history", json!({"path": path}));
        let versions = history["versions"].as_array().unwrap().iter();
        let versions: Vec<String> = versions
            .map(|one| format!("{} by {}", text(one, "kind"), author(&one["author"])))
            .collect();
        found(&format!(
            "{path} is {}: {}",
            place.state(path),
            versions.join(", ")
        ));
    };
    reads("s");
    file("a.txt");
    let clock = text(&place.call("sync", json!({})), "clock");
    found(&format!("epoch {}", clock.split(':').next().unwrap()));
    reads("t");
    for path in ["b.txt", "c.txt", "d/e.txt", "gone.txt", "new.txt"] {
        file(path);
    }
}

fn newer() {
    let systemd = Systemd::here();
    let place = Place::new(&systemd, "/home/tmtest/ws");
    up_by_itself(&systemd, &place);
    copies(&place);

    let older = Place::new(&systemd, "/home/tmtest/older");
    let bytes = || STORE.map(|name| fs::read(older.state_directory().join(name)).unwrap());
    let before = bytes();
    let ended = older.run(&["call", "status"]).status.code().unwrap();
    found(&format!("call ends with {ended}"));
    let socket = || systemd.property(&older.socket(), "ActiveState");
    until("systemd goes on trying", || socket() == "failed");
    for what in ["start", "doctor"] {
        let output = older.run(&[what]);
        let said = told(&output);
        let why = said.contains("schema version 99") && said.contains("update touchmark");
        if !why {
            say(&said);
        }
        let ended = output.status.code().unwrap();
        found(&format!("{what} ends with {ended}, says why: {why}"));
    }
    found(&format!("its store is untouched: {}", bytes() == before));

    // With the touchmark that wrote it.
    let was = fs::read(VERSION).unwrap();
    older.set_version(u32::from_be_bytes(was.try_into().unwrap()));
    facts(&older);
    older.ok(&["service", "install"]);
    found(&format!(
        "installed again, a.txt is {}",
        older.state("a.txt")
    ));
    found(&format!(
        "its socket is {}, the daemon {}",
        socket(),
        older.active()
    ));
}

#[test]
fn life1_a_machine_is_started_with_the_service_and_started_again() {
    if !long("a whole machine with the service: started three times") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let parts = match machine(place.path()) {
        Ok(parts) => parts,
        Err(missing) => return not_tested(&format!("a whole machine: {missing}")),
    };
    for (number, expected) in (1..).zip(BOOTS) {
        let expected = expected.concat();
        let began = Instant::now();
        let mut machine = parts.boot(&format!(
            "touchmark.boot={number} systemd.unit=multi-user.target systemd.wants=story.service \
             systemd.show_status=false"
        ));
        let mut found = Vec::new();
        let mut done = false;
        while let Some(line) = machine.line() {
            if let Some((_, line)) = line.split_once("FOUND ") {
                found.push(line.to_owned());
            }
            done |= line.contains("DONE");
        }
        assert!(done, "boot {number}: it went off:\n{}", machine.console());
        assert_eq!(found, expected, "boot {number}:\n{}", machine.console());
        println!("boot {number}: {:?}", began.elapsed());
    }
}

fn machine(place: &Path) -> Result<Parts, String> {
    let mut parts = Parts::new(place, &[], INIT)?;
    let root = Root::new(&place.join("system"))?;
    for (file, line) in [
        ("/etc/passwd", "tmtest:x:4711:4711::/home/tmtest:/bin/sh\n"),
        ("/etc/group", "tmtest:x:4711:\n"),
        ("/etc/shadow", "tmtest:*:19000:0:99999:7:::\n"),
        ("/etc/systemd/system/story.service", STORY),
    ] {
        root.write(file, line);
    }
    fs::create_dir_all(root.path(STATE)).unwrap();
    root.program(&binary(), "/usr/bin/touchmark");
    root.program(&std::env::current_exe().unwrap(), "/usr/bin/guest");
    // As the package has them.
    for unit in ["touchmark@.socket", "touchmark@.service"] {
        let text = fs::read_to_string(format!("{TOP}/systemd/{unit}")).unwrap();
        root.write(&format!("/usr/lib/systemd/user/{unit}"), &text);
    }
    fs::create_dir_all(root.path(GOLDEN)).unwrap();
    for name in STORE {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/store-v9");
        fs::copy(golden.join(name), root.path(GOLDEN).join(name)).unwrap();
    }
    // The golden store grows older than any default keeps things.
    root.write(
        "/home/tmtest/.config/touchmark/config.toml",
        "[versions]\nkeep = \"36500 days\"\n[sessions]\nkeep = \"36500 days\"\n",
    );
    parts.disk(512, Some(&place.join("system")));
    parts.disk(16, None);
    Ok(parts)
}
