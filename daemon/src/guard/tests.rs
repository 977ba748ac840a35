#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::content::{MAX_BYTES, Secrets};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use touchmark_tests::children;

struct World {
    base: tempfile::TempDir,
    guard: Guard,
}

fn open(base: &Path) -> Guard {
    let root = base.join("ws").canonicalize().unwrap();
    let reader = Reader::new(
        &root,
        Secrets::new(Secrets::USUAL.iter().copied()).unwrap(),
        1 << 20,
        MAX_BYTES,
    );
    let settings = Settings {
        root,
        state: base.join("state"),
        keep: Keep {
            age: 1 << 40,
            bytes: 1 << 30,
        },
        durable: false,
        writable: true,
    };
    Guard::open(settings, reader, Timeline::start(0)).unwrap()
}

impl World {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("ws")).unwrap();
        crate::life::private_directory(&base.path().join("state")).unwrap();
        let guard = open(base.path());
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
        self.guard.write(&order(name, base, new))
    }

    /// Everything that is kept, sorted.
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

    /// The names in the workspace's own directory, sorted.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.guard.root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

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
    assert!(
        fs::read_dir(world.base.path().join("state/intents"))
            .unwrap()
            .next()
            .is_none()
    );
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
    // The other way round VS Code's watcher takes it for a file that came and
    // went, and shows the old text on.
    assert_eq!(seen, [ReadFlags::MOVED_FROM, ReadFlags::MOVED_TO]);
}

#[test]
fn a_new_file_takes_no_name_that_somebody_has() {
    let world = World::new();
    assert_eq!(world.write("f", None, "new"), done(Way::Noreplace, false));
    assert_eq!(fs::read(world.path("f")).unwrap(), b"new");
    assert_eq!(
        world.path("f").metadata().unwrap().mode() & 0o777,
        {
            let other = world.file("other", "");
            other.metadata().unwrap().mode() & 0o777
        },
        "as any new file"
    );
    assert_eq!(cause(&world.write("f", None, "newer")), CHANGED);
    assert_eq!(code(world.write("d/e/f", None, "x")), ErrorCode::NotFound);
    let deep = WriteOrder {
        create_directories: true,
        ..order("d/e/f", None, "x")
    };
    assert_eq!(world.guard.write(&deep), done(Way::Noreplace, false));
    assert_eq!(fs::read(world.path("d/e/f")).unwrap(), b"x");
    let through_a_file = WriteOrder {
        create_directories: true,
        ..order("f/g", None, "x")
    };
    assert_eq!(
        code(world.guard.write(&through_a_file)),
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
    // A reader is no hindrance.
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
    // A reader is in the way of a write lease, not of the write.
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
        let WriteOutcome::Done { recovered, .. } = world.guard.write(&forced) else {
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
    assert_eq!(cause(&world.guard.write(&forced)), SECRET);
    assert_eq!(fs::read(secret).unwrap(), b"key");
    assert_eq!(world.kept(), ["unseen", "unseen"]);
    // Seen, it may be written.
    assert_eq!(
        world.write(".env", Some("key"), "new"),
        done(Way::Exchange, true)
    );
}

#[test]
fn a_late_write_to_the_old_file_is_kept() {
    let world = World::new();
    let path = world.file("f", "old");
    // Found before the exchange, opened after it.
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
    world.guard.write(&forced);
    let id = world.guard.list(None).unwrap().items[0].id.clone();
    let shown = world.guard.show(&id, 3).unwrap();
    assert_eq!((shown.text.as_str(), shown.truncated), ("uns", true));
    let restored = world.guard.restore(&id).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"unseen");
    assert_eq!(fs::read(&restored.recovered[0]).unwrap(), b"new");
    fs::remove_file(&path).unwrap();
    world.guard.restore(&id).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"unseen");
    world.guard.delete(&id).unwrap();
    assert_eq!(world.kept(), ["new"]);
    assert_eq!(
        world.guard.restore(&id).unwrap_err().code,
        ErrorCode::NotFound
    );
}

