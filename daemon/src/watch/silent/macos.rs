//! The same by macOS's names of file systems (statfs(2), `f_fstypename`).

use std::path::Path;

/// Why changes of what is on `path`'s file system may make no events, if that
/// is so.
pub fn silent_file_system(path: &Path) -> Option<&'static str> {
    let name = rustix::fs::statfs(path).ok()?.f_fstypename;
    let name = name.map(|letter| letter.cast_unsigned());
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    match name {
        b"apfs" | b"hfs" | b"exfat" | b"msdos" | b"ufs" | b"tmpfs" | b"ntfs" => None,
        b"nfs" => Some("NFS: changes made elsewhere make no events"),
        b"smbfs" => Some("SMB file system: changes made elsewhere make no events"),
        b"afpfs" => Some("AFP file system: changes made elsewhere make no events"),
        b"webdav" => Some("WebDAV: changes made elsewhere make no events"),
        _ => Some("a file system of which it is not known whether all changes make events"),
    }
}
