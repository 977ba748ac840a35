//! The same where nothing can be opened below an open directory: looked for,
//! opened by its real name, and looked for once more. Whoever exchanges a
//! directory on the way for a link at just these moments, and back, can have
//! another file read.

use std::fs::File;
use std::io;
use std::path::Path;

use touchmark_proto::RelPath;

pub(crate) use super::opened::Opened;
use crate::links::{End, absolute, resolve};

/// A workspace's directory, for some files in a row.
pub(crate) struct Root<'a>(&'a Path);

impl<'a> Root<'a> {
    pub(crate) fn open(path: &'a Path) -> Self {
        Self(path)
    }

    /// Opens a file below it for reading.
    pub(crate) fn file(&self, path: &RelPath) -> Opened {
        open(self.0, path)
    }
}

fn open(root: &Path, path: &RelPath) -> Opened {
    let end = match resolve(root, path, |_| false).end {
        End::There(end, metadata) if metadata.is_file() => end,
        End::There(_, metadata) if metadata.is_dir() => return Opened::NotAFile("directory"),
        End::There(..) => return Opened::NotAFile("device"),
        End::Root => return Opened::NotAFile("directory"),
        End::Missing(_) | End::Loop => return Opened::Absent { real: None },
        End::Outside => return Opened::Outside,
        End::Denied(error) => return Opened::Unreadable(error.to_string()),
    };
    let file = match File::open(absolute(root, &end)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Opened::Absent { real: None };
        }
        Err(error) => return Opened::Unreadable(error.to_string()),
    };
    match (resolve(root, path, |_| false).end, file.metadata()) {
        (End::There(now, _), Ok(metadata)) if now == end && metadata.is_file() => Opened::File {
            file,
            before: Box::new(metadata),
            real: Some(end).filter(|end| end != path),
        },
        _ => Opened::Changing,
    }
}
