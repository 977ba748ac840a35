//! Sessions and edits as values.
//!
//! This one source is compiled twice: as `blocking::session` and as
//! `aio::session`. Each parent defines, before it includes this file:
//!
//! - `methods!`: makes `async` functions of those inside it, or leaves them as
//!   they are;
//! - `wait!`: awaits a call's future, or leaves its result as it is;
//! - `write_file`: writes a file;
//! - `example!`: the example of `Session::open`.

use std::path::{Path, PathBuf};

use touchmark_proto::changes::ModifiedTake;
use touchmark_proto::daemon::Program;
use touchmark_proto::edits::{CommitFile, EditBegin, EditCommit, EditCommitted, EditFile};
use touchmark_proto::files::{FileRead, FileReadResult, FileReadText, FileStatus, FileText};
use touchmark_proto::sessions::{SessionClose, SessionOpen, SessionOpened};
use touchmark_proto::writes::FileWritten;
use touchmark_proto::{Change, ClientPath, FileState, HashOrAbsent, SessionId, native};

use super::{Client, write_file};
use crate::error::Result;
use crate::hash_of;
use crate::values::{aborting, session_id, took_a_save_for_its_own, writing};

/// One agent conversation or task, on one connection. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Session {
    client: Client,
    id: SessionId,
    root: PathBuf,
}

