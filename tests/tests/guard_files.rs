//! Guarded writes: which files they may change, and what they leave open.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use touchmark_tests::process::until;
use touchmark_tests::world::binary;
use touchmark_tests::{World, children, mounts, text, user};

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns a world whose daemon is bound by file permissions, as an ordinary
/// user's is, even if the tests run as root.
fn bound_by_permissions() -> World {
    let mut world = World::asleep();
    if rustix::process::geteuid().is_root() {
        let caps = "--bounding-set=-dac_override,-dac_read_search,-fowner";
        world.launch_through(&["setpriv", caps]);
    }
    world.start();
    world
}

/// Returns the unnamed files that the daemon has open.
fn nameless(world: &World) -> Vec<PathBuf> {
    fs::read_dir(format!("/proc/{}/fd", world.pid()))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|path| path.starts_with(world.workspace()) && path != world.workspace())
        .collect()
}

/// SEC-10: such files are not written to by any name, not even with `force`.
#[test]
fn sec10_what_runs_unasked_is_not_written_to() {
    let mut world = World::new();
    let mut agent = world.session("s");
    world.file(".git/config", "[core]\n");
    world.file(".claude/settings.json", "{}\n");
    std::os::unix::fs::symlink(".git", world.path("innocent")).unwrap();
    std::os::unix::fs::symlink(".git/config", world.path("conf")).unwrap();
    for name in [
        ".git/config",
        ".git/hooks/post-checkout",
        "sub/.GIT/hooks/post-checkout",
        "innocent/config",
        "innocent/hooks/post-checkout",
        "conf",
        ".touchmark.toml",
        ".claude/settings.json",
        ".vscode/tasks.json",
    ] {
        let write = json!({"path": name, "text": "x\n", "force": true, "createDirectories": true});
        let refused = agent.refused("file/write", write, "protected");
        assert_eq!(refused.data["path"], name, "{}", refused.data);
    }
    agent.read("conf");
    let edit = json!({"path": "conf", "oldString": "core", "newString": "x"});
    agent.refused("file/edit", edit, "protected");
    assert_eq!(fs::read(world.path(".git/config")).unwrap(), b"[core]\n");
    assert_eq!(
        fs::read(world.path(".claude/settings.json")).unwrap(),
        b"{}\n"
    );
    for made in ["sub", ".git/hooks", ".vscode", ".touchmark.toml"] {
        assert!(!world.path(made).exists(), "{made}");
    }
    // Whose workspace it is may say otherwise.
    drop(agent);
    world.configure("[guard]\nprotect = [\"deploy/**\"]\n");
    world.restart();
    let mut agent = world.session("s");
    let write = json!({"path": ".git/config", "text": "x\n", "force": true});
    assert_eq!(agent.ok("file/write", write)["outcome"], "applied");
    let write = json!({"path": "deploy/x", "text": "x\n", "createDirectories": true});
    agent.refused("file/write", write, "protected");
}

/// A file with several names is written in place, by each of them.
#[test]
fn sec10_a_hard_link_of_what_is_protected_is_not_written_to() {
    let mut world = World::new();
    let protected = [
        ".git/config",
        ".git/hooks/pre-commit",
        ".touchmark.toml",
        "sub/.claude/hooks/check.sh",
        "sub/deep/.envrc",
    ];
    for (number, name) in protected.iter().enumerate() {
        world.file(name, "# as it was\n");
        fs::hard_link(world.path(name), world.path(format!("innocent-{number}"))).unwrap();
    }
    world.file("one.txt", "one\n");
    fs::hard_link(world.path("one.txt"), world.path("two.txt")).unwrap();
    let mut agent = world.session("s");
    for (number, name) in protected.iter().enumerate() {
        let innocent = format!("innocent-{number}");
        let write = json!({"path": innocent, "text": "x\n", "force": true});
        let refused = agent.refused("file/write", write, "protected");
        assert_eq!(refused.data["path"], json!(innocent), "{}", refused.data);
        let edit = json!({"path": innocent, "oldString": "was", "newString": "x", "force": true});
        agent.refused("file/edit", edit, "protected");
        let held = fs::read_to_string(world.path(name)).unwrap();
        assert_eq!(held, "# as it was\n", "{name}");
    }
    let write = json!({"path": "two.txt", "text": "both\n", "force": true});
    assert_eq!(agent.ok("file/write", write)["outcome"], "applied");
    assert_eq!(fs::read(world.path("one.txt")).unwrap(), b"both\n");
    world.healthy();
}

/// SEC-11. The daemon is detached, and started by the first client.
#[test]
fn new_files_have_the_permissions_of_whoever_asks() {
    let world = World::asleep();
    fs::create_dir(world.path(".git")).unwrap();
    for (mask, file, directory) in [("002", 0o664, 0o775), ("027", 0o640, 0o750)] {
        let path = format!("d{mask}/f");
        let ask = json!({"session": "s", "path": path, "text": "x", "createDirectories": true});
        let line = format!("umask {mask}; exec \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, "sh"]).arg(binary());
        shell.args(["call", "file/write", &ask.to_string()]);
        shell.current_dir(world.workspace());
        world.dress(&mut shell);
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let mode = |path: &str| world.path(path).metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&path), file, "{mask}");
        assert_eq!(mode(&format!("d{mask}")), directory, "{mask}");
    }
    assert!(world.run(&["stop"]).status.success());
}

