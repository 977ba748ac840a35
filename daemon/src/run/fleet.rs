//! The loop's part in sharing inotify instances with the other daemons of the
//! user (FLEET-2): its own numbers, when to ask the others, and whether to end
//! for another daemon. There is no timer: numbers change only in turns.

use std::collections::HashSet;
use std::time::Instant;

use touchmark_proto::daemon::StartedBy;
use touchmark_proto::fleet::{FleetYield, FleetYielded};
use touchmark_proto::{ConnectionId, Millis, Places, Reply, Request, RequestId};

use super::Daemon;
use super::end::Ending;
use super::say::Say;
use crate::event::Event;
use crate::fleet::{self, Numbers, NumbersFile, Own};

/// The maximum number of looks at degraded places between two requests for an
/// inotify instance: ten minutes.
const MOST_LOOKS: u32 = 60;

/// What the loop has on record about its share.
#[derive(Debug)]
pub(super) struct Fleet {
    /// `None` if the file could not be created: the others know nothing of this
    /// daemon then.
    file: Option<NumbersFile>,
    /// The numbers in the file.
    written: Numbers,
    /// Whether the start is over.
    has_started: bool,
    /// Whether to ask other daemons for an inotify instance.
    lacks_instance: bool,
    /// The number of looks at degraded places until the others are asked for an
    /// instance again, and the number after that. If all of them serve clients,
    /// asking often would only cost time.
    looks: (u32, u32),
    /// Whether the others are being asked.
    is_asking: bool,
    /// When the daemon was last used, on the clock of the system's uptime.
    used: Millis,
    /// The connections that have sent no request that counts as a use.
    lookers: HashSet<ConnectionId>,
}

impl Fleet {
    /// Creates the file of the daemon's numbers. The workspace's lock must be
    /// held.
    pub(super) fn new(places: &Places) -> Self {
        let file = NumbersFile::create(places)
            .inspect_err(|error| tracing::debug!("no file of numbers: {error}"))
            .ok();
        Self {
            file,
            written: Numbers::default(),
            has_started: false,
            lacks_instance: false,
            looks: (1, 1),
            is_asking: false,
            used: fleet::uptime(),
            lookers: HashSet::new(),
        }
    }

    /// Takes note of a look at degraded places, and whether an inotify instance
    /// is missing.
    pub(super) fn looked(&mut self, lacks_instance: bool) {
        let (left, next) = self.looks;
        if !lacks_instance {
            self.looks = (1, 1);
        } else if left > 1 {
            self.looks = (left - 1, next);
        } else {
            self.lacks_instance = true;
            self.looks = (next, (next * 2).min(MOST_LOOKS));
        }
    }

    /// Takes note of a new connection.
    pub(super) fn connected(&mut self, connection: ConnectionId) {
        self.lookers.insert(connection);
    }

    /// Takes note of the end of a connection. Returns whether it has used the
    /// daemon.
    pub(super) fn disconnected(&mut self, connection: ConnectionId) -> bool {
        !self.lookers.remove(&connection)
    }
}

/// Returns whether a request is a use of the daemon, and not only a look at it.
/// A program that looks at all daemons must not change which of them is unused
/// for longest, nor keep them from ending.
fn is_use(ask: &Request) -> bool {
    !matches!(
        ask,
        Request::Initialize(_) | Request::Status(_) | Request::FleetYield(_)
    )
}

impl Daemon {
    /// Takes note of a request.
    pub(super) fn asked_by(&mut self, connection: ConnectionId, ask: &Request) {
        if is_use(ask) {
            self.fleet.lookers.remove(&connection);
            self.used();
        }
    }

    /// Sets the time of the last use.
    pub(super) fn used(&mut self) {
        self.clients.last_use = Instant::now();
        self.fleet.used = fleet::uptime();
    }

    /// Returns the time since the last use, in milliseconds.
    pub(super) fn idle(&self) -> Millis {
        fleet::uptime().saturating_sub(self.fleet.used)
    }

