//! The body of the fuzz target `settings`: two configuration files, the user's
//! and the workspace's. A stable test runs the seeds through it
//! (`daemon/tests/corpus.rs`).
//!
//! Nothing may panic. An entry that is refused is reported with file, line and
//! reason. A value that is accepted is within the bounds of
//! docs/configuration.md, and the workspace's file only tightens values.
#![allow(clippy::panic)]

use std::path::Path;

use touchmark_daemon::config::{Config, ConfigError, Durability, Whose};
use touchmark_engine::patterns::Patterns;

/// The line between the user's file and the workspace's; it is not valid TOML.
const BETWEEN: &[u8] = b"\n%%%\n";

const USER: &str = "user.toml";
const WORKSPACE: &str = "workspace.toml";

const DAY: u64 = 86_400_000;

pub(crate) fn settings(bytes: &[u8]) {
    let cut = bytes
        .windows(BETWEEN.len())
        .position(|window| window == BETWEEN);
    let (user, workspace) = match cut {
        Some(at) => (&bytes[..at], &bytes[at + BETWEEN.len()..]),
        None => (bytes, &b""[..]),
    };
    let mut config = Config::default();
    taken(&mut config, USER, user, Whose::User);
    bounded(&config);
    let before = config.clone();
    taken(&mut config, WORKSPACE, workspace, Whose::Repository);
    bounded(&config);
    only_tighter(&before, &config);
    let once = config.clone();
    taken(&mut config, WORKSPACE, workspace, Whose::Repository);
    assert_eq!(config, once, "said again, it says the same");
    config.engine(b"/w".to_vec(), false);
}

fn taken(config: &mut Config, file: &str, text: &[u8], whose: Whose) {
    for wrong in config.apply(Path::new(file), text, whose).wrong {
        let ConfigError {
            file: named,
            line,
            reason,
            ..
        } = wrong;
        assert_eq!(named, Path::new(file));
        let lines = text.split(|byte| *byte == b'\n').count();
        assert!(
            (1..=lines).contains(&line),
            "line {line} of {lines}: {reason}"
        );
        assert!(!reason.is_empty() && reason.chars().count() <= 300);
    }
}

/// Checks that a repository's file only tightens the user's settings: it stores
/// nothing more, drops nothing earlier, and raises no limit (SEC-5).
fn only_tighter(user: &Config, both: &Config) {
    for (user, both) in [
        (user.read_text, both.read_text),
        (user.contents_total, both.contents_total),
        (user.contents_file, both.contents_file),
        (user.calls_keep, both.calls_keep),
        (user.calls_age, both.calls_age),
        (user.calls_bytes, both.calls_bytes),
        (user.dedup.into(), both.dedup.into()),
        (user.replace_repeats.into(), both.replace_repeats.into()),
    ] {
        assert!(both <= user, "{both} is more than {user}");
    }
    let all_in = |user: &[String], both: &[String]| user.iter().all(|one| both.contains(one));
    assert!(all_in(&user.contents_exclude, &both.contents_exclude));
    assert!(all_in(&user.calls_never, &both.calls_never));
    assert!(user.durability == both.durability || both.durability == Durability::Power);
    assert!(both.unsaved >= user.unsaved, "unsaved");
    for agent in user.gates.keys().chain(both.gates.keys()) {
        assert!(both.gate(agent) >= user.gate(agent), "{agent}");
    }
    let rest = Config {
        durability: user.durability,
        read_text: user.read_text,
        contents_total: user.contents_total,
        contents_file: user.contents_file,
        contents_exclude: user.contents_exclude.clone(),
        calls_keep: user.calls_keep,
        calls_age: user.calls_age,
        calls_bytes: user.calls_bytes,
        calls_never: user.calls_never.clone(),
        dedup: user.dedup,
        replace_repeats: user.replace_repeats,
        gate: user.gate,
        gates: user.gates.clone(),
        unsaved: user.unsaved,
        ..both.clone()
    };
    assert_eq!(&rest, user, "all else is the user's");
}

fn bounded(config: &Config) {
    // The daemon does not start if these patterns are invalid.
    let default = Config::default();
    for (patterns, default) in [
        (&config.contents_exclude, &default.contents_exclude),
        (&config.guard_protect, &default.guard_protect),
    ] {
        assert!(patterns == default || Patterns::new(patterns.iter().map(String::as_str)).is_ok());
    }
    for duration in [
        config.idle_exit,
        config.edit_ttl,
        config.flag_ttl,
        config.hook_ttl,
        config.command_ttl,
        config.late,
        config.versions_age,
        config.sessions_keep,
        config.recovery_age,
    ] {
        assert!(duration <= 36_500 * DAY, "{duration} ms");
    }
    for size in [
        config.contents_total,
        config.contents_file,
        config.recovery_bytes,
    ] {
        assert!(size <= 1 << 40, "{size} bytes");
    }
    assert!((64 << 10..=1 << 30).contains(&config.frame));
    assert!((1..=1 << 30).contains(&config.read_text));
    assert!((1..=1_000_000).contains(&config.connections));
}
