//! ATTR-3: beside a witnessed command, what the user saves is the user's.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use touchmark_tests::dice::Dice;
use touchmark_tests::{Session, World, children, parts, text, user};

/// The number of files that the user saves; the command writes some of them.
const FILES: usize = 30;

/// A shell below `touchmark run --witness` that runs one line after the other.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn start(world: &World, session: &str) -> Self {
        let script = r#"echo ready; while IFS= read -r line; do eval "$line"; echo done; done"#;
        let mut command = world.command(&["run", "--witness", "--session", session, "--"]);
        command
            .args(["sh", "-c", script])
            .current_dir(world.workspace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = children::start(&mut command).expect("touchmark run");
        let mut shell = Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        assert_eq!(shell.line(), "ready");
        shell
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Runs a line, and waits for its end. Returns what it printed.
    fn run(&mut self, line: &str) -> Vec<String> {
        writeln!(self.input, "{line}").unwrap();
        let mut said = Vec::new();
        loop {
            match self.line().as_str() {
                "done" => return said,
                line => said.push(line.to_owned()),
            }
        }
    }

    /// Ends the shell. Returns what `touchmark run` said.
    fn end(self) -> String {
        drop(self.input);
        let output = self.child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        said
    }
}

/// Returns whether commands can be witnessed here, and says it if not.
fn can_witness(world: &World) -> bool {
    let mut shell = Shell::start(world, "probe");
    shell.run(":");
    let said = shell.end();
    let can = !said.contains("not all writes were seen");
    if !can {
        parts::not_tested(&format!("witnessed commands: {said}"));
    }
    can
}

/// Returns each version of a file as its kind, author and evidence, oldest
/// first.
fn log(session: &mut Session, path: &str) -> Vec<String> {
    let log = session.client.ok("file/log", json!({"paths": [path]}));
    let entries = log["entries"].as_array().unwrap().iter().rev();
    let row = |version: &serde_json::Value| {
        let [kind, evidence] = ["kind", "evidence"].map(|name| text(version, name));
        format!("{kind} {} {evidence}", text(&version["author"], "kind"))
    };
    entries.map(|entry| row(&entry["version"])).collect()
}

#[test]
fn a_save_beside_a_witnessed_command_is_the_users() {
    let mut world = World::asleep();
    for name in ["tracked.txt", "untracked.txt", "own.txt", "own-too.txt"] {
        world.file(name, "base\n");
    }
    world.start();
    if !can_witness(&world) {
        return;
    }
    let mut session = world.session("A");
    session.read("tracked.txt");
    session.read("own.txt");
    let mut shell = Shell::start(&world, "A");
    // By a rename: a write in place is certain only if it is quick.
    shell.run("sed -i '$a own' own.txt; echo own >> own-too.txt; echo own > made.txt");
    user::replace(&world.path("tracked.txt"), "base\nuser\n");
    user::write(&world.path("untracked.txt"), "base\nuser\n");
    shell.run("mkdir d && mv made.txt d && rm own-too.txt");
    let said = shell.end();
    assert!(!said.contains("not all writes"), "{said}");
    assert_eq!(log(&mut session, "tracked.txt"), ["modified user unmarked"]);
    assert_eq!(log(&mut session, "untracked.txt"), [""; 0]);
    assert_eq!(log(&mut session, "own.txt"), ["modified agent process"]);
    assert_eq!(log(&mut session, "own-too.txt"), ["deleted agent process"]);
    assert_eq!(log(&mut session, "d/made.txt"), ["created agent process"]);
    world.healthy();
}

