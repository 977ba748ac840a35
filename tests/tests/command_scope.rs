//! Command windows with `scope` `workspace` (SCOPE-1): what commands do to
//! files that are not tracked. The truth is the bytes of the tree before and
//! after.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use touchmark_tests::{Session, World, mounts, parts, sha256, user};

/// Returns a world whose scans may take as long as a slow build needs.
fn world() -> World {
    let mut world = World::asleep();
    world.set_env("TOUCHMARK_TEST_SCOPE_MS", "20000");
    world.start();
    world
}

/// Runs a line of shell in the workspace.
fn sh(world: &World, line: &str) {
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(world.workspace())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@example.org")
        .env("GIT_EDITOR", "true")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
}

/// A file with its content, or a symlink with its target.
#[derive(Clone, PartialEq, Eq)]
struct Thing {
    mode: u32,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for Thing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = &self.bytes[..self.bytes.len().min(60)];
        write!(f, "{:06o} {:?}", self.mode, String::from_utf8_lossy(start))
    }
}

type Tree = BTreeMap<String, Thing>;

/// Returns all files and symlinks except git's and ignored ones.
fn tree(world: &World) -> Tree {
    fn below(directory: &Path, name: &str, all: &mut Tree) {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let own = entry.file_name().into_string().unwrap();
            let name = format!("{name}{own}");
            let kind = entry.file_type().unwrap();
            if matches!(&*own, ".git" | "target") || own.ends_with(".o") && own != "forced.o" {
                continue;
            }
            if kind.is_dir() {
                below(&entry.path(), &format!("{name}/"), all);
            } else if kind.is_file() || kind.is_symlink() {
                let bytes = match kind.is_symlink() {
                    true => fs::read_link(entry.path())
                        .unwrap()
                        .as_os_str()
                        .as_bytes()
                        .to_vec(),
                    false => fs::read(entry.path()).unwrap(),
                };
                let mode = entry.path().symlink_metadata().unwrap().mode();
                all.insert(name, Thing { mode, bytes });
            }
        }
    }
    let mut all = BTreeMap::new();
    below(world.workspace(), "", &mut all);
    all
}

fn hash(thing: Option<&Thing>) -> Value {
    thing.map_or(Value::Null, |thing| json!(sha256(&thing.bytes)))
}

/// Creates a repository with files of every kind.
fn repository(world: &World) {
    for number in 0..20 {
        world.file(
            &format!("src/f{number}.txt"),
            format!("head {number}\nmiddle\ntail\n"),
        );
    }
    world.file("README.md", "# read me\n");
    world.file("docs/a/b/deep.md", "deep\n");
    world.file("crlf.txt", "one\r\ntwo\r\n");
    world.file("bytes.bin", [0_u8, 159, 146, 150, 10]);
    world.file("no newline", "none at the end");
    world.file("empty", "");
    world.file("run.sh", "#!/bin/sh\n");
    world.file("private", "mine\n");
    world.file("forced.o", "tracked all the same\n");
    sh(
        world,
        "chmod 755 run.sh; chmod 600 private; ln -s README.md link.md; ln -s README.md kept.md; ln -s src linked; ln -s /nowhere/at/all broken",
    );
    world.file(".gitignore", "target/\n*.o\n");
    world.file("target/old.txt", "a build's\n");
    sh(
        world,
        "git init -q -b main && git add -A && git add -f forced.o && git commit -qm one",
    );
    sh(
        world,
        "git checkout -qb topic && git rm -q broken && ln -sfn docs kept.md && chmod +x src/f3.txt && for n in 1 2 3 4 5; do echo topic >> src/f$n.txt; done && echo t > src/topic.txt && git rm -q docs/a/b/deep.md && git add -A && git commit -qm topic && git checkout -q main",
    );
    // So old that git's index is enough to prove them.
    sh(
        world,
        "find . -name .git -prune -o -type f -print0 | xargs -0 touch -d 2020-01-01 && git status > /dev/null",
    );
    // Neither clean nor known to git.
    world.file("src/f6.txt", "dirty\n");
    world.file("untracked.txt", "of no session\n");
}

/// Runs a command in a window, as a hook would. Returns the command's row.
fn run(world: &World, agent: &mut Session, line: &str) -> Value {
    let begun = agent.ok(
        "command/begin",
        json!({"label": line, "scope": "workspace"}),
    );
    assert_eq!(begun["partial"], Value::Null, "{line}: {begun}");
    sh(world, line);
    let command = &begun["command"];
    let ended = agent
        .client
        .ok("command/end", json!({"command": command, "exit": 0}));
    assert_eq!(ended["command"]["command"], *command, "{line}: {ended}");
    assert_eq!(ended["partial"], Value::Null, "{line}: {ended}");
    ended["command"].clone()
}

