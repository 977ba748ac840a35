//! Conversion between names as the operating system takes them and the bytes
//! that the wire carries and the store keeps. On Unix a name may have any bytes
//! except NUL and `/`.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// Returns the bytes of a name or path.
pub fn bytes<N: AsRef<OsStr> + ?Sized>(name: &N) -> Cow<'_, [u8]> {
    Cow::Borrowed(name.as_ref().as_bytes())
}

/// Returns the name or path that has these bytes.
pub fn name(bytes: &[u8]) -> Cow<'_, OsStr> {
    Cow::Borrowed(OsStr::from_bytes(bytes))
}

/// Returns the name or path that has these bytes, without copying them.
pub fn owned(bytes: Vec<u8>) -> OsString {
    OsString::from_vec(bytes)
}
