//! The table of methods: one row for each method. Code that needs a property of
//! a request before it takes effect, here or in the shell, reads it from the
//! row. A method without a row does not compile.
//!
//! A row has these columns:
//!
//! - `Changes` or `Query`: whether the method is refused with `storage` while
//!   facts cannot be stored (LOSS-3). A query can cause facts too, but its
//!   answer does not depend on their being stored.
//! - `Introduces`, `Opens`, `Knows`, `Asks` or `Names`, with the field: the
//!   session, and how it is named ([`Naming`]).
//! - `Tracks`, `Looks` or `Names`, with the fields: the paths, and how they are
//!   used ([`Use`]).
//! - When it takes effect, and what its answer covers ([`About`]). `at_once`:
//!   without a fence, unless the handler asks for one. `fenced`: after a fence
//!   (SYNC-1, ATTR-16). `synced`: after a fence, unless the fields `sync` and
//!   `verify` say otherwise.
//! - The handler, or the shell.
//!
//! `if` restricts the column before it; `but ... if` gives the value that
//! replaces it under that condition.

use touchmark_proto::activity::ActivityList;
use touchmark_proto::checkpoints::DeletedOperation;
use touchmark_proto::claim::Claim;
use touchmark_proto::daemon::{
    ContentsForget, Initialize, Ping, Shutdown, Status, Subscribe, Unsubscribe,
};
use touchmark_proto::edits::{CommitFile, EditFile};
use touchmark_proto::files::Snapshot;
use touchmark_proto::fleet::FleetYield;
use touchmark_proto::history::{FileBlame, FileContent, FileDiff, FileLog, FileRestore};
use touchmark_proto::hooks::{HookAck, HookAllow, HookEvent, HookJoin, HookShell};
use touchmark_proto::retention::RetentionItem;
use touchmark_proto::review::{
    ReviewComment, ReviewKeep, ReviewList, ReviewNamed, ReviewUndo, ReviewView,
};
use touchmark_proto::search::SearchGrep;
use touchmark_proto::sessions::Truncated;
use touchmark_proto::survival::SurvivalList;
use touchmark_proto::undo::{Redo, Undo, UndoList};
use touchmark_proto::worktrees::WorktreeList;
use touchmark_proto::writes::{RecoveryDelete, RecoveryList, RecoveryRestore, RecoveryShow};
use touchmark_proto::{ClientPath, Request, SessionId};

/// The properties of a request that are known before it takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodRow {
    /// Whether the request is refused while facts cannot be stored.
    pub changes: bool,
    /// How the request names its session.
    pub naming: Naming,
    /// How the paths that the request names are used.
    pub(crate) paths: Use,
    /// Whether the request waits for a fence.
    pub(crate) fence: bool,
    /// Whether everything in its scope is read and hashed first (SYNC-4).
    pub(crate) verify: bool,
    /// What the answer covers.
    pub(crate) about: About,
    /// Whether the shell answers the request.
    pub(crate) by_shell: bool,
}

/// How a request names its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// By its id only, since here an agent introduces itself. Opens the
    /// session.
    Introduces,
    /// By its id or label. The request records something, so an unknown name
    /// opens a session with exactly that id. It is never resolved as the
    /// beginning of another session's id.
    Opens,
    /// By its id or label. The request changes what is recorded of a session,
    /// so the session has to be known.
    Knows,
    /// By its id, its label, or a unique beginning of one of them. The request
    /// is a query.
    Asks,
    /// By its id or label. The request ends something, filters, or does not
    /// concern the session's record: an unknown name has no effect.
    Names,
}

impl Naming {
    /// Returns whether an unknown name opens a session.
    pub(crate) fn opens(self) -> bool {
        matches!(self, Self::Introduces | Self::Opens)
    }

    /// Returns `other` if `so` is true, else `self`.
    fn or(self, other: Self, so: bool) -> Self {
        if so { other } else { self }
    }
}

/// How a request uses the paths that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// The paths are watched and read from the request's arrival on (SEEN-1),
    /// and their logs begin.
    Tracks,
    /// The paths are watched and read until the request is answered.
    Looks,
    /// The paths are not read, unless the handler asks for it.
    Names,
}