/// Rounds of one write by the agent and one or two saves by the user, begun
/// at every distance from each other: the last save is on disk, or was the
/// base of the write, or is kept. As many rounds as it takes, so that a busy
/// machine, where threads seldom meet, has enough of either outcome as well.
#[test]
fn no_save_is_lost_to_a_write_at_any_moment() {
    const ROUNDS: u64 = 1_000;
    /// Of either outcome.
    const ENOUGH: usize = 10;
    let world = World::new();
    let path = world.file("f", "start\n");
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let (mut written, mut conflicts, mut rounds) = (0, 0, 0);
    while rounds < ROUNDS || written <= ENOUGH || conflicts <= ENOUGH {
        rounds += 1;
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let (first, second) = ((random >> 33) % 4, (random >> 36) % 8);
        let delays = [(random >> 40) % 400, (random >> 50) % 200];
        let base = fs::read_to_string(&path).unwrap();
        let (one, two) = (format!("user {rounds}.1\n"), format!("user {rounds}.2\n"));
        let last = if second < 4 { &two } else { &one };
        let new = format!("agent {rounds}\n");
        // Half of the writes are begun with the first save, whenever that is,
        // on what was read before it.
        let together = (random >> 60).is_multiple_of(2);
        let saving = AtomicBool::new(false);
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                spin(delays[0]);
                saving.store(true, Ordering::Release);
                user_saves(&path, &one, first);
                if second < 4 {
                    spin(delays[1]);
                    user_saves(&path, &two, second);
                }
            });
            let base = if together {
                while !saving.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                base
            } else {
                spin(150);
                // Another read, so that the write is a good one more often.
                fs::read_to_string(&path).unwrap_or(base)
            };
            (world.write("f", Some(&base), &new), base)
        });
        match &outcome {
            (WriteOutcome::Done { .. }, _) => written += 1,
            (WriteOutcome::Conflict { .. }, _) => conflicts += 1,
            (WriteOutcome::Failed(error), _) => panic!("{error}"),
        }
        let now = fs::read_to_string(&path).unwrap();
        let safe = now == *last
            || (matches!(outcome.0, WriteOutcome::Done { .. }) && outcome.1 == *last)
            || world.kept().contains(last);
        assert!(
            safe,
            "round {rounds}: {last:?} (ways {first}, {second}, delays {delays:?}) is lost: \
             {outcome:?}, now {now:?}, kept {:?}",
            world.kept()
        );
        let left = world.names();
        assert_eq!(left, ["f"], "round {rounds}");
    }
    eprintln!(
        "{rounds} rounds: {written} writes, {conflicts} conflicts, {} kept",
        world.kept().len()
    );
}

fn spin(microseconds: u64) {
    let end = Instant::now() + std::time::Duration::from_micros(microseconds);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

fn user_saves(path: &Path, content: &str, way: u64) {
    let beside = path.with_file_name("f~");
    match way {
        0 => fs::write(path, content).unwrap(),
        1 => {
            let mut file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o644)
                .open(path)
                .unwrap();
            file.write_all(content.as_bytes()).unwrap();
            file.set_len(content.len() as u64).unwrap();
        }
        2 => {
            fs::write(&beside, content).unwrap();
            fs::rename(&beside, path).unwrap();
        }
        _ => {
            let _absent = fs::rename(path, &beside);
            fs::write(path, content).unwrap();
            let _absent = fs::remove_file(&beside);
        }
    }
}

/// Steps passed, and what is to happen at which.
type Plan = (u64, Vec<(u64, Box<dyn FnOnce()>)>);

thread_local! {
    /// What happens at which step of the next write in this thread.
    static AT_STEP: std::cell::RefCell<Plan> =
        const { std::cell::RefCell::new((0, Vec::new())) };
}

/// Called between any two steps of a write.
pub(super) fn at_step() {
    let due: Vec<Box<dyn FnOnce()>> = AT_STEP.with_borrow_mut(|(count, plan)| {
        *count += 1;
        let count = *count;
        let (due, rest) = std::mem::take(plan)
            .into_iter()
            .partition::<Vec<_>, _>(|(step, _)| *step == count);
        *plan = rest;
        due.into_iter().map(|(_, action)| action).collect()
    });
    for action in due {
        action();
    }
}

fn plan(actions: Vec<(u64, Box<dyn FnOnce()>)>) {
    AT_STEP.with_borrow_mut(|at| *at = (0, actions));
}

/// Steps passed since the last plan.
fn steps() -> u64 {
    AT_STEP.with_borrow(|(count, _)| *count)
}

const WAYS: u64 = 5;

/// A save at a step; one that waits for a lease goes on aside.
fn save_at_step(
    path: &Path,
    content: &str,
    way: u64,
    waiting: &std::rc::Rc<std::cell::RefCell<Vec<std::thread::JoinHandle<()>>>>,
) -> Box<dyn FnOnce()> {
    let (path, content) = (path.to_path_buf(), content.to_owned());
    let waiting = std::rc::Rc::clone(waiting);
    Box::new(move || {
        if way == 4 {
            // What is deleted was deleted by its owner.
            let _absent = fs::remove_file(&path);
            return fs::write(&path, &content).unwrap();
        }
        if way > 1 {
            return user_saves(&path, &content, way);
        }
        // In place: an opener waits while there is a lease.
        let leased = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)
            .is_err_and(|error| error.raw_os_error() == Some(libc::EAGAIN));
        if !leased {
            return user_saves(&path, &content, way);
        }
        let saver = std::thread::spawn(move || user_saves(&path, &content, way));
        waiting.borrow_mut().push(saver);
    })
}

