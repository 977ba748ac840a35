//! `call/*`: tool calls that repeat earlier ones.

use touchmark_proto::calls::{CallCheck, CallClear, CallRecord, CallStats};
use touchmark_proto::{Error, ErrorCode, RequestId};

use crate::engine::Engine;
use crate::pending::{Pending, Step};

impl Engine {
    pub(super) fn call_check(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &CallCheck,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn call_record(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &CallRecord,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn call_stats(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &CallStats,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn call_clear(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &CallClear,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }
}
