//! `undo`, `redo`: taking changes away by their author (UNDO).
//!
//! - [`whose`]: which versions are meant.
//! - [`plan`]: what their files would hold without them.
//! - [`transaction`]: writing that, all of it or nothing; [`journal`]: what the
//!   next start completes, and what a redo puts back.
//! - [`told`]: what sessions are told of it.

mod journal;
mod plan;
mod told;
mod transaction;
mod whose;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use touchmark_engine::within;
use touchmark_proto::undo::{Conflicts, Redo, Undo, UndoOutcome, UndoRows, Undone};
use touchmark_proto::{
    Author, ClientPath, Error, ErrorCode, ErrorData, Millis, RelPath, SessionId, native,
};

use crate::guard::{Guard, Umask};
use crate::history::Chain;
use crate::hooks::{Consult, Memory};
use crate::inside::Inside;
use crate::review::Kept;
use crate::store::Reader;

pub(crate) use journal::Journal;
pub(crate) use plan::Plan;
use transaction::Transaction;
pub(crate) use transaction::resume;
use whose::Chosen;
pub(crate) use whose::{is_below, is_of};

/// Files of one undo at most.
const MOST_FILES: usize = 10_000;

/// What an undo needs of the daemon.
#[derive(Clone)]
pub(crate) struct Undoer {
    pub(crate) inside: Inside,
    /// The log, and kept contents.
    pub(crate) log: Arc<Mutex<Reader>>,
    pub(crate) guard: Arc<Guard>,
    pub(crate) journal: Arc<Journal>,
    /// What was looked at and stays.
    pub(crate) kept: Arc<Kept>,
    /// Which sessions are in a turn, and what they are to be told.
    pub(crate) memory: Arc<Memory>,
    /// What new files are made with.
    pub(crate) umask: Umask,
    /// The workspace's canonical path.
    pub(crate) root: PathBuf,
    pub(crate) now: Millis,
}

impl Undoer {
    /// `undo`.
    ///
    /// # Errors
    /// `invalidParams`, `unknownSession`, `notFound` where no change is meant,
    /// `busy` for a session in a turn, `tooLarge`, `storage`.
    pub(crate) async fn undo(&self, ask: &Undo) -> Result<Undone, Error> {
        let _one = self.journal.alone().await;
        let chosen = Chosen::of(self, ask).await?;
        if !ask.now && !ask.dry_run {
            self.check_turns(&chosen).await?;
        }
        let style = ask.conflicts.unwrap_or(Conflicts::Keep);
        let mut plans = Vec::new();
        for path in chosen.paths.keys() {
            if plans.len() > MOST_FILES {
                return Err(Error::new(ErrorCode::TooLarge, "too many files")
                    .with(ErrorData {
                        limit: Some(MOST_FILES as u64),
                        ..ErrorData::default()
                    })
                    .hint("name some of them in `paths`"));
            }
            // One file may have had several of these names (FILE-1).
            let plan = Plan::new(self, path, &chosen, style).await;
            // What cannot be looked at keeps nothing else from being undone.
            let plan = plan.unwrap_or_else(|error| Some(Plan::failed(path, error)));
            let is_new = |plan: &Plan| !plans.iter().any(|other: &Plan| other.is_same(plan));
            plans.extend(plan.filter(is_new));
        }
        plan::join_renames(&mut plans);
        let authors = chosen.authors.clone();
        if ask.dry_run {
            return Ok(Undone {
                undo: None,
                files: plans.into_iter().map(Plan::file).collect(),
                authors,
            });
        }
        let mut transaction =
            Transaction::begin(self, plans, chosen.what(), authors.clone(), None)?;
        transaction.carry_out(&chosen, style).await;
        let (undo, plans) = transaction.end();
        told::tell(self, &chosen.authors, &plans);
        self.settle(done(&plans)).await;
        Ok(Undone {
            undo,
            files: plans.into_iter().map(Plan::file).collect(),
            authors,
        })
    }

