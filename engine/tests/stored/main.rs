//! Later versions can read what is stored today.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod golden;
mod made;
#[path = "../../../fuzz/records.rs"]
mod records;
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

use std::sync::LazyLock;

use made::Dice;
use proptest::prelude::*;
use touchmark_engine::ledger::stored::{
    Unreadable, decode_fact, decode_snapshot, encode_fact, encode_snapshot,
};
use touchmark_engine::{Fact, Files, Record, Stamp, State};

/// Facts of every kind.
static FACTS: LazyLock<Vec<Fact>> = LazyLock::new(|| {
    let fact = |seed| Dice::new(seed).made(&[0x81, 0x82], decode_fact);
    (0..1_000).map(fact).collect()
});

#[test]
fn a_fact_is_read_as_it_was_written() {
    for fact in &*FACTS {
        assert_eq!(decode_fact(&encode_fact(fact.clone())).as_ref(), Ok(fact));
    }
}

proptest! {
    #[test]
    fn a_state_is_read_as_it_was_written(seed: u64, count in 0_u64..80) {
        let mut from = Dice::new(seed);
        let mut state = State::new(from.below(1 << 50), from.below(2) == 1);
        for n in 1..=count {
            let fact = FACTS[from.below(FACTS.len() as u64) as usize].clone();
            state.apply(&Record { n, time: 1_000 + n, fact });
        }
        let paths: Vec<_> = state.paths.keys().cloned().collect();
        let stamp = Stamp {
            inode: 1, size: 70_000, modified: i64::MIN, changed: -1, device: u64::MAX, mount: 3,
        };
        let stamps: Files = paths
            .into_iter()
            .filter(|_| from.below(2) == 1)
            .map(|path| (path, stamp))
            .collect();
        let kept = decode_snapshot(&encode_snapshot(&state, &stamps)).unwrap();
        prop_assert_eq!(kept.state, state);
        prop_assert_eq!(kept.stamps, stamps);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, version in 0_u8..4) {
        let bytes = [&[if version == 0 { 0 } else { 0x80 + version }], &bytes[..]].concat();
        let (fact, snapshot) = (decode_fact(&bytes), decode_snapshot(&bytes));
        if version > 1 {
            let newer = Unreadable::Newer { found: version, known: 1 };
            prop_assert_eq!(fact, Err(newer.clone()));
            prop_assert_eq!(snapshot.map(|_| ()), Err(newer));
        }
    }
}

#[test]
fn bytes_that_are_cut_or_go_on_are_no_record() {
    for (name, bytes) in golden::facts() {
        for length in 0..bytes.len() {
            let cut = decode_fact(&bytes[..length]);
            assert!(
                matches!(cut, Err(Unreadable::Damaged(_))),
                "{name} {length}"
            );
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(decode_fact(&longer).is_err(), "{name}");
    }
    let bytes = golden::snapshot();
    for length in 0..bytes.len() {
        let cut = decode_snapshot(&bytes[..length]);
        assert!(matches!(cut, Err(Unreadable::Damaged(_))), "{length}");
    }
}

#[test]
fn a_field_of_a_later_touchmark_is_passed_over() {
    // `[8, [[path, one more]]]`: the path of `CopyDropped`, and a field that it
    // may get later.
    let bytes = [0x81, 0x82, 0x08, 0x82, 0x41, b'a', 0x05];
    let path = touchmark_proto::RelPath::new(b"a").unwrap();
    assert_eq!(decode_fact(&bytes), Ok(Fact::CopyDropped { path }));
}

#[test]
fn a_kind_that_is_no_longer_recorded_is_read_and_has_no_effect() {
    // How many lines of a version were left, as earlier versions stored it.
    let bytes = *b"\x81\x82\x18\x21\x86\x18\x46\x61s\x43d/a\x01\x19\x01\x2c\x0c";
    let fact = decode_fact(&bytes).unwrap();
    assert_eq!(fact, Fact::Retired);
    let mut state = State::new(1, false);
    state.apply(&Record {
        n: 1,
        time: 1,
        fact,
    });
    assert!(state.paths.is_empty() && state.sessions.is_empty());
    assert_eq!(state.n, 1);
}

#[test]
fn seeds_of_records() {
    seeds::each_seed("records", records::records);
}
