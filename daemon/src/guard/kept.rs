//! `recovery/*`: lists, shows, restores and deletes stored bytes.

use base64::Engine as _;
use rustix::fs::OFlags;
use touchmark_engine::{WriteOrder, WriteOutcome};
use touchmark_proto::files::TextEncoding;
use touchmark_proto::writes::{RecoveryItem, RecoveryItems, RecoveryRestored, RecoveryShown};
use touchmark_proto::{Author, Error, ErrorCode, ErrorData, Hash, RelPath};

use super::place::refused;
use super::{Guard, Umask, found, recovery};

impl Guard {
    /// Answers `recovery/list`.
    ///
    /// # Errors
    /// `notFound` for an unknown id.
    pub fn list(&self, id: Option<&str>) -> Result<RecoveryItems, Error> {
        self.look_at_all_moved();
        Ok(RecoveryItems {
            items: match id {
                Some(id) => vec![self.item(id)?],
                None => self.recovery.list(),
            },
        })
    }

    /// Answers `recovery/show`, with at most `limit` bytes.
    ///
    /// # Errors
    /// `notFound` for an unknown id, `storage`.
    pub fn show(&self, id: &str, limit: u64) -> Result<RecoveryShown, Error> {
        let item = self.item(id)?;
        let (bytes, truncated) = recovery::read(&item, limit).map_err(storage)?;
        let (text, encoding) = match String::from_utf8(bytes) {
            Ok(text) => (text, TextEncoding::Utf8),
            Err(error) => (
                base64::engine::general_purpose::STANDARD.encode(error.as_bytes()),
                TextEncoding::Base64,
            ),
        };
        Ok(RecoveryShown {
            items: vec![item],
            text,
            encoding,
            truncated,
        })
    }

    /// Answers `recovery/restore`: writes stored bytes back. The file's current
    /// content is stored first. Also returns whether anything was written:
    /// false if the file had these bytes already.
    ///
    /// # Errors
    /// `notFound` for an unknown id, and the errors of a guarded write.
    pub fn restore(&self, id: &str, umask: Umask) -> Result<(RecoveryRestored, bool), Error> {
        let item = self.item(id)?;
        let bytes = std::fs::read(&item.file).map_err(storage)?;
        let base = found(&self.find(&item.path, Some(umask))?);
        if base == Some(item.hash) {
            let unchanged = RecoveryRestored {
                items: vec![item],
                recovered: Vec::new(),
            };
            return Ok((unchanged, false));
        }
        let order = WriteOrder {
            path: item.path.clone(),
            ticket: 0,
            base,
            hash: Hash::of(&bytes),
            bytes: bytes.into(),
            keep_base: base.is_some(),
            base_author: None,
            create_directories: true,
        };
        match self.write(&order, umask) {
            WriteOutcome::Done { recovered, .. } => {
                let items = vec![item];
                Ok((RecoveryRestored { items, recovered }, true))
            }
            WriteOutcome::Conflict {
                found,
                cause,
                recovered,
            } => Err(
                Error::new(ErrorCode::Conflict, format!("not restored: {cause}")).with(ErrorData {
                    path: Some(item.path),
                    hash: found,
                    recovered: Some(recovered),
                    ..ErrorData::default()
                }),
            ),
            WriteOutcome::Failed(error) => Err(error),
        }
    }

    /// Removes a file with the content `base`, after storing that content. A
    /// secret must not be stored, so a file with a secret is not removed.
    pub fn remove_and_keep(
        &self,
        path: &RelPath,
        base: Hash,
        author: Option<Author>,
    ) -> WriteOutcome {
        let kept = self.find(path, None).and_then(|place| {
            if self.is_secret((path, &place.real)) {
                let error = Error::path(
                    ErrorCode::NotKept,
                    path,
                    "contents of secrets are not kept, so it could not be restored",
                );
                return Err(error.hint("remove it by other means"));
            }
            let file = place.open(&place.name, OFlags::RDONLY);
            let file = file.map_err(|errno| refused(path, errno))?;
            let kept = self.recovery.keep(path, &file, author, &self.time);
            kept.map_err(storage)
        });
        let kept = match kept {
            Ok(kept) => kept,
            Err(error) => return WriteOutcome::Failed(error),
        };
        let mut outcome = self.remove(path, base);
        match &mut outcome {
            WriteOutcome::Done { recovered, .. } if kept.hash == base => recovered.push(kept.file),
            _ => self.drop_copy(Some(&kept)),
        }
        outcome
    }

    /// Answers `recovery/delete`.
    ///
    /// # Errors
    /// `notFound` for an unknown id, `storage`.
    pub fn delete(&self, id: &str) -> Result<RecoveryItems, Error> {
        let item = self.item(id)?;
        self.recovery.delete(id).map_err(storage)?;
        Ok(RecoveryItems { items: vec![item] })
    }

    fn item(&self, id: &str) -> Result<RecoveryItem, Error> {
        self.recovery.get(id).ok_or_else(|| {
            Error::new(ErrorCode::NotFound, format!("nothing is kept as {id:.40?}"))
                .hint("see `recovery/list`")
        })
    }
}

fn storage(error: std::io::Error) -> Error {
    let cause = error.to_string();
    Error::new(ErrorCode::Storage, format!("kept bytes: {cause}")).with(ErrorData {
        cause: Some(cause),
        ..ErrorData::default()
    })
}
