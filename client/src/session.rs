//! Sessions and edits as values, over a blocking connection.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use touchmark_proto::changes::{Ack, ModifiedTake};
use touchmark_proto::daemon::Program;
use touchmark_proto::edits::{
    CommitFile, EditAbort, EditBegin, EditCommit, EditCommitted, EditFile,
};
use touchmark_proto::files::{FileRead, FileReadResult, FileReadText, FileStatus, FileText};
use touchmark_proto::sessions::{SessionClose, SessionOpen, SessionOpened};
use touchmark_proto::writes::{FileWrite, FileWritten};
use touchmark_proto::{Change, ClientPath, FileState, Hash, HashOrAbsent, SessionId, native};

use crate::blocking::Client;
use crate::error::{Error, Result};
use crate::hash_of;

/// A dropped edit tells the daemon so, but holds its thread no longer than
/// this: the daemon ends it with the connection anyway (ATTR-9).
const ABORT_DEADLINE: Duration = Duration::from_millis(500);

/// One agent conversation or task, on one connection.
#[derive(Clone, Debug)]
pub struct Session {
    client: Client,
    id: SessionId,
    root: PathBuf,
}

impl Session {
    /// Opens a session, or comes back to it.
    ///
    /// # Errors
    /// The daemon's own, and `invalidParams` for an empty or over-long name.
    pub fn open(client: &Client, name: &str) -> Result<Self> {
        Self::open_as(client, name, None).map(|(session, _)| session)
    }

    /// The same, with the agent's name, and with what changed while the
    /// session was away (a look, not a take).
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_as(
        client: &Client,
        name: &str,
        agent: Option<Program>,
    ) -> Result<(Self, SessionOpened)> {
        Self::open_with(
            client,
            SessionOpen {
                session: session_id(name)?,
                agent,
                parent: None,
                pid: None,
            },
        )
    }

    /// The same with all that can be said of a session: its parent, say, for a
    /// sub-agent (SEEN-5).
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_with(client: &Client, ask: SessionOpen) -> Result<(Self, SessionOpened)> {
        let id = ask.session.clone();
        let opened = client.call(ask)?;
        let root = client
            .server()
            .map(|server| PathBuf::from(&server.workspace))
            .unwrap_or_default();
        let session = Self {
            client: client.clone(),
            id,
            root,
        };
        Ok((session, opened))
    }

    /// Its name.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The workspace's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its connection, for everything that has no method here.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Records that the session has read the whole file, by the daemon's own
    /// hash.
    ///
    /// # Errors
    /// `notFound`, `notAFile`, `unreadable`.
    pub fn read(&self, path: impl Into<ClientPath>) -> Result<FileReadResult> {
        self.client.call(self.reading(path.into()))
    }

    /// Records that the session has read exactly these bytes of the whole
    /// file, whatever the disk holds by now (SEEN-1).
    ///
    /// # Errors
    /// As [`Session::read`].
    pub fn read_bytes(&self, path: impl Into<ClientPath>, bytes: &[u8]) -> Result<FileReadResult> {
        self.client.call(FileRead {
            hash: Some(hash_of(bytes)),
            ..self.reading(path.into())
        })
    }

    /// Has the daemon read the file for the session. A repeat comes without
    /// text: its `message` is to be said in its place.
    ///
    /// # Errors
    /// As [`Session::read`].
    pub fn read_text(&self, path: impl Into<ClientPath>) -> Result<FileText> {
        self.client.call(self.reading_text(path.into(), false))
    }

    /// The same; a repeat comes with its text as well.
    ///
    /// # Errors
    /// As [`Session::read`].
    pub fn read_text_again(&self, path: impl Into<ClientPath>) -> Result<FileText> {
        self.client.call(self.reading_text(path.into(), true))
    }

    fn reading_text(&self, path: ClientPath, force: bool) -> FileReadText {
        FileReadText {
            session: self.id.clone(),
            path,
            range: None,
            step: None,
            force,
            track: None,
            sync: None,
            verify: None,
        }
    }

    fn reading(&self, path: ClientPath) -> FileRead {
        FileRead {
            session: self.id.clone(),
            path,
            hash: None,
            range: None,
            total_lines: None,
            text: None,
            step: None,
            source: None,
            sync: None,
            verify: None,
        }
    }

    /// What the session's copies of these files are worth now.
    ///
    /// # Errors
    /// The daemon's own.
    pub fn status<P: Into<ClientPath>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Vec<FileState>> {
        let paths = paths.into_iter().map(Into::into).collect();
        self.states(Some(paths))
    }

    /// What all of the session's copies are worth now.
    ///
    /// # Errors
    /// The daemon's own.
    pub fn status_all(&self) -> Result<Vec<FileState>> {
        self.states(None)
    }

    fn states(&self, paths: Option<Vec<ClientPath>>) -> Result<Vec<FileState>> {
        let mut files = Vec::new();
        let mut cursor = None;
        loop {
            let answer = self.client.call(FileStatus {
                session: self.id.clone(),
                paths: paths.clone(),
                state: Vec::new(),
                sync: None,
                verify: None,
                limit: None,
                cursor,
            })?;
            files.extend(answer.files);
            cursor = answer.more;
            if cursor.is_none() {
                return Ok(files);
            }
        }
    }

