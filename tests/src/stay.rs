//! From the installation of touchmark to its removal, in a root directory where
//! it never was: what each step does, what is left, and how long it takes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::sealed::Sealed;

/// The user's settings of an agent, before touchmark comes and after it went.
const SETTINGS: &str = "{\n  \"theme\": \"dark\"\n}\n";

/// The steps after the installation, in one go, since the daemon that `setup`
/// starts must still run when `uninstall` comes. Prints for each step its name
/// and the system's uptime at its end.
const STEPS: &str = r#"
ended() { read -r now _ < /proc/uptime; echo "step $1 $now"; }
cd "$HOME/project"
ended begin
touchmark demo
ended demo
touchmark setup --yes
ended setup
case $(cat "$HOME/.claude/settings.json") in *'touchmark-hook claude'*) ;; *) exit 1 ;; esac
touchmark status > /dev/null
ended use
touchmark uninstall --state --yes
ended uninstall
"#;

/// Installs touchmark by one command, runs the tour, connects Claude Code,
/// starts a daemon, and takes all of it away but the program. Checks that the
/// root directory then has the files that it had before the tour, to the byte.
/// Prints how long each step took; `system` says where.
///
/// # Panics
/// If a step fails or leaves something.
pub fn stay(sealed: &Sealed, system: &str, install: &str) {
    let home = sealed.root.path("/tmp/home");
    fs::create_dir_all(home.join("project/.git")).expect("a project");
    fs::create_dir_all(home.join(".claude")).expect("an agent's directory");
    fs::write(home.join(".claude/settings.json"), SETTINGS).expect("an agent's settings");

    let began = Instant::now();
    sealed.run(&["sh", "-euc", install]);
    let mut said = format!("{system}: install {:.1} s", began.elapsed().as_secs_f64());

    let before = files(&sealed.root.path("/"));
    let printed = sealed.run(&["sh", "-euc", STEPS]);
    assert!(printed.contains("\nDone: "), "no tour: {printed}");
    let mut last = None;
    for line in printed.lines() {
        let Some((step, now)) = line
            .strip_prefix("step ")
            .and_then(|line| line.split_once(' '))
        else {
            continue;
        };
        let now: f64 = now.parse().expect("an uptime");
        if let Some(last) = last.replace(now) {
            said += &format!(", {step} {:.1} s", now - last);
        }
    }
    assert!(said.contains("uninstall"), "{printed}");
    let after = files(&sealed.root.path("/"));
    let changed: Vec<&PathBuf> = before
        .keys()
        .chain(after.keys())
        .filter(|path| before.get(*path) != after.get(*path))
        .collect();
    assert!(
        changed.is_empty(),
        "left or changed: {changed:?}\n{printed}"
    );
    println!("measured: {said}");
}

/// The files below a directory, with their bytes.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut below = vec![root.to_owned()];
    while let Some(directory) = below.pop() {
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() {
                below.push(entry.path());
            } else if kind.is_file() {
                let bytes = fs::read(entry.path()).expect("a file");
                found.insert(entry.path(), bytes);
            } else {
                let target = fs::read_link(entry.path()).unwrap_or_default();
                found.insert(entry.path(), target.into_os_string().into_encoded_bytes());
            }
        }
    }
    found
}
