//! Runs `page::page` with arbitrary bytes. It uses a source of the command, which
//! is no library.
#![no_main]
#![allow(dead_code, unreachable_pub)]

#[path = "../../cli/src/ui"]
mod ui {
    #[path = "../../../fuzz/page.rs"]
    pub mod fuzzed;
    mod gate;
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ui::fuzzed::page(bytes));
