//! FILE-1 to FILE-4: one file and all its names.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::fs::{CWD, RenameFlags};
use serde_json::{Value, json};
use touchmark_tests::mounts;
use touchmark_tests::process::Stopped;
use touchmark_tests::{Session, World, authors, sha256, text, user};

/// Returns the changes that a session is told: each path with its kind and its
/// authors.
fn told(agent: &mut Session) -> Vec<String> {
    let row = |change: &Value| {
        let (path, kind) = (text(change, "path"), text(change, "kind"));
        format!("{path} {kind} by {}", authors(change).join(", "))
    };
    agent.take().iter().map(row).collect()
}

/// Makes a second name of `lib/a`, in one of three ways.
fn second_name(world: &World, how: &str) -> &'static str {
    match how {
        "directory" => symlink("lib", world.path("src")).unwrap(),
        "symlink" => symlink("lib/a", world.path("b")).unwrap(),
        _ => fs::hard_link(world.path("lib/a"), world.path("b")).unwrap(),
    }
    if how == "directory" { "src/a" } else { "b" }
}

const WAYS: [&str; 3] = ["directory", "symlink", "hard link"];

#[test]
fn file1_one_edit_one_author_and_one_telling_whatever_the_name() {
    for how in WAYS {
        let world = World::new();
        world.file("lib/a", "one\n");
        let other = second_name(&world, how);
        let (mut writer, mut reader) = (world.session("w"), world.session("r"));
        writer.read("lib/a");
        writer.read(other);
        reader.read(other);
        let edit = writer.begin("lib/a", Some("two\n")).unwrap();
        let error = reader.begin(other, None).unwrap_err();
        assert_eq!(error.name, "busy", "{how}: {error}");
        assert_eq!(error.data["path"], other, "{how}: {error}");
        user::write(&world.path("lib/a"), "two\n");
        let done = writer.commit(&edit, "lib/a", Some("two\n"));
        assert_eq!(done["outcome"], "applied", "{how}: {done}");
        assert_eq!(told(&mut writer), [""; 0], "{how}");
        let expected = format!("{other} modified by agent:w");
        assert_eq!(told(&mut reader), [expected], "{how}");
        assert_eq!(told(&mut reader), [""; 0], "{how}: once");
    }
}

#[test]
fn file1_a_guarded_write_by_any_name_is_its_sessions_and_keeps_the_names_together() {
    for how in WAYS {
        let world = World::new();
        world.file("lib/a", "one\n");
        let other = second_name(&world, how);
        let (mut writer, mut reader) = (world.session("w"), world.session("r"));
        writer.read(other);
        reader.read("lib/a");
        let written = writer.ok("file/write", json!({"path": other, "text": "two\n"}));
        assert_eq!(written["version"]["path"], other, "{how}: {written}");
        assert_eq!(fs::read(world.path("lib/a")).unwrap(), b"two\n", "{how}");
        assert_eq!(told(&mut reader), ["lib/a modified by agent:w"], "{how}");
        assert_eq!(writer.state("lib/a"), "fresh", "{how}");
    }
}

#[test]
fn file1_what_was_seen_by_one_name_was_seen_by_all() {
    for how in WAYS {
        let world = World::new();
        world.file("lib/a", "one\n");
        let mut agent = world.session("s");
        agent.read("lib/a");
        // The other name is made after the file was read.
        let other = second_name(&world, how);
        let status = agent.status(other);
        assert_eq!(text(&status, "path"), other, "{how}: {status}");
        assert_eq!(text(&status, "state"), "fresh", "{how}: {status}");
        let edit = agent.begin(other, None).unwrap();
        agent.abort(&edit);
        user::write(&world.path(other), "two\n");
        // Under the name it used last, and once.
        let expected = format!("{other} modified by user");
        assert_eq!(told(&mut agent), [expected], "{how}");
        assert_eq!(agent.story("lib/a"), agent.story(other), "{how}");
    }
}

