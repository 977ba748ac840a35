//! From the marks of witnesses to what commands may have written (ATTR-3).

use touchmark_proto::RelPath;

use crate::base::Base;
use crate::input::{Prior, Sighting};
use crate::timers::Timer;
use crate::witnesses::{Reported, Seen, UNUSED};

impl Base {
    /// Takes what a witness has reported. No effect if it is not needed any more.
    pub(crate) fn witnessed(&mut self, seen: Seen, sightings: Vec<Sighting>) {
        for sighting in sightings {
            match sighting {
                Sighting::Began => self.witnesses.began(seen),
                Sighting::Gap { why, lasts } => self.witnesses.lose(seen, why, lasts),
                Sighting::Happened { name, event, at } => {
                    let next_read = self.tracker.next_ticket;
                    { &mut self.witnesses }.happened(seen, (&name, event), at, next_read);
                }
                Sighting::Missed => self.witnesses.missed(seen),
                Sighting::MayWrite(mark) => {
                    let file = self.state.names.file_of(&mark.name).clone();
                    if self.state.paths.contains_key(&file) {
                        let due = self.now + UNUSED;
                        self.timers.insert((due, Timer::Marked(file.clone())));
                    }
                    let is_recorded = self.is_as_recorded(&file, mark.prior);
                    let at = Reported {
                        now: self.now,
                        next_read: self.tracker.next_ticket,
                    };
                    self.witnesses.mark(seen, mark, file, at, is_recorded);
                }
            }
        }
    }

    /// Compares a file before a mark with its record, by size and time. Returns
    /// whether they agree: else another author has changed the file a moment ago.
    fn is_as_recorded(&self, file: &RelPath, prior: Prior) -> bool {
        let Some(recorded) = self.state.paths.get(file) else {
            return true;
        };
        let held = recorded.held;
        let touched = self.tracker.live(file).and_then(|live| live.seen.mtime_ms);
        match (prior, held.hash) {
            (Prior::Absent | Prior::New, None) => true,
            (Prior::File(file), Some(_)) => {
                let modified = u64::try_from(file.modified / 1_000_000).unwrap_or(0);
                file.size == held.size && modified == touched.unwrap_or(held.mtime_ms)
            }
            _ => false,
        }
    }

    /// Looks whether marks of a path that are old have had an effect.
    pub(crate) fn look_at_mark(&mut self, path: &RelPath) {
        let is_tracked = self.state.paths.contains_key(path);
        if is_tracked && self.witnesses.has_old(path, self.now) {
            let ticket = self.turn().order_read(path, false);
            self.witnesses.count_until(path, self.now, ticket);
        }
    }
}
