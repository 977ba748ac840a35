#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode};
use sha2::{Digest as _, Sha256};
use touchmark_engine::patterns::{Patterns, SECRETS};
use touchmark_engine::{Found, ReadOrder};
use touchmark_proto::{Hash, RelPath};

use super::{Looked, MAX_BYTES, Reader, Report, beneath};

struct World {
    base: tempfile::TempDir,
    reader: Reader,
}

impl World {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap().join("w");
        fs::create_dir(&root).unwrap();
        let exclude = Patterns::new(SECRETS.iter().copied()).unwrap();
        let reader = Reader::new(&root, exclude, 1000, MAX_BYTES);
        Self { base, reader }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.base
            .path()
            .canonicalize()
            .unwrap()
            .join("w")
            .join(path)
    }

    fn read(&self, path: &str) -> Report {
        self.reader.read(&order(path))
    }

    fn found(&self, path: &str) -> Found {
        self.read(path).outcome.found
    }
}

fn order(path: &str) -> ReadOrder {
    ReadOrder::of(RelPath::new(path.as_bytes()).unwrap())
}

fn sha(bytes: &[u8]) -> Hash {
    Hash(Sha256::digest(bytes).into())
}

fn content(found: Found) -> touchmark_engine::Content {
    match found {
        Found::File(content) => content,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_is_hashed_and_its_lines_counted() {
    let world = World::new();
    for (text, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)] {
        fs::write(world.at("f"), text).unwrap();
        let found = content(world.found("f"));
        assert_eq!(found.hash, sha(text.as_bytes()), "{text:?}");
        assert_eq!(found.lines, lines, "{text:?}");
        assert_eq!(found.size, text.len() as u64);
        assert!(found.mtime_ms > 0);
    }
    assert_eq!(world.found("none"), Found::Absent);
    assert_eq!(world.found("f/below"), Found::Absent);
    let order = order("f");
    let looked = |most| world.reader.visit().read_up_to(most, &order);
    assert!(matches!(looked(1), Looked::Larger(2)));
    assert!(matches!(looked(2), Looked::Read(_)));
}

#[test]
fn prefixes_are_hashed_on_the_way() {
    let world = World::new();
    let bytes: Vec<u8> = (0..400_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(world.at("f"), &bytes).unwrap();
    let size = bytes.len() as u64;
    let mut order = order("f");
    order.prefixes = vec![131_072, 0, 1, size, 131_073, 1, size + 1, 999_999];
    let outcome = world.reader.read(&order).outcome;
    assert_eq!(content(outcome.found).hash, sha(&bytes));
    let expected: Vec<_> = [0, 1, 131_072, 131_073, 999_999, size]
        .into_iter()
        .map(|length| (length, sha(&bytes[..length as usize])))
        .collect();
    assert_eq!(outcome.prefixes, expected);

    fs::write(world.at("f"), "").unwrap();
    let outcome = world.reader.read(&order).outcome;
    assert_eq!(outcome.prefixes, [(0, sha(b""))]);
}

#[test]
fn bytes_are_kept_within_the_caps_and_never_of_secrets() {
    let world = World::new();
    let read = |path: &str, size: usize| {
        fs::write(world.at(path), vec![b'x'; size]).unwrap();
        let mut order = order(path);
        (order.bytes, order.keep) = (true, true);
        world.reader.read(&order)
    };
    let small = read("f", 1000);
    assert_eq!(small.keep.as_deref().map(<[u8]>::len), Some(1000));
    assert_eq!(small.outcome.bytes, small.keep);
    let large = read("f", 1001);
    assert_eq!(large.keep, None);
    assert!(large.outcome.bytes.is_some());
    fs::create_dir(world.at("d")).unwrap();
    for secret in [".env", ".env.local", "d/x.pem", "d/id_rsa", "x.KEY"] {
        let report = read(secret, 10);
        assert_eq!(report.keep, None, "{secret}");
        assert!(report.outcome.bytes.is_some(), "{secret}");
    }
    // A secret is not stored under a harmless name either.
    symlink(".env", world.at("innocent")).unwrap();
    let mut order = order("innocent");
    order.keep = true;
    assert_eq!(world.reader.read(&order).keep, None);
}

#[test]
fn more_bytes_than_the_limit_are_not_handed_out() {
    let world = World::new();
    let exclude = Patterns::new([]).unwrap();
    let reader = Reader::new(&world.at(""), exclude, 1000, 10);
    fs::write(world.at("f"), "0123456789a").unwrap();
    let mut order = order("f");
    order.bytes = true;
    let outcome = reader.read(&order).outcome;
    assert_eq!(outcome.bytes, None);
    assert_eq!(content(outcome.found).size, 11);
}

#[test]
fn symlinks_lead_anywhere_inside_and_nowhere_outside() {
    let world = World::new();
    fs::create_dir(world.at("d")).unwrap();
    fs::write(world.at("d/f"), "in").unwrap();
    fs::write(world.base.path().join("secret"), "out").unwrap();
    let link = |target: &Path, name: &str| symlink(target, world.at(name)).unwrap();
    link(Path::new("d/f"), "relative");
    link(Path::new("d"), "dir");
    link(&world.at("d/f"), "absolute");
    link(Path::new("../w/d/f"), "around");
    link(Path::new("../secret"), "up");
    link(&world.base.path().join("secret"), "out");
    link(world.base.path(), "above");
    link(Path::new("/proc/self/root"), "magic");
    link(Path::new("nowhere"), "dangling");
    link(Path::new("circle"), "circle");
    let real = Some(RelPath::new(b"d/f").unwrap());
    for name in ["relative", "dir/f", "absolute", "around"] {
        let report = world.read(name);
        assert_eq!(content(report.outcome.found).hash, sha(b"in"), "{name}");
        assert_eq!(report.outcome.real, real, "{name}");
    }
    assert_eq!(world.read("d/f").outcome.real, None);
    for name in ["up", "out", "above/secret", "magic/etc/passwd"] {
        assert_eq!(world.found(name), Found::Outside, "{name}");
    }
    for name in ["dangling", "circle", "dir/none"] {
        assert_eq!(world.found(name), Found::Absent, "{name}");
    }
}

#[test]
fn resolution_by_hand_answers_as_the_kernel_does() {
    let world = World::new();
    fs::create_dir_all(world.at("d/e")).unwrap();
    fs::write(world.at("d/e/f"), "in").unwrap();
    symlink("d", world.at("l")).unwrap();
    symlink("/etc", world.at("out")).unwrap();
    let root = world.at("");
    let top = rustix::fs::open(&root, rustix::fs::OFlags::PATH, Mode::empty()).unwrap();
    let by_hand = |path: &[u8]| beneath::by_hand(&top, &root, &RelPath::new(path).unwrap());
    assert!(matches!(
        by_hand(b"l/e/f"),
        beneath::Opened::File { real: Some(real), .. } if real.as_bytes() == b"d/e/f"
    ));
    assert!(matches!(
        by_hand(b"d/e/f"),
        beneath::Opened::File { real: None, .. }
    ));
    assert!(matches!(by_hand(b"out/passwd"), beneath::Opened::Outside));
    assert!(matches!(by_hand(b"d/none"), beneath::Opened::Absent { .. }));
    assert!(matches!(
        by_hand(b"d/e"),
        beneath::Opened::NotAFile("directory")
    ));
}

#[test]
fn what_is_no_file_is_refused_without_opening_it() {
    let world = World::new();
    fs::create_dir(world.at("d")).unwrap();
    rustix::fs::mknodat(
        CWD,
        world.at("p"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.at("s")).unwrap();
    symlink("p", world.at("to-p")).unwrap();
    let kind = |path: &str| match world.found(path) {
        Found::NotAFile { file_type } => file_type,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind("d"), "directory");
    assert_eq!(kind("p"), "fifo");
    assert_eq!(kind("to-p"), "fifo");
    assert_eq!(kind("s"), "socket");
    // Had the FIFO been opened for reading, this open would succeed.
    let writer = rustix::fs::open(
        world.at("p"),
        rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK,
        Mode::empty(),
    );
    assert_eq!(writer.err(), Some(rustix::io::Errno::NXIO));
}

#[test]
fn what_may_not_be_read_is_unreadable() {
    if rustix::process::geteuid().is_root() {
        return; // root may read everything
    }
    let world = World::new();
    fs::write(world.at("f"), "x").unwrap();
    fs::set_permissions(world.at("f"), fs::Permissions::from_mode(0o000)).unwrap();
    assert!(matches!(world.found("f"), Found::Unreadable { .. }));
}

#[test]
fn a_size_that_does_not_hold_is_no_hash() {
    let world = World::new();
    fs::write(world.at("f"), "12345").unwrap();
    let hash = |size| {
        let mut file = fs::File::open(world.at("f")).unwrap();
        super::hash(&mut file, size, &[], None, &|| true).unwrap()
    };
    assert!(hash(4).is_none(), "it grew");
    assert!(hash(6).is_none(), "it shrank");
    assert_eq!(hash(5).map(|read| read.hash), Some(sha(b"12345")));
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_never_holds_still_is_unstable() {
    // procfs reports the size 0 for this file, and reading it returns bytes, at
    // every attempt.
    let root = Path::new("/proc/self").canonicalize().unwrap();
    let reader = Reader::new(&root, Patterns::new([]).unwrap(), 1000, MAX_BYTES);
    let report = reader.read(&order("status"));
    assert_eq!(report.outcome.found, Found::Unstable { size: 0 });
}

#[test]
fn a_file_that_grows_without_pause_ends_as_unstable_or_whole() {
    let world = World::new();
    let path = world.at("log");
    fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let stop = stop.clone();
        move || {
            use std::io::Write as _;
            let mut file = fs::File::options().append(true).open(path).unwrap();
            for _ in 0..1_000_000 {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                file.write_all(b"x").unwrap();
            }
        }
    });
    let report = world.read("log");
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    match report.outcome.found {
        Found::File(content) => {
            assert_eq!(content.hash, sha(&vec![b'x'; content.size as usize]));
        }
        Found::Unstable { size } => assert!(size >= 1 << 20),
        other => panic!("{other:?}"),
    }
}

#[test]
fn links_are_counted() {
    let world = World::new();
    fs::write(world.at("f"), "x").unwrap();
    assert_eq!(world.read("f").outcome.object, None);
    fs::hard_link(world.at("f"), world.at("g")).unwrap();
    assert!(world.read("f").outcome.object.is_some());
}
