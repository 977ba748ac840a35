//! Patterns of file names: files whose contents are never kept (SEC-3), and
//! files that no agent may write to (SEC-10).

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use touchmark_proto::{RelPath, native};

/// Names of secret files: the default of `contents.exclude`.
pub const SECRETS: &[&str] = &[
    // Environment files, and files named as secrets.
    ".env*",
    "*.env",
    "secrets.*",
    "credentials",
    "credentials.*",
    "*.tfstate",
    "*.tfstate.*",
    "*.tfvars",
    "token.txt",
    // Keys and key stores.
    "*.pem",
    "id_*",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "*.ovpn",
    "secring.*",
    "wallet.dat",
    "*service-account*.json",
    "*service_account*.json",
    "*-key.json",
    "**/.ssh/**",
    "**/.gnupg/**",
    // Files with which programs log in.
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    ".terraformrc",
    ".s3cfg",
    ".boto",
    "kubeconfig",
    "**/.kube/config",
    "**/.aws/*",
    "**/.azure/*",
    "**/.config/gcloud/**",
    "**/.docker/config.json",
    "**/.cargo/credentials*",
    "**/.gem/credentials",
];

/// Files whose content programs run without being asked: the default of
/// `guard.protect`. An agent that wrote them could run a program of its own.
pub const PROTECTED: &[&str] = &[
    // What git runs, and where it pushes to.
    ".git",
    "**/.git/**",
    ".touchmark.toml",
    // Hooks, servers and permissions of agents.
    "**/.claude/settings*.json",
    "**/.claude/hooks/**",
    "**/.codex/config.toml",
    "**/.codex/hooks*",
    "**/.codex/hooks/**",
    "**/.gemini/settings.json",
    "**/.gemini/hooks/**",
    "**/.cursor/hooks.json",
    "**/.cursor/hooks/**",
    "**/.cursor/mcp.json",
    "**/.opencode/plugin/**",
    "**/.opencode/plugins/**",
    "**/.qwen/settings.json",
    "**/.qwen/hooks/**",
    "**/.github/hooks/**",
    "**/.pi/extensions/**",
    "**/.cline/plugins/**",
    "**/.cline/hooks/**",
    "**/.vibe/config.toml",
    "**/.vibe/hooks.toml",
    "**/.factory/settings*.json",
    "**/.factory/hooks*",
    "**/.factory/hooks/**",
    "**/.grok/hooks/**",
    "**/.windsurf/hooks.json",
    "**/.agents/plugins/**",
    "opencode.json",
    "opencode.jsonc",
    ".mcp.json",
    // What editors and shells run when a directory is opened.
    "**/.vscode/tasks.json",
    ".envrc",
];

/// The maximum number of bytes of a pattern. No path is longer.
const PATTERN_BYTES: usize = 4_096;

/// The maximum number of alternatives (`{a,b}`) in one pattern.
const ALTERNATIVES: usize = 32;

/// Checks whether a pattern from outside may be compiled. The library handles
/// nested alternatives by recursion, so that too many of them crash the
/// process.
///
/// # Errors
/// The reason why it may not be compiled.
pub fn check(pattern: &str) -> Result<(), String> {
    if pattern.len() > PATTERN_BYTES {
        return Err(format!("a pattern has at most {PATTERN_BYTES} bytes"));
    }
    if pattern.bytes().filter(|byte| *byte == b'{').count() > ALTERNATIVES {
        return Err(format!("a pattern has at most {ALTERNATIVES} `{{`"));
    }
    Ok(())
}

/// A set of patterns of names. Case is ignored.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    patterns: Vec<String>,
    set: GlobSet,
}

impl PartialEq for Patterns {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}

impl Eq for Patterns {}

