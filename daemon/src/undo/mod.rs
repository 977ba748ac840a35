//! `undo`, `redo`: taking changes away by their author (UNDO).
//!
//! - [`whose`]: which versions a request selects.
//! - [`plan`]: the content of their files without them. [`moves`]: files that
//!   get another name. [`in_the_way`]: files that stay as they are. [`left`]:
//!   the rows about what stays. [`elsewhere`]: where else its lines stand.
//! - [`transaction`]: writing that content. [`journal`], [`entries`], [`contents`]:
//!   what the next start completes, and what a redo writes back. [`undos`]: which
//!   versions are undos and redos.
//! - [`told`]: notices to the sessions whose changes were undone.

mod contents;
mod elsewhere;
mod entries;
#[cfg(any(test, fuzzing))]
#[path = "../../../fuzz/undo.rs"]
pub(crate) mod fuzzed;
mod in_the_way;
mod journal;
mod left;
mod moves;
mod plan;
mod told;
mod transaction;
mod whose;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use touchmark_engine::history::Step;
use touchmark_engine::within;
use touchmark_proto::commands::CommandList;
use touchmark_proto::daemon::Sync;
use touchmark_proto::undo::{
    Conflicts, Redo, Undo, UndoOutcome, UndoRows, Undone, UndoneContent, UndoneFile,
};
use touchmark_proto::{
    Author, ClientPath, Error, ErrorCode, ErrorData, FileMode, Hash, RelPath, SessionId, native,
};

use crate::context::{Context, Log, aside};
use crate::guard::{Name, Replacer};
use crate::history::Chain;
use crate::hooks::Memory;
use crate::past::Origins;
use crate::past::lineage::Snapshot;
use crate::past::planned::Room;
use crate::past::versions::{Joins, Sources, alone, current};
use crate::review::kept::Kept;

use elsewhere::Elsewhere;
pub(crate) use journal::Journal;
pub(crate) use plan::{Plan, real_of};
use transaction::Transaction;
pub(crate) use transaction::{Resumed, resume};
use whose::Chosen;
pub(crate) use whose::{is_below, is_of};

/// The maximum number of files in one undo.
const MOST_FILES: usize = 10_000;

/// The number of files that are planned at the same time. Each may need its
/// whole history in memory.
const AT_ONCE: usize = 8;

/// The maximum number of bytes of contents, as base64, in one answer. A file
/// that has more is alone in its answer.
const MOST_CONTENT: usize = 4 << 20;

/// The parts of the daemon that an undo uses.
#[derive(Clone)]
pub(crate) struct Undoer {
    pub(crate) cx: Context,
    /// The log and the stored contents.
    pub(crate) log: Log,
    pub(crate) origins: Origins,
    /// As [`Sources::known`].
    pub(crate) known: Option<Snapshot>,
    /// Writes the files.
    pub(crate) replacer: Replacer,
    /// The request says that what cannot be stored is written over all the
    /// same (`noRedo`).
    pub(crate) no_redo: bool,
    pub(crate) journal: Arc<Journal>,
    /// The changes that the user has kept in a review.
    pub(crate) kept: Arc<Kept>,
    /// Which sessions are in a turn, and the notices that wait for their next
    /// event.
    pub(crate) memory: Arc<Memory>,
}

