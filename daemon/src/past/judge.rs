//! Decides whether git brought the content of a version (HIST-8).

mod filtered;
mod texts;

use std::collections::{BTreeSet, HashSet};
use std::fs::Metadata;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use touchmark_engine::{Carriage, Fact, Held, VersionFact};
use touchmark_proto::{Evidence, Hash, Millis, RelPath, native};

use super::blobs::{Nanos, SECOND, written};
use super::moves::{Changed, Kind, Timed};
use super::place::{AROUND, Place};
use crate::git::index::ObjectId;
use crate::git::reflog::Move;
use crate::store::Reader;
use crate::system::open::regular;
use crate::system::stat::modified_ms;
use texts::{as_stored, is_begun, is_conflict, lines_of};

/// The largest content that is looked at, in bytes.
const MOST: u64 = 64 << 20;

/// The number of the newest moves of `HEAD` that are considered for a version.
const MOST_MOVES: usize = 32;

/// How far a move or a stash may be from a content that it explains without
/// containing it.
const NEAR: Nanos = 2 * SECOND;

/// How much longer the recording of a removal may take than the removal.
const SETTLING: Nanos = 3 * SECOND;

/// The unit in which a written content gets visible, in bytes.
const PAGE: usize = 4096;

/// The number of earlier versions whose lines count as known.
const MOST_VERSIONS: usize = 32;

const MILLISECOND: Nanos = 1_000_000;

/// A version to look at.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) n: u64,
    pub(super) time: Millis,
    pub(super) fact: VersionFact,
}

/// What is known of a version's content.
struct Content {
    bytes: Arc<[u8]>,
    /// Since when the file has it at most.
    since: Nanos,
    /// The blob that git has for it.
    id: ObjectId,
    /// Whether only the index tells that, since a filter has made other bytes.
    is_filtered: bool,
    /// When git stored it; the same time as `since` if the order cannot be told.
    stored: Nanos,
}

impl Content {
    /// Returns whether git has had it earlier than the file.
    fn is_older(&self) -> bool {
        self.stored < self.since
    }

    /// Returns whether git has stored a text with the marks of a conflict right
    /// before the file had it. So it is what a merge has left: what a user adds
    /// is stored after the file.
    fn is_left_by_merge(&self) -> bool {
        is_conflict(&self.bytes) && self.since - self.stored <= NEAR
    }
}

/// What was read of a file.
pub(super) struct OnDisk {
    pub(super) bytes: Vec<u8>,
    pub(super) hash: Hash,
    /// The file's stat while it had the bytes.
    found: Metadata,
}

/// The moves that may explain a version, and which files each changed.
type Moves = Vec<(Move, Option<Arc<Changed>>)>;

impl Job {
    /// Returns the file of a version in the workspace `root`.
    pub(super) fn file(&self, root: &Path) -> PathBuf {
        root.join(native::name(self.fact.path.as_bytes()))
    }

    /// Returns what git did with the version's content; `None` if it did not
    /// bring it. `path` is relative to the repository's top, `read` is what was
    /// read of the file before; `None` if it is to be read.
    pub(super) fn judge(
        &self,
        place: &mut Place,
        log: &Reader,
        file: &Path,
        path: &[u8],
        read: Option<OnDisk>,
    ) -> Option<Carriage> {
        let before = self.fact.before.and_then(|hash| content(log, &hash));
        let before = before.as_deref();
        let Some(hash) = self.fact.held.hash else {
            let before = before?;
            let old = place.id_of(path, before);
            let carried = |is_so: bool| is_so.then_some(Carriage::Carried);
            return self
                .passed_by(place, log, file, path)
                .or_else(|| carried(self.is_gone_filtered(place, log, path, before)))
                .or_else(|| self.removed(place, log, path, old))
                .or_else(|| carried(self.calls_off_at_once(place, log, old)));
        };
        let read = read.or_else(|| on_disk(file, MOST));
        if let Some(content) = self.content(place, log, read, path, &hash) {
            return Some(self.brought(place, log, path, before, &content));
        }
        let how = self
            .stashed_filtered(place, log, path, &hash)
            .or_else(|| self.passed_by(place, log, file, path));
        if how.is_some() {
            return how;
        }
        // A file may be seen while git writes it. Then it has the beginning of
        // what git has written since.
        if !self.may_be_begun() {
            return None;
        }
        let begun = self::content(log, &hash)?;
        let read = on_disk(file, MOST)?;
        if !is_begun(&begun, &read.bytes) {
            return None;
        }
        let hash = read.hash;
        let whole = self.content(place, log, Some(read), path, &hash)?;
        let how = self.brought(place, log, path, before, &whole);
        matches!(how, Carriage::Carried | Carriage::Wiped).then_some(how)
    }

