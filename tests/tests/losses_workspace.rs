//! ATTR-13 and LIFE-1 where the workspace's directory is removed and another
//! one gets its name: the daemon exits, the next one compares, and no answer
//! comes from the previous content.

use std::fs;

use serde_json::json;
use touchmark_tests::{Session, World, authors, paths, user};

/// Creates and reads files, before anything happens to the directory.
fn begun(world: &World) -> Session {
    for name in ["a.txt", "d/b.txt", "d/gone.txt", "same.txt"] {
        world.file(name, "one\n");
    }
    let mut agent = world.session("s");
    agent.read_all(&["a.txt", "d/b.txt", "d/gone.txt", "same.txt"].map(str::to_owned));
    agent
}

/// Creates the workspace's files again.
fn another(world: &World) {
    world.file("a.txt", "two\n");
    world.file("d/b.txt", "two\n");
    world.file("same.txt", "one\n");
}

/// Checks that the old daemon never answers about the files: it exits, and
/// leaves nothing.
fn ended(world: &mut World, mut agent: Session) {
    let asked = json!({"session": "s", "paths": ["a.txt"]});
    let answer = agent
        .client
        .try_send("file/status", &asked)
        .and_then(|id| agent.client.try_answer(id));
    if let Ok(answer) = answer {
        let error = answer.expect_err("of a directory that is gone");
        assert_eq!(error.name, "shuttingDown", "{error}");
    }
    assert_eq!(world.wait_end(), Some(0), "{}", world.log());
    assert!(!world.socket().exists());
}

/// Checks that the next daemon has the reads on record, and that nothing was
/// watched in between.
fn compared(world: &mut World) {
    world.start();
    let mut agent = world.session("s");
    assert_eq!(agent.state("a.txt"), "stale");
    assert_eq!(agent.state("same.txt"), "fresh");
    let changes = agent.take();
    assert_eq!(paths(&changes), ["a.txt", "d/b.txt", "d/gone.txt"]);
    for change in &changes {
        assert_eq!(authors(change), ["unknown"], "{change}");
    }
    agent.read("d/b.txt");
    user::write(&world.path("d/b.txt"), "three\n");
    let changes = agent.take();
    assert_eq!(paths(&changes), ["d/b.txt"]);
    assert_eq!(authors(&changes[0]), ["user"]);
    world.healthy();
}

#[test]
fn life1_the_workspace_is_removed_and_made_anew() {
    let mut world = World::new();
    let agent = begun(&world);
    fs::remove_dir_all(world.workspace()).unwrap();
    // Often with the old one's inode number (ATTR-15).
    fs::create_dir(world.workspace()).unwrap();
    another(&world);
    ended(&mut world, agent);
    compared(&mut world);
}

#[test]
fn life1_the_workspace_is_replaced_by_a_rename() {
    let mut world = World::new();
    let agent = begun(&world);
    fs::rename(world.workspace(), world.outside().join("old")).unwrap();
    fs::create_dir(world.workspace()).unwrap();
    another(&world);
    ended(&mut world, agent);
    compared(&mut world);
}

/// A rename of a directory above makes no event in the workspace.
#[test]
fn life1_a_directory_above_the_workspace_is_replaced() {
    let mut world = World::asleep();
    world.nest("above/ws");
    world.start();
    let agent = begun(&world);
    let above = world.workspace().parent().unwrap().to_owned();
    fs::rename(&above, world.outside().join("old")).unwrap();
    fs::create_dir_all(world.workspace()).unwrap();
    another(&world);
    ended(&mut world, agent);
    compared(&mut world);
}