#[test]
fn what_a_witnessed_command_destroys_comes_back_as_it_was_then() {
    let mut world = World::asleep();
    world.file("edited.txt", "base\n");
    world.file("old.txt", "base\n");
    world.start();
    if !can_witness(&world) {
        return;
    }
    let mut session = world.session("A");
    let mut shell = Shell::start(&world, "A");
    // After the look at the window's begin, and before the command.
    user::write(&world.path("edited.txt"), "base\nuser\n");
    user::write(&world.path("new.txt"), "user\n");
    fs::create_dir(world.path("d")).unwrap();
    user::write(&world.path("d/new.txt"), "user\n");
    shell.run("echo own >> edited.txt; rm new.txt old.txt; rm -r d");
    let said = shell.end();
    assert!(!said.contains("not all writes"), "{said}");
    let removed = ["deleted agent process"];
    for name in ["new.txt", "old.txt", "d/new.txt"] {
        assert_eq!(log(&mut session, name), removed, "{name}");
    }
    let undone = world.run(&["undo", "A", "--yes", "--now"]);
    assert!(undone.status.success(), "{undone:?}");
    let there = |name: &str| fs::read_to_string(world.path(name)).unwrap_or_default();
    assert_eq!(there("edited.txt"), "base\nuser\n");
    assert_eq!(there("old.txt"), "base\n");
    for name in ["new.txt", "d/new.txt"] {
        assert_eq!(there(name), "user\n", "{name}");
    }
    world.healthy();
}

#[test]
fn scope10_what_a_witnessed_command_destroys_in_ignored_files_is_kept() {
    let mut world = World::asleep();
    world.file(".gitignore", "*.local\n*.env\nbuild/\n");
    for name in [
        "a.local",
        "d/b.local",
        "d/same.local",
        "k.env",
        "build/c.local",
    ] {
        world.file(name, format!("user {name}\n"));
    }
    world.file("e.local", "user e\n\0");
    user::git(world.workspace(), &["init", "-q"]);
    world.start();
    if !can_witness(&world) {
        return;
    }
    let kept = |world: &World| {
        let list = world.client().ok("recovery/list", json!({}));
        let items = list["items"].as_array().unwrap().iter();
        let content = |item: &serde_json::Value| fs::read_to_string(text(item, "file")).unwrap();
        let mut all: Vec<(String, String)> = items
            .map(|item| (text(item, "path"), content(item)))
            .collect();
        all.sort();
        all
    };
    let users = |name: &str| (name.to_owned(), format!("user {name}\n"));
    let mut shell = Shell::start(&world, "A");
    shell
        .run("echo own > a.local; cp d/same.local x; cp x d/same.local; rm x; echo own >> m.local");
    shell.run("rm -r build e.local k.env; rm -r d; echo own > new.local");
    shell.end();
    assert_eq!(
        kept(&world),
        ["a.local", "d/b.local", "d/same.local"].map(users)
    );

    // A content that a command wrote is not kept, unless a user has changed the
    // file since.
    let mut shell = Shell::start(&world, "A");
    user::write(&world.path("new.local"), "user new.local\n");
    shell.run("rm a.local; echo more > new.local");
    shell.end();
    let now = ["a.local", "d/b.local", "d/same.local", "new.local"].map(users);
    assert_eq!(kept(&world), now);

    let items = world.client().ok("recovery/list", json!({}));
    let mut items = items["items"].as_array().unwrap().iter();
    let item = items
        .find(|item| text(item, "path") == "d/b.local")
        .unwrap();
    let restored = world.run(&["recovered", "restore", &text(item, "id")]);
    assert!(restored.status.success(), "{restored:?}");
    let there = fs::read_to_string(world.path("d/b.local")).unwrap();
    assert_eq!(there, "user d/b.local\n");
    world.healthy();
}

#[test]
fn an_untracked_file_that_both_write_is_likely_the_commands() {
    let mut world = World::asleep();
    for name in ["before.txt", "after.txt", "own.txt"] {
        world.file(name, "base\n");
    }
    world.start();
    if !can_witness(&world) {
        return;
    }
    let mut session = world.session("A");
    let mut shell = Shell::start(&world, "A");
    shell.run("sed -i '$a own' before.txt own.txt");
    user::replace(&world.path("before.txt"), "base\nown\nuser\n");
    user::append(&world.path("after.txt"), "user\n");
    shell.run("echo own >> after.txt; sed -i '$a more' own.txt");
    user::append(&world.path("after.txt"), "more\n");
    let said = shell.end();
    assert!(!said.contains("not all writes"), "{said}");
    for name in ["before.txt", "after.txt"] {
        assert_eq!(
            log(&mut session, name),
            ["modified agent command"],
            "{name}"
        );
    }
    assert_eq!(log(&mut session, "own.txt"), ["modified agent process"]);
    world.healthy();
}

