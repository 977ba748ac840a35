//! The stored form of what sessions remember besides files.

use touchmark_proto::{daemon, tasks};

use super::leaves::{Content, Path, TaskType};
use crate::ledger::session_memory;
use crate::ledger::stored::mirror::{List, Mirror, Rare, names, structs, variants};

variants! {
    Note = session_memory::Note {
        0 CheckpointCreated {
            0 checkpoint: u64,
            1 label: Option<String>,
            2 message: Option<String>,
            3 step: Option<u64>,
            4 text: Option<String>,
        },
        1 CheckpointDeleted { 0 checkpoint: u64 },
        2 WarningStored { 0 files: List<Path>, 1 note: Option<String> },
        3 WarningTaken {},
        4 ModelRecorded {
            0 model: String,
            1 provider: String,
            2 mode: String,
            3 message: Option<String>,
        },
        5 TaskSaved { 0 task: Task, 1 started: Option<u64> },
        6 TaskRemoved { 0 id: String },
        7 CallRecorded(call: Call),
        8 CallsDropped { 0 calls: List<u64>, 1 reason: Dropped },
        9 CallChecked { 0 hit: bool },
        10 Saved(savings: Savings),
        11 MessageSeen { 0 message: String },
        12 Turn { 0 begins: bool },
        13 ToSay { 0 text: String },
        14 Said { 0 count: u64 },
        15 UndoToSay { 0 undo: u64, 1 text: Option<String> },
    }
    Searched = session_memory::Searched {
        0 No {},
        1 Below(path: Path),
        2 Everywhere {},
    }
}

names! {
    Dropped = session_memory::Dropped { 0 Invalidated, 1 Evicted, 2 Cleared }
}

structs! {
    Task = tasks::Task {
        0 id: String,
        1 task_type: TaskType,
        2 command: Option<String>,
        3 pid: Option<u32>,
        4 start_time: u64,
        5 working_directory: String,
    }
    Savings = daemon::Savings {
        0 repeats: Rare<u64>,
        1 bytes_not_sent: Rare<u64>,
        2 stale_refused: Rare<u64>,
        3 not_read_refused: Rare<u64>,
        4 conflicts: Rare<u64>,
        5 duplicate_calls: Rare<u64>,
        6 duplicate_bytes: Rare<u64>,
        7 notices: Rare<u64>,
        8 unanswered_hooks: Rare<u64>,
        9 unclear_hooks: Rare<u64>,
    }
    Call = session_memory::Call {
        0 call: u64,
        1 time: u64,
        2 n: u64,
        3 tool: String,
        4 args: String,
        5 result: Option<String>,
        6 rests_on: List<(Path, Option<Content>)>,
        7 searched: Searched,
    }
    Checkpoint = session_memory::Checkpoint {
        0 n: u64,
        1 time: u64,
        2 label: Option<String>,
        3 message: Option<String>,
        4 step: Option<u64>,
        5 text: Option<String>,
    }
    PendingWarning = session_memory::PendingWarning {
        0 files: List<Path>,
        1 note: Option<String>,
        2 time: u64,
    }
    ModelUse = session_memory::ModelUse {
        0 time: u64,
        1 model: String,
        2 provider: String,
        3 mode: String,
    }
    KeptTask = session_memory::KeptTask { 0 task: Task, 1 started: Option<u64> }
    CallTally = session_memory::CallTally {
        0 hits: Rare<u64>,
        1 misses: Rare<u64>,
        2 invalidated: Rare<u64>,
        3 evicted: Rare<u64>,
    }
    SessionMemory = session_memory::SessionMemory {
        0 checkpoints: Rare<List<(u64, Checkpoint)>>,
        1 warning: Option<PendingWarning>,
        2 models: Rare<List<ModelUse>>,
        3 messages: Rare<List<String>>,
        4 tasks: Rare<List<(String, KeptTask)>>,
        5 calls: Rare<List<Call>>,
        6 tally: CallTally,
        7 savings: Savings,
        8 in_turn: Rare<bool>,
        9 to_say: Rare<List<String>>,
        10 undos_to_say: Rare<List<(u64, String)>>,
    }
}
