//! From the marks of witnesses to what commands may have written (ATTR-3).

use touchmark_proto::RelPath;

use crate::base::Base;
use crate::input::Sighting;
use crate::timers::Timer;
use crate::witnesses::{Seen, UNUSED};

impl Base {
    /// Takes what a witness has reported. No effect if it is not needed any more.
    pub(crate) fn witnessed(&mut self, seen: Seen, sightings: Vec<Sighting>) {
        for sighting in sightings {
            match sighting {
                Sighting::Began => self.witnesses.began(seen),
                Sighting::Gap { why, lasts } => self.witnesses.lose(seen, why, lasts),
                Sighting::Happened(name, event) => self.witnesses.happened(seen, &name, event),
                Sighting::Missed => self.witnesses.missed(seen),
                Sighting::MayWrite(mark) => {
                    let file = self.state.names.file_of(&mark.name).clone();
                    let recorded = self.state.paths.get(&file);
                    let known = recorded.map(|state| state.held.hash.is_some());
                    if known.is_some() {
                        let due = self.now + UNUSED;
                        self.timers.insert((due, Timer::Marked(file.clone())));
                    }
                    self.witnesses.mark(seen, mark, file, self.now, known);
                }
            }
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
