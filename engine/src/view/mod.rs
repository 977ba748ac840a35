//! Read access to the engine: builds states, changes and versions in the form
//! of the protocol.

mod names;
pub(crate) mod names_used;

use std::collections::{BTreeSet, VecDeque};

use touchmark_proto::files::{FileRecord, RecordState, Source};
use touchmark_proto::{
    Author, Change, Evidence, FileState, Hash, Millis, RelPath, SessionId, State, VersionKind,
};

use crate::config::Config;
use crate::disk::{Found, ReadOutcome};
use crate::effect::LinesWanted;
use crate::ledger::fold::{Folded, kind_between};
use crate::ledger::knowledge::{Knowledge, PastRecord};
use crate::ledger::recall::{VersionMarks, version_of};
use crate::ledger::record::Held;
use crate::ledger::state::{KeptVersion, LostVersion, PathState, State as LedgerState};
use crate::tracker::Tracker;
use crate::tracker::live::{Live, Obstacle};
use crate::unsaved::Unsaved;
use crate::view::names_used::NamesUsed;

/// The most runs of own writes that are looked at for what was taken back.
const OWN_RUNS: usize = 8;

/// The current content of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub held: Held,
    /// The reason why the content is not known; `None` if it is.
    pub trouble: Option<Trouble>,
}

/// The reason why the content of a path is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Unreadable,
    Unstable,
}

/// A change for a list, with what has to be recorded when it is reported.
pub(crate) struct Listed {
    pub change: Change,
    /// The number of the newest fact about the path.
    pub newest: u64,
    /// The number of the fact that recorded a loss, if the row is about a lost
    /// version.
    pub lost: Option<u64>,
    /// The number of the save in progress, if the change is the middle of a
    /// save.
    pub episode: Option<u64>,
    /// The texts between which lines are counted.
    pub texts: LinesWanted,
}

/// The recorded state and the tracker, for reading only.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub state: &'a LedgerState,
    pub tracker: &'a Tracker,
    pub config: &'a Config,
    pub now: Millis,
    pub unsaved: &'a Unsaved,
    pub asked_of: &'a BTreeSet<(SessionId, RelPath)>,
    /// The names that the answer to the current request uses.
    pub names_used: &'a NamesUsed,
}

impl View<'_> {
    /// Returns the line counts wanted for changes, each with its index in the
    /// answer.
    pub(crate) fn lines_wanted(texts: impl IntoIterator<Item = LinesWanted>) -> Vec<LinesWanted> {
        texts
            .into_iter()
            .enumerate()
            .map(|(index, texts)| LinesWanted { index, ..texts })
            .collect()
    }

    /// Returns the current content of a path: what is on record, updated by
    /// what was read since.
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

    /// Returns the state of a session's copy of a file (SEEN-2, SEEN-3).
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
        let unsaved = self.unsaved.of(path);
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

    /// Folds what others did to a path since the session's copy of it.
    fn fold(&self, session: &SessionId, knowledge: &Knowledge, path: &PathState) -> Folded {
        let mut folded = Folded::at(knowledge.read_at.unwrap_or(self.state.time));
        let since = path
            .versions
            .iter()
            .map(Box::as_ref)
            .filter(|kept| kept.n > knowledge.at && !kept.is_edit_of(session));
        let brought = knowledge.brought.iter().flat_map(|all| all.iter());
        for kept in brought.chain(since) {
            folded.take(kept);
        }
        if folded.versions == 0 {
            // There is no version to name: either the copy is of a content that
            // the daemon never saw (SEEN-1), or a declared writer is in the
            // middle of a write.
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
                    // Part of the file was read again, so the author of the
                    // change is known.
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

    /// Returns the session that may be in the middle of a write, and whether it
    /// declared the content (ATTR-5).
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

    /// Returns whether an open mark of the session may have made a version.
    /// That is decided when the mark ends (ATTR-4).
    pub(crate) fn is_provisional_for(&self, session: &SessionId, kept: &KeptVersion) -> bool {
        kept.candidates().contains(session) && self.marks(kept).provisional
    }

    /// Returns the row of a path in a session's list of changes, or `None` if
    /// it is not listed (MOD-1).
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
        let newest = state.newest_to_report(session, &knowledge);
        if in_progress {
            // The session's own write in progress is no change for it.
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
                && state.latest().is_some_and(|kept| kept.is_edit_of(session))
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
        // The middle of this save was reported already (MOD-2).
        if live.is_some_and(|live| live.save.reported.get(session) == Some(&episode)) {
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

    /// Returns the contents before and after the newest runs of the session's
    /// own writes of a path, the newest last. There are none if it has nothing
    /// of what it wrote last on record.
    pub(crate) fn own_writes(
        &self,
        session: &SessionId,
        path: &RelPath,
    ) -> Vec<(Option<Hash>, Option<Hash>)> {
        let mut runs: VecDeque<(Option<Hash>, Option<Hash>)> = VecDeque::new();
        let (Some(state), Some(known)) = (
            self.state.paths.get(path),
            self.state.knowledge(session, path),
        ) else {
            return Vec::new();
        };
        let mut goes_on = false;
        for kept in state.versions.iter().rev() {
            let is_own = kept.is_edit_of(session);
            if !is_own {
                goes_on = false;
            } else if let Some(run) = runs.front_mut().filter(|_| goes_on) {
                run.0 = kept.before;
            } else if runs.len() < OWN_RUNS {
                runs.push_front((kept.before, kept.hash));
                goes_on = true;
            } else {
                break;
            }
        }
        let newest = runs.back();
        match newest.is_some_and(|(_, written)| known.of(*written).is_some()) {
            true => runs.into(),
            false => Vec::new(),
        }
    }

    /// Returns the row about a version that the session overwrote unseen.
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

    /// Returns all rows of a session's list of changes, in the order of their
    /// newest facts, so that a cursor can name how far they were reported.
    /// Changes by the session's own running commands are left out until those
    /// end (MOD-1).
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

    /// Returns the path's newest version if the session's own command made it,
    /// else `None`.
    pub(crate) fn command_version(&self, session: &SessionId, path: &RelPath) -> Option<u64> {
        let latest = self.state.paths.get(path)?.latest()?;
        (latest.evidence.is_of_command() && latest.is_by(session)).then_some(latest.n)
    }

    /// Returns all rows of a session's list of changes, including those by its
    /// own running commands.
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

    /// Returns the change of one path since the session's copy, whether it was
    /// reported or not; `None` if there is none.
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

    /// Returns the records of one file in a session's context, the current one
    /// first.
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
        // A newer edit by another author replaces the session's record.
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

    /// Returns what the state says about a version beyond its fact.
    pub(crate) fn marks(&self, kept: &KeptVersion) -> VersionMarks {
        VersionMarks {
            overwritten: kept.lost,
            provisional: matches!(kept.evidence, Evidence::Marked | Evidence::Unmarked)
                && kept
                    .edit()
                    .is_some_and(|edit| self.state.edits.contains_key(&edit)),
        }
    }

    /// Returns who changed a path since the session's copy, and since when, for
    /// an error.
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
