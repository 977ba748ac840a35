#![allow(clippy::unwrap_used, clippy::panic)]
use std::fs;
use std::process::Command;

use touchmark_tests::dice::Dice;

use super::*;

fn parse(bytes: &[u8]) -> Option<GitIndex> {
    GitIndex::parse(std::io::Cursor::new(bytes), bytes.len() as u64)
}

fn git(directory: &Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.current_dir(directory).args(args);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null");
    git.env("GIT_CONFIG_NOSYSTEM", "1");
    let output = git.output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
}

/// Returns indexes that git wrote, in each of its formats, each with the number
/// of its entries.
fn real() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for (format, version) in [("sha1", "2"), ("sha1", "3"), ("sha1", "4"), ("sha256", "4")] {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        let object_format = format!("--object-format={format}");
        git(top, &["init", "-q", &object_format]);
        for name in ["a", "deep/er/b", "deep/er/b.txt", "deep/f", "z"] {
            fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
            fs::write(top.join(name), name).unwrap();
        }
        let long = "n".repeat(200);
        fs::write(top.join(&long), "long").unwrap();
        git(top, &["add", "."]);
        if version != "2" {
            git(top, &["update-index", "--skip-worktree", "z"]);
        }
        git(top, &["write-tree"]);
        git(
            top,
            &[
                "update-index",
                "--untracked-cache",
                "--index-version",
                version,
            ],
        );
        git(top, &["status"]);
        let bytes = fs::read(top.join(".git/index")).unwrap();
        assert_eq!(bytes[7].to_string(), version, "{format}");
        all.push((format!("{format} {version}"), bytes));
    }
    all
}

#[test]
fn each_format_of_git_is_read() {
    for (format, bytes) in real() {
        let index = parse(&bytes).unwrap_or_else(|| panic!("{format}"));
        assert_eq!(index.entries.len(), 6, "{format}");
        let names: Vec<&[u8]> = index.entries.iter().map(|one| index.name(one)).collect();
        assert_eq!(names[..3], [&b"a"[..], b"deep/er/b", b"deep/er/b.txt"]);
        assert_eq!(names[4].len(), 200);
        let entry = index.entry_of(b"deep/f").unwrap();
        assert_eq!((entry.mode, entry.size), (0o100_644, 6));
        assert!(entry.is_plain() && entry.modified.0 > 0);
        assert_eq!(
            index.entry_of(b"z").unwrap().is_plain(),
            format.ends_with('2')
        );
        assert!(index.entry_of(b"deep").is_none() && index.entry_of(b"zz").is_none());
        assert!(index.has_below(b"deep/er/") && !index.has_below(b"a/"));
    }
    // The id of the content `deep/f`, as git computes it.
    let (_, bytes) = real().swap_remove(0);
    let id = parse(&bytes).unwrap().entry_of(b"deep/f").unwrap().id;
    assert_eq!(
        id.digits(),
        "f627f85383ffa94613ee75f07f6feb83e0785c71".to_owned()
    );
}

/// The indexes that made another reader panic or overflow its stack, and
/// others that ask for more than they have.
#[test]
fn what_git_would_not_write_is_refused_or_skipped() {
    let with = |count: u32, rest: &[u8]| {
        let head = [b"DIRC", &2_u32.to_be_bytes()[..], &count.to_be_bytes()].concat();
        [&head, rest, &[0; 20]].concat()
    };
    let extension =
        |name: &[u8; 4], size: u32, bytes: &[u8]| [name, &size.to_be_bytes()[..], bytes].concat();
    // A tree in a tree, 200,000 times.
    let deep = b"a\0-1 1\n".repeat(200_000);
    let size = u32::try_from(deep.len()).unwrap();
    assert!(parse(&with(0, &extension(b"TREE", size, &deep))).is_some());
    // The offset of an entry beyond the end.
    let offset = [1_u32, 0xffff_fff0, 1].map(u32::to_be_bytes).concat();
    assert!(parse(&with(0, &extension(b"IEOT", 12, &offset))).is_some());
    assert!(parse(&with(0, &extension(b"TREE", u32::MAX, &[]))).is_none());
    assert!(parse(&with(0, &extension(b"link", 0, &[]))).is_none());
    assert!(parse(&with(u32::MAX, &[])).is_none());
    assert!(parse(&with(1, &[0; 61])).is_none());
    for short in 0..20 {
        assert!(parse(&vec![0; short]).is_none());
    }
}

/// Version 4 repeats what a name has in common with the one before it. A small
/// file could name gigabytes.
#[test]
fn names_cannot_grow_without_limit() {
    let mut bytes = [
        b"DIRC",
        &4_u32.to_be_bytes()[..],
        &100_000_u32.to_be_bytes(),
    ]
    .concat();
    for n in 0_u32..100_000 {
        bytes.extend([0; 60]);
        bytes.extend(0x0fff_u16.to_be_bytes());
        let name = match n {
            0 => [&vec![b'a'; 4_000][..], b"0000000\0"].concat(),
            _ => format!("{n:07}\0").into_bytes(),
        };
        bytes.push(if n == 0 { 0 } else { 7 });
        bytes.extend(name);
    }
    bytes.extend([0; 20]);
    assert!(parse(&bytes).is_none());
}

#[test]
fn a_thousand_damaged_indexes_are_read_or_refused() {
    let mut read = 0;
    for (format, whole) in real() {
        let mut dice = Dice::new(33, &format);
        for _ in 0..250 {
            let mut bytes = whole.clone();
            for _ in 0..=dice.below(4) {
                let at = dice.index(bytes.len());
                match dice.below(6) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes[at] ^= 1 << dice.below(8),
                    2 => bytes[at] = 0xff,
                    3 => bytes[at] = 0,
                    4 => {
                        let part = bytes[at..].to_vec();
                        bytes.extend(part);
                    }
                    // A number at a place where one may be.
                    _ => {
                        let at = at & !3;
                        let number = *dice.pick(&[0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX]);
                        let end = (at + 4).min(bytes.len());
                        bytes[at..end].copy_from_slice(&number.to_be_bytes()[..end - at]);
                    }
                }
            }
            let Some(index) = parse(&bytes) else {
                continue;
            };
            read += 1;
            for name in [&b"a"[..], b"deep/f", b"zzz", b""] {
                let _any = (index.entry_of(name), index.has_below(name));
            }
        }
    }
    // Most damage is in what proves nothing, or is noticed.
    assert!((100..900).contains(&read), "{read}");
}

/// Any number of directories may name one repository, whose index is large.
#[test]
fn indexes_cannot_take_memory_without_limit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let (_, whole) = real().swap_remove(0);
    fs::write(&path, whole).unwrap();
    let taken = Held::of(MOST_HELD - 1_000);
    let mut all = Vec::new();
    let error = loop {
        match GitIndex::read(&path) {
            Ok(index) => all.push(index),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
    drop(taken);
    assert!(all.len() < 3 && GitIndex::read(&path).is_ok());
}