/// What an answer covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// The paths that the request names; if it names none, the files of its
    /// session.
    Paths,
    /// The files of the session that the request names; if it names none,
    /// everything.
    Session,
    /// The paths that the request names, and those of the edit that it ends.
    Edit,
    /// The whole workspace.
    Everything,
}

/// An edit as a request names it: by its name, or by its session and call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EditNamed<'a> {
    pub edit: Option<&'a str>,
    pub session: Option<&'a SessionId>,
    pub call: Option<&'a str>,
}

/// Passes all rows to another macro. The first line names what the handlers
/// use.
macro_rules! table {
    ($rows:ident) => {
        $rows! {
            (ask, core, request, pending)
            shell {
                Initialize:       Query,   Names [session], Names [],     at_once;
                Ping:             Query,   Names [],        Names [],     at_once;
                Status:           Query,   Names [],        Names [],     at_once;
                Shutdown:         Query,   Names [],        Names [],     at_once;
                Subscribe:        Query,   Names [session], Names [],     at_once;
                Unsubscribe:      Query,   Names [],        Names [],     at_once;
                RecoveryList:     Query,   Names [],        Names [],     at_once;
                RecoveryShow:     Query,   Names [],        Names [],     at_once;
                RecoveryRestore:  Changes, Names [],        Names [],     fenced;
                RecoveryDelete:   Changes, Names [],        Names [],     at_once;
                SearchGrep:       Query,   Names [session], Names [path], fenced;
                ContentsForget:   Changes, Names [],        Names [],     at_once;
                // The rules of a hook send their own requests, which wait for their own
                // fences.
                HookAck:          Query,   Names [],        Names [],     at_once;
                HookAllow:        Query,   Names [],        Names [path], at_once;
                HookEvent:        Query,   Names [],        Names [],     at_once;
                HookShell:        Query,   Names [],        Names [],     at_once;
                HookJoin:         Query,   Names [session], Names [],     at_once;
                // These methods send their own requests, which wait for their own
                // fences.
                Undo:             Changes, Knows [session],  Names [path paths], at_once;
                Redo:             Changes, Names [],        Names [],     at_once;
                UndoList:         Query,   Names [],        Names [],     at_once;
                ReviewList:       Query,   Asks [session],  Names [paths], at_once;
                ReviewKeep:       Changes, Names [],        Names [hunks], at_once;
                ReviewUndo:       Changes, Names [],        Names [hunks], at_once;
                ReviewView:       Query,   Names [],        Names [hunks], at_once;
                ReviewComment:    Query,   Names [],        Names [path], at_once;
                // These methods also send their own requests, which wait for their own
                // fences.
                FileContent:      Query,   Names [],        Names [path], at_once;
                FileDiff:         Query,   Names [],        Names [path paths], at_once;
                FileBlame:        Query,   Names [],        Names [path], at_once;
                FileLog:          Query,   Names [],        Names [paths], at_once;
                FileRestore:      Changes, Names [],        Names [path], at_once;
                ActivityList:     Query,   Asks [session],  Names [],     at_once;
                SurvivalList:     Query,   Asks [session],  Names [],     at_once;
                WorktreeList:     Query,   Names [],        Names [],     at_once;
                FleetYield:       Query,   Names [],        Names [],     at_once;
                Claim:            Changes, Knows [session], Names [paths], at_once;
            }
            engine {
                Sync:             Query,   Names [],        Names [],     fenced(Everything)
                    => core.sync(pending);
                Stats:            Query,   Asks [session], Names [],     at_once
                    => core.base.stats(&ask);
                Audit:            Query,   Names [],        Names [],     fenced(Everything)
                    => core.audit(request, pending);

                SessionOpen:      Changes, Introduces [session], Names [],     fenced(Session)
                    => core.base.session_open(pending, &ask);
                // This ends command windows, whose commands may have written anywhere.
                SessionClose:     Changes, Names [session], Names [],     fenced(Everything)
                    => core.session_close(request, pending, &ask);
                SessionList:      Query,   Names [],        Names [],     at_once
                    => core.base.view().session_list(&ask);
                SessionCompacted: Changes, Knows [session], Names [keep], at_once
                    => core.base.session_compacted(&ask);
                SessionTruncated: Changes, Knows [session], Names [items], at_once
                    => core.base.session_truncated(&ask);

                FileRead:         Changes, Opens [session], Tracks [path], synced(Paths)
                    => core.base.file_read(pending, &ask);
                FileReadText:     Changes if ask.track != Some(false),
                                  Names [session] but Opens if ask.track != Some(false),
                                  Tracks [path] if ask.track != Some(false), synced(Paths)
                    => core.base.file_read_text(pending, &ask);
                FileMention:      Changes, Opens [session], Tracks [path], fenced(Paths)
                    => core.base.file_mention(pending, &ask);
                FileInvalidate:   Changes, Knows [session], Names [path], at_once
                    => core.base.file_invalidate(&ask);
                FileStatus:       Query,   Asks [session], Looks [paths], synced(Paths)
                    => core.base.file_status(pending, &ask);
                FileList:         Query,   Asks [session], Names [],     synced(Session)
                    => core.base.view().file_list(pending, &ask);
                FileRecent:       Query,   Asks [session], Names [],     synced(Session)
                    => core.base.view().file_recent(pending, &ask);
                FileIsStale:      Query,   Asks [session], Names [path], at_once
                    => core.base.view().file_is_stale(&ask);
                FileHistory:      Query,   Names [],        Looks [path], synced(Paths)
                    => core.base.view().file_history(request, pending, &ask);
                FileUntrack:      Changes, Knows [session], Names [path], at_once
                    => core.file_untrack(&ask);
                FileSnapshot:     Query,   Names [],        Looks [path], fenced(Paths)
                    => core.base.view().file_snapshot(pending, &ask);
                FileDetect:       Query,   Names [],        Looks [snapshot], fenced(Paths)
                    => core.base.view().file_detect(pending, &ask);

                EditBegin:        Changes, Opens [session], Tracks [files], fenced(Paths)
                    => core.base.edit_begin(pending, &ask);
                EditMark:         Changes, Opens [session], Tracks [path], fenced(Paths)
                    => core.base.edit_mark(pending, &ask);
                EditCommit:       Changes, Opens [session], Tracks [files], fenced(Edit)
                    => core.edit_commit(pending, &ask);
                EditAbort:        Changes, Names [session], Names [],     fenced(Edit)
                    => core.edit_abort(&ask);
                FileWrite:        Changes, Opens [session], Tracks [path], fenced(Paths)
                    => core.file_write(pending, &ask);
                FileEdit:         Changes, Opens [session], Tracks [path], fenced(Paths)
                    => core.file_edit(pending, &ask);
                QuotesNormalize:  Query,   Names [],        Names [],     at_once
                    => done(Reply::QuotesNormalize(QuotesNormalized { text: quotes::normalize(&ask.text) }));
                QuotesMatch:      Query,   Names [],        Names [],     at_once
                    => done(Reply::QuotesMatch(quotes::find(&ask.needle, &ask.haystack)));

                // With `since`, the answer comes from the log, whatever the session
                // tracks.
                ModifiedList:     Query,   Asks [session], Names [],     synced(Session if ask.since.is_none())
                    => core.base.view().modified_list(request, pending, &ask);
                ModifiedTake:     Changes if !ask.peek,
                                  Asks [session] but Knows if !ask.peek, Names [paths], synced(Session)
                    => core.base.modified_take(pending, &ask);
                ModifiedAck:      Changes, Knows [session], Names [],     at_once
                    => core.base.modified_ack(&ask);

                // Which buffers are unsaved is not recorded as a fact.
                EditorDidOpen:    Query,   Names [],        Names [path], at_once
                    => core.base.view().editor_did_open(&ask);
                EditorDidClose:   Query,   Names [],        Names [path], at_once
                    => core.base.editor_did_close(pending, &ask);
                EditorDirty:      Query,   Names [],        Names [path], at_once
                    => core.base.editor_dirty(pending, &ask);
                EditorDidSave:    Changes, Names [],        Names [path], at_once(Paths)
                    => core.editor_did_save(pending, &ask);

                CommandBegin:     Changes, Opens [session], Names [],     fenced(Everything)
                    => core.command_begin(request, pending, &ask);
                AgentWitness:     Query,   Names [],        Names [],     at_once
                    => core.base.agent_witness(&ask);
                CommandWitness:   Query,   Names [],        Names [],     at_once
                    => core.base.command_witness(&ask);
                CommandEnd:       Changes, Names [session], Names [],     fenced(Everything)
                    => core.command_end(request, pending, &ask);
                CommandList:      Query,   Asks [session], Names [],     at_once
                    => core.base.command_list(&ask);

                CheckpointCreate: Changes, Opens [session], Names [],     fenced(Everything)
                    => core.base.checkpoint_create(&ask);
                CheckpointList:   Query,   Asks [session], Names [],     at_once
                    => core.base.checkpoint_list(&ask);
                CheckpointDelete: Changes, Knows [session], Names [],     at_once
                    => core.base.checkpoint_delete(&ask);
                CheckpointDetect: Changes if ask.store_warning,
                                  Asks [session] but Opens if ask.store_warning,
                                  Names [paths deleted],                  synced(Everything)
                    => core.base.checkpoint_detect(pending, &ask);
                WarningStore:     Changes, Opens [session], Names [files], at_once
                    => core.base.warning_store(&ask);
                WarningTake:      Changes, Knows [session], Names [],     at_once
                    => core.base.warning_take(&ask);
                WarningCleanup:   Changes, Names [],        Names [],     at_once
                    => core.base.warning_cleanup(&ask);

                CallCheck:        Query,   Opens [session], Names [],     synced(Everything)
                    => core.base.call_check(pending, &ask);
                CallRecord:       Changes, Opens [session], Names [paths], fenced(Everything)
                    => core.base.call_record(pending, &ask);
                CallStats:        Query,   Asks [session], Names [],     at_once
                    => core.base.call_stats(&ask);
                CallClear:        Changes, Knows [session], Names [],     at_once
                    => core.base.call_clear(&ask);
                RetentionRank:    Query,   Asks [session], Names [items], fenced(Paths)
                    => core.base.retention_rank(pending, &ask);
                TaskSave:         Changes, Opens [session], Names [],     at_once
                    => core.base.task_save(pending, &ask);
                TaskList:         Query,   Asks [session], Names [],     at_once
                    => core.base.task_list(pending, &ask);
                TaskRemove:       Changes, Names [session], Names [],     at_once
                    => core.base.task_remove(&ask);
                TaskCleanup:      Changes, Names [],        Names [],     at_once
                    => core.base.task_cleanup(pending, &ask);
                ModelRecord:      Changes, Opens [session], Names [],     at_once
                    => core.base.model_record(&ask);
                ModelList:        Query,   Asks [session], Names [],     at_once
                    => core.base.model_list(&ask);
            }
        }
    };
}