/// Checks that every changed file has a version by the command, with the
/// contents before and after, and that no other file has.
fn check(agent: &mut Session, line: &str, row: &Value, before: &Tree, after: &Tree) {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut changed = 0;
    for name in names {
        let (was, is) = (before.get(name), after.get(name));
        if was == is {
            continue;
        }
        changed += 1;
        let history = agent.history(name);
        let newest = history
            .first()
            .unwrap_or_else(|| panic!("{line}: {name} has no version"));
        let story = format!("{line}: {name}: {newest}");
        assert_eq!(newest["author"]["session"], "s", "{story}");
        assert_eq!(newest["evidence"], "command", "{story}");
        assert_eq!(newest["command"], row["command"], "{story}");
        assert_eq!(newest["hash"], hash(is), "{story}");
        if let Some(is) = is {
            assert_eq!(newest["mode"], format!("{:06o}", is.mode), "{story}");
        }
        let kind = match (was, is) {
            (None, _) => vec!["created", "renamed"],
            (_, None) => vec!["deleted"],
            _ => vec!["modified"],
        };
        assert!(kind.iter().any(|kind| newest["kind"] == **kind), "{story}");
        if was.is_some() {
            let older = &history.get(1).expect(&story)["hash"];
            assert_eq!(*older, hash(was), "before: {story}");
        }
        if newest["kind"] == "renamed" {
            let from = newest["from"].as_str().expect(&story);
            assert_eq!(before.get(from), is, "{story}");
        }
    }
    assert_eq!(row["versions"], changed, "{line}: {row}");
}

#[track_caller]
fn assert_same(found: &Tree, wanted: &Tree, story: &str) {
    let names: BTreeSet<&String> = found.keys().chain(wanted.keys()).collect();
    let other: Vec<_> = names
        .into_iter()
        .filter(|name| found.get(*name) != wanted.get(*name))
        .map(|name| (name, found.get(name), wanted.get(name)))
        .collect();
    assert!(other.is_empty(), "{other:?} in {story}");
}

