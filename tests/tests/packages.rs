//! The published packages: a Debian package, a static program, and the result
//! of `cargo install`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use touchmark_proto::places;
use touchmark_tests::parts::{heavy, not_tested};
use touchmark_tests::sealed::Sealed;
use touchmark_tests::stay::stay;
use touchmark_tests::systemd::Systemd;
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::world::binary;
use touchmark_tests::{Client, text, user};

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Runs a script of the repository. Returns the last line that it prints.
fn script(name: &str, arguments: &[&Path], environment: &[(&str, &str)]) -> PathBuf {
    let output = Command::new(format!("{TOP}/packaging/{name}"))
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "packaging/{name}: {said}");
    let printed = String::from_utf8(output.stdout).unwrap();
    printed.lines().last().unwrap().into()
}

/// The package's maintainer, as variables.
const NAME: (&str, &str) = ("DEBFULLNAME", "A Packager");
const ADDRESS: (&str, &str) = ("DEBEMAIL", "packager@example.org");

/// Adds the files below a directory whose names end in `end`.
fn below(directory: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, end, found);
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
}

/// Debian's own checks, the maintainer, and links between the documents.
#[test]
fn a_debian_package_is_as_debian_wants_it() {
    if !heavy("a Debian package, checked by lintian") {
        return;
    }
    for tool in ["dpkg-deb", "objdump", "strip", "lintian"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return not_tested(&format!("a Debian package: {tool} is missing"));
        }
    }
    let place = tempfile::tempdir().unwrap();
    let nobody = Command::new(format!("{TOP}/packaging/debian"))
        .arg(place.path())
        .env("TOUCHMARK_BIN", binary())
        .env_remove(NAME.0)
        .env_remove(ADDRESS.0)
        // Neither the user's nor the repository's settings of git.
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ])
        .env("GIT_DIR", place.path())
        .output()
        .unwrap();
    assert!(!nobody.status.success());
    let said = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert!(said.contains("set DEBFULLNAME and DEBEMAIL"), "{said}");

    let program = binary();
    let built = [("TOUCHMARK_BIN", program.to_str().unwrap()), NAME, ADDRESS];
    let package = script("debian", &[place.path()], &built);
    let mut lintian = Command::new("lintian");
    lintian
        .args(["--allow-root", "--fail-on", "error"])
        .arg(&package);
    let output = lintian.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");

    let tree = place.path().join("tree");
    let unpacked = Command::new("dpkg-deb")
        .arg("-x")
        .args([&package, &tree])
        .status();
    assert!(unpacked.unwrap().success());
    let mut pages = Vec::new();
    below(&tree, ".md", &mut pages);
    assert!(pages.len() > 20, "{pages:?}");
    let mut kept = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1) {
            let link = link.split([')', ' ', '#']).next().unwrap();
            if !link.is_empty() && !link.contains(':') {
                let target = page.parent().unwrap().join(link);
                assert!(target.exists(), "{}: {link}", page.display());
                kept += 1;
            }
        }
    }
    assert!(kept > 50, "{kept}");
}

/// A Debian with its package manager alone.
#[test]
fn a_debian_package_comes_and_goes_in_a_fresh_debian() {
    let what = "a Debian package, from the installation to `touchmark uninstall`";
    if !heavy(what) {
        return;
    }
    for tool in ["dpkg-deb", "objdump", "strip"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return not_tested(&format!("{what}: {tool} is missing"));
        }
    }
    let tools = [
        "dash",
        "coreutils",
        "dpkg",
        "tar",
        "gzip",
        "sed",
        "diffutils",
        "libc-bin",
    ];
    let Some(sealed) = Sealed::with(&tools, what) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let program = binary();
    let built = [("TOUCHMARK_BIN", program.to_str().unwrap()), NAME, ADDRESS];
    script("debian", &[place.path()], &built);
    sealed.packages(place.path());
    sealed.libraries_of(&program);
    // Its packages were copied without dpkg's own records.
    for package in ["libc6", "libgcc-s1"] {
        let installed = "Status: install ok installed\nMaintainer: Debian\nVersion: 99\nArchitecture: all\nDescription: a library\n";
        sealed.root.write(
            "/var/lib/dpkg/status",
            &format!("Package: {package}\n{installed}\n"),
        );
    }
    sealed.root.write("/var/lib/dpkg/available", "");
    for directory in ["info", "updates", "triggers"] {
        fs::create_dir_all(sealed.root.path("/var/lib/dpkg").join(directory)).unwrap();
    }
    stay(
        &sealed,
        "Debian",
        "PATH=$PATH:/usr/sbin:/sbin dpkg --install /packages/touchmark_*.deb",
    );
}

