//! The identity of a content: SHA-256 of the file's bytes.

use std::fmt;
use std::str::FromStr;

/// The SHA-256 hash of a file's bytes. It is 64 lower-case hex digits in JSON
/// and 32 bytes on the binary wire. SHA-256 is used because every client
/// language has it without a dependency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Returns the hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }
}

/// The content that a writer declares: a hash, or that there will be no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HashOrAbsent {
    /// The file will not exist. It is `"absent"` in JSON.
    Absent,
    /// The file will have exactly this content.
    Hash(Hash),
}

impl HashOrAbsent {
    /// Returns the hash, or `None` for `Absent`.
    pub fn hash(self) -> Option<Hash> {
        match self {
            Self::Absent => None,
            Self::Hash(hash) => Some(hash),
        }
    }
}

impl From<Option<Hash>> for HashOrAbsent {
    fn from(hash: Option<Hash>) -> Self {
        hash.map_or(Self::Absent, Self::Hash)
    }
}

/// The text is not a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a hash is SHA-256 as 64 hex digits, of the file's bytes")]
pub struct HashError;

impl FromStr for Hash {
    type Err = HashError;
    fn from_str(text: &str) -> Result<Self, HashError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| HashError)?;
        Ok(Self(bytes))
    }
}

impl FromStr for HashOrAbsent {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "absent" {
            return Ok(Self::Absent);
        }
        let hash = text.parse().map(Self::Hash);
        hash.map_err(|_| "expected \"absent\" or SHA-256 as 64 hex digits")
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Display for HashOrAbsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("absent"),
            Self::Hash(hash) => hash.fmt(f),
        }
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0[..4]))
    }
}

text!(Hash as [u8; 32]: |hash| hash.0, |bytes| Ok(Self(bytes)));

text!(HashOrAbsent as Option<Hash>: |content| content.hash(), |hash| Ok(hash.into()));

schema!(Hash: {"type": "string", "pattern": "^[0-9a-f]{64}$",
    "description": "SHA-256 of the file's bytes, lower-case hex"});

schema!(HashOrAbsent: {"type": "string", "pattern": "^([0-9a-f]{64}|absent)$",
    "description": "SHA-256 of the file's bytes in lower-case hex, or \"absent\""});