/// Commands of every kind that agents run.
const COMMANDS: &[&str] = &[
    // Files written in place, by a rename, and again.
    "sed -i s/middle/centre/ src/f0.txt",
    "sed -i s/head/HEAD/ src/f1.txt src/f2.txt src/f3.txt",
    "echo more >> README.md",
    "printf 'new\\n' > new.txt",
    "echo one > a.txt; echo two > b.txt",
    "cp README.md copy.md",
    "tee src/tee.txt < README.md > /dev/null",
    "cat src/f4.txt src/f5.txt > joined.txt",
    "perl -pi -e 's/tail/end/' src/f7.txt",
    "awk '{print NR\": \"$0}' src/f8.txt > tmp && mv tmp src/f8.txt",
    "dd if=/dev/zero of=zeros bs=1024 count=4 2> /dev/null",
    "truncate -s 3 joined.txt",
    "truncate -s 0 README.md",
    ": > src/f9.txt",
    "python3 -c 'open(\"gen.py\",\"w\").write(\"x = 1\\n\")'",
    "printf '\\0\\1\\377' > bytes.bin",
    "printf 'one\\r\\nthree\\r\\n' > crlf.txt",
    "printf 'still none' > 'no newline'",
    "echo 'a b' > 'name with  spaces'",
    "echo u > 'ümläut.txt'",
    "mkdir -p deep/er/est && echo d > deep/er/est/f",
    "install -m 600 a.txt installed.txt",
    "split -l 1 src/f10.txt part-",
    "sort -o src/f11.txt src/f11.txt",
    "tr a-z A-Z < src/f12.txt > up && mv up src/f12.txt",
    // Nothing changes.
    "true",
    "cat README.md > /dev/null",
    "ls -lR > /dev/null",
    "touch src/f13.txt",
    "touch -d '2001-01-01' src/f14.txt",
    "chmod +x src/f13.txt",
    "cp src/f13.txt x && mv x src/f13.txt",
    "echo s > short-lived && rm short-lived",
    "sed -i s/nowhere/else/ src/f15.txt",
    "git status > /dev/null",
    "grep -r middle src > /dev/null",
    "ln -s README.md link && rm link",
    // Ignored.
    "mkdir -p target/debug && echo o > target/debug/out.txt",
    "echo o > x.o",
    "rm -r target && mkdir target && echo again > target/old.txt",
    "echo y > y.o; echo y > y.txt",
    // Moved and removed.
    "mv a.txt moved.txt",
    "mv moved.txt src/",
    "git mv src/f16.txt src/renamed.txt",
    "mv src/tee.txt README.md",
    "mkdir sub && mv src/f17.txt src/f18.txt sub/",
    "mv sub other",
    "rm b.txt",
    "rm -r other",
    "rm -rf deep",
    "mv copy.md tmp && mv zeros copy.md && mv tmp zeros",
    "mkdir away && mv docs away/ && mv away/docs . && rmdir away",
    "rm new.txt && mkdir new.txt && echo in > new.txt/in",
    "rm -r new.txt && echo file > new.txt",
    "cp -r src src2",
    "rm -r src2",
    "find . -name 'part-*' -delete",
    "ln README.md hard && rm README.md && mv hard README.md",
    "rm gen.py; echo back > gen.py",
    // Modes and links.
    "chmod +x src/f0.txt src/f1.txt",
    "chmod 640 README.md && echo more >> README.md",
    "sed -i s/sh/bash/ run.sh && chmod 700 run.sh",
    "rm run.sh private",
    "ln -s README.md new-link && ln -s ../nowhere src/out",
    "ln -sf src/f1.txt new-link",
    "mv new-link moved-link",
    "rm moved-link link.md",
    "rm gen.py && ln -s README.md gen.py",
    "rm gen.py && cp README.md gen.py",
    "mv docs docs2 && ln -s docs2 docs",
    "rm docs && mv docs2 docs",
    "echo through > linked/f19.txt",
    "echo ignored, but git has it > forced.o",
    "rm forced.o",
    "rename() { mv \"$1\" \"$2\"; }; rename gen.py gen2.py",
    // Archives and generators.
    "tar cf all.tar src",
    "mkdir un && tar xf all.tar -C un",
    "rm -r un && tar xf all.tar",
    "gzip -k README.md",
    "gunzip -f README.md.gz",
    "rm all.tar",
    "for n in $(seq 40); do echo $n > gen-$n.txt; done",
    "for n in $(seq 40); do sed -i s/^/x/ gen-$n.txt; done",
    "rm gen-*.txt",
    "seq 1000 > numbers.txt",
    "seq 1000 | sed s/5/five/ > numbers.txt",
    "make -f - <<'M'\nall:\n\techo made > made.txt\nM\n",
    "python3 - <<'P'\nimport os\nfor n in range(10):\n    open(f'py{n}.txt', 'w').write(str(n))\nP\n",
    "rm py*.txt",
    "patch -s -p0 <<'P'\n--- made.txt\n+++ made.txt\n@@ -1 +1 @@\n-made\n+patched\nP\n",
    // Pipelines, subshells, in the background.
    "sh -c 'sh -c \"echo nested > nested.txt\"'",
    "(cd src && echo sub >> f0.txt)",
    "cat src/f0.txt | tr a-z A-Z | tee upper.txt | wc -l > lines.txt",
    "echo bg > bg.txt & wait",
    "(echo one > p1 & echo two > p2 & wait)",
    "xargs -n 1 touch <<'X'\nt1\nt2\nX\n",
    "find src -name 'f1*.txt' | xargs sed -i '1s/^/first /'",
    "set -e; echo x > x1; cp x1 x2; rm x1",
    "exec 3> fd.txt; echo three >&3; exec 3>&-",
    // Git.
    "git add -A && git commit -qm 'all of it'",
    "git checkout -q -b other",
    "echo other >> README.md && git commit -qam other",
    "git checkout -q main",
    "git checkout -q topic",
    "git checkout -q main",
    "git merge -q -X ours -m merged topic",
    "git reset -q --hard HEAD~1",
    "echo stashed >> README.md && git stash -q",
    "git stash pop -q",
    "git checkout -q -- .",
    "git rebase -q -X theirs topic",
    "git cherry-pick -X theirs other > /dev/null",
    "git revert --no-edit HEAD > /dev/null",
    "git rm -q -r docs 2> /dev/null || rm -f upper.txt",
    "git restore --staged . && git checkout -q -- .",
    "git clean -fdq",
    "git checkout -q HEAD~2 2> /dev/null",
    "git switch -q main",
    "git worktree prune && git gc -q",
];

#[test]
fn each_change_of_a_hundred_commands_has_its_author_and_is_undone() {
    assert!(COMMANDS.len() >= 100, "{}", COMMANDS.len());
    let world = world();
    repository(&world);
    let mut agent = world.session("s");
    let mut all = 0;
    for line in COMMANDS {
        let before = tree(&world);
        let row = run(&world, &mut agent, line);
        let after = tree(&world);
        check(&mut agent, line, &row, &before, &after);
        let versions = row["versions"].as_u64().unwrap();
        all += versions;
        if versions > 0 {
            let undo = json!({"command": row["command"], "likely": true});
            let undone = agent.client.ok("undo", undo);
            assert_same(&tree(&world), &before, &format!("undo of {line}: {undone}"));
            let redone = agent.client.ok("redo", json!({}));
            assert_same(&tree(&world), &after, &format!("redo of {line}: {redone}"));
        }
    }
    assert!(all > 200, "{all}");
    for ignored in ["target/old.txt", "target/debug/out.txt", "x.o"] {
        assert_eq!(agent.history(ignored), Vec::<Value>::new(), "{ignored}");
    }
    // What it costs afterwards: no file is tracked.
    let status = agent.client.ok("status", json!({}));
    assert_eq!(status["trackedFiles"], 0, "{status}");
}

