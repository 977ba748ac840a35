//! Who wrote the lines of a commit, according to the daemon of the worktree in
//! which it was made (HIST-11). Only daemons that run are asked.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use touchmark_proto::{AuthorKind, Hash, LineRange, Places, RelPath, SessionId, native};

use crate::git::reflog::moves_in;
use crate::git::{Limits, Object, Objects, WorkTree};
use crate::worktrees::Neighbour;

/// The most bytes of a worktree's log of `HEAD` that are read, the newest.
const MOST_LOG: u64 = 1 << 20;

/// How long all questions for one answer may take.
const TIME: Duration = Duration::from_secs(1);

/// The daemons of the other worktrees of a repository.
pub(super) struct Neighbours {
    /// Each with the commits that were made or checked out in its worktree.
    all: Vec<(Neighbour, HashSet<String>)>,
    /// The workspace's path below the top of its worktree.
    below: Vec<u8>,
    objects: Option<Objects>,
    /// The committed content that was asked about last, by its name for git.
    last: Option<(String, Hash)>,
    /// How much time is left.
    left: Duration,
}

impl Neighbours {
    /// Finds the daemons. `root` is the workspace, in the work tree `tree`.
    pub(super) fn of(tree: &WorkTree, root: &Path, places: &Places) -> Self {
        let below = root.strip_prefix(&tree.top).ok();
        let all = below.map(|_| Neighbour::all(root, places));
        let all = all.into_iter().flatten().map(|one| {
            let moves = moves_in(&one.own.join("logs/HEAD"), MOST_LOG);
            (one, moves.into_iter().map(|one| one.id).collect())
        });
        let all: Vec<_> = all.collect();
        let limits = Limits::default();
        Self {
            objects: (!all.is_empty())
                .then(|| Objects::open(tree, &tree.top, limits))
                .flatten(),
            below: below.map_or_else(Vec::new, |below| native::bytes(below).into_owned()),
            all,
            last: None,
            left: TIME,
        }
    }

    /// Returns the agents' sessions that wrote lines of a file in a commit, for
    /// each line from the first; none if no daemon has recorded them. `file` is
    /// relative to the work tree's top.
    pub(super) fn authors(
        &mut self,
        commit: &str,
        file: &str,
        lines: LineRange,
    ) -> Vec<Option<SessionId>> {
        self.asked(commit, file, lines).unwrap_or_default()
    }

    fn asked(
        &mut self,
        commit: &str,
        file: &str,
        lines: LineRange,
    ) -> Option<Vec<Option<SessionId>>> {
        if !self.all.iter().any(|(_, commits)| commits.contains(commit)) {
            return None;
        }
        let path = within(&self.below, file)?;
        let content = self.content(format!("{commit}:{file}"))?;
        let Self { all, left, .. } = self;
        let mut all = all.iter().filter(|(_, commits)| commits.contains(commit));
        all.find_map(|(one, _)| {
            let begun = Instant::now();
            let known = one.of_content(&path, content, lines, *left);
            *left = left.saturating_sub(begun.elapsed());
            let authors = known?.into_iter().map(|line| line.author);
            let sessions =
                authors.map(|author| author.session.filter(|_| author.kind == AuthorKind::Agent));
            let sessions: Vec<Option<SessionId>> = sessions.collect();
            sessions.iter().any(Option::is_some).then_some(sessions)
        })
    }

    /// Returns the hash of a committed content. The runs of lines of one file
    /// follow each other.
    fn content(&mut self, name: String) -> Option<Hash> {
        if let Some((_, hash)) = self.last.as_ref().filter(|(last, _)| *last == name) {
            return Some(*hash);
        }
        let Object::Whole(_, bytes) = self.objects.as_mut()?.object(name.as_bytes())? else {
            return None;
        };
        let hash = Hash::of(&bytes);
        self.last = Some((name, hash));
        Some(hash)
    }
}

/// Returns a path that is relative to the top, relative to the directory `below`
/// it; `None` if it is elsewhere.
fn within(below: &[u8], file: &str) -> Option<RelPath> {
    let path = match below {
        [] => file.as_bytes(),
        below => file.as_bytes().strip_prefix(below)?.strip_prefix(b"/")?,
    };
    RelPath::new(path).ok()
}
