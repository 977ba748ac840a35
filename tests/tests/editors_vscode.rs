//! `editors/vscode`: packed, unpacked, and run against the real daemon with a
//! stand-in for VS Code's interface.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::process::Command;

use touchmark_tests::fetched::node;
use touchmark_tests::world::binary;

const EXTENSION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../editors/vscode");

#[test]
fn the_extension_tells_user_and_agents_of_each_other() {
    let packages = [
        "typescript@5.9.3",
        "@types/node@18.19.130",
        "@types/vscode@1.90.0",
    ];
    let Some(tools) = node("vscode", &packages, "editors/vscode") else {
        return;
    };
    let ran = Command::new("node")
        .args(["--test", "test/extension.test.mjs"])
        .current_dir(EXTENSION)
        .env("TOUCHMARK_BIN", binary())
        .env("TOUCHMARK_TOOLS", &tools)
        .env_remove("TOUCHMARK_SOCKET")
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
}
