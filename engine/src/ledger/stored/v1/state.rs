//! The stored form of the parts of the state.

use super::facts::{CommandBegun, EditBegun, Held};
use super::leaves::{
    AuthorKind, Content, Declared, Evidence, Globs, Lines, Mode, Path, Session, Source, VersionKind,
};
use crate::disk;
use crate::ledger::stored::mirror::{List, Mirror, Rare, structs};
use crate::ledger::{knowledge, names, state};

structs! {
    PathState = state::PathState {
        0 held: Held,
        1 baseline: u64,
        3 versions: Rare<List<KeptVersion>>,
        2 newest: u64,
        5 taken: Rare<List<(Session, u64)>>,
        4 holders: Rare<List<Session>>,
    }
    KeptVersion = state::KeptVersion {
        0 n: u64,
        1 time: u64,
        2 first_time: u64,
        3 count: u32,
        4 lines: u32,
        5 size: u64,
        6 mtime_ms: u64,
        7 hash: Option<Content>,
        8 before: Option<Content>,
        9 kind: VersionKind,
        10 author: AuthorKind,
        11 evidence: Evidence,
        12 lost: Rare<bool>,
        13 unobserved: Rare<bool>,
        14 late: Rare<bool>,
        15 formatted: Rare<bool>,
        16 details: Option<VersionDetails>,
        17 mode: Option<Mode>,
    }
    VersionDetails = state::VersionDetails {
        0 from: Option<Path>,
        1 session: Option<Session>,
        2 edit: Option<u64>,
        3 candidates: Rare<List<Session>>,
        4 command: Option<u64>,
        5 mode_before: Option<Mode>,
        6 replaced: Option<Replaced>,
    }
    Replaced = state::Replaced {
        0 by: u64,
        1 content: Option<Content>,
        2 seen: Rare<List<(Content, Lines)>>,
    }
    Knowledge = knowledge::Knowledge {
        0 baseline: Option<Content>,
        1 seen: List<Seen>,
        7 uncertain: Rare<bool>,
        2 at: u64,
        8 foreign: Rare<bool>,
        9 behind: Rare<u64>,
        3 told: u64,
        5 read_count: u32,
        6 read_at: Option<u64>,
        10 edit_at: Option<u64>,
        11 copied: Rare<bool>,
        4 record: PastRecord,
        12 past: Rare<List<PastRecord>>,
        13 unsure: Rare<Lines>,
        14 displaced: Option<List<Seen>>,
        15 brought: Option<List<KeptVersion>>,
    }
    Seen = knowledge::Seen {
        0 hash: Option<Content>,
        1 ranges: Rare<Lines>,
        2 resident: Rare<Lines>,
        3 assumed: Rare<bool>,
        4 read: Rare<bool>,
        5 written: Rare<bool>,
        6 moved: Rare<bool>,
    }
    PastRecord = knowledge::PastRecord {
        0 source: Source,
        1 step: Option<u64>,
        2 time: u64,
        3 lines: u32,
        4 hash: Option<Content>,
    }
    LostVersion = state::LostVersion {
        0 n: u64,
        1 path: Path,
        2 version: KeptVersion,
        3 by: u64,
    }
    Edit = state::Edit { 0 fact: EditBegun, 1 n: u64, 2 files: List<EditFile> }
    EditFile = state::EditFile {
        0 path: Path,
        1 expect: Option<Declared>,
        2 began: Option<Content>,
        3 matched: Option<u64>,
        4 name: Option<Path>,
        5 parted: Option<Path>,
    }
    Command = state::Command { 0 fact: CommandBegun, 1 n: u64, 2 cover: Globs }
    PastCommand = state::PastCommand {
        0 command: u64,
        1 session: Session,
        2 label: Option<String>,
        3 begun: (u64, u64),
        4 ended: Option<(u64, u64)>,
        5 exit: Option<i32>,
        6 branch_before: Option<String>,
        7 branch_after: Option<String>,
        8 versions: Rare<u64>,
    }
    CommandFile = state::CommandFile { 0 n: u64, 1 held: Held }
    EndedEdit = state::EndedEdit {
        0 edit: u64,
        1 session: Session,
        2 call: Option<String>,
    }
    SaveReport = state::SaveReport {
        0 path: Path,
        1 hash: Content,
        2 time: u64,
        3 formatted: Rare<bool>,
    }
    Names = names::Names {
        0 files: Rare<List<(Path, Path)>>,
        1 several: Rare<List<(Path, SeveralNames)>>,
        2 before: Rare<List<(Path, List<(Path, u64)>)>>,
    }
    SeveralNames = names::Several {
        0 others: List<Path>,
        1 used: List<(Session, List<Path>)>,
    }
    Stamp = disk::Stamp {
        0 inode: u64,
        1 size: u64,
        2 modified: i64,
        3 changed: i64,
        4 device: u64,
        5 mount: u64,
    }
}
