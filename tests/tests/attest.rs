//! `touchmark attest`: shows who wrote the lines of a commit, also as a git
//! note (HIST-6).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};
use touchmark_tests::{Session, World, sha256, user};

/// A session id as long as those of real agents.
const AGENT: &str = "0199c0de-7a1b-7e44-9d7e-1f2e3d4c5b6a";

fn git(world: &World, args: &[&str]) -> String {
    let output = user::git_command(world.workspace(), args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn commit(world: &World, message: &str) -> String {
    git(world, &["add", "-A"]);
    git(world, &["commit", "-q", "-m", message]);
    git(world, &["rev-parse", "HEAD"])
}

/// Creates a repository with one commit of a file `f` with three lines.
fn repository() -> (World, Session) {
    let world = World::new();
    git(&world, &["init", "-q", "-b", "main"]);
    for (key, value) in [("user.name", "U"), ("user.email", "u@example.invalid")] {
        git(&world, &["config", key, value]);
    }
    world.file("f", "one\ntwo\nthree\n");
    commit(&world, "first");
    let mut agent = world.session(AGENT);
    agent.read("f");
    (world, agent)
}

fn write(agent: &mut Session, path: &str, text: &str) {
    agent.ok(
        "file/write",
        json!({"path": path, "text": text, "force": true}),
    );
}

/// Runs `touchmark`, which must fail with this exit code. Returns its error
/// output.
fn refused(world: &World, args: &[&str], code: i32) -> String {
    let output = world.run(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    said
}

/// Returns the lines that one commit added, from `attest --json`.
fn attested(world: &World, args: &[&str]) -> Value {
    let all = [&["attest", "--json"], args].concat();
    let output = world.run(&all);
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let commits = said["commits"].as_array().unwrap();
    assert_eq!(commits.len(), 1, "{said}");
    commits[0].clone()
}

/// Formats the result as `path 1-2 agent, 3-3 user`.
fn told(attested: &Value) -> Vec<String> {
    let files = attested["files"].as_array().unwrap().iter();
    let told = files.map(|file| {
        let ranges = file["ranges"].as_array().unwrap().iter();
        let ranges: Vec<String> = ranges
            .map(|range| {
                let kind = range["author"]["kind"].as_str().unwrap();
                format!("{}-{} {kind}", range["start"], range["end"])
            })
            .collect();
        format!("{} {}", file["path"].as_str().unwrap(), ranges.join(", "))
    });
    told.collect()
}

#[test]
fn hist6_each_line_of_a_commit_has_its_author() {
    let (world, mut agent) = repository();
    let model = json!({"modelId": "claude-x", "providerId": "anthropic", "mode": "act"});
    agent.ok("model/record", model);
    let long = "packages/service/src/components/navigation/sidebar/preferences/panel.rs";
    fs::create_dir_all(world.path(long).parent().unwrap()).unwrap();
    write(&mut agent, "f", "one\n2\nthree\nfour\n");
    write(&mut agent, long, "made\n");
    user::write(&world.path("f"), "one\n2\nthree\nfour\nmine\n");
    world.file("never seen", "a\nb\n");
    agent.sync();
    let id = commit(&world, "second");
    let said = attested(&world, &[]);
    assert_eq!(said["commit"], json!(id));
    assert_eq!(
        told(&said),
        [
            "f 2-2 agent, 4-4 agent, 5-5 user".to_owned(),
            "never seen 1-2 unknown".to_owned(),
            format!("{long} 1-1 agent"),
        ]
    );
    assert_eq!(
        said["totals"],
        json!({"lines": 6, "agents": 3, "user": 1, "unknown": 2})
    );
    assert_eq!(said["files"][0]["ranges"][0]["evidence"], "declared");
    let cause = said["files"][1]["cause"].as_str().unwrap();
    assert!(cause.contains("no session has named it"), "{cause}");
    assert_eq!(said["agents"][0]["model"], "anthropic/claude-x");

    // For people, on a terminal of 80 columns; later changes alter nothing.
    write(&mut agent, "f", "none of that\n");
    assert_eq!(told(&attested(&world, &["HEAD"])), told(&said));
    let output = world.run(&["attest"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("agent-1 (anthropic/claude-x)"), "{text}");
    assert!(
        text.ends_with("6 lines: 3 by agents, 1 by you, 2 by unknown\n"),
        "{text}"
    );
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // The first commit: the daemon did not run.
    assert_eq!(told(&attested(&world, &["HEAD~1"])), ["f 1-3 unknown"]);
    // Several, the oldest first.
    let output = world.run(&["attest", "--json", "HEAD~1", "HEAD~1..HEAD"]);
    let several: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(several["commits"].as_array().unwrap().len(), 2);
    assert_eq!(several["commits"][1]["commit"], json!(id));
}

#[test]
fn hist6_a_commit_that_holds_what_no_file_held() {
    let (world, mut agent) = repository();
    write(&mut agent, "f", "one\n2\nthree\nfour\n");
    user::write(&world.path("f"), "mine\none\n2\nthree\nfour\n");
    agent.sync();
    // Some of the changes, as `git add -p` takes them, and a line that is of
    // no known file.
    let staged = world.path("staged");
    fs::write(&staged, "one\n2\nthree\nother\nfour\n").unwrap();
    let blob = git(&world, &["hash-object", "-w", "staged"]);
    fs::remove_file(&staged).unwrap();
    git(
        &world,
        &["update-index", "--cacheinfo", &format!("100644,{blob},f")],
    );
    git(&world, &["commit", "-q", "-m", "some"]);
    let said = attested(&world, &[]);
    assert_eq!(told(&said), ["f 2-2 agent, 4-4 unknown, 5-5 agent"]);
    assert_eq!(
        said["files"][0]["cause"],
        "no version on record has these lines"
    );

    // Git keeps other line ends than the file has.
    git(&world, &["config", "core.autocrlf", "true"]);
    write(&mut agent, "crlf", "one\r\ntwo\r\n");
    git(&world, &["add", "crlf"]);
    git(&world, &["commit", "-q", "-m", "crlf"]);
    let object = git(&world, &["cat-file", "blob", "HEAD:crlf"]);
    assert!(!object.contains('\r'), "{object:?}");
    assert_eq!(told(&attested(&world, &[])), ["crlf 1-2 agent"]);
}

#[test]
fn hist6_merges_renames_and_what_is_no_file() {
    let (world, mut agent) = repository();
    git(&world, &["checkout", "-q", "-b", "topic"]);
    write(&mut agent, "f", "top\none\ntwo\nthree\n");
    commit(&world, "topic");
    git(&world, &["checkout", "-q", "main"]);
    agent.sync();
    user::write(&world.path("f"), "one\ntwo\nthree\nend\n");
    agent.sync();
    commit(&world, "end");
    git(&world, &["merge", "-q", "--no-commit", "topic"]);
    agent.sync();
    user::write(&world.path("f"), "top\none\ntwo and\nthree\nend\n");
    agent.sync();
    commit(&world, "merged");
    // Neither parent has this line.
    assert_eq!(told(&attested(&world, &[])), ["f 3-3 user"]);
    // A file that moved brings what changed in it alone.
    fs::rename(world.path("f"), world.path("g")).unwrap();
    std::os::unix::fs::symlink("g", world.path("link")).unwrap();
    fs::write(world.path("binary"), b"a\0b\n").unwrap();
    commit(&world, "moved");
    assert_eq!(told(&attested(&world, &[])), [""; 0]);
    agent.read("g");
    write(&mut agent, "g", "top\none\ntwo and\nthree\nthe end\n");
    fs::set_permissions(world.path("g"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(world.path("link")).unwrap();
    commit(&world, "changed");
    assert_eq!(told(&attested(&world, &[])), ["g 5-5 agent"]);
}

/// The line ranges of each session in a file.
type Entries = Vec<(String, Vec<(u32, u32)>)>;

/// An authorship log, parsed as git-ai's standard specifies.
struct Log {
    files: BTreeMap<String, Entries>,
    metadata: Value,
}

fn parsed(note: &str) -> Log {
    let lines: Vec<&str> = note.lines().collect();
    let divider = lines.iter().position(|line| *line == "---").unwrap();
    let mut files: BTreeMap<String, Entries> = BTreeMap::new();
    let mut last = None;
    for line in &lines[..divider] {
        let Some(entry) = line.strip_prefix("  ") else {
            let name = line.strip_prefix('"').map_or(*line, |rest| {
                let name = rest.strip_suffix('"').unwrap();
                assert!(!name.contains('"'), "{line}");
                name
            });
            assert!(!name.is_empty() && (name == *line) != line.contains(' '));
            last = Some(name.to_owned());
            continue;
        };
        let (hash, ranges) = entry.split_once(' ').unwrap();
        assert!(hash.len() == 16 && hash.chars().all(|digit| digit.is_ascii_hexdigit()));
        let ranges: Vec<(u32, u32)> = ranges
            .split(',')
            .map(|range| {
                let (start, end) = range.split_once('-').unwrap_or((range, range));
                (start.parse().unwrap(), end.parse().unwrap())
            })
            .collect();
        assert!(
            ranges
                .iter()
                .all(|(start, end)| 1 <= *start && start <= end)
        );
        assert!(ranges.is_sorted_by(|a, b| a.1 < b.0), "{ranges:?}");
        let file = files.entry(last.clone().unwrap()).or_default();
        file.push((hash.to_owned(), ranges));
    }
    let metadata: Value = serde_json::from_str(&lines[divider + 1..].join("\n")).unwrap();
    assert_eq!(metadata["schema_version"], "authorship/3.0.0");
    for (hash, record) in metadata["prompts"].as_object().unwrap() {
        let agent = |field: &str| record["agent_id"][field].as_str().unwrap();
        let name = format!("{}:{}", agent("tool"), agent("id"));
        assert_eq!(sha256(&name)[..16], **hash);
        assert!(!agent("model").is_empty());
        assert!(record["messages"].is_array());
        for count in [
            "total_additions",
            "total_deletions",
            "accepted_lines",
            "overriden_lines",
        ] {
            assert!(record[count].is_u64(), "{count}");
        }
    }
    let entries = files.values().flatten();
    for (hash, _) in entries {
        assert!(metadata["prompts"][hash].is_object(), "{hash}");
    }
    Log { files, metadata }
}

#[test]
fn hist6_the_note_is_one_that_other_tools_read() {
    let (world, mut agent) = repository();
    let mut other = world.session("other/with-a-task");
    write(&mut agent, "f", "one\n2\nthree\nfour\nfive\n");
    write(&mut other, "my file", "a\nb\n");
    user::write(&world.path("f"), "one\n2\nthree\nmine\nfour\nfive\n");
    user::write(&world.path("h"), "mine\n");
    agent.sync();
    let id = commit(&world, "second");
    let refs = || {
        let output = user::git_command(
            world.workspace(),
            &["for-each-ref", "--format=%(refname) %(objectname)"],
        )
        .output();
        (
            String::from_utf8(output.unwrap().stdout).unwrap(),
            git(&world, &["count-objects", "-v"]),
            git(&world, &["status", "--porcelain"]),
        )
    };
    let before = refs();
    attested(&world, &[]);
    assert_eq!(refs(), before, "it was not requested");

    assert_eq!(attested(&world, &["--write"])["note"], "written");
    let note = git(&world, &["notes", "--ref=ai", "show", "HEAD"]);
    let log = parsed(&note);
    assert_eq!(log.metadata["base_commit_sha"], json!(id));
    let of = |path: &str| &log.files[path][0];
    assert_eq!(of("f").1, [(2, 2), (5, 6)]);
    assert_eq!(of("my file").1, [(1, 2)]);
    assert_eq!(log.files.len(), 2, "none by agents in the others");
    let record = &log.metadata["prompts"][&of("f").0];
    assert_eq!(record["agent_id"]["id"], AGENT);
    assert_eq!(record["accepted_lines"], 3);

    // The same is not written twice.
    let written = refs();
    assert_eq!(attested(&world, &["--write"])["note"], "unchanged");
    assert_eq!(refs(), written);
    // What other programs wrote stays.
    git(
        &world,
        &["notes", "--ref=ai", "add", "-f", "-m", "another's"],
    );
    let said = refused(&world, &["attest", "--write"], 1);
    assert!(said.contains("--force"), "{said}");
    assert_eq!(
        git(&world, &["notes", "--ref=ai", "show", "HEAD"]),
        "another's"
    );
    attested(&world, &["--write", "--force"]);
    assert_eq!(git(&world, &["notes", "--ref=ai", "show", "HEAD"]), note);
    // One's own is brought up to date.
    let model = json!({"modelId": "claude-x", "providerId": "anthropic", "mode": "act"});
    agent.ok("model/record", model);
    assert_eq!(attested(&world, &["--write"])["note"], "written");
    assert!(git(&world, &["notes", "--ref=ai", "show", "HEAD"]).contains("anthropic/claude-x"));
    // A commit without an agent's lines gets none.
    assert_eq!(attested(&world, &["--write", "HEAD~1"])["note"], "nothing");
    assert_eq!(git(&world, &["notes", "--ref=ai"]).lines().count(), 1);
}

#[test]
fn hist6_what_cannot_be_attested_is_said() {
    // Not below the clone, which is a repository.
    let mut world = World::asleep_in(&std::env::temp_dir());
    world.start();
    let said = refused(&world, &["attest"], 1);
    assert!(said.contains("no work tree of git"), "{said}");
    let (mut world, mut agent) = repository();
    for wrong in ["nothing", "--all", "main..nothing", ""] {
        let said = refused(&world, &["attest", "--", wrong], 1);
        assert!(said.contains("git has no commit"), "{wrong}: {said}");
    }
    // In the middle of a rebase a commit is as it is.
    write(&mut agent, "f", "one\n2\nthree\n");
    commit(&world, "ours");
    git(&world, &["checkout", "-q", "-b", "other", "HEAD~1"]);
    fs::write(world.path("f"), "one\nzwei\nthree\n").unwrap();
    commit(&world, "theirs");
    let mut rebase = user::git_command(world.workspace(), &["rebase", "-q", "main"]);
    assert!(!rebase.output().unwrap().status.success(), "they conflict");
    assert_eq!(told(&attested(&world, &["--write"])), ["f 2-2 agent"]);
    git(&world, &["rebase", "--abort"]);

    // What a commit has changed is not known where its parent is not here.
    let origin = format!("file://{}", world.workspace().display());
    let clone = World::new();
    git(&clone, &["init", "-q"]);
    git(&clone, &["fetch", "-q", "--depth=1", &origin, "main"]);
    git(&clone, &["checkout", "-q", "FETCH_HEAD"]);
    let said = refused(&clone, &["attest"], 1);
    assert!(said.contains("git fetch --deepen"), "{said}");
    world.healthy();
}

#[test]
fn sec7_attest_runs_nothing_that_a_repository_names() {
    let (world, mut agent) = repository();
    write(&mut agent, "f", "one\n2\nthree\n");
    commit(&world, "second");
    let ran = world.path("ran");
    let program = world.path(".git/program");
    fs::write(
        &program,
        format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", ran.display()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    for key in [
        "core.fsmonitor",
        "core.editor",
        "core.pager",
        "diff.external",
        "diff.x.textconv",
        "diff.x.command",
        "filter.x.clean",
        "filter.x.smudge",
        "gpg.program",
        "notes.rewriteMode",
    ] {
        git(&world, &["config", key, program]);
    }
    fs::write(world.path(".gitattributes"), "* diff=x filter=x\n").unwrap();
    for hook in ["reference-transaction", "post-commit", "pre-commit"] {
        let hook = world.path(".git/hooks").join(hook);
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::copy(program, hook).unwrap();
    }
    // It would run, if it were let.
    let _ = Command::new("git")
        .current_dir(world.workspace())
        .args(["show", "--ext-diff", "HEAD"])
        .output();
    assert!(ran.exists());
    fs::remove_file(&ran).unwrap();
    assert_eq!(told(&attested(&world, &["--write"])), ["f 2-2 agent"]);
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
}
