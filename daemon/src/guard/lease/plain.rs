//! Where there are no leases: nobody is told who has a file open. GUARD-2 says
//! what holds then; the answer's `guard` says that there was none.

use std::fs::File;
use std::marker::PhantomData;

/// Which opens a lease would be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Opens for writing, and truncation.
    Read,
    /// Every other open.
    Write,
}

/// Why there is no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Nobody can tell here.
    #[allow(dead_code)]
    Busy,
    /// The system has no leases.
    Unavailable,
}

/// There is none.
#[derive(Debug)]
pub(super) struct Lease<'f> {
    never: std::convert::Infallible,
    file: PhantomData<&'f File>,
}

impl<'f> Lease<'f> {
    /// Refuses.
    ///
    /// # Errors
    /// [`Refused::Unavailable`].
    pub(super) fn take(_file: &'f File, _kind: Kind) -> Result<Self, Refused> {
        Err(Refused::Unavailable)
    }

    pub(super) fn is_whole(&self) -> bool {
        match self.never {}
    }
}
