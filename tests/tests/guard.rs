//! Guarded writes (GUARD): a write through touchmark destroys nothing that the
//! session has not seen.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use touchmark_tests::{Session, World, paths, sha256, text, user};

fn write(agent: &mut Session, path: &str, content: &str) -> Value {
    agent.ok("file/write", json!({"path": path, "text": content}))
}

fn edit(agent: &mut Session, path: &str, old: &str, new: &str) -> Value {
    let params = json!({"path": path, "oldString": old, "newString": new});
    agent.ok("file/edit", params)
}

fn on_disk(world: &World, path: &str) -> String {
    fs::read_to_string(world.path(path)).unwrap()
}

/// Returns the recovered contents, newest first.
fn kept(agent: &mut Session) -> Vec<String> {
    let items = agent.client.ok("recovery/list", json!({}));
    items["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| fs::read_to_string(text(item, "file")).unwrap())
        .collect()
}

#[test]
fn a_write_is_the_sessions_and_may_be_followed_by_another() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut other = world.session("b");
    world.file("f", "old\n");
    agent.read("f");
    other.read("f");
    let done = write(&mut agent, "f", "new\n");
    assert_eq!(done["outcome"], "applied", "{done}");
    assert_eq!(done["guard"], "exchange", "{done}");
    assert_eq!(done["lease"], true, "{done}");
    assert_eq!(done["recovered"], json!([]), "{done}");
    let version = &done["version"];
    assert_eq!(version["hash"], json!(sha256("new\n")), "{done}");
    assert_eq!(version["evidence"], "declared", "{done}");
    assert_eq!(on_disk(&world, "f"), "new\n");
    assert_eq!(agent.state("f"), "fresh");
    assert!(agent.taken().is_empty());
    // The other session sees it as a change by an agent.
    let changes = other.take();
    assert_eq!(paths(&changes), ["f"]);
    assert_eq!(touchmark_tests::authors(&changes[0]), ["agent:a"]);
    // Without another read.
    let done = write(&mut agent, "f", "newer\n");
    assert_eq!(done["outcome"], "applied", "{done}");
    // The same again is no version.
    let done = write(&mut agent, "f", "newer\n");
    assert_eq!(done["outcome"], "unchanged", "{done}");
    assert_eq!(agent.story("f"), ["agent:a declared", "agent:a declared"]);
    // It is not in the context: the next read is full (SEEN-4).
    let read = agent.ok("file/readText", json!({"path": "f"}));
    assert_eq!(read["text"], "newer\n");
    world.healthy();
}

#[test]
fn a_new_file_is_created_with_its_directories() {
    let mut world = World::new();
    let mut agent = world.session("a");
    agent.refused(
        "file/write",
        json!({"path": "d/e/f", "text": "x"}),
        "notFound",
    );
    let done = agent.ok(
        "file/write",
        json!({"path": "d/e/f", "text": "x", "createDirectories": true}),
    );
    assert_eq!(done["guard"], "noreplace", "{done}");
    assert_eq!(done["version"]["kind"], "created", "{done}");
    assert_eq!(on_disk(&world, "d/e/f"), "x");
    let bytes = agent.ok("file/write", json!({"path": "b", "base64": "/wD/"}));
    assert_eq!(bytes["outcome"], "applied", "{bytes}");
    assert_eq!(fs::read(world.path("b")).unwrap(), [0xff, 0, 0xff]);
    for wrong in [
        json!({"path": "g"}),
        json!({"path": "g", "text": "a", "base64": "YQ=="}),
        json!({"path": "g", "base64": "?"}),
    ] {
        agent.refused("file/write", wrong, "invalidParams");
    }
    world.healthy();
}