/// A system whose C library is not glibc, such as Alpine: its programs are
/// busybox alone, and there is no library at all.
#[test]
fn a_static_program_comes_and_goes_where_there_is_only_busybox() {
    let what = "the static program, from the installation to `touchmark uninstall`, with busybox";
    if !heavy(what) {
        return;
    }
    let Some(sealed) = Sealed::with(&["busybox-static"], what) else {
        return;
    };
    for applet in ["sh", "env", "tar", "gzip", "cat", "mkdir", "cp", "rm"] {
        let name = sealed.root.path("/bin").join(applet);
        std::os::unix::fs::symlink("busybox", name).unwrap();
    }
    let program = script("static", &[], &[("TOUCHMARK_PROFILE", "dev")]);
    let place = tempfile::tempdir().unwrap();
    let variable = format!("TOUCHMARK_BIN_{}", std::env::consts::ARCH.to_uppercase());
    let built = [
        ("TOUCHMARK_ARCHITECTURES", std::env::consts::ARCH),
        (&variable, program.to_str().unwrap()),
    ];
    script("tarballs", &[place.path()], &built);
    sealed.packages(place.path());
    let unpack = "mkdir -p /usr/local && tar -xzf /packages/touchmark-*.tar.gz -C /tmp && \
        cp -r /tmp/touchmark-*/. /usr/local";
    stay(&sealed, "busybox alone, as on Alpine", unpack);
}

