//! The kind and the permissions of a file.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

/// The bits of the kind.
const KIND: u16 = 0o170_000;
const FILE: u16 = 0o100_000;
const LINK: u16 = 0o120_000;
const DIRECTORY: u16 = 0o040_000;

/// Kind and permissions of a file, as the system and git number them: on the
/// wire six octal digits, `100644` for a file, `100755` for one that may be
/// run, `120777` for a symlink.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileMode(NonZeroU16);

impl FileMode {
    /// The mode that a symlink has on Linux.
    pub const LINK: Self = Self(NonZeroU16::new(LINK | 0o777).expect("not 0"));

    /// Returns the mode with these bits, as in `st_mode`; `None` if they name no
    /// kind.
    pub fn new(bits: u32) -> Option<Self> {
        let bits = u16::try_from(bits).ok()?;
        NonZeroU16::new(bits)
            .filter(|bits| bits.get() & KIND != 0)
            .map(Self)
    }

    /// Returns all bits.
    pub fn bits(self) -> u32 {
        self.0.get().into()
    }

    /// Returns the permissions without the kind.
    pub fn permissions(self) -> u32 {
        self.bits() & 0o7777
    }

    /// Returns whether the mode is a regular file's.
    pub fn is_file(self) -> bool {
        self.0.get() & KIND == FILE
    }

    /// Returns whether the mode is a directory's.
    pub fn is_directory(self) -> bool {
        self.0.get() & KIND == DIRECTORY
    }

    /// Returns whether the mode is a symlink's. The content of a symlink is the
    /// name that it resolves to.
    pub fn is_link(self) -> bool {
        self.0.get() & KIND == LINK
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06o}", self.0)
    }
}

impl fmt::Debug for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for FileMode {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bits = u32::from_str_radix(text, 8).ok();
        bits.and_then(Self::new)
            .ok_or("a mode is six octal digits, as `100644`")
    }
}

text!(FileMode as u16: |mode| mode.0.get(), |bits| Self::new(bits.into()).ok_or("no mode"));

schema!(FileMode: {"type": "string", "pattern": "^[0-7]{6}$",
    "description": "Kind and permissions as the system and git number them: 100644 a file, 100755 one that may be run, 120777 a symlink"});
