//! `touchmark setup`: everything is added, tested, shown by `doctor`, and
//! removed again to the byte.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use touchmark_tests::World;
use touchmark_tests::hooks::Talk;
use touchmark_tests::parts::not_tested;
use touchmark_tests::snippets::{AGENTS as AGENTS_PAGES, of};
use touchmark_tests::world::{binary, finish};

/// The programs of five agents, which do nothing.
const PROGRAMS: [&str; 5] = ["claude", "codex", "gemini", "cursor-agent", "opencode"];

/// Creates a world with these programs and touchmark on the `PATH`.
fn world() -> World {
    let mut world = World::asleep();
    let bin = world.state().with_file_name("bin");
    fs::create_dir(&bin).unwrap();
    for program in PROGRAMS {
        fs::write(bin.join(program), "#!/bin/sh\n").unwrap();
        fs::set_permissions(bin.join(program), PermissionsExt::from_mode(0o755)).unwrap();
    }
    symlink(binary().canonicalize().unwrap(), bin.join("touchmark")).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    world.set_env("PATH", &path);
    world.start();
    world
}

fn setup(world: &World, words: &[&str]) -> Output {
    let mut command = world.command(&["setup"]);
    command.args(words);
    clean(&mut command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command.spawn().unwrap(), "touchmark setup")
}

fn clean(command: &mut Command) {
    for variable in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "QWEN_HOME"] {
        command.env_remove(variable);
    }
}

fn done(world: &World, words: &[&str]) -> String {
    let output = setup(world, words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}{wrong}");
    said
}

/// Returns the texts of the checks, by name.
fn checks(output: &Output) -> BTreeMap<String, String> {
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = facts["checks"].as_array().unwrap().iter();
    checks
        .map(|check| {
            let text = |name: &str| check[name].as_str().unwrap().to_owned();
            (
                text("check"),
                format!("{}: {}", text("level"), text("says")),
            )
        })
        .collect()
}

/// Returns everything below a directory: kinds, modes, links and bytes.
fn everything(directory: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let mode = fs::symlink_metadata(&path).unwrap().mode();
        let bytes = if path.is_symlink() {
            fs::read_link(&path)
                .unwrap()
                .into_os_string()
                .into_encoded_bytes()
        } else if path.is_dir() {
            found.extend(everything(&path));
            Vec::new()
        } else {
            fs::read(&path).unwrap()
        };
        found.insert(path, (mode, bytes));
    }
    found
}

/// Returns all places where people keep settings, with their contents.
fn places(world: &World) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = everything(&world.outside());
    all.extend(everything(&world.config()));
    all.extend(everything(world.workspace()));
    all
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Writes settings as five people write them.
fn settings(world: &World) {
    let home = world.outside();
    // Comments and trailing commas, in dotfiles that a link leads to.
    write(
        &home.join("dotfiles/claude.json"),
        "// mine\n{\n\t\"env\": {\"A\": \"b\"}, // yes\n\t\"hooks\": {\"Stop\": [],},\n}",
    );
    fs::create_dir(home.join(".claude")).unwrap();
    symlink(
        "../dotfiles/claude.json",
        home.join(".claude/settings.json"),
    )
    .unwrap();
    // What Claude Code itself keeps there is for no other user to read.
    write(
        &home.join(".claude.json"),
        "{\n  \"userID\": \"0\",\n  \"mcpServers\": {}\n}",
    );
    fs::set_permissions(home.join(".claude.json"), PermissionsExt::from_mode(0o600)).unwrap();
    // Windows' line ends, and none at the end.
    write(
        &home.join(".codex/config.toml"),
        "model = \"x\"\r\n[projects.\"/w\"]\r\ntrust_level = \"trusted\"",
    );
    // A mark of the encoding.
    write(
        &home.join(".gemini/settings.json"),
        "\u{feff}{\"theme\":\"x\"}\n",
    );
    // A link to what is not there yet.
    fs::create_dir(home.join(".cursor")).unwrap();
    symlink(
        "../dotfiles/cursor/hooks.json",
        home.join(".cursor/hooks.json"),
    )
    .unwrap();
    // The user's own server of the same name.
    write(
        &home.join(".cursor/mcp.json"),
        "{\"mcpServers\": {\"touchmark\": {\"command\": \"my-touchmark\"}}}",
    );
}

