//! What a file holds that is not recorded yet, and may never be: the states of
//! it, which exclude each other.

use touchmark_proto::{Hash, Millis, RelPath};

use crate::by_path::Paths;
use crate::ledger::record::Held;
use crate::tracker::Tracker;

/// The passing state of a watched path. A read, a rename, the end of an edit
/// or time leads from one to the next. Lists of contents are never empty, but
/// for [`Tentative::earlier`].
#[derive(Clone, Debug, Default)]
pub(crate) enum Passing {
    /// What was found last is recorded. Every state ends here.
    #[default]
    Settled,
    /// It is gone and may be back in a moment, as in a save (ATTR-12). Entered
    /// by a read that finds nothing; left by one that finds a file, else
    /// recorded as deleted after its time, or when an answer speaks of it.
    Absent(Wait),
    /// An open edit's writer may not be done with what was found (ATTR-5).
    /// Entered by a read of a declared writer's middle; left when its declared
    /// content comes, another writer's does, or the edit ends.
    HeldBack(Vec<HeldBack>),
    /// The same for a closed content, until a second read behind a fence finds
    /// it unchanged: it may be the next writer's, whose events have not come
    /// yet (ATTR-5). A file found empty is looked at twice as well.
    Unconfirmed(Vec<HeldBack>),
    /// It is gone, and whoever has it marked may be about to make it anew
    /// (ATTR-5). The absence is the last of the contents, so answers tell it;
    /// it is recorded only after its time, or at the end of the edit.
    AwaitsReturn(Vec<HeldBack>, Wait),
    /// A content that nobody has closed: half a save, unless an answer speaks
    /// of it or it stays (ATTR-12). Entered and left by reads; recorded after
    /// its time.
    Tentative(Box<Tentative>),
    /// A rename brought it here from a tracked name (ATTR-12). Entered by the
    /// rename; recorded after its time, or when an answer speaks of it; left
    /// without a trace if it is gone by then.
    Copy {
        /// The name that it came from.
        of: RelPath,
        /// What sessions know of that one is copied already, since they were
        /// about to know more of what is there by now.
        copied: bool,
        /// What it holds, once that was read.
        found: Option<(Held, Wait)>,
    },
}

/// Until when something is waited for that may dissolve by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// When it is recorded although nobody asks.
    pub due: Millis,
    /// The read that says whether it has lasted until then.
    pub last_look: Option<u64>,
}

/// A content that is no version yet (ATTR-5).
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldBack {
    /// What was found.
    pub held: Held,
    /// Somebody has closed the file before it was read: what is not the
    /// beginning of the next content was whole.
    pub closed: bool,
}

/// A content that nobody has closed yet (ATTR-12).
#[derive(Clone, Debug)]
pub(crate) struct Tentative {
    /// What was found.
    pub held: Held,
    /// The beginnings it has, by their size.
    pub prefixes: Vec<(u64, Hash)>,
    /// When it is recorded although nobody asks.
    pub due: Millis,
    /// Contents held back before, which it may have begun with.
    pub earlier: Vec<HeldBack>,
}

impl Wait {
    /// One that nothing was read for yet.
    pub(crate) fn until(due: Millis) -> Self {
        let last_look = None;
        Self { due, last_look }
    }
}

impl Passing {
    /// When it is recorded although nobody asks; `None` if it does not end
    /// with time.
    pub(crate) fn due(&self) -> Option<Millis> {
        match self {
            Self::Tentative(content) => Some(content.due),
            _ => self.wait().map(|wait| wait.due),
        }
    }

    /// What is waited for and looked at once more at the end.
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

    /// Contents that are no versions yet, the newest last.
    pub(crate) fn contents(&self) -> &[HeldBack] {
        match self {
            Self::HeldBack(contents)
            | Self::Unconfirmed(contents)
            | Self::AwaitsReturn(contents, _) => contents,
            Self::Tentative(content) => &content.earlier,
            Self::Settled | Self::Absent(_) | Self::Copy { .. } => &[],
        }
    }

    /// The contents, and the state without them.
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

    /// The tracked name that a rename brought it from.
    pub(crate) fn copy_of(&self) -> Option<&RelPath> {
        match self {
            Self::Copy { of, .. } => Some(of),
            _ => None,
        }
    }

    /// Contents held back, or nothing if there are none.
    pub(super) fn held_back(contents: Vec<HeldBack>) -> Self {
        match contents.is_empty() {
            true => Self::Settled,
            false => Self::HeldBack(contents),
        }
    }
}

