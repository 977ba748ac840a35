//! The smallest stored parts: names and contents as bytes, and numbers for
//! words.

use minicbor::decode::{Decode, Decoder, Error as DecodeError};
use minicbor::encode::{Encode, Encoder, Error as EncodeError, Write};
use smallvec::SmallVec;
use touchmark_proto::{self as proto, FileMode, Hash, HashOrAbsent, RelPath, SessionId};

use crate::globs::{self, Cover};
use crate::ledger::record;
use crate::ledger::stored::mirror::{List, Mirror, Rare, names, structs};
use crate::ranges::RangeSet;

macro_rules! leaves {
    ($( $(#[$doc:meta])* $name:ident($engine:ty) $to:ident $from:ident )*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, PartialOrd)]
        pub(in crate::ledger::stored) struct $name($engine);

        impl Mirror<$engine> for $name {
            fn of(value: $engine) -> Self {
                Self(value)
            }
            fn back(self) -> $engine {
                self.0
            }
        }

        impl<C> Encode<C> for $name {
            fn encode<W: Write>(
                &self,
                to: &mut Encoder<W>,
                _: &mut C,
            ) -> Result<(), EncodeError<W::Error>> {
                $to(&self.0, to)
            }
        }

        impl<'b, C> Decode<'b, C> for $name {
            fn decode(from: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
                $from(from).map(Self)
            }
        }
    )* };
}

leaves! {
    /// A path, as its bytes.
    Path(RelPath) put_path take_path
    /// A session's id.
    Session(SessionId) put_session take_session
    /// A content, as the 32 bytes of its hash.
    Content(Hash) put_hash take_hash
    /// What a writer declared: the bytes of a hash, or no bytes for no file.
    Declared(HashOrAbsent) put_declared take_declared
    /// Kind and permissions: the number of a stat's `st_mode`.
    Mode(FileMode) put_mode take_mode
    /// Ranges of lines: the first and the last line of each, in one flat list.
    Lines(Ranges) put_lines take_lines
}

type Ranges = SmallVec<[(u32, u32); 2]>;
type Put<W> = Result<(), EncodeError<<W as Write>::Error>>;

fn put_path<W: Write>(path: &RelPath, to: &mut Encoder<W>) -> Put<W> {
    to.bytes(path.as_bytes())?.ok()
}

fn take_path(from: &mut Decoder<'_>) -> Result<RelPath, DecodeError> {
    RelPath::new(from.bytes()?).map_err(|_| DecodeError::message("no path"))
}

fn put_session<W: Write>(session: &SessionId, to: &mut Encoder<W>) -> Put<W> {
    to.str(session.as_str())?.ok()
}

fn take_session(from: &mut Decoder<'_>) -> Result<SessionId, DecodeError> {
    SessionId::new(from.str()?).map_err(|_| DecodeError::message("no session's name"))
}

fn put_hash<W: Write>(hash: &Hash, to: &mut Encoder<W>) -> Put<W> {
    to.bytes(&hash.0)?.ok()
}

fn take_hash(from: &mut Decoder<'_>) -> Result<Hash, DecodeError> {
    hash(from.bytes()?)
}

fn hash(bytes: &[u8]) -> Result<Hash, DecodeError> {
    let bytes = bytes.try_into();
    bytes.map(Hash).map_err(|_| DecodeError::message("no hash"))
}

fn put_mode<W: Write>(mode: &FileMode, to: &mut Encoder<W>) -> Put<W> {
    to.u32(mode.bits())?.ok()
}

fn take_mode(from: &mut Decoder<'_>) -> Result<FileMode, DecodeError> {
    FileMode::new(from.u32()?).ok_or_else(|| DecodeError::message("no mode"))
}

fn put_declared<W: Write>(declared: &HashOrAbsent, to: &mut Encoder<W>) -> Put<W> {
    match declared {
        HashOrAbsent::Absent => to.bytes(&[])?.ok(),
        HashOrAbsent::Hash(hash) => put_hash(hash, to),
    }
}

fn take_declared(from: &mut Decoder<'_>) -> Result<HashOrAbsent, DecodeError> {
    match from.bytes()? {
        [] => Ok(HashOrAbsent::Absent),
        bytes => hash(bytes).map(HashOrAbsent::Hash),
    }
}

fn put_lines<W: Write>(lines: &Ranges, to: &mut Encoder<W>) -> Put<W> {
    to.array(lines.len() as u64 * 2)?;
    for (first, last) in lines {
        to.u32(*first)?.u32(*last)?;
    }
    Ok(())
}

fn take_lines(from: &mut Decoder<'_>) -> Result<Ranges, DecodeError> {
    let count = from.array()?.unwrap_or(0) / 2;
    (0..count).map(|_| Ok((from.u32()?, from.u32()?))).collect()
}

impl Default for Lines {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl Mirror<RangeSet> for Lines {
    fn of(value: RangeSet) -> Self {
        Self(value.0)
    }
    fn back(self) -> RangeSet {
        RangeSet(self.0)
    }
}

structs! {
    LineRange = proto::LineRange { 0 start: u32, 1 end: u32 }
    Program = proto::daemon::Program { 0 name: String, 1 version: String }
    Globs = globs::Globs { 0 patterns: Option<List<String>>, 1 case_insensitive: Rare<bool> }
}

/// An author without its label, which is stored with the session.
#[derive(Clone, Debug, PartialEq, minicbor::Encode, minicbor::Decode)]
pub(in crate::ledger::stored) struct Author {
    #[n(0)]
    kind: AuthorKind,
    #[n(1)]
    session: Option<Session>,
}

impl Mirror<proto::Author> for Author {
    fn of(value: proto::Author) -> Self {
        let proto::Author {
            kind,
            session,
            label: _,
        } = value;
        Self {
            kind: Mirror::of(kind),
            session: Mirror::of(session),
        }
    }
    fn back(self) -> proto::Author {
        proto::Author {
            kind: self.kind.back(),
            session: self.session.back(),
            label: None,
        }
    }
}

impl Mirror<Cover> for Globs {
    fn of(value: Cover) -> Self {
        Self::of(globs::Globs::from(value))
    }
    fn back(self) -> Cover {
        Mirror::<globs::Globs>::back(self).into()
    }
}

names! {
    Source = proto::files::Source {
        0 ReadTool, 1 AgentEdited, 2 UserEdited, 3 FileMentioned,
        4 ReadMissed,
    }
    Verdict = proto::files::Verdict { 0 First, 1 Repeat, 2 Extends, 3 Changed }
    AuthorKind = proto::AuthorKind { 0 Agent, 1 User, 2 Unknown, 3 Committed }
    Evidence = proto::Evidence {
        0 Declared, 1 Marked, 2 Command, 3 Editor, 4 Process, 5 Unmarked, 6 Gap, 7 Claimed,
        8 Commit
    }
    VersionKind = proto::VersionKind { 0 Created, 1 Modified, 2 Deleted, 3 Renamed }
    EditPhase = proto::events::EditPhase { 0 Begun, 1 Committed, 2 Aborted, 3 Lapsed }
    TaskType = proto::tasks::TaskType { 0 Shell, 1 Process, 2 Agent }
    Refusal = record::Refusal { 0 Stale, 1 NotRead, 2 Conflict }
    Passing = record::Passing { 0 Beside, 1 Unread, 2 Late }
    Carriage = record::Carriage { 0 Carried, 1 Wiped, 2 TakenBack, 3 Unclear }
}
