//! What a look for a file to read comes to.

use std::fs::{File, Metadata};

use touchmark_proto::RelPath;

/// What opening a path came to.
pub(crate) enum Opened {
    /// A regular file, open for reading.
    File {
        file: File,
        /// As it was before that.
        before: Box<Metadata>,
        /// Its real name, if symlinks led to it.
        real: Option<RelPath>,
    },
    Absent {
        /// The real name, if symlinks led there.
        real: Option<RelPath>,
    },
    Outside,
    /// Looked at, not opened.
    NotAFile(&'static str),
    Unreadable(String),
    /// What lay on the way changed under the reader; to be tried again.
    Changing,
}
