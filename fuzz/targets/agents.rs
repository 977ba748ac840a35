//! Runs `agents::agents` with arbitrary bytes. It uses the sources of the
//! command, which is no library.
#![no_main]
#![allow(dead_code, unused_imports, unreachable_pub)]

#[path = "../../cli/src/settings"]
mod settings {
    mod agent;
    mod document;
    #[path = "../../../fuzz/agents.rs"]
    pub mod fuzzed;
    mod hooks;
    mod json;
    mod made;
    mod member;
    mod server;
    mod codex {
        pub(super) mod table;
    }
}

mod daemon {
    pub(crate) use touchmark_daemon::agent;
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| settings::fuzzed::agents(bytes));
