//! Everything that was ever stored can be read, and is stored as it was.
//!
//! `tests/golden/v1/facts.txt` has a line for each example: its name, and
//! its bytes in hex. `facts.read.txt` has what is read from the bytes of that
//! name. `snapshot.txt` is a whole state. Lines of bytes are never changed.
//!
//! A new kind of fact, and a new field of a kind, need an example.
//! `TOUCHMARK_BLESS=1 cargo test -p touchmark-engine --test stored` adds one
//! that has all fields. It also writes `facts.read.txt`, whose lines change with
//! the names of types and fields: look at the difference.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::*;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"))
}

/// Returns the lines of a file, by the names that they begin with.
fn lines(name: &str) -> BTreeMap<String, String> {
    let text = fs::read_to_string(file(name)).unwrap_or_default();
    let lines = text.lines().map(|line| line.split_once(' ').unwrap());
    lines
        .map(|(name, rest)| (name.to_owned(), rest.to_owned()))
        .collect()
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

/// Returns the stored examples by their names.
pub(crate) fn facts() -> BTreeMap<String, Vec<u8>> {
    let lines = lines("v1/facts").into_iter();
    lines.map(|(name, hex)| (name, bytes(&hex))).collect()
}

pub(crate) fn snapshot() -> Vec<u8> {
    bytes(&fs::read_to_string(file("v1/snapshot")).unwrap())
}

/// Returns which field of which kind of fact stored bytes have last, and not as
/// null. After the format there is a list of the kind and the list of its fields.
fn last_field(bytes: &[u8]) -> (u64, u64) {
    let mut from = minicbor::Decoder::new(&bytes[1..]);
    from.array().unwrap();
    (from.u64().unwrap(), from.array().unwrap().unwrap())
}

#[test]
fn every_fact_ever_stored_is_read() {
    let name = "v1/facts.read";
    if std::env::var_os("TOUCHMARK_BLESS").is_some() {
        let read = facts().into_iter();
        let read = read.map(|(name, bytes)| format!("{name} {:?}\n", decode_fact(&bytes).unwrap()));
        fs::write(file(name), read.collect::<String>()).unwrap();
    }
    let read = lines(name);
    let stored = facts();
    for (name, bytes) in &stored {
        let fact = format!("{:?}", decode_fact(bytes).unwrap());
        assert_eq!(fact, read[name], "{name}");
    }
    assert!(stored.len() >= 45, "there are {}", stored.len());
}

#[test]
fn every_fact_is_stored_as_it_was() {
    let stored = facts();
    for (name, bytes) in &stored {
        let again = encode_fact(decode_fact(bytes).unwrap());
        assert_eq!(hex(&again), hex(bytes), "{name}");
    }
    let mut examples: BTreeMap<u64, u64> = BTreeMap::new();
    for (kind, fields) in stored.values().map(|bytes| last_field(bytes)) {
        let known = examples.entry(kind).or_default();
        *known = fields.max(*known);
    }
    for made in &*FACTS {
        let made = encode_fact(made.clone());
        let (kind, field) = last_field(&made);
        let known = examples.get(&kind).copied().unwrap_or_default();
        if field > known && std::env::var_os("TOUCHMARK_BLESS").is_some() {
            let mut lines = fs::read_to_string(file("v1/facts")).unwrap();
            lines.push_str(&format!("kind-{kind}-field-{field} {}\n", hex(&made)));
            fs::write(file("v1/facts"), lines).unwrap();
            examples.insert(kind, field);
        } else {
            assert!(
                field <= known,
                "no example of kind {kind} has field {field}"
            );
        }
    }
    assert!(examples.keys().copied().eq(0..examples.len() as u64));
}

#[test]
fn every_snapshot_ever_stored_is_read() {
    let saved = decode_snapshot(&snapshot()).unwrap();
    let of_d = touchmark_proto::RelPath::new(b"d/a").unwrap();
    let stamp = saved.stamps.of(&of_d).unwrap();
    assert_eq!(stamp.modified, 1_700_000_000_123_456_789);
    assert_eq!(encode_snapshot(&saved.state, &saved.stamps), snapshot());
    let state = saved.state;
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
