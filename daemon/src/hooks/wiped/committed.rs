//! What commits and stashes have of files, by asking git.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use touchmark_proto::native;

use crate::git::index::ObjectId;
use crate::git::reflog::moves_in;
use crate::git::{Limits, Object, Objects, WorkTree};

/// The most contents of a file in commits that are compared by lines, the
/// newest.
const COMMITTED: usize = 8;

/// The most stashes that are looked at, the newest.
const STASHES: usize = 16;

/// The most bytes of git's list of contents.
const MOST_LISTED: u64 = 16 << 20;

/// How long git may take to list them.
const TIME: Duration = Duration::from_secs(2);

/// What commits and stashes have of some files.
#[derive(Default)]
pub(super) struct Committed {
    pub(super) files: Vec<OfFile>,
}

/// What commits and stashes have of one file.
#[derive(Default)]
pub(super) struct OfFile {
    /// The ids of all contents in commits that a branch or a tag reaches.
    ids: BTreeSet<String>,
    /// The newest of these contents.
    pub(super) texts: Vec<Vec<u8>>,
    /// The contents in stashes, and whether the command made the stash.
    pub(super) stashed: Vec<(Vec<u8>, bool)>,
    is_sha256: bool,
}

impl Committed {
    /// Asks git about files, by their names in the repository. `None` if it does
    /// not answer in time. A stash is the command's if it was made at or after
    /// `since`, in seconds since 1970.
    pub(super) fn of(tree: &WorkTree, files: &[Vec<u8>], since: u64) -> Option<Self> {
        let mut git = Objects::open(tree, &tree.top, Limits::default())?;
        let mut listed = tree.git(&tree.top).ok()?.args([
            "log",
            "--branches",
            "--tags",
            "--remotes",
            "--format=",
            "--raw",
            "--no-abbrev",
            "-z",
            "-m",
            "--root",
            "--full-history",
            "--no-renames",
            "--no-ext-diff",
        ]);
        let mut is_sha256 = false;
        if let Some(Object::Whole(head, _)) = git.object(b"HEAD") {
            is_sha256 = head.len() == 64;
            listed = listed.arg(head);
        }
        listed = listed.arg("--");
        for own in files {
            listed = listed.arg(&*native::name(own));
        }
        let printed = listed.within(TIME, MOST_LISTED).printed()?;
        let mut ids: BTreeMap<&[u8], Vec<String>> = BTreeMap::new();
        let mut fields = printed.split(|byte| *byte == 0);
        while let Some(field) = fields.next() {
            let field = String::from_utf8_lossy(field.trim_ascii());
            // Two modes, two contents, and what was done.
            if let Some(row) = field.strip_prefix(':')
                && let Some(path) = fields.next()
            {
                let of_path = ids.entry(path).or_default();
                let both = row.split(' ').skip(2).take(2).map(str::to_owned);
                of_path.extend(both.collect::<Vec<_>>().into_iter().rev());
            }
        }
        let stashes = moves_in(&tree.common.join("logs/refs/stash"), MOST_LISTED);
        let stashes = stashes.into_iter().rev().take(STASHES);
        let stashes: Vec<(String, bool)> = stashes
            .map(|stash| (stash.id, stash.second >= since))
            .collect();
        let mut found = Vec::new();
        for own in files {
            let all = ids.remove(own.as_slice()).unwrap_or_default();
            let mut of_file = OfFile {
                is_sha256,
                ..OfFile::default()
            };
            for id in all {
                if of_file.ids.insert(id.clone())
                    && of_file.texts.len() < COMMITTED
                    && let Object::Whole(_, bytes) = git.object(id.as_bytes())?
                {
                    of_file.texts.push(bytes);
                }
            }
            for (id, is_new) in &stashes {
                // The files, the index, and what was not tracked.
                for part in ["", "^2", "^3"] {
                    let name = [format!("{id}{part}:").as_bytes(), own].concat();
                    if let Object::Whole(_, bytes) = git.object(&name)? {
                        of_file.stashed.push((bytes, *is_new));
                    }
                }
            }
            found.push(of_file);
        }
        Some(Self { files: found })
    }
}

impl OfFile {
    pub(super) fn has(&self, content: &[u8]) -> bool {
        let id = ObjectId::of_file(self.is_sha256, content);
        self.ids.contains(&id.digits())
    }
}
