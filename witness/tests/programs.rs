//! Real programs say, return and leave the same as without a witness, and each
//! file that they leave has a mark.
//!
//! A table with a row for each program. Root runs each row a second time as an
//! ordinary user, for whom `no_new_privs` is set. Heavy rows need
//! `TOUCHMARK_PARTS=1`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use common::{Place, gaps, heavy, not_tested, short};
use rustix::process::geteuid;
use touchmark_witness::Gap;

/// When a row runs, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// It takes seconds.
    Heavy,
    /// The same, and the program refuses to run as root.
    HeavyOrdinary,
}
use When::{Always, Heavy, HeavyOrdinary};

/// A program, and a script that uses it.
#[derive(Debug)]
struct Row {
    name: &'static str,
    when: When,
    /// Programs on the PATH, and patterns of other files' paths.
    needs: &'static [&'static str],
    /// Run by bash in an empty directory. It says nothing that differs from
    /// run to run, such as a time.
    script: &'static str,
}

/// Makes a test of each row.
macro_rules! table {
    ($($name:ident $when:ident [$($need:literal)*] $script:literal)*) => {
        $(
            #[test]
            fn $name() {
                let (name, when) = (stringify!($name), $when);
                Row { name, when, needs: &[$($need),*], script: $script }.run();
            }
        )*
    };
}

