//! What a search skips because of ignore files, hidden names, types and globs,
//! with the same precedence as `rg`.
//!
//! Ignore files come with what was cloned or unpacked. So they are opened here,
//! where a name can turn out to be anything (SEC-7); the library only parses
//! them.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::Override;
use ignore::types::Types;
use ignore::{DirEntry, Match, WalkBuilder};
use touchmark_engine::patterns;
use touchmark_proto::trust::Trust;

use super::GIT;
use crate::content::{Opened, Root};
use crate::links::relative;
use crate::system::open::regular;

/// The maximum size of an ignore file that counts, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The maximum number of patterns of all directories of a workspace together:
/// each of them is compiled.
pub(crate) const MOST_PATTERNS: usize = 10_000;

/// Which entries a search examines.
pub(super) struct Ignored {
    files: Files,
    globs: Override,
    types: Types,
    /// Whether hidden entries are examined, too.
    hidden: bool,
    /// The user's own ignore file, which applies to every repository.
    everywhere: Gitignore,
    /// The directories from the outermost to the current one. A walk finishes
    /// one directory before it enters the next.
    directories: Mutex<Vec<Directory>>,
    /// How many patterns may still be compiled.
    left: AtomicUsize,
}

/// The ignore files of one directory.
struct Directory {
    path: PathBuf,
    /// `.ignore`.
    plain: Gitignore,
    /// `.gitignore`.
    git: Gitignore,
    /// `.git/info/exclude`.
    exclude: Gitignore,
    /// Whether it is a repository's top: git's ignore files above it do not
    /// count.
    is_top: bool,
}

/// Returns a walk over what is in a directory and no ignore file leaves out.
/// Those count that are in it, or above it up to `root`, or are the user's own.
/// `hidden`: entries count, too, whose names begin with a dot.
pub(crate) fn unignored(below: &Path, root: &Path, hidden: bool, trust: Trust) -> WalkBuilder {
    let ignored = Ignored {
        hidden,
        ..Ignored::new(root, Override::empty(), Types::empty(), trust)
    };
    ignored.walk(below)
}

impl Ignored {
    /// Returns a walk over the entries in a directory that must be examined.
    pub(super) fn walk(self, below: &Path) -> WalkBuilder {
        let mut walk = WalkBuilder::new(below);
        walk.standard_filters(false)
            .follow_links(false)
            .filter_entry(move |entry| self.keeps(entry));
        walk
    }

    /// Returns the rules for a workspace.
    pub(super) fn new(root: &Path, globs: Override, types: Types, trust: Trust) -> Self {
        let files = Files {
            root: root.to_owned(),
            trust,
        };
        let mut left = MOST_PATTERNS;
        Self {
            globs,
            types,
            hidden: false,
            everywhere: GitignoreBuilder::new(root).build_global().0,
            directories: Mutex::new(around(&files, &mut left)),
            left: AtomicUsize::new(left),
            files,
        }
    }

    /// Returns whether an entry of the walk must be examined.
    fn keeps(&self, entry: &DirEntry) -> bool {
        let path = entry.path();
        if entry.file_name() == GIT {
            return false;
        }
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        let chosen = self.globs.matched(path, is_directory);
        if !chosen.is_none() {
            return !chosen.is_ignore();
        }
        let ignored = self.ignored(path, is_directory);
        let typed = self.types.matched(path, is_directory);
        if ignored.is_ignore() || typed.is_ignore() {
            return false;
        }
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        ignored.is_whitelist() || typed.is_whitelist() || !hidden || self.hidden
    }

    fn ignored(&self, path: &Path, is_directory: bool) -> Match<()> {
        let mut directories = self
            .directories
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(parent) = path.parent() else {
            return Match::None;
        };
        self.enter(&mut directories, parent);
        let [mut plain, mut git, mut exclude] = [Match::None, Match::None, Match::None];
        let mut in_repository = true;
        let or = |found: &mut Match<()>, rules: &Gitignore| {
            if found.is_none() {
                *found = rules.matched(path, is_directory).map(|_| ());
            }
        };
        for directory in directories.iter().rev() {
            or(&mut plain, &directory.plain);
            if in_repository {
                or(&mut git, &directory.git);
                or(&mut exclude, &directory.exclude);
            }
            in_repository &= !directory.is_top;
        }
        let everywhere = self.everywhere.matched(path, is_directory).map(|_| ());
        plain.or(git).or(exclude).or(everywhere)
    }

