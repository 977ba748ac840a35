//! The loop's part in sharing watches and memory with the other daemons of the
//! user (FLEET-2): its own numbers, when to check, and whether to end for
//! another daemon. There is no timer: numbers change only in turns.

use std::collections::HashSet;
use std::time::Instant;

use touchmark_proto::daemon::StartedBy;
use touchmark_proto::fleet::{FleetYield, FleetYielded};
use touchmark_proto::{ConnectionId, Millis, Places, Reply, Request, RequestId};

use super::Daemon;
use super::end::Ending;
use super::say::Say;
use crate::event::Event;
use crate::fleet::{self, Limits, Numbers, NumbersFile, Own};
use crate::system::proc;

/// The number of watches, and the memory in bytes, by which a daemon grows
/// until it checks again. It is less where the limit is low.
const STEPS: (u64, u64) = (256, 8 << 20);

/// The part of a limit that is the most for a step, as its inverse.
const STEPS_PER_LIMIT: u64 = 32;

/// The maximum number of looks at degraded places between two requests for an
/// inotify instance: ten minutes.
const MOST_LOOKS: u32 = 60;

/// What the loop knows about its share.
#[derive(Debug)]
pub(super) struct Fleet {
    /// `None` if the file could not be created: the others know nothing of this
    /// daemon then.
    file: Option<NumbersFile>,
    /// The numbers in the file.
    written: Numbers,
    /// The watches and the memory at the last check; `None` before the first.
    checked: Option<(u64, u64)>,
    /// By how many watches and bytes the daemon grows until it checks again.
    steps: (u64, u64),
    /// Whether to ask other daemons for an inotify instance.
    lacks_instance: bool,
    /// The number of looks at degraded places until the others are asked for an
    /// instance again, and the number after that. If all of them serve clients,
    /// asking often would only cost time.
    looks: (u32, u32),
    /// Whether a check is in progress.
    is_checking: bool,
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
            checked: None,
            steps: STEPS,
            lacks_instance: false,
            looks: (1, 1),
            is_checking: false,
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

    /// Writes the daemon's numbers if they have changed, and begins a check if
    /// there is a reason for one. Called at the end of each turn, after the
    /// answers are sent.
    pub(super) fn look_at_fleet(&mut self) {
        self.write_numbers();
        let Numbers {
            watches, memory, ..
        } = self.fleet.written;
        if let Some((before, bytes)) = &mut self.fleet.checked {
            // What was given back counts as growth when it is taken again.
            (*before, *bytes) = ((*before).min(watches), (*bytes).min(memory));
        }
        let grown = match self.fleet.checked {
            // A start is over when the first client has its answer.
            None => {
                (self.clients.requests > 0 && self.clients.asked.is_empty())
                    || !self.options.on_demand
            }
            Some((before, bytes)) => {
                let (step, bytes_step) = self.fleet.steps;
                watches >= before + step || memory >= bytes + bytes_step
            }
        };
        let lacks_instance = self.fleet.checked.is_none() && self.disk.watcher.lacks_backend();
        let lacks_instance = lacks_instance || self.fleet.lacks_instance;
        let ends = self.ending.is_some();
        if self.fleet.is_checking || ends || !(grown || self.fleet.lacks_instance) {
            return;
        }
        let Some(directory) = self.options.places.lock.parent() else {
            return;
        };
        self.fleet.checked = Some((watches, memory));
        self.fleet.lacks_instance = false;
        self.fleet.is_checking = true;
        let own = Own {
            key: self.options.places.key.clone(),
            directory: directory.to_owned(),
            lacks_instance,
        };
        let limits = Limits {
            watches: self.options.config.fleet_watches,
            memory: self.options.config.fleet_memory,
        };
        let most = limits.most();
        let step = |most: Option<u64>, usual: u64| match most {
            Some(most) => (most / STEPS_PER_LIMIT).clamp(1, usual),
            None => usual,
        };
        self.fleet.steps = (step(most.watches, STEPS.0), step(most.memory, STEPS.1));
        let events = self.events.clone();
        tokio::spawn(async move {
            let ended = fleet::share(own, most).await;
            let _loop_has_ended = events.send(Event::Shared { ended });
        });
    }

    fn write_numbers(&mut self) {
        let written = &self.fleet.written;
        let serves = !self.clients.peers.is_empty();
        let watches = self.disk.watcher.watched() as u64;
        let instances = u64::from(self.disk.watcher.has_instance());
        let changed = serves != written.serves
            || instances != written.instances
            || watches.abs_diff(written.watches) >= self.fleet.steps.0
            || written.pid == 0;
        if !changed {
            return;
        }
        // Before the daemon serves a client, its memory has hardly changed.
        let memory = match serves && written.pid != 0 {
            true => written.memory,
            false => proc::memory().private,
        };
        self.fleet.written = Numbers {
            pid: std::process::id(),
            used: self.fleet.used,
            watches,
            memory,
            instances,
            serves,
        };
        if let Some(file) = &self.fleet.file {
            file.write(&self.fleet.written);
        }
    }

    /// Takes the result of a check.
    pub(super) fn shared(&mut self, ended: usize) {
        self.fleet.is_checking = false;
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
