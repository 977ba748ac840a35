//! What the fuzz target `settings` does with bytes: two configuration files,
//! the user's and the workspace's. A stable test runs the seeds through it
//! (`daemon/tests/corpus.rs`).
//!
//! Nothing may panic; what is refused is refused with file, line and reason;
//! what is taken lies within the bounds of docs/configuration.md, and the
//! workspace's file wins.
#![allow(clippy::panic)]

use std::path::Path;

use touchmark_daemon::config::{Config, ConfigError};

/// No line of TOML: what is before it is the user's file, what is behind it
/// the workspace's.
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
    if !taken(&mut config, USER, user) {
        return;
    }
    let before = config.clone();
    if !taken(&mut config, WORKSPACE, workspace) {
        assert_eq!(config, before, "a refused file changes nothing");
        return;
    }
    let mut again = Config::default();
    for (file, text) in [(WORKSPACE, workspace), (USER, user), (WORKSPACE, workspace)] {
        assert!(taken(&mut again, file, text));
    }
    assert_eq!(again, config, "the last file wins, key by key");
    bounded(&config);
    config.engine(b"/w".to_vec(), false);
}

fn taken(config: &mut Config, file: &str, text: &[u8]) -> bool {
    let Err(ConfigError {
        file: named,
        line,
        reason,
    }) = config.apply(Path::new(file), text)
    else {
        return true;
    };
    assert_eq!(named, Path::new(file));
    let lines = text.split(|byte| *byte == b'\n').count();
    assert!(
        (1..=lines).contains(&line),
        "line {line} of {lines}: {reason}"
    );
    assert!(!reason.is_empty());
    false
}

fn bounded(config: &Config) {
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