table! {
    bash Always [] r#"
        echo a > a; echo b >> a; : > b; cp a c; mv b d; ln a e; ln -s a f; mkdir g
        tee g/h < a > /dev/null; sed -i s/a/x/ a; cat < a; dd if=a of=i 2> /dev/null
        truncate -s 5 i; touch j; install -m 600 a k; rm d; (exec > l; echo l)
        set -C; echo no > a; set +C; diff <(echo p) <(echo q) > m; coproc cat; echo r >&${COPROC[1]}
        read -ru ${COPROC[0]} line; echo "$line" > n; trap 'echo t > o' EXIT
        (bash -c 'kill -KILL $$'; echo $?) 2> /dev/null; sleep 0.01 & wait -n; echo x > /no/such/file; cat /no/such
        mkdir -m 500 q; echo > q/r; rm -f q/r; rmdir q; exit 3"#

    zsh Always ["zsh"] r#"zsh -fc '
        print a > a; print b >| a; print c >> b; (print d > d; exit 3); print $?
        zmodload zsh/files; zf_mv a e; setopt noclobber; print no > b; print f > f > g
        exit 4'"#

    perl Always ["perl"] r#"perl -e '
        open(F, ">", "a") or die; print F "a"; close F; rename "a", "b"; link "b", "c"
        or die; open(F, "+<", "b"); truncate(F, 0); $SIG{CHLD} = sub { $n = 1 };
        for (1 .. 3) { fork or exec "sh", "-c", "echo > d$_" } 1 while wait > 0; print "$n\n";
        unlink "c"; exit 6'"#

    python3 Always ["python3"] r#"python3 - <<'P'
import os, shutil, subprocess, tempfile, threading
open('a', 'w').write('a'); os.rename('a', 'b'); shutil.copy('b', 'c')
with tempfile.NamedTemporaryFile(dir='.', delete=False) as file: name = file.name
os.replace(name, 'd'); subprocess.run(['sh', '-c', 'echo e > e; exit 1'])
print(open('e').read())
def write(n):
    for i in range(20): open(f't{n}', 'a').write('x')
threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
try: open('no/such', 'w')
except OSError as error: print(error)
spawned = os.posix_spawn('/bin/sh', ['sh', '-c', 'echo s; exit 2'], os.environ,
    file_actions=[(os.POSIX_SPAWN_OPEN, 1, 's', os.O_WRONLY | os.O_CREAT, 0o600)])
print(os.waitstatus_to_exitcode(os.waitpid(spawned, 0)[1])); raise SystemExit(4)
P"#

    node Always ["node"] r#"node -e "
        const fs = require('fs'), p = fs.promises; fs.writeFileSync('a', 'a')
        fs.renameSync('a', 'b')
        require('child_process').execSync('echo e > e; exit 0')
        Promise.all([...Array(20).keys()].map(n => p.writeFile('f' + n, 'c')))
            .then(() => p.copyFile('f1', 'd')).then(() => p.rm('f2'))
            .then(() => p.writeFile('no/such', '')).catch(e => console.log(e.code))
            .then(() => process.exit(6))""#

    git Always ["git"] r#"set -e
        git init -q . ; for i in 1 2 3; do echo $i > f$i; done; git add .
        git commit -qm one; git checkout -qb other; echo 4 > f1; git commit -qam two
        git checkout -q -; git merge -q other; git mv f2 f4; git stash -q; git stash pop
        git worktree add -q w other~ 2> /dev/null; git clone -q . c; git gc -q; git fsck
        git log --format=%H%s; git -C c log --format=%H; rm -rf .git w c
        git status 2>&1 | head -c 20"#

    make_j Always ["make" "tar"] r#"
        printf 'all: a b c\na b c: src\n\tcp $< $@\nfail:\n\texit 3\n' > Makefile; echo s > src
        make -s -j4; tar --mtime=@0 --owner=0 --group=0 -cf t.tar a b c; mkdir out
        tar xf t.tar -C out; tar tf t.tar; make -sj8 fail; make -s no"#

    gcc Always ["gcc"] r#"echo 'int main(void){return 5;}' > m.c
        gcc -flto -frandom-seed=1 -g -c m.c && gcc -o m m.o; echo 'int main(' | gcc -x c -; ./m"#

    sqlite3 Always ["sqlite3"] r#"
        sqlite3 d.db 'create table t(a); insert into t values(1); select * from t'
        sqlite3 d.db 'pragma journal_mode=wal; insert into t values(2); select count(*) from t'
        sqlite3 d.db vacuum 'pragma integrity_check'; sqlite3 d.db 'select no'"#

    posix_spawn Always ["gcc"] r#"cat > m.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static int child(void *file) { return open(file, O_WRONLY | O_CREAT, 0600) < 0; }
int main(void) {
    char *words[] = {"sh", "-c", "echo out; exit 3", 0}; int status; pid_t pid;
    posix_spawn_file_actions_t actions; posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "a", O_WRONLY | O_CREAT, 0600);
    if (posix_spawnp(&pid, "sh", &actions, 0, words, environ)) return 1;
    waitpid(pid, &status, 0); printf("%d\n", WEXITSTATUS(status)); fflush(stdout);
    if (!(pid = vfork())) { open("b", O_WRONLY | O_CREAT, 0600); execlp("true", "true", NULL); }
    waitpid(pid, &status, 0);
    for (int i = 0; i < 2; i++) {
        char *stack = malloc(1 << 16), *file = i ? "c" : "d";
        int flags = CLONE_VM | CLONE_FS | (i ? CLONE_VFORK : CLONE_FILES) | SIGCHLD;
        pid = clone(child, stack + (1 << 16), flags, file);
        waitpid(pid, &status, 0); printf("%d\n", WEXITSTATUS(status));
    }
    return 4;
}
C
        gcc -o m m.c && ./m"#

    i386 Always ["gcc" "/usr/lib32/crt1.o"] r#"cat > m.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
    FILE *file = fopen("a", "w"); fputs("text", file); fclose(file); rename("a", "b");
    link("b", "c"); symlink("b", "d"); creat("e", 0600); truncate("b", 2);
    mknod("f", S_IFREG | 0600, 0); unlink("f"); open("/no/such", O_RDWR); perror("open");
    printf("%d\n", (int) sizeof(long)); return 7;
}
C
        gcc -m32 -o m m.c && ./m; code=$?; gcc -m32 -static -o n m.c && ./n; exit $code"#

    static_program Always ["gcc"] r#"cat > m.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    for (int i = 0; i < 9; i++) {
        char name[9]; sprintf(name, "f%d", i); fclose(fopen(name, "w"));
    }
    rename("f1", "g"); remove("f2"); return system("echo > h; exit 3") >> 8;
}
C
        gcc -static -o m m.c && ./m"#

    gdb Always ["gcc" "gdb"] r#"cat > m.c <<'C'