/// Built, installed by dpkg into a separate system, used by a user there, and
/// removed again.
#[test]
fn a_debian_package_installs_runs_and_goes() {
    if !heavy("a Debian package, installed in a system of its own") {
        return;
    }
    for tool in ["dpkg-deb", "objdump", "strip"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return not_tested(&format!("a Debian package: {tool} is missing"));
        }
    }
    let Some(systemd) = Systemd::boot() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let program = binary();
    let package = script(
        "debian",
        &[place.path()],
        &[("TOUCHMARK_BIN", program.to_str().unwrap()), NAME, ADDRESS],
    );
    let inside = Path::new("/run/touchmark.deb");
    fs::copy(&package, systemd.path(inside)).unwrap();
    let dpkg = |arguments: &[&str]| {
        let mut dpkg = systemd.root("dpkg");
        dpkg.args(arguments);
        let output = systemd.run(dpkg);
        let said = [output.stdout.as_slice(), &output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(output.status.success(), "dpkg {arguments:?}: {said}");
        said
    };
    dpkg(&["--install", inside.to_str().unwrap()]);
    let status = dpkg(&["--status", "touchmark"]);
    assert!(status.contains("Status: install ok installed"), "{status}");
    assert_eq!(dpkg(&["--verify", "touchmark"]), "");
    let listed = dpkg(&["--listfiles", "touchmark"]);
    for file in [
        "/usr/bin/touchmark",
        "/usr/bin/touchmark-hook",
        "/usr/bin/touchmark-witness",
        "/usr/lib/systemd/user/touchmark@.service",
        "/usr/lib/systemd/user/touchmark@.socket",
        "/usr/share/man/man1/touchmark.1.gz",
        "/usr/share/man/man1/touchmark-service.1.gz",
        "/usr/share/bash-completion/completions/touchmark",
        "/usr/share/zsh/vendor-completions/_touchmark",
        "/usr/share/fish/vendor_completions.d/touchmark.fish",
        "/usr/share/doc/touchmark/copyright",
        "/usr/share/doc/touchmark/changelog.gz",
        "/usr/share/doc/touchmark/changelog.Debian.gz",
    ] {
        assert!(
            listed.lines().any(|line| line == file),
            "{file} in {listed}"
        );
    }

    let workspace = systemd.home().join("w");
    systemd.write(&workspace.join("a.txt"), "one\n");
    let touchmark = |arguments: &[&str]| {
        let mut command = systemd.command("/usr/bin/touchmark");
        command.arg("--workspace").arg(&workspace).args(arguments);
        let output = systemd.run(command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    touchmark(&["service", "install"]);
    let own = systemd
        .path(systemd.home())
        .join(".config/systemd/user/touchmark@.service");
    assert!(!own.exists(), "the package's units serve");
    let read = json!({"session": "s", "path": "a.txt"}).to_string();
    touchmark(&["call", "file/readText", &read]);
    let status: Value = serde_json::from_str(&touchmark(&["call", "status"])).unwrap();
    let unit = format!("touchmark@{}.service", places::key(&workspace));
    assert_eq!(
        systemd.property(&unit, "MainPID"),
        status["pid"].to_string()
    );
    touchmark(&["service", "uninstall"]);
    assert_eq!(systemd.property(&unit, "ActiveState"), "inactive");
    dpkg(&["--purge", "touchmark"]);
    assert!(!systemd.path("/usr/bin/touchmark").exists());
}

/// A daemon process, killed when dropped.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// No library, no `/proc`, no `/dev`, no user's name.
#[test]
fn a_static_program_runs_in_an_empty_root_directory() {
    if !heavy("a program that needs nothing beside it, built and run in an empty root directory") {
        return;
    }
    let program = script("static", &[], &[("TOUCHMARK_PROFILE", "dev")]);
    let root = tempfile::tempdir().unwrap();
    fs::copy(&program, root.path().join("touchmark")).unwrap();
    for directory in ["w", "state", "run", "config"] {
        fs::create_dir(root.path().join(directory)).unwrap();
    }
    fs::write(root.path().join("w/a.txt"), "one\n").unwrap();
    let mut chroot = Command::new("chroot");
    chroot
        .arg(root.path())
        .args(["/touchmark", "--workspace", "/w", "daemon"])
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .envs([
            ("HOME", "/"),
            ("XDG_RUNTIME_DIR", "/run"),
            ("XDG_STATE_HOME", "/state"),
            ("XDG_CONFIG_HOME", "/config"),
        ])
        .stdin(Stdio::null());
    let version = Command::new("chroot")
        .arg(root.path())
        .args(["/touchmark", "--version"])
        .output();
    match version {
        Ok(version) if version.status.success() => {}
        Ok(version) => {
            let said = String::from_utf8_lossy(&version.stderr).into_owned();
            if said.contains("cannot change root") {
                return not_tested(&format!("an empty root directory: {said}"));
            }
            panic!("{said}");
        }
        Err(error) => return not_tested(&format!("an empty root directory: chroot: {error}")),
    }
    let mut daemon = Daemon(chroot.spawn().unwrap());
    let key = places::key(Path::new("/w"));
    let socket = root.path().join(format!("run/touchmark/{key}.sock"));
    let end = Instant::now() + PATIENCE;
    let mut client = loop {
        match Client::connect(&socket) {
            Ok(client) => break client,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        user::pause(5);
    };
    client.ok("file/readText", json!({"session": "s", "path": "a.txt"}));
    fs::write(root.path().join("w/a.txt"), "two\n").unwrap();
    let status = client.ok("file/status", json!({"session": "s"}));
    assert_eq!(text(&status["files"][0], "state"), "stale");
    let read = json!({"session": "s", "path": "a.txt"});
    assert_eq!(text(&client.ok("file/readText", read), "text"), "two\n");
    let write = json!({"session": "s", "path": "a.txt", "text": "three\n"});
    assert_eq!(text(&client.ok("file/write", write), "guard"), "exchange");
    client.ok("shutdown", json!({}));
    assert!(daemon.0.wait().unwrap().success());
}

/// As the README says.
#[test]
fn cargo_installs_the_command() {
    if !heavy("`cargo install --path cli`") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let status = Command::new("cargo")
        .args(["install", "--locked", "--quiet", "--debug", "--no-track"])
        .args(["--path", &format!("{TOP}/cli"), "--root"])
        .arg(place.path())
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let version = Command::new(place.path().join("bin/touchmark"))
        .arg("--version")
        .output();
    assert!(version.unwrap().stdout.starts_with(b"touchmark "));
    assert!(place.path().join("bin/touchmark-hook").is_file());
}
