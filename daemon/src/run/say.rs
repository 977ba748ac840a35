//! The outbox's messages, and how they are sent: answers and events.

use touchmark_engine::{Answer, Fact, Input, Learned, Notice, Question, Recall, WriteOrder};
use touchmark_proto::edits::EditAbort;
use touchmark_proto::events::{Event as Notification, Happening};
use touchmark_proto::{ConnectionId, Error, RelPath, Reply, Request, RequestId};

use super::Daemon;
use super::edited::edited;
use super::end::Ending;
use super::produce::FEW;
use super::replay::Beginning;
use crate::context::storage;
use crate::desktop::Loss;
use crate::event::Event;
use crate::failpoint;
use crate::fill::Contents;
use crate::store::StoreEvent;
use crate::system::proc;

/// A message that waits until its facts are stored.
#[derive(Debug)]
pub(super) enum Say {
    /// An answer.
    Answer {
        request: RequestId,
        answer: Result<Box<Answer>, Error>,
    },
    /// An answer to be looked up in the log, which then contains everything
    /// that was recorded before it.
    Recall { request: RequestId, recall: Recall },
    /// A question to be looked up in the log for a request. The log then
    /// contains everything that was recorded before it.
    Learned {
        request: RequestId,
        question: Question,
    },
    /// A guarded write. It begins when the edit that declares it is stored.
    Write(RequestId, Box<WriteOrder>),
    /// An event for subscribers.
    Notice(Box<Notice>),
    /// A version that was overwritten unseen, for the desktop.
    Lost { path: RelPath, version: u64 },
    /// The beginning of a subscription.
    Subscribed(Box<Beginning>),
    /// The answer to a shutdown request, after which the daemon ends.
    End { request: RequestId },
}

impl Daemon {
    /// Handles an event of the store.
    pub(super) fn stored(&mut self, event: StoreEvent) {
        match event {
            StoreEvent::Committed { turn } => {
                self.outbox.settle(turn);
                if let Some(exporter) = &mut self.telemetry.exporter {
                    exporter.committed(turn);
                }
            }
            StoreEvent::Failed { turn, cause } => {
                if self.storage.trouble.is_none() {
                    tracing::error!("the state cannot be stored: {cause}");
                    self.publish_degraded(format!("the state cannot be stored: {cause}"));
                }
                self.storage.trouble = Some(cause.clone());
                self.storage.failed_turns.insert(turn, cause);
                self.outbox.settle(turn);
            }
            StoreEvent::Recovered => {
                tracing::info!("the state is stored again");
                self.storage.trouble = None;
                if let Some(exporter) = &mut self.telemetry.exporter {
                    exporter.recovered();
                }
            }
            StoreEvent::Reopen => self.ending = Some(Ending::Again),
            StoreEvent::Malformed { cause } => {
                if self.storage.malformed.is_none() {
                    tracing::error!("{cause}");
                    self.publish_degraded(malformed(&cause));
                }
                self.storage.malformed = Some(cause);
                if self.clients.peers.is_empty() {
                    self.mend_store();
                }
            }
        }
    }

    /// Opens a damaged store again, which keeps what can be read of it. Clients
    /// lose their connections by that, so none may be there.
    pub(super) fn mend_store(&mut self) {
        if self.storage.malformed.is_some() {
            self.ending = Some(Ending::Again);
        }
    }

    /// Publishes to subscribers a degradation that concerns all paths.
    fn publish_degraded(&mut self, cause: String) {
        let state = self.engine.state();
        self.outbox.push(Say::Notice(Box::new(Notice {
            clock: state.clock(state.n),
            happening: Happening::Degraded { path: None, cause },
            lines: None,
        })));
    }

    /// Sends every message whose turn is committed, or is known to have failed.
    pub(super) fn say_all(&mut self) {
        if matches!(self.ending, Some(Ending::Again)) {
            // The facts of these turns may never be stored.
            return;
        }
        while let Some((turn, say)) = self.outbox.pop() {
            let failed = self.storage.failed(turn);
            failpoint::pass("about to say");
            self.say(say, failed.as_deref());
            failpoint::pass("said");
        }
    }

    fn say(&mut self, say: Say, failed: Option<&str>) {
        match say {
            Say::Answer { request, answer } => {
                let undo = self.clients.take_begun(request);
                let Some(asked) = self.clients.asked.get(&request).copied() else {
                    for ask in undo {
                        self.ask_internally(ask);
                    }
                    return self.undo_unheard(answer.ok());
                };
                match (answer, failed) {
                    (Ok(answer), Some(cause)) if asked.changes_state => {
                        self.undo_unheard(Some(answer));
                        self.clients.answered(request, Err(storage(cause)));
                    }
                    (Ok(answer), _) => self.complete(request, *answer),
                    (Err(error), _) => self.clients.answered(request, Err(error)),
                }
            }
            Say::Recall { request, recall } => self.recall(request, recall),
            Say::Learned { request, question } => {
                self.learn(request, question);
            }
            Say::Write(request, order) => self.write(request, *order, failed),
            Say::Notice(notice) => self.tell(*notice),
            Say::Lost { path, version } => self.show_loss(&path, version),
            Say::Subscribed(beginning) => self.subscribe(*beginning),
            Say::End { request } => {
                if let Some(asked) = self.clients.asked.remove(&request) {
                    let done = Reply::Shutdown(touchmark_proto::daemon::Done {});
                    self.clients.answer(asked, request, Ok(done));
                }
                self.ending = Some(Ending::Done("a client requested it"));
            }
        }
    }

