//! LOSS-2 and ATTR-13 where file systems are mounted, unmounted, and changed
//! behind a mount. None of that makes an event on the files.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use touchmark_tests::mounts::{self, Mirror};
use touchmark_tests::{Session, World, authors, paths, text, user};

fn tmpfs(at: &Path) {
    fs::create_dir_all(at).unwrap();
    mounts::mount("tmpfs", "a-test", "size=1m", at);
}

fn bind(source: &Path, at: &Path) {
    mounts::mount("none", source.to_str().unwrap(), "bind", at);
}

/// Checks that exactly these changes are listed, and that their author is
/// unknown.
fn unknown(agent: &mut Session, expected: &[&str]) {
    let changes = agent.take();
    assert_eq!(paths(&changes), expected, "{changes:?}");
    for change in &changes {
        assert_eq!(authors(change), ["unknown"], "{change}");
        assert_eq!(change["evidence"], json!(["gap"]), "{change}");
    }
}

/// Checks that a path is watched again: a change is reported without a query,
/// and has an author.
fn watched(world: &World, agent: &mut Session, path: &str) {
    agent.take();
    agent.read(path);
    let mut subscriber = world.client();
    subscriber.ok("subscribe", json!({"kinds": ["version"]}));
    user::write(&world.path(path), "watched\n");
    let told = subscriber.event();
    assert_eq!(told["version"]["path"], path, "{told}");
    let changes = agent.take();
    assert_eq!(paths(&changes), [path]);
    assert_eq!(authors(&changes[0]), ["user"]);
}

/// Checks that `at` is listed as degraded, with this cause.
fn degraded(world: &World, at: Option<&str>, because: &str) {
    let status = world.client().ok("status", json!({}));
    let list = status["degraded"].as_array().unwrap().clone();
    assert!(
        list.iter()
            .any(|place| place["path"].as_str() == at && text(place, "cause").contains(because)),
        "{list:?}"
    );
    let said = world.run(&["doctor", "--json"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains(because), "{said}");
}

#[test]
fn attr13_a_mount_inside_the_workspace_goes_and_comes_back() {
    mounts::apart(|| {
        let mut world = World::new();
        let place = world.path("m");
        tmpfs(&place);
        let names = [
            "m/changed.txt",
            "m/gone.txt",
            "m/same.txt",
            "m/sub/deep.txt",
        ];
        for name in names {
            world.file(name, "one\n");
        }
        world.file("beside.txt", "one\n");
        let mut agent = world.session("s");
        agent.read_all(&names.map(str::to_owned));
        agent.read("beside.txt");
        mounts::unmount(&place);
        for name in names {
            assert_eq!(agent.state(name), "deleted", "{name}");
        }
        unknown(&mut agent, &names);
        // It comes back with other content.
        tmpfs(&place);
        world.file("m/changed.txt", "two\n");
        world.file("m/same.txt", "one\n");
        world.file("m/sub/deep.txt", "two\n");
        assert_eq!(agent.state("m/changed.txt"), "stale");
        assert_eq!(agent.state("m/gone.txt"), "deleted");
        assert_eq!(agent.state("m/same.txt"), "fresh");
        assert_eq!(agent.state("m/sub/deep.txt"), "stale");
        assert_eq!(agent.state("beside.txt"), "fresh");
        agent.take();
        for name in ["m/changed.txt", "m/sub/deep.txt", "beside.txt"] {
            watched(&world, &mut agent, name);
        }
        // Away and back at once, as far as the daemon can tell.
        mounts::unmount(&place);
        tmpfs(&place);
        world.file("m/same.txt", "three\n");
        assert_eq!(agent.state("m/same.txt"), "stale");
        assert_eq!(agent.state("m/changed.txt"), "deleted");
        watched(&world, &mut agent, "m/same.txt");
        world.healthy();
    });
}

/// Files hidden by a mount make no events: not even the directory's watch ends.
#[test]
fn attr13_a_mount_hides_what_was_read() {
    mounts::apart(|| {
        let mut world = World::new();
        world.file("m/a.txt", "one\n");
        world.file("m/b.txt", "one\n");
        let mut agent = world.session("s");
        agent.read("m/a.txt");
        agent.read("m/b.txt");
        let other = world.outside().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("a.txt"), "two\n").unwrap();
        bind(&other, &world.path("m"));
        assert_eq!(agent.state("m/a.txt"), "stale");
        assert_eq!(agent.state("m/b.txt"), "deleted");
        unknown(&mut agent, &["m/a.txt", "m/b.txt"]);
        // By its other name.
        agent.read("m/a.txt");
        user::write(&other.join("a.txt"), "three\n");
        assert_eq!(agent.state("m/a.txt"), "stale");
        watched(&world, &mut agent, "m/a.txt");
        // Taken away although it is in use: no event at all.
        let _used = fs::File::open(world.path("m/a.txt")).unwrap();
        mounts::detach(&world.path("m"));
        assert_eq!(agent.state("m/a.txt"), "stale");
        assert_eq!(agent.state("m/b.txt"), "fresh");
        watched(&world, &mut agent, "m/b.txt");
        world.healthy();
    });
}

