//! `touchmark mcp` driven by the protocol's own client libraries, fetched from
//! their registries.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use touchmark_tests::world::{binary, finish};
use touchmark_tests::{World, fetched};

/// Runs a script in a world with one file. Its arguments are these words, then
/// the workspace and the server's command.
fn drives(interpreter: &Path, script: &Path, words: &[&str]) -> String {
    let world = World::new();
    world.file("a.txt", "one\n");
    let mut command = Command::new(interpreter);
    command.arg(script).args(words).arg(world.workspace());
    command
        .arg(binary())
        .arg("--workspace")
        .arg(world.workspace())
        .arg("mcp");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    world.dress(&mut command);
    let done = finish(command.spawn().unwrap(), &script.display().to_string());
    assert!(
        done.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    // What the agent wrote is on disk, and its session has ended.
    assert_eq!(fs::read_to_string(world.path("a.txt")).unwrap(), "2\n");
    let sessions = world.run(&["sessions", "--json"]);
    let sessions: serde_json::Value = serde_json::from_slice(&sessions.stdout).unwrap();
    assert_eq!(sessions["sessions"][0]["open"], false, "{sessions}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_python_library_drives_it_in_both_eras() {
    let what = "MCP by the official Python library";
    let Some(python) = fetched::python("mcp-python", &["mcp==2.3.0"], what) else {
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/official/client.py");
    let eras = [
        ("legacy", "2025-11-25"),
        ("2026-07-28", "2026-07-28"),
        ("auto", "2026-07-28"),
    ];
    for (mode, version) in eras {
        assert_eq!(drives(&python, &script, &[mode, version]), version);
    }
}

#[test]
fn the_typescript_library_drives_it() {
    let what = "MCP by the official TypeScript library";
    let package = "@modelcontextprotocol/sdk@1.32.2";
    let Some(place) = fetched::node("mcp-node", &[package], what) else {
        return;
    };
    // Modules are looked for beside the script.
    let script = place.join("client.mjs");
    fs::write(&script, include_str!("official/client.mjs")).unwrap();
    assert_eq!(drives(Path::new("node"), &script, &[]), "done");
}
