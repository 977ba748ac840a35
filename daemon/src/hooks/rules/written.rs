//! What a tool has written: the content on disk after it, if that is a result of
//! what the tool was told to do. A tool may start from another content than the
//! file had when the call was announced, and tools store a text in different
//! forms.

use touchmark_engine::text::tokens;
use touchmark_proto::files::FileHistory;
use touchmark_proto::{Hash, HashOrAbsent, SessionId};

use super::super::daemon_handle::DaemonHandle;
use super::super::edits::{self, Candidate};
use super::super::memory::Marked;

/// The maximum number of newer versions of a file from which the tool may have
/// started.
const VERSIONS: u32 = 8;

/// Returns the content that a tool is declared to have written; `None` if it is
/// not known. With `began_unknown`, the call's mark is not known.
pub(super) async fn find(
    daemon: &DaemonHandle,
    session: &SessionId,
    marked: &Marked,
    began_unknown: bool,
) -> Option<Candidate> {
    let seen = daemon.status(session, &marked.path).await;
    let now = seen.as_ref().and_then(|file| file.hash);
    let assumed = claim(now, marked, began_unknown);
    let is_known = assumed.is_some_and(|one| one.hash == HashOrAbsent::from(now));
    if is_known || (!began_unknown && now == marked.began) {
        return assumed;
    }
    let Some((_, bytes)) = daemon.bytes(&marked.path).await else {
        return assumed;
    };
    let found = Candidate::of(&bytes);
    if marked.candidates.iter().any(|one| one.is_text_of(&found)) {
        return Some(found);
    }
    // The tool may have started from what its session has seen, or from what
    // others wrote since the call was announced. Of two calls that are reported
    // after both have written, the first claims its result alone, and the second
    // started from that.
    let history = FileHistory::new(marked.path.clone()).limit(VERSIONS);
    let versions = daemon.ask(history).await.ok();
    let versions = versions.into_iter().flat_map(|history| history.versions);
    let mut bases: Vec<Hash> = Vec::new();
    let known = [marked.began, seen.and_then(|file| file.seen_hash)];
    for base in known
        .into_iter()
        .chain(versions.map(|version| version.hash))
    {
        bases.extend(
            base.filter(|base| HashOrAbsent::Hash(*base) != found.hash && !bases.contains(base)),
        );
    }
    for base in bases {
        let Some(base) = daemon.content(base).await else {
            continue;
        };
        let results = edits::candidates(&marked.change, Some(&base));
        if results.iter().any(|one| one.is_text_of(&found)) {
            return Some(found);
        }
    }
    if let Some(HashOrAbsent::Hash(hash)) = assumed.map(|one| one.hash) {
        keep(daemon, marked, hash).await;
    }
    assumed
}

/// Stores a content that a tool wrote and that was overwritten before it was
/// read, so that the lines of others can be told from the tool's.
async fn keep(daemon: &DaemonHandle, marked: &Marked, hash: Hash) {
    let Ok(path) = marked.path.normalise(&daemon.cx.root_bytes()) else {
        return;
    };
    let base = match marked.began {
        Some(began) => daemon.content(began).await,
        None => None,
    };
    let results = edits::contents(&marked.change, base.as_deref());
    let Some(bytes) = results.into_iter().find(|bytes| Hash::of(bytes) == hash) else {
        return;
    };
    let is_secret = daemon.cx.workspace.files.is_secret(&path) || tokens::any(&bytes);
    let is_small = bytes.len() as u64 <= daemon.cx.config.contents_file;
    if is_secret || is_small {
        let bytes = (!is_secret).then(|| bytes.into());
        daemon.cx.inside.keep((hash, bytes));
    }
}

/// Returns the content that a tool is declared to have written, by the results
/// that were computed in advance; `None` if it is not known.
fn claim(now: Option<Hash>, marked: &Marked, began_unknown: bool) -> Option<Candidate> {
    let found = HashOrAbsent::from(now);
    let candidates = &marked.candidates;
    if let Some(found) = candidates.iter().find(|one| one.hash == found) {
        return Some(*found);
    }
    // An unchanged file means that the tool wrote nothing. If several calls ran
    // in parallel, it is not known which content is whose.
    if marked.beside || (!began_unknown && now == marked.began) {
        return None;
    }
    candidates.first().copied()
}

#[cfg(test)]
mod tests {
    use super::super::super::happened::Change;
    use super::*;
    use std::sync::Arc;
    use touchmark_proto::ClientPath;

    #[test]
    fn what_a_tool_is_said_to_have_written() {
        let hash = |text: &str| Hash::of(text.as_bytes());
        let candidate = |hash| Candidate {
            hash,
            text: None,
            words: None,
        };
        let marked = |candidates: &[HashOrAbsent], beside| Marked {
            path: ClientPath::from("a"),
            began: Some(hash("0")),
            candidates: candidates.iter().copied().map(candidate).collect(),
            change: Arc::new(Change::Unknown),
            beside,
        };
        let said = |now, marked: &Marked| claim(now, marked, false).map(|said| said.hash);
        let (one, two) = (HashOrAbsent::Hash(hash("1")), HashOrAbsent::Hash(hash("2")));
        let (both, beside) = (marked(&[one, two], false), marked(&[one, two], true));
        assert_eq!(said(Some(hash("2")), &both), Some(two));
        assert_eq!(said(Some(hash("0")), &both), None, "nothing written");
        assert_eq!(said(Some(hash("user")), &both), Some(one), "saved over");
        assert_eq!(said(Some(hash("user")), &beside), None, "who knows");
        assert_eq!(said(Some(hash("x")), &marked(&[], false)), None);
        let gone = marked(&[HashOrAbsent::Absent], false);
        assert_eq!(said(None, &gone), Some(HashOrAbsent::Absent));
    }
}