#[test]
fn what_was_changed_before_a_window_or_by_an_editor_is_not_the_commands() {
    let world = world();
    for name in ["before", "between", "saved", "wrote", "read"] {
        world.file(name, format!("{name}\n"));
    }
    let mut agent = world.session("s");
    agent.read("read");
    // A first look, so that the next one has the previous content.
    run(&world, &mut agent, "true");
    user::write(&world.path("before"), "by the user\n");
    user::write(&world.path("made"), "by the user\n");
    run(&world, &mut agent, "true");
    user::write(&world.path("between"), "by the user\n");
    let begun = agent.ok("command/begin", json!({"scope": "workspace"}));
    user::write(&world.path("wrote"), "by the command\n");
    user::write(&world.path("read"), "by the command\n");
    user::write(&world.path("saved"), "by an editor\n");
    let path = world.path("saved");
    agent.client.ok(
        "editor/didSave",
        json!({"path": path, "hash": sha256(b"by an editor\n")}),
    );
    let ended = agent
        .client
        .ok("command/end", json!({"command": begun["command"]}));
    for name in ["before", "made", "between"] {
        assert_eq!(agent.history(name), Vec::<Value>::new(), "{name}");
    }
    let of = |agent: &mut Session, name: &str| {
        let newest = agent.history(name).remove(0);
        (newest["author"]["kind"].clone(), newest["command"].clone())
    };
    let command = &begun["command"];
    assert_eq!(of(&mut agent, "wrote"), (json!("agent"), command.clone()));
    assert_eq!(of(&mut agent, "read"), (json!("agent"), command.clone()));
    assert_eq!(of(&mut agent, "saved"), (json!("user"), Value::Null));
    // That of the file which its session holds is told, and counted.
    assert_eq!(
        touchmark_tests::paths(ended["changes"].as_array().unwrap()),
        ["read"]
    );
    assert_eq!(ended["command"]["versions"], 2, "{ended}");
}

#[test]
fn windows_of_two_sessions_are_told_apart_by_when_they_were_open() {
    let world = world();
    world.file("f", "one\n");
    let (mut a, mut b) = (world.session("a"), world.session("b"));
    let begin = |session: &mut Session| {
        session.ok("command/begin", json!({"scope": "workspace"}))["command"].clone()
    };
    let first = begin(&mut a);
    user::write(&world.path("alone"), "of the first\n");
    let second = begin(&mut b);
    user::write(&world.path("both"), "of either\n");
    a.client.ok("command/end", json!({"command": first}));
    user::write(&world.path("later"), "of the second\n");
    b.client.ok("command/end", json!({"command": second}));
    user::write(&world.path("nobody"), "of no session\n");
    run(&world, &mut a, "true");
    let newest = |session: &mut Session, name: &str| session.history(name).remove(0);
    let alone = newest(&mut a, "alone");
    assert_eq!(alone["author"]["session"], "a", "{alone}");
    assert_eq!(alone["candidates"], Value::Null, "{alone}");
    let both = newest(&mut a, "both");
    assert_eq!(both["candidates"], json!(["b", "a"]), "{both}");
    assert_eq!(both["command"], second, "{both}");
    let later = newest(&mut a, "later");
    assert_eq!(later["author"]["session"], "b", "{later}");
    assert_eq!(a.history("nobody"), Vec::<Value>::new());
}

#[test]
fn a_checkout_of_many_files_is_one_entry_that_names_the_branches() {
    let world = world();
    for number in 0..400 {
        world.file(&format!("d{}/f{number}", number % 7), format!("{number}\n"));
    }
    sh(
        &world,
        "git init -q -b main && git add -A && git commit -qm one && git checkout -qb topic && for f in d*/*; do echo topic >> $f; done && git commit -qam two && git checkout -q main",
    );
    let mut agent = world.session("s");
    let mut subscriber = world.client();
    subscriber.ok("subscribe", json!({"kinds": ["command"]}));
    let line = "git checkout -q topic";
    let row = run(&world, &mut agent, line);
    assert_eq!(row["versions"], 400, "{row}");
    assert_eq!(row["label"], line, "{row}");
    assert_eq!(row["branchBefore"], "main", "{row}");
    assert_eq!(row["branchAfter"], "topic", "{row}");
    assert_eq!(row["exit"], 0, "{row}");
    let event = subscriber.event();
    assert_eq!(event["command"], row, "{event}");
    let listed = agent.client.ok("command/list", json!({"session": "s"}));
    assert_eq!(listed["commands"], json!([row]), "{listed}");
    let mut other = world.session("t");
    other.sync();
    let listed = other.ok("command/list", json!({}));
    assert_eq!(listed["commands"], json!([]), "{listed}");
}

#[test]
fn the_commands_are_known_after_a_restart_and_gone_with_their_session() {
    let mut world = world();
    world.file("f", "one\n");
    let mut agent = world.session("s");
    let row = run(&world, &mut agent, "echo two > f");
    // A clean end takes a snapshot, which covers the window's facts.
    world.stop();
    world.start();
    let mut client = world.client();
    let listed = client.ok("command/list", json!({}));
    assert_eq!(listed["commands"], json!([row]), "{listed}");
    client.ok("session/close", json!({"session": "s", "forget": true}));
    let listed = client.ok("command/list", json!({}));
    assert_eq!(listed["commands"], json!([]), "{listed}");
}

