//! Long answers, which another thread completes, so that no turn takes long
//! (LIM-7).
//!
//! The loop decides what an answer says. Another thread reads what the log and
//! the stored contents add to it, compares texts, and encodes the answer. The
//! result comes back as an event, and the loop sends it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use touchmark_engine::{Answer, Input, Learned, Recall, recall};
use touchmark_proto::{Clock, Error, ErrorCode, Reply, RequestId};

use super::Daemon;
use super::lane::Lane;
use super::replay;
use crate::context::storage;
use crate::event::{Event, Produced, Work};
use crate::fill::{Contents, Unfilled};
use crate::store::Reader;

/// The most contents that the loop itself reads for an answer.
pub(super) const FEW: usize = 8;

/// The most bytes of an answer that the loop itself encodes.
const SHORT: usize = 16 << 10;

/// The number of clients' answers in production from which no further long
/// request is taken, so that few of them are in memory.
const MOST: usize = 2;

type Job = Box<dyn FnOnce() + Send>;

/// The answers in production.
pub(super) struct Production {
    clients: Lane<Job>,
    /// For requests of tasks, so that a hook's task waits for no client's list.
    tasks: Lane<Job>,
    /// How many there are for clients.
    for_clients: usize,
    in_all: usize,
}

impl Default for Production {
    fn default() -> Self {
        Self {
            clients: Lane::of(1),
            tasks: Lane::of(1),
            for_clients: 0,
            in_all: 0,
        }
    }
}

impl Production {
    /// Returns whether a further long request may be taken.
    pub(super) fn has_room(&self) -> bool {
        self.for_clients < MOST
    }

    /// Returns whether answers are in production.
    pub(super) fn is_busy(&self) -> bool {
        self.in_all > 0
    }
}

impl Daemon {
    /// Completes an answer and sends it: a short one now, a long one once another
    /// thread has completed it.
    pub(super) fn complete(&mut self, request: RequestId, answer: Answer) {
        let unfilled = Unfilled::new(answer, self.engine.state());
        let is_call = self.clients.is_call(request);
        let encoding = self.clients.encoding(request);
        if !is_call && encoding.is_none() {
            // No process reads the answer.
            return self.clients.answered(request, Ok(unfilled.into_reply()));
        }
        let is_long = !is_call && is_long(unfilled.reply());
        if unfilled.work() <= FEW && !is_long {
            let reply = self.storage.contents().fill(unfilled);
            return self.clients.answered(request, Ok(reply));
        }
        let reads = unfilled.work() > 0;
        let work = move |log: Result<&Reader, Error>| {
            let reply = Contents::new(log.ok()).fill(unfilled);
            match encoding {
                Some(encoding) => Produced::Encoded(encoding.encode(Ok(reply))),
                None => Produced::Reply(Box::new(reply)),
            }
        };
        self.produce(request, reads, work, Produced::Failed);
    }

    /// Answers a request from the log, which has everything that was recorded
    /// until now.
    pub(super) fn recall(&mut self, request: RequestId, recall: Recall) {
        let state = self.engine.state();
        let (epoch, newest) = (state.epoch, state.n);
        let work = move |log: Result<&Reader, Error>| {
            let answer = log.and_then(|log| recalled(log, recall, epoch, newest));
            answer.map_or_else(Produced::Failed, |answer| {
                Produced::Recalled(Box::new(answer))
            })
        };
        self.produce(request, true, work, Produced::Failed);
    }

    /// Looks up in the log what the engine has asked for a request.
    pub(super) fn look_up(
        &mut self,
        request: RequestId,
        work: impl FnOnce(&Reader) -> Result<Learned, Error> + Send + 'static,
    ) {
        let work = |log: Result<&Reader, Error>| Produced::Learned(log.and_then(work));
        self.produce(request, true, work, |error| Produced::Learned(Err(error)));
    }

