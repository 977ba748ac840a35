//! The worktrees of one repository (TREE): a session is told once of lines that
//! it changes and that another worktree has changed and not merged.
//!
//! - [`trees`]: which worktrees there are, from git's own files.
//! - [`unmerged`]: what they have changed, from their disks and commits.
//! - [`overlap`]: where that meets the session's changes.
//! - [`known`]: what sessions were told, over restarts.
//! - [`neighbour`]: the authors, from the other worktree's daemon if it runs.
//! - [`notice`]: the sentences. [`list`]: `worktree/list`.
//! - [`aside`]: work that may hang, with time limits.
//!
//! No daemon needs another one, none is woken, and other worktrees are not
//! watched: a look follows an event of the own workspace's sessions.

mod aside;
mod known;
mod list;
mod neighbour;
mod notice;
mod overlap;
mod trees;
mod unmerged;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;
use touchmark_proto::history::FileBlame;
use touchmark_proto::{Author, Places, RelPath, SessionId};

use crate::content::Reader;
use crate::inside::Inside;
use known::Known;
pub(crate) use neighbour::Neighbour;
use overlap::{Clash, Mine};
use unmerged::{Disk, Look, Met, disk};

/// The maximum number of looks that wait for another one. Further ones are left
/// out; the session's next prompt makes up for them.
const WAITING: usize = 32;

/// The maximum number of files in one look, the newest first.
const FILES: usize = 64;

/// What a daemon needs to look at the other worktrees of its repository.
#[derive(Debug)]
pub(crate) struct Worktrees {
    /// The workspace's canonical path.
    root: PathBuf,
    places: Places,
    /// Recognises files of secrets.
    reader: Reader,
    known: Known,
    /// The merge bases of pairs of commits; `None` for a pair without one.
    bases: Mutex<HashMap<(String, String), Option<String>>>,
    /// Directories in which work has not returned yet.
    hung: Arc<Mutex<HashSet<PathBuf>>>,
    looking: Mutex<()>,
    waiting: AtomicUsize,
}

/// An edit that a session is about to make.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) path: RelPath,
    /// The file's content before the edit.
    pub(crate) before: Vec<u8>,
    /// The file's content after it.
    pub(crate) after: Vec<u8>,
}

/// Why a look is made.
#[derive(Debug)]
pub(crate) enum Cause {
    /// The session is about to make these edits.
    Edits(Vec<Edit>),
    /// The session has written these files. They are looked at if their edits
    /// were not known before.
    Wrote { paths: Vec<RelPath>, look: bool },
    /// The session's turn begins: all files that it has written.
    Turn,
}

