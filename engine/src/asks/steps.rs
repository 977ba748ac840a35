//! `file/recent`, `file/isStale`: age counted in the agent's steps.

use touchmark_proto::files::{FileIsStale, FileRecent};
use touchmark_proto::{Error, ErrorCode, RequestId};

use crate::engine::Engine;
use crate::pending::{Pending, Step};

impl Engine {
    pub(super) fn file_recent(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &FileRecent,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn file_is_stale(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &FileIsStale,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }
}
