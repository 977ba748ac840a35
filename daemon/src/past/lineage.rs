//! Which file each name stands for, and stood for before (HIST-9).

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use touchmark_engine::history::lineage::Begins;
use touchmark_proto::RelPath;

/// The most names that a file is followed through.
const NAMES: usize = 1_000;

/// What was known at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(super) lineage: Arc<Lineage>,
    /// The number of the newest version that was known.
    pub(super) upto: u64,
}

impl Snapshot {
    /// Returns whether all of a name's versions were known, the newest of which
    /// has this number.
    pub(crate) fn covers(&self, newest: u64) -> bool {
        newest <= self.upto
    }
}

impl Deref for Snapshot {
    type Target = Lineage;

    fn deref(&self) -> &Lineage {
        &self.lineage
    }
}

/// All that is known about which names stand for which files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lineage {
    /// Where names begin to stand for another file than before, by the
    /// version.
    begins: HashMap<RelPath, Vec<Begin>>,
    /// The files that names stand for no more, since they were moved, by
    /// `until`.
    moved: HashMap<RelPath, Vec<Moved>>,
}

/// From one version on, a name stands for another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    /// The number of the version.
    pub(crate) version: u64,
    /// The earlier name of the file, and the number of the version from which
    /// on that name does not stand for it any more; `None` for a new file.
    pub(crate) from: Option<(RelPath, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Moved {
    until: u64,
    to: RelPath,
    version: u64,
}

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Its newest name.
    pub(crate) name: RelPath,
    /// The number of the version from which on the name stands for another
    /// file; `None` while it stands for this one.
    pub(crate) over: Option<u64>,
}

impl Lineage {
    /// Adds what was decided.
    pub(super) fn add(&mut self, begins: Begins) {
        let Begins {
            version,
            path,
            from,
        } = begins;
        if let Some((from, until)) = &from {
            let moved = self.moved.entry(from.clone()).or_default();
            let at = moved.partition_point(|one| one.until < *until);
            let to = path.clone();
            moved.insert(
                at,
                Moved {
                    until: *until,
                    to,
                    version,
                },
            );
        }
        let own = self.begins.entry(path).or_default();
        let at = own.partition_point(|one| one.version < version);
        own.insert(at, Begin { version, from });
    }

    /// Returns where the file begins that a name stands for at a version; `None`
    /// if it is the name's first file.
    pub(crate) fn begin(&self, name: &RelPath, version: u64) -> Option<&Begin> {
        let own = self.begins.get(name)?;
        own.iter().rfind(|one| one.version <= version)
    }

    /// Returns the number of the version from which on the name stands for
    /// another file than at `version`; `None` if there is none.
    pub(crate) fn end(&self, name: &RelPath, version: u64) -> Option<u64> {
        let mut own = self.begins.get(name)?.iter();
        Some(own.find(|one| one.version > version)?.version)
    }

    /// Returns where the file is that a name stood for at a version, or that the
    /// version moved away.
    pub(crate) fn place(&self, name: &RelPath, version: u64) -> Place {
        let (mut name, mut version) = (name.clone(), version);
        for _ in 0..NAMES {
            let end = self.end(&name, version);
            let begin = self.begin(&name, version);
            // The file before this one may have been moved by the same version.
            let first = begin.filter(|begin| begin.version == version);
            let after = version + u64::from(first.is_some());
            let mut moved = self.moved.get(&name).into_iter().flatten();
            let next =
                moved.find(|one| one.until >= after && end.is_none_or(|end| one.until <= end));
            match next {
                Some(next) => (name, version) = (next.to.clone(), next.version),
                None => return Place { name, over: end },
            }
        }
        Place { name, over: None }
    }

    /// Returns whether the newest file of a name was moved to another name.
    pub(crate) fn has_left(&self, name: &RelPath) -> bool {
        let newest = self.begin(name, u64::MAX).map_or(0, |begin| begin.version);
        let mut moved = self.moved.get(name).into_iter().flatten();
        moved.any(|one| one.until > newest)
    }

