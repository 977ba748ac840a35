//! What can be wrong with the store, by what follows from it.

use rusqlite::ErrorCode as Sqlite;
use rusqlite::ffi::SQLITE_IOERR_SHORT_READ;
use touchmark_proto::{Error, ErrorCode};

/// Something is wrong with the store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A newer touchmark wrote it. It is whole, so it is left as it is, and
    /// the daemon does not start.
    #[error("the store has {what} version {found}, this touchmark knows versions up to {known}")]
    Newer {
        /// Of what: `schema` or `record`.
        what: &'static str,
        /// The version found.
        found: u32,
        /// The newest one known.
        known: u32,
    },
    /// The system refuses to read or write: no space, no permission, a
    /// device's error. May pass (LOSS-3).
    #[error("the state cannot be stored: {cause}")]
    Storage {
        /// SQLite's or the system's words.
        cause: String,
    },
    /// A record that the answer needs cannot be read (DUR-2).
    #[error("what happened since is not known: {cause}")]
    Unreadable {
        /// Which record, and why.
        cause: String,
    },
    /// What is there is not what was written (DUR-2).
    #[error("the store is damaged: {cause}")]
    Damaged {
        /// What does not fit.
        cause: String,
    },
}

impl StoreError {
    pub(super) fn damaged(cause: impl ToString) -> Self {
        Self::Damaged {
            cause: cause.to_string(),
        }
    }

    /// A record is of a newer format.
    pub fn newer_record(found: u8, known: u8) -> Self {
        Self::Newer {
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

    /// The code it has on the wire.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Newer { .. } => ErrorCode::Incompatible,
            Self::Unreadable { .. } => ErrorCode::UnknownClock,
            Self::Storage { .. } | Self::Damaged { .. } => ErrorCode::Storage,
        }
    }

    /// What to do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Newer { .. } => "update touchmark, or name another state directory",
            Self::Storage { .. } => ErrorCode::Storage.hint(),
            Self::Unreadable { .. } => ErrorCode::UnknownClock.hint(),
            Self::Damaged { .. } => "restart the daemon: it sets the damaged store aside",
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
                // The system gives all there is, and a page is not all there.
                Sqlite::SystemIoFailure if failure.extended_code == SQLITE_IOERR_SHORT_READ => {
                    Self::damaged("the file ends within a page")
                }
                // `Unknown` is plain SQLITE_ERROR: a table or a column that
                // the schema version promises is not there.
                Sqlite::DatabaseCorrupt
                | Sqlite::NotADatabase
                | Sqlite::TypeMismatch
                | Sqlite::ConstraintViolation
                | Sqlite::Unknown => Self::damaged(&error),
                _ => Self::storage(&error),
            },
            // A missing row, a column of another type: the file does not hold
            // what this module wrote.
            _ => Self::damaged(&error),
        }
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        Self::storage(error)
    }
}
