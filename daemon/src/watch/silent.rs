//! File systems on which writes can happen that this kernel does not see: by
//! other machines, by a hypervisor's host, by Windows (LOSS-2).

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::mounts::overlay_is_open;

/// Returns why changes on the file system of `path` may make no events, or
/// `None` if all make events.
pub fn silent_file_system(path: &Path) -> Option<&'static str> {
    let magic = rustix::fs::statfs(path).ok()?.f_type;
    // The field is signed on some machines and not on others.
    match magic as u64 & 0xFFFF_FFFF {
        0x0102_1997 => Some("9p file system: changes made elsewhere make no events"),
        0x0000_6969 => Some("NFS: changes made elsewhere make no events"),
        0x6573_5546 => Some("FUSE file system: changes made behind it make no events"),
        0xFF53_4D42 | 0xFE53_4D42 | 0x0000_517B => {
            Some("SMB file system: changes made elsewhere make no events")
        }
        0x00C3_6400 => Some("Ceph: changes made elsewhere make no events"),
        0x5346_414F => Some("AFS: changes made elsewhere make no events"),
        0x0BD0_0BD0 => Some("Lustre: changes made elsewhere make no events"),
        0x786F_4256 => Some("VirtualBox shared folder: changes made by the host make no events"),
        0x5346_544E => Some("Windows drive: changes made by Windows make no events"),
        0x794C_7630 if overlay_is_open(path.symlink_metadata().ok()?.dev()) => {
            Some("overlay file system: changes made in its layers make no events")
        }
        _ => None,
    }
}
