//! opencode's hooks, with the real binary and daemon.

use serde_json::json;
use touchmark_tests::hooks::{Talk, play};
use touchmark_tests::{World, user};

#[test]
fn a_whole_session() {
    play::whole_session("opencode");
}

#[test]
fn seen10_a_file_attached_to_a_prompt_is_read() {
    let world = World::new();
    let poem: String = (1..=9).map(|n| format!("verse number {n}\n")).collect();
    world.file("poem.txt", &poem);
    world.file("other.txt", poem.replace("verse", "strophe"));
    let talk = Talk::new(&world, "opencode", "s");
    talk.start().nothing();
    let path = world.path("poem.txt");
    let read: String = (1..=9)
        .map(|n| format!("{n:05}| verse number {n}\n"))
        .collect();
    let input = json!({"filePath": path.to_str().unwrap()});
    let prompt = format!(
        "compare it with @other.txt\nCalled the Read tool with the following input: {input}\n<file>\n{read}</file>"
    );
    talk.prompt("p1", &prompt).nothing();
    let mut session = world.session("s");
    assert_eq!(session.state("poem.txt"), "fresh");
    assert_eq!(session.state("other.txt"), "unread", "it is only named");
    user::write(&path, &poem.replace("number 7", "7"));
    session.sync();
    assert_eq!(session.state("poem.txt"), "stale");
}
