//! LOSS-4: files that cannot be read for a moment, and files that cannot be
//! watched because their path is too long.

use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, mkdirat, open, openat};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;
use touchmark_tests::World;

/// Sets how many descriptors a process may have; `None` for as many as this
/// process. Returns the previous limit.
fn descriptors(process: u32, most: Option<u64>) -> Rlimit {
    let pid = Pid::from_raw(i32::try_from(process).unwrap());
    let all = rustix::process::getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: most.or(all.current),
        maximum: all.maximum,
    };
    prlimit(pid, Resource::Nofile, limit).unwrap()
}

#[test]
fn loss4_want_of_descriptors_is_never_taken_for_an_unchanged_file() {
    let mut world = World::new();
    let names = ["a.txt", "b.txt", "c.txt"];
    let mut agent = world.session("s");
    for name in names {
        world.file(name, "one\n");
        agent.read(name);
    }
    agent.sync();
    let open = fs::read_dir(format!("/proc/{}/fd", world.pid())).unwrap();
    let before = descriptors(world.pid(), Some(open.count() as u64));
    for name in names {
        world.file(name, "two\n");
        // Nothing can be opened: what it says, it is not that all is well.
        let status = agent.status(name);
        assert_ne!(status["state"], "fresh", "{status}");
    }
    descriptors(world.pid(), before.current);
    for name in names {
        assert_eq!(agent.state(name), "stale", "{name}");
    }
    assert_eq!(agent.taken(), names);
    // And watched as before.
    for name in names {
        agent.read(name);
        assert_eq!(agent.state(name), "fresh", "{name}");
        world.file(name, "three\n");
        assert_eq!(agent.state(name), "stale", "{name}");
    }
    world.healthy();
}

/// Creates a file so deep that its path below the workspace has this number of
/// bytes.
fn deep(world: &World, bytes: usize) -> (OwnedFd, String, String) {
    const PART: usize = 200;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut directory = open(world.workspace(), flags, Mode::empty()).unwrap();
    let mut path = String::new();
    while path.len() + PART + 10 < bytes {
        let part = "d".repeat(PART);
        mkdirat(&directory, &part, Mode::RWXU).unwrap();
        directory = openat(&directory, &part, flags, Mode::empty()).unwrap();
        path = path + &part + "/";
    }
    let name = "f".repeat((bytes - path.len()).min(250));
    (directory, path + &name, name)
}

/// The paths are within the protocol's limit, and beyond the system's limit
/// once the workspace's path is prepended.
#[test]
fn loss4_a_path_too_long_to_be_watched_is_read_when_asked_about() {
    for bytes in [3_000, 3_900, 4_030, 4_060, 4_090] {
        let mut world = World::asleep();
        world.nest(&"w".repeat(120));
        world.start();
        let (directory, path, name) = deep(&world, bytes);
        let save = |content: &str| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
            let file = openat(&directory, &name, flags, Mode::RUSR | Mode::WUSR).unwrap();
            File::from(file).write_all(content.as_bytes()).unwrap();
        };
        let mut agent = world.session("s");
        save("one\n");
        agent.ok("file/read", json!({"path": path}));
        assert_eq!(agent.state(&path), "fresh", "{bytes}");
        for content in ["two\n", "three\n"] {
            save(content);
            assert_eq!(agent.state(&path), "stale", "{bytes}");
            let edit = json!({"files": [{"path": path}]});
            agent.refused("edit/begin", edit, "stale");
            assert_eq!(agent.taken(), [path.as_str()], "{bytes}");
            agent.ok("file/read", json!({"path": path}));
        }
        let degraded = agent.client.ok("status", json!({}))["degraded"].clone();
        let watched = world.workspace().as_os_str().len() + 1 + bytes < 4_096;
        let said = !degraded.as_array().unwrap().is_empty();
        assert!(watched || said, "{bytes}: {degraded}");
        world.healthy();
    }
}

/// The system reports the writes of a file that was made without a name by no
/// name of it, as long as its maker has it open.
#[test]
fn loss2_a_file_that_its_maker_has_open_by_no_name_is_read_when_asked_about() {
    let mut world = World::new();
    world.file("a.txt", "old\n");
    let mut agent = world.session("s");
    agent.read("a.txt");
    fs::remove_file(world.path("a.txt")).unwrap();
    let flags = OFlags::RDWR | OFlags::TMPFILE;
    let mut made = File::from(open(world.workspace(), flags, Mode::RWXU).unwrap());
    made.write_all(b"first\n").unwrap();
    let own = format!("/proc/self/fd/{}", made.as_raw_fd());
    linkat(CWD, own, CWD, world.path("a.txt"), AtFlags::SYMLINK_FOLLOW).unwrap();
    assert_eq!(agent.state("a.txt"), "stale");
    agent.read("a.txt");
    assert_eq!(agent.state("a.txt"), "fresh");
    for line in [&b"second\n"[..], b"third\n"] {
        made.write_all(line).unwrap();
        assert_eq!(agent.state("a.txt"), "stale");
        agent.read("a.txt");
    }
    made.write_all(b"last\n").unwrap();
    drop(made);
    assert_eq!(agent.state("a.txt"), "stale");
    // A guarded write does not go over what was written so.
    let write = json!({"session": "s", "path": "a.txt", "text": "agent\n"});
    world.client().refused("file/write", write, "stale");
    world.healthy();
}
