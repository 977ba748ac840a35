//! File systems on which writes can happen that this kernel does not see: by
//! other machines, by a hypervisor's host, by Windows (LOSS-2).

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::mounts::overlay_is_open;

/// The number of an overlay file system.
const OVERLAY: u64 = 0x794C_7630;

/// A kind of file system with the reason why changes on it may make no events.
struct Kind {
    /// The numbers that the system has for it (statfs(2)).
    magic: &'static [u64],
    /// Its names in the table of mounts. Its calls depend on another machine or
    /// program.
    names: &'static [&'static [u8]],
    cause: &'static str,
}

#[rustfmt::skip]
const KINDS: [Kind; 9] = [
    Kind { magic: &[0x0000_6969], names: &[b"nfs", b"nfs4"], cause: "NFS: changes made elsewhere make no events" },
    Kind { magic: &[0xFF53_4D42, 0xFE53_4D42, 0x0000_517B], names: &[b"cifs", b"smb3", b"smbfs"], cause: "SMB file system: changes made elsewhere make no events" },
    Kind { magic: &[0x0102_1997], names: &[b"9p"], cause: "9p file system: changes made elsewhere make no events" },
    Kind { magic: &[0x00C3_6400], names: &[b"ceph"], cause: "Ceph: changes made elsewhere make no events" },
    Kind { magic: &[0x5346_414F], names: &[b"afs"], cause: "AFS: changes made elsewhere make no events" },
    Kind { magic: &[0x0BD0_0BD0], names: &[b"lustre"], cause: "Lustre: changes made elsewhere make no events" },
    Kind { magic: &[0x6573_5546], names: &[b"fuse", b"virtiofs"], cause: "FUSE file system: changes made behind it make no events" },
    Kind { magic: &[0x786F_4256], names: &[], cause: "VirtualBox shared folder: changes made by the host make no events" },
    Kind { magic: &[0x5346_544E], names: &[], cause: "Windows drive: changes made by Windows make no events" },
];

/// Returns why changes on the file system of `path` may make no events, or
/// `None` if all make events.
pub fn silent_file_system(path: &Path) -> Option<&'static str> {
    let magic = rustix::fs::statfs(path).ok()?.f_type;
    // The field is signed on some machines and not on others.
    let magic = magic as u64 & 0xFFFF_FFFF;
    if magic == OVERLAY {
        let is_open = overlay_is_open(path.symlink_metadata().ok()?.dev());
        return is_open.then_some("overlay file system: changes made in its layers make no events");
    }
    let kind = KINDS.iter().find(|kind| kind.magic.contains(&magic));
    kind.map(|kind| kind.cause)
}

/// Returns why changes on a file system with this name in the table of mounts
/// may make no events, if its calls depend on another machine or program. Else
/// `None`.
pub(super) fn remote(name: &[u8]) -> Option<&'static str> {
    if name == b"autofs" {
        return Some("automounted place: it is looked at only when asked about");
    }
    // Programs add their own names: `fuse.sshfs`.
    let is_named = |one: &&[u8]| *one == name || *one == b"fuse" && name.starts_with(one);
    let kind = KINDS.iter().find(|kind| kind.names.iter().any(is_named));
    kind.map(|kind| kind.cause)
}
