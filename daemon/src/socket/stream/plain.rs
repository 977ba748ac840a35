//! Where there are no sockets with names yet: no connection can come to be,
//! which the type says.

use std::io;

use tokio::io::{Interest, Ready};

/// There is none.
#[derive(Debug)]
pub enum Stream {}

impl Stream {
    pub(super) async fn ready(&self, _interest: Interest) -> io::Result<Ready> {
        match *self {}
    }

    pub(super) fn try_write(&self, _bytes: &[u8]) -> io::Result<usize> {
        match *self {}
    }
}

pub(super) fn take(stream: &Stream, _buffer: &mut [u8]) -> (io::Result<()>, usize) {
    match *stream {}
}

pub(super) fn look(stream: &Stream, _buffer: &mut [u8]) -> io::Result<usize> {
    match *stream {}
}

pub(super) fn users(stream: &Stream) -> io::Result<(u32, u32)> {
    match *stream {}
}

pub(super) fn hung_up(stream: &Stream) -> bool {
    match *stream {}
}

pub(super) fn shut(stream: &Stream) -> io::Result<()> {
    match *stream {}
}