#[test]
fn file1_looking_by_another_name_changes_nothing() {
    let world = World::new();
    world.file("d/a", "one\n");
    world.file("e/c", "");
    fs::hard_link(world.path("d/a"), world.path("e/b")).unwrap();
    let mut agent = world.session("s");
    agent.read("d/a");
    let mut other = world.session("o");
    agent.status("e/b");
    other.ok("file/readText", json!({"path": "e/b", "track": false}));
    other.client.ok("file/snapshot", json!({"path": "e/b"}));
    other.read("e/b");
    other.ok("session/close", json!({"forget": true}));
    user::append(&world.path("e/b"), "two\n");
    assert_eq!(agent.state("d/a"), "stale");
    assert_eq!(told(&mut agent), ["d/a modified by user"]);
}

#[test]
fn file2_a_link_that_an_editor_breaks_goes_on_by_itself() {
    let world = World::new();
    world.file("a", "one\n");
    fs::hard_link(world.path("a"), world.path("b")).unwrap();
    let names = ["a", "b", "both"];
    let [mut a, mut b, mut both] = names.map(|name| world.session(name));
    a.read("a");
    b.read("b");
    both.read("a");
    both.read("b");
    user::replace(&world.path("b"), "two\n");
    assert_eq!(told(&mut a), [""; 0]);
    assert_eq!(told(&mut b), ["b modified by user"]);
    assert_eq!(told(&mut both), ["b modified by user"]);
    assert_eq!(
        (a.state("a"), both.state("a")),
        ("fresh".into(), "fresh".into())
    );
    // Each has the history up to then.
    assert_eq!(a.history("a").len(), 1);
    assert_eq!(b.history("b").len(), 2);
    assert!(b.history("b").iter().all(|version| version["path"] == "b"));
    // The name that was tracked first goes the same way.
    user::replace(&world.path("a"), "three\n");
    assert_eq!(told(&mut a), ["a modified by user"]);
    assert_eq!(told(&mut b), [""; 0]);
    assert_eq!(told(&mut both), ["a modified by user"]);
}

#[test]
fn file2_an_edit_goes_with_the_name_it_was_begun_by() {
    for first in ["a", "b"] {
        let world = World::new();
        world.file("a", "one\n");
        fs::hard_link(world.path("a"), world.path("b")).unwrap();
        let (mut writer, mut reader) = (world.session("w"), world.session("r"));
        reader.read(first);
        reader.read(if first == "a" { "b" } else { "a" });
        writer.read("a");
        writer.read("b");
        let edit = writer.begin("b", Some("two\n")).unwrap();
        writer.read("a");
        user::replace(&world.path("b"), "two\n");
        let done = writer.commit(&edit, "b", Some("two\n"));
        // It was no edit of the other name, and leaves none.
        let other = reader.begin("a", None).unwrap();
        reader.abort(&other);
        assert_eq!(done["outcome"], "applied", "{done}");
        assert_eq!(told(&mut writer), [""; 0]);
        assert_eq!(told(&mut reader), ["b modified by agent:w"]);
        assert_eq!(reader.state("a"), "fresh");
    }
}

#[test]
fn file2_names_that_are_linked_again_are_one_again() {
    // Whichever of them sorts first.
    for [one, other] in [["a", "b"], ["b", "a"]] {
        let world = World::new();
        world.file(one, "one\n");
        world.file(other, "other\n");
        let (mut a, mut b) = (world.session("a"), world.session("b"));
        a.read(one);
        b.read(other);
        fs::remove_file(world.path(other)).unwrap();
        fs::hard_link(world.path(one), world.path(other)).unwrap();
        assert_eq!(told(&mut a), [""; 0]);
        assert_eq!(told(&mut b), [format!("{other} modified by user")]);
        b.read(other);
        let edit = a.begin(one, Some("two\n")).unwrap();
        assert_eq!(b.begin(other, None).unwrap_err().name, "busy");
        user::write(&world.path(one), "two\n");
        a.commit(&edit, one, Some("two\n"));
        assert_eq!(told(&mut b), [format!("{other} modified by agent:a")]);
        fs::remove_file(world.path(one)).unwrap();
        assert_eq!(told(&mut a), [format!("{one} deleted by user")]);
        assert_eq!(told(&mut b), [""; 0]);
    }
}

