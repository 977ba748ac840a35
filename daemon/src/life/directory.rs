//! Directories that nobody else may enter (SEC-1).

use std::fs;
use std::path::Path;

use crate::Error;
use crate::system::open;

/// Makes a directory with mode 0700, with its parents, or checks the one
/// that is there: a real directory, this user's, closed to all others.
///
/// # Errors
/// [`Error::Untrusted`] if it is somebody else's, open to others, or no
/// directory; [`Error::Io`] if it cannot be made.
pub fn private_directory(path: &Path) -> Result<(), Error> {
    let made = open::private_directory().recursive(true).create(path);
    match (fs::symlink_metadata(path), made) {
        (Ok(_), _) => check_private(path),
        (Err(_), Err(cause)) | (Err(cause), Ok(())) => {
            Err(Error::io("make the directory", path)(cause))
        }
    }
}

/// The same, but for a directory that cannot be made or looked at for now:
/// who uses it finds out, and goes on without (LOSS-3).
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

/// Checks a directory that is there: a real one, this user's, closed to all
/// others.
///
/// # Errors
/// As [`private_directory`].
pub fn check_private(path: &Path) -> Result<(), Error> {
    // Not followed: a link here could lead to a place of somebody's choosing.
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
