//! SEC-6, SEC-8: plays the cases of `bindings/conformance/trust`, which every
//! client plays.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use serde_json::Value;
use touchmark_proto::trust::{Me, Owned, is_listed};

/// Plays each case of a file, and compares with its outcome.
fn each(name: &str, outcome: &str, play: impl Fn(&Value) -> bool) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bindings/conformance/trust");
    let text = std::fs::read(directory.join(name)).unwrap();
    let cases: Vec<Value> = serde_json::from_slice(&text).unwrap();
    assert!(cases.len() > 3);
    for case in cases {
        assert_eq!(play(&case), case[outcome].as_bool().unwrap(), "{case}");
    }
}

fn me(case: &Value) -> Me {
    Me {
        uid: uid(&case["uid"]).unwrap(),
        sudo: uid(&case["sudo"]),
    }
}

fn uid(value: &Value) -> Option<u32> {
    value.as_u64().map(|uid| uid.try_into().unwrap())
}

fn owned(value: &Value) -> Owned {
    Owned {
        uid: uid(&value["uid"]).unwrap(),
        mode: u32::from_str_radix(value["mode"].as_str().unwrap_or("0"), 8).unwrap(),
    }
}

#[test]
fn sec6_whose_marks_are_taken_over() {
    each("marks.json", "taken", |case| {
        let (directory, file) = (owned(&case["directory"]), owned(&case["file"]));
        me(case).check_file(directory, file).is_ok()
    });
}

#[test]
fn sec6_which_directories_a_list_names() {
    each("listed.json", "listed", |case| {
        let list = case["list"].as_str().unwrap().as_bytes();
        is_listed(list, Path::new(case["directory"].as_str().unwrap()))
    });
}

#[test]
fn sec8_who_may_answer() {
    each("peers.json", "heard", |case| {
        me(case).check_peer(uid(&case["peer"]).unwrap()).is_ok()
    });
}

#[test]
fn sec8_which_sockets_are_dialled() {
    each("sockets.json", "dialled", |case| {
        let (directory, socket) = (owned(&case["directory"]), owned(&case["socket"]));
        me(case).check_socket(directory, socket).is_ok()
    });
}
