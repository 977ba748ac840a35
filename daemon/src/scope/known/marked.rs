//! Looks at what witnesses have marked (ATTR-3).

use std::collections::HashSet;

use touchmark_engine::{MarkedFile, Swept, SweptFile};
use touchmark_proto::{RelPath, native};

use super::priors::{Priors, stat};
use super::{Entry, File, Known, Workspace, split};
use crate::content::Met;
use crate::guard::is_temporary;
use crate::scope::difference::{Difference, What};
use crate::scope::index::Directory;
use crate::scope::walk::Task;

impl Workspace<'_> {
    /// Looks at marked files, and with them at all other files unless they are
    /// `alone`. Returns what changed, and the contents met.
    pub(super) fn look_at_marked(
        &mut self,
        marked: &[MarkedFile],
        alone: bool,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> (Swept, Vec<Met>) {
        self.priors = Priors::new(marked, &self.settings.places, |path| self.proved(path));
        // What was ignored until now may have changed as well.
        let is_rule = |path: &RelPath| split(path).1 == b".gitignore";
        let has_rules = marked.iter().any(|file| is_rule(&file.path));
        let (mut swept, mut met) = match alone && !has_rules && !self.is_behind() {
            true => self.sweep_marked(marked, is_over),
            false => self.sweep(true, is_over),
        };
        let (gone, more) = self.marked_and_gone(&swept.changes);
        swept.changes.extend(gone);
        met.extend(more);
        self.keep_destroyed();
        self.priors = Priors::default();
        // What happened until the files were read is known after this.
        self.settings.fences.pass();
        (swept, met)
    }

    /// Looks into the directories of marked files.
    fn sweep_marked(
        &mut self,
        marked: &[MarkedFile],
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> (Swept, Vec<Met>) {
        if marked.is_empty() {
            return (self.swept(Vec::new(), 0), Vec::new());
        }
        self.of_git = 0;
        self.look_at_indexes();
        let mut only = HashSet::new();
        for file in marked {
            let above = std::iter::successors(file.path.parent(), RelPath::parent);
            let mut above = above.map(|path| path.as_bytes().to_vec());
            // Those above one that is known are known as well.
            above.all(|path| only.insert(path));
        }
        let walked = self.walk_into(Some(&only), vec![Task::root()], is_over);
        self.left = walked.left;
        self.look_at_tops(walked.tops);
        let (changes, met) = self.changes(walked.differences);
        (self.swept(changes, walked.looked), met)
    }

    /// Returns what was removed that no look has seen: it was made after the last
    /// one. `found`: what the present sweep has found.
    fn marked_and_gone(&mut self, found: &[SweptFile]) -> (Vec<SweptFile>, Vec<Met>) {
        let found: HashSet<&RelPath> = found
            .iter()
            .flat_map(|file| [Some(&file.path), file.from.as_ref()])
            .flatten()
            .collect();
        let files = self.priors.files();
        let files = files.filter(|(path, _)| !found.contains(path) && self.is_gone(path));
        let gone = files.map(|(path, file)| Difference {
            path: path.clone(),
            what: What::Gone(File {
                stat: stat(file),
                ignored: false,
                known: Known::Nothing,
            }),
        });
        self.changes(gone.collect())
    }

    /// Returns whether nothing has a name that would be looked at.
    fn is_gone(&self, path: &RelPath) -> bool {
        let Some((directory, parts)) = self.nearest(path) else {
            return false;
        };
        let is_ignored = |part: &RelPath| {
            self.rules.exclude(part) || self.rules.ignore(&directory.rules, part, part != path)
        };
        let place = self.settings.root.join(native::name(path.as_bytes()));
        rustix::fs::lstat(&place).is_err()
            && self.looked_at(path).is_none()
            && !is_temporary(path)
            && !parts.iter().any(is_ignored)
    }

    /// Returns the nearest directory above a file that is on record, and the file
    /// with the directories between them, which may be gone.
    pub(super) fn nearest(&self, path: &RelPath) -> Option<(&Directory, Vec<RelPath>)> {
        let mut above = std::iter::successors(path.parent(), RelPath::parent);
        let mut parts = vec![path.clone()];
        loop {
            let next = above.next();
            let directory = { next.as_ref() }.map_or(&[][..], RelPath::as_bytes);
            match (self.index.get(directory), next) {
                (Some(directory), _) => return Some((directory, parts)),
                (None, Some(next)) => parts.push(next),
                (None, None) => return None,
            }
        }
    }

    /// Returns what the last sweep found of a file, if the file's times prove that
    /// it did not change right after.
    fn proved(&self, path: &RelPath) -> Option<File> {
        let (file, looked) = self.looked_at(path)?;
        file.stat.is_settled(looked).then_some(file)
    }

    /// Returns what is on record of a file, and when its directory was looked
    /// into.
    pub(super) fn looked_at(&self, path: &RelPath) -> Option<(File, i64)> {
        let (above, name) = split(path);
        let directory = self.index.get(above)?;
        match &directory.entries.get(directory.find(name)?)?.1 {
            Entry::File(file) => Some((*file, directory.looked)),
            _ => None,
        }
    }
}
