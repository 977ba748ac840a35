//! Values that both kinds of sessions send.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use touchmark_proto::edits::EditAbort;
use touchmark_proto::writes::FileWrite;
use touchmark_proto::{ClientPath, Hash, SessionId};

use crate::error::{Error, Result};

/// Returns a guarded write of a content that was computed from `base`; `None`
/// means from no file.
pub(crate) fn writing(
    session: &SessionId,
    path: &ClientPath,
    bytes: &[u8],
    base: Option<Hash>,
) -> FileWrite {
    let mut ask = FileWrite::new(session.clone(), path.clone());
    match std::str::from_utf8(bytes) {
        Ok(text) => ask.text = Some(text.to_owned()),
        Err(_) => ask.base64 = Some(STANDARD.encode(bytes)),
    }
    ask.base = base;
    ask
}

/// Returns whether a guarded write may have failed because of the session's own
/// mark: without a declared content, the mark attributes another writer's save
/// to the session (ATTR-4). After the mark was aborted, a second try returns an
/// error with the right author.
pub(crate) fn took_a_save_for_its_own(error: &Error) -> bool {
    matches!(error.code(), "stale" | "conflict")
}

pub(crate) fn aborting(edit: Option<String>) -> EditAbort {
    let mut ask = EditAbort::new();
    ask.edit = edit;
    ask
}

pub(crate) fn session_id(name: &str) -> Result<SessionId> {
    SessionId::new(name)
        .map_err(|error| Error::Daemon(touchmark_proto::Error::invalid(error.to_string())))
}