#[test]
fn file2_a_release_is_switched_behind_its_link() {
    let world = World::new();
    world.file("v1/f", "1\n");
    world.file("v2/f", "2\n");
    symlink("v1", world.path("current")).unwrap();
    let [mut link, mut old, mut new] = ["l", "o", "n"].map(|name| world.session(name));
    link.read("current/f");
    old.read("v1/f");
    new.read("v2/f");
    symlink("v2", world.path("next")).unwrap();
    fs::rename(world.path("next"), world.path("current")).unwrap();
    assert_eq!(told(&mut link), ["current/f modified by user"]);
    assert_eq!((told(&mut old).len(), told(&mut new).len()), (0, 0));
    link.read("current/f");
    user::write(&world.path("v2/f"), "2b\n");
    assert_eq!(told(&mut link), ["current/f modified by user"]);
    assert_eq!(told(&mut new), ["v2/f modified by user"]);
    assert_eq!(told(&mut old), [""; 0]);
    user::write(&world.path("v1/f"), "1b\n");
    assert_eq!(told(&mut old), ["v1/f modified by user"]);
    assert_eq!((told(&mut link).len(), told(&mut new).len()), (0, 0));
}

#[test]
fn file2_a_file_made_anew_behind_a_symlink_is_still_the_edits() {
    for asked in [false, true] {
        let world = World::new();
        world.file("lib/a", "one\n");
        symlink("lib", world.path("src")).unwrap();
        let (mut writer, mut reader) = (world.session("w"), world.session("r"));
        writer.read("src/a");
        reader.read("lib/a");
        let edit = writer.begin("src/a", Some("two\n")).unwrap();
        fs::remove_file(world.path("lib/a")).unwrap();
        if asked {
            reader.status("lib/a");
        }
        user::write(&world.path("lib/a"), "two\n");
        writer.commit(&edit, "src/a", Some("two\n"));
        assert_eq!(told(&mut writer), [""; 0]);
        assert_eq!(told(&mut reader), ["lib/a modified by agent:w"]);
    }
}

/// Points a name to another file, replacing what it was.
fn point(world: &World, name: &str, to: &str) {
    symlink(to, world.path("new-link")).unwrap();
    fs::rename(world.path("new-link"), world.path(name)).unwrap();
}

#[test]
fn file2_a_name_that_becomes_another_files_has_that_files_history() {
    for how in ["symlink", "hard link"] {
        for writer_first in [false, true] {
            let world = World::new();
            world.file("la", "old\n");
            world.file("d/b", "one\n");
            let (mut writer, mut reader) = (world.session("w"), world.session("r"));
            if !writer_first {
                reader.read("la");
            }
            writer.read("d/b");
            let edit = writer.begin("d/b", Some("two\n")).unwrap();
            user::write(&world.path("d/b"), "two\n");
            writer.commit(&edit, "d/b", Some("two\n"));
            reader.read("la");
            if how == "symlink" {
                point(&world, "la", "d/b");
            } else {
                fs::remove_file(world.path("la")).unwrap();
                fs::hard_link(world.path("d/b"), world.path("la")).unwrap();
            }
            let case = format!("{how}, the writer first: {writer_first}");
            let rows = told(&mut reader);
            assert_eq!(rows.len(), 1, "{case}: {rows:?}");
            assert!(rows[0].starts_with("la modified by "), "{case}: {rows:?}");
            assert!(rows[0].contains("agent:w"), "{case}: {rows:?}");
            assert_eq!(told(&mut writer), [""; 0], "{case}");
            for name in ["d/b", "la"] {
                let history = reader.history(name);
                assert_eq!(history.len(), 2, "{case}: {history:?}");
                assert_eq!(authors_of(&history[0]), "agent:w", "{case}: {history:?}");
            }
        }
    }
}

/// Returns the author of a version.
fn authors_of(version: &Value) -> String {
    touchmark_tests::author(&version["author"])
}

#[test]
fn file1_what_comes_behind_a_dangling_link_has_one_author() {
    for asked in [false, true] {
        let world = World::new();
        world.file("v/other", "");
        let (mut waiting, mut writer) = (world.session("w"), world.session("a"));
        let edit = waiting.begin("la", Some("never\n")).unwrap();
        waiting.abort(&edit);
        let edit = writer.begin("v/a", Some("one\n")).unwrap();
        symlink("v/a", world.path("la")).unwrap();
        if asked {
            waiting.status("la");
        }
        user::write(&world.path("v/a"), "one\n");
        writer.commit(&edit, "v/a", Some("one\n"));
        assert_eq!(told(&mut waiting), ["la created by agent:a"], "{asked}");
        assert_eq!(waiting.history("la").len(), writer.history("v/a").len());
    }
}

