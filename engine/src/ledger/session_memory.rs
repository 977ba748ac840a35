//! What a session remembers besides files: checkpoints, a warning, models,
//! tasks, tool calls, and what these saved. It is kept as long as the session
//! (CHK-1, CHK-2).

use std::collections::{BTreeMap, VecDeque};

use touchmark_proto::daemon::Savings;
use touchmark_proto::tasks::Task;
use touchmark_proto::{Hash, Millis, RelPath};

/// A fact about a session's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A checkpoint was created (CHK-1).
    CheckpointCreated {
        /// The checkpoint's number; `k<number>` on the wire.
        checkpoint: u64,
        /// A name for people; `None` if it has none.
        label: Option<String>,
        /// The agent's name for the message that it belongs to; `None` if it
        /// was not named.
        message: Option<String>,
        /// The agent's step; `None` if it named none.
        step: Option<u64>,
        /// The beginning of the prompt; `None` if it is not known.
        text: Option<String>,
    },
    /// A checkpoint was deleted.
    CheckpointDeleted {
        /// The checkpoint's number.
        checkpoint: u64,
    },
    /// A warning was stored. It replaces an earlier one (CHK-2).
    WarningStored {
        /// The files that the warning is about.
        files: Vec<RelPath>,
        /// The text of the warning; `None` if it has none.
        note: Option<String>,
    },
    /// The warning was taken or deleted.
    WarningTaken,
    /// The session uses another model from now on.
    ModelRecorded {
        /// The model's name.
        model: String,
        /// The name of the model's provider.
        provider: String,
        /// The agent's mode, in the agent's own words.
        mode: String,
        /// The message that the model answered; `None` if it was not named.
        message: Option<String>,
    },
    /// A background task was saved. It replaces one with the same id.
    TaskSaved {
        /// The task as the agent described it.
        task: Task,
        /// The start of its process by the kernel, in ticks since boot; `None`
        /// if there was no such process.
        started: Option<u64>,
    },
    /// A background task was removed.
    TaskRemoved {
        /// The task's id.
        id: String,
    },
    /// A tool call was recorded, with its result.
    CallRecorded(Call),
    /// Tool calls were dropped.
    CallsDropped {
        /// The numbers of the calls.
        calls: Vec<u64>,
        /// The reason for dropping the calls.
        reason: Dropped,
    },
    /// A client checked whether a tool call is a repeat.
    CallChecked {
        /// Whether an earlier call was found.
        hit: bool,
    },
    /// Something was saved. These counts are added to the session's.
    Saved(Savings),
    /// A message was answered by the model that is already recorded.
    MessageSeen {
        /// The message's name.
        message: String,
    },
    /// A turn begins with a prompt, or is over (UNDO-3).
    Turn {
        /// It begins.
        begins: bool,
    },
    /// The session's next event is to say something as well (UNDO-5).
    ToSay {
        /// What.
        text: String,
    },
    /// The oldest of that were said.
    Said {
        /// How many.
        count: u64,
    },
    /// The session's next event is to say what an undo or a redo did to its
    /// changes (UNDO-5). Replaces what was to be said about the same undo.
    UndoToSay {
        /// The number of the undo or redo in the journal; `u<number>` on the
        /// wire.
        undo: u64,
        /// The text. Empty: a later undo or redo has taken everything back, of
        /// which the rest is still to be said. `None`: nothing is to be said
        /// any more.
        text: Option<String>,
    },
}

/// Words that a session is still to be told: who does not come back is told
/// the newest.
const TO_SAY: usize = 64;

/// The maximum number of messages that are remembered for a session. A repeat
/// mostly comes soon.
const MESSAGES: usize = 1_000;

/// The reason why a tool call was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// A file changed that the call's result depends on.
    Invalidated,
    /// There were too many calls, or it was too old or too large.
    Evicted,
    /// A client requested to drop the call.
    Cleared,
}

/// A tool call with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The call's number; `t<number>` on the wire.
    pub call: u64,
    /// When the call was recorded.
    pub time: Millis,
    /// The number of the newest fact when the call was recorded.
    pub n: u64,
    /// The tool's name.
    pub tool: String,
    /// Its arguments as JSON, in canonical form.
    pub args: String,
    /// Its result as JSON; `None` if it was too large to keep.
    pub result: Option<String>,
    /// The files that the result depends on, with their contents at that time;
    /// `None` for no file.
    pub rests_on: Vec<(RelPath, Option<Hash>)>,
    /// Where the call searched for files that its arguments do not name.
    pub searched: Searched,
}