    /// Returns what git did to put a content that it has in place of the one
    /// before.
    fn brought(
        &self,
        place: &mut Place,
        log: &Reader,
        path: &[u8],
        before: Option<&[u8]>,
        content: &Content,
    ) -> Carriage {
        // Of what git had begun to write nothing was destroyed.
        let lost = before.filter(|before| !is_begun(before, &content.bytes));
        let lost = lost.map(|lost| place.id_of(path, lost));
        if let Some(how) = self.explained(place, log, path, content, lost) {
            return how;
        }
        if self.is_put_together(place, log, path, content)
            || lost.is_some_and(|lost| self.calls_off_at_once(place, log, lost))
        {
            return Carriage::Carried;
        }
        // A filter may leave out what was typed, so that git has the rest.
        let is_told = !content.is_filtered || {
            let hash = Hash::of(&content.bytes);
            let mut earlier = self.earlier(log);
            earlier.any(|(_, held)| held.hash == Some(hash))
        };
        match content.is_older() && is_told {
            true => Carriage::TakenBack,
            false => Carriage::Unclear,
        }
    }

    /// Returns the contents that the file had before, the newest first, each with
    /// the number of its version; `None` for the first one that was read.
    fn earlier(&self, log: &Reader) -> impl Iterator<Item = (Option<u64>, Held)> + use<> {
        let earlier = log.history(&self.fact.path, Some(self.n), MOST_VERSIONS);
        let earlier = earlier.unwrap_or_default().into_iter();
        earlier.filter_map(|record| {
            let is_version = matches!(record.fact, Fact::Version(_));
            Some((is_version.then_some(record.n), *record.fact.held()?))
        })
    }

    /// Returns whether the content may be the beginning of another one.
    fn may_be_begun(&self) -> bool {
        self.fact.held.size.is_multiple_of(PAGE as u64)
    }

    /// Returns since when the file has had the version's content at most.
    pub(super) fn since(&self) -> Nanos {
        Nanos::from(self.fact.held.mtime_ms) * MILLISECOND
    }

    /// Returns whether git's log of `HEAD`, or the rest of the file, may later
    /// tell that git brought the version.
    pub(super) fn may_be_explained_later(&self) -> bool {
        self.fact.held.hash.is_none() || self.may_be_begun()
    }

    /// Returns the content of the version, if git has it and did not store it
    /// from this file, of which this was read.
    fn content(
        &self,
        place: &mut Place,
        log: &Reader,
        read: Option<OnDisk>,
        path: &[u8],
        hash: &Hash,
    ) -> Option<Content> {
        // The file may have got the version's content again since.
        let held = &self.fact.held;
        let is_this = |read: &OnDisk| {
            let is_later = held.hash == Some(*hash) && modified_ms(&read.found) != held.mtime_ms;
            read.hash == *hash && !is_later
        };
        let (bytes, since, until, found) = match read.filter(is_this) {
            Some(OnDisk { bytes, found, .. }) => {
                let since = written(&found);
                (Arc::from(bytes), since, since, Some(found))
            }
            // It was overwritten in the meantime. The engine has recorded,
            // to the millisecond, since when the file had it at most.
            None => {
                let since = self.since();
                (content(log, hash)?, since, since + MILLISECOND, None)
            }
        };
        let own = place.own_ids(&bytes);
        if let Some(found) = found {
            place.filtered_blob(path, &found, *hash, &own);
        }
        let filtered = place.paired(path, hash);
        let known = own.into_iter().chain(filtered).find_map(|id| {
            let stored = place.blobs.since(&id, since)?;
            Some((id, stored))
        });
        let (id, stored) = known?;
        (stored <= until).then(|| Content {
            bytes,
            since,
            id,
            is_filtered: filtered == Some(id),
            stored,
        })
    }

