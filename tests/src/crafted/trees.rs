//! Many repositories, ignore files and directories, and contents that are large
//! or strange.

use std::fs;
use std::path::PathBuf;

use super::{Crafted, index, places, put};
use crate::dice::Dice;

/// Directories whose `.git` names one repository, which has a large index.
pub(super) fn same(crafted: &Crafted, dice: &mut Dice) -> String {
    let count = *dice.pick(&[10, 100, 1_000]);
    let path = crafted.world.path("repository");
    let all: u32 = *dice.pick(&[10, 20_000, 200_000]);
    put(&path.join("index"), index::many(all, 60));
    put(&path.join("HEAD"), "ref: refs/heads/main\n");
    for directory in ["objects", "refs"] {
        let _is_there = fs::create_dir_all(path.join(directory));
    }
    for n in 0..count {
        put(
            &crafted.world.path(format!("n{n}/.git")),
            format!("gitdir: {}\n", path.display()),
        );
        put(&crafted.world.path(format!("n{n}/f.txt")), "x\n");
    }
    format!("{count} directories of one repository of {all} files")
}

/// Directories whose `.git` names that of the next one.
pub(super) fn circle(crafted: &Crafted, dice: &mut Dice) -> String {
    let count = 1 + dice.below(40);
    for n in 0..count {
        let text = format!("gitdir: ../r{}/.git\n", (n + 1) % count);
        put(&crafted.world.path(format!("r{n}/.git")), text);
        put(&crafted.world.path(format!("r{n}/f.txt")), "x\n");
    }
    format!("{count} repositories in a circle")
}

/// Directories in each other, deeper than a path may be long.
pub(super) fn deep(crafted: &Crafted, dice: &mut Dice) -> String {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    let depth = *dice.pick(&[500, 3_000]);
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = crafted.world.workspace();
    let mut here = openat(CWD, root, flags, Mode::empty()).expect("a workspace");
    let mut made = 0;
    while made < depth {
        let _is_there = mkdirat(&here, "d", Mode::from_raw_mode(0o755));
        match openat(&here, "d", flags, Mode::empty()) {
            Ok(next) => here = next,
            Err(_) => break,
        }
        made += 1;
    }
    let bottom: PathBuf = std::iter::repeat_n("d", 200).collect();
    put(&crafted.world.path(bottom.join("f.txt")), "x\n");
    format!("{made} directories in each other")
}

/// Directories with ignore files that take long, or much memory.
pub(super) fn ignored(crafted: &Crafted, dice: &mut Dice) -> String {
    let count = *dice.pick(&[1, 20, 200]);
    let kind = dice.below(5);
    let (what, rules): (&str, String) = match kind {
        0 => (
            "many patterns",
            (0..19_000).map(|n| format!("*{n}?[a-z]*\n")).collect(),
        ),
        1 => ("many stars", "**/a*".repeat(200) + "\n"),
        2 => ("alternatives", "{a,b,c}".repeat(300) + "\n"),
        3 => ("nested alternatives", "{".repeat(5_000) + "\n"),
        _ => ("classes", "[!\u{0}-\u{10ffff}]".repeat(400) + "\n"),
    };
    for n in 0..count {
        put(&crafted.world.path(format!("i{n}/.gitignore")), &rules);
        put(&crafted.world.path(format!("i{n}/f.txt")), "x\n");
    }
    format!("{count} ignore files with {what}")
}

/// Worktrees that are somewhere else, or nowhere.
pub(super) fn worktrees(crafted: &Crafted, dice: &mut Dice) -> String {
    let count = *dice.pick(&[3, 300]);
    for n in 0..count {
        let own = crafted.of_git("worktrees").join(format!("w{n}"));
        let top = crafted.world.path(format!("t{n}"));
        put(&own.join("gitdir"), format!("{}/.git\n", top.display()));
        put(&own.join("commondir"), "../..\n");
        put(&own.join("HEAD"), "ref: refs/heads/main\n");
        put(&top.join(".git"), format!("gitdir: {}\n", own.display()));
        put(&top.join("a.txt"), "x\n");
        if dice.percent(10) {
            let name = *dice.pick(&["gitdir", "HEAD", "commondir", "index", "refs"]);
            places::replace(&own.join(name), dice);
        }
    }
    format!("{count} other worktrees")
}

/// Files of the workspace that are no text, or large.
pub(super) fn contents(crafted: &Crafted, dice: &mut Dice) -> String {
    let path = *dice.pick(&["a.txt", "b.txt", "c.txt", "new.txt"]);
    let what = places::replace(&crafted.world.path(path), dice);
    format!("{path}: {what}")
}
