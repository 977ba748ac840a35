//! Builds the daemon from the stored state.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use touchmark_engine::ledger::stored::{Unreadable, decode_snapshot, encode_snapshot};
use touchmark_engine::patterns::Patterns;
use touchmark_engine::{Engine, Fact, Input, Record, Saved, State};
use touchmark_proto::daemon::Configuration;
use touchmark_proto::editors::EditorDidSave;
use touchmark_proto::sessions::{SessionClose, SessionCompacted};
use touchmark_proto::{Millis, RelPath, Request, SessionId, native};

use super::clients::Clients;
use super::fleet::Fleet;
use super::outbox::Outbox;
use super::reading::Disk;
use super::snapshot;
use super::storage::Storage;
use super::telemetry::Telemetry;
use super::{Daemon, Options, Turn};
use crate::Error;
use crate::answers::Parts;
use crate::config::{Case, Config, Durability, probe_case_insensitive};
use crate::content::{self, Reader};
use crate::context::{Workspace, owner_in};
use crate::event::Event;
use crate::failpoint;
use crate::guard::{self, Guard, Replacer};
use crate::hooks::comments::Comments;
use crate::hooks::{Agent, Memory};
use crate::life::systemd::ServiceReport;
use crate::life::{Lock, own_files, usable_directory};
use crate::past::{Lineages, Looks, Origins};
use crate::review::Kept;
use crate::scope::{self, Sweeper};
use crate::socket::{DECODERS, Hub, Listener, Unfinished};
use crate::store::{self, Opened, StoreError};
use crate::telemetry;
use crate::time::Timeline;
use crate::undo::{self, Journal, Resumed};
use crate::watch::{Backlog, Watcher};
use crate::witness::Rings;
use crate::worktrees::Worktrees;

