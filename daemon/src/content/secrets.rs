//! Names whose contents are never kept (SEC-3).

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use touchmark_proto::{RelPath, native};

/// Names whose contents are never kept. Case does not count.
#[derive(Clone, Debug)]
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
            if pattern.contains('[') {
                // In small letters a class would be another class.
                set.add(GlobBuilder::new(pattern).case_insensitive(true).build()?);
                continue;
            }
            // Those that ignore case by themselves are regular expressions,
            // however plain, and every read asks.
            let (ascii, all) = (pattern.to_ascii_lowercase(), pattern.to_lowercase());
            set.add(Glob::new(&ascii)?);
            if ascii != all {
                set.add(Glob::new(&all)?);
            }
        }
        Ok(Self(set.build()?))
    }

    /// Whether a path is one of them.
    pub fn has(&self, path: &RelPath) -> bool {
        let small = path.as_bytes().to_ascii_lowercase();
        self.has_small(&small)
            || (!small.is_ascii()
                && self.has_small(String::from_utf8_lossy(&small).to_lowercase().as_bytes()))
    }

    fn has_small(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next();
        let is_match = |bytes| self.0.is_match(native::name(bytes));
        name.is_some_and(is_match) || is_match(path)
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

    #[test]
    fn what_patterns_that_ignore_case_say_is_a_secret_is_one() {
        let patterns = ["*.Key", "Secret?/**", "{a,B}.txt", "*Σ", "x?y", "[A-z]z"];
        let secrets = Secrets::new(patterns).unwrap();
        let mut slow = GlobSetBuilder::new();
        for pattern in patterns {
            slow.add(
                GlobBuilder::new(pattern)
                    .case_insensitive(true)
                    .build()
                    .unwrap(),
            );
        }
        let slow = slow.build().unwrap();
        let names: [&[u8]; 12] = [
            b"A.TXT",
            b"b.txt",
            b"c.txt",
            b"d/x.KEY",
            b"SECRETS/a/B",
            b"secret/a",
            b"_z",
            b"1z",
            "ΑΣ".as_bytes(),
            "ας".as_bytes(),
            b"X\xffY",
            b"x\xff\xffy",
        ];
        for name in names {
            let path = RelPath::new(name).unwrap();
            let is_match = |name| slow.is_match(native::name(name));
            let secret = is_match(path.file_name()) || is_match(path.as_bytes());
            let name = String::from_utf8_lossy(name);
            assert!(!secret || secrets.has(&path), "{name}");
            assert!(secret || !name.is_ascii() || !secrets.has(&path), "{name}");
        }
    }
}
