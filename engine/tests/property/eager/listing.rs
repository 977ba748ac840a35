//! What must be listed as modified, and what must not (MOD-1, MOD-2).

use super::*;

impl Eager {
    /// MOD-1 for every path the session holds.
    pub(super) fn listed(
        &self,
        who: usize,
        only: Option<&[Path]>,
        changes: &[Change],
    ) -> Result<Told, String> {
        let mut plain: BTreeMap<Path, u64> = BTreeMap::new();
        let mut lost: BTreeSet<(Path, u64)> = BTreeSet::new();
        let mut any: BTreeSet<Path> = BTreeSet::new();
        for change in changes {
            let Some(path) = path_of(&change.path) else {
                return Err(format!("MOD-1: nobody named {change:?}"));
            };
            any.insert(path);
            if let Some(version) = &change.lost {
                lost.insert((path, version.clock.n));
                continue;
            }
            if self.model.ignored.contains(path) {
                plain.insert(path, self.model.newest_for(who, path));
                continue;
            }
            let now = self.now(path);
            if self.model.listing(who, path, now) == Listing::Never {
                return Err(format!(
                    "MOD-1: {change:?} must not be listed\n{:?}\n{:?}",
                    self.model.copies.get(&(who, path)),
                    self.model.logs.get(path)
                ));
            }
            if change.hash != now || (now.is_none()) != (change.kind == VersionKind::Deleted) {
                return Err(format!("MOD-1: {change:?}, but the disk holds {now:?}"));
            }
            let last = self
                .model
                .logs
                .get(path)
                .and_then(|log| log.versions.last());
            if let Some(last) = last
                && last.hash == now
                && !self
                    .model
                    .copies
                    .get(&(who, path))
                    .is_some_and(|copy| copy.foreign)
                && !change.changed_by.contains(&last.author)
            {
                return Err(format!("MOD-1: {change:?} does not name {last:?}"));
            }
            plain.insert(path, self.model.newest_for(who, path));
        }
        for ((session, path), copy) in &self.model.copies {
            if *session != who
                || only.is_some_and(|only| !only.contains(path))
                || self.model.ignored.contains(path)
            {
                continue;
            }
            if self.model.listing(who, path, self.now(path)) == Listing::Must && !any.contains(path)
            {
                return Err(format!(
                    "MOD-1: {path} must be listed\n{copy:?}\n{:?}",
                    self.model.logs.get(path)
                ));
            }
            for version in copy.lost.keys() {
                if !lost.contains(&(path, *version)) {
                    return Err(format!("MOD-1: the lost {version} of {path} is not listed"));
                }
            }
        }
        for (path, version) in &lost {
            let due = self
                .model
                .copies
                .get(&(who, *path))
                .is_some_and(|copy| copy.lost.contains_key(version));
            if !due && !self.model.ignored.contains(path) {
                return Err(format!(
                    "MOD-1: the lost {version} of {path} was told before"
                ));
            }
        }
        Ok((plain, lost))
    }

    pub(super) fn deliver(&mut self, who: usize, (plain, lost): Told) {
        for (path, newest) in plain {
            if let Some(copy) = self.model.copies.get_mut(&(who, path)) {
                copy.told = copy.told.max(newest);
                copy.told_absence = self.world.hash_of(path).is_none();
                copy.foreign = false;
                copy.told_perhaps = copy.told_perhaps.max(newest);
            }
        }
        for (path, version) in lost {
            if let Some(copy) = self.model.copies.get_mut(&(who, path)) {
                copy.lost.remove(&version);
            }
        }
    }
}
