//! The removal of contents. Contents that have the removed one as their base
//! are compressed again first.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension as _};
use touchmark_proto::Hash;

use super::super::schema::{int, uint};
use super::packed::{Base, Packed, may_rest_on, read};
use super::pins;
use super::sums::Sums;

/// Returns the base of a content, if a content of `size` bytes can be
/// compressed against it.
pub(super) fn base(
    connection: &Connection,
    hash: &Hash,
    size: u64,
) -> Result<Option<Base>, rusqlite::Error> {
    let links: Option<i64> = connection
        .prepare_cached("SELECT links FROM content WHERE hash = ?1")?
        .query_row([&hash.0[..]], |row| row.get(0))
        .optional()?;
    let Some(links) = links.map(uint).filter(|links| may_rest_on(*links, size)) else {
        return Ok(None);
    };
    let bytes = read(connection, hash, None)?.bytes();
    Ok(bytes.map(|bytes| Base {
        hash: *hash,
        links,
        bytes,
    }))
}

/// Returns the contents whose base is this content.
fn dependents(connection: &Connection, hash: &Hash) -> Result<Vec<Hash>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT hash FROM content WHERE base = ?1")?
        .query_map([&hash.0[..]], |row| row.get(0).map(Hash))?
        .collect()
}

pub(super) fn has_dependents(
    connection: &Connection,
    hash: &Hash,
) -> Result<bool, rusqlite::Error> {
    connection
        .prepare_cached("SELECT 1 FROM content WHERE base = ?1 LIMIT 1")?
        .exists([&hash.0[..]])
}

/// Compresses a stored content again, against another base or none.
pub(super) fn repack(
    connection: &Connection,
    hash: &Hash,
    bytes: &[u8],
    base: Option<&Base>,
    sums: &mut Sums,
) -> Result<(), rusqlite::Error> {
    let Some(row) = pins::row(connection, hash)? else {
        return Ok(());
    };
    let packed = Packed::new(bytes, base);
    let stored = packed.body.len() as u64;
    connection
        .prepare_cached(
            "UPDATE content SET body = ?2, stored = ?3, base = ?4, links = ?5 WHERE hash = ?1",
        )?
        .execute((
            &hash.0[..],
            &packed.body,
            packed.compressed.then_some(int(stored)),
            packed.base.as_ref().map(|base| &base.0[..]),
            int(packed.links),
        ))?;
    sums.take(row.stored, 0, row.pinned > 0);
    sums.add(stored, 0, row.pinned > 0);
    Ok(())
}

/// Removes the content that was used longest ago: of those that are not pinned,
/// or with `all` of all contents. Returns whether there was one.
pub(super) fn evict(
    connection: &Connection,
    all: bool,
    sums: &mut Sums,
) -> Result<bool, rusqlite::Error> {
    let oldest: Option<(i64, Option<[u8; 32]>)> = connection
        .prepare_cached(if all {
            "SELECT rowid, hash FROM content ORDER BY used LIMIT 1"
        } else {
            "SELECT rowid, hash FROM content WHERE pinned = 0 ORDER BY used LIMIT 1"
        })?
        .query_row([], |row| Ok((row.get(0)?, row.get(1).ok())))
        .optional()?;
    match oldest {
        None => return Ok(false),
        Some((_, Some(hash))) => remove(connection, Hash(hash), sums, false)?,
        // Damage: the row's hash is invalid, so no lookup can find it.
        Some((row, None)) => {
            connection.execute("DELETE FROM content WHERE rowid = ?1", [row])?;
        }
    }
    Ok(true)
}

/// Deletes a content, after the contents that have it as their base were
/// compressed again. Those that cannot be decompressed any more are deleted as
/// well. `secret`: the content should never have been stored.
pub(super) fn remove(
    connection: &Connection,
    hash: Hash,
    sums: &mut Sums,
    secret: bool,
) -> Result<(), rusqlite::Error> {
    let mut doomed = vec![hash];
    let mut seen = HashSet::new();
    while let Some(next) = doomed.pop() {
        let Some(row) = pins::row(connection, &next)?.filter(|_| seen.insert(next)) else {
            continue;
        };
        if !secret || next != hash {
            sums.gone(row.time);
        }
        doomed.extend(remove_one(connection, &next, &row, sums)?);
    }
    Ok(())
}

/// Deletes one content. Returns the contents that cannot be decompressed
/// without it.
fn remove_one(
    connection: &Connection,
    hash: &Hash,
    row: &pins::Row,
    sums: &mut Sums,
) -> Result<Vec<Hash>, rusqlite::Error> {
    let mut lost = Vec::new();
    let others = dependents(connection, hash)?;
    if !others.is_empty() {
        let bytes = read(connection, hash, None)?.bytes();
        let mut onto = match rests_next(connection, hash)? {
            Some((base, links)) => read(connection, &base, None)?.bytes().map(|bytes| Base {
                hash: base,
                links,
                bytes,
            }),
            None => None,
        };
        for other in others {
            let near = bytes.as_deref().map(|bytes| (hash, bytes));
            let unpacked = match near {
                Some(near) => read(connection, &other, Some(near))?.bytes(),
                None => None,
            };
            let Some(bytes) = unpacked else {
                lost.push(other);
                continue;
            };
            repack(connection, &other, &bytes, onto.as_ref(), sums)?;
            // The first is stored without a base, the others against it.
            onto.get_or_insert(Base {
                hash: other,
                links: 0,
                bytes,
            });
        }
    }
    let size: i64 = connection
        .prepare_cached("SELECT size FROM content WHERE hash = ?1")?
        .query_row([&hash.0[..]], |row| row.get(0))?;
    connection
        .prepare_cached("DELETE FROM content WHERE hash = ?1")?
        .execute([&hash.0[..]])?;
    sums.take(row.stored, uint(size), row.pinned > 0);
    Ok(lost)
}

/// Returns a content's base, and the number of bases in a row from there.
fn rests_next(
    connection: &Connection,
    hash: &Hash,
) -> Result<Option<(Hash, u64)>, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT base.hash, base.links FROM content
             JOIN content AS base ON base.hash = content.base
             WHERE content.hash = ?1",
        )?
        .query_row([&hash.0[..]], |row| {
            Ok((Hash(row.get(0)?), uint(row.get(1)?)))
        })
        .optional()
}
