//! What a guarded write does to files of every kind, without concurrent writes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod interleaved;
mod replacing;

pub(super) use interleaved::at_step;

use super::place::DEFAULT_LIST;
use super::*;
use crate::content::MAX_BYTES;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use touchmark_engine::patterns::{PROTECTED, SECRETS};
use touchmark_tests::children;

struct World {
    base: tempfile::TempDir,
    guard: Arc<Guard>,
}

fn open(base: &Path) -> Guard {
    let root = base.join("ws").canonicalize().unwrap();
    let reader = Reader::new(
        &root,
        Patterns::new(SECRETS.iter().copied()).unwrap(),
        1 << 20,
        MAX_BYTES,
    );
    let settings = Settings {
        root,
        state: base.join("state"),
        keep: Keep {
            age: 1 << 40,
            bytes: 1 << 30,
            ignored: 1 << 20,
        },
        durable: false,
        writable: true,
        protected: Patterns::new(PROTECTED.iter().copied()).unwrap(),
        contents_total: 4 << 20,
    };
    Guard::open(settings, reader, Timeline::start()).unwrap()
}

impl World {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("ws")).unwrap();
        crate::life::private_directory(&base.path().join("state")).unwrap();
        let guard = Arc::new(open(base.path()));
        Self { base, guard }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.guard.root.join(name)
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        children::unshared(|| fs::write(self.path(name), content)).unwrap();
        self.path(name)
    }

    fn write(&self, name: &str, base: Option<&str>, new: &str) -> WriteOutcome {
        self.guard.write(&order(name, base, new), UMASK)
    }

    fn replacer(&self) -> Replacer {
        Replacer::new(Arc::clone(&self.guard), UMASK, |_| false, |_| None)
    }

    /// Returns the contents of all stored bytes, sorted.
    fn kept(&self) -> Vec<String> {
        let mut kept: Vec<String> = self
            .guard
            .list(None)
            .unwrap()
            .items
            .iter()
            .map(|item| fs::read_to_string(&item.file).unwrap())
            .collect();
        kept.sort();
        kept
    }

    /// Returns the records of writes that are not ended.
    fn intents(&self) -> Vec<String> {
        let files = fs::read_dir(self.base.path().join("state/intents")).unwrap();
        let texts = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
        texts.filter(|text| !text.is_empty()).collect()
    }

    /// Returns the names in the workspace's top directory, sorted.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.guard.root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// The mask of the client's process.
const UMASK: Umask = Umask(0o027);

fn order(name: &str, base: Option<&str>, new: &str) -> WriteOrder {
    WriteOrder {
        path: RelPath::new(name.as_bytes()).unwrap(),
        ticket: 1,
        base: base.map(|base| Hash::of(base.as_bytes())),
        bytes: new.as_bytes().into(),
        hash: Hash::of(new.as_bytes()),
        keep_base: false,
        base_author: None,
        create_directories: false,
    }
}

fn done(way: Way, lease: bool) -> WriteOutcome {
    WriteOutcome::Done {
        guard: way,
        lease,
        recovered: Vec::new(),
    }
}

fn cause(outcome: &WriteOutcome) -> &str {
    match outcome {
        WriteOutcome::Conflict { cause, .. } => cause,
        other => panic!("no conflict: {other:?}"),
    }
}

fn code(outcome: WriteOutcome) -> ErrorCode {
    match outcome {
        WriteOutcome::Failed(error) => error.code,
        other => panic!("no failure: {other:?}"),
    }
}

#[test]
fn the_base_is_replaced_and_nothing_else() {
    let world = World::new();
    let path = world.file("f", "old");
    assert_eq!(
        world.write("f", Some("old"), "new"),
        done(Way::Exchange, true)
    );
    assert_eq!(fs::read(&path).unwrap(), b"new");
    let refused = world.write("f", Some("old"), "newer");
    assert_eq!(
        refused,
        WriteOutcome::Conflict {
            found: Some(Hash::of(b"new")),
            cause: CHANGED.into(),
            recovered: Vec::new()
        }
    );
    assert_eq!(fs::read(&path).unwrap(), b"new");
    fs::remove_file(&path).unwrap();
    assert_eq!(cause(&world.write("f", Some("new"), "x")), CHANGED);
    assert!(world.names().is_empty());
    assert!(world.kept().is_empty());
    assert!(world.intents().is_empty());
}