impl Undoer {
    /// Handles `undo`.
    ///
    /// # Errors
    /// `invalidParams`, `unknownSession`, `notFound` if no change is selected,
    /// `busy` if a session is in a turn, `conflict` if the undo is another one
    /// than the `plan`, `tooLarge`, `storage`.
    pub(crate) async fn undo(&self, ask: &Undo) -> Result<Undone, Error> {
        let _one = self.journal.alone().await;
        self.look().await?;
        let chosen = Chosen::of(self, ask).await?;
        // Who wants the contents is about to undo.
        if !ask.now && (!ask.dry_run || ask.contents.is_some()) {
            self.check_turns(&chosen).await?;
        }
        let style = ask.conflicts.unwrap_or(Conflicts::Keep);
        // Files that were moved unobserved are found first.
        let mut known = self.lineage().await?;
        let mut names = chosen.names(&known);
        let wanted = names.iter().cloned().collect();
        if self.origins.lineages.find(self.sources(), wanted).await? {
            known = self.lineage().await?;
            names = chosen.names(&known);
        }
        if names.len() > MOST_FILES {
            return Err(Error::new(ErrorCode::TooLarge, "too many files")
                .with(ErrorData {
                    limit: Some(MOST_FILES as u64),
                    ..ErrorData::default()
                })
                .hint("name some of them in `paths`"));
        }
        // A file that cannot be read does not prevent the undo of the others.
        let planner = &self.knowing(known);
        let of = &chosen;
        let each = names.iter().map(|path| async move {
            let plan = Plan::new(planner, path, of, style).await;
            plan.unwrap_or_else(|error| Some(Plan::failed(path, error)))
        });
        let found = stream::iter(each.collect::<Vec<_>>()).buffered(AT_ONCE);
        let found: Vec<Option<Plan>> = found.collect().await;
        let mut plans: Vec<Plan> = found.into_iter().flatten().collect();
        // One file may have had several of these names (FILE-1). It gets one
        // plan.
        let mut known: HashSet<u64> = HashSet::new();
        plans.retain(|plan| {
            let is_new = plan.versions.iter().all(|n| !known.contains(n));
            known.extend(plan.versions.iter().filter(|_| is_new));
            is_new
        });
        moves::join(planner, &mut plans, &chosen).await?;
        in_the_way::leave(&mut plans, self).await;
        let authors = chosen.authors.clone();
        let elsewhere = Elsewhere::search_for(self, &plans);
        let plan = digest(&mut plans);
        if ask.plan.is_some_and(|asked| asked != plan) {
            return Err(Error::new(
                ErrorCode::Conflict,
                "the files were changed since, so the undo would do something else by now",
            )
            .hint("look again at what it would do, with `dryRun`"));
        }
        if ask.dry_run {
            let (results, more) = results(&plans, ask.contents);
            let mut files = aside(move || planned(plans)).await?;
            for (at, result) in results {
                files[at].result = Some(result);
            }
            let answer = self.answer(None, files, authors).await;
            return Ok(elsewhere.await.unwrap_or_default().told(Undone {
                plan: Some(plan),
                more,
                ..answer
            }));
        }
        let mut transaction =
            Transaction::begin(planner, plans, chosen.what(), authors.clone(), None).await?;
        // The plan does not cover a file that a user saves after this point.
        // With no version chosen, such a file stays as it was saved.
        let again = match ask.plan {
            Some(_) => Chosen::default(),
            None => chosen,
        };
        transaction.carry_out(&again, style).await;
        let (undo, plans) = transaction.end();
        told::tell(self, undo.as_deref());
        self.settle(done(&plans));
        let answer = self.answer(undo, files(plans), authors).await;
        Ok(elsewhere.await.unwrap_or_default().told(answer))
    }

    /// Returns the answer to an undo or redo, with the commands that its files
    /// name.
    async fn answer(
        &self,
        undo: Option<String>,
        files: Vec<UndoneFile>,
        authors: Vec<Author>,
    ) -> Undone {
        let left = files.iter().flat_map(|file| file.left.iter().flatten());
        let named: BTreeSet<&str> = left.filter_map(|left| left.command.as_deref()).collect();
        let mut commands = None;
        if !named.is_empty() {
            // The commands are for people. Without them the answer is complete.
            let all = self.cx.inside.ask(CommandList::default()).await;
            let all = all.map(|all| all.commands).unwrap_or_default();
            let rows = all.into_iter().rev();
            let rows = rows.filter(|row| named.contains(row.command.as_str()));
            commands = Some(rows.collect());
        }
        Undone {
            undo,
            files,
            authors,
            commands,
            plan: None,
            more: None,
            unsearched: None,
        }
    }

