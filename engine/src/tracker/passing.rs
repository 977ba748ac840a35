//! Passing states: the content of a file that is not recorded yet, and may
//! never be.

use touchmark_proto::{Hash, Millis, RelPath};

use crate::by_path::Paths;
use crate::ledger::record::Held;
use crate::tracker::Tracker;

/// The passing state of a watched path. A read, a rename, the end of an edit or
/// a deadline leads from one state to the next. Lists of contents are never
/// empty, except [`Tentative::earlier`].
#[derive(Clone, Debug, Default)]
pub(crate) enum Passing {
    /// The content found last is recorded. Every other state ends in this one.
    #[default]
    Settled,
    /// The file is gone and may return soon, as in a save (ATTR-12). Entered by
    /// a read that finds nothing. Left by a read that finds a file; else
    /// recorded as deleted at its deadline, or when an answer covers it.
    Absent(Wait),
    /// The writer of an open edit may still be writing (ATTR-5). Entered by a
    /// read of a content that an edit may continue. Left when the declared
    /// content is found, when another writer's content is found, or when the
    /// edit ends.
    HeldBack(Vec<HeldBack>),
    /// A closed content that needs a second look: a read after a fence has to
    /// find it unchanged. It may be the middle of the next writer's write,
    /// whose events have not arrived yet (ATTR-5). A file found empty is looked
    /// at twice as well.
    Unconfirmed(Vec<HeldBack>),
    /// The file is gone, and a session with a mark on it may create it again
    /// (ATTR-5). The absence is the last of the contents, so answers contain
    /// it. It is recorded only at its deadline or at the end of the edit.
    AwaitsReturn(Vec<HeldBack>, Wait),
    /// A content that no writer has closed: half of a save, unless an answer
    /// covers it or it stays (ATTR-12). Entered and left by reads. Recorded at
    /// its deadline.
    Tentative(Box<Tentative>),
    /// A rename brought the file here from a tracked name (ATTR-12). Entered by
    /// the rename. Recorded at its deadline, or when an answer covers it. Left
    /// without a record if the file is gone by then.
    Copy {
        /// The name from which the file was renamed.
        of: RelPath,
        /// Whether what sessions have seen of the previous name is copied
        /// already. That happens early if a fact is about to change what they
        /// have seen.
        copied: bool,
        /// The content, once it was read, and the wait until it is recorded.
        found: Option<(Held, Wait)>,
    },
}

/// The deadline of a state that may end without being recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// When it is recorded even if no answer covers it.
    pub due: Millis,
    /// The number of the read that checks, at the deadline, whether the state
    /// has lasted.
    pub last_look: Option<u64>,
}

/// A content that is no version yet (ATTR-5).
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldBack {
    /// The content that was found.
    pub held: Held,
    /// A writer closed the file before the read. So the content was complete,
    /// unless the next content begins with it.
    pub closed: bool,
}

/// A content that no writer has closed yet (ATTR-12).
#[derive(Clone, Debug)]
pub(crate) struct Tentative {
    /// The content that was found.
    pub held: Held,
    /// For some lengths in bytes: the hash of that number of bytes from the
    /// content's beginning.
    pub prefixes: Vec<(u64, Hash)>,
    /// When it is recorded even if no answer covers it.
    pub due: Millis,
    /// Contents that were held back before. The new content may begin with one
    /// of them.
    pub earlier: Vec<HeldBack>,
}

impl Wait {
    /// Returns a wait for which no read was ordered yet.
    pub(crate) fn until(due: Millis) -> Self {
        let last_look = None;
        Self { due, last_look }
    }
}

impl Passing {
    /// Returns when the state is recorded even if no answer covers it, or
    /// `None` if it has no deadline.
    pub(crate) fn due(&self) -> Option<Millis> {
        match self {
            Self::Tentative(content) => Some(content.due),
            _ => self.wait().map(|wait| wait.due),
        }
    }

    /// Returns the wait of a state that is read once more at its deadline, or
    /// `None`.
    pub(crate) fn wait(&self) -> Option<&Wait> {
        match self {
            Self::Absent(wait) | Self::AwaitsReturn(_, wait) => Some(wait),
            Self::Copy { found, .. } => found.as_ref().map(|(_, wait)| wait),
            _ => None,
        }
    }

    fn wait_mut(&mut self) -> Option<&mut Wait> {
        match self {
            Self::Absent(wait) | Self::AwaitsReturn(_, wait) => Some(wait),
            Self::Copy { found, .. } => found.as_mut().map(|(_, wait)| wait),
            _ => None,
        }
    }

    /// Returns the contents that are no versions yet, the newest last.
    pub(crate) fn contents(&self) -> &[HeldBack] {
        match self {
            Self::HeldBack(contents)
            | Self::Unconfirmed(contents)
            | Self::AwaitsReturn(contents, _) => contents,
            Self::Tentative(content) => &content.earlier,
            Self::Settled | Self::Absent(_) | Self::Copy { .. } => &[],
        }
    }

    /// Splits the state into its contents and the state without them.
    fn split(self) -> (Vec<HeldBack>, Self) {
        match self {
            Self::HeldBack(contents)
            | Self::Unconfirmed(contents)
            | Self::AwaitsReturn(contents, _) => (contents, Self::Settled),
            Self::Tentative(mut content) => {
                let earlier = std::mem::take(&mut content.earlier);
                (earlier, Self::Tentative(content))
            }
            rest => (Vec::new(), rest),
        }
    }

    /// Returns the tracked name from which a rename brought the file, or
    /// `None`.
    pub(crate) fn copy_of(&self) -> Option<&RelPath> {
        match self {
            Self::Copy { of, .. } => Some(of),
            _ => None,
        }
    }

