//! The command is as without a witness: its status, streams, signals and
//! children.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{Place, WITNESS, gaps, has, is_root, marks, not_tested, short, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use touchmark_witness::Operation::Created;
use touchmark_witness::{Gap, Held, Record, Refusal, holders};

/// Returns the words of a file, once it has some.
fn words(path: &Path) -> Vec<String> {
    let mut text = String::new();
    wait_for("a file's text", || {
        text = std::fs::read_to_string(path).unwrap_or_default();
        text.ends_with('\n')
    });
    text.split_whitespace().map(str::to_owned).collect()
}

fn pid(text: &str) -> Pid {
    Pid::from_raw(text.parse().unwrap()).unwrap()
}

/// Returns the letter of a process's state; `None` if there is no process.
fn state(pid: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim().chars().next()
}

fn is_gone(pid: &str) -> bool {
    state(pid).is_none_or(|state| state == 'Z')
}

#[test]
fn the_status_is_the_commands() {
    for (script, status) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -TERM $$", 128 + 15),
        ("kill -KILL $$", 128 + 9),
        ("kill -SEGV $$", 128 + 11),
    ] {
        let place = Place::new();
        let output = place.shell(script);
        assert_eq!(output.status.code(), Some(status), "{script}");
        assert!(output.stderr.is_empty(), "{output:?}");
        place.ended();
    }
    let place = Place::new();
    let output = place.witness(["/no/such/program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/program"));
    let place = Place::new();
    let output = place.witness(["/etc/passwd"]).output().unwrap();
    assert_eq!(output.status.code(), Some(126));
    let usage = Command::new(WITNESS).output().unwrap();
    assert_eq!(usage.status.code(), Some(125));
}

#[test]
fn streams_arguments_and_surroundings_are_untouched() {
    let place = Place::new();
    let script = r#"cat; echo err >&2; printf '%s|' "$@" "$PWD" "$V"; ls /proc/self/fd | wc -l"#;
    let words = ["sh", "-c", script, "sh", "a b", "", "*"];
    let run = |mut command: Command| {
        command.env("V", "value").current_dir(&place.root);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(b"input\0\xff")
            .unwrap();
        child.wait_with_output().unwrap()
    };
    let mut plain = Command::new(words[0]);
    plain.args(&words[1..]);
    let (plain, below) = (run(plain), run(place.witness(words)));
    assert!(plain.stdout.starts_with(b"input\0\xffa b||*|/"));
    assert_eq!(plain, below);
}

#[test]
fn signals_are_as_the_launcher_was_started_with() {
    let script = "grep -E 'SigIgn|SigBlk' /proc/self/status";
    for setup in ["", "trap '' PIPE; ", "trap '' HUP CHLD; "] {
        let place = Place::new();
        let plain = format!("{setup}exec {script}");
        let ring = place.ring.display();
        let below = format!("{setup}exec {WITNESS} --ring {ring} -- {script}");
        let run = |script: &str| Command::new("sh").args(["-c", script]).output().unwrap();
        let (plain, below) = (run(&plain), run(&below));
        assert!(!plain.stdout.is_empty());
        assert_eq!(plain.stdout, below.stdout, "{setup}");
    }
    // A closed stream stays closed.
    let place = Place::new();
    let ring = place.ring.display();
    let script = "[ -e /proc/self/fd/0 ] && echo open || echo closed";
    let below = format!("exec 0<&-; {WITNESS} --ring {ring} -- sh -c '{script}'");
    let output = Command::new("bash").args(["-c", &below]).output().unwrap();
    assert_eq!(output.stdout, b"closed\n");
}

#[test]
fn the_command_stays_in_its_session_and_the_holders_leave_it() {
    let place = Place::new();
    let script = "ps -o pgid=,sid= -p $$; ps -o pid=,pgid=,sid= -p $PPID";
    let numbers = |mut command: Command| -> Vec<String> {
        let output = command.args(["sh", "-c", script]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().map(str::to_owned).collect()
    };
    // Both numbers are 0 in a container that was entered from outside.
    let plain = numbers(Command::new("env"));
    let below = numbers(place.witness([""; 0]));
    assert_eq!(below[..2], plain[..2]);
    // The supervisor is its own.
    assert_eq!(below[2], below[3]);
    assert_eq!(below[2], below[4]);
}

/// A command in a group of its own, which does not outlive the test.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let group = pid(&self.0.id().to_string());
        let _ended = rustix::process::kill_process_group(group, Signal::KILL);
    }
}

