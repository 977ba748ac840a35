//! A small virtual machine whose power can be cut: qemu without acceleration, a
//! distribution's kernel, and a file system in memory with a few programs of
//! this machine.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

mod root;

pub use root::Root;

/// The longest time without a line on the console, which is printed to every
/// few seconds. It ends a machine that hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// Kernel modules for the disk, each after those that it needs.
const MODULES: [&str; 6] = [
    "virtio/virtio_ring.ko",
    "virtio/virtio.ko",
    "virtio/virtio_pci_modern_dev.ko",
    "virtio/virtio_pci_legacy_dev.ko",
    "virtio/virtio_pci.ko",
    "block/virtio_blk.ko",
];

/// Returns the value of a word of the kernel's command line. Runs inside a
/// machine.
pub fn word(name: &str) -> Option<u64> {
    let line = fs::read_to_string("/proc/cmdline").ok()?;
    let mut words = line.split_whitespace();
    words.find_map(|one| one.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

/// Prints one line on the console. Runs inside a machine.
pub fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("the console");
}

/// The parts of a machine.
pub struct Parts {
    kernel: PathBuf,
    initrd: PathBuf,
    place: PathBuf,
    /// The disks in the order of their names inside: `/dev/vda`, `/dev/vdb`.
    disks: Vec<PathBuf>,
}

impl Parts {
    /// Builds what the machine boots: `programs` (paths here, names inside) and
    /// the script `init`, which runs when the first disk is mounted at `/disk`.
    ///
    /// # Errors
    /// The program or package that is missing on this machine.
    pub fn new(place: &Path, programs: &[(&Path, &str)], init: &str) -> Result<Self, String> {
        for program in ["qemu-system-x86_64", "busybox", "cpio", "mkfs.ext4", "ldd"] {
            if find(program).is_none() {
                return Err(format!("{program} is missing"));
            }
        }
        let (kernel, drivers) = kernel().ok_or("no kernel of linux-image-cloud-amd64")?;
        let root = place.join("root");
        for directory in ["proc", "sys", "dev", "run", "tmp", "bin", "modules", "disk"] {
            fs::create_dir_all(root.join(directory)).map_err(|e| e.to_string())?;
        }
        let busybox = find("busybox").ok_or("busybox is missing")?;
        fs::copy(busybox, root.join("bin/busybox")).map_err(|e| e.to_string())?;
        let mut load = String::new();
        for module in MODULES {
            let name = module.rsplit('/').next().unwrap_or(module);
            if fs::copy(drivers.join(module), root.join("modules").join(name)).is_ok() {
                load.push_str(&format!("insmod /modules/{name}\n"));
            }
        }
        for (program, name) in programs {
            with_libraries(program, &root, name);
        }
        let script = format!(
            "#!/bin/busybox sh\n/bin/busybox --install -s /bin\nexport PATH=/bin\n\
             mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev\n\
             mount -t tmpfs run /run; mount -t tmpfs tmp /tmp\n{load}\
             mount -t ext4 /dev/vda /disk && {init}\n\
             echo FAILED: it is over; poweroff -f\n"
        );
        let path = root.join("init");
        fs::write(&path, script).expect("the init");
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
        let initrd = place.join("initrd");
        let packed = Command::new("sh")
            .args(["-c", "find . | cpio -o -H newc --quiet > ../initrd"])
            .current_dir(&root)
            .status_ok();
        assert!(packed, "packing {}", initrd.display());
        Ok(Self {
            kernel,
            initrd,
            place: place.to_owned(),
            disks: Vec::new(),
        })
    }

    /// Adds a disk of this size in MiB, with no blocks reserved for root. It
    /// contains the files of the directory `holds`; `None` for an empty disk.
    pub fn disk(&mut self, mebibytes: u64, holds: Option<&Path>) {
        let disk = self.place.join(format!("disk{}", self.disks.len()));
        let file = fs::File::create(&disk).expect("a disk");
        file.set_len(mebibytes << 20).expect("its size");
        let mut mkfs = Command::new("mkfs.ext4");
        mkfs.args(["-qF", "-m", "0"]);
        if let Some(directory) = holds {
            mkfs.arg("-d").arg(directory);
        }
        assert!(mkfs.arg(&disk).status_ok(), "making {}", disk.display());
        self.disks.push(disk);
    }

    /// Turns the machine on. `words` are added to its `/proc/cmdline`.
    pub fn boot(&self, words: &str) -> Machine {
        let mut qemu = Command::new("setpriv")
            // Turns the machine off when this test is killed, too.
            .args(["--pdeathsig", "KILL", "qemu-system-x86_64"])
            // Never kvm: where it is offered and does not work, it hangs.
            .args(["-accel", "tcg", "-cpu", "max", "-m", "512", "-nographic"])
            .args(["-nodefaults", "-serial", "stdio", "-no-reboot"])
            .arg("-kernel")
            .arg(&self.kernel)
            .arg("-initrd")
            .arg(&self.initrd)
            .args(self.disks.iter().flat_map(|disk| {
                let disk = disk.to_str().expect("a UTF-8 path");
                let drive = format!("file={disk},if=virtio,format=raw");
                ["-drive".to_owned(), drive]
            }))
            .arg("-append")
            .arg(format!("console=ttyS0 quiet panic=-1 {words}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("qemu");
        let console = BufReader::new(qemu.stdout.take().expect("the console"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in console.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Machine {
            qemu,
            lines,
            heard: Vec::new(),
            end: Instant::now() + PATIENCE,
        }
    }
}

/// A running machine. It is turned off when dropped.
pub struct Machine {
    qemu: Child,
    lines: Receiver<String>,
    heard: Vec<String>,
    end: Instant,
}

impl Machine {
    /// Returns the next line on its console; `None` once it is off.
    pub fn line(&mut self) -> Option<String> {
        let left = self.end.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => {
                self.end = Instant::now() + PATIENCE;
                self.heard.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the machine hangs:\n{}", self.console()),
        }
    }

    /// Returns the whole output so far.
    pub fn console(&self) -> String {
        self.heard.join("\n")
    }

    /// Cuts its power, and returns the lines that it had printed and that were
    /// not read yet.
    pub fn cut(mut self) -> Vec<String> {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
        let mut rest = Vec::new();
        while let Some(line) = self.line() {
            rest.push(line);
        }
        rest
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
        let _ = std::io::stdout().flush();
    }
}

trait StatusOk {
    fn status_ok(&mut self) -> bool;
}

impl StatusOk for Command {
    fn status_ok(&mut self) -> bool {
        self.stdin(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

fn find(program: &str) -> Option<PathBuf> {
    ["/bin", "/usr/bin", "/sbin", "/usr/sbin"]
        .iter()
        .map(|directory| Path::new(directory).join(program))
        .find(|path| path.exists())
}

/// Returns the newest installed kernel for such machines, and the directory of
/// its drivers.
fn kernel() -> Option<(PathBuf, PathBuf)> {
    let mut versions: Vec<String> = fs::read_dir("/boot")
        .ok()?
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let version = name.strip_prefix("vmlinuz-")?;
            version.contains("cloud").then(|| version.to_owned())
        })
        .collect();
    versions.sort();
    let version = versions.pop()?;
    let drivers = Path::new("/lib/modules")
        .join(&version)
        .join("kernel/drivers");
    Some((
        Path::new("/boot").join(format!("vmlinuz-{version}")),
        drivers,
    ))
}

/// Copies a program to a name in another root directory, with the libraries
/// that it is linked to.
fn with_libraries(program: &Path, root: &Path, name: &str) {
    let to = root.join(name.trim_start_matches('/'));
    fs::copy(program, &to).expect("a program");
    // Without `strip`, the copy is only larger.
    let _larger = Command::new("strip").arg(&to).status_ok();
    let linked = Command::new("ldd").arg(program).output().expect("ldd");
    for word in String::from_utf8_lossy(&linked.stdout).split_whitespace() {
        if word.starts_with('/') {
            let library = root.join(word.trim_start_matches('/'));
            fs::create_dir_all(library.parent().expect("a parent")).expect("a directory");
            fs::copy(word, library).expect("a library");
        }
    }
}
