//! What each fact changes in the state. Nothing else changes it.

use touchmark_proto::RelPath;

use super::{Command, PathState, SaveReport, Session, State};
use crate::globs::Cover;
use crate::ledger::knowledge::{Knowledge, PastRecord};
use crate::ledger::labels;
use crate::ledger::record::{Fact, Record, Refusal};
use crate::ledger::session_memory::Note;

impl State {
    /// Folds one fact into the state.
    pub fn apply(&mut self, record: &Record) {
        let (n, time) = (record.n, record.time);
        self.n = n;
        self.time = time;
        self.prune_reports(time);
        if let Some(session) = record.fact.session() {
            self.session_mut(session, time).last_active = time;
        }
        match &record.fact {
            Fact::SessionOpened {
                session,
                agent,
                parent,
                pid,
            } => {
                let session = self.session_mut(session, time);
                session.open = true;
                session.agent = agent.clone().or(session.agent.take());
                session.parent = parent.clone().or(session.parent.take());
                session.pid = pid.or(session.pid);
            }
            Fact::SessionClosed { session } => {
                let session = self.session_mut(session, time);
                session.open = false;
                session.memory.in_turn = false;
            }
            Fact::SessionForgotten { session } => self.forget(session),
            // The baseline of an untracked path is only for the log.
            Fact::Baseline {
                untracked: true, ..
            } => {}
            Fact::Baseline { path, held, .. } => {
                let state = Box::new(PathState::new(n, *held));
                self.command_files.remove(path);
                self.paths.insert(path.clone(), state);
            }
            Fact::Version(version) => self.version(n, time, version),
            Fact::Tracked {
                session,
                path,
                source,
                step,
            } => self.tracked(n, time, session, path, *source, *step),
            Fact::Untracked { session, path } => {
                if let Some(file) = self.untracked(session, path) {
                    self.session_mut(session, time).drop_file(&file);
                    self.release(session, &file);
                }
            }
            Fact::Copied { from, to } => self.copied(n, from, to),
            Fact::CopyDropped { path } => {
                if let Some(state) = self.paths.remove(path) {
                    for holder in state.holders {
                        self.session_mut(&holder, time).drop_file(path);
                    }
                    self.names.forget(path);
                }
            }
            Fact::Read {
                session,
                path,
                hash,
                lines,
                range,
                source,
                step,
                ..
            } => {
                let record = PastRecord {
                    source: *source,
                    step: *step,
                    time,
                    lines: *lines,
                    hash: *hash,
                };
                self.read(n, session, path, record, *range);
            }
            Fact::Carried {
                session,
                path,
                from,
                to,
                kept,
                changed,
            } => self.carried(n, session, path, (*from, *to), (kept, changed)),
            Fact::Inherited { session, from } => self.inherited(session, from),
            Fact::Wrote {
                session,
                path,
                hash,
                assumed,
            } => self.wrote(n, time, session, path, *hash, *assumed),
            Fact::Invalidated { session, path } => {
                let files = &mut self.session_mut(session, time).files;
                let forget = |known: &mut Knowledge| {
                    known.evict();
                    known.read_count = 0;
                };
                match path {
                    Some(path) => drop(files.change(path, forget)),
                    None => files.change_all(|_, known| forget(known)),
                }
            }
            Fact::Compacted { session, keep } => {
                let files = &mut self.session_mut(session, time).files;
                files.change_all(|name, known| {
                    if !keep.contains(name) {
                        known.evict();
                    }
                });
            }
            Fact::Truncated { session, items } => {
                let session = self.session_mut(session, time);
                for (path, range) in items {
                    session.files.change(path, |known| match range {
                        Some(range) => known.evict_range(*range),
                        None => known.evict(),
                    });
                }
            }
            Fact::EditBegun(fact) => self.edit_begun(n, time, fact),
            Fact::EditEnded {
                edit, paths, phase, ..
            } => self.edit_ended(*edit, paths, *phase),
            Fact::Delivered {
                session,
                paths,
                lost,
            } => {
                let state = self.session_mut(session, time);
                for (path, reported) in paths {
                    let files = &mut state.files;
                    files.change(path, |known| known.told = known.told.max(*reported));
                }
                state.lost.retain(|entry| !lost.contains(&entry.n));
                state.memory.savings.notices += (paths.len() + lost.len()) as u64;
                let reported: Vec<RelPath> = paths.iter().map(|(path, _)| path.clone()).collect();
                for path in &reported {
                    self.settle_pending(session, path);
                }
            }
            Fact::ResetTold { session } => self.session_mut(session, time).reset_told = true,
            Fact::Lost {
                session,
                path,
                version,
                by,
                seen,
                lines: None,
            } => self.lost(n, session, path, *version, *by, seen),
            // The log has it.
            Fact::Lost { lines: Some(_), .. } => {}
            Fact::Saved {
                path,
                hash,
                time,
                formatted,
            } => self.reports.push(SaveReport {
                path: path.clone(),
                hash: *hash,
                time: *time,
                formatted: *formatted,
            }),
            Fact::CommandBegun(fact) => {
                self.commands_begun = self.commands_begun.max(fact.command);
                let window = Command {
                    fact: fact.clone(),
                    n,
                    cover: Cover::from(fact.globs.clone()),
                };
                self.commands.insert(fact.command, window);
                self.remember_command(n, time, fact);
            }
            Fact::CommandEnded {
                command,
                exit,
                branch,
                ..
            } => {
                self.commands.remove(command);
                if let Some(past) = self.past_command_mut(*command) {
                    past.ended = Some((n, time));
                    past.exit = *exit;
                    past.branch_after.clone_from(branch);
                }
            }
            Fact::Noted { session, note } => {
                if let Note::CheckpointCreated { checkpoint, .. } = note {
                    self.checkpoints_created = self.checkpoints_created.max(*checkpoint);
                }
                if let Note::CallRecorded(call) = note {
                    self.calls_recorded = self.calls_recorded.max(call.call);
                }
                self.session_mut(session, time).memory.apply(n, time, note);
            }
            Fact::Labelled { session, label } => {
                if let Some((word, number)) = labels::parts(label) {
                    let last = self.labels.entry(word.to_owned()).or_default();
                    *last = number.max(*last);
                }
                self.session_mut(session, time).label = Some(label.clone());
            }
            Fact::NameUsed {
                session,
                name,
                file,
            } => self.name_used(session, name, file),
            Fact::NamesJoined { name, file } => self.names_joined(n, name, file),
            Fact::NamesParted { file, leaving } => self.names_parted(n, file, leaving),
            Fact::Refused { session, cause, .. } => {
                let savings = &mut self.session_mut(session, time).memory.savings;
                match cause {
                    Refusal::Stale => savings.stale_refused += 1,
                    Refusal::NotRead => savings.not_read_refused += 1,
                    Refusal::Conflict => savings.conflicts += 1,
                }
            }
            // These are only for the log.
            Fact::Passed { .. }
            | Fact::Undone { .. }
            | Fact::BroughtBack { .. }
            | Fact::Retired
            | Fact::Kept { .. }
            | Fact::Claimed { .. }
            | Fact::GitBrought { .. }
            | Fact::Lineage { .. } => {}
        }
    }
}

impl Session {
    fn drop_file(&mut self, path: &RelPath) {
        self.files.remove(path);
        self.pending.remove(path);
        self.lost.retain(|lost| lost.path != *path);
    }
}
