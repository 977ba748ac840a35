//! SEC-2 and odd names: no path leaves the workspace, every name works.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use touchmark_tests::{World, sha256, text, user};

#[test]
fn sec2_paths_that_lead_out_are_refused() {
    let world = World::new();
    let mut agent = world.session("s");
    let secret = world.outside().join("secret.txt");
    fs::write(&secret, "secret\n").unwrap();
    symlink(&secret, world.path("link.txt")).unwrap();
    symlink("../home/secret.txt", world.path("relative.txt")).unwrap();
    symlink(world.outside(), world.path("dir")).unwrap();
    fs::create_dir(world.path("sub")).unwrap();
    symlink("../link.txt", world.path("sub/chain.txt")).unwrap();
    let absolute = secret.to_str().unwrap();
    for path in [
        "../home/secret.txt",
        "a/../../home/secret.txt",
        "sub/../../home/secret.txt",
        "..",
        absolute,
        "/etc/passwd",
        "link.txt",
        "relative.txt",
        "dir/secret.txt",
        "sub/chain.txt",
    ] {
        for method in ["file/read", "file/readText"] {
            let error = agent.refused(method, json!({"path": path}), "outsideWorkspace");
            assert_eq!(error.code, -32014, "{error}");
            assert!(
                !error.data.to_string().contains(&sha256("secret\n")),
                "{}",
                error.data
            );
        }
    }
    for path in ["../x", "/etc/passwd"] {
        agent.refused("file/mention", json!({"path": path}), "outsideWorkspace");
        agent.refused("edit/mark", json!({"path": path}), "outsideWorkspace");
        agent.refused(
            "edit/begin",
            json!({"files": [{"path": path}]}),
            "outsideWorkspace",
        );
        agent
            .client
            .refused("file/history", json!({"path": path}), "outsideWorkspace");
    }
    // A link that leads out and back is inside; the workspace's own absolute
    // path is, too.
    world.file("a.txt", "one\n");
    let own = world.path("a.txt");
    let read = agent.ok("file/read", json!({"path": own.to_str().unwrap()}));
    assert_eq!(read["hash"], sha256("one\n"));
}

/// Says that it is over when it is dropped.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The names behind a path change while it is asked for: never is a byte
/// from outside told.
#[test]
fn sec2_symlinks_swapped_during_requests() {
    let mut world = World::new();
    let secret = world.outside().join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("a.txt"), "secret\n").unwrap();
    world.file("real/a.txt", "inside\n");
    symlink("real", world.path("d")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Also when an assertion below fails.
        let _end = End(&done);
        scope.spawn(|| {
            let (inside, outside) = (world.path("to-in"), world.path("to-out"));
            while !done.load(Ordering::Relaxed) {
                let _ = symlink("real", &inside);
                let _ = symlink(&secret, &outside);
                let _ = fs::rename(&outside, world.path("d"));
                let _ = fs::rename(&inside, world.path("d"));
                // Often within every request; without a pause the watcher's
                // backlog, not the resolution, would be what is tested.
                user::pause(1);
            }
        });
        let mut agent = world.session("s");
        for _ in 0..500 {
            for method in ["file/readText", "file/status"] {
                let params = match method {
                    "file/status" => json!({"paths": ["d/a.txt"], "verify": true}),
                    _ => json!({"path": "d/a.txt", "force": true}),
                };
                let answer = agent.call(method, params);
                let told = match &answer {
                    Ok(result) => result.to_string(),
                    Err(error) => format!("{error} {}", error.data),
                };
                assert!(!told.contains("secret\\n"), "{told}");
                assert!(!told.contains(&sha256("secret\n")), "{told}");
            }
        }
    });
    world.healthy();
}

#[test]
fn odd_names_work_like_others() {
    let mut world = World::new();
    let mut agent = world.session("s");
    let long = "l".repeat(255);
    let deep = format!("{}/a", ["d"; 300].join("/"));
    for name in [
        " ",
        "a b.txt",
        "tab\t",
        "new\nline.txt",
        "\u{1b}[31mred",
        "quote\"'\\",
        "-rf",
        "~",
        "a~",
        "%2e%2e",
        "...",
        "ü\u{308}mlaut/日本.txt",
        "emoji 🦀",
        ".hidden/.x",
        "CON",
        long.as_str(),
        deep.as_str(),
    ] {
        world.file(name, "one\n");
        let read = agent.read(name);
        assert_eq!(read["hash"], sha256("one\n"), "{name:?}");
        user::write(&world.path(name), "two\n");
        assert_eq!(agent.taken(), [name], "{name:?}");
        agent.read(name);
        agent.mark(name, Some("three\n"));
        user::replace_beside(&world.path(name), &world.path("tmp"), "three\n");
        assert_eq!(agent.state(name), "fresh", "{name:?}");
    }
    world.healthy();
}

#[test]
fn names_that_are_not_utf8_travel_as_uri() {
    let world = World::new();
    let mut agent = world.session("s");
    let name = OsStr::from_bytes(b"caf\xe9 \xff.txt");
    fs::write(world.path(name), "one\n").unwrap();
    let uri = format!("file://{}/caf%E9%20%FF.txt", world.workspace().display());
    let read = agent.ok("file/read", json!({"uri": uri}));
    assert_eq!(read["hash"], sha256("one\n"), "{read}");
    fs::write(world.path(name), "two\n").unwrap();
    let changes = agent.take();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0]["uri"], uri, "{changes:?}");
    assert_eq!(
        changes[0]["path"], "caf\u{fffd} \u{fffd}.txt",
        "{changes:?}"
    );
    // A name that is UTF-8 may come as a URI, too, and has none in answers.
    world.file("a b.txt", "one\n");
    let uri = format!("file://{}/a%20b.txt", world.workspace().display());
    agent.ok("file/read", json!({"uri": uri}));
    let status = agent.ok("file/status", json!({"paths": ["a b.txt"]}));
    assert_eq!(status["files"][0]["state"], "fresh", "{status}");
    assert!(status["files"][0]["uri"].is_null(), "{status}");
    agent.refused(
        "file/read",
        json!({"uri": "file:///etc/passwd"}),
        "outsideWorkspace",
    );
    agent.refused("file/read", json!({"uri": "http://x/a"}), "invalidParams");
    agent.refused("file/read", json!({"path": "a\0b"}), "invalidParams");
}

/// SEC-4: what is told to people and models has no control characters.
#[test]
fn sec4_messages_escape_names() {
    let world = World::new();
    let mut agent = world.session("s");
    let name = "evil\n\u{1b}[2Jname.txt";
    world.file(name, "one\n");
    agent.read(name);
    let read = agent.ok("file/read", json!({"path": name}));
    let message = text(&read, "message");
    assert!(!message.chars().any(char::is_control), "{message:?}");
    let error = agent.refused("file/read", json!({"path": "none\n\u{1b}[2J"}), "notFound");
    assert!(
        !error.message.chars().any(char::is_control),
        "{:?}",
        error.message
    );
    let long = "x".repeat(200);
    let error = agent
        .client
        .call(&format!("\u{1b}{long}{long}"), Value::Null)
        .unwrap_err();
    assert!(
        !error.message.chars().any(char::is_control),
        "{:?}",
        error.message
    );
    assert!(error.message.len() < 300, "{}", error.message);
}
