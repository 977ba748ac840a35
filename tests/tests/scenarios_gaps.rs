//! The row of the scenarios' table about a daemon that is down: S11.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use touchmark_tests::{authors, own_worlds, paths, sha256, text, user};

#[test]
fn s11_the_daemon_is_down_while_a_user_edits() {
    own_worlds(|world, rep| {
        let names = [
            "edited.txt",
            "deleted.txt",
            "same.txt",
            "agent.txt",
            "replaced.txt",
        ];
        let mut agent = world.session("s");
        for name in names {
            world.file(name, "one\n");
            agent.read(name);
        }
        world.file("created.txt", "");
        fs::remove_file(world.path("created.txt")).unwrap();
        agent.mark("created.txt", Some("new\n"));
        let edit = agent.begin("agent.txt", Some("agent\n")).unwrap();
        // By kill or by a clean end.
        if rep.is_multiple_of(2) {
            world.kill();
        } else {
            assert_eq!(world.stop(), Some(0), "{}", world.log());
        }
        user::write(&world.path("edited.txt"), "user\n");
        user::replace(&world.path("replaced.txt"), "user\n");
        fs::remove_file(world.path("deleted.txt")).unwrap();
        user::write(&world.path("same.txt"), "two\n");
        user::write(&world.path("same.txt"), "one\n");
        // The agent writes what it had declared.
        user::write(&world.path("agent.txt"), "agent\n");
        world.start();
        let mut agent = world.session("s");
        let changes = agent.take();
        assert_eq!(
            paths(&changes),
            ["deleted.txt", "edited.txt", "replaced.txt"],
            "{changes:?}"
        );
        for change in &changes {
            assert_eq!(authors(change), ["unknown"], "{change}");
            assert_eq!(change["evidence"][0], "gap", "{change}");
        }
        assert_eq!(agent.state("same.txt"), "fresh");
        // ATTR-13: a difference that matches an open declaration is the
        // session's; ATTR-9: the daemon's death ends no edit.
        assert_eq!(agent.state("agent.txt"), "fresh");
        assert_eq!(agent.story("agent.txt"), ["agent:s declared"]);
        let outcome = agent.commit(&edit, "agent.txt", Some("agent\n"));
        assert_eq!(text(&outcome, "outcome"), "applied", "{outcome}");
        assert_eq!(agent.take(), Vec::<serde_json::Value>::new());
        // Watched again.
        user::write(&world.path("edited.txt"), "user again\n");
        let changes = agent.take();
        assert_eq!(paths(&changes), ["edited.txt"]);
        assert_eq!(changes[0]["hash"], sha256("user again\n"));
    });
}