#[test]
fn file2_a_name_that_leads_to_nothing_is_no_name_of_it() {
    let world = World::new();
    world.file("lb", "one\n");
    world.file("v/other", "");
    let mut agent = world.session("s");
    agent.read("lb");
    point(&world, "lb", "v/a");
    assert_eq!(agent.state("v/a"), "unread");
    assert_eq!(told(&mut agent), ["lb deleted by user"]);
    user::write(&world.path("v/a"), "two\n");
    assert_eq!(
        (agent.state("lb"), agent.state("v/a")),
        ("stale".into(), "stale".into())
    );
    assert_eq!(told(&mut agent), ["lb modified by user"]);
}

#[test]
fn file1_a_name_that_nobody_used_has_the_files_history() {
    let world = World::new();
    world.file("d/a", "one\n");
    symlink("d", world.path("ld")).unwrap();
    let mut agent = world.session("s");
    agent.read("d/a");
    let edit = agent.begin("d/a", Some("two\n")).unwrap();
    user::write(&world.path("ld/a"), "two\n");
    agent.commit(&edit, "d/a", Some("two\n"));
    let history = agent.history("ld/a");
    assert_eq!(history.len(), 2, "{history:?}");
    assert_eq!(history[0]["path"], "ld/a", "{history:?}");
    // It has no past of its own once it parts.
    fs::remove_file(world.path("ld")).unwrap();
    assert_eq!(agent.state("ld/a"), "unread");
    assert_eq!(agent.state("d/a"), "fresh");
}

#[test]
fn file1_a_link_that_changed_places_with_another_file_is_the_file_still() {
    let world = World::new();
    world.file("lb", "one\n");
    world.file("c", "other\n");
    world.file("k/other", "");
    fs::hard_link(world.path("lb"), world.path("k/a")).unwrap();
    let (mut one, mut other) = (world.session("o"), world.session("p"));
    one.read("k/a");
    let [a, c] = ["k/a", "c"].map(|name| world.path(name));
    rustix::fs::renameat_with(CWD, a, CWD, c, RenameFlags::EXCHANGE).unwrap();
    other.read("lb");
    assert_eq!(other.state("c"), "fresh");
    assert_eq!(one.state("k/a"), "stale");
}

#[test]
fn file2_a_link_renamed_and_made_anew_takes_nothing_along() {
    let world = World::new();
    world.file("d/b", "one\n");
    world.file("la", "other\n");
    let mut agent = world.session("s");
    agent.read("d/b");
    fs::rename(world.path("la"), world.path("c")).unwrap();
    symlink("d/b", world.path("la")).unwrap();
    let asked = agent.ok("file/status", json!({"paths": ["c", "la"]}));
    let states: Vec<String> = (0..2).map(|n| text(&asked["files"][n], "state")).collect();
    assert_eq!(states, ["unread", "fresh"], "{asked}");
}

#[test]
fn file3_a_name_given_up_does_not_blind_the_other() {
    for how in ["untracked", "removed", "moved away", "replaced", "first"] {
        let world = World::new();
        world.file("d1/a", "one\n");
        world.file("d2/other", "");
        world.file("unwatched/other", "");
        let third = world.path("unwatched/third");
        fs::hard_link(world.path("d1/a"), world.path("d2/b")).unwrap();
        fs::hard_link(world.path("d1/a"), &third).unwrap();
        let mut agent = world.session("s");
        agent.read("d1/a");
        agent.read("d2/b");
        user::append(&third, "two\n");
        assert_eq!(agent.state("d1/a"), "stale", "{how}");
        agent.read("d1/a");
        agent.read("d2/b");
        let b = world.path("d2/b");
        match how {
            "untracked" => drop(agent.ok("file/untrack", json!({"path": "d2/b"}))),
            "removed" => fs::remove_file(&b).unwrap(),
            "moved away" => fs::rename(&b, world.outside().join("b")).unwrap(),
            "replaced" => user::replace(&b, "new\n"),
            _ => fs::remove_file(world.path("d1/a")).unwrap(),
        }
        agent.sync();
        user::append(&third, "three\n");
        let left = if how == "first" { "d2/b" } else { "d1/a" };
        let status = agent.status(left);
        assert_eq!(status["state"], "stale", "{how}: {status}");
        let disk = sha256(fs::read(world.path(left)).unwrap());
        assert_eq!(status["hash"], json!(disk), "{how}");
    }
}

