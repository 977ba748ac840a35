//! How records name repository, work tree and files (TEL-6).

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use touchmark_proto::trust::Trust;
use touchmark_proto::{Places, RelPath, native};

use super::events::Attributes;
use super::remote;
use crate::config::Paths;
use crate::git;
use crate::system::open::private;
use crate::system::open::read_regular;

/// The largest configuration of a repository that is read, in bytes.
const MOST_CONFIG: u64 = 1 << 20;

/// The length of a key in bytes.
const KEY: usize = 32;

/// How files are named in records.
pub(super) struct Names {
    paths: Paths,
    /// The key of this user's hashes; `None` if it cannot be stored.
    key: Option<[u8; KEY]>,
    repository: String,
    /// The path of the workspace in the repository, with a slash at the end.
    prefix: Vec<u8>,
}

impl Names {
    /// Returns the attribute for a file; `None` if files are not named.
    pub(super) fn of(&self, path: &RelPath) -> Option<(&'static str, String)> {
        let full = [&*self.prefix, path.as_bytes()].concat();
        match self.paths {
            Paths::Plain => Some((
                "touchmark.path",
                String::from_utf8_lossy(&full).into_owned(),
            )),
            Paths::Hash => {
                let key = self.key.as_ref()?;
                let hash = keyed(key, &[b"path", self.repository.as_bytes(), &full]);
                Some(("touchmark.path.hash", hash))
            }
            Paths::None => None,
        }
    }
}

/// Reads what identifies a workspace, and adds it to the attributes of its
/// resource.
pub(super) fn identify(
    workspace: &Path,
    places: &Places,
    trust: &Trust,
    paths: Paths,
    resource: &mut Attributes,
) -> Names {
    let key = places.lock.parent().map(key);
    let key = key.and_then(|key| {
        key.inspect_err(|error| tracing::warn!("the key of telemetry's hashes: {error}"))
            .ok()
    });
    let found = git::found(workspace, trust);
    let (top, common) = match &found {
        Some((top, _, common)) => (top.as_path(), common.as_path()),
        None => (workspace, workspace),
    };
    let origin = found.as_ref().and_then(|(.., common)| origin(common));
    let repository = match (&origin, &key) {
        (Some(origin), _) => hashed(&[b"repository", origin.as_bytes()]),
        (None, Some(key)) => keyed(key, &[b"repository", &native::bytes(common)]),
        (None, None) => String::new(),
    };
    if !repository.is_empty() {
        resource.text("touchmark.repository", repository.as_str());
    }
    if let Some(key) = &key {
        let worktree = keyed(key, &[b"worktree", &native::bytes(top)]);
        resource.text("touchmark.worktree", worktree);
    }
    if let (Paths::Plain, Some(origin)) = (paths, &origin) {
        resource.text("vcs.repository.url.full", format!("https://{origin}"));
        let name = origin.rsplit('/').next().unwrap_or(origin);
        resource.text("vcs.repository.name", name);
    }
    let below = workspace.strip_prefix(top).unwrap_or(Path::new(""));
    let mut prefix = native::bytes(below).into_owned();
    if !prefix.is_empty() {
        prefix.push(b'/');
    }
    Names {
        paths,
        key,
        repository,
        prefix,
    }
}

/// Returns the normalised address of a repository's origin.
fn origin(common: &Path) -> Option<String> {
    let text = read_regular(&common.join("config"), MOST_CONFIG).ok()?;
    remote::normalised(&remote::origin(&String::from_utf8_lossy(&text))?)
}

/// Returns the key of this user's hashes, which is made at the first use.
fn key(states: &Path) -> io::Result<[u8; KEY]> {
    let place = states.join("telemetry.key");
    if let Err(error) = fs::metadata(&place) {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        let mut key = [0; KEY];
        random(&mut key)?;
        // Written whole before it has its name: another daemon may start now.
        let part = states.join(format!("telemetry.key.{}", std::process::id()));
        private()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&part)?
            .write_all(&key)?;
        let linked = fs::hard_link(&part, &place);
        fs::remove_file(&part)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let found = fs::read(&place)?;
    found
        .try_into()
        .map_err(|_| io::Error::other(format!("{} has not {KEY} bytes", place.display())))
}

/// Fills a buffer with random bytes.
pub(super) fn random(bytes: &mut [u8]) -> io::Result<()> {
    fs::File::open("/dev/urandom")?.read_exact(bytes)
}

fn keyed(key: &[u8; KEY], parts: &[&[u8]]) -> String {
    hashed(&[&[key.as_slice()], parts].concat())
}

/// Returns 128 bits of the hash of some parts, as digits.
fn hashed(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize()[..16])
}

/// Returns bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String never fails.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
