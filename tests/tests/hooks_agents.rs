//! A whole session of each agent that has hooks, by the real binary and daemon.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use touchmark_tests::hooks::play;

#[test]
fn qwen() {
    play::whole_session("qwen");
}
