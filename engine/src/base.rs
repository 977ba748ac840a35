//! The recorded state and the tracker, and how facts are recorded and events
//! published. It has no access to pending requests, nor to the deadlines of
//! edits and command windows.

use std::collections::BTreeSet;

use touchmark_proto::events::Happening;
use touchmark_proto::{Hash, Millis, RelPath, SessionId};

use crate::config::Config;
use crate::counts::Counts;
use crate::effect::{Effect, Notice};
use crate::ledger::record::{Fact, Record};
use crate::ledger::session_memory::Note;
use crate::ledger::state::State;
use crate::timers::Timer;
use crate::tracker::Tracker;
use crate::tracker::files::Files;
use crate::tracker::turn::Turn;
use crate::unsaved::Unsaved;
use crate::view::View;
use crate::view::names_used::NamesUsed;
use crate::witnesses::Witnesses;

/// The part of the engine that most handlers need.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub config: Config,
    pub state: State,
    pub tracker: Tracker,
    pub now: Millis,
    pub out: Vec<Effect>,
    pub timers: BTreeSet<(Millis, Timer)>,
    pub counts: Counts,
    /// At least one subscriber is connected.
    pub subscribed: bool,
    pub unsaved: Unsaved,
    /// The user has paused touchmark (OFF-2).
    pub paused: bool,
    pub witnesses: Witnesses,
    /// Sessions, and files that others removed: the session was asked whether
    /// it wants to create the file again (GUARD-4).
    pub asked_of: BTreeSet<(SessionId, RelPath)>,
    /// The names that the answer to the current request uses.
    pub names_used: NamesUsed,
}

impl Base {
    /// Returns the base for this state, with nothing watched yet. No subscriber
    /// is known, so events are built.
    pub(crate) fn new(config: Config, state: State, stamps: Files, now: Millis) -> Self {
        Self {
            tracker: Tracker::new(&config, stamps, state.paths.keys()),
            now: now.max(state.time),
            config,
            state,
            out: Vec::new(),
            timers: BTreeSet::new(),
            counts: Counts::default(),
            subscribed: true,
            unsaved: Unsaved::default(),
            paused: false,
            witnesses: Witnesses::default(),
            asked_of: BTreeSet::new(),
            names_used: NamesUsed::default(),
        }
    }

    /// Returns read access to all of it.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            state: &self.state,
            tracker: &self.tracker,
            config: &self.config,
            now: self.now,
            unsaved: &self.unsaved,
            asked_of: &self.asked_of,
            names_used: &self.names_used,
        }
    }

    /// Returns the part that orders effects and sets timers.
    pub(crate) fn turn(&mut self) -> Turn<'_> {
        Turn {
            tracker: &mut self.tracker,
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            timers: &mut self.timers,
            counts: &mut self.counts,
        }
    }

    /// Records a fact: folds it into the state and orders it to be stored.
    /// Returns its number. Records first the copies and uses of names that have
    /// to come before it.
    pub(crate) fn record(&mut self, fact: Fact) -> u64 {
        for copied in self.turn().copied_before(&fact) {
            self.record(copied);
        }
        for used in self.names_used(&fact) {
            self.record(used);
        }
        self.record_alone(fact)
    }

    /// Records one fact alone, without the copies and uses of names that
    /// [`record`](Self::record) adds.
    pub(crate) fn record_alone(&mut self, fact: Fact) -> u64 {
        let record = Record {
            n: self.state.n + 1,
            time: self.now,
            fact,
        };
        self.state.apply(&record);
        self.tracker.recorded(&record);
        self.out.push(Effect::Record(record));
        self.state.n
    }

    /// Records a note in a session's memory.
    pub(crate) fn note(&mut self, session: &SessionId, note: Note) {
        self.record(Fact::Noted {
            session: session.clone(),
            note,
        });
    }

    /// Publishes an event to the subscribers, if there are any.
    pub(crate) fn publish(
        &mut self,
        mut happening: Happening,
        lines: Option<(Option<Hash>, Option<Hash>)>,
    ) {
        if !self.subscribed {
            return;
        }
        if !self.state.names.is_empty() {
            NamesUsed::happening(&self.state, &mut happening);
        }
        self.state.label_happening(&mut happening);
        self.out.push(Effect::Publish(Notice {
            clock: self.state.clock(self.state.n),
            happening,
            lines,
        }));
    }

    /// Returns the facts that record which names a session uses by `fact`, for
    /// files with several names. They have to be recorded before it.
    pub(crate) fn names_used(&mut self, fact: &Fact) -> Vec<Fact> {
        let (session, files) = match fact {
            Fact::Tracked { session, path, .. } | Fact::Read { session, path, .. } => {
                (session, vec![path])
            }
            Fact::EditBegun(edit) => {
                let files = edit.files.iter().map(|file| &file.path);
                (&edit.session, files.collect())
            }
            _ => return Vec::new(),
        };
        if self.names_used.named.is_empty() || self.names_used.session.as_ref() != Some(session) {
            return Vec::new();
        }
        let mut facts = Vec::new();
        for file in files {
            let Some(name) = self.names_used.named.get(file) else {
                continue;
            };
            if self.state.names.last_used(session, file) != name {
                self.tracker.ways.aliases.remove(name);
                facts.push(Fact::NameUsed {
                    session: session.clone(),
                    name: name.clone(),
                    file: file.clone(),
                });
            }
        }
        facts
    }
}