impl Call {
    /// Returns the size that counts for the limits, in bytes.
    pub fn bytes(&self) -> u64 {
        (self.args.len() + self.result.as_ref().map_or(0, String::len)) as u64
    }
}

/// Where a call searched for files that its arguments do not name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Searched {
    /// It searched nowhere.
    No,
    /// It searched below this directory.
    Below(RelPath),
    /// It searched the whole workspace.
    Everywhere,
}

/// A moment that a session has asked to remember (CHK-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The number of the fact that created the checkpoint.
    pub n: u64,
    /// When the checkpoint was created.
    pub time: Millis,
    /// A name for people; `None` if it has none.
    pub label: Option<String>,
    /// The agent's name for the message that it belongs to; `None` if it was
    /// not named.
    pub message: Option<String>,
    /// The agent's step; `None` if it named none.
    pub step: Option<u64>,
    /// The beginning of the prompt; `None` if it is not known.
    pub text: Option<String>,
}

/// A warning that was not taken yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingWarning {
    /// The files that the warning is about.
    pub files: Vec<RelPath>,
    /// The text of the warning; `None` if it has none.
    pub note: Option<String>,
    /// When the warning was stored.
    pub time: Millis,
}

/// A model that a session used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelUse {
    /// The time from which on the session used the model.
    pub time: Millis,
    /// The model's name.
    pub model: String,
    /// The name of the model's provider.
    pub provider: String,
    /// The agent's mode, in the agent's own words.
    pub mode: String,
}

/// A background task that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptTask {
    /// The task as the agent described it.
    pub task: Task,
    /// The start of its process by the kernel, in ticks since boot; `None` if
    /// there was no such process.
    pub started: Option<u64>,
}

/// Counters of tool calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTally {
    /// The number of checks that found a call.
    pub hits: u64,
    /// The number of checks that found none.
    pub misses: u64,
    /// The number of calls dropped because a file changed.
    pub invalidated: u64,
    /// The number of calls dropped for their number, age or size.
    pub evicted: u64,
}

/// Everything that a session remembers besides files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionMemory {
    /// Checkpoints, by their number.
    pub checkpoints: BTreeMap<u64, Checkpoint>,
    /// The warning that was not taken yet, if there is one.
    pub warning: Option<PendingWarning>,
    /// The models used, oldest first.
    pub models: Vec<ModelUse>,
    /// The messages that the models answered most recently, oldest first.
    pub messages: VecDeque<String>,
    /// Tasks, by their id.
    pub tasks: BTreeMap<String, KeptTask>,
    /// Tool calls, the oldest first.
    pub calls: VecDeque<Call>,
    /// How often tool calls were found, missed or dropped.
    pub tally: CallTally,
    /// What repeats and refusals saved.
    pub savings: Savings,
    /// It is in a turn, as far as its hooks say.
    pub in_turn: bool,
    /// What it is still to be told, the oldest first.
    pub to_say: VecDeque<String>,
    /// What it is still to be told about undos and redos of its changes, by
    /// their numbers.
    pub undos_to_say: BTreeMap<u64, String>,
}

