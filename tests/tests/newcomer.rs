//! What a newcomer does with the documents: `tests/newcomer` in a fresh Debian.

use std::process::{Command, Stdio};

use touchmark_tests::parts::{heavy, not_tested};

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[test]
fn a_newcomer_does_what_the_pages_say() {
    let what = "the README, the packages, setup, the tutorial and each page in a fresh Debian";
    if !heavy(what) {
        return;
    }
    let output = Command::new(format!("{TOP}/tests/newcomer"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // What this machine does not let it do.
    if output.status.code() == Some(77) {
        return not_tested(&format!("{what}: {}", said.trim()));
    }
    assert!(output.status.success(), "{printed}{said}");
    assert!(printed.contains("left out: "), "{printed}");
    println!("{printed}");
}
