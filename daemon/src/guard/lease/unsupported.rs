//! Where there are no leases: nobody is told who has a file open. GUARD-2 says
//! what holds then; the answer's `guard` says that there was none.

use std::fs::File;
use std::marker::PhantomData;

use super::leased::{Kind, Refused};

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