pub(crate) use table;

/// Generates the accessors from the rows.
macro_rules! rows {
    (
        ($ask:ident, $core:ident, $request:ident, $pending:ident)
        shell {
            $($shell:ident: $s_change:ident,
                $s_whose:ident [$($s_session:ident)?], Names [$($s_path:ident)*],
                $s_need:ident $(($s_about:ident))?;)*
        }
        engine {
            $($own:ident: $change:ident $(if $change_if:expr)?,
                $whose:ident [$($session:ident)?] $(but $more:ident if $more_if:expr)?,
                $use:ident [$($path:ident)*] $(if $use_if:expr)?,
                $need:ident $(($about:ident $(if $about_if:expr)?))?
                => $handler:expr;)*
        }
    ) => {
        /// Returns the row of a request.
        #[allow(unused_variables)]
        pub fn row(request: &Request) -> MethodRow {
            match request {
                $(Request::$shell($ask) => MethodRow {
                    changes: is!($s_change),
                    naming: Naming::$s_whose,
                    paths: Use::Names,
                    fence: fence!($s_need, $ask),
                    verify: verify!($s_need, $ask),
                    about: About::Everything,
                    by_shell: true,
                },)*
                $(Request::$own($ask) => MethodRow {
                    changes: is!($change) $(&& $change_if)?,
                    naming: Naming::$whose $(.or(Naming::$more, $more_if))?,
                    paths: Use::$use $(.if_so($use_if))?,
                    fence: fence!($need, $ask),
                    verify: verify!($need, $ask),
                    about: About::Everything $(.or(About::$about, true $(&& $about_if)?))?,
                    by_shell: false,
                },)*
            }
        }

        /// Returns the session that a request names, or `None`.
        #[allow(unused_variables)]
        pub fn session(request: &Request) -> Option<&SessionId> {
            match request {
                $(Request::$shell($ask) => None $(.or($ask.$s_session.session()))?,)*
                $(Request::$own($ask) => None $(.or($ask.$session.session()))?,)*
            }
        }

        /// Returns the session that a request names as a mutable reference, so
        /// that a label can be replaced with the id.
        #[allow(unused_variables)]
        pub(crate) fn session_mut(request: &mut Request) -> Option<&mut SessionId> {
            match request {
                $(Request::$shell($ask) => None $(.or($ask.$s_session.session_mut()))?,)*
                $(Request::$own($ask) => None $(.or($ask.$session.session_mut()))?,)*
            }
        }

        /// Returns the paths that a request names.
        #[allow(unused_variables)]
        pub fn paths(request: &Request) -> Vec<&ClientPath> {
            let mut paths = Vec::new();
            match request {
                $(Request::$shell($ask) => { $($ask.$s_path.add_to(&mut paths);)* })*
                $(Request::$own($ask) => { $($ask.$path.add_to(&mut paths);)* })*
            }
            paths
        }

        /// Returns the edit that a request ends, or `None`.
        #[allow(unused_variables)]
        pub(crate) fn edit_named(request: &Request) -> Option<EditNamed<'_>> {
            match request {
                $(Request::$shell(_) => None,)*
                $(Request::$own($ask) => None $(.or(edit!($about, $ask)))?,)*
            }
        }

        /// A request that the shell answers, in the order of its connection.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // each variant has its parameters' name, and is documented there
        pub enum ForShell { $($shell($shell),)* }
    };
}