#[test]
fn what_setup_puts_in_works_and_goes_to_the_byte() {
    let world = world();
    settings(&world);
    let before = places(&world);
    let facts = setup(&world, &["--yes", "--json"]);
    assert!(facts.status.success(), "{facts:?}");
    let checks = checks(&facts);
    for (agent, event) in [
        ("claude", "SessionStart"),
        ("codex", "SessionStart"),
        ("gemini", "SessionStart"),
        ("cursor", "sessionStart"),
    ] {
        let said = &checks[&format!("{agent} hooks")];
        assert!(said.starts_with("good"), "{said}");
        assert!(
            said.ends_with(&format!("tried: the daemon has counted a {event}")),
            "{said}"
        );
    }
    // Of Cursor's, which is the user's own, nothing is run.
    assert!(!checks.contains_key("cursor MCP server"), "{checks:?}");
    for agent in ["claude", "codex", "gemini", "opencode"] {
        let said = &checks[&format!("{agent} MCP server")];
        assert!(said.contains("tried: it has 8 tools"), "{said}");
    }
    assert!(checks["opencode plug-in"].starts_with("good"), "{checks:?}");
    assert!(checks["codex"].contains("/hooks"), "{checks:?}");
    assert!(checks["cursor"].contains("is left unchanged"), "{checks:?}");
    // The tries leave no session behind.
    let sessions = world.run(&["sessions", "--json"]).stdout;
    assert!(!String::from_utf8_lossy(&sessions).contains("touchmark-setup"));
    // Links are links, and no other user may read what no other user could.
    let home = world.outside();
    assert!(home.join(".claude/settings.json").is_symlink());
    assert!(home.join(".cursor/hooks.json").is_symlink());
    let mode = fs::metadata(home.join(".claude.json")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A second time there is nothing to write.
    let now = places(&world);
    let again = done(&world, &["--yes"]);
    assert!(again.contains("nothing had to be written"), "{again}");
    assert_eq!(places(&world), now);

    let said = doctor(&world);
    assert!(
        said["claude"].contains("no event from the agent yet"),
        "{said:?}"
    );
    assert!(
        said["claude"].contains("hooks in ~/.claude/settings.json"),
        "{said:?}"
    );
    Talk::new(&world, "gemini", "s").start().nothing();
    let said = doctor(&world);
    assert!(
        said["gemini"].starts_with("good: last event SessionStart "),
        "{said:?}"
    );

    done(&world, &["--remove", "--yes"]);
    assert_eq!(places(&world), before);
    assert!(!world.state().join("touchmark/hooks.json").exists());
    let nothing = done(&world, &["--remove", "--yes"]);
    assert!(nothing.contains("nothing to do"), "{nothing}");
    let said = doctor(&world);
    assert!(said["codex"].starts_with("note: installed"), "{said:?}");
}

fn doctor(world: &World) -> BTreeMap<String, String> {
    let mut command = world.command(&["doctor", "--json"]);
    clean(&mut command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    checks(&finish(command.spawn().unwrap(), "touchmark doctor"))
}

#[test]
fn a_project_has_settings_of_its_own() {
    let world = world();
    let project = world.workspace();
    write(
        &project.join(".mcp.json"),
        "{\n    \"mcpServers\": {\n        \"other\": {\"command\": \"x\"}\n    }\n}\n",
    );
    write(
        &project.join("opencode.jsonc"),
        "{\n  // mine\n  \"model\": \"x\"\n}",
    );
    let before = places(&world);
    let said = done(&world, &["--project", "--yes"]);
    assert!(said.contains("Claude Code asks"), "{said}");
    // Its workspace stands in the place of the variable.
    let cursor = fs::read_to_string(project.join(".cursor/mcp.json")).unwrap();
    assert!(cursor.contains("${workspaceFolder}"), "{cursor}");
    assert!(said.contains("cursor MCP server: in "), "{said}");
    assert_eq!(said.matches("tried: it has 8 tools").count(), 5, "{said}");
    for file in [
        ".claude/settings.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".cursor/mcp.json",
    ] {
        assert!(project.join(file).exists(), "{file}");
    }
    let commented = fs::read_to_string(project.join("opencode.jsonc")).unwrap();
    assert!(commented.contains("touchmark") && !project.join("opencode.json").exists());
    assert_eq!(everything(&world.outside()), BTreeMap::new());
    let other = done(&world, &["--remove", "--yes"]);
    assert!(
        other.contains("touchmark setup --remove --project"),
        "{other}"
    );
    done(&world, &["--project", "--remove", "--yes"]);
    assert_eq!(places(&world), before);
}

#[test]
fn what_was_put_in_piece_by_piece_goes_as_a_whole() {
    let world = world();
    let before = places(&world);
    let install = |agent: &str| {
        let output = world.run(&["hook", "install", agent, "--yes"]);
        assert!(output.status.success(), "{output:?}");
    };
    // The directory was made for the hooks, and holds the servers later.
    install("codex");
    install("gemini");
    done(&world, &["--yes", "--agent", "codex", "gemini"]);
    let output = world.run(&["hook", "uninstall", "gemini", "--yes"]);
    assert!(output.status.success(), "{output:?}");
    let left = fs::read_to_string(world.outside().join(".gemini/settings.json")).unwrap();
    assert!(
        left.contains("mcpServers") && !left.contains("hook gemini"),
        "{left}"
    );
    done(&world, &["--remove", "--yes"]);
    assert_eq!(places(&world), before);
}

/// `docs/agents/mcp.md` shows the entries that `touchmark setup` writes. For
/// Claude Code and Factory Droid it adds a type to the common one.
#[test]
fn the_page_about_mcp_shows_what_is_set_up() {
    let page = Path::new(AGENTS_PAGES).join("mcp.md");
    let snippets = of(&page);
    let shown = |number: usize| -> Value {
        let json = snippets.iter().filter(|snippet| snippet.language == "json");
        let snippet: Vec<_> = json.collect();
        serde_json::from_str(&snippet[number].text).unwrap()
    };
    for (agent, file, within, number) in [
        ("claude", ".mcp.json", "mcpServers", 0),
        ("droid", ".factory/mcp.json", "mcpServers", 0),
        ("gemini", ".gemini/settings.json", "mcpServers", 0),
        ("cursor", ".cursor/mcp.json", "mcpServers", 1),
        ("opencode", "opencode.json", "mcp", 3),
    ] {
        let world = world();
        done(&world, &["--project", "--yes", "--agent", agent]);
        let written = fs::read_to_string(world.path(file)).unwrap();
        let written: Value = serde_json::from_str(&written).unwrap();
        let mut entry = written[within]["touchmark"].clone();
        if entry["type"] == "stdio" {
            entry.as_object_mut().unwrap().remove("type");
        }
        assert_eq!(shown(number)[within]["touchmark"], entry, "{agent}");
    }
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    let toml = snippets.iter().find(|snippet| snippet.language == "toml");
    let world = world();
    done(&world, &["--user", "--yes", "--agent", "codex"]);
    let written = fs::read_to_string(world.outside().join(".codex/config.toml")).unwrap();
    assert_eq!(lines(&toml.unwrap().text), lines(&written));
}

/// All agents with settings.
const AGENTS: [&str; 14] = [
    "claude", "codex", "gemini", "cursor", "opencode", "qwen", "copilot", "pi", "cline", "vibe",
    "droid", "grok", "windsurf", "goose",
];

/// Runs `uninstall` from an unrelated directory, so that it must find
/// everything.
fn uninstall(world: &World, words: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("uninstall").args(words).current_dir("/");
    world.dress(&mut command);
    clean(&mut command);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command.spawn().unwrap(), "touchmark uninstall")
}

/// Returns the items that it lists, by kind and path, and whether each was
/// removed.
fn items(output: &Output) -> BTreeMap<(String, PathBuf), bool> {
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    let items = facts["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            let text = |name: &str| item[name].as_str().unwrap().to_owned();
            let name = (text("kind"), text("path").into());
            (name, item["done"].as_bool().unwrap())
        })
        .collect()
}