    /// Returns the version before this one, with the time of its record.
    fn last(&self, log: &Reader) -> Option<(Millis, VersionFact)> {
        let last = log.history(&self.fact.path, Some(self.n), 1).ok()?.pop()?;
        match last.fact {
            Fact::Version(fact) => Some((last.time, fact)),
            _ => None,
        }
    }

    /// Returns whether a command has brought a content (`old`) that git had, and
    /// then the one before it again, as `git merge x || git merge --abort` does.
    /// Nothing tells of that merge afterwards.
    fn calls_off_at_once(&self, place: &mut Place, log: &Reader, old: ObjectId) -> bool {
        let Some((_, brought)) = self.last(log) else {
            return false;
        };
        let is_back = self.fact.command.is_some()
            && brought.command == self.fact.command
            && brought.before == self.fact.held.hash;
        let written = Nanos::from(brought.held.mtime_ms) * MILLISECOND;
        is_back && place.is_stored(&old, written + MILLISECOND)
    }

    /// Returns what git did, if a move of `HEAD`, a stash or a merge explains
    /// the content. `lost` is the blob of the content before; `None` if nothing
    /// of it was destroyed, or for no file.
    fn explained(
        &self,
        place: &mut Place,
        log: &Reader,
        path: &[u8],
        content: &Content,
        lost: Option<ObjectId>,
    ) -> Option<Carriage> {
        if place.is_between()
            && (place.in_index(path) == Some(content.id)
                || place.is_merged(path, &content.id, content.since))
        {
            place.waits_with(path, content.id);
            return Some(Carriage::Carried);
        }
        if lost.is_some_and(|lost| place.calls_off(path, lost, Some(content.id))) {
            return Some(Carriage::Carried);
        }
        if lost.is_none() && place.is_taken_in(path, &content.id, content.since) {
            return Some(Carriage::Carried);
        }
        let filtered = self.filtered_before(log, content);
        let stashed = |place: &mut Place| {
            let old = (lost, filtered);
            self.stashed(place, path, Some(content.id), old, content.since)
        };
        let moves = self.moves(place, content.since, None);
        let ids = |one: &Option<Arc<Changed>>| {
            let changed = one.as_ref()?;
            changed.get(path).copied()
        };
        let explains = moves.iter().rfind(|(_, changed)| {
            let both = ids(changed);
            both.is_some_and(|(_, new)| new == Some(content.id))
        });
        if let Some((one, _)) = explains {
            // What no commit has was destroyed.
            let is_clean = lost.is_none()
                || moves.iter().any(|(_, changed)| {
                    ids(changed).is_some_and(|(before, after)| lost == before || lost == after)
                })
                || lost.is_some_and(|lost| self.was_committed(place, path, &lost))
                || content.is_filtered
                    && moves.iter().any(|(_, changed)| {
                        let before = ids(changed).and_then(|(before, _)| before);
                        before.is_some_and(|before| self.was_in_git(place, log, &before))
                    });
            let is_wiped = Kind::of(one) == Kind::Switch && !is_clean;
            // Of a stash, an earlier switch may have brought the same content.
            return match is_wiped {
                true if filtered.is_some() => stashed(place).or(Some(Carriage::Wiped)),
                true => Some(Carriage::Wiped),
                false => Some(Carriage::Carried),
            };
        }
        stashed(place).or_else(|| {
            // A revert takes back, except where it wrote markers.
            let is_merged = place.is_merged(path, &content.id, content.since)
                && (is_conflict(&content.bytes) || !place.is_reverted(content.since));
            is_merged.then_some(Carriage::Carried)
        })
    }

    /// Returns whether one of the last commits of `HEAD` has this blob at the path.
    fn was_committed(&self, place: &mut Place, path: &[u8], lost: &ObjectId) -> bool {
        let last = place.moves.iter().rev().take(MOST_MOVES);
        let ends = last.flat_map(|one| [one.of.before.clone(), Some(one.of.id.clone())]);
        let commits: BTreeSet<String> = ends.flatten().collect();
        commits.iter().any(|commit| {
            let held = place.blob_at(commit, path);
            held.is_some_and(|(id, _)| id == *lost)
        })
    }

