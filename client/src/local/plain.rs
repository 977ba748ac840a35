//! Where touchmark has no sockets with names yet: there is no way to a daemon,
//! and the types say that no connection can be.

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest path of a socket, in bytes.
pub(crate) const MAX_SOCKET_BYTES: usize = 107;

/// There is none.
#[derive(Debug)]
pub(crate) enum Stream {}

/// There is none.
#[derive(Debug)]
pub(crate) enum AsyncStream {}

pub(crate) type OwnedReadHalf = AsyncStream;
pub(crate) type OwnedWriteHalf = AsyncStream;

/// Refuses.
pub(crate) fn try_dial(_socket: &Path) -> io::Result<Stream> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "touchmark's clients do not work on this system yet: run them where Linux runs",
    ))
}

pub(crate) fn send_at_once(stream: &Stream, _bytes: &[u8]) -> io::Result<usize> {
    match *stream {}
}

pub(crate) fn receive_at_once(stream: &Stream, _bytes: &mut [u8]) -> io::Result<usize> {
    match *stream {}
}

/// No file is one here.
pub(crate) fn is_socket(_file: &Metadata) -> bool {
    false
}

/// Not told: it is taken to live.
pub(crate) fn lives(_pid: i32) -> bool {
    true
}

impl Stream {
    pub(crate) fn set_nonblocking(&self, _nonblocking: bool) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn set_read_timeout(&self, _timeout: Option<Duration>) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn set_write_timeout(&self, _timeout: Option<Duration>) -> io::Result<()> {
        match *self {}
    }
}

impl io::Read for Stream {
    fn read(&mut self, _bytes: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }
}

impl io::Write for Stream {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match *self {}
    }
}

impl AsyncStream {
    pub(crate) fn from_std(stream: Stream) -> io::Result<Self> {
        match stream {}
    }

    pub(crate) fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        match self {}
    }
}

impl AsyncRead for AsyncStream {
    fn poll_read(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        _bytes: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match *self {}
    }
}

impl AsyncWrite for AsyncStream {
    fn poll_write(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        _bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match *self {}
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }
}