    /// Returns what started the daemon.
    pub(super) fn started_by(&self) -> StartedBy {
        match (self.options.on_demand, self.clients.listener.is_passed()) {
            (true, _) => StartedBy::Client,
            (false, true) => StartedBy::Socket,
            (false, false) => StartedBy::User,
        }
    }

    /// Writes the daemon's numbers if they have changed, and asks other daemons
    /// to end if an inotify instance is missing. Called at the end of each turn,
    /// after the answers are sent.
    pub(super) fn look_at_fleet(&mut self) {
        self.write_numbers();
        // A start is over when the first client has its answer.
        let is_answered = self.clients.requests > 0 && self.clients.asked.is_empty();
        if !self.fleet.has_started && (is_answered || !self.options.on_demand) {
            self.fleet.has_started = true;
            self.fleet.lacks_instance |= self.disk.watcher.lacks_backend();
        }
        if !self.fleet.lacks_instance || self.fleet.is_asking || self.ending.is_some() {
            return;
        }
        let Some(directory) = self.options.places.lock.parent() else {
            return;
        };
        self.fleet.lacks_instance = false;
        self.fleet.is_asking = true;
        let own = Own {
            key: self.options.places.key.clone(),
            directory: directory.to_owned(),
        };
        let events = self.events.clone();
        tokio::spawn(async move {
            let ended = fleet::share(own).await;
            let _loop_has_ended = events.send(Event::Shared { ended });
        });
    }

    fn write_numbers(&mut self) {
        let written = &self.fleet.written;
        let serves = !self.clients.peers.is_empty();
        let has_instance = self.disk.watcher.has_instance();
        if serves == written.serves && has_instance == written.has_instance && written.pid != 0 {
            return;
        }
        self.fleet.written = Numbers {
            pid: std::process::id(),
            used: self.fleet.used,
            has_instance,
            serves,
        };
        if let Some(file) = &self.fleet.file {
            file.write(&self.fleet.written);
        }
    }

    /// Takes note of how many daemons have ended.
    pub(super) fn shared(&mut self, ended: usize) {
        self.fleet.is_asking = false;
        if ended > 0 && self.disk.watcher.lacks_backend() {
            self.mend_coverage();
        }
    }

    /// Ends the daemon for another one, if nothing needs it.
    pub(super) fn fleet_yield(
        &mut self,
        request: RequestId,
        connection: ConnectionId,
        ask: &FleetYield,
    ) {
        let because = self.needed_for(request, connection, ask).map(str::to_owned);
        let ends = because.is_none();
        self.outbox.push(Say::Answer {
            request,
            answer: Ok(Box::new(
                Reply::FleetYield(FleetYielded { ends, because }).into(),
            )),
        });
        if ends {
            self.ending = Some(Ending::Done("other workspaces are used more"));
        }
    }

    /// Returns why the daemon must not end for another one; `None` if it may
    /// (FLEET-3).
    fn needed_for(
        &mut self,
        request: RequestId,
        connection: ConnectionId,
        ask: &FleetYield,
    ) -> Option<&'static str> {
        // A client that has connected and was not accepted yet counts too.
        for stream in self.clients.listener.waiting() {
            self.accepted(Ok(stream));
        }
        let counts = self.engine.counts();
        let reasons = [
            (
                self.started_by() == StartedBy::User,
                "the user has started it",
            ),
            (counts.open_edits > 0, "an edit is open"),
            (counts.open_commands > 0, "a command runs"),
            (
                self.clients.peers.keys().any(|peer| *peer != connection),
                "a client is connected",
            ),
            (
                self.clients.asked.keys().any(|asked| *asked != request),
                "a request is not answered yet",
            ),
            (self.engine.is_writing(), "a file is being written"),
            (self.idle() < ask.idle_ms, "it was used since"),
        ];
        let reason = reasons.into_iter().find(|(applies, _)| *applies);
        reason.map(|(_, because)| because)
    }
}
