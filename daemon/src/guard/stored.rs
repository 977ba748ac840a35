//! Giving a file another of its contents: undo, redo, review, `file/restore`
//! and `recovery/restore` (UNDO-4, HIST-4).
//!
//! What stands at the name is stored and read back first. [`Stored`] proves
//! that. Only [`Replacer::store`] and [`Stored::of`] make one, and what
//! replaces or removes a content here takes one.

use std::fs;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;
use touchmark_engine::text::tokens;
use touchmark_engine::{WriteOrder, WriteOutcome};
use touchmark_proto::writes::RecoveryItem;
use touchmark_proto::{Author, Error, ErrorCode, ErrorData, FileMode, Hash, RelPath};

use super::place::{Follow, refused};
use super::temporary::Like;
use super::{Guard, Umask, content, found};
use crate::content::MAX_BYTES;
use crate::system::stat;

/// A name to be written to, and where it may lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub path: RelPath,
    /// The name behind the symlinks on the path, as the version had them;
    /// `None` if there was no symlink on it. No other link is followed.
    pub real: Option<RelPath>,
}

/// Proof that the content which a write replaces can be brought back, or that
/// the request has said that it need not be.
#[derive(Debug)]
pub struct Stored {
    /// The hash of that content; `None` for no file.
    hash: Option<Hash>,
    /// Its copy in the recovery directory, if it is there.
    copy: Option<RecoveryItem>,
}

/// Where the present content is stored.
pub enum Storage<'a> {
    /// By this function, which returns what it has stored as it reads it back.
    By(&'a mut (dyn FnMut(&[u8]) -> std::io::Result<Vec<u8>> + Send)),
    /// In the recovery directory, with its author.
    Recovery(Option<Author>),
    /// Nowhere, as the request has said (`noRedo`).
    Nowhere,
}

/// Why there is no proof.
#[derive(Debug)]
pub enum NotStored {
    /// The file has this content instead of the expected one; `None` if it has
    /// none.
    Changed(Option<Hash>),
    /// The content may not be stored, or could not be; the cause, for people.
    NotKept(String),
    /// The file could not be read.
    Failed(Error),
}

/// What stands at a name.
#[derive(Debug)]
pub struct Present {
    /// The content; `None` if it is larger than one read returns.
    pub bytes: Option<Arc<[u8]>>,
    /// Why it may not be stored, for people; `None` if it may.
    pub not_kept: Option<String>,
}

/// What became of a write.
#[derive(Debug)]
pub struct Written {
    /// The outcome.
    pub outcome: WriteOutcome,
    /// How the file differs from the one that it replaces besides its content,
    /// for people; `None` if it does not.
    pub note: Option<String>,
}

/// The permissions that no file gets (GUARD-2): set-user-id, set-group-id and
/// sticky.
pub const SPECIAL: u32 = 0o7000;

/// The note about a file that does not get them.
pub const RIGHTS: &str = "its set-user-id, set-group-id or sticky bit is not set again";

impl From<WriteOutcome> for Written {
    fn from(outcome: WriteOutcome) -> Self {
        Self {
            outcome,
            note: None,
        }
    }
}

/// Writes earlier contents.
#[derive(Clone)]
pub struct Replacer {
    guard: Arc<Guard>,
    umask: Umask,
    /// Returns whether a content was once met as a secret.
    is_secret: Arc<dyn Fn(&Hash) -> bool + Send + Sync>,
    owner: Arc<Owner>,
}

/// Returns the user to whom the last file with a name belonged; `None` if that is
/// the daemon's, or is not known.
type Owner = dyn Fn(&RelPath) -> Option<u32> + Send + Sync;

impl Stored {
    /// The proof for a name without a file: nothing is replaced.
    pub fn nothing() -> Self {
        Self {
            hash: None,
            copy: None,
        }
    }

    /// Compares a copy that was read back. Returns `None` if it does not have
    /// that content.
    pub fn of(hash: Option<Hash>, copy: &[u8]) -> Option<Self> {
        let is_there = hash.is_none_or(|hash| Hash::of(copy) == hash);
        is_there.then_some(Self { hash, copy: None })
    }

