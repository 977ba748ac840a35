//! Missed events of a subscriber, from the log.

use touchmark_engine::{Fact, State, recall};
use touchmark_proto::daemon::Subscribed;
use touchmark_proto::events::{Event as Notification, Happening};
use touchmark_proto::{Clock, Error, ErrorCode, ErrorData, Reply, RequestId};

use super::Daemon;
use super::say::{Say, count_lines};
use super::subscriptions::Subscription;
use crate::event::{Missed, Produced};
use crate::fill::Contents;
use crate::store::Reader;

/// The most facts that are replayed. A client that missed more is better served
/// by a list.
const MOST: usize = 20_000;

/// The most facts that the loop itself replays.
const SHORT: u64 = 64;

/// The beginning of a subscription: the events missed up to fact `until` are sent
/// first, then all later ones. None is sent twice or left out.
#[derive(Debug)]
pub(super) struct Beginning {
    pub(super) request: RequestId,
    pub(super) number: u64,
    pub(super) subscription: Subscription,
    /// From where on events are missing; `None` if none is.
    pub(super) since: Option<Clock>,
    pub(super) until: u64,
    /// The events before `since` that were missed, encoded.
    pub(super) bytes: Vec<u8>,
}

impl Daemon {
    /// Begins a subscription. If many events are missing, other threads read and
    /// encode them; those that come meanwhile are read in the next round.
    pub(super) fn subscribe(&mut self, beginning: Beginning) {
        let Beginning { request, until, .. } = beginning;
        match beginning.since {
            Some(since) if until.saturating_sub(since.n) > SHORT => {
                self.clients.beginnings.insert(request, beginning);
                let work = move |log: Result<&Reader, Error>| {
                    let missed = log.and_then(|log| missed(log, since, until));
                    missed.map_or_else(Produced::Failed, Produced::Missed)
                };
                self.produce(request, true, work, Produced::Failed);
            }
            _ => self.subscribe_now(beginning),
        }
    }

    /// Has those of the missed events encoded that the subscriber wants.
    pub(super) fn encode_missed(&mut self, request: RequestId, mut missed: Vec<Missed>) {
        let state = self.engine.state();
        let beginning = self.clients.beginnings.get(&request);
        let (Some(beginning), Some(encoding)) = (beginning, self.clients.encoding(request)) else {
            self.clients.beginnings.remove(&request);
            return;
        };
        keep_wanted(&mut missed, &beginning.subscription, state);
        let number = beginning.number;
        let work = move |log: Result<&Reader, Error>| {
            let mut contents = Contents::new(log.ok());
            let events = missed.into_iter();
            let events = events.map(|missed| told(missed, number, &mut contents));
            Produced::Events(encoding.events(events))
        };
        self.produce(request, true, work, Produced::Failed);
    }

    /// Goes on with what was recorded since the missed events were read.
    pub(super) fn caught_up(&mut self, request: RequestId, bytes: &[u8]) {
        let Some(mut beginning) = self.clients.beginnings.remove(&request) else {
            return;
        };
        beginning.bytes.extend_from_slice(bytes);
        beginning.since = Some(self.engine.state().clock(beginning.until));
        beginning.until = self.turn.newest_fact;
        self.outbox.push(Say::Subscribed(Box::new(beginning)));
    }

    fn subscribe_now(&mut self, beginning: Beginning) {
        let Beginning {
            request,
            number,
            subscription,
            ..
        } = beginning;
        let Some(asked) = self.clients.asked.remove(&request) else {
            return;
        };
        let log = self.storage.log();
        let missed = match beginning.since {
            Some(since) => log.and_then(|log| missed(log, since, beginning.until)),
            None => Ok(Vec::new()),
        };
        let mut missed = match missed {
            Ok(missed) => missed,
            Err(error) => return self.clients.answer(asked, request, Err(error)),
        };
        let Some(peer) = self.clients.peers.get(&asked.connection) else {
            return;
        };
        let subscribed = Subscribed {
            subscription: number,
        };
        peer.answer(request, Ok(Reply::Subscribe(subscribed)));
        peer.encoded_events(&beginning.bytes);
        keep_wanted(&mut missed, &subscription, self.engine.state());
        let mut contents = self.storage.contents();
        for missed in missed {
            peer.event(told(missed, number, &mut contents));
        }
        self.clients.subscriptions.insert(number, subscription);
        peer.subscriptions(self.clients.subscriptions.count(asked.connection));
    }
}

/// Leaves out what the subscriber does not want, and labels the sessions of the rest.
fn keep_wanted(missed: &mut Vec<Missed>, subscription: &Subscription, state: &State) {
    missed.retain_mut(|missed| {
        state.label_happening(&mut missed.happening);
        subscription.wants(&missed.happening, state)
    });
}

/// Returns the notification about a missed event.
fn told(missed: Missed, subscription: u64, contents: &mut Contents<'_>) -> Notification {
    let Missed {
        clock,
        mut happening,
        before,
    } = missed;
    let new = match &happening {
        Happening::Version { version, .. } => version.hash,
        _ => None,
    };
    count_lines(&mut happening, before, new, contents);
    Notification {
        subscription,
        clock,
        happening,
    }
}

fn unknown_clock(clock: Clock, reason: &str) -> Error {
    Error::new(ErrorCode::UnknownClock, format!("{clock}: {reason}")).with(ErrorData {
        clock: Some(clock),
        ..ErrorData::default()
    })
}

/// Checks that a clock is one of the current epoch.
///
/// # Errors
/// `unknownClock` for another epoch, and for a clock later than the newest
/// fact.
pub(super) fn check(since: Clock, state: &State) -> Result<(), Error> {
    if since.epoch != state.epoch {
        return Err(unknown_clock(since, "a clock of another epoch"));
    }
    if since.n > state.n {
        return Err(unknown_clock(since, "this clock is in the future"));
    }
    Ok(())
}

/// Checks that all facts since a clock are still in the log.
///
/// # Errors
/// `unknownClock` for a clock before the oldest fact of the log (DUR-2),
/// `storage`.
pub(super) fn check_kept(log: &Reader, since: Clock) -> Result<(), Error> {
    match log.oldest()? {
        Some(pruned) if since.n < pruned => {
            Err(unknown_clock(since, "older than the facts that are stored"))
        }
        _ => Ok(()),
    }
}

/// Returns the events of all facts after `since` up to `until`, in order.
///
/// # Errors
/// `unknownClock` for a clock before the oldest fact of the log, and if too
/// much was missed; `storage`.
fn missed(log: &Reader, since: Clock, until: u64) -> Result<Vec<Missed>, Error> {
    check_kept(log, since)?;
    let records = log.facts_after(since.n, MOST + 1)?;
    if records.len() > MOST {
        return Err(unknown_clock(since, "too many facts since"));
    }
    let missed = records
        .iter()
        .take_while(|record| record.n <= until)
        .filter_map(|record| {
            Some(Missed {
                clock: Clock {
                    epoch: since.epoch,
                    n: record.n,
                },
                happening: recall::happening(since.epoch, record)?,
                before: match &record.fact {
                    Fact::Version(version) => version.before,
                    _ => None,
                },
            })
        });
    Ok(missed.collect())
}
