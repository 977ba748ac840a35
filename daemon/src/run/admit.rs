//! Who and what gets in: connections, requests.

use std::sync::Arc;
use std::time::Instant;

use touchmark_engine::Input;
use touchmark_proto::{ConnectionId, Error as Refusal, ErrorCode, Millis, Request, RequestId};

use super::{ACCEPT_PAUSE, Asked, Daemon, say};
use crate::socket::{Peer, Stream, credentials, serve};

impl Daemon {
    pub(super) fn accepted(&mut self, accepted: std::io::Result<Stream>) {
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!("nobody can connect: {error}");
                self.accept_after = Some(Instant::now() + ACCEPT_PAUSE);
                return;
            }
        };
        if let Err(error) = credentials::check(&stream) {
            tracing::warn!("refused: {error}");
            return credentials::refuse(stream, error);
        }
        let most = self.options.config.connections;
        if self.peers.len() >= most as usize {
            let error = Refusal::new(
                ErrorCode::TooLarge,
                format!("{most} connections are open already"),
            );
            return credentials::refuse(
                stream,
                error.hint("close some, or raise limits.connections"),
            );
        }
        self.last_connection += 1;
        let id = ConnectionId(self.last_connection);
        let peer = Arc::new(Peer::new(id, stream));
        self.peers.insert(id, Arc::clone(&peer));
        tokio::spawn(serve(peer, Arc::clone(&self.hub)));
    }

    pub(super) fn ask(
        &mut self,
        request: RequestId,
        connection: ConnectionId,
        ask: Request,
        until: Option<Millis>,
    ) {
        self.requests += 1;
        self.last_use = Instant::now();
        let changes_state = changes_state(&ask);
        if let (true, Some(cause)) = (changes_state, &self.storage_trouble) {
            // It would take effect here and be gone with the next restart.
            let refusal = say::storage(cause);
            return self.refuse(connection, request, refusal);
        }
        self.look_at_moved(&ask);
        self.asked.insert(
            request,
            Asked {
                connection,
                until,
                changes_state,
            },
        );
        if matches!(ask, Request::Subscribe(_)) {
            // Before anything else is decided: what is recorded from the
            // subscription on is said, not looked up.
            self.engine.set_heard(true);
        }
        self.feed(Input::Request {
            request,
            connection,
            ask,
            until,
        });
    }

    pub(super) fn refuse(&mut self, connection: ConnectionId, request: RequestId, error: Refusal) {
        self.answer(connection, request, Err(error));
    }
}

/// Whether a request fails where its facts cannot be stored (LOSS-3). What a
/// query makes the daemon find out is a fact as well, but no answer rests on
/// its being stored.
fn changes_state(ask: &Request) -> bool {
    match ask {
        Request::Initialize(_)
        | Request::Ping(_)
        | Request::Status(_)
        | Request::Sync(_)
        | Request::Shutdown(_)
        | Request::Subscribe(_)
        | Request::Unsubscribe(_)
        | Request::SessionList(_)
        | Request::FileStatus(_)
        | Request::FileList(_)
        | Request::FileHistory(_)
        | Request::ModifiedList(_)
        | Request::Audit(_)
        | Request::RecoveryList(_)
        | Request::RecoveryShow(_)
        | Request::QuotesNormalize(_)
        | Request::QuotesMatch(_)
        | Request::Stats(_)
        | Request::FileRecent(_)
        | Request::FileIsStale(_)
        | Request::FileSnapshot(_)
        | Request::FileDetect(_)
        | Request::CheckpointList(_)
        | Request::CallCheck(_)
        | Request::CallStats(_)
        | Request::RetentionRank(_)
        | Request::TaskList(_)
        | Request::ModelList(_)
        | Request::SearchGrep(_)
        // What they ask for in turn is looked at by itself.
        | Request::HookClaude(_)
        | Request::HookCodex(_)
        | Request::HookGemini(_)
        | Request::HookCursor(_)
        | Request::HookOpencode(_)
        | Request::HookAck(_) => false,
        Request::CheckpointDetect(detect) => detect.store_warning,
        Request::ModifiedTake(take) => !take.peek,
        Request::FileReadText(read) => read.track.unwrap_or(true),
        Request::SessionOpen(_)
        | Request::SessionClose(_)
        | Request::SessionCompacted(_)
        | Request::SessionTruncated(_)
        | Request::FileRead(_)
        | Request::FileMention(_)
        | Request::FileInvalidate(_)
        | Request::FileUntrack(_)
        | Request::EditBegin(_)
        | Request::EditCommit(_)
        | Request::EditAbort(_)
        | Request::EditMark(_)
        | Request::CommandBegin(_)
        | Request::CommandEnd(_)
        | Request::ModifiedAck(_)
        | Request::EditorDidOpen(_)
        | Request::EditorDidClose(_)
        | Request::EditorDirty(_)
        | Request::EditorDidSave(_)
        | Request::FileWrite(_)
        | Request::FileEdit(_)
        | Request::RecoveryRestore(_)
        | Request::RecoveryDelete(_)
        | Request::CheckpointCreate(_)
        | Request::CheckpointDelete(_)
        | Request::WarningStore(_)
        | Request::WarningTake(_)
        | Request::WarningCleanup(_)
        | Request::CallRecord(_)
        | Request::CallClear(_)
        | Request::TaskSave(_)
        | Request::TaskRemove(_)
        | Request::TaskCleanup(_)
        | Request::ModelRecord(_)
        | Request::ContentsForget(_) => true,
    }
}
