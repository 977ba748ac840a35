//! What a run does and compares. A row that is off has a reason; no row stays
//! off for good. `TOUCHMARK_ROWS=+Mounts,-Symlinks` switches rows on and off
//! for a run, `+all` and `-all` switch every row. The last word about a row
//! counts.

/// A kind of step, or a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the table says what each is
pub enum Row {
    // Kinds of steps.
    Plain,
    Edits,
    UndeclaredMarks,
    GuardedWrites,
    PartialReads,
    Reverts,
    OpenWriters,
    Maps,
    Renames,
    Exchanges,
    HardLinks,
    Symlinks,
    DirectorySymlinks,
    DirectoryRenames,
    DirectoriesReplaced,
    Mounts,
    Binds,
    Restarts,
    // Comparisons.
    Contents,
    Worth,
    SameForAllNames,
    Listed,
    ListedAuthors,
    Refusals,
    Outcomes,
    Busy,
    Repeats,
    HistoryContents,
    HistoryAuthors,
    Audit,
}

/// Every row: whether it is on, and what it is or why it is off.
const TABLE: &[(Row, bool, &str)] = &[
    (
        Row::Plain,
        true,
        "saves, removals, touches, reads, takes, compaction",
    ),
    (
        Row::Edits,
        true,
        "edit/begin with the content declared, the write, edit/commit",
    ),
    (
        Row::UndeclaredMarks,
        true,
        "edit/begin without a content, saves of agents and others, edit/commit",
    ),
    (Row::GuardedWrites, true, "file/write, file/edit"),
    (Row::PartialReads, true, "reads of some lines"),
    (
        Row::Reverts,
        true,
        "a return to a content seen earlier is a change",
    ),
    (
        Row::OpenWriters,
        true,
        "half a save, the file kept open across other steps",
    ),
    (Row::Maps, true, "stores through a memory map"),
    (Row::Renames, true, "a file's name becomes another"),
    (Row::Exchanges, true, "two files change places"),
    (Row::HardLinks, true, "a name becomes a hard link"),
    (Row::Symlinks, true, "a name becomes a symlink to a file"),
    (
        Row::DirectorySymlinks,
        true,
        "a name becomes a symlink to a directory",
    ),
    (
        Row::DirectoryRenames,
        true,
        "a directory's name becomes another",
    ),
    (
        Row::DirectoriesReplaced,
        true,
        "rm -r and mv, or an exchange",
    ),
    (Row::Mounts, true, "a tmpfs over a directory, unmounted"),
    (Row::Binds, true, "a directory is mounted once more"),
    (Row::Restarts, true, "the daemon ends, is killed, starts"),
    (Row::Contents, true, "hash and size told are those on disk"),
    (Row::Worth, true, "fresh, stale, deleted, unread"),
    (
        Row::SameForAllNames,
        true,
        "FILE-1: two names of a file get the same answers",
    ),
    (
        Row::Listed,
        true,
        "modified/take lists what others changed, once",
    ),
    (Row::ListedAuthors, true, "by whom"),
    (
        Row::Refusals,
        true,
        "edit/begin and guarded writes are refused iff stale or not read",
    ),
    (
        Row::Outcomes,
        true,
        "edit/commit says what became of the write",
    ),
    (
        Row::Busy,
        true,
        "another session's edit of the file, by any name",
    ),
    (
        Row::Repeats,
        true,
        "nothing is called a repeat that was not shown",
    ),
    (
        Row::HistoryContents,
        true,
        "the newest version is what is on disk",
    ),
    (Row::HistoryAuthors, true, "its author wrote it"),
    (Row::Audit, true, "what is believed is on disk"),
];

impl Row {
    /// Returns whether the row is switched on.
    pub fn is_on(self) -> bool {
        let name = format!("{self:?}");
        let words = std::env::var("TOUCHMARK_ROWS").unwrap_or_default();
        let word = words
            .split(',')
            .rfind(|word| matches!(word.get(1..), Some(row) if row == name || row == "all"));
        match word {
            Some(word) => word.starts_with('+'),
            None => TABLE.iter().any(|(row, on, _)| *row == self && *on),
        }
    }

    /// Returns the rows that are off, with the reasons.
    pub fn off() -> impl Iterator<Item = String> {
        TABLE
            .iter()
            .filter(|(row, ..)| !row.is_on())
            .map(|(row, _, why)| format!("{row:?}: {why}"))
    }
}
