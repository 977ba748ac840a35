//! SEC-7: nothing that a repository contains ends, blocks or bloats the daemon.
//! Each repository here is damaged in one way. The damage that a parser of ours
//! would meet is generated a thousandfold in `daemon/src/git/index/tests.rs`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use touchmark_tests::worktrees::{beside, git, lines, replace};
use touchmark_tests::{World, user};

/// The most memory of a daemon, in KiB.
const MOST: u64 = 200 << 10;

/// Replaces a file by a FIFO.
fn fifo(path: &Path) {
    let _none = fs::remove_file(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

/// Replaces a file by a link to a file without end.
fn endless(path: &Path) {
    let _none = fs::remove_file(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink("/dev/zero", path).unwrap();
}

/// Writes an index without entries, with one extension.
fn index(path: &Path, name: &[u8; 4], extension: &[u8]) {
    let size = u32::try_from(extension.len()).unwrap().to_be_bytes();
    let head = [b"DIRC", &2_u32.to_be_bytes()[..], &0_u32.to_be_bytes()].concat();
    let bytes = [&head, &name[..], &size, extension, &[0; 20]].concat();
    fs::write(path, bytes).unwrap();
}

/// Replaces the object of a file's content by one that is not what it says:
/// `head`, and then this many mebibytes of zeros, compressed.
fn object(world: &World, head: &str, mebibytes: usize) {
    let id = user::git_command(world.workspace(), &["rev-parse", "HEAD:a.txt"]);
    let id = { id }.output().unwrap().stdout;
    let id = String::from_utf8(id).unwrap();
    let (directory, name) = id.trim().split_at(2);
    let path = world.path(".git/objects").join(directory).join(name);
    let _none = fs::remove_file(&path);
    let script = "import sys, zlib\n\
        c = zlib.compressobj(9)\n\
        out = open(sys.argv[1], 'wb')\n\
        out.write(c.compress(sys.argv[2].encode() + b'\\0'))\n\
        for _ in range(int(sys.argv[3])): out.write(c.compress(bytes(1 << 20)))\n\
        out.write(c.flush())\n";
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(path).arg(head);
    let made = python.arg(mebibytes.to_string()).status().unwrap();
    assert!(made.success());
}

/// Changes bytes in all packs and in what lists their objects.
fn damage_packs(world: &World) {
    git(
        world,
        &["repack", "-q", "-a", "-d", "-f", "--write-bitmap-index"],
    );
    git(world, &["multi-pack-index", "write"]);
    git(world, &["commit-graph", "write", "--reachable"]);
    let objects = world.path(".git/objects");
    for directory in [objects.join("pack"), objects.join("info")] {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            for at in (8..bytes.len()).step_by(11) {
                bytes[at] = 0xff;
            }
            let mut writable = fs::metadata(&path).unwrap().permissions();
            #[allow(clippy::permissions_set_readonly_false)]
            writable.set_readonly(false);
            fs::set_permissions(&path, writable).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
}

type Damage = (&'static str, fn(&World));

const DAMAGES: [Damage; 17] = [
    ("an index with a tree in a tree, many times", |world| {
        index(
            &world.path(".git/index"),
            b"TREE",
            &b"a\0-1 1\n".repeat(200_000),
        );
    }),
    ("an index with offsets beyond its end", |world| {
        let offsets = [1_u32, 0xffff_fff0, 1].map(u32::to_be_bytes).concat();
        index(&world.path(".git/index"), b"IEOT", &offsets);
    }),
    ("an index that blocks", |world| {
        fifo(&world.path(".git/index"))
    }),
    ("an index without end", |world| {
        endless(&world.path(".git/index"))
    }),
    ("alternates that block", |world| {
        fifo(&world.path(".git/objects/info/alternates"));
    }),
    ("alternates without end", |world| {
        endless(&world.path(".git/objects/info/alternates"));
    }),
    ("objects that are their own alternates", |world| {
        let alternates = world.path(".git/objects/info/alternates");
        fs::create_dir_all(alternates.parent().unwrap()).unwrap();
        fs::write(alternates, "../objects\n/\n/dev\n/proc/self\n").unwrap();
    }),
    ("an object of a gibibyte in a mebibyte", |world| {
        object(world, "blob 1073741824", 1_024);
    }),
    ("an object that is longer than it says", |world| {
        object(world, "blob 151", 64)
    }),
    ("an object of an impossible size", |world| {
        object(world, "blob 99999999999999999999", 1);
    }),
    ("damaged packs", damage_packs),
    ("a configuration that blocks", |world| {
        fifo(&world.path(".git/config"))
    }),
    ("a configuration without end", |world| {
        endless(&world.path(".git/config"))
    }),
    ("a HEAD that blocks", |world| fifo(&world.path(".git/HEAD"))),
    ("references that block", |world| {
        git(world, &["pack-refs", "--all"]);
        fifo(&world.path(".git/packed-refs"));
    }),
    ("a reference to itself", |world| {
        let reference = world.path(".git/refs/heads/main");
        fs::write(reference, "ref: refs/heads/main\n").unwrap();
    }),
    ("ignore rules and a log that block", |world| {
        fifo(&world.path(".git/info/exclude"));
        fifo(&world.path(".git/logs/HEAD"));
    }),
];

#[test]
fn sec7_a_repository_neither_ends_nor_blocks_nor_bloats_the_daemon() {
    for (what, damage) in DAMAGES {
        let mut world = World::asleep();
        git(&world, &["init", "-q", "-b", "main"]);
        world.file("a.txt", lines());
        world.file("b.txt", lines());
        git(&world, &["add", "-A"]);
        git(&world, &["commit", "-q", "-m", "first"]);
        let other = beside(&world, "topic");
        replace(&other, "a.txt", "line 5", "LINE 5");
        world.start();
        let mut agent = world.session("s");
        agent.read("b.txt");
        let mut client = world.client();
        let mut n = 0;
        let mut command = |world: &World| {
            n += 1;
            let call = format!("c{n}");
            let begin = json!({
                "session": "s", "label": "make", "scope": "workspace", "callId": call,
            });
            client.ok("command/begin", begin);
            world.file("a.txt", format!("changed {n}\n"));
            world.file(&format!("new{n}.txt"), "new\n");
            let ended = client.ok("command/end", json!({"session": "s", "callId": call}));
            assert_eq!(ended["command"]["versions"], 2, "{what}: {ended}");
        };
        // Git's index proves the content of `a.txt`, and the damage comes
        // before git is asked for it.
        damage(&world);
        command(&world);
        command(&world);
        let mut client = world.client();
        for method in ["review/list", "survival/list", "worktree/list", "status"] {
            client.ok(method, json!({}));
        }
        let peak = crate::crafted::peak(&world);
        assert!(peak < MOST, "{what}: {peak} KiB");
        assert_eq!(world.stop(), Some(0), "{what}");
        assert!(!world.log().contains("panic"), "{what}: {}", world.log());
    }
}

/// Files that went unseen are searched for in the whole workspace.
#[test]
fn sec7_a_search_for_a_moved_file_does_not_open_an_ignore_file_that_blocks() {
    let mut world = World::new();
    world.file("f", lines());
    fifo(&world.path(".gitignore"));
    let mut agent = world.session("s");
    agent.read("f");
    let text = lines().replace("line 5", "of the agent");
    agent.ok("file/write", json!({"path": "f", "text": text}));
    world.stop();
    fs::rename(world.path("f"), world.path("g")).unwrap();
    world.start();
    let mut client = world.client();
    let undone = client.ok("undo", json!({"session": "s", "now": true}));
    assert_eq!(undone["files"][0]["path"], "g", "{undone}");
    assert_eq!(fs::read_to_string(world.path("g")).unwrap(), lines());
}

#[test]
fn sec7_a_link_that_became_a_large_file_does_not_fill_the_memory() {
    let mut world = World::asleep();
    let link = world.path("l");
    world.file("a.txt", lines());
    symlink("a.txt", &link).unwrap();
    world.start();
    let _agent = world.session("s");
    let mut client = world.client();
    let named = json!({"session": "s", "callId": "c"});
    let mut begin = named.clone();
    begin["label"] = json!("ln");
    begin["scope"] = json!("workspace");
    client.ok("command/begin", begin);
    fs::remove_file(&link).unwrap();
    symlink("b.txt", &link).unwrap();
    client.ok("command/end", named);
    fs::remove_file(&link).unwrap();
    let hole = fs::File::create(&link).unwrap();
    hole.set_len(400 << 20).unwrap();
    let asked = json!({"path": "l"});
    for method in ["file/blame", "file/history"] {
        let _too_large = client.call(method, asked.clone());
    }
    let peak = crate::crafted::peak(&world);
    assert!(peak < MOST, "{peak} KiB");
}
