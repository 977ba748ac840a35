//! `task/*`: background tasks.

use touchmark_proto::tasks::{TaskCleanup, TaskList, TaskRemove, TaskSave};
use touchmark_proto::{Error, ErrorCode, RequestId};

use crate::engine::Engine;
use crate::pending::{Pending, Step};

impl Engine {
    pub(super) fn task_save(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &TaskSave,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn task_list(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &TaskList,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn task_remove(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &TaskRemove,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }

    pub(super) fn task_cleanup(
        &mut self,
        _request: RequestId,
        _pending: &mut Pending,
        _ask: &TaskCleanup,
    ) -> Step {
        Step::Done(Err(Error::new(ErrorCode::InternalError, "not built yet")))
    }
}
