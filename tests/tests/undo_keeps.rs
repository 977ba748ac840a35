//! UNDO-4, UNDO-6, HIST-3: nothing is replaced that could not be brought back,
//! and nothing is written elsewhere than where it was read.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::Path;

use serde_json::{Value, json};
use touchmark_tests::process::Stopped;
use touchmark_tests::{Session, World, sha256, text, user};

/// A line that must be in no file of the state directory.
const TOKEN: &str = "TOKEN='ghp_a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4wxyz'\n";

fn ten() -> String {
    (1..=10).map(|n| format!("line {n}\n")).collect()
}

/// The agent changes line 3 of the file.
fn edited(world: &World, agent: &mut Session, path: &str) -> String {
    world.file(path, ten());
    agent.read(path);
    edit(agent, path, "line 3\n", "line three\n");
    fs::read_to_string(world.path(path)).unwrap()
}

fn edit(agent: &mut Session, path: &str, old: &str, new: &str) -> Value {
    let params = json!({"path": path, "oldString": old, "newString": new});
    agent.ok("file/edit", params)
}

/// The ways to give a file an earlier content.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Undo,
    Redo,
    Review,
    Restore,
}

const WAYS: [Way; 4] = [Way::Undo, Way::Redo, Way::Review, Way::Restore];

impl Way {
    /// Does what has to be done before the user changes the file.
    fn prepare(self, agent: &mut Session) {
        if self == Self::Redo {
            agent
                .client
                .ok("undo", json!({"session": "a", "now": true}));
        }
    }

    /// Returns the outcome of the file, or the error's name.
    fn go(self, agent: &mut Session, path: &str, no_redo: bool) -> [String; 2] {
        let (method, mut params) = match self {
            Self::Undo => ("undo", json!({"session": "a", "now": true})),
            Self::Redo => ("redo", json!({})),
            Self::Review => {
                let queue = agent.client.ok("review/list", json!({}));
                let hunks = queue["hunks"].as_array().unwrap().iter();
                let hunks = hunks.map(|hunk| json!({"path": hunk["path"], "id": hunk["id"]}));
                ("review/undo", json!({"hunks": hunks.collect::<Vec<_>>()}))
            }
            Self::Restore => {
                let first = agent.history(path).last().unwrap()["clock"].clone();
                ("file/restore", json!({"path": path, "at": first}))
            }
        };
        if no_redo {
            params["noRedo"] = json!(true);
        }
        match agent.client.call(method, params) {
            Ok(done) if done["files"] == json!([]) => ["nothing".into(), String::new()],
            Ok(done) => {
                let file = &done["files"][0];
                let cause = file["cause"].as_str().unwrap_or_default();
                [text(file, "outcome"), cause.to_owned()]
            }
            Err(error) => [error.name, error.message],
        }
    }
}

/// Returns whether a file below a directory has these bytes.
fn has(directory: &Path, bytes: &str) -> bool {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .into_iter()
        .any(|entry| match entry.file_type().unwrap() {
            kind if kind.is_dir() => has(&entry.path(), bytes),
            kind if kind.is_file() => {
                let found = fs::read(entry.path()).unwrap_or_default();
                found
                    .windows(bytes.len())
                    .any(|part| part == bytes.as_bytes())
            }
            _ => false,
        })
}

/// The user adds a token to a file that the agent has changed.
#[test]
fn undo4_a_secret_is_not_replaced() {
    for way in WAYS {
        let world = World::new();
        let mut agent = world.session("a");
        edited(&world, &mut agent, "conf.py");
        way.prepare(&mut agent);
        let path = world.path("conf.py");
        let now = fs::read_to_string(&path).unwrap() + "mine\n" + TOKEN;
        user::replace(&path, &now);
        agent.sync();
        let [outcome, cause] = way.go(&mut agent, "conf.py", false);
        assert_eq!(outcome, "notKept", "{way:?}: {cause}");
        assert!(cause.ends_with("it holds a secret"), "{way:?}: {cause}");
        assert_eq!(fs::read_to_string(&path).unwrap(), now, "{way:?}");
        // The request may say that it need not be brought back.
        let [outcome, cause] = way.go(&mut agent, "conf.py", true);
        assert!(
            ["undone", "restored"].contains(&&*outcome),
            "{way:?}: {outcome} {cause}"
        );
        let wanted = match way {
            Way::Redo => now.replace("line 3\n", "line three\n"),
            Way::Restore => ten(),
            _ => now.replace("line three\n", "line 3\n"),
        };
        assert_eq!(fs::read_to_string(&path).unwrap(), wanted, "{way:?}");
        if way == Way::Undo {
            assert_eq!(cause, "it cannot be brought back: it holds a secret");
            let redone = agent.client.ok("redo", json!({}));
            assert_eq!(redone["files"][0]["outcome"], "notKept", "{redone}");
        }
        agent.sync();
        assert!(!has(&world.state(), TOKEN), "{way:?}");
    }
}

