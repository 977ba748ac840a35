//! The packages for agents, installed by the programs that they are for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use touchmark_tests::World;
use touchmark_tests::agents::AGENTS;
use touchmark_tests::mcp::{Era, Mcp};
use touchmark_tests::parts::{heavy, not_tested};
use touchmark_tests::world::binary;

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn package(name: &str) -> PathBuf {
    Path::new(TOP).join("packaging/agents").join(name)
}

/// Runs a program with a new home directory. Returns whether it succeeded, and
/// its output.
fn said(command: &mut Command) -> (bool, String) {
    let home = tempfile::tempdir().unwrap();
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .env("HOME", home.path())
        .env_remove("CLAUDE_CONFIG_DIR")
        .output()
        .unwrap();
    let said = [stdout, stderr].concat();
    (
        status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn agents_take_their_packages() {
    if !heavy("the packages for agents, by the agents") {
        return;
    }
    let agents = AGENTS.iter();
    for (name, directory, program, words) in [
        (
            "claude",
            "claude-code",
            "@anthropic-ai/claude-code-linux-x64/claude",
            ["plugin", "validate", "--strict"].as_slice(),
        ),
        (
            "gemini",
            "gemini-cli",
            "@google/gemini-cli/bundle/gemini.js",
            &["extensions", "validate"],
        ),
    ] {
        let Some(agent) = agents.clone().find(|agent| agent.name == name) else {
            not_tested(&format!(
                "{name}'s package: its program is not among the real agents"
            ));
            continue;
        };
        let what = format!("{}'s package", agent.title);
        let Some(packages) = agent.fetch(&what) else {
            continue;
        };
        let program = packages.join("node_modules").join(program);
        let mut command = match program.extension() {
            Some(_) => Command::new("node"),
            None => Command::new(&program),
        };
        if program.extension().is_some() {
            command.arg(&program);
        }
        let (takes, told) = said(command.args(words).arg(package(directory)));
        assert!(takes, "{name}: {told}");
    }
}

#[test]
fn the_npm_package_holds_the_plug_in_and_nothing_else() {
    let place = Path::new(TOP).join("bindings/typescript/opencode");
    let mut npm = Command::new("npm");
    npm.args(["pack", "--dry-run", "--json", "--offline"]);
    let Ok(packed) = npm.current_dir(&place).output() else {
        return not_tested("opencode's plug-in as a package: npm is missing");
    };
    let packed: Value = serde_json::from_slice(&packed.stdout).unwrap();
    let packed = packed
        .get(0)
        .or_else(|| packed.get("touchmark-opencode"))
        .unwrap();
    let files = packed["files"].as_array().unwrap().iter();
    let mut names: Vec<_> = files.map(|file| file["path"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["README.md", "package.json", "touchmark.js"]);
    let manifest: Value =
        serde_json::from_slice(&fs::read(place.join("package.json")).unwrap()).unwrap();
    let main = manifest["main"].as_str().unwrap();
    let plugin = fs::read_to_string(place.join(main)).unwrap();
    assert!(plugin.contains("export {\n  TouchmarkPlugin\n}"));
}

/// As the format specifies: `PLUGIN_ROOT` is the plug-in's directory, and its
/// server is started there.
#[test]
fn an_agent_plugins_server_serves_where_its_client_works() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let place = package("agent-plugin").canonicalize().unwrap();
    let servers: Value =
        serde_json::from_slice(&fs::read(place.join("mcp.json")).unwrap()).unwrap();
    let server = &servers["mcpServers"]["touchmark"];
    assert_eq!(server["command"], "touchmark");
    let arguments = server["args"].as_array().unwrap().iter();
    let start = |client: &Path| {
        let mut command = Command::new(binary());
        command.args(arguments.clone().map(|word| word.as_str().unwrap()));
        world.dress(&mut command);
        command
            .current_dir(&place)
            .env("PLUGIN_ROOT", &place)
            .env("PLUGIN_DATA", world.outside())
            .env("PWD", client);
        Mcp::start(command, Era::Handshake)
    };
    let mut mcp = start(world.workspace());
    assert_eq!(
        mcp.done("read_file", json!({"path": "a.txt"}))["verdict"],
        "first"
    );
    assert!(mcp.end().success());
}