impl Session {
    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the workspace's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the connection, for requests without a method here.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

methods! {
    impl Session {
        /// Opens a session, or continues one of that id.
        ///
        #[doc = example!()]
        ///
        /// # Errors
        #[doc = touchmark_proto::errors_of!(SessionOpen)]
        /// `invalidParams` if the id is empty or longer than 256 bytes. The
        /// connection's errors are those of [`Client::call`].
        pub fn open(client: &Client, id: &str) -> Result<Self> {
            Ok(wait!(Self::open_as(client, id, None))?.0)
        }

        /// Opens a session with the agent's name. The answer also has what
        /// changed while the session was away; that is not taken (MOD-2).
        ///
        /// # Errors
        /// As [`Session::open`].
        pub fn open_as(client: &Client, id: &str, agent: Option<Program>)
            -> Result<(Self, SessionOpened)>
        {
            let mut ask = SessionOpen::new(session_id(id)?);
            ask.agent = agent;
            wait!(Self::open_with(client, ask))
        }

        /// Opens a session with all parameters of `session/open`, for example
        /// the parent of a sub-agent (SEEN-5).
        ///
        /// # Errors
        /// The same as [`Session::open`].
        pub fn open_with(client: &Client, ask: SessionOpen) -> Result<(Self, SessionOpened)> {
            let id = ask.session.clone();
            let opened = wait!(client.call(ask))?;
            let server = client.server();
            let root = server.map(|server| PathBuf::from(&server.workspace));
            let session = Self { client: client.clone(), id, root: root.unwrap_or_default() };
            Ok((session, opened))
        }

        /// Records that the session has read the whole file, with the content
        /// that the daemon finds on disk.
        ///
        /// # Errors
        #[doc = touchmark_proto::errors_of!(FileRead)]
        pub fn read(&self, path: impl Into<ClientPath>) -> Result<FileReadResult> {
            wait!(self.client.call(FileRead::new(self.id.clone(), path)))
        }

        /// Records that the session has read exactly these bytes of the whole
        /// file, whatever is on disk by now (SEEN-1).
        ///
        /// # Errors
        /// As [`Session::read`].
        pub fn read_bytes(&self, path: impl Into<ClientPath>, bytes: &[u8])
            -> Result<FileReadResult>
        {
            let read = FileRead::new(self.id.clone(), path).hash(hash_of(bytes));
            wait!(self.client.call(read))
        }

        /// Reads the file's text through the daemon. If the session has it in
        /// its context already, the answer has no text, but a `message` to
        /// show instead (SEEN-4).
        ///
        /// # Errors
        #[doc = touchmark_proto::errors_of!(FileReadText)]
        pub fn read_text(&self, path: impl Into<ClientPath>) -> Result<FileText> {
            wait!(self.client.call(FileReadText::new(self.id.clone(), path)))
        }

        /// Reads a file's text through the daemon. Returns the text even if the
        /// session has it in its context already.
        ///
        /// # Errors
        /// The same as [`Session::read_text`].
        pub fn read_text_again(&self, path: impl Into<ClientPath>) -> Result<FileText> {
            wait!(self.client.call(FileReadText::new(self.id.clone(), path).force(true)))
        }

        /// Returns the current state of the session's copies of these files.
        ///
        /// # Errors
        #[doc = touchmark_proto::errors_of!(FileStatus)]
        pub fn status(&self, paths: impl IntoIterator<Item = impl Into<ClientPath>>)
            -> Result<Vec<FileState>>
        {
            let paths = paths.into_iter().map(Into::into).collect();
            wait!(self.states(Some(paths)))
        }

        /// Returns the current state of all of the session's copies.
        ///
        /// # Errors
        /// The same as [`Session::status`].
        pub fn status_all(&self) -> Result<Vec<FileState>> {
            wait!(self.states(None))
        }

        fn states(&self, paths: Option<Vec<ClientPath>>) -> Result<Vec<FileState>> {
            let mut files = Vec::new();
            let mut ask = FileStatus::new(self.id.clone());
            ask.paths = paths;
            loop {
                let answer = wait!(self.client.call(ask.clone()))?;
                files.extend(answer.files);
                ask.cursor = answer.more;
                if ask.cursor.is_none() {
                    return Ok(files);
                }
            }
        }

        /// Returns what others have changed since the last call. Each change is
        /// returned once (MOD-2).
        ///
        /// # Errors
        #[doc = touchmark_proto::errors_of!(ModifiedTake)]
        pub fn changed(&self) -> Result<Vec<Change>> {
            let mut changes = Vec::new();
            loop {
                let answer = wait!(self.client.call(ModifiedTake::new(self.id.clone())))?;
                changes.extend(answer.changes);
                if answer.more != Some(true) {
                    return Ok(changes);
                }
            }
        }

        /// Declares that the session is about to write a file. End the edit
        /// with [`Edit::write`], or write the file yourself and end it with
        /// [`Edit::commit`]. A dropped edit is aborted, and the daemon ends it
        /// if this process exits (ATTR-9).
        ///
        /// # Errors
        #[doc = touchmark_proto::errors_of!(EditBegin)]
        /// `stale` or `notRead`: read the file again. `busy`: another session
        /// is editing it.
        pub fn edit(&self, path: impl Into<ClientPath>) -> Result<Edit> {
            wait!(self.begin(path.into(), None))
        }

        /// Declares the write of a file with the bytes that it will have, so
        /// that no other write can be attributed to the session (ATTR-1).
        ///
        /// # Errors
        /// As [`Session::edit`].
        pub fn edit_to(&self, path: impl Into<ClientPath>, bytes: &[u8]) -> Result<Edit> {
            wait!(self.begin(path.into(), Some(HashOrAbsent::Hash(hash_of(bytes)))))
        }

        /// Begins an edit, writes the file in place and commits.
        ///
        /// # Errors
        /// The same as [`Session::edit`] and [`Edit::commit`], and `io` if the
        /// file cannot be written.
        pub fn write(&self, path: impl Into<ClientPath>, bytes: &[u8]) -> Result<EditCommitted> {
            let edit = wait!(self.edit_to(path, bytes))?;
            wait!(write_file(&edit.target(), bytes))?;
            wait!(edit.commit(bytes))
        }

        fn begin(&self, path: ClientPath, expect: Option<HashOrAbsent>) -> Result<Edit> {
            let mut file = EditFile::new(path.clone());
            file.expect = expect;
            let ask = EditBegin::new(self.id.clone(), vec![file]).bind(true);
            let begun = wait!(self.client.call(ask))?;
            Ok(Edit {
                client: self.client.clone(),
                session: self.id.clone(),
                root: self.root.clone(),
                path,
                id: Some(begun.edit),
                before: begun.files.into_iter().next(),
            })
        }

        /// Closes the session. Its open edits are aborted.
        ///
        /// # Errors
        #[doc = touchmark_proto::errors_of!(SessionClose)]
        pub fn close(self) -> Result<()> {
            wait!(self.client.call(SessionClose::new(self.id.clone()))).map(drop)
        }
    }
}

/// An open edit of one file. If it is dropped without a commit, it is aborted;
/// later writes are the user's.
#[derive(Debug)]
#[must_use = "a dropped edit is aborted"]
pub struct Edit {
    client: Client,
    session: SessionId,
    root: PathBuf,
    path: ClientPath,
    /// The daemon's id of the edit; `None` once it has ended.
    id: Option<String>,
    before: Option<FileState>,
}

impl Edit {
    /// Returns the daemon's id of the edit.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// Returns the file's state when the edit began.
    pub fn before(&self) -> Option<&FileState> {
        self.before.as_ref()
    }

