//! Rows of the scenarios' table about files that disappear and return: S8, S8r,
//! S8m, S8d, S27.

use std::fs;

use serde_json::json;
use touchmark_tests::user::{self, pause};
use touchmark_tests::{authors, lanes, sha256};

#[test]
fn s8_user_deletes() {
    lanes(|lane| {
        let (name, path) = lane.tracked("a.txt", "one\n");
        fs::remove_file(&path).unwrap();
        let change = lane.reported_one(&name);
        assert_eq!(change["kind"], "deleted", "{change}");
        assert_eq!(authors(&change), ["user"], "{change}");
        assert!(change["hash"].is_null(), "{change}");
        assert_eq!(lane.agent.state(&name), "deleted");
        // The directory goes with it.
        let (name, path) = lane.tracked("d/e/a.txt", "one\n");
        fs::remove_dir_all(path.parent().unwrap().parent().unwrap()).unwrap();
        let change = lane.reported_one(&name);
        assert_eq!(change["kind"], "deleted", "{change}");
    });
}

#[test]
fn s8r_user_deletes_and_creates_again() {
    lanes(|lane| {
        for gap in [1, 5, 20, 50, 100, 500, 2000] {
            let (name, path) = lane.tracked(&format!("{gap}.txt"), "one\n");
            user::recreate(&path, "two\n", gap);
            let change = lane.reported_one(&name);
            assert_eq!(authors(&change), ["user"], "{change}");
            assert_eq!(change["hash"], sha256("two\n"), "{change}");
            assert_eq!(lane.agent.state(&name), "stale");
            // Re-read, and the same with the old content: nothing to tell.
            lane.agent.read(&name);
            if gap <= 100 {
                user::recreate(&path, "two\n", gap);
                lane.own(&name);
            }
        }
    });
}

#[test]
fn s8m_user_renames_away() {
    lanes(|lane| {
        // To a name in the same directory, in another one, and out of the
        // workspace.
        fs::create_dir(lane.dir().join("other")).unwrap();
        let out = lane.world.outside().join(format!("out{}.txt", lane.rep));
        let here = lane.dir();
        for (number, to) in [here.join("b.txt"), here.join("other/b.txt"), out]
            .iter()
            .enumerate()
        {
            let (name, path) = lane.tracked(&format!("a{number}.txt"), "one\n");
            fs::rename(&path, to).unwrap();
            let change = lane.reported_one(&name);
            assert_eq!(authors(&change), ["user"], "{change}");
            assert_eq!(lane.agent.state(&name), "deleted", "{name}");
        }
    });
}

#[test]
fn s8m_user_renames_away_edits_and_renames_back() {
    lanes(|lane| {
        for gap in [0, 1, 50, 200] {
            let (name, path) = lane.tracked(&format!("{gap}.txt"), "one\n");
            let away = lane.dir().join(format!("{gap}.away"));
            fs::rename(&path, &away).unwrap();
            pause(gap);
            user::write(&away, "two\n");
            pause(gap);
            fs::rename(&away, &path).unwrap();
            let change = lane.reported_one(&name);
            assert_eq!(authors(&change), ["user"], "{change}");
            assert_eq!(change["hash"], sha256("two\n"), "{change}");
            assert_eq!(lane.agent.state(&name), "stale");
            // Away and back without an edit: nothing to tell.
            lane.agent.read(&name);
            fs::rename(&path, &away).unwrap();
            if gap < 100 {
                pause(gap);
            }
            fs::rename(&away, &path).unwrap();
            lane.own(&name);
        }
    });
}

#[test]
fn s8d_user_swaps_the_parent_directory() {
    lanes(|lane| {
        for gap in [0, 50] {
            let (name, path) = lane.tracked(&format!("p{gap}/d/a.txt"), "one\n");
            let (same, _) = lane.tracked(&format!("p{gap}/d/same.txt"), "same\n");
            let dir = path.parent().unwrap().to_owned();
            let away = dir.with_extension("away");
            let copy = dir.with_extension("new");
            fs::create_dir(&copy).unwrap();
            user::write(&copy.join("a.txt"), "two\n");
            user::write(&copy.join("same.txt"), "same\n");
            fs::rename(&dir, &away).unwrap();
            pause(gap);
            fs::rename(&copy, &dir).unwrap();
            let change = lane.reported_one(&name);
            assert_eq!(change["hash"], sha256("two\n"), "{change}");
            assert_eq!(lane.agent.state(&same), "fresh");
            // Not blind afterwards.
            user::write(&path, "three\n");
            lane.reported_one(&name);
            user::replace(&path, "four\n");
            lane.reported_one(&name);
            // The same one directory further up. What is moved away is read
            // before, else the moved name's copy would be stale, too.
            lane.agent.read(&name);
            let up = dir.parent().unwrap();
            let away = up.with_extension("away");
            fs::rename(up, &away).unwrap();
            fs::create_dir_all(&dir).unwrap();
            user::write(&path, "five\n");
            user::write(&path.with_file_name("same.txt"), "same\n");
            lane.reported_one(&name);
            user::write(&path, "six\n");
            lane.reported_one(&name);
            assert_eq!(lane.agent.state(&same), "fresh");
        }
    });
}

#[test]
fn s27_unlink_and_create_soon_after_another_edit() {
    lanes(|lane| {
        let mut listener = lane.world.client();
        listener.ok("subscribe", json!({"kinds": ["version"]}));
        for gap in [0, 1, 3] {
            let (name, path) = lane.tracked(&format!("{gap}.txt"), "one\n");
            user::write(&path, "two\n");
            lane.reported_one(&name);
            pause(100);
            user::recreate(&path, "three\n", gap);
            let change = lane.reported_one(&name);
            assert_eq!(change["hash"], sha256("three\n"), "{change}");
            // Without a request between the two, one is reported (SYNC-6): one
            // change, two versions.
            let (name, path) = lane.tracked(&format!("{gap}b.txt"), "one\n");
            user::write(&path, "two\n");
            listener.events_until(|event| {
                event["version"]["path"] == name.as_str()
                    && event["version"]["hash"] == sha256("two\n")
            });
            user::recreate(&path, "three\n", gap);
            let change = lane.reported_one(&name);
            assert_eq!(authors(&change), ["user"], "{change}");
            assert_eq!(change["hash"], sha256("three\n"), "{change}");
            let seen: Vec<_> = lane
                .agent
                .history(&name)
                .iter()
                .filter_map(|version| version["hash"].as_str().map(str::to_owned))
                .collect();
            assert!(seen.contains(&sha256("two\n")), "{gap}: {seen:?}");
        }
    });
}
