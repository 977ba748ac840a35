//! Changes of a file that are reviewed as a whole, since they have no lines:
//! another mode, symbolic links, and moves.

use std::collections::BTreeSet;
use std::sync::Arc;

use touchmark_engine::history::{Step, Undos, Weave};
use touchmark_proto::review::ReviewFile;
use touchmark_proto::{AuthorKind, FileMode, RelPath};

use super::commits::Commits;
use super::{authors, command, hashed};
use crate::history::Chain;

/// The bits of a mode that git records of a file.
const EXECUTABLE: u32 = 0o100;

/// A file's change, as a whole.
#[derive(Debug)]
pub(super) struct Whole {
    /// The change's name.
    pub(super) id: String,
    /// The number of the newest version that made the change. The change is
    /// kept by this number, so that a later change is listed again.
    pub(super) n: u64,
    /// The versions that made the change.
    pub(super) steps: BTreeSet<usize>,
    /// The name that the file had before agents moved it; `None` if they did
    /// not.
    pub(super) from: Option<RelPath>,
    /// The content and the mode that the file has without the change.
    pub(super) before: State,
    now: State,
}

/// A file's content and mode; `None` where there is no file, or the mode is not
/// known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) bytes: Option<Arc<[u8]>>,
    pub(super) mode: Option<FileMode>,
}

impl State {
    fn is_link(&self) -> bool {
        self.bytes.is_some() && self.mode.is_some_and(FileMode::is_link)
    }

    /// Returns the target of a symbolic link; `None` for any other file.
    fn target(&self) -> Option<String> {
        let bytes = self.bytes.as_deref().filter(|_| self.is_link())?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns the mode; `None` for no file.
    fn shown(&self) -> Option<FileMode> {
        self.mode.filter(|_| self.bytes.is_some())
    }
}

impl Whole {
    /// Returns what agents have changed of a file besides lines; `None` if
    /// nothing, if it was kept, or if it cannot be told.
    pub(super) fn of(path: &RelPath, chain: &Chain, weave: &Weave, undos: &Undos) -> Option<Self> {
        let is_agents = |step: usize| {
            chain.version(step).author.kind == AuthorKind::Agent && !chain.is_carried(step)
        };
        let links = chain.has_links();
        let moved = chain.moved_by(undos, is_agents);
        let is_move = |step: usize| moved.is_some_and(|(at, _)| at == step);
        let steps: BTreeSet<usize> = (0..chain.versions.len())
            .filter(|step| is_agents(*step))
            .filter(|step| links || is_move(*step) || chain.versions[*step].mode_before.is_some())
            .collect();
        let n = chain.versions[*steps.last()?].clock.n;
        let bytes = match chain.steps.last()? {
            Step::Held(bytes) => Some(Arc::clone(bytes)),
            Step::Absent => None,
            Step::NotKept => return None,
        };
        let mode = chain.mode.filter(|_| bytes.is_some());
        let now = State { bytes, mode };
        let mut before = State {
            bytes: now.bytes.clone(),
            mode: chain.mode_without(undos, is_agents),
        };
        if links {
            before.bytes = weave.without(is_agents).bytes.map(Arc::from);
        } else if now.bytes.is_none() || before.mode.is_none() && moved.is_none() {
            // A file's removal has lines.
            return None;
        }
        // A link's permissions are always the same.
        let is_same = before.bytes == now.bytes
            && (before.shown() == now.shown() || before.is_link() && now.is_link());
        if is_same && moved.is_none() {
            return None;
        }
        let parts = [&before, &now].map(|state| {
            let mode = state.shown().map_or(0, FileMode::bits).to_le_bytes();
            let bytes = state.bytes.as_deref().filter(|_| links);
            [&mode, bytes.unwrap_or_default()].concat()
        });
        let from = moved.map(|(_, from)| from.clone());
        let name = from.as_ref().map_or(&[][..], RelPath::as_bytes);
        Some(Self {
            id: match name {
                [] => hashed([b"whole".as_slice(), path.as_bytes(), &parts[0], &parts[1]]),
                _ => hashed([
                    b"moved".as_slice(),
                    name,
                    path.as_bytes(),
                    &parts[0],
                    &parts[1],
                ]),
            },
            n,
            steps,
            from,
            before,
            now,
        })
    }

    /// Returns whether the user has committed the change (REV-2). Git records
    /// of a mode whether the file is a link and whether it may be executed. A
    /// change of other permissions is not committed.
    pub(super) fn is_in(&self, commits: &mut Commits, path: &RelPath, deleted: u64) -> bool {
        let committed = commits.committed(path);
        if self.now.bytes.is_none() {
            return committed == Step::Absent && commits.deleted(path, deleted);
        }
        let in_git = |state: &State| {
            let mode = state.shown()?;
            Some((
                mode.is_link(),
                mode.is_file() && mode.bits() & EXECUTABLE != 0,
            ))
        };
        if self.from.is_some() && in_git(&self.before) == in_git(&self.now) {
            return matches!(committed, Step::Held(_));
        }
        let is_content = match (&committed, &self.now.bytes) {
            (Step::Held(committed), Some(now)) => committed == now || !self.now.is_link(),
            _ => false,
        };
        let is_visible = in_git(&self.before) != in_git(&self.now) || self.now.is_link();
        let mode = commits.mode(path);
        let committed = State {
            bytes: self.now.bytes.clone(),
            mode,
        };
        is_content && is_visible && mode.is_some() && in_git(&committed) == in_git(&self.now)
    }

    /// Returns the row in the answer.
    pub(super) fn row(&self, path: &RelPath, chain: &Chain) -> ReviewFile {
        let versions = self.steps.iter().map(|step| &chain.versions[*step]);
        ReviewFile {
            id: self.id.clone(),
            path: path.clone(),
            // The change created the name.
            mode_before: self.before.shown().filter(|_| self.from.is_none()),
            mode: self.now.shown(),
            target_before: self.before.target(),
            target: self.now.target(),
            authors: authors(versions.clone()),
            time: versions
                .clone()
                .map(|version| version.time)
                .max()
                .unwrap_or_default(),
            command: command(versions),
            viewed: None,
        }
    }

    /// Returns the file's current mode, and the mode without the change.
    pub(super) fn modes(&self) -> [Option<FileMode>; 2] {
        [self.now.mode, self.before.mode]
    }
}