#[test]
fn file4_a_directory_replaced_behind_a_symlink_is_found() {
    for asked in [true, false] {
        for moved in [true, false] {
            let world = World::new();
            world.file("build/a", "one\n");
            symlink("build", world.path("out")).unwrap();
            let mut agent = world.session("s");
            agent.read("out/a");
            world.file("next/a", "two\n");
            if moved {
                fs::rename(world.path("build"), world.path("old")).unwrap();
            } else {
                fs::remove_dir_all(world.path("build")).unwrap();
            }
            if asked {
                assert_eq!(agent.state("out/a"), "deleted");
            }
            fs::rename(world.path("next"), world.path("build")).unwrap();
            assert_eq!(agent.state("out/a"), "stale");
            let error = agent.begin("out/a", None).unwrap_err();
            assert_eq!(error.name, "stale", "{error}");
        }
    }
}

#[test]
fn file4_links_and_what_they_lead_to_change_by_turns() {
    for kind in ["relative", "absolute", "chain"] {
        let world = World::new();
        let mut agent = world.session("s");
        world.file("v1/x/f", "1\n");
        world.file("v2/x/f", "2\n");
        let target = |name: &str| match kind {
            "absolute" => world.path(name),
            _ => name.into(),
        };
        symlink(target("v1"), world.path("cur")).unwrap();
        if kind == "chain" {
            symlink("cur", world.path("cur2")).unwrap();
        }
        let path = if kind == "chain" {
            "cur2/x/f"
        } else {
            "cur/x/f"
        };
        agent.read(path);
        symlink(target("v2"), world.path("new")).unwrap();
        fs::rename(world.path("new"), world.path("cur")).unwrap();
        assert_eq!(agent.state(path), "stale", "{kind}: switched");
        agent.read(path);
        user::write(&world.path("v1/x/f"), "1b\n");
        assert_eq!(agent.state(path), "fresh", "{kind}: the old target");
        fs::rename(world.path("v2"), world.path("v2.old")).unwrap();
        fs::rename(world.path("v1"), world.path("v2")).unwrap();
        assert_eq!(agent.state(path), "stale", "{kind}: replaced");
        agent.read(path);
        user::append(&world.path("v2/x/f"), "more\n");
        assert_eq!(agent.state(path), "stale", "{kind}: written after that");
        agent.read(path);
        fs::remove_file(world.path("cur")).unwrap();
        assert_eq!(agent.state(path), "deleted", "{kind}");
        symlink("/etc", world.path("cur")).unwrap();
        assert_ne!(agent.state(path), "fresh", "{kind}: out of the workspace");
        fs::remove_file(world.path("cur")).unwrap();
        symlink(target("v2"), world.path("cur")).unwrap();
        assert_eq!(agent.state(path), "fresh", "{kind}: back");
    }
}

