//! The three wires: bincode frames, JSON lines, JSON with `Content-Length`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// What is percent-encoded in a `file://` URI: everything but the unreserved
/// characters of RFC 3986 and the slash.
pub(crate) const URI_ESCAPES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');
