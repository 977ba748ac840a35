//! Directories that are no project. Hooks do nothing there, and commands about
//! what is recorded start no daemon (LIFE-5).

use touchmark_client::Workspace;

use crate::daemon::doctor::Finding;
use crate::output::Failure;
use crate::text::directory;

/// What to do, in the first line of every text about it.
const NONE_HERE: &str = "no project here; `--workspace .` makes this directory one";

/// What makes the directory a project for longer than one daemon runs.
const FOR_GOOD: &str = "for good: `git init`, or an empty `.touchmark.toml`";

/// Returns whether the directory has a mark of a project, a daemon, or a service
/// that starts one.
pub(crate) fn is_one(workspace: &Workspace) -> bool {
    workspace.is_marked() || workspace.places.service.exists() || workspace.is_running()
}

/// Returns the failure of a command that would start a daemon.
pub(crate) fn missing(workspace: &Workspace) -> Failure {
    Failure::Coded {
        code: 3,
        message: format!("{NONE_HERE}\n{}", why(workspace)),
        hint: FOR_GOOD,
    }
}

/// Returns `doctor`'s finding; `None` if the directory is a project.
pub(crate) fn finding(workspace: &Workspace) -> Option<Finding> {
    let says = || format!("{NONE_HERE}: {}", why(workspace));
    (!is_one(workspace)).then(|| Finding::note("project", says(), FOR_GOOD))
}

fn why(workspace: &Workspace) -> String {
    format!(
        "agents' hooks do nothing in {}: neither it nor a directory above it has a .git, a .touchmark.toml or a daemon",
        directory(&workspace.root)
    )
}
