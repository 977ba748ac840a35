//! FILE-2, UNDO-6: a tool, a command or a user replaces a symlink that a
//! session used by a file. What the link led to does not have the change. It is
//! told and logged, and an undo makes the link again.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use touchmark_tests::hooks::Talk;
use touchmark_tests::{World, user};

use crate::hooks_gate::ten;

/// A workspace with `AGENTS.md`, and `CLAUDE.md`, a link to it.
fn world() -> World {
    let world = World::new();
    world.file("AGENTS.md", ten());
    symlink("AGENTS.md", world.path("CLAUDE.md")).unwrap();
    world
}

fn claude(world: &World) -> Talk<'_> {
    let mut talk = Talk::new(world, "claude", "s");
    talk.start().nothing();
    talk.prompt("p", "go on").nothing();
    talk.read("CLAUDE.md").nothing();
    talk
}

/// The agent's tool edits a file by a rename over its name.
fn edit_over(talk: &mut Talk<'_>, world: &World, old: &str, new: &str) -> String {
    let (call, heard) = talk.before_edit("CLAUDE.md", old, new);
    heard.nothing();
    let text = fs::read_to_string(world.path("CLAUDE.md")).unwrap();
    user::replace(&world.path("CLAUDE.md"), &text.replace(old, new));
    talk.say(&talk.voice.after_edit(&call, "CLAUDE.md", old, new))
        .told()
}

fn undo(world: &World) -> Value {
    world
        .client()
        .ok("undo", json!({"session": "s", "now": true}))
}

fn link(world: &World) -> Option<String> {
    let to = world.path("CLAUDE.md").read_link().ok()?;
    Some(to.to_string_lossy().into_owned())
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

const TOLD: &str = "\"CLAUDE.md\" was a symbolic link to \"AGENTS.md\", and is a file of its own now: \
                    what the link led to does not have this change.";

#[test]
fn file2_a_link_that_a_tool_replaced_is_told_logged_and_undone() {
    // The name behind the link is used as well, or is not.
    for both in [true, false] {
        let world = world();
        let mut talk = claude(&world);
        if both {
            talk.read("AGENTS.md");
        }
        let told = edit_over(&mut talk, &world, "line 3", "line three");
        assert!(told.contains(TOLD), "{told}");
        talk.prompt("q", "go on").nothing();
        assert_eq!(text(&world.path("AGENTS.md")), ten());
        let printed = world.run(&["log"]);
        let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
        assert!(printed.contains("CLAUDE.md (was a link)"), "{printed}");
        let printed = world.run(&["history", "CLAUDE.md"]);
        let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
        assert!(printed.contains("symlink replaced by file"), "{printed}");
        let undone = undo(&world);
        assert_eq!(undone["files"][0]["outcome"], "undone", "{undone}");
        assert_eq!(link(&world).as_deref(), Some("AGENTS.md"), "{both}");
        assert_eq!(text(&world.path("CLAUDE.md")), ten());
        world.client().ok("redo", json!({}));
        assert_eq!(link(&world), None);
        assert!(text(&world.path("CLAUDE.md")).contains("line three"));
        assert_eq!(text(&world.path("AGENTS.md")), ten());
    }
}

#[test]
fn file2_a_link_that_a_command_replaced_or_removed_comes_back() {
    for (command, told) in [
        ("sed -i 's/line 3/line three/' CLAUDE.md", true),
        ("rm CLAUDE.md", false),
    ] {
        let world = world();
        let mut talk = claude(&world);
        let heard = talk.shell(command);
        if told {
            let heard = heard.told();
            assert!(heard.contains(TOLD), "{heard}");
            assert!(!heard.contains("took away"), "{heard}");
        }
        assert_eq!(text(&world.path("AGENTS.md")), ten());
        let ask = json!({"session": "s", "now": true, "likely": true});
        let undone = world.client().ok("undo", ask);
        assert_eq!(link(&world).as_deref(), Some("AGENTS.md"), "{undone}");
        assert_eq!(text(&world.path("AGENTS.md")), ten());
    }
}

#[test]
fn undo6_a_link_is_not_made_again_over_what_the_user_wrote() {
    let world = world();
    let mut talk = claude(&world);
    edit_over(&mut talk, &world, "line 3", "line three");
    user::append(&world.path("CLAUDE.md"), "mine\n");
    let undone = undo(&world);
    assert_ne!(undone["files"][0]["outcome"], "undone", "{undone}");
    assert_eq!(link(&world), None);
    assert!(text(&world.path("CLAUDE.md")).ends_with("mine\n"));
}

#[test]
fn file2_a_link_that_the_user_replaced_is_not_the_agents() {
    let world = world();
    let mut talk = claude(&world);
    user::replace(&world.path("CLAUDE.md"), &ten().replace("line 9", "mine"));
    talk.prompt("q", "go on").told();
    // Without a change of the text it is no version, and no later one says it.
    talk.edit("CLAUDE.md", "line 3", "line three").nothing();
    undo(&world);
    assert_eq!(link(&world), None);
    assert_eq!(
        text(&world.path("CLAUDE.md")),
        ten().replace("line 9", "mine")
    );
    assert_eq!(text(&world.path("AGENTS.md")), ten());
}

#[test]
fn file2_a_link_that_was_replaced_without_a_change_is_no_ones_edit() {
    let world = world();
    let mut talk = claude(&world);
    user::replace(&world.path("CLAUDE.md"), &ten());
    world.client().ok("sync", json!({}));
    talk.edit("CLAUDE.md", "line 3", "line three").nothing();
    undo(&world);
    assert_eq!(link(&world), None);
    assert_eq!(text(&world.path("CLAUDE.md")), ten());
}

/// An edit through the link has changed the file that the link leads to. The
/// undo makes the link again. It lists that edit, and does not call it undone.
#[test]
fn undo6_an_edit_through_the_link_is_not_called_undone() {
    for both in [true, false] {
        let world = world();
        let mut talk = claude(&world);
        if both {
            talk.read("AGENTS.md");
        }
        talk.edit("CLAUDE.md", "line 2", "line two").nothing();
        edit_over(&mut talk, &world, "line 3", "line three");
        let undone = undo(&world);
        let file = &undone["files"][0];
        assert_eq!(file["outcome"], "partly", "{undone}");
        assert_eq!(file["conflicts"][0]["before"], "line 2\n", "{undone}");
        assert_eq!(link(&world).as_deref(), Some("AGENTS.md"));
        let through = ten().replace("line 2", "line two");
        assert_eq!(text(&world.path("AGENTS.md")), through);
    }
}
