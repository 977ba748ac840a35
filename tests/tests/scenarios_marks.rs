//! Rows of the scenarios' table about an agent's own edits: S1 to S6, S13 to
//! S18, S34, S42. Each is run for every way to announce an edit, where that
//! makes sense. The names of files say which.

use serde_json::json;
use touchmark_tests::children::unshared;
use touchmark_tests::user::{self, pause};
use touchmark_tests::{Lane, Way, author, authors, lanes, paths, sha256, text};

/// Returns the successive authors. A busy machine reads some saves in their
/// middle, which makes additional versions of the same author, or of an empty
/// file that does not matter.
fn writers(lane: &mut Lane, name: &str) -> Vec<String> {
    let mut story = lane.agent.story_of_texts(name);
    story.dedup();
    story
}

#[test]
fn s1_agent_marks_and_writes_once() {
    lanes(|lane| {
        for way in Way::ALL {
            let (name, _) = lane.tracked(&format!("{way:?}.txt"), "one\n");
            lane.agent.edit(way, &name, "one\ntwo\n", |path| {
                user::write(path, "one\ntwo\n")
            });
            lane.own(&name);
            let session = lane.agent.name.clone();
            assert_eq!(writers(lane, &name), [way.story(&session)], "{name}");
        }
    });
}

#[test]
fn s2_agent_writes_in_two_chunks_with_the_file_kept_open() {
    lanes(|lane| {
        for gap in [50, 90, 150, 200, 400] {
            for way in Way::ALL {
                let (name, _) = lane.tracked(&format!("{way:?}-{gap}.txt"), "one\n");
                lane.agent.edit(way, &name, "first\nsecond\n", |path| {
                    user::write_in_two(path, "first\n", "second\n", gap);
                });
                lane.own(&name);
            }
        }
    });
}

/// S2 again, with a query of another session between the chunks, so that the
/// daemon reads the file. What it reads then becomes no version.
#[test]
fn s2_agent_writes_in_two_chunks_and_somebody_asks_between() {
    lanes(|lane| {
        for way in [Way::Declared, Way::Edit, Way::CommitHash] {
            let (name, path) = lane.tracked(&format!("{way:?}.txt"), "one\n");
            let mut other = lane.other("other");
            other.read(&name);
            let whole = "first\nsecond\n";
            let edit = lane.agent.announce(way, &name, whole);
            unshared(|| {
                let mut file = std::fs::File::create(&path).unwrap();
                std::io::Write::write_all(&mut file, b"first\n").unwrap();
                assert_eq!(other.state(&name), "stale");
                std::io::Write::write_all(&mut file, b"second\n").unwrap();
            });
            lane.agent.conclude(way, edit, &name, whole);
            lane.own(&name);
            let author = format!("agent:{}", lane.agent.name);
            let story = lane.agent.story(&name);
            assert!(
                story.iter().all(|version| version.starts_with(&author)),
                "{name}: {story:?}"
            );
            let changes = other.take();
            assert_eq!(changes.len(), 1, "{changes:?}");
            assert_eq!(authors(&changes[0]), [author], "{changes:?}");
        }
    });
}

#[test]
fn s3_agent_writes_by_temporary_file_and_rename() {
    lanes(|lane| {
        for way in Way::ALL {
            let (name, _) = lane.tracked(&format!("{way:?}.txt"), "one\n");
            lane.agent
                .edit(way, &name, "two\n", |path| user::replace(path, "two\n"));
            lane.own(&name);
            let session = lane.agent.name.clone();
            assert_eq!(writers(lane, &name), [way.story(&session)], "{name}");
        }
    });
}

