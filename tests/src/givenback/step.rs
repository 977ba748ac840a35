//! The steps of a session. A step names files and lines by numbers that are
//! resolved when it runs, so that every list of steps can be run.

use super::features::Feature;

/// An author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The authors before touchmark, and those whose commits git brings.
    Base,
    /// The user.
    User,
    /// The first agent.
    A,
    /// The second agent.
    B,
    /// A sub-agent of the first agent.
    Sub,
}

impl Who {
    /// Returns the name of the author's session; `None` if the author is no
    /// agent.
    pub fn session(self) -> Option<&'static str> {
        match self {
            Self::A => Some("A"),
            Self::B => Some("B"),
            Self::Sub => Some("A/s1"),
            Self::Base | Self::User => None,
        }
    }

    /// Returns whether an undo of `chosen` includes this author (UNDO-3).
    pub fn is_of(self, chosen: Self) -> bool {
        self == chosen || (chosen == Self::A && self == Self::Sub)
    }

    /// Returns the word that the author's lines begin with.
    pub fn word(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::User => "user",
            Self::A => "anna",
            Self::B => "bert",
            Self::Sub => "suba",
        }
    }
}

/// A change of some lines of a file.
#[derive(Clone, Copy, Debug)]
pub struct Edit {
    /// The file, as a number among those that exist.
    pub file: usize,
    /// The first line, as a number among those of the file.
    pub at: usize,
    /// The number of lines that are removed.
    pub off: usize,
    /// The number of lines that are typed.
    pub on: usize,
}

/// How an agent's tool writes.
#[derive(Clone, Copy, Debug)]
pub enum Tool {
    /// `file/write`.
    Write,
    /// `edit/begin` with the content declared, the write, `edit/commit`.
    Declared,
    /// The hooks of a tool that writes the whole file.
    Hook,
}

/// How the user saves.
#[derive(Clone, Copy, Debug)]
pub enum Save {
    /// In place.
    Over,
    /// By a temporary file and a rename.
    Rename,
    /// By a backup, as vim does.
    Backup,
}

/// What is done with git, besides commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // `script` has the commands
pub enum Git {
    CheckoutFile,
    RestoreFile,
    RestoreBoth,
    CheckoutAll,
    ResetHard,
    ResetBack,
    Clean,
    Revert,
    Stash,
    StashAll,
    Pop,
    SwitchSide,
    SwitchMain,
    SwitchForce,
    Merge,
    Rebase,
    PullRebase,
    StashMergePop,
    CherryPick,
    Amend,
    AmendAll,
    RebaseOnto,
}

/// Whether an operation moves between whole states, or takes back a path or a
/// commit (step 2.3 of the rules).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// It carries lines and is no author's decision about them.
    Carries,
    /// It is a decision of the author who ran it.
    Decides,
    /// It changes commits and no file.
    Commits,
}

impl Git {
    /// Returns the shell's command. `$f` is the file.
    pub fn script(self) -> &'static str {
        match self {
            Self::CheckoutFile => "git checkout -q -- \"$f\"",
            Self::RestoreFile => "git restore \"$f\"",
            Self::RestoreBoth => "git restore --staged --worktree \"$f\"",
            Self::CheckoutAll => "git checkout -q -- .",
            Self::ResetHard => "git reset -q --hard",
            Self::ResetBack => "git rev-parse -q --verify HEAD~ && git reset -q --hard HEAD~",
            Self::Clean => "git clean -qfd",
            Self::Revert => "git revert --no-edit HEAD || git revert --abort",
            Self::Stash => "git stash -q",
            Self::StashAll => "git stash -q -u",
            Self::Pop => "git stash pop -q",
            Self::SwitchSide => "git switch -q side",
            Self::SwitchMain => "git switch -q main",
            Self::SwitchForce => "git switch -q -f side",
            Self::Merge => "git merge -q --no-edit side || git merge --abort",
            Self::Rebase => "git rebase -q --autostash side || git rebase --abort",
            Self::PullRebase => "git pull -q --rebase --autostash . side || git rebase --abort",
            Self::StashMergePop => {
                "git stash -q; git merge -q --no-edit side || git merge --abort; git stash pop -q"
            }
            Self::CherryPick => "git cherry-pick side || git cherry-pick --abort",
            Self::Amend => "git commit -q --amend -m reworded",
            Self::AmendAll => "git add -A && git commit -q --amend -m 'one more'",
            Self::RebaseOnto => {
                "git stash -q -u; git rebase -q side || git rebase --abort; git stash pop -q"
            }
        }
    }

    /// Returns what the operation means for the lines that it changes.
    pub fn nature(self) -> Nature {
        match self {
            Self::CheckoutFile
            | Self::RestoreFile
            | Self::RestoreBoth
            | Self::CheckoutAll
            | Self::ResetHard
            | Self::ResetBack
            | Self::Clean
            | Self::Revert => Nature::Decides,
            Self::Amend | Self::AmendAll => Nature::Commits,
            _ => Nature::Carries,
        }
    }
}

