//! What the engine tells, and all that is only looked up: states, changes, versions, in the protocol's shape.

use std::collections::BTreeMap;

use touchmark_proto::files::{FileRecord, RecordState, Source};
use touchmark_proto::{
    Author, AuthorKind, Change, ConnectionId, Evidence, FileState, Hash, Millis, RelPath,
    SessionId, State, VersionKind,
};

use crate::config::Config;
use crate::effect::LinesWanted;
use crate::engine::Engine;
use crate::handlers::editors::Unsaved;
use crate::input::{Found, ReadOutcome};
use crate::ledger::fold::{Folded, kind_between};
use crate::ledger::knowledge::{Knowledge, PastRecord};
use crate::ledger::recall::{VersionMarks, version_of};
use crate::ledger::record::Held;
use crate::ledger::state::{KeptVersion, LostVersion, PathState, State as LedgerState};
use crate::tracker::Tracker;
use crate::tracker::live::{Live, Obstacle};
use crate::tracker::spoken::Spoken;

/// What a path holds at this moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub held: Held,
    /// Why it cannot be said.
    pub trouble: Option<Trouble>,
}

/// Why it cannot be said what a path holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Unreadable,
    Unstable,
}

/// A change to be listed, with what its delivery has to remember.
pub(crate) struct Listed {
    pub change: Change,
    /// The newest fact about the path.
    pub newest: u64,
    /// The fact that says a version was lost; the row is about that one.
    pub lost: Option<u64>,
    /// The save it was told in the middle of.
    pub episode: Option<u64>,
    /// The texts to count lines between.
    pub texts: LinesWanted,
}

/// What is known, to be told: the recorded state and the tracker, which it
/// cannot change.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub state: &'a LedgerState,
    pub tracker: &'a Tracker,
    pub config: &'a Config,
    pub now: Millis,
    /// Editors' unsaved buffers, by the connection that told of them.
    pub unsaved: &'a BTreeMap<ConnectionId, Unsaved>,
    /// By which names the request being answered speaks.
    pub spoken: &'a Spoken,
}

impl Engine {
    pub(crate) fn view(&self) -> View<'_> {
        View {
            state: &self.state,
            tracker: &self.tracker,
            config: &self.config,
            now: self.now,
            unsaved: &self.unsaved,
            spoken: &self.spoken,
        }
    }
}