impl Patterns {
    /// Compiles patterns. Each is matched against the last component of a path
    /// and against the whole path.
    ///
    /// # Errors
    /// The first pattern that is invalid.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, globset::Error> {
        let mut set = GlobSetBuilder::new();
        let mut all_patterns = Vec::new();
        for pattern in patterns {
            all_patterns.push(pattern.to_owned());
            if pattern.contains('[') {
                // Lower-casing a pattern would change its character classes.
                set.add(GlobBuilder::new(pattern).case_insensitive(true).build()?);
                continue;
            }
            // The library turns case-insensitive globs into regular
            // expressions, even simple ones. These are matched at every read,
            // so plain lower-case globs are used instead.
            let (ascii, all) = (pattern.to_ascii_lowercase(), pattern.to_lowercase());
            set.add(Glob::new(&ascii)?);
            if ascii != all {
                set.add(Glob::new(&all)?);
            }
        }
        Ok(Self {
            patterns: all_patterns,
            set: set.build()?,
        })
    }

    /// Returns whether a path matches.
    pub fn has(&self, path: &RelPath) -> bool {
        self.has_name(path.as_bytes())
    }

    /// Returns whether a line of a search result begins with a matching name
    /// and a colon, so that it shows text from that file.
    pub fn are_shown_in(&self, result: &str) -> bool {
        let names = result.lines().filter_map(|line| line.split_once(':'));
        names
            .map(|(name, _)| name.trim())
            .any(|name| self.has_name(name.as_bytes()))
    }

    fn has_name(&self, path: &[u8]) -> bool {
        let small = path.to_ascii_lowercase();
        self.has_small(&small)
            || (!small.is_ascii()
                && self.has_small(String::from_utf8_lossy(&small).to_lowercase().as_bytes()))
    }

    fn has_small(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next();
        let is_match = |bytes| self.set.is_match(native::name(bytes));
        name.is_some_and(is_match) || is_match(path)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_name_is_a_secret_in_capitals_too_and_whatever_its_bytes() {
        let usual = Patterns::new(SECRETS.iter().copied()).unwrap();
        let own = Patterns::new(["Private/**", "*.[A-C]ert", "größe.*"]).unwrap();
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
        for name in [
            "a/.ssh/config",
            ".ssh/x",
            "b/.aws/credentials",
            ".netrc",
            "x/prod.env",
        ] {
            assert!(usual.has(&path(name.as_bytes())), "{name}");
        }
        for name in [
            "env",
            "a/penv/b",
            "pem",
            "keys",
            ".env/file",
            "src/secret.rs",
            "aws/x",
        ] {
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
    fn a_result_tells_of_what_it_found_in_a_secret() {
        let usual = Patterns::new(SECRETS.iter().copied()).unwrap();
        assert!(usual.are_shown_in("src/a.rs:1:x\na/.env:1:TOKEN=x\n"));
        assert!(!usual.are_shown_in("src/a.rs:1:.env\n.env\n"));
    }

    #[test]
    fn a_pattern_has_bounds() {
        let nested = |levels| format!("{}a{}", "{".repeat(levels), "}".repeat(levels));
        assert_eq!(check(&nested(ALTERNATIVES)), Ok(()));
        Patterns::new([nested(ALTERNATIVES).as_str()]).unwrap();
        check(&nested(ALTERNATIVES + 1)).unwrap_err();
        check(&"a".repeat(PATTERN_BYTES)).unwrap();
        check(&"a".repeat(PATTERN_BYTES + 1)).unwrap_err();
    }

    #[test]
    fn what_runs_unasked_is_protected() {
        let protected = Patterns::new(PROTECTED.iter().copied()).unwrap();
        let path = |name: &str| RelPath::new(name.as_bytes()).unwrap();
        for name in [
            ".git/config",
            "sub/.GIT/hooks/pre-commit",
            "worktree/.git",
            ".touchmark.toml",
            ".claude/settings.local.json",
            "a/.mcp.json",
        ] {
            assert!(protected.has(&path(name)), "{name}");
        }
        for name in [
            ".gitignore",
            ".github/workflows/x.yml",
            "git/config",
            ".claude/notes.md",
        ] {
            assert!(!protected.has(&path(name)), "{name}");
        }
    }

    #[test]
    fn what_patterns_that_ignore_case_say_is_a_secret_is_one() {
        let patterns = ["*.Key", "Secret?/**", "{a,B}.txt", "*Σ", "x?y", "[A-z]z"];
        let secrets = Patterns::new(patterns).unwrap();
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
