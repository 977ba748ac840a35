//! Paths of files, as clients send them and inside the workspace.

use std::fmt;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The length in bytes of the longest path that is accepted from a client
/// (Linux's `PATH_MAX`).
pub const MAX_PATH_BYTES: usize = 4096;

/// Marks a name that is not UTF-8 inside a JSON string, until the codec has
/// turned it into a `uri`. No path contains NUL, so the mark is unambiguous.
pub(crate) const RAW_MARK: char = '\0';

/// The characters that are percent-encoded in a `file://` URI: all except the
/// unreserved characters of RFC 3986 and the slash.
pub(crate) const URI_ESCAPES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// A path as a client sent it: relative to the workspace or absolute, not yet
/// normalised or checked. It is bytes, since names need not be UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientPath(Vec<u8>);

/// A path inside the workspace: relative, `/`-separated, without empty, `.` or
/// `..` components. It is bytes, since names need not be UTF-8. Cloning is
/// cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Arc<[u8]>);

/// Why a text is not a path inside the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path is empty, or names the workspace itself.
    #[error("the path is empty")]
    Empty,
    /// The path leads out of the workspace (SEC-2).
    #[error("the path leads out of the workspace")]
    Outside,
    /// The path is longer than [`MAX_PATH_BYTES`].
    #[error("the path is longer than {MAX_PATH_BYTES} bytes")]
    TooLong,
    /// The path contains a NUL byte.
    #[error("the path holds a NUL byte")]
    Nul,
}

impl ClientPath {
    /// Returns a path of these bytes, unchecked.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// Returns the bytes as the client sent them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the path relative to the workspace. `.` and `..` are resolved in
    /// the text, so `./x/../a` is `a` whether or not `x` exists
    /// (docs/protocol.md).
    ///
    /// `root` is the canonical absolute path of the workspace. Symlinks are not
    /// resolved: that needs the file system.
    ///
    /// # Errors
    /// [`PathError`] if the path is not inside the workspace, too long, or
    /// contains NUL.
    pub fn normalise(&self, root: &[u8]) -> Result<RelPath, PathError> {
        if self.0.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong);
        }
        if self.0.contains(&0) {
            return Err(PathError::Nul);
        }
        let absolute = self.0.first() == Some(&b'/');
        let mut parts: Vec<&[u8]> = Vec::new();
        if !absolute {
            parts.extend(components(root));
        }
        for part in components(&self.0) {
            match part {
                b"." => {}
                b".." => {
                    parts.pop();
                }
                name => parts.push(name),
            }
        }
        let mut inside = parts.into_iter();
        for expected in components(root) {
            if inside.next() != Some(expected) {
                return Err(PathError::Outside);
            }
        }
        let rest: Vec<&[u8]> = inside.collect();
        if rest.is_empty() {
            return Err(PathError::Empty);
        }
        Ok(RelPath(rest.join(&b'/').into()))
    }
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
}

impl RelPath {
    /// Returns a path of bytes that are already in normal form.
    ///
    /// # Errors
    /// The same as [`ClientPath::normalise`]. Bytes that are not in normal form
    /// are [`PathError::Outside`].
    pub fn new(bytes: &[u8]) -> Result<Self, PathError> {
        if bytes.is_empty() {
            return Err(PathError::Empty);
        }
        if bytes.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong);
        }
        if bytes.contains(&0) {
            return Err(PathError::Nul);
        }
        let normal = bytes
            .split(|byte| *byte == b'/')
            .all(|part| !part.is_empty() && part != b"." && part != b"..");
        if normal {
            Ok(Self(bytes.into()))
        } else {
            Err(PathError::Outside)
        }
    }

    /// Returns the path's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the path for display. Bytes that are not UTF-8 are replaced.
    pub fn to_string_lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// Returns the directory that contains the path, or `None` at the
    /// workspace's top level.
    pub fn parent(&self) -> Option<RelPath> {
        let cut = self.0.iter().rposition(|byte| *byte == b'/')?;
        Some(Self(self.0[..cut].into()))
    }

    /// Returns the last component.
    pub fn file_name(&self) -> &[u8] {
        match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(cut) => &self.0[cut + 1..],
            None => &self.0,
        }
    }

    /// Returns this path with one more component.
    ///
    /// # Errors
    /// The same as [`RelPath::new`].
    pub fn join(&self, name: &[u8]) -> Result<Self, PathError> {
        Self::new(&[&self.0, b"/".as_slice(), name].concat())
    }

    /// Returns the part of this path below `directory`, or `None` if it is not
    /// below it.
    pub fn below(&self, directory: &RelPath) -> Option<&[u8]> {
        self.0.strip_prefix(&*directory.0)?.strip_prefix(b"/")
    }

    /// Returns this path with the prefix `from` replaced by `to`, or `None` if
    /// it is not below `from`.
    pub fn rebase(&self, from: &RelPath, to: &RelPath) -> Option<Self> {
        let rest = self.below(from)?;
        Some(Self([&to.0, b"/".as_slice(), rest].concat().into()))
    }
}

