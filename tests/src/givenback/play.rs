//! Runs a session: performs the steps one by one, notes who did what, and
//! compares.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::features::Groups;
use super::stage::Stage;
use super::step::{Edit, Save, Step, Tool, Who};
use super::truth::{Act, Truth, Way, bytes, identity, tree};

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // each is said where it is found
pub enum Kind {
    Lost,
    Twice,
    Left,
    Untold,
    Needless,
    NotBack,
    Extra,
    Order,
    Place,
    Name,
    UndoneSaid,
    Unmerged,
    Redo,
    Blame,
    QueueMissing,
    QueueWrong,
    Claim,
    Answer,
    Panic,
}

/// A difference.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// Its kind.
    pub kind: Kind,
    /// What it is, for people.
    pub what: String,
}

/// The result of one step.
pub type Done = Result<(), Wrong>;

/// Returns a difference.
pub fn wrong<T>(kind: Kind, what: String) -> Result<T, Wrong> {
    Err(Wrong { kind, what })
}

/// Passes over a difference of a kind that `TOUCHMARK_IGNORE=Blame,Lost` names,
/// so that others behind it are found.
///
/// # Errors
/// The difference, if it is of another kind.
pub(super) fn tolerated(wrong: Wrong) -> Done {
    let kinds = std::env::var("TOUCHMARK_IGNORE").unwrap_or_default();
    match kinds
        .split(',')
        .any(|kind| kind == format!("{:?}", wrong.kind))
    {
        true => Ok(()),
        false => Err(wrong),
    }
}

/// The names of new files. Those of the first files can be used again.
pub(super) const NAMES: [&str; 7] = [
    "src/a.rs",
    "src/b.rs",
    "doc/c.md",
    "new.txt",
    "src/new.rs",
    "lib/deep/n.rs",
    "other.md",
];

/// The number of files at the beginning.
const FILES: usize = 3;

/// The number of lines of each of them.
const LINES: usize = 12;

/// Makes the repository: a first commit, and branches with commits of other
/// people.
const PREPARE: &str = r#"
set -e
git init -q -b main
git config gc.auto 0
git config core.fsync none
git add -A
git commit -q -m base
"#;

/// The same, with two branches.
const BRANCHES: &str = r#"
git switch -q -c side
sed -i '1a\base side.0 olive' src/a.rs
sed -i '2a\base side.1 olive' doc/c.md
echo 'base side.2 olive' > side.txt
git add -A
git commit -q -m side
git switch -q -c clash main
for f in src/a.rs src/b.rs doc/c.md; do sed -i "7s|.*|base clash.$f olive|" $f; done
git commit -q -a -m clash
git switch -q main
# What is committed up to 200 ms before a command may be an agent's (REV-2).
sleep 0.3
"#;

/// A session in progress.
pub struct Play {
    pub(super) groups: Groups,
    pub(super) stage: Stage,
    pub(super) truth: Truth,
    /// The agent's window that each step was in.
    pub(super) windows: BTreeMap<usize, Who>,
    pub(super) undos: u32,
    /// The last step at which the daemon had stored everything.
    stored_at: usize,
    /// The step of the last commit.
    pub(super) committed_at: usize,
    /// Whether nothing more can be said, since git has left a conflict that no
    /// step was about.
    pub over: bool,
    /// The number of undos that were judged.
    pub judged: u32,
}

fn first_files() -> Vec<(String, String)> {
    let words = ["apple", "pear", "plum"];
    let line = |file: usize, n: usize| format!("base {file}.{n} {}\n", words[file]);
    let text = |file| (0..LINES).map(|n| line(file, n)).collect();
    (0..FILES)
        .map(|file| (NAMES[file].to_owned(), text(file)))
        .collect()
}

/// Returns lines that an author types in a step.
pub(super) fn typed(who: Who, step: usize, on: usize) -> impl Iterator<Item = String> {
    let words = ["kiwi", "lime", "mango", "date", "melon", "peach", "grape"];
    (0..on).map(move |n| {
        format!(
            "{} {step}.{n} {}",
            who.word(),
            words[(step + n) % words.len()]
        )
    })
}