    /// Makes `directories` end with `parent`.
    fn enter(&self, directories: &mut Vec<Directory>, parent: &Path) {
        while directories.len() > 1
            && directories
                .last()
                .is_some_and(|last| !parent.starts_with(&last.path))
        {
            directories.pop();
        }
        let from = match directories.last() {
            Some(last) => last.path.clone(),
            None => return,
        };
        let Ok(rest) = parent.strip_prefix(&from) else {
            return;
        };
        let mut path = from;
        for name in rest {
            path.push(name);
            // Only who has locked the directories changes it.
            let mut left = self.left.load(Relaxed);
            directories.push(Directory::read(&path, &mut left, &self.files));
            self.left.store(left, Relaxed);
        }
    }
}

/// Returns the workspace's directory, preceded by those above it up to the top
/// of its repository. Without a repository nothing above the workspace counts.
fn around(files: &Files, left: &mut usize) -> Vec<Directory> {
    let root = files.root.as_path();
    let is_top = |path: &&Path| path.join(GIT).symlink_metadata().is_ok();
    let top = root.ancestors().find(is_top).unwrap_or(root);
    let above = root.ancestors().skip(1);
    let mut above: Vec<&Path> = above.take_while(|path| path.starts_with(top)).collect();
    above.reverse();
    let mut directories = Vec::new();
    for path in above.into_iter().chain([root]) {
        directories.push(Directory::read(path, left, files));
    }
    directories
}

impl Directory {
    fn read(path: &Path, left: &mut usize, files: &Files) -> Self {
        let mut rules = |name: &str| {
            let file = path.join(name);
            files
                .text(&file)
                .and_then(|text| match text {
                    Some(text) => compile(path, &file, &text, left),
                    None => Ok(Gitignore::empty()),
                })
                .unwrap_or_else(|error| {
                    tracing::warn!("search: {} does not count: {error}", file.display());
                    Gitignore::empty()
                })
        };
        let [plain, git] = [rules(".ignore"), rules(".gitignore")];
        let is_top = path.join(GIT).symlink_metadata().is_ok();
        let exclude = match is_top {
            true => rules(".git/info/exclude"),
            false => Gitignore::empty(),
        };
        Self {
            path: path.to_owned(),
            plain,
            git,
            exclude,
            is_top,
        }
    }
}

/// Compiles the rules of an ignore file, at most `left` of them.
///
/// # Errors
/// There are more rules than that, or they cannot be compiled.
pub(crate) fn compile(
    directory: &Path,
    file: &Path,
    text: &str,
    left: &mut usize,
) -> io::Result<Gitignore> {
    let mut rules = GitignoreBuilder::new(directory);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let count = lines.clone().count();
    if count > *left {
        return Err(io::Error::other(format!(
            "more than {MOST_PATTERNS} patterns, with those of other directories"
        )));
    }
    for line in lines {
        // A line that is no pattern has no effect, as for git.
        if patterns::check(line).is_ok() {
            let _no_pattern = rules.add_line(Some(file.to_owned()), line);
        }
    }
    *left -= count;
    rules.build().map_err(io::Error::other)
}

/// How ignore files are opened.
pub(crate) struct Files {
    /// The workspace's directory.
    pub(crate) root: PathBuf,
    /// Decides whose files count.
    pub(crate) trust: Trust,
}

impl Files {
    /// Returns the text of an ignore file; `None` if it does not exist.
    ///
    /// # Errors
    /// The file may not be read, is no regular file, belongs to another user,
    /// or is too large.
    pub(crate) fn text(&self, path: &Path) -> io::Result<Option<String>> {
        let opened = match relative(&self.root, path) {
            // A link is followed if it does not leave the workspace (SEC-2).
            Some(inside) => file(Root::open(&self.root).file(&inside))?,
            None => itself(path)?,
        };
        let Some(file) = opened else {
            return Ok(None);
        };
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let directory = path.parent().unwrap_or(Path::new("/"));
        self.trust
            .check(directory, &found)
            .map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(io::Error::other(format!("larger than {MOST_BYTES} bytes")));
        }
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

fn file(opened: Opened) -> io::Result<Option<File>> {
    Err(io::Error::other(match opened {
        Opened::File { file, .. } => return Ok(Some(file)),
        Opened::Absent { .. } | Opened::NotAFile("directory") => return Ok(None),
        Opened::NotAFile(what) => format!("a {what}"),
        Opened::Outside => "it leads out of the workspace".into(),
        Opened::Unreadable(cause) => cause,
        Opened::Changing => "it is being changed".into(),
    }))
}

/// Opens a file above the workspace, where no link is followed.
fn itself(path: &Path) -> io::Result<Option<File>> {
    match regular(path) {
        Ok((file, _)) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
