//! FILE-1 to FILE-4, LIM-6: names of files with several names change places,
//! and links in linked directories change. Every answer comes, and is what the
//! disk holds.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use touchmark_tests::stop::SetsOnDrop;
use touchmark_tests::{Session, World, sha256, text, user};

/// The number of requests that are sent while names change places.
const REQUESTS: usize = 12;

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

/// Exchanges two names by three renames.
fn by_turns(one: &Path, other: &Path) {
    let aside = one.with_extension("aside");
    fs::rename(one, &aside).unwrap();
    fs::rename(other, one).unwrap();
    fs::rename(&aside, other).unwrap();
}

/// Creates a symlink, and renames it to its name, as git does.
fn point(world: &World, name: &str, to: &str) {
    symlink(to, world.path("new-link")).unwrap();
    fs::rename(world.path("new-link"), world.path(name)).unwrap();
}

/// Compares the answers about a name with the disk, with `verify` as well.
fn is_as_on_disk(world: &World, agent: &mut Session, name: &str, case: &str) {
    let there = fs::read(world.path(name)).ok();
    for verify in [false, true] {
        let params = json!({"paths": [name], "verify": verify});
        let status = agent.ok("file/status", params)["files"][0].clone();
        let hash = json!(there.as_ref().map(sha256));
        assert_eq!(status["hash"], hash, "{case}: {status}");
        assert_ne!(status["state"], "fresh", "{case}: {status}");
    }
}

/// Two files with further links in a directory that is not watched.
fn linked_elsewhere(world: &World) {
    world.file("d1/a", "one\n");
    world.file("d2/a", "two\n");
    let out = world.outside();
    fs::hard_link(world.path("d1/a"), out.join("l1")).unwrap();
    fs::hard_link(world.path("d2/a"), out.join("l2")).unwrap();
}

#[test]
fn file2_two_files_with_several_links_change_places() {
    let ways = [exchange, by_turns];
    for (names, way) in [
        ("files", 0),
        ("files", 1),
        ("directories", 0),
        ("directories", 1),
    ] {
        let world = World::new();
        linked_elsewhere(&world);
        let (mut one, mut other) = (world.session("s"), world.session("t"));
        one.read("d2/a");
        other.read("d1/a");
        let paths = match names {
            "files" => ["d1/a", "d2/a"],
            _ => ["d1", "d2"],
        };
        ways[way](&world.path(paths[0]), &world.path(paths[1]));
        let case = format!("{names}, way {way}");
        is_as_on_disk(&world, &mut one, "d2/a", &case);
        is_as_on_disk(&world, &mut other, "d1/a", &case);
    }
}

/// LIM-6: names that never stand still keep no request waiting, not one about
/// them either.
#[test]
fn lim6_names_that_change_places_all_the_time_are_answered() {
    let world = World::new();
    linked_elsewhere(&world);
    symlink("d1", world.path("l")).unwrap();
    let mut agent = world.session("s");
    for name in ["d1/a", "d2/a", "l/a"] {
        agent.read(name);
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = SetsOnDrop(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                exchange(&world.path("d1/a"), &world.path("d2/a"));
                point(&world, "l", "d2");
                point(&world, "l", "d1");
            }
        });
        for request in 0..REQUESTS {
            let params = json!({"paths": ["d1/a", "d2/a", "l/a"], "verify": request % 2 == 0});
            let rows = agent.ok("file/status", params);
            assert_eq!(rows["files"].as_array().map(Vec::len), Some(3), "{rows}");
        }
    });
    for name in ["d1/a", "d2/a", "l/a"] {
        let hash = sha256(fs::read(world.path(name)).unwrap());
        assert_eq!(text(&agent.status(name), "hash"), hash, "{name}");
    }
}

/// FILE-4: `d` is also reached by the linked directory `l`. One event in it
/// concerns two names of a file, which may both leave it.
#[test]
fn file4_a_link_in_a_linked_directory_changes() {
    let orders: [&[&str]; 4] = [
        &["l/c"],
        &["d/c", "l/c"],
        &["d/e/c", "l/c"],
        &["d/c", "d/e/c", "l/c"],
    ];
    for how in ["replaced", "retargeted", "removed", "removed by l"] {
        for order in orders {
            let world = World::new();
            world.file("d/e/c", "one\n");
            world.file("d/f", "two\n");
            symlink("e/c", world.path("d/c")).unwrap();
            symlink("d", world.path("l")).unwrap();
            let mut agent = world.session("s");
            for name in order {
                agent.read(name);
            }
            match how {
                "replaced" => user::replace(&world.path("d/c"), "two\n"),
                "retargeted" => point(&world, "d/c", "f"),
                "removed" => fs::remove_file(world.path("d/c")).unwrap(),
                _ => fs::remove_file(world.path("l/c")).unwrap(),
            }
            is_as_on_disk(&world, &mut agent, "l/c", &format!("{how}, {order:?}"));
        }
    }
}

#[test]
fn file1_a_renamed_file_that_was_read_gets_another_link() {
    let world = World::new();
    world.file("d/a", "one\n");
    world.file("u/x", "x\n");
    let mut agent = world.session("s");
    agent.read("d/a");
    fs::rename(world.path("d/a"), world.path("b")).unwrap();
    agent.read("b");
    fs::hard_link(world.path("b"), world.path("u/l")).unwrap();
    let rows = agent.ok("file/status", json!({"paths": ["b", "u/l"]}));
    for row in rows["files"].as_array().unwrap() {
        assert_eq!(row["state"], "fresh", "{rows}");
    }
}

/// SEEN-2: what the session read last is on disk. Its commit, which comes
/// afterwards, names an older write of its own.
#[test]
fn seen2_what_was_read_between_a_write_and_its_commit_was_seen_last() {
    for reported in [false, true] {
        let world = World::new();
        world.file("f", "0\n");
        let mut agent = world.session("s");
        agent.read("f");
        let edit = agent.begin("f", Some("agent\n")).unwrap();
        user::write(&world.path("f"), "agent\n");
        user::write(&world.path("f"), "user\n");
        if reported {
            let saved = json!({"path": "f", "hash": sha256("user\n")});
            agent.client.ok("editor/didSave", saved);
        }
        agent.read("f");
        let done = agent.commit(&edit, "f", Some("agent\n"));
        assert_eq!(done["outcome"], "overwritten", "{reported}: {done}");
        assert_eq!(agent.state("f"), "fresh", "{reported}");
    }
}