/// The file grows over the limit of stored contents, or none may be stored.
#[test]
fn undo4_what_is_too_large_is_not_replaced() {
    for (config, cause) in [
        (
            "[contents]\nfile = \"2 KiB\"\n",
            "it is larger than 2 KiB (`contents.file`)",
        ),
        (
            "[contents]\ntotal = 0\n",
            "no contents are kept (`contents.total` is 0)",
        ),
    ] {
        for way in WAYS {
            let mut world = World::asleep();
            world.configure(config);
            world.start();
            let mut agent = world.session("a");
            let now = edited(&world, &mut agent, "f");
            way.prepare(&mut agent);
            let now = now + "mine\n" + &"x".repeat(5_000) + "\n";
            user::replace(&world.path("f"), &now);
            agent.sync();
            let [outcome, why] = way.go(&mut agent, "f", false);
            let still = fs::read_to_string(world.path("f")).unwrap();
            assert_eq!(still, now, "{way:?} {config}: {outcome} {why}");
            // Without stored contents there may be nothing to do at all.
            let idle = ["nothing", "notFound", "unchanged"].contains(&&*outcome);
            if !(idle && config.contains("total")) {
                assert_eq!(outcome, "notKept", "{way:?} {config}: {why}");
            }
            if config.contains("file") {
                assert!(why.ends_with(cause), "{way:?}: {why}");
            }
        }
    }
}

/// A symlink replaces the file, whatever its age and whatever is behind it.
#[test]
fn undo6_nothing_is_written_through_a_link_that_replaced_a_file() {
    for way in WAYS {
        for is_old in [true, false] {
            let world = World::new();
            symlink("target", world.path("old")).unwrap();
            let mut agent = world.session("a");
            edited(&world, &mut agent, "f");
            way.prepare(&mut agent);
            // The content behind the link is that of the file.
            let now = fs::read_to_string(world.path("f")).unwrap();
            fs::write(world.path("target"), &now).unwrap();
            if !is_old {
                symlink("target", world.path("new")).unwrap();
            }
            let link = world.path(if is_old { "old" } else { "new" });
            fs::rename(link, world.path("f")).unwrap();
            agent.sync();
            let [outcome, cause] = way.go(&mut agent, "f", false);
            let still = fs::read_to_string(world.path("target")).unwrap();
            assert_eq!(still, now, "{way:?} {is_old}: {outcome} {cause}");
            assert!(world.path("f").is_symlink());
        }
    }
}

/// A link takes the place of a directory above the file.
#[test]
fn undo6_nothing_is_written_through_a_link_above() {
    for way in WAYS {
        let world = World::new();
        let mut agent = world.session("a");
        edited(&world, &mut agent, "d/f");
        way.prepare(&mut agent);
        let now = fs::read_to_string(world.path("d/f")).unwrap();
        world.file("e/f", &now);
        fs::rename(world.path("d"), world.path("was")).unwrap();
        symlink("e", world.path("d")).unwrap();
        agent.sync();
        let [outcome, cause] = way.go(&mut agent, "d/f", false);
        let still = fs::read_to_string(world.path("e/f")).unwrap();
        assert_eq!(still, now, "{way:?}: {outcome} {cause}");
    }
}

