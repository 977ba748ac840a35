//! Requests that are answered in tasks: one row for each method.

use std::sync::Arc;

use tokio::sync::Semaphore;
use touchmark_engine::Fact;
use touchmark_engine::requests::ForShell;
use touchmark_proto::daemon::{Done, Sync};
use touchmark_proto::hooks::{HookEvent, HookPrinted};
use touchmark_proto::off::UsersOnly;
use touchmark_proto::writes::RecoveryRestore;
use touchmark_proto::{Error, ErrorCode, Reply, Request};

use crate::context::{Context, aside};
use crate::guard::Guard;
use crate::history::{LongBlame, Past};
use crate::hooks::{self, Agent, DaemonHandle, Memory};
use crate::off;
use crate::past::Origins;
use crate::review::Kept;
use crate::scope::Sweeper;
use crate::survival::{self, Agents};
use crate::tools::Searches;
use crate::undo::{Journal, Undoer};
use crate::worktrees::Worktrees;

/// The number of requests about earlier contents that are answered at the same
/// time. Each may need a file's whole history in memory.
const LOOKS_BACK: usize = 2;

/// The state of the features that answer requests.
pub(crate) struct Parts {
    /// The undos, and what is needed for their redo.
    pub(crate) journal: Arc<Journal>,
    /// The changes that the user has kept in a review.
    pub(crate) kept: Arc<Kept>,
    pub(crate) origins: Origins,
    /// What is left of long answers of `file/blame`.
    pub(crate) blamed: Arc<LongBlame>,
    /// What hooks' events have left.
    pub(crate) memory: Arc<Memory>,
    /// The other worktrees of the repository.
    pub(crate) worktrees: Arc<Worktrees>,
    /// Compares the files of the workspace for commands.
    pub(crate) sweeper: Arc<Sweeper>,
    pub(crate) searches: Searches,
    looks_back: Arc<Semaphore>,
}

impl Parts {
    pub(crate) fn new(
        journal: Arc<Journal>,
        kept: Kept,
        origins: Origins,
        memory: Memory,
        worktrees: Worktrees,
        sweeper: Sweeper,
    ) -> Self {
        Self {
            journal,
            kept: Arc::new(kept),
            origins,
            blamed: Arc::default(),
            memory: Arc::new(memory),
            worktrees: Arc::new(worktrees),
            sweeper: Arc::new(sweeper),
            searches: Searches::default(),
            looks_back: Arc::new(Semaphore::new(LOOKS_BACK)),
        }
    }

    async fn past(&self, cx: Context) -> Result<Past, Error> {
        let turn = Arc::clone(&self.looks_back).acquire_owned().await.ok();
        Ok(Past {
            log: cx.log()?,
            cx,
            origins: self.origins.clone(),
            blamed: Arc::clone(&self.blamed),
            _turn: turn,
        })
    }

    /// As [`past`](Self::past), once everything until now is recorded, also of
    /// files that are not watched (SCOPE-9).
    async fn synced(&self, cx: Context) -> Result<Past, Error> {
        // On a full disk the answer comes from what is stored (LOSS-3).
        let _is_full = cx.inside.ask(Sync {}).await;
        self.past(cx).await
    }

    /// Returns the parts that an undo uses. Once begun it is completed, even if
    /// the client disconnects.
    fn undoer(&self, cx: &Context, no_redo: bool) -> Result<Undoer, Error> {
        let cx = cx.at_leisure();
        let log = cx.log()?;
        Ok(Undoer {
            replacer: cx.replacer(&log),
            cx,
            log,
            origins: self.origins.clone(),
            known: None,
            no_redo,
            journal: Arc::clone(&self.journal),
            kept: Arc::clone(&self.kept),
            memory: Arc::clone(&self.memory),
        })
    }

    fn hooks(&self, cx: Context) -> DaemonHandle {
        DaemonHandle::new(
            cx,
            Arc::clone(&self.memory),
            Arc::clone(&self.worktrees),
            Arc::clone(&self.sweeper),
        )
    }
}

/// The answer to a request.
pub(crate) struct Answer {
    pub(crate) outcome: Result<Reply, Error>,
    /// The requests that revert what was begun, if the client no longer waits
    /// for the answer (ATTR-9).
    pub(crate) undo: Vec<Request>,
}

/// Answers a request of one of the methods below.
pub(crate) async fn answer(cx: Context, parts: &Parts, ask: ForShell) -> Answer {
    let mut undo = Vec::new();
    let outcome = row(cx, parts, ask, &mut undo).await;
    Answer { outcome, undo }
}