/// Translates the word of a column into its value.
macro_rules! is {
    (Changes) => {
        true
    };
    (Query) => {
        false
    };
}

macro_rules! fence {
    (at_once, $ask:ident) => {
        false
    };
    (fenced, $ask:ident) => {
        true
    };
    (synced, $ask:ident) => {
        $ask.sync != Some(false)
    };
}

macro_rules! verify {
    (synced, $ask:ident) => {
        $ask.verify == Some(true)
    };
    ($need:ident, $ask:ident) => {
        false
    };
}

macro_rules! edit {
    (Edit, $ask:ident) => {
        Some(EditNamed {
            edit: $ask.edit.as_deref(),
            session: $ask.session.as_ref(),
            call: $ask.call_id.as_deref(),
        })
    };
    ($about:ident, $ask:ident) => {
        None
    };
}

table!(rows);

impl Use {
    fn if_so(self, so: bool) -> Self {
        if so { self } else { Self::Looks }
    }
}

impl About {
    fn or(self, other: Self, so: bool) -> Self {
        if so { other } else { self }
    }
}

/// A field that names a session.
trait NamesSession {
    fn session(&self) -> Option<&SessionId>;
    fn session_mut(&mut self) -> Option<&mut SessionId>;
}

impl NamesSession for SessionId {
    fn session(&self) -> Option<&SessionId> {
        Some(self)
    }
    fn session_mut(&mut self) -> Option<&mut SessionId> {
        Some(self)
    }
}

