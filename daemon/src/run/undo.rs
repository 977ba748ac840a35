//! `undo`, `redo` and `review/*`: each is answered in a separate task.

use std::sync::{Arc, Mutex};

use touchmark_proto::claim::Claim;
use touchmark_proto::review::{ReviewKeep, ReviewList, ReviewUndo};
use touchmark_proto::undo::{Redo, Undo};
use touchmark_proto::{Error, Reply, RequestId};

use super::Daemon;
use crate::event::Event;
use crate::undo::Undoer;

impl Daemon {
    /// Answers `undo`. Once begun it is completed, even if the client
    /// disconnects.
    pub(super) fn undo(&mut self, request: RequestId, ask: Undo) {
        self.undoing(request, async move |mut undoer: Undoer| {
            undoer.no_redo = ask.no_redo;
            undoer.undo(&ask).await.map(Reply::Undo)
        });
    }

    /// Answers `redo`.
    pub(super) fn redo(&mut self, request: RequestId, ask: Redo) {
        self.undoing(request, async move |mut undoer: Undoer| {
            undoer.no_redo = ask.no_redo;
            undoer.redo(&ask).await.map(Reply::Redo)
        });
    }

    /// Answers `undo/list`.
    pub(super) fn undo_list(&mut self, request: RequestId) {
        self.undoing(request, async move |undoer: Undoer| {
            Ok(Reply::UndoList(undoer.list()))
        });
    }

    /// Answers `review/list`.
    pub(super) fn review_list(&mut self, request: RequestId, ask: ReviewList) {
        self.undoing(request, async move |undoer: Undoer| {
            undoer.review_list(&ask).await.map(Reply::ReviewList)
        });
    }

    /// Answers `review/keep`.
    pub(super) fn review_keep(&mut self, request: RequestId, ask: ReviewKeep) {
        self.undoing(request, async move |undoer: Undoer| {
            undoer.review_keep(&ask).await.map(Reply::ReviewKeep)
        });
    }

    /// Answers `claim`.
    pub(super) fn claim(&mut self, request: RequestId, ask: Claim) {
        self.undoing(request, async move |undoer: Undoer| {
            undoer.claim(&ask).await.map(Reply::Claim)
        });
    }

    /// Answers `review/undo`.
    pub(super) fn review_undo(&mut self, request: RequestId, ask: ReviewUndo) {
        self.undoing(request, async move |mut undoer: Undoer| {
            undoer.no_redo = ask.no_redo;
            undoer.review_undo(&ask).await.map(Reply::ReviewUndo)
        });
    }

    fn undoing<F>(&mut self, request: RequestId, answer: impl FnOnce(Undoer) -> F + Send + 'static)
    where
        F: Future<Output = Result<Reply, Error>> + Send,
    {
        let events = self.events.clone();
        let undoer = self.undoer(request);
        tokio::spawn(async move {
            let outcome = match undoer {
                Ok(undoer) => answer(undoer).await,
                Err(error) => Err(error),
            };
            let _loop_has_ended = events.send(Event::Answered { request, outcome });
        });
    }

    fn undoer(&mut self, request: RequestId) -> Result<Undoer, Error> {
        let mut inside = self.inside(request);
        inside.until = None;
        let log = Arc::new(Mutex::new(self.store.reader()?));
        Ok(Undoer {
            inside,
            replacer: self.replacer(request, &log),
            no_redo: false,
            log,
            lineages: Arc::clone(&self.lineages),
            known: None,
            journal: Arc::clone(&self.journal),
            kept: Arc::clone(&self.kept),
            memory: self.hooks.memory(),
            root: self.options.workspace.clone(),
            largest: self.options.config.contents_file,
            places: self.options.places.clone(),
            now: self.time.now(),
        })
    }
}