#[test]
fn s4_agent_marks_writes_nothing_and_a_user_edits() {
    lanes(|lane| {
        // Its write fails: nothing happens.
        let (failed, failed_path) = lane.tracked("failed.txt", "one\n");
        lane.agent.mark(&failed, Some("agent\n"));
        // Its write changes nothing.
        let (same, same_path) = lane.tracked("same.txt", "one\n");
        lane.agent.mark(&same, Some("one\n"));
        user::write(&same_path, "one\n");
        // Its edit is given up.
        let (aborted, aborted_path) = lane.tracked("aborted.txt", "one\n");
        let edit = lane.agent.begin(&aborted, None).unwrap();
        lane.agent.abort(&edit);
        // Its edit is given up, declared.
        let (declared, declared_path) = lane.tracked("declared.txt", "one\n");
        let edit = lane.agent.begin(&declared, Some("agent\n")).unwrap();
        lane.agent.abort(&edit);
        // Its edit is committed although nothing was written.
        let (empty, empty_path) = lane.tracked("empty.txt", "one\n");
        let edit = lane.agent.begin(&empty, Some("agent\n")).unwrap();
        let outcome = lane.agent.commit(&edit, &empty, None);
        assert_eq!(outcome["outcome"], "notApplied", "{outcome}");
        // Its edit is committed, and was a no-op.
        let (noop, noop_path) = lane.tracked("noop.txt", "one\n");
        let edit = lane.agent.begin(&noop, None).unwrap();
        user::write(&noop_path, "one\n");
        let outcome = lane.agent.commit(&edit, &noop, Some("one\n"));
        assert_eq!(outcome["outcome"], "unchanged", "{outcome}");
        pause(1000);
        for path in [
            &failed_path,
            &same_path,
            &aborted_path,
            &declared_path,
            &empty_path,
            &noop_path,
        ] {
            user::write(path, "user\n");
        }
        let changes = lane.reported(&[&failed, &same, &aborted, &declared, &empty, &noop]);
        for change in changes {
            assert_eq!(authors(&change), ["user"], "{change}");
        }
    });
}

#[test]
fn s5_agent_writes_and_a_user_edits_soon_after() {
    lanes(|lane| {
        for delay in [0, 20, 50, 80, 100, 500] {
            for way in Way::ALL {
                let (name, path) = lane.tracked(&format!("{way:?}-{delay}.txt"), "one\n");
                lane.agent
                    .edit(way, &name, "agent\n", |path| user::write(path, "agent\n"));
                pause(delay);
                user::write(&path, "agent\nuser\n");
                let change = lane.reported_one(&name);
                assert_eq!(authors(&change), ["user"], "{name}: {change}");
                assert_eq!(change["hash"], sha256("agent\nuser\n"), "{change}");
            }
        }
    });
}

/// S5 with the user's edit between the agent's write and its commit. The commit
/// names what was written, and its answer says that it was overwritten.
#[test]
fn s5_agent_writes_and_a_user_edits_before_the_commit() {
    lanes(|lane| {
        for delay in [0, 1, 20, 100] {
            for way in [Way::Edit, Way::CommitHash] {
                let (name, path) = lane.tracked(&format!("{way:?}-{delay}.txt"), "one\n");
                let edit = lane.agent.announce(way, &name, "agent\n");
                user::write(&path, "agent\n");
                pause(delay);
                user::write(&path, "agent\nuser\n");
                let outcome = lane.agent.conclude(way, edit, &name, "agent\n");
                assert_eq!(outcome.as_deref(), Some("overwritten"), "{name}");
                let change = lane.reported_one(&name);
                assert!(authors(&change).contains(&"user".to_owned()), "{change}");
                let status = lane.agent.status(&name);
                assert_eq!(status["seenHash"], sha256("agent\n"), "{status}");
            }
        }
    });
}

#[test]
fn s6_a_user_edits_and_the_agent_overwrites() {
    lanes(|lane| {
        for delay in [0, 20, 50, 100] {
            // An edit is refused.
            for expect in [Some("agent\n"), None] {
                let declared = expect.is_some();
                let (name, path) = lane.tracked(&format!("begin-{declared}-{delay}.txt"), "one\n");
                user::write(&path, "user\n");
                pause(delay);
                let error = lane.agent.begin(&name, expect).unwrap_err();
                assert_eq!(error.name, "stale", "{error}");
                assert_eq!(
                    author(&error.data["changedBy"][0]),
                    "user",
                    "{}",
                    error.data
                );
                assert_eq!(error.data["hash"], sha256("user\n"), "{}", error.data);
                assert_eq!(error.data["seenHash"], sha256("one\n"), "{}", error.data);
                lane.reported_one(&name);
            }
            // A mark asks nothing, and what it destroys is reported as lost.
            for expect in [Some("agent\n"), None] {
                let declared = expect.is_some();
                let (name, path) = lane.tracked(&format!("mark-{declared}-{delay}.txt"), "one\n");
                user::write(&path, "user\n");
                pause(delay);
                lane.agent.mark(&name, expect);
                user::write(&path, "agent\n");
                let change = lane.listed(&[&name]).remove(0);
                lost(&change, &name);
                assert_eq!(lane.agent.state(&name), "fresh");
            }
            // So is what an edit by force destroys, and its commit says so.
            let (name, path) = lane.tracked(&format!("force-{delay}.txt"), "one\n");
            user::write(&path, "user\n");
            pause(delay);
            let begun = lane.agent.ok(
                "edit/begin",
                json!({"files": [{"path": name, "expect": sha256("agent\n")}], "force": true}),
            );
            user::write(&path, "agent\n");
            let outcome = lane
                .agent
                .commit(&text(&begun, "edit"), &name, Some("agent\n"));
            assert_eq!(outcome["outcome"], "clobbered", "{outcome}");
            let change = lane.listed(&[&name]).remove(0);
            lost(&change, &name);
        }
    });
}

