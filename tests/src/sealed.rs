//! A root directory without a compiler and without a network, in which packages
//! are installed and tried.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::machine::Root;
use crate::parts::not_tested;

/// Mounts the file systems that programs expect, then changes the root
/// directory.
const ENTER: &str = "mount --bind /dev \"$1/dev\" && mount -t proc proc \"$1/proc\" && \
    ip link set lo up; root=$1; shift; exec chroot \"$root\" \"$@\"";

/// A root directory with the files that a test adds. It is removed when
/// dropped.
pub struct Sealed {
    place: TempDir,
    /// The root directory, for adding programs and files.
    pub root: Root,
}

impl Sealed {
    /// Returns a new root directory with a shell and coreutils, or `None` if
    /// this machine does not allow it. `what` is then reported as not tested.
    pub fn new(what: &str) -> Option<Self> {
        Self::with(&["dash", "coreutils"], what)
    }

    /// Returns a new root directory like [`Sealed::new`], with these of this
    /// machine's Debian packages.
    pub fn with(packages: &[&str], what: &str) -> Option<Self> {
        let mut allowed = unshared();
        let output = allowed.arg("true").output();
        if !output.is_ok_and(|output| output.status.success()) {
            not_tested(&format!("{what}: no namespaces for this user"));
            return None;
        }
        let place = tempfile::tempdir().expect("a directory");
        match Root::of(packages, place.path()) {
            Ok(root) => Some(Self { place, root }),
            Err(why) => {
                not_tested(&format!("{what}: {why}"));
                None
            }
        }
    }

    /// Copies the libraries that a program is linked to, without the program.
    pub fn libraries_of(&self, program: &Path) {
        let inside = "/tmp/linked";
        self.root.program(program, inside);
        std::fs::remove_file(self.root.path(inside)).expect("a copy");
    }

    /// Copies files to `/packages`.
    pub fn packages(&self, from: &Path) {
        self.root.tree(from, "/packages");
    }

    /// Runs a command until it exits, and ends all processes that it leaves.
    /// Returns its output from both streams. Panics if it fails.
    pub fn run(&self, words: &[&str]) -> String {
        let (succeeded, printed) = self.tried(words);
        assert!(succeeded, "{words:?}: {printed}");
        printed
    }

    /// Runs a command like [`Sealed::run`] that may fail. Returns whether it
    /// succeeded, and its output.
    pub fn tried(&self, words: &[&str]) -> (bool, String) {
        let output = unshared()
            .args(["sh", "-c", ENTER, "enter"])
            .arg(self.place.path())
            .args(["env", "-i", "HOME=/tmp/home", "LC_ALL=C.UTF-8"])
            .arg("PATH=/installed/bin:/usr/local/bin:/usr/bin:/bin")
            .args(words)
            .stdin(Stdio::null())
            .output()
            .expect("unshare");
        let printed = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&printed).into_owned(),
        )
    }
}

/// Returns the start of a command with its own mounts, network and processes,
/// which end with it.
fn unshared() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--fork", "--kill-child"]);
    command
}