#[test]
fn what_was_not_read_is_not_overwritten() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", "old\n");
    agent.refused("file/write", json!({"path": "f", "text": "x"}), "notRead");
    let edit = json!({"path": "f", "oldString": "old", "newString": "new"});
    agent.refused("file/edit", edit.clone(), "notRead");
    agent.read("f");
    user::write(&world.path("f"), "the user's\n");
    let stale = agent.refused("file/write", json!({"path": "f", "text": "x"}), "stale");
    assert_eq!(stale.data["changedBy"][0]["kind"], "user", "{stale}");
    agent.refused("file/edit", edit, "stale");
    assert_eq!(on_disk(&world, "f"), "the user's\n");
    // `force` overrides that, not GUARD-1: what was there is kept.
    let forced = agent.ok(
        "file/write",
        json!({"path": "f", "text": "x", "force": true}),
    );
    let recovered = forced["recovered"].as_array().unwrap();
    assert_eq!(recovered.len(), 1, "{forced}");
    let file = recovered[0].as_str().unwrap();
    assert_eq!(fs::read_to_string(file).unwrap(), "the user's\n");
    assert_eq!(on_disk(&world, "f"), "x");
    // The same for a part of a file that was read in part.
    world.file("g", "1\n2\n3\n");
    let range = json!({"path": "g", "range": {"start": 1, "end": 2}});
    agent.ok("file/readText", range);
    let part = write(&mut agent, "g", "all new\n");
    assert_eq!(part["recovered"].as_array().unwrap().len(), 1, "{part}");
    assert_eq!(kept(&mut agent), ["1\n2\n3\n", "the user's\n"]);
    world.healthy();
}

#[test]
fn a_named_base_is_compared() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", "old\n");
    let wrong = json!({"path": "f", "text": "x", "requireRead": false, "base": sha256("other")});
    let error = agent.refused("file/write", wrong, "conflict");
    assert_eq!(error.data["hash"], json!(sha256("old\n")), "{error}");
    assert_eq!(error.data["expected"], json!(sha256("other")), "{error}");
    let right = json!({"path": "f", "text": "x", "requireRead": false, "base": sha256("old\n")});
    let done = agent.ok("file/write", right);
    assert_eq!(done["outcome"], "applied", "{done}");
    assert_eq!(kept(&mut agent), ["old\n"]);
    world.healthy();
}

#[test]
fn another_sessions_edit_is_in_the_way() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut other = world.session("b");
    world.file("f", "old\n");
    agent.read("f");
    other.read("f");
    let edit = other.begin("f", None).unwrap();
    let busy = agent.refused("file/write", json!({"path": "f", "text": "x"}), "busy");
    assert_eq!(busy.data["holder"], "b", "{busy}");
    other.abort(&edit);
    write(&mut agent, "f", "x");
    world.healthy();
}

#[test]
fn an_open_writer_is_a_conflict_before_anything_moves() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", "old\n");
    agent.read("f");
    let inode = world.path("f").metadata().unwrap().ino();
    let writer = OpenOptions::new()
        .append(true)
        .open(world.path("f"))
        .unwrap();
    let error = agent.refused("file/write", json!({"path": "f", "text": "x"}), "conflict");
    assert_eq!(error.data["hash"], json!(sha256("old\n")), "{error}");
    assert_eq!(world.path("f").metadata().unwrap().ino(), inode);
    drop(writer);
    write(&mut agent, "f", "x");
    assert_eq!(agent.story("f"), ["agent:a declared"]);
    assert!(kept(&mut agent).is_empty());
    world.healthy();
}

#[test]
fn mode_links_and_names_are_kept() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("real/f", "old\n");
    fs::set_permissions(world.path("real/f"), fs::Permissions::from_mode(0o754)).unwrap();
    symlink("real/f", world.path("link")).unwrap();
    agent.read("link");
    let done = write(&mut agent, "link", "new\n");
    assert_eq!(done["guard"], "exchange", "{done}");
    assert!(world.path("link").symlink_metadata().unwrap().is_symlink());
    assert_eq!(on_disk(&world, "real/f"), "new\n");
    assert_eq!(
        world.path("real/f").metadata().unwrap().mode() & 0o7777,
        0o754
    );
    assert_eq!(agent.state("link"), "fresh");

    world.file("g", "old\n");
    fs::hard_link(world.path("g"), world.path("h")).unwrap();
    agent.read("g");
    let done = write(&mut agent, "g", "new\n");
    assert_eq!(done["guard"], "checked", "{done}");
    assert_eq!(done["outcome"], "applied", "{done}");
    assert_eq!(on_disk(&world, "h"), "new\n");
    assert_eq!(agent.state("g"), "fresh");
    assert!(kept(&mut agent).is_empty());
    assert_eq!(fs::read_dir(world.workspace()).unwrap().count(), 4);
    world.healthy();
}