/// Lets maps by path be searched by a slice of a path, without allocating. The
/// order of bytes is the order of paths.
impl std::borrow::Borrow<[u8]> for RelPath {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<&RelPath> for ClientPath {
    fn from(path: &RelPath) -> Self {
        Self(path.as_bytes().to_vec())
    }
}

impl From<&str> for ClientPath {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<String> for ClientPath {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl From<&std::path::Path> for ClientPath {
    fn from(path: &std::path::Path) -> Self {
        Self(crate::native::bytes(path).into_owned())
    }
}

impl fmt::Debug for ClientPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// Writes bytes as a JSON string, or as raw bytes on a binary wire. Bytes that
/// are not UTF-8 are percent-encoded in JSON, after [`RAW_MARK`].
fn serialize_bytes<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    if !serializer.is_human_readable() {
        return serializer.serialize_bytes(bytes);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => serializer.serialize_str(text),
        Err(_) => {
            serializer.serialize_str(&format!("{RAW_MARK}{}", percent_encode(bytes, URI_ESCAPES)))
        }
    }
}

/// Reads what [`serialize_bytes`] has written. Accepts `file://` URIs as well.
fn deserialize_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    struct Text;
    impl de::Visitor<'_> for Text {
        type Value = Vec<u8>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a path")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<u8>, E> {
            let encoded = text
                .strip_prefix(RAW_MARK)
                .or_else(|| text.strip_prefix("file://"));
            Ok(match encoded {
                Some(encoded) => percent_decode_str(encoded).collect(),
                None => text.as_bytes().to_vec(),
            })
        }
        fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }
        fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }
    }
    if deserializer.is_human_readable() {
        deserializer.deserialize_str(Text)
    } else {
        deserializer.deserialize_byte_buf(Text)
    }
}

impl Serialize for ClientPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_bytes(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for ClientPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_bytes(deserializer).map(Self)
    }
}

impl Serialize for RelPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_bytes(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for RelPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = deserialize_bytes(deserializer)?;
        Self::new(&bytes).map_err(de::Error::custom)
    }
}

schema!(ClientPath: {"type": "string", "description": "A path relative to the workspace, or absolute inside it. A name that is not UTF-8 travels in a field `uri` instead, as a percent-encoded file:// URI."});

schema!(RelPath: {"type": "string", "description": "A path relative to the workspace, /-separated. Where the name is not UTF-8 it is lossy and a field `uri` stands beside it."});

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn normal(text: &str) -> Result<String, PathError> {
        ClientPath::from(text)
            .normalise(b"/w/s")
            .map(|path| path.to_string_lossy())
    }

    #[test]
    fn dots_are_resolved_by_text() {
        assert_eq!(normal("./x/../a"), Ok("a".into()));
        assert_eq!(normal("a//b/./c"), Ok("a/b/c".into()));
        assert_eq!(normal("/w/s/a"), Ok("a".into()));
        assert_eq!(normal("/w/x/../s/a"), Ok("a".into()));
        assert_eq!(normal("../s/a"), Ok("a".into()));
    }

    #[test]
    fn what_leads_out_is_refused() {
        assert_eq!(normal("../a"), Err(PathError::Outside));
        assert_eq!(normal("/w/sx/a"), Err(PathError::Outside));
        assert_eq!(normal("/etc/passwd"), Err(PathError::Outside));
        assert_eq!(normal(""), Err(PathError::Empty));
        assert_eq!(normal("a/.."), Err(PathError::Empty));
        assert_eq!(normal("a\0b"), Err(PathError::Nul));
        assert_eq!(normal(&"a/".repeat(3000)), Err(PathError::TooLong));
    }

    #[test]
    fn rebasing_takes_whole_components() {
        let (d, e) = (RelPath::new(b"d").unwrap(), RelPath::new(b"e").unwrap());
        assert_eq!(
            RelPath::new(b"d/f").unwrap().rebase(&d, &e),
            RelPath::new(b"e/f").ok()
        );
        assert_eq!(RelPath::new(b"dd/f").unwrap().rebase(&d, &e), None);
        assert_eq!(RelPath::new(b"d").unwrap().below(&d), None);
    }
}
