//! File systems that only one test sees: a mount namespace for its thread.
//!
//! The thread, the daemon and every command that it starts see the mounts.
//! Other processes do not, and the mounts end with the last of these processes.

use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::UnshareFlags;

use crate::parts::not_tested;
use crate::process::until;
use crate::wire::PATIENCE;
use crate::world::finish;

/// Runs a test on a thread with its own mount namespace. Prints a message and
/// skips the test where a namespace cannot be created (it takes root).
///
/// Threads that the test starts are in the namespace as well.
pub fn apart(test: impl FnOnce() + Send) {
    let run = || match unshare() {
        Ok(()) => test(),
        Err(cause) => println!("not tested: no mount namespace can be made: {cause}"),
    };
    // On a separate thread, since a namespace cannot be left again, and with
    // one test at a time the test's thread is the main one.
    let joined = std::thread::scope(|scope| scope.spawn(run).join());
    if let Err(panic) = joined {
        resume_unwind(panic);
    }
}

/// Runs a test as [`apart`] does, or on this thread where no namespace can be
/// made, and passes whether the test may mount. Reports `what`, which needs
/// mounts, as not tested there.
pub fn apart_if_possible(what: &str, test: impl Fn(bool) + Sync) {
    let mut done = false;
    apart(|| {
        done = true;
        test(true);
    });
    if !done {
        not_tested(what);
        test(false);
    }
}

#[expect(
    deprecated,
    reason = "deprecated for what it does with the flag FILES, which is not given"
)]
fn unshare() -> rustix::io::Result<()> {
    rustix::thread::unshare(UnshareFlags::NEWNS)?;
    // Without this, mounts would appear in the parent namespace.
    system("mount", &["--make-rprivate", "/"]);
    Ok(())
}

/// Mounts a new file system: `mount -t KIND -o OPTIONS SOURCE AT`. For kinds
/// without a device, such as `tmpfs`, the source is only a name.
pub fn mount(kind: &str, source: &str, options: &str, at: &Path) {
    let at = at.to_str().expect("a UTF-8 path");
    system("mount", &["-t", kind, "-o", options, source, at]);
}

/// Changes the options of a mount: `mount -o remount,OPTIONS AT`. Waits while
/// the mount is busy.
pub fn remount(options: &str, at: &Path) {
    let at = at.to_str().expect("a UTF-8 path");
    when_idle("mount", &["-o", &format!("remount,{options}"), at]);
}

/// Unmounts a file system. Waits while a process uses it, and fails if it is
/// used for longer than [`PATIENCE`].
pub fn unmount(at: &Path) {
    when_idle("umount", &[at.to_str().expect("a UTF-8 path")]);
}

/// Unmounts a file system even if a process uses it: `umount --lazy`.
pub fn detach(at: &Path) {
    system("umount", &["--lazy", at.to_str().expect("a UTF-8 path")]);
}

/// A FUSE file system that shows another directory. It is unmounted when
/// dropped.
pub struct Mirror {
    server: Child,
}

impl Mirror {
    /// Shows `source` at `at`, with bindfs. Changes in `source` make no event
    /// at `at`. Returns `None`, and prints the reason, where bindfs or FUSE is
    /// missing.
    pub fn new(source: &Path, at: &Path) -> Option<Self> {
        let before = std::fs::metadata(at).expect("a place for the mount");
        let server = Command::new("bindfs")
            // Nothing is cached: only the events are missing.
            .args([
                "-f",
                "-o",
                "attr_timeout=0,entry_timeout=0,negative_timeout=0",
            ])
            .args([source, at])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let mut server = match server {
            Ok(server) => server,
            Err(error) => {
                println!("not tested: bindfs: {error}");
                return None;
            }
        };
        let end = Instant::now() + PATIENCE;
        while !another_file_system(&before, at) {
            if let Some(status) = server.try_wait().expect("the server's state") {
                println!("not tested: bindfs cannot mount: {status}");
                return None;
            }
            assert!(Instant::now() < end, "bindfs does not mount");
            std::thread::sleep(Duration::from_millis(2));
        }
        Some(Self { server })
    }
}

fn another_file_system(before: &std::fs::Metadata, at: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(at).is_ok_and(|now| now.dev() != before.dev())
}

impl Drop for Mirror {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Runs a program again until it does not fail with "is busy". A mount can be
/// busy for a moment after its last use: the daemon reads a file that has
/// changed, and a child of another thread has all descriptors until it
/// executes its program.
fn when_idle(program: &str, arguments: &[&str]) {
    until(&format!("{program} {arguments:?}: stays busy"), || {
        let tried = attempt(program, arguments);
        let said = String::from_utf8_lossy(&tried.stderr);
        let busy = said.contains("is busy");
        assert!(
            tried.status.success() || busy,
            "{program} {arguments:?}: {said}"
        );
        !busy
    });
}

/// Runs a program, which must succeed.
fn system(program: &str, arguments: &[&str]) {
    let output = attempt(program, arguments);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs a program and returns how it ended.
fn attempt(program: &str, arguments: &[&str]) -> Output {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    finish(child, &format!("{program} {arguments:?}"))
}