    /// Returns what a stash did, if one has the content, or the content before
    /// (`old`). `filtered` is its hash if a filter has made it, so that its blob
    /// may not be known.
    fn stashed(
        &self,
        place: &mut Place,
        path: &[u8],
        new: Option<ObjectId>,
        (old, filtered): (Option<ObjectId>, Option<Hash>),
        time: Nanos,
    ) -> Option<Carriage> {
        let is_made = new.is_some() && place.has_stashed(time - AROUND, time);
        let changed = place.stashes.changed();
        let is_near = is_made || changed.is_some_and(|changed| changed >= time - AROUND);
        // `stash apply` leaves the list as it is. It is mostly of the newest.
        let most = if is_near { usize::MAX } else { 1 };
        let stashes: Vec<String> = place.stashes.newest_first().take(most).cloned().collect();
        for stash in stashes {
            // The third parent has the files that git did not track.
            let trees = [stash.clone(), format!("{stash}^3")];
            let stashed: Vec<ObjectId> = trees
                .iter()
                .filter_map(|tree| Some(place.blob_at(tree, path)?.0))
                .collect();
            let base = place.blob_at(&format!("{stash}^1"), path).map(|(id, _)| id);
            // A stash also has the files that were as in the commit. These it
            // does not bring.
            if new.is_some_and(|new| stashed.contains(&new) && base != Some(new)) {
                return Some(Carriage::Carried);
            }
            // A stash without the file takes its removal away, and brings it back.
            if new.is_none()
                && is_near
                && stashed.is_empty()
                && base == old
                && place.stashes.has_taken(&stash, path)
                && ObjectId::from_digits(&stash).is_some_and(|id| place.is_stored(&id, time))
            {
                return Some(Carriage::Carried);
            }
            // Behind a filter the stash tells which blob the content had.
            let taken = filtered.filter(|_| is_made && base == new);
            let taken = taken.and_then(|hash| Some((hash, *stashed.first()?)));
            if let Some((hash, id)) = taken.filter(|(_, id)| Some(*id) != base)
                && place.stashes.takes(&stash, path, self.n)
            {
                place.pair(path, hash, id);
                return Some(self.destroyed());
            }
            let has_old = old.map_or(stashed.is_empty(), |old| stashed.contains(&old));
            if has_old && base == new && place.stashes.takes(&stash, path, self.n) {
                return Some(Carriage::Wiped);
            }
        }
        None
    }

    /// Returns what git did with a file that was removed; `None` if it did
    /// nothing. `old` is the blob of its last content.
    fn removed(
        &self,
        place: &mut Place,
        log: &Reader,
        path: &[u8],
        old: ObjectId,
    ) -> Option<Carriage> {
        let time = Nanos::from(self.time) * MILLISECOND;
        let (from, seen) = match self.fact.evidence {
            // The daemon did not see when.
            Evidence::Gap => (0, None),
            _ => (time - SETTLING, Some(time)),
        };
        // What was logged before the file had its last content did not remove it.
        let came = self
            .last(log)
            .filter(|(_, last)| last.held.hash == self.fact.before);
        let came = came.map_or(0, |(time, last)| last.held.mtime_ms.min(time));
        let moves = self.moves(place, from.max(Nanos::from(came) * MILLISECOND), seen);
        let of_file = |changed: &Option<Arc<Changed>>| changed.as_ref()?.get(path).copied();
        // What is gone with the commit of a merge, the user may have removed.
        let mut by_git = moves
            .iter()
            .rev()
            .filter(|(one, _)| Kind::of(one) != Kind::Ends);
        let newest = by_git.find_map(|(_, changed)| of_file(changed));
        // Git removes a file before it writes it again, which may take a
        // filter's time.
        if newest.is_some_and(|(before, _)| before == Some(old))
            || place.calls_off(path, old, None)
            || place.is_left_out(path, &old)
        {
            return Some(Carriage::Carried);
        }
        self.stashed(place, path, None, (Some(old), None), time)
    }

    /// Returns the moves from one whole state to another that may have written
    /// a file at this time. `seen` is when the file was seen so, if it is known:
    /// what came after a later commit did not write it.
    fn moves(&self, place: &mut Place, time: Nanos, seen: Option<Nanos>) -> Moves {
        let is_later = |one: &Timed| one.stored.zip(seen).is_some_and(|(at, seen)| at > seen);
        let last = place.moves.iter().position(is_later);
        let count = last.map_or(place.moves.len(), |last| last + 1);
        let all = place.moves[..count].iter().rev().take(MOST_MOVES).rev();
        let since: Vec<Move> = all
            // Git writes the log of HEAD after the files.
            .filter(|one| one.logged >= time && Kind::of(&one.of) != Kind::Other)
            .map(|one| one.of.clone())
            .collect();
        let found = since.into_iter().map(|one| {
            let changed = place.changed(&one);
            (one, changed)
        });
        found.collect()
    }