impl Tracker {
    /// A path's passing state.
    pub(crate) fn passing(&self, path: &RelPath) -> &Passing {
        self.live(path)
            .map_or(&Passing::Settled, |live| &live.passing)
    }

    /// The one place where a path's passing state changes, so that the lists
    /// of paths in one state are true. Gives the state before.
    pub(super) fn enter(&mut self, path: &RelPath, next: Passing) -> Passing {
        let list = |paths: &mut Paths, is_in: bool| match is_in {
            true => paths.insert(path.clone()),
            false => paths.remove(path),
        };
        list(&mut self.unsettled, next.due().is_some());
        list(
            &mut self.unconfirmed,
            matches!(next, Passing::Unconfirmed(_)),
        );
        match next {
            Passing::Copy { copied: false, .. } => self.uncopied.insert(path.clone()),
            _ => self.uncopied.remove(path),
        };
        match next {
            Passing::Settled => self
                .live
                .get_mut(path)
                .map_or(Passing::Settled, |live| std::mem::take(&mut live.passing)),
            next => std::mem::replace(&mut self.live_mut(path).passing, next),
        }
    }

    /// Ends a path's passing state, and gives it.
    pub(crate) fn settled(&mut self, path: &RelPath) -> Passing {
        self.enter(path, Passing::Settled)
    }

    /// A read has found a file: an absence, a content that nobody had closed
    /// and the wait for a second look are over, contents held back are not.
    pub(super) fn found(&mut self, path: &RelPath) {
        let (contents, _) = self.settled(path).split();
        self.enter(path, Passing::held_back(contents));
    }

    /// Keeps what a writer may be in the middle of (ATTR-5). A touch of it is
    /// no new content.
    pub(super) fn hold_back(&mut self, path: &RelPath, next: HeldBack, unconfirmed: bool) {
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

    /// Contents held back, which are so no longer.
    pub(super) fn take_contents(&mut self, path: &RelPath) -> Vec<HeldBack> {
        let (contents, rest) = self.settled(path).split();
        self.enter(path, rest);
        contents
    }

    /// A closed content is not waited for any longer to be looked at twice; it
    /// is held back still.
    pub(super) fn confirm(&mut self, path: &RelPath) {
        if matches!(self.passing(path), Passing::Unconfirmed(_)) {
            self.found(path);
        }
    }

    /// A path whose wait has come to its end is read once more.
    pub(super) fn last_look(&mut self, path: &RelPath, ticket: u64) {
        let live = self.live.get_mut(path);
        if let Some(wait) = live.and_then(|live| live.passing.wait_mut()) {
            wait.last_look = Some(ticket);
        }
    }

    /// A read is done; whether it was the last look at something that has had
    /// its time.
    pub(super) fn looked_last(&mut self, path: &RelPath, ticket: u64, now: Millis) -> bool {
        let live = self.live.get_mut(path);
        let Some(wait) = live.and_then(|live| live.passing.wait_mut()) else {
            return false;
        };
        let last = wait.last_look.is_some_and(|wanted| wanted <= ticket);
        if last {
            wait.last_look = None;
        }
        // Another absence may have begun meanwhile, with a time of its own.
        last && wait.due <= now
    }

    /// Paths with contents that are no versions yet (ATTR-5).
    pub(crate) fn held_back(&self) -> impl Iterator<Item = &RelPath> {
        #[allow(clippy::iter_over_hash_type)] // put in order by who asks
        self.live
            .iter()
            .filter_map(|(path, live)| (!live.passing.contents().is_empty()).then_some(path))
    }

    /// Paths that were found in the middle of a save which may end in a moment
    /// (ATTR-12).
    pub(crate) fn unclosed(&self, now: Millis) -> impl Iterator<Item = &RelPath> {
        #[allow(clippy::iter_over_hash_type)] // whether there are any is all that is asked
        self.unsettled.iter().filter(move |path| {
            let live = self.live(path);
            let live = live.filter(|live| matches!(live.passing, Passing::Tentative(_)));
            live.and_then(|live| live.hints.mid_save())
                .is_some_and(|due| now < due)
        })
    }

    /// Closed contents that wait for a second look (ATTR-5).
    pub(crate) fn unconfirmed(&self) -> impl ExactSizeIterator<Item = &RelPath> {
        #[allow(clippy::iter_over_hash_type)] // put in order by who asks
        self.unconfirmed.iter()
    }
}
