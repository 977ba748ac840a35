//! LOSS-3: a disk that is full or read-only, and a state directory that may not
//! be used, with a whole daemon: before its start and while it runs.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use serde_json::{Value, json};
use touchmark_tests::parts::not_tested;
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::{Client, Way, World, author, mounts, paths, sha256, text, user};

/// Makes three files of a session: one was read, one was read and then changed
/// by a user, one was written by the session.
fn work(world: &World) {
    let mut agent = world.session("s");
    for name in ["a.txt", "b.txt", "c.txt"] {
        world.file(name, "one\n");
        agent.read(name);
    }
    user::write(&world.path("b.txt"), "two\n");
    agent.edit(Way::Edit, "c.txt", "agent\n", |path| {
        user::write(path, "agent\n");
    });
    assert_eq!(agent.state("b.txt"), "stale");
}

/// Checks that earlier answers are still true, although the daemon was killed.
fn all_is_there(world: &World) {
    let mut agent = world.session("s");
    for (name, seen) in [("a.txt", "one\n"), ("b.txt", "one\n"), ("c.txt", "agent\n")] {
        assert_eq!(agent.status(name)["seenHash"], sha256(seen), "{name}");
    }
    assert_eq!(agent.story("c.txt"), ["agent:s declared"]);
    assert_eq!(author(&agent.history("b.txt")[0]["author"]), "user");
}

/// Returns every cause in `status`, in one line.
fn degraded(client: &mut Client) -> String {
    let status = client.ok("status", json!({}));
    let causes = status["degraded"].as_array().unwrap();
    let causes: Vec<String> = causes.iter().map(|one| text(one, "cause")).collect();
    causes.join("; ")
}