    /// Returns the hash of the stored content; `None` for no file.
    pub fn hash(&self) -> Option<Hash> {
        self.hash
    }
}

impl NotStored {
    /// Returns the error of a request for one file.
    pub fn error(self, path: &RelPath) -> Error {
        match self {
            Self::Changed(found) => {
                Error::path(ErrorCode::Conflict, path, super::CHANGED).with(ErrorData {
                    path: Some(path.clone()),
                    hash: found,
                    ..ErrorData::default()
                })
            }
            Self::NotKept(cause) => Error::path(
                ErrorCode::NotKept,
                path,
                format!("nothing was written, since the present content cannot be kept: {cause}"),
            )
            .with(ErrorData {
                path: Some(path.clone()),
                cause: Some(cause),
                ..ErrorData::default()
            })
            .hint(
                "use --no-redo to write all the same; the present content cannot be \
                 brought back then",
            ),
            Self::Failed(error) => error,
        }
    }
}

impl Replacer {
    /// Returns the writer for a request. New files get the permissions that the
    /// mask leaves. `is_secret` returns whether a content was once met as a
    /// secret (SEC-3), `owner` to whom the last file with a name belonged, if
    /// that was another user than the daemon's.
    pub fn new(
        guard: Arc<Guard>,
        umask: Umask,
        is_secret: impl Fn(&Hash) -> bool + Send + Sync + 'static,
        owner: impl Fn(&RelPath) -> Option<u32> + Send + Sync + 'static,
    ) -> Self {
        Self {
            guard,
            umask,
            is_secret: Arc::new(is_secret),
            owner: Arc::new(owner),
        }
    }

    /// Returns why a file that does not exist cannot be made again with the
    /// owner that it had; `None` if it can, as far as that is known before.
    pub fn owner_lost(&self, path: &RelPath) -> Option<String> {
        let owner = (self.owner)(path)?;
        (!rustix::process::geteuid().is_root()).then(|| not_given(owner))
    }

    /// Returns the largest sum of contents that one request stores, in bytes
    /// (`contents.total`).
    pub fn budget(&self) -> u64 {
        self.guard.contents_total
    }

    /// Reads what stands at a name: the file that it leads to, or the symlink
    /// there if `is_link`, whose content is its target.
    ///
    /// # Errors
    /// Those of a guarded write: `notAFile` if a symlink is on the path that
    /// was not there, `notFound`, `protected`, `unreadable`.
    pub fn present(&self, name: &Name, is_link: bool) -> Result<Present, Error> {
        let (guard, path) = (&self.guard, &name.path);
        let (real, size, bytes) = match is_link {
            true => {
                let to = guard.link(path)?;
                (path.clone(), to.len() as u64, Some(to))
            }
            false => {
                let place = guard.find(path, None, Follow::To(name.real.as_ref()))?;
                let file = place.open(&place.name, OFlags::RDONLY);
                let file = file.map_err(|errno| refused(path, errno))?;
                let unread =
                    |error: std::io::Error| Error::new(ErrorCode::Unreadable, error.to_string());
                let size = file.metadata().map_err(unread)?.len();
                let bytes = (size <= MAX_BYTES).then(|| content::bytes(&file));
                (place.real, size, bytes.transpose().map_err(unread)?)
            }
        };
        let reader = &guard.reader;
        let has_token = || bytes.as_deref().is_some_and(tokens::any);
        let is_known = || {
            bytes
                .as_deref()
                .is_some_and(|b| (self.is_secret)(&Hash::of(b)))
        };
        let not_kept = if guard.is_secret((path, &real)) {
            Some("its name is that of a secret (`contents.exclude`)".to_owned())
        } else if guard.contents_total == 0 {
            Some("no contents are kept (`contents.total` is 0)".to_owned())
        } else if size > reader.keep_file_max() {
            let limit = sized(reader.keep_file_max());
            Some(format!("it is larger than {limit} (`contents.file`)"))
        } else if size > guard.contents_total {
            Some(over_budget(guard.contents_total))
        } else if has_token() || is_known() {
            Some("it holds a secret".to_owned())
        } else {
            None
        };
        let bytes = bytes.map(Arc::from);
        Ok(Present { bytes, not_kept })
    }

