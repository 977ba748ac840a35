//! What a run does and compares. `TOUCHMARK_ROWS=-Mounts,-Symlinks` switches rows
//! off for a run.

/// A kind of step, or a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    // Kinds of steps.
    /// Saves, removals, touches, reads, takes, compaction.
    Plain,
    /// Edit/begin with the content declared, the write, edit/commit.
    Edits,
    /// Edit/begin without a content, saves of agents and others, edit/commit.
    UndeclaredMarks,
    /// File/write, file/edit.
    GuardedWrites,
    /// Reads of some lines.
    PartialReads,
    /// A return to a content seen earlier is a change.
    Reverts,
    /// Half a save, the file kept open across other steps.
    OpenWriters,
    /// Stores through a memory map.
    Maps,
    /// A file's name becomes another.
    Renames,
    /// Two files change places.
    Exchanges,
    /// A name becomes a hard link.
    HardLinks,
    /// A name becomes a symlink to a file.
    Symlinks,
    /// A name becomes a symlink to a directory.
    DirectorySymlinks,
    /// A directory's name becomes another.
    DirectoryRenames,
    /// Rm -r and mv, or an exchange.
    DirectoriesReplaced,
    /// A tmpfs over a directory, unmounted.
    Mounts,
    /// A directory is mounted once more.
    Binds,
    /// The daemon ends, is killed, starts.
    Restarts,
    // Comparisons.
    /// Hash and size told are those on disk.
    Contents,
    /// Fresh, stale, deleted, unread.
    Worth,
    /// FILE-1: two names of a file get the same answers.
    SameForAllNames,
    /// Modified/take lists what others changed, once.
    Listed,
    /// By whom.
    ListedAuthors,
    /// Edit/begin and guarded writes are refused iff stale or not read.
    Refusals,
    /// Edit/commit says what became of the write.
    Outcomes,
    /// Another session's edit of the file, by any name.
    Busy,
    /// Nothing is called a repeat that was not shown.
    Repeats,
    /// The newest version is what is on disk.
    HistoryContents,
    /// Its author wrote it.
    HistoryAuthors,
    /// The content on record is the content on disk.
    Audit,
}

impl Row {
    /// Returns whether the row is switched on.
    pub fn is_on(self) -> bool {
        let name = format!("-{self:?}");
        let off = std::env::var("TOUCHMARK_ROWS").unwrap_or_default();
        off.split(',').all(|row| row != name)
    }
}
