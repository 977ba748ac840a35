//! Reading a configuration file. The workspace's comes with whatever was
//! cloned or unpacked, so it is not trusted to be a file, or short, or to
//! have an end.

use std::io::{self, Read};
use std::path::Path;

use crate::system::open::patient;

/// The largest file that is read, in bytes.
const MOST: u64 = 1 << 20;

/// The bytes of a regular file.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A FIFO without a writer would block, a terminal become ours.
    let file = patient().read(true).open(path)?;
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
