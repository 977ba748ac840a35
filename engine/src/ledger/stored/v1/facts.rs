//! The stored form of facts.

use super::leaves::{
    Author, Carriage, Content, Declared, EditPhase, Evidence, Globs, LineRange, Lines, Mode,
    Passing, Path, Program, Refusal, Session, Source, Verdict, VersionKind,
};
use super::session_memory::Note;
use crate::ledger::record;
use crate::ledger::stored::mirror::{List, Mirror, Rare, structs, variants};

structs! {
    Held = record::Held {
        0 hash: Option<Content>,
        1 size: u64,
        2 lines: u32,
        3 mtime_ms: u64,
        4 mode: Option<Mode>,
        5 owner: Option<u32>,
    }
    Version = record::VersionFact {
        0 path: Path,
        1 kind: VersionKind,
        6 from: Option<Path>,
        2 held: Held,
        3 author: Author,
        4 evidence: Evidence,
        7 amends: Option<u64>,
        8 edit: Option<u64>,
        9 unobserved: Rare<bool>,
        10 late: Rare<bool>,
        11 formatted: Rare<bool>,
        12 candidates: Rare<List<Session>>,
        5 before: Option<Content>,
        13 command: Option<u64>,
        14 mode_before: Option<Mode>,
        15 real: Option<Path>,
        16 by_git: Rare<bool>,
    }
    EditBegun = record::EditFact {
        0 edit: u64,
        1 session: Session,
        2 call: Option<String>,
        3 files: List<EditFile>,
        4 deadline: u64,
        5 one_shot: Rare<bool>,
        6 bound: Option<u64>,
        7 tool: Option<String>,
        8 step: Option<u64>,
    }
    EditFile = record::EditFileFact {
        0 path: Path,
        1 expect: Option<Declared>,
        2 began: Option<Content>,
        3 base: Option<Content>,
    }
    CommandBegun = record::CommandFact {
        0 command: u64,
        1 session: Session,
        2 call: Option<String>,
        3 label: Option<String>,
        4 globs: Globs,
        5 deadline: u64,
        6 bound: Option<u64>,
        7 pid: Option<u32>,
        8 formatter: Rare<bool>,
        9 workspace: Rare<bool>,
        10 branch: Option<String>,
    }
}

variants! {
    Fact = record::Fact {
        0 SessionOpened {
            0 session: Session,
            1 agent: Option<Program>,
            2 parent: Option<Session>,
            3 pid: Option<u32>,
        },
        1 SessionClosed { 0 session: Session },
        2 SessionForgotten { 0 session: Session },
        3 Baseline { 0 path: Path, 1 held: Held, 2 untracked: Rare<bool>, 3 real: Option<Path> },
        4 Version(version: Version),
        5 Tracked {
            0 session: Session,
            1 path: Path,
            2 source: Source,
            3 step: Option<u64>,
        },
        6 Untracked { 0 session: Session, 1 path: Path },
        7 Copied { 0 from: Path, 1 to: Path },
        8 CopyDropped { 0 path: Path },
        9 Read {
            0 session: Session,
            1 path: Path,
            2 hash: Option<Content>,
            3 lines: u32,
            6 range: Option<LineRange>,
            4 verdict: Verdict,
            5 source: Source,
            7 step: Option<u64>,
        },
        10 Wrote {
            0 session: Session,
            1 path: Path,
            2 hash: Declared,
            3 assumed: Rare<bool>,
        },
        11 Invalidated { 0 session: Session, 1 path: Option<Path> },
        12 Compacted { 0 session: Session, 1 keep: List<Path> },
        13 Truncated { 0 session: Session, 1 items: List<(Path, Option<LineRange>)> },
        14 EditBegun(edit: EditBegun),
        15 EditEnded {
            0 edit: u64,
            1 session: Session,
            2 paths: List<Path>,
            3 phase: EditPhase,
        },
        16 Delivered {
            0 session: Session,
            1 paths: List<(Path, u64)>,
            2 lost: Rare<List<u64>>,
        },
        17 ResetTold { 0 session: Session },
        18 Lost {
            0 session: Session,
            1 path: Path,
            2 version: u64,
            3 by: u64,
            4 seen: Rare<List<(Content, Lines)>>,
            5 lines: Option<Lines>,
        },
        19 Saved { 0 path: Path, 1 hash: Content, 2 time: u64, 3 formatted: Rare<bool> },
        20 CommandBegun(command: CommandBegun),
        21 CommandEnded {
            0 command: u64,
            1 session: Session,
            2 exit: Option<i32>,
            3 branch: Option<String>,
        },
        22 Noted { 0 session: Session, 1 note: Note },
        23 Labelled { 0 session: Session, 1 label: String },
        24 NameUsed { 0 session: Session, 1 name: Path, 2 file: Path },
        25 NamesJoined { 0 name: Path, 1 file: Path },
        26 NamesParted { 0 file: Path, 1 leaving: List<Path> },
        27 Carried {
            0 session: Session,
            1 path: Path,
            2 from: Content,
            3 to: Content,
            4 kept: Lines,
            5 changed: Rare<Lines>,
        },
        28 Inherited { 0 session: Session, 1 from: Session },
        29 Refused { 0 session: Session, 1 path: Option<Path>, 2 cause: Refusal },
        30 Passed { 0 session: Session, 1 path: Path, 2 cause: Passing },
        31 Undone {
            0 session: Option<Session>,
            1 undo: u64,
            2 redo: Rare<bool>,
            3 files: u32,
            4 hunks: u32,
            5 conflicts: Rare<u32>,
        },
        32 BroughtBack {
            0 session: Option<Session>,
            1 path: Path,
            2 version: Option<u64>,
        },
        33 Retired,
        34 Claimed {
            0 path: Path,
            1 version: u64,
            2 lines: List<(u32, u64)>,
            3 session: Option<Session>,
        },
        35 Kept { 0 session: Option<Session>, 1 files: u32, 2 changes: u32 },
        36 GitBrought { 0 version: u64, 1 path: Path, 2 how: Carriage },
        37 Lineage {
            0 path: Path,
            1 version: Option<u64>,
            2 from: Option<Path>,
            3 until: Rare<u64>,
        },
    }
}
