//! Checks lists of changes: everything that has to be reported is, and nothing
//! twice.

use super::*;

impl Audit {
    pub(super) fn telling(
        &self,
        world: &World,
        asked: &Asked,
        changes: &[Change],
        moment: u64,
    ) -> BTreeMap<String, Told> {
        changes
            .iter()
            .map(|change| {
                let path = text(&change.path);
                let told = Told {
                    newest: self.newest.get(&path).copied().unwrap_or(0),
                    asked: asked.moment,
                    moment,
                    contents: world.disk.between(&path, asked.moment, moment),
                    writing: change.writing == Some(true),
                    save: world
                        .disk
                        .one_save(&path, asked.moment)
                        .filter(|writer| world.writes(*writer, &path)),
                };
                (path, told)
            })
            .collect()
    }

    pub(super) fn listed(
        &self,
        world: &World,
        asked: &Asked,
        who: &SessionId,
        (changes, late): (&[Change], &[RelPath]),
        moment: u64,
    ) -> Verdict {
        if !asked.asking.sync {
            return Ok(());
        }
        let mut plain: BTreeSet<String> = BTreeSet::new();
        // The list names the paths that could not be read in time (LOSS-4).
        let in_time = |path: &str| late.iter().all(|late| text(late) != path);
        for change in changes.iter().filter(|c| in_time(&text(&c.path))) {
            let path = text(&change.path);
            let there = world.disk.between(&path, asked.moment, moment);
            if change.lost.is_none() {
                ensure!(
                    "MOD-1",
                    plain.insert(path.clone()),
                    "{path} is listed twice"
                );
                ensure!(
                    "MOD-1",
                    change
                        .hash
                        .is_none_or(|hash| there.contains(&At::File(hash))),
                    "{change:?}, but the disk held {there:?}"
                );
                if let Some(told) = self.told.get(&(who.clone(), path.clone())) {
                    let newest = self.newest.get(&path).copied().unwrap_or(0);
                    // A content that is not yet a version is reported as
                    // `writing`.
                    let moved = (change.writing == Some(true) || told.writing)
                        && world.disk.changed_at(&path) > told.asked;
                    ensure!(
                        "MOD-2",
                        newest > told.newest || moved,
                        "{change:?} was taken at moment {} and nothing has happened since",
                        told.moment
                    );
                    let same = told.save.is_some()
                        && world.disk.one_save(&path, told.moment) == told.save
                        && self.continued.contains(&(who.clone(), path.clone()));
                    ensure!(
                        "MOD-2 (one save)",
                        !same,
                        "{change:?} continues a save told before"
                    );
                }
            }
        }
        let only = match &asked.asking.ask {
            Ask::Take { paths, .. } => paths.clone(),
            _ => None,
        };
        for ((session, path), last) in &self.last {
            if session != who
                || !in_time(path)
                || only
                    .as_ref()
                    .is_some_and(|only| !only.contains(&path.as_str()))
            {
                continue;
            }
            let key = (who.clone(), path.clone());
            if self.read_asked.get(&key).is_some_and(|all| !all.is_empty()) {
                continue;
            }
            // Its own declared writer may be in the middle of a write (ATTR-5).
            let own = self.edits.values().any(|edit| {
                edit.session == *who
                    && edit
                        .files
                        .get(path)
                        .is_some_and(|files| files.iter().any(|file| !file.ended))
            });
            if own {
                continue;
            }
            let there = world.disk.between(path, asked.moment, moment);
            let [at] = there[..] else {
                continue;
            };
            match at {
                At::File(hash) if hash == *last => ensure!(
                    "MOD-1",
                    !plain.contains(path),
                    "{path} is listed although {who:?} has seen what is there"
                ),
                At::Unreadable => {}
                at => {
                    let told = self.told.get(&key);
                    let seen_before = matches!(at, At::File(hash)
                        if self.maybe_seen.get(&key).is_some_and(|seen| seen.contains(&hash)));
                    let new = told.is_none_or(|told| {
                        let continued = told.save.is_some()
                            && world.disk.one_save(path, told.moment) == told.save;
                        !continued
                            && !told.contents.contains(&at)
                            && world.disk.changed_at(path) > told.moment
                    });
                    ensure!(
                        "MOD-1",
                        plain.contains(path) || !new || seen_before,
                        "{path} holds {at:?}, {who:?} last saw {last:?}, and it is not listed"
                    );
                }
            }
        }
        Ok(())
    }
}
