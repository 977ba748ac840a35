//! What formatters have done that an agent runs after its tools (ATTR-17).

use touchmark_proto::editors::EditorDidSave;
use touchmark_proto::files::FileHistory;
use touchmark_proto::{ClientPath, Evidence, Hash, HashOrAbsent, Millis, SessionId};

use super::super::daemon_handle::DaemonHandle;
use super::super::edits::Candidate;
use super::super::memory::Left;

/// The maximum time between a tool's write and a formatter's, in milliseconds.
const FORMATTER: Millis = 5_000;

/// Finds what formatters have done. Some end before the hook after the tool
/// runs, some run at the same time. A content with the words of what the tool
/// wrote is a formatter's; one with other words was typed by a person. With
/// `again`, files are checked once more at the next event: a formatter may not
/// have begun, or may be writing.
pub(super) async fn find(daemon: &DaemonHandle, session: &SessionId, again: bool) {
    for left in daemon.memory.left(session) {
        match is_formatted(daemon, &left).await {
            Some(hash) => {
                let saved = EditorDidSave::new(left.path, hash).formatted(true);
                let _told_by_an_editor = daemon.ask(saved).await;
            }
            None if again => daemon.memory.leave(session, left),
            None => {}
        }
    }
}

/// Returns the file's content, if a formatter has made it of what a tool left.
async fn is_formatted(daemon: &DaemonHandle, left: &Left) -> Option<Hash> {
    let words = left.written.words?;
    let (hash, bytes) = daemon.bytes(&left.path).await?;
    let is_formatted = HashOrAbsent::Hash(hash) != left.written.hash
        && Candidate::of(&bytes).words == Some(words)
        && is_unclaimed(daemon, &left.path, hash).await?;
    is_formatted.then_some(hash)
}

/// Returns whether no evidence shows who wrote a file's content, and the content
/// before it was written by an agent's tool a short time ago.
async fn is_unclaimed(daemon: &DaemonHandle, path: &ClientPath, hash: Hash) -> Option<bool> {
    let history = FileHistory::new(path.clone()).limit(8);
    let versions = daemon.ask(history).await.ok()?.versions;
    let newest = versions
        .iter()
        .position(|version| version.hash == Some(hash))?;
    let [newest, older @ ..] = versions.get(newest..)? else {
        return None;
    };
    let before = older.iter().find(|version| version.hash != newest.hash)?;
    // A later correction may have attributed that content to the agent.
    let written = versions.iter().find(|version| {
        before.hash == version.hash
            && matches!(version.evidence, Evidence::Declared | Evidence::Marked)
    })?;
    let is_soon = newest.time.abs_diff(written.time) <= FORMATTER;
    Some(newest.evidence == Evidence::Unmarked && is_soon)
}
