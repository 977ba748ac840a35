//! Where there are no sockets with names yet: the daemon cannot listen, and
//! says so.

use std::io;
use std::path::Path;

use super::Stream;
use crate::Error;

/// The most bytes of a socket's path.
pub const MAX_PATH: usize = 107;

/// There is none.
#[derive(Debug)]
pub enum Passed {}

impl Passed {
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        match *self {}
    }
}

/// There is none.
#[derive(Debug)]
pub enum Listener {}

impl Listener {
    /// Refuses.
    ///
    /// # Errors
    /// Always: [`Error::Unsupported`].
    pub fn bind(_path: &Path) -> Result<Self, Error> {
        Err(Error::Unsupported)
    }

    /// Cannot be called: nothing is passed here.
    ///
    /// # Errors
    /// None.
    pub fn adopt(passed: Passed, _path: &Path) -> Result<Self, Error> {
        match passed {}
    }

    /// Where it is bound.
    pub fn path(&self) -> &Path {
        match *self {}
    }

    /// Whether its name still leads to it (LIFE-2).
    pub fn is_in_place(&self) -> bool {
        match *self {}
    }

    /// Whether somebody else listens under its name.
    pub fn is_taken_over(&self) -> bool {
        match *self {}
    }

    /// The connections that wait already, which would end with this.
    pub fn waiting(&self) -> Vec<Stream> {
        match *self {}
    }

    /// The next connection.
    ///
    /// # Errors
    /// Whatever the system says.
    pub async fn accept(&self) -> io::Result<Stream> {
        match *self {}
    }
}
