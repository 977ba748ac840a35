//! SEC-7: touchmark runs none of the programs that a repository names, whatever
//! makes it start git.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::json;
use touchmark_tests::worktrees::{Agent, commit, git, replace, row, two};
use touchmark_tests::{World, user};

/// Programs that leave a mark when they run.
struct Marks {
    directory: PathBuf,
}

impl Marks {
    fn new(world: &World) -> Self {
        let directory = world.outside().join("marks");
        fs::create_dir_all(&directory).unwrap();
        Self { directory }
    }

    /// Returns a shell command that leaves a mark and copies its input.
    fn command(&self, name: &str) -> String {
        format!("touch {}; cat", self.directory.join(name).display())
    }

    /// Writes a program that leaves a mark.
    fn program(&self, path: &Path, name: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = format!("#!/bin/sh\n{} </dev/null\n", self.command(name));
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns the programs that ran since the last call.
    fn taken(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(&self.directory).unwrap().map(Result::unwrap);
        entries
            .map(|entry| {
                fs::remove_file(entry.path()).unwrap();
                entry.file_name().into_string().unwrap()
            })
            .collect()
    }
}

const HOOKS: [&str; 6] = [
    "commit-msg",
    "fsmonitor-watchman",
    "post-checkout",
    "post-index-change",
    "pre-commit",
    "reference-transaction",
];

/// Returns a configuration that names a program wherever git allows one.
fn configuration(marks: &Marks) -> String {
    let run = |name: &str| format!("\"{}\"", marks.command(name).replace('"', "\\\""));
    let mut text = String::new();
    let sections: [(&str, &[&str]); 14] = [
        (
            "core",
            &[
                "alternateRefsCommand",
                "askPass",
                "editor",
                "fsmonitor",
                "gitProxy",
                "pager",
                "sshCommand",
            ],
        ),
        ("filter \"evil\"", &["clean", "smudge"]),
        ("filter \"slow\"", &["process"]),
        ("diff", &["external"]),
        ("diff \"evil\"", &["command", "textconv"]),
        ("merge \"evil\"", &["driver"]),
        ("pager", &["diff-tree", "ls-files", "notes"]),
        ("credential", &["helper"]),
        ("gpg", &["program"]),
        ("interactive", &["diffFilter"]),
        ("sequence", &["editor"]),
        ("uploadpack", &["packObjectsHook"]),
        ("submodule \"sub\"", &["update"]),
        ("trace2", &["unknown"]),
    ];
    for (section, keys) in sections {
        text += &format!("[{section}]\n");
        for key in keys {
            text += &format!(
                "\t{key} = {}\n",
                run(&format!("{section} {key}").replace(['"', ' '], "-"))
            );
        }
    }
    text += "[alias]\n";
    for name in [
        "blame",
        "cat-file",
        "diff-files",
        "diff-tree",
        "ls-files",
        "notes",
        "rev-parse",
    ] {
        text += &format!(
            "\t{name} = \"!{}\"\n",
            marks.command(&format!("alias-{name}"))
        );
    }
    // An object that is not there is fetched through a program.
    let fetch = marks.directory.join("fetch");
    text += &format!(
        "[extensions]\n\tpartialClone = evil\n\tworktreeConfig = true\n\
         [remote \"evil\"]\n\turl = \"ext::touch {}\"\n\tpromisor = true\n\
         [protocol]\n\tallow = always\n\
         [commit]\n\tgpgSign = true\n\
         [core]\n\tcheckStat = minimal\n\ttrustctime = false\n",
        fetch.display()
    );
    text
}

/// Plants programs in every place of a repository that can name one.
fn plant(marks: &Marks, world: &World, other: &World) {
    let repository = world.path(".git");
    let hostile = configuration(marks);
    let included = marks.directory.with_file_name("included");
    fs::write(&included, &hostile).unwrap();
    let config = repository.join("config");
    let now = fs::read_to_string(&config).unwrap();
    let include = format!(
        "[include]\n\tpath = {0}\n[includeIf \"gitdir:/\"]\n\tpath = {0}\n",
        included.display()
    );
    fs::write(&config, now + &hostile + &include).unwrap();
    fs::write(repository.join("config.worktree"), &hostile).unwrap();
    let of_other = fs::read_to_string(other.path(".git")).unwrap();
    let of_other = PathBuf::from(of_other.trim().strip_prefix("gitdir: ").unwrap());
    fs::write(of_other.join("config.worktree"), &hostile).unwrap();
    for hook in HOOKS {
        marks.program(
            &repository.join("hooks").join(hook),
            &format!("hook-{hook}"),
        );
    }
    let attributes = "* diff=evil merge=evil filter=evil\nb.txt filter=slow\n";
    fs::create_dir_all(repository.join("info")).unwrap();
    fs::write(repository.join("info/attributes"), attributes).unwrap();
    for world in [world, other] {
        world.file(".gitattributes", attributes);
        marks.program(&world.path("bin/git"), "git-of-the-work-tree");
        // A repository in the work tree, with a configuration of its own.
        let inner = world.path("inner");
        fs::create_dir_all(&inner).unwrap();
        user::git(&inner, &["init", "-q"]);
        let config = inner.join(".git/config");
        let now = fs::read_to_string(&config).unwrap();
        fs::write(config, now + &hostile).unwrap();
    }
    let objects = repository.join("objects/info");
    fs::create_dir_all(&objects).unwrap();
    fs::write(
        objects.join("alternates"),
        format!("{}\n", world.path("inner/.git/objects").display()),
    )
    .unwrap();
    // Git has to read each file of the other worktree to find out whether it
    // has changed, since its times are those of the index or later.
    let index = File::options()
        .append(true)
        .open(of_other.join("index"))
        .unwrap();
    index
        .set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000))
        .unwrap();
}

