//! DUR-3: an earlier touchmark's store is opened by a whole daemon, and nothing
//! that was answered from it is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use touchmark_tests::{World, paths, text};

const EPOCH: &str = "1795386951600";

/// The final contents of the files in the golden store's workspace.
const FILES: [(&str, &str); 6] = [
    ("a.txt", "a.txt one\na.txt by the user\n"),
    ("b.txt", "b.txt one\nb.txt by s\n"),
    ("c.txt", "c.txt by t\n"),
    ("d/e.txt", "d/e.txt one\nand the user\n"),
    ("f.txt", "f.txt one\n"),
    ("new.txt", "old.txt one\n"),
];

/// Returns the directory of the daemon's state.
fn own(world: &World) -> PathBuf {
    let key = world.socket().file_stem().unwrap();
    world.state().join("touchmark").join(key)
}

/// Returns a workspace with an earlier touchmark's store.
fn world(store: &str) -> World {
    let mut world = World::asleep();
    // The golden ones grow older than any default keeps things.
    world.configure("[versions]\nkeep = \"36500 days\"\n[sessions]\nkeep = \"36500 days\"\n");
    for (name, content) in FILES {
        world.file(name, content);
    }
    let state = own(&world);
    fs::create_dir_all(&state).unwrap();
    for place in [state.parent().unwrap(), &state] {
        fs::set_permissions(place, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(store);
    for name in ["store.db", "store.last"] {
        fs::copy(golden.join(name), state.join(name)).unwrap();
        fs::set_permissions(state.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    world.start();
    world
}

/// Returns `kind author evidence` of each version, the newest first.
fn history(world: &World, path: &str) -> Vec<String> {
    let answer = world.client().ok("file/history", json!({"path": path}));
    let versions = answer["versions"].as_array().unwrap().iter();
    versions
        .map(|version| {
            let author = &version["author"];
            let who = author["session"].as_str().or(author["kind"].as_str());
            let words = [&version["kind"], &version["evidence"]].map(|word| word.as_str().unwrap());
            format!("{} {} {}", words[0], who.unwrap(), words[1])
        })
        .collect()
}

fn knows_everything(world: &World) {
    let mut client = world.client();
    let status = client.ok("status", json!({}));
    assert_eq!(status["degraded"], json!([]));
    assert!(text(&client.ok("sync", json!({})), "clock").starts_with(EPOCH));

    for (path, expected) in [
        (
            "a.txt",
            &["modified user unmarked", "created unknown gap"][..],
        ),
        ("b.txt", &["modified s declared", "created unknown gap"]),
        ("c.txt", &["modified t marked", "created unknown gap"]),
        (
            "d/e.txt",
            &[
                "modified user unmarked",
                "modified t command",
                "created unknown gap",
            ],
        ),
        (
            "gone.txt",
            &["deleted user unmarked", "created unknown gap"],
        ),
        ("old.txt", &["deleted user unmarked", "created unknown gap"]),
        ("new.txt", &["renamed user unmarked"]),
        ("f.txt", &["created unknown gap"]),
    ] {
        assert_eq!(history(world, path), expected, "{path}");
    }

    let sessions = client.ok("session/list", json!({}))["sessions"].clone();
    let find = |name: &str| {
        let mut sessions = sessions.as_array().unwrap().iter();
        let found = sessions.find(|session| session["session"] == name);
        found
            .unwrap_or_else(|| panic!("{name} is not in {sessions:?}"))
            .clone()
    };
    assert_eq!(
        find("s")["agent"],
        json!({"name": "golden", "version": "1"})
    );
    assert_eq!(find("t")["parent"], "s");
    assert_eq!(
        (&find("s")["reads"], &find("t")["reads"]),
        (&json!(6), &json!(4))
    );

    let mut s = world.session("s");
    for (path, state) in [
        ("a.txt", "stale"),
        ("b.txt", "fresh"),
        ("d/e.txt", "stale"),
        ("gone.txt", "deleted"),
        ("new.txt", "fresh"),
    ] {
        assert_eq!(s.state(path), state, "s, {path}");
    }
    assert_eq!(world.session("t").state("b.txt"), "stale");
    let untold = s.ok("modified/list", json!({}));
    let untold = paths(untold["changes"].as_array().unwrap());
    assert_eq!(untold, ["a.txt", "d/e.txt", "gone.txt", "old.txt"]);
    // A clock that was given out long ago, and a checkpoint.
    let since = json!({"since": format!("{EPOCH}:30")});
    let since = paths(s.ok("modified/list", since)["changes"].as_array().unwrap());
    assert!(since.contains(&"d/e.txt".to_owned()), "{since:?}");
    let listed = s.ok("checkpoint/list", json!({}));
    assert_eq!(listed["checkpoints"][0]["label"], "before the rename");
    let detected = s.ok("checkpoint/detect", json!({"checkpoint": "k1"}));
    let detected = paths(detected["files"].as_array().unwrap());
    assert_eq!(
        detected,
        ["c.txt", "d/e.txt", "gone.txt", "new.txt", "old.txt"]
    );
    let second = world.session("t").ok("checkpoint/list", json!({}));
    assert_eq!(second["checkpoints"][0]["label"], "second");

    assert_eq!(s.ok("task/list", json!({}))["tasks"][0]["command"], "sleep");
    assert_eq!(
        s.ok("model/list", json!({}))["entries"][0]["modelId"],
        "m-1"
    );
}

#[test]
fn dur3_a_store_of_schema_9() {
    let mut world = world("store-v9");
    knows_everything(&world);
    let warning = world.session("s").ok("warning/take", json!({}));
    assert_eq!(warning["warning"]["note"], "look again");

    // It goes on, and what it writes from now on is read again.
    let mut s = world.session("s");
    s.read("a.txt");
    assert_eq!(s.state("a.txt"), "fresh");
    world.kill();
    world.start();
    assert_eq!(world.session("s").state("a.txt"), "fresh");
    world.stop();
    world.start();
    assert_eq!(world.session("s").state("a.txt"), "fresh");
    assert_eq!(history(&world, "b.txt").len(), 2);
    world.healthy();
}
