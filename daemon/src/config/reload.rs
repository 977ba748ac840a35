//! Applies changed configuration files to a running daemon.

use super::{Config, keys};

/// The keys whose values have changed, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The keys whose new value is now in effect.
    pub taken: Vec<&'static str>,
    /// The keys whose new value takes effect at the next start.
    pub at_restart: Vec<&'static str>,
}

impl Config {
    /// Takes those values from `new` that can change while the daemon runs. The
    /// others stay as they were when they were used: how names compare, how the
    /// store syncs and what it contains, the size of a message on open
    /// connections.
    pub fn reload(&mut self, new: &Self) -> Changes {
        let mut changes = Changes::default();
        for key in keys::all() {
            match key.changed(self, new) {
                None => {}
                Some(_) if key.at_restart => changes.at_restart.push(key.name),
                Some(changed) => {
                    *self = changed;
                    changes.taken.push(key.name);
                }
            }
        }
        changes
    }
}
