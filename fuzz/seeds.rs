//! Runs the seeds of a fuzz target as a test, on every toolchain.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::time::Duration;

/// The most processor time for a seed. An optimised target takes milliseconds,
/// and a test is not optimised.
const MOST: Duration = Duration::from_secs(10);

/// Runs a target's body with each of its seeds.
pub(crate) fn each_seed(target: &str, body: fn(&[u8])) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut count = 0;
    for seed in fs::read_dir(seeds.join(target)).unwrap() {
        let path = seed.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let begun = used();
        body(&bytes);
        let took = used().saturating_sub(begun);
        assert!(took < MOST, "{} took {took:?}", path.display());
        count += 1;
    }
    assert!(count >= 4, "the corpus of {target} is there");
}

/// Returns the processor time that this thread has used; none where the system
/// does not say it.
fn used() -> Duration {
    let said = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = said.split(' ').next().and_then(|said| said.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}