/// A single file is mounted, as containers do.
#[test]
fn attr13_a_file_mounted_by_itself() {
    mounts::apart(|| {
        let mut world = World::new();
        world.file("conf/a.txt", "one\n");
        let other = world.outside().join("other.txt");
        fs::write(&other, "one\n").unwrap();
        let mut agent = world.session("s");
        agent.read("conf/a.txt");
        bind(&other, &world.path("conf/a.txt"));
        assert_eq!(agent.state("conf/a.txt"), "fresh");
        // Written by the name that is not watched.
        user::write(&other, "two\n");
        assert_eq!(agent.state("conf/a.txt"), "stale");
        assert_eq!(agent.taken(), ["conf/a.txt"]);
        watched(&world, &mut agent, "conf/a.txt");
        mounts::unmount(&world.path("conf/a.txt"));
        agent.sync();
        assert_eq!(agent.status("conf/a.txt")["state"], "stale");
        assert_eq!(agent.take().len(), 1);
        world.healthy();
    });
}

/// LIFE-1: the daemon exits with its workspace, and the next one compares.
#[test]
fn life1_the_workspace_is_unmounted_and_mounted_again() {
    mounts::apart(|| {
        let mut world = World::asleep();
        let place = world.workspace().to_owned();
        tmpfs(&place);
        world.start();
        world.file("a.txt", "one\n");
        world.file("same.txt", "one\n");
        let mut agent = world.session("s");
        agent.read("a.txt");
        agent.read("same.txt");
        // Nothing of the daemon's keeps it from being unmounted.
        mounts::unmount(&place);
        assert_eq!(world.wait_end(), Some(0), "{}", world.log());
        assert!(!world.socket().exists());
        tmpfs(&place);
        world.file("a.txt", "two\n");
        world.file("same.txt", "one\n");
        world.start();
        let mut agent = world.session("s");
        assert_eq!(agent.state("a.txt"), "stale");
        assert_eq!(agent.state("same.txt"), "fresh");
        unknown(&mut agent, &["a.txt"]);
        watched(&world, &mut agent, "a.txt");
        world.healthy();
    });
}

/// Another file system is mounted over the workspace. Queries in that moment
/// are answered by the daemon's exit, not from the hidden files.
#[test]
fn life1_the_workspace_is_hidden_by_a_mount() {
    mounts::apart(|| {
        let mut world = World::new();
        world.file("a.txt", "one\n");
        let mut agent = world.session("s");
        agent.read("a.txt");
        let place = world.workspace().to_owned();
        tmpfs(&place);
        fresh_is_not_said(&mut agent, "a.txt");
        assert_eq!(world.wait_end(), Some(0), "{}", world.log());
        world.file("a.txt", "two\n");
        world.start();
        let mut agent = world.session("s");
        unknown(&mut agent, &["a.txt"]);
        // There is no request, and a process uses what is unmounted.
        let _used = fs::File::open(world.path("a.txt")).unwrap();
        mounts::detach(&place);
        assert_eq!(world.wait_end(), Some(0), "{}", world.log());
        world.start();
        let mut agent = world.session("s");
        assert_eq!(agent.state("a.txt"), "fresh");
        world.healthy();
    });
}

/// Checks that a state is not answered as fresh. The daemon may have exited, or
/// answer that it is shutting down.
fn fresh_is_not_said(agent: &mut Session, path: &str) {
    let asked = json!({"session": "s", "paths": [path]});
    let answer = agent
        .client
        .try_send("file/status", &asked)
        .and_then(|id| agent.client.try_answer(id));
    match answer {
        Ok(Ok(files)) => panic!("answered: {files}"),
        Ok(Err(error)) => assert_eq!(error.name, "shuttingDown", "{error}"),
        Err(_gone) => {}
    }
}

