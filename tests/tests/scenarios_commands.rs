//! Rows of the scenarios' table about an agent's commands: S40, S41.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use touchmark_tests::user::{self, git};
use touchmark_tests::world::finish;
use touchmark_tests::{Lane, authors, children, lanes, own_worlds, paths, sha256};

/// Returns the paths that the end of a command window reports. Checks that all
/// are the session's.
fn told(ended: &Value, session: &str) -> Vec<String> {
    let changes = ended["changes"].as_array().expect("changes");
    for change in changes {
        assert_eq!(authors(change), [format!("agent:{session}")], "{change}");
        assert_eq!(change["evidence"], json!(["command"]), "{change}");
    }
    paths(changes)
}

/// Saves as a user's editor, and reports the save before or after.
fn save_and_report(lane: &mut Lane, name: &str, first: bool) {
    let path = lane.world.path(name);
    let report = json!({"path": name, "hash": sha256("by the editor\n")});
    let mut editor = lane.world.client();
    if first {
        editor.ok("editor/didSave", report);
        user::replace(&path, "by the editor\n");
    } else {
        user::replace(&path, "by the editor\n");
        editor.ok("editor/didSave", report);
    }
}

/// Rewrites the named files in ten ways, in two halves. Between them it prints
/// `half` and waits for a line.
const SHELL: &str = r#"
    echo shell > "$1"; echo shell >> "$2"; sed -i 's/one/shell/' "$3"
    printf shell > "$4.tmp"; mv "$4.tmp" "$4"; rm "$5"
    echo half; read line
    rm "$6"; echo shell > "$6"; cp "$1" "$7"; dd if="$1" of="$8" 2>/dev/null
    perl -pi -e 's/one/perl/' "$9"; echo last > "${10}.tmp"; mv -f "${10}.tmp" "${10}"
"#;

#[test]
fn s40_a_command_rewrites_ten_files_and_a_user_saves_two() {
    own_worlds(|world, rep| {
        let mut lane = Lane::new(world, rep);
        let names: Vec<String> = (0..12).map(|n| lane.name(&format!("f{n}.txt"))).collect();
        for name in &names {
            lane.world.file(name, "one\n");
        }
        lane.agent.read_all(&names);
        let (ten, eleventh, twelfth) = (&names[..10], &names[10], &names[11]);
        // Half of them by the wire, half by the command.
        let by_the_wire = rep % 4 < 2;
        let mut shell = match by_the_wire {
            true => {
                lane.agent
                    .ok("command/begin", json!({"callId": "c", "label": "sh"}));
                let mut shell = Command::new("sh");
                shell.current_dir(lane.world.workspace());
                shell
            }
            false => {
                let mut run = lane.world.command(&["run", "--json"]);
                run.args(["--session", &lane.agent.name, "--", "sh"]);
                run
            }
        };
        shell
            .args(["-c", SHELL, "sh"])
            .args(ten)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut shell = children::start(&mut shell).unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(shell.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "half\n");
        save_and_report(&mut lane, eleventh, rep % 2 == 0);
        shell.stdin.take().unwrap().write_all(b"on\n").unwrap();
        let output = finish(shell, "the shell");
        assert!(output.status.success(), "{output:?}");
        let ended: Value = match by_the_wire {
            true => lane.agent.ok("command/end", json!({"callId": "c"})),
            false => serde_json::from_slice(&output.stderr)
                .unwrap_or_else(|error| panic!("{error}: {output:?}")),
        };
        user::write(&lane.world.path(twelfth), "by the user\n");
        let mut wanted = ten.to_vec();
        wanted.sort();
        assert_eq!(told(&ended, &lane.agent.name), wanted);
        for change in lane.reported(&[eleventh, twelfth]) {
            assert_eq!(authors(&change), ["user"], "{change}");
        }
        for name in ten {
            let state = lane.agent.state(name);
            assert!(state == "stale" || state == "deleted", "{name} is {state}");
        }
    });
}

#[test]
fn s41_checkout_of_another_branch_by_the_agents_command() {
    lanes(|lane| {
        let dir = lane.dir();
        git(&dir, &["init", "-q", "-b", "main"]);
        let names: Vec<String> = (0..20).map(|n| lane.name(&format!("f{n}.txt"))).collect();
        for name in &names {
            lane.world.file(name, "main\n");
        }
        git(&dir, &["add", "-A"]);
        git(&dir, &["commit", "-q", "-m", "main"]);
        git(&dir, &["checkout", "-q", "-b", "other"]);
        for name in &names[..10] {
            lane.world.file(name, "other\n");
        }
        fs::remove_file(lane.world.path(&names[10])).unwrap();
        git(&dir, &["commit", "-q", "-a", "-m", "other"]);
        git(&dir, &["checkout", "-q", "main"]);
        lane.agent.read_all(&names);
        // Other lanes have windows of their own in this world.
        let begun = lane
            .agent
            .ok("command/begin", json!({"paths": [lane.name("**")]}));
        git(&dir, &["checkout", "-q", "other"]);
        let ended = lane
            .agent
            .client
            .ok("command/end", json!({"command": begun["command"]}));
        let mut differing = names[..11].to_vec();
        differing.sort();
        assert_eq!(told(&ended, &lane.agent.name), differing);
        lane.listed(&[]);
        git(&dir, &["checkout", "-q", "main"]);
        lane.listed(&[]);
        for name in &names {
            assert_eq!(lane.agent.state(name), "fresh", "{name}");
        }
    });
}