    /// Returns the file's path on disk.
    pub fn target(&self) -> PathBuf {
        self.root.join(native::name(self.path.as_bytes()))
    }
}

methods! {
    impl Edit {
        /// Writes these bytes through the daemon and commits. Refused if the
        /// file's content has changed since the edit began, so that no save in
        /// between is overwritten (GUARD-1).
        ///
        /// # Errors
        #[doc = touchmark_proto::errors_of!(FileWrite)]
        /// `stale` or `conflict`: nothing was written, and the edit is aborted.
        /// Also those of [`Edit::commit`].
        pub fn write(mut self, bytes: &[u8]) -> Result<FileWritten> {
            let before = self.before.as_ref().and_then(|state| state.hash);
            let ask = writing(&self.session, &self.path, bytes, before);
            match wait!(self.client.call(ask.clone())) {
                Ok(written) => {
                    wait!(self.commit(bytes))?;
                    Ok(written)
                }
                Err(error) if took_a_save_for_its_own(&error) => {
                    wait!(self.client.call(aborting(self.id.take())))?;
                    wait!(self.client.call(ask))
                }
                Err(error) => Err(error),
            }
        }

        /// Commits the edit: the caller has written these bytes.
        ///
        /// # Errors
        #[doc = touchmark_proto::errors_of!(EditCommit)]
        /// `unknownEdit` if the edit has ended before, for example by its
        /// deadline.
        pub fn commit(self, written: &[u8]) -> Result<EditCommitted> {
            wait!(self.end(HashOrAbsent::Hash(hash_of(written))))
        }

        /// Commits the edit: the caller has deleted the file.
        ///
        /// # Errors
        /// The same as [`Edit::commit`].
        pub fn commit_deleted(self) -> Result<EditCommitted> {
            wait!(self.end(HashOrAbsent::Absent))
        }

        fn end(mut self, hash: HashOrAbsent) -> Result<EditCommitted> {
            let file = CommitFile::new(self.path.clone()).hash(hash);
            let mut ask = EditCommit::new().files(vec![file]);
            ask.edit = self.id.clone();
            let committed = wait!(self.client.call(ask));
            // If the future is dropped before this line, the edit is aborted.
            // Aborting an edit that has ended has no effect.
            self.id = None;
            committed
        }

        /// Aborts the edit: none of its writes is the session's. Dropping the
        /// edit does the same without waiting for the answer.
        ///
        /// # Errors
        #[doc = touchmark_proto::errors_of!(EditAbort)]
        pub fn abort(mut self) -> Result<()> {
            wait!(self.client.call(aborting(self.id.take()))).map(drop)
        }
    }
}

impl Drop for Edit {
    fn drop(&mut self) {
        if self.id.is_some() {
            // If the daemon does not receive this, it ends the edit with the
            // connection.
            self.client.abandon(aborting(self.id.take()));
        }
    }
}
