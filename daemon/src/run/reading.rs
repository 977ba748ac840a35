//! Looking at files: reading what the engine orders, comparing stats.

use touchmark_engine::{Comparison, Found, Hint, Input, ReadOrder};
use touchmark_proto::RelPath;

use super::Daemon;
use crate::content::Report;
use crate::event::Event;

/// Larger files are read aside.
const INLINE_BYTES: u64 = 256 << 10;

/// Files read within one turn; more are read aside.
const INLINE_READS: usize = 256;

impl Daemon {
    /// Small files are read at once, which is faster than handing them over;
    /// large ones, and those that may block, aside.
    pub(super) fn read(&mut self, order: ReadOrder) {
        let inline = self.inline_reads < INLINE_READS
            && !self.watcher.blind(&order.path)
            && self.reader.size_hint(&order.path) <= INLINE_BYTES;
        if inline {
            self.inline_reads += 1;
            let report = self.reader.read(&order);
            let input = self.report(order.path, order.ticket, report);
            return self.decide(input);
        }
        let (reader, events) = (self.reader.clone(), self.events.clone());
        tokio::task::spawn_blocking(move || {
            let report = reader.read(&order);
            let ReadOrder { path, ticket, .. } = order;
            let _loop_has_ended = events.send(Event::Read {
                path,
                ticket,
                report,
            });
        });
    }

    /// Looks which files are as they were. Without a look aside: nobody is
    /// answered about files meanwhile.
    pub(super) fn compare(&mut self, comparison: Comparison) {
        let Comparison {
            number,
            track,
            files,
        } = comparison;
        if track {
            for (path, _) in &files {
                self.watcher.track_unlinked(path);
            }
        }
        let (unknowable, seen): (Vec<_>, Vec<_>) = files
            .into_iter()
            .partition(|(path, _)| self.watcher.must_be_read(path));
        let mut differ = self.reader.differing(seen);
        differ.extend(unknowable.into_iter().map(|(path, _)| path));
        if track {
            for path in &differ {
                self.watcher.follow(path);
            }
        }
        self.decide(Input::Compared { number, differ });
    }

    /// What a read tells watcher and store, and the engine's part of it.
    pub(super) fn report(&mut self, path: RelPath, ticket: u64, report: Report) -> Input {
        let Report {
            outcome,
            keep,
            real,
            links,
            ..
        } = report;
        let linked = links > 1 && self.watcher.watch_file(real.as_ref().unwrap_or(&path));
        let led = self.watcher.alias(&path, real.as_ref());
        if linked || led {
            // More is watched than before: what was written meanwhile may
            // have been missed.
            self.decide(Input::Hint {
                path: path.clone(),
                hint: Hint::Touched,
            });
        }
        if let (Some(bytes), Found::File(content)) = (keep, &outcome.found) {
            self.store.keep(content.hash, bytes);
        }
        Input::Read {
            path,
            ticket,
            outcome,
        }
    }
}