/// One or two saves at every step of a write, in every way: the newest stays
/// under the name or was the base, every other content that a save of the
/// user's did not replace is kept.
#[test]
fn no_save_is_lost_at_any_step() {
    let check = |first: (u64, u64), second: Option<(u64, u64)>| -> u64 {
        let world = World::new();
        let path = world.file("f", "base\n");
        let waiting = std::rc::Rc::default();
        let mut actions = vec![(first.0, save_at_step(&path, "one\n", first.1, &waiting))];
        if let Some((step, way)) = second {
            actions.push((step, save_at_step(&path, "two\n", way, &waiting)));
        }
        plan(actions);
        let outcome = world.write("f", Some("base\n"), "agent\n");
        let passed = steps();
        plan(Vec::new());
        for saver in waiting.borrow_mut().drain(..) {
            saver.join().unwrap();
        }
        let now = fs::read_to_string(&path).unwrap();
        let what = format!("{first:?} {second:?}: {outcome:?}, now {now:?}");
        let happened = |at: Option<(u64, u64)>| at.is_some_and(|(step, _)| step <= passed);
        let last = match (happened(Some(first)), happened(second)) {
            (_, true) => "two\n",
            (true, false) => "one\n",
            (false, false) => "agent\n",
        };
        // One that waits for the lease is let in after the other.
        let unordered = first.1 < 2;
        let newest = now == last || (unordered && now == "one\n");
        assert!(newest, "{what}; kept {:?}", world.kept());
        let replaced_by_the_user = happened(second);
        if happened(Some(first)) && !replaced_by_the_user && now != "one\n" {
            assert!(world.kept().contains(&"one\n".to_owned()), "{what}");
        }
        assert_eq!(world.names(), ["f"], "{what}");
        let intents = world.base.path().join("state/intents");
        assert!(fs::read_dir(intents).unwrap().next().is_none(), "{what}");
        passed
    };
    let steps = check((u64::MAX, 0), None);
    let mut checks = 0;
    assert!(steps >= 5, "{steps} steps");
    for step in 1..=steps {
        for way in 0..WAYS {
            let passed = check((step, way), None);
            for later in step..=passed {
                for other in 0..WAYS {
                    checks += 1;
                    check((step, way), Some((later, other)));
                }
            }
        }
    }
    assert!(checks > 300, "{checks} pairs");
}

/// What the process does that is ended in the middle; does nothing unless
/// asked to.
#[test]
fn a_process_to_be_ended() {
    let Ok(base) = std::env::var("TOUCHMARK_TEST_GUARD") else {
        return;
    };
    let guard = open(Path::new(&base));
    let name = std::env::var("TOUCHMARK_TEST_FILE").unwrap();
    let old = fs::read_to_string(guard.root.join(&name)).ok();
    let keep_base = name == "unseen";
    guard.write(&WriteOrder {
        keep_base,
        ..order(&name, old.as_deref(), "the new content\n")
    });
    println!("lived");
}

#[test]
fn a_write_cut_short_is_completed_or_reverted() {
    for name in ["exchanged", "linked", "unseen", "created"] {
        let mut step = 0;
        loop {
            step += 1;
            let world = World::new();
            if name != "created" {
                world.file(name, "old content, longer than the new one\n");
            }
            if name == "linked" {
                fs::hard_link(world.path(name), world.path("other")).unwrap();
            }
            let World { base, guard } = world;
            drop(guard);
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args([
                    "--exact",
                    "guard::tests::a_process_to_be_ended",
                    "--nocapture",
                ])
                .env("TOUCHMARK_TEST_GUARD", base.path())
                .env("TOUCHMARK_TEST_FILE", name)
                .env("TOUCHMARK_CRASH_AT", step.to_string())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let child = children::start(&mut command).unwrap();
            let child = child.wait_with_output().unwrap();
            let lived = String::from_utf8_lossy(&child.stdout).contains("lived");
            let world = World {
                guard: open(base.path()),
                base,
            };
            let now = fs::read_to_string(world.path(name)).ok();
            let names = if name == "linked" {
                2
            } else {
                usize::from(now.is_some())
            };
            let what = format!("{name}, ended at step {step}: {now:?}");
            assert_eq!(world.names().len(), names, "{what} {:?}", world.names());
            match now.as_deref() {
                None => assert_eq!(name, "created", "{what}"),
                Some("the new content\n") => {
                    let kept = world.kept();
                    if name == "unseen" {
                        assert!(!kept.is_empty(), "{what}");
                    }
                }
                Some(other) => {
                    assert_eq!(other, "old content, longer than the new one\n", "{what}");
                }
            }
            let intents = world.base.path().join("state/intents");
            assert!(fs::read_dir(intents).unwrap().next().is_none(), "{what}");
            if lived {
                assert!(step > 3, "{name} has only {step} steps");
                break;
            }
        }
    }
}