#[test]
fn a_gap_does_not_make_what_was_saved_before_the_commands() {
    let mut world = World::asleep();
    for name in ["saved.txt", "removed.txt", "own.txt"] {
        world.file(name, "base\n");
    }
    world.start();
    if !can_witness(&world) {
        return;
    }
    let mut session = world.session("A");
    // No look is made when the next window opens: its witness is to tell.
    user::write(&world.path("saved.txt"), "base\nuser\n");
    fs::remove_file(world.path("removed.txt")).unwrap();
    user::pause(100);
    let socket = world.outside().join("builder.sock");
    let _others = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let mut shell = Shell::start(&world, "A");
    let connect = "IO::Socket::UNIX->new(Peer => shift) or die";
    shell.run(&format!(
        "perl -MIO::Socket::UNIX -e '{connect}' {}; echo own >> own.txt",
        socket.display()
    ));
    let said = shell.end();
    assert!(said.contains("builder.sock"), "{said}");
    assert_eq!(log(&mut session, "own.txt"), ["modified agent command"]);
    for name in ["saved.txt", "removed.txt"] {
        assert_eq!(log(&mut session, name), [""; 0], "{name}");
    }
    world.healthy();
}

#[test]
fn a_command_that_others_may_write_for_claims_what_changes_meanwhile() {
    let mut world = World::asleep();
    world.file("f.txt", "base\n");
    world.start();
    if !can_witness(&world) {
        return;
    }
    let mut session = world.session("A");
    session.read("f.txt");
    let socket = world.outside().join("builder.sock");
    let _others = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let mut shell = Shell::start(&world, "A");
    let connect = "IO::Socket::UNIX->new(Peer => shift) or die";
    shell.run(&format!(
        "perl -MIO::Socket::UNIX -e '{connect}' {}",
        socket.display()
    ));
    user::write(&world.path("f.txt"), "base\nuser\n");
    let said = shell.end();
    assert!(said.contains("builder.sock"), "{said}");
    assert_eq!(log(&mut session, "f.txt"), ["modified agent command"]);
    world.healthy();
}

#[test]
fn a_hard_link_is_no_way_around_the_witness() {
    let mut world = World::asleep();
    world.file("f.txt", "base\n");
    fs::hard_link(world.path("f.txt"), world.outside().join("link")).unwrap();
    world.start();
    if !can_witness(&world) {
        return;
    }
    let mut session = world.session("A");
    session.read("f.txt");
    let mut shell = Shell::start(&world, "A");
    let link = world.outside().join("link");
    shell.run(&format!("echo own >> {}", link.display()));
    let said = shell.end();
    assert!(said.contains("several names"), "{said}");
    assert_eq!(log(&mut session, "f.txt"), ["modified agent command"]);
    world.healthy();
}

#[test]
fn what_the_command_was_started_with_open_is_its_own() {
    let mut world = World::asleep();
    world.file("f.txt", "base\n");
    world.file("out.txt", "");
    world.start();
    if !can_witness(&world) {
        return;
    }
    let mut session = world.session("A");
    session.read("f.txt");
    session.read("out.txt");
    let out = fs::OpenOptions::new()
        .append(true)
        .open(world.path("out.txt"))
        .unwrap();
    let script = "echo own";
    let run = [
        "run",
        "--witness",
        "--session",
        "A",
        "--",
        "sh",
        "-c",
        script,
    ];
    let mut command = world.command(&run);
    command.stdout(out);
    let mut ran = children::start(&mut command).unwrap();
    assert!(ran.wait().unwrap().success());
    assert_eq!(log(&mut session, "out.txt"), ["modified agent command"]);
    world.healthy();
}

