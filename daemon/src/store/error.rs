//! Errors of the store, by their consequences.

use rusqlite::ErrorCode as Sqlite;
use rusqlite::ffi::SQLITE_IOERR_SHORT_READ;
use touchmark_proto::{Error, ErrorCode};

/// An error of the store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A newer touchmark wrote the store, or one from before the first release.
    /// It is intact, so it is left as it is, and the daemon does not start.
    #[error("the store has {what} version {found}, this touchmark reads version {known}")]
    Incompatible {
        /// What has this version: `schema` or `record`.
        what: &'static str,
        /// The version found.
        found: u32,
        /// The one that is read.
        known: u32,
    },
    /// The system refuses to read or write: no space, no permission, a device's
    /// error. The cause may pass (LOSS-3).
    #[error("the state cannot be stored: {cause}")]
    Storage {
        /// The cause, in SQLite's or the system's words.
        cause: String,
    },
    /// A record that the answer needs cannot be read (DUR-2).
    #[error("later facts were lost: {cause}")]
    Unreadable {
        /// Which record, and why.
        cause: String,
    },
    /// The data differs from what was written (DUR-2).
    #[error("the store is damaged: {cause}")]
    Damaged {
        /// What was found.
        cause: String,
    },
}

impl StoreError {
    pub(super) fn damaged(cause: impl ToString) -> Self {
        Self::Damaged {
            cause: cause.to_string(),
        }
    }

    /// Returns the error for a record of a newer format.
    pub fn newer_record(found: u8, known: u8) -> Self {
        Self::Incompatible {
            what: "record",
            found: found.into(),
            known: known.into(),
        }
    }

    pub(super) fn storage(cause: impl ToString) -> Self {
        Self::Storage {
            cause: cause.to_string(),
        }
    }

    /// Returns the error's code on the wire.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Incompatible { .. } => ErrorCode::Incompatible,
            Self::Unreadable { .. } => ErrorCode::UnknownClock,
            Self::Storage { .. } | Self::Damaged { .. } => ErrorCode::Storage,
        }
    }

    /// Returns what the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Incompatible { found, known, .. } if found < known => {
                "an unreleased touchmark wrote it: name another state directory"
            }
            Self::Incompatible { .. } => "update touchmark, or name another state directory",
            Self::Storage { .. } => ErrorCode::Storage.hint(),
            Self::Unreadable { .. } => ErrorCode::UnknownClock.hint(),
            Self::Damaged { .. } => {
                "restart the daemon (`touchmark stop`): it keeps what can be read of the store, and sets the damaged file aside"
            }
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::new(error.code(), error.to_string()).hint(error.hint())
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match &error {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                // The system reads as much as the file has, and that is less
                // than a page.
                Sqlite::SystemIoFailure if failure.extended_code == SQLITE_IOERR_SHORT_READ => {
                    Self::damaged("the file ends within a page")
                }
                // `Unknown` is plain SQLITE_ERROR: a table or a column that
                // belongs to this schema version does not exist.
                Sqlite::DatabaseCorrupt
                | Sqlite::NotADatabase
                | Sqlite::TypeMismatch
                | Sqlite::ConstraintViolation
                | Sqlite::Unknown => Self::damaged(&error),
                _ => Self::storage(&error),
            },
            // A missing row, or a column of another type: the file does not
            // contain what this module wrote.
            _ => Self::damaged(&error),
        }
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        Self::storage(error)
    }
}