fn start(place: &Place, script: &str) -> Group {
    let mut command = place.witness(["sh", "-c", script]);
    command.stdout(Stdio::null()).process_group(0);
    Group(command.spawn().unwrap())
}

#[test]
fn a_signal_to_the_launcher_reaches_the_command() {
    for (signal, name) in [
        (Signal::TERM, "TERM"),
        (Signal::INT, "INT"),
        (Signal::HUP, "HUP"),
        (Signal::USR1, "USR1"),
    ] {
        let place = Place::new();
        let script = format!(
            "trap 'echo {name} > got; exit 9' {name}; echo $$ > ready
            while :; do sleep 0.01; done"
        );
        let mut child = start(&place, &script);
        words(&place.root.join("ready"));
        kill_process(pid(&child.0.id().to_string()), signal).unwrap();
        assert_eq!(child.0.wait().unwrap().code(), Some(9), "{name}");
        assert_eq!(words(&place.root.join("got")), [name]);
    }
    // Without a handler it ends the command.
    let place = Place::new();
    let mut child = start(&place, "echo $$ > ready; exec sleep 100");
    words(&place.root.join("ready"));
    kill_process(pid(&child.0.id().to_string()), Signal::TERM).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(128 + 15));
    place.ended();
}

#[test]
fn who_kills_the_launcher_kills_the_command() {
    let place = Place::new();
    let script = "sleep 100 & echo $$ $! > ready; wait";
    let mut child = start(&place, script);
    let pids = words(&place.root.join("ready"));
    child.0.kill().unwrap();
    assert_eq!(child.0.wait().unwrap().signal(), Some(9));
    wait_for("the command's end", || is_gone(&pids[0]));
    // As without a witness, its children go on.
    assert!(!is_gone(&pids[1]));
    kill_process(pid(&pids[1]), Signal::KILL).unwrap();
    place.ended();
}