    /// `redo`.
    ///
    /// # Errors
    /// `notFound` for an undo that there is not, `storage`.
    pub(crate) async fn redo(&self, ask: &Redo) -> Result<Undone, Error> {
        let _one = self.journal.alone().await;
        let entry = self.journal.entry(ask.undo.as_deref())?;
        let chosen = Chosen::default();
        let mut plans = Vec::new();
        for (at, file) in entry.files.iter().enumerate() {
            let [before, after] = self.journal.contents(&entry, at)?;
            let plan = Plan::back(self, &file.path, before, after, file.modes()).await;
            plans.push(plan.unwrap_or_else(|error| Plan::failed(&file.path, error)));
        }
        plan::rename_again(&mut plans, &entry.files);
        if ask.dry_run {
            return Ok(Undone {
                undo: None,
                files: plans.into_iter().map(Plan::file).collect(),
                authors: entry.authors,
            });
        }
        let what = entry.what.clone();
        let mut transaction =
            Transaction::begin(self, plans, what, entry.authors.clone(), Some(&entry))?;
        transaction.carry_out(&chosen, Conflicts::Keep).await;
        let (undo, plans) = transaction.end();
        Ok(Undone {
            undo,
            files: plans.into_iter().map(Plan::file).collect(),
            authors: entry.authors,
        })
    }

    /// Writes what a review has come to.
    ///
    /// # Errors
    /// `storage`.
    pub(crate) async fn carry_out(
        &self,
        plans: Vec<Plan>,
        what: String,
        authors: Vec<Author>,
    ) -> Result<Undone, Error> {
        let chosen = Chosen::default();
        let mut transaction = Transaction::begin(self, plans, what, authors.clone(), None)?;
        transaction.carry_out(&chosen, Conflicts::Keep).await;
        let (undo, plans) = transaction.end();
        told::tell(self, &authors, &plans);
        self.settle(done(&plans)).await;
        Ok(Undone {
            undo,
            files: plans.into_iter().map(Plan::file).collect(),
            authors,
        })
    }

    /// `undo/list`.
    pub(crate) fn list(&self) -> UndoRows {
        UndoRows {
            undos: self.journal.rows(),
        }
    }

    /// What is known of a file.
    async fn chain(&self, path: &RelPath) -> Result<Chain, Error> {
        Chain::of(&self.inside, &self.log, &self.root, &path.into()).await
    }

    /// A path that a request names.
    pub(crate) fn place(&self, path: &ClientPath) -> Result<RelPath, Error> {
        within(path, &native::bytes(&self.root))
    }

    /// Refuses while one of the sessions whose work it is may go on with it.
    async fn check_turns(&self, chosen: &Chosen) -> Result<(), Error> {
        for author in &chosen.authors {
            let Some(session) = &author.session else {
                continue;
            };
            if self.memory.is_in_turn(session) || self.is_writing(session).await {
                let name = author.label.as_deref().unwrap_or(session.as_str());
                let holder = touchmark_proto::quoting::quoted(name, 80);
                return Err(Error::new(
                    ErrorCode::Busy,
                    format!("{holder} is in the middle of a turn"),
                )
                .with(ErrorData {
                    holder: Some(session.clone()),
                    ..ErrorData::default()
                })
                .hint("wait until it is done, or say `now`"));
            }
        }
        Ok(())
    }

    /// Whether it has an edit or a command under way.
    async fn is_writing(&self, session: &SessionId) -> bool {
        let standing = self.inside.consult(|answer| Consult::Standing {
            session: session.clone(),
            answer,
        });
        let standing = standing.await.unwrap_or_default();
        !standing.edits.is_empty() || !standing.windows.is_empty()
    }
}

/// The files that were written whole: where a change stays, somebody may yet
/// want what it rests on.
fn done(plans: &[Plan]) -> Vec<RelPath> {
    let done = plans
        .iter()
        .filter(|plan| is_written(plan.outcome) && !plan.has_conflicts());
    done.map(|plan| plan.path.clone()).collect()
}

/// Whether anything of it was written.
fn is_written(outcome: UndoOutcome) -> bool {
    matches!(
        outcome,
        UndoOutcome::Undone | UndoOutcome::Deleted | UndoOutcome::Restored | UndoOutcome::Renamed
    )
}