/// How the conflict of a merge is resolved.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Resolve {
    Ours,
    Theirs,
    Both,
    Anew,
}

/// One step.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the names say what the fields are
pub enum Step {
    /// An agent's tool changes a file.
    Tool { who: Who, edit: Edit, tool: Tool },
    /// The user saves a file.
    Save { edit: Edit, save: Save },
    /// An agent's command changes a file.
    Shell { who: Who, edit: Edit },
    /// A file is created with some lines: by a tool, or by the user.
    Create { who: Who, name: usize, on: usize },
    /// A file is removed: by a command, or by the user.
    Remove { who: Who, file: usize },
    /// Everything is committed: by a command, or by the user.
    Commit { who: Who },
    /// The user saves while a command of an agent runs. The command adds lines
    /// to another file if `writes`.
    Beside {
        who: Who,
        edit: Edit,
        save: Save,
        writes: bool,
    },
    /// A command of an agent changes the white space of a file; `User`: the
    /// user's formatter.
    Indent { who: Who, file: usize },
    /// A file is moved.
    Move {
        who: Who,
        file: usize,
        name: usize,
        by_git: bool,
    },
    /// A directory is moved.
    MoveDirectory { who: Who, directory: usize },
    /// The user moves a file while no daemon runs.
    MoveDown { file: usize, name: usize },
    /// A git operation.
    Git { who: Who, file: usize, git: Git },
    /// A merge that may conflict, an undo in the middle of it, and its
    /// resolution.
    Clash {
        who: Who,
        undo: Option<Who>,
        resolve: Resolve,
        by: Who,
    },
    /// The user's editor takes a file back to its previous content.
    Back { file: usize },
    /// An author types a line again that was removed.
    Retype { who: Who, line: usize, tool: Tool },
    /// A removed file is created again, with its last content.
    Return { who: Who, file: usize },
    /// A line is claimed.
    Claim { file: usize, line: usize, by: Who },
    /// Changes in the queue are kept: `nth`, or all.
    Keep { nth: Option<usize> },
    /// A change in the queue is undone.
    UndoHunk { nth: usize },
    /// The daemon ends and is started again.
    Restart,
    /// The daemon is killed and started again; meanwhile the user saves.
    Kill { meanwhile: Option<Edit> },
    /// Stored contents are forgotten.
    Forget,
    /// One author is undone; then the undo is perhaps reversed.
    Undo { whom: Who, redo: bool },
    /// All answers are compared.
    Check,
}

impl Step {
    /// Returns the group that the step belongs to.
    pub fn feature(&self) -> Feature {
        match self {
            Self::Beside { .. } => Feature::Likely,
            Self::Indent { .. } => Feature::Indents,
            Self::Move { .. } | Self::MoveDirectory { .. } | Self::MoveDown { .. } => {
                Feature::Lineage
            }
            Self::Git { who, git, .. } => match git.nature() {
                Nature::Commits => Feature::Rewrites,
                _ if *git == Git::RebaseOnto => Feature::Rewrites,
                Nature::Decides if who.session().is_some() => Feature::Wipes,
                Nature::Decides => Feature::Decided,
                Nature::Carries if who.session().is_some() && is_a_wipe(*git) => Feature::Wipes,
                Nature::Carries => Feature::Carried,
            },
            Self::Clash { .. } => Feature::Clashes,
            Self::Back { .. } | Self::Retype { .. } | Self::Return { .. } => Feature::Decided,
            Self::Claim { .. } => Feature::Claims,
            Self::Keep { .. } | Self::UndoHunk { .. } => Feature::Reviews,
            Self::Kill { .. } | Self::Forget => Feature::Kills,
            _ => Feature::Plain,
        }
    }
}

/// Returns whether the operation destroys uncommitted work.
fn is_a_wipe(git: Git) -> bool {
    matches!(git, Git::Stash | Git::StashAll | Git::SwitchForce)
}