#[test]
fn whoever_watches_sees_the_name_go_and_come() {
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    let world = World::new();
    let path = world.file("f", "old");
    let watch = inotify::init(CreateFlags::NONBLOCK).unwrap();
    let names = WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO;
    inotify::add_watch(&watch, path.parent().unwrap(), names).unwrap();
    world.write("f", Some("old"), "new");
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(&watch, &mut buffer);
    let mut seen = Vec::new();
    while let Ok(event) = reader.next() {
        if event.file_name() == Some(c"f") {
            seen.push(event.events());
        }
    }
    // In the other order VS Code's watcher would treat it as a file that
    // appeared and was removed, and keep showing the old text.
    assert_eq!(seen, [ReadFlags::MOVED_FROM, ReadFlags::MOVED_TO]);
}

#[test]
fn a_new_file_takes_no_name_that_somebody_has() {
    let world = World::new();
    assert_eq!(world.write("f", None, "new"), done(Way::Noreplace, false));
    assert_eq!(fs::read(world.path("f")).unwrap(), b"new");
    let mode = |name: &str| world.path(name).metadata().unwrap().mode() & 0o7777;
    assert_eq!(mode("f"), 0o640, "by the mask of whoever asks");
    assert_eq!(cause(&world.write("f", None, "newer")), CHANGED);
    assert_eq!(code(world.write("d/e/f", None, "x")), ErrorCode::NotFound);
    let deep = WriteOrder {
        create_directories: true,
        ..order("d/e/f", None, "x")
    };
    assert_eq!(world.guard.write(&deep, UMASK), done(Way::Noreplace, false));
    assert_eq!(fs::read(world.path("d/e/f")).unwrap(), b"x");
    assert_eq!(
        [mode("d"), mode("d/e"), mode("d/e/f")],
        [0o750, 0o750, 0o640]
    );
    // A directory with a default access list: its group may do everything,
    // others nothing.
    fs::create_dir(world.path("shared")).unwrap();
    fs::set_permissions(world.path("shared"), Permissions::from_mode(0o2775)).unwrap();
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, permissions) in [(0x01, 7), (0x04, 7), (0x20, 0)] {
        let entry = [u16::to_le_bytes(tag), u16::to_le_bytes(permissions)];
        list.extend(entry.concat());
        list.extend(u32::MAX.to_le_bytes());
    }
    let flags = rustix::fs::XattrFlags::empty();
    let set = |name| rustix::fs::setxattr(world.path(name), DEFAULT_LIST, &list, flags);
    set("shared").unwrap();
    let shared = WriteOrder {
        create_directories: true,
        ..order("shared/d/f", None, "x")
    };
    assert_eq!(
        world.guard.write(&shared, UMASK),
        done(Way::Noreplace, false)
    );
    assert_eq!([mode("shared/d"), mode("shared/d/f")], [0o2770, 0o660]);
    let through_a_file = WriteOrder {
        create_directories: true,
        ..order("f/g", None, "x")
    };
    assert_eq!(
        code(world.guard.write(&through_a_file, UMASK)),
        ErrorCode::NotFound
    );
}

#[test]
fn whoever_has_the_file_open_for_writing_is_not_robbed() {
    let world = World::new();
    let path = world.file("f", "old");
    let mut writer = OpenOptions::new().append(true).open(&path).unwrap();
    assert_eq!(cause(&world.write("f", Some("old"), "new")), BUSY);
    writer.write_all(b"+").unwrap();
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), b"old+");
    // A reader does not prevent the write.
    let _reader = File::open(&path).unwrap();
    assert_eq!(
        world.write("f", Some("old+"), "new"),
        done(Way::Exchange, true)
    );
    assert_eq!(world.names(), ["f"]);
}

#[test]
fn mode_and_attributes_survive() {
    let world = World::new();
    let path = world.file("f", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let attribute = rustix::fs::setxattr(
        &path,
        "user.colour",
        b"green",
        rustix::fs::XattrFlags::empty(),
    );
    assert_eq!(
        world.write("f", Some("old"), "new"),
        done(Way::Exchange, true)
    );
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o751);
    if attribute.is_ok() {
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(&path, "user.colour", &mut value[..]).unwrap();
        assert_eq!(&value[..length], b"green");
    }
}