    /// Returns the state that holds these contents back, or `Settled` if there
    /// are none.
    pub(crate) fn held_back(contents: Vec<HeldBack>) -> Self {
        match contents.is_empty() {
            true => Self::Settled,
            false => Self::HeldBack(contents),
        }
    }
}

impl Passing {
    /// Returns the name that a path's content is a copy of, if the copy is not
    /// recorded yet.
    fn uncopied(&self) -> Option<&RelPath> {
        match self {
            Self::Copy {
                of, copied: false, ..
            } => Some(of),
            _ => None,
        }
    }
}

impl Tracker {
    /// Returns a path's passing state.
    pub(crate) fn passing(&self, path: &RelPath) -> &Passing {
        self.live(path)
            .map_or(&Passing::Settled, |live| &live.passing)
    }

    /// Changes a path's passing state, and returns the previous one. All
    /// changes go through here, so that the lists of paths in each state are
    /// correct.
    pub(crate) fn enter(&mut self, path: &RelPath, next: Passing) -> Passing {
        let list = |paths: &mut Paths, is_in: bool| match is_in {
            true => paths.insert(path.clone()),
            false => paths.remove(path),
        };
        list(&mut self.unsettled, next.due().is_some());
        list(
            &mut self.unconfirmed,
            matches!(next, Passing::Unconfirmed(_)),
        );
        let source = next.uncopied().cloned();
        let last = match next {
            Passing::Settled => self
                .live
                .get_mut(path)
                .map_or(Passing::Settled, |live| std::mem::take(&mut live.passing)),
            next => std::mem::replace(&mut self.live_mut(path).passing, next),
        };
        if let Some(of) = last.uncopied()
            && let Some(names) = self.uncopied.get_mut(of)
        {
            names.remove(path);
            if names.is_empty() {
                self.uncopied.remove(of);
            }
        }
        if let Some(of) = source {
            self.uncopied.entry(of).or_default().insert(path.clone());
        }
        last
    }

    /// Ends a path's passing state, and returns it.
    pub(crate) fn settled(&mut self, path: &RelPath) -> Passing {
        self.enter(path, Passing::Settled)
    }

    /// Handles a read that found a file: an absence, an unclosed content or the
    /// wait for a second look ends. Contents held back stay.
    pub(crate) fn found(&mut self, path: &RelPath) {
        let (contents, _) = self.settled(path).split();
        self.enter(path, Passing::held_back(contents));
    }

    /// Holds back a content that may be the middle of a write (ATTR-5). The
    /// same content with another stat is no new content.
    pub(crate) fn hold_back(&mut self, path: &RelPath, next: HeldBack, unconfirmed: bool) {
        let mut contents = self.take_contents(path);
        match contents.last_mut() {
            Some(last) if last.held.hash == next.held.hash => {
                last.held = next.held;
                last.closed |= next.closed;
            }
            _ => contents.push(next),
        }
        let state = match unconfirmed {
            true => Passing::Unconfirmed(contents),
            false => Passing::HeldBack(contents),
        };
        self.enter(path, state);
    }

    /// Removes and returns the contents held back.
    pub(crate) fn take_contents(&mut self, path: &RelPath) -> Vec<HeldBack> {
        let (contents, rest) = self.settled(path).split();
        self.enter(path, rest);
        contents
    }

    /// Ends the wait for a second look at a closed content. The content is
    /// still held back.
    pub(crate) fn confirm(&mut self, path: &RelPath) {
        if matches!(self.passing(path), Passing::Unconfirmed(_)) {
            self.found(path);
        }
    }

    /// Notes the number of the read that checks a path at its deadline.
    pub(crate) fn last_look(&mut self, path: &RelPath, ticket: u64) {
        let live = self.live.get_mut(path);
        if let Some(wait) = live.and_then(|live| live.passing.wait_mut()) {
            wait.last_look = Some(ticket);
        }
    }

    /// Returns whether a completed read was the check at the deadline of a
    /// path's state, and the deadline has passed.
    pub(crate) fn looked_last(&mut self, path: &RelPath, ticket: u64, now: Millis) -> bool {
        let live = self.live.get_mut(path);
        let Some(wait) = live.and_then(|live| live.passing.wait_mut()) else {
            return false;
        };
        let last = wait.last_look.is_some_and(|wanted| wanted <= ticket);
        if last {
            wait.last_look = None;
        }
        // Another absence, with a later deadline, may have begun meanwhile.
        last && wait.due <= now
    }

    /// Returns the paths with contents that are no versions yet (ATTR-5).
    pub(crate) fn held_back(&self) -> impl Iterator<Item = &RelPath> {
        #[allow(clippy::iter_over_hash_type)] // the caller sorts them
        self.live
            .iter()
            .filter_map(|(path, live)| (!live.passing.contents().is_empty()).then_some(path))
    }

    /// Returns the paths found in the middle of a save that may end soon
    /// (ATTR-12).
    pub(crate) fn unclosed(&self, now: Millis) -> impl Iterator<Item = &RelPath> {
        #[allow(clippy::iter_over_hash_type)] // callers only check whether there is one
        self.unsettled.iter().filter(move |path| {
            let live = self.live(path);
            let live = live.filter(|live| matches!(live.passing, Passing::Tentative(_)));
            live.and_then(|live| live.hints.mid_save())
                .is_some_and(|due| now < due)
        })
    }

    /// Returns the paths with closed contents that need a second look (ATTR-5).
    pub(crate) fn unconfirmed(&self) -> impl ExactSizeIterator<Item = &RelPath> {
        #[allow(clippy::iter_over_hash_type)] // the caller sorts them
        self.unconfirmed.iter()
    }
}