    /// Reverts the beginning of an edit or a command window whose answer cannot
    /// be delivered. Otherwise the next change would be attributed to the agent
    /// (ATTR-9).
    fn undo_unheard(&mut self, answer: Option<Box<Answer>>) {
        let edit = match answer.map(|answer| answer.reply) {
            Some(Reply::CommandBegin(begun)) => {
                return self.feed(Input::CommandUnanswered {
                    command: begun.command,
                });
            }
            Some(Reply::EditBegin(begun)) => Some(begun.edit),
            Some(Reply::EditMark(marked)) => marked.edit,
            _ => None,
        };
        if let Some(edit) = edit {
            self.ask_internally(Request::EditAbort(EditAbort::new().edit(edit)));
        }
    }

    /// Makes a request of the daemon's own, whose answer is dropped.
    pub(super) fn ask_internally(&mut self, ask: Request) {
        let request = self.clients.new_request();
        self.feed(Input::Request {
            request,
            connection: ConnectionId(0),
            ask,
            until: None,
        });
    }

    /// Adds the labels of the sessions that an answer names (SES-2).
    pub(super) fn labelled(&self, mut reply: Reply) -> Reply {
        self.engine.state().label_reply(&mut reply);
        reply
    }

    /// Finds the answer to a question of the engine: in the log, or by a read
    /// on another thread.
    fn learn(&mut self, request: RequestId, question: Question) {
        let epoch = self.engine.state().epoch;
        let learned = match question {
            Question::Processes(processes) => {
                proc::process_starts(&processes).map(Learned::Processes)
            }
            Question::Lines(order) => return self.read_lines(request, order),
            Question::Sweep(order) => return self.parts.sweeper.sweep(Some(request), order),
            Question::Differences(pairs) if pairs.len() > FEW => {
                return self.look_up(request, move |log| {
                    let differences = Contents::new(Some(log)).differences(pairs);
                    Ok(Learned::Differences(differences))
                });
            }
            Question::Differences(pairs) => self
                .storage
                .log()
                .map(|log| Learned::Differences(Contents::new(Some(log)).differences(pairs))),
            Question::Edited {
                moment,
                paths,
                also,
            } => {
                return self.look_up(request, move |log| {
                    edited(log, epoch, moment, paths.as_deref(), &also).map(Learned::Edited)
                });
            }
        };
        let learned = Event::Feed(Input::Learned { request, learned });
        let _loop_has_ended = self.events.send(learned);
    }

    /// Has the desktop show what a fact says is lost, once it is stored.
    pub(super) fn say_loss(&mut self, fact: &Fact) {
        if let (true, Fact::Lost { path, version, .. }) = (self.options.config.desktop_losses, fact)
        {
            let (path, version) = (path.clone(), *version);
            self.outbox.push(Say::Lost { path, version });
        }
    }

    /// Shows on the desktop that a version was overwritten unseen, if lines of it
    /// are lost.
    fn show_loss(&mut self, path: &RelPath, version: u64) {
        let state = self.engine.state();
        if self.storage.contents().is_lost(path, version, state) {
            self.clients
                .desktop
                .show(Loss::overwritten(path, state.clock(version)));
        }
    }

    /// Sends an event to the subscribers that requested it.
    fn tell(&mut self, notice: Notice) {
        if let (true, Happening::Recovered { path, .. }) =
            (self.options.config.desktop_losses, &notice.happening)
        {
            self.clients.desktop.show(Loss::kept(path));
        }
        if self.clients.subscriptions.is_empty() {
            return;
        }
        let Notice {
            clock,
            mut happening,
            lines,
        } = notice;
        let state = self.engine.state();
        if self
            .clients
            .subscriptions
            .wanting(&happening, state)
            .next()
            .is_none()
        {
            return;
        }
        let state = self.engine.state();
        if let Happening::Version { version, .. } = &mut happening {
            self.storage.contents().mark(version, state);
        }
        if let Some((old, new)) = lines {
            count_lines(&mut happening, old, new, &mut self.storage.contents());
        }
        for (subscription, connection) in self.clients.subscriptions.wanting(&happening, state) {
            if let Some(peer) = self.clients.peers.get(&connection) {
                peer.event(Notification {
                    subscription,
                    clock,
                    happening: happening.clone(),
                });
            }
        }
    }
}

pub(super) fn count_lines(
    happening: &mut Happening,
    old: Option<touchmark_proto::Hash>,
    new: Option<touchmark_proto::Hash>,
    contents: &mut Contents<'_>,
) {
    if let Happening::Version { lines, .. } = happening {
        *lines = contents.lines(old, new);
    }
}

/// Returns the sentence about a store that a lookup found damaged.
pub(super) fn malformed(cause: &str) -> String {
    format!(
        "a lookup failed: {cause}; what can be read of the store is kept once no client is connected, or after `touchmark stop`"
    )
}