    /// Returns whether git was at work at that time, and has merged the content:
    /// it is a conflict, or it consists of lines that the
    /// file had before, or has in the index, as for `--autostash` or a stash
    /// that git has dropped.
    fn is_put_together(
        &self,
        place: &mut Place,
        log: &Reader,
        path: &[u8],
        content: &Content,
    ) -> bool {
        let index = place.in_index(path);
        if index == Some(content.id) {
            return false;
        }
        // Its blob is left when nothing else tells of that merge any more.
        if content.is_left_by_merge() {
            place.waits_with(path, content.id);
            return true;
        }
        if !is_at_work(place, content.since) {
            return false;
        }
        // A merge writes both within one tick of the clock, so the order of the
        // blob and the file may not be told. No user resolves a conflict so
        // fast.
        if is_conflict(&content.bytes) {
            return true;
        }
        let mut known: HashSet<Vec<u8>> = HashSet::new();
        let mut note = |bytes: &[u8]| {
            known.extend(lines_of(&as_stored(bytes)).map(<[u8]>::to_vec));
        };
        if let Some((_, bytes)) = index.and_then(|id| place.blob(&id)) {
            note(&bytes);
        }
        for (_, held) in self.earlier(log) {
            if let Some(bytes) = held.hash.and_then(|hash| self::content(log, &hash)) {
                note(&bytes);
            }
        }
        let text = as_stored(&content.bytes);
        lines_of(&text).all(|line| known.contains(line))
    }
}

/// Returns whether a stash was made or dropped, or `HEAD` moved, around that time.
fn is_at_work(place: &Place, since: Nanos) -> bool {
    let stashed = place.stashes.changed();
    let is_stash = stashed.is_some_and(|time| (time - since).abs() <= NEAR);
    let mut moves = place.moves.iter().rev().take(MOST_MOVES);
    let is_move = moves.any(|one| {
        let (begun, ended) = one.made();
        let ended = match Kind::of(&one.of) {
            Kind::Ends | Kind::Other => return false,
            Kind::Switch => ended,
            // An autostash comes back after the move was logged.
            Kind::Carries => ended + NEAR,
        };
        (begun - NEAR..=ended).contains(&since)
    });
    is_stash || is_move
}

/// Returns whether a version is to be looked at: no client has declared or
/// reported it, so git may have brought it.
pub(super) fn is_doubtful(fact: &VersionFact) -> bool {
    let is_file = fact.held.mode.is_none_or(|mode| !mode.is_link());
    let is_claimed = !matches!(
        fact.evidence,
        Evidence::Command | Evidence::Process | Evidence::Unmarked | Evidence::Gap
    );
    is_file && !is_claimed && !fact.unobserved && fact.amends.is_none() && !is_git(&fact.path)
}

/// Returns whether a path is git's own.
fn is_git(path: &RelPath) -> bool {
    let mut parts = path.as_bytes().split(|byte| *byte == b'/');
    parts.any(|part| part == b".git")
}

/// Returns the bytes of a regular file; `None` if it has more than `most`, or was
/// written meanwhile.
pub(super) fn on_disk(path: &Path, most: u64) -> Option<OnDisk> {
    let (mut file, found) = regular(path).ok()?;
    if found.len() > most {
        return None;
    }
    let mut bytes = Vec::new();
    (&mut file).take(most).read_to_end(&mut bytes).ok()?;
    let after = file.metadata().ok()?;
    let is_same = written(&after) == written(&found) && after.len() == found.len();
    is_same.then(|| OnDisk {
        hash: Hash::of(&bytes),
        bytes,
        found: after,
    })
}

/// Returns a stored content; `None` if it is not stored.
fn content(log: &Reader, hash: &Hash) -> Option<Arc<[u8]>> {
    if *hash == Hash::of(b"") {
        return Some(Arc::from([]));
    }
    log.peek(hash).ok().flatten()
}