    /// Does `work` for a request on another thread, with the log if it `reads` it.
    /// `failed` is the outcome if the work breaks off.
    pub(super) fn produce(
        &mut self,
        request: RequestId,
        reads: bool,
        work: impl FnOnce(Result<&Reader, Error>) -> Produced + Send + 'static,
        failed: fn(Error) -> Produced,
    ) {
        let for_client = !self.clients.is_call(request);
        let (readers, events) = (self.storage.store.readers(), self.events.clone());
        let job = move || {
            let work = || match reads.then(|| readers.open()) {
                None => Ok(work(Err(storage("the log is not read")))),
                Some(Ok(log)) => Ok(work(Ok(&log))),
                Some(Err(_)) => Err(Work(Box::new(work))),
            };
            let produced = catch_unwind(AssertUnwindSafe(work));
            let produced = produced.unwrap_or_else(|_| {
                tracing::error!("an answer broke off");
                Ok(failed(Error::new(
                    ErrorCode::InternalError,
                    "the answer broke off",
                )))
            });
            let _loop_has_ended = events.send(Event::Produced {
                request,
                produced,
                for_client,
            });
        };
        self.clients.production.in_all += 1;
        self.clients.production.for_clients += usize::from(for_client);
        let lane = match for_client {
            true => &self.clients.production.clients,
            false => &self.clients.production.tasks,
        };
        lane.push(Box::new(job), |job: Job| job());
    }

    /// Takes what another thread has produced.
    pub(super) fn produced(
        &mut self,
        request: RequestId,
        produced: Result<Produced, Work>,
        for_client: bool,
    ) {
        self.clients.production.in_all -= 1;
        self.clients.production.for_clients -= usize::from(for_client);
        self.clients.waiting.unblock();
        // The loop has opened the log before that became impossible (LOSS-3).
        match produced.unwrap_or_else(|Work(work)| work(self.storage.log())) {
            Produced::Learned(learned) => self.feed(Input::Learned { request, learned }),
            Produced::Recalled(mut answer) => {
                self.engine.state().label_reply(&mut answer.reply);
                self.complete(request, *answer);
            }
            Produced::Failed(error) => {
                self.clients.beginnings.remove(&request);
                self.clients.answered(request, Err(error));
            }
            Produced::Missed(missed) => self.encode_missed(request, missed),
            Produced::Events(bytes) => self.caught_up(request, &bytes),
            Produced::Reply(reply) => self.clients.answered(request, Ok(*reply)),
            Produced::Encoded(encoded) => self.clients.answered_encoded(request, encoded),
        }
    }
}

/// Returns the answer to a request from the log, of facts up to `newest`.
fn recalled(log: &Reader, recall: Recall, epoch: u64, newest: u64) -> Result<Answer, Error> {
    Ok(match recall {
        Recall::History {
            path,
            before,
            earlier,
            named,
            limit,
            marks,
        } => {
            // One more, to find out whether there are more.
            let most = limit.saturating_add(1);
            let until = before.unwrap_or(u64::MAX).min(newest.saturating_add(1));
            let mut records = Vec::new();
            for (name, after, end) in recall::spans(&path, &earlier) {
                let of_name = log.history(name, Some(end.min(until)), most)?;
                records.extend(of_name.into_iter().filter(|record| record.n > after));
            }
            records.sort_by_key(|record| std::cmp::Reverse(record.n));
            records.truncate(most);
            let mut versions = recall::history(epoch, &records, limit, &marks);
            for version in &mut versions.versions {
                version.path = named.clone();
            }
            Reply::FileHistory(versions).into()
        }
        Recall::Since {
            after,
            cursor,
            limit,
            session,
            clock,
        } => {
            // A list from the beginning starts with the oldest fact of the log,
            // so pruned facts are no error.
            if after > 0 {
                replay::check_kept(log, Clock { epoch, n: after })?;
            }
            let mut records = log.versions_after(after)?;
            records.retain(|record| record.n <= clock.n);
            recall::since(&records, clock, cursor.as_ref(), limit, session.as_ref())
        }
    })
}

/// Returns whether an answer has more bytes than the loop encodes.
fn is_long(reply: &Reply) -> bool {
    serde_json::to_writer(Room(SHORT), reply).is_err()
}

/// Takes this number of bytes, and no more.
struct Room(usize);

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.0.checked_sub(bytes.len());
        self.0 = left.ok_or(io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
