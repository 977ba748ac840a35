//! Directories full of files, for watchers.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tempfile::TempDir;

/// The size of every file in bytes.
const FILE_BYTES: usize = 1024;

/// The number of files in one directory.
const PER_DIRECTORY: usize = 100;

/// The files of a workspace in a temporary directory.
#[derive(Debug)]
pub(crate) struct Tree {
    home: TempDir,
    pub(crate) root: PathBuf,
    /// The files' paths, relative to the root.
    pub(crate) names: Vec<String>,
    /// The files' absolute paths.
    pub(crate) files: Vec<PathBuf>,
}

impl Tree {
    /// Creates `count` files of 1 KiB each.
    pub(crate) fn new(count: usize) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let root = home.path().canonicalize()?.join("workspace");
        fs::create_dir(&root)?;
        let mut names = Vec::with_capacity(count);
        for n in 0..count {
            let directory = format!("d{}", n / PER_DIRECTORY);
            if n % PER_DIRECTORY == 0 {
                fs::create_dir(root.join(&directory))?;
            }
            names.push(format!("{directory}/f{n}.txt"));
        }
        let files: Vec<PathBuf> = names.iter().map(|name| root.join(name)).collect();
        for (n, file) in files.iter().enumerate() {
            fs::write(file, content(n as u64))?;
        }
        Ok(Self {
            home,
            root,
            names,
            files,
        })
    }

    /// Returns the directory that contains the workspace, on the same file
    /// system.
    pub(crate) fn beside(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn directories(&self) -> impl Iterator<Item = &Path> {
        self.files.chunks(PER_DIRECTORY).filter_map(|files| {
            let file = files.first()?;
            file.parent()
        })
    }

    /// Writes the first `count` files again, in one thread, as fast as
    /// possible.
    pub(crate) fn rewrite(&self, count: usize, contents: &mut Contents) -> Result<()> {
        for file in self.files.iter().take(count) {
            write_in_place(file, &contents.next())?;
        }
        Ok(())
    }
}

/// Overwrites a file with a content of the same length, as many editors do. It
/// is not truncated, because a file system may wait for its disk then.
pub(crate) fn write_in_place(file: &Path, bytes: &[u8]) -> Result<()> {
    let open = fs::OpenOptions::new().write(true).open(file)?;
    Ok(open.write_all_at(bytes, 0)?)
}

/// Generates contents that no file has had yet.
#[derive(Debug)]
pub(crate) struct Contents(u64);

impl Default for Contents {
    fn default() -> Self {
        // This is above the numbers of the contents that a new tree has.
        Self(1_000_000_000)
    }
}

impl Contents {
    pub(crate) fn next(&mut self) -> Vec<u8> {
        self.0 += 1;
        content(self.0)
    }
}

/// Returns a content that is unique to the number.
fn content(number: u64) -> Vec<u8> {
    let mut text = format!("{number}\n").into_bytes();
    while text.len() < FILE_BYTES {
        text.extend_from_slice(b"a line of text like another\n");
    }
    text.truncate(FILE_BYTES);
    text
}
