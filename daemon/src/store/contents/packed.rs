//! A content as the table has it: as it is, compressed by itself, or
//! compressed against the one before it.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _};
use sha2::{Digest as _, Sha256};
use touchmark_proto::Hash;
use zstd::zstd_safe::{self, CCtx, CParameter, DCtx, DParameter};

use super::super::schema::uint;

/// Contents between one and what it rests on last, at most: so many are
/// unpacked to read one.
pub(super) const LINKS: u64 = 32;

/// Bytes unpacked to read one, at most, whatever that leaves of the links.
const CHAIN_BYTES: u64 = 64 << 20;

const LEVEL: i32 = 3;

/// Two contents together, up to which the level's own window sees both.
const WINDOW: usize = 2 << 20;

/// The largest window that zstd has for everybody who reads, as a power of two.
const LARGEST_WINDOW: u32 = 27;

/// No content is larger, whatever a damaged row says.
const LARGEST: u64 = 1 << 30;

/// What a content is compressed against.
pub(super) struct Base {
    pub(super) hash: Hash,
    pub(super) links: u64,
    pub(super) bytes: Vec<u8>,
}

/// A row's part that holds the bytes.
pub(super) struct Packed {
    pub(super) body: Vec<u8>,
    /// It is compressed.
    pub(super) compressed: bool,
    pub(super) base: Option<Hash>,
    pub(super) links: u64,
}

impl Packed {
    /// Packs a content in the way that takes the least room. What rests on
    /// another has to be worth it.
    pub(super) fn new(bytes: &[u8], base: Option<&Base>) -> Self {
        let against = base.and_then(|base| Some((base, compress(bytes, Some(&base.bytes))?)));
        if let Some((base, body)) = against {
            let small = body.len() <= bytes.len() / 8;
            if small || compress(bytes, None).is_none_or(|own| body.len() < own.len() / 4 * 3) {
                return Self {
                    body,
                    compressed: true,
                    base: Some(base.hash),
                    links: base.links + 1,
                };
            }
        }
        let own = compress(bytes, None);
        Self {
            compressed: own.is_some(),
            body: own.unwrap_or_else(|| bytes.to_vec()),
            base: None,
            links: 0,
        }
    }
}

/// Whether a content of this size may rest on one with so many links.
pub(super) fn may_rest_on(links: u64, size: u64) -> bool {
    links < (CHAIN_BYTES / size.max(1)).clamp(1, LINKS)
}

/// `None` where it saves nothing.
fn compress(bytes: &[u8], base: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut context = CCtx::try_create()?;
    let set = |context: &mut CCtx<'_>, parameter| context.set_parameter(parameter).ok();
    set(&mut context, CParameter::CompressionLevel(LEVEL))?;
    if let Some(base) = base {
        let reach = base.len() + bytes.len();
        if reach > WINDOW {
            let window = reach.next_power_of_two().trailing_zeros();
            set(
                &mut context,
                CParameter::WindowLog(window.min(LARGEST_WINDOW)),
            )?;
            set(&mut context, CParameter::EnableLongDistanceMatching(true))?;
        }
        context.ref_prefix(base).ok()?;
    }
    let mut body = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
    context.compress2(&mut body, bytes).ok()?;
    body.shrink_to_fit();
    (body.len() < bytes.len()).then_some(body)
}