#[test]
fn names_are_known_after_a_restart_and_after_a_kill() {
    for killed in [false, true] {
        for what in ["nothing", "written", "replaced", "first replaced"] {
            let mut world = World::new();
            world.file("a", "one\n");
            world.file("lib/x", "x1\n");
            fs::hard_link(world.path("a"), world.path("b")).unwrap();
            symlink("lib", world.path("src")).unwrap();
            let (mut one, mut other) = (world.session("o"), world.session("p"));
            for (agent, path) in [(&mut one, "a"), (&mut other, "b")] {
                agent.read(path);
            }
            one.read("lib/x");
            other.read("src/x");
            if killed {
                world.kill();
            } else {
                world.stop();
            }
            match what {
                "written" => user::write(&world.path("b"), "two\n"),
                "replaced" => user::replace(&world.path("b"), "two\n"),
                "first replaced" => user::replace(&world.path("a"), "two\n"),
                _ => {}
            }
            user::write(&world.path("lib/x"), "x2\n");
            world.start();
            let (mut one, mut other) = (world.session("o"), world.session("p"));
            let case = format!("{what}, killed: {killed}");
            let row = |name: &str| format!("{name} modified by unknown");
            let rows = |names: &[&str]| names.iter().map(|name| row(name)).collect::<Vec<_>>();
            let (of_one, of_other): (&[&str], &[&str]) = match what {
                "written" => (&["a", "lib/x"], &["b", "src/x"]),
                "replaced" => (&["lib/x"], &["b", "src/x"]),
                "first replaced" => (&["a", "lib/x"], &["src/x"]),
                _ => (&["lib/x"], &["src/x"]),
            };
            let sorted = |mut rows: Vec<String>| {
                rows.sort();
                rows
            };
            assert_eq!(sorted(told(&mut one)), rows(of_one), "{case}");
            assert_eq!(sorted(told(&mut other)), rows(of_other), "{case}");
            // Where they are one still, an edit by the one name is an edit of
            // the other.
            one.read("a");
            one.read("lib/x");
            other.read("src/x");
            let edit = one.begin("lib/x", Some("x3\n")).unwrap();
            assert_eq!(other.begin("src/x", None).unwrap_err().name, "busy");
            user::write(&world.path("src/x"), "x3\n");
            one.commit(&edit, "lib/x", Some("x3\n"));
            assert_eq!(told(&mut other), ["src/x modified by agent:o"], "{case}");
            world.audit();
        }
    }
}

#[test]
fn file1_a_directory_mounted_once_more_holds_the_same_files() {
    mounts::apart(|| {
        let world = World::new();
        world.file("lib/a", "one\n");
        fs::create_dir(world.path("src")).unwrap();
        let source = world.path("lib");
        mounts::mount("none", source.to_str().unwrap(), "bind", &world.path("src"));
        let (mut writer, mut reader) = (world.session("w"), world.session("r"));
        writer.read("lib/a");
        reader.read("src/a");
        assert_eq!(writer.state("src/a"), "fresh");
        let edit = writer.begin("lib/a", Some("two\n")).unwrap();
        assert_eq!(reader.begin("src/a", None).unwrap_err().name, "busy");
        user::replace(&world.path("src/a"), "two\n");
        writer.commit(&edit, "lib/a", Some("two\n"));
        assert_eq!(told(&mut writer), [""; 0]);
        assert_eq!(told(&mut reader), ["src/a modified by agent:w"]);
        reader.read("src/a");
        // Without the mount, there is nothing by the second name.
        mounts::unmount(&world.path("src"));
        assert_eq!(told(&mut writer), [""; 0]);
        assert_eq!(told(&mut reader), ["src/a deleted by unknown"]);
        user::write(&world.path("lib/a"), "three\n");
        assert_eq!(told(&mut writer), ["lib/a modified by user"]);
    });
}

#[test]
fn file4_what_was_mounted_once_more_and_went_is_looked_up_again() {
    mounts::apart(|| {
        for how in ["renamed", "replaced"] {
            let world = World::new();
            world.file("d/a", "one\n");
            world.file("d/b", "b\n");
            fs::create_dir(world.path("v")).unwrap();
            let source = world.path("d");
            mounts::mount("none", source.to_str().unwrap(), "bind", &world.path("v"));
            let (mut one, mut both) = (world.session("o"), world.session("b"));
            one.read("d/a");
            both.read("v/a");
            if how == "renamed" {
                fs::rename(world.path("d"), world.path("k")).unwrap();
                assert_eq!(one.state("d/a"), "deleted", "{how}");
                assert_eq!(both.state("v/a"), "fresh", "{how}");
            } else {
                world.file("d.new/a", "two\n");
                fs::remove_dir_all(world.path("d")).unwrap();
                fs::rename(world.path("d.new"), world.path("d")).unwrap();
                let state = one.status("d/a");
                assert_eq!(text(&state, "path"), "d/a", "{how}: {state}");
                assert_eq!(text(&state, "hash"), sha256("two\n"), "{how}: {state}");
                assert_eq!(both.state("v/a"), "deleted", "{how}");
            }
            mounts::unmount(&world.path("v"));
        }
    });
}