/// A file that the session used through a link is written through it, also after
/// a restart, until the link leads elsewhere.
#[test]
fn undo6_a_link_that_was_there_is_followed() {
    for way in WAYS {
        let mut world = World::new();
        world.file("real/f", ten());
        symlink("real/f", world.path("link")).unwrap();
        let mut agent = world.session("a");
        agent.read("link");
        edit(&mut agent, "link", "line 3\n", "line three\n");
        way.prepare(&mut agent);
        let before = fs::read_to_string(world.path("real/f")).unwrap();
        // A correction of the author may be newer, and has no place.
        let rows = agent.history("link");
        let version = rows.iter().find(|row| row["amends"].is_null()).unwrap();
        assert_eq!(version["real"], "real/f", "{way:?}");
        // A clean end: a killed daemon may not have stored the contents yet.
        world.stop();
        world.start();
        let mut agent = world.session("a");
        let [outcome, cause] = way.go(&mut agent, "link", false);
        assert!(
            ["undone", "restored"].contains(&&*outcome),
            "{way:?}: {outcome} {cause}"
        );
        let after = fs::read_to_string(world.path("real/f")).unwrap();
        assert_ne!(after, before, "{way:?}");
        assert!(world.path("link").is_symlink());
    }
}

/// The user's save overwrites what the agent's tool has written, before the
/// daemon has looked.
#[test]
fn hist3_a_version_that_was_never_read_has_no_content() {
    for way in ["session", "last", "edit", "review"] {
        let world = World::new();
        let users: String = (0..8).map(|n| format!("user line {n}\n")).collect();
        world.file("f", &users);
        let mut agent = world.session("a");
        agent.read("f");
        let begun = agent.begin("f", None).unwrap();
        let written = format!("{users}agent line 1\n");
        let saved = format!("{written}user line 9\n");
        {
            let _stopped = Stopped::new(world.pid());
            fs::write(world.path("f"), &written).unwrap();
            user::replace(&world.path("f"), &saved);
        }
        let ended = agent.commit(&begun, "f", Some(&written));
        assert_eq!(ended["outcome"], "overwritten", "{ended}");
        let reread = json!({"path": "f", "force": true});
        agent.ok("file/readText", reread);
        let new = "agent line 1\nagent line 2\n";
        let last = edit(&mut agent, "f", "agent line 1\n", new);
        let history = agent.history("f");
        let unread = history.iter().find(|row| row["unobserved"] == true);
        let unread = unread.expect("a version that was not read");
        assert_eq!(unread["hash"], sha256(&written));
        let at = json!({"path": "f", "at": unread["clock"]});
        let error = agent.client.call("file/content", at).unwrap_err();
        assert_eq!(error.name, "notKept");
        let blame = agent.client.ok("file/blame", json!({"path": "f"}));
        for line in blame["lines"].as_array().unwrap() {
            let is_users = text(line, "text").starts_with("user");
            let is_agents = line["author"]["session"] == "a";
            assert!(!(is_users && is_agents), "{line}");
        }
        match way {
            "session" => agent
                .client
                .ok("undo", json!({"session": "a", "now": true})),
            "last" => agent
                .client
                .ok("undo", json!({"session": "a", "last": true, "now": true})),
            "edit" => {
                let edit = &last["version"]["edit"];
                agent.client.ok("undo", json!({"edit": edit, "now": true}))
            }
            _ => {
                let [outcome, _] = Way::Review.go(&mut agent, "f", false);
                json!(outcome)
            }
        };
        let now = fs::read_to_string(world.path("f")).unwrap();
        let left = now.lines().filter(|line| line.starts_with("user")).count();
        assert_eq!(left, 9, "{way}: {now}");
    }
}

#[test]
fn undo9_what_the_user_put_back_stays_and_is_listed() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let theirs = edited(&world, &mut agent, "f");
    // The user's editor takes the agent's line back, and its redo puts it there
    // again.
    user::replace(&world.path("f"), &ten());
    agent.sync();
    user::replace(&world.path("f"), &theirs);
    agent.sync();
    let undo = |ask: Value| world.client().ok("undo", ask);
    let left = undo(json!({"session": "a", "now": true}));
    let file = &left["files"][0];
    assert_eq!(file["outcome"], "left", "{left}");
    assert_eq!(file["left"][0]["cause"], "decided", "{left}");
    assert_eq!(file["left"][0]["text"], "line three\n", "{left}");
    let why = text(&file["left"][0], "why");
    assert!(why.starts_with("you put it back (version "), "{why}");
    assert_eq!(fs::read_to_string(world.path("f")).unwrap(), theirs);
    let done = undo(json!({"session": "a", "now": true, "decided": true}));
    assert_eq!(done["files"][0]["outcome"], "undone", "{done}");
    assert_eq!(fs::read_to_string(world.path("f")).unwrap(), ten());
    world.healthy();
}

