//! Requests about earlier contents of files. Each is answered in a separate
//! task.

use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use touchmark_engine::requests::ForShell;
use touchmark_proto::{ConnectionId, Error, ErrorCode, Reply, RequestId};

use super::Daemon;
use super::say::storage;
use crate::event::Event;
use crate::history::Past;
use crate::inside::Inside;
use crate::past::LongBlame;

/// The number of requests answered at the same time. Each may need a file's
/// whole history in memory.
const AT_ONCE: usize = 2;

/// The requests in progress.
#[derive(Debug)]
pub(super) struct Histories {
    at_once: Arc<Semaphore>,
    /// What is left of long answers.
    pub(super) blamed: Arc<LongBlame>,
}

impl Default for Histories {
    fn default() -> Self {
        Self {
            at_once: Arc::new(Semaphore::new(AT_ONCE)),
            blamed: Arc::default(),
        }
    }
}

impl Daemon {
    /// Answers `file/content`, `file/diff`, `file/blame`, `file/log`,
    /// `file/restore` or `activity/list`.
    pub(super) fn look_back(&mut self, request: RequestId, ask: ForShell) {
        let (events, at_once) = (self.events.clone(), Arc::clone(&self.histories.at_once));
        let past = self.past(request);
        tokio::spawn(async move {
            // In another task, so that the client receives an answer even if
            // this one panics.
            let answered = tokio::spawn(async move {
                let _one_of_few = at_once.acquire().await;
                let past = past?;
                match ask {
                    ForShell::FileContent(ask) => past.content(ask).await.map(Reply::FileContent),
                    ForShell::FileDiff(ask) => past.diff(ask).await.map(Reply::FileDiff),
                    ForShell::FileBlame(ask) => past.blame(ask).await.map(Reply::FileBlame),
                    ForShell::FileLog(ask) => past.log(ask).await.map(Reply::FileLog),
                    ForShell::ActivityList(ask) => {
                        past.activity(ask).await.map(Reply::ActivityList)
                    }
                    ForShell::FileRestore(ask) => past.restore(ask).await.map(Reply::FileRestore),
                    _ => Err(broken("no question about files as they were")),
                }
            });
            let answered = answered.await;
            let _loop_has_ended = events.send(Event::Answered {
                request,
                outcome: answered.unwrap_or_else(|error| Err(broken(&error.to_string()))),
            });
        });
    }

    /// Looks in the background whether git brought the queued versions (HIST-8).
    pub(super) fn look_at_versions(&mut self) {
        self.last_connection += 1;
        let inside = Inside {
            events: self.events.clone(),
            connection: ConnectionId(self.last_connection),
            until: None,
        };
        tokio::spawn(Arc::clone(&self.looks).run(inside));
    }

    /// Returns what is needed to answer a request about earlier contents.
    fn past(&mut self, request: RequestId) -> Result<Past, Error> {
        let contents = self.store.reader();
        let contents = contents.map_err(|error| storage(&error.to_string()))?;
        let contents = Arc::new(Mutex::new(contents));
        Ok(Past {
            replacer: self.replacer(request, &contents),
            inside: self.inside(request),
            contents,
            lineages: Arc::clone(&self.lineages),
            blamed: Arc::clone(&self.histories.blamed),
            files: self.reader.clone(),
            root: Arc::clone(&self.hub.root),
            now: self.time.now(),
            epoch: self.engine.state().epoch,
            largest: self.options.config.contents_file,
            places: self.options.places.clone(),
        })
    }
}

fn broken(cause: &str) -> Error {
    tracing::error!("a look back broke off: {cause}");
    Error::new(ErrorCode::InternalError, cause)
}
