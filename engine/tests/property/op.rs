//! The steps of a run. A run is nothing but a list of these, so that a failing
//! run can be shrunk by leaving out steps.

use serde::{Deserialize, Serialize};

pub type Path = &'static str;

/// The files of the runs. Those in `y` are created by renames of `d`.
pub const FILES: &[Path] = &["a", "d/b", "d/c", "d/e/f", "x/b", "n"];
pub const ALL_FILES: &[Path] = &[
    "a", "d/b", "d/c", "d/e/f", "x/b", "n", "y/b", "y/c", "y/e/f",
];
pub const DIR_RENAMES: &[(Path, Path)] = &[("d", "y"), ("y", "d"), ("d/e", "x"), ("x", "y/e")];
pub const SESSIONS: &[&str] = &["s0", "s1", "s2"];

/// How bytes get under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum How {
    /// The file is opened with truncation, written and closed.
    InPlace,
    /// A temporary file next to it is renamed over it.
    Replace,
    /// A file is renamed from a place that is not watched.
    FromOutside,
    /// The file is unlinked, then created.
    Recreate,
}

/// The hash that a client names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum Named {
    No,
    /// The hash of the content on disk when the request is made.
    Disk,
    Content(u32),
    Absent,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum Op {
    Write {
        path: Path,
        content: u32,
        how: How,
    },
    /// Writes what an edit declared, if the edit has begun.
    AgentWrite {
        slot: usize,
        file: usize,
        how: How,
    },
    Unlink {
        path: Path,
    },
    Rename {
        from: Path,
        to: Path,
    },
    MoveOut {
        path: Path,
    },
    MoveBack {
        path: Path,
    },
    RenameDir {
        from: Path,
        to: Path,
    },
    Touch {
        path: Path,
    },
    Chmod {
        path: Path,
    },
    /// A writer opens a file. Its content then comes in pieces.
    WOpen {
        writer: usize,
        path: Path,
        truncate: bool,
        content: u32,
    },
    WChunk {
        writer: usize,
        part: usize,
    },
    WClose {
        writer: usize,
    },
    Ask(Asking),
    /// Continues until the edit of that slot has been answered.
    Await {
        slot: usize,
    },
    Hints(usize),
    ExecRead {
        which: usize,
        unstable: bool,
    },
    GiveRead {
        which: usize,
    },
    Drain,
    Pass(u64),
    /// The daemon is killed. The disk continues to change.
    Down,
    /// The daemon starts again, from a snapshot of the state or from the
    /// records alone.
    Up {
        snapshot: bool,
    },
    Overflow,
    Gap {
        below: Path,
    },
    FenceFails,
    Disconnect {
        connection: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Asking {
    pub session: usize,
    pub connection: u64,
    pub within: Option<u64>,
    pub sync: bool,
    pub ask: Ask,
}

pub type Range = Option<(u32, u32)>;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum Ask {
    Open,
    Close {
        forget: bool,
    },
    Compacted {
        keep: Vec<Path>,
    },
    Truncated {
        path: Path,
        range: Range,
    },
    Read {
        path: Path,
        named: Named,
        range: Range,
    },
    ReadText {
        path: Path,
        range: Range,
        force: bool,
    },
    Mention {
        path: Path,
        named: Named,
        range: Range,
    },
    Invalidate {
        path: Option<Path>,
    },
    Status {
        paths: Option<Vec<Path>>,
    },
    List,
    History {
        path: Path,
    },
    Untrack {
        path: Path,
    },
    Begin {
        slot: usize,
        files: Vec<(Path, Named)>,
        require_read: bool,
        force: bool,
        wait: Option<u64>,
        ttl: Option<u64>,
        bind: bool,
        call: bool,
    },
    Mark {
        slot: usize,
        path: Path,
        expect: Named,
        ttl: Option<u64>,
        bind: bool,
    },
    Commit {
        slot: usize,
        /// Only these of its files; all if empty.
        files: Vec<usize>,
        /// Whether the commit names the content written.
        name_hash: bool,
        by_call: bool,
    },
    Abort {
        slot: usize,
    },
    ModList,
    Take {
        peek: bool,
        explicit: bool,
        paths: Option<Vec<Path>>,
    },
    Ack,
    Saved {
        path: Path,
        named: Named,
    },
    EditorOpen {
        path: Path,
    },
    EditorClose {
        path: Path,
    },
    Dirty {
        path: Path,
        dirty: bool,
    },
    Sync,
}
