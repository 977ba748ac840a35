//! `stats`: what was saved.

use touchmark_proto::daemon::Stats;
use touchmark_proto::{Error, ErrorCode, RequestId};

use crate::engine::Engine;
use crate::pending::{Pending, Step};

impl Engine {
    pub(super) fn stats(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &Stats,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }
}
