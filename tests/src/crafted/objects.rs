//! Objects, packs and references.

use std::fs;

use super::{Crafted, put};
use crate::dice::Dice;

/// Bits in the order of a compressed stream.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    /// Adds the lowest bits of a code, the highest of them first.
    fn code(&mut self, code: u32, bits: u32) {
        for at in (0..bits).rev() {
            if self.count.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let bit = u8::try_from(code >> at & 1).expect("a bit");
            *self.bytes.last_mut().expect("a byte") |= bit << (self.count % 8);
            self.count += 1;
        }
    }
}

/// Returns bytes and this many zeros after them, as zlib compresses them. A
/// run of 258 zeros takes 13 bits.
fn compressed(bytes: &[u8], zeros: usize) -> Vec<u8> {
    let mut out = vec![0x78, 1];
    for part in bytes.chunks(0xffff) {
        let length = u16::try_from(part.len()).expect("a short part");
        out.push(0);
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(part);
    }
    let mut bits = Bits::default();
    // The last block, with fixed codes.
    bits.code(0b110, 3);
    let runs = zeros.saturating_sub(1) / 258;
    if zeros > 0 {
        bits.code(0b0011_0000, 8);
    }
    for _ in 0..runs {
        bits.code(0b1100_0101, 8);
        bits.code(0, 5);
    }
    bits.code(0, 7);
    out.extend(bits.bytes);
    let zeros = if zeros > 0 { 1 + runs * 258 } else { 0 };
    let (mut one, mut two): (usize, usize) = (1, 0);
    for byte in bytes {
        one = (one + usize::from(*byte)) % 65_521;
        two = (two + one) % 65_521;
    }
    two = (two + one * (zeros % 65_521)) % 65_521;
    let sum = u32::try_from(two << 16 | one).expect("a checksum");
    out.extend(sum.to_be_bytes());
    out
}

/// Writes a file for an object with this id.
fn plant(crafted: &Crafted, id: &str, content: &[u8], zeros: usize) {
    let (directory, name) = id.split_at(2);
    let path = crafted.of_git("objects").join(directory).join(name);
    put(&path, compressed(content, zeros));
}

pub(super) fn lie(crafted: &Crafted, dice: &mut Dice) -> String {
    let id = dice.pick(&crafted.ids).clone();
    let head = *dice.pick(&[
        "blob 151",
        "blob 0",
        "blob 99999999999999999999",
        "blob 18446744073709551615",
        "blob -1",
        "blob 9223372036854775807",
        "tree 151",
        "commit 151",
        "tag 151",
        "blub 151",
        "blob",
        "",
    ]);
    let zeros = dice.index(1 << 20);
    plant(crafted, &id, format!("{head}\0").as_bytes(), zeros);
    format!("an object that says it is {head:?} and is {zeros} bytes")
}

pub(super) fn bomb(crafted: &Crafted, dice: &mut Dice) -> String {
    let id = dice.pick(&crafted.ids).clone();
    let kind = *dice.pick(&["blob", "blob", "tree", "commit", "tag"]);
    let mebibytes = *dice.pick(&[65, 300, 1_024]);
    let size = 1 + ((mebibytes << 20) - 1) / 258 * 258;
    plant(crafted, &id, format!("{kind} {size}\0").as_bytes(), size);
    format!("a {kind} of {mebibytes} MiB")
}

/// Objects that are their own parents or contents.
pub(super) fn circle(crafted: &Crafted, dice: &mut Dice) -> String {
    let (commit, tree, tag) = ("11".repeat(20), "22".repeat(20), "33".repeat(20));
    let who = "A <a@b> 1700000000 +0000";
    let parents = format!("parent {commit}\n").repeat(*dice.pick(&[1, 3, 100_000]));
    let content = format!("tree {tree}\n{parents}author {who}\ncommitter {who}\n\nx\n");
    let object = |kind: &str, content: &[u8]| {
        let head = format!("{kind} {}\0", content.len());
        [head.as_bytes(), content].concat()
    };
    plant(crafted, &commit, &object("commit", content.as_bytes()), 0);
    let mut entries = [b"40000 a\0".to_vec(), vec![0x22; 20]].concat();
    for name in ["a.txt", "b.txt", "c"] {
        entries.extend([format!("40000 {name}\0").as_bytes(), &[0x22; 20]].concat());
    }
    plant(crafted, &tree, &object("tree", &entries), 0);
    let content = format!("object {tag}\ntype tag\ntag x\ntagger {who}\n\nx\n");
    plant(crafted, &tag, &object("tag", content.as_bytes()), 0);
    let target = match dice.percent(80) {
        true => commit,
        false => tag,
    };
    for name in ["heads/main", "stash", "notes/ai"] {
        if name == "heads/main" || dice.percent(50) {
            put(&crafted.of_git("refs").join(name), format!("{target}\n"));
        }
    }
    format!("objects that contain themselves, {target:.2}")
}

