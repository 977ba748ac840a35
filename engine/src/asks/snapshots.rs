//! `file/snapshot`, `file/detect`: has a file changed since somebody looked?

use touchmark_proto::files::{FileDetect, FileSnapshot};
use touchmark_proto::{Error, ErrorCode, RequestId};

use crate::engine::Engine;
use crate::pending::{Pending, Step};

impl Engine {
    pub(super) fn file_snapshot(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &FileSnapshot,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn file_detect(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &FileDetect,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }
}