#include <fcntl.h>
int made(int i) { return open(i ? "a" : "b", O_WRONLY | O_CREAT, 0600); }
int main(void) { int one = made(0) > 0; return made(1) > 0 ? 4 + one : 1; }
C
        gcc -g -no-pie -o m m.c
        gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'break made' -ex run -ex 'print i' \
            -ex finish -ex 'catch syscall openat' -ex continue -ex continue -ex continue \
            -ex 'print $_exitcode' ./m 2>&1 | sed 's/process [0-9]*/process N/' | grep -v warning
        exit ${PIPESTATUS[0]}"#

    strace Always ["strace"] r#"
        strace -f -o t -e trace=openat,rename,renameat2 -e signal=none \
            sh -c 'echo x > f; mv f g; exit 3'; echo $?
        grep -c '"f"' t; grep -o '"f".*' t; rm t; strace -qc -o t true; rm t; strace no-such"#

    unshare_user Always ["unshare"] r#"
        unshare -Urm sh -c 'id -u; echo > a; mount -t tmpfs none /mnt; echo > b; echo > /mnt/c
            ls /mnt; exit 3'; echo $?
        unshare -Urpf --mount-proc sh -c 'echo $$; echo > d; echo > /proc/self/fd/1; exit 4'"#

    bubblewrap Always ["bwrap"] r#"
        bwrap --ro-bind / / --bind "$PWD" "$PWD" --dev /dev --proc /proc --unshare-all \
            --die-with-parent sh -c 'echo $$; echo > a; echo no > /etc/no; mv a b; exit 3'
        echo $?; bwrap --ro-bind / / --tmpfs /tmp --bind . /tmp/x --chdir /tmp/x \
            sh -c 'echo > c; pwd; exit 4'"#

    tmux Always ["tmux"] r#"tmux() { command tmux -S ../socket -f /dev/null "$@"; }
        tmux new-session -d "echo x > f; command tmux -S ../socket wait-for -S done; sleep 9" \
            2> /dev/null
        tmux wait-for done; tmux list-sessions -F '#{session_windows}'; tmux kill-server
        tmux list-sessions 2> /dev/null"#

    terminal Always ["script"] r#"
        script -qec 'tty > /dev/null && echo yes; stty size; echo > a; exit 5' /dev/null < /dev/null"#

    docker_client Always ["docker"] r#"export DOCKER_CONFIG=$PWD
        docker --version; docker -H unix:///no/such ps; echo $?; docker context create a \
            --docker host=unix:///no/such; docker context ls -q; docker no-such"#

    java Heavy ["java"] r#"cat > M.java <<'J'
import java.nio.file.*;
public class M { public static void main(String[] words) throws Exception {
    Files.writeString(Path.of("a"), "a"); Files.move(Path.of("a"), Path.of("b"));
    new java.io.FileOutputStream("c").close(); new java.io.RandomAccessFile("d", "rw").close();
    Files.copy(Path.of("b"), Path.of("e")); Files.delete(Path.of("c"));
    Thread[] threads = new Thread[8];
    for (int i = 0; i < 8; i++) { int n = i; threads[i] = new Thread(() -> {
        try { for (int k = 0; k < 50; k++) Files.writeString(Path.of("t" + n), "x" + k); }
        catch (Exception e) { System.out.println(e); } }); threads[i].start(); }
    for (Thread thread : threads) thread.join();
    System.out.println(new ProcessBuilder("sh", "-c", "echo > p; exit 3").start().waitFor());
    System.exit(5);
} }
J
        java M.java"#

    go Heavy ["go"] r#"export GOCACHE=$PWD/../cache GOPATH=$PWD/../go GOFLAGS=-mod=mod GO111MODULE=off
        cat > m.go <<'G'