/// A version that a redo made does not count as the user's decision, even when
/// 100 newer undos are on record (UNDO-4).
#[test]
fn undo9_what_an_old_redo_put_back_is_no_decision() {
    let mut world = World::new();
    let mut agent = world.session("a");
    let theirs = edited(&world, &mut agent, "f");
    let other = edited(&world, &mut world.session("b"), "other");
    let mut client = world.client();
    let mut undo_and_redo = |session: &str| {
        client.ok("undo", json!({"session": session, "now": true}));
        client.ok("redo", json!({}));
    };
    undo_and_redo("a");
    assert_eq!(fs::read_to_string(world.path("f")).unwrap(), theirs);
    for _ in 0..51 {
        undo_and_redo("b");
    }
    assert_eq!(fs::read_to_string(world.path("other")).unwrap(), other);
    let list = client.ok("undo/list", json!({}));
    assert_eq!(list["undos"].as_array().unwrap().len(), 100);
    client.refused("redo", json!({"undo": "u1"}), "notFound");
    let done = client.ok("undo", json!({"session": "a", "now": true}));
    assert_eq!(done["files"][0]["outcome"], "undone", "{done}");
    assert_eq!(fs::read_to_string(world.path("f")).unwrap(), ten());
    world.healthy();
}

/// GUARD-2: the daemon of an ordinary user cannot give a file to another one. Here
/// it is root without that right.
#[test]
fn guard2_a_file_of_another_user_keeps_its_owner() {
    const OTHER: u32 = 4711;
    if !rustix::process::geteuid().is_root() {
        return eprintln!("not run: only root can make a file of another user");
    }
    for may_give in [false, true] {
        let mut world = World::asleep();
        if !may_give {
            world.launch_through(&["setpriv", "--bounding-set=-chown"]);
        }
        world.start();
        let owner = |path: &str| fs::metadata(world.path(path)).ok().map(|found| found.uid());
        let mut agent = world.session("a");
        for path in ["f", "gone"] {
            world.file(path, ten());
            chown(world.path(path), Some(OTHER), None).unwrap();
            agent.read(path);
        }
        edit(&mut agent, "f", "line 3\n", "line three\n");
        assert_eq!(owner("f"), Some(OTHER), "{may_give}");
        let begun = agent.ok(
            "command/begin",
            json!({"label": "rm gone", "scope": "workspace"}),
        );
        fs::remove_file(world.path("gone")).unwrap();
        let ended = json!({"command": begun["command"], "exit": 0});
        agent.client.ok("command/end", ended);
        let undone = agent.client.ok("undo", json!({"session": "a"}));
        assert_eq!(undone["files"][0]["outcome"], "undone", "{undone}");
        assert_eq!(fs::read_to_string(world.path("f")).unwrap(), ten());
        assert_eq!(owner("f"), Some(OTHER), "{may_give}");
        let gone = &undone["files"][1];
        if may_give {
            assert_eq!(gone["outcome"], "restored", "{undone}");
            assert_eq!(owner("gone"), Some(OTHER));
            continue;
        }
        assert_eq!(gone["outcome"], "notKept", "{undone}");
        assert!(
            text(gone, "cause").contains("belonged to user 4711"),
            "{undone}"
        );
        let history = agent.client.ok("file/history", json!({"path": "gone"}));
        let first = history["versions"].as_array().unwrap().last().unwrap();
        let restore = json!({"path": "gone", "at": first["clock"]});
        let refused = agent.client.refused("file/restore", restore, "notKept");
        assert!(
            refused.message.contains("belonged to user 4711"),
            "{refused:?}"
        );
        assert_eq!(owner("gone"), None);
        world.healthy();
    }
}
