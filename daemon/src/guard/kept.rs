//! `recovery/*`: lists, shows, restores and deletes stored bytes.

use base64::Engine as _;
use touchmark_engine::WriteOutcome;
use touchmark_engine::text::tokens;
use touchmark_proto::files::TextEncoding;
use touchmark_proto::writes::{RecoveryItem, RecoveryItems, RecoveryRestored, RecoveryShown};
use touchmark_proto::{Error, ErrorCode, ErrorData, Millis, RelPath};

use super::{Guard, Name, Replacer, Storage, Written, recovery};

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

    /// Stores what an ignored file had before a command destroyed it (SCOPE-10).
    /// A secret is not stored (SEC-3).
    pub(crate) fn keep_ignored(&self, path: &RelPath, bytes: &[u8]) {
        if self.reader.is_secret(path) || tokens::any(bytes) {
            return;
        }
        if let Err(error) = self.recovery.keep_ignored(path, bytes, &self.time) {
            tracing::warn!(%path, "{path}: not kept: {error}");
        }
    }

    /// Returns what was stored of ignored files since a time, at most the newest 64.
    pub(crate) fn ignored_since(&self, time: Millis) -> Vec<RecoveryItem> {
        self.recovery.ignored_since(time)
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

    /// Answers `recovery/delete`.
    ///
    /// # Errors
    /// `notFound` for an unknown id, `storage`.
    pub fn delete(&self, id: &str) -> Result<RecoveryItems, Error> {
        let item = self.item(id)?;
        self.recovery.delete(id).map_err(storage)?;
        Ok(RecoveryItems { items: vec![item] })
    }

    pub(super) fn item(&self, id: &str) -> Result<RecoveryItem, Error> {
        self.recovery.get(id).ok_or_else(|| {
            Error::new(ErrorCode::NotFound, format!("nothing is kept as {id:.40?}"))
                .hint("see `recovery/list`")
        })
    }
}

impl Replacer {
    /// Answers `recovery/restore`: writes stored bytes back. The file's present
    /// content is stored first, unless `no_redo` is set. Also returns whether
    /// anything was written: false if the file had these bytes already.
    ///
    /// # Errors
    /// `notFound` for an unknown id, `notKept` if the present content may not be
    /// stored, and the errors of a guarded write.
    pub fn restore(&self, id: &str, no_redo: bool) -> Result<(RecoveryRestored, bool), Error> {
        let item = self.guard().item(id)?;
        let bytes = std::fs::read(&item.file).map_err(storage)?;
        let name = Name {
            path: item.path.clone(),
            real: self.guard().recovery.real(id),
        };
        match self.check(&name) {
            // The directory is created.
            Err(error) if error.code != ErrorCode::NotFound => return Err(error),
            _ => {}
        }
        let base = self.holds(&name);
        if base == Some(item.hash) {
            let unchanged = RecoveryRestored {
                items: vec![item],
                recovered: Vec::new(),
            };
            return Ok((unchanged, false));
        }
        let storage = match no_redo {
            true => Storage::Nowhere,
            false => Storage::Recovery(None),
        };
        let stored = self.store(&name, false, base, storage);
        let stored = stored.map_err(|error| error.error(&item.path))?;
        let Written { outcome, .. } = self.write(&name, &stored, bytes.into(), None);
        let is_written = matches!(outcome, WriteOutcome::Done { .. });
        let copy = self.settle(stored, is_written);
        match outcome {
            WriteOutcome::Done { mut recovered, .. } => {
                recovered.extend(copy);
                let items = vec![item];
                let restored = RecoveryRestored { items, recovered };
                Ok((restored, true))
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
}

fn storage(error: std::io::Error) -> Error {
    let cause = error.to_string();
    Error::new(ErrorCode::Storage, format!("kept bytes: {cause}")).with(ErrorData {
        cause: Some(cause),
        ..ErrorData::default()
    })
}