fn decompress(body: &[u8], base: Option<&[u8]>, size: u64) -> Option<Vec<u8>> {
    // Nothing else vouches for either: no room is made for a size that is
    // damaged.
    let says = zstd_safe::get_frame_content_size(body).ok()??;
    if says != size || size > LARGEST {
        return None;
    }
    let mut context = DCtx::try_create()?;
    context
        .set_parameter(DParameter::WindowLogMax(LARGEST_WINDOW))
        .ok()?;
    if let Some(base) = base {
        context.ref_prefix(base).ok()?;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
    context.decompress(&mut bytes, body).ok()?;
    Some(bytes)
}

/// A row, as far as it is needed to unpack it.
struct Link {
    size: u64,
    compressed: bool,
    base: Option<Hash>,
    body: Vec<u8>,
}

impl Link {
    /// `Some(None)` where the row is not what was stored.
    #[allow(clippy::option_option)]
    fn look(connection: &Connection, hash: &Hash) -> Result<Option<Option<Self>>, rusqlite::Error> {
        connection
            .prepare_cached("SELECT size, stored, base, body FROM content WHERE hash = ?1")?
            .query_row([&hash.0[..]], |row| {
                let base = match row.get_ref(2)? {
                    ValueRef::Null => Some(None),
                    value => value
                        .as_blob()
                        .ok()
                        .and_then(|base| base.try_into().ok())
                        .map(Some),
                };
                let (size, stored) = (row.get_ref(0)?.as_i64().ok(), row.get_ref(1)?);
                let body = row.get_ref(3)?.as_blob().ok();
                Ok((|| {
                    Some(Self {
                        size: uint(size?),
                        compressed: !matches!(stored, ValueRef::Null),
                        base: base?.map(Hash),
                        body: body?.to_vec(),
                    })
                })())
            })
            .optional()
    }

    fn unpack(self, base: Option<&[u8]>) -> Option<Vec<u8>> {
        if self.compressed {
            decompress(&self.body, base, self.size)
        } else {
            Some(self.body)
        }
    }
}

/// What a look into the table found.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Kept {
    /// The bytes, which are what the hash says.
    Whole(Vec<u8>),
    /// There is no such content.
    Not,
    /// It, or one that it rests on, is not what was stored.
    Damaged,
}

impl Kept {
    pub(super) fn bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Whole(bytes) => Some(bytes),
            Self::Not | Self::Damaged => None,
        }
    }
}

/// Reads a content, by way of those that it rests on. `near` is one that is at
/// hand.
pub(in super::super) fn read(
    connection: &Connection,
    hash: &Hash,
    near: Option<(&Hash, &[u8])>,
) -> Result<Kept, rusqlite::Error> {
    let mut links = Vec::new();
    let mut wanted = *hash;
    // The file's pages have no checksums: links may lead anywhere.
    while links.len() as u64 <= LINKS && near.is_none_or(|(near, _)| *near != wanted) {
        match Link::look(connection, &wanted)? {
            None if links.is_empty() => return Ok(Kept::Not),
            None | Some(None) => return Ok(Kept::Damaged),
            Some(Some(link)) => {
                let base = link.base;
                links.push(link);
                match base {
                    Some(base) => wanted = base,
                    None => break,
                }
            }
        }
    }
    let mut bytes = near
        .filter(|(near, _)| **near == wanted)
        .map(|(_, bytes)| bytes.to_vec());
    for link in links.into_iter().rev() {
        if link.base.is_some() && bytes.is_none() {
            break;
        }
        bytes = link.unpack(bytes.as_deref());
        if bytes.is_none() {
            break;
        }
    }
    Ok(match bytes {
        // The hash is the check of all of them.
        Some(bytes) if Sha256::digest(&bytes)[..] == hash.0[..] => Kept::Whole(bytes),
        _ => Kept::Damaged,
    })
}

/// Whether `hash` is among those that another rests on, or is it.
pub(super) fn rests_on(
    connection: &Connection,
    content: &Hash,
    hash: &Hash,
) -> Result<bool, rusqlite::Error> {
    let mut base = Some(*content);
    for _ in 0..=LINKS {
        match base {
            None => return Ok(false),
            Some(base) if base == *hash => return Ok(true),
            Some(next) => {
                base = connection
                    .prepare_cached("SELECT base FROM content WHERE hash = ?1")?
                    .query_row([&next.0[..]], |row| row.get::<_, Option<[u8; 32]>>(0))
                    .optional()?
                    .flatten()
                    .map(Hash);
            }
        }
    }
    Ok(true)
}