fn changed(text: &str, edit: Edit, who: Who, step: usize) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = edit.at % (lines.len() + 1);
    let until = (at + edit.off).min(lines.len());
    lines.splice(at..until, typed(who, step, edit.on));
    joined(&lines)
}

pub(super) fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns a word quoted for a shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{word}'")
}

impl Play {
    /// Creates the workspace that the steps need.
    pub fn new(steps: &[(usize, Step)], groups: Groups) -> Self {
        let needs = |step: &Step| matches!(step, Step::Git { .. } | Step::Clash { .. });
        let files = first_files();
        let prepare = match steps.iter().any(|(_, step)| needs(step)) {
            true => format!("{PREPARE}{BRANCHES}"),
            false => PREPARE.to_owned(),
        };
        let stage = Stage::new(&files, &prepare, true);
        let mut truth = Truth::new(tree(&bytes(stage.root())));
        let of_side = ["side.0", "side.1", "side.2"].map(|n| format!("base {n} olive"));
        let of_clash = [NAMES[0], NAMES[1], NAMES[2]].map(|n| format!("base clash.{n} olive"));
        truth.is_known_to_git(&[of_side, of_clash].concat());
        Self {
            groups,
            stage,
            truth,
            windows: BTreeMap::new(),
            undos: 0,
            stored_at: 0,
            committed_at: 0,
            over: false,
            judged: 0,
        }
    }

    /// Prints what the daemon has logged in a step, with `TOUCHMARK_TRACE=1`.
    pub fn trace(&mut self, number: usize, step: &Step) {
        self.stage.trace(&format!("{number} {step:?}"));
    }

    /// Ends the session: the daemon must be well.
    pub fn end(mut self) {
        self.stage.world.healthy();
    }

    pub(super) fn look(&mut self, act: Act, committed: &BTreeSet<String>) {
        let now = tree(&bytes(self.stage.root()));
        self.truth.observe(now, act, committed);
    }

    pub(super) fn acted(&mut self, who: Who, way: Way) {
        let window = who.session().map(|_| who);
        // A tool's edit is no window.
        self.look(
            Act {
                window: window.filter(|_| self.is_windowed()),
                ..Act::of(who, way)
            },
            &BTreeSet::new(),
        );
    }

    fn is_windowed(&self) -> bool {
        self.windows.contains_key(&self.truth.step)
    }

    pub(super) fn in_window(&mut self, who: Who) {
        if who.session().is_some() {
            self.windows.insert(self.truth.step, who);
        }
    }

    /// Returns the path of a file by its number.
    pub(super) fn path(&self, file: usize) -> Option<String> {
        let paths: Vec<&String> = self.truth.tree.keys().collect();
        Some((*paths.get(file % paths.len().max(1))?).clone())
    }

    /// Returns a file's path and text after an edit; `None` if it changes
    /// nothing.
    pub(super) fn edited(&self, edit: Edit, who: Who) -> Option<(String, String)> {
        let path = self.path(edit.file)?;
        let before = self.stage.text(&path)?;
        let text = changed(&before, edit, who, self.truth.step);
        (text != before).then_some((path, text))
    }

    /// Returns the lines of the last commit.
    pub(super) fn committed(&self) -> BTreeSet<String> {
        let ran = self.stage.sh("git grep -h '' HEAD");
        ran.stdout
            .lines()
            .map(|line| identity(line).to_owned())
            .collect()
    }

    pub(super) fn is_unmerged(&self) -> BTreeSet<String> {
        let ran = self.stage.sh("git diff --name-only --diff-filter=U");
        ran.stdout.lines().map(str::to_owned).collect()
    }

    /// Writes a file: by a tool or by the user.
    pub(super) fn writes(&mut self, who: Who, tool: Tool, path: &str, text: &str) {
        match who.session() {
            Some(_) => self.stage.tool(who, tool, path, text),
            None => {
                self.stage.save(Save::Over, path, text);
                self.stage.sync();
            }
        }
    }

