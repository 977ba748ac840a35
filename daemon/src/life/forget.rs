//! Removes everything that is stored of a workspace.

use std::fs;
use std::io;
use std::path::Path;

use touchmark_proto::Places;

use super::{GONE, Lock};
use crate::Error;
use crate::fleet::numbers;

/// Removes everything that is stored of a workspace that no daemon serves,
/// including the recovery directory. Returns false if there was nothing.
///
/// # Errors
/// [`Error::AlreadyRunning`] while a daemon serves it, and the file system's
/// errors.
pub fn forget(places: &Places, workspace: &Path) -> Result<bool, Error> {
    // With the lock, no daemon can start meanwhile and write into what is being
    // removed.
    let _lock = Lock::of(places, workspace)?;
    numbers::remove_stale(&places.lock);
    let gone = places.state.with_extension(GONE);
    let failed = |action, path| Error::io(action, path);
    // The rename removes it in one step: half of a state would be read as a
    // damaged one.
    match fs::rename(&places.state, &gone) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound && !gone.exists() => {
            return Ok(false);
        }
        // An earlier attempt was interrupted after the rename.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("remove the state", &places.state)(error)),
    }
    fs::remove_dir_all(&gone).map_err(failed("remove the state", &gone))?;
    Ok(true)
}

/// Returns the number of contents in a workspace's recovery directory, which
/// guarded writes have replaced. They may exist nowhere else.
pub fn kept(places: &Places) -> usize {
    crate::guard::kept(&places.state)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use touchmark_proto::BaseDirectories;

    use super::*;

    #[test]
    fn everything_and_only_without_a_daemon() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let base = BaseDirectories {
            runtime: Some(home.join("run")),
            state: home.join("state"),
            config: home.join("config"),
            cache: home.join("cache"),
        };
        let places = |name: &str| Places::new(&base, &home.join(name), None);
        let (own, other) = (places("own"), places("other"));
        for places in [&own, &other] {
            fs::create_dir_all(places.state.join("recovery")).unwrap();
            fs::write(places.state.join("recovery/r1.json"), "{}").unwrap();
            fs::write(places.state.join("store.db"), "x").unwrap();
        }
        let served = Lock::of(&own, &home.join("own")).unwrap();
        assert!(forget(&own, &home.join("own")).is_err());
        assert!(own.state.exists());
        assert_eq!(kept(&own), 1);
        drop(served);
        assert!(forget(&own, &home.join("own")).unwrap());
        assert!(!forget(&own, &home.join("own")).unwrap());
        assert!(!own.state.exists() && other.state.exists());
        assert_eq!(kept(&own), 0);
        let left: Vec<_> = fs::read_dir(base.state_directory()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }
}
