//! Systems without leases: nothing shows which processes have a file open.
//! GUARD-2 says what follows; the answer's `guard` shows that there was no
//! lease.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::path::Path;

use super::leased::{Kind, Refused};

/// A lease, which never exists here.
#[derive(Debug)]
pub(crate) struct Lease<'f> {
    never: std::convert::Infallible,
    file: PhantomData<&'f File>,
}

impl<'f> Lease<'f> {
    /// Always refuses.
    ///
    /// # Errors
    /// [`Refused::Unavailable`].
    pub(crate) fn take(_file: &'f File, _kind: Kind) -> Result<Self, Refused> {
        Err(Refused::Unavailable)
    }

    pub(crate) fn is_whole(&self) -> bool {
        match self.never {}
    }
}

/// Returns `false`: the system cannot tell whether a process writes to a file.
pub(crate) fn has_writer(_file: &File) -> bool {
    false
}

/// A mark on a directory, which never exists here.
#[derive(Debug)]
pub(crate) struct Presence {
    never: std::convert::Infallible,
}

impl Presence {
    /// Always fails.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`].
    pub(crate) fn on(_directory: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn is_shared(&self) -> bool {
        match self.never {}
    }

    /// Returns `false`: no directory has a mark.
    pub(crate) fn is_at(_directory: &Path) -> bool {
        false
    }
}
