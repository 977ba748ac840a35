//! Names whose contents are never kept (SEC-3).

use globset::{Glob, GlobSet, GlobSetBuilder};
use touchmark_proto::RelPath;

/// Names whose contents are never kept. Case does not count.
#[derive(Clone, Debug, Default)]
pub struct Secrets(GlobSet);

impl Secrets {
    /// The default of `contents.exclude`.
    pub const USUAL: &[&str] = &[".env*", "*.pem", "id_*", "*.key"];

    /// Compiles patterns, each of which is matched against the last component
    /// of a path and against the whole.
    ///
    /// # Errors
    /// The first pattern that is none.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, globset::Error> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            // Small letters on both sides: patterns that ignore case by
            // themselves are regular expressions, however plain, and every
            // read asks.
            set.add(Glob::new(&pattern.to_lowercase())?);
        }
        Ok(Self(set.build()?))
    }

    /// Whether a path is one of them.
    pub fn has(&self, path: &RelPath) -> bool {
        let small = |bytes| String::from_utf8_lossy(bytes).to_lowercase();
        self.0.is_match(small(path.file_name())) || self.0.is_match(small(path.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_name_is_a_secret_in_capitals_too_and_whatever_its_bytes() {
        let usual = Secrets::new(Secrets::USUAL.iter().copied()).unwrap();
        let own = Secrets::new(["Private/**", "*.[A-C]ert", "größe.*"]).unwrap();
        let path = |name: &[u8]| RelPath::new(name).unwrap();
        for name in [
            ".env",
            "a/.ENV.local",
            "Id_rsa",
            "x/y/Server.PEM",
            "a.b.Key",
        ] {
            assert!(usual.has(&path(name.as_bytes())), "{name}");
        }
        assert!(usual.has(&path(b"id_\xff\xfe")), "not UTF-8");
        for name in ["env", "a/penv/b", "pem", "keys", ".env/file"] {
            let whole = name.starts_with(".env");
            assert_eq!(usual.has(&path(name.as_bytes())), whole, "{name}");
        }
        for name in [
            "private/a/b",
            "PRIVATE/a",
            "a.Bert",
            "a.cERT",
            "GRÖSSE.x",
            "GRÖßE.x",
        ] {
            let other = name == "GRÖSSE.x";
            assert_eq!(own.has(&path(name.as_bytes())), !other, "{name}");
        }
    }
}
