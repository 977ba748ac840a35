//! Checks that the bench runs and that nothing it measures gives a wrong
//! answer. Durations are not checked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;

use touchmark_tests::parts;
use touchmark_tests::world::binary;

/// Runs one part with the smallest sizes, and returns its output.
fn measured(part: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_touchmark-bench"))
        .args(["--quick", "--only", part, "--binary"])
        .arg(binary())
        .output()
        .expect("the bench is started");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{part}: {said}\n{errors}");
    said
}

#[test]
fn single_requests_and_processes_are_measured_and_right() {
    if !parts::heavy("two parts of the bench") {
        return;
    }
    for (part, goals) in [("requests", 3), ("processes", 2)] {
        let said = measured(part);
        let of = format!(" of {goals} goals are met.");
        assert!(said.contains(&of), "{part}: {said}");
    }
}

#[test]
fn clients_storms_and_sizes_are_measured_and_right() {
    if !parts::long("the larger parts of the bench") {
        return;
    }
    for part in ["clients", "storm", "sizes", "commands", "history"] {
        let said = measured(part);
        assert!(said.contains(" goals are met."), "{part}: {said}");
    }
}