#[test]
fn the_size_and_the_time_of_a_file_are_not_believed() {
    let world = world();
    world.file("f", "one\n");
    let mut agent = world.session("s");
    let row = run(
        &world,
        &mut agent,
        "printf 'ONE\\n' > f && touch -d @1000000000 f",
    );
    assert_eq!(row["versions"], 1, "{row}");
    // Size and time of modification stay, and so does the inode.
    let row = run(
        &world,
        &mut agent,
        "printf 'two\\n' > f && touch -d @1000000000 f",
    );
    assert_eq!(row["versions"], 1, "{row}");
    let history = agent.history("f");
    assert_eq!(history[0]["hash"], json!(sha256(b"two\n")), "{history:?}");
    assert_eq!(history[1]["hash"], json!(sha256(b"ONE\n")), "{history:?}");
}

#[test]
fn links_and_modes_are_versions_and_special_files_are_none() {
    let world = world();
    world.file("f", "one\n");
    world.file("g", "two\n");
    world.file("real/x", "x\n");
    let mut agent = world.session("s");
    let row = run(
        &world,
        &mut agent,
        "ln -s f link; ln -s real directory; ln -s /etc outside; ln -s nowhere broken; mkfifo pipe; chmod 600 f; ln f second",
    );
    // Four links, a mode, and a second name that was not there.
    assert_eq!(row["versions"], 6, "{row}");
    assert_eq!(agent.history("second")[0]["kind"], "created");
    let link = agent.history("link").remove(0);
    assert_eq!(link["mode"], "120777", "{link}");
    assert_eq!(link["hash"], json!(sha256(b"f")), "{link}");
    let mode = agent.history("f").remove(0);
    assert_eq!(mode["mode"], "100600", "{mode}");
    assert_eq!(mode["modeBefore"], "100644", "{mode}");
    let row = run(
        &world,
        &mut agent,
        "rm g && ln -s f g; rm link; echo three > pipe2; rm pipe",
    );
    assert_eq!(row["versions"], 3, "{row}");
    assert_eq!(agent.history("g")[0]["kind"], "modified");
    let before = tree(&world);
    let row = run(
        &world,
        &mut agent,
        "rm g; echo back > g; rm -r real; ln -s . real",
    );
    assert_eq!(row["versions"], 3, "{row}");
    assert_eq!(agent.history("real/x")[0]["kind"], "deleted");
    agent
        .client
        .ok("undo", json!({"command": row["command"], "likely": true}));
    assert_same(&tree(&world), &before, "undo");
}

/// SCOPE-4: a subvolume of btrfs has a device number of its own, and is part of
/// the file system that the workspace is on. Another mount is not.
#[test]
fn files_in_a_subvolume_are_versions() {
    let known = fs::read_to_string("/proc/filesystems").unwrap();
    if !known.contains("btrfs") {
        return parts::not_tested("a btrfs subvolume: this kernel has no btrfs");
    }
    mounts::apart(|| {
        let mut world = World::asleep();
        world.set_env("TOUCHMARK_TEST_SCOPE_MS", "20000");
        let image = world.outside().join("disk");
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let made = Command::new("mkfs.btrfs")
            .args(["-q", "--mixed"])
            .arg(&image)
            .status();
        assert!(made.unwrap().success());
        mounts::mount("btrfs", image.to_str().unwrap(), "loop", world.workspace());
        sh(
            &world,
            "git init -q && btrfs -q subvolume create part && mkdir m",
        );
        mounts::mount("tmpfs", "tmpfs", "size=1m", &world.path("m"));
        world.file("part/sub/f", "one\n");
        world.file("part/moved", "two\n");
        world.file("m/f", "three\n");
        world.start();
        let before = tree(&world);
        let mut agent = world.session("s");
        run(&world, &mut agent, "true");
        let row = run(
            &world,
            &mut agent,
            "echo more >> part/sub/f; mv part/moved here; echo more >> m/f",
        );
        assert_eq!(
            agent.history("part/sub/f")[0]["author"]["session"],
            "s",
            "{row}"
        );
        assert_eq!(agent.history("part/moved")[0]["kind"], "deleted", "{row}");
        assert_eq!(row["versions"], 3, "{row}");
        world.file("m/f", "three\n");
        agent
            .client
            .ok("undo", json!({"command": row["command"], "likely": true}));
        assert_same(&tree(&world), &before, "undo");
    });
}

/// A file that a session has read is reported from its own events. Its mode is
/// not.
#[test]
fn a_mode_of_a_file_that_a_session_holds_is_undone_and_a_users_stays() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = world();
    world.file("held", "one\n");
    world.file("later", "one\n");
    let mut agent = world.session("s");
    agent.read("held");
    run(&world, &mut agent, "true");
    let row = run(&world, &mut agent, "chmod 755 held later");
    assert_eq!(row["versions"], 2, "{row}");
    assert_eq!(agent.history("held")[0]["mode"], "100755");
    assert_eq!(agent.status("held")["state"], "fresh");
    let path = world.path("later");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    agent
        .client
        .ok("undo", json!({"command": row["command"], "likely": true}));
    let mode = |name: &str| world.path(name).metadata().unwrap().mode() & 0o7777;
    assert_eq!((mode("held"), mode("later")), (0o644, 0o600));
}