#[test]
fn file1_another_file_system_in_two_places_holds_the_same_files() {
    mounts::apart(|| {
        let world = World::new();
        for place in ["m", "v"] {
            fs::create_dir(world.path(place)).unwrap();
        }
        mounts::mount("tmpfs", "a-test", "size=1m", &world.path("m"));
        world.file("m/a", "one\n");
        let (mut one, mut other) = (world.session("o"), world.session("p"));
        one.read("m/a");
        let source = world.path("m");
        mounts::mount("none", source.to_str().unwrap(), "bind", &world.path("v"));
        assert_eq!(one.state("v/a"), "fresh");
        other.read("v/a");
        let edit = one.begin("m/a", Some("two\n")).unwrap();
        assert_eq!(other.begin("v/a", None).unwrap_err().name, "busy");
        user::write(&world.path("v/a"), "two\n");
        one.commit(&edit, "m/a", Some("two\n"));
        assert_eq!(told(&mut other), ["v/a modified by agent:o"]);
        // What lies on the one place hides what the other goes on to show.
        mounts::mount("tmpfs", "a-test", "size=1m", &world.path("m"));
        assert_eq!(
            (one.state("m/a"), other.state("v/a")),
            ("deleted".into(), "stale".into())
        );
        other.read("v/a");
        user::write(&world.path("v/a"), "three\n");
        assert_eq!(told(&mut other), ["v/a modified by user"]);
        for place in ["m", "m", "v"] {
            mounts::unmount(&world.path(place));
        }
    });
}

#[test]
fn file1_a_file_mounted_once_more_is_one_file() {
    mounts::apart(|| {
        let world = World::new();
        world.file("lib/a", "one\n");
        world.file("b", "other\n");
        let (mut one, mut other) = (world.session("o"), world.session("p"));
        one.read("lib/a");
        other.read("b");
        let source = world.path("lib/a");
        mounts::mount("none", source.to_str().unwrap(), "bind", &world.path("b"));
        assert_eq!(one.state("b"), "fresh");
        assert_eq!(other.state("b"), "stale");
        other.read("b");
        let edit = one.begin("lib/a", Some("two\n")).unwrap();
        assert_eq!(other.begin("b", None).unwrap_err().name, "busy");
        user::write(&world.path("b"), "two\n");
        one.commit(&edit, "lib/a", Some("two\n"));
        assert_eq!(told(&mut other), ["b modified by agent:o"]);
        mounts::unmount(&world.path("b"));
        assert_eq!(other.state("b"), "stale");
        assert_eq!(told(&mut one), [""; 0]);
    });
}

#[test]
fn a_tree_of_hard_links_costs_what_its_files_do() {
    let world = World::new();
    let files = 300;
    for number in 0..files {
        world.file(&format!("s/{number}"), format!("{number}\n"));
    }
    fs::create_dir(world.path("t")).unwrap();
    for number in 0..files {
        let at = |tree: &str| world.path(format!("{tree}/{number}"));
        fs::hard_link(at("s"), at("t")).unwrap();
    }
    let mut agent = world.session("s");
    for tree in ["s", "t"] {
        let names: Vec<String> = (0..files)
            .map(|number| format!("{tree}/{number}"))
            .collect();
        agent.read_all(&names);
    }
    for number in 0..files {
        user::write(&world.path(format!("s/{number}")), "new\n");
    }
    let told = told(&mut agent);
    assert_eq!(told.len(), files, "each once");
    assert!(told.iter().all(|row| row.starts_with("t/")), "{told:?}");
}

/// A regression: a query by a link made that the name of the copy that a rename
/// had just made.
#[test]
fn file1_a_question_by_a_link_does_not_use_it_for_a_renamed_file() {
    let world = World::new();
    world.file("d/a", "one\n");
    let mut agent = world.session("s");
    agent.read("d/a");
    user::write(&world.path("d/a"), "two\n");
    symlink("k/a", world.path("link")).unwrap();
    fs::rename(world.path("d"), world.path("k")).unwrap();
    assert_eq!(agent.state("link"), "stale");
    let told = told(&mut agent);
    assert!(!told.iter().any(|row| row.starts_with("link")), "{told:?}");
    assert!(told.iter().any(|row| row.starts_with("k/a")), "{told:?}");
}