package main
import ("fmt"; "os"; "os/exec"; "sync")
func main() {
    var group sync.WaitGroup
    for i := 0; i < 50; i++ { group.Add(1); go func(i int) { defer group.Done()
        if e := os.WriteFile(fmt.Sprint("f", i), []byte("x"), 0600); e != nil { fmt.Println(e) }
    }(i) }
    group.Wait(); os.Rename("f1", "g")
    fmt.Println(exec.Command("sh", "-c", "echo > h; exit 3").Run()); os.Exit(4)
}
G
        go vet m.go; go build -o m m.go && ./m; code=$?; chmod -R u+w ../cache; rm -rf ../cache ../go m
        exit $code"#

    cargo Heavy ["cargo"] r#"export CARGO_TARGET_DIR=$PWD/../target CARGO_INCREMENTAL=1
        cargo init -q --vcs none --name m . 2> /dev/null
        echo 'fn main() { std::fs::write("a", "a").unwrap(); std::process::exit(7) }
            #[test] fn t() {}' > src/main.rs
        cargo build -q --offline; cargo test -q --offline | grep -c ' ok'; cargo run -q --offline
        code=$?; rm -rf ../target; exit $code"#

    npm_ci Heavy ["npm"] r#"export npm_config_cache=$PWD/../cache npm_config_update_notifier=false
        mkdir packages; d=
        for i in $(seq 12); do mkdir -p p$i/lib; for k in $(seq 30); do echo $k > p$i/lib/$k.js; done
            echo "{\"name\":\"p$i\",\"version\":\"1.0.0\",\"bin\":\"lib/1.js\",
                \"scripts\":{\"postinstall\":\"echo > made\"}}" > p$i/package.json
            tar --sort=name --mtime=@0 --owner=0 --group=0 --mode=755 --transform s/^p$i/package/ \
                -czf packages/p$i.tgz p$i
            rm -r p$i; d="$d,\"p$i\":\"file:packages/p$i.tgz\""; done
        echo "{\"name\":\"m\",\"version\":\"1.0.0\",\"dependencies\":{${d#,}}}" > package.json
        npm install --offline --no-audit --no-fund --silent --package-lock-only
        npm ci --offline --no-audit --no-fund --silent --foreground-scripts > /dev/null; code=$?
        find node_modules -type f -o -type l | wc -l; ls node_modules/.bin | wc -l
        npm ls --silent | wc -l; rm -rf node_modules packages ../cache; exit $code"#

    pnpm Heavy ["pnpm" "npm"] r#"export npm_config_store_dir=$PWD/../store CI=1
        mkdir packages; d=
        for i in $(seq 12); do mkdir -p p$i/lib; for k in $(seq 30); do echo $k > p$i/lib/$k.js; done
            echo "{\"name\":\"p$i\",\"version\":\"1.0.0\",\"bin\":\"lib/1.js\"}" > p$i/package.json
            tar --sort=name --mtime=@0 --owner=0 --group=0 --mode=755 --transform s/^p$i/package/ \
                -czf packages/p$i.tgz p$i
            rm -r p$i; d="$d,\"p$i\":\"file:packages/p$i.tgz\""; done
        echo "{\"name\":\"m\",\"version\":\"1.0.0\",\"dependencies\":{${d#,}}}" > package.json
        pnpm install --offline --silent; code=$?; find node_modules -type f | wc -l
        find node_modules -type l | wc -l; rm -rf node_modules packages ../store; exit $code"#

    postgresql HeavyOrdinary ["/usr/lib/postgresql/*/bin/initdb"] r#"
        PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin | tail -1)
        initdb -D ../data -A trust -N > /dev/null; echo $?
        pg_ctl -D ../data -l ../log -w -o "-k $PWD/.. -h ''" start > /dev/null; echo $?
        q() { psql -h "$PWD/.." -d postgres -Atc "$1"; }
        q 'create table t as select n from generate_series(1, 20000) n'
        for i in 1 2 3 4; do q "update t set n = n + 20000 where n % 4 = $i - 1" & done; wait
        q 'create index i on t(n)'; q 'vacuum full'; q 'select count(*), sum(n) > 0 from t'
        q "copy (select 1) to '$PWD/out'"; q checkpoint; q 'drop table t'; q 'select no'
        pg_ctl -D ../data -m fast stop > /dev/null; code=$?; rm -rf ../data ../log; exit $code"#

    chromium Heavy ["chromium"] r#"[ $(id -u) = 0 ] && no=--no-sandbox; export HOME=$PWD/../home
        echo '<p id=a>x</p><script>a.textContent = [1, 2].map(n => n * 2)</script>' > a.html
        chromium --headless $no --disable-gpu --user-data-dir=../data --dump-dom \
            "file://$PWD/a.html" 2> /dev/null; echo $?
        chromium --headless $no --disable-gpu --user-data-dir=../data --window-size=99,99 \
            --screenshot="$PWD/a.png" "file://$PWD/a.html" > /dev/null 2>&1; code=$?
        [ -s a.png ] && echo made; rm -rf ../data; exit $code"#
}