impl SessionMemory {
    /// Folds one note into the memory.
    pub(crate) fn apply(&mut self, n: u64, time: Millis, note: &Note) {
        match note {
            Note::CheckpointCreated {
                checkpoint,
                label,
                message,
                step,
                text,
            } => {
                let moment = Checkpoint {
                    n,
                    time,
                    label: label.clone(),
                    message: message.clone(),
                    step: *step,
                    text: text.clone(),
                };
                self.checkpoints.insert(*checkpoint, moment);
            }
            Note::CheckpointDeleted { checkpoint } => {
                self.checkpoints.remove(checkpoint);
            }
            Note::WarningStored { files, note } => {
                self.warning = Some(PendingWarning {
                    files: files.clone(),
                    note: note.clone(),
                    time,
                });
            }
            Note::WarningTaken => self.warning = None,
            Note::ModelRecorded {
                model,
                provider,
                mode,
                message,
            } => {
                self.models.push(ModelUse {
                    time,
                    model: model.clone(),
                    provider: provider.clone(),
                    mode: mode.clone(),
                });
                if let Some(message) = message {
                    self.see_message(message);
                }
            }
            Note::MessageSeen { message } => self.see_message(message),
            Note::TaskSaved { task, started } => {
                let kept = KeptTask {
                    task: task.clone(),
                    started: *started,
                };
                self.tasks.insert(task.id.clone(), kept);
            }
            Note::TaskRemoved { id } => {
                self.tasks.remove(id);
            }
            Note::CallRecorded(call) => self.calls.push_back(call.clone()),
            Note::CallsDropped { calls, reason } => {
                self.calls.retain(|kept| !calls.contains(&kept.call));
                let dropped = calls.len() as u64;
                match reason {
                    Dropped::Invalidated => self.tally.invalidated += dropped,
                    Dropped::Evicted => self.tally.evicted += dropped,
                    Dropped::Cleared => {}
                }
            }
            Note::CallChecked { hit } => {
                if *hit {
                    self.tally.hits += 1;
                } else {
                    self.tally.misses += 1;
                }
            }
            Note::Saved(more) => self.savings = sum(self.savings, *more),
            Note::Turn { begins } => self.in_turn = *begins,
            Note::ToSay { text } => {
                self.to_say.push_back(text.clone());
                if self.to_say.len() > TO_SAY {
                    self.to_say.pop_front();
                }
            }
            Note::Said { count } => {
                let count = usize::try_from(*count).unwrap_or(usize::MAX);
                self.to_say.drain(..count.min(self.to_say.len()));
            }
            Note::UndoToSay { undo, text } => {
                match text {
                    Some(text) => self.undos_to_say.insert(*undo, text.clone()),
                    None => self.undos_to_say.remove(undo),
                };
                if self.undos_to_say.len() > TO_SAY {
                    self.undos_to_say.pop_first();
                }
            }
        }
    }

    fn see_message(&mut self, message: &str) {
        self.messages.push_back(message.to_owned());
        if self.messages.len() > MESSAGES {
            self.messages.pop_front();
        }
    }
}

