//! Sums over the table of contents.

use rusqlite::Connection;
use touchmark_proto::Millis;

use super::super::schema::{meta, uint};
use super::Extent;

/// In `meta`: the time since which no content of a version was removed.
pub(super) const SINCE: &str = "contents_since";

/// Sums over the table of contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) extent: Extent,
    /// The highest of the numbers that uses of contents are given in order.
    pub(super) used: u64,
}

impl Sums {
    pub(super) fn read(connection: &Connection) -> Result<Self, rusqlite::Error> {
        let (bytes, unpacked, pinned, used) = connection.query_row(
            "SELECT coalesce(sum(coalesce(stored, size)), 0), coalesce(sum(size), 0),
                coalesce(sum(coalesce(stored, size)) FILTER (WHERE pinned > 0), 0),
                coalesce(max(used), 0)
             FROM content",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )?;
        Ok(Self {
            extent: Extent {
                bytes: uint(bytes),
                unpacked: uint(unpacked),
                pinned: uint(pinned),
                since: meta::<i64>(connection, SINCE)?.map(uint),
            },
            used: uint(used),
        })
    }

    pub(super) fn add(&mut self, stored: u64, size: u64, pinned: bool) {
        self.extent.bytes += stored;
        self.extent.unpacked += size;
        self.extent.pinned += if pinned { stored } else { 0 };
    }

    pub(super) fn take(&mut self, stored: u64, size: u64, pinned: bool) {
        let extent = &mut self.extent;
        extent.bytes = extent.bytes.saturating_sub(stored);
        extent.unpacked = extent.unpacked.saturating_sub(size);
        extent.pinned = extent
            .pinned
            .saturating_sub(if pinned { stored } else { 0 });
    }

    pub(super) fn gone(&mut self, time: Millis) {
        self.extent.since = self.extent.since.max(Some(time));
    }
}
