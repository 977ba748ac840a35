//! Rows of the scenarios' table about a user's edits: S7, S9, S12, S20 to S22,
//! S25, S29.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use touchmark_tests::user::{self, pause};
use touchmark_tests::{Session, World, authors, lanes, lanes_at_once, sha256};

/// A way to save: its name, and a function that adds a line to a file.
type Save = (&'static str, fn(&Path, &str));

fn more(path: &Path, line: &str) -> String {
    format!("{}{line}\n", fs::read_to_string(path).expect("a text"))
}

/// Every way to save. The real vim and sed are not the only ones: the same
/// steps also happen quickly and slowly in this process.
const SAVES: &[Save] = &[
    ("inplace", |path, line| user::write(path, &more(path, line))),
    ("append", |path, line| {
        user::append(path, &format!("{line}\n"))
    }),
    ("replace", |path, line| {
        user::replace(path, &more(path, line))
    }),
    ("fsync", |path, line| {
        user::replace_synced(path, &more(path, line))
    }),
    ("quickvim", |path, line| {
        user::like_vim(path, &more(path, line), 0)
    }),
    ("slowvim", |path, line| {
        user::like_vim(path, &more(path, line), 30)
    }),
    ("slowervim", |path, line| {
        user::like_vim(path, &more(path, line), 150)
    }),
    ("vim", |path, line| user::vim(path, line, "auto")),
    ("vimno", |path, line| user::vim(path, line, "no")),
    ("vimyes", |path, line| user::vim(path, line, "yes")),
    ("sed", |path, line| user::sed(path, &format!("$ a {line}"))),
];

fn saves(saves: &'static [Save]) {
    lanes_at_once(3, |lane| {
        for (way, save) in saves {
            let (name, path) = lane.tracked(&format!("{way}.txt"), "one\n");
            for line in ["two", "three"] {
                save(&path, line);
                let change = lane.reported_one(&name);
                let content = fs::read(&path).unwrap();
                assert!(content.ends_with(format!("{line}\n").as_bytes()), "{name}");
                assert_eq!(authors(&change), ["user"], "{name}: {change}");
                assert_eq!(change["hash"], sha256(content), "{name}: {change}");
            }
            // Nothing of the editor's own files is ever listed, and no
            // baseline or version of them gets in the way.
            assert_eq!(lane.agent.state(&name), "stale", "{name}");
            lane.agent.read(&name);
            assert_eq!(lane.agent.state(&name), "fresh", "{name}");
        }
    });
}

#[test]
fn s7_user_saves_in_place_and_by_rename() {
    saves(&SAVES[..4]);
}

#[test]
fn s7_user_saves_as_vim_does() {
    saves(&SAVES[4..7]);
}

#[test]
fn s7_user_saves_with_the_real_vim() {
    saves(&SAVES[7..10]);
}

#[test]
fn s7_user_saves_with_the_real_sed() {
    saves(&SAVES[10..]);
}

/// ATTR-12: whatever events a save makes, it results in one version.
#[test]
fn attr12_each_way_to_save_makes_one_version() {
    // Each by itself: another's `sync` is told of an absence as an absence.
    lanes_at_once(1, |lane| {
        for (way, save) in SAVES {
            let (name, path) = lane.tracked(&format!("{way}.txt"), "one\n");
            for (done, line) in ["two", "three"].iter().enumerate() {
                let began = Instant::now();
                save(&path, line);
                // A save slower than the daemon waits out an absence, as any
                // may become on a busy machine, may show as a deletion and a
                // creation; all others must not.
                let slow = began.elapsed() > Duration::from_millis(90);
                lane.settle();
                let story = lane.agent.story_of_texts(&name);
                assert!(
                    story.len() == done + 1 || slow && story.len() > done,
                    "{name}: {story:?} {:#?}",
                    lane.agent.history(&name)
                );
                assert!(
                    story.iter().all(|version| version == "user unmarked"),
                    "{story:?}"
                );
            }
        }
    });
}

#[test]
fn s9_the_query_comes_soon_after_the_edit() {
    lanes(|lane| {
        for delay in [0, 1, 10, 50] {
            let (name, path) = lane.tracked(&format!("{delay}.txt"), "one\n");
            user::write(&path, "two\n");
            pause(delay);
            assert_eq!(lane.agent.taken(), [name.as_str()]);
            assert_eq!(lane.agent.status(&name)["hash"], sha256("two\n"));
            // Edits by one write, and by a rename, each asked about at once.
            user::overwrite(&path, "four\n");
            pause(delay);
            assert_eq!(lane.agent.taken(), [name.as_str()]);
            user::replace(&path, "five\n");
            pause(delay);
            assert_eq!(lane.agent.taken(), [name.as_str()]);
            fs::remove_file(&path).unwrap();
            pause(delay);
            assert_eq!(lane.agent.state(&name), "deleted");
            assert_eq!(lane.agent.taken(), [name.as_str()]);
        }
    });
}

#[test]
fn s12_nothing_changes_in_the_end() {
    lanes(|lane| {
        let (name, path) = lane.tracked("a.txt", "one\n");
        // An identical rewrite.
        user::write(&path, "one\n");
        lane.own(&name);
        user::replace(&path, "one\n");
        lane.own(&name);
        // Touch.
        fs::File::open(&path)
            .unwrap()
            .set_modified(SystemTime::now() + Duration::from_secs(5))
            .unwrap();
        lane.own(&name);
        // Chmod.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        lane.own(&name);
        assert_eq!(lane.agent.story(&name), Vec::<String>::new());
        // Edit and revert.
        user::write(&path, "two\n");
        user::write(&path, "one\n");
        lane.own(&name);
        user::replace(&path, "two\n");
        lane.agent.sync();
        user::replace(&path, "one\n");
        lane.own(&name);
    });
}

#[test]
fn s20_a_user_appends_for_five_seconds() {
    lanes(|lane| {
        // One file is closed after each append, one is kept open.
        let (closed, closed_path) = lane.tracked("closed.txt", "one\n");
        let (open, open_path) = lane.tracked("open.txt", "one\n");
        let mut kept = fs::OpenOptions::new()
            .append(true)
            .open(&open_path)
            .unwrap();
        for append in 0..100 {
            user::append(&closed_path, "more\n");
            kept.write_all(b"more\n").unwrap();
            let taken = lane.agent.taken();
            assert!(taken.contains(&closed), "append {append}: {taken:?}");
            assert_eq!(
                taken.contains(&open),
                append == 0,
                "append {append}: {taken:?}"
            );
            assert_eq!(lane.agent.state(&open), "stale", "append {append}");
            pause(50);
        }
        drop(kept);
        lane.settle();
        let status = lane.agent.status(&open);
        assert_eq!(status["state"], "stale", "{status}");
        assert_eq!(
            status["hash"],
            sha256(fs::read(&open_path).unwrap()),
            "{status}"
        );
        assert_eq!(lane.agent.state(&closed), "stale");
        // Another author wrote between two reads of the session's: listed.
        lane.agent.read(&open);
        user::append(&open_path, "more\n");
        lane.reported_one(&open);
    });
}

#[test]
fn s21_a_user_edits_after_the_read_was_recorded() {
    lanes(|lane| {
        for delay in [0, 1, 10] {
            let (name, path) = lane.tracked(&format!("{delay}.txt"), "one\n");
            pause(delay);
            user::write(&path, "two\n");
            let change = lane.reported_one(&name);
            assert_eq!(authors(&change), ["user"], "{change}");
            assert_eq!(change["kind"], "modified", "{change}");
        }
    });
}

#[test]
fn s21n_a_user_edits_between_the_read_and_its_recording() {
    lanes(|lane| {
        // Never tracked before: the daemon did not see who wrote.
        let (name, path) = lane.untracked("new.txt", "one\n");
        let read = fs::read(&path).unwrap();
        user::write(&path, "two\n");
        lane.agent
            .ok("file/read", json!({"path": name, "hash": sha256(&read)}));
        let status = lane.agent.status(&name);
        assert_eq!(status["state"], "stale", "{status}");
        assert_eq!(status["seenHash"], sha256("one\n"), "{status}");
        assert_eq!(status["hash"], sha256("two\n"), "{status}");
        assert_eq!(authors(&lane.reported_one(&name)), ["unknown"]);
        // Gone by then.
        let (gone, path) = lane.untracked("gone.txt", "one\n");
        fs::remove_file(&path).unwrap();
        lane.agent
            .ok("file/read", json!({"path": gone, "hash": sha256("one\n")}));
        assert_eq!(lane.agent.state(&gone), "deleted");
        lane.reported_one(&gone);
        // Tracked before: the user's, or unknown if the daemon never saw the
        // content that the session read.
        let (known, path) = lane.tracked("known.txt", "one\n");
        user::write(&path, "two\n");
        let read = fs::read(&path).unwrap();
        user::write(&path, "three\n");
        lane.agent
            .ok("file/read", json!({"path": known, "hash": sha256(&read)}));
        assert_eq!(lane.agent.state(&known), "stale");
        let change = lane.reported_one(&known);
        assert!(
            [["user"], ["unknown"]]
                .iter()
                .any(|who| authors(&change) == who),
            "{change}"
        );
    });
}

#[test]
fn s22_the_agent_reads_again_before_it_asks() {
    lanes(|lane| {
        for delay in [0, 1, 50] {
            let (name, path) = lane.tracked(&format!("{delay}.txt"), "one\n");
            user::write(&path, "two\n");
            pause(delay);
            let read = lane.agent.read(&name);
            assert_eq!(read["verdict"], "changed", "{read}");
            lane.own(&name);
            // Read by the daemon itself.
            user::write(&path, "three\n");
            pause(delay);
            let read = lane.agent.ok("file/readText", json!({"path": name}));
            assert_eq!(read["verdict"], "changed", "{read}");
            assert_eq!(read["text"], "three\n", "{read}");
            lane.own(&name);
        }
    });
}

#[test]
fn s25_one_edit_polled_by_take() {
    lanes(|lane| {
        for interval in [1, 5, 50] {
            for (way, save) in [
                ("write", user::write as fn(&Path, &str)),
                ("replace", user::replace),
            ] {
                let (name, path) = lane.tracked(&format!("{way}-{interval}.txt"), "one\n");
                let done = AtomicBool::new(false);
                let listed = std::thread::scope(|scope| {
                    let poller = scope.spawn(|| {
                        let mut session = lane.world.session(&lane.agent.name);
                        let mut listed = 0;
                        loop {
                            let last = done.load(Ordering::SeqCst);
                            listed += session.taken().iter().filter(|path| **path == name).count();
                            if last {
                                return listed;
                            }
                            pause(interval);
                        }
                    });
                    pause(3 * interval + lane.rep as u64 % 7);
                    save(&path, "two\n");
                    pause(3 * interval);
                    done.store(true, Ordering::SeqCst);
                    poller.join().unwrap()
                });
                assert_eq!(listed, 1, "{name} {:#?}", lane.agent.history(&name));
            }
        }
    });
}

#[test]
fn s29_the_tracked_path_is_a_symlink() {
    lanes(|lane| {
        let (_, target) = lane.untracked("elsewhere/deep/target.txt", "one\n");
        let link = lane.dir().join("link.txt");
        std::os::unix::fs::symlink("elsewhere/deep/target.txt", &link).unwrap();
        let name = lane.name("link.txt");
        lane.agent.read(&name);
        user::write(&target, "two\n");
        lane.reported_one(&name);
        user::replace(&target, "three\n");
        lane.reported_one(&name);
        assert_eq!(lane.agent.status(&name)["hash"], sha256("three\n"));
        // The link itself is pointed elsewhere.
        lane.untracked("elsewhere/other.txt", "four\n");
        let new = lane.dir().join("link.new");
        std::os::unix::fs::symlink("elsewhere/other.txt", &new).unwrap();
        fs::rename(&new, &link).unwrap();
        lane.reported_one(&name);
        assert_eq!(lane.agent.status(&name)["hash"], sha256("four\n"));
        user::write(&lane.dir().join("elsewhere/other.txt"), "five\n");
        lane.reported_one(&name);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    });
}

/// A slow save in place, with a query in its middle, also before an edit: what
/// is reported is the saved content (ATTR-12).
#[test]
fn who_asks_in_the_middle_of_a_save_is_told_of_its_end() {
    let mut world = World::new();
    world.file("a.txt", "one\n");
    let mut agent = world.session("s");
    agent.read("a.txt");
    let asks = |agent: &mut Session| {
        let status = json!({"session": "s", "paths": ["a.txt"]});
        let taken = json!({"session": "s"});
        let begun = json!({"session": "s", "files": [{"path": "a.txt"}]});
        [
            agent.client.send("file/status", &status),
            agent.client.send("modified/take", &taken),
            agent.client.send("edit/begin", &begun),
        ]
    };
    let save = |half: &str, rest: &str, between: &mut dyn FnMut()| {
        let mut file = fs::File::create(world.path("a.txt")).unwrap();
        file.write_all(half.as_bytes()).unwrap();
        between();
        file.write_all(rest.as_bytes()).unwrap();
    };
    let mut asked = None;
    save("half", " and half\n", &mut || {
        asked = Some(asks(&mut agent));
        user::pause(60);
    });
    let [status, taken, begun] = asked.unwrap();
    let status = agent.client.answer(status).unwrap();
    let whole = sha256("half and half\n");
    assert_eq!(status["files"][0]["hash"], whole, "{status}");
    assert_eq!(status["files"][0]["state"], "stale", "{status}");
    let taken = agent.client.answer(taken).unwrap();
    assert_eq!(taken["changes"][0]["hash"], whole, "{taken}");
    assert_eq!(agent.client.answer(begun).unwrap_err().name, "stale");
    assert_eq!(agent.story("a.txt"), ["user unmarked"]);
    // One that takes longer is told as what is there.
    agent.read("a.txt");
    save("half", " again\n", &mut || {
        user::pause(300);
        let status = agent.status("a.txt");
        assert_eq!(status["hash"], sha256("half"), "{status}");
    });
    assert_eq!(agent.status("a.txt")["hash"], sha256("half again\n"));
    world.healthy();
}