    /// Performs one step.
    ///
    /// # Errors
    /// A difference.
    pub fn step(&mut self, number: usize, step: &Step) -> Done {
        self.truth.step = number;
        if self.over || !self.groups.has(step.feature()) {
            return Ok(());
        }
        match *step {
            Step::Tool { who, edit, tool } => {
                if let Some((path, text)) = self.edited(edit, who) {
                    self.stage.tool(who, tool, &path, &text);
                    self.acted(who, Way::Hand);
                }
            }
            Step::Save { edit, save } => {
                if let Some((path, text)) = self.edited(edit, Who::User) {
                    self.stage.save(save, &path, &text);
                    self.stage.sync();
                    self.acted(Who::User, Way::Hand);
                }
            }
            Step::Shell { who, edit } => {
                if let Some((path, text)) = self.edited(edit, who) {
                    self.in_window(who);
                    self.stage.window(who, "make", |stage| {
                        stage.save(Save::Over, &path, &text);
                    });
                    self.acted(who, Way::Hand);
                }
            }
            Step::Create { who, name, on } => {
                let path = NAMES[name % NAMES.len()].to_owned();
                if !self.truth.tree.contains_key(&path) {
                    let lines: Vec<String> = typed(who, number, on).collect();
                    self.writes(who, Tool::Hook, &path, &joined(&lines));
                    self.acted(who, Way::Hand);
                    if who == Who::User {
                        self.stage.read(Who::B, &path);
                    }
                }
            }
            Step::Remove { who, file } => {
                if let Some(path) = self.path(file) {
                    self.in_window(who);
                    self.stage.run(who, &format!("rm {}", quoted(&path)));
                    self.acted(who, Way::Hand);
                }
            }
            Step::Commit { who } => self.commit(who, "git add -A && git commit -q -m more"),
            Step::Beside {
                who,
                edit,
                save,
                writes,
            } => self.beside(who, edit, save, writes),
            Step::Indent { who, file } => {
                if let Some(path) = self.path(file) {
                    self.in_window(who);
                    self.stage
                        .run(who, &format!("sed -i 's/^/  /' {}", quoted(&path)));
                    self.acted(who, Way::Hand);
                }
            }
            Step::Move {
                who,
                file,
                name,
                by_git,
            } => self.moves(who, file, name, by_git),
            Step::MoveDirectory { who, directory } => self.moves_directory(who, directory),
            Step::MoveDown { file, name } => {
                self.stage.end(false);
                self.moves(Who::User, file, name, false);
                let moved = self.truth.names.get(NAMES[name % NAMES.len()]);
                if let Some(life) = moved.and_then(|file| self.truth.files.get_mut(file)) {
                    // HIST-9: after a gap it is not known who has written.
                    life.untracked = true;
                }
                self.stage.start();
            }
            Step::Git { who, file, git } => self.git(who, file, git),
            Step::Clash {
                who,
                undo,
                resolve,
                by,
            } => return self.clash(who, undo, resolve, by),
            Step::Back { file } => {
                if let Some(path) = self.path(file) {
                    let past = &self.truth.files[&self.truth.names[&path]].past;
                    if let Some(before) = past.iter().rev().nth(1).cloned() {
                        self.stage.save(Save::Over, &path, &joined(&before));
                        self.stage.sync();
                        self.acted(Who::User, Way::Decided);
                    }
                }
            }
            Step::Retype { who, line, tool } => self.retype(who, line, tool),
            Step::Return { who, file } => self.returns(who, file),
            Step::Claim { file, line, by } => return self.claim(file, line, by),
            Step::Keep { nth } => return self.keep(nth),
            Step::UndoHunk { nth } => return self.undo_hunk(nth),
            Step::Restart => {
                self.stage.end(false);
                self.stage.start();
                self.stored_at = number;
            }
            Step::Kill { meanwhile } => {
                self.stage.end(true);
                self.truth.contents_may_be_lost(self.stored_at);
                if let Some((path, text)) = meanwhile.and_then(|edit| self.edited(edit, Who::User))
                {
                    self.stage.save(Save::Over, &path, &text);
                    let act = Act {
                        dim: true,
                        ..Act::of(Who::User, Way::Hand)
                    };
                    self.look(act, &BTreeSet::new());
                }
                self.stage.start();
            }
            Step::Forget => {
                self.stage.ok("contents/forget", json!({}));
                self.truth.contents_are_forgotten();
            }
            Step::Undo { whom, redo } => return self.undo(whom, redo, &BTreeSet::new()),
            Step::Check => return self.views().or_else(tolerated),
        }
        Ok(())
    }
}