#[test]
fn sec7_no_program_that_a_repository_names_runs() {
    let (mut world, mut other) = two();
    let marks = Marks::new(&world);
    let path = std::env::var("PATH").unwrap();
    // `bin` is what such a repository hopes for.
    let path = format!(":bin:{}:{path}", world.path("bin").display());
    for world in [&mut world, &mut other] {
        world.set_env("PATH", &path);
        world.restart();
    }
    // Lines of an agent that are committed, and lines that are not.
    let mut agent = world.session("writer");
    agent.read("a.txt");
    agent.ok(
        "file/write",
        json!({"path": "c.txt", "text": "of the agent\n", "force": true}),
    );
    commit(&world, "of the agent");
    agent.ok(
        "file/write",
        json!({"path": "d.txt", "text": "not committed\n", "force": true}),
    );
    replace(&other, "a.txt", "line 5", "LINE 5");
    replace(&other, "b.txt", "line 9", "LINE 9");
    git(&world, &["config", "user.name", "name"]);
    git(&world, &["config", "user.email", "name@example.invalid"]);
    plant(&marks, &world, &other);
    marks.taken();

    let ran = |what: &str| assert_eq!(marks.taken(), BTreeSet::new(), "{what}");
    assert_eq!(row(&world, &other)["changed"], 4);
    ran("worktree/list");
    let mut told = Agent::new(&world, "s");
    told.prompt();
    told.edit("a.txt", "line 5", "mine");
    let text = told.wait();
    assert!(text.ends_with("\n5: LINE 5"), "{text}");
    ran("a look at other worktrees");
    let mut client = world.client();
    client.ok(
        "command/begin",
        json!({"session": "writer", "label": "make", "callId": "c"}),
    );
    world.file("made.txt", "made\n");
    client.ok("command/end", json!({"session": "writer", "callId": "c"}));
    ran("a command");
    let queue = client.ok("review/list", json!({}));
    assert!(!queue["hunks"].as_array().unwrap().is_empty(), "{queue}");
    ran("review/list");
    client.ok("survival/list", json!({}));
    ran("survival/list");
    for (arguments, expected) in [
        (&["worktrees"][..], "topic"),
        (&["attest"], "c.txt"),
        (&["attest", "HEAD~1..HEAD"], "c.txt"),
        (&["attest", "--write"], "note written"),
        (&["blame", "a.txt", "--format", "agent-trace"], "revision"),
        (&["review", "--list"], "d.txt"),
        (&["status"], ""),
        (&["doctor"], ""),
    ] {
        let output = world.run(arguments);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(expected), "{arguments:?}: {output:?}");
        ran(&arguments.join(" "));
    }
    let queue = client.ok("review/list", json!({}));
    let hunk = &queue["hunks"][0];
    let named = json!({"path": hunk["path"], "id": hunk["id"]});
    client.ok("review/undo", json!({"hunks": [named]}));
    ran("review/undo");

    // Git itself runs what was planted.
    let status = user::git_command(other.workspace(), &["status"]);
    run(status);
    let diff = user::git_command(other.workspace(), &["diff"]);
    run(diff);
    let run = marks.taken();
    for name in ["core-fsmonitor", "filter--evil--clean"] {
        assert!(run.contains(name), "{name}: {run:?}");
    }
}

/// Runs a command, which may fail.
fn run(mut command: std::process::Command) {
    let _output = command.output().unwrap();
}

#[test]
fn hist6_a_note_has_the_name_that_the_repository_gives_the_user() {
    let (world, _other) = two();
    let mut agent = world.session("writer");
    agent.ok(
        "file/write",
        json!({"path": "c.txt", "text": "of the agent\n", "force": true}),
    );
    commit(&world, "of the agent");
    git(&world, &["config", "user.name", "A \"middle\" name"]);
    git(&world, &["config", "user.email", "name@example.invalid"]);
    let output = world.run(&["attest", "--write"]);
    assert!(output.status.success(), "{output:?}");
    let log = ["log", "-1", "--format=%an <%ae> %cn", "refs/notes/ai"];
    let log = user::git_command(world.workspace(), &log).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&log.stdout).trim(),
        "A \"middle\" name <name@example.invalid> A \"middle\" name"
    );
}

/// In each format that git has for objects and for references.
#[test]
fn git_is_asked_in_each_format_of_a_repository() {
    for format in ["--object-format=sha256", "--ref-format=reftable"] {
        let world = World::new();
        git(&world, &["init", "-q", "-b", "main", format]);
        world.file("a.txt", "one\n");
        commit(&world, "first");
        let mut agent = world.session("writer");
        agent.ok(
            "file/write",
            json!({"path": "a.txt", "text": "two\n", "force": true}),
        );
        commit(&world, "second");
        let output = world.run(&["attest", "HEAD~1..HEAD"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("1 by agents"), "{format}: {output:?}");
    }
}