impl NamesSession for Option<SessionId> {
    fn session(&self) -> Option<&SessionId> {
        self.as_ref()
    }
    fn session_mut(&mut self) -> Option<&mut SessionId> {
        self.as_mut()
    }
}

/// A field that names files.
trait NamesFiles {
    fn add_to<'a>(&'a self, paths: &mut Vec<&'a ClientPath>);
}

impl NamesFiles for ClientPath {
    fn add_to<'a>(&'a self, paths: &mut Vec<&'a ClientPath>) {
        paths.push(self);
    }
}

impl<T: NamesFiles> NamesFiles for Option<T> {
    fn add_to<'a>(&'a self, paths: &mut Vec<&'a ClientPath>) {
        if let Some(named) = self {
            named.add_to(paths);
        }
    }
}

impl<T: NamesFiles> NamesFiles for Vec<T> {
    fn add_to<'a>(&'a self, paths: &mut Vec<&'a ClientPath>) {
        for named in self {
            named.add_to(paths);
        }
    }
}

macro_rules! names_by_path {
    ($($part:ty)*) => {
        $(impl NamesFiles for $part {
            fn add_to<'a>(&'a self, paths: &mut Vec<&'a ClientPath>) {
                self.path.add_to(paths);
            }
        })*
    };
}

names_by_path! {
    CommitFile DeletedOperation EditFile RetentionItem ReviewNamed Snapshot Truncated
}
