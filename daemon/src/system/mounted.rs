//! Distinguishes file systems that are mounted one after the other at the same
//! place, and reports how long a store through a memory map may not show in a
//! stat.

use std::fs;
use std::sync::LazyLock;
use std::time::Duration;

/// What has a mount: an open file or directory.
pub(crate) use std::os::fd::AsFd as Handle;

use rustix::fs::{AtFlags, StatVfsMountFlags, StatxFlags, fstatfs, fstatvfs, statx};
use sha2::{Digest as _, Sha256};

/// `STATX_MNT_ID_UNIQUE` (Linux 6.8): a number that no other mount gets until
/// the next boot.
const UNIQUE: u32 = 0x4000;

/// File systems in memory. Their pages are never written back, so only the
/// first store through a map ever changes a timestamp.
const IN_MEMORY: [u64; 3] = [0x0102_1994, 0x8584_58F6, 0x9584_58F6];

/// What a stat on a mounted file system proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mounted {
    /// A number that no other mount has, not even after a restart; 0 if the
    /// device's number is enough.
    pub(crate) id: u64,
    /// Whether a stat can prove that a content is unchanged.
    pub(crate) vouches: bool,
}

/// Returns the mount of a file. The mount itself is examined, since an image
/// that replaces another often gets its device number.
pub(crate) fn mounted(file: impl Handle) -> Mounted {
    let in_memory = is_in_memory(&file);
    let id = unique_id(&file);
    Mounted {
        id: id.unwrap_or(0),
        vouches: id.is_some() && !in_memory,
    }
}

/// Returns the mount of the file system that contains the workspace. A writable
/// one is identified by its device: its times are those of real writes. A
/// read-only one may be an image that was made with fixed times.
pub(crate) fn mounted_home(file: impl Handle) -> Mounted {
    let flags = fstatvfs(&file).map(|found| found.f_flag);
    if flags.is_ok_and(|flags| !flags.contains(StatVfsMountFlags::RDONLY)) {
        return Mounted {
            id: 0,
            vouches: !is_in_memory(&file),
        };
    }
    mounted(file)
}

fn is_in_memory(file: impl Handle) -> bool {
    fstatfs(file).is_ok_and(|found| IN_MEMORY.contains(&(found.f_type as u64 & 0xFFFF_FFFF)))
}

fn unique_id(file: impl Handle) -> Option<u64> {
    static BOOT: LazyLock<Option<Vec<u8>>> =
        LazyLock::new(|| fs::read("/proc/sys/kernel/random/boot_id").ok());
    let found = statx(
        file,
        "",
        AtFlags::EMPTY_PATH,
        StatxFlags::from_bits_retain(UNIQUE),
    )
    .ok()?;
    if found.stx_mask & UNIQUE == 0 {
        return None;
    }
    let mut hasher = Sha256::new();
    hasher.update(BOOT.as_ref()?);
    hasher.update(found.stx_mnt_id.to_le_bytes());
    let digest: [u8; 32] = hasher.finalize().into();
    let (first, _) = digest.split_first_chunk()?;
    Some(u64::from_le_bytes(*first).max(1))
}

/// Returns how long a page may stay dirty: stores through a map into a dirty
/// page change no timestamp. `None` if the system writes back only on request.
pub(crate) fn dirty_time() -> Option<Duration> {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/vm/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let expire = read("dirty_expire_centisecs")?;
    let writeback = read("dirty_writeback_centisecs").filter(|pace| *pace > 0)?;
    Some(Duration::from_millis(
        expire.saturating_add(writeback).saturating_mul(10),
    ))
}
