//! The form in which the table has a content: uncompressed, compressed alone,
//! or compressed against the content before it (its base).

use std::cell::RefCell;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _};
use sha2::{Digest as _, Sha256};
use touchmark_proto::Hash;
use zstd::zstd_safe::{self, CCtx, CParameter, DCtx, DParameter, ResetDirective};

use super::super::schema::uint;

/// The most bases in a row, from a content to one without a base. Reading one
/// content decompresses all of them.
pub(super) const LINKS: u64 = 32;

/// The most bytes that reading one content may decompress. It limits the bases
/// further than [`LINKS`] does, except that one is always allowed.
const CHAIN_BYTES: u64 = 64 << 20;

const LEVEL: i32 = 3;

/// The size of a content and its base together, in bytes, up to which zstd's
/// default window for [`LEVEL`] covers both.
const WINDOW: usize = 2 << 20;

/// The largest window, as a power of two, that every zstd decoder supports.
const LARGEST_WINDOW: u32 = 27;

/// What a dictionary that zstd has trained begins with.
const DICTIONARY: &[u8] = b"\x37\xa4\x30\xec";

thread_local! {
    /// To create a context takes longer than to decompress most contents.
    static DECOMPRESSOR: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// The largest size of a content, in bytes. A row with a larger one is damaged.
const LARGEST: u64 = 1 << 30;

/// What a content is compressed against.
pub(super) struct Base {
    pub(super) hash: Hash,
    pub(super) links: u64,
    pub(super) bytes: Vec<u8>,
}

/// The columns of a row that contain the content.
pub(super) struct Packed {
    pub(super) body: Vec<u8>,
    /// `body` is compressed.
    pub(super) compressed: bool,
    pub(super) base: Option<Hash>,
    pub(super) links: u64,
}

impl Packed {
    /// Brings a content into its smallest form. A base is used only if it saves
    /// much.
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

/// Returns whether a content of `size` bytes may be compressed against one with
/// `links` bases in a row.
pub(super) fn may_rest_on(links: u64, size: u64) -> bool {
    links < (CHAIN_BYTES / size.max(1)).clamp(1, LINKS)
}

/// Compresses a content. Returns `None` if that saves nothing.
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
    // The sizes have no checksum. A damaged one must not cause a large
    // allocation.
    let says = zstd_safe::get_frame_content_size(body).ok()??;
    if says != size || size > LARGEST {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
    let base = base.unwrap_or_default();
    // As a dictionary, zstd would read what begins like one of its own.
    if base.starts_with(DICTIONARY) {
        let mut context = DCtx::try_create()?;
        allow_all_windows(&mut context)?;
        context.ref_prefix(base).ok()?;
        context.decompress(&mut bytes, body).ok()?;
        return Some(bytes);
    }
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let context = match kept {
            Some(context) => context,
            None => kept.insert(DCtx::try_create()?),
        };
        allow_all_windows(context)?;
        let done = context
            .load_dictionary(base)
            .and_then(|_| context.decompress(&mut bytes, body));
        // This frees the context's copy of the base.
        let reset = context.reset(ResetDirective::SessionAndParameters);
        done.and(reset).ok()?;
        Some(bytes)
    })
}

/// Allows every window that a content was compressed with.
fn allow_all_windows(context: &mut DCtx<'_>) -> Option<()> {
    let largest = DParameter::WindowLogMax(LARGEST_WINDOW);
    context.set_parameter(largest).ok().map(drop)
}

/// The columns of a row that are needed to decompress it.
struct Link {
    size: u64,
    compressed: bool,
    base: Option<Hash>,
    body: Vec<u8>,
}

impl Link {
    /// Reads a row. Returns `Some(None)` if the row differs from what was
    /// stored.
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

/// The result of looking up a content in the table.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Kept {
    /// The content, whose hash is the expected one.
    Whole(Vec<u8>),
    /// The table has no such content.
    Not,
    /// The content, or one of its bases, differs from what was stored.
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

/// Reads a content, and the bases that it needs. `near` is a content that is in
/// memory already.
pub(in super::super) fn read(
    connection: &Connection,
    hash: &Hash,
    near: Option<(&Hash, &[u8])>,
) -> Result<Kept, rusqlite::Error> {
    let mut links = Vec::new();
    let mut wanted = *hash;
    // Bases are followed to a limit: the file's pages have no checksums, so a
    // damaged one may name any content.
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
        // One comparison checks the content and all its bases.
        Some(bytes) if Sha256::digest(&bytes)[..] == hash.0[..] => Kept::Whole(bytes),
        _ => Kept::Damaged,
    })
}

/// Returns whether `hash` is `content` itself or one of its bases.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_content_may_rest_on_what_looks_like_a_dictionary_of_zstds() {
        let text: String = (0..500).map(|n| format!("line {n}\n")).collect();
        let like = [DICTIONARY, text.as_bytes()].concat();
        let bases = [None, Some(text.as_bytes()), Some(&like), Some(b""), None];
        for base in bases {
            let bytes = format!("{text}one more\n").into_bytes();
            let body = compress(&bytes, base).unwrap();
            let size = bytes.len() as u64;
            assert_eq!(decompress(&body, base, size), Some(bytes));
            // A failure leaves nothing behind.
            assert_eq!(decompress(&body[..body.len() / 2], base, size), None);
        }
    }
}
