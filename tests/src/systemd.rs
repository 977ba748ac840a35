//! A real systemd with a real user manager, over a throw-away overlay of this
//! machine's root, for tests that must not touch a real user's manager. It
//! ends, with everything in it, when this is dropped or when the test is
//! killed.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use rustix::process::geteuid;

use crate::parts::not_tested;
use crate::process::until;
use crate::user::pause;
use crate::wire::PATIENCE;
use crate::world::{binary, finish};

mod place;

pub use place::{Place, told};

/// The user inside. No user outside has this id.
const USER: u32 = 4711;
const HOME: &str = "/home/tmtest";
const RUNTIME: &str = "/run/user/4711";
/// Enters a new control group, then new namespaces.
const OUTER: &str = r#"
    mkdir "$GROUP" && echo $$ > "$GROUP/cgroup.procs" || exit 1
    exec unshare --mount --pid --fork --cgroup --uts --ipc --net \
        --propagation private --kill-child bash -c "$INNER"
"#;

/// Mounts an overlay over this machine's root, which stays unchanged. Home and
/// the temporary directory are on a tmpfs, since an overlay makes no events for
/// changes below it.
const INNER: &str = r#"
    set -e
    base=$(mktemp -d)
    mount -t tmpfs -o size=1g tmpfs "$base"
    mkdir "$base/up" "$base/work" "$base/all"
    mount -t overlay overlay -o lowerdir=/,upperdir="$base/up",workdir="$base/work" "$base/all"
    cp "$PROGRAM" "$base/all/usr/local/bin/touchmark"
    cd "$base/all"
    mount -t proc proc proc
    mount -t sysfs -o ro sysfs sys
    mount -t cgroup2 cgroup2 sys/fs/cgroup
    mount -t tmpfs -o mode=755 tmpfs dev
    for d in null zero full random urandom tty; do
        mknod -m 666 dev/$d c $(stat -c '0x%t 0x%T' /dev/$d | xargs -n1 printf '%d ')
    done
    mkdir -p dev/pts dev/shm mnt
    mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
    ln -sf pts/ptmx dev/ptmx
    mount -t tmpfs tmpfs dev/shm
    mount -t tmpfs -o mode=755 tmpfs run
    mount -t tmpfs -o mode=1777 tmpfs tmp
    mkdir -p home/tmtest
    mount -t tmpfs -o mode=700,uid=4711,gid=4711 tmpfs home/tmtest
    rm -rf etc/systemd/system/*.wants etc/systemd/user/*.wants var/log/journal
    mkdir var/log/journal
    echo 'tmtest:x:4711:4711::/home/tmtest:/bin/sh' >> etc/passwd
    echo 'tmtest:x:4711:' >> etc/group
    echo 'tmtest:*:19000:0:99999:7:::' >> etc/shadow
    mkdir -p var/lib/systemd/linger
    touch var/lib/systemd/linger/tmtest
    mkdir old
    pivot_root . old
    cd /
    umount -l /old
    exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd \
        --log-target=console --show-status=false --unit=multi-user.target < /dev/null
"#;

/// A running systemd.
pub struct Systemd {
    /// The booted system; `None` for the systemd that this program itself runs
    /// under.
    booted: Option<Booted>,
}

struct Booted {
    outer: Child,
    /// The first process inside.
    first: u32,
    group: PathBuf,
    scratch: tempfile::TempDir,
}

impl Systemd {
    /// Boots a systemd, and waits for the user's manager. Returns `None`, and
    /// prints the reason, where that is not possible.
    pub fn boot() -> Option<Self> {
        match Booted::boot() {
            Ok(booted) => Some(Self {
                booted: Some(booted),
            }),
            Err(cause) => {
                not_tested(&format!("under a systemd of its own: {cause}"));
                None
            }
        }
    }

    /// Returns the systemd that this program runs under as root, in a machine
    /// with the same user. Waits for the user's manager.
    pub fn here() -> Self {
        until("no user manager comes up", || {
            Path::new(RUNTIME).join("bus").exists()
        });
        Self { booted: None }
    }

    /// Returns the path outside for a path inside.
    pub fn path(&self, inside: impl AsRef<Path>) -> PathBuf {
        match &self.booted {
            Some(booted) => booted.path(inside.as_ref()),
            None => inside.as_ref().to_owned(),
        }
    }

    /// Returns the user's home directory.
    pub fn home(&self) -> &'static Path {
        Path::new(HOME)
    }

    /// Returns the user's runtime directory.
    pub fn runtime(&self) -> &'static Path {
        Path::new(RUNTIME)
    }

    /// Creates a directory that belongs to the user.
    pub fn directory(&self, inside: &Path) {
        if inside.parent().is_some() && !self.path(inside).exists() {
            self.directory(inside.parent().expect("a parent"));
            fs::create_dir(self.path(inside)).expect("a directory");
            chown(self.path(inside), Some(USER), Some(USER)).expect("a gift");
        }
    }

    /// Writes a file that belongs to the user.
    pub fn write(&self, inside: &Path, text: &str) {
        self.directory(inside.parent().expect("a parent"));
        let mut file = fs::File::create(self.path(inside)).expect("a file");
        chown(self.path(inside), Some(USER), Some(USER)).expect("a gift");
        file.write_all(text.as_bytes()).expect("its text");
    }

    /// Returns a command inside, as the user, with the environment of a login.
    pub fn command(&self, program: &str) -> Command {
        let mut command = self.enter();
        command
            .args(["setpriv", "--reuid", "4711", "--regid", "4711"])
            .args(["--clear-groups", "--inh-caps=-all", "env", "-i"])
            .arg(format!("HOME={HOME}"))
            .arg(format!("XDG_RUNTIME_DIR={RUNTIME}"))
            .args([
                "USER=tmtest",
                "PATH=/usr/local/bin:/usr/bin:/bin",
                "NO_COLOR=1",
            ])
            .arg(program);
        command
    }

    /// Returns a command inside, as root.
    pub fn root(&self, program: &str) -> Command {
        let mut command = self.enter();
        command.arg(program);
        command
    }

    fn enter(&self) -> Command {
        let mut command = match &self.booted {
            Some(booted) => {
                let mut nsenter = Command::new("nsenter");
                nsenter
                    .args(["-t", &booted.first.to_string()])
                    .args(["-m", "-p", "-u", "-i", "-n", "-C", "-w", "--"]);
                nsenter
            }
            None => Command::new("env"),
        };
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command until it exits.
    pub fn run(&self, mut command: Command) -> Output {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("nsenter");
        finish(child, &format!("{command:?}"))
    }

    /// Runs `systemctl --user`, which must succeed. Returns its output.
    pub fn systemctl(&self, arguments: &[&str]) -> String {
        let mut command = self.command("systemctl");
        command.arg("--user").args(arguments);
        let output = self.run(command);
        assert!(
            output.status.success(),
            "systemctl {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// Returns a property of one of the user's units.
    pub fn property(&self, unit: &str, name: &str) -> String {
        self.systemctl(&["show", "--value", "--property", name, unit])
    }
}

impl Booted {
    fn boot() -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !geteuid().is_root() {
            return Err("it takes root".into());
        }
        if !Path::new("/lib/systemd/systemd").exists() {
            return Err("there is none on this machine".into());
        }
        let groups = unified().ok_or("no control groups of version 2 are mounted")?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let group = groups.join(format!("touchmark-{}-{number}", std::process::id()));
        let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
        let log =
            fs::File::create(scratch.path().join("log")).map_err(|error| error.to_string())?;
        let outer = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "bash", "-c", OUTER])
            .env("GROUP", &group)
            .env("INNER", INNER)
            .env("PROGRAM", binary())
            // The mount point is removed with this directory.
            .env("TMPDIR", scratch.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(|error| error.to_string())?)
            .stderr(log)
            .spawn()
            .map_err(|error| format!("setpriv: {error}"))?;
        let mut booted = Self {
            outer,
            first: 0,
            group,
            scratch,
        };
        let end = Instant::now() + PATIENCE;
        loop {
            if let Ok(Some(status)) = booted.outer.try_wait() {
                return Err(format!("{status}; {}", booted.log()));
            }
            // At first this is the process of a command that prepares the
            // system.
            booted.first = booted.only_child().unwrap_or(0);
            if booted.first != 0 && booted.path(Path::new(RUNTIME)).join("bus").exists() {
                return Ok(booted);
            }
            if Instant::now() > end {
                return Err(format!("no user manager comes up; {}", booted.log()));
            }
            pause(10);
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default()
    }

    fn only_child(&self) -> Option<u32> {
        let outer = self.outer.id();
        let children = format!("/proc/{outer}/task/{outer}/children");
        fs::read_to_string(children).ok()?.trim().parse().ok()
    }

    fn path(&self, inside: &Path) -> PathBuf {
        let relative = inside.strip_prefix("/").unwrap_or(inside);
        PathBuf::from(format!("/proc/{}/root", self.first)).join(relative)
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut command = self.root("journalctl");
            command.args(["--no-pager", "--lines=60"]);
            if let Ok(output) = command.output() {
                eprintln!("the journal:\n{}", String::from_utf8_lossy(&output.stdout));
            }
        }
    }
}

impl Drop for Booted {
    fn drop(&mut self) {
        // All processes inside end with the first one, which ends with this
        // process.
        let _ended = self.outer.kill();
        let _ended = self.outer.wait();
        let end = Instant::now() + PATIENCE;
        while self.group.exists() && Instant::now() < end {
            remove_groups(&self.group);
            pause(5);
        }
    }
}

/// Returns the mount point of control groups of version 2.
fn unified() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    mount.split(' ').nth(4).map(PathBuf::from)
}

/// Removes the groups below first. A group in use stays for now.
fn remove_groups(group: &Path) {
    for below in fs::read_dir(group).into_iter().flatten().flatten() {
        if below.path().is_dir() {
            remove_groups(&below.path());
        }
    }
    let _in_use = fs::remove_dir(group);
}
