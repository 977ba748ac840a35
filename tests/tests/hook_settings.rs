//! `touchmark hook install` and `uninstall` on real settings files.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use touchmark_tests::World;
use touchmark_tests::world::{binary, finish};

const AGENTS: [(&str, &str); 10] = [
    ("claude", ".claude/settings.json"),
    ("codex", ".codex/hooks.json"),
    ("gemini", ".gemini/settings.json"),
    ("cursor", ".cursor/hooks.json"),
    ("qwen", ".qwen/settings.json"),
    ("copilot", ".copilot/hooks/touchmark.json"),
    ("droid", ".factory/settings.json"),
    ("grok", ".grok/hooks/touchmark.json"),
    ("windsurf", ".codeium/windsurf/hooks.json"),
    ("goose", ".agents/plugins/touchmark/hooks/hooks.json"),
];

/// Variables that set another directory for settings.
const ELSEWHERE: [&str; 4] = ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "QWEN_HOME", "GROK_HOME"];

/// Returns the events in an agent's documentation. Cursor rejects a file with
/// any other event.
fn events(agent: &str) -> &'static str {
    match agent {
        "cursor" => {
            "beforeShellExecution beforeMCPExecution afterShellExecution \
             afterMCPExecution beforeReadFile afterFileEdit beforeTabFileRead afterTabFileEdit \
             stop beforeSubmitPrompt afterAgentResponse afterAgentThought sessionStart sessionEnd \
             preCompact subagentStart subagentStop preToolUse postToolUse postToolUseFailure \
             workspaceOpen"
        }
        "codex" => {
            "SessionStart SessionEnd SubagentStart SubagentStop PreToolUse \
             PermissionRequest PostToolUse PreCompact PostCompact UserPromptSubmit Stop Interrupt"
        }
        "gemini" => {
            "BeforeTool AfterTool BeforeAgent AfterAgent BeforeModel AfterModel \
             BeforeToolSelection SessionStart SessionEnd Notification PreCompress"
        }
        "claude" | "qwen" => {
            "SessionStart UserPromptSubmit PreToolUse PostToolUse \
             PostToolUseFailure PermissionDenied PostToolBatch SubagentStart SubagentStop \
             PreCompact PostCompact Stop StopFailure SessionEnd"
        }
        "copilot" => {
            "SessionStart SessionEnd UserPromptSubmit PreToolUse PostToolUse \
             PostToolUseFailure PreCompact SubagentStart SubagentStop Stop"
        }
        "droid" => {
            "PreToolUse PostToolUse Notification UserPromptSubmit Stop SubagentStop PreCompact \
             SessionStart SessionEnd"
        }
        "grok" => {
            "SessionStart SessionEnd UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure \
             PermissionDenied Stop StopFailure Notification SubagentStart SubagentStop PreCompact \
             PostCompact"
        }
        "windsurf" => {
            "pre_read_code post_read_code pre_write_code post_write_code pre_run_command \
             post_run_command pre_mcp_tool_use post_mcp_tool_use pre_user_prompt \
             post_cascade_response"
        }
        "goose" => {
            "SessionStart SessionEnd Stop UserPromptSubmit PreToolUse PreToolUseResult \
             PostToolUse PostToolUseFailure BeforeReadFile AfterFileEdit BeforeShellExecution \
             AfterShellExecution"
        }
        other => panic!("no agent {other}"),
    }
}

/// Returns the members of a hook.
fn members(agent: &str) -> &'static [&'static str] {
    match agent {
        "cursor" => &["command", "matcher", "timeout"],
        "copilot" => &["type", "bash", "timeoutSec"],
        "windsurf" => &["command", "show_output"],
        "gemini" | "qwen" => &["type", "name", "command", "timeout"],
        _ => &["type", "command", "timeout"],
    }
}