/// Where a symlink replaced a file that a session has read, nothing is written
/// to its target.
#[test]
fn no_undo_writes_through_a_link_that_a_command_made() {
    let world = world();
    world.file("held", "of the file\n");
    world.file("other", "of the other\n");
    let mut agent = world.session("s");
    agent.read("held");
    run(&world, &mut agent, "true");
    let row = run(&world, &mut agent, "rm held && ln -s other held");
    if row["versions"].as_u64().unwrap() > 0 {
        agent
            .client
            .ok("undo", json!({"command": row["command"], "likely": true}));
    }
    assert_eq!(fs::read(world.path("other")).unwrap(), b"of the other\n");
    // A link that a user has pointed elsewhere since stays.
    let row = run(&world, &mut agent, "ln -s other to");
    sh(&world, "ln -sfn held to");
    let undone = agent
        .client
        .ok("undo", json!({"command": row["command"], "likely": true}));
    assert_eq!(undone["files"][0]["outcome"], "conflict", "{undone}");
    let to = fs::read_link(world.path("to")).unwrap();
    assert_eq!(to, Path::new("held"));
}

/// Commands as above. The line that a user adds at the top after them must
/// stay.
#[test]
fn what_a_user_added_after_a_command_stays_when_it_is_undone() {
    let world = world();
    repository(&world);
    let mut agent = world.session("s");
    run(&world, &mut agent, "true");
    for line in [
        "sed -i s/middle/centre/ src/f*.txt",
        "perl -pi -e 's/tail/end/' src/f7.txt src/f8.txt",
        "mv src/f1.txt moved.txt; echo new > new.txt",
        "mkdir sub && mv src/f*.txt sub/",
        "git checkout -q topic",
        "for n in 1 2 3; do echo $n > gen-$n.txt; done",
        "chmod +x src/f2.txt && echo x >> src/f2.txt",
        "tar cf - src | (mkdir un && tar xf - -C un)",
    ] {
        sh(&world, "git stash -qu 2> /dev/null; git checkout -qf main");
        run(&world, &mut agent, "true");
        let before = tree(&world);
        let row = run(&world, &mut agent, line);
        let after = tree(&world);
        // In every second file that it changed.
        let changed = after.iter().filter(|(name, is)| {
            is.mode & 0o170_000 == 0o100_000 && before.get(*name) != Some(*is)
        });
        let edited: Vec<&String> = changed.map(|(name, _)| name).step_by(2).collect();
        assert!(!edited.is_empty(), "{line}");
        for name in &edited {
            let mut bytes = b"of the user\n".to_vec();
            bytes.extend(&after[*name].bytes);
            user::write(&world.path(name), &String::from_utf8(bytes).unwrap());
        }
        let undone = agent
            .client
            .ok("undo", json!({"command": row["command"], "likely": true}));
        let now = tree(&world);
        let story = format!("{line}: {undone}");
        let mut wanted = before.clone();
        let rows = undone["files"].as_array().unwrap();
        for name in edited {
            // It has its old name back.
            let row = rows.iter().find(|row| row["path"] == **name).expect(&story);
            let place = row["to"].as_str().unwrap_or(name);
            let thing = wanted.entry(place.to_owned()).or_insert_with(|| Thing {
                mode: after[name].mode,
                bytes: Vec::new(),
            });
            thing.bytes.splice(0..0, b"of the user\n".iter().copied());
        }
        assert_same(&now, &wanted, &story);
    }
}

#[test]
fn a_change_that_two_requests_look_for_is_recorded_once() {
    const ROUNDS: usize = 40;
    let world = world();
    let mut agent = world.session("a");
    let mut other = world.client();
    run(&world, &mut agent, "echo one > made");
    for round in 0..ROUNDS {
        user::append(&world.path("made"), "mine\n");
        // Both look at the file, in some rounds before either has recorded what
        // it found.
        let window = json!({"session": "a", "scope": "workspace", "callId": "c"});
        let begin = agent.client.send("command/begin", &window);
        std::thread::sleep(Duration::from_micros(50 * round as u64));
        other.ok("sync", json!({}));
        agent.client.answer(begin).unwrap();
        agent.ok("command/end", json!({"callId": "c"}));
    }
    let mut story = vec!["agent:a command"];
    story.extend(["user unmarked"; ROUNDS]);
    assert_eq!(agent.story("made"), story);
}

