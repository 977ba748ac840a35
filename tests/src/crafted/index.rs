//! Indexes of git.

use std::fs;

use super::{Crafted, put};
use crate::dice::Dice;

/// Returns an index without entries, with these extensions.
fn with(extensions: &[(&[u8; 4], u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = [b"DIRC", &2_u32.to_be_bytes()[..], &0_u32.to_be_bytes()].concat();
    for (name, size, content) in extensions {
        bytes.extend([&name[..], &size.to_be_bytes(), content].concat());
    }
    bytes.extend([0; 20]);
    bytes
}

fn size_of(content: &[u8]) -> u32 {
    u32::try_from(content.len()).expect("a small extension")
}

/// A number at a place where one may be.
fn number(dice: &mut Dice) -> u32 {
    *dice.pick(&[
        0,
        1,
        12,
        4_096,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_fff0,
        u32::MAX,
    ])
}

pub(super) fn deep(crafted: &Crafted, dice: &mut Dice) -> String {
    let depth = *dice.pick(&[1_000, 50_000, 500_000]);
    let trees = b"a\0-1 1\n".repeat(depth);
    put(
        &crafted.of_git("index"),
        with(&[(b"TREE", size_of(&trees), trees)]),
    );
    format!("an index with {depth} trees in each other")
}

pub(super) fn offsets(crafted: &Crafted, dice: &mut Dice) -> String {
    let names = [
        b"IEOT", b"EOIE", b"UNTR", b"FSMN", b"REUC", b"TREE", b"link", b"sdir", b"zzzz",
    ];
    let mut said = Vec::new();
    let mut extensions = Vec::new();
    for _ in 0..=dice.below(3) {
        let name = *dice.pick(&names);
        let content: Vec<u8> = (0..dice.below(40))
            .flat_map(|_| number(dice).to_be_bytes())
            .collect();
        let told = match dice.percent(30) {
            true => number(dice),
            false => size_of(&content),
        };
        said.push(String::from_utf8_lossy(name).into_owned());
        extensions.push((name, told, content));
    }
    put(&crafted.of_git("index"), with(&extensions));
    format!("an index with {}", said.join(", "))
}

pub(super) fn damaged(crafted: &Crafted, dice: &mut Dice) -> String {
    let path = crafted.of_git("index");
    let mut bytes = fs::read(&path).unwrap_or_default();
    for _ in 0..=dice.below(8) {
        if bytes.is_empty() {
            break;
        }
        let at = dice.index(bytes.len());
        match dice.below(4) {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << dice.below(8),
            2 => bytes.extend_from_within(at..),
            _ => {
                let at = at & !3;
                let end = (at + 4).min(bytes.len());
                let number = number(dice).to_be_bytes();
                bytes[at..end].copy_from_slice(&number[..end - at]);
            }
        }
    }
    put(&path, bytes);
    "a damaged index".into()
}

/// Version 4 stores a name without what it has in common with the one before.
pub(super) fn large(crafted: &Crafted, dice: &mut Dice) -> String {
    let (count, long): (u32, usize) = *dice.pick(&[(30_000, 4_000), (600_000, 120), (1 << 20, 30)]);
    put(&crafted.of_git("index"), many(count, long));
    format!("an index of {count} names of {long} bytes")
}

/// Returns an index with many entries, whose names are long.
pub(super) fn many(count: u32, long: usize) -> Vec<u8> {
    let mut bytes = [b"DIRC", &4_u32.to_be_bytes()[..], &count.to_be_bytes()].concat();
    let begin = vec![b'n'; long];
    for n in 0..count {
        bytes.extend([0; 24]);
        bytes.extend(0o100_644_u32.to_be_bytes());
        bytes.extend([0; 32]);
        bytes.extend(0x0fff_u16.to_be_bytes());
        match n {
            0 => bytes.extend([&[0][..], &begin].concat()),
            _ => bytes.push(7),
        }
        bytes.extend(format!("{n:07}\0").as_bytes());
    }
    bytes.extend([0; 20]);
    bytes
}

pub(super) fn split(crafted: &Crafted, dice: &mut Dice) -> String {
    let link = [vec![0x11; 20], vec![0xff; dice.index(64)]].concat();
    put(
        &crafted.of_git("index"),
        with(&[(b"link", size_of(&link), link)]),
    );
    let shared = crafted.of_git(&format!("sharedindex.{}", "11".repeat(20)));
    super::places::replace(&shared, dice);
    "a split index".into()
}