#[test]
fn what_is_no_file_or_lies_outside_is_refused() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let fifo = std::process::Command::new("mkfifo")
        .arg(world.path("fifo"))
        .status();
    assert!(fifo.unwrap().success());
    fs::create_dir(world.path("d")).unwrap();
    fs::write(world.outside().join("secret"), "theirs").unwrap();
    symlink(world.outside().join("secret"), world.path("out")).unwrap();
    symlink(world.outside(), world.path("outdir")).unwrap();
    for (path, error) in [
        ("fifo", "notAFile"),
        ("d", "notAFile"),
        ("out", "outsideWorkspace"),
        ("outdir/new", "outsideWorkspace"),
        ("../x", "outsideWorkspace"),
        ("/etc/passwd", "outsideWorkspace"),
    ] {
        let params = json!({"path": path, "text": "x", "force": true, "createDirectories": true});
        agent.refused("file/write", params, error);
        let params = json!({"path": path, "oldString": "t", "newString": "x", "force": true});
        let refused = agent.call("file/edit", params).unwrap_err();
        assert!(
            refused.name == error || refused.name == "notFound",
            "{path}: {refused}"
        );
    }
    assert_eq!(
        fs::read_to_string(world.outside().join("secret")).unwrap(),
        "theirs"
    );
    world.healthy();
}

#[test]
fn a_secret_is_never_overwritten_unseen() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file(".env", "KEY=1\n");
    let forced = json!({"path": ".env", "text": "x", "force": true});
    agent.refused("file/write", forced, "conflict");
    assert_eq!(on_disk(&world, ".env"), "KEY=1\n");
    agent.read(".env");
    write(&mut agent, ".env", "KEY=2\n");
    assert_eq!(on_disk(&world, ".env"), "KEY=2\n");
    assert!(kept(&mut agent).is_empty());
    world.healthy();
}

#[test]
fn an_edit_keeps_what_the_file_has_of_its_own() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let mut try_one = |content: &str, old: &str, new: &str, matched: &str, expected: &str| {
        world.file("f", content);
        agent.read("f");
        let done = edit(&mut agent, "f", old, new);
        assert_eq!(done["matched"], matched, "{content:?}: {done}");
        assert_eq!(done["replacements"], 1, "{done}");
        assert_eq!(on_disk(&world, "f"), expected);
        assert_eq!(agent.state("f"), "fresh");
    };
    try_one("a\nfoo\n", "foo", "foofoo", "exact", "a\nfoofoo\n");
    try_one("a\r\nb\r\nc", "a\nb", "x\ny", "lineEndings", "x\r\ny\r\nc");
    try_one("\u{feff}a\nlast", "a\n", "b\n", "exact", "\u{feff}b\nlast");
    try_one("say “hi”\n", "\"hi\"", "\"bye\"", "quotes", "say “bye”\n");
    try_one("“a” \"a\"", "\"a\"", "b", "exact", "“a” b");

    world.file("g", "x\na a a\n");
    agent.read("g");
    let several = json!({"path": "g", "oldString": "a", "newString": "b"});
    let error = agent.refused("file/edit", several, "noMatch");
    assert_eq!(error.data["matches"], 3, "{error}");
    let none = json!({"path": "g", "oldString": "nothing", "newString": "b"});
    assert_eq!(
        agent.refused("file/edit", none, "noMatch").data["matches"],
        0
    );
    let all = json!({"path": "g", "oldString": "a", "newString": "b", "replaceAll": true});
    let done = agent.ok("file/edit", all);
    assert_eq!(
        (&done["replacements"], &done["line"]),
        (&json!(3), &json!(2)),
        "{done}"
    );
    assert_eq!(on_disk(&world, "g"), "x\nb b b\n");
    let empty = json!({"path": "g", "oldString": "", "newString": "b"});
    agent.refused("file/edit", empty, "invalidParams");
    let absent = json!({"path": "h", "oldString": "a", "newString": "b"});
    agent.refused("file/edit", absent, "notFound");

    fs::write(world.path("i"), b"\xff foo \xfe").unwrap();
    agent.read("i");
    edit(&mut agent, "i", "foo", "bar");
    assert_eq!(fs::read(world.path("i")).unwrap(), b"\xff bar \xfe");
    world.healthy();
}