async fn row(
    cx: Context,
    parts: &Parts,
    ask: ForShell,
    undo: &mut Vec<Request>,
) -> Result<Reply, Error> {
    use ForShell as Ask;
    Ok(match ask {
        Ask::FileContent(ask) => Reply::FileContent(parts.synced(cx).await?.content(ask).await?),
        Ask::FileDiff(ask) => Reply::FileDiff(parts.synced(cx).await?.diff(ask).await?),
        Ask::FileBlame(ask) => Reply::FileBlame(parts.synced(cx).await?.blame(ask).await?),
        Ask::FileLog(ask) => Reply::FileLog(parts.past(cx).await?.log(ask).await?),
        Ask::ActivityList(ask) => Reply::ActivityList(parts.past(cx).await?.activity(ask).await?),
        Ask::FileRestore(ask) => Reply::FileRestore(parts.past(cx).await?.restore(ask).await?),

        Ask::Undo(ask) => Reply::Undo(parts.undoer(&cx, ask.no_redo)?.undo(&ask).await?),
        Ask::Redo(ask) => Reply::Redo(parts.undoer(&cx, ask.no_redo)?.redo(&ask).await?),
        Ask::UndoList(_) => Reply::UndoList(parts.undoer(&cx, false)?.list()),
        Ask::ReviewList(ask) => {
            Reply::ReviewList(parts.undoer(&cx, false)?.review_list(&ask).await?)
        }
        Ask::ReviewKeep(ask) => {
            Reply::ReviewKeep(parts.undoer(&cx, false)?.review_keep(&ask).await?)
        }
        Ask::ReviewUndo(ask) => {
            Reply::ReviewUndo(parts.undoer(&cx, ask.no_redo)?.review_undo(&ask).await?)
        }
        Ask::ReviewView(ask) => {
            Reply::ReviewView(parts.undoer(&cx, false)?.review_view(&ask).await?)
        }
        Ask::ReviewComment(ask) => {
            hooks::by_the_user(&parts.hooks(cx.clone()), UsersOnly::Comment)?;
            Reply::ReviewComment(parts.undoer(&cx, false)?.review_comment(&ask).await?)
        }
        Ask::Claim(ask) => Reply::Claim(parts.undoer(&cx, false)?.claim(&ask).await?),

        Ask::RecoveryList(ask) => {
            Reply::RecoveryList(recovery(&cx, move |guard| guard.list(ask.id.as_deref())).await?)
        }
        Ask::RecoveryShow(ask) => {
            let limit = cx.config.read_text;
            Reply::RecoveryShow(recovery(&cx, move |guard| guard.show(&ask.id, limit)).await?)
        }
        Ask::RecoveryRestore(ask) => recovery_restore(&cx, ask).await?,
        Ask::RecoveryDelete(ask) => {
            Reply::RecoveryDelete(recovery(&cx, move |guard| guard.delete(&ask.id)).await?)
        }

        Ask::HookEvent(ask) => Reply::HookEvent(hook(cx, parts, ask, undo).await?),
        Ask::HookAck(ask) => {
            hooks::acknowledge(&parts.hooks(cx), &ask.ack).await?;
            Reply::HookAck(Done {})
        }
        Ask::HookShell(ask) => Reply::HookShell(hooks::shell(&parts.hooks(cx), &ask).await?),
        Ask::HookAllow(ask) => Reply::HookAllow(hooks::allow(&parts.hooks(cx), &ask)?),
        Ask::HookJoin(ask) => Reply::HookJoin(hooks::join(&parts.hooks(cx), ask).await),

        Ask::SearchGrep(ask) => Reply::SearchGrep(parts.searches.search(&cx, ask).await?),
        Ask::SurvivalList(ask) => {
            let agents = cx.inside.look(Agents::of).await.unwrap_or_default();
            let look = survival::Look::open(cx)?;
            Reply::SurvivalList(look.list(&ask, &agents).await?)
        }
        Ask::WorktreeList(ask) => Reply::WorktreeList(parts.worktrees.list(&ask).await),

        Ask::Initialize(_)
        | Ask::Ping(_)
        | Ask::Status(_)
        | Ask::Shutdown(_)
        | Ask::Subscribe(_)
        | Ask::Unsubscribe(_)
        | Ask::FleetYield(_)
        | Ask::ContentsForget(_) => {
            let why = "the loop answers this request itself";
            return Err(Error::new(ErrorCode::InternalError, why));
        }
    })
}

/// Processes an event of an agent's hook.
///
/// # Errors
/// `invalidParams` for an unknown agent.
async fn hook(
    cx: Context,
    parts: &Parts,
    ask: HookEvent,
    undo: &mut Vec<Request>,
) -> Result<HookPrinted, Error> {
    let Some(hook) = Agent::named(&ask.agent) else {
        let hint = format!("an agent is one of {}", Agent::names());
        return Err(Error::invalid("no such agent").hint(hint));
    };
    let workspace = &cx.workspace;
    let off = off::off_with(&workspace.places, &workspace.root, &cx.config.off, cx.now);
    let itself = |pid| off::is_bypassed_itself(&workspace.places, hook.name, pid, cx.now);
    if off.is_some() || cx.process.is_some_and(itself) {
        return Ok(hooks::silence());
    }
    let answered = hooks::answer(hook, ask.input.0, parts.hooks(cx)).await;
    *undo = answered.undo;
    Ok(answered.printed)
}

async fn recovery<T: Send + 'static>(
    cx: &Context,
    work: impl FnOnce(&Guard) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let guard = Arc::clone(&cx.workspace.guard);
    aside(move || work(&guard)).await?
}

async fn recovery_restore(cx: &Context, ask: RecoveryRestore) -> Result<Reply, Error> {
    let replacer = cx.replacer(&cx.log()?);
    let (restored, is_written) = aside(move || replacer.restore(&ask.id, ask.no_redo)).await??;
    if is_written {
        // The versions come first, as those of a restore.
        let _ends = cx.inside.ask(Sync {}).await;
        let facts = restored.items.iter().map(|item| Fact::BroughtBack {
            session: item.author.as_ref().and_then(|by| by.session.clone()),
            path: item.path.clone(),
            version: None,
        });
        cx.inside.record(facts.collect());
    }
    Ok(Reply::RecoveryRestore(restored))
}