    /// Returns the names whose file was replaced by another one and has no other
    /// name, each with the version from which on the newest other file is there.
    pub(super) fn replaced(&self) -> impl Iterator<Item = (&RelPath, u64)> {
        self.begins.iter().filter_map(|(name, all)| {
            let (newest, earlier) = all.split_last()?;
            let since = earlier.last().map_or(0, |before| before.version);
            let place = self.place(name, since);
            let is_replaced = place.name == *name && place.over == Some(newest.version);
            is_replaced.then_some((name, newest.version))
        })
    }

    /// Returns the names that the file of a name had, the newest first.
    pub(crate) fn names(&self, name: &RelPath) -> Vec<RelPath> {
        let mut names = vec![name.clone()];
        let (mut name, mut version) = (name, u64::MAX);
        // Two files that change places in one burst may each be the other's
        // earlier one.
        let mut begun: Vec<u64> = Vec::new();
        while names.len() < NAMES
            && let Some(begin) = self.begin(name, version)
            && let Some((from, until)) = &begin.from
            && !begun.contains(&begin.version)
        {
            begun.push(begin.version);
            (name, version) = (from, until.saturating_sub(1));
            if !names.contains(from) {
                names.push(from.clone());
            }
        }
        names
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn path(name: &str) -> RelPath {
        RelPath::new(name.as_bytes()).unwrap()
    }

    /// A version, its name, and the earlier name with its end.
    type Row<'a> = (u64, &'a str, Option<(&'a str, u64)>);

    fn lineage(rows: &[Row<'_>]) -> Lineage {
        let mut lineage = Lineage::default();
        for (version, name, from) in rows {
            lineage.add(Begins {
                version: *version,
                path: path(name),
                from: from.map(|(from, until)| (path(from), until)),
            });
        }
        lineage
    }

    #[test]
    fn a_file_is_found_under_its_newest_name() {
        // a to b, another file at a, and b to a directory that c was in.
        let all = lineage(&[
            (10, "b", Some(("a", 11))),
            (20, "a", None),
            (30, "c", Some(("b", 29))),
        ]);
        let at = |name: &str, n| {
            let place = all.place(&path(name), n);
            (place.name.to_string_lossy(), place.over)
        };
        assert_eq!(at("a", 5), ("c".to_owned(), None));
        assert_eq!(at("a", 11), ("c".to_owned(), None), "its removal");
        assert_eq!(at("b", 10), ("c".to_owned(), None));
        assert_eq!(at("a", 20), ("a".to_owned(), None));
        assert_eq!(at("c", 5), ("c".to_owned(), Some(30)), "it was replaced");
        assert_eq!(all.names(&path("c")), ["c", "b", "a"].map(path));
        assert_eq!(all.names(&path("a")), ["a"].map(path));
        assert!(all.has_left(&path("b")) && !all.has_left(&path("a")));
    }

    #[test]
    fn a_file_that_was_moved_away_and_back_is_one_file() {
        let all = lineage(&[(10, "b", Some(("a", 11))), (20, "a", Some(("b", 21)))]);
        for (name, n) in [("a", 5), ("a", 11), ("b", 10), ("b", 21), ("a", 20)] {
            assert_eq!(all.place(&path(name), n).name, path("a"), "{name} {n}");
        }
        // A name stands for its first file again.
        let again = lineage(&[(10, "a", None), (20, "a", Some(("a", 10)))]);
        assert_eq!(again.place(&path("a"), 5), again.place(&path("a"), 20));
        assert_eq!(again.place(&path("a"), 10).over, Some(20));
        assert!(!again.has_left(&path("a")));
        // The name was taken by a moved file in the same version.
        let taken = lineage(&[(12, "g", Some(("f", 13))), (13, "f", Some(("h", 14)))]);
        assert_eq!(taken.place(&path("f"), 5).name, path("g"));
        assert_eq!(taken.place(&path("f"), 13).name, path("f"));
        assert_eq!(taken.place(&path("h"), 3).name, path("f"));
        // The removal of `a` was recorded after another file had come there.
        let ring = lineage(&[(10, "b", Some(("a", 20))), (15, "a", Some(("b", 16)))]);
        assert_eq!(ring.names(&path("a")), ["a", "b"].map(path));
        assert_eq!(ring.names(&path("b")), ["b", "a"].map(path));
    }
}
