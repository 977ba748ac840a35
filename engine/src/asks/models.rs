//! `model/*`: which models a session used.

use touchmark_proto::models::{ModelList, ModelRecord};
use touchmark_proto::{Error, ErrorCode, RequestId};

use crate::engine::Engine;
use crate::pending::{Pending, Step};

impl Engine {
    pub(super) fn model_record(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &ModelRecord,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn model_list(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &ModelList,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }
}
