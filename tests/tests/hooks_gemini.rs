//! Gemini's hooks, with the real binary and daemon.

use serde_json::json;
use touchmark_tests::World;
use touchmark_tests::hooks::{Talk, play};

#[test]
fn a_whole_session() {
    play::whole_session("gemini");
}

#[test]
fn a_threshold_that_is_only_looked_at_ends_no_residence() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let mut talk = Talk::new(&world, "gemini", "s");
    let mut session = world.session("s");
    talk.start().nothing();
    talk.read("a.txt").nothing();
    let compress = |talk: &mut Talk<'_>, trigger: &str| {
        let event = talk.voice.event("PreCompress", json!({"trigger": trigger}));
        talk.say(&event).nothing();
    };
    compress(&mut talk, "auto");
    assert_eq!(session.status("a.txt")["resident"], true);
    compress(&mut talk, "manual");
    assert_eq!(session.status("a.txt")["resident"], false);
}
