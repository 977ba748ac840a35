//! UNDO-11: `--check` runs a command with the result of an undo in a copy of the
//! workspace. The undo happens only if the command succeeds. The truth is the
//! workspace, byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;
use touchmark_tests::hooks::Talk;
use touchmark_tests::{Session, World, children, user, world};

/// The exit code if the command fails.
const FAILED: i32 = 5;

/// A workspace with the user's file `f`, in which an agent has changed a line,
/// and the agent's file `d/new`.
struct Place {
    world: World,
    agent: Session,
    /// Where copies are made. Nothing may be left there.
    copies: TempDir,
    /// Files by which the command and the test wait for each other.
    signs: TempDir,
}

/// What a file is: its kind and mode, its time, and its content or target.
type What = (u32, i64, Vec<u8>);

impl Place {
    fn new() -> Self {
        Self::of(World::asleep())
    }

    fn of(mut world: World) -> Self {
        world.start();
        world.set_env("GIT_CONFIG_GLOBAL", "/dev/null");
        let agent = world.session("a");
        let mut place = Self {
            world,
            agent,
            copies: tempfile::tempdir().unwrap(),
            signs: tempfile::tempdir().unwrap(),
        };
        place.world.file("f", "one\ntwo\nthree\n");
        place.world.file("other", "mine\n");
        place.write("f", "one\nTWO\nthree\n");
        place.write("d/new", "the agent's\n");
        place
    }