impl Daemon {
    pub(super) fn open(
        listener: Listener,
        lock: Lock,
        options: Options,
    ) -> Result<(Self, UnboundedReceiver<Event>, Resumed), Error> {
        let Options {
            workspace,
            places,
            config,
            ..
        } = &options;
        let (events, receiver) = unbounded_channel();
        usable_directory(&places.state)?;
        let store_options = store::Options {
            durability: match config.durability {
                Durability::Process => store::Durability::Process,
                Durability::Power => store::Durability::Power,
            },
            contents_total: config.contents_total,
            contents_file: config.contents_file,
            is_exported: telemetry::is_exported,
            ..store::Options::new(&places.state, workspace)
        };
        // Compiled beside the reading of the store, which takes longer.
        let globs = std::thread::Builder::new()
            .name("patterns".into())
            .spawn({
                let config = config.clone();
                let own = own_files(workspace, places);
                move || Globs::of(&config, &own)
            })
            .map_err(|error| part("patterns", &error))?;
        let (opened, kept) = open_store(&store_options, &events)?;
        let snapshot_bytes = opened.snapshot.as_ref().map_or(0, |body| body.len() as u64);
        let Opened {
            store,
            facts,
            trouble,
            left_out,
            exporting,
            refused,
            ..
        } = opened;
        if let Some(trouble) = &trouble {
            tracing::error!("state was lost: {trouble}");
        }

        let facts_since_snapshot = facts.len() as u64;
        // The newest facts may contain a client's request to forget, made just
        // before the last daemon ended.
        let forgotten = facts.iter().any(Record::forgets);
        let newest = facts.last().map_or(0, |fact| fact.time);
        let time = Timeline::open(&places.state, newest.max(kept.state.time));
        let case_insensitive = match config.case {
            Some(case) => case == Case::Insensitive,
            None => probe_case_insensitive(workspace),
        };
        let root = native::bytes(workspace);
        let globs = match globs.join() {
            Ok(globs) => globs?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let mut engine_config = config.engine(root.to_vec(), case_insensitive);
        engine_config.secrets = globs.secrets.clone();
        engine_config.utc_offset = crate::time::utc_offset();
        let mut engine = Engine::restore(engine_config, kept, facts, time.now());
        engine.set_subscribed(false);
        if engine.deadline().is_none() {
            time.follow();
        }

        failpoint::pass("start: the state is restored");
        let backlog = Arc::new(Backlog::default());
        let (seen, waiting) = (events.clone(), Arc::clone(&backlog));
        let mut watcher = Watcher::new(workspace, &places.fence, config.watch, move |raw| {
            if let Some(admitted) = waiting.admit(raw) {
                let _loop_has_ended = seen.send(Event::Watch(admitted));
            }
        })
        .map_err(|error| part("watcher", &error))?;
        watcher.watch_beside(places);
        let reader = Reader::new(
            workspace,
            globs.secrets,
            config.contents_file,
            content::MAX_BYTES,
        )
        .without(globs.own);

        failpoint::pass("start: the watcher runs");
        let guard = Guard::open(
            guard::Settings {
                root: workspace.clone(),
                state: places.state.clone(),
                keep: guard::Keep {
                    age: config.recovery_age,
                    bytes: config.recovery_bytes,
                    ignored: config.recovery_ignored,
                },
                durable: config.durability == Durability::Power,
                writable: refused.is_none(),
                protected: globs.protected,
                contents_total: config.contents_total,
            },
            reader.clone(),
            time.clone(),
        )?;
        let guard = Arc::new(guard);

        failpoint::pass("start: writes cut short are settled");
        let journal = Journal::open(&places.state, config.durability == Durability::Power)?;
        let kept_lines = Kept::open(&places.state, config.durability == Durability::Power);
        let comments = Comments::open(&places.state, config.durability == Durability::Power);
        let worktrees = Worktrees::open(
            workspace,
            places,
            reader.clone(),
            config.durability == Durability::Power,
        );
        worktrees.keep(|session| engine.state().sessions.contains_key(session));
        let undone = match refused {
            None => {
                let guard = Arc::clone(&guard);
                // What the journal has was stored by an earlier daemon.
                let log = store.readers().open().map(Mutex::new).map(Arc::new);
                let owner = log.map(|log| owner_in(&log));
                let owner = move |path: &RelPath| owner.as_ref().ok().and_then(|owner| owner(path));
                let replacer = Replacer::new(guard, options.umask, |_| false, owner);
                undo::resume(&journal, &replacer, workspace)
            }
            Some(_) => undo::Resumed::default(),
        };
        let hub = Hub {
            events: events.clone(),
            requests: AtomicU64::new(1),
            max_frame: usize::try_from(config.frame).unwrap_or(usize::MAX),
            root: Arc::from(&*root),
            time: time.clone(),
            unfinished: Unfinished::default(),
            decoders: Semaphore::new(DECODERS),
        };
        let rings = Rings::new(
            places.clone(),
            workspace.clone(),
            Agent::programs(),
            events.clone(),
        );
        let sweeper = Sweeper::new(
            scope::Settings {
                root: workspace.clone(),
                reader: reader.clone(),
                places: places.clone(),
                exclude: globs.out_of_scope,
                keep_file: config.contents_file,
                keep_total: config.contents_total / 4,
                fences: rings.fences().clone(),
                guard: Some(Arc::clone(&guard)),
            },
            events.clone(),
        );
        let journal = Arc::new(journal);
        let recorded = {
            let journal = Arc::clone(&journal);
            Arc::new(move || journal.recorded())
        };
        let newest = engine.state().n;
        let looks = Looks::new(workspace.clone(), places.clone(), store.readers(), newest);
        let lineages = Lineages::new(time.clone(), workspace.clone(), recorded);
        let parts = Parts::new(
            journal,
            kept_lines,
            Origins {
                looks: Arc::new(looks),
                lineages: Arc::new(lineages),
            },
            Memory::new(engine.state(), comments),
            worktrees,
            sweeper,
        );
        let mut daemon = Self {
            configuration: Configuration {
                refused: options.refused.clone(),
                at_restart: Vec::new(),
            },
            workspace: Arc::new(Workspace {
                root: workspace.clone(),
                places: places.clone(),
                files: reader,
                guard,
                store: store.readers(),
                time,
            }),
            parts: Arc::new(parts),
            engine,
            disk: Disk::new(watcher, backlog, rings),
            storage: Storage::new(
                store,
                trouble,
                left_out,
                refused,
                snapshot::Next::after(snapshot_bytes, facts_since_snapshot),
            ),
            clients: Clients::new(listener, lock, hub),
            turn: Turn {
                newest_fact: newest,
                forgotten,
                ..Turn::default()
            },
            outbox: Outbox::default(),
            telemetry: Telemetry::default(),
            fleet: Fleet::new(&options.places),
            manager: ServiceReport::new(options.manager.clone()),
            events,
            ending: None,
            options,
        };
        daemon.begin_telemetry(exporting);
        Ok((daemon, receiver, undone))
    }

    /// Runs the first turn: everything tracked is compared with the disk, and
    /// sessions that were unused for long are forgotten.
    ///
    /// `undone` is what interrupted undos have written, which were completed.
    pub(super) fn begin(&mut self, undone: Resumed) {
        let mut effects = Vec::new();
        self.engine.start(self.workspace.time.now(), &mut effects);
        self.turn.effects.extend(effects);
        self.carry_out_all();
        for (path, hash) in undone.written {
            // The user's undo wrote these files just before the daemon's exit.
            self.ask_internally(Request::EditorDidSave(EditorDidSave::new(&path, hash)));
        }
        self.record_undone(undone.facts);
        self.forget_unused();
        if self.storage.left_out {
            self.forget_contexts();
        }
        self.close_turn();
        if self.storage.loss.is_some() {
            // Stored now, so that the loss is on record even after a crash.
            self.snapshot();
        }
        self.prune();
    }

    /// Records whose changes the completed undos concern, unless the earlier
    /// daemon has done so just before its exit.
    fn record_undone(&mut self, facts: Vec<(Millis, Fact)>) {
        let Some(first) = facts.iter().map(|(begun, _)| *begun).min() else {
            return;
        };
        let mut known = Vec::new();
        let log = self.storage.store.readers().open();
        if let Ok(log) = &log {
            let mut before = u64::MAX;
            while let Ok(page) = log.other_facts_before(before, 1_000)
                && let Some(oldest) = page.last()
            {
                before = oldest.n;
                let is_over = oldest.time < first;
                known.extend(page.into_iter().map(|record| (record.time, record.fact)));
                if is_over {
                    break;
                }
            }
        }
        let is_new = |(begun, fact): &(Millis, Fact)| {
            if let Fact::Version(version) = fact {
                let newest = |log: &store::Reader| log.history(&version.path, None, 1).ok()?.pop();
                let newest = log.as_ref().ok().and_then(newest);
                return !newest.is_some_and(|newest| match newest.fact {
                    Fact::Version(newest) => newest.held.hash == version.held.hash,
                    _ => false,
                });
            }
            let mut known = known.iter();
            !known.any(|(time, other)| time >= begun && other == fact)
        };
        let facts = facts.into_iter().filter(is_new).map(|(_, fact)| fact);
        self.feed(Input::Outcome(facts.collect()));
    }

    /// Removes all lines from the record of what is in the sessions' contexts,
    /// so that every read is answered in full. The facts that were left out may
    /// have been compactions.
    fn forget_contexts(&mut self) {
        let sessions: Vec<SessionId> = self.engine.state().sessions.keys().cloned().collect();
        for session in sessions {
            self.ask_internally(Request::SessionCompacted(SessionCompacted::new(session)));
        }
    }

    /// Forgets the sessions that were unused for long.
    pub(super) fn forget_unused(&mut self) {
        let oldest = self
            .workspace
            .time
            .before(self.options.config.sessions_keep);
        let sessions = &self.engine.state().sessions;
        let unused: Vec<SessionId> = sessions
            .iter()
            .filter(|(_, session)| session.last_active < oldest)
            .map(|(id, _)| id.clone())
            .collect();
        let forgotten = self.turn.forgotten;
        for session in unused {
            tracing::info!(%session, "forgetting session {session}, unused for long");
            self.ask_internally(Request::SessionClose(SessionClose {
                session,
                forget: true,
            }));
        }
        // A session that was dropped for its age needs no purge, since no
        // client requested one.
        self.turn.forgotten = forgotten;
    }

    /// Stores a snapshot of the engine's state, so that the next start need not
    /// read the facts up to now.
    pub(super) fn snapshot(&mut self) {
        let body = encode_snapshot(self.engine.state(), self.engine.stamps());
        self.storage.next_snapshot = snapshot::Next::after(body.len() as u64, 0);
        self.storage.store.snapshot(self.engine.state().n, body);
        self.storage.stamps_in_snapshot = self.engine.stamps_noted();
        self.prune();
    }

    pub(super) fn prune(&self) {
        // On another thread, since a start and its clients wait for this one.
        let time = self.workspace.time.clone();
        let keeper = std::thread::Builder::new().name("clock".into());
        if let Err(error) = keeper.spawn(move || time.keep()) {
            tracing::debug!("the clock is not stored: {error}");
        }
        let config = &self.options.config;
        self.storage.store.prune(store::Prune {
            keep_per_path: config.versions_per_path,
            older_than: self.workspace.time.before(config.versions_age),
            // Everything that a checkpoint may refer to stays stored (CHK-1).
            floor: self.engine.state().oldest_needed(),
            pinned_before: self.workspace.time.before(store::PINNED),
        });
    }
}

/// The patterns of the configuration, compiled.
struct Globs {
    secrets: Patterns,
    protected: Patterns,
    out_of_scope: Patterns,
    /// touchmark's own files in the workspace. They are protected, and no
    /// command's.
    own: Patterns,
}

impl Globs {
    fn of(config: &Config, own: &[String]) -> Result<Self, Error> {
        let compiled = |patterns: &[String], own: &[String], key| {
            let all = patterns.iter().chain(own).map(String::as_str);
            Patterns::new(all).map_err(|error| part(key, &error))
        };
        Ok(Self {
            secrets: compiled(&config.contents_exclude, &[], "contents.exclude")?,
            protected: compiled(&config.guard_protect, own, "guard.protect")?,
            out_of_scope: compiled(&config.scope_exclude, own, "scope.exclude")?,
            own: compiled(&[], own, "own files")?,
        })
    }
}

/// Opens the store and decodes its state. A snapshot that cannot be decoded is
/// treated like any other bad record: it alone is left out, and the log remains
/// (DUR-2).
fn open_store(
    options: &store::Options,
    events: &UnboundedSender<Event>,
) -> Result<(Opened, Saved), Error> {
    let open = || {
        let events = events.clone();
        store::open(options, move |event| {
            let _loop_has_ended = events.send(Event::Store(event));
        })
    };
    let opened = open()?;
    let cause = match kept(&opened) {
        Ok(kept) => return Ok((opened, kept)),
        // Nothing was written to the store, so it stays as it is.
        Err(Unreadable::Newer { found, known }) => {
            return Err(StoreError::newer_record(found, known).into());
        }
        Err(Unreadable::Damaged(cause)) => cause,
    };
    if opened.refused.is_some() {
        // The next run sets the snapshot aside.
        let opened = Opened {
            snapshot: None,
            facts: Vec::new(),
            last: 0,
            trouble: Some(format!("the snapshot was not understood ({cause})")),
            ..opened
        };
        let state = State::new(opened.epoch, true);
        return Ok((opened, state.into()));
    }
    opened.store.close();
    store::give_up_snapshot(options, format!("the snapshot is no state: {cause}"))?;
    let opened = open()?;
    let state = State::new(opened.epoch, true);
    Ok((opened, state.into()))
}

/// Returns the state with which the daemon continues.
fn kept(opened: &Opened) -> Result<Saved, Unreadable> {
    let epoch = opened.epoch;
    let Some(snapshot) = &opened.snapshot else {
        return Ok(State::new(epoch, opened.trouble.is_some()).into());
    };
    let mut kept = decode_snapshot(snapshot)?;
    let state = &mut kept.state;
    let another = std::mem::replace(&mut state.epoch, epoch) != epoch;
    // A run without a writable store has a separate epoch, although nothing was
    // lost.
    if another && (opened.refused.is_none() || opened.trouble.is_some()) {
        state.after_loss = true;
        for session in state.sessions.values_mut() {
            session.reset_told = false;
        }
    }
    Ok(kept)
}

fn part(part: &'static str, cause: &dyn std::fmt::Display) -> Error {
    Error::Part {
        part,
        cause: cause.to_string(),
    }
}
