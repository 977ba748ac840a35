//! Saves of a user's, and the end of the process, at every moment of a guarded
//! write.
use super::*;

/// In each round the agent writes once and the user saves once or twice, begun
/// at every distance from each other. The last save is on disk, or was the base
/// of the write, or is stored. There are as many rounds as are needed for
/// enough of either outcome, since threads seldom meet on a busy machine.
#[test]
fn no_save_is_lost_to_a_write_at_any_moment() {
    const ROUNDS: u64 = 1_000;
    /// The number of rounds needed of either outcome.
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
        // Half of the writes begin with the first save, whenever that is, and
        // are based on the content read before it.
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
                // The base is read again, so that the write succeeds more
                // often.
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

/// The number of steps passed, and what happens at which step.
type Plan = (u64, Vec<(u64, Box<dyn FnOnce()>)>);

thread_local! {
    /// What happens at which step of the next write in this thread.
    static AT_STEP: std::cell::RefCell<Plan> =
        const { std::cell::RefCell::new((0, Vec::new())) };
}

/// Called between any two steps of a write.
pub(in crate::guard) fn at_step() {
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

/// Returns the number of steps passed since the last plan.
fn steps() -> u64 {
    AT_STEP.with_borrow(|(count, _)| *count)
}

const WAYS: u64 = 5;

/// Plans a save at a step. One that waits for a lease continues on another
/// thread.
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
            // A file that is removed was removed by its owner.
            let _absent = fs::remove_file(&path);
            return fs::write(&path, &content).unwrap();
        }
        if way > 1 {
            return user_saves(&path, &content, way);
        }
        // In place: the open waits while there is a lease.
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

/// Makes one or two saves at every step of a write, in every way. The newest
/// content stays at the name or was the base; every other content that no save
/// of the user's replaced is stored.
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
        // A save that waits for the lease is written after the other.
        let unordered = first.1 < 2;
        let newest = now == last || (unordered && now == "one\n");
        assert!(newest, "{what}; kept {:?}", world.kept());
        let replaced_by_the_user = happened(second);
        if happened(Some(first)) && !replaced_by_the_user && now != "one\n" {
            assert!(world.kept().contains(&"one\n".to_owned()), "{what}");
        }
        assert_eq!(world.names(), ["f"], "{what}");
        assert!(world.intents().is_empty(), "{what}");
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

/// Saves at every step of a removal, in every way. What was saved stays.
#[test]
fn guard7_a_save_at_any_step_of_a_removal_stays() {
    let check = |step: u64, way: u64| -> u64 {
        let world = World::new();
        let path = world.file("f", "base\n");
        let waiting = std::rc::Rc::default();
        plan(vec![(step, save_at_step(&path, "one\n", way, &waiting))]);
        let name = RelPath::new(b"f").unwrap();
        let outcome = world.guard.remove(&name, Hash::of(b"base\n"));
        let passed = steps();
        plan(Vec::new());
        for saver in waiting.borrow_mut().drain(..) {
            saver.join().unwrap();
        }
        let what = format!("step {step}, way {way}: {outcome:?}");
        let now = fs::read_to_string(&path).ok();
        let (saved, names) = match step <= passed {
            true => (Some("one\n"), vec!["f"]),
            false => (None, Vec::new()),
        };
        assert_eq!(now.as_deref(), saved, "{what}");
        assert_eq!(world.names(), names, "{what}");
        assert!(world.intents().is_empty(), "{what}");
        passed
    };
    let steps = check(u64::MAX, 0);
    assert!(steps >= 2, "{steps} steps");
    // A file with another content keeps its name all the time.
    let world = World::new();
    let path = world.file("f", "other\n");
    plan(Vec::new());
    let name = RelPath::new(b"f").unwrap();
    let outcome = world.guard.remove(&name, Hash::of(b"base\n"));
    assert!(matches!(outcome, WriteOutcome::Conflict { .. }));
    assert_eq!(self::steps(), 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "other\n");
    for step in 1..=steps {
        for way in 0..WAYS {
            check(step, way);
        }
    }
}

/// A process appends to a file at every step of a write in place. A base that the
/// session has not seen is stored as soon as it is overwritten.
#[test]
fn guard1_an_unseen_base_is_stored_whatever_is_written_at_the_same_moment() {
    let check = |step: u64| -> u64 {
        let world = World::new();
        let path = world.file("f", "unseen");
        fs::hard_link(&path, world.path("g")).unwrap();
        // A reader prevents the lease, so that the append need not wait.
        let reader = File::open(&path).unwrap();
        let append = {
            let path = path.clone();
            move || {
                let mut file = OpenOptions::new().append(true).open(path).unwrap();
                file.write_all(b"+").unwrap();
            }
        };
        plan(vec![(step, Box::new(append))]);
        let forced = WriteOrder {
            keep_base: true,
            ..order("f", Some("unseen"), "new")
        };
        let outcome = world.guard.write(&forced, UMASK);
        let passed = steps();
        plan(Vec::new());
        drop(reader);
        let now = fs::read_to_string(&path).unwrap();
        let kept = world.kept();
        let is_there = now.starts_with("unseen") || kept.contains(&"unseen".to_owned());
        assert!(is_there, "step {step}: {outcome:?}, now {now:?}");
        passed
    };
    let steps = check(u64::MAX);
    assert!(steps >= 3, "{steps} steps");
    for step in 1..=steps {
        check(step);
    }
}

/// A save of the base's size, in the same tick of the clock, comes before the
/// exchange, and the name is taken away after it. The saved content is stored
/// before the old file loses its name, not only by a later look.
#[test]
fn guard1_what_is_given_up_is_judged_by_its_content() {
    let world = World::new();
    let path = world.file("f", "base\n");
    let (old, save) = (path.clone(), path.clone());
    let save = move || {
        let modified = save.metadata().unwrap().modified().unwrap();
        let mut file = OpenOptions::new().write(true).open(&save).unwrap();
        file.write_all(b"save\n").unwrap();
        file.set_modified(modified).unwrap();
    };
    let away = move || fs::rename(&old, old.with_file_name("f~")).unwrap();
    // Before the lease, and after the exchange.
    plan(vec![(3, Box::new(save)), (5, Box::new(away))]);
    let outcome = world.write("f", Some("base\n"), "agent\n");
    plan(Vec::new());
    assert!(matches!(outcome, WriteOutcome::Conflict { .. }));
    let kept = world.guard.recovery.list();
    let kept: Vec<_> = kept
        .iter()
        .map(|item| fs::read_to_string(&item.file).unwrap())
        .collect();
    assert_eq!(kept, ["save\n"], "{outcome:?}");
    assert_eq!(world.names(), ["f~"]);
}

/// A process waits for the lease of a removal, which then takes the name away. It
/// gets the file with the name, not one without.
#[test]
fn guard7_a_save_that_waits_for_a_removal_comes_back() {
    let world = World::new();
    let path = world.file("f", "base\n");
    let (to_save, saver) = std::sync::mpsc::channel();
    let save = {
        let path = path.clone();
        move || {
            let inode = format!(":{} ", path.metadata().unwrap().ino());
            let saver = std::thread::spawn(move || {
                let mut file = OpenOptions::new().write(true).open(path).unwrap();
                file.write_all(b"save\n").unwrap();
            });
            to_save.send(saver).unwrap();
            let is_awaited = |line: &str| line.contains("BREAKING") && line.contains(&inode);
            while !fs::read_to_string("/proc/locks")
                .unwrap()
                .lines()
                .any(is_awaited)
            {
                std::thread::yield_now();
            }
        }
    };
    // After the lease was taken.
    plan(vec![(2, Box::new(save))]);
    let name = RelPath::new(b"f").unwrap();
    let outcome = world.guard.remove(&name, Hash::of(b"base\n"));
    plan(Vec::new());
    saver.recv().unwrap().join().unwrap();
    assert!(
        matches!(outcome, WriteOutcome::Conflict { .. }),
        "{outcome:?}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "save\n");
    assert_eq!(world.names(), ["f"]);
}

/// Not a test: the process that is ended in the middle of a write. Does nothing
/// without its environment variable.
#[test]
fn a_process_to_be_ended() {
    let Ok(base) = std::env::var("TOUCHMARK_TEST_GUARD") else {
        return;
    };
    let guard = open(Path::new(&base));
    let name = std::env::var("TOUCHMARK_TEST_FILE").unwrap();
    let old = fs::read_to_string(guard.root.join(&name)).ok();
    let keep_base = name == "unseen";
    let order = WriteOrder {
        keep_base,
        ..order(&name, old.as_deref(), "the new content\n")
    };
    guard.write(&order, UMASK);
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
            let lived = lives_beyond(step, base.path(), name);
            let world = World {
                guard: open(base.path()).into(),
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
            assert!(world.intents().is_empty(), "{what}");
            if lived {
                assert!(step > 3, "{name} has only {step} steps");
                break;
            }
        }
    }
}

/// Writes a file of the world at `base` in another process, which ends at this
/// step. Returns whether the write has fewer steps.
fn lives_beyond(step: u64, base: &Path, name: &str) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "guard::tests::interleaved::a_process_to_be_ended",
            "--nocapture",
        ])
        .env("TOUCHMARK_TEST_GUARD", base)
        .env("TOUCHMARK_TEST_FILE", name)
        .env("TOUCHMARK_CRASH_AT", step.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = children::start(&mut command).unwrap();
    let child = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&child.stdout).contains("lived")
}

/// A write in place is cut short at each step, and the user saves a content of
/// the old one's size and end before the next start. The save stays.
#[test]
fn guard1_a_save_after_a_kill_is_no_torn_write() {
    let mut step = 0;
    loop {
        step += 1;
        let world = World::new();
        let path = world.file("linked", "old content, longer than the new one\n");
        fs::hard_link(&path, world.path("other")).unwrap();
        let World { base, guard } = world;
        drop(guard);
        let lived = lives_beyond(step, base.path(), "linked");
        let saved = "own content, longer than the new one\n";
        fs::write(&path, saved).unwrap();
        drop(open(base.path()));
        assert_eq!(fs::read_to_string(&path).unwrap(), saved, "step {step}");
        if lived {
            assert!(step > 3, "{step} steps");
            break;
        }
    }
}
