//! Names where they are no bytes: UTF-8 with `/` between them, as everywhere
//! else.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::MAIN_SEPARATOR;

/// The bytes of a name or path, whatever the system puts between names.
pub fn bytes<N: AsRef<OsStr> + ?Sized>(name: &N) -> Cow<'_, [u8]> {
    let bytes = name.as_ref().as_encoded_bytes();
    if MAIN_SEPARATOR == '/' {
        return Cow::Borrowed(bytes);
    }
    // ASCII, so no part of a longer character.
    let slash = |byte: &u8| match char::from(*byte) {
        MAIN_SEPARATOR => b'/',
        _ => *byte,
    };
    Cow::Owned(bytes.iter().map(slash).collect())
}

/// The name or path of these bytes. What is not UTF-8 cannot be a name here:
/// it gets a `?`, which no file's name has, so that nothing is found by it.
pub fn name(bytes: &[u8]) -> Cow<'_, OsStr> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(OsStr::new(text)),
        Err(_) => Cow::Owned(OsString::from(
            String::from_utf8_lossy(bytes).replace(char::REPLACEMENT_CHARACTER, "?"),
        )),
    }
}

/// The same, of bytes that are no longer needed.
pub fn owned(bytes: Vec<u8>) -> OsString {
    name(&bytes).into_owned()
}
