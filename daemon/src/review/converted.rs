//! What a file had when git stored a content of which it has other bytes: it
//! has converted line ends or `$Id$`, or run a filter.

use touchmark_engine::history::Step;
use touchmark_proto::{RelPath, native};

use super::commits::Commits;
use crate::git::index::{Entry, GitIndex, ObjectId};
use crate::history::Chain;
use crate::past::converted::converted;

impl Commits {
    /// Returns the content that the file had for a committed one. That is the
    /// committed one itself, unless a version tells another. `names` are those
    /// that the file had.
    pub(super) fn as_on_disk(&self, committed: Step, chain: &Chain, names: &[RelPath]) -> Step {
        let Step::Held(bytes) = &committed else {
            return committed;
        };
        if chain.newest_with(&committed).is_some() {
            return committed;
        }
        let is_converted = |step: &&Step| {
            let Step::Held(own) = step else { return false };
            converted(own).iter().any(|one| **one == **bytes)
        };
        let found = chain.steps.iter().rev().find(is_converted);
        let filtered = || {
            let entry = self.entry(names)?;
            let is_sha256 = matches!(entry.id, ObjectId::Sha256(_));
            let is_same = ObjectId::of_file(is_sha256, bytes) == entry.id;
            is_same.then(|| at_stat(chain, &entry)).flatten()
        };
        found.or_else(filtered).cloned().unwrap_or(committed)
    }

    /// Returns the index's entry of a file.
    fn entry(&self, names: &[RelPath]) -> Option<Entry> {
        let (tree, root) = self.deletions.tree.as_ref()?;
        let read = || GitIndex::read(&tree.own.join("index")).ok();
        let index = self.index.get_or_init(read).as_ref()?;
        let mut entries = names.iter().filter_map(|name| {
            let file = root.join(native::name(name.as_bytes()));
            let path = file.strip_prefix(&tree.top).ok()?;
            index.entry_of(&native::bytes(path)).copied()
        });
        entries.next().filter(Entry::is_plain)
    }
}

/// Returns the content that the file had when git stored it, by the size and the
/// time of change that the index has: it was recorded after that, and the
/// version before it was recorded earlier.
fn at_stat<'c>(chain: &'c Chain, entry: &Entry) -> Option<&'c Step> {
    let (seconds, rest) = entry.modified;
    let time = u64::from(seconds) * 1_000 + u64::from(rest) / 1_000_000;
    let at = chain
        .versions
        .iter()
        .position(|version| version.time >= time)?;
    let is_same = u32::try_from(chain.versions[at].size & u64::from(u32::MAX)) == Ok(entry.size);
    chain.steps.get(at).filter(|_| is_same)
}