/// Returns the sum of two counts.
pub(crate) fn sum(one: Savings, other: Savings) -> Savings {
    Savings {
        repeats: one.repeats + other.repeats,
        bytes_not_sent: one.bytes_not_sent + other.bytes_not_sent,
        stale_refused: one.stale_refused + other.stale_refused,
        not_read_refused: one.not_read_refused + other.not_read_refused,
        conflicts: one.conflicts + other.conflicts,
        duplicate_calls: one.duplicate_calls + other.duplicate_calls,
        duplicate_bytes: one.duplicate_bytes + other.duplicate_bytes,
        notices: one.notices + other.notices,
        unanswered_hooks: one.unanswered_hooks + other.unanswered_hooks,
        unclear_hooks: one.unclear_hooks + other.unclear_hooks,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use touchmark_proto::tasks::TaskType;

    fn folded(notes: &[Note]) -> SessionMemory {
        let mut folded = SessionMemory::default();
        for (n, note) in (1..).zip(notes) {
            folded.apply(n, 1_000 + n, note);
        }
        folded
    }

    fn call(number: u64) -> Call {
        Call {
            call: number,
            time: number,
            n: number,
            tool: "readFile".into(),
            args: "{}".into(),
            result: Some("\"text\"".into()),
            rests_on: Vec::new(),
            searched: Searched::No,
        }
    }

    fn checkpoint(number: u64) -> Note {
        Note::CheckpointCreated {
            checkpoint: number,
            label: Some("before".into()),
            message: None,
            step: Some(4),
            text: None,
        }
    }

    #[test]
    fn a_checkpoint_keeps_its_fact_and_its_time() {
        let memory = folded(&[
            checkpoint(1),
            checkpoint(2),
            Note::CheckpointDeleted { checkpoint: 1 },
        ]);
        assert_eq!(memory.checkpoints.len(), 1);
        let kept = &memory.checkpoints[&2];
        assert_eq!((kept.n, kept.time, kept.step), (2, 1_002, Some(4)));
    }

    #[test]
    fn a_warning_replaces_an_earlier_one_and_is_taken_once() {
        let warn = |name: &str| Note::WarningStored {
            files: vec![RelPath::new(name.as_bytes()).unwrap()],
            note: None,
        };
        let mut memory = folded(&[warn("a"), warn("b")]);
        let warning = memory.warning.clone().unwrap();
        assert_eq!(warning.files, [RelPath::new(b"b").unwrap()]);
        assert_eq!(warning.time, 1_002);
        memory.apply(3, 1_003, &Note::WarningTaken);
        assert_eq!(memory.warning, None);
    }

    #[test]
    fn the_last_messages_of_models_are_known_again() {
        let model = Note::ModelRecorded {
            model: "m".into(),
            provider: "p".into(),
            mode: "code".into(),
            message: Some("first".into()),
        };
        let mut memory = folded(&[model]);
        assert_eq!((memory.models.len(), memory.messages.len()), (1, 1));
        for number in 0..MESSAGES {
            let message = number.to_string();
            memory.apply(9, 9, &Note::MessageSeen { message });
        }
        assert_eq!((memory.models.len(), memory.messages.len()), (1, MESSAGES));
        assert!(!memory.messages.contains(&"first".to_owned()));
    }

    #[test]
    fn a_task_stands_in_place_of_one_with_its_id() {
        let save = |id: &str, started| Note::TaskSaved {
            task: Task {
                id: id.into(),
                task_type: TaskType::Shell,
                command: None,
                pid: Some(7),
                start_time: 5,
                working_directory: "/".into(),
            },
            started,
        };
        let remove = |id: &str| Note::TaskRemoved { id: id.into() };
        let memory = folded(&[save("a", Some(1)), save("a", None), save("b", Some(2))]);
        assert_eq!(memory.tasks.len(), 2);
        assert_eq!(memory.tasks["a"].started, None);
        let mut memory = memory;
        memory.apply(4, 4, &remove("a"));
        memory.apply(5, 5, &remove("a"));
        assert_eq!(memory.tasks.keys().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn calls_go_for_a_reason_that_is_counted() {
        let drop = |calls: &[u64], reason| Note::CallsDropped {
            calls: calls.to_vec(),
            reason,
        };
        let memory = folded(&[
            Note::CallRecorded(call(1)),
            Note::CallRecorded(call(2)),
            Note::CallRecorded(call(3)),
            Note::CallRecorded(call(4)),
            Note::CallChecked { hit: true },
            Note::CallChecked { hit: false },
            Note::CallChecked { hit: false },
            drop(&[1], Dropped::Invalidated),
            drop(&[2], Dropped::Evicted),
            drop(&[4], Dropped::Cleared),
        ]);
        let left: Vec<u64> = memory.calls.iter().map(|call| call.call).collect();
        assert_eq!(left, [3]);
        let tally = memory.tally;
        assert_eq!((tally.hits, tally.misses), (1, 2));
        assert_eq!((tally.invalidated, tally.evicted), (1, 1));
        assert_eq!(memory.calls[0].bytes(), 2 + 6);
    }

    #[test]
    fn undo5_what_an_undo_did_is_replaced_and_withdrawn() {
        let say = |undo, text: Option<&str>| Note::UndoToSay {
            undo,
            text: text.map(Into::into),
        };
        let memory = folded(&[
            say(1, Some("undone in a, b")),
            say(2, Some("undone in c")),
            say(1, Some("undone in a")),
            say(2, None),
        ]);
        let left: Vec<_> = memory.undos_to_say.into_iter().collect();
        assert_eq!(left, [(1, "undone in a".to_owned())]);
        let many: Vec<Note> = (0..100).map(|undo| say(undo, Some("x"))).collect();
        let memory = folded(&many);
        assert_eq!(memory.undos_to_say.len(), TO_SAY);
        assert_eq!(memory.undos_to_say.keys().next(), Some(&36));
    }

    #[test]
    fn savings_add_up() {
        let saved = |repeats, bytes| {
            Note::Saved(Savings {
                repeats,
                bytes_not_sent: bytes,
                ..Savings::default()
            })
        };
        let memory = folded(&[saved(1, 10), saved(2, 5)]);
        assert_eq!(memory.savings.repeats, 3);
        assert_eq!(memory.savings.bytes_not_sent, 15);
        assert_eq!(memory.savings.notices, 0);
    }
}
