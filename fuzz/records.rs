//! The body of the fuzz target `records`: stored facts and a stored state, as
//! the store finds them where its checksums agree. A stable test runs the seeds
//! through it (`engine/tests/stored/main.rs`).
#![allow(clippy::unwrap_used)]

use touchmark_engine::ledger::stored::{
    decode_fact, decode_snapshot, encode_fact, encode_snapshot,
};
use touchmark_engine::{Files, Record, State};

/// Reads the bytes as a state, or as a list of facts, each with its length
/// before it, which are folded into a state. Nothing may panic. What is read is
/// stored again and read as the same.
pub(crate) fn records(bytes: &[u8]) {
    if let Ok(saved) = decode_snapshot(bytes) {
        let again = encode_snapshot(&saved.state, &saved.stamps);
        assert_eq!(decode_snapshot(&again).unwrap(), saved);
        // Names in it are stored once or more often, and nothing else twice.
        assert!(again.len() <= 64 * bytes.len() + 256, "{}", again.len());
    }
    let mut state = State::new(1, false);
    let mut rest = bytes;
    while let Some(([high, low], after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some((body, after)) = after.split_at_checked(length) else {
            break;
        };
        rest = after;
        let Ok(fact) = decode_fact(body) else {
            continue;
        };
        assert_eq!(decode_fact(&encode_fact(fact.clone())).as_ref(), Ok(&fact));
        let n = state.n + 1;
        state.apply(&Record { n, time: n, fact });
    }
    if state.n > 0 {
        let stored = encode_snapshot(&state, &Files::default());
        assert_eq!(decode_snapshot(&stored).unwrap().state, state);
    }
}
