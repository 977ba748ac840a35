//! When it is judged how many of agents' lines are left (SURV-3): after turns
//! with new versions, at the end of a command, at the start, and at a request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use touchmark_engine::{Fact, Record};
use touchmark_proto::RequestId;

use super::Daemon;
use crate::survival::View;

/// The minimum time between two looks in the background. A turn in between
/// causes none; the next one does.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns whether these facts are a reason to look: there may be something new
/// to judge, or a command may have made a commit.
pub(super) fn is_reason(facts: &[Record]) -> bool {
    facts
        .iter()
        .any(|record| matches!(record.fact, Fact::Version(_) | Fact::CommandEnded { .. }))
}

impl Daemon {
    /// Looks in the background at what can be judged by now. No answer waits
    /// for it.
    pub(super) fn judge_survival(&mut self) {
        let is_soon = self.last_judged.is_some_and(|last| last.elapsed() < PAUSE);
        if is_soon || self.storage.trouble.is_some() || self.ending.is_some() {
            return;
        }
        self.last_judged = Some(Instant::now());
        let view = View {
            judge: Arc::clone(&self.parts.judge),
            cx: self.context(RequestId(0)),
        };
        tokio::spawn(async move { view.background().await });
    }
}
