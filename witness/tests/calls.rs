//! Each system call gives the right mark, in each way to name a path.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use common::{Place, gaps, has, is_root, marks, processes, short};
use touchmark_witness::Operation::{
    Created, DirectoryRemoved, Exchanged, Linked, LinkedFrom, Opened, OpenedTruncating,
    RenamedFrom, RenamedTo, Symlinked, Temporary, Truncated, Unlinked,
};
use touchmark_witness::{Gap, Operation, Record};

/// Compares marks with what is expected, by paths below the root.
fn expect(place: &Place, records: &[Record], expected: &[(Operation, &str, bool)]) {
    let expected: Vec<_> = { expected.iter() }
        .map(|(operation, path, object)| (*operation, place.root.join(path), *object))
        .collect();
    assert_eq!(short(records), expected);
    assert_eq!(gaps(records), []);
}

/// Compiles a C program outside the root; `None` if gcc cannot.
fn compiled(place: &Place, source: &str, name: &str, options: &[&str]) -> Option<PathBuf> {
    let file = place.directory.path().join("source.c");
    let program = place.directory.path().join(name);
    std::fs::write(&file, source).unwrap();
    let mut gcc = std::process::Command::new("gcc");
    gcc.args(options).arg("-o").args([&program, &file]);
    gcc.output().unwrap().status.success().then_some(program)
}

