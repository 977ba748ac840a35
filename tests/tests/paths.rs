//! SEC-2 and odd names: no path leaves the workspace, and every name works.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use touchmark_proto::quoting;
use touchmark_tests::stop::SetsOnDrop;
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

/// The files behind a path change while it is requested. No byte from outside
/// is ever returned.
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
        let _end = SetsOnDrop(&done);
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

/// SEC-4: messages to people and models hide no characters.
#[test]
fn sec4_messages_escape_names() {
    let world = World::new();
    let mut agent = world.session("s");
    let name = "evil\n\u{1b}[2J\u{202e}\u{200b}\u{e0041}name.txt";
    world.file(name, "one\n");
    agent.read(name);
    let read = agent.ok("file/read", json!({"path": name}));
    let message = text(&read, "message");
    assert!(!message.chars().any(quoting::is_hidden), "{message:?}");
    let error = agent.refused("file/read", json!({"path": "none\n\u{1b}[2J"}), "notFound");
    assert!(
        !error.message.chars().any(quoting::is_hidden),
        "{:?}",
        error.message
    );
    let long = "x".repeat(200);
    let error = agent
        .client
        .call(&format!("\u{1b}{long}{long}"), Value::Null)
        .unwrap_err();
    assert!(
        !error.message.chars().any(quoting::is_hidden),
        "{:?}",
        error.message
    );
    assert!(error.message.len() < 300, "{}", error.message);
}

/// Paths of every odd kind, on every method that takes one: refused with a hint
/// or answered, and never followed to the outside or waited for. A FIFO is not
/// opened (LOSS-4), since no process writes into it.
#[test]
fn sec2_odd_paths_are_refused_or_answered_on_every_method() {
    let mut world = World::new();
    let secret = world.outside().join("secret.txt");
    fs::write(&secret, "secret\n").unwrap();
    for (name, kind) in [("fifo", 'p'), ("null", 'c'), ("disk", 'b')] {
        let mut make = std::process::Command::new("mknod");
        make.arg(world.path(name)).arg(kind.to_string());
        if kind != 'p' {
            make.args(["1", if kind == 'c' { "5" } else { "0" }]);
        }
        if !make.status().unwrap().success() {
            println!("not tested: {name} cannot be made by this user");
        }
    }
    let _listening = std::os::unix::net::UnixListener::bind(world.path("socket")).unwrap();
    fs::create_dir(world.path("dir")).unwrap();
    world.file("file", "one\n");
    for (name, to) in [
        ("loop", "loop"),
        ("ping", "pong"),
        ("pong", "ping"),
        ("up", ".."),
        ("out", "../home/secret.txt"),
        ("proc", "/proc/self/environ"),
        ("dangling", "nowhere"),
        ("to-fifo", "fifo"),
        ("below-file", "file/x"),
    ] {
        symlink(to, world.path(name)).unwrap();
    }
    let root = world.workspace().to_str().unwrap().to_owned();
    let long_name = "n".repeat(256);
    let long_path = "d/".repeat(2_047) + "ab";
    let longer = "d/".repeat(2_100) + "a";
    let proc = format!("/proc/{}/cwd/file", world.pid());
    let odd = [
        "",
        ".",
        "./",
        "..",
        "../",
        "/",
        "//",
        "../../../../../../etc/passwd",
        "dir/../../home/secret.txt",
        "file/..",
        "file/../../home/secret.txt",
        "file/x",
        "dir",
        "dir/",
        "file/",
        "a\nb",
        "a\r\n",
        "\u{7f}\u{1b}]0;x\u{7}",
        "\u{202e}txt",
        "a\0b",
        "\0",
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/fd/0",
        "/dev/zero",
        "/dev/tty",
        proc.as_str(),
        "~/x",
        "$HOME",
        "file:///etc/passwd",
        "C:\\x",
        long_name.as_str(),
        long_path.as_str(),
        longer.as_str(),
        "fifo",
        "null",
        "disk",
        "socket",
        "loop",
        "ping",
        "up",
        "up/home/secret.txt",
        "out",
        "proc",
        "dangling",
        "to-fifo",
        "below-file",
        root.as_str(),
    ];
    touchmark_tests::beside_a_neighbour(&world, || {
        let mut agent = world.session("s");
        for path in odd {
            for (method, params) in [
                ("file/read", json!({"path": path})),
                ("file/readText", json!({"path": path, "force": true})),
                ("file/mention", json!({"path": path})),
                ("file/invalidate", json!({"path": path})),
                ("edit/mark", json!({"path": path, "ttlMs": 1})),
                (
                    "file/edit",
                    json!({"path": path, "oldString": "one", "newString": "two"}),
                ),
                ("session/truncated", json!({"items": [{"path": path}]})),
                ("session/compacted", json!({"keep": [path]})),
                ("file/status", json!({"paths": [path], "verify": true})),
                ("edit/begin", json!({"files": [{"path": path}], "ttlMs": 1})),
                ("modified/take", json!({"paths": [path]})),
                ("file/untrack", json!({"path": path})),
            ] {
                let answer = agent.call(method, params);
                harmless(method, path, &answer);
            }
            for method in ["editor/didOpen", "editor/didClose", "file/history"] {
                let answer = agent.client.call(method, json!({"path": path}));
                harmless(method, path, &answer);
            }
        }
    });
    assert_eq!(fs::read(&secret).unwrap(), b"secret\n");
    world.healthy();
}

/// Checks that an answer has no byte from outside, and that errors say what to
/// do.
fn harmless(method: &str, path: &str, answer: &touchmark_tests::wire::Answer) {
    let told = match answer {
        Ok(result) => result.to_string(),
        Err(error) => {
            assert_ne!(error.name, "internalError", "{method} {path:.60?}: {error}");
            assert!(
                error.data["hint"].is_string(),
                "{method} {path:.60?}: {error}"
            );
            assert!(
                !error.message.chars().any(quoting::is_hidden),
                "{:?}",
                error.message
            );
            format!("{error} {}", error.data)
        }
    };
    for secret in ["secret\\n", "root:", &sha256("secret\n")] {
        assert!(!told.contains(secret), "{method} {path:.60?}: {told}");
    }
}
