//! Contents of the simulated files: small ones, some of which begin with
//! others, empty ones, and any number of unique ones.

use touchmark_proto::Hash;

/// Contents with a lower number occur many times in a run; the others are
/// written once.
pub const COMMON: u32 = 8;

pub fn content(id: u32) -> Vec<u8> {
    match id {
        0 => Vec::new(),
        1 => b"a\n".to_vec(),
        2 => b"a\nb\n".to_vec(),
        3 => b"a\nb\nc\n".to_vec(),
        4 => b"a\nb\nc\nd".to_vec(),
        5 => b"x\n".to_vec(),
        6 => b"x\ny\nz\n".to_vec(),
        7 => b"a\nq\nc\n".to_vec(),
        _ => match id % 4 {
            0 => format!("u{id}\n"),
            1 => format!("a\nb\nc\nu{id}\n"),
            2 => format!("u{id}\nb\nc"),
            _ => format!("a\nu{id}\n\n"),
        }
        .into_bytes(),
    }
}

/// Returns a fast, injective hash. The engine uses hashes only as names, so any
/// injective one will do.
pub fn hash(bytes: &[u8]) -> Hash {
    let mut out = [0; 32];
    for (lane, chunk) in out.chunks_mut(8).enumerate() {
        let mut h = 0xcbf2_9ce4_8422_2325_u64 ^ (lane as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in bytes {
            h = (h ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        h ^= (bytes.len() as u64) << 32;
        chunk.copy_from_slice(&h.to_be_bytes());
    }
    Hash(out)
}

/// Returns the number of lines: of line feeds, and one more if the last line
/// has none.
pub fn lines(bytes: &[u8]) -> u32 {
    let feeds = bytes.iter().filter(|byte| **byte == b'\n').count() as u32;
    feeds + u32::from(bytes.last().is_some_and(|last| *last != b'\n'))
}
