//! FILE-5: when a stat is not enough to confirm a content.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use touchmark_tests::parts::not_tested;
use touchmark_tests::{World, mounts, sha256, user};

/// A program that has a file mapped. For each line of input it stores one more
/// byte through the map.
const MAPPER: &str = r#"
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR); map = mmap.mmap(fd, 0); os.close(fd)
for at, line in enumerate(sys.stdin):
    map[at:at + 1] = b"!"
    print(at, flush=True)
"#;

struct Mapper {
    program: Child,
    said: BufReader<ChildStdout>,
}

impl Mapper {
    fn new(file: &Path) -> Option<Self> {
        let mut program = Command::new("python3")
            .args(["-c", MAPPER])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .inspect_err(|error| not_tested(&format!("stores through a map: python3: {error}")))
            .ok()?;
        let said = BufReader::new(program.stdout.take().unwrap());
        Some(Self { program, said })
    }

    fn store(&mut self) {
        self.program
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"\n")
            .unwrap();
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        assert_ne!(line, "", "the mapper has ended");
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        drop(self.program.stdin.take());
        self.program.wait().unwrap();
    }
}

fn times(path: &Path) -> (i64, i64, i64, i64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    let stat = fs::metadata(path).unwrap();
    let (mtime, ctime) = (stat.mtime_nsec(), stat.ctime_nsec());
    (stat.mtime(), mtime, stat.ctime(), ctime, stat.ino())
}

/// A page that is dirty already takes another store without a change of the
/// file's times. The stat alone suggests the old content.
#[test]
fn file5_a_store_through_a_map_that_moves_no_time_is_found_after_a_start() {
    for kill in [false, true] {
        let mut world = World::new();
        let path = world.path("a.bin");
        world.file("a.bin", vec![b'A'; 8_192]);
        let Some(mut mapper) = Mapper::new(&path) else {
            return;
        };
        mapper.store();
        // Long enough for a stat to look settled by the clock's grain.
        user::pause(500);
        let mut agent = world.session("s");
        agent.read("a.bin");
        assert_eq!(agent.state("a.bin"), "fresh");
        match kill {
            true => world.kill(),
            false => assert_eq!(world.stop(), Some(0)),
        }
        let before = times(&path);
        mapper.store();
        drop(mapper);
        if times(&path) != before {
            not_tested("a store that moves no time: this one did, the page was written back");
        }
        world.start();
        let mut agent = world.session("s");
        let status = agent.status("a.bin");
        assert_eq!(status["state"], "stale", "kill {kill}: {status}");
        assert_eq!(status["hash"], sha256(fs::read(&path).unwrap()), "{status}");
    }
}

/// Creates an image of a release with all times fixed, as reproducible builds
/// do.
fn image(world: &World, content: &str) -> Option<PathBuf> {
    let root = world.outside().join(content);
    fs::create_dir(&root).unwrap();
    fs::write(root.join("lib.txt"), content).unwrap();
    let image = root.with_extension("squashfs");
    let made = Command::new("mksquashfs")
        .args([&root, &image])
        .args(["-noappend", "-quiet", "-no-progress", "-all-root"])
        .args(["-all-time", "1600000000", "-mkfs-time", "1600000000"])
        .stdout(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        not_tested("images that are replaced: no mksquashfs that fixes times");
        return None;
    }
    Some(image)
}

/// The next release of an image is mounted in place of the previous one: with
/// the same device number, inode, size and times.
#[test]
fn file5_an_image_that_replaces_another_is_found() {
    mounts::apart(|| {
        if !Path::new("/dev/loop-control").exists() {
            return not_tested("images that are replaced: no loop devices");
        }
        for running in [true, false] {
            let mut world = World::new();
            let place = world.path("vendor");
            fs::create_dir(&place).unwrap();
            let (Some(one), Some(two)) = (image(&world, "one"), image(&world, "two")) else {
                return;
            };
            let mount = |image: &Path| {
                mounts::mount("squashfs", image.to_str().unwrap(), "loop,ro", &place);
            };
            mount(&one);
            let mut agent = world.session("s");
            agent.read("vendor/lib.txt");
            assert_eq!(agent.state("vendor/lib.txt"), "fresh");
            let before = times(&place.join("lib.txt"));
            if !running {
                assert_eq!(world.stop(), Some(0));
            }
            mounts::unmount(&place);
            mount(&two);
            assert_eq!(times(&place.join("lib.txt")), before, "the stat tells");
            if !running {
                world.start();
                agent = world.session("s");
            }
            let status = agent.status("vendor/lib.txt");
            assert_eq!(status["state"], "stale", "running {running}: {status}");
            assert_eq!(status["hash"], sha256("two"), "{status}");
            world.healthy();
            world.kill();
            mounts::unmount(&place);
        }
    });
}