#[test]
fn the_windows_of_hooks_below_a_witness_are_witnessed() {
    let mut world = World::asleep();
    world.file("f.txt", "base\n");
    world.file("g.txt", "base\n");
    world.file(".gitignore", "*.local\n");
    world.file("n.local", "user\n");
    world.file("o.local", "user\n");
    user::git(world.workspace(), &["init", "-q"]);
    world.start();
    if !can_witness(&world) {
        return;
    }
    let mut session = world.session("claude");
    session.read("f.txt");
    session.read("g.txt");
    let mut shell = Shell::start(&world, "outer");
    let event = |event: &str| {
        let more = match event {
            "PostToolUse" => json!({"stdout": "", "stderr": "", "interrupted": false}),
            _ => json!(null),
        };
        json!({
            "session_id": "claude", "hook_event_name": event, "tool_name": "Bash",
            "tool_use_id": "call-1", "cwd": world.workspace(),
            "tool_input": {"command": "make"}, "tool_response": more,
        })
        .to_string()
    };
    let hook = format!("{} hook claude", touchmark_tests::world::binary().display());
    shell.run(&format!(
        "echo '{}' | {hook} > /dev/null",
        event("PreToolUse")
    ));
    shell.run("sed -i '$a own' g.txt; rm n.local; echo own > o.local");
    user::write(&world.path("f.txt"), "base\nuser\n");
    let told = shell.run(&format!("echo '{}' | {hook}", event("PostToolUse")));
    assert!(
        told.concat()
            .contains("n.local\\\" (`touchmark recovered restore r1` brings it back)."),
        "{told:?}"
    );
    shell.end();
    assert_eq!(log(&mut session, "f.txt"), ["modified user unmarked"]);
    assert_eq!(log(&mut session, "g.txt"), ["modified agent process"]);
    world.healthy();
}

fn name(file: usize) -> String {
    format!("d{}/f{file}.txt", file % 4)
}

/// Saves a file with one more line, in one of several ways.
fn save(world: &World, way: u64, file: usize, line: &str) {
    let path = world.path(name(file));
    let all = format!("{}{line}\n", fs::read_to_string(&path).unwrap());
    match way {
        0 => user::write(&path, &all),
        1 => user::overwrite(&path, &all),
        2 => user::replace(&path, &all),
        3 => user::replace_synced(&path, &all),
        4 => user::like_vim(&path, &all, 0),
        5 => user::recreate(&path, &all, 0),
        6 => user::append(&path, &format!("{line}\n")),
        _ => user::sed(&path, &format!("$a\\{line}")),
    }
}

/// Returns a command that adds a line to a file, in one of several ways.
fn adds(way: u64, path: &str, line: &str) -> String {
    match way {
        0 => format!("echo '{line}' >> {path}"),
        1 => format!("sed -i '$a {line}' {path}"),
        2 => format!("{{ cat {path}; echo '{line}'; }} > t; mv t {path}"),
        3 => format!("cp {path} t; echo '{line}' >> t; cp t {path}; rm t"),
        4 => format!("perl -e 'open F, q(>>), q({path}); print F qq({line}\\n)'"),
        _ => format!("{{ cat {path}; echo '{line}'; }} > t; rm {path}; mv t {path}"),
    }
}