fn has_part(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[test]
fn opens_give_marks_by_their_flags_and_reads_give_none() {
    let place = Place::new();
    std::fs::write(place.root.join("there"), "content").unwrap();
    let records = place.python(
        r#"
os.close(os.open('there', os.O_RDONLY))
os.listdir('.'); os.stat('there'); open('there').read()
os.close(os.open('.', os.O_PATH)); os.close(os.open('there', os.O_PATH | os.O_RDWR))
os.close(os.open('there', os.O_WRONLY))
os.close(os.open('there', os.O_RDWR | os.O_APPEND))
os.close(os.open('there', os.O_RDONLY | os.O_TRUNC))
os.close(os.open('there', os.O_WRONLY | os.O_CREAT))
os.close(os.open('there', os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
os.close(os.open('new', os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
os.close(os.open('.', os.O_RDWR | os.O_TMPFILE))
try: os.open('there', os.O_WRONLY | os.O_CREAT | os.O_EXCL)
except FileExistsError: pass
try: os.open('no/where', os.O_WRONLY | os.O_CREAT)
except FileNotFoundError: pass
try: os.open('.', os.O_WRONLY)
except IsADirectoryError: pass
os.truncate('there', 3)
how = struct.pack('QQQ', os.O_RDWR, 0, 0)
os.close(call('openat2', CWD, 'there', how, 24))
os.close(call('openat2', CWD, 'there', struct.pack('QQQ', os.O_RDONLY, 0, 0), 24))
inside = os.open('.', os.O_PATH)
how = struct.pack('QQQ', os.O_RDWR, 0, 0x10)
os.close(call('openat2', inside, '/../there', how, 24))
if 'creat' in N:
    os.close(call('creat', 'created', 0o600)); os.close(call('creat', 'created', 0o600))
else:
    os.close(os.open('created', os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
    os.close(os.open('created', os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
call('mknodat', CWD, 'node', 0o600, 0)
os.mkfifo('fifo'); os.close(os.open('fifo', os.O_RDWR))
"#,
    );
    let expected = [
        (Opened, "there", true),
        (Opened, "there", true),
        (OpenedTruncating, "there", true),
        (Created, "there", true),
        (OpenedTruncating, "there", true),
        (Created, "new", false),
        (Temporary, "", false),
        // It fails, so the witness does not look at what is there.
        (Created, "there", false),
        (Truncated, "there", true),
        (Opened, "there", true),
        (Opened, "there", true),
        (Created, "created", false),
        (OpenedTruncating, "created", true),
        (Created, "node", false),
    ];
    expect(&place, &records, &expected);
    // The identities are those of the file system.
    let (root, file) = (place.root.metadata(), place.root.join("there").metadata());
    let (root, file) = (root.unwrap(), file.unwrap());
    let device = |meta: &std::fs::Metadata| {
        let device = meta.dev();
        u64::from(rustix::fs::major(device)) << 32 | u64::from(rustix::fs::minor(device))
    };
    let mark = marks(&records)[0];
    assert_eq!(mark.directory.inode, root.ino());
    assert_eq!(mark.directory.device, device(&root));
    let object = mark.object.unwrap();
    assert_eq!((object.inode, object.device), (file.ino(), device(&file)));
    if let Ok(born) = file.created() {
        let born = born.duration_since(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(u128::from(object.born), born.as_nanos());
    }
    // `python3` may be a script that runs other programs first.
    let all = processes(&records).into_iter();
    let process = { all.filter(|one| one.process == mark.process) }.next_back();
    let process = process.unwrap();
    assert!(has_part(&process.command_line, b"python3\0-c\0"));
    assert!(has_part(&process.program, b"python"));
}

#[test]
fn names_are_made_moved_and_removed_with_marks() {
    let place = Place::new();
    let records = place.python(
        r#"
open('a', 'w').close()
call('renameat', CWD, 'a', CWD, 'b')
if 'rename' in N: call('rename', 'b', 'c')
else: call('renameat', CWD, 'b', CWD, 'c')
open('d', 'w').close()
call('renameat2', CWD, 'c', CWD, 'd', 2)
call('renameat2', CWD, 'c', CWD, 'd', 1, fails=True)
call('renameat2', CWD, 'c', CWD, 'd', 0)
call('linkat', CWD, 'd', CWD, 'e', 0)
if 'link' in N: call('link', 'e', 'f')
else: call('linkat', CWD, 'e', CWD, 'f', 0)
call('symlinkat', 'target', CWD, 'g')
if 'symlink' in N: call('symlink', 'target', 'h')
else: call('symlinkat', 'target', CWD, 'h')
if 'unlink' in N: call('unlink', 'f')
else: call('unlinkat', CWD, 'f', 0)
call('unlinkat', CWD, 'g', 0)
os.mkdir('i'); os.mkdir('j')
if 'rmdir' in N: call('rmdir', 'i')
else: call('unlinkat', CWD, 'i', 0x200)
call('unlinkat', CWD, 'j', 0x200)
call('unlinkat', CWD, 'none', 0, fails=True)
call('renameat', CWD, 'none', CWD, 'd', fails=True)
# A file without a name gets one.
t = os.open('.', os.O_RDWR | os.O_TMPFILE)
call('linkat', CWD, f'/proc/self/fd/{t}', CWD, 'k', 0x400)
"#,
    );
    let expected = [
        (Created, "a", false),
        (RenamedFrom, "a", true),
        (RenamedTo, "b", false),
        (RenamedFrom, "b", true),
        (RenamedTo, "c", false),
        (Created, "d", false),
        (Exchanged, "c", true),
        (Exchanged, "d", true),
        (RenamedFrom, "c", true),
        (RenamedTo, "d", true),
        (RenamedFrom, "c", true),
        (RenamedTo, "d", true),
        (LinkedFrom, "d", true),
        (Linked, "e", false),
        (LinkedFrom, "e", true),
        (Linked, "f", false),
        (Symlinked, "g", false),
        (Symlinked, "h", false),
        (Unlinked, "f", true),
        (Unlinked, "g", true),
        (DirectoryRemoved, "i", true),
        (DirectoryRemoved, "j", true),
        (Temporary, "", false),
    ];
    let mut records = records;
    records.retain(|record| !matches!(record, Record::Happened { .. }));
    let (most, last) = records.split_at(records.len() - 2);
    expect(&place, most, &expected);
    let last = marks(last);
    let (from, to) = (last[0], last[1]);
    assert_eq!((from.operation, &from.name[..]), (LinkedFrom, &b""[..]));
    assert_eq!((to.operation, &to.name[..]), (Linked, &b"k"[..]));
    let inode = place.root.join("k").metadata().unwrap().ino();
    assert_eq!(from.object.unwrap().inode, inode);
}

#[test]
fn every_way_to_name_a_path_gives_the_same_file() {
    let place = Place::new();
    let root = place.root.to_str().unwrap().to_owned();
    std::fs::create_dir_all(place.root.join("a/b")).unwrap();
    let records = place.python(&format!(
        r#"
root = '{root}'
W = os.O_WRONLY | os.O_CREAT
def touch(path, dir_fd=None, flags=W):
    os.close(os.open(path, flags, dir_fd=dir_fd))
touch('a/b/f')
touch(root + '/a/b/f')
touch('//' + root + '//a/./b/../b/f')
d = os.open('a', os.O_PATH)
touch('b/f', d); touch('../a/b/f', d); touch(root + '/a/b/f', d)
os.chdir('a/b'); touch('f'); touch('./f'); touch('../b/f'); os.chdir(root)
os.symlink('a/b', 'relative'); os.symlink(root + '/a', 'absolute')
touch('relative/f'); touch('absolute/b/f')
os.symlink('../relative/f', 'a/file'); os.symlink(root + '/a/file', 'chain')
touch('chain'); touch('a/file')
touch('chain', flags=os.O_WRONLY)
os.symlink('a/b/absent', 'dangling'); touch('dangling')
touch(f'/proc/self/cwd/a/b/f'); touch('/proc/thread-self/cwd/a/b/f')
touch(f'/proc/{{os.getpid()}}/cwd/a/b/f'); touch('/proc/self/root' + root + '/a/b/f')
touch(f'/proc/self/fd/{{d}}/b/f'); touch(f'/dev/fd/{{d}}/b/f')
f = os.open('a/b/f', os.O_RDONLY)
touch(f'/proc/self/fd/{{f}}', flags=os.O_WRONLY); touch(f'/dev/fd/{{f}}', flags=os.O_WRONLY)
os.dup2(f, 0); touch('/dev/stdin', flags=os.O_WRONLY)
try: touch('chain', flags=os.O_WRONLY | os.O_NOFOLLOW)
except OSError: pass
touch('/dev/null'); touch('{root}-outside')
"#,
    ));
    let mut found = short(&records);
    found.retain(|(operation, ..)| *operation != Symlinked);
    let last = found.pop().unwrap();
    // Not followed, so that it is marked itself, and the call fails.
    assert_eq!(last, (Opened, place.root.join("chain"), true));
    let absent = found.iter().position(|one| one.1.ends_with("absent"));
    let absent = found.remove(absent.unwrap());
    assert_eq!(absent, (Created, place.root.join("a/b/absent"), false));
    assert_eq!(found.len(), 23, "{found:#?}");
    for (at, (operation, path, is_there)) in found.iter().enumerate() {
        assert_eq!(path, &place.root.join("a/b/f"), "{at}");
        assert!(matches!(operation, Created | Opened));
        assert_eq!(*is_there, at > 0);
    }
    assert_eq!(gaps(&records), []);
}

#[test]
fn another_view_of_the_file_system_gives_the_same_files() {
    let place = Place::new();
    let root = place.root.to_str().unwrap().to_owned();
    std::fs::create_dir_all(place.root.join("a/b")).unwrap();
    std::os::unix::fs::symlink("/b", place.root.join("a/inside")).unwrap();
    let user = std::process::Command::new("unshare")
        .args(["-Urm", "true"])
        .output();
    if !user.is_ok_and(|output| output.status.success()) {
        eprintln!("NOT TESTED: user namespaces are not permitted");
        return;
    }
    let script = format!(
        "set -e
        unshare -Ur sh -c 'echo 1 > a/b/f'
        unshare -Urm sh -c 'echo 2 > {root}/a/b/f; mount --bind {root}/a /mnt; echo 3 > /mnt/b/f
            cd /mnt; echo 4 > b/f; ln -s /mnt/b here; echo 5 > here/f; rm here
            mount -t tmpfs none /mnt; echo 6 > /mnt/private'"
    );
    let output = place.shell(&script);
    assert!(output.status.success(), "{output:?}");
    let records = place.ended();
    assert_eq!(gaps(&records), []);
    let found = short(&records);
    let (inside, rest): (Vec<_>, Vec<_>) =
        { found.into_iter() }.partition(|one| one.1.starts_with(&place.root));
    let files = inside.iter().filter(|one| one.1.ends_with("a/b/f"));
    assert_eq!(files.count(), 5, "{inside:#?}");
    // What lies in a mount that only the tree has is told by identity alone.
    let nameless: Vec<_> = rest.iter().map(|one| one.1.to_str().unwrap()).collect();
    assert_eq!(nameless, ["private"]);
}

#[test]
fn another_root_directory_gives_the_same_files() {
    if !is_root() || !has("python3") {
        return;
    }
    let place = Place::new();
    std::fs::create_dir_all(place.root.join("a/b")).unwrap();
    std::os::unix::fs::symlink("/b", place.root.join("a/inside")).unwrap();
    let records = place.python(
        r#"
os.chroot('a')
os.close(os.open('/b/f', os.O_WRONLY | os.O_CREAT))
os.close(os.open('/inside/f', os.O_WRONLY | os.O_CREAT))
os.chdir('/b')
os.close(os.open('../../../b/f', os.O_WRONLY | os.O_CREAT))
os.close(os.open('../inside/f', os.O_WRONLY | os.O_CREAT))
"#,
    );
    let file = place.root.join("a/b/f");
    let expected = [false, true, true, true].map(|is_there| (Created, file.clone(), is_there));
    assert_eq!(short(&records), expected);
    assert_eq!(gaps(&records), []);
}

#[test]
fn a_path_that_soon_leads_elsewhere_is_noticed() {
    let place = Place::new();
    // Within the time for which a directory is remembered.
    let program = "
import itertools
for name in 'ab': os.mkdir(name)
top, numbers = os.getcwd(), itertools.count()
def made(directory, prefix, **how):
    file = f'{directory}{next(numbers)}'
    os.close(os.open(prefix + file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, **how))
    os.truncate(f'{top}/{directory}/{file}', 1)
for i in range(20):
    for name in 'ab':
        os.symlink(name, 'new'); os.rename('new', 'link')
        made(name, 'link/'); made(name, top + '/link/')
        os.chdir(name); made(name, ''); made(name, './'); os.chdir('..')
        opened = os.open(name, os.O_RDONLY)
        os.dup2(opened, 100); made(name, '', dir_fd=100); os.close(opened)
        # A link to a file is followed in either way.
        os.symlink(f'../b/f{name}{i}', f'{name}/l{i}'); open(f'{name}/l{i}', 'w').close()
";
    let records = place.python(program);
    assert_eq!(gaps(&records), []);
    let all = short(&records);
    let (mut seen, mut followed) = (0, 0);
    for (_, path, _) in all.iter().filter(|mark| mark.0 == Created) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let above = path.parent().unwrap().file_name().unwrap().to_str();
        let is_followed = name.starts_with('f');
        let expected = if is_followed { "b" } else { &name[..1] };
        assert_eq!(above, Some(expected), "{path:?}");
        seen += 1;
        followed += u32::from(is_followed);
    }
    assert_eq!((seen, followed), (20 * 2 * 6, 20 * 2));
}

#[test]
fn what_has_no_path_is_a_gap() {
    let place = Place::new();
    let records = place.python(
        r#"
libc.syscall(N['io_uring_setup'], 0, None)
libc.syscall(N['open_by_handle_at'], -1, None, os.O_RDWR)
libc.syscall(N['open_by_handle_at'], -1, None, os.O_RDONLY)
libc.syscall(N['openat'], -100, ctypes.c_void_p(8), os.O_RDWR)
libc.syscall(N['openat'], -100, b'x' * 5000, os.O_RDWR)
"#,
    );
    // A bad address makes the call fail: no mark is missing.
    assert_eq!(gaps(&records), [Gap::IoUring, Gap::Handle]);
    assert_eq!(marks(&records).len(), 0);
}

#[test]
fn the_queue_by_which_node_waits_for_descriptors_is_no_gap() {
    const SOURCE: &str = "
        #include <sys/syscall.h>
        #include <unistd.h>
        static void make(unsigned entries, unsigned flags) {
            unsigned parameters[30] = {0};
            parameters[2] = flags;
            syscall(SYS_io_uring_setup, entries, parameters);
        }
        int main(void) { make(256, 0); make(256, 1 << 16); make(256, 2); make(64, 0); }";
    if !has("gcc") {
        eprintln!("NOT TESTED: no program can be made");
        return;
    }
    for (name, number) in [("node", 2), ("other", 4)] {
        let place = Place::new();
        let program = compiled(&place, SOURCE, name, &[]).unwrap();
        assert!(place.witness([&program]).status().unwrap().success());
        assert_eq!(gaps(&place.ended()), vec![Gap::IoUring; number], "{name}");
    }
}

#[test]
fn a_static_program_of_32_bits_is_seen() {
    if !cfg!(target_arch = "x86_64") || !has("gcc") {
        eprintln!("NOT TESTED: no i386 program can be made");
        return;
    }
    let place = Place::new();
    let options = ["-m32", "-static", "-nostdlib", "-fno-pic", "-no-pie"];
    let Some(program) = compiled(&place, I386, "small", &options) else {
        eprintln!("NOT TESTED: gcc makes no i386 program");
        return;
    };
    let output = place.witness([&program]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let records = place.ended();
    let expected = [
        (Created, "old", false),
        (RenamedFrom, "old", true),
        (RenamedTo, "new", false),
        (OpenedTruncating, "new", true),
        (Unlinked, "new", true),
    ];
    expect(&place, &records, &expected);
    let program = processes(&records)[0].program.clone();
    assert!(program.ends_with(b"small"));
}

/// Opens, renames, opens at a directory, unlinks; exits with 7.
const I386: &str = r#"
static long call(long n, long a, long b, long c, long d) {
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(n), "b"(a), "c"(b), "d"(c), "S"(d) : "memory");
    return r;
}
void _start(void) {
    long bad = 0;
    bad |= call(5, (long)"old", 0101, 0600, 0) < 0;
    bad |= call(38, (long)"old", (long)"new", 0, 0) < 0;
    bad |= call(295, -100, (long)"new", 01001, 0) < 0;
    bad |= call(10, (long)"new", 0, 0, 0) < 0;
    call(1, bad ? 1 : 7, 0, 0, 0);
    for (;;) {}
}
"#;

#[test]
fn threads_and_their_programs_are_told_apart() {
    let place = Place::new();
    let records = place.python(
        r#"
import threading
def work(n):
    for i in range(20): open(f't{n}', 'w').close()
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
pid = os.fork()
if pid == 0:
    open('child', 'w').close()
    os.execvp('sh', ['sh', '-c', 'echo > program'])
os.waitpid(pid, 0)
"#,
    );
    assert_eq!(gaps(&records), []);
    let marks = marks(&records);
    let first = marks[0].process;
    let of_threads = marks.iter().filter(|mark| mark.process == first);
    assert_eq!(of_threads.count(), 160);
    let child = marks.iter().find(|mark| mark.name == b"child").unwrap();
    let program = marks.iter().find(|mark| mark.name == b"program").unwrap();
    assert_eq!(child.process, program.process);
    assert_ne!(child.process, first);
    let of_child = processes(&records).into_iter();
    let of_child: Vec<_> = { of_child.filter(|one| one.process == child.process) }.collect();
    assert_eq!(of_child.len(), 2);
    assert_eq!(of_child[0].parent, first.pid);
    assert!(has_part(&of_child[0].command_line, b"python3\0"));
    assert_eq!(of_child[1].command_line, b"sh\0-c\0echo > program\0");
    // The mark comes after the record of the program that made it.
    let at = |wanted: &Record| records.iter().position(|one| one == wanted).unwrap();
    let exec = at(&Record::Process(of_child[1].clone()));
    assert!(at(&Record::Mark((*child).clone())) < exec);
    assert!(exec < at(&Record::Mark((*program).clone())));
    assert!(Path::new(std::str::from_utf8(&of_child[1].program).unwrap()).is_absolute());
}

#[test]
fn a_program_at_the_same_addresses_is_noticed() {
    if !has("setarch") {
        return;
    }
    let place = Place::new();
    // The same program with as many bytes of arguments, at no random addresses.
    let script = "setarch -R sh -c 'echo > first; exec sh -c \"echo  >  second         \"'";
    let output = place.shell(script);
    assert!(output.status.success(), "{output:?}");
    let records = place.ended();
    assert_eq!(gaps(&records), []);
    let second = { marks(&records).into_iter() }.find(|mark| mark.name == b"second");
    let process = second.unwrap().process;
    let programs = processes(&records).into_iter();
    let programs: Vec<_> = { programs.filter(|one| one.process == process) }.collect();
    assert_eq!(programs.len(), 2, "{programs:?}");
    assert!(has_part(&programs[1].command_line, b"second"));
    assert!(!has_part(&programs[1].command_line, b"first"));
}
