//! `touchmark config`: what is set, where, and changes of it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};
use touchmark_tests::World;
use touchmark_tests::process::until;

fn users(world: &World) -> PathBuf {
    world.config().join("touchmark/config.toml")
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs the command, which must succeed.
fn done(world: &World, args: &[&str]) -> String {
    let output = world.run(&[&["config"], args].concat());
    assert!(output.status.success(), "{args:?}: {output:?}");
    text(&output.stdout)
}

/// Runs the command, which must refuse.
fn refused(world: &World, args: &[&str]) -> String {
    let output = world.run(&[&["config"], args].concat());
    assert!(!output.status.success(), "{args:?}: {output:?}");
    text(&output.stderr)
}

/// Edits a file by an editor that runs this line of shell. `$1` is the file.
fn edited(world: &World, args: &[&str], line: &str) -> Output {
    let editor = world.config().join("editor");
    fs::write(&editor, format!("#!/bin/sh\nshift\n{line}\n")).unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = world.command(&[&["config", "edit"], args].concat());
    command.env("VISUAL", &editor).output().unwrap()
}

#[test]
fn each_value_is_listed_with_the_places_that_set_it() {
    let world = World::new();
    fs::create_dir_all(users(&world).parent().unwrap()).unwrap();
    let mine =
        "# mine\ncolour = 3\n\n[calls]\nkeep = 20\n\n[telemetry]\nheaders = { auth = \"pw\" }\n";
    fs::write(users(&world), mine).unwrap();
    world.file(".touchmark.toml", "watch = \"off\"\n[calls]\nkeep = 5\n");
    let output = world.run(&["config", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!text(&output.stdout).contains("pw"), "{output:?}");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |key: &str| {
        let mut rows = all["settings"].as_array().unwrap().iter();
        rows.find(|row| row["key"] == key).unwrap().clone()
    };
    let keep = of("calls.keep");
    assert_eq!(keep["value"], 5);
    let repositorys = world.workspace().join(".touchmark.toml");
    assert_eq!(
        keep["from"],
        json!([{ "file": users(&world), "line": 5 }, { "file": repositorys, "line": 3 }])
    );
    assert_eq!(of("watch")["value"], "auto");
    assert_eq!(of("watch")["from"], json!([]));
    assert_eq!(of("case")["value"], Value::Null);
    let wrong: Vec<&str> = all["wrong"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap())
        .collect();
    assert!(
        wrong[0].contains("config.toml:2: there is no key \"colour\""),
        "{wrong:?}"
    );
    assert!(
        wrong[1].contains(".touchmark.toml:1: `watch` can only be set"),
        "{wrong:?}"
    );

    let listed = text(&world.run(&["config"]).stdout);
    assert!(
        listed.contains("config.toml:5, .touchmark.toml:3 5"),
        "{listed}"
    );
    assert!(listed.contains("idle_exit default \"30 min\""), "{listed}");
    let said = done(&world, &["set", "calls.age", "1 min"]);
    assert!(said.contains("what else is wrong there"), "{said}");
    world.file(
        ".touchmark.toml",
        "[calls]\nkeep = 5\nnever = [\"a\u{202e}b\"]\n",
    );
    let never = done(&world, &["get", "calls.never"]);
    assert!(never.contains("a\\u202eb"), "{never}");
    assert_eq!(done(&world, &["get", "calls.keep"]), "5");
    assert!(refused(&world, &["get", "hooks.gat"]).contains("'hooks.gate'"));
}

#[test]
fn a_key_is_set_and_the_running_daemon_reads_it() {
    let world = World::new();
    world.file("long.txt", "a line of text\n".repeat(10));
    let mut client = world.client();
    let mut sessions = 0..;
    // In a session of its own each: a repeated read is answered without text.
    let mut read = move || {
        let session = format!("s{}", sessions.next().unwrap());
        let params = json!({ "session": session, "path": "long.txt" });
        client.ok("file/readText", params)["text"]
            .as_str()
            .unwrap()
            .len()
    };
    assert_eq!(read(), 150);
    let said = done(&world, &["set", "limits.read_text", "20 B"]);
    assert!(said.ends_with("1 running daemon has been told"), "{said}");
    until("the daemon has read it", || read() <= 20);
    done(&world, &["unset", "limits.read_text"]);
    until("the daemon has read it again", || read() == 150);
    assert!(refused(&world, &["unset", "limits.read_text"]).contains("is not set"));

    let said = done(&world, &["set", "watch", "notify"]);
    assert!(
        said.ends_with("`touchmark restart` puts it in effect"),
        "{said}"
    );
    let before = fs::read(users(&world)).unwrap();
    for (key, value, why) in [
        ("watch", "sometimes", "unknown variant"),
        ("calls.keep", "-3", "invalid value"),
        ("idle_exit", "5 weeks", "a duration like"),
        ("contents.exclude", "[\"a[\"]", "unclosed"),
    ] {
        let said = refused(&world, &["set", key, value]);
        assert!(said.contains(why), "{key} = {value}: {said}");
    }
    assert_eq!(fs::read(users(&world)).unwrap(), before);
}

#[test]
fn a_repositorys_file_may_only_tighten() {
    let world = World::new();
    done(&world, &["set", "calls.keep", "20"]);
    done(&world, &["set", "--here", "calls.keep", "10"]);
    let said = refused(&world, &["set", "--here", "calls.keep", "30"]);
    assert!(said.contains("a repository may only set smaller"), "{said}");
    let said = refused(&world, &["set", "--here", "idle_exit", "2h"]);
    assert!(said.contains("can only be set in the user's"), "{said}");
    let file = fs::read_to_string(world.path(".touchmark.toml")).unwrap();
    assert_eq!(file, "[calls]\nkeep = 10\n");
}

#[test]
fn an_edit_is_checked_before_it_is_saved() {
    let world = World::new();
    let real = world.config().join("dotfiles.toml");
    // What the world itself has set stays, as another watch backend.
    let others = fs::read_to_string(users(&world)).unwrap_or_default();
    let of = |value: &str| format!("idle_exit = \"{value}\" # mine\n{others}");
    fs::write(&real, of("1 h")).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir_all(users(&world).parent().unwrap()).unwrap();
    let _there_was_none = fs::remove_file(users(&world));
    symlink(&real, users(&world)).unwrap();
    let before = fs::read(&real).unwrap();

    let output = edited(&world, &[], "printf 'colour = 3\\n' >> \"$1\"");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    let line = of("1 h").lines().count() + 1;
    assert!(
        said.contains(&format!("line {line}: there is no key \"colour\"")),
        "{said}"
    );
    assert!(said.contains("nothing was changed"), "{said}");
    assert!(!edited(&world, &[], "exit 3").status.success());
    // What another editor has saved meanwhile stays.
    let meanwhile = format!(
        "sed -i 's/1 h/2 h/' {}; printf '[calls]\\nkeep = 5\\n' >> \"$1\"",
        real.display()
    );
    assert!(!edited(&world, &[], &meanwhile).status.success());
    let after = fs::read_to_string(&real).unwrap();
    assert_eq!(after, of("2 h"));
    fs::write(&real, &before).unwrap();

    let output = edited(&world, &[], "sed -i 's/1 h/2 h/' \"$1\"");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read_to_string(&real).unwrap(), after);
    assert!(users(&world).symlink_metadata().unwrap().is_symlink());
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

/// To set a gate to `off` is as much as a pause.
#[test]
fn off5_an_agent_changes_no_setting() {
    let world = World::new();
    let before = fs::read(users(&world)).ok();
    for args in [
        &["config", "set", "hooks.gate", "off"][..],
        &["config", "unset", "hooks.gate"],
        &["config", "edit"],
    ] {
        let mut command = world.command(args);
        let output = command.env("CLAUDECODE", "1").output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{output:?}");
    }
    assert_eq!(fs::read(users(&world)).ok(), before);
    let status = text(&world.run(&["status"]).stdout);
    assert!(status.contains("touchmark config"), "{status}");
}