#[test]
fn many_saves_beside_many_witnessed_commands() {
    let saves = match parts::long("1,000 saves beside witnessed commands") {
        true => 1_000,
        false => 120,
    };
    let seed = std::env::var("TOUCHMARK_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut world = World::asleep();
    for file in 0..FILES {
        world.file(&name(file), format!("base {file}\n"));
    }
    world.start();
    if !can_witness(&world) {
        return;
    }
    let mut session = world.session("A");
    // Most files are tracked.
    let is_tracked = |file: usize| !file.is_multiple_of(5);
    for file in (0..FILES).filter(|file| is_tracked(*file)) {
        session.read(&name(file));
    }
    // The command writes the first files, the user the others. Both write
    // those in between.
    let (own, shared) = (FILES / 2, FILES / 2 + 3);
    let steps: Mutex<Vec<String>> = Mutex::default();
    let note = |step: String| steps.lock().unwrap().push(step);
    let is_done = AtomicBool::new(false);
    let mut shell = Shell::start(&world, "A");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut dice = Dice::new(seed, "the user");
            for number in 0..saves {
                let file = own + dice.index(FILES - own);
                let way = dice.below(8);
                note(format!("save {number} of {} by {way}", name(file)));
                save(&world, way, file, &format!("user {number}"));
                user::pause(dice.below(8));
            }
            is_done.store(true, Ordering::Relaxed);
        });
        let mut dice = Dice::new(seed, "the command");
        for number in 0.. {
            let file = dice.index(shared);
            // The user's programs expect their files to be there.
            let way = dice.below(if file < own { 6 } else { 5 });
            let command = adds(way, &name(file), &format!("agent {number}"));
            note(command.clone());
            shell.run(&command);
            if dice.below(6) == 0 {
                session.sync();
            }
            if is_done.load(Ordering::Relaxed) {
                break;
            }
        }
    });
    let said = shell.end();
    assert!(!said.contains("not all writes"), "{said}");
    let about = |typed: &str| -> String {
        let steps = steps.lock().unwrap();
        let number = format!("save {} ", typed.trim_start_matches("user "));
        let is_it = |step: &String| step.contains(typed) || step.starts_with(&number);
        let at = steps.iter().position(is_it).unwrap_or_default();
        steps[at.saturating_sub(4)..(at + 3).min(steps.len())].join("\n")
    };
    let (mut certain, mut own_likely) = (0, Vec::new());
    let mut likely: Vec<String> = Vec::new();
    for file in (0..FILES).filter(|file| is_tracked(*file) || *file < shared) {
        let blame = session.client.ok("file/blame", json!({"path": name(file)}));
        for line in blame["lines"].as_array().unwrap() {
            let typed = text(line, "text");
            let by = text(&line["author"], "kind");
            let is_likely = text(line, "evidence") == "command";
            let is_right = match typed.split(' ').next().unwrap() {
                // Of an untracked file, it may be older than the first mark.
                "user" => by == "user" || by == "unknown" && !is_tracked(file),
                "agent" => by == "agent",
                _ => continue,
            };
            // The program may not know what the command wrote.
            let may_be_likely = file < shared;
            assert!(
                is_right || is_likely && may_be_likely,
                "{line}\n{}",
                about(&typed)
            );
            if is_likely && file < own {
                own_likely.push(format!("{}: {}", name(file), about(&typed)));
            }
            match is_likely {
                true => likely.push(typed.to_owned()),
                false => certain += 1,
            }
        }
    }
    println!(
        "{certain} lines are certain, {} likely, {} of them in files of the command's own",
        likely.len(),
        own_likely.len(),
    );
    if let Some(first) = own_likely.first() {
        println!("{first}");
    }
    assert!(certain > 0);
    // An undo takes nothing of the user's, and all of the commands' where only
    // they have written.
    let lines = |file: usize| -> Vec<String> {
        let text = fs::read_to_string(world.path(name(file))).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    let before: Vec<Vec<String>> = (0..FILES).map(lines).collect();
    let undone = world.run(&["undo", "A", "--yes", "--now"]);
    let undone = String::from_utf8(undone.stdout).unwrap();
    for (file, before) in before.iter().enumerate() {
        let there = lines(file);
        if file < own {
            let is_kept = |line: &&String| line.starts_with("agent") && !likely.contains(*line);
            let kept: Vec<_> = there.iter().filter(is_kept).collect();
            assert!(kept.is_empty(), "{}: {kept:?}\n{undone}", name(file));
        }
        let users = before.iter().filter(|line| line.starts_with("user"));
        let gone: Vec<_> = users.filter(|line| !there.contains(line)).collect();
        assert!(gone.is_empty(), "{}: {gone:?}", name(file));
    }
    world.healthy();
}
