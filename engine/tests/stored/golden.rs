//! Everything that was ever stored can be read.
//!
//! `tests/golden/v<format>/facts.txt` has a line for each record: its name in
//! `examples.rs`, and its bytes in hex. `snapshot.txt` is a whole state. The
//! files of format 0 were written by the last touchmark that had no format.
//! Lines are never changed. `TOUCHMARK_BLESS=1 cargo test -p touchmark-engine
//! --test stored` adds the examples that are missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::*;

fn file(format: u8, name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v{format}/{name}.txt"))
}

fn bytes(hex: &str) -> Vec<u8> {
    let hex: String = hex.split_whitespace().collect();
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn stored_facts(format: u8) -> BTreeMap<String, Vec<u8>> {
    let text = fs::read_to_string(file(format, "facts")).unwrap_or_default();
    let lines = text.lines().map(|line| line.split_once(' ').unwrap());
    lines
        .map(|(name, hex)| (name.to_owned(), bytes(hex)))
        .collect()
}

fn stored_snapshot(format: u8) -> Vec<u8> {
    bytes(&fs::read_to_string(file(format, "snapshot")).unwrap())
}

fn bless() {
    let missing = stored_facts(1);
    let mut lines = fs::read_to_string(file(1, "facts")).unwrap_or_default();
    for (name, fact) in examples::facts() {
        if !missing.contains_key(name) {
            lines.push_str(&format!("{name} {}\n", hex(&encode_fact(fact))));
        }
    }
    fs::write(file(1, "facts"), lines).unwrap();
    if !file(1, "snapshot").exists() {
        let bytes = encode_snapshot(&examples::state(), &examples::stamps());
        let hex = hex(&bytes);
        let lines = hex.as_bytes().chunks(120);
        let lines: Vec<_> = lines
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        fs::write(file(1, "snapshot"), lines.join("\n") + "\n").unwrap();
    }
}

#[test]
fn every_fact_ever_stored_is_read() {
    if std::env::var_os("TOUCHMARK_BLESS").is_some() {
        bless();
    }
    let examples: BTreeMap<_, _> = examples::facts().into_iter().collect();
    for format in [0, 1] {
        let stored = stored_facts(format);
        for (name, bytes) in &stored {
            let fact = examples.get(name.as_str()).expect(name);
            assert_eq!(decode_fact(bytes).as_ref(), Ok(fact), "v{format} {name}");
        }
        assert!(stored.len() >= 45, "v{format} has {}", stored.len());
    }
}

#[test]
fn every_fact_is_stored_as_it_was() {
    let stored = stored_facts(1);
    let kinds: BTreeSet<u8> = examples::facts()
        .iter()
        .map(|(_, fact)| examples::number(fact))
        .collect();
    assert!(kinds.into_iter().eq(0..examples::KINDS));
    for (name, fact) in examples::facts() {
        let bytes = stored.get(name);
        let bytes = bytes.unwrap_or_else(|| panic!("bless, so that {name} is kept"));
        // The bytes are: the format, an array of two items, the kind.
        let kind = match bytes[2] {
            0x18 => bytes[3],
            small => small,
        };
        assert_eq!(kind, examples::number(&fact), "{name}");
        assert_eq!(hex(&encode_fact(fact)), hex(bytes), "{name}");
    }
}

#[test]
fn every_snapshot_ever_stored_is_read() {
    let [old, new] = [0, 1].map(|format| decode_snapshot(&stored_snapshot(format)).unwrap());
    assert_eq!(old.state, new.state);
    // Stats of format 0 prove nothing any more (FILE-5).
    assert_eq!(old.stamps, Files::default());
    assert_eq!(new.stamps, examples::stamps());
    assert_eq!(encode_snapshot(&new.state, &new.stamps), stored_snapshot(1));
    let state = new.state;
    assert_eq!((state.epoch, state.after_loss), (1_700_000_000_000, true));
    let [a, of_d] = ["a", "d/a"].map(|name| {
        let path = touchmark_proto::RelPath::new(name.as_bytes()).unwrap();
        state.paths.get(&path).unwrap()
    });
    assert_eq!((of_d.held.size, of_d.versions.len()), (70_000, 0));
    assert_eq!(a.versions[0].author(), touchmark_proto::Author::USER);
    assert_eq!(a.holders.iter().count(), 2);
    let session = touchmark_proto::SessionId::new("s").unwrap();
    let session = &state.sessions[&session];
    assert_eq!(session.files.len(), 3);
    assert_eq!(session.memory.checkpoints.len(), 1);
    assert_eq!(session.memory.calls.len(), 3);
    assert_eq!(session.memory.savings.bytes_not_sent, 70_000);
    assert_eq!((state.edits.len(), state.commands.len()), (2, 1));
}