#[test]
fn a_link_stays_a_link() {
    let world = World::new();
    fs::create_dir(world.path("real")).unwrap();
    let target = world.file("real/f", "old");
    symlink("real/f", world.path("link")).unwrap();
    symlink("real", world.path("dir")).unwrap();
    symlink("real/new", world.path("dangling")).unwrap();
    symlink("/etc", world.path("out")).unwrap();
    assert_eq!(
        world.write("link", Some("old"), "new"),
        done(Way::Exchange, true)
    );
    assert!(world.path("link").symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert_eq!(
        world.write("dir/f", Some("new"), "newer"),
        done(Way::Exchange, true)
    );
    assert_eq!(fs::read(&target).unwrap(), b"newer");
    assert_eq!(
        world.write("dangling", None, "x"),
        done(Way::Noreplace, false)
    );
    assert_eq!(fs::read(world.path("real/new")).unwrap(), b"x");
    assert_eq!(
        code(world.write("out/f", None, "x")),
        ErrorCode::OutsideWorkspace
    );
}

#[test]
fn what_is_no_file_is_not_opened() {
    let world = World::new();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        world.path("fifo"),
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    fs::create_dir(world.path("d")).unwrap();
    assert_eq!(code(world.write("fifo", None, "x")), ErrorCode::NotAFile);
    assert_eq!(code(world.write("d", Some(""), "x")), ErrorCode::NotAFile);
}

#[test]
fn a_file_with_several_names_keeps_them() {
    let world = World::new();
    let path = world.file("f", "old old");
    fs::hard_link(&path, world.path("g")).unwrap();
    assert_eq!(
        world.write("f", Some("old old"), "new"),
        done(Way::Checked, true)
    );
    assert_eq!(fs::read(world.path("g")).unwrap(), b"new");
    assert_eq!(path.metadata().unwrap().nlink(), 2);
    assert!(world.kept().is_empty(), "the copy is gone");
    // A reader prevents a write lease, and not the write.
    let reader = File::open(&path).unwrap();
    assert_eq!(
        world.write("f", Some("new"), "newer"),
        done(Way::Checked, false)
    );
    drop(reader);
    let _writer = OpenOptions::new().write(true).open(&path).unwrap();
    assert_eq!(cause(&world.write("f", Some("newer"), "x")), BUSY);
    assert!(world.kept().is_empty());
}

#[test]
fn what_is_overwritten_unseen_is_kept_or_not_overwritten() {
    let world = World::new();
    for (name, link) in [("f", false), ("g", true)] {
        let path = world.file(name, "unseen");
        if link {
            fs::hard_link(&path, world.path("h")).unwrap();
        }
        let forced = WriteOrder {
            keep_base: true,
            ..order(name, Some("unseen"), "new")
        };
        let WriteOutcome::Done { recovered, .. } = world.guard.write(&forced, UMASK) else {
            panic!("not written");
        };
        assert_eq!(fs::read(&recovered[0]).unwrap(), b"unseen");
        assert_eq!(fs::read(path).unwrap(), b"new");
    }
    let secret = world.file(".env", "key");
    let forced = WriteOrder {
        keep_base: true,
        ..order(".env", Some("key"), "new")
    };
    assert_eq!(cause(&world.guard.write(&forced, UMASK)), SECRET);
    assert_eq!(fs::read(secret).unwrap(), b"key");
    assert_eq!(world.kept(), ["unseen", "unseen"]);
    // A secret that the session has seen may be overwritten.
    assert_eq!(
        world.write(".env", Some("key"), "new"),
        done(Way::Exchange, true)
    );
}

#[test]
fn a_late_write_to_the_old_file_is_kept() {
    let world = World::new();
    let path = world.file("f", "old");
    // The path is resolved before the exchange, and the file opened after it.
    let found = rustix::fs::open(
        &path,
        OFlags::PATH | OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )
    .unwrap();
    assert_eq!(
        world.write("f", Some("old"), "new"),
        done(Way::Exchange, true)
    );
    let late = {
        use std::os::fd::AsRawFd as _;
        format!("/proc/self/fd/{}", found.as_raw_fd())
    };
    fs::write(late, "late").unwrap();
    assert_eq!(world.kept(), ["late"]);
    assert_eq!(world.guard.take_late().len(), 1);
    assert!(world.guard.take_late().is_empty());
    assert_eq!(world.kept(), ["late"], "once");
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn kept_bytes_get_their_name_back() {
    let world = World::new();
    let path = world.file("f", "unseen");
    let forced = WriteOrder {
        keep_base: true,
        ..order("f", Some("unseen"), "new")
    };
    world.guard.write(&forced, UMASK);
    let id = world.guard.list(None).unwrap().items[0].id.clone();
    let shown = world.guard.show(&id, 3).unwrap();
    assert_eq!((shown.text.as_str(), shown.truncated), ("uns", true));
    let (restored, is_written) = world.replacer().restore(&id, false).unwrap();
    assert!(is_written);
    assert_eq!(fs::read(&path).unwrap(), b"unseen");
    assert_eq!(fs::read(&restored.recovered[0]).unwrap(), b"new");
    fs::remove_file(&path).unwrap();
    world.replacer().restore(&id, false).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"unseen");
    let (_, is_written) = world.replacer().restore(&id, false).unwrap();
    assert!(!is_written, "the file has these bytes already");
    world.guard.delete(&id).unwrap();
    assert_eq!(world.kept(), ["new"]);
    assert_eq!(
        world.replacer().restore(&id, false).unwrap_err().code,
        ErrorCode::NotFound
    );
}

/// Does what the loop does: looks when a look is due, until no file is held.
fn look_until_nothing_is_held(guard: &Guard) {
    while let Some(next) = guard.next_look() {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        if guard.look_is_due(Instant::now()) {
            guard.look_at_due_moved();
        }
    }
}

#[test]
fn the_old_file_is_held_only_while_somebody_may_write_to_it() {
    let world = World::new();
    let path = world.file("f", "old");
    world.write("f", Some("old"), "new");
    look_until_nothing_is_held(&world.guard);
    assert!(world.kept().is_empty());

    // The path is resolved before the write, and the file written to much
    // later.
    let found = fs::File::open(&path).unwrap();
    world.write("f", Some("new"), "newer");
    let late = {
        use std::os::fd::AsRawFd as _;
        format!("/proc/self/fd/{}", found.as_raw_fd())
    };
    let mut writer = OpenOptions::new().write(true).open(late).unwrap();
    for _ in 0..2 {
        let next = world.guard.next_look().unwrap();
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        world.guard.look_at_due_moved();
    }
    assert!(world.guard.next_look().is_some(), "somebody has it open");
    children::unshared(|| writer.write_all(b"late").map(|()| drop(writer))).unwrap();
    look_until_nothing_is_held(&world.guard);
    assert_eq!(world.kept(), ["late"]);
}

/// Held files use disk space without being visible, so their bytes are limited,
/// not only their number.
#[test]
fn old_files_that_are_held_take_up_bounded_room() {
    let world = World::new();
    let size = 32_usize << 20;
    let content = |number: usize| vec![b'a' + u8::try_from(number).unwrap(); size];
    fs::write(world.path("f"), content(0)).unwrap();
    // Each is open for writing, so that none is released because no process
    // writes to it.
    let mut writers = Vec::new();
    for number in 0..12 {
        let (old, new) = (content(number), content(number + 1));
        writers.push(
            OpenOptions::new()
                .append(true)
                .open(world.path("f"))
                .unwrap(),
        );
        world.guard.net.hold(
            fs::File::open(world.path("f")).unwrap(),
            (&RelPath::new(b"f").unwrap(), &RelPath::new(b"f").unwrap()),
            Hash::of(&old),
            |_| {},
        );
        fs::remove_file(world.path("f")).unwrap();
        fs::write(world.path("f"), new).unwrap();
    }
    let held = world.guard.net.held_bytes();
    assert!((32 << 20..=256 << 20).contains(&held), "{held} bytes");
    // A file that was written to is looked at before it is released for a newer
    // one.
    let last = writers.last_mut().unwrap();
    children::unshared(|| last.write_all(b"late")).unwrap();
    let mut late = 0;
    assert!(world.guard.net.give_up(|_| late += 1));
    assert_eq!((late, world.guard.net.held_bytes()), (1, 0));
}

#[test]
fn guard7_only_the_content_that_was_meant_is_removed() {
    let world = World::new();
    let remove = |name: &str, base: &str| {
        let path = RelPath::new(name.as_bytes()).unwrap();
        world.guard.remove(&path, Hash::of(base.as_bytes()))
    };
    let path = world.file("f", "mine\n");
    assert!(matches!(
        remove("f", "other\n"),
        WriteOutcome::Conflict { .. }
    ));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine\n");
    assert!(matches!(remove("f", "mine\n"), WriteOutcome::Done { .. }));
    assert!(!path.exists());
    assert!(matches!(
        remove("f", "mine\n"),
        WriteOutcome::Conflict { .. }
    ));
    // Nothing is removed through a link.
    let path = world.file("g", "mine\n");
    symlink(&path, world.path("link")).unwrap();
    assert!(matches!(remove("link", "mine\n"), WriteOutcome::Failed(_)));
    assert!(path.exists());
    assert!(matches!(remove(".git/config", ""), WriteOutcome::Failed(_)));
}

#[test]
fn guard7_a_removal_cut_short_is_reverted() {
    let world = World::new();
    let path = RelPath::new(b"f").unwrap();
    world.file("f", "mine\n");
    let place = Place::at(&world.guard.root, &path).unwrap();
    let aside = temporary::new_name();
    let intent = Intent::removal(&path, &place, Hash::of(b"mine\n"), &aside);
    std::mem::forget(world.guard.intents.record(intent).unwrap());
    fs::rename(world.path("f"), world.path(&aside)).unwrap();
    let _again = open(world.base.path());
    assert_eq!(fs::read_to_string(world.path("f")).unwrap(), "mine\n");
    assert!(!world.path(&aside).exists());
}