    /// Checks that a name leads to its file through no symlink but those that
    /// its version had. The write checks it again.
    ///
    /// # Errors
    /// As [`present`](Self::present).
    pub fn check(&self, name: &Name) -> Result<(), Error> {
        let place = self.guard.find(&name.path, None, name.follow());
        place.map(|_| ())
    }

    /// Stores what stands at a name, if it is the content `base` and may be
    /// stored, and reads the copy back.
    ///
    /// # Errors
    /// Why there is no copy.
    pub fn store(
        &self,
        name: &Name,
        is_link: bool,
        base: Option<Hash>,
        storage: Storage<'_>,
    ) -> Result<Stored, NotStored> {
        let Some(base) = base else {
            return Ok(Stored::nothing());
        };
        let hash = Some(base);
        let Present { bytes, not_kept } = match self.present(name, is_link) {
            Ok(present) => present,
            Err(error) if error.code == ErrorCode::NotFound => {
                return Err(NotStored::Changed(None));
            }
            Err(error) => return Err(NotStored::Failed(error)),
        };
        if matches!(storage, Storage::Nowhere) {
            // The write compares the content.
            return Ok(Stored { hash, copy: None });
        }
        if let Some(cause) = not_kept {
            return Err(NotStored::NotKept(cause));
        }
        let bytes = bytes.unwrap_or_default();
        let now = Hash::of(&bytes);
        if now != base {
            return Err(NotStored::Changed(Some(now)));
        }
        let failed =
            |error: std::io::Error| NotStored::NotKept(format!("it could not be stored: {error}"));
        let unread = || NotStored::NotKept("what was stored could not be read back".into());
        match storage {
            Storage::Nowhere => Ok(Stored { hash, copy: None }),
            Storage::By(store) => {
                let copy = store(&bytes).map_err(failed)?;
                Stored::of(hash, &copy).ok_or_else(unread)
            }
            Storage::Recovery(author) => {
                let guard = &self.guard;
                let copy = guard.keep_at(name, author).map_err(NotStored::Failed)?;
                let copy = copy.map_err(failed)?;
                let back = fs::read(&copy.file).ok();
                if back.and_then(|back| Stored::of(hash, &back)).is_none() {
                    guard.drop_copy(Some(&copy));
                    return Err(match copy.hash == base {
                        true => unread(),
                        false => NotStored::Changed(Some(copy.hash)),
                    });
                }
                let copy = Some(copy);
                Ok(Stored { hash, copy })
            }
        }
    }

    /// Replaces the stored content. An existing file keeps its permissions. A
    /// new one gets those of `mode`, if given.
    pub fn write(
        &self,
        name: &Name,
        stored: &Stored,
        bytes: Arc<[u8]>,
        mode: Option<FileMode>,
    ) -> Written {
        let before = self.standing(name);
        let order = WriteOrder {
            path: name.path.clone(),
            ticket: 0,
            base: stored.hash,
            hash: Hash::of(&bytes),
            bytes,
            // It is stored already.
            keep_base: false,
            base_author: None,
            create_directories: true,
        };
        let permissions = mode.map(FileMode::permissions);
        let owner = match stored.hash {
            None => (self.owner)(&name.path),
            // An existing file keeps its owner.
            Some(_) => None,
        };
        let new = Like::Given(permissions, self.umask, owner);
        let outcome = match self
            .guard
            .write_with(&order, new, self.umask, name.follow())
        {
            WriteOutcome::Failed(error)
                if owner.is_some() && error.data.cause == Some(denied()) =>
            {
                let cause = owner.map(not_given).unwrap_or_default();
                WriteOutcome::Failed(Error::path(ErrorCode::NotKept, &name.path, cause))
            }
            outcome => outcome,
        };
        let is_done = matches!(outcome, WriteOutcome::Done { .. });
        let note = match (before, self.standing(name)) {
            (Some((was, _)), Some((now, _))) if is_done && was != now => Some(format!(
                "it belonged to user {was}, and belongs to user {now} now"
            )),
            (before, Some((_, now))) if is_done => {
                let had = before.map(|(_, bits)| bits).or(permissions);
                had.filter(|had| had & !now & SPECIAL != 0)
                    .map(|_| RIGHTS.to_owned())
            }
            _ => None,
        };
        Written { outcome, note }
    }