    /// Handles `redo`.
    ///
    /// # Errors
    /// `notFound` if there is no such undo, `storage`.
    pub(crate) async fn redo(&self, ask: &Redo) -> Result<Undone, Error> {
        let _one = self.journal.alone().await;
        let entry = &self.journal.entry(ask.undo.as_deref())?;
        let chosen = Chosen::default();
        self.look().await?;
        let planner = &self.knowing(self.lineage().await?);
        let each = entry.files.iter().enumerate();
        let each = each.map(|(at, file)| async move {
            let plan = match self.journal.contents(entry, at) {
                Ok([before, after]) => {
                    Plan::back(planner, file.name(), before, after, file.modes()).await
                }
                Err(error) => Err(error),
            };
            let mut plan = plan.unwrap_or_else(|error| Plan::failed(&file.path, error));
            plan.by = file.sessions(&entry.authors);
            plan
        });
        let each = stream::iter(each.collect::<Vec<_>>()).buffered(AT_ONCE);
        let mut plans: Vec<Plan> = each.collect().await;
        plan::rename_again(&mut plans, &entry.files);
        in_the_way::leave(&mut plans, self).await;
        if ask.dry_run {
            let files = aside(move || planned(plans)).await?;
            return Ok(self.answer(None, files, entry.authors.clone()).await);
        }
        let what = entry.what.clone();
        let mut transaction =
            Transaction::begin(planner, plans, what, entry.authors.clone(), Some(entry)).await?;
        transaction.carry_out(&chosen, Conflicts::Keep).await;
        let (undo, plans) = transaction.end();
        told::tell(self, undo.as_deref());
        self.kept.set_open(plans.iter().map(|plan| &plan.path));
        Ok(self.answer(undo, files(plans), entry.authors.clone()).await)
    }

    /// Writes the files of a `review/undo`.
    ///
    /// # Errors
    /// `storage`.
    pub(crate) async fn carry_out(
        &self,
        mut plans: Vec<Plan>,
        what: String,
        authors: Vec<Author>,
    ) -> Result<Undone, Error> {
        let chosen = Chosen::default();
        moves::join(self, &mut plans, &chosen).await?;
        in_the_way::leave(&mut plans, self).await;
        let mut transaction = Transaction::begin(self, plans, what, authors.clone(), None).await?;
        transaction.carry_out(&chosen, Conflicts::Keep).await;
        let (undo, plans) = transaction.end();
        told::tell(self, undo.as_deref());
        self.settle(done(&plans));
        Ok(self.answer(undo, files(plans), authors).await)
    }

    /// Handles `undo/list`.
    pub(crate) fn list(&self) -> UndoRows {
        UndoRows {
            undos: self.journal.rows(),
        }
    }

    /// Returns the versions of the file that has a name now, and their contents.
    pub(crate) async fn chain(&self, path: &RelPath) -> Result<Chain, Error> {
        self.joined(path, &alone).await
    }

    /// As [`chain`](Self::chain), with the newest version alone.
    async fn newest(&self, path: &RelPath) -> Result<Chain, Error> {
        let chain = Chain::outline(self.sources(), &path.into(), &current, &alone).await?;
        chain.newest().read(&self.log).await
    }

    /// As [`chain`](Self::chain), with the versions of earlier files of the name
    /// that `joins` accepts.
    async fn joined(&self, path: &RelPath, joins: Joins<'_>) -> Result<Chain, Error> {
        Chain::of(self.sources(), &path.into(), &current, joins).await
    }

