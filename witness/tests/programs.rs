//! Real programs give the same files, output and status as without, and a mark
//! for each file that they make.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{Place, gaps, has, short};

/// Returns the files below a directory, with their contents.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                left.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().to_owned();
                found.insert(name, std::fs::read(&path).unwrap_or_default());
            }
        }
    }
    found
}

/// Runs a script with and without a witness, in directories with the same path
/// one after the other. Compares what it says and what it leaves, and checks
/// that each file that it leaves has a mark.
fn compare(script: &str) {
    let place = Place::new();
    let run = |command: &mut Command| -> Output {
        let fixed = [
            ("GIT_AUTHOR_DATE", "2020-01-01T00:00:00Z"),
            ("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "user.name"),
            ("GIT_CONFIG_VALUE_0", "name"),
            ("GIT_CONFIG_KEY_1", "user.email"),
            ("GIT_CONFIG_VALUE_1", "name@example.org"),
        ];
        command.envs(fixed).current_dir(&place.root);
        command.output().unwrap()
    };
    let plain = run(Command::new("bash").args(["-c", script]));
    let expected = files(&place.root);
    std::fs::remove_dir_all(&place.root).unwrap();
    std::fs::create_dir(&place.root).unwrap();
    let below = run(&mut place.witness(["bash", "-c", script]));
    let found = files(&place.root);
    let text = String::from_utf8_lossy(&below.stderr).into_owned();
    assert_eq!(plain.status.code(), below.status.code(), "{text}");
    assert_eq!(
        String::from_utf8_lossy(&plain.stdout),
        String::from_utf8_lossy(&below.stdout)
    );
    assert_eq!(String::from_utf8_lossy(&plain.stderr), text);
    assert!(expected.keys().eq(found.keys()), "{expected:?} {found:?}");
    let records = place.ended();
    assert_eq!(gaps(&records), []);
    let marks: Vec<PathBuf> = { short(&records).into_iter() }.map(|mark| mark.1).collect();
    for name in found.keys() {
        // What lies in a directory that was renamed has a mark with the old one.
        let path = place.root.join(name);
        assert!(marks.contains(&path), "{name:?} has no mark");
    }
}

#[test]
fn shells_write_with_marks() {
    compare(
        "echo a > a; echo b >> a; : > b; cp a c; mv b d; ln a e; ln -s a f; mkdir g
        tee g/h < a > /dev/null; sed -i s/a/x/ a; cat < a; dd if=a of=i 2> /dev/null
        truncate -s 5 i; touch j; install -m 600 a k; rm d; (exec > l; echo l); exit 3",
    );
}

#[test]
fn python_writes_with_marks() {
    if !has("python3") {
        return;
    }
    compare(
        "python3 - <<'P'
import os, shutil, subprocess, tempfile
open('a', 'w').write('a'); os.rename('a', 'b'); shutil.copy('b', 'c')
with tempfile.NamedTemporaryFile(dir='.', delete=False) as file: name = file.name
os.replace(name, 'd'); subprocess.run(['sh', '-c', 'echo e > e; exit 1'])
print(open('e').read()); raise SystemExit(4)
P",
    );
}

#[test]
fn git_writes_with_marks() {
    if !has("git") {
        return;
    }
    compare(
        "set -e; git init -q . ; for i in 1 2 3; do echo $i > f$i; done; git add .
        git commit -qm one; git checkout -qb other; echo 4 > f1; git commit -qam two
        git checkout -q -; git merge -q other; git mv f2 f4; git stash -q; git stash pop
        git log --format=%H%s; rm -rf .git",
    );
}

#[test]
fn make_and_tar_write_with_marks() {
    if !has("make") || !has("tar") {
        return;
    }
    compare(
        "printf 'all: a b c\\na b c: src\\n\\tcp $< $@\\n' > Makefile; echo s > src; make -s -j4
        tar cf t.tar a b c; mkdir out; tar xf t.tar -C out; tar tf t.tar; make -s no; ",
    );
}

#[test]
fn a_compiler_writes_with_marks() {
    if !has("gcc") {
        return;
    }
    compare("echo 'int main(void){return 5;}' > m.c; gcc -o m m.c && ./m");
}

#[test]
fn sqlite_writes_with_marks() {
    if !has("sqlite3") {
        return;
    }
    compare(
        "sqlite3 d.db 'create table t(a); insert into t values(1); select * from t'
        sqlite3 d.db 'pragma journal_mode=wal; insert into t values(2); select count(*) from t'",
    );
}

#[test]
fn node_writes_with_marks() {
    if !has("node") {
        return;
    }
    compare(
        "node -e \"const fs = require('fs'); fs.writeFileSync('a', 'a'); fs.renameSync('a', 'b')
        fs.promises.writeFile('c', 'c').then(() => fs.promises.copyFile('c', 'd'))
            .then(() => { console.log('done'); process.exit(6) })\"",
    );
}

#[test]
fn a_debugger_and_a_tracer_work() {
    if !has("strace") {
        return;
    }
    let place = Place::new();
    let output = place.shell("strace -f -o trace sh -c 'echo x > f; exit 3'");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let records = place.ended();
    let written = short(&records).into_iter();
    let written: Vec<_> = written.map(|mark| mark.1).collect();
    assert!(written.contains(&place.root.join("f")));
}
