//! The wire of a connection.

use super::frames;

/// The wire of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// bincode frames after the preface `TMK1`.
    Frames,
    /// JSON-RPC 2.0, one message per line.
    Lines,
    /// JSON-RPC 2.0 with LSP's `Content-Length` header.
    ContentLength,
}

impl Wire {
    /// Returns the wire that a client's first byte selects; `None` if it
    /// selects none.
    pub fn sniff(first: u8) -> Option<Self> {
        match first {
            b'T' => Some(Self::Frames),
            b'{' | b'[' | b' ' | b'\t' | b'\r' | b'\n' => Some(Self::Lines),
            b'C' => Some(Self::ContentLength),
            _ => None,
        }
    }

    /// Returns the bytes that a client sends once, before its first message.
    pub fn preface(self) -> &'static [u8] {
        match self {
            Self::Frames => &frames::PREFACE,
            Self::Lines | Self::ContentLength => b"",
        }
    }
}