/// Checks that the change reports the user's version as overwritten unseen.
fn lost(change: &serde_json::Value, name: &str) {
    assert_eq!(
        author(&change["lost"]["author"]),
        "user",
        "{name}: {change}"
    );
    assert_eq!(change["lost"]["hash"], sha256("user\n"), "{name}: {change}");
}

#[test]
fn s13_one_session_edits_what_another_read() {
    lanes(|lane| {
        for way in Way::ALL {
            let (name, _) = lane.tracked(&format!("{way:?}.txt"), "one\n");
            let mut other = lane.other("other");
            other.read(&name);
            lane.agent
                .edit(way, &name, "agent\n", |path| user::write(path, "agent\n"));
            let changes = other.take();
            assert_eq!(changes.len(), 1, "{changes:?}");
            assert_eq!(changes[0]["path"], name, "{changes:?}");
            assert_eq!(
                authors(&changes[0]),
                [format!("agent:{}", lane.agent.name)],
                "{changes:?}"
            );
            assert_eq!(other.state(&name), "stale");
            assert_eq!(other.take(), Vec::<serde_json::Value>::new());
            lane.own(&name);
            other.read(&name);
        }
    });
}

#[test]
fn s14_two_requests_track_a_file_at_once() {
    lanes(|lane| {
        for way in Way::ALL {
            let (name, _) = lane.untracked(&format!("{way:?}.txt"), "one\n");
            let barrier = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let mut same = lane.world.session(&lane.agent.name);
                        barrier.wait();
                        same.read(&name);
                    });
                }
            });
            lane.agent
                .edit(way, &name, "two\n", |path| user::write(path, "two\n"));
            lane.own(&name);
        }
    });
}

