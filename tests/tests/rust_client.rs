//! The Rust client over the binary wire against a real daemon.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use touchmark_client::blocking::Client;
use touchmark_client::{Hello, Session};
use touchmark_proto::daemon::{Ping, Status};
use touchmark_tests::{World, user};

#[test]
fn an_edit_is_a_value_that_ends_itself() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let client = Client::connect(world.socket(), &Hello::new("tests", "1")).unwrap();
    assert_eq!(
        client.server().unwrap().workspace,
        world.workspace().to_str().unwrap()
    );
    let session = Session::open(&client, "s").unwrap();
    assert_eq!(
        session.read_text("a.txt").unwrap().text.as_deref(),
        Some("one\n")
    );
    // Committed.
    let edit = session.edit_to("a.txt", b"two\n").unwrap();
    fs::write(edit.target(), "two\n").unwrap();
    let done = edit.commit(b"two\n").unwrap();
    assert_eq!(done.files.len(), 1);
    assert!(session.changed().unwrap().is_empty());
    // Dropped: aborted, so that the next change is the user's.
    drop(session.edit("a.txt").unwrap());
    user::write(&world.path("a.txt"), "three\n");
    assert_eq!(session.changed().unwrap().len(), 1);
    // Refused with a code and a hint.
    let error = session.edit("a.txt").unwrap_err();
    assert_eq!(error.code(), "stale");
    assert!(!error.hint().is_empty());
    session.close().unwrap();
}

#[test]
fn many_requests_under_way_keep_their_order() {
    let world = World::new();
    let client = Client::connect(world.socket(), &Hello::new("tests", "1")).unwrap();
    let answers = client.pipeline((0..5000).map(|_| Ping {})).unwrap();
    assert_eq!(answers.len(), 5000);
    assert!(answers.iter().all(Result::is_ok));
    let status = client.call(Status {}).unwrap();
    assert!(status.counters.requests >= 5000, "{status:?}");
}

#[test]
fn a_daemon_that_is_gone_is_an_error_and_not_a_hang() {
    let mut world = World::new();
    let client = Client::connect(world.socket(), &Hello::new("tests", "1")).unwrap();
    world.kill();
    let error = client.call(Ping {}).unwrap_err();
    assert!(error.is_disconnected(), "{error}");
    let Err(error) = Client::connect(world.socket(), &Hello::new("tests", "1")) else {
        panic!("nobody listens");
    };
    assert_eq!(error.code(), "noDaemon");
}
