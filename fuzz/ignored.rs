//! The body of the fuzz target `ignored`: ignore files of a tree, and a glob,
//! for a search (SEC-7). A stable test runs the seeds through it
//! (`daemon/tests/corpus.rs`).
//!
//! Nothing may panic or take seconds. Only files of the tree are found, and
//! none of git's. Where the library that `rg` uses reads the ignore files in
//! the same way, it finds the same files.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;
use touchmark_daemon::tools::grep::{Stop, search};
use touchmark_proto::ErrorCode;
use touchmark_proto::search::SearchGrep;
use touchmark_proto::trust::{Me, Trust};

/// The line between two parts of the input; it is no line of an ignore file.
const BETWEEN: &[u8] = b"\n%%%\n";

/// The ignore files that the parts of the input become, in this order. The part
/// after them is the glob.
const IGNORE_FILES: [&str; 7] = [
    ".gitignore",
    ".ignore",
    ".git/info/exclude",
    "src/.gitignore",
    "src/.ignore",
    "nested/.gitignore",
    "nested/.git/info/exclude",
];

/// The files of the tree.
const FILES: [&str; 24] = [
    "a",
    "a.log",
    "b c",
    "build/keep",
    "build/out.o",
    "doc/doc/doc.md",
    ".hidden",
    ".config/c",
    "src/a.log",
    "src/build/x",
    "src/lib/deep.txt",
    "src/lib/x/y/z",
    "src/.env",
    "nested/a",
    "nested/a.log",
    "nested/src/lib/b",
    "ü.txt",
    "!bang",
    "#hash",
    "\\back",
    "[x]",
    "*star",
    "{brace}",
    "trailing ",
];

/// The limits of a pattern: a line that is longer, or has more braces, is
/// ignored.
const LINE: usize = 4_096;
const BRACES: usize = 32;

struct Tree(PathBuf);

impl Tree {
    fn new(parts: &[&[u8]]) -> Self {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir().canonicalize().unwrap()
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = base.join(format!("touchmark-ignored-{}-{number}", std::process::id()));
        let _from_before = fs::remove_dir_all(&root);
        fs::create_dir(&root).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
        let tree = Self(root);
        for name in FILES {
            tree.file(name, b"hit\n");
        }
        for repository in [".git", "nested/.git"] {
            tree.file(&format!("{repository}/HEAD"), b"hit\n");
        }
        for (name, text) in IGNORE_FILES.iter().zip(parts) {
            tree.file(name, text);
        }
        tree
    }

    fn file(&self, name: &str, content: &[u8]) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Returns the files that the library finds if it reads the ignore files
    /// itself.
    fn by_the_library(&self, glob: Option<&str>) -> Vec<String> {
        let mut walk = WalkBuilder::new(&self.0);
        walk.parents(false);
        if let Some(glob) = glob {
            let mut globs = OverrideBuilder::new(&self.0);
            globs.add(glob).unwrap();
            walk.overrides(globs.build().unwrap());
        }
        let entries = walk.build().map(|entry| entry.unwrap());
        let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        let names = files.map(|entry| {
            let inside = entry.path().strip_prefix(&self.0).unwrap();
            inside.to_str().unwrap().to_owned()
        });
        let mut names: Vec<String> = names.filter(|name| FILES.contains(&&**name)).collect();
        names.sort();
        names
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

pub(crate) fn ignored(bytes: &[u8]) {
    let mut parts: Vec<&[u8]> = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(BETWEEN.len()).position(|w| w == BETWEEN) {
        parts.push(&rest[..at]);
        rest = &rest[at + BETWEEN.len()..];
    }
    parts.push(rest);
    let glob = parts.get(IGNORE_FILES.len());
    let glob = glob.map(|glob| String::from_utf8_lossy(glob).into_owned());
    let tree = Tree::new(&parts);
    let uid = fs::metadata(&tree.0).unwrap().uid();
    let trust = Trust {
        me: Me::new(uid),
        list: PathBuf::from("/nonexistent"),
    };
    let ask = SearchGrep {
        glob: glob.clone(),
        ..SearchGrep::new("hit")
    };
    let stop = Stop::at(Instant::now() + Duration::from_secs(10));
    let found = match search(&tree.0, &ask, |_| false, 1 << 20, &trust, &stop) {
        Ok(found) => found,
        Err(error) => {
            assert_eq!(error.code, ErrorCode::InvalidParams, "{error}");
            assert!(glob.is_some(), "{error}");
            return;
        }
    };
    assert!(!found.truncated, "it took too long");
    // An ignore file itself may be found, if another one includes it.
    let names = found.matches.iter().map(|hit| hit.path.to_string());
    let mut names: Vec<String> = names
        .filter(|name| !IGNORE_FILES.contains(&&**name))
        .collect();
    names.sort();
    for name in &names {
        assert!(FILES.contains(&&**name), "{name}");
    }
    if same_for_the_library(&parts) {
        assert_eq!(names, tree.by_the_library(glob.as_deref()));
    }
}

/// Returns whether the library reads these files as touchmark does. The library
/// stops at a line that is not UTF-8, skips more than one byte order mark, and
/// accepts any line as a pattern.
fn same_for_the_library(parts: &[&[u8]]) -> bool {
    parts.iter().all(|part| {
        let Ok(text) = std::str::from_utf8(part) else {
            return false;
        };
        !text.starts_with('\u{feff}')
            && text.lines().all(|line| {
                line.len() <= LINE && line.bytes().filter(|byte| *byte == b'{').count() <= BRACES
            })
    })
}