pub(super) fn packs(crafted: &Crafted, dice: &mut Dice) -> String {
    crafted.git(&["repack", "-q", "-a", "-d", "-f", "--write-bitmap-index"]);
    crafted.git(&["multi-pack-index", "write"]);
    crafted.git(&["commit-graph", "write", "--reachable"]);
    crafted.git(&["pack-refs", "--all"]);
    let step = 1 + dice.index(60);
    let byte = *dice.pick(&[0, 1, 0x7f, 0x80, 0xff]);
    let begin = *dice.pick(&[0, 8, 8, 1_032]);
    for directory in ["objects/pack", "objects/info"] {
        let entries = fs::read_dir(crafted.of_git(directory));
        for entry in entries.into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                continue;
            }
            let mut bytes = fs::read(entry.path()).unwrap_or_default();
            for at in (begin..bytes.len()).step_by(step) {
                bytes[at] = byte;
            }
            put(&entry.path(), bytes);
        }
    }
    format!("packs whose {step}th bytes from {begin} on are {byte}")
}

pub(super) fn alternates(crafted: &Crafted, dice: &mut Dice) -> String {
    let all = "../objects\n/\n/dev\n/proc/self\n../../objects/../objects\n.\n#\n\n";
    let (what, list) = match dice.below(3) {
        0 => ("in a circle", all.to_owned()),
        1 => (
            "that are many",
            (0..30_000).fold(String::new(), |list, n| list + &format!("{n:x}\n")),
        ),
        _ => {
            let other = crafted.world.path("other");
            let text = format!("{}\n", crafted.of_git("objects").display());
            put(&other.join("info/alternates"), text);
            super::places::replace(&other.join("pack/pack-2.idx"), dice);
            ("of each other", format!("{}\n{all}", other.display()))
        }
    };
    put(&crafted.of_git("objects/info/alternates"), list);
    format!("alternates {what}")
}

pub(super) fn references(crafted: &Crafted, dice: &mut Dice) -> String {
    let refs = crafted.of_git("refs");
    let count = *dice.pick(&[1, 6, 3_000]);
    for n in 0..count {
        let next = if n + 1 == count { 0 } else { n + 1 };
        let text = format!("ref: refs/heads/x{next}\n");
        put(&refs.join(format!("heads/x{n}")), text);
    }
    put(&refs.join("heads/main"), "ref: refs/heads/x0\n");
    if dice.percent(50) {
        let id = "1".repeat(40);
        let packed: String = (0..100_000)
            .map(|n| format!("{id} refs/heads/{}\n", n % 5_000))
            .collect();
        put(&crafted.of_git("packed-refs"), packed);
    }
    format!("{count} references in a circle")
}

pub(super) fn log(crafted: &Crafted, dice: &mut Dice) -> String {
    let count = *dice.pick(&[1_000, 100_000]);
    let times = [0, 1_700_000_000, u64::MAX];
    let mut text = String::new();
    let why = *dice.pick(&[
        "commit: x",
        "rebase (pick): x",
        "checkout: moving from a to b",
    ]);
    for n in 0..count {
        let time = dice.pick(&times);
        text += &format!("{:040x} {:040x} A <a@b> {time} +0000\t{why}\n", n, n + 1);
    }
    for name in ["logs/HEAD", "logs/refs/stash"] {
        put(&crafted.of_git(name), &text);
    }
    format!("logs of {count} moves {why:?}")
}

pub(super) fn notes(crafted: &Crafted, dice: &mut Dice) -> String {
    let braces = "[".repeat(100_000);
    let many: String = (0..20_000)
        .map(|n| format!("f{n}\n  x 1-4294967295\n"))
        .collect();
    let note = dice.pick(&[braces, many]).clone();
    let file = crafted.world.outside().join("note");
    put(&file, format!("c.txt\n  x 1-3\n---\n{note}"));
    let file = file.to_string_lossy().into_owned();
    crafted.git(&["notes", "--ref=ai", "add", "-f", "-F", &file, "HEAD"]);
    "a note that is none".into()
}
