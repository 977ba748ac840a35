//! `desktop.losses`: the desktop shows what an agent has overwritten unseen.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use touchmark_tests::process::until;
use touchmark_tests::{World, user};

const ON: &str = "[desktop]\nlosses = true\n";

/// A world whose daemon finds a `notify-send` that writes its arguments into a
/// file, one a line, or none with `missing`.
fn world(configuration: &str, missing: bool) -> (World, PathBuf) {
    let mut world = World::asleep();
    let tools = world.outside();
    let shown = tools.join("shown");
    if !missing {
        let program = tools.join("notify-send");
        let script =
            "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$0.new\"; mv \"$0.new\" \"${0%/*}/shown\"\n";
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = match missing {
        true => tools.display().to_string(),
        false => format!("{}:{}", tools.display(), std::env::var("PATH").unwrap()),
    };
    world.set_env("PATH", &path);
    world.configure(configuration);
    world.start();
    (world, shown)
}

/// An agent overwrites what the user has saved during its edit.
fn lose(world: &World, name: &str) {
    world.file(name, "one\n");
    let mut agent = world.session("s");
    agent.read(name);
    let edit = agent.begin(name, None).unwrap();
    user::write(&world.path(name), "user\n");
    agent.sync();
    user::write(&world.path(name), "agent\n");
    let done = agent.commit(&edit, name, Some("agent\n"));
    assert_eq!(done["outcome"], "clobbered", "{done}");
}

#[test]
fn a_loss_is_shown_with_the_command_that_brings_it_back() {
    let (mut world, shown) = world(ON, false);
    // A name that a shell or a desktop would read as something else.
    lose(&world, "-a$(touch x)<b>.txt");
    until("nothing is shown", || shown.exists());
    let text = fs::read_to_string(&shown).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["--app-name=touchmark", "--"]);
    assert_eq!(lines[2], "Overwritten unseen: -a$(touch x)<b>.txt");
    assert_eq!(lines.len(), 4, "{text}");
    assert!(!world.path("x").exists());
    world.healthy();
}

#[test]
fn nothing_is_shown_unless_the_user_wants_it() {
    let (mut world, shown) = world("", false);
    lose(&world, "a.txt");
    world.stop();
    assert!(!shown.exists());
    // A repository cannot turn it on.
    world.file(".touchmark.toml", ON);
    world.start();
    lose(&world, "b.txt");
    world.stop();
    assert!(!shown.exists());
}

#[test]
fn a_missing_program_is_said_once() {
    let (mut world, _) = world(ON, true);
    lose(&world, "a.txt");
    let says = |world: &World| world.said().matches("notify-send is not installed").count();
    until("the log says nothing", || says(&world) == 1);
    lose(&world, "b.txt");
    world.stop();
    assert_eq!(says(&world), 1);
}
