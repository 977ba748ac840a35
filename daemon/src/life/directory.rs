//! Directories that only this user may enter (SEC-1).

use std::fs;
use std::path::Path;

use crate::Error;
use crate::system::open;

/// Creates a directory with mode 0700, with its parents. If it exists, checks
/// that it is a real directory, belongs to this user, and is closed to all
/// others.
///
/// # Errors
/// [`Error::Untrusted`] if it belongs to another user, is open to others, or is
/// no directory; [`Error::Io`] if it cannot be created.
pub fn private_directory(path: &Path) -> Result<(), Error> {
    let made = open::private_directory().recursive(true).create(path);
    match (fs::symlink_metadata(path), made) {
        (Ok(_), _) => check_private(path),
        (Err(_), Err(cause)) | (Err(cause), Ok(())) => {
            Err(Error::io("make the directory", path)(cause))
        }
    }
}

/// Does the same as [`private_directory`], but accepts a directory that cannot
/// be created or examined for now: its users handle that, and continue without
/// it (LOSS-3).
///
/// # Errors
/// [`Error::Untrusted`].
pub fn usable_directory(path: &Path) -> Result<(), Error> {
    match private_directory(path) {
        Err(error @ Error::Io { .. }) => {
            tracing::error!("{error}");
            Ok(())
        }
        other => other,
    }
}

/// Checks that a directory exists, is a real directory, belongs to this user,
/// and is closed to all others.
///
/// # Errors
/// The same as [`private_directory`]'s.
pub fn check_private(path: &Path) -> Result<(), Error> {
    // Links are not followed: one here could point to a place that another user
    // has chosen.
    let found = fs::symlink_metadata(path).map_err(Error::io("look at", path))?;
    let untrusted = |reason: String| {
        Err(Error::Untrusted {
            path: path.to_owned(),
            reason,
        })
    };
    if !found.is_dir() {
        return untrusted("not a directory".into());
    }
    match open::check_private(&found) {
        Ok(()) => Ok(()),
        Err(reason) => untrusted(reason),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn made_for_nobody_else() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("a/b");
        private_directory(&path).unwrap();
        private_directory(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&base.path().join("a")), 0o700);
    }

    #[test]
    fn what_others_could_enter_or_exchange_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let open = base.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o750)).unwrap();
        let file = base.path().join("file");
        fs::write(&file, "").unwrap();
        let real = base.path().join("real");
        private_directory(&real).unwrap();
        let link = base.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        for path in [open, file, link] {
            let error = private_directory(&path).unwrap_err();
            assert!(matches!(error, Error::Untrusted { .. }), "{error}");
        }
    }
}
