//! Requests that both kinds of sessions make.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use touchmark_proto::edits::EditAbort;
use touchmark_proto::writes::FileWrite;
use touchmark_proto::{ClientPath, Hash, SessionId};

use crate::error::{Error, Result};

/// Returns a guarded write of bytes that were computed from a content; `None`:
/// from no file.
pub(crate) fn writing(
    session: &SessionId,
    path: &ClientPath,
    bytes: &[u8],
    base: Option<Hash>,
) -> FileWrite {
    let (text, base64) = match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    };
    FileWrite {
        session: session.clone(),
        path: path.clone(),
        text,
        base64,
        base,
        force: false,
        require_read: None,
        create_directories: false,
        step: None,
    }
}

/// Returns whether a write was refused since the edit, which declared no
/// content, claimed what was saved in between (ATTR-4). The same write after the
/// edit's abort is refused with the author of that save.
pub(crate) fn took_a_save_for_its_own(error: &Error) -> bool {
    matches!(error.code(), "stale" | "conflict")
}

pub(crate) fn aborting(edit: Option<String>) -> EditAbort {
    EditAbort {
        edit,
        session: None,
        call_id: None,
    }
}

pub(crate) fn session_id(name: &str) -> Result<SessionId> {
    SessionId::new(name)
        .map_err(|error| Error::Daemon(touchmark_proto::Error::invalid(error.to_string())))
}
