//! The workspace on macOS, which is not available here: its standard library is
//! type-checked from its sources, and everything on top of it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use touchmark_tests::fetched;
use touchmark_tests::parts::{heavy, not_tested};
use touchmark_tests::world::binary;

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A compiler with the standard library's sources, which Debian has for
/// browsers.
const PACKAGES: &[&str] = &["rustc-web", "cargo-web", "rust-web-src"];

const TARGET: &str = "x86_64-apple-darwin";

/// The arguments that select what is checked. The benchmarks only support
/// Linux.
const WHAT: &[&str] = &[
    "--workspace",
    "--exclude",
    "touchmark-bench",
    "--all-targets",
];

/// Runs another cargo than the one that runs this test.
fn cargo(compiler: &Path, arguments: &[&str]) -> Output {
    let programs = compiler.join("usr/bin");
    let path = env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(programs.clone()).chain(env::split_paths(&path));
    let build: PathBuf = binary().ancestors().nth(2).unwrap().join("cross");
    let kept = env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        name == "HOME" || name == "CARGO_HOME" || name.to_lowercase().ends_with("_proxy")
    });
    Command::new(programs.join("cargo"))
        .args(arguments)
        .current_dir(TOP)
        // Of what cargo tells the programs that it runs, nothing.
        .env_clear()
        .envs(kept)
        .env("PATH", env::join_paths(path).unwrap())
        .env("LD_LIBRARY_PATH", compiler.join("usr/lib/x86_64-linux-gnu"))
        .env("CARGO_TARGET_DIR", build)
        .env("RUSTC_BOOTSTRAP", "1")
        // SQLite is C, and is not compiled for a check.
        .env("CC", "true")
        .env("AR", "true")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn the_workspace_type_checks_for_macos() {
    if !heavy("the workspace, type-checked for macOS") {
        return;
    }
    let what = "the type-check for macOS";
    let Some(compiler) = fetched::debian("cross", PACKAGES, what) else {
        return;
    };
    let on = ["--locked", "-Zbuild-std", "--target", TARGET];
    let fetch = cargo(&compiler, &[&["fetch"], on.as_slice()].concat());
    if !fetch.status.success() {
        let said = String::from_utf8_lossy(&fetch.stderr);
        let why = said.lines().next().unwrap_or_default();
        return not_tested(&format!("{what}: the crates cannot be fetched here: {why}"));
    }
    let check = &["check", "--quiet"];
    let checked = cargo(&compiler, &[check, on.as_slice(), WHAT].concat());
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{TARGET}: {said}");
}
