//! Which files are not looked at: git's ignore rules, and `scope.exclude`
//! (SCOPE-1).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use touchmark_engine::patterns::Patterns;
use touchmark_proto::trust::Trust;
use touchmark_proto::{RelPath, native};

use crate::tools::{Files, GIT, MOST_PATTERNS, compile};

/// The rules of all directories.
pub(super) struct Everywhere {
    files: Files,
    /// The user's global ignore rules, which apply to every repository.
    user: Gitignore,
    exclude: Patterns,
    /// The number of patterns in memory, of all directories.
    all: Arc<AtomicUsize>,
}

/// The rules of one directory and of those above it.
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    /// `.gitignore`.
    git: Gitignore,
    /// `.git/info/exclude`.
    exclude: Gitignore,
    /// It is the top of a repository: ignore files above it do not count.
    is_top: bool,
    _own: Counted,
}

/// Patterns in memory. They count until this is dropped.
struct Counted {
    all: Arc<AtomicUsize>,
    count: usize,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.all.fetch_sub(self.count, Relaxed);
    }
}

impl Everywhere {
    pub(super) fn new(root: &Path, trust: Trust, exclude: Patterns) -> Self {
        Self {
            user: GitignoreBuilder::new(root).build_global().0,
            files: Files {
                root: root.to_owned(),
                trust,
            },
            exclude,
            all: Arc::default(),
        }
    }

    /// Returns the rules of the workspace's directory. Those of directories
    /// above it count up to the top of its repository.
    pub(super) fn top(&self) -> Arc<Rules> {
        let root = self.files.root.as_path();
        let is_top = |path: &&Path| path.join(GIT).symlink_metadata().is_ok();
        let top = root.ancestors().find(is_top).unwrap_or(root);
        let mut above: Vec<&Path> = root.ancestors().skip(1).collect();
        above.retain(|path| path.starts_with(top));
        let mut rules = None;
        for directory in above.into_iter().rev() {
            rules = Some(self.of(directory, rules, is_top(&directory)));
        }
        self.of(root, rules, is_top(&root))
    }

    /// Returns the rules of a directory.
    pub(super) fn of(
        &self,
        directory: &Path,
        above: Option<Arc<Rules>>,
        is_top: bool,
    ) -> Arc<Rules> {
        let most = MOST_PATTERNS.saturating_sub(self.all.load(Relaxed));
        let mut left = most;
        let mut read = |name: &str| {
            let file = directory.join(name);
            let compiled = self.files.text(&file).and_then(|text| match text {
                Some(text) => compile(directory, &file, &text, &mut left),
                None => Ok(Gitignore::empty()),
            });
            compiled.unwrap_or_else(|error| {
                tracing::warn!("commands: {} does not count: {error}", file.display());
                Gitignore::empty()
            })
        };
        let git = read(".gitignore");
        let exclude = match is_top {
            true => read(".git/info/exclude"),
            false => Gitignore::empty(),
        };
        let count = most - left;
        self.all.fetch_add(count, Relaxed);
        Arc::new(Rules {
            above,
            git,
            exclude,
            is_top,
            _own: Counted {
                all: Arc::clone(&self.all),
                count,
            },
        })
    }

    /// Returns whether `scope.exclude` matches a path.
    pub(super) fn exclude(&self, relative: &RelPath) -> bool {
        self.exclude.has(relative)
    }

    /// Returns whether git ignores a path that is not in its index.
    pub(super) fn ignore(&self, rules: &Rules, relative: &RelPath, is_directory: bool) -> bool {
        let path = self.files.root.join(native::name(relative.as_bytes()));
        let [mut git, mut exclude] = [Match::None, Match::None];
        let mut next = Some(rules);
        while let Some(rules) = next {
            for (found, rules) in [(&mut git, &rules.git), (&mut exclude, &rules.exclude)] {
                if found.is_none() && !rules.is_empty() {
                    *found = rules.matched(&path, is_directory).map(|_| ());
                }
            }
            next = rules.above.as_deref().filter(|_| !rules.is_top);
        }
        let user = || self.user.matched(&path, is_directory).map(|_| ());
        git.or(exclude).or(user()).is_ignore()
    }
}
