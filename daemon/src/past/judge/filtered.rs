//! What git brings through filters, of which it has other bytes. No filter is
//! run: the index, stashes and times tell.

use std::collections::HashSet;
use std::path::Path;

use touchmark_engine::{Carriage, Fact};
use touchmark_proto::Hash;

use super::super::blobs::Nanos;
use super::super::moves::{Kind, Timed};
use super::super::place::{AROUND, Place};
use super::texts::lines_of;
use super::{Content, Job, MILLISECOND, MOST, MOST_MOVES, OnDisk, SETTLING, content, on_disk};
use crate::git::index::ObjectId;
use crate::store::Reader;

impl Job {
    /// Returns whether git had the content before this version, which a filter
    /// has made of `blob`. It had if the content is the first that was read, if
    /// git brought it, or if git stored the blob after the file had the content.
    pub(super) fn was_in_git(&self, place: &mut Place, log: &Reader, blob: &ObjectId) -> bool {
        let mut earlier = self
            .earlier(log)
            .filter(|(_, held)| held.hash == self.fact.before);
        let brought = log.carriages(&self.fact.path).unwrap_or_default();
        let brought = brought.iter().filter_map(|record| match record.fact {
            Fact::GitBrought { version, how, .. } if how != Carriage::Unclear => Some(version),
            _ => None,
        });
        let mut brought: HashSet<u64> = brought.collect();
        brought.extend(place.brought());
        earlier.any(|(version, held)| {
            let written = Nanos::from(held.mtime_ms) * MILLISECOND;
            let mut stored = || place.blobs.since(blob, written);
            version.is_none_or(|version| brought.contains(&version))
                || stored().is_some_and(|stored| stored >= written)
        })
    }

    /// Returns whether a move of `HEAD` has removed a file of which a filter had
    /// made `before`.
    pub(super) fn is_gone_filtered(
        &self,
        place: &mut Place,
        log: &Reader,
        path: &[u8],
        before: &[u8],
    ) -> bool {
        let time = Nanos::from(self.time) * MILLISECOND;
        let moves = self.moves(place, time - SETTLING, Some(time));
        let gone = moves.iter().rev().find_map(|(_, changed)| {
            let (old, new) = changed.as_ref()?.get(path).copied()?;
            old.filter(|_| new.is_none())
        });
        let Some((old, bytes)) = gone.and_then(|old| place.blob(&old)) else {
            return false;
        };
        let lines = |text| lines_of(text).filter(|line| !line.is_empty());
        let stored: HashSet<&[u8]> = lines(&bytes).collect();
        !lines(before).any(|line| stored.contains(line)) && self.was_in_git(place, log, &old)
    }

    /// Returns what git did if it stashed the content before, and wrote that of
    /// `HEAD` (`hash`), where it has other bytes of both and the file has been
    /// written since, so that the index does not prove it: the stash was made
    /// between both, and the file had the new content earlier.
    pub(super) fn stashed_filtered(
        &self,
        place: &mut Place,
        log: &Reader,
        path: &[u8],
        hash: &Hash,
    ) -> Option<Carriage> {
        let mut earlier = self.earlier(log).map(|(_, held)| held);
        let (old, since) = earlier.find_map(|held| Some((held.hash?, held.mtime_ms)))?;
        if old == *hash || !earlier.any(|held| held.hash == Some(*hash)) {
            return None;
        }
        let bytes = [content(log, &old)?, content(log, hash)?];
        let own = bytes.map(|bytes| place.own_ids(&bytes));
        let until = self.since();
        let from = (until - AROUND).max(Nanos::from(since) * MILLISECOND);
        for stash in place.stashes_between(from, until + MILLISECOND) {
            let mut at = |tree: String| Some(place.blob_at(&tree, path)?.0);
            let (Some(base), Some(taken)) = (at(format!("{stash}^1")), at(stash.clone())) else {
                continue;
            };
            let is_own = own[0].contains(&taken) || own[1].contains(&base);
            if base != taken && !is_own && place.stashes.takes(&stash, path, self.n) {
                place.pair(path, old, taken);
                place.pair(path, *hash, base);
                return Some(self.destroyed());
            }
        }
        None
    }

    /// Returns what git did if it stashed the content before: the removal before
    /// this version may have destroyed it already.
    pub(super) fn destroyed(&self) -> Carriage {
        match self.fact.before {
            Some(_) => Carriage::Wiped,
            None => Carriage::Carried,
        }
    }

    /// Returns what git did if it wrote or removed this on its way to another
    /// content, of which it has other bytes: behind a filter nothing but the time
    /// tells that.
    pub(super) fn passed_by(
        &self,
        place: &mut Place,
        log: &Reader,
        file: &Path,
        path: &[u8],
    ) -> Option<Carriage> {
        let is_gone = self.fact.held.hash.is_none();
        let (since, until) = match is_gone {
            // Git removes a file before it writes it again.
            true => {
                let time = Nanos::from(self.time) * MILLISECOND;
                (time - SETTLING, time)
            }
            false => (self.since(), self.since()),
        };
        let is_stash = is_gone && place.is_stashing(until);
        let later = place.moves.iter().filter(|one| one.logged >= since);
        let later: Vec<Timed> = later.take(MOST_MOVES).cloned().collect();
        if !is_stash && later.is_empty() {
            return None;
        }
        let OnDisk { bytes, hash, found } = on_disk(file, MOST)?;
        let own = place.own_ids(&bytes);
        let is_clean = place.filtered_blob(path, &found, hash, &own).is_some();
        if self.fact.held.hash == Some(hash) || place.paired(path, &hash).is_none() {
            return None;
        }
        for one in later {
            if matches!(Kind::of(&one.of), Kind::Ends | Kind::Other) {
                // What was typed was stored by git before it went on.
                if !is_gone && one.stored.is_some_and(|stored| stored >= since) {
                    return None;
                }
                continue;
            }
            let changed = place.changed(&one.of);
            let Some((old, _)) = changed.and_then(|changed| changed.get(path).copied()) else {
                continue;
            };
            if one.made().0 > until || !is_gone && place.has_stashed(since, one.logged) {
                break;
            }
            let is_kept = |old| self.was_in_git(place, log, &old);
            return Some(match is_gone && !old.is_none_or(is_kept) {
                true => Carriage::Wiped,
                false => Carriage::Carried,
            });
        }
        is_stash.then_some(match is_clean {
            true => Carriage::Wiped,
            false => Carriage::Carried,
        })
    }

    /// Returns the hash of the last content before this version, if a filter may
    /// have made it: `content` is of one.
    pub(super) fn filtered_before(&self, log: &Reader, content: &Content) -> Option<Hash> {
        let earlier = || self.earlier(log).find_map(|(_, held)| held.hash);
        let before = || self.fact.before.or_else(earlier);
        content.is_filtered.then(before).flatten()
    }
}