/// A regression: a link that was named while it was dangling was not joined
/// with the name that a rename made.
#[test]
fn file1_a_link_spoken_of_before_joins_what_a_rename_brings_behind_it() {
    let world = World::new();
    world.file("d/a", "one\n");
    let mut agent = world.session("s");
    agent.begin("link", Some("two\n")).unwrap();
    agent.read("d/a");
    fs::rename(world.path("d"), world.path("k")).unwrap();
    symlink("k/a", world.path("link")).unwrap();
    let answer = agent.ok("file/status", json!({"paths": ["k/a", "link"]}));
    assert_eq!(answer["files"][0]["state"], "fresh", "{answer}");
    assert_eq!(answer["files"][1]["state"], "fresh", "{answer}");
}

/// A regression: what a session had by another name of the file moved with the
/// link as well.
#[test]
fn file2_a_renamed_link_takes_along_who_used_it_and_nobody_else() {
    let world = World::new();
    world.file("d/a", "one\n");
    symlink("d/a", world.path("link")).unwrap();
    let (mut one, mut other) = (world.session("one"), world.session("other"));
    one.read("d/a");
    other.read("link");
    fs::rename(world.path("link"), world.path("moved")).unwrap();
    // By the new name as well, before a request has named it.
    assert_eq!(told(&mut one), [""; 0]);
    fs::remove_file(world.path("d/a")).unwrap();
    assert_eq!(told(&mut one), ["d/a deleted by user"]);
    assert_eq!(other.state("link"), "deleted");
}

/// A regression: a name that had become a link of a file was treated as the
/// older one, because another link had been found to resolve to it. The user
/// was then named for what the agent had just written.
#[test]
fn file1_the_name_that_had_the_file_first_keeps_its_author() {
    let world = World::new();
    world.file("b", "one\n");
    world.file("a", "two\n");
    symlink("b", world.path("link")).unwrap();
    let (mut reader, mut writer) = (world.session("r"), world.session("w"));
    reader.read("b");
    writer.read("a");
    writer.begin("a", Some("three\n")).unwrap();
    user::write(&world.path("a"), "three\n");
    fs::hard_link(world.path("a"), world.path("b.tmp")).unwrap();
    fs::rename(world.path("b.tmp"), world.path("b")).unwrap();
    reader.ok("file/status", json!({"paths": ["link", "a"]}));
    let history = reader.history("a");
    assert_eq!(authors_of(&history[0]), "agent:w", "{history:?}");
}

/// The write is found by one name, after the user has replaced the other.
#[test]
fn file2_a_declared_write_is_the_sessions_by_the_name_that_parted() {
    let mut world = World::new();
    world.file("b", "one\n");
    fs::hard_link(world.path("b"), world.path("a")).unwrap();
    let mut agent = world.session("s");
    agent.read("a");
    agent.read("b");
    let files = json!([{"path": "b", "expect": sha256("two\n")}]);
    let begun = agent.ok("edit/begin", json!({"files": files}));
    let stopped = Stopped::new(world.pid());
    fs::write(world.path("b"), "two\n").unwrap();
    user::replace(&world.path("b"), "three\n");
    drop(stopped);
    let status = agent.ok("file/status", json!({"paths": ["a", "b"]}));
    let states = |n: usize| status["files"][n]["state"].clone();
    assert_eq!(
        (states(0), states(1)),
        (json!("fresh"), json!("stale")),
        "{status}"
    );
    let history = |agent: &mut Session, path: &str| {
        let history = agent.client.ok("file/history", json!({"path": path}));
        history["versions"][0]["author"]["kind"].clone()
    };
    assert_eq!(history(&mut agent, "a"), "agent");
    assert_eq!(history(&mut agent, "b"), "user");
    let ended = agent.ok("edit/commit", json!({"edit": begun["edit"]}));
    assert_eq!(ended["files"][0]["outcome"], "overwritten", "{ended}");
    world.healthy();
}
