//! The directory that git takes for the one that all work trees share
//! (`GIT_COMMON_DIR`). It has a configuration of ours, no attributes and no
//! hooks. Links lead to the objects, references and ignore rules of the
//! repository.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use sha2::{Digest as _, Sha256};
use touchmark_proto::native;

use super::files::Configured;
use crate::system::open::{private_directory, read_regular};

/// The directory of these directories, in the state directory.
const NAME: &str = "git";

const CONFIG: &str = "config";

/// What leads into the repository.
const LINKS: [&str; 9] = [
    "HEAD",
    "info/exclude",
    "logs",
    "objects",
    "packed-refs",
    "refs",
    "reftable",
    "shallow",
    "worktrees",
];

/// The settings that are taken from the repository, with the values that they
/// may have. They say how its files are to be read; none names a program, a
/// path or an address. The values are few, so a repository that changes them
/// cannot fill the state directory.
const TAKEN: [(&str, &str, &[&str]); 9] = [
    ("core", "checkstat", &["minimal"]),
    ("core", "filemode", &["false"]),
    ("core", "ignorecase", &["true"]),
    ("core", "logallrefupdates", &["false", "always"]),
    (
        "core",
        "sharedrepository",
        &["group", "true", "all", "world"],
    ),
    ("core", "symlinks", &["false"]),
    ("core", "trustctime", &["false"]),
    ("extensions", "objectformat", &["sha256"]),
    ("extensions", "refstorage", &["reftable"]),
];

/// The directory for one repository.
pub(super) struct Directory {
    pub(super) path: PathBuf,
    /// The id of a tree without entries.
    pub(super) empty_tree: &'static str,
}

impl Directory {
    /// Returns the directory for the repository with this shared directory, and
    /// makes it if it does not exist.
    ///
    /// # Errors
    /// Those of the state directory.
    pub(super) fn of(common: &Path, state: &Path) -> io::Result<Self> {
        let config = config(&Configured::read(common));
        let name = Sha256::new()
            .chain_update(native::bytes(common))
            .chain_update([0])
            .chain_update(&config)
            .finalize();
        let name: String = name[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let all = state.join(NAME);
        let path = all.join(name);
        // After a power loss the file may be empty.
        let written = read_regular(&path.join(CONFIG), config.len() as u64).unwrap_or_default();
        if written != config.as_bytes() {
            make(&path, common, &config)?;
        }
        let sha256 = config.contains("sha256");
        Ok(Self {
            path,
            empty_tree: match sha256 {
                true => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
                false => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            },
        })
    }
}

fn config(configured: &Configured) -> String {
    let mut text = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n".to_owned();
    for (section, key, values) in TAKEN {
        let value = configured.value(section, key);
        if let Some(value) = values.iter().find(|known| value == Some(**known)) {
            text += &format!("[{section}]\n\t{key} = {value}\n");
        }
    }
    text
}

/// Makes the directory. Another process may make the same one meanwhile. The
/// configuration comes last, as a whole: with it the directory is complete.
fn make(path: &Path, common: &Path, config: &str) -> io::Result<()> {
    private_directory()
        .recursive(true)
        .create(path.join("info"))?;
    for name in LINKS {
        match symlink(common.join(name), path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    static MADE: AtomicU32 = AtomicU32::new(0);
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    let temporary = path.join(format!("{CONFIG}.{}.{made}", std::process::id()));
    fs::write(&temporary, config)?;
    fs::rename(temporary, path.join(CONFIG))
}
