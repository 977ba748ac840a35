//! Which new files are removed ones with another name.

use std::collections::{HashMap, HashSet};

use touchmark_engine::{Held, SweptFile};
use touchmark_proto::{Hash, RelPath};

use crate::scope::index::Stat;

/// Finds out which new files are removed ones with another name: those with the
/// same inode, size and time of modification; else those with a content that
/// only one removed file had.
pub(super) fn name_renames(gone: &[(Stat, SweptFile)], came: &mut [(Stat, SweptFile)]) {
    let mut taken: HashSet<&RelPath> = HashSet::new();
    let itself = |stat: &Stat| (stat.inode, stat.size, stat.modified);
    let by_inode: HashMap<_, &SweptFile> =
        gone.iter().map(|(was, old)| (itself(was), old)).collect();
    for (stat, file) in came.iter_mut() {
        let from = by_inode.get(&itself(stat));
        if let Some(old) = from.filter(|old| taken.insert(&old.path)) {
            file.from = Some(old.path.clone());
            file.before = old.before;
        }
    }
    let mut by_content: HashMap<Hash, Vec<&SweptFile>> = HashMap::new();
    for (_, old) in gone {
        let held = old.before.filter(|held| held.size > 0);
        if let Some(hash) = held.and_then(|held| held.hash) {
            by_content.entry(hash).or_default().push(old);
        }
    }
    for (_, file) in came.iter_mut().filter(|(_, file)| file.from.is_none()) {
        let Some(hash) = file.after.hash else {
            continue;
        };
        let is_link = |held: Option<Held>| held.is_some_and(|held| held.is_link());
        if let Some([old]) = by_content.get(&hash).map(Vec::as_slice)
            && is_link(old.before) == is_link(Some(file.after))
            && taken.insert(&old.path)
        {
            file.from = Some(old.path.clone());
            file.before = old.before;
        }
    }
}
