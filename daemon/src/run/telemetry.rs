//! The loop's part of telemetry: it starts and stops the export, and answers
//! its questions.

use tokio::sync::mpsc::UnboundedReceiver;
use touchmark_proto::daemon::TelemetryStatus;

use super::Daemon;
use crate::event::{Event, Look};
use crate::system::open::trust;
use crate::telemetry::{Before, Begin, Exporter, Settings, Subject};

/// The state of telemetry.
#[derive(Default)]
pub(super) struct Telemetry {
    /// The export; `None` while nothing is sent.
    pub(super) exporter: Option<Exporter>,
    /// Which setting is wrong, so that nothing is sent.
    wrong: Option<String>,
    /// The position that is stored is no longer valid.
    ended: bool,
}

impl Daemon {
    /// Starts the export if the user has switched it on. `exporting`: the last
    /// run has noted a position in the log.
    pub(super) fn begin_telemetry(&mut self, exporting: bool) {
        self.start_telemetry(None);
        // What happens while telemetry is off is never sent. A wrong file does
        // not say that it is off.
        if exporting && !self.options.user_is_wrong {
            self.forget_position();
        }
    }

    /// Stops the export and starts it again, with changed settings.
    pub(super) fn switch_telemetry(&mut self) {
        let before = self.telemetry.exporter.take().and_then(Exporter::stop);
        self.start_telemetry(before);
        self.forget_position();
    }

    /// Forgets the position in the log, if telemetry is off.
    fn forget_position(&mut self) {
        if let (false, Some(exports)) =
            (self.options.config.telemetry, self.storage.store.exports())
        {
            exports.end();
            self.telemetry.ended = true;
        }
    }

    fn start_telemetry(&mut self, before: Option<Before>) {
        let settings = match Settings::of(&self.options.config) {
            Ok(settings) => settings,
            Err(wrong) => {
                tracing::error!("telemetry is not in effect: {wrong}");
                self.telemetry.wrong = Some(wrong);
                return;
            }
        };
        self.telemetry.wrong = None;
        let (Some(settings), Some(exports)) = (settings, self.storage.store.exports()) else {
            return;
        };
        tracing::info!("records are sent to {}", settings.endpoint().as_str());
        let exporter = Exporter::start(Begin {
            settings,
            subject: Subject {
                workspace: self.options.workspace.clone(),
                places: self.options.places.clone(),
                trust: trust(&self.options.places.trusted),
                paths: self.options.config.telemetry_paths,
            },
            exports,
            events: self.events.clone(),
            epoch: self.engine.state().epoch,
            // Those of this turn are not handled yet.
            newest: self.turn.newest_fact - self.turn.facts.len() as u64,
            anew: self.telemetry.ended,
            before,
        });
        self.telemetry.exporter = Some(exporter);
        self.telemetry.ended = false;
    }

    /// Sends one last batch. Its records may need the state of their sessions.
    pub(super) async fn end_telemetry(&mut self, events: &mut UnboundedReceiver<Event>) {
        let Some(mut exporter) = self.telemetry.exporter.take() else {
            return;
        };
        let finish = exporter.finish();
        tokio::pin!(finish);
        loop {
            tokio::select! {
                () = &mut finish => break,
                Some(event) = events.recv() => match event {
                    Event::Look(Look(look)) => look(self.engine.state()),
                    Event::Store(event) => self.stored(event),
                    _ => {}
                },
            }
        }
    }

    /// Returns the state of telemetry for `status`; `None` while it is off.
    pub(super) fn telemetry_status(&self) -> Option<TelemetryStatus> {
        if let Some(exporter) = &self.telemetry.exporter {
            let dropped = self
                .storage
                .store
                .exports()
                .map_or(0, |exports| exports.dropped());
            return Some(exporter.status(self.engine.state().epoch, dropped));
        }
        self.options.config.telemetry.then(|| TelemetryStatus {
            endpoint: None,
            acknowledged: None,
            unsent: 0,
            pruned: 0,
            rejected: 0,
            last_error: Some(match &self.telemetry.wrong {
                Some(wrong) => wrong.clone(),
                None => "nothing can be stored, so nothing is sent".into(),
            }),
        })
    }
}
