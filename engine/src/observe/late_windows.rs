//! Command windows that ended before a look at the workspace had reached all
//! directories (SCOPE-5). What the look finds later may be their commands'.

use touchmark_proto::{Millis, RequestId};

use crate::ledger::state::Command;

/// The maximum number of these windows. The oldest is forgotten.
const MOST: usize = 256;

/// Ended windows whose commands' changes are not all recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateWindows {
    windows: Vec<LateWindow>,
    /// Whether the last look at the workspace is not complete.
    is_behind: bool,
}

/// An ended window.
#[derive(Clone, Debug)]
pub(crate) struct LateWindow {
    /// The window as it was when it ended.
    pub window: Command,
    /// When the window's command began; `None` if that is not known.
    pub began: Option<Millis>,
    /// When the window ended.
    pub ended: Millis,
    /// The request that ended the window, while the look that it ordered has not
    /// returned; else `None`.
    pub awaits: Option<RequestId>,
}

impl LateWindows {
    pub(crate) fn add(&mut self, window: LateWindow) {
        if self.windows.len() >= MOST {
            self.windows.remove(0);
        }
        self.windows.push(window);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &LateWindow> {
        self.windows.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Returns whether a look at the workspace that was ordered is not complete.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind || self.windows.iter().any(|late| late.awaits.is_some())
    }

    /// Handles the end of a look, or of a part of one, after its changes were
    /// recorded. `request` ordered it, if any did.
    pub(crate) fn looked(&mut self, request: Option<RequestId>, is_complete: bool) {
        self.is_behind = !is_complete;
        for late in &mut self.windows {
            late.awaits = late.awaits.filter(|awaited| Some(*awaited) != request);
        }
        // Looks are made in the order of their requests.
        self.windows
            .retain(|late| !is_complete || late.awaits.is_some());
    }
}
