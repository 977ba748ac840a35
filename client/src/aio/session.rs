//! Sessions and edits as values, over an async connection.

use touchmark_proto::changes::{Ack, ModifiedTake};
use touchmark_proto::edits::{CommitFile, EditBegin, EditCommit, EditCommitted, EditFile};
use touchmark_proto::files::{FileRead, FileReadResult, FileReadText, FileStatus, FileText};
use touchmark_proto::sessions::{SessionClose, SessionOpen, SessionOpened};
use touchmark_proto::writes::FileWritten;
use touchmark_proto::{Change, ClientPath, FileState, HashOrAbsent, SessionId};

use super::Client;
use crate::error::Result;
use crate::hash_of;
use crate::session::{aborting, session_id, took_a_save_for_its_own, writing};

/// One agent conversation or task, on one connection. As
/// [`crate::Session`], without the file system.
#[derive(Clone, Debug)]
pub struct Session {
    client: Client,
    id: SessionId,
}

impl Session {
    /// Opens a session, or comes back to it.
    ///
    /// # Errors
    /// The daemon's own, and `invalidParams` for an empty or over-long name.
    pub async fn open(client: &Client, name: &str) -> Result<Self> {
        let ask = SessionOpen {
            session: session_id(name)?,
            agent: None,
            parent: None,
            pid: None,
        };
        Ok(Self::open_with(client, ask).await?.0)
    }

    /// The same with all that can be said of a session: its parent, say, for a
    /// sub-agent (SEEN-5).
    ///
    /// # Errors
    /// As [`Session::open`].
    pub async fn open_with(client: &Client, ask: SessionOpen) -> Result<(Self, SessionOpened)> {
        let id = ask.session.clone();
        let opened = client.call(ask).await?;
        let session = Self {
            client: client.clone(),
            id,
        };
        Ok((session, opened))
    }

    /// Its name.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Its connection, for everything that has no method here.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Records that the session has read the whole file: these bytes, or
    /// what the daemon finds (SEEN-1).
    ///
    /// # Errors
    /// `notFound`, `notAFile`, `unreadable`.
    pub async fn read(
        &self,
        path: impl Into<ClientPath>,
        bytes: Option<&[u8]>,
    ) -> Result<FileReadResult> {
        self.client
            .call(FileRead {
                session: self.id.clone(),
                path: path.into(),
                hash: bytes.map(hash_of),
                range: None,
                total_lines: None,
                text: None,
                step: None,
                source: None,
                sync: None,
                verify: None,
            })
            .await
    }

    /// Has the daemon read the file for the session.
    ///
    /// # Errors
    /// As [`Session::read`].
    pub async fn read_text(&self, path: impl Into<ClientPath>) -> Result<FileText> {
        self.client
            .call(FileReadText {
                session: self.id.clone(),
                path: path.into(),
                range: None,
                step: None,
                force: false,
                track: None,
                sync: None,
                verify: None,
            })
            .await
    }

    /// What the session's copies of these files are worth now.
    ///
    /// # Errors
    /// The daemon's own.
    pub async fn status<P: Into<ClientPath>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Vec<FileState>> {
        let paths: Vec<ClientPath> = paths.into_iter().map(Into::into).collect();
        let mut files = Vec::new();
        let mut cursor = None;
        loop {
            let answer = self
                .client
                .call(FileStatus {
                    session: self.id.clone(),
                    paths: Some(paths.clone()),
                    state: Vec::new(),
                    sync: None,
                    verify: None,
                    limit: None,
                    cursor,
                })
                .await?;
            files.extend(answer.files);
            cursor = answer.more;
            if cursor.is_none() {
                return Ok(files);
            }
        }
    }