    /// What others changed since the last time this was asked. Each change
    /// is told once (MOD-2).
    ///
    /// # Errors
    /// The daemon's own.
    pub fn changed(&self) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        loop {
            let answer = self.client.call(ModifiedTake {
                session: self.id.clone(),
                peek: false,
                ack: Ack::Implicit,
                paths: None,
                sync: None,
                verify: None,
                limit: None,
            })?;
            changes.extend(answer.changes);
            if answer.more != Some(true) {
                return Ok(changes);
            }
        }
    }

    /// Says that the session is about to write a file, before it does. End
    /// it by [`Edit::write`], or write it yourself and end it by [`Edit::commit`]; a dropped edit is aborted, and the daemon ends
    /// it with the connection should this process die (ATTR-9).
    ///
    /// # Errors
    /// `stale` or `notRead` (read it again), `busy` (another session edits
    /// it).
    pub fn edit(&self, path: impl Into<ClientPath>) -> Result<Edit> {
        self.begin(path.into(), None)
    }

    /// The same with the bytes the file will hold: nobody else's write can
    /// then be taken for the session's (ATTR-1).
    ///
    /// # Errors
    /// As [`Session::edit`].
    pub fn edit_to(&self, path: impl Into<ClientPath>, bytes: &[u8]) -> Result<Edit> {
        self.begin(path.into(), Some(HashOrAbsent::Hash(hash_of(bytes))))
    }

    /// Declares, writes in place and commits in one go.
    ///
    /// # Errors
    /// As [`Session::edit`], and what the file system says.
    pub fn write(&self, path: impl Into<ClientPath>, bytes: &[u8]) -> Result<EditCommitted> {
        let edit = self.edit_to(path, bytes)?;
        let target = edit.target();
        fs::write(&target, bytes)
            .map_err(|error| Error::io(format!("write {}", target.display()), error))?;
        edit.commit(bytes)
    }

    fn begin(&self, path: ClientPath, expect: Option<HashOrAbsent>) -> Result<Edit> {
        let begun = self.client.call(EditBegin {
            session: self.id.clone(),
            files: vec![EditFile {
                path: path.clone(),
                expect,
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
        })?;
        Ok(Edit {
            client: self.client.clone(),
            session: self.id.clone(),
            root: self.root.clone(),
            path,
            id: Some(begun.edit),
            before: begun.files.into_iter().next(),
        })
    }

    /// Ends the session: its open edits are aborted.
    ///
    /// # Errors
    /// The daemon's own.
    pub fn close(self) -> Result<()> {
        self.client
            .call(SessionClose {
                session: self.id,
                forget: false,
            })
            .map(drop)
    }
}

/// An open edit of one file. Dropped without a commit, it is aborted: what
/// is written afterwards counts as the user's.
#[derive(Debug)]
#[must_use = "a dropped edit is aborted"]
pub struct Edit {
    client: Client,
    session: SessionId,
    root: PathBuf,
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

    /// The file's path on disk.
    pub fn target(&self) -> PathBuf {
        self.root.join(native::name(self.path.as_bytes()))
    }

    /// Writes these bytes through the daemon, if the file still holds what it
    /// held when the edit began, and commits: nothing that was saved in
    /// between is overwritten (GUARD-1).
    ///
    /// # Errors
    /// `stale`, `conflict`: the edit is aborted, and nothing was written.
    pub fn write(mut self, bytes: &[u8]) -> Result<FileWritten> {
        let before = self.before.as_ref().and_then(|state| state.hash);
        let ask = writing(&self.session, &self.path, bytes, before);
        match self.client.call(ask.clone()) {
            Ok(written) => {
                self.commit(bytes)?;
                Ok(written)
            }
            Err(error) if took_a_save_for_its_own(&error) => {
                self.client.call(aborting(self.id.take()))?;
                self.client.call(ask)
            }
            Err(error) => Err(error),
        }
    }

    /// The write is done, and these bytes were written.
    ///
    /// # Errors
    /// The daemon's own.
    pub fn commit(self, written: &[u8]) -> Result<EditCommitted> {
        self.end(HashOrAbsent::Hash(hash_of(written)))
    }

    /// The write is done: the file was deleted.
    ///
    /// # Errors
    /// The daemon's own.
    pub fn commit_deleted(self) -> Result<EditCommitted> {
        self.end(HashOrAbsent::Absent)
    }

    fn end(mut self, hash: HashOrAbsent) -> Result<EditCommitted> {
        let path = self.path.clone();
        let hash = Some(hash);
        self.client.call(EditCommit {
            edit: self.id.take(),
            session: None,
            call_id: None,
            files: vec![CommitFile { path, hash }],
        })
    }

    /// Nothing of it counts. The same as dropping it, with the answer.
    ///
    /// # Errors
    /// The daemon's own.
    pub fn abort(mut self) -> Result<()> {
        self.client.call(aborting(self.id.take())).map(drop)
    }
}

impl Drop for Edit {
    fn drop(&mut self) {
        if self.id.is_some() {
            // A daemon that does not hear it ends the edit by itself.
            let _ = self
                .client
                .call_within(aborting(self.id.take()), ABORT_DEADLINE);
        }
    }
}

/// A guarded write of a content computed from another; `None`: from no file.
pub(crate) fn writing(
    session: &SessionId,
    path: &ClientPath,
    bytes: &[u8],
    base: Option<Hash>,
) -> FileWrite {
    let (text, base64) = match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    };
    FileWrite {
        session: session.clone(),
        path: path.clone(),
        text,
        base64,
        base,
        force: false,
        require_read: None,
        create_directories: false,
        step: None,
    }
}

/// A mark without a declared content took what was saved in between for the
/// session's own (ATTR-4). Asked again when it is aborted, the refusal says
/// whose it was.
pub(crate) fn took_a_save_for_its_own(error: &Error) -> bool {
    matches!(error.code(), "stale" | "conflict")
}

pub(crate) fn aborting(edit: Option<String>) -> EditAbort {
    EditAbort {
        edit,
        session: None,
        call_id: None,
    }
}

pub(crate) fn session_id(name: &str) -> Result<SessionId> {
    SessionId::new(name)
        .map_err(|error| Error::Daemon(touchmark_proto::Error::invalid(error.to_string())))
}
