//! Directories full of files, as watchers get them.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tempfile::TempDir;

/// Bytes of every file.
const FILE_BYTES: usize = 1024;

/// Files of one directory.
const PER_DIRECTORY: usize = 100;

/// A workspace's files, in a place of their own.
#[derive(Debug)]
pub(crate) struct Tree {
    home: TempDir,
    pub(crate) root: PathBuf,
    /// Relative to the root.
    pub(crate) names: Vec<String>,
    /// The same, absolute.
    pub(crate) files: Vec<PathBuf>,
}

impl Tree {
    /// Files of 1 KiB each.
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

    /// Beside the workspace, on the same file system.
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

    /// Writes the first `count` files anew, by one thread, as fast as it can.
    pub(crate) fn rewrite(&self, count: usize, contents: &mut Contents) -> Result<()> {
        for file in self.files.iter().take(count) {
            write_in_place(file, &contents.next())?;
        }
        Ok(())
    }
}

/// Writes a file of the same length, as many editors do. Without truncating
/// it, for which a file system may wait for its disk.
pub(crate) fn write_in_place(file: &Path, bytes: &[u8]) -> Result<()> {
    let open = fs::OpenOptions::new().write(true).open(file)?;
    Ok(open.write_all_at(bytes, 0)?)
}

/// Contents no file has had yet.
#[derive(Debug)]
pub(crate) struct Contents(u64);

impl Default for Contents {
    fn default() -> Self {
        // Above the numbers of the files that a tree begins with.
        Self(1_000_000_000)
    }
}

impl Contents {
    pub(crate) fn next(&mut self) -> Vec<u8> {
        self.0 += 1;
        content(self.0)
    }
}

/// A file's content that no other number has.
fn content(number: u64) -> Vec<u8> {
    let mut text = format!("{number}\n").into_bytes();
    while text.len() < FILE_BYTES {
        text.extend_from_slice(b"a line of text like another\n");
    }
    text.truncate(FILE_BYTES);
    text
}