    /// What others changed since the last time this was asked (MOD-2).
    ///
    /// # Errors
    /// The daemon's own.
    pub async fn changed(&self) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        loop {
            let answer = self
                .client
                .call(ModifiedTake {
                    session: self.id.clone(),
                    peek: false,
                    ack: Ack::Implicit,
                    paths: None,
                    sync: None,
                    verify: None,
                    limit: None,
                })
                .await?;
            changes.extend(answer.changes);
            if answer.more != Some(true) {
                return Ok(changes);
            }
        }
    }

    /// Says that the session is about to write a file, and which bytes where
    /// it knows. A dropped edit is aborted (ATTR-9).
    ///
    /// # Errors
    /// `stale` or `notRead`, `busy`.
    pub async fn edit(&self, path: impl Into<ClientPath>, expect: Option<&[u8]>) -> Result<Edit> {
        let path = path.into();
        let begun = self
            .client
            .call(EditBegin {
                session: self.id.clone(),
                files: vec![EditFile {
                    path: path.clone(),
                    expect: expect.map(|bytes| HashOrAbsent::Hash(hash_of(bytes))),
                    base: None,
                }],
                bind: true,
                call_id: None,
                require_read: None,
                force: false,
                wait_ms: None,
                ttl_ms: None,
                tool: None,
                step: None,
            })
            .await?;
        Ok(Edit {
            client: self.client.clone(),
            session: self.id.clone(),
            path,
            id: Some(begun.edit),
            before: begun.files.into_iter().next(),
        })
    }

    /// Ends the session: its open edits are aborted.
    ///
    /// # Errors
    /// The daemon's own.
    pub async fn close(self) -> Result<()> {
        self.client
            .call(SessionClose {
                session: self.id,
                forget: false,
            })
            .await
            .map(drop)
    }
}

/// An open edit of one file. Dropped without a commit, it is aborted.
#[derive(Debug)]
#[must_use = "a dropped edit is aborted"]
pub struct Edit {
    client: Client,
    session: SessionId,
    path: ClientPath,
    /// Taken by whatever ends the edit.
    id: Option<String>,
    before: Option<FileState>,
}

impl Edit {
    /// The daemon's name of the edit.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// The file as it was when the edit began.
    pub fn before(&self) -> Option<&FileState> {
        self.before.as_ref()
    }

    /// Writes these bytes through the daemon and commits, as
    /// [`crate::Edit::write`] does.
    ///
    /// # Errors
    /// `stale`, `conflict`: the edit is aborted, and nothing was written.
    pub async fn write(mut self, bytes: &[u8]) -> Result<FileWritten> {
        let before = self.before.as_ref().and_then(|state| state.hash);
        let ask = writing(&self.session, &self.path, bytes, before);
        match self.client.call(ask.clone()).await {
            Ok(written) => {
                self.commit(bytes).await?;
                Ok(written)
            }
            Err(error) if took_a_save_for_its_own(&error) => {
                self.client.call(aborting(self.id.take())).await?;
                self.client.call(ask).await
            }
            Err(error) => Err(error),
        }
    }

    /// The write is done, and these bytes were written.
    ///
    /// # Errors
    /// The daemon's own.
    pub async fn commit(self, written: &[u8]) -> Result<EditCommitted> {
        self.end(HashOrAbsent::Hash(hash_of(written))).await
    }

    /// The write is done: the file was deleted.
    ///
    /// # Errors
    /// The daemon's own.
    pub async fn commit_deleted(self) -> Result<EditCommitted> {
        self.end(HashOrAbsent::Absent).await
    }

    async fn end(mut self, hash: HashOrAbsent) -> Result<EditCommitted> {
        let committed = self
            .client
            .call(EditCommit {
                edit: self.id.clone(),
                session: None,
                call_id: None,
                files: vec![CommitFile {
                    path: self.path.clone(),
                    hash: Some(hash),
                }],
            })
            .await;
        // A future dropped before this still aborts; the abort of an edit
        // that has ended meanwhile changes nothing.
        self.id = None;
        committed
    }
}

impl Drop for Edit {
    fn drop(&mut self) {
        if self.id.is_some() {
            self.client.send_only(aborting(self.id.take()));
        }
    }
}