    fn write(&mut self, path: &str, text: &str) {
        if self.world.path(path).exists() {
            self.agent.read(path);
        }
        let params = json!({"path": path, "text": text, "createDirectories": true});
        assert_eq!(self.agent.ok("file/write", params)["outcome"], "applied");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.world.command(args);
        command
            .env("TMPDIR", self.copies.path())
            .env("SIGNS", self.signs.path())
            .env("WORKSPACE_FILE", self.world.path("other"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `touchmark undo a --yes --check COMMAND` until its end.
    fn check(&self, command: &str) -> Output {
        self.run(&["undo", "a", "--yes", "--check", command])
    }

    fn run(&self, args: &[&str]) -> Output {
        let child = children::start(&mut self.command(args)).unwrap();
        world::finish(child, "the check")
    }

    /// Starts a check whose command says that it runs, and then does `then`.
    fn start(&self, then: &str) -> Child {
        let check = format!(": > $SIGNS/runs; {then}");
        let mut command = self.command(&["undo", "a", "--yes", "--check", &check]);
        command.process_group(0);
        let child = children::start(&mut command).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while !self.signs.path().join("runs").exists() {
            assert!(Instant::now() < end, "the command does not run");
            std::thread::sleep(Duration::from_millis(5));
        }
        child
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.world.path(path)).ok()
    }

    /// Returns all that is in the workspace.
    fn all(&self) -> BTreeMap<PathBuf, What> {
        let mut all = BTreeMap::new();
        walk(self.world.workspace(), &mut all);
        all
    }

    /// Asserts that the undo happened, and that no copy is left.
    fn undone(&self) {
        assert_eq!(self.text("f").unwrap(), "one\ntwo\nthree\n");
        assert_eq!(self.text("d/new"), None);
        self.nothing_left();
    }

    fn nothing_left(&self) {
        let left = fs::read_dir(self.copies.path()).unwrap().count();
        assert_eq!(left, 0, "a copy is left");
    }
}

fn walk(directory: &Path, all: &mut BTreeMap<PathBuf, What>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let found = path.symlink_metadata().unwrap();
        let content = match (found.is_dir(), found.is_symlink()) {
            (true, _) => Vec::new(),
            (_, true) => fs::read_link(&path)
                .unwrap()
                .into_os_string()
                .into_encoded_bytes(),
            _ => fs::read(&path).unwrap(),
        };
        if found.is_dir() {
            walk(&path, all);
        }
        all.insert(path, (found.mode(), found.mtime_nsec(), content));
    }
}

/// Asserts that nothing has changed.
fn same(now: &BTreeMap<PathBuf, What>, before: &BTreeMap<PathBuf, What>) {
    let all = now.keys().chain(before.keys());
    let changed: Vec<&PathBuf> = all
        .filter(|path| now.get(*path) != before.get(*path))
        .collect();
    assert!(changed.is_empty(), "changed: {changed:?}");
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn undo11_the_undo_happens_if_the_command_succeeds_with_its_result() {
    let place = Place::new();
    // In the copy it is done already, and the rest is there; in the workspace it
    // is not done yet.
    let done = "grep -qx two f && test ! -e d/new && grep -qx mine other";
    let workspace = place.signs.path().join("workspace");
    symlink(place.world.workspace(), workspace).unwrap();
    let not_yet = "grep -qx TWO $SIGNS/workspace/f && test -e $SIGNS/workspace/d/new";
    let output = place.check(&format!("{done} && {not_yet} && echo checked"));
    assert_eq!(code(&output), 0, "{}", errors(&output));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("checked\n"), "{said}");
    assert!(said.contains("touchmark redo u1"), "{said}");
    place.undone();
    // It is an undo like any other.
    assert_eq!(code(&place.run(&["redo", "--yes"])), 0);
    assert_eq!(place.text("f").unwrap(), "one\nTWO\nthree\n");
}

#[test]
fn undo11_nothing_changes_if_the_command_fails() {
    let mut place = Place::new();
    let before = place.all();
    let output = place.check("grep -qx two f && exit 7");
    assert_eq!(code(&output), FAILED, "{}", errors(&output));
    let said = errors(&output);
    assert!(said.contains("grep -qx two f && exit 7"), "{said}");
    assert!(said.contains("exit code 7"), "{said}");
    assert!(said.contains("nothing was undone"), "{said}");
    same(&place.all(), &before);
    let undos = place.agent.client.ok("undo/list", json!({}));
    assert_eq!(undos["undos"], json!([]));
    // Nor if a signal ends it.
    let output = place.check("kill -9 $$");
    assert_eq!(code(&output), FAILED, "{}", errors(&output));
    assert!(errors(&output).contains("signal 9"), "{}", errors(&output));
    same(&place.all(), &before);
    place.nothing_left();
    place.world.healthy();
}

#[test]
fn undo11_a_save_during_the_check_stops_the_undo() {
    let place = Place::new();
    let child = place.start("until test -e $SIGNS/go; do sleep 0.02; done");
    user::replace(&place.world.path("f"), "one\nTWO\nthree\nmine\n");
    fs::write(place.signs.path().join("go"), "").unwrap();
    let output = world::finish(child, "the check");
    assert_eq!(code(&output), 4, "{}", errors(&output));
    assert!(errors(&output).contains("conflict"), "{}", errors(&output));
    assert_eq!(place.text("f").unwrap(), "one\nTWO\nthree\nmine\n");
    assert_eq!(place.text("d/new").unwrap(), "the agent's\n");
    place.nothing_left();
    // With what was saved, it is checked again.
    let output = place.check("grep -qx mine f");
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert_eq!(place.text("f").unwrap(), "one\ntwo\nthree\nmine\n");
}

#[test]
fn undo11_a_save_of_another_file_does_not_stop_it() {
    let place = Place::new();
    let child = place.start("until test -e $SIGNS/go; do sleep 0.02; done");
    user::replace(&place.world.path("other"), "mine, too\n");
    fs::write(place.signs.path().join("go"), "").unwrap();
    let output = world::finish(child, "the check");
    assert_eq!(code(&output), 0, "{}", errors(&output));
    place.undone();
    assert_eq!(place.text("other").unwrap(), "mine, too\n");
}

#[test]
fn undo11_the_command_cannot_write_into_the_workspace_by_what_it_finds() {
    let place = Place::new();
    let ws = place.world.workspace().to_owned();
    // Links into the workspace: by its path, by its name, and by another place.
    let outside = tempfile::tempdir().unwrap();
    symlink(&ws, outside.path().join("back")).unwrap();
    symlink(ws.join("other"), ws.join("absolute")).unwrap();
    symlink("../ws/other", ws.join("by-name")).unwrap();
    symlink(outside.path().join("back/other"), ws.join("by-another")).unwrap();
    symlink(ws.join("absent"), ws.join("dangling")).unwrap();
    symlink("other", ws.join("relative")).unwrap();
    fs::create_dir(ws.join("locked")).unwrap();
    fs::write(ws.join("locked/x"), "x").unwrap();
    fs::set_permissions(ws.join("locked"), fs::Permissions::from_mode(0o555)).unwrap();
    let before = place.all();
    let output = place.check(
        "set -e
         for name in absolute by-name by-another relative dangling; do echo x > $name; done
         echo x > $WORKSPACE_FILE
         grep -qx x other
         test -e absent
         mkdir -p sub/locked && touch sub/locked/f && chmod 555 sub/locked
         chmod 644 f && rm f other
         exit 3",
    );
    assert_eq!(code(&output), FAILED, "{}", errors(&output));
    let said = errors(&output);
    assert!(
        said.ends_with("exit code 3; nothing was undone\n"),
        "{said}"
    );
    same(&place.all(), &before);
    place.nothing_left();
    fs::set_permissions(ws.join("locked"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn undo11_git_works_in_the_copy_and_the_repository_stays() {
    let mut place = Place::new();
    let ws = place.world.workspace().to_owned();
    let git = |args: &[&str]| {
        let output = user::git_command(&ws, args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q"]);
    fs::write(ws.join(".gitignore"), "/built/\n/big/\n").unwrap();
    fs::create_dir(ws.join("built")).unwrap();
    fs::write(ws.join("built/lib"), "lib").unwrap();
    fs::create_dir(ws.join("big")).unwrap();
    fs::write(ws.join("big/tracked"), "tracked").unwrap();
    git(&["add", ".", "-f"]);
    git(&["rm", "-q", "--cached", "built/lib"]);
    git(&["commit", "-q", "-m", "first"]);
    place.write("f", "one\nTWO\nTHREE\n");
    // Git gives objects that it finds again a new time.
    let repository = || {
        let mut all = BTreeMap::new();
        walk(&ws.join(".git"), &mut all);
        all.values_mut().for_each(|(_, time, _)| *time = 0);
        all
    };
    // An ignored file that is larger than what is copied without shared blocks.
    let big = fs::File::create(ws.join("big/large")).unwrap();
    big.set_len(3_000_000_000).unwrap();
    let before = repository();
    let output = place.check(
        "set -e
         test \"$(git rev-parse --show-toplevel)\" = \"$(pwd -P)\"
         git log --format=%s | grep -qx first
         test \"$(git status --porcelain -- f)\" = ' M f'
         cat built/lib big/tracked
         if test -e big/large; then echo with large; fi
         git -c user.name=x -c user.email=x commit -qam second
         git branch other && git gc -q
         ",
    );
    same(&repository(), &before);
    drop(big);
    let said = errors(&output);
    let all = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(all.starts_with("libtracked"), "{all}\n{said}");
    if !all.contains("with large") {
        assert!(said.contains("not in the copy: big"), "{said}");
    }
    place.nothing_left();
}

#[test]
fn undo11_needs_no_git_and_makes_no_copy_inside_the_workspace() {
    // Not below the repository of these tests.
    let outside = tempfile::tempdir().unwrap();
    let place = Place::of(World::asleep_in(outside.path()));
    let ws = place.world.workspace();
    fs::write(ws.join(".gitignore"), "/ignored\n").unwrap();
    fs::write(ws.join("ignored"), "ignored").unwrap();
    fs::create_dir(ws.join("temporary")).unwrap();
    fs::create_dir_all(ws.join("../home/.cache")).unwrap();
    let before = place.all();
    let check = "pwd -P; cat f other ignored; exit 1";
    let mut command = place.command(&["undo", "a", "--yes", "--check", check]);
    command.env("TMPDIR", ws.join("temporary"));
    let output = world::finish(children::start(&mut command).unwrap(), "the check");
    assert_eq!(code(&output), FAILED, "{}", errors(&output));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let (at, files) = said.split_once('\n').unwrap();
    assert_eq!(files, "one\ntwo\nthree\nmine\nignored");
    assert!(!Path::new(at).starts_with(ws), "{at}");
    assert!(!Path::new(at).exists(), "{at}");
    same(&place.all(), &before);
    let output = place.check("grep -qx two f && test ! -e .git");
    assert_eq!(code(&output), 0, "{}", errors(&output));
    place.undone();
}

#[test]
fn undo11_ctrl_c_leaves_everything_as_it_is() {
    for (signal, expected) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let place = Place::new();
        let before = place.all();
        // A command that ends well nevertheless.
        let child =
            place.start("trap 'exit 0' INT TERM; : > $SIGNS/ready; while :; do sleep 0.02; done");
        let end = Instant::now() + Duration::from_secs(60);
        while !place.signs.path().join("ready").exists() {
            assert!(Instant::now() < end, "the command is not ready");
            std::thread::sleep(Duration::from_millis(5));
        }
        let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
        match signal {
            // As the terminal sends it.
            Signal::INT => kill_process_group(pid, signal).unwrap(),
            _ => kill_process(pid, signal).unwrap(),
        }
        let output = world::finish(child, "the check");
        assert_eq!(code(&output), expected, "{}", errors(&output));
        let said = errors(&output);
        assert!(said.contains("stopped; nothing was undone"), "{said}");
        same(&place.all(), &before);
        place.nothing_left();
    }
}

#[test]
fn undo11_works_with_every_form_of_undo() {
    let mut place = Place::new();
    let before = place.all();
    // A dry run changes nothing, whatever the command says.
    for (command, expected) in [("grep -qx two f", 0), ("false", FAILED)] {
        let output = place.run(&["undo", "a", "--dry-run", "--check", command]);
        assert_eq!(code(&output), expected, "{}", errors(&output));
        same(&place.all(), &before);
    }
    // As JSON, standard output has the result alone.
    let command = "echo said; grep -qx TWO f; test ! -e d/new";
    let args = ["--json", "undo", "--last", "--yes", "--check", command];
    let output = place.run(&args);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert!(errors(&output).contains("said\n"), "{}", errors(&output));
    let undone: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(undone["files"][0]["path"], "d/new", "{undone}");
    assert_eq!(place.text("f").unwrap(), "one\nTWO\nthree\n");
    assert_eq!(place.text("d/new"), None);
    // Since a prompt.
    let prompt = json!({"session": "a", "message": "p"});
    let prompt = place.agent.client.ok("checkpoint/create", prompt);
    let prompt = prompt["checkpoint"].as_str().unwrap().to_owned();
    place.write("f", "one\nTWO\nTHREE\n");
    let command = "grep -qx TWO f && grep -qx three f";
    let output = place.run(&["rewind", &prompt, "--yes", "--check", command]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert_eq!(place.text("f").unwrap(), "one\nTWO\nthree\n");
    // Some files, from a directory below the workspace.
    place.write("sub/a", "a\n");
    let mut command = place.command(&["undo", "a", "--yes"]);
    command
        .args(["--check", "test \"$(basename $PWD)\" = sub && test ! -e a"])
        .args(["--", "a"])
        .current_dir(place.world.path("sub"));
    let output = world::finish(children::start(&mut command).unwrap(), "the check");
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert_eq!(place.text("sub/a"), None);
    // Nothing to undo: nothing runs.
    let output = place.run(&["undo", "a", "--yes", "--check", "exit 9", "--", "d"]);
    assert_eq!(code(&output), 1, "{}", errors(&output));
    place.nothing_left();
}

#[test]
fn undo11_waits_for_the_end_of_a_turn_before_the_command_runs() {
    let place = Place::new();
    let mut talk = Talk::new(&place.world, "claude", "s-checked");
    talk.start().nothing();
    talk.prompt("p1", "go");
    talk.read("f").nothing();
    talk.edit("f", "three", "THREE");
    let args = ["undo", "s-checked", "--yes", "--check", ": > $SIGNS/runs"];
    let output = place.run(&args);
    assert_eq!(code(&output), 4, "{}", errors(&output));
    assert!(errors(&output).contains("busy"), "{}", errors(&output));
    assert!(!place.signs.path().join("runs").exists());
    // A dry run changes nothing, so it need not wait.
    let dry_run = ["undo", "s-checked", "--dry-run", "--check", "true"];
    assert_eq!(code(&place.run(&dry_run)), 0);
    talk.say(&talk.voice.stop());
    assert_eq!(code(&place.run(&args)), 0);
    assert_eq!(place.text("f").unwrap(), "one\nTWO\nthree\n");
    place.nothing_left();
}

#[test]
fn undo11_the_result_has_links_modes_and_large_contents() {
    let mut place = Place::new();
    let ws = place.world.workspace().to_owned();
    symlink("other", ws.join("link")).unwrap();
    // More than fits one answer.
    for name in ["x", "y", "z"] {
        let large = format!("{}\n", name.repeat(999)).repeat(2_000);
        fs::write(ws.join(name), large).unwrap();
    }
    let kept = place.signs.path().to_owned();
    for name in ["x", "y", "z"] {
        fs::copy(ws.join(name), kept.join(name)).unwrap();
        place.agent.read(name);
    }
    let begun = json!({"label": "sh", "scope": "workspace"});
    let begun = place.agent.ok("command/begin", begun);
    for name in ["x", "y", "z"] {
        fs::remove_file(ws.join(name)).unwrap();
    }
    fs::remove_file(ws.join("link")).unwrap();
    fs::set_permissions(ws.join("other"), fs::Permissions::from_mode(0o755)).unwrap();
    let end = json!({"command": begun["command"]});
    place.agent.client.ok("command/end", end);
    let output = place.check(
        "set -e
         for name in x y z; do cmp $name $SIGNS/$name; done
         test \"$(readlink link)\" = other
         test ! -x other",
    );
    assert_eq!(code(&output), 0, "{}", errors(&output));
    for name in ["x", "y", "z"] {
        assert_eq!(
            fs::read(ws.join(name)).unwrap(),
            fs::read(kept.join(name)).unwrap()
        );
    }
    assert_eq!(fs::read_link(ws.join("link")).unwrap(), Path::new("other"));
    place.undone();
}
