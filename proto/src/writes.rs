//! Requests that write files through the daemon, and requests about the bytes
//! it has kept for recovery (GUARD).

use crate::edits::Outcome;
use crate::files::TextEncoding;
use crate::{Author, ClientPath, Hash, Millis, RelPath, SessionId, Version};

/// Writes a whole file, unless its content differs from what the session saw
/// last (GUARD-1).
#[apply(request!)]
pub struct FileWrite {
    /// The session that writes, by its id or label.
    pub session: SessionId,
    /// The file.
    pub path: ClientPath,
    /// The new content as text. Exactly one of this and `base64` is required.
    pub text: Option<String>,
    /// The new content as base64. Exactly one of this and `text` is required.
    pub base64: Option<String>,
    /// The hash of the content that the new one was computed from; default: the
    /// content the session saw last.
    pub base: Option<Hash>,
    /// Whether to proceed where `notRead` or `stale` would refuse. Bytes that
    /// are overwritten unseen are kept for recovery.
    #[serde(default)]
    pub force: bool,
    /// Whether to refuse a file that the session has not read (GUARD-4);
    /// default true.
    pub require_read: Option<bool>,
    /// Whether to create missing directories; default false.
    #[serde(default)]
    pub create_directories: bool,
    /// Whether to store `text` as the file stores its text now: with its
    /// encoding, byte order mark and line endings; default false: as UTF-8, as
    /// given.
    #[serde(default)]
    pub keep_form: bool,
    /// The agent's number for its current step, if it has one. touchmark only
    /// stores it.
    pub step: Option<u64>,
}

/// Replaces a text in a file, unless the file's content differs from what the
/// session saw last.
#[apply(request!)]
pub struct FileEdit {
    /// The session that writes, by its id or label.
    pub session: SessionId,
    /// The file.
    pub path: ClientPath,
    /// The text to replace. It must occur exactly once, unless `replaceAll` is
    /// true.
    pub old_string: String,
    /// The text that replaces `oldString`.
    pub new_string: String,
    /// Whether to replace every occurrence; default false.
    #[serde(default)]
    pub replace_all: bool,
    /// Whether to proceed where `notRead` or `stale` would refuse.
    #[serde(default)]
    pub force: bool,
    /// The agent's number for its current step, if it has one. touchmark only
    /// stores it.
    pub step: Option<u64>,
}

/// The mechanism that protected a write (GUARD-2).
#[apply(choice!)]
pub enum Guard {
    /// The old and the new file were exchanged atomically, and the old file's
    /// content was checked afterwards.
    Exchange,
    /// The new file took a name that no file had.
    Noreplace,
    /// The file was checked and then written in place.
    Checked,
}

/// The result of `file/write`.
#[apply(answer!)]
pub struct FileWritten {
    /// The version that was written. Null if the file already had this content
    /// and no version was recorded since it is tracked.
    pub version: Option<Version>,
    /// The result of the write: `applied`, `unchanged`, `overwritten` or
    /// `clobbered`.
    pub outcome: Outcome,
    /// How the write was guarded.
    pub guard: Guard,
    /// Whether the daemon held a lease during the write: the kernel then
    /// reports other processes that open the file.
    pub lease: bool,
    /// Absolute paths of the copies of overwritten bytes that the session had
    /// not seen.
    pub recovered: Vec<String>,
}

/// How the text to replace was found.
#[apply(choice!)]
pub enum Matched {
    /// Exactly as given.
    Exact,
    /// With other quotation marks. The file keeps its own.
    Quotes,
    /// With other line endings. The file keeps its own.
    LineEndings,
}

/// The result of `file/edit`.
#[apply(answer!)]
pub struct FileEdited {
    /// The version that was written. Null if the file already had this content
    /// and no version was recorded since it is tracked.
    pub version: Option<Version>,
    /// The result of the write: `applied`, `unchanged`, `overwritten` or
    /// `clobbered`.
    pub outcome: Outcome,
    /// How the write was guarded.
    pub guard: Guard,
    /// Whether the daemon held a lease during the write: the kernel then
    /// reports other processes that open the file.
    pub lease: bool,
    /// Absolute paths of the copies of overwritten bytes that the session had
    /// not seen.
    pub recovered: Vec<String>,
    /// How the text to replace was found.
    pub matched: Matched,
    /// The number of replacements.
    pub replacements: u32,
    /// The line number of the first replacement, from 1.
    pub line: u32,
}

/// Bytes that a guarded write would have destroyed, or that a command destroyed in
/// an ignored file (SCOPE-10), kept for recovery.
#[apply(answer!)]
pub struct RecoveryItem {
    /// The item's id.
    pub id: String,
    /// The path of the file that had the kept bytes.
    pub path: RelPath,
    /// The hash of the bytes.
    pub hash: Hash,
    /// The author of the bytes, if it is known.
    pub author: Option<Author>,
    /// When the bytes were kept.
    pub time: Millis,
    /// The size in bytes.
    pub size: u64,
    /// The absolute path of the copy.
    pub file: String,
}

/// Lists the bytes that are kept for recovery.
#[apply(request!)]
pub struct RecoveryList {
    /// Only the item with this id; `None` means all.
    pub id: Option<String>,
}

/// Items kept for recovery, newest first.
#[apply(answer!)]
pub struct RecoveryItems {
    /// The items.
    pub items: Vec<RecoveryItem>,
}

/// Requests the content of an item kept for recovery.
#[apply(request!)]
pub struct RecoveryShow {
    /// The item's id.
    pub id: String,
}

/// An item kept for recovery, with its content.
#[apply(answer!)]
pub struct RecoveryShown {
    /// The item; always one.
    pub items: Vec<RecoveryItem>,
    /// The item's content, up to `limits.read_text` bytes.
    pub text: String,
    /// The encoding of `text`.
    pub encoding: TextEncoding,
    /// Whether `text` was cut. The whole content is in the item's file.
    pub truncated: bool,
}

/// Writes kept bytes back to their path. The current content of the file is
/// kept first.
#[apply(request!)]
pub struct RecoveryRestore {
    /// The item's id.
    pub id: String,
    /// Whether to write also where the present content cannot be kept and so
    /// cannot be brought back (HIST-4); default false.
    #[serde(default)]
    pub no_redo: bool,
}

/// The result of `recovery/restore`.
#[apply(answer!)]
pub struct RecoveryRestored {
    /// The item; always one. It stays until it is deleted.
    pub items: Vec<RecoveryItem>,
    /// Absolute paths of the copies of the previous content.
    pub recovered: Vec<String>,
}

/// Deletes an item kept for recovery.
#[apply(request!)]
pub struct RecoveryDelete {
    /// The item's id.
    pub id: String,
}

/// Requests a text with straight quotation marks.
#[apply(request!)]
pub struct QuotesNormalize {
    /// The text to convert.
    pub text: String,
}

/// A text with straight quotation marks.
#[apply(answer!)]
pub struct QuotesNormalized {
    /// The text with straight quotation marks.
    pub text: String,
}

/// Searches a text, ignoring the kind of quotation marks. An exact match is
/// preferred.
#[apply(request!)]
pub struct QuotesMatch {
    /// The text to find.
    pub needle: String,
    /// The text to search in.
    pub haystack: String,
}

/// A match in a text.
#[apply(answer!)]
pub struct QuotesFound {
    /// Always true. Without a match, the whole result is null.
    pub matched: bool,
    /// The position of the match in the haystack, in code points from 0.
    pub position: u32,
    /// The match as it is in the haystack.
    pub original_match: String,
    /// The match with straight quotation marks.
    pub normalized_match: String,
}