#[test]
fn what_is_excluded_or_ignored_by_now_is_left_alone() {
    let mut world = World::asleep();
    world.set_env("TOUCHMARK_TEST_SCOPE_MS", "20000");
    world.configure("scope.exclude = [\"data\", \"*.log\"]\n");
    world.start();
    world.file("data/big", "one\n");
    world.file("a.log", "one\n");
    world.file("build/out", "one\n");
    let mut agent = world.session("s");
    let row = run(
        &world,
        &mut agent,
        "echo two | tee data/big a.log sub.log > /dev/null",
    );
    assert_eq!(row["versions"], 0, "{row}");
    // From then on what is below is ignored, and it is not gone for that.
    let row = run(
        &world,
        &mut agent,
        "echo build > .gitignore; echo two > build/out",
    );
    assert_eq!(row["versions"], 1, "{row}");
    let row = run(&world, &mut agent, "rm .gitignore; echo three > build/out");
    assert_eq!(row["versions"], 1, "{row}");
    let row = run(&world, &mut agent, "echo four > build/out");
    assert_eq!(row["versions"], 1, "{row}");
    assert_eq!(
        agent.history("build/out")[1]["hash"],
        json!(sha256(b"three\n"))
    );
}

#[test]
fn repositories_in_the_workspace_have_rules_and_an_index_of_their_own() {
    let world = world();
    world.file(".gitignore", "*.txt\n");
    world.file("inner/kept.txt", "one\n");
    world.file("inner/.gitignore", "*.o\n");
    world.file("inner/a/b.c", "one\n");
    sh(
        &world,
        "git init -q . && git -C inner init -q && git -C inner add -A && git -C inner commit -qm one",
    );
    let mut agent = world.session("s");
    let row = run(
        &world,
        &mut agent,
        "echo two > inner/kept.txt; echo two > inner/a/b.c; echo o > inner/x.o; echo x > x.txt",
    );
    assert_eq!(row["versions"], 2, "{row}");
    for (name, before) in [("inner/kept.txt", b"one\n"), ("inner/a/b.c", b"one\n")] {
        let history = agent.history(name);
        assert_eq!(history[1]["hash"], json!(sha256(before)), "{history:?}");
    }
}

#[test]
fn a_look_that_has_no_time_says_what_it_left_out() {
    let mut world = World::asleep();
    world.set_env("TOUCHMARK_TEST_SCOPE_MS", "0");
    world.start();
    world.file("f", "one\n");
    let mut agent = world.session("s");
    let begun = agent.ok("command/begin", json!({"scope": "workspace"}));
    let partial = begun["partial"].as_str().expect("partial");
    assert!(partial.contains("only 0 files"), "{partial}");
    let command = &begun["command"];
    let ended = agent.client.ok("command/end", json!({"command": command}));
    assert!(ended["partial"].is_string(), "{ended}");
}

/// `command/end` is answered before its look is complete. The daemon completes
/// the look after the answer.
#[test]
fn a_look_that_had_no_time_goes_on_after_the_answer() {
    let mut world = World::asleep();
    world.set_env("TOUCHMARK_TEST_SCOPE_MS", "0");
    world.start();
    let names: Vec<String> = (0..40).map(|number| format!("d{number}/f.txt")).collect();
    let write = |text: &str| {
        for name in &names {
            world.file(name, text);
        }
    };
    write("one\n");
    let mut agent = world.session("s");
    // Below a directory that no look has reached, all files are old.
    let begun = agent.ok("command/begin", json!({"scope": "workspace"}));
    let command = &begun["command"];
    agent.client.ok("command/end", json!({"command": command}));
    agent.client.ok("sync", json!({}));
    for round in 0..5 {
        // Saved while no command runs.
        let users = format!("the user's {round}\n");
        write(&users);
        agent.client.ok("sync", json!({}));
        // Longer than the allowance for the precision of files' times.
        std::thread::sleep(Duration::from_millis(60));
        let begun = agent.ok("command/begin", json!({"scope": "workspace"}));
        assert!(begun["partial"].is_string(), "{begun}");
        let agents = format!("the agent's {round}\n");
        write(&agents);
        let ended = agent
            .client
            .ok("command/end", json!({"command": begun["command"]}));
        assert!(ended["partial"].is_string(), "{ended}");
        if round % 2 == 1 {
            // The look before the next command finds what is left.
            let next = agent.ok("command/begin", json!({"scope": "workspace"}));
            let command = &next["command"];
            agent.client.ok("command/end", json!({"command": command}));
        }
        agent.client.ok("sync", json!({}));
        for name in &names {
            let history = agent.history(name);
            let newest = &history[0];
            assert_eq!(newest["command"], begun["command"], "{newest}");
            assert_eq!(newest["author"]["session"], "s", "{newest}");
            assert_eq!(newest["hash"], json!(sha256(agents.as_bytes())), "{newest}");
        }
        let params = json!({"command": begun["command"], "now": true, "likely": true});
        let undone = agent.ok("undo", params);
        for name in &names {
            let holds = fs::read_to_string(world.path(name)).unwrap();
            // What the user saved before the command was not seen, if the look
            // before it had no time. It is not replaced by something older.
            let is_kept = round == 0 && holds == agents;
            assert!(
                holds == users || is_kept,
                "round {round}, {name}: {holds}, {undone}"
            );
        }
    }
    world.healthy();
}

