//! The Python client's own tests, with a daemon of this build, and the checks
//! of its types.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use touchmark_tests::fetched;
use touchmark_tests::parts::not_tested;
use touchmark_tests::world::binary;

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../bindings/python")
        .canonicalize()
        .unwrap()
}

/// Returns the oldest installed Python from 3.9 on, and whether it is 3.9, the
/// oldest that the client supports.
fn oldest_python() -> Option<(PathBuf, bool)> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    let mut consider = |program: PathBuf| {
        let asked = Command::new(&program)
            .args(["-c", "import sys; print(sys.version_info[1])"])
            .output();
        if let Ok(said) = asked
            && said.status.success()
            && let Ok(minor) = String::from_utf8_lossy(&said.stdout).trim().parse::<u32>()
            && minor >= 9
        {
            found.push((minor, program));
        }
    };
    for minor in 9..=14 {
        consider(format!("python3.{minor}").into());
    }
    consider("python3".into());
    // pyenv's own names answer only for the version that is chosen.
    let pyenv = Command::new("pyenv").arg("root").output().ok();
    let versions = pyenv.and_then(|said| {
        let root = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        fs::read_dir(Path::new(&root).join("versions")).ok()
    });
    for entry in versions.into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("3.") {
            consider(entry.path().join("bin/python"));
        }
    }
    found.sort();
    let (minor, program) = found.into_iter().next()?;
    Some((program, minor == 9))
}

/// Returns a command with a separate home and runtime directory.
fn dressed(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    for name in ["TOUCHMARK_SOCKET", "TOUCHMARK_SESSION", "XDG_RUNTIME_DIR"] {
        command.env_remove(name);
    }
    command
        .current_dir(package())
        .env("HOME", home)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("TOUCHMARK_BIN", binary());
    command
}

fn succeeds(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(
        done.status.success(),
        "{command:?}: {}\n{said}",
        done.status
    );
    said
}

#[test]
fn its_own_tests_on_the_oldest_python() {
    let Some((python, is_oldest)) = oldest_python() else {
        not_tested("the Python client: no Python 3.9 or newer is here");
        return;
    };
    if !is_oldest {
        not_tested("the Python client on Python 3.9: only newer ones are here");
    }
    let home = tempfile::tempdir().unwrap();
    let said = succeeds(dressed(&python, home.path()).args([
        "-W",
        "error::ResourceWarning",
        "-m",
        "unittest",
        "discover",
        "-t",
        ".",
        "-s",
        "tests",
    ]));
    assert!(said.contains("\nOK"), "{said}");
    assert!(!said.contains("Ran 0 tests"), "{said}");
}

#[test]
fn its_types_are_sound() {
    let what = "the Python client's types";
    let Some(python) = fetched::python("mypy", &["mypy==2.4.1"], what) else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    succeeds(dressed(&python, home.path()).args([
        "-m",
        "mypy",
        "--strict",
        "--no-incremental",
        "touchmark_client",
        "tools",
        "tests",
        "examples",
    ]));
}
