//! `ui`: the page of `touchmark ui`. What is committed is what its source
//! gives, its unit tests pass, and, heavier, a real browser walks it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use touchmark_tests::fetched::node;
use touchmark_tests::parts::{heavy, not_tested};
use touchmark_tests::world::{binary, target};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// What the page is built from, besides its packages.
const SOURCES: [&str; 2] = ["ui", "bindings/typescript/src/generated"];

/// Debian's name for the browser; no other is looked for.
const BROWSER: &str = "/usr/bin/chromium";

const WHAT: &str = "the page in a real browser";

/// Runs a command that has to succeed. Returns what it printed.
fn succeeds(command: &mut Command) -> String {
    let ran = command.output().unwrap();
    assert!(
        ran.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
    String::from_utf8(ran.stdout).unwrap()
}

/// Copies what git has of a directory, and what is new in it.
fn copy(name: &str, stage: &Path) {
    let listed = Command::new("git")
        .args(["-C", ROOT, "ls-files", "-z", "--cached", "--others"])
        .args(["--exclude-standard", "--", name])
        .output()
        .unwrap();
    for path in String::from_utf8(listed.stdout)
        .unwrap()
        .split_terminator('\0')
    {
        let from = Path::new(ROOT).join(path);
        if from.is_file() {
            let to = stage.join(path);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
    }
}

/// A copy of the page's source with the packages that its lock names, or
/// `None` if they cannot be had here.
fn staged() -> Option<PathBuf> {
    let stage = target().parent().unwrap().join("tools/ui");
    fs::create_dir_all(&stage).unwrap();
    for directory in ["ui/src", "ui/dist", "ui/test", "ui/tools"] {
        let _absent = fs::remove_dir_all(stage.join(directory));
    }
    for name in SOURCES {
        copy(name, &stage);
    }
    let page = stage.join("ui");
    let wanted = fs::read(page.join("package-lock.json")).unwrap();
    let fetched = stage.join("fetched");
    if fs::read(&fetched).ok().as_ref() != Some(&wanted) {
        let npm = Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(&page)
            .output();
        if !npm.is_ok_and(|done| done.status.success()) {
            not_tested("ui: its packages cannot be fetched here");
            return None;
        }
        fs::write(&fetched, wanted).unwrap();
    }
    Some(page)
}

#[test]
fn the_committed_page_is_what_its_source_gives() {
    let Some(page) = staged() else {
        return;
    };
    for words in [
        &["run", "check"][..],
        &["test"],
        &["run", "build", "--", "--check"],
    ] {
        succeeds(Command::new("npm").args(words).current_dir(&page));
    }
}

#[test]
fn a_real_browser_walks_the_page() {
    if !heavy(WHAT) {
        return;
    }
    if !Path::new(BROWSER).exists() {
        not_tested(&format!("{WHAT}: {BROWSER} is not here"));
        return;
    }
    let packages = ["playwright-core@1.56.1", "axe-core@4.14.1"];
    let Some(tools) = node("browser", &packages, WHAT) else {
        return;
    };
    let pictures = target().join("ui-pictures");
    let _absent = fs::remove_dir_all(&pictures);
    fs::create_dir(&pictures).unwrap();
    // Outlives every process that writes there.
    let temporary = tempfile::tempdir().unwrap();
    let printed = succeeds(
        Command::new("node")
            .arg(Path::new(ROOT).join("ui/test/browser.mjs"))
            .env("TMPDIR", temporary.path())
            .env("TOUCHMARK_BIN", binary())
            .env("TOUCHMARK_TOOLS", tools)
            .env("TOUCHMARK_BROWSER", BROWSER)
            .env("TOUCHMARK_PICTURES", pictures)
            .env_remove("TOUCHMARK_SOCKET"),
    );
    for line in printed.lines() {
        if let Some(what_and_why) = line.strip_prefix("not tested: ") {
            not_tested(what_and_why);
        }
    }
}