/// Returns requests that change state, with their parameters.
fn changes_of_state() -> [(&'static str, Value); 7] {
    [
        ("file/read", json!({"path": "b.txt"})),
        ("file/mention", json!({"path": "new.txt"})),
        ("modified/take", json!({})),
        (
            "edit/begin",
            json!({"files": [{"path": "a.txt"}], "force": true}),
        ),
        (
            "file/write",
            json!({"path": "a.txt", "text": "x", "force": true}),
        ),
        ("session/open", json!({})),
        ("session/compacted", json!({})),
    ]
}

/// Checks that while nothing can be stored, queries are right, changes of state
/// are refused, and clients are told why.
fn while_nothing_is_stored(world: &World) {
    let mut agent = world.session("s");
    assert_eq!(agent.state("a.txt"), "fresh");
    assert_eq!(agent.state("b.txt"), "stale");
    assert_eq!(agent.state("c.txt"), "fresh");
    user::write(&world.path("a.txt"), "mine\n");
    assert_eq!(agent.state("a.txt"), "stale");
    // Looked up in a log that holds it nowhere but in memory.
    let newest = &agent.history("a.txt")[0];
    assert_eq!(newest["hash"], sha256("mine\n"));
    assert_eq!(author(&newest["author"]), "user");
    let listed = agent.ok("modified/list", json!({}));
    assert_eq!(
        paths(listed["changes"].as_array().unwrap()),
        ["a.txt", "b.txt"]
    );
    for (method, params) in changes_of_state() {
        let refused = agent.refused(method, params, "storage");
        assert_eq!(refused.code, -32020, "{method}");
        assert!(!text(&refused.data, "cause").is_empty(), "{method}");
        assert!(
            text(&refused.data, "hint").contains("free space"),
            "{method}"
        );
    }
    assert_eq!(fs::read(world.path("a.txt")).unwrap(), b"mine\n");
    // What an editor holds unsaved is stored nowhere: the report is accepted
    // all the same.
    for dirty in [true, false] {
        let told = json!({"path": "a.txt", "dirty": dirty});
        agent.client.ok("editor/dirty", told);
        assert_eq!(agent.status("a.txt")["unsaved"] == true, dirty);
    }
    let causes = degraded(&mut agent.client);
    assert!(causes.contains("cannot be stored"), "{causes}");
    // What the session had seen is not what it was refused.
    assert_eq!(agent.status("a.txt")["seenHash"], sha256("one\n"));
}

/// Returns what `touchmark doctor` finds wrong.
fn doctor(world: &World) -> Vec<String> {
    let output = world.run(&["doctor", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = found["checks"]
        .as_array()
        .unwrap_or_else(|| panic!("{found}"));
    let wrong = found.iter().filter(|one| one["level"] == "wrong");
    wrong.map(|one| text(one, "check")).collect()
}

/// Waits until the daemon reports that all is well. It may restart for that.
fn recovers(world: &World) {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Ok(mut client) = Client::connect(world.socket())
            && let Ok(id) = client.try_send("status", &json!({}))
            && let Ok(Ok(status)) = client.try_answer(id)
            && status["degraded"] == json!([])
        {
            return;
        }
        assert!(Instant::now() < end, "no recovery\n{}", world.log());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Checks the state after recovery: nothing that was answered is lost, and
/// changes that were found in the meantime are recorded, now and after a kill.
fn afterwards(world: &mut World) {
    let mut agent = world.session("s");
    assert_eq!(agent.status("a.txt")["seenHash"], sha256("one\n"));
    assert_eq!(agent.state("a.txt"), "stale");
    assert_eq!(agent.taken(), ["a.txt", "b.txt"]);
    agent.read("a.txt");
    world.restart();
    let mut agent = world.session("s");
    assert_eq!(agent.state("a.txt"), "fresh");
    assert_eq!(agent.history("a.txt")[0]["hash"], sha256("mine\n"));
    assert_eq!(agent.taken(), [""; 0]);
    user::write(&world.path("a.txt"), "one\n");
    agent.read("a.txt");
    user::write(&world.path("b.txt"), "one\n");
    world.healthy();
}

/// A file that takes all free space.
struct Filler(PathBuf);

impl Filler {
    fn fill(directory: &Path) -> Self {
        let path = directory.join("filler");
        let mut file = File::create(&path).unwrap();
        for size in [64 << 10, 512, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
            // What was promised and not allocated yet.
            let _full = file.sync_all();
        }
        Self(path)
    }

    fn free(self) {
        fs::remove_file(self.0).unwrap();
    }
}

/// Opens sessions until one is refused. Returns those that were answered.
fn until_refused(world: &World) -> Vec<String> {
    let mut client = world.client();
    for number in 0.. {
        let session = format!("t{number}");
        if let Err(error) = client.call("session/open", json!({"session": session})) {
            assert_eq!(error.name, "storage", "{error}");
            return (0..number).map(|number| format!("t{number}")).collect();
        }
    }
    unreachable!()
}

/// Checks that all these sessions are known.
fn all_answered(world: &World, answered: &[String]) {
    let listed = world.client().ok("session/list", json!({}));
    let known: Vec<String> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(one, "session"))
        .collect();
    for session in answered {
        assert!(known.contains(session), "{session} was answered: {known:?}");
    }
}

/// Runs a test in a world whose state is on a separate file system, with work
/// done in it.
fn with_disk(mount: impl FnOnce(&World) + Send, test: impl FnOnce(&mut World) + Send) {
    mounts::apart(|| {
        let mut world = World::asleep();
        // The log goes to where it can be written.
        world.set_env("JOURNAL_STREAM", "test");
        mount(&world);
        world.start();
        work(&world);
        test(&mut world);
        world.kill();
        // Before the world removes its directories.
        mounts::detach(&world.state());
    });
}

fn tiny(world: &World) {
    mounts::mount("tmpfs", "tmpfs", "size=2m,mode=0700", &world.state());
}

/// Mounts eight megabytes of a real file system from a file.
fn ext4(world: &World) {
    let image = world.outside().join("disk");
    File::create(&image).unwrap().set_len(8 << 20).unwrap();
    let made = Command::new("mkfs.ext4").arg("-qF").arg(&image).status();
    assert!(made.unwrap().success());
    let image = image.to_str().unwrap();
    mounts::mount("ext4", image, "loop,errors=remount-ro", &world.state());
}

/// Checks a daemon whose disk fails from its start: what was stored before is
/// known.
fn at_the_start(world: &mut World, permit: impl FnOnce()) {
    world.start();
    // The log of a killed daemon may still have room for a few.
    let answered = until_refused(world);
    while_nothing_is_stored(world);
    permit();
    recovers(world);
    all_answered(world, &answered);
    afterwards(world);
    all_is_there(world);
}

/// Checks a daemon whose disk fails while it runs.
fn while_it_runs(world: &mut World, refuse: impl FnOnce(), permit: impl FnOnce()) {
    let mut told = world.client();
    told.ok("subscribe", json!({"kinds": ["degraded"]}));
    refuse();
    let answered = until_refused(world);
    let event = told.event();
    assert_eq!(event["type"], "degraded");
    let cause = text(&event, "cause");
    assert!(cause.contains("cannot be stored"), "{cause}");
    while_nothing_is_stored(world);
    permit();
    recovers(world);
    all_answered(world, &answered);
    afterwards(world);
}

#[test]
fn loss3_a_full_disk_at_the_start() {
    for mount in [tiny, ext4] {
        with_disk(mount, |world| {
            world.stop();
            let filler = Filler::fill(&world.state());
            at_the_start(world, || filler.free());
        });
    }
}

#[test]
fn loss3_a_full_disk_at_the_start_after_a_kill() {
    for mount in [tiny, ext4] {
        with_disk(mount, |world| {
            world.kill();
            let filler = Filler::fill(&world.state());
            at_the_start(world, || filler.free());
        });
    }
}

#[test]
fn loss3_a_disk_that_fills_up() {
    for mount in [tiny, ext4] {
        with_disk(mount, |world| {
            let state = world.state();
            let filler = std::cell::RefCell::new(None);
            while_it_runs(
                world,
                || *filler.borrow_mut() = Some(Filler::fill(&state)),
                || filler.take().unwrap().free(),
            );
        });
    }
}

/// Killed while the disk is full: what was answered is still true, and clocks
/// that were answered for facts that are not stored are unknown.
#[test]
fn loss3_killed_while_the_disk_is_full() {
    for mount in [tiny, ext4] {
        with_disk(mount, |world| {
            let filler = Filler::fill(&world.state());
            let answered = until_refused(world);
            while_nothing_is_stored(world);
            assert!(doctor(world).contains(&"state space".to_owned()));
            let clock = text(&world.client().ok("sync", json!({})), "clock");
            world.kill();
            filler.free();
            world.start();
            all_answered(world, &answered);
            all_is_there(world);
            let mut client = world.client();
            client.refused("modified/list", json!({"since": clock}), "unknownClock");
            let causes = degraded(&mut client);
            assert!(causes.contains("could not be stored"), "{causes}");
            world.healthy();
        });
    }
}

/// The store has no space, and the undo's record and the files have: the undo
/// is answered with `storage`, and is completed all the same (UNDO-4).
#[test]
fn loss3_an_undo_that_cannot_be_recorded() {
    let mount = |world: &World| {
        mounts::mount("tmpfs", "tmpfs", "size=8m,mode=0700", &world.state());
    };
    with_disk(mount, |world| {
        // Long names, so that the facts need more than the log has left.
        let names: Vec<String> = (0..50).map(|n| format!("{}{n}", "x".repeat(200))).collect();
        let mut agent = world.session("u");
        for name in &names {
            world.file(name, "one\n");
            agent.read(name);
            agent.ok("file/write", json!({"path": name, "text": "two\n"}));
        }
        world.stop();
        let entries = fs::read_dir(own(world)).unwrap();
        let entries = entries.map(|entry| entry.unwrap().path());
        let directories: Vec<PathBuf> = entries.filter(|entry| entry.is_dir()).collect();
        for directory in &directories {
            mounts::mount("tmpfs", "tmpfs", "size=2m,mode=0700", directory);
        }
        world.start();
        let filler = Filler::fill(&world.state());
        let undo = json!({"session": "u"});
        world.client().refused("undo", undo, "storage");
        filler.free();
        recovers(world);
        for _ in 0..2 {
            for name in &names {
                assert_eq!(fs::read(world.path(name)).unwrap(), b"one\n", "{name}");
            }
            let rows = world.client().ok("undo/list", json!({}))["undos"].take();
            assert_eq!(rows[0]["paths"].as_array().unwrap().len(), names.len());
            let mut agent = world.session("u");
            assert_eq!(author(&agent.history(&names[0])[0]["author"]), "user");
            world.kill();
            world.start();
        }
        world.client().ok("redo", json!({}));
        for name in &names {
            assert_eq!(fs::read(world.path(name)).unwrap(), b"two\n", "{name}");
        }
        world.kill();
        directories.iter().for_each(|one| mounts::detach(one));
        world.start();
    });
}

/// No inode is left: existing files can be written to, and no new ones created.
#[test]
fn loss3_no_inode_is_left() {
    let mount = |world: &World| {
        mounts::mount(
            "tmpfs",
            "tmpfs",
            "size=4m,nr_inodes=40,mode=0700",
            &world.state(),
        );
    };
    let exhaust = |directory: &Path| {
        let fill = directory.join("fill");
        fs::create_dir(&fill).unwrap();
        let made = (0..).take_while(|n| File::create(fill.join(n.to_string())).is_ok());
        assert!(made.count() < 40);
        fill
    };
    with_disk(mount, |world| {
        let fill = exhaust(&world.state());
        // A request needs none, a guarded write does.
        let mut agent = world.session("s");
        agent.read("b.txt");
        let write = json!({"path": "b.txt", "text": "x"});
        let refused = agent.refused("file/write", write.clone(), "storage");
        assert!(!text(&refused.data, "cause").is_empty());
        assert_eq!(fs::read(world.path("b.txt")).unwrap(), b"two\n");
        assert!(doctor(world).contains(&"state space".to_owned()));
        fs::remove_dir_all(&fill).unwrap();
        agent.ok("file/write", write);
        assert_eq!(fs::read(world.path("b.txt")).unwrap(), b"x");
        world.healthy();
    });
    with_disk(mount, |world| {
        world.stop();
        let fill = exhaust(&world.state());
        at_the_start(world, || fs::remove_dir_all(fill).unwrap());
    });
}

#[test]
fn loss3_a_read_only_disk_at_the_start() {
    for end in [
        |world: &mut World| world.stop(),
        |world: &mut World| {
            world.kill();
            None
        },
    ] {
        with_disk(tiny, |world| {
            end(world);
            let state = world.state();
            mounts::remount("ro", &state);
            world.start();
            assert!(doctor(world).contains(&"state space".to_owned()));
            world.kill();
            at_the_start(world, || mounts::remount("rw", &state));
        });
    }
}

/// Nothing was ever stored, and nothing can be.
#[test]
fn loss3_a_first_start_on_a_read_only_disk() {
    mounts::apart(|| {
        let mut world = World::asleep();
        // The runtime directory is elsewhere.
        fs::remove_dir_all(world.state()).unwrap();
        fs::create_dir(world.state()).unwrap();
        mounts::mount("tmpfs", "tmpfs", "ro,size=2m,mode=0700", &world.state());
        world.start();
        world.file("a.txt", "one\n");
        let mut agent = world.session("s");
        agent.refused("file/read", json!({"path": "a.txt"}), "storage");
        // The session could not be recorded, so there is none (SES-1).
        agent.refused("file/status", json!({"paths": ["a.txt"]}), "unknownSession");
        let causes = degraded(&mut agent.client);
        assert!(causes.contains("cannot be stored"), "{causes}");
        assert!(!causes.contains("lost"), "{causes}");
        mounts::remount("rw", &world.state());
        recovers(&world);
        let mut agent = world.session("s");
        agent.read("a.txt");
        world.restart();
        assert_eq!(world.session("s").state("a.txt"), "fresh");
        world.healthy();
        world.kill();
        mounts::detach(&world.state());
    });
}

/// The kernel makes the disk read-only while the daemon runs, as it does after
/// an error. Not even a note that facts are waiting can be written, so the
/// daemon starts a new epoch.
#[test]
fn loss3_a_disk_that_turns_read_only() {
    with_disk(ext4, |world| {
        let state = world.state();
        let source = Command::new("findmnt")
            .args(["-no", "SOURCE"])
            .arg(&state)
            .output()
            .unwrap();
        let source = String::from_utf8(source.stdout).unwrap();
        let device = Path::new(source.trim()).file_name().unwrap().to_owned();
        let trigger = Path::new("/sys/fs/ext4")
            .join(device)
            .join("trigger_fs_error");
        if !trigger.exists() {
            return not_tested("a disk that turns read-only: the kernel has no trigger_fs_error");
        }
        let mut client = world.client();
        let before = text(&client.ok("sync", json!({})), "clock");
        // As far as an error of the disk lets anything be stored.
        rustix::fs::sync();
        fs::write(&trigger, "an error").unwrap();
        let refused = client.call("session/open", json!({"session": "late"}));
        assert!(refused.is_err_and(|e| e.name == "storage" || e.name == "shuttingDown"));
        let end = Instant::now() + PATIENCE;
        while Client::connect(world.socket()).is_ok_and(|mut client| {
            let id = client.try_send("status", &json!({}));
            let answer = id.and_then(|id| client.try_answer(id));
            !answer.is_ok_and(|answer| {
                answer.is_ok_and(|status| status["degraded"].to_string().contains("stored"))
            })
        }) {
            assert!(Instant::now() < end, "not degraded\n{}", world.log());
        }
        while_nothing_is_stored(world);
        let meanwhile = text(&world.client().ok("sync", json!({})), "clock");
        let epoch = |clock: &str| clock.split(':').next().unwrap().to_owned();
        assert_ne!(epoch(&meanwhile), epoch(&before));
        // It can only be mounted again once no process uses it.
        world.kill();
        mounts::unmount(&state);
        let image = world.outside().join("disk");
        mounts::mount("ext4", image.to_str().unwrap(), "loop", &state);
        world.start();
        let clock = text(&world.client().ok("sync", json!({})), "clock");
        assert_eq!(epoch(&clock), epoch(&before));
        afterwards(world);
        all_is_there(world);
    });
}

/// Runs a test on a thread whose processes are bound by permissions even if
/// they are root's.
fn without_privileges(test: impl FnOnce() + Send) {
    let run = || {
        for capability in [CapabilitySet::DAC_OVERRIDE, CapabilitySet::DAC_READ_SEARCH] {
            // Who is not root has none to lose.
            let _obeys = remove_capability_from_bounding_set(capability);
        }
        test();
    };
    let joined = std::thread::scope(|scope| scope.spawn(run).join());
    if let Err(panic) = joined {
        std::panic::resume_unwind(panic);
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns the directory of the daemon's state.
fn own(world: &World) -> PathBuf {
    let key = world.socket().file_stem().unwrap();
    world.state().join("touchmark").join(key)
}

#[test]
fn loss3_a_state_directory_that_may_not_be_written_to() {
    without_privileges(|| {
        let mut world = World::new();
        work(&world);
        world.stop();
        let state = own(&world);
        mode(&state, 0o500);
        at_the_start(&mut world, || mode(&state, 0o700));
    });
}

/// Not even stored facts can be read. They are not treated as missing.
#[test]
fn loss3_a_state_directory_that_may_not_be_entered() {
    without_privileges(|| {
        let mut world = World::new();
        work(&world);
        world.stop();
        let state = own(&world);
        mode(&state, 0);
        world.start();
        let mut agent = world.session("s");
        agent.refused("file/status", json!({"paths": ["a.txt"]}), "unknownSession");
        agent.refused("file/read", json!({"path": "a.txt"}), "storage");
        let causes = degraded(&mut agent.client);
        assert!(causes.contains("cannot be read"), "{causes}");
        mode(&state, 0o700);
        recovers(&world);
        all_is_there(&world);
        world.healthy();
    });
}

/// Permissions that are removed while the daemon runs only affect opening
/// files.
#[test]
fn loss3_permissions_taken_away_while_it_runs() {
    without_privileges(|| {
        let mut world = World::new();
        work(&world);
        let state = own(&world);
        let mut agent = world.session("s");
        agent.history("b.txt");
        mode(&state, 0);
        agent.read("b.txt");
        agent.history("b.txt");
        let write = json!({"path": "b.txt", "text": "x"});
        agent.refused("file/write", write.clone(), "storage");
        assert_eq!(fs::read(world.path("b.txt")).unwrap(), b"two\n");
        assert!(doctor(&world).contains(&"store".to_owned()));
        mode(&state, 0o700);
        agent.ok("file/write", write);
        world.healthy();
    });
}