impl Worktrees {
    /// Returns what a daemon needs, with what earlier ones have stored in its
    /// state directory.
    pub(crate) fn open(root: &Path, places: &Places, reader: Reader, durable: bool) -> Self {
        Self {
            root: root.to_owned(),
            places: places.clone(),
            reader,
            known: Known::open(&places.state, durable),
            bases: Mutex::default(),
            hung: Arc::default(),
            looking: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Forgets all sessions but those that `is_known` accepts.
    pub(crate) fn keep(&self, is_known: impl Fn(&SessionId) -> bool) {
        self.known.keep(is_known);
    }

    /// Returns whether the repository has other worktrees.
    pub(crate) async fn are_there(self: &Arc<Self>) -> bool {
        let worktrees = Arc::clone(self);
        let found =
            move || Look::begin(&worktrees, None).is_some_and(|look| !look.others().is_empty());
        self.apart(found).await == Some(true)
    }

    /// Returns the texts for a session about what other worktrees have changed.
    /// Each is returned once.
    pub(crate) async fn news(
        self: &Arc<Self>,
        inside: &Inside,
        session: &SessionId,
        cause: Cause,
    ) -> Vec<String> {
        let (worktrees, by) = (Arc::clone(self), session.clone());
        let is_edit = matches!(cause, Cause::Edits(_));
        let found = self.apart(move || worktrees.look(&by, cause)).await;
        let mut texts = Vec::new();
        for (path, met) in found.flatten().unwrap_or_default() {
            let mut clashes: Vec<&Clash> = met.clashes.iter().collect();
            if !is_edit {
                let own = own_lines(inside, session, &path).await;
                clashes.retain(|clash| is_own(clash, own.as_deref()));
            }
            let is_news = |clash: &&Clash| !self.is_told(session, &path, &met, clash);
            clashes.retain(is_news);
            if clashes.is_empty() {
                continue;
            }
            let authors = self.authors(&met, &clashes).await;
            // Another look at the same lines may have ended meanwhile.
            clashes.retain(is_news);
            if clashes.is_empty() {
                continue;
            }
            texts.push(notice::sentence(&path, &met, &clashes, &authors));
            let lines: Vec<_> = clashes.iter().map(|clash| clash.base.clone()).collect();
            let base = met.base();
            self.known
                .tell(session, &path, &met.tree.root, base, &lines);
        }
        texts
    }

    fn is_told(&self, session: &SessionId, path: &RelPath, met: &Met, clash: &Clash) -> bool {
        let tree = &met.tree.root;
        self.known
            .is_told(session, path, tree, met.base(), &clash.base)
    }

    /// Returns who wrote lines of another worktree; none if its daemon
    /// does not run.
    async fn authors(&self, met: &Met, clashes: &[&Clash]) -> Vec<Author> {
        let written = clashes.iter().filter(|clash| !clash.theirs.is_empty());
        let written: Vec<&Clash> = written.copied().collect();
        match neighbour::socket(&self.places, &met.tree.root) {
            Some(socket) if !written.is_empty() => {
                let lines = notice::ranges(&written);
                neighbour::authors(&socket, &met.unmerged.path, &lines).await
            }
            _ => Vec::new(),
        }
    }

    /// Does work on a separate thread, one look after the other. `None` if too
    /// many wait.
    async fn apart<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let (done, result) = oneshot::channel();
        let worktrees = Arc::clone(self);
        let body = move || {
            let alone = worktrees.looking.lock();
            let alone = alone.unwrap_or_else(PoisonError::into_inner);
            let _nobody_waits = done.send(work());
            drop(alone);
        };
        let thread = thread::Builder::new().name("worktrees".into()).spawn(body);
        let result = match thread {
            Ok(_) => result.await.ok(),
            Err(_) => None,
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// Returns where the session's changes meet those of other worktrees.
    /// `None` if there are no other worktrees.
    fn look(&self, session: &SessionId, cause: Cause) -> Option<Vec<(RelPath, Met)>> {
        let mut look = Look::begin(self, None)?;
        let trees = look.others();
        if trees.is_empty() {
            return None;
        }
        let files: Vec<(RelPath, Vec<u8>, Mine)> = match cause {
            Cause::Edits(edits) => edits
                .into_iter()
                .filter_map(|edit| {
                    let mine = Mine::of_edit(&edit.before, &edit.after)?;
                    Some((edit.path, edit.after, mine))
                })
                .collect(),
            Cause::Wrote { paths, look } => {
                self.known.wrote(session, &paths);
                match look {
                    true => self.current(&paths),
                    false => Vec::new(),
                }
            }
            Cause::Turn => self.current(&self.known.written(session)),
        };
        let mut found = Vec::new();
        for (path, own, mine) in files {
            if self.reader.is_secret(&path) {
                continue;
            }
            for tree in &trees {
                if look.is_over() {
                    tracing::debug!("a look at worktrees took too long");
                    return Some(found);
                }
                let met = look.met(tree, &path, &own, &mine);
                // A file that was renamed to the name of a secret is one.
                let met = met.filter(|met| !self.reader.is_secret(&met.unmerged.path));
                found.extend(met.map(|met| (path.clone(), met)));
            }
        }
        Some(found)
    }

    /// Returns the contents of files of the workspace.
    fn current(&self, paths: &[RelPath]) -> Vec<(RelPath, Vec<u8>, Mine)> {
        let paths = paths.iter().take(FILES);
        paths
            .filter_map(|path| {
                let bytes = match disk(&self.root, path) {
                    Disk::Held(bytes) => bytes,
                    Disk::Absent => Vec::new(),
                    Disk::Other => return None,
                };
                Some((path.clone(), bytes, Mine::All))
            })
            .collect()
    }

    /// Returns whether work in a directory has not returned yet.
    fn hangs(&self, root: &Path) -> bool {
        let hung = self.hung.lock().unwrap_or_else(PoisonError::into_inner);
        hung.contains(root)
    }
}

/// Returns the lines of a file that a session wrote, counted from 0. `None` if
/// they are not known.
async fn own_lines(inside: &Inside, session: &SessionId, path: &RelPath) -> Option<Vec<u32>> {
    let ask = FileBlame::new(path).commits(false);
    let blame = inside.ask(ask).await.ok()?;
    let lines = (blame.start.saturating_sub(1)..).zip(blame.lines);
    let own = lines.filter(|(_, line)| line.author.session.as_ref() == Some(session));
    Some(own.map(|(number, _)| number).collect())
}

/// Returns whether the session has changed the lines of a clash. Where lines
/// were only removed, nothing shows by whom; then every session that wrote the
/// file counts.
fn is_own(clash: &Clash, own: Option<&[u32]>) -> bool {
    let Some(own) = own else { return true };
    clash.own.is_empty() || own.iter().any(|line| clash.own.contains(line))
}