#[test]
fn quotation_marks_are_found_and_normalised() {
    let world = World::new();
    let mut client = world.client();
    let normal = client.ok("quotes/normalize", json!({"text": "“a” ‘b’ „c“"}));
    assert_eq!(normal["text"], "\"a\" 'b' \"c\"");
    let found = client.ok(
        "quotes/match",
        json!({"needle": "\"é\"", "haystack": "ü “é”"}),
    );
    assert_eq!(found["position"], 2, "{found}");
    assert_eq!(found["originalMatch"], "“é”", "{found}");
    assert_eq!(found["normalizedMatch"], "\"é\"", "{found}");
    let none = client.ok("quotes/match", json!({"needle": "a", "haystack": "b"}));
    assert_eq!(none, Value::Null);
}

#[test]
fn kept_bytes_are_listed_shown_restored_and_deleted() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", "the user's\n");
    agent.ok(
        "file/write",
        json!({"path": "f", "text": "x", "force": true}),
    );
    let run = |args: &[&str]| {
        let done = world.run(args);
        assert!(
            done.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).unwrap()
    };
    assert!(run(&["recovered", "list"]).contains("r1"));
    assert_eq!(run(&["recovered", "show", "r1"]), "the user's\n");
    run(&["recovered", "restore", "r1"]);
    assert_eq!(on_disk(&world, "f"), "the user's\n");
    assert_eq!(agent.state("f"), "stale");
    let listed = run(&["recovered", "--json"]);
    assert!(
        listed.contains("\"r2\"") && listed.contains("\"r1\""),
        "{listed}"
    );
    run(&["recovered", "delete", "r1"]);
    let refused = world.run(&["recovered", "show", "r1"]);
    assert_eq!(refused.status.code(), Some(4));
    // What is kept survives.
    world.restart();
    let mut agent = world.session("a");
    assert_eq!(kept(&mut agent), ["x"]);
    world.healthy();
}

#[test]
fn a_late_write_to_the_old_file_is_kept_and_told() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", "old\n");
    agent.read("f");
    agent
        .client
        .ok("subscribe", json!({"kinds": ["recovered"]}));
    let directory = File::open(world.workspace()).unwrap();
    drop(directory);
    // Found before the write, opened after it.
    let found = rustix::fs::open(
        world.path("f"),
        rustix::fs::OFlags::PATH,
        rustix::fs::Mode::empty(),
    )
    .unwrap();
    write(&mut agent, "f", "new\n");
    let late = {
        use std::os::fd::AsRawFd as _;
        format!("/proc/self/fd/{}", found.as_raw_fd())
    };
    fs::write(late, "late\n").unwrap();
    agent.state("f");
    assert_eq!(kept(&mut agent), ["late\n"]);
    let event = agent.client.event();
    assert_eq!(event["type"], "recovered", "{event}");
    assert_eq!(event["path"], "f", "{event}");
    assert_eq!(on_disk(&world, "f"), "new\n");
    world.healthy();
}

