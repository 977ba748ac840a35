//! `retention/rank`: what may leave a context, and what goes first.

use touchmark_proto::retention::RetentionRank;
use touchmark_proto::{Error, ErrorCode, RequestId};

use crate::engine::Engine;
use crate::pending::{Pending, Step};

impl Engine {
    pub(super) fn retention_rank(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &RetentionRank,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }
}
