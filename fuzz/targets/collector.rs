//! Runs the daemon's `fuzzed::collector` with arbitrary bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| touchmark_daemon::fuzzed::collector(bytes));