    /// Returns the versions of the file that a name stood for at a version.
    async fn chain_at(&self, path: &RelPath, version: u64) -> Result<Chain, Error> {
        Chain::of(self.sources(), &path.into(), &|_| version, &alone).await
    }

    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources {
            inside: &self.cx.inside,
            log: &self.log,
            origins: &self.origins,
            known: self.known.as_ref(),
            root: &self.cx.workspace.root,
            trusted: &self.cx.workspace.places.trusted,
            // An undo computes the new content from the file's bytes on disk.
            verifies: true,
        }
    }

    /// Waits until all earlier writes are recorded (SYNC-1), and until it is known
    /// which of them are git's. On a full disk they are not stored, and are found
    /// all the same (LOSS-3).
    pub(crate) async fn look(&self) -> Result<(), Error> {
        let synced = self.cx.inside.ask(Sync {}).await.map(drop);
        for done in [synced, self.origins.looks.looked(&self.cx.inside).await] {
            done.or_else(|error| match error.code {
                ErrorCode::Storage => Ok(()),
                _ => Err(error),
            })?;
        }
        Ok(())
    }

    /// Returns the same parts, for requests about many files.
    pub(crate) fn knowing(&self, known: Snapshot) -> Self {
        Self {
            known: Some(known),
            ..self.clone()
        }
    }

    /// Returns which names stand for which files.
    ///
    /// # Errors
    /// `storage`.
    pub(crate) async fn lineage(&self) -> Result<Snapshot, Error> {
        self.origins.lineages.now(&self.cx.inside, &self.log).await
    }

    /// Reads what stands at a name. Returns why it may not be stored; `None` if
    /// it may, or if nothing stands there. A content that the store does not
    /// have is taken from the file, if it may be stored or need not be.
    pub(crate) async fn look_at_present(&self, chain: &mut Chain, name: &Name) -> Option<String> {
        let hash = chain.versions.last()?.hash?;
        let is_link = chain.mode.is_some_and(FileMode::is_link) && chain.has_links();
        let (replacer, name) = (self.replacer.clone(), name.clone());
        let present = aside(move || replacer.present(&name, is_link)).await;
        let present = present.ok()?.ok()?;
        if let (Some(last @ Step::NotKept), Some(bytes)) = (chain.steps.last_mut(), present.bytes)
            && (present.not_kept.is_none() || self.no_redo)
            && Hash::of(&bytes) == hash
        {
            *last = Step::Held(bytes);
        }
        present.not_kept
    }

    /// Converts a client's path into a path in the workspace.
    pub(crate) fn place(&self, path: &ClientPath) -> Result<RelPath, Error> {
        within(path, &native::bytes(&self.cx.workspace.root))
    }

    /// Returns `busy` if one of the selected sessions is in a turn or has an
    /// edit or a command open.
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
                .hint("wait until the turn has ended, or set `now`"));
            }
        }
        Ok(())
    }

    /// Returns whether a session has an edit or a command open.
    async fn is_writing(&self, session: &SessionId) -> bool {
        let session = session.clone();
        let is_writing = self.cx.inside.look(move |state| {
            let mut edits = state.edits.values();
            let mut commands = state.commands.values();
            edits.any(|edit| edit.fact.session == session && edit.fact.call.is_some())
                || commands.any(|open| open.fact.session == session && open.fact.call.is_some())
        });
        is_writing.await.unwrap_or_default()
    }
}

/// Returns the files of an answer.
fn files(plans: Vec<Plan>) -> Vec<UndoneFile> {
    plans.into_iter().map(Plan::file).collect()
}

/// Returns the files of the answer to a dry run, with the lines that would
/// change.
fn planned(plans: Vec<Plan>) -> Vec<UndoneFile> {
    let mut room = Room::default();
    let file = |plan: Plan| {
        let changes = match is_written(plan.outcome) {
            true => room.lines(plan.before.as_deref(), plan.after.as_deref()),
            false => None,
        };
        UndoneFile {
            changes,
            ..plan.file()
        }
    };
    plans.into_iter().map(file).collect()
}

/// Returns a hash of what an undo would do, in the order of its paths.
fn digest(plans: &mut [Plan]) -> Hash {
    plans.sort_by(|a, b| a.path.cmp(&b.path));
    let all: Vec<_> = plans.iter().filter_map(Plan::does).collect();
    Hash::of(format!("{all:?}").as_bytes())
}

/// Returns what files would become, from the one with the index `from` on, as
/// many as fit one answer; and the index of the next one, if there are more.
/// Nothing if `from` is `None`.
fn results(plans: &[Plan], from: Option<u32>) -> (Vec<(usize, UndoneContent)>, Option<u32>) {
    let mut found = Vec::new();
    let Some(from) = from else {
        return (found, None);
    };
    let mut room = MOST_CONTENT;
    for (at, plan) in plans.iter().enumerate().skip(from as usize) {
        let Some(result) = plan.result() else {
            continue;
        };
        let size = result.base64.as_ref().map_or(0, String::len);
        if size > room && !found.is_empty() {
            return (found, u32::try_from(at).ok());
        }
        room = room.saturating_sub(size);
        found.push((at, result));
    }
    (found, None)
}

/// Returns the paths of the files that were undone without conflicts. The
/// contents of the others stay pinned, since a later undo may need them.
fn done(plans: &[Plan]) -> Vec<RelPath> {
    let done = plans
        .iter()
        .filter(|plan| is_written(plan.outcome) && !plan.stays());
    done.map(|plan| plan.path.clone()).collect()
}

/// Returns whether the file was written, removed or renamed.
fn is_written(outcome: UndoOutcome) -> bool {
    matches!(
        outcome,
        UndoOutcome::Undone
            | UndoOutcome::Partly
            | UndoOutcome::Deleted
            | UndoOutcome::Restored
            | UndoOutcome::Renamed
    )
}