impl View<'_> {
    /// The lines wanted for changes, by their place in the answer.
    pub(crate) fn lines_wanted(texts: impl IntoIterator<Item = LinesWanted>) -> Vec<LinesWanted> {
        texts
            .into_iter()
            .enumerate()
            .map(|(index, texts)| LinesWanted { index, ..texts })
            .collect()
    }

    /// What a path holds: what is recorded, under what was read since.
    pub(crate) fn current(&self, path: &RelPath, found: Option<&ReadOutcome>) -> Now {
        let recorded = self.state.paths.get(path).map(|state| state.held);
        let Some(recorded) = recorded else {
            return match found.map(|outcome| &outcome.found) {
                Some(Found::File(content)) => Now {
                    held: Held::from(*content),
                    trouble: None,
                },
                Some(Found::Unreadable { .. } | Found::Outside) => Now {
                    held: Held::ABSENT,
                    trouble: Some(Trouble::Unreadable),
                },
                Some(Found::Unstable { size }) => Now {
                    held: Held {
                        size: *size,
                        ..Held::ABSENT
                    },
                    trouble: Some(Trouble::Unstable),
                },
                _ => Now {
                    held: Held::ABSENT,
                    trouble: None,
                },
            };
        };
        let Some(live) = self.tracker.live(path) else {
            return Now {
                held: recorded,
                trouble: None,
            };
        };
        let mut held = live.held_now().unwrap_or(recorded);
        if let Some(mtime) = live.seen.mtime_ms {
            held.mtime_ms = mtime;
        }
        let trouble = match live.seen.obstacle {
            Some(Obstacle::Unreadable(_) | Obstacle::Outside) => Some(Trouble::Unreadable),
            Some(Obstacle::Unstable) => Some(Trouble::Unstable),
            Some(Obstacle::NotAFile(_)) | None => None,
        };
        Now { held, trouble }
    }

    /// A file as one session knows it (SEEN-2, SEEN-3).
    pub(crate) fn file_state(
        &self,
        session: &SessionId,
        path: &RelPath,
        found: Option<&ReadOutcome>,
    ) -> FileState {
        let now = self.current(path, found);
        let knowledge = self.state.knowledge(session, path);
        let knowledge = knowledge.as_deref();
        let state = match knowledge {
            _ if now.trouble == Some(Trouble::Unreadable) => State::Unreadable,
            Some(knowledge) if knowledge.any() => {
                if now.trouble == Some(Trouble::Unstable) {
                    State::Stale
                } else if now.held.hash.is_none() {
                    State::Deleted
                } else if knowledge.is_fresh(now.held.hash) {
                    State::Fresh
                } else {
                    State::Stale
                }
            }
            Some(knowledge) if knowledge.is_missed() => State::Unknown,
            _ => State::Unread,
        };
        let seen_now = knowledge
            .filter(|knowledge| !knowledge.uncertain)
            .and_then(|knowledge| knowledge.of(now.held.hash));
        let certain = now.trouble.is_none();
        let may_edit =
            certain && (now.held.hash.is_none() || seen_now.is_some() || state == State::Unknown);
        let stale = matches!(state, State::Stale | State::Deleted);
        let folded = match (stale, knowledge, self.state.paths.get(path)) {
            (true, Some(knowledge), Some(known)) => Some(self.fold(session, knowledge, known)),
            _ => None,
        };
        let stale_ranges = match (state, knowledge) {
            (State::Stale, Some(knowledge)) if seen_now.is_some() => {
                let ranges = knowledge.stale_ranges(now.held.hash).ranges(now.held.lines);
                (!ranges.is_empty()).then_some(ranges)
            }
            _ => None,
        };
        let last = knowledge.and_then(Knowledge::last);
        let unsaved = self.unsaved(path);
        FileState {
            path: path.clone(),
            state,
            may_edit,
            resident: seen_now.is_some_and(|seen| !seen.resident.is_empty()),
            stale_ranges,
            hash: now.held.hash.filter(|_| certain),
            seen_hash: last.and_then(|seen| seen.hash),
            assumed: last.filter(|seen| seen.assumed).map(|_| true),
            read_count: knowledge.map_or(0, |knowledge| knowledge.read_count),
            read_at: knowledge.and_then(|knowledge| knowledge.read_at),
            line_count: now.held.lines,
            size: now.held.size,
            mtime_ms: now.held.mtime_ms,
            unsaved: unsaved.map(|_| true),
            unsaved_lines: unsaved.flatten(),
            changed_by: folded.as_ref().map(|folded| folded.authors.clone()),
            since: folded.as_ref().map(|folded| folded.first),
        }
    }

    /// What others did to a path since the session's copy of it.
    fn fold(&self, session: &SessionId, knowledge: &Knowledge, path: &PathState) -> Folded {
        let mut folded = Folded::at(knowledge.read_at.unwrap_or(self.state.time));
        let since = path
            .versions
            .iter()
            .map(Box::as_ref)
            .filter(|kept| kept.n > knowledge.at && !is_own(kept, session));
        let brought = knowledge.brought.iter().flat_map(|all| all.iter());
        for kept in brought.chain(since) {
            folded.take(kept);
        }
        if folded.versions == 0 {
            // The copy speaks of a content that the daemon never saw come
            // or go (SEEN-1), or a declared writer is in the middle.
            match self.writer_in_progress(path) {
                Some((session, true)) => {
                    folded = Folded::at(self.now);
                    folded.name(&Author::agent(session.clone()), Evidence::Declared);
                }
                Some((_, false)) => {
                    folded = Folded::at(self.now);
                    folded.name(&Author::USER, Evidence::Unmarked);
                }
                None => match path.latest() {
                    // It was read again in part: who wrote it is known.
                    Some(latest) if !knowledge.foreign && !knowledge.uncertain => {
                        folded.take(latest);
                    }
                    _ => {
                        folded.name(&Author::UNKNOWN, Evidence::Gap);
                    }
                },
            }
        }
        folded
    }

    /// Who may be in the middle of a write, and whether its content is
    /// declared (ATTR-5).
    fn writer_in_progress(&self, path: &PathState) -> Option<(&SessionId, bool)> {
        self.state.edits.values().find_map(|edit| {
            let file = edit.files.iter().find(|file| {
                file.matched.is_none()
                    && self
                        .state
                        .paths
                        .get(&file.path)
                        .is_some_and(|state| std::ptr::eq(state.as_ref(), path))
                    && self
                        .tracker
                        .live(&file.path)
                        .is_some_and(Live::is_held_back)
            })?;
            Some((&edit.fact.session, file.expect.is_some()))
        })
    }

    /// Whether a session's own open mark may have made a version: what it
    /// comes to is said when the mark ends (ATTR-4).
    pub(crate) fn is_provisional_for(&self, session: &SessionId, kept: &KeptVersion) -> bool {
        kept.candidates().contains(session) && self.marks(kept).provisional
    }

    /// Whether, and how, a path is listed as modified for a session (MOD-1).
    pub(crate) fn listed(&self, session: &SessionId, path: &RelPath) -> Option<Listed> {
        let knowledge = self.state.knowledge(session, path)?;
        let state = self.state.paths.get(path)?;
        let live = self.tracker.live(path);
        let now = self.current(path, None);
        if now.trouble == Some(Trouble::Unreadable) {
            return None;
        }
        if !knowledge.differs(now.held.hash) {
            return None;
        }
        let in_progress = live.is_some_and(Live::is_held_back);
        let newest = knowledge.newest(session, state);
        if in_progress {
            // The session's own write in the middle is not news to it.
            if self
                .writer_in_progress(state)
                .is_some_and(|(writer, _)| writer == session)
            {
                return None;
            }
        } else {
            if newest <= knowledge.told {
                return None;
            }
            let taken = newest > state.newest;
            if !taken
                && knowledge.behind < state.newest
                && state.latest().is_some_and(|kept| is_own(kept, session))
            {
                return None;
            }
        }
        let writing = live.is_some_and(|live| live.hints.is_writing() || in_progress);
        let episode = live.map_or(0, |live| {
            if in_progress {
                live.save.episode
            } else {
                live.save.of_version
            }
        });
        // A save that was told in its middle is continued (MOD-2).
        if live.is_some_and(|live| live.save.told.get(session) == Some(&episode)) {
            return None;
        }
        let folded = self.fold(session, &knowledge, state);
        let before = if knowledge.any() {
            knowledge
                .last()
                .map_or(knowledge.baseline, |seen| seen.hash)
        } else {
            knowledge.baseline
        };
        let kind = if now.held.hash.is_some() && folded.from.is_some() {
            VersionKind::Renamed
        } else {
            kind_between(before, now.held.hash)
        };
        let trouble = now.trouble.is_some();
        let hash = now.held.hash.filter(|_| !trouble);
        let reverts = match trouble || in_progress {
            true => Vec::new(),
            false => state.reverted(session, &knowledge, now.held.hash),
        };
        Some(Listed {
            change: Change {
                writing: writing.then_some(true),
                reverts: (!reverts.is_empty()).then_some(reverts),
                ..folded.change(path.clone(), kind, hash)
            },
            newest,
            lost: None,
            episode: writing.then_some(episode),
            texts: LinesWanted {
                own: self.own_writes(session, path),
                ..LinesWanted::between(before, hash)
            },
        })
    }

    /// What the session's own last writes of a path took the place of and what
    /// they wrote, if it believes some of that still.
    pub(crate) fn own_writes(
        &self,
        session: &SessionId,
        path: &RelPath,
    ) -> Option<(Option<Hash>, Option<Hash>)> {
        let versions = &self.state.paths.get(path)?.versions;
        let newest = versions.iter().rposition(|kept| is_own(kept, session))?;
        let written = versions.get(newest)?.hash;
        self.state.knowledge(session, path)?.of(written)?;
        let until_then = versions.get(..=newest)?;
        let others = until_then.iter().rposition(|kept| !is_own(kept, session));
        let first = until_then.get(others.map_or(0, |at| at + 1))?;
        Some((first.before, written))
    }

    /// The row about a version that the session overwrote unseen.
    pub(crate) fn listed_lost(&self, lost: &LostVersion) -> Listed {
        let kept = &lost.version;
        let version = version_of(
            self.state.epoch,
            kept.n,
            kept.time,
            &kept.fact(&lost.path),
            VersionMarks {
                overwritten: true,
                provisional: false,
            },
        );
        let now = self.current(&lost.path, None);
        Listed {
            change: Change {
                lost: Some(Box::new(version)),
                ..Folded::of([kept]).change(lost.path.clone(), kept.kind, now.held.hash)
            },
            newest: lost.n,
            lost: Some(lost.n),
            episode: None,
            texts: LinesWanted::between(kept.before, kept.hash),
        }
    }

    /// Everything to be listed for a session, in the order of its newest
    /// facts, so that a cursor can say how far it was told. What its own
    /// running command did waits for that command's end (MOD-1).
    pub(crate) fn listing(&self, session: &SessionId) -> Vec<Listed> {
        let mut listed = self.listing_with_commands(session);
        listed.retain(|row| {
            row.lost.is_some()
                || self
                    .command_version(session, &row.change.path)
                    .is_none_or(|n| {
                        !self
                            .state
                            .windows_on(&row.change.path)
                            .any(|window| window.fact.session == *session && window.n < n)
                    })
        });
        listed
    }

    /// The path's newest version, if the session's own command made it.
    pub(crate) fn command_version(&self, session: &SessionId, path: &RelPath) -> Option<u64> {
        let latest = self.state.paths.get(path)?.latest()?;
        (latest.evidence == Evidence::Command && latest.is_by(session)).then_some(latest.n)
    }

    /// The same, with what its own running commands did so far.
    pub(crate) fn listing_with_commands(&self, session: &SessionId) -> Vec<Listed> {
        let Some(state) = self.state.sessions.get(session) else {
            return Vec::new();
        };
        let mut paths: Vec<&RelPath> = state.pending.iter().collect();
        let own =
            |path: &&RelPath| state.files.contains_key(path) && !state.pending.contains(*path);
        paths.extend(self.tracker.held_back().filter(own));
        let mut listed: Vec<Listed> = paths
            .into_iter()
            .filter_map(|path| self.listed(session, path))
            .chain(state.lost.iter().map(|lost| self.listed_lost(lost)))
            .collect();
        listed.sort_by(|a, b| (a.newest, &a.change.path).cmp(&(b.newest, &b.change.path)));
        listed
    }

    /// A change for an answer about one path, whether told already or not.
    pub(crate) fn change_since(&self, session: &SessionId, path: &RelPath) -> Option<Change> {
        let knowledge = self.state.knowledge(session, path)?;
        let state = self.state.paths.get(path)?;
        let folded = self.fold(session, &knowledge, state);
        if folded.versions == 0 && !knowledge.foreign && !knowledge.uncertain {
            return None;
        }
        let now = self.current(path, None);
        let before = knowledge
            .last()
            .map_or(knowledge.baseline, |seen| seen.hash);
        let kind = kind_between(before, now.held.hash);
        let reverts = state.reverted(session, &knowledge, now.held.hash);
        Some(Change {
            reverts: (!reverts.is_empty()).then_some(reverts),
            ..folded.change(path.clone(), kind, now.held.hash)
        })
    }

    /// The records of one file in a session's context, the active one first.
    pub(crate) fn records(
        &self,
        session: &SessionId,
        path: &RelPath,
        all: bool,
    ) -> Vec<(FileRecord, Option<Hash>)> {
        let (Some(knowledge), Some(state)) = (
            self.state.knowledge(session, path),
            self.state.paths.get(path),
        ) else {
            return Vec::new();
        };
        let foreign = state
            .versions
            .iter()
            .rev()
            .find(|kept| !kept.is_by(session));
        let user_edit_date = foreign.map(|kept| kept.time);
        let mut rows: Vec<(PastRecord, RecordState)> = Vec::new();
        let newest = &knowledge.record;
        // Somebody else's newer edit stands in place of the session's record.
        match foreign {
            Some(kept) if kept.n > knowledge.at => {
                rows.push((
                    PastRecord {
                        source: Source::UserEdited,
                        time: kept.time,
                        ..newest.clone()
                    },
                    RecordState::Active,
                ));
                rows.push((newest.clone(), RecordState::Stale));
            }
            _ => rows.push((newest.clone(), RecordState::Active)),
        }
        rows.extend(
            knowledge
                .past
                .iter()
                .rev()
                .map(|past| (past.clone(), RecordState::Stale)),
        );
        if !all {
            rows.truncate(1);
        }
        rows.into_iter()
            .map(|(row, record_state)| {
                let record = FileRecord {
                    path: path.clone(),
                    record_state,
                    record_source: row.source,
                    agent_read_date: knowledge.read_at,
                    agent_edit_date: knowledge.edit_at,
                    user_edit_date,
                    read_count: knowledge.read_count,
                    last_step: row.step,
                    last_access_time: newest.time,
                    line_count: row.lines,
                    preview: String::new(),
                    was_modified: knowledge.edit_at.is_some(),
                };
                (record, row.hash)
            })
            .collect()
    }

    /// What the state knows of a version beyond its fact.
    pub(crate) fn marks(&self, kept: &KeptVersion) -> VersionMarks {
        VersionMarks {
            overwritten: kept.lost,
            provisional: matches!(kept.evidence, Evidence::Marked | Evidence::Unmarked)
                && kept
                    .edit()
                    .is_some_and(|edit| self.state.edits.contains_key(&edit)),
        }
    }

    /// Who changed files, per path, for errors.
    pub(crate) fn blame(
        &self,
        session: &SessionId,
        path: &RelPath,
    ) -> (Option<Vec<Author>>, Option<Millis>) {
        match (
            self.state.knowledge(session, path),
            self.state.paths.get(path),
        ) {
            (Some(knowledge), Some(state)) => {
                let mut folded = self.fold(session, &knowledge, state);
                self.state.in_authors(&mut folded.authors);
                (Some(folded.authors), Some(folded.first))
            }
            _ => (None, None),
        }
    }
}

/// Whether a version is the session's own declared or marked write.
pub(crate) fn is_own(kept: &KeptVersion, session: &SessionId) -> bool {
    kept.author_kind() == AuthorKind::Agent
        && kept.is_by(session)
        && kept.evidence != Evidence::Command
}