#[test]
fn uninstall_takes_everything_away_and_leaves_settings_as_they_were() {
    let mut world = world();
    settings(&world);
    write(&world.path(".mcp.json"), "{\"mcpServers\": {}}");
    let before = places(&world);
    for agent in AGENTS {
        for scope in ["--user", "--project"] {
            let output = world.run(&["hook", "install", agent, scope, "--yes"]);
            assert!(output.status.success(), "{agent} {scope}: {output:?}");
        }
    }
    for scope in ["--user", "--project"] {
        done(&world, &[scope, "--yes"]);
    }
    let written = places(&world);
    let changed: Vec<&PathBuf> = written
        .iter()
        .filter(|(path, now)| path.is_file() && before.get(*path) != Some(now))
        .map(|(path, _)| path)
        .collect();
    assert!(changed.len() > 2 * AGENTS.len(), "{changed:?}");

    let shown = uninstall(&world, &["--dry-run", "--json"]);
    assert!(shown.status.success(), "{shown:?}");
    let shown = items(&shown);
    assert_eq!(places(&world), written);
    world.client().ok("ping", json!({}));
    let daemon = ("daemon".to_owned(), world.workspace().to_owned());
    assert_eq!(shown.get(&daemon), Some(&false), "{shown:?}");
    for path in changed {
        let is_named = |(kind, named): &(String, PathBuf)| {
            kind == "settings" && named.canonicalize().ok() == path.canonicalize().ok()
        };
        assert!(shown.keys().any(is_named), "{path:?} is not in {shown:?}");
    }

    let gone = uninstall(&world, &["--yes", "--json"]);
    assert!(gone.status.success(), "{gone:?}");
    assert!(items(&gone).values().all(|done| *done), "{gone:?}");
    assert_eq!(items(&gone).len(), shown.len());
    assert_eq!(places(&world), before);
    assert_eq!(world.wait_end(), Some(0));
    let state = world.state().join("touchmark");
    assert!(state.exists(), "only --state removes it");

    // What may be nowhere else has to be named.
    let key = world.lock().with_extension("");
    fs::create_dir_all(key.join("recovery")).unwrap();
    fs::write(key.join("recovery/r1.json"), "{}").unwrap();
    let refused = uninstall(&world, &["--state", "--yes"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(key.exists());
    let gone = uninstall(&world, &["--state", "--recovered", "--yes"]);
    assert!(gone.status.success(), "{gone:?}");
    assert!(!state.exists() && !world.runtime().join("touchmark").exists());
    assert_eq!(places(&world), before);
    let nothing = uninstall(&world, &["--yes"]);
    let said = String::from_utf8_lossy(&nothing.stdout).into_owned();
    assert!(
        nothing.status.success() && said.contains("nothing to do"),
        "{said}"
    );
}

#[test]
fn one_agent_that_cannot_be_written_costs_the_others_nothing() {
    let world = world();
    let home = world.outside();
    // No user can create files there, not even root.
    fs::create_dir(home.join(".gemini")).unwrap();
    symlink(
        "/sys/kernel/settings.json",
        home.join(".gemini/settings.json"),
    )
    .unwrap();
    write(&home.join(".cursor/hooks.json"), "{\n  \"hooks\": [\n}\n");
    let before = places(&world);
    let output = setup(&world, &["--yes", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let checks = checks(&output);
    assert!(
        checks["gemini hooks and MCP server"].starts_with("wrong"),
        "{checks:?}"
    );
    assert!(checks["cursor"].contains("line 3"), "{checks:?}");
    assert!(checks["claude hooks"].starts_with("good"), "{checks:?}");
    let removed = setup(&world, &["--remove", "--yes"]);
    assert_eq!(
        removed.status.code(),
        Some(1),
        "cursor's cannot be looked at"
    );
    assert_eq!(places(&world), before);
}

#[test]
fn settings_on_another_file_system_come_back() {
    let world = world();
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else {
        return not_tested("settings on another file system: no /dev/shm");
    };
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    if device(elsewhere.path()) == device(&world.outside()) {
        return not_tested("settings on another file system: there is only one");
    }
    let file = elsewhere.path().join("settings.json");
    let text = "{\n  \"a\": 1, // one\n}\n";
    fs::write(&file, text).unwrap();
    fs::create_dir(world.outside().join(".claude")).unwrap();
    symlink(&file, world.outside().join(".claude/settings.json")).unwrap();
    let before = places(&world);
    done(&world, &["--yes", "--agent", "claude"]);
    assert!(fs::read_to_string(&file).unwrap().contains("PreToolUse"));
    done(&world, &["--remove", "--yes"]);
    assert_eq!(places(&world), before);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

/// Answers the question of `setup` with these options after `meanwhile` has run.
/// Returns whether the command succeeded, and its output.
fn asked(world: &World, options: &str, meanwhile: impl FnOnce()) -> (bool, String) {
    let mut terminal = Command::new("script");
    let line = format!(
        "stty cols 80; '{}' --workspace '{}' setup {options}",
        binary().display(),
        world.workspace().display()
    );
    terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    world.dress(&mut terminal);
    clean(&mut terminal);
    terminal
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = terminal.spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut said = Vec::new();
    loop {
        let mut byte = [0];
        assert_eq!(output.read(&mut byte).unwrap(), 1, "no question");
        said.push(byte[0]);
        if said.ends_with(b"Witness the commands of Claude Code? [y/N] ") {
            input.write_all(b"n\n").unwrap();
        } else if said.ends_with(b"[y/N] ") {
            break;
        }
    }
    meanwhile();
    input.write_all(b"y\n").unwrap();
    output.read_to_end(&mut said).unwrap();
    let ended = child.wait().unwrap();
    (ended.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn what_lets_commands_be_witnessed_works_and_goes_to_the_byte() {
    let world = world();
    settings(&world);
    let before = places(&world);
    // Nothing of it is written unless it is asked for.
    done(&world, &["--yes", "--agent", "claude"]);
    let shell = world.config().join("touchmark/claude-shell");
    assert!(!shell.exists());
    done(
        &world,
        &["--yes", "--agent", "claude", "--witness", "--shims"],
    );
    let named = fs::read_to_string(world.outside().join("dotfiles/claude.json")).unwrap();
    assert!(named.contains(&format!(
        "\"CLAUDE_CODE_SHELL_PREFIX\": \"{}\"",
        shell.display()
    )));
    // Once chosen it stays chosen.
    let again = setup(&world, &["--yes", "--agent", "claude", "--json"]);
    let again = checks(&again);
    assert!(again["claude witness"].ends_with("tried"), "{again:?}");
    assert!(
        again["claude shim"].contains("add `export PATH="),
        "{again:?}"
    );

    // As the agent runs a command, and as it runs a hook; with touchmark, and
    // once that is gone.
    let run = |path: &str, agent: &str| {
        let script = "echo \"$0\"; exit 3";
        let line = format!("{agent}; {} '{script}'; echo $?", shell.display());
        let mut command = Command::new("sh");
        command
            .args(["-c", &line])
            .env("PATH", path)
            .env("SHELL", "/bin/bash");
        world.dress(&mut command);
        command.env("PATH", path);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let with = format!("{}:/usr/bin:/bin", binary().parent().unwrap().display());
    for path in [with.as_str(), "/usr/bin:/bin"] {
        assert_eq!(
            run(path, "export CLAUDE_PID=$$"),
            "/bin/bash\n3\n",
            "{path}"
        );
        assert_eq!(run(path, "export CLAUDE_PID=1"), "/bin/sh\n3\n", "{path}");
    }
    // A shim runs the next program of its name.
    let shim = world.config().join("touchmark/shims/claude");
    let behind = world.state().with_file_name("behind");
    fs::create_dir(&behind).unwrap();
    write(
        &behind.join("claude"),
        "#!/bin/sh\necho \"real $*\"; exit 4\n",
    );
    fs::set_permissions(behind.join("claude"), PermissionsExt::from_mode(0o755)).unwrap();
    for path in [with.as_str(), "/usr/bin:/bin"] {
        let shims = shim.parent().unwrap().display();
        let mut command = Command::new("sh");
        command.args(["-c", "claude -p 'a  b'; echo $?"]);
        world.dress(&mut command);
        command.env("PATH", format!("{shims}:{}:{path}", behind.display()));
        command.current_dir(world.workspace());
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert_eq!(said, "real -p a  b\n4\n", "{path}");
    }

    done(&world, &["--remove", "--yes"]);
    assert_eq!(places(&world), before);
}

#[test]
fn what_is_saved_while_the_question_waits_is_kept() {
    let world = world();
    let claude = world.outside().join(".claude.json");
    write(&claude, "{\n  \"numStartups\": 1\n}");
    // The agent counts its starts: that changes nothing of what was shown.
    let (agreed, said) = asked(&world, "--agent claude", || {
        fs::write(&claude, "{\n  \"numStartups\": 2\n}").unwrap()
    });
    assert!(agreed, "{said}");
    let now: Value = serde_json::from_slice(&fs::read(&claude).unwrap()).unwrap();
    assert_eq!(now["numStartups"], 2);
    assert!(now["mcpServers"]["touchmark"].is_object());
    // It fits the terminal.
    for line in said.lines().filter(|line| !line.contains("@@")) {
        let shown = line.trim_end_matches('\r');
        assert!(shown.chars().count() <= 80, "{shown}");
    }
    let (agreed, said) = asked(&world, "--remove", || ());
    assert!(agreed && said.contains("Restore 2 files? [y/N]"), "{said}");
    assert_eq!(
        fs::read_to_string(&claude).unwrap(),
        "{\n  \"numStartups\": 2\n}"
    );
    // Another program has added the same: what was shown is not what would be
    // written.
    let theirs = json!({"mcpServers": {"touchmark": {"command": "mine"}}}).to_string();
    let (agreed, said) = asked(&world, "--agent claude", || {
        fs::write(&claude, &theirs).unwrap()
    });
    assert!(!agreed && said.contains("changed meanwhile"), "{said}");
    assert_eq!(fs::read_to_string(&claude).unwrap(), theirs);
}

#[test]
fn nothing_is_written_unless_somebody_agrees() {
    let world = world();
    let before = places(&world);
    let shown = done(&world, &["--dry-run"]);
    assert!(shown.contains("+++ ~/.claude/settings.json") && shown.contains("nothing is written"));
    assert!(shown.contains("more"), "the plug-in is cut: {shown}");
    let refused = setup(&world, &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--yes"));
    done(&world, &["--yes", "--no-mcp", "--agent", "gemini"]);
    let text = fs::read_to_string(world.outside().join(".gemini/settings.json")).unwrap();
    assert!(text.contains("hook gemini") && !text.contains("mcpServers"));
    done(&world, &["--remove", "--yes"]);
    assert_eq!(places(&world), before);
}

#[test]
fn an_agent_whose_settings_switch_hooks_off_is_named() {
    let world = world();
    let (home, project) = (world.outside(), world.path(".claude"));
    fs::create_dir(home.join(".claude")).unwrap();
    fs::create_dir(&project).unwrap();
    let off = "{\n  // for now\n  \"disableAllHooks\": true\n}\n";
    let users = home.join(".claude/settings.json");
    let local = project.join("settings.local.json");
    let names = |said: &str| said.contains("no hook will run") && said.contains("disableAllHooks");
    let install = ["--yes", "--no-mcp", "--agent", "claude", "gemini"];

    fs::write(&users, off).unwrap();
    let output = setup(&world, &install);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        names(&String::from_utf8_lossy(&output.stdout)),
        "{output:?}"
    );
    assert!(names(&doctor(&world)["claude"]));
    assert!(!doctor(&world)["gemini"].contains("no hook will run"));

    // The user's setting in the project counts before the user's for all, and
    // before the project's own.
    fs::write(&local, off.replace("true", "false")).unwrap();
    assert!(!doctor(&world)["claude"].contains("no hook will run"));
    done(&world, &install);
    fs::write(project.join("settings.json"), off).unwrap();
    assert!(!doctor(&world)["claude"].contains("no hook will run"));
    fs::remove_file(&local).unwrap();
    assert!(doctor(&world)["claude"].contains("/ws/.claude/settings.json"));
    fs::remove_file(project.join("settings.json")).unwrap();
    fs::write(&local, off).unwrap();
    assert!(doctor(&world)["claude"].contains("settings.local.json"));

    let gemini = home.join(".gemini/settings.json");
    let text = fs::read_to_string(&gemini).unwrap();
    fs::write(
        &gemini,
        text.replacen('{', "{ \"hooksConfig\": { \"enabled\": false },", 1),
    )
    .unwrap();
    assert!(doctor(&world)["gemini"].contains("hooksConfig.enabled"));
}

/// An agent that no test has run as the real program is marked wherever it is
/// offered: in `setup`, `doctor` and the documents.
#[test]
fn an_agent_that_was_never_run_is_marked() {
    let world = world();
    let all = ["--json", "setup", "--dry-run", "--agent"];
    let output = world.run(&[&all[..], &AGENTS].concat());
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    let shown = world.run(&[&all[1..], &AGENTS].concat());
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    done(&world, &[&["--yes", "--agent"], &AGENTS[..]].concat());
    let examined = world.run(&["--json", "doctor"]);
    let examined: Value = serde_json::from_slice(&examined.stdout).unwrap();
    let page = Path::new(AGENTS_PAGES).join("README.md");
    let page = fs::read_to_string(page).unwrap();
    let rows = facts["agents"].as_array().unwrap();
    assert_eq!(rows.len(), AGENTS.len());
    for row in rows {
        let (name, title) = (
            row["agent"].as_str().unwrap(),
            row["title"].as_str().unwrap(),
        );
        let played = touchmark_tests::agents::AGENTS
            .iter()
            .any(|agent| agent.name == name);
        let untried = row["untried"].as_str();
        match untried {
            None => assert!(played, "{name} is not among the real agents"),
            // A part of it may be untried.
            Some(text) => assert!(!played || text.contains(": "), "{name}: {text}"),
        }
        let checks = examined["checks"].as_array().unwrap().iter();
        let mut checks = checks.filter(|check| check["check"] == name);
        let says = checks.next().unwrap()["says"].as_str().unwrap();
        let line = page
            .lines()
            .find(|line| line.starts_with(&format!("| {title} |")));
        let line = line.unwrap_or_else(|| panic!("{title} is not in the documents' table"));
        let mark = untried.unwrap_or("from documents");
        assert_eq!(says.contains(mark), untried.is_some(), "{says}");
        assert_eq!(line.contains(mark), untried.is_some(), "{line}");
        let of_setup = shown.lines().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(of_setup.contains(mark), untried.is_some(), "{of_setup}");
    }
}