#[test]
fn loss2_an_overlay_whose_lower_layer_changes() {
    mounts::apart(|| {
        let mut world = World::asleep();
        let place = world.workspace().to_owned();
        // Layers of a file system of their own: not every one can be a layer.
        let layers = world.outside().join("layers");
        tmpfs(&layers);
        for name in ["lower", "upper", "work"] {
            fs::create_dir(layers.join(name)).unwrap();
        }
        fs::create_dir(layers.join("lower/d")).unwrap();
        for name in ["a.txt", "d/b.txt", "d/c.txt", "agent.txt"] {
            fs::write(layers.join("lower").join(name), "one\n").unwrap();
        }
        let options = ["lower", "upper", "work"]
            .map(|name| format!("{name}dir={}", layers.join(name).display()))
            .join(",");
        mounts::mount("overlay", "overlay", &options, &place);
        world.start();
        degraded(&world, None, "overlay");
        behind_the_mount(&mut world, &layers.join("lower"));
    });
}

#[test]
fn loss2_fuse_whose_source_changes() {
    mounts::apart(|| {
        let mut world = World::asleep();
        let place = world.workspace().to_owned();
        let source = world.outside().join("source");
        fs::create_dir_all(source.join("d")).unwrap();
        for name in ["a.txt", "d/b.txt", "d/c.txt", "agent.txt"] {
            fs::write(source.join(name), "one\n").unwrap();
        }
        let Some(_mirror) = Mirror::new(&source, &place) else {
            return;
        };
        world.start();
        degraded(&world, None, "FUSE");
        behind_the_mount(&mut world, &source);
    });
}

/// Only a part of the workspace makes no events.
#[test]
fn loss2_fuse_inside_the_workspace() {
    mounts::apart(|| {
        let mut world = World::new();
        let source = world.outside().join("source");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("a.txt"), "one\n").unwrap();
        world.file("b.txt", "one\n");
        fs::create_dir(world.path("m")).unwrap();
        let Some(mirror) = Mirror::new(&source, &world.path("m")) else {
            return;
        };
        let mut agent = world.session("s");
        agent.read("m/a.txt");
        agent.read("b.txt");
        degraded(&world, Some("m"), "FUSE");
        user::write(&source.join("a.txt"), "two\n");
        assert_eq!(agent.state("m/a.txt"), "stale");
        unknown(&mut agent, &["m/a.txt"]);
        watched(&world, &mut agent, "b.txt");
        // Its server is killed: what is there cannot be read, and is not fresh.
        agent.read("m/a.txt");
        drop(mirror);
        assert_ne!(agent.state("m/a.txt"), "fresh");
        assert_eq!(agent.state("b.txt"), "stale");
        mounts::detach(&world.path("m"));
        assert_eq!(agent.state("m/a.txt"), "deleted");
        let status = agent.client.ok("status", json!({}));
        assert_eq!(status["degraded"], json!([]), "{status}");
        world.healthy();
    });
}

/// A change of one file.
type Change = fn(&Path);

/// Makes changes of four kinds in `source`, which is mounted in the workspace.
fn behind_the_mount(world: &mut World, source: &Path) {
    let mut agent = world.session("s");
    for name in ["a.txt", "d/b.txt", "d/c.txt", "agent.txt"] {
        agent.read(name);
        assert_eq!(agent.state(name), "fresh");
    }
    let mut changed = Vec::new();
    let changes: [(&str, Change); 3] = [
        ("a.txt", |path| user::write(path, "two\n")),
        ("d/b.txt", |path| user::replace(path, "two\n")),
        ("d/c.txt", |path| fs::remove_file(path).unwrap()),
    ];
    for (name, change) in changes {
        change(&source.join(name));
        // An overlay goes on to show some files that are no longer there.
        let expected = match fs::read(world.path(name)) {
            Ok(shown) if shown == b"one\n" => "fresh",
            Ok(_) => "stale",
            Err(_) => "deleted",
        };
        assert_eq!(agent.state(name), expected, "{name}");
        if expected != "fresh" {
            changed.push(name);
        }
    }
    assert!(changed.contains(&"a.txt"), "the mount shows no change");
    unknown(&mut agent, &changed);
    // ATTR-13: what is declared is the session's.
    agent.mark("agent.txt", Some("agent\n"));
    user::write(&source.join("agent.txt"), "agent\n");
    assert_eq!(agent.state("agent.txt"), "fresh");
    assert_eq!(agent.story("agent.txt"), ["agent:s declared"]);
    // Through the mount as well.
    agent.read("a.txt");
    user::write(&world.path("a.txt"), "three\n");
    assert_eq!(agent.state("a.txt"), "stale");
    assert_eq!(agent.taken(), ["a.txt"]);
    // The next daemon compares, too.
    agent.read("d/b.txt");
    world.kill();
    world.start();
    let mut agent = world.session("s");
    assert_eq!(agent.state("d/b.txt"), "fresh");
    assert_eq!(agent.take(), Vec::<Value>::new());
    world.healthy();
}