fn command(world: &World, words: &[&str]) -> Command {
    let mut command = world.command(&["hook"]);
    command.args(words);
    for variable in ELSEWHERE {
        command.env_remove(variable);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(world: &World, words: &[&str]) -> Output {
    finish(command(world, words).spawn().unwrap(), "touchmark hook")
}

fn done(world: &World, words: &[&str]) -> String {
    let output = run(world, words);
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn settings(world: &World, file: &str) -> PathBuf {
    world.outside().join(file)
}

/// Returns all files in a directory, without caches.
fn tree(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(tree(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

#[test]
fn what_is_installed_is_what_the_agent_takes() {
    for (agent, file) in AGENTS {
        let world = World::asleep();
        let shown = done(&world, &["install", agent, "--yes"]);
        assert!(shown.contains("+++ ~/"), "{shown}");
        if agent == "codex" {
            assert!(shown.contains("/hooks"), "{shown}");
            assert!(shown.contains("--dangerously-bypass-hook-trust"), "{shown}");
        }
        let written: Value =
            serde_json::from_slice(&fs::read(settings(&world, file)).unwrap()).unwrap();
        let root: Vec<&String> = written.as_object().unwrap().keys().collect();
        match agent {
            "cursor" | "copilot" => {
                assert_eq!(root, ["hooks", "version"]);
                assert_eq!(written["version"], 1);
            }
            _ => assert_eq!(root, ["hooks"]),
        }
        for (event, list) in written["hooks"].as_object().unwrap() {
            let mut known = events(agent).split_whitespace();
            assert!(known.any(|name| name == event), "{agent}: {event}");
            let [item] = list.as_array().unwrap().as_slice() else {
                panic!("{list}")
            };
            let handler = match item.get("hooks") {
                Some(handlers) => &handlers[0],
                None => item,
            };
            for key in handler.as_object().unwrap().keys() {
                assert!(members(agent).contains(&key.as_str()), "{handler}");
            }
            if let Some(timeout) = handler.get("timeout") {
                let least = if agent == "gemini" { 1000 } else { 1 };
                let timeout = timeout.as_u64().unwrap();
                assert!(timeout >= least, "{handler}");
                // More is cut, with a warning at each start.
                if agent == "codex" && matches!(event.as_str(), "SessionEnd" | "Interrupt") {
                    assert!(timeout <= 3, "{handler}");
                }
            }
            // It is not on the PATH here.
            let own = binary().canonicalize().unwrap();
            let command = handler.get("bash").unwrap_or(&handler["command"]);
            let expected = format!("{}-hook {agent}", own.display());
            assert_eq!(command.as_str().unwrap(), expected);
        }
        // Nothing was there: nothing stays.
        done(&world, &["uninstall", agent, "--yes"]);
        assert_eq!(tree(&world.outside()), Vec::<PathBuf>::new());
        assert!(!world.state().join("touchmark/hooks.json").exists());
    }
}

#[test]
fn settings_survive_to_the_byte_whatever_they_look_like() {
    let mark = "\u{feff}";
    let texts = [
        String::new(),
        "{}".into(),
        "{\r\n}\r\n".into(),
        format!("{mark}{{\n  \"a\": 1\n}}\n"),
        format!("{mark}{{}}"),
        "{\"a\":1,\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]}]}}".into(),
        "{\n\t// mine\n\t\"env\": {\"A\": \"b\"}, // yes\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}, // theirs\n\t\t],\n\t},\n}".into(),
    ];
    for (agent, file) in AGENTS {
        let world = World::asleep();
        let path = settings(&world, file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        for text in &texts {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
            done(&world, &["install", agent, "--yes"]);
            let with = fs::read(&path).unwrap();
            assert_ne!(with, text.as_bytes());
            // A second time changes nothing, and says so.
            let again = done(&world, &["install", agent, "--yes"]);
            assert!(again.starts_with("nothing to do"), "{again}");
            assert_eq!(fs::read(&path).unwrap(), with);
            done(&world, &["uninstall", agent, "--yes"]);
            assert_eq!(fs::read_to_string(&path).unwrap(), *text, "{agent}");
            let nothing = done(&world, &["uninstall", agent, "--yes"]);
            assert!(nothing.starts_with("nothing to do"), "{nothing}");
            assert_eq!(fs::read_to_string(&path).unwrap(), *text, "{agent}");
            done(&world, &["install", agent, "--yes"]);
            assert_eq!(fs::read(&path).unwrap(), with);
            done(&world, &["uninstall", agent, "--yes"]);
            assert_eq!(fs::read_to_string(&path).unwrap(), *text, "{agent}");
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o640
            );
        }
        assert!(!world.state().join("touchmark/hooks.json").exists());
    }
}

/// Returns `doctor`'s findings about Codex's hooks: the level and the sentence.
fn codex_trust(world: &World) -> Vec<(String, String)> {
    let mut command = world.command(&["doctor", "--json"]);
    command.env_remove("CODEX_HOME");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let said = finish(command.spawn().unwrap(), "touchmark doctor").stdout;
    let said: Value = serde_json::from_slice(&said).unwrap();
    let checks = said["checks"].as_array().unwrap().iter();
    checks
        .filter(|check| check["check"] == "Codex's trust")
        .map(|check| {
            let text = |name: &str| check[name].as_str().unwrap().to_owned();
            assert!(text("level") == "good" || text("hint").contains("/hooks"));
            (text("level"), text("says"))
        })
        .collect()
}

#[test]
fn doctor_says_whether_codex_runs_its_hooks() {
    let world = World::asleep();
    assert_eq!(codex_trust(&world), []);
    let file = settings(&world, ".codex/hooks.json");
    fs::create_dir(file.parent().unwrap()).unwrap();
    // Another program's come first, and are not counted.
    let theirs = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}});
    fs::write(&file, theirs.to_string()).unwrap();
    assert_eq!(codex_trust(&world), []);
    done(&world, &["install", "codex", "--yes"]);
    let [(level, says)] = &codex_trust(&world)[..] else {
        panic!("one finding")
    };
    assert_eq!(level, "note");
    assert!(says.contains("skips the hooks in"), "{says}");

    // As Codex writes it.
    let events = "session_start user_prompt_submit pre_tool_use post_tool_use subagent_start \
        subagent_stop post_compact interrupt session_end";
    let approve = |places: &[String]| {
        let state: Vec<String> = places
            .iter()
            .map(|place| {
                let file = file.display();
                format!("[hooks.state.\"{file}:{place}\"]\ntrusted_hash = \"sha256:00\"\n")
            })
            .collect();
        fs::write(file.with_file_name("config.toml"), state.concat()).unwrap();
        codex_trust(&world).remove(0)
    };
    let mut places: Vec<String> = events
        .split_whitespace()
        .map(|event| format!("{event}:0:0"))
        .collect();
    places.push("stop:0:0".into());
    let (level, says) = approve(&places);
    assert_eq!(level, "note");
    assert!(says.contains("skips 1 of the 10 hooks"), "{says}");
    places.push("stop:1:0".into());
    assert_eq!(approve(&places).0, "good");
    fs::write(
        file.with_file_name("config.toml"),
        "[features]\nhooks = false\n",
    )
    .unwrap();
    let output = world.run(&["doctor"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("Codex runs no hooks"));
}

#[test]
fn nothing_is_written_unless_somebody_agrees() {
    let world = World::asleep();
    let path = settings(&world, ".claude/settings.json");
    let shown = done(&world, &["install", "claude", "--dry-run"]);
    assert!(
        shown.contains("+") && shown.contains("PreToolUse"),
        "{shown}"
    );
    let refused = run(&world, &["install", "claude"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--yes"));
    let facts = done(&world, &["install", "claude", "--dry-run", "--json"]);
    let facts: Value = serde_json::from_str(&facts).unwrap();
    assert_eq!(facts["written"], false);
    assert_eq!(facts["changed"], true);
    assert!(!path.exists() && !path.parent().unwrap().exists());
    // At a terminal the person is asked.
    for (answer, written) in [("\n", false), ("n\n", false), ("y\n", true)] {
        let mut terminal = Command::new("script");
        let line = format!(
            "'{}' --workspace '{}' hook install claude",
            binary().display(),
            world.workspace().display()
        );
        terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        world.dress(&mut terminal);
        terminal.env_remove("CLAUDE_CONFIG_DIR");
        terminal
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = terminal.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(answer.as_bytes()).unwrap();
        let asked = finish(child, "script");
        drop(input);
        assert!(String::from_utf8_lossy(&asked.stdout).contains("[y/N]"));
        assert_eq!(asked.status.success(), written, "{answer:?}");
        assert_eq!(path.exists(), written, "{answer:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_left_as_it_is() {
    for (agent, file) in AGENTS {
        let world = World::asleep();
        let path = settings(&world, file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let texts: [(&[u8], &str); 4] = [
            (b"{\n  \"a\": ,\n}", "line 2"),
            (b"{\n  \"hooks\": 1\n}", "line 2"),
            (b"{\n\"a\": \"\xff\"}", "line 2"),
            (b"[]", "line 1"),
        ];
        for (text, line) in texts {
            fs::write(&path, text).unwrap();
            for action in ["install", "uninstall"] {
                let refused = run(&world, &[action, agent, "--yes"]);
                assert_eq!(refused.status.code(), Some(1));
                let said = String::from_utf8_lossy(&refused.stderr).into_owned();
                assert!(
                    said.contains(line) && said.contains("left as it is"),
                    "{said}"
                );
                assert_eq!(fs::read(&path).unwrap(), text);
            }
        }
    }
}

#[test]
fn a_link_stays_a_link_and_what_others_added_stays() {
    let world = World::asleep();
    let dotfiles = world.outside().join("dotfiles");
    let path = settings(&world, ".claude/settings.json");
    fs::create_dir(&dotfiles).unwrap();
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(dotfiles.join("claude.json"), "{\n  \"a\": 1\n}\n").unwrap();
    symlink("../dotfiles/claude.json", &path).unwrap();
    done(&world, &["install", "claude", "--yes"]);
    assert!(path.is_symlink());
    // The agent itself writes its settings again, in its own way.
    let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    value["model"] = json!("x");
    value["hooks"]["Stop"]
        .as_array_mut()
        .unwrap()
        .push(json!({"hooks": [{"type": "command", "command": "x"}]}));
    fs::write(&path, serde_json::to_string_pretty(&value).unwrap()).unwrap();
    assert!(done(&world, &["install", "claude", "--yes"]).starts_with("nothing to do"));
    done(&world, &["uninstall", "claude", "--yes"]);
    assert!(path.is_symlink());
    let left: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let theirs = json!({"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]});
    assert_eq!(left, json!({"a": 1, "model": "x", "hooks": theirs}));
}

#[test]
fn the_command_is_named_as_it_is_found() {
    let world = World::asleep();
    let path = settings(&world, ".codex/hooks.json");
    let bin = world.outside().join("a bin");
    fs::create_dir(&bin).unwrap();
    symlink(binary(), bin.join("touchmark")).unwrap();
    let named = |command: &mut Command| {
        assert!(finish(command.spawn().unwrap(), "install").status.success());
        let written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        written["hooks"]["Stop"][0]["hooks"][0]["command"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let install = || command(&world, &["install", "codex", "--yes"]);
    // A name outlives an upgrade that moves the programs. A path may not.
    assert_eq!(named(install().env("PATH", &bin)), "touchmark hook codex");
    let small = binary().with_file_name("touchmark-hook");
    symlink(small, bin.join("touchmark-hook")).unwrap();
    assert_eq!(named(install().env("PATH", &bin)), "touchmark-hook codex");
    // Moved, or another version is found first: the hooks follow, once each.
    fs::remove_file(bin.join("touchmark")).unwrap();
    fs::write(bin.join("touchmark"), "another").unwrap();
    let own = binary().canonicalize().unwrap();
    fs::remove_file(bin.join("touchmark-hook")).unwrap();
    let expected = format!("{}-hook codex", own.display());
    assert_eq!(named(install().env("PATH", &bin)), expected);
    let written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(written["hooks"]["Stop"].as_array().unwrap().len(), 1);
    done(&world, &["uninstall", "codex", "--yes"]);
    assert!(!path.exists() && !path.parent().unwrap().exists());
}

/// The plug-in is in the program by a link to what is built from its source.
#[test]
fn a_plug_in_is_installed_as_it_was_built() {
    for agent in ["opencode", "pi", "cline"] {
        let world = World::new();
        let facts = done(&world, &["install", agent, "--yes", "--json"]);
        let facts: Value = serde_json::from_str(&facts).unwrap();
        let file = facts["file"].as_str().expect("a file");
        let built = format!("../bindings/typescript/{agent}/touchmark.js");
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join(built);
        let (installed, built) = (fs::read_to_string(file), fs::read_to_string(built));
        assert_eq!(installed.unwrap(), built.unwrap(), "{agent}");
    }
}

#[test]
fn projects_have_settings_of_their_own_and_opencode_a_file() {
    let world = World::asleep();
    done(&world, &["install", "gemini", "--project", "--yes"]);
    assert!(world.path(".gemini/settings.json").exists());
    assert_eq!(tree(&world.outside()), Vec::<PathBuf>::new());
    done(&world, &["uninstall", "gemini", "--project", "--yes"]);
    assert!(!world.path(".gemini").exists());

    let plugin = world.path(".opencode/plugins/touchmark.js");
    done(&world, &["install", "opencode", "--project", "--yes"]);
    let text = fs::read_to_string(&plugin).unwrap();
    assert!(
        text.starts_with("// touchmark's plug-in for opencode.\n"),
        "{text}"
    );
    // Nothing has to be fetched for it.
    for line in text.lines().filter(|line| line.starts_with("import ")) {
        assert!(line.contains("from \"node:"), "{line}");
    }
    assert!(!text.contains("require(") && !text.contains("import("));
    let beside = tree(&world.path(".opencode"));
    let made = [world.path(".opencode/plugins"), plugin.clone()];
    assert_eq!(beside, made);
    // An older one is replaced, another program's is not touched.
    fs::write(&plugin, "// touchmark's plug-in for opencode.\nold\n").unwrap();
    done(&world, &["install", "opencode", "--project", "--yes"]);
    assert_eq!(fs::read_to_string(&plugin).unwrap(), text);
    fs::write(&plugin, "export {}\n").unwrap();
    for action in ["install", "uninstall"] {
        let refused = run(&world, &[action, "opencode", "--project", "--yes"]);
        assert_eq!(refused.status.code(), Some(1));
        assert_eq!(fs::read_to_string(&plugin).unwrap(), "export {}\n");
    }
    fs::write(&plugin, &text).unwrap();
    done(&world, &["uninstall", "opencode", "--project", "--yes"]);
    assert!(!world.path(".opencode").exists());
    done(&world, &["install", "opencode", "--yes"]);
    assert!(
        world
            .config()
            .join("opencode/plugins/touchmark.js")
            .exists()
    );
}