/// `nobody`: some programs refuse a user without a name.
const ORDINARY: u32 = 65534;

/// The PATH of that user.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

impl Row {
    fn run(&self) {
        let name = self.name;
        if self.when != Always && !heavy(&format!("{name} below the witness")) {
            return;
        }
        if !geteuid().is_root() {
            return self.compare(false);
        }
        if self.when != HeavyOrdinary {
            self.compare(false);
        }
        self.compare(true);
    }

    /// Runs the script with and without a witness, in directories with the same
    /// path one after the other. Compares what it says and what it leaves.
    fn compare(&self, as_ordinary: bool) {
        let place = Place::new();
        if as_ordinary {
            place.open_to(ORDINARY);
        }
        let by = if as_ordinary {
            " as an ordinary user"
        } else {
            ""
        };
        for need in self.needs.iter().chain(&["bash", "timeout"]) {
            let mut command = place.as_user(as_ordinary.then_some(ORDINARY), PATH);
            let test = "case $1 in /*) ls -d $1 ;; *) command -v $1 ;; esac";
            command.args(["sh", "-c", test, "sh", need]);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            if !command.status().is_ok_and(|status| status.success()) {
                return not_tested(&format!("{} below the witness{by}: no {need}", self.name));
            }
        }
        let words = ["timeout", "-k", "5", "200", "bash", "-c", self.script];
        let run = |below: bool| -> Output {
            let home = place.directory.path().join("home");
            for directory in [&home, &place.root] {
                std::fs::create_dir_all(directory).unwrap();
                if as_ordinary {
                    std::os::unix::fs::chown(directory, Some(ORDINARY), Some(ORDINARY)).unwrap();
                }
            }
            let mut command = place.as_user(as_ordinary.then_some(ORDINARY), PATH);
            if below {
                command.arg(place.program()).arg("--ring").arg(&place.ring);
                command.arg("--root").arg(&place.root).arg("--");
            }
            let fixed = [
                ("GIT_AUTHOR_DATE", "2020-01-01T00:00:00Z"),
                ("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_CONFIG_COUNT", "2"),
                ("GIT_CONFIG_KEY_0", "user.name"),
                ("GIT_CONFIG_VALUE_0", "name"),
                ("GIT_CONFIG_KEY_1", "user.email"),
                ("GIT_CONFIG_VALUE_1", "name@example.org"),
                ("LC_ALL", "C.UTF-8"),
                ("SHELL", "/bin/bash"),
            ];
            command.args(words).envs(fixed).current_dir(&place.root);
            command.env_remove("TMUX").stdin(Stdio::null());
            command.output().unwrap()
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let plain = run(false);
        let expected = files(&place.root);
        std::fs::remove_dir_all(&place.root).unwrap();
        let below = run(true);
        let (found, name) = (files(&place.root), self.name);
        let all = |output: &Output| {
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            format!("{}\n{out}--\n{err}", output.status)
        };
        println!("{name}{by}: {}", all(&plain));
        assert_eq!(all(&plain), all(&below), "{name}{by}");
        assert!(
            expected.keys().eq(found.keys()),
            "{name}{by}: {expected:?} {found:?}"
        );
        for (file, bytes) in &found {
            assert!(expected[file] == *bytes, "{name}{by}: {file:?} differs");
        }
        let records = place.ended();
        let mut gaps = gaps(&records);
        // Some of them write a file of which they have made a hard link.
        gaps.retain(|gap| *gap != Gap::SeveralNames);
        assert_eq!(gaps, [], "{name}{by}");
        let marks: Vec<PathBuf> = { short(&records).into_iter() }.map(|mark| mark.1).collect();
        for file in found.keys() {
            let path = place.root.join(file);
            assert!(marks.contains(&path), "{name}{by}: {file:?} has no mark");
        }
    }
}

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
