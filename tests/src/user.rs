//! What a user does to files.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::children::{self, unshared};
use crate::world::finish;

/// Waits, as a part of a scenario. Not for waiting for the daemon.
pub fn pause(milliseconds: u64) {
    if milliseconds > 0 {
        sleep(Duration::from_millis(milliseconds));
    }
}

/// Saves in place: truncate, write, close.
pub fn write(path: &Path, content: &str) {
    unshared(|| fs::write(path, content))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Saves in place with at most one write: overwrites from the start, then cuts
/// to the new length.
pub fn overwrite(path: &Path, content: &str) {
    unshared(|| {
        let mut file = OpenOptions::new().write(true).open(path).expect("a file");
        file.write_all(content.as_bytes()).expect("a write");
        file.set_len(content.len() as u64).expect("a new length");
    });
}

/// Appends and closes.
pub fn append(path: &Path, content: &str) {
    unshared(|| {
        let mut file = OpenOptions::new().append(true).open(path).expect("a file");
        file.write_all(content.as_bytes()).expect("an append");
    });
}

/// Writes two parts with a pause between them, with the file kept open.
pub fn write_in_two(path: &Path, first: &str, second: &str, gap: u64) {
    unshared(|| {
        let mut file = File::create(path).expect("a file");
        file.write_all(first.as_bytes()).expect("the first part");
        pause(gap);
        file.write_all(second.as_bytes()).expect("the second part");
    });
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Saves with a temporary file and a rename.
pub fn replace(path: &Path, content: &str) {
    let temporary = beside(path, ".tmp");
    unshared(|| fs::write(&temporary, content)).expect("a temporary file");
    fs::rename(&temporary, path).expect("a rename");
}

/// Saves with a temporary file and a rename, and syncs everything to disk.
pub fn replace_synced(path: &Path, content: &str) {
    let temporary = beside(path, ".tmp");
    unshared(|| {
        let mut file = File::create(&temporary).expect("a temporary file");
        file.write_all(content.as_bytes()).expect("a write");
        file.sync_all().expect("a sync");
    });
    fs::rename(&temporary, path).expect("a rename");
    let parent = path.parent().expect("a parent");
    File::open(parent)
        .and_then(|dir| dir.sync_all())
        .expect("a directory's sync");
}

/// Saves as vim does by default: renames the old file to a backup, writes a new
/// file, removes the backup. `gap` is the pause between the steps, in
/// milliseconds.
pub fn like_vim(path: &Path, content: &str, gap: u64) {
    let backup = beside(path, "~");
    fs::rename(path, &backup).expect("a backup");
    pause(gap);
    unshared(|| {
        let mut file = File::create(path).expect("a new file");
        pause(gap);
        file.write_all(content.as_bytes()).expect("a write");
    });
    pause(gap);
    fs::remove_file(&backup).expect("the backup's end");
}

/// Removes the file and creates a new one.
pub fn recreate(path: &Path, content: &str, gap: u64) {
    fs::remove_file(path).expect("a removal");
    pause(gap);
    unshared(|| fs::write(path, content)).expect("a new file");
}

fn tool(mut command: Command) {
    let what = format!("{command:?}");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = children::start(&mut command).unwrap_or_else(|error| panic!("{what}: {error}"));
    let output = finish(child, &what);
    assert!(
        output.status.success(),
        "{what}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Adds a last line with the real vim and saves. `copy` is its 'backupcopy'.
pub fn vim(path: &Path, line: &str, copy: &str) {
    let mut command = Command::new("vim");
    command
        .args(["-u", "NONE", "-i", "NONE", "-N", "-n", "-es"])
        // Below /tmp vim would save in another way than elsewhere.
        .args(["-c", "set backupskip= writebackup nobackup"])
        .args(["-c", &format!("set backupcopy={copy}")])
        .args(["-c", &format!("call append(line('$'), '{line}')")])
        .args(["-c", "write", "-c", "quitall"])
        .arg(path);
    tool(command);
}

/// Runs the real `sed -i`.
pub fn sed(path: &Path, script: &str) {
    let mut command = Command::new("sed");
    command.args(["-i", "-e", script]).arg(path);
    tool(command);
}

/// Runs the real git, without the user's configuration.
pub fn git(directory: &Path, args: &[&str]) {
    tool(git_command(directory, args));
}

/// Returns a command of the real git, not run yet.
pub fn git_command(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .args(["-c", "gc.auto=0", "-c", "core.fsync=none"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .env("GIT_AUTHOR_NAME", "U")
        .env("GIT_AUTHOR_EMAIL", "u@example.invalid")
        .env("GIT_COMMITTER_NAME", "U")
        .env("GIT_COMMITTER_EMAIL", "u@example.invalid");
    command
}

/// Removes the file and links another one in its place.
pub fn replace_by_link(path: &Path, content: &str) {
    let temporary = beside(path, ".tmp");
    fs::write(&temporary, content).expect("a temporary file");
    let _ = fs::remove_file(path);
    fs::hard_link(&temporary, path).expect("a link");
    fs::remove_file(&temporary).expect("the temporary name's end");
}

/// Saves with a rename from a temporary file with a given name.
pub fn replace_beside(path: &Path, temporary: &Path, content: &str) {
    fs::write(temporary, content).expect("a temporary file");
    fs::rename(temporary, path).expect("a rename");
}