#[test]
fn s15_agent_creates_a_file_and_a_user_edits_it() {
    lanes(|lane| {
        let mut names = Vec::new();
        for way in Way::ALL {
            let name = lane.name(&format!("{way:?}.txt"));
            lane.agent
                .edit(way, &name, "agent\n", |path| user::write(path, "agent\n"));
            lane.own(&name);
            names.push(name);
        }
        pause(2000);
        for name in &names {
            user::write(&lane.world.path(name), "agent\nuser\n");
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for change in lane.reported(&names) {
            assert_eq!(authors(&change), ["user"], "{change}");
        }
    });
}

#[test]
fn s16_agent_marks_after_each_write() {
    lanes(|lane| {
        for delay in [0, 50, 300] {
            let (name, path) = lane.tracked(&format!("{delay}.txt"), "0\n");
            for edit in 1..=5 {
                let content = format!("agent {edit}\n");
                user::write(&path, &content);
                pause(delay);
                let marked = lane.agent.mark(&name, Some(&content));
                assert_eq!(marked["late"], true, "edit {edit}: {marked}");
                assert!(marked["edit"].is_null(), "{marked}");
            }
            lane.own(&name);
            user::write(&path, "user\n");
            let change = lane.reported_one(&name);
            assert_eq!(authors(&change), ["user"], "{name}: {change}");
        }
    });
}

/// S16 with a commit without an edit instead of the late mark.
#[test]
fn s16_agent_commits_after_each_write() {
    lanes(|lane| {
        let (name, path) = lane.tracked("late.txt", "0\n");
        for edit in 1..=5 {
            let content = format!("agent {edit}\n");
            user::write(&path, &content);
            let done = lane.agent.ok(
                "edit/commit",
                json!({"files": [{"path": name, "hash": sha256(&content)}]}),
            );
            assert_eq!(done["files"][0]["outcome"], "applied", "{done}");
            assert_eq!(done["files"][0]["late"], true, "{done}");
        }
        lane.own(&name);
        user::write(&path, "user\n");
        assert_eq!(authors(&lane.reported_one(&name)), ["user"]);
    });
}

#[test]
fn s17_one_file_by_two_spellings() {
    lanes(|lane| {
        let (name, path) = lane.tracked("x.ts", "one\n");
        let dotted = format!("./{name}");
        let detour = format!("nowhere/../{name}");
        let absolute = path.to_str().unwrap().to_owned();
        for (number, spelling) in [dotted, detour, absolute].iter().enumerate() {
            let content = format!("agent {number}\n");
            lane.agent.mark(spelling, Some(&content));
            user::write(&path, &content);
            lane.own(&name);
            assert_eq!(text(&lane.agent.status(spelling), "path"), name);
        }
    });
}

#[test]
fn s18_agent_writes_the_old_bytes_back() {
    lanes(|lane| {
        // Its new text was refused after it had been written.
        let (marked, path) = lane.tracked("marked.txt", "old\n");
        lane.agent.mark(&marked, Some("new\n"));
        user::write(&path, "new\n");
        lane.agent.sync();
        user::write(&path, "old\n");
        // No client reports that this was the agent's tool and no user: it is a
        // change that takes the edit back (SEEN-2).
        let told = lane.agent.take();
        assert_eq!(paths(&told), std::slice::from_ref(&marked), "{told:?}");
        assert_eq!(told[0]["reverts"].as_array().map(Vec::len), Some(1));
        lane.silent();
        // The same with an edit that is given up: its content was the agent's.
        let (begun, path) = lane.tracked("begun.txt", "old\n");
        let edit = lane.agent.begin(&begun, Some("new\n")).unwrap();
        user::write(&path, "new\n");
        lane.agent.abort(&edit);
        user::write(&path, "old\n");
        let told = lane.agent.take();
        assert_eq!(paths(&told), std::slice::from_ref(&begun), "{told:?}");
        lane.silent();
        // The edit was refused before it was written; the old bytes are
        // written over themselves.
        let (refused, path) = lane.tracked("refused.txt", "old\n");
        let mut other = lane.other("holder");
        other.read(&refused);
        let holds = other.begin(&refused, None).unwrap();
        let error = lane.agent.begin(&refused, Some("new\n")).unwrap_err();
        assert_eq!(error.name, "busy", "{error}");
        other.abort(&holds);
        user::write(&path, "old\n");
        lane.silent();
        assert_eq!(lane.agent.state(&refused), "fresh");
        for name in [&marked, &begun] {
            assert_eq!(lane.agent.state(name), "stale", "{name}");
        }
    });
}

#[test]
fn s34_two_agent_edits_each_marked_before_its_write() {
    lanes(|lane| {
        for gap in [100, 150, 250] {
            for way in Way::ALL {
                let (name, _) = lane.tracked(&format!("{way:?}-{gap}.txt"), "one\n");
                lane.agent
                    .edit(way, &name, "first\n", |path| user::write(path, "first\n"));
                pause(gap);
                lane.agent
                    .edit(way, &name, "second\n", |path| user::write(path, "second\n"));
                lane.own(&name);
            }
        }
    });
}

#[test]
fn s42_the_editor_saves_the_agents_bytes_again() {
    lanes(|lane: &mut Lane| {
        for (order, late) in [("after", true), ("before", false)] {
            let (name, path) = lane.tracked(&format!("{order}.txt"), "one\n");
            lane.agent.mark(&name, Some("agent\n"));
            user::write(&path, "agent\n");
            if late {
                // The editor reloads, saves the same bytes and says so.
                user::write(&path, "agent\n");
            }
            lane.agent.client.ok(
                "editor/didSave",
                json!({"path": name, "hash": sha256("agent\n")}),
            );
            if !late {
                user::write(&path, "agent\n");
            }
            lane.own(&name);
            let declared = Way::Declared.story(&lane.agent.name);
            assert_eq!(writers(lane, &name), [declared], "{name}");
        }
    });
}
