//! The paths that a command window covers (ATTR-6).

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use touchmark_proto::RelPath;

/// The maximum number of globs of one window, and the maximum number of bytes
/// of one glob.
const GLOBS: usize = 1_000;
const GLOB_BYTES: usize = 1_024;

/// The maximum number of bytes of all globs of one window. They are compiled
/// and kept as long as the window is open.
const ALL_BYTES: usize = 64 << 10;

/// A window's globs as the client sent them. A glob is relative to the
/// workspace. `*` and `?` match within a directory, `**` across directories. A
/// glob without `/` may match at any depth. A matching directory is covered
/// with everything below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Globs {
    /// The globs; `None` covers everything.
    pub patterns: Option<Vec<String>>,
    /// Names that differ only in case name the same file (SEEN-6).
    pub case_insensitive: bool,
}

/// Compiled [`Globs`]. Two are equal if their globs are.
#[derive(Clone, Debug)]
pub struct Cover {
    globs: Globs,
    set: GlobSet,
}

impl PartialEq for Cover {
    fn eq(&self, other: &Self) -> bool {
        self.globs == other.globs
    }
}

impl Eq for Cover {}

impl Globs {
    /// Returns globs from a client's request, without a leading `./` or
    /// workspace path and without a trailing `/`.
    ///
    /// # Errors
    /// The reason why the first invalid glob is invalid.
    pub fn requested(
        patterns: Option<&[String]>,
        root: &[u8],
        case_insensitive: bool,
    ) -> Result<Self, String> {
        let root = String::from_utf8_lossy(root);
        let patterns = match patterns {
            None => None,
            Some(patterns) if patterns.len() > GLOBS => {
                return Err(format!("at most {GLOBS} globs"));
            }
            Some(patterns) if patterns.iter().map(String::len).sum::<usize>() > ALL_BYTES => {
                return Err(format!("at most {ALL_BYTES} bytes of globs"));
            }
            Some(patterns) => Some(
                patterns
                    .iter()
                    .map(|pattern| relative(pattern, &root))
                    .collect::<Result<Vec<_>, _>>()?,
            ),
        };
        let globs = Self {
            patterns,
            case_insensitive,
        };
        globs.compile().map_err(|error| error.to_string())?;
        Ok(globs)
    }

    fn compile(&self) -> Result<GlobSet, globset::Error> {
        let mut set = GlobSetBuilder::new();
        for pattern in self.patterns.iter().flatten() {
            let anywhere = if pattern.contains('/') { "" } else { "**/" };
            for below in ["", "/**"] {
                set.add(
                    GlobBuilder::new(&format!("{anywhere}{pattern}{below}"))
                        .literal_separator(true)
                        .case_insensitive(self.case_insensitive)
                        .build()?,
                );
            }
        }
        set.build()
    }
}

fn relative(pattern: &str, root: &str) -> Result<String, String> {
    if pattern.len() > GLOB_BYTES {
        return Err(format!("a glob has at most {GLOB_BYTES} bytes"));
    }
    let inside = match pattern.strip_prefix('/') {
        None => pattern,
        Some(_) => pattern
            .strip_prefix(root.trim_end_matches('/'))
            .and_then(|rest| rest.strip_prefix('/'))
            .ok_or_else(|| format!("the glob {pattern:?} leads out of the workspace"))?,
    };
    let inside = inside.trim_start_matches("./").trim_end_matches('/');
    if inside.split('/').any(|part| part == "..") {
        return Err(format!("the glob {pattern:?} leads out of the workspace"));
    }
    // The workspace itself, with everything below it.
    Ok(if inside.is_empty() || inside == "." {
        "**".to_owned()
    } else {
        inside.to_owned()
    })
}

impl From<Globs> for Cover {
    fn from(globs: Globs) -> Self {
        // The globs were compiled when the window was opened. If one no longer
        // compiles, it covers nothing, so that no version is attributed
        // wrongly.
        let set = globs.compile().unwrap_or_default();
        Self { globs, set }
    }
}

impl From<Cover> for Globs {
    fn from(scope: Cover) -> Self {
        scope.globs
    }
}

impl Cover {
    /// Returns whether the window covers a path.
    pub fn covers(&self, path: &RelPath) -> bool {
        self.globs.patterns.is_none()
            || self
                .set
                .is_match_candidate(&Candidate::from_bytes(path.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn covers(pattern: &str, path: &str) -> bool {
        let globs = Globs::requested(Some(&[pattern.into()]), b"/w", false).unwrap();
        Cover::from(globs).covers(&RelPath::new(path.as_bytes()).unwrap())
    }

    #[test]
    fn what_globs_cover() {
        for (pattern, covered, not) in [
            ("src/*.rs", "src/a.rs", "src/x/a.rs"),
            ("src/**/*.rs", "src/x/y/a.rs", "test/a.rs"),
            ("*.rs", "src/x/a.rs", "src/a.rsx"),
            ("src", "src/x/a.rs", "srcs/a"),
            ("./src/", "src/a", "a"),
            ("/w/src/?", "src/a", "src/ab"),
            ("{a,b}/c", "b/c", "c/c"),
            ("[ab]", "x/a", "x/c"),
            ("a b/ü*", "a b/üx", "a b/x"),
        ] {
            assert!(covers(pattern, covered), "{pattern} covers {covered}");
            assert!(!covers(pattern, not), "{pattern} does not cover {not}");
        }
        assert!(covers(".", "x/y") && covers("/w/", "x/y"));
    }

    #[test]
    fn no_globs_cover_everything_and_an_empty_list_nothing() {
        let path = RelPath::new(b"\xff/x").unwrap();
        let scope = |patterns: Option<&[String]>| {
            Cover::from(Globs::requested(patterns, b"/w", false).unwrap())
        };
        assert!(scope(None).covers(&path));
        assert!(!scope(Some(&[])).covers(&path));
        assert!(scope(Some(&["*".into()])).covers(&path));
    }

    #[test]
    fn wrong_globs_are_refused() {
        for pattern in ["../x", "a/../../b", "/etc/*", "[", "{a"] {
            let globs = Globs::requested(Some(&[pattern.to_owned()]), b"/w", false);
            assert!(globs.is_err(), "{pattern}");
        }
        let long = Globs::requested(Some(&["x".repeat(2000)]), b"/w", false);
        assert!(long.is_err());
    }
}
