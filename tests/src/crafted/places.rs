//! Files of a repository that are no files, or have no end.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{Crafted, clear, put};
use crate::dice::Dice;

/// Files that touchmark or git reads, in the workspace and in `.git`.
const PLACES: [&str; 44] = [
    ".gitattributes",
    ".gitignore",
    ".gitmodules",
    ".ignore",
    ".touchmark.toml",
    "sub/.gitignore",
    "sub/.ignore",
    "sub/.git",
    ".git/AUTO_MERGE",
    ".git/CHERRY_PICK_HEAD",
    ".git/HEAD",
    ".git/MERGE_HEAD",
    ".git/commondir",
    ".git/config",
    ".git/config.worktree",
    ".git/gitdir",
    ".git/index",
    ".git/index.lock",
    ".git/info/attributes",
    ".git/info/exclude",
    ".git/info/grafts",
    ".git/info/sparse-checkout",
    ".git/logs/HEAD",
    ".git/logs/refs/stash",
    ".git/objects/info/alternates",
    ".git/objects/info/commit-graph",
    ".git/objects/info/packs",
    ".git/objects/pack/multi-pack-index",
    ".git/objects/pack/pack-1.idx",
    ".git/objects/pack/pack-1.pack",
    ".git/packed-refs",
    ".git/rebase-merge",
    ".git/refs/heads/a",
    ".git/refs/heads/main",
    ".git/refs/heads/topic",
    ".git/refs/notes/ai",
    ".git/refs/replace/1111111111111111111111111111111111111111",
    ".git/refs/stash",
    ".git/reftable",
    ".git/shallow",
    ".git/worktrees/topic/HEAD",
    ".git/worktrees/topic/commondir",
    ".git/worktrees/topic/gitdir",
    ".git/worktrees/topic/index",
];

pub(super) fn one(crafted: &Crafted, dice: &mut Dice) -> String {
    // Other worktrees have another name.
    let place = *dice.pick(&PLACES);
    let name = fs::read_dir(crafted.of_git("worktrees"));
    let name = name.ok().and_then(|mut all| all.next()?.ok());
    let name = name.map_or("topic".into(), |one| one.file_name());
    let place = place.replace("worktrees/topic", &format!("worktrees/{}", name.display()));
    let path = crafted.world.path(&place);
    format!("{place}: {}", replace(&path, dice))
}

pub(super) fn several(crafted: &Crafted, dice: &mut Dice) -> String {
    let done: Vec<String> = (0..2 + dice.below(4)).map(|_| one(crafted, dice)).collect();
    done.join(", ")
}

/// Makes a FIFO or a socket; not if something else is in the way.
fn node(path: &Path, kind: FileType) {
    let _in_the_way = mknodat(CWD, path, kind, Mode::from_raw_mode(0o644), 0);
}

/// Replaces a file.
pub(super) fn replace(path: &Path, dice: &mut Dice) -> &'static str {
    clear(path);
    match dice.below(14) {
        0 | 1 => {
            node(path, FileType::Fifo);
            "a FIFO"
        }
        2 => {
            let _in_the_way = symlink("/dev/zero", path);
            "a link to what has no end"
        }
        3 => {
            let _in_the_way = symlink(path, path);
            "a link to itself"
        }
        4 => {
            let fifo = path.with_extension("fifo");
            clear(&fifo);
            node(&fifo, FileType::Fifo);
            let _in_the_way = symlink(fifo, path);
            "a link to a FIFO"
        }
        5 => {
            let _too_long_or_in_the_way = UnixListener::bind(path);
            "a socket"
        }
        6 => {
            let _in_the_way = fs::create_dir_all(path.join("a/b"));
            "a directory"
        }
        7 => {
            if let Ok(file) = File::create(path) {
                file.set_len(100 << 30).expect("a hole");
            }
            "100 GiB of zeros"
        }
        8 => {
            let bytes: Vec<u8> = (0..dice.below(100_000))
                .map(|_| u8::try_from(dice.below(256)).expect("a byte"))
                .collect();
            put(path, bytes);
            "random bytes"
        }
        9 => {
            put(path, b"");
            "nothing"
        }
        10 => {
            put(path, vec![b'x'; 8 << 20]);
            "one long line"
        }
        11 => {
            put(path, b"a\n".repeat(300_000));
            "many short lines"
        }
        12 => {
            put(path, b"gitdir: .git\nref: refs/heads/main\n../../.git\n");
            "a path to itself"
        }
        _ => {
            put(
                path,
                [b"[".repeat(1 << 20), b"\0{\"a\":".repeat(1 << 16)].concat(),
            );
            "brackets"
        }
    }
}
