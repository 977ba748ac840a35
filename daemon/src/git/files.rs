//! Reads the small files of a repository that contain a path, a name or a
//! setting. They may have been part of a clone, so they are untrusted input.

use std::path::{Path, PathBuf};

use crate::system::open::read_regular;
use crate::tools::GIT;

/// The most bytes read from a file that contains a path or a branch's name.
const MOST_LINE: u64 = 4 << 10;

/// The most bytes read of a repository's configuration.
const MOST_CONFIG: u64 = 64 << 10;

/// Returns the name of the branch in the line of a `HEAD` file; `None` if it
/// has a commit.
pub(crate) fn branch(head: &str) -> Option<String> {
    let name = head.strip_prefix("ref: ")?;
    Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned())
}

/// Returns the git directory of the work tree with that top directory: what its
/// `.git` is or names.
pub(crate) fn own_directory(top: &Path) -> Option<PathBuf> {
    let git = top.join(GIT);
    Some(match git.symlink_metadata().ok()?.is_file() {
        true => top.join(line(&git)?.strip_prefix("gitdir: ")?),
        false => git,
    })
}

/// Returns the directory that a git directory shares with those of other work
/// trees; the git directory itself if it names none.
pub(crate) fn common_directory(own: &Path) -> PathBuf {
    line(&own.join("commondir")).map_or_else(|| own.to_owned(), |common| own.join(common))
}

/// Returns the canonical path of what the `.git` of a directory is or names.
pub(crate) fn pointed(top: &Path) -> Option<PathBuf> {
    own_directory(top)?.canonicalize().ok()
}

/// Returns the first line of a small file.
pub(crate) fn line(path: &Path) -> Option<String> {
    let bytes = read_regular(path, MOST_LINE).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    Some(text.lines().next()?.to_owned())
}

/// The settings of a repository's configuration whose values are plain words.
/// Files that it includes do not count.
#[derive(Debug, Default)]
pub(crate) struct Configured(Vec<(String, String, String)>);

impl Configured {
    /// Reads the configuration of the repository with this shared directory.
    pub(crate) fn read(common: &Path) -> Self {
        Self::read_file(&common.join("config"))
    }

    /// Reads a configuration file; empty if it cannot be read.
    pub(crate) fn read_file(path: &Path) -> Self {
        let text = read_regular(path, MOST_CONFIG).unwrap_or_default();
        Self::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Self {
        let mut found = Vec::new();
        let mut section = None;
        for line in text.lines().map(str::trim) {
            let mut line = line;
            if let Some((header, rest)) = line.strip_prefix('[').and_then(|l| l.split_once(']')) {
                // Of sections with a name in quotes, nothing is needed.
                section = is_word(header).then(|| header.to_lowercase());
                line = rest.trim();
            }
            let line = line.split(['#', ';']).next().unwrap_or_default();
            // A key alone is true.
            let (key, value) = line.split_once('=').unwrap_or((line, "true"));
            let value = value.trim().trim_matches('"');
            if let Some(section) = &section
                && is_word(key.trim())
                && is_word(value)
            {
                let words = [key.trim(), value].map(str::to_lowercase);
                let [key, value] = words;
                found.push((section.clone(), key, value));
            }
        }
        Self(found)
    }

    /// Returns the last value of a setting, in lower case.
    pub(crate) fn value(&self, section: &str, key: &str) -> Option<&str> {
        let mut settings = self.0.iter().rev();
        let (.., value) = settings.find(|(of, own, _)| of == section && own == key)?;
        Some(match value.as_str() {
            "yes" | "on" | "1" => "true",
            "no" | "off" | "0" => "false",
            value => value,
        })
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let bare = |text: &str| Configured::parse(text).value("core", "bare") == Some("true");
        for (text, is) in [
            ("[core]\n\tbare = true\n", true),
            ("[core]\n\tbare\n", true),
            ("[core]\n\tbare = \"true\" # so\n", true),
            ("[core]\n\tbare = false\n", false),
            (
                "[core]\n\tfilemode = true\n\tBare=TRUE\n[x]\nbare = false\n",
                true,
            ),
            ("[core \"x\"]\n\tbare = true\n", false),
            ("[other]\n\tbare = true\n", false),
            ("[core] bare = true\n", true),
            ("[core]\nbare = true\nbare = no\n", false),
            ("", false),
        ] {
            assert_eq!(bare(text), is, "{text}");
        }
    }
}
