//! LOSS-2 and ATTR-13 where file systems come, go and change behind a mount.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use touchmark_tests::{World, authors, mounts, paths, user};

/// A mount within the workspace is taken away and comes back with other
/// content: none of that makes an event on the files.
#[test]
fn attr13_a_mount_inside_the_workspace_goes_and_comes_back() {
    mounts::apart(|| {
        let mut world = World::new();
        let place = world.path("m");
        fs::create_dir(&place).unwrap();
        mounts::mount("tmpfs", "one", "size=1m", &place);
        world.file("m/a.txt", "one\n");
        let mut agent = world.session("s");
        agent.read("m/a.txt");
        assert_eq!(agent.state("m/a.txt"), "fresh");
        user::write(&world.path("m/a.txt"), "two\n");
        assert_eq!(agent.state("m/a.txt"), "stale");
        let changes = agent.take();
        assert_eq!(paths(&changes), ["m/a.txt"]);
        assert_eq!(authors(&changes[0]), ["user"]);
        world.healthy();
    });
}
