//! Checks of directories, socket and lock: permissions and free space.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use touchmark_proto::Holder;

use super::Finding;
use crate::life::{check_private, named_in};
use crate::socket::listener::MAX_PATH;
use crate::system::disk;
use crate::system::stat::FileTypeExt as _;

/// Checks that the workspace can be read.
pub(super) fn workspace(path: &Path) -> Finding {
    const CHECK: &str = "workspace";
    match disk::may_read(path) {
        Ok(()) => Finding::good(CHECK, path.display().to_string()),
        Err(error) => Finding::wrong(
            CHECK,
            format!("{} cannot be read: {error}", path.display()),
            "allow its owner to list and to enter it",
        ),
    }
}

/// Checks that a directory is private to this user and can be written (SEC-1).
/// A directory that does not exist is created at the start, if possible.
pub(super) fn private(check: &'static str, path: &Path) -> Finding {
    let Some(nearest) = path.ancestors().find(|path| path.exists()) else {
        return Finding::wrong(check, format!("{} cannot be made", path.display()), "");
    };
    if fs::symlink_metadata(path).is_ok()
        && let Err(error) = check_private(path)
    {
        return Finding::wrong(check, error.to_string(), error.hint());
    }
    // Root may write anywhere except on a read-only mount, which is reported.
    match disk::may_write(nearest) {
        Ok(()) if nearest == path => Finding::good(check, path.display().to_string()),
        Ok(()) => Finding::good(check, format!("{}, not made yet", path.display())),
        Err(error) => Finding::wrong(
            check,
            format!("{} cannot be written to: {error}", nearest.display()),
            match error.kind() {
                ErrorKind::ReadOnlyFilesystem => {
                    "mount it for writing, or name another directory (XDG_STATE_HOME, XDG_RUNTIME_DIR)"
                }
                _ => "make it a directory of your own with mode 0700",
            },
        ),
    }
}

/// Checks that at least `least` bytes are free, and that new files can be
/// created.
pub(super) fn room(check: &'static str, path: &Path, least: u64) -> Option<Finding> {
    let nearest = path.ancestors().find(|path| path.exists())?;
    let room = disk::room(nearest)?;
    let mebibytes = room.bytes >> 20;
    Some(if room.read_only {
        Finding::wrong(
            check,
            format!("{} is mounted read-only", nearest.display()),
            "mount it for writing, or name another directory (XDG_STATE_HOME, XDG_RUNTIME_DIR)",
        )
    } else if room.bytes < least {
        Finding::wrong(
            check,
            format!("{mebibytes} MiB left for {}", path.display()),
            "free space on the disk: requests that change state fail until then",
        )
    } else if room.no_files {
        Finding::wrong(
            check,
            format!("no new file can be made in {}", nearest.display()),
            "remove files there: it has run out of inodes",
        )
    } else {
        Finding::good(check, format!("{mebibytes} MiB free"))
    })
}

/// Checks that the kernel accepts a socket path of this length.
pub(super) fn socket_path(socket: &Path) -> Finding {
    const CHECK: &str = "socket path";
    let length = socket.as_os_str().len();
    if length > MAX_PATH {
        return Finding::wrong(
            CHECK,
            format!(
                "{length} bytes, at most {MAX_PATH} work: {}",
                socket.display()
            ),
            crate::error::SHORTER,
        );
    }
    match fs::symlink_metadata(socket) {
        Ok(there) if !there.file_type().is_socket() => Finding::wrong(
            CHECK,
            format!("{} is no socket", socket.display()),
            "remove it, or name another place by TOUCHMARK_SOCKET",
        ),
        _ => Finding::good(CHECK, socket.display().to_string()),
    }
}

/// Checks whether the lock is held. A lock file that no process holds was left
/// behind.
pub(super) fn lock(path: &Path) -> Finding {
    const CHECK: &str = "lock";
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Finding::good(CHECK, "free");
        }
        Err(error) => {
            return Finding::wrong(
                CHECK,
                format!("{}: {error}", path.display()),
                "remove it if no daemon of this workspace runs",
            );
        }
    };
    match file.try_lock_shared() {
        // The lock is released with the descriptor.
        Ok(()) => Finding::wrong(
            CHECK,
            format!("{} was left by a daemon that was killed", path.display()),
            "`touchmark start`: the next daemon takes it over",
        ),
        Err(TryLockError::WouldBlock) => Finding::good(CHECK, held(path)),
        Err(TryLockError::Error(error)) => Finding::wrong(
            CHECK,
            format!("{}: {error}", path.display()),
            "file locks do not work there: set XDG_STATE_HOME to a local file system",
        ),
    }
}

/// Returns a text that names the holder of a lock and its socket. The socket
/// can differ from this environment's, if the daemon was started with another
/// runtime directory.
fn held(lock: &Path) -> String {
    let Some(Holder { pid, socket, .. }) = named_in(lock) else {
        return "held by a daemon".into();
    };
    let socket = socket.unwrap_or_default();
    format!("held by pid {pid}, which listens at {}", socket.display())
}

/// Reports damaged stores that were set aside (DUR-2).
pub(super) fn set_aside(state: &Path) -> Option<Finding> {
    let entries = fs::read_dir(state).ok()?;
    let mut found: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| {
            name.starts_with("store.db.damaged-")
                && !["-wal", "-shm", "-last"]
                    .iter()
                    .any(|end| name.ends_with(end))
        })
        .collect();
    found.sort();
    let newest = found.pop()?;
    Some(Finding::note(
        "damaged stores",
        format!("{} set aside, the newest is {newest}", found.len() + 1),
        format!(
            "nothing reads them any more; remove them from {} when you like",
            state.display()
        ),
    ))
}
