//! The names of guarded writes' temporary files.

use touchmark_proto::RelPath;

pub(super) const PREFIX: &str = ".touchmark-";
pub(super) const SUFFIX: &str = ".tmp";

/// Returns whether a path is that of a guarded write's temporary file. These
/// are never tracked.
pub fn is_temporary(path: &RelPath) -> bool {
    let name = path.file_name();
    name.strip_prefix(PREFIX.as_bytes())
        .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()))
        .is_some_and(|token| token.len() == 32 && token.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn its_names_are_known() {
        let path = |name: &str| RelPath::new(name.as_bytes()).unwrap();
        let own = format!("a/b/{PREFIX}0123456789abcdef0123456789ABCDEF{SUFFIX}");
        assert!(is_temporary(&path(&own)));
        for other in [
            ".touchmark.toml",
            ".touchmark-x.tmp",
            "a",
            ".touchmark-.tmp",
        ] {
            assert!(!is_temporary(&path(other)));
        }
    }
}
