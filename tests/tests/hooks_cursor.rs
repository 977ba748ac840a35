//! Cursor's hooks, with the real binary and daemon.

use serde_json::json;
use touchmark_tests::hooks::{Talk, play};
use touchmark_tests::{World, user};

#[test]
fn a_whole_session() {
    play::whole_session("cursor");
}

#[test]
fn an_attached_file_is_seen_if_it_is_what_the_file_holds() {
    let world = World::new();
    world.file("a.txt", "one\n");
    world.file("b.txt", "one\n");
    let mut talk = Talk::new(&world, "cursor", "s");
    talk.start().nothing();
    let attached = |path: &str, content: &str| {
        let path = world.path(path);
        talk.voice.event(
            "beforeReadFile",
            json!({"file_path": path, "content": content, "attachments": []}),
        )
    };
    talk.say(&attached("a.txt", "one\n")).nothing();
    talk.say(&attached("b.txt", "unsaved\n")).nothing();
    let (_, heard) = talk.before_write("b.txt", "1\n");
    assert!(heard.denied().contains("has not been read"));
    talk.edit("a.txt", "one", "1").nothing();
}

#[test]
fn a_prompt_takes_no_notice_that_it_could_not_give() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let mut talk = Talk::new(&world, "cursor", "s");
    talk.start().nothing();
    talk.read("a.txt").nothing();
    user::append(&world.path("a.txt"), "two\n");
    talk.prompt("p2", "go on").nothing();
    assert!(talk.shell("true").told().contains("a.txt"));
}
