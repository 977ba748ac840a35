//! Names as the system takes them, and their bytes: what the wire carries and
//! the store keeps. On Unix a name is any bytes but NUL and `/`.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// The bytes of a name or path.
pub fn bytes<N: AsRef<OsStr> + ?Sized>(name: &N) -> Cow<'_, [u8]> {
    Cow::Borrowed(name.as_ref().as_bytes())
}

/// The name or path of these bytes.
pub fn name(bytes: &[u8]) -> Cow<'_, OsStr> {
    Cow::Borrowed(OsStr::from_bytes(bytes))
}

/// The same, of bytes that are no longer needed.
pub fn owned(bytes: Vec<u8>) -> OsString {
    OsString::from_vec(bytes)
}
