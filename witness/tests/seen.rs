//! What is known of marked files beside the call: the content before, and what
//! happened to the name.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::fs::{self, File};
use std::process::Stdio;
use std::time::Duration;

use common::{Place, marks, wait_for};
use touchmark_witness::Event::{Closed, Created, MovedFrom, MovedTo, Removed};
use touchmark_witness::{Event, Mark, Record, fence, pack, stored};

const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the events of a name in the root.
fn events(records: &[Record], wanted: &str) -> Vec<Event> {
    let all = records.iter().filter_map(|record| match record {
        Record::Happened { events, .. } => Some(events),
        _ => None,
    });
    all.flatten()
        .filter(|(_, name)| name == wanted.as_bytes())
        .map(|(event, _)| *event)
        .collect()
}

/// Returns the content before a mark, if it is stored.
fn before(place: &Place, mark: &Mark) -> Option<Vec<u8>> {
    let pack = File::open(pack(&place.ring)).unwrap();
    stored(&pack, &mark.before?).unwrap()
}

#[test]
fn what_a_call_may_destroy_is_stored() {
    let place = Place::new();
    let large = "x".repeat(2 << 20);
    for (name, content) in [("a", "one\n"), ("b", "two\n"), ("large", &large)] {
        fs::write(place.root.join(name), content).unwrap();
    }
    let records = {
        place.shell("echo 1 >> a; echo 2 > a; rm b; mv a c; : > new; echo x > large; mv new c");
        place.ended()
    };
    let of = |name: &str| -> Vec<Option<Vec<u8>>> {
        let all = marks(&records);
        let named = all.iter().filter(|mark| mark.name == name.as_bytes());
        named.map(|mark| before(&place, mark)).collect()
    };
    // A rename away destroys nothing. `mv` tries one that replaces nothing first.
    let text = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(of("a"), [text("one\n"), text("one\n1\n"), None]);
    assert_eq!(of("b"), [text("two\n")]);
    assert_eq!(of("c"), [None, text("2\n"), text("2\n")]);
    assert_eq!(of("large"), [None]);
    assert!(marks(&records).iter().all(|mark| mark.is_watched));
}

#[test]
fn what_happens_to_a_marked_name_is_recorded_whoever_does_it() {
    let place = Place::new();
    let script = "echo 1 > a; rm a; echo 2 > b; mv b a; : > ready; read line; echo 3 >> a";
    let mut command = place.witness(["sh", "-c", script]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    wait_for("the first part", || place.root.join("ready").exists());
    fs::write(place.root.join("a"), "the user's\n").unwrap();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let records = place.ended();
    let of_a = [Created, Closed, Removed, MovedTo, Closed, Closed];
    assert_eq!(events(&records, "a"), of_a);
    assert_eq!(events(&records, "b"), [Created, Closed, MovedFrom]);
    assert!(!records.contains(&Record::Missed));
}

#[test]
fn a_fence_has_all_recorded_that_happened_before_it() {
    let place = Place::new();
    let mut command = place.witness(["sh", "-c", "echo 1 > a; : > ready; read line; true"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    wait_for("the command's write", || place.root.join("ready").exists());
    let mut reader = touchmark_witness::Reader::open(&place.ring).unwrap();
    let mut records = Vec::new();
    for round in 1..=100 {
        fs::write(place.root.join("a"), "the user's\n").unwrap();
        assert!(fence(&place.ring, PATIENCE).unwrap());
        while let Some((_, record)) = reader.next().unwrap() {
            records.push(record);
        }
        // The command's own close is the first one.
        let closes = events(&records, "a");
        let closes = closes.iter().filter(|event| **event == Closed).count();
        assert_eq!(closes, 1 + round);
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    place.ended();
    assert!(fence(&place.ring, PATIENCE).unwrap(), "it has ended");
}

#[test]
fn another_answering_process_does_not_hide_what_it_cannot_tell() {
    let place = Place::new();
    let mut command = place.witness(["sh", "-c", "echo 1 > a; : > ready; read line; echo 2 > b"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    wait_for("the command's write", || place.root.join("ready").exists());
    assert!(fence(&place.ring, PATIENCE).unwrap());
    let [answering, _] = place.holders().unwrap();
    let answering = rustix::process::Pid::from_raw(answering as i32).unwrap();
    rustix::process::kill_process(answering, rustix::process::Signal::KILL).unwrap();
    wait_for("the other one", || {
        place
            .holders()
            .is_some_and(|holders| holders[0] != answering.as_raw_nonzero().get() as u32)
    });
    fs::write(place.root.join("a"), "the user's\n").unwrap();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let records = place.ended();
    assert!(records.contains(&Record::Missed), "{records:?}");
    // What it marks itself is followed.
    assert_eq!(events(&records, "b"), [Created, Closed]);
}