    /// Returns the owner and the permissions of the file at a name.
    fn standing(&self, name: &Name) -> Option<(u32, u32)> {
        let place = self.guard.find(&name.path, None, name.follow()).ok()?;
        let found = place.stat(&place.name).ok()?;
        let mode = stat::mode(&found)?;
        Some((found.st_uid, mode.permissions()))
    }

    /// Removes the file with the stored content.
    pub fn remove(&self, name: &Name, stored: &Stored) -> WriteOutcome {
        match stored.hash {
            Some(base) => self.guard.remove(&name.path, base),
            None => done(),
        }
    }

    /// Removes the symlink with the stored target.
    pub fn remove_link(&self, path: &RelPath, stored: &Stored) -> WriteOutcome {
        match stored.hash {
            Some(base) => self.guard.remove_link(path, base),
            None => done(),
        }
    }

    /// Creates a symlink at a name that does not exist.
    pub fn make_link(&self, path: &RelPath, to: &[u8]) -> WriteOutcome {
        self.guard.make_link(path, to, self.umask)
    }

    /// Gives a file the permissions `mode`, if it has the permissions `was`.
    pub fn permit(&self, name: &Name, was: FileMode, mode: FileMode) -> WriteOutcome {
        self.guard.permit(&name.path, was, mode, name.follow())
    }

    /// Removes an empty directory, and empty ones in it, at a name where a file
    /// has to be written.
    pub fn make_room(&self, path: &RelPath) {
        self.guard.make_room(path);
    }

    /// Returns the hash of a file's present content; `None` if there is no
    /// readable file.
    pub fn holds(&self, name: &Name) -> Option<Hash> {
        let place = self.guard.find(&name.path, None, name.follow());
        place.ok().and_then(|place| found(&place))
    }

    /// Returns the hash of what is at a name itself, and its mode. The content
    /// of a link is the path that it points to.
    pub fn stands(&self, path: &RelPath) -> (Option<Hash>, Option<FileMode>) {
        self.guard.stands(path)
    }

    /// Returns the path of the copy in the recovery directory after a write. If
    /// nothing was written, the copy is removed.
    pub fn settle(&self, stored: Stored, is_written: bool) -> Option<String> {
        let copy = stored.copy?;
        if is_written {
            return Some(copy.file);
        }
        self.guard.drop_copy(Some(&copy));
        None
    }

    pub(super) fn guard(&self) -> &Guard {
        &self.guard
    }
}

impl Name {
    fn follow(&self) -> Follow<'_> {
        Follow::To(self.real.as_ref())
    }
}

/// Returns what the system says where a file may not be given away.
fn denied() -> String {
    std::io::Error::from(Errno::PERM).to_string()
}

/// Returns why a file of another user is not made again.
fn not_given(owner: u32) -> String {
    format!("it belonged to user {owner}, and would belong to the daemon's user now")
}

/// Returns why a content is not stored where the budget is used up.
pub fn over_budget(total: u64) -> String {
    let total = sized(total);
    format!("the contents that may be kept take {total} already (`contents.total`)")
}

fn done() -> WriteOutcome {
    WriteOutcome::Done {
        guard: touchmark_proto::writes::Guard::Noreplace,
        lease: false,
        recovered: Vec::new(),
    }
}

/// Returns a size for people.
fn sized(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}
