//! When a daemon was used and what it has, in a file next to its lock. Other
//! daemons of the user read it; nothing in it is a promise. A daemon that cannot
//! write the file is not asked to end.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use touchmark_proto::{Holder, Millis, Places};

use crate::system::{open, process};

/// The file's extension; its name is the workspace's key.
pub(crate) const EXTENSION: &str = "use";

/// The length of the file, in bytes. It is always the same, so that one write
/// replaces everything.
const LENGTH: usize = 64;

/// The maximum number of bytes that are read of a lock file.
const LONGEST_LOCK: u64 = 16 << 10;

/// The numbers of one daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// The id of its process.
    pub(crate) pid: u32,
    /// When it was last used, on the clock of the system's uptime.
    pub(crate) used: Millis,
    /// Whether it has an inotify instance.
    pub(crate) has_instance: bool,
    /// Whether a client is connected, so that it would refuse to end.
    pub(crate) serves: bool,
}

impl Numbers {
    fn text(&self) -> String {
        let Self {
            pid,
            used,
            has_instance,
            serves,
        } = self;
        let [has_instance, serves] = [has_instance, serves].map(|flag| u8::from(*flag));
        let line = format!("{pid} {used} {has_instance} {serves}");
        format!("{line:<width$}\n", width = LENGTH - 1)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
        let mut fields = text.split_ascii_whitespace().map(str::parse);
        let mut next = || -> Option<u64> { fields.next()?.ok() };
        Some(Self {
            pid: u32::try_from(next()?).ok()?,
            used: next()?,
            has_instance: next()? != 0,
            serves: next()? != 0,
        })
    }
}

/// The file of this daemon. It is removed when this is dropped, so the
/// workspace's lock must still be held then.
#[derive(Debug)]
pub(crate) struct NumbersFile {
    path: PathBuf,
    file: File,
}

impl NumbersFile {
    /// Creates the file of a workspace, or takes the one that a killed daemon
    /// left. The caller holds the workspace's lock.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn create(places: &Places) -> io::Result<Self> {
        let path = places.lock.with_extension(EXTENSION);
        let file = open::private_itself()
            .create(true)
            .truncate(true)
            .write(true)
            .open(&path)?;
        Ok(Self { path, file })
    }

    /// Writes the numbers.
    pub(crate) fn write(&self, numbers: &Numbers) {
        // If this fails, the others calculate with the previous numbers.
        let _stays = open::write_over(&self.file, numbers.text().as_bytes());
    }
}

impl Drop for NumbersFile {
    fn drop(&mut self) {
        let _gone_already = fs::remove_file(&self.path);
    }
}

/// Removes the file that a killed daemon of this key has left next to its lock,
/// which the caller holds.
pub(crate) fn remove_stale(lock: &Path) {
    let _none = fs::remove_file(lock.with_extension(EXTENSION));
}

/// A running daemon of this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The key of its workspace.
    pub(crate) key: String,
    /// Its numbers.
    pub(crate) numbers: Numbers,
}

/// Returns the daemons that have a file of numbers in the directory of all
/// locks. Files of other users, and of daemons that were killed, are left out
/// (SEC-1). The locks are not read: there may be a thousand.
pub(crate) fn members(directory: &Path) -> Vec<Member> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let path = PathBuf::from(entry.file_name());
            let key = path.file_stem()?.to_str()?;
            let fits = path.extension()?.to_str()? == EXTENSION && Places::is_key(key);
            fits.then(|| member(directory, key)).flatten()
        })
        .collect()
}

fn member(directory: &Path, key: &str) -> Option<Member> {
    let file = directory.join(key).with_extension(EXTENSION);
    let numbers = Numbers::parse(&read_own(&file, LENGTH as u64)?)?;
    process::lives(numbers.pid).then(|| Member {
        key: key.to_owned(),
        numbers,
    })
}

/// Returns the socket of a daemon, as its lock names it; `None` if another
/// process has the lock by now.
pub(super) fn socket(directory: &Path, member: &Member) -> Option<PathBuf> {
    let lock = directory.join(&member.key).with_extension("lock");
    let holder = Holder::parse(&read_own(&lock, LONGEST_LOCK)?)?;
    holder.socket.filter(|_| holder.pid == member.numbers.pid)
}

/// Returns the beginning of a regular file of this user.
fn read_own(path: &Path, most: u64) -> Option<Vec<u8>> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || open::check_owner(&found).is_err() {
        return None;
    }
    let file = open::private_itself().read(true).open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use touchmark_proto::BaseDirectories;

    use super::*;

    fn numbers() -> Numbers {
        Numbers {
            pid: std::process::id(),
            used: 7,
            has_instance: true,
            serves: true,
        }
    }

    #[test]
    fn numbers_read_as_they_were_written() {
        let longest = Numbers {
            pid: u32::MAX,
            used: u64::MAX,
            has_instance: true,
            serves: true,
        };
        for numbers in [numbers(), Numbers::default(), longest] {
            let text = numbers.text();
            assert_eq!(text.len(), LENGTH);
            assert_eq!(Numbers::parse(text.as_bytes()), Some(numbers));
        }
        for wrong in ["", "1", "1 2 1 0", "a 2 1 0\n", "-1 2 1 0\n"] {
            assert_eq!(Numbers::parse(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    #[test]
    fn only_running_daemons_of_this_user_are_members() {
        let home = tempfile::tempdir().unwrap();
        let base = BaseDirectories {
            runtime: Some(home.path().join("run")),
            state: home.path().join("state"),
            config: home.path().join("config"),
            cache: home.path().join("cache"),
        };
        let states = base.state_directory();
        fs::create_dir_all(&states).unwrap();
        let places = Places::new(&base, Path::new("/w"), None);
        let holder = |pid| Holder {
            pid,
            socket: Some(places.socket.clone()),
            workspace: "/w".into(),
        };
        let file = NumbersFile::create(&places).unwrap();
        file.write(&Numbers {
            used: u64::MAX,
            ..numbers()
        });
        file.write(&numbers());
        let found = members(&states);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&found[0].key, &found[0].numbers),
            (&places.key, &numbers())
        );
        assert_eq!(socket(&states, &found[0]), None, "no lock names it");
        fs::write(&places.lock, holder(1).text()).unwrap();
        assert_eq!(socket(&states, &found[0]), None, "another has the lock");
        fs::write(&places.lock, holder(std::process::id()).text()).unwrap();
        assert_eq!(socket(&states, &found[0]), Some(places.socket.clone()));
        // A killed daemon has left the file.
        file.write(&Numbers {
            pid: 999_999_999,
            ..numbers()
        });
        assert_eq!(members(&states), []);
        file.write(&numbers());
        // A link could lead to a file of another user.
        let path = places.lock.with_extension(EXTENSION);
        fs::rename(&path, home.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(home.path().join("elsewhere"), &path).unwrap();
        assert_eq!(members(&states), []);
        drop(file);
        assert!(!path.exists());
    }
}
