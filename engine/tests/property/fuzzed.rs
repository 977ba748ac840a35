//! Runs of the engine made from bytes. The fuzz target `operations` uses them,
//! and its seeds are a test here on every toolchain.

use crate::runs::rng::Rng;
use crate::script::{Script, script_of};
use crate::{chaos, inputs};

/// The maximum number of steps of a run. Longer runs find nothing that shorter
/// ones do not, and fewer of them fit into a minute.
const STEPS: usize = 80;

/// Plays a run. The first byte chooses its kind: any inputs at all, or a run
/// that is compared with the rules, with everything late or with each step at
/// rest. The other bytes decide its choices.
pub fn operations(bytes: &[u8]) {
    let Some((kind, choices)) = bytes.split_first() else {
        return;
    };
    let rng = Rng::from_bytes(choices);
    match kind % 3 {
        0 => inputs::run(rng),
        1 => judge(&script_of(rng, STEPS)),
        _ => judge(&script_of(rng, STEPS).at_rest()),
    }
}

fn judge(script: &Script) {
    if let Err((step, why)) = chaos::run(script) {
        panic!("step {step}: {why}\n{script:#?}");
    }
}

#[cfg(test)]
#[test]
fn the_seeds_of_the_fuzzer() {
    crate::seeds::each_seed("operations", operations);
}