/// The user saves at every distance in time from an agent's write, in every
/// way. The last save of each round is on disk, or was seen by the agent, or is
/// stored. Runs until each outcome has occurred often enough.
#[test]
fn no_save_is_lost_to_a_guarded_write() {
    const ROUNDS: u64 = 400;
    /// How often each outcome must occur.
    const ENOUGH: usize = 10;
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", "start\n");
    let path = world.path("f");
    let mut random = 20_261_122_u64;
    let (mut written, mut refused, mut rounds) = (0, 0, 0);
    let mut expected = Vec::new();
    // How long a write takes here and now, in microseconds.
    let mut takes = 1_500;
    while rounds < ROUNDS || written <= ENOUGH || refused <= ENOUGH {
        rounds += 1;
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let (way, delay) = ((random >> 33) % 4, (random >> 36) % (2 * takes));
        let seen = agent.ok("file/readText", json!({"path": "f", "force": true}));
        let save = format!("user {rounds}\n");
        let content = format!("agent {rounds}\n");
        let answer = std::thread::scope(|scope| {
            let (path, save) = (&path, &save);
            scope.spawn(move || {
                let end = Instant::now() + Duration::from_micros(delay);
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
                saves(path, save, way);
            });
            let began = Instant::now();
            let answer = agent.call("file/write", json!({"path": "f", "text": content}));
            takes = (began.elapsed().as_micros() as u64).max(1_500);
            answer
        });
        match &answer {
            Ok(_) => written += 1,
            Err(error) => {
                assert!(
                    ["conflict", "stale", "unreadable"].contains(&error.name.as_str()),
                    "{error}"
                );
                refused += 1;
            }
        }
        let now = on_disk(&world, "f");
        let safe = now == save || seen["text"] == save.as_str() || kept(&mut agent).contains(&save);
        assert!(
            safe,
            "round {rounds}, way {way}, {delay} us: {save:?} is lost: {answer:?}, {now:?}"
        );
        if answer.is_ok() {
            expected.push(sha256(&content));
        }
    }
    // Every guarded write that was answered is the agent's, and nothing else.
    let own: Vec<String> = agent
        .history("f")
        .iter()
        .filter(|row| row["author"]["session"] == "a")
        .map(|row| text(row, "hash"))
        .collect();
    let mut own: Vec<String> = own.into_iter().rev().collect();
    own.dedup();
    assert_eq!(own, expected[expected.len().saturating_sub(own.len())..]);
    assert_eq!(fs::read_dir(world.workspace()).unwrap().count(), 1);
    eprintln!("{rounds} rounds: {written} written, {refused} refused");
    world.healthy();
}

fn saves(path: &Path, content: &str, way: u64) {
    match way {
        0 => fs::write(path, content).unwrap(),
        1 => {
            let mut file = OpenOptions::new().write(true).open(path).unwrap();
            file.write_all(content.as_bytes()).unwrap();
            file.set_len(content.len() as u64).unwrap();
        }
        2 => user::replace(path, content),
        _ => user::like_vim(path, content, 0),
    }
}

/// Content that its owner has removed is not lost when an agent creates a file
/// with that name, however soon.
#[test]
fn a_new_file_in_place_of_a_removed_one_clobbers_nothing() {
    let mut world = World::new();
    world.file("f", "one\n");
    let mut other = world.session("b");
    other.read("f");
    user::write(&world.path("f"), "the user's\n");
    other.sync();
    fs::remove_file(world.path("f")).unwrap();
    let mut agent = world.session("a");
    let done = agent.ok(
        "file/write",
        json!({"path": "f", "text": "new\n", "requireRead": false}),
    );
    assert_eq!(done["outcome"], "applied", "{done}");
    assert_eq!(done["guard"], "noreplace", "{done}");
    assert_eq!(done["version"]["kind"], "created", "{done}");
    let story = agent.story("f");
    assert_eq!(
        story,
        ["user unmarked", "user unmarked", "agent:a declared"]
    );
    for change in agent.take() {
        assert!(change["lost"].is_null(), "{change}");
    }
    world.healthy();
}
