//! The root directory of a whole Debian system, made from packages that are installed on this
//! machine: systemd as the first process, D-Bus, PAM, logind.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::with_libraries;

/// The packages. Libraries are not listed, since they are found by what is linked to them.
const PACKAGES: [&str; 12] = [
    "systemd",
    "libpam-systemd",
    "libpam-modules",
    "dbus",
    "dbus-daemon",
    "dbus-system-bus-common",
    "dbus-session-bus-common",
    "dbus-user-session",
    "dash",
    "coreutils",
    "util-linux",
    "mount",
];

/// Directories that nothing in the machine reads.
const LEFT_OUT: [&str; 5] = [
    "/usr/share/doc/",
    "/usr/share/man/",
    "/usr/share/locale/",
    "/usr/share/lintian/",
    "/usr/share/bash-completion/",
];

/// Mount points, the journal's directory, and root's home.
const DIRECTORIES: [&str; 7] = [
    "proc",
    "sys",
    "dev",
    "run",
    "tmp",
    "root",
    "var/log/journal",
];

/// Files that are in no package. systemd adds its own users at the first boot.
const FILES: [(&str, &str); 8] = [
    ("/etc/passwd", "root:x:0:0::/root:/bin/sh\n"),
    ("/etc/group", "root:x:0:\n"),
    ("/etc/shadow", "root:*:19000:0:99999:7:::\n"),
    ("/etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
    (
        "/etc/nsswitch.conf",
        "passwd: files\ngroup: files\nshadow: files\n",
    ),
    (
        "/etc/pam.d/common-account",
        "account required pam_permit.so\n",
    ),
    (
        "/etc/pam.d/common-session-noninteractive",
        "session required pam_permit.so\n",
    ),
    ("/etc/pam.d/other", "auth required pam_deny.so\n"),
];

/// A directory that becomes a machine's disk.
pub struct Root(PathBuf);

impl Root {
    /// Fills a new directory with a system that boots.
    ///
    /// # Errors
    /// The package that is missing on this machine.
    pub fn new(place: &Path) -> Result<Self, String> {
        Self::of(&PACKAGES, place)
    }

    /// Fills a new directory with packages that are installed on this machine.
    ///
    /// # Errors
    /// The package that is missing on this machine.
    pub fn of(packages: &[&str], place: &Path) -> Result<Self, String> {
        let root = Self(place.to_owned());
        for directory in DIRECTORIES {
            fs::create_dir_all(place.join(directory)).expect("a directory");
        }
        fs::set_permissions(place.join("tmp"), fs::Permissions::from_mode(0o1777)).expect("a mode");
        for name in ["bin", "sbin", "lib", "lib64"] {
            if let Ok(target) = fs::read_link(Path::new("/").join(name)) {
                fs::create_dir_all(place.join(&target)).expect("a directory");
                symlink(target, place.join(name)).expect("a link");
            }
        }
        let mut programs = Vec::new();
        for package in packages {
            let listed = Command::new("dpkg").args(["-L", package]).output();
            let listed = listed.map_err(|error| format!("dpkg: {error}"))?;
            if !listed.status.success() {
                return Err(format!("Debian's {package} is missing"));
            }
            for path in String::from_utf8_lossy(&listed.stdout).lines() {
                let path = Path::new(path);
                let left_out = LEFT_OUT.iter().any(|place| path.starts_with(place));
                if !left_out && root.take(path) && is_program(path) {
                    programs.push(path.to_owned());
                }
            }
        }
        root.libraries(&programs);
        for (path, text) in FILES {
            root.write(path, text);
        }
        Ok(root)
    }

    /// Returns the current path of a file inside.
    pub fn path(&self, inside: impl AsRef<Path>) -> PathBuf {
        let inside = inside.as_ref();
        self.0.join(inside.strip_prefix("/").unwrap_or(inside))
    }

    /// Appends a text to a file, which is created if it does not exist.
    pub fn write(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, before + text).expect("a file");
    }

    /// Copies a program, with the libraries that it is linked to.
    pub fn program(&self, program: &Path, inside: &str) {
        with_libraries(program, &self.0, inside);
    }

    /// Returns the path inside for a path of this machine, with the symlinks of its directory
    /// resolved.
    fn place(&self, path: &Path) -> PathBuf {
        let parent = fs::canonicalize(path.parent().expect("a parent")).expect("a directory");
        self.path(parent.join(path.file_name().expect("a name")))
    }

    /// Copies one path of this machine. Returns whether it was a file.
    fn take(&self, path: &Path) -> bool {
        // The administrator may have removed it.
        let found = fs::symlink_metadata(path).ok();
        let Some(found) = found.filter(|found| !found.is_dir()) else {
            return false;
        };
        let place = self.place(path);
        fs::create_dir_all(place.parent().expect("a parent")).expect("a directory");
        if found.is_symlink() {
            let target = fs::read_link(path).expect("a link's target");
            // It exists already where two names resolve to one directory.
            let _there = symlink(target, place);
            return false;
        }
        // A file that this user may not read is not needed in the machine.
        fs::copy(path, place).is_ok()
    }

    /// Copies a file, or a directory with everything below it, and the libraries that programs in
    /// it are linked to.
    pub fn tree(&self, from: &Path, inside: &str) {
        let to = self.path(inside);
        fs::create_dir_all(to.parent().expect("a parent")).expect("a directory");
        let copied = Command::new("cp").arg("-a").arg(from).arg(&to).status();
        assert!(copied.is_ok_and(|status| status.success()), "{inside}");
        let mut programs = Vec::new();
        let mut below = vec![to];
        while let Some(path) = below.pop() {
            let kind = fs::symlink_metadata(&path).expect("a file").file_type();
            if kind.is_dir() {
                let entries = fs::read_dir(path).expect("a directory");
                below.extend(entries.flatten().map(|entry| entry.path()));
            } else if kind.is_file() && is_program(&path) {
                programs.push(path);
            }
        }
        if !programs.is_empty() {
            self.libraries(&programs);
        }
    }

    fn libraries(&self, programs: &[PathBuf]) {
        let linked = Command::new("ldd").args(programs).output().expect("ldd");
        for word in String::from_utf8_lossy(&linked.stdout).split_whitespace() {
            let path = Path::new(word);
            if word.starts_with('/') && !word.ends_with(':') && !self.place(path).exists() {
                let place = self.place(path);
                fs::create_dir_all(place.parent().expect("a parent")).expect("a directory");
                fs::copy(path, place).expect("a library");
            }
        }
    }
}

/// Returns whether a file begins as programs and libraries do.
fn is_program(path: &Path) -> bool {
    use std::io::Read as _;
    let mut magic = [0; 4];
    fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
        && magic == *b"\x7fELF"
}
