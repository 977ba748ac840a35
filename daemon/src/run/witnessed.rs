//! Witnessed commands: their marks for the engine.

use touchmark_engine::Input;

use super::Daemon;

impl Daemon {
    /// Passes to the engine what witnessed commands have marked: before each
    /// input, so that the engine has a mark before the result of its write (ATTR-3).
    pub(super) fn look_at_rings(&mut self) {
        let rings = &mut self.disk.rings;
        if rings.is_empty() {
            return;
        }
        let open = &self.engine.state().commands;
        rings.retain(|window| open.contains_key(&window));
        let now = self.workspace.time.now();
        for (window, sightings) in rings.read() {
            let input = Input::Witnessed { window, sightings };
            self.engine.handle(now, input, &mut self.turn.decided);
        }
        self.turn.effects.extend(self.turn.decided.drain(..));
    }

    /// Makes the ring for the witness of a window's command.
    pub(super) fn witness(&mut self, window: u64) {
        let sightings = self.disk.rings.add(window);
        self.decide(Input::Witnessed { window, sightings });
    }
}