#[test]
fn the_launcher_stops_and_continues_with_the_command() {
    let place = Place::new();
    let mut child = start(&place, "echo $$ > ready; while :; do sleep 0.01; done");
    let own = child.0.id().to_string();
    let target = words(&place.root.join("ready"))[0].clone();
    for _ in 0..5 {
        kill_process(pid(&target), Signal::STOP).unwrap();
        wait_for("the launcher's stop", || state(&own) == Some('T'));
        // A shell continues the group.
        rustix::process::kill_process_group(pid(&own), Signal::CONT).unwrap();
        // It has handled the signal when it waits again.
        wait_for("both to go on", || {
            state(&own) == Some('S') && state(&target) != Some('T')
        });
    }
    // What the shell sends to the launcher alone stops both.
    kill_process(pid(&own), Signal::TSTP).unwrap();
    wait_for("both to stop", || {
        state(&own) == Some('T') && state(&target) == Some('T')
    });
    kill_process(pid(&own), Signal::CONT).unwrap();
    wait_for("both to go on", || {
        state(&own) == Some('S') && state(&target) != Some('T')
    });
    kill_process(pid(&own), Signal::TERM).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn children_outlive_the_command_and_are_witnessed() {
    let place = Place::new();
    let script = "(echo $BASHPID > ready; while [ ! -e go ]; do sleep 0.01; done
        echo > later) > /dev/null 2>&1 < /dev/null &
        exit 4";
    let output = place.witness(["bash", "-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let child = words(&place.root.join("ready"))[0].clone();
    assert!(!is_gone(&child));
    let [supervisor, guardian] = place.holders().unwrap();
    for holder in [supervisor, guardian] {
        assert!(!is_gone(&holder.to_string()));
        // They keep none of the streams.
        for stream in 0..3 {
            let link = std::fs::read_link(format!("/proc/{holder}/fd/{stream}")).unwrap();
            assert_eq!(link, Path::new("/dev/null"));
        }
    }
    std::fs::write(place.root.join("go"), "").unwrap();
    // The reader continues behind the record of the holders.
    let records = place.ended();
    let later = (Created, place.root.join("later"), false);
    assert_eq!(short(&records).last(), Some(&later));
    for holder in [supervisor, guardian] {
        wait_for("the holders' end", || is_gone(&holder.to_string()));
    }
}

#[test]
fn a_nested_witness_runs_the_command_unwitnessed() {
    let (place, inner) = (Place::new(), Place::new());
    let ring = inner.ring.to_str().unwrap();
    let words = [
        WITNESS,
        "--ring",
        ring,
        "--",
        "sh",
        "-c",
        "echo > file; exit 5",
    ];
    let output = place.witness(words).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("unwitnessed"), "{text}");
    assert_eq!(inner.ended_refused(), Refusal::Nested);
    let records = place.ended();
    assert_eq!(short(&records), [(Created, place.root.join("file"), false)]);
}

#[test]
fn a_ring_that_cannot_be_used_is_no_reason_to_fail() {
    let place = Place::new();
    let mut command = Command::new(WITNESS);
    command.args(["--ring", "/no/such/ring", "--", "sh", "-c", "exit 6"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&output.stderr).contains("ring"));
    // Another tree writes it.
    let mut child = start(
        &place,
        "echo > ready; while [ ! -e go ]; do sleep 0.01; done",
    );
    wait_for("the first", || place.root.join("ready").exists());
    let output = place.shell("exit 8");
    assert_eq!(output.status.code(), Some(8));
    assert!(String::from_utf8_lossy(&output.stderr).contains("ring"));
    std::fs::write(place.root.join("go"), "").unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_lack_of_processes_is_no_reason_to_fail() {
    if !is_root() || !has("setpriv") || !has("bash") {
        return;
    }
    let place = Place::new();
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(place.directory.path(), everyone).unwrap();
    let owner = Some(54321);
    for file in ["ring", "ring.bell"] {
        std::os::unix::fs::chown(place.directory.path().join(file), owner, None).unwrap();
    }
    let own = place.directory.path().join("witness");
    std::fs::copy(WITNESS, &own).unwrap();
    // Enough for the launcher alone, and for each of the others in turn.
    for most in 1..5 {
        let script = format!(
            "ulimit -u {most}; exec setpriv --reuid 54321 --clear-groups {} --quiet --ring {} \
            --root {} -- sh -c 'exit 7'",
            own.display(),
            place.ring.display(),
            place.root.display()
        );
        let output = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{most} {output:?}");
        wait_for("the ring's end", || {
            !touchmark_witness::Reader::open(&place.ring)
                .unwrap()
                .runs()
                .unwrap()
        });
    }
}

#[test]
fn an_ordinary_user_is_witnessed() {
    if !is_root() || !has("setpriv") || !has("unshare") {
        return;
    }
    let place = Place::new();
    let everyone = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(place.directory.path(), everyone(0o777)).unwrap();
    std::fs::set_permissions(&place.root, everyone(0o777)).unwrap();
    for file in ["ring", "ring.bell"] {
        let file = place.directory.path().join(file);
        std::os::unix::fs::chown(file, Some(54321), None).unwrap();
    }
    let own = place.directory.path().join("witness");
    std::fs::copy(WITNESS, &own).unwrap();
    std::fs::create_dir(place.root.join("closed")).unwrap();
    std::fs::set_permissions(place.root.join("closed"), everyone(0o700)).unwrap();
    let script = "echo > plain; grep NoNewPrivs /proc/self/status
        echo > closed/no; echo > closed/far/no
        unshare -Urm sh -c 'echo > user; mount -t tmpfs none /mnt; echo > mounted'";
    let output = Command::new("setpriv")
        .args(["--reuid", "54321", "--clear-groups"])
        .args([
            &own,
            Path::new("--ring"),
            &place.ring,
            Path::new("--root"),
            &place.root,
        ])
        .args(["--", "sh", "-c", script])
        .current_dir(&place.root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"NoNewPrivs:\t1\n");
    let records = place.ended();
    assert_eq!(gaps(&records), []);
    let expected = ["plain", "user", "mounted"].map(|name| (Created, place.root.join(name), false));
    assert_eq!(short(&records), expected);
}

#[test]
fn a_process_that_cannot_be_read_is_a_gap_and_no_failure() {
    if !is_root() || !has("setpriv") || !has("gcc") {
        return;
    }
    let place = Place::new();
    let everyone = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(place.directory.path(), everyone(0o777)).unwrap();
    std::fs::set_permissions(&place.root, everyone(0o777)).unwrap();
    let inside = |name: &str| place.directory.path().join(name);
    for file in ["ring", "ring.bell"] {
        std::os::unix::fs::chown(inside(file), Some(54321), None).unwrap();
    }
    std::fs::copy(WITNESS, inside("witness")).unwrap();
    let source = "#include <fcntl.h>\n#include <sys/prctl.h>\n\
        int main(void) { prctl(PR_SET_DUMPABLE, 0);\n\
        return open(\"file\", O_WRONLY | O_CREAT, 0600) < 0; }";
    std::fs::write(inside("hidden.c"), source).unwrap();
    let built = Command::new("gcc")
        .args([Path::new("-o"), &inside("hidden"), &inside("hidden.c")])
        .status();
    assert!(built.unwrap().success());
    let output = Command::new("setpriv")
        .args(["--reuid", "54321", "--clear-groups"])
        .args([&inside("witness"), Path::new("--ring"), &place.ring])
        .args([Path::new("--root"), &place.root, Path::new("--")])
        .arg(inside("hidden"))
        .current_dir(&place.root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(place.root.join("file").exists());
    let records = place.ended();
    assert_eq!(gaps(&records), [Gap::Unreadable]);
    assert_eq!(marks(&records).len(), 0);
}

#[test]
fn a_full_ring_is_a_gap_and_no_failure() {
    let place = Place::with(0);
    let script = "i=0; while [ $i -lt 3000 ]; do echo > file; i=$((i + 1)); done";
    let output = place.shell(script);
    assert!(output.status.success());
    let mut reader = touchmark_witness::Reader::open(&place.ring).unwrap();
    wait_for("the end", || !reader.runs().unwrap());
    let (mut read, mut told, mut lost) = (0, 0, 0);
    while let Some((_, record)) = reader.next().unwrap() {
        match record {
            Record::Mark(_) => read += 1,
            Record::Happened { .. } => told += 1,
            Record::Gap { why, calls, .. } => {
                assert_eq!(why, Gap::Overflow);
                lost += calls;
            }
            _ => {}
        }
    }
    // Each mark has at most one record of events after it, the first one two. The
    // last record, which is neither, may be lost as well.
    assert!(read + lost >= 3000, "{read} {told} {lost}");
    assert!(read + told + lost <= 6002, "{read} {told} {lost}");
    assert!(read > 100 && lost > 100, "{read} {lost}");
}

#[test]
fn a_large_tree_is_witnessed() {
    let place = Place::new();
    let script = "i=0; while [ $i -lt 600 ]; do
            (while [ ! -e go ]; do sleep 0.5; done; echo > file$i) &
            i=$((i + 1))
        done; echo > go; wait";
    let output = place.shell(script);
    assert!(output.status.success(), "{output:?}");
    let records = place.ended();
    assert_eq!(gaps(&records), []);
    let mut files: Vec<_> = { short(&records).into_iter() }.map(|one| one.1).collect();
    files.sort();
    files.dedup();
    assert_eq!(files.len(), 601);
}

#[test]
fn what_the_command_inherits_open_for_writing_is_recorded() {
    let place = Place::new();
    let out = std::fs::File::create(place.root.join("out")).unwrap();
    let outside = std::fs::File::create(place.directory.path().join("outside")).unwrap();
    let mut command = place.witness(["sh", "-c", "echo text"]);
    command.stdout(out).stderr(outside);
    assert!(command.status().unwrap().success());
    let records = place.ended();
    let inherited = records.iter().filter_map(|record| match record {
        Record::Inherited { path, .. } => Some(String::from_utf8_lossy(path).into_owned()),
        _ => None,
    });
    let inherited: Vec<_> = inherited.collect();
    assert_eq!(inherited, [place.root.join("out").to_str().unwrap()]);
    assert_eq!(marks(&records).len(), 0);
}

#[test]
fn who_holds_a_file_is_found() {
    use std::os::unix::fs::MetadataExt as _;
    let place = Place::new();
    for name in ["written", "read", "mapped", "private", "none"] {
        std::fs::write(place.root.join(name), "some text").unwrap();
    }
    let program = "import mmap, os, time
w = os.open('written', os.O_WRONLY); r = os.open('read', os.O_RDONLY)
def m(name, flags):
    f = os.open(name, os.O_RDWR)
    made = mmap.mmap(f, 9, flags); os.close(f); return made
a = m('mapped', mmap.MAP_SHARED); b = m('private', mmap.MAP_PRIVATE)
# The module keeps a descriptor of its own.
for name in os.listdir('/proc/self/fd'):
    path = os.path.realpath('/proc/self/fd/' + name)
    if path.endswith(('/mapped', '/private')): os.close(int(name))
child, here = os.fork(), os.getcwd()
def wait(name):
    # Not for ever if the test has failed.
    while os.path.exists(here) and not os.path.exists(name): time.sleep(0.01)
if child:
    wait('closed')
    open('ready', 'w').write('%d\\n' % os.getpid())
    wait('go')
    os._exit(0)
os.closerange(3, 100)
os.mkdir('closed')
wait('go')
";
    let mut child = place.witness(["python3", "-c", program]).spawn().unwrap();
    let target = words(&place.root.join("ready"))[0].parse::<u32>().unwrap();
    let file = |name: &str| {
        let meta = place.root.join(name).metadata().unwrap();
        let device = meta.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        (u64::from(major) << 32 | u64::from(minor), meta.ino())
    };
    let files = ["written", "read", "mapped", "private", "none"].map(file);
    let ancestors = place.holders().unwrap();
    let found = holders(&ancestors, &files);
    assert_eq!(found[0], Held::By(target));
    assert_eq!(found[1], Held::No);
    assert!(matches!(found[2], Held::By(_)), "{found:?}");
    assert_eq!(found[3..], [Held::No, Held::No]);
    std::fs::write(place.root.join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    wait_for("the tree's end", || {
        holders(&ancestors, &files) == [Held::No; 5]
    });
}

#[test]
fn few_descriptors_are_enough() {
    let place = Place::new();
    // There are more processes at a time than the supervisor has descriptors.
    let script = "i=0; while [ $i -lt 60 ]; do (echo > a$i; sleep 0.1; echo > b$i) & i=$((i + 1));
        done; wait";
    let words = [WITNESS, "--ring"].map(str::to_owned);
    let mut command = Command::new("bash");
    command
        .args(["-c", "ulimit -n 40; exec \"$@\"", "bash"])
        .args(words);
    command.arg(&place.ring).arg("--root").arg(&place.root);
    command
        .args(["--", "bash", "-c", script])
        .current_dir(&place.root);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let records = place.ended();
    assert_eq!(gaps(&records), []);
    assert_eq!(short(&records).len(), 120);
}

#[test]
fn ancestors_may_read_where_yama_restricts_it() {
    let what = "the witness where Yama lets only ancestors read";
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    match scope.as_deref().map(str::trim) {
        Ok("1") => {}
        Ok(scope) => return not_tested(&format!("{what}: ptrace_scope is {scope}")),
        Err(_) => return not_tested(&format!("{what}: this kernel has no Yama")),
    }
    // Root reads anything.
    let user = rustix::process::geteuid().is_root().then_some(65534);
    let place = Place::new();
    if let Some(user) = user {
        place.open_to(user);
    }
    // An orphan stays below the holders.
    let script = "wait() { while [ ! -e $1 ]; do sleep 0.01; done; }
        echo > a; (wait go; echo > b) & sh -c 'exec setsid sh -c \"echo > c\" &'; wait c
        echo > ready; wait go; echo > d; wait b";
    let mut command = place.as_user(user, "/usr/bin:/bin");
    command.arg(place.program()).arg("--ring").arg(&place.ring);
    command.arg("--root").arg(&place.root);
    command
        .args(["--", "sh", "-c", script])
        .current_dir(&place.root);
    let mut child = command.spawn().unwrap();
    wait_for("the command", || place.root.join("ready").exists());
    let mut reader = touchmark_witness::Reader::open(&place.ring).unwrap();
    let mut records = Vec::new();
    let mut look = || {
        while let Some((_, record)) = reader.next().unwrap() {
            records.push(record);
        }
        records.clone()
    };
    let holders = look().into_iter().rev().find_map(|record| match record {
        Record::Holders { holders, .. } => Some(holders),
        _ => None,
    });
    // The guardian is an ancestor as well.
    kill_process(pid(&holders.unwrap()[0].to_string()), Signal::KILL).unwrap();
    std::fs::write(place.root.join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    wait_for("the end", || look().contains(&Record::Ended));
    let records = look();
    let may_be = |gap: &Gap| *gap == Gap::Unanswered;
    assert!(gaps(&records).iter().all(may_be), "{:?}", gaps(&records));
    for name in ["a", "b", "c", "d"] {
        let path = place.root.join(name);
        let is_marked = short(&records).iter().any(|mark| mark.1 == path);
        assert!(is_marked || !gaps(&records).is_empty(), "{name}");
    }
}