#[test]
fn guard6_a_file_without_write_permission_is_refused_as_by_an_editor() {
    let mut world = bound_by_permissions();
    let mut agent = world.session("a");
    world.file("f", "one\n");
    let path = world.path("f");
    agent.read("f");
    // Overwritten unseen, so that there is something to restore.
    user::write(&path, "unseen\n");
    agent.ok(
        "file/write",
        json!({"path": "f", "text": "two\n", "force": true}),
    );
    let kept = agent.client.ok("recovery/list", json!({}))["items"][0]["id"].clone();

    mode(&path, 0o444);
    let write = json!({"path": "f", "text": "three\n"});
    let refused = agent.refused("file/write", write.clone(), "readOnly");
    assert_eq!(refused.data["path"], "f", "{}", refused.data);
    let forced = json!({"path": "f", "text": "three\n", "force": true});
    agent.refused("file/write", forced, "readOnly");
    let edit = json!({"path": "f", "oldString": "two", "newString": "three"});
    agent.refused("file/edit", edit, "readOnly");
    let restore = json!({"id": kept});
    agent
        .client
        .refused("recovery/restore", restore, "readOnly");

    assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
    let now = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(now & 0o777, 0o444);
    let names: Vec<_> = fs::read_dir(world.workspace()).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing lies beside it: {names:?}");
    // Nothing stays open, and the refusal changed nothing.
    assert_eq!(agent.state("f"), "fresh");
    assert_eq!(agent.client.ok("status", json!({}))["openEdits"], 0);
    mode(&path, 0o644);
    agent.ok("file/write", write);
    assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
    world.healthy();
}

#[test]
fn guard1_nothing_stays_open_that_would_keep_a_mount_busy() {
    mounts::apart(|| {
        let mut world = World::new();
        let mount = world.path("m");
        fs::create_dir(&mount).unwrap();
        mounts::mount("tmpfs", "tmpfs", "size=2m", &mount);
        let mut agent = world.session("a");
        for round in 0..3 {
            world.file("m/f", format!("{round}\n"));
            agent.read("m/f");
            agent.ok("file/write", json!({"path": "m/f", "text": "new\n"}));
        }
        until("the mount stays busy", || {
            let mut unmount =
                children::start(Command::new("umount").arg(&mount).stderr(Stdio::null())).unwrap();
            unmount.wait().unwrap().success()
        });
        world.healthy();
    });
}

#[test]
fn guard1_a_file_is_held_while_somebody_writes_to_it_and_no_longer() {
    let mut world = World::new();
    let mut agent = world.session("a");
    world.file("f", "old\n");
    let path = world.path("f");
    agent.read("f");
    agent
        .client
        .ok("subscribe", json!({"kinds": ["recovered"]}));
    // Found before the write, opened after it.
    let found =
        rustix::fs::open(&path, rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    agent.ok("file/write", json!({"path": "f", "text": "new\n"}));
    let late = {
        use std::os::fd::AsRawFd as _;
        format!("/proc/self/fd/{}", found.as_raw_fd())
    };
    let mut writer = OpenOptions::new().write(true).open(late).unwrap();
    drop(found);
    // A later write, whose old file no process has open, is released meanwhile.
    world.file("g", "old\n");
    agent.read("g");
    agent.ok("file/write", json!({"path": "g", "text": "new\n"}));
    until("a file that no process writes to is held", || {
        nameless(&world).len() == 1
    });
    writer.write_all(b"late, by its writer\n").unwrap();
    drop(writer);
    // There is no request.
    let event = agent.client.event();
    assert_eq!(event["type"], "recovered", "{event}");
    let kept = fs::read_to_string(text(&event, "kept")).unwrap();
    assert_eq!(kept, "late, by its writer\n");
    until("a file is held for no process", || {
        nameless(&world).is_empty()
    });
    world.healthy();
}

/// Containers mount single files (`docker -v conf:/ws/conf`). The name of such
/// a file cannot be exchanged or removed.
#[test]
fn guard2_a_file_that_is_a_mount_point_is_written_in_place() {
    mounts::apart(|| {
        let mut world = World::new();
        world.file("conf", "");
        let outside = world.outside().join("conf");
        fs::write(&outside, "one\n").unwrap();
        mounts::mount(
            "none",
            outside.to_str().unwrap(),
            "bind",
            &world.path("conf"),
        );
        let mut agent = world.session("a");
        agent.read("conf");
        agent.ok("file/write", json!({"path": "conf", "text": "two\n"}));
        assert_eq!(fs::read_to_string(&outside).unwrap(), "two\n");
        // A save that the session has not seen is not overwritten.
        user::append(&outside, "by the host\n");
        let params = json!({"path": "conf", "text": "three\n"});
        agent.refused("file/write", params, "stale");
        let undone = world.run(&["undo", "a", "--yes"]);
        assert!(undone.status.success(), "{undone:?}");
        assert_eq!(fs::read_to_string(&outside).unwrap(), "one\nby the host\n");
        let left: Vec<_> = fs::read_dir(world.workspace()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        mounts::unmount(&world.path("conf"));
        world.healthy();
    });
}
