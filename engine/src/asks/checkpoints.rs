//! `checkpoint/*`, `warning/*`: what was edited after a moment (CHK).

use touchmark_proto::checkpoints::{
    CheckpointCreate, CheckpointDelete, CheckpointDetect, CheckpointList, WarningCleanup,
    WarningStore, WarningTake,
};
use touchmark_proto::{Error, ErrorCode, RequestId};

use crate::engine::Engine;
use crate::pending::{Pending, Step};

impl Engine {
    pub(super) fn checkpoint_create(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &CheckpointCreate,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn checkpoint_list(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &CheckpointList,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn checkpoint_delete(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &CheckpointDelete,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn checkpoint_detect(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &CheckpointDetect,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn warning_store(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &WarningStore,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn warning_take(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &WarningTake,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn warning_cleanup(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &WarningCleanup,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }
}