#[test]
fn a_window_of_tracked_files_looks_at_no_others() {
    let world = world();
    world.file("f", "one\n");
    let mut agent = world.session("s");
    for scope in [json!({}), json!({"scope": "tracked"})] {
        let begun = agent.ok("command/begin", scope);
        user::write(&world.path("f"), "two\n");
        let ended = agent
            .client
            .ok("command/end", json!({"command": begun["command"]}));
        assert_eq!(ended["command"]["versions"], 0, "{ended}");
        assert_eq!(agent.history("f"), Vec::<Value>::new());
    }
}

/// Numbered lines, of which one or two are replaced.
fn numbered(round: usize, replaced: &[(usize, &str)]) -> String {
    let lines = (0..20).map(|number| {
        let found = replaced.iter().find(|(at, _)| *at == number);
        match found {
            Some((_, text)) => format!("{round} {text}\n"),
            None => format!("{round} line {number}\n"),
        }
    });
    lines.collect()
}

#[test]
fn scope3_a_save_right_before_a_command_stays_the_users() {
    let mut world = world();
    let mut agent = world.session("s");
    let names: Vec<String> = (0..50).map(|n| format!("f{n}.txt")).collect();
    let save = |text: &str| {
        for name in &names {
            fs::write(world.path(name), text).unwrap();
        }
    };
    let (by_agent, by_user) = ((3, "an agent's line"), (15, "a user's line"));
    for round in 0..30 {
        save(&numbered(round, &[]));
        let begun = agent.ok("command/begin", json!({"scope": "workspace"}));
        save(&numbered(round, &[by_agent]));
        agent
            .client
            .ok("command/end", json!({"command": begun["command"]}));
        save(&numbered(round, &[by_agent, by_user]));
        let params = json!({"command": begun["command"], "now": true, "likely": true});
        let undone = agent.ok("undo", params);
        let wanted = numbered(round, &[by_user]);
        for name in &names {
            let holds = fs::read_to_string(world.path(name)).unwrap();
            assert_eq!(holds, wanted, "round {round}, {name}: {undone}");
        }
    }
    world.healthy();
}

#[test]
fn scope3_a_change_of_unknown_lines_is_not_undone() {
    let mut world = world();
    let mut agent = world.session("s");
    // Too large to be read before a user changes it.
    let large = |last: &str| format!("{}{last}\n", "a line\n".repeat(5 << 20));
    world.file("large.txt", large("first"));
    run(&world, &mut agent, "true");
    // The user's own lines come into the file unseen.
    fs::write(world.path("large.txt"), large("the user's")).unwrap();
    let row = run(&world, &mut agent, "echo small > large.txt");
    let newest = &agent.history("large.txt")[0];
    assert_eq!(newest["kind"], "modified", "{newest}");
    assert_eq!(newest["beforeUnknown"], true, "{newest}");
    fs::write(world.path("large.txt"), "small\nthe user's\n").unwrap();
    let params = json!({"command": row["command"], "now": true, "likely": true});
    let undone = agent.ok("undo", params);
    assert_eq!(undone["files"][0]["outcome"], "notKept", "{undone}");
    let holds = fs::read_to_string(world.path("large.txt")).unwrap();
    assert_eq!(holds, "small\nthe user's\n");
    let lines = agent.client.ok("file/blame", json!({"path": "large.txt"}));
    assert_eq!(lines["lines"][0]["author"]["kind"], "unknown", "{lines}");
    world.healthy();
}

/// A home directory as workspace contains the daemon's own files.
#[test]
fn scope8_touchmarks_own_files_are_no_files_of_the_workspace() {
    let mut world = World::asleep();
    world.set_env("TOUCHMARK_TEST_SCOPE_MS", "20000");
    let state = world.path(".local/state");
    world.set_env("XDG_STATE_HOME", state.to_str().unwrap());
    world.start();
    let mut agent = Session::new(world.client(), "s", &world.path(""));
    world.file("notes.txt", "one\n");
    agent.read("notes.txt");
    for round in 0..3 {
        let begun = agent.ok(
            "command/begin",
            json!({"scope": "workspace", "label": "sh"}),
        );
        sh(&world, &format!("echo {round} > made-{round}.txt"));
        let ended = agent.ok("command/end", json!({"command": begun["command"]}));
        assert_eq!(ended["command"]["versions"], 1, "{ended}");
    }
    let own = fs::read_dir(state.join("touchmark")).unwrap();
    let own = own.map(|entry| entry.unwrap().path());
    let own = own.filter(|path| path.is_dir()).last().unwrap();
    let store = own.join("store.db");
    let store = store.strip_prefix(world.workspace()).unwrap();
    let store = store.to_str().unwrap();
    agent.refused("file/read", json!({"path": store}), "unreadable");
    let garbage = json!({"path": store, "text": "garbage", "force": true});
    agent.refused("file/write", garbage, "unreadable");
    let other = format!("{store}.other");
    let garbage = json!({"path": other, "text": "garbage", "force": true});
    agent.refused("file/write", garbage, "protected");
    // What the store writes makes no version that it would have to write.
    let clock = || world.client().ok("sync", json!({}))["clock"].clone();
    let before = clock();
    assert_eq!(clock(), before);
    world.healthy();
}
