//! Witnessed commands: their marks for the engine.

use touchmark_engine::Input;
use touchmark_engine::witnesses::Seen;

use super::Daemon;

impl Daemon {
    /// Passes to the engine what witnessed commands have marked: before each
    /// input, so that the engine has a mark before the result of its write (ATTR-3).
    pub(super) fn look_at_rings(&mut self) {
        let rings = &mut self.disk.rings;
        if rings.is_empty() {
            return;
        }
        rings.retain(|seen| self.engine.needs_witness(seen));
        rings.note_needed(|seen| self.engine.needs_stored(seen));
        let now = self.workspace.time.now();
        for (seen, sightings) in rings.read() {
            let input = Input::Witnessed { seen, sightings };
            self.engine.handle(now, input, &mut self.turn.decided);
        }
        self.turn.effects.extend(self.turn.decided.drain(..));
    }

    /// Makes the ring of a witness.
    pub(super) fn witness(&mut self, seen: Seen) {
        let sightings = self.disk.rings.add(seen);
        self.decide(Input::Witnessed { seen, sightings });
    }
}
