//! Opencode's hooks, by the real binary and daemon.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use touchmark_tests::hooks::play;

#[test]
fn a_whole_session() {
    play::whole_session("opencode");
}
