//! Reads what the user has committed, which counts as kept (REV-2).
//!
//! One git process answers for all files. The repository may come from an
//! untrusted source: nothing is fetched, and objects are read as they are,
//! without filters or other programs (SEC-7).

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use touchmark_engine::history::{Step, Weave};
use touchmark_proto::commands::CommandRow;
use touchmark_proto::{Millis, RelPath};

use crate::git::{Object, Objects, git};

/// The maximum number of commits that are searched for those of agents.
const MOST_COMMITS: usize = 1_000;

/// The last commit of a workspace, without what agents have committed.
#[derive(Debug, Default)]
pub(super) struct Commits {
    git: Option<Objects>,
    /// The ids of agents' commits, the oldest first, each with its parent's id.
    by_agents: Vec<(String, String)>,
    /// The indexes in `by_agents` of the commits that changed a file, by its
    /// path.
    touched: HashMap<Vec<u8>, Vec<usize>>,
}

impl Commits {
    /// Reads the repository that contains `root`. A commit counts as an agent's
    /// if it was made while a command of an agent ran.
    pub(super) fn look(root: &Path, commands: &[CommandRow]) -> Self {
        let Some(mut git) = Objects::open(root) else {
            return Self::default();
        };
        if !matches!(git.object(b"HEAD"), Some(Object::Whole(..))) {
            return Self::default();
        }
        let windows: Vec<(Millis, Millis)> = commands
            .iter()
            // The times of commits are in whole seconds.
            .map(|row| {
                let end = row.ended_at.map_or(Millis::MAX, |end| end / 1_000);
                (row.begun_at / 1_000, end)
            })
            .collect();
        let by_agents = by_agents(&mut git, &windows);
        let touched = match by_agents.is_empty() {
            true => HashMap::new(),
            false => touched(root, &by_agents).unwrap_or_default(),
        };
        Self {
            git: Some(git),
            by_agents,
            touched,
        }
    }

    /// Returns the user's committed content of a file. `NotKept` if there is no
    /// commit, or if the content is too large to compare.
    pub(super) fn committed(&mut self, path: &RelPath) -> Step {
        let Some(git) = &mut self.git else {
            return Step::NotKept;
        };
        let head = git.file("HEAD", path);
        let Some(touched) = self.touched.get(path.as_bytes()) else {
            return head;
        };
        if head == Step::NotKept {
            return head;
        }
        // The agents' commits are taken out, as an undo would do it (UNDO-1).
        let mut steps: Vec<Step> = Vec::new();
        let mut is_agents = Vec::new();
        for at in touched {
            let (commit, parent) = &self.by_agents[*at];
            steps.extend([git.file(parent, path), git.file(commit, path)]);
            is_agents.extend([false, true]);
        }
        steps.push(head);
        let without = Weave::new(&steps).without(|at| is_agents.get(at) == Some(&true));
        without
            .bytes
            .map_or(Step::Absent, |bytes| Step::Held(Arc::from(bytes)))
    }
}

/// Returns the commits of agents, the oldest first, each with its parent.
fn by_agents(git: &mut Objects, windows: &[(Millis, Millis)]) -> Vec<(String, String)> {
    let Some(oldest) = windows.iter().map(|(begin, _)| *begin).min() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut next = "HEAD".to_owned();
    for _ in 0..MOST_COMMITS {
        let Some(Object::Whole(id, commit)) = git.object(next.as_bytes()) else {
            break;
        };
        let text = String::from_utf8_lossy(&commit);
        let head = text.split("\n\n").next().unwrap_or_default();
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let time = field("committer ").and_then(|line| line.rsplit(' ').nth(1)?.parse().ok());
        let (Some(time), Some(parent)) = (time, field("parent ")) else {
            break;
        };
        if time < oldest {
            break;
        }
        if windows
            .iter()
            .any(|(begin, end)| (*begin..=*end).contains(&time))
        {
            found.push((id, parent.to_owned()));
        }
        next = parent.to_owned();
    }
    found.reverse();
    found
}

/// Returns the indexes of the commits that changed each file; `None` if git
/// fails.
fn touched(root: &Path, commits: &[(String, String)]) -> Option<HashMap<Vec<u8>, Vec<usize>>> {
    let mut git = git(root)
        .args(["diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames"])
        .args(["--relative", "--no-ext-diff"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let asked: String = commits
        .iter()
        .map(|(commit, parent)| format!("{commit} {parent}\n"))
        .collect();
    let mut input = git.stdin.take()?;
    // A separate thread writes the input, so that neither pipe blocks when it
    // is full: git writes output before it has read all of its input.
    let asking = std::thread::spawn(move || input.write_all(asked.as_bytes()));
    let output = git.wait_with_output().ok()?;
    let _it_read_what_it_wanted = asking.join();
    let mut touched: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    let mut at = None;
    let mut fields = output.stdout.split(|byte| *byte == 0);
    while let Some(field) = fields.next() {
        if field.starts_with(b":") {
            if let (Some(path), Some(at)) = (fields.next(), at) {
                touched.entry(path.to_vec()).or_default().push(at);
            }
            continue;
        }
        let id = field.trim_ascii();
        let of = commits
            .iter()
            .position(|(commit, _)| commit.as_bytes() == id);
        at = of.or(at);
    }
    Some(touched)
}
