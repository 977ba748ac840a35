//! The result of opening a file for reading.

use std::fs::{File, Metadata};

use touchmark_proto::RelPath;

/// The result of opening a path.
pub(crate) enum Opened {
    /// A regular file, open for reading.
    File {
        file: File,
        /// The file's stat before it was opened.
        before: Box<Metadata>,
        /// Its real name, if it was reached through symlinks.
        real: Option<RelPath>,
    },
    Absent {
        /// The real name, if it was reached through symlinks.
        real: Option<RelPath>,
    },
    Outside,
    /// The object is no regular file, so it was not opened. Contains its type.
    NotAFile(&'static str),
    Unreadable(String),
    /// The path changed while it was resolved; to be tried again.
    Changing,
}
