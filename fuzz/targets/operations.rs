//! Runs the engine with inputs made of arbitrary bytes. It uses the sources of
//! the engine's property test.
#![no_main]
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

#[path = "../../engine/tests/property/asks.rs"]
mod asks;
#[path = "../../engine/tests/property/audit/mod.rs"]
mod audit;
#[path = "../../engine/tests/property/chaos.rs"]
mod chaos;
#[path = "../../engine/tests/property/content.rs"]
mod content;
#[path = "../../engine/tests/property/disk.rs"]
mod disk;
#[path = "../../engine/tests/property/fuzzed.rs"]
mod fuzzed;
#[path = "../../engine/tests/property/inputs.rs"]
mod inputs;
#[path = "../../engine/tests/property/op.rs"]
mod op;
#[path = "../../engine/tests/runs/mod.rs"]
mod runs;
#[path = "../../proto/tests/arbitrary/schema.rs"]
mod schema;
#[path = "../../engine/tests/property/script.rs"]
mod script;
#[path = "../../engine/tests/property/world/mod.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzed::operations(bytes));
