//! Reads a configuration file. The workspace's file comes with what was cloned
//! or unpacked, so it may be no regular file, or large, or endless.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use touchmark_proto::trust::Trust;

use crate::system::open::patient;

/// The maximum size of a file that is read, in bytes.
const MOST: u64 = 1 << 20;

/// Returns the bytes of a regular file.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_opened(opened(path)?)
}

/// Returns the bytes of a regular file, if it belongs to a trusted user
/// (SEC-6).
pub(super) fn read_trusted(path: &Path, trust: &Trust) -> io::Result<Vec<u8>> {
    let file = opened(path)?;
    let refused = |why: String| {
        let list = trust.list.display();
        let allow = format!("to have it taken over name its directory in {list}");
        io::Error::other(format!("not read, since {why}; {allow}"))
    };
    let directory = path.parent().unwrap_or(Path::new("/"));
    // If the path is a link, both the link and its target are checked.
    for found in [std::fs::symlink_metadata(path)?, file.metadata()?] {
        trust.check(directory, &found).map_err(refused)?;
    }
    read_opened(file)
}

/// Opens a file without blocking on a FIFO and without acquiring a terminal.
fn opened(path: &Path) -> io::Result<File> {
    patient().read(true).open(path)
}

fn read_opened(file: File) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::other(format!("larger than {MOST} bytes")));
    }
    Ok(bytes)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sec6_what_others_could_have_put_there_is_not_read() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let path = root.join(".touchmark.toml");
        std::fs::write(&path, "a").unwrap();
        let list = root.join("trusted");
        let trust = crate::system::open::trust(&list);
        assert_eq!(read_trusted(&path, &trust).unwrap(), b"a");
        std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o777)).unwrap();
        let error = read_trusted(&path, &trust).unwrap_err().to_string();
        assert!(error.contains("everybody may write"), "{error}");
        std::fs::write(&list, root.as_os_str().as_encoded_bytes()).unwrap();
        assert_eq!(read_trusted(&path, &trust).unwrap(), b"a");
    }

    #[test]
    fn what_is_no_file_or_has_no_end_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".touchmark.toml");
        std::fs::write(&path, "a").unwrap();
        assert_eq!(read(&path).unwrap(), b"a");
        std::fs::write(&path, vec![b' '; 2 << 20]).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("larger"));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("regular"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("regular"));
    }
}
