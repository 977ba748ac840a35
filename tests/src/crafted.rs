//! Repositories that are made to do harm (SEC-7): each is an ordinary one that
//! is changed in one to three ways, which a seed decides.
//!
//! - [`index`]: git's index. [`objects`]: objects, packs and references.
//! - [`places`]: any file of a repository, replaced by what is none.
//! - [`trees`]: many repositories, ignore files and directories.

mod index;
mod objects;
mod places;
mod trees;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::dice::Dice;
use crate::worktrees::{beside, commit, git, lines, replace};
use crate::{World, user};

/// A way to change a repository. It returns what it did.
type Kind = fn(&Crafted, &mut Dice) -> String;

const KINDS: [Kind; 23] = [
    index::deep,
    index::offsets,
    index::damaged,
    index::large,
    index::split,
    objects::lie,
    objects::bomb,
    objects::circle,
    objects::packs,
    objects::alternates,
    objects::references,
    objects::log,
    objects::notes,
    places::one,
    places::one,
    places::one,
    places::several,
    trees::same,
    trees::circle,
    trees::deep,
    trees::ignored,
    trees::worktrees,
    trees::contents,
];

/// A repository with a second worktree and an agent's changes.
pub struct Crafted {
    /// The workspace, whose daemon runs.
    pub world: World,
    /// The other worktree.
    pub other: World,
    /// The ids of objects that touchmark asks for.
    ids: Vec<String>,
}

impl Crafted {
    /// Makes the repository, still an ordinary one. The daemon has a session `s`.
    pub fn ordinary() -> Self {
        let mut world = World::asleep();
        git(&world, &["init", "-q", "-b", "main"]);
        for name in ["a.txt", "b.txt", "sub/d.txt"] {
            world.file(name, lines());
        }
        commit(&world, "first");
        let other = beside(&world, "topic");
        replace(&other, "a.txt", "line 5", "LINE 5");
        world.start();
        let mut agent = world.session("s");
        for name in ["a.txt", "b.txt", "sub/d.txt"] {
            agent.read(name);
        }
        for (name, text) in [("c.txt", "of the agent\n"), ("e.txt", "not committed\n")] {
            agent.ok(
                "file/write",
                json!({"path": name, "text": text, "force": true}),
            );
            if name == "c.txt" {
                commit(&world, "of the agent");
            }
        }
        replace(&world, "b.txt", "line 9", "LINE 9");
        git(&world, &["stash", "-q"]);
        let names = [
            "HEAD",
            "HEAD^{tree}",
            "HEAD:a.txt",
            "HEAD:b.txt",
            "HEAD:c.txt",
        ];
        let asked = user::git_command(world.workspace(), &["rev-parse"])
            .args(names)
            .output()
            .expect("git");
        let ids = String::from_utf8_lossy(&asked.stdout);
        Self {
            ids: ids.lines().map(str::to_owned).collect(),
            world,
            other,
        }
    }

    /// Changes the repository in the ways that a seed decides. Returns what was
    /// done. Successive seeds begin with successive ways.
    pub fn harm(&self, seed: u64) -> String {
        let mut dice = Dice::new(seed, "crafted");
        let first = usize::try_from(seed).expect("a small seed") % KINDS.len();
        let mut done = vec![KINDS[first](self, &mut dice)];
        while done.len() < 3 && dice.percent(30) {
            done.push(dice.pick(&KINDS)(self, &mut dice));
        }
        format!("seed {seed}: {}", done.join("; "))
    }

    fn of_git(&self, name: &str) -> PathBuf {
        self.world.path(".git").join(name)
    }

    /// Runs git, which may fail, or hang at what was changed before.
    fn git(&self, args: &[&str]) {
        let git = user::git_command(self.world.workspace(), args);
        let mut limited = Command::new("timeout");
        limited.args(["-k", "1", "10", "git"]).args(git.get_args());
        limited.current_dir(self.world.workspace());
        for (name, value) in git.get_envs() {
            if let Some(value) = value {
                limited.env(name, value);
            }
        }
        let _output = limited.output().expect("git");
    }
}

/// The number of ways to change a repository.
pub const WAYS: u64 = KINDS.len() as u64;

/// Makes way for something with this path.
fn clear(path: &Path) {
    if path.is_dir() && !path.is_symlink() {
        let _none = fs::remove_dir_all(path);
    }
    let _none = fs::remove_file(path);
    let _is_file = fs::create_dir_all(path.parent().expect("a directory"));
}

/// Writes a file in place of anything. What was changed before may be in the
/// way.
fn put(path: &Path, bytes: impl AsRef<[u8]>) {
    clear(path);
    let _in_the_way = fs::write(path, bytes);
}
